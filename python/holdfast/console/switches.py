"""Texts about links and switches of a running network: ports, tables, counters, drops, and what BMv2's commands say.

Only those commands change anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING

from holdfast.bmv2.runtime_cli import RuntimeCli
from holdfast.errors import ConsoleError, HoldfastError
from holdfast.measurements import DirectionCounters
from holdfast.p4runtime.client import Client
from holdfast.p4runtime.p4info import Table
from holdfast.p4runtime.received import Entry
from holdfast.topology import Link

if TYPE_CHECKING:
    from holdfast.console.session import Result, Session

MOST_ENTRIES = 200
"""Of a table that are shown."""


def _result(lines: Sequence[str], **values: float) -> Result:
    from holdfast.console.session import Result

    return Result("\n".join(lines), values=values)


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as lines with columns that are as wide as they must be."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


class Commands:
    """Carries out commands of simple_switch_CLI at switches, and knows the nodes of multicast groups from one to the next."""

    def __init__(self) -> None:
        self._switches: dict[str, RuntimeCli] = {}

    def obey(self, session: Session, switch: str, command: str) -> Result:
        """Return what a command says. Raises :class:`ConsoleError` if it cannot be carried out."""
        found = self._switches.get(switch)
        if found is None:
            client = session.network.client(switch)
            found = self._switches[switch] = RuntimeCli(client, lambda: ports(session, switch).text)
        failed, found.stdout = found.failed, StringIO()
        with session.clock.held():
            found.onecmd(command)
        text = found.stdout.getvalue().rstrip("\n")
        if found.failed > failed:
            raise ConsoleError(text.removeprefix("Error: "))
        return _result([text])


def links(session: Session) -> Result:
    """Return a line for each link."""
    network, topology = session.network, session.topology
    rows = [("link", "ports", "state", "rate", "delay", "->", "<-", "lost")]
    with session.clock.held():
        counted = network.all_link_counters()
        for name, (link, counters) in zip(topology.link_names(), counted, strict=True):
            lost = sum(lost_packets(each) for each in (counters.a_to_b, counters.b_to_a))
            rows.append(
                (
                    name,
                    f"{link.a_port}-{link.b_port}",
                    "up" if is_up(session, link) else "down",
                    _rate(link.rate_bps),
                    f"{link.delay_ms:g} ms",
                    str(counters.a_to_b.packets),
                    str(counters.b_to_a.packets),
                    str(lost),
                )
            )
    return _result(_columns(rows), links=len(counted))


def _rate(bps: float | None) -> str:
    if bps is None:
        return "-"
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if bps >= size:
            return f"{bps / size:g} {unit}bit/s"
    return f"{bps:g} bit/s"


def lost_packets(counters: DirectionCounters) -> int:
    """Return the packets that a direction of a link has lost, for whatever reason."""
    return counters.queue_drops + counters.red_drops + counters.loss_drops + counters.down_drops + counters.mtu_drops


def is_up(session: Session, link: Link) -> bool:
    """Return True if the switches at the ends of a link have a signal of it."""
    ends = ((link.a, link.a_port), (link.b, link.b_port))
    return all(session.network.port_is_up(node, port) for node, port in ends if node in session.topology.switches)


def ports(session: Session, switch: str) -> Result:
    """Return a line for each port of a switch."""
    network = session.network
    rows = [("port", "state", "to", "in", "out", "lost out")]
    with session.clock.held():
        for link, counters in network.all_link_counters():
            for node, port, other, other_port, out, into in (
                (link.a, link.a_port, link.b, link.b_port, counters.a_to_b, counters.b_to_a),
                (link.b, link.b_port, link.a, link.a_port, counters.b_to_a, counters.a_to_b),
            ):
                if node == switch:
                    state = "up" if network.port_is_up(switch, port) else "down"
                    far = f"{other}:{other_port}" if other in session.topology.switches else other
                    rows.append((str(port), state, far, str(into.delivered), str(out.packets), str(lost_packets(out))))
        cpu = network.devices[switch].switch.cpu_port
        rows.append((str(cpu), "", "controller", "", str(network.node_counters(switch).packet_ins), ""))
    head, *found = rows
    return _result(_columns([head, *sorted(found, key=lambda row: int(row[0]))]), ports=len(found))


def tables(session: Session, switch: str, table: str | None) -> Result:
    """Return the entries of a switch's tables, or of one. ``table``: the name of the one, None for all."""
    with session.clock.held():
        lines, total = table_lines(session.network.client(switch), table)
    return _result(lines, entries=total)


