"""One run in real time: a mechanism under one failure, with the kernel's hosts. The live twin of :mod:`holdfast.compare.runs`.

Every host is a network namespace with a program of its own (:mod:`holdfast.live.traffic_host`): UDP probes, which go to a group
that the receivers join if the mechanism's switches copy; echo requests that the other host's kernel answers; the kernel's TCP. The
switches run the same programs in one network under the wall clock, controllers talk to them over gRPC, and the measures are the
same. Each run is a network of its own. A scenario that is too much for real time, or that the kernel cannot do, is refused before
anything runs.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from holdfast import interpreter
from holdfast.compare import mechanisms, telemetry
from holdfast.compare import scenario as scenarios
from holdfast.compare.doubts import LATE_MS
from holdfast.compare.flows import Flow, Reception, flows_of, not_protected, receptions_of
from holdfast.compare.inputs import DRAIN_S, NO_FAILURE
from holdfast.compare.measures import Connection, Stream, bins_of, entries, links_used, row, stream_of
from holdfast.compare.mechanism import Mechanism
from holdfast.compare.rows import SKIPPED, RunRow
from holdfast.compare.runs import is_used, schedule, setting_of
from holdfast.compare.scenario import Scenario
from holdfast.compare.traffic_file import PingEntry, TcpEntry, UdpEntry
from holdfast.errors import LiveError, ScenarioError
from holdfast.live import traffic_host
from holdfast.live.hosts import LiveHost, check_machine, hosts, preferred
from holdfast.live.traffic_host import Seen, Told
from holdfast.network import LiveNetwork
from holdfast.traffic import KERNEL_CONGESTION, TcpOptions

SWITCHES, HOSTS = 32, 32
"""The most switches and hosts: one thread is all the switches, and every host is a process."""

PROBES_PER_S = 20_000
CONNECTIONS = 64

PAYLOAD_BYTES = 1472
"""The largest payload of a UDP packet or an echo request through a host's interface, whose MTU is 1500."""

LONGEST_S = 1800
"""The longest time of a comparison in seconds; a longer one is refused."""

RUN_S, HOST_S = 1.5, 0.2
"""The approximate time that a run, and each host, takes beside the run's own: interfaces, switches, processes."""

ATTEMPTS = 3
"""A run that the machine held up (``LATE_MS``) is made again, so many times in all; and so are a mechanism's runs if the
undisturbed one was disturbed (:meth:`holdfast.compare.comparison.Comparison.disturbed`)."""

LEAD_S = 0.1
"""The time from the signal to the hosts to their start."""

UDP_PORT, TCP_PORT = 10_000, 30_000
"""The ports of the first flow; further flows have the following ones."""


def check(scenario: Scenario, chosen: Sequence[Mechanism], seeds: Sequence[int]) -> None:
    """Raise :class:`ScenarioError` or :class:`LiveError`, with one sentence, if the comparison cannot run in real time.

    The reason is in the scenario, the mechanisms, or the machine.
    """
    topology, traffic = scenario.topology, scenario.traffic
    if len(topology.switches) > SWITCHES or len(topology.hosts) > HOSTS:
        raise ScenarioError(
            f"{topology.name} has {len(topology.switches)} switches and {len(topology.hosts)} hosts; in real time there can be at"
            f" most {SWITCHES} and {HOSTS}: leave out --live"
        )
    for where, entry in traffic.entries():
        _check_entry(where, entry)
    probes = sum(_per_s(each.flow) for each in receptions_of(scenario) if each.flow.is_probe)
    if probes > PROBES_PER_S:
        raise ScenarioError(f"the traffic has {probes:.0f} probes/s; live there can be at most {PROBES_PER_S}")
    tcp = sum(not flow.is_probe for flow in flows_of(scenario))
    if tcp > CONNECTIONS:
        raise ScenarioError(f"the traffic has {tcp} TCP connections; live there can be at most {CONNECTIONS}")
    runs = len(chosen) * len(seeds) * (1 + len(scenario.failures))
    if (takes_s := runs * (scenario.times.end_s + DRAIN_S + RUN_S + HOST_S * len(topology.hosts))) > LONGEST_S:
        raise ScenarioError(
            f"{runs} runs in real time would take about {takes_s / 60:.0f} minutes; give fewer failures, mechanisms or seeds,"
            f" at most {LONGEST_S // 60} minutes together, or leave out --live"
        )
    check_machine(["ip"])
    known = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="utf-8").split()
    for where, entry in traffic.entries():
        if isinstance(entry, TcpEntry) and (name := _congestion(entry)) not in known:
            raise LiveError(f"{where}: this kernel has no congestion control {name!r} (it has {', '.join(known)})")


