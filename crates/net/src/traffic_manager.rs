//! The traffic manager of a switch: packets wait between ingress and egress, in the queues of the port that they leave by. `switch::queued`
//! has the order of events; this module holds the packets that wait. It does not know programs.
//!
//! # The model
//!
//! A packet runs ingress when it arrives, with the tables as they are then. `latency_ps` later its copies reach the queues of
//! their ports: unicast packets, replicas and clones alike. Each port has 1 to 8 queues; the packet's `priority` says which,
//! the highest number first; packets above the highest queue go there. As soon as the port's transmitter is free, the first
//! packet of the highest queue that is not empty leaves it, runs egress then (with `enq_timestamp`, `enq_qdepth`,
//! `deq_timedelta` and `deq_qdepth` set), and goes onto the wire. Egress takes no time. If it drops the packet, the next one is
//! taken at once. The link's own queue is not used; each of the port's queues holds as much, unless it is given
//! something else.
//!
//! Depths are counted per queue, in packets. `enq_qdepth` is what waits ahead of the packet when it arrives (without the one being
//! transmitted), `deq_qdepth` what waits behind it when it leaves. A limit in bytes counts a packet with the length that it had
//! when it entered ingress. A packet that finds its port idle is taken whatever the limits are.
//!
//! Early marks ([`crate::queue`]) are decided when a packet arrives at its queue: it can be marked if it could when it
//! entered ingress, and is when it leaves. Egress does not see the mark.
//!
//! A port without a link (the CPU port, an interface of the machine) takes packets at once. A port whose link is down takes
//! them too, and the link counts what it loses. A switch that fails loses all that waits, and so does one that is given another
//! program.
//!
//! A recirculated packet goes through one of the switch's recirculation ports ([`recirculation`]), or at once if there are none. Then it
//! runs ingress again, latency included. Resubmission takes no time.
//!
//! # Where it differs from the reference target
//!
//! There, queues are emptied at a rate in packets per second set for each, unlimited at first, whatever the packets' sizes and
//! the link are; here by the link's transmitter, in bits per second. There, limits are in packets (64 by default); here also in
//! bytes. There, a switch has one queue per port unless it was started with more, and drops packets whose priority is beyond;
//! here it has eight, and none is dropped for that. Higher priorities come first in both, and depths are those of the packet's
//! own queue. There, recirculated and resubmitted packets go through the input buffer, which takes a time that depends on the
//! machine. There, no packet is marked.

pub(crate) mod recirculation;

use crate::error::{NetError, out_of_range};
use crate::observer::DropReason;
use crate::queue::{Gate, Occupancy, QueueConfig, Verdict};
use engine::switch::MAX_WORK;
use engine::{Emission, Enqueued, Recirculated, Time};
use recirculation::{
    Recirculating, RecirculationConfig, RecirculationPorts, RecirculationStatistics,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Most queues of a port.
pub const MAX_QUEUES: u8 = 8;

/// Where packets wait that a switch sends faster than a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Queueing {
    /// In a traffic manager if the switch has a link, and the program observes queues ([`engine::observed`]) or the
    /// configuration has queue limits or recirculation ports; else at the links.
    #[default]
    Auto,
    /// Packets wait at the link, behind egress.
    Link,
    /// Packets wait in a traffic manager, between ingress and egress.
    TrafficManager,
}

/// Parameters of a traffic manager.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficManagerConfig {
    /// Queues of each port, 1 to 8.
    pub queues: u8,
    /// The limit and discipline of each queue; if `None`, those of the port's link.
    pub queue: Option<QueueConfig>,
    /// The limits and disciplines of single queues in place of that, by queue number.
    pub by_priority: BTreeMap<u8, QueueConfig>,
    /// The recirculation ports, if there are any.
    pub recirculation: Option<RecirculationConfig>,
}

impl Default for TrafficManagerConfig {
    fn default() -> TrafficManagerConfig {
        TrafficManagerConfig {
            queues: MAX_QUEUES,
            queue: None,
            by_priority: BTreeMap::new(),
            recirculation: None,
        }
    }
}

