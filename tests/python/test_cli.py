"""The command line as users see it, wrong arguments included."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from holdfast_command import COMMAND, holdfast, holdfast_process
from rich.console import Console
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import PcapNgWriter, wrpcap

from holdfast import _core, terminal
from holdfast.cli.programs import ENTRIES_EXAMPLE
from holdfast.cli.shared import MAX_PORT
from holdfast.cli.switches import COPIES_PER_S
from holdfast.live import switch as live_switch

APPS = Path(__file__).parents[2] / "python/holdfast/apps"
ROUTER = str(APPS / "router/router.p4")

OWN = ("--grpc", "127.0.0.1:0", "--device-id", str(os.getpid()))
"""Of a switch that gets in nobody's way: neither a port nor a name is taken on this machine."""

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


def test_the_version_is_printed_without_the_imports_of_the_command_line() -> None:
    ask = "import sys; from holdfast.__main__ import main; main(); assert not {'typer', 'rich'} & {*sys.modules}"
    asked = subprocess.run([sys.executable, "-c", ask, "--version"], capture_output=True, text=True)
    assert (asked.returncode, asked.stderr) == (0, "")
    assert asked.stdout == holdfast("--version").stdout


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


def test_compile_tells_a_device_from_no_file(tmp_path: Path) -> None:
    assert "'/dev/null' is not a regular file" in holdfast("compile", "/dev/null", cwd=tmp_path).stderr
    assert "there is no file 'none.p4'" in holdfast("compile", "none.p4", cwd=tmp_path).stderr


def test_compile_check_names_what_is_read_and_the_way_there(tmp_path: Path) -> None:
    clean = holdfast("compile", "--check", ROUTER, cwd=tmp_path)
    assert (clean.returncode, clean.stdout, clean.stderr) == (0, "", "")
    text = Path(ROUTER).read_text()
    guard = "} else if (hdr.ipv6.isValid()) {"
    assert guard in text
    source = tmp_path / "unguarded.p4"
    source.write_text(text.replace(guard, "} else if (true) {").replace('#include "../', f'#include "{APPS}/'))
    result = holdfast("compile", "--check", str(source), cwd=tmp_path)
    assert result.returncode == 1
    assert "warning[W1180]: `hdr.ipv6." in result.stderr
    assert "the parser goes through start" in result.stderr
    result = holdfast("compile", "--check", "--json", str(source), cwd=tmp_path)
    assert result.returncode == 1
    assert {json.loads(line)["code"] for line in result.stdout.splitlines()} == {"W1180"}
    assert list(tmp_path.iterdir()) == [source], "a check writes nothing"
    assert holdfast("compile", "--check", "-o", "x", ROUTER, cwd=tmp_path).returncode != 0
    assert holdfast("compile", "--json", "--emit-ir", ROUTER, cwd=tmp_path).returncode != 0


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


def test_trace_with_the_entries_of_the_help(tmp_path: Path) -> None:
    assert ENTRIES_EXAMPLE in " ".join(holdfast("trace", "--help").stdout.replace("│", " ").split())
    (tmp_path / "entries.yaml").write_text(ENTRIES_EXAMPLE)
    text = holdfast("trace", ROUTER, "--entries", "entries.yaml", "--packet", packet().hex(), cwd=tmp_path).stdout
    assert "RouterIngress.drop" in text


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


def test_trace_pcapng(entries: str, tmp_path: Path) -> None:
    # Named as anybody names it: the first bytes say what it is.
    file = tmp_path / "capture"
    with PcapNgWriter(str(file)) as writer:
        writer.write(Ether(packet()))
        writer.write(Ether(packet("192.0.2.1")))
    result = holdfast("trace", ROUTER, "--entries", entries, "--packet", str(file), "--json")
    assert result.returncode == 0, result.stderr
    forwarded, dropped = json.loads(result.stdout)
    assert "RouterIngress.forward" in json.dumps(forwarded)
    assert "RouterIngress.forward" not in json.dumps(dropped)


