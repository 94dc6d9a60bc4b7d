"""P4-Protect: 1+1 path protection for IPv4."""

from holdfast.apps.protect.acceptance import Acceptance
from holdfast.apps.protect.connection import Connection, ConnectionStatistics, Flow
from holdfast.apps.protect.controller import ProtectController, compile_protect
from holdfast.apps.protect.paths import NoDisjointPathsError, Path, disjoint_paths

__all__ = [
    "Acceptance",
    "Connection",
    "ConnectionStatistics",
    "Flow",
    "NoDisjointPathsError",
    "Path",
    "ProtectController",
    "compile_protect",
    "disjoint_paths",
]