impl TrafficManagerConfig {
    pub(crate) fn check(&self) -> Result<(), NetError> {
        if self.queues == 0 || self.queues > MAX_QUEUES {
            return Err(out_of_range("queues", "from 1 to 8"));
        }
        if self.by_priority.keys().any(|&number| number >= self.queues) {
            return Err(out_of_range("the number of a queue", "one that there is"));
        }
        if let Some(recirculation) = &self.recirculation {
            recirculation.check()?;
        }
        let mut queues = self.by_priority.values().chain(&self.queue);
        queues.try_for_each(QueueConfig::check)
    }

    /// Returns true if the configuration has queue limits or recirculation ports, which need a traffic manager whatever
    /// the program does.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.queue.is_some() || !self.by_priority.is_empty() || self.recirculation.is_some()
    }

    /// Returns the configuration of queue `number` of a port. The default, `of_link`, is the configuration of the queue
    /// of the port's link.
    fn queue(&self, number: u8, of_link: QueueConfig) -> QueueConfig {
        let own = self.by_priority.get(&number).copied();
        own.or(self.queue).unwrap_or(of_link)
    }
}

/// The outcomes for packets of a queue. At any time,
/// `offered = taken + queue_drops + red_drops + down_drops + packets`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct QueueStatistics {
    /// Packets for this queue.
    pub offered: u64,
    /// Packets that were taken from the queue, and went to egress.
    pub taken: u64,
    /// Packets that found the queue full.
    pub queue_drops: u64,
    /// Packets that the queue's discipline dropped before it was full.
    pub red_drops: u64,
    /// Packets that were accepted to be marked when they leave.
    pub marked: u64,
    /// Packets that were lost because the switch failed or was given another program.
    pub down_drops: u64,
    /// Packets that wait now.
    pub packets: u64,
    /// Bytes that wait now, by the lengths with which packets entered ingress.
    pub bytes: u64,
    /// The most packets that ever waited.
    pub max_packets: u64,
    /// The most bytes that ever waited.
    pub max_bytes: u64,
    /// The mean number of waiting packets since the traffic manager was created.
    pub mean_packets: f64,
    /// The mean number of waiting bytes since then.
    pub mean_bytes: f64,
}

/// The counters of a queue, and their sums over time.
#[derive(Debug, Default)]
struct Gauge {
    statistics: QueueStatistics,
    changed_ps: Time,
    /// The sums over time of waiting packets and bytes, in picoseconds, up to the last change.
    packet_time: u128,
    byte_time: u128,
}

impl Gauge {
    fn change(&mut self, now_ps: Time) -> &mut QueueStatistics {
        let time = u128::from(now_ps.saturating_sub(self.changed_ps));
        self.packet_time += u128::from(self.statistics.packets) * time;
        self.byte_time += u128::from(self.statistics.bytes) * time;
        self.changed_ps = now_ps;
        &mut self.statistics
    }

    fn push(&mut self, now_ps: Time, bytes: u64) {
        let s = self.change(now_ps);
        s.packets += 1;
        s.bytes += bytes;
        s.max_packets = s.max_packets.max(s.packets);
        s.max_bytes = s.max_bytes.max(s.bytes);
    }

    fn pop(&mut self, now_ps: Time, bytes: u64) {
        let s = self.change(now_ps);
        s.packets -= 1;
        s.bytes -= bytes;
        s.taken += 1;
    }

    fn lose_all(&mut self, now_ps: Time) -> u64 {
        let s = self.change(now_ps);
        let lost = std::mem::take(&mut s.packets);
        s.bytes = 0;
        s.down_drops += lost;
        lost
    }

    fn statistics(&self, since_ps: Time, now_ps: Time) -> QueueStatistics {
        let mut s = self.statistics;
        let time = u128::from(now_ps.saturating_sub(self.changed_ps));
        let elapsed = now_ps.saturating_sub(since_ps).max(1) as f64;
        s.mean_packets = (self.packet_time + u128::from(s.packets) * time) as f64 / elapsed;
        s.mean_bytes = (self.byte_time + u128::from(s.bytes) * time) as f64 / elapsed;
        s
    }
}

