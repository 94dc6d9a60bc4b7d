//! Events and the queue that orders them. It does not know what an event does; `network` does.
//!
//! Events are ordered by time, then priority, then as they were scheduled; or, if that is asked for
//! ([`EventQueue::order_by_number`]), first by number: among arrivals of one instant the number of the direction decides, among what leaves
//! switches that of the switch, among what sources send that of the flow. So a run has exactly one order, and by number it is the same
//! whether a node handles its packets one by one or many at a visit ([`crate::visit`]).

use crate::tcp_flow::EndpointId;
use crate::{FlowId, GeneratorId, NodeId, TcpFlowId};
use engine::footprint::fetch;
use engine::{Enqueued, Footprint, Packet};
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

/// Something that happens at a time.
#[derive(Debug)]
pub(crate) enum Event {
    /// Both or one of a link's directions (by index) fail or come back.
    DirectionState { directions: [u32; 2], up: bool },
    /// A node fails or comes back.
    NodeState { node: NodeId, up: bool },
    /// Something that fails at random fails or is repaired.
    RandomFailure { process: u32 },
    /// The receiving end of a direction notices its state, unless that changed again since (`epoch`).
    Detect { direction: u32, epoch: u32 },
    /// A packet arrives at the far end, unless the direction failed since (`generation`).
    Arrive {
        direction: u32,
        generation: u32,
        packet: Packet,
    },
    /// A packet leaves a switch, unless the switch failed since (`generation`).
    Depart {
        node: NodeId,
        generation: u32,
        port: u32,
        packet: Packet,
    },
    /// A copy reaches its queue in a switch's traffic manager, unless the switch failed (`generation`) or got another program
    /// (`epoch`).
    Enqueue {
        node: NodeId,
        generation: u32,
        epoch: u32,
        copy: Box<Enqueued>,
    },
    /// The transmitter of a port with queues may be free.
    PortReady { node: NodeId, port: u32 },
    /// The recirculation port of a switch may be.
    RecirculationReady { node: NodeId },
    /// Something that the ordering function of a direction holds may be due: it is sent now, so nothing may have been sent by that
    /// direction at a later time.
    OrderingDue { direction: u32 },
    /// A flow's next packet is due.
    Send { flow: FlowId },
    /// An end of a TCP connection may have timers that are due.
    TcpTimer { endpoint: EndpointId },
    /// It is the turn of a TCP connection's application.
    TcpApplication { flow: TcpFlowId },
    /// A period of a packet generator begins.
    Generate { generator: GeneratorId },
    /// The agent of a switch may have something to announce.
    Agent { node: NodeId },
}

impl Event {
    /// The lane of events that are mostly scheduled in the order in which they happen.
    fn lane(&self) -> Option<u32> {
        match self {
            Event::Arrive { direction, .. } => direction_lane(*direction),
            Event::Depart { node, .. } | Event::Enqueue { node, .. } => node_lane(*node),
            _ => None,
        }
    }

    /// What decides among events of one instant and priority, before the order in which they were scheduled does.
    fn number(&self) -> u32 {
        match self {
            Event::Send { flow } => flow.0,
            other => other.lane().unwrap_or(0),
        }
    }

    /// Whether it may change what a switch does with a packet, other than by sending another one.
    fn is_barrier(&self) -> bool {
        match self {
            Event::DirectionState { .. }
            | Event::NodeState { .. }
            | Event::RandomFailure { .. }
            | Event::Detect { .. }
            | Event::Generate { .. }
            | Event::Agent { .. } => true,
            // Those of traffic managers change nothing in switches without one.
            Event::Arrive { .. }
            | Event::Depart { .. }
            | Event::Enqueue { .. }
            | Event::PortReady { .. }
            | Event::RecirculationReady { .. }
            // Nor do those of nodes that hold packets back, which are not visited.
            | Event::OrderingDue { .. }
            | Event::Send { .. }
            | Event::TcpTimer { .. }
            | Event::TcpApplication { .. } => false,
        }
    }

