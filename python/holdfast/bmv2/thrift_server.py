"""A Thrift server with BMv2's interface, at a running switch: the port at which its tools and libraries look for a switch.

It listens on loopback alone, as its clients have no certificates. A connection has a thread; more than :data:`MOST_CLIENTS` at a
time are closed.
"""

from __future__ import annotations

import logging
import socketserver
import threading
from collections.abc import Callable
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.protocol.TMultiplexedProtocol import SEPARATOR
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TMessageType, TType
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from holdfast.bmv2.thrift_methods import Methods, Switch
from holdfast.bmv2.thrift_types import SERVICES, Failure, Method, Struct
from holdfast.errors import HoldfastError, LiveError

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
MOST_CLIENTS = 32
_MOST_BYTES = 1 << 20
_IDLE_MS = 3_600_000
"""A connection that says nothing for so long is closed; controllers that wait for events say nothing for minutes."""


class ThriftServer(socketserver.ThreadingTCPServer):
    """Answers calls until it is closed; a context manager. Raises :class:`LiveError` if the port cannot be had."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, switch: Switch) -> None:
        self._switch = switch
        self._free = threading.BoundedSemaphore(MOST_CLIENTS)
        try:
            super().__init__((HOST, switch.thrift_port), socketserver.BaseRequestHandler)
        except OSError as error:
            raise LiveError(f"Thrift port {switch.thrift_port}: {error.strerror}") from None
        self._thread = threading.Thread(target=self.serve_forever, name="thrift", daemon=True)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answer the calls of a connection, in its thread, until it ends."""
        if not self._free.acquire(blocking=False):
            return
        try:
            _serve(request, lambda: Methods(self._switch))
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log the error with which a connection ended. What clients do wrong is answered, or ends the connection without one."""
        log.error("a Thrift connection ended", exc_info=True)

    def __enter__(self) -> ThriftServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


def _serve(connection: Any, begin: Callable[[], Methods]) -> None:
    socket = TSocket()
    socket.setHandle(connection)
    socket.setTimeout(_IDLE_MS)
    transport = TBufferedTransport(socket)
    protocol = TBinaryProtocol(transport, string_length_limit=_MOST_BYTES, container_length_limit=_MOST_BYTES)
    methods: Methods | None = None
    while True:
        try:
            name, kind, sequence = protocol.readMessageBegin()
            if kind not in (TMessageType.CALL, TMessageType.ONEWAY):
                return
            service, _, call = name.rpartition(SEPARATOR)
            method = _method(service, call)
            given = None if method is None else method.parameters()
            if given is None:
                protocol.skip(TType.STRUCT)
            else:
                given.read(protocol)
            protocol.readMessageEnd()
        except (TTransportException, TProtocolException, OSError, EOFError, UnicodeDecodeError, RecursionError):
            # The last is of structures within structures, which the library reads by recursion.
            return
        answer: Struct | TApplicationException
        if method is None or given is None:
            answer = TApplicationException(TApplicationException.UNKNOWN_METHOD, f"there is no method {name}")
        else:
            try:
                methods = methods or begin()
                answer = _answer(methods, method, given)
            except HoldfastError as error:
                answer = TApplicationException(TApplicationException.INTERNAL_ERROR, str(error))
        failed = isinstance(answer, TApplicationException)
        protocol.writeMessageBegin(call, TMessageType.EXCEPTION if failed else TMessageType.REPLY, sequence)
        answer.write(protocol)
        protocol.writeMessageEnd()
        try:
            transport.flush()
        except (TTransportException, OSError):
            # The client did not wait for the answer.
            return


def _method(service: str, call: str) -> Method | None:
    """Return a method; a client without services means the one that has it."""
    if service:
        return SERVICES.get(service, {}).get(call)
    return next((methods[call] for methods in SERVICES.values() if call in methods), None)


def _answer(methods: Methods, method: Method, given: Struct) -> Struct | TApplicationException:
    """Return the result of a call. A parameter that is missing, or of no use, is a failure that the interface has no code for."""
    missing = [name for _, _, name, *_ in filter(None, given.thrift_spec) if getattr(given, name) is None]
    if set(missing) - {"lags", "data", "options", "capture"}:
        return TApplicationException(TApplicationException.PROTOCOL_ERROR, f"{method.name} needs {', '.join(missing)}")
    try:
        return method.result(success=methods.call(method, given))
    except Failure as failure:
        return method.result(ouch=failure)
    except (ValueError, OverflowError, TypeError, AttributeError) as error:
        return TApplicationException(TApplicationException.INTERNAL_ERROR, f"{method.name}: {error}")


__all__ = ["HOST", "MOST_CLIENTS", "ThriftServer"]
