#!/usr/bin/env python3
"""fuzz/attack_gateway.py [SECONDS]: attackers beside honest subscribers, against the control plane of a broadband gateway.

Sequences of steps by several attackers who have read RFC 2516, 1661, 1334, 1994, 1332, 5072, 8415, 2865, 2866 and 5176, by
operators, by honest hosts, by time, and by a user plane and a store that fail. After every step:

* what forwards is accounted: each installed session has a Start, and at its end a Stop with the usage;
* nothing is installed outside of an open network phase;
* pools and grants agree; a change that is acknowledged is done;
* no honest session ends, and no honest host is kept out;
* frames, timers, questions and calls that a packet costs are bounded, and so are half-open sessions in time.

When all have left and the timeouts have passed, nothing is left. FUZZ_SEED or --seed repeats a run. A sequence that breaks a law is
made as short as possible, and kept in FUZZ_FINDINGS (default: target/fuzz/findings), from where --replay plays it.
"""

import sys

from attacks.gateway_attack import ROOM
from attacks.sequences import main

if __name__ == "__main__":
    sys.exit(main(ROOM, __doc__ or ""))
