"""P4Runtime's rules for one device: everything the service does, without gRPC. Switch and pipeline are a :class:`SwitchOwner`'s.

Both transports (:mod:`holdfast.p4runtime.server`, and the in-process client) call the same methods with the same
protobuf messages. Writes and reads go to the native core as they came, which decodes, resolves and encodes entities
(``_core.Pipeline``). Refusals are :class:`P4RuntimeError`. A batch that is not atomic is applied in slices; if the primary
changes between two of them, the rest is refused, so no update of a client is applied after another one became the primary.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Literal, Protocol, TypeAlias

from google.protobuf.message import DecodeError

from holdfast import _core
from holdfast._core import HoldfastError, Program, Switch, WriteRequest
from holdfast.p4runtime import device_config, limits
from holdfast.p4runtime.arbitration import Arbitration, Session, election_id_of
from holdfast.p4runtime.errors import (
    P4RuntimeError,
    batch_error,
    code_number,
    invalid_argument,
    refusals,
    unimplemented,
)
from holdfast.p4runtime.p4info import message_of
from holdfast.p4runtime.stubs import Proto, p4runtime_pb2
from holdfast.switch_owner import Pipeline, SwitchOwner

API_VERSION = "1.5.0"
"""The version of P4Runtime. Its optional additions (backup replicas, modes of one-shot action selectors) are answered
with UNIMPLEMENTED."""

_UPDATES = p4runtime_pb2.WriteRequest.DESCRIPTOR.fields_by_name["updates"].number

Mappings: TypeAlias = Mapping[str, Mapping[int, int] | Mapping[str, int]]
"""For the URI of each translated type, the switch's value by the controller's (specification, "PSA Metadata
Translation"). A type without a mapping: numbers stand for themselves, and strings get numbers in the order in which
they appear."""


@lru_cache(maxsize=32)
def _load_program(artifact: bytes) -> Program:
    """Load the program of an artifact. Equal bytes give the same object, so that switches with the same program share its code."""
    return Program.from_artifact(artifact)


class Watcher(Protocol):
    """An observer of the requests that clients have made, such as metrics.

    It is called in the clients' threads, and has the clock.
    """

    def now_s(self) -> float:
        """Return a time in seconds from a clock that never goes back; only differences between two times mean something."""

    def wrote(self, tally: Iterable[tuple[str, str, str, int]], began_s: float) -> None:
        """Record a Write that began at ``began_s``, with the numbers of its updates by kind (:meth:`_core.Batch.tally`)."""

    def computed(self, entities: Collection[str], took_s: float) -> None:
        """Record a Read of these kinds of entities; ``took_s`` is the time of its computation in seconds."""

    def refused(self, call: str, code: str) -> None:
        """Record a request that was refused as a whole, by its call (such as "Write") and the name of the status."""


def _is_same(config: Proto, other: Proto) -> bool:
    """Return True if two configs have the same program and P4Info; cookies, and what wraps the program, may differ."""
    artifacts = {device_config.artifact(each.p4_device_config) for each in (config, other)}
    return bool(len(artifacts) == 1 and config.p4info == other.p4info)


class Device:
    """A switch as P4Runtime sees it, without a pipeline until a client pushes one or :meth:`load` is called.

    ``device_id``: 1 to 2^64 - 1 by the specification ("Default Role and Default Device ID"). Zero is taken if the operator gives
    it, as test suites have it in their code; then a request without a device id is for this device. ``executor``: the one that a
    pushed program is verified on; give the switch's. ``packet_out`` takes a packet with its packet-out header; by default the
    switch's own. ``translations``: the meaning of values of translated types. ``pipeline_roles``: the roles besides the default
    one that may set the pipeline. ``watcher``: who is told of requests.
    """

    watcher: Watcher | None = None

    def __init__(
        self,
        device_id: int,
        switch: Switch,
        *,
        executor: Literal["jit", "interpreter"] = "jit",
        packet_out: Callable[[bytes], None] | None = None,
        translations: Mappings | None = None,
        pipeline_roles: Collection[str] = (),
    ) -> None:
        if device_id < 0 or device_id.bit_length() > 64:
            raise invalid_argument(f"device id {device_id} is not between 0 and 2^64 - 1")
        self.device_id = device_id
        self.owner: SwitchOwner[Proto] = SwitchOwner(switch, executor=executor)
        self.short_packet_ins = 0
        """Packets from the CPU port that were shorter than the packet-in header."""
        self._lock = self.owner.lock
        self._arbitration = Arbitration(device_id)
        self._packet_out = packet_out or switch.packet_out
        self._translations = {uri: dict(mapping) for uri, mapping in (translations or {}).items()}
        self._pipeline_roles = frozenset(pipeline_roles)

    @property
    def switch(self) -> Switch:
        """The switch."""
        return self.owner.switch

    def streams(self) -> dict[str, tuple[int, bool]]:
        """Return by role how many streams are open, and whether one of them is the primary's. The default role is ``""``."""
        with self._lock:
            return self._arbitration.streams()

    def load(self, program: Program) -> None:
        """Set the pipeline to a compiled program without a client, as if the switch had been delivered with it.

        Clears the switch's state. Raises INVALID_ARGUMENT for a program without P4Info.
        """
        if not program.p4info:
            raise invalid_argument(f"program '{program.name}' carries no P4Info; compile it, or have a client push it")
        config = p4runtime_pb2.ForwardingPipelineConfig()
        config.p4info.CopyFrom(message_of(program))
        config.p4_device_config = program.artifact()
        self.owner.load(config, program, self._core_pipeline(config, program))

    def _core_pipeline(self, config: Proto, program: Program) -> _core.Pipeline:
        with refusals():
            return _core.Pipeline(program, config.p4info.SerializeToString(), self._translations)

    # ---- Streams ----

    def open(self, send: Callable[[Proto], None]) -> Session:
        """Open a stream. ``send`` is called with each ``StreamMessageResponse``, from any thread, and must not block."""
        return Session(send)

    def close(self, session: Session) -> None:
        """Remove a closed stream. If it was the primary's, the other clients are notified that there is no primary."""
        with self._lock:
            self._arbitration.disconnect(session)

    def handle(self, session: Session, message: Proto) -> None:
        """Process a ``StreamMessageRequest``.

        Raises an error if the stream must be ended with it; lesser errors are sent on the stream.
        """
        kind = message.WhichOneof("update")
        with self._lock:
            if kind == "arbitration":
                self._arbitration.update(session, message.arbitration)
                return
            try:
                if not self._arbitration.is_primary(session):
                    raise P4RuntimeError("PERMISSION_DENIED", "the client is not the primary")
                if kind == "packet":
                    self._handle_packet_out(message.packet)
                elif kind == "digest_ack":
                    self._handle_digest_ack(message.digest_ack)
                elif kind == "other":
                    raise unimplemented("there are no stream messages of other types here")
                else:
                    raise invalid_argument("the stream message is empty, or of a later version of P4Runtime")
            except P4RuntimeError as e:
                session.send(_stream_error(message, e))

    def _handle_packet_out(self, message: Proto) -> None:
        if self.owner.running is None:
            raise no_pipeline()
        with refusals():
            data = self.owner.running.core.packet_out(message.SerializeToString())
        try:
            self._packet_out(data)
        except P4RuntimeError:
            raise
        except HoldfastError as e:
            raise P4RuntimeError(getattr(e, "code", "INTERNAL"), str(e)) from None

    def _handle_digest_ack(self, message: Proto) -> None:
        if self.owner.running is None:
            raise no_pipeline()
        with refusals():
            self.owner.running.core.acknowledge(self.owner.running.switch, message.digest_id, message.list_id)

    def _send_to_primaries(self, response: Proto, object_id: int = 0) -> None:
        """Send a message to the primaries; if ``object_id`` is given, only to those whose role may access that object."""
        for session in self._arbitration.primaries():
            if self.owner.running is None or self.owner.running.core.role_may(session.role or "", object_id):
                session.send(response)

    # ---- From the data plane ----

    def _packet_in(self, packet: bytes) -> Proto | None:
        """Return the ``PacketIn`` for a packet from the CPU port; None if the packet is shorter than the packet-in header."""
        if self.owner.running is None:
            return p4runtime_pb2.PacketIn(payload=packet)
        data = self.owner.running.core.packet_in(packet)
        return None if data is None else p4runtime_pb2.PacketIn.FromString(data)

    def split_packet_in(self, data: bytes) -> tuple[bytes, dict[str, int]]:
        """Split a packet from the CPU port into its payload and the fields of its packet-in header by name.

        If the packet is too short for the header, all of it is payload.
        """
        with self._lock:
            message, running = self._packet_in(data), self.owner.running
        if message is None or running is None:
            return data, {}
        headers = running.config.p4info.controller_packet_metadata
        names = {part.id: part.name for h in headers if h.preamble.name == "packet_in" for part in h.metadata}
        return message.payload, {names[m.metadata_id]: int.from_bytes(m.value, "big") for m in message.metadata}

    def packet_in(self, data: bytes) -> bool:
        """Send a packet from the CPU port, which begins with the packet-in header, to the primaries.

        Returns False if the packet is shorter than the header.
        """
        with self._lock:
            message = self._packet_in(data)
            if message is None:
                self.short_packet_ins += 1
                return False
            self._send_to_primaries(p4runtime_pb2.StreamMessageResponse(packet=message))
            return True

    def collect_digests(self, now_ns: int) -> None:
        """Send the digest lists whose time has come to the primaries; must be called whenever the network reports such lists.

        If more are due than are sent at a time, the network reports this again.
        """
        with self._lock:
            if self.owner.running is None:
                return
            for digest_id, data in self.owner.running.core.take_digests(self.switch, now_ns, limits.MAX_DIGESTS_TAKEN):
                message = p4runtime_pb2.DigestList.FromString(data)
                self._send_to_primaries(p4runtime_pb2.StreamMessageResponse(digest=message), digest_id)

    def collect_idle(self, now_ns: int) -> None:
        """Send notifications of entries that became idle to the primaries; must be called when the network reports such entries.

        If more wait than are sent at a time, the network reports this again.
        """
        with self._lock:
            if self.owner.running is None:
                return
            for table_id, data in self.owner.running.core.take_idle(self.switch, now_ns, limits.MAX_IDLE_ENTRIES):
                message = p4runtime_pb2.IdleTimeoutNotification.FromString(data)
                response = p4runtime_pb2.StreamMessageResponse(idle_timeout_notification=message)
                self._send_to_primaries(response, table_id)

    # ---- Write and Read ----

    def write(self, request: Proto) -> Proto:
        """Execute a ``WriteRequest`` and return a ``WriteResponse``.

        Raises UNKNOWN, with one failure per refused update, if any was refused.
        """
        self.write_serialized(request.SerializeToString())
        return p4runtime_pb2.WriteResponse()

    def write_serialized(self, data: bytes) -> None:
        """Execute a ``WriteRequest``, given as serialized bytes, as :meth:`write` does."""
        self.write_request(write_request(data))

    def write_as_operator(self, data: bytes) -> None:
        """Execute a serialized ``WriteRequest`` of the switch's operator as :meth:`write` does, but whoever is the primary."""
        self._write(write_request(data), self._check_device)

    def write_request(self, request: WriteRequest) -> None:
        """Execute a ``WriteRequest``, given as the result of the function :func:`write_request`, as :meth:`write` does."""
        self._write(request, self._check_writer)

    def _write(self, request: WriteRequest, check: Callable[[WriteRequest], None]) -> None:
        """Execute a ``WriteRequest`` if its client passes ``check``, which is called again before each slice of the batch."""
        if self.watcher is None:
            batch, failures = self._applied(request, check)
        else:
            began_s = self.watcher.now_s()
            try:
                batch, failures = self._applied(request, check)
            except P4RuntimeError as error:
                self.watcher.refused("write", error.code)
                raise
            self.watcher.wrote(batch.tally(failures), began_s)
        if failures:
            raise batch_error("write", failures, len(batch))

    def _applied(
        self, request: WriteRequest, check: Callable[[WriteRequest], None]
    ) -> tuple[_core.Batch, _core.Failures]:
        """Apply the updates of a request; return the batch, and the updates that were refused.

        ``check`` raises if the client may not write.
        """
        with self._lock:
            check(request)
            atomic = self._is_atomic(request.atomicity)
            if atomic:
                _check_atomic_size(len(request))
            pipeline = self._target()
        with refusals():
            batch = pipeline.core.plan(request)

        def may_go_on() -> P4RuntimeError | None:
            try:
                check(request)
                target = self._target()
            except P4RuntimeError as e:
                return e
            if target.core is not pipeline.core or target.switch is not pipeline.switch:
                return P4RuntimeError("ABORTED", "the pipeline was replaced during the write")
            return None

        per_slice = None if atomic else limits.UPDATES_PER_SLICE
        refused = self.owner.apply(pipeline, batch, may_go_on, updates_per_slice=per_slice)
        failures = batch.take_failures()
        if refused is not None:
            failures.add(batch.applied, len(batch), refused.code, code_number(refused.code), refused.message)
        return batch, failures

    @staticmethod
    def _is_atomic(atomicity: int) -> bool:
        if atomicity not in p4runtime_pb2.WriteRequest.Atomicity.values():
            raise invalid_argument(f"there is no atomicity {atomicity}")
        # Between updates of one batch no packet passes, so what is rolled back is also atomic for the data plane.
        return bool(atomicity != p4runtime_pb2.WriteRequest.CONTINUE_ON_ERROR)

    def read(self, request: Proto) -> Iterator[Proto]:
        """Answer a ``ReadRequest`` with ``ReadResponse`` messages of the state at the time of the call.

        The device is not locked while they are read. Raises an error after the last message if a part of the request was refused.
        """
        return map(p4runtime_pb2.ReadResponse.FromString, self.read_serialized(request.SerializeToString()))

    def read_serialized(self, data: bytes) -> Iterator[bytes]:
        """Answer a serialized ``ReadRequest`` with serialized ``ReadResponse`` messages, as :meth:`read` does."""
        request = small_request(p4runtime_pb2.ReadRequest, data)
        _check_size(len(request.entities), limits.MAX_READ_ENTITIES, "entities")
        with self._lock:
            self._check_device(request)
            pipeline = self._target()
            with refusals():
                reading = pipeline.core.read(pipeline.switch, data)
        responses = _responses(reading, pipeline.switch)
        if self.watcher is None:
            return responses
        kinds = {entity.WhichOneof("entity") or "unspecified" for entity in request.entities}
        return _watched(responses, self.watcher, kinds)

    def written(self) -> int:
        """Return how many table entries, multicast replicas and action profile members the switch has from clients."""
        wanted = p4runtime_pb2.ReadRequest(device_id=self.device_id)
        wanted.entities.add().table_entry.SetInParent()
        wanted.entities.add().packet_replication_engine_entry.multicast_group_entry.SetInParent()
        wanted.entities.add().action_profile_member.SetInParent()
        found = [entity for response in self.read(wanted) for entity in response.entities]
        return sum(
            len(e.packet_replication_engine_entry.multicast_group_entry.replicas)
            if e.HasField("packet_replication_engine_entry")
            else not e.table_entry.is_const
            for e in found
        )

    def capabilities(self, request: Proto) -> Proto:
        """Answer a ``CapabilitiesRequest`` with a ``CapabilitiesResponse``."""
        if request.device_id:
            self._check_device(request)
        return p4runtime_pb2.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    # ---- The pipeline ----

    def set_forwarding_pipeline_config(self, request: Proto) -> Proto:
        """Execute a ``SetForwardingPipelineConfigRequest`` and return its response."""
        actions = p4runtime_pb2.SetForwardingPipelineConfigRequest
        with self._lock:
            self._check_pipeline_client(request)
        if request.action == actions.COMMIT:
            if request.HasField("config"):
                raise invalid_argument("COMMIT realizes the saved config; it takes none")
            verified = None
        elif request.action in (
            actions.VERIFY,
            actions.VERIFY_AND_SAVE,
            actions.VERIFY_AND_COMMIT,
            actions.RECONCILE_AND_COMMIT,
        ):
            # Other clients need not wait for a large program.
            verified = self._verified(request)
        else:
            raise invalid_argument(
                f"there is no action {request.action}" if request.action else "the action is not set"
            )
        with self._lock:
            self._check_pipeline_client(request)
            if verified is None:
                if self.owner.saved is None:
                    raise P4RuntimeError("NOT_FOUND", "no config has been saved")
                verified = self.owner.saved  # the writes since it was saved are in its switch
            with refusals():
                if request.action == actions.VERIFY_AND_SAVE:
                    self.owner.saved = verified
                elif request.action in (actions.COMMIT, actions.VERIFY_AND_COMMIT):
                    self.owner.realize(verified)
                elif request.action == actions.RECONCILE_AND_COMMIT:
                    self.owner.reconcile(verified, _is_same)
        return p4runtime_pb2.SetForwardingPipelineConfigResponse()

    def _check_pipeline_client(self, request: Proto) -> None:
        self._check_client(request)
        if request.role and request.role not in self._pipeline_roles:
            # A client can make up a role, and the pipeline is everybody's.
            raise P4RuntimeError("PERMISSION_DENIED", f"role '{request.role}' may not set the pipeline")

    def get_forwarding_pipeline_config(self, request: Proto) -> Proto:
        """Answer a ``GetForwardingPipelineConfigRequest`` with the config that reads and writes refer to."""
        kinds = p4runtime_pb2.GetForwardingPipelineConfigRequest
        with self._lock:
            self._check_device(request)
            if request.response_type not in kinds.ResponseType.values():
                raise invalid_argument(f"there is no response type {request.response_type}")
            response = p4runtime_pb2.GetForwardingPipelineConfigResponse()
            pipeline = self.owner.target
            if pipeline is None:
                return response
            config = response.config
            config.SetInParent()
            if pipeline.config.HasField("cookie"):
                config.cookie.CopyFrom(pipeline.config.cookie)
            if request.response_type in (kinds.ALL, kinds.P4INFO_AND_COOKIE):
                config.p4info.CopyFrom(pipeline.config.p4info)
            if request.response_type in (kinds.ALL, kinds.DEVICE_CONFIG_AND_COOKIE):
                config.p4_device_config = pipeline.config.p4_device_config
            return response

    def _verified(self, request: Proto) -> Pipeline[Proto]:
        """Load a request's config into a switch of its own, and return it as a pipeline.

        Raises INVALID_ARGUMENT if it cannot be realized.
        """
        if not request.HasField("config"):
            raise invalid_argument("the config is missing")
        config = p4runtime_pb2.ForwardingPipelineConfig()
        config.CopyFrom(request.config)
        if not config.HasField("p4info"):
            raise invalid_argument("the config has no P4Info")
        if not config.p4_device_config:
            raise invalid_argument("the config has no p4_device_config; it is the compiled program")
        try:
            program = _load_program(device_config.artifact(config.p4_device_config))
            scratch = self.owner.scratch(program)
        except HoldfastError as e:
            raise invalid_argument(f"p4_device_config: {e}") from None
        core = self._core_pipeline(config, program)
        return Pipeline(config, program, core, scratch)

    def _target(self) -> Pipeline[Proto]:
        """Return the pipeline that reads and writes refer to. Raises an error if there is none."""
        pipeline = self.owner.target
        if pipeline is None:
            raise no_pipeline()
        return pipeline

    # ---- Checks in front of everything ----

    def _check_device(self, request: Proto | WriteRequest) -> None:
        if request.device_id != self.device_id:
            raise P4RuntimeError("NOT_FOUND", f"there is no device {request.device_id} here")

    def _check_writer(self, request: WriteRequest) -> None:
        self._check_device(request)
        self._arbitration.check_primary(request.role, request.role_id, request.election_id)

    def _check_client(self, request: Proto) -> None:
        self._check_device(request)
        self._arbitration.check_primary(request.role, request.role_id, election_id_of(request))


def _responses(reading: _core.Reading, switch: Switch) -> Iterator[bytes]:
    with refusals():
        while (response := reading.next(switch)) is not None:
            yield response
    count, failures = reading.failures()
    if failures:
        raise batch_error("read", failures, count)


def _watched(responses: Iterator[bytes], watcher: Watcher, kinds: Collection[str]) -> Iterator[bytes]:
    """Yield the responses of a Read, and tell ``watcher`` the time it took to compute them, even if not all are fetched."""
    took_s = 0.0
    try:
        while True:
            began_s = watcher.now_s()
            response = next(responses, None)
            took_s += watcher.now_s() - began_s
            if response is None:
                return
            yield response
    finally:
        watcher.computed(kinds, took_s)


def write_request(data: bytes) -> WriteRequest:
    """Return a ``WriteRequest`` whose updates have not been decoded.

    Raises INVALID_ARGUMENT if the bytes are not a ``WriteRequest``, RESOURCE_EXHAUSTED if there are too many of them.
    """
    updates, longest = _core.extent(data, _UPDATES)
    _check_size(updates, limits.MAX_WRITE_UPDATES, "updates")
    check_bytes(longest, limits.MAX_UPDATE_BYTES, "an update")
    with refusals():
        return WriteRequest(data)


def small_request(kind: Proto, data: bytes) -> Proto:
    """Decode a request of a kind that has few bytes, as :func:`decoded` does. Raises RESOURCE_EXHAUSTED if it has more."""
    check_bytes(len(data), limits.MAX_SMALL_REQUEST_BYTES, f"a {kind.DESCRIPTOR.name}")
    return decoded(kind, data)


def check_bytes(size: int, most: int, what: str) -> None:
    """Raise RESOURCE_EXHAUSTED if ``what`` has more than ``most`` bytes; call this before it is decoded."""
    if size > most:
        raise P4RuntimeError("RESOURCE_EXHAUSTED", f"{what} has {size} bytes; {most} are taken")


def decoded(kind: Proto, data: bytes) -> Proto:
    """Decode bytes as a message of this kind. Raises INVALID_ARGUMENT if they are not such a message."""
    try:
        return kind.FromString(data)
    except DecodeError:
        raise invalid_argument(f"this is no {kind.DESCRIPTOR.name}") from None


def _check_size(count: int, most: int, what: str) -> None:
    """Raise RESOURCE_EXHAUSTED if a request has more than ``most`` elements; called before any of them is processed."""
    if count > most:
        raise P4RuntimeError("RESOURCE_EXHAUSTED", f"the request has {count} {what}; {most} are taken in one")


def _check_atomic_size(count: int) -> None:
    """Raise RESOURCE_EXHAUSTED for an atomic batch so large that it would stop packets, and other clients, for too long."""
    if count > limits.MAX_ATOMIC_UPDATES:
        raise P4RuntimeError(
            "RESOURCE_EXHAUSTED",
            f"the batch has {count} updates; {limits.MAX_ATOMIC_UPDATES} are taken in one that is atomic, "
            f"{limits.MAX_WRITE_UPDATES} with CONTINUE_ON_ERROR",
        )


def no_pipeline() -> P4RuntimeError:
    """Return the error for a request that needs a pipeline when there is none."""
    return P4RuntimeError("FAILED_PRECONDITION", "no forwarding pipeline config has been set")


def _stream_error(message: Proto, error: P4RuntimeError) -> Proto:
    """Return a ``StreamError`` about a message of the client. It includes the message, with a truncated payload if that is long."""
    response = p4runtime_pb2.StreamMessageResponse()
    response.error.canonical_code = code_number(error.code)
    response.error.message = error.message
    kind = message.WhichOneof("update")
    small = message.ByteSize() <= limits.MAX_ECHOED_BYTES
    if kind == "packet":
        echo = response.error.packet_out.packet_out
        if small:
            echo.CopyFrom(message.packet)
        else:
            echo.payload = message.packet.payload[: limits.MAX_ECHOED_BYTES]
    elif kind == "digest_ack":
        echo = response.error.digest_list_ack.digest_list_ack
        echo.digest_id, echo.list_id = message.digest_ack.digest_id, message.digest_ack.list_id
    else:
        response.error.other.SetInParent()
        if kind == "other" and small:
            response.error.other.other.CopyFrom(message.other)
    return response
