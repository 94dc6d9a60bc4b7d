"""A directory for ``PATH`` with commands of BMv2's names that run Holdfast.

Its folder ``python`` is for ``PYTHONPATH``: it has the module ``p4.tmp.p4config_pb2``, which clients of BMv2 import
(``p4runtime_lib`` of p4lang's tutorials) and the package ``p4runtime`` of today lacks. The rest of ``p4`` is that package's.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from holdfast import interpreter, whole_files

COMMANDS = ("p4c", "p4c-bm2-ss", "p4c-bm2-psa", "simple_switch_grpc", "simple_switch", "simple_switch_CLI")

MODULES = "python"
"""The name of the folder of Python modules in the written directory; it belongs in ``PYTHONPATH``."""

_MODULES = {
    "p4/__init__.py": """\
from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
try:
    import holdfast.p4runtime.stubs  # Messages of an old protoc, for the protobuf of today.
except ImportError:
    pass
""",
    "p4/tmp/__init__.py": "",
    "p4/tmp/p4config_pb2.py": """\
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_file = descriptor_pb2.FileDescriptorProto(name="p4/tmp/p4config.proto", package="p4.tmp", syntax="proto3")
_message = _file.message_type.add(name="P4DeviceConfig")
_kinds = descriptor_pb2.FieldDescriptorProto
_message.field.add(name="reassign", number=1, type=_kinds.TYPE_BOOL, label=_kinds.LABEL_OPTIONAL)
_message.field.add(name="device_data", number=3, type=_kinds.TYPE_BYTES, label=_kinds.LABEL_OPTIONAL)
_pool = descriptor_pool.DescriptorPool()
_pool.Add(_file)
_descriptor = _pool.FindMessageTypeByName("p4.tmp.P4DeviceConfig")
if hasattr(message_factory, "GetMessageClass"):
    P4DeviceConfig = message_factory.GetMessageClass(_descriptor)
else:
    P4DeviceConfig = message_factory.MessageFactory(_pool).GetPrototype(_descriptor)
""",
}
"""The contents of the Python modules, by their paths in the folder :data:`MODULES`."""


def write(directory: Path) -> list[Path]:
    """Write the commands into a directory, which is created if it does not exist, and return their paths. Raises OSError."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for command in COMMANDS:
        path = directory / command
        started = shlex.join(interpreter.module("holdfast", command))
        whole_files.write_text(path, f'#!/bin/sh\nexec {started} "$@"\n')
        path.chmod(0o755)
        written.append(path)
    for name, text in _MODULES.items():
        module = directory / MODULES / name
        module.parent.mkdir(parents=True, exist_ok=True)
        whole_files.write_text(module, text)
    return written


__all__ = ["COMMANDS", "MODULES", "write"]
