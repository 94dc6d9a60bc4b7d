"""``holdfast switch``: one switch on Linux interfaces with a P4Runtime server, until it is interrupted.

Its ports are the interfaces themselves, without links in between: packets go through in bursts, in the thread that owns
the switch. Ports come and go while it runs; one whose interface goes down is a port without a signal.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from rich.console import Console

from holdfast import _core
from holdfast.errors import HoldfastError, LiveError
from holdfast.live import no_pipeline
from holdfast.measurements import NodeCounters, PortStatistics
from holdfast.numerals import is_numeral
from holdfast.operations.events import Events
from holdfast.p4runtime import rights_file
from holdfast.p4runtime.addresses import access_at
from holdfast.p4runtime.device import Device
from holdfast.p4runtime.server import Server, TlsFiles
from holdfast.terminal import Grid

if TYPE_CHECKING:
    from holdfast.control.desired import Desired

MAX_PORT = 510
COPIES_PER_S = _core.COPIES_PER_S

Io = Literal["auto", "af_packet", "af_xdp"]
"""How frames are sent: by an XDP socket (``af_xdp``), by a packet socket (``af_packet``), or by an XDP socket if the
interface accepts one (``auto``)."""

_NODE = "switch"

_SIDES: tuple[Literal["in", "out"], ...] = ("in", "out")

_OFFLOADS_HINT = (
    "segments that the sending kernel left joined are dropped; at the other end of the cable, switch its offloads off: "
    "ethtool -K NAME tso off gso off gro off"
)

_LOOK_S = 1.0
"""The interval in seconds at which a running switch looks for problems of its ports to report."""


def parse_port(text: str) -> tuple[int, str]:
    """Return the port number and interface name in a text like ``0@veth0``. Raises :class:`LiveError` for any other text."""
    number, separator, name = text.partition("@")
    if not separator or not name or not is_numeral(number) or int(number) > MAX_PORT:
        raise LiveError(f"port {text!r}: write PORT@NAME with a port from 0 to {MAX_PORT}, as in 0@veth0")
    return int(number), name


def tls_files(
    certificate: Path | None, key: Path | None, client_ca: Path | None, client_rights: Path | None = None
) -> TlsFiles | None:
    """Return the server's TLS files, or None if none is given.

    Raises :class:`LiveError` if a file that belongs to them is missing.
    """
    if client_rights is not None and client_ca is None:
        raise LiveError("--client-rights are given to certificates, so they need --tls-client-ca")
    if certificate is None and key is None and client_ca is None:
        return None
    if certificate is None or key is None:
        raise LiveError("--tls-certificate and --tls-key go together")
    for file in (certificate, key, client_ca):
        if file is not None and not file.is_file():
            raise LiveError(f"there is no file {str(file)!r}")
    return TlsFiles(certificate, key, client_ca, rights_file.read(client_rights) if client_rights else None)


class LiveSwitch:
    """A switch whose ports are Linux interfaces. It forwards from :meth:`start` to :meth:`stop`; a context manager does both.

    Controlled in this process through :attr:`switch` and :attr:`device`, and over gRPC by whoever serves the device. Without
    ``program``, it drops all packets (and counts them) until a P4Runtime client sets the pipeline. For ``copies_per_s`` see
    :meth:`holdfast._core.Network.start`. Its clock begins at ``begin_ps``: tests let it pass the numbers at which representations
    of times end.
    """

    def __init__(
        self,
        program: _core.Program | None,
        *,
        device_id: int = 1,
        cpu_port: int | None = None,
        executor: Literal["jit", "interpreter"] = "jit",
        pipeline_roles: Sequence[str] = (),
        copies_per_s: int = _core.COPIES_PER_S,
        begin_ps: int = 0,
    ) -> None:
        if reason := _core.interfaces_ready():
            raise LiveError(f"cannot open network interfaces: {reason}")
        self._network = _core.Network(begin_ps=begin_ps)
        self._ports: dict[int, str] = {}
        self._copies_per_s = copies_per_s
        first = program or no_pipeline.program()
        self.switch = self._network.add_switch(_NODE, first, executor=executor, cpu_port=cpu_port)
        self._asked_cpu_port = cpu_port
        self.device = Device(device_id, self.switch, executor=executor, pipeline_roles=pipeline_roles)
        self._captures: Path | None = None
        if program is not None:
            self.device.load(program)

    @property
    def ports(self) -> dict[int, str]:
        """The names of the interfaces by port number."""
        return dict(sorted(self._ports.items()))

    def add_port(self, port: int, interface: str, *, io: Io = "auto") -> None:
        """Add an interface as a port, also while packets pass through others. Raises :class:`LiveError` if that is not possible."""
        # Of all architectures: a client may set a program of another one.
        if port in (_core.cpu_ports() if self._asked_cpu_port is None else [self._asked_cpu_port]):
            raise LiveError(f"port {port} is the controller's; choose another one, or another CPU port")
        if not 0 <= port <= MAX_PORT:
            raise LiveError(f"port {port} is not between 0 and {MAX_PORT}")
        if port in self._ports:
            raise LiveError(f"port {port} is {self._ports[port]} already")
        if interface in self._ports.values():
            other = next(number for number, name in self._ports.items() if name == interface)
            raise LiveError(f"interface {interface} is port {other} of this switch already")
        self._network.add_port(_NODE, port, interface, io=io)
        if self._captures is not None:
            self._capture(self._captures, port, interface)
        # Other threads may be looking at the former ones.
        self._ports = self._ports | {port: interface}

    def remove_port(self, port: int) -> PortStatistics:
        """Remove a port, also while packets pass, and return its final counters.

        Raises :class:`LiveError` if there is no such port.
        """
        if port not in self._ports:
            raise LiveError(f"there is no port {port}")
        statistics = self._network.remove_port(_NODE, port)
        self._ports = {number: name for number, name in self._ports.items() if number != port}
        return statistics

    def capture(self, directory: Path) -> None:
        """Capture the frames of all ports from now on, also of those that are added later, into an existing directory.

        The files are ``INTERFACE_in.pcap`` and ``INTERFACE_out.pcap``; existing ones are replaced. Raises HoldfastError if one
        cannot be written; :meth:`lost_record` tells of later failures.
        """
        for port, interface in self.ports.items():
            self._capture(directory, port, interface)
        self._captures = directory

    def _capture(self, directory: Path, port: int, interface: str) -> None:
        for side in _SIDES:
            self._network.capture(_NODE, port, directory / f"{interface}_{side}.pcap", side)

    def log_packets(self, file: Path | None, most_per_s: int, *, dump_bytes: int = 0) -> None:
        """Write what the program does with packets, step by step, into a file from now on; to standard output if ``file`` is None.

        At most ``most_per_s`` packets per second are shown; these run on the interpreter. ``dump_bytes``: how many bytes of each.
        """
        self._network.log_packets(_NODE, file, most_per_s, dump_bytes=dump_bytes)

    def lost_record(self) -> str | None:
        """Return why a capture or the log has ended, such as a full disk; None if none has. Each failure is returned once."""
        return self._network.take_failure()

    def trace_next(self, port: int | None = None) -> None:
        """Trace the next packet that arrives, at ``port`` if one is given, for :meth:`take_trace`."""
        self._network.trace_next(_NODE, port)

    def take_trace(self, *, give_up: bool = False) -> str | None:
        """Return the trace that :meth:`trace_next` asked for, or None if no packet has come; ``give_up``: trace none any more."""
        return self._network.take_trace(_NODE, give_up=give_up)

    def port_statistics(self, port: int) -> PortStatistics:
        """Return the counters of a port since it was added. Raises :class:`LiveError` if there is no such port."""
        if port not in self._ports:
            raise LiveError(f"there is no port {port}")
        return self._network.port_statistics(_NODE, port)

    def port_readings(self) -> list[tuple[int, str, PortStatistics, bool]]:
        """Return number, interface, counters and signal (True if up) of each port, all read at one moment between two bursts."""
        ports = self.ports
        return [
            (port, ports[port], statistics, up)
            for port, statistics, up in self._network.port_readings(_NODE, list(ports))
        ]

    def port_io(self, port: int) -> str | None:
        """Return how frames leave a port, ``af_packet`` or ``af_xdp``; None while the switch does not run."""
        return self._network.port_io(_NODE, port)

    def port_is_up(self, port: int) -> bool:
        """Return True if the port's interface exists, is up, and has a carrier."""
        return self._network.port_is_up(_NODE, port)

    def drops(self) -> dict[str, int]:
        """Return the number of packets dropped by the program or the switch, by reason.

        ``no_such_port`` counts packets for ports that do not exist, ``no_pipeline`` all that came while no pipeline was set.
        """
        (counters,) = self._network.snapshot(NodeCounters, node=_NODE)
        drops = dict(sorted(self.switch.drops().items()))
        if self.device.owner.running is None and drops:
            drops = {no_pipeline.NAME: sum(drops.values())}
        return drops | ({"no_such_port": counters.unconnected_drops} if counters.unconnected_drops else {})

    def start(self) -> None:
        """Open the interfaces and start to forward packets."""
        self._network.start(copies_per_s=self._copies_per_s)

    def stop(self) -> None:
        """Stop forwarding and close the interfaces. Counters can still be read."""
        self._network.stop()

    def poll(self, timeout_s: float) -> list[_core.Notification]:
        """Wait up to ``timeout_s`` seconds for notifications of the data plane and return them.

        Packet-ins, digests and idle entries are also handed to the device.
        """
        notifications = self._network.poll(timeout_s)
        for notification in notifications:
            if notification.kind == "packet_in":
                self.device.packet_in(notification.data)
            elif notification.kind == "digest":
                self.device.collect_digests(time.time_ns())
            elif notification.kind == "idle_timeout":
                self.device.collect_idle(time.time_ns())
        return notifications

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def statistics_table(rows: Sequence[Mapping[str, object]]) -> Grid:
    """Return a table of ports' counters, with a row per port, and columns for those kinds of drops that occurred.

    Each of ``rows`` has ``port``, ``interface`` and the port's statistics.
    """
    always = ["rx_packets", "rx_bytes", "tx_packets", "tx_bytes"]
    others = ["rx_overrun_drops", "rx_oversized_drops", "rx_errors", "rx_checksums_completed", "tx_drops"]
    columns = always + [column for column in others if any(row[column] for row in rows)]
    with_state = any(row.get("up") is not None for row in rows)
    table = Grid()
    table.add_names("port")
    table.add_numbers(*(column.replace("_", "\n") for column in (["state"] if with_state else []) + columns))
    for row in rows:
        state = ["up" if row["up"] else "down"] if with_state else []
        table.add_row(f"{row['port']}@{row['interface']}", *state, *(str(row[column]) for column in columns))
    return table


