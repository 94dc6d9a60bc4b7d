"""A start beside switches that run compares their interfaces with the configuration: a port that is not there forwards nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from holdfast._core import Switch
from holdfast.apps.bng import live
from holdfast.apps.bng.program import compile_bng
from holdfast.errors import LiveError
from holdfast.live.control import control_socket
from holdfast.live.switch import LiveSwitch
from holdfast.measurements import PortStatistics
from holdfast.operations import directory
from holdfast.p4runtime import GrpcClient, Server
from holdfast.p4runtime.device import Device

HAS = {1: "access0", 9: "core0", 20: "a0"}


class Ports:
    """The ports of a running switch, as far as its control socket asks."""

    def __init__(self, interfaces: dict[int, str]) -> None:
        self._interfaces = interfaces

    def port_readings(self) -> list[tuple[int, str, PortStatistics, bool]]:
        counts = PortStatistics(**dict.fromkeys(PortStatistics.__dataclass_fields__, 0))
        return [(port, name, counts, True) for port, name in self._interfaces.items()]

    def port_io(self, port: int) -> str:
        return "af_packet"


@contextmanager
def running(path: Path, device_id: int = 61, control: bool = True) -> Iterator[live.SwitchSettings]:
    """Run a switch with the interfaces of :data:`HAS`; yield its settings.

    ``control``: whether it has a control socket, at which it tells its interfaces.
    """
    with ExitStack() as stack:
        device = Device(device_id, Switch(compile_bng("single")))
        server = stack.enter_context(Server([device], f"unix:{path / f'{device_id}.sock'}"))
        if control:
            stack.enter_context(control_socket(cast("LiveSwitch", Ports(HAS)), device_id, server))
        yield live.SwitchSettings(grpc=server.address, device_id=device_id, interfaces=HAS)


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "DIRECTORY", tmp_path)


def connect(*wanted: live.SwitchSettings) -> list[str]:
    """Connect to running switches; return the lines that were reported."""
    said: list[str] = []
    with live.Switches(said.append, keep=False) as switches:
        switches.connect_all([(f"switch {each.device_id}", each, "bng.p4", {}) for each in wanted])
        assert not switches.end_here  # none was started
    return said


@pytest.mark.parametrize(
    ("interfaces", "sentence"),
    [
        (HAS | {26: "t3", 27: "c3"}, "port 26 is not there and should be t3, port 27 is not there and should be c3"),
        ({2: "access0", 9: "core0"}, "port 2 is not there and should be access0"),
        (HAS | {1: "access1"}, "port 1 is access0 and should be access1"),
        ({1: "core0", 9: "access0"}, "port 1 is access0 and should be core0, port 9 is core0 and should be access0"),
    ],
    ids=["another plane", "another port", "another interface", "two exchanged"],
)
def test_a_switch_with_other_interfaces_is_refused(
    interfaces: dict[int, str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that the sentence names the ports and the remedy, and that nothing was started or taken over before."""
    started: list[Any] = []
    monkeypatch.setattr("holdfast.apps.bng.live.subprocess.Popen", lambda *words, **_: started.append(words))
    with running(tmp_path) as settings, running(tmp_path, 62) as other:
        absent = other.model_copy(update={"device_id": 63, "grpc": f"unix:{tmp_path / 'none.sock'}"})
        with (
            GrpcClient(settings.grpc, 61, election_id=1) as first,
            GrpcClient(other.grpc, 62, election_id=1) as second,
        ):
            with pytest.raises(LiveError, match=r"switch 61 that runs at .* has other interfaces") as refused:
                connect(absent, other, settings.model_copy(update={"interfaces": interfaces}))
            assert f"{sentence} (" in str(refused.value)
            for port in interfaces.items() - HAS.items():
                assert f"holdfast port add {port[0]}@{port[1]} --device-id 61" in str(refused.value)
            assert "\n" not in str(refused.value)
            assert first.is_primary and second.is_primary
    assert started == []


@pytest.mark.parametrize("interfaces", [HAS, {1: "access0", 9: "core0"}])
def test_a_switch_with_these_interfaces_or_more_is_used(interfaces: dict[int, str], tmp_path: Path) -> None:
    with running(tmp_path) as settings:
        [said] = connect(settings.model_copy(update={"interfaces": interfaces}))
    assert said.endswith("it is running, and keeps its sessions")


def test_what_nobody_can_compare_is_said(tmp_path: Path) -> None:
    """Check the warning if the switch does not say its ports, and if another one has its device id."""
    with running(tmp_path, control=False) as settings:
        _, warning = connect(settings)
        assert warning.startswith(
            f"warning: nobody has compared the interfaces of {settings.grpc} with the configuration"
        )
    with running(tmp_path, control=False) as settings, ExitStack() as stack:
        elsewhere = Server([Device(61, Switch(compile_bng("single")))], f"unix:{tmp_path / 'elsewhere.sock'}")
        stack.enter_context(elsewhere)
        stack.enter_context(control_socket(cast("LiveSwitch", Ports({})), 61, elsewhere))
        _, warning = connect(settings)
        assert warning.endswith(f"the switch with device id 61 of this machine is at {elsewhere.address}")
