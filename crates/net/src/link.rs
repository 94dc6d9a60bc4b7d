//! Links: a queue, a transmitter and a wire in each direction. It does not know what is at the ends, nor what the packets
//! are; it says when a packet arrives, or why not.
//!
//! # The model
//!
//! Each direction is a transmitter of a fixed rate behind a queue ([`crate::queue`]). A packet that finds the transmitter idle
//! is transmitted at once. One that finds it busy waits if the queue has room (the packet being transmitted takes none), and
//! is dropped otherwise. Queue limits in bytes count frame bytes, as a `bfifo` does.
//!
//! A frame of n bytes occupies the wire for max(n + 4, 64) + 20 bytes: frame check sequence ([`FCS_BYTES`](crate::serialisation::FCS_BYTES)), the minimum
//! Ethernet frame ([`MIN_FRAME_BYTES`](crate::serialisation::MIN_FRAME_BYTES)), and preamble, start delimiter and inter-frame gap ([`OVERHEAD_BYTES`](crate::serialisation::OVERHEAD_BYTES)). The counters
//! give both sums. Transmission takes a whole number of picoseconds, rounded up.
//!
//! After its last bit was sent, a packet propagates for the delay plus a jitter drawn for this packet, and then arrives. A
//! later packet that draws less may overtake. A total below zero counts as zero. Loss ([`Loss`]) is decided per packet, after
//! the queue: a lost packet takes its time on the wire and counts as sent.
//!
//! With an MTU, a frame whose bytes behind the Ethernet header (and its VLAN tags) are more than that is dropped and counted
//! (`mtu_drops`); nothing is ever cut. With an ordering function ([`crate::ordering`]), packets go through that first, and lose their
//! sequence numbers there.
//!
//! Rate, delay, jitter and loss can change while packets wait and are under way (`change` has the rules).
//!
//! A direction can also lose everything silently: it is still up, and all packets count as lost on the wire.
//!
//! A direction that fails loses what waits, what is being sent and what propagates; all of it and everything offered until
//! the repair counts as `down_drops`.
//!
//! # Randomness
//!
//! Each direction draws loss, jitter and early drops from streams of its own, named after its ends, packet by packet as they
//! come. So nothing that happens elsewhere changes what a direction draws; but packets that share a direction share its
//! draws, and one packet more shifts those of the packets behind it.
//!
//! # How it is computed
//!
//! With a constant rate, the start of transmission is known when a packet is offered. So there is one event per packet (its
//! arrival), and the queue only remembers when its packets start, to know how many bytes wait at a time.

pub mod change;
mod loss;
mod special;

pub use loss::{GilbertElliott, Jitter, Loss, LossTrace};

use crate::detection::DetectionConfig;
use crate::error::{NetError, out_of_range};
use crate::observer::DropReason;
use crate::ordering::OrderingConfig;
use crate::queue::{Gate, Occupancy, QueueConfig, Verdict};
use crate::random::Stream;
use crate::serialisation::{MAX_DELAY_PS, serialisation_ps, wire_bytes};
use crate::units::milliseconds;
use crate::{LinkId, NodeId};
use engine::{Packet, Time};
use loss::{JitterProcess, LossProcess};
use serde::{Deserialize, Serialize};
use special::Special;
use std::collections::VecDeque;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

/// The smallest MTU: IPv4's (RFC 791).
pub const MIN_MTU_BYTES: u32 = 68;
/// The largest MTU: the longest IPv4 packet.
pub const MAX_MTU_BYTES: u32 = 65_535;

/// Parameters of a direction, or of a link with the same in both; other languages write them as `holdfast.link.Direction` has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// Rate of each direction's transmitter.
    pub rate_bps: u64,
    /// Propagation delay.
    #[serde(rename = "delay_ms", with = "milliseconds", default)]
    pub delay_ps: u64,
    /// The random time added to the delay.
    #[serde(default)]
    pub jitter: Jitter,
    /// Which packets are lost on the wire.
    #[serde(default)]
    pub loss: Loss,
    /// The queue in front of each direction's transmitter.
    #[serde(flatten)]
    pub queue: QueueConfig,
    /// The detectors with which a switch at the receiving end finds out that its port is down or up.
    #[serde(skip)]
    pub detection: DetectionConfig,
    /// The most bytes that a frame may have behind its Ethernet header; `None` for no limit.
    pub mtu_bytes: Option<u32>,
    /// The ordering function that puts packets with sequence numbers in order before they are sent.
    pub ordering: Option<OrderingConfig>,
}

