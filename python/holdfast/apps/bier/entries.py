"""Entries, multicast groups and clone sessions of a switch with ``bier.p4``, as pure functions of plans and channels.

It does not know where plans and memberships come from, nor when they are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address

from holdfast.apps.bier import program
from holdfast.apps.bier.planning import Backup, Bift, NeighbourEntry, SwitchPlan
from holdfast.control.desired import Entity
from holdfast.control.entities import CloneSession, MulticastGroup, Replicas
from holdfast.control.membership.channels import Channel
from holdfast.control.tables import EntryKey, MatchValue, TableEntry
from holdfast.errors import NetworkError

DEFAULT_MTU = 1500


@dataclass(frozen=True)
class Configuration:
    """Entries, and replicas by number.

    Each of ``groups`` is a multicast group and a clone session of the same number; ``sessions`` are clone sessions alone.
    """

    entries: tuple[TableEntry, ...] = ()
    groups: Mapping[int, Replicas] = field(default_factory=dict)
    sessions: Mapping[int, Replicas] = field(default_factory=dict)

    def __or__(self, other: Configuration) -> Configuration:
        """Return the union of two configurations. Raise :class:`NetworkError` if they give a group different replicas."""
        for ours, theirs in ((self.groups, other.groups), (self.sessions, other.sessions)):
            for group in ours.keys() & theirs.keys():
                if ours[group] != theirs[group]:
                    raise NetworkError(f"group {group} cannot have both {ours[group]} and {theirs[group]}")
        return Configuration(
            self.entries + other.entries, {**self.groups, **other.groups}, {**self.sessions, **other.sessions}
        )

    def __iter__(self) -> Iterator[Entity]:
        """Yield every entity of the configuration: multicast groups, clone sessions, then table entries."""
        for number, replicas in self.groups.items():
            yield from group(number, replicas)
        yield from (CloneSession(number, replicas) for number, replicas in self.sessions.items())
        yield from self.entries


def group(number: int, replicas: Replicas) -> tuple[MulticastGroup, CloneSession]:
    """Return a multicast group and the clone session of the same number."""
    return MulticastGroup(number, replicas), CloneSession(number, replicas)


# ---- Ports ----


def port_configuration(
    ports: Iterable[int], macs: Mapping[int, int], recirculation_ports: Iterable[int] = (0,)
) -> Configuration:
    """Return the configuration of a switch's ports, which is written once.

    ``macs``: the MAC addresses of ports that may have receivers. ``recirculation_ports``: the ports by which packets recirculate.
    If they are not looped outside the switch, any port will do, and packets wait in its queue. Looped ports are among the domain's
    ports (:mod:`holdfast.control.domain`).
    """
    sessions = {program.FIRST_PORT_SESSION + _port(port): ((port, 0),) for port in ports}
    for number, port in enumerate(recirculation_ports):
        sessions[program.FIRST_RECIRCULATION_SESSION + number] = ((_port(port), 0),)
    entries = [
        TableEntry(program.PORT_MAC_TABLE, {"port": _port(port)}, program.SET_MAC, {"mac": mac})
        for port, mac in macs.items()
    ]
    return Configuration(tuple(entries), {}, sessions)


def _port(port: int) -> int:
    if not 0 <= port < program.PORTS - 1:
        raise NetworkError(f"port {port} is not in 0 to {program.PORTS - 2}")
    return port


# ---- BFR ----


def switch_configuration(
    plan: SwitchPlan, *, bsl: int = program.DEFAULT_BSL, tunnel_mtu: int = DEFAULT_MTU
) -> Configuration:
    """Return a switch's BIFTs with neighbours and backups, and the addresses at which tunnels end.

    ``tunnel_mtu``: the largest IP packet of a tunnel, in bytes. Packets in a tunnel take this switch's own route to its end, whose
    next hop is :attr:`Backup.next_hop`. Raise :class:`NetworkError` for masks that do not fit each other or the length of
    BitStrings, and for more ECMP buckets than there are groups.
    """
    loopback = int(plan.loopback)
    entries = [TableEntry(table, {key: loopback}, "NoAction") for table, key in program.LOOPBACK_TABLES.items()]
    groups: dict[int, Replicas] = {}
    first = program.BIFT_GROUPS.start
    for bift, buckets in sorted(plan.bifts.items()):
        _check_bift(bift, buckets, plan.own.get(bift, 0), bsl)
        if first + len(buckets) > program.BIFT_GROUPS.stop:
            raise NetworkError(f"a switch has at most {len(program.BIFT_GROUPS)} ECMP buckets in all its BIFTs")
        entries.append(_bift_entry(plan, bift, first, bsl))
        for group, bucket in enumerate(buckets, first):
            numbered = instances(bucket)
            groups[group] = tuple((entry.next_hop.port, instance) for instance, entry in numbered.items())
            for instance, neighbour in numbered.items():
                entries += _neighbour_entries(group, instance, neighbour, bsl)
                entries += _backup_entries(group, instance, neighbour.backups, neighbour.f_bm, bsl, tunnel_mtu)
        first += len(buckets)
    return Configuration(tuple(entries), groups)


def switch_changes(
    before: SwitchPlan, after: SwitchPlan, *, bsl: int = program.DEFAULT_BSL, tunnel_mtu: int = DEFAULT_MTU
) -> tuple[list[Entity], list[EntryKey]] | None:
    """Return (entities to write, keys to remove) that turn :func:`switch_configuration` of ``before`` into that of ``after``.

    None if the plans number their groups differently or have other addresses, so that every entry may differ. Masks are not
    checked.
    """
    numbered = bift_groups(before)
    if bift_groups(after) != numbered or (before.loopback, before.own) != (after.loopback, after.own):
        return None
    put: list[Entity] = []
    gone: list[EntryKey] = []
    for bift, numbers in numbered.items():
        if before.bifts[bift] == after.bifts[bift]:
            continue
        put.append(_bift_entry(after, bift, numbers.start, bsl))
        for number, olds, news in zip(numbers, before.bifts[bift], after.bifts[bift], strict=True):
            old, new = instances(olds), instances(news)
            if old.keys() != new.keys():
                put += group(number, tuple((entry.next_hop.port, instance) for instance, entry in new.items()))
            for instance in dict.fromkeys((*old, *new)):
                if (was := old.get(instance)) == (is_now := new.get(instance)):
                    continue
                known = {} if was is None else _of_neighbour(number, instance, was, is_now, bsl, tunnel_mtu)
                wanted = {} if is_now is None else _of_neighbour(number, instance, is_now, was, bsl, tunnel_mtu)
                put += wanted.values()
                gone += [key for key in known if key not in wanted]
    return put, gone  # a pattern that goes from one neighbour to another is in both


def _of_neighbour(
    group: int, instance: int, neighbour: NeighbourEntry, other: NeighbourEntry | None, bsl: int, tunnel_mtu: int
) -> dict[EntryKey, TableEntry]:
    """Return the entries of ``neighbour`` by key, without those that are the same for ``other``."""
    entries: list[TableEntry] = []
    backups = neighbour.backups
    if other is None or (neighbour.f_bm, neighbour.next_hop) != (other.f_bm, other.next_hop):
        entries += _neighbour_entries(group, instance, neighbour, bsl)
    if other is not None:
        masks = neighbour.f_bm, other.f_bm
        backups = tuple(it for it in backups if it not in other.backups or len({it.f_bm == f_bm for f_bm in masks}) > 1)
    entries += _backup_entries(group, instance, backups, neighbour.f_bm, bsl, tunnel_mtu)
    return {entry.key: entry for entry in entries}


def instances(bucket: Iterable[NeighbourEntry]) -> dict[int, NeighbourEntry]:
    """Return the neighbours of a group by instance: their port's number, plus PORTS for each further one at that port.

    A neighbour keeps its number, and with it its entries, when others come and go.
    """
    numbered: dict[int, NeighbourEntry] = {}
    for neighbour in bucket:
        instance = neighbour.next_hop.port
        while instance in numbered:
            instance += program.PORTS
        numbered[instance] = neighbour
    return numbered


def bift_groups(plan: SwitchPlan) -> dict[Bift, range]:
    """Return by BIFT the range of multicast groups of its ECMP buckets, as :func:`switch_configuration` numbers them."""
    first = program.BIFT_GROUPS.start
    groups = {}
    for bift, buckets in sorted(plan.bifts.items()):
        groups[bift] = range(first, first + len(buckets))
        first += len(buckets)
    return groups


def _check_bift(bift: Bift, buckets: tuple[tuple[NeighbourEntry, ...], ...], own: int, bsl: int) -> None:
    if not buckets or len(buckets) & (len(buckets) - 1):
        raise NetworkError(f"{bift} has {len(buckets)} ECMP buckets, which is not a power of two")
    for bucket in buckets:
        used = own
        for neighbour in bucket:
            if not 0 <= neighbour.f_bm < 1 << bsl or used & neighbour.f_bm:
                raise NetworkError(
                    f"{bift}: the F-BM of {neighbour.neighbour} overlaps another's, or is longer than {bsl} bits"
                )
            used |= neighbour.f_bm
            covered = 0
            for backup in neighbour.backups:
                if covered & backup.f_bm or backup.f_bm & ~neighbour.f_bm:
                    raise NetworkError(
                        f"{bift}: the backups of {neighbour.neighbour} overlap, or have bits that are not its own"
                    )
                covered |= backup.f_bm
    if not 0 <= own < 1 << bsl or own & (own - 1):
        raise NetworkError(f"{bift}: {own:#x} is not one bit of {bsl}")


def _bift_entry(plan: SwitchPlan, bift: Bift, first_group: int, bsl: int) -> TableEntry:
    buckets = plan.bifts[bift]
    reachable = 0
    ports = 0
    for neighbour in (neighbour for bucket in buckets for neighbour in bucket):
        reachable |= neighbour.f_bm
        ports |= 1 << _port(neighbour.next_hop.port)
    return TableEntry(
        program.BIFT_TABLE,
        {"bift_id": bift.bift_id(bsl)},
        program.BIFT,
        {
            "own_bit": plan.own.get(bift, 0),
            "reachable_bits": reachable,
            "first_group": first_group,
            "bucket_mask": len(buckets) - 1,
            "neighbour_ports": ports,
        },
    )


def _neighbour_entries(group: int, instance: int, neighbour: NeighbourEntry, bsl: int) -> tuple[TableEntry, ...]:
    """Return a neighbour's two entries: for its copy of a replicated packet, and for a packet that has this next hop only."""
    hop = neighbour.next_hop
    copy = {"f_bm": neighbour.f_bm, "src_mac": hop.src_mac, "dst_mac": hop.dst_mac}
    return (
        TableEntry(program.COPY_TABLE, {"group": group, "instance": instance}, program.COPY, copy),
        TableEntry(
            program.NEXT_HOP_TABLE,
            {"group": group, **_only_of(neighbour.f_bm, bsl)},
            program.NEXT_HOP,
            {"instance": instance, "f_bm": neighbour.f_bm, **hop.params()},
            priority=1,
        ),
    )


