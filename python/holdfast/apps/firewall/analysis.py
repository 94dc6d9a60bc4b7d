"""Which rules of a rule set never decide, which change nothing, and which contradict each other: exact, by sets of packets.

A box has an interval of each thing that rules ask for: zones, version, addresses, protocol, ports. A rule is a few boxes. Each
question is a search for a packet in a box: the part that another box decides is cut out of it, and the parts that are left are
searched in turn, until one is found that no other rule meets, or none is left. Bounds are numbered in their order, so that
addresses are small numbers, and rules that a part has nothing in common with are left out by array operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from holdfast.apps.firewall.program import MAPPED
from holdfast.apps.firewall.rules import Match, Prefix, Rule, RuleSet
from holdfast.errors import NetworkError

Box: TypeAlias = tuple[tuple[int, int], ...]
"""A box: by dimension, the first number and the one after the last."""

Numbers: TypeAlias = npt.NDArray[np.int64]
"""The numbers of boxes, in the order in which their rules are tried."""

MOST_TELLING = (4, 3, 7, 6, 5, 0, 1, 2)
"""The dimensions, first the one by which rules differ most: destination, source, ports, protocol, zones, version."""

MOST_STEPS = 200_000
"""The most steps of the search for a packet about which a rule decides; rule sets that need more are refused."""


@dataclass(frozen=True)
class Finding:
    """A flaw of a rule (by index in the file), and the rules that are its cause.

    ``shadowed``: earlier rules decide about all of its packets, some of them otherwise. ``redundant``: without it every packet
    meets the same fate. ``contradiction``: another rule of the same priority decides otherwise about some packet.
    """

    kind: Literal["shadowed", "redundant", "contradiction"]
    rule: int
    because: tuple[int, ...]

    def sentence(self, rules: RuleSet) -> str:
        """Return the finding as a sentence that names the rules."""
        name, others = rules.rules[self.rule].name, ", ".join(repr(rules.rules[index].name) for index in self.because)
        if self.kind == "shadowed":
            return f"rule {name!r} is shadowed: it never decides, because of {others}"
        if self.kind == "redundant":
            return f"rule {name!r} is redundant: without it {others} decide the same"
        return f"rule {name!r} contradicts {others} at the same priority"


class _Dimensions:
    """The boxes of all rules, as arrays of bounds by axis."""

    def __init__(self, rules: RuleSet) -> None:
        zones = {name: number for number, name in enumerate(rules.zones)}
        plain = [
            (index, box)
            for index in rules.ordered()
            for match in rules.matches(rules.rules[index])
            for box in _boxes(match, zones)
        ]
        self.owner = [index for index, _ in plain]
        bounds = [sorted({bound for _, box in plain for bound in box[axis]}) for axis in range(8)]
        numbers = [{bound: number for number, bound in enumerate(each)} for each in bounds]
        self.boxes: list[Box] = [
            tuple((numbers[axis][low], numbers[axis][high]) for axis, (low, high) in enumerate(box)) for _, box in plain
        ]
        bounds_of_boxes = np.array(self.boxes, dtype=np.int32).reshape(-1, 8, 2)
        self._low = [np.ascontiguousarray(bounds_of_boxes[:, axis, 0]) for axis in range(8)]
        self._high = [np.ascontiguousarray(bounds_of_boxes[:, axis, 1]) for axis in range(8)]

    def meeting(self, box: Box, among: Numbers) -> Numbers:
        """Return those of the box numbers ``among`` whose boxes have a packet in common with ``box``.

        A box is the set of packets in one range of values on each axis, such as zone, address and port.
        """
        for axis in MOST_TELLING:
            low, high = box[axis]
            among = among[(self._low[axis][among] < high) & (self._high[axis][among] > low)]
        return among

    def covers(self, box: Box, among: Numbers) -> Numbers:
        """Return those of the box numbers ``among`` whose boxes contain all of ``box``."""
        for axis in MOST_TELLING:
            low, high = box[axis]
            among = among[(self._low[axis][among] <= low) & (self._high[axis][among] >= high)]
        return among


def _boxes(match: Match, zones: Mapping[str, int]) -> Iterator[Box]:
    """Yield a box for each IP version that ``match`` allows, so that "all addresses" means all addresses of that version.

    A box is the set of packets in one range of values on each axis, such as zone, address and port.
    """
    for version in (4, 6):
        if match.version in (None, version):
            yield (
                _one(zones.get(match.from_zone or ""), len(zones)),
                _one(zones.get(match.to_zone or ""), len(zones)),
                (version, version + 1),
                _addresses(match.source, version),
                _addresses(match.destination, version),
                _one(match.protocol, 256),
                (match.source_ports[0], match.source_ports[1] + 1),
                (match.destination_ports[0], match.destination_ports[1] + 1),
            )


def _one(value: int | None, after: int) -> tuple[int, int]:
    return (0, after) if value is None else (value, value + 1)


def _addresses(prefix: Prefix | None, version: int) -> tuple[int, int]:
    if prefix is None:
        return (MAPPED, MAPPED + 2**32) if version == 4 else (0, 2**128)
    base = int(prefix.network_address) + (MAPPED if version == 4 else 0)
    return base, base + prefix.num_addresses


def _common(a: Box, b: Box) -> Box | None:
    box = tuple((max(low, b[axis][0]), min(high, b[axis][1])) for axis, (low, high) in enumerate(a))
    return box if all(low < high for low, high in box) else None


def _without(a: Box, b: Box) -> Iterator[Box]:
    """Yield the parts of box ``a`` that are not in ``b``, as boxes without a common packet."""
    common = _common(a, b)
    if common is None:
        yield a
        return
    rest = list(a)
    for axis, (low, high) in enumerate(common):
        if rest[axis][0] < low:
            yield (*rest[:axis], (rest[axis][0], low), *rest[axis + 1 :])
        if high < rest[axis][1]:
            yield (*rest[:axis], (high, rest[axis][1]), *rest[axis + 1 :])
        rest[axis] = (low, high)


class _Search:
    """A search for packets in parts of boxes. ``used``: the rules, by index, whose boxes were cut out."""

    def __init__(self, rules: RuleSet, space: _Dimensions) -> None:
        self._rules, self._space = rules, space
        self.used: dict[int, None] = {}
        self._steps = 0

    def finds(self, box: Box, others: Numbers) -> bool:
        """Return True if some packet of ``box`` is in none of the boxes with the numbers ``others``."""

        def cut(part: Box, near: Numbers) -> tuple[int, Numbers]:
            around = self._space.covers(part, near)
            first = int(around[0] if len(around) else near[0])
            self.used[self._space.owner[first]] = None
            return first, near

        return self._any(box, others, cut)

    def finds_decision(self, rule: Rule, box: Box, earlier: Numbers, later: Numbers) -> bool:
        """Return True if some packet of ``box``, which no ``earlier`` box contains, gets another decision without ``rule``.

        That is, the first ``later`` box with the packet belongs to a rule that decides otherwise, or there is none.
        """
        before = int(later[0]) if len(later) else len(self._space.boxes)

        def cut(part: Box, near: Numbers) -> tuple[int, Numbers] | None:
            first = int(near[0])
            if first >= before:
                owner = self._space.owner[first]
                if _decides(self._rules.rules[owner]) != _decides(rule):
                    return None
                self.used[owner] = None
            return first, near[1:]

        return self._any(box, np.concatenate((earlier, later)), cut)

    def _any(self, box: Box, others: Numbers, cut: Callable[[Box, Numbers], tuple[int, Numbers] | None]) -> bool:
        """Return True if a part of ``box`` is left when the boxes ``others`` are cut out of it.

        ``cut``: returns the box to cut out of a part, and the boxes to look at afterwards; None if the part stays.
        """
        waiting = [(box, others)]
        while waiting:
            part, near = waiting.pop()
            self._step()
            near = self._space.meeting(part, near)
            chosen = cut(part, near) if len(near) else None
            if chosen is None:
                return True
            first, near = chosen
            waiting += [(each, near) for each in _without(part, self._space.boxes[first])]
        return False

    def _step(self) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise NetworkError(
                "the rules overlap in so many ways that it takes too long to decide what they do together"
            )


def analyse(rules: RuleSet) -> list[Finding]:
    """Return the shadowed, redundant and contradicting rules of a rule set, in the order of the file.

    Raise :class:`NetworkError` if the search takes more than :data:`MOST_STEPS` steps for a rule.
    """
    space = _Dimensions(rules)
    numbers: dict[int, list[int]] = {}
    for number, index in enumerate(space.owner):
        numbers.setdefault(index, []).append(number)
    found = [finding for index, own in numbers.items() for finding in _of_rule(rules, space, index, own)]
    return sorted(found, key=lambda finding: (finding.rule, finding.kind))


def _of_rule(rules: RuleSet, space: _Dimensions, index: int, own: list[int]) -> Iterator[Finding]:
    rule = rules.rules[index]
    earlier, later = np.arange(own[0]), np.arange(own[-1] + 1, len(space.boxes))
    if contradicting := _contradicting(rules, space, rule, own, earlier):
        yield Finding("contradiction", index, contradicting)
    search = _Search(rules, space)
    reached = [number for number in own if search.finds(space.boxes[number], earlier)]
    if not reached:
        same = all(_decides(rules.rules[owner]) == _decides(rule) for owner in search.used)
        yield Finding("redundant" if same else "shadowed", index, tuple(search.used))
        return
    search = _Search(rules, space)
    if not any(search.finds_decision(rule, space.boxes[number], earlier, later) for number in own):
        yield Finding("redundant", index, tuple(search.used))


def _contradicting(rules: RuleSet, space: _Dimensions, rule: Rule, own: list[int], earlier: Numbers) -> tuple[int, ...]:
    """Return the earlier rules, by index, with the same explicit priority that decide otherwise about a packet that both match.

    A packet about which a rule of higher priority decides does not count.
    """
    if rule.priority is None:
        return ()
    priorities = [rules.rules[space.owner[number]].priority for number in earlier]
    equal = np.array([number for number in earlier if priorities[number] == rule.priority], dtype=np.int64)
    higher = np.array([number for number in earlier if (priorities[number] or 0) > rule.priority], dtype=np.int64)
    found: dict[int, None] = {}
    for number in own:
        for other in space.meeting(space.boxes[number], equal):
            owner = space.owner[other]
            common = _common(space.boxes[number], space.boxes[other])
            differs = _decides(rules.rules[owner]) != _decides(rule) and owner not in found
            if differs and common and _Search(rules, space).finds(common, higher):
                found[owner] = None
    return tuple(found)


def _decides(rule: Rule) -> tuple[str, str | None]:
    return rule.action, rule.limit
