"""The case study's fifth mechanism, which the paper does not have: 1+1 protection by ``apps/protect``.

LSR0 and LSR3 send every packet between the sources and B over both disjoint paths, and keep the first copy of each. Nothing is
detected, notified or switched. The other mechanisms are not known here.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.apps.protect import Flow, ProtectController
from holdfast.apps.protect.program import OVERHEAD_BYTES

PACKET_BYTES_MAX = 1500
"""The largest packet that is protected, in bytes; the tunnel's is larger by its headers."""


class ProtectedPath(ProtectController):
    """Protects what some hosts of one switch send to a host behind another, and the way back, between two switches in between."""

    def __init__(self, sources: Sequence[str], sink: str, ingress: str, egress: str) -> None:
        super().__init__(reroute=False, reaction_delay_ms=0.0, mtu=PACKET_BYTES_MAX + OVERHEAD_BYTES)
        self._sources = sources
        self._sink = sink
        self._ends = (ingress, egress)

    def on_start(self) -> None:
        """Install the routes, one protected connection in each direction, and the flows between sources and B."""
        super().on_start()
        there = self.add_connection(*self._ends)
        back = self.add_connection(*self._ends[::-1])
        sink = f"{self.topology.attachment(self._sink).host.address.ip}/32"
        for name in self._sources:
            source = f"{self.topology.attachment(name).host.address.ip}/32"
            self.add_flow(there, Flow(source=source, destination=sink))
            self.add_flow(back, Flow(source=sink, destination=source))
