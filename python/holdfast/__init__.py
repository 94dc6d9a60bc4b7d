"""Holdfast: write a network's data plane in P4, cut a link under traffic, and see exactly what the cut cost."""

from holdfast._core import CompileError, ControlError, HoldfastError, Program, Switch
from holdfast.controller import Controller
from holdfast.errors import LiveError, NetworkError, ScenarioError, TopologyError
from holdfast.link import Jitter
from holdfast.network import LiveNetwork, SimulatedNetwork
from holdfast.topology import Topology
from holdfast.traffic import Ping, TcpOptions, TcpTransfer, UdpStream

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
