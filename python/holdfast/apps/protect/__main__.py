"""``python -m holdfast.apps.protect TOPOLOGY ADDRESS``: the controller in a process of its own, over P4Runtime.

It can be killed at any time, and started again: the switches go on without it, and the next one takes over what they hold.
"""

from __future__ import annotations

import argparse
import signal
import sys
from typing import get_args

from holdfast.apps.protect.acceptance import Acceptance, Algorithm
from holdfast.apps.protect.controller import ProtectController, compile_protect
from holdfast.apps.protect.health import Alarm, LatentErrorDetection
from holdfast.errors import HoldfastError
from holdfast.remote_control import RemoteControl
from holdfast.topologies import load


def _pair(text: str) -> tuple[str, str]:
    a, colon, b = text.partition(":")
    if not (a and colon and b):
        raise argparse.ArgumentTypeError(f"{text!r} is not a pair of hosts, as in h1:h2")
    return a, b


def _print(alarm: Alarm) -> None:
    what = "brings too little" if alarm.raised else "is well again"
    print(
        f"connection {alarm.connection}: path {alarm.path} ({'-'.join(alarm.nodes)}) {what}: "
        f"{alarm.seen} of {alarm.expected} packets",
        flush=True,
    )


def main() -> int:
    """Runs until it is told to stop; one line when everything is set up."""
    parser = argparse.ArgumentParser(prog="python -m holdfast.apps.protect", description=__doc__)
    parser.add_argument("topology", help="a YAML or GraphML file, or a generator's name")
    parser.add_argument("address", help="of the switches' P4Runtime server, as in 127.0.0.1:9559")
    parser.add_argument("--protect", metavar="HOST:HOST", type=_pair, action="append", default=[])
    parser.add_argument("--mtu", type=int, default=1500, help="bytes that links between switches carry")
    parser.add_argument("--disjoint", choices=("node", "link"), default="node")
    parser.add_argument("--paths", type=int, default=2, help="copies of a packet, 2 to 4")
    parser.add_argument("--acceptance", choices=get_args(Algorithm), default="window")
    parser.add_argument(
        "--alarms", action="store_true", help="print an alarm about each path that is silently dead or lossy"
    )
    parser.add_argument("--repair", action="store_true", help="with --alarms: give copies on such paths another one")
    arguments = parser.parse_args()
    if arguments.repair and not arguments.alarms:
        parser.error("--repair needs --alarms: P4Runtime does not tell of ports")
    try:
        controller = ProtectController(
            protect=arguments.protect,
            reaction_delay_ms=0,
            mtu=arguments.mtu,
            disjoint=arguments.disjoint,
            paths=arguments.paths,
            acceptance=Acceptance(arguments.acceptance),
            repair=arguments.repair,
            repair_latent=arguments.repair,
            latent_errors=LatentErrorDetection() if arguments.alarms else None,
            on_alarm=_print if arguments.alarms else None,
        )
        control = RemoteControl(load(arguments.topology), arguments.address, [controller], program=compile_protect())
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: control.stop())
        with control:
            found = controller.taken_over
            how = "began anew" if found is None else f"took over {found.connections} connections, {found.flows} flows"
            print(f"{len(controller.connections)} connections: {how}", flush=True)
            control.run()
    except HoldfastError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
