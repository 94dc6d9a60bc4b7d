"""The P4 tutorials' exercises run by ``holdfast run`` alone, with their own topologies, entries and scripts, unchanged.

They are not in this repository: ``HOLDFAST_TUTORIALS`` names a checkout of p4lang/tutorials, and without it all tests here are
skipped. Each exercise is copied and solved with its own solution, as a student would. ``HOLDFAST_P4RUNTIME_SH`` names a folder with
the package ``p4runtime_sh``, which the controller of ``flowcache`` imports.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from holdfast import interpreter
from holdfast.bmv2 import shims

CHECKOUT = os.environ.get("HOLDFAST_TUTORIALS")
EXERCISES = Path(CHECKOUT or ".") / "exercises"

pytestmark = pytest.mark.skipif(CHECKOUT is None, reason="HOLDFAST_TUTORIALS names no checkout of p4lang/tutorials")

RUN = interpreter.module("holdfast", "run")

STARTS = "wait 8s"
"""Scripts that receive import Scapy before they listen."""

EXERCISE: dict[str, tuple[str, str, str]] = {
    "basic": (
        "basic.p4",
        "pod-topo/topology.json",
        f"""pingall
expect lost 0
h2 timeout 60 ./receive.py > received 2>&1 &
{STARTS}
h1 ./send.py 10.0.2.2 "P4 is cool"
wait 3s
h2 grep "load.*P4 is cool" received
""",
    ),
    "basic_tunnel": (
        "basic_tunnel.p4",
        "topology.json",
        f"""h3 timeout 60 ./receive.py > received 2>&1 &
{STARTS}
h1 ./send.py 10.0.2.2 "tunnelled" --dst_id 3
wait 3s
h3 grep "load.*tunnelled" received
""",
    ),
    "calc": ("calc.p4", "topology.json", "h1 (echo 7-2; sleep 2; echo quit) | python3 calc.py\nexpect text 5\n"),
    "ecn": (
        "ecn.p4",
        "topology.json",
        f"""h2 timeout 90 ./receive.py > received 2>&1 &
{STARTS}
h1 timeout 40 ./send.py 10.0.2.2 "P4 is cool" 12 > sent &
wait 4s
iperf h11 h22 udp 3Mbps 6s
wait 3s
h2 grep "tos *= 0x3" received
""",
    ),
    "firewall": (
        "basic.p4",
        "pod-topo/topology.json",
        """expect h1 ping h3 ok
expect iperf h1 h3 1s ok
expect iperf h3 h1 1s fails
""",
    ),
    "link_monitor": (
        "link_monitor.p4",
        "pod-topo/topology.json",
        f"""h1 timeout 60 ./receive.py > received 2>&1 &
{STARTS}
h1 timeout 20 ./send.py > sent &
wait 6s
iperf h1 h4 2s
wait 3s
h1 grep "Switch 1 - Port 4: .* Mbps" received
""",
    ),
    "load_balance": (
        "load_balance.p4",
        "topology.json",
        f"""h2 timeout 60 ./receive.py > received2 2>&1 &
h3 timeout 60 ./receive.py > received3 2>&1 &
{STARTS}
h1 ./send.py 10.0.0.1 "one of two"
wait 3s
h1 cat received2 received3 | grep "load.*one of two"
""",
    ),
    "mri": (
        "mri.p4",
        "topology.json",
        f"""pingall
