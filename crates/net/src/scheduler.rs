//! The scheduler: the time, and the events to come, in order. It does not know what an event does; `network` and the nodes do.
//!
//! Events are ordered by time, then priority, then as they were scheduled; or, if that is asked for
//! ([`Scheduler::order_by_number`]), first by number: among arrivals of one instant the number of the direction decides, among what leaves
//! switches that of the switch, among what sources send that of the flow. So a run has exactly one order, and by number it is the same
//! whether a node handles its packets one by one or many at a visit (`network::visit`).

mod withdrawal;

use crate::link::change::Change;
use crate::{FlowId, GeneratorId, NodeId};
use engine::{Enqueued, Packet, Time};
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

/// Something that happens at a time.
#[derive(Debug)]
pub(crate) enum Event {
    /// One or both of a link's directions (by number) change: they fail or are repaired, or their parameters change.
    DirectionChange {
        directions: [u32; 2],
        change: Box<Change>,
    },
    /// A node fails or comes back.
    NodeState { node: NodeId, up: bool },
    /// A random failure process makes its target fail or be repaired.
    RandomFailure { process: u32 },
    /// The receiving end of a link direction notices the direction's signal, unless that has changed again (`epoch`).
    Detect { direction: u32, epoch: u32 },
    /// The BFD session at the receiving end of a link direction may have to send, or its detection time may be over.
    Session { direction: u32 },
    /// A packet arrives at the end of a link direction, unless that has failed since the packet was sent
    /// (`generation`).
    Arrive {
        direction: u32,
        generation: u32,
        packet: Packet,
    },
    /// A packet leaves a switch, unless the switch has failed meanwhile (`generation`).
    Depart {
        node: NodeId,
        generation: u32,
        port: u32,
        packet: Packet,
    },
    /// A copy of a packet reaches its queue in a switch's traffic manager, unless the switch has failed (`generation`)
    /// or was given another program (`epoch`).
    Enqueue {
        node: NodeId,
        generation: u32,
        epoch: u32,
        copy: Box<Enqueued>,
    },
    /// A node's own timer has expired; only the node knows what the token means.
    Wake {
        node: NodeId,
        turn: Turn,
        token: Token,
    },
    /// The ordering function of a link direction may have to release a packet. It is sent now, so nothing may have been
    /// sent by that direction at a later time.
    OrderingDue { direction: u32 },
    /// A flow's next packet is due.
    Send { flow: FlowId },
    /// A period of a packet generator begins.
    Generate { generator: GeneratorId },
}

/// The place of a node's own timer in the order of events of one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Before packets arrive: a transmitter may have become free.
    Transmitter = 2,
    /// Among the packets that leave nodes.
    Departure = 4,
    /// Among the sources.
    Source = 5,
    /// After everything else. The node may change what it does with packets, so that visits (`network::visit`) end
    /// there.
    Agent = 6,
}

/// The meaning of a node's own timer: which of the node's timers it is, and a number for its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) timer: u8,
    pub(crate) value: u32,
}

impl Event {
    /// Returns the lane (FIFO of arrivals or departures) in which an event waits if its kind is mostly scheduled in the
    /// order of time; `None` for other events.
    fn lane(&self) -> Option<Place> {
        match self {
            Event::Arrive { direction, .. } => Some(Place::Arrivals(*direction)),
            Event::Depart { node, .. } | Event::Enqueue { node, .. } => {
                Some(Place::Departures(node.0))
            }
            _ => None,
        }
    }

    /// Returns the number that orders events of the same instant and priority after [`Scheduler::order_by_number`]: of
    /// a flow, link direction or node. Events with equal numbers keep the order in which they were scheduled.
    fn number(&self) -> u32 {
        match self {
            Event::Send { flow } => flow.0,
            other => other.lane().map_or(0, Place::number),
        }
    }

