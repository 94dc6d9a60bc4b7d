"""Networks of p4-utils: ``p4app.json``, and what its scripts ``network.py`` build, with the addresses that p4-utils gives them.

Without an address, a host gets one by the strategy: ``l2`` (all in 10.0.0.0/16), ``mixed`` (a /24 for each switch, with the
gateway .254), ``l3`` (a /24 for each host, its gateway .1), or else the next of 10.0.0.0/8. Hosts know the MAC addresses of the
others in their subnet and of their gateway, unless that is switched off. Ports that are not given are numbered along the links,
sorted by their ends, and the controller's port of a switch is among them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.errors import ParameterError
from holdfast.host import mac_text
from holdfast.topologies.draft import Draft, tc_link
from holdfast.topologies.p4lang import mapping, natural, number, text
from holdfast.topology import Topology, port_mac

FIRST_GRPC_PORT = 9559

MOST_NEIGHBOURS = 200_000
"""The most neighbour entries that are written for all hosts together; if more were needed, hosts resolve addresses by
ARP."""

CPU = "sw-cpu"
"""The name of p4-utils' bridge to which the switches' controller ports are linked."""


@dataclass
class End:
    """An end of a link: a node, its port, and its addresses if they are given."""

    node: str
    port: int | None
    mac: str | None
    address: str | None


@dataclass
class Wire:
    """A link as p4-utils has it."""

    ends: tuple[End, End]
    options: dict[str, Any]
    place: str


@dataclass
class Network:
    """A network as a file or a script describes it, before numbers and addresses are filled in as p4-utils does."""

    draft: Draft
    strategy: str | None = None
    arp_tables: bool = True
    gateway_arp: bool = True
    wires: list[Wire] = field(default_factory=list)
    routes: dict[str, str] = field(default_factory=dict)
    """The gateway of each host that has one."""
    device_ids: dict[str, int] = field(default_factory=dict)
    routers: set[str] = field(default_factory=set)
    """Nodes that are no switches for p4-utils; they are numbered behind those."""

    def add_link(self, a: str, b: str, options: Mapping[str, Any]) -> None:
        """Add a link with options of ``addLink``."""
        draft, ends = self.draft, []
        for place, node in (("1", a), ("2", b)):
            if node not in draft.hosts and node not in draft.switches and node != CPU:
                raise draft.error(f"a link ends at {node!r}, which is neither a host nor a switch here")
            params = mapping(draft, options.get(f"params{place}"), f"params{place}")
            address = text(draft, params, "ip") or text(draft, options, f"sw_ip{place}")
            ends.append(
                End(node, number(draft, options, f"port{place}"), text(draft, options, f"addr{place}"), address)
            )
            for key in params:
                if key != "ip":
                    draft.leave_out(f"{key} of interfaces")
        known = ("port", "addr", "params", "sw_ip", "intfName")
        rest = {key: value for key, value in options.items() if key[:-1] not in known and key != "deleteIntfs"}
        self.wires.append(Wire((ends[0], ends[1]), rest, draft.place))

    def add_cpu_port(self, switch: str) -> None:
        """Add a port for the controller to a switch, as a link to a node that stands for it."""
        self.wires.append(Wire((End(switch, None, None, None), End(CPU, None, None, None)), {}, self.draft.place))

    def finish(self) -> Topology:
        """Fill in numbers and addresses as p4-utils does, and return the topology."""
        self._number_devices()
        self._number_ports()
        self._give_addresses()
        draft = self.draft
        for wire in self.wires:
            with draft.at(wire.place):
                self._add_wire(wire)
        self._resolve()
        return draft.finish()

    def _number_devices(self) -> None:
        taken = set(self.device_ids.values())
        for name in sorted(self.draft.switches, key=lambda name: (name in self.routers, natural(name))):
            fields = self.draft.switches[name][1]
            if name not in self.device_ids:
                self.device_ids[name] = next(i for i in range(1, len(taken) + 2) if i not in taken)
                taken.add(self.device_ids[name])
            fields["device_id"] = self.device_ids[name]

    def _number_ports(self) -> None:
        used: dict[str, set[int]] = {}
        for wire in self.wires:
            for end in wire.ends:
                if end.port is not None:
                    used.setdefault(end.node, set()).add(end.port)
        for wire in sorted(self.wires, key=lambda wire: tuple(natural(end.node) for end in wire.ends)):
            for end in wire.ends:
                taken = used.setdefault(end.node, set())
                if end.port is None:
                    first = 0 if end.node in self.draft.hosts else 1
                    end.port = next(i for i in range(first, first + len(taken) + 1) if i not in taken)
                    taken.add(end.port)

    def _at_hosts(self) -> Iterator[tuple[End, End]]:
        """Yield the ends of each link of a host, the host's end first."""
        for wire in self.wires:
            a, b = wire.ends
            if a.node in self.draft.hosts:
                yield a, b
            elif b.node in self.draft.hosts:
                yield b, a

    def _give_addresses(self) -> None:
        hosts = list(self._at_hosts())
        if self.strategy in ("l2", "mixed", "l3"):
            for here, _ in hosts:
                if sum(here.node == other.node for other, _ in hosts) > 1:
                    raise self.draft.error(f"host {here.node!r} has two links, which {self.strategy} does not address")
        taken: set[str] = set()
        give = {"l2": self._l2, "mixed": self._mixed, "l3": self._l3}.get(self.strategy or "")
        if give is not None:
            for here, there in hosts:
                address, gateway = give(here, there, taken)
                here.address = address
                ip = address.partition("/")[0]
                taken.add(ip)
                octets = ipaddress.IPv4Address(ip).packed.hex(":")
                here.mac, there.mac = f"00:00:{octets}", f"00:01:{octets}"
                if gateway:
                    self.routes[here.node], there.address = gateway, f"{gateway}/24"
        taken |= {here.address.partition("/")[0] for here, _ in hosts if here.address}
        free = (str(ip) for ip in ipaddress.IPv4Network("10.0.0.0/8").hosts())
        for here, _ in sorted(hosts, key=lambda ends: natural(ends[0].node)):
            if here.address is None:
                here.address = f"{next(ip for ip in free if ip not in taken)}/8"

    def _id(self, there: End) -> int:
        if there.node not in self.device_ids:
            raise self.draft.error(f"the strategy {self.strategy!r} connects hosts to switches, not to {there.node!r}")
        return self.device_ids[there.node]

    def _number_of(self, host: str) -> int | None:
        """Return the number in a host's name of the form ``h12``; None for any other name."""
        found = re.fullmatch(r"h([0-9]{1,5})", host)
        return int(found[1]) if found else None

    def _l2(self, here: End, there: End, taken: set[str]) -> tuple[str, str | None]:
        if (own := self._number_of(here.node)) is not None:
            return f"10.0.{own >> 8 & 255}.{own & 255}/16", None
        reserved = {f"10.0.{own >> 8 & 255}.{own & 255}" for own in self._numbers()}
        free = ipaddress.IPv4Network("10.0.0.0/16").hosts()
        return f"{next(str(ip) for ip in free if str(ip) not in taken | reserved)}/16", None

    def _mixed(self, here: End, there: End, taken: set[str]) -> tuple[str, str | None]:
        switch = self._id(there)
        net = f"10.{switch >> 8 & 255}.{switch & 255}"
        if (own := self._number_of(here.node)) is not None:
            if own >= 254:
                raise self.draft.error(f"host {here.node!r}: its number is no last byte of an address below 254")
            return f"{net}.{own}/24", f"{net}.254"
        reserved = {f"{net}.{own}" for own in self._numbers(there.node)}
        ip = next((ip for i in range(1, 254) if (ip := f"{net}.{i}") not in taken | reserved), None)
        if ip is None:
            raise self.draft.error(f"switch {there.node!r} has more hosts than addresses in {net}.0/24")
        return f"{ip}/24", f"{net}.254"

    def _l3(self, here: End, there: End, taken: set[str]) -> tuple[str, str | None]:
        switch, own = self._id(there), self._number_of(here.node)
        if own is None:
            reserved = set(self._numbers(there.node))
            own = next((i for i in range(1, 254) if i not in reserved and f"10.{switch}.{i}.2" not in taken), 254)
        if switch >= 254 or own >= 254:
            raise self.draft.error(f"host {here.node!r}: 10.{switch}.{own}.2 is more than l3 can number")
        return f"10.{switch}.{own}.2/24", f"10.{switch}.{own}.1"

    def _numbers(self, switch: str | None = None) -> list[int]:
        """Return the numbers in the names (``h12``) of the hosts at a switch, or of all hosts."""
        at = [here.node for here, there in self._at_hosts() if switch in (None, there.node)]
        return [own for name in at if (own := self._number_of(name)) is not None]

    def _add_wire(self, wire: Wire) -> None:
        draft = self.draft
        a, b = wire.ends
        if CPU in (a.node, b.node):
            switch = a if b.node == CPU else b
            draft.switches[switch.node][1]["cpu_port"] = switch.port
            return
        for end in wire.ends:
            if (host := draft.hosts.get(end.node)) is not None and end.port is not None:
                card = host.card(end.port)
                card["address"] = end.address
                if end.mac:
                    card["mac"] = end.mac
        try:
            fields = tc_link(draft, wire.options)
        except ParameterError as error:
            raise draft.error(error.sentence) from None
        draft.link(a.node, b.node, a_port=a.port, b_port=b.port, **fields)

    def _resolve(self) -> None:
        """Give hosts their gateways, and the MAC addresses that p4-utils tells them."""
        ends = [end for wire in sorted(self.wires, key=_ports) for end in wire.ends]
        by_address = {end.address.partition("/")[0]: end for end in ends if end.address}
        subnets: dict[str, list[End]] = {}
        for here, _ in self._at_hosts():
            if here.address and here.mac and "/" in here.address:
                subnets.setdefault(str(ipaddress.IPv4Interface(here.address).network), []).append(here)
        many = sum(len(each) ** 2 for each in subnets.values()) > MOST_NEIGHBOURS
        for name, host in self.draft.hosts.items():
            gateway = self.routes.get(name)
            host.fields["gateway"] = gateway or "none"
            known: dict[str, str] = {}
            if self.arp_tables and not many:
                for group in subnets.values():
                    if any(end.node == name for end in group):
                        known |= {
                            e.address.partition("/")[0]: e.mac or "" for e in group if e.node != name and e.address
                        }
            if gateway and self.gateway_arp and gateway in by_address and (mac := self._mac(by_address[gateway])):
                known[gateway] = mac
            if known:
                host.fields["neighbours"] = known

    def _mac(self, end: End) -> str | None:
        """Return the MAC address of an end of a link. Mininet draws one for a switch if p4-utils gives none."""
        if end.mac is None and end.node in self.draft.switches:
            return mac_text(port_mac(list(self.draft.switches).index(end.node) + 1, end.port or 0))
        return end.mac


