"""``holdfast doctor``: the features that this machine supports, and the reasons against others."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass

from holdfast import _core
from holdfast.errors import HoldfastError
from holdfast.live import control
from holdfast.operations import verbs


@dataclass(frozen=True)
class Check:
    """One line of the report."""

    name: str
    ok: bool
    detail: str


def run() -> list[Check]:
    """Make all checks of the machine and return the results, first those of features that need nothing from the machine."""
    checks = [
        Check("python", sys.version_info >= (3, 11), f"{platform.python_version()} (3.11 or newer is needed)"),
        Check("compiler and machine code", _jit_works(), f"{platform.machine()}; tried on a small program"),
        Check("simulation", True, f"{os.cpu_count()} cores; needs nothing else"),
    ]
    checks += [Check(name, ok, detail) for name, (ok, detail) in _core.probe().items()]
    return checks + [_is_closed(running) for running in control.running_switches()]


def _is_closed(running: control.Running) -> Check:
    """Check that only authorized clients can write to a running switch's P4Runtime server."""
    name = f"running switch {running.device_id} is closed"
    if not running.is_here:
        name += f" ({running.where})"
    try:
        asked = f"switch with device id {running.device_id}"
        server = verbs.ask(running.path, asked, control.AskServer(), control.RunningServer)
    except HoldfastError as error:
        return Check(name, False, f"not known: {error}")
    who = {
        "machine": "every process of this machine can write",
        "certificate": "clients with a certificate of its authority can write",
        "anybody": "open: every client that reaches this address can write (docs/SECURITY.md)",
    }
    return Check(name, server.access != "anybody", f"P4Runtime at {server.address}; {who[server.access]}")


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
