"""Examples of p4-learning run by ``holdfast run`` alone, with their own topologies, entries and scripts, unchanged.

They are not in this repository: ``HOLDFAST_P4_LEARNING`` names a checkout of nsg-ethz/p4-learning, and without it all tests
here are skipped. Each example does what its README says it shows. Examples with a controller of their own are not among them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import interpreter

CHECKOUT = os.environ.get("HOLDFAST_P4_LEARNING")
ROOT = Path(CHECKOUT or ".")

pytestmark = pytest.mark.skipif(CHECKOUT is None, reason="HOLDFAST_P4_LEARNING names no checkout of p4-learning")

RUN = interpreter.module("holdfast", "run")

OUR_NAMES = "h2 sed -i s/h2-eth0/eth0/ receive.py\n"
"""Two scripts have Mininet's name of the network card."""

RECEIVES = """timeout 60 python3 receive.py > received 2>&1 &
wait 8s
"""
"""Scripts that receive import Scapy before they listen."""

REFLECTED = """h1 (echo; sleep 3) | timeout 20 python3 send_receive.py > said || true
h1 grep reflected said
"""

PINGALL = "pingall\nexpect lost 0\n"

UDP = "h1 send Ether(src='aa:aa:aa:aa:aa:aa', dst='00:00:0a:00:01:02')/IP(dst='10.0.1.2')/UDP()\n"

LEARNING: dict[str, str] = {
    # ---- Hosts that ping ----
    **dict.fromkeys(
        (
            "examples/debugging_table/p4app.json",
            "examples/digest_messages/p4app.json",
            "examples/ecmp/p4app.json",
            "examples/flowlet_switching/p4app.json",
            "examples/ip_forwarding/p4app.json",
            "examples/ip_forwarding_two_tables/p4app.json",
            "examples/multicast/p4app.json",
            "examples/repeater/p4app.json",
            "examples/ternary_match/p4app.json",
            "exercises/02-Repeater/thrift/solution/p4app.json",
            "exercises/02-Repeater/thrift/solution/p4app_table.json",
            "exercises/03-L2_Basic_forwarding/thrift/solution/p4app.json",
            "exercises/03-L2_Flooding/thrift/solution/p4app-all-ports.json",
            "exercises/03-L2_Flooding/thrift/solution/p4app-other-ports.json",
            "exercises/04-MPLS/thrift/mpls_basics/solution/p4app.json",
            "exercises/04-MPLS/thrift/mpls_stacked/solution/p4app.json",
            "exercises/05-ECMP/solution/p4app.json",
            "exercises/05-Flowlet_Switching/solution/p4app.json",
            "exercises/07-Count-Min-Sketch/solution/p4app.json",
        ),
        PINGALL,
    ),
    # ---- Those that show something else ----
    "examples/copy_to_cpu/p4app.json": f"{PINGALL}h1 ping -c 2 -Q 1 h2\nswitch s1 ports\nexpect text controller\n",
    "examples/counter/p4app_direct.json": """pingall
expect lost 12
switch s1 tables
expect text "3 packets"
""",
    "examples/counter/p4app_indirect.json": """pingall
expect lost 12
switch s1 cli counter_read MyIngress.port_counter 1
expect text packets
""",
    "examples/ecn/p4app.json": PINGALL,
    "examples/heavy_hitter/p4app.json": f"{PINGALL}h1 python3 send.py 10.0.2.2 1100 > sent\nswitch s1 drops\nexpect drops > 50\n",
    "examples/meter/p4app_direct.json": 5 * UDP + "h2 sniff\nexpect frames < 5\nexpect frames > 0\n",
    "examples/meter/p4app_indirect.json": 5 * UDP + "h2 sniff\nexpect frames < 5\nexpect frames > 0\n",
    "examples/read_write_registers_cli/p4app.json": """h1 python3 send.py 10.0.1.2 50
wait 1s
switch s1 cli register_read MyIngress.tos_register 50
expect text "tos_register[50]= 50"
switch s1 cli register_write tos_register 1 20
switch s1 cli register_read tos_register 1
expect text "tos_register[1]= 20"
""",
    "examples/recirculate/p4app.json": "h1 send Ether()/IP(dst='10.0.1.2')/UDP()\nexpect h2 sniff ok\n",
    "examples/recirculate_and_add_header/p4app.json": """switch s1 cli register_write recirculate_register 1 7
expect h2 sniff fails
h1 python3 send_carrier.py 3
h2 sniff
expect text 1234030007
""",
    "examples/reflector/p4app.json": REFLECTED,
    "examples/simple_int/p4app.json": f"""{PINGALL}{OUR_NAMES}h2 {RECEIVES}h1 python3 send.py 10.0.2.2 "test" 1
wait 3s
h2 grep -c "swid *= 1" received
""",
    "examples/source_routing/p4app.json": f"""{PINGALL}{OUR_NAMES}h2 {RECEIVES}h1 (echo 2 4; echo q) | python3 send.py 10.0.4.2
wait 3s
h2 grep "ttl *= 6" received
""",
    "examples/stateful_firewall/p4app.json": "expect iperf h1 h2 1s ok\nexpect iperf h2 h1 1s fails\n",
    "examples/verify_checksum/p4app.json": f"""h2 {RECEIVES}h1 python3 send.py 10.0.1.2 invalid
wait 2s
expect h2 grep -c "chksum" received fails
h1 python3 send.py 10.0.1.2 valid
wait 3s
h2 grep "chksum" received
""",
    "exercises/01-Reflector/solution/p4app.json": REFLECTED,
    "exercises/06-Heavy_Hitter_Detector/solution/p4app.json": (
        f"{PINGALL}h1 python3 send.py 10.0.1.2 1200 > sent\nh2 true\nswitch s1 drops\nexpect drops > 100\n"
    ),
}
"""The topology of each, and verbs that end well if it does what it shows."""


@pytest.mark.parametrize("name", LEARNING)
def test_an_example(name: str, tmp_path: Path) -> None:
    topology = ROOT / name
    # Some solutions lie beside the scripts of their exercise.
    folder = tmp_path / topology.parent.name
    shutil.copytree(topology.parent, folder)
    if folder.name == "solution":
        for script in topology.parent.parent.glob("*.py"):
            if not (folder / script.name).exists():
                shutil.copy(script, folder)
    (folder / "verbs.txt").write_text(LEARNING[name])
    done = subprocess.run(
        [*RUN, topology.name, "--live", "--script", "verbs.txt"],
        cwd=folder,
        env={**os.environ, "PATH": f"{sys.prefix}/bin:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
