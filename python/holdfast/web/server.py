"""Serves a page with its framework in a thread of its own, behind the guard. What the page shows is its builder's.

The framework keeps its state in the process, so a process has one page.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast.errors import ConsoleError
from holdfast.operations.pages import LOOPBACK, endpoint
from holdfast.web.guard import Guard

AT_LOOPBACK = f"{LOOPBACK}:0"
"""Where the page is if nobody says otherwise: a free port."""

START_S = 60.0
"""The framework has to be there within this time, also on a busy machine."""

MOST_CONNECTIONS = 64

_served = threading.Lock()


@contextmanager
def served(build: Callable[[], Any], at: str = AT_LOOPBACK, *, title: str, files: Path | None = None) -> Iterator[str]:
    """Serve a page within the context, and yield its address with the token.

    ``build`` is called in the framework's thread for each browser's tab. ``files``: a directory whose files the page offers at
    ``/files/NAME``. Raises :class:`ConsoleError` if the framework is not installed, or the address cannot be had.
    """
    try:
        import uvicorn
        from fastapi import FastAPI
        from nicegui import ui
    except ImportError as error:
        raise ConsoleError(f"--web needs the package {error.name}: pip install 'holdfast[web]'") from None
    host, port = endpoint("--web", at)
    if not _served.acquire(blocking=False):
        raise ConsoleError("this process has a page already")
    opened = _listening(host, port)
    host, port = opened.getsockname()[:2]
    application = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    if files is not None:
        from starlette.staticfiles import StaticFiles

        application.mount("/files", StaticFiles(directory=files))
    ui.run_with(
        application,
        root=build,
        title=title,
        dark=None,
        language="en-US",
        favicon=_ICON,
        tailwind=False,
        show_welcome_message=False,
        binding_refresh_interval=None,
        reconnect_timeout=10.0,
    )
    guard = Guard(application, name=f"holdfast-{port}")
    config = uvicorn.Config(
        guard,
        log_level="error",
        access_log=False,
        lifespan="on",
        proxy_headers=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=1,
        ws_max_size=1 << 20,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([opened],), name="holdfast-page", daemon=True)
    thread.start()
    try:
        _wait_for(server, thread)
        yield f"http://{_authority(host, port)}/?token={guard.token}"
    finally:
        server.should_exit = True
        thread.join(START_S)
        opened.close()


def _wait_for(server: Any, thread: threading.Thread) -> None:
    pause = threading.Event()
    for _ in range(round(START_S / 0.02)):
        if server.started:
            return
        if not thread.is_alive():
            break
        pause.wait(0.02)
    raise ConsoleError("--web: the page has not started")


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        _served.release()
        raise ConsoleError(f"--web: cannot serve a page at {_authority(host, port)}: {error}") from None


def _authority(host: str, port: int) -> str:
    """Return host and port as a browser of this machine asks for them."""
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_unspecified:
            host = "::1" if ":" in host else LOOPBACK
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><path d="M6 8 26 8 16 26z" fill="none" stroke="#0b57a4"'
    ' stroke-width="2"/><g fill="#0b57a4"><rect x="2" y="4" width="8" height="8"/><rect x="22" y="4" width="8" height="8"/>'
    '<rect x="12" y="21" width="8" height="8"/></g></svg>'
)

__all__ = ["AT_LOOPBACK", "served"]
