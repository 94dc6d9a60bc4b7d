#!/usr/bin/env python3
"""fuzz/attack_membership.py [SECONDS]: attackers beside honest members, against the multicast of a BIER domain.

Sequences of steps by hosts that have read RFC 1112, 2236, 2710, 3376 and 3810: reports of all versions and kinds, for channels of
others and for more than there is room for, queries as if they were routers, floods and damage. The network is simulated, with the
real program and controller, and small tables. After every step:

* the controller lives, and a frame costs it a bounded number of calls;
* each honest member gets all packets of its streams, and nobody gets what he has not joined;
* the channels of a port and of all ports are bounded;
* each port is asked in time.

When all have left and the memberships have timed out, no channel, no entry and no state is left.

FUZZ_SEED or --seed repeats a run. A sequence that breaks a law is shrunk and kept in FUZZ_FINDINGS (default: target/fuzz/findings).
"""

import sys

from attacks.membership_attack import ROOM
from attacks.sequences import main

if __name__ == "__main__":
    sys.exit(main(ROOM, __doc__ or ""))
