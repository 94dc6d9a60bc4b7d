"""The tables of the README, generated from the CSV files in ``results/`` alone.

``python -P -m holdfast.experiments.p4_thesis_2021.tests.report out/experiments/p4_thesis_2021`` takes the results there.
"""

from __future__ import annotations

from pathlib import Path

from holdfast.experiments import Finding
from holdfast.experiments.p4_thesis_2021 import (
    EXPERIMENT,
    firewall,
    firewall_runs,
    headers,
    headers_live,
    hpcc,
    published,
    telemetry,
    telemetry_live,
    telemetry_runs,
)
from holdfast.experiments.tests.committed import Committed, Sections, found, markdown, number
from holdfast.experiments.this_machine import disturbance, held_up

COMMITTED = Committed(EXPERIMENT, Path(__file__).parents[1])
read, seeds = COMMITTED.read, COMMITTED.seeds

COMPARED = {
    "table41": 3,
    "fig43": 2,
    "fig44": 3,
    "fig45": 2,
    "congestion": 1,
    "statements": 0,
    "firewall": 0,
}
"""The parts of which the thesis prints something, with the decimals of ours."""

STORED = {
    **dict.fromkeys(("table41", "fig41", "fig42", "fig43", "fig44", "fig45"), "table41_runs"),
    "minimum": "minimum_runs",
    **dict.fromkeys((*telemetry.FIGURES, "congestion", "statements"), "congestion_runs"),
    "beyond": "beyond_runs",
    "firewall": "firewall_runs",
    "headers_live": "headers_live_runs",
    "telemetry_live": "telemetry_live_runs",
    "hpcc_incast": "hpcc_incast_runs",
    "hpcc_fat_tree": "hpcc_fat_tree_runs",
    "hpcc_testbed": "hpcc_testbed_runs",
}
"""The file with the runs of each part, by part."""

HPCC = {"hpcc_incast": hpcc.found_incast, "hpcc_fat_tree": hpcc.found_tree, "hpcc_testbed": hpcc.found_testbed}


def beside() -> str:
    """Return Markdown of every number of the thesis beside ours, a summary of the verdicts, and the thesis's slips."""
    words, table = COMMITTED.beside(COMPARED)
    slips = "\n".join(f"- {slip}" for slip in published.SLIPS)
    shown = "\n".join(f"- {what}" for what in published.ONLY_IN_FIGURES)
    return (
        f"In all: {words}.\n\n{table}\n\nSlips of the thesis:\n\n{slips}\n\nOnly figures of the thesis show:\n\n{shown}"
    )


def lengths() -> str:
    """Return a Markdown table of latency in ms, jitter in ms and loss in % by packet length, simulated and in real time."""
    live = read("headers_live")
    where = read("headers_live_machine")
    rows = []
    for length in published.LENGTHS_BYTES:
        row = [str(length)]
        for part, decimals in (("fig43", 2), ("fig45", 2)):
            for stack in ("standard", "shorternet"):
                row.append(number(found(read(part), over=f"{length} bytes", quantity=f"{stack}_ms"), decimals))
        for quantity in ("latency_ms", "jitter_ms", "lost_percent"):
            for stack in ("standard", "shorternet"):
                row.append(number(found(live, stack=stack, packet_bytes=length, quantity=quantity), 3))
        rows.append(row)
    headings = ["bytes"]
    for place, quantities in (("simulated", ("latency", "jitter")), ("live", ("latency", "jitter", "lost, %"))):
        for quantity in quantities:
            headings += [f"{place}: {quantity}, standard", "Shorternet"]
    about = (
        f"Milliseconds. Simulated: {seeds('fig43')} flows of {published.PACKETS:,} packets; "
        f"live: {seeds('headers_live')} of {headers_live.PACKETS:,}, {disturbance(where)}; "
        f"{held_up(read('headers_live_runs'), headers_live.LATE_MS)}."
    )
    return f"{about}\n\n{markdown(headings, rows)}"


def saved() -> str:
    """Return a Markdown table of bytes on the wire with each header, and the percentage saved, by payload."""
    frame = read("minimum")
    rows = []
    for (payload,), _ in frame.group_by(["payload_bytes"], maintain_order=True):
        names = ("standard_wire_bytes", "shorternet_wire_bytes", "saved_percent")
        cells = (found(frame, payload_bytes=payload, quantity=name) for name in names)
        rows.append([str(payload), *(number(cell, decimals) for cell, decimals in zip(cells, (0, 0, 1), strict=True))])
    about = "Bytes of a packet on the wire, with preamble, gap, check sequence and padding."
    return f"{about}\n\n{markdown(['payload', 'standard', 'Shorternet', 'saved, %'], rows)}"


