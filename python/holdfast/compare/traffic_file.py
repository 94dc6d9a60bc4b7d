"""The traffic of a comparison: a YAML file of streams, connections and pings, or what is offered when there is no file.

.. code-block:: yaml

    pairs: [[h1, h4], [h2, h5]]          # what names no source and destination is there once for each of these
    udp:
      - {packets_per_s: 500, payload_bytes: 100}
      - {source: h1, receivers: [h3, h4, h5]}           # one flow; each of the receivers should get all of it
    tcp:
      - {}                               # a connection that always has something to send
      - {transfer_bytes: 50000, after_failure_s: -0.2, count: 8, every_ms: 100}
      - {source: h1, destination: h4, options: {congestion: bbr}}
      - {source: h2, destination: h5, rate_bps: 2e6}    # an application that writes 2 Mb/s
    ping:
      - {source: h1, destination: h6, interval_ms: 10}

Times are ``start_s`` from the beginning, or ``after_failure_s`` from the failure, before which it is negative. Traffic that has no
end of its own goes on until the end. A flow with several receivers is copied by the network under a mechanism that can (it is sent
to a multicast group), and by its source under all others. UDP packets and echo requests are a million per second at most in all,
100 million in a run, and connections 20,000; a packet counts once for each receiver. Hosts are checked here; networks are not
known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address
from itertools import islice, pairwise
from typing import Literal, Self

from pydantic import Field, field_serializer, model_validator

from holdfast import _core
from holdfast.errors import HoldfastError, ScenarioError
from holdfast.link import reversed_link
from holdfast.parameters import LONGEST_S, Checked, Keywords, Seconds
from holdfast.paths import disjoint_path, next_on_path, path_by_cost, path_delay_ms
from holdfast.topology import Link, Topology
from holdfast.traffic import ByteCount, TcpOptions, TcpTransfer
from holdfast.wording import counted

PAIRS = 16
"""Host pairs that have traffic when there is no file, if there are so many; on larger networks each host is in one pair..."""

PAIRS_MAX = 50
"""...up to this many."""

TCP_PAIRS = (16, 8)
"""So many of these pairs have TCP connections, too; fewer in a larger network, where each run takes longer."""

LIVE_PAIRS, LIVE_TCP_PAIRS, LIVE_PROBES_PER_S = 6, 3, 2000
"""Live there is less of everything: the hosts share this machine's processors with the switches."""

PROBE_PAYLOAD_BYTES = 100
PROBE_WIRE_BITS = (PROBE_PAYLOAD_BYTES + 28 + 14 + 24) * 8
PROBES_PER_S = (20, 500)
"""At most, and at least if there are two pairs: with slower links there are fewer pairs..."""

ALL_PROBES_PER_S = 8000
"""...and no more than so many in the network."""

BULK_BPS = 5_000_000
"""The most that a connection of the default traffic takes: by its window, or where round trips are short by its application."""

MSS = 1448
BURST_SEGMENTS = 4
"""The segments that an application writes at once: an even number, which is acknowledged without delay."""

TRANSFER_BYTES, TRANSFERS, TRANSFER_EVERY_MS = 50_000, 4, 100.0
"""Transfers of each pair with TCP, from ``TRANSFER_EVERY_MS`` before the failure on."""

PAIR_BPS = BULK_BPS + TRANSFER_BYTES * 8 * 1000 / TRANSFER_EVERY_MS
"""The most that a pair takes with its connection and its transfers."""

PROBES_SHARE, TCP_SHARE = 1 / 3, 1 / 2
"""Probes take up no more than that of the slowest link if all pairs met there. TCP takes no more than that of any link, if each
pair were on its cheapest path and on the second, disjoint one at the same time, as it is with 1+1 protection."""

SHORTEST_MS = 0.001
"""The shortest interval between echo requests of a ping, or between the beginnings of connections."""

MOST_PROBES_PER_S = 1_000_000
"""The most UDP packets and echo requests per second of a file in all, and of one stream alone."""

MOST_PROBES = 100_000_000
"""The most UDP packets and echo requests over a whole run, which keeps 32 bytes of each."""

MOST_CONNECTIONS = 20_000
"""The most TCP connections of a file in all."""

