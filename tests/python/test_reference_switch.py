"""Our applications are legal for the reference compiler, and the reference switch forwards the same packets.

The reference compiler and switch are not ours and not in this repository: ``HOLDFAST_P4C`` names ``p4c-bm2-ss``,
``HOLDFAST_SIMPLE_SWITCH`` the switch and ``HOLDFAST_SIMPLE_SWITCH_CLI`` its command line. Without them these tests skip. The
histories come from ``crates/conformance`` (the example ``scripts``), which also says what the interpreter sends;
``HOLDFAST_REFERENCE_HISTORIES`` is how many each application has (5).
"""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from scapy.utils import RawPcapReader, RawPcapWriter

ROOT = Path(__file__).resolve().parents[2]
PORTS = (0, 1, 2, 3, 7, 510)
"""The ports of the histories; 510 is the controller's."""
REPORT = re.compile(r"^(.{24}0800.{56}2040)....")
"""A telemetry report over UDP and IPv4: its sequence number says in which order the switch's threads made the reports."""
LAST_WORD = re.compile(r"\*\*00000000|00000000(?=45)")
"""In a report, behind the times or in front of the packet: the bytes that its port has sent lately."""
START_TIMEOUT_S = 60
QUIET_S = 0.5
"""A switch that has sent nothing for so long has handled all packets."""

Frames = dict[int, list[bytes]]
Patterns = dict[int, list[str]]
"""Packets in hexadecimal, with ``**`` for bytes that depend on the time."""


def tool(variable: str) -> list[str]:
    """Return the command in an environment variable; skip the test if the variable is not set."""
    if not (command := os.environ.get(variable)):
        pytest.skip(f"{variable} names no command of the reference compiler or switch")
    return shlex.split(command)


class Script:
    """Commands, packets and what they make the interpreter send, as the example writes them."""

    def __init__(self, text: str) -> None:
        self.commands: list[str] = []
        self.packets: list[tuple[int, bytes]] = []
        self.expected: Patterns = {port: [] for port in PORTS}
        for line in text.splitlines():
            match line.split(" "):
                case ["packet", port, data]:
                    self.packets.append((int(port), bytes.fromhex(data)))
                case ["expect", port, data]:
                    self.expected[int(port)].append(data)
                case _:
                    self.commands.append(line)


