"""A model of the README's rules about packets, in Python and from the bytes of a frame.

It knows nothing of the program: no hash, no registers, no layouts.

Flows are objects in a list without a limit, addresses are Python's, and each check is a function that returns a reason or None.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

FIN, SYN, RST, ACK = 1, 2, 4, 16
HALF = 2**31
EXTENSION_HEADERS = {0, 43, 50, 51, 59, 60, 135, 139, 140}


@dataclass(frozen=True)
class Role:
    """The role of a port."""

    zone: int
    only_replies: bool = False
    checks_mac: bool = True
    checks_address: bool = False
    checks_network: bool = False
    authenticated: bool = False
    dhcp_server: bool = False
    router: bool = False
    transit: bool = False


@dataclass(frozen=True)
class Rule:
    """A rule; None matches everything. The first rule of a list that matches decides."""

    allow: bool
    from_zone: int | None = None
    to_zone: int | None = None
    version: int | None = None
    src: Network | None = None
    dst: Network | None = None
    protocol: int | None = None
    src_ports: tuple[int, int] = (0, 65535)
    dst_ports: tuple[int, int] = (0, 65535)
    limit: int = 0


@dataclass
class Bucket:
    """A token bucket that fills at a rate per second; a packet that needs more tokens than there are does not conform."""

    rate: int
    burst: int
    tokens_ps: int = 0
    filled_us: int = 0

    def __post_init__(self) -> None:
        self.tokens_ps = self.burst * 10**12

    def take(self, amount: int, now_us: int) -> bool:
        """Take ``amount`` tokens at ``now_us`` and return True; if there are fewer, take none and return False."""
        self.tokens_ps = min(self.tokens_ps + self.rate * (now_us - self.filled_us) * 10**6, self.burst * 10**12)
        self.filled_us = now_us
        if self.tokens_ps < amount * 10**12:
            return False
        self.tokens_ps -= amount * 10**12
        return True


@dataclass
class End:
    """One end of a TCP connection: the number after the last that it sent, the last that it may send, what was acknowledged."""

    sent: int = 0
    may_send: int = 0
    acknowledged: int = 0
    scale: int | None = 0


@dataclass(frozen=True)
class Attempt:
    """The SYN of a new connection that one end of a living flow has sent and nobody has answered."""

    by_initiator: bool
    number: int
    length: int
    scale: int | None


@dataclass
class Flow:
    """A flow, from the end that began it to the other."""

    initiator: Address
    responder: Address
    initiator_port: int
    responder_port: int
    protocol: int
    zones: tuple[int, int]
    state: str
    until_us: int
    epoch: int
    limit: int
    ends: tuple[End, End] = field(default_factory=lambda: (End(), End()))
    finished: set[int] = field(default_factory=set)
    attempt: Attempt | None = None
    misfit: tuple[bool, int] | None = None
    """Whether the initiator has sent an answer that does not fit, and what it acknowledged."""

    def turned(self) -> None:
        """Exchange initiator and responder of the flow, with their ports, zones and TCP states."""
        self.initiator, self.responder = self.responder, self.initiator
        self.initiator_port, self.responder_port = self.responder_port, self.initiator_port
        self.zones = self.zones[::-1]
        self.ends = self.ends[::-1]


@dataclass
class Packet:
    """The fields of a frame."""

    frame: bytes
    port: int
    src_mac: bytes = b""
    dst_mac: bytes = b""
    ether_type: int = 0
    version: int = 0
    src: Address | None = None
    dst: Address | None = None
    protocol: int = 0
    ttl: int = 0
    kind: str = "other"
    flow_src: Address | None = None
    flow_dst: Address | None = None
    flow_protocol: int = 0
    src_port: int = 0
    dst_port: int = 0
    is_reply: bool = False
    is_echo: bool = False
    type: int = 0
    flags: int = 0
    seq: int = 0
    ack: int = 0
    window: int = 0
    scale: int | None = None
    data: int = 0
    target: Address | None = None
    arp_sender: Address | None = None
    arp_operation: int = 0


Verdict: TypeAlias = tuple[Literal["drop", "send", "flood", "controller"], object]
"""A reason, a port with the frame, nothing, nothing."""


class _Bad(Exception):
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _need(data: bytes, count: int) -> None:
    if len(data) < count:
        raise _Bad("truncated")


def _number(data: bytes, at: int, count: int) -> int:
    return int.from_bytes(data[at : at + count], "big")


def _not_after(a: int, b: int) -> bool:
    """Return True if sequence number ``a`` is not behind ``b`` (RFC 9293, section 3.4)."""
    return (b - a) % 2**32 < HALF


class Model:
    """A firewall. Tables are public attributes, which tests fill."""

    def __init__(self, *, bridged: bool = False) -> None:
        self.bridged = bridged
        self.roles: dict[int, Role] = {}
        self.macs: set[tuple[int, bytes]] = set()
        self.addresses: set[tuple[int, bytes, Address]] = set()
        self.receivers: dict[tuple[int, bytes], tuple[int, bool]] = {}
        self.routes: list[tuple[Network, int, bytes, bytes]] = []
        self.stations: dict[bytes, tuple[int, int, bool]] = {}
        self.rules: list[Rule] | None = None
        self.epoch = 0
        self.judges_again = True
        self.timeouts_us: dict[str, int] = {}
        self.packet_limits: dict[int, Bucket] = {}
        self.byte_limits: dict[int, Bucket] = {}
        self.new_flows: tuple[int, int] | None = None
        self.owners: list[tuple[Network, set[int]]] = []
        """Prefixes, and the ports whose they are."""
        self.source_cell: Callable[[int, Address], object] = lambda zone, source: (zone, source)
        """Sources with one cell share its rate."""
        self._sources: dict[object, Bucket] = {}
        self.flows: dict[tuple[object, ...], Flow] = {}

    # ---- Parsing ----

    def _parse(self, port: int, frame: bytes) -> Packet:
        _need(frame, 14)
        packet = Packet(frame, port, frame[6:12], frame[:6], _number(frame, 12, 2))
        body = frame[14:]
        if packet.ether_type == 0x0806:
            _need(body, 28)
            if body[:6] != b"\0\x01\x08\0\x06\x04":
                raise _Bad("malformed")
            packet.arp_operation = _number(body, 6, 2)
            packet.arp_sender = ipaddress.IPv4Address(body[14:18])
            packet.target = ipaddress.IPv4Address(body[24:28])
        elif packet.ether_type == 0x0800:
            self._parse_ipv4(packet, body)
        elif packet.ether_type == 0x86DD:
            self._parse_ipv6(packet, body)
        return packet

    def _parse_ipv4(self, packet: Packet, body: bytes) -> None:
        _need(body, 20)
        words = body[0] & 15
        if body[0] >> 4 != 4 or words < 5:
            raise _Bad("malformed")
        packet.version, packet.ttl, packet.protocol = 4, body[8], body[9]
        packet.src, packet.dst = ipaddress.IPv4Address(body[12:16]), ipaddress.IPv4Address(body[16:20])
        length, fragment = _number(body, 2, 2), _number(body, 6, 2)
        whole = words == 5 and fragment & 0x3FFF == 0
        late = None
        if whole:
            try:
                self._parse_transport(packet, body[20:])
            except _Bad as bad:
                late = bad
        if late is not None:
            raise late
        if words == 5:
            total = sum(_number(body, at, 2) for at in range(0, 20, 2))
            if total % 0xFFFF != 0:
                raise _Bad("bad_checksum")
        if packet.port not in self.roles:
            raise _Bad("unknown_port")
        if length < 20:
            raise _Bad("malformed")
        if len(packet.frame) < 14 + length:
            raise _Bad("truncated")
        if words != 5:
            raise _Bad("ip_options")
        if not whole:
            raise _Bad("fragment")
        self._check_transport(packet, body[20:], length - 20)

    def _parse_ipv6(self, packet: Packet, body: bytes) -> None:
        _need(body, 40)
        if body[0] >> 4 != 6:
            raise _Bad("malformed")
        packet.version, packet.ttl, packet.protocol = 6, body[7], body[6]
        packet.src, packet.dst = ipaddress.IPv6Address(body[8:24]), ipaddress.IPv6Address(body[24:40])
        self._parse_transport(packet, body[40:])
        if packet.port not in self.roles:
            raise _Bad("unknown_port")
        length = _number(body, 4, 2)
        if len(packet.frame) < 54 + length:
            raise _Bad("truncated")
        if packet.protocol == 44:
            raise _Bad("fragment")
        if packet.protocol in EXTENSION_HEADERS:
            raise _Bad("extension_header")
        self._check_transport(packet, body[40:], length)

    def _parse_transport(self, packet: Packet, body: bytes) -> None:
        """Set a packet's transport fields as a parser reads them, which does not check lengths."""
        packet.flow_src, packet.flow_dst, packet.flow_protocol = packet.src, packet.dst, packet.protocol
        if packet.protocol == 6:
            _need(body, 20)
            packet.kind = "tcp"
            packet.src_port, packet.dst_port = _number(body, 0, 2), _number(body, 2, 2)
            packet.seq, packet.ack = _number(body, 4, 4), _number(body, 8, 4)
            packet.flags, packet.window = body[13], _number(body, 14, 2)
            if packet.flags & SYN and body[12] >> 4 > 5:
                _need(body, 4 * (body[12] >> 4))
                packet.scale = self._window_scale(body[20 : 4 * (body[12] >> 4)])
        elif packet.protocol == 17:
            _need(body, 8)
            packet.kind = "udp"
            packet.src_port, packet.dst_port = _number(body, 0, 2), _number(body, 2, 2)
            pair = {packet.src_port, packet.dst_port}
            if self.bridged and pair == ({67, 68} if packet.version == 4 else {546, 547}):
                packet.kind = "dhcp"
        elif packet.protocol == (1 if packet.version == 4 else 58):
            _need(body, 8)
            packet.kind, packet.type = "icmp", body[0]
            request, reply = (8, 0) if packet.version == 4 else (128, 129)
            if body[0] in (request, reply) and body[1] == 0:
                packet.kind, packet.is_echo, packet.is_reply = "echo", True, body[0] == reply
                packet.src_port = _number(body, 4, 2)
            elif body[0] in ((3, 11, 12) if packet.version == 4 else (1, 2, 3, 4)):
                self._parse_error(packet, body)
            elif self.bridged and packet.version == 6 and 133 <= body[0] <= 137 and body[1] == 0:
                packet.kind = "neighbour"
                if body[0] in (135, 136):
                    _need(body, 24)
                    packet.target = ipaddress.IPv6Address(body[8:24])

    def _window_scale(self, options: bytes) -> int | None:
        # The zeros are where a real end would stop, too: at the end of the options.
        options += bytes(64)
        while options[0] != 0:
            if options[0] == 1:
                options = options[1:]
                continue
            if options[0] == 3 and options[1] == 3:
                return min(options[2], 14)
            if options[1] < 2:
                raise _Bad("malformed")
            options = options[options[1] :] + bytes(64)
        return None

    def _parse_error(self, packet: Packet, body: bytes) -> None:
        size = 20 if packet.version == 4 else 40
        _need(body, 8 + size + 8)
        inner, first = body[8 : 8 + size], body[8 + size : 16 + size]
        if packet.version == 4:
            if inner[0] != 0x45 or _number(inner, 6, 2) & 0x1FFF:
                raise _Bad("malformed")
            protocol = inner[9]
            packet.flow_src, packet.flow_dst = ipaddress.IPv4Address(inner[12:16]), ipaddress.IPv4Address(inner[16:20])
        else:
            if inner[0] >> 4 != 6:
                raise _Bad("malformed")
            protocol = inner[6]
            packet.flow_src, packet.flow_dst = ipaddress.IPv6Address(inner[8:24]), ipaddress.IPv6Address(inner[24:40])
        packet.kind, packet.flow_protocol = "error", protocol
        if protocol in (6, 17):
            packet.src_port, packet.dst_port, packet.seq = (
                _number(first, 0, 2),
                _number(first, 2, 2),
                _number(first, 4, 4),
            )
        elif protocol == (1 if packet.version == 4 else 58):
            request, reply = (8, 0) if packet.version == 4 else (128, 129)
            if first[0] in (request, reply) and first[1] == 0:
                packet.is_echo, packet.is_reply, packet.src_port = True, first[0] == reply, _number(first, 4, 2)
            else:
                packet.kind = "icmp"

    def _check_transport(self, packet: Packet, body: bytes, carried: int) -> None:
        """Raise :class:`_Bad` if the lengths in the transport header do not fit the IP header's."""
        bad = False
        if packet.kind == "tcp":
            head = 4 * (body[12] >> 4)
            packet.data = carried - head
            bad = head < 20 or head > carried
            if not bad and packet.flags & 0x17 not in (ACK, SYN, SYN | ACK, FIN | ACK, RST, RST | ACK):
                raise _Bad("tcp_flags")
        elif packet.kind in ("udp", "dhcp"):
            bad = not 8 <= _number(body, 4, 2) <= carried
        elif packet.kind == "error":
            bad = carried < 16 + (20 if packet.version == 4 else 40)
        elif packet.kind == "neighbour":
            bad = carried < (24 if packet.type >= 135 else 8) or packet.ttl != 255
        elif packet.kind in ("icmp", "echo"):
            bad = carried < 8
        if bad:
            raise _Bad("malformed")

    # ---- Judging ----

    def receive(self, port: int, frame: bytes, now_us: int) -> Verdict:
        """Return the verdict on a frame that arrives at a port."""
        try:
            packet = self._parse(port, frame)
            if port not in self.roles:
                raise _Bad("unknown_port")
            self._check_addresses(packet)
            return self._forward(packet, self.roles[port], now_us)
        except _Bad as bad:
            return "drop", bad.reason

    def _check_addresses(self, packet: Packet) -> None:
        src, dst = packet.src, packet.dst
        if packet.arp_sender is not None:
            first = int(packet.arp_sender) >> 24
            if (first in (0, 127) and int(packet.arp_sender)) or first >= 224:
                raise _Bad("bogus_address")
            if packet.frame[22:28] != packet.src_mac:
                raise _Bad("spoofed_mac")
        if src is None or dst is None:
            return
        if src == dst or (not self.bridged and (src.is_link_local or dst.is_link_local)):
            raise _Bad("bogus_address")
        if isinstance(src, ipaddress.IPv4Address) and isinstance(dst, ipaddress.IPv4Address):
            nowhere = int(src) >> 24 == 0 and not (packet.kind == "dhcp" and int(src) == 0)
            if nowhere or src.is_loopback or int(src) >> 24 >= 224:
                raise _Bad("bogus_address")
            if int(dst) >> 24 == 0 or dst.is_loopback or (int(dst) >> 28 == 15 and int(dst) != 2**32 - 1):
                raise _Bad("bogus_address")
        elif isinstance(src, ipaddress.IPv6Address) and isinstance(dst, ipaddress.IPv6Address):
            asks = src.is_unspecified and packet.kind == "neighbour" and packet.type in (133, 135)
            # The unspecified and the loopback address are among those that end with one of IPv4.
            if (int(src) >> 32 == 0 and not asks) or src.is_multicast or src.ipv4_mapped is not None:
                raise _Bad("bogus_address")
            if int(dst) >> 32 == 0 or dst.ipv4_mapped is not None:
                raise _Bad("bogus_address")
        if packet.kind == "error" and packet.flow_src != dst:
            raise _Bad("icmp_unrelated")

    def _check_sender(self, packet: Packet, role: Role) -> bool:
        """Raise :class:`_Bad` if the packet's port may not send from its MAC and IP addresses.

        Return True if the packet assigns or claims an address, and so is for the controller.
        """
        nobody = packet.src is not None and int(packet.src) == 0
        if packet.src_mac[0] & 1:
            raise _Bad("spoofed_mac")
        if packet.kind == "neighbour":
            proxies = (role.transit or role.router) and not role.checks_address
            if packet.type == 136 and packet.src != packet.target and not proxies:
                raise _Bad("spoofed_address")
            if packet.type in (134, 137) and not role.router:
                raise _Bad("rogue_server")
        serves = packet.kind == "dhcp" and packet.src_port in (67, 547)
        if serves and not role.dhcp_server:
            raise _Bad("rogue_server")
        claims = packet.kind == "neighbour" and packet.type == 135 and nobody and role.checks_address
        if claims or (packet.kind == "dhcp" and not serves):
            if not role.authenticated:
                raise _Bad("no_controller")
            return True
        if packet.ether_type == 0x88CC:
            return False
        address = packet.arp_sender if packet.arp_sender is not None else packet.src
        probes = packet.arp_sender is not None and int(packet.arp_sender) == 0 and packet.arp_operation == 1
        if role.checks_address:
            if address is not None and (packet.port, packet.src_mac, address) in self.addresses:
                return serves
            if (packet.port, packet.src_mac) not in self.macs:
                raise _Bad("spoofed_mac")
            if not probes and not (packet.kind == "neighbour" and nobody):
                raise _Bad("spoofed_address")
            return serves
        if role.checks_mac and (packet.port, packet.src_mac) not in self.macs:
            raise _Bad("spoofed_mac")
        anybody = self.bridged and not role.checks_mac and not role.transit
        if anybody and self.stations.get(packet.src_mac, (packet.port,))[0] != packet.port:
            raise _Bad("spoofed_mac")
        claims_target = packet.kind == "neighbour" and (packet.type == 136 or (packet.type == 135 and nobody))
        claimed = packet.target if probes or claims_target else address
        if claimed is not None and not role.transit and not self._may_use(packet.port, role, claimed):
            raise _Bad("spoofed_address")
        return serves

    def _may_use(self, port: int, role: Role, address: Address) -> bool:
        """Return True if ``port`` may send from ``address`` by the bindings and networks of other ports."""
        fitting = [owner for owner in self.owners if owner[0].version == address.version and address in owner[0]]
        if not fitting:
            return not role.checks_network
        longest = max(prefix.prefixlen for prefix, _ in fitting)
        return any(port in ports for prefix, ports in fitting if prefix.prefixlen == longest)

    def _forward(self, packet: Packet, role: Role, now_us: int) -> Verdict:
        for_controller = self._check_sender(packet, role)
        if for_controller or packet.ether_type == 0x88CC:
            return "controller", None
        if packet.version == 0 and not (self.bridged and packet.ether_type == 0x0806):
            raise _Bad("ethertype")
        controls = packet.kind == "neighbour" or packet.version == 0
        if controls and packet.dst_mac[0] & 1:
            return "flood", None
        dst = packet.dst
        if dst is not None and not controls and (dst.is_multicast or (dst.version == 4 and int(dst) == 2**32 - 1)):
            raise _Bad("multicast")
        if self.bridged:
            if packet.dst_mac not in self.stations:
                raise _Bad("no_route")
            out, zone, transit = self.stations[packet.dst_mac]
            if out == packet.port:
                raise _Bad("unknown_receiver")
            frame = packet.frame
        else:
            out, zone, transit, frame = self._route(packet)
        if packet.version and packet.kind != "neighbour" and not (role.transit and transit):
            self._judge(packet, role, zone, now_us)
        return "send", (out, frame)

    def _route(self, packet: Packet) -> tuple[int, int, bool, bytes]:
        if packet.ttl <= 1:
            raise _Bad("ttl_expired")
        fitting = [
            r for r in self.routes if packet.dst is not None and r[0].version == packet.version and packet.dst in r[0]
        ]
        if not fitting:
            raise _Bad("no_route")
        _, out, src_mac, dst_mac = max(fitting, key=lambda route: route[0].prefixlen)
        if (out, dst_mac) not in self.receivers:
            raise _Bad("unknown_receiver")
        frame = bytearray(packet.frame)
        frame[:12] = dst_mac + src_mac
        if packet.version == 4:
            frame[22] -= 1
            frame[24:26] = b"\0\0"
            total = sum(_number(bytes(frame), at, 2) for at in range(14, 34, 2))
            while total >> 16:
                total = (total & 0xFFFF) + (total >> 16)
            frame[24:26] = (total ^ 0xFFFF).to_bytes(2, "big")
        else:
            frame[21] -= 1
        return out, *self.receivers[out, dst_mac], bytes(frame)

    def _matching(self, packet_zones: tuple[int, int], flow: tuple[Address, Address, int, int, int]) -> Rule | None:
        src, dst, src_port, dst_port, protocol = flow
        for rule in self.rules or ():
            if (
                rule.from_zone in (None, packet_zones[0])
                and rule.to_zone in (None, packet_zones[1])
                and rule.version in (None, src.version)
                and rule.protocol in (None, protocol)
                and (rule.src is None or (rule.src.version == src.version and src in rule.src))
                and (rule.dst is None or (rule.dst.version == dst.version and dst in rule.dst))
                and rule.src_ports[0] <= src_port <= rule.src_ports[1]
                and rule.dst_ports[0] <= dst_port <= rule.dst_ports[1]
            ):
                return rule
        return None

    def _find(self, packet: Packet, now_us: int) -> tuple[Flow | None, bool]:
        """Return the live flow of a packet, and True if the packet comes from the flow's initiator.

        (None, True) if there is no flow.
        """
        here = (packet.flow_src, packet.src_port, packet.flow_dst, packet.dst_port, packet.flow_protocol)
        there = (packet.flow_dst, packet.dst_port, packet.flow_src, packet.src_port, packet.flow_protocol)
        if packet.is_echo:
            ends = (packet.flow_src, packet.flow_dst)
            asked = ends[::-1] if packet.is_reply else ends
            names: list[tuple[tuple[object, ...], bool]] = [(("echo", *asked, packet.src_port), not packet.is_reply)]
        else:
            names = [(here, True), (there, False)]
        for name, forward in names:
            flow = self.flows.get(name)
            if flow is not None and flow.state != "gone" and now_us <= flow.until_us:
                return flow, forward
        return None, True

    def _judge(self, packet: Packet, role: Role, to_zone: int, now_us: int) -> None:
        if self.rules is None:
            raise _Bad("not_ready")
        if packet.kind == "icmp":
            raise _Bad("icmp_type")
        flow, forward = self._find(packet, now_us)
        opens = packet.kind == "tcp" and packet.flags & 0x17 == SYN
        if flow is None or (flow.state == "closed" and opens):
            self._begin(packet, role, to_zone, opens, now_us)
            return
        zones = (role.zone, to_zone)
        # An error comes from the side that the packet went to.
        if (packet.kind == "error") == forward:
            zones = zones[::-1]
        if zones != flow.zones:
            raise _Bad("wrong_zone")
        if opens and not (flow.state == "syn_sent" and forward):
            self._attempt(packet, role, flow, forward, to_zone, now_us)
            return
        answered = packet.kind == "tcp" and self._answers(packet, flow, forward)
        if answered and packet.flags & SYN:
            self._reopen(packet, flow, forward, now_us)
            return
        epoch, limit = flow.epoch, flow.limit
        if self.judges_again and flow.epoch != self.epoch:
            echo = flow.protocol in (1, 58) and flow.state == "echo"
            ports = (0, 0) if echo else (flow.initiator_port, flow.responder_port)
            rule = self._matching(flow.zones, (flow.initiator, flow.responder, *ports, flow.protocol))
            if rule is None or not rule.allow:
                flow.state = "gone"
                raise _Bad("no_rule" if rule is None else "denied")
            epoch, limit = self.epoch, rule.limit
        if answered and packet.flags & RST:
            self._take(limit, packet, now_us)
            flow.state, flow.attempt = "closed", None
            flow.until_us = now_us + self.timeouts_us["closed"]
        elif packet.kind == "tcp":
            self._recovering(packet, flow, forward, limit, now_us)
        else:
            self._advance(packet, flow, forward, limit, now_us)
        flow.epoch, flow.limit = epoch, limit

    def _allowed(self, zones: tuple[int, int], flow: tuple[Address, Address, int, int, int]) -> Rule:
        rule = self._matching(zones, flow)
        if rule is None or not rule.allow:
            raise _Bad("no_rule" if rule is None else "denied")
        return rule

    def _attempt(self, packet: Packet, role: Role, flow: Flow, forward: bool, to_zone: int, now_us: int) -> None:
        """Store a SYN in a living flow as an attempt, which changes nothing until it is answered (RFC 9293, 3.5.1, 3.10.7.4)."""
        if role.only_replies:
            raise _Bad("reply_only")
        assert packet.src is not None and packet.dst is not None
        name = (packet.src, packet.dst, packet.src_port, packet.dst_port, packet.flow_protocol)
        rule = self._allowed((role.zone, to_zone), name)
        self._take(rule.limit, packet, now_us)
        end = flow.ends[0 if forward else 1]
        if flow.state == "syn_received" and forward and (packet.seq + packet.data + 1) % 2**32 == end.sent:
            flow.until_us = now_us + self.timeouts_us["syn_received"]
        flow.attempt = Attempt(forward, packet.seq, packet.data + 1, packet.scale)

    @staticmethod
    def _answers(packet: Packet, flow: Flow, forward: bool) -> bool:
        """Return True if a segment acknowledges the SYN that the other end has sent to open a new connection."""
        attempt = flow.attempt
        if attempt is None or attempt.by_initiator == forward or not packet.flags & ACK:
            return False
        return 0 < (packet.ack - attempt.number) % 2**32 <= attempt.length

    def _reopen(self, packet: Packet, flow: Flow, forward: bool, now_us: int) -> None:
        """Begin the flow anew with the stored SYN (:class:`Attempt`) that this segment answers."""
        attempt = flow.attempt
        assert attempt is not None
        begins = replace(flow)
        if forward:
            begins.turned()
        src, dst, src_port, dst_port = begins.initiator, begins.responder, begins.initiator_port, begins.responder_port
        rule = self._allowed(begins.zones, (src, dst, src_port, dst_port, flow.protocol))
        self._take(rule.limit, packet, now_us)
        if forward:
            self.flows.pop((dst, dst_port, src, src_port, flow.protocol), None)
            flow.turned()
            self.flows[src, src_port, dst, dst_port, flow.protocol] = flow
        flow.epoch, flow.limit, flow.attempt, flow.misfit, flow.finished = self.epoch, rule.limit, None, None, set()
        after = (attempt.number + attempt.length) % 2**32
        flow.ends[0].__dict__.update(vars(End(after, after, attempt.number, attempt.scale)))
        self._segment(packet, flow, False, 0, now_us, "syn_sent")

    def _take(self, limit: int, packet: Packet, now_us: int) -> None:
        if limit:
            packets, octets = self.packet_limits.get(limit), self.byte_limits.get(limit)
            few = packets is None or packets.take(1, now_us)
            small = octets is None or octets.take(len(packet.frame), now_us)
            if not (few and small):
                raise _Bad("rate_limit")

    def _begin(self, packet: Packet, role: Role, to_zone: int, opens: bool, now_us: int) -> None:
        if packet.kind == "error" or (packet.kind == "echo" and packet.is_reply):
            raise _Bad("icmp_unrelated")
        if packet.kind == "tcp" and not opens:
            raise _Bad("tcp_no_state")
        if role.only_replies:
            raise _Bad("reply_only")
        src, dst = packet.flow_src, packet.flow_dst
        assert src is not None and dst is not None
        ports = (0, 0) if packet.is_echo else (packet.src_port, packet.dst_port)
        rule = self._allowed((role.zone, to_zone), (src, dst, *ports, packet.flow_protocol))
        if self.new_flows is not None and not self._sources.setdefault(
            self.source_cell(role.zone, src), Bucket(*self.new_flows)
        ).take(1, now_us):
            raise _Bad("flow_rate")
        self._take(rule.limit, packet, now_us)
        state = {"tcp": "syn_sent", "udp": "udp_new", "echo": "echo"}.get(packet.kind, "other_new")
        flow = Flow(
            src,
            dst,
            packet.src_port,
            packet.dst_port,
            packet.flow_protocol,
            (role.zone, to_zone),
            state,
            now_us + self.timeouts_us[state],
            self.epoch,
            rule.limit,
        )
        if packet.kind == "tcp":
            self._open(flow, packet)
        if packet.is_echo:
            self.flows["echo", src, dst, packet.src_port] = flow
        else:
            here = (src, packet.src_port, dst, packet.dst_port, packet.flow_protocol)
            self.flows.pop((dst, packet.dst_port, src, packet.src_port, packet.flow_protocol), None)
            self.flows[here] = flow

    @staticmethod
    def _open(flow: Flow, packet: Packet) -> None:
        after = (packet.seq + 1 + packet.data) % 2**32
        flow.ends[0].sent = flow.ends[0].may_send = after
        flow.ends[0].acknowledged, flow.ends[0].scale = packet.seq, packet.scale

    def _advance(self, packet: Packet, flow: Flow, forward: bool, limit: int, now_us: int) -> None:
        """Update a flow by one of its packets. Raise :class:`_Bad` if the packet must be dropped."""
        if packet.kind == "error":
            end = flow.ends[0 if forward else 1]
            attempt = flow.attempt
            is_attempt = attempt is not None and attempt.by_initiator == forward and attempt.number == packet.seq
            on_its_way = (packet.seq - end.acknowledged) % 2**32 <= (end.sent - end.acknowledged) % 2**32
            if flow.protocol == 6 and not on_its_way and not is_attempt:
                raise _Bad("icmp_unrelated")
            self._take(limit, packet, now_us)
            return
        if packet.kind == "tcp":
            self._segment(packet, flow, forward, limit, now_us)
            return
        self._take(limit, packet, now_us)
        if not forward:
            flow.state = {"udp_new": "udp_stream", "other_new": "other_stream"}.get(flow.state, flow.state)
        flow.until_us = now_us + self.timeouts_us[flow.state]

    def _recovering(self, packet: Packet, flow: Flow, forward: bool, limit: int, now_us: int) -> None:
        """Update the flow by a segment that fits it, or that may belong to a new connection of the same end.

        Else raise :class:`_Bad`.
        """
        only_acks = packet.flags & (ACK | RST | FIN) == ACK and packet.data == 0
        try:
            self._segment(packet, flow, forward, limit, now_us)
        except _Bad as bad:
            attempt = flow.attempt
            answers = flow.state == "syn_received" or (flow.state == "syn_sent" and not forward)
            answers |= attempt is not None and attempt.by_initiator != forward
            resets = flow.state in ("syn_sent", "syn_received")
            resets |= attempt is not None and attempt.by_initiator == forward
            if bad.reason in ("tcp_state", "tcp_window") and only_acks and answers:
                self._take(limit, packet, now_us)
                flow.misfit = (forward, packet.ack)
            elif bad.reason == "tcp_reset" and resets and flow.misfit == (not forward, packet.seq):
                self._take(limit, packet, now_us)
            else:
                raise

    def _segment(
        self, packet: Packet, flow: Flow, forward: bool, limit: int, now_us: int, state: str | None = None
    ) -> None:
        """Update a flow by a segment that neither opens a new connection in it nor answers such a segment.

        ``state``: the state to assume, if it is not the flow's own. Raise :class:`_Bad` if the segment must be dropped.
        """
        mine, theirs = flow.ends if forward else flow.ends[::-1]
        syn, ack, rst, fin = (bool(packet.flags & bit) for bit in (SYN, ACK, RST, FIN))
        after = (packet.seq + packet.data + syn + fin) % 2**32
        state = state or flow.state
        change = {"gone": False}
        attempt = flow.attempt
        new_mine, new_theirs = End(**vars(mine)), End(**vars(theirs))
        finished = set(flow.finished)

        def within(number: int, end: End) -> bool:
            """Return True if ``number`` is between what is acknowledged to ``end`` and what ``end`` has sent."""
            return (number - end.acknowledged) % 2**32 <= (end.sent - end.acknowledged) % 2**32

        if state == "syn_sent" and forward:
            if syn and not ack:
                new_mine = End(after, after, packet.seq, packet.scale)
                finished = set()
            elif rst and packet.seq == mine.sent:
                change["gone"] = True
            else:
                raise _Bad("tcp_reset" if rst else "tcp_state")
        elif state == "syn_sent":
            answers = ack and within(packet.ack, theirs) and packet.ack != theirs.acknowledged
            if not answers:
                raise _Bad("tcp_reset" if rst else "tcp_state")
            if rst:
                change["gone"] = True
            elif syn:
                state = "syn_received"
                scaled = packet.scale is not None and theirs.scale is not None
                new_mine = End(after, after, after, packet.scale if scaled else 0)
                new_theirs.may_send = (packet.ack + max(packet.window, 1)) % 2**32
                new_theirs.acknowledged = packet.ack
                new_theirs.scale = theirs.scale if scaled else 0
            else:
                raise _Bad("tcp_state")
        elif rst:
            if not within(packet.seq, mine):
                raise _Bad("tcp_reset")
            if state == "syn_received":
                change["gone"] = True
            else:
                state = "closed"
        elif (
            (forward or after != mine.sent)
            if syn
            else state == "syn_received" and (packet.ack != theirs.sent if forward else packet.data > 0 or fin)
        ):
            raise _Bad("tcp_state")
        else:
            if (
                not _not_after(after, mine.may_send)
                or not _not_after(mine.sent, packet.seq + (65536 << (theirs.scale or 0)))
                or not _not_after(packet.ack, theirs.sent)
                or not _not_after(theirs.sent, packet.ack + (65536 << (mine.scale or 0)))
            ):
                raise _Bad("tcp_window")
            window = packet.window if syn else packet.window << (mine.scale or 0)
            takes = (packet.ack + max(window, 1)) % 2**32
            new_mine.sent = after if _not_after(mine.sent, after) else mine.sent
            new_theirs.may_send = takes if _not_after(theirs.may_send, takes) else theirs.may_send
            new_theirs.acknowledged = packet.ack if _not_after(theirs.acknowledged, packet.ack) else theirs.acknowledged
            if fin:
                finished.add(0 if forward else 1)
            if not syn and (state != "syn_received" or forward):
                state = ("established", "closing", "closed")[len(finished)]
            if attempt is not None and attempt.by_initiator == forward:
                attempt = None
        self._take(limit, packet, now_us)
        for old, new in ((mine, new_mine), (theirs, new_theirs)):
            old.__dict__.update(vars(new))
        flow.finished, flow.attempt = finished, attempt
        flow.state = "gone" if change["gone"] else state
        flow.until_us = now_us + self.timeouts_us[state]
