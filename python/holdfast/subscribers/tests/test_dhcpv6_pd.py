"""The DHCPv6 server against messages written from RFC 8415, and against a model of its bindings that shares no code with it."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, field
from ipaddress import IPv6Address, IPv6Network
from pathlib import Path

import pytest

from holdfast.subscribers import dhcpv6_pd, ipv6
from holdfast.subscribers.gateway import Gateway
from holdfast.subscribers.plane import Line
from holdfast.subscribers.store import SqliteStore
from holdfast.subscribers.subscriber import Account, Subscriber
from holdfast.subscribers.tests.worlds import MAC, MemoryPlane, VirtualClock, configuration, seeded
from holdfast.subscribers.users import UserList

DUID = bytes.fromhex("00030001 02000000000a")
CLIENT = "0001 000a 00030001 020000000102"
SERVER = f"0002 000a {DUID.hex()}"
IA = "0019 000c 00000001 00000000 00000000"
LEASE = dhcpv6_pd.Lease(
    IPv6Network("2001:db8:8000:100::/56"), (IPv6Address("2001:db8::53"),), 3600, 7200, IPv6Network("2001:db8:1::/64")
)
PREFIX = "001a 0019 00000e10 00001c20 38 20010db8800001000000000000000000"
GIVEN = f"0019 0029 00000001 00000708 00000b40 {PREFIX}"
DNS = "0017 0010 20010db8000000000000000000000053"
NAMED = f"0019 0029 00000001 00000000 00000000 {PREFIX}"
OLD = "001a 0019 00000e10 00001c20 38 20010db8900001000000000000000000"
OLD_ENDED = "001a 0019 00000000 00000000 38 20010db8900001000000000000000000"
NAMED_OLD = f"0019 0029 00000001 00000000 00000000 {OLD}"
OTHER = "0019 000c 00000002 00000000 00000000"
ADDRESS = "0003 0028 00000001 00000000 00000000 0005 0018"
"""An IA_NA with an address, which follows with its lifetimes."""
HERS = dhcpv6_pd.Binding(bytes.fromhex("00030001 020000000102"), bytes.fromhex("00000001"))
SUCCESS = "000d 0002 0000"


def nothing(iaid: int, status: int, kind: str = "0019") -> str:
    """Return an IA in the server's answer that has a status code and no lease, in hexadecimal digits."""
    return f"{kind} 0012 {iaid:08x} 00000000 00000000 000d 0002 {status:04x}"


def ask(
    message: str, bound: dhcpv6_pd.Bound = False, lease: dhcpv6_pd.Lease = LEASE, unicast: bool = False
) -> tuple[str | None, dhcpv6_pd.Bound | None]:
    outcome = dhcpv6_pd.respond(bytes.fromhex(message), DUID, lease, bound, unicast=unicast)
    return None if outcome.reply is None else outcome.reply.hex(), outcome.bound


def text(value: str) -> str:
    return bytes.fromhex(value).hex()


@pytest.mark.parametrize(
    ("message", "bound", "reply", "after"),
    [
        (f"01 abcdef {CLIENT} 0006 0002 0017 {IA}", False, f"02 abcdef {CLIENT} {SERVER} {GIVEN} {DNS}", None),
        (f"01 abcdef {CLIENT} {IA}", False, f"02 abcdef {CLIENT} {SERVER} {GIVEN}", None),
        (f"01 abcdef {CLIENT} {IA} 000e 0000", False, f"07 abcdef {CLIENT} {SERVER} 000e 0000 {GIVEN}", HERS),
        (f"03 abcdef {CLIENT} {SERVER} {IA}", False, f"07 abcdef {CLIENT} {SERVER} {GIVEN}", HERS),
        (f"05 abcdef {CLIENT} {SERVER} {IA}", HERS, f"07 abcdef {CLIENT} {SERVER} {GIVEN}", HERS),
        (f"06 abcdef {CLIENT} {IA}", HERS, f"07 abcdef {CLIENT} {SERVER} {GIVEN}", HERS),
        ("0b abcdef 0006 0002 0017", False, f"07 abcdef {SERVER} {DNS}", None),
    ],
)
def test_a_prefix_is_given_and_extended(
    message: str, bound: dhcpv6_pd.Bound, reply: str, after: dhcpv6_pd.Bound | None
) -> None:
    assert ask(message, bound) == (text(reply), after)


