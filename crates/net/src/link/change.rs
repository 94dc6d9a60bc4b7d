//! Changes while a network runs: their description, and what other parameters of a direction do to packets that wait and are under way.
//! It does not know when they change, nor what becomes of a link or a node that fails (`network::failures` does).
//!
//! The packet that is being sent goes on at the rate with which it began, also one that begins at the very instant of the change; those
//! that wait are sent at the new rate, one after the other, and no queue loses any. Packets whose transmission has begun keep their delay.
//! Without jitter, packets arrive in the order in which they were sent, also across a change: one that would overtake those under way
//! arrives right with the last of them. With jitter, one may overtake, as always.
//!
//! Loss and jitter of a packet are drawn when the queue takes it, so other models of them count for packets that come afterwards. They
//! begin at their beginning, and the direction's random streams go on.

use super::{Direction, Disturbance, Jitter, LinkDirection, Loss, check_delay, check_rate};
use crate::LinkId;
use crate::error::NetError;
use crate::serialisation::serialisation_ps;
use crate::units::Milliseconds;
use engine::Time;
use serde::Deserialize;

/// The link, direction or node that fails or changes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Target")]
pub enum FailureTarget {
    /// Both directions of a link.
    Link(LinkId),
    /// One direction of a link.
    Direction(LinkId, LinkDirection),
    /// A node, by name.
    Node(String),
}

/// A change of a link, of one of its directions or of a node, at some time. Parameters that are `None` stay as they
/// are.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The link, direction or node that changes.
    pub target: FailureTarget,
    /// The time of the change; now if `None`.
    #[serde(default, deserialize_with = "crate::units::deserialize_some")]
    pub at_ps: Option<Time>,
    /// True if the target works from then on, false if it has failed.
    #[serde(default)]
    pub up: Option<bool>,
    /// True if the link or direction loses everything without a change of its signal.
    #[serde(default)]
    pub silent: Option<bool>,
    /// The rate of each direction's transmitter.
    #[serde(default)]
    pub rate_bps: Option<u64>,
    /// The propagation delay.
    #[serde(default)]
    pub delay_ms: Option<Milliseconds>,
    /// The random time added to the delay.
    #[serde(default)]
    pub jitter: Option<Jitter>,
    /// Which packets are lost on the wire.
    #[serde(default)]
    pub loss: Option<Loss>,
}

impl Change {
    /// Creates a change of `target` at `at_ps`, or now if that is `None`, in which no parameter changes yet.
    pub fn of(target: FailureTarget, at_ps: Option<Time>) -> Change {
        Change {
            target,
            at_ps,
            up: None,
            silent: None,
            rate_bps: None,
            delay_ms: None,
            jitter: None,
            loss: None,
        }
    }

    /// Returns true if the change concerns only the state (`up`), which nodes have, too.
    pub(crate) fn is_of_state(&self) -> bool {
        let state = Change::of(self.target.clone(), self.at_ps);
        *self
            == Change {
                up: self.up,
                ..state
            }
    }

    /// Returns true if the change moves the arrival times of packets that wait in a queue: if rate or delay changes.
    pub(crate) fn moves_arrivals(&self) -> bool {
        self.rate_bps.is_some() || self.delay_ms.is_some()
    }

    /// Checks the parameters of the change. Fails if one is out of range, or if the jitter can be longer in the
    /// negative direction than the delay in this change.
    pub(crate) fn check(&self) -> Result<(), NetError> {
        let delay_ps = self.delay_ms.map_or(0, |delay| delay.0);
        check_rate(self.rate_bps.unwrap_or(1))?;
        check_delay(delay_ps)?;
        self.loss.as_ref().map_or(Ok(()), Loss::check)?;
        (self.jitter.as_ref()).map_or(Ok(()), |jitter| jitter.check(delay_ps))
    }
}

/// The changed link, direction or node as other languages name it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    link: Option<u32>,
    direction: Option<LinkDirection>,
    node: Option<String>,
}

impl TryFrom<Target> for FailureTarget {
    type Error = &'static str;

    fn try_from(target: Target) -> Result<FailureTarget, &'static str> {
        match (target.link.map(LinkId), target.direction, target.node) {
            (Some(link), None, None) => Ok(FailureTarget::Link(link)),
            (Some(link), Some(direction), None) => Ok(FailureTarget::Direction(link, direction)),
            (None, None, Some(node)) => Ok(FailureTarget::Node(node)),
            _ => Err("give a link, a link and a direction, or a node"),
        }
    }
}

impl Direction {
    /// Returns the number of packets that wait at `now_ps` and will not be lost on the wire.
    pub(crate) fn waiting_to_arrive(&mut self, now_ps: Time) -> usize {
        self.settle(now_ps);
        self.waiting.iter().filter(|packet| !packet.lost).count()
    }

    /// Applies a change of silent loss, rate, delay, loss and jitter at `now_ps`. `last_ps` is the arrival time of the
    /// last packet that is on the wire already, if there is one. If rate or delay changes, returns the new arrival
    /// times of the packets that [`Direction::waiting_to_arrive`] counts, in the order in which they are sent; else
    /// nothing.
    pub(crate) fn change(
        &mut self,
        now_ps: Time,
        change: &Change,
        last_ps: Option<Time>,
        seed: u64,
    ) -> Vec<Time> {
        if let Some(rate_bps) = change.rate_bps {
            let idle_since_ps = (self.busy_until_ps <= now_ps).then_some(self.busy_until_ps);
            self.gate.change_rate(now_ps, idle_since_ps, rate_bps);
            self.rate_bps = rate_bps;
            self.size_changed(0);
        }
        let config = &mut *self.config;
        config.rate_bps = change.rate_bps.unwrap_or(config.rate_bps);
        config.delay_ps = change.delay_ms.map_or(config.delay_ps, |delay| delay.0);
        self.delay_ps = config.delay_ps;
        let disturbance = self.disturbance.get_or_insert_with(|| {
            // Its streams are where they would be if it had been there from the beginning: nothing was drawn.
            Disturbance::new(Loss::None, Jitter::None, seed, &self.name)
        });
        disturbance.silent = change.silent.unwrap_or(disturbance.silent);
        if let Some(loss) = &change.loss {
            config.loss = loss.clone();
            disturbance.loss.follow(loss);
        }
        if let Some(jitter) = &change.jitter {
            config.jitter = jitter.clone();
            disturbance.jitter.follow(jitter);
        }
        disturbance.not_before_ps = last_ps.unwrap_or_default();
        if !change.moves_arrivals() {
            return Vec::new();
        }
        // The first of those that wait begins when the one before it has been sent, at the old rate.
        let mut start_ps = (self.waiting.front()).map_or(self.busy_until_ps, |it| it.start_ps);
        let mut arrivals_ps = Vec::new();
        for packet in &mut self.waiting {
            packet.start_ps = start_ps;
            start_ps += serialisation_ps(packet.frame_bytes as usize, self.rate_bps);
            if !packet.lost {
                let at_ps = disturbance.arrival_ps(start_ps, self.delay_ps, packet.jitter_ps);
                disturbance.not_before_ps = disturbance.not_before_ps.max(at_ps);
                arrivals_ps.push(at_ps);
            }
        }
        self.busy_until_ps = start_ps;
        arrivals_ps
    }
}
