"""The demo: one link is cut under a stream and a ping, and three mechanisms show what it cost.

Two hosts, an ingress switch s1 and an egress switch s4, and two disjoint paths between them: s1-s2-s4 (path 1) and s1-s3-s4
(path 2). The link s1-s2 fails at 3 s and is repaired at 7 s. ``static`` never reacts. ``reroute`` learns of the failure
after the detection delay and reinstalls routes after the reaction delay. ``protect`` sends everything on both paths.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, model_validator

from holdfast._core import Program
from holdfast.apps.protect import ProtectController, compile_protect
from holdfast.apps.router import RouterController, compile_router
from holdfast.controller import Controller
from holdfast.link import Jitter
from holdfast.network import SimulatedNetwork
from holdfast.plots import delivered_over_time
from holdfast.results import Row, bin_counts, packets, summarise, write_summary
from holdfast.topology import Topology
from holdfast.traffic import Ping, UdpStream

MECHANISMS = ("static", "reroute", "protect")

MTU = 1600
"""Of the links between switches: room for a full Ethernet payload and the outer headers."""


PING_START_S = 0.0505
"""Half a packet interval away from the stream's packets, which share the protection connection: packets that are sent
together arrive in any order under jitter, and the acceptance window drops what is overtaken on both paths."""


class DemoParameters(BaseModel):
    """Everything that the demo can be asked to do differently; times in the unit of their names."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: int = Field(default=1, ge=0, lt=2**63)
    packets_per_s: float = Field(default=1000.0, gt=0, le=1_000_000)
    payload_bytes: int = Field(default=1000, ge=28, le=1472)
    duration_s: float = Field(default=10.0, gt=0, le=3600)
    failure_s: float = Field(default=3.0, ge=0)
    repair_s: float = Field(default=7.0, gt=0)
    detection_delay_ms: float = Field(default=50.0, ge=0)
    reaction_delay_ms: float = Field(default=100.0, ge=0)
    rate_bps: int = Field(default=100_000_000, gt=0)
    delay_ms: float = Field(default=1.0, ge=0)
    jitter_ms: float = Field(default=0.1, ge=0)
    executor: Literal["jit", "interpreter"] = "jit"

    @model_validator(mode="after")
    def _order(self) -> Self:
        if not self.failure_s < self.repair_s <= self.duration_s:
            raise ValueError("the failure must come before the repair, and the repair within the duration")
        return self


def two_paths(name: str, *, edge: Mapping[str, Any], core: Mapping[str, Any]) -> Topology:
    """Two hosts and two disjoint paths of two hops; path 1 is the cheaper one.

    ``edge`` and ``core`` are options of :meth:`Topology.add_link` for the hosts' links and for those between switches.
    """
    result = Topology(name)
    for host in ("h1", "h2"):
        result.add_host(host)
    for switch in ("s1", "s2", "s3", "s4"):
        result.add_switch(switch)
    result.add_link("h1", "s1", **edge)
    result.add_link("s1", "s2", **core)
    result.add_link("s2", "s4", **core)
    result.add_link("s1", "s3", **core, cost=2)
    result.add_link("s3", "s4", **core, cost=2)
    result.add_link("s4", "h2", **edge)
    return result


def topology(parameters: DemoParameters) -> Topology:
    """The demo's network."""
    edge = {"rate_bps": parameters.rate_bps, "delay_ms": 0.01}
    jitter = Jitter(distribution="uniform", high_ms=parameters.jitter_ms) if parameters.jitter_ms else None
    core = {"rate_bps": parameters.rate_bps, "delay_ms": parameters.delay_ms, "jitter": jitter}
    return two_paths("demo", edge=edge, core=core)


def mechanism(name: str, reaction_delay_ms: float) -> tuple[Program, Controller]:
    """The program that all switches run and the controller, by the mechanism's name."""
    if name == "protect":
        controller = ProtectController(protect=[("h1", "h2")], reaction_delay_ms=reaction_delay_ms, mtu=MTU)
        return compile_protect(), controller
    return compile_router(), RouterController(reroute=name == "reroute", reaction_delay_ms=reaction_delay_ms)