PAIR_LEAST_BPS = 500_000
"""A pair that could not have so much has no TCP: transfers would be of less than two packets."""


LONGEST_PATH = 31
"""Links between switches on the cheapest path of a pair without a file. LSPs have no more, and all mechanisms get one traffic."""

FIRST_GROUP = IPv4Address("239.192.0.1")
"""The multicast group of the first flow with several receivers (RFC 2365, organization-local); the others follow."""

Pair = tuple[str, str]
"""Two hosts, the sender first."""


@dataclass(frozen=True)
class Ends:
    """The sender of a flow, and its intended receivers. A pair of hosts is the case of one receiver.

    ``group``: with several receivers, the multicast group that it is sent to where the network copies packets.
    """

    source: str
    receivers: tuple[str, ...]
    group: str | None = None

    @property
    def hosts(self) -> tuple[str, ...]:
        """The source, followed by the receivers."""
        return (self.source, *self.receivers)

    @property
    def pairs(self) -> list[Pair]:
        """The pairs of the source with each receiver."""
        return [(self.source, receiver) for receiver in self.receivers]


class Entry(Checked):
    """The fields of all kinds of traffic. Without ``source`` and ``destination`` it is for every pair of the file."""

    source: str | None = None
    destination: str | None = None
    start_s: Seconds | None = None
    after_failure_s: float | None = Field(default=None, ge=-LONGEST_S, le=LONGEST_S)

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if (self.source is None) != (not self.to):
            raise ValueError("give source and destination, or neither, and the file's pairs count")
        if self.source is not None and self.source in self.to:
            raise ValueError(f"source and destination are both {self.source!r}")
        if self.start_s is not None and self.after_failure_s is not None:
            raise ValueError("give start_s or after_failure_s, not both")
        return self

    @property
    def to(self) -> tuple[str, ...]:
        """The receivers that the entry itself names."""
        return () if self.destination is None else (self.destination,)

    def begins_s(self, failure_s: float) -> float:
        """Return when the entry begins, in seconds from the beginning of the run; the failure is at ``failure_s``."""
        if self.after_failure_s is not None:
            return failure_s + self.after_failure_s
        return self.start_s or 0.0


class UdpEntry(Entry):
    """A stream whose packets are probes: each is counted, and its way measured.

    ``receivers`` instead of ``destination``: one flow, which each of these hosts should get.
    """

    receivers: tuple[str, ...] | None = Field(default=None, min_length=1)
    packets_per_s: float = Field(default=500.0, ge=1e-6, le=MOST_PROBES_PER_S)
    payload_bytes: int = Field(default=PROBE_PAYLOAD_BYTES, ge=28, le=9000)
    spacing: Literal["constant", "poisson"] = "constant"

    @model_validator(mode="after")
    def _check_receivers(self) -> Self:
        if self.receivers is not None and self.destination is not None:
            raise ValueError("give destination or receivers, not both")
        if len(set(self.to)) < len(self.to):
            raise ValueError("a receiver is given twice")
        return self

    @property
    def to(self) -> tuple[str, ...]:
        """The receivers that the entry itself names."""
        return super().to if self.receivers is None else self.receivers


class PingEntry(Entry):
    """Echo requests; the replies are the probes, and latency is the round trip."""

    interval_ms: float = Field(default=10.0, ge=SHORTEST_MS, le=LONGEST_S * 1000)
    payload_bytes: int = Field(default=56, ge=16, le=9000)


