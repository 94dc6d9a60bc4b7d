"""A running network: a topology, a program in every switch, controllers, traffic and failures, on one of two clocks.

Under the virtual clock (:class:`SimulatedNetwork`) everything happens in this thread, controllers talk to the switches in
process, and the result is a function of topology, traffic, failures and seed. Under the wall clock (:class:`LiveNetwork`) the
same nodes and links run in real time in a native thread, hosts are Linux network namespaces, and controllers use gRPC.
"""

from __future__ import annotations

import hashlib
import operator
import secrets
import threading
import time
import warnings
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, TypeVar

from holdfast import _core, bridges
from holdfast.controller import Controller
from holdfast.errors import NetworkError, TopologyWarning
from holdfast.host import card_name
from holdfast.link import Direction, Jitter, Loss, RateBps, SequenceHeader, Traces, description, parameters
from holdfast.measurements import (
    BfdStatistics,
    DirectionCounters,
    Drops,
    FlowStatistics,
    GeneratorCounters,
    GoodputLog,
    GroupStatistics,
    LinkCounters,
    NodeCounters,
    OrderingCounters,
    QueueStatistics,
    RandomFailure,
    ReceivedLog,
    RecirculationStatistics,
    SentLog,
    TcpStatistics,
    WallStatistics,
    WindowLog,
)
from holdfast.p4runtime.client import Client, GrpcClient, LocalClient
from holdfast.p4runtime.device import Device
from holdfast.p4runtime.server import Server
from holdfast.parameters import PS_PER_MS, PS_PER_S, ps_of_ms, ps_of_s
from holdfast.scheduler import Scheduler
from holdfast.topology import NOT_IN_DESCRIPTION, Link, PacketGenerator, Topology
from holdfast.traffic import MembershipVersion, Ping, TcpTransfer, Traffic, UdpStream

if TYPE_CHECKING:
    from holdfast.live.hosts import LiveHost

_Result = TypeVar("_Result")

_POLL_PS = 50 * PS_PER_MS
"""The longest time in ps for which the controllers' thread waits for messages on the switches' streams."""


class NetworkOptions(TypedDict, total=False):
    """What a network on either clock takes beside topology, programs and controllers; the constructors have the defaults.

    ``detection_delay_ms``: see :class:`Network`; ``gives_way``: see :class:`SimulatedNetwork`.
    """

    seed: int
    detection_delay_ms: float
    executor: Literal["jit", "interpreter"]
    gives_way: bool


