"""A gateway on this machine's clock and network: timers of asyncio, sockets for RADIUS, and sockets for operators and Prometheus.

It knows no user plane but the interface, whose frames may come from any thread.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import secrets
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from ipaddress import IPv4Address, ip_address
from typing import Any, TypeVar, cast

from prometheus_client import Metric

from holdfast.errors import LiveError
from holdfast.operations.pages import Pages
from holdfast.operations.verbs import Answer, OperatorSocket, RefusedError
from holdfast.subscribers import metrics
from holdfast.subscribers.accounting import Cause, Kind
from holdfast.subscribers.configuration import Configuration, RadiusServer
from holdfast.subscribers.dynamic_authorization import DynamicAuthorization
from holdfast.subscribers.frame_turns import FrameTurns, is_beginning
from holdfast.subscribers.gateway import Gateway, Nobody, Reconciled
from holdfast.subscribers.loop_clock import AsyncClock
from holdfast.subscribers.operator_requests import (
    REQUESTS,
    DrainAnswer,
    HandOverAnswer,
    Kick,
    KickAnswer,
    Request,
    SessionRow,
    Sessions,
    SessionsAnswer,
    operator_socket,
)
from holdfast.subscribers.plane import Behind, ForwardingPlanes, Line, UserPlane
from holdfast.subscribers.radius import RadiusClient
from holdfast.subscribers.radius_servers import CHANNELS
from holdfast.subscribers.store import SqliteStore
from holdfast.subscribers.users import UserList

_BURST = 64
"""The most frames that are handled before the event loop gets to timers and sockets."""

_COMMIT_S = 0.02

_FAREWELL_S = 3.0
"""The time that a gateway without sessions waits at its end for the acknowledgment of what it has accounted."""

_GOODBYE_S = 3.0
"""The time that subscribers have to answer a Terminate-Request when the gateway ends: one Restart timer (RFC 1661, section 4.6)."""

_ANSWER_S = 120.0
"""The time that an operator's request may take: a plane with many sessions is handed over, and packets may be on their way long."""

T = TypeVar("T")


class BufferedRandom:
    """The kernel's random bytes, fetched many at a time: a session takes a dozen small pieces."""

    def __init__(self) -> None:
        self._buffer = b""

    def __call__(self, size: int) -> bytes:
        """Return ``size`` unpredictable bytes; no byte is returned twice."""
        if size > len(self._buffer):
            self._buffer = secrets.token_bytes(max(size, 4096))
        given, self._buffer = self._buffer[:size], self._buffer[size:]
        return given


class HandedOver(Behind):
    """A user plane whose frames are taken to the event loop's thread, in turns (:class:`FrameTurns`).

    ``overflowed`` counts frames that had no room.
    """

    def __init__(self, plane: UserPlane, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(plane)
        self._loop = loop
        self._turns = FrameTurns()
        self._lock = threading.Lock()
        self._scheduled = False
        self._handler: Callable[[Line, bytes], None] | None = None
        plane.receive(self._put)

    @property
    def overflowed(self) -> int:
        """Return how many frames were dropped, as too many waited."""
        return self._turns.overflowed

    def _put(self, line: Line, frame: bytes) -> None:
        """Hand a frame over to the event loop's thread. The user plane calls this in its own thread."""
        with self._lock:
            self._turns.put(line, frame)
            awake, self._scheduled = self._scheduled, True
        if not awake and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._take)

    def _take(self) -> None:
        try:
            self._handle_burst()
        finally:
            with self._lock:
                more = self._scheduled = len(self._turns) > 0
            if more:
                self._loop.call_soon(self._take)

    def _handle_burst(self) -> None:
        """Handle up to ``_BURST`` frames, so that the event loop gets to timers and sockets. A PADI is the last one of a burst."""
        for _ in range(_BURST):
            with self._lock:
                taken = self._turns.take()
            if taken is None:
                return
            line, frame = taken
            if self._handler is not None:
                self._handler(line, frame)
            if is_beginning(frame):
                return

    def receive(self, handler: Callable[[Line, bytes], None]) -> None:
        """Set the handler of discovery and PPP control frames, which is called in the event loop's thread."""
        self._handler = handler


