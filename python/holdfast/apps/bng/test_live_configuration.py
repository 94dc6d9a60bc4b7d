"""The configuration of ``holdfast bng run``: one switch or several planes, and what is wrong with it, by its line."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from holdfast._core import Switch
from holdfast.apps.bng import live
from holdfast.apps.bng.program import compile_bng
from holdfast.errors import ScenarioError
from holdfast.operations import directory
from holdfast.p4runtime import GrpcClient, Server
from holdfast.p4runtime.device import Device

EXAMPLE = Path(__file__).parent / "example.yaml"
SPLIT = """\
split:
  balancer:
    grpc: 127.0.0.1:9560
    device_id: 2
    interfaces: {1: access0, 9: core0, 20: a0, 22: t0, 23: c0}
    uplinks: {"06:00:00:00:00:09": 9}
  authentication: {grpc: "127.0.0.1:9561", device_id: 3, interfaces: {1: a1}, trunk: 1, access_port: 20}
  planes:
    one: {grpc: "127.0.0.1:9562", device_id: 4, interfaces: {1: t1, 9: c1}, trunk: 1, access_port: 22, core_port: 23}
"""


def text() -> str:
    whole = EXAMPLE.read_text()
    assert "switch:\n  interfaces: {1: access0, 9: core0}\n" in whole
    return whole.replace("switch:\n  interfaces: {1: access0, 9: core0}\n", SPLIT)


def test_one_switch_or_several_planes(tmp_path: Path) -> None:
    assert live.read(EXAMPLE).split is None
    path = tmp_path / "split.yaml"
    path.write_text(text())
    found = live.read(path).split
    assert found is not None
    assert found.planes["one"].core_port == 23
    assert found.balancer.uplinks == {"06:00:00:00:00:09": 9}


def test_the_examples_differ_in_their_switches_only() -> None:
    one, several = live.read(EXAMPLE), live.read(EXAMPLE.with_name("split.yaml"))
    assert one.model_copy(update={"switch": None, "split": several.split}) == several
    assert several.split is not None and list(several.split.planes) == ["forward1", "forward2"]


def test_other_users_reach_no_switch_unless_an_address_says_so(tmp_path: Path) -> None:
    """The examples' switches have sockets, each one of its own; each switch with an address of this machine is warned of."""
    for example in (EXAMPLE, EXAMPLE.with_name("split.yaml")):
        found = live.read(example)
        split = found.split
        switches = [found.switch] if split is None else [split.balancer, split.authentication, *split.planes.values()]
        addresses = [one.grpc for one in switches if one is not None]
        assert len(set(addresses)) == len(switches)
        assert all(address.startswith(f"unix:{directory.DIRECTORY}/") for address in addresses)
        assert live.doubts(found) == []
    path = tmp_path / "split.yaml"
    path.write_text(text())
    assert [doubt.partition(":")[0] for doubt in live.doubts(live.read(path))] == [
        "every user of this machine can write to the switch at 127.0.0.1"
    ] * 3
    path.write_text(text().replace("127.0.0.1", "192.0.2.7"))
    assert live.doubts(live.read(path)) == []


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022])
def test_a_switchs_socket_is_its_users_alone(umask: int, tmp_path: Path) -> None:
    path = tmp_path / "p4runtime.sock"
    before = os.umask(umask)
    try:
        with Server([Device(1, Switch(compile_bng("single")))], f"unix:{path}") as server:
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
            with GrpcClient(server.address, 1, election_id=1) as client:
                assert client.is_primary
        assert os.umask(umask) == umask
    finally:
        os.umask(before)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "split:\n",
            "switch: {interfaces: {1: access0, 9: core0}}\nsplit:\n",
            "either a section switch or a section split",
        ),
        ("20: a0, ", "", "split.balancer.interfaces has no interface for port 20"),
        ("{1: t1, 9: c1}", "{1: t1}", "split.planes.one.interfaces has no interface for port 9"),
        ("22: t0, 23: c0", "22: t0", "split.balancer.interfaces has no interface for port 23"),
        ('"127.0.0.1:9562"', '"127.0.0.1:9561"', "split: grpc 127.0.0.1:9561 is there twice"),
        ("device_id: 4", "device_id: 2", "split: device_id 2 is there twice"),
        ("1: t1, 9: c1", "1: t1, 9: t1", "split: interface t1 is there twice"),
        ("core_port: 23", "core_port: 22", "split: port of the balancer 22 is there twice"),
        (
            "prefix: 0.0.0.0/0",
            "prefix: 0.0.0.1/0",
            r"split.yaml:15: routes.0.prefix: Input is not a valid IPv4 network",
        ),
        ("interfaces: {1: a1}", "interfaces: {2: a1}", "split.authentication.interfaces has no interface for port 1"),
    ],
)
def test_mistakes(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = tmp_path / "split.yaml"
    assert old in text()
    path.write_text(text().replace(old, new, 1))
    with pytest.raises(ScenarioError, match=words):
        live.read(path)
