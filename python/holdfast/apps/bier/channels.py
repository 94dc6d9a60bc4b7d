"""The channels of one switch as BFIR and BFER: a change writes what it changes, whatever else there is.

Numbers stay: sets of ports keep their multicast groups, and further set identifiers of a channel their numbers, as long as they
are in use. It does not know which switches are the BFIRs and BFERs of a channel, nor where memberships come from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeAlias, TypeVar

from holdfast.apps.bier import program
from holdfast.apps.bier.entries import (
    DEFAULT_MTU,
    Configuration,
    channel_match,
    delivered_entry,
    group,
    in_passes,
    matched_channel,
    sent_entries,
)
from holdfast.apps.bier.planning import Bift, SwitchPlan
from holdfast.control.desired import Entity, Key, Writer
from holdfast.control.entities import Replicas
from holdfast.control.membership.channels import Channel, Channels
from holdfast.control.numbers import Numbers
from holdfast.control.tables import entry_key
from holdfast.errors import HoldfastError
from holdfast.p4runtime.client import Client

Name = TypeVar("Name")
Value = TypeVar("Value")

Sent: TypeAlias = Mapping[Channel, Mapping[Bift, int] | None]
"""The BitStrings of a channel's packets; None: the channel is not there, and no BitStrings: its packets are discarded."""

Delivered: TypeAlias = Mapping[Channel, frozenset[int] | None]
"""The ports of a channel; None: the channel is not there, and no ports: its packets are discarded."""

RECEIVER_TABLES = {
    program.receiver_table(version, any_source=any_source): version
    for version in (4, 6)
    for any_source in (False, True)
}
"""The IP version of each table of receivers, by the table's name."""

_BFIR_TABLES = {
    program.channel_table(version, any_source=any_source): version for version in (4, 6) for any_source in (False, True)
}


class _Step:
    """What one change of channels has taken and replaced, so that it can be undone if the switch refuses it."""

    def __init__(self) -> None:
        self.taken: list[tuple[Numbers, int]] = []
        self.returned: list[tuple[Numbers, int]] = []
        self.further: dict[Channel, dict[Bift, int] | None] = {}
        self.delivered: dict[Channel, frozenset[int] | None] = {}
        self.groups: dict[frozenset[int], int | None] = {}
        self.users: Counter[frozenset[int]] = Counter()

    def take(self, numbers: Numbers) -> int:
        number = numbers.take()
        self.taken.append((numbers, number))
        return number