@pytest.mark.parametrize(
    ("message", "bound", "body", "after"),
    [
        # Section 18.3.4: an IA without a binding, and one that names what it does not have.
        (f"05 abcdef {CLIENT} {SERVER} {IA}", False, nothing(1, 3), None),
        (f"05 abcdef {CLIENT} {SERVER} {OTHER}", HERS, nothing(2, 3), None),
        (f"05 abcdef 0001 000a 00030001 020000000199 {SERVER} {IA}", HERS, nothing(1, 3), None),
        (
            f"05 abcdef {CLIENT} {SERVER} {NAMED_OLD}",
            HERS,
            f"0019 0046 00000001 00000708 00000b40 {PREFIX} {OLD_ENDED}",
            HERS,
        ),
        (
            f"05 abcdef {CLIENT} {SERVER} {NAMED_OLD}",
            False,
            f"0019 002f 00000001 00000000 00000000 {OLD_ENDED} 000d 0002 0003",
            None,
        ),
        (
            f"05 abcdef {CLIENT} {SERVER} 0019 0029 00000001 00000000 00000000 001a 0019 00000000 00000000 38 {'00' * 16}",
            HERS,
            GIVEN,
            HERS,
        ),
        # Section 18.3.5.
        (f"06 abcdef {CLIENT} {IA}", False, nothing(1, 3), None),
        (f"06 abcdef {CLIENT} {NAMED}", False, nothing(1, 3), None),
        (
            f"06 abcdef {CLIENT} {NAMED_OLD}",
            False,
            f"0019 002f 00000001 00000000 00000000 {OLD_ENDED} 000d 0002 0003",
            None,
        ),
        (
            f"06 abcdef {CLIENT} {ADDRESS} 20010db8000200000000000000000001 00000e10 00001c20",
            False,
            "0003 002e 00000001 00000000 00000000 0005 0018 20010db8000200000000000000000001 00000000 00000000 000d 0002 0003",
            None,
        ),
        # Section 18.3.7: only what an IA has is released, and only if it is named.
        (f"08 abcdef {CLIENT} {SERVER} {NAMED}", HERS, SUCCESS, False),
        (f"08 abcdef {CLIENT} {SERVER} {NAMED}", True, SUCCESS, False),
        (f"08 abcdef {CLIENT} {SERVER} {NAMED}", False, f"{SUCCESS} {nothing(1, 3)}", None),
        (f"08 abcdef {CLIENT} {SERVER} {IA}", HERS, SUCCESS, None),
        (f"08 abcdef {CLIENT} {SERVER} {IA}", True, SUCCESS, None),
        (f"08 abcdef {CLIENT} {SERVER} {NAMED_OLD}", HERS, SUCCESS, None),
        (f"08 abcdef {CLIENT} {SERVER}", HERS, SUCCESS, None),
        (f"08 abcdef {CLIENT} {SERVER} {OTHER}", HERS, f"{SUCCESS} {nothing(2, 3)}", None),
        (f"08 abcdef {CLIENT} {SERVER} 0003 000c {'00' * 12}", HERS, f"{SUCCESS} {nothing(0, 3, '0003')}", None),
        (f"08 abcdef {CLIENT} {SERVER} 0004 0004 00000007", HERS, f"{SUCCESS} 0004 000a 00000007 000d 0002 0003", None),
        # Section 18.3.8.
        (f"09 abcdef {CLIENT} {SERVER} {NAMED}", HERS, SUCCESS, None),
        (f"09 abcdef {CLIENT} {SERVER} 0003 000c {'00' * 12}", HERS, f"{SUCCESS} {nothing(0, 3, '0003')}", None),
        # Section 18.3.3.
        (f"04 abcdef {CLIENT} {ADDRESS} 20010db8000100000000000000000001 00000e10 00001c20", False, SUCCESS, None),
        (
            f"04 abcdef {CLIENT} {ADDRESS} 20010db8000200000000000000000001 00000e10 00001c20",
            False,
            "000d 0002 0004",
            None,
        ),
        # Sections 18.3.1 and 18.3.2: another IA has the prefix.
        (f"03 abcdef {CLIENT} {SERVER} {OTHER}", HERS, nothing(2, 6), None),
        (f"03 abcdef {CLIENT} {SERVER} {OTHER} {IA}", HERS, f"{nothing(2, 6)} {GIVEN}", HERS),
        (f"03 abcdef {CLIENT} {SERVER} {IA} {IA}", HERS, GIVEN, HERS),
    ],
)
def test_bindings_are_those_of_one_association(
    message: str, bound: dhcpv6_pd.Bound, body: str, after: dhcpv6_pd.Bound | None
) -> None:
    client = message.split(" ", 2)[2][: len(CLIENT)]
    assert ask(message, bound) == (text(f"07 abcdef {client} {SERVER} {body}"), after)


