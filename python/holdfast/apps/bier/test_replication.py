"""A law: for any network and any BitString, each way to replicate delivers what RFC 8279, 6.5, delivers, each packet once.

While ports are down, each repairs alike. The networks are switches one by one: a packet that leaves a port enters the one behind
it, until nothing is left. The definition is written from the RFC's text, knows no P4 and no tables of a switch, and is asked hop by
hop as well as from end to end.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast._core import Program
from holdfast.apps.bier.conftest import GROUP, HOST, Bfr, Compile, bier_frame, hop, host_frame, payload
from holdfast.apps.bier.entries import Configuration, cluster_configuration
from holdfast.apps.bier.header import BierHeader
from holdfast.apps.bier.planning import Backup, Bift, NeighbourEntry, SwitchPlan
from holdfast.apps.bier.program import FORWARD, ROUTES, Replication

BSL = 64
FIRST_LINK_PORT = 10
PREVIOUS_HOP = FIRST_LINK_PORT + 99
BUCKETS = 2

WAYS: tuple[dict[str, Replication], ...] = (
    {"replication": "one-pass"},
    {"replication": "recirculate"},
    {"replication": "clusters"},
    {"replication": "clusters", "cluster_misses": "recirculate"},
)


@dataclass
class Network:
    """Switches 0 to n-1, all BFERs; bits are in two sets of up to BSL bits each."""

    links: list[tuple[int, int]]
    """Switches at both ends; the first ones are a tree."""
    bit_of: dict[int, tuple[Bift, int]]
    """The BFR-id of each switch, as table and bit."""
    ports: dict[tuple[int, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, (a, b) in enumerate(self.links):
            self.ports[a, b] = self.ports[b, a] = FIRST_LINK_PORT + number

    def neighbours(self, switch: int) -> list[int]:
        return sorted(other for at, other in self.ports if at == switch)

    def next_hops(self, switch: int, target: int) -> list[int]:
        """Return the neighbours of ``switch`` that are on a shortest path to ``target``."""
        distance = {target: 0}
        row = [target]
        for at in row:
            for other in self.neighbours(at):
                if other not in distance:
                    distance[other] = distance[at] + 1
                    row.append(other)
        return [n for n in self.neighbours(switch) if distance[n] == distance[switch] - 1]

    def plan(self, switch: int) -> SwitchPlan:
        tables: dict[Bift, tuple[tuple[NeighbourEntry, ...], ...]] = {}
        for bift in {bift for bift, _ in self.bit_of.values()}:
            tables[bift] = tuple(self._bucket(switch, bift, bucket) for bucket in range(BUCKETS))
        own_bift, own = self.bit_of[switch]
        return SwitchPlan(switch + 1, IPv4Address(0x0AFF0000 + switch), tables, {own_bift: own})

    def _bucket(self, switch: int, bift: Bift, bucket: int) -> tuple[NeighbourEntry, ...]:
        masks: Counter[int] = Counter()
        for target, (table, bit) in self.bit_of.items():
            if table == bift and target != switch:
                hops = self.next_hops(switch, target)
                masks[hops[bucket % len(hops)]] |= bit
        return tuple(
            NeighbourEntry(f"s{other}", hop(self.ports[switch, other]), mask, ())
            for other, mask in sorted(masks.items())
        )


@st.composite
def networks(draw: st.DrawFn) -> Network:
    size = draw(st.integers(2, 7))
    links = [(draw(st.integers(0, node - 1)), node) for node in range(1, size)]
    pairs = [(a, b) for a in range(size) for b in range(a + 1, size) if (a, b) not in links]
    if pairs:
        links += draw(st.lists(st.sampled_from(pairs), unique=True, max_size=5))
    positions = draw(st.lists(st.integers(0, 2 * BSL - 1), min_size=size, max_size=size, unique=True))
    bit_of = {node: (Bift(0, at // BSL), 1 << at % BSL) for node, at in enumerate(positions)}
    return Network(links, bit_of)


# ---- The definition ----


@dataclass
class Outcome:
    """A BFR's treatment of a packet: whether it delivers it, and the BitString to each neighbour, in order."""

    delivers: bool
    copies: list[tuple[int, int]]