class TcpEntry(Entry):
    """Connections; with ``transfer_bytes`` they end, and the time that they take is measured.

    ``count`` of them, one every ``every_ms``. ``rate_bps``: of one without an end, what its application writes at most; it has no
    more to send, and does not catch up. ``options`` are fields of :class:`holdfast.traffic.TcpOptions`; options that are not given
    are as Linux has them with this ``congestion`` (CUBIC if none is given), or as the ``preset`` has them if one is given.
    """

    transfer_bytes: ByteCount | None = None
    rate_bps: float | None = Field(default=None, ge=1000, le=1e12)
    count: int = Field(default=1, ge=1, le=10_000)
    every_ms: float = Field(default=100.0, ge=SHORTEST_MS, le=LONGEST_S * 1000)
    options: TcpOptions | None = None

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        if self.rate_bps is not None and self.transfer_bytes is not None:
            raise ValueError("give transfer_bytes or rate_bps, not both")
        try:
            _try(self.tcp_options())
        except HoldfastError as error:
            raise ValueError(f"options: {error}") from None
        return self

    def tcp_options(self) -> TcpOptions:
        """Return the TCP options of both ends: Linux's, changed by those in the file.

        Linux's options that do not go with the file's choices are left out; a preset in the file replaces Linux's.
        """
        given = self.options or TcpOptions()
        if "preset" in given.model_fields_set:
            return given
        # Linux's options for Reno are all of BBR's, too: those that CUBIC alone has are not among them.
        linux = TcpOptions.linux("cubic" if given.congestion in (None, "cubic") else "reno")
        if given.delayed_ack_ms == 0:
            linux = linux.model_copy(update={"quick_ack_segments": None})
        return linux.changed(given)

    @field_serializer("options")
    def _as_given(self, options: TcpOptions | None) -> Keywords | None:
        """Return the options that the file gives, as keywords; None without options.

        A preset in the file counts even if it is the default one.
        """
        return None if options is None else options.model_dump(mode="json", exclude_unset=True, exclude_none=True)

    @property
    def burst_bytes(self) -> int:
        """The bytes that an application of ``rate_bps`` writes at once."""
        return BURST_SEGMENTS * (self.tcp_options().mss or MSS)


def _try(options: TcpOptions) -> None:
    """Give the options to the native core in a network of two hosts, so that it raises the errors that a run would raise."""
    network = _core.Network()
    for name, address, mac in (("a", "10.0.0.1/24", "00:00:00:00:00:01"), ("b", "10.0.0.2/24", "00:00:00:00:00:02")):
        network.add_host(name, cards=[{"address": address, "mac": mac}])
    network.add_link(a="a", a_port=0, b="b", b_port=0, a_to_b={"rate_bps": 1_000_000})
    transfer = TcpTransfer(source="a", destination="b", source_port=1, destination_port=2)
    network.add_tcp(options.preset, options.in_core_units(), **transfer.model_dump(exclude={"options"}))


