"""Linux hosts of a live network: a namespace for each host of a topology, and commands that run in them.

The measurements made with them are not known here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from holdfast import _core
from holdfast.control.membership.overlay import link_local
from holdfast.errors import LiveError
from holdfast.topology import Topology

PACKAGES = {"ip": "iproute2", "ping": "iputils-ping", "iperf3": "iperf3"}
"""Of Debian, by tool."""


def check_machine(tools: Sequence[str] = ("ip", "ping", "iperf3")) -> None:
    """Raise :class:`LiveError` with all rights and tools that the machine lacks for a live network, if it lacks any."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        packages = ", ".join(PACKAGES[tool] for tool in missing)
        raise LiveError(f"not installed: {', '.join(missing)} (Debian packages {packages})")
    if reason := _core.interfaces_ready():
        raise LiveError(f"cannot open network interfaces: {reason}")


@contextmanager
def preferred() -> Iterator[None]:
    """Run the context with a higher priority (nice -15) for this thread and the processes that it starts, if that is permitted.

    So other work of the machine delays the network's events as little as possible.
    """
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -15)
    try:
        yield
    finally:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, before)


@contextmanager
def hosts(network_topology: Topology) -> Iterator[tuple[dict[str, _core.Namespace], dict[str, str]]]:
    """Yield by host a configured network namespace and the name of its outer interface; remove them at the end of the context."""
    with ExitStack() as stack:
        namespaces: dict[str, _core.Namespace] = {}
        interfaces: dict[str, str] = {}
        for name, host in network_topology.hosts.items():
            namespace = stack.enter_context(_core.Namespace(name))
            interfaces[name] = namespace.add_veth("eth0", mac=host.mac)
            attachment = network_topology.attachment(name)
            namespace.add_address("eth0", str(host.address))
            gateway_mac = network_topology.port_mac(attachment.switch, attachment.port)
            namespace.add_neighbour("eth0", str(host.gateway), gateway_mac)
            namespace.add_route("0.0.0.0/0", "eth0", via=str(host.gateway))
            if host.ipv6 is not None:
                namespace.add_address("eth0", str(host.ipv6))
                # From it MLD speaks (RFC 3810, 5.2.13); the kernel gives none to an interface that was up without IPv6.
                namespace.add_address("eth0", f"{link_local(host.mac)}/64")
                namespace.add_neighbour("eth0", str(host.ipv6_gateway), gateway_mac)
                namespace.add_route("::/0", "eth0", via=str(host.ipv6_gateway))
            namespaces[name] = namespace
        yield namespaces, interfaces


def start(namespace: _core.Namespace, *command: str) -> subprocess.Popen[str]:
    """Start a command in a namespace, with its standard error merged into its standard output."""
    return subprocess.Popen(
        [*namespace.exec_prefix, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


_SERVERS_START_S = 60
"""The time that iperf3's servers may take to start; on a machine with nothing else to do it is milliseconds."""


def wait_listening(namespace: _core.Namespace, ports: tuple[int, ...]) -> None:
    """Wait until iperf3's servers accept connections. Raises :class:`LiveError` if they do not in time."""
    deadline = time.monotonic() + _SERVERS_START_S
    wanted = {f":{port:04X}" for port in ports}
    while time.monotonic() < deadline:
        text = namespace.run(["cat", "/proc/net/tcp", "/proc/net/tcp6"], check=False).stdout
        if all(any(port in line and " 0A " in line for line in text.splitlines()) for port in wanted):
            return
        time.sleep(0.02)
    raise LiveError(f"iperf3's servers did not start within {_SERVERS_START_S} s")


def iperf3_report(output: str, name: str) -> dict[str, Any]:
    """Return the JSON report that iperf3 printed. Raises :class:`LiveError` with iperf3's reason if it failed."""
    try:
        report: dict[str, Any] = json.loads(output)
    except ValueError:
        raise LiveError(f"{name} printed no report: {output[-300:]}") from None
    if "error" in report:
        raise LiveError(f"{name}: {report['error']}")
    return report
