"""The numbers of the P4-Protect paper, its contradictions, and the margins within which ours agree.

The paper prints no table: its numbers are in the text, and its Figures 6 to 8 have axes that the text does not give. Numbers that
are not in the text are not here. Nothing here runs anything.
"""

from __future__ import annotations

from holdfast.experiments import Criterion, Estimate, PublishedTable

RUNS = 20
"""The runs of each experiment (section 6.2), with 95 % intervals."""

FLOWS_PER_PAIR = 15
PAIRS = (1, 2, 3, 4)
LINE_RATE_GBPS = 100.0

MODES = ("plain", "unprotected", "protected")
"""Forwarding modes (section 6.1): a plain IP router, and P4-Protect with traffic that is not or that is protected."""

ENDS = ("PTI", "PTE")

FIGURE_6 = PublishedTable(
    name="fig6",
    place="Fig. 6, section 6.1",
    title="processing time relative to plain forwarding",
    keys=("end", "mode"),
    columns=("relative_percent",),
    rows=(
        ("PTI", "unprotected", 127),
        ("PTI", "protected", 166),
        ("PTE", "unprotected", 127),
        ("PTE", "protected", 127),
    ),
    decimals=0,
    criteria={
        "relative_percent": Criterion(
            10.0,
            "a quarter of the 39 points between protected and unprotected traffic, with every baseline that may be taken off",
        )
    },
)
"""Times in a Tofino's pipeline; ours are instructions of a processor, whose sizes need not be the same."""

FIGURE_7 = PublishedTable(
    name="fig7",
    place="Fig. 7, section 6.2",
    title="TCP goodput of 1 to 4 client/server pairs",
    keys=("pairs", "mode"),
    columns=("goodput_gbps",),
    rows=tuple((4, mode, 90) for mode in MODES),
    decimals=-1,
    criteria={
        "goodput_gbps": Criterion(5.0, "the paper says about 90 Gb/s, which is to the nearest ten", Estimate.MEAN, RUNS)
    },
)
"""Of fewer pairs the text says only that they do not fill the link; of the modes, that they are almost identical."""

FIGURE_8 = PublishedTable(
    name="fig8",
    place="Fig. 8, section 6.3",
    title="round-trip time deviation with protection, in percent of that without",
    keys=("law",),
    columns=("average_deviation_percent",),
    rows=(("around", 50), ("clipped", 50)),
    decimals=-1,
    criteria={"average_deviation_percent": Criterion(5.0, "the paper says about half, which is to the nearest ten")},
)
"""The text has one number, "about half", and does not say around which delay the jitter was. Both readings are put
beside it, so one number is judged twice."""

FIGURES_2_TO_4 = PublishedTable(
    name="scenarios",
    place="Figs. 2 to 4, section 4",
    title="packets that are forwarded, of four",
    keys=("figure", "algorithm"),
    columns=("forwarded",),
    rows=(("fig2", "window", 4), ("fig3", "window", 3), ("fig4", "window", 3)),
    decimals=0,
    criteria={"forwarded": Criterion(0.0, "a count of four packets", by_definition={})},
)
"""The arrivals are the paper's drawings, and its algorithm decides the rest."""

CLAIM_RATE_BPS = 1_000_000_000_000
CLAIM_PACKET_BYTES = 40
CLAIM_SN_BITS = 32

CLAIM = PublishedTable(
    name="claim",
    place="section 5.4.2",
    title="delay difference that can be compensated at 1 Tb/s with packets of 40 bytes",
    keys=("sn_bits",),
    columns=("delay_difference_s",),
    rows=((CLAIM_SN_BITS, 1.6),),
    decimals=1,
    criteria={"delay_difference_s": Criterion(0.05, "the paper's rounding, with every reading of what 40 bytes count")},
)

SLIPS = (
    "Section 5.4.2 says 1.6 s and not whether the 40 bytes are a copy on the line (0.69 s) or a packet before tunnel and Ethernet "
    "(up to 1.82 s).",
    "Section 6.2 says of Figure 7 that each pair uses a single TCP connection, and of the setup that each has 15 parallel flows.",
    "Section 6.1 says that P4-Protect's processing time at the PTE is the same for both kinds of traffic, without saying "
    "whether the second copies, which are dropped in ingress and never reach egress, are in that mean.",
)
"""Places where the text is not consistent, or leaves open what decides."""
