"""Types of the native core: compiler, switch and network. The package around it is the public interface.

``help(holdfast._core.Network)`` and so on give the documentation, which is beside the code in ``crates/py``.

Units are in the names: ``_ps`` picoseconds, ``_bps`` bits per second. Ids are P4Runtime ids, as in the program's P4Info.
"""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address
from os import PathLike
from pathlib import Path
from subprocess import CompletedProcess
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, final

from holdfast.measurements import (
    InterfaceCounters,
    Load,
    PortStatistics,
    ProgramMeasurement,
    SimulationMeasurement,
    TableMeasurement,
    WallStatistics,
)

__all__ = [
    "COMMIT",
    "COPIES_PER_S",
    "LATENCY_BUCKETS",
    "REPORT_RULES",
    "Batch",
    "Benchmark",
    "CompileError",
    "ControlError",
    "Diagnostic",
    "EntryEncoder",
    "Failures",
    "HoldfastError",
    "Namespace",
    "Network",
    "Notification",
    "Pipeline",
    "Program",
    "Reading",
    "Reconciliation",
    "ReportCollector",
    "ReportSocket",
    "Switch",
    "WriteRequest",
    "clean",
    "decode_reports",
    "decode_thesis_report",
    "extent",
    "give_back_freed",
    "interfaces_ready",
    "measure_simulation",
    "measure_table",
    "probe",
    "read_pcap",
    "run_stf",
    "set_up_allocator",
    "simulations",
    "stf_scripts",
    "tables",
    "write_pcap",
]

_Result = TypeVar("_Result")

class HoldfastError(Exception): ...

class CompileError(HoldfastError):
    diagnostics: list[Diagnostic]

class ControlError(HoldfastError):
    code: str

@final
class Diagnostic:
    code: str
    severity: Literal["error", "warning"]
    message: str
    file: str
    line: int
    column: int
    rendered: str

@final
class Program:
    @staticmethod
    def compile(path: str, include_dirs: Sequence[str] = (), defines: dict[str, str] = ...) -> Program: ...
    @staticmethod
    def compile_text(
        source: str, name: str = "program.p4", include_dirs: Sequence[str] = (), defines: dict[str, str] = ...
    ) -> Program: ...
    @staticmethod
    def examine(path: str, include_dirs: Sequence[str] = (), defines: dict[str, str] = ...) -> list[Diagnostic]: ...
    @staticmethod
    def from_artifact(data: bytes, p4info: str = "") -> Program: ...
    def artifact(self) -> bytes: ...
    @property
    def name(self) -> str: ...
    @property
    def p4info(self) -> str: ...
    @property
    def ir_text(self) -> str: ...
    @property
    def p4info_message(self) -> bytes: ...
    @property
    def warnings(self) -> list[Diagnostic]: ...

@final
class Switch:
    def __new__(
        cls,
        program: Program,
        *,
        executor: Literal["jit", "interpreter"] = "jit",
        cpu_port: int | None = None,
        seed: int = 0,
    ) -> Self: ...
    @property
    def cpu_port(self) -> int: ...
    def set_program(self, program: Program) -> None: ...
    def replace_with(self, prepared: Switch, reconciliation: Reconciliation | None = None) -> None: ...
    @property
    def program(self) -> Program: ...
    def set_port_up(self, port: int, up: bool) -> None: ...
    def port_is_up(self, port: int) -> bool: ...
    def drops(self) -> dict[str, int]: ...
    def digests_lost(self) -> int: ...
    def table_fill(self) -> list[tuple[str, int, int]]: ...
    def set_now_ps(self, now_ps: int) -> None: ...
    def next_deadline_ps(self) -> int | None: ...
    def packet_out(self, packet: bytes) -> None: ...
    def process(self, port: int, packet: bytes, now_ps: int | None = None) -> list[tuple[int, bytes]]: ...
    def trace(
        self, port: int, packet: bytes, now_ps: int | None = None, *, text: bool = False, assignments: bool = False
    ) -> str: ...

def extent(data: bytes, field: int) -> tuple[int, int]: ...

@final
class Failures:
    def __new__(cls) -> Self: ...
    def __len__(self) -> int: ...
    def add(self, first: int, end: int, code: str, number: int, message: str) -> None: ...
    def first(self, most: int) -> list[tuple[int, str, str]]: ...
    def details(self, count: int, most: int) -> tuple[bytes, int, bool]: ...

