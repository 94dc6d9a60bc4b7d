"""The real user plane of a gateway: a switch with the real program, whose table is read back after a write that it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from ipaddress import IPv4Address, IPv4Network

from attacks.gateway_world import HALF, REFUSE, CountingPlane, Time
from holdfast._core import Program, Switch
from holdfast.apps.bng.edges import AccessPort, CorePort, Edges, Route
from holdfast.apps.bng.program import compile_bng
from holdfast.apps.bng.single import SinglePlane
from holdfast.errors import HoldfastError
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device
from holdfast.subscribers.plane import Line, Session, Usage

EDGES = Edges(
    access=(AccessPort(port=1, mac="02:00:00:00:00:0a"),),
    core=(CorePort(port=9, mac="02:00:00:00:00:09", addresses=(IPv4Address("192.0.2.1"),)),),
    routes=(Route(prefix=IPv4Network("0.0.0.0/0"), port=9, next_hop_mac="06:00:00:00:00:09"),),
)


@cache
def compiled() -> Program:
    """Compile the gateway's program, once."""
    return compile_bng("single")


class SwitchPlane(CountingPlane):
    """Writes to the switch, and takes what is in it then for what forwards. Traffic is counted as in memory."""

    def __init__(self, time: Time, deliver: Callable[[Line, bytes], None]) -> None:
        super().__init__(time, deliver)
        client = LocalClient(Device(1, Switch(compiled(), executor="jit"), executor="jit", packet_out=lambda _: None))
        client.set_pipeline(compiled())
        self._real = SinglePlane(client, EDGES)

    def install(self, sessions: Iterable[Session]) -> None:
        """Install sessions in the switch: all, half or none of them, as the present fault says."""
        wanted = list(sessions)
        if self.fault == REFUSE:
            self._fail()
        wanted = wanted[: len(wanted) // 2] if self.fault == HALF else wanted
        try:
            self._real.install(wanted)
        except HoldfastError:
            self.failures += 1
            wanted = list(self._real.installed().values())
            raise
        finally:
            for session in wanted:
                if self.table.get(session.session_id) != session:
                    self._put(session)
        if self.fault is not None:
            self._fail()

    def remove(self, session_ids: Iterable[int]) -> dict[int, Usage]:
        """Remove sessions from the table and from the switch, and return their last usage."""
        before = set(self.table)
        try:
            return super().remove(session_ids)
        finally:
            self._real.remove(before - set(self.table))

    def installed(self) -> dict[int, Session]:
        """Return the sessions that the switch forwards, read back from it."""
        return self._real.installed()
