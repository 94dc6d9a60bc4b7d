"""Rules are replaced over gRPC while the switch's own thread takes packets: none is judged by a mixture."""

from __future__ import annotations

from pathlib import Path

from holdfast.apps.firewall.tests import swap


def test_no_packet_is_judged_by_a_mixture(tmp_path: Path) -> None:
    # On a busy machine writing takes seconds, and packets must come in for longer.
    found = swap.live(tmp_path, rules=swap.DESTINATIONS, rate_per_s=50_000, seconds=8)
    assert found.wrong == []
    assert found.injected == 400_000
    assert found.before > 0 and found.after > 0
