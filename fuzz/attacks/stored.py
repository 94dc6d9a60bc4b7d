"""Counts what an object stores: the entries of all containers that can be reached from it."""

from __future__ import annotations

from collections import deque
from typing import Any

_PLAIN = (str, bytes, int, float, bool, type(None), type)


def stored(root: Any, rooms: tuple[str, ...]) -> int:
    """Return the number of entries in all containers that are reachable from ``root``.

    The search follows the attributes of objects that classes of the modules ``rooms`` made.
    """
    seen: set[int] = set()
    waiting, count = [root], 0
    while waiting:
        each = waiting.pop()
        if isinstance(each, _PLAIN) or id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, dict):
            count += len(each)
            waiting += [*each.keys(), *each.values()]
        elif isinstance(each, list | tuple | set | frozenset | deque):
            count += len(each)
            waiting += list(each)
        elif type(each).__module__.startswith(rooms):
            waiting += list(getattr(each, "__dict__", {}).values())
            names = (name for kind in type(each).__mro__ for name in getattr(kind, "__slots__", ()))
            waiting += [getattr(each, name) for name in names if hasattr(each, name)]
    return count