def _ports(wire: Wire) -> tuple[int, int]:
    return wire.ends[0].port or 0, wire.ends[1].port or 0


def fits(document: Any) -> bool:
    """Return True if a JSON value has the form of ``p4app.json`` for p4-utils."""
    return isinstance(document, dict) and isinstance(document.get("topology"), dict) and "links" in document["topology"]


def read(path: Path, document: Mapping[str, Any], content: bytes | None = None) -> Topology:
    """Return the network in a document that :func:`fits`.

    ``content``: the document's text. Raises :class:`holdfast.errors.TopologyError` with the place of a mistake, and its line in
    the text.
    """
    draft = Draft(path, path.parent.name if path.stem == "p4app" and path.parent.name else path.stem, content)
    topology = document["topology"]
    network = Network(draft, strategy=topology.get("assignment_strategy"))
    with draft.at("topology"):
        if network.strategy not in (None, "l2", "l3", "mixed", "manual"):
            raise draft.error(f"assignment_strategy is {network.strategy!r}; it is l2, l3, mixed or manual")
        defaults = dict(mapping(draft, topology.get("default"), "default"))
        network.arp_tables = bool(defaults.pop("auto_arp_tables", True))
        network.gateway_arp = bool(defaults.pop("auto_gw_arp", True))
    for key in document:
        if key in ("exec_scripts", "tasks_file"):
            with draft.at(key):
                draft.leave_out(f"the part {key!r}")
    runtime = "P4Runtime" in str(document.get("switch_node"))
    for name, given in _named(draft, topology, "switches"):
        _add_switch(network, name, given, text(draft, document, "p4_src"), runtime)
    for name, _ in _named(draft, topology, "routers"):
        draft.leave_out("routers of FRR, which become switches without their routing")
        draft.switch(name)
        network.routers.add(name)
    for name, given in _named(draft, topology, "hosts"):
        host = draft.host(name)
        add_host_options(network, host.name, given)
    links = topology["links"]
    if not isinstance(links, list):
        raise draft.error("topology.links: a list is expected")
    for index, link in enumerate(links):
        with draft.at(f"topology.links.{index}"):
            if not isinstance(link, list) or len(link) not in (2, 3) or not all(isinstance(e, str) for e in link[:2]):
                raise draft.error("a link is a list of two nodes, then an object of options")
            options = mapping(draft, link[2], "the third element of a link") if len(link) == 3 else {}
            network.add_link(link[0], link[1], {**defaults, **options})
    if runtime:
        _number_servers(draft)
    return network.finish()


