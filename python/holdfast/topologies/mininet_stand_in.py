"""Runs a script for Mininet or p4-utils in a process of its own, and writes down what network it builds. No Mininet is needed.

``python mininet_stand_in.py SCRIPT [NAME [ARGUMENT...]]`` writes one JSON value to standard output. ``import mininet`` and ``import
p4utils`` get the classes below, which record calls; so do other modules of networks that are not installed. What the script does
otherwise is done, with the rights of this process. This file is a program by itself: nothing of the package is imported in it.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import inspect
import json
import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

MOST_NODES = 100_000

MOST_SECONDS = 20
"""The time in seconds after which the topology built so far is taken: many scripts never end, since they then use their
network."""

STOOD_IN = ("mininet", "p4utils", "mn_wifi", "ipmininet")
"""Packages that are always replaced by stand-ins, even if they are installed."""

ALSO = re.compile(r"(?:bmv2|stratum|onos\w*|mn_\w+|p4_?mininet|p4runtime\w*|ryu|pox|frr|scapy|networkx_|clab)(?:\..*)?")
"""Further modules from which scripts import classes of nodes: they are replaced by stand-ins if they are not
installed."""


class DoneError(BaseException):
    """The script has come to its prompt: the network is complete."""


class Recorder:
    """What a script has built: nodes and links in order, and the arguments of the network."""

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, Any]] = {}
        self.links: list[dict[str, Any]] = []
        self.options: dict[str, Any] = {}
        self.commands: list[tuple[str, str]] = []

    def add_node(self, name: str, kind: str, options: dict[str, Any]) -> str:
        """Record a node in place of an earlier one of this name, and return its name.

        Raises :class:`ValueError` for more than :data:`MOST_NODES` nodes.
        """
        if len(self.nodes) >= MOST_NODES:
            raise ValueError(f"more than {MOST_NODES} nodes")
        self.nodes[str(name)] = {"kind": kind, "options": options}
        return str(name)

    def add_link(self, a: str, b: str, options: dict[str, Any]) -> None:
        """Record a link between two nodes, with its options. Raises :class:`ValueError` for more than :data:`MOST_NODES` links."""
        if len(self.links) >= MOST_NODES:
            raise ValueError(f"more than {MOST_NODES} links")
        self.links.append({"a": str(a), "b": str(b), "options": options})

    def as_json(self) -> dict[str, Any]:
        """Return all that was recorded as values of JSON."""
        return {
            "nodes": {
                name: {**node, "options": plain(node["options"], "options of nodes")}
                for name, node in self.nodes.items()
            },
            "links": [{**link, "options": plain(link["options"], "options of links")} for link in self.links],
            "options": plain(self.options, "options of the network"),
            "commands": self.commands,
        }


def plain(value: Any, what: str, depth: int = 5) -> Any:
    """Convert a value to JSON: a class to its name, a value of a type that JSON does not have to the name of its type."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, dict) and depth:
        return {str(key): plain(each, what, depth - 1) for key, each in value.items()}
    if isinstance(value, list | tuple) and depth:
        return [plain(each, what, depth - 1) for each in value]
    return f"<{type(value).__name__}>"


