"""One P4Runtime device over one switch: everything the service does, without gRPC.

Both transports (:mod:`holdfast.p4runtime.server`, and the in-process client) call the same methods with the same
protobuf messages. Refusals are :class:`P4RuntimeError`. A device reads no clock and starts no thread; its lock makes
calls from several threads follow one another. A batch that is not atomic is applied in slices; if the primary changes
between two of them, the rest is refused, so no update of a client is applied after another one became the primary.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from typing import Literal

from google.protobuf.message import DecodeError

from holdfast import _core
from holdfast._core import ControlError, HoldfastError, Program, Switch, WriteRequest
from holdfast.p4runtime import limits, packet_io
from holdfast.p4runtime.arbitration import Arbitration, Session, election_id_of
from holdfast.p4runtime.errors import P4RuntimeError, batch_error, code_number, invalid_argument, unimplemented
from holdfast.p4runtime.p4info import P4InfoIndex, parse_text
from holdfast.p4runtime.pipeline import Pipeline, Result, check_belongs
from holdfast.p4runtime.snapshots import ENTRIES_PER_SLICE, Snapshots
from holdfast.p4runtime.stubs import Proto, p4runtime_pb2
from holdfast.p4runtime.translation import Mappings

API_VERSION = "1.5.0"
"""Of P4Runtime; what it adds and is optional (backup replicas, modes of one-shot sets) answers UNIMPLEMENTED."""

_TURN_S = 0.0001
"""How long a batch leaves the device to others after each slice."""


@lru_cache(maxsize=32)
def _load_program(artifact: bytes) -> Program:
    """The program of an artifact.

    The same one for the same bytes, so switches that are given one program share its code.
    """
    return Program.from_artifact(artifact)


class Device:
    """A switch as P4Runtime sees it, without a pipeline until a client pushes one or :meth:`load` is called.

    ``executor``: what a pushed program is verified on; give the switch's. ``packet_out`` takes a packet with its
    packet-out header; by default the switch's own. ``translations``: what values of translated types mean (see
    :mod:`.translation`). ``pipeline_roles``: the roles besides the default one that may set the pipeline.
    ``load_program`` and ``make_switch`` are for switches that are not the native core's.
    """

    def __init__(
        self,
        device_id: int,
        switch: Switch,
        *,
        executor: Literal["jit", "interpreter"] = "jit",
        packet_out: Callable[[bytes], None] | None = None,
        translations: Mappings | None = None,
        pipeline_roles: Collection[str] = (),
        load_program: Callable[[bytes], Program] = _load_program,
        make_switch: Callable[[Program], Switch] | None = None,
    ) -> None:
        if device_id <= 0 or device_id.bit_length() > 64:
            raise invalid_argument(f"device id {device_id} is not between 1 and 2^64 - 1")
        self.device_id = device_id
        self.switch = switch
        self.short_packet_ins = 0
        """Packets from the CPU port that were shorter than the packet-in header."""
        self._lock = threading.RLock()
        self._arbitration = Arbitration(device_id)
        self._packet_out = packet_out or switch.packet_out
        self._translations = translations
        self._pipeline_roles = frozenset(pipeline_roles)
        self._load_program = load_program
        self._make_switch = make_switch or (lambda program: _core.Switch(program, executor=executor))
        self._running: Pipeline | None = None
        self._saved: Pipeline | None = None

    def load(self, program: Program) -> None:
        """Makes a compiled program the pipeline without any client, as if the switch had come with it.

        Clears the switch.
        """
        if not program.p4info:
            raise invalid_argument(f"program '{program.name}' carries no P4Info; compile it, or have a client push it")
        config = p4runtime_pb2.ForwardingPipelineConfig()
        config.p4info.CopyFrom(parse_text(program.p4info))
        config.p4_device_config = program.artifact()
        with self._lock:
            self._realize(config, P4InfoIndex(config.p4info, self._translations), program)

    # ---- Streams ----

    def open(self, send: Callable[[Proto], None]) -> Session:
        """A new stream. ``send`` takes a ``StreamMessageResponse``, from any thread, and must not block."""
        return Session(send)

    def close(self, session: Session) -> None:
        """The stream is gone. If it was the primary's, the others are told that there is none."""
        with self._lock:
            self._arbitration.disconnect(session)

    def handle(self, session: Session, message: Proto) -> None:
        """A ``StreamMessageRequest``.

        Raises what the stream must be terminated with; lesser errors are sent on the stream.
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
        if self._running is None:
            raise no_pipeline()
        data = packet_io.packet_out_bytes(message, self._running.index.packet_out)
        try:
            self._packet_out(data)
        except P4RuntimeError:
            raise
        except HoldfastError as e:
            raise P4RuntimeError(getattr(e, "code", "INTERNAL"), str(e)) from None

    def _handle_digest_ack(self, message: Proto) -> None:
        if self._running is None:
            raise no_pipeline()
        self._running.index.digests.by_id(message.digest_id)
        self._running.digests.acknowledge(message.digest_id, message.list_id)

    def _send_to_primaries(self, response: Proto, object_id: int = 0) -> None:
        """To those whose role may deal with the object, if it is about one."""
        for session in self._arbitration.primaries():
            if self._running is None or self._running.index.role_may(session.role or "", object_id):
                session.send(response)

    def _send_digest(self, digest_list: Proto) -> None:
        response = p4runtime_pb2.StreamMessageResponse(digest=digest_list)
        self._send_to_primaries(response, digest_list.digest_id)

    # ---- From the data plane ----

    def split_packet_in(self, data: bytes) -> tuple[bytes, dict[str, int]]:
        """Payload and packet-in header fields by name of a packet from the CPU port; all payload if it is too short."""
        with self._lock:
            header = self._running.index.packet_in if self._running else None
            message = packet_io.packet_in_message(data, header)
            if message is None or header is None:
                return data, {}
            names = {part.id: part.name for part in header.fields}
            return message.payload, {names[m.metadata_id]: int.from_bytes(m.value, "big") for m in message.metadata}

    def packet_in(self, data: bytes) -> bool:
        """A packet from the CPU port, packet-in header first: to the primaries.

        False if it is shorter than the header.
        """
        with self._lock:
            header = self._running.index.packet_in if self._running else None
            message = packet_io.packet_in_message(data, header)
            if message is None:
                self.short_packet_ins += 1
                return False
            self._send_to_primaries(p4runtime_pb2.StreamMessageResponse(packet=message))
            return True

    def digest(self, digest_id: int, value: int, now_ns: int) -> None:
        """A digest message: its members as one number, the first in the highest bits.

        Grouped as the client asked for.
        """
        with self._lock:
            if self._running is not None:
                self._running.digests.add(digest_id, value, now_ns)

    def collect_digests(self, now_ns: int) -> None:
        """Takes digest messages that wait in the switch; to be called whenever the network says that there are some.

        If more wait than are taken at once, the network says so again.
        """
        with self._lock:
            for digest_id, value in self.switch.take_digests(limits.MAX_DIGESTS_TAKEN):
                self.digest(digest_id, int.from_bytes(value, "big"), now_ns)

    def flush_digests(self, now_ns: int) -> int | None:
        """Sends digests that waited long enough. Returns when to call again, if any wait."""
        with self._lock:
            if self._running is None:
                return None
            self._running.digests.flush_due(now_ns)
            return self._running.digests.next_due_ns()

    def collect_idle(self, now_ns: int) -> None:
        """Tells the primaries of entries that became idle; to be called whenever the network says that there are some.

        If more wait than are taken at once, the network says so again.
        """
        with self._lock:
            pipeline = self._running
            if pipeline is None:
                return
            notifications: dict[int, Proto] = {}
            for entry in self.switch.take_idle_entries(limits.MAX_IDLE_ENTRIES):
                response = notifications.setdefault(entry.table_id, p4runtime_pb2.StreamMessageResponse())
                response.idle_timeout_notification.timestamp = now_ns
                response.idle_timeout_notification.table_entry.append(pipeline.idle_entry(entry))
            for table_id, response in notifications.items():
                self._send_to_primaries(response, table_id)

    # ---- Write and Read ----

    def write(self, request: Proto) -> Proto:
        """``WriteRequest`` to ``WriteResponse``. UNKNOWN with one failure per refused update if some were."""
        if not self._write_plain(WriteRequest.parse(request.SerializeToString())):
            self._write(request)
        return p4runtime_pb2.WriteResponse()

    def write_serialized(self, data: bytes) -> None:
        """:meth:`write` for a request that has not been decoded, which plain ones need not be (see :mod:`.plain`)."""
        if not self._write_plain(WriteRequest.parse(data)):
            self._write(decoded(p4runtime_pb2.WriteRequest, data))

    def _write_plain(self, request: WriteRequest | None) -> bool:
        """Whether that was all; if not, nothing has happened."""
        if request is None:
            return False
        _check_size(len(request), limits.MAX_WRITE_UPDATES, "updates")
        with self._lock:
            self._check_device(request)
            self._arbitration.check_primary(request.role, request.role_id, request.election_id)
            atomic = self._is_atomic(request.atomicity)
            if atomic:
                _check_atomic_size(len(request))
            failures = self._target().write_plain(request, atomic=atomic)
        if failures:
            results: list[Result] = [None] * len(request)
            for position, code, message in failures:
                results[position] = (code, message)
            raise batch_error("write", results)
        return failures is not None

    def _write(self, request: Proto) -> None:
        _check_size(len(request.updates), limits.MAX_WRITE_UPDATES, "updates")
        with self._lock:
            self._check_client(request)
            pipeline = self._target()
            atomic = self._is_atomic(request.atomicity)
            if atomic:
                _check_atomic_size(len(request.updates))
                results = pipeline.write(request.updates, atomic=True, role=request.role)
        if not atomic:
            results = self._write_in_slices(request, pipeline)
        if any(results):
            raise batch_error("write", results)

    def _write_in_slices(self, request: Proto, pipeline: Pipeline) -> list[Result]:
        """Between them others have their turn: a new primary among them, or another role's."""
        results: list[Result] = []
        while len(results) < len(request.updates):
            some = request.updates[len(results) : len(results) + limits.UPDATES_PER_SLICE]
            with self._lock:
                try:
                    self._check_client(request)
                    if self._target() is not pipeline:
                        raise P4RuntimeError("ABORTED", "the pipeline was replaced during the write")
                except P4RuntimeError as e:
                    return results + [(e.code, e.message)] * (len(request.updates) - len(results))
                results += pipeline.write(some, atomic=False, role=request.role)
            if len(results) < len(request.updates):
                # The lock would nearly always come back to this thread at once.
                time.sleep(_TURN_S)
        return results

    @staticmethod
    def _is_atomic(atomicity: int) -> bool:
        if atomicity not in p4runtime_pb2.WriteRequest.Atomicity.values():
            raise invalid_argument(f"there is no atomicity {atomicity}")
        # Between updates of one batch no packet passes, so what is rolled back is also atomic for the data plane.
        return bool(atomicity != p4runtime_pb2.WriteRequest.CONTINUE_ON_ERROR)

    def read(self, request: Proto) -> Iterator[Proto]:
        """``ReadRequest`` to ``ReadResponse`` messages, as of now; taking them does not lock the device.

        Raises after the last one if a request was refused.
        """
        return map(_decoded, self.read_serialized(request))

    def read_serialized(self, request: Proto) -> Iterator[Proto | bytes]:
        """:meth:`read` with some of the messages serialized already."""
        _check_size(len(request.entities), limits.MAX_READ_ENTITIES, "entities")
        with self._lock:
            self._check_device(request)
            pipeline = self._target()
            snapshots = Snapshots(pipeline.switch)
            found = [_entities(pipeline, wanted, request.role, snapshots) for wanted in request.entities]
        return _responses(found)

    def capabilities(self, request: Proto) -> Proto:
        """``CapabilitiesRequest`` to ``CapabilitiesResponse``."""
        if request.device_id:
            self._check_device(request)
        return p4runtime_pb2.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    # ---- The pipeline ----

    def set_forwarding_pipeline_config(self, request: Proto) -> Proto:
        """``SetForwardingPipelineConfigRequest`` to its response."""
        actions = p4runtime_pb2.SetForwardingPipelineConfigRequest
        with self._lock:
            self._check_client(request)
            if request.role and request.role not in self._pipeline_roles:
                # A client can make up a role, and the pipeline is everybody's.
                raise P4RuntimeError("PERMISSION_DENIED", f"role '{request.role}' may not set the pipeline")
            if request.action == actions.COMMIT:
                self._commit_saved(request)
            elif request.action == actions.VERIFY:
                self._verified(request)
            elif request.action == actions.VERIFY_AND_SAVE:
                self._saved = self._verified(request)
                self._saved.record = True
            elif request.action == actions.VERIFY_AND_COMMIT:
                verified = self._verified(request)
                self._realize(verified.config, verified.index, verified.program)
            elif request.action == actions.RECONCILE_AND_COMMIT:
                self._reconcile(self._verified(request))
            else:
                raise invalid_argument(
                    f"there is no action {request.action}" if request.action else "the action is not set"
                )
            return p4runtime_pb2.SetForwardingPipelineConfigResponse()

    def get_forwarding_pipeline_config(self, request: Proto) -> Proto:
        """``GetForwardingPipelineConfigRequest`` to its response: the config that reads and writes refer to."""
        kinds = p4runtime_pb2.GetForwardingPipelineConfigRequest
        with self._lock:
            self._check_device(request)
            if request.response_type not in kinds.ResponseType.values():
                raise invalid_argument(f"there is no response type {request.response_type}")
            response = p4runtime_pb2.GetForwardingPipelineConfigResponse()
            pipeline = self._saved or self._running
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

    def _verified(self, request: Proto) -> Pipeline:
        """The config of a request as a pipeline on a scratch switch. INVALID_ARGUMENT if it cannot be realized."""
        if not request.HasField("config"):
            raise invalid_argument("the config is missing")
        config = p4runtime_pb2.ForwardingPipelineConfig()
        config.CopyFrom(request.config)
        if not config.HasField("p4info"):
            raise invalid_argument("the config has no P4Info")
        if not config.p4_device_config:
            raise invalid_argument("the config has no p4_device_config; it is the compiled program")
        index = P4InfoIndex(config.p4info, self._translations)
        try:
            program = self._load_program(config.p4_device_config)
            scratch = self._make_switch(program)
        except HoldfastError as e:
            raise invalid_argument(f"p4_device_config: {e}") from None
        check_belongs(index, program)
        return Pipeline(config, index, program, scratch, self._send_digest)

    def _realize(self, config: Proto, index: P4InfoIndex, program: Program) -> Pipeline:
        """Runs a program on the device's own switch, which clears it."""
        self.switch.set_program(program)
        self._saved = None
        self._running = Pipeline(config, index, program, self.switch, self._send_digest)
        return self._running

    def _commit_saved(self, request: Proto) -> None:
        if request.HasField("config"):
            raise invalid_argument("COMMIT realizes the saved config; it takes none")
        saved = self._saved
        if saved is None:
            raise P4RuntimeError("NOT_FOUND", "no config has been saved")
        running = self._realize(saved.config, saved.index, saved.program)
        failures = [r for r in self.switch.write(saved.accepted, "continue_on_error") if r] if saved.accepted else []
        running.adopt(saved.notes, saved.digests)
        if failures:
            raise P4RuntimeError("INTERNAL", f"{len(failures)} saved writes failed on commit, first: {failures[0][1]}")

    def _reconcile(self, verified: Pipeline) -> None:
        old = self._running
        if old is None:
            self._realize(verified.config, verified.index, verified.program)
            return
        verified.index.inherit_translations(old.index)
        updates = _clear_initial_entries(old, verified)
        updates += list(old.state())
        refused = next(
            (r for r in verified.switch.write(updates, "rollback_on_error") if r and r[0] != "ABORTED"), None
        )
        if refused:
            raise invalid_argument(f"the existing state cannot be preserved: {refused[0]}: {refused[1]}")
        running = self._realize(verified.config, verified.index, verified.program)
        if updates:
            self.switch.write(updates, "rollback_on_error")
        running.adopt(old.notes)
        for id, (_, config) in old.digests.snapshot().items():
            if digest := running.index.digests.get(id):
                running.digests.configure(p4runtime_pb2.Update.INSERT, digest, config)

    def _target(self) -> Pipeline:
        """What reads and writes refer to: the saved config if there is one, else the running one."""
        pipeline = self._saved or self._running
        if pipeline is None:
            raise no_pipeline()
        return pipeline

    # ---- Checks in front of everything ----

    def _check_device(self, request: Proto) -> None:
        if request.device_id != self.device_id:
            raise P4RuntimeError("NOT_FOUND", f"there is no device {request.device_id} here")

    def _check_client(self, request: Proto) -> None:
        self._check_device(request)
        self._arbitration.check_primary(request.role, request.role_id, election_id_of(request))


