"""Measures a live gateway: setups, sessions held, and what deaths and storms cost. Prints a line of JSON for each part (root).

    python -m holdfast.apps.bng.tests.load setups --number 1000 --rate 500
    python -m holdfast.apps.bng.tests.load held --number 10000 --rate 300
    python -m holdfast.apps.bng.tests.load deaths --number 500
    python -m holdfast.apps.bng.tests.load storms
    python -m holdfast.apps.bng.tests.load handover --number 100 --rate 100000
    python -m holdfast.apps.bng.tests.load radius --number 300 --rate 100

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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

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
from holdfast.subscribers import service
from holdfast.subscribers.tests.crowd import PAYLOAD, head

NOBODY = "192.0.2.200"
"""In the core: packets end there, and nobody answers."""

STORMS = ("padi", "forged-cookies", "spoofed", "truncated")


@contextmanager
def site(**given: Any) -> Iterator[Site]:
    """A gateway that runs."""
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        found = Site(Path(directory), stack, **given)
        found.start()
        yield found


def setups(number: int, rate: float) -> dict[str, Any]:
    """So many dual-stack subscribers with CHAP dial at a rate; then all is asked for that is held."""
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
    """So many are set up and held, with echoes and traffic through all of them; then the control plane is killed and comes back."""
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


def death(gateway: Site, crowd: Crowd, rate: float, what: Callable[[], None]) -> dict[str, Any]:
    """What something that dies costs sessions with so many packets a second in all."""
    crowd.say(f"traffic {rate} {SERVER}")
    time.sleep(1.0)
    what()
    time.sleep(1.0)
    traffic = crowd.ask("stop")
    state = crowd.ask("state")
    return {"traffic": traffic, "sessions": state["states"], "resets": state["lost"]}


def deaths(number: int, rate: float) -> Iterator[dict[str, Any]]:
    """What kill -9 costs: of the control plane, of RADIUS and of one of two forwarding planes behind a balancer."""
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


def storms(number: int, rate: float, seconds: float) -> Iterator[dict[str, Any]]:
    """Each storm, beside established sessions with traffic and a subscriber that dials in the middle of it."""
    with site(control={}) as gateway:
        gateway.echo()
        crowd = gateway.crowd(number, 20)
        first = crowd.hear()
        yield {"subscribers": first["states"]}
        for order, kind in enumerate(STORMS):
            yield storm(gateway, crowd, kind, order, rate, seconds)


def storm(gateway: Site, crowd: Crowd, kind: str, order: int, rate: float, seconds: float) -> dict[str, Any]:
    """One, from 50 lines of the access port that subscribers are on."""
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
    """A plane is drained and gets its share back, at the highest rate up to this one at which nothing is lost otherwise.

    Half of the packets go up and half down, through all sessions in turn; each session's counters must have what it was sent.
    """
    with site(planes=2) as gateway:
        crowd = gateway.crowd(number, 200, patience_s=120)
        yield {"subscribers": crowd.hear()["states"]}
        # It would look at every packet that comes down.
        crowd.process.send_signal(signal.SIGSTOP)
        while True:
            found = [loaded(gateway, rate, seconds) for _ in range(2)]
            yield from found
            if not any(each["lost"] for each in found):
                break
            rate = round(rate * 0.8)
        yield from (loaded(gateway, rate, seconds, drained="forward1") for _ in range(3))
        crowd.process.send_signal(signal.SIGCONT)


def loaded(gateway: Site, rate: float, seconds: float, drained: str | None = None) -> dict[str, Any]:
    """So many packets a second through all sessions, half of them up and half down; meanwhile, a plane is drained and returns."""
    rows = gateway.sessions()
    before = gateway.arrived()
    with ThreadPoolExecutor() as threads:
        up = threads.submit(gateway.home.send_load, "eth0", upstream(rows), duration_s=seconds, packets_per_s=rate / 2)
        down = threads.submit(
            gateway.core.send_load, "eth0", downstream(rows), duration_s=seconds, packets_per_s=rate / 2
        )
        said = []
        if drained is not None:
            for verb in ("drain", "undrain"):
                time.sleep(seconds / 4)
                said.append(service.ask(gateway.name, verb=verb, plane=drained))
        sent = up.result(), down.result()
    time.sleep(0.5)
    after = gateway.arrived()
    counted = {row["session"]: row for row in gateway.sessions()}
    strange = 0
    for way, load in zip(("packets_up", "packets_down"), sent, strict=True):
        for at, row in enumerate(rows):
            wanted = load.sent // len(rows) + (at < load.sent % len(rows))
            strange += max(0, counted[row["session"]][way] - row[way] - wanted)
    return {
        "offered_per_s": round(sum(each.sent / each.elapsed_ns for each in sent) * 1e9),
        "sent": sum(each.sent for each in sent),
        "refused": sum(each.refused for each in sent),
        "lost": sum(each.sent for each in sent) - sum(after) + sum(before),
        "counted": sum(
            counted[row["session"]][way] - row[way] for row in rows for way in ("packets_up", "packets_down")
        ),
        "counted_for_another_session": strange,
        "drained": drained,
        "said": said,
        "load_average": round(os.getloadavg()[0], 1),
    }


def upstream(rows: list[dict[str, Any]]) -> list[bytes]:
    """A packet of each session to a host that nobody is, as its line carries it."""
    found = []
    for row in rows:
        packet = head(IPv4Address(row["ipv4"]), IPv4Address(NOBODY)) + bytes(PAYLOAD)
        s_tag, c_tag = map(int, row["line"].partition(":")[2].split("."))
        frame = bytes.fromhex((GATEWAY_MAC + row["mac"]).replace(":", ""))
        frame += struct.pack("!HHHH", 0x8100, s_tag, 0x8100, c_tag)
        found.append(frame + struct.pack("!HHHHH", 0x8864, 0x1100, row["session"], len(packet) + 2, 0x0021) + packet)
    return found


def downstream(rows: list[dict[str, Any]]) -> list[bytes]:
    """A packet to each session, from the core."""
    ends = bytes.fromhex((CORE_MAC + ROUTER_MAC).replace(":", "")) + b"\x08\x00"
    return [ends + head(IPv4Address(SERVER), IPv4Address(row["ipv4"])) + bytes(PAYLOAD) for row in rows]


def main() -> None:
    """Reads the command line."""
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
