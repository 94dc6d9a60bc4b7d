"""``holdfast demo --live``: the demo with the kernel's hosts.

Two network namespaces are the hosts; real ``ping`` and ``iperf3`` (one TCP stream of 20 Mb/s, one UDP stream) run through the
same switches, links and controllers as in the simulation, on the wall clock. Needs root, ``ip``, ``ping`` and ``iperf3``.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from holdfast import _core
from holdfast.demo import MECHANISMS, DemoParameters, mechanism, topology
from holdfast.errors import LiveError
from holdfast.network import LiveNetwork
from holdfast.plots import delivered_over_time
from holdfast.topology import Topology

TCP_PORT, UDP_PORT = 5201, 5202
TCP_RATE_BPS = 20_000_000
"""Well below the links' rate, so that no queue overflows and what TCP loses it loses to the cut."""

INTERVAL_S = 0.1
"""Of iperf3's reports and of the pings."""


@dataclass(frozen=True)
class LiveRow:
    """What one mechanism did to the kernel's hosts.

    ``udp_outage_ms`` and ``tcp_stall_ms``: longest run of iperf3 intervals (100 ms) in which nothing arrived.
    ``tcp_timeouts``: retransmission timeouts of the sender (TcpExt TCPTimeouts). ``tcp_retransmits``: segments sent again.
    """

    udp_sent: int
    udp_delivered: int
    udp_lost: int
    udp_outage_ms: float
    ping_sent: int
    ping_lost: int
    ping_mean_ms: float | None
    tcp_megabytes: float
    tcp_stall_ms: float
    tcp_retransmits: int
    tcp_timeouts: int

    def columns(self) -> dict[str, object]:
        """By name, for tables."""
        return asdict(self)


def check_machine() -> None:
    """Raises :class:`LiveError` naming everything that is missing."""
    missing = [tool for tool in ("ip", "ping", "iperf3") if shutil.which(tool) is None]
    if missing:
        raise LiveError(f"not installed: {', '.join(missing)} (Debian packages iproute2, iputils-ping, iperf3)")
    if reason := _core.interfaces_ready():
        raise LiveError(f"cannot open network interfaces: {reason}")


@contextmanager
def hosts(network_topology: Topology) -> Iterator[tuple[dict[str, _core.Namespace], dict[str, str]]]:
    """A namespace per host, configured; and the outer interface of each. Removed on the way out."""
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
            namespaces[name] = namespace
        yield namespaces, interfaces