def _check_entry(where: str, entry: object) -> None:
    if isinstance(entry, TcpEntry):
        known = TcpOptions.kernel_too()
        given = (
            set() if entry.options is None else {*entry.options.given(), *entry.options.model_fields_set & {"preset"}}
        )
        if others := sorted(given.difference(known)):
            raise ScenarioError(
                f"{where}: options.{others[0]} is not the kernel's to choose; live there are {', '.join(sorted(known))}"
            )
    elif isinstance(entry, UdpEntry | PingEntry) and entry.payload_bytes > PAYLOAD_BYTES:
        raise ScenarioError(
            f"{where}: payload_bytes is {entry.payload_bytes}; a live host's interface takes at most {PAYLOAD_BYTES}"
        )


def _congestion(entry: TcpEntry) -> str:
    wanted = entry.tcp_options().congestion or "cubic"
    return KERNEL_CONGESTION.get(wanted, wanted)


def _per_s(flow: Flow) -> float:
    if isinstance(flow.entry, UdpEntry):
        return flow.entry.packets_per_s
    return 1000 / flow.entry.interval_ms if isinstance(flow.entry, PingEntry) else 0.0


def measured(point: Mapping[str, Any], _: int) -> RunRow:
    """Run the mechanism, failure and seed of ``point`` in real time; return the row for :func:`holdfast.sweep.run`.

    It is like :func:`holdfast.compare.runs.measured`.
    """
    path, mechanism, seed, failure = (point[name] for name in ("scenario", "mechanism", "network_seed", "failure"))
    origin: str | None = point.get("origin")
    still = _undisturbed(path, mechanism, seed, origin, point.get("attempt", 0))
    if failure == NO_FAILURE:
        return still
    if not is_used(scenarios.read(path).topology, failure, still["links_used"]):
        return SKIPPED
    return _run_in_time(path, mechanism, seed, failure, origin)


@lru_cache(maxsize=1)
def _undisturbed(path: str, mechanism: str, seed: int, origin: str | None, _attempt: int) -> RunRow:
    """Run a mechanism without a failure, once per attempt in this process, and return its row.

    ``origin``: the place (``FILE.py:NAME`` or ``MODULE:NAME``) of a mechanism from outside, None for one of Holdfast's. Runs with a
    failure need to know which links it used.
    """
    return _run_in_time(path, mechanism, seed, NO_FAILURE, origin)


def _run_in_time(path: str, mechanism: str, seed: int, failure: str, origin: str | None) -> RunRow:
    """Run until no event was more than ``LATE_MS`` late, ``ATTEMPTS`` times at most; return the last run's row.

    ``origin``: the place (``FILE.py:NAME`` or ``MODULE:NAME``) of a mechanism from outside, None for one of Holdfast's. The row
    says how late events were.
    """
    repeated = 0
    while _late_ms(found := _run(path, mechanism, seed, failure, origin)) > LATE_MS and repeated < ATTEMPTS - 1:
        repeated += 1
    return {**found, "repeated": repeated}


def _late_ms(found: RunRow) -> float:
    return max(found["max_lateness_ms"], found["sender_lateness_ms"])


