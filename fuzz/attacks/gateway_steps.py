"""Steps against a gateway: those of attackers on their lines, of honest hosts, of operators, of time and of failures.

Each takes the world, an attacker and a source of choices, and says what it did; the first word of that is its event in the counts.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random
from typing import Any

from attacks import authorization_frames as coa
from attacks import pppoe_frames as wire
from attacks.gateway_world import HALF, LOST, REFUSE
from attacks.pppoe_frames import ACK, CHAP, CONTROL, IPCP, IPV6CP, LCP, NAK, PAP, REJECT, REQUEST
from attacks.sequences import Steps
from attacks.subscriber_hosts import WITHHELD, Host

UNIX_S = 1.7e9
SECRET = b"a client's secret"
_ROUND_TRIP_S = 0.0005
_BATCH_S = 0.003
_LONGEST_STEP_S = 10 * 86_400

Act = Callable[[Any, Host, Random], "str | None"]
STEPS: Steps[Act] = Steps()
step = STEPS.step


def session_of(world: Any, host: Host) -> Any:
    """Return a host's session in the gateway; None if there is none, or if another host has its number now."""
    session = world.gateway.sessions.get(host.session)
    return None if session is None or session.mac != host.mac else session


def settle(world: Any, host: Host, most: int = 60) -> int:
    """Answer all frames as an attacker, until no more come or ``most`` were answered; return the number of frames."""
    heard = 0
    for wait_s in (_ROUND_TRIP_S, _BATCH_S):
        while heard < most:
            if not host.inbox:
                world.run(wait_s)
                if not host.inbox:
                    break
            host.hear(host.inbox.popleft())
            heard += 1
    return heard


def some(random: Random, data: bytes) -> bytes:
    """Return the data with a few random changes."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 4))):
        if not changed:
            break
        at = random.randrange(len(changed))
        kind = random.randrange(5)
        if kind == 0:
            changed[at] = random.choice((0, 1, 2, 255, changed[at] ^ 1 << random.randrange(8)))
        elif kind == 1:
            del changed[at : at + random.randrange(1, 6)]
        elif kind == 2:
            changed[at:at] = random.randbytes(random.randrange(1, 6))
        elif kind == 3:
            del changed[at:]
        else:
            changed += random.randbytes(random.choice((1, 40, 1400)))
    return bytes(changed)


# Discovery (RFC 2516).


@step(4)
def dial(world: Any, host: Host, random: Random) -> str:
    """Request a session as an attacker, up to the first Configure-Request."""
    host.forget()
    host.inbox.clear()
    host.padi()
    for _ in range(2):
        world.run(_ROUND_TRIP_S)
        while host.inbox and not host.session:
            host.hear(host.inbox.popleft())
    return "accepted" if host.session else "refused"


@step(10)
def log_on(world: Any, host: Host, random: Random) -> str:
    """Dial as an attacker, and log in as far as the answers that it withholds allow."""
    host.withheld = frozenset(random.sample(WITHHELD, random.choice((0, 0, 0, 1, 1, 2, 3))))
    dial(world, host, random)
    settle(world, host)
    return f"{'online' if host.online else 'not-online'} as {host.user.decode()} without {sorted(host.withheld)}"


@step(5)
def log_on_together(world: Any, host: Host, random: Random) -> str:
    """Log several attackers in at the same time, beside an honest host, so that the gateway writes them in one batch."""
    others = random.sample(world.attackers, random.choice((2, 2, 3)))
    if random.random() < 0.5:  # who has the same address, or one that another has
        name = random.choice((b"static", b"first", b"pooled", b"routed"))
        for each in others:
            if not any(each.mac == customer.host.mac for customer in world.customers):
                each.user = name
    world.dial(random.choice(world.customers[:-1]))
    for each in others:
        each.withheld = frozenset()
        each.forget()
        each.inbox.clear()
        each.padi()
    for _ in range(30):
        world.run(_ROUND_TRIP_S)
        for each in others:
            while each.inbox:
                each.hear(each.inbox.popleft())
    return f"{sum(each.online for each in others)} of {len(others)} as {others[0].user.decode()}"


@step(2)
def padi(world: Any, host: Host, random: Random) -> str:
    """Send a PADI with random tags."""
    tags: wire.Tags = [(wire.SERVICE_NAME, random.choice((b"", b"internet", random.randbytes(200))))]
    if random.random() < 0.5:
        tags.append((wire.HOST_UNIQ, random.randbytes(random.choice((0, 4, 64, 1400)))))
    if random.random() < 0.3:
        tags.append((wire.RELAY, random.randbytes(12)))
    if random.random() < 0.3:
        tags.append((wire.MAX_PAYLOAD, random.choice((b"", b"\0\0", b"\x05\xdc", b"\xff\xff"))))
    if random.random() < 0.3:
        tags.append((wire.VENDOR, b"\0\0\x0d\xe9" + random.choice((b"", b"\x01\x07eth 0/1", b"\x01\xff", b"\x02\0"))))
    random.shuffle(tags)
    host.discovery(wire.PADI, tags, random.choice((0, 0, 0, 7)), to=wire.BROADCAST)
    return "sent"


@step(3)
def padr(world: Any, host: Host, random: Random) -> str:
    """Send a PADR with the last cookie, an older one, another host's, a changed one, or none."""
    kind = random.choice(("last", "last", "old", "other", "changed", "none"))
    cookies = list(random.choice(world.attackers).cookies if kind == "other" else host.cookies)
    cookie = {"last": cookies[-1:], "none": []}.get(kind, random.sample(cookies, min(1, len(cookies))))
    tags: wire.Tags = [(wire.SERVICE_NAME, b"")]
    tags += [(wire.AC_COOKIE, some(random, each) if kind == "changed" else each) for each in cookie]
    for _ in range(random.choice((1, 1, 1, 3))):
        host.discovery(wire.PADR, tags)
    return kind


