"""Parameters of a direction of a link: its rate, delay, queue, losses. This does not know the nodes at the ends.

Everything here is data that is checked; the models themselves are in the native core, which reads the data as they are here
(:func:`description`; in Rust ``net::description``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from holdfast.errors import NetworkError
from holdfast.parameters import PS_PER_MS, Parameters
from holdfast.regular_files import read_regular

if TYPE_CHECKING:
    from holdfast.topology import Link

DelayMs: TypeAlias = Annotated[float, Field(ge=0, le=3_600_000)]
"""A delay in milliseconds, at most an hour: the network's clock counts picoseconds in 63 bits, which last much
longer."""

PacketNumber: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 63)]
"""The number of a packet among the packets of one direction of a link, from 0 on."""

MAX_TRACE_BYTES = 64 << 20
"""The largest file with a loss trace."""

MOST_LOST = 100_000_000
"""The most lost packets in the loss traces of all links together; each takes 8 bytes of memory."""

Amount: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 62)]
"""A number of packets or bytes in a queue."""


class Jitter(Parameters):
    """Delay added to each packet on a link, for each direction on its own.

    ``uniform``: between ``low_ms`` and ``high_ms``. ``normal``: mean ``mean_ms``, deviation ``sigma_ms``, never below zero.
    ``trace``: ``delays_ms`` one after the other, and again from the beginning. ``none``: no delay, as without jitter.
    """

    distribution: Literal["none", "uniform", "normal", "trace"]
    low_ms: DelayMs = 0.0
    high_ms: DelayMs = 0.0
    mean_ms: DelayMs = 0.0
    sigma_ms: DelayMs = 0.0
    delays_ms: tuple[DelayMs, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.distribution == "uniform" and self.high_ms < self.low_ms:
            raise ValueError(f"high_ms ({self.high_ms}) is below low_ms ({self.low_ms})")
        if (self.distribution == "trace") != bool(self.delays_ms):
            raise ValueError("delays_ms belongs to the distribution trace, and is not empty")
        own = {"uniform": {"low_ms", "high_ms"}, "normal": {"mean_ms", "sigma_ms"}}
        for name in ("low_ms", "high_ms", "mean_ms", "sigma_ms"):
            if name in self.model_fields_set - own.get(self.distribution, set()):
                raise ValueError(f"{name} does not belong to the distribution {self.distribution}")
        return self


class Bernoulli(Parameters):
    """Each packet is lost with the same probability; the same as the number alone."""

    model: Literal["bernoulli"]
    probability: float = Field(ge=0, le=1)


class GilbertElliott(Parameters):
    """Losses of a Markov chain: from good to bad with ``p``, back with ``r``, one step per packet.

    A packet in the bad state is lost with ``loss_bad`` (1 - h), in the good state with ``loss_good`` (1 - k).
    """

    model: Literal["gilbert_elliott"]
    p: float = Field(ge=0, le=1)
    r: float = Field(ge=0, le=1)
    loss_bad: float = Field(default=1.0, ge=0, le=1)
    loss_good: float = Field(default=0.0, ge=0, le=1)


class LossTrace(Parameters):
    """Losses of a list: ``lost_packets`` by number from 0 on, again every ``period_packets`` if that is given.

    Or of a ``file`` with one 0 (arrives) or 1 (lost) per packet, again from the beginning with ``repeat``. A relative path is
    relative to the working directory, and is read when a network is built.
    """

    model: Literal["trace"]
    lost_packets: tuple[PacketNumber, ...] | None = None
    period_packets: int | None = Field(default=None, ge=1, lt=1 << 63)
    file: str | None = None
    repeat: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.lost_packets is None) == (self.file is None):
            raise ValueError("give either lost_packets or file")
        if self.file is None and self.repeat:
            raise ValueError("repeat belongs to file; use period_packets with lost_packets")
        if self.lost_packets is None and self.period_packets is not None:
            raise ValueError("period_packets belongs to lost_packets; use repeat with file")
        if self.period_packets is not None and any(n >= self.period_packets for n in self.lost_packets or ()):
            raise ValueError("lost_packets are below period_packets")
        return self


class Traces:
    """The files of loss traces, each read once and shared by all directions that have it. Raises :class:`NetworkError`."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._lost: dict[str, int] = {}
        self._lost_in_all = 0

    def text(self, file: str) -> str:
        """Return the text of a loss trace's file, which holds zeros, ones and blanks.

        Each call counts its losses for one direction more.

        Raises :class:`NetworkError` if the file holds anything else, or if more than :data:`MOST_LOST` packets are lost in all.
        """
        if file not in self._texts:
            text = read_regular(Path(file), MAX_TRACE_BYTES, NetworkError, "loss trace")
            if text.translate(None, b"01 \t\n\v\f\r"):
                raise NetworkError(f"loss trace {file}: it must be made of 0 and 1")
            if b"0" not in text and b"1" not in text:
                raise NetworkError(f"loss trace {file}: it must be at least one packet long")
            self._texts[file], self._lost[file] = text.decode("ascii"), text.count(b"1")
        self._lost_in_all += self._lost[file]
        if self._lost_in_all > MOST_LOST:
            raise NetworkError(f"loss trace {file}: with it more than {MOST_LOST} packets are lost, all links together")
        return self._texts[file]


