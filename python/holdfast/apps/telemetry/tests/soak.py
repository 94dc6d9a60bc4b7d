"""Soak test of the collector: ``holdfast collect`` takes the reports of a ``holdfast switch`` that is a sink, at a rate.

    python -P -m holdfast.apps.telemetry.tests.soak --seconds 300 --reports-per-s 100000

Sender, host and collector are namespaces; switch and collector are processes of their own, and this one sends. Each packet arrives
with the metadata of five nodes in its INT-MD stack, and the sink adds its own: a report of six hops. The result is JSON.
Reports that were sent are the switch's own count; losses are told by place.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address
from pathlib import Path

from holdfast import _core, interpreter
from holdfast.apps.telemetry import program
from holdfast.apps.telemetry.entries import PortRole, Reporter, switch_configuration
from holdfast.apps.telemetry.instructions import words
from holdfast.apps.telemetry.watchlist import DEFAULT_INSTRUCTIONS
from holdfast.control.desired import Writer
from holdfast.control.next_hop import NextHop
from holdfast.errors import LiveError
from holdfast.live import control
from holdfast.p4runtime import GrpcClient

HOST, NODE, COLLECTOR = 1, 2, 3
"""Ports: a host at the edge, the nodes that the packets have passed, the collector."""

NAMES = {HOST: "host", NODE: "node", COLLECTOR: "collector"}
COLLECTOR_ADDRESS = IPv4Address("10.0.3.1")
SINK = 6
"""The node ID of the switch, which is the sink; the other nodes are 1 to 5."""

FLOWS = 64
PAYLOAD_BYTES = 18


def mac(port: int, *, outside: bool) -> int:
    """Return the MAC address of the switch's ``port``, or with ``outside`` that of the interface behind it."""
    return 0x020000000000 + (0x10000 if outside else 0) + port


