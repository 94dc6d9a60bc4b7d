"""A collector's counts in Prometheus' text format (version 0.0.4), and an HTTP server that answers ``/metrics`` with them.

Flows have no series of their own: there may be too many. Of output ports and of reasons of drops those have some that were reported
first, up to ``MOST_SERIES``: whoever makes up nodes makes no page longer, and takes nobody's series away.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from holdfast.apps.telemetry.collector import LATENCY_BUCKETS_US, Collector
from holdfast.apps.telemetry.reports import REASONS
from holdfast.errors import LiveError

_US_PER_S = 1_000_000

MOST_SERIES = 1000
"""Output ports, and pairs of a node and a reason, with series of their own."""

MOST_CLIENTS = 16
"""Clients that are served at a time; the one that has been there longest goes for a new one."""

CLIENT_S = 10.0
"""The time that a client has for its request and for taking the page."""

FRESH_S = 1.0
"""The age to which a page is given again."""


def text(collector: Collector) -> str:
    """Return all metrics of a collector in Prometheus' text format."""
    return "\n".join((*_totals(collector), *_of_hops(collector), *_drops(collector))) + "\n"


def _family(name: str, kind: str, about: str, samples: Iterable[tuple[str, float]]) -> Iterator[str]:
    yield f"# HELP holdfast_int_{name} {about}"
    yield f"# TYPE holdfast_int_{name} {kind}"
    for labels, value in samples:
        yield f"holdfast_int_{name}{labels} {value:.10g}"


def _totals(collector: Collector) -> Iterator[str]:
    counts, malformed = collector.counts(), collector.malformed()
    counters = (
        ("packets_total", "UDP packets received.", counts.packets),
        ("bytes_total", "Bytes of UDP payload received.", counts.bytes),
        ("reports_total", "Reports decoded.", counts.reports),
        ("reports_lost_total", "Reports that sequence numbers show as lost.", counts.reports_lost),
        ("receive_drops_total", "UDP packets that the kernel had no room for.", collector.receive_drops),
        ("flows_evicted_total", "Flows that had to go for others.", counts.flows_evicted),
        ("hops_refused_total", "Metadata of output ports beyond the limit.", counts.hops_refused),
        ("reporters_refused_total", "Packets of reporters beyond the limit.", counts.reporters_refused),
        ("rows_refused_total", "Rows beyond the memory for those that wait for a file.", counts.rows_refused),
        ("rows_lost_total", "Rows that could not be written.", collector.rows_lost),
    )
    for name, about, value in counters:
        yield from _family(name, "counter", about, [("", value)])
    yield from _family(
        "malformed_total",
        "counter",
        "UDP packets that are no reports, by the rule that they break.",
        ((f'{{reason="{reason}"}}', malformed.get(reason, 0)) for reason in REASONS),
    )
    gauges = (
        ("flows", "Flows in memory.", counts.flows),
        ("hops", "Output ports in memory.", counts.hops),
        ("hops_without_series", "Output ports without series of their own.", max(0, counts.hops - MOST_SERIES)),
        (
            "drop_reasons_without_series",
            "Pairs of a node and a reason without series of their own.",
            max(0, counts.drop_reasons - MOST_SERIES),
        ),
    )
    for name, about, value in gauges:
        yield from _family(name, "gauge", about, [("", value)])