def trace_digests(links: Iterable[Link]) -> dict[str, str]:
    """Return the SHA-256 of each loss trace's file, by path. Raises :class:`NetworkError` if a file cannot be used."""
    traces, digests = Traces(), dict[str, str]()
    for link in links:
        for direction in (link,) if link.reverse is None else (link, reversed_link(link)):
            if isinstance(direction.loss, LossTrace) and (file := direction.loss.file) is not None:
                text = traces.text(file)
                digests[file] = digests.get(file) or hashlib.sha256(text.encode("ascii")).hexdigest()
    return digests


_LOSS_MODELS: dict[str, type[Bernoulli | GilbertElliott | LossTrace]] = {
    "bernoulli": Bernoulli,
    "gilbert_elliott": GilbertElliott,
    "trace": LossTrace,
}


class Red(Parameters):
    """Random early detection (Floyd and Jacobson, 1993) between two averages, both in packets or both in bytes.

    ``max_p`` is the probability at the upper one and ``weight`` the average's. ``gentle`` goes on to probability 1 at twice the
    upper one. ``ecn`` marks what can be marked instead of dropping it.
    """

    min_packets: Amount | None = None
    max_packets: int | None = Field(default=None, ge=1, lt=1 << 62)
    min_bytes: Amount | None = None
    max_bytes: int | None = Field(default=None, ge=1, lt=1 << 62)
    max_p: float = Field(default=0.02, gt=0, le=1)
    weight: float = Field(default=0.002, ge=2**-32, le=1)
    gentle: bool = False
    ecn: bool = False
    mean_packet_bytes: int = Field(default=500, ge=1, lt=1 << 62)

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = [value is not None for value in (self.min_packets, self.max_packets, self.min_bytes, self.max_bytes)]
        if given not in ([True, True, False, False], [False, False, True, True]):
            raise ValueError("give min_packets and max_packets, or min_bytes and max_bytes")
        low, high = self._thresholds()
        if low >= high:
            raise ValueError(f"the lower threshold ({low}) is not below the upper one ({high})")
        return self

    def _thresholds(self) -> tuple[int, int]:
        if self.min_packets is not None and self.max_packets is not None:
            return self.min_packets, self.max_packets
        return self.min_bytes or 0, self.max_bytes or 0


class MarkAbove(Parameters):
    """Marks every packet that finds more than this waiting (DCTCP's K), and drops it if it cannot be marked."""

    packets: Amount | None = None
    bytes: Amount | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.packets is None) == (self.bytes is None):
            raise ValueError("give either packets or bytes")
        return self


