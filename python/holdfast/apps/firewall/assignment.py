"""Bindings that are learnt: addresses that DHCP and DHCPv6 servers grant, and that stations claim by duplicate address detection.

The controller sees these packets instead of their receivers, and passes them on once the bindings are in the switch, so no station
has an address before it may use it (RFC 7513, RFC 6620: the first who claims an address has it). Nothing here sends or writes.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Literal, TypeAlias

from holdfast.apps.firewall.rules import Address

S_PER_PS = 1_000_000_000_000

CLAIM_LIFETIME_S = 14_400
"""The lifetime of a binding whose address was claimed by its station, which must claim it again before."""

REQUEST_LIFETIME_S = 60
"""The longest time from a request to its answer."""

MOST_REQUESTS = 4096
"""The most requests that wait for answers at one switch; the oldest are forgotten."""

Refusal: TypeAlias = Literal["malformed", "foreign", "taken", "too_many", "unasked"]
"""Why a packet is not passed on: it cannot be read; its IP address or the hardware address in it is not its sender's; the address
is another station's, or the MAC address is at another port; the port has too many addresses; nobody asked."""

_COOKIE = b"\x63\x82\x53\x63"
_REQUEST, _ACK, _RELEASE, _DECLINE = 3, 5, 7, 4


@dataclass(frozen=True)
class Learnt:
    """A binding that somebody else has granted or allowed, until a time."""

    port: int
    mac: int
    address: Address
    until_ps: int


@dataclass(frozen=True)
class Onward:
    """Where a packet is sent: to one port, to the ports of DHCP servers, or to all ports; never back to its own."""

    to: Literal["servers", "all"] | int


