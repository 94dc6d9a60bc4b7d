"""Digests on their way to the controller: grouped, without repeats, until acknowledged (specification, "DigestEntry").

No clock here: whoever calls says what time it is, in nanoseconds, so the same code serves virtual and real time. Values
are one number per digest message, as in :mod:`holdfast.p4runtime.p4data`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast.p4runtime import limits, p4data
from holdfast.p4runtime.errors import P4RuntimeError, invalid_argument
from holdfast.p4runtime.p4info import Digest
from holdfast.p4runtime.stubs import Proto, p4runtime_pb2

_OVERHEAD_BYTES = 128
"""Of a value in Python, in a dictionary."""


@dataclass
class _Stream:
    config: Proto
    most: int
    """Values of so many bytes as are gathered."""
    buffer: dict[int, None] = field(default_factory=dict)  # in order, without repeats
    first_ns: int = 0
    lists: dict[int, tuple[int, tuple[int, ...]]] = field(
        default_factory=dict
    )  # unacknowledged: id -> (sent_ns, values)
    unacknowledged: set[int] = field(default_factory=set)  # the values in `lists`

    def forget(self, list_id: int) -> None:
        _, values = self.lists.pop(list_id, (0, ()))
        self.unacknowledged.difference_update(values)

    def forget_old(self, now_ns: int) -> None:
        while self.lists:
            oldest = next(iter(self.lists))
            if now_ns - self.lists[oldest][0] < self.config.ack_timeout_ns:
                return
            self.forget(oldest)


class DigestBuffers:
    """The digests that the client enabled.

    ``send`` takes a ``DigestList``; ``type_info`` is the program's ``P4TypeInfo``.
    """

    def __init__(self, type_info: Proto, send: Callable[[Proto], None]) -> None:
        self._types = type_info
        self._send = send
        self._streams: dict[int, _Stream] = {}
        self._specs: dict[int, Proto] = {}
        self._last_list_id = 0

    def configure(self, kind: int, digest: Digest, config: Proto) -> None:
        """Applies an update of a ``DigestEntry`` (``Update.Type``)."""
        update = p4runtime_pb2.Update
        present = digest.id in self._streams
        if kind == update.INSERT and present:
            raise P4RuntimeError("ALREADY_EXISTS", f"digest '{digest.name}' is enabled already")
        if kind != update.INSERT and not present:
            raise P4RuntimeError("NOT_FOUND", f"digest '{digest.name}' is not enabled")
        if kind == update.DELETE:
            del self._streams[digest.id]
            return
        if config.max_timeout_ns < 0 or config.max_list_size < 0 or config.ack_timeout_ns < 0:
            raise invalid_argument(f"digest '{digest.name}': times and sizes are not negative")
        copy = p4runtime_pb2.DigestEntry.Config()
        copy.CopyFrom(config)
        if present:
            self._streams[digest.id].config = copy
        else:
            value_bytes = p4data.width_of(digest.type_spec, self._types) // 8 + _OVERHEAD_BYTES
            self._streams[digest.id] = _Stream(copy, max(limits.MAX_DIGEST_BYTES // value_bytes, 1))
            self._specs[digest.id] = digest.type_spec

    def entries(self, digest_id: int = 0) -> list[Proto]:
        """``DigestEntry`` of each enabled digest (0), or of one; NOT_FOUND if that one is not enabled."""
        if digest_id and digest_id not in self._streams:
            raise P4RuntimeError("NOT_FOUND", f"digest {digest_id} is not enabled")
        ids = [digest_id] if digest_id else list(self._streams)
        return [p4runtime_pb2.DigestEntry(digest_id=i, config=self._streams[i].config) for i in ids]

    def snapshot(self) -> dict[int, tuple[_Stream, Proto]]:
        """What is enabled, to be given to :meth:`restore`."""
        return {i: (stream, stream.config) for i, stream in self._streams.items()}

    def restore(self, snapshot: dict[int, tuple[_Stream, Proto]]) -> None:
        """Undoes all :meth:`configure` since the snapshot."""
        self._streams = {i: stream for i, (stream, _) in snapshot.items()}
        for stream, config in snapshot.values():
            stream.config = config

    def add(self, digest_id: int, value: int, now_ns: int) -> None:
        """A digest message from the data plane. Dropped if not enabled, or waiting or unacknowledged already."""
        stream = self._streams.get(digest_id)
        if stream is None:
            return
        stream.forget_old(now_ns)
        if value in stream.buffer or value in stream.unacknowledged:
            return
        if not stream.buffer:
            stream.first_ns = now_ns
        stream.buffer[value] = None
        most = min(stream.config.max_list_size or stream.most, stream.most, limits.MAX_DIGEST_LIST_VALUES)
        if len(stream.buffer) >= most or stream.config.max_timeout_ns == 0:
            self._flush(digest_id, stream, now_ns)

    def acknowledge(self, digest_id: int, list_id: int) -> None:
        """A ``DigestListAck``; one for a list that is not waiting does nothing."""
        if stream := self._streams.get(digest_id):
            stream.forget(list_id)

    def flush_due(self, now_ns: int) -> None:
        """Sends what has waited for its ``max_timeout_ns``."""
        for digest_id, stream in self._streams.items():
            if stream.buffer and now_ns - stream.first_ns >= stream.config.max_timeout_ns:
                self._flush(digest_id, stream, now_ns)

    def next_due_ns(self) -> int | None:
        """When :meth:`flush_due` has something to do; None while nothing waits."""
        return min((s.first_ns + s.config.max_timeout_ns for s in self._streams.values() if s.buffer), default=None)

    def _flush(self, digest_id: int, stream: _Stream, now_ns: int) -> None:
        self._last_list_id += 1
        message = p4runtime_pb2.DigestList(digest_id=digest_id, list_id=self._last_list_id, timestamp=now_ns)
        for value in stream.buffer:
            message.data.append(p4data.to_p4data(self._specs[digest_id], self._types, value))
        if stream.config.ack_timeout_ns:
            stream.lists[self._last_list_id] = (now_ns, tuple(stream.buffer))
            stream.unacknowledged.update(stream.buffer)
            while len(stream.unacknowledged) > min(stream.most, limits.MAX_UNACKNOWLEDGED_VALUES):
                stream.forget(next(iter(stream.lists)))
        stream.buffer.clear()
        self._send(message)