class Network(ABC):
    """The common part of both clocks: builds the native network, and runs controllers' handlers at their times."""

    def __init__(
        self,
        topology: Topology,
        programs: _core.Program | Mapping[str, _core.Program],
        controllers: Sequence[Controller] = (),
        *,
        seed: int = 1,
        detection_delay_ms: float = 0.0,
        executor: Literal["jit", "interpreter"] = "jit",
    ) -> None:
        """Build the native network. ``programs``: one program for all switches, or a program by switch name.

        ``detection_delay_ms``: the time from a port's change of state until the switch notices. Raises :class:`NetworkError` for an
        invalid seed, a switch without a program, or a program for an unknown switch.
        """
        try:
            number = operator.index(seed)
        except TypeError:
            number = -1
        if not 0 <= number < 1 << 64:
            raise NetworkError(f"seed is {seed!r}; it must be a whole number from 0 to 2^64 - 1")
        self.topology = topology
        self.controllers = list(controllers)
        self._core = _core.Network(seed=number, detection_delay_ps=ps_of_ms("detection_delay_ms", detection_delay_ms))
        self.programs: dict[str, _core.Program] = {}
        self.devices: dict[str, Device] = {}
        self._scheduler = Scheduler()
        self._failing: dict[str, str] = {}
        self._frame_listeners: dict[str, list[Callable[[int, bytes], None]]] = {}
        bridges.check(topology)
        if isinstance(programs, Mapping) and (unknown := programs.keys() - topology.switches.keys()):
            raise NetworkError(f"there is a program for {min(unknown)!r}, which is not a switch of the topology")
        for name, switch in topology.switches.items():
            program = programs if isinstance(programs, _core.Program) else programs.get(name)
            if switch.kind == "bridge":
                program = bridges.program()
            if program is None:
                raise NetworkError(f"there is no program for switch {name!r}")
            self.programs[name] = program
            described = switch.model_dump(exclude=NOT_IN_DESCRIPTION)
            core = self._core.add_switch(name, program, executor=executor, cpu_port=switch.cpu_port, **described)
            self.devices[name] = Device(switch.device_id, core, executor=executor)
        self._add_hosts()
        self._sequence_headers: list[SequenceHeader] = []
        for controller in self.controllers:
            self._sequence_headers += [it for it in controller.sequence_headers if it not in self._sequence_headers]
        self._traces = Traces()
        headers = self._sequence_headers
        self.link_ids = [
            self._core.add_link(**self._placed(description(link, self._traces, headers))) for link in topology.links
        ]
        self.generator_ids = [self.add_packet_generator(generator) for generator in topology.packet_generators]
        self._clients: Mapping[str, Client] = {}
        self._bridges = topology.bridges

    @abstractmethod
    def _add_hosts(self) -> None:
        """Add the nodes at the edge of the network to the native core: modelled hosts, or Linux interfaces."""

    def _place(self, node: str, port: int) -> tuple[str, int]:
        """Return the native core's name for a node, and its number for one of the node's ports."""
        return node, port

    def _placed(self, link: dict[str, Any]) -> dict[str, Any]:
        """Return a described link with the native core's names and ports of its ends."""
        (a, a_port), (b, b_port) = (self._place(link[end], link[f"{end}_port"]) for end in ("a", "b"))
        return {**link, "a": a, "a_port": a_port, "b": b, "b_port": b_port}

    def add_packet_generator(self, generator: PacketGenerator) -> int:
        """Add a packet generator to a switch while the network runs, and return its number, for :meth:`packets_generated`.

        The topology's own generators are there from the start, with the numbers in :attr:`generator_ids`.
        """
        return self._core.add_packet_generator(**generator.model_dump())

    @property
    def clients(self) -> Mapping[str, Client]:
        """A P4Runtime client for each switch but bridges, by the switch's name."""
        if not self._bridges:
            return self._clients
        return {name: client for name, client in self._clients.items() if name not in self._bridges}

    def client(self, switch: str) -> Client:
        """Return the P4Runtime client of a switch, which may be a bridge."""
        return self._clients[switch]

    @property
    def now_ps(self) -> int:
        """The time on the network's clock, in picoseconds."""
        return self._core.now_ps

    def port_is_up(self, switch: str, port: int) -> bool:
        """Return True if a switch's port has a signal now."""
        return self._core.port_is_up(switch, port)

    @abstractmethod
    def secret(self) -> bytes:
        """Return 32 bytes that nobody else can know, different at each call."""

    def call_later(self, delay_ms: float, handler: Callable[[], None]) -> None:
        """Call ``handler`` once, ``delay_ms`` milliseconds from now on the network's clock."""
        self._scheduler.add(self._core.now_ps + ps_of_ms("delay_ms", delay_ms), handler)

    def replace_control(
        self, programs: _core.Program | Mapping[str, _core.Program], controllers: Sequence[Controller]
    ) -> None:
        """Put other programs into the switches and start other controllers; traffic, links and their queues go on.

        The switches' state is lost, and nothing that the former controllers have scheduled happens. Raises :class:`NetworkError`,
        with nothing changed, if a program has sequence numbers for ordering functions that the links were not built with. The new
        controllers are told of the ports that are down, as of any that goes down, after their reaction delays.
        """
        switches = [name for name in self.devices if name not in self._bridges]
        new = {name: programs if isinstance(programs, _core.Program) else programs[name] for name in switches}
        for controller in controllers:
            if unknown := [each for each in controller.sequence_headers if each not in self._sequence_headers]:
                ordered = any(link.ordering or (link.reverse and link.reverse.ordering) for link in self.topology.links)
                if ordered:
                    raise NetworkError(f"the links' ordering functions do not know the header of {unknown[0]}")
        self._scheduler = Scheduler()
        for name, client in self.clients.items():
            client.set_pipeline(new[name])
        self.programs.update(new)
        self.controllers[:] = controllers
        self._start_controllers()
        for name in switches:
            for port in self.topology.ports(name):
                if not self._core.port_is_up(name, port):
                    self._scheduler.add_port_change(self.controllers, self._core.now_ps, name, port, up=False)

    def _start_bridges(self) -> None:
        bridges.start(self.topology, {name: self._clients[name] for name in self._bridges})

    def _start_controllers(self) -> None:
        for controller in self.controllers:
            controller.attach(self)
        for controller in self.controllers:
            controller.on_start()

    def _notify(self, notification: _core.Notification) -> None:
        """Pass one notification of the native core to controllers (after their reaction delays), devices or listeners."""
        if notification.kind == "port_change":
            if notification.node in self._bridges:
                return
            self._scheduler.add_port_change(
                self.controllers, notification.time_ps, notification.node, notification.port, notification.up
            )
        elif notification.kind == "packet_in":
            self.devices[notification.node].packet_in(notification.data)
        elif notification.kind == "digest":
            self.devices[notification.node].collect_digests(self._now_ns())
        elif notification.kind == "idle_timeout":
            self.devices[notification.node].collect_idle(self._now_ns())
        elif notification.kind == "host_frame":
            for take in self._frame_listeners.get(notification.node, ()):
                take(notification.time_ps, notification.data)

    def _serve(self, servers: dict[str | None, Server], address: str) -> None:
        """Start the P4Runtime servers of the switches: for each address in the topology, and at ``address`` for the others.

        ``servers`` gets them, by the topology's address. That of ``address`` is there even if it serves no switch.
        """
        switches = self.topology.switches
        for own in dict.fromkeys((None, *(switch.grpc for switch in switches.values()))):
            served = [self.devices[name] for name, switch in switches.items() if switch.grpc == own]
            server = Server(served, own or address)
            server.start()
            servers[own] = server

    @abstractmethod
    def _now_ns(self) -> int:
        """Return the time for the timestamps of digests and idle notifications, in nanoseconds."""

    def _deliver_streams(self) -> None:
        """Schedule the controllers' reactions to all events that have come in on the clients' P4Runtime streams."""
        for name, client in self._clients.items():
            while (event := client.poll()) is not None:
                self._scheduler.add_event(self.controllers, self._core.now_ps, name, event)

    def add_frame_listener(self, host: str, take: Callable[[int, bytes], None]) -> None:
        """Call ``take(time in picoseconds, frame)`` for each frame that reaches ``host`` and belongs to none of its flows.

        Raises :class:`NetworkError` if the topology has no such host.
        """
        if host not in self.topology.hosts:
            raise NetworkError(f"there is no host {host!r}")
        self._frame_listeners.setdefault(host, []).append(take)

    def set_link(self, name: str, *, up: bool, at_s: float | None = None, one_way: bool = False) -> None:
        """Fail or repair the link ``a-b``, now or at ``at_s`` seconds.

        With ``one_way``, only the direction from ``a`` to ``b`` changes.
        """
        self._core.apply(target=self._link(name, one_way=one_way), up=up, at_ps=self._time_ps("at_s", at_s))

    def set_silent_loss(
        self, name: str, *, silent: bool = True, at_s: float | None = None, one_way: bool = False
    ) -> None:
        """Make the link ``a-b`` lose all packets without a change of its signal, or with ``silent`` False end the loss.

        The change comes now, or at ``at_s`` seconds. With ``one_way``, only packets from ``a`` to ``b`` are lost. Only hellos
        (``bfd`` of a link) and controllers find such a failure.
        """
        self._core.apply(target=self._link(name, one_way=one_way), silent=silent, at_ps=self._time_ps("at_s", at_s))

    def change_link(
        self,
        name: str,
        *,
        rate_bps: RateBps | float | str | None = None,
        delay_ms: float | None = None,
        loss: Loss | Mapping[str, object] | None = None,
        jitter: Jitter | Mapping[str, object] | None = None,
        one_way: bool = False,
        at_s: float | None = None,
    ) -> None:
        """Change parameters of the link ``a-b``, now or at ``at_s`` seconds; those that are not given stay as they are.

        Packets that wait are sent at the new rate, none is dropped, and what is being sent goes on as before. Packets under way
        keep their delay; without jitter none overtakes another, so packets with a shorter delay may arrive right with the last of
        them. ``loss=0`` and ``jitter=Jitter(distribution="none")`` end what was there. With ``one_way``, only the direction from
        ``a`` to ``b`` changes. Raises :class:`HoldfastError` for a value that a link cannot have, and if no
        parameter is given.
        """
        values = {"rate_bps": rate_bps, "delay_ms": delay_ms, "loss": loss, "jitter": jitter}
        changed = Direction(**{parameter: value for parameter, value in values.items() if value is not None})  # type: ignore[arg-type]
        if not changed.model_fields_set:
            raise NetworkError(f"link {name}: give one of {', '.join(values)}")
        target, at_ps = self._link(name, one_way=one_way), self._time_ps("at_s", at_s)
        self._core.apply(target=target, at_ps=at_ps, **parameters(changed, changed.model_fields_set, self._traces))

    def link_parameters(self, name: str) -> tuple[Direction, Direction]:
        """Return what the link ``a-b`` is now, with all changes.

        The direction from the end that the topology names first comes first.
        """
        there, back = self._core.snapshot(Direction, link=self._link_id(name))
        return there, back

    def declare_port(self, switch: str, port: int, *, down: bool = True) -> None:
        """Declare that a switch's port with a link is down, whatever its signal says, or with ``down`` False withdraw this.

        Controllers use this if they know the state of the port from elsewhere, such as their programs' digests.
        """
        self._core.declare_port(switch, port, down)

    def set_node(self, name: str, *, up: bool, at_s: float | None = None) -> None:
        """Fail or repair a switch, now or at ``at_s`` seconds. Raises :class:`NetworkError` if there is no such switch."""
        if name not in self.topology.switches:
            raise NetworkError(f"there is no switch {name!r} (known: {', '.join(self.topology.switches)})")
        self._core.apply(target={"node": name}, up=up, at_ps=self._time_ps("at_s", at_s))

    def _time_ps(self, parameter: str, time_s: float | None) -> int | None:
        """Convert a time in seconds to picoseconds, or return None for None.

        Raises :class:`NetworkError` if the time is in the past.
        """
        if time_s is None:
            return None
        time_ps = ps_of_s(parameter, time_s)
        if time_ps < (now_ps := self._core.now_ps):
            raise NetworkError(f"{parameter} is {time_s:g} s, which has passed: it is {now_ps / PS_PER_S:g} s")
        return time_ps

    def fail_randomly(
        self,
        name: str,
        *,
        mtbf_s: float,
        mttr_s: float,
        start_s: float | None = None,
        end_s: float | None = None,
        time_to_failure: Literal["exponential", "fixed"] = "exponential",
        time_to_repair: Literal["exponential", "fixed"] = "exponential",
        one_way: bool = False,
    ) -> None:
        """Make the link ``a-b`` or the switch ``name`` fail and be repaired at random times.

        With ``one_way``, only the direction from ``a`` to ``b`` fails. ``mtbf_s`` is the mean time from the start, or a repair, to
        the next failure, ``mttr_s`` that from a failure to its repair. No failure begins before ``start_s`` (now), none at
        ``end_s`` or later. The failures and their times depend on the network's seed and on the name alone, not on other failures.
        Raises :class:`NetworkError` if a time is in the past, ``end_s`` is before ``start_s``, or a mean is zero.
        """
        for parameter, value_s in (("mtbf_s", mtbf_s), ("mttr_s", mttr_s)):
            if ps_of_s(parameter, value_s) == 0:
                raise NetworkError(f"{parameter} is {value_s:g}; it must be above zero")
        start_ps, end_ps = self._time_ps("start_s", start_s), self._time_ps("end_s", end_s)
        start_ps = self._core.now_ps if start_ps is None else start_ps
        if end_ps is not None and end_ps < start_ps:
            raise NetworkError(f"end_s ({end_s:g}) is before start_s ({start_ps / PS_PER_S:g})")
        fail = partial(
            self._core.fail_randomly,
            time_to_failure=(time_to_failure, ps_of_s("mtbf_s", mtbf_s)),
            time_to_repair=(time_to_repair, ps_of_s("mttr_s", mttr_s)),
            start_ps=start_ps,
            end_ps=end_ps,
        )
        if name in self.topology.switches:
            if one_way:
                raise NetworkError(f"{name!r} is a switch; only a link fails one way")
            fail(target={"node": name})
            return
        index = self.topology.find_link(name)
        link = self.topology.links[index]
        (a, a_port), (b, b_port) = (link.a, link.a_port), (link.b, link.b_port)
        fail(target=self._link(name, one_way=one_way))
        if not one_way:
            self._failing[link.ends] = name
        elif self._direction(name) == "a_to_b":
            self._failing[f"{a}:{a_port}>{b}:{b_port}"] = name
        else:
            self._failing[f"{b}:{b_port}>{a}:{a_port}"] = name

    def random_failures(self) -> list[tuple[float, str, bool]]:
        """Return the random failures and repairs so far, each as (time in seconds, link or switch, True for a repair)."""
        drawn = self._core.snapshot(RandomFailure)
        return [(each.time_ps / PS_PER_S, self._failing.get(each.what, each.what), each.up) for each in drawn]

    def capture(self, node: str, port: int, path: str | Path) -> None:
        """Write packets that cross a port from now on, in both directions, into a pcap file; replace the file if it exists.

        A host's port is 0; a switch's ports are those of its links and packet generators, and the controller's. The file is
        complete when :meth:`SimulatedNetwork.run` returns, or the wall clock has stopped. Raises :class:`NetworkError` if there is
        no such node or port.
        """
        links, generators = self.topology.links, self.topology.packet_generators
        ports = {
            port for link in links for name, port in ((link.a, link.a_port), (link.b, link.b_port)) if name == node
        }
        ports |= {generator.port for generator in generators if generator.switch == node}
        if node in self.topology.switches:
            ports.add(self.devices[node].switch.cpu_port)
        elif node not in self.topology.hosts:
            raise NetworkError(f"there is no host or switch {node!r}")
        if port not in ports:
            raise NetworkError(f"{node!r} has no port {port!r} (known: {', '.join(map(str, sorted(ports)))})")
        self._core.capture(*self._place(node, port), path)

    def trace_next(self, switch: str, port: int | None = None) -> None:
        """Trace the next packet that arrives at a switch, at ``port`` if one is given, for :meth:`take_trace`.

        Raises :class:`HoldfastError` if the switch's packets wait in a traffic manager.
        """
        self._core.trace_next(switch, port)

    def take_trace(self, switch: str, *, give_up: bool = False) -> str | None:
        """Return the trace that :meth:`trace_next` asked for as text, or None if no packet has come yet.

        With ``give_up``, no packet is traced any more.
        """
        return self._core.take_trace(switch, give_up=give_up)

    def statistics(self, flow: int, *, host: str | None = None) -> FlowStatistics:
        """Return the statistics of a flow's packets as received at the flow's destination, or at ``host``."""
        return self._result(FlowStatistics, flow=flow, host=host)

    def sent(self, flow: int) -> SentLog:
        """Return the log of the packets that a flow has sent. The flow must have been added with a log."""
        return self._result(SentLog, flow=flow)

    def received(self, flow: int, *, host: str | None = None) -> ReceivedLog:
        """Return the log of a flow's packets that arrived at its destination, or at ``host``.

        The flow must have been added with a log.
        """
        return self._result(ReceivedLog, flow=flow, host=host)

    def tcp_goodput(self, flow: int) -> array[int]:
        """Return the new bytes that the server of TCP connection ``flow`` received in order, one number per bin of time.

        The bins are as wide as the ``goodput_bin_ms`` with which the transfer was added. The first begins at time 0, and the last
        is the one in which bytes arrived last.
        """
        return self._result(GoodputLog, flow=flow).new_bytes

    def tcp_window(self, flow: int) -> WindowLog:
        """Return the congestion window of a TCP connection's client over time.

        The transfer must have been added with ``log_window``.
        """
        return self._result(WindowLog, flow=flow)

    def tcp_statistics(self, flow: int) -> TcpStatistics:
        """Return the statistics of a TCP connection between modelled hosts."""
        return self._result(TcpStatistics, flow=flow)

    def link_counters(self, name: str) -> LinkCounters:
        """Return the counters of the link ``a-b``; ``a_to_b`` is the direction from the end that the topology names first."""
        return LinkCounters(*self._core.snapshot(DirectionCounters, link=self._link_id(name)))

    def all_link_counters(self) -> list[tuple[Link, LinkCounters]]:
        """Return each link of the topology with its counters."""
        return [
            (link, LinkCounters(*self._core.snapshot(DirectionCounters, link=number)))
            for link, number in zip(self.topology.links, self.link_ids, strict=True)
        ]

    def ordering_counters(self, name: str) -> OrderingCounters | None:
        """Return the counters of the ordering function of link ``a-b`` from ``a`` to ``b``, or None if there is none."""
        link, direction = self._link_id(name), self._direction(name)
        return next(iter(self._core.snapshot(OrderingCounters, link=link, direction=direction)), None)

    def bfd_statistics(self, switch: str, port: int) -> BfdStatistics | None:
        """Return the state and counters of the BFD session of a switch's port, or None if the port has none."""
        return next(iter(self._core.snapshot(BfdStatistics, switch=switch, port=port)), None)

    def count_drops(self) -> Callable[[], list[Drops]]:
        """Start to count the packets that are dropped outside programs, and return a function that returns the counts so far.

        Runs are slower while drops are counted.
        """
        observer = self._core.count_drops()
        return lambda: self._core.snapshot(Drops, observer=observer)

    def queue_statistics(self, switch: str) -> list[QueueStatistics]:
        """Return the statistics of each queue of a switch's traffic manager."""
        return self._core.snapshot(QueueStatistics, switch=switch)

    def recirculation_statistics(self, switch: str) -> list[RecirculationStatistics]:
        """Return the statistics of each recirculation port of a switch; the list is empty if its ``queueing`` declares none."""
        return self._core.snapshot(RecirculationStatistics, switch=switch)

    def has_traffic_manager(self, switch: str) -> bool:
        """Return True if a switch's packets wait in a traffic manager, and False if they wait at the links."""
        return self._core.has_traffic_manager(switch)

    def packets_generated(self, generator: int) -> int:
        """Return how many packets a generator has made; ``generator`` is its number in ``generator_ids``."""
        return self._result(GeneratorCounters, generator=generator).packets

    def node_counters(self, node: str) -> NodeCounters:
        """Return the packet counters of a host or switch."""
        return self._result(NodeCounters, node=node)

    def _result(self, kind: type[_Result], **subject: object) -> _Result:
        """Return the only result of class ``kind`` of the object that ``subject`` names, such as ``flow=1``."""
        (found,) = self._core.snapshot(kind, **subject)
        return found

    def _link_id(self, name: str) -> int:
        return self.link_ids[self.topology.find_link(name)]

    def _link(self, name: str, *, one_way: bool) -> dict[str, object]:
        """Return the link ``a-b`` as a target of changes; with ``one_way``, only the direction from ``a`` to ``b``."""
        link = {"link": self._link_id(name)}
        return {**link, "direction": self._direction(name)} if one_way else {**link}

    def _direction(self, name: str) -> Literal["a_to_b", "b_to_a"]:
        """Return the direction from the end named first in ``name``: "b_to_a" if ``name`` is ``b-a`` and the link is ``a-b``."""
        return "a_to_b" if self.topology.is_forward(name) else "b_to_a"

    def end_flow(self, flow: int) -> None:
        """End a stream or a series of pings early: the flow sends no more packets."""
        self._core.end_flow(flow)

    def send_frame(self, node: str, frame: bytes) -> None:
        """Send a frame from a host now, unchanged. Raises :class:`NetworkError` if ``node`` is a switch or unknown."""
        self._core.send_frame(node, frame)

    def bytes_on_wire(self) -> int:
        """Return the bytes sent on all links between switches so far, in both directions, with the physical layer's overhead."""
        switches = self.topology.switches
        return sum(
            counters.a_to_b.bytes + counters.b_to_a.bytes
            for link, counters in self.all_link_counters()
            if link.a in switches and link.b in switches
        )


