"""Controller headers: from the bits in front of a packet to ``PacketMetadata`` and back (specification, "Packet I/O").

The program's ``@controller_header`` headers are packed without gaps in wire order; a header that is no whole number of
bytes is filled up with zero bits at its end. A program without such a header exchanges bare packets.
"""

from __future__ import annotations

from holdfast.p4runtime import codec
from holdfast.p4runtime.errors import P4RuntimeError, invalid_argument
from holdfast.p4runtime.p4info import ControllerHeader, Param
from holdfast.p4runtime.stubs import Proto, p4runtime_pb2


def header_bytes(header: ControllerHeader | None) -> int:
    """Length in bytes of a controller header; 0 for none."""
    return 0 if header is None else (sum(f.width for f in header.fields) + 7) // 8


def packet_out_bytes(message: Proto, header: ControllerHeader | None) -> bytes:
    """What goes into the CPU port for a ``PacketOut``.

    INVALID_ARGUMENT unless each metadata field occurs exactly once.
    """
    given: dict[int, bytes] = {}
    for item in message.metadata:
        if header is None or item.metadata_id not in header.fields:
            raise invalid_argument(f"packet-out: no metadata field has id {item.metadata_id}")
        if item.metadata_id in given:
            raise invalid_argument(f"packet-out: metadata field {item.metadata_id} is given twice")
        given[item.metadata_id] = item.value
    if header is None:
        return bytes(message.payload)
    total, bits = 0, 0
    for field in header.fields:
        if field.id not in given:
            raise invalid_argument(f"packet-out: metadata field '{field.name}' is missing")
        try:
            value = _for_switch(field, given[field.id])
        except P4RuntimeError as e:
            raise invalid_argument(e.message) from None
        total, bits = total << field.width | value, bits + field.width
    length = (bits + 7) // 8
    return (total << (length * 8 - bits)).to_bytes(length, "big") + bytes(message.payload)


def _for_switch(field: Param, data: bytes) -> int:
    what = f"packet-out metadata '{field.name}'"
    value = (
        codec.decode(data, field.width, what) if field.translation is None else field.translation.to_switch(data, what)
    )
    if value.bit_length() > field.width:
        raise invalid_argument(f"{what}: it is translated to {value}, which does not fit into {field.width} bits")
    return value


def packet_in_message(data: bytes, header: ControllerHeader | None) -> Proto | None:
    """The ``PacketIn`` for what came out of the CPU port; None if it is shorter than the controller header."""
    length = header_bytes(header)
    if len(data) < length:
        return None
    message = p4runtime_pb2.PacketIn(payload=data[length:])
    if header is not None:
        rest = length * 8
        total = int.from_bytes(data[:length], "big")
        for field in header.fields:
            rest -= field.width
            value = (total >> rest) & codec.all_ones(field.width)
            shown = codec.encode(value) if field.translation is None else field.translation.to_controller(value)
            message.metadata.add(metadata_id=field.id, value=shown)
    return message