@final
class EntryEncoder:
    def __new__(
        cls,
        table_id: int,
        fields: Sequence[tuple[str, int, int, str]],
        actions: Sequence[tuple[str, int, Sequence[tuple[str, int, int]]]],
    ) -> Self: ...
    def update(
        self,
        kind: int,
        match: dict[str, Any],
        action: str | None,
        params: dict[str, Any] | None,
        priority: int,
        metadata: bytes,
    ) -> bytes | None: ...

@final
class WriteRequest:
    def __new__(cls, data: bytes) -> Self: ...
    @property
    def device_id(self) -> int: ...
    @property
    def role_id(self) -> int: ...
    @property
    def role(self) -> str: ...
    @property
    def election_id(self) -> int | None: ...
    @property
    def atomicity(self) -> int: ...
    def __len__(self) -> int: ...

@final
class Pipeline:
    def __new__(
        cls, program: Program, p4info: bytes, translations: dict[str, dict[int, int] | dict[str, int]] = ...
    ) -> Self: ...
    def role_may(self, role: str, id: int) -> bool: ...
    def plan(self, request: WriteRequest) -> Batch: ...
    def reconcile(self, prepared: Switch, old: Pipeline, old_switch: Switch) -> Reconciliation: ...
    def read(self, switch: Switch, request: bytes) -> Reading: ...
    def packet_out(self, message: bytes) -> bytes: ...
    def packet_in(self, packet: bytes) -> bytes | None: ...
    def take_digests(self, switch: Switch, now_ns: int, most: int) -> list[tuple[int, bytes]]: ...
    def acknowledge(self, switch: Switch, digest_id: int, list_id: int) -> None: ...
    def take_idle(self, switch: Switch, now_ns: int, most: int) -> list[tuple[int, bytes]]: ...

@final
class Batch:
    def __len__(self) -> int: ...
    @property
    def applied(self) -> int: ...
    def apply(self, switch: Switch, most: int) -> None: ...
    def apply_atomic(self, switch: Switch) -> None: ...
    def take_failures(self) -> Failures: ...
    def tally(self, failures: Failures) -> list[tuple[str, str, str, int]]: ...

@final
class Reconciliation: ...

@final
class Reading:
    def next(self, switch: Switch) -> bytes | None: ...
    def failures(self) -> tuple[int, Failures]: ...

@final
class Notification:
    kind: Literal["port_change", "packet_in", "digest", "idle_timeout", "host_frame"]
    time_ps: int
    node: str
    port: int
    up: bool
    data: bytes

COMMIT: str | None
"""What ``make release`` built it from."""

COPIES_PER_S: int
"""Copies of copies that :meth:`Network.start` allows per second, unless it is told otherwise."""

