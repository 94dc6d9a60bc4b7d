"""``mpls.p4`` and what a network must have for it: the packets that tell the program of ports that change."""

from __future__ import annotations

from pathlib import Path

from holdfast._core import Program
from holdfast.topology import Topology

HERE = Path(__file__).parent

EVENT_PORT = 509
"""The port at which the agent's packets enter; the program's default."""

LSPS = 1024
"""LSPs of a network, number 0 left out; the program's default."""

_EVENT = bytes(12) + b"\x88\xb5" + bytes(4)
_PORT_OFFSET = 14


def compile_mpls(defines: dict[str, str] | None = None) -> Program:
    """Compile ``mpls.p4``. ``defines`` may set LSPS, EVENT_PORT and CPU_PORT."""
    return Program.compile(str(HERE / "mpls.p4"), defines=defines or {})


def add_port_events(topology: Topology) -> None:
    """Make every switch generate a packet when one of its ports goes down or comes up.

    Without these packets only the neighbours of a failure learn of it: mechanisms *path* and *loopbackvar* need them.
    """
    for switch in topology.switches:
        topology.add_packet_generator(switch, EVENT_PORT, _EVENT, on_port_down=True, port_offset=_PORT_OFFSET)
        topology.add_packet_generator(switch, EVENT_PORT, _EVENT, on_port_up=True, port_offset=_PORT_OFFSET)