@pytest.mark.parametrize("kind", ["03", "05", "08", "09"])
def test_a_message_to_the_servers_own_address_is_told_to_use_multicast(kind: str) -> None:
    use_multicast = text(f"07 abcdef {CLIENT} {SERVER} 000d 0002 0005")
    assert ask(f"{kind} abcdef {CLIENT} {SERVER} {NAMED}", HERS, unicast=True) == (use_multicast, None)
    assert ask(f"06 abcdef {CLIENT} {NAMED}", HERS, unicast=True) == (None, None)  # section 16


@pytest.mark.parametrize(
    "message",
    [
        "",
        "01abcd",
        f"01 abcdef {IA}",  # no client
        f"01 abcdef 0001 0000 {IA}",
        f"01 abcdef {CLIENT} {SERVER} {IA}",  # RFC 8415, section 16.2
        f"03 abcdef {CLIENT} {IA}",  # no server
        f"03 abcdef {CLIENT} 0002 000a 00030001 020000000bad {IA}",  # another server
        f"08 abcdef {CLIENT} 0002 000a 00030001 020000000bad {NAMED}",
        f"08 abcdef {SERVER} {NAMED}",
        f"06 abcdef {CLIENT} {SERVER} {IA}",
        f"04 abcdef {CLIENT} {IA}",
        f"02 abcdef {CLIENT} {SERVER} {IA}",
        f"0b abcdef {CLIENT} {IA}",
        "0b abcdef 0002 000a 00030001 020000000bad",
        f"0c abcdef {CLIENT} {IA}",  # a relay's
        f"63 abcdef {CLIENT}",
        f"01 abcdef {CLIENT} 0019 00ff 00000001",
        f"01 abcdef {CLIENT} 0019 0010 00000001 00000000 00000000 001a 0019",
        f"01 abcdef {CLIENT} " + " ".join(f"0019 000c {number:08x} 00000000 00000000" for number in range(80)),
    ],
)
def test_invalid_messages_get_no_answer(message: str) -> None:
    assert ask(message) == (None, None)
    assert ask(message, HERS) == (None, None)