    /// Returns true if the event may change what a switch does with a packet, other than by sending another packet to
    /// it. Visits (`network::visit`) end before such an event.
    fn is_barrier(&self) -> bool {
        match self {
            Event::DirectionChange { .. }
            | Event::NodeState { .. }
            | Event::RandomFailure { .. }
            | Event::Detect { .. }
            | Event::Generate { .. } => true,
            Event::Wake { turn, .. } => *turn == Turn::Agent,
            // Those of traffic managers change nothing in switches without one.
            Event::Arrive { .. }
            | Event::Depart { .. }
            | Event::Enqueue { .. }
            // Nor do those of nodes that hold packets back, which are not visited.
            | Event::OrderingDue { .. }
            // Nor do those of nodes with BFD sessions.
            | Event::Session { .. }
            | Event::Send { .. } => false,
        }
    }

    /// Returns the event's priority among events of the same instant, the lowest first: failures and repairs, then
    /// their detection, then packets that wait for a transmitter or an ordering function, then other packets, then
    /// sources, and last agents. So a packet that arrives at the very instant of a failure is lost, and a packet that
    /// arrives just when another has been sent does not find that one in the queue.
    fn priority(&self) -> u64 {
        match self {
            Event::DirectionChange { .. }
            | Event::NodeState { .. }
            | Event::RandomFailure { .. } => 0,
            Event::Detect { .. } => 1,
            Event::Wake { turn, .. } => *turn as u64,
            Event::OrderingDue { .. } => 2,
            Event::Arrive { .. } => ARRIVAL_PRIORITY,
            Event::Depart { .. } | Event::Enqueue { .. } => 4,
            // A packet that arrives when the detection time is over is in time.
            Event::Session { .. } | Event::Send { .. } | Event::Generate { .. } => 5,
        }
    }
}

const ARRIVAL_PRIORITY: u64 = 3;

/// An order has the priority in its high bits, then the lane's number, then the sequence number.
const PRIORITY_SHIFT: u32 = 60;
const LANE_SHIFT: u32 = 34;
const SEQUENCE_MASK: u64 = (1 << LANE_SHIFT) - 1;
/// The highest lane number that is distinguished in an order: those above it count as equal among events of one
/// instant.
const MAX_ORDERED_LANE: u64 = (1 << (PRIORITY_SHIFT - LANE_SHIFT)) - 1;

/// The position of an event in the order of all events. No two are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    time_ps: Time,
    /// The priority, the lane's number and the sequence number, from the high bits to the low ones.
    order: u64,
}

/// The place where an event waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// A slot of its own.
    Slot(u32),
    /// The lane of the arrivals at the end of a link direction, given by number.
    Arrivals(u32),
    /// The lane of the departures from a node, given by number.
    Departures(u32),
}

impl Place {
    /// Returns the number of the lane (FIFO of events) at this place, which orders events of the same instant and
    /// priority; 0 for a slot.
    #[inline(always)]
    fn number(self) -> u32 {
        match self {
            Place::Slot(_) => 0,
            Place::Arrivals(direction) => direction.saturating_mul(2),
            Place::Departures(node) => node.saturating_mul(2).saturating_add(1),
        }
    }
}

/// The rank by which the heap sorts, and the place of the event. The heap moves keys, not events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    rank: Rank,
    place: Place,
}

/// A queue of events that happen in the order in which they were scheduled.
#[derive(Debug)]
struct Lane<T> {
    /// Has no memory while nothing waits.
    waiting: VecDeque<T>,
    /// True if the heap has a key for the lane: that of its first event, or an earlier one if events were taken without
    /// the heap.
    in_heap: bool,
    /// The number of events that belong to the lane but overtake others, and so wait in slots.
    overtaking: u32,
}

impl<T> Default for Lane<T> {
    fn default() -> Lane<T> {
        Lane {
            waiting: VecDeque::new(),
            in_heap: false,
            overtaking: 0,
        }
    }
}

impl<T: Waiting> Lane<T> {
    /// Returns the rank, which is time and order, of the first event that waits in the lane; `None` if none waits.
    #[inline(always)]
    fn head(&self) -> Option<Rank> {
        self.waiting.front().map(T::rank)
    }

    /// Returns true if an event of this rank happens after all events that wait in the lane.
    #[inline(always)]
    fn is_behind(&self, rank: Rank) -> bool {
        self.waiting.back().is_none_or(|last| last.rank() < rank)
    }
}