class SimulatedNetwork(Network):
    """Under the virtual clock. Hosts are modelled; controllers are called in process.

    ``lookahead``: a node handles several packets in a row if nothing else can reach it between them, which is up to three times
    as fast. Without it, packets of one instant are handled in the order in which they were sent, and not in that of links,
    switches and flows. ``gives_way``: the network's own clients leave the switches to any client from outside, whatever its
    election id.
    """

    def __init__(
        self,
        topology: Topology,
        programs: _core.Program | Mapping[str, _core.Program],
        controllers: Sequence[Controller] = (),
        *,
        seed: int = 1,
        detection_delay_ms: float = 0.0,
        executor: Literal["jit", "interpreter"] = "jit",
        lookahead: bool = True,
        gives_way: bool = False,
    ) -> None:
        super().__init__(
            topology, programs, controllers, seed=seed, detection_delay_ms=detection_delay_ms, executor=executor
        )
        self._seed, self._secrets = seed, 0
        election_id = 0 if gives_way else 1
        clients = {name: LocalClient(device, election_id) for name, device in self.devices.items()}
        for name, client in clients.items():
            client.set_pipeline(self.programs[name])
        self._clients = clients
        self._start_bridges()
        self._lookahead = lookahead
        self._set_reaction()
        self._tcp_ports: dict[str, set[int]] = {}
        self._start_controllers()

    def _set_reaction(self) -> None:
        if self._lookahead:
            self._core.set_reaction(min((it.reaction_delay_ps for it in self.controllers), default=None))

    def replace_control(
        self, programs: _core.Program | Mapping[str, _core.Program], controllers: Sequence[Controller]
    ) -> None:
        """Put other programs into the switches and start other controllers, as :meth:`Network.replace_control` says."""
        super().replace_control(programs, controllers)
        self._set_reaction()

    def _add_hosts(self) -> None:
        for name, host in self.topology.hosts.items():
            if host.commands:
                commands = ", ".join(map(repr, host.commands))
                warnings.warn(
                    f"host {name!r} is simulated, and runs no commands: {commands}", TopologyWarning, stacklevel=4
                )
            self._core.add_host(name, **host.description(self.topology.known_neighbours(name)))

    @contextmanager
    def served(self, address: str) -> Iterator[str]:
        """Serve the switches over gRPC within the context, for clients from outside; yield the address that it is.

        Whoever runs the network meanwhile does it in short steps: requests are answered between two of them.
        """
        servers: dict[str | None, Server] = {}
        try:
            self._serve(servers, address)
            yield servers[None].address
        finally:
            for server in servers.values():
                server.stop()

    def _now_ns(self) -> int:
        return self._core.now_ps // 1000

    def secret(self) -> bytes:
        """Return 32 bytes derived from the network's seed and the number of the call, so that a run can be repeated exactly."""
        self._secrets += 1
        return hashlib.sha256(f"{self._seed} {self._secrets}".encode()).digest()

    def add(self, traffic: Traffic) -> int:
        """Add a flow of packets between two hosts; return its id, for :meth:`statistics`, :meth:`sent` and :meth:`received`."""
        self._check_hosts(traffic)
        self._time_ps("start_s", traffic.start_s)
        match traffic:
            case UdpStream():
                return self._core.add_udp_stream(**traffic.model_dump())
            case Ping():
                return self._core.add_ping(**traffic.model_dump())

    def join(
        self,
        host: str,
        group: str,
        *,
        sources: Sequence[str] = (),
        excludes: bool | None = None,
        version: MembershipVersion | None = None,
        at_s: float | None = None,
    ) -> None:
        """Make a host join a multicast group by IGMP or MLD, now or at ``at_s`` seconds.

        A later call replaces what the host wanted. ``sources``: the host wants only these, or with ``excludes`` all but these;
        without any, all sources. ``version``: the latest version of the protocol by default; a host uses one version for all its
        groups. From the first call on, a host receives only the groups that it has joined. Raises :class:`NetworkError` if nothing
        would be wanted: no source, and ``excludes=False``.
        """
        wanted = not sources if excludes is None else excludes
        if not wanted and not sources:
            raise NetworkError("a join without sources excludes none of them; to leave a group, call leave")
        self._want(host, group, sources, excludes=wanted, version=version, at_s=at_s)

    def leave(self, host: str, group: str, *, at_s: float | None = None) -> None:
        """Make a host leave a multicast group, now or at ``at_s`` seconds."""
        self._want(host, group, (), excludes=False, version=None, at_s=at_s)

    def _want(
        self,
        host: str,
        group: str,
        sources: Sequence[str],
        *,
        excludes: bool,
        version: MembershipVersion | None,
        at_s: float | None,
    ) -> None:
        filter = {"excludes": excludes, "sources": list(sources)}
        at_ps = self._time_ps("at_s", at_s)
        self._core.join(host=host, group=group, filter=filter, version=version, at_ps=at_ps)

    def group_statistics(self, host: str, group: str) -> GroupStatistics:
        """Return a host's counts of a multicast group's packets.

        Raises :class:`HoldfastError` if no host of the network has joined any group.
        """
        return self._result(GroupStatistics, host=host, group=group)

    def add_tcp(self, transfer: TcpTransfer) -> int:
        """Add a TCP connection between two hosts; return its id, for the ``tcp_*`` methods.

        Raises :class:`NetworkError` if the source has no free port left.
        """
        self._check_hosts(transfer)
        self._time_ps("start_s", transfer.start_s)
        used = self._tcp_ports.setdefault(transfer.source, set())
        port = transfer.source_port or next((p for p in range(40_000 + len(used), 65_536) if p not in used), None)
        if port is None:
            raise NetworkError(f"host {transfer.source!r} has no port left for another connection; give source_port")
        used.add(port)
        described = transfer.model_dump(exclude={"options"}) | {"source_port": port}
        return self._core.add_tcp(transfer.options.preset, transfer.options.in_core_units(), **described)

    def _check_hosts(self, traffic: Traffic | TcpTransfer) -> None:
        multicast = isinstance(traffic, UdpStream) and traffic.is_multicast
        for name in (traffic.source,) if multicast else (traffic.source, traffic.destination):
            host = self.topology.hosts.get(name)
            if host is None:
                raise NetworkError(f"there is no host {name!r} (known: {', '.join(self.topology.hosts)})")
            if traffic.family == "ipv6" and host.ipv6 is None:
                raise NetworkError(f"host {name!r} has no IPv6 address; give it one in the topology")

    def run(self, until_s: float) -> None:
        """Run the simulation, controllers included, until the clock shows ``until_s`` seconds.

        Afterwards the network can be read and changed, and the simulation can be continued.
        """
        until_ps = self._time_ps("until_s", until_s)
        assert until_ps is not None
        while True:
            target_ps = self._scheduler.next_ps_within(until_ps)
            for notification in self._core.run(max(target_ps, self._core.now_ps)):
                self._notify(notification)
            self._deliver_streams()
            self._scheduler.run_due(self._core.now_ps)
            if self._core.now_ps >= until_ps and not self._scheduler.is_due(until_ps):
                return


