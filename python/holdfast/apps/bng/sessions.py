"""The sessions of one switch that forwards them: installation, usage, and reading back.

It does not know lines' frames, nor other switches. It holds what it has installed, so that a change is written as a difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address

from holdfast.apps.bng import program
from holdfast.apps.bng.entries import NO_USAGE, Way, edge_entries, meter_rates, session_entries, session_of
from holdfast.control.tables import EntryKey, TableEntry, TableWriter, read_entries
from holdfast.p4runtime.client import Client
from holdfast.subscribers.plane import Session, Usage

CHUNK = 50
"""Sessions in one atomic batch; a session has up to ten updates. A switch forwards nothing while it applies a batch: one of some
hundred updates takes less time than its interfaces' rings have room for."""

_FEW = 5_000
"""Sessions whose registers are read one by one: all 65,536 cells cost as much as 15,000 single ones."""

_BYTES = (1 << 64) - 1


def total(*parts: Usage) -> Usage:
    """Return the sum of several usages: packets and bytes in each direction."""
    return Usage(
        sum(part.packets_up for part in parts),
        sum(part.bytes_up for part in parts),
        sum(part.packets_down for part in parts),
        sum(part.bytes_down for part in parts),
    )


class SessionTables:
    """The sessions of one switch with ``bng.p4`` in it. Those that an earlier controller left are taken over at once."""

    def __init__(self, client: Client, way: Way) -> None:
        self._client = client
        self._way = way
        self._sessions: dict[int, Session] = {}
        self._earlier: dict[int, Usage] = {}
        self._entries: dict[int, dict[EntryKey, TableEntry]] = {}
        self._owners: dict[int, int] = {}
        self._prefixes: dict[tuple[int, int], int] = {}
        self._lengths: set[int] = set()
        """Of all prefixes that there have been: a thread that receives asks for owners while sessions change."""
        self._adopt()

    def _adopt(self) -> None:
        for entry in read_entries(self._client, program.SESSIONS):
            session, earlier = session_of(entry)
            self._sessions[session.session_id] = session
            self._earlier[session.session_id] = earlier
            self._entries[session.session_id] = {entry.key: entry}
        for table in (program.SUBSCRIBERS_V4, program.SUBSCRIBERS_V6):
            for entry in read_entries(self._client, table):
                self._entries.setdefault(int(entry.params["session"]), {})[entry.key] = entry
        self._index(self._sessions)
        edges = TableWriter(self._client)
        edges.adopt(
            entry
            for table in (program.PORTS, program.OWN_V4, program.OWN_V6, program.IPV4_LPM, program.IPV6_LPM)
            for entry in read_entries(self._client, table)
        )
        edges.write(edge_entries(self._way.edges, self._way.trunk))

    @property
    def installed(self) -> Mapping[int, Session]:
        """The sessions by identifier, as far as this object knows."""
        return self._sessions

    def __contains__(self, session_id: int) -> bool:
        return session_id in self._sessions

    def __len__(self) -> int:
        return len(self._sessions)

    def earlier(self, session_id: int) -> Usage:
        """Return the usage of a session before the registers of this switch began to count it."""
        return self._earlier[session_id]

    def owns(self, address: IPv4Address | IPv6Address) -> bool:
        """Return True if ``address`` is the IPv4 address of a session, or an IPv6 address in a session's prefix."""
        if isinstance(address, IPv4Address):
            return int(address) in self._owners
        high = int(address) >> 64
        return any((high >> (64 - length), length) in self._prefixes for length in tuple(self._lengths))

    def read(self) -> dict[int, Session]:
        """Return the sessions that are in the switch, by session identifier."""
        entries = (session_of(entry) for entry in read_entries(self._client, program.SESSIONS))
        return {session.session_id: session for session, _ in entries}

    def install(self, sessions: Iterable[Session], earlier: Mapping[int, Usage] | None = None) -> None:
        """Add or replace sessions in atomic batches.

        ``earlier``: their usage on other planes; for a session that is not in it, the value known before, or none.
        """
        given = list({session.session_id: session for session in sessions}.values())
        known = earlier or {}
        wanted = {
            session.session_id: session_entries(
                session,
                self._way,
                known.get(session.session_id, self._earlier.get(session.session_id, NO_USAGE)),
            )
            for session in given
        }
        for first in range(0, len(given), CHUNK):
            self._install(given[first : first + CHUNK], wanted, known)

    def _install(
        self, sessions: list[Session], wanted: Mapping[int, list[TableEntry]], earlier: Mapping[int, Usage]
    ) -> None:
        client = self._client
        entries = {
            number: {entry.key: entry for entry in wanted[number]} for number in (s.session_id for s in sessions)
        }
        with client.batch():
            for number, new in entries.items():
                for key, entry in self._entries.get(number, {}).items():
                    if key not in new:
                        entry.delete(client)
            for session in sessions:
                old = self._entries.get(session.session_id, {})
                for key, entry in entries[session.session_id].items():
                    if key not in old:
                        entry.insert(client)
                    elif old[key] != entry:
                        entry.modify(client)
                before = self._sessions.get(session.session_id)
                self._write_rates(session, before)
                if before is None:  # a former session may have had this number
                    for register in (program.USAGE_UP, program.USAGE_DOWN):
                        client.write_register(register, session.session_id, 0)
        for session in sessions:
            number = session.session_id
            self._forget(number)
            self._sessions[number] = session
            self._entries[number] = entries[number]
            self._earlier[number] = earlier.get(number, self._earlier.get(number, NO_USAGE))
        self._index([session.session_id for session in sessions])

    def _write_rates(self, session: Session, before: Session | None) -> None:
        """Configure the meters whose rates change, as part of an open batch; other meters keep their state."""
        pairs = (
            (program.RATE_UP, session.rates.up_bit_s, before.rates.up_bit_s if before else None),
            (program.RATE_DOWN, session.rates.down_bit_s, before.rates.down_bit_s if before else None),
        )
        for meter, rate, old in pairs:
            if rate != old:
                self._client.configure_meter(meter, session.session_id, meter_rates(rate))

    def _index(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            session = self._sessions[number]
            if session.ipv4 is not None:
                self._owners[int(session.ipv4)] = number
            for prefix in (session.ipv6_prefix, session.delegated):
                if prefix is not None:
                    length = prefix.prefixlen
                    self._lengths.add(length)
                    self._prefixes[int(prefix.network_address) >> (128 - length), length] = number

    def _forget(self, number: int) -> None:
        """Remove the addresses of session ``number`` from the index, unless another session has them now."""
        session = self._sessions.get(number)
        if session is None:
            return
        if session.ipv4 is not None and self._owners.get(int(session.ipv4)) == number:
            del self._owners[int(session.ipv4)]
        for prefix in (session.ipv6_prefix, session.delegated):
            if prefix is not None:
                key = int(prefix.network_address) >> (128 - prefix.prefixlen), prefix.prefixlen
                if self._prefixes.get(key) == number:
                    del self._prefixes[key]

    def remove(self, session_ids: Iterable[int]) -> dict[int, Usage]:
        """Remove sessions and return their last usage by identifier; sessions that are not installed are left out.

        If a call fails, the next one completes the removal.
        """
        numbers = [number for number in dict.fromkeys(session_ids) if number in self._sessions]
        for first in range(0, len(numbers), CHUNK):
            chunk = numbers[first : first + CHUNK]
            with self._client.batch():
                for number in chunk:
                    for entry in self._entries[number].values():
                        entry.delete(self._client)
                    rates = self._sessions[number].rates
                    for meter, rate in ((program.RATE_UP, rates.up_bit_s), (program.RATE_DOWN, rates.down_bit_s)):
                        if rate is not None and self._entries[number]:
                            self._client.configure_meter(meter, number, None)
            for number in chunk:  # there is nothing to delete any more, if reading the usage fails
                self._entries[number] = {}
        found = self.usage(numbers)
        for number in numbers:
            self._forget(number)
            del self._sessions[number], self._entries[number], self._earlier[number]
        return found

    def usage(self, session_ids: Iterable[int]) -> dict[int, Usage]:
        """Return the usage of the installed sessions among ``session_ids``; their usage on other planes is included."""
        numbers = [number for number in dict.fromkeys(session_ids) if number in self._sessions]
        up, down = (self._cells(register, numbers) for register in (program.USAGE_UP, program.USAGE_DOWN))
        return {
            number: total(
                self._earlier[number],
                Usage(up[number] >> 64, up[number] & _BYTES, down[number] >> 64, down[number] & _BYTES),
            )
            for number in numbers
        }

    def _cells(self, register: str, numbers: list[int]) -> dict[int, int]:
        if len(numbers) > _FEW:
            return self._client.registers(register)
        return self._client.register_cells(register, numbers)