    /// What happens first among events of one instant: failures and repairs, then their detection, then what waits for a
    /// transmitter that is free now or was held long enough, then packets (so that a packet that arrives at the very instant of a failure is lost, and
    /// one that arrives when another has just been sent does not find that in a queue), then sources, and agents last.
    fn priority(&self) -> u64 {
        match self {
            Event::DirectionState { .. }
            | Event::NodeState { .. }
            | Event::RandomFailure { .. } => 0,
            Event::Detect { .. } => 1,
            Event::PortReady { .. }
            | Event::RecirculationReady { .. }
            | Event::OrderingDue { .. } => 2,
            Event::Arrive { .. } => ARRIVAL_PRIORITY,
            Event::Depart { .. } | Event::Enqueue { .. } => 4,
            Event::Send { .. }
            | Event::TcpTimer { .. }
            | Event::TcpApplication { .. }
            | Event::Generate { .. } => 5,
            Event::Agent { .. } => 6,
        }
    }
}

/// Where packets wait that arrive by a direction.
pub(crate) fn direction_lane(direction: u32) -> Option<u32> {
    direction.checked_mul(2)
}

/// The other way round.
fn direction_of_lane(lane: u32) -> Option<u32> {
    lane.is_multiple_of(2).then_some(lane / 2)
}

/// Where packets wait that leave a switch.
pub(crate) fn node_lane(node: NodeId) -> Option<u32> {
    node.0.checked_mul(2).map(|lane| lane + 1)
}

const ARRIVAL_PRIORITY: u64 = 3;

/// The priority takes the high bits of an order, the lane those below, the sequence number the others.
const PRIORITY_SHIFT: u32 = 60;
const LANE_SHIFT: u32 = 34;
const SEQUENCE_MASK: u64 = (1 << LANE_SHIFT) - 1;
/// How far ahead in a lane the packet is whose headers are asked for when one is taken: about as long as memory takes.
const AHEAD_IN_LANE: usize = 1;
/// Lanes of higher numbers are as one among events of one instant.
const MAX_ORDERED_LANE: u64 = (1 << (PRIORITY_SHIFT - LANE_SHIFT)) - 1;

/// When an event happens, among all others. No two are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    time_ps: u64,
    /// Priority, lane, sequence.
    order: u64,
}

/// Where an event waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// On its own.
    Slot(u32),
    /// At the head of a lane.
    Lane(u32),
}

/// What the heap sorts by, and where the event is. Events themselves stay put while the heap moves keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    rank: Rank,
    place: Place,
}

impl Lane {
    /// Gives memory back that is not needed any more.
    #[inline(always)]
    fn give_back(&mut self, spare: &mut Vec<Waiting>) {
        if self.waiting.is_empty() && self.waiting.capacity() != 0 {
            // Emptied, it begins at its beginning again.
            self.waiting.clear();
            spare.push(std::mem::take(&mut self.waiting));
        }
    }

    /// Whether an event happens behind all that wait.
    #[inline(always)]
    fn is_behind(&self, rank: Rank) -> bool {
        self.waiting.back().is_none_or(|(last, _)| *last < rank)
    }

    /// Gives the lane's key, the first in the heap, the place of the event that is its head now.
    fn renew_key(&mut self, mut key: PeekMut<'_, Reverse<Key>>) {
        match self.waiting.front() {
            // One walk through the heap, not two.
            Some((rank, _)) => key.0.rank = *rank,
            None => {
                self.in_heap = false;
                PeekMut::pop(key);
            }
        }
    }
}

/// Scheduled events.
///
/// What happens in the order in which it is scheduled, such as arrivals at the end of a wire, waits in a *lane*, of which only
/// the head is in the heap. So the heap's size is that of the network, not the number of packets in it. An event that would
/// overtake the last one of its lane (a jitter's doing) goes into the heap by itself; the order of events is the same
/// wherever they wait.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<Key>>,
    slots: Vec<Option<Event>>,
    free: Vec<u32>,
    lanes: Vec<Lane>,
    /// Memory of lanes in which nothing waits: the last one used is in the near caches, and is the next one to be used.
    spare: Vec<Waiting>,
    /// The times of all scheduled barriers.
    barriers_ps: BinaryHeap<Reverse<u64>>,
    len: usize,
    sequence: u64,
    by_number: bool,
}

type Waiting = VecDeque<(Rank, Event)>;

