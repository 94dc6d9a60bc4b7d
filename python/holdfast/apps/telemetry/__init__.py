"""In-band Network Telemetry v2.1 and telemetry reports v2.0: programs, controllers, the decoder of reports and the collector."""

from holdfast.apps.telemetry.controller import TelemetryController
from holdfast.apps.telemetry.instructions import Instructions
from holdfast.apps.telemetry.program import COLLECTOR_PORT, INT_DSCP, INT_UDP_PORT, compile_telemetry
from holdfast.apps.telemetry.reports import Hop, MalformedReport, Report, decode
from holdfast.apps.telemetry.watchlist import Watch

__all__ = [
    "COLLECTOR_PORT",
    "INT_DSCP",
    "INT_UDP_PORT",
    "Hop",
    "Instructions",
    "MalformedReport",
    "Report",
    "TelemetryController",
    "Watch",
    "compile_telemetry",
    "decode",
]
