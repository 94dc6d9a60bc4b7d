"""The sessions of one switch that forwards them: installation, usage, and reading back.

It does not know lines' frames, nor other switches. It holds what it has installed, so that a change is written as a difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address

from holdfast.apps.bng import program
from holdfast.apps.bng.entries import NO_USAGE, Way, configure_edges, meter_rates, session_entries, session_of
from holdfast.control.desired import Entity, Key, Writer
from holdfast.control.entities import Meter, Register
from holdfast.control.tables import TableEntry, read_entries
from holdfast.errors import NetworkError
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


def _meters(session: Session) -> list[Meter]:
    """Return the meters that limit a session's rates upstream and downstream; a direction without a limit has none."""
    directions = ((program.RATE_UP, session.rates.up_bit_s), (program.RATE_DOWN, session.rates.down_bit_s))
    rates = [(meter, meter_rates(bit_s)) for meter, bit_s in directions]
    return [Meter(meter, session.session_id, each) for meter, each in rates if each is not None]


class SessionTables:
    """The sessions of one switch with ``bng.p4`` in it. Those that an earlier controller left are taken over at once."""

    def __init__(self, client: Client, way: Way) -> None:
        self._client = client
        self._way = way
        self._sessions: dict[int, Session] = {}
        self._earlier: dict[int, Usage] = {}
        self._writer = Writer(client)
        self._keys: dict[int, list[Key]] = {}
        """The keys of each session's entries and meters, by session."""
        self._owners: dict[int, int] = {}
        self._prefixes: dict[tuple[int, int], int] = {}
        self._lengths: set[int] = set()
        """Of all prefixes that there have been: a thread that receives asks for owners while sessions change."""
        self._adopt()
        configure_edges(client, way.edges, way.trunk)

    def _adopt(self) -> None:
        found: list[Entity] = []
        for entry in read_entries(self._client, program.SESSIONS):
            session, earlier = session_of(entry)
            self._sessions[session.session_id] = session
            self._earlier[session.session_id] = earlier
            found += (entry, *_meters(session))
            self._keys[session.session_id] = [entry.key, *(meter.key for meter in _meters(session))]
        for entry in read_entries(self._client, program.SUBSCRIBERS_V4, program.SUBSCRIBERS_V6):
            found.append(entry)
            self._keys.setdefault(int(entry.params["session"]), []).append(entry.key)
        self._writer.adopt(found)
        self._index(self._sessions)

    @property
    def installed(self) -> Mapping[int, Session]:
        """The sessions by identifier that this object has installed or found in the switch."""
        return self._sessions

    def __contains__(self, session_id: int) -> bool:
        return session_id in self._sessions

    def __len__(self) -> int:
        return len(self._sessions)

    def earlier(self, session_id: int) -> Usage:
        """Return the usage of a session that other planes counted before this switch; zero if there was none."""
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
        """Add or replace sessions in the switch, in atomic batches.

        ``earlier``: by identifier, the sessions' usage on other planes. For a session that is not in it, the value known before is
        kept, or is zero. Raise :class:`NetworkError` for a session that the gateway cannot forward, or whose address another one
        has.
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
        self, sessions: list[Session], entries: Mapping[int, list[TableEntry]], earlier: Mapping[int, Usage]
    ) -> None:
        wanted: dict[int, list[Entity]] = {
            each.session_id: [*entries[each.session_id], *_meters(each)] for each in sessions
        }
        put = self._by_key(wanted)
        # A former session may have had a new one's number.
        new = [number for number in wanted if number not in self._sessions]
        self._writer.change(
            put.values(),
            [key for number in wanted for key in self._keys.get(number, ())],
            [Register(register, number, 0) for number in new for register in (program.USAGE_UP, program.USAGE_DOWN)],
        )
        for session in sessions:
            number = session.session_id
            self._forget(number)
            self._sessions[number] = session
            self._keys[number] = [entity.key for entity in wanted[number]]
            self._earlier[number] = earlier.get(number, self._earlier.get(number, NO_USAGE))
        self._index([session.session_id for session in sessions])

    def _by_key(self, wanted: Mapping[int, Sequence[Entity]]) -> dict[Key, Entity]:
        """Return the table entries and meters of sessions by key.

        Raise :class:`NetworkError` if two of these sessions have the same address or prefix, or if another installed session has
        it.
        """
        found: dict[Key, Entity] = {}
        for number, entities in wanted.items():
            for entity in entities:
                there = self._writer.installed.get(entity.key)
                owner = int(there.params.get("session", number)) if isinstance(there, TableEntry) else number
                if entity.key in found or (owner != number and owner not in wanted):
                    raise NetworkError(f"session {number}: another session has the same address or prefix")
                found[entity.key] = entity
        return found

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
            self._writer.change(removed=[key for number in chunk for key in self._keys[number]])
            for number in chunk:  # there is nothing to delete any more, if reading the usage fails
                self._keys[number] = []
        found = self.usage(numbers)
        for number in numbers:
            self._forget(number)
            del self._sessions[number], self._keys[number], self._earlier[number]
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
