"""The checks of a gateway's interfaces, without which packets would be lost and nobody would say so.

They must have room for its packets, and switches that run already must have those of the configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import LiveError
from holdfast.live import control
from holdfast.subscribers.dialer import mtu_of
from holdfast.subscribers.pppoe import OVERHEAD

if TYPE_CHECKING:
    from holdfast.apps.bng.live import LiveConfiguration, SwitchSettings

_TAG_BYTES = 4
_LOCAL = ("127.", "localhost:", "[::1]:", "unix:")
_PLAIN_TAG = 0x8100
"""The EtherType of an outer tag that Linux does not count in an interface's MTU; it counts all other tags."""


class Need(NamedTuple):
    """The MTU that an interface needs, in bytes, and the reason."""

    interface: str
    mtu: int
    reason: str


def needs(configuration: LiveConfiguration) -> list[Need]:
    """Return the MTU in bytes that each interface of switches on this machine needs.

    ``max_payload`` and PPPoE (RFC 2516, section 7; RFC 4638) determine it towards access lines, for at most one tag of 0x8100.
    Between balancer and planes the tag of the access port is added. Towards the core it is the largest of the routes' ``mtu``.
    """
    payload = configuration.gateway.max_payload
    line = payload + OVERHEAD + (0 if configuration.s_tpid == _PLAIN_TAG else _TAG_BYTES)
    cable = payload + OVERHEAD + 2 * _TAG_BYTES
    core = {
        each.port: max((r.mtu for r in configuration.routes if r.port == each.port), default=0)
        for each in configuration.core
    }
    found: list[Need] = []

    def add(settings: SwitchSettings, ports: Iterable[int], mtu: int, reason: str) -> None:
        if settings.grpc.startswith(_LOCAL):
            found.extend(Need(settings.interfaces[port], mtu, reason) for port in ports)

    of_lines = f"max_payload {payload} and PPPoE's header on lines"
    if configuration.switch is not None:
        add(configuration.switch, configuration.access, line, of_lines)
        for port, mtu in core.items():
            add(configuration.switch, [port], mtu, "the mtu of a route")
    if configuration.split is not None:
        split, of_cables = (
            configuration.split,
            f"max_payload {payload}, PPPoE's header and tags between balancer and planes",
        )
        add(split.balancer, configuration.access, line, of_lines)
        add(split.authentication, [split.authentication.trunk], cable, of_cables)
        add(split.balancer, [split.authentication.access_port], cable, of_cables)
        add(split.balancer, split.balancer.uplinks.values(), max(core.values()), "the mtu of a route")
        for plane in split.planes.values():
            add(plane, [plane.trunk], cable, of_cables)
            add(split.balancer, [plane.access_port], cable, of_cables)
            for port, mtu in core.items():
                add(plane, [port], mtu, "the mtu of a route")
            add(split.balancer, [plane.core_port], max(core.values()), "the mtu of a route")
    return found


def check(configuration: LiveConfiguration, mtu: Callable[[str], int | None] = mtu_of) -> None:
    """Raise :class:`LiveError` if the MTU of an interface is too small. Missing interfaces are reported by the switches.

    ``mtu``: returns the MTU in bytes of the interface with this name; None if there is no such interface.
    """
    for each in needs(configuration):
        has = mtu(each.interface)
        if has is not None and has < each.mtu:
            hint = f"ip link set {each.interface} mtu {each.mtu}"
            raise LiveError(f"{each.interface}: its MTU is {has}, and {each.mtu} is needed for {each.reason} ({hint})")


def check_running(name: str, settings: SwitchSettings) -> str | None:
    """Check that a running switch has the interfaces of the configuration at its ports. It may have more.

    Return None if it has them, and a sentence with the reason if they cannot be compared, as the switch is another machine's or
    does not answer. Raise :class:`LiveError` if an interface is missing or another is at its port.
    """
    unknown = f"nobody has compared the interfaces of {settings.grpc} with the configuration"
    if not settings.grpc.startswith(_LOCAL):
        return f"{unknown}: it is another machine's"
    try:
        address = control.ask(settings.device_id, control.AskServer(), control.RunningServer).address
        rows = control.ask(settings.device_id, control.ListPorts(), control.Ports).ports
    except LiveError as error:
        return f"{unknown}: {error}"
    if not _is_same(address, settings.grpc):
        return f"{unknown}: the switch with device id {settings.device_id} of this machine is at {address}"
    has = {row.port: row.interface for row in rows}
    wrong = [port for port, interface in sorted(settings.interfaces.items()) if has.get(port) != interface]
    if not wrong:
        return None
    differences = ", ".join(
        f"port {port} is {has.get(port, 'not there')} and should be {settings.interfaces[port]}" for port in wrong
    )
    hints = [f"holdfast port remove {port} --device-id {settings.device_id}" for port in wrong if port in has]
    hints += [
        f"holdfast port add {port}@{settings.interfaces[port]} --device-id {settings.device_id}" for port in wrong
    ]
    raise LiveError(
        f"the {name} that runs at {settings.grpc} has other interfaces than the configuration: {differences} "
        f"({'; '.join(hints)}; or end it, and this program starts it anew)"
    )


def _is_same(one: str, other: str) -> bool:
    """Return True if two addresses of this machine lead to one server, which may listen at several by one TCP port."""
    if one.startswith("unix:") or other.startswith("unix:"):
        return one == other
    return one.rpartition(":")[2] == other.rpartition(":")[2]