impl LinkConfig {
    /// Creates the configuration of a link with this rate in bits per second and this delay in picoseconds, without
    /// jitter, loss, MTU or ordering, and with a queue of 150,000 bytes.
    pub fn new(rate_bps: u64, delay_ps: u64) -> LinkConfig {
        LinkConfig {
            rate_bps,
            delay_ps,
            jitter: Jitter::None,
            loss: Loss::None,
            queue: QueueConfig::bytes(150_000),
            detection: DetectionConfig::default(),
            mtu_bytes: None,
            ordering: None,
        }
    }

    pub(crate) fn check(&self) -> Result<(), NetError> {
        check_rate(self.rate_bps)?;
        check_delay(self.delay_ps)?;
        if (self.mtu_bytes).is_some_and(|mtu| !(MIN_MTU_BYTES..=MAX_MTU_BYTES).contains(&mtu)) {
            let expected = format!("{MIN_MTU_BYTES} to {MAX_MTU_BYTES}");
            return Err(out_of_range("mtu_bytes", expected));
        }
        if let Some(ordering) = &self.ordering {
            ordering.check()?;
        }
        if let Some(bfd) = &self.detection.bfd {
            bfd.check()?;
        }
        self.loss.check()?;
        self.queue.check()?;
        self.jitter.check(self.delay_ps)
    }
}

/// Checks a rate in bits per second. Fails if it is zero.
pub(crate) fn check_rate(rate_bps: u64) -> Result<(), NetError> {
    match rate_bps {
        0 => Err(out_of_range("rate_bps", "at least 1")),
        _ => Ok(()),
    }
}

/// Checks a propagation delay in picoseconds. Fails if it is longer than `MAX_DELAY_PS`.
pub(crate) fn check_delay(delay_ps: u64) -> Result<(), NetError> {
    match delay_ps > MAX_DELAY_PS {
        true => Err(out_of_range("delay_ps", format!("at most {MAX_DELAY_PS}"))),
        false => Ok(()),
    }
}

/// The outcomes for packets offered to a direction. At any time,
/// `offered = delivered + queue_drops + red_drops + loss_drops + down_drops + mtu_drops + in_transit`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[repr(C)]
pub struct DirectionCounters {
    /// Packets that the sending node handed over.
    pub offered: u64,
    /// Packets put on the wire: their transmission started.
    pub packets: u64,
    /// Bytes of `packets`, including all overhead that takes time on the wire ([`wire_bytes`]).
    pub bytes: u64,
    /// Frame bytes of `packets`.
    pub frame_bytes: u64,
    /// Packets that arrived at the far end.
    pub delivered: u64,
    /// Packets that wait in the queue or are on the wire now.
    pub in_transit: u64,
    /// Packets that found the queue full.
    pub queue_drops: u64,
    /// Packets that the queue's discipline dropped before it was full because it could not mark them.
    pub red_drops: u64,
    /// Packets that were marked as having experienced congestion; they are counted where they go, too.
    pub marked: u64,
    /// Packets lost at random.
    pub loss_drops: u64,
    /// Packets lost to a failure: offered while it lasted, or waiting or under way when it began.
    pub down_drops: u64,
    /// Packets longer than the MTU allows.
    pub mtu_drops: u64,
}

impl DirectionCounters {
    /// Counts a packet whose transmission starts. If `lost` is true, it will be lost on the wire.
    fn started(&mut self, frame_bytes: usize, lost: bool) {
        self.packets += 1;
        self.bytes += wire_bytes(frame_bytes);
        self.frame_bytes += frame_bytes as u64;
        if lost {
            self.loss_drops += 1;
            self.in_transit -= 1;
        }
    }
}

/// Counters of a link, by direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// From the end named first.
    pub a_to_b: DirectionCounters,
    /// From the end named second.
    pub b_to_a: DirectionCounters,
}

/// One of a link's directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum LinkDirection {
    /// From the end named first.
    #[serde(rename = "a_to_b")]
    AToB,
    /// From the end named second.
    #[serde(rename = "b_to_a")]
    BToA,
}

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) node: NodeId,
    pub(crate) port: u32,
}

/// The links of a network. Link i has the directions 2i (from a to b) and 2i + 1.
#[derive(Debug, Default)]
pub(crate) struct Links(Vec<Direction>);

