"""A gateway's state in Prometheus' text format (version 0.0.4). Sessions have no series of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from holdfast.subscribers.dynamic_authorization import DynamicAuthorization
from holdfast.subscribers.gateway import Gateway
from holdfast.subscribers.radius import RadiusClient
from holdfast.subscribers.store import SqliteStore


def text(
    gateway: Gateway,
    client: RadiusClient | None,
    authorization: DynamicAuthorization | None,
    store: SqliteStore | None = None,
) -> str:
    """Return all metrics of a gateway in Prometheus' text format."""
    phases = Counter(each.phase.value for each in gateway.sessions.values())
    lines = [
        *_family("sessions", "gauge", "Sessions, by phase.", _labelled("phase", phases)),
        *_family("setups", "gauge", "Sessions that are being set up.", [("", gateway.setups)]),
        *_family("events_total", "counter", "Events of the control plane.", _labelled("event", gateway.events)),
        *_family(
            "refusals_total", "counter", "Setups and logins refused, by limit.", _labelled("limit", gateway.refusals)
        ),
        *_family("drops_total", "counter", "Frames dropped, by reason.", _labelled("reason", gateway.drops)),
        *_family("pool_used", "gauge", "Addresses and prefixes that are taken.", _labelled("pool", gateway.pool_use())),
    ]
    if client is not None:
        logins = Counter(
            {"under-way": client.logins.under_way, "waiting": len(client.logins) - client.logins.under_way}
        )
        lines += [
            *_family("radius_events_total", "counter", "Events of the client.", _labelled("event", client.events)),
            *_family("radius_server_up", "gauge", "Servers that answer logins.", _alive(client, False)),
            *_family("radius_accounting_server_up", "gauge", "Servers that answer accounting.", _alive(client, True)),
            *_family("radius_logins", "gauge", "Logins, by state.", _labelled("state", logins)),
            *_family("radius_queue", "gauge", "Accounting records that wait.", [("", len(client.queue))]),
        ]
    if authorization is not None:
        events = _labelled("event", authorization.events)
        lines += _family("dynamic_authorization_total", "counter", "CoA and Disconnect requests.", events)
    if store is not None:
        counts = Counter(failures=store.failures, dropped=store.dropped, damaged=store.damaged)
        about = "Writes to the state file that failed, accounting records dropped, rows and files that were damaged."
        lines += _family("store_total", "counter", about, _labelled("event", counts))
    return "\n".join(lines) + "\n"


def _alive(client: RadiusClient, accounting: bool) -> Iterator[tuple[str, float]]:
    dead_until = client.servers.dead_until(accounting)
    return _labelled("server", Counter({str(number): int(until is None) for number, until in enumerate(dead_until)}))


def _labelled(label: str, counts: Counter[str]) -> Iterator[tuple[str, float]]:
    return ((f'{{{label}="{name}"}}', count) for name, count in sorted(counts.items()))


def _family(name: str, kind: str, about: str, samples: Iterable[tuple[str, float]]) -> Iterator[str]:
    yield f"# HELP holdfast_bng_{name} {about}"
    yield f"# TYPE holdfast_bng_{name} {kind}"
    for labels, value in samples:
        yield f"holdfast_bng_{name}{labels} {value:.10g}"
