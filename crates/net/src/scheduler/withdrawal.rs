//! Packets that were to arrive, and are sent anew at another time, since their link has changed.

use super::{Event, Place, Rank, SEQUENCE_MASK, Scheduler};
use engine::{Packet, Time};

/// The generation of a scheduled arrival, and its packet.
type Withdrawn = (u32, Packet);

impl Scheduler {
    /// Removes the `count` arrivals at the end of a link direction that were scheduled last. Returns the generation and
    /// the packet of each, in the order in which they were scheduled.
    pub(crate) fn withdraw(&mut self, direction: u32, count: usize) -> Vec<Withdrawn> {
        let mut overtaking = self.overtaking(direction);
        // The one that was scheduled last is at the end.
        overtaking.sort_unstable_by_key(|(rank, _)| std::cmp::Reverse(self.age(*rank)));
        let mut withdrawn = Vec::with_capacity(count);
        let mut slots = Vec::new();
        while withdrawn.len() < count {
            let in_slot = overtaking.last().map(|(rank, _)| self.age(*rank));
            let lane = self.arrivals.get(direction);
            let in_lane = lane.and_then(|lane| Some(self.age(lane.waiting.back()?.rank)));
            let found = match in_lane.is_some_and(|age| in_slot.is_none_or(|other| age < other)) {
                true => self.take_last_of_lane(direction),
                false => overtaking.pop().and_then(|(_, slot)| {
                    slots.push(slot);
                    self.take_arrival(slot)
                }),
            };
            let Some(found) = found else {
                break;
            };
            withdrawn.push(found);
        }
        self.len -= withdrawn.len();
        self.forget(direction, &slots);
        withdrawn.reverse();
        withdrawn
    }

    /// Returns the time at which the last packet of a generation (sent after that many failures) arrives at the end
    /// of a link direction; `None` if there is none.
    pub(crate) fn last_arrival_ps(&self, direction: u32, generation: u32) -> Option<Time> {
        let lane = self.arrivals.get(direction).into_iter();
        let in_lane = lane.flat_map(|lane| &lane.waiting);
        let in_lane = in_lane.filter(|it| it.generation == generation);
        let overtaking = self.overtaking(direction).into_iter();
        let overtaking = overtaking.filter(|(_, slot)| match &self.slots[*slot as usize] {
            Some(Event::Arrive {
                generation: own, ..
            }) => *own == generation,
            _ => false,
        });
        let ranks = overtaking.map(|(rank, _)| rank);
        let last = in_lane.map(|it| it.rank).chain(ranks).max();
        last.map(|rank| rank.time_ps)
    }

    /// Returns the ranks (time and order) and slots of those packets arriving at the end of a link direction that wait
    /// outside its lane (FIFO of arrivals) because they overtake others.
    fn overtaking(&self, direction: u32) -> Vec<(Rank, u32)> {
        let lane = self.arrivals.get(direction);
        if lane.is_none_or(|lane| lane.overtaking == 0) {
            return Vec::new();
        }
        let of_direction = |slot: u32| match &self.slots[slot as usize] {
            Some(Event::Arrive { direction: own, .. }) => *own == direction,
            _ => false,
        };
        let keys = self.heap.iter().filter_map(|key| match key.0.place {
            Place::Slot(slot) if of_direction(slot) => Some((key.0.rank, slot)),
            _ => None,
        });
        keys.collect()
    }

    /// Returns the number of events that have been scheduled since the event with this rank (time and order).
    fn age(&self, rank: Rank) -> u64 {
        self.sequence.wrapping_sub(rank.order) & SEQUENCE_MASK
    }

    fn take_last_of_lane(&mut self, direction: u32) -> Option<Withdrawn> {
        let last = self
            .arrivals
            .lanes
            .get_mut(direction as usize)?
            .waiting
            .pop_back()?;
        Some((last.generation, last.packet))
    }

    fn take_arrival(&mut self, slot: u32) -> Option<Withdrawn> {
        match self.slots[slot as usize].take() {
            Some(Event::Arrive {
                generation, packet, ..
            }) => Some((generation, packet)),
            _ => None,
        }
    }

    /// Removes the heap's keys for slots that have been emptied, and the key of a link direction's lane (FIFO of
    /// arrivals) if that has been emptied.
    fn forget(&mut self, direction: u32, slots: &[u32]) {
        let Some(lane) = self.arrivals.lanes.get_mut(direction as usize) else {
            return;
        };
        lane.overtaking -= slots.len() as u32;
        self.free.extend(slots);
        let emptied = lane.waiting.is_empty() && std::mem::take(&mut lane.in_heap);
        if emptied || !slots.is_empty() {
            self.heap.retain(|key| match key.0.place {
                Place::Slot(slot) => !slots.contains(&slot),
                place => !(emptied && place == Place::Arrivals(direction)),
            });
        }
    }
}
