"""``holdfast run`` in real time: verbs in namespaces, terminals, the examples, and what is left after any end."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast import interpreter
from holdfast._core import Program
from holdfast.console import Session
from holdfast.errors import ConsoleError
from holdfast.live.network import running
from holdfast.p4runtime.client import GrpcClient
from holdfast.topologies import load
from holdfast.topology import Topology

EXAMPLES = Path(__file__).parents[2] / "examples"
ROUTER = Path(__file__).parents[2] / "python/holdfast/apps/router/router.p4"
HUB = EXAMPLES / "hub"

RUN = interpreter.module("holdfast", "run")

PATIENCE_S = 60


def test_flows_run_on_beside_other_verbs() -> None:
    with session() as live:
        assert live.do("h1 ping h2 &").values == {"flow": 1}
        live.do("iperf h1 h2 udp 2Mbps &")
        live.do("iperf h2 h3 2s &")
        live.do("iperf h3 h1 &")

        def arrived() -> bool:
            ping, udp, tcp, _ = (flow.progress() for flow in live.flows.all())
            return bool((ping.arrived or 0) > 5 and (udp.arrived or 0) > 100 and tcp.payload_bits)

        deadline_s = time.monotonic() + PATIENCE_S
        while not arrived() and time.monotonic() < deadline_s:
            time.sleep(0.1)
        ping, udp, _, endless = (flow.progress() for flow in live.flows.all())
        assert ping.sent is not None and ping.arrived is not None
        assert 0 <= ping.sent - ping.arrived <= 1
        assert 0 < ping.delay_sum_ms / ping.delayed < 100
        assert udp.arrived is not None and udp.payload_bits == pytest.approx(8 * 1200 * udp.arrived, rel=0.1)
        assert endless.failure is None
        live.do("link h1-s1 down")
        sent = ping.sent
        while (now := live.flows.get(1).progress()).sent == sent and time.monotonic() < deadline_s:
            time.sleep(0.1)
        assert (now.sent or 0) > sent, "requests without an answer count"
        for number in (1, 2, 4):
            live.do(f"flow {number} stop")
        while live.do("flows").values["running"] and time.monotonic() < deadline_s:
            time.sleep(0.1)
        assert live.do("flows").values == {"flows": 4, "running": 0}
        assert all(process.poll() is not None for flow in live.flows.all() for process in flow._running)  # type: ignore[attr-defined]


def hub(names: list[str]) -> Topology:
    topology = Topology("hub")
    topology.add_switch("s1")
    for number, name in enumerate(names, 1):
        topology.add_host(name, f"10.0.0.{number}/24")
        topology.add_link(name, "s1", delay_ms=0.1)
    return topology


@contextmanager
def session() -> Iterator[Session]:
    from holdfast.console.controllers import load as controller

    made = controller(str(HUB / "hub.py"))
    with (
        running(hub(["h1", "h2", "h3"]), Program.compile(str(HUB / "hub.p4")), [made]) as network,
        Session(network) as opened,
    ):
        yield opened


def test_verbs_of_live_hosts() -> None:
    with session() as live:
        assert live.do("h1 ping h2").values["received"] == 3
        assert live.do("pingall").ok
        result = live.do("h1 ping -c 1 -n h3")
        assert "PING 10.0.0.3" in result.text, "names become addresses"
        assert live.do("h1 echo h2:80 h2x 'h2'").text == "10.0.0.2:80 h2x 10.0.0.2"
        assert live.do("h1 echo a | tr a b").text == "b"
        assert live.do("h1 exit 3").values == {"status": 3}
        with pytest.raises(ConsoleError, match=r"^h1 cannot run 'nonsense'"):
            live.do("h1 nonsense")
        live.do("h1 send ff ff ff ff ff ff 02 00 00 00 00 01 88 b5 68 69")
        assert "88b56869" in live.do("h3 sniff").text
        assert 1e5 < live.do("iperf h1 h2 1s").values["goodput"] < 1e11
        assert live.do("iperf h1 h2 udp 1Mbps 1s").values["sent"] > 50
        live.do("link h2-s1 down")
        assert live.do("h1 ping h2 -c 1").values["lost"] == 1
        live.do("link h2-s1 up")
        assert live.do("h1 ping h2").ok
        host = live.network.hosts["h1"]  # type: ignore[attr-defined]
        assert host.run(["ip", "-br", "address"]).stdout
        assert host.name in live.do("nodes").text


def test_a_trace_and_a_mechanism_of_a_live_network() -> None:
    with running(load("ring:3"), Program.compile(str(ROUTER)), gives_way=True) as network, Session(network) as live:
        assert not live.do("h1 ping h2 -c 1").ok, "nobody has written routes"
        live.do("mechanism reroute")
        assert live.do("pingall").ok
        assert "ipv4_lpm" in live.do("switch s1 trace h1 ping h2 -c 1").text
        live.do("link s1-s2 down")
        deadline = time.monotonic() + PATIENCE_S
        while not live.do("pingall").ok and time.monotonic() < deadline:
            pass
        assert live.do("pingall").ok
        assert live.do(f"reload {ROUTER}").values == {"kept": 9, "lost": 0}
        # Without the link there are no two paths, which it says.
        assert "not protected: h1-h2" in live.do("mechanism 1+1-vector").text
        live.do("link s1-s2 up")
        live.do("wait 500ms")
        assert live.do("mechanism 1+1-vector").values == {"unprotected": 0}
        assert live.do("pingall").ok


def test_a_controller_from_outside_becomes_the_primary() -> None:
    program = Program.compile(str(HUB / "hub.p4"))
    with (
        running(hub(["h1", "h2"]), program, gives_way=True) as network,
        Session(network) as live,
        GrpcClient(network.p4runtime_address, device_id=1, election_id=1) as client,
    ):
        assert client.is_primary
        client.set_pipeline(program)
        client.multicast_group(1, [(1, 1), (2, 1)])
        assert live.do("h1 ping h2").ok
        with pytest.raises(ConsoleError, match="a controller from outside has the switch"):
            live.do(f"reload {HUB / 'hub.p4'}")


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*RUN, *map(str, arguments)], capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("example", sorted(path.parent.name for path in EXAMPLES.glob("*/check.txt")))
def test_examples(example: str) -> None:
    """Run the command in the first line of the example's script, in its folder."""
    folder = EXAMPLES / example
    words = re.match(r"# holdfast run (.*)\n", (folder / "check.txt").read_text())[1].split()  # type: ignore[index]
    done = subprocess.run([*RUN, *words, "--live"], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_script_that_fails_has_status_1_and_says_where(tmp_path: Path) -> None:
    script = tmp_path / "fails.txt"
    script.write_text("h1 true\nh1 false\nh1 true\n")
    done = run(HUB / "hub.p4", HUB / "network.yaml", "--live", "--script", script)
    assert done.returncode == 1
    assert done.stderr == f"error: {script}:2: the command ended with status 1\n"


@pytest.mark.parametrize("when", ["on_start(self)", "on_packet_in(self, switch, packet, metadata)"])
def test_a_failure_of_a_controller_shows_its_own_lines(tmp_path: Path, when: str) -> None:
    controller = tmp_path / "mine.py"
    controller.write_text(
        "from holdfast import Controller\n\n\nclass Mine(Controller):\n"
        f"    def {when}:\n        self.deeper()\n\n    def deeper(self):\n        raise ValueError('of my own')\n"
    )
    script = tmp_path / "verbs.txt"
    script.write_text("h1 ping h2 -c 1\nwait 1s\n")
    done = run(EXAMPLES / "controller_hub/network.yaml", "--live", "--controller", controller, "--script", script)
    assert done.returncode == 1
    assert "        raise ValueError('of my own')\n".strip() in done.stderr
    assert done.stderr.endswith("ValueError: of my own\n")
    assert "holdfast/network.py" not in done.stderr


# ---- What is left ----


def remains(label: str) -> list[str]:
    """Return namespaces, processes and interfaces that belong to hosts with this label in their names."""
    found = [f"namespace {path}" for path in Path("/run/netns").glob(f"hf*-{label}*")]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if any(label in word for word in words) and int(process.name) != os.getpid():
            found.append(f"process {process.name} {words}")
    return found


def locks() -> dict[str, int]:
    return {path.name: path.stat().st_ino for path in Path("/run/holdfast").glob("[0-9]*.lock")}


def wait_until_nothing_is_left(label: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (left := remains(label)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left


def busy_network(folder: Path, label: str) -> list[str]:
    """Return a command that runs a network with processes in its hosts. All of them have ``label`` in their command lines."""
    topology = folder / f"{label}.yaml"
    topology.write_text(hub([f"{label}a", f"{label}b"]).to_yaml())
    script = folder / f"{label}.txt"
    script.write_text(f"{label}a sh -c 'sleep 1000; : {label}' &\niperf {label}a {label}b 100s\n")
    return [
        *RUN,
        str(HUB / "hub.p4"),
        str(topology),
        "--controller",
        str(HUB / "hub.py"),
        "--live",
        "--script",
        str(script),
    ]


@pytest.mark.parametrize("moment", range(10))
def test_kill_9_leaves_nothing(tmp_path: Path, moment: int) -> None:
    label = f"k{os.getpid()}m{moment}"
    process = subprocess.Popen(busy_network(tmp_path, label), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + PATIENCE_S
    # The first moments are while it starts; the next ones while namespaces come, one by one; the last ones under traffic.
    if moment < 3:
        time.sleep(0.2 + 0.3 * moment)
    else:
        while not list(Path("/run/netns").glob(f"hf*-{label}*")) and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep((moment - 3) * 0.1 if moment < 7 else (moment - 6) * 0.7)
    process.kill()
    process.wait()
    wait_until_nothing_is_left(label)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_leave_nothing(tmp_path: Path, number: signal.Signals) -> None:
    label = f"s{os.getpid()}n{int(number)}"
    process = subprocess.Popen(
        busy_network(tmp_path, label),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # Under nohup, or in the background of a script, they are ignored, and so are they by what is started there.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    deadline = time.monotonic() + PATIENCE_S
    while not remains_running(label):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(number)
    said = process.communicate(timeout=PATIENCE_S)[0]
    assert "Traceback" not in said, said
    assert process.returncode != 0
    wait_until_nothing_is_left(label)


def remains_running(label: str) -> bool:
    return any("sleep 1000" in each for each in remains(label))


# ---- On a terminal ----


class Terminal:
    """A process on a terminal of its own."""

    def __init__(self, *arguments: object) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored
            os.environ |= {"COLUMNS": "80", "LINES": "24", "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
            command = [*RUN, *map(str, arguments)]
            os.execv(command[0], command)
        self.text = ""

    def wait(self, pattern: str) -> str:
        """Wait until what was printed since the last call matches, and return it."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := re.search(pattern, self.text)) is None:
            assert time.monotonic() < deadline, f"{pattern!r} not in {self.text!r}"
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    data = os.read(self.fd, 1 << 16)
                except OSError:
                    data = b""
                assert data, f"{pattern!r} not in {self.text!r} at its end"
                self.text += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", data.decode(errors="replace"))
        before, self.text = self.text[: found.end()], self.text[found.end() :]
        return before

    def say(self, line: str) -> None:
        os.write(self.fd, f"{line}\r".encode())

    def end(self) -> int:
        """Wait for the end of the process, and return its status."""
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def close(self) -> None:
        """Close the terminal, as the window of one is closed."""
        os.close(self.fd)
        self.fd = -1

    def kill(self) -> None:
        """Leave nothing of the process and the terminal."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            self.end()
        if self.fd >= 0:
            self.close()


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    label = f"t{os.getpid()}"
    topology = tmp_path / f"{label}.yaml"
    topology.write_text(hub([f"{label}a", f"{label}b"]).to_yaml())
    opened = Terminal(HUB / "hub.p4", topology, "--controller", HUB / "hub.py", "--live")
    yield opened
    opened.kill()


def test_a_terminal_with_ctrl_c_and_a_shell(terminal: Terminal) -> None:
    label = f"t{os.getpid()}"
    head = terminal.wait("holdfast>")
    assert "P4Runtime at 127.0.0.1:" in head
    assert "ip netns exec" in head
    terminal.say(f"{label}a ping {label}b -c 2")
    terminal.wait("2 sent, 2 received, 0 lost")
    terminal.say(f"iperf {label}a {label}b 100s")
    time.sleep(2)
    os.write(terminal.fd, b"\x03")
    terminal.wait("interrupted")
    terminal.wait("holdfast>")
    terminal.say(f"{label}a ping {label}b -i 0.2")
    time.sleep(1)
    os.write(terminal.fd, b"\x03")
    terminal.wait("holdfast>")
    terminal.say(f"{label}a bash --norc")
    terminal.wait(r"[#$] ")
    terminal.say("ip -br link show eth0 && test -t 0 && echo a$((40+2))b")
    terminal.wait("a42b")
    terminal.say("sleep 100")
    time.sleep(1)
    os.write(terminal.fd, b"\x03")
    terminal.say("echo c$((40+2))d")
    terminal.wait("c42d")
    terminal.say("exit")
    terminal.wait("holdfast>")
    terminal.say("link nowhere down")
    terminal.wait("error: there is no link 'nowhere'")
    terminal.say("quit")
    assert terminal.end() == 0
    wait_until_nothing_is_left(label)


def test_a_closed_terminal_leaves_nothing(terminal: Terminal) -> None:
    label = f"t{os.getpid()}"
    terminal.wait("holdfast>")
    terminal.say(f"{label}a sh -c 'sleep 1000; : {label}' &")
    terminal.say(f"iperf {label}a {label}b 100s")
    time.sleep(1)
    terminal.close()
    terminal.end()
    wait_until_nothing_is_left(label)