expect lost 0
h2 timeout 60 ./receive.py > received 2>&1 &
{STARTS}
h1 timeout 20 ./send.py 10.0.2.2 "P4 is cool" 2
wait 3s
h2 grep "swid *= 2" received
h2 grep "swid *= 1" received
""",
    ),
    "multicast": (
        "multicast.p4",
        "sig-topo/topology.json",
        "pingall\nexpect lost 0\n",
    ),
    "qos": (
        "qos.p4",
        "topology.json",
        f"""h2 timeout 60 ./receive.py > received 2>&1 &
{STARTS}
h1 timeout 30 ./send.py --p=UDP --des=10.0.2.2 --m="P4 is cool" --dur=2
h1 timeout 30 ./send.py --p=TCP --des=10.0.2.2 --m="P4 is cool" --dur=2
wait 3s
h2 grep "tos *= 0xb9" received
h2 grep "tos *= 0xb1" received
""",
    ),
    "source_routing": (
        "source_routing.p4",
        "topology.json",
        f"""h2 timeout 60 ./receive.py > received 2>&1 &
{STARTS}
h1 (echo 2 3 2 2 1; echo q) | ./send.py 10.0.2.2
wait 3s
h2 grep "ttl *= 59" received
""",
    ),
}


SIMULATED: dict[str, str] = {
    "basic": "pingall\nexpect lost 0\n",
    "basic_tunnel": """h1 send Ether(type=0x1212)/Raw(b"\\x08\\x00\\x00\\x03")/IP(dst="10.0.2.2")/UDP()
h3 sniff
expect text 121208000003
""",
    "calc": """h1 send Ether(type=0x1234)/Raw(b"P4\\x01-\\0\\0\\0\\x07\\0\\0\\0\\x02\\0\\0\\0\\0")
h1 sniff
expect text 5034012d000000070000000200000005
""",
    "firewall": "expect h1 ping h3 ok\nexpect iperf h1 h3 1s ok\nexpect iperf h3 h1 1s fails\n",
    "link_monitor": "pingall\nexpect lost 0\n",
    "load_balance": """h1 send Ether()/IP(dst="10.0.0.1")/TCP(sport=1)
h1 send Ether()/IP(dst="10.0.0.1")/TCP(sport=2)
h1 send Ether()/IP(dst="10.0.0.1")/TCP(sport=3)
h1 send Ether()/IP(dst="10.0.0.1")/TCP(sport=4)
wait 1s
links
expect text "h2-s2  0-1    up     1 Gbit/s  0 ms   0   1"
expect text "h3-s3  0-1    up     1 Gbit/s  0 ms   0   3"
""",
    "mri": "pingall\nexpect lost 0\n",
    "multicast": "pingall\nexpect lost 0\n",
    "qos": """h1 send Ether()/IP(dst="10.0.2.2", tos=1)/UDP()
h2 sniff
expect text 080045b9
h1 send Ether()/IP(dst="10.0.2.2", tos=1)/TCP()
h2 sniff
expect text 080045b1
""",
    "source_routing": """h1 send Ether(type=0x1234)/Raw(b"\\0\\2\\0\\3\\0\\2\\0\\2\\x80\\1")/IP(dst="10.0.2.2")/UDP()
