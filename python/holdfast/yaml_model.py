"""Reads users' YAML files into models. Every error is a sentence that begins with the file and the line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from holdfast.errors import HoldfastError, ScenarioError, first_mistake, place_of_mistake
from holdfast.regular_files import read_regular
from holdfast.terminal import excerpt

M = TypeVar("M", bound=BaseModel)

DEPTH = 100
"""The deepest nesting of mappings and lists that is accepted, with aliases followed."""

TOO_DEEP = f"it is nested too deeply, more than {DEPTH} deep"

MOST_BYTES = 4 << 20
"""The largest file, in bytes, that is accepted where people write it."""

MOST_VALUES = 100_000
"""The most keys, lists, mappings and scalars in a file that people write; each takes some 20 microseconds, whatever its
length."""

ALIASED = 100_000
"""The most values that aliases may add to those written out, since a file of a few lines can otherwise stand for any
number."""


class _RefusedError(yaml.MarkedYAMLError):
    """YAML, but not what people write."""


@contextmanager
def reading(path: Path, kind: type[HoldfastError]) -> Iterator[None]:
    """Raise ``kind`` for errors of the enclosed code, which reads ``path``; the message has the line if it is known."""
    try:
        yield
    except OSError as error:
        raise kind(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise kind(f"{path}: this is not text in UTF-8") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        refused = "" if isinstance(error, _RefusedError) else "not YAML: "
        raise kind(f"{path}:{line}: {refused}{excerpt(str(error.problem))}") from None
    except (yaml.YAMLError, ValueError) as error:
        # The message about a character that YAML does not have goes on in a second line.
        raise kind(f"{path}: not YAML: {excerpt(' '.join(str(error).split()))}") from None
    except RecursionError:
        raise kind(f"{path}: it is nested too deeply") from None


class _Bounded(Composer, SafeConstructor, Resolver):
    """A loader's part that stops where it becomes too deep or too much, before it has read the rest."""

    peek_event: Any  # the parser's, which is the other part

    def __init__(self, most_values: int) -> None:
        Composer.__init__(self)
        SafeConstructor.__init__(self)
        Resolver.__init__(self)
        self._depth = 0
        self._left, self._most = most_values, most_values

    @property
    def values_left(self) -> int:
        """The number of values that the document could have had in addition."""
        return self._left

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Build a node as the parent class does.

        Raises an error if it is nested too deeply, or if the document has too many values.
        """
        self._depth += 1
        self._left -= 1
        if self._depth > DEPTH + 1:
            raise _RefusedError(None, None, TOO_DEEP, self.peek_event().start_mark)
        if self._left < 0:
            too_much = f"it has more than {self._most} keys and values: divide it into several files"
            raise _RefusedError(None, None, too_much, self.peek_event().start_mark)
        try:
            node: yaml.Node | None = super().compose_node(parent, index)
        finally:
            self._depth -= 1
        return node


class _PythonLoader(_Bounded, yaml.SafeLoader):
    """A bounded loader with PyYAML's own parser."""

    def __init__(self, text: str, most_values: int) -> None:
        yaml.SafeLoader.__init__(self, text)
        _Bounded.__init__(self, most_values)


if yaml.__with_libyaml__:

    class _Loader(_Bounded, yaml.CSafeLoader):
        """A bounded loader with libyaml's parser: a long text or comment takes no time to speak of."""

        def __init__(self, text: str, most_values: int) -> None:
            yaml.CSafeLoader.__init__(self, text)
            _Bounded.__init__(self, most_values)

else:
    _Loader = _PythonLoader  # type: ignore[misc, assignment]

_EXPLAINED = 1 << 18
"""The most characters of an invalid text that is parsed a second time, by PyYAML's own parser, whose errors explain
more."""


def _root(loader: Any) -> yaml.Node | None:
    try:
        root: yaml.Node | None = loader.get_single_node()
    finally:
        loader.dispose()
    return root


def compose(text: str, most_values: int = MOST_VALUES) -> tuple[_Bounded, yaml.Node | None]:
    """Return a loader for a document with at most ``most_values`` values, and the document's root node, None if it is empty.

    Raises an error of :mod:`yaml`, for :func:`reading`, if the document is nested too deeply, or if its aliases stand for much more
    than is written. Every reader of YAML starts with this function.
    """
    loader: _Bounded = _Loader(text, most_values)
    try:
        root = _root(loader)
    except _RefusedError:
        raise
    except yaml.YAMLError:
        if len(text) > _EXPLAINED:
            raise
        loader = _PythonLoader(text, most_values)
        root = _root(loader)
    if root is not None:
        sizes: dict[int, tuple[int, int]] = {}
        size, _ = _measure(root, sizes, set())
        if size - len(sizes) > ALIASED:
            raise _refused(root, f"its aliases stand for more than {ALIASED} values")
    return loader, root


