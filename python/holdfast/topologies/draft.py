"""A topology in the making, as readers of other tools' files find it: hosts may come before or after their links.

A host gets as many network cards as it has links. Readers give what their file says; :meth:`Draft.finish` makes the topology, with
the file in every error and one warning for what is left out. No format is known here.
"""

from __future__ import annotations

import ipaddress
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from holdfast import json_file, units
from holdfast.errors import ParameterError, TopologyError, TopologyWarning
from holdfast.left_out import LeftOut
from holdfast.terminal import excerpt
from holdfast.topology import Topology

QUEUE_PACKETS = 1000
"""The packets in the queue of a link whose rate Linux shapes, if its size is not given: Linux's default
``txqueuelen``."""

_TC_UNIT = re.compile(r"([mu]?)secs?$")
"""Units of time that ``tc`` also accepts: ``sec``, ``secs``, ``msec``, ``usecs`` and so on."""

_UNKNOWN = ipaddress.IPv4Network("100.64.0.0/10")
"""The range (RFC 6598) in which network cards without an address in the file get one, each in a subnet of its own."""

MOST_CARDS = 64
"""The most network cards of a host."""


@dataclass
class HostDraft:
    """A host: its network cards by number, with ``address``, ``ipv6`` and ``mac``, and its other fields."""

    name: str
    place: str
    cards: dict[int, dict[str, Any]] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    links: int = 0

    def card(self, number: int) -> dict[str, Any]:
        """Return the fields of a network card, for changes. The card is added if it is new."""
        return self.cards.setdefault(number, {})


@dataclass
class LinkDraft:
    """A link with the place where it is declared."""

    a: str
    b: str
    place: str
    fields: dict[str, Any]


class Draft:
    """What a file says of a topology."""

    def __init__(self, path: Path, name: str, json_content: bytes | None = None) -> None:
        """Begin with nothing. ``json_content``: the file's, if places are places in JSON; then errors have the line."""
        self.path = path
        self._json_content = json_content
        self.name = name
        self.hosts: dict[str, HostDraft] = {}
        self.switches: dict[str, tuple[str, dict[str, Any]]] = {}
        self.links: list[LinkDraft] = []
        self.left_out = LeftOut()
        self._place = ""
        self._unknown = 0

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """Raise errors of the enclosed code as errors of the file at this place."""
        before, self._place = self._place, place
        try:
            yield
        except (TopologyError, ParameterError) as error:
            if str(error).startswith(f"{self.path}:"):
                raise
            raise self.error(str(error)) from None
        finally:
            self._place = before

    @property
    def place(self) -> str:
        """The current place in the file."""
        return self._place

    def error(self, sentence: str) -> TopologyError:
        """Return an error with the file and the current place, for the caller to raise."""
        line = ""
        if self._json_content is not None and self._place:
            line = f":{json_file.line_of(self._json_content, self._place)}"
        return TopologyError(f"{self.path}{line}: {self._place}{': ' if self._place else ''}{excerpt(sentence)}")

    def leave_out(self, what: str) -> None:
        """Record that something (``what``) at the current place is left out, for a warning."""
        self.left_out.add(what, self._place)

    def host(self, name: str, **fields: Any) -> HostDraft:
        """Add a host with fields of :class:`holdfast.host.Host`, and return it."""
        self._new(name)
        self.hosts[name] = HostDraft(name, self._place, fields=fields)
        return self.hosts[name]

    def switch(self, name: str, **fields: Any) -> None:
        """Add a switch with fields of :class:`holdfast.topology.SwitchNode`."""
        self._new(name)
        self.switches[name] = self._place, fields

    def _new(self, name: str) -> None:
        if name in self.hosts or name in self.switches:
            raise self.error(f"node {name!r} is declared twice")

    def link(self, a: str, b: str, **fields: Any) -> None:
        """Add a link with fields of :class:`holdfast.topology.Link`; one from a node to itself is left out."""
        if a == b:
            self.leave_out("links from a node to itself")
            return
        self.links.append(LinkDraft(a, b, self._place, fields))

    def beside(self, name: str) -> str:
        """Return the path of another file that is named in this one: in its folder, the folder above, or the working directory.

        Where there is none, the path is relative to the file.
        """
        folder = self.path.absolute().parent
        for base in (folder, folder.parent, Path.cwd()):
            try:
                if (base / name).is_file():
                    return str(base / name)
            except (OSError, ValueError):
                break
        return str(folder / name)

    def program(self, name: str) -> str | None:
        """Return the path of the P4 program that the file calls ``name``, perhaps by BMv2's JSON.

        If there is none, record that; return None.
        """
        path = Path(name)
        if path.suffix != ".json":
            return self.beside(name)
        for source in (path.with_suffix(".p4"), Path(f"{path.stem}.p4"), path.parent.parent / f"{path.stem}.p4"):
            found = self.beside(str(source))
            if Path(found).is_file():
                return found
        self.leave_out(f"programs in bmv2's JSON without their source, {path.stem}.p4")
        return None

    def finish(self) -> Topology:
        """Build the topology, and warn about what was left out. Raises :class:`TopologyError` if it could not run."""
        topology = Topology(self.name)
        for link in self.links:
            for end in (link.a, link.b):
                if end in self.hosts:
                    self.hosts[end].links += 1
        for name, (place, fields) in self.switches.items():
            with self.at(place):
                topology.add_switch(name, **fields)
        for host in self.hosts.values():
            with self.at(host.place):
                if host.links:
                    self._add_host(topology, host)
                else:
                    self.left_out.add("hosts without a link", host.name)
        for link in self.links:
            with self.at(link.place):
                topology.add_link(link.a, link.b, **link.fields)
        with self.at(""):
            if not topology.switches and not topology.hosts:
                raise self.error("there is no switch in it, and no host with a link")
        if sentence := self.left_out.sentence(self.path):
            warnings.warn(sentence, TopologyWarning, stacklevel=4)
        try:
            topology.check()
        except TopologyError as error:
            warnings.warn(f"{self.path}: {error}", TopologyWarning, stacklevel=4)
        return topology

    def _add_host(self, topology: Topology, host: HostDraft) -> None:
        most = max(host.links, *(number + 1 for number in host.cards), 1) if host.cards else max(host.links, 1)
        if most > MOST_CARDS:
            raise self.error(f"host {host.name!r} has {most} network cards; {MOST_CARDS} at most")
        first = host.cards.get(0, {})
        more: list[dict[str, Any]] = []
        for number in range(1, most):
            card = dict(host.cards.get(number, {}))
            if "address" not in card:
                card["address"] = f"{_UNKNOWN[4 * self._unknown + 1]}/30"
                self._unknown += 1
                self.left_out.add("addresses of further network cards, which the file does not say", host.name)
            more.append(card)
        interfaces = {"interfaces": tuple(more)} if more else {}
        topology.add_host(host.name, **{**first, **host.fields, **interfaces})


