"""Meter configurations and counters between P4Runtime messages and the core (specification, "MeterEntry & DirectMeterEntry").

The core marks with two rates and three colours (RFC 2698). A single rate with two colours is the special case of equal
rates and bursts; the single rate with three colours (RFC 2697) is that, too, as long as there is no excess burst.
"""

from __future__ import annotations

from typing import TypeAlias

from holdfast.p4runtime.errors import invalid_argument, unimplemented
from holdfast.p4runtime.p4info import MeterType
from holdfast.p4runtime.stubs import Proto

MeterConfig: TypeAlias = tuple[int, int, int, int]
"""As the core has it: cir, cburst, pir, pburst."""

ColourCounts: TypeAlias = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
"""As the core has it: packets and bytes of green, yellow and red."""

_MAX_COUNT = (1 << 63) - 1
_COLOURS = ("green", "yellow", "red")


def config_from_message(message: Proto, type: MeterType, what: str) -> MeterConfig:
    """The core's configuration of a ``MeterConfig``."""
    excess = getattr(message, "eburst", 0)  # since 1.4
    if min(message.cir, message.cburst, message.pir, message.pburst, excess) < 0:
        raise invalid_argument(f"{what}: rates and bursts are not negative")
    if type != "two_rate_three_color":
        if (message.cir, message.cburst) != (message.pir, message.pburst):
            raise invalid_argument(f"{what}: it has a single rate, so pir and pburst are cir and cburst")
        if excess and type == "single_rate_three_color":
            raise unimplemented(f"{what}: excess bursts (RFC 2697) are not supported")
    if excess:
        raise invalid_argument(f"{what}: it has no excess burst (eburst)")
    return message.cir, message.cburst, message.pir, message.pburst


def config_of(message: Proto, field: str, type: MeterType, what: str) -> MeterConfig | None:
    """The configuration in a field of a message; None, which makes everything green, if it is not set."""
    return config_from_message(getattr(message, field), type, what) if message.HasField(field) else None


def fill_config(message: Proto, config: MeterConfig) -> None:
    """Writes a configuration into a ``MeterConfig``."""
    message.cir, message.cburst, message.pir, message.pburst = config


def check_reset(message: Proto, what: str) -> None:
    """``MeterCounterData`` in a write sets the counters to zero, so that is all it may say."""
    for colour in _COLOURS:
        data = getattr(message, colour)
        if data.packet_count or data.byte_count:
            raise invalid_argument(f"{what}: the counters of a meter can only be set to zero")


def fill_counters(message: Proto, counters: ColourCounts | None) -> None:
    """Writes counters into a ``MeterCounterData``; a meter that counted nothing has zeros."""
    message.SetInParent()
    for colour, (packets, octets) in zip(_COLOURS, counters or ((0, 0),) * 3, strict=True):
        fill_count(getattr(message, colour), (packets, octets))


def fill_count(message: Proto, count: tuple[int, int]) -> None:
    """Writes packets and bytes into a ``CounterData``, whose numbers have 63 bits."""
    message.packet_count, message.byte_count = (number & _MAX_COUNT for number in count)
