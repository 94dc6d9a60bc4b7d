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
//! RFC 3168 (section 7) has it for persistent overload. [`MarkAbove`] is the case that DCTCP wants: no average, no chance.

use crate::error::{NetError, out_of_range};
use crate::random::Stream;
use crate::serialisation::serialisation_ps;
use engine::Time;
use serde::{Deserialize, Serialize};

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

/// The limit of a queue, in packets or bytes, and at most one discipline that acts before the queue is full. The
/// default limit is 150,000 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueConfig {
    /// The most frame bytes that may wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<u64>,
    /// The most packets that may wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_packets: Option<u64>,
    /// Random early detection.
    pub red: Option<Red>,
    /// Packets are marked if more than a threshold wait.
    pub mark_above: Option<MarkAbove>,
}

/// Random early detection, with both thresholds in one unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Red {
    /// The average queue below which no packet is marked, in packets.
    pub min_packets: Option<u64>,
    /// The average queue from which on all packets are dropped, or `gentle` applies, in packets.
    pub max_packets: Option<u64>,
    /// `min_packets` in bytes.
    pub min_bytes: Option<u64>,
    /// `max_packets` in bytes.
    pub max_bytes: Option<u64>,
    /// The marking probability at `max`; above 0.
    pub max_p: f64,
    /// w_q, rounded to a multiple of 2^-32; above 0.
    pub weight: f64,
    /// True if the probability rises to 1 gradually between `max` and twice that.
    pub gentle: bool,
    /// True if packets that support ECN are marked instead of dropped.
    pub ecn: bool,
    /// Size of a mean packet in bytes: it determines the decay of the average; thresholds in bytes weight packets by
    /// their size relative to it.
    pub mean_packet_bytes: u64,
}

/// Marks every packet that finds more than a threshold waiting (DCTCP's K), or drops it if it does not support ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MarkAbove {
    /// The most packets that may wait without a mark.
    pub packets: Option<u64>,
    /// The most bytes that may wait without a mark.
    pub bytes: Option<u64>,
}

/// Returns the value of which exactly one is given, in packets or in bytes, with its unit; `None` if both or none are.
fn with_unit<T>(packets: Option<T>, bytes: Option<T>) -> Option<(QueueUnit, T)> {
    match (packets, bytes) {
        (Some(value), None) => Some((QueueUnit::Packets, value)),
        (None, Some(value)) => Some((QueueUnit::Bytes, value)),
        _ => None,
    }
}

/// Returns a value as (packets, bytes), of which only the one in `unit` is `Some`.
fn in_units<T>(unit: QueueUnit, value: T) -> (Option<T>, Option<T>) {
    match unit {
        QueueUnit::Packets => (Some(value), None),
        QueueUnit::Bytes => (None, Some(value)),
    }
}

impl MarkAbove {
    /// Creates a threshold in packets or bytes, above which packets are marked.
    pub fn new(unit: QueueUnit, threshold: u64) -> MarkAbove {
        let (packets, bytes) = in_units(unit, threshold);
        MarkAbove { packets, bytes }
    }

    fn threshold(&self) -> Option<(QueueUnit, u64)> {
        with_unit(self.packets, self.bytes)
    }
}

impl QueueConfig {
    /// Creates the configuration of a drop-tail queue of at most `limit` bytes.
    pub fn bytes(limit: u64) -> QueueConfig {
        QueueConfig {
            queue_bytes: Some(limit),
            ..QueueConfig::default()
        }
    }

    /// Creates the configuration of a drop-tail queue of at most `limit` packets.
    pub fn packets(limit: u64) -> QueueConfig {
        QueueConfig {
            queue_packets: Some(limit),
            ..QueueConfig::default()
        }
    }

    /// Returns the most that may wait in the queue, and the unit of that: 150,000 bytes unless configured.
    fn limit(&self) -> (QueueUnit, u64) {
        with_unit(self.queue_packets, self.queue_bytes).unwrap_or((QueueUnit::Bytes, 150_000))
    }

    pub(crate) fn check(&self) -> Result<(), NetError> {
        let refused = |text: &str| Err(NetError::Refused(text.to_owned()));
        if self.queue_bytes.is_some() && self.queue_packets.is_some() {
            return refused("give queue_bytes or queue_packets, not both");
        }
        match (&self.red, &self.mark_above) {
            (None, None) => Ok(()),
            (Some(red), None) => red.check(),
            (None, Some(mark)) if mark.threshold().is_some() => Ok(()),
            (None, Some(_)) => refused("mark_above: give packets or bytes"),
            (Some(_), Some(_)) => refused("give red or mark_above, not both"),
        }
    }
}

