"""Numbers with their nouns, for sentences that people read."""

from __future__ import annotations


def counted(number: int, one: str, several: str | None = None) -> str:
    """Return a number with its noun: ``1 edge``, ``2 edges``. ``several``: the plural, if it is not ``one`` with an s."""
    return f"{number} {one if number == 1 else several or f'{one}s'}"