@step(2)
def padt(world: Any, host: Host, random: Random) -> str:
    """Send a PADT for the attacker's own session."""
    host.padt()
    if random.random() < 0.7:
        host.forget()
    return "sent"


@step(3)
def other_name(world: Any, host: Host, random: Random) -> str:
    """Take another MAC address: a new one, another attacker's, or that of an honest host that is not online."""
    kind = random.randrange(8)
    if kind < 5:
        world.rename(host, bytes.fromhex("060000000c") + bytes((random.randrange(12),)))
        return "own"
    if kind < 7:
        world.rename(host, random.choice(world.attackers).mac)
        if any(host.mac == each.host.mac for each in world.customers):
            host.user = b"nobody"
        return "another attacker's"
    absent = [each for each in world.customers if not each.host.session]
    if not absent:
        return "nobody's"
    world.rename(host, random.choice(absent).host.mac)
    host.user = b"nobody"  # who has a customer's address and the password of another may take its place
    return "customer's"


@step(3)
def other_user(world: Any, host: Host, random: Random) -> str:
    """Choose another user name for the attacker's next logins."""
    if any(host.mac == each.host.mac for each in world.customers):
        return "none"
    host.user = random.choice(world.user_names)
    host.password = b"right" if random.random() < 0.9 else b"wrong"
    return host.user.decode()


# PPP (RFC 1661).


@step(10)
def answer(world: Any, host: Host, random: Random) -> str:
    """Answer all frames that the attacker has received, or only the oldest or the newest one."""
    kind = random.choice(("all", "all", "all", "one", "newest"))
    if kind == "all":
        settle(world, host)
    elif host.inbox:
        host.hear(host.inbox.popleft() if kind == "one" else host.inbox.pop())
    return kind


@step(4)
def withhold(world: Any, host: Host, random: Random) -> str:
    """Choose the kinds of packets that the attacker does not answer from now on."""
    host.withheld = frozenset(random.sample(WITHHELD, random.choice((0, 1, 1, 2, 4))))
    return " ".join(["sets", *sorted(host.withheld)])


@step(1)
def forget_frames(world: Any, host: Host, random: Random) -> None:
    """Discard the frames that the attacker has received, without an answer."""
    host.inbox.clear()


def _pairs(protocol: int, random: Random) -> bytes:
    number = random.randbytes
    choices: dict[int, list[tuple[int, bytes]]] = {
        LCP: [
            (1, struct.pack("!H", random.choice((0, 64, 576, 1492, 1500, 65535)))),
            (5, random.choice((number(4), bytes(4)))),
            (3, random.choice((b"\xc0\x23", b"\xc2\x23\5", b"\xc2\x27"))),
            (7, b""),
            (13, number(3)),
        ],
        IPCP: [
            (3, random.choice((bytes(4), b"\x64\x40\0\2", b"\xff" * 4, number(4), b"\1"))),
            (129, bytes(4)),
            (2, b"\0\x2d\x0f\1"),
        ],
        IPV6CP: [(1, random.choice((bytes(8), number(8), number(7), b""))), (2, b"\0\x2d")],
    }
    return wire.options(*random.sample(choices[protocol], random.choice((0, 1, 1, 2))))