wait 1s
links
expect text "s3-s2  3-3    up     1 Gbit/s  0 ms   0   1"
expect text "h2-s2  0-1    up     1 Gbit/s  0 ms   0   1"
""",
}
"""The verbs for modelled hosts, which have no scripts: they ping, or send what the scripts send."""


def solved(name: str, program: str, topology: str, folder: Path) -> Path:
    """Return a copy of an exercise with its solution in it."""
    shutil.copytree(EXERCISES / name, folder)
    for each in (folder / "solution").iterdir():
        for place in (folder / each.name, folder / Path(topology).parent / each.name):
            shutil.copy(each, place)
    if not (folder / program).exists() or name == "firewall":
        shutil.copy(EXERCISES / "basic/solution/basic.p4", folder / "basic.p4")
    return folder


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PATH": f"{sys.prefix}/bin:{os.environ['PATH']}", **more}


def obeyed(name: str, verbs: str, clock: str, tmp_path: Path) -> None:
    program, topology, _ = EXERCISE[name]
    folder = solved(name, program, topology, tmp_path / name)
    (folder / "verbs.txt").write_text(verbs)
    command = [*RUN, program, topology, clock, "--script", "verbs.txt"]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


@pytest.mark.parametrize("name", EXERCISE)
def test_an_exercise(name: str, tmp_path: Path) -> None:
    obeyed(name, EXERCISE[name][2], "--live", tmp_path)


@pytest.mark.parametrize("name", SIMULATED)
def test_a_simulated_exercise(name: str, tmp_path: Path) -> None:
    obeyed(name, SIMULATED[name], "--simulated", tmp_path)


@contextmanager
def controlled(name: str, program: str, clock: str, tmp_path: Path) -> Iterator[tuple[Callable[[str], str], Path]]:
    """Run an exercise, and its controller in another process.

    Yield a function that has a verb obeyed, and the file of what the controller prints.
    """
    utilities = tmp_path / "utils"
    shutil.copytree(EXERCISES.parent / "utils", utilities)
    folder = solved(name, program, "topology.json", tmp_path / "exercises" / name)
    commands = tmp_path / "bin"
    shims.write(commands)
    compiled = [commands / "p4c-bm2-ss", "--p4runtime-files", f"build/{program}.p4info.txtpb"]
    compiled += ["-o", f"build/{Path(program).stem}.json", program]
    (folder / "logs").mkdir()
    subprocess.run(compiled, cwd=folder, check=True)
    more = os.environ.get("HOLDFAST_P4RUNTIME_SH", "")
    paths = os.pathsep.join([str(commands / shims.MODULES), more])
    with ExitStack() as stack:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        run = subprocess.Popen([*RUN, program, "topology.json", clock], cwd=folder, env=environment(), **pipes)
        stack.callback(run.communicate)
        assert run.stdin is not None and run.stdout is not None

        def until(what: str) -> str:
            lines = []
            for line in run.stdout:
                lines.append(line)
                if what in line:
                    return "".join(lines)
            raise AssertionError("".join(lines))

        def do(verb: str) -> str:
            run.stdin.write(f"{verb}\nhelp quit\n")
            run.stdin.flush()
            return until("End the network.")

        until("at their own addresses")
        said = folder / "said"
        with said.open("w") as output:
            controller = subprocess.Popen(
                [sys.executable, "-P", "mycontroller.py"],
                cwd=folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment(PYTHONUNBUFFERED="1", PYTHONPATH=paths),
            )
            stack.callback(controller.wait)
            stack.callback(controller.kill)
            yield do, said


def until_written(file: Path, *words: str) -> None:
    """Wait until a file has all the words."""
    end_s = time.monotonic() + 60
    while missing := [word for word in words if word not in file.read_text()]:
        assert time.monotonic() < end_s, f"{missing} in {file.read_text()[-3000:]}"
        time.sleep(0.2)


@pytest.mark.parametrize("clock", ["--live", "--simulated"])
def test_the_controller_of_p4runtime(clock: str, tmp_path: Path) -> None:
    """Check that the exercise's controller writes the rules of two tunnels, and that what it reads is what was sent."""
    with controlled("p4runtime", "advanced_tunnel.p4", clock, tmp_path) as (do, said):
        until_written(said, "Reading tunnel counters")
        assert "4 sent, 4 received" in do("h1 ping h2 -c 4")
        assert "1 sent, 0 received" in do("h1 ping h3 -c 1"), "it has no tunnel to h3"
        # Its egress counters have an index of a header that is gone, which is 0 here.
        counts = [
            f"{name} MyIngress.ingressTunnelCounter {tunnel}: 4 packets" for name, tunnel in (("s1", 100), ("s2", 200))
        ]
        until_written(said, *counts)


@pytest.mark.skipif("HOLDFAST_P4RUNTIME_SH" not in os.environ, reason="HOLDFAST_P4RUNTIME_SH names no folder")
@pytest.mark.parametrize("clock", ["--live", "--simulated"])
def test_the_controller_of_flowcache(clock: str, tmp_path: Path) -> None:
    """Check that packets to the controller bring entries, which it takes away again when nothing uses them."""
    with controlled("flowcache", "flowcache.p4", clock, tmp_path) as (do, said):
        until_written(said, "on s3")
        do("h1 ping h2 -c 10")
        assert "4 sent, 4 received" in do("h1 ping h2 -c 4")
        assert "hdr.ipv4.srcAddr=10.0.1.1" in do("switch s1 tables")
        until_written(said, "Deleted flow_cache entry on s1", "Deleted flow_cache entry on s2")
        do("wait 6s")
        assert "0 of 65536 entries" in do("switch s1 tables")
