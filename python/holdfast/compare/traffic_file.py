"""The traffic of a comparison: a YAML file of streams, connections and pings, or what is offered when there is no file.

.. code-block:: yaml

    pairs: [[h1, h4], [h2, h5]]          # what names no source and destination is there once for each of these
    udp:
      - {packets_per_s: 500, payload_bytes: 100}
    tcp:
      - {}                               # a connection that always has something to send
      - {transfer_bytes: 50000, after_failure_s: -0.2, count: 8, every_ms: 100}
      - {source: h1, destination: h4, options: {congestion: bbr}}
    ping:
      - {source: h1, destination: h6, interval_ms: 10}

Times are ``start_s`` from the beginning, or ``after_failure_s`` from the failure, before which it is negative. What has no end
of its own goes on until the end. Hosts are checked here; networks are not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from holdfast.compare.routes import path_by_cost, path_delay_ms
from holdfast.errors import ParameterError, ScenarioError
from holdfast.topology import Topology
from holdfast.traffic import TcpOptions

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
"""At least and at most; as many as take up no more than a third of the slowest link if all pairs met there..."""

ALL_PROBES_PER_S = 8000
"""...and no more than so many in the network."""

BULK_BPS = 5_000_000
"""What a connection of the default traffic is about, by its window."""

MSS = 1448
TRANSFER_BYTES = 50_000


class Entry(BaseModel):
    """What all kinds of traffic have. Without ``source`` and ``destination`` it is for every pair of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    source: str | None = None
    destination: str | None = None
    start_s: float | None = Field(default=None, ge=0)
    after_failure_s: float | None = None

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if (self.source is None) != (self.destination is None):
            raise ValueError("give source and destination, or neither, and the file's pairs count")
        if self.source is not None and self.source == self.destination:
            raise ValueError(f"source and destination are both {self.source!r}")
        if self.start_s is not None and self.after_failure_s is not None:
            raise ValueError("give start_s or after_failure_s, not both")
        return self

    def begins_s(self, failure_s: float) -> float:
        """From the beginning of the run."""
        if self.after_failure_s is not None:
            return failure_s + self.after_failure_s
        return self.start_s or 0.0


class UdpEntry(Entry):
    """A stream whose packets are probes: each is counted, and its way measured."""

    packets_per_s: float = Field(default=500.0, gt=0, le=1_000_000)
    payload_bytes: int = Field(default=PROBE_PAYLOAD_BYTES, ge=28, le=9000)
    spacing: Literal["constant", "poisson"] = "constant"


class PingEntry(Entry):
    """Echo requests; the replies are the probes, and latency is the round trip."""

    interval_ms: float = Field(default=10.0, gt=0)
    payload_bytes: int = Field(default=56, ge=16, le=9000)


class TcpEntry(Entry):
    """Connections; with ``transfer_bytes`` they end, and the time that they take is measured.

    ``count`` of them, one every ``every_ms``. ``options`` are fields of :class:`holdfast.traffic.TcpOptions`; what is not given is
    as Linux has it with CUBIC.
    """

    transfer_bytes: int | None = Field(default=None, gt=0)
    count: int = Field(default=1, ge=1, le=10_000)
    every_ms: float = Field(default=100.0, gt=0)
    options: dict[str, Any] = {}

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        try:
            self.tcp_options()
        except ParameterError as error:
            raise ValueError(f"options.{error.field}: {error.sentence}") from None
        return self

    def tcp_options(self) -> TcpOptions:
        """For both ends."""
        return TcpOptions(**{**TcpOptions.linux("cubic").model_dump(exclude_none=True), **self.options})


