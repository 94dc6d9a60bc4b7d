"""Every link and every switch of a network fails once, under a multicast stream: who loses more than coverage says?

As a script it runs all of a topology: ``python tests/python/bier_losses.py TOPOLOGY [FRR] [PROTECT]``; the suite runs small ones.
The controller does not reroute, so that the data plane is alone in every failure.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import ceil

from holdfast import SimulatedNetwork, results
from holdfast.apps.bier import BierController, Coverage, Failure, Plan, compile_bier, failures
from holdfast.apps.bier.protection import FastReroute, Protect
from holdfast.control.membership.members import channel
from holdfast.topologies import load
from holdfast.traffic import UdpStream

GROUP = "232.1.1.1"
RATE = 10_000
DETECTION_MS = 0.3
DOWN_MS = 10.0
"""How long each failure lasts."""


@dataclass(frozen=True)
class Losses:
    """``hits``: failures that cost a receiver packets, ``lost`` in all; ``unprotected``: those that coverage does not claim.

    ``excess``: what protected ones lost beyond the bound, and what was lost at no failure. There must be none.
    """

    failures: int
    hits: int
    lost: int
    unprotected: int
    duplicated: int
    excess: list[str]


def links_between(plan: Plan, source: str, receiver: str) -> list[int]:
    """Return the indices of the links on a packet's path from ``source`` to ``receiver``."""
    node, target = plan.paths.number[source], plan.paths.number[receiver]
    links = []
    while (hop := plan.next_hop((0, 0), node, target)) is not None:
        links.append(hop.link)
        node = hop.neighbour
    return links


def run(spec: str, frr: FastReroute = "tunnel", protect: Protect = "node") -> Losses:
    """Run a stream of 10,000 packets/s to 20 receivers with one failure after the other, and return the losses."""
    topology = load(spec)
    source, *others = topology.hosts
    receivers = others[:20]
    joined = channel(GROUP, str(topology.hosts[source].address.ip))
    controller = BierController(
        {joined: receivers}, ip_delay_ms=0, bier_delay_ms=0, frr=frr, protect=protect, reroute=False
    )
    network = SimulatedNetwork(topology, compile_bier(), [controller], detection_delay_ms=DETECTION_MS)
    plan, place = controller.plan, {host: topology.attachment(host).switch for host in topology.hosts}
    ways = {host: links_between(plan, place[source], place[host]) for host in receivers}
    # Packets that were repaired may be on their way for longer than others: they are not to meet the next failure.
    longest_ms = 3 * max(sum(topology.links[link].delay_ms for link in way) for way in ways.values()) + 5
    chosen = [f for f in [*failures(topology, "link"), *failures(topology, "node")] if f.node != place[source]]
    gap_ms = DOWN_MS + longest_ms + 2
    for number, failure in enumerate(chosen, start=1):
        fail = network.set_link if failure.node is None else network.set_node
        fail(failure.name, up=False, at_s=number * gap_ms / 1e3)
        fail(failure.name, up=True, at_s=(number * gap_ms + DOWN_MS) / 1e3)
    end_s = gap_ms * (len(chosen) + 1) / 1e3
    flow = network.add(UdpStream(source=source, destination=GROUP, packets_per_s=RATE, stop_s=end_s, payload_bytes=28))
    network.run(end_s + 1)
    coverage = Coverage(plan)
    hits = lost = unprotected = duplicated = 0
    excess: list[str] = []
    for host in receivers:
        duplicated += network.statistics(flow, host=host).duplicated
        packets = results.packets(network, flow, host=host)
        counts: dict[int, int] = {}
        for sent_ps in packets.filter(packets["received_ps"].is_null())["sent_ps"]:
            # What is lost in a failure was sent as long before it as the way takes, or until it was over.
            number = int((sent_ps / 1e9 + longest_ms) / gap_ms)
            counts[number] = counts.get(number, 0) + 1
        for number, count in sorted(counts.items()):
            if not 1 <= number <= len(chosen):
                excess.append(f"{host} lost {count} at no failure")
                continue
            failure = chosen[number - 1]
            hits, lost = hits + 1, lost + count
            if failure.node == place[host] or (place[source], place[host]) in coverage.lost(failure):
                unprotected += 1
            elif count > bound(plan, ways[host], failure):
                excess.append(f"{failure.name}: {host} lost {count}, not {bound(plan, ways[host], failure)}")
    return Losses(len(chosen), hits, lost, unprotected, duplicated, excess)


def bound(plan: Plan, way: list[int], failure: Failure) -> int:
    """Return the most packets that a failure may cost: those on the failing links, and those sent until it is detected."""
    wires = [plan.topology.links[link] for link in way if link in failure.links]
    # A packet of 100 bytes is sent in less than this even at 45 Mb/s.
    sending_ms = 0.02 * len(wires)
    return ceil((sum(wire.delay_ms for wire in wires) + sending_ms + DETECTION_MS) * RATE / 1e3) if wires else 0


def main(spec: str, frr: FastReroute = "tunnel", protect: Protect = "node") -> None:
    """Print the losses; exit with status 1 if one exceeds the bound or a packet is duplicated."""
    losses = run(spec, frr, protect)
    sys.stdout.write(
        f"{spec} {frr} {protect}: {losses.failures} failures, {losses.hits} hits, {losses.lost} packets lost, "
        f"{losses.unprotected} hits unprotected, {losses.duplicated} duplicated, {len(losses.excess)} beyond the bound\n"
    )
    sys.stdout.writelines(f"{line}\n" for line in losses.excess)
    sys.exit(bool(losses.excess or losses.duplicated))


if __name__ == "__main__":
    main(*sys.argv[1:])  # type: ignore[arg-type]