class RadiusSockets:
    """UDP sockets to servers, one for each channel. They are connected, so that nobody else's answers come in."""

    def __init__(self, servers: tuple[RadiusServer, ...], loop: asyncio.AbstractEventLoop) -> None:
        self._servers, self._loop = servers, loop
        self._sockets: dict[tuple[int, bool, int], socket.socket] = {}
        self.client: RadiusClient | None = None

    def transmit(self, server: int, accounting: bool, channel: int, data: bytes) -> None:
        """Send a datagram to a server. If the kernel refuses it, it is lost, as on a network.

        ``accounting``: True for the server's accounting port, False for its authentication port. ``channel``: the number of the
        local socket, which is opened if it is not yet open.
        """
        key = server, accounting, channel
        if key not in self._sockets:
            self._sockets[key] = self._open(*key)
        try:
            self._sockets[key].send(data)
        except OSError:
            return

    def _open(self, server: int, accounting: bool, channel: int) -> socket.socket:
        settings = self._servers[server]
        port = settings.accounting_port if accounting else settings.authentication_port
        family = socket.AF_INET if isinstance(settings.host, IPv4Address) else socket.AF_INET6
        opened = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        opened.connect((str(settings.host), port))
        self._loop.add_reader(opened, self._read, opened, server, accounting, channel)
        return opened

    def _read(self, opened: socket.socket, server: int, accounting: bool, channel: int) -> None:
        for _ in range(CHANNELS):
            try:
                data = opened.recv(4096)
            except OSError:  # nothing there, or nobody listens at the other end
                return
            if self.client is not None:
                self.client.received(server, accounting, channel, data)

    def close(self) -> None:
        """Close all sockets."""
        for each in self._sockets.values():
            self._loop.remove_reader(each)
            each.close()


class _AuthorizationProtocol(asyncio.DatagramProtocol):
    def __init__(self, server: DynamicAuthorization) -> None:
        self._server = server
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, address: tuple[Any, ...]) -> None:
        answer = self._server.received(ip_address(address[0].partition("%")[0]), address[1], data, time.time())
        if answer is not None and self._transport is not None:
            self._transport.sendto(answer, address)


