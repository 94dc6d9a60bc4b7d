"""The gateway's side of IPCP (RFC 1332): the subscriber's IPv4 address, and DNS servers (RFC 1877)."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address
from typing import ClassVar

from holdfast.subscribers import ppp
from holdfast.subscribers.plane import Clock

_ADDRESS, _PRIMARY_DNS, _SECONDARY_DNS = 3, 129, 131


class Ipcp(ppp.Automaton):
    """Gives one address. A subscriber that insists on another one gets no IPv4."""

    protocol: ClassVar[ppp.Protocol] = ppp.Protocol.IPCP

    def __init__(
        self,
        send: Callable[[int, bytes], None],
        clock: Clock,
        restart: ppp.Restart,
        *,
        ours: IPv4Address,
        theirs: IPv4Address,
        dns: tuple[IPv4Address, ...],
        agreed: Callable[[], None],
        changed: Callable[[bool], None],
        finished: Callable[[], None],
    ) -> None:
        super().__init__(send, clock, restart)
        self._agreed, self._changed, self._finished = agreed, changed, finished
        self._wishes: ppp.Options = ((_ADDRESS, ours.packed),)
        self._given = {_ADDRESS: theirs.packed}
        for kind, server in zip((_PRIMARY_DNS, _SECONDARY_DNS), dns, strict=False):
            self._given[kind] = server.packed

    def wishes(self) -> ppp.Options:
        """Return our own address as an option, which is left out later if the subscriber refuses it."""
        return self._wishes

    def judge(self, options: ppp.Options) -> tuple[ppp.Options, ppp.Options]:
        """Return the subscriber's options to reject, and those to change: it may have only the assigned address and name servers.

        If the subscriber asks for no address, the assigned one is added to the Nak (RFC 1661, section 5.3).
        """
        reject, nak = [], []
        for kind, data in options:
            if kind not in self._given or len(data) != 4:
                reject.append((kind, data))
            elif data != self._given[kind]:
                nak.append((kind, self._given[kind]))
        if not any(kind == _ADDRESS for kind, _ in options):
            nak.append((_ADDRESS, self._given[_ADDRESS]))
        return tuple(reject), tuple(nak)

    def acknowledging(self) -> None:
        """Report the agreed address before the acknowledgment is sent, as the subscriber may use it right after that."""
        self._agreed()

    def layer_up(self) -> None:
        """Tell the session that IPCP is open, so IPv4 packets may flow."""
        self._changed(True)

    def layer_down(self) -> None:
        """Tell the session that IPCP is no longer open, so IPv4 packets may not flow."""
        self._changed(False)

    def layer_finished(self) -> None:
        """Tell the session that IPCP has ended, so the session will have no IPv4."""
        self._finished()
