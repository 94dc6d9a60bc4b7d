"""Makes faults in running processes, measures the cost, and writes the table of docs/SECURITY.md.

``python -P tests/live/faults.py`` does it. A process is killed, stopped for a while, or loses its interface, disk or time of
day. A row says how long packets were lost, what became of sessions, when a newcomer is served who comes when the fault is made, and
what is left behind. It needs root, FreeRADIUS and a C compiler.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import astuple, dataclass
from itertools import takewhile
from pathlib import Path

import yaml

from holdfast import interpreter
from holdfast.apps.bng.tests import site as sites
from holdfast.apps.bng.tests.site import SERVER, Crowd, Site, free_tcp_port
from holdfast.apps.firewall import program as firewall
from holdfast.apps.telemetry.test_collector import report
from holdfast.live.hosts import hosts, start
from holdfast.subscribers import operator_requests
from holdfast.subscribers.tests import freeradius
from holdfast.topology import Topology

SECURITY = Path(__file__).parents[2] / "docs/SECURITY.md"
SUBSCRIBERS = 6
STOPPED_S = 3.0
"""The time for which a process is stopped, or an operator needs to start it again."""
TWO_DAYS_S = 2 * 86_400
STEPS = ("nothing", "nothing, but late", "up to 1 s", "up to 5 s", "up to 20 s", "up to 60 s", "all")
"""The time for which packets were lost, or a newcomer waited: the least bound that held."""
FAULTS = {
    "control plane": ("kill -9", "SIGSTOP", "full disk"),
    "authentication plane": ("kill -9", "SIGSTOP"),
    "plane forward1": ("kill -9", "SIGSTOP", "interface deleted"),
    "balancer": ("kill -9", "SIGSTOP"),
    "all of a gateway": ("clock steps 2 days ahead", "clock steps 2 days back"),
    "collector": ("kill -9", "SIGSTOP", "full disk", "clock steps 2 days ahead", "clock steps 2 days back"),
    "firewall's controller": ("kill -9", "SIGSTOP"),
    "firewall's switch": ("kill -9", "SIGSTOP"),
    "all of a firewall": ("clock steps 2 days ahead", "clock steps 2 days back"),
}

CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

/* Adds the seconds that a file tells to the time of day, and to no other clock. */
static long step(void) {
    static volatile long *shared;
    if (!shared) {
        int file = open(getenv("STEPPED_CLOCK"), O_RDONLY);
        void *found = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
        if (found == MAP_FAILED) return 0;
        shared = found;
    }
    return *shared;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(clock, now);
    if (!status && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += step();
    return status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec read;
    (void)zone;
    int status = clock_gettime(CLOCK_REALTIME, &read);
    now->tv_sec = read.tv_sec;
    now->tv_usec = read.tv_nsec / 1000;
    return status;
}

time_t time(time_t *where) {
    struct timespec read;
    clock_gettime(CLOCK_REALTIME, &read);
    if (where) *where = read.tv_sec;
    return read.tv_sec;
}
"""


@dataclass(frozen=True)
class Row:
    """A row of the table. ``lost``: of packets, or reports; ``stays``: of sessions, or rows; ``newcomer``: when one is served."""

    process: str
    fault: str
    lost: str
    stays: str
    newcomer: str
    left: str


class Clock:
    """A time of day that can be stepped for processes that are started with ``environment``."""

    def __init__(self, folder: Path) -> None:
        source, library, self._file = folder / "clock.c", folder / "clock.so", folder / "clock"
        source.write_text(CLOCK, encoding="utf-8")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True)
        self.step(0)
        self.environment = {"LD_PRELOAD": str(library), "STEPPED_CLOCK": str(self._file)}

    def step(self, seconds: int) -> None:
        """Set the time of day ``seconds`` later than it really is, for the processes that read this file."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(seconds.to_bytes(8, sys.byteorder, signed=True))


def missing() -> str | None:
    """Return which privileges or tools the faults need and this machine lacks; None if it lacks none."""
    if os.geteuid() != 0:
        return "faults are made as root only"
    if shutil.which("cc") is None:
        return "not installed: a C compiler, for the time of day that is stepped"
    return freeradius.missing()


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Mount a new file system of this size at ``folder``, and unmount it at the end of the context."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def fill(folder: Path) -> Path:
    """Fill a file system; return the file that takes the room."""
    ballast = folder / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1024))
    return ballast


def bound(seconds: float) -> str:
    """Return the least step of the table that is not below a time in seconds."""
    limits = (1.0, 5.0, 20.0, 60.0)
    return next((step for step, limit in zip(STEPS[2:], limits, strict=False) if seconds <= limit), STEPS[-1])


def waited(seconds: float) -> str:
    """Return the step for a newcomer's waiting time, to whose process a second for its start is granted."""
    return bound(max(seconds, 1.1))


