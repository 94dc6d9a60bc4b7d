"""Prints a hash of what controllers write, in order: ``test_write_order`` compares it between hash seeds of Python."""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Callable
from ipaddress import IPv4Address

from holdfast import SimulatedNetwork, topologies
from holdfast.apps.bier import BierController, compile_bier
from holdfast.apps.firewall import FirewallController, compile_firewall
from holdfast.apps.firewall.rules import RuleSet
from holdfast.apps.ipmc import IpmcController, channel_of, compile_ipmc
from holdfast.apps.shorternet import ShorternetController, compile_shorternet
from holdfast.control.membership.channels import Channel
from holdfast.p4runtime.device import Device
from holdfast.topology import Topology
from holdfast.traffic import UdpStream

TOPOLOGY = "waxman:12,seed=3"


def members(topology: Topology) -> dict[Channel, list[str]]:
    hosts, rng = list(topology.hosts), random.Random(1)
    return {
        channel_of(topology, str(IPv4Address("239.1.0.0") + number), hosts[number % len(hosts)]): rng.sample(hosts, 4)
        for number in range(1, 12)
    }


def bier(protect: str, one_plus_one: bool) -> Callable[[Topology], SimulatedNetwork]:
    def network(topology: Topology) -> SimulatedNetwork:
        controller = BierController(
            members(topology),
            ip_delay_ms=1,
            bier_delay_ms=2,
            protect=protect,  # type: ignore[arg-type]
            one_plus_one=one_plus_one,
        )
        program = compile_bier(one_plus_one=one_plus_one)
        found = SimulatedNetwork(topology, program, [controller])
        changed(found, controller)
        return found

    return network


def ipmc(topology: Topology) -> SimulatedNetwork:
    controller = IpmcController(members(topology), reroute=True, reaction_delay_ms=1)
    network = SimulatedNetwork(topology, compile_ipmc(), [controller])
    changed(network, controller)
    return network


def changed(network: SimulatedNetwork, controller: BierController | IpmcController) -> None:
    """Let members leave and join, while the network runs."""
    network.run(0.1)
    for channel, hosts in itertools.islice(members(network.topology).items(), 6):
        for host in hosts[:3]:
            controller.leave(channel, host)
    for channel, hosts in itertools.islice(members(network.topology).items(), 3):
        controller.join(channel, hosts[0])


def shorternet(topology: Topology) -> SimulatedNetwork:
    controller = ShorternetController(reaction_delay_ms=1, idle_s=0.1)
    network = SimulatedNetwork(topology, compile_shorternet(), [controller])
    hosts = list(topology.hosts)
    for number in range(8):
        network.add(UdpStream(source=hosts[number], destination=hosts[-1], packets_per_s=100, stop_s=0.5))
    return network


def firewall(topology: Topology) -> SimulatedNetwork:
    zones = {"in": {"hosts": list(topology.hosts)}, "between": {"switches": True}}
    rules = RuleSet.model_validate({"zones": zones, "rules": [{"name": "all", "action": "allow"}]})
    controller = FirewallController(rules, reaction_delay_ms=1)
    return SimulatedNetwork(topology, compile_firewall("routed"), [controller])


NETWORKS = {
    "bier": bier("node", False),
    "bier, 1+1": bier("link", True),
    "ipmc": ipmc,
    "shorternet": shorternet,
    "firewall": firewall,
}


def main() -> None:
    written = hashlib.sha256()
    write = Device.write

    def recorded(device: Device, request: object) -> None:
        written.update(request.SerializeToString(deterministic=True))  # type: ignore[attr-defined]
        write(device, request)

    Device.write = recorded  # type: ignore[method-assign]
    for name, network_of in NETWORKS.items():
        network = network_of(topologies.load(TOPOLOGY))
        first, second, *_ = (link for link in network.topology.links if link.a in network.topology.switches)
        now_s = network.now_ps / 1e12
        network.set_link(first.name, up=False, at_s=now_s + 0.1)
        network.set_link(second.name, up=False, at_s=now_s + 0.2)
        network.set_link(first.name, up=True, at_s=now_s + 0.3)
        network.run(now_s + 1)
        print(name, written.hexdigest()[:16])


if __name__ == "__main__":
    main()
