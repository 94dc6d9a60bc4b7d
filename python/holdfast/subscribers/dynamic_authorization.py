"""A dynamic authorization server (RFC 5176): CoA and Disconnect requests for a gateway's sessions. Sans I/O.

A request needs a Message-Authenticator, a client that we know, and, if it has an Event-Timestamp, a time that is not long ago.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from pyrad import packet as pyrad

from holdfast.subscribers import radius
from holdfast.subscribers.configuration import Radius
from holdfast.subscribers.gateway import Gateway
from holdfast.subscribers.session import PppSession

UNSUPPORTED_ATTRIBUTE, MISSING_ATTRIBUTE, NAS_MISMATCH, INVALID_REQUEST = 401, 402, 403, 404
UNSUPPORTED_SERVICE, SESSION_NOT_FOUND, MULTIPLE_SESSIONS = 405, 503, 508
"""Error-Cause (section 3.6)."""

_ERROR_CAUSE, _STATE, _PROXY_STATE, _MESSAGE_AUTHENTICATOR = 101, 24, 33, 80
_IDENTIFIES_NAS = {radius.NAS_IP_ADDRESS, radius.NAS_IDENTIFIER}
_SETS = {
    radius.WISPR_MAX_UP,
    radius.WISPR_MAX_DOWN,
    radius.SESSION_TIMEOUT,
    radius.IDLE_TIMEOUT,
    radius.ACCT_INTERIM_INTERVAL,
}
_HARMLESS = {radius.EVENT_TIMESTAMP, _STATE, _PROXY_STATE, _MESSAGE_AUTHENTICATOR}
_REMEMBERED = 1024


class DynamicAuthorization:
    """Answers requests. ``wall`` is Unix time."""

    def __init__(self, settings: Radius, gateway: Gateway) -> None:
        assert settings.dynamic_authorization is not None
        own = settings.dynamic_authorization
        self._secrets = {address: secret.encode() for address, secret in own.clients.items()}
        self._window_s = own.window_s
        self._settings, self._gateway = settings, gateway
        self._answers: OrderedDict[tuple[IPv4Address | IPv6Address, int, bytes], bytes] = OrderedDict()
        self.events: Counter[str] = Counter()

    def received(self, source: IPv4Address | IPv6Address, port: int, data: bytes, wall_s: float) -> bytes | None:
        """The answer to a datagram; None for what is to be silently discarded (section 3.3)."""
        secret = self._secrets.get(source)
        if secret is None:
            self.events["unknown-client"] += 1
            return None
        try:
            request = pyrad.CoAPacket(secret=secret, dict=radius.DICTIONARY, packet=data)
            good = request.code in (pyrad.CoARequest, pyrad.DisconnectRequest) and request.VerifyCoARequest()
            signed = good and request.get(_MESSAGE_AUTHENTICATOR) and request.verify_message_authenticator()
        except (pyrad.PacketError, ValueError, KeyError, struct.error):
            good = signed = False
        if not good or not signed:
            self.events["invalid" if not good else "unsigned"] += 1
            return None
        # A repetition gets the same answer, and nothing is done twice (section 2.3).
        key = source, port, data[1:20]
        again = self._answers.get(key)
        if again is not None:
            self.events["repeated"] += 1
            return again
        stamp = radius.number(request, radius.EVENT_TIMESTAMP)
        if stamp is not None and abs(wall_s - stamp) > self._window_s:
            self.events["stale"] += 1
            return None
        error = self._obey(request)
        disconnect = request.code == pyrad.DisconnectRequest
        self.events[("disconnect" if disconnect else "coa") + ("-nak" if error else "-ack")] += 1
        reply = request.CreateReply()
        if error:
            reply.code = pyrad.DisconnectNAK if disconnect else pyrad.CoANAK
            reply[_ERROR_CAUSE] = [error.to_bytes(4, "big")]
        if _STATE in request:
            reply[_STATE] = request[_STATE]
        reply.add_message_authenticator()
        answer: bytes = reply.ReplyPacket()
        self._answers[key] = answer
        if len(self._answers) > _REMEMBERED:
            self._answers.popitem(last=False)
        return answer

    def _obey(self, request: Any) -> int:
        """Does what is asked for; the Error-Cause if it cannot, else 0."""
        if not self._is_ours(request):
            return NAS_MISMATCH
        if radius.SERVICE_TYPE in request:
            return UNSUPPORTED_SERVICE
        attributes = {kind for kind in request if kind not in _IDENTIFIES_NAS and kind not in _HARMLESS}
        identifying = {kind for kind in attributes if kind in _IDENTIFIERS}
        wishes = attributes - identifying
        if not identifying:
            return MISSING_ATTRIBUTE
        if not wishes <= (_SETS if request.code == pyrad.CoARequest else set()):
            return UNSUPPORTED_ATTRIBUTE
        found = [
            each
            for each in self._candidates(request)
            if each.established and all(_IDENTIFIERS[kind](each) in request[kind] for kind in identifying)
        ]
        if not found:
            return SESSION_NOT_FOUND
        if len(found) > 1:
            return MULTIPLE_SESSIONS
        session = found[0]
        if request.code == pyrad.DisconnectRequest:
            self._gateway.kick([session.id])
            return 0
        if not wishes:
            return MISSING_ATTRIBUTE
        if any(len(request[kind]) != 1 or len(request[kind][0]) != 4 for kind in wishes):
            return INVALID_REQUEST
        self._change(session, request)
        return 0

    def _candidates(self, request: Any) -> list[PppSession]:
        """Sessions to look at: one, if the request names its number; else all."""
        number = radius.number(request, radius.NAS_PORT)
        if number is None:
            return list(self._gateway.sessions.values())
        session = self._gateway.sessions.get(number)
        return [] if session is None else [session]

    def _is_ours(self, request: Any) -> bool:
        settings = self._settings
        for value in request.get(radius.NAS_IDENTIFIER, []):
            if value != settings.nas_identifier.encode():
                return False
        return all(
            settings.nas_address is not None and value == settings.nas_address.packed
            for value in request.get(radius.NAS_IP_ADDRESS, [])
        )

    def _change(self, session: PppSession, request: Any) -> None:
        """Limits that a CoA names; the others stay."""
        assert session.grant is not None
        grant, wanted = session.grant, radius.rates(request)

        def named(kind: int, old: int) -> int:
            value = radius.number(request, kind)
            return old if value is None else value

        session.grant = replace(
            grant,
            session_timeout_s=named(radius.SESSION_TIMEOUT, grant.session_timeout_s),
            idle_timeout_s=named(radius.IDLE_TIMEOUT, grant.idle_timeout_s),
            interim_s=named(radius.ACCT_INTERIM_INTERVAL, grant.interim_s),
        )
        if wanted is not None:
            old = grant.session.rates
            up = wanted.up_bit_s if radius.WISPR_MAX_UP in request else old.up_bit_s
            down = wanted.down_bit_s if radius.WISPR_MAX_DOWN in request else old.down_bit_s
            session.change_rates(replace(old, up_bit_s=up, down_bit_s=down))
        else:
            self._gateway.changed(session)
        self._gateway.flush()  # an ACK says that it is done


_IDENTIFIERS: dict[Any, Any] = {
    radius.USER_NAME: lambda session: session.user,
    radius.NAS_PORT: lambda session: session.id.to_bytes(4, "big"),
    radius.NAS_PORT_ID: lambda session: radius.port_id(session.line).encode(),
    radius.CALLING_STATION_ID: lambda session: radius.mac_text(session.mac).encode(),
    radius.ACCT_SESSION_ID: lambda session: session.accounting_id.encode(),
    radius.FRAMED_IP_ADDRESS: lambda session: session.grant.session.ipv4 and session.grant.session.ipv4.packed,
}
