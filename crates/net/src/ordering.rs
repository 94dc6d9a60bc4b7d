//! Packet ordering: the basic algorithm of the DetNet packet ordering function (RFC 9550), with a bounded buffer. It does not know
//! packets (`tag` finds sequence numbers in them), ports (`medium` puts one in front of a link), nor what was eliminated before.
//!
//! # Why it is in the network's node model
//!
//! Elimination may pass packets in another order than they were sent in: the vector algorithm accepts a number below the highest
//! one. To order them again a node must hold a packet until another one comes *or* a time has passed. v1model alone can do neither: a
//! program runs when a packet is there and ends before the next one, it has no timers, and what it does not send it has lost. Going
//! round by recirculation is no substitute: each turn costs a pass through ingress, the turns end only when the packet decides so,
//! and there is no bound on how many circulate. A program can do what it does here: eliminate duplicates, and leave the sequence number
//! in front of the packet, in a header that it declares ([`SequenceHeader`]). The port behind it orders, and takes the header off.
//!
//! # The algorithm
//!
//! For each stream, the number sent last is kept (*POFLastSent*).
//!
//! * A packet with the number after it is sent at once, and so is one with a number at or below it: that one is *late*, because
//!   something behind it was not held long enough. It is not dropped; ordering loses nothing.
//! * A packet with a higher number is held until all before it were sent, or *POFMaxDelay* has passed since it came. Then it is
//!   sent, behind everything held of its stream that has a lower number, and before what directly follows.
//! * When nothing has come for *POFTakeAnyTime*, the next packet is sent whatever its number is, and counting goes on from there;
//!   also at the beginning.
//!
//! Numbers are compared in their circular space: half of it counts as above, half as below. So fewer packets than half of the space
//! may be under way within the difference of the paths' delays.
//!
//! # Choosing the parameters
//!
//! *POFMaxDelay* is at least the difference of the paths' delays, jitter included; less than that makes packets late. It is also
//! what a packet waits behind one that both paths lost. *POFTakeAnyTime* is at least that, and at most the time after which the
//! elimination function before it takes any number (its reset timeout): a sender that begins anew is then eliminated until all is
//! silent, and afterwards both functions take what comes.
//!
//! # Where it is more definite than the RFC
//!
//! * POFLastSent never goes back, so a late packet does not make the algorithm wait for numbers that were sent already.
//! * Memory is bounded, in packets over all streams. Where one more would have to be held, the stream whose packet has waited longest
//!   sends its lowest number before its time. Streams are bounded too; one for which there is no room is not ordered.
//! * A packet that fills a gap at the very time at which those behind it must leave comes after them.

pub(crate) mod header;
pub(crate) mod tag;

use crate::error::{NetError, out_of_range};
use crate::serialisation::MAX_DELAY_PS;
use engine::{Packet, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tag::{SequenceTag, StreamId};

pub use header::{BitField, MAX_HEADER_BYTES, MAX_HEADERS, SequenceHeader};

/// The most streams that the ordering function of one port distinguishes at a time.
pub const MAX_STREAMS: usize = 8192;
/// The largest buffer, in packets.
pub const MAX_BUFFER_PACKETS: u32 = 1 << 20;

const MIN_SEQUENCE_BITS: u8 = 2;
const MAX_SEQUENCE_BITS: u8 = 32;

/// The position of the first number of a stream: far from both ends, and a multiple of every number space.
const ORIGIN: u64 = 1 << 62;

/// Parameters of an ordering function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderingConfig {
    /// POFMaxDelay: the longest time that a packet is held.
    #[serde(rename = "max_delay_ms", with = "crate::units::milliseconds")]
    pub max_delay_ps: u64,
    /// POFTakeAnyTime: the time without packets of a stream after which any number is accepted; at least
    /// `max_delay_ps`.
    #[serde(rename = "take_any_ms", with = "crate::units::milliseconds")]
    pub take_any_ps: u64,
    /// The most packets that are held, over all streams.
    pub buffer_packets: u32,
    /// Width of the sequence numbers in bits, if they have fewer than their field.
    pub sequence_bits: Option<u8>,
    /// The headers that have the sequence numbers; a packet without any of them is sent at once.
    pub headers: Vec<SequenceHeader>,
}