def forward(network: Network, switch: int, bift: Bift, entropy: int, bit_string: int) -> Outcome:
    """Forward a BitString as RFC 8279, 6.5, says, and return its deliveries and copies. Bits without an entry are dropped."""
    bucket = network.plan(switch).bifts[bift][entropy % BUCKETS]
    own_bift, own = network.bit_of[switch]
    outcome = Outcome(False, [])
    for k in range(1, BSL + 1):
        bit = 1 << (k - 1)
        if not bit_string & bit:
            continue
        if (bift, bit) == (own_bift, own):
            outcome.delivers = True
            bit_string &= ~bit
            continue
        entry = next((entry for entry in bucket if entry.f_bm & bit), None)
        if entry is None:
            bit_string &= ~bit
            continue
        outcome.copies.append((int(entry.neighbour[1:]), bit_string & entry.f_bm))
        bit_string &= ~entry.f_bm
    return outcome


# ---- The programs ----


class Switches:
    """A network of switches with ``bier.p4``."""

    def __init__(self, network: Network, program: Program, *, clusters: bool) -> None:
        self.network = network
        self.at_port = {(a, port): b for (a, b), port in network.ports.items()}
        self.switches = {}
        for node in network.bit_of:
            plan = network.plan(node)
            bfr = Bfr(program, plan, bsl=BSL, domain=[PREVIOUS_HOP]).receive_channels({(None, GROUP): [HOST]})
            if clusters:
                pairs = {
                    (bift, bucket): [frozenset({i, i + 1}) for i in range(len(entries) - 1)]
                    for bift, buckets in plan.bifts.items()
                    for bucket, entries in enumerate(buckets)
                }
                bfr.write(cluster_configuration(plan, pairs))
            self.switches[node] = bfr

    def flood(self, node: int, port: int, frame: bytes) -> Counter[tuple[int, bytes]]:
        """Send a frame into a switch, and count how often each switch delivers each packet. Fail if packets circle."""
        delivered: Counter[tuple[int, bytes]] = Counter()
        waiting = [(node, port, frame)]
        for count, (at, arrival, data) in enumerate(waiting):
            assert count < 1000, "a loop"
            for out, sent in self.switches[at].send(data, arrival):
                if out == HOST:
                    delivered[at, sent] += 1
                else:
                    waiting.append((self.at_port[at, out], out, sent))
        return delivered


@pytest.fixture(params=WAYS, ids=lambda way: "-".join(way.values()))
def way(request: pytest.FixtureRequest) -> dict[str, Replication]:
    return request.param  # type: ignore[no-any-return]


relaxed = settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])


@relaxed
@given(network=networks(), data=st.data())
def test_each_way_delivers_what_the_definition_does(
    compiled: Compile, way: dict[str, Replication], network: Network, data: st.DataObject
) -> None:
    switches = Switches(network, compiled(bsl=BSL, **way), clusters=way["replication"] == "clusters")
    nodes = st.integers(0, len(network.bit_of) - 1)
    for _ in range(4):
        bift = data.draw(st.sampled_from(sorted({bift for bift, _ in network.bit_of.values()})))
        bits = _bit_string(network, data.draw(st.sets(nodes)), bift)
        bits |= data.draw(st.sampled_from([0, 1 << data.draw(st.integers(0, BSL - 1))]))
        _one_hop(switches, data.draw(nodes), bift, data.draw(st.integers(0, 7)), bits)
    _end_to_end(switches, data.draw(nodes), data.draw(st.sets(nodes)))


def _bit_string(network: Network, members: set[int], bift: Bift) -> int:
    return sum(bit for node, (table, bit) in network.bit_of.items() if node in members and table == bift)


def _one_hop(switches: Switches, node: int, bift: Bift, entropy: int, bits: int) -> None:
    header = BierHeader(bift_id=bift.bift_id(BSL), bit_string=bits, bsl=BSL, entropy=entropy, ttl=9)
    sent = switches.switches[node].send(bier_frame(header, payload()), PREVIOUS_HOP)
    expected = forward(switches.network, node, bift, entropy, bits)
    copies = [(out, BierHeader.decode(frame[14:])[0].bit_string) for out, frame in sent if out != HOST]
    assert sorted(copies) == sorted((switches.network.ports[node, to], mask) for to, mask in expected.copies)
    assert [out for out, _ in sent].count(HOST) == expected.delivers