def _only_of(f_bm: int, bsl: int) -> dict[str, MatchValue]:
    """Return the ternary match for BitStrings without bits outside ``f_bm``; empty if ``f_bm`` has all bits."""
    others = ~f_bm & (1 << bsl) - 1
    return {"bit": (0, others)} if others else {}


def _backup_entries(
    group: int, instance: int, backups: Iterable[Backup], of: int, bsl: int, tunnel_mtu: int
) -> Iterator[TableEntry]:
    """Yield the entries of a neighbour's backups. ``of``: the neighbour's F-BM."""
    every_bit = (1 << bsl) - 1
    for backup in backups:
        # A backup for all bits does not change when the neighbour's F-BM does.
        f_bm = every_bit if backup.f_bm == of else backup.f_bm
        action, params = _backup_action(backup, f_bm, tunnel_mtu)
        match: dict[str, MatchValue] = {"group": group, "instance": instance, **_only_of(f_bm, bsl)}
        yield TableEntry(program.BACKUP_TABLE, match, action, params, priority=1)


def _backup_action(backup: Backup, f_bm: int, tunnel_mtu: int) -> tuple[str, dict[str, int | str]]:
    if backup.tunnel is None:
        return program.LFA, {"f_bm": f_bm, **backup.next_hop.params()}
    source, destination = backup.tunnel
    return program.TUNNEL, {"f_bm": f_bm, "src": int(source), "dst": int(destination), "mtu_bytes": tunnel_mtu}


