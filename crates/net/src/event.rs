//! Events and the queue that orders them. It does not know what an event does; `network` does.
//!
//! Events are ordered by time, then priority, then the order in which they were scheduled, so a run has exactly one order.

use crate::tcp_flow::EndpointId;
use crate::{FlowId, GeneratorId, NodeId, TcpFlowId};
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
    /// The lane of events that are mostly scheduled in the order in which they happen: arrivals by direction, departures by switch.
    fn lane(&self) -> Option<u32> {
        match self {
            Event::Arrive { direction, .. } => direction.checked_mul(2),
            Event::Depart { node, .. } | Event::Enqueue { node, .. } => {
                node.0.checked_mul(2).map(|lane| lane + 1)
            }
            _ => None,
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
            Event::Arrive { .. } => 3,
            Event::Depart { .. } | Event::Enqueue { .. } => 4,
            Event::Send { .. }
            | Event::TcpTimer { .. }
            | Event::TcpApplication { .. }
            | Event::Generate { .. } => 5,
            Event::Agent { .. } => 6,
        }
    }
}

/// Sequence numbers take the low bits of a key, the priority the bits above.
const PRIORITY_SHIFT: u32 = 56;

/// When an event happens, among all others. No two are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    time_ps: u64,
    priority_and_sequence: u64,
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
    lanes: Vec<VecDeque<(Rank, Event)>>,
    len: usize,
    sequence: u64,
}

impl EventQueue {
    /// Schedules an event.
    #[inline]
    pub(crate) fn push(&mut self, time_ps: u64, event: Event) {
        let rank = self.rank(time_ps, &event);
        match event.lane() {
            Some(lane) => self.push_in_lane(lane, rank, event),
            None => self.push_alone(rank, event),
        }
    }

    fn rank(&mut self, time_ps: u64, event: &Event) -> Rank {
        let priority_and_sequence = event.priority() << PRIORITY_SHIFT | self.sequence;
        self.sequence += 1;
        self.len += 1;
        Rank {
            time_ps,
            priority_and_sequence,
        }
    }

    fn push_in_lane(&mut self, number: u32, rank: Rank, event: Event) {
        if self.lanes.len() <= number as usize {
            self.lanes.resize_with(number as usize + 1, VecDeque::new);
        }
        let lane = &mut self.lanes[number as usize];
        match lane.back() {
            Some((last, _)) if *last > rank => return self.push_alone(rank, event),
            Some(_) => {}
            None => {
                let place = Place::Lane(number);
                self.heap.push(Reverse(Key { rank, place }));
            }
        }
        lane.push_back((rank, event));
    }

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

    /// When the next event happens.
    #[inline]
    pub(crate) fn next_time_ps(&self) -> Option<u64> {
        self.heap.peek().map(|key| key.0.rank.time_ps)
    }

    /// Takes the next event if it happens at `limit_ps` or before.
    #[inline]
    pub(crate) fn pop_until(&mut self, limit_ps: u64) -> Option<(u64, Event)> {
        let mut top = self.heap.peek_mut()?;
        let Key { rank, place } = top.0;
        if rank.time_ps > limit_ps {
            return None;
        }
        let event = match place {
            Place::Slot(slot) => {
                PeekMut::pop(top);
                self.free.push(slot);
                self.slots[slot as usize].take()?
            }
            Place::Lane(number) => {
                let lane = &mut self.lanes[number as usize];
                let (_, event) = lane.pop_front()?;
                // The next one takes the place in the heap: one walk instead of two.
                match lane.front() {
                    Some((rank, _)) => top.0.rank = *rank,
                    None => drop(PeekMut::pop(top)),
                }
                event
            }
        };
        self.len -= 1;
        Some((rank.time_ps, event))
    }

    /// The next two events, as far as they are arrivals: by direction, with their packets.
    #[inline]
    pub(crate) fn next_arrivals(&self) -> [Option<(u32, &Packet)>; 2] {
        let heap = self.heap.as_slice();
        // Below the top of a heap are the next two, in any order, unless the next one of a lane comes before both.
        let after = heap
            .get(1..heap.len().min(3))
            .and_then(|two| two.iter().max());
        [heap.first(), after].map(|key| match key?.0.place {
            Place::Lane(lane) => match self.lanes[lane as usize].front() {
                Some((
                    _,
                    Event::Arrive {
                        direction, packet, ..
                    },
                )) => Some((*direction, packet)),
                _ => None,
            },
            Place::Slot(_) => None,
        })
    }

    /// Adds where the lane of arrivals by a direction lies.
    pub(crate) fn add_footprint(&self, direction: u32, footprint: &mut Footprint) {
        let lane = direction.checked_mul(2).map(|lane| lane as usize);
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
        let mut random = crate::random::Stream::named(1, "lanes");
        let (mut queue, mut expected) = (EventQueue::default(), Vec::new());
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
            expected.push((time_ps, event.priority(), sequence));
            queue.push(time_ps, event);
            assert_eq!(queue.len(), expected.len());
            if random.uniform(0, 3) != 0 {
                expected.sort_unstable();
                let (time_ps, _, sequence) = expected.remove(0);
                if time_ps > 0 {
                    assert!(queue.pop_until(time_ps - 1).is_none());
                }
                let next = queue.next_arrivals()[0].map(|(direction, _)| direction);
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
