"""Holdfast runs networks whose data plane is written in P4, cuts links under traffic, and measures the loss exactly.

A name is imported when it is first used: the command, and a worker of a sweep, start without what they do not need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast._core import CompileError, ControlError, HoldfastError, Program, Switch
    from holdfast.controller import Controller
    from holdfast.errors import LiveError, NetworkError, ScenarioError, TopologyError
    from holdfast.link import Jitter
    from holdfast.network import LiveNetwork, SimulatedNetwork
    from holdfast.topology import Topology
    from holdfast.traffic import Ping, TcpOptions, TcpTransfer, UdpStream

_MODULES = {
    "_core": ("CompileError", "ControlError", "HoldfastError", "Program", "Switch"),
    "controller": ("Controller",),
    "errors": ("LiveError", "NetworkError", "ScenarioError", "TopologyError"),
    "link": ("Jitter",),
    "network": ("LiveNetwork", "SimulatedNetwork"),
    "topology": ("Topology",),
    "traffic": ("Ping", "TcpOptions", "TcpTransfer", "UdpStream"),
}

_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "CompileError",
    "ControlError",
    "Controller",
    "HoldfastError",
    "Jitter",
    "LiveError",
    "LiveNetwork",
    "NetworkError",
    "Ping",
    "Program",
    "ScenarioError",
    "SimulatedNetwork",
    "Switch",
    "TcpOptions",
    "TcpTransfer",
    "Topology",
    "TopologyError",
    "UdpStream",
]


# Type checkers know the names, and would take any other for one, too.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"holdfast.{_MODULE_OF[name]}"), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
