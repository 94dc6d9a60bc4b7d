"""The P4Runtime service over gRPC: devices behind an address.

Only transport: threads, streams, status codes, TLS. The answers are :mod:`holdfast.p4runtime.device`'s business.
"""

from __future__ import annotations

import logging
import math
import os
import queue
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self, TypeAlias
from urllib.parse import unquote

import grpc
from google.protobuf.message import DecodeError

from holdfast._core import HoldfastError, give_back_freed, set_up_allocator
from holdfast.numerals import is_numeral
from holdfast.p4runtime import limits, stream_batches
from holdfast.p4runtime.addresses import Access, access_at, check
from holdfast.p4runtime.arbitration import Session
from holdfast.p4runtime.calls import Calls
from holdfast.p4runtime.device import (
    API_VERSION,
    Device,
    check_bytes,
    decoded,
    small_request,
    write_request,
)
from holdfast.p4runtime.errors import (
    DETAILS_BYTES_KEY,
    P4RuntimeError,
    code_number,
    invalid_argument,
    to_status,
)
from holdfast.p4runtime.rights import Client, Rights, Trust
from holdfast.p4runtime.stubs import Proto, p4runtime_pb2
from holdfast.regular_files import read_regular

log = logging.getLogger(__name__)

_STALL_CHECK_S = 0.05
_STOP_S = 5.0

_GIVE_BACK_BYTES = 1 << 20
"""The bytes of requests and answers after which freed memory is soon returned to the system; the allocator does not
return small blocks by itself."""
_GIVE_BACK_SOON_S = 1.0
"""The seconds after such requests until memory is returned, so that it is free by then. It takes a background thread
milliseconds."""
_GIVE_BACK_S = 3.0
"""The seconds after any other request until memory is returned, because a small request can free much."""

MOST_PEM_BYTES = 16 << 20
"""The largest file of keys or certificates; all certificate authorities of a system take less than 1 MiB."""


@dataclass(frozen=True)
class TlsFiles:
    """PEM files of the server; with ``client_ca``, clients must present a certificate signed by it, not the server's own.

    ``rights`` say what each of them may do; without, all may do everything.
    """

    certificate: Path
    key: Path
    client_ca: Path | None = None
    rights: Rights | None = None

    def trust(self) -> Trust | None:
        """Return the object that identifies clients by their certificates; None if clients need no certificates."""
        if self.client_ca is None:
            return None
        return Trust(read_regular(self.certificate, MOST_PEM_BYTES, HoldfastError), self.rights)

    def server_credentials(self) -> grpc.ServerCredentials:
        """Return gRPC's credentials from the files.

        Raises HoldfastError for a file that cannot be read, OSError if it is not valid PEM. The files are checked first, as gRPC
        reports a mistake in its log only.
        """
        # OpenSSL would wait for what a pipe brings.
        contents = {
            file: read_regular(Path(file), MOST_PEM_BYTES, HoldfastError)
            for file in (self.key, self.certificate, self.client_ca)
            if file is not None
        }
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key)
        except ssl.SSLError:
            raise OSError(f"{self.certificate} and {self.key} are no certificate and its key (PEM)") from None
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(self.client_ca or self.certificate)
        except ssl.SSLError:
            raise OSError(f"{self.client_ca} holds no certificate (PEM)") from None
        pair = (contents[self.key], contents[self.certificate])
        ca = contents[self.client_ca] if self.client_ca is not None else None
        return grpc.ssl_server_credentials([pair], root_certificates=ca, require_client_auth=ca is not None)


@dataclass(frozen=True)
class _End:
    """The last item in the queue of a stream: the error with which the stream ends, if any."""

    error: P4RuntimeError | None = None


@dataclass(frozen=True)
class _Refused:
    """An item in place of a message that was refused before it was decoded, with the error."""

    error: P4RuntimeError


_Sized: TypeAlias = tuple[int, Proto | _Refused]
"""The size of a message of a stream in bytes, and the message."""


