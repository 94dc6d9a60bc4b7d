"""Cost and benefit of 1+1 protection in P4: the evaluation of P4-Protect (EuroP4 2020), which used a Tofino switch."""

from __future__ import annotations

from holdfast.experiments import Experiment, Part
from holdfast.experiments.p4_protect_2020 import (
    delay_difference,
    goodput,
    goodput_live,
    jitter,
    processing,
    published,
    scenarios,
)

EXPERIMENT = Experiment(
    name="p4_protect_2020",
    title="P4-Protect: 1+1 Path Protection for P4",
    reference="S. Lindner, D. Merling, M. Häberle, M. Menth, University of Tübingen, EuroP4 2020",
    seeds=published.RUNS,
    parts=(
        Part(
            "scenarios",
            published.FIGURES_2_TO_4.place,
            "jitter, a loss, reordering: what comes out, of four packets",
            scenarios.find,
            len(scenarios.POINTS),
            published.FIGURES_2_TO_4,
        ),
        Part(
            "claim",
            published.CLAIM.place,
            published.CLAIM.title,
            delay_difference.find,
            len(delay_difference.POINTS),
            published.CLAIM,
        ),
        Part(
            "fig6",
            published.FIGURE_6.place,
            published.FIGURE_6.title,
            processing.find,
            len(processing.POINTS),
            published.FIGURE_6,
        ),
        Part(
            "fig7",
            published.FIGURE_7.place,
            published.FIGURE_7.title,
            goodput.find,
            len(goodput.POINTS),
            published.FIGURE_7,
        ),
        Part(
            "fig7_live",
            published.FIGURE_7.place,
            "the same with iperf3 and this machine's kernel (needs root)",
            goodput_live.find,
            len(goodput_live.POINTS),
        ),
        Part(
            "fig8",
            published.FIGURE_8.place,
            "deviation of round-trip times against jitter on both paths",
            jitter.find,
            len(jitter.POINTS) + len(jitter.CLOSE_POINTS),
            published.FIGURE_8,
        ),
    ),
)
