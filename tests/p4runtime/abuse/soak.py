"""Soak test of the server: traffic, churn, slow readers, reconnects and malformed messages together.

    python tests/p4runtime/abuse/soak.py --seconds 3600

A switch with 10,000 packets/s runs in a process of its own, so the measures are the server's and not its clients'. Every
sample is a line of JSON. The verdict compares the medians of two intervals: the time after the warm-up (the first half of it,
at most ten minutes) is divided into five, and the first and the last count. Memory must not grow by more than 10 % between
them, threads and descriptors must not differ by more than 4; the switch may lose no packet, and no write of the primary may fail.
Quantiles of the times of its single writes are by the clock; the clients are threads of one process, which the machine may delay.
"""

# ruff: noqa: E402 - the published stubs load only after holdfast's

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from types import SimpleNamespace

sys.path[:0] = [str(Path(__file__).parents[1])]

import grpc

# Before the published stubs, which need it to load.
from holdfast.p4runtime import GrpcClient
from holdfast.p4runtime.errors import P4RuntimeError

# isort: split
from abuse.steady import ended, request, served, steady
from p4.v1 import p4runtime_pb2 as p4
from p4.v1 import p4runtime_pb2_grpc as p4_grpc
from random_messages import ids_of, message_of

ENTRIES = 20_000
MEMORY_TOLERANCE = 0.10
COUNT_TOLERANCE = 4
WARM_UP_S = 600.0
QUANTILES = (0.5, 0.9, 0.99, 0.999)
METHODS = ("Write", "Read", "SetForwardingPipelineConfig", "GetForwardingPipelineConfig", "Capabilities")


# ---- The switch ----


def serve(program: str = "events.p4") -> None:
    """Run a switch until standard input ends. The first line printed is its address, the last counts its packets as JSON."""
    with steady(program, judged=False) as switch:
        with served(switch):
            print(switch.server.address, flush=True)
            sys.stdin.read()
        found = ended(switch.core)
        late_ms = switch.core.wall_statistics().max_command_cpu_ps / 1e9
        print(json.dumps({"sent": found.sent, "lost": found.lost, "longest_command_ms": late_ms}), flush=True)


@dataclass(frozen=True)
class Sample:
    """Of the server's process."""

    at_s: float
    rss_mb: float
    threads: int
    descriptors: int
    writes: int
    slowest_write_s: float


@dataclass(frozen=True)
class Verdict:
    """What the samples come to."""

    rss_mb: tuple[float, float]
    threads: tuple[float, float]
    descriptors: tuple[float, float]
    sent: int
    lost: int
    longest_command_ms: float
    writes: int
    slowest_write_s: float
    write_quantiles_s: dict[float, float]
    actions: dict[str, int]

    @property
    def holds(self) -> bool:
        """True if memory, threads and descriptors stayed flat, no packet was lost and writes were made."""
        early_mb, late_mb = self.rss_mb
        counts = (self.threads, self.descriptors)
        flat = all(abs(late - early) <= COUNT_TOLERANCE for early, late in counts)
        return flat and late_mb <= early_mb * (1 + MEMORY_TOLERANCE) and self.lost == 0 and self.writes > 0


# ---- The clients ----