impl Links {
    /// Returns the number of directions of all links: two per link.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Direction> {
        self.0.iter()
    }

    /// Adds a link direction; every second one completes a link.
    pub(crate) fn push(&mut self, direction: Direction) {
        self.0.push(direction);
    }

    /// Returns the number of one of a link's two directions among all directions. Fails if there is no such link.
    pub(crate) fn number(&self, link: LinkId, direction: LinkDirection) -> Result<u32, NetError> {
        let first = link
            .0
            .checked_mul(2)
            .filter(|&first| (first as usize) < self.0.len());
        let first = first.ok_or(NetError::UnknownLink(link.0))?;
        Ok(match direction {
            LinkDirection::AToB => first,
            LinkDirection::BToA => first + 1,
        })
    }

    /// Returns the counters of both directions of a link at `now_ps`, which must not be before the last event. Fails
    /// if there is no such link.
    pub(crate) fn counters(&self, link: LinkId, now_ps: Time) -> Result<LinkCounters, NetError> {
        let first = self.number(link, LinkDirection::AToB)?;
        Ok(LinkCounters {
            a_to_b: self[first].counters(now_ps),
            b_to_a: self[first + 1].counters(now_ps),
        })
    }
}

impl Index<u32> for Links {
    type Output = Direction;

    #[inline(always)]
    fn index(&self, direction: u32) -> &Direction {
        &self.0[direction as usize]
    }
}

impl IndexMut<u32> for Links {
    #[inline(always)]
    fn index_mut(&mut self, direction: u32) -> &mut Direction {
        &mut self.0[direction as usize]
    }
}

/// A packet whose transmission has not started yet.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    start_ps: Time,
    /// The jitter that was drawn for it, in picoseconds.
    jitter_ps: i64,
    /// Frames beyond 4 GiB would count as 4 GiB; there are none.
    frame_bytes: u32,
    lost: bool,
}

/// One direction of a link. The fields for an arrival are in its first 64 bytes, those for a transmission in the first 192: large networks
/// wait for lines of the caches most of the time.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Direction {
    pub(crate) to: Attachment,
    /// The number of failures so far; packets sent before the last failure have another generation and are lost.
    pub(crate) generation: u32,
    /// True if the experimenter has enabled it; `up` also needs both nodes.
    pub(crate) enabled: bool,
    pub(crate) up: bool,
    /// True if the queue's discipline may drop a packet although no packet waits.
    gate_is_active: bool,
    counters: DirectionCounters,
    busy_until_ps: Time,
    delay_ps: u64,
    waiting: VecDeque<Waiting>,
    /// The size of the last packet, and below it its transmission time, which saves a division if the next packet has
    /// the same size.
    last_bytes: u32,
    /// Frames longer than this may need [`Special`] treatment.
    plain_bytes: u32,
    last_sending_ps: u64,
    /// Random loss and jitter; `None` if there is none.
    disturbance: Option<Box<Disturbance>>,
    /// The rate, for packets of another size than the last one.
    rate_bps: u64,
    pub(crate) from: Attachment,
    /// The number of changes of `up` so far, by which the detection of an outdated change is recognised.
    pub(crate) epoch: u32,
    waiting_bytes: u64,
    gate: Gate,
    /// MTU and ordering function; `None` if there is neither.
    special: Option<Box<Special>>,
    /// The configuration as it is now, with all changes.
    config: Box<LinkConfig>,
    /// The name after which its random streams are named: `a:1>b:2`.
    pub(crate) name: Arc<str>,
}

/// Loss and jitter of packets on the wire.
#[derive(Debug)]
struct Disturbance {
    loss: LossProcess,
    jitter: JitterProcess,
    /// True if all packets are lost.
    silent: bool,
    /// Without jitter, no packet arrives before this time, at which the last packet arrives that was on the wire when
    /// the parameters changed.
    not_before_ps: Time,
}

impl Disturbance {
    /// Creates the random loss and jitter of a direction, whose random streams are named after it (`name`).
    fn new(loss: Loss, jitter: Jitter, seed: u64, name: &str) -> Box<Disturbance> {
        let stream = |what| Stream::named(seed, &format!("{name}/{what}"));
        Box::new(Disturbance {
            loss: LossProcess::new(loss, stream("loss")),
            jitter: JitterProcess::new(jitter, stream("jitter")),
            silent: false,
            not_before_ps: Time::ZERO,
        })
    }