/// A packet in a queue.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) copy: Enqueued,
    /// True if the packet must be marked when it leaves.
    pub(crate) mark: bool,
}

/// A packet that was taken from its queue.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) waiting: Waiting,
    pub(crate) queue: u8,
    /// The number of packets left in its queue.
    pub(crate) deq_qdepth: u32,
}

/// One queue of a port.
#[derive(Debug)]
struct Queue {
    waiting: VecDeque<Waiting>,
    gate: Gate,
    gauge: Gauge,
    /// The time at which the last packet taken from the queue was sent; if the queue is empty, it is idle from then on.
    idle_since_ps: Time,
}

impl Queue {
    /// Returns the time since which no packet of the queue waits or is being sent; `None` if there is one. One queue of
    /// several may be idle while the transmitter is busy.
    fn idle_since_ps(&self, now_ps: Time) -> Option<Time> {
        let is_idle = self.waiting.is_empty() && self.idle_since_ps <= now_ps;
        is_idle.then_some(self.idle_since_ps)
    }
}

/// The state of a port's transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transmitter {
    /// The link direction by which it sends, if the port has a link.
    pub(crate) direction: Option<u32>,
    pub(crate) busy_until_ps: Time,
}

/// The properties of a port's queues when they are created.
#[derive(Debug)]
pub(crate) struct PortPlan {
    pub(crate) direction: Option<u32>,
    pub(crate) queue: QueueConfig,
    pub(crate) rate_bps: u64,
    pub(crate) seed: u64,
    pub(crate) name: String,
}

/// The queues of a port, in the order of their numbers.
#[derive(Debug)]
struct Port {
    direction: Option<u32>,
    queues: Vec<Queue>,
    /// The time of the next event that is scheduled for the port.
    wake_ps: Option<Time>,
}

impl Port {
    fn new(config: &TrafficManagerConfig, plan: &PortPlan) -> Port {
        let queue = |number: u8| {
            let held = match plan.direction {
                Some(_) => config.queue(number, plan.queue),
                // Its packets are taken at once.
                None => plan.queue,
            };
            let name = format!("{}/queue {number}", plan.name);
            Queue {
                waiting: VecDeque::new(),
                gate: Gate::new(held, plan.rate_bps, plan.seed, &name),
                gauge: Gauge::default(),
                idle_since_ps: Time::ZERO,
            }
        };
        Port {
            direction: plan.direction,
            queues: (0..config.queues).map(queue).collect(),
            wake_ps: None,
        }
    }

    fn is_empty(&self) -> bool {
        self.queues.iter().all(|queue| queue.waiting.is_empty())
    }
}

/// What happens to a packet that is offered to a queue.
#[derive(Debug)]
pub(crate) enum Offered {
    /// It waits.
    Waits,
    /// It is dropped, for this reason.
    Dropped(Enqueued, DropReason),
}

/// The packets that wait in a switch between ingress and egress.
#[derive(Debug)]
pub(crate) struct TrafficManager {
    config: TrafficManagerConfig,
    /// The program to which the waiting packets belong.
    pub(crate) program: Arc<ir::Program>,
    /// Grows when waiting packets become worthless; events for packets of an earlier epoch are ignored.
    pub(crate) epoch: u32,
    since_ps: Time,
    ports: Vec<Option<Box<Port>>>,
    recirculation: Option<RecirculationPorts>,
    /// The number of clones and recirculated packets that are still allowed at this time. Without a limit, a program
    /// could loop for ever.
    work_left: (Time, u32),
    // Buffers that are used again.
    pub(crate) emissions: Vec<Emission>,
    pub(crate) copies: Vec<Enqueued>,
    pub(crate) work: Work,
}

/// The work that remains at a switch at the present time.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Copies of packets to be put into queues.
    pub(crate) copies: VecDeque<Enqueued>,
    /// Packets to be run through ingress when there are no more copies.
    pub(crate) again: VecDeque<Recirculated>,
}

