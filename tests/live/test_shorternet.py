"""The kernel's ping, TCP and UDP through two Shorternet gateways: both hosts' captures hold the same IP packets."""

from __future__ import annotations

import re
import time
from collections import Counter
from ipaddress import ip_address
from pathlib import Path

from scapy.utils import RawPcapReader

from holdfast.apps.shorternet import ShorternetController, compile_shorternet
from holdfast.apps.shorternet.contexts import context_table
from holdfast.apps.shorternet.controller import COUNTERS
from holdfast.control.tables import read_entries
from holdfast.demo import two_paths
from holdfast.link import Direction
from holdfast.live.hosts import hosts, iperf3_report, start, wait_listening
from holdfast.network import LiveNetwork
from holdfast.results import links

H1, H2 = "10.0.1.1", "10.0.2.1"


def packets(path: Path) -> dict[str, Counter[bytes]]:
    """Return the IPv4 and IPv6 packets in a capture, counted by source address, without Ethernet's header and padding."""
    found: dict[str, Counter[bytes]] = {}
    with RawPcapReader(str(path)) as reader:
        for frame, _ in reader:
            packet = frame[14:]
            if frame[12:14] == b"\x08\x00":
                source, length = str(ip_address(packet[12:16])), int.from_bytes(packet[2:4], "big")
            elif frame[12:14] == b"\x86\xdd":
                source, length = str(ip_address(packet[8:24])), 40 + int.from_bytes(packet[4:6], "big")
            else:
                continue
            found.setdefault(source, Counter())[packet[:length]] += 1
    return found


def test_ping_tcp_and_udp_pass_unchanged_over_a_cut_and_a_lost_context(tmp_path: Path) -> None:
    link = Direction(rate_bps=1_000_000_000, delay_ms=0.5, queue_bytes=3_000_000)
    t = two_paths("shorternet", edge=link, core=link)
    t.add_ipv6()
    far = t.attachment("h2").switch
    edges = (t.attachment("h1").switch, far)
    controller = ShorternetController(reaction_delay_ms=1, idle_s=30)
    captures = {name: tmp_path / f"{name}.pcap" for name in ("h1", "h2")}
    with (
        hosts(t) as (namespaces, interfaces),
        LiveNetwork(t, compile_shorternet(), [controller], interfaces=interfaces) as network,
    ):
        for name, path in captures.items():
            network.capture(t.attachment(name).switch, t.attachment(name).port, path)
        ipv6 = t.hosts["h2"].ipv6
        assert ipv6 is not None
        servers = [
            start(namespaces["h2"], "iperf3", "--server", "--one-off", "--json", "--port", str(port))
            for port in (5201, 5202, 5203)
        ]
        wait_listening(namespaces["h2"], (5201, 5202, 5203))
        pings = [
            start(namespaces["h1"], "ping", "-n", "-q", "-i", "0.02", "-c", "100", address)
            for address in (H2, str(ipv6.ip))
        ]
        client = ("iperf3", "--client", H2, "--time", "2", "--json")
        tcp = start(namespaces["h1"], *client, "--bitrate", "20M")
        udp = start(namespaces["h1"], *client, "--port", "5202", "--udp", "--bitrate", "5M", "--length", "200")
        tcp6 = start(
            namespaces["h1"],
            *("iperf3", "--client", str(ipv6.ip), "--port", "5203", "--time", "2", "--json", "--bitrate", "5M"),
        )
        time.sleep(0.7)
        contexts = read_entries(network.clients[far], context_table(4))
        network.set_link("s1-s2", up=False)
        time.sleep(0.5)
        for entry in read_entries(network.clients[far], context_table(4)):
            entry.write(network.clients[far], "delete")
        pinged = [ping.communicate(timeout=120)[0] for ping in pings]
        sent, received = tcp.communicate(timeout=120)[0], servers[0].communicate(timeout=120)[0]
        sent6, received6 = tcp6.communicate(timeout=120)[0], servers[2].communicate(timeout=120)[0]
        udp_sent, _ = udp.communicate(timeout=120)[0], servers[1].communicate(timeout=120)
        time.sleep(0.2)
        lost = sum(controller.counter(far, name) for name in ("no_context", "wrong_context"))
        counted = sum(controller.counter(edge, name) for edge in edges for name in COUNTERS if name != "whole")
        counted += sum(links(network)["offered"]) - sum(links(network)["delivered"])
        late = network.wall_statistics().max_lateness_ps > 3_000_000_000
    assert len(contexts) >= 4  # two of TCP's connections, UDP's, and ping's
    assert lost > 0 and controller.counts["repaired"] >= 1
    for text in pinged:
        found = re.search(r"(\d+) packets transmitted, (\d+) received", text)
        assert found is not None and found[1] == "100", text
        assert int(found[2]) >= 80 or late
    assert iperf3_report(sent, "h1")["end"]["sum_sent"]["bytes"] > 1_000_000
    assert iperf3_report(received, "h2")["end"]["sum_received"]["bytes"] > 1_000_000
    datagrams = iperf3_report(udp_sent, "h1")["end"]["sum"]
    assert datagrams["packets"] > 1000
    assert datagrams["lost_packets"] < datagrams["packets"] / 10 or late
    assert iperf3_report(sent6, "h1")["end"]["sum_sent"]["bytes"] > 100_000
    assert iperf3_report(received6, "h2")["end"]["sum_received"]["bytes"] > 100_000
    captured = {name: packets(path) for name, path in captures.items()}
    missing = 0
    ends = [(H1, "h1", "h2"), (H2, "h2", "h1")]
    ends += [(str(own.ip), here, there) for _, here, there in ends if (own := t.hosts[here].ipv6) is not None]
    for source, sender, receiver in ends:
        before, after = captured[sender][source], captured[receiver][source]
        assert sum(after.values()) > 100, source
        changed = after - before
        assert not changed, f"{len(changed)} packets of {source} came out that did not go in"
        missing += sum((before - after).values())
    # What did not come out, because of the cut and of lost contexts, was counted.
    assert 0 < missing <= counted