@final
class Network:
    def __new__(cls, *, seed: int = 0, detection_delay_ps: int = 0, begin_ps: int = 0) -> Self: ...
    def add_switch(
        self, name: str, program: Program, *, executor: str = "jit", cpu_port: int | None = None, **switch: object
    ) -> Switch: ...
    def add_packet_generator(
        self,
        switch: str,
        port: int,
        packet: bytes,
        *,
        period_ps: int = 0,
        count: int = 0,
        start_ps: int = 0,
        on_port_down: bool = False,
        on_port_up: bool = False,
        port_offset: int | None = None,
    ) -> int: ...
    def add_host(
        self,
        name: str,
        *,
        mac: bytes,
        ipv4: str,
        prefix_len: int,
        gateway_mac: bytes,
        ipv6: tuple[str, int] | None = None,
    ) -> None: ...
    def add_host_with_cards(
        self,
        name: str,
        *,
        cards: Sequence[tuple[bytes, tuple[str, int], tuple[str, int] | None]],
        gateways: Sequence[str] = (),
        neighbours: Sequence[tuple[str, bytes]] = (),
        vlan: int | None = None,
    ) -> None: ...
    def add_interface(self, name: str, interface: str) -> None: ...
    def add_port(
        self, switch: str, port: int, interface: str, *, io: Literal["auto", "af_packet", "af_xdp"] = "auto"
    ) -> None: ...
    def remove_port(self, switch: str, port: int) -> PortStatistics: ...
    def port_statistics(self, switch: str, port: int) -> PortStatistics: ...
    def port_readings(self, switch: str, ports: Sequence[int]) -> list[tuple[int, PortStatistics, bool]]: ...
    def port_io(self, switch: str, port: int) -> Literal["af_packet", "af_xdp"] | None: ...
    def add_link(self, **link: object) -> int: ...
    def capture(
        self, node: str, port: int, path: str | PathLike[str], captured: Literal["both", "in", "out"] = "both"
    ) -> None: ...
    def log_packets(
        self, switch: str, path: str | PathLike[str] | None, most_per_s: int, *, dump_bytes: int = 0
    ) -> None: ...
    def take_failure(self) -> str | None: ...
    def trace_next(self, switch: str, port: int | None = None) -> None: ...
    def take_trace(self, switch: str, *, give_up: bool = False) -> str | None: ...
    def apply(self, **change: object) -> None: ...
    def declare_port(self, switch: str, port: int, down: bool) -> None: ...
    def count_drops(self) -> int: ...
    def fail_randomly(self, **failures: object) -> None: ...
    def add_udp_stream(
        self,
        source: str,
        destination: str,
        *,
        packets_per_s: float,
        payload_bytes: int,
        start_ps: int,
        stop_ps: int,
        source_port: int = 5001,
        destination_port: int = 5001,
        poisson: bool = False,
        log_packets: bool = True,
        family: Literal["ipv4", "ipv6"] = "ipv4",
    ) -> int: ...
    def add_ping(
        self,
        source: str,
        destination: str,
        *,
        interval_ps: int,
        start_ps: int,
        stop_ps: int,
        payload_bytes: int = 56,
        family: Literal["ipv4", "ipv6"] = "ipv4",
    ) -> int: ...
    def end_flow(self, flow: int) -> None: ...
    def add_tcp(
        self,
        client: str,
        server: str,
        *,
        client_port: int,
        server_port: int,
        start_ps: int,
        stop_ps: int | None = None,
        application: str = "bulk",
        bytes: int = 0,
        silence_ps: int = 0,
        exponential: bool = False,
        preset: str = "standard",
        options: dict[str, object],
        dscp: int = 0,
        goodput_bin_ps: int = 0,
        log_window: bool = False,
        family: Literal["ipv4", "ipv6"] = "ipv4",
    ) -> int: ...
    def join(
        self,
        host: str,
        group: str,
        *,
        sources: Sequence[str],
        excludes: bool,
        version: str | None = None,
        at_ps: int | None = None,
    ) -> None: ...
    def send_frame(self, node: str, frame: bytes) -> None: ...
    @property
    def now_ps(self) -> int: ...
    def set_reaction(self, reaction_ps: int | None) -> None: ...
    def run(self, until_ps: int) -> list[Notification]: ...
    def start(self, *, copies_per_s: int = ...) -> None: ...
    def poll(self, timeout_s: float) -> list[Notification]: ...
    def stop(self) -> None: ...
    def snapshot(self, kind: type[_Result], **subject: object) -> list[_Result]: ...
    def has_traffic_manager(self, switch: str) -> bool: ...
    def port_is_up(self, node: str, port: int) -> bool: ...
    def wall_statistics(self) -> WallStatistics: ...

LATENCY_BUCKETS: list[int]
"""Upper bounds of the histogram of a hop's latency."""

REPORT_RULES: list[str]
"""The rules that a telemetry report can break."""

_Flow = tuple[IPv4Address | IPv6Address, IPv4Address | IPv6Address, int, int, int]
_Report = tuple[
    tuple[int, int, int],
    tuple[bool, bool, bool, bool],
    tuple[int | None, ...],
    tuple[int | None, int | None],
    int,
    tuple[_Flow | None, int, tuple[Any, ...] | None],
]
_FlowState = tuple[int, int, int, list[int], int, int | None, int, int, int | None, int, int]
_HopState = tuple[int, int, int, int, int | None, list[int], int | None, int, int | None, int]

def decode_reports(payload: bytes, dscp: int, dscp_mask: int, udp_port: int) -> list[_Report]:
    """The reports of a UDP payload: node, subsystem, sequence; D, Q, F, I; hop; reason and queue of a drop; domain; flow, TTL, INT headers.

    The fields are those of :mod:`holdfast.apps.telemetry.reports`. Raises :class:`HoldfastError` with one of :data:`REPORT_RULES`.
    """

def decode_thesis_report(payload: bytes) -> tuple[int, list[tuple[int, int, int, int, int]]]:
    """The UDP port and the hops of a thesis's report, the first one first. Raises :class:`HoldfastError`."""