def losses(found: dict[str, float]) -> str:
    """Return the step for a sender's counts: that of the outage if echoes were lost, else that of the slowest echo."""
    return bound(found["outage_ms"] / 1000) if found["lost"] else STEPS[found["slowest_ms"] > 1000]


def worse(measured: Row, said: Row) -> bool:
    """Return True if a measured row is worse than the table's: it has other words, or a time more than one step longer."""
    pairs = zip(astuple(measured)[2:], astuple(said)[2:], strict=True)
    return any(STEPS.index(a) > STEPS.index(b) + 1 if a in STEPS and b in STEPS else a != b for a, b in pairs)


def until(condition: Callable[[], bool], timeout_s: float) -> bool:
    end_s = time.monotonic() + timeout_s
    while time.monotonic() < end_s:
        if condition():
            return True
        time.sleep(0.1)
    return False


class Gateway:
    """A split gateway with subscribers who send packets all the time, on a small disk and a clock of its own."""

    def __init__(self, stack: ExitStack, folder: Path, clock: Clock) -> None:
        self.clock = clock
        before = dict(sites.ENVIRONMENT)
        sites.ENVIRONMENT.update(clock.environment)
        stack.callback(lambda: (sites.ENVIRONMENT.clear(), sites.ENVIRONMENT.update(before)))
        self.disk = stack.enter_context(small_disk(folder / "disk", "8m"))
        self.site = Site(folder, stack, planes=2)
        values = yaml.safe_load(self.site.configuration.read_text(encoding="utf-8"))
        values["gateway"]["state"] = str(self.disk / "state.db")
        values["gateway"]["echo_interval_s"] = 5
        self.cables = {
            "authentication plane": values["split"]["authentication"]["interfaces"][1],
            **{f"plane {name}": each["interfaces"][1] for name, each in values["split"]["planes"].items()},
        }
        self.site.configuration.write_text(yaml.safe_dump(values), encoding="utf-8")
        self.site.start()
        self.site.echo()
        self.crowd = self._crowd(SUBSCRIBERS)
        if self.crowd.hear()["states"] != {"up": SUBSCRIBERS}:
            raise RuntimeError("the subscribers are not online")
        self.newcomers = 1000

    def _crowd(self, number: int, first: int = 0, patience_s: float = 60.0) -> Crowd:
        return self.site.crowd(number, 100, patience_s, first)

    def online(self) -> set[tuple[int, str]]:
        """Return (session number, IPv4 address) of each of the crowd's sessions that are online."""
        return {(row["session"], row["ipv4"]) for row in self.site.sessions() if row["phase"] == "network"}

    def row(
        self, process: str, fault: str, make: Callable[[], object], mend: Callable[[], object], wait_s: float = 2.0
    ) -> Row:
        """Call ``make`` to inject a fault, after ``wait_s`` seconds call ``mend``, and return the row of measurements."""
        before = self.online()
        self.crowd.say(f"traffic 300 {SERVER}")
        time.sleep(0.5)
        make()
        began = time.monotonic()
        self.newcomers += 1
        late = self._crowd(1, first=self.newcomers, patience_s=60.0)
        time.sleep(wait_s)
        mend()
        served = late.hear()["states"] == {"up": 1}
        waited_s = time.monotonic() - began
        late.hang_up()
        time.sleep(1.0)
        echoes = self.crowd.ask("stop")
        until(lambda: len(self._rows()) == SUBSCRIBERS, 30)
        stayed = len(self.online() & before)
        return Row(
            process,
            fault,
            losses(echoes),
            "all stay" if stayed == len(before) else f"{stayed} of {len(before)} stay",
            waited(waited_s) if served else STEPS[-1],
            self._left_behind(),
        )

    def _rows(self) -> list[dict[str, object]]:
        with suppress(Exception):
            return self.site.sessions()
        return []

    def _left_behind(self) -> str:
        """Return as text what must not remain: sessions without a subscriber or accounting, lost planes."""
        found = []
        rows = self.site.sessions()
        if (ghosts := len(rows) - SUBSCRIBERS) > 0:
            found.append(f"{ghosts} sessions of nobody")

        def unaccounted() -> int:
            records = self.site.radius.accounted()
            begun = {each["Acct-Session-Id"] for each in records if each["Acct-Status-Type"] == "Start"}
            over = {each["Acct-Session-Id"] for each in records if each["Acct-Status-Type"] == "Stop"}
            return len(rows) - len(begun - over)

        if not until(lambda: unaccounted() == 0, 20):
            found.append(f"{unaccounted()} sessions more than in accounting")
        request = operator_requests.Sessions()
        planes = operator_requests.ask(self.site.name, request, operator_requests.SessionsAnswer).planes
        if sum(planes.values()) != len(rows):
            found.append(f"{sum(planes.values())} sessions on planes")
        return ", ".join(found) or "nothing"

    def faults(self, wanted: Callable[[str, str], bool]) -> Iterator[Row]:
        """Inject each wanted fault of each process in turn, and yield the rows of measurements."""
        site = self.site

        def nothing() -> None:
            pass

        def pid(process: str) -> int:
            if process == "control plane":
                assert site.process is not None
                return site.process.pid
            return site.switches[process]

        def send(process: str, number: signal.Signals) -> Callable[[], None]:
            return lambda: os.kill(pid(process), number)

        def back(process: str) -> Callable[[], object]:
            return lambda: site.hear("is back")

        if wanted("control plane", "kill -9"):
            yield self.row("control plane", "kill -9", site.kill, site.start, STOPPED_S)
        for process in ("authentication plane", "plane forward1", "balancer"):
            if wanted(process, "kill -9"):
                yield self.row(process, "kill -9", send(process, signal.SIGKILL), back(process), 0.0)
        for process in ("control plane", "authentication plane", "plane forward1", "balancer"):
            if wanted(process, "SIGSTOP"):
                stop, go = send(process, signal.SIGSTOP), send(process, signal.SIGCONT)
                yield self.row(process, "SIGSTOP", stop, go, STOPPED_S)
        if wanted("control plane", "full disk"):
            yield self.row("control plane", "full disk", lambda: fill(self.disk), self._make_room, STOPPED_S)
        for name, seconds in (("clock steps 2 days ahead", TWO_DAYS_S), ("clock steps 2 days back", 0)):
            if wanted("all of a gateway", name):
                yield self.row(
                    "all of a gateway", name, lambda seconds=seconds: self.clock.step(seconds), nothing, 12.0
                )
        if wanted("plane forward1", "interface deleted"):
            cable = self.cables["plane forward1"]
            yield self.row(
                "plane forward1", "interface deleted", lambda: ip("link", "del", cable), lambda: self.replug(cable)
            )

    def _make_room(self) -> None:
        """Free the disk. Raises RuntimeError if a subscriber came online while the disk was full."""
        if len(self.online()) != SUBSCRIBERS:
            raise RuntimeError("somebody came online who cannot be kept")
        (self.disk / "ballast").unlink()

    def replug(self, name: str) -> None:
        """Create a removed cable again, and restart the plane that uses it, as an operator would."""
        other = f"{name[:-1]}b"
        size = sites.CABLE_MTU
        ip("link", "add", name, "mtu", size, "type", "veth", "peer", "name", other, "mtu", size)
        for each in (name, other):
            ip("link", "set", each, "up")
        for process in ("plane forward1", "balancer"):
            os.kill(self.site.switches[process], signal.SIGKILL)
            self.site.hear("is back")


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Collector:
    """``holdfast collect`` in a namespace of its own, with reports that come all the time."""

    def __init__(self, stack: ExitStack, folder: Path, clock: Clock) -> None:
        self.stack, self.clock, self.folder = stack, clock, folder
        self.disk = stack.enter_context(small_disk(folder / "rows", "2m"))
        self.port, self.metrics = free_tcp_port(), free_tcp_port()
        self.process = self.start()
        self.sender = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self.sent = 0

    def start(self) -> subprocess.Popen[str]:
        """Start the collector with a new directory for its rows."""
        rows = self.disk / f"from-{time.monotonic_ns()}"
        words = ["--listen", f"127.0.0.1:{self.port}", "--metrics", f"127.0.0.1:{self.metrics}", "--parquet", str(rows)]
        process = subprocess.Popen(
            interpreter.module("holdfast", "collect", *words),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | self.clock.environment | {"COLUMNS": "200", "PYTHONUNBUFFERED": "1"},
        )
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        assert process.stdout is not None
        while "listening" not in process.stdout.readline():
            if process.poll() is not None:
                raise RuntimeError("the collector does not start")
        return process

    def taken(self) -> int:
        """Return the number of reports that the collector has received, by its own metric."""
        page = urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=30).read().decode()
        [count] = re.findall(r"^holdfast_int_packets_total (\S+)$", page, re.MULTILINE)
        return int(float(count))

    def send(self, seconds: float, per_s: int = 500) -> int:
        """Send reports for ``seconds`` at ``per_s`` a second; return how many were sent."""
        end_s, sent = time.monotonic() + seconds, 0
        while time.monotonic() < end_s:
            with suppress(OSError):
                self.sender.sendto(report(sequence=self.sent & 0x3FFFFF), ("127.0.0.1", self.port))
            self.sent += 1
            sent += 1
            time.sleep(1 / per_s)
        return sent

    def row(self, fault: str, make: Callable[[], object], mend: Callable[[], object], *, anew: bool = False) -> Row:
        """Inject a fault and measure the reports lost since, and whether earlier rows are still readable."""
        self.send(1.0)
        time.sleep(2.5)
        before = self.taken()
        make()
        sent = self.send(STOPPED_S)
        mend()
        began = time.monotonic()
        sent_after = self.send(1.0)
        until(lambda: self.taken() >= (0 if anew else before) + sent_after, 20)
        time.sleep(2.5)
        taken = self.taken() - (0 if anew else before)
        lost = sent + sent_after - taken
        return Row(
            "collector",
            fault,
            bound(lost / 500) if lost > 0 else STEPS[0],
            "counts begin anew" if anew else "counts stay",
            waited(time.monotonic() - began - 3.5),
            self._left_behind(),
        )

    def _left_behind(self) -> str:
        broken = [each for each in self.disk.rglob("*.parquet") if not each.read_bytes().endswith(b"PAR1")]
        return f"{len(broken)} unfinished files" if broken else "nothing"

    def faults(self, wanted: Callable[[str, str], bool]) -> Iterator[Row]:
        """Inject each wanted fault in turn, and yield the rows of measurements."""

        def again() -> None:
            self.process = self.start()

        def kill() -> None:
            self.process.kill()
            self.process.wait()

        if wanted("collector", "SIGSTOP"):
            stop, go = (
                lambda number=number: self.process.send_signal(number) for number in (signal.SIGSTOP, signal.SIGCONT)
            )
            yield self.row("SIGSTOP", stop, go)
        for name, seconds in (("clock steps 2 days ahead", TWO_DAYS_S), ("clock steps 2 days back", 0)):
            if wanted("collector", name):
                yield self.row(name, lambda seconds=seconds: self.clock.step(seconds), lambda: None)
        if wanted("collector", "full disk"):
            yield self.row("full disk", lambda: fill(self.disk), (self.disk / "ballast").unlink)
        if wanted("collector", "kill -9"):
            yield self.row("kill -9", kill, again, anew=True)


