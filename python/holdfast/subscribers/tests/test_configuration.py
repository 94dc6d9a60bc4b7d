"""A gateway's YAML: an error is reported with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import ScenarioError
from holdfast.subscribers.configuration import read
from holdfast.subscribers.tests.worlds import configuration

GOOD = """\
name: ac-1
mac: "02:00:00:00:00:0a"
address: 100.64.0.1
pools:
  default: 100.64.0.0/16
ipv6:
  prefixes: 2001:db8:1::/48
  delegated: 2001:db8:8000::/34
users:
  alice: {password: secret}
limits:
  sessions_per_line: 4
"""


def test_a_configuration_is_read(tmp_path: Path) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text(GOOD)
    found = read(path)
    assert found.mac_bytes == bytes.fromhex("02000000000a")
    assert found.limits.sessions_per_line == 4
    assert found.users["alice"].password == "secret"


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('"02:00:00:00:00:0a"', '"01:00:00:00:00:0a"', 2, "one station"),
        ('"02:00:00:00:00:0a"', "gateway", 2, "mac"),
        ("100.64.0.1", "100.64.0.256", 3, "address"),
        ("100.64.0.0/16", "100.64.0.1/16", 5, "IPv4 network"),
        ("/48", "/65", 6, "/64"),
        ("/34", "/57", 6, "/56"),
        ("2001:db8:8000::/34", "2001:db8::/34", 6, "overlap"),
        ("password: secret", "pasword: secret", 10, "pas"),
        ("sessions_per_line: 4", "sessions_per_line: 0", 12, "greater than 0"),
        ("sessions_per_line: 4", "sessions_per_lane: 4", 12, "sessions_per_lane"),
        ("users:\n  alice: {password: secret}\n", "", 1, "users or radius"),
        ("address: 100.64.0.1\n", "", 1, "address"),
        ("  default: 100.64.0.0/16", "  a: 100.64.0.0/16\n  b: 100.64.128.0/24", 1, "overlap"),
        ("name: ac-1", "name: ac-1\nradius: {servers: []}", 2, "servers"),
        ("name: ac-1", "name: ac-1\nradius: {servers: [{host: 127.0.0.1, secret: short}]}", 2, "8 characters"),
    ],
)
def test_a_mistake_has_its_line(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    path = tmp_path / "gateway.yaml"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(ScenarioError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}:{line}:"), caught.value
    assert words in str(caught.value)


def test_radius_servers_know_who_asks() -> None:
    """Check that each Access-Request names its NAS (RFC 2865, section 4.1)."""
    servers = [{"host": "127.0.0.1", "secret": "12345678"}]
    known = [
        configuration(users={}, radius={"servers": servers, **each}).radius
        for each in ({}, {"nas_identifier": "n"}, {"nas_address": "192.0.2.1"})
    ]
    assert [each.nas_identifier for each in known if each is not None] == ["ac-1", "n", ""]
    with pytest.raises(ValueError, match="longer than a RADIUS attribute"):
        configuration(users={}, radius={"servers": servers, "nas_identifier": "ü" * 127})


@pytest.mark.parametrize("prefix", ["2001:db8:77::/56", "2001:db8:77::/65", "fe80::/64"])
def test_a_users_prefix_must_be_servable(prefix: str) -> None:
    with pytest.raises(ValueError, match="prefix"):
        configuration(users={"alice": {"password": "secret", "ipv6_prefix": prefix}})
