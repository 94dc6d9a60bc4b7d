"""A firewall: bindings of stations to ports, flows, rules, guards of address assignment, and its controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.apps.firewall.controller import Dropped, FirewallController
from holdfast.apps.firewall.program import REASONS, compile_firewall
from holdfast.apps.firewall.rules import Rule, RuleSet, read

if TYPE_CHECKING:
    from holdfast.apps.firewall.analysis import Finding, analyse

__all__ = [
    "REASONS",
    "Dropped",
    "Finding",
    "FirewallController",
    "Rule",
    "RuleSet",
    "analyse",
    "compile_firewall",
    "read",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        # The analysis alone needs numpy, which comes with holdfast[compare].
        if name not in ("Finding", "analyse"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from holdfast.apps.firewall import analysis

        return getattr(analysis, name)
