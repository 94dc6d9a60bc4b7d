"""A client's session with a device over any transport: the primary, the stream, the pipeline, requests.

The content of a device's tables and objects is :class:`~holdfast.p4runtime.client.Client`'s subject, and transport that of its
subclasses.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, TypeAlias, cast

from holdfast._core import Program
from holdfast.p4runtime import p4data
from holdfast.p4runtime.arbitration import set_election_id
from holdfast.p4runtime.codec import Pair, Value
from holdfast.p4runtime.device import no_pipeline
from holdfast.p4runtime.entity_messages import decoded_value, describe, encoded_value, read_entry
from holdfast.p4runtime.errors import P4RuntimeError, code_name, invalid_argument
from holdfast.p4runtime.p4info import P4InfoIndex, message_of, parse_text
from holdfast.p4runtime.received import Arbitration, DigestList, Event, IdleEntries, PacketIn, StreamError
from holdfast.p4runtime.stubs import Proto, p4info_pb2, p4runtime_pb2

Atomicity: TypeAlias = Literal["continue_on_error", "rollback_on_error", "dataplane_atomic"]
PipelineAction: TypeAlias = Literal["verify", "verify_and_save", "verify_and_commit", "commit", "reconcile_and_commit"]

UPDATE_TYPES: dict[str, int] = {
    "insert": p4runtime_pb2.Update.INSERT,
    "modify": p4runtime_pb2.Update.MODIFY,
    "delete": p4runtime_pb2.Update.DELETE,
}


@lru_cache(maxsize=16)
def _index_of(p4info: bytes) -> P4InfoIndex:
    """Return the index of a serialized P4Info. The result is cached, as most switches of a network run the same program."""
    message = p4info_pb2.P4Info()
    message.ParseFromString(p4info)
    return P4InfoIndex(message)


@lru_cache(maxsize=1024)
def _head(device_id: int, role: str, election_id: int, atomicity: Atomicity) -> bytes:
    """Return a serialized ``WriteRequest`` without updates. Serialized updates are appended to it."""
    head = p4runtime_pb2.WriteRequest(device_id=device_id, role=role)
    head.atomicity = p4runtime_pb2.WriteRequest.Atomicity.Value(atomicity.upper())
    set_election_id(head, election_id)
    return cast(bytes, head.SerializeToString())


_MOST_PACKED = 1024
"""The most serialized packet-out headers that are cached: in most programs, there is one for each port."""


def _varint(number: int) -> bytes:
    """Encode a length as a protobuf varint: 7 bits per byte, the lowest first."""
    if number < 0x80:
        return bytes((number,))
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


class EntryName(NamedTuple):
    """The name of a table's entry in error messages; its text is made only when it is needed."""

    table: str
    match: Mapping[str, Value | Pair]
    priority: int | None

    def __str__(self) -> str:
        return f"{self.table} {describe(self.match, self.priority)}"


@dataclass
class _Batch:
    updates: list[bytes] = field(default_factory=list)
    """Each is a serialized ``WriteRequest`` with one update and nothing else: one after another they are one request."""
    descriptions: list[tuple[str, str | EntryName]] = field(default_factory=list)
    """Of each update, its verb and what it is about."""


