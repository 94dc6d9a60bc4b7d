"""A collector's counts in Prometheus' text format (version 0.0.4), and an HTTP server that answers ``/metrics`` with them.

Flows have no series of their own: there may be too many. The collector's owner writes the text; the server only reads it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from holdfast.apps.telemetry.collector import LATENCY_BUCKETS_US, Collector
from holdfast.apps.telemetry.reports import REASONS
from holdfast.errors import LiveError

_US_PER_S = 1_000_000


def text(collector: Collector) -> str:
    """All metrics of a collector."""
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
    )
    for name, about, value in counters:
        yield from _family(name, "counter", about, [("", value)])
    yield from _family(
        "malformed_total",
        "counter",
        "UDP packets that are no reports, by the rule that they break.",
        ((f'{{reason="{reason}"}}', malformed.get(reason, 0)) for reason in REASONS),
    )
    yield from _family("flows", "gauge", "Flows in memory.", [("", counts.flows)])


def _of_hops(collector: Collector) -> Iterator[str]:
    hops = []
    for key, state in collector.hops().items():
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
    yield from _family(
        "dropped_total",
        "counter",
        "Reported drops, by reason (numbers of p4lang/switch).",
        ((f'{{node="{node}",reason="{reason}"}}', count) for (node, reason), count in collector.drops().items()),
    )


class MetricsServer:
    """Answers ``GET /metrics`` with :attr:`page`, until closed. A context manager."""

    def __init__(self, host: str, port: int) -> None:
        """Raises :class:`LiveError` if it cannot listen there; ``port`` 0 takes a free one."""
        self.page = ""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 10

            def do_GET(self) -> None:
                if self.path.partition("?")[0] != "/metrics":
                    self.send_error(HTTPStatus.NOT_FOUND)
                    return
                body = outer.page.encode()
                self.send_response(HTTPStatus.OK)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Requests are no news."""

        try:
            self._server = ThreadingHTTPServer((host, port), Handler)
        except (OSError, OverflowError) as error:
            raise LiveError(f"cannot serve metrics at {host}:{port}: {error}") from None
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The TCP port it listens on."""
        return int(self._server.server_address[1])

    def __enter__(self) -> MetricsServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