@step(6)
def negotiate_anew(world: Any, host: Host, random: Random) -> str:
    """Send a Configure-Request of LCP in any phase, and perhaps answer the packets that follow."""
    host.request(LCP)
    if random.random() < 0.5:
        settle(world, host)
    return "lcp"


@step(3)
def negotiate_anew_often(world: Any, host: Host, random: Random) -> str:
    """Negotiate the link several times in a row, through the login."""
    for _ in range(random.randrange(2, 12)):
        host.request(LCP)
        settle(world, host, 12)
    return "lcp"


@step(5)
def configure(world: Any, host: Host, random: Random) -> str:
    """Send an honest, odd or empty Configure-Request of a random protocol, once or many times; return protocol and kind."""
    protocol = random.choice((LCP, IPCP, IPCP, IPV6CP, IPV6CP))
    kind = random.choice(("good", "good", "odd", "empty"))
    for _ in range(random.choice((1, 1, 1, 8, 30))):
        if kind == "good":
            host.request(protocol)
        else:
            data = _pairs(protocol, random) if kind == "odd" else b""
            host.say(protocol, wire.control(REQUEST, host.identifier(), data))
    return f"{wire.NAMES[protocol]}-{kind}"


@step(5)
def reply(world: Any, host: Host, random: Random) -> str:
    """Answer the gateway's last Configure-Request of a protocol: rightly or wrongly, in time or late, once or twice."""
    protocol = random.choice(CONTROL)
    asked = host.last.get((protocol, REQUEST))
    if asked is None:
        return "nothing"
    code = random.choice((ACK, ACK, ACK, NAK, REJECT))
    data = asked.data
    if code != ACK and random.random() < 0.7:
        pairs = wire.options_of(data)
        data = (
            wire.options(*random.sample(pairs, min(1, len(pairs))))
            if random.random() < 0.5
            else _pairs(protocol, random)
        )
    identifier = asked.identifier if random.random() < 0.85 else random.randrange(256)
    if code == ACK and identifier == asked.identifier and data == asked.data:
        host.acknowledged.add(protocol)
    for _ in range(random.choice((1, 1, 2))):
        host.say(protocol, wire.control(code, identifier, data))
    return f"{wire.NAMES[protocol]}-{code}"


@step(4)
def other_code(world: Any, host: Host, random: Random) -> str:
    """Send a control protocol's packet with a code other than those of configuration."""
    protocol = random.choice(CONTROL)
    code = random.choice((5, 5, 6, 7, 8, 8, 9, 10, 11, 12, 0, 255))
    data = b""
    if code == wire.CODE_REJECT:
        data = wire.control(random.randrange(1, 13), 1)
    elif code == wire.PROTOCOL_REJECT:
        protocol, data = LCP, struct.pack("!H", random.choice((IPCP, IPV6CP, PAP, CHAP, LCP, 0x80FD))) + b"\1\1\0\4"
    elif code >= wire.ECHO:
        data = random.randbytes(random.choice((0, 3, 4, 40)))
    host.say(protocol, wire.control(code, host.identifier(), data))
    return f"{wire.NAMES[protocol]}-{code}"


@step(4)
def log_in(world: Any, host: Host, random: Random) -> str:
    """Send credentials, right or wrong, in any phase, once or several times."""
    protocol = random.choice((PAP, CHAP, host.wanted_login or PAP))
    name, password = host.user, host.password
    if random.random() < 0.15:
        host.user, host.password = random.choice((b"", b"x" * 255, b"\xff\0")), random.choice((b"", b"y" * 255))
    for _ in range(random.choice((1, 1, 1, 5))):
        if protocol == PAP or host.challenge[1]:
            host.log_in(protocol)
    host.user, host.password = name, password
    return wire.NAMES[protocol]


