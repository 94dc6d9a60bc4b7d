"""1+1 protection with the kernel's hosts: TCP does not notice cuts, and traffic continues when the controller is killed."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast import interpreter
from holdfast.apps.protect import compile_protect
from holdfast.apps.protect.test_controller import ladder
from holdfast.demo import two_paths
from holdfast.link import Direction
from holdfast.live.hosts import hosts, iperf3_report, start, wait_listening
from holdfast.network import LiveNetwork
from holdfast.topology import Topology

LAST_SENT = "ProtectIngress.protect_and_forward.encapsulate.last_sent_sn"
PASSED = "ProtectIngress.decaps_p.acceptance.passed"
VECTOR = ("--acceptance", "vector")
"""The window would drop what a busy machine lets overtake."""
CUTS = 10
MTU = 1600
"""Of the links between switches: room for a full Ethernet payload and the outer headers."""
LATE_PS = 3_000_000_000


def topology() -> Topology:
    edge = Direction(rate_bps=1_000_000_000, delay_ms=0.01)
    return two_paths("live", edge=edge, core=Direction(rate_bps=1_000_000_000, delay_ms=0.5, queue_bytes=3_000_000))


@contextmanager
def controller(yaml: Path, address: str, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the controller as a process; yield the process, and the line that it printed when it was ready."""
    command = [
        *interpreter.module("holdfast.apps.protect", str(yaml), address),
        "--protect",
        "h1:h2",
        "--mtu",
        str(MTU),
        *options,
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            assert process.stderr is not None
            raise AssertionError(process.stderr.read())
        yield process, line.strip()
    finally:
        process.kill()
        process.communicate()


def check_tunnels(network: LiveNetwork) -> None:
    """Check that every packet that entered a tunnel has left it once; wait for the last packets."""
    for ingress, egress in (("s1", "s4"), ("s4", "s1")):
        deadline = time.monotonic() + 60
        while True:
            passed = sum(network.clients[egress].counter(PASSED, path)[0] for path in range(2))
            sent = network.clients[ingress].register(LAST_SENT, 0)
            if passed == sent or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        assert passed == sent, f"from {ingress}"


def is_late(network: LiveNetwork) -> bool:
    """Return True if the network's clock fell behind by so much that kernels may have lost packets."""
    return network.wall_statistics().max_lateness_ps > LATE_PS


def test_the_controller_is_killed_and_another_takes_over(tmp_path: Path) -> None:
    """Check that pings go on during kill -9, a cut and the takeover, and that sequence numbers never go back."""
    t = topology()
    yaml = tmp_path / "live.yaml"
    yaml.write_text(t.to_yaml())
    with hosts(t) as (namespaces, interfaces), LiveNetwork(t, compile_protect(), interfaces=interfaces) as network:
        with controller(yaml, network.p4runtime_address, *VECTOR) as (first, said):
            assert said == "2 connections: began anew"
            target = str(t.hosts["h2"].address.ip)
            ping = start(namespaces["h1"], "ping", "-n", "-q", "-i", "0.01", target)
            time.sleep(1)
            first.send_signal(signal.SIGKILL)
            first.wait()
        sent = [network.clients["s1"].register(LAST_SENT, 0)]
        network.set_link("s1-s2", up=False)
        time.sleep(1)
        network.set_link("s1-s2", up=True)
        sent.append(network.clients["s1"].register(LAST_SENT, 0))
        with controller(yaml, network.p4runtime_address, *VECTOR) as (_, said):
            assert said == "2 connections: took over 2 connections, 2 flows"
            sent.append(network.clients["s1"].register(LAST_SENT, 0))
            network.set_link("s3-s4", up=False)
            time.sleep(1)
            sent.append(network.clients["s1"].register(LAST_SENT, 0))
            ping.send_signal(signal.SIGINT)
            output, _ = ping.communicate(timeout=120)
        time.sleep(0.2)
        check_tunnels(network)
        late = is_late(network)
    assert 0 < sent[0] < sent[1] < sent[2] < sent[3]
    counts = re.search(r"(\d+) packets transmitted, (\d+) received", output)
    assert counts is not None, output
    transmitted, received = int(counts[1]), int(counts[2])
    assert received >= transmitted - 1 or late, "the last one may have been under way"


def test_ten_cuts_under_tcp(tmp_path: Path) -> None:
    """One path is cut and restored ten times under iperf3: every packet that entered a tunnel left it, so TCP sends nothing again.

    On a machine so busy that the network's clock falls behind, TCP's timers run out without any cut; only then it may.
    """
    t = topology()
    yaml = tmp_path / "live.yaml"
    yaml.write_text(t.to_yaml())
    with (
        hosts(t) as (namespaces, interfaces),
        LiveNetwork(t, compile_protect(), interfaces=interfaces) as network,
        controller(yaml, network.p4runtime_address, *VECTOR),
    ):
        h1, h2 = namespaces["h1"], namespaces["h2"]
        server = start(h2, "iperf3", "--server", "--one-off", "--json")
        wait_listening(h2, (5201,))
        begin_s = network.now_ps / 1e12
        for i in range(CUTS):
            network.set_link("s1-s2", up=False, at_s=begin_s + 0.7 + 0.5 * i)
            network.set_link("s1-s2", up=True, at_s=begin_s + 0.95 + 0.5 * i)
        target = str(t.hosts["h2"].address.ip)
        client = start(h1, "iperf3", "--client", target, "--json", "--time", "6", "--bitrate", "20M", "--length", "8K")
        output, _ = client.communicate(timeout=120)
        server.communicate(timeout=120)
        cut = network.link_counters("s1-s2")
        check_tunnels(network)
        late = is_late(network)
    report = iperf3_report(output, "iperf3")
    assert cut.a_to_b.down_drops > 1000
    assert report["end"]["sum_sent"]["retransmits"] == 0 or late
    assert report["end"]["sum_received"]["bits_per_second"] > 19e6 or late


def crossed(t: Topology) -> Topology:
    """Return a map of the network on which two cables at switch a are swapped."""
    wrong = Topology("crossed")
    for host in t.hosts:
        wrong.add_host(host)
    for switch in t.switches:
        wrong.add_switch(switch)
    for link in t.links:
        a_port = {2: 3, 3: 2}.get(link.a_port, link.a_port) if link.a == "a" else link.a_port
        wrong.add_link(link.a, link.b, a_port=a_port, b_port=link.b_port, cost=link.cost)
    return wrong


def test_links_are_discovered_and_found_missing(tmp_path: Path) -> None:
    """Check that pings go on with a wrong map, two cuts that P4Runtime does not report, and kill -9 between them."""
    t = ladder(3)
    yaml = tmp_path / "crossed.yaml"
    yaml.write_text(crossed(t).to_yaml())
    options = ("--discover", "--discovery-interval-ms", "100", "--discovery-hold-ms", "1500", "--repair", *VECTOR)
    with hosts(t) as (namespaces, interfaces), LiveNetwork(t, compile_protect(), interfaces=interfaces) as network:
        with controller(yaml, network.p4runtime_address, *options) as (first, said):
            assert said == "0 connections: began anew"
            assert first.stdout is not None
            assert first.stdout.readline().strip() == "discovered links between 6 pairs of switches; 2 connections"
            target = str(t.hosts["h2"].address.ip)
            ping = start(namespaces["h1"], "ping", "-n", "-q", "-i", "0.01", target)
            network.set_link("a-m1", up=False)
            time.sleep(4)
            first.send_signal(signal.SIGKILL)
            first.wait()
        with controller(yaml, network.p4runtime_address, *options) as (_, said):
            assert said == "2 connections: took over 2 connections, 2 flows"
            time.sleep(1)
            network.set_link("m2-z", up=False)
            time.sleep(2)
            ping.send_signal(signal.SIGINT)
            output, _ = ping.communicate(timeout=120)
        time.sleep(0.2)
        late = is_late(network)
    counts = re.search(r"(\d+) packets transmitted, (\d+) received", output)
    assert counts is not None, output
    assert int(counts[1]) > 300
    assert int(counts[2]) >= int(counts[1]) - 1 or late, output
