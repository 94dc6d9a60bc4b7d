"""Every application says which encapsulations its domain owns; programs that own one have the edge's parts, by the same names."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast._core import Program, Switch
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device

APPS = Path(__file__).resolve().parents[2] / "python/holdfast/apps"

OWNED = {
    "protect/protect.p4": "IP protocol 253 (or a UDP port), EtherType 0x88B5, the tunnels' addresses",
    "protect/rtag.p4": "R-TAGs",
    "bier/bier.p4": "BIER headers (in an MPLS network all labels), the switches' addresses",
    "mpls/mpls.p4": "labels, and words about ports (EtherType 0x88B5)",
    "router/ipfrr.p4": "the routers' addresses",
    "telemetry/telemetry.p4": "the DSCP or UDP port of INT",
    "telemetry/thesis.p4": "UDP ports 1337 and 1338",
}
OTHERWISE = {
    "router/router.p4": "owns none",
    "ipmc/ipmc.p4": "owns none",
    "firewall/firewall.p4": "owns none",
    "shorternet/shorternet.p4": "the header is at ports of the value set `short_ports` alone, where a host has one name",
    "bng/bng.p4": "the role of a port decides whether a port tag is there; other frames are counted drops",
    "bng/balancer.p4": "port tags come from planes' ports alone; at others they are refused, and counted by port",
    "bng/access.p4": "a model of subscribers' equipment",
}


def programs() -> set[str]:
    marks = ("V1Switch(", '#include "../router/router.p4"')
    return {str(p.relative_to(APPS)) for p in APPS.glob("*/*.p4") if any(mark in p.read_text() for mark in marks)}


def test_every_application_says_what_its_domain_owns() -> None:
    assert programs() == OWNED.keys() | OTHERWISE.keys()


@pytest.mark.parametrize("path", sorted(OWNED))
def test_what_is_owned_is_refused_and_counted_by_port(path: str) -> None:
    program = Program.compile(str(APPS / path), defines={})
    client = LocalClient(Device(1, Switch(program)))
    client.set_pipeline(program)
    message = client.p4info.message
    named = {entity.preamble.name: entity for entity in (*message.counters, *message.registers)}
    assert named["refused"].size == 512
    sets = [value_set.preamble.name for value_set in message.value_sets]
    assert "domain_ports" in named or "TelemetryParser.domain_ports" in sets