class LiveNetwork(Network):
    """Under the wall clock. Hosts are Linux interfaces, one per network card of a host; controllers use gRPC.

    A context manager: entering starts the native thread, a P4Runtime server on loopback and the controllers' thread; leaving
    stops them. ``interfaces`` maps each host to the interface that stands for its side of the link; those of further network cards
    are named by :func:`holdfast.host.card_name`. Switches with ``grpc`` in the topology are served at that address, the others
    at ``p4runtime``. ``hosts``: the namespaces behind the interfaces, for :attr:`hosts` alone. ``gives_way``: the network's own
    clients leave the switches to any client from outside, whatever its election id.
    """

    def __init__(
        self,
        topology: Topology,
        programs: _core.Program | Mapping[str, _core.Program],
        controllers: Sequence[Controller] = (),
        *,
        interfaces: Mapping[str, str],
        seed: int = 1,
        detection_delay_ms: float = 0.0,
        executor: Literal["jit", "interpreter"] = "jit",
        hosts: Mapping[str, LiveHost] | None = None,
        p4runtime: str = "127.0.0.1:0",
        gives_way: bool = False,
    ) -> None:
        linked = {card_name(name, place.card) for name in topology.hosts for place in topology.attachments(name)}
        if missing := linked - interfaces.keys():
            raise NetworkError(f"hosts without an interface: {', '.join(sorted(missing))}")
        self.interfaces = interfaces
        """The network's ends of the hosts' cables, by :func:`holdfast.host.card_name`."""
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._servers: dict[str | None, Server] = {}
        self._p4runtime, self._gives_way = p4runtime, gives_way
        self.hosts: Mapping[str, LiveHost] = hosts or {}
        """The hosts' namespaces by name, for ``network.hosts["h1"].run([...])``, if they were given."""
        self.failure: BaseException | None = None
        super().__init__(
            topology, programs, controllers, seed=seed, detection_delay_ms=detection_delay_ms, executor=executor
        )

    def _add_hosts(self) -> None:
        for name in self.topology.hosts:
            for place in self.topology.attachments(name):
                card = card_name(name, place.card)
                self._core.add_interface(card, self.interfaces[card])

    def _place(self, node: str, port: int) -> tuple[str, int]:
        return (card_name(node, port), 0) if node in self.topology.hosts else (node, port)

    def _now_ns(self) -> int:
        return time.time_ns()

    def secret(self) -> bytes:
        """Return 32 bytes of the machine's random number generator, different at each call."""
        return secrets.token_bytes(32)

    def wall_statistics(self) -> WallStatistics:
        """Return how late the native thread is against the wall clock. The network must be running."""
        return self._core.wall_statistics()

    def __enter__(self) -> Self:
        self._core.start()
        try:
            switches = self.topology.switches
            self._serve(self._servers, self._p4runtime)
            clients: dict[str, Client] = {}
            self._clients = clients
            for name, switch in switches.items():
                if self._gives_way:
                    clients[name] = LocalClient(self.devices[name], election_id=0)
                else:
                    clients[name] = GrpcClient(self._servers[switch.grpc].address, device_id=switch.device_id)
                clients[name].set_pipeline(self.programs[name])
            self._start_bridges()
            self._start_controllers()
        except BaseException:
            self._stop()
            raise
        self._start_thread()
        return self

    def _start_thread(self) -> None:
        self._stopping.clear()
        self._thread = threading.Thread(target=self._control, name="holdfast-control", daemon=True)
        self._thread.start()

    def _stop_thread(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def replace_control(
        self, programs: _core.Program | Mapping[str, _core.Program], controllers: Sequence[Controller]
    ) -> None:
        """Put other programs into the switches and start other controllers, as :meth:`Network.replace_control` says.

        A failure of the former controllers is forgotten.
        """
        self._stop_thread()
        self.failure = None
        try:
            super().replace_control(programs, controllers)
        finally:
            self._start_thread()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop()
        if self.failure is not None and value is None:
            raise self.failure

    def _stop(self) -> None:
        self._stop_thread()
        for client in self._clients.values():
            client.close()
        for server in self._servers.values():
            server.stop()
        self._core.stop()

    def _control(self) -> None:
        """Run the controllers on their thread until the network stops, with the events of a simulation on the wall clock."""
        try:
            while not self._stopping.is_set():
                now_ps = self._core.now_ps
                next_ps = self._scheduler.next_ps_within(now_ps + _POLL_PS)
                for notification in self._core.poll(max(0, next_ps - now_ps) / PS_PER_S):
                    self._notify(notification)
                self._deliver_streams()
                self._scheduler.run_due(self._core.now_ps)
        except BaseException as error:  # noqa: BLE001 - handed to the thread that leaves the context
            self.failure = error

    @property
    def p4runtime_address(self) -> str:
        """The address at which the P4Runtime server of switches without ``grpc`` listens, for controllers in other processes.

        Raises :class:`NetworkError` unless the network is running.
        """
        if None not in self._servers:
            raise NetworkError("the network is not running")
        return self._servers[None].address

    def wait_until(self, at_s: float) -> None:
        """Sleep until the network's clock shows ``at_s`` seconds.

        Raises the exception of a controller that has failed meanwhile.
        """
        while (remaining_s := at_s - self._core.now_ps / PS_PER_S) > 0:
            if self.failure is not None:
                raise self.failure
            time.sleep(min(remaining_s, 0.1))
