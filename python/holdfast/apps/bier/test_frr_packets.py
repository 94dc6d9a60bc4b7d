"""One switch with ``bier.p4`` whose ports are down: backups, what tunnels carry, and that nothing is repaired twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import GRE, Ether
from scapy.packet import Packet, Raw

from holdfast.apps.bier.conftest import (
    BIFT,
    EAST,
    GROUP,
    HOST,
    OTHER_HOST,
    OWN,
    PLAN,
    SOUTH,
    WEST,
    Bfr,
    Compile,
    bier_frame,
    delivered_frame,
    header,
    hop,
    host_frame,
    neighbour,
    payload,
    sent_frame,
)
from holdfast.apps.bier.entries import Configuration, switch_configuration
from holdfast.apps.bier.header import BierHeader
from holdfast.apps.bier.planning import Backup, Bift
from holdfast.apps.bier.program import FORWARD, FORWARD_OR_LFA, FORWARD_OR_REMOTE_LFA, ROUTES, Replication
from holdfast.control.tables import TableEntry

FAR = IPv4Address("10.255.0.7")
PQ = IPv4Address("10.255.0.8")

TUNNEL_BACKUP = Backup(hop(EAST), 0b0100, (OWN, FAR))
PROTECTED = replace(
    PLAN,
    bifts={
        BIFT: (
            (
                neighbour(WEST, 0b100110, Backup(hop(SOUTH), 0b0010, None), TUNNEL_BACKUP),
                neighbour(EAST, 0b1000),
                neighbour(SOUTH, 0b10000, Backup(hop(WEST), 0b10000, None)),
            ),
        )
    },
)
"""West's bits are 2, 3 and 6: 2 has an alternate in the south, 3 a tunnel, and 6 nothing."""


def route(action: str, port: int, more: Mapping[str, int | str] | None = None, to: IPv4Address = FAR) -> TableEntry:
    return ROUTES.entry(IPv4Network(to), action, {**hop(port).params(), **(more or {})})


def other(port: int) -> dict[str, int | str]:
    return {f"other_{name}": value for name, value in hop(port).params().items()}


def remote(port: int, mtu: int = 1500) -> dict[str, int | str]:
    return {**other(port), "loopback": int(OWN), "pq_node": int(PQ), "tunnel_mtu": mtu}


def tunnel(inner: BierHeader, data: Packet, port: int, **fields: object) -> tuple[int, bytes]:
    """Return (port, frame) of a BIER packet in GRE (RFC 2784) in IPv4 (RFC 791), built by scapy."""
    outer = {"src": str(OWN), "dst": str(FAR), "ttl": 64, "tos": 46 << 2, "flags": "DF", "id": 0, "proto": 47, **fields}
    gre = GRE(proto=0xAB37) / Raw(inner.encode() + bytes(data))
    return port, bytes(Ether(src=mac(hop(port).src_mac), dst=mac(hop(port).dst_mac), type=0x0800) / IP(**outer) / gre)


def repair(inner: bytes, port: int, **fields: object) -> tuple[int, bytes]:
    """Return (port, frame) of an IP packet in an IP-in-IP tunnel to the PQ node."""
    outer = {"src": str(OWN), "dst": str(PQ), "ttl": 64, "tos": 46 << 2, "flags": "DF", "id": 0, "proto": 4, **fields}
    ether = Ether(src=mac(hop(port).src_mac), dst=mac(hop(port).dst_mac), type=0x0800)
    return port, bytes(ether / IP(**outer) / Raw(inner))


def mac(number: int) -> str:
    return number.to_bytes(6, "big").hex(":")


def arriving(frame: tuple[int, bytes]) -> bytes:
    """Return the frame of (port, frame) as the neighbour at that port would send it back: with its MAC addresses exchanged."""
    _, data = frame
    return data[6:12] + data[:6] + data[12:]


