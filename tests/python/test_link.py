"""Link parameters in Python and YAML and their effect on packets: queues, losses, delays, and refusals."""

from __future__ import annotations

import copy
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from holdfast import (
    HoldfastError,
    Jitter,
    NetworkError,
    Program,
    SimulatedNetwork,
    Topology,
    TopologyError,
    UdpStream,
    results,
    topologies,
)
from holdfast.apps.router import RouterController, compile_router
from holdfast.errors import ParameterError
from holdfast.host import Card
from holdfast.link import (
    KEEPS,
    LOSES,
    MAX_TRACE_BYTES,
    Bfd,
    Direction,
    GilbertElliott,
    MarkAbove,
    Ordering,
    Processor,
    QueueFields,
    Queueing,
    Recirculation,
    Red,
    SequenceHeader,
    Traces,
    description,
    reversed_link,
)
from holdfast.measurements import DirectionCounters
from holdfast.parameters import PS_PER_MS, PS_PER_S
from holdfast.regular_files import read_regular
from holdfast.topology import NOT_IN_DESCRIPTION, Link, PacketGenerator, SwitchNode

YAML = """
switches: [s1]
hosts: {h1: , h2: }
link_defaults: {rate_bps: 1e8}
links:
  - {a: h1, b: s1, loss: {model: gilbert_elliott, p: 0.1, r: 0.5, loss_bad: 0.9}, detection_delay_ms: 3, detection_up_ms: 7}
  - a: s1
    b: h2
    rate_bps: 1e6
    loss: {model: trace, lost_packets: [0, 2], period_packets: 10}
    jitter: {distribution: trace, delays_ms: [0, 1.5]}
    queue_packets: 50
    red: {min_packets: 5, max_packets: 15, gentle: true, ecn: true}
    mtu_bytes: 1500
    ordering: {max_delay_ms: 5, take_any_ms: 50, buffer_packets: 100}
    reverse: {rate_bps: 2e6, queue_bytes: 9000, mark_above: {bytes: 3000}, loss: 0.25, mtu_bytes: 9000}
"""


def test_links_that_are_alike_and_what_one_has_of_its_own() -> None:
    topology = Topology()
    for name in ("s1", "s2", "s3"):
        topology.add_switch(name)
    slow = Direction(rate_bps=1_000_000, queue_packets=10)
    plain, own = topology.add_link("s1", "s2", slow), topology.add_link("s2", "s3", slow, rate_bps=2_000_000, cost=3)
    assert (plain.rate_bps, plain.queue_packets, plain.delay_ms) == (1_000_000, 10, 0.0)
    assert (own.rate_bps, own.queue_packets, own.cost) == (2_000_000, 10, 3)
    assert "queue_bytes" not in description(plain, Traces())["a_to_b"]


def test_what_the_other_direction_has_counts_even_if_it_is_the_default(tmp_path: Path) -> None:
    topology = Topology()
    topology.add_switch("s1")
    topology.add_switch("s2")
    topology.add_link("s1", "s2", rate_bps=2_000_000_000, loss=0.5, reverse={"rate_bps": 1_000_000_000, "loss": 0})
    path = tmp_path / "reverse.yaml"
    path.write_text(topology.to_yaml())
    (link,) = Topology.from_yaml(path).links
    described = description(link, Traces())
    assert (described["a_to_b"]["rate_bps"], described["a_to_b"]["loss"]) == (2_000_000_000, 0.5)
    assert (described["b_to_a"]["rate_bps"], described["b_to_a"]["loss"]) == (1_000_000_000, 0)


def test_yaml(tmp_path: Path) -> None:
    path = tmp_path / "links.yaml"
    path.write_text(YAML)
    topology = Topology.from_yaml(path)
    assert topology.links[0].loss == GilbertElliott(model="gilbert_elliott", p=0.1, r=0.5, loss_bad=0.9)
    first = description(topology.links[0], Traces())
    assert (first["detection_delay_ms"], first["detection_down_ms"], first["detection_up_ms"]) == (3, None, 7)
    assert first["b_to_a"] is None
    assert first["a_to_b"] == {
        "rate_bps": 100_000_000,
        "delay_ms": 0,
        "loss": {"model": "gilbert_elliott", "p": 0.1, "r": 0.5, "loss_bad": 0.9, "loss_good": 0.0},
        "queue_bytes": 150_000,
    }
    second = description(topology.links[1], Traces())
    there, back = second["a_to_b"], second["b_to_a"]
    assert (there["mtu_bytes"], there["ordering"]["headers"]) == (1500, [])
    assert back == {
        **{name: there[name] for name in ("delay_ms", "jitter", "ordering")},
        "rate_bps": 2_000_000,
        "loss": 0.25,
        "queue_bytes": 9000,
        "mark_above": {"bytes": 3000, "packets": None},
        "mtu_bytes": 9000,
    }
    again = tmp_path / "again.yaml"
    again.write_text(topology.to_yaml())
    assert Topology.from_yaml(again).links == topology.links


def network(queueing: Queueing | None = None, **parameters: Any) -> tuple[SimulatedNetwork, DirectionCounters]:
    """Send 100 packets of 1,000 bytes in 10 ms from h1 to h2 over a link with these parameters.

    Returns the network after the run, and the link's counters.
    """
    topology = Topology("one")
    for host in ("h1", "h2"):
        topology.add_host(host)
    topology.add_switch("s1", queueing=queueing)
    topology.add_link("h1", "s1")
    topology.add_link("s1", "h2", **parameters)
    simulated = SimulatedNetwork(topology, compile_router(), [RouterController(reroute=False, reaction_delay_ms=0)])
    simulated.add(UdpStream(source="h1", destination="h2", packets_per_s=10_000, payload_bytes=958, stop_s=0.01))
    simulated.run(2)
    counters = simulated.link_counters(simulated.topology.link_names()[1])
    return simulated, counters.a_to_b


