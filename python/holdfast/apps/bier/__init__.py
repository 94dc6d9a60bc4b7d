"""BIER (RFC 8279, RFC 8296): multicast without state per group in the core, and its fast reroute."""

from holdfast.apps.bier.controller import BierController
from holdfast.apps.bier.coverage import Coverage, Failure, failures
from holdfast.apps.bier.planning import Bift, Numbering, Plan, Scheme, SwitchPlan, number_switches
from holdfast.apps.bier.program import compile_bier
from holdfast.control.membership.members import channel

__all__ = [
    "BierController",
    "Bift",
    "Coverage",
    "Failure",
    "Numbering",
    "Plan",
    "Scheme",
    "SwitchPlan",
    "channel",
    "compile_bier",
    "failures",
    "number_switches",
]
