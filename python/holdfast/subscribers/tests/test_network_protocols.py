"""PAP, CHAP, IPCP, IPv6CP, router advertisements and pools: bytes written from the RFCs."""

from __future__ import annotations

import hashlib
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from holdfast.subscribers import dhcpv6_pd, ipv6, pools, ppp
from holdfast.subscribers.authentication import Credentials
from holdfast.subscribers.chap import Chap, holds
from holdfast.subscribers.ipcp import Ipcp
from holdfast.subscribers.ipv6cp import Ipv6cp
from holdfast.subscribers.pap import Pap
from holdfast.subscribers.tests.worlds import VirtualClock


def test_pap_judges_once_and_repeats_its_answer() -> None:
    sent: list[bytes] = []
    asked: list[Credentials] = []
    pap = Pap(lambda protocol, packet: sent.append(packet), asked.append)
    request = bytes((1, 5, 0, 4 + 1 + 3 + 1 + 5)) + b"\3bob\5open!"
    for cut in range(len(request)):
        pap.receive(request[:cut])
    pap.receive(bytes((1, 5, 0, 10)) + b"\3bob\5open!")  # a password beyond the length
    pap.receive(bytes((1, 5, 0, 9)) + b"\xffbob\5open!")
    assert not asked
    pap.receive(request)
    pap.receive(request)
    assert asked == [Credentials(b"bob", password=b"open!")]
    pap.decide(True, "hi")
    pap.receive(b"\1\6" + request[2:])
    assert sent == [bytes((2, 5, 0, 7)) + b"\2hi", bytes((2, 6, 0, 7)) + b"\2hi"]
    assert len(asked) == 1
    assert holds(asked[0], b"open!")
    assert not holds(asked[0], b"open")


def test_chap_challenges_until_it_is_answered() -> None:
    clock = VirtualClock()
    sent: list[bytes] = []
    asked: list[Credentials] = []
    failed: list[bool] = []
    chap = Chap(
        lambda protocol, packet: sent.append(packet), asked.append, lambda: failed.append(True), clock, ppp.Restart(),
        name="ac", identifier=9, challenge=bytes(range(16)),
    )  # fmt: skip
    chap.start()
    clock.run(4)
    challenge = bytes((1, 9, 0, 23, 16, *range(16))) + b"ac"
    assert sent == [challenge, challenge]
    digest = hashlib.md5(b"\x09secret" + bytes(range(16))).digest()  # RFC 1994, section 4.1
    response = bytes((2, 9, 0, 24, 16)) + digest + b"bob"
    for bad in (b"\2\x08" + response[2:], response[:10], response[:4] + b"\x0f" + response[5:], b"\1" + response[1:]):
        chap.receive(bad)
    assert not asked
    chap.receive(response)
    clock.run(60)
    assert len(sent) == 2
    assert [each.user for each in asked] == [b"bob"]
    assert holds(asked[0], b"secret")
    assert not holds(asked[0], b"secreT")
    chap.decide(False, "no")
    chap.receive(response)
    assert sent[2:] == [bytes((4, 9, 0, 6)) + b"no"] * 2
    assert not failed


def test_chap_gives_up() -> None:
    clock = VirtualClock()
    failed: list[bool] = []
    chap = Chap(
        lambda protocol, packet: None, lambda each: None, lambda: failed.append(True), clock, ppp.Restart(),
        name="ac", identifier=9, challenge=bytes(16),
    )  # fmt: skip
    chap.start()
    clock.run(29)
    assert not failed
    clock.run(2)
    assert failed == [True]


