"""The core's router: gateways announce the addresses of their sessions to it, and it forwards to whoever announces an address.

Its program is that of ``apps/router``; the announcements stand for a routing protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address

from holdfast.controller import Controller
from holdfast.subscribers.plane import Behind, Session, Usage, UserPlane

NODE = "core"
"""The name of the core's switch."""


class Core(Controller):
    """Routes. ``gateways``: the core's ports, by gateway, with the MAC address there. Of two announcements, the older one counts.

    A gateway's announcements are withdrawn when the port to it goes down. The reaction delay is also that of announcements.
    """

    def __init__(self, gateways: Mapping[str, tuple[int, str]], server: str, *, reaction_delay_ms: float) -> None:
        super().__init__(reaction_delay_ms=reaction_delay_ms)
        self._gateways, self._server = gateways, server
        self._delay_ms = reaction_delay_ms
        self._announced: dict[IPv4Address, list[str]] = {}
        self._installed: dict[IPv4Address, str] = {}

    def on_start(self) -> None:
        """Install the core's route to the server."""
        host, attachment = self.topology.hosts[self._server], self.topology.attachment(self._server)
        mac = self.topology.port_mac(NODE, attachment.port)
        route: dict[str, int | bytes] = {"port": attachment.port, "src_mac": mac, "dst_mac": host.mac}
        self.clients[NODE].insert("ipv4_lpm", {"dst_addr": f"{host.address.ip}/32"}, "forward", route)

    def on_port_change(self, switch: str, port: int, up: bool) -> None:
        """Withdraw all routes to a gateway when the core's port to this gateway goes down; ignore a port that comes ``up``."""
        if switch == NODE and not up:
            for name in (name for name, (at, _) in self._gateways.items() if at == port):
                self._withdraw(name, [address for address, by in self._announced.items() if name in by])

    def announce(self, gateway: str, addresses: Iterable[IPv4Address]) -> None:
        """Announce addresses of a gateway's sessions to the core; their routes take effect after the reaction delay."""
        wanted = list(addresses)
        self.plane.call_later(self._delay_ms, lambda: self._announce(gateway, wanted))

    def withdraw(self, gateway: str, addresses: Iterable[IPv4Address]) -> None:
        """Withdraw addresses that a gateway no longer has; their routes are removed after the reaction delay."""
        wanted = list(addresses)
        self.plane.call_later(self._delay_ms, lambda: self._withdraw(gateway, wanted))

    def _announce(self, gateway: str, addresses: Iterable[IPv4Address]) -> None:
        if not self.plane.port_is_up(NODE, self._gateways[gateway][0]):
            return
        for address in addresses:
            by = self._announced.setdefault(address, [])
            if gateway not in by:
                by.append(gateway)
            self._install(address)

    def _withdraw(self, gateway: str, addresses: Iterable[IPv4Address]) -> None:
        for address in addresses:
            by = self._announced.get(address, [])
            if gateway in by:
                by.remove(gateway)
            self._install(address)

    def _install(self, address: IPv4Address) -> None:
        """Install the route to ``address`` by its oldest announcement, or remove the route if there is no announcement."""
        client, by = self.clients[NODE], self._announced.get(address)
        wanted, there = by[0] if by else None, self._installed.get(address)
        if wanted == there:
            return
        match = {"dst_addr": f"{address}/32"}
        if there is not None:
            client.delete("ipv4_lpm", match)
            del self._installed[address]
        if wanted is not None:
            port, mac = self._gateways[wanted]
            source = self.topology.port_mac(NODE, port)
            client.insert("ipv4_lpm", match, "forward", {"port": port, "src_mac": source, "dst_mac": mac})
            self._installed[address] = wanted


class Announced(Behind):
    """A user plane whose sessions' addresses are announced to the core."""

    def __init__(self, plane: UserPlane, gateway: str, core: Core) -> None:
        super().__init__(plane)
        self._gateway, self._core = gateway, core
        self._addresses = {number: session.ipv4 for number, session in plane.installed().items()}
        core.announce(gateway, [each for each in self._addresses.values() if each is not None])

    def install(self, sessions: Iterable[Session]) -> None:
        """Install sessions in the user plane and announce their addresses; withdraw addresses that these sessions had before."""
        given = list(sessions)
        self._plane.install(given)
        new = {each.session_id: each.ipv4 for each in given}
        old = [each for number in new if (each := self._addresses.get(number)) not in (None, new[number])]
        self._core.withdraw(self._gateway, [each for each in old if each is not None])
        self._core.announce(self._gateway, [each for each in new.values() if each is not None])
        self._addresses |= new

    def remove(self, session_ids: Iterable[int]) -> dict[int, Usage]:
        """Remove sessions from the user plane and withdraw their addresses; return their last usage by session id."""
        numbers = list(session_ids)
        usage = self._plane.remove(numbers)
        gone = [self._addresses.pop(number, None) for number in numbers]
        self._core.withdraw(self._gateway, [each for each in gone if each is not None])
        return usage
