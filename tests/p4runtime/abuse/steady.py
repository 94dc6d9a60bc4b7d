"""A switch in real time that carries 10,000 packets/s between two modelled hosts, with a P4Runtime server; a primary writes to it.

At the end of each test no packet of the stream may be missing, each write of the primary must have been answered within
``LONGEST_WRITE_S``, and memory must be back within ``MEMORY_TOLERANCE`` when the switch has been cleared, but for what the clients
keep, which are in the same process. (In ``test_memory`` they are not.)

A time is judged beside a control: a second switch in the same process, which nobody attacks, and to which another primary writes as
often. What the machine, the interpreter and the tests themselves cost delays both; a limit is exceeded by what goes beyond.

With ``HOLDFAST_ABUSE_LOG=FILE`` each test appends a line of JSON: its packets sent and lost, the slowest write of its primary (by
the clock, and without what the machine took: see :class:`Taken`), the longest step of control in processor time, and the resident
memory before and after.
"""

from __future__ import annotations

import gc
import json
import math
import os
import resource
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import grpc
from p4.v1 import p4runtime_pb2 as p4

from holdfast import _core
from holdfast.errors import HoldfastError
from holdfast.measurements import FlowStatistics
from holdfast.p4runtime import Device, GrpcClient, P4InfoIndex, P4RuntimeError, Server, TlsFiles
from holdfast.p4runtime.stubs import p4info_pb2
from holdfast.traffic import UdpStream

HERE = Path(__file__).parent
PACKETS_PER_S = 10_000

LONGEST_WRITE_S = 0.2
MEMORY_TOLERANCE = 0.10
CLIENTS_MB = 32
"""What protobuf keeps in this process of the messages of clients: the table of its objects does not shrink."""
WARM_UP_ENTRIES = 4096
TIMED_ROLE = "timed"
SWITCH_INTERVAL_S = 0.0005
"""After which a thread of this interpreter gives way to another one.

The tests build their messages beside the server, in the same interpreter, and a write changes the thread some ten times. With
Python's 5 ms each change waits for whoever builds, and a write took 0.2 s on an idle machine. Clients of a switch are processes of
their own, so that is no time of the server's.
"""


class SlowError(AssertionError):
    """Says that something took longer than it may. A test that fails so is made again: see ``conftest``."""


@dataclass
class Steady:
    """What the tests act on."""

    core: _core.Network
    device: Device
    server: Server
    credentials: grpc.ChannelCredentials | None = None
    """Of the primary and of the warm-up, if clients need them."""
    writer: Writer = field(init=False)
    """The primary that writes throughout."""
    control: Writer = field(init=False)
    """The primary of the switch that nobody attacks."""
    configuring_s: float = 0.0
    """The longest time that a new pipeline took, which writes wait for."""

    def __post_init__(self) -> None:
        self.writer = Writer(self.server.address, self.credentials)

    @contextmanager
    def within(self, limit_s: float) -> Iterator[None]:
        """Check that the context takes at most ``limit_s``, plus the time by which writes to the control were delayed in it."""
        begin = Moment.now()
        yield
        self.judge(begin.taken(), limit_s, "it")

    def judge(self, taken: Taken, limit_s: float, what: str) -> None:
        """Check that ``what`` took at most ``limit_s``, plus the time by which writes to the control were delayed meanwhile."""
        beside_s = self.control.longest_during_s(taken)
        if taken.own_s > limit_s + beside_s:
            raise SlowError(f"{what} took {taken}; writes to the control {beside_s:.3f} s")

    def judge_steps(self, limit_ms: float) -> None:
        """Check that no step of control took more than ``limit_ms`` of processor time between two packets."""
        if (longest_ms := self.longest_command_ms()) > limit_ms:
            raise SlowError(f"a step of control took {longest_ms} ms, and may take {limit_ms} ms")

    @property
    def index(self) -> P4InfoIndex:
        """The program's P4Info."""
        assert self.device.owner.running is not None
        return index_of(self.device.owner.running.config.p4info.SerializeToString())

    def longest_command_ms(self) -> float:
        """Return the most processor time in ms that a step of control took between two packets."""
        time.sleep(0.05)  # a step is answered before it is counted
        return self.core.wall_statistics().max_command_cpu_ps / 1e9

    def fill(self, entries: int, batch: int = 1 << 16) -> None:
        """Insert entries 1 to ``entries`` into the table of addresses, in batches."""
        for start in range(1, entries + 1, batch):
            numbers = range(start, min(start + batch, entries + 1))
            self.device.write(request(self.device, p4.Update.INSERT, numbers))