def _entities(
    pipeline: Pipeline, wanted: Proto, role: str, snapshots: Snapshots
) -> Iterator[Proto | bytes] | P4RuntimeError:
    """Responses with what an ``Entity`` of a request selects, or what it is refused with."""
    try:
        plain = pipeline.read_plain(wanted, role, snapshots)
        return _in_messages(pipeline.read(wanted, role, snapshots)) if plain is None else plain
    except P4RuntimeError as e:
        return e
    except ControlError as e:
        return P4RuntimeError(e.code, str(e))


def _in_messages(entities: Iterator[Proto]) -> Iterator[Proto]:
    while some := list(itertools.islice(entities, ENTRIES_PER_SLICE)):
        yield p4runtime_pb2.ReadResponse(entities=some)


def _decoded(response: Proto | bytes) -> Proto:
    return p4runtime_pb2.ReadResponse.FromString(response) if isinstance(response, bytes) else response


def _responses(found: list[Iterator[Proto | bytes] | P4RuntimeError]) -> Iterator[Proto | bytes]:
    results: list[Result] = []
    for responses in found:
        try:
            if isinstance(responses, P4RuntimeError):
                raise responses
            yield from responses
            results.append(None)
        except P4RuntimeError as e:
            results.append((e.code, e.message))
        except ControlError as e:
            results.append((e.code, str(e)))
    if any(results):
        raise batch_error("read", results)


