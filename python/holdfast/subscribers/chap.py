"""The authenticator's side of CHAP with MD5 (RFC 1994)."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

from holdfast.subscribers import ppp
from holdfast.subscribers.authentication import Credentials
from holdfast.subscribers.plane import Clock

_CHALLENGE, _RESPONSE, _SUCCESS, _FAILURE = 1, 2, 3, 4


def response(identifier: int, secret: bytes, challenge: bytes) -> bytes:
    """Return the answer to a challenge: the MD5 of identifier, secret and challenge (RFC 1994, section 4.1)."""
    return hashlib.md5(bytes((identifier,)) + secret + challenge, usedforsecurity=False).digest()


def holds(credentials: Credentials, secret: bytes) -> bool:
    """Return True if the credentials, of PAP or of CHAP, were made with this secret."""
    if credentials.password is not None:
        return hmac.compare_digest(credentials.password, secret)
    wanted = response(credentials.identifier, secret, credentials.challenge)
    return hmac.compare_digest(credentials.response, wanted)


class Chap:
    """Challenges until there is a response, has it judged once, and answers repetitions as the first."""

    def __init__(
        self,
        send: Callable[[int, bytes], None],
        judge: Callable[[Credentials], None],
        failed: Callable[[], None],
        clock: Clock,
        restart: ppp.Restart,
        *,
        name: str,
        identifier: int,
        challenge: bytes,
    ) -> None:
        self._send, self._judge, self._failed, self._clock, self._restart = send, judge, failed, clock, restart
        self._name, self._identifier, self._challenge = name.encode(), identifier, challenge
        self._cancel: Callable[[], None] | None = None
        self._count = restart.max_configure
        self._waiting = False
        self._verdict: tuple[int, bytes] | None = None

    def start(self) -> None:
        """Send the challenge and repeat it on a timer until a response comes; after the last repetition report the failure."""
        self._cancel = None
        if self._count == 0:
            self._failed()
            return
        self._count -= 1
        value = bytes((len(self._challenge),)) + self._challenge + self._name
        self._send(ppp.Protocol.CHAP, ppp.packet(_CHALLENGE, self._identifier, value))
        self._cancel = self._clock.call_later(self._restart.restart_s, self.start)

    def stop(self) -> None:
        """Stop repeating the challenge."""
        if self._cancel is not None:
            self._cancel()
            self._cancel = None

    def receive(self, received: bytes) -> None:
        """Process a CHAP packet. One that is malformed or that answers another challenge is silently discarded."""
        if len(received) < 5 or received[0] != _RESPONSE or received[1] != self._identifier:
            return
        length, size = int.from_bytes(received[2:4], "big"), received[4]
        if not 5 + size <= length <= len(received) or size != 16:
            return
        if self._verdict is not None:
            self._answer()
        elif not self._waiting:
            self._waiting = True
            self.stop()
            self._judge(
                Credentials(
                    received[5 + size : length],
                    identifier=self._identifier,
                    challenge=self._challenge,
                    response=received[5 : 5 + size],
                )
            )

    def decide(self, accepted: bool, message: str) -> None:
        """Send Success if the login is ``accepted``, otherwise Failure, as the answer to the response.

        ``message`` is shown to the subscriber (RFC 1994, section 4.2).
        """
        self._waiting = False
        self._verdict = (_SUCCESS if accepted else _FAILURE), message.encode()
        self._answer()

    def _answer(self) -> None:
        assert self._verdict is not None
        self._send(ppp.Protocol.CHAP, ppp.packet(self._verdict[0], self._identifier, self._verdict[1]))