class _Kind(type):
    """The class of stand-ins: they have every attribute of a class, too."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()


class Anything(metaclass=_Kind):
    """Stands for whatever a script uses of Mininet beside its topology: it takes every call and has every attribute."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.name = ""

    def __getattr__(self, name: str) -> Any:
        """Return a stand-in for any attribute that a script asks for."""
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Accept any call, and return a stand-in as its result."""
        return Anything()

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __getitem__(self, _: Any) -> Any:
        return Anything()

    def __index__(self) -> int:
        return 0

    __int__ = __index__

    def __float__(self) -> float:
        return 0.0

    def __lt__(self, _: Any) -> bool:
        return False

    __gt__ = __le__ = __ge__ = __lt__

    def __str__(self) -> str:
        return ""

    def __bool__(self) -> bool:
        return False

    def __enter__(self) -> Anything:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Interface(Anything):
    """An interface of a node."""

    def __init__(self, name: str = "") -> None:
        super().__init__()
        self.name = name

    def __str__(self) -> str:
        return self.name


class Node(Anything):
    """A node of a network: it has a name, and remembers commands."""

    def __init__(self, name: str = "", recorder: Recorder | None = None, **options: Any) -> None:
        super().__init__()
        self.name, self.params = str(name), options
        self._recorder = recorder

    def __str__(self) -> str:
        return self.name

    def __bool__(self) -> bool:
        return True

    def cmd(self, *words: Any, **_: Any) -> str:
        """Record a command for the shell of the node; its output is empty."""
        command = " ".join(map(str, words[0] if len(words) == 1 and isinstance(words[0], list) else words))
        if self._recorder is not None and len(self._recorder.commands) < MOST_NODES:
            self._recorder.commands.append((self.name, command))
        return ""

    cmdPrint = sendCmd = cmd

    def popen(self, *words: Any, **_: Any) -> Any:
        """Record a command that runs in the background."""
        self.cmd(*words)
        return Anything()

    def pexec(self, *words: Any, **_: Any) -> tuple[str, str, int]:
        """Record a command; the output and errors that the script gets are empty, the status is 0."""
        self.cmd(*words)
        return "", "", 0

    def setIP(self, ip: str, prefixLen: Any = 8, intf: Any = None, **_: Any) -> None:
        """Record the command that gives the node this address."""
        address = ip if "/" in str(ip) else f"{ip}/{prefixLen}"
        self.cmd(f"ifconfig {intf or f'{self.name}-eth0'} {address}")

    def setMAC(self, mac: str, intf: Any = None) -> None:
        """Record the command that gives the node this MAC address."""
        self.cmd(f"ifconfig {intf or f'{self.name}-eth0'} hw ether {mac}")

    def setARP(self, ip: str, mac: str) -> None:
        """Record the command that gives the node a neighbour entry."""
        self.cmd(f"arp -s {ip} {mac}")

    def setDefaultRoute(self, intf: Any = None) -> None:
        """Record the command that gives the node a default route by an interface."""
        self.cmd(f"ip route add default {intf}")

    def IP(self, *_: Any, **__: Any) -> str:
        """Return the node's IP address without the prefix length; empty if it is not known."""
        return str(self.params.get("ip") or "").partition("/")[0]

    def MAC(self, *_: Any, **__: Any) -> str:
        """Return the node's MAC address; empty if it is not known."""
        return str(self.params.get("mac") or "")

    def defaultIntf(self) -> Interface:
        """Return the node's first interface."""
        return Interface(f"{self.name}-eth0")

    def intf(self, intf: Any = None) -> Interface:
        """Return the node's interface with this name; the first one by default."""
        return Interface(str(intf or f"{self.name}-eth0"))


class Switch(Node):
    """A switch of a network."""


class Host(Node):
    """A host of a network."""


class Controller(Node):
    """A controller of a network."""