@pytest.mark.parametrize(
    "queue",
    [{"queue_packets": 200, "red": {"min_packets": 5, "max_packets": 15, "weight": 1.0}}, {"queue_packets": 20}],
)
def test_a_traffic_manager_and_a_link_drop_for_the_same_reasons(queue: dict[str, Any]) -> None:
    """Whether packets wait in the switch or at the link, an observer is told what the queue has counted."""
    found = []
    for managed in (False, True):
        topology = Topology("one")
        for host in ("h1", "h2"):
            topology.add_host(host)
        topology.add_switch("s1", queueing={"queue": queue} if managed else None)
        topology.add_link("h1", "s1")
        topology.add_link("s1", "h2", rate_bps=8e6, **({} if managed else queue))
        simulated = SimulatedNetwork(topology, compile_router(), [RouterController(reroute=False, reaction_delay_ms=0)])
        simulated.add(UdpStream(source="h1", destination="h2", packets_per_s=10_000, payload_bytes=958, stop_s=0.01))
        drops = simulated.count_drops()
        simulated.run(2)
        counted = Counter({each.reason: each.packets for each in drops()})
        if managed:
            (port,) = [each for each in simulated.queue_statistics("s1") if each.offered > 0]
            assert (counted["early"], counted["queue_full"]) == (port.red_drops, port.queue_drops)
        found.append(counted)
    assert found[0] == found[1] and sum(found[0].values()) >= 70


def test_the_models_reach_the_packets(tmp_path: Path) -> None:
    # A packet takes 1.024 ms at 8 Mb/s: while 100 arrive, 9 or 10 leave.
    _, counters = network(rate_bps=8e6, queue_packets=20)
    assert (counters.offered, counters.queue_drops, counters.delivered) == (100, 70, 30)
    _, counters = network(rate_bps=8e6, queue_packets=200, red={"min_packets": 5, "max_packets": 15, "weight": 1.0})
    assert counters.red_drops > 70
    assert counters.queue_drops == 0
    # The streams' packets cannot be marked, so they are dropped.
    _, counters = network(rate_bps=8e6, mark_above={"packets": 9})
    assert (counters.red_drops, counters.marked, counters.delivered) == (80, 0, 20)
    _, counters = network(loss={"model": "trace", "lost_packets": [0, 2], "period_packets": 10})
    assert (counters.loss_drops, counters.delivered) == (20, 80)
    _, counters = network(loss={"model": "gilbert_elliott", "p": 1, "r": 1})
    assert counters.loss_drops == 50
    _, counters = network(loss={"model": "bernoulli", "probability": 1})
    assert counters.loss_drops == 100
    trace = tmp_path / "lost.txt"
    trace.write_text("0 0 1\n0\n")
    for repeat, lost in ((True, 25), (False, 1)):
        _, counters = network(loss={"model": "trace", "file": str(trace), "repeat": repeat})
        assert counters.loss_drops == lost
    trace.write_text("0 2")
    with pytest.raises(NetworkError, match=f"^loss trace {trace}: it must be made of 0 and 1$"):
        network(loss={"model": "trace", "file": str(trace)})
    long, fifo, blank = tmp_path / "long", tmp_path / "fifo", tmp_path / "blank"
    blank.write_text("\n ")
    with long.open("wb") as file:
        file.truncate(MAX_TRACE_BYTES + 1)
    os.mkfifo(fifo)
    trace.write_bytes(b"\xff0")
    for path, message in (
        (tmp_path / "nowhere", "No such file or directory"),
        (long, "longer than 64 MiB"),
        (fifo, "this is not a regular file"),
        (tmp_path, "this is not a regular file"),
        (Path("/dev/zero"), "this is not a regular file"),
        (trace, "it must be made of 0 and 1"),
        (blank, "it must be at least one packet long"),
    ):
        with pytest.raises(NetworkError, match=f"^loss trace {path}: {message}$"):
            network(loss={"model": "trace", "file": str(path)})
    with pytest.raises(NetworkError, match=r"^loss trace '\\x00x': no file has such a name$"):
        network(loss={"model": "trace", "file": "\0x"})


def test_a_loss_trace_is_read_once_for_all_directions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = tmp_path / "lost.txt"
    trace.write_text("01")
    loss = {"model": "trace", "file": str(trace), "repeat": True}
    reads: list[Path] = []

    def counted(path: Path, *others: Any) -> bytes:
        reads.append(path)
        return read_regular(path, *others)

    monkeypatch.setattr("holdfast.link.read_regular", counted)
    _, counters = network(loss=loss, reverse={"loss": {**loss, "repeat": False}})
    assert (counters.loss_drops, counters.delivered) == (50, 50)
    assert reads == [trace]
    monkeypatch.setattr("holdfast.link.MOST_LOST", 1)
    with pytest.raises(NetworkError, match=r"lost.txt: with it more than 1 packets are lost, all links together$"):
        network(loss=loss, reverse={"loss": {**loss, "repeat": False}})
    # Another network finds what is there then.
    trace.write_text("1")
    _, counters = network(loss=loss)
    assert counters.loss_drops == 100


