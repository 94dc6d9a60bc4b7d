"""What a failure may cost at most, as an operator writes it, and which mechanisms keep to it: ``outage < 50ms, lost < 10``.

A requirement is judged by the worst of all failures and seeds. Without a name before it, as in ``ip-frr: outage < 50ms``, it is met
if one mechanism keeps to all its limits. It is not judged, and so not met, where the runs carry no conclusion. Which numbers there
are, a world says (:class:`Measure`); nothing here runs or draws.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from holdfast import suggestions, units
from holdfast.compare.formats import listed, number
from holdfast.compare.ranking import Ranking
from holdfast.errors import ParameterError, ScenarioError

COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
}

_LIMIT: Final = re.compile(r"\s*([a-z][a-z-]*)\s*(<=|<|==)\s*([^<=>]+?)\s*")


@dataclass(frozen=True)
class Measure:
    """A number that can be limited. ``unit``: ms, % or a plain number; ``what`` describes it.

    ``of`` returns it for a comparison, one of its cases and the summary of the case's mechanism: infinity for what never came, None
    where the case says nothing of it.
    """

    what: str
    of: Callable[[Any, Any, Any], float | None]
    unit: Literal["ms", "%", ""] = ""

    def read(self, text: str) -> float:
        """Return a value with its unit. Raises :class:`ParameterError` for another unit, or none where one is needed."""
        if self.unit == "ms":
            return float(units.TIME.read(text) * 1000)
        try:
            return float(text.removesuffix("%") if self.unit else text)
        except ValueError:
            raise ParameterError("", "", f"{text!r} is no number{' of percent' if self.unit else ''}") from None

    def shown(self, value: float | None) -> str:
        """Return a value with its unit in words."""
        if value is None:
            return "not measured"
        if math.isinf(value):
            return "never"
        return f"{number(value)} {self.unit}".rstrip()


@dataclass(frozen=True)
class Limit:
    """A measure's name, how it is compared, with what, and the text that says so."""

    measure: str
    sign: str
    value: float
    text: str


@dataclass(frozen=True)
class Requirement:
    """Limits that one mechanism must keep to: the one that is named, or any."""

    text: str
    mechanism: str | None
    limits: tuple[Limit, ...]


@dataclass(frozen=True)
class Finding:
    """The worst value of a limited measure under a mechanism, and the failure that caused it. ``None``: nothing was measured."""

    limit: Limit
    value: float | None
    failure: str
    is_kept: bool


@dataclass(frozen=True)
class Verdict:
    """Who keeps to a requirement. ``withheld``: why it is not judged, or None. ``findings``: a mechanism's limits, by its name."""

    requirement: Requirement
    withheld: str | None
    findings: Mapping[str, Sequence[Finding]]

    @property
    def met_by(self) -> list[str]:
        """The names of the mechanisms that keep to all limits, in the order of the ranking."""
        if self.withheld is not None:
            return []
        return [name for name, found in self.findings.items() if all(each.is_kept for each in found)]

    @property
    def is_met(self) -> bool:
        """True if it was judged, and the mechanism that it names, or any, keeps to it."""
        return bool(self.met_by)


def read(text: str, measures: Mapping[str, Measure]) -> Requirement:
    """Return a requirement as a user writes it. Raises :class:`ScenarioError` with one sentence if it is none."""
    name, colon, rest = text.rpartition(":")
    limits = []
    for part in rest.split(","):
        written = _LIMIT.fullmatch(part)
        if written is None:
            raise ScenarioError(f"--require {text!r}: {part.strip()!r} is no limit, such as outage < 50ms")
        measure = measures.get(written[1])
        if measure is None:
            raise ScenarioError(f"--require {text!r}: {suggestions.unknown('measure', written[1], measures)}")
        try:
            value = measure.read(written[3])
        except ParameterError as error:
            raise ScenarioError(f"--require {text!r}: {written[1]}: {error.sentence}") from None
        if not math.isfinite(value):
            raise ScenarioError(f"--require {text!r}: {written[3]} is no limit")
        limits.append(Limit(written[1], written[2], value, f"{written[1]} {written[2]} {written[3]}"))
    if colon and not name.strip():
        raise ScenarioError(f"--require {text!r}: there is no mechanism before the colon")
    return Requirement(text.strip(), name.strip() or None, tuple(limits))


def check(requirements: Sequence[Requirement], mechanisms: Sequence[str]) -> None:
    """Raise :class:`ScenarioError` if a requirement names a mechanism that is not compared."""
    for each in requirements:
        if each.mechanism is not None and each.mechanism not in mechanisms:
            others = suggestions.alternatives(each.mechanism, mechanisms)
            raise ScenarioError(f"--require {each.text!r}: {each.mechanism!r} is not compared{others}")


def judge(comparison: Ranking, requirement: Requirement, measures: Mapping[str, Measure]) -> Verdict:
    """Return who keeps to a requirement in the runs of a comparison."""
    summaries = {each.mechanism: each for each in comparison.summaries}
    if requirement.mechanism is not None:
        summaries = {requirement.mechanism: summaries[requirement.mechanism]}
    findings = {
        name: [_worst(comparison, limit, measures[limit.measure], name, summary) for limit in requirement.limits]
        for name, summary in summaries.items()
    }
    return Verdict(requirement, comparison.unranked, findings)


def _worst(comparison: Ranking, limit: Limit, measure: Measure, mechanism: str, summary: Any) -> Finding:
    values = [
        (value, case.failure)
        for case in comparison.cases_of(mechanism)
        if (value := measure.of(comparison, case, summary)) is not None
    ]
    if not values:
        return Finding(limit, None, "", is_kept=False)
    # What is to be equal is farthest from its limit at its worst.
    far = (lambda it: abs(it[0] - limit.value)) if limit.sign == "==" else (lambda it: it[0])
    value, failure = max(values, key=far)
    return Finding(limit, value, failure, is_kept=COMPARISONS[limit.sign](value, limit.value))


def sentences(verdict: Verdict, measures: Mapping[str, Measure]) -> list[str]:
    """Return lines that say whether a requirement is met, by whom, and by how much others miss it."""
    requirement = verdict.requirement
    if verdict.withheld is not None:
        return [f"Not judged: {requirement.text}. {verdict.withheld}."]
    met = verdict.met_by
    lines = [f"Met: {requirement.text}, by {listed(met)}." if met else f"Not met: {requirement.text}."]
    for name, found in verdict.findings.items():
        if missed := [each for each in found if not each.is_kept]:
            lines.append(f"  {name}: {'; '.join(_said(each, measures[each.limit.measure]) for each in missed)}")
    return lines


def _said(finding: Finding, measure: Measure) -> str:
    where = f" when {finding.failure} fails" if finding.failure else ""
    return f"{finding.limit.measure} {measure.shown(finding.value)}{where}"
