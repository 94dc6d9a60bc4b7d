"""Accounting of sessions for billing: start, interim and stop (RFC 2866)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from holdfast.subscribers.plane import Session, Usage

NO_USAGE = Usage()


class Kind(IntEnum):
    """Acct-Status-Type (RFC 2866, section 5.1)."""

    START = 1
    STOP = 2
    INTERIM = 3
    ON = 7
    OFF = 8


OF_THE_GATEWAY = frozenset((Kind.ON, Kind.OFF))
"""Records that are of no session: the gateway has none from before, and ends with none. Servers end what they still have."""


class Cause(IntEnum):
    """Acct-Terminate-Cause (RFC 2866, section 5.10), those that a gateway can have."""

    USER_REQUEST = 1
    LOST_CARRIER = 2
    IDLE_TIMEOUT = 4
    SESSION_TIMEOUT = 5
    ADMIN_RESET = 6
    ADMIN_REBOOT = 7
    NAS_ERROR = 9
    NAS_REQUEST = 10
    NAS_REBOOT = 11
    USER_ERROR = 17


@dataclass(frozen=True)
class Record:
    """One accounting record. ``time_s`` is Unix time of the event; ``duration_s`` how long the session has lasted.

    Identities are bytes, as on the wire. ``session`` is None in records of the gateway itself. ``clock_s`` is the event's time
    by the gateway's clock, whose name is ``epoch``; None if nobody knows.
    """

    kind: Kind
    accounting_id: str
    user: bytes
    session: Session | None
    time_s: int
    duration_s: int = 0
    usage: Usage = NO_USAGE
    cause: Cause | None = None
    classes: tuple[bytes, ...] = ()
    circuit_id: bytes = b""
    remote_id: bytes = b""
    called: bytes = b""
    chargeable: bytes = b""
    clock_s: float | None = None
    epoch: str = ""


class Accountant(Protocol):
    """Takes records and delivers them, sooner or later."""

    def account(self, record: Record) -> None:
        """Deliver an accounting record to the accounting servers, at once or later."""
