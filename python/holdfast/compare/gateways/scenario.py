"""The input of a comparison of gateways: subscribers, their traffic, what fails and when. It is the same for every mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import Field

from holdfast.compare import inputs
from holdfast.compare.inputs import ALL, checked
from holdfast.errors import ScenarioError
from holdfast.parameters import Checked

FAILURES: Final = {
    "plane": "the switch that forwards sessions is off, or one of two; it comes back without its tables",
    "balancer": "the switch at the access link is off; it comes back without its tables",
    "auth": "the switch through which subscribers reach the control plane is off; it comes back without its tables",
    "controller": "a control plane is killed, and started again with what it has on disk",
    "radius": "the RADIUS server does not answer",
    "access": "a link between access node and gateway is down",
}

TIMES: Final = {"before_s": 8.0, "down_s": 8.0, "after_s": 12.0}

DIAL_S: Final = 2.0
"""All subscribers dial within that time from the beginning, in seconds."""

TRAFFIC_S: Final = 4.0
"""The time at which the subscribers' traffic begins, in seconds."""

QUIET_S: Final = 6.0
"""The earliest time of a failure."""

BIN_MS: Final = 100
"""The width of a curve's bins."""

MOST_PACKETS: Final = 20_000_000
"""The most packets of all subscribers in a run."""


MOST_NEWCOMERS: Final = 10_000


class Subscribers(Checked):
    """Their number and their traffic.

    ``packets_per_s``: UDP of each subscriber in each direction. ``newcomers_per_s``: others that dial while something is down.
    ``keepalive_s``: of LCP echoes, on both sides; a session whose peer has not answered three in a row is over.
    """

    subscribers: int = Field(default=50, ge=2, le=400)
    packets_per_s: float = Field(default=50.0, ge=1, le=10_000)
    newcomers_per_s: float = Field(default=4.0, ge=0, le=50)
    keepalive_s: float = Field(default=1.0, ge=0.2, le=600)


class Scenario(inputs.Scenario):
    """A comparison's givens, without the mechanisms and the seeds."""

    subscribers: Subscribers
    executor: Literal["jit", "interpreter"] = "jit"

    @property
    def newcomers(self) -> list[float]:
        """When each newcomer dials, in seconds."""
        count = int(self.subscribers.newcomers_per_s * self.times.down_s)
        return [self.times.failure_s + number / self.subscribers.newcomers_per_s for number in range(count)]

    @property
    def bins(self) -> int:
        """The number of bins of a curve."""
        return -(-round(self.times.end_s * 1000) // BIN_MS)


def build(
    *,
    fail: str,
    when: Mapping[str, float | None],
    subscribers: Mapping[str, float | None],
    executor: Literal["jit", "interpreter"] = "jit",
) -> Scenario:
    """Build a scenario from the command's options; raise :class:`ScenarioError` with one sentence for a wrong one.

    ``when``: fields of :class:`holdfast.compare.inputs.Times`, in the units of their names. ``subscribers``: fields of
    :class:`Subscribers`. Fields that are None get their defaults.
    """
    if fail != ALL and fail not in FAILURES:
        raise ScenarioError(
            f"there is no failure {fail!r} of gateways (known: {', '.join(FAILURES)}; {ALL} is each in turn)"
        )
    times = inputs.times({**TIMES, **{name: value for name, value in when.items() if value is not None}})
    if times.failure_s < QUIET_S:
        raise ScenarioError(
            f"--before-s: {times.failure_s:g} is too early for gateways: subscribers dial in the first {DIAL_S:g}"
            f" seconds and have traffic from {TRAFFIC_S:g} on; give at least {QUIET_S:g}"
        )
    crowd = checked(Subscribers, subscribers)
    packets = 2 * crowd.subscribers * crowd.packets_per_s * (times.end_s - TRAFFIC_S)
    if packets > MOST_PACKETS:
        raise ScenarioError(
            f"{crowd.subscribers} subscribers would send and receive {packets:.0f} packets, and a run has at most {MOST_PACKETS}:"
            " give fewer subscribers, a lower --packets-per-s or shorter times"
        )
    failures = tuple(FAILURES) if fail == ALL else (fail,)
    found = Scenario(times=times, failures=failures, subscribers=crowd, executor=executor)
    if len(found.newcomers) > MOST_NEWCOMERS:
        raise ScenarioError(
            f"{len(found.newcomers)} newcomers would dial in {times.down_s:g} s, and a run has at most {MOST_NEWCOMERS}:"
            " give a lower --newcomers-per-s or --down-s"
        )
    return found
