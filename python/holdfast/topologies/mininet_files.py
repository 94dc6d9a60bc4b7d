"""Topologies that Python scripts for Mininet and p4-utils build: ``mininet:FILE.py``, or ``mininet:FILE.py:NAME[,ARGUMENT...]``.

``NAME`` is a class or function in the file, or a key of its ``topos``, as for ``mn --custom FILE --topo NAME,ARGUMENT``. Without
it, the script runs until it starts its network. It runs in a process of its own (:mod:`.mininet_stand_in`), without Mininet, with
the rights of the user; so only run scripts that you trust. Addresses that are not given are Mininet's: the next of 10.0.0.0/8.
"""

from __future__ import annotations

import ipaddress
import json
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from holdfast import interpreter
from holdfast.errors import ParameterError, TopologyError
from holdfast.numerals import is_numeral
from holdfast.terminal import excerpt
from holdfast.topologies import host_commands, p4utils
from holdfast.topologies.draft import Draft, tc_link
from holdfast.topologies.p4lang import mapping, natural, number, text
from holdfast.topology import Topology

MOST_SECONDS = 60
"""The time in seconds after which a running script is ended."""

MOST_BYTES = 64 << 20
"""The largest description of what a script builds."""

BRIDGES = ("OVSBridge", "LinuxBridge")
"""Mininet's switches that no controller controls."""


def read(spec: str) -> Topology:
    """Return the topology of ``FILE.py``, ``FILE.py:NAME`` or ``FILE.py:NAME,ARGUMENT,KEY=VALUE``.

    Raises :class:`TopologyError`, with the line in the script if something fails there.
    """
    file, _, made = spec.partition(".py:")
    path = Path(f"{file}.py" if made else spec)
    if path.suffix != ".py" or not path.is_file():
        raise TopologyError(f"{spec}: write mininet:FILE.py or mininet:FILE.py:NAME; there is no file {str(path)!r}")
    name, *arguments = made.split(",") if made else [""]
    found = _built(path, name, arguments)
    if "error" in found:
        place = f":{found['line']}" if found.get("line") else ""
        raise TopologyError(f"{path}{place}: {excerpt(str(found['error']))}")
    draft = Draft(path, name or path.stem)
    if "calls" in found:
        return _P4Utils(draft, found["calls"]).topology()
    return _Mininet(draft, found["network"], is_topology=found["is_topology"]).topology()


