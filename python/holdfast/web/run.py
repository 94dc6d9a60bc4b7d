"""Opens the page of a session: watcher, desk, captures and server together."""

from __future__ import annotations

import gc
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.console.session import Session
from holdfast.web.server import AT_LOOPBACK, served

if TYPE_CHECKING:
    from holdfast.web.page import NetworkPage

SWITCH_S = 0.0005
"""The longest time for which a thread keeps the interpreter from others while there is a page."""


@contextmanager
def page_of(session: Session, at: str = AT_LOOPBACK) -> Iterator[str]:
    """Serve the page of a session within the context, and yield its address with the token.

    The session's simulation has to be paced. Raises :class:`ConsoleError` if the framework is not installed, or the address
    cannot be had.
    """
    from holdfast.web import charts
    from holdfast.web.desk import Desk
    from holdfast.web.snapshot import Watcher

    pages: list[NetworkPage] = []
    # The simulation's thread asks for the interpreter's lock many times in a second, and would wait 5 ms for it each time.
    interval_s = sys.getswitchinterval()

    async def build() -> None:
        await pages[0].tabs.build()

    with (
        tempfile.TemporaryDirectory(prefix="holdfast-page-") as folder,
        served(build, at, title=f"{session.topology.name}: Holdfast", files=Path(folder)) as address,
        Watcher(session) as watcher,
    ):
        from holdfast.web.page import NetworkPage

        # The layout of a large network takes longer than a browser is let wait.
        charts.places(session.topology)
        pages.append(NetworkPage(session, watcher, Desk(session), Path(folder)))
        # What is there now stays: the collector, which keeps all threads waiting, need not look at it again and again.
        gc.collect()
        gc.freeze()
        sys.setswitchinterval(SWITCH_S)
        try:
            yield address
        finally:
            sys.setswitchinterval(interval_s)
            gc.unfreeze()


__all__ = ["page_of"]
