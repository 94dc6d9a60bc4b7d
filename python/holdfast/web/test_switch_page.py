"""States of a switch's page from metrics. The page in a browser is in ``tests/web/test_switch_page.py``."""

from __future__ import annotations

import pytest
from prometheus_client import Metric

from holdfast.operations import exposition

pytest.importorskip("nicegui", reason="needs the extra web")

from holdfast.web.switch_page import Meter


def families(received: int, dropped: int, *, up: bool = True, fill: int = 0) -> list[Metric]:
    at, port = ("port", "interface"), ("10", "veth0")
    name = "holdfast_switch_"
    return [
        exposition.family("gauge", f"{name}port_up", "", at, [(port, up), (("2", "veth1"), True)]),
        exposition.family("counter", f"{name}port_received_packets_total", "", at, [(port, received)]),
        exposition.family("counter", f"{name}port_received_bytes_total", "", at, [(port, 100 * received)]),
        exposition.family(
            "counter",
            f"{name}port_drops_total",
            "",
            (*at, "reason"),
            [((*port, "overrun"), 2), ((*port, "transmit"), 3)],
        ),
        exposition.counted("counter", f"{name}drops_total", "", "reason", {"ingress_drop": dropped}),
        exposition.family("gauge", f"{name}table_entries", "", ("table",), [(("I.t",), fill)]),
        exposition.family("gauge", f"{name}table_size", "", ("table",), [(("I.t",), 64)]),
        exposition.family("gauge", f"{name}streams", "", ("role",), [(("",), 1), (("x",), 2)]),
    ]


def test_rates_are_differences_and_ports_are_in_order() -> None:
    now = [100.0]
    meter = Meter(clock=lambda: now[0])
    first = meter.read(families(1000, 5))
    assert [port.number for port in first.ports] == ["2", "10"]
    assert first.ports[1].received_per_s == 0
    now[0] += 2
    state = meter.read(families(3000, 9, up=False, fill=16))
    port = state.ports[1]
    assert (port.received_per_s, port.received_bps, port.dropped, port.up) == (1000, 800_000, 5, False)
    assert state.drops == (("ingress_drop", 9, 2.0),)
    assert state.tables == (("I.t", 16, 64),)
    assert state.streams == 3
    assert [point.received for point in meter.pasts["10@veth0"]] == [0, 1000]
    now[0] += 1
    again = meter.read(families(0, 0))
    assert again.ports[1].received_per_s == 0, "a port that was removed and added begins anew"


def test_a_switch_without_anything_is_a_state() -> None:
    state = Meter().read([])
    assert (state.ports, state.drops, state.tables, state.streams) == ((), (), (), 0)