@dataclass(frozen=True)
class Records:
    """What a running switch writes down of its packets.

    ``captures``: the directory of a capture of each port and direction. ``log``: a file for the path of packets through the
    program, ``"-"`` for standard output, with at most ``log_per_s`` packets per second and ``dump_bytes`` bytes of each.
    """

    captures: Path | None = None
    log: str | None = None
    log_per_s: int = 100
    dump_bytes: int = 0

    def begin(self, live: LiveSwitch) -> None:
        """Begin to write. Raises HoldfastError if a file cannot be made."""
        if self.captures is not None:
            live.capture(self.captures)
        if self.log is not None:
            live.log_packets(None if self.log == "-" else Path(self.log), self.log_per_s, dump_bytes=self.dump_bytes)


def run(
    program: _core.Program | None,
    ports: Sequence[tuple[int, str]],
    *,
    io: Io,
    address: str,
    tls: TlsFiles | None,
    insecure: bool,
    pipeline_roles: Sequence[str],
    copies_per_s: int,
    device_id: int,
    cpu_port: int | None,
    executor: Literal["jit", "interpreter"],
    metrics: tuple[str, int] | None,
    console: Console,
    records: Records = Records(),
    thrift_port: int | None = None,
    thrift_needed: bool = False,
    entries: Desired = (),
    web: str | None = None,
) -> None:
    """Run a switch and its P4Runtime server until a signal (SIGINT, SIGTERM) ends them, then print counters.

    ``program``: None to start without a pipeline. ``metrics``: host and port at which the switch shows itself, if anywhere.
    ``entries``: what the switch holds before the first packet. ``thrift_port``: a port of loopback for BMv2's Thrift interface, by
    which ``simple_switch_CLI`` finds the switch, too; ``thrift_needed``: the switch does not start if it is taken. ``web``: address
    and port of a page for browsers, if there is one.
    """
    # They know this module.
    from holdfast.live.control import control_socket
    from holdfast.live.metrics import pages, watched

    access = access_at(address, certificates=tls is not None and tls.client_ca is not None)
    if insecure and access == "certificate":
        raise LiveError("--insecure and --tls-client-ca exclude each other")
    if access == "anybody":
        if not insecure:
            raise LiveError(
                f"{address} is not loopback, so whoever reaches it could write: give --tls-certificate, --tls-key and "
                "--tls-client-ca, or allow that with --insecure"
            )
        warning = f"whoever reaches {address} can write to this switch"
        console.print(warning, style="bold", markup=False, highlight=False, soft_wrap=True)
    hint = _OffloadsHint(console)
    _core.set_up_allocator()  # before the compiler's threads, whose arenas the server's would use
    with suppress(HoldfastError):
        _core.clean()  # interfaces that a killed run left behind
    live = LiveSwitch(
        program,
        device_id=device_id,
        cpu_port=cpu_port,
        executor=executor,
        pipeline_roles=pipeline_roles,
        copies_per_s=copies_per_s,
    )
    if entries:
        from holdfast import entries_files

        entries_files.install(entries, live.device)
    for port, name in ports:
        live.add_port(port, name, io=io)
    records.begin(live)
    # The server first: an address that cannot be had must not leave a running network behind.
    server = Server([live.device], address, tls, insecure=insecure)
    try:
        with ExitStack() as stack:
            interrupted = stack.enter_context(_interruption())
            stack.enter_context(control_socket(live, device_id, server, thrift_port=thrift_port))
            if thrift_port is not None:
                _serve_thrift(stack, device_id, thrift_port, server, console, needed=thrift_needed)
            events = Events()
            made = watched(live, server) if metrics is not None or web is not None else list
            if web is not None:
                from holdfast.web.switch_run import page_of_switch

                address = stack.enter_context(page_of_switch(live, server, made, events, web))
                console.print(f"the page: {address}", markup=False, highlight=False, soft_wrap=True)
            if metrics is not None:
                shown = stack.enter_context(pages(live, server, *metrics, events=events, made=made))
                console.print(
                    f"metrics at http://{shown.authority}/metrics", markup=False, highlight=False, soft_wrap=True
                )
            _serve(live, server, device_id, console, interrupted, hint, events)
    except KeyboardInterrupt:
        pass  # the second one
    finally:
        server.stop()
        live.stop()
    _print_statistics(live, console)
    _print_losses(live, server, console)
    hint.look(live)