impl OrderingConfig {
    /// Creates a configuration with these times in picoseconds, a buffer of 1,024 packets, sequence numbers as wide as
    /// their field, and no headers yet.
    pub fn new(max_delay_ps: u64, take_any_ps: u64) -> OrderingConfig {
        OrderingConfig {
            max_delay_ps,
            take_any_ps,
            buffer_packets: 1024,
            sequence_bits: None,
            headers: Vec::new(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), NetError> {
        if self.max_delay_ps == 0 || self.max_delay_ps > MAX_DELAY_PS {
            let expected = format!("above zero and at most {MAX_DELAY_PS}");
            return Err(out_of_range("ordering.max_delay_ps", expected));
        }
        if self.take_any_ps < self.max_delay_ps || self.take_any_ps > MAX_DELAY_PS {
            let expected = format!("at least max_delay_ps and at most {MAX_DELAY_PS}");
            return Err(out_of_range("ordering.take_any_ps", expected));
        }
        if !(1..=MAX_BUFFER_PACKETS).contains(&self.buffer_packets) {
            let expected = format!("1 to {MAX_BUFFER_PACKETS}");
            return Err(out_of_range("ordering.buffer_packets", expected));
        }
        let widths = MIN_SEQUENCE_BITS..=MAX_SEQUENCE_BITS;
        if (self.sequence_bits).is_some_and(|bits| !widths.contains(&bits)) {
            return Err(out_of_range("ordering.sequence_bits", "2 to 32"));
        }
        header::check(&self.headers)
    }
}

/// The outcomes for packets at a port with an ordering function. At any time, those with a number are
/// `in_order + taken_any + late + held_back + unordered`, and
/// `held_back = filled + timed_out + overflowed + lost + held`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OrderingCounters {
    /// Packets without a sequence number, sent at once.
    pub untagged: u64,
    /// Packets with the next number, sent at once.
    pub in_order: u64,
    /// Packets sent at once because the stream was silent for POFTakeAnyTime, or is new.
    pub taken_any: u64,
    /// Packets sent at once because a packet with the same or a higher number had been sent.
    pub late: u64,
    /// Packets sent at once because there were too many streams.
    pub unordered: u64,
    /// Packets that were held for a time.
    pub held_back: u64,
    /// Held packets that were sent because all packets before them had been sent.
    pub filled: u64,
    /// Held packets that were sent because POFMaxDelay had passed for them, or for a held packet behind them.
    pub timed_out: u64,
    /// Held packets that were sent because the buffer was full.
    pub overflowed: u64,
    /// Held packets that were lost when the node failed.
    pub lost: u64,
    /// Packets held now.
    pub held: u64,
    /// The most packets that were ever held.
    pub max_held: u64,
}

/// A sequence number as it was received, and its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbered {
    pub(crate) stream: StreamId,
    pub(crate) number: u32,
    /// Width of its field in bits.
    pub(crate) bits: u8,
}

/// Why a held packet is sent.
#[derive(Clone, Copy, Debug)]
enum Reason {
    Filled,
    TimedOut,
    Overflowed,
}

/// The state of one stream. Sequence numbers are converted to positions, which do not wrap.
#[derive(Debug)]
struct Stream<P> {
    /// The position of the last packet sent (POFLastSent).
    last_sent: u64,
    /// When the last packet was received; `None` before the first.
    last_received_ps: Option<Time>,
    /// The held packets, by position and number of arrival.
    held: BTreeMap<(u64, u64), P>,
}

impl<P> Stream<P> {
    /// Returns true if the last packet of the stream arrived at least `for_ps` picoseconds ago, or none has arrived.
    fn is_silent(&self, now_ps: Time, for_ps: u64) -> bool {
        self.last_received_ps
            .is_none_or(|since_ps| now_ps.saturating_sub(since_ps) >= for_ps)
    }
}

