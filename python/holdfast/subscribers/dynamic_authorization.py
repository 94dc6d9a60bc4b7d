"""A dynamic authorization server (RFC 5176): CoA and Disconnect requests for a gateway's sessions. Sans I/O.

A request needs a client that we know, a Message-Authenticator and an Event-Timestamp (unless these are waived), and is obeyed once:
:mod:`replays` says which one is new.
"""

from __future__ import annotations

import logging
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Any

from pyrad import packet as pyrad

from holdfast.subscribers import radius
from holdfast.subscribers import radius_attributes as avp
from holdfast.subscribers.configuration import Radius
from holdfast.subscribers.gateway import Gateway
from holdfast.subscribers.radius_servers import DICTIONARY, whole
from holdfast.subscribers.replays import Replays, Sender
from holdfast.subscribers.session import Phase, PppSession

log = logging.getLogger(__name__)

UNSUPPORTED_ATTRIBUTE, MISSING_ATTRIBUTE, NAS_MISMATCH, INVALID_REQUEST = 401, 402, 403, 404
UNSUPPORTED_SERVICE, SESSION_NOT_FOUND, RESOURCES_UNAVAILABLE, MULTIPLE_SESSIONS = 405, 503, 506, 508
"""Error-Cause (section 3.6)."""

_IDENTIFIES_NAS = {avp.NAS_IP_ADDRESS, avp.NAS_IDENTIFIER, avp.NAS_IPV6_ADDRESS}
_SETS: set[avp.Key] = {
    avp.WISPR_MAX_UP,
    avp.WISPR_MAX_DOWN,
    avp.SESSION_TIMEOUT,
    avp.IDLE_TIMEOUT,
    avp.ACCT_INTERIM_INTERVAL,
}
_HARMLESS = {avp.EVENT_TIMESTAMP, avp.STATE, avp.PROXY_STATE, avp.MESSAGE_AUTHENTICATOR}