@cache
def index_of(p4info: bytes) -> P4InfoIndex:
    """Return the index of a serialized P4Info."""
    return P4InfoIndex(p4info_pb2.P4Info.FromString(p4info))


def largest_lists(index: P4InfoIndex) -> p4.WriteRequest:
    """Return a request that configures the program's digest with the largest and latest lists that P4Runtime allows."""
    (digest,) = index.digests
    written = p4.WriteRequest(device_id=1)
    written.election_id.low = 1
    entry = written.updates.add(type=p4.Update.INSERT).entity.digest_entry
    entry.digest_id = digest.id
    entry.config.max_list_size = 2**31 - 1
    entry.config.max_timeout_ns = entry.config.ack_timeout_ns = 2**62
    return written


def request(
    device: Device, kind: int, numbers: range, *, atomicity: int = 0, metadata: bytes = b"", timeout_ns: int = 0
) -> p4.WriteRequest:
    """Return a request that has one update of the table of addresses for each of ``numbers``."""
    assert device.owner.running is not None
    index = index_of(device.owner.running.config.p4info.SerializeToString())
    table, action = index.tables["addresses"], index.actions["note"]
    written = p4.WriteRequest(device_id=1, atomicity=atomicity)
    written.election_id.low = 1
    for number in numbers:
        update = written.updates.add(type=kind)
        entry = update.entity.table_entry
        entry.table_id = table.id
        match = entry.match.add(field_id=1)
        match.exact.value = number.to_bytes(6, "big").lstrip(b"\0") or b"\0"
        if kind != p4.Update.DELETE:
            entry.action.action.action_id = action.id
            for param in action.params:
                entry.action.action.params.add(param_id=param.id, value=b"\1")
        entry.metadata, entry.idle_timeout_ns = metadata, timeout_ns
    return written


@contextmanager
def steady(
    source: str = "steady.p4",
    *,
    copies_per_s: int = _core.COPIES_PER_S,
    judged: bool = True,
    tls: TlsFiles | None = None,
    credentials: grpc.ChannelCredentials | None = None,
) -> Iterator[Steady]:
    """Run a switch under a steady stream of packets, and yield it; at the end, check what the module's documentation says.

    With ``tls``, the primary has ``credentials``, whose certificate may read and write as the default role and ``TIMED_ROLE``.

    Unless ``judged``, it runs as it does for whoever uses it: nothing is written, measured or required beside.
    """
    _core.set_up_allocator()  # as holdfast switch does
    program = _core.Program.compile(str(HERE / source))
    core = _core.Network()
    switch = core.add_switch("s1", program)
    for number, name in enumerate(("a", "b")):
        core.add_host(
            name,
            cards=[{"mac": f"02:00:00:00:00:0{number}", "address": f"10.0.0.{number + 1}/8"}],
            neighbours={f"10.0.0.{2 - number}": f"02:00:00:00:00:0{1 - number}"},
        )
        core.add_link(a=name, a_port=0, b="s1", b_port=number, a_to_b={"rate_bps": 10**10})
    device = Device(1, switch)
    device.load(program)
    load = UdpStream(
        source="a", destination="b", packets_per_s=PACKETS_PER_S, payload_bytes=64, stop_s=10**4, log_packets=False
    )
    core.add_udp_stream(**load.model_dump())
    with Server([device], "127.0.0.1:0", tls) as server, switch_interval(SWITCH_INTERVAL_S):
        core.start(copies_per_s=copies_per_s)
        try:
            running = Steady(core, device, server, credentials)
            if not judged:
                yield running
                return
            with quiet(program) as running.control, running.writer:
                warm_up(running)
                before_mb = settled_mb()
                yield running
            longest_step_ms = running.longest_command_ms()
            found = ended(core)
            device.load(program)
            after_mb = settled_mb()
            write_log(running, found, longest_step_ms, (before_mb, after_mb))
            check(running, found, before_mb, after_mb)
        finally:
            core.stop()


@contextmanager
def quiet(program: _core.Program) -> Iterator[Writer]:
    """Run a separate switch without packets, and yield a primary that writes to it."""
    core = _core.Network()
    device = Device(1, core.add_switch("quiet", program))
    device.load(program)
    with Server([device], "127.0.0.1:0") as server:
        core.start()
        try:
            with Writer(server.address) as writer:
                yield writer
        finally:
            core.stop()