class Clients:
    """Each loop in a thread of its own, until :meth:`end`. What goes wrong in the primary's is kept, and ends the soak."""

    def __init__(self, address: str, seed: int) -> None:
        self.address, self.seed = address, seed
        self.actions: dict[str, int] = {}
        self.writes = 0
        self.write_times_s = array("f")
        self.error: BaseException | None = None
        self.over = threading.Event()
        # The primary's, for the ids of the program; nothing else of it is used by the others.
        self.primary = GrpcClient(address, timeout_s=60)
        self.device = SimpleNamespace(
            owner=SimpleNamespace(running=SimpleNamespace(config=SimpleNamespace(p4info=self.primary.p4info.message)))
        )
        loops = (self._churn, self._read_slowly, self._reconnect, self._send_nonsense, self._never_read)
        self._threads = [threading.Thread(target=self._loop, args=(loop,), daemon=True) for loop in loops]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self.over.set()
        for thread in self._threads:
            thread.join(60)
        self.primary.close()

    def _loop(self, action: Callable[[Random], None]) -> None:
        random = Random(f"{self.seed} {action.__name__}")
        while not self.over.is_set():
            try:
                action(random)
            except (P4RuntimeError, grpc.RpcError) as e:
                if action == self._churn:
                    self.error = e
                    self.over.set()
            self.actions[action.__name__[1:]] = self.actions.get(action.__name__[1:], 0) + 1

    def _request(self, kind: int, numbers: range, **more: object) -> p4.WriteRequest:
        return request(self.device, kind, numbers, **more)  # type: ignore[arg-type]

    def _write(self, message: p4.WriteRequest, *, timed: bool = True) -> None:
        begin = time.monotonic()
        self.primary._call_write(message.SerializeToString())
        if timed:
            self.write_times_s.append(time.monotonic() - begin)
        self.writes += 1

    @property
    def slowest_s(self) -> float:
        """The time in seconds of the slowest single write so far."""
        return max(self.write_times_s, default=0.0)

    def _churn(self, random: Random) -> None:
        """Write single entries as the primary, and insert and delete batches, with and without metadata and idle timeouts."""
        for number in range(1 << 32, (1 << 32) + 50):
            for kind in (p4.Update.INSERT, p4.Update.MODIFY, p4.Update.DELETE):
                self._write(self._request(kind, range(number, number + 1)))
            self.over.wait(0.02)
        size = random.randrange(1, ENTRIES)
        start = random.choice((1, 1 << 24))
        more = random.choice(({}, {"metadata": b"m"}, {"timeout_ns": 50_000_000}))
        batch = range(start, start + size)
        self._write(self._request(p4.Update.INSERT, batch, **more), timed=False)
        self.over.wait(random.random())
        self._write(self._request(p4.Update.DELETE, batch), timed=False)

    def _read_slowly(self, random: Random) -> None:
        """Start a Read, take some of its messages, wait, and then cancel it or take the rest."""
        wanted = p4.ReadRequest(device_id=1)
        wanted.entities.add().table_entry.SetInParent()
        with grpc.insecure_channel(self.address) as channel:
            call = p4_grpc.P4RuntimeStub(channel).Read(wanted, timeout=60)
            for _ in zip(range(random.randrange(20)), call, strict=False):
                self.over.wait(0.02)
            self.over.wait(random.random())
            if random.random() < 0.5:
                call.cancel()
            else:
                for _ in call:
                    pass

    def _reconnect(self, random: Random) -> None:
        """Open streams of backups, and of primaries of other roles, and close them or drop the connection."""
        role = random.choice(("", "", f"role {random.randrange(200)}"))
        with grpc.insecure_channel(self.address) as channel:
            message = p4.StreamMessageRequest()
            message.arbitration.device_id = 1
            message.arbitration.election_id.low = 0 if not role else random.randrange(5)
            if role:
                message.arbitration.role.name = role
            calls = [
                p4_grpc.P4RuntimeStub(channel).StreamChannel(self._forever(message))
                for _ in range(random.randrange(1, 6))
            ]
            for call in calls:
                with suppress(grpc.RpcError):
                    next(call)
            for call in calls[: random.randrange(len(calls) + 1)]:
                call.cancel()
            self.over.wait(random.random() / 5)

    def _forever(self, message: p4.StreamMessageRequest) -> Iterator[p4.StreamMessageRequest]:
        yield message
        self.over.wait(5)

    def _send_nonsense(self, random: Random) -> None:
        """Send random bytes in place of messages, and messages with random content."""
        ids = ids_of(self.primary.p4info)
        with grpc.insecure_channel(self.address) as channel:
            for _ in range(20):
                method = random.choice(METHODS)
                data = random.randbytes(random.randrange(100))
                if random.random() < 0.5 and method in ("Write", "Read"):
                    kind = p4.WriteRequest if method == "Write" else p4.ReadRequest
                    data = message_of(random, kind, ids).SerializeToString()
                path = f"/p4.v1.P4Runtime/{method}"
                with suppress(grpc.RpcError):
                    if method == "Read":
                        list(channel.unary_stream(path)(data, timeout=60))
                    else:
                        channel.unary_unary(path)(data, timeout=60)
            stream = channel.stream_stream("/p4.v1.P4Runtime/StreamChannel")(iter([random.randbytes(30)]), timeout=60)
            with suppress(grpc.RpcError):
                list(stream)
        self.over.wait(0.1)

    def _never_read(self, random: Random) -> None:
        """Send packet-outs as a backup, and do not read the errors that answer them."""
        first = p4.StreamMessageRequest()
        first.arbitration.device_id = 1
        packet = p4.StreamMessageRequest()
        packet.packet.payload = random.randbytes(1 << 20)
        with grpc.insecure_channel(self.address, options=[("grpc.http2.bdp_probe", 0)]) as channel:
            call = p4_grpc.P4RuntimeStub(channel).StreamChannel(self._packets(first, packet))
            self.over.wait(random.random() * 3)
            call.cancel()

    def _packets(
        self, first: p4.StreamMessageRequest, packet: p4.StreamMessageRequest
    ) -> Iterator[p4.StreamMessageRequest]:
        yield first
        for _ in range(50):
            yield packet
        self.over.wait(3)


