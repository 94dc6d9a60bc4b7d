"""What a live network shows of itself while it runs: links, ports, nodes, and how late it is.

::

    with LiveNetwork(...) as network, pages(network) as shown:
        print(f"http://{shown.authority}/metrics")
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from prometheus_client import Metric

from holdfast.measurements import DirectionCounters
from holdfast.network import LiveNetwork
from holdfast.operations import exposition
from holdfast.operations.events import Events
from holdfast.operations.pages import LOOPBACK, Pages
from holdfast.parameters import PS_PER_S

_PREFIX = "holdfast_network_"
_LINK = ("source", "port", "destination")
_NODE_DROPS = (
    "unconnected_drops",
    "queue_drops",
    "down_drops",
    "not_addressed",
    "unwanted",
    "corrupted",
    "interface_drops",
    "unresolved_drops",
)


def pages(network: LiveNetwork, port: int = 0, host: str = LOOPBACK, *, events: Events | None = None) -> Pages:
    """Return a web server of a running network's metrics and events. ``port`` 0 takes a free one."""
    about = {"network": network.topology.name, "p4runtime": network.p4runtime_address}
    return Pages(lambda: families(network), port, host, about=about, events=events)


def families(network: LiveNetwork) -> Iterator[Metric]:
    """Yield all metrics of a running network."""
    directions = [
        found
        for link, counters in network.all_link_counters()
        for found in (
            ((link.a, str(link.a_port), link.b), counters.a_to_b),
            ((link.b, str(link.b_port), link.a), counters.b_to_a),
        )
    ]
    yield from _of_links(directions)
    ports = sorted({(source, port) for (source, port, _), _ in directions if source in network.topology.switches})
    about = "Ports with a signal, as far as their switch has noticed."
    states = (((node, port), network.port_is_up(node, int(port))) for node, port in ports)
    yield exposition.family("gauge", _PREFIX + "port_up", about, ("node", "port"), states)
    yield from _of_nodes(network)
    wall = network.wall_statistics()
    lateness_s = wall.max_lateness_ps / PS_PER_S
    yield exposition.single("counter", _PREFIX + "events_total", "Events of the network's clock.", wall.events)
    yield exposition.single("gauge", _PREFIX + "lateness_seconds_max", "The latest event so far.", lateness_s)
    lost = wall.notifications_lost
    yield exposition.single("counter", _PREFIX + "notifications_lost_total", "Notifications that were lost.", lost)


def _of_links(directions: list[tuple[tuple[str, str, str], DirectionCounters]]) -> Iterator[Metric]:
    kinds = (
        ("packets", "Packets put on the wire of a link, in one direction."),
        ("bytes", "Bytes of these, with the physical layer's overhead."),
        ("offered", "Packets that came to the queue of a link."),
        ("delivered", "Packets that arrived at the other end of a link."),
    )
    for name, about in kinds:
        counts = ((labels, getattr(counters, name)) for labels, counters in directions)
        yield exposition.family("counter", f"{_PREFIX}link_{name}_total", about, _LINK, counts)
    drops = (
        ((*labels, field.removesuffix("_drops")), count)
        for labels, counters in directions
        for field, count in asdict(counters).items()
        if field.endswith("_drops")
    )
    about = "Packets lost on a link, by reason."
    yield exposition.family("counter", _PREFIX + "link_drops_total", about, (*_LINK, "reason"), drops)
    waiting = ((labels, counters.in_transit) for labels, counters in directions)
    about = "Packets that wait for a link or are on it."
    yield exposition.family("gauge", _PREFIX + "link_in_transit", about, _LINK, waiting)


def _of_nodes(network: LiveNetwork) -> Iterator[Metric]:
    nodes = [(name, network.node_counters(name)) for name in (*network.topology.switches, *network.topology.hosts)]
    for field in ("received", "sent"):
        counts = (((name,), getattr(counters, field)) for name, counters in nodes)
        about = f"Packets that a node has {field}."
        yield exposition.family("counter", f"{_PREFIX}node_{field}_total", about, ("node",), counts)
    drops = (
        ((name, field.removesuffix("_drops")), getattr(counters, field))
        for name, counters in nodes
        for field in _NODE_DROPS
    )
    by_program = (
        ((name, reason), count)
        for name in network.topology.switches
        for reason, count in sorted(network.devices[name].switch.drops().items())
    )
    about = "Packets dropped at a node, by reason."
    yield exposition.family("counter", _PREFIX + "node_drops_total", about, ("node", "reason"), [*drops, *by_program])
    fill = [
        ((name, table), entries, size)
        for name in network.topology.switches
        for table, entries, size in network.devices[name].switch.table_fill()
    ]
    labels = ("node", "table")
    entries = ((of, count) for of, count, _ in fill)
    yield exposition.family("gauge", _PREFIX + "table_entries", "Entries of a table.", labels, entries)
    sizes = ((of, size) for of, _, size in fill)
    yield exposition.family("gauge", _PREFIX + "table_size", "Entries that a table has room for.", labels, sizes)


__all__ = ["families", "pages"]
