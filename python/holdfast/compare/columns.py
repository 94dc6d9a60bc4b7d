"""What the columns of a comparison's tables are, by the name of the table. A test compares them with the tables themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Final

from holdfast import field_docs
from holdfast.compare import figures, rows

_RUN: Final = {
    "mechanism": "The mechanism's name.",
    "failure": "The link or switch that fails; none: the run without a failure.",
    "seed": "Of the network's random numbers.",
}

_FLOW: Final = {
    "kind": "udp, ping, bulk (a connection without an end) or transfer.",
    "source": "The host that sends.",
    "destination": "The host that receives; several are joined by spaces.",
}

_CASE: Final = field_docs.of(figures.Case)
_FIGURES: Final = field_docs.of(figures.Figures)
_MEASURES: Final = field_docs.of(rows.Measures)

NETWORKS: Final[Mapping[str, Mapping[str, str]]] = {
    "cases": {each.name: _CASE[each.name] for each in fields(figures.Case)},
    "flows": {
        **_RUN,
        **_FLOW,
        **_FIGURES,
        **{name: _MEASURES[name] for name in ("goodput_bytes", "timeouts", "retransmitted_bytes", "completion_ms")},
    },
    "receivers": {**_RUN, **_FLOW, "receiver": "One of the flow's receivers.", **_FIGURES},
    "telemetry": {**_RUN, **field_docs.of(rows.PortRow)},
}
"""The columns of each table of networks, by the table's name. A column that does not concern a flow's kind is null."""

SUBSCRIBERS: Final[Mapping[str, str]] = {
    **_RUN,
    "subscriber": "Its number, from 0.",
    "sent": "Packets in both directions.",
    "lost": "Packets that never arrived.",
    "duplicated": "Further copies that arrived.",
    "outage_ms": "The longest outage of either direction.",
    "recovered_ms": "From the failure to the last packet that was lost; 0: none was; None: the last ones were.",
    "kept": "True if it had one session from the beginning to the end.",
    "online": "True if it had a session at the end.",
}
"""The columns of ``subscribers.parquet`` of broadband gateways."""

GATEWAY_CASES: Final[Mapping[str, str]] = {
    "mechanism": "The kind of gateways.",
    "failure": "What fails.",
    "seed": "Of the network's random numbers.",
    "subscribers": "Subscribers with traffic.",
    "kept": "Of them, those with one session from the beginning to the end.",
    "online": "Of them, those with a session at the end.",
    "sent": "Packets of subscribers in both directions.",
    "lost": "Packets that never arrived.",
    "lost_to_failure": "Those, less what is lost without the failure, with the same seed.",
    "duplicated": "Further copies that arrived.",
    "outage_mean_ms": "Mean of the longest outages of subscribers that had one; 0 if none had.",
    "outage_worst_ms": "The longest outage of a subscriber.",
    "recovered_ms": "From the failure to the last packet that was lost, of the slowest subscriber; None: one has not recovered.",
    "unrecovered": "Subscribers that have not recovered.",
    "newcomers": "Subscribers that dial while something is down.",
    "newcomers_in": "Of them, those with a session at the end.",
    "setup_mean_ms": "Mean time from dialling to a session, of these; None: none is in.",
    "setup_worst_ms": "The longest such time; None likewise.",
    "wrong_session": "Packets that came to a subscriber with another one's session.",
    "accounted": "Accounting records that the RADIUS server has.",
    "records_waiting": "Accounting records that wait in gateways at the end.",
}
"""The columns of ``cases.parquet`` of broadband gateways."""

RUNS: Final[Mapping[str, str]] = {
    "scenario": "The path of the scenario's file, whose name is a hash of its content.",
    "mechanism": "The mechanism's name.",
    "network_seed": "Of the network's random numbers.",
    "failure": "The link or switch that fails; none: the run without a failure.",
    "origin": "The place of a mechanism from outside; there is no such column without one.",
    "attempt": "Of a live run that was made again; there is no such column without one.",
    "seed": "The sweep's own, always 0.",
    **_MEASURES,
    **field_docs.of(rows.RunRow),
}
"""The columns of ``runs/rows.parquet`` of networks."""
