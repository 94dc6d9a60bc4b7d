#!/usr/bin/env python3
"""benches/ns3_dumbbell.py [--quick] [--repeat N] [--json FILE]: the dumbbell in Holdfast and in ns-3, in turns, in one run.

100 bulk TCP flows, 1 Gb/s, 40 ms, 1448-byte segments, a drop-tail queue of 1000 packets. Times are medians of processor time.
Skips with a reason if a C++ compiler or ns-3 (Debian: libns3-dev) is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from holdfast._core import measure_simulation

SOURCE = Path(__file__).parent / "ns3" / "dumbbell.cc"
LIBRARIES = ("applications", "traffic-control", "internet", "bridge", "point-to-point", "network", "stats", "core")


def build(folder: Path) -> Path | str:
    """Compile the ns-3 program. Returns its path, or the reason as text if it cannot be compiled."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        return "there is no C++ compiler"
    if not Path("/usr/include/ns3/core-module.h").exists() and "NS3_INCLUDE" not in os.environ:
        return "ns-3 is not installed (Debian: apt install libns3-dev); NS3_INCLUDE names its headers elsewhere"
    program = folder / "dumbbell"
    include = [f"-I{os.environ['NS3_INCLUDE']}"] if "NS3_INCLUDE" in os.environ else []
    command = [compiler, "-O2", "-std=c++17", *include, str(SOURCE), "-o", str(program)]
    command += [f"-lns3-{name}" for name in LIBRARIES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return program if done.returncode == 0 else f"the ns-3 program does not compile:\n{done.stderr}"


def ns3(program: Path, seconds: float) -> dict[str, float]:
    """Run the ns-3 program for ``seconds`` of virtual time; return the numbers that it printed, by name."""
    output = subprocess.run([program, f"--seconds={seconds}"], capture_output=True, text=True, check=True).stdout
    return {key: float(value) for key, value in (line.split() for line in output.splitlines())}


def main() -> int:
    """Measure both simulators, print the results, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="1 s of virtual time instead of 10")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each")
    parser.add_argument("--json", type=Path, help="write the results there, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        if isinstance(program, str):
            print(f"skipped: {program}")
            return 0
        theirs, ours = [], []
        for _ in range(options.repeat):
            measured = measure_simulation("dumbbell", options.quick)
            ours.append(measured.processor_s / measured.packets)
            other = ns3(program, measured.simulated_s)
            theirs.append(other["processor_s"] / other["segments"])
    assert measured.goodput_bps is not None
    rows = {
        "holdfast": {
            "us_per_segment": statistics.median(ours) * 1e6,
            "segments": measured.packets,
            "goodput_mbps": measured.goodput_bps * 1e-6,
            "drops": measured.drops,
            "events": measured.events,
        },
        "ns-3": {
            "us_per_segment": statistics.median(theirs) * 1e6,
            "segments": int(other["segments"]),
            "goodput_mbps": other["goodput_bps"] * 1e-6,
            "drops": int(other["drops"]),
            "events": int(other["events"]),
        },
    }
    print(f"dumbbell, {measured.simulated_s:g} s of virtual time, {options.repeat} runs of each in turns")
    print(f"{'':10}{'us/segment':>12}{'segments':>12}{'goodput Mb/s':>14}{'drops':>9}{'events':>12}")
    for name, row in rows.items():
        print(
            f"{name:10}{row['us_per_segment']:12.2f}{row['segments']:12,}{row['goodput_mbps']:14.1f}"
            f"{row['drops']:9,}{row['events']:12,}"
        )
    ratio = rows["ns-3"]["us_per_segment"] / rows["holdfast"]["us_per_segment"]
    print(f"ns-3 takes {ratio:.1f} times as long per segment")
    if options.json:
        options.json.write_text(json.dumps(rows | {"ratio": ratio}, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
