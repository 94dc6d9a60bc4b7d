"""1+1 protection with the kernel's hosts: cuts that TCP does not notice, and a controller that is killed while it carries on."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast._core import Namespace
from holdfast.apps.protect import compile_protect
from holdfast.demo import MTU, two_paths
from holdfast.demo_live import hosts, iperf3_report, start, wait_listening
from holdfast.network import LiveNetwork
from holdfast.topology import Topology

LAST_SENT = "ProtectIngress.protect_and_forward.encapsulate.last_sent_sn"
PASSED = "ProtectIngress.decaps_p.acceptance.passed"
CUTS = 10


def topology() -> Topology:
    edge = {"rate_bps": 1_000_000_000, "delay_ms": 0.01}
    return two_paths("live", edge=edge, core={"rate_bps": 1_000_000_000, "delay_ms": 0.5, "queue_bytes": 3_000_000})


@contextmanager
def controller(yaml: Path, address: str, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The controller's process, and what it said when it was ready."""
    command = [
        sys.executable,
        "-m",
        "holdfast.apps.protect",
        str(yaml),
        address,
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


def test_the_controller_is_killed_and_another_takes_over(tmp_path: Path) -> None:
    """Pings go on over kill -9, over a cut without any controller, and over the take-over; sequence numbers never go back."""
    t = topology()
    yaml = tmp_path / "live.yaml"
    yaml.write_text(t.to_yaml())
    with hosts(t) as (namespaces, interfaces), LiveNetwork(t, compile_protect(), interfaces=interfaces) as network:
        with controller(yaml, network.p4runtime_address) as (first, said):
            assert said == "2 connections: began anew"
            target = str(t.hosts["h2"].address.ip)
            ping = start(namespaces["h1"], "ping", "-n", "-q", "-i", "0.01", "-c", "800", "-W", "1", target)
            time.sleep(1)
            first.send_signal(signal.SIGKILL)
            first.wait()
        sent = network.clients["s1"].register(LAST_SENT, 0)
        assert sent > 50
        network.set_link("s1-s2", up=False)
        time.sleep(1)
        network.set_link("s1-s2", up=True)
        with controller(yaml, network.p4runtime_address) as (_, said):
            assert said == "2 connections: took over 2 connections, 2 flows"
            time.sleep(0.5)
            network.set_link("s3-s4", up=False)
            output, _ = ping.communicate(timeout=30)
        assert network.clients["s1"].register(LAST_SENT, 0) == 800 > sent
    counts = re.search(r"(\d+) packets transmitted, (\d+) received", output)
    assert counts is not None, output
    assert counts.groups() == ("800", "800")


def tcp_counters(namespace: Namespace) -> dict[str, int]:
    """The kernel's extended counters of a namespace."""
    names, numbers = namespace.run(["grep", "^TcpExt", "/proc/net/netstat"]).stdout.splitlines()
    return dict(zip(names.split()[1:], map(int, numbers.split()[1:]), strict=True))


def test_ten_cuts_under_tcp(tmp_path: Path) -> None:
    """One path is cut and restored ten times under iperf3: no packet is lost, and TCP sends nothing again that was not there.

    A busy machine can be late with acknowledgements, with or without cuts; then the receiver says that it had the segment (DSACK).
    """
    t = topology()
    yaml = tmp_path / "live.yaml"
    yaml.write_text(t.to_yaml())
    with (
        hosts(t) as (namespaces, interfaces),
        LiveNetwork(t, compile_protect(), interfaces=interfaces) as network,
        controller(yaml, network.p4runtime_address, "--acceptance", "vector"),
    ):
        h1, h2 = namespaces["h1"], namespaces["h2"]
        server = start(h2, "iperf3", "--server", "--one-off", "--json")
        wait_listening(h2, (5201,))
        begin_s = network.core.now_ps / 1e12
        for i in range(CUTS):
            network.set_link("s1-s2", up=False, at_s=begin_s + 0.7 + 0.5 * i)
            network.set_link("s1-s2", up=True, at_s=begin_s + 0.95 + 0.5 * i)
        target = str(t.hosts["h2"].address.ip)
        client = start(h1, "iperf3", "--client", target, "--json", "--time", "6", "--bitrate", "20M", "--length", "8K")
        output, _ = client.communicate(timeout=40)
        server.communicate(timeout=20)
        cut = network.core.link_counters(network.link_ids[t.find_link("s1-s2")])
        for ingress, egress in (("s1", "s4"), ("s4", "s1")):
            passed = sum(network.clients[egress].counter(PASSED, path)[0] for path in range(2))
            assert passed == network.clients[ingress].register(LAST_SENT, 0), f"from {ingress}"
        had_already = tcp_counters(h1)["TCPDSACKRecv"]
    report = iperf3_report(output, "iperf3")
    assert cut["a_to_b_down_drops"] > 1000
    assert report["end"]["sum_sent"]["retransmits"] <= had_already
    assert report["end"]["sum_received"]["bits_per_second"] > 19e6
