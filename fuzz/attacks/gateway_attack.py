"""A gateway between attackers and honest subscribers, and the laws that hold after every step.

The laws read the public surface alone: the plane's table, accounting records, sessions, setups, pools, the store, and the wire.
"""

from __future__ import annotations

import gc
import random as pseudo
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address, IPv6Network
from random import Random
from typing import Any

from attacks import gateway_steps
from attacks import pppoe_frames as wire
from attacks.gateway_switch import SwitchPlane
from attacks.gateway_world import Books, CountingPlane, Disk, Epoch, Judge, Time
from attacks.radius_world import RadiusWorld
from attacks.sequences import Room, Step, World
from attacks.subscriber_hosts import Host
from holdfast.subscribers.authentication import Verdict
from holdfast.subscribers.configuration import Configuration
from holdfast.subscribers.dynamic_authorization import DynamicAuthorization
from holdfast.subscribers.gateway import Gateway
from holdfast.subscribers.plane import Line, Session

GRACE_S = 0.1
"""The time in which the gateway may do what its batches delay."""
RECOVERY_S = 10.0
"""The time after a failure of plane or store in which it may still try again."""
SETUP_S = 30.0
DEAD_S = 30.0
"""The time after which a RADIUS server that was away is tried again."""
HALF_OPEN_S = SETUP_S + 12.0
"""The deadline of a setup, and two Terminate-Requests (RFC 1661, section 4.6)."""
PATIENCE_S = 80.0
"""The time in which an honest host that dials must be online, when nothing fails: two deadlines of attackers' setups."""
LEAVING_S = 900.0
"""The time after which nothing may be left of anybody: timeouts, echoes without answer, deadlines."""
MOST_SENDS, MOST_TIMERS, MOST_QUESTIONS, MOST_CALLS = 12, 8, 1, 6000
"""The most that one received frame may cause: frames sent (besides two for each just before), timers, questions, function calls."""
MOST_HELD = 100
"""Answers to one host that wait for the user plane."""
MOST_TIMERS_OF_A_SESSION = 10
MOST_REQUESTS = 600
"""RADIUS requests that have an identifier, of logins and of accounting."""


def users() -> dict[bytes, tuple[bytes, Verdict, float | None]]:
    """Return (password, verdict, delay of the answer in s) by user name. Honest users have a long Session-Timeout."""
    honest = Verdict(True, session_timeout_s=2_000_000)
    found: dict[bytes, tuple[bytes, Verdict, float | None]] = {b"honest": (b"right", honest, 0.0)}
    attackers = {
        b"mallory": Verdict(True),
        b"static": Verdict(True, ipv4=IPv4Address("198.51.100.7")),
        b"pooled": Verdict(True, ipv4=IPv4Address("100.64.0.77")),
        b"first": Verdict(True, ipv4=IPv4Address("100.64.0.2")),
        b"routed": Verdict(
            True, ipv6_prefix=IPv6Network("2001:db8:f:1::/64"), delegated=IPv6Network("2001:db8:f000::/56")
        ),
        b"wide": Verdict(True, delegated=IPv6Network("2001:db8:8000::/40")),
        b"narrow": Verdict(True, ipv6_prefix=IPv6Network("2001:db8:f::/56")),
        b"timed": Verdict(True, session_timeout_s=60),
        b"idle": Verdict(True, idle_timeout_s=30, interim_s=60),
    }
    found |= {name: (b"right", verdict, 0.0) for name, verdict in attackers.items()}
    found[b"slow"] = b"right", Verdict(True), 7.0
    found[b"slower"] = b"right", Verdict(True, ipv4=IPv4Address("198.51.100.8")), 29.0
    found[b"never"] = b"right", Verdict(True), None
    return found


NAMES = sorted(set(users()) - {b"honest"})