def _end_to_end(switches: Switches, source: int, members: set[int]) -> None:
    """Check that a packet reaches each member once, with its TTL less 1 at the BFIR itself and less 2 elsewhere."""
    network = switches.network
    bifts = {bift for bift, _ in network.bit_of.values()}
    bfir = switches.switches[source]
    bfir.send_channels({(None, GROUP): {bift: _bit_string(network, members, bift) for bift in bifts}})
    delivered = switches.flood(source, HOST + 1, host_frame(payload()))
    assert {node for node, _ in delivered} == members
    assert set(delivered.values()) <= {1}
    for node, frame in delivered:
        assert frame[14:] == bytes(payload(ttl=31 if node == source else 30))


# ---- While ports are down ----

TUNNEL_PORT = 99
"""The route of all tunnels."""


@st.composite
def protected_plans(draw: st.DrawFn) -> SwitchPlan:
    """Draw the plan of a switch with neighbours at ports 10 and up, whose bits have backups at these ports, in tunnels, or none."""
    ports = range(FIRST_LINK_PORT, FIRST_LINK_PORT + draw(st.integers(2, 4)))
    owner = draw(st.lists(st.sampled_from([0, *ports]), min_size=BSL, max_size=BSL))
    way = draw(st.lists(st.sampled_from([0, TUNNEL_PORT, *ports]), min_size=BSL, max_size=BSL))
    entries = []
    for port in ports:
        mask = sum(1 << at for at in range(BSL) if owner[at] == port)
        backups = []
        for other in {TUNNEL_PORT, *ports} - {port}:
            bits = sum(1 << at for at in range(BSL) if owner[at] == port and way[at] == other)
            tunnel = (IPv4Address("10.255.0.0"), IPv4Address("10.255.0.77")) if other == TUNNEL_PORT else None
            if bits:
                backups.append(Backup(hop(other), bits, tunnel))
        entries.append(NeighbourEntry(f"n{port}", hop(port), mask, tuple(backups)))
    return SwitchPlan(1, IPv4Address("10.255.0.0"), {Bift(0, 0): (tuple(entries),)}, {})


def repaired(plan: SwitchPlan, down: set[int], bits: int) -> Counter[tuple[int, int, bool]]:
    """Return the copies by (port, BitString, in a tunnel), with each neighbour whose port is down replaced by its backups."""
    copies: Counter[tuple[int, int, bool]] = Counter()
    for entry in plan.bifts[Bift(0, 0)][0]:
        if entry.next_hop.port not in down:
            copies[entry.next_hop.port, bits & entry.f_bm, False] += 1
            continue
        for backup in entry.backups:
            if backup.next_hop.port not in down:
                copies[backup.next_hop.port, bits & backup.f_bm, backup.tunnel is not None] += 1
    return Counter({copy: count for copy, count in copies.items() if copy[1]})


@relaxed
@given(plan=protected_plans(), data=st.data())
def test_each_way_repairs_alike(
    compiled: Compile, way: dict[str, Replication], plan: SwitchPlan, data: st.DataObject
) -> None:
    bfr = Bfr(compiled(bsl=BSL, **way), plan, bsl=BSL)
    route = ROUTES.entry(IPv4Network("10.255.0.77"), FORWARD, hop(TUNNEL_PORT).params())
    bfr.write(Configuration((route,)))
    ports = [entry.next_hop.port for entry in plan.bifts[Bift(0, 0)][0]]
    for _ in range(3):
        down = data.draw(st.sets(st.sampled_from([*ports, TUNNEL_PORT])))
        for port in (*ports, TUNNEL_PORT):
            bfr.switch.set_port_up(port, port not in down)
        bits = data.draw(st.integers(0, (1 << BSL) - 1))
        header = BierHeader(bift_id=Bift(0, 0).bift_id(BSL), bit_string=bits, bsl=BSL, ttl=9)
        found: Counter[tuple[int, int, bool]] = Counter()
        for port, frame in bfr.send(bier_frame(header, payload()), FIRST_LINK_PORT):
            tunnelled = frame[12:14] == b"\x08\x00"
            found[port, BierHeader.decode(frame[14 + 24 * tunnelled :])[0].bit_string, tunnelled] += 1
        assert found == repaired(plan, down, bits)
