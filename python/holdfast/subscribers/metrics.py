"""A gateway's state as families of metrics. Sessions have no series of their own."""

from __future__ import annotations

from collections import Counter
from functools import partial

from prometheus_client import Metric

from holdfast.operations import exposition
from holdfast.subscribers.dynamic_authorization import DynamicAuthorization
from holdfast.subscribers.gateway import Gateway
from holdfast.subscribers.radius import RadiusClient
from holdfast.subscribers.store import SqliteStore

_PREFIX = "holdfast_bng_"


def families(
    gateway: Gateway,
    client: RadiusClient | None,
    authorization: DynamicAuthorization | None,
    store: SqliteStore | None = None,
) -> list[Metric]:
    """Return all metrics of a gateway.

    ``client``: its RADIUS client, ``authorization``: the server of its dynamic authorization, ``store``: its store of sessions;
    None for each that it does not have, whose metrics are left out.
    """
    gauge, counter = partial(exposition.counted, "gauge"), partial(exposition.counted, "counter")
    phases = Counter(each.phase.value for each in gateway.sessions.values())
    found = [
        gauge(_PREFIX + "sessions", "Sessions, by phase.", "phase", phases),
        exposition.single("gauge", _PREFIX + "setups", "Sessions that are being set up.", gateway.setups),
        counter(_PREFIX + "events_total", "Events of the control plane.", "event", gateway.events),
        counter(_PREFIX + "refusals_total", "Setups and logins refused, by limit.", "limit", gateway.refusals),
        counter(_PREFIX + "drops_total", "Frames dropped, by reason.", "reason", gateway.drops),
        gauge(_PREFIX + "pool_used", "Addresses and prefixes that are taken.", "pool", gateway.pool_use()),
    ]
    if client is not None:
        under_way = client.logins.under_way
        logins = {"under-way": under_way, "waiting": len(client.logins) - under_way}
        waiting = len(client.queue)
        found += [
            counter(_PREFIX + "radius_events_total", "Events of the client.", "event", client.events),
            gauge(_PREFIX + "radius_server_up", "Servers that answer logins.", "server", _alive(client, False)),
            gauge(
                _PREFIX + "radius_accounting_server_up",
                "Servers that answer accounting.",
                "server",
                _alive(client, True),
            ),
            gauge(_PREFIX + "radius_logins", "Logins, by state.", "state", logins),
            exposition.single("gauge", _PREFIX + "radius_queue", "Accounting records that wait.", waiting),
        ]
    if authorization is not None:
        about = "CoA and Disconnect requests."
        found.append(counter(_PREFIX + "dynamic_authorization_total", about, "event", authorization.events))
    if store is not None:
        counts = {"failures": store.failures, "dropped": store.dropped, "damaged": store.damaged}
        about = "Writes to the state file that failed, accounting records dropped, rows and files that were damaged."
        found.append(counter(_PREFIX + "store_total", about, "event", counts))
    return found


def text(
    gateway: Gateway,
    client: RadiusClient | None,
    authorization: DynamicAuthorization | None,
    store: SqliteStore | None = None,
) -> str:
    """Return all metrics of a gateway (:func:`families`) in Prometheus' text format."""
    return exposition.text(families(gateway, client, authorization, store))


def _alive(client: RadiusClient, accounting: bool) -> dict[str, int]:
    dead_until = client.servers.dead_until(accounting)
    return {str(number): int(until is None) for number, until in enumerate(dead_until)}
