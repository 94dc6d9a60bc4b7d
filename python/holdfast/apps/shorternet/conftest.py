"""Fixtures of the tests of ``shorternet.p4``: a compiled program, and one edge with a host and a Shorternet link."""

from __future__ import annotations

from functools import cache

import pytest
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from holdfast._core import Program, Switch
from holdfast.apps.shorternet import compile_shorternet
from holdfast.apps.shorternet.contexts import Context, Flow
from holdfast.apps.shorternet.controller import COUNTERS
from holdfast.control.tables import TableEntry
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device
from holdfast.p4runtime.received import DigestList

HOST, CORE = 1, 2
"""Ports: a host, and a Shorternet link."""
HOST_MAC, PORT_MAC = "02:00:00:00:00:01", "02:ff:00:00:00:01"


@pytest.fixture(scope="session")
def program() -> Program:
    """Return ``shorternet.p4``, compiled with its defaults."""
    return compiled()


@cache
def compiled() -> Program:
    """Return the compiled program; hypothesis tests use this function instead of a fixture."""
    return compile_shorternet()


class Edge:
    """A switch whose hosts have 10.0.<station>.0/24 and 2001:db8:<station>::/64, with edge 3 - station behind port 2."""

    def __init__(self, program: Program, station: int, executor: str = "jit") -> None:
        self.station, self.name = station, f"s{station}"
        self.switch = Switch(program, executor=executor)  # type: ignore[arg-type]
        self.client = LocalClient(Device(1, self.switch, executor=executor))  # type: ignore[arg-type]
        self.client.set_pipeline(program)
        self.client.set_value_set("short_ports", [CORE])
        other = 3 - station
        self.client.insert("stations", {"station": station}, "receive")
        self.client.insert("stations", {"station": 9}, "forward", {"port": CORE})
        self.client.insert("edges", {"station": other}, "towards", {"port": CORE, "own": station})
        here: dict[str, int | str | bytes] = {"port": HOST, "src_mac": PORT_MAC, "dst_mac": HOST_MAC}
        for version, prefix in ((4, "10.0.{}.0/24"), (6, "2001:db8:{}::/64")):
            table = f"ipv{version}_hosts"
            self.client.insert(table, {"dst_addr": prefix.format(station)}, "deliver", here)
            self.client.insert(table, {"dst_addr": prefix.format(other)}, "send", {"station": other})
        for digest in ("flow_ipv4_t", "flow_ipv6_t", "lost_context_t"):
            self.client.enable_digest(digest)

    def send(self, data: Packet | bytes, port: int = HOST) -> list[tuple[int, bytes]]:
        """Send a packet into ``port``, and return (port, frame) of what leaves.

        A packet of scapy gets an Ethernet header; bytes are a whole frame.
        """
        frame = data if isinstance(data, bytes) else bytes(Ether(src=HOST_MAC, dst=PORT_MAC) / data)
        return [(out, bytes(sent)) for out, sent in self.switch.process(port, frame, 0)]

    def add(self, *entries: TableEntry) -> None:
        """Insert table entries into the switch."""
        for entry in entries:
            entry.write(self.client, "insert")

    def counted(self) -> dict[str, int]:
        """Return those counters of the program that are not 0, by short name, in packets."""
        counts = {name: self.client.counter(full, 0)[0] for name, full in COUNTERS.items()}
        return {name: count for name, count in counts.items() if count}

    def digests(self) -> list[dict[str, int]]:
        """Return the values of all digests that the program has sent since the last call."""
        self.client._device.collect_digests(0)
        found: list[dict[str, int]] = []
        while (event := self.client.poll()) is not None:
            if isinstance(event, DigestList):
                found += event.values  # type: ignore[arg-type]
        return found

    def learn(self, there: Edge, number: int) -> list[Context]:
        """Install a context for each flow in the digests, at this edge and at ``there``; return the contexts.

        Their numbers are ``number`` and up.
        """
        learnt: list[Context] = []
        for value in self.digests():
            version = 4 if "ttl" in value else 6
            flow = Flow.of(version, value)
            if any(context.flow == flow for context in learnt):
                continue
            context = Context(flow, number + len(learnt), self.name, there.name, self.station)
            there.add(context.context_entry())
            self.add(context.flow_entry())
            learnt.append(context)
        return learnt