def decoded(kind: Proto, data: bytes) -> Proto:
    """The message of that kind in these bytes. INVALID_ARGUMENT if there is none."""
    try:
        return kind.FromString(data)
    except DecodeError:
        raise invalid_argument(f"this is no {kind.DESCRIPTOR.name}") from None


def _check_size(count: int, most: int, what: str) -> None:
    """RESOURCE_EXHAUSTED, before anything is done, if one request has more elements than are taken."""
    if count > most:
        raise P4RuntimeError("RESOURCE_EXHAUSTED", f"the request has {count} {what}; {most} are taken in one")


def _check_atomic_size(count: int) -> None:
    """RESOURCE_EXHAUSTED for an atomic batch that would halt packets, and other clients, for too long."""
    if count > limits.MAX_ATOMIC_UPDATES:
        raise P4RuntimeError(
            "RESOURCE_EXHAUSTED",
            f"the batch has {count} updates; {limits.MAX_ATOMIC_UPDATES} are taken in one that is atomic, "
            f"{limits.MAX_WRITE_UPDATES} with CONTINUE_ON_ERROR",
        )


def no_pipeline() -> P4RuntimeError:
    """Nothing can be said before there is a pipeline."""
    return P4RuntimeError("FAILED_PRECONDITION", "no forwarding pipeline config has been set")


def _clear_initial_entries(old: Pipeline, new: Pipeline) -> list[_core.Update]:
    """Deletes of initial entries in tables that both programs have. INVALID_ARGUMENT if a table changed its shape."""
    updates: list[_core.Update] = []
    for table in old.index.tables:
        entries = old.switch.table_entries(table.id, include_default=False)
        counterpart = new.index.tables.get(table.id)
        if counterpart is None or list(counterpart.fields) != list(table.fields):
            if any(not e.is_const for e in entries):
                raise invalid_argument(
                    f"the entries of table '{table.name}' cannot be preserved: it is gone or its key changed"
                )
            continue
        for entry in new.switch.table_entries(table.id, include_default=False):
            if not entry.is_const:
                updates.append(("delete", entry))
    return updates


def _stream_error(message: Proto, error: P4RuntimeError) -> Proto:
    """``StreamError`` for a message, which it carries back, with as much of its payload as tells it apart."""
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