/// The lanes of one kind, by number.
#[derive(Debug)]
struct Lanes<T> {
    lanes: Vec<Lane<T>>,
    /// Memory of lanes in which nothing waits. The last one used is in the processor's caches, and is the first to be
    /// used again.
    spare: Vec<VecDeque<T>>,
}

impl<T> Default for Lanes<T> {
    fn default() -> Lanes<T> {
        Lanes {
            lanes: Vec::new(),
            spare: Vec::new(),
        }
    }
}

impl<T: Waiting> Lanes<T> {
    #[inline(always)]
    fn get(&self, number: u32) -> Option<&Lane<T>> {
        self.lanes.get(number as usize)
    }

    /// Creates the lane (FIFO of events) with the number `number`, and those with lower numbers, if they do not exist.
    #[cold]
    fn make(&mut self, number: u32) {
        self.lanes.resize_with(number as usize + 1, Lane::default);
    }

    /// Appends an empty place to the lane (FIFO of events) `number`, and returns it for filling. Also returns true if
    /// the lane's key must be added to the heap.
    #[inline(always)]
    fn push(&mut self, number: u32) -> (&mut T, bool) {
        let lane = &mut self.lanes[number as usize];
        if lane.waiting.capacity() == 0 {
            lane.waiting = self.spare.pop().unwrap_or_default();
        }
        let place = lane.waiting.push_back_mut(T::default());
        (place, !std::mem::replace(&mut lane.in_heap, true))
    }

    /// Removes and returns the first event of the lane (FIFO of events) `number`; `None` if it is empty. Keeps the
    /// memory of an emptied lane for other lanes.
    #[inline(always)]
    fn pop(&mut self, number: u32) -> Option<T> {
        let lane = &mut self.lanes[number as usize];
        let event = lane.waiting.pop_front();
        if lane.waiting.is_empty() && lane.waiting.capacity() != 0 {
            // Emptied, it begins at its beginning again.
            lane.waiting.clear();
            self.spare.push(std::mem::take(&mut lane.waiting));
        }
        event
    }

    /// Removes and returns the first event of the lane (FIFO of events) `number` if the heap's first key, `key`, stands
    /// for that event; else returns `None`. Changes the key to that of the lane's next event, or removes it if the lane
    /// is empty.
    #[inline(always)]
    fn pop_by_key(&mut self, number: u32, mut key: PeekMut<'_, Reverse<Key>>) -> Option<T> {
        // If it is not, the one that the key was for was taken past the heap.
        let is_head = self.lanes[number as usize].head() == Some(key.0.rank);
        let event = if is_head { self.pop(number) } else { None };
        let lane = &mut self.lanes[number as usize];
        match lane.head() {
            // One walk through the heap, not two.
            Some(rank) => key.0.rank = rank,
            None => {
                lane.in_heap = false;
                PeekMut::pop(key);
            }
        }
        event
    }
}

/// An event that waits in a lane.
trait Waiting: Default {
    fn rank(&self) -> Rank;
}

/// A packet that arrives at the end of the link direction in whose lane it waits.
#[derive(Debug, Default)]
struct Arrival {
    rank: Rank,
    generation: u32,
    packet: Packet,
}

impl Waiting for Arrival {
    #[inline(always)]
    fn rank(&self) -> Rank {
        self.rank
    }
}

impl Arrival {
    fn event(self, direction: u32) -> Event {
        Event::Arrive {
            direction,
            generation: self.generation,
            packet: self.packet,
        }
    }
}

/// An event that leaves the node in whose lane it waits.
#[derive(Debug, Default)]
struct Departure {
    rank: Rank,
    event: Option<Event>,
}

impl Waiting for Departure {
    #[inline(always)]
    fn rank(&self) -> Rank {
        self.rank
    }
}