Bits: TypeAlias = tuple[Annotated[int, Field(ge=0, lt=1 << 32)], Annotated[int, Field(ge=0, lt=1 << 32)]]
"""The offset and the width of a field, in bits."""


class SequenceHeader(Parameters):
    """A header with a sequence number, as an application's program leaves it in front of packets that are put in order.

    It follows its ``ethertype`` behind Ethernet and up to two VLAN tags. ``sequence`` is the number, 2 to 32 bits wide. ``stream``
    tells streams apart; without it the addresses and VLAN tags in front do. ``following`` is the EtherType of what follows, or a
    number of which ``ethertypes`` has the EtherType.
    """

    ethertype: int = Field(ge=0x600, le=0xFFFF)
    bytes: int = Field(ge=1, le=64)
    sequence: Bits
    following: Bits
    stream: Bits | None = None
    ethertypes: dict[int, int] = Field(default_factory=dict)


class Ordering(Parameters):
    """Puts packets with sequence numbers in order before they are sent (RFC 9550, basic algorithm), and takes the numbers off.

    A packet that came before those with lower numbers waits for them, ``max_delay_ms`` at most (POFMaxDelay); of all streams
    together ``buffer_packets`` wait. After ``take_any_ms`` without a packet (POFTakeAnyTime), any number is taken. Numbers have
    ``sequence_bits`` if that is less than their field's. ``headers``: the headers that have the numbers; without it those that the
    network's controllers declare (:attr:`holdfast.controller.Controller.sequence_headers`).
    """

    max_delay_ms: float = Field(gt=0, le=1e9)
    take_any_ms: float = Field(gt=0, le=1e9)
    buffer_packets: int = Field(default=1024, ge=1, le=1 << 20)
    sequence_bits: int | None = Field(default=None, ge=2, le=32)
    headers: tuple[SequenceHeader, ...] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.take_any_ms < self.max_delay_ms:
            raise ValueError(f"take_any_ms ({self.take_any_ms:g}) is below max_delay_ms ({self.max_delay_ms:g})")
        if round(self.max_delay_ms * PS_PER_MS) == 0:
            raise ValueError("max_delay_ms is less than a picosecond")
        return self


class Bfd(Parameters):
    """Bidirectional Forwarding Detection (RFC 5880) between the switches at a link's ends, in asynchronous mode.

    Both send hellos on the link every ``tx_ms``, less 0 to 25 % of jitter, or as rarely as the other end asks with its ``rx_ms``;
    one that misses ``multiplier`` of them takes its port down, and tells the other. So failures without a loss of signal are found.
    """

    tx_ms: float = Field(default=50.0, ge=0.1, le=60_000)
    rx_ms: float = Field(default=50.0, ge=0.1, le=60_000)
    multiplier: int = Field(default=3, ge=1, le=255)


def whole_rate(rate: object) -> object:
    """Return a rate written as 1e9 or 10e6, which YAML reads as text or as a float, as a whole number.

    Any other value is returned unchanged; validation refuses it later.
    """
    if isinstance(rate, str):
        try:
            rate = float(rate)
        except ValueError:
            return rate
    return int(rate) if isinstance(rate, float) and rate.is_integer() else rate


def loss_model(loss: object) -> object:
    """Validate a mapping as the loss model that it names, so that an error is about that model alone.

    A number, or its text, is returned as a probability; any other value unchanged.
    """
    if isinstance(loss, int | float | str):
        try:
            loss = {"model": "bernoulli", "probability": float(loss)}
        except ValueError:
            pass
        else:
            return _named_model(loss).probability  # type: ignore[union-attr]
    if isinstance(loss, dict):
        return _named_model(loss)
    return loss


def _named_model(loss: Mapping[str, Any]) -> Bernoulli | GilbertElliott | LossTrace:
    kind = _LOSS_MODELS.get(str(loss.get("model")))
    if kind is None:
        raise ValueError(f"model must be one of {', '.join(_LOSS_MODELS)}")
    return kind(**loss)


_Rate: TypeAlias = Annotated[int, Field(gt=0, lt=1 << 62)]