def _run(path: str, mechanism: str, seed: int, failure: str, origin: str | None) -> RunRow:
    scenario = scenarios.read(path)
    setting = setting_of(path, scenario)
    chosen = mechanisms.of_run(mechanism, origin)
    built = chosen.built(setting, telemetry=scenario.telemetry)
    times = scenario.times
    with TemporaryDirectory() as folder:
        captured = Path(folder) / "reports.pcap"
        with ExitStack() as stack:
            namespaces, interfaces = stack.enter_context(hosts(setting.topology))
            with preferred():
                network = stack.enter_context(
                    LiveNetwork(
                        setting.topology,
                        built.program,
                        [built.controller],
                        interfaces=interfaces,
                        seed=seed,
                        detection_delay_ms=times.detection_delay_ms,
                        executor=scenario.executor,
                    )
                )
            count = entries(network)
            if scenario.telemetry:
                # Without an address, the kernel of the collector's host does not answer that nobody takes the reports.
                namespaces[telemetry.COLLECTOR].run(["ip", "address", "flush", "dev", "eth0"])
                network.capture(telemetry.COLLECTOR, 0, captured)
            given = _given(scenario, seed, multicast=chosen.multicast)
            processes = {
                name: stack.enter_context(_Process(name, namespaces[name], each)) for name, each in given.items()
            }
            for process in processes.values():
                process.wait_ready()
            before = network.wall_statistics()
            bytes_before = network.bytes_on_wire()
            start_ns = time.monotonic_ns() + round(LEAD_S * 1e9)
            start_s = network.now_ps / 1e12 + (start_ns - time.monotonic_ns()) / 1e9
            for process in processes.values():
                process.begin(start_ns)
            cut_off = schedule(network, failure, start_s + times.failure_s, start_s + times.repair_s)
            network.wait_until(start_s + times.end_s + DRAIN_S)
            outputs = {name: process.result() for name, process in processes.items()}
            after = network.wall_statistics()
            wire_bytes = network.bytes_on_wire() - bytes_before
            used = links_used(network)
        reported = telemetry.read(captured, times, start_s, setting.topology) if scenario.telemetry else None
    events = max(1, after.events - before.events)
    found = cast(RunRow, row(scenario, _seen(scenario, outputs, multicast=chosen.multicast), cut_off, wire_bytes))
    found["skipped"] = False
    if reported is not None:
        found["telemetry"] = json.dumps(reported)
    found["mean_lateness_ms"] = round((after.total_lateness_ps - before.total_lateness_ps) / events / 1e9, 6)
    found["max_lateness_ms"] = round(after.max_lateness_ps / 1e9, 6)
    found["sender_lateness_ms"] = round(max(output["latest_ns"] for output in outputs.values()) / 1e6, 6)
    if failure == NO_FAILURE:
        found["links_used"] = used
        found["entries"] = count
        found["join_updates"] = found["join_switches"] = None
        found["unprotected"] = not_protected(setting.flows, built.unprotected)
    return found


# ---- Messages to and from the hosts ----


def _sent(receptions: Sequence[Reception], *, multicast: bool) -> list[int]:
    """Return for each reception (flow and receiver) the index under which its source knows the stream.

    That is the reception's own index, or for a flow sent to a multicast group the index of its first reception.
    """
    first: dict[int, int] = {}
    for i, each in enumerate(receptions):
        first.setdefault(each.flow.place, i)
    return [first[each.flow.place] if multicast and each.flow.ends.group else i for i, each in enumerate(receptions)]


def _given(scenario: Scenario, seed: int, *, multicast: bool) -> dict[str, Told]:
    """Return by host the streams that it sends and receives; a stream is named by the index of its reception.

    With ``multicast``, a flow with several receivers is sent once, to its group; otherwise once to each receiver.
    """
    end_ns = round(scenario.times.end_s * 1e9)
    found: dict[str, Told] = {
        host: {
            "bin_ns": scenario.bin_ms * 1_000_000,
            "stop_ns": end_ns + round(DRAIN_S * 1e9),
            "udp_send": [],
            "udp_receive": [],
            "ping": [],
            "tcp_send": [],
            "tcp_receive": [],
        }
        for ends in scenario.traffic.flows()
        for host in ends.hosts
    }
    receptions = receptions_of(scenario)
    for i, (reception, sent) in enumerate(zip(receptions, _sent(receptions, multicast=multicast), strict=True)):
        entry, (sender, receiver) = reception.flow.entry, (found[host] for host in reception.hosts)
        group = reception.flow.ends.group if multicast else None
        address = group or str(scenario.topology.hosts[reception.receiver].address.ip)
        begin_ns = round(reception.flow.start_s * 1e9)
        if isinstance(entry, TcpEntry):
            options, port = entry.tcp_options(), TCP_PORT + i
            sender["tcp_send"].append(
                {
                    "flow": i,
                    "address": address,
                    "port": port,
                    "begin_ns": begin_ns,
                    "transfer_bytes": entry.transfer_bytes,
                    "congestion": _congestion(entry),
                    "mss": None if entry.options is None else entry.options.mss,
                    "bytes_per_s": None if entry.rate_bps is None else round(entry.rate_bps / 8),
                    "nagle": options.nagle is not False,
                }
            )
            receiver["tcp_receive"].append(
                {
                    "flow": i,
                    "port": port,
                    "window_bytes": options.window_limit_bytes,
                    "transfer_bytes": entry.transfer_bytes,
                }
            )
            continue
        stream: traffic_host.Stream = {
            "flow": i,
            "address": address,
            "begin_ns": begin_ns,
            "end_ns": end_ns,
            "interval_ns": 1e9 / entry.packets_per_s if isinstance(entry, UdpEntry) else 1e6 * entry.interval_ms,
            "payload_bytes": entry.payload_bytes,
        }
        if isinstance(entry, PingEntry):
            sender["ping"].append(stream)
            continue
        if entry.spacing == "poisson":
            stream["poisson_seed"] = seed * 100_000 + i
        udp = cast(traffic_host.UdpStream, stream)
        udp["port"] = UDP_PORT + sent
        if sent == i:
            sender["udp_send"].append(udp)
        receiver["udp_receive"].append({"flow": i, "port": udp["port"], "group": group})
    return found