impl<P> Default for Stream<P> {
    fn default() -> Stream<P> {
        Stream {
            last_sent: ORIGIN,
            last_received_ps: None,
            held: BTreeMap::new(),
        }
    }
}

/// A held packet: its position in its stream, and the time until which it may be held.
#[derive(Clone, Copy, Debug)]
struct Held {
    deadline_ps: Time,
    stream: StreamId,
    position: u64,
}

/// The ordering function of a port. `P` is a packet.
#[derive(Debug)]
pub(crate) struct Ordering<P> {
    config: OrderingConfig,
    counters: OrderingCounters,
    /// The number of bytes of a frame in which the headers are looked for.
    reach: usize,
    streams: BTreeMap<StreamId, Stream<P>>,
    /// The held packets by number of arrival. As all have the same longest time, the first to arrive is the first to be
    /// due.
    held: BTreeMap<u64, Held>,
    arrivals: u64,
    /// The time at which silent streams were last removed.
    swept_ps: Option<Time>,
    /// The time of the next event that is scheduled for it.
    pub(crate) wake_ps: Option<Time>,
}

impl<P> Ordering<P> {
    pub(crate) fn new(config: OrderingConfig) -> Ordering<P> {
        Ordering {
            reach: tag::reach(&config.headers),
            config,
            counters: OrderingCounters::default(),
            streams: BTreeMap::new(),
            held: BTreeMap::new(),
            arrivals: 0,
            swept_ps: None,
            wake_ps: None,
        }
    }

    /// Finds the sequence number of a packet; `None` if it has none. First copies the shared bytes of the packet into
    /// which a header may reach into its own storage.
    pub(crate) fn find(&self, packet: &mut Packet) -> Option<SequenceTag> {
        packet.store(self.reach);
        SequenceTag::find(&self.config.headers, packet.stored())
    }

    /// Counts a packet without a sequence number, which is sent at once.
    pub(crate) fn count_untagged(&mut self) {
        self.counters.untagged += 1;
    }

    /// Processes a packet with a sequence number that has arrived (RFC 9550). Appends the packets to `sent` that must
    /// be sent now, in order: this one, unless it is held, and those that it releases.
    pub(crate) fn receive(&mut self, now_ps: Time, it: Numbered, packet: P, sent: &mut Vec<P>) {
        self.release_due(now_ps, sent);
        if !self.streams.contains_key(&it.stream) && !self.make_room(now_ps) {
            self.counters.unordered += 1;
            return sent.push(packet);
        }
        let bits = u32::from(
            self.config
                .sequence_bits
                .unwrap_or(MAX_SEQUENCE_BITS)
                .min(it.bits),
        );
        let number = u64::from(it.number) & (u64::MAX >> (64 - bits));
        let take_any_ps = self.config.take_any_ps;
        let stream = self.streams.entry(it.stream).or_default();
        let was_silent = stream.is_silent(now_ps, take_any_ps);
        stream.last_received_ps = Some(now_ps);
        if was_silent {
            // Nothing is held: it was due no later than now.
            stream.last_sent = ORIGIN + number;
            self.counters.taken_any += 1;
            return sent.push(packet);
        }
        match distance(stream.last_sent, number, bits) {
            ..=0 => {
                self.counters.late += 1;
                sent.push(packet);
            }
            1 => {
                stream.last_sent += 1;
                self.counters.in_order += 1;
                sent.push(packet);
                self.release_following(it.stream, sent);
            }
            ahead => {
                let position = stream.last_sent + ahead.unsigned_abs();
                self.hold(now_ps, it.stream, position, packet, sent);
            }
        }
    }

    fn hold(
        &mut self,
        now_ps: Time,
        stream: StreamId,
        position: u64,
        packet: P,
        sent: &mut Vec<P>,
    ) {
        let arrival = self.arrivals;
        self.arrivals += 1;
        let deadline_ps = now_ps.saturating_add(self.config.max_delay_ps);
        if let Some(it) = self.streams.get_mut(&stream) {
            it.held.insert((position, arrival), packet);
        }
        self.held.insert(
            arrival,
            Held {
                deadline_ps,
                stream,
                position,
            },
        );
        self.counters.held_back += 1;
        if self.held.len() > self.config.buffer_packets as usize
            && let Some((_, longest)) = self.held.first_key_value()
        {
            let stream = longest.stream;
            self.send_lowest(stream, Reason::Overflowed, sent);
            self.release_following(stream, sent);
        }
        let held = self.held.len() as u64;
        self.counters.held = held;
        self.counters.max_held = self.counters.max_held.max(held);
    }

