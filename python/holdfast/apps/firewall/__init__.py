"""A firewall: bindings of stations to ports, flows, rules, guards of address assignment, and its controller."""

from holdfast.apps.firewall.analysis import Finding, analyse
from holdfast.apps.firewall.controller import Dropped, FirewallController
from holdfast.apps.firewall.program import REASONS, compile_firewall
from holdfast.apps.firewall.rules import Rule, RuleSet, read

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