HEADER = {"ethertype": 0x9000, "bytes": 8, "stream": (0, 24), "sequence": (24, 32), "following": (48, 16)}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sequence": (33, 32)}, "ordering.headers.sequence must be within the header's 8 bytes"),
        ({"stream": (64, 8)}, "ordering.headers.stream must be within the header's 8 bytes"),
        ({"sequence": (24, 0)}, "ordering.headers.sequence must be 1 to 64 bits wide"),
        ({"bytes": 16, "stream": (0, 65)}, "ordering.headers.stream must be 1 to 64 bits wide"),
        ({"sequence": (24, 33)}, "ordering.headers.sequence must be 2 to 32 bits wide"),
        ({"following": (56, 8)}, "ordering.headers.following must be 16 bits wide"),
        ({"ethertype": 0x8100}, "ordering.headers.ethertype must be another EtherType than that of a VLAN tag"),
        ({"bytes": 65}, "ordering.headers.0.bytes: Input should be less than or equal to 64"),
        ({"sequence": (-1, 32)}, "ordering.headers.0.sequence.0: Input should be greater than or equal to 0"),
    ],
)
def test_headers_that_cannot_be_are_refused(fields: dict[str, Any], message: str) -> None:
    ordering = {"max_delay_ms": 1, "take_any_ms": 10}
    network(ordering={**ordering, "headers": [HEADER]})
    with pytest.raises(HoldfastError, match=message):
        network(ordering={**ordering, "headers": [{**HEADER, **fields}]})


