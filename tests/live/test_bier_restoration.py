"""A cut under multicast between kernels: BIER-FRR on IP-FRR repairs it in the data plane, without its controller."""

from __future__ import annotations

from holdfast.experiments.bier_tofino_2021 import restoration_live


def test_fast_reroute_repairs_a_live_stream() -> None:
    """The controller's own repair, which comes later, neither loses nor doubles anything."""
    losses = []
    for _ in range(5):
        found = restoration_live.measure({"bier_frr": True, "ip_frr": True}, 1)
        assert found["duplicated"] == 0
        losses.append(found["lost"])
        # Half a millisecond of detection, in packets every fifth of one; a busy machine holds packets up.
        if found["lost"] <= 10:
            return
    raise AssertionError(f"too much was lost in each of five runs: {losses}")
