"""Pictures of experiments show the measured numbers, and the same numbers give the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import polars as pl
import pytest
from matplotlib.figure import Figure

from holdfast import plots, statistics
from holdfast.errors import HoldfastError

RANDOM = Random(1)
RUNS = pl.DataFrame(
    [
        {"d_ms": d, "delta_ms": delta, "mechanism": mechanism, "seed": seed, "good": 100 - d / delta + RANDOM.random()}
        for d in (1, 10, 100)
        for delta in (5, 50)
        for mechanism in ("local", "path")
        for seed in range(20)
    ]
)
LABELS = {"title": "t", "xlabel": "d (ms)"}


def curve() -> Figure:
    frame = pl.DataFrame(
        [{"t": t / 10, "good": t * d, "d_ms": d, "delta_ms": e} for t in range(20) for d in (1, 2) for e in (5, 50)]
    )
    return plots.curves(frame, "t", "good", "d_ms", "delta_ms", title="t", xlabel="s", ylabel="%")


def interval() -> Figure:
    frame = statistics.summary(RUNS, ["d_ms", "delta_ms", "mechanism"], "good")
    return plots.intervals(frame, "d_ms", "mechanism", "delta_ms", ylabel="%", **LABELS)


def proportion() -> Figure:
    runs = RUNS.filter((pl.col("mechanism") == "local") & (pl.col("delta_ms") == 5))
    both = pl.concat(
        [runs.with_columns(delta_ms=pl.lit(5)), runs.with_columns(delta_ms=pl.lit(50), good=-pl.col("good"))]
    )
    return plots.proportions(statistics.best(both, "d_ms", "good", ["delta_ms"]), "delta_ms", "d_ms", **LABELS)


def histogram() -> Figure:
    return plots.histograms(RUNS.filter(pl.col("delta_ms") == 50), "good", "d_ms", bin_width=0.25, **LABELS)


@pytest.mark.parametrize("draw", [curve, interval, proportion, histogram])
def test_the_same_numbers_are_the_same_picture(draw: Callable[[], Figure], tmp_path: Path) -> None:
    for name in ("one", "two"):
        plots.save(draw(), tmp_path / f"{name}.png", tmp_path / f"{name}.svg")
    for suffix in ("png", "svg"):
        assert (tmp_path / f"one.{suffix}").read_bytes() == (tmp_path / f"two.{suffix}").read_bytes()


def test_curves() -> None:
    axes = curve().axes
    assert [axis.get_title() for axis in axes] == ["delta = 5 ms", "delta = 50 ms"]
    assert [line.get_ydata()[-1] for line in axes[1].lines] == [19, 38]
    assert len({line.get_color() for line in axes[0].lines}) == 2


def test_intervals_have_the_mechanisms_looks() -> None:
    axis = interval().axes[0]
    lines = {container.get_label(): container.lines[0] for container in axis.containers}
    assert set(lines) == {plots.style("local").label, plots.style("path").label}
    local = lines[plots.style("local").label]
    assert (local.get_color(), local.get_marker()) == (plots.style("local").colour, plots.style("local").marker)
    means = statistics.summary(RUNS.filter(pl.col("delta_ms") == 5), ["d_ms", "mechanism"], "good")
    assert list(local.get_ydata()) == means.filter(pl.col("mechanism") == "local")["mean"].to_list()


def test_proportions_are_in_percent_and_their_intervals_are_drawn() -> None:
    axis = proportion().axes[0]
    # With the sign turned the largest d is the best one, without exception.
    bars = [container for container in axis.containers if hasattr(container, "patches")]
    assert [[bar.get_height() for bar in bars_of_d.patches] for bars_of_d in bars] == [[100, 0], [0, 0], [0, 100]]


def test_histograms_count_every_seed() -> None:
    axis = histogram().axes[0]
    markers = [line for line in axis.lines if line.get_linestyle() == "None"]
    assert [sum(line.get_ydata()) for line in markers] == pytest.approx([100] * 3)
    fits = [line for line in axis.lines if line.get_linestyle() != "None"]
    for fit in fits:
        xs, ys = list(fit.get_xdata()), list(fit.get_ydata())
        # The fit's bins hold everything, too: its area over the width of a bin is 100 %.
        assert sum(ys) * (xs[1] - xs[0]) / 0.25 == pytest.approx(100, abs=0.1)
    with pytest.raises(HoldfastError, match="bin_width is 0"):
        plots.histograms(RUNS, "good", "d_ms", bin_width=0, **LABELS)


@pytest.mark.parametrize("columns", [0, 2, 3])
def test_a_legend_lies_over_no_panel(columns: int) -> None:
    """Check that the legend of curves and intervals is beside the last panel, whatever the number of columns."""
    frame = pl.DataFrame(
        [{"t": t, "good": 10.0 * t * d, "d_ms": d, "delta_ms": e} for t in range(9) for d in (1, 2) for e in range(5)]
    )
    figure = plots.curves(frame, "t", "good", "d_ms", "delta_ms", title="t", xlabel="s", ylabel="%", columns=columns)
    assert len(figure.axes) == 5
    figure.canvas.draw()
    (legend,) = (each for axis in figure.axes if (each := axis.get_legend()))
    place = legend.get_window_extent()
    assert not any(place.overlaps(axis.get_window_extent()) for axis in figure.axes)
    assert figure.bbox.x0 <= place.x0
    assert place.x1 <= figure.bbox.x1
    assert figure.axes[0].get_title() == "delta = 0 ms"