def test_a_loss_trace_may_have_any_period() -> None:
    _, counters = network(loss={"model": "trace", "lost_packets": [0, 5, 1 << 62], "period_packets": (1 << 63) - 1})
    assert counters.loss_drops == 2
    # Frames of 1,000 bytes have 986 behind the Ethernet header.
    _, counters = network(mtu_bytes=986)
    assert (counters.mtu_drops, counters.delivered) == (0, 100)
    _, counters = network(mtu_bytes=985)
    assert (counters.offered, counters.mtu_drops, counters.delivered) == (100, 100, 0)
    simulated, _ = network(ordering={"max_delay_ms": 1, "take_any_ms": 10})
    ordering = simulated.ordering_counters(simulated.topology.link_names()[1])
    assert ordering is not None
    assert (ordering.untagged, ordering.held_back) == (100, 0)
    assert simulated.ordering_counters(simulated.topology.link_names()[0]) is None
    simulated, _ = network(jitter={"distribution": "trace", "delays_ms": [0, 50]})
    received = simulated.statistics(0)
    assert received.latency_max_ps == received.latency_min_ps + 50_000_000_000  # type: ignore[operator]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"mtu_bytes": 67}, "mtu_bytes"),
        ({"ordering": {"max_delay_ms": 5, "take_any_ms": 4}}, "take_any_ms .4. is below max_delay_ms"),
        ({"ordering": {"max_delay_ms": 1e-12, "take_any_ms": 4}}, "less than a picosecond"),
        ({"ordering": {"max_delay_ms": 5}}, "take_any_ms"),
        (
            {"ordering": {"max_delay_ms": 9e9, "take_any_ms": 9e9}},
            "ordering.max_delay_ms: Input should be less than or",
        ),
        ({"ordering": {"max_delay_ms": 5, "take_any_ms": 9e9}}, "ordering.take_any_ms: Input should be less than or"),
        ({"queue_bytes": 10, "queue_packets": 3}, "give queue_bytes or queue_packets, not both"),
        ({"queue_packets": -1}, "queue_packets: Input should be greater than or equal to 0"),
        ({"red": {"min_packets": 5, "max_bytes": 9}}, "give min_packets and max_packets, or min_bytes and max_bytes"),
        ({"red": {"min_packets": 5, "max_packets": 5}}, r"the lower threshold \(5\) is not below the upper one \(5\)"),
        ({"red": {"min_packets": 5, "max_packets": 9, "weight": float("nan")}}, "red.weight: Input should be"),
        ({"red": {"min_packets": 1, "max_packets": 10**26}}, "red.max_packets: Input should be less than"),
        ({"red": {"min_packets": 1, "max_packets": 1e26}}, "red.max_packets: "),
        ({"red": {"min_packets": 1 << 62, "max_packets": 1 << 63}}, "red.min_packets: Input should be less than"),
        ({"red": {"min_bytes": -1, "max_bytes": 9}}, "red.min_bytes: Input should be greater than or equal to 0"),
        ({"red": {"min_bytes": 1, "max_bytes": 10**26}}, "red.max_bytes: Input should be less than"),
        ({"red": {"min_bytes": 1, "max_bytes": 9, "mean_packet_bytes": 10**26}}, "red.mean_packet_bytes: Input"),
        ({"red": {"min_bytes": 1, "max_bytes": 9, "mean_packet_bytes": 0}}, "red.mean_packet_bytes: Input"),
        ({"red": {"min_bytes": 1, "max_bytes": 9, "weight": 1e-12}}, "red.weight: Input should be greater than or"),
        ({"mark_above": {"bytes": 10**26}}, "mark_above.bytes: Input should be less than"),
        ({"mark_above": {"packets": 10**26}}, "mark_above.packets: Input should be less than"),
        (
            {"red": {"min_packets": 1, "max_packets": 9}, "mark_above": {"packets": 3}},
            "give red or mark_above, not both",
        ),
        ({"mark_above": {}}, "give either packets or bytes"),
        ({"loss": 1.5}, "loss.probability: Input should be less than or equal to 1"),
        ({"loss": float("nan")}, "loss.probability: Input should be"),
        ({"loss": {"model": "gilbert"}}, "model must be one of bernoulli, gilbert_elliott, trace"),
        ({"loss": {"model": "gilbert_elliott", "p": 2, "r": 0}}, "p: Input should be less than or equal to 1"),
        ({"loss": {"model": "trace"}}, "give either lost_packets or file"),
        (
            {"loss": {"model": "trace", "lost_packets": [7], "period_packets": 7}},
            "lost_packets are below period_packets",
        ),
        (
            {"loss": {"model": "trace", "lost_packets": [7], "period_packets": 1 << 63}},
            "period_packets: Input should be less than 9223372036854775808",
        ),
        (
            {"loss": {"model": "trace", "lost_packets": [1, -1]}},
            "lost_packets.1: Input should be greater than or equal",
        ),
        ({"loss": {"model": "trace", "lost_packets": [10**30]}}, "lost_packets.0: Input should be less than"),
        ({"jitter": {"distribution": "trace"}}, "delays_ms belongs to the distribution trace, and is not empty"),
        ({"jitter": {"distribution": "uniform", "mean_ms": 3}}, "mean_ms does not belong to the distribution uniform"),
        (
            {"jitter": {"distribution": "trace", "delays_ms": [-1]}},
            "jitter.delays_ms.0: Input should be greater than or",
        ),
        ({"delay_ms": float("nan")}, "delay_ms: Input should be"),
        ({"delay_ms": 1e30}, "delay_ms: Input should be less than or equal to 3600000"),
        ({"rate_bps": 1e30}, "rate_bps: Input should be less than"),
        ({"detection_delay_ms": -1}, "detection_delay_ms: Input should be greater than or equal to 0"),
        ({"reverse": {"cost": 3}}, "reverse.cost: unknown key"),
    ],
)
def test_refusals(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(TopologyError, match=message) as caught:
        network(**parameters)
    assert "\n" not in str(caught.value)


def test_a_model_alone_is_refused_as_in_a_link() -> None:
    for refused, message in (
        (
            lambda: Jitter(distribution="uniform", low_ms=2, high_ms=1),
            r"Jitter: high_ms \(1.0\) is below low_ms \(2.0\)",
        ),
        (lambda: Red(min_packets=1, max_packets=9, max_p=2), "Red: max_p: Input should be less than or equal to 1"),
        (lambda: Queueing(queue={"red": {"min_packets": 9}}), "Queueing: queue.red: give min_packets and max_packets"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ParameterError, match=f"^{message}"):
            refused()


def test_the_core_refuses_in_one_sentence() -> None:
    core = SimulatedNetwork(Topology("none"), {})._core
    ends = {"a": "a", "a_port": 0, "b": "b", "b_port": 0}
    for parameters, message in (
        ({}, "missing field `rate_bps`"),
        ({"rate_bps": 1, "colour": 3}, "unknown field `colour`"),
        ({"rate_bps": -1}, "can't convert negative int to unsigned"),
        ({"rate_bps": 1, "delay_ms": -1}, "a time of -1 ms is negative"),
        ({"rate_bps": 1, "loss": {"model": "fire"}}, "did not match any variant of untagged enum"),
        ({"rate_bps": 1, "jitter": {"distribution": "dance"}}, "unknown variant `dance`, expected one of `none`"),
        ({"rate_bps": 1, "red": Red(min_bytes=1, max_bytes=2).model_dump() | {"max_bytes": None}}, "red: give thres"),
        ({"rate_bps": 1, "mark_above": {"packets": 1, "bytes": 1}}, "mark_above: give packets or bytes"),
        ({"rate_bps": 1, "queue_bytes": 1, "queue_packets": 1}, "give queue_bytes or queue_packets, not both"),
        (
            {"rate_bps": 1, "red": Red(min_bytes=1, max_bytes=2).model_dump(), "mark_above": {"packets": 1}},
            "give red or mark_above, not both",
        ),
    ):
        with pytest.raises(HoldfastError, match=message) as caught:
            core.add_link(**ends, a_to_b=parameters)
        assert "\n" not in str(caught.value)
    with pytest.raises(HoldfastError, match="missing field `a`"):
        core.add_link(a_to_b={"rate_bps": 1})
    with pytest.raises(HoldfastError, match="unknown field `colour`"):
        core.add_link(**ends, a_to_b={"rate_bps": 1}, colour=3)


EVERYTHING: dict[str, Any] = {
    "rate_bps": 10**9,
    "delay_ms": 1,
    "jitter": {"distribution": "uniform", "high_ms": 0.1},
    "loss": {"model": "gilbert_elliott", "p": 0.1, "r": 0.5},
    "queue_packets": 30,
    "red": {"min_packets": 5, "max_packets": 15},
    "mtu_bytes": 1500,
    "ordering": {
        "max_delay_ms": 5,
        "take_any_ms": 50,
        "headers": [{"ethertype": 0xF1C1, "bytes": 6, "sequence": (16, 16), "following": (32, 16), "stream": (0, 8)}],
    },
    "detection_delay_ms": 1,
    "detection_down_ms": 2,
    "detection_up_ms": 3,
    "bfd": {"tx_ms": 5},
    "reverse": {"mark_above": {"packets": 3}, "loss": {"model": "trace", "lost_packets": (3,), "period_packets": 9}},
}


def names_in_the_core(read: Callable[..., object], described: dict[str, Any], *place: str | int) -> set[str]:
    """Return the names that the core lists when it refuses another one at a place of a description."""
    described = copy.deepcopy(described)
    found: Any = described
    for step in place:
        found = found[step]
    found["no_such_name"] = 1
    with pytest.raises(HoldfastError, match="unknown field `no_such_name`") as caught:
        read(**described)
    return set(re.findall(r"`(\w+)`", str(caught.value))) - {"no_such_name"}


def test_models_and_the_core_have_the_same_names() -> None:
    """A parameter that one of both lacks is found here."""
    topology = Topology()
    for name in ("s1", "s2", "s3"):
        topology.add_switch(name)
    link = topology.add_link("s1", "s2", **EVERYTHING)
    core = SimulatedNetwork(topology, compile_router())._core
    described = description(link, Traces()) | {"a_port": 2, "b_port": 2}
    core.add_link(**described)
    for model, *place in (
        (Red, "a_to_b", "red"),
        (Ordering, "a_to_b", "ordering"),
        (SequenceHeader, "a_to_b", "ordering", "headers", 0),
        (MarkAbove, "b_to_a", "mark_above"),
        (Bfd, "bfd"),
    ):
        assert names_in_the_core(core.add_link, described, *place) == model.model_fields.keys()
    names = names_in_the_core(core.add_link, described)
    assert names - {"a_to_b", "b_to_a"} == Link.model_fields.keys() - Direction.model_fields.keys() - {
        "cost",
        "reverse",
    }


def test_a_link_is_what_it_was_told_to_be() -> None:
    """A parameter of a direction that one of both languages lacks, or a value that one reads otherwise, is found here."""
    losses = [{"model": "trace", "lost_packets": (3,), "period_packets": 9}, EVERYTHING["loss"], 0.25, 0]
    jitters: list[dict[str, Any]] = [
        {"distribution": "uniform", "low_ms": 0.1, "high_ms": 0.3},
        {"distribution": "normal", "mean_ms": 3.3, "sigma_ms": 0.7},
        {"distribution": "trace", "delays_ms": (0.1, 0, 1e-9)},
        {"distribution": "none"},
    ]
    for loss, jitter in zip(losses, jitters, strict=True):
        for discipline in ({"red": EVERYTHING["red"]}, {"mark_above": {"bytes": 7}}, {}):
            topology = Topology()
            topology.add_switch("s1")
            topology.add_switch("s2")
            own = {
                name: value for name, value in EVERYTHING.items() if name in Direction.model_fields and name != "red"
            }
            there = Direction(**own | discipline | {"loss": loss, "jitter": jitter, "delay_ms": 0.3})
            back = {"rate_bps": 77, "queue_bytes": 5, "mtu_bytes": 99}
            topology.add_link("s1", "s2", there, reverse=back)
            simulated = SimulatedNetwork(topology, compile_router())
            assert simulated.link_parameters("s1-s2") == (
                there,
                there.model_copy(update=back | {"queue_packets": None}),
            )
            simulated.change_link("s2-s1", delay_ms=9, loss={"model": "bernoulli", "probability": 0.5}, one_way=True)
            changed = simulated.link_parameters("s1-s2")
            assert (changed[0], changed[1].delay_ms, changed[1].loss) == (there, 9, 0.5)
    assert own.keys() | {"red", "mark_above", "queue_bytes"} == Direction.model_fields.keys()


def test_every_parameter_of_a_direction_says_whether_it_loses_packets() -> None:
    for name, field in Direction.model_fields.items():
        assert [mark in field.metadata for mark in (KEEPS, LOSES)].count(True) == 1, name
    assert Direction(loss={"model": "gilbert_elliott", "p": 0, "r": 0}).loses  # type: ignore[arg-type]
    assert not Direction(loss=0, delay_ms=5, queue_packets=1).loses


def test_names_of_switches() -> None:
    """A parameter of a switch that one of both languages lacks is found here."""
    core = SimulatedNetwork(Topology("none"), {})._core
    switch = SwitchNode(
        name="s4",
        index=4,
        queueing={
            "queue": {"queue_packets": 9},
            "recirculation": {"rate_bps": 1e9},
            "by_priority": {1: {"queue_bytes": 9}},
        },  # type: ignore[arg-type]
        processor=Processor(packets_per_s=1, queue_packets=1),
    )
    program = compile_router()
    described = switch.model_dump(exclude=NOT_IN_DESCRIPTION)
    add_switch = partial(core.add_switch, "s4", program)
    for model, *place in (
        (SwitchNode,),
        (Queueing, "queueing"),
        (QueueFields, "queueing", "queue"),
        (Recirculation, "queueing", "recirculation"),
        (Processor, "processor"),
    ):
        names = model.model_fields.keys() - (NOT_IN_DESCRIPTION if model is SwitchNode else set())
        assert names_in_the_core(add_switch, described, *place) == names
    add_switch(**described)


def test_names_of_hosts_and_generators() -> None:
    """A parameter that one of both languages lacks is found here."""
    topology = Topology("one")
    topology.add_switch("s1")
    host = topology.add_host("h1", ipv6="2001:db8::1/64", vlan=7, neighbours={"10.0.1.9": "02:00:00:00:09:09"})
    topology.add_link("h1", "s1")
    core = SimulatedNetwork(topology, compile_router())._core
    described = host.description(topology.known_neighbours("h1"))
    add_host = partial(core.add_host, "h2")
    assert names_in_the_core(add_host, described) == described.keys() == {"cards", "gateways", "neighbours", "vlan"}
    assert names_in_the_core(add_host, described, "cards", 0) == Card.model_fields.keys()
    add_host(**described)
    generator = PacketGenerator(switch="s1", port=1, packet=b"\0" * 64, period_ms=1)
    described = generator.model_dump()
    assert names_in_the_core(core.add_packet_generator, described) == PacketGenerator.model_fields.keys()
    core.add_packet_generator(**described)
    join = {
        "host": "h1",
        "group": "232.1.1.1",
        "filter": {"excludes": True, "sources": []},
        "version": None,
        "at_ps": None,
    }
    assert names_in_the_core(core.join, join) == join.keys()
    assert names_in_the_core(core.join, join, "filter") == {"excludes", "sources"}
    core.join(**join)


def test_detection_delays_of_a_link() -> None:
    topology = Topology("two")
    for switch in ("s1", "s2"):
        topology.add_switch(switch)
    topology.add_link("s1", "s2", detection_delay_ms=5, detection_up_ms=20)
    topology.add_link("s1", "s2")
    simulated = SimulatedNetwork(topology, compile_router(), detection_delay_ms=1)
    for link in ("s1-s2#1", "s1-s2#2"):
        simulated.set_link(link, up=False, at_s=0.1)
        simulated.set_link(link, up=True, at_s=0.2)
    seen = []
    while simulated.now_ps < 10**12:
        seen += [(n.time_ps // 10**9, n.node, n.port, n.up) for n in simulated._core.run(10**12)]
    assert sorted(seen) == [
        (101, "s1", 2, False),
        (101, "s2", 2, False),
        (105, "s1", 1, False),
        (105, "s2", 1, False),
        (201, "s1", 2, True),
        (201, "s2", 2, True),
        (220, "s1", 1, True),
        (220, "s2", 1, True),
    ]


def square(seed: int = 1) -> SimulatedNetwork:
    topology = Topology("square")
    for switch in ("s1", "s2", "s3"):
        topology.add_switch(switch)
    topology.add_link("s1", "s2")
    topology.add_link("s2", "s3")
    return SimulatedNetwork(topology, compile_router(), seed=seed)


def test_random_failures() -> None:
    alone, together, other = square(), square(), square(seed=2)
    together.fail_randomly("s3", mtbf_s=1, mttr_s=0.5)
    together.fail_randomly("s2-s1", mtbf_s=2, mttr_s=0.1, one_way=True)
    for simulated in (alone, together, other):
        simulated.fail_randomly("s2-s3", mtbf_s=1, mttr_s=0.25, time_to_repair="fixed", start_s=1, end_s=50)
        simulated.run(100)
    drawn = [event for event in together.random_failures() if event[1] == "s2-s3"]
    assert drawn == alone.random_failures() != other.random_failures()
    assert {event[1] for event in together.random_failures()} == {"s3", "s2-s1", "s2-s3"}
    for down, up in zip(drawn[::2], drawn[1::2], strict=True):
        assert (down[2], up[2]) == (False, True)
        assert up[0] - down[0] == pytest.approx(0.25)
    assert drawn[0][0] > 1 and drawn[-2][0] < 50
    assert 20 < len(drawn) / 2 < 60
    for wrong, message in (
        ({"name": "s2-s3", "mtbf_s": 1, "mttr_s": 1}, "what fails at random must be given once"),
        ({"name": "s1", "mtbf_s": float("nan"), "mttr_s": 1}, "mtbf_s is nan; it must be a number"),
        ({"name": "s1", "mtbf_s": 1, "mttr_s": 0}, "mttr_s is 0; it must be above zero"),
        ({"name": "s1", "mtbf_s": 1, "mttr_s": 1, "one_way": True}, "only a link fails one way"),
        ({"name": "s9-s1", "mtbf_s": 1, "mttr_s": 1}, "there is no link 's9-s1'"),
        ({"name": "s1", "mtbf_s": 1, "mttr_s": 1, "start_s": 99}, "start_s is 99 s, which has passed: it is 100 s"),
        (
            {"name": "s1", "mtbf_s": 1, "mttr_s": 1, "start_s": 200, "end_s": 150},
            r"end_s \(150\) is before start_s \(200\)",
        ),
        ({"name": "s1", "mtbf_s": 1, "mttr_s": 1, "end_s": float("inf")}, "end_s is inf; it must be at most 9e"),
    ):
        with pytest.raises(HoldfastError, match=message):
            together.fail_randomly(**wrong)  # type: ignore[arg-type]


QUEUES = """
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header told_t { bit<8> priority; bit<8> depth; bit<16> waited_us; }
struct headers_t { ethernet_t ethernet; told_t told; }
struct metadata_t {}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.ethernet); packet.extract(hdr.told); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply {} }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { standard.egress_spec = 2; standard.priority = hdr.told.priority[2:0]; }
}
control Tell(inout headers_t hdr, inout standard_metadata_t standard) {
    apply { hdr.told.depth = (bit<8>) standard.enq_qdepth; hdr.told.waited_us = (bit<16>) standard.deq_timedelta; }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Tell() tell;
    apply { tell.apply(hdr, standard); }
}
control C(inout headers_t hdr, inout metadata_t meta) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def told(topology: Topology, executor: str) -> list[tuple[int, ...]]:
    """Return (priority, queue depth, waiting time) in each of the frames that h2 receives of four that h1 sends at once."""
    simulated = SimulatedNetwork(topology, Program.compile_text(QUEUES, "queues.p4"), executor=executor)  # type: ignore[arg-type]
    for priority in (0, 1, 2, 1):
        simulated.send_frame("h1", b"\xff" * 6 + bytes(6) + b"\x88\xb5" + bytes([priority]) + bytes(985))
    frames = []
    while simulated.now_ps < PS_PER_S:
        frames += [n.data[14:18] for n in simulated._core.run(PS_PER_S) if n.kind == "host_frame"]
    assert all(q.packets == 0 for q in simulated.queue_statistics("s1"))
    return [(frame[0], frame[1], int.from_bytes(frame[2:])) for frame in frames]


def dumbbell(queueing: str) -> str:
    return f"""
hosts: {{h1: , h2: }}
switches: {{s1: {{queueing: {queueing}}}}}
links:
  - {{a: h1, b: s1, rate_bps: 1e12}}
  - {{a: s1, b: h2, rate_bps: 8e6, queue_packets: 10}}
"""


@pytest.mark.parametrize("executor", ["jit", "interpreter"])
def test_a_program_that_reads_queues_has_some(tmp_path: Path, executor: str) -> None:
    path = tmp_path / "queues.yaml"

    def run(queueing: str) -> list[tuple[int, ...]]:
        path.write_text(dumbbell(queueing))
        topology = Topology.from_yaml(path)
        assert Topology.from_yaml(path).switches == topology.switches
        path.write_text(topology.to_yaml())
        assert Topology.from_yaml(path).switches == topology.switches
        return told(topology, executor)

    # 1,000 bytes and the physical layer's 24 take 1.024 ms each; frames come in every 8 ns.
    assert run("{}") == [(0, 0, 0), (2, 0, 1023), (1, 0, 2047), (1, 1, 3071)]
    assert run("{mode: traffic_manager, queues: 1}") == [(0, 0, 0), (1, 0, 1023), (2, 1, 2047), (1, 2, 3071)]
    # One packet waits in each queue, and none in the second.
    few = "{queue: {queue_packets: 1}, by_priority: {1: {queue_bytes: 0}}, recirculation: {rate_bps: 1e9}}"
    assert run(few) == [(0, 0, 0), (2, 0, 1023)]
    assert run("{mode: link}") == [(0, 0, 0), (1, 0, 0), (2, 0, 0), (1, 0, 0)]


def test_a_switch_takes_as_many_packets_as_its_processor(tmp_path: Path) -> None:
    path = tmp_path / "processor.yaml"
    path.write_text(
        """
hosts: {h1: , h2: }
switches: {s1: {processor: {packets_per_s: 500, queue_packets: 9}}}
links: [{a: h1, b: s1}, {a: s1, b: h2}]
"""
    )
    topology = Topology.from_yaml(path)
    path.write_text(topology.to_yaml())
    assert Topology.from_yaml(path).switches == topology.switches
    network = SimulatedNetwork(topology, compile_router(), [RouterController(reroute=False, reaction_delay_ms=0)])
    flows = [network.add(UdpStream(source=a, destination=b, stop_s=1)) for a, b in (("h1", "h2"), ("h2", "h1"))]
    network.run(2.0)
    found = [network.statistics(flow) for flow in flows]
    delivered = sum(each.delivered for each in found)
    # One each 2 ms, and those that wait in the end.
    assert 500 <= delivered <= 510
    assert network.node_counters("s1").queue_drops == 2000 - delivered
    # Nine wait, and at most one is served when another one comes.
    assert 18 * PS_PER_MS <= max(each.latency_max_ps or 0 for each in found) <= 20.1 * PS_PER_MS
    with pytest.raises(TopologyError, match="packets_per_s"):
        topology.add_switch("s2", processor={"packets_per_s": 0, "queue_packets": 9})
    with pytest.raises(TopologyError, match="queue_packets"):
        topology.add_switch("s2", processor={"packets_per_s": 5})


# The byte behind the Ethernet header says how often a packet is to be recirculated.
RECIRCULATING = """
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header passes_t { bit<8> left; }
struct headers_t { ethernet_t ethernet; passes_t passes; }
struct metadata_t { @field_list(1) bit<8> unused; }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.ethernet); packet.extract(hdr.passes); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply {} }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { standard.egress_spec = 2; }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (hdr.passes.left != 0) {
            hdr.passes.left = hdr.passes.left - 1;
            recirculate_preserving_field_list(1);
        }
    }
}
control C(inout headers_t hdr, inout metadata_t meta) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def recirculating(recirculation: dict[str, Any] | None, latency_ms: float = 0.0) -> SimulatedNetwork:
    """Return a network in which h1 has sent frames to h2 that recirculate 3, 0, 1 and 2 times.

    Each has 1,000 bytes, and 24 of the physical layer.
    """
    topology = Topology("one")
    queueing = {} if recirculation is None else {"recirculation": recirculation}
    topology.add_switch("s1", queueing=queueing, latency_ms=latency_ms)
    for host in ("h1", "h2"):
        topology.add_host(host)
        topology.add_link(host, "s1", rate_bps=1e12)
    simulated = SimulatedNetwork(topology, Program.compile_text(RECIRCULATING, "recirculating.p4"))
    for left in (3, 0, 1, 2):
        simulated.send_frame("h1", b"\xff" * 6 + bytes(6) + b"\x88\xb5" + bytes([left]) + bytes(985))
    return simulated


