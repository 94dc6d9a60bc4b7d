"""The acceptance window, proved on small number spaces and tested as properties on the real one.

The definition is the paper's (section 3.5, equations 1 to 3) with SN_max the largest sequence number, so that the space
has N = SN_max + 1 numbers, and W = N / 2.
"""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast._core import Program, Switch
from holdfast.apps.protect import compile_protect
from holdfast.apps.protect.tests.differential import ipv4_header
from holdfast.control.desired import Writer
from holdfast.control.domain import domain_registers
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device

CID = 5
PTE = "10.254.0.2"


def accepts(last: int, sn: int, bits: int) -> bool:
    """Return True if ``sn`` is in the window after ``last``, by the paper's definition, for numbers of ``bits`` bits."""
    sn_max = 2**bits - 1
    window = 2 ** (bits - 1)
    if last + window < sn_max:
        return last < sn <= last + window
    return last < sn or sn < last + window - sn_max


def protected_packet(sn: int) -> bytes:
    inner = ipv4_header(28, 17, bytes((10, 0, 1, 1)), bytes((10, 0, 2, 1))) + struct.pack("!HHHH", 1, 2, 8, 0)
    outer = ipv4_header(20 + 8 + len(inner), 253, bytes((10, 255, 0, 1)), bytes((10, 254, 0, 2)))
    protection = CID.to_bytes(3, "big") + sn.to_bytes(4, "big") + b"\x04"
    return bytes(12) + b"\x08\x00" + outer + protection + inner


_LAST = "ProtectIngress.decaps_p.acceptance.last_accepted_sn"


class Receiver:
    """A PTE with one connection, and its register."""

    def __init__(self, program: Program, executor: str) -> None:
        self.switch = Switch(program, executor=executor)  # type: ignore[arg-type]
        client = LocalClient(Device(1, self.switch, executor=executor))
        client.set_pipeline(program)
        Writer(client).write(domain_registers(frozenset({1})))
        ingress = "ProtectIngress."
        client.insert(ingress + "decaps_ip.tunnel_endpoints", {"hdr.tunnel.dst_addr": PTE}, "NoAction", {})
        client.insert(
            ingress + "decaps_p.egress_connections",
            {"hdr.protection.cid": CID},
            ingress + "decaps_p.select_connection",
            {"index": CID},
        )
        client.insert(
            ingress + "protect_and_forward.ipv4_lpm",
            {"dst_addr": "10.0.2.0/24"},
            ingress + "protect_and_forward.forward",
            {"port": 2, "src_mac": 1, "dst_mac": 2},
        )
        self._client = client

    def set_last(self, last: int) -> None:
        self._client.write_register(_LAST, CID, last)

    def last(self) -> int:
        return self._client.register(_LAST, CID)

    def receive(self, sn: int) -> bool:
        out = self.switch.process(1, protected_packet(sn))
        assert len(out) <= 1
        if out:
            assert out[0][0] == 2
            assert len(out[0][1]) == len(protected_packet(sn)) - 28
        return bool(out)


@pytest.mark.parametrize("executor", ["jit", "interpreter"])
@pytest.mark.parametrize("bits", [2, 3, 5, 7])
def test_every_pair_of_a_small_space(bits: int, executor: str) -> None:
    """Every last sequence number against every arriving one."""
    if executor == "interpreter" and bits == 7:
        bits = 6
    receiver = Receiver(compile_protect({"SN_BITS": str(bits)}), executor)
    for last in range(2**bits):
        for sn in range(2**bits):
            receiver.set_last(last)
            expected = accepts(last, sn, bits)
            assert receiver.receive(sn) == expected, (last, sn)
            assert receiver.last() == (sn if expected else last)


def test_the_definition_is_the_modular_distance() -> None:
    """The program's computation (one subtraction, one comparison) is the paper's case distinction."""
    for bits in range(2, 9):
        space = 2**bits
        for last in range(space):
            for sn in range(space):
                assert accepts(last, sn, bits) == (1 <= (sn - last) % space <= space // 2)


@pytest.fixture(scope="module")
def full_width() -> Receiver:
    return Receiver(compile_protect(), "jit")


SPACE = 2**32
starts = st.one_of(st.integers(0, SPACE - 1), st.integers(SPACE - 40, SPACE - 1), st.integers(0, 40))


@settings(max_examples=150)
@given(last=starts, sn=st.one_of(starts, st.integers(-3, 3).map(lambda d: (2**31 + d) % SPACE)))
def test_single_decisions_at_full_width(full_width: Receiver, last: int, sn: int) -> None:
    full_width.set_last(last)
    assert full_width.receive(sn) == accepts(last, sn, 32)


@settings(max_examples=100)
@given(data=st.data(), start=starts, count=st.integers(1, 60))
def test_two_lossy_reordering_paths(full_width: Receiver, data: st.DataObject, start: int, count: int) -> None:
    """Loss, duplication, reordering within a path and wrap-around: in any case, every packet is delivered at most once and in
    order, and exactly the packets of the model are.
    """
    arrivals: list[tuple[float, int]] = []
    for i in range(1, count + 1):
        for path in range(2):
            copies = data.draw(st.sampled_from([0, 1, 1, 1, 1, 2]))
            for _ in range(copies):
                delay = data.draw(st.floats(0, 6)) + 2 * path
                arrivals.append((i + delay, i))
    arrivals.sort()
    full_width.set_last(start)
    last, delivered = start, []
    for _, i in arrivals:
        sn = (start + i) % SPACE
        expected = accepts(last, sn, 32)
        assert full_width.receive(sn) == expected
        if expected:
            last = sn
            delivered.append(i)
    assert delivered == sorted(set(delivered))


@settings(max_examples=50)
@given(start=starts, lost=st.sets(st.tuples(st.integers(1, 50), st.integers(0, 1))))
def test_in_order_paths_lose_nothing_that_one_of_them_delivers(
    full_width: Receiver, start: int, lost: set[tuple[int, int]]
) -> None:
    """With paths of equal delay that keep the order, a packet is lost only if both copies are."""
    full_width.set_last(start)
    delivered = []
    for i in range(1, 51):
        for path in range(2):
            if (i, path) not in lost and full_width.receive((start + i) % SPACE):
                delivered.append(i)
    assert delivered == [i for i in range(1, 51) if not {(i, 0), (i, 1)} <= lost]