class DynamicAuthorization:
    """Answers requests. ``wall`` is Unix time."""

    def __init__(self, settings: Radius, gateway: Gateway) -> None:
        assert settings.dynamic_authorization is not None
        own = settings.dynamic_authorization
        self._secrets = {address: secret.encode() for address, secret in own.clients.items()}
        self._wants_signature, self._wants_time = own.require_message_authenticator, own.require_event_timestamp
        self._warned: set[tuple[str, IPv4Address | IPv6Address]] = set()
        self._settings, self._gateway = settings, gateway
        state = gateway.configuration.state
        kept = None if state is None else state.with_name(f"{state.name}-authorization")
        self._replays = Replays(own.window_s, gateway.wall(), kept)
        self.events: Counter[str] = Counter()

    def received(self, source: IPv4Address | IPv6Address, port: int, data: bytes, wall_s: float) -> bytes | None:
        """Return the answer to a datagram from a client; None if it must be silently discarded (RFC 5176, section 3.3).

        ``port``: the client's. ``wall_s``: the present time in s since 1970.
        """
        secret = self._secrets.get(source)
        if secret is None:
            self.events["unknown-client"] += 1
            return None
        try:
            request = pyrad.CoAPacket(secret=secret, dict=DICTIONARY, packet=data)
            good = request.code in (pyrad.CoARequest, pyrad.DisconnectRequest) and request.VerifyCoARequest()
            signed = avp.MESSAGE_AUTHENTICATOR in request
            good = good and whole(data) and (not signed or request.verify_message_authenticator())
            good = good and len(request.get(avp.MESSAGE_AUTHENTICATOR, [])) <= 1
        except (pyrad.PacketError, ValueError, KeyError, struct.error):
            good = signed = False
        if not good:
            self.events["invalid"] += 1
            return None
        if not signed and not self._lacks("Message-Authenticator", source, self._wants_signature):
            return None
        stamps = [
            int.from_bytes(each, "big") if len(each) == 4 else -1 for each in request.get(avp.EVENT_TIMESTAMP, [])
        ]
        if len(stamps) > 1 or -1 in stamps:
            self.events["invalid"] += 1
            return None
        if not stamps and not self._lacks("Event-Timestamp", source, self._wants_time):
            return None
        return self._answer(request, data[:20], (source, port), stamps[0] if stamps else None, wall_s)

    def _answer(self, request: Any, key: bytes, sender: Sender, stamp_s: int | None, wall_s: float) -> bytes | None:
        """Execute a new request, and return the answer to it; None if it is ignored.

        ``key``: its first 20 bytes, by which a repetition is recognised. ``stamp_s``: its Event-Timestamp, None if it has none.
        ``wall_s``: the present time in s since 1970. A repeated request gets the answer that was sent before, if the same client
        repeats it; it is not executed again.
        """
        now = self._gateway.clock.now()
        hindrance = self._replays.hindrance(key, stamp_s, wall_s)
        if hindrance is not None:
            self.events[hindrance] += 1
            if hindrance == "repeated":
                return self._replays.answer(key, sender, now)
            return self._reply(request, RESOURCES_UNAVAILABLE) if hindrance == "busy" else None
        self._replays.take(key, stamp_s, wall_s)
        answer = self._reply(request, self._obey(request))
        self._replays.answered(key, sender, now, answer)
        return answer

    def _reply(self, request: Any, error: int) -> bytes:
        disconnect = request.code == pyrad.DisconnectRequest
        self.events[("disconnect" if disconnect else "coa") + ("-nak" if error else "-ack")] += 1
        reply = request.CreateReply()
        if error:
            reply.code = pyrad.DisconnectNAK if disconnect else pyrad.CoANAK
            reply[avp.ERROR_CAUSE] = [error.to_bytes(4, "big")]
        if avp.STATE in request:
            reply[avp.STATE] = request[avp.STATE]
        reply.add_message_authenticator()
        answer: bytes = reply.ReplyPacket()
        return answer

    def _lacks(self, name: str, source: IPv4Address | IPv6Address, wanted: bool) -> bool:
        """Handle a request that lacks the attribute ``name``; return True if it is accepted, which is so if not ``wanted``.

        The request is counted, and the first one of each client is logged.
        """
        setting = f"require_{name.lower().replace('-', '_')}"
        self.events["unsigned" if name == "Message-Authenticator" else "undated"] += 1
        if (name, source) not in self._warned:
            self._warned.add((name, source))
            done = f"dropped; dynamic_authorization.{setting}: false takes them"
            log.warning(
                "CoA and Disconnect requests of %s have no %s and are %s",
                source,
                name,
                done if wanted else "taken, as the configuration says",
            )
        return not wanted

    def _obey(self, request: Any) -> int:
        """Carry out a CoA or Disconnect request. Returns 0, or the Error-Cause if that fails."""
        if not self._is_ours(request):
            return NAS_MISMATCH
        if avp.SERVICE_TYPE in request:
            return UNSUPPORTED_SERVICE
        attributes = {kind for kind in request if kind not in _IDENTIFIES_NAS and kind not in _HARMLESS}
        identifying = {kind for kind in attributes if kind in _IDENTIFIERS}
        wishes = attributes - identifying
        if not wishes <= (_SETS if request.code == pyrad.CoARequest else set()):
            return UNSUPPORTED_ATTRIBUTE
        if not identifying or (request.code == pyrad.CoARequest and not wishes):
            return MISSING_ATTRIBUTE
        if any(len(request[kind]) != 1 for kind in attributes):
            return INVALID_REQUEST
        if not all(avp.rule(kind).serves(request[kind][0]) for kind in wishes):
            return INVALID_REQUEST
        named = {kind: request[kind][0] for kind in identifying}
        found = [each for each in self._candidates(named) if each.phase is Phase.NETWORK and _is_named(each, named)]
        if not found:
            return SESSION_NOT_FOUND
        if len(found) > 1:
            return MULTIPLE_SESSIONS
        session = found[0]
        if request.code == pyrad.DisconnectRequest:
            self._gateway.kick([session.id])
            self._gateway.flush()
            return RESOURCES_UNAVAILABLE if self._gateway.may_forward(session) else 0
        return self._change(session, request)

    def _candidates(self, named: dict[avp.Key, bytes]) -> list[PppSession]:
        """Return the sessions that a request may mean: the one of its NAS-Port, or all sessions if it has no NAS-Port."""
        if avp.NAS_PORT not in named:
            return list(self._gateway.sessions.values())
        session = self._gateway.sessions.get(int.from_bytes(named[avp.NAS_PORT], "big"))
        return [] if session is None else [session]

    def _is_ours(self, request: Any) -> bool:
        settings = self._settings
        ours: dict[avp.Key, bytes | None] = {
            avp.NAS_IDENTIFIER: settings.nas_identifier.encode(),
            avp.NAS_IP_ADDRESS: None if settings.nas_address is None else settings.nas_address.packed,
            avp.NAS_IPV6_ADDRESS: None,
        }
        return all(value == mine for kind, mine in ours.items() for value in request.get(kind, []))

    def _change(self, session: PppSession, request: Any) -> int:
        """Set the limits that a CoA request names and keep the others. Returns 0, or the Error-Cause if that fails."""
        assert session.grant is not None
        grant, wanted = session.grant, radius.rates(request)

        def named(kind: int, old: int) -> int:
            value = radius.number(request, kind)
            return old if value is None else value

        changed = replace(
            grant,
            session_timeout_s=named(avp.SESSION_TIMEOUT, grant.session_timeout_s),
            idle_timeout_s=named(avp.IDLE_TIMEOUT, grant.idle_timeout_s),
            interim_s=named(avp.ACCT_INTERIM_INTERVAL, grant.interim_s),
        )
        if wanted is not None:
            old = grant.session.rates
            up = wanted.up_bit_s if avp.WISPR_MAX_UP in request else old.up_bit_s
            down = wanted.down_bit_s if avp.WISPR_MAX_DOWN in request else old.down_bit_s
            changed = replace(changed, session=replace(grant.session, rates=replace(old, up_bit_s=up, down_bit_s=down)))
        return 0 if self._gateway.change(session, changed) is None else RESOURCES_UNAVAILABLE