CONTROLLER = """
import sys
from holdfast.apps.firewall import FirewallController
from holdfast.apps.firewall.rules import RuleSet
from holdfast.live.remote_control import RemoteControl
from holdfast.topology import Topology

rules = RuleSet.model_validate({
    "zones": {"inside": {"hosts": ["h1"]}, "servers": {"hosts": ["h2"], "may": "reply"}},
    "rules": [{"name": "echo", "action": "allow", "from": "inside", "protocol": "udp", "destination_ports": 7}],
})
topology = Topology.from_yaml(sys.argv[1])
with RemoteControl(topology, sys.argv[2], [FirewallController(rules, reaction_delay_ms=0)]) as control:
    print("ready", flush=True)
    control.run()
"""


class Firewall:
    """A switch between two hosts, its controller in a process of its own, and a flow through both."""

    def __init__(self, stack: ExitStack, folder: Path, clock: Clock) -> None:
        self.stack, self.clock, self.folder = stack, clock, folder
        self.environment = os.environ | clock.environment | {"COLUMNS": "200", "PYTHONUNBUFFERED": "1"}
        topology = Topology("firewall")
        self.device = 2 + os.getpid() % 60_000
        topology.add_switch("s1", device_id=self.device)
        for host in ("h1", "h2"):
            topology.add_host(host)
            topology.add_link(host, "s1", rate_bps=1_000_000_000, delay_ms=1)
        (folder / "net.yaml").write_text(topology.to_yaml(), encoding="utf-8")
        self.server = str(topology.hosts["h2"].address.ip)
        self.namespaces, interfaces = stack.enter_context(hosts(topology))
        self.ports = {topology.attachment(host).port: name for host, name in interfaces.items()}
        self.address = f"127.0.0.1:{free_tcp_port()}"
        self.switch = self._start_switch()
        self.controller = self._start_controller()
        self.echo = start(self.namespaces["h2"], *interpreter.module("holdfast.subscribers.tests.echo"))
        self._heard(self.echo, "")
        self.probe = self._start_probe()

    def _start(self, *words: str, prefix: Sequence[str] = ()) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*prefix, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment,
        )
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def _heard(self, process: subprocess.Popen[str], what: str) -> str:
        assert process.stdout is not None
        said = ""
        while line := process.stdout.readline():
            said += line
            if what in line:
                return line
        raise RuntimeError(said)

    def _start_switch(self) -> subprocess.Popen[str]:
        words = [word for port, name in self.ports.items() for word in ("-i", f"{port}@{name}")]
        words += ["--grpc", self.address, "--device-id", str(self.device)]
        process = self._start(*interpreter.module("holdfast", "switch", str(firewall.HERE / "firewall.p4"), *words))
        self._heard(process, self.address)
        return process

    def _start_controller(self) -> subprocess.Popen[str]:
        words = [sys.executable, "-P", "-c", CONTROLLER, str(self.folder / "net.yaml"), self.address]
        process = self._start(*words)
        self._heard(process, "ready")
        return process

    def _start_probe(self) -> subprocess.Popen[str]:
        words = interpreter.script(Path(__file__).with_name("udp_probe.py"), self.server)
        process = self._start(*words, prefix=self.namespaces["h1"].exec_prefix)
        self._heard(process, "ready")
        return process

    def row(
        self,
        process: str,
        fault: str,
        make: Callable[[], object],
        mend: Callable[[], object],
        wait_s: float = STOPPED_S,
    ) -> Row:
        """Call ``make`` to inject a fault, after ``wait_s`` seconds call ``mend``, and return the row of measurements."""
        time.sleep(0.5)
        make()
        assert self.probe.stdin is not None
        self.probe.stdin.write("new\n")
        self.probe.stdin.flush()
        time.sleep(wait_s)
        mend()
        new_s = float(self._heard(self.probe, "."))
        time.sleep(1.5)
        found = json.loads(self.probe.communicate()[0])
        self.probe = self._start_probe()
        # The flow is the session: it goes on without a new beginning if it lost nothing after the fault.
        left = [name for name in self.ports.values() if not Path("/sys/class/net", name).exists()]
        return Row(
            process,
            fault,
            losses(found),
            "the flow stays",
            waited(new_s),
            f"{len(left)} ports without an interface" if left else "nothing",
        )

    def faults(self, wanted: Callable[[str, str], bool]) -> Iterator[Row]:
        """Inject each wanted fault in turn, and yield the rows of measurements."""
        for name, process in (
            ("firewall's controller", lambda: self.controller),
            ("firewall's switch", lambda: self.switch),
        ):
            if wanted(name, "SIGSTOP"):
                stop, go = (lambda n=n, p=process: p().send_signal(n) for n in (signal.SIGSTOP, signal.SIGCONT))
                yield self.row(name, "SIGSTOP", stop, go)
        for name, seconds in (("clock steps 2 days ahead", TWO_DAYS_S), ("clock steps 2 days back", 0)):
            if wanted("all of a firewall", name):
                yield self.row(
                    "all of a firewall", name, lambda seconds=seconds: self.clock.step(seconds), lambda: None
                )
        if wanted("firewall's controller", "kill -9"):
            yield self.row("firewall's controller", "kill -9", self.controller.kill, self._restart_controller)
        if wanted("firewall's switch", "kill -9"):
            yield self.row("firewall's switch", "kill -9", self.switch.kill, self._restart)

    def _restart_controller(self) -> None:
        self.controller = self._start_controller()

    def _restart(self) -> None:
        """Restart the switch as an operator would, and then the controller, which has ended with the switch."""
        self.switch.wait()
        self.controller.wait(20)
        self.switch = self._start_switch()
        self._restart_controller()


