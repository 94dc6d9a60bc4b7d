"""The command line as a user meets it, wrong arguments included. Each command runs in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from holdfast_command import holdfast
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

APPS = Path(__file__).parents[2] / "python/holdfast/apps"
ROUTER = str(APPS / "router/router.p4")

ENTRIES = """
tables:
  RouterIngress.ipv4_lpm:
    - match: {hdr.ipv4.dst_addr: 10.0.2.0/24}
      action: RouterIngress.forward
      params: {port: 7, src_mac: "02:00:00:00:00:01", dst_mac: "02:00:00:00:00:02"}
"""


@pytest.fixture
def entries(tmp_path: Path) -> str:
    file = tmp_path / "entries.yaml"
    file.write_text(ENTRIES)
    return str(file)


def packet(dst: str = "10.0.2.1") -> bytes:
    return bytes(Ether(dst="02:00:00:00:00:09") / IP(dst=dst, ttl=9) / UDP(dport=53) / b"payload")


def test_compile_writes_both_files(tmp_path: Path) -> None:
    result = holdfast("compile", ROUTER, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "router.holdfast").stat().st_size > 1000
    assert 'name: "RouterIngress.ipv4_lpm"' in (tmp_path / "router.p4info.txtpb").read_text()


def test_compile_shows_where_the_error_is(tmp_path: Path) -> None:
    source = tmp_path / "wrong.p4"
    source.write_text("#include <core.p4>\n\nconst bit<8> x = y;\n")
    result = holdfast("compile", str(source), cwd=tmp_path)
    assert result.returncode == 1
    assert "wrong.p4:3:18" in result.stderr
    assert "^" in result.stderr
    assert not (tmp_path / "wrong.holdfast").exists()


def test_a_library_is_checked_and_cannot_run(tmp_path: Path) -> None:
    source = tmp_path / "library.p4"
    source.write_text("#include <core.p4>\ncontrol C(inout bit<8> x) { apply { x = x + 1; } }\n")
    result = holdfast("compile", str(source), cwd=tmp_path)
    assert result.returncode == 0
    assert "W1130" in result.stderr
    assert list(tmp_path.iterdir()) == [source]
    result = holdfast("trace", str(source), "--packet", "00")
    assert result.returncode == 1
    assert "nothing to run" in result.stderr


def test_trace_hexadecimal(entries: str) -> None:
    result = holdfast("trace", ROUTER, "--entries", entries, "--packet", packet().hex(), "--json")
    assert result.returncode == 0, result.stderr
    (trace,) = json.loads(result.stdout)
    assert "RouterIngress.ipv4_lpm" in json.dumps(trace)
    assert "RouterIngress.forward" in json.dumps(trace)
    text = holdfast("trace", ROUTER, "--entries", entries, "--packet", packet().hex())
    assert text.returncode == 0, text.stderr
    assert "ipv4_lpm" in text.stdout
    assert "egress_spec = " not in text.stdout
    more = holdfast("trace", ROUTER, "--entries", entries, "--packet", packet().hex(), "--assignments")
    assert "egress_spec = " in more.stdout


def test_trace_pcap(entries: str, tmp_path: Path) -> None:
    file = tmp_path / "two.pcap"
    wrpcap(str(file), [Ether(packet()), Ether(packet("192.0.2.1"))])
    result = holdfast("trace", ROUTER, "--entries", entries, "--packet", str(file), "--json")
    assert result.returncode == 0, result.stderr
    assert len(json.loads(result.stdout)) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compile", "absent.p4"], "no file 'absent.p4'"),
        (["trace", ROUTER, "--packet", "xyz"], "neither hexadecimal bytes nor a pcap file"),
        (["trace", ROUTER, "--packet", "00", "--entries", "absent.yaml"], "absent.yaml"),
        (["trace", ROUTER, "--packet", "00", "--port", "100000"], "port"),
        (["switch", ROUTER, "-i", "veth0"], "PORT@NAME"),
        (["switch", ROUTER, "--tls-key", "absent.pem"], "go together"),
        (["switch", ROUTER, "--tls-key", "absent.pem", "--tls-certificate", "absent.pem"], "absent.pem"),
        (["trace", ROUTER, "--packet", "00", "--port", "-1"], "--port"),
        (["topology", "ring:x"], "error: ring:x: write ring:SIZE[,"),
        (["reproduce", "gmpls_tcp_2001", "table3", "--out", "/dev/null"], "error: /dev/null"),
        (["compare", "ring:4", "--out", "/dev/null/x"], "error: /dev/null/x"),
        (["demo", "--out", "/dev/null/x"], "error: /dev/null/x"),
        (["demo", "--jitter-ms", "-1"], "jitter-ms"),
        (["demo", "--executor", "fpga"], "executor"),
        (["demo", "--seed", "-4"], "seed"),
        (["demo", "--jitter-ms", "1e300"], "jitter"),
        (["demo", "--out", ROUTER], f"{ROUTER}/runs: Not a directory"),
        (["trace", ROUTER, "--packet", "00", "--port", "-1"], "--port"),
        (["bench", "--size", "-1"], "--size"),
        (["topology", "ring:x"], "error: ring:x: write ring:SIZE"),
        (["topology", "ring:4,delay_ms=1e300"], "delay_ms"),
        (["compare", "ring:4", "--fail", "s1-s2", "--out", "/dev/null"], "/dev/null/runs: Not a directory"),
        (["reproduce", "gmpls_tcp_2001", "merge", "--out", "/dev/null"], "/dev/null/gmpls_tcp_2001"),
        (["switch", ROUTER, "--grpc", "127.0.0.1:999999"], "a port up to 65535"),
        (["switch", ROUTER, "--tls-key", ROUTER, "--tls-certificate", ROUTER], "no certificate and its key"),
        (["switch", ROUTER, "-i", "1@absent0"], "absent0"),
        (["port", "add", "absent0"], "port 'absent0': write PORT@NAME"),
    ],
)
def test_wrong_arguments_get_one_clear_message(arguments: list[str], message: str, tmp_path: Path) -> None:
    result = holdfast(*arguments, cwd=tmp_path)
    assert result.returncode not in (0, 130)
    assert message in result.stderr, result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_a_full_disk_is_one_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "holdfast", "topology", "ring:4"]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (1, "error: No space left on device\n")


def test_help_says_what_follows_from_something_else() -> None:
    for command, default in (("demo", "out/demo-live"), ("compare", "all there are"), ("reproduce", "as the paper")):
        assert default in " ".join(holdfast(command, "--help").stdout.split())


def test_a_topology_is_whole_in_a_file(tmp_path: Path) -> None:
    names = [f"Exchange_of_the_metropolitan_region_number_{i}" for i in (1, 2)]
    (tmp_path / "long.yaml").write_text(f"switches: [{', '.join(names)}]\nlinks: [{{a: {names[0]}, b: {names[1]}}}]\n")
    result = holdfast("topology", "long.yaml", cwd=tmp_path)
    assert f"{names[0]}-{names[1]} 1-1   1 Gb/s" in result.stdout


def test_wrong_entries_name_what_is_wrong(tmp_path: Path) -> None:
    for text, message in (
        ("tables: {nope: []}\nextra: 1\n", "extra"),
        (ENTRIES.replace("ipv4_lpm", "ipv4_lpn"), "ipv4_lpn"),
        (ENTRIES.replace("port: 7", "port: 700"), "port"),
        (ENTRIES.replace("port: 7, ", ""), "port"),
        ("tables: [", "entries.yaml:1: not YAML"),
        ("tables: 2001-13-45", "not YAML"),
        ("[" * 3000, "nested too deeply"),
        ("hello", "entries.yaml: a mapping of tables, "),
        ("tables: {t: [{action: 3}]}", "entries.yaml: tables.t.0.action: "),
    ):
        file = tmp_path / "entries.yaml"
        file.write_text(text)
        result = holdfast("trace", ROUTER, "--packet", "00", "--entries", str(file))
        if "nope" in text:
            assert result.returncode == 1
        assert message in result.stderr, result.stderr
        assert "Traceback" not in result.stderr
        assert result.stderr.count("\n") <= 2, result.stderr  # the second names the entry


def test_doctor() -> None:
    result = holdfast("doctor")
    assert result.returncode == 0, result.stderr
    assert "simulation" in result.stdout
    assert "AF_PACKET" in result.stdout


def test_bench_measures_what_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    result = holdfast(
        "bench", "--quick", "--program", "router_1k", "--size", "64", "--size", "128", "--json", str(file)
    )
    assert result.returncode == 0, result.stderr
    assert "router_1k" in result.stdout
    first, second = json.loads(file.read_text())
    assert (first["program"], first["size_bytes"], second["size_bytes"]) == ("router_1k", 64, 128)
    assert first["ratio"] == pytest.approx(first["packets_per_s"] / first["handwritten_packets_per_s"])
    assert first["packets_per_s"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--program", "router_2k"], "there is no benchmark 'router_2k'"),
        (["--tables", "--program", "exact_2m"], "there is no table 'exact_2m'"),
        (["--tables", "--size", "64"], "leave out --size"),
        (
            ["--quick", "--program", "router_1k", "--size", "64", "--json", "/dev/null/x"],
            "no directory for '/dev/null/x'",
        ),
    ],
)
def test_bench_says_what_is_wrong(arguments: list[str], message: str) -> None:
    result = holdfast("bench", *arguments)
    assert result.returncode == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_bench_measures_tables(tmp_path: Path) -> None:
    file = tmp_path / "tables.json"
    result = holdfast("bench", "--tables", "--quick", "--program", "lpm_32_1m", "--json", str(file))
    assert result.returncode == 0, result.stderr
    (measured,) = json.loads(file.read_text())
    assert (measured["table"], measured["entries"]) == ("lpm_32_1m", 10_000)
    assert measured["lookup_ns"] > 0
