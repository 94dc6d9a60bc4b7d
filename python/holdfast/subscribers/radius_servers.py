"""Requests to RADIUS servers: identifiers, repetition, fail-over, and which server is alive (RFC 3539, section 3.4). Sans I/O.

It does not know what is asked. pyrad encodes packets and verifies answers.
"""

from __future__ import annotations

import logging
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyrad import packet as pyrad
from pyrad.dictionary import Dictionary

from holdfast.subscribers import radius_attributes as avp
from holdfast.subscribers.configuration import Radius
from holdfast.subscribers.plane import Clock

log = logging.getLogger(__name__)

DICTIONARY = Dictionary()
"""Empty: attributes are octets here. With none at all, pyrad would not take vendors' attributes apart."""

CHANNELS = 8
"""Source ports to each server and purpose: each has 256 requests under way (RFC 2865, section 2.5)."""

SLOTS = CHANNELS << 8

_ANSWERS = {
    pyrad.AccessRequest: (pyrad.AccessAccept, pyrad.AccessReject, pyrad.AccessChallenge),
    pyrad.AccountingRequest: (pyrad.AccountingResponse,),
    pyrad.StatusServer: (pyrad.AccessAccept, pyrad.AccountingResponse, pyrad.AccessReject),
}
"""FreeRADIUS without a policy for Status-Server rejects it, which is a sign of life, too."""

Transmit = Callable[[int, bool, int, bytes], None]
"""Sends a datagram to a server (its index), for accounting or not, from one of the channels."""


@dataclass(eq=False)
class Request:
    """Something asked for, until it is answered or given up.

    ``about`` is the user's name: what proves that a server is dead, and not the server of a user's realm behind it. ``unsigned``:
    servers whose answers lacked a signature. ``obsolete``: nobody waits for the answer, so it is not repeated. ``heard``: a server
    answered others while it kept silent.
    """

    accounting: bool
    build: Callable[[Any], None]
    answered: Callable[[Any], None]
    failed: Callable[[], None]
    about: bytes = b""
    code: int = pyrad.AccessRequest
    server: int = -1
    slot: int = -1
    packet: Any = None
    wire: bytes = b""
    tries: int = 0
    tried: set[int] = field(default_factory=set)
    began_s: float = 0.0
    cancel: Callable[[], None] | None = None
    unsigned: set[int] = field(default_factory=set)
    obsolete: bool = False
    heard: bool = False


@dataclass(eq=False)
class _Path:
    """A server's port for one purpose. ``dead_until``: None while it is alive, else the time of the next request that tries it."""

    server: int
    accounting: bool
    under_way: dict[int, Request] = field(default_factory=dict)
    next_slot: int = 0
    heard_s: float = float("-inf")
    dead_until: float | None = None
    silent: set[bytes] = field(default_factory=set)
    """Realms and users without a realm that were not answered since anybody was."""
    watchdog: Request | None = None
    has_watchdog: bool = False
    """It has answered a Status-Server once, so that it is proof if it does not."""