def frame(flow: int) -> bytes:
    """Return a UDP packet to the host with INT-MD headers (DSCP) and the metadata of nodes 5 to 1."""
    hop_words = words(DEFAULT_INSTRUCTIONS)
    # Node, ports, latency, queue, times.
    stack = b"".join(
        struct.pack(">IHHIIQQ", node, 1, 2, 10 * node, node, 1_000 * node, 1_010 * node) for node in range(5, 0, -1)
    )
    assert len(stack) == 5 * 4 * hop_words
    shim = struct.pack(">BBH", 1 << 4, 3 + len(stack) // 4, 0)
    header = struct.pack(">IHHHH", 2 << 28 | hop_words << 8 | 3, DEFAULT_INSTRUCTIONS, 0, 0, 0)
    segment = shim + header + stack + bytes(PAYLOAD_BYTES)
    udp = struct.pack(">HHHH", 1024 + flow, 2000, 8 + len(segment), 0) + segment
    addresses = IPv4Address("10.0.2.1").packed + IPv4Address("10.0.1.1").packed
    ip = struct.pack(">BBHHHBBH", 0x45, program.INT_DSCP << 2, 20 + len(udp), 0, 0, 64, 17, 0) + addresses
    total = sum(struct.unpack(">10H", ip))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    ip = ip[:10] + struct.pack(">H", total ^ 0xFFFF) + ip[12:]
    ethernet = mac(NODE, outside=False).to_bytes(6, "big") + mac(NODE, outside=True).to_bytes(6, "big") + b"\x08\x00"
    return ethernet + ip + udp


def configure(client: GrpcClient) -> None:
    """Configure the switch as the sink of packets to the host, which sends a report about each of them."""
    # The host's own address is another one, so that its kernel does not answer.
    to_host = NextHop(HOST, mac(HOST, outside=False), mac(HOST, outside=True) + 0x100)
    to_collector = NextHop(COLLECTOR, mac(COLLECTOR, outside=False), mac(COLLECTOR, outside=True))
    client.insert("ipv4_lpm", {"hdr.ipv4.dst_addr": "10.0.1.0/24"}, "forward", to_host.params())
    ports = {port: PortRole(mtu=1500, edge=port == HOST, interface=port) for port in (HOST, NODE)}
    reporter = Reporter(to_collector, IPv4Address("10.255.0.1"), COLLECTOR_ADDRESS, 50000, program.COLLECTOR_PORT)
    Writer(client).write(switch_configuration(SINK, ports, [], reporter))


class Process:
    """A command whose memory and time are watched; ``prefix`` is put in front of it."""

    def __init__(self, prefix: Sequence[str], *arguments: str) -> None:
        self._process = subprocess.Popen(
            [*prefix, *interpreter.module("holdfast", *arguments)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"COLUMNS": "250", "PYTHONUNBUFFERED": "1"},
        )
        self._stat = Path(f"/proc/{self._process.pid}")

    def wait_for(self, pattern: str) -> str:
        """Return the first line that matches ``pattern``. Raise :class:`LiveError` if the process ends before."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if re.search(pattern, line):
                return line
        raise LiveError("a process ended before it was ready")

    def cpu_s(self) -> float:
        """Return the process's user and system time, in seconds."""
        fields = (self._stat / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_mb(self) -> float:
        """Return the process's resident memory in megabytes (10^6 bytes)."""
        pages = int((self._stat / "statm").read_text(encoding="utf-8").split()[1])
        return round(pages * resource.getpagesize() / 1e6, 1)

    def end(self) -> str:
        """Terminate the process with SIGTERM, and return the rest of its output.

        SIGINT would be ignored if the parent process ignores it.
        """
        self._process.send_signal(signal.SIGTERM)
        return self._process.communicate(timeout=120)[0]

    def kill(self) -> None:
        """Kill the process if it is still running, and wait for its end."""
        self._process.kill()
        self._process.wait()


@dataclass(frozen=True)
class Soaked:
    """Counts of packets and reports, and the shares of one processor core that the processes used."""

    seconds: float
    sent_packets: int
    switch_overruns: int
    reports: int
    """Reports that the switch has sent, by its program's counter."""
    reports_per_s: float
    port_drops: int
    """Reports that the interface towards the collector did not take."""
    received: int
    decoded: int
    socket_drops: int
    """Packets that the kernel dropped for want of room at the collector's socket."""
    malformed: int
    lost_by_sequence: int
    unexplained: int
    """Reports that left the switch, and that nobody counted."""
    hops: list[int]
    """Nodes on the path, as the collector shows it."""
    collector_rss_mb: list[float]
    """The collector's resident memory in megabytes: at the start, then at each tenth of the time."""
    collector_cpu: float
    switch_cpu: float


@contextmanager
def network() -> Iterator[tuple[dict[int, _core.Namespace], Process, GrpcClient, int]]:
    """Run a switch between namespaces; yield the namespaces by port, the switch, a client of it, and its device id."""
    with ExitStack() as stack:
        namespaces, interfaces = {}, []
        for port, name in NAMES.items():
            namespaces[port] = stack.enter_context(_core.Namespace(name))
            outer = namespaces[port].add_veth("eth0", mac=mac(port, outside=True).to_bytes(6, "big"))
            interfaces += ["-i", f"{port}@{outer}"]
        namespaces[COLLECTOR].add_address("eth0", f"{COLLECTOR_ADDRESS}/24")
        # Reports come from an address that is not on the link.
        namespaces[COLLECTOR].add_route("0.0.0.0/0", "eth0")
        device_id = os.getpid()
        source = str(program.HERE / "telemetry.p4")
        switch = Process((), "switch", source, *interfaces, "--grpc", "127.0.0.1:0", "--device-id", str(device_id))
        stack.callback(switch.kill)
        found = re.search(r"127\.0\.0\.1:\d+", switch.wait_for(r"127\.0\.0\.1:\d+"))
        assert found is not None
        client = stack.enter_context(GrpcClient(found[0], device_id=device_id))
        yield namespaces, switch, client, device_id


def run(seconds: float, reports_per_s: float, collect: Sequence[str] = ()) -> Soaked:
    """Send packets through the switch for ``seconds`` and collect its reports; return what was sent, lost and used.

    ``collect``: more options of ``holdfast collect``. Raise :class:`LiveError` if something does not start.
    """
    with network() as (namespaces, switch, client, device_id), ExitStack() as stack:
        configure(client)
        listen = ("--listen", f"{COLLECTOR_ADDRESS}:{program.COLLECTOR_PORT}")
        collector = Process(namespaces[COLLECTOR].exec_prefix, "collect", *listen, *collect)
        stack.callback(collector.kill)
        collector.wait_for("listening at")
        rss_mb = [collector.rss_mb()]
        before = [each.cpu_s() for each in (collector, switch)]
        over = threading.Event()

        def watch() -> None:
            while not over.wait(seconds / 10):
                rss_mb.append(collector.rss_mb())

        watcher = threading.Thread(target=watch)
        watcher.start()
        frames = [frame(flow) for flow in range(FLOWS)]
        load = namespaces[NODE].send_load("eth0", frames, duration_s=seconds, packets_per_s=reports_per_s)
        over.set()
        watcher.join()
        rss_mb.append(collector.rss_mb())
        elapsed_s = load.elapsed_ns / 1e9
        shares = [(each.cpu_s() - since) / elapsed_s for each, since in zip((collector, switch), before, strict=True)]
        # Packets on their way arrive, and the collector looks at its socket's drops.
        time.sleep(2.5)
        reports = client.counter(program.COUNTERS["reports"], 0)[0]
        ports = {row.port: row for row in control.ask(device_id, control.ListPorts(), control.Ports).ports}
        shown = collector.end()
        switch.end()
    counts = re.search(
        r"([\d,]+) reports in ([\d,]+) packets; ([\d,]+) lost on the way, ([\d,]+) beyond capacity, ([\d,]+) malformed",
        " ".join(shown.split()),
    )
    if counts is None:
        raise LiveError(f"the collector printed {shown!r}")
    decoded, received, lost, socket_drops, malformed = (int(text.replace(",", "")) for text in counts.groups())
    path = re.search(r"10\.0\.2\.1:\d+ > 10\.0\.1\.1:2000 udp\W+[\d,]+\W+([\d ]+\d)\s", shown)
    port_drops = ports[COLLECTOR].tx_drops
    return Soaked(
        seconds=round(elapsed_s, 2),
        sent_packets=load.sent,
        switch_overruns=ports[NODE].rx_overrun_drops,
        reports=reports,
        reports_per_s=round(reports / elapsed_s),
        port_drops=port_drops,
        received=received,
        decoded=decoded,
        socket_drops=socket_drops,
        malformed=malformed,
        lost_by_sequence=lost,
        unexplained=reports - port_drops - received - socket_drops,
        hops=[int(node) for node in path[1].split()] if path else [],
        collector_rss_mb=rss_mb,
        collector_cpu=round(shares[0], 3),
        switch_cpu=round(shares[1], 3),
    )


def main() -> int:
    """Run the soak that the command line describes, and print its result as JSON; return 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--reports-per-s", type=float, default=100_000.0)
    parser.add_argument("--nice", type=int, default=0, help="of switch, collector and sender")
    parser.add_argument("--parquet", type=Path, help="the collector writes rows there, too")
    given = parser.parse_args()
    if given.nice:
        os.nice(given.nice)
    collect = () if given.parquet is None else ("--parquet", str(given.parquet))
    print(json.dumps(asdict(run(given.seconds, given.reports_per_s, collect=collect))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