def _serve_thrift(
    stack: ExitStack, device_id: int, port: int, server: Server, console: Console, *, needed: bool
) -> None:
    """Answer BMv2's clients at a port until the stack is closed. A port that is taken is only said, unless it is ``needed``.

    There is no Thrift beside a P4Runtime server that asks for certificates, or that is a Unix socket: whoever is on this machine
    could write through it.
    """
    from holdfast.bmv2.thrift_methods import switch_of
    from holdfast.bmv2.thrift_server import ThriftServer

    if server.access == "certificate" or server.address.startswith("unix:"):
        sentence = "no Thrift: whoever is on this machine could write there, without what P4Runtime asks for"
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)
        return
    try:
        stack.enter_context(ThriftServer(switch_of(device_id, port)))
    except LiveError as error:
        if needed:
            raise
        console.print(f"no Thrift: {error}", markup=False, highlight=False, soft_wrap=True)


def _print_statistics(live: LiveSwitch, console: Console) -> None:
    """Print the statistics of the ports, and the drops by reason."""
    if live.ports:
        rows = [
            {"port": port, "interface": name, **asdict(statistics)}
            for port, name, statistics, _ in live.port_readings()
        ]
        console.print(statistics_table(rows))
    for reason, count in live.drops().items():
        console.print(f"dropped, {reason}: {count}", markup=False)