def test_captures_that_cannot_be_read_are_one_sentence(tmp_path: Path) -> None:
    with PcapNgWriter(str(tmp_path / "whole.pcapng")) as writer:
        writer.write(Ether(packet()))
    whole = (tmp_path / "whole.pcapng").read_bytes()
    # Link type 113 in the interface description, which is the second block.
    second = int.from_bytes(whole[4:8], "little") + 8
    os.mkfifo(tmp_path / "fifo.pcap")
    (tmp_path / "folder.pcap").mkdir()
    for name, content, message in (
        ("cut.pcapng", whole[:-3], "the file ends inside a record"),
        ("cooked.pcapng", whole[:second] + b"\x71" + whole[second + 1 :], "link type 113 is not Ethernet"),
        ("broken.pcapng", whole[:8] + bytes(4) + whole[12:], "a record contradicts itself"),
        ("empty.pcap", b"", "not a pcap or pcapng file"),
        ("text.pcap", b"no capture at all" * 9, "not a pcap or pcapng file"),
        ("program", b"no capture at all" * 9, "not a pcap or pcapng file"),
        ("absent.pcapng", None, "No such file or directory"),
        ("fifo.pcap", None, "this is not a regular file"),
        ("folder.pcap", None, "this is not a regular file"),
    ):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        result = holdfast("trace", ROUTER, "--packet", name, cwd=tmp_path)
        assert result.returncode == 1
        assert result.stderr == f"error: {name}: {message}" + result.stderr.partition(message)[2]
        assert result.stderr.count("\n") == 1
    result = holdfast("trace", ROUTER, "--packet", "/dev/zero")
    assert (result.returncode, result.stderr) == (1, "error: /dev/zero: this is not a regular file\n")