def _measure(node: yaml.Node, sizes: dict[int, tuple[int, int]], above: set[int]) -> tuple[int, int]:
    """Return the number of values below a node, with aliases followed, and the depth of their nesting; visit each node once.

    Raises an error for an alias that contains itself, and for more than :data:`DEPTH` levels.
    """
    if id(node) in above:
        raise _refused(node, "an alias that contains itself")
    if id(node) not in sizes:
        size, depth = 1, 0
        above.add(id(node))
        for child in _children(node):
            child_size, child_depth = _measure(child, sizes, above)
            size, depth = size + child_size, max(depth, 1 + child_depth)
        above.remove(id(node))
        if depth > DEPTH:
            raise _refused(node, TOO_DEEP)
        sizes[id(node)] = size, depth
    return sizes[id(node)]


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [each for pair in node.value for each in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _refuse_doubled_keys(root: yaml.Node) -> None:
    """Raise an error if a mapping has the same key twice; YAML's own loader would take the last one."""
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        waiting += _children(node)
        if isinstance(node, yaml.MappingNode):
            lines: dict[str, int] = {}
            for key in [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]:
                if key.value in lines and key.value != "<<":
                    raise _refused(
                        key, f"{excerpt(repr(key.value))} is declared twice (first in line {lines[key.value]})"
                    )
                lines[key.value] = key.start_mark.line + 1


def _refused(node: yaml.Node, why: str) -> _RefusedError:
    return _RefusedError(None, None, why, node.start_mark)


@dataclass(frozen=True)
class Located(Generic[M]):
    """A model that was read, and where its values stand in the file."""

    path: Path
    value: M
    root: yaml.Node | None

    def line(self, place: str) -> int:
        """Return the line of a value, such as ``rules.3.action``.

        If it is not in the file, the line of the value that would contain it.
        """
        return _line(self.root, place)


def _line(root: yaml.Node | None, place: str) -> int:
    node, line = root, 1 if root is None else root.start_mark.line + 1
    while place:
        found = next((pair for pair in _parts(node) if place == pair[0] or place.startswith(f"{pair[0]}.")), None)
        if found is None:
            break
        name, line, node = found
        place = place[len(name) + 1 :]
    return line


def _parts(node: yaml.Node | None) -> list[tuple[str, int, yaml.Node]]:
    """Return the name, line and value of each part of a node, longer names first: names may contain points."""
    if isinstance(node, yaml.SequenceNode):
        return [(str(index), each.start_mark.line + 1, each) for index, each in enumerate(node.value)]
    if not isinstance(node, yaml.MappingNode):
        return []
    named = [(str(key.value), key.start_mark.line + 1, value) for key, value in node.value]
    return sorted(named, key=lambda part: -len(part[0]))


def read(path: Path, model: type[M], most_bytes: int = MOST_BYTES) -> M:
    """Read the model in a file of at most ``most_bytes``; an empty file gives all defaults. Raises :class:`ScenarioError`."""
    return read_located(path, model, most_bytes).value


def read_located(path: Path, model: type[M], most_bytes: int = MOST_BYTES) -> Located[M]:
    """Read a model as :func:`read` does, and return it with the line number of each of its values.

    Raises :class:`ScenarioError`, with the line, if the file is not as the model requires.
    """
    with reading(path, ScenarioError):
        loader, root = compose(read_regular(path, most_bytes, ScenarioError).decode())
        if root is not None:
            _refuse_doubled_keys(root)
        document = None if root is None else loader.construct_document(root)
    if document is None:
        document = {}
    if not isinstance(document, Mapping):
        raise ScenarioError(f"{path}: a mapping of {', '.join(model.model_fields)} is expected")
    try:
        return Located(path, model.model_validate(document), root)
    except ValidationError as error:
        place, _ = place_of_mistake(error)
        raise ScenarioError(f"{path}:{_line(root, place)}: {excerpt(first_mistake(error))}") from None
