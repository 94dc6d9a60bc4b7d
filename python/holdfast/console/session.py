"""A session with a network: its verbs, each a method declared with the lines that it obeys.

::

    with Session(network) as session:
        session.do("h1 ping h2").ok
        session.ping("h1", "h2", count=3).values["lost"]

The parser, the completion and the help come from the declarations (:mod:`holdfast.console.grammar`). A verb returns a
:class:`Result`; one that cannot be obeyed raises a :class:`HoldfastError` with one sentence. What hosts do on each clock is
:mod:`holdfast.console.hosts`'; nothing here prints.
"""

from __future__ import annotations

import operator
import re
import signal
import subprocess
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from holdfast import suggestions, units
from holdfast.console import frames, programs, switches
from holdfast.console.flows import Asked, Flow, Flows
from holdfast.console.grammar import Form, Grammar, forms_of, split, verb
from holdfast.console.hosts import Hosts, LiveHosts, SimulatedHosts, text_of_pings
from holdfast.console.kinds import KINDS
from holdfast.console.pace import clock_of
from holdfast.errors import ConsoleError, HoldfastError
from holdfast.network import LiveNetwork, Network, SimulatedNetwork
from holdfast.parameters import PS_PER_S
from holdfast.topology import Topology

_NOT_FOUND = (126, 127)
"""The exit statuses of a shell that could not start a command."""

MOST_HOPS, SILENT_HOPS = 30, 5
"""Of a path that is shown, and of those in turn from which nobody answers."""

TRACED_S = 1.0
"""For so long after a verb its first packet at a switch is waited for."""

_DEEPEST = 20
"""Files within files of verbs."""

_OUTCOMES = {"ok": True, "fails": False}

_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}


@dataclass(frozen=True)
class Result:
    """What a verb has to say: text for people, whether it went well, and its numbers by name (rates in bit/s, times in ms)."""

    text: str = ""
    ok: bool = True
    values: Mapping[str, float] = field(default_factory=dict)
    shown: bool = False
    """True if the text has been on the terminal already."""
    failed_command: bool = False
    """True if a command in a host ended with a status that is not 0."""


