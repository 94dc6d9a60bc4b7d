"""Write access of clients: the rules of "Client Arbitration and Controller Replication" for one device.

A :class:`Session` is one open stream; the transport moves its messages. The election id that wins
is the highest ever seen for a role, so a role can be without a primary while backups are connected. A role other than the default
one is forgotten with its last stream: else names that were used once would keep newcomers out for good. Every role has full
access to the pipeline: no scheme of role configurations has been agreed upon, so a ``role.config`` is refused, as the
specification demands. Callers hold the device's lock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast.p4runtime import limits
from holdfast.p4runtime.errors import P4RuntimeError, code_number, invalid_argument
from holdfast.p4runtime.stubs import Proto, p4runtime_pb2


@dataclass(eq=False)
class Session:
    """An open stream. ``send`` takes a ``StreamMessageResponse`` and must not block."""

    send: Callable[[Proto], None]
    role: str | None = None
    """None until the first arbitration update was accepted."""
    election_id: int | None = None


@dataclass
class _Role:
    sessions: list[Session] = field(default_factory=list)
    primary: Session | None = None
    highest: int | None = None


def election_id_of(message: Proto) -> int | None:
    """Return the 128-bit election id of a message that has such a field, or None if it is unset."""
    if not message.HasField("election_id"):
        return None
    return int(message.election_id.high) << 64 | int(message.election_id.low)


def set_election_id(message: Proto, election_id: int) -> None:
    """Write a 128-bit election id into a message that has such a field."""
    message.election_id.high = election_id >> 64
    message.election_id.low = election_id & 0xFFFF_FFFF_FFFF_FFFF


class Arbitration:
    """The open streams of one device by role, and which of them is each role's primary."""

    def __init__(self, device_id: int) -> None:
        self._device_id = device_id
        self._roles: dict[str, _Role] = {"": _Role()}

    def update(self, session: Session, message: Proto) -> None:
        """Process a ``MasterArbitrationUpdate`` of a stream.

        Raises a :class:`P4RuntimeError` with which the stream must be ended.
        """
        name, election_id = message.role.name, election_id_of(message)
        self._check(session, message, name, election_id)
        if name not in self._roles and len(self._roles) >= limits.MAX_ROLES:
            raise P4RuntimeError(
                "RESOURCE_EXHAUSTED", f"{limits.MAX_ROLES - 1} roles besides the default one have open streams"
            )
        role = self._roles.setdefault(name, _Role())
        if session.role is None:
            if len(role.sessions) >= limits.MAX_STREAMS_PER_ROLE:
                raise P4RuntimeError(
                    "RESOURCE_EXHAUSTED", f"{limits.MAX_STREAMS_PER_ROLE} streams are open for this role"
                )
            session.role = name
            role.sessions.append(session)
        session.election_id = election_id
        if election_id is not None and (role.highest is None or election_id >= role.highest):
            role.primary, role.highest = session, election_id
            self._notify(role, [s for s in role.sessions if s is not session] + [session])
        elif role.primary is session:
            role.primary = None
            self._notify(role, role.sessions)
        else:
            self._notify(role, [session])

    def _check(self, session: Session, message: Proto, name: str, election_id: int | None) -> None:
        if session.role is not None:
            if message.device_id != self._device_id:
                raise P4RuntimeError("FAILED_PRECONDITION", f"this stream is for device {self._device_id}")
            if name != session.role:
                raise P4RuntimeError("FAILED_PRECONDITION", f"this stream has role '{session.role}'; open another one")
        elif message.device_id != self._device_id:
            raise P4RuntimeError("NOT_FOUND", f"there is no device {message.device_id} here")
        if len(name.encode()) > limits.MAX_ROLE_NAME_BYTES:
            raise invalid_argument(f"a role's name has at most {limits.MAX_ROLE_NAME_BYTES} bytes")
        if message.role.id and not name:
            raise invalid_argument("role ids are not supported; use role names")
        if message.role.HasField("config"):
            raise invalid_argument("role configurations are not supported; every role has full access")
        if election_id is not None and name in self._roles:
            others = [s for s in self._roles[name].sessions if s is not session]
            if any(s.election_id == election_id for s in others):
                raise invalid_argument(f"election id {election_id} is used by another controller")

    def disconnect(self, session: Session) -> None:
        """Remove a closed stream from the streams of its role.

        If it was the primary's, the role has no primary until another arbitration update.
        """
        role = self._roles.get(session.role) if session.role is not None else None
        if role is None or session not in role.sessions:
            return
        role.sessions.remove(session)
        if role.primary is session:
            role.primary = None
            self._notify(role, role.sessions)
        if session.role and not role.sessions:
            del self._roles[session.role]

    def check_primary(self, role_name: str, role_id: int, election_id: int | None) -> None:
        """Raise NOT_FOUND for an unknown role, and PERMISSION_DENIED unless the election id is that of the role's primary.

        These are the first checks of a Write or SetForwardingPipelineConfig.
        """
        role = self._roles.get(role_name) if not (role_id and not role_name) else None
        if role is None:
            raise P4RuntimeError("NOT_FOUND", f"device {self._device_id} has no role {role_name or role_id!r}")
        if role.primary is None or election_id is None or role.primary.election_id != election_id:
            raise P4RuntimeError("PERMISSION_DENIED", "the client is not the primary")

    def is_primary(self, session: Session) -> bool:
        """Return True if this stream's client is the primary of its role."""
        role = self._roles.get(session.role) if session.role is not None else None
        return role is not None and role.primary is session

    def primaries(self) -> list[Session]:
        """Return the streams of the primaries of all roles."""
        return [role.primary for role in self._roles.values() if role.primary is not None]

    def streams(self) -> dict[str, tuple[int, bool]]:
        """Return by role the number of streams, and whether the role has a primary."""
        return {name: (len(role.sessions), role.primary is not None) for name, role in self._roles.items()}

    def _notify(self, role: _Role, sessions: list[Session]) -> None:
        for session in sessions:
            response = p4runtime_pb2.StreamMessageResponse()
            update = response.arbitration
            update.device_id = self._device_id
            if session.role:
                update.role.name = session.role
            if role.highest is not None:
                set_election_id(update, role.highest)
            if role.primary is session:
                update.status.code = code_number("OK")
                update.status.message = "you are the primary"
            elif role.primary is not None:
                update.status.code = code_number("ALREADY_EXISTS")
                update.status.message = "another client is the primary"
            else:
                update.status.code = code_number("NOT_FOUND")
                update.status.message = "there is no primary"
            session.send(response)
