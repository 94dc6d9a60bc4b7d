"""The gateway's side of LCP (RFC 1661): MRU, authentication protocol, magic number, echo and Protocol-Reject."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import ClassVar, Protocol

from holdfast.subscribers import ppp
from holdfast.subscribers.plane import Clock
from holdfast.subscribers.pppoe import MRU


class Authentication(Enum):
    """The value of option 3 (RFC 1661, section 6.2; RFC 1994, section 3)."""

    CHAP = b"\xc2\x23\x05"
    PAP = b"\xc0\x23"


LEAST_MRU = 576
"""The smallest MRU that we take: below it IPv4 hosts may not reassemble (RFC 791), and IPv6 needs 1,280 of its own."""

DEFAULT_MRU = 1500
"""The MRU of a peer that names none (RFC 1661, section 6.1). Over Ethernet no more than the line takes (RFC 2516, section 7)."""

_MRU, _AUTHENTICATION, _MAGIC = 1, 3, 5


class Owner(Protocol):
    """The receiver of a link's notifications."""

    def link_up(self) -> None:
        """Handle the event that LCP has opened."""

    def link_down(self) -> None:
        """Handle the event that LCP is no longer open."""

    def link_finished(self) -> None:
        """Handle the event that LCP was terminated, or that its negotiation failed."""

    def protocol_rejected(self, protocol: int) -> None:
        """Handle a Protocol-Reject, by which the peer says that it does not know a protocol."""

    def echo_replied(self) -> None:
        """Handle an Echo-Reply of the peer."""


class Lcp(ppp.Automaton):
    """LCP of one session. After it is opened, ``peer_mru`` is what the subscriber takes and ``magic`` our number.

    ``mru``: the largest payload of the line. Each method of ``authentication`` is offered once.
    """

    protocol: ClassVar[ppp.Protocol] = ppp.Protocol.LCP
    indispensable: ClassVar[frozenset[int]] = frozenset((_AUTHENTICATION,))

    def __init__(
        self,
        owner: Owner,
        send: Callable[[int, bytes], None],
        clock: Clock,
        restart: ppp.Restart,
        *,
        mru: int,
        authentication: tuple[Authentication, ...],
        random: Callable[[int], bytes],
    ) -> None:
        super().__init__(send, clock, restart)
        self._owner, self._random = owner, random
        self._limit, self._mru = mru, mru
        self._methods = list(authentication)
        self.magic = self._number()
        self.peer_mru = min(mru, MRU)

    @property
    def authentication(self) -> Authentication:
        """The authentication method that is offered to the peer, or agreed with it."""
        return self._methods[0]

    def _number(self) -> int:
        return int.from_bytes(self._random(4), "big") or 1

    def wishes(self) -> ppp.Options:
        """Return our options: MRU, authentication protocol and magic number."""
        return (
            (_MRU, self._mru.to_bytes(2, "big")),
            (_AUTHENTICATION, self.authentication.value),
            (_MAGIC, self.magic.to_bytes(4, "big")),
        )

    def judge(self, options: ppp.Options) -> tuple[ppp.Options, ppp.Options]:
        """Return the peer's options to reject, and those to change, with values that would be accepted.

        Accepted are an MRU from 576 to our own, and a magic number other than 0 and ours; other values of these are to be changed.
        An MRU or a magic number of a wrong length and all other options are rejected.

        The gateway does not authenticate itself to the subscriber, and fields are not compressed (RFC 2516, section 7).
        """
        reject, nak = [], []
        for kind, data in options:
            if kind == _MRU and len(data) == 2:
                mru = int.from_bytes(data, "big")
                if not LEAST_MRU <= mru <= self._limit:
                    nak.append((kind, min(max(mru, LEAST_MRU), self._limit).to_bytes(2, "big")))
            elif kind == _MAGIC and len(data) == 4:
                number = int.from_bytes(data, "big")
                # Our own number: the line may be looped back (section 6.4). Zero is no number.
                if number in (0, self.magic):
                    nak.append((kind, self._number().to_bytes(4, "big")))
            else:
                reject.append((kind, data))
        return tuple(reject), tuple(nak)

    def accepted(self, options: ppp.Options) -> None:
        """Store the peer's MRU in bytes, or the default MRU if the peer names none."""
        values = dict(options)
        self.peer_mru = int.from_bytes(values[_MRU], "big") if _MRU in values else min(DEFAULT_MRU, self._limit)

    def naked(self, options: ppp.Options) -> None:
        """Change the options that the peer refused: the authentication method, the magic number, or a smaller MRU.

        The link is closed if no authentication method is left.
        """
        for kind, data in options:
            if kind == _AUTHENTICATION:
                if len(self._methods) == 1:
                    self.close()
                    return
                del self._methods[0]
                # The peer's choice comes first, if it is one of ours that was not tried.
                self._methods.sort(key=lambda each: each.value != data)
            elif kind == _MAGIC:
                self.magic = self._number()
            elif kind == _MRU and len(data) == 2:
                self._mru = min(max(int.from_bytes(data, "big"), LEAST_MRU), self._limit)

    def rejected(self, options: ppp.Options) -> None:
        """Stop using the options that the peer rejects; the link works without MRU and magic number."""
        if any(kind == _MAGIC for kind, _ in options):
            self.magic = 0

    def layer_up(self) -> None:
        """Tell the owner that LCP has opened."""
        self._owner.link_up()

    def layer_down(self) -> None:
        """Tell the owner that LCP is no longer open."""
        self._owner.link_down()

    def layer_finished(self) -> None:
        """Tell the owner that LCP was terminated, or that its negotiation failed."""
        self._owner.link_finished()

    def other_code(self, code: int, identifier: int, data: bytes) -> bool:
        """Handle Protocol-Reject, echo and discard packets (RFC 1661, sections 5.7 to 5.9); return False for another code."""
        if code == ppp.Code.PROTOCOL_REJECT:
            if self.opened and len(data) >= 2:
                protocol = int.from_bytes(data[:2], "big")
                if protocol == ppp.Protocol.LCP:
                    self.handle(ppp.Event.REJECT_FATAL)
                else:
                    self._owner.protocol_rejected(protocol)
        elif code == ppp.Code.ECHO_REQUEST:
            if len(data) >= 4:
                self._echoed = identifier, data[4:]
                self.handle(ppp.Event.ECHO)
        elif code == ppp.Code.ECHO_REPLY:
            # Our own number says that a loop answered (section 5.8).
            if self.opened and len(data) >= 4 and (not self.magic or int.from_bytes(data[:4], "big") != self.magic):
                self._owner.echo_replied()
        else:
            return code == ppp.Code.DISCARD_REQUEST
        return True

    def send_echo_reply(self) -> None:
        """Send an Echo-Reply with our magic number and the data of the request."""
        identifier, data = self._echoed
        self._send(self.protocol, ppp.packet(ppp.Code.ECHO_REPLY, identifier, self.magic.to_bytes(4, "big") + data))

    def send_echo_request(self) -> None:
        """Send an Echo-Request, which a live subscriber answers."""
        self._send(
            self.protocol,
            ppp.packet(ppp.Code.ECHO_REQUEST, self.next_identifier(), self.magic.to_bytes(4, "big")),
        )

    def reject_protocol(self, protocol: int, payload: bytes) -> None:
        """Send a Protocol-Reject for a packet of an unknown protocol (RFC 1661, section 5.7), cut to the peer's MRU."""
        body = (protocol.to_bytes(2, "big") + payload)[: self.peer_mru - 4]
        self._send(self.protocol, ppp.packet(ppp.Code.PROTOCOL_REJECT, self.next_identifier(), body))