@pytest.fixture(scope="session")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the test histories of all applications."""
    tool("HOLDFAST_P4C")
    directory = tmp_path_factory.mktemp("scripts")
    count = os.environ.get("HOLDFAST_REFERENCE_HISTORIES", "5")
    build = ["cargo", "run", "--quiet", "--release", "--config", "tests/profile.toml", "-p", "holdfast-conformance"]
    subprocess.run([*build, "--example", "scripts", "--", str(directory), count], cwd=ROOT, check=True)
    return directory


def test_the_reference_compiler_takes_every_application(scripts: Path, tmp_path: Path) -> None:
    refused = {}
    applications = sorted(scripts.iterdir())
    assert len(applications) >= 14
    for application in applications:
        run = compiled(application, tmp_path)
        if run.returncode != 0 or "error:" in run.stderr:
            refused[application.name] = run.stderr
    assert not refused, "\n".join(f"{name}:\n{why}" for name, why in refused.items())


def test_the_reference_switch_forwards_the_same_packets(scripts: Path, tmp_path: Path) -> None:
    switch, cli = tool("HOLDFAST_SIMPLE_SWITCH"), tool("HOLDFAST_SIMPLE_SWITCH_CLI")
    compared, differing = 0, []
    for application in sorted(scripts.iterdir()):
        compiled(application, tmp_path).check_returncode()
        sent = 0
        for path in sorted(application.glob("*.txt")):
            script = Script(path.read_text())
            folder = tmp_path / application.name / path.stem
            folder.mkdir(parents=True)
            frames = forwarded(script, json_of(application, tmp_path), folder, switch, cli)
            sent += sum(map(len, script.expected.values()))
            differing += differences(f"{application.name}/{path.name}", script.expected, frames)
        print(f"{application.name}: {sent} packets")
        compared += sent
    assert compared > 100
    assert not differing, f"{len(differing)} ports of {compared} packets:\n" + "\n".join(differing)


def json_of(application: Path, directory: Path) -> Path:
    return directory / f"{application.name}.json"


def compiled(application: Path, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run the reference compiler on an application's program with its definitions, and return the finished process."""
    path, *defines = (application / "program").read_text().splitlines()
    # The reference compiler hands its options to a shell.
    options = [f"-D{name}={shlex.quote(value)}" for name, value in (d.split("=", 1) for d in defines)]
    command = [*tool("HOLDFAST_P4C"), *options, "-o", str(json_of(application, directory)), str(ROOT / path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def differences(name: str, expected: Patterns, frames: Frames) -> list[str]:
    """Return a line for each port at which other packets leave than expected; their order does not matter."""
    found = []
    for port in PORTS:
        only_ours, only_theirs = [], [frame.hex() for frame in frames[port]]
        for pattern in expected[port]:
            match = fitting_frames(pattern)
            fitting = next((frame for frame in only_theirs if match.fullmatch(frame)), None)
            if fitting is None:
                only_ours.append(pattern)
            else:
                only_theirs.remove(fitting)
        if only_ours or only_theirs:
            found.append(f"{name}, port {port}:\n  ours {only_ours}\n  theirs {only_theirs}")
    return found


def fitting_frames(pattern: str) -> re.Pattern[str]:
    """Return a regular expression that matches the hexadecimal frames that fit a pattern."""
    if REPORT.match(pattern):
        pattern = LAST_WORD.sub(lambda word: "*" * len(word[0]), REPORT.sub(r"\1****", pattern))
    return re.compile(pattern.replace("**", ".."))


def forwarded(script: Script, program: Path, folder: Path, switch: Sequence[str], cli: Sequence[str]) -> Frames:
    """Return the frames that the reference switch sends, by port."""
    for port in PORTS:
        os.mkfifo(folder / f"p{port}_in.pcap")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        thrift = str(probe.getsockname()[1])
    interfaces = [word for port in PORTS for word in ("-i", f"{port}@p{port}")]
    options = ["--use-files", "0", "--thrift-port", thrift]
    log = folder / "switch.log"
    with log.open("w") as output:
        command = [*switch, *options, *interfaces, str(program)]
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
    try:
        with opened([folder / f"p{port}_in.pcap" for port in PORTS]) as writers:
            wait_for_port(int(thrift), process)
            text = "\n".join(script.commands) + "\n"
            command = [*cli, "--thrift-port", thrift]
            run = subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=folder)
            errors = [line for line in run.stdout.splitlines() if "Error" in line or "Invalid" in line]
            assert not errors, f"{folder}: {errors}"
            for number, (port, packet) in enumerate(script.packets):
                writers[PORTS.index(port)].write_packet(packet, sec=0, usec=number)
        return settled(folder, sum(map(len, script.expected.values())))
    finally:
        process.terminate()
        process.wait()


@contextmanager
def opened(paths: Sequence[Path]) -> Iterator[list[RawPcapWriter]]:
    """Open the named pipes that the switch reads.

    They are opened for reading, too, so that opening does not wait for the switch.
    """
    writers = []
    try:
        for path in paths:
            file = os.fdopen(os.open(path, os.O_RDWR), "wb", buffering=0)
            writer = RawPcapWriter(file, linktype=1)
            writer.write_header(b"")
            writers.append(writer)
        yield writers
    finally:
        for writer in writers:
            writer.close()


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < end:
        assert process.poll() is None, "the reference switch ended"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise TimeoutError("the reference switch does not start")


def settled(folder: Path, expected: int) -> Frames:
    """Return the packets that the switch has written, by port, once it writes no more."""
    frames: Frames = {}
    last, count, end = time.monotonic(), -1, time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < min(end, last + QUIET_S * (1 if count >= expected else 4)):
        frames = {port: read(folder / f"p{port}_out.pcap") for port in PORTS}
        now = sum(map(len, frames.values()))
        if now != count:
            last, count = time.monotonic(), now
        time.sleep(0.05)
    return frames


def read(path: Path) -> list[bytes]:
    """Return the packets in a capture file that may still grow."""
    if not path.exists() or path.stat().st_size < 24:
        return []
    with RawPcapReader(str(path)) as reader:
        return [packet for packet, _ in reader]
