"""The tables of the README, generated from the CSV files in ``results/`` alone.

``python -P -m holdfast.experiments.bier_tofino_2021.tests.report out/experiments/bier_tofino_2021`` takes the results there.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from holdfast.experiments import Finding
from holdfast.experiments.bier_tofino_2021 import (
    EXPERIMENT,
    drawing,
    mixes,
    passes,
    provisioning,
    published,
    replication,
    restoration,
    restoration_live,
    throughput,
)
from holdfast.experiments.tests.committed import Committed, Sections, found, markdown, number
from holdfast.experiments.this_machine import disturbance

COMMITTED = Committed(EXPERIMENT, Path(__file__).parents[1])
read, seeds = COMMITTED.read, COMMITTED.seeds

COMPARED = {"fig11": 2, "fig11_live": 1, "table2": 2, "fig15": 1, "fig16": 0, "fig17": 0}
"""The parts of which the paper prints numbers, with the decimals of ours."""


def beside() -> str:
    """Return Markdown of every number of the paper beside ours, a summary of the verdicts, and the paper's slips."""
    words, table = COMMITTED.beside(COMPARED)
    slips = "\n".join(f"- {slip}" for slip in published.SLIPS)
    return f"In all: {words}.\n\n{table}\n\nSlips of the paper:\n\n{slips}\n\n{published.DRAWINGS}"


def restored() -> str:
    """Return a Markdown table of Figure 11: restoration in ms by case, of the paper, simulated, and in real time."""
    simulated, live = read("fig11"), read("fig11_live")
    machine = read("fig11_live_machine")
    rows = []
    for case, name in drawing.CASES.items():
        key = dict(zip(("bier_frr", "ip_frr"), case, strict=True))
        row = [name, f"{published.FIGURE_11.value('restoration_ms', **key):g}"]
        for signalling in restoration.SIGNALLING_MS:
            suffix = f"_with_signalling_of_{signalling:g}_ms" if signalling else ""
            row.append(number(found(simulated, quantity=f"restoration_ms{suffix}", **key), 2))
        row.append(number(found(simulated, quantity="lost", **key), 0))
        row += [number(found(live, quantity=f"{name}_ms", **key), 2) for name in ("restoration", "after_detection")]
        row.append(number(found(live, quantity="lost", **key), 1))
        rows.append(row)
    slow = [f"signalling {signalling:g} ms" for signalling in restoration.SIGNALLING_MS[1:]]
    headings = ["", "paper", "simulated", *slow, "lost", "live", "live, after detection", "lost, live"]
    about = f"Milliseconds, and packets. Simulated {seeds('fig11')} runs; live {seeds('fig11_live')} in one sitting "
    return about + f"{disturbance(machine)}.\n\n" + markdown(headings, rows)


def phases() -> str:
    """Return a Markdown table of Table 2's numbers below the line rate, in Gb/s, by jitter and phase.

    The paper leaves jitter and phase open.
    """
    shown = throughput.by_phase(read("table2_runs"), read("table2_even_runs"))
    rows = []
    for (ports, next_hops), group in shown.group_by(["ports", "next_hops"], maintain_order=True):
        key = {"ports": ports, "next_hops": next_hops}
        jittered = group.filter(pl.col("jitter_frames") > 0).sort("phase")["mean"].to_list()
        even = group.filter(pl.col("jitter_frames") == 0)["mean"].to_list()
        measured, exact = (published.TABLE_2.value(name, **key) for name in ("measured_gbps", "model_gbps"))
        rows.append(
            [
                f"{next_hops} next hops, {ports} port{'s' * (int(str(ports)) > 1)}",
                f"{measured:g}",
                f"{exact:g}",
                number(found(read("table2"), quantity="model_gbps", **key), 2),
                *(f"{mean:.1f}" for mean in jittered),
                f"{min(even):.1f} .. {max(even):.1f}",
            ]
        )
    places = [f"{(i + 0.5) / throughput.PHASES:.2f}" for i in range(throughput.PHASES)]
    headings = ["", "paper, measured", "paper, T(i)", "T(i) exact", *places, "arrivals without jitter"]
    return "Gb/s, by the phase of packets that come back, in transmissions.\n\n" + markdown(headings, rows)


