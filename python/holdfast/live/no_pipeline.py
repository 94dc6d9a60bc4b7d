"""The program of a switch that was started without one: it drops each packet.

A P4Runtime client sees no pipeline until it sets one.
"""

from __future__ import annotations

from functools import cache

from holdfast import _core

NAME = "no_pipeline"

_SOURCE = """
#include <core.p4>
#include <v1model.p4>
struct headers {}
struct metadata {}
parser P(packet_in p, out headers h, inout metadata m, inout standard_metadata_t s) { state start { transition accept; } }
control C(inout headers h, inout metadata m) { apply {} }
control I(inout headers h, inout metadata m, inout standard_metadata_t s) { apply { mark_to_drop(s); } }
control E(inout headers h, inout metadata m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in headers h) { apply {} }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


@cache
def program() -> _core.Program:
    """Return the compiled program that a switch runs until a client sets a pipeline; it drops every packet."""
    return _core.Program.compile_text(_SOURCE, f"{NAME}.p4")


__all__ = ["NAME", "program"]