class TrafficFile(Checked):
    """The whole file."""

    pairs: list[Pair] = []
    udp: list[UdpEntry] = []
    tcp: list[TcpEntry] = []
    ping: list[PingEntry] = []

    def entries(self) -> Iterable[tuple[str, Entry]]:
        """Yield every entry with its place in the file, as in (``udp.0``, entry)."""
        for kind in ("udp", "tcp", "ping"):
            for i, entry in enumerate(getattr(self, kind)):
                yield f"{kind}.{i}", entry

    @cached_property
    def groups(self) -> dict[tuple[str | None, tuple[str, ...]], str]:
        """The multicast group address by source and receivers, of flows with several receivers."""
        several = dict.fromkeys((entry.source, entry.to) for entry in self.udp if len(entry.to) > 1)
        return {ends: str(FIRST_GROUP + i) for i, ends in enumerate(several)}

    def ends(self, entry: Entry) -> list[Ends]:
        """Return the source and the receivers of each flow that ``entry`` stands for; one per pair if it names no source."""
        if entry.source is not None:
            return [Ends(entry.source, entry.to, self.groups.get((entry.source, entry.to)))]
        return [Ends(source, (destination,)) for source, destination in self.pairs]

    def flows(self) -> list[Ends]:
        """Return the different ends of all flows, in the order of the file. Opposite directions of a pair count once."""
        found: dict[object, Ends] = {}
        for _, entry in self.entries():
            for ends in self.ends(entry):
                found.setdefault(frozenset(ends.hosts) if ends.group is None else ends, ends)
        return list(found.values())

    def largest_packet_bytes(self) -> int:
        """Return the length of the largest IPv4 packet in bytes, with its header; 0 without traffic."""
        sizes = [udp.payload_bytes + 28 for udp in self.udp] + [ping.payload_bytes + 28 for ping in self.ping]
        sizes += [(entry.tcp_options().mss or MSS) + 52 for entry in self.tcp]
        return max(sizes, default=0)

    def check(self, topology: Topology, failure_s: float, end_s: float) -> None:
        """Raise :class:`ScenarioError` if a host does not exist, or if there is no traffic or too much of it."""
        if not any(self.ends(entry) for _, entry in self.entries()):
            raise ScenarioError(
                "there is no traffic: give udp, tcp or ping, each with source and destination or with pairs"
            )
        for a, b in self.pairs:
            if a == b:
                raise ScenarioError(f"pairs: {a!r} is paired with itself")
        for where, entry in self.entries():
            for name in (each for ends in self.ends(entry) for each in ends.hosts):
                if name not in topology.hosts:
                    known = list(topology.hosts)
                    more = f" and {len(known) - 20} more" if len(known) > 20 else ""
                    raise ScenarioError(f"{where}: there is no host {name!r} (known: {', '.join(known[:20])}{more})")
            if not 0 <= (begins_s := entry.begins_s(failure_s)) < end_s:
                raise ScenarioError(f"{where}: it would begin at {begins_s:g} s; the run is from 0 to {end_s:g} s")
        self._check_amount(failure_s, end_s)

    def _check_amount(self, failure_s: float, end_s: float) -> None:
        """Raise :class:`ScenarioError` if all entries together are too much; a single entry has its own limits."""
        probes: list[tuple[float, UdpEntry | PingEntry]] = [(udp.packets_per_s, udp) for udp in self.udp]
        probes += [(1000 / ping.interval_ms, ping) for ping in self.ping]
        copies = (sum(len(ends.receivers) for ends in self.ends(entry)) for _, entry in probes)
        rates = [(rate_per_s * count, entry) for (rate_per_s, entry), count in zip(probes, copies, strict=True)]
        if (per_s := sum(rate_per_s for rate_per_s, _ in rates)) > MOST_PROBES_PER_S * (1 + 1e-9):
            raise ScenarioError(f"udp and ping: {per_s:.6g} packets per second in all; at most {MOST_PROBES_PER_S}")
        count = sum(rate_per_s * (end_s - entry.begins_s(failure_s)) for rate_per_s, entry in rates)
        if count > MOST_PROBES:
            raise ScenarioError(f"udp and ping: {count:.6g} packets in all in {end_s:g} s; at most {MOST_PROBES}")
        if (connections := sum(entry.count * len(self.ends(entry)) for entry in self.tcp)) > MOST_CONNECTIONS:
            raise ScenarioError(f"tcp: {connections} connections in all; at most {MOST_CONNECTIONS}")


def default(topology: Topology, through: Iterable[frozenset[str]] = (), *, live: bool = False) -> TrafficFile:
    """Return the traffic used without a file: probes between up to 50 pairs of hosts, and TCP between up to 16 of these.

    Pairs lie far apart in the order of the hosts, but by no more than ``LONGEST_PATH`` links. ``through``: links (two ends) or
    switches (one name); pairs whose cheapest path leads through one of them come first, so that a single failure meets traffic.
    ``live``: fewer pairs, as many as a run in real time can carry. The amount follows from the slowest links (``PROBES_SHARE``,
    ``TCP_SHARE``), so that nothing is lost except by the failure. Raise :class:`ScenarioError` if there are no two hosts at
    different switches.
    """
    pairs = _default_pairs(topology, tuple(through))[: LIVE_PAIRS if live else None]
    if not pairs:
        raise ScenarioError(
            f"{topology.name}: there are no two hosts at different switches, so there is no traffic to disturb"
        )
    together = min(LIVE_PROBES_PER_S if live else ALL_PROBES_PER_S, probes_per_s(topology))
    pairs = pairs[: max(1, int(together / PROBES_PER_S[0]))]
    rate = min(PROBES_PER_S[1], together / len(pairs))
    with_tcp, pair_bps = _tcp_pairs(topology, pairs[: LIVE_TCP_PAIRS if live else TCP_PAIRS[len(pairs) > PAIRS]])
    bulk_bps = pair_bps * BULK_BPS / PAIR_BPS
    transfer_bytes = int(pair_bps * (1 - BULK_BPS / PAIR_BPS) / 8 * TRANSFER_EVERY_MS / 1000)
    # Transfers that begin together fill the same queue.
    starts_s = [round(TRANSFER_EVERY_MS / 1000 * i / len(with_tcp), 6) for i in range(len(with_tcp))]
    transfers = [
        TcpEntry(
            source=a,
            destination=b,
            transfer_bytes=transfer_bytes,
            after_failure_s=-TRANSFER_EVERY_MS / 1000 + start_s,
            count=TRANSFERS,
            every_ms=TRANSFER_EVERY_MS,
        )
        for (a, b), start_s in zip(with_tcp, starts_s, strict=True)
    ]
    return TrafficFile(
        pairs=pairs,
        udp=[UdpEntry(packets_per_s=int(rate) if rate >= 1 else float(f"{rate:.2g}"))],
        tcp=[_bulk(topology, *pair, bulk_bps, at_s) for pair, at_s in zip(with_tcp, starts_s, strict=True)] + transfers,
    )


