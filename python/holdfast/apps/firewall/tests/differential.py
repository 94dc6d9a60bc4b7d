"""Random packets at the program and at the model, side by side: every decision, every reason and every byte must agree.

``python -P -m holdfast.apps.firewall.tests.differential --packets 1000000`` prints a line per variant and executor and exits with
1 at the first difference. The packets of a seed are always the same.
"""

from __future__ import annotations

import argparse
import ipaddress
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from holdfast._core import Program, Switch
from holdfast.apps.firewall import program as names
from holdfast.apps.firewall.tests import packets as make
from holdfast.apps.firewall.tests.ends import Pair, Segment
from holdfast.apps.firewall.tests.model import Bucket, Model, Role, Rule
from holdfast.control.tables import MatchValue
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device

Executor: TypeAlias = Literal["jit", "interpreter"]
Match: TypeAlias = dict[str, MatchValue]

INSIDE, SERVERS, OUTSIDE, CORE = 1, 2, 3, 4

ROLES = {
    1: Role(INSIDE, checks_address=True, authenticated=True),
    2: Role(INSIDE, checks_address=True),
    3: Role(SERVERS, only_replies=True, checks_address=True),
    4: Role(OUTSIDE, dhcp_server=True, router=True),
    7: Role(OUTSIDE, checks_mac=False),
    8: Role(INSIDE, checks_network=True),
    5: Role(CORE, transit=True, checks_mac=False),
    6: Role(CORE, transit=True),
}

HOSTS = {
    1: ("10.0.1.1", "2001:db8:1::1"),
    2: ("10.0.1.2", "2001:db8:1::2"),
    3: ("10.0.2.1", "2001:db8:2::1"),
    4: ("203.0.113.9", "2001:db8:f::9"),
    5: ("10.5.0.1", "2001:db8:5::1"),
    6: ("10.6.0.1", "2001:db8:6::1"),
    7: ("203.0.113.129", "2001:db8:f::8009"),
    8: ("10.8.0.1", "2001:db8:8::1"),
}
"""An address of each version behind each port."""

TIMEOUTS_US = {
    "syn_sent": 3_000,
    "syn_received": 3_000,
    "closed": 2_000,
    "udp_new": 3_000,
    "echo": 1_500,
    "other_new": 3_000,
    "established": 20_000,
    "closing": 5_000,
    "udp_stream": 9_000,
    "other_stream": 9_000,
}
"""Short, so that flows end while others go on."""

HASH_KEYS = {f"k{i}": 0x9E3779B97F4A7C15 * (i + 1) % 2**64 for i in range(names.HASH_KEYS)}

PORTS = (22, 53, 80, 443, 5000, 40000)


OWNERS = (
    ("10.8.0.0/16", {8}),
    ("2001:db8:8::/48", {8}),
    ("10.8.1.0/24", {4, 8}),
    ("10.0.0.0/16", {1}),
    ("2001:db8:1::/64", {1, 2}),
    ("203.0.113.64/26", {7}),
)
"""Networks of ports; besides, the bound addresses of other ports than 7 are theirs alone."""


def network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Return the IP network that the prefix ``text`` stands for."""
    return ipaddress.ip_network(text)


def rule_sets(rng: random.Random) -> list[Rule]:
    """Return a random selection of rules that allow and deny parts of the hosts' traffic, in random order."""
    rules = [
        Rule(True, INSIDE, OUTSIDE, limit=rng.choice((0, 0, 1))),
        Rule(True, INSIDE, SERVERS, protocol=6, dst_ports=(80, 443)),
        Rule(True, OUTSIDE, SERVERS, protocol=6, dst_ports=(80, 80)),
        Rule(True, OUTSIDE, SERVERS, version=4, protocol=17, dst_ports=(53, 53), limit=rng.choice((0, 2))),
        Rule(True, INSIDE, INSIDE, protocol=rng.choice((None, 6, 17, 1, 58))),
        Rule(True, None, None, protocol=47),
        Rule(False, INSIDE, OUTSIDE, dst_ports=(5000, 6000), protocol=17),
        Rule(False, src=network("10.0.1.0/31")),
        Rule(True, src=network("2001:db8:1::/48"), protocol=58),
        Rule(rng.random() < 0.5, dst=network("203.0.113.0/24"), src_ports=(0, 1023), protocol=6),
        Rule(True, CORE, None),
        Rule(True, SERVERS, CORE),
        Rule(False),
    ]
    rng.shuffle(rules)
    return sorted(rules, key=lambda rule: (rule.protocol is None) + (rule.src is None) + 3 * (rule.from_zone is None))


