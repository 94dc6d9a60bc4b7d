"""A PPPoE gateway on one data plane or on two: xFlow Research's demonstration (P4 workshop), which used bmv2."""

from __future__ import annotations

from holdfast.experiments import Experiment, Part
from holdfast.experiments.pppoe_split_plane import beyond, live, tables

SEEDS = 10
"""The paper does not repeat its measurements."""

PARTS: tuple[Part, ...] = (*tables.PARTS, *live.PARTS, *beyond.PARTS)
"""In the order in which they are run and shown. Studies beyond the paper come last."""

EXPERIMENT = Experiment(
    name="pppoe_split_plane",
    title="PPPoE Demo for Split Data Plane Performance using P4 for ISPs",
    reference="xFlow Research, demonstration",
    seeds=SEEDS,
    parts=PARTS,
    quick_seeds=2,
)