class _Ports:
    """The ports of nodes, numbered as Mininet does: hosts from 0 on, switches from 1 on."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._used: dict[str, list[int]] = {}

    def number(self, node: str, port: Any, *, by_count: bool) -> int:
        """Return the port of a link at a node: ``port`` if it is given, else the node's next free port.

        The free port is the first one above those used, or with ``by_count`` the first port of all plus the number of links so far.
        """
        used = self._used.setdefault(node, [])
        first = 0 if self._recorder.nodes.get(node, {}).get("kind") == "host" else 1
        if port is None:
            port = len(used) + first if by_count else max(used, default=first - 1) + 1
        used.append(int(port))
        return int(port)


class Topo:
    """Mininet's description of a topology."""

    def __init__(self, *args: Any, **params: Any) -> None:
        self.recorder = Recorder()
        self._ports = _Ports(self.recorder)
        self.hopts, self.sopts = params.pop("hopts", {}) or {}, params.pop("sopts", {}) or {}
        self.lopts = params.pop("lopts", {}) or {}
        self.ports: dict[str, dict[int, tuple[str, int]]] = {}
        self.build(*args, **params)
        built.append(self)

    def build(self, *_: Any, **__: Any) -> None:
        """Build the topology; scripts override this method."""

    def addNode(self, name: str, **opts: Any) -> str:
        """Record a node: a switch if its options say so, else a host."""
        kind = "switch" if opts.pop("isSwitch", False) or _is_switch(opts.get("cls")) else "host"
        return self.recorder.add_node(name, kind, opts)

    def addHost(self, name: str, **opts: Any) -> str:
        """Record a host, and return its name."""
        return self.recorder.add_node(name, "host", {**self.hopts, **opts})

    def addSwitch(self, name: str, **opts: Any) -> str:
        """Record a switch, and return its name."""
        return self.recorder.add_node(name, "switch", {**self.sopts, **opts})

    def addController(self, name: str = "c0", **_: Any) -> str:
        """Ignore a controller, which is not part of a topology; return its name."""
        return str(name)

    def addLink(self, node1: str, node2: str, port1: Any = None, port2: Any = None, *args: Any, **opts: Any) -> int:
        """Record a link; its options are those of ``TCLink``."""
        opts.pop("key", None)
        ports = {
            "port1": self._ports.number(str(node1), port1, by_count=True),
            "port2": self._ports.number(str(node2), port2, by_count=True),
        }
        self.recorder.add_link(node1, node2, {**self.lopts, **opts, **ports})
        return len(self.recorder.links)

    def isSwitch(self, name: str) -> bool:
        """Return True if the node with this name is a switch."""
        return self.recorder.nodes.get(str(name), {}).get("kind") == "switch"

    def nodes(self, sort: bool = True) -> list[str]:
        """Return the names of all nodes. They are sorted unless ``sort`` is False."""
        return sorted(self.recorder.nodes, key=natural) if sort else list(self.recorder.nodes)

    def hosts(self, sort: bool = True) -> list[str]:
        """Return the names of the hosts, sorted unless ``sort`` is False."""
        return [name for name in self.nodes(sort) if not self.isSwitch(name)]

    def switches(self, sort: bool = True) -> list[str]:
        """Return the names of the switches, sorted unless ``sort`` is False."""
        return [name for name in self.nodes(sort) if self.isSwitch(name)]

    def links(self, *_: Any, **__: Any) -> list[tuple[str, str]]:
        """Return the names of both ends of each link."""
        return [(link["a"], link["b"]) for link in self.recorder.links]

    def nodeInfo(self, name: str) -> dict[str, Any]:
        """Return the options of a node."""
        options: dict[str, Any] = self.recorder.nodes[str(name)]["options"]
        return options

    def setNodeInfo(self, name: str, info: dict[str, Any]) -> None:
        """Set the options of a node."""
        self.recorder.nodes[str(name)]["options"] = info


class SingleSwitchTopo(Topo):
    """Hosts at one switch."""

    def build(self, k: int = 2, **_: Any) -> None:
        """Add ``k`` hosts and a switch."""
        switch = self.addSwitch("s1")
        for number in range(1, k + 1):
            self.addLink(self.addHost(f"h{number}"), switch)


class LinearTopo(Topo):
    """Switches in a row."""

    def build(self, k: int = 2, n: int = 1, **_: Any) -> None:
        """Add ``k`` switches with ``n`` hosts each."""
        last = None
        for number in range(1, k + 1):
            switch = self.addSwitch(f"s{number}")
            for host in range(1, n + 1):
                self.addLink(self.addHost(f"h{number}" if n == 1 else f"h{host}s{number}"), switch)
            if last is not None:
                self.addLink(switch, last)
            last = switch


class TreeTopo(Topo):
    """Switches in a tree, with hosts as its leaves."""

    def build(self, depth: int = 1, fanout: int = 2) -> None:
        """Add a tree of this depth, in which each switch has so many children."""
        self._hosts = self._switches = 1
        self._add_tree(depth, fanout)

    def _add_tree(self, depth: int, fanout: int) -> str:
        if depth <= 0:
            self._hosts += 1
            return self.addHost(f"h{self._hosts - 1}")
        node = self.addSwitch(f"s{self._switches}")
        self._switches += 1
        for _ in range(fanout):
            self.addLink(node, self._add_tree(depth - 1, fanout))
        return node