    /// Appends the packets to `sent` whose longest holding time has passed by `now_ps`, each after those of its stream
    /// with lower numbers and before those that directly follow it.
    pub(crate) fn release_due(&mut self, now_ps: Time, sent: &mut Vec<P>) {
        while let Some((_, due)) = self.held.first_key_value()
            && due.deadline_ps <= now_ps
        {
            let Held {
                stream, position, ..
            } = *due;
            while self.lowest(stream).is_some_and(|lowest| lowest <= position) {
                self.send_lowest(stream, Reason::TimedOut, sent);
            }
            self.release_following(stream, sent);
        }
    }

    /// Appends those held packets of a stream to `sent` whose predecessors have all been sent.
    fn release_following(&mut self, id: StreamId, sent: &mut Vec<P>) {
        while let Some(stream) = self.streams.get(&id)
            && let Some((&(lowest, _), _)) = stream.held.first_key_value()
            && lowest <= stream.last_sent + 1
        {
            self.send_lowest(id, Reason::Filled, sent);
        }
    }

    /// Returns the lowest position of a held packet of a stream; `None` if none is held.
    fn lowest(&self, stream: StreamId) -> Option<u64> {
        let held = &self.streams.get(&stream)?.held;
        held.first_key_value().map(|(&(position, _), _)| position)
    }

    fn send_lowest(&mut self, id: StreamId, reason: Reason, sent: &mut Vec<P>) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let Some(((position, arrival), packet)) = stream.held.pop_first() else {
            return;
        };
        stream.last_sent = stream.last_sent.max(position);
        self.held.remove(&arrival);
        self.counters.held = self.held.len() as u64;
        match reason {
            Reason::Filled => self.counters.filled += 1,
            Reason::TimedOut => self.counters.timed_out += 1,
            Reason::Overflowed => self.counters.overflowed += 1,
        }
        sent.push(packet);
    }

    /// Makes room for one more stream, if necessary by forgetting streams that have been silent for POFTakeAnyTime.
    /// Returns true if there is room.
    fn make_room(&mut self, now_ps: Time) -> bool {
        let take_any_ps = self.config.take_any_ps;
        let is_past = |then_ps: Time| now_ps.saturating_sub(then_ps) >= take_any_ps;
        // Not for every packet: there may be many streams.
        if self.streams.len() >= MAX_STREAMS && self.swept_ps.is_none_or(is_past) {
            self.swept_ps = Some(now_ps);
            self.streams
                .retain(|_, stream| !stream.is_silent(now_ps, take_any_ps));
        }
        self.streams.len() < MAX_STREAMS
    }

    /// Returns the time at which the next held packet must be sent; `None` if none is held.
    pub(crate) fn due_ps(&self) -> Option<Time> {
        self.held
            .first_key_value()
            .map(|(_, held)| held.deadline_ps)
    }

    /// Drops all held packets, counts them as lost, and forgets all streams. Returns the number of packets.
    pub(crate) fn lose_all(&mut self) -> u64 {
        let lost = self.held.len() as u64;
        self.held.clear();
        self.streams.clear();
        self.swept_ps = None;
        self.counters.lost += lost;
        self.counters.held = 0;
        lost
    }

    pub(crate) fn counters(&self) -> OrderingCounters {
        self.counters
    }
}

/// Computes how far `number`, of `bits` bits, is above (or, if negative, below) the number of `position`, in circular
/// arithmetic. Half of the number space counts as below.
fn distance(position: u64, number: u64, bits: u32) -> i64 {
    let shift = 64 - bits;
    (number.wrapping_sub(position) << shift) as i64 >> shift
}

#[cfg(test)]
mod tests;