impl Red {
    /// Creates a RED configuration with the thresholds `min` and `max` in `unit`, and the parameters of 1993: max_p
    /// 1/50, w_q 0.002, 500-byte packets, neither gentle nor marking.
    pub fn new(unit: QueueUnit, min: u64, max: u64) -> Red {
        let (min_packets, min_bytes) = in_units(unit, min);
        let (max_packets, max_bytes) = in_units(unit, max);
        Red {
            min_packets,
            max_packets,
            min_bytes,
            max_bytes,
            max_p: 0.02,
            weight: 0.002,
            gentle: false,
            ecn: false,
            mean_packet_bytes: 500,
        }
    }

    /// Returns the thresholds `min` and `max` with their unit; `None` unless both are given in one unit.
    fn thresholds(&self) -> Option<(QueueUnit, (u64, u64))> {
        let packets = (self.min_packets, self.max_packets);
        let bytes = (self.min_bytes, self.max_bytes);
        match (packets, bytes) {
            ((min, max), (None, None)) => Some((QueueUnit::Packets, min.zip(max)?)),
            ((None, None), (min, max)) => Some((QueueUnit::Bytes, min.zip(max)?)),
            _ => None,
        }
    }

    fn check(&self) -> Result<(), NetError> {
        match self.thresholds() {
            None => {
                let text = "red: give thresholds in packets or in bytes";
                return Err(NetError::Refused(text.to_owned()));
            }
            Some((_, (min, max))) if min >= max => {
                return Err(out_of_range("red.max", "above red.min"));
            }
            Some(_) => {}
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

    /// Returns the time in picoseconds, at least 1, in which a packet of mean size is sent at a rate of `rate_bps` bits
    /// per second.
    fn mean_packet_ps(&self, rate_bps: u64) -> u64 {
        let bytes = usize::try_from(self.mean_packet_bytes).unwrap_or(usize::MAX / 16);
        serialisation_ps(bytes.min(usize::MAX / 16), rate_bps).max(1)
    }
}

/// The state of a queue when a packet arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occupancy {
    /// Packets that wait.
    pub(crate) packets: u64,
    /// Their frame bytes.
    pub(crate) bytes: u64,
    /// True if the packet can be sent at once, whatever the limits are.
    pub(crate) transmitter_free: bool,
    /// The time since which no packet of this queue waits or is being sent; `None` if there is one.
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

/// The decision of a queue on an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Takes the packet.
    Take,
    /// Marks the packet and takes it, or drops it if it does not support ECN.
    Mark,
    /// Drops the packet although there is room.
    DropEarly,
    /// Drops the packet because there is no room.
    DropFull,
}

/// Decides which packets enter one queue: by its limit and its discipline.
#[derive(Debug)]
pub(crate) struct Gate {
    /// The unit of the queue's limit, and the most that may wait.
    limit: (QueueUnit, u64),
    /// True if another queue, a traffic manager's, decides in its place.
    pub(crate) asleep: bool,
    active: Option<Active>,
}

impl Gate {
    /// Creates the gate, which decides on the admission of packets, of a queue in front of a transmitter with a rate
    /// of `rate_bps` bits per second. The random numbers of RED come from a stream named after `name`.
    pub(crate) fn new(config: QueueConfig, rate_bps: u64, seed: u64, name: &str) -> Gate {
        let red = config.red.map(|red| {
            let stream = Stream::named(seed, &format!("{name}/red"));
            Active::Red(Box::new(RedState::new(red, rate_bps, stream)))
        });
        let threshold = config.mark_above.and_then(|mark| mark.threshold());
        let step = threshold.map(|(unit, threshold)| Active::Step(unit, threshold));
        let active = red.or(step);
        Gate {
            limit: config.limit(),
            asleep: false,
            active,
        }
    }

    /// Returns true if the queue's discipline may mark or drop a packet although no packet waits.
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.active.is_some() && !self.asleep
    }

    /// Adapts RED's decay to a new rate of the transmitter, `rate_bps` bits per second. `idle_since_ps` is as in
    /// [`Occupancy`].
    pub(crate) fn change_rate(&mut self, now_ps: Time, idle_since_ps: Option<Time>, rate_bps: u64) {
        if let Some(Active::Red(red)) = self.active.as_mut() {
            if let Some(since_ps) = idle_since_ps {
                red.decay(now_ps, since_ps);
            }
            red.mean_packet_ps = red.red.mean_packet_ps(rate_bps);
        }
    }