@contextmanager
def switch_interval(interval_s: float) -> Iterator[None]:
    """Set the interpreter's switch interval in seconds within the context."""
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(interval_s)
    try:
        yield
    finally:
        sys.setswitchinterval(before_s)


def memory_mb() -> float:
    """Return the resident memory of this process in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def settled_mb() -> float:
    """Return this process's resident memory in MB after Python and the allocator have returned all freed memory.

    The test ``test_memory`` measures what a server in a process of its own keeps.
    """
    gc.collect()
    _core.give_back_freed()
    return memory_mb()


def warm_up(running: Steady) -> None:
    """Do each kind of work once, so that memory that modules and threads take at their first use is counted before the test."""
    with GrpcClient(running.server.address, credentials=running.credentials) as client:
        running.fill(WARM_UP_ENTRIES)
        wanted = p4.ReadRequest(device_id=1)
        wanted.entities.add().table_entry.SetInParent()
        assert sum(len(response.entities) for response in client._call_read(wanted)) == WARM_UP_ENTRIES
        running.device.write(request(running.device, p4.Update.DELETE, range(1, WARM_UP_ENTRIES + 1)))


def check(running: Steady, found: FlowStatistics, before_mb: float, after_mb: float) -> None:
    """Check what must hold at the end of each test, as the module's documentation says."""
    assert found.sent > 0
    assert found.lost == 0, f"{found.lost} of {found.sent} packets were lost"
    assert running.writer.writes > 0
    assert running.control.writes > 0
    for slow in running.writer.slow:
        running.judge(slow, LONGEST_WRITE_S + running.configuring_s, "a write of the primary")
    most_mb = before_mb * (1 + MEMORY_TOLERANCE) + CLIENTS_MB
    assert after_mb <= most_mb, f"memory was {before_mb:.1f} MB and is {after_mb:.1f} MB"


def write_log(
    running: Steady, found: FlowStatistics, longest_step_ms: float, memory_before_and_after_mb: tuple[float, float]
) -> None:
    """Append the test's line to the log, whose fields the module's documentation lists."""
    if (path := os.environ.get("HOLDFAST_ABUSE_LOG")) is None:
        return
    line = {
        "test": os.environ.get("PYTEST_CURRENT_TEST", "").split("::")[-1].split(" ")[0],
        "sent": found.sent,
        "lost": found.lost,
        "writes": running.writer.writes,
        "slowest_write_s": running.writer.slowest.wall_s,
        "slowest_write_own_s": running.writer.slowest.own_s,
        "longest_step_ms": longest_step_ms,
        "memory_mb": memory_before_and_after_mb,
    }
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def ended(core: _core.Network) -> FlowStatistics:
    """End the stream, wait up to 60 s for its last packets, and return its statistics."""
    core.end_flow(0)
    deadline = time.monotonic() + 60
    while (found := core.snapshot(FlowStatistics, flow=0)[0]).lost and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


@contextmanager
def served(switch: Steady) -> Iterator[None]:
    """Pass the network's notifications to the device within the context, as the process of a switch does."""
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            for notification in switch.core.poll(0.1):
                if notification.kind == "digest":
                    switch.device.collect_digests(time.time_ns())
                elif notification.kind == "idle_timeout":
                    switch.device.collect_idle(time.time_ns())

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@dataclass(frozen=True)
class Taken:
    """What something took: time, and of all threads but the busiest processor time and time that they waited for a processor.

    The server and its clients are threads of this process.
    """

    wall_s: float = 0.0
    cpu_s: float = 0.0
    delayed_s: float = 0.0
    end_s: float = 0.0
    """When it was over, by the monotonic clock."""

    @property
    def own_s(self) -> float:
        """The time in seconds without delays that other processes of the machine caused.

        It is at most the time. It is at least the processor time, which is work that went before; and what is neither work nor
        waiting for a processor is waiting for something that this process does not give, such as a lock.
        """
        return min(self.wall_s, max(self.cpu_s, self.wall_s - self.delayed_s))