# ---- Clusters ----


def cluster_configuration(
    plan: SwitchPlan, clusters: Mapping[tuple[Bift, int], Iterable[frozenset[int]]]
) -> Configuration:
    """Return the entries and groups of clusters.

    ``clusters``: by BIFT and ECMP bucket, sets of positions of neighbours in the bucket. A BitString uses the smallest cluster that
    has all its neighbours. Raise :class:`NetworkError` for more clusters than groups.
    """
    entries: list[TableEntry] = []
    groups: dict[int, Replicas] = {}
    numbers = iter(program.CLUSTER_GROUPS)
    of_bifts = bift_groups(plan)
    for (bift, bucket), sets in sorted(clusters.items(), key=lambda item: item[0]):
        neighbours = plan.bifts[bift][bucket]
        numbered = list(instances(neighbours))
        for members in sorted(sets, key=lambda members: (len(members), sorted(members))):
            number = next(numbers, None)
            if number is None:
                raise NetworkError(f"a switch has at most {len(program.CLUSTER_GROUPS)} clusters")
            outside = 0
            for position, neighbour in enumerate(neighbours):
                if position not in members:
                    outside |= neighbour.f_bm
            entries.append(
                TableEntry(
                    program.CLUSTER_TABLE,
                    {"group": of_bifts[bift][bucket]} | ({"bit_string": (0, outside)} if outside else {}),
                    program.CLUSTER,
                    {"multicast_group": number},
                    priority=program.PORTS - len(members),
                )
            )
            groups[number] = tuple((neighbours[at].next_hop.port, numbered[at]) for at in sorted(members))
    return Configuration(tuple(entries), groups)


