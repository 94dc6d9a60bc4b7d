"""Wireshark looks at the packets of every hop: Ethernet, MPLS and tunnel, each field as it was meant, nothing malformed.

The dissector is ``bier.lua``, written from RFC 8296; scapy's own BIER layer is asked as well.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest
from scapy.contrib.bier import BIER
from scapy.contrib.bier import BIFT as BIFT_LAYER

from holdfast._core import write_pcap
from holdfast.apps.bier.conftest import BIFT, GROUP, HOST, Bfr, Compile, hop, host_frame, neighbour, payload
from holdfast.apps.bier.entries import Configuration
from holdfast.apps.bier.header import BierHeader
from holdfast.apps.bier.planning import Backup, SwitchPlan
from holdfast.apps.bier.program import FORWARD, ROUTES, Encapsulation

FIELDS = ("bift_id", "tc", "s", "ttl", "nibble", "ver", "bsl", "entropy", "oam", "rsv", "dscp", "proto", "bfir_id")
BSL = 256
DISSECTOR = Path(__file__).with_name("bier.lua")

LEFT, RIGHT, ROUND = 21, 22, 23
"""Ports of a line of switches, and those of the detour."""


@dataclass(frozen=True)
class Hop:
    """A frame on the link behind a switch."""

    switch: str
    frame: bytes


def address(number: int) -> IPv4Address:
    return IPv4Address(0x0AFF0000 + number)


def route(to: int, port: int) -> Configuration:
    return Configuration((ROUTES.entry(IPv4Network(address(to)), FORWARD, hop(port).params()),))


def hops(compiled: Compile, encapsulation: Encapsulation) -> list[Hop]:
    """Return a packet at each hop from BFIR a over b to c, and then in a tunnel through d while b's port to c is down."""
    program = compiled(encapsulation=encapsulation)
    backup = Backup(hop(ROUND), 0b100, (address(2), address(3)))

    def bfr(number: int, entry: object, own: int) -> Bfr:
        bifts = {BIFT: ((entry,),)} if entry else {BIFT: ((),)}
        plan = SwitchPlan(number, address(number), bifts, {BIFT: own})  # type: ignore[arg-type]
        return Bfr(program, plan, domain=[LEFT])

    a = bfr(1, neighbour(RIGHT, 0b110), 0b001).send_channels({(None, GROUP): {BIFT: 0b100}})
    b = bfr(2, neighbour(RIGHT, 0b100, backup), 0b010).write(route(3, ROUND))
    d = bfr(4, neighbour(LEFT, 0b111), 0).write(route(3, RIGHT))
    c = bfr(3, neighbour(LEFT, 0b011), 0b100).receive_channels({(None, GROUP): [HOST]})
    found: list[Hop] = []

    def send(name: str, switch: Bfr, frame: bytes, port: int) -> bytes:
        ((_, sent),) = switch.send(frame, port)
        found.append(Hop(name, sent))
        return sent

    at_b = send("a", a, host_frame(payload(tos=0xB8)), HOST)
    send("c", c, send("b", b, at_b, LEFT), LEFT)
    b.down(RIGHT)
    send("c", c, send("d", d, send("b", b, at_b, LEFT), LEFT), LEFT)
    return found


def wireshark(frames: Sequence[bytes], directory: Path, fields: Sequence[str]) -> list[list[str]]:
    """Return the values of ``fields`` that tshark shows for each frame; skip the test if tshark is not installed."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    file = directory / "hops.pcap"
    write_pcap(str(file), [(number, frame) for number, frame in enumerate(frames)])
    arguments = [argument for name in fields for argument in ("-e", name)]
    command = [
        "tshark",
        "-X",
        f"lua_script:{DISSECTOR}",
        "-r",
        str(file),
        "-T",
        "fields",
        "-E",
        "separator=;",
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return [line.split(";") for line in done.stdout.splitlines()]


@pytest.mark.parametrize("encapsulation", ["ethernet", "mpls"])
def test_wireshark_reads_every_hop(compiled: Compile, tmp_path: Path, encapsulation: Encapsulation) -> None:
    found = hops(compiled, encapsulation)
    names = ["frame.protocols", "_ws.malformed", "_ws.expert.severity", "ip.len", "gre.proto", "ip.dst"]
    names += [f"rfc8296.{name}" for name in FIELDS] + ["rfc8296.bit_string", "mpls.label", "mpls.ttl", "mpls.bottom"]
    rows = wireshark([step.frame for step in found], tmp_path, names)
    said = [dict(zip(names, row, strict=True)) for row in rows]
    assert [row["_ws.malformed"] + row["_ws.expert.severity"] for row in said] == [""] * 6
    label = encapsulation == "mpls"
    # Wireshark does not list what it finds by a label; its fields are there all the same.
    bier = "mpls" if label else "rfc8296"
    plain, bare = f"eth:ethertype:{bier}:ip:udp:data", "eth:ethertype:ip:udp:data"
    carried = f"eth:ethertype:ip:gre:{bier}:ip:udp:data"
    assert [row["frame.protocols"] for row in said] == [plain, plain, bare, carried, carried, bare]
    for row, ttl in zip(said, (63, 62, None, 62, 62, None), strict=True):
        if ttl is not None:
            assert_header(row, ttl, label=label)
    for row, step in zip(said[3:5], found[3:5], strict=True):
        assert row["ip.len"].split(",")[0] == str(len(step.frame) - 14)
        assert row["gre.proto"] == ("0x8847" if label else "0xab37")
        assert row["ip.dst"].split(",") == [str(address(3)), str(GROUP)]


def assert_header(row: dict[str, str], ttl: int, *, label: bool) -> None:
    assert row["rfc8296.bit_string"] == f"{0b100:064x}"
    values = [row[f"rfc8296.{name}"] for name in ("nibble", "ver", "bsl", "oam", "rsv", "dscp", "proto", "bfir_id")]
    assert values == ["5" if label else "0", "0", "3", "0", "0", "46", "4", "1"]
    if label:
        assert (int(row["mpls.label"]), row["mpls.bottom"], row["mpls.ttl"]) == (BIFT.bift_id(BSL), "1", str(ttl))
    else:
        assert int(row["rfc8296.bift_id"], 16) == BIFT.bift_id(BSL)
        assert (row["rfc8296.s"], row["rfc8296.tc"], row["rfc8296.ttl"]) == ("1", "0", str(ttl))


def test_scapy_reads_what_this_module_writes() -> None:
    """Scapy's fixed fields agree. Its length does not: codes are one less than in RFC 8296, 2.1.2."""
    header = BierHeader(
        bift_id=0x30102,
        bit_string=0x8001,
        entropy=0xABCDE,
        dscp=46,
        bfir_id=513,
        ttl=17,
        oam=1,
        reserved=2,
        tc=5,
        nibble=5,
    )
    word = BIFT_LAYER(header.encode())
    assert (word.bsl, word.sd, word.set, word.cos, word.s, word.ttl) == (3, 1, 2, 5, 1, 17)
    layer = word[BIER]
    assert (layer.id, layer.version, layer.length, layer.entropy) == (5, 0, 3, 0xABCDE)
    assert (layer.OAM, layer.RSV, layer.DSCP, layer.Proto, layer.BFRID) == (1, 2, 46, 4, 513)
    assert int.from_bytes(layer.BitString, "big") == 0x8001