def arrivals_ms(simulated: SimulatedNetwork) -> list[float]:
    arrivals = []
    while simulated.now_ps < PS_PER_S:
        arrivals += [n.time_ps for n in simulated._core.run(PS_PER_S) if n.kind == "host_frame"]
    return [round(time_ps / PS_PER_MS, 3) for time_ps in arrivals]


def test_a_recirculation_port_has_its_capacity_whatever_the_program_reads() -> None:
    without = recirculating(None)
    assert arrivals_ms(without) == [0, 0, 0, 0]
    assert without.recirculation_statistics("s1") == []
    assert results.recirculation(without).is_empty()
    # A pass takes 1.024 ms; the six passes are first in, first out.
    assert arrivals_ms(recirculating({"rate_bps": 8e6})) == [0, 2.048, 5.12, 6.144]
    # The packet with two passes left finds one that waits, and is lost.
    few = recirculating({"rate_bps": 8e6, "queue_packets": 1})
    assert arrivals_ms(few) == [0, 2.048, 4.096]
    [port] = few.recirculation_statistics("s1")
    assert (port.offered, port.passes, port.queue_drops, port.max_packets) == (5, 4, 1, 1)
    assert port.utilisation == pytest.approx(4 * 1.024e-3)
    assert few.node_counters("s1").queue_drops == 1