def probes_per_s(topology: Topology) -> float:
    """Return how many probes of the default size per second fill the share ``PROBES_SHARE`` of the slowest link."""
    return min(_rate_bps(link) for link in topology.links) * PROBES_SHARE / PROBE_WIRE_BITS


def _rate_bps(link: Link) -> float:
    """Return the rate of a link's slower direction, in bits per second."""
    return min(link.rate_bps, link.rate_bps if link.reverse is None else reversed_link(link).rate_bps)


def _tcp_pairs(topology: Topology, pairs: Sequence[Pair]) -> tuple[list[Pair], float]:
    """Return the pairs that get TCP traffic, and the rate of each in bits per second, for its connection and transfers together."""
    users: dict[int, int] = {}
    chosen: list[Pair] = []
    each_bps = float(PAIR_BPS)
    for pair in pairs:
        links = _links_of(topology, *pair)
        bps = min(TCP_SHARE * _rate_bps(topology.links[i]) / (users.get(i, 0) + 1) for i in links)
        if bps >= PAIR_LEAST_BPS:
            each_bps = min(each_bps, bps)
            chosen.append(pair)
            for i in links:
                users[i] = users.get(i, 0) + 1
    return chosen, each_bps


def _links_of(topology: Topology, source: str, destination: str) -> set[int]:
    """Return the indices of the links that a pair may use: of both hosts, of the cheapest path, and of a disjoint path."""
    ends = [topology.attachment(name) for name in (source, destination)]
    path = path_by_cost(topology, ends[0].switch, ends[1].switch)
    hops = [*pairwise(path), *pairwise(disjoint_path(topology, path) or ())]
    links = {topology.graph.edges[hop]["link"] for hop in hops}
    return links | {topology.find_link(f"{end.host.name}-{end.switch}") for end in ends}


def _bulk(topology: Topology, source: str, destination: str, rate_bps: float, start_s: float) -> TcpEntry:
    """Return a TCP connection of ``rate_bps``.

    It is limited by its window if that is at least some segments, else by its application.
    """
    window = round(rate_bps / 8 * 2 * path_delay_ms(topology, source, destination) / 1000)
    if window >= BURST_SEGMENTS * MSS:
        options = TcpOptions(window_limit_bytes=window)
        return TcpEntry(source=source, destination=destination, start_s=start_s, options=options)
    return TcpEntry(source=source, destination=destination, start_s=start_s, rate_bps=rate_bps)


def describe(traffic: TrafficFile) -> str:
    """Return one line that describes the traffic: its streams, pings, connections and transfers."""
    streams = sum(len(traffic.ends(entry)) for entry in traffic.udp)
    pings = sum(len(traffic.ends(entry)) for entry in traffic.ping)
    bulk = sum(len(traffic.ends(e)) * e.count for e in traffic.tcp if e.transfer_bytes is None)
    transfers = sum(len(traffic.ends(e)) * e.count for e in traffic.tcp if e.transfer_bytes is not None)
    parts = []
    if streams:
        rates = sorted({f"{entry.packets_per_s:g}" for entry in traffic.udp}, key=float)
        parts.append(f"{counted(streams, 'UDP stream')} of {' or '.join(rates)} packets/s")
    if pings:
        parts.append(counted(pings, "ping"))
    if bulk:
        mbps = sorted({e.rate_bps / 1e6 for e in traffic.tcp if e.rate_bps is not None})
        often = [e for e in traffic.tcp if e.transfer_bytes is None and e.rate_bps is None]
        always = sum(len(traffic.ends(e)) * e.count for e in often)
        if always:
            parts.append(f"{counted(always, 'TCP connection')} that always send{'s' if always == 1 else ''}")
        if bulk > always:
            shown = f"{mbps[0]:.3g}" if mbps[0] == mbps[-1] else f"{mbps[0]:.3g} to {mbps[-1]:.3g}"
            parts.append(f"{counted(bulk - always, 'TCP connection')} of {shown} Mb/s at most")
    if transfers:
        parts.append(f"{counted(transfers, 'TCP transfer')} of limited size")
    flows = traffic.flows()
    return ", ".join(parts) + f"; {counted(len(flows), kind_of(flows))}"


