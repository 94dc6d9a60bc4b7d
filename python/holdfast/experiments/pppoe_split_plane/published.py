"""The two tables of xFlow Research's demonstration of split data planes, and the margins within which ours agree.

The tables have no units of the packets, no load, no repetitions and no code. Nothing here runs anything.
"""

from __future__ import annotations

from holdfast.experiments import Criterion, PublishedTable

SPEEDS = (
    (30, 232.67, 220.50, 5.2),
    (60, 276.68, 241.48, 12.7),
    (90, 263.58, 228.55, 13.3),
    (120, 223.98, 212.01, 5.3),
    (150, 248.70, 244.15, 1.8),
    (180, 245.82, 240.83, 2.0),
    (210, 231.93, 204.90, 11.7),
    (240, 244.94, 220.88, 9.8),
    (270, 230.00, 216.27, 6.0),
    (300, 234.43, 214.25, 8.6),
    (600, 460.69, 429.88, 6.7),
    (12_000, 272.99, 250.34, 8.3),
    (17_937, 301.60, 280.41, 7.0),
    (23_883, 281.84, 262.58, 6.8),
    (59_932, 264.36, 243.85, 7.8),
)
"""The rows of the first table.

Packets; "packet processing speed" in ms with a single and with a split plane; "improvement" in percent.
"""

LATENCIES = (
    (30, 6_980, 6_615),
    (60, 16_601, 14_489),
    (90, 23_722, 20_570),
    (120, 26_877, 25_441),
    (150, 37_305, 36_623),
    (180, 44_247, 43_349),
    (210, 48_705, 43_028),
    (240, 58_785, 53_012),
    (270, 62_099, 58_393),
    (300, 70_328, 64_276),
    (600, 276_411, 257_926),
    (12_000, 3_275_861, 3_004_129),
    (17_937, 5_409_858, 5_029_730),
    (23_883, 6_731_254, 6_271_139),
    (59_932, 15_843_742, 14_614_597),
    (119_476, 38_559_911, 39_078_452),
)
"""The rows of the second table: packets; "average latency" in ms with a single and with a split plane."""

PACKETS = tuple(row[0] for row in LATENCIES)

LEFT_OUT = 119_476
"""Packets of the row that is in the second table only."""

FITTED = (30, 90, 150, 210, 270)
"""Rows of the first table from which the service times come: every other one of the ten that are 30 packets apart."""

PLANES = ("single", "split")


def mean_gain_percent(rows: int = len(SPEEDS)) -> float:
    """Return the mean of the printed gains in percent over the first ``rows`` rows of Table 1."""
    return sum(row[3] for row in SPEEDS[:rows]) / rows


def ms_per_packet(packets: int, plane: str) -> float:
    """Return the milliseconds per packet in the row of Table 2 with ``packets`` packets, for one kind of gateway."""
    [row] = [row for row in LATENCIES if row[0] == packets]
    return row[1 + PLANES.index(plane)] / packets


_MARGIN_MS = 9.0
_REASON = "half of 7.5 % of 240 ms, the gain that the paper claims"

TABLE_1 = PublishedTable(
    name="table1",
    place="first table",
    title="processing time of a packet with a single and with a split plane",
    keys=("packets", "fitted"),
    columns=("single_ms", "split_ms", "gain_percent"),
    rows=tuple((row[0], row[0] in FITTED, *row[1:]) for row in SPEEDS),
    criteria={
        "single_ms": Criterion(_MARGIN_MS, _REASON, by_definition={"fitted": True}),
        "split_ms": Criterion(_MARGIN_MS, _REASON, by_definition={"fitted": True}),
        "gain_percent": Criterion(3.75, "half of the mean gain", by_definition={"fitted": True}),
    },
)
"""Judged are the rows from which nothing was fitted."""

TABLE_2 = PublishedTable(
    name="table2",
    place="second table",
    title="average latency, which is the first table times the number of packets",
    keys=("packets", "in_table_1"),
    columns=("single_ms", "split_ms"),
    rows=tuple((row[0], row[0] != LEFT_OUT, *row[1:]) for row in LATENCIES),
    decimals=0,
    criteria={
        name: Criterion(
            _MARGIN_MS * LEFT_OUT,
            f"{_MARGIN_MS:g} ms a packet, as in the first table",
            by_definition={"in_table_1": True},
        )
        for name in ("single_ms", "split_ms")
    },
)
"""Of the row that is in this table only, the numbers are judged; the others are those of the first table again."""

GAIN = PublishedTable(
    name="gain",
    place="both tables",
    title="mean improvement over the rows",
    keys=("rows",),
    columns=("gain_percent",),
    rows=(("those of the first table that are not fitted", 7.5), ("the row that is left out", -1.3)),
    decimals=1,
    criteria={"gain_percent": Criterion(3.75, "half of the gain")},
)