def test_the_latency_of_a_switch_is_that_of_each_pass() -> None:
    assert arrivals_ms(recirculating(None, latency_ms=10)) == [10, 10, 10, 10]
    # Three, one and two passes more through the switch, each after its transmission.
    assert arrivals_ms(recirculating({"ports": 3, "rate_bps": 8e9}, latency_ms=10)) == [10, 20.001, 30.002, 40.003]


def test_recirculated_packets_are_spread_over_the_ports() -> None:
    # In turn: the first passes go to ports 0, 1 and 0; then there are the packets with 3 and with 1, of which the first goes on.
    two = recirculating({"ports": 2, "rate_bps": 8e6})
    assert arrivals_ms(two) == [0, 1.024, 3.072, 3.072]
    table = results.recirculation(two).select("switch", "port", "offered", "passes", "queue_drops")
    assert table.rows() == [("s1", 0, 3, 3, 0), ("s1", 1, 3, 3, 0)]
    # By hash: equal headers, equal port. In each pass the byte that counts passes is another.
    by_hash = recirculating({"ports": 4, "rate_bps": 8e6, "spread": "hash"})
    headers = [b"\xff" * 6 + bytes(6) + b"\x88\xb5" + bytes([left]) + bytes(49) for left in (2, 0, 1, 1, 0, 0)]
    expected = Counter(zlib.crc32(header) % 4 for header in headers)
    assert len(arrivals_ms(by_hash)) == 4
    assert {port.port: port.passes for port in by_hash.recirculation_statistics("s1") if port.passes} == expected


