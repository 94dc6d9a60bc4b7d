"""A live gateway for tests and measurements: two namespaces, switches and a control plane between them, and FreeRADIUS."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from holdfast import _core, interpreter
from holdfast.subscribers import operator_requests, passwords
from holdfast.subscribers.tests import freeradius

COMMAND = tuple(interpreter.module("holdfast"))
ENVIRONMENT = os.environ | {"COLUMNS": "200", "PYTHONUNBUFFERED": "1"}
GATEWAY_MAC = "02:00:00:00:00:0a"
CORE_MAC, ROUTER_MAC = "02:00:00:00:00:09", "06:00:00:00:00:09"
CABLE_MTU = "1508"
"""The MTU of a cable between two switches: a payload of 1,492 bytes with PPPoE's header and two tags."""
SERVER = "192.0.2.9"
"""The address of the server in the core."""
USERS = """
alice Cleartext-Password := "secret"
    WISPr-Bandwidth-Max-Up = 100000000,
    WISPr-Bandwidth-Max-Down = 100000000

crowd Cleartext-Password := "crowded"
"""


_NUMBERS = count(1)
"""The numbers of this process's gateways, namespaces and cables."""


def free_tcp_port() -> int:
    """Return a TCP port of 127.0.0.1 on which no program listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Site:
    """A gateway with its networks, switches and RADIUS server. ``planes``: forwarding planes behind a balancer; 0: one switch."""

    def __init__(
        self,
        directory: Path,
        stack: ExitStack,
        *,
        planes: int = 0,
        control: dict[str, Any] | None = None,
        radius: dict[str, Any] | None = None,
    ) -> None:
        """Prepare namespaces and configuration, without starting a gateway.

        ``control``: rates of control packets, by default no limit. ``radius``: further settings of the configuration's section
        ``radius``.
        """
        self.stack = stack
        self.name = f"live-{os.getpid()}-{next(_NUMBERS)}"
        self.home = stack.enter_context(_core.Namespace(f"home{next(_NUMBERS)}"))
        self.core = stack.enter_context(_core.Namespace(f"core{next(_NUMBERS)}"))
        access = self.home.add_veth("eth0")
        core = self.core.add_veth("eth0", mac=bytes.fromhex(ROUTER_MAC.replace(":", "")))
        self.core.add_address("eth0", f"{SERVER}/24")
        self.core.add_route("100.64.0.0/16", "eth0", via="192.0.2.1")
        self.core.add_address("eth0", "2001:db8:ffff::9/64")
        self.core.add_route("2001:db8::/32", "eth0", via="2001:db8:ffff::1")
        self.radius = freeradius.FreeRadius(directory / "radius", USERS)
        self.radius.start()
        stack.callback(self.radius.kill)
        self.coa_port = freeradius.free_port()
        self.configuration = directory / "gateway.yaml"
        loose = {"per_s": 100_000, "burst": 100_000}
        values: dict[str, Any] = {
            "access": [1],
            "core": [{"port": 9, "mac": CORE_MAC, "addresses": ["192.0.2.1", "2001:db8:ffff::1"]}],
            "routes": [{"prefix": prefix, "port": 9, "next_hop_mac": ROUTER_MAC} for prefix in ("0.0.0.0/0", "::/0")],
            "control": dict.fromkeys(("padi", "discovery", "ppp", "committed"), loose) if control is None else control,
            "gateway": {
                "name": self.name,
                "mac": GATEWAY_MAC,
                "address": "100.64.0.1",
                "pools": {"default": "100.64.0.0/16"},
                "dns": ["192.0.2.53", "192.0.2.54"],
                "ipv6": {"prefixes": "2001:db8:1::/48", "delegated": "2001:db8:8000::/34"},
                "state": str(directory / "state.db"),
                "radius": self.radius.settings(
                    dynamic_authorization={"port": self.coa_port, "clients": {"127.0.0.1": freeradius.SECRET}},
                    **(radius or {}),
                ),
            },
        }
        if planes:
            values["split"] = self._split(access, core, planes)
        else:
            values["switch"] = self._switch({1: access, 9: core})
        self.configuration.write_text(yaml.safe_dump(values), encoding="utf-8")
        self.switches: dict[str, int] = {}
        """Process ids of switches."""
        self.process: subprocess.Popen[str] | None = None
        self.crowds: list[Crowd] = []
        self.said = ""
        stack.callback(self.close)

    def _switch(self, interfaces: dict[int, str]) -> dict[str, Any]:
        device = os.getpid() * 64 + next(_NUMBERS)
        return {"grpc": f"127.0.0.1:{free_tcp_port()}", "device_id": device, "interfaces": interfaces}

    def _split(self, access: str, core: str, planes: int) -> dict[str, Any]:
        balancer = {1: access, 9: core}
        near, balancer[20] = self._cable()
        found: dict[str, Any] = {
            "authentication": self._switch({1: near}) | {"trunk": 1, "access_port": 20},
            "planes": {},
        }
        for number in range(1, planes + 1):
            port = 20 + 2 * number
            trunk, balancer[port] = self._cable()
            out, balancer[port + 1] = self._cable()
            plane = self._switch({1: trunk, 9: out}) | {"trunk": 1, "access_port": port, "core_port": port + 1}
            found["planes"][f"forward{number}"] = plane
        found["balancer"] = self._switch(balancer) | {"uplinks": {ROUTER_MAC: 9}}
        return found

    def _cable(self) -> tuple[str, str]:
        """Make a veth pair between two switches, and return its names, which no other gateway of this process uses."""
        pair = f"hb{os.getpid()}.{next(_NUMBERS)}"
        ends = f"{pair}p", f"{pair}b"
        words = [
            "ip",
            "link",
            "add",
            ends[0],
            "mtu",
            CABLE_MTU,
            "type",
            "veth",
            "peer",
            "name",
            ends[1],
            "mtu",
            CABLE_MTU,
        ]
        subprocess.run(words, check=True)
        self.stack.callback(subprocess.run, ["ip", "link", "del", ends[0]], check=False, capture_output=True)
        for each in ends:
            with suppress(OSError):
                Path(f"/proc/sys/net/ipv6/conf/{each}/disable_ipv6").write_text("1", encoding="ascii")
            subprocess.run(["ip", "link", "set", each, "up"], check=True)
        return ends

    def start(self, *, keep_switch: bool = True) -> str:
        """Start the control plane; return its report of earlier sessions. Raise RuntimeError if it does not start."""
        self.process = subprocess.Popen(
            [*COMMAND, "bng", "run", str(self.configuration), *(["--keep-switch"] if keep_switch else [])],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT,
        )  # fmt: skip
        said, line = self.hear("ready")
        if not line:
            raise RuntimeError(said)
        return said

    def hear(self, what: str) -> tuple[str, str]:
        """Return the control plane's output up to a line that contains ``what``, and that line.

        The line is empty if the output ends.
        """
        assert self.process is not None
        assert self.process.stdout is not None
        said = ""
        for line in self.process.stdout:
            said += line
            if found := re.match(r"(.+) at \S+: started, process (\d+)", line):
                self.switches[found[1]] = int(found[2])
            if what in line:
                return said, line
            if line.startswith("error"):  # switches that run on keep the pipe open
                break
        return said, ""

    def kill(self) -> None:
        """Kill the control plane with SIGKILL, and wait for its end."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """Terminate the control plane and the switches."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)
        for each in self.switches.values():
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGTERM)

    def sessions(self) -> list[dict[str, Any]]:
        """Ask the running gateway for its sessions, and return a row of fields for each, with its usage."""
        answer = operator_requests.ask(
            self.name, operator_requests.Sessions(usage=True), operator_requests.SessionsAnswer
        )
        return [row.model_dump() for row in answer.sessions]

    def rows(self) -> dict[int, dict[str, Any]]:
        """Return the sessions of the running gateway by identifier, with the fields that an operator sees."""
        return {row["session"]: row for row in self.sessions()}

    def started(self) -> int:
        """Return the number of sessions for which RADIUS has received an Accounting-Request of type Start."""
        records = [each for each in self.radius.accounted() if each["Acct-Status-Type"] == "Start"]
        return len({each["Acct-Session-Id"] for each in records})

    def arrived(self) -> tuple[int, int]:
        """Return how many packets have arrived at the interfaces of the home network and of the core."""
        home, core = (each.interface_counters("eth0").rx_packets for each in (self.home, self.core))
        return home, core

    def in_home(self, *words: str, password: str = "") -> subprocess.Popen[str]:
        """Start a program in the home network; it ends with the site. ``password``: of subscribers that dial."""
        return self._popen(self.home, *words, password=password)

    def in_core(self, *words: str) -> subprocess.Popen[str]:
        """Start a program in the core; it ends with the site."""
        return self._popen(self.core, *words)

    def _popen(self, namespace: _core.Namespace, *words: str, password: str = "") -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*namespace.exec_prefix, *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=ENVIRONMENT | {passwords.VARIABLE: password},
        )  # fmt: skip
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def dial(self) -> subprocess.Popen[str]:
        """Start a subscriber with a TUN device. Raise RuntimeError if it does not come online."""
        process = self.in_home(*COMMAND, "bng", "dial", "eth0", "--user", "alice", "--redial-s", "1", password="secret")
        assert process.stdout is not None
        line = process.stdout.readline()
        if "alice is online" not in line:
            raise RuntimeError(line)
        return process

    def crowd(self, number: int, rate: float, patience_s: float = 60.0, first: int = 0) -> Crowd:
        """Start ``number`` subscribers in one process, which dial at ``rate`` per second; return the :class:`Crowd`."""
        words = interpreter.module("holdfast.subscribers.tests.crowd", "eth0", "--user", "crowd")
        words += ["--redial-s", "1", "--number", str(number), "--rate", str(rate)]
        words += ["--patience-s", str(patience_s), "--first", str(first)]
        self.crowds.append(Crowd(self.in_home(*words, password="crowded")))
        return self.crowds[-1]

    def echo(self) -> None:
        """Start a program in the core that sends every packet back."""
        process = self.in_core(*interpreter.module("holdfast.subscribers.tests.echo"))
        assert process.stdout is not None
        process.stdout.readline()

    def storm(self, kind: str, rate: float, seconds: float, lines: int) -> subprocess.Popen[str]:
        """Start an attacker in the home network; see :mod:`holdfast.subscribers.tests.storm`."""
        words = interpreter.module("holdfast.subscribers.tests.storm", "eth0", kind, "--gateway", GATEWAY_MAC)
        return self.in_home(*words, "--rate", str(rate), "--seconds", str(seconds), "--lines", str(lines))

    def half_open(self, number: int, lines: int) -> subprocess.Popen[str]:
        """Start hosts that begin sessions and then stay silent; see :mod:`holdfast.subscribers.tests.half_open`."""
        return self.in_home(
            *interpreter.module("holdfast.subscribers.tests.half_open", "eth0", str(number), str(lines))
        )


class Crowd:
    """Subscribers in a process: see :mod:`holdfast.subscribers.tests.crowd`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def hear(self) -> dict[str, Any]:
        """Read the crowd's next line and return its JSON. Raise RuntimeError, with all of its output, if it is no JSON."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        try:
            found: dict[str, Any] = json.loads(line)
        except ValueError:
            raise RuntimeError(line + self.process.stdout.read()) from None
        return found

    def say(self, command: str) -> None:
        """Send the crowd a command that has no answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()

    def ask(self, command: str) -> dict[str, Any]:
        """Send the crowd a command, and return its answer."""
        self.say(command)
        return self.hear()

    def hang_up(self) -> None:
        """End all sessions of the crowd, and wait until its process ends."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)


def processor_s(pid: int) -> float:
    """Return the user and system time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process, in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE")
