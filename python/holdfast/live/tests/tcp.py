"""Bulk TCP through the router's demo network, on either clock, observed alike.

One :class:`Scenario` is run by :func:`simulate`, with modelled hosts in virtual time, or by :func:`run_live`, with the kernel's TCP
in two network namespaces in real time; topology, P4 program, controller, links, queues and failures are the same. Both give an
:class:`Observation`: the same columns, sampled at the same interval. The conclusions from it are not decided here.
"""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal, Self

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, model_validator

from holdfast import interpreter
from holdfast.apps.router import RouterController, compile_router
from holdfast.demo import two_paths
from holdfast.errors import LiveError
from holdfast.link import Direction
from holdfast.live.hosts import LiveHost, hosts, preferred
from holdfast.live.tests import tcp_host
from holdfast.live.tests.tcp_host import Samples
from holdfast.network import LiveNetwork, Network, SimulatedNetwork
from holdfast.topology import Topology
from holdfast.traffic import TcpOptions, TcpTransfer

FRAME_BYTES = 1538
"""A full segment on the wire: 1500 bytes of IP, Ethernet's header and check sequence, preamble and gap."""

FRAME_PAYLOAD_BYTES = 1448
"""Of TCP in it, with timestamps."""

QUICK_ACK_SEGMENTS = 196
"""Linux acknowledges each segment at once while it opens its receive window: so many, with the hosts' buffer of 2 MiB."""

PORT = 5301
START_S = 0.5
"""On the network's clock: the live hosts need some time to get ready."""

SENT = {
    "flow": pl.Int64,
    "time_s": pl.Float64,
    "cwnd_bytes": pl.Int64,
    "ssthresh_bytes": pl.Int64,
    "flight_bytes": pl.Int64,
    "srtt_ms": pl.Float64,
    "bytes_sent": pl.Int64,
    "bytes_retransmitted": pl.Int64,
    "timeouts": pl.Int64,
}
RECEIVED = {"flow": pl.Int64, "time_s": pl.Float64, "bytes_received": pl.Int64}
BOTTLENECK = {
    "time_s": pl.Float64,
    "in_transit": pl.Int64,
    "delivered": pl.Int64,
    "queue_drops": pl.Int64,
    "down_drops": pl.Int64,
}


