"""The native core: compiler, switch and network. The package around it is the public interface.

Units are in the names: ``_ps`` picoseconds, ``_bps`` bits per second. Ids are P4Runtime ids, as in the program's P4Info.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from subprocess import CompletedProcess
from types import TracebackType
from typing import Any, Literal, Required, Self, TypedDict, Unpack, final

from holdfast.measurements import (
    BfdStatistics,
    FlowStatistics,
    GroupStatistics,
    InterfaceCounters,
    LinkCounters,
    Load,
    NodeCounters,
    OrderingCounters,
    PortStatistics,
    QueueStatistics,
    RecirculationStatistics,
    TcpStatistics,
    WallStatistics,
)

__all__ = [
    "COPIES_PER_S",
    "Batch",
    "Benchmark",
    "BenchmarkResult",
    "CompileError",
    "ControlError",
    "Diagnostic",
    "EntryEncoder",
    "HoldfastError",
    "Namespace",
    "Network",
    "Notification",
    "Pipeline",
    "Program",
    "Reading",
    "SimulationBenchmark",
    "Switch",
    "TableBenchmark",
    "WriteRequest",
    "clean",
    "extent",
    "give_back_freed",
    "interfaces_ready",
    "probe",
    "read_pcap",
    "run_stf",
    "set_up_allocator",
    "stf_scripts",
    "write_pcap",
]

class HoldfastError(Exception):
    """Base of everything this package raises on purpose."""

class CompileError(HoldfastError):
    """The program has errors, or no ``main`` (then all diagnostics can be warnings).

    ``str(e)`` is the rendered diagnostics with source lines and carets.
    """

    diagnostics: list[Diagnostic]

class ControlError(HoldfastError):
    """A control-plane operation was refused. ``code`` is a canonical gRPC status name, as in ``"NOT_FOUND"``."""

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
    """An immutable compiled program, shared by any number of switches."""

    @staticmethod
    def compile(path: str, include_dirs: Sequence[str] = (), defines: dict[str, str] = ...) -> Program: ...
    @staticmethod
    def compile_text(
        source: str, name: str = "program.p4", include_dirs: Sequence[str] = (), defines: dict[str, str] = ...
    ) -> Program: ...
    @staticmethod
    def examine(path: str, include_dirs: Sequence[str] = (), defines: dict[str, str] = ...) -> list[Diagnostic]:
        """Reads of invalid headers and of variables without a value in the program in a file, each with the path of packets that leads
        there. Errors of the program are among the diagnostics, and then nothing else is."""
    @staticmethod
    def from_artifact(data: bytes, p4info: str = "") -> Program:
        """Loads what :meth:`artifact` gave (verified first). Raises :class:`ControlError` INVALID_ARGUMENT. An artifact does not hold
        the program's P4Info, which can be given beside it."""
    def artifact(self) -> bytes:
        """The compiled program, as it travels in P4Runtime's device config."""
    @property
    def name(self) -> str: ...
    @property
    def p4info(self) -> str:
        """P4Info in protobuf text format; of a program loaded from an artifact what was given with it."""
    @property
    def p4info_message(self) -> bytes:
        """The serialized ``P4Info``; empty for a program loaded from an artifact."""
    @property
    def warnings(self) -> list[Diagnostic]: ...

@final
class Switch:
    """One switch: standing alone, or a node of a network (then calls are run by the worker that owns it)."""

    def __new__(
        cls,
        program: Program,
        *,
        executor: Literal["jit", "interpreter"] = "jit",
        cpu_port: int | None = None,
        seed: int = 0,
    ) -> Self: ...
    @property
    def cpu_port(self) -> int:
        """The port that leads to the control plane; unless given, that of the program's architecture (510 in v1model)."""
    def set_program(self, program: Program) -> None:
        """Replaces the program; all entries and state are lost."""
    @property
    def program(self) -> Program: ...
    def set_port_up(self, port: int, up: bool) -> None:
        """Tells a switch that stands alone that a port went down or came up: registers with ``@port_state`` and members that watch the
        port. All ports are up at first. In a network, the switch finds out by itself."""
    def port_is_up(self, port: int) -> bool:
        """Whether a port is up, as the switch knows it."""
    def drops(self) -> dict[str, int]:
        """Counted drops by reason."""
    def digests_lost(self) -> int:
        """Digest messages that were lost because too many waited."""
    def set_now_ps(self, now_ps: int) -> None:
        """Tells a switch that stands alone the time for what follows, which never runs back. Packets bring their own."""
    def next_deadline_ps(self) -> int | None:
        """When a digest list will be due, or an entry may be idle, if nothing else happens."""
    def packet_out(self, packet: bytes) -> None:
        """Hands a packet (with its packet-out header) to the CPU port. In a network, it enters at the current time. A switch that
        stands alone refuses (:class:`ControlError` FAILED_PRECONDITION): use :meth:`process` with the CPU port."""
    def process(self, port: int, packet: bytes, now_ps: int = 0) -> list[tuple[int, bytes]]:
        """Runs one packet; what comes out of which port, in order. Only on a switch that stands alone."""
    def trace(self, port: int, packet: bytes, now_ps: int = 0, *, text: bool = False, assignments: bool = False) -> str:
        """Like :meth:`process` on the interpreter; what happened, as JSON or as indented text, with every assignment to a variable if
        ``assignments``. Tables and registers are used as they are."""

