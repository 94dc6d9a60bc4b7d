"""Rule files, their errors, and what is found about rules, compared with the decisions for packets one by one."""

from __future__ import annotations

import ipaddress
import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest

from holdfast.apps.firewall import report
from holdfast.apps.firewall.analysis import Finding, analyse
from holdfast.apps.firewall.rules import RuleSet, read
from holdfast.errors import ScenarioError

GOOD = """
zones:
  inside:
  servers: {may: reply}
ports:
  - {port: 1, zone: inside}
addresses: {office: [10.0.1.0/24, "2001:db8:1::/64"]}
limits: {slow: {packets_per_s: 10}}
rules:
  - name: web
    action: allow
    from: inside
    source: office
    protocol: tcp
    destination_ports: [80, 443, 8000-8080]
    limit: slow
"""


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "rules.yaml"
    file.write_text(text)
    return file


def test_a_rule_file_is_read(tmp_path: Path) -> None:
    located = read(written(tmp_path, GOOD))
    [rule] = located.value.rules
    assert rule.protocol == 6 and rule.destination_ports == [(80, 80), (443, 443), (8000, 8080)]
    assert len(located.value.matches(rule)) == 6
    assert located.line("rules.0") == 10 and located.line("rules.0.limit") == 16


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("from: inside", "from: insde", 12, "rules.0.from: there is no zone 'insde'"),
        ("action: allow", "action: pass", 11, "rules.0.action"),
        ("    action: allow\n", "", 10, "rules.0.action: Field required"),
        ("source: office", "source: 10.0.0.1/8", 13, "'10.0.0.1/8' is neither a prefix nor a name"),
        ("protocol: tcp", "protocol: tcq", 14, "'tcq' is neither one of icmp, tcp, udp, icmpv6 nor a number"),
        ("protocol: tcp", "protocol: 47", 10, "ports need protocol: tcp or protocol: udp"),
        ("8000-8080", "8080-8000", 15, "ports go from 0 to 65535, the lower one first"),
        ("8000-8080", "web", 15, "'web' is neither a port nor a range"),
        ("limit: slow", "limit: fast", 16, "there is no limit 'fast'"),
        ("zone: inside", "zone: outside", 6, "ports.0.zone: there is no zone 'outside'"),
        ("port: 1,", "port: 510,", 6, "ports.0.port"),
        ("may: reply", "may: ask", 4, "zones.servers.may"),
        ("packets_per_s: 10", "packets_per_s: 0", 8, "limits.slow.packets_per_s"),
        ("packets_per_s: 10", "burst_packets: 10", 8, "a limit needs packets_per_s or bytes_per_s"),
        ("2001:db8:1::/64", "2001:db8:1::/129", 7, "addresses.office.1"),
        ("    limit: slow", "    limt: slow", 16, "rules.0.limt: unknown key; did you mean 'limit'?"),
        (
            "    from: inside",
            "    from: inside\n    destination: '2001:db8::/32'\n    family: ipv4",
            10,
            "it matches nothing",
        ),
        ("    from: inside", "   from: inside", 12, "not YAML"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    assert GOOD.count(old) == 1
    file = written(tmp_path, GOOD.replace(old, new))
    with pytest.raises(ScenarioError) as caught:
        read(file)
    assert str(caught.value).startswith(f"{file}:{line}: "), caught.value
    assert words in str(caught.value)


def rule_set(*rules: dict[str, Any]) -> RuleSet:
    named = [{"name": f"r{index}", **rule} for index, rule in enumerate(rules)]
    return RuleSet.model_validate({"zones": {"a": {}, "b": {}}, "limits": {"l": {"packets_per_s": 1}}, "rules": named})


def found(*rules: dict[str, Any]) -> list[Finding]:
    return analyse(rule_set(*rules))


def test_a_rule_below_several_others_is_shadowed() -> None:
    low = {"action": "allow", "protocol": "tcp", "destination_ports": "0-1000"}
    high = {"action": "deny", "protocol": "tcp", "destination_ports": "1001-65535"}
    assert found(low, high, {"action": "deny", "protocol": "tcp"}) == [
        Finding("redundant", 1, (2,)),
        Finding("shadowed", 2, (0, 1)),
    ]


def test_all_addresses_of_a_version_are_all_packets_of_it() -> None:
    v4 = {"action": "deny", "source": "0.0.0.0/0"}
    v6 = {"action": "deny", "destination": "::/0"}
    assert found(v4, v6, {"action": "allow"}) == [Finding("shadowed", 2, (0, 1))]
    assert found(v4, {"action": "allow"}) == []


def test_rules_of_one_given_priority_contradict() -> None:
    a = {"action": "allow", "priority": 5, "from": "a"}
    b = {"action": "deny", "priority": 5, "to": "b"}
    assert found(a, b) == [Finding("contradiction", 1, (0,))]
    assert found(a, {**b, "priority": 4}) == []
    assert found({**a, "priority": None}, {**b, "priority": None}) == []
    # A higher one decides about everything that both have.
    assert found(a, b, {"action": "deny", "priority": 9, "from": "a", "to": "b"}) == []


def test_a_limit_makes_another_decision() -> None:
    assert found({"action": "allow", "limit": "l"}, {"action": "allow"}) == [Finding("shadowed", 1, (0,))]


def random_rules(rng: random.Random) -> list[dict[str, Any]]:
    def some(*values: Any) -> Any:
        return rng.choice((None, *values))

    rules = []
    for _ in range(rng.randrange(2, 8)):
        protocol = some("tcp", "udp", 47, "icmp", "icmpv6")
        rule = {
            "action": rng.choice(("allow", "deny")),
            "priority": some(1, 2),
            "from": some("a", "b", ["a", "b"]),
            "source": some("10.0.0.0/8", "10.0.0.0/9", "10.128.0.0/9", "2001:db8::/32", ["10.0.0.0/9", "::/0"]),
            "family": None,
            "protocol": protocol,
            "destination_ports": some(80, "0-80", "81-65535", [80, "90-100"]) if protocol in ("tcp", "udp") else None,
        }
        if protocol == "icmpv6":
            rule["source"] = some("2001:db8::/32")
        if protocol == "icmp":
            rule["source"] = some("10.0.0.0/9", "10.0.0.0/8")
        rules.append({key: value for key, value in rule.items() if value is not None})
    return rules


PACKETS = list(
    itertools.product(
        ("a", "b"),
        [ipaddress.ip_address(a) for a in ("10.0.0.1", "10.200.0.1", "11.0.0.1", "2001:db8::1", "fd00::1")],
        (6, 17, 47, 1, 58, 99),
        (0, 80, 81, 90, 101),
    )
)
"""One of each kind that such rules can tell apart."""


def decisions(rules: RuleSet, without: int | None = None) -> list[tuple[int | None, Any]]:
    """Return for each packet (index of the rule that decides, its decision), or (None, None) if no rule does."""
    order = [index for index in rules.ordered() if index != without]
    matches = [(index, match) for index in order for match in rules.matches(rules.rules[index])]
    result: list[tuple[int | None, Any]] = []
    for zone, source, protocol, port in PACKETS:
        for index, match in matches:
            if (
                match.from_zone in (None, zone)
                and match.version in (None, source.version)
                and (match.source is None or (match.source.version == source.version and source in match.source))
                and match.protocol in (None, protocol)
                and match.destination_ports[0] <= port <= match.destination_ports[1]
            ):
                rule = rules.rules[index]
                result.append((index, (rule.action, rule.limit)))
                break
        else:
            result.append((None, None))
    return result


def test_findings_are_exact() -> None:
    """Of random rule sets: a rule is found if and only if no packet of any kind needs it."""
    rng = random.Random(8)
    kinds = {"shadowed": 0, "redundant": 0, "none": 0}
    for _ in range(40):
        rules = rule_set(*random_rules(rng))
        told = {finding.rule: finding.kind for finding in analyse(rules) if finding.kind != "contradiction"}
        whole = decisions(rules)
        for index in range(len(rules.rules)):
            reached = any(by == index for by, _ in whole)
            same = [how for _, how in decisions(rules, index)] == [how for _, how in whole]
            if not same:
                assert index not in told, (rules.rules, index)
                kinds["none"] += 1
            elif reached:
                assert told.get(index) == "redundant", (rules.rules, index)
            else:
                assert told.get(index) in ("shadowed", "redundant"), (rules.rules, index)
            if index in told:
                kinds[told[index]] += 1
    assert min(kinds.values()) > 8, kinds


def test_sentences_have_lines_and_names(tmp_path: Path) -> None:
    text = (
        GOOD + "  - {name: late, action: deny, from: inside, source: 10.0.1.7, protocol: tcp, destination_ports: 443}\n"
    )
    located = read(written(tmp_path, text))
    findings = report.findings(located)
    assert json.loads(json.dumps(findings))[0]["line"] == 17
    [sentence] = report.sentences(located, findings)
    assert sentence == f"{located.path}:17: rule 'late' is shadowed: it never decides, because of 'web'"
    clean = read(written(tmp_path, GOOD))
    assert "nothing to report" in next(report.sentences(clean, report.findings(clean)))