@final
class ReportSocket:
    """A UDP socket that takes packets in batches."""

    def __new__(cls, address: IPv4Address | IPv6Address, port: int, buffer_bytes: int) -> Self:
        """Raises :class:`HoldfastError` if it cannot listen there; port 0 takes a free one."""
    @property
    def port(self) -> int: ...
    def drops(self) -> int:
        """Packets that the kernel had no room for."""
    def refuse_more(self) -> None:
        """Lets no more packets in; those that wait can still be taken."""
    def discard(self) -> int:
        """Takes the packets that wait, without looking at them; how many there were."""

@final
class ReportCollector:
    """What is kept of telemetry reports; see :mod:`holdfast.apps.telemetry.collector`."""

    def __new__(
        cls,
        flows: int,
        hops: int,
        reporters: int,
        *,
        dscp: int,
        dscp_mask: int,
        udp_port: int,
        with_rows: bool,
        most_rows: int | None = None,
    ) -> Self:
        """``with_rows``: somebody takes the rows. Beyond ``most_rows`` that nobody has taken, rows are counted and not kept."""
    def take(self, now_ns: int, payload: bytes) -> None:
        """A UDP packet's payload."""
    def receive(self, socket: ReportSocket, timeout_s: float, for_s: float = 0.0) -> int:
        """Waits for a packet for ``timeout_s``, and takes packets until ``for_s`` have passed since the call; how many there were."""
    def counts(self) -> dict[str, int]: ...
    def malformed(self) -> dict[str, int]: ...
    def flows(self, busiest: int | None = None) -> list[tuple[_Flow, _FlowState]]: ...
    def hops(
        self, *, first: int | None = None, slowest: int | None = None
    ) -> list[tuple[tuple[int, int | None], _HopState]]: ...
    def drops(self, *, first: int | None = None) -> dict[tuple[int, int], int]: ...
    def reporters(self) -> dict[tuple[int, int], tuple[int, int]]: ...
    @property
    def rows(self) -> int: ...
    def take_rows(self) -> tuple[list[tuple[str, bytes]], list[tuple[str, str, int, int, int]]]:
        """Columns of little-endian 64-bit integers (ones: not known), and the flows of the column ``flow``."""

def read_pcap(path: str | PathLike[str]) -> list[tuple[int, bytes]]: ...
def write_pcap(path: str | PathLike[str], frames: Sequence[tuple[int, bytes]]) -> None: ...
def stf_scripts(directory: str | PathLike[str]) -> list[Path]: ...
def run_stf(
    script: str | PathLike[str],
    executor: str = "both",
    include_dirs: Sequence[str] = (),
    defines: dict[str, str] = ...,
) -> tuple[Literal["passed", "passed without packets", "failed", "skipped"], str]: ...

@final
class Namespace:
    def __new__(cls, label: str) -> Self: ...
    @property
    def name(self) -> str: ...
    @property
    def exec_prefix(self) -> list[str]: ...
    def run(
        self, command: Sequence[str], *, check: bool = True, timeout_s: float | None = None
    ) -> CompletedProcess[str]: ...
    def add_veth(self, interface: str = "eth0", *, mac: bytes | None = None, mtu: int = 1500) -> str: ...
    def add_address(self, interface: str, address: str) -> None: ...
    def add_route(self, destination: str, interface: str, *, via: str | None = None) -> None: ...
    def add_neighbour(self, interface: str, address: str, mac: bytes) -> None: ...
    def set_link(self, interface: str, up: bool) -> None: ...
    def set_mtu(self, interface: str, mtu: int) -> None: ...
    def send_load(
        self, interface: str, frames: Sequence[bytes], *, duration_s: float, packets_per_s: float | None = None
    ) -> Load: ...
    def interface_counters(self, interface: str) -> InterfaceCounters: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

def clean() -> int: ...
def probe() -> dict[str, tuple[bool, str]]: ...
def set_up_allocator() -> None: ...
def give_back_freed() -> None: ...
def interfaces_ready() -> str | None: ...

@final
class Benchmark:
    def __new__(cls, program: str, quick: bool = False) -> Self: ...
    def measure(self, size_bytes: int) -> ProgramMeasurement: ...
    @staticmethod
    def programs() -> list[str]: ...

def measure_simulation(scenario: str, quick: bool = False) -> SimulationMeasurement: ...
def simulations() -> list[str]: ...
def measure_table(table: str, quick: bool = False) -> TableMeasurement: ...
def tables() -> list[str]: ...