/// Events that happen in the order in which they were scheduled.
#[derive(Debug, Default)]
struct Lane {
    /// Without memory if nothing waits.
    waiting: Waiting,
    /// The heap has a key for it: that of its head, or an earlier one if events were taken past the heap.
    in_heap: bool,
    /// How many events overtook others, and wait in slots.
    overtaking: u32,
}

impl EventQueue {
    /// Orders events of one instant and priority by number, from now on.
    pub(crate) fn order_by_number(&mut self) {
        self.by_number = true;
    }

    /// Schedules an event.
    #[inline(always)]
    pub(crate) fn push(&mut self, time_ps: u64, event: Event) {
        let rank = self.rank(time_ps, &event);
        if event.is_barrier() {
            self.barriers_ps.push(Reverse(time_ps));
        }
        match event.lane() {
            Some(lane) => self.push_in_lane(lane, rank, event),
            None => self.push_alone(rank, event),
        }
    }

    /// Schedules the arrival of a packet. The same as by [`EventQueue::push`], but that the event is made where it waits: for most of a large
    /// network's events, copying it there would wait until all that was written before has come to memory.
    #[inline(always)]
    pub(crate) fn push_arrival(
        &mut self,
        time_ps: u64,
        direction: u32,
        generation: u32,
        packet: Packet,
    ) {
        let Some(lane) = direction_lane(direction).filter(|&it| (it as usize) < self.lanes.len())
        else {
            return self.push_first(time_ps, direction, generation, packet);
        };
        let rank = self.next_rank(time_ps, ARRIVAL_PRIORITY, lane);
        if self.lanes[lane as usize].is_behind(rank) {
            self.enter(lane, rank);
            let waiting = &mut self.lanes[lane as usize].waiting;
            let event = Event::Arrive {
                direction,
                generation,
                packet,
            };
            waiting.push_back((rank, event));
        } else {
            self.overtake(rank, direction, generation, packet);
        }
    }

    #[cold]
    #[inline(never)]
    fn push_first(&mut self, time_ps: u64, direction: u32, generation: u32, packet: Packet) {
        let event = Event::Arrive {
            direction,
            generation,
            packet,
        };
        self.push(time_ps, event);
    }

    #[cold]
    #[inline(never)]
    fn overtake(&mut self, rank: Rank, direction: u32, generation: u32, packet: Packet) {
        let event = Event::Arrive {
            direction,
            generation,
            packet,
        };
        if let Some(lane) = event.lane() {
            self.lanes[lane as usize].overtaking += 1;
        }
        self.push_alone(rank, event);
    }

    /// Sees to it that a lane has memory, and that the heap knows of it if its next event has this rank.
    #[inline(always)]
    fn enter(&mut self, number: u32, rank: Rank) {
        let lane = &mut self.lanes[number as usize];
        if lane.waiting.capacity() == 0 {
            lane.waiting = self.spare.pop().unwrap_or_default();
        }
        if !lane.in_heap {
            lane.in_heap = true;
            let place = Place::Lane(number);
            self.heap.push(Reverse(Key { rank, place }));
        }
    }

    #[inline(always)]
    fn rank(&mut self, time_ps: u64, event: &Event) -> Rank {
        self.next_rank(time_ps, event.priority(), event.number())
    }

