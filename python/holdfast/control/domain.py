"""The ports that lead to switches of the domain, kept in every switch: at all others, programs refuse what the domain owns.

They follow from the map: the declared one, or the discovered one, in which a link that is not heard any more is none. Which
encapsulations a domain owns is each program's business (``apps/domain.p4``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from holdfast.control.desired import Desired, Writer
from holdfast.control.entities import Register
from holdfast.control.link_state import LinkState
from holdfast.control.tables import has_register
from holdfast.p4runtime.client import Client

REGISTER = "domain_ports"
"""The register of a program with a cell per port: 1 if the port leads to a switch of the same domain."""
REFUSED = "refused"
"""The counter of refused packets, with a cell per port."""


class DomainPorts:
    """Keeps the ports that lead to switches of the same domain in the switches whose programs have a register for them.

    While links are being discovered, ports that an earlier controller has left stay, unless a host is declared there.
    """

    def __init__(self, clients: Mapping[str, Client], links: LinkState) -> None:
        self._links = links
        self._clients = {name: client for name, client in clients.items() if has_register(client, REGISTER)}
        self._writers = {name: Writer(client) for name, client in self._clients.items()}
        self._adopted: dict[str, frozenset[int]] = {}

    def start(self) -> None:
        """Read the domain ports that an earlier controller wrote, keep them for now, and write the ports that are known now."""
        hosts = self._links.host_ports()
        for name, client in self._clients.items():
            there = domain_ports(client)
            self._writers[name].adopt(domain_registers(there))
            self._adopted[name] = frozenset(port for port in there if (name, port) not in hosts)
        self.install()

    def install(self) -> None:
        """Write which ports lead to other switches of the domain, in one batch per switch, where that differs from before.

        Call this before entries that send packets over new links.
        """
        wanted = self._links.domain_ports()
        if self._links.is_settled:
            self._adopted = {}
        for name, writer in self._writers.items():
            writer.write(domain_registers(wanted.get(name, frozenset()) | self._adopted.get(name, frozenset())))


def domain_ports(client: Client) -> frozenset[int]:
    """Return the ports of a switch that its register of domain ports declares as leading to switches of the same domain."""
    return frozenset(port for port, leads in client.registers(REGISTER).items() if leads)


def domain_registers(ports: Collection[int]) -> Desired:
    """Return the cells of a switch's register of domain ports in which these ports lead to the domain."""
    return tuple(Register(REGISTER, port, 1) for port in sorted(ports))


def refused(client: Client, port: int) -> int:
    """Return how many packets with the domain's headers a switch has refused at a port that leads out of the domain."""
    return client.counter(REFUSED, port)[0]
