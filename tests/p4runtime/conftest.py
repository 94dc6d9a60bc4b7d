"""Both cores for the tests: the fake switch, and the real one if it is built."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
if importlib.util.find_spec("holdfast") is None:
    sys.path.insert(0, str(HERE.parents[1] / "python"))

import stand_in  # noqa: E402

REAL_CORE = stand_in.install()

from fake_switch import FakeProgram, FakeSwitch  # noqa: E402

from holdfast import _core  # noqa: E402
from holdfast.p4runtime import Device, LocalClient, P4InfoIndex  # noqa: E402
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4  # noqa: E402

P4INFO = (HERE / "basic.p4info.txtpb").read_text()


def fake_program(p4info: str = P4INFO) -> FakeProgram:
    """basic.p4 for the fake switch, with its constant entries."""
    index = P4InfoIndex.from_text(p4info)
    initial = []
    if any(t.alias == "classes" for t in index.tables):
        table, action = index.table("classes"), index.action("set_class")
        for tos, value in ((0xB8, 7), (0x28, 1)):
            entry = _core.TableEntry(table.id, {1: ("exact", bytes([tos]))}, action.id, {1: bytes([value])})
            entry.is_const = True
            initial.append(entry)
    return FakeProgram(p4info, "basic", tuple(initial))


@dataclass
class Bench:
    """A device without a pipeline, and what belongs to it."""

    kind: str
    program: Any
    switch: Any
    device: Device
    load_program: Callable[[bytes], Any]
    packets_out: list[bytes] = field(default_factory=list)

    @property
    def index(self) -> P4InfoIndex:
        """The program's P4Info."""
        return P4InfoIndex.from_text(self.program.p4info)

    def primary(self) -> LocalClient:
        """A primary client whose pipeline is in place."""
        client = LocalClient(self.device)
        client.set_pipeline(self.program)
        while client.poll() is not None:
            pass
        return client

    def variant(self, source: tuple[str, str], p4info: tuple[str, str]) -> Bench:
        """A bench with a program that differs from basic.p4 in one replacement, in its source and in its P4Info."""
        if self.kind == "fake":
            assert p4info[0] in P4INFO
            program: Any = fake_program(P4INFO.replace(*p4info))
        else:
            text = (HERE / "basic.p4").read_text()
            assert source[0] in text
            program = _core.Program.compile_text(text.replace(*source), "basic.p4")
        return Bench(self.kind, program, self.switch, self.device, self.load_program)

    def config(self) -> Any:
        """The program as a ``ForwardingPipelineConfig``."""
        config = p4.ForwardingPipelineConfig(p4_device_config=self.program.artifact())
        config.p4info.CopyFrom(self.index.message)
        return config


def make_bench(kind: str, device_id: int = 1) -> Bench:
    """A bench with the fake or the real core."""
    packets: list[bytes] = []
    if kind == "fake":
        program: Any = fake_program()
        switch: Any = FakeSwitch(program)
        load: Callable[[bytes], Any] = FakeProgram.from_artifact
        device = Device(device_id, switch, packet_out=packets.append, load_program=load, make_switch=FakeSwitch)
    else:
        if not REAL_CORE:
            pytest.skip("the native core is not built (make test builds it)")
        program = _core.Program.compile(str(HERE / "basic.p4"))
        switch = _core.Switch(program, executor="interpreter")
        load = _core.Program.from_artifact
        device = Device(device_id, switch, executor="interpreter", packet_out=packets.append)
    return Bench(kind, program, switch, device, load, packets)


@pytest.fixture(params=["fake", "real"])
def bench(request: pytest.FixtureRequest) -> Bench:
    return make_bench(request.param)


@pytest.fixture
def client(bench: Bench) -> Iterator[LocalClient]:
    client = bench.primary()
    yield client
    client.close()