def extent(data: bytes, field: int) -> tuple[int, int]:
    """Of a field with bytes of its own, how often it is in a serialized message, and how many bytes it has at most."""

@final
class EntryEncoder:
    """Encodes updates of one table's entries whose values are plain numbers."""

    def __new__(
        cls,
        table_id: int,
        fields: Sequence[tuple[str, int, int, str]],
        actions: Sequence[tuple[str, int, Sequence[tuple[str, int, int]]]],
    ) -> Self:
        """``fields``: name, id, width in bits and match kind; ``actions``: name, id and parameters, which are name, id and width. What has
        several names is there with each of them."""
    def update(
        self,
        kind: int,
        match: dict[str, Any],
        action: str | None,
        params: dict[str, Any] | None,
        priority: int,
        metadata: bytes,
    ) -> bytes | None:
        """A serialized ``WriteRequest`` with nothing but one update, so that several, one after another, are one request. None if
        something is not a number as it stands, does not fit, or has a name that is not known here."""

@final
class WriteRequest:
    """A serialized ``p4.v1.WriteRequest`` whose updates have not been looked at yet. Raises INVALID_ARGUMENT if it is none."""

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
    def __len__(self) -> int:
        """How many updates."""

@final
class Pipeline:
    """A program with its serialized ``p4.config.v1.P4Info``. Raises :class:`ControlError` INVALID_ARGUMENT or UNIMPLEMENTED if they do
    not belong together or contradict themselves.

    ``translations``: of translated types the switch's value by the controller's, by URI. The switches that methods take run the
    program.
    """

    def __new__(
        cls, program: Program, p4info: bytes, translations: dict[str, dict[int, int] | dict[str, int]] = ...
    ) -> Self: ...
    def check_types(self) -> None:
        """Raises if a register or digest has a type that P4Runtime or this server cannot carry."""
    def role_may(self, role: str, id: int) -> bool:
        """Whether a role may deal with the object of this id."""
    def plan(self, request: WriteRequest) -> Batch:
        """Resolves the updates of a request. Raises INVALID_ARGUMENT if one cannot be decoded."""
    def plan_transfer(self, switch: Switch, old: Pipeline, old_switch: Switch) -> Batch:
        """What a switch lacks, whose program has just been loaded, of the state that another one has with the pipeline ``old``. Raises
        INVALID_ARGUMENT if that cannot be taken over."""
    def read(self, switch: Switch, request: bytes) -> Reading:
        """Begins to answer a serialized ``ReadRequest``: what is read is of this moment, but for counts."""
    def packet_out(self, message: bytes) -> bytes:
        """What goes into the CPU port for a serialized ``PacketOut``."""
    def packet_in(self, packet: bytes) -> bytes | None:
        """The serialized ``PacketIn`` for what came out of the CPU port; None if that is shorter than the controller header."""
    def take_digests(self, switch: Switch, now_ns: int, most: int) -> list[tuple[int, bytes]]:
        """Takes digest lists that are due, until they have ``most`` messages together: digest id and serialized ``DigestList`` of each.
        What waits of digests that nobody enabled is forgotten."""
    def acknowledge(self, switch: Switch, digest_id: int, list_id: int) -> None:
        """Acknowledges a digest list."""
    def take_idle(self, switch: Switch, now_ns: int, most: int) -> list[tuple[int, bytes]]:
        """Takes ``most`` entries that became idle: table id and serialized ``IdleTimeoutNotification`` of each table."""

