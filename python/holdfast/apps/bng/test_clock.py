"""A gateway whose clock passes the numbers at which representations of times end, or is set back."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

import pytest

from holdfast import _core
from holdfast.apps.bng.edges import AccessPort, CorePort, Edges, Route
from holdfast.apps.bng.program import compile_bng
from holdfast.apps.bng.single import SinglePlane
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device

S = 10**12
MS = 10**9
CPU_PORT = 510
ENDS = {
    "64 bits of ps": 2**64,
    "48 bits of us": 2**48 * 10**6,
    "64 bits of ns": 2**64 * 1000,
    "64 bits of us": 2**64 * 10**6,
}


class Gateway:
    """The forwarding plane with its program, of which the tests count the PADIs that reach the control plane."""

    def __init__(self) -> None:
        program = compile_bng("single")
        self.switch = _core.Switch(program, executor="jit")
        client = LocalClient(Device(1, self.switch, executor="jit", packet_out=lambda _: None))
        client.set_pipeline(program)
        core = CorePort(port=9, mac="02:00:00:00:00:09", addresses=(IPv4Address("192.0.2.1"),))
        route = Route(prefix=IPv4Network("0.0.0.0/0"), port=9, next_hop_mac="06:00:00:00:00:09")
        access = AccessPort(port=1, mac="02:00:00:00:00:0a")
        self.plane = SinglePlane(client, Edges(access=(access,), core=(core,), routes=(route,)))
        self.plane.receive(lambda _line, _frame: None)

    def punted(self, number: int, at_ps: int, gap_ps: int) -> int:
        """Send ``number`` PADI frames, one per ``gap_ps``, and return how many the switch passes to its controller."""
        taken = 0
        for i in range(number):
            mac = bytes((2, 0, 0, 1, i >> 8, i & 255))
            frame = b"\xff" * 6 + mac + bytes.fromhex("8863110900000004") + bytes.fromhex("01010000") + bytes(36)
            taken += any(port == CPU_PORT for port, _ in self.switch.process(1, frame, at_ps + i * gap_ps))
        return taken


def history(begin_ps: int, *, later_ps: int | None = None) -> list[int]:
    """Return how many PADIs reach the controller: of a flood, of 100 frames after each of five pauses, and of a last flood.

    The first flood begins at ``begin_ps``, and the rest is relative to ``later_ps`` if it is given.
    """
    gateway = Gateway()
    found = [gateway.punted(6000, begin_ps, MS // 10)]
    begin_ps = begin_ps if later_ps is None else later_ps
    found += [gateway.punted(100, begin_ps + pause * S, MS) for pause in (2, 60, 3600, 86400, 200 * 86400)]
    return [*found, gateway.punted(6000, begin_ps + 300 * 86400 * S, MS // 10)]


@pytest.mark.parametrize("end_ps", ENDS.values(), ids=ENDS.keys())
def test_tokens_come_past_the_end_of_a_representation(end_ps: int) -> None:
    plain = history(86400 * S)
    assert plain[0] < 6000
    assert plain[1:6] == [100] * 5
    for lead in (S // 4, S, 86400 * S):
        assert history(end_ps - lead) == plain


@pytest.mark.parametrize("later_ps", [0, 10 * S, 2**63], ids=["zero", "ten seconds", "half"])
def test_tokens_come_after_the_clock_was_set_back(later_ps: int) -> None:
    # But for the two seconds after the flood: a step back makes no tokens.
    assert history(2**64 - S, later_ps=later_ps)[2:] == history(86400 * S)[2:]


def test_times_have_any_size_up_to_the_clocks_end() -> None:
    switch = Gateway().switch
    for at_ps in (0, 2**64 - 1, 2**64, 2**100, 2**128 - 1):
        switch.process(1, bytes(60), at_ps)
    for at_ps in (-1, 2**128, 10**50):
        with pytest.raises(_core.HoldfastError, match="picoseconds since the beginning"):
            switch.process(1, bytes(60), at_ps)
    with pytest.raises(TypeError):
        switch.process(1, bytes(60), 1.5)  # type: ignore[arg-type]
