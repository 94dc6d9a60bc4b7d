"""Numbers and lists of names as texts, the same in terminals, reports and sentences; and a terminal's table of numbers."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.terminal import Grid


def number(value: float | None, *, sign: bool = False) -> str:
    """Format a number with three significant digits, or as a whole number from 100 on; a hyphen for None.

    ``sign``: write a plus before positive numbers.
    """
    if value is None:
        return "-"
    if abs(value) < 0.0005:
        return "0"
    plus = "+" if sign and value > 0 else ""
    return plus + (f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}")


def difference(value: float | None) -> str:
    """Format a difference with its sign, with two decimals below 1; a hyphen for None."""
    if value is None:
        return "-"
    return (
        "0"
        if abs(value) < 0.005
        else f"{value:+.0f}"
        if abs(value) >= 100
        else f"{value:+.3g}"
        if abs(value) >= 1
        else f"{value:+.2f}"
    )


def ratio(value: float | None) -> str:
    """Format a ratio with two decimals; a hyphen for None."""
    return "-" if value is None else f"{value:.2f}"


def percent(share: float) -> str:
    """Format a share as a percentage: 0.05 gives ``5 %``."""
    return f"{100 * share:.0f} %"


def packets(count: float) -> str:
    """Return a number of packets with its noun: ``1 packet``, ``1.5 packets``, ``20 packets``."""
    shown = f"{count:.0f}" if abs(count) >= 10 else f"{count:.2g}"
    return f"{shown} packet{'' if shown == '1' else 's'}"


def count(value: float) -> str:
    """Format a number of packets: as a whole number from 10 on, with two significant digits below."""
    return f"{value:,.0f}" if abs(value) >= 10 or value == 0 else f"{value:.2g}"


def listed(names: Sequence[str]) -> str:
    """Join names as ``a, b and c``; return an empty text if ``names`` is empty."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def terminal_table(headings: Sequence[str], legend: Sequence[str] = ()) -> Grid:
    """Return an empty table for a terminal: a column of mechanisms, columns of numbers, and what their headings mean below."""
    result = Grid(legend=legend)
    result.add_names("")
    result.add_numbers(*headings)
    return result
