"""P4-Protect: 1+1 path protection for IPv4."""

from holdfast.apps.protect.acceptance import Acceptance
from holdfast.apps.protect.connection import Connection, ConnectionStatistics, Flow, PathStatistics
from holdfast.apps.protect.controller import ProtectController
from holdfast.apps.protect.health import Alarm, LatentErrorDetection
from holdfast.apps.protect.program import compile_protect
from holdfast.apps.protect.repair import Repair

__all__ = [
    "Acceptance",
    "Alarm",
    "Connection",
    "ConnectionStatistics",
    "Flow",
    "LatentErrorDetection",
    "PathStatistics",
    "ProtectController",
    "Repair",
    "compile_protect",
]