def table_lines(client: Client, table: str | None) -> tuple[list[str], int]:
    """Return the entries of a client's tables, or of one, as lines, and their number.

    ``table``: the name of the one, None for all.
    """
    chosen = [client.p4info.tables[table]] if table else list(client.p4info.tables)
    lines, total = [], 0
    for info in chosen:
        found = client.read_table(info.name)
        total += len(found)
        lines.append(f"{info.name}: {len(found)} of {info.size} entries")
        lines += [f"  {entry_text(info, each)}" for each in found[:MOST_ENTRIES]]
        if len(found) > MOST_ENTRIES:
            lines.append(f"  and {len(found) - MOST_ENTRIES} more")
        try:
            default = client.read_default(info.name)
        except HoldfastError:
            continue
        if default.action:
            lines.append(f"  otherwise  {_action(default, info)}")
    return lines or ["the program has no tables"], total


def entry_text(info: Table, entry: Entry) -> str:
    """Return a table entry on one line."""
    fields = {each.name: (each.form, each.width) for each in info.fields}
    key = ", ".join(f"{name}={_value(value, *fields.get(name, ('value', 0)))}" for name, value in entry.match.items())
    what = _action(entry, info)
    priority = f"  priority {entry.priority}" if entry.priority else ""
    counter = f"  {entry.counter[0]} packets, {entry.counter[1]} bytes" if entry.counter else ""
    return f"{key or 'anything'} -> {what}{priority}{counter}{'  (constant)' if entry.is_const else ''}"


def _action(entry: Entry, info: Table) -> str:
    if entry.group is not None:
        return f"group {entry.group}"
    if entry.member is not None:
        return f"member {entry.member}"
    widths = {each.name: each.width for each in info.actions[entry.action].params}
    params = ", ".join(f"{name}={_number(value, widths.get(name, 0))}" for name, value in entry.params.items())
    return f"{entry.action}({params})"


def _value(value: object, form: str, width: int) -> str:
    if not isinstance(value, tuple):
        return _number(value, width)
    first, second = value
    if form == "prefix":
        return f"{_number(first, width)}/{second}"
    if form == "range":
        return f"{first}..{second}"
    return f"{_number(first, width)} &&& {second:#x}"


def _number(value: object, width: int) -> str:
    """Return a value as people write it: of 32 and 128 bits as an address of IP, of 48 as a MAC address.

    ``width`` is the field's, in bits.
    """
    if not isinstance(value, int):
        return str(value)
    if width == 32:
        return str(IPv4Address(value))
    if width == 48:
        return value.to_bytes(6, "big").hex(":")
    if width == 128:
        return str(IPv6Address(value))
    return hex(value) if width > 16 else str(value)


def counters(session: Session, switch: str, counter: str | None) -> Result:
    """Return the cells that are not zero of a switch's counters, or of one; direct counters are beside their entries.

    ``counter``: the name of the one, None for all.
    """
    with session.clock.held():
        lines, packets = counter_lines(session.network.client(switch), counter)
    return _result(lines, packets=packets)


def counter_lines(client: Client, counter: str | None) -> tuple[list[str], int]:
    """Return the cells that are not zero of a client's counters, or of one, as lines, and the sum of their packets.

    ``counter``: the name of the one, None for all.
    """
    chosen = [client.p4info.counters[counter]] if counter else list(client.p4info.counters)
    rows, packets = [], 0
    for info in chosen:
        for index, (some, size) in client.counters(info.name).items():
            if some or size:
                packets += some
                rows.append((f"{info.name}[{index}]", f"{some} packets", f"{size} bytes"))
    return _columns(rows) or ["nothing was counted"], packets


def drops(session: Session, switch: str) -> Result:
    """Return the reasons for which a switch, and the links that leave it, have dropped packets."""
    network = session.network
    found: dict[str, int] = {}
    with session.clock.held():
        found |= network.devices[switch].switch.drops()
        counted = network.node_counters(switch)
        found |= {
            "no such port": counted.unconnected_drops,
            "switch down": counted.down_drops,
            "queue": counted.queue_drops,
        }
        for link, counters in network.all_link_counters():
            for node, port, out in ((link.a, link.a_port, counters.a_to_b), (link.b, link.b_port, counters.b_to_a)):
                if node == switch:
                    found |= {
                        f"port {port}: queue": out.queue_drops + out.red_drops,
                        f"port {port}: lossy link": out.loss_drops,
                        f"port {port}: link down": out.down_drops,
                        f"port {port}: longer than the MTU": out.mtu_drops,
                    }
    rows = [(reason.replace("_", " "), str(count)) for reason, count in found.items() if count]
    return _result(_columns(rows) or ["no packets were dropped"], drops=sum(found.values()))


__all__ = [
    "counter_lines",
    "counters",
    "drops",
    "entry_text",
    "is_up",
    "links",
    "lost_packets",
    "ports",
    "table_lines",
    "tables",
]
