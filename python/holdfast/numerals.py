"""Numbers as users write them: in the digits 0 to 9.

Python's own functions also take ``1_000``, blanks, and digits of other scripts, and fail for thousands of digits.
"""

from __future__ import annotations

MOST_DIGITS = 4000
"""The most digits of a number that is converted: the limit that Python itself has."""


def is_numeral(text: str) -> bool:
    """Return True if a text consists of digits from 0 to 9, at least one, and few enough for :class:`int`."""
    return text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS
