"""Whose an IP address is: addresses that are bound, and networks of ports, as entries of one switch (RFC 2827).

An address belongs to the ports of the longest prefix that contains it. A bound address is a prefix of its own. Addresses of
other switches' ports come in by the ports that lead to switches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from holdfast.apps.firewall import program
from holdfast.apps.firewall.entries import Station, number_of
from holdfast.apps.firewall.rules import Port, Prefix
from holdfast.control.desired import Writer
from holdfast.control.numbers import Numbers
from holdfast.control.tables import TableEntry, has_table, read_entries
from holdfast.p4runtime.client import Client

Holders: TypeAlias = dict[tuple[int, int], frozenset[int]]
"""The ports of a prefix, by its first address as tables have it and its length of 128 bits."""

NOWHERE = 511
"""The number in place of a port for a prefix that is at another switch. No packet comes in by it."""

FIRST_SET = 512

CHUNK = 500
"""Entries in one batch."""


def holders(
    here: Iterable[Station],
    ports: Iterable[Port],
    elsewhere: Iterable[Station],
    far: Iterable[Port],
    links: Iterable[int],
) -> Holders:
    """Return by prefix the ports of one switch that may send packets from its addresses.

    ``here`` and ``ports``: the switch's own stations and ports. ``elsewhere`` and ``far``: those of other switches, whose packets
    come in by the ports ``links``.
    """
    found: dict[tuple[int, int], set[int]] = {}
    towards_switches = set(links)
    for stations, is_here in ((here, True), (elsewhere, False)):
        for station in stations:
            for address in station.addresses:
                held = {station.port} if is_here else towards_switches
                found.setdefault((number_of(address), 128), set()).update(held)
    for roles, is_here in ((ports, True), (far, False)):
        for role in roles:
            for prefix in role.networks:
                found.setdefault(_key(prefix), set()).update({role.port} if is_here else towards_switches)
    return {key: frozenset(held) for key, held in found.items()}


def _key(prefix: Prefix) -> tuple[int, int]:
    return number_of(prefix.network_address), prefix.prefixlen + (96 if prefix.version == 4 else 0)


class SourceWriter:
    """The entries of one switch that say which ports may send from which addresses. A change writes only what differs."""

    def __init__(self, client: Client) -> None:
        self._is_there = has_table(client, program.SOURCES)
        self._writer = Writer(client, most=CHUNK)
        self._client = client
        self._written: Holders = {}
        self._free = Numbers(FIRST_SET, 0xFFFF, "sets of ports with networks in common")
        self._sets: dict[frozenset[int], int] = {}

    def adopt(self) -> None:
        """Read the entries that an earlier controller has left, so that :meth:`write` changes only what differs."""
        sources = read_entries(self._client, program.SOURCES)
        sets = read_entries(self._client, program.PORT_SETS)
        self._writer.adopt([*sources, *sets])
        members: dict[int, set[int]] = {}
        for entry in sets:
            members.setdefault(int(str(entry.match["set"])), set()).add(int(str(entry.match["port"])))
        for number, ports in members.items():
            if self._free.claim(number):
                self._sets[frozenset(ports)] = number
        for entry in sources:
            match entry.match.get("address"):
                case (int(first), int(length)):
                    number = int(entry.params["number"])
                    ports = members.get(number, set() if number == NOWHERE else {number})
                    self._written[first, length] = frozenset(ports)

    def write(self, wanted: Mapping[tuple[int, int], frozenset[int]]) -> None:
        """Write which ports may send from which prefixes, and delete other entries; do nothing if the program lacks these tables.

        The writes are in batches between which packets pass.
        """
        if not self._is_there:
            return
        new = {key: ports for key, ports in wanted.items() if self._written.get(key) != ports}
        gone = [key for key in self._written if key not in wanted]
        sets = {ports for ports in wanted.values() if len(ports) > 1}
        for ports in sets - self._sets.keys():
            self._sets[ports] = self._free.take()
        members = [_member(port, self._sets[ports]) for ports in sets for port in sorted(ports)]
        self._writer.change(members)
        self._writer.change(self._entry(*item) for item in new.items())
        self._writer.change(removed=[self._entry(key, frozenset()).key for key in gone])
        for ports in self._sets.keys() - sets:
            number = self._sets.pop(ports)
            self._writer.change(removed=[_member(port, number).key for port in ports])
            self._free.give_back(number)
        self._written = dict(wanted)

    def _entry(self, key: tuple[int, int], ports: frozenset[int]) -> TableEntry:
        number = self._sets[ports] if len(ports) > 1 else next(iter(ports), NOWHERE)
        return TableEntry(program.SOURCES, {"address": key}, program.BELONGS_TO, {"number": number})


def _member(port: int, number: int) -> TableEntry:
    return TableEntry(program.PORT_SETS, {"port": port, "set": number}, "NoAction")
