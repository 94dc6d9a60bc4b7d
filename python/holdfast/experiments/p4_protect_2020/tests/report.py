"""The tables of the README, generated from the CSV files in ``results/`` alone.

``python -P -m holdfast.experiments.p4_protect_2020.tests.report out/experiments/p4_protect_2020`` takes the results there,
the times of Figure 6 as one sitting more.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from holdfast import whole_files
from holdfast.experiments import Finding, this_machine
from holdfast.experiments.p4_protect_2020 import (
    EXPERIMENT,
    delay_difference,
    goodput,
    goodput_live,
    jitter,
    processing,
    published,
    scenarios,
)
from holdfast.experiments.tests.committed import Committed, Sections, found, markdown, number

COMMITTED = Committed(EXPERIMENT, Path(__file__).parents[1])
read, seeds = COMMITTED.read, COMMITTED.seeds

COMPARED = {"scenarios": 0, "claim": 3, "fig6": 0, "fig7": 1, "fig8": 1}
"""The parts of which the paper prints numbers, with the decimals of ours."""

SITTINGS = ("fig6_sittings", "fig6_machines")
"""The files kept of every sitting of Figure 6's times: the runs, and the machine with its load."""


def beside() -> str:
    """Return Markdown of every number of the paper beside ours, and a summary of the verdicts."""
    words, table = COMMITTED.beside(COMPARED)
    return f"In all: {words}. Figure 8's number is one, judged with each of two readings.\n\n{table}"


def what_came_out() -> str:
    """Return a Markdown table of the packets that each path brought and that were forwarded in Figures 2 to 4."""
    frame = read("scenarios_events")
    rows = []
    for row in frame.iter_rows(named=True):
        numbers = found(read("scenarios"), figure=row["figure"], algorithm=row["algorithm"], quantity="worst_delay_ms")
        rows.append(
            [
                scenarios.SCRIPTS[row["figure"]].title,
                row["algorithm"],
                row["path1_numbers"],
                row["path2_numbers"],
                row["forwarded_numbers"],
                number(numbers, 1),
            ]
        )
    return markdown(["", "algorithm", "path 1", "path 2", "forwarded", "longest delay, ms"], rows)


def limits() -> str:
    """Return a Markdown table of the largest harmless delay in packets, measured and expected, by bits of sequence numbers."""
    frame = read("claim")
    rows = []
    for bits in dict.fromkeys(frame["sn_bits"].sort()):
        measured = found(frame, sn_bits=bits, quantity="harmless_packets")
        expected = found(frame, sn_bits=bits, quantity="harmless_packets_expected")
        rows.append([str(bits), number(measured, 0) or "not measured", number(expected, 0)])
    return markdown(["bits", "packets behind without harm", "W - 1"], rows)


def readings() -> str:
    """Return Markdown of how many seconds the window lasts, for each meaning of the paper's 40 bytes, and the claim's verdict."""
    frame = read("claim")
    bits = published.CLAIM_SN_BITS
    claimed = published.CLAIM.value("delay_difference_s", sn_bits=bits)
    rows, values = [], []
    for name, (words, size) in delay_difference.READINGS.items():
        row = found(frame, sn_bits=bits, quantity=f"{name}_s")
        assert row is not None
        values.append(row["ours"])
        rows.append([name, words, str(size), f"{row['ours']:.2f}", _side(row["ours"], claimed)])
    fitting = delay_difference.bytes_for()
    verdict = (
        f"depends on what 40 bytes counts: from {min(values):.2f} to {max(values):.2f} s"
        if min(values) < claimed < max(values)
        else f"{_side(max(values), claimed)} with every reading"
    )
    return (
        f"The paper's {claimed:g} s: {verdict}. A copy would have to take {fitting[0]} to {fitting[-1]} bytes of the line.\n\n"
        + markdown(["reading", "the 40 bytes are", "bytes per copy", "2^31 - 1 packets at 1 Tb/s, s", "paper"], rows)
    )


def _side(ours: float, claimed: float) -> str:
    """Return "the same", "says more" or "says less": how the paper's claim compares with our time, to the claim's decimals."""
    rounded = round(ours, published.CLAIM.decimals)
    return "the same" if rounded == claimed else "says more" if rounded < claimed else "says less"