def test_what_is_said_of_queues_counts_whatever_the_program_reads() -> None:
    topology = Topology("one")
    topology.add_switch("s1", queueing={"queue": {"queue_packets": 3}})
    topology.add_host("h1")
    topology.add_host("h2")
    topology.add_link("h1", "s1", rate_bps=1e12)
    topology.add_link("s1", "h2", rate_bps=8e6, queue_packets=100)
    simulated = SimulatedNetwork(topology, compile_router(), [RouterController(reroute=False, reaction_delay_ms=0)])
    flow = simulated.add(UdpStream(source="h1", destination="h2", packets_per_s=1e6, stop_s=20e-6))
    simulated.run(1)
    assert simulated.statistics(flow).delivered == 1 + 3


def test_what_is_read_decides() -> None:
    topology = Topology("one")
    topology.add_switch("s1", queueing={"queues": 2})
    topology.add_switch("s2")
    topology.add_link("s1", "s2")
    assert SimulatedNetwork(topology, Program.compile_text(QUEUES, "queues.p4")).has_traffic_manager("s1")
    assert not SimulatedNetwork(topology, compile_router()).has_traffic_manager("s1")


@pytest.mark.parametrize(
    ("queueing", "message"),
    [
        ({"queues": 9}, "queueing.queues: Input should be less than or equal to 8"),
        ({"mode": "magic"}, "queueing.mode: Input should be 'auto', 'link' or 'traffic_manager'"),
        ({"queues": 2, "by_priority": {2: {"queue_packets": 1}}}, "by_priority has a queue that is not among 0 to 1"),
        ({"queue": {}}, "give queue_bytes or queue_packets"),
        ({"recirculation": {"rate_bps": 0}}, "queueing.recirculation.rate_bps: Input should be greater than 0"),
        ({"recirculation": {}}, "queueing.recirculation.rate_bps: Field required"),
        (
            {"recirculation": {"rate_bps": 1e6, "ports": 0}},
            "recirculation.ports: Input should be greater than or equal to 1",
        ),
        ({"recirculation": {"rate_bps": 1e6, "spread": "luck"}}, "spread: Input should be 'round-robin' or 'hash'"),
        (
            {"recirculation": {"rate_bps": 1e6, "queue_bytes": 1, "queue_packets": 1}},
            "give queue_bytes or queue_packets, not both",
        ),
        ({"queue": {"queue_packets": -1}}, "queueing.queue.queue_packets: Input should be greater than or equal to 0"),
        ({"mode": "link", "queues": 2}, "queues is of a traffic manager, and mode is 'link'"),
        ({"mode": "link", "recirculation": {"rate_bps": 1e6}}, "recirculation is of a traffic manager"),
    ],
)
def test_refusals_of_queues(queueing: dict[str, Any], message: str) -> None:
    with pytest.raises(TopologyError, match=message) as caught:
        Topology("one").add_switch("s1", queueing=queueing)
    assert "\n" not in str(caught.value)


