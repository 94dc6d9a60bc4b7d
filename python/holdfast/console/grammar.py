"""The grammar of verbs: forms such as ``source:HOST ping destination:HOST [-c count:COUNT]``, matched, completed and shown.

A form is a sequence of words: a literal, a parameter ``name:KIND``, an optional group ``[...]``, or a rest ``name:KIND...`` that
takes the line as it is. It is declared beside the method that obeys it (:func:`verb`), and everything else comes from there.
Which verbs and kinds there are is not known here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from holdfast import suggestions
from holdfast.errors import ConsoleError


class Kind(Protocol):
    """A kind of word: how it is read, and what it may be."""

    @property
    def what(self) -> str:
        """What it is, with an article."""

    def read(self, subject: Any, word: str) -> Any:
        """Return the value of a word. Raises a HoldfastError that says in one sentence what is wrong with it."""

    def candidates(self, subject: Any, word: str) -> Iterable[str]:
        """Return the words that may stand here and can be listed; ``word`` is what has been written of it."""


@dataclass(frozen=True)
class Literal:
    """A word that stands as it is."""

    word: str

    def __str__(self) -> str:
        return self.word


@dataclass(frozen=True)
class Parameter:
    """A word with a value. ``rest``: it is the whole rest of the line, without any change."""

    name: str
    kind: str
    rest: bool = False

    def __str__(self) -> str:
        return f"{self.kind}..." if self.rest else self.kind


@dataclass(frozen=True)
class Optional:
    """Words that may be left out together."""

    parts: tuple[Element, ...]

    def __str__(self) -> str:
        return f"[{' '.join(map(str, self.parts))}]"


Element: TypeAlias = Literal | Parameter | Optional

_TOKEN = re.compile(r"\[|\]|[^\s\[\]]+")


def _parsed(text: str) -> tuple[Element, ...]:
    """Return the elements of a form's text."""
    stack: list[list[Element]] = [[]]
    for token in _TOKEN.findall(text):
        if token == "[":
            stack.append([])
        elif token == "]":
            group = tuple(stack.pop())
            stack[-1].append(Optional(group))
        elif ":" in token:
            name, _, kind = token.partition(":")
            stack[-1].append(Parameter(name, kind.removesuffix("..."), rest=kind.endswith("...")))
        else:
            stack[-1].append(Literal(token))
    (elements,) = stack
    return tuple(elements)


@dataclass(frozen=True)
class Word:
    """A word of a line, without its quotes, and where it begins in the line."""

    text: str
    begin: int


@dataclass
class _Failure:
    """Why no form matches: how many words did, and what could have followed them."""

    matched: int = -1
    expected: list[Element] | None = None
    error: Exception | None = None


@dataclass(frozen=True)
class Form:
    """A form of a verb, and the method that obeys it. ``text``: its help. ``clock``: the only one that has it."""

    elements: tuple[Element, ...]
    method: str
    text: str
    clock: str | None = None

    @property
    def verb(self) -> str:
        """The first literal word; of a form without one, the kind of its last parameter."""
        literal = next((each.word for each in self.elements if isinstance(each, Literal)), None)
        return literal or str(self.elements[-1]).removesuffix("...").lower()

    def __str__(self) -> str:
        return " ".join(map(str, self.elements))


F = TypeVar("F", bound=Callable[..., Any])

_FORMS = "__forms__"


def verb(*forms: str, clock: str | None = None) -> Callable[[F], F]:
    """Declare a method as what obeys these forms. Its documentation is the help, and the first line the short one.

    Parameters that are left out of a line are left to the method's defaults. ``clock``: the verb exists on this clock alone.
    """

    def declare(method: F) -> F:
        setattr(method, _FORMS, (forms, clock))
        return method

    return declare


def forms_of(subject: type) -> list[Form]:
    """Return the forms that the methods of a class declare, in the order of the source."""
    found = []
    for base in reversed(subject.__mro__):
        for name, method in vars(base).items():
            texts, clock = getattr(method, _FORMS, ((), None))
            lines = [line.strip() for line in (method.__doc__ or "").splitlines()]
            help_text = "\n".join(line for line in lines if line)
            found += [Form(_parsed(text), name, help_text, clock) for text in texts]
    return found


