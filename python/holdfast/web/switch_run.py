"""Opens the page of a running switch: its metrics, its verbs and the server together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prometheus_client import Metric

from holdfast.live import metrics
from holdfast.live.switch import LiveSwitch
from holdfast.operations.events import Events
from holdfast.p4runtime.server import Server
from holdfast.web.desk import Desk
from holdfast.web.server import served
from holdfast.web.switch_verbs import SwitchVerbs

if TYPE_CHECKING:
    from holdfast.web.switch_page import SwitchPage


@contextmanager
def page_of_switch(
    live: LiveSwitch, server: Server, families: Callable[[], Iterable[Metric]], events: Events, at: str
) -> Iterator[str]:
    """Serve the page of a running switch within the context, and yield its address with the token.

    ``families`` makes the switch's metrics. The switch's control socket has to be open.
    """
    pages: list[SwitchPage] = []

    async def build() -> None:
        await pages[0].tabs.build()

    with served(build, at, title=f"switch {live.device.device_id}: Holdfast") as address:
        from holdfast.web.switch_page import SwitchPage

        verbs = SwitchVerbs(live)
        with SwitchPage(metrics.about(live, server), families, verbs.grammar, Desk(verbs), events) as page:
            pages.append(page)
            yield address


__all__ = ["page_of_switch"]