def start(namespace: _core.Namespace, *command: str) -> subprocess.Popen[str]:
    """A command in a namespace, with all that it says in its standard output."""
    return subprocess.Popen(
        [*namespace.exec_prefix, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def _timeouts(namespace: _core.Namespace) -> tuple[int, int]:
    """TCP retransmission timeouts and retransmitted segments so far, from the namespace's own counters."""
    values: dict[str, int] = {}
    for file in ("/proc/net/netstat", "/proc/net/snmp"):
        text = namespace.run(["cat", file]).stdout.splitlines()
        for names, numbers in zip(text[::2], text[1::2], strict=True):
            prefix = names.split(":")[0]
            for name, number in zip(names.split()[1:], numbers.split()[1:], strict=True):
                values[f"{prefix}.{name}"] = int(number)
    return values["TcpExt.TCPTimeouts"], values["Tcp.RetransSegs"]


def wait_listening(namespace: _core.Namespace, ports: tuple[int, ...]) -> None:
    """Until iperf3's servers accept connections."""
    deadline = time.monotonic() + 5
    wanted = {f":{port:04X}" for port in ports}
    while time.monotonic() < deadline:
        text = namespace.run(["cat", "/proc/net/tcp", "/proc/net/tcp6"], check=False).stdout
        if all(any(port in line and " 0A " in line for line in text.splitlines()) for port in wanted):
            return
        time.sleep(0.02)
    raise LiveError("iperf3's servers did not start within 5 s")


def _finish(process: subprocess.Popen[str], name: str, timeout_s: float) -> str:
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
        raise LiveError(f"{name} did not end in time; it said: {output[-300:]}") from None
    return output


def iperf3_report(output: str, name: str) -> dict[str, Any]:
    """What iperf3 printed as JSON; raises :class:`LiveError` with its reason if it failed."""
    try:
        report: dict[str, Any] = json.loads(output)
    except ValueError:
        raise LiveError(f"{name} printed no report: {output[-300:]}") from None
    if "error" in report:
        raise LiveError(f"{name}: {report['error']}")
    return report


def _longest_silence_ms(intervals: list[dict[str, Any]], key: str) -> float:
    longest = current = 0.0
    for interval in intervals:
        total = interval["sum"]
        current = current + total["seconds"] if total[key] == 0 else 0.0
        longest = max(longest, current)
    return round(longest * 1000)


def _run_one(name: str, parameters: DemoParameters, out: Path) -> tuple[LiveRow, list[tuple[float, float]]]:
    network_topology = topology(parameters)
    program, controller = mechanism(name, parameters.reaction_delay_ms)
    with (
        hosts(network_topology) as (namespaces, interfaces),
        LiveNetwork(
            network_topology,
            program,
            [controller],
            interfaces=interfaces,
            seed=parameters.seed,
            detection_delay_ms=parameters.detection_delay_ms,
            executor=parameters.executor,
        ) as network,
        ExitStack() as stack,
    ):
        h1, h2 = namespaces["h1"], namespaces["h2"]
        target = str(network_topology.hosts["h2"].address.ip)
        servers = [
            start(h2, "iperf3", "--server", "--one-off", "--json", "--interval", str(INTERVAL_S), "--port", str(port))
            for port in (TCP_PORT, UDP_PORT)
        ]
        for server in servers:
            stack.callback(server.kill)
        wait_listening(h2, (TCP_PORT, UDP_PORT))
        before = _timeouts(h1)
        start_s = network.core.now_ps / 1e12 + 0.1
        network.set_link("s1-s2", up=False, at_s=start_s + parameters.failure_s)
        network.set_link("s1-s2", up=True, at_s=start_s + parameters.repair_s)
        network.wait_until(start_s)
        client = (
            "iperf3",
            "--client",
            target,
            "--json",
            "--interval",
            str(INTERVAL_S),
            "--time",
            f"{parameters.duration_s:g}",
        )
        rate_bps = round(parameters.packets_per_s * parameters.payload_bytes * 8)
        udp = ("--udp", "--bitrate", str(rate_bps), "--length", str(parameters.payload_bytes), "--port", str(UDP_PORT))
        tcp = ("--bitrate", str(TCP_RATE_BPS), "--length", "8K", "--port", str(TCP_PORT))
        count = round(parameters.duration_s / INTERVAL_S)
        processes = {
            "iperf3-tcp": start(h1, *client, *tcp),
            "iperf3-udp": start(h1, *client, *udp),
            "ping": start(h1, "ping", "-n", "-D", "-i", str(INTERVAL_S), "-c", str(count), "-W", "1", target),
        }
        for process in processes.values():
            stack.callback(process.kill)
        network.wait_until(start_s + parameters.duration_s)
        outputs = {label: _finish(process, label, 20) for label, process in processes.items()}
        for label, server in zip(("iperf3-tcp-server", "iperf3-udp-server"), servers, strict=True):
            outputs[label] = _finish(server, label, 20)
        after = _timeouts(h1)
    for label, output in outputs.items():
        (out / f"{name}-{label}.{'txt' if label == 'ping' else 'json'}").write_text(output)
    return _row(outputs, before, after)


def _row(
    outputs: dict[str, str], before: tuple[int, int], after: tuple[int, int]
) -> tuple[LiveRow, list[tuple[float, float]]]:
    udp = iperf3_report(outputs["iperf3-udp-server"], "iperf3 (UDP, server)")
    tcp = iperf3_report(outputs["iperf3-tcp-server"], "iperf3 (TCP, server)")
    sent = iperf3_report(outputs["iperf3-udp"], "iperf3 (UDP)")["end"]["sum"]["packets"]
    # The server's own count ends with the last packet that it saw, so losses are counted against the sender's.
    delivered = sum(i["sum"]["packets"] - i["sum"]["lost_packets"] for i in udp["intervals"])
    counts = re.search(r"(\d+) packets transmitted, (\d+) received", outputs["ping"])
    if counts is None:
        raise LiveError(f"ping printed no statistics: {outputs['ping'][-300:]}")
    mean = re.search(r"= [\d.]+/([\d.]+)/", outputs["ping"])
    curve = [(i["sum"]["end"], i["sum"]["bits_per_second"] / 1e6) for i in tcp["intervals"]]
    row = LiveRow(
        udp_sent=sent,
        udp_delivered=delivered,
        udp_lost=sent - delivered,
        udp_outage_ms=_longest_silence_ms(udp["intervals"], "bytes"),
        ping_sent=int(counts[1]),
        ping_lost=int(counts[1]) - int(counts[2]),
        ping_mean_ms=float(mean[1]) if mean else None,
        tcp_megabytes=round(sum(i["sum"]["bytes"] for i in tcp["intervals"]) / 1e6, 2),
        tcp_stall_ms=_longest_silence_ms(tcp["intervals"], "bytes"),
        tcp_retransmits=after[1] - before[1],
        tcp_timeouts=after[0] - before[0],
    )
    return row, curve


def run(parameters: DemoParameters, out: Path, progress: Callable[[str], None] = lambda _: None) -> dict[str, LiveRow]:
    """Runs the three mechanisms one after the other; writes ``summary.json``, ``demo.png`` and all tools' own output."""
    check_machine()
    out.mkdir(parents=True, exist_ok=True)
    rows: dict[str, LiveRow] = {}
    curves = {}
    for name in MECHANISMS:
        progress(f"{name}: {parameters.duration_s:g} s of ping, iperf3 TCP and iperf3 UDP ...")
        rows[name], curve = _run_one(name, parameters, out)
        curves[name] = ([t for t, _ in curve], [rate for _, rate in curve])
    (out / "summary.json").write_text(json.dumps({name: asdict(row) for name, row in rows.items()}, indent=2) + "\n")
    delivered_over_time(
        out / "demo.png",
        curves,
        offered_per_s=TCP_RATE_BPS / 1e6,
        failure_s=parameters.failure_s,
        repair_s=parameters.repair_s,
        title="The same cut under the kernel's TCP (iperf3, 20 Mb/s)",
        ylabel="TCP goodput (Mb/s)",
    )
    return rows