class Service:
    """A gateway with all that it needs around it; an asynchronous context manager."""

    def __init__(self, configuration: Configuration, plane: UserPlane, planes: ForwardingPlanes | None = None) -> None:
        """Create a gateway in the running event loop. Raises :class:`LiveError` if the state file cannot be opened.

        ``planes``: the forwarding planes that operators may drain, if the user plane has several.
        """
        loop = self._loop = asyncio.get_running_loop()
        self._planes = planes
        self._configuration = configuration
        self.plane = HandedOver(plane, loop)
        random = BufferedRandom()
        self.store = (
            None
            if configuration.state is None
            else SqliteStore(
                configuration.state, later=lambda delay_s, write: loop.call_later(delay_s or _COMMIT_S, write)
            )
        )
        self.radius: RadiusClient | None = None
        self._sockets: RadiusSockets | None = None
        clock = AsyncClock(loop)
        settings = configuration.radius
        authenticator: UserList | RadiusClient = UserList(configuration.users)
        if settings is not None:
            self._sockets = RadiusSockets(settings.servers, loop)
            self.radius = RadiusClient(
                settings,
                clock,
                self._sockets.transmit,
                random=random,
                wall=time.time,
                queue=self.store,
            )
            self._sockets.client = authenticator = self.radius
        self.gateway = Gateway(
            configuration,
            self.plane,
            clock,
            authenticator,
            random=random,
            accountant=Nobody() if self.radius is None else self.radius,
            store=self.store,
        )
        self.authorization = (
            DynamicAuthorization(settings, self.gateway)
            if settings is not None and settings.dynamic_authorization is not None
            else None
        )
        self.reconciled = Reconciled(0, 0, 0)
        self.addresses: dict[str, int] = {}
        self.shown: Pages | None = None
        self._closers: list[Callable[[], None]] = []

    async def __aenter__(self) -> Service:
        try:
            await self._listen()
        except BaseException as error:
            for each in self._closers:
                each()
            if isinstance(error, OSError):
                raise LiveError(f"cannot listen: {error}") from None
            raise
        self.reconciled = self.gateway.reconcile()
        if self.radius is not None and not self.gateway.sessions:
            self.radius.account_gateway(Kind.ON)
        self.gateway.start()
        return self

    async def _listen(self) -> None:
        name, loop = self._configuration.name, self._loop
        taken = f"a gateway named {name!r} is running"
        operators = OperatorSocket(
            operator_socket(name), taken, REQUESTS, lambda request: self._in_loop(self._obey(request))
        )
        self._closers.append(operators.close)
        settings = self._configuration.radius
        if self.authorization is not None and settings is not None and settings.dynamic_authorization is not None:
            authorization, own = self.authorization, settings.dynamic_authorization
            transport, _ = await loop.create_datagram_endpoint(
                lambda: _AuthorizationProtocol(authorization), local_addr=(str(own.host), own.port)
            )
            self._closers.append(transport.close)
            self.addresses["dynamic_authorization"] = transport.get_extra_info("sockname")[1]
        if self._configuration.metrics_port is not None:
            pages = Pages(
                lambda: self._in_loop(self._families()), self._configuration.metrics_port, about={"gateway": name}
            )
            self._closers.append(pages.close)
            self.shown, self.addresses["metrics"] = pages, pages.port

    def _in_loop(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine returns in the event loop's thread, which the gateway belongs to. Called from other threads.

        Raises :class:`RefusedError` if that takes longer than :data:`_ANSWER_S`, or the loop ends.
        """
        try:
            called = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:
            coroutine.close()
            raise RefusedError("it has ended", "UNAVAILABLE") from None
        try:
            return called.result(_ANSWER_S)
        except concurrent.futures.CancelledError:
            raise RefusedError("it has ended", "UNAVAILABLE") from None
        except TimeoutError:
            called.cancel()
            raise RefusedError("it has taken too long", "DEADLINE_EXCEEDED") from None

    async def __aexit__(self, *_: object) -> None:
        self.gateway.stop()
        remain = self.store is not None and any(each.counted for each in self.gateway.sessions.values())
        if self.radius is not None and not remain:
            await self._say_the_end(self.radius)
        for each in self._closers:
            each()
        if self._sockets is not None:
            self._sockets.close()
        if self.store is not None:
            self.store.close()

    async def _say_the_end(self, radius: RadiusClient) -> None:
        """Send Accounting-Off, as no session is kept, and wait briefly for the servers' answers.

        Unanswered records stay in the state file.
        """
        radius.account_gateway(Kind.OFF)
        loop = asyncio.get_running_loop()
        end_s = loop.time() + _FAREWELL_S
        while len(radius.queue) and loop.time() < end_s:
            await asyncio.sleep(0.01)

    async def end_sessions(self, patience_s: float = _GOODBYE_S) -> int:
        """End all sessions because their user plane ends; return how many there were. New sessions are refused.

        A subscriber gets a Terminate-Request and then a PADT; one that has not answered within ``patience_s`` seconds gets the PADT
        alone.
        """
        gateway, loop = self.gateway, asyncio.get_running_loop()
        gateway.drain()
        numbers, end_s = list(gateway.sessions), loop.time() + patience_s
        for first in range(0, len(numbers), _BURST):
            gateway.kick(numbers[first : first + _BURST], Cause.ADMIN_REBOOT)
            await asyncio.sleep(0)
        while gateway.sessions and loop.time() < end_s:
            await asyncio.sleep(0.01)
        for each in list(gateway.sessions.values()):
            each.vanish(Cause.ADMIN_REBOOT)
        gateway.flush()
        return len(numbers)

    async def _obey(self, request: Request) -> Answer:
        gateway = self.gateway
        if isinstance(request, Sessions):
            return SessionsAnswer(
                sessions=self.sessions(request.usage),
                draining=gateway.draining,
                refusals=dict(gateway.refusals),
                planes={} if self._planes is None else self._planes.planes,
                drained=[] if self._planes is None else sorted(self._planes.drained),
            )
        if isinstance(request, Kick):
            return KickAnswer(
                kicked=gateway.kick(list(gateway.sessions) if request.sessions == "all" else request.sessions)
            )
        if request.plane is not None:
            return await self._hand_over(request.verb, request.plane)
        (gateway.drain if request.verb == "drain" else gateway.undrain)()
        return DrainAnswer(sessions=len(gateway.sessions))

    async def _hand_over(self, verb: str, name: str) -> HandOverAnswer:
        """Drain or undrain a plane, and wait until its sessions are handed over.

        Raises :class:`LiveError` if there is only one plane.
        """
        if self._planes is None:
            raise LiveError("it has one plane, which hands nothing over")
        loop = asyncio.get_running_loop()
        done, began = asyncio.Event(), loop.time()
        (self._planes.drain if verb == "drain" else self._planes.undrain)(name, done.set)
        # The event loop's thread has written everything by now; it remains to wait while packets may be on their way.
        switched = loop.time()
        await done.wait()
        return HandOverAnswer(
            planes=self._planes.planes,
            switched_ms=round((switched - began) * 1000, 1),
            done_ms=round((loop.time() - began) * 1000, 1),
        )

    def sessions(self, with_usage: bool = False) -> list[SessionRow]:
        """Return a row for each session. ``with_usage`` reads traffic counts from the plane."""
        usages = self.plane.usage(self.gateway.sessions) if with_usage else {}
        rows = []
        for each in self.gateway.sessions.values():
            whole = each.wanted
            usage = each.usage_with(usages[each.id]) if each.id in usages else each.last_usage
            rows.append(
                SessionRow(
                    session=each.id,
                    user=each.user.decode(errors="backslashreplace"),
                    line=f"{each.line.port}:{each.line.s_tag}.{each.line.c_tag}",
                    mac=each.mac.hex(":"),
                    phase=each.phase.value,
                    ipv4=None if whole is None or whole.ipv4 is None else str(whole.ipv4),
                    ipv6=None if whole is None or whole.ipv6_prefix is None else str(whole.ipv6_prefix),
                    delegated=None if whole is None or whole.delegated is None else str(whole.delegated),
                    up_bit_s=None if whole is None else whole.rates.up_bit_s,
                    down_bit_s=None if whole is None else whole.rates.down_bit_s,
                    started_s=each.started_s,
                    bytes_up=usage.bytes_up,
                    bytes_down=usage.bytes_down,
                    packets_up=usage.packets_up,
                    packets_down=usage.packets_down,
                )
            )
        return rows

    async def _families(self) -> list[Metric]:
        self.gateway.drops["overflow"] = self.plane.overflowed
        return metrics.families(self.gateway, self.radius, self.authorization, self.store)
