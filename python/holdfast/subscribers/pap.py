"""The authenticator's side of PAP (RFC 1334, section 2)."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.subscribers import ppp
from holdfast.subscribers.authentication import Credentials

_REQUEST, _ACK, _NAK = 1, 2, 3


class Pap:
    """Waits for an Authenticate-Request, has it judged once, and answers repetitions as the first."""

    def __init__(self, send: Callable[[int, bytes], None], judge: Callable[[Credentials], None]) -> None:
        self._send, self._judge = send, judge
        self._identifier = 0
        self._waiting = False
        self._verdict: tuple[int, bytes] | None = None

    def receive(self, received: bytes) -> None:
        """Process a PAP packet; a malformed one is silently discarded."""
        if len(received) < 4 or received[0] != _REQUEST:
            return
        length = int.from_bytes(received[2:4], "big")
        if not 6 <= length <= len(received):
            return
        user_end = 5 + received[4]
        if user_end >= length or user_end + 1 + received[user_end] > length:
            return
        self._identifier = received[1]
        if self._verdict is not None:
            self._answer()
        elif not self._waiting:
            self._waiting = True
            password = received[user_end + 1 : user_end + 1 + received[user_end]]
            self._judge(Credentials(received[5:user_end], password=password))

    def decide(self, accepted: bool, message: str) -> None:
        """Send Authenticate-Ack if the login is ``accepted``, otherwise Authenticate-Nak.

        ``message`` is shown to the subscriber; it is cut to 255 bytes (RFC 1334, section 2.2.2).
        """
        text = message.encode()[:255]
        self._waiting = False
        self._verdict = (_ACK if accepted else _NAK), bytes((len(text),)) + text
        self._answer()

    def start(self) -> None:
        """Do nothing, as in PAP the subscriber sends the first packet."""

    def stop(self) -> None:
        """Do nothing, as PAP has no timer."""

    def _answer(self) -> None:
        assert self._verdict is not None
        self._send(ppp.Protocol.PAP, ppp.packet(self._verdict[0], self._identifier, self._verdict[1]))
