"""The interfaces of a gateway must have room for its packets, and the start says which one has not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.apps.bng import interfaces, live
from holdfast.errors import LiveError

HERE = Path(__file__).parent


def configuration(file: str, max_payload: int = 1492, **more: Any) -> live.LiveConfiguration:
    values = live.read(HERE / file).model_dump(mode="json", exclude_unset=True) | more
    values["gateway"]["max_payload"] = max_payload
    return live.LiveConfiguration.model_validate(values)


def largest(file: str, max_payload: int = 1492, **more: Any) -> dict[str, int]:
    """Return the largest MTU, in bytes, that each interface needs."""
    found: dict[str, int] = {}
    for each in interfaces.needs(configuration(file, max_payload, **more)):
        found[each.interface] = max(each.mtu, found.get(each.interface, 0))
    return found


def test_a_gateway_of_one_switch() -> None:
    assert largest("example.yaml") == {"access0": 1500, "core0": 1500}
    assert largest("example.yaml", 1500) == {"access0": 1508, "core0": 1500}  # RFC 4638
    assert largest("example.yaml", s_tpid=0x88A8)["access0"] == 1504


def test_a_split_gateway_has_tags_on_its_cables() -> None:
    found = largest("split.yaml", 1500)
    cables = {f"{name}{end}" for name in ("auth", "trunk1", "trunk2") for end in "pb"}
    assert {name: mtu for name, mtu in found.items() if name in cables} == dict.fromkeys(cables, 1516)
    assert found["access0"] == 1508
    assert {found[name] for name in ("core0", "core1p", "core1b", "core2p", "core2b")} == {1500}
    assert set(found) == set(configuration("split.yaml").split.balancer.interfaces.values()) | {
        f"{name}p" for name in ("auth", "trunk1", "trunk2", "core1", "core2")
    }


@pytest.mark.parametrize("file", ["example.yaml", "split.yaml"])
@pytest.mark.parametrize("max_payload", [1492, 1500, 9000])
def test_each_interface_that_is_too_small_is_named_with_what_it_needs(file: str, max_payload: int) -> None:
    wanted, given = largest(file, max_payload), configuration(file, max_payload)
    interfaces.check(given, wanted.get)
    for name, mtu in wanted.items():
        with pytest.raises(
            LiveError, match=rf"^{name}: its MTU is {mtu - 1}, and {mtu} is needed for .*link set {name} mtu {mtu}"
        ):
            interfaces.check(given, (wanted | {name: mtu - 1}).get)


def test_the_mtu_of_a_route_counts_and_that_of_another_machine_does_not() -> None:
    routes = [{"prefix": "0.0.0.0/0", "port": 9, "next_hop_mac": "06:00:00:00:00:09", "mtu": 9000}]
    assert largest("example.yaml", routes=routes)["core0"] == 9000
    switch = {"grpc": "192.0.2.7:9559", "interfaces": {1: "access0", 9: "core0"}}
    assert largest("example.yaml", switch=switch) == {}


def test_interfaces_that_are_not_there_are_the_switchs_to_report() -> None:
    interfaces.check(configuration("split.yaml"), lambda name: None)
    assert interfaces.mtu_of("no-such-0") is None
    assert (interfaces.mtu_of("lo") or 0) >= 1500