class ClientSession(abc.ABC):
    """The part of a :class:`~holdfast.p4runtime.client.Client` that knows nothing of tables, counters or groups."""

    def __init__(self, device_id: int, election_id: int, role: str) -> None:
        self.device_id = device_id
        self.election_id = election_id
        self.role = role
        self.on_packet_in: Callable[[PacketIn], None] | None = None
        self.on_digest: Callable[[DigestList], None] | None = None
        self.arbitration: Arbitration | None = None
        """The latest word on who is the primary."""
        self._index: P4InfoIndex | None = None
        self._batch: _Batch | None = None
        self._packet_out_metadata: dict[tuple[tuple[str, Value], ...], bytes] = {}
        self.requests_sent = 0
        self.updates_sent = 0
        """Write requests, and the updates in them, whatever became of them."""

    # ---- Transport ----

    @abc.abstractmethod
    def _call_write(self, request: bytes) -> None:
        """Send a serialized ``WriteRequest`` to the device."""

    @abc.abstractmethod
    def _call_read(self, request: Proto) -> Iterable[Proto]: ...
    @abc.abstractmethod
    def _call_set_pipeline(self, request: Proto) -> None: ...
    @abc.abstractmethod
    def _call_get_pipeline(self, request: Proto) -> Proto: ...
    @abc.abstractmethod
    def _call_capabilities(self, request: Proto) -> Proto: ...
    @abc.abstractmethod
    def _send(self, message: bytes) -> None:
        """Send a serialized ``StreamMessageRequest`` to the device."""

    @abc.abstractmethod
    def _put(self, event: Event) -> None: ...
    @abc.abstractmethod
    def poll(self, timeout_s: float = 0.0) -> Event | None:
        """Return the next event, or None if none comes within ``timeout_s`` seconds."""

    @abc.abstractmethod
    def close(self) -> None:
        """End the session. If this client was the primary, its role then has no primary."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # ---- Session ----

    @property
    def is_primary(self) -> bool:
        """True if the device's last arbitration update says that this client is the primary."""
        return self.arbitration is not None and self.arbitration.is_primary

    def arbitrate(self, election_id: int | None = None) -> None:
        """Ask to become the primary, with a new election id if one is given. The answer comes as an :class:`Arbitration` event.

        Raises INVALID_ARGUMENT for an id of more than 128 bits.
        """
        if election_id is not None:
            self.election_id = election_id
        if not 0 <= self.election_id < 1 << 128:
            raise invalid_argument(f"election id {self.election_id} does not fit into 128 bits")
        message = p4runtime_pb2.StreamMessageRequest()
        message.arbitration.device_id = self.device_id
        set_election_id(message.arbitration, self.election_id)
        if self.role:
            message.arbitration.role.name = self.role
        self._send(message.SerializeToString())

    def _receive(self, message: Proto) -> None:
        """Process a ``StreamMessageResponse`` from the device: call a listener, or queue an event."""
        kind = message.WhichOneof("update")
        if kind == "arbitration":
            update = message.arbitration
            highest = update.election_id.high << 64 | update.election_id.low if update.HasField("election_id") else None
            self.arbitration = Arbitration(update.status.code == 0, code_name(update.status.code), highest)
            self._put(self.arbitration)
        elif kind == "packet":
            packet = self._packet_in(message.packet)
            self.on_packet_in(packet) if self.on_packet_in else self._put(packet)
        elif kind == "digest":
            digest = self._digest_list(message.digest)
            self.on_digest(digest) if self.on_digest else self._put(digest)
        elif kind == "idle_timeout_notification":
            idle = message.idle_timeout_notification
            entries = [read_entry(self.p4info, self.p4info.tables.by_id(e.table_id), e) for e in idle.table_entry]
            self._put(IdleEntries(entries, idle.timestamp))
        elif kind == "error":
            self._put(StreamError(code_name(message.error.canonical_code), message.error.message))

    def packets_in(self, timeout_s: float = 0.0) -> Iterator[PacketIn]:
        """Yield packet-ins as they come until none comes for ``timeout_s`` seconds. Other events are discarded."""
        while (event := self.poll(timeout_s)) is not None:
            if isinstance(event, PacketIn):
                yield event

    # ---- Pipeline ----

    @property
    def p4info(self) -> P4InfoIndex:
        """The device's P4Info, fetched when first needed. Raises FAILED_PRECONDITION if there is no pipeline."""
        if self._index is None:
            request = p4runtime_pb2.GetForwardingPipelineConfigRequest(device_id=self.device_id)
            request.response_type = p4runtime_pb2.GetForwardingPipelineConfigRequest.P4INFO_AND_COOKIE
            response = self._call_get_pipeline(request)
            if not response.HasField("config"):
                raise no_pipeline()
            self._index = _index_of(response.config.p4info.SerializeToString(deterministic=True))
        return self._index

    def set_pipeline(
        self,
        program: Program | None = None,
        *,
        p4info: str | Proto | None = None,
        artifact: bytes = b"",
        action: PipelineAction = "verify_and_commit",
        cookie: int | None = None,
    ) -> None:
        """Set the pipeline: from a compiled program, or from P4Info (text or message) and artifact.

        The action ``commit`` takes neither. ``cookie``: a number that the device keeps with the pipeline and shows to clients.
        """
        if program is not None:
            if p4info is not None or artifact:
                raise invalid_argument("give a program, or P4Info and artifact, not both")
            p4info, artifact = message_of(program), program.artifact()
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(device_id=self.device_id, role=self.role)
        set_election_id(request, self.election_id)
        request.action = p4runtime_pb2.SetForwardingPipelineConfigRequest.Action.Value(action.upper())
        if p4info is not None:
            info = parse_text(p4info) if isinstance(p4info, str) else p4info
            request.config.p4info.CopyFrom(info)
            request.config.p4_device_config = artifact
        if cookie is not None:
            request.config.cookie.cookie = cookie
        self._call_set_pipeline(request)
        self._index = None
        self._packet_out_metadata = {}

    def pipeline_config(self) -> Proto | None:
        """Return the device's ``ForwardingPipelineConfig``, or None if it has none."""
        request = p4runtime_pb2.GetForwardingPipelineConfigRequest(device_id=self.device_id)
        response = self._call_get_pipeline(request)
        return response.config if response.HasField("config") else None

    def api_version(self) -> str:
        """Return the version of P4Runtime that the server implements, as in ``1.5.0``."""
        return str(self._call_capabilities(p4runtime_pb2.CapabilitiesRequest()).p4runtime_api_version)

    # ---- Requests ----

    @contextmanager
    def batch(self, atomicity: Atomicity = "rollback_on_error") -> Iterator[None]:
        """Collect all writes made within the context and send them as one request at its end.

        If the code raises, nothing is sent.
        """
        if self._batch is not None:
            raise invalid_argument("batches do not nest")
        batch = self._batch = _Batch()
        try:
            yield
        finally:
            self._batch = None
        if batch.updates:
            self._send_batch(batch, atomicity)

    def _send_batch(self, batch: _Batch, atomicity: Atomicity) -> None:
        self.requests_sent += 1
        self.updates_sent += len(batch.updates)
        try:
            self._call_write(b"".join((_head(self.device_id, self.role, self.election_id, atomicity), *batch.updates)))
        except P4RuntimeError as e:
            raise e.with_descriptions([f"{verb} {what}" for verb, what in batch.descriptions]) from None

    def _update(self, verb: str, entity: Proto, what: str | EntryName) -> None:
        update = p4runtime_pb2.Update(type=UPDATE_TYPES[verb], entity=entity)
        self._send_update(verb, p4runtime_pb2.WriteRequest(updates=[update]).SerializeToString(), what)

    def _send_update(self, verb: str, update: bytes, what: str | EntryName) -> None:
        """Send one update, or add it to the open batch. ``update`` is a serialized request with only this update."""
        if self._batch is not None:
            self._batch.updates.append(update)
            self._batch.descriptions.append((verb, what))
        else:
            self._send_batch(_Batch([update], [(verb, what)]), "continue_on_error")

    def _read(self, *entities: Proto) -> Iterator[Proto]:
        request = p4runtime_pb2.ReadRequest(device_id=self.device_id, role=self.role, entities=entities)
        for response in self._call_read(request):
            yield from response.entities

    # ---- Packets and digests ----

    def packet_out(self, payload: bytes, /, **metadata: Value) -> None:
        """Send a packet into the switch. ``metadata``: fields of the packet-out header; the others are zero."""
        key = tuple(metadata.items())
        packed = self._packet_out_metadata.get(key)
        if packed is None:
            packed = self._pack_metadata(metadata)
            if len(self._packet_out_metadata) < _MOST_PACKED:
                self._packet_out_metadata[key] = packed
        # A message's fields can be in any number of parts, one after another: here the payload, and the metadata. Few packets
        # have other metadata than those before.
        packet = b"\x0a" + _varint(len(payload)) + payload + packed
        self._send(b"\x12" + _varint(len(packet)) + packet)

    def _pack_metadata(self, metadata: Mapping[str, Value]) -> bytes:
        """Return the serialized metadata of a ``PacketOut``; fields of the packet-out header that are left out are zero.

        Raises INVALID_ARGUMENT for metadata that the program does not have.
        """
        message = p4runtime_pb2.PacketOut()
        header = self.p4info.packet_out
        if header is None and metadata:
            raise invalid_argument("the program has no packet_out header, so a packet-out takes no metadata")
        if header is not None:
            values = {header.fields[name].id: (name, value) for name, value in metadata.items()}
            for part in header.fields:
                name, value = values.get(part.id, (part.name, 0))
                encoded = encoded_value(part, value, f"packet-out metadata '{name}'")
                message.metadata.add(metadata_id=part.id, value=encoded)
        return cast("bytes", message.SerializeToString())

    def _packet_in(self, message: Proto) -> PacketIn:
        header = self.p4info.packet_in
        metadata: dict[str, Any] = {}
        for item in message.metadata:
            part = header.fields.get(item.metadata_id) if header else None
            name = part.name if part else str(item.metadata_id)
            metadata[name] = decoded_value(part, item.value) if part else int.from_bytes(item.value, "big")
        return PacketIn(message.payload, metadata)

    def _digest_list(self, message: Proto) -> DigestList:
        digest = self.p4info.digests.by_id(message.digest_id)
        types = self.p4info.message.type_info
        numbers = [p4data.from_p4data(digest.type_spec, types, data) for data in message.data]
        values = [p4data.to_plain(digest.type_spec, types, number) for number in numbers]
        return DigestList(digest.name, message.list_id, values, message.timestamp)

    def acknowledge(self, digest_list: DigestList) -> None:
        """Acknowledge a digest list, so that the device can send a digest with the same values again."""
        message = p4runtime_pb2.StreamMessageRequest()
        message.digest_ack.digest_id = self.p4info.digests[digest_list.digest].id
        message.digest_ack.list_id = digest_list.list_id
        self._send(message.SerializeToString())