def test_one_prefix_and_no_address() -> None:
    assert ask(f"03 abcdef {CLIENT} {SERVER} {IA} {OTHER}") == (
        text(f"07 abcdef {CLIENT} {SERVER} {GIVEN} {nothing(2, 6)}"),
        HERS,
    )
    no_address = text("0003 0027 00000005 00000000 00000000 000d 0017 0002") + b"use autoconfiguration".hex()
    assert ask(f"01 abcdef {CLIENT} 0003 000c 00000005 00000000 00000000") == (
        text(f"02 abcdef {CLIENT} {SERVER}") + no_address,
        None,
    )
    reply, bound = ask(f"03 abcdef {CLIENT} {SERVER} {IA}", lease=dhcpv6_pd.Lease(None))
    assert reply == text(f"07 abcdef {CLIENT} {SERVER} {nothing(1, 6)}")
    assert bound is None


# A model of bindings: what section 18.3 says for a server with one prefix, no addresses, and no bindings made by Renew.

PREFIXES = [LEASE.prefix, IPv6Network("2001:db8:9000:100::/56"), IPv6Network("2001:db8:8000:100::/57")]
ADDRESSES = [IPv6Network("2001:db8:1::7/128"), IPv6Network("2001:db8:2::7/128")]
NA, TA, PD = 3, 4, 25
Key = tuple[bytes, int]


@dataclass
class Ia:
    kind: int
    iaid: int
    leases: list[IPv6Network] = field(default_factory=list)

    def write(self) -> bytes:
        inner = b""
        for each in self.leases:
            address = each.network_address.packed
            body = struct.pack("!IIB", 9, 9, each.prefixlen) + address if self.kind == PD else address + bytes(8)
            inner += struct.pack("!HH", 26 if self.kind == PD else 5, len(body)) + body
        body = struct.pack("!I", self.iaid) + (b"" if self.kind == TA else bytes(8)) + inner
        return struct.pack("!HH", self.kind, len(body)) + body


@dataclass
class Said:
    """A reply: its own status, and of each IA its leases with whether they live, and its status."""

    kind: int
    status: int | None = None
    ias: list[tuple[int, int, list[tuple[IPv6Network, bool]], int | None]] = field(default_factory=list)


def options(data: bytes) -> list[tuple[int, bytes]]:
    found = []
    while data:
        code, size = struct.unpack("!HH", data[:4])
        assert len(data) >= 4 + size
        found.append((code, data[4 : 4 + size]))
        data = data[4 + size :]
    return found


def read(reply: bytes, transaction: bytes, client: bytes | None) -> Said:
    assert reply[1:4] == transaction
    said = Said(reply[0])
    seen = {}
    for code, data in options(reply[4:]):
        if code == 13:
            said.status = struct.unpack("!H", data[:2])[0]
        elif code in (NA, TA, PD):
            status, leases = None, []
            for inner, value in options(data[4 if code == TA else 12 :]):
                if inner == 13:
                    status = struct.unpack("!H", value[:2])[0]
                elif inner == 26:
                    preferred, valid, length = struct.unpack("!IIB", value[:9])
                    assert preferred <= valid
                    leases.append((IPv6Network((value[9:], length)), valid > 0))
                elif inner == 5:
                    leases.append((IPv6Network(value[:16]), value[20:24] != bytes(4)))
            said.ias.append((code, struct.unpack("!I", data[:4])[0], leases, status))
        else:
            seen[code] = data
    assert seen[2] == DUID
    assert seen.get(1) == client
    return said


