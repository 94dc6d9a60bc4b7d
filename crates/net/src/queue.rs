//! Queues: their limits, and the packets that are marked or dropped before a queue is full. It does not know where the packets
//! wait, nor who takes them.
//!
//! # What counts
//!
//! A limit is a number of packets or of frame bytes that may wait. The packet being transmitted does not wait: it does not
//! count, and a packet that finds nothing before it is transmitted whatever the limit is. So is it in ns-3 (`DropTailQueue`, whose
//! `MaxSize` is in packets or bytes) and in Linux (`pfifo`, `bfifo`). ns-2's `DropTail` counts packets and one of them less: with
//! `limit_` 50, 49 wait behind the one on the wire.
//!
//! # Random early detection
//!
//! [`Red`] is the algorithm of Floyd and Jacobson ("Random Early Detection Gateways for Congestion Avoidance", 1993). At each
//! arrival the average moves towards what waits, q (without the arriving packet): avg += w_q (q - avg). After the queue was
//! empty and nothing was sent for a time, it decays as if m packets of mean size had met an empty queue in that time:
//! avg *= (1 - w_q)^m.
//! Below `min` nothing happens; between `min` and `max` a packet is marked with probability p_a = p_b / (1 - count p_b), where
//! p_b = max_p (avg - min) / (max - min) and count is the number of packets since the last mark; in bytes, p_b is multiplied
//! by the packet's size relative to the mean one. From `max` on all packets are dropped; with `gentle`, p_b goes from max_p at
//! `max` to 1 at twice `max` instead. A packet that finds the queue full is dropped for that, and ends the count too.
//!
//! ns-2's `wait_` (no mark directly after a mark) is not part of the paper and is not here. Nor are adaptive thresholds.
//!
//! The average is a fixed-point number with 32 bits of fraction, w_q a multiple of 2^-32, and products are rounded down:
//! equal packets give equal averages on every machine.
//!
//! # Marking
//!
//! With `ecn`, a packet whose transport understands it ([`wire::ecn`]) is marked where it would have been dropped early; others
//! are dropped. Where all packets are dropped (from `max`, or twice `max`), they are, whatever they understand, as
//! RFC 3168 (section 7) has it for persistent overload. [`Step`] is the case that DCTCP wants: no average, no chance.

use crate::error::{NetError, out_of_range};
use crate::random::Stream;
use crate::serialisation::serialisation_ps;
use engine::Time;

/// Bits of fraction in averages and weights.
const FRACTION: u32 = 32;
const ONE: u64 = 1 << FRACTION;

/// The unit in which a queue's limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueUnit {
    /// Frame bytes.
    Bytes,
    /// Packets.
    Packets,
}

/// The limit of a queue, and the discipline before it is full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueConfig {
    /// The unit of `limit`.
    pub unit: QueueUnit,
    /// The most that may wait.
    pub limit: u64,
    /// The discipline before that.
    pub discipline: Discipline,
}

/// Active management: drops or marks before a queue is full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Discipline {
    /// Nothing is dropped or marked before the queue is full.
    DropTail,
    /// Random early detection.
    Red(Red),
    /// Packets are marked if more than a threshold wait.
    Step(Step),
}

/// Random early detection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Red {
    /// The unit of the thresholds.
    pub unit: QueueUnit,
    /// The average below which nothing is marked.
    pub min: u64,
    /// The average from which everything is dropped, or from which on `gentle` counts.
    pub max: u64,
    /// The marking probability at `max`; above 0.
    pub max_p: f64,
    /// w_q, rounded to a multiple of 2^-32; above 0.
    pub weight: f64,
    /// True if the probability goes to 1 gradually between `max` and twice that.
    pub gentle: bool,
    /// True if packets that can be marked are, instead of dropped.
    pub ecn: bool,
    /// Size of a mean packet: it decides the decay of the average, and in bytes sizes are relative to it.
    pub mean_packet_bytes: u64,
}

/// Marks every packet that finds more than a threshold waiting; drops it if it cannot be marked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The unit of the threshold.
    pub unit: QueueUnit,
    /// DCTCP's K: the most that may wait without a mark.
    pub threshold: u64,
}

impl QueueConfig {
    /// Creates the configuration of a drop-tail queue of at most `limit` bytes.
    pub fn bytes(limit: u64) -> QueueConfig {
        QueueConfig {
            unit: QueueUnit::Bytes,
            limit,
            discipline: Discipline::DropTail,
        }
    }

    /// Creates the configuration of a drop-tail queue of at most `limit` packets.
    pub fn packets(limit: u64) -> QueueConfig {
        QueueConfig {
            unit: QueueUnit::Packets,
            ..QueueConfig::bytes(limit)
        }
    }

    pub(crate) fn check(&self) -> Result<(), NetError> {
        match &self.discipline {
            Discipline::Red(red) => red.check(),
            Discipline::DropTail | Discipline::Step(_) => Ok(()),
        }
    }
}

