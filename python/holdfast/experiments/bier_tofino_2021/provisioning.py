"""Figure 16 and the provisioning rule: the number of recirculation ports that a load needs, by the formula and by trying.

The rule gives the fewest ports whose rate is not below the mean load. So it is tried with one port less too: with as many as
the rule says nothing should be lost, with one less something. The parameters of a run are the ports of the switch that carry
traffic, m, and its recirculation ports; loads are Poisson processes, so nothing but the mean is even. :mod:`mixes` has the same for
BIER.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from holdfast import statistics
from holdfast.experiments import Finding, Setting
from holdfast.experiments.bier_tofino_2021 import drawing, load, model
from holdfast.network import SimulatedNetwork
from holdfast.sweep import Point

RATIOS = (1, 2, 3, 4, 5)
"""The utilisation ratios U. The figure's are not in the text."""

RECIRCULATIONS = tuple(Fraction(quarters, 4) for quarters in range(17))
"""The recirculations per packet, R."""

TRIED = tuple((Fraction(r), u) for u in (2, 4) for r in ("1/2", "1", "2"))
"""The values of R and U of the runs. Not U = 1, where normal ports are full and lose packets themselves."""

QUEUE_PACKETS = 100
"""The queue in front of a recirculation port: 12 us at its rate. The paper does not give it; a load above the rate fills any."""

RUN_MS = 1.5

WARM_UP = 2 / 3
"""The share of a run that is not counted: queues fill slowly, since a packet that waits is in the place of all its later passes."""

SIZES = "uniform"
"""The name of the packets' sizes."""

KEYS = ("recirculations", "utilisation_ratio", "missing_ports")


def point(recirculations: Fraction, ratio: int, missing: int, run_ms: float = RUN_MS) -> Point:
    """Return a point of the sweep: a switch with the ports that the rule gives, and ``missing`` recirculation ports less."""
    ports, needed = model.provision(recirculations, Fraction(ratio))
    load = ports * recirculations / ratio / (needed - missing)
    return {
        "recirculations": float(recirculations),
        "utilisation_ratio": ratio,
        "missing_ports": missing,
        "ports": ports,
        "recirculation_ports": needed - missing,
        "load": float(load),
        "run_ms": run_ms,
    }


POINTS = [point(r, u, missing) for r, u in TRIED for missing in (0, 1)]


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Run a switch whose hosts send in a ring; return loss and utilisation of its recirculation ports after the warm-up."""
    recirculations = Fraction(point["recirculations"])
    topology = load.star(point["ports"], point["recirculation_ports"], QUEUE_PACKETS)
    network = SimulatedNetwork(topology, load.rounds_program(), seed=seed)
    stop_s = point["run_ms"] / 1000
    load.add_ring(network, point["ports"], load.passes(recirculations), 1 / point["utilisation_ratio"], stop_s)
    return steady(network, load.SWITCH, stop_s)


def steady(network: SimulatedNetwork, switch: str, stop_s: float) -> dict[str, Any]:
    """Run ``network`` until ``stop_s``; return what the recirculation ports of ``switch`` counted after the warm-up.

    The dictionary has packets ``offered`` and ``lost``, ``loss_percent``, ``utilisation`` and ``max_packets``.
    """
    network.run(WARM_UP * stop_s)
    before = load.recirculated(network, switch)
    network.run(stop_s)
    found = load.recirculated(network, switch)
    offered, lost = found.offered - before.offered, found.lost - before.lost
    busy = found.utilisation - before.utilisation * WARM_UP
    return {
        "offered": offered,
        "lost": lost,
        "loss_percent": 100 * lost / max(1, offered),
        "utilisation": busy / (1 - WARM_UP),
        "max_packets": found.max_packets,
    }


def find(setting: Setting) -> Finding:
    """Return the finding of Figure 16: the ports by the formula, and the loss in runs of some of its points."""
    frame = setting.sweep("provisioning", f"{__name__}:measure", POINTS)
    return Finding(numbers(frame), {"": draw(frame)}, {"runs": frame, "tried": tried(frame, KEYS)})


def tried(frame: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Return a row per combination of ``keys``: the number of runs, of runs that lost packets, and the mean loss in percent.

    ``load``: by the formula, in multiples of the rate of the ports.
    """
    return frame.group_by(keys, maintain_order=True).agg(
        pl.col("ports", "recirculation_ports", "load").first(),
        pl.len().alias("runs"),
        (pl.col("lost") > 0).sum().alias("runs_with_loss"),
        pl.col("loss_percent").mean(),
        pl.col("utilisation").mean(),
        pl.col("max_packets").max(),
    )


def formula(recirculations: Sequence[Fraction], ratios: Sequence[int]) -> pl.DataFrame:
    """Return a row per R (recirculations per packet) and U (utilisation ratio): physical ports in loopback mode (equation 3)."""
    rows = [
        {
            "recirculations": float(r),
            "utilisation_ratio": float(u),
            "physical_ports": model.physical(model.provision(r, Fraction(u))[1]),
        }
        for u in ratios
        for r in recirculations
    ]
    return pl.DataFrame(rows)


def numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row per R, U and quantity: the ports by the formula (exact), and the loss in percent in the runs."""
    exact = formula(RECIRCULATIONS, RATIOS).select(
        "recirculations",
        "utilisation_ratio",
        pl.lit("physical_ports").alias("quantity"),
        *(pl.col("physical_ports").cast(pl.Float64).alias(name) for name in ("ours", "low", "high")),
    )
    runs = frame.with_columns(pl.col("utilisation_ratio").cast(pl.Float64), sizes=pl.lit(SIZES))
    return pl.concat([exact, *losses(runs, list(KEYS[:2]))])


def losses(frame: pl.DataFrame, keys: Sequence[str]) -> list[pl.DataFrame]:
    """Return a table of mean losses in percent with 95 % intervals, one for each kind of run, by ``keys``.

    Kinds: with the rule's ports; with one port less; with the rule's ports and other packet sizes.
    """
    found = []
    for (sizes, missing), group in frame.group_by(["sizes", "missing_ports"], maintain_order=True):
        suffix = "_one_port_less" if missing else "" if sizes == SIZES else f"_{str(sizes).replace(' ', '_')}"
        found.append(
            statistics.summary(group, keys, "loss_percent").select(
                *keys,
                pl.lit(f"loss_percent{suffix}").alias("quantity"),
                pl.col("mean").alias("ours"),
                "low",
                "high",
            )
        )
    return found


def draw(frame: pl.DataFrame) -> Figure:
    """Draw Figure 16, and in a second panel the loss in the runs."""
    curves, words = formula(RECIRCULATIONS, RATIOS), ("recirculation factor R", "U = {:g}")
    return drawing.provisioning(curves, tried(frame, KEYS), "recirculations", "utilisation_ratio", words)