@pytest.fixture
def bfr(variant: Replication, executor: str, compiled: Compile) -> Bfr:
    return Bfr(compiled(variant), PROTECTED, executor=executor).write(Configuration((route(FORWARD, EAST),)))


# ---- The point of local repair ----


def test_backups_take_the_bits_of_a_neighbour_whose_port_is_down(bfr: Bfr) -> None:
    frame = bier_frame(header(0b111110), payload())
    whole = bfr.send(frame, EAST)
    assert [port for port, _ in whole] == [WEST, EAST, SOUTH]
    bfr.down(WEST)
    east = [tunnel(header(0b0100, ttl=19), payload(), EAST), sent_frame(header(0b1000, ttl=19), payload(), EAST)]
    south = [sent_frame(header(bits, ttl=19), payload(), SOUTH) for bits in (0b00010, 0b10000)]
    assert bfr.send(frame, EAST) == sorted([*east, *south])
    assert bfr.counted() == {"lfa_repairs": 1, "tunnel_repairs": 1, "no_backup": 1}
    bfr.switch.set_port_up(WEST, True)
    assert bfr.send(frame, EAST) == whole


def test_a_bit_without_a_backup_leaves_the_others_theirs(compiled: Compile, variant: Replication) -> None:
    west = neighbour(WEST, 0b1111110, Backup(hop(SOUTH), 0b1010000, None), Backup(hop(EAST), 0b1000, None))
    bfr = Bfr(compiled(variant), replace(PLAN, bifts={BIFT: ((west,),)})).down(WEST)
    assert bfr.send(bier_frame(header(0b1111110), payload()), WEST) == [
        sent_frame(header(0b0001000, ttl=19), payload(), EAST),
        sent_frame(header(0b1010000, ttl=19), payload(), SOUTH),
    ]
    assert bfr.counted() == {"lfa_repairs": 2, "no_backup": 3}


@pytest.mark.parametrize("port", [0, 63, 64, 127, 300, 509])
def test_a_port_of_any_number_is_seen(compiled: Compile, variant: Replication, port: int) -> None:
    entries = (neighbour(port, 0b10, Backup(hop(EAST), 0b10, None)), neighbour(SOUTH, 0b100))
    bfr = Bfr(compiled(variant), replace(PLAN, bifts={BIFT: (entries,)}))
    for down, taken in ((False, port), (True, EAST), (False, port)):
        bfr.switch.set_port_up(port, not down)
        sent = [sent_frame(header(0b10, ttl=19), payload(), taken), sent_frame(header(0b100, ttl=19), payload(), SOUTH)]
        assert bfr.send(bier_frame(header(0b110), payload()), EAST) == sorted(sent)


def test_a_port_that_nobody_is_behind_changes_nothing(bfr: Bfr) -> None:
    frame = bier_frame(header(0b111110), payload())
    whole = bfr.send(frame, EAST)
    assert bfr.down(99, HOST).send(frame, EAST) == whole
    assert bfr.counted() == {}


def test_the_bfir_repairs_what_it_imposes(bfr: Bfr) -> None:
    bfr.send_channels({(None, GROUP): {BIFT: 0b1100}}).down(WEST)
    ((_, east), (_, tunnelled)) = sorted(bfr.send(host_frame(payload()), HOST), key=lambda sent: len(sent[1]))
    made, inner = BierHeader.decode(east[14:])
    assert (made.bit_string, inner) == (0b1000, bytes(payload(ttl=31)))
    expected = tunnel(replace(made, bit_string=0b0100, dscp=0), payload(ttl=31), EAST, tos=0)
    assert tunnelled == expected[1]


def test_own_bit_and_repairs(bfr: Bfr) -> None:
    bfr.receive_channels({(None, GROUP): [HOST, OTHER_HOST]}).down(WEST)
    sent = bfr.send(bier_frame(header(0b1101), payload()), SOUTH)
    assert sent == sorted(
        [
            *(delivered_frame(payload(ttl=31), port, "01:00:5e:01:02:03") for port in (HOST, OTHER_HOST)),
            tunnel(header(0b0100, ttl=19), payload(), EAST),
            sent_frame(header(0b1000, ttl=19), payload(), EAST),
        ]
    )


