"""P4Runtime: the control API, over gRPC and in process. The only room that knows protobuf.

A :class:`Device` makes a switch speak P4Runtime; :class:`Server` puts devices behind an address; :class:`LocalClient`
and :class:`GrpcClient` are one interface over both ways to reach a device.

A program that uses the official messages as well imports this package before them, or imports them from
:mod:`holdfast.p4runtime.stubs`::

    import holdfast.p4runtime
    from p4.v1 import p4runtime_pb2

In the other order the import of ``p4.v1.p4runtime_pb2`` raises TypeError (``Descriptors cannot be created directly``) under
protobuf 4 and later, before anything of this package runs. It works again after this package has been imported.
"""

from holdfast.p4runtime.client import Client, GrpcClient, LocalClient
from holdfast.p4runtime.device import Device
from holdfast.p4runtime.errors import P4RuntimeError, UpdateFailure
from holdfast.p4runtime.p4info import P4InfoIndex
from holdfast.p4runtime.received import (
    Arbitration,
    DigestList,
    Entry,
    Group,
    IdleEntries,
    Member,
    PacketIn,
)
from holdfast.p4runtime.server import Server, TlsFiles, serve

__all__ = [
    "Arbitration",
    "Client",
    "Device",
    "DigestList",
    "Entry",
    "Group",
    "GrpcClient",
    "IdleEntries",
    "LocalClient",
    "Member",
    "P4InfoIndex",
    "P4RuntimeError",
    "PacketIn",
    "Server",
    "TlsFiles",
    "UpdateFailure",
    "serve",
]
