"""The gateway's side of IPv6CP (RFC 5072): interface identifiers of both ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from holdfast.subscribers import ppp
from holdfast.subscribers.plane import Clock

_INTERFACE_IDENTIFIER = 1


class Ipv6cp(ppp.Automaton):
    """After it is opened, ``theirs`` is the subscriber's interface identifier, 8 bytes."""

    protocol: ClassVar[ppp.Protocol] = ppp.Protocol.IPV6CP

    def __init__(
        self,
        send: Callable[[int, bytes], None],
        clock: Clock,
        restart: ppp.Restart,
        *,
        ours: bytes,
        suggestion: bytes,
        agreed: Callable[[], None],
        changed: Callable[[bool], None],
        finished: Callable[[], None],
    ) -> None:
        super().__init__(send, clock, restart)
        self.ours, self.theirs = ours, bytes(8)
        self._suggestion, self._agreed, self._changed = suggestion, agreed, changed
        self._finished = finished

    def wishes(self) -> ppp.Options:
        """Return our own interface identifier as an option; it is the same in all sessions.

        It also stays if the subscriber proposes another one: no subscriber gets an equal identifier, so there is no collision to
        resolve (RFC 5072, section 4.1).
        """
        return ((_INTERFACE_IDENTIFIER, self.ours),)

    def judge(self, options: ppp.Options) -> tuple[ppp.Options, ppp.Options]:
        """Return the subscriber's options to reject, and to change: an interface identifier must not be zero or ours.

        See RFC 5072, section 4.1.
        """
        reject = tuple(each for each in options if each[0] != _INTERFACE_IDENTIFIER or len(each[1]) != 8)
        asked = [data for kind, data in options if kind == _INTERFACE_IDENTIFIER]
        bad = not asked or asked[0] in (bytes(8), self.ours)
        return reject, ((_INTERFACE_IDENTIFIER, self._suggestion),) if bad else ()

    def accepted(self, options: ppp.Options) -> None:
        """Store the subscriber's interface identifier in :attr:`theirs`."""
        self.theirs = dict(options)[_INTERFACE_IDENTIFIER]

    def acknowledging(self) -> None:
        """Report the agreed identifier before the acknowledgment is sent, as the subscriber may use it right after that."""
        self._agreed()

    def layer_up(self) -> None:
        """Tell the session that IPV6CP is open, so IPv6 packets may flow."""
        self._changed(True)

    def layer_down(self) -> None:
        """Tell the session that IPV6CP is no longer open, so IPv6 packets may not flow."""
        self._changed(False)

    def layer_finished(self) -> None:
        """Tell the session that IPV6CP has ended, so the session will have no IPv6."""
        self._finished()