impl TrafficManager {
    pub(crate) fn new(
        config: TrafficManagerConfig,
        program: Arc<ir::Program>,
        now_ps: Time,
    ) -> TrafficManager {
        TrafficManager {
            recirculation: config.recirculation.map(RecirculationPorts::new),
            config,
            program,
            epoch: 0,
            since_ps: now_ps,
            ports: Vec::new(),
            work_left: (Time::ZERO, MAX_WORK),
            work: Work::default(),
            emissions: Vec::new(),
            copies: Vec::new(),
        }
    }

    /// Counts one more clone or recirculated packet at `now_ps`. Returns true if the limit for one instant allows it.
    pub(crate) fn may_work(&mut self, now_ps: Time) -> bool {
        if self.work_left.0 != now_ps {
            self.work_left = (now_ps, MAX_WORK);
        }
        let left = self.work_left.1.checked_sub(1);
        self.work_left.1 = left.unwrap_or(0);
        left.is_some()
    }

    /// Returns true if the queues of a port exist, and were created for the link with this direction.
    pub(crate) fn has_port(&self, port: u32, direction: Option<u32>) -> bool {
        let known = self.ports.get(port as usize).and_then(Option::as_ref);
        known.is_some_and(|port| port.direction == direction)
    }

    pub(crate) fn add_port(&mut self, port: u32, plan: &PortPlan) {
        let index = port as usize;
        if self.ports.len() <= index {
            self.ports.resize_with(index + 1, || None);
        }
        self.ports[index] = Some(Box::new(Port::new(&self.config, plan)));
    }

    fn port(&mut self, port: u32) -> Option<&mut Port> {
        self.ports.get_mut(port as usize)?.as_deref_mut()
    }

    /// Offers a copy of a packet to the queue of its port and priority. Returns whether it waits, perhaps to be marked,
    /// or is dropped: because the queue refuses it, or the port has no queues.
    pub(crate) fn offer(
        &mut self,
        now_ps: Time,
        transmitter: Transmitter,
        mut copy: Enqueued,
    ) -> Offered {
        let Some(port) = self.port(copy.port) else {
            return Offered::Dropped(copy, DropReason::QueueFull);
        };
        let busy = transmitter.busy_until_ps > now_ps || !port.is_empty();
        let highest = port.queues.len() - 1;
        let queue = &mut port.queues[usize::from(copy.priority).min(highest)];
        let bytes = copy.bytes();
        let idle_since_ps = queue.idle_since_ps(now_ps);
        let statistics = &mut queue.gauge.statistics;
        statistics.offered += 1;
        let found = Occupancy {
            packets: statistics.packets,
            bytes: statistics.bytes,
            transmitter_free: !busy,
            idle_since_ps,
        };
        let mark = match queue.gate.admit(now_ps, found, bytes) {
            Verdict::Take => false,
            Verdict::Mark if is_ect(&copy) => {
                statistics.marked += 1;
                true
            }
            Verdict::Mark | Verdict::DropEarly => {
                statistics.red_drops += 1;
                return Offered::Dropped(copy, DropReason::Early);
            }
            Verdict::DropFull => {
                statistics.queue_drops += 1;
                return Offered::Dropped(copy, DropReason::QueueFull);
            }
        };
        copy.set_enqueued(now_ps, depth(statistics.packets));
        queue.gauge.push(now_ps, bytes as u64);
        queue.waiting.push_back(Waiting { copy, mark });
        Offered::Waits
    }

    /// Removes and returns the next packet of a port whose transmitter is free: the first one of the highest queue that
    /// is not empty. Returns `None` if all queues are empty.
    pub(crate) fn take(&mut self, now_ps: Time, port: u32) -> Option<Taken> {
        let queues = &mut self.port(port)?.queues;
        let number = queues.iter().rposition(|q| !q.waiting.is_empty())?;
        let queue = &mut queues[number];
        let waiting = queue.waiting.pop_front()?;
        queue.gauge.pop(now_ps, waiting.copy.bytes() as u64);
        Some(Taken {
            waiting,
            queue: number as u8,
            deq_qdepth: depth(queue.gauge.statistics.packets),
        })
    }

    /// Records that the packet last taken from a queue will have been sent at `sent_ps`; the queue may be idle from
    /// then on.
    pub(crate) fn sent(&mut self, port: u32, queue: u8, sent_ps: Time) {
        if let Some(port) = self.port(port)
            && let Some(queue) = port.queues.get_mut(usize::from(queue))
        {
            queue.idle_since_ps = sent_ps;
        }
    }