/// The present time and the scheduled events.
///
/// Events that happen in the order in which they are scheduled, such as arrivals at the end of a wire, wait in a
/// *lane*, of which only the first has a key in the heap. So the heap's size is that of the network, not the number of
/// packets in it. An event that would overtake the last one of its lane (because of jitter) goes into the heap by
/// itself; the order of events is the same wherever they wait.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    /// The present time; during a visit (`network::visit`), the time of the packet.
    pub(crate) now_ps: Time,
    /// The number of events that have happened.
    pub(crate) steps: u64,
    /// For each node, the time up to which visits have handled everything; the present if that is later.
    pub(crate) horizons_ps: Vec<Time>,
    heap: BinaryHeap<Reverse<Key>>,
    slots: Vec<Option<Event>>,
    free: Vec<u32>,
    /// For each link direction, the packets that arrive at its end.
    arrivals: Lanes<Arrival>,
    /// For each node, the events that leave it.
    departures: Lanes<Departure>,
    /// The times of all scheduled events for which [`Event::is_barrier`] is true.
    barriers_ps: BinaryHeap<Reverse<Time>>,
    len: usize,
    sequence: u64,
    by_number: bool,
}

impl Scheduler {
    /// Makes the numbers of links, nodes and flows order events of the same instant and priority from now on, rather
    /// than the order in which they were scheduled.
    pub(crate) fn order_by_number(&mut self) {
        self.by_number = true;
    }

    /// Sets the present time to that of the event that happens now, and counts the event.
    #[inline]
    pub(crate) fn begin_event(&mut self, time_ps: Time) {
        debug_assert!(time_ps >= self.now_ps, "time runs forward");
        self.now_ps = time_ps;
        self.steps += 1;
    }

    /// Returns the time up to which visits, which run ahead of the simulation's clock, have handled everything at a
    /// node; zero if there were none.
    #[inline]
    pub(crate) fn horizon_ps(&self, node: NodeId) -> Time {
        let horizon_ps = self.horizons_ps.get(node.0 as usize);
        horizon_ps.copied().unwrap_or_default()
    }

    /// Schedules an event at `time_ps`, after those that are scheduled for the same time and priority (by default).
    #[inline(always)]
    pub(crate) fn push(&mut self, time_ps: Time, event: Event) {
        if let Event::Arrive {
            direction,
            generation,
            packet,
        } = event
        {
            return self.push_arrival(time_ps, direction, generation, packet);
        }
        let rank = self.rank(time_ps, &event);
        if event.is_barrier() {
            self.barriers_ps.push(Reverse(time_ps));
        }
        match event.lane() {
            Some(Place::Departures(node)) => self.push_departure(node, rank, event),
            _ => self.push_alone(rank, event),
        }
    }

    /// Schedules the arrival of a packet at the end of a link direction at `time_ps`. `generation` is the number of
    /// failures that the direction had when the packet was sent: packets from before the last failure are lost.
    #[inline(always)]
    pub(crate) fn push_arrival(
        &mut self,
        time_ps: Time,
        direction: u32,
        generation: u32,
        packet: Packet,
    ) {
        let number = Place::Arrivals(direction).number();
        let rank = self.next_rank(time_ps, ARRIVAL_PRIORITY, number);
        if self.arrivals.lanes.len() <= direction as usize {
            self.arrivals.make(direction);
        }
        if !self.arrivals.lanes[direction as usize].is_behind(rank) {
            return self.overtake(rank, direction, generation, packet);
        }
        let (arrival, first) = self.arrivals.push(direction);
        // Field by field, where they wait: put together elsewhere and copied, they would wait until all that was written before has come to
        // memory, for most of a large network's events.
        arrival.rank = rank;
        arrival.generation = generation;
        arrival.packet = packet;
        if first {
            let place = Place::Arrivals(direction);
            self.heap.push(Reverse(Key { rank, place }));
        }
    }

    #[cold]
    #[inline(never)]
    fn overtake(&mut self, rank: Rank, direction: u32, generation: u32, packet: Packet) {
        self.arrivals.lanes[direction as usize].overtaking += 1;
        let event = Event::Arrive {
            direction,
            generation,
            packet,
        };
        self.push_alone(rank, event);
    }