    /// Returns the time at which a packet arrives whose last bit is sent at `sent_ps`: after the delay and the jitter,
    /// but without jitter in the parameters not before the packets already on the wire.
    fn arrival_ps(&self, sent_ps: Time, delay_ps: u64, jitter_ps: i64) -> Time {
        let arrival_ps = sent_ps.saturating_add(delay_ps.saturating_add_signed(jitter_ps));
        match self.jitter.is_none() {
            true => arrival_ps.max(self.not_before_ps),
            false => arrival_ps,
        }
    }
}

impl Direction {
    /// Creates a link direction between two ports, up and idle. Its random streams are named after it (`name`).
    pub(crate) fn new(
        from: Attachment,
        to: Attachment,
        config: LinkConfig,
        seed: u64,
        name: &str,
    ) -> Direction {
        let gate = Gate::new(config.queue, config.rate_bps, seed, name);
        let special = Special::new(&config);
        let is_disturbed = config.loss != Loss::None || config.jitter != Jitter::None;
        Direction {
            to,
            generation: 0,
            enabled: true,
            up: true,
            gate_is_active: gate.is_active(),
            counters: DirectionCounters::default(),
            busy_until_ps: Time::ZERO,
            waiting_bytes: 0,
            delay_ps: config.delay_ps,
            waiting: VecDeque::new(),
            last_bytes: 0,
            plain_bytes: Special::plain_bytes(&config),
            last_sending_ps: serialisation_ps(0, config.rate_bps),
            disturbance: is_disturbed
                .then(|| Disturbance::new(config.loss.clone(), config.jitter.clone(), seed, name)),
            rate_bps: config.rate_bps,
            from,
            epoch: 0,
            gate,
            special,
            config: Box::new(config),
            name: name.into(),
        }
    }

    /// Offers a packet to the direction for transmission at `now_ps`; the queue's discipline may set its congestion
    /// mark. Returns the time at which the packet arrives at the other end or, as an error, the reason for which it
    /// is dropped or lost.
    pub(crate) fn offer(&mut self, now_ps: Time, packet: &mut Packet) -> Result<Time, DropReason> {
        self.counters.offered += 1;
        if !self.up {
            self.counters.down_drops += 1;
            return Err(DropReason::LinkDown);
        }
        self.settle(now_ps);
        let busy = self.busy_until_ps > now_ps;
        if busy || self.gate_is_active {
            self.admit(now_ps, busy, packet)?;
        }
        self.send(now_ps, packet.len())
    }

    /// Lets the queue's discipline decide whether a packet may enter, and sets its congestion mark if the discipline
    /// demands that. Otherwise counts a drop and returns its reason as the error. `busy` is true if the transmitter
    /// is sending.
    fn admit(&mut self, now_ps: Time, busy: bool, packet: &mut Packet) -> Result<(), DropReason> {
        let found = Occupancy {
            packets: self.waiting.len() as u64,
            bytes: self.waiting_bytes,
            transmitter_free: !busy,
            idle_since_ps: (!busy).then_some(self.busy_until_ps),
        };
        match self.gate.admit(now_ps, found, packet.len()) {
            Verdict::Take => Ok(()),
            Verdict::Mark if wire::ecn::mark(packet.stored_mut()) => {
                self.counters.marked += 1;
                Ok(())
            }
            Verdict::Mark | Verdict::DropEarly => {
                self.counters.red_drops += 1;
                Err(DropReason::Early)
            }
            Verdict::DropFull => {
                self.counters.queue_drops += 1;
                Err(DropReason::QueueFull)
            }
        }
    }

    /// Sends a frame of `frame_bytes` bytes after those that wait. Returns the time at which it arrives, or `Loss` if
    /// it is lost on the wire.
    fn send(&mut self, now_ps: Time, frame_bytes: usize) -> Result<Time, DropReason> {
        let busy = self.busy_until_ps > now_ps;
        let start_ps = if busy { self.busy_until_ps } else { now_ps };
        if self.last_bytes as usize != frame_bytes {
            self.size_changed(frame_bytes);
        }
        let sent_ps = start_ps.saturating_add(self.last_sending_ps);
        self.busy_until_ps = sent_ps;
        // The jitter is drawn for lost packets too, so that losing one does not shift the draws of the others.
        let (lost, jitter_ps, arrival_ps) = match &mut self.disturbance {
            None => (false, 0, sent_ps.saturating_add(self.delay_ps)),
            Some(it) => {
                let (lost, jitter_ps) = (it.loss.step() | it.silent, it.jitter.draw_ps());
                let arrival_ps = it.arrival_ps(sent_ps, self.delay_ps, jitter_ps);
                (lost, jitter_ps, arrival_ps)
            }
        };
        self.counters.in_transit += 1;
        if busy {
            self.waiting_bytes += u64::from(self.last_bytes);
            self.waiting.push_back(Waiting {
                start_ps,
                jitter_ps,
                frame_bytes: self.last_bytes,
                lost,
            });
        } else {
            self.counters.started(frame_bytes, lost);
        }
        match lost {
            true => Err(DropReason::Loss),
            false => Ok(arrival_ps),
        }
    }