@dataclass(frozen=True)
class Run:
    """What one mechanism left: the network, the flows in it by name, and all their packets."""

    network: SimulatedNetwork
    flows: dict[str, int]
    packets: pl.DataFrame


def simulate(name: str, parameters: DemoParameters) -> Run:
    """Runs one mechanism."""
    program, controller = mechanism(name, parameters.reaction_delay_ms)
    network = SimulatedNetwork(
        topology(parameters),
        program,
        [controller],
        seed=parameters.seed,
        detection_delay_ms=parameters.detection_delay_ms,
        executor=parameters.executor,
    )
    flows = {
        "udp": network.add(
            UdpStream(
                source="h1",
                destination="h2",
                packets_per_s=parameters.packets_per_s,
                payload_bytes=parameters.payload_bytes,
                stop_s=parameters.duration_s,
            )
        ),
        "ping": network.add(Ping(source="h1", destination="h2", start_s=PING_START_S, stop_s=parameters.duration_s)),
    }
    network.set_link("s1-s2", up=False, at_s=parameters.failure_s)
    network.set_link("s1-s2", up=True, at_s=parameters.repair_s)
    # What is still in flight at the end of the stream gets time to arrive.
    network.run(parameters.duration_s + 1.0)
    frames = [
        packets(network.core, flow).with_columns(mechanism=pl.lit(name), flow=pl.lit(label))
        for label, flow in flows.items()
    ]
    return Run(network, flows, pl.concat(frames))


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The UDP stream's row for :func:`holdfast.sweep.run`; a point has a ``mechanism`` and fields of :class:`DemoParameters`."""
    fields = dict(point)
    result = simulate(fields.pop("mechanism"), DemoParameters(seed=seed, **fields))
    row = asdict(summarise(result.network.core, result.flows["udp"], 1.0))
    del row["relative_bytes"]  # There is nothing here that it could be relative to.
    return {**row, "bytes_on_wire": result.network.bytes_on_wire()}


def run(
    parameters: DemoParameters, out: Path, progress: Callable[[str], None] = lambda _: None
) -> tuple[dict[str, Row], dict[str, Row]]:
    """Runs the three mechanisms and writes ``summary.json``, ``packets.parquet`` and ``demo.png`` to ``out``.

    Returns the rows of the UDP stream and those of the ping, by mechanism.
    """
    out.mkdir(parents=True, exist_ok=True)
    frames: list[pl.DataFrame] = []
    streams: dict[str, Row] = {}
    pings: dict[str, Row] = {}
    baseline_bytes = 0
    for name in MECHANISMS:
        started = time.monotonic()
        result = simulate(name, parameters)
        wire_bytes = result.network.bytes_on_wire()
        baseline_bytes = baseline_bytes or wire_bytes
        relative = wire_bytes / baseline_bytes if baseline_bytes else 0.0
        streams[name] = summarise(result.network.core, result.flows["udp"], relative)
        pings[name] = summarise(result.network.core, result.flows["ping"], relative)
        frames.append(result.packets)
        progress(f"{name}: {streams[name].sent} packets in {time.monotonic() - started:.2f} s")
    everything = pl.concat(frames).select(
        "mechanism", "flow", "sequence", "copy", "sent_ps", "received_ps", "reordered"
    )
    everything.write_parquet(out / "packets.parquet")
    write_summary(out / "summary.json", streams)
    curves = {
        name: bin_counts(
            everything.filter((pl.col("mechanism") == name) & (pl.col("flow") == "udp")), 100.0, parameters.duration_s
        )
        for name in MECHANISMS
    }
    delivered_over_time(
        out / "demo.png",
        curves,
        offered_per_s=parameters.packets_per_s,
        failure_s=parameters.failure_s,
        repair_s=parameters.repair_s,
        title=f"A link is cut at {parameters.failure_s:g} s and repaired at {parameters.repair_s:g} s: "
        f"UDP, {parameters.packets_per_s:g} packets/s",
    )
    return streams, pings
