"""Says what a user may have meant by a name that does not exist."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from holdfast.terminal import excerpt

MOST_KNOWN = 20
"""The most names that an error message lists as known."""

MOST_SIMILAR = 3

_PLAIN = re.compile(r"[\w.# -]{0,100}")
"""The texts that an error message quotes as a name: letters of any script, digits, and a few signs."""

LONGEST_COMPARED = 100
"""The longest name that is compared with the known names."""


def similar(name: str, known: Iterable[str]) -> list[str]:
    """Return the names among ``known`` that are written much like ``name``, the most similar first, three at most."""
    found = {each.lower(): each for each in known if each}
    close = difflib.get_close_matches(name[:LONGEST_COMPARED].lower(), found, MOST_SIMILAR)
    return [found[each] for each in close]


def alternatives(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about a name that does not exist: similar names, or the existing ones if none is similar.

    ``; did you mean 'rate_bps'?``, or `` (known: a, b)``, to follow what is said of the name.
    """
    names = list(dict.fromkeys(known))
    if close := similar(name, names):
        return f"; did you mean {' or '.join(repr(each) for each in close)}?"
    more = f" and {len(names) - MOST_KNOWN} more" if len(names) > MOST_KNOWN else ""
    return f" (known: {', '.join(names[:MOST_KNOWN])}{more})"


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Return the sentence about a name that does not exist: ``unknown key 'rat_bps'; did you mean 'rate_bps'?``."""
    # A file that is included by mistake, or by somebody else's intention, has lines that are nobody's business.
    shown = excerpt(repr(name), 80) if _PLAIN.fullmatch(name) else f"that is no plain word ({len(name)} characters)"
    return f"unknown {what} {shown}{alternatives(name, known)}"
