"""Traffic of modelled hosts, as data for a network before it runs.

``family``: over IPv4 or IPv6; for IPv6 both hosts have an IPv6 address.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from holdfast.errors import ParameterError
from holdfast.parameters import LONGEST_S, SHORTEST_MS, Keywords, Milliseconds, Parameters, Seconds, core_keywords

Count: TypeAlias = Annotated[int, Field(ge=1, lt=1 << 32)]
"""A number of segments."""

ByteCount: TypeAlias = Annotated[int, Field(ge=1, lt=1 << 62)]
"""A number of bytes: of a window, or of a transfer."""

Family = Literal["ipv4", "ipv6"]
"""The version of IP that traffic uses."""

MembershipVersion: TypeAlias = Literal["igmpv1", "igmpv2", "igmpv3", "mldv1", "mldv2"]
"""The version of the protocol by which a host tells its router the groups it wants (RFC 1112, 2236, 3376; RFC 2710, 3810)."""

CongestionControl: TypeAlias = Literal["newreno", "cubic", "bbr", "dctcp", "hpcc"]

KERNEL_CONGESTION: dict[CongestionControl, str] = {"newreno": "reno", "cubic": "cubic", "bbr": "bbr", "dctcp": "dctcp"}
"""The names that Linux has for those of the congestion controls that it implements."""

KERNEL_TOO = object()
"""Marks an option that is also available with the Linux kernel's TCP."""


class UdpStream(Parameters):
    """UDP with a sequence number and the sending time in every packet.

    ``destination`` is a host, or the IPv4 address of a multicast group. Then what arrives is kept for each host:
    ``results.packets(core, flow, host=...)`` and the core's ``statistics(flow, host=...)`` read it.
    ``payload_bytes`` counts from behind the UDP header; its beginning is the flow, the sequence number and the time.
    ``spacing``: at a constant rate, or as a Poisson process of this mean rate, drawn from the network's seed.

    ``log_packets``: keep what became of each packet (32 bytes). Without, there are the core's ``statistics`` alone, without
    percentiles, and memory does not grow with packets. It does with runs of lost ones, of which a receiver remembers 65,536: all is
    exact while no more are missing. Beyond, packets of the oldest run count as lost for good, and as duplicated and ``undecided``
    if they arrive after all. A Poisson process is always logged.
    """

    source: str
    destination: str
    family: Family = "ipv4"
    packets_per_s: float = Field(default=1000.0, ge=1e-7, le=100_000_000)
    spacing: Literal["constant", "poisson"] = "constant"
    payload_bytes: int = Field(default=1000, ge=28, le=9000)
    start_s: Seconds = 0.0
    stop_s: Seconds = Field(gt=0)
    source_port: int = Field(default=5001, ge=1, le=65535)
    destination_port: int = Field(default=5001, ge=1, le=65535)
    log_packets: bool = True

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.spacing == "poisson" and not self.log_packets:
            raise ValueError("log_packets=False belongs to constant spacing")
        _check_times(self.start_s, self.stop_s)
        return self

    @property
    def is_multicast(self) -> bool:
        """True if the destination is a multicast group, and False if it is a host."""
        try:
            return ip_address(self.destination).is_multicast
        except ValueError:
            return False


