"""Figure 15: the loss after several passes through recirculation ports of which each loses a share.

The formula supposes that each pass loses the same share, whatever happened before. A switch is loaded a little above its
recirculation capacity, and loss over all passes is put beside the formula with the loss that its ports had on average.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from holdfast import statistics
from holdfast.experiments import Finding, Setting
from holdfast.experiments.bier_tofino_2021 import drawing, load, model, published
from holdfast.experiments.rows import exact, row
from holdfast.network import SimulatedNetwork
from holdfast.sweep import Point

PASSES = (1, 2, *published.MANY)
LOSSES = (0.3, 0.1, 0.03, 0.01)
"""The losses of a pass for which the load is chosen. The ports' real loss is measured."""

HOSTS = 16
RECIRCULATION_PORTS = 8
QUEUE_PACKETS = 20

RUN_MS = 0.6

SMALL = 0.001
"""The loss of a pass at which the text's order of magnitude is judged: any small one gives the same."""

POINTS: list[Point] = [{"passes": passes, "target": target, "run_ms": RUN_MS} for passes in PASSES for target in LOSSES]


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Run a switch whose packets recirculate ``passes`` times; return the loss of a single pass and of all passes together.

    Counted are packets whose first pass was in the run.
    """
    passes = point["passes"]
    survivors = sum((1 - point["target"]) ** m for m in range(1, passes + 1))
    topology = load.star(HOSTS, RECIRCULATION_PORTS, QUEUE_PACKETS)
    network = SimulatedNetwork(topology, load.rounds_program(), seed=seed)
    stop_s = point["run_ms"] / 1000
    each = RECIRCULATION_PORTS / survivors / HOSTS
    flows = load.add_ring(network, HOSTS, {passes: Fraction(1)}, each, stop_s)
    # Until the last packet is through.
    network.run(2 * stop_s + 1e-3)
    found = load.recirculated(network)
    sent = sum(network.statistics(flow).sent for flow in flows)
    lost = sum(network.statistics(flow).lost for flow in flows)
    return {"sent": sent, "lost": lost, "loss": lost / sent, "loss_of_a_pass": found.loss}


def find(setting: Setting) -> Finding:
    """Return the finding of Figure 15: the loss after several passes by the formula, and in simulated runs."""
    frame = setting.sweep("passes", f"{__name__}:measure", POINTS)
    return Finding(numbers(frame), {"": draw(frame)}, {"runs": frame})


def numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row per number of passes and quantity: the formula's ratio at a small loss, and the runs' loss.

    The loss of the runs is in percent of the formula's, over all loads.
    """
    rows: list[dict[str, Any]] = []
    for passes in PASSES:
        times = model.loss_after(passes, SMALL) / SMALL
        rows.append(row({"passes": passes}, "times_one_pass", exact(times)))
    relative = frame.with_columns(
        (100 * pl.col("loss") / (1 - (1 - pl.col("loss_of_a_pass")) ** pl.col("passes"))).alias("percent")
    )
    for each in statistics.summary(relative, ["passes"], "percent").iter_rows(named=True):
        rows.append(row({"passes": each["passes"]}, "simulated_percent_of_formula", each))
    return pl.DataFrame(rows)


def draw(frame: pl.DataFrame) -> Figure:
    """Draw Figure 15: loss after several passes over the loss of one, both axes logarithmic."""
    return drawing.passes(PASSES, frame)