# ---- BFIR and BFER ----


def bfir_configuration(
    plan: SwitchPlan,
    channels: Mapping[Channel, Mapping[Bift, int]],
    *,
    bsl: int = program.DEFAULT_BSL,
    mtu: int = DEFAULT_MTU,
) -> Configuration:
    """Return the entries that give packets from this switch's hosts the BitStrings of their channels.

    A packet is copied once for each BIFT (subdomain and set identifier) in which its channel has bits. The entry of a channel (S,G)
    without bits discards its packets, so that they do not match the entry of (*,G). ``mtu``: the largest BIER packet with its
    payload, in bytes behind the Ethernet header. Raise :class:`NetworkError` for a BitString of more than ``bsl`` bits, and if all
    channels together have more than 65,535 copies beyond the first of each.
    """
    entries: list[TableEntry] = []
    free = iter(range(1, 0x10000))
    for channel, bit_strings in sorted(channels.items(), key=_channel_order):
        passes = in_passes(plan, bit_strings)
        further = dict(zip((bift for bift, _ in passes[1:]), free, strict=False))
        if len(further) < len(passes) - 1:
            raise NetworkError("the channels of a BFIR have at most 65535 sets beyond their first ones")
        entries += sent_entries(plan, channel, passes, further, bsl=bsl, mtu=mtu)
    return Configuration(tuple(entries))


def in_passes(plan: SwitchPlan, bit_strings: Mapping[Bift, int]) -> list[tuple[Bift, int]]:
    """Return the (BIFT, BitString) pairs of a channel that have bits, one for each pass through the BFIR.

    The set with the BFIR's own bit is last, because a copy that recirculates would be delivered here twice.
    """
    sets = [(bift, bits) for bift, bits in sorted(bit_strings.items()) if bits]
    return sorted(sets, key=lambda item: bool(item[1] & plan.own.get(item[0], 0)))