class Side:
    """A switch whose tables are filled from those of a model."""

    def __init__(self, model: Model, program: Program, executor: Executor) -> None:
        self.switch = Switch(program, executor=executor)
        self.client = client = LocalClient(Device(1, self.switch, executor=executor))
        client.set_pipeline(program)
        self._generations: dict[int, list[tuple[Match, int]]] = {0: [], 1: []}
        with client.batch():
            for port, role in model.roles.items():
                client.insert(names.PORTS, {"port": port}, names.SET_ROLE, {k: int(v) for k, v in vars(role).items()})
            for port, mac in model.macs:
                client.insert(names.MAC_BINDINGS, {"port": port, "mac": mac}, "NoAction")
            for port, mac, address in model.addresses:
                key: Match = {"port": port, "mac": make.number(mac), "address": number(address)}
                client.insert(names.ADDRESS_BINDINGS, key, "NoAction")
            for prefix, ports in model.owners:
                holder = next(iter(ports)) if len(ports) == 1 else 512 + min(ports)
                for port in ports if len(ports) > 1 else ():
                    client.insert(names.PORT_SETS, {"port": port, "set": holder}, "NoAction")
                length = prefix.prefixlen + (96 if prefix.version == 4 else 0)
                key = {"address": (number(prefix.network_address), length)}
                client.insert(names.SOURCES, key, names.BELONGS_TO, {"number": holder})
            if model.bridged:
                for mac, (port, zone, transit) in model.stations.items():
                    params = {"port": port, "zone": zone, "transit": int(transit)}
                    client.insert(names.STATIONS, {"mac": mac}, names.DELIVER, params)
                    client.insert(names.MAC_OWNERS, {"mac": mac}, names.OWNED, {"port": port})
                client.multicast_group(names.FLOOD_GROUP, [(port, 1) for port in model.roles])
            else:
                for (port, mac), (zone, transit) in model.receivers.items():
                    params = {"zone": zone, "transit": int(transit)}
                    client.insert(names.RECEIVERS, {"port": port, "mac": mac}, names.DELIVER, params)
                for prefix, port, src_mac, dst_mac in model.routes:
                    params = {"port": port, "src_mac": make.number(src_mac), "dst_mac": make.number(dst_mac)}
                    names.ROUTES.entry(prefix, names.FORWARD, params).write(client, "insert")
            for state, timeout in model.timeouts_us.items():
                client.write_register(names.TIMEOUTS, names.STATES[state], timeout)
            for meters, name in ((model.packet_limits, names.PACKET_LIMITS), (model.byte_limits, names.BYTE_LIMITS)):
                for index, bucket in meters.items():
                    client.configure_meter(name, index, (bucket.rate, bucket.burst, bucket.rate, bucket.burst))
            if model.new_flows is not None:
                client.configure_meter(names.NEW_FLOWS, None, (*model.new_flows, *model.new_flows))

    def write_rules(self, rules: list[Rule], epoch: int, judges_again: bool) -> None:
        """Write a rule set into the generation of the table that is not active, and then make it active with one write."""
        generation = epoch & 1
        with self.client.batch():
            for match, priority in self._generations[generation]:
                self.client.delete(names.RULE_TABLE, match, priority)
            self._generations[generation] = []
            for position, rule in enumerate(rules):
                match = rule_match(rule, generation)
                priority = len(rules) - position
                params = {"number": rule.limit} if rule.allow else {}
                self.client.insert(
                    names.RULE_TABLE,
                    match,
                    names.ALLOW if rule.allow else names.DENY,
                    params,
                    priority,
                )
                self._generations[generation].append((match, priority))
        params = {"epoch": epoch, "judges_again": int(judges_again), **HASH_KEYS}
        self.client.set_default(names.RULE_SET, names.ACTIVATE, params)

    def drops(self) -> list[int]:
        """Return the number of drops for each reason, in the order of the reasons' numbers."""
        cells = self.client.counters(names.DROPS)
        return [cells[i][0] for i in range(len(names.REASONS))]


