"""BIER by recirculation: the evaluation of the BIER prototype for the Tofino (IEEE Access 9, 2021)."""

from __future__ import annotations

from holdfast.experiments import Experiment, Part
from holdfast.experiments.bier_tofino_2021 import (
    mixes,
    passes,
    provisioning,
    published,
    replication,
    restoration,
    restoration_live,
    throughput,
)

EXPERIMENT = Experiment(
    name="bier_tofino_2021",
    title="Hardware-Based Evaluation of Scalable and Resilient Multicast With BIER in P4",
    reference="D. Merling, S. Lindner, M. Menth, University of Tübingen, IEEE Access 9, 2021",
    seeds=published.RUNS,
    parts=(
        Part(
            "fig11",
            published.FIGURE_11.place,
            published.FIGURE_11.title,
            restoration.find,
            len(restoration.POINTS),
            published.FIGURE_11,
        ),
        Part(
            "fig11_live",
            published.FIGURE_11_LIVE.place,
            published.FIGURE_11_LIVE.title,
            restoration_live.find,
            len(restoration_live.POINTS),
            published.FIGURE_11_LIVE,
        ),
        Part(
            "table2",
            published.TABLE_2.place,
            published.TABLE_2.title,
            throughput.find,
            len(throughput.POINTS) + len(throughput.EVEN_POINTS),
            published.TABLE_2,
        ),
        Part(
            "fig15",
            published.FIGURE_15.place,
            published.FIGURE_15.title,
            passes.find,
            len(passes.POINTS),
            published.FIGURE_15,
        ),
        Part(
            "fig16",
            published.FIGURE_16.place,
            published.FIGURE_16.title,
            provisioning.find,
            len(provisioning.POINTS),
            published.FIGURE_16,
        ),
        Part(
            "fig17",
            published.FIGURE_17.place,
            published.FIGURE_17.title,
            mixes.find,
            len(mixes.POINTS),
            published.FIGURE_17,
        ),
        Part(
            "beyond",
            "not in the paper",
            "three ways to replicate, up to 32 next hops",
            replication.find,
            len(replication.POINTS),
        ),
    ),
)