def test_an_alternate_whose_port_is_down_is_none(bfr: Bfr) -> None:
    bfr.down(WEST, SOUTH)
    assert bfr.send(bier_frame(header(0b10010), payload()), EAST) == []
    assert bfr.counted() == {"no_backup": 2}


def test_the_mtu_is_the_tunnels(compiled: Compile, variant: Replication) -> None:
    bfr = Bfr(compiled(variant), PROTECTED)
    bfr.wanted = replace(bfr.wanted, entries=())
    bfr.write(switch_configuration(PROTECTED, tunnel_mtu=600))
    bfr.write(Configuration((route(FORWARD, EAST),))).down(WEST)
    room = 600 - 24 - 44 - 28
    ((_, sent),) = bfr.send(bier_frame(header(0b100), payload(length=room)), SOUTH)
    assert len(sent) == 14 + 600
    assert bfr.send(bier_frame(header(0b100), payload(length=room + 1)), SOUTH) == []
    assert bfr.counted() == {"tunnel_repairs": 1, "tunnel_mtu_exceeded": 1}


def test_an_expired_ttl_is_not_repaired(bfr: Bfr) -> None:
    assert bfr.down(WEST).send(bier_frame(header(0b111110, ttl=1), payload()), EAST) == []
    assert bfr.counted() == {"ttl_expired": 1}


def test_several_sets_and_tables_are_repaired_each(compiled: Compile, variant: Replication) -> None:
    bifts = {Bift(0, number): PROTECTED.bifts[BIFT] for number in range(3)}
    bfr = Bfr(compiled(variant), replace(PROTECTED, bifts=bifts)).write(Configuration((route(FORWARD, EAST),)))
    bfr.send_channels({(None, GROUP): dict.fromkeys(bifts, 0b1010)}).down(WEST)
    sent = [(port, BierHeader.decode(data[14:])[0]) for port, data in bfr.send(host_frame(payload()), HOST)]
    assert sorted((port, made.bift_id & 0xFF, made.bit_string) for port, made in sent) == [
        *((EAST, number, 0b1000) for number in range(3)),
        *((SOUTH, number, 0b0010) for number in range(3)),
    ]


# ---- The underlay repairs tunnels ----


def test_a_tunnel_takes_its_routes_alternate(bfr: Bfr) -> None:
    """IP fast reroute where the tunnel begins: the route of its end leads to the port that is down."""
    bfr.wanted = replace(bfr.wanted, entries=bfr.wanted.entries[:-1])
    bfr.write(Configuration((route(FORWARD_OR_LFA, WEST, other(SOUTH)),))).down(WEST)
    assert bfr.send(bier_frame(header(0b100), payload()), EAST) == [tunnel(header(0b100, ttl=19), payload(), SOUTH)]
    assert bfr.counted() == {"tunnel_repairs": 1, "ip_lfa_repairs": 1}


def test_a_tunnel_takes_a_remote_alternate(bfr: Bfr) -> None:
    bfr.wanted = replace(bfr.wanted, entries=bfr.wanted.entries[:-1])
    bfr.write(Configuration((route(FORWARD_OR_REMOTE_LFA, WEST, remote(SOUTH)),))).down(WEST)
    _, inner = tunnel(header(0b100, ttl=19), payload(), SOUTH)
    assert bfr.send(bier_frame(header(0b100), payload()), EAST) == [repair(inner[14:], SOUTH)]
    assert bfr.counted() == {"tunnel_repairs": 1, "ip_remote_lfa_repairs": 1}


