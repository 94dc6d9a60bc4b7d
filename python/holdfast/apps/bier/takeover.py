"""The entries that another controller has left in a switch, by the plan or channel that they belong to. Nothing is written here.

The owner of an entry follows from tables, group numbers and addresses alone, so that half of a change is found as well as all of
it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from holdfast.apps.bier import program
from holdfast.apps.bier.entries import Configuration
from holdfast.apps.bier.planning import BSL_CODES, LOOPBACKS, NOT_VIA
from holdfast.control.tables import TableEntry, read_entries
from holdfast.p4runtime.client import Client

_BIFT_TABLES = (
    program.BIFT_TABLE,
    program.NEXT_HOP_TABLE,
    program.BACKUP_TABLE,
    program.COPY_TABLE,
    program.CLUSTER_TABLE,
    *program.LOOPBACK_TABLES,
)
_CHANNEL_TABLES = (
    program.FURTHER_SET_TABLE,
    *(
        table(version, any_source=any_source)
        for table in (program.channel_table, program.receiver_table)
        for version in (4, 6)
        for any_source in (False, True)
    ),
)


@dataclass(frozen=True)
class Found:
    """The entries of a switch. ``bfr_id``: its number, from its own bit; 0 if it has none."""

    bfr_id: int
    host_routes: list[TableEntry]
    tunnels: list[TableEntry]
    """Routes to switches, and the addresses of interfaces that tunnels end at."""
    ports: Configuration
    bifts: Configuration
    channels: Configuration
    streams: tuple[TableEntry, ...] = ()
    """The entries of 1+1 protection."""

    @property
    def is_filled(self) -> bool:
        """True if an earlier controller has left anything in the switch, even only a multicast group or a clone session."""
        parts = (self.ports, self.bifts, self.channels)
        return bool(self.host_routes or self.tunnels or self.streams) or any(
            part.entries or part.groups or part.sessions for part in parts
        )


def find(client: Client, bsl: int) -> Found:
    """Read the entries and groups of a switch; return them by what they belong to: routes, tunnels, ports, BIFTs, channels."""
    routes = read_entries(client, program.ROUTES.ipv4)
    to_hosts = [entry for entry in routes if not _leads_to_a_switch(entry)] + read_entries(client, program.ROUTES.ipv6)
    tunnels = [entry for entry in routes if _leads_to_a_switch(entry)]
    groups = {number: tuple(replicas) for number, replicas in client.multicast_groups().items()}
    sessions = {number: tuple(replicas) for number, replicas in client.clone_sessions().items()}
    receivers = {number: each for number, each in groups.items() if number in program.RECEIVER_GROUPS}
    bifts = {number: each for number, each in groups.items() if number not in receivers}
    port_sessions = {number: each for number, each in sessions.items() if number < program.BIFT_GROUPS.start}
    entries = _read(client, _BIFT_TABLES)
    tunnels += [entry for entry in entries if _is_not_via(entry)]
    entries = tuple(entry for entry in entries if not _is_not_via(entry))
    return Found(
        _bfr_id(entries, bsl),
        to_hosts,
        tunnels,
        Configuration(_read(client, (program.PORT_MAC_TABLE,)), {}, port_sessions),
        Configuration(entries, bifts),
        Configuration(_read(client, _CHANNEL_TABLES), receivers),
        _read(client, program.STREAM_TABLES),
    )


def _read(client: Client, tables: Iterable[str]) -> tuple[TableEntry, ...]:
    return tuple(entry for table in tables for entry in read_entries(client, table))


def _leads_to_a_switch(entry: TableEntry) -> bool:
    (match,) = entry.match.values()
    assert isinstance(match, tuple)
    prefix = IPv4Network(match)
    return any(prefix.subnet_of(ours) for ours in (LOOPBACKS, NOT_VIA))


def _is_not_via(entry: TableEntry) -> bool:
    if entry.table not in program.LOOPBACK_TABLES:
        return False
    (address,) = entry.match.values()
    assert isinstance(address, int)
    return IPv4Address(address) in NOT_VIA


def _bfr_id(entries: Iterable[TableEntry], bsl: int) -> int:
    """Return the BFR-id given by the own bit of a BIFT entry; 0 if no entry has one.

    Entries of BIFTs with another length of BitStrings are ignored.
    """
    for entry in entries:
        if entry.table == program.BIFT_TABLE:
            bift_id, own = entry.match["bift_id"], entry.params["own_bit"]
            assert isinstance(bift_id, int) and isinstance(own, int)
            if own and bift_id >> 16 == BSL_CODES[bsl]:
                return (bift_id & 255) * bsl + own.bit_length()
    return 0
