"""Routers and the controllers that fill them with shortest paths, with and without IP fast reroute."""

from holdfast.apps.router.alternates import (
    Alternate,
    AlternateKind,
    Alternates,
    LinkCoverage,
    Protection,
    link_coverage,
)
from holdfast.apps.router.controller import RouterController, compile_router
from holdfast.apps.router.ipfrr import IpFrrController, compile_ipfrr

__all__ = [
    "Alternate",
    "AlternateKind",
    "Alternates",
    "IpFrrController",
    "LinkCoverage",
    "Protection",
    "RouterController",
    "compile_ipfrr",
    "compile_router",
    "link_coverage",
]