class Negotiation:
    def __init__(self, six: bool = False, dns: tuple[str, ...] = ("192.0.2.53", "192.0.2.54")) -> None:
        self.sent: list[bytes] = []
        self.changes: list[bool] = []
        clock = VirtualClock()
        self.protocol: Ipcp | Ipv6cp
        if six:
            self.protocol = Ipv6cp(
                lambda protocol, packet: self.sent.append(packet), clock, ppp.Restart(), ours=bytes.fromhex("0200ccfffe000001"),
                suggestion=bytes.fromhex("1122334455667788"),
                agreed=lambda: None, changed=self.changes.append, finished=lambda: None,
            )  # fmt: skip
        else:
            self.protocol = Ipcp(
                lambda protocol, packet: self.sent.append(packet), clock, ppp.Restart(), ours=IPv4Address("100.64.0.1"),
                theirs=IPv4Address("100.64.0.9"), dns=tuple(IPv4Address(each) for each in dns),
                agreed=lambda: None, changed=self.changes.append, finished=lambda: None,
            )  # fmt: skip
        self.protocol.open()
        self.protocol.up()

    def hear(self, text: str) -> bytes:
        self.sent.clear()
        self.protocol.receive(bytes.fromhex(text))
        return self.sent[-1]


def test_ipcp_gives_the_address_and_the_name_servers() -> None:
    ipcp = Negotiation()
    assert ipcp.sent == [bytes.fromhex("01 01 00 0a 03 06 64400001")]
    asked = "01 01 00 16 03 06 00000000 81 06 00000000 83 06 00000000"
    given = "01 00 16 03 06 64400009 81 06 c0000235 83 06 c0000236"
    assert ipcp.hear(asked) == bytes.fromhex(f"03 {given}")
    assert ipcp.hear(f"01 {given}") == bytes.fromhex(f"02 {given}")
    ipcp.protocol.receive(bytes.fromhex("02 01 00 0a 03 06 64400001"))
    assert ipcp.changes == [True]


def test_ipcp_rejects_what_there_is_not() -> None:
    asked = "01 01 00 1c 03 06 00000000 02 06 002d0f01 82 06 00000000 81 06 00000000"
    assert Negotiation(dns=()).hear(asked) == bytes.fromhex("04 01 00 16 02 06 002d0f01 82 06 00000000 81 06 00000000")
    assert Negotiation().hear("01 02 00 04") == bytes.fromhex("03 02 00 0a 03 06 64400009")  # it must have an address
    assert Negotiation().hear("01 02 00 0a 03 06 0a000001") == bytes.fromhex("03 02 00 0a 03 06 64400009")
    ipcp = Negotiation()
    assert ipcp.hear("04 01 00 0a 03 06 64400001") == bytes.fromhex("01 02 00 04")  # ours is dispensable


def test_ipv6cp_refuses_zero_and_equal_identifiers() -> None:
    six = Negotiation(six=True)
    assert six.sent == [bytes.fromhex("01 01 00 0e 01 0a 0200ccfffe000001")]
    suggestion = bytes.fromhex("03 03 00 0e 01 0a 1122334455667788")
    assert six.hear("01 03 00 0e 01 0a 0000000000000000") == suggestion
    assert six.hear("01 03 00 0e 01 0a 0200ccfffe000001") == suggestion
    assert six.hear("01 03 00 04") == suggestion
    assert six.hear("01 03 00 12 01 0a aaaaaaaaaaaaaaaa 02 04 0000") == bytes.fromhex("04 03 00 08 02 04 0000")
    assert six.hear("01 04 00 0e 01 0a aaaaaaaaaaaaaaaa") == bytes.fromhex("02 04 00 0e 01 0a aaaaaaaaaaaaaaaa")
    assert isinstance(six.protocol, Ipv6cp)
    assert six.protocol.theirs == b"\xaa" * 8


def test_a_router_advertisement() -> None:
    packet = ipv6.router_advertisement(
        IPv6Address("fe80::1"), IPv6Network("2001:db8:1:2::/64"), 1492, (IPv6Address("2001:db8::53"),), 1800
    )
    assert packet[:8] == bytes.fromhex(f"60000000 {len(packet) - 40:04x} 3aff")
    assert packet[24:40] == IPv6Address("ff02::1").packed
    assert packet[40:42] == b"\x86\0"
    assert packet[44:48] == bytes.fromhex("40 40 0708")  # hop limit 64, O, 1800 s
    assert packet[56:88] == bytes.fromhex("03 04 40 40 00001c20 00000e10 00000000 20010db8000100020000000000000000")
    assert packet[88:96] == bytes.fromhex("05 01 0000 000005d4")
    assert packet[96:] == bytes.fromhex("19 03 0000 00000708") + IPv6Address("2001:db8::53").packed
    assert ones_complement(packet) == 0xFFFF