def _is_named(session: PppSession, named: dict[avp.Key, bytes]) -> bool:
    """Return True if a session matches all of a request's attributes that identify sessions."""
    return all(_IDENTIFIERS[kind](session, value) for kind, value in named.items())


def _address(session: PppSession, value: bytes) -> bool:
    assert session.grant is not None
    address = session.grant.session.ipv4
    return address is not None and address.packed == value


def _prefix(of: Callable[[PppSession], IPv6Network | None]) -> Callable[[PppSession, bytes], bool]:
    """Return a function that compares the prefix that ``of`` returns for a session with an attribute's value.

    Prefixes are compared, not their octets: an attribute may have more octets than needed (RFC 3162, section 2.3).
    """

    def fits(session: PppSession, value: bytes) -> bool:
        prefix = radius.prefix(value)
        return prefix is not None and prefix == of(session)

    return fits


def _advertised(session: PppSession) -> IPv6Network | None:
    return None if session.grant is None else session.grant.session.ipv6_prefix


def _delegated(session: PppSession) -> IPv6Network | None:
    return None if session.grant is None else session.grant.session.delegated


_IDENTIFIERS: dict[avp.Key, Callable[[PppSession, bytes], bool]] = {
    avp.USER_NAME: lambda session, value: session.user == value,
    avp.NAS_PORT: lambda session, value: session.id.to_bytes(4, "big") == value,
    avp.NAS_PORT_ID: lambda session, value: radius.port_id(session.line).encode() == value,
    avp.CALLING_STATION_ID: lambda session, value: radius.mac_text(session.mac).encode() == value,
    avp.ACCT_SESSION_ID: lambda session, value: session.accounting_id.encode() == value,
    avp.FRAMED_IP_ADDRESS: _address,
    avp.FRAMED_IPV6_PREFIX: _prefix(_advertised),
    avp.DELEGATED_IPV6_PREFIX: _prefix(_delegated),
    avp.FRAMED_INTERFACE_ID: lambda session, value: session.ipv6cp is not None and session.ipv6cp.theirs == value,
    avp.AGENT_CIRCUIT_ID: lambda session, value: session.request.circuit_id == value,
    avp.AGENT_REMOTE_ID: lambda session, value: session.request.remote_id == value,
}
"""For each attribute that identifies sessions (section 3), the function that compares a session with its value."""
