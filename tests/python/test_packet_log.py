"""The log of a switch's packets: so many per second, the number of the others, and the same results as without it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast import _core
from holdfast.measurements import NodeCounters

SOURCE = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; }
struct headers { h_t h; }
struct metadata {}
parser P(packet_in p, out headers h, inout metadata m, inout standard_metadata_t s) {
    state start { p.extract(h.h); transition accept; }
}
control C(inout headers h, inout metadata m) { apply {} }
control I(inout headers h, inout metadata m, inout standard_metadata_t s) {
    register<bit<32>>(1) count;
    apply {
        bit<32> n;
        count.read(n, 0);
        count.write(0, n + 1);
        if (n % 3 == 2) { mark_to_drop(s); } else { s.egress_spec = 2; h.h.a = (bit<8>)n; }
    }
}
control E(inout headers h, inout metadata m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in headers h) { apply { p.emit(h.h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""
S = 10**12


def network(log: Path | None, most_per_s: int, dump_bytes: int = 0) -> tuple[NodeCounters, dict[str, int]]:
    """Run 50 packets in each of three seconds; return the counters of the switch, and its drops."""
    net = _core.Network()
    switch = net.add_switch("s", _core.Program.compile_text(SOURCE, "log.p4"))
    packet = b"\xee" + bytes(range(1, 64))
    net.add_packet_generator(switch="s", port=1, packet=packet, period_ms=20, count=150, start_ms=10)
    if log is not None:
        net.log_packets("s", log, most_per_s, dump_bytes=dump_bytes)
    net.run(4 * S)
    (counters,) = net.snapshot(NodeCounters, node="s")
    return counters, switch.drops()


def test_so_many_packets_per_second_are_shown_and_the_others_counted(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with_log = network(log, 4, dump_bytes=3)
    text = log.read_text()
    # The first packets of each second; the number of the others stands in front of the next second's first packet.
    assert re.findall(r"^(\d\d:\d\d:\d\d)\.\d{6} s$", text, re.M) == [
        f"00:00:0{second}" for second in range(3) for _ in range(4)
    ]
    assert re.findall(r"^(\d+) more packets in this second$", text, re.M) == ["46", "46", "46"]
    assert text.count("received 64 bytes at port 1") == 12
    assert text.count("dropped: ingress_drop") + text.count("sent 64 bytes at port 2") == 12
    assert text.count("bytes: ee0102...\n") == 12
    assert "bytes at port 2: 330102...\n" in text, "packet 51, the first of the second second that goes on"
    # A packet that is shown runs on the interpreter, with the same state.
    assert with_log == network(None, 0)
    assert with_log[1] == {"ingress_drop": 50}


def test_a_log_without_bounds_shows_all(tmp_path: Path) -> None:
    network(tmp_path / "log", 1000)
    text = (tmp_path / "log").read_text()
    assert text.count("received 64 bytes") == 150
    assert "more packets" not in text
    assert "bytes:" not in text


def test_a_second_log_and_a_place_that_is_none_are_refused(tmp_path: Path) -> None:
    net = _core.Network()
    net.add_switch("s", _core.Program.compile_text(SOURCE, "log.p4"))
    with pytest.raises(_core.HoldfastError, match="No such file"):
        net.log_packets("s", tmp_path / "absent" / "log", 1)
    with pytest.raises(_core.HoldfastError, match="t"):
        net.log_packets("t", tmp_path / "log", 1)
    net.log_packets("s", tmp_path / "log", 1)
    with pytest.raises(_core.HoldfastError, match="s has a log already"):
        net.log_packets("s", tmp_path / "other", 1)


def test_captures_have_a_side(tmp_path: Path) -> None:
    net = _core.Network()
    net.add_switch("s", _core.Program.compile_text(SOURCE, "log.p4"))
    net.capture("s", 1, tmp_path / "in.pcap", "in")
    net.capture("s", 1, tmp_path / "out.pcap", "out")
    net.capture("s", 1, tmp_path / "both.pcap")
    net.add_packet_generator(switch="s", port=1, packet=bytes(60), period_ms=20, count=9)
    net.run(S)
    assert [len(_core.read_pcap(tmp_path / f"{name}.pcap")) for name in ("in", "out", "both")] == [9, 0, 9]
    with pytest.raises(_core.HoldfastError, match="both, in or out"):
        net.capture("s", 1, tmp_path / "x.pcap", "left")  # type: ignore[arg-type]