class Grammar:
    """The forms of a subject with the kinds of their words."""

    def __init__(self, forms: Sequence[Form], kinds: Mapping[str, Kind], subject: Any) -> None:
        self.forms = list(forms)
        self._kinds = kinds
        self._subject = subject

    def parse(self, line: str) -> tuple[Form, dict[str, Any]]:
        """Return the form that a line has, and the values of its parameters.

        Raises :class:`ConsoleError` with one sentence if no form matches, and the error of a kind if a word has no value.
        """
        words = split(line)
        failure = _Failure()
        for form in self.forms:
            for values in self._match(form.elements, words, 0, line, failure):
                return form, values
        raise self._error(words, failure)

    def reach(self, line: str) -> int:
        """Return how many words of a line the form that matches most of it takes."""
        words, failure = split(line), _Failure()
        for form in self.forms:
            if any(True for _ in self._match(form.elements, words, 0, line, failure)):
                return len(words)
        return failure.matched

    def complete(self, line: str) -> tuple[str, list[str]]:
        """Return the last word of a line, as far as it is written, and the words that it may become."""
        try:
            words = split(line)
        except ConsoleError:
            return "", []
        begun = words.pop().text if words and not line[-1:].isspace() else ""
        found: dict[str, None] = {}
        for form in self.forms:
            for element in self._next(form.elements, words, 0):
                for candidate in self._candidates(element, begun):
                    if candidate.startswith(begun):
                        found[candidate] = None
        return begun, list(found)

    def _candidates(self, element: Element, begun: str) -> Iterable[str]:
        if isinstance(element, Literal):
            return [element.word]
        assert isinstance(element, Parameter)
        return self._kinds[element.kind].candidates(self._subject, begun)

    def _match(
        self, elements: Sequence[Element], words: list[Word], at: int, line: str, failure: _Failure
    ) -> Iterator[dict[str, Any]]:
        """Yield the values of the words from ``at`` on for each way in which they match; note the furthest failure."""
        if not elements:
            if at == len(words):
                yield {}
            else:
                _note(failure, at, None)
            return
        first, others = elements[0], elements[1:]
        if isinstance(first, Optional):
            yield from self._match((*first.parts, *others), words, at, line, failure)
            yield from self._match(others, words, at, line, failure)
            return
        if at == len(words):
            _note(failure, at, first)
            return
        if isinstance(first, Literal):
            if words[at].text != first.word:
                _note(failure, at, first)
                return
            yield from self._match(others, words, at + 1, line, failure)
            return
        text = line[words[at].begin :].strip() if first.rest else words[at].text
        try:
            value = self._kinds[first.kind].read(self._subject, text)
        except Exception as error:  # noqa: BLE001 - another form may match; else this is raised
            _note(failure, at, first, error)
            return
        for values in self._match(others, words, len(words) if first.rest else at + 1, line, failure):
            yield {first.name: value, **values}

    def _next(self, elements: Sequence[Element], words: Sequence[Word], at: int) -> Iterator[Element]:
        """Yield the elements that may follow the words from ``at`` on."""
        if not elements:
            return
        first, others = elements[0], elements[1:]
        if isinstance(first, Optional):
            yield from self._next((*first.parts, *others), words, at)
            yield from self._next(others, words, at)
        elif at == len(words) or (isinstance(first, Parameter) and first.rest):
            yield first
        elif isinstance(first, Literal):
            if words[at].text == first.word:
                yield from self._next(others, words, at + 1)
        else:
            try:
                self._kinds[first.kind].read(self._subject, words[at].text)
            except Exception:  # noqa: BLE001 - then nothing follows it
                return
            yield from self._next(others, words, at + 1)

    def _error(self, words: Sequence[Word], failure: _Failure) -> Exception:
        """Return the error about a line: what is wrong with the first word that no form takes."""
        at, expected = failure.matched, failure.expected or []
        before = " ".join(word.text for word in words[:at])
        if at == len(words):
            wanted = _listed([self._named(each) for each in expected])
            return ConsoleError(f"{before}: {wanted} is missing") if before else ConsoleError(f"{wanted} is missing")
        word = words[at].text
        if failure.error is not None and (len(expected) == 1 or at > 0):
            return failure.error
        known = [candidate for each in expected for candidate in self._candidates(each, "")]
        if at == 0:
            return ConsoleError(f"there is no verb or host {word!r}{suggestions.alternatives(word, known)}")
        if not expected:
            return ConsoleError(f"{before}: nothing follows, and there is {word!r}")
        return ConsoleError(f"{before}: unknown word {word!r}{suggestions.alternatives(word, known)}")

    def _named(self, element: Element) -> str:
        if isinstance(element, Parameter):
            return self._kinds[element.kind].what
        return repr(str(element))


def _note(failure: _Failure, at: int, element: Element | None, error: Exception | None = None) -> None:
    """Remember what was expected at ``at``, unless another form came further.

    ``error``: why a word there was not of the expected kind, if that is known.
    """
    if at > failure.matched:
        failure.matched, failure.expected, failure.error = at, [], None
    if at == failure.matched:
        assert failure.expected is not None
        if element is not None and element not in failure.expected:
            failure.expected.append(element)
        if error is not None and failure.error is None:
            failure.error = error


def _listed(words: Sequence[str]) -> str:
    """Return ``a, b or c``."""
    *front, last = dict.fromkeys(words)
    return f"{', '.join(front)} or {last}" if front else last


def split(line: str) -> list[Word]:
    """Split a line into words as a shell does: quotes and backslashes keep blanks. Raises :class:`ConsoleError`."""
    found: list[Word] = []
    at, end = 0, len(line)
    while at < end:
        if line[at].isspace():
            at += 1
            continue
        begin, quote = at, ""
        while at < end and (quote or not line[at].isspace()):
            if quote:
                quote = "" if line[at] == quote else quote
            elif line[at] in "'\"":
                quote = line[at]
            elif line[at] == "\\":
                at += 1
            at += 1
        text = line[begin:at]
        try:
            (word,) = shlex.split(text) or [""]
        except ValueError:
            raise ConsoleError(f"the quotation mark in {text[:40]!r} is not closed") from None
        found.append(Word(word, begin))
    return found


__all__ = ["Form", "Grammar", "Kind", "forms_of", "split", "verb"]
