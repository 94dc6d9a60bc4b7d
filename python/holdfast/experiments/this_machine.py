"""Conditions of measurements in real time: the machine, and its other load."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

import polars as pl


def machine() -> pl.DataFrame:
    """What a measurement in real time depends on."""
    cpuinfo = Path("/proc/cpuinfo")
    models = (
        re.findall(r"^model name\s*: (.*)$", cpuinfo.read_text(encoding="utf-8"), re.MULTILINE)
        if cpuinfo.is_file()
        else []
    )
    return pl.DataFrame(
        {
            "processor": [models[0] if models else platform.processor()],
            "processors": [os.cpu_count()],
            "system": [f"{platform.system()} {platform.release()}"],
            "load_before": [round(os.getloadavg()[0], 2)],
        }
    )


DISTURBED_LOAD = 0.5
"""Of a machine's load average before a measurement in real time: from there on something else ran half of the time or more."""


def disturbance(machine: pl.DataFrame) -> str:
    """What a headline over a measurement in real time has to say of its machine (:func:`machine`, one row per sitting)."""
    loads, processors = machine["load_before"].to_list(), machine["processors"][0]
    load = " to ".join(dict.fromkeys(f"{each:g}" for each in (min(loads), max(loads))))
    kind = "a machine that was busy with other work" if max(loads) >= DISTURBED_LOAD else "an idle machine"
    return f"on {kind} (load {load} on {processors} processors)"