def sent_entries(
    plan: SwitchPlan,
    channel: Channel,
    passes: Sequence[tuple[Bift, int]],
    further: Mapping[Bift, int],
    *,
    bsl: int = program.DEFAULT_BSL,
    mtu: int = DEFAULT_MTU,
) -> list[TableEntry]:
    """Return the entries of one channel at its BFIR. ``further``: the numbers of all passes except the first, by BIFT.

    Raise :class:`NetworkError` for a BitString that is too long.
    """
    for bift, bits in passes:
        if bits >= 1 << bsl:
            raise NetworkError(f"{bift}: the BitString of {channel[1]} is longer than {bsl} bits")
    entries = []
    following = 0
    for bift, bits in passes[:0:-1]:
        params = {"bift_id": bift.bift_id(bsl), "bit_string": bits, "next_set": following}
        following = further[bift]
        entries.append(TableEntry(program.FURTHER_SET_TABLE, {"set": following}, program.IMPOSE_FURTHER, params))
    table, match = program.channel_table(channel[1].version, any_source=channel[0] is None), channel_match(channel)
    if not passes:
        return [TableEntry(table, match, program.DISCARD_CHANNEL)]
    bift, bits = passes[0]
    first: dict[str, int | str] = {
        "bfir_id": plan.bfr_id,
        "bift_id": bift.bift_id(bsl),
        "bit_string": bits,
        "next_set": following,
        "mtu_bytes": mtu,
    }
    return [*entries, TableEntry(table, match, program.IMPOSE, first)]


def bfer_configuration(channels: Mapping[Channel, Iterable[int]]) -> Configuration:
    """Return the entries and groups by which a BFER delivers the payloads of channels to ports.

    The entry of a channel (S,G) without ports discards its payloads, so that they do not match the entry of (*,G). Channels with
    the same ports share a group. Raise :class:`NetworkError` for more sets of ports than groups.
    """
    entries: list[TableEntry] = []
    numbers: dict[tuple[int, ...], int] = {}
    for channel, members in sorted(channels.items(), key=_channel_order):
        ports = tuple(sorted({_port(port) for port in members}))
        number = numbers.setdefault(ports, program.RECEIVER_GROUPS.start + len(numbers)) if ports else 0
        if number and number not in program.RECEIVER_GROUPS:
            raise NetworkError(f"a switch has at most {len(program.RECEIVER_GROUPS)} sets of ports that joined")
        entries.append(delivered_entry(channel, number))
    return Configuration(
        tuple(entries), {number: tuple((port, 0) for port in ports) for ports, number in numbers.items()}
    )


def delivered_entry(channel: Channel, group: int) -> TableEntry:
    """Return the entry of one channel at a BFER: deliver to multicast group ``group``, or discard the payloads if it is 0."""
    table, match = program.receiver_table(channel[1].version, any_source=channel[0] is None), channel_match(channel)
    if not group:
        return TableEntry(table, match, program.DISCARD_PAYLOAD)
    return TableEntry(table, match, program.DELIVER, {"m_grp": group})


def _channel_order(item: tuple[Channel, object]) -> tuple[int, int, int]:
    (source, group), _ = item
    return group.version, int(group), -1 if source is None else int(source)


def channel_match(channel: Channel) -> dict[str, MatchValue]:
    """Return the match fields of a channel's entries. Raise :class:`NetworkError` if source and group are not a channel."""
    source, group = channel
    if not group.is_multicast or (source is not None and source.version != group.version):
        raise NetworkError(f"({source or '*'}, {group}) is not a channel")
    header = f"hdr.ipv{group.version}"
    match: dict[str, MatchValue] = {f"{header}.dst_addr": int(group)}
    if source is not None:
        match[f"{header}.src_addr"] = int(source)
    return match


def matched_channel(match: Mapping[str, MatchValue], version: int) -> Channel:
    """Return the channel that the match fields of an entry stand for; it is the inverse of :func:`channel_match`."""
    kind = IPv4Address if version == 4 else IPv6Address
    group, source = (match.get(f"hdr.ipv{version}.{name}_addr") for name in ("dst", "src"))
    assert isinstance(group, int)
    return (kind(source) if isinstance(source, int) else None), kind(group)