impl Red {
    /// Creates a RED configuration with the thresholds `min` and `max` and the parameters of 1993: max_p 1/50, w_q
    /// 0.002, 500-byte packets, neither gentle nor marking.
    pub fn new(unit: QueueUnit, min: u64, max: u64) -> Red {
        Red {
            unit,
            min,
            max,
            max_p: 0.02,
            weight: 0.002,
            gentle: false,
            ecn: false,
            mean_packet_bytes: 500,
        }
    }

    fn check(&self) -> Result<(), NetError> {
        if self.min >= self.max {
            return Err(out_of_range("red.max", "above red.min"));
        }
        // Written so that NaN fails too.
        if !(self.max_p > 0.0 && self.max_p <= 1.0) {
            return Err(out_of_range("red.max_p", "above 0 and at most 1"));
        }
        if !(self.weight > 0.0 && self.weight <= 1.0) || self.fixed_weight() == 0 {
            return Err(out_of_range("red.weight", "at least 2^-32 and at most 1"));
        }
        if self.mean_packet_bytes == 0 {
            return Err(out_of_range("red.mean_packet_bytes", "at least 1"));
        }
        Ok(())
    }

    fn fixed_weight(&self) -> u64 {
        (self.weight * ONE as f64).round() as u64
    }

    /// Returns the time in picoseconds to send a packet of mean size, at least 1.
    fn mean_packet_ps(&self, rate_bps: u64) -> u64 {
        let bytes = usize::try_from(self.mean_packet_bytes).unwrap_or(usize::MAX / 16);
        serialisation_ps(bytes.min(usize::MAX / 16), rate_bps).max(1)
    }
}

/// The state of a queue when a packet comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occupancy {
    /// Packets that wait.
    pub(crate) packets: u64,
    /// Their frame bytes.
    pub(crate) bytes: u64,
    /// True if the packet need not wait at all: limits do not matter.
    pub(crate) transmitter_free: bool,
    /// Since when nothing of this queue waits or is being sent; `None` if something is.
    pub(crate) idle_since_ps: Option<Time>,
}

impl Occupancy {
    fn in_unit(&self, unit: QueueUnit) -> u64 {
        match unit {
            QueueUnit::Bytes => self.bytes,
            QueueUnit::Packets => self.packets,
        }
    }
}

/// The decision of a queue on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Takes it.
    Take,
    /// Marks it and takes it; drops it if it cannot be marked.
    Mark,
    /// Drops it although there is room.
    DropEarly,
    /// Drops it because there is none.
    DropFull,
}

/// The gate of one queue.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) config: QueueConfig,
    /// True if another queue decides in its place.
    pub(crate) asleep: bool,
    active: Option<Box<Active>>,
}

impl Gate {
    /// Creates the gate of a queue in front of a transmitter with a rate of `rate_bps` bits per second. `name` makes
    /// its random stream differ from all others.
    pub(crate) fn new(config: QueueConfig, rate_bps: u64, seed: u64, name: &str) -> Gate {
        let active = match config.discipline {
            Discipline::DropTail => None,
            Discipline::Red(red) => {
                let stream = Stream::named(seed, &format!("{name}/red"));
                Some(Active::Red(RedState::new(red, rate_bps, stream)))
            }
            Discipline::Step(step) => Some(Active::Step(step)),
        };
        let active = active.map(Box::new);
        Gate {
            config,
            asleep: false,
            active,
        }
    }

    /// Returns whether the gate may drop a packet that finds an empty queue.
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.active.is_some() && !self.asleep
    }

    /// Takes notice that the transmitter's rate is `rate_bps` from now on. `idle_since_ps`: as in [`Occupancy`].
    pub(crate) fn change_rate(&mut self, now_ps: Time, idle_since_ps: Option<Time>, rate_bps: u64) {
        if let Some(Active::Red(red)) = self.active.as_deref_mut() {
            if let Some(since_ps) = idle_since_ps {
                red.decay(now_ps, since_ps);
            }
            red.mean_packet_ps = red.red.mean_packet_ps(rate_bps);
        }
    }

    /// Decides from the state of the queue that an arriving packet finds whether the packet is taken, marked or
    /// dropped.
    #[inline]
    pub(crate) fn admit(&mut self, now_ps: Time, found: Occupancy, frame_bytes: usize) -> Verdict {
        let size = match self.config.unit {
            QueueUnit::Bytes => frame_bytes as u64,
            QueueUnit::Packets => 1,
        };
        let waiting = found.in_unit(self.config.unit);
        let full = !found.transmitter_free && waiting.saturating_add(size) > self.config.limit;
        match self.active.as_deref_mut() {
            None if full => Verdict::DropFull,
            None => Verdict::Take,
            Some(active) => active.admit(now_ps, found, frame_bytes, full),
        }
    }
}

