"""P4Runtime: the control API, over gRPC and in process. The only room that knows protobuf.

A :class:`Device` makes a switch speak P4Runtime; :class:`Server` puts devices behind an address; :class:`LocalClient`
and :class:`GrpcClient` are one interface over both ways to reach a device.
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
