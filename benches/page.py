"""Measures the page of a simulated network: ``python benches/page.py [--quick]``.

A grid of switches with UDP flows, and a Chromium that has the page open. Printed are the time from a change in the network to the
painted picture, what the page's server sends, and how much slower the simulation is: the processor time of its thread for a second
of the network, with and without the page, in turns, and the pace that it keeps. It needs the extra web, Playwright and Chromium.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast import SimulatedNetwork
from holdfast.apps.router import RouterController, compile_router
from holdfast.console import Session
from holdfast.console.pace import THREAD_NAME
from holdfast.parameters import PS_PER_S
from holdfast.topologies import load

PAINTED = """
() => {
    window.painted = [];
    const chart = getElement(document.querySelector('.picture').id.slice(1)).chart;
    let before = -1;
    chart.on('rendered', () => {
        const dashed = chart.getOption().series[0].links.filter((line) => line.lineStyle.type === 'dashed').length;
        if (dashed !== before) {
            before = dashed;
            requestAnimationFrame(() => window.painted.push([dashed, Date.now()]));
        }
    });
}
"""
"""Notes when a picture with another number of cut links is on the screen."""


class Received:
    """Bytes that the browser has received."""

    def __init__(self) -> None:
        self.bytes = 0

    def hears(self, socket: Any) -> None:
        """Count what comes through a WebSocket, before compression."""
        socket.on("framereceived", lambda frame: self._add(len(frame)))

    def _add(self, size: int) -> None:
        self.bytes += size


def network(side: int, flows: int) -> Session:
    """Return a session with a paced grid and its flows."""
    topology = load(f"grid:{side}x{side}")
    simulated = SimulatedNetwork(
        topology, compile_router(), [RouterController(reroute=True, reaction_delay_ms=10)], seed=1
    )
    session = Session(simulated, paced=True)
    draw, hosts = random.Random(1), list(topology.hosts)
    with session.clock.held():
        for _ in range(flows):
            a, b = draw.sample(hosts, 2)
            session.do(f"iperf {a} {b} udp 100kbps &")
    return session


@dataclass(frozen=True)
class Cost:
    """Processor time of the simulation's thread for a second of the network, and the pace that it kept."""

    processor_s: float
    pace: float


def cost(session: Session, for_s: float) -> Cost:
    """Measure the simulation for a time."""
    (thread,) = [each for each in threading.enumerate() if each.name == THREAD_NAME]
    assert thread.ident is not None
    clock = time.pthread_getcpuclockid(thread.ident)
    began_s, used_s, began_ps = time.monotonic(), time.clock_gettime(clock), session.network.now_ps
    time.sleep(for_s)
    passed_s = (session.network.now_ps - began_ps) / PS_PER_S
    used_s = time.clock_gettime(clock) - used_s
    return Cost(used_s / passed_s, passed_s / (time.monotonic() - began_s))


def executable() -> str | None:
    """Return the path of a Chromium, or None if there is none."""
    return shutil.which("chromium") or shutil.which("google-chrome")


@contextmanager
def browsers() -> Iterator[tuple[Any, Any]]:
    """Start two browsers within the context: one that gets what others leave of the processors, and a usual one.

    A user's browser has a processor of its own. Here it would take it from the simulation.
    """
    from playwright.sync_api import sync_playwright

    usual = executable()
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        modest = Path(folder) / "modest"
        modest.write_text(f'#!/bin/sh\nexec nice -n 19 "{usual}" "$@"\n', encoding="utf-8")
        modest.chmod(0o755)
        opened = [
            playwright.chromium.launch(executable_path=each, args=["--no-sandbox"]) for each in (str(modest), usual)
        ]
        yield opened[0], opened[1]
        for browser in opened:
            browser.close()


@contextmanager
def tab_of(browser: Any, address: str) -> Iterator[tuple[Any, Received]]:
    """Open the page within the context."""
    tab, received = browser.new_page(viewport={"width": 1280, "height": 800}), Received()
    tab.on("websocket", received.hears)
    tab.goto(address)
    tab.wait_for_selector("canvas")
    tab.wait_for_timeout(2000)
    yield tab, received
    tab.close()


def delays_ms(session: Session, tab: Any, changes: int) -> list[float]:
    """Cut and repair links at random moments, and return the times until the picture has it on the screen."""
    draw, found = random.Random(2), []
    tab.evaluate(PAINTED)
    links = [
        name
        for name, link in zip(session.topology.link_names(), session.topology.links, strict=True)
        if {link.a, link.b} <= session.topology.switches.keys()
    ]
    for name in draw.sample(links, changes // 2):
        for up in (False, True):
            time.sleep(draw.uniform(0.3, 1.1))
            before = tab.evaluate("() => painted.length")
            began_s = time.time()
            with session.clock.held():
                session.network.set_link(name, up=up)
            tab.wait_for_function("(before) => painted.length > before", arg=before, timeout=60_000)
            found.append(tab.evaluate("(before) => painted[before][1]", before) - 1000 * began_s)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="16 switches, 50 flows, a few seconds")
    quick = parser.parse_args().quick
    if missing := [name for name in ("nicegui", "playwright") if importlib.util.find_spec(name) is None]:
        print(f"not measured: the page needs {' and '.join(missing)}")
        return
    if executable() is None:
        print("not measured: there is no Chromium, such as Debian's package chromium")
        return
    side, flows, changes, for_s, turns = (4, 50, 6, 2.0, 1) if quick else (10, 1000, 40, 10.0, 3)
    with network(side, flows) as session:
        topology = session.topology
        print(f"{len(topology.switches)} switches, {len(topology.links)} links, {flows} flows")
        time.sleep(2)
        without, unseen, seen, sent = [cost(session, for_s)], [], [], 0.0
        from holdfast.web.run import page_of

        with page_of(session) as address, browsers() as (modest, usual):
            for _ in range(turns):
                time.sleep(1)
                unseen.append(cost(session, for_s))
                with tab_of(modest, address) as (tab, received):
                    before, began_s = received.bytes, time.monotonic()
                    seen.append(_while(tab, lambda: cost(session, for_s)))
                    sent = (received.bytes - before) / (time.monotonic() - began_s)
            with tab_of(usual, address) as (tab, _):
                delays = delays_ms(session, tab, changes)
        without.append(cost(session, for_s))
        _print("without a page", without, without)
        _print("with a page that nobody sees", unseen, without)
        _print("with a page in a browser", seen, without)
        print(f"{sent / 1000:.0f} kB/s to the browser, before compression")
        print(f"from a change to the picture: median {statistics.median(delays):.0f} ms, worst {max(delays):.0f} ms")


def _while(tab: Any, act: Callable[[], Cost]) -> Cost:
    """Run ``act`` in a thread while Playwright hears the browser's events, and return what it returns."""
    found: list[Cost] = []
    thread = threading.Thread(target=lambda: found.append(act()))
    thread.start()
    while thread.is_alive():
        tab.wait_for_timeout(100)
    return found[0]


def _print(name: str, found: list[Cost], without: list[Cost]) -> None:
    used, base = (statistics.median(each.processor_s for each in costs) for costs in (found, without))
    pace = statistics.median(each.pace for each in found)
    print(f"{name}: {used:.3f} s of processor per second of the network ({used / base - 1:+.1%}), pace {pace:.3f}")


if __name__ == "__main__":
    main()