/// A gate that does something before its queue is full.
#[derive(Debug)]
enum Active {
    Red(RedState),
    Step(Step),
}

impl Active {
    fn admit(&mut self, now_ps: Time, found: Occupancy, frame_bytes: usize, full: bool) -> Verdict {
        match self {
            Active::Red(red) => red.admit(now_ps, found, frame_bytes, full),
            _ if full => Verdict::DropFull,
            Active::Step(step) if found.in_unit(step.unit) > step.threshold => Verdict::Mark,
            Active::Step(_) => Verdict::Take,
        }
    }
}

#[derive(Debug)]
struct RedState {
    red: Red,
    /// The weight w_q as a fixed-point number.
    weight: u64,
    /// The time to send a mean packet.
    mean_packet_ps: u64,
    average: u128,
    /// Up to when an idle time has made the average decay.
    decayed_until_ps: Time,
    /// Packets since the last mark or drop; `None` right after the average was below `min`.
    count: Option<u64>,
    stream: Stream,
}

impl RedState {
    fn new(red: Red, rate_bps: u64, stream: Stream) -> RedState {
        RedState {
            weight: red.fixed_weight(),
            mean_packet_ps: red.mean_packet_ps(rate_bps),
            red,
            average: 0,
            decayed_until_ps: Time::ZERO,
            count: None,
            stream,
        }
    }

    fn admit(&mut self, now_ps: Time, found: Occupancy, frame_bytes: usize, full: bool) -> Verdict {
        self.average_in(now_ps, found);
        if full {
            self.count = Some(0);
            return Verdict::DropFull;
        }
        let Some(probability) = self.probability() else {
            self.count = Some(0);
            return Verdict::DropEarly;
        };
        if probability == 0.0 && self.average < u128::from(self.red.min) << FRACTION {
            self.count = None;
            return Verdict::Take;
        }
        let relative_size = match self.red.unit {
            QueueUnit::Packets => 1.0,
            QueueUnit::Bytes => frame_bytes as f64 / self.red.mean_packet_bytes as f64,
        };
        let count = self.count.map_or(0, |count| count + 1);
        if !self.chosen(probability * relative_size, count) {
            self.count = Some(count);
            return Verdict::Take;
        }
        self.count = Some(0);
        match self.red.ecn {
            true => Verdict::Mark,
            false => Verdict::DropEarly,
        }
    }

    /// Decides whether to mark or drop this packet early: with the probability `p_b`, made uniform over the `count`
    /// packets since the last such one.
    fn chosen(&mut self, p_b: f64, count: u64) -> bool {
        let rest = 1.0 - count as f64 * p_b;
        // Something is drawn only where chance decides.
        p_b > 0.0 && (rest <= p_b || self.stream.chance(p_b / rest))
    }

    /// Moves the average queue towards the present queue; after an idle time, as if small packets had found the queue
    /// empty.
    fn average_in(&mut self, now_ps: Time, found: Occupancy) {
        match found.idle_since_ps {
            Some(since_ps) => self.decay(now_ps, since_ps),
            None => {
                let waiting = i128::from(found.in_unit(self.red.unit)) << FRACTION;
                let difference = waiting - self.average as i128;
                let step = (difference * i128::from(self.weight)) >> FRACTION;
                // It stays between where it was and what waits.
                self.average = (self.average as i128 + step) as u128;
            }
        }
    }

    /// Makes the average decay for the time in which the queue was empty and nothing was sent.
    fn decay(&mut self, now_ps: Time, since_ps: Time) {
        let from_ps = since_ps.max(self.decayed_until_ps);
        let packets = now_ps.saturating_sub(from_ps) / self.mean_packet_ps;
        self.decayed_until_ps = from_ps + packets * self.mean_packet_ps;
        let factor = power(ONE - self.weight, packets);
        self.average = (self.average * u128::from(factor)) >> FRACTION;
    }

    /// Computes p_b for the present average queue; `None` if every packet is to be dropped.
    fn probability(&self) -> Option<f64> {
        let red = &self.red;
        let (min, max) = (
            u128::from(red.min) << FRACTION,
            u128::from(red.max) << FRACTION,
        );
        let share = |from: u128, width: u128| (self.average - from) as f64 / width as f64;
        if self.average < min {
            Some(0.0)
        } else if self.average < max {
            Some(red.max_p * share(min, max - min))
        } else if red.gentle && self.average < 2 * max {
            Some(red.max_p + (1.0 - red.max_p) * share(max, max))
        } else {
            None
        }
    }
}

/// Raises a fixed-point number of at most one to a power, rounding down at each step.
fn power(mut base: u64, mut exponent: u64) -> u64 {
    let product = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> FRACTION) as u64;
    let mut result = ONE;
    while exponent > 0 && result > 0 {
        if exponent & 1 == 1 {
            result = product(result, base);
        }
        base = product(base, base);
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests;