class TrafficFile(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    pairs: list[tuple[str, str]] = []
    udp: list[UdpEntry] = []
    tcp: list[TcpEntry] = []
    ping: list[PingEntry] = []

    def entries(self) -> Iterable[tuple[str, Entry]]:
        """Every entry with its place in the file."""
        for kind in ("udp", "tcp", "ping"):
            for i, entry in enumerate(getattr(self, kind)):
                yield f"{kind}.{i}", entry

    def ends(self, entry: Entry) -> list[tuple[str, str]]:
        """Source and destination of each flow that an entry stands for."""
        if entry.source is not None and entry.destination is not None:
            return [(entry.source, entry.destination)]
        return self.pairs

    def host_pairs(self) -> list[tuple[str, str]]:
        """Hosts that talk to each other, each two once, in the order of the file."""
        found: dict[frozenset[str], tuple[str, str]] = {}
        for _, entry in self.entries():
            for pair in self.ends(entry):
                found.setdefault(frozenset(pair), pair)
        return list(found.values())

    def largest_packet_bytes(self) -> int:
        """Of IPv4, its header included."""
        sizes = [udp.payload_bytes + 28 for udp in self.udp] + [ping.payload_bytes + 28 for ping in self.ping]
        sizes += [(entry.tcp_options().mss or MSS) + 52 for entry in self.tcp]
        return max(sizes, default=0)

    def check(self, topology: Topology, failure_s: float, end_s: float) -> None:
        """Raises :class:`ScenarioError` if a host does not exist, or nothing would be sent."""
        if not any(self.ends(entry) for _, entry in self.entries()):
            raise ScenarioError(
                "there is no traffic: give udp, tcp or ping, each with source and destination or with pairs"
            )
        for a, b in self.pairs:
            if a == b:
                raise ScenarioError(f"pairs: {a!r} is paired with itself")
        for where, entry in self.entries():
            for name in (each for pair in self.ends(entry) for each in pair):
                if name not in topology.hosts:
                    known = list(topology.hosts)
                    more = f" and {len(known) - 20} more" if len(known) > 20 else ""
                    raise ScenarioError(f"{where}: there is no host {name!r} (known: {', '.join(known[:20])}{more})")
            if not 0 <= (begins_s := entry.begins_s(failure_s)) < end_s:
                raise ScenarioError(f"{where}: it would begin at {begins_s:g} s; the run is from 0 to {end_s:g} s")


def default(topology: Topology, through: Iterable[frozenset[str]] = (), *, live: bool = False) -> TrafficFile:
    """What is offered without a file: probes between up to 50 host pairs, and TCP between up to 16 of these.

    Pairs lie far apart in the order of the hosts. ``through``: links (their two ends) or switches (one name); pairs whose cheapest
    path leads through one of them come first, so that a single failure meets traffic.
    """
    pairs = _default_pairs(topology, list(through))[: LIVE_PAIRS if live else None]
    if not pairs:
        raise ScenarioError(
            f"{topology.name}: there are no two hosts at different switches, so there is no traffic to disturb"
        )
    slowest_bps = min(link.rate_bps for link in topology.links)
    together = min(LIVE_PROBES_PER_S if live else ALL_PROBES_PER_S, slowest_bps / 3 / PROBE_WIRE_BITS)
    rate = min(PROBES_PER_S[1], max(PROBES_PER_S[0], int(together / len(pairs))))
    with_tcp = pairs[: LIVE_TCP_PAIRS if live else TCP_PAIRS[len(pairs) > PAIRS]]
    bulk = [
        TcpEntry(source=a, destination=b, options={"window_limit_bytes": _window_bytes(topology, a, b)})
        for a, b in with_tcp
    ]
    transfers = [
        TcpEntry(source=a, destination=b, transfer_bytes=TRANSFER_BYTES, after_failure_s=-0.1, count=4, every_ms=100.0)
        for a, b in with_tcp
    ]
    return TrafficFile(pairs=pairs, udp=[UdpEntry(packets_per_s=rate)], tcp=bulk + transfers)


def describe(traffic: TrafficFile) -> str:
    """One line for people."""
    flows = {kind: sum(len(traffic.ends(entry)) for entry in getattr(traffic, kind)) for kind in ("udp", "ping")}
    bulk = sum(len(traffic.ends(e)) * e.count for e in traffic.tcp if e.transfer_bytes is None)
    transfers = sum(len(traffic.ends(e)) * e.count for e in traffic.tcp if e.transfer_bytes is not None)
    parts = []
    if flows["udp"]:
        rates = sorted({f"{entry.packets_per_s:g}" for entry in traffic.udp}, key=float)
        parts.append(f"{counted(flows['udp'], 'UDP stream')} of {' or '.join(rates)} packets/s")
    if flows["ping"]:
        parts.append(counted(flows["ping"], "ping"))
    if bulk:
        parts.append(f"{counted(bulk, 'TCP connection')} that always send{'s' if bulk == 1 else ''}")
    if transfers:
        parts.append(f"{counted(transfers, 'TCP transfer')} of limited size")
    return ", ".join(parts) + f"; {counted(len(traffic.host_pairs()), 'host pair')}"


def counted(count: int, what: str) -> str:
    """``1 link``, ``2 links``."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def _default_pairs(topology: Topology, through: list[frozenset[str]]) -> list[tuple[str, str]]:
    hosts = list(topology.hosts)
    count = len(hosts)
    switch = {name: topology.attachment(name).switch for name in hosts}
    known: dict[frozenset[str], tuple[str, str]] = {}
    wanted = min(PAIRS_MAX, max(PAIRS, count // 2))
    for distance in range(count // 2, 0, -1):
        for i, source in enumerate(hosts):
            destination = hosts[(i + distance) % count]
            if switch[source] != switch[destination]:
                known.setdefault(frozenset((source, destination)), (source, destination))
        if not through and len(known) >= wanted:
            break
    pairs = list(known.values())
    if through:
        # A switch that fails takes its own hosts with it: what begins or ends there says nothing.
        pairs = [
            pair for pair in pairs if not any(switch[end] in name for name in through if len(name) == 1 for end in pair)
        ]
        met = [pair for pair in pairs if _leads_through(topology, switch[pair[0]], switch[pair[1]], through)]
        others = [pair for pair in pairs if pair not in set(met)]
        pairs = [*met[: wanted // 2], *others[: wanted - len(met[: wanted // 2])]]
    return pairs[:wanted]


def _leads_through(topology: Topology, a: str, b: str, through: list[frozenset[str]]) -> bool:
    path = path_by_cost(topology, a, b)
    parts = {frozenset(link) for link in pairwise(path)} | {frozenset((node,)) for node in path}
    return any(each in parts for each in through)


def _window_bytes(topology: Topology, source: str, destination: str) -> int:
    round_trip_ms = 2 * path_delay_ms(topology, source, destination)
    return max(4 * MSS, round(BULK_BPS / 8 * round_trip_ms / 1000))


__all__ = [
    "Entry",
    "PingEntry",
    "TcpEntry",
    "TrafficFile",
    "UdpEntry",
    "counted",
    "default",
    "describe",
]