class ChannelWriter:
    """The channels that one controller keeps in one switch. A change that the switch refuses leaves nothing changed."""

    def __init__(self, client: Client, *, bsl: int = program.DEFAULT_BSL, mtu: int = DEFAULT_MTU) -> None:
        self._writer = Writer(client)
        self._bsl, self._mtu = bsl, mtu
        receivers = program.RECEIVER_GROUPS
        self._free_groups = Numbers(receivers.start, receivers.stop - 1, "multicast groups of receivers of a switch")
        self._groups: dict[frozenset[int], int] = {}
        self._users: Counter[frozenset[int]] = Counter()
        self._delivered: dict[Channel, frozenset[int]] = {}
        self._free_sets = Numbers(1, 0xFFFF, "sets beyond the first ones of a BFIR's channels")
        self._further: dict[Channel, dict[Bift, int]] = {}
        self._step = _Step()

    def adopt(self, found: Configuration) -> None:
        """Take over the channels that an earlier controller has left in the switch, with their numbers, until :meth:`start`."""
        self._writer.adopt(found)
        for number, replicas in found.groups.items():
            ports = frozenset(port for port, _ in replicas)
            if ports not in self._groups and self._free_groups.claim(number):
                self._groups[ports] = number
        further = {
            entry.match["set"]: entry.params for entry in found.entries if entry.table == program.FURTHER_SET_TABLE
        }
        for entry in found.entries:
            version = _BFIR_TABLES.get(entry.table)
            number = int(entry.params.get("next_set", 0)) if version is not None else 0
            while (params := further.pop(number, None)) is not None and version is not None:
                bift = Bift.of_id(int(params["bift_id"]))
                if self._free_sets.claim(number):
                    self._further.setdefault(matched_channel(entry.match, version), {})[bift] = number
                number = int(params["next_set"])

    def start(self, plan: SwitchPlan, sent: Sent, delivered: Delivered) -> None:
        """Write all channels that the switch sends and delivers, and remove adopted entries that are not among them."""
        self._plan = plan
        self._step = _Step()
        put, _ = self._changes(sent, delivered)
        self._writer.write(put)
        self._commit()
        for ports in [ports for ports in self._groups if ports not in self._users]:
            self._free_groups.give_back(self._groups.pop(ports))
        for channel in [channel for channel in self._further if channel not in sent]:
            for number in self._further.pop(channel).values():
                self._free_sets.give_back(number)

    def change(self, sent: Sent, delivered: Delivered) -> None:
        """Write changes of channels that the switch sends and delivers, in one batch.

        Raise :class:`HoldfastError` if the switch refuses the batch; then nothing has changed.
        """
        self._step = _Step()
        try:
            self._writer.change(*self._changes(sent, delivered))
        except HoldfastError:
            self._roll_back()
            raise
        self._commit()

    def _commit(self) -> None:
        """Free the numbers of sets and groups that the last write removed from the switch."""
        for numbers, number in self._step.returned:
            numbers.give_back(number)

    def _roll_back(self) -> None:
        step = self._step
        for numbers, number in step.taken:
            numbers.give_back(number)
        for channel, further in step.further.items():
            _put_back(self._further, channel, further)
        for ports, before_it in step.groups.items():
            _put_back(self._groups, ports, before_it)
        for channel, before in step.delivered.items():
            _put_back(self._delivered, channel, before)
        for ports, more in step.users.items():
            self._count(ports, -more)

    def _changes(self, sent: Sent, delivered: Delivered) -> tuple[list[Entity], list[Key]]:
        put: list[Entity] = []
        removed: list[Key] = []
        for channel, bit_strings in sent.items():
            self._send(channel, bit_strings, put, removed)
        groups: dict[int, Replicas | None] = {}
        left = []
        for channel, ports in delivered.items():
            self._step.delivered[channel] = before = self._delivered.pop(channel, None)
            if before is not None:
                left.append(before)
            if ports is None:
                table = program.receiver_table(channel[1].version, any_source=channel[0] is None)
                removed.append(entry_key(table, channel_match(channel)))
                continue
            number = 0
            if ports:
                number = self._group(ports)
            self._delivered[channel] = ports
            if ports:
                self._use(ports, 1)
                groups[number] = tuple((port, 0) for port in sorted(ports))
            put.append(delivered_entry(channel, number))
        for ports in left:
            self._give_back(ports, groups)
        for number, replicas in groups.items():
            if replicas is None:
                removed += (each.key for each in group(number, ()))
            else:
                put += group(number, replicas)
        return put, removed

    # ---- As BFIR ----

    def _send(
        self, channel: Channel, bit_strings: Mapping[Bift, int] | None, put: list[Entity], removed: list[Key]
    ) -> None:
        self._step.further[channel] = self._further.pop(channel, None)
        numbers = self._step.further[channel] or {}
        further: dict[Bift, int] = {}
        if bit_strings is None:
            table = program.channel_table(channel[1].version, any_source=channel[0] is None)
            removed.append(entry_key(table, channel_match(channel)))
        else:
            passes = in_passes(self._plan, bit_strings)
            further = {bift: numbers.get(bift) or self._step.take(self._free_sets) for bift, _ in passes[1:]}
            put += sent_entries(self._plan, channel, passes, further, bsl=self._bsl, mtu=self._mtu)
            if further:
                self._further[channel] = further
        for bift in [bift for bift in numbers if bift not in further]:
            removed.append(entry_key(program.FURTHER_SET_TABLE, {"set": numbers[bift]}))
            self._step.returned.append((self._free_sets, numbers[bift]))

    # ---- As BFER ----

    def _group(self, ports: frozenset[int]) -> int:
        if ports not in self._groups:
            self._step.groups.setdefault(ports, None)
            self._groups[ports] = self._step.take(self._free_groups)
        return self._groups[ports]

    def _use(self, ports: frozenset[int], more: int) -> None:
        self._step.users[ports] += more
        self._count(ports, more)

    def _count(self, ports: frozenset[int], more: int) -> None:
        self._users[ports] += more
        if not self._users[ports]:
            del self._users[ports]

    def _give_back(self, ports: frozenset[int], groups: dict[int, Replicas | None]) -> None:
        if not ports:
            return
        self._use(ports, -1)
        if ports not in self._users:
            number = self._groups.pop(ports)
            self._step.groups.setdefault(ports, number)
            self._step.returned.append((self._free_groups, number))
            groups[number] = None


def _put_back(known: dict[Name, Value], key: Name, value: Value | None) -> None:
    if value is None:
        known.pop(key, None)
    else:
        known[key] = value


def delivered_channels(found: Mapping[str, Configuration]) -> Channels:
    """Return the channels that switches deliver, with their ports by switch, as read back from the switches' entries."""
    channels: dict[Channel, dict[str, frozenset[int]]] = {}
    for switch, configuration in found.items():
        for entry in configuration.entries:
            version = RECEIVER_TABLES.get(entry.table)
            if version is not None:
                ports: frozenset[int] = frozenset()
                if entry.action == program.DELIVER:
                    replicas: Iterable[tuple[int, int]] = configuration.groups.get(int(entry.params["m_grp"]), ())
                    ports = frozenset(port for port, _ in replicas)
                channels.setdefault(matched_channel(entry.match, version), {})[switch] = ports
    return channels