class Model:
    """Bindings by client and IAID, as section 18.3 changes them; at most one, since there is one prefix."""

    def __init__(self) -> None:
        self.bindings: dict[Key, IPv6Network] = {}

    def expect(self, kind: int, client: bytes, ias: list[Ia], rapid: bool) -> Said | None:
        prefix = LEASE.prefix
        assert prefix is not None
        said = Said(2 if kind == 1 and not rapid else 7)
        free = not self.bindings
        for ia in ias:
            key = client, ia.iaid
            has = ia.kind == PD and key in self.bindings
            if kind in (1, 3):
                takes = ia.kind == PD and (has or free)
                if takes:
                    free = False
                    if said.kind == 7:
                        self.bindings[key] = prefix
                said.ias.append(
                    (ia.kind, ia.iaid, [(prefix, True)], None)
                    if takes
                    else (ia.kind, ia.iaid, [], 6 if ia.kind == PD else 2)
                )
            elif kind in (5, 6):
                wrong = [each for each in ia.leases if each != prefix and each != ADDRESSES[0]]
                if has:
                    said.ias.append((PD, ia.iaid, [(prefix, True), *((each, False) for each in wrong)], None))
                else:
                    said.ias.append((ia.kind, ia.iaid, [(each, False) for each in wrong], 3))
            else:
                said.status = 0
                if not has:
                    said.ias.append((ia.kind, ia.iaid, [], 3))
                elif kind == 8 and prefix in ia.leases:
                    del self.bindings[key]
        if kind in (8, 9):
            said.status = 0
        if kind == 4:
            addresses = [each for ia in ias if ia.kind != PD for each in ia.leases]
            if not addresses:
                return None
            return Said(7, 0 if set(addresses) == {ADDRESSES[0]} else 4)
        return None if kind in (5, 6) and not ias else said


def some_ias(draw: random.Random) -> list[Ia]:
    found: dict[tuple[int, int], Ia] = {}
    for _ in range(draw.choice((0, 1, 1, 1, 2, 3))):
        kind, iaid = draw.choice((PD, PD, PD, NA, TA)), draw.choice((0, 1, 2**32 - 1))
        pool = PREFIXES if kind == PD else ADDRESSES
        leases = [each for each in draw.sample(pool, draw.randint(0, len(pool))) if each is not None]
        found.setdefault((kind, iaid), Ia(kind, iaid, leases))
    return list(found.values())


@pytest.mark.parametrize("seed", range(60))
def test_sequences_of_messages_change_bindings_as_the_model_does(seed: int) -> None:
    draw, model = random.Random(seed), Model()
    bound: dhcpv6_pd.Bound = False
    clients = [bytes.fromhex("00030001 020000000102"), bytes.fromhex("00030001 020000000103")]
    for _ in range(200):
        kind, client, ias = draw.choice((1, 3, 4, 5, 6, 8, 8, 9)), draw.choice(clients), some_ias(draw)
        rapid = kind == 1 and draw.random() < 0.5
        server = {True: DUID, False: DUID[:-1] + b"\x99"}[draw.random() < 0.9] if kind in (3, 5, 8, 9) else None
        if draw.random() < 0.03:
            server = None if server else DUID
        transaction = draw.randbytes(3)
        message = bytes((kind,)) + transaction + struct.pack("!HH", 1, len(client)) + client
        if server is not None:
            message += struct.pack("!HH", 2, len(server)) + server
        message += (struct.pack("!HH", 14, 0) if rapid else b"") + b"".join(each.write() for each in ias)
        outcome = dhcpv6_pd.respond(message, DUID, LEASE, bound)
        if server != (DUID if kind in (3, 5, 8, 9) else None):
            assert outcome == dhcpv6_pd.Outcome(None)  # section 16
            continue
        expected = model.expect(kind, client, ias, rapid)
        said = None if outcome.reply is None else read(outcome.reply, transaction, client)
        assert said == expected, (kind, ias, bound)
        bound = bound if outcome.bound is None else outcome.bound
        held = {(bound.client, int.from_bytes(bound.iaid, "big"))} if isinstance(bound, dhcpv6_pd.Binding) else set()
        assert held == set(model.bindings)


# A whole gateway.