@dataclass(frozen=True)
class Moment:
    """From which :class:`Taken` counts."""

    wall_s: float
    threads: dict[str, tuple[float, float]]

    @classmethod
    def now(cls) -> Moment:
        """Return a record of the present time and of each thread's processor time."""
        return cls(time.monotonic(), _threads())

    def taken(self) -> Taken:
        """Return the time and processor time that this process has used since this moment."""
        end_s = time.monotonic()
        wall_s = end_s - self.wall_s
        if wall_s < LONGEST_WRITE_S / 2:
            return Taken(wall_s, end_s=end_s)  # the rest does not matter
        since = []
        for thread, (ran, delayed) in _threads().items():
            ran_before, delayed_before = self.threads.get(thread, (0.0, 0.0))
            since.append((max(0.0, ran - ran_before), max(0.0, delayed - delayed_before)))
        # The busiest thread is the network's, which looks for packets whenever it has a processor.
        others = sorted(since)[:-1]
        return Taken(wall_s, sum(ran for ran, _ in others), sum(delayed for _, delayed in others), end_s)


def _threads() -> dict[str, tuple[float, float]]:
    """Return by thread the seconds that it ran, and the seconds that it was ready but had no processor.

    The kernel counts them in ``schedstat``.
    """
    found = {}
    for thread in Path("/proc/self/task").iterdir():
        with suppress(OSError, IndexError):  # it has ended, or the kernel does not count
            ran, delayed = (thread / "schedstat").read_bytes().split()[:2]
            found[thread.name] = (int(ran) / 1e9, int(delayed) / 1e9)
    return found


class Writer:
    """The primary of a role of its own, which writes one update after another, whatever the others do.

    It writes a multicast group, so it changes nothing that tests count.
    """

    def __init__(
        self, address: str, credentials: grpc.ChannelCredentials | None = None, *, period_s: float = 0.02
    ) -> None:
        self.slowest = Taken()
        """The write with the longest :attr:`Taken.own_s`."""
        self.slow: list[Taken] = []
        """The writes that took longer than ``LONGEST_WRITE_S``."""
        self.writes = 0
        self.may_be_refused = False
        """While the pipeline is replaced, the group goes; what counts is that there is an answer."""
        self._address, self._credentials = address, credentials
        self._period_s = period_s
        self._due_s = math.inf
        """When the next write was to begin, or the one that has no answer yet."""
        self._spans: list[tuple[float, float]] = []
        """When each write was to begin, and when it was answered."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.error: grpc.RpcError | HoldfastError | None = None

    def _run(self) -> None:
        kinds = (p4.Update.INSERT, p4.Update.MODIFY, p4.Update.DELETE)
        message = p4.WriteRequest(device_id=1, role=TIMED_ROLE)
        message.election_id.low = 1
        group = message.updates.add().entity.packet_replication_engine_entry.multicast_group_entry
        group.multicast_group_id = 1
        try:
            while not self._over.is_set():
                message.updates[0].type = kinds[self.writes % 3]
                begin = Moment.now()
                self._due_s = min(self._due_s, begin.wall_s)
                self._write(message)
                taken = begin.taken()
                self._spans.append((self._due_s, taken.end_s))
                self._due_s = taken.end_s + self._period_s
                self.slowest = max(self.slowest, taken, key=lambda taken: taken.own_s)
                if taken.own_s > LONGEST_WRITE_S:
                    self.slow.append(taken)
                self.writes += 1
                while self._client.poll(0.0) is not None:
                    pass  # notifications, of which this role has its share
                self._over.wait(self._period_s)
        except (grpc.RpcError, HoldfastError) as e:
            self.error = e

    def _write(self, message: p4.WriteRequest) -> None:
        try:
            self._client._call_write(message.SerializeToString())
        except P4RuntimeError as e:
            refusals = {failure.code for failure in e.failures}
            if not self.may_be_refused or not refusals or not refusals <= {"ABORTED", "NOT_FOUND", "ALREADY_EXISTS"}:
                raise

    def longest_during_s(self, taken: Taken) -> float:
        """Return the longest time in s that a write waited to begin and for its answer, within the time of ``taken``."""
        begin_s, end_s = taken.end_s - taken.wall_s, taken.end_s
        spans = [*self._spans, (self._due_s, math.inf)]
        return max(0.0, *(min(end, end_s) - max(due, begin_s) for due, end in spans))

    def __enter__(self) -> Writer:
        self._client = GrpcClient(self._address, role=TIMED_ROLE, credentials=self._credentials)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._client.close()
        if self.error:
            raise self.error