LOSES = object()
"""Marks a parameter of a direction that, with another value than the default, loses packets though no link fails and no
queue is full."""

KEEPS = object()
"""Marks a parameter of a direction whose value alone loses no packet while queues have room. Every parameter is marked
with this or with :data:`LOSES`."""

RateBps: TypeAlias = Annotated[int, BeforeValidator(whole_rate, json_schema_input_type=_Rate), Field(gt=0, lt=1 << 62)]
"""A rate as a whole number of bits per second; it may also be written as ``1e9`` or ``10e6``."""

_Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]

Loss: TypeAlias = Annotated[
    float | Bernoulli | GilbertElliott | LossTrace,
    BeforeValidator(loss_model, json_schema_input_type=_Share | Bernoulli | GilbertElliott | LossTrace),
]
"""The probability that a packet is lost, or a model of loss with its parameters."""


class Queue(Parameters):
    """Parameters of one queue: its size, and what happens before it is full."""

    queue_bytes: Annotated[Amount | None, KEEPS] = None
    queue_packets: Annotated[Amount | None, KEEPS] = None
    red: Annotated[Red | None, KEEPS] = None
    mark_above: Annotated[MarkAbove | None, KEEPS] = None

    @model_validator(mode="after")
    def _check_queue(self) -> Self:
        if self.queue_packets is not None and "queue_bytes" in self.model_fields_set and self.queue_bytes is not None:
            raise ValueError("give queue_bytes or queue_packets, not both")
        if self.red is not None and self.mark_above is not None:
            raise ValueError("give red or mark_above, not both")
        return self


class Direction(Queue):
    """Parameters of a direction of a link. A parameter of links is declared here, and nowhere else in Python."""

    rate_bps: Annotated[RateBps, KEEPS] = 1_000_000_000
    delay_ms: Annotated[DelayMs, KEEPS] = 0.0
    jitter: Annotated[Jitter | None, KEEPS] = None
    loss: Annotated[Loss, LOSES] = 0.0
    queue_bytes: Annotated[Amount, KEEPS] = 150_000
    mtu_bytes: Annotated[int | None, KEEPS] = Field(default=None, ge=68, le=65_535)
    ordering: Annotated[Ordering | None, KEEPS] = None

    @property
    def loses(self) -> bool:
        """True if packets are lost although nothing fails and no queue is full."""
        fields = Direction.model_fields.items()
        return any(LOSES in field.metadata and getattr(self, name) != field.default for name, field in fields)