@final
class Batch:
    """The updates of a request, and how far they have been applied."""

    def __len__(self) -> int:
        """How many updates."""
    @property
    def applied(self) -> int:
        """How many have been applied or refused."""
    def apply(self, switch: Switch, most: int) -> None:
        """Applies the next ``most`` updates, each by itself; packets pass after every fraction of a millisecond."""
    def apply_atomic(self, switch: Switch) -> None:
        """Applies all or nothing, with no packet in between. If one fails, the others are ABORTED."""
    def would_fail(self, switch: Switch) -> list[tuple[int, str, str]]:
        """What :meth:`apply_atomic` would refuse, without the ABORTED ones. Nothing remains."""
    def take_failures(self) -> list[tuple[int, str, str]]:
        """Takes what was refused so far: position, status name, message."""

@final
class Reading:
    """The answer to a ``ReadRequest``, as far as it has not been given."""

    def next(self, switch: Switch) -> bytes | None:
        """The next serialized ``ReadResponse``, None at the end. It copies a slice between packets."""
    def failures(self) -> tuple[int, list[tuple[int, str, str]]]:
        """How many entities were asked for, and what of them was refused so far: position, status name, message."""

@final
class Notification:
    """Something for controllers, in the order in which it happened.

    ``port`` and ``up`` belong to ``port_change``; ``data`` is the packet of ``packet_in`` (with its packet-in header) and of
    ``host_frame``. A ``digest`` says that lists are due for :meth:`Switch.take_digest_lists`, or that messages
    wait for :meth:`Switch.take_digests`; an ``idle_timeout``, that entries wait for :meth:`Switch.take_idle_entries`. Each is said
    once until they are taken.
    """

    kind: Literal["port_change", "packet_in", "digest", "idle_timeout", "host_frame"]
    time_ps: int
    node: str
    port: int
    up: bool
    data: bytes

COPIES_PER_S: int
"""Copies of copies that :meth:`Network.start` allows per second, unless it is told otherwise."""

class _LinkParameters(TypedDict, total=False):
    """Keywords of :meth:`Network.add_link`."""

    rate_bps: Required[int]
    delay_ps: int
    jitter: tuple[str, int, int] | tuple[str, Sequence[int]]
    loss: float | tuple[str, float, float, float, float] | tuple[str, Sequence[int], int | None] | tuple[str, str, bool]
    queue_bytes: int | None
    queue_packets: int | None
    red: Mapping[str, object] | None
    mark_above: Mapping[str, object] | None
    detection_down_ps: int | None
    detection_up_ps: int | None
    bfd: Mapping[str, int] | None
    mtu_bytes: int | None
    ordering: Mapping[str, object] | None

