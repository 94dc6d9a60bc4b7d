"""A label switching router, its label switched paths, and their recovery in the data plane."""

from holdfast.apps.mpls.controller import MplsController
from holdfast.apps.mpls.lsp import Connection, Fec, LastHop, Lsp, LspStatistics, Mechanism, Recovery, TtlModel
from holdfast.apps.mpls.program import EVENT_PORT, add_port_events, compile_mpls

__all__ = [
    "EVENT_PORT",
    "Connection",
    "Fec",
    "LastHop",
    "Lsp",
    "LspStatistics",
    "Mechanism",
    "MplsController",
    "Recovery",
    "TtlModel",
    "add_port_events",
    "compile_mpls",
]
