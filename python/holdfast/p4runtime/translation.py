"""Translated types (specification, "PSA Metadata Translation"): the controller's values and the switch's, one to one.

Which value means which comes from outside P4Runtime (:class:`~holdfast.p4runtime.device.Device`'s ``translations``, by the URI of
``@p4runtime_translation``). Without that, numbers mean themselves, and strings are given numbers as they come: a decimal
number that is still free its own, others the lowest free one above zero. What a string means stays so as long as pipelines
are reconciled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from holdfast.p4runtime import codec
from holdfast.p4runtime.errors import P4RuntimeError, invalid_argument

Mappings: TypeAlias = Mapping[str, Mapping[int, int] | Mapping[str, int]]
"""The switch's value by the controller's, by URI."""

_MAX_STRINGS = 1 << 20
_MAX_OWN_NUMBER = 1 << 16


class Translation:
    """Of one URI. ``width`` of the controller's numbers in bits; 0 for strings. ``given``: the whole mapping, if there is one."""

    def __init__(self, uri: str, width: int, given: Mapping[int, int] | Mapping[str, int] | None) -> None:
        self.uri = uri
        self.width = width
        self._is_given = given is not None
        self._to_switch: dict[int | str, int] = dict(given.items()) if given else {}
        self._to_controller = {number: value for value, number in self._to_switch.items()}
        if len(self._to_controller) != len(self._to_switch):
            raise invalid_argument(
                f"translation '{uri}': two of the controller's values are the same one of the switch"
            )
        self._lowest = 1

    @property
    def is_text(self) -> bool:
        """Whether the controller's values are strings."""
        return self.width == 0

    def inherit(self, other: Translation) -> None:
        """Takes over what strings mean."""
        if not self._is_given and self.width == other.width:
            self._to_switch, self._to_controller = dict(other._to_switch), dict(other._to_controller)

    def to_switch(self, data: bytes, what: str) -> int:
        """The switch's value for the controller's. INVALID_ARGUMENT if there is none."""
        value = self._text(data, what) if self.is_text else codec.decode(data, self.width, what)
        number = self._to_switch.get(value)
        if number is None and self._is_given:
            raise invalid_argument(f"{what}: {value!r} is not translated ('{self.uri}')")
        return self._assign(str(value)) if number is None else number

    def to_controller(self, number: int) -> bytes:
        """The controller's value for the switch's; for one that no client wrote, its own number."""
        value = self._to_controller.get(number)
        if value is None:
            value = number if not self.is_text else self._name(number)
        return value.encode() if isinstance(value, str) else codec.encode(value)

    @staticmethod
    def _text(data: bytes, what: str) -> str:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise invalid_argument(f"{what}: the string is not UTF-8") from None
        if not text:
            raise invalid_argument(f"{what}: the string is empty")
        return text

    def _assign(self, text: str) -> int:
        if len(self._to_switch) >= _MAX_STRINGS:
            raise P4RuntimeError("RESOURCE_EXHAUSTED", f"'{self.uri}' has {_MAX_STRINGS} strings already")
        own = int(text) if text.isascii() and text.isdecimal() and len(text) < 6 and str(int(text)) == text else None
        if own is None or own >= _MAX_OWN_NUMBER or own in self._to_controller:
            while self._lowest in self._to_controller:
                self._lowest += 1
            own = self._lowest
        self._to_switch[text], self._to_controller[own] = own, text
        return own

    def _name(self, number: int) -> str:
        """A string for a number that came from the program."""
        text = str(number)
        while text in self._to_switch:
            text = f"#{text}"
        if not self._is_given:
            self._to_switch[text], self._to_controller[number] = number, text
        return text
