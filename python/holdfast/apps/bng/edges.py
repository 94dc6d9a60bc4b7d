"""The edges of a gateway: access ports, core ports, next hops in the core, and the rate limits of packets to the controller."""

from __future__ import annotations

from functools import cached_property
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Annotated

from pydantic import Field, field_validator, model_validator

from holdfast.apps.bng import program
from holdfast.parameters import Parameters

PortNumber = Annotated[int, Field(ge=1, le=509)]
"""A port of a switch that is not the controller's."""

PacketsPerSecond = Annotated[int, Field(ge=1, le=10_000_000)]

MacAddress = Annotated[str, Field(pattern="^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}$")]


def mac_bytes(mac: str) -> bytes:
    """Return the six bytes of a MAC address in the form ``02:00:00:00:00:01``."""
    return bytes.fromhex(mac.replace(":", ""))


class AccessPort(Parameters):
    """A port towards an access node. ``mac``: the gateway's there. ``s_tpid``: the EtherType of outer tags that are sent."""

    port: PortNumber
    mac: MacAddress
    s_tpid: int = Field(default=0x8100)

    @field_validator("s_tpid")
    @classmethod
    def _known(cls, value: int) -> int:
        if value not in (0x8100, 0x88A8):
            raise ValueError("it must be 0x8100 or 0x88a8")
        return value


class CorePort(Parameters):
    """A port towards the core. ``addresses``: the gateway's own there, for which it answers ARP and neighbour solicitations."""

    port: PortNumber
    mac: MacAddress
    addresses: tuple[IPv4Address | IPv6Address, ...] = ()


class Route(Parameters):
    """A prefix that is reached through a core port and the MAC address of its next hop. ``mtu``: in bytes of IP."""

    prefix: IPv4Network | IPv6Network
    port: PortNumber
    next_hop_mac: MacAddress
    mtu: int = Field(default=1500, ge=68, le=65535)


class Rate(Parameters):
    """Packets per second, and how many may come at once."""

    per_s: PacketsPerSecond
    burst: PacketsPerSecond


class ControlRates(Parameters):
    """The rates of packets to the controller, in each of the three classes of a line's frames: PADI, other discovery, PPP.

    A line is sure of ``line_committed``, and never has more than ``line_peak``. So are the lines of an access node (outer tag)
    together of ``node_committed``, and have beyond that at most ``node_peak``; each is at least a line's. Beyond what is committed,
    all lines together have at most ``padi``, ``discovery`` and ``ppp``; the committed packets of all lines have ``committed``.
    ``core``: ARP and neighbour discovery.
    """

    line_committed: Rate = Rate(per_s=10, burst=50)
    line_peak: Rate = Rate(per_s=5_000, burst=5_000)
    node_committed: Rate = Rate(per_s=5_000, burst=5_000)
    node_peak: Rate = Rate(per_s=5_000, burst=5_000)
    padi: Rate = Rate(per_s=2_000, burst=2_000)
    discovery: Rate = Rate(per_s=5_000, burst=5_000)
    ppp: Rate = Rate(per_s=20_000, burst=20_000)
    committed: Rate = Rate(per_s=20_000, burst=20_000)
    core: Rate = Rate(per_s=1_000, burst=1_000)

    @model_validator(mode="after")
    def _check(self) -> ControlRates:
        if self.line_committed.per_s > self.line_peak.per_s or self.line_committed.burst > self.line_peak.burst:
            raise ValueError("line_committed is more than line_peak")
        return self


class Edges(Parameters):
    """The ports, routes and rates around a user plane. Ports differ from each other, and routes go through core ports."""

    access: tuple[AccessPort, ...]
    core: tuple[CorePort, ...]
    routes: tuple[Route, ...]
    control: ControlRates = ControlRates()

    @model_validator(mode="after")
    def _check(self) -> Edges:
        ports = [port.port for port in self.access] + [port.port for port in self.core]
        for port in ports:
            if ports.count(port) > 1:
                raise ValueError(f"port {port} is there twice")
        core = {port.port for port in self.core}
        for route in self.routes:
            if route.port not in core:
                raise ValueError(f"route {route.prefix} goes through port {route.port}, which is no core port")
        return self

    def access_port(self, port: int) -> AccessPort | None:
        """Return the access port with this number, or None if there is none."""
        return self._by_number.get(port)

    @cached_property
    def _by_number(self) -> dict[int, AccessPort]:
        return {each.port: each for each in self.access}

    @property
    def addresses(self) -> tuple[IPv4Address | IPv6Address, ...]:
        """The gateway's own addresses at core ports."""
        return tuple(each for port in self.core for each in port.addresses)

    def core_port(self, port: int) -> CorePort:
        """Return the core port with this number; one must exist."""
        return next(each for each in self.core if each.port == port)


Cell = tuple[int, int, int, int]
"""A meter: committed rate, committed burst, peak rate, peak burst, in packets and packets per second."""


def _one_rate(rate: Rate) -> Cell:
    return rate.per_s, rate.burst, rate.per_s, rate.burst


def node_meters(rates: ControlRates) -> tuple[Cell, Cell]:
    """Return the two meters of each access node: of its access lines' committed packets, and of those beyond.

    A node's rate and burst are at least those of a line.
    """

    def at_least(node: Rate, line: Rate) -> Cell:
        return _one_rate(Rate(per_s=max(node.per_s, line.per_s), burst=max(node.burst, line.burst)))

    return at_least(rates.node_committed, rates.line_committed), at_least(rates.node_peak, rates.line_peak)


def control_meters(rates: ControlRates) -> tuple[Cell, dict[int, Cell]]:
    """Return the meter of each access line, and by cell the meters that all lines share."""
    line = (
        rates.line_committed.per_s,
        rates.line_committed.burst,
        rates.line_peak.per_s,
        rates.line_peak.burst,
    )
    cells = {}
    for number, name in enumerate(program.CLASSES):
        cells[2 * number] = _one_rate(rates.core if name == "core" else rates.committed)
        cells[2 * number + 1] = _one_rate(getattr(rates, name))
    return line, cells
