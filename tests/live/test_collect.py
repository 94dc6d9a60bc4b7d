"""``holdfast collect`` under ``holdfast switch``: every report of six hops is taken or counted as lost."""

from __future__ import annotations

from holdfast.apps.telemetry.tests import soak


def test_reports_of_a_switch_are_taken_or_counted() -> None:
    found = soak.run(seconds=5, reports_per_s=20_000)
    assert found.reports == found.sent_packets - found.switch_overruns > 0
    # Between two namespaces nothing but the socket can lose a report.
    assert found.unexplained == 0
    assert found.decoded == found.received > 0.9 * found.reports
    assert found.malformed == 0
    assert found.hops == [1, 2, 3, 4, 5, 6]
    assert found.lost_by_sequence <= found.socket_drops + found.port_drops
    assert max(found.collector_rss_mb) < found.collector_rss_mb[0] + 100
