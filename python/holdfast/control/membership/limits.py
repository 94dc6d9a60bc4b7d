"""Limits of what hosts can make a router keep and do: channels of a port and of all ports, and work.

It does not know messages, and not what follows from a refusal.
"""

from __future__ import annotations

from holdfast.parameters import PS_PER_S


class Allowance:
    """A limit of events per second, with a burst: the leaky bucket as a meter (ITU-T I.371, A.2). Events may overdraw it once."""

    def __init__(self, per_s: int, burst: int) -> None:
        self._step_ps = PS_PER_S // per_s
        self._burst_ps = self._step_ps * burst
        self._until_ps = 0

    def wait_ps(self, now_ps: int) -> int:
        """Return the time in picoseconds until the allowance has room for one event; 0 if it has room now."""
        return max(0, self._until_ps - now_ps - self._burst_ps + self._step_ps)

    def spend(self, now_ps: int, events: int) -> None:
        """Subtract ``events`` from the allowance, even if fewer are left."""
        self._until_ps = max(self._until_ps, now_ps) + events * self._step_ps


class Room:
    """The channels that all ports have together, shared so that no port can take another one's share.

    One half is for who comes first. When it is full, only a port that stays within its share of the other half gets new channels.
    So all ports together never have more than ``channels``, and no port is refused what its share can hold.
    """

    def __init__(self, channels: int, ports: int) -> None:
        self.channels = channels
        self.share = channels // (2 * max(1, ports))
        """The channels that one port may have in any case."""

    def has(self, used: int, own: int, new: int) -> bool:
        """Return True if a port may add ``new`` channels.

        ``used``: those of all ports; ``own``: those of the port after the addition.
        """
        return used + new <= self.channels // 2 or own <= self.share
