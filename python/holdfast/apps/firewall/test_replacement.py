"""A rule set is replaced at one moment: no packet is judged by a mixture of two."""

from __future__ import annotations

import ipaddress
import random
from typing import Any

import pytest

from holdfast._core import Program
from holdfast.apps.firewall import writer
from holdfast.apps.firewall.program import Variant, compile_firewall
from holdfast.apps.firewall.rules import RuleSet
from holdfast.apps.firewall.tests import packets as make

RULES = 10_000
BASE = {
    "zones": {"inside": {}, "outside": {}},
    "ports": [{"port": 1, "zone": "inside", "senders": "mac"}, {"port": 2, "zone": "outside", "senders": "mac"}],
    "bindings": [{"port": 1, "mac": "02:00:00:00:00:01"}, {"port": 2, "mac": "02:00:00:00:00:02"}],
    "new_flows_per_source": {"per_s": 10**9, "burst": 10**9},
    "log_per_reason": {"per_s": 1, "burst": 1},
}


def destination(number: int) -> str:
    return str(ipaddress.IPv4Address("198.18.0.0") + number)


def rule_set(name: str, allowed: set[int], **changes: Any) -> RuleSet:
    """Return a rule set with a rule for each of many destinations: it allows those in ``allowed``, and denies the others."""
    rules = [
        {
            "name": f"{name}-{number}",
            "action": "allow" if number in allowed else "deny",
            "destination": destination(number),
            "protocol": "udp",
            "destination_ports": f"{number % 1000}-{1000 + number % 7}",
        }
        for number in range(RULES)
    ]
    return RuleSet.model_validate({**BASE, "rules": rules, **changes})


def packet(number: int, port: int) -> bytes:
    body = make.ipv4("10.0.0.1", destination(number), 17, make.udp(port, 1000))
    return make.ethernet(make.mac(2), make.mac(1), 0x0800, body)


def test_no_packet_is_judged_by_a_mixture(standalone: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand rules are replaced by others that decide the opposite, with packets before every batch."""
    even, odd = {n for n in range(RULES) if n % 2 == 0}, {n for n in range(RULES) if n % 2}
    bridge = standalone(compile_firewall("bridged", {"WAY_BITS": "12"}), rule_set("even", even))
    rng = random.Random(2)
    sent = 0
    old, judged = even, {"old": 0, "new": 0}

    def traffic(active: set[int], name: str) -> None:
        nonlocal sent
        for number in rng.sample(range(RULES), 40):
            sent += 1
            # Each packet is a flow of its own.
            passes = bool(bridge.receive(1, packet(number, sent % 60_000 + 1)))
            assert passes == (number in active), (name, number)
            judged[name] += 1

    batches = 0
    batch = bridge.client.batch
    activated = False

    def observed(*arguments: Any) -> Any:
        nonlocal batches
        traffic(odd if activated else old, "new" if activated else "old")
        batches += 1
        return batch(*arguments)

    set_default = bridge.client.set_default

    def activating(*arguments: Any) -> None:
        nonlocal activated
        set_default(*arguments)
        activated = True

    monkeypatch.setattr(bridge.client, "batch", observed)
    monkeypatch.setattr(bridge.client, "set_default", activating)
    bridge.controller.replace(rule_set("odd", odd))
    traffic(odd, "new")
    assert batches == 1 + 2 * RULES // writer.CHUNK
    assert judged["old"] >= 800 and judged["new"] >= 800
    hits = bridge.controller.hits("s1")
    assert len(hits) == RULES and all(name.startswith("odd-") for name in hits)
    assert sum(hits.values()) == judged["new"]


@pytest.mark.parametrize("established", ["judge-again", "keep"])
def test_flows_are_judged_again_or_kept(
    standalone: Any, programs: dict[Variant, Program], executor: str, established: str
) -> None:
    def small(action: str) -> RuleSet:
        rules = [{"name": action, "action": action, "protocol": "udp"}]
        return RuleSet.model_validate({**BASE, "rules": rules, "established": established})

    bridge = standalone(programs["bridged"], small("allow"), executor)
    back = make.ethernet(make.mac(1), make.mac(2), 0x0800, make.ipv4(destination(1), "10.0.0.1", 17, make.udp(1000, 5)))
    assert bridge.reason(1, packet(1, 5)) == "passes"
    bridge.controller.replace(small("deny"))
    kept = established == "keep"
    assert bridge.reason(2, back) == ("passes" if kept else "denied")
    assert bridge.reason(1, packet(1, 6)) == "denied"
    # Back to the same generation, but not to the same epoch.
    bridge.controller.replace(small("allow"))
    assert bridge.reason(1, packet(1, 5)) == "passes"
    bridge.controller.replace(small("deny"))
    bridge.controller.replace(small("deny"))
    assert bridge.reason(1, packet(1, 5)) == ("passes" if kept else "denied")


def test_zones_keep_their_numbers(standalone: Any, programs: dict[Variant, Program]) -> None:
    """A set with other zones before the known ones does not cut their flows."""
    rules = [{"name": "all", "action": "allow"}]
    bridge = standalone(programs["bridged"], RuleSet.model_validate({**BASE, "rules": rules}))
    assert bridge.reason(1, packet(1, 5)) == "passes"
    zones = {"dmz": {}, "outside": {}, "inside": {}}
    bridge.controller.replace(RuleSet.model_validate({**BASE, "zones": zones, "rules": rules}))
    back = make.ethernet(make.mac(1), make.mac(2), 0x0800, make.ipv4(destination(1), "10.0.0.1", 17, make.udp(1000, 5)))
    assert bridge.reason(2, back) == "passes"


def test_a_later_controller_keeps_flows_and_rules(standalone: Any, programs: dict[Variant, Program]) -> None:
    rules = RuleSet.model_validate({**BASE, "rules": [{"name": "all", "action": "allow"}]})
    bridge = standalone(programs["bridged"], rules)
    assert bridge.reason(1, packet(1, 5)) == "passes"
    later = writer.FirewallWriter(bridge.client, b"another secret")
    later.adopt()
    controller = bridge.controller
    later.replace(rules, list(rules.ports), controller._switches["s1"].stations())
    back = make.ethernet(make.mac(1), make.mac(2), 0x0800, make.ipv4(destination(1), "10.0.0.1", 17, make.udp(1000, 5)))
    assert bridge.reason(2, back) == "passes"
    assert later.hits() == {"all": 1}