def _built(path: Path, name: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Run the script in a process and return the network that it builds; kill it and its processes if it takes too long.

    Raises :class:`TopologyError` if that takes too long or gives no network, or one that is too large.
    """
    stand_in = Path(__file__).with_name("mininet_stand_in.py")
    command = interpreter.script(stand_in, str(path.absolute()), name, *arguments)
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=path.absolute().parent,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        raise TopologyError(f"{path}: the script does not start its network within {MOST_SECONDS} s") from None
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    if len(output) > MOST_BYTES:
        raise TopologyError(f"{path}: the script builds more than {MOST_BYTES >> 20} MiB of network")
    try:
        found = json.loads(output)
    except ValueError:
        raise TopologyError(f"{path}: the script ended without a network, with status {process.returncode}") from None
    assert isinstance(found, dict)
    return found


class _Mininet:
    """The network that a script of Mininet has built."""

    def __init__(self, draft: Draft, found: Mapping[str, Any], *, is_topology: bool) -> None:
        self._draft = draft
        self._nodes: dict[str, dict[str, Any]] = found["nodes"]
        self._links: list[dict[str, Any]] = found["links"]
        self._options: dict[str, Any] = found["options"]
        self._commands: list[list[str]] = found["commands"]
        self._is_topology = is_topology

    def topology(self) -> Topology:
        """Return the topology of the network that the script has built."""
        draft = self._draft
        self._add_nodes()
        for index, link in enumerate(self._links):
            with draft.at(f"link {link['a']}-{link['b']}"):
                self._add_link(index, link)
        self._obey()
        self._resolve()
        return draft.finish()

    def _add_nodes(self) -> None:
        draft, options = self._draft, self._options
        with draft.at("ipBase"):
            try:
                base = ipaddress.IPv4Network(str(options.get("ipBase") or "10.0.0.0/8"), strict=False)
            except ValueError as error:
                raise draft.error(str(error)) from None
        hosts = [name for name, node in self._nodes.items() if node["kind"] == "host"]
        own = {name: place for place, name in enumerate(sorted(hosts, key=natural), 1)}
        for name, node in self._nodes.items():
            with draft.at(name):
                if node["kind"] == "switch":
                    bridge = node["options"].get("cls", options.get("switch")) in BRIDGES
                    draft.switch(name, kind="bridge" if bridge else None)
                    self._take_rest(node["options"], ("cls", "dpid", "protocols", "failMode", "ip", "mac", "stp"))
                else:
                    self._add_host(name, node["options"], base, own[name])

    def _add_host(self, name: str, options: Mapping[str, Any], base: ipaddress.IPv4Network, place: int) -> None:
        draft = self._draft
        host = draft.host(name, gateway="none")
        card = host.card(0)
        ip = options.get("ip")
        if isinstance(ip, str) and ip.partition("/")[0] == "0.0.0.0":
            ip = None
        if ip is None and "ip" in options:
            draft.leave_out("hosts without an address, which get Mininet's")
        if ip is None or not isinstance(ip, str):
            if place >= base.num_addresses - 1:
                raise draft.error(f"there are more hosts than addresses in {base}")
            ip = f"{base[place]}/{base.prefixlen}"
        card["address"] = ip if "/" in ip else f"{ip}/8"
        mac = text(draft, options, "mac")
        if mac is None and self._options.get("autoSetMacs"):
            mac = place.to_bytes(6, "big").hex(":")
        if mac is not None:
            # Mininet takes one digit for a byte, too.
            card["mac"] = ":".join(byte.zfill(2) for byte in mac.split(":"))
        if route := text(draft, options, "defaultRoute"):
            host_commands.obey(host, f"ip route add default {route}")
        self._take_rest(options, ("ip", "mac", "defaultRoute", "cls", "inNamespace"))

    def _take_rest(self, options: Mapping[str, Any], known: Sequence[str]) -> None:
        for key in options:
            if key not in known:
                self._draft.leave_out(f"{key} of nodes")

    def _add_link(self, index: int, link: Mapping[str, Any]) -> None:
        draft, options = self._draft, dict(link["options"])
        a, b = link["a"], link["b"]
        ports = [number(draft, options, f"port{end}") for end in (1, 2)]
        macs = [text(draft, options, f"addr{end}") for end in (1, 2)]
        ways = [mapping(draft, options.get(f"params{end}"), f"params{end}") for end in (1, 2)]
        rest = {k: v for k, v in options.items() if k[:-1] not in ("port", "addr", "params", "intfName")}
        try:
            fields = tc_link(draft, {**rest, **_shaping(draft, ways[0])})
            back = tc_link(draft, _shaping(draft, ways[1]))
        except ParameterError as error:
            raise draft.error(error.sentence) from None
        if back:
            fields["reverse"] = back
        names = {}
        for end, node, port, mac, way in zip("ab", (a, b), ports, macs, ways, strict=True):
            if node not in draft.hosts and node not in draft.switches:
                raise draft.error(f"the link ends at {node!r}, which was not added")
            names[f"{end}_port"] = port
            if node in draft.hosts and port is not None:
                card = draft.hosts[node].card(port)
                if mac:
                    card["mac"] = mac
                if isinstance(way.get("ip"), str):
                    card["address"] = way["ip"]
        draft.link(a, b, **names, **fields)

    def _obey(self) -> None:
        for name, command in self._commands:
            host = self._draft.hosts.get(name)
            with self._draft.at(name):
                if host is None or not host_commands.obey(host, command):
                    self._draft.leave_out("commands that the script gives to nodes")

    def _resolve(self) -> None:
        """Give each host the MAC addresses of all others as neighbours, if the script asks for that (``autoStaticArp``)."""
        hosts = self._draft.hosts
        if not self._options.get("autoStaticArp") or len(hosts) ** 2 > p4utils.MOST_NEIGHBOURS:
            return
        known = {
            host.cards[0]["address"].partition("/")[0]: host.cards[0]["mac"]
            for host in hosts.values()
            if "mac" in host.cards[0]
        }
        for host in hosts.values():
            own = host.cards[0]["address"].partition("/")[0]
            host.fields["neighbours"] = {
                **{ip: mac for ip, mac in known.items() if ip != own},
                **host.fields.get("neighbours", {}),
            }


def _shaping(draft: Draft, params: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in params.items() if key != "ip"}


class _P4Utils:
    """The calls of a script of p4-utils."""

    def __init__(self, draft: Draft, calls: Sequence[Sequence[Any]]) -> None:
        self._draft = draft
        self._calls = calls
        self._network = p4utils.Network(draft)
        self._nodes: dict[str, tuple[str, dict[str, Any]]] = {}
        self._links: list[tuple[str, str, dict[str, Any]]] = []
        self._runtime: list[str] = []

    def topology(self) -> Topology:
        """Return the topology that the script's calls to p4-utils describe."""
        for name, arguments, options in self._calls:
            with self._draft.at(f"{name}({', '.join(map(repr, arguments[:2]))})"):
                self._obey(name, arguments, options)
        for name, (kind, options) in self._nodes.items():
            with self._draft.at(name):
                if kind == "host":
                    self._draft.host(name)
                    p4utils.add_host_options(self._network, name, options)
                else:
                    self._draft.switch(name)
                    p4utils.add_switch_options(self._network, name, options)
        for a, b, options in self._links:
            with self._draft.at(f"link {a}-{b}"):
                self._network.add_link(a, b, options)
        for place, name in enumerate(sorted(self._runtime, key=natural)):
            self._draft.switches[name][1].setdefault("grpc", f"127.0.0.1:{p4utils.FIRST_GRPC_PORT + place}")
        return self._network.finish()

    def _obey(self, name: str, arguments: Sequence[Any], options: dict[str, Any]) -> None:
        if name in ("addHost", "addSwitch", "addP4Switch", "addP4RuntimeSwitch", "addTofino", "addRouter"):
            self._add_node(name, arguments, options)
        elif name == "addLink":
            self._add_link(arguments, options)
        elif name in ("l2", "l3", "mixed"):
            self._network.strategy = name
        elif name in _OF_NODES:
            self._of_node(name, arguments, options)
        elif name in _OF_ALL:
            key, kinds = _OF_ALL[name]
            value = arguments[0] if arguments else next(iter(options.values()), True)
            for kind, own in self._nodes.values():
                if kind in kinds:
                    own[key] = value
        elif name in _OF_LINKS:
            self._of_link(name, arguments, options)
        elif name in _OF_ALL_LINKS:
            value = arguments[0] if arguments else next(iter(options.values()), None)
            for _, _, own in self._links:
                own.update(_OF_ALL_LINKS[name](value))
        elif name in ("enableArpTables", "disableArpTables"):
            self._network.arp_tables = name.startswith("enable")
        elif name in ("enableGwArp", "disableGwArp"):
            self._network.gateway_arp = name.startswith("enable")
        elif not name.startswith(_NO_MATTER):
            self._draft.leave_out(name)

    def _add_node(self, name: str, arguments: Sequence[Any], options: dict[str, Any]) -> None:
        if not arguments or not isinstance(arguments[0], str):
            raise self._draft.error("a name is expected")
        if name == "addRouter":
            self._draft.leave_out("routers of FRR, which become switches without their routing")
            self._network.routers.add(arguments[0])
        if name == "addP4RuntimeSwitch":
            self._runtime.append(arguments[0])
        self._nodes[arguments[0]] = "host" if name == "addHost" else "switch", dict(options)

    def _add_link(self, arguments: Sequence[Any], options: dict[str, Any]) -> None:
        given = dict(zip(("node1", "node2", "port1", "port2"), arguments, strict=False)) | options
        a, b = given.pop("node1", None), given.pop("node2", None)
        if not isinstance(a, str) or not isinstance(b, str):
            raise self._draft.error("a link has the names of two nodes")
        self._links.append((a, b, {key: value for key, value in given.items() if value is not None}))

    def _of_node(self, name: str, arguments: Sequence[Any], options: dict[str, Any]) -> None:
        key = _OF_NODES[name]
        values = [*arguments, *options.values()]
        if not values or values[0] not in self._nodes:
            raise self._draft.error("there is no such node")
        value = values[1] if len(values) > 1 else True
        own = self._nodes[values[0]][1]
        own[key] = f"via {value}" if key == "defaultRoute" else value

    def _of_link(self, name: str, arguments: Sequence[Any], options: dict[str, Any]) -> None:
        values = [*arguments, *options.values()]
        if len(values) < 3:
            raise self._draft.error("two nodes and a value are expected")
        a, b, value = values[:3]
        found = next((link for link in self._links if {link[0], link[1]} == {a, b}), None)
        if found is None:
            raise self._draft.error("there is no such link")
        first = "1" if found[0] == a else "2"
        if name == "setIntfIp":
            found[2].setdefault(f"params{first}", {})["ip"] = value
        elif name == "setIntfMac":
            found[2][f"addr{first}"] = value
        elif name == "setIntfPort":
            found[2][f"port{first}"] = value
        elif name != "setIntfName":
            found[2].update(_OF_LINKS[name](value))


def _bw(value: Any) -> dict[str, Any]:
    return {"bw": value}


def _delay(value: Any) -> dict[str, Any]:
    return {"delay": f"{value}ms" if isinstance(value, int | float) or is_numeral(str(value)) else value}


def _loss(value: Any) -> dict[str, Any]:
    return {"loss": value * 100 if isinstance(value, int | float) else value}


def _queue(value: Any) -> dict[str, Any]:
    return {"max_queue_size": value}


_OF_NODES = {
    "setP4Source": "p4_src",
    "setP4CliInput": "cli_input",
    "setP4SwitchId": "device_id",
    "setGrpcPort": "grpc_port",
    "setPriorityQueueNum": "priority_queues_num",
    "setDefaultRoute": "defaultRoute",
    "enableCpuPort": "cpu_port",
}

_OF_ALL = {"setP4SourceAll": ("p4_src", ("switch",)), "enableCpuPortAll": ("cpu_port", ("switch",))}

_OF_LINKS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "setIntfIp": _bw,
    "setIntfMac": _bw,
    "setIntfPort": _bw,
    "setIntfName": _bw,
    "setBw": _bw,
    "setDelay": _delay,
    "setLoss": _loss,
    "setMaxQueueSize": _queue,
}

_OF_ALL_LINKS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "setBwAll": _bw,
    "setDelayAll": _delay,
    "setLossAll": _loss,
    "setMaxQueueSizeAll": _queue,
}

_NO_MATTER = (
    "enableLog",
    "disableLog",
    "enablePcap",
    "disablePcap",
    "enableCli",
    "disableCli",
    "setLogLevel",
    "setCompiler",
    "setNet",
    "setSwitchClient",
    "setTopologyFile",
    "setThriftPort",
    "printPortMapping",
    "describeP4Nodes",
    "disableDebugger",
    "disableCpuPort",
    "disableScheduler",
    "start",
    "getNode",
    "is",
)
"""Calls that do not change the topology."""