KINDS = {
    Gateway: ("control plane", "authentication plane", "plane forward1", "balancer", "all of a gateway"),
    Collector: ("collector",),
    Firewall: ("firewall's controller", "firewall's switch", "all of a firewall"),
}


def measured(folder: Path, wanted: Callable[[str, str], bool] = lambda process, fault: True) -> Iterator[Row]:
    """Inject the wanted faults and yield the rows of measurements."""
    for kind, processes in KINDS.items():
        if any(wanted(process, fault) for process in processes for fault in FAULTS[process]):
            with ExitStack() as stack:
                place = folder / kind.__name__
                place.mkdir()
                yield from kind(stack, place, Clock(place)).faults(wanted)


HEAD = "| process | fault | packets lost | sessions | a newcomer is served | left behind |\n|---|---|---|---|---|---|\n"


def parts() -> tuple[str, list[str], str]:
    """Return the text of docs/SECURITY.md in three parts: before the table's rows, the rows, and after them."""
    before, head, rest = SECURITY.read_text(encoding="utf-8").partition(HEAD)
    rows = list(takewhile(lambda line: line.startswith("|"), rest.splitlines(keepends=True)))
    return before + head, rows, rest[sum(map(len, rows)) :]


def table() -> list[Row]:
    """Return the rows of the table in docs/SECURITY.md."""
    return [Row(*map(str.strip, line.strip().strip("|").split("|"))) for line in parts()[1]]


def write(rows: list[Row]) -> None:
    """Write the rows into the table in docs/SECURITY.md."""
    before, _, behind = parts()
    order = list(FAULTS)
    lines = (f"| {' | '.join(astuple(row))} |\n" for row in sorted(rows, key=lambda row: order.index(row.process)))
    SECURITY.write_text(before + "".join(lines) + behind, encoding="utf-8")


def main() -> None:
    """Measure all faults, print the rows and write the table; with an argument, only rows that contain it, without writing."""
    if reason := missing():
        sys.exit(reason)
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for row in measured(Path(folder), lambda process, fault: word in f"{process} {fault}"):
            rows.append(row)
            sys.stdout.write(json.dumps(astuple(row)) + "\n")
            sys.stdout.flush()
    if not word:
        write(rows)


if __name__ == "__main__":
    main()