class Scenario(BaseModel):
    """Some bulk flows over a bottleneck, and perhaps a cut of the path that they take.

    ``rtt_ms`` is that of the links alone. ``buffer_bdp`` is the queue in front of every link between switches, in products of rate
    and ``rtt_ms``. ``failure_s`` and ``repair_s`` count from the first flow's start, as all times of an observation do.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    congestion: Literal["reno", "cubic"]
    flows: int = Field(default=1, ge=1, le=64)
    rate_bps: int = Field(default=10_000_000, gt=0)
    rtt_ms: float = Field(default=40.0, ge=1)
    buffer_bdp: float = Field(default=1.0, gt=0)
    duration_s: float = Field(default=25.0, gt=0)
    stagger_s: float = Field(default=0.2, ge=0)
    failure_s: float | None = None
    repair_s: float | None = None
    reroute: bool = False
    detection_delay_ms: float = Field(default=20.0, ge=0)
    reaction_delay_ms: float = Field(default=20.0, ge=0)
    sample_ms: float = Field(default=20.0, ge=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.failure_s is None) != (self.repair_s is None):
            raise ValueError("failure_s and repair_s come together")
        if self.failure_s is not None and not self.failure_s < (self.repair_s or 0) < self.duration_s:
            raise ValueError("the failure comes before the repair, and the repair before the end")
        return self

    @property
    def queue_packets(self) -> int:
        """The length of the queue of each link between switches, in packets."""
        return max(2, round(self.buffer_bdp * self.rate_bps * self.rtt_ms / 1000 / 8 / FRAME_BYTES))

    def topology(self) -> Topology:
        """Return a topology of two hosts and two disjoint paths of two hops, of which s1-s2-s4 is cheaper."""
        core = Direction(rate_bps=self.rate_bps, delay_ms=self.rtt_ms / 4, queue_packets=self.queue_packets)
        edge = Direction(rate_bps=1_000_000_000, delay_ms=0.0, queue_packets=10_000)
        return two_paths("live-tcp", edge=edge, core=core)

    def controller(self) -> RouterController:
        """Return a controller of the router program that reroutes after the failure if ``reroute`` is set."""
        return RouterController(reroute=self.reroute, reaction_delay_ms=self.reaction_delay_ms)

    def options(self) -> TcpOptions:
        """Return the TCP options of the modelled hosts, which are those of Linux."""
        return TcpOptions.linux(self.congestion).changed(TcpOptions(quick_ack_segments=QUICK_ACK_SEGMENTS))

    def schedule(self, network: Network, start_s: float) -> None:
        """Schedule the cut of the link s1-s2 and its repair, if the scenario has them.

        ``start_s``: the time in s that they count from.
        """
        if self.failure_s is not None and self.repair_s is not None:
            network.set_link("s1-s2", up=False, at_s=start_s + self.failure_s)
            network.set_link("s1-s2", up=True, at_s=start_s + self.repair_s)


@dataclass(frozen=True)
class Observation:
    """The measurements of one run, over the time from the first flow's start.

    The samples that the hosts ``sent`` (columns as in ``SENT``) and ``received`` (``RECEIVED``); and of the links that leave s1
    together, in the data's direction, the ``bottleneck`` (``BOTTLENECK``): packets that wait or travel now, and counts.

    Of live runs: ``mean_lateness_ms`` and ``max_lateness_ms``, the lateness of the wall clock's events, and ``late_samples``, the
    share of samples that the hosts took more than a sample's interval late.
    """

    scenario: Scenario
    sent: pl.DataFrame
    received: pl.DataFrame
    bottleneck: pl.DataFrame
    mean_lateness_ms: float = 0.0
    max_lateness_ms: float = 0.0
    late_samples: float = 0.0


def _look(network: Network) -> tuple[int, ...]:
    """Return the present counters of the bottleneck, in the order of ``BOTTLENECK``."""
    counters = [network.link_counters(name).a_to_b for name in ("s1-s2", "s1-s3")]
    return tuple(sum(getattr(each, name) for each in counters) for name in list(BOTTLENECK)[1:])


def simulate(scenario: Scenario, seed: int = 1, options: TcpOptions | None = None) -> Observation:
    """Run the scenario with modelled hosts in virtual time, and return what was observed.

    The seed moves each flow's start by up to one round trip; nothing else is random.
    """
    network = SimulatedNetwork(
        scenario.topology(),
        compile_router(),
        [scenario.controller()],
        seed=seed,
        detection_delay_ms=scenario.detection_delay_ms,
    )
    draw = random.Random(seed)
    flows = [
        network.add_tcp(
            TcpTransfer(
                source="h1",
                destination="h2",
                start_s=START_S + i * scenario.stagger_s + (draw.uniform(0, scenario.rtt_ms / 1000) if i else 0.0),
                options=options or scenario.options(),
            )
        )
        for i in range(scenario.flows)
    ]
    scenario.schedule(network, START_S)
    sent: list[tuple[float, ...]] = []
    received: list[tuple[float, ...]] = []
    bottleneck: list[tuple[float, ...]] = []
    for step in range(round(scenario.duration_s * 1000 / scenario.sample_ms) + 1):
        time_s = step * scenario.sample_ms / 1000
        network.run(START_S + time_s)
        bottleneck.append((time_s, *_look(network)))
        for index, flow in enumerate(flows):
            values = network.tcp_statistics(flow)
            if values.client_state != "Established":
                continue
            row = (
                values.cwnd_bytes,
                values.ssthresh_bytes,
                values.flight_bytes,
                values.srtt_ps / 1e9,
                values.bytes_sent,
                values.bytes_retransmitted,
                values.timeouts,
            )
            sent.append((index, time_s, *row))
            received.append((index, time_s, values.bytes_received))
    return Observation(scenario, _frame(sent, SENT), _frame(received, RECEIVED), _frame(bottleneck, BOTTLENECK))


def _frame(rows: Sequence[tuple[float, ...]], schema: Mapping[str, pl.DataType | type[pl.DataType]]) -> pl.DataFrame:
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.sort("flow", "time_s") if "flow" in schema else frame


@contextmanager
def live_network(scenario: Scenario) -> Iterator[tuple[LiveNetwork, dict[str, LiveHost]]]:
    """Yield the scenario's network on the wall clock, and its hosts' namespaces.

    The hosts' kernels keep no metrics of earlier TCP connections and use no ECN.
    """
    topology = scenario.topology()
    with preferred(), hosts(topology) as (namespaces, interfaces):
        for namespace in namespaces.values():
            for name, value in (("tcp_no_metrics_save", 1), ("tcp_ecn", 0)):
                namespace.run(["sh", "-c", f"echo {value} > /proc/sys/net/ipv4/{name}"])
        with LiveNetwork(
            topology,
            compile_router(),
            [scenario.controller()],
            interfaces=interfaces,
            detection_delay_ms=scenario.detection_delay_ms,
        ) as network:
            yield network, namespaces


class _Host:
    """The program of one host's end."""

    def __init__(self, namespace: LiveHost, scenario: Scenario, *command: str) -> None:
        program = tcp_host.__file__
        sampling = ("--sample-ns", str(round(scenario.sample_ms * 1e6)), "--port", str(PORT))
        self.process = subprocess.Popen(
            [*namespace.exec_prefix, *interpreter.script(program, *sampling, *command)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        if self.process.stdout.readline() != "ready\n":
            raise LiveError(f"a host did not start: {self.process.communicate()[1][-300:]}")

    def finish(self, timeout_s: float) -> Samples:
        """Wait until the host's process ends, and return the samples that it printed.

        Raises :class:`LiveError` if it failed or is late.
        """
        try:
            output, errors = self.process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self.close()
            raise LiveError("a host did not end in time") from None
        if self.process.returncode:
            raise LiveError(f"a host failed: {errors[-300:]}")
        result: Samples = json.loads(output)
        return result

    def close(self) -> None:
        """Kill the host's process if it still runs."""
        with suppress(OSError):
            self.process.kill()
        self.process.wait()


def run_live(scenario: Scenario, seed: int = 1) -> Observation:
    """Run the scenario with the kernel's TCP in real time, and return what was observed. Raises :class:`LiveError` if a host fails.

    The seed moves the flows' starts as in :func:`simulate`.
    """
    draw = random.Random(seed)
    with live_network(scenario) as (network, namespaces):
        before_ns = time.monotonic_ns()
        zero_ns = (before_ns + time.monotonic_ns()) // 2 - network.now_ps // 1000
        start_s = network.now_ps / 1e12 + START_S
        start_ns = zero_ns + round(start_s * 1e9)
        starts = [
            start_ns + round(1e9 * (i * scenario.stagger_s + (draw.uniform(0, scenario.rtt_ms / 1000) if i else 0.0)))
            for i in range(scenario.flows)
        ]
        target = str(network.topology.hosts["h2"].address.ip)
        stop_ns = start_ns + round(scenario.duration_s * 1e9)
        server = _Host(namespaces["h2"], scenario, "serve", "--flows", str(scenario.flows))
        try:
            sending = ("--address", target, "--congestion", scenario.congestion, "--stop-ns", str(stop_ns))
            client = _Host(namespaces["h1"], scenario, "send", *sending, "--start-ns", *map(str, starts))
            try:
                scenario.schedule(network, start_s)
                wall = network.wall_statistics()
                bottleneck = []
                for step in range(round(scenario.duration_s * 1000 / scenario.sample_ms) + 1):
                    network.wait_until(start_s + step * scenario.sample_ms / 1000)
                    bottleneck.append((network.now_ps / 1e12 - start_s, *_look(network)))
                late = network.wall_statistics()
                outputs = client.finish(20), server.finish(20)
            finally:
                client.close()
        finally:
            server.close()
    sent, received = _live_frames(*outputs, start_ns)
    gaps = sent.select((pl.col("time_s").diff().over("flow")).alias("gap")).drop_nulls()["gap"]
    return Observation(
        scenario,
        sent,
        received,
        _frame(bottleneck, BOTTLENECK),
        mean_lateness_ms=(late.total_lateness_ps - wall.total_lateness_ps) / max(1, late.events - wall.events) / 1e9,
        max_lateness_ms=late.max_lateness_ps / 1e9,
        late_samples=len(gaps.filter(gaps > 2 * scenario.sample_ms / 1000)) / max(1, len(gaps)),
    )


def _live_frames(client: Samples, server: Samples, start_ns: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return two tables of the hosts' samples with the columns of an observation: of the sender, and of the receiver."""
    mss = client["mss"]
    columns = [*client["columns"]]
    index: dict[int, int] = {}
    sent = []
    for values in client["rows"]:
        row = dict(zip(columns, values, strict=True))
        # The kernel's own definition of what is in flight (tcp_packets_in_flight).
        flight = row["unacked"] - row["sacked"] - row["lost"] + row["retrans"]
        flow = index.setdefault(row["port"], len(index))
        sent.append(
            (
                flow,
                (row["time_ns"] - start_ns) / 1e9,
                row["cwnd"] * mss,
                2**63 - 1 if row["ssthresh"] >= 0x7FFFFFFF else row["ssthresh"] * mss,
                flight * mss,
                row["rtt_us"] / 1000,
                row["bytes_sent"],
                row["bytes_retransmitted"],
                row["timeouts"],
            )
        )
    received = [
        (index[port], (time_ns - start_ns) / 1e9, count) for port, time_ns, count in server["rows"] if port in index
    ]
    return _frame(sent, SENT), _frame(received, RECEIVED)