def test_the_example_of_the_readme(tmp_path: Path) -> None:
    text = (Path(topologies.__file__).parent / "README.md").read_text()
    path = tmp_path / "example.yaml"
    path.write_text(text.split("```yaml\n")[3].split("```")[0])
    topology = Topology.from_yaml(path)
    link = topology.links[0]
    assert link.loss == GilbertElliott(model="gilbert_elliott", p=0.01, r=0.3)
    assert reversed_link(link).loss == 0
    simulated = SimulatedNetwork(topology, compile_router())
    assert simulated.has_traffic_manager("s1") and not simulated.has_traffic_manager("s2")


def test_links_and_queues_as_parquet(tmp_path: Path) -> None:
    simulated, counters = network(rate_bps=8e6, queue_packets=20)
    frame = results.links(simulated)
    frame.write_parquet(tmp_path / "links.parquet")
    rows = pl.read_parquet(tmp_path / "links.parquet").rows(named=True)
    assert [(row["link"], row["sender"], row["receiver"]) for row in rows] == [
        ("h1-s1", "h1", "s1"),
        ("h1-s1", "s1", "h1"),
        ("s1-h2", "s1", "h2"),
        ("s1-h2", "h2", "s1"),
    ]
    counted = asdict(counters)
    assert {name: rows[2][name] for name in counted} == counted
    assert rows[2]["queue_drops"] == 70
    # A router does not care about queues.
    assert results.queues(simulated).shape == (0, 15)
    queueing = Queueing(mode="traffic_manager", queues=2, queue={"queue_packets": 5})  # type: ignore[arg-type]
    simulated, _ = network(queueing, rate_bps=8e6, queue_packets=20)
    results.queues(simulated).write_parquet(tmp_path / "queues.parquet")
    queues = pl.read_parquet(tmp_path / "queues.parquet")
    assert queues.select("switch", "port", "queue", "offered", "queue_drops", "max_packets").rows() == [
        ("s1", 2, 0, 100, 85, 5),
        ("s1", 2, 1, 0, 0, 0),
    ]
