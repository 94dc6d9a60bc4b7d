"""P4Info in files, whose ending is the format: ``.bin`` and ``.pb`` the message itself, ``.json`` its JSON, others its text."""

from __future__ import annotations

from pathlib import Path

from google.protobuf import json_format, text_format
from google.protobuf.message import DecodeError

from holdfast._core import HoldfastError, Program
from holdfast.p4runtime.p4info import message_of
from holdfast.p4runtime.stubs import p4info_pb2
from holdfast.regular_files import MOST_TEXT_BYTES, read_regular

_BINARY = (".bin", ".pb")
_JSON = ".json"


def encoded(program: Program, suffix: str) -> bytes:
    """Return the P4Info of a program in the format of a file's ending, such as ``.bin``."""
    if suffix in _BINARY:
        return program.p4info_message
    if suffix == _JSON:
        return (json_format.MessageToJson(message_of(program)) + "\n").encode()
    return program.p4info.encode()


def read_text(path: Path) -> str:
    """Return the P4Info of a file in text format. Raises HoldfastError if the file has none in the format of its ending."""
    content = read_regular(path, MOST_TEXT_BYTES, HoldfastError)
    try:
        if path.suffix in _BINARY:
            return text_format.MessageToString(p4info_pb2.P4Info.FromString(content))
        if path.suffix == _JSON:
            found = json_format.Parse(content.decode(), p4info_pb2.P4Info())
            return text_format.MessageToString(found)
        return content.decode()
    except (DecodeError, json_format.ParseError, UnicodeDecodeError):
        kind = {_JSON: "JSON"} | dict.fromkeys(_BINARY, "protobuf's binary format")
        raise HoldfastError(f"{path} is not a P4Info in {kind.get(path.suffix, 'protobuf text format')}") from None


__all__ = ["encoded", "read_text"]