def ones_complement(packet: bytes) -> int:
    data = packet[8:40] + (len(packet) - 40).to_bytes(4, "big") + bytes((0, 0, 0, packet[6])) + packet[40:]
    total = sum(int.from_bytes(data[at : at + 2].ljust(2, b"\0"), "big") for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def test_only_valid_solicitations_and_udp_are_read() -> None:
    packet = ipv6.udp(IPv6Address("fe80::2"), dhcpv6_pd.ALL_SERVERS, 546, 547, b"odd")
    assert ones_complement(packet) == 0xFFFF
    received = ipv6.read(packet)
    assert received is not None
    assert (received.source_port, received.destination_port, received.payload) == (546, 547, b"odd")
    for at in range(4, len(packet)):
        bad = bytearray(packet)
        bad[at] ^= 0x10
        found = ipv6.read(bytes(bad))
        # The hop limit is not in the checksum, and a packet cut to what its length says may be whole.
        assert found is None or at in (7,), at
        assert ipv6.read(packet[:at]) is None
    # A solicitation that a router forwarded (hop limit below 255) is from elsewhere: RFC 4861, section 6.1.1.
    source, destination = IPv6Address("fe80::2").packed, IPv6Address("ff02::2").packed
    body = b"\x85\0\0\0" + bytes(4)
    value = ipv6.checksum(source, destination, 58, body).to_bytes(2, "big")
    for hops, good in ((255, True), (254, False)):
        whole = bytes.fromhex("60000000 0008 3a") + bytes((hops,)) + source + destination + body[:2] + value + body[4:]
        assert (ipv6.read(whole) is not None) is good


def test_pools_give_all_once_and_the_returned_last() -> None:
    pool = pools.addresses(IPv4Network("192.0.2.0/29"), frozenset((IPv4Address("192.0.2.1"),)))
    assert pool.reserve(IPv4Address("192.0.2.3"))
    assert not pool.reserve(IPv4Address("192.0.2.3"))
    assert pool.reserve(IPv4Address("203.0.113.1"))
    taken = [pool.take() for _ in range(5)]
    assert [str(each) for each in taken] == ["192.0.2.2", "192.0.2.4", "192.0.2.5", "192.0.2.6", "None"]
    for each in ("192.0.2.5", "192.0.2.3", "192.0.2.3", "203.0.113.1"):
        pool.give_back(IPv4Address(each))
    assert pool.reserve(IPv4Address("192.0.2.5"))
    assert [str(pool.take()) for _ in range(2)] == ["192.0.2.3", "None"]
    delegations = pools.Prefixes(IPv6Network("2001:db8::/54"), 56)
    assert [str(delegations.take()) for _ in range(5)] == [
        "2001:db8::/56",
        "2001:db8:0:100::/56",
        "2001:db8:0:200::/56",
        "2001:db8:0:300::/56",
        "None",
    ]
    ids = pools.session_ids(65_534)
    assert ids.take() == 1
    assert not ids.reserve(1)


def test_a_pool_of_65000_is_not_slow_and_returns_do_not_grow() -> None:
    ids = pools.session_ids(65_534)
    for _ in range(3):
        taken = [ids.take() for _ in range(65_534)]
        assert ids.take() is None
        assert len(set(taken)) == 65_534
        for each in taken:
            assert each is not None
            ids.give_back(each)
    for _ in range(1000):
        assert ids.reserve(5)
        ids.give_back(5)
    assert len(ids._returned) == 65_534