class Assignments:
    """The learnt bindings of one switch."""

    def __init__(self, most_per_port: int) -> None:
        self._most = most_per_port
        self.learnt: dict[Address, Learnt] = {}
        self._requests: dict[tuple[int, int], tuple[int, int, int]] = {}  # (version, transaction): port, MAC, time
        self.static: dict[Address, int] = {}
        """Addresses that are bound anyway, with their MAC addresses: nobody else gets them."""
        self.static_macs: dict[int, int] = {}
        """The ports of MAC addresses that are bound anyway."""

    def expire(self, now_ps: int) -> bool:
        """Remove learnt bindings whose time is over at ``now_ps``; return True if there was one."""
        over = [address for address, learnt in self.learnt.items() if learnt.until_ps <= now_ps]
        for address in over:
            del self.learnt[address]
        return bool(over)

    def next_expiry_ps(self) -> int | None:
        """Return when the next learnt binding expires, in picoseconds; None if no binding is learnt."""
        return min((learnt.until_ps for learnt in self.learnt.values()), default=None)

    def hear(self, frame: bytes, port: int, now_ps: int) -> Onward | Refusal:
        """Judge a packet of DHCP, DHCPv6 or duplicate address detection: return where to send it, or why it is refused.

        Bindings of addresses that the packet grants are added to :attr:`learnt`.
        """
        self.expire(now_ps)
        try:
            return self._hear(frame, port, now_ps)
        except (IndexError, ValueError):
            return "malformed"

    def _hear(self, frame: bytes, port: int, now_ps: int) -> Onward | Refusal:
        mac = int.from_bytes(frame[6:12], "big")
        if frame[12:14] == b"\x08\x00":
            answers, source = frame[34:36] == b"\0\x43", ipaddress.IPv4Address(frame[26:30])
            if not answers and not source.is_unspecified and not self._holds(source, port, mac):
                return "foreign"
            return self._dhcp(frame[42:], answers, port, mac, now_ps)
        if frame[20] == 58:
            return self._claim(ipaddress.IPv6Address(frame[62:78]), port, mac, now_ps)
        answers, sender = frame[54:56] == (547).to_bytes(2, "big"), ipaddress.IPv6Address(frame[22:38])
        if not answers and not sender.is_link_local and not self._holds(sender, port, mac):
            return "foreign"
        return self._dhcpv6(frame[62:], answers, port, mac, now_ps)

    def _holds(self, address: Address, port: int, mac: int) -> bool:
        learnt = self.learnt.get(address)
        if learnt is not None:
            return (learnt.port, learnt.mac) == (port, mac)
        return self.static.get(address) == mac and self.static_macs.get(mac) == port

    def _may_have(self, address: Address, port: int, mac: int) -> Refusal | None:
        if self.static.get(address, mac) != mac or self.static_macs.get(mac, port) != port:
            return "taken"
        if any(learnt.mac == mac and learnt.port != port for learnt in self.learnt.values()):
            return "taken"
        holder = self.learnt.get(address)
        if holder is not None and (holder.port, holder.mac) != (port, mac):
            return "taken"
        if holder is None and sum(learnt.port == port for learnt in self.learnt.values()) >= self._most:
            return "too_many"
        return None

    def _learn(self, address: Address, port: int, mac: int, lifetime_s: int, now_ps: int) -> Refusal | None:
        if (why := self._may_have(address, port, mac)) is not None:
            return why
        self.learnt[address] = Learnt(port, mac, address, now_ps + lifetime_s * S_PER_PS)
        return None

    def _asked(self, key: tuple[int, int], port: int, mac: int, now_ps: int) -> None:
        self._requests.pop(key, None)
        self._requests[key] = port, mac, now_ps
        while len(self._requests) > MOST_REQUESTS:
            del self._requests[next(iter(self._requests))]

    def _asker(self, key: tuple[int, int], now_ps: int) -> tuple[int, int] | None:
        port, mac, then_ps = self._requests.get(key, (0, 0, -REQUEST_LIFETIME_S * S_PER_PS - 1))
        return (port, mac) if now_ps - then_ps <= REQUEST_LIFETIME_S * S_PER_PS else None

    # ---- DHCP (RFC 2131) ----

    def _dhcp(self, message: bytes, answers: bool, port: int, mac: int, now_ps: int) -> Onward | Refusal:
        operation, hardware, length = message[0], message[1], message[2]
        if (operation, hardware, length) != (2 if answers else 1, 1, 6) or message[236:240] != _COOKIE:
            return "malformed"
        transaction = int.from_bytes(message[4:8], "big")
        client = int.from_bytes(message[28:34], "big")
        options = _dhcp_options(message[240:])
        kind = options[53][0] if options.get(53) else 0
        if not answers:
            if client != mac:
                return "foreign"
            if kind in (_RELEASE, _DECLINE):
                self._give_back(ipaddress.IPv4Address(message[12:16]), port, mac)
            self._asked((4, transaction), port, mac, now_ps)
            return Onward("servers")
        asker = self._asker((4, transaction), now_ps)
        if asker is None or asker[1] != client:
            return "unasked"
        if kind == _ACK and message[16:20] != bytes(4):
            lifetime_s = int.from_bytes(options.get(51, b"\0\0\0\0")[:4], "big")
            why = self._learn(ipaddress.IPv4Address(message[16:20]), *asker, lifetime_s, now_ps)
            if why is not None:
                return why
        return Onward(asker[0])

    def _give_back(self, address: Address, port: int, mac: int) -> None:
        holder = self.learnt.get(address)
        if holder is not None and (holder.port, holder.mac) == (port, mac):
            del self.learnt[address]

    # ---- DHCPv6 (RFC 8415) ----

    def _dhcpv6(self, message: bytes, answers: bool, port: int, mac: int, now_ps: int) -> Onward | Refusal:
        if len(message) < 4:
            return "malformed"
        kind, transaction = message[0], int.from_bytes(message[1:4], "big")
        addresses = list(_dhcpv6_addresses(message[4:]))
        if not answers:
            if kind in (8, 9):  # Release, Decline
                for address, _ in addresses:
                    self._give_back(address, port, mac)
            self._asked((6, transaction), port, mac, now_ps)
            return Onward("servers")
        asker = self._asker((6, transaction), now_ps)
        if asker is None:
            return "unasked"
        if kind == 7:  # Reply
            for address, lifetime_s in addresses:
                if lifetime_s == 0:
                    self._give_back(address, *asker)
                elif (why := self._learn(address, *asker, lifetime_s, now_ps)) is not None:
                    return why
        return Onward(asker[0])

    # ---- Duplicate address detection (RFC 4862, section 5.4) ----

    def _claim(self, target: ipaddress.IPv6Address, port: int, mac: int, now_ps: int) -> Onward | Refusal:
        if target.is_multicast or target.is_unspecified or target.is_loopback or target.ipv4_mapped is not None:
            return "malformed"
        why = self._learn(target, port, mac, CLAIM_LIFETIME_S, now_ps)
        return Onward("all") if why is None else why


def _dhcp_options(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    at = 0
    while data[at] != 255:
        if data[at] == 0:
            at += 1
            continue
        length = data[at + 1]
        if at + 2 + length > len(data):
            raise ValueError("an option is cut off")
        found[data[at]] = found.get(data[at], b"") + data[at + 2 : at + 2 + length]
        at += 2 + length
    return found


def _dhcpv6_addresses(data: bytes) -> list[tuple[ipaddress.IPv6Address, int]]:
    """Return (address, valid lifetime in seconds) for the addresses in identity associations (options 3 and 4)."""
    found = []
    for code, value in _dhcpv6_options(data):
        if code in (3, 4):
            for inner, address in _dhcpv6_options(value[12 if code == 3 else 4 :]):
                if inner == 5 and len(address) >= 24:
                    found.append((ipaddress.IPv6Address(address[:16]), int.from_bytes(address[20:24], "big")))
    return found


def _dhcpv6_options(data: bytes) -> list[tuple[int, bytes]]:
    found, at = [], 0
    while at < len(data):
        if at + 4 > len(data):
            raise ValueError("an option is cut off")
        code, length = int.from_bytes(data[at : at + 2], "big"), int.from_bytes(data[at + 2 : at + 4], "big")
        if at + 4 + length > len(data):
            raise ValueError("an option is cut off")
        found.append((code, data[at + 4 : at + 4 + length]))
        at += 4 + length
    return found