class Mininet(Anything):
    """Mininet's network: of a topology, or built by calls."""

    def __init__(self, topo: Any = None, *_: Any, **options: Any) -> None:
        super().__init__()
        self.recorder = topo.recorder if isinstance(topo, Topo) else Recorder()
        self.recorder.options |= options
        self.topo = topo
        self.started = False
        self._ports = topo._ports if isinstance(topo, Topo) else _Ports(self.recorder)
        built.append(self)

    def _add(self, name: str, kind: str, options: dict[str, Any]) -> Node:
        return self._node(self.recorder.add_node(name, kind, options))

    def addHost(self, name: str, cls: Any = None, **opts: Any) -> Node:
        """Record a host, and return it."""
        return self._add(name, "switch" if _is_switch(cls) else "host", {"cls": cls, **opts} if cls else opts)

    def addSwitch(self, name: str, cls: Any = None, **opts: Any) -> Node:
        """Record a switch, and return it."""
        return self._add(name, "switch", {"cls": cls, **opts} if cls else opts)

    def addController(self, name: Any = "c0", *_: Any, **opts: Any) -> Node:
        """Ignore a controller, which is not part of a topology; return a stand-in for it."""
        return Controller(str(name), None, **opts)

    def addLink(
        self, node1: Any, node2: Any, port1: Any = None, port2: Any = None, cls: Any = None, **opts: Any
    ) -> Any:
        """Record a link; its options are those of ``TCLink``."""
        a, b = str(node1), str(node2)
        for name, node in ((a, node1), (b, node2)):
            if name not in self.recorder.nodes:
                self.recorder.add_node(name, "switch" if isinstance(node, Switch) else "host", {})
        default: dict[str, Any] = {}
        ports = {
            "port1": self._ports.number(a, port1, by_count=False),
            "port2": self._ports.number(b, port2, by_count=False),
        }
        self.recorder.add_link(a, b, {**default, **opts, **ports})
        link = Anything()
        link.__dict__["intf1"], link.__dict__["intf2"] = (
            Interface(f"{a}-eth{ports['port1']}"),
            Interface(f"{b}-eth{ports['port2']}"),
        )
        return link

    def get(self, *names: Any) -> Any:
        """Return the nodes with these names; a single one not as a list."""
        found = [self._node(str(name)) for name in names]
        return found[0] if len(found) == 1 else found

    def _node(self, name: str) -> Node:
        known = self.recorder.nodes.get(name)
        if known is None:
            return Controller(name)
        return (Host if known["kind"] == "host" else Switch)(name, self.recorder, **known["options"])

    getNodeByName = __getitem__ = get

    @property
    def hosts(self) -> list[Node]:
        """The hosts."""
        return [self._node(name) for name, node in self.recorder.nodes.items() if node["kind"] == "host"]

    @property
    def switches(self) -> list[Node]:
        """The switches."""
        return [self._node(name) for name, node in self.recorder.nodes.items() if node["kind"] == "switch"]

    @property
    def controllers(self) -> list[Node]:
        """The controllers, of which nothing is kept."""
        return []

    def staticArp(self) -> None:
        """Record that all hosts know each other's MAC addresses."""
        self.recorder.options["autoStaticArp"] = True

    def start(self) -> None:
        """Record that the network has started: from now on, only commands to nodes follow."""
        self.started = True

    def stop(self) -> None:
        """End the script, since the network is complete."""
        raise DoneError


