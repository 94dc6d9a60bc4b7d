"""A cut under multicast between kernels: BIER-FRR on IP-FRR repairs it in the data plane, without its controller."""

from __future__ import annotations

from holdfast.experiments.bier_tofino_2021 import restoration_live


def test_fast_reroute_repairs_a_live_stream() -> None:
    """Check that the controller's own repair, which comes later, neither loses nor duplicates a packet."""
    tried = []
    for _ in range(5):
        found = restoration_live.measure({"bier_frr": True, "ip_frr": True}, 1)
        assert found["duplicated"] == 0
        tried.append((found["after_detection_ms"], found["lost"]))
        # Half a millisecond of detection, in packets every fifth of one; a busy machine holds packets up.
        if found["after_detection_ms"] < 1 and found["lost"] <= 10:
            return
    raise AssertionError(f"each of five runs took or lost too much: {tried}")