class _Backlog:
    """The bytes that wait on all streams of a server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bytes = 0

    def take(self, size: int) -> bool:
        """Add ``size`` to the queued bytes and return True; return False if the limit would be exceeded."""
        with self._lock:
            if self._bytes + size > limits.MAX_QUEUED_BYTES_IN_ALL:
                return False
            self._bytes += size
            return True

    def give_back(self, size: int) -> None:
        """Subtract the bytes of messages that have been sent or discarded."""
        with self._lock:
            self._bytes -= size


class _Handled:
    """Counts the bytes of handled messages since freed memory was last returned to the operating system."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bytes = 0
        self._due_s = math.inf

    def add(self, size: int) -> None:
        """Count ``size`` more bytes of handled messages, and schedule the return of freed memory to the operating system."""
        with self._lock:
            self._bytes += size
            wait_s = _GIVE_BACK_SOON_S if self._bytes >= _GIVE_BACK_BYTES else _GIVE_BACK_S
            self._due_s = min(self._due_s, time.monotonic() + wait_s)

    def give_back(self, now_s: float) -> None:
        """Return freed memory to the operating system if the scheduled time has come (``now_s``, monotonic)."""
        with self._lock:
            if now_s < self._due_s:
                return
            self._bytes, self._due_s = 0, math.inf
        give_back_freed()


class _Stream:
    """The messages that wait to be sent on one stream."""

    def __init__(self, backlog: _Backlog) -> None:
        self._items: queue.SimpleQueue[tuple[Proto, int] | _End] = queue.SimpleQueue()
        self._backlog = backlog
        self._lock = threading.Lock()
        self._bytes = 0
        self._arbitrations = 0
        self._over = False
        self.dropped = 0
        self.batched = False
        """Whether the client takes several messages in one."""

    def send(self, message: Proto) -> None:
        """Queue a message. If the client reads too slowly, notifications are dropped, but never arbitration updates."""
        if message.WhichOneof("update") == "arbitration":
            self._send_arbitration(message)
            return
        size = message.ByteSize()
        with self._lock:
            full = self._items.qsize() >= limits.MAX_QUEUED_MESSAGES or self._bytes + size > limits.MAX_QUEUED_BYTES
            if self._over or full or not self._backlog.take(size):
                self.dropped += 1
                return
            self._bytes += size
            self._items.put((message, size))

    def _send_arbitration(self, message: Proto) -> None:
        """Queue an arbitration update regardless of the limit of notifications.

        So a client that reads slowly still learns who is the primary. The stream ends if too many updates are queued.
        """
        with self._lock:
            if self._over:
                return
            self._arbitrations += 1
            if self._arbitrations > limits.MAX_QUEUED_ARBITRATIONS:
                self._over = True
                self.end(P4RuntimeError("RESOURCE_EXHAUSTED", "the client does not read the stream"))
                return
            self._items.put((message, 0))

    def end(self, error: P4RuntimeError | None = None) -> None:
        """End the stream after the messages that are queued, with the status of ``error`` if one is given."""
        self._items.put(_End(error))

    def take(self, timeout_s: float | None = None) -> Proto | _End:
        """Return the next message or the stream's end. Raises ``queue.Empty`` if none comes within ``timeout_s`` seconds."""
        item = self._items.get(timeout=timeout_s)
        if isinstance(item, _End):
            return item
        message, size = item
        self._sent(size)
        return self._with_more(message, size) if self.batched and not self._items.empty() else message

    def _with_more(self, first: Proto, size: int) -> Proto:
        """Return one batch of ``first``, a message of ``size`` bytes, and of the messages queued after it, as many as fit."""
        batch = [first.SerializeToString()]
        sizes = [size]
        while len(batch) < stream_batches.MOST_MESSAGES and sum(sizes) < stream_batches.MOST_BYTES:
            try:
                item = self._items.get_nowait()
            except queue.Empty:
                break
            if isinstance(item, _End):
                self._items.put(item)  # nothing comes behind an end
                break
            batch.append(item[0].SerializeToString())
            sizes.append(item[1])
        for each in sizes[1:]:
            self._sent(each)
        return stream_batches.response(batch)

    def _sent(self, size: int) -> None:
        with self._lock:
            self._arbitrations -= size == 0
            self._bytes -= size
            self._backlog.give_back(size)

    def discard(self) -> None:
        """Discard all queued messages, as the client is gone, and queue no more."""
        with self._lock:
            self._over = True
            self._items = queue.SimpleQueue()
            self._backlog.give_back(self._bytes)
            self._bytes = 0


