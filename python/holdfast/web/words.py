"""Numbers as people read them on the page. Nothing here knows where they come from."""

from __future__ import annotations

NOTHING = "–"  # noqa: RUF001 - a dash, as tables have it
"""What stands where there is no number."""


def rate(bps: float | None) -> str:
    """Return a rate with its unit, three digits of it; a dash for None."""
    if bps is None:
        return NOTHING
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bps >= 0.9995 * size:
            return f"{bps / size:.3g} {unit}"
    return f"{bps:.0f} bit/s"


def delay(ms: float | None) -> str:
    """Return a delay in milliseconds; a dash for None."""
    return NOTHING if ms is None else f"{ms:.3g} ms"


def share(value: float | None) -> str:
    """Return a share as a percentage; a dash for None. What is above zero is never shown as zero."""
    if value is None:
        return NOTHING
    return "< 0.01 %" if 0 < value < 1e-4 else f"{100 * value:.3g} %"


__all__ = ["NOTHING", "delay", "rate", "share"]