    /// Stores the size of a frame, which differs from that of the last one, and computes its transmission time.
    fn size_changed(&mut self, frame_bytes: usize) {
        // Frames beyond 4 GiB would be of one size; there are none.
        self.last_bytes = u32::try_from(frame_bytes).unwrap_or(u32::MAX);
        self.last_sending_ps = serialisation_ps(frame_bytes, self.rate_bps);
    }

    /// Returns true if the direction was never offered a packet, holds none for ordering, and does not serve as the
    /// output of a traffic manager.
    pub(crate) fn is_unused(&self) -> bool {
        let holds = self.ordering().is_some_and(|it| it.counters().held > 0);
        self.counters.offered == 0 && !self.gate.asleep && !holds
    }

    /// Enables the direction's own queue (`own` is true), or disables it because a traffic manager queues the packets.
    pub(crate) fn use_queue(&mut self, own: bool) {
        self.gate.asleep = !own;
        self.gate_is_active = self.gate.is_active();
    }

    pub(crate) fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Returns the propagation delay of packets in picoseconds; `None` if it varies because of jitter.
    pub(crate) fn constant_delay_ps(&self) -> Option<u64> {
        match &self.disturbance {
            Some(it) if !it.jitter.is_none() => None,
            _ => Some(self.delay_ps),
        }
    }

    /// Returns the time at which the last bit of all accepted packets will have been sent.
    pub(crate) fn busy_until_ps(&self) -> Time {
        self.busy_until_ps
    }

    /// Removes from the queue the packets whose transmission has started by `now_ps`, and counts them as sent.
    fn settle(&mut self, now_ps: Time) {
        while let Some(&Waiting {
            start_ps,
            frame_bytes,
            lost,
            ..
        }) = self.waiting.front()
        {
            if start_ps > now_ps {
                break;
            }
            self.waiting.pop_front();
            self.waiting_bytes -= u64::from(frame_bytes);
            self.counters.started(frame_bytes as usize, lost);
        }
    }

    /// Counts a packet that has arrived at the receiving end as delivered.
    pub(crate) fn arrived(&mut self) {
        self.counters.delivered += 1;
        self.counters.in_transit -= 1;
    }

    /// Sets the direction up or down at `now_ps`; going down loses all packets in the queue and on the wire. Returns
    /// the number of packets lost by that, except those whose loss was decided before; `None` if the state does not
    /// change.
    pub(crate) fn set_up(&mut self, now_ps: Time, up: bool) -> Option<u64> {
        if self.up == up {
            return None;
        }
        self.settle(now_ps);
        self.up = up;
        self.epoch += 1;
        if up {
            return Some(0);
        }
        self.generation += 1;
        let lost = std::mem::take(&mut self.counters.in_transit);
        self.counters.down_drops += lost;
        // Those that were to be lost on the wire are in transit as long as they wait, and an observer was told of them already.
        let told = self.waiting.iter().filter(|packet| packet.lost).count() as u64;
        self.waiting.clear();
        self.waiting_bytes = 0;
        self.busy_until_ps = now_ps;
        if let Some(it) = &mut self.disturbance {
            it.not_before_ps = Time::ZERO;
        }
        Some(lost - told)
    }

    /// Returns the direction's counters at `now_ps`; packets whose transmission has begun by then count as sent.
    pub(crate) fn counters(&self, now_ps: Time) -> DirectionCounters {
        let mut counters = self.counters;
        for packet in self
            .waiting
            .iter()
            .take_while(|packet| packet.start_ps <= now_ps)
        {
            counters.started(packet.frame_bytes as usize, packet.lost);
        }
        counters
    }
}

const _: () = {
    use std::mem::offset_of;
    // An arrival's part, and a transmission's.
    assert!(offset_of!(Direction, counters) + offset_of!(DirectionCounters, in_transit) + 8 <= 64);
    assert!(offset_of!(Direction, rate_bps) <= 192);
};

#[cfg(test)]
mod tests;