class QueueFields(Queue):
    """A queue of a switch, which has a size."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.queue_bytes is None and self.queue_packets is None:
            raise ValueError("give queue_bytes or queue_packets")
        return self


class Recirculation(Parameters):
    """Ports of a switch that lead from the deparser back to ingress, as a Tofino's own and its loopback ports do.

    A recirculated packet occupies one of ``ports`` for as long as it would occupy a link of ``rate_bps``, and waits for it in a
    drop-tail queue of its own. ``spread``: each packet takes the port after that of the packet before (as the BIER prototype for
    the Tofino does, IEEE Access 9, 2021, section IV-C), or the port of a hash of its first 64 bytes.
    """

    ports: int = Field(default=1, ge=1, le=256)
    rate_bps: RateBps
    queue_bytes: Amount | None = None
    queue_packets: Amount | None = None
    spread: Literal["round-robin", "hash"] = "round-robin"

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.queue_packets is not None and self.queue_bytes is not None:
            raise ValueError("give queue_bytes or queue_packets, not both")
        return self


class Queueing(Parameters):
    """The queues in which packets of a switch wait.

    ``link``: at the links, behind egress. ``traffic_manager``: in queues between ingress and egress, of which each port has
    ``queues``, the ``priority`` of v1model saying which. ``auto``: the latter if the program reads queue depths or times, or sets
    the priority, or if there is a ``queue``, ``by_priority`` or ``recirculation``. Each queue holds what the port's link would,
    unless ``queue``, or ``by_priority`` for single ones, says otherwise. Recirculated packets go through the ports of
    ``recirculation``, behind queues of 150 kB if it says nothing else, or at once if there are none.
    """

    mode: Literal["auto", "link", "traffic_manager"] = "auto"
    queues: int = Field(default=8, ge=1, le=8)
    queue: QueueFields | None = None
    by_priority: dict[int, QueueFields] = {}
    recirculation: Recirculation | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if any(not 0 <= priority < self.queues for priority in self.by_priority):
            raise ValueError(f"by_priority has a queue that is not among 0 to {self.queues - 1}")
        if self.mode == "link" and (given := sorted(self.model_fields_set - {"mode"})):
            raise ValueError(f"{given[0]} is of a traffic manager, and mode is 'link'")
        return self


class Processor(Parameters):
    """The processor of a software switch: it takes packets one by one, from whatever port, ``packets_per_s`` on average.

    ``service``: each takes the same time, or an exponentially distributed one. While it is busy ``queue_packets`` wait; packets
    that come then are dropped and counted (``queue_drops`` of the node). Tables are those of the end of a packet's time.
    """

    packets_per_s: float = Field(ge=0.001, le=1e9)
    service: Literal["constant", "exponential"] = "constant"
    queue_packets: Amount


def description(link: Link, traces: Traces, headers: Sequence[SequenceHeader] = ()) -> dict[str, Any]:
    """Return a link as the native core takes it: its ends, their detectors, and the parameters of each direction.

    ``traces``: of the network that the link is in; ``headers``: those that its controllers declare, for ordering functions without
    headers of their own.
    """
    own = Direction.model_fields.keys()
    found = link.model_dump(exclude={"cost", "reverse", *own})
    found["a_to_b"] = parameters(link, own, traces, headers)
    found["b_to_a"] = None if link.reverse is None else parameters(reversed_link(link), own, traces, headers)
    return found


def parameters(
    direction: Direction, names: Iterable[str], traces: Traces, headers: Sequence[SequenceHeader] = ()
) -> dict[str, Any]:
    """Return parameters of a direction as keywords of the native core: without those that are None, with loss traces as texts."""
    found = direction.model_dump(include=set(names))
    found = {name: value for name, value in found.items() if value is not None}
    if "queue_packets" in found:
        found.pop("queue_bytes", None)
    if isinstance(loss := found.get("loss"), dict) and loss.get("file") is not None:
        loss["file"] = traces.text(loss["file"])
    if (ordering := found.get("ordering")) is not None and ordering["headers"] is None:
        ordering["headers"] = [header.model_dump() for header in headers]
    return found


def reversed_link(link: Link) -> Link:
    """Return the link with the parameters that its ``reverse`` gives in place of its own. The link must have a ``reverse``."""
    assert link.reverse is not None
    given = {
        name: value for name in link.reverse.model_fields_set if (value := getattr(link.reverse, name)) is not None
    }
    if "queue_bytes" in given:
        given["queue_packets"] = None
    if {"red", "mark_above"} & given.keys():
        given = {"red": None, "mark_above": None, **given}
    return link.model_copy(update=given)


def link_towards(link: Link, node: str) -> Link:
    """Return the link with the parameters of the direction towards ``node``, one of its ends."""
    return link if link.b == node or link.reverse is None else reversed_link(link)


def describe_queue(link: Queue) -> str:
    """Return the queue's size in kB or packets as a short text, with RED or step marking if the queue has it."""
    size = f"{(link.queue_bytes or 0) / 1000:g} kB" if link.queue_packets is None else f"{link.queue_packets} packets"
    return size + (" RED" if link.red else "") + (" step" if link.mark_above else "")


def describe_loss(link: Direction) -> str:
    """Return the link's probability of loss or the name of its loss model as a short text; empty if nothing is lost."""
    if isinstance(link.loss, int | float):
        return f"{link.loss:g}" if link.loss else ""
    return str(link.loss.model)
