"""Errors of P4Runtime, in both directions: raised by the device, shown by the client.

Codes are canonical gRPC status names, as in ``"NOT_FOUND"``. This file knows the error messages of the specification
(section "Error Reporting Messages") but no transport.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

from holdfast._core import ControlError, Failures, HoldfastError
from holdfast.p4runtime.stubs import Proto, code_pb2, p4runtime_pb2, status_pb2
from holdfast.terminal import excerpt

_FAILURES_SHOWN = 20
"""The most failures of a batch that the text of its error lists."""

_MOST_CHARACTERS = 2000
"""The most characters of a message; names and values in a program or a request can have megabytes."""


class UpdateFailure(NamedTuple):
    """An element of a batch that was refused. It is a tuple, because a batch may have hundreds of thousands."""

    index: int  # type: ignore[assignment]
    """Position in the request, from 0."""
    code: str
    message: str
    what: str = ""
    """The element in words, as in ``insert ingress.ipv4_lpm``; empty where nobody knows."""

    def __str__(self) -> str:
        what = f" ({self.what})" if self.what else ""
        return f"[{self.index}]{what} {self.code}: {self.message}"


class P4RuntimeError(HoldfastError):
    """A P4Runtime request was refused, or is not possible for this program.

    ``code`` is the status of the whole call: ``UNKNOWN`` when elements of a batch failed, which ``failures`` then
    lists; otherwise the reason itself. ``batch_size`` is the number of elements in that batch.
    """

    def __init__(
        self,
        code: str,
        message: str,
        failures: Sequence[UpdateFailure] | Failures = (),
        batch_size: int | None = None,
    ) -> None:
        self.code = code
        self.message = excerpt(message, _MOST_CHARACTERS)
        self._failures = failures if isinstance(failures, Failures) else tuple(failures)
        self.batch_size = len(self._failures) if batch_size is None else batch_size
        super().__init__(code, self.message)

    @property
    def failures(self) -> tuple[UpdateFailure, ...]:
        """The elements of a batch that failed, in ascending order."""
        return self.first_failures(len(self._failures))

    @property
    def failed(self) -> int:
        """The number of elements that failed."""
        return len(self._failures)

    def first_failures(self, most: int) -> tuple[UpdateFailure, ...]:
        """Return the first ``most`` failures of the batch."""
        if isinstance(self._failures, Failures):
            return tuple(UpdateFailure(*failure) for failure in self._failures.first(most))
        return self._failures[:most]

    def details(self, most_bytes: int) -> tuple[bytes, int, bool]:
        """Return the serialized details of the batch's elements, as :meth:`Failures.details` does."""
        if isinstance(self._failures, Failures):
            return self._failures.details(self.batch_size, most_bytes)
        failures = Failures()
        for failure in self._failures:
            failures.add(failure.index, failure.index + 1, failure.code, code_number(failure.code), failure.message)
        return failures.details(self.batch_size, most_bytes)

    def __str__(self) -> str:
        if not self.failed:
            return f"{self.code}: {self.message}"
        more = self.failed - _FAILURES_SHOWN
        rest = [f"... and {more} more"] if more > 0 else []
        return "\n  ".join([self.message, *map(str, self.first_failures(_FAILURES_SHOWN)), *rest])

    def with_descriptions(self, descriptions: Sequence[str]) -> P4RuntimeError:
        """Return the same error with a description of the element in each failure."""
        failures = [f._replace(what=descriptions[f.index]) if f.index < len(descriptions) else f for f in self.failures]
        return P4RuntimeError(self.code, self.message, failures, self.batch_size)


def invalid_argument(message: str) -> P4RuntimeError:
    """Return the error INVALID_ARGUMENT, for a request that is wrong for this program in any state of the device."""
    return P4RuntimeError("INVALID_ARGUMENT", message)


def unimplemented(message: str) -> P4RuntimeError:
    """Return the error UNIMPLEMENTED, for a valid request that this device does not support."""
    return P4RuntimeError("UNIMPLEMENTED", message)


@cache
def code_number(name: str) -> int:
    """Return the number of a canonical status code by name; that of ``UNKNOWN`` for an unknown name."""
    codes: dict[str, int] = dict(code_pb2.Code.items())
    return codes.get(name, codes["UNKNOWN"])


@cache
def code_name(number: int) -> str:
    """Return the name of a canonical status code by number; ``UNKNOWN`` for an unknown number."""
    return next((name for name, value in code_pb2.Code.items() if value == number), "UNKNOWN")


def batch_error(call: str, failures: Failures, count: int) -> P4RuntimeError:
    """Return the error of a batch with ``count`` elements, some of which failed.

    Specification: "Write RPC", "Error Reporting".
    """
    return P4RuntimeError("UNKNOWN", f"{len(failures)} of {count} elements of the {call} failed", failures, count)


@contextmanager
def refusals() -> Iterator[None]:
    """Raise errors of the native core within the context as :class:`P4RuntimeError`."""
    try:
        yield
    except ControlError as e:
        raise P4RuntimeError(e.code, str(e)) from None


DETAILS_BYTES_KEY = "holdfast-error-details-bytes"
"""The key of the call metadata by which a client states how many bytes of error details it accepts."""


def to_status(error: P4RuntimeError, most_bytes: int) -> Proto:
    """Return the error as a ``google.rpc.Status`` whose details take at most ``most_bytes`` bytes.

    For a batch it has a ``p4.v1.Error`` for each element in order, also those that succeeded, if they fit into ``most_bytes``.
    Otherwise messages are left out first, then elements at the end of the batch, which the status' message says. A position in the
    details is always the position in the batch. The time taken depends on what fits, not on the batch.
    """
    status = status_pb2.Status(code=code_number(error.code), message=error.message)
    if not error.failed:
        return status
    room = most_bytes - status.ByteSize() - _SHORTER_BYTES
    details, count, with_messages = error.details(max(room, 0))
    if count < error.batch_size:
        status.message += f"; details of the first {count} without messages: more would not fit into metadata"
    elif not with_messages:
        status.message += "; details without messages"
    status.MergeFromString(details)
    return status


_SHORTER_BYTES = 100
"""The most bytes that :func:`to_status` adds to the message of an error whose details it shortens."""


def from_status(status: Proto) -> P4RuntimeError:
    """Return the error that a ``google.rpc.Status`` with ``p4.v1.Error`` details describes. Details of other types are ignored."""
    failures = []
    for index, detail in enumerate(status.details):
        if not detail.value or not detail.Is(p4runtime_pb2.Error.DESCRIPTOR):
            continue
        item = p4runtime_pb2.Error.FromString(detail.value)
        if item.canonical_code != 0:
            failures.append(UpdateFailure(index, code_name(item.canonical_code), item.message))
    return P4RuntimeError(code_name(status.code), status.message, failures, len(status.details))


def quoted(names: Iterable[str]) -> str:
    """Return names in quotes for a message: ``'a', 'b'``."""
    return ", ".join(f"'{name}'" for name in names)
