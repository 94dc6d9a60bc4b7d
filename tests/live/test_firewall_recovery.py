"""The kernel's TCP through the firewall: ends that forget a connection open it again with the same ports."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Topology, interpreter
from holdfast.apps.firewall import FirewallController, compile_firewall
from holdfast.apps.firewall.rules import RuleSet
from holdfast.live.hosts import hosts, start, wait_listening
from holdfast.network import LiveNetwork

RULES = RuleSet.model_validate(
    {
        "zones": {"inside": {"hosts": ["h1"]}, "servers": {"hosts": ["h2"], "may": "reply"}},
        "rules": [{"name": "web", "action": "allow", "from": "inside", "protocol": "tcp", "destination_ports": 8080}],
    }
)

ENDS = """
import socket, sys, threading, time

TCP_REPAIR = 19  # closing a socket in repair tells nobody

def forget(connection):
    connection.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
    connection.close()

def serve(connection):
    while data := connection.recv(1):
        if data == b"f":
            return forget(connection)
        connection.sendall(data)

def opened(family, address):
    connection = socket.socket(family)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    connection.bind(("", 5000))
    connection.settimeout(20)
    connection.connect((address, 8080))
    connection.sendall(b"a")
    assert connection.recv(1) == b"a"
    return connection

def client(family, address):
    connection = opened(family, address)
    for end in ("client", "server", "both"):
        if end != "client":
            connection.sendall(b"f")
            time.sleep(0.3)
        if end == "server":
            try:
                connection.sendall(b"a")
                connection.recv(1)
                sys.exit("the server has not forgotten")
            except ConnectionError:
                connection.close()
        else:
            forget(connection)
        begin = time.monotonic()
        connection = opened(family, address)
        print(end, time.monotonic() - begin, flush=True)

def server(family, address):
    listener = socket.create_server((address, 8080), family=family)
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

family = socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET
{"client": client, "server": server}[sys.argv[1]](family, sys.argv[2])
"""


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_ends_that_forget_open_their_connection_again(family: str, tmp_path: Path) -> None:
    script = tmp_path / "ends.py"
    script.write_text(ENDS)
    topology = Topology("forgetful")
    topology.add_switch("s1")
    for host in ("h1", "h2"):
        topology.add_host(host)
        topology.add_link(host, "s1", rate_bps=1_000_000_000, delay_ms=1)
    topology.add_ipv6()
    controller = FirewallController(RULES, reaction_delay_ms=1)
    with (
        hosts(topology) as (namespaces, interfaces),
        LiveNetwork(topology, compile_firewall("routed"), [controller], interfaces=interfaces),
    ):
        h2 = topology.hosts["h2"]
        h2 = topology.hosts["h2"]
        interface = h2.address if family == "ipv4" else h2.ipv6
        assert interface is not None
        address = str(interface.ip)
        server = start(namespaces["h2"], *interpreter.script(script, "server", address))
        wait_listening(namespaces["h2"], (8080,))
        client = start(namespaces["h1"], *interpreter.script(script, "client", address))
        said = client.communicate(timeout=90)[0]
        server.kill()
        server.communicate()
        dropped = controller.drops("s1")
    assert client.returncode == 0, (said, dropped)
    took = dict(line.split() for line in said.splitlines())
    assert set(took) == {"client", "server", "both"}, (said, dropped)
    # At most one first segment is sent again, after a second.
    assert max(map(float, took.values())) < 3, took
    assert not {name for name in dropped if name.startswith("tcp")}, dropped
