"""The input of a comparison of gateways: subscribers, their traffic, what fails and when. It is the same for every mechanism.

It is written beside the results under a name that is a hash of all of it, and the processes that run read it from there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

from pydantic import Field, ValidationError

from holdfast import whole_files
from holdfast.compare.scenario import ALL, NO_FAILURE, Times
from holdfast.compare.scenario import times as checked_times
from holdfast.errors import ScenarioError, first_mistake
from holdfast.parameters import Checked

NAME: Final = "bng"
"""Of the scenario, for ``--scenario``."""

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
"""Within that time from the beginning, all subscribers dial."""

TRAFFIC_S: Final = 4.0
"""When their traffic begins."""

QUIET_S: Final = 6.0
"""The earliest time of a failure."""

DRAIN_S: Final = 0.5
"""For packets that are still on their way when traffic ends."""

BIN_MS: Final = 100
"""Of the curves."""

MOST_PACKETS: Final = 20_000_000
"""Of all subscribers in a run."""


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


class Written(Checked):
    """The scenario as a run reads it."""

    times: Times
    subscribers: Subscribers
    executor: Literal["jit", "interpreter"] = "jit"

    def write(self, folder: Path) -> Path:
        """Write this scenario to a file in ``folder`` whose name is a hash of its content, and return the path."""
        text = self.model_dump_json(indent=1)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{NAME}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
        whole_files.write_text(path, text)
        return path

    @property
    def newcomers(self) -> list[float]:
        """When each newcomer dials, in seconds."""
        count = int(self.subscribers.newcomers_per_s * self.times.down_s)
        return [self.times.failure_s + number / self.subscribers.newcomers_per_s for number in range(count)]

    @property
    def bins(self) -> int:
        """The number of bins of a curve."""
        return -(-round(self.times.end_s * 1000) // BIN_MS)


@dataclass(frozen=True)
class Scenario:
    """A comparison's givens, without the mechanisms and the seeds."""

    given: Written
    failures: tuple[str, ...]

    @property
    def times(self) -> Times:
        """The times at which something fails and is repaired."""
        return self.given.times

    @property
    def subscribers(self) -> Subscribers:
        """The subscribers behind the gateways."""
        return self.given.subscribers


@lru_cache(maxsize=2)
def read(path: str) -> Written:
    """Return the scenario in a file that :meth:`Written.write` has written."""
    return Written.model_validate_json(Path(path).read_text(encoding="utf-8"))


def build(
    *,
    fail: str,
    when: Mapping[str, float | None],
    subscribers: Mapping[str, float | None],
    executor: Literal["jit", "interpreter"] = "jit",
) -> Scenario:
    """Build a scenario from the command's options; raise :class:`ScenarioError` with one sentence for a wrong one.

    ``when``: fields of :class:`Times`, in the units of their names.
    """
    if fail != ALL and fail not in FAILURES:
        raise ScenarioError(
            f"there is no failure {fail!r} in scenario {NAME} (known: {', '.join(FAILURES)}; {ALL} is each in turn)"
        )
    times = checked_times({**TIMES, **_given(when)})
    if times.failure_s < QUIET_S:
        raise ScenarioError(
            f"--before-s: {times.failure_s:g} is too early for scenario {NAME}: subscribers dial in the first {DIAL_S:g}"
            f" seconds and have traffic from {TRAFFIC_S:g} on; give at least {QUIET_S:g}"
        )
    try:
        crowd = Subscribers.model_validate(_given(subscribers))
    except ValidationError as error:
        raise ScenarioError(f"--{first_mistake(error).replace('_', '-')}") from None
    packets = 2 * crowd.subscribers * crowd.packets_per_s * (times.end_s - TRAFFIC_S)
    if packets > MOST_PACKETS:
        raise ScenarioError(
            f"{crowd.subscribers} subscribers would send and receive {packets:.0f} packets, and a run has at most {MOST_PACKETS}:"
            " give fewer subscribers, a lower --packets-per-s or shorter times"
        )
    given = Written(times=times, subscribers=crowd, executor=executor)
    if len(given.newcomers) > MOST_NEWCOMERS:
        raise ScenarioError(
            f"{len(given.newcomers)} newcomers would dial in {times.down_s:g} s, and a run has at most {MOST_NEWCOMERS}:"
            " give a lower --newcomers-per-s or --down-s"
        )
    failures = tuple(FAILURES) if fail == ALL else (fail,)
    return Scenario(given, failures)


def _given(options: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in options.items() if value is not None}


__all__ = ["FAILURES", "NAME", "NO_FAILURE", "Scenario", "Subscribers", "Written", "build", "read"]
