"""The kernel's ping, TCP and UDP through two Shorternet gateways: both hosts' captures hold the same IP packets."""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path

from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.utils import PcapReader

from holdfast.apps.shorternet import ShorternetController, compile_shorternet
from holdfast.apps.shorternet.contexts import context_table
from holdfast.control.tables import read_entries
from holdfast.demo import two_paths
from holdfast.link import Direction
from holdfast.live.hosts import hosts, iperf3_report, start, wait_listening
from holdfast.network import LiveNetwork

H1, H2 = "10.0.1.1", "10.0.2.1"


def packets(path: Path, source: str) -> Counter[bytes]:
    """IPv4 and IPv6 packets of a capture that came from a host, without Ethernet's header and padding."""
    found: Counter[bytes] = Counter()
    with PcapReader(str(path)) as reader:
        for frame in reader:
            for layer, length in ((IP, lambda ip: ip.len), (IPv6, lambda ip: ip.plen + 40)):
                if layer in frame and frame[layer].src == source:
                    found[bytes(frame)[14 : 14 + length(frame[layer])]] += 1
    return found


def test_ping_tcp_and_udp_pass_unchanged_over_a_cut_and_a_lost_context(tmp_path: Path) -> None:
    link = Direction(rate_bps=1_000_000_000, delay_ms=0.5, queue_bytes=3_000_000)
    t = two_paths("shorternet", edge=link, core=link)
    t.add_ipv6()
    far = t.attachment("h2").switch
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
            for port in (5201, 5202)
        ]
        wait_listening(namespaces["h2"], (5201, 5202))
        pings = [
            start(namespaces["h1"], "ping", "-n", "-q", "-i", "0.02", "-c", "100", address)
            for address in (H2, str(ipv6.ip))
        ]
        client = ("iperf3", "--client", H2, "--time", "2", "--json")
        tcp = start(namespaces["h1"], *client, "--bitrate", "20M")
        udp = start(namespaces["h1"], *client, "--port", "5202", "--udp", "--bitrate", "5M", "--length", "200")
        time.sleep(0.7)
        contexts = read_entries(network.clients[far], context_table(4))
        network.set_link("s1-s2", up=False)
        time.sleep(0.5)
        for entry in read_entries(network.clients[far], context_table(4)):
            entry.delete(network.clients[far])
        pinged = [ping.communicate(timeout=120)[0] for ping in pings]
        sent, received = tcp.communicate(timeout=120)[0], servers[0].communicate(timeout=120)[0]
        udp_sent, _ = udp.communicate(timeout=120)[0], servers[1].communicate(timeout=120)
        time.sleep(0.2)
        lost = sum(controller.counter(far, name) for name in ("no_context", "wrong_context"))
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
    for source, sender, receiver in ((H1, "h1", "h2"), (H2, "h2", "h1")):
        before, after = packets(captures[sender], source), packets(captures[receiver], source)
        assert sum(after.values()) > 500
        changed = after - before
        assert not changed, f"{len(changed)} packets of {source} came out that did not go in"
