"""Errors of P4Runtime, in both directions: raised by the device, shown by the client.

Codes are canonical gRPC status names, as in ``"NOT_FOUND"``. This file knows the error messages of the specification
(section "Error Reporting Messages") but no transport.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from holdfast._core import ControlError, HoldfastError
from holdfast.p4runtime.stubs import Proto, code_pb2, p4runtime_pb2, status_pb2

_FAILURES_SHOWN = 20
"""Of a batch, in the text of an error."""


@dataclass(frozen=True)
class UpdateFailure:
    """One element of a batch that was refused."""

    index: int
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
        self, code: str, message: str, failures: Sequence[UpdateFailure] = (), batch_size: int | None = None
    ) -> None:
        self.code = code
        self.message = message
        self.failures = tuple(failures)
        self.batch_size = len(self.failures) if batch_size is None else batch_size
        super().__init__(code, message)

    def __str__(self) -> str:
        if not self.failures:
            return f"{self.code}: {self.message}"
        more = len(self.failures) - _FAILURES_SHOWN
        rest = [f"... and {more} more"] if more > 0 else []
        return "\n  ".join([self.message, *map(str, self.failures[:_FAILURES_SHOWN]), *rest])

    def with_descriptions(self, descriptions: Sequence[str]) -> P4RuntimeError:
        """The same error with each failure naming the element that it belongs to."""
        failures = [replace(f, what=descriptions[f.index]) if f.index < len(descriptions) else f for f in self.failures]
        return P4RuntimeError(self.code, self.message, failures, self.batch_size)


def invalid_argument(message: str) -> P4RuntimeError:
    """The request makes no sense for this program, whatever the state of the device."""
    return P4RuntimeError("INVALID_ARGUMENT", message)


def unimplemented(message: str) -> P4RuntimeError:
    """The request may make sense, but this device does not do it."""
    return P4RuntimeError("UNIMPLEMENTED", message)


def code_number(name: str) -> int:
    """The number of a canonical status; that of ``UNKNOWN`` for a name that is none."""
    codes: dict[str, int] = dict(code_pb2.Code.items())
    return codes.get(name, codes["UNKNOWN"])


def code_name(number: int) -> str:
    """The name of a canonical status number."""
    return next((name for name, value in code_pb2.Code.items() if value == number), "UNKNOWN")


def batch_error(call: str, failures: Sequence[tuple[int, str, str]], count: int) -> P4RuntimeError:
    """The error of a batch of so many elements, of which some failed: position, status name and message of each.

    Specification: "Write RPC", "Error Reporting".
    """
    failed = [UpdateFailure(*failure) for failure in failures]
    return P4RuntimeError("UNKNOWN", f"{len(failed)} of {count} elements of the {call} failed", failed, count)


@contextmanager
def refusals() -> Iterator[None]:
    """Raises what the native core refuses as :class:`P4RuntimeError`."""
    try:
        yield
    except ControlError as e:
        raise P4RuntimeError(e.code, str(e)) from None


def to_status(error: P4RuntimeError) -> Proto:
    """``google.rpc.Status``; for a batch with one ``p4.v1.Error`` per element, in order, OK ones included."""
    status = status_pb2.Status(code=code_number(error.code), message=error.message)
    if error.failures:
        by_index = {f.index: f for f in error.failures}
        for index in range(error.batch_size):
            item = p4runtime_pb2.Error()
            if failure := by_index.get(index):
                item.canonical_code = code_number(failure.code)
                item.message = failure.message
                item.space = "holdfast"
            status.details.add().Pack(item)
    return status


DETAILS_BYTES_KEY = "holdfast-error-details-bytes"
"""Metadata of a call: the number of bytes of error details that the client takes."""


def fitting_status(error: P4RuntimeError, most_bytes: int) -> tuple[P4RuntimeError, Proto]:
    """:func:`to_status` in at most so many bytes, and the error as it then is.

    Messages go first, then the OK elements and failures at the end of the batch; the error's message says so. A position in the
    details is always one in the batch.
    """
    status = to_status(error)
    if status.ByteSize() <= most_bytes:
        return error, status
    bare = [replace(failure, message="") for failure in error.failures]
    short = P4RuntimeError(error.code, f"{error.message}; details without messages", bare, error.batch_size)
    status = to_status(short)
    while status.ByteSize() > most_bytes and status.details:
        # An element has at least its type's name.
        kept = len(status.details) * most_bytes // status.ByteSize()
        del status.details[min(kept, len(status.details) - 1) :]
        short.message = status.message = (
            f"{error.message}; details of the first {len(status.details)} without messages: more would not fit into metadata"
        )
    return short, status


def from_status(status: Proto) -> P4RuntimeError:
    """The error that a ``google.rpc.Status`` with ``p4.v1.Error`` details tells of.

    Details of other types are passed over.
    """
    failures = []
    for index, detail in enumerate(status.details):
        item = p4runtime_pb2.Error()
        if detail.Unpack(item) and item.canonical_code != 0:
            failures.append(UpdateFailure(index, code_name(item.canonical_code), item.message))
    return P4RuntimeError(code_name(status.code), status.message, failures, len(status.details))


def quoted(names: Iterable[str]) -> str:
    """Names for a message: ``'a', 'b'``."""
    return ", ".join(f"'{name}'" for name in names)
