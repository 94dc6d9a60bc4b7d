"""Several messages of a P4Runtime stream in one: an extension, in the messages' field ``other`` (specification, "Stream Messages").

gRPC takes about as long for a message of one packet as for one of a hundred, and in Python much longer than a packet's other
work. A client that wants batches sends an empty one after its arbitration update. A server that knows them answers with an empty
one, and from then on both may send what waits in one message; any other server answers UNIMPLEMENTED, and messages travel one by
one. A message in a batch means the same as by itself, in its order.

The ``Any`` in ``other`` has the type ``holdfast.v1.StreamMessages``: ``message StreamMessages { repeated bytes message = 1; }``,
serialized ``StreamMessageRequest`` or ``StreamMessageResponse`` messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from holdfast.p4runtime.stubs import Proto, p4runtime_pb2

_NAME = "holdfast.v1.StreamMessages"
TYPE_URL = f"type.googleapis.com/{_NAME}"

MOST_MESSAGES = 256
"""The most messages in a batch that is sent; receivers accept up to ``limits.MAX_BATCH_MESSAGES``."""

MOST_BYTES = 256 << 10
"""The size of a batch that is sent at which no further message is added."""


def _kind() -> Proto:
    file = descriptor_pb2.FileDescriptorProto(name="holdfast/v1/stream.proto", package="holdfast.v1", syntax="proto3")
    field = file.message_type.add(name="StreamMessages").field.add(name="message", number=1)
    field.type = descriptor_pb2.FieldDescriptorProto.TYPE_BYTES
    field.label = descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(_NAME))


_StreamMessages = _kind()


def request(messages: Iterable[bytes] = ()) -> bytes:
    """Return a serialized ``StreamMessageRequest`` that contains these messages as a batch."""
    return cast("bytes", _filled(p4runtime_pb2.StreamMessageRequest(), messages).SerializeToString())


def response(messages: Iterable[bytes] = ()) -> Proto:
    """Return a ``StreamMessageResponse`` that contains these messages as a batch."""
    return _filled(p4runtime_pb2.StreamMessageResponse(), messages)


def _filled(message: Proto, messages: Iterable[bytes]) -> Proto:
    message.other.type_url = TYPE_URL
    message.other.value = _StreamMessages(message=messages).SerializeToString()
    return message


def is_batch(message: Proto) -> bool:
    """Return True if a ``StreamMessageRequest`` or ``StreamMessageResponse`` is a batch."""
    return bool(message.WhichOneof("update") == "other" and message.other.type_url == TYPE_URL)


def messages_of(batch: Proto) -> Sequence[bytes]:
    """Return the messages of a batch. Raises ``google.protobuf.message.DecodeError`` if it is malformed."""
    return cast("Sequence[bytes]", _StreamMessages.FromString(batch.other.value).message)


def refuses(message: Proto) -> bool:
    """Return True if a ``StreamMessageResponse`` is the error of a server that does not support batches."""
    return bool(message.WhichOneof("update") == "error" and message.error.other.other.type_url == TYPE_URL)