def kind_of(flows: Iterable[Ends]) -> str:
    """Return the word for a flow: ``host pair`` if every flow has one receiver, else ``flow``."""
    return "host pair" if all(len(ends.receivers) == 1 for ends in flows) else "flow"


def _default_pairs(topology: Topology, through: Sequence[frozenset[str]]) -> list[Pair]:
    """Return the pairs of hosts for :func:`default`, without looking at more pairs than necessary."""
    switch = {name: topology.attachment(name).switch for name in topology.hosts}
    wanted = min(PAIRS_MAX, max(PAIRS, len(switch) // 2))
    pairs = _far_pairs(list(switch), switch)
    known: dict[str, dict[str, bool]] = {}
    lengths: dict[str, dict[str, int]] = {}
    near = ((a, b) for a, b in pairs if _length(topology, switch[a], switch[b], lengths) <= LONGEST_PATH)
    if not through:
        return list(islice(near, wanted))
    met: list[Pair] = []
    others: list[Pair] = []
    for pair in near:
        source, destination = (switch[host] for host in pair)
        # A switch that fails takes its own hosts with it: flows that begin or end there say nothing.
        if frozenset((source,)) in through or frozenset((destination,)) in through:
            continue
        if _leads_through(topology, source, destination, through, known):
            if len(met) < wanted // 2:
                met.append(pair)
        elif len(others) < wanted:
            others.append(pair)
        if len(met) == wanted // 2 and len(others) >= wanted - len(met):
            break
    return [*met, *others[: wanted - len(met)]]


def _far_pairs(hosts: Sequence[str], switch: Mapping[str, str]) -> Iterator[Pair]:
    """Yield every pair of hosts at different switches once; those farthest apart in the order of ``hosts`` come first."""
    count = len(hosts)
    for distance in range(count // 2, 0, -1):
        for i in range(count // 2 if 2 * distance == count else count):
            source, destination = hosts[i], hosts[(i + distance) % count]
            if switch[source] != switch[destination]:
                yield source, destination


def _length(topology: Topology, source: str, destination: str, known: dict[str, dict[str, int]]) -> int:
    """Return the number of links on the routers' path between two switches.

    ``known``: by destination, the lengths found in former calls.
    """
    lengths = known.setdefault(destination, {destination: 0})
    passed: list[str] = []
    node = source
    while node not in lengths:
        passed.append(node)
        node = next_on_path(topology, node, destination)
    lengths.update({other: lengths[node] + i for i, other in enumerate(reversed(passed), 1)})
    return lengths[source]


def _leads_through(
    topology: Topology,
    source: str,
    destination: str,
    through: Sequence[frozenset[str]],
    known: dict[str, dict[str, bool]] | None = None,
) -> bool:
    """Return True if the routers' path between two switches crosses one of ``through``: links (two ends) or switches (one).

    ``known``: by destination, the answers for switches of former calls, so that each path is walked once.
    """
    answers = {} if known is None else known.setdefault(destination, {})
    answers.setdefault(destination, frozenset((destination,)) in through)
    passed: list[str] = []
    node, found = source, False
    while not found and node not in answers:
        passed.append(node)
        there = next_on_path(topology, node, destination)
        found = frozenset((node,)) in through or frozenset((node, there)) in through
        node = there
    answers.update(dict.fromkeys(passed, answer := found or answers[node]))
    return answer


__all__ = [
    "Ends",
    "Entry",
    "Pair",
    "PingEntry",
    "TcpEntry",
    "TrafficFile",
    "UdpEntry",
    "counted",
    "default",
    "describe",
    "kind_of",
    "probes_per_s",
]
