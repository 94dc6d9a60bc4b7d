"""The official P4Runtime protobuf messages, from the ``p4runtime`` package, under any current protobuf runtime.

The published ``*_pb2.py`` files were written by a protoc so old that protobuf 4 and later refuse to execute them. Their
content, the serialized file descriptors, is as good as ever. Where the plain import fails, this module takes the
descriptors out of the installed files, registers them with the current runtime, and puts the resulting modules under
their usual names, so ``from p4.v1 import p4runtime_pb2`` and the published ``p4runtime_pb2_grpc`` work unchanged
afterwards.

It knows nothing of what the messages mean. Messages are typed :data:`Proto`, because the package ships no type stubs;
the docstrings say which message is meant.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
import types
from pathlib import Path
from typing import Any, TypeAlias

from google.protobuf import any_pb2, descriptor_pool  # any_pb2: P4Info refers to it, so it must be registered
from google.rpc import code_pb2, status_pb2

Proto: TypeAlias = Any
"""A protobuf message, whose type the docstring of the function states."""

# In order of dependency.
_MODULES = ("p4.config.v1.p4types_pb2", "p4.config.v1.p4info_pb2", "p4.v1.p4data_pb2", "p4.v1.p4runtime_pb2")


def _serialized_descriptor(path: Path) -> bytes:
    """Return the ``serialized_pb`` literal, a file descriptor, in a generated ``_pb2.py`` file, without executing the file.

    Raises :class:`ImportError` if there is none.
    """
    for node in ast.parse(path.read_bytes(), str(path)).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            target = node.targets[0]
            if isinstance(target, ast.Name) and target.id == "DESCRIPTOR":
                for keyword in node.value.keywords:
                    if keyword.arg == "serialized_pb":
                        value = ast.literal_eval(keyword.value)
                        if isinstance(value, bytes):
                            return value
    raise ImportError(f"{path} holds no protobuf descriptor; is this the p4runtime package from PyPI?")


def _build(name: str) -> types.ModuleType:
    """Build a ``_pb2`` module from the descriptor in its installed file, and register it as an imported module.

    Raises :class:`ImportError` if the module is not installed.
    """
    from google.protobuf.internal import builder

    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ImportError(f"no module {name}; install the p4runtime package from PyPI")
    module = types.ModuleType(name, "Built from the descriptor in the p4runtime package.")
    module.__file__ = spec.origin
    descriptor = descriptor_pool.Default().AddSerializedFile(_serialized_descriptor(Path(spec.origin)))
    content: dict[str, Any] = module.__dict__
    content["DESCRIPTOR"] = descriptor
    builder.BuildMessageAndEnumDescriptors(descriptor, content)
    builder.BuildTopDescriptorsAndMessages(descriptor, name, content)
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    setattr(sys.modules[parent], child, module)
    return module


def _load() -> None:
    for name in _MODULES:
        try:
            importlib.import_module(name)
        except TypeError:  # "Descriptors cannot be created directly"
            sys.modules.pop(name, None)
            _build(name)


_load()

p4types_pb2: Any = sys.modules["p4.config.v1.p4types_pb2"]
p4info_pb2: Any = sys.modules["p4.config.v1.p4info_pb2"]
p4data_pb2: Any = sys.modules["p4.v1.p4data_pb2"]
p4runtime_pb2: Any = sys.modules["p4.v1.p4runtime_pb2"]
p4runtime_pb2_grpc: Any = importlib.import_module("p4.v1.p4runtime_pb2_grpc")

__all__ = [
    "Proto",
    "any_pb2",
    "code_pb2",
    "p4data_pb2",
    "p4info_pb2",
    "p4runtime_pb2",
    "p4runtime_pb2_grpc",
    "p4types_pb2",
    "status_pb2",
]
