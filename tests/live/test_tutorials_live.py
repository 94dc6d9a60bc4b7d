"""The P4 tutorials' exercises run by ``holdfast run`` alone, with their own topologies, entries and scripts, unchanged.

They are not in this repository: ``HOLDFAST_TUTORIALS`` names a checkout of p4lang/tutorials, and without it all tests here are
skipped. Each exercise is copied and solved with its own solution, as a student would.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import interpreter

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


@pytest.mark.parametrize("name", EXERCISE)
def test_an_exercise(name: str, tmp_path: Path) -> None:
    program, topology, verbs = EXERCISE[name]
    folder = tmp_path / name
    shutil.copytree(EXERCISES / name, folder)
    for solved in (folder / "solution").iterdir():
        for place in (folder / solved.name, folder / Path(topology).parent / solved.name):
            shutil.copy(solved, place)
    if not (folder / program).exists() or name == "firewall":
        shutil.copy(EXERCISES / "basic/solution/basic.p4", folder / "basic.p4")
    (folder / "verbs.txt").write_text(verbs)
    environment = {**os.environ, "PATH": f"{sys.prefix}/bin:{os.environ['PATH']}"}
    command = [*RUN, program, topology, "--live", "--script", "verbs.txt"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