    /// Adapts the disciplines of a port's queues to a new rate of its transmitter, `rate_bps` bits per second.
    pub(crate) fn change_rate(&mut self, now_ps: Time, port: u32, rate_bps: u64) {
        for queue in self.port(port).into_iter().flat_map(|it| &mut it.queues) {
            let idle_since_ps = queue.idle_since_ps(now_ps);
            queue.gate.change_rate(now_ps, idle_since_ps, rate_bps);
        }
    }

    /// Plans to serve a port at `at_ps`. Returns true if an event must be scheduled for that: if packets wait and no
    /// earlier event is planned.
    pub(crate) fn wake(&mut self, port: u32, at_ps: Time) -> bool {
        match self.port(port) {
            Some(port) if !port.is_empty() && port.wake_ps.is_none_or(|wake| wake > at_ps) => {
                port.wake_ps = Some(at_ps);
                true
            }
            _ => false,
        }
    }

    /// Records that the event that was planned for a port takes place at `now_ps`.
    pub(crate) fn woken(&mut self, now_ps: Time, port: u32) {
        if let Some(port) = self.port(port)
            && port.wake_ps.is_some_and(|wake| wake <= now_ps)
        {
            port.wake_ps = None;
        }
    }

    /// Offers a packet to the recirculation port that is chosen for it, and returns what becomes of it. Without
    /// recirculation ports, the packet passes at once.
    pub(crate) fn recirculate(&mut self, now_ps: Time, packet: Recirculated) -> Recirculating {
        match &mut self.recirculation {
            None => Recirculating::Through(packet),
            Some(ports) => ports.offer(now_ps, packet),
        }
    }

    /// Returns the packet that has passed a recirculation port by `now_ps`; `None` if none has. Also returns the time
    /// at which the next one will have passed, if there is one.
    pub(crate) fn recirculated(
        &mut self,
        now_ps: Time,
        port: u16,
    ) -> Option<(Recirculated, Option<Time>)> {
        self.recirculation.as_mut()?.passed(now_ps, port)
    }

    /// Drops all waiting packets, those of recirculation ports included, and counts them as lost; scheduled events for
    /// packets become void. Returns the number of packets.
    pub(crate) fn lose_all(&mut self, now_ps: Time) -> u64 {
        self.epoch += 1;
        let mut lost = 0;
        for queue in self.ports.iter_mut().flatten().flat_map(|p| &mut p.queues) {
            queue.waiting.clear();
            lost += queue.gauge.lose_all(now_ps);
        }
        let recirculation = self.recirculation.as_mut();
        lost + recirculation.map_or(0, |ports| ports.lose_all(now_ps))
    }

    /// Returns the statistics of all queues with their port and queue numbers, in that order. Leaves out ports that
    /// have had no packet so far.
    pub(crate) fn statistics(&self, now_ps: Time) -> Vec<(u32, u8, QueueStatistics)> {
        let ports = self.ports.iter().enumerate();
        let queues = ports.flat_map(|(number, port)| {
            let queues = port.iter().flat_map(|port| &port.queues).enumerate();
            queues.map(move |(i, queue)| (number as u32, i as u8, &queue.gauge))
        });
        queues
            .map(|(port, queue, gauge)| (port, queue, gauge.statistics(self.since_ps, now_ps)))
            .collect()
    }

    /// Returns the statistics of the recirculation ports, ordered by number; an empty list if there are none.
    pub(crate) fn recirculation_statistics(&self, now_ps: Time) -> Vec<RecirculationStatistics> {
        let ports = self.recirculation.as_ref();
        ports.map_or_else(Vec::new, |ports| ports.statistics(self.since_ps, now_ps))
    }
}

fn depth(packets: u64) -> u32 {
    u32::try_from(packets).unwrap_or(u32::MAX)
}

fn is_ect(copy: &Enqueued) -> bool {
    wire::ecn::codepoint(copy.packet().stored()).is_some_and(wire::ecn::Codepoint::is_ect)
}