# ---- The soak ----


@contextmanager
def server(program: str = "events.p4") -> Iterator[subprocess.Popen[str]]:
    """Run :func:`serve` in a process of its own; yield the process, and kill it at the end of the context."""
    command = [sys.executable, __file__, "--serve", program]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def rss_mb(pid: int) -> float:
    """Return the resident memory of a process in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def sample(pid: int, clients: Clients, at_s: float) -> Sample:
    folder = Path(f"/proc/{pid}")
    return Sample(
        at_s=round(at_s, 1),
        rss_mb=rss_mb(pid),
        threads=len(list((folder / "task").iterdir())),
        descriptors=len(list((folder / "fd").iterdir())),
        writes=clients.writes,
        slowest_write_s=clients.slowest_s,
    )


def run(seconds: float, period_s: float, seed: int, log: Callable[[str], None]) -> Verdict:
    """Run clients against a server for ``seconds``, and return the verdict. Raises the error of a failed write of the primary."""
    with server() as process:
        assert process.stdout is not None
        clients = Clients(process.stdout.readline().strip(), seed)
        clients.start()
        begin, samples = time.monotonic(), []
        while time.monotonic() - begin < seconds and not clients.over.wait(period_s):
            samples.append(sample(process.pid, clients, time.monotonic() - begin))
            log(json.dumps(asdict(samples[-1])))
        clients.end()
        if clients.error:
            raise clients.error
        out, _ = process.communicate("", timeout=120)
    ended = json.loads(out)
    warm_up_s = min(seconds / 2, WARM_UP_S)
    warm = [each for each in samples if each.at_s >= warm_up_s] or samples[-1:]
    fifth = max(len(warm) // 5, 1)

    def early_and_late(field: str) -> tuple[float, float]:
        values = [getattr(each, field) for each in warm]
        return statistics.median(values[:fifth]), statistics.median(values[-fifth:])

    times_s = sorted(clients.write_times_s)
    quantiles = {q: times_s[min(int(q * len(times_s)), len(times_s) - 1)] for q in QUANTILES if times_s}

    return Verdict(
        rss_mb=early_and_late("rss_mb"),
        threads=early_and_late("threads"),
        descriptors=early_and_late("descriptors"),
        writes=clients.writes,
        slowest_write_s=clients.slowest_s,
        write_quantiles_s=quantiles,
        actions=clients.actions,
        **ended,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--period", type=float, default=5.0, help="seconds between two samples")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--serve", metavar="PROGRAM", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve)
        return 0
    verdict = run(arguments.seconds, arguments.period, arguments.seed, lambda line: print(line, flush=True))
    print(json.dumps({**asdict(verdict), "holds": verdict.holds}))
    return 0 if verdict.holds else 1


if __name__ == "__main__":
    sys.exit(main())
