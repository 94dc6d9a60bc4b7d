"""Short headers, telemetry and a firewall in P4: the evaluation of Claeson and Kruse's thesis (Chalmers, 2021), which used bmv2."""

from __future__ import annotations

from holdfast.experiments import Experiment, Part
from holdfast.experiments.p4_thesis_2021 import (
    firewall,
    headers,
    headers_live,
    hpcc,
    published,
    telemetry,
    telemetry_live,
)

PARTS: tuple[Part, ...] = (
    *headers.PARTS,
    *headers_live.PARTS,
    *telemetry.PARTS,
    *telemetry_live.PARTS,
    *firewall.PARTS,
    *hpcc.PARTS,
)
"""In the order in which they are run and shown. Studies of telemetry beyond the thesis come last."""

EXPERIMENT = Experiment(
    name="p4_thesis_2021",
    title="High-Speed, Low-Latency, and Secure Networking with P4",
    reference="O. Claeson, W. Kruse, Chalmers University of Technology, master's thesis, 2021",
    seeds=published.RUNS,
    parts=PARTS,
)