def _named(draft: Draft, topology: Mapping[str, Any], what: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, given in mapping(draft, topology.get(what), what).items():
        with draft.at(f"topology.{what}.{name}"):
            yield name, mapping(draft, given, "a node")


def add_host_options(network: Network, name: str, options: Mapping[str, Any]) -> None:
    """Add the options of a host to the network: its default route. Options that need processes of p4-utils are left out."""
    draft = network.draft
    if (route := text(draft, options, "defaultRoute")) is not None:
        network.routes[name] = route.split()[-1]
    for key in options:
        if key not in ("defaultRoute", "log_enabled", "log_dir", "cls", "isHost", "host_node"):
            draft.leave_out(f"{key} of hosts")


_WITHOUT_WORD = (
    "log_enabled",
    "log_dir",
    "pcap_dump",
    "pcap_dir",
    "thrift_port",
    "cls",
    "isSwitch",
    "isP4Switch",
    "isP4RuntimeSwitch",
    "sw_bin",
    "switch_node",
    "json_path",
    "cli_enabled",
    "dpid",
)


def _add_switch(
    network: Network, name: str, given: Mapping[str, Any], default_program: str | None, runtime: bool
) -> None:
    draft = network.draft
    draft.switch(name)
    add_switch_options(network, name, {"p4_src": default_program, **given})


def add_switch_options(network: Network, name: str, options: Mapping[str, Any]) -> None:
    """Add the options of a switch to the network: program, entries, ids. Options that only p4-utils has are left out."""
    draft, fields = network.draft, network.draft.switches[name][1]
    # Older files have "program" for "p4_src".
    source = text(draft, options, "program") or text(draft, options, "p4_src")
    if source and (program := draft.program(source)):
        fields["program"] = program
    if entries := text(draft, options, "cli_input"):
        fields["entries"] = draft.beside(entries)
    if options.get("cpu_port"):
        network.add_cpu_port(name)
    if (device := number(draft, options, "device_id")) is not None:
        network.device_ids[name] = device
    if (port := number(draft, options, "grpc_port")) is not None:
        fields["grpc"] = f"127.0.0.1:{port}"
    if (queues := number(draft, options, "priority_queues_num")) is not None:
        fields["queueing"] = {"queues": queues}
    known = ("program", "p4_src", "cli_input", "cpu_port", "device_id", "grpc_port", "priority_queues_num")
    for key in options:
        if key not in known + _WITHOUT_WORD:
            draft.leave_out(f"{key} of switches")


def _number_servers(draft: Draft) -> None:
    """Give each switch without a P4Runtime server of its own the next TCP port for one, as p4-utils does."""
    for place, name in enumerate(sorted(draft.switches, key=natural)):
        draft.switches[name][1].setdefault("grpc", f"127.0.0.1:{FIRST_GRPC_PORT + place}")