    #[inline(always)]
    fn next_rank(&mut self, time_ps: u64, priority: u64, number: u32) -> Rank {
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

    #[inline(always)]
    fn push_in_lane(&mut self, number: u32, rank: Rank, event: Event) {
        if self.lanes.len() <= number as usize {
            self.lanes.resize_with(number as usize + 1, Lane::default);
        }
        let lane = &mut self.lanes[number as usize];
        if !lane.is_behind(rank) {
            lane.overtaking += 1;
            return self.push_alone(rank, event);
        }
        self.enter(number, rank);
        self.lanes[number as usize].waiting.push_back((rank, event));
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

    /// When the next event happens, at the earliest.
    #[inline]
    pub(crate) fn next_time_ps(&self) -> Option<u64> {
        self.heap.peek().map(|key| key.0.rank.time_ps)
    }

    /// Takes the next event if it happens at `limit_ps` or before.
    #[inline]
    pub(crate) fn pop_until(&mut self, limit_ps: u64) -> Option<(u64, Event)> {
        loop {
            let top = self.heap.peek_mut()?;
            let Key { rank, place } = top.0;
            if rank.time_ps > limit_ps {
                return None;
            }
            let Place::Lane(number) = place else {
                PeekMut::pop(top);
                return self.take_slot(rank, place);
            };
            let lane = &mut self.lanes[number as usize];
            let head = lane.waiting.pop_front_if(|(head, _)| *head == rank);
            lane.renew_key(top);
            lane.give_back(&mut self.spare);
            // If there is none, the one that the key was for was taken past the heap.
            if let Some((_, event)) = head {
                self.len -= 1;
                return Some((rank.time_ps, event));
            }
        }
    }

    fn take_slot(&mut self, rank: Rank, place: Place) -> Option<(u64, Event)> {
        let Place::Slot(slot) = place else {
            return None;
        };
        self.free.push(slot);
        let event = self.slots[slot as usize].take()?;
        if event.is_barrier() {
            self.barriers_ps.pop();
        } else if let Some(lane) = event.lane() {
            self.lanes[lane as usize].overtaking -= 1;
        }
        self.len -= 1;
        Some((rank.time_ps, event))
    }

    /// Takes the first event of some lanes that happens before `end_ps`, whatever happens earlier elsewhere.
    ///
    /// Events that overtake others are not in their lanes: [`EventQueue::are_whole`].
    #[inline(always)]
    pub(crate) fn pop_from(&mut self, lanes: &[u32], end_ps: u64) -> Option<(u64, Event)> {
        let head = |lane: &u32| {
            let (rank, _) = self.lanes.get(*lane as usize)?.waiting.front()?;
            (rank.time_ps < end_ps).then_some((*rank, *lane))
        };
        let (_, lane) = lanes.iter().filter_map(head).min()?;
        let lane = &mut self.lanes[lane as usize];
        let (rank, event) = lane.waiting.pop_front()?;
        if let Some((_, Event::Arrive { packet, .. })) = lane.waiting.get(AHEAD_IN_LANE) {
            packet.fetch_headers();
        }
        lane.give_back(&mut self.spare);
        self.len -= 1;
        Some((rank.time_ps, event))
    }

    /// Whether all events of some lanes wait in them.
    #[inline]
    pub(crate) fn are_whole(&self, lanes: &[u32]) -> bool {
        let mut lanes = lanes
            .iter()
            .filter_map(|lane| self.lanes.get(*lane as usize));
        lanes.all(|lane| lane.overtaking == 0)
    }

    /// Whether all packets that arrive by a direction wait in its lane.
    #[inline]
    pub(crate) fn is_whole(&self, direction: u32) -> bool {
        direction_lane(direction).is_some_and(|lane| self.are_whole(&[lane]))
    }

    /// When the next packet arrives by a direction, if one is on its way.
    #[inline]
    pub(crate) fn head_ps(&self, direction: u32) -> Option<u64> {
        let lane = direction_lane(direction)?;
        let (rank, _) = self.lanes.get(lane as usize)?.waiting.front()?;
        Some(rank.time_ps)
    }

    /// When something happens next that may change what switches do with packets, other than by sending one.
    #[inline]
    pub(crate) fn next_barrier_ps(&self) -> u64 {
        self.barriers_ps.peek().map_or(u64::MAX, |next| next.0)
    }

    /// The next event and, most likely, the one after that, as far as they are arrivals: by direction.
    #[inline]
    pub(crate) fn next_arrivals(&self) -> [Option<u32>; 2] {
        let heap = self.heap.as_slice();
        // Below the top of a heap are the next two, in any order, unless the next one of a lane comes before both.
        let below = heap.get(1..heap.len().min(3));
        let after = below.and_then(|two| two.iter().max());
        [heap.first(), after].map(|key| match key?.0.place {
            Place::Lane(lane) => direction_of_lane(lane),
            Place::Slot(_) => None,
        })
    }

    /// The packet that arrives next by a direction.
    #[inline]
    pub(crate) fn next_packet(&self, direction: u32) -> Option<&Packet> {
        let lane = direction_lane(direction)?;
        match self.lanes.get(lane as usize)?.waiting.front()? {
            (_, Event::Arrive { packet, .. }) => Some(packet),
            _ => None,
        }
    }

    /// Asks for where the packets wait that arrive by a direction.
    #[inline]
    pub(crate) fn fetch_lane(&self, direction: u32) {
        let lane = direction_lane(direction).map(|lane| lane as usize);
        if let Some(lane) = lane.and_then(|lane| self.lanes.get(lane)) {
            fetch(lane);
        }
    }

    /// Adds where the lane of arrivals by a direction lies.
    pub(crate) fn add_footprint(&self, direction: u32, footprint: &mut Footprint) {
        let lane = direction_lane(direction).map(|lane| lane as usize);
        if let Some(lane) = lane.and_then(|lane| self.lanes.get(lane)) {
            footprint.add(lane);
        }
    }

    /// Number of scheduled events.
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
        let mut queue = EventQueue::default();
        queue.push(20, send(0));
        queue.push(10, send(1));
        queue.push(
            10,
            Event::Detect {
                direction: 0,
                epoch: 0,
            },
        );
        queue.push(10, send(2));
        queue.push(
            10,
            Event::NodeState {
                node: NodeId(0),
                up: false,
            },
        );
        let packet = Packet::new(&[1]);
        queue.push(
            10,
            Event::Depart {
                node: NodeId(0),
                generation: 0,
                port: 0,
                packet: packet.clone(),
            },
        );
        queue.push(
            10,
            Event::Arrive {
                direction: 0,
                generation: 0,
                packet,
            },
        );
        let mut order = Vec::new();
        while let Some((time_ps, event)) = queue.pop_until(u64::MAX) {
            let text = format!("{event:?}");
            order.push(format!(
                "{time_ps} {}",
                text.split([' ', '{']).next().unwrap()
            ));
            if let Event::Send { flow } = event {
                order.push(format!("flow {}", flow.0));
            }
        }
        let expected = [
            "10 NodeState",
            "10 Detect",
            "10 Arrive",
            "10 Depart",
            "10 Send",
            "flow 1",
            "10 Send",
            "flow 2",
            "20 Send",
            "flow 0",
        ];
        assert_eq!(order, expected);
    }

    /// Events of a queue without lanes, in a plain list that is sorted.
    #[test]
    fn lanes_change_no_order() {
        check_lanes(false);
        check_lanes(true);
    }

    fn check_lanes(by_number: bool) {
        let mut random = crate::random::Stream::named(1, "lanes");
        let (mut queue, mut expected) = (EventQueue::default(), Vec::new());
        if by_number {
            queue.order_by_number();
        }
        let (mut now_ps, mut foreseen) = (0, 0);
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
            queue.push(time_ps, event);
            assert_eq!(queue.len(), expected.len());
            if random.uniform(0, 3) != 0 {
                expected.sort_unstable();
                let (time_ps, _, _, sequence) = expected.remove(0);
                if time_ps > 0 {
                    assert!(queue.pop_until(time_ps - 1).is_none());
                }
                let [next, _] = queue.next_arrivals();
                let (popped_ps, event) = queue.pop_until(time_ps).unwrap();
                if let Some(next) = next {
                    foreseen += 1;
                    assert!(matches!(event, Event::Arrive { direction, .. } if direction == next));
                }
                let popped = match event {
                    Event::Send { flow } => flow.0,
                    Event::Arrive { generation, .. } | Event::Depart { generation, .. } => {
                        generation
                    }
                    _ => unreachable!(),
                };
                assert_eq!((popped_ps, popped), (time_ps, sequence));
                now_ps = time_ps;
            }
        }
        assert!(queue.len() > 1000 && foreseen > 100, "{foreseen}");
    }

    #[test]
    fn the_limit_is_included_and_slots_are_reused() {
        let mut queue = EventQueue::default();
        for round in 0..100 {
            queue.push(round, send(0));
            queue.push(round + 1, send(1));
            assert!(queue.pop_until(round).is_some());
            assert!(queue.pop_until(round).is_none());
            assert!(queue.pop_until(round + 1).is_some());
        }
        assert_eq!(queue.len(), 0);
        assert_eq!(queue.slots.len(), 2);
    }
}
