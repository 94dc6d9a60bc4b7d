"""Channels that a switch has refused: what fits is written, the rest waits, is counted, and is tried again.

A full table, or a switch that does not answer, is no reason for a controller to stop. The entries of a channel are not known here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Generic, TypeAlias, TypeVar

from holdfast.apps.bier.channels import Delivered, Sent
from holdfast.control.membership.channels import Channel
from holdfast.errors import HoldfastError
from holdfast.p4runtime.errors import P4RuntimeError

MOST_REFUSALS = 64
"""The number of refused writes in one change; after it, the remaining channels wait without having been tried."""

Write: TypeAlias = Callable[[Sent, Delivered], None]
"""Writes all of it, or raises :class:`HoldfastError` and has written nothing."""

Value = TypeVar("Value")


class _Waiting(Generic[Value]):
    """The wanted values of channels that wait, by channel; None: the channel is to be removed."""

    def __init__(self) -> None:
        self.values: dict[Channel, Value | None] = {}

    def forget(self, channels: Mapping[Channel, Value | None]) -> None:
        for channel in channels if self.values else ():
            self.values.pop(channel, None)


class PendingChannels:
    """The channels for which one switch lacks the wanted entries, and why it refused them."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._sent: _Waiting[Mapping] = _Waiting()  # type: ignore[type-arg]
        self._delivered: _Waiting[frozenset[int]] = _Waiting()
        self._left = 0
        self.why: dict[Channel, str] = {}
        """Why channels were refused, by channel, as far as they have been tried."""
        self.refusals: Counter[str] = Counter()
        """The number of refused writes, by status."""

    def __len__(self) -> int:
        return len(self.channels)

    @property
    def channels(self) -> set[Channel]:
        """The channels that the switch has refused, which wait for :meth:`retry`."""
        return self._sent.values.keys() | self._delivered.values.keys()

    def change(self, sent: Sent, delivered: Delivered) -> None:
        """Write channels in one batch if the switch accepts it; the channels that it refuses wait for :meth:`retry`."""
        self._sent.forget(sent)
        self._delivered.forget(delivered)
        self._left = MOST_REFUSALS
        self._halve(sent, delivered)

    def retry(self) -> None:
        """Write the channels again that the switch has refused before; those that it refuses again go on waiting."""
        self.change(dict(self._sent.values), dict(self._delivered.values))

    def _halve(self, sent: Sent, delivered: Delivered) -> None:
        """Write the channels in one batch; if it is refused, halve it until the refused channels are found."""
        channels = list(dict.fromkeys((*delivered, *sent)))
        if not channels:
            return
        why = ""
        if self._left:
            try:
                self._write(sent, delivered)
            except HoldfastError as error:
                self._left -= 1
                status, why = _cause(error)
                self.refusals[status] += 1
            else:
                for channel in channels if self.why else ():
                    self.why.pop(channel, None)
                return
        if len(channels) > 1 and self._left:
            half = len(channels) // 2
            for part in (set(channels[:half]), set(channels[half:])):
                self._halve(
                    {channel: value for channel, value in sent.items() if channel in part},
                    {channel: value for channel, value in delivered.items() if channel in part},
                )
            return
        self._sent.values.update(sent)
        self._delivered.values.update(delivered)
        for channel in channels if len(channels) == 1 and why else ():
            self.why[channel] = why


def _cause(error: HoldfastError) -> tuple[str, str]:
    """Return (status, reason) of a refused write; for a batch, of the update that caused the refusal, not of those it aborted."""
    if not isinstance(error, P4RuntimeError):
        return "NO_NUMBER", str(error)
    own = next((failure for failure in error.failures if failure.code != "ABORTED"), None)
    return (error.code, error.message) if own is None else (own.code, own.message)