    #[inline(always)]
    fn push_departure(&mut self, node: u32, rank: Rank, event: Event) {
        if self.departures.lanes.len() <= node as usize {
            self.departures.make(node);
        }
        let lane = &mut self.departures.lanes[node as usize];
        if !lane.is_behind(rank) {
            lane.overtaking += 1;
            return self.push_alone(rank, event);
        }
        let (departure, first) = self.departures.push(node);
        (departure.rank, departure.event) = (rank, Some(event));
        if first {
            let place = Place::Departures(node);
            self.heap.push(Reverse(Key { rank, place }));
        }
    }

    #[inline(always)]
    fn rank(&mut self, time_ps: Time, event: &Event) -> Rank {
        self.next_rank(time_ps, event.priority(), event.number())
    }

    #[inline(always)]
    fn next_rank(&mut self, time_ps: Time, priority: u64, number: u32) -> Rank {
        let order = match self.by_number {
            // The sequence begins anew after 2^34 events; two of one number and instant were scheduled closer together.
            true => {
                let lane = u64::from(number).min(MAX_ORDERED_LANE);
                lane << LANE_SHIFT | self.sequence & SEQUENCE_MASK
            }
            false => self.sequence,
        };
        let order = priority << PRIORITY_SHIFT | order;
        self.sequence += 1;
        self.len += 1;
        Rank { time_ps, order }
    }

