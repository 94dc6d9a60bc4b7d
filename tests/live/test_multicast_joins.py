"""Kernel receivers join by the kernel's own IGMPv3 and MLDv2, get a stream over BIER, and leave."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path

import pytest

from holdfast import _core, interpreter
from holdfast.apps.bier import BierController
from holdfast.apps.bier.program import compile_bier
from holdfast.control.membership.messages import Malformed
from holdfast.control.membership.overlay import Overlay, OverlayParameters
from holdfast.live.hosts import hosts
from holdfast.network import LiveNetwork
from holdfast.topology import Topology

HERE = Path(__file__).parent
PORT, RATE = 6000, 200


def program(namespace: _core.Namespace, script: str, *arguments: str) -> subprocess.Popen[str]:
    command = ["ip", "netns", "exec", namespace.name, *interpreter.script(HERE / script, *arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def wait_for(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def said(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout is not None
    assert process.stdout.readline().strip() == line


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.mark.parametrize("group", ["239.7.7.7", "232.7.7.7", "ff1e::7:7"])
def test_kernel_receivers_join_and_leave(group: str) -> None:
    topology = Topology("joins")
    for switch in ("s1", "s2"):
        topology.add_switch(switch)
    for host, switch in (("h1", "s1"), ("h2", "s2"), ("h3", "s2")):
        topology.add_host(host)
        topology.add_link(switch, host)
    topology.add_link("s1", "s2")
    topology.add_ipv6()
    address = ip_address(group)
    source = topology.hosts["h1"].address.ip
    is_ssm = group.startswith("232.")
    channel = (source if is_ssm else None, address)
    controller = BierController(
        ip_delay_ms=1, bier_delay_ms=1, overlay=OverlayParameters(last_member_query_interval_s=0.2)
    )
    with (
        hosts(topology) as (namespaces, interfaces),
        LiveNetwork(topology, compile_bier("one-pass"), [controller], interfaces=interfaces),
    ):
        overlay = controller.overlay
        assert isinstance(overlay, Overlay)
        place = topology.attachment("h2").port

        def ports() -> frozenset[int]:
            return overlay.channels.get(channel, {}).get("s2", frozenset())

        sender = program(namespaces["h1"], "multicast_sender.py", group, str(PORT), str(RATE))
        arguments = (group, str(PORT), *([str(source)] if is_ssm else []))
        receiver = program(namespaces["h2"], "multicast_receiver.py", *arguments)
        stranger = program(
            namespaces["h3"], "multicast_receiver.py", "ff1e::9:9" if ":" in group else "239.9.9.9", str(PORT)
        )
        try:
            said(receiver, "joined")
            said(stranger, "joined")
            wait_for(lambda: ports() == {place}, "the join is heard")
            time.sleep(1)
            tell(receiver)
            said(receiver, "left")
            wait_for(lambda: ports() == frozenset(), "the leave is heard")
            time.sleep(0.5)
            tell(receiver)
            tell(stranger)
            said(stranger, "left")
            tell(stranger)
            before, after = json.loads(receiver.communicate(timeout=60)[0])
            unwanted = json.loads(stranger.communicate(timeout=60)[0])
        finally:
            for process in (sender, receiver, stranger):
                process.kill()
                process.wait()
        # Until it knows that its address is its own, a kernel reports from the unspecified one (RFC 3810, 5.2.13).
        assert overlay.malformed.keys() <= {Malformed.SOURCE}
    # From its join on, the kernel's receiver got every packet once, in order.
    assert len(before) > RATE // 4
    assert before == list(range(before[0], before[0] + len(before)))
    assert not after
    assert unwanted == [[], []]