class Servers:
    """Sends each request to the first server that is alive, and to the next one if it does not answer ``tries`` times.

    A request without an answer says little about a server: a proxy is silent if the server of a user's realm is. So the request
    alone goes to the next server, and others do not, unless the server is dead: since the request began it has answered nobody, and
    neither a Status-Server (RFC 5997), if it ever answered one, nor another user of another realm. So is one that does not sign
    what it must. A dead one is passed over for ``dead_s``; then one request in ``timeout_s`` tries it, and any answer shows that it
    is back.
    """

    def __init__(
        self, settings: Radius, clock: Clock, transmit: Transmit, random: Callable[[int], bytes], events: Counter[str]
    ) -> None:
        self._settings, self._clock, self._transmit, self._random = settings, clock, transmit, random
        self._events = events
        self._paths = {
            (server, accounting): _Path(server, accounting)
            for server in range(len(settings.servers))
            for accounting in (False, True)
        }
        self._warned: set[int] = set()
        self.nas: list[tuple[int, bytes]] = []
        if settings.nas_identifier:
            self.nas.append((avp.NAS_IDENTIFIER, settings.nas_identifier.encode()))
        if settings.nas_address is not None:
            self.nas.append((avp.NAS_IP_ADDRESS, settings.nas_address.packed))

    def dead_until(self, accounting: bool) -> list[float | None]:
        """Return for each server the clock's time in seconds at which it is tried again; None for a server that is alive.

        ``accounting``: True for the servers' accounting ports, False for their authentication ports.
        """
        return [path.dead_until for path in self._paths.values() if path.accounting is accounting]

    def under_way(self) -> list[Request]:
        """Return the requests that wait for an answer, except Status-Server requests."""
        requests = [each for path in self._paths.values() for each in path.under_way.values()]
        return [each for each in requests if each.code != pyrad.StatusServer]

    def send(self, request: Request) -> None:
        """Send a request to the best server that has not had it.

        Calls ``request.failed`` if there is none, or no free identifier.
        """
        path = self._choose(request)
        slot = None if path is None else _free_slot(path)
        if path is None or slot is None:
            request.failed()
            return
        request.tried.add(path.server)
        if path.dead_until is not None:
            path.dead_until = self._clock.now() + self._settings.timeout_s
        self._begin(request, path, slot)

    def received(self, server: int, accounting: bool, channel: int, data: bytes) -> None:
        """Process a datagram that a server sent to ``channel``: the answer to a request, or one to ignore.

        ``accounting``: True for the server's accounting port, False for its authentication port.
        """
        if len(data) < 20:
            self._events["malformed"] += 1
            return
        path = self._paths[server, accounting]
        request = path.under_way.get(channel << 8 | data[1])
        if request is None:
            self._events["late"] += 1
            return
        reply = self._verified(request, data)
        if reply is None:
            return
        path.heard_s, path.dead_until = self._clock.now(), None
        path.silent.clear()
        self.release(request)
        request.answered(reply)

    def release(self, request: Request) -> None:
        """End a request: its identifier becomes free, and an answer that comes later is ignored."""
        if request.cancel is not None:
            request.cancel()
            request.cancel = None
        path = self._paths.get((request.server, request.accounting))
        if path is not None and path.under_way.get(request.slot) is request:
            del path.under_way[request.slot]

    def _choose(self, request: Request) -> _Path | None:
        now = self._clock.now()
        rest = [
            path
            for path in self._paths.values()
            if path.accounting is request.accounting and path.server not in request.tried
        ]
        for path in rest:
            if path.dead_until is None or path.dead_until <= now:
                return path
        # All are dead: the one that has been so for longest, since something must be tried.
        return min(rest, key=lambda path: path.dead_until or 0.0, default=None)

    def _begin(self, request: Request, path: _Path, slot: int, tries: int = 0) -> None:
        secret = self._settings.servers[path.server].secret.encode()
        request.server, request.slot, request.tries = path.server, slot, tries
        request.began_s = self._clock.now()
        identifier = slot & 0xFF
        if request.code == pyrad.AccountingRequest:
            request.packet = pyrad.AcctPacket(id=identifier, secret=secret, dict=DICTIONARY)
        else:
            request.packet = pyrad.AuthPacket(
                code=request.code, id=identifier, secret=secret, authenticator=self._random(16), dict=DICTIONARY
            )
        request.build(request.packet)
        request.wire = request.packet.RequestPacket()
        path.under_way[slot] = request
        self._try(request)

    def _try(self, request: Request) -> None:
        """Send a request and set the timer for its repetition; the delay doubles with each repetition (RFC 5080, section 2.2.1)."""
        delay = self._settings.timeout_s * 2**request.tries
        request.tries += 1
        self._events["status-sent" if request.code == pyrad.StatusServer else "sent"] += 1
        request.cancel = self._clock.call_later(delay, lambda: self._timeout(request))
        self._transmit(request.server, request.accounting, request.slot >> 8, request.wire)

    def _timeout(self, request: Request) -> None:
        request.cancel = None
        path = self._paths[request.server, request.accounting]
        if request.obsolete:
            self.release(request)
            request.failed()
            return
        silent = path.heard_s < request.began_s
        if silent and request.code != pyrad.StatusServer:
            self._watch(path, request.tries)
        if request.tries < self._settings.tries:
            self._events["repeated"] += request.code != pyrad.StatusServer
            self._try(request)
            return
        self.release(request)
        if request.code == pyrad.StatusServer:
            path.watchdog = None
            if silent and path.has_watchdog:
                self._bury(path)
            return
        if path.server in request.unsigned:  # its answers count for nobody
            self._bury(path)
        elif silent:
            path.silent.add(_realm(request.about))
            if len(path.silent) > 1 or path.dead_until is not None:
                self._bury(path)
        else:
            request.heard = True
            self._events["passed-on"] += 1
        self.send(request)

    def _watch(self, path: _Path, tries: int) -> None:
        """Send a Status-Server to a server that has not answered a request, with the same times of repetition as the request.

        A Status-Server names no user, so that the server answers it itself and no server of a realm has to. Nothing is sent if
        there is one server only, as it is used in any case.
        """
        slot = _free_slot(path)
        if path.watchdog is not None or path.dead_until is not None or slot is None:
            return
        if len(self._settings.servers) < 2 or not self._settings.status_server:
            return

        def build(packet: Any) -> None:
            for kind, value in self.nas:
                packet.setdefault(kind, []).append(value)
            packet.add_message_authenticator()

        def answered(_: Any) -> None:
            self._events["status-answered"] += 1
            path.watchdog, path.has_watchdog = None, True

        path.watchdog = Request(path.accounting, build, answered, lambda: None, code=pyrad.StatusServer)
        self._begin(path.watchdog, path, slot, min(tries, self._settings.tries - 1))

    def _bury(self, path: _Path) -> None:
        """Mark a server as dead, and send the requests that wait for it to another server if one is alive."""
        self._events["dead"] += path.dead_until is None
        path.dead_until = self._clock.now() + self._settings.dead_s
        for each in list(path.under_way.values()):
            if each is not path.watchdog and self._is_elsewhere(each):
                self.release(each)
                self.send(each)

    def _is_elsewhere(self, request: Request) -> bool:
        return any(
            path.accounting is request.accounting and path.server not in request.tried and path.dead_until is None
            for path in self._paths.values()
        )

    def _verified(self, request: Request, data: bytes) -> Any:
        """Return the parsed answer in a datagram; None if the answer is not valid.

        An invalid answer is ignored, as if nothing had arrived (RFC 2865, section 3).
        """
        try:
            reply = request.packet.CreateReply(packet=data)
            good = reply.code in _ANSWERS[request.code] and whole(data) and request.packet.VerifyReply(reply, data)
        except (pyrad.PacketError, ValueError, KeyError, struct.error):
            good = False
        if not good:  # forged, or the secrets differ
            self._events["invalid"] += 1
            return None
        if (
            self._settings.require_message_authenticator
            and request.code == pyrad.AccessRequest
            and avp.MESSAGE_AUTHENTICATOR not in reply
        ):
            request.unsigned.add(request.server)
            self._events["unsigned"] += 1
            self._warn_unsigned(request.server)
            return None
        return reply

    def _warn_unsigned(self, server: int) -> None:
        if server not in self._warned:
            self._warned.add(server)
            log.warning(
                "RADIUS server %s answers without Message-Authenticator, so its answers do not count. Have it sign them "
                "(FreeRADIUS before 3.2.5: Message-Authenticator := 0x00 in its reply list), or set "
                "require_message_authenticator: false",
                self._settings.servers[server].host,
            )


def _free_slot(path: _Path) -> int | None:
    for step in range(SLOTS):
        slot = (path.next_slot + step) % SLOTS
        if slot not in path.under_way:
            path.next_slot = slot + 1
            return slot
    return None


def _realm(user: bytes) -> bytes:
    """Return the user's realm with its "@", or the whole name if it has no realm.

    The silence of a server is counted by this value.
    """
    _, at, realm = user.rpartition(b"@")
    return at + realm if at else user


def whole(data: bytes) -> bool:
    """Return True if the attributes of a packet fill its length, each at least 2 octets long."""
    at, end = 20, int.from_bytes(data[2:4], "big")
    while at + 2 <= end and data[at + 1] >= 2:
        at += data[at + 1]
    return at == end
