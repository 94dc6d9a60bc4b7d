"""Tells new requests of dynamic authorization from those that were there before (RFC 5176, section 6.3).

A request is new if its Event-Timestamp is current, is beyond a time before which all is refused, and if it is not known. Requests
are known for as long as their timestamps are current. The time before which all is refused is the start of the process, so that no
list of requests has to outlive it, and in any case the latest timestamp that an earlier process took, which is kept in a file: a
client's clock may be ahead, or ours may have been set back.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from heapq import heappop, heappush
from pathlib import Path

from holdfast import private_files, whole_files
from holdfast.errors import HoldfastError, LiveError
from holdfast.regular_files import read_regular

log = logging.getLogger(__name__)

MOST_KNOWN = 1 << 18
"""Requests that are known at once; with more in a window, which only clients with a secret can send, others are refused."""

_MOST_ANSWERS = 1024
_ANSWER_S = 30.0
"""The last answers, which a client gets that repeats its request from the same port. Later, or from elsewhere, it is no repetition
of its own (RFC 5080, section 2.2.2), and gets none."""

Sender = tuple[object, int]
"""An address and a port."""


class Replays:
    """Requests, by what identifies them: their bytes up to the authenticator, which covers all others."""

    def __init__(self, window_s: float, since_s: float, path: Path | None) -> None:
        """Remember requests from the Unix time ``since_s`` on.

        ``path``: the file for the latest timestamp; None to keep it in memory alone. Raises :class:`LiveError` if other users can
        write to that file or its directory.
        """
        self._window_s, self._path = window_s, path
        self._kept = -1 if path is None else _read(path)
        self._since = int(since_s)
        self._floor = self._kept
        """Nothing with this timestamp or an earlier one is new."""
        self._known: set[bytes] = set()
        self._stamps: list[tuple[int, bytes]] = []
        """A heap of the timestamps of what is known."""
        self._answers: OrderedDict[bytes, tuple[Sender, float, bytes]] = OrderedDict()
        self._unkept = self._warned = False

    def __len__(self) -> int:
        return len(self._known)

    def answer(self, request: bytes, sender: Sender, clock_s: float) -> bytes | None:
        """Return the answer that this sender's request has had lately, if the request is a repetition; else None."""
        before, until_s, answer = self._answers.get(request, (sender, clock_s, None))
        return answer if before == sender and clock_s < until_s else None

    def hindrance(self, request: bytes, stamp_s: int | None, wall_s: float) -> str | None:
        """Return why a request must not be executed ("stale", "repeated", "before-start" or "busy"); None if it may be.

        ``stamp_s``: its Event-Timestamp, None if it has none.
        """
        if stamp_s is not None and abs(wall_s - stamp_s) > self._window_s:
            return "stale"
        if request in self._known:
            return "repeated"
        if stamp_s is not None:
            # A clock that was set back since the start says nothing about the time before it.
            before_start = stamp_s < self._since <= wall_s + self._window_s
            if stamp_s <= self._floor or before_start:
                self._warn()
                return "before-start"
        self._forget_before(wall_s - self._window_s)
        return "busy" if len(self._known) >= MOST_KNOWN else None

    def take(self, request: bytes, stamp_s: int | None, wall_s: float) -> None:
        """Remember a request, so that a repetition is recognised; call this before the request is executed.

        ``stamp_s``: its Event-Timestamp, None if it has none. ``wall_s``: the present time in s since 1970. The latest
        Event-Timestamp is kept in a file, for the time after a restart.
        """
        self._known.add(request)
        heappush(self._stamps, (int(wall_s) if stamp_s is None else stamp_s, request))
        if stamp_s is not None and stamp_s > self._kept and self._path is not None:
            self._kept = stamp_s
            try:
                whole_files.write_text(self._path, f"{stamp_s}\n")
            except OSError as error:
                if not self._unkept:
                    log.warning("%s: %s; a request may be taken again after a restart", self._path, error.strerror)
                self._unkept = True

    def answered(self, request: bytes, sender: Sender, clock_s: float, answer: bytes) -> None:
        """Store the answer to a request, which is sent again if the request is repeated."""
        self._answers[request] = sender, clock_s + _ANSWER_S, answer
        if len(self._answers) > _MOST_ANSWERS:
            self._answers.popitem(last=False)

    def _forget_before(self, stale_s: float) -> None:
        """Forget requests with timestamps before ``stale_s``; later requests with such timestamps are refused."""
        for stamp_s, request in self._stale(stale_s):
            self._known.discard(request)
            self._answers.pop(request, None)
            self._floor = max(self._floor, stamp_s)

    def _stale(self, stale_s: float) -> Iterator[tuple[int, bytes]]:
        while self._stamps and self._stamps[0][0] < stale_s:
            yield heappop(self._stamps)

    def _warn(self) -> None:
        if not self._warned:
            self._warned = True
            log.warning(
                "a CoA or Disconnect request is from before this gateway's start, or before the latest one of an earlier start, "
                "and is dropped: its client's clock is behind, or ours was set back (then remove %s while the gateway is down)",
                self._path or "nothing",
            )


def _read(path: Path) -> int:
    """Return the timestamp in a file, or -1 if there is none.

    Raises :class:`LiveError` if the file is a link, or another user's.
    """
    private_files.check_directory(path)
    if private_files.check(path):
        with suppress(HoldfastError, ValueError):
            return int(read_regular(path, 64, LiveError))
    return -1