def _machine(row: Mapping[str, Any]) -> str:
    return f"{row['processor']}, {row['processors']} processors, {row['system']}"


def costs() -> str:
    """Return a Markdown table of Figure 6 in instructions per packet and in % of plain forwarding."""
    frame = read("fig6")
    rows = []
    for end, modes in processing.FORWARDING.items():
        for mode in modes:
            row = [end, mode]
            for quantity in ("instructions_hop", "instructions"):
                row.append(number(found(frame, end=end, mode=mode, quantity=quantity), 0))
            for name in processing.BASELINES:
                row.append(number(found(frame, end=end, mode=mode, quantity=f"relative_percent_{name}"), 0))
            rows.append(row)
    ordered = {
        end: [name.replace("_", " ") for name in processing.BASELINES if processing.in_order(frame, end, name)]
        for end in processing.FORWARDING
    }
    said = "; ".join(
        f"at the {end} with {len(names)} of {len(processing.BASELINES)} baselines" for end, names in ordered.items()
    )
    headings = ["", "", "hop", "program", *(f"% of plain: {name.replace('_', ' ')}" for name in processing.BASELINES)]
    return f"Plain < unprotected < protected {said}.\n\n" + markdown(headings, rows)


def times() -> str:
    """Return a Markdown table of the times of Figure 6, in % of plain forwarding, as means over the sittings (measurements)."""
    frame, machines = read("fig6"), read("fig6_machines")
    rows = []
    for end, modes in processing.FORWARDING.items():
        for mode in modes[1:]:
            row = [end, mode]
            for size in processing.SIZES_BYTES:
                for quantity in ("time_percent", "time_hop_percent"):
                    row.append(number(found(frame, end=end, mode=mode, quantity=f"{quantity}_{size}_bytes"), 0))
            rows.append(row)
    headings = ["", ""]
    for size in processing.SIZES_BYTES:
        headings += [f"{size} bytes: program", "hop"]
    kinds = "; ".join(dict.fromkeys(_machine(row) for row in machines.iter_rows(named=True)))
    about = (
        f"% of plain forwarding, means of {len(machines)} sittings of {seeds('fig6')} runs "
        f"{this_machine.disturbance(machines)}, with the "
        f"95 % prediction interval for another sitting there. {kinds}."
    )
    return f"{about}\n\n" + markdown(headings, rows)


def goodputs() -> str:
    """Return a Markdown table of Figure 7: goodput in Gb/s by pairs and mode, simulated and in real time."""
    simulated, live = read("fig7"), read("fig7_live")
    rows = []
    for pairs in published.PAIRS:
        for mode in published.MODES:
            rows.append(
                [
                    str(pairs),
                    mode,
                    number(found(simulated, pairs=pairs, mode=mode, quantity="goodput_gbps"), 2),
                    number(found(simulated, pairs=pairs, mode=mode, quantity="goodput_gbps_hosts_at_line_rate"), 2),
                    number(found(live, pairs=pairs, mode=mode, quantity="goodput_gbps"), 2),
                    number(found(live, pairs=pairs, mode=mode, quantity="relative_percent"), 0),
                ]
            )
    headings = ["pairs", "", "hosts at 30 Gb/s", "hosts at 100 Gb/s", "live, disturbed", "live, % of plain"]
    machine = read("fig7_live_machine")
    about = (
        f"Gb/s. Simulated {seeds('fig7')} runs, live {seeds('fig7_live')} in one sitting {this_machine.disturbance(machine)}: "
        f"{_machine(machine.row(0, named=True))}. The intervals of the live runs do not cover another sitting."
    )
    return f"{about}\n\n" + markdown(headings, rows)