class Ping(Parameters):
    """ICMP echo requests at a fixed interval, answered by the destination."""

    source: str
    destination: str
    family: Family = "ipv4"
    interval_ms: float = Field(default=100.0, ge=SHORTEST_MS, le=LONGEST_S * 1000)
    payload_bytes: int = Field(default=56, ge=16, le=9000)
    start_s: Seconds = 0.0
    stop_s: Seconds = Field(gt=0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_times(self.start_s, self.stop_s)
        return self


class TcpOptions(Parameters):
    """Choices of both ends of a TCP connection; the preset gives the others. An option is declared here, and in the core.

    ``standard`` is what the current RFCs recommend (``mss`` 1448: 1500 bytes in IPv4, with timestamps). ``ns2-2001`` is the
    simulator of that year with its defaults (``mss`` 960: 1000 bytes in IPv4): a window of 20 packets, an initial window of 2,
    clock ticks of 0.1 s, NewReno that restarts its timer at every partial acknowledgment, no delayed acknowledgments. Over IPv6
    both presets' ``mss`` is 20 less, for packets of the same length.

    ``recovery``: the two forms of NewReno (RFC 6582), selective acknowledgments (RFC 6675; ``-prr``: with RFC 6937), RACK-TLP
    (RFC 8985). ``increase``: by acknowledged bytes (RFC 3465, of which one acknowledgment counts for at most
    ``slow_start_limit_segments`` in slow start) or by acknowledgments. ``newreno_exit``: which of RFC 6582's two windows follows
    a recovery. ``hystart``: HyStart++ (RFC 9406), or the older form as Linux has it. ``reduction``: congestion halves what is in
    flight (RFC 5681) or the window (Linux). ``cubic_searches``: before the first loss CUBIC grows by 5 % per round trip at least
    (Linux). ``delayed_ack_ms``: 0 is none; ``quick_ack_segments``: so many at the beginning are acknowledged one by one all the
    same. ``rto_*``: RFC 6298.

    ``dctcp`` (RFC 8257) needs ``ecn`` and ``delayed_ack_ms`` 0. ``hpcc`` (Li and others, 2019) needs selective acknowledgments, and
    switches that put the loads of their links into packets (:func:`holdfast.apps.telemetry.compile_telemetry` with ``load``): data
    segments and acknowledgments have 16 bytes of INT headers and 8 per hop. ``hpcc_rate_bps`` is the rate of the sender's link,
    ``hpcc_base_rtt_ms`` the round trip of an empty network, both required; W_AI is 80 bytes, eta (``hpcc_utilisation``) 0.95 and
    maxStage (``hpcc_stages``) 5 if nothing else is said.
    """

    preset: Literal["standard", "ns2-2001"] = "standard"
    mss: Annotated[int | None, KERNEL_TOO] = Field(default=None, ge=1, le=65_495)
    initial_window_segments: Count | None = None
    window_limit_bytes: Annotated[ByteCount | None, KERNEL_TOO] = None
    initial_ssthresh_bytes: ByteCount | None = None
    congestion: Annotated[CongestionControl | None, KERNEL_TOO] = None
    recovery: Literal["newreno-impatient", "newreno-slow-but-steady", "sack", "sack-prr", "rack-tlp"] | None = None
    newreno_exit: Literal["at-most-flight", "ssthresh"] | None = None
    cubic_tcp_friendly: bool | None = None
    cubic_fast_convergence: bool | None = None
    hpcc_rate_bps: int | None = Field(default=None, ge=1000, le=1_000_000_000_000)
    hpcc_base_rtt_ms: float | None = Field(default=None, gt=0, le=10_000)
    hpcc_increment_bytes: int | None = Field(default=None, ge=1, le=1 << 30)
    hpcc_utilisation: float | None = Field(default=None, gt=0, le=1)
    hpcc_stages: int | None = Field(default=None, ge=0, lt=1 << 32)
    increase: Literal["per-ack", "per-byte"] | None = None
    slow_start_limit_segments: Count | None = None
    reduction: Literal["flight", "window"] | None = None
    cubic_searches: bool | None = None
    hystart: bool | Literal["classic"] | None = None
    duplicate_threshold: Count | None = None
    limited_transmit: bool | None = None
    window_validation: bool | None = None
    nagle: Annotated[bool | None, KERNEL_TOO] = None
    ecn: bool | None = None
    timestamps: bool | None = None
    delayed_ack_ms: float | None = Field(default=None, ge=0, le=500)
    quick_ack_segments: int | None = Field(default=None, ge=0, lt=1 << 32)
    rto_granularity_ms: Milliseconds | None = Field(default=None, gt=0)
    rto_minimum_ms: Milliseconds | None = None
    rto_maximum_ms: Milliseconds | None = Field(default=None, gt=0)
    rto_initial_ms: Milliseconds | None = Field(default=None, gt=0)
    timeout_limit: Count | None = None

    @classmethod
    def linux(cls, congestion: Literal["reno", "cubic"], *, family: Family = "ipv4") -> Self:
        """Return Linux's defaults, as far as there are options for them.

        ``family``: the version of IP; the segment size is that of packets of 1500 bytes.

        The initial window has 10 segments. Losses are found with selective acknowledgments (RACK-TLP), with PRR; timestamps are on.
        Acknowledgments are delayed by 40 ms, except for the first 16 segments. (Linux also sends them at once while it opens its
        receive window; with a large receive buffer, that is many more segments.) The retransmission timeout is the smoothed round
        trip plus at least 200 ms, the granularity of RFC 6298; it is not just at least 200 ms in all. CUBIC ends slow start early
        by round-trip times (HyStart), and then grows by 5 % per round trip at least until the first loss; Reno does neither. Raises
        :class:`ParameterError` for another ``congestion``.
        """
        if congestion not in ("reno", "cubic"):
            raise ParameterError("TcpOptions", "congestion", f"Linux has 'reno' and 'cubic' here, not {congestion!r}")
        cubic = congestion == "cubic"
        return cls(
            mss={"ipv4": 1448, "ipv6": 1428}[family],
            initial_window_segments=10,
            congestion="cubic" if cubic else "newreno",
            recovery="rack-tlp",
            reduction="window",
            cubic_searches=True if cubic else None,
            hystart="classic" if cubic else False,
            timestamps=True,
            delayed_ack_ms=40.0,
            quick_ack_segments=16,
            rto_granularity_ms=200.0,
            rto_minimum_ms=200.0,
            rto_maximum_ms=120_000.0,
            rto_initial_ms=1000.0,
        )

    def given(self) -> list[str]:
        """Return the names of the options that are not left to the preset."""
        return [name for name in type(self).model_fields if name != "preset" and getattr(self, name) is not None]

    def changed(self, changes: TcpOptions) -> Self:
        """Return these options, with each option that ``changes`` gives in place of the own one."""
        return self.model_copy(update={name: getattr(changes, name) for name in changes.given()})

    @classmethod
    def kernel_too(cls) -> list[str]:
        """Return the names of the options that Linux's own TCP has, too."""
        return [name for name, field in cls.model_fields.items() if KERNEL_TOO in field.metadata]

    def in_core_units(self) -> Keywords:
        """Return the options that are not left to the preset as keyword arguments of the native core."""
        return core_keywords(self, self.given())


class TcpTransfer(Parameters):
    """A TCP connection: ``source`` connects and writes, ``destination`` receives.

    ``bulk`` always has something to send; ``transfer`` sends ``transfer_bytes`` and closes; ``on-off`` sends bursts of
    ``transfer_bytes``, with ``silence_ms`` after each was acknowledged, both exponentially distributed if ``exponential`` (then
    these are the means). At ``stop_s`` the application stops: data not sent by then never are, and the connection closes. A
    burst's short last segment waits for the acknowledgment of those before it (Nagle's algorithm, which ``options`` can switch
    off), and that may be a delayed one. Ports that are not given are chosen: 5001 at the server, from 40000 at the client.
    """

    source: str
    destination: str
    family: Family = "ipv4"
    application: Literal["bulk", "transfer", "on-off"] = "bulk"
    transfer_bytes: int = Field(default=0, ge=0, lt=1 << 62)
    silence_ms: Milliseconds = 0.0
    exponential: bool = False
    start_s: Seconds = 0.0
    stop_s: Seconds | None = Field(default=None, gt=0)
    source_port: int | None = Field(default=None, ge=1, le=65535)
    destination_port: int = Field(default=5001, ge=1, le=65535)
    options: TcpOptions = TcpOptions()
    dscp: int = Field(default=0, ge=0, le=63)
    goodput_bin_ms: Milliseconds = Field(default=100.0, gt=0)
    log_window: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.transfer_bytes > 0) != (self.application != "bulk"):
            raise ValueError("transfer_bytes belongs to the applications transfer and on-off, which need it")
        if (self.silence_ms > 0) != (self.application == "on-off"):
            raise ValueError("silence_ms belongs to the application on-off, which needs it")
        _check_times(self.start_s, self.stop_s)
        return self


Traffic = UdpStream | Ping


def _check_times(start_s: float, stop_s: float | None) -> None:
    if stop_s is not None and stop_s < start_s:
        raise ValueError(f"stop_s ({stop_s:g}) is before start_s ({start_s:g})")
