"""A learning switch with VLANs, and networks of hosts around it: for tests of layer 2 on both clocks."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from holdfast import _core
from holdfast.controller import Controller
from holdfast.p4runtime.received import DigestList
from holdfast.topology import Topology


class Learning(Controller):
    """Enters each station at the port and in the VLAN from which it was heard last; frames to unknown ones are flooded."""

    def __init__(self) -> None:
        super().__init__(reaction_delay_ms=1)
        self.stations: dict[tuple[str, int, int], int] = {}

    def on_start(self) -> None:
        """Flood to all ports, and learn every source."""
        for switch, client in self.clients.items():
            ends = [end for link in self.topology.links for end in ((link.a, link.a_port), (link.b, link.b_port))]
            client.multicast_group(1, [(port, 1) for name, port in ends if name == switch])
            client.enable_digest("seen_t")

    def on_digest(self, switch: str, digest: DigestList) -> None:
        """Enter the station; its former place is learnt anew if it is heard there again."""
        client = self.clients[switch]
        for seen in digest.values:
            assert isinstance(seen, Mapping)
            mac, vlan, port = (int(str(seen[name])) for name in ("mac", "vlan", "port"))
            before = self.stations.get((switch, mac, vlan))
            if before == port:
                continue
            self.stations[switch, mac, vlan] = port
            source = {"source": mac, "vlan": vlan}
            if before is not None:
                client.delete("sources", {**source, "ingress_port": before})
            client.insert("sources", {**source, "ingress_port": port}, "NoAction")
            enter = client.insert if before is None else client.modify
            enter("stations", {"destination": mac, "vlan": vlan}, "forward", {"port": port})


def compiled() -> _core.Program:
    """Return the switch's program."""
    return _core.Program.compile(str(Path(__file__).with_suffix(".p4")))


def lan(*hosts: Mapping[str, Any], switches: int = 1) -> Topology:
    """Return a row of learning switches; hosts ``h1`` and so on, with these fields, are at the switches in turn."""
    topology = Topology("lan")
    names = [f"s{number + 1}" for number in range(switches)]
    for name in names:
        topology.add_switch(name)
    for number, fields in enumerate(hosts):
        topology.add_host(f"h{number + 1}", **fields)
        topology.add_link(f"h{number + 1}", names[number % switches], delay_ms=0.01)
    for one, other in pairwise(names):
        topology.add_link(one, other, delay_ms=0.1)
    return topology


def four_in_one_subnet() -> Topology:
    """Return a network of four hosts in one subnet at one switch, without a router."""
    return lan(*({"address": f"10.0.0.{n}/24", "ipv6": f"2001:db8::{n}/64", "gateway": "none"} for n in range(1, 5)))