@final
class Network:
    """Nodes and links on one of two clocks. See :mod:`holdfast.network` for the face of it."""

    def __new__(cls, *, seed: int = 0, detection_delay_ps: int = 0) -> Self: ...
    def add_switch(
        self, name: str, program: Program, *, executor: str = "jit", cpu_port: int | None = None, latency_ps: int = 0
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
    ) -> int:
        """Packets that enter a switch by themselves, at one of its ports, like packets from outside: every ``period_ps`` (``count``
        times; 0 is without end), or when the switch notices that a port went down, or that one came up, then with the number of that
        port in the two bytes at ``port_offset``. Returns the generator's id."""
    def packets_generated(self, generator: int) -> int:
        """How many packets a generator has made."""
    def add_host(
        self,
        name: str,
        *,
        mac: bytes,
        ipv4: str,
        prefix_len: int,
        gateway_mac: bytes,
        ipv6: tuple[str, int] | None = None,
    ) -> None:
        """A modelled host on one link (port 0): answers pings, sends and receives the traffic added to it. ``ipv6``: an address, and
        the length of its subnet's prefix; the gateway is the same."""
    def add_interface(self, name: str, interface: str) -> None:
        """A Linux interface as a node with one port 0 (wall clock only)."""
    def add_port(
        self, switch: str, port: int, interface: str, *, io: Literal["auto", "af_packet", "af_xdp"] = "auto"
    ) -> None:
        """Makes a Linux interface a port of a switch, without a link in between (wall clock only; also while it runs). ``io``: how
        frames leave, by an XDP socket or a packet socket; ``auto``: by the first if the interface takes it. A change of the
        interface's state is a ``port_change``."""
    def remove_port(self, switch: str, port: int) -> PortStatistics:
        """Takes an interface away from a switch, also while the clock runs, and gives its :meth:`port_statistics`."""
    def port_statistics(self, switch: str, port: int) -> PortStatistics:
        """Counters of an interface that is a switch's port, since it was added."""
    def port_io(self, switch: str, port: int) -> Literal["af_packet", "af_xdp"] | None:
        """How the frames of such a port leave now; None while the clock does not run."""
    def add_link(
        self,
        a: str,
        a_port: int,
        b: str,
        b_port: int,
        **parameters: Unpack[_LinkParameters],
    ) -> int:
        """Bidirectional. Each direction draws its own jitter and losses, never reordering unless the draw overtakes (as tc netem does
        not prevent). Returns the link id.

        ``jitter``: ("none", 0, 0), ("uniform", low_ps, high_ps), ("normal", mean_ps, sigma_ps), ("trace", [delay_ps, ...]).
        ``loss``: a probability, ("gilbert_elliott", p, r, loss_good, loss_bad), ("trace", lost packet numbers, period or None),
        ("trace", text of 0 and 1, repeat). The queue has 150,000 bytes if nothing else is said. ``red``: ``unit`` ("bytes" or "packets"),
        ``min``, ``max``, and perhaps ``max_p``, ``weight``, ``gentle``, ``ecn``, ``mean_packet_bytes``. ``mark_above``: ``unit``,
        ``threshold``. Without a detection delay the network's counts. ``mtu_bytes``: the most bytes behind the Ethernet header; longer
        frames are dropped and counted. ``ordering``: puts packets with sequence numbers in order before they are sent;
        ``max_delay_ps``, ``take_any_ps``, and perhaps ``buffer_packets``, ``sequence_bits`` and ``headers``: of each ``ethertype``, ``bytes``,
        ``sequence``, ``following``, and perhaps ``stream`` and ``ethertypes`` (by the value of ``following``). Fields are (offset, width) in bits."""
    def configure_direction(
        self,
        link: int,
        direction: Literal["a_to_b", "b_to_a"],
        **parameters: Unpack[_LinkParameters],
    ) -> None:
        """Gives one direction of a link parameters of its own, before it carried anything; they are those of :meth:`add_link`."""
    def capture(self, node: str, port: int, path: str | PathLike[str]) -> None:
        """Writes what crosses a port from now on, in both directions, into a pcap file, which is replaced. It is complete when a
        run or the wall clock ends."""
    def set_link_state(
        self, link: int, up: bool, at_ps: int | None = None, *, direction: Literal["a_to_b", "b_to_a"] | None = None
    ) -> None:
        """Fails or repairs a link (or one direction of it) at a time (None: now). Packets queued or in flight on what fails are lost.
        The receiving end of a direction notices."""
    def set_silent_loss(
        self, link: int, silent: bool, at_ps: int | None = None, *, direction: Literal["a_to_b", "b_to_a"] | None = None
    ) -> None:
        """Lets a link (or one direction of it) lose all packets without a change of its signal, at a time (None: now), or takes that
        back."""
    def declare_port(self, switch: str, port: int, down: bool) -> None:
        """Declares that a switch's port with a link is down, whatever its signal says, or takes that back."""
    def bfd_statistics(self, switch: str, port: int) -> BfdStatistics | None:
        """Statistics of the BFD session of a switch's port, or None if it has none."""
    def count_drops(self) -> int:
        """Starts to count what is dropped outside programs, by node and reason. Nodes are not visited meanwhile, so runs are slower."""
    def drops(self, counter: int) -> list[tuple[str, str, int]]:
        """The drops since :meth:`count_drops`, which gave the number: node, reason and packets."""
    def set_node_state(self, node: str, up: bool, at_ps: int | None = None) -> None:
        """Fails or repairs a node at a time (None: now). What is inside is lost, its tables and registers are not."""
    def fail_randomly(
        self,
        *,
        time_to_failure: tuple[str, int],
        time_to_repair: tuple[str, int],
        link: int | None = None,
        direction: Literal["a_to_b", "b_to_a"] | None = None,
        node: str | None = None,
        start_ps: int = 0,
        end_ps: int | None = None,
    ) -> None:
        """Lets a link (or one direction of it) or a node fail and be repaired at random, from a stream of its own. The times are
        ("exponential", mean_ps) or ("fixed", time_ps). No failure begins before ``start_ps``, none at ``end_ps`` or later."""
    def random_failures(self) -> list[tuple[int, str, bool]]:
        """The random failures and repairs that have happened: time, what ("s1", "s1:1-s2:1", "s1:1>s2:1"), whether it came back."""
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
    ) -> int:
        """UDP with sequence numbers, to a modelled host or an address, at a constant rate or as a Poisson process.

        Without ``log_packets``, which a Poisson process needs, only :meth:`statistics` are kept, in memory that does not grow with
        packets; :meth:`sent` and :meth:`received` refuse. Returns the flow id.
        """
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
    ) -> int:
        """Echo requests of a modelled host to another or to an address. Returns the flow id."""
    def end_flow(self, flow: int) -> None:
        """Ends a stream or pings before their time: nothing more is sent."""
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
    ) -> int:
        """A TCP connection between modelled hosts; the client writes, the server receives. ``application`` is ``"bulk"``, ``"transfer"`` (of
        ``bytes``) or ``"on-off"`` (bursts of ``bytes`` and ``silence_ps`` after each, exponentially distributed if ``exponential``).
        ``options`` change the ``preset`` (``"standard"`` or ``"ns2-2001"``; over IPv6 their segments hold 20 bytes less). Returns the
        id for ``tcp_statistics`` and so on."""
    def join(
        self,
        host: str,
        group: str,
        *,
        sources: Sequence[str],
        excludes: bool,
        version: str | None = None,
        at_ps: int | None = None,
    ) -> None:
        """Has a modelled host want these sources of a multicast group, or with ``excludes`` all but these, from a time on (None: now), in place
        of what it wanted; without sources and ``excludes`` it leaves. ``version``: ``"igmpv1"`` to ``"igmpv3"``, ``"mldv1"``, ``"mldv2"``."""
    def group_statistics(self, host: str, group: str) -> GroupStatistics:
        """What a host received of a multicast group."""
    def send_frame(self, node: str, frame: bytes) -> None:
        """Sends a frame from a modelled host or an interface's node, as it is, now."""
    @property
    def now_ps(self) -> int:
        """The time on the network's clock."""
    def set_reaction(self, reaction_ps: int | None) -> None:
        """Says how long after a notification somebody changes the network because of it, at the earliest; ``None`` if nobody ever does. It
        must be true; what is said makes runs of the virtual clock faster and changes no result. That something is said orders packets of one
        instant by the numbers of links, switches and flows, not as they were scheduled."""
    def run(self, until_ps: int) -> list[Notification]:
        """Virtual clock: runs to ``until_ps`` or to the first instant with notifications, whichever is first."""
    def start(self, *, copies_per_s: int = ...) -> None:
        """Wall clock: runs in a thread of its own until :meth:`stop`. ``time_ps`` counts from here. Each switch makes
        ``copies_per_s`` copies of copies at most, of all packets together (resubmissions, recirculations and clones behind the first
        two passes); others are dropped as ``recirculation_limit``."""
    def poll(self, timeout_s: float) -> list[Notification]:
        """Wall clock: notifications since the last call; waits up to the timeout for one."""
    def stop(self) -> None:
        """Stops the wall clock. Everything can still be read. Does nothing when it is not running."""
    def sent(self, flow: int) -> tuple[bytes, bytes]:
        """Columns of a :class:`SentLog` as little-endian int64 arrays."""
    def received(self, flow: int, *, host: str | None = None) -> tuple[bytes, bytes, bytes]:
        """Columns of a :class:`ReceivedLog` as little-endian int64 arrays, in order of arrival. For a ping flow: the replies, as they
        arrive back at the source. ``host``: what arrived there, as of a stream to a multicast address; without it, at the destination."""
    def statistics(self, flow: int, *, host: str | None = None) -> FlowStatistics:
        """Statistics of a flow at its destination or at ``host``."""
    def tcp_statistics(self, flow: int) -> TcpStatistics:
        """Statistics of a TCP connection."""
    def tcp_goodput(self, flow: int) -> bytes:
        """New bytes in order at the server of a TCP connection, by bin, as a little-endian int64 array."""
    def tcp_window(self, flow: int) -> tuple[bytes, bytes, bytes, bytes, bytes]:
        """Columns of a :class:`WindowLog` as little-endian int64 arrays; HoldfastError if ``log_window`` was not set."""
    def corrupted(self, flow: int) -> int:
        """Packets that claim to be of a flow and reached a host damaged. They are not in the logs."""
    def link_counters(self, link: int) -> LinkCounters:
        """Counters of both directions of a link."""
    def ordering_counters(self, link: int, direction: Literal["a_to_b", "b_to_a"]) -> OrderingCounters | None:
        """Counters of the ordering function of a direction, or None if there is none."""
    def add_processor(self, switch: str, *, service_ps: int, exponential: bool, queue_packets: int) -> None: ...
    def set_queueing(
        self,
        switch: str,
        queueing: str,
        *,
        queues: int = 8,
        queue: Mapping[str, object] | None = None,
        queue_of_priority: Mapping[int, Mapping[str, object]] | None = None,
        recirculation: Mapping[str, object] | None = None,
    ) -> None:
        """Says where packets of a switch wait: "auto" (in a traffic manager if the program cares, or something is said that only one does), "link" or "traffic_manager". A queue
        is described as in :meth:`add_link` (``queue_bytes``, ``queue_packets``, ``red``, ``mark_above``); without a description
        it holds what the link's would. ``recirculation``: ``ports``, the ``rate_bps`` and ``queue`` of each, and ``spread`` ("round-robin"
        or "hash"). What waits in a former traffic manager is lost."""
    def has_traffic_manager(self, switch: str) -> bool:
        """Whether packets of a switch wait in a traffic manager now."""
    def queue_statistics(self, switch: str) -> list[QueueStatistics]:
        """Statistics of the queues of a switch's traffic manager."""
    def recirculation_statistics(self, switch: str) -> list[RecirculationStatistics]:
        """Statistics of the recirculation ports of a switch."""
    def node_counters(self, node: str) -> NodeCounters:
        """Packet counters of a node."""
    def port_is_up(self, node: str, port: int) -> bool:
        """Whether a port has a signal: there is a link, and it works towards this port; or it is an interface that is up."""
    def wall_statistics(self) -> WallStatistics:
        """How well the wall clock keeps up, while it runs."""