class World:
    def __init__(self, path: Path | None = None) -> None:
        self.clock = VirtualClock()
        self.plane = MemoryPlane(self.clock)
        self.path = path
        self.start(1)
        self.line = Line(1, 100, 1)
        self.host = Subscriber(
            Account("alice", "secret"), bytes.fromhex("020000000101"), self.clock,
            lambda frame: self.plane.from_line(self.line, frame), seed=1,
        )  # fmt: skip
        self.plane.hosts[self.line, self.host.mac] = self._heard
        self.replies: list[bytes] = []
        self.host.dial()
        self.clock.run(2)
        assert self.host.state == "up"

    def start(self, seed: int) -> None:
        values = configuration()
        self.store = None if self.path is None else SqliteStore(self.path)
        self.gateway = Gateway(
            values, self.plane, self.clock, UserList(values.users), random=seeded(seed), store=self.store,
            wall=self.clock.now,
        )  # fmt: skip
        self.gateway.reconcile()
        self.gateway.start()

    def _heard(self, frame: bytes) -> None:
        if frame[12:14] == b"\x88\x64" and frame[20:22] == b"\0\x57" and frame[28] == 17:
            self.replies.append(frame[22 + 48 :])
        self.host.receive(frame)

    def send(self, kind: int, *ias: Ia, server: bool = True) -> Said:
        client = b"\0\3\0\1" + self.host.mac
        message = bytes((kind,)) + b"abc" + struct.pack("!HH", 1, len(client)) + client
        message += (struct.pack("!HH", 2, 10) + b"\0\3\0\1" + MAC) if server else b""
        message += b"".join(each.write() for each in ias)
        packet = ipv6.udp(IPv6Address(self.host.link_local), dhcpv6_pd.ALL_SERVERS, 546, 547, message)
        head = MAC + self.host.mac + b"\x88\x64\x11\0" + struct.pack("!HHH", self.host.session, len(packet) + 2, 0x57)
        self.replies.clear()
        self.plane.from_line(self.line, head + packet)
        self.clock.run(0.1)
        return read(self.replies[0], b"abc", client)

    @property
    def delegated(self) -> IPv6Network | None:
        return self.plane.table[self.host.session].delegated


def test_a_delegation_is_released_by_its_own_association_alone(tmp_path: Path) -> None:
    world = World(tmp_path / "state.db")
    prefix = world.delegated
    assert prefix is not None
    for message in (8, 9):
        for others in (
            (Ia(NA, 1),),
            (Ia(PD, 2, [prefix]),),
            (Ia(PD, 1),),
            (Ia(PD, 1, [IPv6Network("3fff::/56")]),),
            (),
        ):
            world.send(message, *others)
            assert world.delegated == prefix
    old = IPv6Network("2001:db8:7777::/56")
    renewed = world.send(5, Ia(PD, 1, [old]))
    assert renewed.ias == [(PD, 1, [(prefix, True), (old, False)], None)]
    assert world.send(3, Ia(PD, 2)).ias == [(PD, 2, [], 6)]
    # Another process knows whose it is, too.
    world.gateway.stop()
    assert world.store is not None
    world.store.close()
    world.start(2)
    world.send(8, Ia(PD, 2, [prefix]))
    assert world.delegated == prefix
    assert world.send(8, Ia(PD, 1, [prefix])) == Said(7, 0)
    assert world.delegated is None
    assert world.send(8, Ia(PD, 1, [prefix])) == Said(7, 0, [(PD, 1, [], 3)])
    # Afterwards any other may have it.
    assert world.send(3, Ia(PD, 2)).ias == [(PD, 2, [(prefix, True)], None)]
    assert world.delegated == prefix


def test_a_binding_that_nobody_renews_ends_after_its_lifetime() -> None:
    world = World()
    prefix = world.delegated
    assert prefix is not None
    world.host._stop("t1")
    world.clock.run(configuration().ipv6.lease_s * 2 - 10)  # type: ignore[union-attr]
    assert world.send(3, Ia(PD, 2)).ias == [(PD, 2, [], 6)]
    world.clock.run(20)
    assert world.send(5, Ia(PD, 1)).ias == [(PD, 1, [], 3)]
    assert world.send(3, Ia(PD, 2)).ias == [(PD, 2, [(prefix, True)], None)]