def deviations() -> str:
    """Return a Markdown table of Figure 8: deviation with protection in % of that without, by law of jitter."""
    frame = read("fig8")
    rows = []
    for law in jitter.LAWS:
        closed = found(frame, law=law, quantity="mdev_closed_form_percent")
        values = [number(found(frame, law=law, quantity=f"{name}_percent"), 1) for name in jitter.MEASURES]
        rows.append([law, *values, number(closed, 1)])
    headings = ["netem", *(name.replace("_", " ") for name in jitter.MEASURES), "mdev, closed form"]
    return f"{seeds('fig8')} seeds; with protection in % of without.\n\n" + markdown(headings, rows)


def close_pings() -> str:
    """Return a Markdown table of deviation and lost pings, in %, when pings follow each other closely."""
    frame = read("fig8")
    rows = []
    for apart in jitter.CLOSE:
        row = [f"{apart:g} J"]
        for algorithm in ("window", "vector"):
            for measure in ("average_deviation", "lost"):
                quantity = f"{measure}_percent_{algorithm}_pings_{apart:g}_j_apart"
                row.append(number(found(frame, law="around", quantity=quantity), 1))
        rows.append(row)
    headings = ["time between pings", "window: deviation, %", "lost, %", "vector: deviation, %", "lost, %"]
    return markdown(headings, rows)


SECTIONS: Sections = (
    ("The paper's numbers beside ours", beside),
    ("Figures 2 to 4", what_came_out),
    ("The claim of 1.6 s: where the window ends", limits),
    ("The claim of 1.6 s: in seconds", readings),
    ("Figure 6: instructions per packet", costs),
    ("Figure 6: times, over sittings", times),
    ("Figure 7", goodputs),
    ("Figure 8", deviations),
    ("Figure 8 with pings that overtake each other", close_pings),
)


def collect(out: Path) -> None:
    """Copy the results in ``out``, a folder of ``holdfast reproduce``; add its sitting of Figure 6 if it is new."""
    kept = {name: read(name) if (COMMITTED.results / f"{name}.csv").is_file() else None for name in SITTINGS}
    COMMITTED.collect(out)
    files = [COMMITTED.results / f"fig6_{name}.csv" for name in ("runs", "machine")]
    if not files[0].is_file():
        return
    added = {name: pl.read_csv(file) for name, file in zip(SITTINGS, files, strict=True)}
    for file in files:
        file.unlink()
    add_sitting(kept, added)


def add_sitting(kept: Mapping[str, pl.DataFrame | None], added: Mapping[str, pl.DataFrame]) -> None:
    """Write the sittings ``kept`` and the new one ``added``, unless the new one's runs are among them."""
    before, runs = (each["fig6_sittings"] for each in (kept, added))
    assert runs is not None
    if before is not None and len(runs.join(before, on=runs.columns, how="semi")) > 0:
        return
    number = 1 if before is None else before["sitting"].to_list()[-1] + 1
    for name, frame in added.items():
        numbered = frame.select(pl.lit(number).alias("sitting"), pl.all())
        earlier = kept[name]
        whole = numbered if earlier is None else pl.concat([earlier, numbered], how="vertical_relaxed")
        whole_files.write(COMMITTED.results / f"{name}.csv", whole.write_csv)


def found_again(name: str) -> Finding:
    """Return the finding of the part ``name``, computed from its committed runs; nothing is simulated."""
    match name:
        case "claim":
            runs = read("claim_runs")
            return Finding(delay_difference.numbers(runs), {"": delay_difference.draw(runs)})
        case "fig6":
            rows = processing.numbers(read("fig6_sittings"), read("fig6_instructions"))
            figure = processing.draw(rows)
            return Finding(rows, {} if figure is None else {"": figure})
        case "fig7":
            runs = read("fig7_runs")
            return Finding(goodput.numbers(runs), {"": goodput.draw(runs)})
        case "fig7_live":
            return goodput_live.found(read("fig7_live_runs"), read("fig7_live_machine"))
        case "fig8":
            runs, close = read("fig8_runs"), read("fig8_close_runs")
            return Finding(jitter.numbers(runs, close), {"": jitter.draw(runs), "close": jitter.draw_close(close)})
        case _:
            frame = read("scenarios").select("figure", "algorithm", "quantity", "ours", "low", "high")
            return Finding(frame)


if __name__ == "__main__":
    COMMITTED.regenerate(SECTIONS, found_again, collect)
