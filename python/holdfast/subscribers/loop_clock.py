"""The time of an event loop, for gateways and for subscribers that dial. It knows neither."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class AsyncClock:
    """Timers of asyncio."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now(self) -> float:
        """Seconds of the loop's clock."""
        return self._loop.time()

    def call_later(self, delay_s: float, action: Callable[[], None]) -> Callable[[], None]:
        """Calls ``action`` after ``delay_s``; returns a function that cancels it."""
        return self._loop.call_later(delay_s, action).cancel
