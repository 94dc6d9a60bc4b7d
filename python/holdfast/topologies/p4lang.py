"""Reads ``topology.json`` of p4lang's tutorials: ``hosts``, ``switches``, and ``links``, lists of ends, latency and bandwidth.

An end at a switch names its port: ``s1-p3``. The fields of hosts are ``ip``, ``mac`` and ``commands``; those of switches
``runtime_json`` or ``cli_input`` (entries), ``program``, ``cpu_port`` and ``priority_queues``. Latencies are numbers in ms or
texts as for ``tc``, bandwidths are in Mbit/s. As the tutorials start them, switches have the device ids 0, 1 ... and P4Runtime
servers on ports 50051, 50052 ... of this machine, by the order of their names.

Until 2019 hosts were a list of names, and ends had no ports. Such a file means what the tutorials of that time made of it: host h2
at switch s1 is 10.0.1.2/24, and ports are numbered in the order of the links' names, those of hosts first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.errors import ParameterError
from holdfast.numerals import is_numeral
from holdfast.suggestions import unknown
from holdfast.topologies import host_commands
from holdfast.topologies.draft import Draft, tc_link
from holdfast.topology import Topology

FIRST_GRPC_PORT = 50051

_END = re.compile(r"(?P<name>.+)-p(?P<port>[0-9]{1,3})")


def fits(document: Any) -> bool:
    """Return True if a JSON value has the form of the topology files of p4lang's tutorials."""
    return (
        isinstance(document, dict)
        and isinstance(document.get("hosts"), dict | list)
        and isinstance(document.get("switches"), dict)
        and isinstance(document.get("links"), list)
    )


def read(path: Path, document: Mapping[str, Any], content: bytes | None = None) -> Topology:
    """Return the topology in a document that :func:`fits`.

    ``content``: the document's text. Raises :class:`holdfast.errors.TopologyError` with the place of a mistake, and its line in
    the text.
    """
    draft = Draft(path, path.parent.name if path.stem == "topology" and path.parent.name else path.stem, content)
    if isinstance(document["hosts"], list):
        document = _of_today(draft, document)
    for key in document:
        if key not in ("hosts", "switches", "links"):
            with draft.at(key):
                draft.leave_out(f"the part {key!r}")
    for number, name in enumerate(sorted(document["switches"], key=natural)):
        fields = document["switches"][name]
        with draft.at(f"switches.{name}"):
            _add_switch(draft, name, fields, number)
    draft.switches = {name: draft.switches[name] for name in document["switches"]}
    for name, fields in document["hosts"].items():
        with draft.at(f"hosts.{name}"):
            _add_host(draft, name, fields)
    for index, link in enumerate(document["links"]):
        with draft.at(f"links.{index}"):
            _add_link(draft, link)
    return draft.finish()


_NUMBERED = re.compile(r"[a-z](?P<number>[0-9]{1,3})")