def _seen(scenario: Scenario, outputs: Mapping[str, Seen], *, multicast: bool) -> list[Stream | Connection]:
    """Return the measured stream or connection of each reception, from the reports of both its hosts.

    ``multicast``: a flow was sent once to its group, so that the receptions of its receivers share the sender's report.
    """
    receptions = receptions_of(scenario)
    sent = _sent(receptions, multicast=multicast)
    return [
        _stream(each, str(sent[i]), str(i), outputs)
        if each.flow.is_probe
        else _connection(scenario, each, str(i), outputs)
        for i, each in enumerate(receptions)
    ]


def _stream(reception: Reception, sent: str, index: str, outputs: Mapping[str, Seen]) -> Stream:
    flow = reception.flow
    receiver = reception.source if isinstance(flow.entry, PingEntry) else reception.receiver
    sent_ps = [1000 * sent_ns for sent_ns in outputs[reception.source]["sent"].get(sent, [])]
    received = [
        (sequence, 1000 * sent_ns, 1000 * there_ns)
        for sequence, sent_ns, there_ns in outputs[receiver]["received"].get(index, [])
    ]
    constant = not (isinstance(flow.entry, UdpEntry) and flow.entry.spacing == "poisson")
    return stream_of(sent_ps, received, round(1e12 / _per_s(flow)), constant=constant)


def _connection(scenario: Scenario, reception: Reception, index: str, outputs: Mapping[str, Seen]) -> Connection:
    source, destination = (outputs[host] for host in reception.hosts)
    bins = destination["goodput"].get(index, {})
    finished_ns = destination["finished"].get(index)
    counts = source["connections"].get(index)
    return Connection(
        [bins.get(str(i), 0) for i in range(bins_of(scenario))],
        None if finished_ns is None else 1000 * finished_ns,
        None if counts is None else counts["timeouts"],
        None if counts is None else counts["retransmitted_bytes"],
    )


class _Process:
    """The program of a host; a context manager, which ends it whatever happens."""

    def __init__(self, name: str, namespace: LiveHost, given: Told) -> None:
        self.name = name
        program = traffic_host.__file__
        self._process = subprocess.Popen(
            [*namespace.exec_prefix, *interpreter.script(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._say(json.dumps(given))

    def __enter__(self) -> _Process:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._process.kill()
        self._process.communicate()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()

    def wait_ready(self) -> None:
        """Wait until the host's sockets are open. Raise :class:`LiveError` if the program did not start."""
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise LiveError(f"host {self.name} did not start: {self._last_words()}")

    def begin(self, start_ns: int) -> None:
        """Tell the host's program when to start, in nanoseconds of the monotonic clock."""
        self._say(str(start_ns))

    def result(self) -> Seen:
        """Wait for the end of the host's program and return its report.

        Raise :class:`LiveError` if it failed or did not end in time.
        """
        try:
            output, errors = self._process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            raise LiveError(f"host {self.name} did not end in time") from None
        if self._process.returncode:
            raise LiveError(f"host {self.name} failed: {errors.strip().splitlines()[-1:]}")
        found: Seen = json.loads(output)
        return found

    def _last_words(self) -> str:
        _, errors = self._process.communicate(timeout=20)
        return (errors.strip().splitlines() or ["it said nothing"])[-1]
