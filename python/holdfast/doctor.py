"""``holdfast doctor``: what this machine can and cannot do, and why."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass

from holdfast import _core


@dataclass(frozen=True)
class Check:
    """One line of the report."""

    name: str
    ok: bool
    detail: str


def run() -> list[Check]:
    """All checks, the always possible ones first."""
    checks = [
        Check("python", sys.version_info >= (3, 11), f"{platform.python_version()} (3.11 or newer is needed)"),
        Check("compiler and machine code", _jit_works(), f"{platform.machine()}; tried on a small program"),
        Check("simulation", True, f"{os.cpu_count()} cores; needs nothing else"),
    ]
    checks += [Check(name, ok, detail) for name, (ok, detail) in _core.probe().items()]
    return checks


def _jit_works() -> bool:
    source = """
    #include <core.p4>
    #include <v1model.p4>
    struct headers {} struct metadata {}
    parser P(packet_in p, out headers h, inout metadata m, inout standard_metadata_t s) { state start { transition accept; } }
    control C(inout headers h, inout metadata m) { apply {} }
    control I(inout headers h, inout metadata m, inout standard_metadata_t s) { apply { s.egress_spec = 2; } }
    control E(inout headers h, inout metadata m, inout standard_metadata_t s) { apply {} }
    control D(packet_out p, in headers h) { apply {} }
    V1Switch(P(), C(), I(), E(), C(), D()) main;
    """
    program = _core.Program.compile_text(source, "doctor.p4")
    try:
        return _core.Switch(program, executor="jit").process(1, b"packet") == [(2, b"packet")]
    except _core.HoldfastError:
        return False