def _print_losses(live: LiveSwitch, server: Server, console: Console) -> None:
    """Print how many digests, packet-ins and other notifications did not reach controllers, by reason, if any were lost."""
    losses = {
        "digest messages lost, too many waited": live.switch.digests_lost(),
        "packet-ins shorter than their header": live.device.short_packet_ins,
        "notifications dropped, clients read too slowly": server.notifications_dropped,
    }
    for what, count in losses.items():
        if count:
            console.print(f"{what}: {count}", markup=False)


class _OffloadsHint:
    """Says once what helps when frames come joined, as soon as the first are dropped: nothing else tells why TCP is slow."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._said = False

    def look(self, live: LiveSwitch) -> None:
        if self._said:
            return
        for port, name in live.ports.items():
            try:
                dropped = live.port_statistics(port).rx_oversized_drops
            except HoldfastError:
                continue  # it was removed meanwhile
            if dropped:
                self._console.print(
                    f"port {port}@{name}: {_OFFLOADS_HINT}", markup=False, highlight=False, soft_wrap=True
                )
                self._said = True
                return


@contextmanager
def _interruption() -> Iterator[threading.Event]:
    """Yield an event that the first SIGINT or SIGTERM sets; the next signal has its usual effect.

    Unlike an event, an exception could come at any place in the program, and would be lost in places such as gRPC's call-backs.
    """
    interrupted = threading.Event()
    before: dict[signal.Signals, Any] = {}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def interrupt(_number: int, _frame: object) -> None:
        interrupted.set()
        restore()

    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, interrupt)
    try:
        yield interrupted
    finally:
        restore()


def _serve(
    live: LiveSwitch,
    server: Server,
    device_id: int,
    console: Console,
    interrupted: threading.Event,
    hint: _OffloadsHint,
    events: Events,
) -> None:
    """Run the switch and its server until ``interrupted`` is set."""
    live.start()
    server.start()
    shown = "no pipeline" if live.device.owner.running is None else live.switch.program.name
    console.print(
        f"{shown}: {len(live.ports)} ports, P4Runtime on {server.address}, device {device_id}; Ctrl-C ends it",
        markup=False,
    )
    next_look_s = time.monotonic()
    while not interrupted.is_set():
        if (now_s := time.monotonic()) >= next_look_s:
            hint.look(live)
            if lost := live.lost_record():
                console.print(f"warning: {lost}", markup=False, highlight=False, soft_wrap=True)
            next_look_s = now_s + _LOOK_S
        for notification in live.poll(0.2):
            if notification.kind == "port_change":
                state = "up" if notification.up else "down"
                console.print(f"port {notification.port} is {state}", markup=False)
                events.publish("port", port=notification.port, up=notification.up)
