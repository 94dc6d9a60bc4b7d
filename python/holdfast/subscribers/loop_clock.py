"""The time of an event loop, for gateways and for subscribers that dial. It knows neither."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

_BOOT = Path("/proc/sys/kernel/random/boot_id")


class AsyncClock:
    """Timers of asyncio. ``epoch`` names the start of the machine, since when its clock counts."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        try:
            self.epoch = _BOOT.read_text(encoding="ascii").strip()
        except OSError:
            self.epoch = uuid4().hex  # no other process can know that it has the same clock

    def now(self) -> float:
        """Return the event loop's time in seconds."""
        return self._loop.time()

    def call_later(self, delay_s: float, action: Callable[[], None]) -> Callable[[], None]:
        """Call ``action`` after ``delay_s`` seconds; return a function that cancels this."""
        return self._loop.call_later(delay_s, action).cancel