class Session:
    """The verbs of a network, from the start of the session to its end; a context manager.

    ``paced``: a simulation passes at the pace of the wall clock, in a thread of its own; without, only while verbs wait, as fast as
    it can. ``on_terminal``: commands in live hosts have this process' terminal; without, their output is the result's text.
    """

    def __init__(self, network: Network, *, paced: bool = False, on_terminal: bool = False) -> None:
        self.network = network
        self.clock = clock_of(network, paced=paced)
        self.hosts: Hosts = (
            LiveHosts(network, self.clock)
            if isinstance(network, LiveNetwork)
            else SimulatedHosts(_simulated(network), self.clock)
        )
        self.flows = Flows(network if isinstance(network, LiveNetwork) else _simulated(network), self.clock)
        """Those that run on while other verbs are obeyed."""
        self.ended = False
        """True once the verb ``quit`` was obeyed."""
        self.last = Result()
        """The result of the last verb but ``expect``."""
        self._on_terminal = on_terminal
        self._sources: list[Path] = []
        self._captures: list[Path] = []
        self._commands = switches.Commands()
        self.echo: Callable[[str, Result], None] | None = None
        """Called with each line of a sourced file, and its result."""
        self.listeners: list[Callable[[str, Result], None]] = []
        """Called with each line that was obeyed, and its result, in the thread that has obeyed it."""
        forms = forms_of(type(self))
        here = [form for form in forms if form.clock in (None, self.clock.kind)]
        self.grammar = Grammar(here, KINDS, self)
        self._elsewhere = Grammar([form for form in forms if form not in here], KINDS, self)

    # ---- The session ----

    @property
    def topology(self) -> Topology:
        """The network's map."""
        return self.network.topology

    @property
    def verbs(self) -> list[str]:
        """The names of the verbs, in the order of the help."""
        return list(dict.fromkeys(form.verb for form in self.grammar.forms))

    @property
    def _words_of_hosts(self) -> set[str]:
        """The second words of verbs that begin with a host."""
        written = [str(form).split() for form in self.grammar.forms]
        return {words[1] for words in written if words[0] == "HOST" and words[1].islower()}

    def names_in_programs(self, what: str) -> list[str]:
        """Return the names of the ``tables`` or ``counters`` of all programs."""
        found: dict[str, None] = {}
        for client in self.network.clients.values():
            found |= {each.name: None for each in getattr(client.p4info, what)}
        return list(found)

    def is_in_programs(self, what: str, name: str) -> bool:
        """Return True if ``name`` means one of the ``tables`` or ``counters`` of a program."""
        return any(getattr(client.p4info, what).has(name) for client in self.network.clients.values())

    def do(self, line: str) -> Result:
        """Obey a line, and return what the verb says. An empty line and a comment are obeyed, too.

        Raises a :class:`HoldfastError` with one sentence if it is no verb, or the verb cannot be obeyed.
        """
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            return Result()
        try:
            form, values = self.grammar.parse(stripped)
        except HoldfastError as error:
            raise self._of_another_clock(stripped) or error from None
        result: Result = getattr(self, form.method)(**values)
        if form.method != "expect":
            self.last = result
        for listener in self.listeners:
            listener(stripped, result)
        return result

    def _of_another_clock(self, line: str) -> ConsoleError | None:
        """Return the error about a verb of another clock, or None if the line is one of this clock's, or none at all."""
        try:
            if self.grammar.reach(line) > 1:
                return None
            form, _ = self._elsewhere.parse(line)
        except HoldfastError:
            return None
        if form.method == "run" and (close := suggestions.similar(word := line.split()[1], self._words_of_hosts)):
            return ConsoleError(f"there is no verb {word!r}; did you mean {' or '.join(map(repr, close))}?")
        return ConsoleError(f"'{form}' is a verb of {form.clock} networks (--{form.clock})")

    def close(self) -> None:
        """End what runs for the session; the network is its owner's."""
        self.flows.close()
        self.hosts.close()
        self.clock.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # ---- The verbs: hosts ----

    @verb("source:HOST ping destination:HOST [-c count:COUNT]")
    def ping(self, source: str, destination: str, count: int = 3) -> Result:
        """Ping another host.

        Send COUNT echo requests (3), five a second, and wait for the answers. Numbers: sent, received, lost, rtt.
        """
        if source == destination:
            raise ConsoleError(f"{source} does not ping itself over the network")
        (found,) = self.hosts.ping([(source, destination)], count)
        values: dict[str, float] = {"sent": found.sent, "received": found.received, "lost": found.sent - found.received}
        if found.rtts_ms:
            values["rtt"] = sum(found.rtts_ms) / len(found.rtts_ms)
        return Result(f"{source} -> {destination}: {text_of_pings(found)}", values["lost"] == 0, values)

    @verb("source:HOST ping destination:HOST [time_s:TIME] &")
    def ping_on(self, source: str, destination: str, time_s: float | None = None) -> Result:
        """Ping beside other verbs.

        Five echo requests a second, for TIME, or until flow FLOW stop. Number: flow.
        """
        return self._begun(Asked("ping", source, destination, time_s=time_s))

    @verb("source:HOST traceroute destination:HOST")
    def traceroute(self, source: str, destination: str) -> Result:
        """Show the path to another host.

        Send echo requests with TTL 1, 2 ... until it answers, or nobody does five times. Routers that send ICMP errors are shown.
        Number: hops.
        """
        if source == destination:
            raise ConsoleError(f"{source} has no path to itself over the network")
        lines, silent, there = [], 0, False
        for ttl in range(1, MOST_HOPS + 1):
            found = self.hosts.hop(source, destination, ttl)
            time = "" if found.rtt_ms is None else f"  {found.rtt_ms:.3f} ms"
            lines.append(f"{ttl:>2}  {found.address or '*'}{time}")
            there, silent = found.there, 0 if found.address else silent + 1
            if there or silent >= SILENT_HOPS:
                break
        return Result("\n".join(lines), there, {"hops": len(lines)})

    @verb("source:HOST send frame:FRAME...")
    def send(self, source: str, frame: str | bytes) -> Result:
        """Send a frame.

        It is hexadecimal digits, or with Scapy installed an expression such as Ether()/IP(dst="10.0.2.1")/UDP().
        """
        data = frames.encoded(frame, self.topology.hosts[source]) if isinstance(frame, str) else frame
        self.hosts.send(source, data)
        return Result(f"{source} sent {len(data)} bytes", values={"bytes": len(data)})

    @verb("host:HOST sniff [time_s:TIME]")
    def sniff(self, host: str, time_s: float = 1.0) -> Result:
        """Show the frames that came to a host.

        Those since the last time; if there are none, wait for one. Live, they are kept from the first send or sniff on.
        """
        found = self.hosts.sniff(host, time_s)
        lines = [f"{time_s:.6f} s  {frames.shown(frame)}" for time_s, frame in found] or ["no frames"]
        return Result("\n".join(lines), bool(found), {"frames": len(found)})

    @verb("host:HOST command:COMMAND...", clock="live")
    def run(self, host: str, command: str) -> Result:
        """Run a command in a host.

        Words that are names of hosts become their addresses; with & at the end, it runs in the background. h1 bash is a shell.
        """
        live = _live(self.network).hosts[host]
        line = self._with_addresses(command)
        if line.rstrip().endswith("&") and not line.rstrip().endswith("&&"):
            live.popen(line.rstrip().removesuffix("&"), stdin=subprocess.DEVNULL)
            return Result()
        # The terminal is the prompt's, and a page has none.
        if self._on_terminal and threading.current_thread() is threading.main_thread():
            with _ctrl_c_is_theirs():
                status = live.popen(line).wait()
            return self._of_command(host, command, status, "", shown=True)
        done = live.run(line, check=False)
        return self._of_command(host, command, done.returncode, (done.stdout + done.stderr).rstrip("\n"))

    def _of_command(self, host: str, command: str, status: int, text: str, *, shown: bool = False) -> Result:
        if status in _NOT_FOUND:
            said = (text.splitlines() or [""])[-1]
            raise ConsoleError(f"{host} cannot run {command!r}: {said}" if said else f"{host} cannot run {command!r}")
        return Result(text, status == 0, {"status": status}, shown=shown, failed_command=status != 0)

    def _with_addresses(self, command: str) -> str:
        """Replace the words that are names of hosts by their IPv4 addresses."""
        hosts = self.topology.hosts

        def address(word: re.Match[str]) -> str:
            return str(hosts[word[0]].address.ip) if word[0] in hosts else word[0]

        return re.sub(r"(?<![^\s\"'=@])[\w.-]+(?![^\s\"':;|&)])", address, command)

    @verb("pingall")
    def pingall(self) -> Result:
        """Ping from each host to each other.

        Show for each host those that answer, and - for those that do not. Numbers: pairs, lost.
        """
        names = list(self.topology.hosts)
        received: dict[tuple[str, str], bool] = {}
        for distance in range(1, len(names)):
            pairs = [(name, names[(i + distance) % len(names)]) for i, name in enumerate(names)]
            found = self.hosts.ping(pairs, 1)
            received |= {pair: each.received > 0 for pair, each in zip(pairs, found, strict=True)}
        lost = sum(not each for each in received.values())
        width = max(map(len, names), default=0)
        lines = [
            f"{a:<{width}}  " + " ".join(b if received[a, b] else "-" * len(b) for b in names if b != a) for a in names
        ]
        if len(names) > 40:
            lines = [f"{a} does not reach {b}" for (a, b), there in received.items() if not there][:40]
        total = f"{len(received)} pairs, {lost} without an answer"
        return Result("\n".join([*lines, total]), lost == 0, {"pairs": len(received), "lost": lost})

    @verb("iperf source:HOST destination:HOST [udp rate_bps:RATE] [time_s:TIME]")
    def iperf(self, source: str, destination: str, rate_bps: int | None = None, time_s: float = 2.0) -> Result:
        """Measure TCP, or UDP at a rate.

        Send for TIME (2s), and show what arrives. Numbers: goodput, retransmitted; of UDP goodput, sent, lost, jitter.
        """
        if source == destination:
            raise ConsoleError(f"{source} sends nothing to itself over the network")
        if rate_bps is None:
            found = self.hosts.tcp(source, destination, time_s)
            more = "" if found.retransmitted is None else f", {found.retransmitted} segments sent again"
            text = f"{source} -> {destination}: TCP {_rate(found.bps)}{more}"
            return Result(text, values={"goodput": found.bps, "retransmitted": found.retransmitted or 0})
        found = self.hosts.udp(source, destination, rate_bps, time_s)
        assert found.sent is not None and found.lost is not None
        share = found.lost / max(1, found.sent)
        jitter = "" if found.jitter_ms is None else f", jitter {found.jitter_ms:.3f} ms"
        text = f"{source} -> {destination}: UDP {_rate(found.bps)}, {found.lost} of {found.sent} packets lost ({share:.2%}){jitter}"
        values = {"goodput": found.bps, "sent": found.sent, "lost": found.lost, "jitter": found.jitter_ms or 0.0}
        return Result(text, found.lost == 0, values)

    @verb("iperf source:HOST destination:HOST [udp rate_bps:RATE] [time_s:TIME] &")
    def iperf_on(
        self, source: str, destination: str, rate_bps: int | None = None, time_s: float | None = None
    ) -> Result:
        """Send beside other verbs.

        By TCP, or by UDP at a rate, for TIME, or until flow FLOW stop; a simulated TCP connection for a minute. Number: flow.
        """
        return self._begun(Asked("tcp" if rate_bps is None else "udp", source, destination, rate_bps, time_s))

    def _begun(self, asked: Asked) -> Result:
        if asked.source == asked.destination:
            raise ConsoleError(f"{asked.source} sends nothing to itself over the network")
        flow = self.flows.start(asked)
        return Result(f"flow {flow.number}: {asked}", values={"flow": flow.number})

    @verb("flows")
    def list_flows(self) -> Result:
        """List flows beside other verbs.

        Those that were started with &, with what was sent and arrived so far; of pings, answers arrive. Numbers: flows, running.
        """
        found = self.flows.all()
        with self.clock.held():
            lines = [_flow_text(flow) for flow in found]
        running = sum(flow.end_s is None for flow in found)
        return Result(
            "\n".join(lines) or "no flows; iperf h1 h2 & starts one", values={"flows": len(found), "running": running}
        )

    @verb("flow number:FLOW stop")
    def stop_flow(self, number: int) -> Result:
        """End a flow that runs beside other verbs."""
        self.flows.get(number).stop()
        return Result(f"flow {number} ends")

    # ---- The verbs: links ----

    @verb("nodes")
    def nodes(self) -> Result:
        """List hosts and switches.

        Hosts have their addresses, and live their namespaces; switches their programs and device ids.
        """
        topology = self.topology
        width = max(map(len, [*topology.hosts, *topology.switches]), default=0)
        lines = []
        for name, host in topology.hosts.items():
            where = f", {_live(self.network).hosts[name].name}" if isinstance(self.network, LiveNetwork) else ""
            lines.append(f"{name:<{width}}  {host.address}  {host.mac.hex(':')}{where}")
        for name in topology.switches:
            device = self.network.devices[name]
            lines.append(f"{name:<{width}}  {self.network.programs[name].name}, device {device.device_id}")
        return Result("\n".join(lines), values={"hosts": len(topology.hosts), "switches": len(topology.switches)})

    @verb("links")
    def links(self) -> Result:
        """List links and what went over them.

        -> and <- are packets in both directions; lost are those of full queues, lossy and failed links, and the MTU.
        """
        return switches.links(self)

    @verb("link link:LINK up")
    def link_up(self, link: str) -> Result:
        """Repair a link.

        It ends a cut and a silent loss; a loss of a share stays.
        """
        with self.clock.held():
            self.network.set_link(link, up=True)
            self.network.set_silent_loss(link, silent=False)
        return Result(f"{link} is up")

    @verb("link link:LINK down")
    def link_down(self, link: str) -> Result:
        """Cut a link.

        The switches at its ends notice it after the detection delay.
        """
        with self.clock.held():
            self.network.set_link(link, up=False)
        return Result(f"{link} is down")

    @verb("link link:LINK silent")
    def link_silent(self, link: str) -> Result:
        """Lose everything on a link, silently.

        No switch has a sign of it; link LINK up ends it.
        """
        with self.clock.held():
            self.network.set_silent_loss(link)
        return Result(f"{link} loses everything, silently")

    @verb("link link:LINK loss share:SHARE")
    def link_loss(self, link: str, share: float) -> Result:
        """Lose a share of the packets on a link.

        In both directions, at random.
        """
        return self._change(link, f"loses {100 * share:.4g} % of its packets", loss=share)

    @verb("link link:LINK delay delay_ms:DELAY")
    def link_delay(self, link: str, delay_ms: float) -> Result:
        """Change a link's delay.

        In both directions.
        """
        return self._change(link, f"has a delay of {delay_ms:g} ms", delay_ms=delay_ms)

    @verb("link link:LINK rate rate_bps:RATE")
    def link_rate(self, link: str, rate_bps: int) -> Result:
        """Change a link's rate.

        In both directions.
        """
        return self._change(link, f"has a rate of {_rate(rate_bps)}", rate_bps=rate_bps)

    def _change(self, link: str, what: str, **change: Any) -> Result:
        with self.clock.held():
            self.network.change_link(link, **change)
        return Result(f"{link} {what}")

    @verb("capture link:LINK file:FILE")
    def capture(self, link: str, file: Path) -> Result:
        """Write what crosses a link into a file.

        It is a pcap file, complete at the end of the session.
        """
        if not file.absolute().parent.is_dir():
            raise ConsoleError(f"there is no directory for {str(file)!r}")
        found = self.topology.links[self.topology.find_link(link)]
        with self.clock.held():
            self.network.capture(found.a, found.a_port, file)
        return Result(f"what crosses {link} goes to {file}")

    # ---- The verbs: switches ----

    @verb("switch switch:SWITCH tables [table:TABLE]")
    def tables(self, switch: str, table: str | None = None) -> Result:
        """Show a switch's tables.

        Entries have their counters, if the program has direct ones. Number: entries.
        """
        return switches.tables(self, switch, table)

    @verb("switch switch:SWITCH counters [counter:COUNTER]")
    def counters(self, switch: str, counter: str | None = None) -> Result:
        """Show a switch's counters.

        Those cells of one counter, or of all, that are not zero, in packets and bytes. Direct counters are beside their table
        entries. Number: packets.
        """
        return switches.counters(self, switch, counter)

    @verb("switch switch:SWITCH drops")
    def drops(self, switch: str) -> Result:
        """Show what a switch has dropped, and why.

        With what was lost on the links that leave it. Number: drops.
        """
        return switches.drops(self, switch)

    @verb("switch switch:SWITCH ports")
    def ports(self, switch: str) -> Result:
        """Show a switch's ports.

        State, neighbour, and packets in and out.
        """
        return switches.ports(self, switch)

    @verb("switch switch:SWITCH cli command:TEXT...")
    def cli(self, switch: str, command: str) -> Result:
        """Carry out a command of simple_switch_CLI.

        As in switch s1 cli register_read seen 5, or table_add, meter_get_rates, mc_dump; switch s1 cli help lists them.
        """
        return self._commands.obey(self, switch, command)

    @verb("switch switch:SWITCH trace next [time_s:TIME]")
    def trace_next(self, switch: str, time_s: float = 10.0) -> Result:
        """Show the path of the next packet.

        Wait for a packet that arrives at the switch, TIME (10s) at most, and show its way through the program.
        """
        return self._traced(switch, lambda came: self.clock.wait(time_s, came))

    @verb("switch switch:SWITCH trace line:LINE...")
    def trace(self, switch: str, line: str) -> Result:
        """Show the path of a verb's packet.

        Obey a verb, as in switch s1 trace h1 ping h2, and show the way of the first packet that arrives at the switch.
        """
        self.grammar.parse(line)

        def act(came: Callable[[], bool]) -> None:
            self.do(line)
            # A verb that only sends does not wait for the packet to arrive.
            self.clock.wait(TRACED_S, came)

        return self._traced(switch, act)

    def _traced(self, switch: str, act: Callable[[Callable[[], bool]], object]) -> Result:
        """Trace the first packet that comes to a switch while ``act`` runs, which is given a function that says whether it came."""
        network, found = self.network, list[str]()

        def came() -> bool:
            if (text := network.take_trace(switch)) is not None:
                found.append(text)
            return bool(found)

        with self.clock.held():
            network.trace_next(switch)
        try:
            act(came)
        finally:
            with self.clock.held():
                if (text := network.take_trace(switch, give_up=True)) is not None:
                    found.append(text)
        return Result("".join(found).rstrip("\n") if found else "no packet came", bool(found), {"packets": len(found)})

    @verb("reload program:PROGRAM [switch:SWITCH]")
    def reload(self, program: Path, switch: str | None = None) -> Result:
        """Put a program into switches.

        Into all, or one. What they hold stays where it fits, and what is lost is said. Numbers: kept, lost.
        """
        bridges = self.topology.bridges
        if switch in bridges:
            raise ConsoleError(f"{switch} is a bridge, which has a program of its own")
        switches = [switch] if switch else [name for name in self.topology.switches if name not in bridges]
        return programs.reload(self, program, switches)

    @verb("mechanism mechanism:MECHANISM")
    def mechanism(self, mechanism: str) -> Result:
        """Change to a mechanism of compare.

        Programs and controllers are replaced by those of holdfast compare, while traffic runs. Number: unprotected.
        """
        return programs.mechanism(self, mechanism)

    # ---- The verbs: the session ----

    @verb("wait time_s:TIME")
    def wait(self, time_s: float) -> Result:
        """Let time pass."""
        self.clock.wait(time_s)
        return Result(values={"time": self.network.now_ps / PS_PER_S})

    @verb("source file:FILE")
    def source(self, file: Path) -> Result:
        """Obey the lines of a file.

        It ends at the first verb that is refused, or command that fails.
        """
        from holdfast.console.script import run

        if len(self._sources) >= _DEEPEST:
            raise ConsoleError(f"{file}: files within files, more than {_DEEPEST} deep")
        self._sources.append(file)
        try:
            run(self, file)
        finally:
            self._sources.pop()
        return self.last

    @verb("expect check:CHECK...")
    def expect(self, check: str) -> Result:
        """End a script if something is not so.

        expect VERB... ok; expect VERB... fails; expect lost 0; expect goodput > 5Mbps; expect text WORD, of the last verb's text.
        """
        words = split(check)
        if len(words) > 1 and words[-1].text in _OUTCOMES:
            return self._expect_outcome(check[: words[-1].begin].strip(), wanted=_OUTCOMES[words[-1].text])
        if words and words[0].text == "text" and len(words) == 2:
            if words[1].text not in self.last.text:
                raise ConsoleError(f"expected the text {words[1].text!r}, and there is {_excerpt(self.last.text)}")
            return Result()
        return self._expect_value(check)

    def _expect_outcome(self, line: str, *, wanted: bool) -> Result:
        try:
            result = self.do(line)
        except HoldfastError as error:
            if wanted or (isinstance(error, ConsoleError) and not _refers_to_a_verb(self, line)):
                raise
            return Result(str(error), ok=True)
        if result.ok != wanted:
            outcome = "went well" if result.ok else "failed"
            raise ConsoleError(
                f"expected {line!r} {'to go well' if wanted else 'to fail'}, and it {outcome}: {_excerpt(result.text)}"
            )
        return Result(result.text, values=result.values, shown=result.shown)

    def _expect_value(self, check: str) -> Result:
        found = re.fullmatch(r"(?P<name>[a-z_]+)\s*(?P<how><=|>=|==|<|>|\s)\s*(?P<value>\S+)", check)
        if found is None:
            raise ConsoleError(
                "write 'expect VERB... ok', 'expect VERB... fails', 'expect text WORD', or a number of the last verb, as in"
                " 'expect lost 0' and 'expect goodput > 5Mbps'"
            )
        name = found["name"]
        if name not in self.last.values:
            others = suggestions.alternatives(name, self.last.values) if self.last.values else ", and no other"
            raise ConsoleError(f"the last verb has no number {name!r}{others}")
        value, wanted = self.last.values[name], _number(found["value"])
        if not _COMPARISONS[found["how"].strip() or "=="](value, wanted):
            raise ConsoleError(f"expected {check}, and {name} is {value:g}")
        return Result()

    @verb("help [verb:VERB]")
    def help(self, verb: str | None = None) -> Result:
        """List the verbs, or explain one."""
        forms = [form for form in self.grammar.forms if verb in (None, form.verb)]
        return Result("\n".join(_help(forms, explained=verb is not None)))

    @verb("quit")
    def quit(self) -> Result:
        """End the network."""
        self.ended = True
        return Result()