class Customer:
    """An honest host with what is due to it: to come online when it dials, and to stay."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.dials = False
        self.waited_s = 0.0
        self.online_as: int | None = None
        """Its session, since it was online."""


class GatewayUnderAttack(World):
    """The world. ``make`` builds the gateway: tests plant faults in it."""

    def __init__(self, seed: int, make: Callable[..., Gateway] = Gateway) -> None:
        super().__init__()
        self.random = Random(seed)
        self.make = make
        self.time = Time()
        plane = SwitchPlane if self.random.random() < 0.2 else CountingPlane
        self.plane = plane(self.time, self._deliver)
        self.books = Books(self.plane)
        self.disk = Disk()
        self.wall_jump_s = 0.0
        self.words: dict[int, str] = {}
        self.half_open: dict[str, float] = {}
        self.offences: dict[tuple[str, object], float] = {}
        self.plane_well_s = self.disk_well_s = self.radius_well_s = 0.0
        self.draining = False
        self.alive: weakref.WeakSet[Any] = weakref.WeakSet()
        self.coa_identifier = 0
        self.batch: list[float] = []
        self.profiled = self.random.random() < 0.15
        self.calls = 0
        self.hosts: dict[tuple[object, bytes], Host] = {}
        self.customers: list[Customer] = []
        self.attackers: list[Host] = []
        self.captured: list[bytes] = []
        self.silent: set[Host] = set()
        self.configuration = self._configure()
        self.radius: RadiusWorld | None = None
        if self.random.random() < 0.35:
            self.radius = RadiusWorld(self.configuration.radius, users(), Random(seed))
        self.boot()
        self.base = self.gateway.pool_use()
        self.idle_timers = self.clock.waiting
        self.customers += [self._customer(number) for number in range(7)]
        self.attackers += [self._attacker(number) for number in range(5)]
        self._settle_in()

    def _configure(self) -> Configuration:
        random = self.random
        values: dict[str, Any] = {
            "name": "ac-1",
            "mac": "02:00:00:00:00:0a",
            "address": "100.64.0.1",
            "pools": {"default": random.choice(["100.64.0.0/24", "100.64.0.0/16"])},
            "dns": ["192.0.2.53"],
            "authentication": random.choice([["chap", "pap"], ["pap", "chap"], ["chap"], ["pap"]]),
            "limits": {
                "sessions_per_line": random.choice([1, 2, 8]),
                "sessions_per_mac": random.choice([1, 1, 2]),
                "setups": 64,
                "setup_timeout_s": SETUP_S,
                "padi_per_line_s": random.choice([10, 1000]),
            },
            "radius": {
                "servers": [{"host": "192.0.2.1", "secret": "a server's secret"}],
                "dynamic_authorization": {"clients": {"192.0.2.9": gateway_steps.SECRET.decode()}},
            },
        }
        if random.random() < 0.8:
            values["ipv6"] = {"prefixes": "2001:db8:1::/48", "delegated": "2001:db8:8000::/34", "delegated_length": 56}
        return Configuration.model_validate(values)

    def boot(self) -> None:
        """Start a new gateway process on the existing plane and store."""
        self.clock = Epoch(self.time)
        self.others = Epoch(self.time)
        """The clock of what is not the gateway's own, and ends with it."""
        self.judge: Judge | RadiusWorld = Judge(users(), self.others)
        if self.radius is not None:
            self.radius.boot(self.clock, self.others, self.wall, self.books)
            self.judge = self.radius
        seed = self.random.randrange(1 << 32)
        self.gateway = self.make(
            self.configuration,
            self.plane,
            self.clock,
            self.judge,
            random=pseudo.Random(seed).randbytes,
            accountant=self.books if self.radius is None else self.radius,
            store=self.disk,
            wall=self.wall,
        )
        assert self.configuration.radius is not None
        self.authorization = DynamicAuthorization(self.configuration.radius, self.gateway)
        self.gateway.reconcile()
        self.gateway.start()

    def wall(self) -> float:
        """Return the Unix time in seconds, which jumps when a step sets the clock."""
        return gateway_steps.UNIX_S + self.time.now() + self.wall_jump_s

    def crash(self) -> None:
        """Kill the gateway and start another.

        Sessions that were not stored end without a Stop: Accounting-On (RFC 2866, section 5.1).
        """
        self.clock.end()
        self.others.end()
        self.half_open = {}
        self.boot()
        for key, number in [(key, number) for number, key in self.books.sessions.items()]:
            if number not in self.gateway.sessions:
                del self.books.open[key], self.books.sessions[number]
        self.plane.removed.clear()

    # People.

    def _customer(self, number: int) -> Customer:
        methods = self.configuration.authentication  # a host that has none of these is refused with right
        method = {"pap": wire.PAP, "chap": wire.CHAP}[self.random.choice(methods)]
        host = Host(
            Line(1, 5, number),
            bytes.fromhex("060000000a") + bytes((number,)),
            b"honest",
            b"right",
            self._transmit,
            method,
        )
        self.hosts[host.line, host.mac] = host
        return Customer(host)

    def _attacker(self, number: int) -> Host:
        user = (b"mallory", b"static", b"static", b"nobody", b"mallory")[number]
        method = self.random.choice((wire.PAP, wire.CHAP))
        line = Line(1, 6, (0, 1, 1, 2, 3)[number])
        host = Host(line, bytes.fromhex("060000000b") + bytes((number,)), user, b"right", self._transmit, method)
        self.hosts[line, host.mac] = host
        return host

    def rename(self, host: Host, mac: bytes) -> None:
        """Give an attacker another MAC address, and abandon the session of the old one."""
        if self.hosts.get((host.line, host.mac)) is host:
            del self.hosts[host.line, host.mac]
        host.mac = mac
        host.forget()
        host.inbox.clear()
        self.hosts[host.line, mac] = host

    def dial(self, customer: Customer) -> None:
        """Start to dial as an honest host, and retry until it is online."""
        if customer.dials:
            return
        customer.dials, customer.waited_s = True, 0.0
        self._tick(customer)

    def _tick(self, customer: Customer) -> None:
        if customer.dials and not customer.host.online:
            customer.host.tick()
        if customer.dials:
            self.time.later(3.0, lambda: self._tick(customer), self)

    def hang_up(self, customer: Customer, politely: bool) -> None:
        """Hang up as an honest host, with a Terminate-Request and a PADT, or without any packet."""
        if not customer.dials:
            return
        customer.dials, customer.online_as, host = False, None, customer.host
        if not host.session:
            return
        if politely:
            host.say(wire.LCP, wire.control(wire.TERMINATE, host.identifier()))
            self.run(0.01)
        if host.session:
            host.padt()
        host.forget()

    def _settle_in(self) -> None:
        for customer in self.customers[:3]:
            self.dial(customer)
            self.run(0.05)
        self.run(1.0)
        for customer in self.customers[:3]:
            if not customer.host.online:
                self.broken("honest host is not served", f"line {customer.host.line} at the beginning")
        self.packets = 0
        if self.radius is not None:
            self.radius.loss = 0.03

    # The wire.

    def _transmit(self, host: Host, frame: bytes) -> None:
        self.send(host.line, frame)

    def send(self, line: Any, frame: bytes) -> None:
        """Send a frame from a line, and check how many packets, timers and calls the gateway spends on it."""
        self.packets += 1
        if len(self.captured) < 400:
            self.captured.append(frame)
        sends, timers, asked = self.plane.sends, self.clock.waiting, self.judge.asked
        handler = self.plane.handler
        assert handler is not None
        if self.profiled:
            self.calls = 0
            sys.setprofile(self._count)
            try:
                handler(line, frame)
            finally:
                sys.setprofile(None)
            if self.calls > MOST_CALLS:
                self.broken("work of one packet", f"{self.calls} calls for {frame.hex()}")
        else:
            handler(line, frame)
        now = self.time.now()
        self.batch = [at for at in self.batch if now - at < GRACE_S] + [now]  # answers may wait for an installation
        late = 0 if self.plane_is_well else MOST_HELD  # answers that waited for a plane that did not answer
        if self.plane.sends - sends > MOST_SENDS + 2 * len(self.batch) + late:
            self.broken("amplification", f"{self.plane.sends - sends} frames are sent for {frame.hex()}")
        if self.clock.waiting - timers > MOST_TIMERS or self.judge.asked - asked > MOST_QUESTIONS:
            self.broken("work of one packet", f"timers or questions for {frame.hex()}")

    def _count(self, _frame: Any, event: str, _argument: Any) -> None:
        self.calls += event == "call"

    def _deliver(self, line: Line, frame: bytes) -> None:
        self._note_word(frame)
        host = self.hosts.get((line, frame[:6]))
        if host is None:
            return
        if host in self.attackers:
            if host not in self.silent:
                host.inbox.append(frame)
        elif any(each.host is host and each.dials for each in self.customers):
            self.time.later(0.0003, lambda: host.hear(frame), self)

    def _note_word(self, frame: bytes) -> None:
        """Record what the gateway last told each session's host: a network protocol is open, or the link is down."""
        number = int.from_bytes(frame[16:18], "big")
        if frame[12:14] == b"\x88\x63":
            if frame[15] == wire.PADT:
                self.words[number] = "closed"
            return
        packet = wire.packet_of(frame)
        if packet.protocol in (wire.IPCP, wire.IPV6CP) and packet.code == wire.ACK:
            self.words[number] = "open"
        elif packet.protocol == wire.LCP and packet.code in (wire.REQUEST, wire.TERMINATE, wire.TERMINATE_ACK):
            self.words[number] = "closed"

    # Time and faults.

    @property
    def plane_is_well(self) -> bool:
        """True if the plane has worked for long enough."""
        return self.plane.fault is None and self.time.now() - self.plane_well_s >= RECOVERY_S

    @property
    def disk_is_well(self) -> bool:
        """True if the store has worked for long enough."""
        return not self.disk.full and self.time.now() - self.disk_well_s >= RECOVERY_S

    @property
    def radius_is_well(self) -> bool:
        """True if the servers have answered for long enough: one that was away is tried again after ``dead_s``."""
        return self.radius is None or (not self.radius.silent and self.time.now() - self.radius_well_s >= 2 * DEAD_S)

    def silence_radius(self, silent: bool) -> None:
        """Stop all RADIUS servers from answering, or let them answer again."""
        if self.radius is not None:
            if self.radius.silent and not silent:
                self.radius_well_s = self.time.now()
            self.radius.silent = silent

    def fail_plane(self, how: str | None) -> None:
        """Make writes to the user plane fail as ``how`` says, or succeed again if it is None."""
        if self.plane.fault is not None and how is None:
            self.plane_well_s = self.time.now()
        self.plane.fault = how

    def fill_disk(self, full: bool) -> None:
        """Make all writes to the store fail if ``full`` is True, and succeed again if it is False."""
        if self.disk.full and not full:
            self.disk_well_s = self.time.now()
        self.disk.full = full

    def run(self, duration_s: float) -> None:
        """Run for ``duration_s`` in pieces with user traffic, and check the laws after each piece."""
        left = duration_s
        while left > 0:
            piece = min(left, 10.0)
            left -= piece
            self.plane.traffic(self._talks)
            self.time.run(piece)
            if piece >= 0.01:
                self._wait(piece)
                self.check()

    def _talks(self, session: Session) -> bool:
        host = self.hosts.get((session.line, session.mac))
        return host is not None and host not in self.silent and host.session == session.session_id

    def _wait(self, piece_s: float) -> None:
        if not (self.plane_is_well and self.disk_is_well and self.radius_is_well) or self.draining:
            return
        for customer in self.customers:
            if customer.dials and not customer.host.online:
                customer.waited_s += piece_s
            else:
                customer.waited_s = 0.0

    # Steps.

    def play(self, step: Step) -> None:
        """Execute one step of a sequence, then check the laws."""
        host = self.attackers[step.actor % len(self.attackers)]
        session = self.gateway.sessions.get(host.session)
        state = "none" if session is None or session.mac != host.mac else str(session.phase.value)
        if state == "network":
            state += "/open" if host.session in self.plane.table else "/closed"
        if self.plane.fault is not None:
            state += " plane fails"
        if self.disk.full:
            state += " disk full"
        done = gateway_steps.STEPS.acts[step.name](self, host, Random(step.seed))
        self.log.append(
            f"{self.time.now():10.4f} attacker {step.actor % len(self.attackers)} {step.name} {done or ''}".rstrip()
        )
        self.states[state, f"{step.name} {(done or '').partition(' ')[0]}".strip()] += 1
        self.check()

    # Operators.

    @property
    def user_names(self) -> list[bytes]:
        """Names by which attackers may log in."""
        return NAMES

    def authorize(self, datagram: bytes, wall_s: float) -> int | None:
        """Send a request to the dynamic authorization server. Returns the code of its answer, or None without an answer."""
        said = self.authorization.received(IPv4Address("192.0.2.9"), 4000, datagram, wall_s)
        return None if said is None else said[0]

    def expect_rates(self, number: int, acknowledged: bool, up: int, down: int) -> None:
        """Check that a change that was acknowledged is in the plane (RFC 5176, section 2.2: the ACK says that it was made)."""
        installed = self.plane.table.get(number)
        if not acknowledged or installed is None:
            return
        rates = installed.rates.up_bit_s or 0, installed.rates.down_bit_s or 0  # 0 may stand for no limit
        if rates != (up, down):
            self.broken(
                "acknowledged change", f"session {number} has {installed.rates}, acknowledged are {up} and {down}"
            )

    # Laws.

    def check(self) -> None:
        """Check all laws. Raises :class:`Violated` if one has been broken for longer than its grace period."""
        now = self.time.now()
        for number, session in self.gateway.sessions.items():
            self.alive.add(session)
            self._age(number, session, now)
        if self.gateway.events["faults"]:
            self.broken("exception within a session", f"{self.gateway.events['faults']} of them ended their sessions")
        for law, text in self.books.wrong:
            self.broken(law, text)
        for episode in self.plane.over:
            if episode.sure and not episode.accounted:
                self.broken("forwarded without a record", f"{episode.session}: {episode.usage}")
        self.plane.over.clear()
        self._check_customers()
        found = dict(self._offences())
        self.offences = {key: self.offences.get(key, now) for key in found}
        for key, since_s in self.offences.items():
            if now - since_s > GRACE_S:
                self.broken(key[0], f"{found[key]}, since {since_s:.3f} s, now {now:.3f} s")
        most = self.idle_timers + 4 + MOST_TIMERS_OF_A_SESSION * len(self.gateway.sessions)
        if self.radius is not None:
            most += MOST_REQUESTS
            for text in self.radius.wrong:
                self.broken("a request that servers cannot trust", text)
        if self.clock.waiting > most:
            self.broken("timers", f"{self.clock.waiting} timers for {len(self.gateway.sessions)} sessions")

    def _age(self, number: int, session: Any, now: float) -> None:
        key = session.accounting_id
        if key in self.books.open:
            self.half_open.pop(key, None)
            return
        since_s = self.half_open.setdefault(key, now)
        if now - max(since_s, self.plane_well_s, self.disk_well_s) > HALF_OPEN_S and not self.plane.fault:
            self.broken("half-open session", f"session {number} of {session.line} is there for {now - since_s:.0f} s")

    def _check_customers(self) -> None:
        for customer in self.customers:
            host, number = customer.host, customer.online_as
            if number is None:
                if customer.dials and host.online and host.session in self.books.sessions:
                    customer.online_as = host.session
                elif customer.waited_s > PATIENCE_S:
                    self.broken("honest host is kept out", f"{host.line} has dialled for {customer.waited_s:.0f} s")
                continue
            if host.session != number or host.ended_by == "Terminate-Request":
                self.broken("honest session ended", f"{host.line}: {host.ended_by}")
            there = self.plane.table.get(number)
            if (there is None or there.mac != host.mac) and self.plane_is_well:
                self.broken("honest session ended", f"{host.line}: it is not installed")
            if number not in self.books.sessions:
                self.broken("honest session ended", f"{host.line}: its accounting is over")

    def _offences(self) -> Iterator[tuple[tuple[str, object], str]]:
        sessions, table = self.gateway.sessions, self.plane.table
        if self.plane_is_well:
            for number, each in table.items():
                yield from self._offences_of_installed(number, each)
            for number, key in self.books.sessions.items():
                if number not in table and number not in sessions:
                    yield ("accounting without a stop", key), f"session {number} is over"
        if self.plane_is_well and self.disk_is_well:
            yield from self._offences_of_pools()
            for number in self.disk.rows:
                if number not in sessions:
                    yield ("stored session that is over", number), f"session {number}"
        yield from self._offences_of_limits()

    def _offences_of_installed(self, number: int, installed: Session) -> Iterator[tuple[tuple[str, object], str]]:
        session = self.gateway.sessions.get(number)
        if session is None or session.mac != installed.mac:
            yield ("installed without a session", number), f"{installed}"
            return
        if number not in self.books.sessions:
            yield ("forwards unaccounted", number), f"session {number} of {installed.line}"
        if str(session.phase.value) != "network":
            yield ("installed outside of the network phase", number), f"session {number} is in {session.phase.value}"
        if self.words.get(number) == "closed":
            yield ("forwards after the link went down", number), f"session {number} of {installed.line}"

    def _offences_of_pools(self) -> Iterator[tuple[tuple[str, object], str]]:
        use = self.gateway.pool_use()
        granted = [each.grant.session for each in self.gateway.sessions.values() if each.grant is not None]
        counts = {
            "default": sum(each.ipv4 in self.configuration.pools["default"] for each in granted if each.ipv4),
            "session-ids": len(self.gateway.sessions),
        }
        six = self.configuration.ipv6
        if six is not None:
            assert six.delegated is not None
            counts["ipv6-prefixes"] = sum(
                bool(each.ipv6_prefix) and each.ipv6_prefix.subnet_of(six.prefixes) for each in granted
            )
        for name, count in counts.items():
            if use[name] - self.base[name] != count:
                yield (
                    ("pools and grants", name),
                    f"{name}: {use[name] - self.base[name]} are taken, {count} are granted",
                )

    def _offences_of_limits(self) -> Iterator[tuple[tuple[str, object], str]]:
        lines = Counter(each.line for each in self.gateway.sessions.values())
        for line, count in lines.items():
            if count > self.configuration.limits.sessions_per_line:
                yield ("sessions of a line", line), f"{count} on {line}"
        if not 0 <= self.gateway.setups <= len(self.gateway.sessions):
            yield ("setups", 0), f"{self.gateway.setups} setups of {len(self.gateway.sessions)} sessions"

    # The end.

    def end(self) -> None:
        """End all faults, check that a new host can dial, make all hosts leave, and check that nothing is left."""
        self.fail_plane(None)
        self.fill_disk(False)
        self.silence_radius(False)
        self.gateway.undrain()
        self.draining = False
        self.silent.update(self.attackers)
        self.run(RECOVERY_S + 1.0 + (0 if self.radius is None else 2 * DEAD_S))
        self.dial(self.customers[-1])
        self.run(1.0)
        for _ in range(int(PATIENCE_S)):
            if self.customers[-1].host.online:
                break
            self.run(3.0)
        for number, host in enumerate(self.attackers):
            if host.session and number % 2:
                host.padt()
        for number, customer in enumerate(self.customers):
            self.hang_up(customer, politely=number % 2 == 0)
        self.run(LEAVING_S)
        self._check_nothing_is_left()

    def _check_nothing_is_left(self) -> None:
        gateway = self.gateway
        left = {
            "sessions": list(gateway.sessions),
            "setups": gateway.setups,
            "installed": list(self.plane.table),
            "open accountings": list(self.books.open),
            "stored": list(self.disk.rows),
            "pools": gateway.pool_use() - self.base,
            "timers": max(0, self.clock.waiting - self.idle_timers),
        }
        for what, found in left.items():
            if found:
                self.broken(f"{what} left when all have left", f"{found}")
        if self.radius is not None:
            self._check_delivery(self.radius)
        if self.alive:
            gc.collect()
        if self.alive:
            self.broken(
                "objects left when all have left", f"{len(self.alive)} sessions of {sorted(s.id for s in self.alive)}"
            )

    def _check_delivery(self, radius: RadiusWorld) -> None:
        """Check that a server has received every record, with the right usage."""
        if len(radius.queue):
            self.broken("records left when all have left", f"{len(radius.queue)}")
        for key, usage in self.books.usages.items():
            if radius.stops.get(key.encode()) != (usage.packets_up, usage.packets_down):
                self.broken("a stop is not delivered", f"{key}: {radius.stops.get(key.encode())} in place of {usage}")


ROOM = Room("attack-gateway", GatewayUnderAttack, gateway_steps.STEPS.weights)
