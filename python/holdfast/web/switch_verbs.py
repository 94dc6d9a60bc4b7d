"""The verbs of a running switch's page: what it holds, counts and drops, and the way of a packet. It changes nothing but ports."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from holdfast import suggestions
from holdfast.console import kinds, switches
from holdfast.console.grammar import Grammar, forms_of, verb
from holdfast.console.session import Result
from holdfast.errors import ConsoleError
from holdfast.live import control
from holdfast.live.switch import LiveSwitch, parse_port
from holdfast.p4runtime.client import Client

_LOOK_S = 0.02


class SwitchVerbs:
    """Obeys lines about a running switch, whose control socket is open."""

    def __init__(self, live: LiveSwitch) -> None:
        self._live = live
        self.ended = False
        """Never: the page does not end the switch."""
        self.listeners: list[Callable[[str, Result], None]] = []
        """Called with each line that was obeyed, and its result."""
        known = {
            "TABLE": _Named("table", self._names("tables")),
            "COUNTER": _Named("counter", self._names("counters")),
            "TIME": kinds.KINDS["TIME"],
            "PORT": _Port(),
            "NUMBER": _Number(),
        }
        self.grammar = Grammar(forms_of(type(self)), known, self)

    def do(self, line: str) -> Result:
        """Obey a line, and return what the verb says. Raises a HoldfastError with one sentence if it cannot be obeyed."""
        stripped = line.strip()
        if not stripped:
            return Result()
        form, values = self.grammar.parse(stripped)
        result: Result = getattr(self, form.method)(**values)
        for listener in self.listeners:
            listener(stripped, result)
        return result

    def _names(self, what: Literal["tables", "counters"]) -> Callable[[], list[str]]:
        return lambda: [each.name for each in getattr(self._client().p4info, what)]

    def _client(self) -> Client:
        """Return a client of the operator's, which is no stream among those of controllers."""
        path = control.socket_path(self._live.device.device_id)
        (running,) = [each for each in control.running_switches() if each.path == path]
        return control.OperatorClient(running)

    @verb("tables [table:TABLE]")
    def tables(self, table: str | None = None) -> Result:
        """Show tables with their entries."""
        lines, total = switches.table_lines(self._client(), table)
        return Result("\n".join(lines), values={"entries": total})

    @verb("counters [counter:COUNTER]")
    def counters(self, counter: str | None = None) -> Result:
        """Show the cells of counters that are not zero."""
        lines, packets = switches.counter_lines(self._client(), counter)
        return Result("\n".join(lines), values={"packets": packets})

    @verb("trace next [time_s:TIME]")
    def trace(self, time_s: float = 10.0) -> Result:
        """Show the path of the next packet that arrives within TIME (10s)."""
        end_s, found = time.monotonic() + time_s, None
        self._live.trace_next()
        while found is None and time.monotonic() < end_s:
            time.sleep(_LOOK_S)
            found = self._live.take_trace()
        found = found or self._live.take_trace(give_up=True)
        return Result("no packet came" if found is None else found.rstrip("\n"), found is not None)

    @verb("port add port:PORT")
    def add(self, port: tuple[int, str]) -> Result:
        """Add an interface as a port, as in port add 2@veth2."""
        self._live.add_port(*port)
        return Result(f"port {port[0]} is {port[1]}")

    @verb("port remove number:NUMBER")
    def remove(self, number: int) -> Result:
        """Remove a port."""
        counted = self._live.remove_port(number)
        return Result(f"port {number} is gone: it received {counted.rx_packets} packets and sent {counted.tx_packets}")

    @verb("help")
    def help(self) -> Result:
        """List the verbs."""
        return Result("\n".join(f"{form!s:<24}  {form.text.partition(chr(10))[0]}" for form in self.grammar.forms))


@dataclass(frozen=True)
class _Named:
    """The name of something in the program."""

    noun: str
    known: Callable[[], list[str]]

    @property
    def what(self) -> str:
        return f"a {self.noun}"

    def read(self, subject: Any, word: str) -> str:
        """Return the whole name of which ``word`` is the end. Raises :class:`ConsoleError` if there is none, or several."""
        known = self.known()
        found = [name for name in known if name == word or name.endswith(f".{word}")]
        if len(found) != 1:
            raise ConsoleError(f"there is no {self.noun} {word!r}{suggestions.alternatives(word, known)}")
        return found[0]

    def candidates(self, subject: Any, word: str) -> Iterable[str]:
        """Return all names."""
        return self.known()


@dataclass(frozen=True)
class _Port:
    """A port with its interface."""

    what: str = "a port, such as 2@veth2"

    def read(self, subject: Any, word: str) -> tuple[int, str]:
        """Return port number and interface."""
        return parse_port(word)

    def candidates(self, subject: Any, word: str) -> Iterable[str]:
        """Return none: interfaces are the machine's."""
        return []


@dataclass(frozen=True)
class _Number:
    """The number of a port that the switch has."""

    what: str = "a port's number"

    def read(self, subject: Any, word: str) -> int:
        """Return the number. Raises :class:`ConsoleError` if there is no such port."""
        known = [str(port) for port in subject._live.ports]
        if word not in known:
            raise ConsoleError(f"there is no port {word[:20]!r} (known: {', '.join(known) or 'none'})")
        return int(word)

    def candidates(self, subject: Any, word: str) -> Iterable[str]:
        """Return the numbers of all ports."""
        return [str(port) for port in subject._live.ports]


__all__ = ["SwitchVerbs"]
