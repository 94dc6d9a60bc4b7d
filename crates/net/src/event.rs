//! Events and the queue that orders them. It does not know what an event does; `network` does.
//!
//! Events are ordered by time, then priority, then the order in which they were scheduled, so a run has exactly one order.

use crate::{FlowId, GeneratorId, NodeId};
use engine::Packet;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens at a time.
#[derive(Debug)]
pub(crate) enum Event {
    /// Both or one of a link's directions (by index) fail or come back.
    DirectionState { directions: [u32; 2], up: bool },
    /// A node fails or comes back.
    NodeState { node: NodeId, up: bool },
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
    /// A flow's next packet is due.
    Send { flow: FlowId },
    /// A period of a packet generator begins.
    Generate { generator: GeneratorId },
    /// The agent of a switch may have something to announce.
    Agent { node: NodeId },
}

impl Event {
    /// What happens first among events of one instant: failures and repairs, then their detection, then packets (so that a
    /// packet that arrives at the very instant of a failure is lost), then sources, and agents last.
    fn priority(&self) -> u64 {
        match self {
            Event::DirectionState { .. } | Event::NodeState { .. } => 0,
            Event::Detect { .. } => 1,
            Event::Arrive { .. } => 2,
            Event::Depart { .. } => 3,
            Event::Send { .. } | Event::Generate { .. } => 4,
            Event::Agent { .. } => 5,
        }
    }
}

/// Sequence numbers take the low bits of a key, the priority the bits above.
const PRIORITY_SHIFT: u32 = 56;

/// What the heap sorts by, and where the event is. Events themselves stay put while the heap moves keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    time_ps: u64,
    priority_and_sequence: u64,
    slot: u32,
}

/// Scheduled events.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<Key>>,
    slots: Vec<Option<Event>>,
    free: Vec<u32>,
    sequence: u64,
}

impl EventQueue {
    /// Schedules an event.
    pub(crate) fn push(&mut self, time_ps: u64, event: Event) {
        let priority_and_sequence = event.priority() << PRIORITY_SHIFT | self.sequence;
        self.sequence += 1;
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
        self.heap.push(Reverse(Key {
            time_ps,
            priority_and_sequence,
            slot,
        }));
    }

    /// When the next event happens.
    pub(crate) fn next_time_ps(&self) -> Option<u64> {
        self.heap.peek().map(|key| key.0.time_ps)
    }

    /// Takes the next event if it happens at `limit_ps` or before.
    pub(crate) fn pop_until(&mut self, limit_ps: u64) -> Option<(u64, Event)> {
        if self.next_time_ps()? > limit_ps {
            return None;
        }
        let Reverse(key) = self.heap.pop()?;
        self.free.push(key.slot);
        let event = self.slots[key.slot as usize].take()?;
        Some((key.time_ps, event))
    }

    /// Number of scheduled events.
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
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
