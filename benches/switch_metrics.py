"""Measures what a scraper costs a live switch: packets per second with ten requests of its metrics per second, and with none.

Both are measured in turns. Needs root. ``benches/switch_metrics.py [PAIRS] [SECONDS]`` prints the median ratio of the pairs, with
its quartiles: of forwarded packets per second, and of the processor time per packet of the thread that owns the switch. ``anew``:
each request has a page made, which the product does at most once a second.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median, quantiles

from holdfast.live import benchmark, metrics
from holdfast.operations import pages
from holdfast.operations.events import Events
from holdfast.p4runtime.server import Server

PAGES = 2000

SCRAPER = """
import sys, time, urllib.request
next_s, count = time.monotonic(), 0
while True:
    urllib.request.urlopen(sys.argv[1], timeout=60).read()
    count += 1
    print(count, flush=True)
    next_s += 0.1
    time.sleep(max(0.0, next_s - time.monotonic()))
"""


@contextmanager
def scraper(address: str) -> Iterator[None]:
    """Ask for a page ten times a second, from a process of its own, within the context."""
    process = subprocess.Popen([sys.executable, "-I", "-c", SCRAPER, address], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        yield
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()


def switch_thread_s() -> float:
    """Return the processor time in seconds of the thread that owns the switch."""
    for task in Path("/proc/self/task").iterdir():
        if (task / "comm").read_text(encoding="utf-8") == "holdfast-net\n":
            return int((task / "schedstat").read_text(encoding="utf-8").split()[0]) / 1e9
    raise LookupError("the switch's thread is gone")


def measured(bench: benchmark._Bench, seconds: float) -> tuple[float, float]:
    """Return packets per second, and nanoseconds of the switch's thread per packet."""
    before_s = switch_thread_s()
    flood = bench.flood(64, seconds)
    packets = flood.forwarded_packets_per_s * flood.usage.sending
    return flood.forwarded_packets_per_s, (switch_thread_s() - before_s) * 1e9 / packets


def main(pairs: int = 20, seconds: float = 1.5) -> None:
    """Measure, and print a line for each way in which pages are made."""
    if reason := benchmark.reason_against():
        sys.exit(f"skipped: {reason}")
    with ExitStack() as stack:
        bench = benchmark._Bench("auto")
        stack.callback(bench.close)
        server = stack.enter_context(Server([bench.live.device], "127.0.0.1:0"))
        shown = stack.enter_context(metrics.pages(bench.live, server, pages.LOOPBACK, 0, events=Events()))
        control = metrics.ControlMetrics()
        before_s, began_s = switch_thread_s(), time.perf_counter()
        for _ in range(PAGES):
            metrics.families(bench.live, server, control)
        took_s, of_switch_s = time.perf_counter() - began_s, switch_thread_s() - before_s
        print(
            f"a page is made in {took_s / PAGES * 1e3:.2f} ms, of which the thread that owns the switch works "
            f"{of_switch_s / PAGES * 1e6:.0f} us"
        )
        bench.flood(64, seconds)
        for name, fresh_s in (("once a second", pages.FRESH_S), ("anew", 0.0)):
            pages.FRESH_S = fresh_s
            ratios = []
            for number in range(pairs):
                found = {}
                for scraped in (True, False) if number % 2 else (False, True):
                    with scraper(f"http://{shown.authority}/metrics") if scraped else ExitStack():
                        found[scraped] = measured(bench, seconds)
                ratios.append([with_it / without for with_it, without in zip(found[True], found[False], strict=True)])
            for what, values in zip(("packets/s", "ns per packet"), zip(*ratios, strict=True), strict=True):
                low, _, high = quantiles(values, n=4)
                print(
                    f"{name}: {what} with a scraper / without: {median(values):.3f} ({low:.3f} to {high:.3f})",
                    flush=True,
                )


if __name__ == "__main__":
    main(*(kind(word) for kind, word in zip((int, float), sys.argv[1:], strict=False)))