    #[inline(never)]
    fn push_alone(&mut self, rank: Rank, event: Event) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(event);
                slot
            }
            None => {
                self.slots.push(Some(event));
                (self.slots.len() - 1) as u32
            }
        };
        let place = Place::Slot(slot);
        self.heap.push(Reverse(Key { rank, place }));
    }

    /// Returns a time before which no event is scheduled: that of the next event, or an earlier one. Returns `None` if
    /// no event is scheduled.
    #[inline]
    pub(crate) fn next_time_ps(&self) -> Option<Time> {
        self.heap.peek().map(|key| key.0.rank.time_ps)
    }

    /// Removes and returns the next event with its time, if it is scheduled at `limit_ps` or before; else `None`.
    #[inline]
    pub(crate) fn pop_until(&mut self, limit_ps: Time) -> Option<(Time, Event)> {
        loop {
            let top = self.heap.peek_mut()?;
            let Key { rank, place } = top.0;
            if rank.time_ps > limit_ps {
                return None;
            }
            let event = match place {
                Place::Slot(slot) => {
                    PeekMut::pop(top);
                    return self.take_slot(rank, slot);
                }
                Place::Arrivals(direction) => self
                    .arrivals
                    .pop_by_key(direction, top)
                    .map(|arrival| arrival.event(direction)),
                Place::Departures(node) => self
                    .departures
                    .pop_by_key(node, top)
                    .and_then(|departure| departure.event),
            };
            if let Some(event) = event {
                self.len -= 1;
                return Some((rank.time_ps, event));
            }
        }
    }

    fn take_slot(&mut self, rank: Rank, slot: u32) -> Option<(Time, Event)> {
        self.free.push(slot);
        let event = self.slots[slot as usize].take()?;
        if event.is_barrier() {
            self.barriers_ps.pop();
        }
        match event.lane() {
            Some(Place::Arrivals(direction)) => {
                self.arrivals.lanes[direction as usize].overtaking -= 1;
            }
            Some(Place::Departures(node)) => self.departures.lanes[node as usize].overtaking -= 1,
            _ => {}
        }
        self.len -= 1;
        Some((rank.time_ps, event))
    }

    /// Returns that one of `lanes` (FIFOs of events) whose first event is the earliest of all their events, if that event
    /// is before `end_ps`; otherwise `None`. Events outside `lanes` are not considered.
    ///
    /// Nor are events that overtake others on their link or in their node, as these wait outside its lane: see
    /// [`Scheduler::are_whole`].
    #[inline(always)]
    pub(crate) fn first_of(&self, lanes: &[Place], end_ps: Time) -> Option<Place> {
        let head = |lane: &Place| {
            let rank = self.head(*lane)?;
            (rank.time_ps < end_ps).then_some((rank, *lane))
        };
        lanes.iter().filter_map(head).min().map(|(_, place)| place)
    }

    /// Removes the first packet in the lane (FIFO of arrivals) of a link direction. Returns its time of arrival, the
    /// number of failures that the direction had when it was sent (its generation), and the packet; `None` if the
    /// lane is empty.
    #[inline(always)]
    pub(crate) fn pop_arrival(&mut self, direction: u32) -> Option<(Time, u32, Packet)> {
        let arrival = self.arrivals.pop(direction)?;
        self.len -= 1;
        Some((arrival.rank.time_ps, arrival.generation, arrival.packet))
    }

    /// Removes and returns the first event of a lane (the arrivals of one link direction, or the departures of one
    /// node), with its time; `None` if the lane is empty.
    #[inline]
    pub(crate) fn pop_from(&mut self, lane: Place) -> Option<(Time, Event)> {
        match lane {
            Place::Arrivals(direction) => {
                let (time_ps, generation, packet) = self.pop_arrival(direction)?;
                let event = Event::Arrive {
                    direction,
                    generation,
                    packet,
                };
                Some((time_ps, event))
            }
            Place::Departures(node) => {
                let departure = self.departures.pop(node)?;
                self.len -= 1;
                Some((departure.rank.time_ps, departure.event?))
            }
            Place::Slot(_) => None,
        }
    }

    /// Returns the rank, which is time and order, of the first event of a lane (FIFO of events); `None` if the lane is
    /// empty.
    #[inline(always)]
    fn head(&self, lane: Place) -> Option<Rank> {
        match lane {
            Place::Arrivals(direction) => self.arrivals.get(direction)?.head(),
            Place::Departures(node) => self.departures.get(node)?.head(),
            Place::Slot(_) => None,
        }
    }

    /// Returns true if all events that belong to these lanes (FIFOs of events) wait in them, so that none overtakes
    /// others.
    #[inline]
    pub(crate) fn are_whole(&self, lanes: &[Place]) -> bool {
        lanes.iter().all(|lane| {
            let overtaking = match *lane {
                Place::Arrivals(direction) => self.arrivals.get(direction).map(|it| it.overtaking),
                Place::Departures(node) => self.departures.get(node).map(|it| it.overtaking),
                Place::Slot(_) => None,
            };
            overtaking.is_none_or(|overtaking| overtaking == 0)
        })
    }

    /// Returns true if all packets that arrive at the end of a link direction wait in its lane, so that none overtakes
    /// others.
    #[inline]
    pub(crate) fn is_whole(&self, direction: u32) -> bool {
        self.are_whole(&[Place::Arrivals(direction)])
    }

    /// Returns the time at which the first packet in the lane of a link direction arrives; `None` if the lane is empty.
    #[inline]
    pub(crate) fn head_ps(&self, direction: u32) -> Option<Time> {
        let head = self.arrivals.get(direction)?.head();
        head.map(|rank| rank.time_ps)
    }

    /// Returns the time of the next event for which [`Event::is_barrier`] is true; [`Time::NEVER`] if none is
    /// scheduled.
    #[inline]
    pub(crate) fn next_barrier_ps(&self) -> Time {
        self.barriers_ps.peek().map_or(Time::NEVER, |next| next.0)
    }

    /// Returns the number of scheduled events.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(flow: u32) -> Event {
        Event::Send { flow: FlowId(flow) }
    }

    #[test]
    fn time_then_priority_then_sequence() {
        let mut queue = Scheduler::default();
        queue.push(Time::from(20_u64), send(0));
        queue.push(Time::from(10_u64), send(1));
        queue.push(
            Time::from(10_u64),
            Event::Detect {
                direction: 0,
                epoch: 0,
            },
        );
        queue.push(Time::from(10_u64), send(2));
        queue.push(
            Time::from(10_u64),
            Event::NodeState {
                node: NodeId(0),
                up: false,
            },
        );
        for turn in [
            Turn::Agent,
            Turn::Source,
            Turn::Departure,
            Turn::Transmitter,
        ] {
            let token = Token { timer: 0, value: 0 };
            let node = NodeId(turn as u32);
            queue.push(Time::from(10_u64), Event::Wake { node, turn, token });
        }
        let packet = Packet::new(&[1]);
        queue.push(
            Time::from(10_u64),
            Event::Depart {
                node: NodeId(0),
                generation: 0,
                port: 0,
                packet: packet.clone(),
            },
        );
        queue.push(
            Time::from(10_u64),
            Event::Arrive {
                direction: 0,
                generation: 0,
                packet,
            },
        );
        let mut order = Vec::new();
        while let Some((time_ps, event)) = queue.pop_until(Time::NEVER) {
            let text = format!("{event:?}");
            order.push(format!(
                "{time_ps} {}",
                text.split([' ', '{']).next().unwrap()
            ));
            match event {
                Event::Send { flow } => order.push(format!("flow {}", flow.0)),
                Event::Wake { turn, .. } => order.push(format!("{turn:?}")),
                _ => {}
            }
        }
        let expected = [
            "10 NodeState",
            "10 Detect",
            "10 Wake",
            "Transmitter",
            "10 Arrive",
            "10 Wake",
            "Departure",
            "10 Depart",
            "10 Send",
            "flow 1",
            "10 Send",
            "flow 2",
            "10 Wake",
            "Source",
            "10 Wake",
            "Agent",
            "20 Send",
            "flow 0",
        ];
        assert_eq!(order, expected);
    }

    /// Compares with the events of a queue without lanes, in a plain list that is sorted.
    #[test]
    fn lanes_change_no_order() {
        check_lanes(false);
        check_lanes(true);
    }

    fn check_lanes(by_number: bool) {
        let mut random = crate::random::Stream::named(1, "lanes");
        let (mut queue, mut expected) = (Scheduler::default(), Vec::new());
        if by_number {
            queue.order_by_number();
        }
        let mut now_ps = 0;
        for sequence in 0..20_000u32 {
            // Mostly later than the last one of the lane, sometimes earlier, often at the same time.
            let time_ps = now_ps + random.uniform(0, 12) as u64 * 10;
            let event = match random.uniform(0, 2) {
                0 => send(sequence),
                1 => Event::Arrive {
                    direction: random.uniform(0, 3) as u32,
                    generation: sequence,
                    packet: Packet::default(),
                },
                _ => Event::Depart {
                    node: NodeId(random.uniform(0, 3) as u32),
                    generation: sequence,
                    port: 0,
                    packet: Packet::default(),
                },
            };
            let lane = if by_number { event.number() } else { 0 };
            expected.push((time_ps, event.priority(), lane, sequence));
            queue.push(Time::from(time_ps), event);
            assert_eq!(queue.len(), expected.len());
            if random.uniform(0, 3) != 0 {
                expected.sort_unstable();
                let (time_ps, _, _, sequence) = expected.remove(0);
                if time_ps > 0 {
                    assert!(queue.pop_until(Time::from(time_ps - 1)).is_none());
                }
                let (popped_ps, event) = queue.pop_until(Time::from(time_ps)).unwrap();
                let popped = match event {
                    Event::Send { flow } => flow.0,
                    Event::Arrive { generation, .. } | Event::Depart { generation, .. } => {
                        generation
                    }
                    _ => unreachable!(),
                };
                assert_eq!((popped_ps.saturating_ps(), popped), (time_ps, sequence));
                now_ps = time_ps;
            }
        }
        assert!(queue.len() > 1000);
    }

    #[test]
    fn the_limit_is_included_and_slots_are_reused() {
        let mut queue = Scheduler::default();
        for round in 0..100 {
            queue.push(Time::from(round), send(0));
            queue.push(Time::from(round + 1), send(1));
            assert!(queue.pop_until(Time::from(round)).is_some());
            assert!(queue.pop_until(Time::from(round)).is_none());
            assert!(queue.pop_until(Time::from(round + 1)).is_some());
        }
        assert_eq!(queue.len(), 0);
        assert_eq!(queue.slots.len(), 2);
    }
}