def number(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> int:
    """Return an address as the number that tables use: 128 bits, with IPv4 mapped into IPv6."""
    return int(address) + (0xFFFF << 32 if address.version == 4 else 0)


def source_cell(zone: int, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> int:
    """Return the cell of an address in the meter of new flows: three bits of the zone and 12 bits of a hash."""
    words = [number(address) >> shift & 0xFFFFFFFF for shift in (96, 64, 32, 0)]
    first, second = ((HASH_KEYS[f"k{i}"] + words[i]) * (HASH_KEYS[f"k{i + 1}"] + words[i + 1]) for i in (0, 2))
    return (zone % 8 << 12) + ((first + second) % 2**64 >> 52)


def rule_match(rule: Rule, generation: int) -> Match:
    """Return the match fields of a rule's entry in ``generation`` of the table."""
    match: Match = {"generation": generation}
    for name, value, width in (
        ("from_zone", rule.from_zone, 8),
        ("to_zone", rule.to_zone, 8),
        ("protocol", rule.protocol, 8),
        ("is_ipv6", None if rule.version is None else int(rule.version == 6), 1),
    ):
        if value is not None:
            match[name] = (value, 2**width - 1)
    for name, prefix in (("src_addr", rule.src), ("dst_addr", rule.dst)):
        if prefix is not None:
            length = prefix.prefixlen + (96 if prefix.version == 4 else 0)
            match[name] = (number(prefix.network_address), (2**length - 1) << (128 - length))
            match["is_ipv6"] = (int(prefix.version == 6), 1)
    for name, ports in (("src_port", rule.src_ports), ("dst_port", rule.dst_ports)):
        if ports != (0, 65535):
            match[name] = ports
    return match


def world(*, bridged: bool, rng: random.Random) -> Model:
    """Return a model of the firewall with hosts behind six ports, and without rules."""
    model = Model(bridged=bridged)
    model.roles = dict(ROLES)
    model.timeouts_us = dict(TIMEOUTS_US)
    for port, addresses in HOSTS.items():
        model.macs.add((port, make.mac(port)))
        model.stations[make.mac(port)] = (port, ROLES[port].zone, ROLES[port].transit)
        model.receivers[port, make.mac(port)] = (ROLES[port].zone, ROLES[port].transit)
        for text in addresses:
            address = ipaddress.ip_address(text)
            model.addresses.add((port, make.mac(port), address))
            if port != 7:
                model.owners.append((ipaddress.ip_network(text), {port}))
            prefix = ipaddress.ip_network(f"{text}/{24 if address.version == 4 else 64}", strict=False)
            if port not in (2, 7):
                model.routes.append((prefix, port, make.mac(100 + port), make.mac(port)))
            else:
                model.routes.append((ipaddress.ip_network(text), port, make.mac(100 + port), make.mac(port)))
    model.owners += [(network(text), ports) for text, ports in OWNERS]
    model.routes.append((network("192.0.2.0/24"), 4, make.mac(104), make.mac(77)))  # to nobody who is bound
    model.packet_limits[1] = Bucket(rng.choice((500, 2_000)), rng.choice((3, 40)))
    model.byte_limits[2] = Bucket(rng.choice((10_000, 100_000)), rng.choice((200, 900)))
    model.source_cell = source_cell
    model.new_flows = (rng.choice((100, 300)), 8)
    return model


class Conversation:
    """Two hosts that talk with each other as they should, over TCP, UDP, ICMP or GRE; others add the faults."""

    def __init__(self, rng: random.Random, ends: tuple[int, int], version: int) -> None:
        self.ends, self.version = ends, version
        self.addresses = tuple(HOSTS[end][version == 6] for end in ends)
        self.ports = (rng.choice(PORTS), rng.choice(PORTS))
        self.protocol = rng.choice((6, 6, 6, 6, 17, 17, 1, 47))
        self.identifier = rng.choice((0, 1, 0xFFFF, 7))
        self.restart(rng)

    def restart(self, rng: random.Random) -> None:
        """Go back to the first segment of the conversation, at random sequence numbers."""
        self.next = [rng.choice((rng.getrandbits(32), 2**32 - rng.randrange(400))) for _ in range(2)]
        self.acked = [self.next[0], self.next[1]]
        self.scales = [rng.choice((None, 0, 2, 7, 14, 20)) for _ in range(2)]
        self.windows = [rng.choice((0, 1, 100, 1000, 65535)) for _ in range(2)]
        self.step = 0

    def packet(self, rng: random.Random) -> tuple[int, bytes]:
        """Return the end that sends the next packet (0 or 1), and the payload of its IP packet."""
        if self.protocol == 6:
            return self._segment(rng)
        sender = rng.choice((0, 0, 1))
        if self.protocol == 17:
            ports = self.ports if sender == 0 else self.ports[::-1]
            return sender, make.udp(*ports, payload=bytes(rng.randrange(30)))
        if self.protocol == 1:
            request, reply = (8, 0) if self.version == 4 else (128, 129)
            return sender, make.icmp(request if sender == 0 else reply, 0, self.identifier, 1, bytes(rng.randrange(20)))
        return sender, bytes(rng.randrange(4, 30))

    def _segment(self, rng: random.Random) -> tuple[int, bytes]:
        if self.step > 14 or rng.random() < 0.02:
            self.restart(rng)
        sender, flags, data, options = 0, make.ACK, 0, b""
        if self.step == 0:
            flags = make.SYN
        elif self.step == 1:
            sender, flags = 1, make.SYN | make.ACK
        elif self.step > 2:
            sender = rng.randrange(2)
            data = rng.choice((0, 1, 10, 100))
            if rng.random() < 0.1:
                flags |= make.FIN
            elif rng.random() < 0.05:
                flags, data = make.RST | rng.choice((0, make.ACK)), 0
        scale = self.scales[sender]
        if flags & make.SYN and scale is not None:
            options = make.window_scale(scale)
        receiver = 1 - sender
        seq, ack = self.next[sender], self.next[receiver]
        if self.step == 0:
            ack = 0
        self.next[sender] = (seq + data + bool(flags & make.SYN) + bool(flags & make.FIN)) % 2**32
        self.step += 1
        ports = self.ports if sender == 0 else self.ports[::-1]
        if rng.random() < 0.1:
            self.windows[sender] = rng.choice((0, 1, 100, 1000, 65535))
        segment = make.tcp(
            *ports, flags, seq=seq, ack=ack, window=self.windows[sender], payload=bytes(data), options=options
        )
        return sender, segment

    def protocol_number(self) -> int:
        """Return the protocol number of the IP header."""
        return 58 if self.protocol == 1 and self.version == 6 else self.protocol

    def heard(self, passed: bool) -> None:
        """Ignore whether the packet passed: a conversation goes on as if it had."""


class Recovery(Conversation):
    """Two ends of TCP that reset, forget and reopen connections, and answer what gets through."""

    def __init__(self, rng: random.Random, ends: tuple[int, int], version: int) -> None:
        super().__init__(rng, ends, version)
        self.protocol = 6
        self.pair = Pair(random.Random(rng.random()), lambda end, segment: False)
        self.last: tuple[int, Segment] | None = None

    def restart(self, rng: random.Random) -> None:
        """Do nothing: these ends open new connections by themselves."""

    def packet(self, rng: random.Random) -> tuple[int, bytes]:
        """Return an end (0 or 1) and its next segment: one that waits to be delivered, or a new one if none does."""
        pair = self.pair
        while not any(pair.flying):
            end = rng.randrange(2)
            pair.leave(
                end, getattr(pair.ends[end], rng.choice(("connect", "send", "send", "again", "reboot", "abort")))()
            )
        end = rng.choice([end for end in (0, 1) if pair.flying[end]])
        segment = pair.flying[end].popleft()
        self.last = end, segment
        ports = self.ports if end == 0 else self.ports[::-1]
        options = b"" if segment.scale is None else make.window_scale(segment.scale)
        payload = bytes(segment.data)
        return end, make.tcp(*ports, segment.flags, seq=segment.seq, ack=segment.ack, payload=payload, options=options)

    def heard(self, passed: bool) -> None:
        """Deliver the last packet to the other end if the firewall has passed it."""
        if passed and self.last is not None:
            end, segment = self.last
            self.pair.leave(1 - end, self.pair.ends[1 - end].receive(segment))
        self.last = None


def _mutated(rng: random.Random, protocol: int, segment: bytes) -> bytes:
    """Return ``segment`` with one random field changed, so that it is not what the end sent."""
    data = bytearray(segment)
    if protocol == 6 and rng.random() < 0.8:
        what = rng.randrange(5)
        if what == 0:
            data[13] = rng.choice((rng.randrange(64), 1, 2, 4, 16, 17, 18, 20))
        elif what == 4:
            data[12] = rng.randrange(16) << 4
        else:
            at = 4 * what if what < 3 else 4
            shift = rng.choice((1, -1, 100, -100, 65536, -65536, 65537, 2**31, rng.getrandbits(32), 40_000_000))
            value = (int.from_bytes(data[at : at + 4], "big") + shift) % 2**32
            data[at : at + 4] = value.to_bytes(4, "big")
    elif data:
        data[rng.randrange(min(len(data), 12))] ^= 1 << rng.randrange(8)
    return bytes(data)


@dataclass
class Feedback:
    """Whether the last packet was dropped, so that ends that are not answered begin anew."""

    dropped: bool = False


def arrivals(rng: random.Random, bridged: bool, feedback: Feedback) -> Iterator[tuple[int, int, bytes]]:
    """Yield endlessly (microseconds since the last packet, port, frame) of random packets: conversations, faults and attacks."""
    talks: list[Conversation] = []
    sent: list[tuple[int, bytes, int, Conversation]] = []
    while True:
        if len(talks) < 30 or rng.random() < 0.01:
            ends = rng.sample(sorted(HOSTS), 2)
            kind = Recovery if rng.random() < 0.3 else Conversation
            talks.append(kind(rng, (ends[0], ends[1]), rng.choice((4, 6))))
        if len(talks) > 40:
            talks.pop(rng.randrange(len(talks)))
        silence = rng.choice((4_000, 21_000, 1_500, 1_501, 3_000, 2_000)) if rng.random() < 0.004 else rng.randrange(60)
        chance = rng.random()
        talk = rng.choice(talks)
        if chance < 0.10 and sent:
            yield silence, *_error(rng, *rng.choice(sent), bridged)
            continue
        sender, segment = talk.packet(rng)
        src, dst = talk.addresses if sender == 0 else talk.addresses[::-1]
        port, out = talk.ends if sender == 0 else talk.ends[::-1]
        protocol = talk.protocol_number()
        if rng.random() < 0.12:
            segment = _mutated(rng, protocol, segment)
        if rng.random() < 0.06:
            port, src, dst = _elsewhere(rng, port, src, dst)
        packet = make.ip(src, dst, protocol, segment) if (":" in src) == (":" in dst) else b""
        if rng.random() < 0.06:
            packet = _odd_ip(rng, src, dst, protocol, segment)
        frame = make.ethernet(
            make.mac(out) if bridged else make.mac(100 + port),
            make.mac(port if rng.random() > 0.02 else rng.randrange(1, 9)),
            0x86DD if ":" in src else 0x0800,
            packet,
        )
        if rng.random() < 0.03:
            frame = bytes(_flipped(rng, frame))
        if rng.random() < 0.03:
            frame = frame[: rng.randrange(len(frame) + 1)]
        if rng.random() < 0.05:
            port, frame = _control(rng, bridged)
        sent.append((port, packet, sender, talk))
        if len(sent) > 60:
            sent.pop(0)
        yield silence, port, frame
        talk.heard(not feedback.dropped)
        if feedback.dropped and rng.random() < 0.7:
            talk.restart(rng)
            if rng.random() < 0.3 and talk in talks:
                talks.remove(talk)
        if rng.random() < 0.05:
            yield 0, port, frame


def _elsewhere(rng: random.Random, port: int, src: str, dst: str) -> tuple[int, str, str]:
    """Return a packet's port and addresses, one of which is replaced by another port, another host's address or an invalid one."""
    other = HOSTS[rng.choice(sorted(HOSTS))][":" in src]
    strange = (
        ("::1", "::", "ff02::1", "::ffff:10.0.1.1", "fe80::1", "2001:db8:1::77", "::10.0.1.1", "2001:db8:8::9")
        if ":" in src
        else (
            "127.0.0.1",
            "0.0.0.0",
            "224.0.0.5",
            "255.255.255.255",
            "240.0.0.1",
            "10.0.1.77",
            "192.0.2.1",
            "0.1.2.3",
            "169.254.1.1",
            "10.8.1.5",
            "10.8.2.5",
            "203.0.113.70",
        )
    )
    what = rng.randrange(5)
    if what == 0:
        return rng.choice((1, 2, 3, 4, 5, 6, 7, 8, 9)), src, dst
    if what == 1:
        return port, other, dst
    if what == 2:
        return port, src, other
    return (port, rng.choice(strange), dst) if what == 3 else (port, src, rng.choice(strange))


def _odd_ip(rng: random.Random, src: str, dst: str, protocol: int, segment: bytes) -> bytes:
    """Return an unusual IP packet: with options or extension headers, wrong lengths, a fragment, or an expiring TTL."""
    what = rng.randrange(7)
    if ":" in src and ":" in dst:
        if what < 2:
            return make.ipv6(src, dst, rng.choice((0, 43, 44, 50, 51, 59, 60, 135, 139, 140)), bytes(8) + segment)
        if what < 5:
            return make.ipv6(src, dst, protocol, segment, payload_len=rng.choice((0, 4, 8, 20, len(segment) + 1, 1500)))
        return make.ipv6(src, dst, protocol, segment, hop_limit=rng.choice((0, 1, 2, 255)))
    if ":" in src or ":" in dst:
        return b""
    if what == 0:
        return make.ipv4(src, dst, protocol, segment, options=bytes((7, 4, 4, 0)) * rng.randrange(1, 11))
    if what == 1:
        return make.ipv4(src, dst, protocol, segment, flags=rng.choice((1, 3, 0)), offset=rng.choice((0, 1, 185)))
    if what == 2:
        return make.ipv4(src, dst, protocol, segment, total_len=rng.choice((0, 19, 20, 28, len(segment) + 21, 1500)))
    if what == 3:
        return make.ipv4(src, dst, protocol, segment, bad_checksum=True)
    if what == 4:
        return make.ipv4(src, dst, protocol, segment, version=rng.choice((0, 5, 6)))
    return make.ipv4(src, dst, protocol, segment, ttl=rng.choice((0, 1, 2)))


def _flipped(rng: random.Random, frame: bytes) -> bytearray:
    data = bytearray(frame)
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return data


def _error(
    rng: random.Random, port: int, packet: bytes, sender: int, talk: Conversation, bridged: bool
) -> tuple[int, bytes]:
    """Return (port, frame) of an ICMP error that quotes a packet that was sent.

    Its source is the packet's receiver or a router there, and sometimes another host.
    """
    ends = talk.ends if sender == 0 else talk.ends[::-1]
    addresses = talk.addresses if sender == 0 else talk.addresses[::-1]
    src, dst = addresses[1], addresses[0]
    kinds = (3, 11, 12, 5, 4) if talk.version == 4 else (1, 2, 3, 4, 137)
    quoted = packet[: (20 if talk.version == 4 else 40) + rng.choice((8, 8, 8, 28, 4))]
    if rng.random() < 0.1 and quoted:
        quoted = bytes(_flipped(rng, quoted))
    body = make.icmp(rng.choice(kinds), rng.randrange(4), payload=quoted)
    from_port = ends[1] if rng.random() < 0.9 else rng.choice(sorted(HOSTS))
    protocol = 1 if talk.version == 4 else 58
    frame = make.ethernet(
        make.mac(ends[0]) if bridged else make.mac(100 + from_port),
        make.mac(from_port),
        0x0800 if talk.version == 4 else 0x86DD,
        make.ip(src, dst, protocol, body),
    )
    return from_port, frame


def _control(rng: random.Random, bridged: bool) -> tuple[int, bytes]:
    """Return (port, frame) of a random control packet: ARP, neighbour discovery, DHCP, LLDP or another protocol."""
    port = rng.choice(sorted(HOSTS))
    sender = make.mac(port if rng.random() < 0.9 else rng.randrange(1, 9))
    if rng.random() < 0.02:
        sender = bytes((sender[0] | 1,)) + sender[1:]
    v4, v6 = (HOSTS[port if rng.random() < 0.8 else rng.choice(sorted(HOSTS))][i] for i in range(2))
    broadcast = b"\xff" * 6
    what = rng.randrange(8)
    target = make.mac(rng.choice(sorted(HOSTS)))
    if what < 2:
        source = v4 if rng.random() < 0.8 else rng.choice(("0.0.0.0", "0.0.0.0", "10.8.1.5", "127.0.0.1", "0.0.0.7"))
        inner = make.mac(port) if rng.random() < 0.9 else make.mac(9)
        body = make.arp(rng.choice((1, 1, 2, 3)), inner, source, rng.choice(("10.0.1.2", "10.0.1.2", "10.9.9.9")))
        if rng.random() < 0.1:
            body = bytes(_flipped(rng, body))
        return port, make.ethernet(rng.choice((broadcast, target)), sender, 0x0806, body)
    if what < 5:
        kind = rng.choice((133, 134, 135, 136, 136, 137, 143))
        source = v6 if rng.random() < 0.7 else "::"
        body = make.neighbour(kind, rng.choice((v6, v6, "2001:db8:1::2")))[: rng.choice((24, 24, 24, 16, 8))]
        packet = make.ipv6(source, "ff02::1:ff00:1", 58, body, hop_limit=255 if rng.random() < 0.9 else 64)
        return port, make.ethernet(rng.choice((b"\x33\x33\xff\0\0\x01", target)), sender, 0x86DD, packet)
    if what < 7:
        ports = rng.choice(((68, 67), (67, 68), (546, 547), (547, 546), (67, 67)))
        body = make.udp(*ports, payload=bytes(40))
        if ports[0] < 100:
            packet = make.ipv4(rng.choice((v4, "0.0.0.0")), rng.choice(("255.255.255.255", "10.0.1.2")), 17, body)
            return port, make.ethernet(broadcast, sender, 0x0800, packet)
        return port, make.ethernet(broadcast, sender, 0x86DD, make.ipv6(v6, "ff02::1:2", 17, body))
    return port, make.ethernet(target, sender, rng.choice((0x88CC, 0x8100, 0x0801, 0x88A8)), bytes(46))


def compare(
    variant: names.Variant,
    count: int,
    seed: int,
    executor: Executor,
    program: Program | None = None,
    begin_us: int = 1,
) -> Counter[str]:
    """Send ``count`` random packets to program and model; return how often each decision was made.

    Raise :class:`AssertionError` at the first difference. The clock begins at ``begin_us``, on which the model does not depend: its
    times are whole numbers without a limit.
    """
    rng = random.Random(f"{seed} {variant}")
    bridged = variant == "bridged"
    model = world(bridged=bridged, rng=rng)
    compiled = program or names.compile_firewall(variant, {"WAY_BITS": "10", "RULES": "64"})
    side = Side(model, compiled, executor)
    decisions: Counter[str] = Counter()
    feedback = Feedback()
    stream = arrivals(rng, bridged, feedback)
    now_us, epoch = begin_us, 0
    for index in range(count):
        elapsed_us, port, frame = next(stream)
        now_us += elapsed_us
        if index % 400 == 100:
            # In between there is a rule set that nobody uses yet.
            epoch += 1
            rules, again = rule_sets(rng), rng.random() < 0.7
            side.write_rules(rules, epoch, again)
            model.rules, model.epoch, model.judges_again = rules, epoch, again
        expected = model.receive(port, frame, now_us)
        before = side.drops() if executor == "interpreter" and index % 50 == 0 else None
        got = side.switch.process(port, frame, now_us * 1_000_000)
        what, value = expected
        feedback.dropped = what == "drop"
        decisions[str(value) if what == "drop" else what] += 1
        where = f"{variant}, {executor}, seed {seed}, packet {index} at {now_us} us, port {port}: {frame.hex()}"
        wanted: list[tuple[int, bytes]] = []
        if what == "send":
            wanted = [value]  # type: ignore[list-item]
        elif what == "controller":
            wanted = [(510, (port << 7).to_bytes(2, "big") + frame)]
        elif what == "flood":
            wanted = [(out, frame) for out in ROLES if out != port]
        if got != wanted:
            raise AssertionError(f"{where}\nmodel: {expected}\nprogram: {got or _reason(side, decisions)}")
        if before is not None and what == "drop":
            after = side.drops()
            reason = names.REASONS.index(str(value))
            if after[reason] != before[reason] + 1:
                raise AssertionError(f"{where}\nmodel: {expected}\nprogram: {_reason(side, decisions)}")
    counted = dict(zip(names.REASONS, side.drops(), strict=True))
    wanted_counts = {name: decisions[name] for name in names.REASONS}
    if counted != wanted_counts:
        differing = {
            name: (counted[name], wanted_counts[name]) for name in counted if counted[name] != wanted_counts[name]
        }
        raise AssertionError(f"{variant}, {executor}, seed {seed}: counted and expected drops differ: {differing}")
    return decisions


def _reason(side: Side, decisions: Counter[str]) -> str:
    more = [name for name, n in zip(names.REASONS, side.drops(), strict=True) if n > decisions[name]]
    return f"dropped as {', '.join(more) or 'the model says'}"


def main(arguments: list[str] | None = None) -> int:
    """Compare program and model for the variants and executors in ``arguments``; return 1 at a difference, else 0."""
    parser = argparse.ArgumentParser(prog="python -P -m holdfast.apps.firewall.tests.differential", description=__doc__)
    parser.add_argument("--packets", type=int, default=20_000, help="packets for each variant and executor")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--executor", choices=("jit", "interpreter"), action="append")
    parser.add_argument("--variant", choices=("routed", "bridged"), action="append")
    given = parser.parse_args(arguments)
    if given.packets < 1:
        parser.error("--packets must be positive")
    for variant in given.variant or ("routed", "bridged"):
        for executor in given.executor or ("jit", "interpreter"):
            start = time.monotonic()
            try:
                decisions = compare(variant, given.packets, given.seed, executor)
            except AssertionError as difference:
                print(difference, file=sys.stderr)
                return 1
            said = ", ".join(f"{n} {name}" for name, n in decisions.most_common())
            print(
                f"{variant}, {executor}: {given.packets} packets agree ({said}) in {time.monotonic() - start:.0f} s",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
