#!/usr/bin/env python3
"""fuzz/attack_firewall.py [SECONDS]: attackers beside honest flows, at the ports of a firewall.

Sequences of steps by attackers outside, inside and among the servers, who have read RFC 9293, 5961, 4787, 5382, 5927 and 2827:
forged segments and errors, addresses of others, floods, answers that nobody asked for, damage. The switch runs the real program,
with few cells. After every step:

* honest connections go on: each of their packets passes; honest hosts begin new flows at any time;
* no address of a station passes at another port, and no unbound sender passes;
* nothing comes inside but packets of flows that began there, and no forged segment of a connection with numbers far off;
* each packet is counted once, as passed or as dropped; no packet is copied or changed.

After the longest timeout, packets of flows that were do not pass.

FUZZ_SEED or --seed repeats a run. A sequence that breaks a law is shrunk and kept in FUZZ_FINDINGS (default: target/fuzz/findings).
"""

import sys

from attacks.firewall_attack import ROOM
from attacks.sequences import main

if __name__ == "__main__":
    sys.exit(main(ROOM, __doc__ or ""))
