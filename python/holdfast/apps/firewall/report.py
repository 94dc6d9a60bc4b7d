"""The command line's reports on rule files and switches with the firewall: findings, rules, counters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from holdfast.apps.firewall.analysis import analyse
from holdfast.apps.firewall.rules import ALL_PORTS, PROTOCOLS, Range, Rule, RuleSet
from holdfast.yaml_model import Located


@dataclass(frozen=True)
class Counts:
    """The counters of a switch: packets by rule, and (packets, bytes) by reason of their drop."""

    hits: dict[str, int]
    drops: dict[str, tuple[int, int]]


def findings(rules: Located[RuleSet]) -> list[dict[str, Any]]:
    """Return what :func:`analyse` finds in a rule file, as dictionaries: the rule, its line, the kind, the cause, and a sentence.

    They are in the order of the file.
    """
    names = [rule.name for rule in rules.value.rules]
    return [
        {
            "line": rules.line(f"rules.{finding.rule}"),
            "rule": names[finding.rule],
            "kind": finding.kind,
            "because": [{"line": rules.line(f"rules.{index}"), "rule": names[index]} for index in finding.because],
            "sentence": finding.sentence(rules.value),
        }
        for finding in analyse(rules.value)
    ]


def sentences(rules: Located[RuleSet], found: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each of the findings ``found``, or one line that says that there are none."""
    for finding in found:
        yield f"{rules.path}:{finding['line']}: {finding['sentence']}"
    if not found:
        value = rules.value
        yield f"{rules.path}: {len(value.rules)} rules, {len(value.zones)} zones, {len(value.bindings)} bindings; nothing to report"


def counts(address: str, device_id: int) -> Counts:
    """Read the counters of a running switch without becoming its primary controller.

    Raise :class:`holdfast.errors.ControlError` if that fails.
    """
    from holdfast.apps.firewall.writer import drops, hits
    from holdfast.p4runtime.client import GrpcClient

    with GrpcClient(address, device_id, election_id=0) as client:
        return Counts(hits(client), drops(client))


def rules_table(rules: RuleSet, counted: Counts | None) -> Table:
    """Return a table of the rules in the order in which they are tried, with the packets of each if ``counted`` is given."""
    table = Table(title="rules, first the one that is asked first", title_justify="left")
    columns = ["rule", "action", "from", "to", "protocol", "source", "destination", "limit"]
    for column in [*columns, "packets"] if counted else columns:
        table.add_column(column, justify="right" if column == "packets" else "left", overflow="fold")
    for index in rules.ordered():
        rule = rules.rules[index]
        cells = [
            rule.name,
            rule.action,
            _words(rule.from_zones),
            _words(rule.to_zones),
            _protocol(rule),
            _end(rule.source, rule.source_ports),
            _end(rule.destination, rule.destination_ports),
            rule.limit or "",
        ]
        if counted is not None:
            cells.append(str(counted.hits.get(rule.name, 0)))
        table.add_row(*(Text(cell) for cell in cells))
    return table


def drops_table(counted: Counts) -> Table:
    """Return a table of dropped packets and bytes with a row per reason."""
    table = Table(title="dropped", title_justify="left")
    for column in ("reason", "packets", "bytes"):
        table.add_column(column, justify="left" if column == "reason" else "right", overflow="fold")
    for reason, (packets, octets) in counted.drops.items():
        table.add_row(reason, str(packets), str(octets))
    return table


def _words(words: list[str] | None) -> str:
    return "any" if words is None else ", ".join(words)


def _protocol(rule: Rule) -> str:
    names = {number: name for name, number in PROTOCOLS.items()}
    family = rule.family or ""
    if rule.protocol is None:
        return family or "any"
    return f"{names.get(rule.protocol, rule.protocol)} {family}".rstrip()


def _end(words: list[str] | None, ports: list[Range] | None) -> str:
    if ports is None:
        return _words(words)
    return f"{_words(words)} ports {', '.join(_range(each) for each in ports)}"


def _range(ports: Range) -> str:
    if ports == ALL_PORTS:
        return "any"
    return str(ports[0]) if ports[0] == ports[1] else f"{ports[0]}-{ports[1]}"
