"""``holdfast bng`` on veth pairs: the README's subscriber, FreeRADIUS, many sessions, and what survives which death."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast import _core
from holdfast.subscribers import service
from holdfast.subscribers.tests import freeradius

ROOT = Path(__file__).parents[2]
README = ROOT / "python/holdfast/apps/bng/README.md"
COMMAND = (sys.executable, "-m", "holdfast")
NAME = f"live-{os.getpid()}"
ENVIRONMENT = os.environ | {"COLUMNS": "200", "PYTHONUNBUFFERED": "1"}
USERS = """
alice Cleartext-Password := "secret"
    WISPr-Bandwidth-Max-Up = 100000000,
    WISPr-Bandwidth-Max-Down = 100000000

crowd Cleartext-Password := "crowded"
"""


def until(condition: Callable[[], Any], what: str, timeout_s: float = 60.0) -> Any:
    end_s = time.monotonic() + timeout_s
    while time.monotonic() < end_s:
        if found := condition():
            return found
        time.sleep(0.1)
    pytest.fail(f"after {timeout_s} s: {what}")


def test_the_readmes_ten_lines_bring_a_subscriber_online(tmp_path: Path) -> None:
    section = README.read_text().partition("## A subscriber online")[2]
    found = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert found is not None
    script = found[1]
    assert len(script.splitlines()) == 10
    (tmp_path / "holdfast").write_text(f'#!/bin/sh\nexec {sys.executable} -m holdfast "$@"\n')
    (tmp_path / "holdfast").chmod(0o755)
    # The README's names may be somebody's: then this machine is no place for it.
    if any(Path("/run/netns", each).exists() for each in ("home", "core")) or Path("/sys/class/net/access0").exists():
        pytest.skip("the README's names are taken on this machine")
    environment = ENVIRONMENT | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    shell = subprocess.Popen(
        ["bash", "-e", "-c", script], cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True,
    )  # fmt: skip
    try:
        assert shell.stdout is not None
        lines: list[str] = []
        for line in shell.stdout:
            lines.append(line)
            if "alice" in line and "network" in line:
                break
        said = "".join(lines)
        assert "alice is online" in said, said
        assert " 0% packet loss" in said, said
    finally:
        os.killpg(shell.pid, signal.SIGTERM)
        shell.wait(20)
        for each in ("home", "core"):
            subprocess.run(["ip", "netns", "del", each], check=False, capture_output=True)
        for each in ("access0", "core0"):
            subprocess.run(["ip", "link", "del", each], check=False, capture_output=True)


def free_tcp_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Site:
    """A home network, a core, a switch and a control plane between them, and FreeRADIUS."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self.directory = directory
        self.stack = stack
        self.home = stack.enter_context(_core.Namespace("home"))
        self.core = stack.enter_context(_core.Namespace("core"))
        access = self.home.add_veth("eth0")
        core = self.core.add_veth("eth0", mac=bytes.fromhex("060000000009"))
        self.core.add_address("eth0", "192.0.2.9/24")
        self.core.add_route("100.64.0.0/16", "eth0", via="192.0.2.1")
        self.core.add_address("eth0", "2001:db8:ffff::9/64")
        self.core.add_route("2001:db8::/32", "eth0", via="2001:db8:ffff::1")
        self.radius = freeradius.FreeRadius(directory / "radius", USERS)
        self.radius.start()
        stack.callback(self.radius.kill)
        self.coa_port = freeradius.free_port()
        self.configuration = directory / "gateway.yaml"
        loose = {"per_s": 100_000, "burst": 100_000}
        self.configuration.write_text(
            yaml.safe_dump(
                {
                    "switch": {
                        "grpc": f"127.0.0.1:{free_tcp_port()}",
                        "device_id": os.getpid(),
                        "interfaces": {1: access, 9: core},
                    },
                    "access": [1],
                    "core": [{"port": 9, "mac": "02:00:00:00:00:09", "addresses": ["192.0.2.1", "2001:db8:ffff::1"]}],
                    "routes": [
                        {"prefix": "0.0.0.0/0", "port": 9, "next_hop_mac": "06:00:00:00:00:09"},
                        {"prefix": "::/0", "port": 9, "next_hop_mac": "06:00:00:00:00:09"},
                    ],
                    "control": dict.fromkeys(("padi", "discovery", "ppp", "committed"), loose),
                    "gateway": {
                        "name": NAME,
                        "mac": "02:00:00:00:00:0a",
                        "address": "100.64.0.1",
                        "pools": {"default": "100.64.0.0/16"},
                        "dns": ["192.0.2.53", "192.0.2.54"],
                        "ipv6": {"prefixes": "2001:db8:1::/48", "delegated": "2001:db8:8000::/34"},
                        "state": str(directory / "state.db"),
                        "radius": self.radius.settings(
                            dynamic_authorization={"port": self.coa_port, "clients": {"127.0.0.1": freeradius.SECRET}}
                        ),
                    },
                }
            )
        )
        self.switch_pid: int | None = None
        self.process: subprocess.Popen[str] | None = None
        stack.callback(self.close)

    def start(self) -> str:
        """Starts the control plane; what it says of earlier sessions."""
        self.process = subprocess.Popen(
            [*COMMAND, "bng", "run", str(self.configuration), "--keep-switch"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT,
        )  # fmt: skip
        assert self.process.stdout is not None
        said = ""
        for line in self.process.stdout:
            said += line
            if found := re.search(r"started, process (\d+)", line):
                self.switch_pid = int(found[1])
            if line.startswith("ready"):
                return said
        pytest.fail(said)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)
        if self.switch_pid is not None:
            os.kill(self.switch_pid, signal.SIGTERM)

    def sessions(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = service.ask(NAME, verb="sessions", usage=True)["sessions"]
        return rows

    def dial(self) -> subprocess.Popen[str]:
        words = [*COMMAND, "bng", "dial", "eth0", "--user", "alice", "--password", "secret", "--redial-s", "1"]
        process = subprocess.Popen(
            [*self.home.exec_prefix, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=ENVIRONMENT,
        )
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "alice is online" in line, line
        return process

    def crowd(self, number: int, rate: float, patience_s: float = 60.0) -> subprocess.Popen[str]:
        words = [
            sys.executable,
            "-m",
            "holdfast.subscribers.tests.crowd",
            "eth0",
            "--user",
            "crowd",
            "--password",
            "crowded",
        ]
        words += ["--redial-s", "1", "--number", str(number), "--rate", str(rate), "--patience-s", str(patience_s)]
        process = subprocess.Popen(
            [*self.home.exec_prefix, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
        )
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    if reason := freeradius.missing():
        pytest.skip(reason)
    with ExitStack() as stack:
        yield Site(tmp_path, stack)


def hear(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    found: dict[str, Any] = json.loads(process.stdout.readline())
    print(found)
    return found


def test_pppoe_discovery_of_debian_finds_the_gateway(site: Site) -> None:
    if not Path("/usr/sbin/pppoe-discovery").exists():
        pytest.skip("not installed: pppoe-discovery (Debian package pppoe)")
    site.start()
    found = site.home.run(["pppoe-discovery", "-I", "eth0", "-U", "-t", "5"], check=False)
    assert f"Access-Concentrator: {NAME}" in found.stdout
    assert "AC-Ethernet-Address: 02:00:00:00:00:0a" in found.stdout


def test_a_rate_changes_under_iperf_and_a_killed_control_plane_is_not_missed(site: Site) -> None:
    site.start()
    dialled = site.dial()
    site.home.run(["ping", "-c", "3", "-i", "0.2", "192.0.2.9"])
    site.home.run(["ping", "-c", "3", "-i", "0.2", "2001:db8:ffff::9"])
    server = subprocess.Popen([*site.core.exec_prefix, "iperf3", "-s", "-1", "-p", "5301"], stdout=subprocess.DEVNULL)
    site.stack.callback(server.wait)
    site.stack.callback(server.kill)
    time.sleep(0.5)
    client = subprocess.Popen(
        [*site.home.exec_prefix, "iperf3", "-c", "192.0.2.9", "-p", "5301", "-t", "12", "-R", "-i", "1", "--json"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(3)
    said = freeradius.radclient(
        site.coa_port, "coa",
        {"User-Name": "alice", "WISPr-Bandwidth-Max-Down": "10000000", "Message-Authenticator": "0x00"},
    )  # fmt: skip
    assert "Received CoA-ACK" in said, said
    time.sleep(3)
    ping = subprocess.Popen(
        [*site.home.exec_prefix, "ping", "-q", "-i", "0.01", "-c", "800", "-W", "5", "192.0.2.9"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(1)
    site.kill()
    time.sleep(2)
    began = time.monotonic()
    assert "1 sessions kept, 0 installed again, 0 removed" in site.start()
    print("back after", time.monotonic() - began)
    intervals = json.loads(client.communicate()[0])["intervals"]
    rates = [each["sum"]["bits_per_second"] for each in intervals]
    print([round(each / 1e6, 1) for each in rates])
    assert max(rates[:3]) > 30e6
    assert 4e6 < sorted(rates[5:])[len(rates[5:]) // 2] < 11e6
    print(ping.communicate()[0])
    assert ping.returncode == 0
    assert dialled.poll() is None
    [row] = site.sessions()
    assert (row["user"], row["down_bit_s"]) == ("alice", 10_000_000)
    assert row["bytes_down"] > 10_000_000


@pytest.mark.parametrize("number", [300])
def test_many_subscribers_with_freeradius(site: Site, number: int) -> None:
    site.start()
    crowd = site.crowd(number, 100, patience_s=180)
    found = hear(crowd)
    assert found["states"] == {"up": number}
    assert found["addresses"] == number
    print(f"{number / found['seconds']:.0f} setups/s")
    site.kill()
    site.radius.kill()
    time.sleep(1)
    site.radius.start()
    assert f"{number} sessions kept, 0 installed again, 0 removed" in site.start()
    assert crowd.stdin is not None
    crowd.stdin.write("\n")
    crowd.stdin.flush()
    assert hear(crowd)["states"] == {"up": number}
    crowd.stdin.close()
    until(lambda: not site.sessions(), "the sessions do not end")

    def stopped() -> bool:  # at least once each: an answer may have been lost
        records = [each for each in site.radius.accounted() if each["Acct-Status-Type"] == "Stop"]
        return len({each["Acct-Session-Id"] for each in records}) == number

    until(stopped, "some sessions have no stop record")