def test_without_ip_fast_reroute_a_tunnel_waits_for_its_route(bfr: Bfr) -> None:
    bfr.wanted = replace(bfr.wanted, entries=bfr.wanted.entries[:-1])
    bfr.write(Configuration((route(FORWARD, WEST),))).down(WEST)
    assert bfr.send(bier_frame(header(0b1100), payload()), SOUTH) == [
        sent_frame(header(0b1000, ttl=19), payload(), EAST)
    ]
    assert bfr.counted() == {"tunnel_repairs": 1, "ip_no_alternate": 1}


# ---- On the way, and at the end ----


def test_a_tunnel_passes(bfr: Bfr) -> None:
    """Its own TTL counts; nothing inside changes, whatever it is."""
    frame = arriving(tunnel(header(0b111111, ttl=0, version=3), payload(), SOUTH, src="10.255.0.9", ttl=9))
    assert bfr.send(frame, SOUTH) == [
        tunnel(header(0b111111, ttl=0, version=3), payload(), EAST, src="10.255.0.9", ttl=8)
    ]
    frame = arriving(tunnel(header(0b111111), payload(), SOUTH, src="10.255.0.9", ttl=1))
    assert bfr.send(frame, SOUTH) == []
    assert bfr.counted() == {"ip_ttl_expired": 1}


def test_a_tunnel_that_passes_is_repaired(bfr: Bfr) -> None:
    bfr.wanted = replace(bfr.wanted, entries=bfr.wanted.entries[:-1])
    bfr.write(Configuration((route(FORWARD_OR_REMOTE_LFA, WEST, remote(EAST, mtu=200)),))).down(WEST)
    there = {"src": "10.255.0.9"}
    _, passed = tunnel(header(0b1), payload(), EAST, ttl=8, **there)
    frame = arriving(tunnel(header(0b1), payload(), SOUTH, ttl=9, **there))
    assert bfr.send(frame, SOUTH) == [repair(passed[14:], EAST)]
    long = payload(length=200 - 20 - 24 - 44 - 28)
    assert len(bfr.send(arriving(tunnel(header(0b1), long, SOUTH, **there)), SOUTH)) == 1
    longer = payload(length=200 - 20 - 24 - 44 - 28 + 1)
    assert bfr.send(arriving(tunnel(header(0b1), longer, SOUTH, **there)), SOUTH) == []
    assert bfr.counted() == {"ip_remote_lfa_repairs": 2, "ip_mtu_exceeded": 1}


def test_a_repaired_tunnel_is_not_repaired_again(bfr: Bfr) -> None:
    bfr.wanted = replace(bfr.wanted, entries=bfr.wanted.entries[:-1])
    bfr.write(Configuration((route(FORWARD_OR_LFA, WEST, other(EAST), to=PQ),))).down(WEST)
    _, inner = tunnel(header(0b1), payload(), SOUTH)
    assert bfr.send(arriving(repair(inner[14:], SOUTH)), SOUTH) == []
    assert bfr.counted() == {"ip_no_alternate": 1}


def test_a_tunnel_ends(bfr: Bfr) -> None:
    """Out comes a BIER packet like any: its own bit, its neighbours, its TTL. The tunnel's TTL does not matter here."""
    bfr.receive_channels({(None, GROUP): [HOST]})
    for ttl in (1, 60):
        frame = arriving(tunnel(header(0b1011), payload(), SOUTH, src="10.255.0.9", dst=str(OWN), ttl=ttl))
        assert bfr.send(frame, SOUTH) == [
            delivered_frame(payload(ttl=31), HOST, "01:00:5e:01:02:03"),
            sent_frame(header(0b0010, ttl=19), payload(), WEST),
            sent_frame(header(0b1000, ttl=19), payload(), EAST),
        ]
    assert bfr.counted() == {"decapsulated": 2}


