"""Rates of links from the Internet Topology Zoo's words: ``LinkSpeedRaw``, ``LinkSpeed`` with ``LinkSpeedUnits``, ``LinkLabel``.

A label is free text. It tells a rate only if it tells one: ``155 Mbps``, ``OC192/STM64``, ``2x10Gb/s``, ``Ring 2.5 Gbit/s``, not
a range (``1-20Gbps``), a bound (``< 10 Gbps``), or two links of different rates (``155Mbs/1Gbps``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

from holdfast.errors import TopologyError

NUMBER: Final = r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+"

_XML_NUMBER: Final = re.compile(rf"[+-]?(?:{NUMBER})(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN", re.IGNORECASE)

PREFIXES: Final = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}

_UNIT: Final = re.compile(r"([kmgt]?)(?:b|bit|bits|bps|bp/s|b/s|bs|bit/s|bits/s)?", re.IGNORECASE)

_RATE: Final = re.compile(
    rf"""
    (?<![\w.]) (?: (?P<count>[0-9]+) \s* [x*\N{{MULTIPLICATION SIGN}}] \s* )?
    (?:
        (?P<number>{NUMBER}) \s* (?P<prefix>[kMGTKmgt]?) (?: b(?:it|its)?(?:ps|/s|s)? | bp/s )
      | (?P<ethernet>10|40|100|400)? \s* (?P<gigabit>GigE|GbE|GE)
      | (?P<fast>FE|Fast\ Ethernet)
      | OC-? (?P<oc>[0-9]+) c?
      | STM-? (?P<stm>[0-9]+) (?: x (?P<times>[0-9]+) )?
      | (?P<carrier>T1|DS-?1|T3|DS-?3|E1|E3)
    )
    (?! \w | -\d )
    """,
    re.VERBOSE,
)

CARRIERS: Final = {"T1": 1.544e6, "DS1": 1.544e6, "T3": 44.736e6, "DS3": 44.736e6, "E1": 2.048e6, "E3": 34.368e6}
"""The rates of carriers in bits per second (ITU-T G.702, ANSI T1.107)."""

OC1_BPS, STM1_BPS = 51.84e6, 155.52e6
"""The rates of an OC-1 and an STM-1 (ITU-T G.707); an STM-n has the rate of an OC-3n."""

_NOT_ONE: Final = re.compile(
    r"[<>\u2264\u2265~]|\d\s*[kMGT]?\s*(?:[-\u2013]|to)\s*\d|below|up to|N\s*[*x]", re.IGNORECASE
)
"""Signs that a text states a range, a bound or a multiple instead of one rate."""

LONGEST_LABEL: Final = 200
"""The longest text, in characters, that is searched for a rate."""

AGREE: Final = 0.02
"""The relative difference up to which two rates count as equal: a ``45 Mbps DS-3`` has 44.736 Mb/s."""


def number(text: str) -> float | None:
    """Return the number in a text by XML's rules, including ``INF`` and ``NaN``; None if the text is not a number."""
    text = text.strip(" \t\r\n")
    return float(text) if _XML_NUMBER.fullmatch(text) else None


def raw_bps(data: Mapping[str, str]) -> float | None:
    """Return ``LinkSpeedRaw`` in bit/s, or None if the edge has no such value."""
    text = data.get("LinkSpeedRaw", "").strip()
    return _checked("LinkSpeedRaw", text, number(text)) if text else None


def speed_bps(data: Mapping[str, str]) -> float | None:
    """Return ``LinkSpeed`` times ``LinkSpeedUnits`` in bit/s; None if there is no speed or the unit is unknown."""
    text, units = data.get("LinkSpeed", "").strip(), data.get("LinkSpeedUnits", "").strip()
    speed = number(text)
    if speed is None:
        return label_bps(f"{text} {units}") if text else None
    unit = _UNIT.fullmatch(units)
    bps = speed * PREFIXES[unit[1].lower()] if unit else speed
    checked = _checked("LinkSpeed", f"{text} {units}".strip(), bps if speed else speed)
    return checked if unit and units else None


def plain_bps(data: Mapping[str, str]) -> float | None:
    """Return the rate in bit/s of ``rate_bps``, or of a text in ``bandwidth``, ``capacity`` or ``bw``; None without one."""
    text = data.get("rate_bps", "").strip()
    if text:
        return _checked("rate_bps", text, number(text))
    told = (label_bps(data[key]) for key in ("bandwidth", "capacity", "bw") if key in data)
    return next((bps for bps in told if bps is not None), None)


def label_bps(label: str) -> float | None:
    """Return the rate in bit/s that a label names. None if it names no rate, several rates, a range or a bound."""
    if len(label) > LONGEST_LABEL or _NOT_ONE.search(label):
        return None
    rates = [_rate_of(match) for match in _RATE.finditer(label)]
    if not rates or max(rates) > min(rates) * (1 + AGREE) or not 1 <= rates[0] < math.inf:
        return None
    return rates[0]


def _rate_of(match: re.Match[str]) -> float:
    """Return the rate in bit/s of one match in a label."""
    each = 0.0
    if match["number"]:
        each = float(match["number"]) * PREFIXES[match["prefix"].lower()]
    elif match["gigabit"]:
        each = float(match["ethernet"] or 1) * 1e9
    elif match["fast"]:
        each = 1e8
    elif match["oc"]:
        each = int(match["oc"]) * OC1_BPS
    elif match["stm"]:
        each = int(match["stm"]) * STM1_BPS * int(match["times"] or 1)
    else:
        each = CARRIERS[match["carrier"].replace("-", "")]
    return each * int(match["count"] or 1)


def _checked(name: str, text: str, bps: float | None) -> float:
    if bps is None or not 1 <= bps < math.inf:
        raise TopologyError(f"{name} {text!r} is not a rate in bits per second")
    return bps
