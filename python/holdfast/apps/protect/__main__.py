"""``python -P -m holdfast.apps.protect TOPOLOGY ADDRESS``: the controller in a process of its own, over P4Runtime.

It can be killed at any time, and started again: the switches go on without it, and the next one takes over what they hold.
"""

from __future__ import annotations

import argparse
import signal
import sys
from typing import get_args

from holdfast.apps.protect.acceptance import Acceptance, Algorithm
from holdfast.apps.protect.controller import ProtectController
from holdfast.apps.protect.health import Alarm, LatentErrorDetection
from holdfast.apps.protect.program import compile_protect
from holdfast.discovery import Incident, LinkDiscovery
from holdfast.errors import HoldfastError
from holdfast.live.remote_control import RemoteControl
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


class _TellingController(ProtectController):
    """Says what it discovers, and what that means for the pairs to protect."""

    _told = ""

    def on_links_changed(self) -> None:
        super().on_links_changed()
        links = len(self.topology.graph.edges)
        lines = [f"discovered links between {links} pairs of switches; {len(self.connections)} connections"]
        lines += [f"waiting: {a} to {b}: {why}" for (a, b), why in self.waiting.items()]
        if (text := "\n".join(lines)) != self._told:
            self._told = text
            print(text, flush=True)


def _print_incident(incident: Incident) -> None:
    print(f"discovery: {incident}", flush=True)


_DISCOVERY = ("interval_ms", "hold_ms", "ports")


def _discovery(arguments: argparse.Namespace) -> LinkDiscovery | None:
    if not arguments.discover:
        return None
    given = {name: getattr(arguments, f"discovery_{name}") for name in _DISCOVERY}
    return LinkDiscovery(**{n: v for n, v in given.items() if v is not None}, on_incident=_print_incident)


def main() -> int:
    """Run the controller until it is told to stop; print a line when everything is set up. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -P -m holdfast.apps.protect", description=__doc__)
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
    parser.add_argument(
        "--discover", action="store_true", help="find the links between switches, whatever TOPOLOGY says of them"
    )
    parser.add_argument("--discovery-interval-ms", type=float, help="from frame to frame of a port; 1000")
    parser.add_argument(
        "--discovery-hold-ms", type=float, help="a link that is not heard for so long is gone; 3.5 intervals"
    )
    parser.add_argument("--discovery-ports", type=int, help="1 to so many of each switch; those with links in TOPOLOGY")
    parser.add_argument(
        "--repair",
        action="store_true",
        help="give copies another path: with --discover where links are gone, with --alarms where paths are in alarm",
    )
    arguments = parser.parse_args()
    if arguments.repair and not (arguments.alarms or arguments.discover):
        parser.error("--repair needs --alarms or --discover: P4Runtime does not tell of ports")
    if not arguments.discover:
        for name in _DISCOVERY:
            if getattr(arguments, f"discovery_{name}") is not None:
                parser.error(f"--discovery-{name.replace('_', '-')} belongs to --discover")
    try:
        controller = _TellingController(
            protect=arguments.protect,
            reaction_delay_ms=0,
            mtu=arguments.mtu,
            disjoint=arguments.disjoint,
            paths=arguments.paths,
            acceptance=Acceptance(arguments.acceptance),
            repair=arguments.repair,
            repair_latent=arguments.repair and arguments.alarms,
            discovery=_discovery(arguments),
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
