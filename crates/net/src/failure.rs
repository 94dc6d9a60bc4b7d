//! Failures at random: a link, a direction or a node works for a time, fails, is repaired, and so on. It does not know what a
//! failure does; `network` does.
//!
//! Each thing that fails draws from a stream of its own, named after it, one number per failure and one per repair, and
//! only the next change is scheduled. So what fails when depends on the seed and on the thing alone: letting another one fail
//! changes nothing for those that are there.
//!
//! A failure begins after the start and before the end; the repair of the last one may come later. Changes made otherwise
//! ([`crate::Network::set_link_state`] and the like) are independent: the last one counts. So are those of a link and of a node at its
//! end, which both must work.

use crate::NodeId;
use crate::error::{NetError, out_of_range};
use crate::link::change::FailureTarget;
use crate::random::Stream;
use engine::Time;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Distribution {
    Fixed,
    Exponential,
}

impl From<(Distribution, u64)> for Duration {
    fn from((distribution, ps): (Distribution, u64)) -> Duration {
        match distribution {
            Distribution::Fixed => Duration::Fixed { time_ps: ps },
            Distribution::Exponential => Duration::Exponential { mean_ps: ps },
        }
    }
}

/// The distribution of a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "(Distribution, u64)")]
pub enum Duration {
    /// A duration that is always the same.
    Fixed {
        /// The duration.
        time_ps: u64,
    },
    /// An exponentially distributed duration, rounded to picoseconds, at least one.
    Exponential {
        /// The mean duration.
        mean_ps: u64,
    },
}

/// Random failures of one link, direction or node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomFailures {
    /// The thing that fails.
    pub target: FailureTarget,
    /// The time from the start or a repair to the next failure; its mean is the MTBF (some say MTTF: the repair is not
    /// part of it).
    pub time_to_failure: Duration,
    /// The time from a failure to its repair; its mean is the MTTR.
    pub time_to_repair: Duration,
    /// No failure begins before this time.
    #[serde(deserialize_with = "crate::units::deserialize")]
    pub start_ps: Time,
    /// No failure begins at this time or later.
    #[serde(deserialize_with = "crate::units::deserialize_some")]
    pub end_ps: Option<Time>,
}

/// A failure or repair that was drawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailureRecord {
    /// When it happened.
    #[serde(serialize_with = "crate::units::serialize")]
    pub time_ps: Time,
    /// The node or link that failed or was repaired: a node's name; `a:1-b:2` of a link; `a:1>b:2` of a direction.
    pub what: Arc<str>,
    /// True for a repair, false for a failure.
    pub up: bool,
}

/// The random failures of a network, and a record of those that have happened.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    processes: Vec<FailureProcess>,
    pub(crate) records: Vec<FailureRecord>,
}

impl Failures {
    /// Adds random failures of a link, direction or node, which is given with its name. Returns the number of the
    /// process and the time of the first failure; `None` if none is before the end of failures. Fails if the durations
    /// are out of range, or something already fails at random that is the same or part of the other.
    pub(crate) fn add(
        &mut self,
        (what, change): (String, Failing),
        failures: &RandomFailures,
        seed: u64,
    ) -> Result<(u32, Option<Time>), NetError> {
        failures.time_to_failure.check("the time to failure")?;
        failures.time_to_repair.check("the time to repair")?;
        let mut known = self.processes.iter();
        if known.any(|other| other.change.overlaps(change)) {
            return Err(out_of_range("what fails at random", "given once"));
        }
        let mut process = FailureProcess {
            stream: Stream::named(seed, &format!("{what}/failures")),
            what: what.into(),
            change,
            failures: failures.clone(),
            down: false,
        };
        let first_ps = process.next(failures.start_ps);
        self.processes.push(process);
        Ok((self.processes.len() as u32 - 1, first_ps))
    }

    /// Switches a failure process between up and down at `now_ps`, and records the failure or repair. Returns what fails or is
    /// repaired, whether it is up from now on, and the time of its next change; `None` if there is none.
    pub(crate) fn next_change(
        &mut self,
        number: u32,
        now_ps: Time,
    ) -> (Failing, bool, Option<Time>) {
        let process = &mut self.processes[number as usize];
        process.down = !process.down;
        let up = !process.down;
        self.records.push(FailureRecord {
            time_ps: now_ps,
            what: process.what.clone(),
            up,
        });
        (process.change, up, process.next(now_ps))
    }
}

/// The random failures of one link, direction or node.
#[derive(Debug)]
struct FailureProcess {
    what: Arc<str>,
    change: Failing,
    failures: RandomFailures,
    down: bool,
    stream: Stream,
}

/// A link, direction or node that fails or is repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failing {
    Directions([u32; 2]),
    Node(NodeId),
}

impl Failing {
    fn overlaps(self, other: Failing) -> bool {
        match (self, other) {
            (Failing::Directions(some), Failing::Directions(others)) => {
                some.iter().any(|direction| others.contains(direction))
            }
            _ => self == other,
        }
    }
}

impl Duration {
    fn check(self, parameter: &'static str) -> Result<(), NetError> {
        let (Duration::Fixed { time_ps: ps } | Duration::Exponential { mean_ps: ps }) = self;
        match ps {
            0 => Err(out_of_range(parameter, "above zero")),
            _ => Ok(()),
        }
    }

    fn draw(self, stream: &mut Stream) -> u64 {
        match self {
            Duration::Fixed { time_ps } => time_ps,
            Duration::Exponential { mean_ps } => stream.exponential(mean_ps),
        }
    }
}

impl FailureProcess {
    /// Draws the time of the next failure or repair after `now_ps`; `None` for a failure that would be at or after the
    /// end of failures.
    fn next(&mut self, now_ps: Time) -> Option<Time> {
        let duration = match self.down {
            true => self.failures.time_to_repair,
            false => self.failures.time_to_failure,
        };
        let at_ps = now_ps + duration.draw(&mut self.stream);
        let over = !self.down && self.failures.end_ps.is_some_and(|end_ps| at_ps >= end_ps);
        (!over).then_some(at_ps)
    }
}