@step(3)
def address(world: Any, host: Host, random: Random) -> str:
    """Send DHCPv6 messages and router solicitations."""
    kind = random.choice((0, 1, 3, 5, 6, 8, 4, 9, 11, 2, 255))
    if kind == 0:
        host.say(wire.IPV6, wire.router_solicitation(host.interface))
        return "solicitation"
    prefix = random.choice((None, host.delegated, (56, random.randbytes(16)), (0, bytes(16))))
    for _ in range(random.choice((1, 1, 6))):
        host.dhcp(kind, prefix, random.choice((b"\0\0\0\1", random.randbytes(4))))
    return f"dhcp-{kind}"


# Frames that are not one's own, or wrong.


@step(4)
def spoof(world: Any, host: Host, random: Random) -> str:
    """Send a frame of another host's session, with that host's MAC address, from the attacker's own line."""
    others = [each.host for each in world.customers if each.host.session] + world.attackers
    victim = random.choice(others)
    kind = random.choice(("padt", "terminate", "request", "ack", "padr", "login"))
    frames = {
        "padt": lambda: wire.discovery(host.gateway, victim.mac, wire.PADT, victim.session),
        "padr": lambda: wire.discovery(
            host.gateway,
            victim.mac,
            wire.PADR,
            0,
            [(wire.SERVICE_NAME, b""), (wire.AC_COOKIE, (list(victim.cookies) or [b""])[-1])],
        ),
    }
    packets = {
        "terminate": (LCP, wire.control(wire.TERMINATE, 1)),
        "request": (random.choice(CONTROL), wire.control(REQUEST, 1, b"")),
        "ack": (IPCP, wire.control(ACK, 1, b"")),
        "login": (PAP, wire.control(1, 1, b"\6mallory"[:7] + b"\5right")),
    }
    if kind in packets:
        frames[kind] = lambda: wire.session_frame(host.gateway, victim.mac, victim.session, *packets[kind])
    frame = frames[kind]()
    if random.random() < 0.3:  # with its own address, but the other's session
        frame = frame[:6] + host.mac + frame[12:]
    world.send(host.line, frame)
    return kind


@step(3)
def replay(world: Any, host: Host, random: Random) -> str:
    """Send frames again that the attacker, or an honest host, has sent before."""
    own = random.random() < 0.6
    frames = list(host.sent) if own else world.captured
    for _ in range(random.choice((1, 2, 6))):
        if frames:
            world.send(host.line, random.choice(frames))
    return "own" if own else "others'"


@step(3)
def damage(world: Any, host: Host, random: Random) -> str:
    """Send frames of the attacker with random changes, or random bytes."""
    for _ in range(random.choice((1, 4, 12))):
        if host.sent and random.random() < 0.85:
            frame = some(random, random.choice(list(host.sent)))
        else:
            head = random.choice((host.gateway, wire.BROADCAST)) + host.mac + random.choice((b"\x88\x63", b"\x88\x64"))
            frame = head + b"\x11" + random.randbytes(random.randrange(60))
        world.send(host.line, frame.ljust(14, b"\0"))
    return "sent"


@step(1)
def flood(world: Any, host: Host, random: Random) -> str:
    """Open many sessions with many MAC addresses, and leave most of them half-open."""
    opened = 0
    for number in range(random.choice((3, 12))):
        world.rename(host, bytes.fromhex("060000000d") + bytes((number,)))
        opened += dial(world, host, random) == "accepted"
        if random.random() < 0.5:
            settle(world, host, random.randrange(8))
    return f"opened {opened}"


@step(2)
def keep_silent(world: Any, host: Host, random: Random) -> str:
    """Stop the attacker from sending and answering, or let it do so again."""
    if host in world.silent:
        world.silent.discard(host)
        return "ends"
    world.silent.add(host)
    host.inbox.clear()
    return "begins"


# Honest hosts, operators, time and failures.


@step(5)
def newcomer(world: Any, host: Host, random: Random) -> str:
    """Start to dial as an honest host, at the same time as the attackers' next steps."""
    world.dial(random.choice(world.customers[:-1]))
    world.run(random.choice((0, 0.001, 0.003, 0.005)))
    return "dials"


@step(1)
def leave(world: Any, host: Host, random: Random) -> str:
    """Hang up as an honest host, with or without a packet."""
    world.hang_up(random.choice(world.customers), random.random() < 0.5)
    return "hangs-up"


@step(6)
def wait(world: Any, host: Host, random: Random) -> str:
    """Run for a random time without any step."""
    duration_s = random.choice((0.0005, 0.001, 0.002, 0.004, 0.1, 1, 3, 3, 10, 31, 31, 100, 1000))
    world.run(duration_s)
    return f"{duration_s} s"


