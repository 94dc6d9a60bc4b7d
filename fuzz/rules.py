#!/usr/bin/env python3
"""fuzz/rules.py SECONDS: reads firewall rule files, right, wrong and damaged, and analyses those that can be read.

For any text:

* it is a rule set, or an error that names the file and a line that is in it;
* a rule of which the analysis says that it never decides decides about no packet, and packets of one that it calls redundant meet
  the same fate without it.

FUZZ_SEED repeats a run. A finding's text is kept in FUZZ_FINDINGS (default: target/fuzz/findings).
"""

from __future__ import annotations

import re
import sys
import tempfile
from ipaddress import ip_address
from pathlib import Path
from random import Random
from typing import Any

import yaml
from session import Session

from holdfast.apps.firewall.analysis import analyse
from holdfast.apps.firewall.rules import Match, RuleSet, read
from holdfast.errors import HoldfastError, NetworkError

ZONES = ("a", "b", "c")
PREFIXES = ("10.0.0.0/8", "10.0.1.0/24", "10.0.1.7", "0.0.0.0/0", "2001:db8::/32", "2001:db8::7", "::/0", "office")
ADDRESSES = ("10.0.1.7", "10.0.1.8", "10.9.9.9", "192.0.2.1", "2001:db8::7", "2001:db8::8", "2001:db9::1")
PORTS: tuple[Any, ...] = (0, 7, 80, "0-79", "80-443", "81-65535", 65535)
PROTOCOLS: tuple[Any, ...] = ("tcp", "udp", "icmp", "icmpv6", 47, 6)
WRONG: tuple[Any, ...] = (
    None,
    -1,
    1 << 70,
    1.5,
    "",
    "x" * 300,
    [],
    {},
    True,
    "80-",
    "10.0.0.1/8",
    [["80"]],
    "\u202e",
    65536,
)


def rule(random: Random, number: int) -> dict[str, Any]:
    """Return a random rule, most often a valid one."""
    found: dict[str, Any] = {"name": f"r{number}", "action": random.choice(["allow", "deny"])}
    for key, values in (("from", ZONES), ("to", ZONES), ("source", PREFIXES), ("destination", PREFIXES)):
        if random.random() < 0.4:
            count = random.choice([1, 1, 2])
            found[key] = random.choice(values) if count == 1 else random.sample(values, 2)
    if random.random() < 0.6:
        found["protocol"] = random.choice(PROTOCOLS)
        if found["protocol"] in ("tcp", "udp", 6) and random.random() < 0.7:
            for key in random.sample(["source_ports", "destination_ports"], random.choice([1, 1, 2])):
                found[key] = random.choice([random.choice(PORTS), random.sample(PORTS, 2)])
    if random.random() < 0.3:
        found["priority"] = random.randrange(3)
    if random.random() < 0.1:
        found["family"] = random.choice(["ipv4", "ipv6"])
    if random.random() < 0.1:
        found["limit"] = "slow"
    return found


def rule_set(random: Random) -> dict[str, Any]:
    """Return the data of a random rule file."""
    return {
        "zones": {zone: random.choice([None, {}, {"may": "reply"}]) for zone in ZONES},
        "ports": [{"port": n, "zone": random.choice(ZONES), "senders": "mac"} for n in range(random.randrange(4))],
        "addresses": {"office": ["10.0.1.0/24", "2001:db8::/64"]},
        "limits": {"slow": {"packets_per_s": 10}},
        "rules": [rule(random, number) for number in range(random.randrange(8))],
    }


def spoilt(data: Any, random: Random) -> Any:
    """Return the data with a random value of a wrong type, with a wrong name, or missing."""
    if not isinstance(data, dict | list) or not data or random.random() < 0.15:
        return random.choice(WRONG)
    data = dict(data) if isinstance(data, dict) else list(data)
    key = random.choice(list(data)) if isinstance(data, dict) else random.randrange(len(data))
    kind = random.randrange(5)
    if kind == 0:
        del data[key]
    elif kind == 1 and isinstance(data, dict):
        data[random.choice(["rule", "Zones", "", 5, None])] = data.pop(key)
    else:
        data[key] = spoilt(data[key], random)
    return data


