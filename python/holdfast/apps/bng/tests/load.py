"""Measures a live gateway: setups, sessions held, and what deaths and storms cost. Prints a line of JSON for each part (root).

    python -P -m holdfast.apps.bng.tests.load setups --number 1000 --rate 500
    python -P -m holdfast.apps.bng.tests.load held --number 10000 --rate 300
    python -P -m holdfast.apps.bng.tests.load deaths --number 500
    python -P -m holdfast.apps.bng.tests.load storms
    python -P -m holdfast.apps.bng.tests.load handover --number 100 --rate 100000
    python -P -m holdfast.apps.bng.tests.load radius --number 300 --rate 100

``processor_ms`` is processor time a setup, of each process: subscribers, switch, control plane and RADIUS share this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Literal

from holdfast.apps.bng.tests.site import (
    CORE_MAC,
    GATEWAY_MAC,
    ROUTER_MAC,
    SERVER,
    Crowd,
    Site,
    processor_s,
    resident_bytes,
)
from holdfast.subscribers import operator_requests
from holdfast.subscribers.tests.crowd import PAYLOAD, head

NOBODY = "192.0.2.200"
"""An address in the core at which there is no host: packets to it end there, and nobody answers."""

STORMS = ("padi", "forged-cookies", "spoofed", "truncated")


@contextmanager
def site(**given: Any) -> Iterator[Site]:
    """Yield a running gateway, and stop it at the end of the context."""
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        found = Site(Path(directory), stack, **given)
        found.start()
        yield found


def setups(number: int, rate: float) -> dict[str, Any]:
    """Let ``number`` dual-stack subscribers with CHAP dial, ``rate`` per second.

    Return the times, and the sessions' state afterwards.
    """
    with site() as gateway:
        return _set_up(gateway, number, rate)[0]


def _set_up(gateway: Site, number: int, rate: float) -> tuple[dict[str, Any], Crowd]:
    assert gateway.process is not None
    pids = {"control": gateway.process.pid, "switch": gateway.switches["switch"], "radius": gateway.radius.pid}
    before = {name: processor_s(pid) for name, pid in pids.items()}
    crowd = gateway.crowd(number, rate, patience_s=number / rate * 4 + 60)
    found = crowd.hear()
    spent = {name: processor_s(pid) - before[name] for name, pid in pids.items()} | {
        "subscribers": found.pop("processor_s")
    }
    up = found["states"].get("up", 0)
    result = {
        "subscribers": number,
        "dialled_per_s": rate,
        "setups_per_s": round(up / found["seconds"]),
        "processor_ms": {name: round(seconds / number * 1000, 2) for name, seconds in spent.items()},
        "load_average": round(os.getloadavg()[0], 1),
        **found,
    }
    return result, crowd


def held(number: int, rate: float, seconds: float) -> dict[str, Any]:
    """Set up and hold ``number`` subscribers with traffic; kill and restart the control plane; return what was lost."""
    with site() as gateway:
        gateway.echo()
        result, crowd = _set_up(gateway, number, rate)
        time.sleep(seconds)
        crowd.say(f"traffic 1000 {SERVER}")
        time.sleep(max(12.0, number / 1000 + 1))
        traffic = crowd.ask("stop")
        assert gateway.process is not None
        resident = {
            "control": resident_bytes(gateway.process.pid) >> 20,
            "switch": resident_bytes(gateway.switches["switch"]) >> 20,
        }
        state = crowd.ask("state")
        gateway.kill()
        began = time.monotonic()
        said = gateway.start().splitlines()
        back_s = time.monotonic() - began
        return result | {
            "held_s": seconds,
            "then": state["states"],
            "lost": state["lost"],
            "resident_mib": resident,
            "traffic": traffic,
            "back_after_kill_s": round(back_s, 2),
            "said": next(line for line in said if "sessions kept" in line),
        }


def death(gateway: Site, crowd: Crowd, rate: float, what: Callable[[], None], around_s: float = 1.0) -> dict[str, Any]:
    """Call ``what``, which kills a process, while ``rate`` packets per second are sent; return the losses.

    Packets are sent from ``around_s`` seconds before the call to ``around_s`` after it.
    """
    crowd.say(f"traffic {rate} {SERVER}")
    time.sleep(around_s)
    what()
    time.sleep(around_s)
    traffic = crowd.ask("stop")
    state = crowd.ask("state")
    return {"traffic": traffic, "sessions": state["states"], "resets": state["lost"]}


def deaths(number: int, rate: float) -> Iterator[dict[str, Any]]:
    """Yield the losses that kill -9 causes: of the control plane, of RADIUS, of one of two forwarding planes, of the balancer."""
    with site(planes=2) as gateway:
        gateway.echo()
        crowd = gateway.crowd(number, 200, patience_s=120)
        first = crowd.hear()

        def control() -> None:
            gateway.kill()
            time.sleep(2.0)
            gateway.start()

        def radius() -> None:
            gateway.radius.kill()
            time.sleep(2.0)
            gateway.radius.start()

        yield {"killed": "control", "first": first["states"], **death(gateway, crowd, rate, control)}
        yield {"killed": "radius", **death(gateway, crowd, rate, radius)}
        said: list[str] = []

        def plane() -> None:
            os.kill(gateway.switches["plane forward1"], signal.SIGKILL)
            said.append(gateway.hear("is lost")[1].strip())

        yield {"killed": "plane forward1", **death(gateway, crowd, rate, plane), "said": said}
        back: list[str] = []

        def returned() -> None:
            back.append(gateway.hear("is back")[1].strip())

        yield {"back": "plane forward1", **death(gateway, crowd, rate, returned), "said": back}
        for name in ("authentication plane", "balancer"):

            def switch(name: str = name) -> None:
                os.kill(gateway.switches[name], signal.SIGKILL)
                gateway.hear("is back")

            yield {"killed": name, **death(gateway, crowd, rate, switch)}


def storms(number: int, rate: float, seconds: float) -> Iterator[dict[str, Any]]:
    """Run each kind of storm beside established sessions with traffic, and yield what it costs: packets, sessions, time, memory.

    In the middle of a storm a new subscriber dials.
    """
    with site(control={}) as gateway:
        gateway.echo()
        crowd = gateway.crowd(number, 20)
        first = crowd.hear()
        yield {"subscribers": first["states"]}
        for order, kind in enumerate(STORMS):
            yield storm(gateway, crowd, kind, order, rate, seconds)


def storm(gateway: Site, crowd: Crowd, kind: str, order: int, rate: float, seconds: float) -> dict[str, Any]:
    """Run one storm; return packets lost, sessions by state, a newcomer's setup time in s, and growth of memory in MiB.

    ``rate`` frames per second, for ``seconds`` seconds, come from 50 lines of the access port to which the subscribers of ``crowd``
    belong. ``order``: the number of the storm, which gives the newcomer a line of its own.
    """
    assert gateway.process is not None
    pids = {"control": gateway.process.pid, "switch": gateway.switches["switch"]}
    before = {name: resident_bytes(pid) for name, pid in pids.items()}
    crowd.say(f"traffic 500 {SERVER}")
    attacker = gateway.storm(kind, rate, seconds, 50)
    time.sleep(1.0)
    late = gateway.crowd(1, 10, patience_s=20, first=5000 + order)
    came = late.hear()
    assert attacker.stdout is not None
    sent = json.loads(attacker.stdout.readline())
    grown = {name: round((resident_bytes(pid) - before[name]) / (1 << 20), 1) for name, pid in pids.items()}
    traffic = crowd.ask("stop")
    late.hang_up()
    state = crowd.ask("state")
    return {
        "storm": kind,
        "sent": sent,
        "traffic": traffic,
        "resets": state["lost"],
        "sessions": state["states"],
        "newcomer_s": came["slowest_s"],
        "grown_mib": grown,
    }


def handover(number: int, rate: float, seconds: float) -> Iterator[dict[str, Any]]:
    """Drain a forwarding plane and give it its share back, at the highest rate up to ``rate`` without loss; yield the results."""
    with site(planes=2) as gateway:
        crowd = gateway.crowd(number, 200, patience_s=120)
        yield {"subscribers": crowd.hear()["states"]}
        # It would look at every packet that comes down.
        crowd.process.send_signal(signal.SIGSTOP)
        while True:
            found = [loaded(gateway, rate / 2, seconds) for _ in range(2)]
            yield from found
            if not any(each["lost"] for each in found):
                break
            rate = round(rate * 0.8)

        def operate(verb: Literal["drain", "undrain"]) -> dict[str, Any]:
            request = operator_requests.Drain(verb=verb, plane="forward1")
            return operator_requests.ask(gateway.name, request, operator_requests.HandOverAnswer).model_dump()

        yield from (loaded(gateway, rate / 2, seconds, operate) for _ in range(5))
        crowd.process.send_signal(signal.SIGCONT)


def radius(number: int, rate: float) -> Iterator[dict[str, Any]]:
    """Kill RADIUS during setups, and restart it before and after the time at which requests give up (14 s by default)."""
    for down_s in (3.0, 20.0):
        with site(planes=2) as gateway:
            gateway.echo()
            crowd = gateway.crowd(100, 100)
            yield {"subscribers": crowd.hear()["states"], **outage(gateway, crowd, number, rate, down_s)}


def outage(gateway: Site, crowd: Crowd, number: int, rate: float, down_s: float) -> dict[str, Any]:
    """Start new subscribers beside established sessions with traffic, and kill RADIUS when a third has dialled.

    Return what the outage of ``down_s`` costs. ``setups_again_s`` and ``all_in_s``: the seconds from RADIUS' return to the first
    and to the last session that begins then.
    """
    established = set(gateway.rows())
    crowd.say(f"traffic 500 {SERVER}")
    late = gateway.crowd(number, rate, patience_s=number / rate + down_s + 120, first=20_000)
    time.sleep(number / rate / 3)
    gateway.radius.kill()
    time.sleep(down_s)
    meanwhile = gateway.rows()
    gateway.radius.start()
    back_s = time.time()
    came = late.hear()
    traffic = crowd.ask("stop")
    rows = gateway.rows()
    began = sorted(row["started_s"] - back_s for row in rows.values() if row["started_s"] > back_s)
    # Every session's start is accounted for, though most were owed when there was no server.
    end_s = time.monotonic() + 120
    while (accounted := gateway.started()) < len(rows) and time.monotonic() < end_s:
        time.sleep(0.1)
    return {
        "down_s": down_s,
        "in_before": sum(row["phase"] == "network" for row in meanwhile.values()) - len(established),
        "being_set_up": sum(row["phase"] != "network" for row in meanwhile.values()),
        "setups_again_s": round(began[0], 2) if began else None,
        "all_in_s": round(began[-1], 2) if began else None,
        "late": came["states"],
        "late_sessions": len(rows.keys() - established),
        "established_kept": established <= rows.keys(),
        "traffic": traffic,
        "resets": crowd.ask("state")["lost"],
        "starts_accounted": accounted,
        "accounted_s": round(time.time() - back_s, 1),
    }


def loaded(
    gateway: Site,
    rate: float,
    seconds: float,
    operate: Callable[[Literal["drain", "undrain"]], object] | None = None,
    crowd: Crowd | None = None,
) -> dict[str, Any]:
    """Send ``rate`` packets per second up and as many down through all sessions, and return how many were lost.

    ``operate`` is called with ``drain`` and ``undrain`` meanwhile. ``lost`` can be negative, as control packets (ARP) arrive too.
    ``uncounted`` follows from the sessions' counters, and is exact. With ``crowd``, which has all subscribers, its echoes run as
    well, and no other packets are sent down, as the crowd looks at every packet.
    """
    rows, before = gateway.rows(), gateway.arrived()
    ways = [(gateway.home, upstream(rows.values())), (gateway.core, downstream(rows.values()))]
    said = []
    if crowd is not None:
        del ways[1:]
        crowd.say(f"traffic 500 {SERVER}")
    with ThreadPoolExecutor() as threads:
        loads = [
            threads.submit(namespace.send_load, "eth0", frames, duration_s=seconds, packets_per_s=rate)
            for namespace, frames in ways
        ]
        if operate is not None:
            for verb in ("drain", "undrain"):
                time.sleep(seconds / 4)
                said.append(operate(verb))
        sent = [each.result() for each in loads]
    echoes = {"sent": 0, "lost": 0} if crowd is None else crowd.ask("stop")
    time.sleep(0.5)
    arrived = [now - then for now, then in zip(gateway.arrived(), before, strict=True)]
    counted = gateway.rows()
    up, *down = (each.sent for each in sent)
    wanted = up + sum(down) + 2 * echoes["sent"]
    strange = 0
    for at, (number, row) in enumerate(rows.items()):
        echo = _share(echoes["sent"], len(rows), int(row["mac"].replace(":", "")[4:], 16)) if crowd is not None else 0
        for way, load in (("packets_up", up), ("packets_down", sum(down))):
            strange += max(0, counted[number][way] - row[way] - _share(load, len(rows), at) - echo)
    return {
        "offered_per_s": round(sum(each.sent / each.elapsed_ns for each in sent) * 1e9),
        "sent": sum(each.sent for each in sent),
        "refused": sum(each.refused for each in sent),
        "lost": wanted - sum(arrived),
        "uncounted": wanted
        - sum(
            counted[number][way] - row[way] for number, row in rows.items() for way in ("packets_up", "packets_down")
        ),
        "counted_for_another_session": strange,
        "echoes": echoes,
        "said": said,
        "load_average": round(os.getloadavg()[0], 1),
    }


def _share(packets: int, sessions: int, which: int) -> int:
    """Return how many of ``packets`` the session with index ``which`` gets, if ``sessions`` sessions take turns."""
    return packets // sessions + (which < packets % sessions)


def upstream(rows: Iterable[dict[str, Any]]) -> list[bytes]:
    """Return a frame of each session, as its line carries it, with a packet to an address at which there is no host."""
    found = []
    for row in rows:
        packet = head(IPv4Address(row["ipv4"]), IPv4Address(NOBODY)) + bytes(PAYLOAD)
        s_tag, c_tag = map(int, row["line"].partition(":")[2].split("."))
        frame = bytes.fromhex((GATEWAY_MAC + row["mac"]).replace(":", ""))
        frame += struct.pack("!HHHH", 0x8100, s_tag, 0x8100, c_tag)
        found.append(frame + struct.pack("!HHHHH", 0x8864, 0x1100, row["session"], len(packet) + 2, 0x0021) + packet)
    return found


def downstream(rows: Iterable[dict[str, Any]]) -> list[bytes]:
    """Return a frame with a packet to each session's subscriber, as the core's router sends it."""
    ends = bytes.fromhex((CORE_MAC + ROUTER_MAC).replace(":", "")) + b"\x08\x00"
    return [ends + head(IPv4Address(SERVER), IPv4Address(row["ipv4"])) + bytes(PAYLOAD) for row in rows]


def main() -> None:
    """Measure the part that the command line names, and print a line of JSON for each result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("setups", "held", "deaths", "storms", "handover", "radius"))
    parser.add_argument("--number", type=int)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--seconds", type=float)
    given = {name: value for name, value in vars(parser.parse_args()).items() if value is not None}
    part = given.pop("part")
    defaults: dict[str, dict[str, Any]] = {
        "setups": {"number": 1000, "rate": 500.0},
        "held": {"number": 10_000, "rate": 300.0, "seconds": 10.0},
        "deaths": {"number": 500, "rate": 1000.0},
        "storms": {"number": 20, "rate": 100_000.0, "seconds": 6.0},
        "handover": {"number": 100, "rate": 100_000.0, "seconds": 4.0},
        "radius": {"number": 300, "rate": 100.0},
    }
    if more := sorted(given.keys() - defaults[part].keys()):
        parser.error(f"{part} has no option --{more[0]}")
    found = globals()[part](**defaults[part] | given)
    for row in [found] if isinstance(found, dict) else found:
        sys.stdout.write(json.dumps({"part": part, **row}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
