"""The kernel's hosts with IPv6 addresses, through protected P4 switches: echo and TCP, with a path cut under both."""

from __future__ import annotations

import re
import time

from holdfast.apps.protect import Acceptance, ProtectController, compile_protect
from holdfast.apps.protect.connection import Flow
from holdfast.demo import two_paths
from holdfast.link import Direction
from holdfast.live.hosts import hosts, iperf3_report, start, wait_listening
from holdfast.network import LiveNetwork


def test_ping_and_tcp_over_a_cut() -> None:
    edge = Direction(rate_bps=1_000_000_000, delay_ms=0.01)
    t = two_paths("ipv6", edge=edge, core=Direction(rate_bps=1_000_000_000, delay_ms=0.5, queue_bytes=3_000_000))
    t.add_ipv6()
    # The window would drop what a busy machine lets overtake.
    controller = ProtectController(
        protect=[("h1", "h2")], reaction_delay_ms=1, mtu=1600, acceptance=Acceptance("vector")
    )
    with (
        hosts(t) as (namespaces, interfaces),
        LiveNetwork(t, compile_protect(), [controller], interfaces=interfaces) as network,
    ):
        h1, h2 = (t.hosts[name].ipv6 for name in ("h1", "h2"))
        assert h1 is not None
        assert h2 is not None
        server = start(namespaces["h2"], "iperf3", "--server", "--one-off", "--json")
        wait_listening(namespaces["h2"], (5201,))
        ping = start(namespaces["h1"], "ping", "-6", "-n", "-q", "-i", "0.02", "-c", "100", str(h2.ip))
        tcp = start(namespaces["h1"], "iperf3", "--client", str(h2.ip), "--bitrate", "20M", "--time", "1", "--json")
        time.sleep(0.5)
        network.set_link("s1-s2", up=False)
        pinged, sent = ping.communicate(timeout=120)[0], tcp.communicate(timeout=120)[0]
        received = server.communicate(timeout=120)[0]
        time.sleep(0.2)
        counted = controller.statistics(controller.connections[0])
        late = network.wall_statistics().max_lateness_ps > 3_000_000_000
    found = re.search(r"(\d+) packets transmitted, (\d+) received", pinged)
    assert found is not None, pinged
    assert found[1] == "100"
    assert found[2] == "100" or late
    assert iperf3_report(sent, "h1")["end"]["sum_sent"]["bytes"] > 1_000_000
    assert iperf3_report(received, "h2")["end"]["sum_received"]["bytes"] > 1_000_000
    # All of it was IPv6, and in the connection.
    assert Flow(f"{h1.ip}/128", f"{h2.ip}/128") in [flow for flow, _ in controller.connections[0].flows]
    assert counted.protected_packets > 100 + 1_000_000 // 1500