def test_both_tunnels_end(bfr: Bfr) -> None:
    """The PQ node is the end of the BIER tunnel too."""
    _, inner = tunnel(header(0b1000), payload(), SOUTH, src="10.255.0.9", dst=str(OWN))
    frame = arriving(repair(inner[14:], SOUTH, src="10.255.0.9", dst=str(OWN)))
    assert bfr.send(frame, SOUTH) == [sent_frame(header(0b1000, ttl=19), payload(), EAST)]
    assert bfr.counted() == {"decapsulated": 2}


def test_a_pq_node_sends_the_tunnel_on(bfr: Bfr) -> None:
    _, inner = tunnel(header(0b1000), payload(), SOUTH, src="10.255.0.9", ttl=9)
    frame = arriving(repair(inner[14:], SOUTH, src="10.255.0.9", dst=str(OWN)))
    assert bfr.send(frame, SOUTH) == [tunnel(header(0b1000), payload(), EAST, src="10.255.0.9", ttl=8)]


def test_what_comes_out_of_a_tunnel_is_not_repaired_again(bfr: Bfr) -> None:
    """Two switches cannot send a packet to and fro in tunnels."""
    bfr.down(WEST, SOUTH)
    frame = arriving(tunnel(header(0b11110), payload(), SOUTH, src="10.255.0.9", dst=str(OWN)))
    assert bfr.send(frame, SOUTH) == [sent_frame(header(0b1000, ttl=19), payload(), EAST)]
    assert bfr.counted() == {"decapsulated": 1, "no_backup": 2}


def test_a_tunnel_from_outside_is_none(bfr: Bfr) -> None:
    frame = arriving(tunnel(header(0b1000), payload(), SOUTH, dst=str(OWN)))
    assert bfr.send(frame, HOST) == []
    assert bfr.counted() == {f"refused at {HOST}": 1}


def test_a_tunnel_with_a_bad_checksum_is_malformed(bfr: Bfr) -> None:
    frame = arriving(tunnel(header(0b1000), payload(), SOUTH, dst=str(OWN), chksum=7))
    assert bfr.send(frame, SOUTH) == []
    assert bfr.counted() == {"malformed": 1}


def test_congestion_cannot_be_told_to_a_bier_packet(bfr: Bfr) -> None:
    """RFC 6040, 4.2: a packet that cannot carry the mark is dropped. Tunnels are sent as not capable of it."""
    frame = arriving(tunnel(header(0b1000), payload(), SOUTH, dst=str(OWN), tos=46 << 2 | 3))
    assert bfr.send(frame, SOUTH) == []
    assert bfr.counted() == {"congestion_unmarkable": 1, "decapsulated": 1}


def test_unicast_takes_its_alternate(bfr: Bfr) -> None:
    host = IPv4Address("10.0.9.9")
    bfr.write(Configuration((route(FORWARD_OR_REMOTE_LFA, WEST, remote(SOUTH), to=host),)))
    packet, passed = (IP(dst=str(host), ttl=ttl, tos=0xB8) / UDP() / Raw(bytes(9)) for ttl in (9, 8))
    assert bfr.send(host_frame(packet), HOST) == [
        (WEST, bytes(Ether(src=mac(hop(WEST).src_mac), dst=mac(hop(WEST).dst_mac)) / passed))
    ]
    assert bfr.down(WEST).send(host_frame(packet), HOST) == [repair(bytes(passed), SOUTH)]
    assert bfr.counted() == {"ip_remote_lfa_repairs": 1}


def test_the_tunnel_of_an_mpls_network(compiled: Compile, variant: Replication) -> None:
    """MPLS in GRE (RFC 4023): the label behind the header."""
    bfr = Bfr(compiled(variant, encapsulation="mpls"), PROTECTED).write(Configuration((route(FORWARD, EAST),)))
    bfr.down(WEST)
    made = header(0b100, nibble=5)
    ((port, sent),) = bfr.send(bier_frame(made, payload(), mpls=True), SOUTH)
    expected = tunnel(replace(made, ttl=19), payload(), EAST)[1]
    assert (port, sent) == (EAST, expected[:36] + b"\x88\x47" + expected[38:])
