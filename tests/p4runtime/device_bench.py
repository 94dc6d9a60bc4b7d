"""A device with basic.p4, for the tests in this directory and below.

This is a module of its own, since pytest gives every ``conftest.py`` the same module name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from holdfast import _core
from holdfast.p4runtime import Device, LocalClient, P4InfoIndex
from holdfast.p4runtime.p4info import parse_text
from holdfast.p4runtime.stubs import Proto
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4

HERE = Path(__file__).parent
P4INFO = (HERE / "basic.p4info.txtpb").read_text()


def accept(p4info: str | Proto) -> None:
    """Set the pipeline of a new device to basic.p4 with this P4Info. Raises the device's error if it refuses the P4Info."""
    bench = make_bench()
    client = LocalClient(bench.device)
    client.set_pipeline(p4info=p4info, artifact=bench.program.artifact(), action="verify")


@dataclass
class Bench:
    """A device without a pipeline, and what belongs to it."""

    program: _core.Program
    switch: _core.Switch
    device: Device
    packets_out: list[bytes] = field(default_factory=list)

    @property
    def index(self) -> P4InfoIndex:
        """The program's P4Info."""
        return P4InfoIndex.from_text(self.program.p4info)

    def primary(self) -> LocalClient:
        """Return a primary client that has set the pipeline."""
        client = LocalClient(self.device)
        client.set_pipeline(self.program)
        while client.poll() is not None:
            pass
        return client

    def variant(self, before: str, after: str) -> Bench:
        """Return a bench whose program is basic.p4 with ``before`` replaced by ``after``."""
        text = (HERE / "basic.p4").read_text()
        assert before in text
        program = _core.Program.compile_text(text.replace(before, after), "basic.p4")
        return Bench(program, self.switch, self.device)

    def config(self) -> Proto:
        """Return the program and its P4Info as a ``ForwardingPipelineConfig``."""
        config = p4.ForwardingPipelineConfig(p4_device_config=self.program.artifact())
        config.p4info.CopyFrom(parse_text(self.program.p4info))
        return config


def make_bench(device_id: int = 1) -> Bench:
    """Return a bench with a new device of this id."""
    packets: list[bytes] = []
    program = _core.Program.compile(str(HERE / "basic.p4"))
    switch = _core.Switch(program, executor="interpreter")
    device = Device(device_id, switch, executor="interpreter", packet_out=packets.append)
    return Bench(program, switch, device, packets)