def tc_time_ms(value: object) -> float:
    """Parse a time as ``tc`` does, and return it in milliseconds; a number without a unit is in microseconds.

    Raises :class:`ParameterError`.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ParameterError("", "", f"{value!r} is not a time, such as 5ms")
    text = str(value).strip()
    if not units.is_plain(text):
        try:
            return units.time_ms(_TC_UNIT.sub(r"\1s", text))
        except ParameterError:
            raise ParameterError("", "", f"{excerpt(repr(text), 60)} is not a time, such as 5ms") from None
    return float(Fraction(text) / 1000)


def tc_link(draft: Draft, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a link that Mininet's ``TCLink`` describes.

    ``bw`` in Mbit/s, ``delay`` and ``jitter`` for ``tc``, ``loss`` in percent, ``max_queue_size`` in packets. What has no equal
    here is left out and noted. Raises :class:`ParameterError`.
    """
    fields: dict[str, Any] = {}
    for key, value in options.items():
        if value is None:
            continue
        if key == "bw":
            rate = _number(key, value) * 10**6
            if rate <= 0:
                raise ParameterError("", "", f"bw is {value!r}; it is above zero, in Mbit/s")
            fields["rate_bps"] = round(rate)
            fields.setdefault("queue_packets", QUEUE_PACKETS)
        elif key == "delay":
            fields["delay_ms"] = tc_time_ms(value)
        elif key == "loss":
            share = _number(key, value) / 100
            if not 0 <= share <= 1:
                raise ParameterError("", "", f"loss is {value!r}; it is 0 to 100, in percent")
            fields["loss"] = float(share)
        elif key == "max_queue_size":
            fields["queue_packets"] = int(_number(key, value))
        elif key not in ("jitter", "weight", "cls", "node1", "node2", "key", "fast", "use_htb", "addr1", "addr2"):
            draft.leave_out(f"{key} of links")
    if options.get("jitter") is not None:
        # tc draws uniformly around the delay; here what is drawn is added to it.
        around = tc_time_ms(options["jitter"])
        delay = fields.get("delay_ms", 0.0)
        fields["delay_ms"] = max(0.0, delay - around)
        fields["jitter"] = {"distribution": "uniform", "low_ms": 0.0, "high_ms": delay + around - fields["delay_ms"]}
    return fields


def _number(key: str, value: object) -> Fraction:
    text = str(value).strip()
    if isinstance(value, bool) or not isinstance(value, int | float | str) or not units.is_plain(text):
        raise ParameterError("", "", f"{key} is {value!r}; a number is expected")
    return Fraction(text)