class NetworkAPI:
    """The network of p4-utils' scripts: calls are written down, and :mod:`holdfast.topologies.mininet_files` understands them."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.recorder = Recorder()
        self.calls: list[tuple[str, list[Any], dict[str, Any]]] = []
        built.append(self)

    def startNetwork(self) -> None:
        """End the script, since the network is complete."""
        raise DoneError

    start_net_cli = startNetwork

    def hosts(self, *_: Any, **__: Any) -> list[str]:
        """Return the names of the hosts so far."""
        return [args[0] for name, args, _ in self.calls if name == "addHost"]

    def switches(self, *_: Any, **__: Any) -> list[str]:
        """Return the names of the switches so far."""
        kinds = ("addSwitch", "addP4Switch", "addP4RuntimeSwitch", "addTofino")
        return [args[0] for name, args, _ in self.calls if name in kinds]

    p4switches = switches

    def nodes(self, *_: Any, **__: Any) -> list[str]:
        """Return the names of all nodes so far."""
        return [args[0] for name, args, _ in self.calls if name.startswith("add") and name != "addLink"]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*args: Any, **options: Any) -> Any:
            if len(self.calls) >= 4 * MOST_NODES:
                raise ValueError("more calls than a network can have")
            self.calls.append((name, list(args), options))
            return args[0] if args and name.startswith("add") else Anything()

        return call


built: list[Any] = []
"""The topologies and networks, in the order in which the script made them."""


def natural(name: str) -> list[Any]:
    """Return the key by which Mininet sorts names: ``s2`` comes before ``s10``."""
    parts = re.split(r"([0-9]+)", str(name))
    # Every second part is what the pattern found.
    return [(1, int(part), "") if place % 2 else (0, 0, part) for place, part in enumerate(parts)]


def _is_switch(cls: Any) -> bool:
    if not isinstance(cls, type):
        return False
    names = " ".join(each.__name__ for each in cls.__mro__)
    return issubclass(cls, Switch) or "Switch" in names or "Bridge" in names


class Prompt(Anything):
    """Mininet's prompt, at which a script has built all that it builds."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise DoneError


_CLASSES: dict[str, Any] = {
    "Topo": Topo,
    "Mininet": Mininet,
    "MininetWithControlNet": Mininet,
    "P4Mininet": Mininet,
    "SingleSwitchTopo": SingleSwitchTopo,
    "LinearTopo": LinearTopo,
    "TreeTopo": TreeTopo,
    "NetworkAPI": NetworkAPI,
    "Node": Host,
    "Host": Host,
    "CPULimitedHost": Host,
    "Controller": Controller,
    "CLI": Prompt,
    "P4CLI": Prompt,
    "TreeNet": lambda depth=1, fanout=2, **options: Mininet(TreeTopo(depth=depth, fanout=fanout), **options),
    "irange": lambda start, end: list(range(start, end + 1)),
    "macColonHex": lambda number: ":".join(f"{byte:02x}" for byte in int(number).to_bytes(6, "big")),
    "ipStr": lambda number: ".".join(str(byte) for byte in int(number).to_bytes(4, "big")),
    "natural": natural,
    "quietRun": lambda *_, **__: "",
    "custom": lambda cls, **options: cls,
    "customClass": lambda classes, name: next(iter(classes.values()), None),
    "cleanup": lambda *_, **__: None,
    "setLogLevel": lambda *_, **__: None,
    "errRun": lambda *_, **__: ("", "", 0),
    "topos": {},
}


class _Module(ModuleType):
    """A module that has whatever is imported from it."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        """Return Mininet's class or function with this name, or a stand-in for it."""
        if name.startswith("__"):
            raise AttributeError(name)
        if name in _CLASSES:
            return _CLASSES[name]
        if name[0].isupper():
            base = Switch if re.search("Switch|Bridge|Router(?!_)", name) and "Linux" not in name else Host
            made = Controller if "Controller" in name or name in ("Ryu", "NOX") else base
            _CLASSES[name] = type(name, (made,), {})
            return _CLASSES[name]
        return Anything()


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules that are stood in for."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Return the import specification of a module that a stand-in replaces; None for all other modules."""
        first = name.partition(".")[0]
        if first in STOOD_IN or (self is _LAST and ALSO.fullmatch(name)):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return a stand-in for a module."""
        module = _Module(spec.name)
        module.__all__ = [  # type: ignore[attr-defined]
            *_CLASSES,
            *(
                "OVSSwitch",
                "OVSKernelSwitch",
                "UserSwitch",
                "RemoteController",
                "OVSController",
                "TCLink",
                "Intf",
                "Link",
            ),
            *("info", "debug", "error", "warn", "output", "dumpNodeConnections", "NullController"),
        ]
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing, since a stand-in has no code to execute."""


