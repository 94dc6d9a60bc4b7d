"""A UDP flow and pings through a line of switches, with INT or without (sections 3.3.2 and 4.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from holdfast._core import Program
from holdfast.apps.router import RouterController
from holdfast.apps.telemetry import TelemetryController, Watch, compile_telemetry
from holdfast.apps.telemetry.thesis import ThesisController, compile_thesis
from holdfast.controller import Controller
from holdfast.errors import ExperimentError
from holdfast.experiments.p4_thesis_2021 import published, setup
from holdfast.network import SimulatedNetwork
from holdfast.parameters import PS_PER_MS, PS_PER_S
from holdfast.sweep import Point
from holdfast.traffic import Ping, UdpStream

PAYLOAD_BYTES = 1400
"""Of a datagram: with the thesis's INT of five switches it fits an MTU of 1500. The thesis does not say what it took."""

MTU = 1500

RATES_MBPS = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0)
"""The rates of payload, as iperf counts. The thesis's are in figures alone."""

MODES = ("off", "thesis", "md", "mx", "xd")
"""Without INT; the thesis's; and those of INT v2.1."""

BEYOND = (("off", 1.0), ("thesis", 1.0), ("md", 1.0), ("md", 0.1), ("mx", 1.0), ("mx", 0.1), ("xd", 1.0), ("xd", 0.1))
"""The formats of INT, each with the share of packets that is watched."""

FIRST_PORT = 5001

SPARE_S = 10.0
"""The time for packets that wait at the end."""


def point(
    switches: int, flows: int, mode: str, rate_mbps: float, *, sampling: float = 1.0, run_s: float = published.RUN_S
) -> Point:
    """Return the parameters of one run as a point of the sweep. ``sampling``: the share of packets that get INT."""
    return {
        "switches": switches,
        "flows": flows,
        "mode": mode,
        "sampling": sampling,
        "rate_mbps": rate_mbps,
        "run_s": run_s,
    }


def points(rates_mbps: Sequence[float], run_s: float) -> list[Point]:
    """Return the points of the thesis's two tests at each rate in Mb/s, with INT and without."""
    shapes = [(switches, 1) for switches in published.SWITCHES] + [(4, 2)]
    return [
        point(switches, flows, mode, rate, run_s=run_s)
        for switches, flows in shapes
        for rate in rates_mbps
        for mode in ("off", "thesis")
    ]


def beyond_points(rates_mbps: Sequence[float], run_s: float) -> list[Point]:
    """Return the points of five switches at each rate in Mb/s, for every format of INT in ``BEYOND``."""
    return [point(5, 1, mode, rate, sampling=sampling, run_s=run_s) for mode, sampling in BEYOND for rate in rates_mbps]


POINTS = points(RATES_MBPS, published.RUN_S)
BEYOND_POINTS = beyond_points(RATES_MBPS, published.RUN_S)


@cache
def _program(mode: str) -> Program:
    match mode:
        case "off":
            return setup.router()
        case "thesis":
            return compile_thesis()
        case _:
            return _telemetry()


@cache
def _telemetry() -> Program:
    return compile_telemetry()


def forwarding(mode: str, sampling: float) -> tuple[Program, Controller]:
    """Return the program of all switches and its controller, for a mode of INT.

    INT v2.1 reports to the host ``collector``. Raise :class:`ExperimentError` for an unknown mode.
    """
    if mode not in MODES:
        raise ExperimentError(f"there is no mode {mode!r} of INT (known: {', '.join(MODES)})")
    controller: Controller
    match mode:
        case "off":
            controller = RouterController(reroute=False, reaction_delay_ms=0.0)
        case "thesis":
            controller = ThesisController(mtu=MTU, reaction_delay_ms=0.0)
        case _:
            # Drops in programs would be reported too, and there are none.
            watch = Watch(mode=mode, protocol=17, sampling=sampling, drops=False)  # type: ignore[arg-type]
            controller = TelemetryController([watch], collector="collector", mtu=MTU, reaction_delay_ms=0.0)
    return _program(mode), controller


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Run one or two flows; return what iperf and ping say of the first one. The second flow has 2 Mb/s, as in the thesis.

    Bandwidth is payload that arrived over the time from the first to the last arrival. Latency is the mean round-trip time of pings
    that came back, as ping says it. ``queue_drops``: packets dropped at the processors of all switches.
    """
    v21 = point["mode"] in ("md", "mx", "xd")
    topology = setup.line(point["switches"], setup.MACHINE_PACKETS_PER_S, flows=point["flows"], collector=v21)
    program, controller = forwarding(point["mode"], point["sampling"])
    network = SimulatedNetwork(topology, program, [controller], seed=seed)
    rates = [point["rate_mbps"], published.SECOND_FLOW_MBPS][: point["flows"]]
    run_s = point["run_s"]
    flows = [
        network.add(
            UdpStream(
                source=f"a{number}",
                destination=f"b{number}",
                packets_per_s=rate * 1e6 / (8 * PAYLOAD_BYTES),
                payload_bytes=PAYLOAD_BYTES,
                stop_s=run_s,
                source_port=FIRST_PORT + number,
                destination_port=FIRST_PORT + number,
            )
        )
        for number, rate in enumerate(rates, 1)
    ]
    ping = network.add(Ping(source="a1", destination="b1", interval_ms=published.PING_INTERVAL_MS, stop_s=run_s))
    network.run(run_s + SPARE_S)
    found, pinged = network.statistics(flows[0]), network.statistics(ping)
    arrivals = network.received(flows[0]).received_ps
    duration_s = (arrivals[-1] - arrivals[0]) / PS_PER_S
    return {
        "sent": found.sent,
        "bandwidth_mbps": (len(arrivals) - 1) * PAYLOAD_BYTES * 8 / duration_s / 1e6,
        "lost_percent": 100 * found.lost / found.sent,
        "jitter_ms": (found.interarrival_jitter_ps or 0.0) / PS_PER_MS,
        "latency_ms": (pinged.latency_mean_ps or 0.0) / PS_PER_MS,
        "pings_lost_percent": 100 * pinged.lost / pinged.sent,
        "queue_drops": sum(network.node_counters(name).queue_drops for name in topology.switches),
        "bytes_between_switches": network.bytes_on_wire(),
    }
