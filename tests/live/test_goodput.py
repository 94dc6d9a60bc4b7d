"""Figure 7's part with the kernel's TCP, at minimal size: iperf3 passes the switches in every mode."""

from __future__ import annotations

from holdfast.experiments.p4_protect_2020 import goodput_live, published


def test_iperf3_in_every_mode() -> None:
    [point] = goodput_live.points([1], 1)
    found = goodput_live.measure({**point, "flows": 2}, 1)
    assert set(found) == {f"{mode}_gbps" for mode in published.MODES}
    assert all(value > 0.001 for value in found.values())