def read_pcap(path: str | PathLike[str]) -> list[tuple[int, bytes]]:
    """The frames of a pcap or pcapng file of Ethernet frames, each with its time in picoseconds (0 where a file has none)."""

def write_pcap(path: str | PathLike[str], frames: Sequence[tuple[int, bytes]]) -> None:
    """Writes frames, each with its time in picoseconds, to a pcap file (which keeps nanoseconds)."""

def stf_scripts(directory: str | PathLike[str]) -> list[Path]:
    """The scripts of a directory and those below it, in order. Raises OSError."""

def run_stf(
    script: str | PathLike[str],
    executor: str = "both",
    include_dirs: Sequence[str] = (),
    defines: dict[str, str] = ...,
) -> tuple[Literal["passed", "passed without packets", "failed", "skipped"], str]:
    """Runs a script against the program beside it; gives its status and the reason (empty if it passed)."""

@final
class Namespace:
    """A Linux network namespace of this process, gone with its interfaces and processes when closed or when the process ends.

    Its IPv6 is silent until it is given an IPv6 address. A context manager: leaving closes it.
    """

    def __new__(cls, label: str) -> Self: ...
    @property
    def name(self) -> str:
        """As ``ip netns`` knows it: ``hf<n>-<label>``."""
    @property
    def exec_prefix(self) -> list[str]:
        """A prefix for a command that runs it in here: ``subprocess.Popen([*namespace.exec_prefix, "iperf3", "-s"])``."""
    def run(
        self, command: Sequence[str], *, check: bool = True, timeout_s: float | None = None
    ) -> CompletedProcess[str]:
        """Runs a command in here and waits for it, as ``subprocess.run`` does with ``capture_output`` and ``text``."""
    def add_veth(self, interface: str = "eth0", *, mac: bytes | None = None, mtu: int = 1500) -> str:
        """Adds a veth pair and gives the name of the end outside, which is up, has no address and answers nothing (see
        :meth:`Network.add_interface`). Inside it is ``interface``, up as well. Offloads are off at both ends."""
    def add_address(self, interface: str, address: str) -> None:
        """Gives an interface in here an address, as in ``10.0.0.1/24``."""
    def add_route(self, destination: str, interface: str, *, via: str | None = None) -> None:
        """Adds a route to a prefix (``0.0.0.0/0``: the default) by an interface, through a gateway if one is given."""
    def add_neighbour(self, interface: str, address: str, mac: bytes) -> None:
        """Adds a permanent neighbour entry, so that nobody need answer ARP."""
    def set_link(self, interface: str, up: bool) -> None:
        """Sets an interface in here up or down."""
    def set_mtu(self, interface: str, mtu: int) -> None:
        """Sets the MTU of an interface in here, in bytes."""
    def send_load(
        self, interface: str, frames: Sequence[bytes], *, duration_s: float, packets_per_s: float | None = None
    ) -> Load:
        """Sends frames in turn, over and over, from an interface in here: as fast as the kernel takes them, or at a rate."""
    def interface_counters(self, interface: str) -> InterfaceCounters:
        """The kernel's counters of an interface in here."""
    def close(self) -> None:
        """Ends the processes in here and removes the namespace with its interfaces. Once is enough."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

def clean() -> int:
    """Removes the namespaces and interfaces that dead processes left behind; how many processes that were."""

def probe() -> dict[str, tuple[bool, str]]:
    """The requirements of live networks and benchmarks, by name: whether each is met, and particulars or the reason why not."""

def set_up_allocator() -> None:
    """Freed blocks of 256 KiB or more go back to the system from now on, and grow without a copy.

    Threads to come share the arenas of the allocator that there are.
    """

def give_back_freed() -> None:
    """Gives freed memory of the process back to the system; takes milliseconds, in which other threads run."""

def interfaces_ready() -> str | None:
    """None if this process may open packet sockets, else the reason."""

@final
class Benchmark:
    """A program in both versions, its tables filled. It stays on the thread that made it."""

    @property
    def program(self) -> str: ...
    def __new__(cls, program: str, quick: bool = False) -> Self:
        """Compiles the program and fills the tables of both versions; ``quick`` does little, for tests."""
    def measure(self, size_bytes: int) -> BenchmarkResult:
        """Measures with packets of this size. Raises :class:`HoldfastError` if the two versions do not send the same packets."""
    @staticmethod
    def programs() -> list[str]:
        """Names of the programs that can be measured."""

@final
class BenchmarkResult:
    """Measurements of a program at a packet size."""

    @property
    def program(self) -> str: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def packets_per_s(self) -> float: ...
    @property
    def handwritten_packets_per_s(self) -> float: ...
    @property
    def ratio(self) -> float: ...
    @property
    def instructions_per_packet(self) -> float | None: ...
    @property
    def handwritten_instructions_per_packet(self) -> float | None: ...
    @property
    def outputs_per_packet(self) -> float: ...
    @property
    def spread(self) -> float: ...

@final
class SimulationBenchmark:
    """Measurements of a simulation; ``processor_s`` is the median of several runs."""

    @staticmethod
    def measure(scenario: str, quick: bool = False) -> SimulationBenchmark:
        """Builds and runs a scenario several times; ``quick`` with a small part of the packets."""
    @staticmethod
    def scenarios() -> list[str]:
        """Names of the scenarios that can be measured."""
    @property
    def scenario(self) -> str: ...
    @property
    def switches(self) -> int: ...
    @property
    def packets(self) -> int: ...
    @property
    def packet_hops(self) -> int: ...
    @property
    def drops(self) -> int: ...
    @property
    def events(self) -> int: ...
    @property
    def simulated_s(self) -> float: ...
    @property
    def goodput_bps(self) -> float | None: ...
    @property
    def processor_s(self) -> float: ...

@final
class TableBenchmark:
    """Measurements of a table."""

    @staticmethod
    def measure(table: str, quick: bool = False) -> TableBenchmark:
        """Fills a table, looks keys up, empties it; ``quick`` with a hundredth of the entries."""
    @staticmethod
    def tables() -> list[str]:
        """Names of the tables that can be measured."""
    @property
    def table(self) -> str: ...
    @property
    def entries(self) -> int: ...
    @property
    def inserts_per_s(self) -> float: ...
    @property
    def deletes_per_s(self) -> float: ...
    @property
    def longest_update_us(self) -> float: ...
    @property
    def p999_update_us(self) -> float: ...
    @property
    def lookup_ns(self) -> float: ...
    @property
    def bytes_per_entry(self) -> float: ...
