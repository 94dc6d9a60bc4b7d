#!/usr/bin/env python3
"""fuzz/attack_collector.py [SECONDS]: attackers beside honest reporters, at a collector of INT telemetry reports.

Sequences of steps by attackers who have read the Telemetry Report and INT specifications: hops, flows and reporters that are not
there, numbers in any order, damage; beside reports that are lost on their way. After every step:

* each packet is counted; each hop of a report is kept, or counted as refused; losses of honest reporters are what was lost;
* memory is bounded by its limits, and so are the page of metrics and the tables that are shown, whatever the limits;
* honest hops are counted on, and rows are complete.

FUZZ_SEED or --seed repeats a run. A sequence that breaks a law is shrunk and kept in FUZZ_FINDINGS (default: target/fuzz/findings).
"""

import sys

from attacks.collector_attack import ROOM
from attacks.sequences import main

if __name__ == "__main__":
    sys.exit(main(ROOM, __doc__ or ""))