def test_a_compiled_program_is_a_program(entries: str, tmp_path: Path) -> None:
    assert holdfast("compile", ROUTER, "-o", "x.holdfast", "--p4info", "x.p4info.txtpb", cwd=tmp_path).returncode == 0
    arguments = ("--entries", entries, "--packet", packet().hex())
    traced = holdfast("trace", "x.holdfast", *arguments, cwd=tmp_path)
    assert traced.returncode == 0, traced.stderr
    assert traced.stdout == holdfast("trace", ROUTER, *arguments).stdout
    (tmp_path / "x.p4info.txtpb").rename(tmp_path / "other.txtpb")
    assert holdfast("trace", "x.holdfast", *arguments, "--p4info", "other.txtpb", cwd=tmp_path).stdout == traced.stdout
    # Without entries there is nothing that needs P4Info.
    assert "ipv4_lpm" in holdfast("trace", "x.holdfast", "--packet", packet().hex(), cwd=tmp_path).stdout
    artifact = (tmp_path / "x.holdfast").read_bytes()
    # The compiler writes P4Info into the program, too; what has none needs the file.
    assert holdfast("trace", "x.holdfast", *arguments, cwd=tmp_path).stdout == traced.stdout
    (tmp_path / "x.holdfast").write_bytes(artifact[: artifact.rindex(b"; p4info")])
    (tmp_path / "cut.holdfast").write_bytes(artifact[: len(artifact) // 2])
    (tmp_path / "binary.txtpb").write_bytes(b"\xff\xfe")
    for wrong, message in (
        (["compile", "x.holdfast"], "'x.holdfast' is compiled already: compile takes source"),
        (
            ["switch", "x.holdfast"],
            "there is no P4Info 'x.p4info.txtpb' of the compiled program: give it with --p4info",
        ),
        (["trace", "x.holdfast", *arguments], "there is no P4Info 'x.p4info.txtpb'"),
        (["switch", "x.holdfast", "--p4info", "absent.txtpb"], "there is no P4Info 'absent.txtpb'"),
        (
            ["switch", "x.holdfast", "--p4info", "binary.txtpb"],
            "'binary.txtpb' is not a P4Info in protobuf text format",
        ),
        (["switch", "x.holdfast", "--p4info", "other.txtpb", "-D", "A=1"], "-D and -I belong to source"),
        (["trace", "cut.holdfast", "--packet", "00"], "error: cut.holdfast: not a compiled program: "),
        (["trace", ROUTER, "--packet", "00", "--p4info", "other.txtpb"], "--p4info belongs to a compiled program"),
        (["stf", "x.holdfast"], "'x.holdfast' is not a script: give NAME.stf"),
        (["bench", "-p", "x.holdfast"], "there is no benchmark 'x.holdfast'"),
    ):
        result = holdfast(*wrong, cwd=tmp_path)
        assert result.returncode == 1
        assert message in result.stderr, result.stderr
        assert result.stderr.count("\n") == 1, result.stderr


def outcome_of_interrupt(arguments: list[str], imports: int, cwd: Path) -> tuple[int | None, str]:
    """Return exit status and error output of a command that is interrupted after ``imports`` imports of modules."""
    command = [sys.executable, "-X", "importtime", *COMMAND[1:], *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=cwd)
    assert process.stderr is not None
    said = []
    begun = False
    for line in process.stderr:
        # The interpreter writes a line about an import in pieces, so that others may begin inside it.
        said.append(line)
        if begun and (imports := imports - 1) == 0:
            process.send_signal(signal.SIGINT)
        begun = begun or line.rstrip().endswith("holdfast.interrupts")
    return process.wait(timeout=60), "".join(said)


@pytest.mark.parametrize(
    "arguments",
    [
        ["topology", "ring:4"],
        ["trace", ROUTER, "--packet", "00"],
        ["switch", ROUTER, "-i", "1@absent0", *OWN],
        ["compare", "ring:4", "--fail", "s1-s2", "--jobs", "1"],
    ],
)
def test_an_interrupt_is_no_traceback_from_the_first_import_on(arguments: list[str], tmp_path: Path) -> None:
    interrupted = 0
    for imports in (1, 10, 100, 300, 500, 700, 900, 1100):
        status, said = outcome_of_interrupt(arguments, imports, tmp_path)
        assert "Traceback" not in said, said
        if status == 130:
            interrupted += 1
            assert said.count("interrupted\n") == 1, said
        elif status == -signal.SIGINT:
            # The very end of the process, where the interpreter has given the signal back to the kernel.
            assert imports >= 500, said
        elif arguments[0] == "switch":
            assert status == 1  # there is no such interface
        else:
            assert status == 0, said
    assert interrupted >= 3


def test_an_interrupt_that_is_ignored_stays_so(tmp_path: Path) -> None:
    # As for a command in the background of a script.
    script = 'trap "" INT; "$@" & wait'
    command = ["sh", "-c", script, "sh", sys.executable, "-X", "importtime", *COMMAND[1:], "topology", "ring:4"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0)
    assert process.stderr is not None
    for line in process.stderr:
        if line.rstrip().endswith("rich.console"):
            os.killpg(process.pid, signal.SIGINT)
    assert process.stdout is not None
    assert "4 switches" in process.stdout.read()
    assert process.wait(timeout=60) == 0


@pytest.mark.parametrize(
    "arguments",
    [["topology", "fat-tree:8"], ["topology", "fat-tree:8", "--yaml"], ["trace", ROUTER, "--packet", "00" * 60]],
)
def test_a_reader_that_has_seen_enough_is_no_error(arguments: list[str]) -> None:
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=60) not in (0, 130)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compile", "absent.p4"], "no file 'absent.p4'"),
        (["compile", str(APPS)], f"{str(APPS)!r} is a directory"),
        (["compile", sys.executable], "is not P4 source: it contains bytes that are not text"),
        (["compile", ROUTER, "-I", "absent"], "-I: there is no directory 'absent'"),
        (["topology", "waxman:100000000"], "size is 100000000; it must be at most 10000"),
        (["trace", ROUTER, "--packet", "xyz"], "neither hexadecimal bytes nor a capture file"),
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
        (["demo", "--jitter-ms", "1e300"], "Jitter: high_ms"),
        (["demo", "--out", ROUTER], f"{ROUTER}/runs: Not a directory"),
        (["trace", ROUTER, "--packet", "00", "--port", "-1"], "--port"),
        (["bench", "--size", "-1"], "--size"),
        (["topology", "ring:x"], "error: ring:x: write ring:SIZE"),
        (["topology", "ring:4,delay_ms=1e300"], "delay_ms"),
        (["compare", "ring:4", "--fail", "s1-s2", "--out", "/dev/null"], "/dev/null/runs: Not a directory"),
        (["reproduce", "gmpls_tcp_2001", "merge", "--out", "/dev/null"], "/dev/null/gmpls_tcp_2001"),
        (["switch", ROUTER, "--grpc", "127.0.0.1:999999"], "a port up to 65535"),
        (["switch", ROUTER, "--tls-key", ROUTER, "--tls-certificate", ROUTER], "no certificate and its key"),
        (["switch", ROUTER, "-i", "1@absent0", *OWN], "absent0"),
        (
            ["switch", ROUTER, "--grpc", "0.0.0.0:0"],
            "--tls-client-ca, or allow that with --insecure",
        ),
        (["compare", "ring:4", "--seeds", "100000000000"], "'--seeds': Input should be less than or equal to 100000 "),
        (["compare", "ring:4", "--jobs", "1025"], "'--jobs': Input should be less than or equal to 1024 "),
        (
            ["reproduce", "gmpls_tcp_2001", "--seeds", "100001"],
            "'--seeds': Input should be less than or equal to 100000 ",
        ),
        (
            ["reproduce", "gmpls_tcp_2001", "--jobs", "100000000000"],
            "'--jobs': Input should be less than or equal to 1024 ",
        ),
        (
            ["reproduce", "gmpls_tcp_2001", "--first-seed", str(1 << 64)],
            "'--first-seed': Input should be less than or equal to",
        ),
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
        command = [*COMMAND, "topology", "ring:4"]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (1, "error: No space left on device\n")


def test_help_says_what_follows_from_something_else() -> None:
    for command, default in (
        ("demo", "out/demo-live"),
        ("compare", "all by default"),
        ("reproduce", "as in the paper"),
    ):
        assert default in " ".join(holdfast(command, "--help").stdout.replace("│", " ").split())


def test_a_topology_is_whole_in_a_file(tmp_path: Path) -> None:
    names = [f"Exchange_of_the_metropolitan_region_number_{i}" for i in (1, 2)]
    (tmp_path / "long.yaml").write_text(f"switches: [{', '.join(names)}]\nlinks: [{{a: {names[0]}, b: {names[1]}}}]\n")
    result = holdfast("topology", "long.yaml", cwd=tmp_path)
    assert f"{names[0]}-{names[1]} 1-1   1 Gb/s" in result.stdout


def test_a_pipe_is_no_p4info(tmp_path: Path) -> None:
    assert holdfast("compile", ROUTER, cwd=tmp_path).returncode == 0
    os.mkfifo(tmp_path / "pipe")
    result = holdfast("trace", "router.holdfast", "--p4info", "pipe", "--packet", "00", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (1, "error: pipe: this is not a regular file\n")


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
        ("tables: {t: [{action: 3}]}", "entries.yaml:1: tables.t.0.action: "),
    ):
        file = tmp_path / "entries.yaml"
        file.write_text(text)
        result = holdfast("trace", ROUTER, "--packet", "00", "--entries", str(file))
        if "nope" in text:
            assert result.returncode == 1
        assert message in result.stderr, result.stderr
        assert "Traceback" not in result.stderr
        assert result.stderr.count("\n") <= 2, result.stderr  # the second names the entry


@pytest.mark.parametrize(
    "arguments",
    [["compile", ROUTER], ["schema", "topology"], ["firewall", "check", "rules.yaml"], ["stf", "empty", "--all"]],
)
def test_a_command_needs_nothing_that_another_has_imported(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    (tmp_path / "empty").mkdir()
    here, there = holdfast(*arguments, cwd=tmp_path), holdfast_process(*arguments, cwd=tmp_path)
    assert (there.returncode, there.stdout, there.stderr) == (here.returncode, here.stdout, here.stderr)


def test_doctor() -> None:
    result = holdfast_process("doctor")
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


TITLE = "\x1b]0;title\x07\x1b[31m\x9b1m"
"""Sets a terminal's title, then its colour, twice."""


def test_no_text_of_a_file_reaches_the_terminal_as_a_command(tmp_path: Path) -> None:
    topology = {"name": f"x{TITLE}", "hosts": ["h1"], "switches": ["s1"], "links": [{"a": "h1", "b": "s1"}]}
    (tmp_path / "title.yaml").write_text(json.dumps(topology))
    (tmp_path / "entries.yaml").write_text(json.dumps({"tables": {f"t{TITLE}": []}}))
    program = Path(ROUTER)
    artifact = tmp_path / "r.holdfast"
    assert holdfast("compile", str(program), "-o", str(artifact), cwd=tmp_path).returncode == 0
    text = artifact.read_text()
    artifact.write_text(re.sub(r'file 0 "[^"]*"', lambda found: f'{found.group(0)[:-1]}{TITLE}"', text, count=1))
    for arguments in (
        ["topology", "title.yaml"],
        ["topology", f"ring:{TITLE}"],
        ["trace", str(program), "--entries", "entries.yaml", "--packet", "00"],
        ["trace", str(artifact), "--packet", "00" * 60],
        ["trace", str(program), "--packet", f"{TITLE}.pcap"],
    ):
        result = holdfast(*arguments, cwd=tmp_path)
        shown = result.stdout + result.stderr
        assert shown
        assert "Traceback" not in shown
        assert not set(shown) & {"\x1b", "\x07", "\x9b"}, (arguments, shown)


def test_a_console_keeps_colours_and_replaces_commands() -> None:
    stream = io.StringIO()
    console = terminal.Console(file=stream, force_terminal=True, color_system="standard")
    console.print(f"[red]a{TITLE}[/]", highlight=False)
    assert stream.getvalue().startswith("\x1b[31ma\ufffd]0;title")
    assert "\x1b]0" not in stream.getvalue()


def test_numbers_that_the_command_line_repeats_are_those_of_the_modules() -> None:
    assert MAX_PORT == live_switch.MAX_PORT
    assert COPIES_PER_S == _core.COPIES_PER_S


def test_a_switch_says_what_controllers_lost() -> None:
    class Live:
        switch = SimpleNamespace(digests_lost=lambda: 3)
        device = SimpleNamespace(short_packet_ins=0)

    text = io.StringIO()
    live_switch._print_losses(Live, SimpleNamespace(notifications_dropped=2), Console(file=text, width=120))  # type: ignore[arg-type]
    assert text.getvalue().splitlines() == [
        "digest messages lost, too many waited: 3",
        "notifications dropped, clients read too slowly: 2",
    ]


RULES = """
zones: {inside: , outside: }
rules:
  - {name: web, action: allow, from: inside, protocol: tcp, destination_ports: [80, 443]}
  - {name: rest, action: deny, from: inside, protocol: tcp}
"""


def test_firewall_check_finds_rules_that_never_decide(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(RULES)
    result = holdfast("firewall", "check", str(file))
    assert (result.returncode, result.stdout) == (0, f"{file}: 2 rules, 2 zones, 0 bindings; nothing to report\n")
    file.write_text(RULES + "  - {name: late, action: allow, from: inside, protocol: tcp, destination_ports: 22}\n")
    result = holdfast("firewall", "check", str(file))
    sentence = "rule 'late' is shadowed: it never decides, because of 'rest'"
    assert (result.returncode, result.stdout) == (1, f"{file}:6: {sentence}\n")
    [finding] = json.loads(holdfast("firewall", "check", "--json", str(file)).stdout)
    assert (finding["line"], finding["kind"], finding["sentence"]) == (6, "shadowed", sentence)
    file.write_text(RULES + "  - {name: web, action: allow}\n")
    result = holdfast("firewall", "check", str(file))
    assert (result.returncode, result.stderr) == (1, f"error: {file}:6: rules.2.name: there is another rule 'web'\n")


def test_firewall_show_lists_rules_and_counters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.apps.firewall.program import compile_firewall
    from holdfast.apps.firewall.rules import read
    from holdfast.apps.firewall.writer import FirewallWriter
    from holdfast.p4runtime.client import GrpcClient
    from holdfast.p4runtime.device import Device
    from holdfast.p4runtime.server import Server

    file = tmp_path / "rules.yaml"
    file.write_text(RULES)
    monkeypatch.setenv("COLUMNS", "160")
    result = holdfast("firewall", "show", str(file))
    assert result.returncode == 0 and re.search(r"web .*allow .*inside .*any .*tcp .*80, 443", result.stdout)
    program = compile_firewall("bridged", {"WAY_BITS": "4"})
    device = Device(1, _core.Switch(program))
    with Server([device], "127.0.0.1:0") as server, GrpcClient(server.address) as client:
        client.set_pipeline(program)
        rules = read(file).value
        FirewallWriter(client, b"secret").replace(rules, [], [])
        device.switch.process(1, bytes(60))
        result = holdfast("firewall", "show", str(file), "--grpc", server.address)
        assert client.is_primary, "a reader takes nothing from the controller"
    assert result.returncode == 0, result.stderr
    assert re.search(r"unknown_port\W+1\W+60", result.stdout)
