#!/usr/bin/env python3
"""fuzz/attack_discovery.py [SECONDS]: attackers at ports of switches whose links are discovered by LLDP.

Sequences of steps by attackers who have read IEEE 802.1AB: forged, changed, repeated and damaged frames, and relays between two of
them; beside cables that move and ports that fail. After every tenth of a second:

* no link is on the map that is not cabled, but between two attackers who pass frames on in both directions;
* every cable is on the map, soon; no link ends at a declared host's port; the map does not change without a cause;
* state, frames and the work for one packet are bounded.

When the attackers are silent, the map is that of the cables.

FUZZ_SEED or --seed repeats a run. A sequence that breaks a law is shrunk and kept in FUZZ_FINDINGS (default: target/fuzz/findings).
"""

import sys

from attacks.discovery_attack import ROOM
from attacks.sequences import main

if __name__ == "__main__":
    sys.exit(main(ROOM, __doc__ or ""))