def congestion() -> str:
    """Return a Markdown table of the quantities of Figures 4.6 to 4.11 at a few rates, with INT and without."""
    rows = []
    for switches, flows in (*((n, 1) for n in published.SWITCHES), (4, 2)):
        for mode in ("off", "thesis"):
            for rate in (3.0, 4.5, 5.0, 6.0):
                key = {"switches": switches, "flows": flows, "mode": mode, "rate_mbps": rate}
                parts = dict.fromkeys(telemetry.QUANTITIES, "fig410")
                if flows == 1:
                    names = ("fig46", "fig47", "fig48", "fig49")
                    parts = dict(zip(telemetry.QUANTITIES, names, strict=True))
                else:
                    parts["lost_percent"] = "fig411"
                cells = (found(read(part), quantity=value, **key) for value, part in parts.items())
                where = f"{switches}, {flows} flow{'s' * (flows > 1)}, INT {'on' if mode == 'thesis' else 'off'}"
                decimals = (2, 0, 1, 2)
                rows.append([where, f"{rate:g}", *(number(c, d) for c, d in zip(cells, decimals, strict=True))])
    headings = ["switches", "Mb/s sent", "Mb/s received", "round trip, ms", "lost, %", "jitter, ms"]
    return f"Means of {seeds('fig46')} runs of 20 s.\n\n{markdown(headings, rows)}"


def in_real_time() -> str:
    """Return a Markdown table of kernel hosts in real time beside the simulation, with INT and without."""
    live, where = read("telemetry_live"), read("telemetry_live_machine")
    simulated = dict(zip(telemetry.QUANTITIES, ("fig46", "fig47", "fig48", "fig49"), strict=True))
    rows = []
    for mode in ("off", "thesis"):
        for rate in telemetry_live.RATES_MBPS:
            key = {"switches": 5, "flows": 1, "mode": mode, "rate_mbps": rate}
            row = ["on" if mode == "thesis" else "off", f"{rate:g}"]
            for value, decimals in zip(telemetry.QUANTITIES, (2, 0, 1, 2), strict=True):
                row.append(number(found(read(simulated[value]), quantity=value, **key), decimals))
                row.append(number(found(live, quantity=value, **key), decimals))
            rows.append(row)
    headings = ["INT", "Mb/s sent"]
    for quantity in ("Mb/s received", "round trip, ms", "lost, %", "jitter, ms"):
        headings += [quantity, "live"]
    about = (
        f"Five switches; live {seeds('telemetry_live')} runs of {telemetry_live.SECONDS} s, {disturbance(where)}; "
        f"{held_up(read('telemetry_live_runs'), telemetry_live.LATE_MS)}."
    )
    return f"{about}\n\n{markdown(headings, rows)}"


def formats() -> str:
    """Return a Markdown table of the formats of INT at two rates in Mb/s."""
    frame = read("beyond")
    rows = []
    for mode, sampling in telemetry_runs.BEYOND:
        name = mode if sampling == 1 else f"{mode}, {sampling:g} of packets"
        for rate in (3.0, 5.0):
            cells = [name, f"{rate:g}"]
            for value, decimals in (("bandwidth_mbps", 2), ("latency_ms", 0), ("lost_percent", 1), ("jitter_ms", 2)):
                cells.append(
                    number(found(frame, mode=mode, sampling=sampling, rate_mbps=rate, quantity=value), decimals)
                )
            sent = found(frame, mode=mode, sampling=sampling, rate_mbps=rate, quantity="bytes_between_switches")
            cells.append("" if sent is None else f"{sent['ours'] / 1e6:.1f}")
            rows.append(cells)
    headings = ["INT", "Mb/s sent", "Mb/s received", "round trip, ms", "lost, %", "jitter, ms", "MB between switches"]
    return markdown(headings, rows)


def injections() -> str:
    """Return a Markdown table of the firewall's cases: packets delivered in %, and reasons for drops."""
    frame = read("firewall_runs")
    rows = []
    for case in firewall_runs.CASES:
        own = frame.filter(packets=case)
        delivered = [f"{row['delivered_percent']:g}" for row in own.iter_rows(named=True)]
        reasons = dict.fromkeys(own["reasons"].to_list())
        rows.append([case, *delivered, "; ".join(reasons)])
    kinds = [f"{p['variant']}, {p['family']}" for p in firewall_runs.POINTS[:4]]
    return f"Percent of {firewall_runs.PACKETS} packets that arrive.\n\n" + markdown(
        ["packets", *kinds, "dropped as"], rows
    )


SECTIONS: Sections = (
    ("The thesis's numbers beside ours", beside),
    ("Latency and jitter by packet length", lengths),
    ("Beyond the thesis: Ethernet's minimum", saved),
    ("Figures 4.6 to 4.11", congestion),
    ("The same in real time", in_real_time),
    ("Beyond the thesis: INT v2.1 and sampling, five switches", formats),
    ("The firewall's injection tests", injections),
)


def found_again(name: str) -> Finding:
    """Return the finding of the part ``name``, computed from its committed runs; nothing is simulated."""
    runs = read(STORED[name])
    if name in telemetry.FIGURES or name in ("congestion", "statements", "beyond"):
        finding = telemetry.found(name, runs)
    elif name == "firewall":
        finding = Finding(firewall.numbers(runs))
    elif name in HPCC:
        finding = HPCC[name](runs)
    elif name == "headers_live":
        finding = headers_live.found(runs, read("headers_live_machine"))
    elif name == "telemetry_live":
        finding = telemetry_live.found(runs, read("telemetry_live_machine"))
    else:
        finding = headers.found(name, runs)
    return Finding(finding.numbers, finding.figures)


if __name__ == "__main__":
    COMMITTED.regenerate(SECTIONS, found_again)