_FIRST, _LAST = _Finder(), _Finder()


def run(script: str, name: str, arguments: list[str]) -> dict[str, Any]:
    """Run a script, or call what ``name`` is in it, and return the network that it built, as values of JSON."""
    signal.signal(signal.SIGALRM, Prompt)
    signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS)
    sys.meta_path[:] = [_FIRST, *sys.meta_path, _LAST]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))  # noqa: PTH100, PTH120
    sys.argv = [script]
    time.sleep = lambda *_: None
    with open(script, "rb") as file:  # noqa: PTH123
        code = compile(file.read(), script, "exec")
    module = ModuleType("__main__")
    module.__file__ = script
    try:
        module.__dict__["__name__"] = "mininet_script" if name else "__main__"
        sys.modules[module.__name__] = module
        exec(code, module.__dict__)
        if name:
            return _plain(_made(module, name, arguments))
        if not built and (topos := getattr(module, "topos", None)):
            return _plain(_made(module, _only(topos), arguments))
    except (DoneError, SystemExit):
        pass
    except Exception:
        # Scripts measure what they have built, and there is nothing to measure.
        if not any(isinstance(each, Mininet) and each.started for each in built):
            raise
    if not built:
        return {"error": "it builds no network when it is run; name a class or a function in it: mininet:FILE.py:NAME"}
    networks = [each for each in built if not isinstance(each, Topo)]
    return _plain((networks or built)[-1])


def _only(topos: Any) -> str:
    if len(topos) != 1:
        raise LookupError(f"it has several topologies; name one: {', '.join(map(str, topos))}")
    return str(next(iter(topos)))


def _made(module: ModuleType, name: str, arguments: list[str]) -> Any:
    """Return the network that ``name`` in a script stands for: a class or function that is called, or a key of its ``topos``.

    Raises :class:`LookupError` if there is nothing of this name, or it cannot be called.
    """
    topos = getattr(module, "topos", {})
    maker = getattr(module, name, None) or (topos.get(name) if isinstance(topos, dict) else None)
    if maker is None:
        known = [*map(str, topos), *(key for key, each in vars(module).items() if _is_maker(module, each))]
        raise LookupError(f"there is no {name!r} in it (known: {', '.join(known) or 'nothing that makes a topology'})")
    if isinstance(maker, Topo | Mininet | NetworkAPI):
        return maker
    if not callable(maker):
        raise LookupError(f"{name!r} is neither a class nor a function")
    given = [_value(each) for each in arguments if "=" not in each]
    named = {key: _value(value) for key, _, value in (each.partition("=") for each in arguments if "=" in each)}
    try:
        made = maker(*given, **named)
    except DoneError:
        made = None
    if isinstance(made, Topo | Mininet | NetworkAPI):
        return made
    if not built:
        raise LookupError(f"{name!r} makes no topology")
    networks = [each for each in built if not isinstance(each, Topo)]
    return (networks or built)[-1]


def _is_maker(module: ModuleType, value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, Topo) and value.__module__ == module.__dict__["__name__"]


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"True": True, "False": False, "None": None}.get(text, text)


def _plain(made: Any) -> dict[str, Any]:
    if isinstance(made, NetworkAPI):
        calls = [[name, plain(args, name), plain(options, name)] for name, args, options in made.calls]
        return {"calls": calls}
    return {"network": made.recorder.as_json(), "is_topology": isinstance(made, Topo)}


def main() -> None:
    """Run the script that the command line names; write its network, or its error with the line, to standard output."""
    script, name, *arguments = [*sys.argv[1:], ""][: max(2, len(sys.argv) - 1)]
    result = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.dup2(null, 2)
    try:
        found = run(script, name, arguments)
    except BaseException as error:  # noqa: BLE001
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == script]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        words = " ".join(str(error).split())[:300]
        kind = "" if isinstance(error, LookupError) and type(error) is LookupError else f"{type(error).__name__}: "
        found = {"error": f"{kind}{words}", "line": line}
    _write(result, json.dumps(found).encode())
    os._exit(0)


def _write(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


if __name__ == "__main__":
    main()