    /// Decides whether an arriving packet of `frame_bytes` bytes is taken, marked or dropped. `found` is the state of
    /// the queue that it finds.
    #[inline]
    pub(crate) fn admit(&mut self, now_ps: Time, found: Occupancy, frame_bytes: usize) -> Verdict {
        let (unit, limit) = self.limit;
        let size = match unit {
            QueueUnit::Bytes => frame_bytes as u64,
            QueueUnit::Packets => 1,
        };
        let full = !found.transmitter_free && found.in_unit(unit).saturating_add(size) > limit;
        match self.active.as_mut() {
            None if full => Verdict::DropFull,
            None => Verdict::Take,
            Some(active) => active.admit(now_ps, found, frame_bytes, full),
        }
    }
}

/// The discipline of a queue that acts before the queue is full.
#[derive(Debug)]
enum Active {
    Red(Box<RedState>),
    /// A threshold above which packets are marked, and its unit.
    Step(QueueUnit, u64),
}

impl Active {
    fn admit(&mut self, now_ps: Time, found: Occupancy, frame_bytes: usize, full: bool) -> Verdict {
        match self {
            Active::Red(red) => red.admit(now_ps, found, frame_bytes, full),
            _ if full => Verdict::DropFull,
            Active::Step(unit, threshold) if found.in_unit(*unit) > *threshold => Verdict::Mark,
            Active::Step(..) => Verdict::Take,
        }
    }
}

#[derive(Debug)]
struct RedState {
    red: Red,
    /// The unit of the thresholds, below.
    unit: QueueUnit,
    min: u64,
    max: u64,
    /// The weight w_q as a fixed-point number.
    weight: u64,
    /// The time in which a mean packet is sent, in picoseconds.
    mean_packet_ps: u64,
    average: u128,
    /// The time up to which idle times have made the average decay.
    decayed_until_ps: Time,
    /// Packets since the last mark or drop; `None` right after the average was below `min`.
    count: Option<u64>,
    stream: Stream,
}

impl RedState {
    fn new(red: Red, rate_bps: u64, stream: Stream) -> RedState {
        // A configuration without them is refused.
        let thresholds = red.thresholds();
        let (unit, (min, max)) = thresholds.unwrap_or((QueueUnit::Packets, (0, u64::MAX)));
        RedState {
            unit,
            min,
            max,
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
        if probability == 0.0 && self.average < u128::from(self.min) << FRACTION {
            self.count = None;
            return Verdict::Take;
        }
        let relative_size = match self.unit {
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

    /// Decides at random whether to mark or drop this packet early: with the probability p_a, which spreads the marks
    /// evenly. It follows from `p_b` and the number `count` of packets since the last mark (Floyd and Jacobson).
    fn chosen(&mut self, p_b: f64, count: u64) -> bool {
        let rest = 1.0 - count as f64 * p_b;
        // Something is drawn only where chance decides.
        p_b > 0.0 && (rest <= p_b || self.stream.chance(p_b / rest))
    }

    /// Updates RED's average queue length when a packet arrives: moves it towards the present length, or makes it decay
    /// if the queue was idle.
    fn average_in(&mut self, now_ps: Time, found: Occupancy) {
        match found.idle_since_ps {
            Some(since_ps) => self.decay(now_ps, since_ps),
            None => {
                let waiting = i128::from(found.in_unit(self.unit)) << FRACTION;
                let difference = waiting - self.average as i128;
                let step = (difference * i128::from(self.weight)) >> FRACTION;
                // It stays between where it was and what waits.
                self.average = (self.average as i128 + step) as u128;
            }
        }
    }

    /// Makes RED's average queue length decay for the idle time since `since_ps`, as if packets of mean size had found
    /// the queue empty.
    fn decay(&mut self, now_ps: Time, since_ps: Time) {
        let from_ps = since_ps.max(self.decayed_until_ps);
        let packets = now_ps.saturating_sub(from_ps) / self.mean_packet_ps;
        self.decayed_until_ps = from_ps + packets * self.mean_packet_ps;
        let factor = power(ONE - self.weight, packets);
        self.average = (self.average * u128::from(factor)) >> FRACTION;
    }

    /// Computes RED's probability p_b of a mark for the present average queue length; `None` if every packet is to be
    /// dropped.
    fn probability(&self) -> Option<f64> {
        let red = &self.red;
        let (min, max) = (
            u128::from(self.min) << FRACTION,
            u128::from(self.max) << FRACTION,
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

/// Raises a fixed-point number of at most one to a power, rounding down at each multiplication.
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