def _of_hops(collector: Collector) -> Iterator[str]:
    hops = []
    for key, state in collector.hops(first=MOST_SERIES).items():
        port = "unknown" if key.egress_port is None else str(key.egress_port)
        hops.append((f'node="{key.node_id}",port="{port}"', state))
    yield from _family(
        "hop_packets_total", "counter", "Reported packets.", ((f"{{{it}}}", state.packets) for it, state in hops)
    )
    yield from _family(
        "hop_congested_total",
        "counter",
        "Reports of congestion.",
        ((f"{{{it}}}", state.congested) for it, state in hops),
    )
    yield from _family(
        "hop_queue_packets",
        "gauge",
        "Queue that the last reported packet saw.",
        ((f"{{{it}}}", state.queue_last) for it, state in hops if state.queue_last is not None),
    )
    yield from _family(
        "hop_queue_packets_max",
        "gauge",
        "Longest queue reported.",
        ((f"{{{it}}}", state.queue_max) for it, state in hops),
    )
    name = "hop_latency_seconds"
    yield f"# HELP holdfast_int_{name} Time in the node."
    yield f"# TYPE holdfast_int_{name} histogram"
    for labels, state in hops:
        if not state.latency_count:
            continue
        below = 0
        for bound, count in zip(LATENCY_BUCKETS_US, state.latency_buckets, strict=False):
            below += count
            yield f'holdfast_int_{name}_bucket{{{labels},le="{bound / _US_PER_S:g}"}} {below}'
        yield f'holdfast_int_{name}_bucket{{{labels},le="+Inf"}} {state.latency_count}'
        yield f"holdfast_int_{name}_sum{{{labels}}} {state.latency_sum / _US_PER_S:.10g}"
        yield f"holdfast_int_{name}_count{{{labels}}} {state.latency_count}"


def _drops(collector: Collector) -> Iterator[str]:
    drops = collector.drops(first=MOST_SERIES)
    yield from _family(
        "dropped_total",
        "counter",
        "Reported drops, by reason (numbers of p4lang/switch).",
        ((f'{{node="{node}",reason="{reason}"}}', count) for (node, reason), count in drops.items()),
    )


class MetricsServer:
    """Answers ``GET /metrics`` with what ``write`` returns, in threads of its own, until closed. A context manager.

    A page is made when somebody asks, at most once in ``FRESH_S``.
    """

    def __init__(self, host: str, port: int, write: Callable[[], str]) -> None:
        """Listen for HTTP requests; ``write`` returns the metrics. ``port`` 0 takes a free one.

        Raise :class:`LiveError` if it cannot listen there.
        """
        self._write, self._page, self._made_s = write, b"", -FRESH_S
        self._writing = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            timeout = CLIENT_S

            def do_GET(self) -> None:
                if self.path.partition("?")[0] != "/metrics":
                    self.send_error(HTTPStatus.NOT_FOUND)
                    return
                body = outer._fresh()
                self.send_response(HTTPStatus.OK)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Ignore the message: requests are not logged."""

        try:
            self._server = _BoundedServer((host, port), Handler)
        except (OSError, OverflowError) as error:
            raise LiveError(f"cannot serve metrics at {host}:{port}: {error}") from None
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    def _fresh(self) -> bytes:
        with self._writing:
            if time.monotonic() - self._made_s >= FRESH_S:
                self._page = self._write().encode()
                self._made_s = time.monotonic()
            return self._page

    @property
    def port(self) -> int:
        """The TCP port on which the server listens."""
        return int(self._server.server_address[1])

    def __enter__(self) -> MetricsServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _BoundedServer(ThreadingHTTPServer):
    """Serves few clients at a time, each for a bounded time. So slow ones keep nobody out: the slowest of them goes first."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        self._clients: dict[socket.socket, threading.Timer] = {}
        self._changing = threading.Lock()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        timer = threading.Timer(CLIENT_S, _cut, (request,))
        timer.daemon = True
        with self._changing:
            oldest = next(iter(self._clients)) if len(self._clients) >= MOST_CLIENTS else None
            if oldest is not None:
                self._clients.pop(oldest).cancel()
            self._clients[request] = timer
        if oldest is not None:
            _cut(oldest)
        timer.start()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._changing:
            timer = self._clients.pop(request, None)
        if timer is not None:
            timer.cancel()
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore an error of a connection: clients may close connections at any time."""


def _cut(connection: socket.socket) -> None:
    """Shut a connection down in both directions, which ends the thread that waits for its data."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
