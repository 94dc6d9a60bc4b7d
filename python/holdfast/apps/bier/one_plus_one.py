"""1+1 protection of channels: two sub-domains of independent trees, and the streams whose packets are numbered and eliminated.

The program is ``bier.p4`` compiled with ``one_plus_one``. Each (S,G) is a stream at its BFIR, which numbers its packets, and at
each of its BFERs, which passes the first copy of each number (IEEE 802.1CB's vector, ``acceptance.p4``). Streams keep their
places in the registers of a switch. Members, BitStrings and writes of other tables are not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from holdfast.apps.bier.entries import channel_match
from holdfast.apps.bier.planning import Plan, TreesOf
from holdfast.apps.bier.program import (
    HISTORY_REGISTER,
    NUMBER,
    SELECT_VECTOR,
    STREAMS,
    eliminated_table,
    numbered_table,
)
from holdfast.control.desired import Writer
from holdfast.control.entities import Register
from holdfast.control.membership.channels import Channel
from holdfast.control.numbers import Numbers
from holdfast.control.tables import EntryKey, TableEntry
from holdfast.errors import HoldfastError
from holdfast.p4runtime.client import Client
from holdfast.paths import Hop, IndependentTrees, ShortestPaths
from holdfast.paths.independent import Tree, WhichTree

HISTORY = 128
"""The sequence numbers that a BFER remembers: the two paths may differ by so many packets of a stream."""

RESET_MS = 1000
"""After so long without a packet that was accepted, any sequence number is accepted."""


def _tree(paths: ShortestPaths, *, which: WhichTree) -> Tree:
    return IndependentTrees(paths).tree(which)


SUB_DOMAINS: dict[int, TreesOf] = {0: partial(_tree, which=0), 1: partial(_tree, which=1)}
"""The sub-domains of 1+1: two trees, along which every BFER gets each packet."""


class Streams:
    """The streams of one switch, in its registers and tables: those it numbers as their BFIR, and those it eliminates as a BFER."""

    def __init__(self, client: Client) -> None:
        self._writer = Writer(client)
        self._indices: dict[EntryKey, int] = {}
        self._free = {
            eliminates: Numbers(0, STREAMS - 1, f"registers for protected channels that a {end} has")
            for eliminates, end in ((False, "BFIR"), (True, "BFER"))
        }

    def adopt(self, found: Iterable[TableEntry]) -> None:
        """Note the streams that an earlier controller has left in the switch, with their indices."""
        found = list(found)
        self._writer.adopt(found)
        for entry in found:
            index = int(entry.params["index"])
            if self._free[_eliminates(entry.key)].claim(index):
                self._indices[entry.key] = index

    def add(self, numbered: Iterable[Channel], eliminated: Iterable[tuple[int, Channel]]) -> list[EntryKey]:
        """Write the streams that are missing: channels to number, and (BFIR-id, channel) whose copies to eliminate.

        Return the keys of the new ones. Raise :class:`HoldfastError` if there is no room for all; then none of the new ones is
        written.
        """
        new = list(dict.fromkeys(key for key in _keys(numbered, eliminated) if key not in self._indices))
        try:
            for key in new:
                self._indices[key] = self._free[_eliminates(key)].take()
            # An index may have been another's: any number is taken.
            cleared = (Register(HISTORY_REGISTER, self._indices[key], 0) for key in new if _eliminates(key))
            self._writer.change((_entry(key, self._indices[key]) for key in new), also=cleared)
        except HoldfastError:
            for key in new:
                if key in self._indices:
                    self._free[_eliminates(key)].give_back(self._indices.pop(key))
            raise
        return new

    def remove(self, numbered: Iterable[Channel], eliminated: Iterable[tuple[int, Channel]]) -> None:
        """Remove streams: channels that are numbered, and (BFIR-id, channel) whose copies are eliminated. Ignore missing ones."""
        self.forget(_keys(numbered, eliminated))

    def forget(self, keys: Iterable[EntryKey]) -> None:
        """Remove the streams with these keys from the switch, and free their indices. Ignore missing ones."""
        gone = [key for key in keys if key in self._indices]
        self._writer.change(removed=gone)
        for key in gone:
            self._free[_eliminates(key)].give_back(self._indices.pop(key))

    def keep(self, numbered: Iterable[Channel], eliminated: Iterable[tuple[int, Channel]]) -> None:
        """Remove all streams except the given ones, and write those of them that the switch lacks."""
        kept = set(_keys(numbered, eliminated))
        self._writer.write(_entry(key, index) for key, index in self._indices.items() if key in kept)
        for key in [key for key in self._indices if key not in kept]:
            self._free[_eliminates(key)].give_back(self._indices.pop(key))


def _keys(numbered: Iterable[Channel], eliminated: Iterable[tuple[int, Channel]]) -> Iterator[EntryKey]:
    for channel in numbered:
        yield numbered_table(channel[1].version), tuple(sorted(channel_match(channel).items())), None
    for bfir_id, channel in eliminated:
        match = {"hdr.bier.bfir_id": bfir_id, **channel_match(channel)}
        yield eliminated_table(channel[1].version), tuple(sorted(match.items())), None


def _eliminates(key: EntryKey) -> bool:
    return key[0] in (eliminated_table(4), eliminated_table(6))


def _entry(key: EntryKey, index: int) -> TableEntry:
    table, match, _ = key
    if not _eliminates(key):
        return TableEntry(table, dict(match), NUMBER, {"index": index})
    params = {"index": index, "history_length": HISTORY, "reset_timeout_us": RESET_MS * 1000}
    return TableEntry(table, dict(match), SELECT_VECTOR, params)


def ways(plan: Plan, source: int, destination: int) -> list[list[Hop]]:
    """Return the hops from node ``source`` to ``destination`` in each sub-domain's first bucket; empty where no path leads."""
    found = []
    for sub_domain in sorted(plan.scheme.sub_domains):
        node, way = source, []
        while (hop := plan.next_hop((sub_domain, 0), node, destination)) is not None:
            way.append(hop)
            node = hop.neighbour
        found.append(way)
    return found
