"""The kinds of words in verbs: how a word of each is read, and what it may be in a network.

Numbers with units are :mod:`holdfast.units`'. No verb is known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from holdfast import suggestions, units
from holdfast.console.grammar import Kind
from holdfast.errors import ConsoleError, HoldfastError
from holdfast.numerals import is_numeral

if TYPE_CHECKING:
    from holdfast.console.session import Session

MOST_CANDIDATES = 500
"""A completion lists no more."""


@dataclass(frozen=True)
class _Name:
    """The name of something; ``known`` returns all there are."""

    what: str
    known: Callable[[Session], Iterable[str]]

    def read(self, subject: Any, word: str) -> str:
        known = list(self.known(subject))
        if word not in known:
            raise ConsoleError(
                f"there is no {self.what.partition(' ')[2]} {word!r}{suggestions.alternatives(word, known)}"
            )
        return word

    def candidates(self, subject: Any, word: str) -> Iterable[str]:
        return self.known(subject)


@dataclass(frozen=True)
class _InPrograms:
    """The name of something in the switches' programs: whole, or any unique ending of it."""

    what: str
    kind: Literal["tables", "counters"]

    def read(self, subject: Any, word: str) -> str:
        if not subject.is_in_programs(self.kind, word):
            known = self.candidates(subject, "")
            raise ConsoleError(f"there is no {self.what[2:]} {word!r}{suggestions.alternatives(word, known)}")
        return word

    def candidates(self, subject: Any, word: str) -> Iterable[str]:
        return list(subject.names_in_programs(self.kind))


@dataclass(frozen=True)
class _Link:
    """A link, in either direction."""

    what: str = "a link"

    def read(self, subject: Any, word: str) -> str:
        topology = subject.topology
        try:
            topology.find_link(word)
        except HoldfastError as error:
            similar = suggestions.similar(word, topology.link_names())
            raise ConsoleError(
                f"there is no link {word!r}{suggestions.alternatives(word, similar)}" if similar else str(error)
            ) from None
        return word

    def candidates(self, subject: Any, word: str) -> Iterable[str]:
        return list(subject.topology.link_names())[:MOST_CANDIDATES]


@dataclass(frozen=True)
class _Value:
    """A word that a function reads; ``examples`` are offered."""

    what: str
    function: Callable[[str], Any]
    examples: tuple[str, ...] = ()

    def read(self, subject: Any, word: str) -> Any:
        return self.function(word)

    def candidates(self, subject: Any, word: str) -> Iterable[str]:
        return self.examples


@dataclass(frozen=True)
class _File:
    """A path."""

    what: str = "a file"

    def read(self, subject: Any, word: str) -> Path:
        if not word:
            raise ConsoleError("a file's name is empty")
        return Path(word)

    def candidates(self, subject: Any, word: str) -> Iterable[str]:
        front, slash, _ = word.rpartition("/")
        folder = Path(front + slash) if slash else Path()
        try:
            found = sorted(folder.iterdir())[:MOST_CANDIDATES]
        except OSError:
            return []
        return [f"{front}{slash}{each.name}{'/' if each.is_dir() else ''}" for each in found]


def _count(word: str) -> int:
    if not is_numeral(word) or not 1 <= int(word) <= 1_000_000:
        raise ConsoleError(f"{word[:40]!r} is no number from 1 to 1000000")
    return int(word)


@dataclass(frozen=True)
class _Flow:
    """The number of a flow that was started."""

    what: str = "a flow's number"

    def read(self, subject: Any, word: str) -> int:
        number = int(word) if is_numeral(word) else 0
        known = [flow.number for flow in subject.flows.all()]
        if number not in known:
            raise ConsoleError(f"there is no flow {word[:20]!r}; the verb flows lists them")
        return number

    def candidates(self, subject: Any, word: str) -> Iterable[str]:
        return [str(flow.number) for flow in subject.flows.all() if flow.end_s is None][:MOST_CANDIDATES]


def _time_s(word: str) -> float:
    """Return a time in seconds; a number alone is in seconds, as those of ping and iperf are.

    Raises :class:`ConsoleError` if it is not above 0 and at most 1,000,000 s.
    """
    value = float(word) if units.is_plain(word) else units.time_s(word)
    if not 0 < value <= 1_000_000:
        raise ConsoleError(f"{word[:40]!r} is no time from 0 to 1000000 s")
    return value


def _share(word: str) -> float:
    return units.share(word)


@dataclass(frozen=True)
class _Line:
    """A verb with all that belongs to it."""

    what: str = "a verb"

    def read(self, subject: Any, word: str) -> str:
        return word

    def candidates(self, subject: Any, word: str) -> Iterable[str]:
        return [*subject.topology.hosts, *subject.verbs][:MOST_CANDIDATES]


def _mechanisms(_: Session) -> list[str]:
    from holdfast.compare.mechanisms import MECHANISMS

    return list(MECHANISMS)


KINDS: Mapping[str, Kind] = {
    "HOST": _Name("a host", lambda session: session.topology.hosts),
    "SWITCH": _Name("a switch", lambda session: session.topology.switches),
    "LINK": _Link(),
    "TABLE": _InPrograms("a table", "tables"),
    "COUNTER": _InPrograms("a counter", "counters"),
    "MECHANISM": _Name("a mechanism", _mechanisms),
    "VERB": _Name("a verb", lambda session: session.verbs),
    "FLOW": _Flow(),
    "COUNT": _Value("a number", _count),
    "TIME": _Value("a time, such as 2s", _time_s, ("1s", "100ms")),
    "DELAY": _Value("a delay, such as 10ms", units.time_ms, ("1ms", "10ms", "100ms")),
    "RATE": _Value("a rate, such as 10Mbps", units.rate_bps, ("1Mbps", "10Mbps", "1Gbps")),
    "SHARE": _Value("a share, such as 1%", _share, ("0%", "1%", "10%")),
    "FILE": _File(),
    "PROGRAM": _File("a P4 program"),
    "LINE": _Line(),
    "FRAME": _Value("a frame, in hexadecimal or as a Scapy expression", str),
    "COMMAND": _Value("a command", str),
    "TEXT": _Value("a command of simple_switch_CLI", str, ("help",)),
    "CHECK": _Value("a verb with its outcome, or a value", str, ("lost 0",)),
}
"""By the name that forms have for them."""

__all__ = ["KINDS"]