def _of_today(draft: Draft, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document of the form of before 2019 in today's. Raises :class:`TopologyError` with the place of a mistake."""
    names, switches = document["hosts"], document["switches"]
    with draft.at("hosts"):
        if not all(isinstance(name, str) for name in names):
            raise draft.error("hosts are names, or an object with a host's fields by its name")
    links = []
    for index, link in enumerate(document["links"]):
        with draft.at(f"links.{index}"):
            if not (isinstance(link, list) and len(link) > 1 and all(isinstance(end, str) for end in link[:2])):
                raise draft.error("a link is a list of two names, and perhaps latency and bandwidth")
            ends = sorted(link[:2])
            for end in ends:
                if end not in switches and end not in names:
                    raise draft.error(unknown("node", end, [*names, *switches]))
            links.append((ends, link[2:]))
    # The tutorials of that time counted ports in this order.
    links.sort(key=lambda link: (link[0][0] in switches, "".join(link[0])))
    ports = dict.fromkeys(switches, 0)
    hosts: dict[str, Any] = {}
    made = []
    for ends, more in links:
        shown = []
        for end in ends:
            ports[end] = ports.get(end, 0) + 1
            shown.append(f"{end}-p{ports[end]}" if end in switches else end)
        for host, switch in ((ends[0], ends[1]), (ends[1], ends[0])):
            if host not in switches and switch in switches and host not in hosts:
                hosts[host] = _old_host(draft, host, switch)
        made.append([*shown, *more])
    return {**document, "hosts": {name: hosts.get(name, {}) for name in names}, "links": made}


def _old_host(draft: Draft, host: str, switch: str) -> dict[str, Any]:
    """Return the fields of a host whose addresses are the numbers in the names of its switch and its own."""
    numbers = [found and int(found["number"]) for found in map(_NUMBERED.fullmatch, (switch, host))]
    with draft.at(f"hosts.{host}"):
        if any(number is None or number > 254 for number in numbers):
            raise draft.error(f"its address is made of the numbers of {switch} and {host}: use names such as s1 and h1")
    at, number = numbers
    gateway, mac = f"10.0.{at}.254", f"02:00:00:00:{at:02x}:fe"
    commands = [f"route add default gw {gateway} dev eth0", f"arp -i eth0 -s {gateway} {mac}"]
    return {"ip": f"10.0.{at}.{number}/24", "mac": f"00:00:00:00:{at:02x}:{number:02x}", "commands": commands}


def natural(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Return a key that sorts names by their words, and by the numbers between them: ``s2`` before ``s10``."""
    words = re.split(r"([0-9]{1,18})", name)
    return tuple((is_numeral(word), int(word) if is_numeral(word) else 0, word) for word in words)


def mapping(draft: Draft, value: Any, what: str) -> dict[str, Any]:
    """Return a value that must be a JSON object; null counts as an empty one. Raises :class:`TopologyError` for any other value."""
    if value is not None and not isinstance(value, dict):
        raise draft.error(f"{what} is an object with its fields")
    return value or {}


def text(draft: Draft, fields: Mapping[str, Any], key: str) -> str | None:
    """Return a field that must be a text; None if it is missing or null. Raises :class:`TopologyError` for any other value."""
    value = fields.get(key)
    if value is not None and not isinstance(value, str):
        raise draft.error(f"{key} is {value!r}; a text is expected")
    return value or None


def number(draft: Draft, fields: Mapping[str, Any], key: str) -> int | None:
    """Return a field that must be a whole number, or its text; None if it is missing. Raises :class:`TopologyError` otherwise."""
    value = fields.get(key)
    if isinstance(value, str) and is_numeral(value):
        value = int(value)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise draft.error(f"{key} is {value!r}; a number is expected")
    return value


_SWITCH = ("runtime_json", "cli_input", "program", "cpu_port", "priority_queues", "mac")


def _add_switch(draft: Draft, name: str, given: Any, place: int) -> None:
    fields = mapping(draft, given, "a switch")
    for key in fields:
        if key not in _SWITCH:
            draft.leave_out(f"{key} of switches")
    entries = text(draft, fields, "runtime_json")
    commands = text(draft, fields, "cli_input")
    if entries and commands:
        draft.leave_out("cli_input beside runtime_json")
    chosen = entries or commands
    program = text(draft, fields, "program")
    queues = number(draft, fields, "priority_queues")
    draft.switch(
        name,
        device_id=place,
        grpc=f"127.0.0.1:{FIRST_GRPC_PORT + place}",
        entries=draft.beside(chosen) if chosen else None,
        program=draft.program(program) if program else None,
        cpu_port=number(draft, fields, "cpu_port"),
        queueing={"queues": queues} if queues is not None else None,
    )


def _add_host(draft: Draft, name: str, given: Any) -> None:
    fields = mapping(draft, given, "a host")
    for key in fields:
        if key not in ("ip", "mac", "commands"):
            draft.leave_out(f"{key} of hosts")
    host = draft.host(name, gateway="none")
    if (address := text(draft, fields, "ip")) is not None:
        # Mininet's prefix, if none is given.
        host.card(0)["address"] = address if "/" in address else f"{address}/8"
    if (mac := text(draft, fields, "mac")) is not None:
        host.card(0)["mac"] = mac
    commands = fields.get("commands", [])
    if not isinstance(commands, list) or not all(isinstance(each, str) for each in commands):
        raise draft.error("commands: a list of texts is expected")
    host_commands.take(host, commands)


def _add_link(draft: Draft, link: Any) -> None:
    if isinstance(link, dict):
        keys = ("node1", "node2", "latency", "bandwidth")
        for key in link:
            if key not in keys:
                raise draft.error(unknown("key", key, keys))
        link = [link.get(key) for key in keys]
    if not isinstance(link, list) or not 2 <= len(link) <= 4 or not all(isinstance(end, str) for end in link[:2]):
        raise draft.error("a link is a list of two ends, then latency and bandwidth: ['h1', 's1-p1', '5ms', 10]")
    latency, bandwidth = (*link[2:], None, None)[:2]
    if isinstance(latency, int | float) and not isinstance(latency, bool):
        latency = f"{latency}ms"
    ends = [_end(draft, end) for end in link[:2]]
    ports = {key: port for key, (_, port) in zip(("a_port", "b_port"), ends, strict=True) if port is not None}
    try:
        fields = tc_link(draft, {"delay": latency, "bw": bandwidth})
    except ParameterError as error:
        raise draft.error(error.sentence) from None
    draft.link(ends[0][0], ends[1][0], **ports, **fields)


def _end(draft: Draft, end: str) -> tuple[str, int | None]:
    """Parse the end of a link, such as ``s1-p2``, into node and port; the port of a host is None."""
    if end in draft.hosts or end in draft.switches:
        return end, None
    if found := _END.fullmatch(end):
        return found["name"], int(found["port"])
    known = [*draft.hosts, *(f"{name}-p1" for name in draft.switches)]
    raise draft.error(unknown("end of a link,", end, known))