class _Streams:
    """The open streams of a server. A stream that has sent nothing yet never keeps another one out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._silent: dict[_Stream, str] = {}
        """The streams without an arbitration update, with their clients, the oldest first."""
        self._speaking: dict[_Stream, str] = {}
        self._dropped = 0
        """Notifications on streams that are over."""
        self._closing = False

    def admit(self, stream: _Stream, client: str) -> None:
        """Admit one more stream. Raises UNAVAILABLE if the server is shutting down.

        If there are too many streams that have sent nothing, end the oldest of the client that has most of them.
        """
        with self._lock:
            if self._closing:
                raise P4RuntimeError("UNAVAILABLE", "the server is shutting down")
            victim = None
            if len(self._silent) >= limits.MAX_SILENT_STREAMS:
                counts = Counter(self._silent.values())
                most = max(counts.values())
                victim = next(each for each, owner in self._silent.items() if counts[owner] == most)
                del self._silent[victim]
            self._silent[stream] = client
        if victim is not None:
            victim.end(P4RuntimeError("RESOURCE_EXHAUSTED", "newer streams came before an arbitration update did"))

    def speaks(self, stream: _Stream) -> None:
        """Count a stream among those that have sent a message, since its client is about to send its first arbitration update.

        Raises RESOURCE_EXHAUSTED if there are too many of these.
        """
        with self._lock:
            if (client := self._silent.get(stream)) is None:
                return
            if len(self._speaking) >= limits.MAX_STREAMS:
                raise P4RuntimeError("RESOURCE_EXHAUSTED", f"the server takes {limits.MAX_STREAMS} streams")
            own = sum(owner == client for owner in self._speaking.values())
            if client and own >= limits.MAX_STREAMS_PER_CLIENT:
                raise P4RuntimeError(
                    "RESOURCE_EXHAUSTED", f"the server takes {limits.MAX_STREAMS_PER_CLIENT} streams of one client"
                )
            del self._silent[stream]
            self._speaking[stream] = client

    def leave(self, stream: _Stream) -> None:
        """Remove an ended stream from the open ones, and add its dropped messages to the count."""
        with self._lock:
            self._silent.pop(stream, None)
            self._speaking.pop(stream, None)
            self._dropped += stream.dropped

    def dropped(self) -> int:
        """Return the number of notifications dropped so far, on all streams."""
        with self._lock:
            return self._dropped + sum(stream.dropped for stream in (*self._silent, *self._speaking))

    def close(self) -> list[_Stream]:
        """Refuse new streams from now on, and return the open ones."""
        with self._lock:
            self._closing = True
            return [*self._silent, *self._speaking]


@dataclass(eq=False)
class _Read:
    """One Read in progress."""

    cancel: Callable[[], object]
    client: str = ""
    """Whose it is; "" for those of this machine, which have no share."""
    waits_since: float | None = None
    """When the client was given a message that it has not taken yet."""


class _Reads:
    """The Reads in progress: so many at a time, of which one computes.

    A Read is cancelled if its client does not take the answer.
    """

    def __init__(self) -> None:
        self._reads: set[_Read] = set()
        self._lock = threading.Lock()
        self._computing = threading.Lock()

    def begin(self, cancel: Callable[[], object], client: str = "") -> _Read:
        """Count one more Read; ``cancel`` is called if it must end early.

        Raises RESOURCE_EXHAUSTED if there are too many Reads, in all or of its client.
        """
        with self._lock:
            if len(self._reads) >= limits.MAX_READS:
                raise P4RuntimeError("RESOURCE_EXHAUSTED", f"the server answers {limits.MAX_READS} Reads at a time")
            if client and sum(read.client == client for read in self._reads) >= limits.MAX_READS_PER_CLIENT:
                raise P4RuntimeError(
                    "RESOURCE_EXHAUSTED",
                    f"the server answers {limits.MAX_READS_PER_CLIENT} Reads of one client at a time",
                )
            read = _Read(cancel, client)
            self._reads.add(read)
            return read

    def next_of(self, responses: Iterator[Proto | bytes]) -> Proto | bytes | None:
        """Return the next response, or None after the last one.

        One thread at a time computes responses: several would take processor time from each other and from writes.
        """
        with self._computing:
            return next(responses, None)

    def end(self, read: _Read) -> None:
        """Remove a finished Read from the count."""
        with self._lock:
            self._reads.discard(read)

    def cancel_stalled(self, now: float) -> None:
        """Cancel Reads whose client has not received a message for ``READ_STALL_S`` seconds."""
        with self._lock:
            reads = list(self._reads)
        for read in reads:
            since = read.waits_since
            if since is not None and now - since > limits.READ_STALL_S:
                read.cancel()


class _Servicer:
    def __init__(self, devices: dict[int, Device], trust: Trust | None) -> None:
        self._devices = devices
        self._trust = trust
        self._calls = Calls()
        self._reads = _Reads()
        self._streams = _Streams()
        self._backlog = _Backlog()
        self._handled = _Handled()

    @contextmanager
    def _call(
        self, requests: Iterator[bytes], context: grpc.ServicerContext, check: Callable[[Client], object]
    ) -> Iterator[tuple[bytes, Client]]:
        """Receive the request of a call whose client passes ``check``; within the context the call counts as in progress.

        Client and limits are checked before the request is read, as a client may send it late.
        """

        def permitted() -> Client:
            client = self._client(context)
            check(client)
            return client

        client: Client = _answer(context, permitted)
        call = _answer(context, lambda: self._calls.begin(_owner(context, client), context.cancel))
        size = 0
        try:
            data = next(requests, None)
            self._calls.arrived(call)
            if data is None:
                _abort(context, P4RuntimeError("UNIMPLEMENTED", "the call requires exactly one request message"))
            size = len(data)
            yield data, client
        finally:
            self._calls.end(call)
            self._handled.add(size)

    # The names of the following methods are gRPC's. Each takes one request, as a stream: gRPC would itself wait for that of
    # a call with one, without end.

    def Write(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Proto:
        with self._call(requests, context, Client.check_roles) as (data, client):
            _answer(context, lambda: self._write(data, client))
            return p4runtime_pb2.WriteResponse()

    def _write(self, data: bytes, client: Client) -> None:
        request = write_request(data)
        device = self._device(request, client)
        client.check_role(request.role)
        device.write_request(request)

    def Read(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        with self._call(requests, context, Client.check_read) as (data, client):

            def read() -> Iterator[bytes]:
                request = small_request(p4runtime_pb2.ReadRequest, data)
                return self._device(request, client).read_serialized(data)

            size = 0
            progress = _answer(context, lambda: self._reads.begin(context.cancel, _owner(context, client)))
            try:
                responses = _answer(context, read)
                while (response := _answer(context, lambda: self._reads.next_of(responses))) is not None:
                    size += len(response)
                    progress.waits_since = time.monotonic()
                    yield response
                    progress.waits_since = None
            finally:
                self._reads.end(progress)
                self._handled.add(size)

    def SetForwardingPipelineConfig(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Proto:
        with self._call(requests, context, Client.check_pipeline) as (data, client):

            def set_config() -> Proto:
                check_bytes(len(data), limits.MAX_PIPELINE_BYTES, "the request")
                request = decoded(p4runtime_pb2.SetForwardingPipelineConfigRequest, data)
                device = self._device(request, client)
                client.check_role(request.role)
                return device.set_forwarding_pipeline_config(request)

            return _answer(context, set_config)

    def GetForwardingPipelineConfig(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Proto:
        with self._call(requests, context, Client.check_read) as (data, client):

            def get_config() -> Proto:
                request = small_request(p4runtime_pb2.GetForwardingPipelineConfigRequest, data)
                return self._device(request, client).get_forwarding_pipeline_config(request)

            return _answer(context, get_config)

    def Capabilities(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Proto:
        with self._call(requests, context, lambda _: None) as (data, client):

            def capabilities() -> Proto:
                request = small_request(p4runtime_pb2.CapabilitiesRequest, data)
                if not request.device_id:
                    return p4runtime_pb2.CapabilitiesResponse(p4runtime_api_version=API_VERSION)
                return self._device(request, client).capabilities(request)

            return _answer(context, capabilities)

    def StreamChannel(self, requests: Iterator[_Sized], context: grpc.ServicerContext) -> Iterator[Proto]:
        client: Client = _answer(context, lambda: self._client(context))
        stream = _Stream(self._backlog)
        _answer(context, lambda: self._streams.admit(stream, _owner(context, client)))
        if not context.add_callback(stream.end):
            stream.end()  # over before it began
        reader = threading.Thread(
            target=self._read_stream, args=(requests, stream, client), daemon=True, name="p4runtime-stream"
        )
        reader.start()
        try:
            try:
                item = stream.take(limits.STREAM_HANDSHAKE_S)
            except queue.Empty:
                item = _End(P4RuntimeError("DEADLINE_EXCEEDED", "no arbitration update came on the stream"))
            while not isinstance(item, _End):
                yield item
                item = stream.take()
            if item.error:
                _abort(context, item.error)
        finally:
            stream.discard()
            self._streams.leave(stream)

    def _read_stream(self, requests: Iterator[_Sized], stream: _Stream, client: Client) -> None:
        device: Device | None = None
        session: Session | None = None
        error: P4RuntimeError | None = None
        handled = 0
        try:
            for size, message in requests:
                handled += size
                self._handled.add(size)
                if isinstance(message, _Refused):
                    raise message.error
                if device is None or session is None:
                    if message.WhichOneof("update") != "arbitration":
                        raise P4RuntimeError(
                            "FAILED_PRECONDITION", "the first message on a stream is the arbitration update"
                        )
                    device = self._device(message.arbitration, client)
                    client.check_role(message.arbitration.role.name)
                    self._streams.speaks(stream)
                    session = device.open(stream.send)
                if stream_batches.is_batch(message):
                    _handle_batch(device, session, stream, message)
                else:
                    device.handle(session, message)
        except P4RuntimeError as e:
            error = e
        except grpc.RpcError:
            pass  # the client is gone
        except Exception:
            log.exception("P4Runtime stream")
            error = P4RuntimeError("INTERNAL", "the server failed; its log says how")
        finally:
            # A traceback may keep this frame until garbage is collected, and a message may have megabytes.
            message = None
            if device and session:
                device.close(session)
            stream.end(error)
            self._handled.add(handled)

    def look_after(self) -> None:
        """End calls whose request is late and Reads whose client takes no answer, and return freed memory. Must be called often."""
        now_s = time.monotonic()
        self._calls.cancel_late(now_s)
        self._reads.cancel_stalled(now_s)
        self._handled.give_back(now_s)

    def notifications_dropped(self) -> int:
        """Return the number of notifications dropped so far, on all streams."""
        return self._streams.dropped()

    def end_streams(self) -> None:
        """End all streams with UNAVAILABLE, and accept no new ones."""
        for stream in self._streams.close():
            stream.end(P4RuntimeError("UNAVAILABLE", "the server is shutting down"))

    def _client(self, context: grpc.ServicerContext) -> Client:
        return Client() if self._trust is None else self._trust.client(context.auth_context())

    def _device(self, message: Proto, client: Client) -> Device:
        client.check_device(message.device_id)
        if (device := self._devices.get(message.device_id)) is None:
            raise P4RuntimeError("NOT_FOUND", f"there is no device {message.device_id} here")
        return device


class Server:
    """Devices behind an address; a context manager that runs while inside.

    ``address`` is as in ``127.0.0.1:9559``; with port 0 a free one is taken, and :attr:`address` tells which. Without
    client certificates the address must be a loopback one, unless that is asked for by name with ``insecure=True``. Raises
    :class:`P4RuntimeError` if it cannot listen there.
    """

    def __init__(
        self, devices: Iterable[Device], address: str, tls: TlsFiles | None = None, *, insecure: bool = False
    ) -> None:
        self._devices = _by_id(devices)
        check(address)
        self.access: Access = access_at(address, certificates=tls is not None and tls.client_ca is not None)
        """The clients that may connect."""
        if tls is None and not insecure and self.access == "anybody":
            raise invalid_argument(
                f"{address} is not loopback: give TLS files, or ask for plaintext with insecure=True"
            )
        if self.access == "certificate" and insecure:
            raise invalid_argument("client_ca and insecure=True exclude each other")
        if tls is not None and tls.rights is not None and tls.client_ca is None:
            raise invalid_argument("rights are given to certificates, so they need a client_ca")
        if self.access == "anybody":
            if not insecure:
                raise invalid_argument(f"whoever reaches {address} could write: give client_ca, or say insecure=True")
            log.warning("whoever reaches %s can write to the switches here", address)
        set_up_allocator()  # before gRPC has threads; ``holdfast switch`` does so before the compiler has
        self._servicer = _Servicer(self._devices, _trust(tls, address))
        # None waits for a worker behind calls that keep theirs.
        self._executor = futures.ThreadPoolExecutor(limits.MAX_CALLS, thread_name_prefix="p4runtime")
        options = [
            ("grpc.max_receive_message_length", limits.MAX_MESSAGE_BYTES),
            ("grpc.so_reuseport", 0),
            ("grpc.max_concurrent_streams", limits.MAX_CALLS_PER_CONNECTION),
            ("grpc.server_handshake_timeout_ms", int(limits.CONNECTION_HANDSHAKE_S * 1000)),
            ("grpc.max_connection_idle_ms", int(limits.CONNECTION_IDLE_S * 1000)),
            ("grpc.keepalive_time_ms", int(limits.KEEPALIVE_S * 1000)),
            ("grpc.keepalive_timeout_ms", int(limits.KEEPALIVE_TIMEOUT_S * 1000)),
        ]
        self._server = grpc.server(self._executor, options=options, maximum_concurrent_rpcs=limits.MAX_CALLS)
        self._server.add_generic_rpc_handlers((_handlers(self._servicer),))
        self.port = self._listen(address, tls)
        """The port it listens on; 0 for a Unix socket."""
        self.address = address if address.startswith("unix:") else f"{address.rpartition(':')[0]}:{self.port}"
        """The address for clients."""
        self._stopping = threading.Event()
        self._timer = threading.Thread(target=self._look_after, daemon=True, name="p4runtime-timer")

    def _listen(self, address: str, tls: TlsFiles | None) -> int:
        # A socket is its user's alone, from the first moment.
        before = os.umask(0o077) if address.startswith("unix:") else None
        try:
            if tls is None:
                port = self._server.add_insecure_port(address)
            else:
                port = self._server.add_secure_port(address, tls.server_credentials())
        except (OSError, HoldfastError) as e:
            raise P4RuntimeError("UNAVAILABLE", f"cannot listen on {address}: {e}") from None
        except RuntimeError:
            port = 0  # gRPC does not say why
        finally:
            if before is not None:
                os.umask(before)
        if port == 0:
            raise P4RuntimeError("UNAVAILABLE", f"cannot listen on {address}: it is in use, or not of this machine")
        return int(port)

    def _look_after(self) -> None:
        while not self._stopping.wait(_STALL_CHECK_S):
            self._servicer.look_after()

    @property
    def notifications_dropped(self) -> int:
        """The number of packet-ins, digests, idle notifications and errors that clients lost by reading too slowly."""
        return self._servicer.notifications_dropped()

    def start(self) -> None:
        """Start to accept connections and answer calls."""
        self._server.start()
        self._timer.start()

    def stop(self, grace_s: float = 1.0) -> None:
        """End all streams, let calls in progress finish for ``grace_s`` seconds, and return when the server has stopped.

        A call that gRPC itself cannot end is abandoned after a few more seconds.
        """
        self._stopping.set()
        self._servicer.end_streams()
        gone = self._server.stop(grace_s).wait(grace_s + _STOP_S)
        if self._timer.is_alive():
            self._timer.join()
        self._executor.shutdown(wait=gone)

    def wait(self) -> None:
        """Block until another thread stops the server."""
        self._server.wait_for_termination()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def serve(devices: Iterable[Device], address: str, tls: TlsFiles | None = None, *, insecure: bool = False) -> Server:
    """Start a :class:`Server` for these devices and return it. Arguments are those of :class:`Server`; raises its errors."""
    server = Server(devices, address, tls, insecure=insecure)
    server.start()
    return server


def _stream_message(data: bytes) -> _Sized:
    """Decode a ``StreamMessageRequest``. Returns its size in bytes, and the message or the error for which it was refused.

    Nothing is raised: gRPC would end the call itself, at the same time as the handler does, and then never finish it.
    """
    try:
        check_bytes(len(data), limits.MAX_STREAM_MESSAGE_BYTES, "a message")
        return len(data), decoded(p4runtime_pb2.StreamMessageRequest, data)
    except P4RuntimeError as e:
        return len(data), _Refused(e)


def _handle_batch(device: Device, session: Session, stream: _Stream, batch: Proto) -> None:
    """Process a batch of stream messages; an empty batch is a client's request that the server sends batches too.

    Raises INVALID_ARGUMENT for anything else, and RESOURCE_EXHAUSTED for too many messages.
    """
    try:
        messages = stream_batches.messages_of(batch)
    except DecodeError:
        raise invalid_argument(f"this is no {stream_batches.TYPE_URL}") from None
    if len(messages) > limits.MAX_BATCH_MESSAGES:
        raise P4RuntimeError(
            "RESOURCE_EXHAUSTED", f"the batch has {len(messages)} messages; {limits.MAX_BATCH_MESSAGES} are taken"
        )
    if not messages:
        stream.send(stream_batches.response())
        stream.batched = True
    for each in messages:
        message = decoded(p4runtime_pb2.StreamMessageRequest, each)
        if stream_batches.is_batch(message):
            raise invalid_argument("batches of stream messages do not nest")
        device.handle(session, message)


def _handlers(servicer: _Servicer) -> grpc.GenericRpcHandler:
    """Return gRPC handlers for the methods of ``p4.v1.P4Runtime``.

    Unlike gRPC's own, they receive requests as bytes. gRPC answers INTERNAL to a request that it cannot decode; these handlers
    answer INVALID_ARGUMENT. They receive the request themselves, which gRPC does without a time limit. The answers of Read are
    serialized already.
    """
    p4 = p4runtime_pb2

    def unary(method: Callable[[Iterator[bytes], grpc.ServicerContext], Any], response: Proto) -> Any:
        return grpc.stream_unary_rpc_method_handler(method, None, response.SerializeToString)

    methods = {
        "Write": unary(servicer.Write, p4.WriteResponse),
        "Read": grpc.stream_stream_rpc_method_handler(servicer.Read, None, None),
        "SetForwardingPipelineConfig": unary(
            servicer.SetForwardingPipelineConfig, p4.SetForwardingPipelineConfigResponse
        ),
        "GetForwardingPipelineConfig": unary(
            servicer.GetForwardingPipelineConfig, p4.GetForwardingPipelineConfigResponse
        ),
        "StreamChannel": grpc.stream_stream_rpc_method_handler(
            servicer.StreamChannel, _stream_message, p4.StreamMessageResponse.SerializeToString
        ),
        "Capabilities": unary(servicer.Capabilities, p4.CapabilitiesResponse),
    }
    return grpc.method_handlers_generic_handler("p4.v1.P4Runtime", methods)


def _trust(tls: TlsFiles | None, address: str) -> Trust | None:
    try:
        return tls.trust() if tls is not None else None
    except (HoldfastError, ValueError) as e:
        raise P4RuntimeError("UNAVAILABLE", f"cannot listen on {address}: {e}") from None


def _by_id(devices: Iterable[Device]) -> dict[int, Device]:
    result: dict[int, Device] = {}
    for device in devices:
        if device.device_id in result:
            raise invalid_argument(f"two devices have id {device.device_id}")
        result[device.device_id] = device
    return result


def _answer(context: grpc.ServicerContext, call: Callable[[], Any]) -> Any:
    """Return the result of ``call``, or end the RPC with the status of the error that it raises."""
    try:
        return call()
    except P4RuntimeError as e:
        _abort(context, e)
    except HoldfastError as e:
        _abort(context, P4RuntimeError(getattr(e, "code", "INTERNAL"), str(e)))
    except Exception:
        log.exception("P4Runtime call")
        _abort(context, P4RuntimeError("INTERNAL", "the server failed; its log says how"))


def _owner(context: grpc.ServicerContext, client: Client) -> str:
    """Return a name for the client of a call, by which its calls are counted: its certificate's, or its machine's address.

    The name is empty for clients on this machine, which have no limits.
    """
    return client.name or _machine(context.peer())


@lru_cache(maxsize=1024)
def _machine(peer: str) -> str:
    """Return the address of the machine in gRPC's name of a peer; empty for this machine."""
    kind, _, address = peer.partition(":")
    if kind not in ("ipv4", "ipv6"):
        return ""
    host = unquote(address).rpartition(":")[0].strip("[]")
    return "" if ip_address(host.partition("%")[0]).is_loopback else host


def _details_bytes(context: grpc.ServicerContext) -> int:
    """Return the number of bytes that the details of an error may have: the one in the client's metadata, or the default."""
    given = dict(context.invocation_metadata()).get(DETAILS_BYTES_KEY, "")
    text = given if isinstance(given, str) and is_numeral(given) and len(given) < 10 else ""
    return int(text) if text else limits.ERROR_DETAILS_BYTES


def _abort(context: grpc.ServicerContext, error: P4RuntimeError) -> NoReturn:
    message = error.message
    if error.failed:
        status = to_status(error, _details_bytes(context))
        message = status.message
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    number = code_number(error.code)
    code = next(c for c in grpc.StatusCode if c.value[0] == number)
    context.abort(code, message)
    raise AssertionError("abort raises")