def rule() -> str:
    """Return a Markdown table of the losses in % with the ports that the provisioning rule gives, and with one less."""
    lines = []
    for name, of in (("fig16", "a program that only recirculates"), ("fig17", "BIER in mixes with unicast")):
        frame = read(f"{name}_tried")
        sizes = pl.col("sizes") if "sizes" in frame.columns else pl.lit(provisioning.SIZES)
        for chosen, words in (
            (
                (pl.col("missing_ports") == 0) & (sizes == provisioning.SIZES) & (pl.col("load") < 1),
                "ports of the rule",
            ),
            (
                (pl.col("missing_ports") == 0) & (sizes == provisioning.SIZES) & (pl.col("load") == 1),
                "the same, load exactly 1",
            ),
            ((pl.col("missing_ports") == 1) & (pl.col("load") > 1), "one port less"),
            (sizes != provisioning.SIZES, "ports of the rule, small unicast frames"),
        ):
            rows = frame.filter(chosen)
            if rows.is_empty():
                continue
            loads, lost = (sorted(rows[name].to_list()) for name in ("load", "loss_percent"))
            lines.append(
                [
                    of,
                    words,
                    f"{loads[0]:.2f} .. {loads[-1]:.2f}",
                    str(len(rows)),
                    f"{rows['runs_with_loss'].sum()} of {rows['runs'].sum()}",
                    f"{lost[0]:.2f} .. {lost[-1]:.2f}",
                    str(max(rows["max_packets"].to_list())),
                ]
            )
    headings = [
        "",
        "",
        "load by the formula",
        "points",
        "runs with loss",
        "lost of a pass, %",
        "longest queue, packets",
    ]
    return markdown(headings, lines)


def ways() -> str:
    """Return a Markdown table of the ways to replicate: throughput in Gb/s, passes and copies, by number of next hops."""
    frame = read("beyond")
    rows = []
    for (way, ports), (label, *_) in drawing.WAYS.items():
        for next_hops in replication.NEXT_HOPS:
            key = {"replication": way, "ports": ports, "next_hops": next_hops}
            row = [label, str(next_hops)]
            for quantity in ("last_gbps", "passes", "copies_sent", "copies_dropped"):
                cell = found(frame, quantity=quantity, **key)
                row.append("" if cell is None else f"{cell['ours']:.1f}")
            rows.append(row)
    headings = ["", "next hops", "last next hop, Gb/s", "passes", "copies sent", "copies made and dropped"]
    return markdown(headings, rows)


SECTIONS: Sections = (
    ("The paper's numbers beside ours", beside),
    ("Figure 11", restored),
    ("Table 2 and Figure 14 by phase", phases),
    ("Figures 16 and 17: the rule, tried", rule),
    ("Beyond the paper: three ways to replicate, 32 neighbours", ways),
)


def found_again(name: str) -> Finding:
    """Return the finding of the part ``name``, computed from its committed runs; nothing is simulated."""
    runs = read(f"{name}_runs") if name in dict(COMPARED) or name == "beyond" else pl.DataFrame()
    match name:
        case "fig11":
            return Finding(restoration.numbers(runs), {"": restoration.draw(runs)})
        case "fig11_live":
            machine = read("fig11_live_machine")
            return Finding(restoration_live.numbers(runs), {"": restoration_live.draw(runs, machine)})
        case "table2":
            even = read("table2_even_runs")
            figures = {"": throughput.draw(runs, even), "phases": throughput.draw_phases(runs, even)}
            return Finding(throughput.numbers(runs, even), figures)
        case "fig15":
            return Finding(passes.numbers(runs), {"": passes.draw(runs)})
        case "fig16":
            tried = provisioning.tried(runs, provisioning.KEYS)
            return Finding(provisioning.numbers(runs), {"": provisioning.draw(runs)}, {"tried": tried})
        case "fig17":
            tried = provisioning.tried(runs, mixes.KEYS)
            return Finding(mixes.numbers(runs), {"": mixes.draw(runs)}, {"tried": tried})
        case _:
            return Finding(replication.numbers(runs), {"": replication.draw(runs)})


if __name__ == "__main__":
    COMMITTED.regenerate(SECTIONS, found_again)
