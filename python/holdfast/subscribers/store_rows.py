"""Sessions and accounting records as rows of text: JSON, which ends with a checksum of what is before it.

A disk that changes a digit would give a session another subscriber's address. Rows of earlier versions have no checksum.
"""

from __future__ import annotations

import json
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Any
from zlib import crc32

from holdfast.errors import HoldfastError
from holdfast.subscribers.accounting import Cause, Kind, Record
from holdfast.subscribers.dhcpv6_pd import Binding, Bound
from holdfast.subscribers.keeping import Stored
from holdfast.subscribers.plane import Line, Rates, Session, Usage
from holdfast.subscribers.session import Grant

_SUM = "sum"
"""The last field of a row: CRC-32 of the row without it."""

_IDENTITIES = ("user", "circuit_id", "remote_id", "service", "called", "chargeable")
"""The fields of records, sessions and grants that are bytes."""


class DamagedRowError(HoldfastError):
    """A row that is not what was written."""


def of_version_1(text: bytes) -> str:
    """Convert a row of version 1, in which identities are text, to the present version. Raises :class:`DamagedRowError`."""

    def bytes_of(values: dict[str, Any]) -> dict[str, Any]:
        found = {name: each.encode().hex() if name in _IDENTITIES else each for name, each in values.items()}
        return found | ({"grant": bytes_of(found["grant"])} if "grant" in found else {})

    try:
        values = json.loads(text)
        values.pop(_SUM, None)
        return _whole(bytes_of(values))
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise DamagedRowError(repr(error)) from None


def row_of(value: Stored | Record) -> str:
    """Return the JSON text of a session's or a record's row, with its checksum."""
    fields = _texts(value)
    if isinstance(value, Stored):
        grant = value.grant
        fields["grant"] = _texts(grant) | {
            "session": _plain(grant.session),
            "dns": [str(each) for each in grant.dns],
            "dns6": [str(each) for each in grant.dns6],
            "classes": [each.hex() for each in grant.classes],
        }
        fields["interface"] = None if value.interface is None else value.interface.hex()
        fields["usage"], fields["earlier"] = vars(value.usage), vars(value.earlier)
        if isinstance(value.bound, Binding):
            fields["bound"] = {"client": value.bound.client.hex(), "iaid": value.bound.iaid.hex()}
    else:
        fields["session"] = None if value.session is None else _plain(value.session)
        fields["usage"] = vars(value.usage)
        fields["classes"] = [each.hex() for each in value.classes]
    return _whole(fields)


def stored(number: int, text: bytes) -> Stored:
    """Return the session of a row. Raises :class:`DamagedRowError` if the row is damaged, or of another session."""
    try:
        found = _stored(_checked(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedRowError(repr(error)) from None
    if found.grant.session.session_id != number:
        raise DamagedRowError(f"it is that of session {found.grant.session.session_id!r}")
    return found


def record(text: bytes) -> Record:
    """Return the accounting record of a row. Raises :class:`DamagedRowError` if the row is damaged."""
    try:
        return _record(_checked(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedRowError(repr(error)) from None


_encode = json.JSONEncoder(separators=(",", ":")).encode


def _whole(fields: dict[str, Any]) -> str:
    text = _encode(fields)
    return f'{text[:-1]},"{_SUM}":{crc32(text.encode())}}}'


def _checked(text: bytes) -> dict[str, Any]:
    """Return the fields of a row by name. Raises ValueError if the row's checksum is wrong."""
    values: dict[str, Any] = json.loads(text)
    if _SUM in values:
        said = values.pop(_SUM)
        if said != crc32(text.rpartition(b',"' + _SUM.encode() + b'":')[0] + b"}"):
            raise ValueError("its checksum is another")
    return values


def _texts(value: Stored | Record | Grant) -> dict[str, Any]:
    """Return the fields of a value by name; identities, which are bytes, become hexadecimal digits."""
    return {name: each.hex() if name in _IDENTITIES else each for name, each in vars(value).items()}


def _identities(values: dict[str, Any]) -> dict[str, bytes]:
    return {name: bytes.fromhex(values[name]) for name in _IDENTITIES if name in values}


@lru_cache(maxsize=4096)
def _plain(session: Session) -> dict[str, object]:
    """Return a session as a dictionary of plain values; cached, as a session is written several times with equal values."""
    addresses = ("ipv4", "ipv6_interface", "ipv6_prefix", "delegated")
    texts = {name: None if (value := getattr(session, name)) is None else str(value) for name in addresses}
    return vars(session) | texts | {"line": vars(session.line), "mac": session.mac.hex(), "rates": vars(session.rates)}


def _session(values: dict[str, Any]) -> Session:
    def address(name: str, kind: type[Any]) -> Any:
        return None if values[name] is None else kind(values[name])

    return Session(
        session_id=values["session_id"],
        line=Line(**values["line"]),
        mac=bytes.fromhex(values["mac"]),
        magic=values["magic"],
        peer_mru=values["peer_mru"],
        mss_clamp=values["mss_clamp"],
        ipv4=address("ipv4", IPv4Address),
        ipv6_interface=address("ipv6_interface", IPv6Address),
        ipv6_prefix=address("ipv6_prefix", IPv6Network),
        delegated=address("delegated", IPv6Network),
        rates=Rates(**values["rates"]),
    )


def _stored(values: dict[str, Any]) -> Stored:
    grant = values["grant"]
    interface = values["interface"]
    return Stored(
        **{
            **values,
            **_identities(values),
            "grant": Grant(
                **{
                    **grant,
                    **_identities(grant),
                    "session": _session(grant["session"]),
                    "dns": tuple(IPv4Address(each) for each in grant["dns"]),
                    "dns6": tuple(IPv6Address(each) for each in grant.get("dns6", ())),
                    "classes": tuple(bytes.fromhex(each) for each in grant["classes"]),
                }
            ),
            "interface": None if interface is None else bytes.fromhex(interface),
            "bound": _bound(values["bound"]),
            "cause": None if values.get("cause") is None else Cause(values["cause"]),
            "usage": Usage(**values.get("usage", {})),
            "earlier": Usage(**values.get("earlier", {})),
        }
    )


def _bound(values: dict[str, str] | bool) -> Bound:
    return (
        values if isinstance(values, bool) else Binding(**{name: bytes.fromhex(each) for name, each in values.items()})
    )


def _record(values: dict[str, Any]) -> Record:
    return Record(
        **{
            **values,
            **_identities(values),
            "kind": Kind(values["kind"]),
            "session": None if values["session"] is None else _session(values["session"]),
            "usage": Usage(**values["usage"]),
            "cause": None if values["cause"] is None else Cause(values["cause"]),
            "classes": tuple(bytes.fromhex(each) for each in values["classes"]),
        }
    )


__all__ = ["DamagedRowError", "of_version_1", "record", "row_of", "stored"]
