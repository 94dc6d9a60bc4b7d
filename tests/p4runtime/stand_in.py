"""A stand-in for the native module where it is not built: its records and exceptions, without running programs.

With it, the protocol tests run against :mod:`fake_switch` on any machine; tests that need the real core are skipped.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import types
from dataclasses import dataclass, field
from typing import Any


class HoldfastError(Exception):
    pass


class CompileError(HoldfastError):
    pass


class ControlError(HoldfastError):
    code: str = "UNKNOWN"


def unavailable() -> ControlError:
    error = ControlError("there is no native core here")
    error.code = "INVALID_ARGUMENT"
    return error


@dataclass
class TableEntry:
    table_id: int
    matches: dict[int, Any] = field(default_factory=dict)
    action_id: int = 0
    args: dict[int, bytes] = field(default_factory=dict)
    priority: int = 0
    is_default: bool = False
    counter: tuple[int, int] | None = None
    is_const: bool = False
    idle_timeout_ns: int = 0
    member_id: int | None = None
    group_id: int | None = None
    action_set: list[Any] | None = None
    meter_config: tuple[int, int, int, int] | None = None
    meter_counters: Any = None
    idle_ns: int | None = None


@dataclass
class MulticastGroup:
    group_id: int
    replicas: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class CloneSession:
    session_id: int
    replicas: list[tuple[int, int]] = field(default_factory=list)
    packet_length_bytes: int = 0
    class_of_service: int = 0


@dataclass
class RegisterCell:
    register_id: int
    index: int
    value: bytes


@dataclass
class CounterCell:
    counter_id: int
    index: int
    packets: int = 0
    bytes: int = 0


@dataclass
class DirectCounterCell:
    entry: TableEntry
    packets: int = 0
    bytes: int = 0


@dataclass
class ActionProfileMember:
    action_profile_id: int
    member_id: int
    action_id: int = 0
    args: dict[int, bytes] = field(default_factory=dict)


@dataclass
class ActionProfileGroup:
    action_profile_id: int
    group_id: int
    members: list[tuple[int, int, int | None]] = field(default_factory=list)
    max_size: int = 0


@dataclass
class MeterCell:
    meter_id: int
    index: int | None
    config: tuple[int, int, int, int] | None = None
    counters: Any = None


@dataclass
class DirectMeterCell:
    entry: TableEntry
    config: tuple[int, int, int, int] | None = None


@dataclass
class ValueSetMembers:
    value_set_id: int
    members: list[dict[int, Any]]


class Program:
    @staticmethod
    def from_artifact(data: bytes) -> Program:
        raise unavailable()


class WriteRequest:
    @staticmethod
    def parse(data: bytes) -> None:
        """Always for the decoder."""


class Switch:
    def __init__(self, *_: object, **__: object) -> None:
        raise unavailable()


Network = PlainTables = Switch
Notification = Diagnostic = object


def install() -> bool:
    """Whether the real module is there; otherwise the stand-in takes its name."""
    spec = importlib.util.find_spec("holdfast")
    places = list(spec.submodule_search_locations or ()) if spec else []
    if importlib.machinery.PathFinder.find_spec("holdfast._core", places) is not None:
        return True
    module = types.ModuleType("holdfast._core", __doc__)
    names = {k: v for k, v in globals().items() if isinstance(v, type) and k[0].isupper()}
    module.__dict__.update(names)
    sys.modules["holdfast._core"] = module
    return False