@contextmanager
def _ctrl_c_is_theirs() -> Iterator[None]:
    """Leave Ctrl-C to a command that has the terminal. A handler instead of none, which the command would inherit."""
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _help(forms: Sequence[Form], *, explained: bool) -> Iterator[str]:
    for form in forms:
        first, *more = form.text.split("\n")
        if explained:
            yield str(form)
            yield from (
                textwrap.fill(each, 78, initial_indent="    ", subsequent_indent="    ") for each in (first, *more)
            )
        else:
            yield f"{form!s:<36}  {first}"


def _refers_to_a_verb(session: Session, line: str) -> bool:
    try:
        session.grammar.parse(line)
    except HoldfastError:
        return False
    return True


def _number(text: str) -> float:
    """Return a number, which may have a unit: rates in bit/s, times in milliseconds, shares of one."""
    if units.is_plain(text):
        return float(text)
    for read in (units.rate_bps, units.time_ms, units.share):
        with suppress(HoldfastError):
            return float(read(text))
    raise ConsoleError(f"{text!r} is no number, as 0, 5Mbps, 10ms and 1% are")


def _rate(bps: float) -> str:
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        # With three digits, what is a little less is one of this unit too.
        if bps >= 0.9995 * size:
            return f"{bps / size:.3g} {unit}"
    return f"{bps:.3g} bit/s"


def _flow_text(flow: Flow) -> str:
    found = flow.progress()
    words = [f"flow {flow.number}: {flow.asked}", "running" if flow.end_s is None else "ended"]
    if found.sent is not None:
        words.append(f"{found.sent} sent")
    if found.arrived is not None:
        words.append(f"{found.arrived} arrived")
    if found.payload_bits:
        words.append(f"{found.payload_bits / 8e6:.4g} MB")
    if found.failure is not None:
        words.append(found.failure)
    return ", ".join(words)


def _excerpt(text: str) -> str:
    line = " / ".join(text.strip().splitlines()[:3])
    return repr(line[:120]) if line else "nothing"


def _live(network: Network) -> LiveNetwork:
    assert isinstance(network, LiveNetwork)
    return network


def _simulated(network: Network) -> SimulatedNetwork:
    assert isinstance(network, SimulatedNetwork)
    return network


__all__ = ["Result", "Session"]
