//! Failures at random: a link, a direction or a node works for a time, fails, is repaired, and so on. It does not know what a
//! failure does; `network` does.
//!
//! Each thing that fails draws from a stream of its own, named after it, one number per failure and one per repair, and
//! only the next change is scheduled. So what fails when depends on the seed and on the thing alone: letting another one fail
//! changes nothing for those that are there.
//!
//! A failure begins after the start and before the end; the repair of the last one may come later. Changes made otherwise
//! ([`Network::set_link_state`] and the like) are independent: the last one counts. So are those of a link and of a node at its
//! end, which both must work.

use crate::error::{NetError, out_of_range};
use crate::event::Event;
use crate::link::LinkDirection;
use crate::network::Network;
use crate::random::Stream;
use crate::{LinkId, NodeId};
use std::sync::Arc;

/// What fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureTarget {
    /// Both directions of a link.
    Link(LinkId),
    /// One of them.
    Direction(LinkId, LinkDirection),
    /// A node, by name.
    Node(String),
}

/// How long something lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duration {
    /// Always the same.
    Fixed {
        /// How long.
        time_ps: u64,
    },
    /// Exponentially distributed, rounded to picoseconds, at least one.
    Exponential {
        /// How long on average.
        mean_ps: u64,
    },
}

/// Failures of one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RandomFailures {
    /// What fails.
    pub target: FailureTarget,
    /// From the start or a repair to the next failure; the mean is the MTBF (some say MTTF: the repair is not part of it).
    pub time_to_failure: Duration,
    /// From a failure to its repair; the mean is the MTTR.
    pub time_to_repair: Duration,
    /// No failure begins before.
    pub start_ps: u64,
    /// None begins then or later.
    pub end_ps: Option<u64>,
}

/// A failure or repair that was drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureRecord {
    /// When.
    pub time_ps: u64,
    /// What: a node's name; `a:1-b:2` of a link; `a:1>b:2` of a direction.
    pub what: Arc<str>,
    /// Whether it was repaired.
    pub up: bool,
}

/// One thing and its failures.
#[derive(Debug)]
pub(crate) struct FailureProcess {
    what: Arc<str>,
    change: Change,
    failures: RandomFailures,
    down: bool,
    stream: Stream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Directions([u32; 2]),
    Node(NodeId),
}

impl Change {
    fn overlaps(self, other: Change) -> bool {
        match (self, other) {
            (Change::Directions(some), Change::Directions(others)) => {
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

impl Network {
    /// Lets something fail and be repaired at random. A thing, and a direction of a link, fails in one such way only.
    pub fn fail_randomly(&mut self, failures: &RandomFailures) -> Result<(), NetError> {
        failures.time_to_failure.check("the time to failure")?;
        failures.time_to_repair.check("the time to repair")?;
        self.check_not_past(failures.start_ps)?;
        let (what, change) = self.failing(&failures.target)?;
        let known = &self.failure_processes;
        if known.iter().any(|other| other.change.overlaps(change)) {
            return Err(out_of_range("what fails at random", "given once"));
        }
        let number = known.len() as u32;
        let mut process = FailureProcess {
            stream: Stream::named(self.seed(), &format!("{what}/failures")),
            what: what.into(),
            change,
            failures: failures.clone(),
            down: false,
        };
        if let Some(at_ps) = process.next(failures.start_ps) {
            self.events
                .push(at_ps, Event::RandomFailure { process: number });
        }
        self.failure_processes.push(process);
        Ok(())
    }

    /// The failures and repairs that were drawn and have happened, in order.
    pub fn random_failures(&self) -> &[FailureRecord] {
        &self.failure_records
    }

    fn failing(&self, target: &FailureTarget) -> Result<(String, Change), NetError> {
        Ok(match target {
            FailureTarget::Node(name) => (name.clone(), Change::Node(self.node_id(name)?)),
            FailureTarget::Direction(link, direction) => {
                let direction = self.direction(*link, *direction)?;
                let what = self.direction_name(direction);
                (what, Change::Directions([direction; 2]))
            }
            FailureTarget::Link(link) => {
                let first = self.direction(*link, LinkDirection::AToB)?;
                let what = self.direction_name(first).replace('>', "-");
                (what, Change::Directions([first, first + 1]))
            }
        })
    }

    /// The next change of something that fails at random.
    pub(crate) fn random_failure(&mut self, number: u32) {
        let now_ps = self.now_ps;
        let process = &mut self.failure_processes[number as usize];
        process.down = !process.down;
        let up = !process.down;
        self.failure_records.push(FailureRecord {
            time_ps: now_ps,
            what: process.what.clone(),
            up,
        });
        let change = process.change;
        if let Some(at_ps) = process.next(now_ps) {
            self.events
                .push(at_ps, Event::RandomFailure { process: number });
        }
        self.dispatch(match change {
            Change::Directions(directions) => Event::DirectionState { directions, up },
            Change::Node(node) => Event::NodeState { node, up },
        });
    }
}

impl FailureProcess {
    /// When the next change is, if there is one.
    fn next(&mut self, now_ps: u64) -> Option<u64> {
        let duration = match self.down {
            true => self.failures.time_to_repair,
            false => self.failures.time_to_failure,
        };
        let at_ps = now_ps.checked_add(duration.draw(&mut self.stream))?;
        let over = !self.down && self.failures.end_ps.is_some_and(|end_ps| at_ps >= end_ps);
        (!over).then_some(at_ps)
    }
}
