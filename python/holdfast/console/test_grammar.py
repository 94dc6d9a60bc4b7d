"""Lines of a grammar: what matches, what an error says, and what a completion offers; for a subject of the test's own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.console.grammar import Grammar, forms_of, split, verb
from holdfast.console.kinds import KINDS
from holdfast.console.session import Session
from holdfast.errors import ConsoleError, HoldfastError


class Toy:
    """A subject with a few verbs."""

    @verb("colour:COLOUR paint thing:THING [-c count:COUNT]", "paint thing:THING")
    def paint(self) -> None:
        """Write on a thing.

        As often as is said.
        """

    @verb("lamp on")
    def on(self) -> None:
        """Switch the lamp on."""

    @verb("lamp off [after:COUNT]")
    def off(self) -> None:
        """Switch the lamp off."""

    @verb("say words:REST...")
    def say(self) -> None:
        """Say it."""


class _Words:
    def __init__(self, what: str, *words: str) -> None:
        self.what, self.words = what, words

    def read(self, subject: Any, word: str) -> str:
        if self.words and word not in self.words:
            raise ConsoleError(f"there is no {self.what} {word!r}")
        return word

    def candidates(self, subject: Any, word: str) -> Iterable[str]:
        return self.words


TOY = Grammar(
    forms_of(Toy),
    {
        "COLOUR": _Words("a colour", "red", "green"),
        "THING": _Words("a thing", "wall", "door"),
        "COUNT": KINDS["COUNT"],
        "REST": _Words("words"),
    },
    None,
)


@pytest.mark.parametrize(
    ("line", "method", "values"),
    [
        ("red paint wall", "paint", {"colour": "red", "thing": "wall"}),
        ("green paint door -c 3", "paint", {"colour": "green", "thing": "door", "count": 3}),
        ("  paint   'wall' ", "paint", {"thing": "wall"}),
        ("lamp on", "on", {}),
        ("lamp off", "off", {}),
        ("lamp off 7", "off", {"after": 7}),
        ("say a  'b c' \\d", "say", {"words": "a  'b c' \\d"}),
    ],
)
def test_lines(line: str, method: str, values: dict[str, object]) -> None:
    form, found = TOY.parse(line)
    assert (form.method, found) == (method, values)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("lamb on", "there is no verb or host 'lamb'; did you mean 'lamp'?"),
        ("lamp", "lamp: 'on' or 'off' is missing"),
        ("lamp of", "lamp: unknown word 'of'; did you mean 'off'?"),
        ("lamp on now", "lamp on: nothing follows, and there is 'now'"),
        ("lamp off 0", "'0' is no number from 1 to 1000000"),
        ("red paint", "red paint: a thing is missing"),
        ("red paint roof", "there is no a thing 'roof'"),
        ("red paint wall -c", "red paint wall -c: a number is missing"),
        ("say", "say: words is missing"),
        ("say 'a", 'the quotation mark in "\'a" is not closed'),
    ],
)
def test_errors(line: str, error: str) -> None:
    with pytest.raises(ConsoleError, match=f"^{re.escape(error)}$"):
        TOY.parse(line)


@pytest.mark.parametrize(
    ("line", "begun", "words"),
    [
        ("", "", ["red", "green", "paint", "lamp", "say"]),
        ("l", "l", ["lamp"]),
        ("lamp o", "o", ["on", "off"]),
        ("lamp ", "", ["on", "off"]),
        ("red paint ", "", ["wall", "door"]),
        ("red paint wall ", "", ["-c"]),
        ("blue paint ", "", []),
        ("say 'a", "", []),
    ],
)
def test_completions(line: str, begun: str, words: list[str]) -> None:
    assert TOY.complete(line) == (begun, words)


def test_the_documentation_is_the_help() -> None:
    form = forms_of(Toy)[0]
    assert str(form) == "COLOUR paint THING [-c COUNT]"
    assert form.verb == "paint"
    assert form.text == "Write on a thing.\nAs often as is said."


def test_every_form_of_a_session_names_kinds_that_are_there_and_parameters_of_its_method() -> None:
    for form in forms_of(Session):
        assert form.text, form
        method = getattr(Session, form.method)
        taken = method.__code__.co_varnames[1 : method.__code__.co_argcount]

        def check(elements: Iterable[Any], taken: tuple[str, ...] = taken) -> None:
            for each in elements:
                if hasattr(each, "parts"):
                    check(each.parts)
                elif hasattr(each, "kind"):
                    assert each.kind in KINDS
                    assert each.name in taken

        check(form.elements)


def test_the_help_of_a_session_fits_80_columns() -> None:
    for form in forms_of(Session):
        assert len(f"{form!s:<36}  {form.text.partition(chr(10))[0]}") <= 80, form


@given(st.lists(st.text(alphabet="ab '\"\\", min_size=0, max_size=6), max_size=4))
def test_words_begin_where_they_are(parts: list[str]) -> None:
    line = " ".join(parts)
    try:
        words = split(line)
    except HoldfastError:
        return
    for word in words:
        assert not line[word.begin].isspace()


@given(st.text(max_size=40))
def test_any_line_is_obeyed_or_refused_with_a_sentence(line: str) -> None:
    try:
        TOY.parse(line)
    except HoldfastError as error:
        assert str(error)
    TOY.complete(line)