@step(1)
def day_changes(world: Any, host: Host, random: Random) -> str:
    """Set the clock of the day; the monotonic clock is not changed."""
    world.wall_jump_s = random.choice((-1, 1)) * random.choice((0.5, 3600, 86_400, 40 * 86_400))
    return "steps"


@step(2)
def plane_fails(world: Any, host: Host, random: Random) -> str:
    """Make writes to the user plane fail from now on."""
    how = random.choice((REFUSE, HALF, LOST))
    world.fail_plane(how)
    return how


@step(4)
def plane_works(world: Any, host: Host, random: Random) -> None:
    """End the failures of writes to the user plane."""
    world.fail_plane(None)


@step(1)
def disk_fills(world: Any, host: Host, random: Random) -> None:
    """Make writes to the store fail from now on."""
    world.fill_disk(True)


@step(2)
def disk_empties(world: Any, host: Host, random: Random) -> None:
    """End the failures of writes to the store."""
    world.fill_disk(False)


@step(0.7)
def servers_fall_silent(world: Any, host: Host, random: Random) -> None:
    """Stop the RADIUS servers from answering."""
    world.silence_radius(True)


@step(2)
def servers_answer(world: Any, host: Host, random: Random) -> None:
    """Make the RADIUS servers answer again."""
    world.silence_radius(False)


@step(1)
def drain(world: Any, host: Host, random: Random) -> str:
    """Drain the gateway as an operator, so that it refuses new sessions, or undrain it."""
    world.draining = not world.draining
    if world.draining:
        world.gateway.drain()
        return "begins"
    world.gateway.undrain()
    return "ends"


@step(2)
def kick(world: Any, host: Host, random: Random) -> str:
    """End an attacker's session as an operator."""
    session = session_of(world, host)
    number = world.gateway.kick([] if session is None else [session.id])
    return f"ends {number}"


def _ask(world: Any, code: int, attributes: coa.Attributes) -> int | None:
    world.coa_identifier += 1
    now = UNIX_S + world.time.now() + world.wall_jump_s
    whole = [(coa.NAS_IDENTIFIER, b"ac-1"), (coa.EVENT_TIMESTAMP, struct.pack("!I", int(now))), *attributes]
    return world.authorize(coa.request(code, world.coa_identifier, whole, SECRET), now)


@step(4)
def change_rates(world: Any, host: Host, random: Random) -> str:
    """Change a session's rates as a RADIUS server does (RFC 5176).

    The session is an attacker's or an honest host's; the rates are possible ones, and impossible ones.
    """
    honest = [each.host for each in world.customers if each.online_as is not None]
    chosen = random.choice([*honest, host, host, host])
    session = session_of(world, chosen)
    if session is None:
        return "nobody"
    up, down = random.choice((0, 1, 7, 8, 10_000_000, 2**32 - 1)), random.choice((8, 50_000_000))
    if chosen is not host:
        up = random.choice((10_000_000, 20_000_000))
    key = session.accounting_id.encode()
    pairs = [(coa.ACCT_SESSION_ID, key), coa.wispr(coa.MAX_UP, up), coa.wispr(coa.MAX_DOWN, down)]
    said = _ask(world, coa.COA, pairs)
    world.expect_rates(chosen.session, said == coa.COA_ACK, up, down)
    return f"{'ack' if said == coa.COA_ACK else 'nak'} {up} {down}"


@step(2)
def disconnect(world: Any, host: Host, random: Random) -> str:
    """End an attacker's session as a RADIUS server does (RFC 5176)."""
    session = session_of(world, host)
    if session is None:
        return "nobody"
    said = _ask(world, coa.DISCONNECT, [(coa.ACCT_SESSION_ID, session.accounting_id.encode())])
    return "ack" if said == coa.DISCONNECT_ACK else "nak"


@step(0.7)
def crash(world: Any, host: Host, random: Random) -> str:
    """Kill the gateway, and start it again on the same plane and store, if both work."""
    # What a new process knows of the time that has passed is the day's clock.
    if not (world.plane_is_well and world.disk_is_well) or abs(world.wall_jump_s) > _LONGEST_STEP_S:
        return "not now"
    world.run(0.1)
    world.crash()
    return "restarts"