def text(random: Random) -> bytes:
    """Return the text of a random rule file, which may be damaged."""
    data = rule_set(random)
    if random.random() < 0.4:
        data = spoilt(data, random)
    plain = yaml.safe_dump(data, allow_unicode=True, default_flow_style=random.choice([None, True, False])).encode()
    if random.random() < 0.3:
        changed = bytearray(plain)
        for _ in range(random.choice([1, 1, 2, 9])):
            place = random.randrange(len(changed) + 1)
            changed[place : place + random.choice([0, 1, 1, 20])] = random.choice(
                [b"", b"\0", b"\xff", b":", b"- ", b"&a ", b"*a", b"{", b"]", b"'", b"\n", b"\t", random.randbytes(3)]
            )
        plain = bytes(changed)
    return plain


def meets(match: Match, packet: tuple[Any, ...]) -> bool:
    """Return True if a rule's match applies to a packet."""
    from_zone, to_zone, source, destination, protocol, source_port, destination_port = packet
    return (
        match.from_zone in (None, from_zone)
        and match.to_zone in (None, to_zone)
        and match.version in (None, source.version)
        and (match.source is None or (source.version == match.source.version and source in match.source))
        and (
            match.destination is None
            or (source.version == match.destination.version and destination in match.destination)
        )
        and match.protocol in (None, protocol)
        and match.source_ports[0] <= source_port <= match.source_ports[1]
        and match.destination_ports[0] <= destination_port <= match.destination_ports[1]
    )


def packets(random: Random) -> list[tuple[Any, ...]]:
    """Return random packets near the bounds of the rules' ranges."""
    found = []
    for _ in range(60):
        version = random.choice([4, 6])
        ends = [ip_address(text) for text in ADDRESSES if ip_address(text).version == version]
        protocol = random.choice([6, 17, 1, 58, 47])
        ports = [random.choice([0, 7, 79, 80, 81, 443, 444, 65535]) if protocol in (6, 17) else 0 for _ in range(2)]
        found.append(
            (random.choice(ZONES), random.choice(ZONES), random.choice(ends), random.choice(ends), protocol, *ports)
        )
    return found


def check(rules: RuleSet, random: Random) -> int:
    """Check the analysis of a rule set against random packets; return the number of its findings."""
    try:
        findings = analyse(rules)
    except NetworkError:
        return 0  # it would take too long, and says so
    matches = {index: rules.matches(rules.rules[index]) for index in rules.ordered()}
    for packet in packets(random):
        deciding = [index for index, own in matches.items() if any(meets(match, packet) for match in own)]
        for finding in findings:
            if not deciding or deciding[0] != finding.rule:
                continue
            assert finding.kind != "shadowed", (finding, packet)
            if finding.kind == "redundant":
                fate = [_fate(rules, deciding[n]) if n < len(deciding) else "none" for n in (0, 1)]
                assert fate[0] == fate[1], (finding, packet)
    return len(findings)


def _fate(rules: RuleSet, index: int) -> tuple[str, str | None]:
    return rules.rules[index].action, rules.rules[index].limit


BREAK = re.compile(rb"\r\n|[\r\n]|\xc2\x85|\xe2\x80[\xa8\xa9]")
"""What ends a line for YAML 1.1 (section 4.2), in UTF-8: a carriage return alone, too."""


def main() -> int:
    """Run for the seconds on the command line; return 1 if a check failed, else 0."""
    session = Session("rules", "file")
    good, said = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rules.yaml"
        while session.goes_on():
            data = text(session.random)
            try:
                file.write_bytes(data)
                try:
                    rules = read(file).value
                except HoldfastError as error:
                    place = re.match(rf"{re.escape(str(file))}(?::(\d+))?: ", str(error))
                    assert place is not None, error
                    assert place[1] is None or 1 <= int(place[1]) <= len(BREAK.findall(data)) + 1, error
                    continue
                good += 1
                said += check(rules, session.random)
            except Exception:  # noqa: BLE001 - whatever it is, it is a finding
                return session.found(data)
    return session.nothing_found(f"{good} read, {said} things said about their rules")


if __name__ == "__main__":
    sys.exit(main())
