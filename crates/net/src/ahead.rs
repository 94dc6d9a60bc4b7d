//! Looking ahead: what the next events will read is asked for while the present one happens, so that it is in the near caches when it
//! is their turn.
//!
//! A small network stays in the near caches anyway. In one of a thousand nodes every event finds little of its node there, and
//! would wait for some sixty lines, most of them one after the other. The head of the event queue tells which packets arrive next and
//! where. For the event after the next, what says where its state lies is asked for; for the next one, the state itself.
//! A visit ([`crate::visit`]) asks for what the neighbours need, where its packets go.
//! Nothing that a run could show depends on any of this, nor is an event asked for that does not come, if another overtakes it.

use crate::NodeId;
use crate::network::Network;
use crate::node::{Node, NodeKind};
use crate::switch::Pipeline;
use engine::Footprint;
use engine::footprint::fetch_slice;

/// Networks of fewer nodes are not looked ahead in: they fit in the near caches.
const MOST_NEAR_NODES: usize = 256;

/// With more ports it is not clear beforehand which are used.
const FEW_PORTS: usize = 4;

/// Packets after which a footprint is taken again.
const RENEWED_AFTER: u64 = 64;

/// What is known of the nodes beforehand.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// By direction, the node at its end.
    ends: Vec<NodeId>,
    /// By node; empty before its first packets.
    footprints: Vec<Footprint>,
    /// By node, how many packets it will have received when its footprint is taken (again).
    renewals: Vec<u64>,
}

impl Ahead {
    /// A node was added.
    pub(crate) fn add_node(&mut self) {
        self.footprints.push(Footprint::default());
        // With the first packet it gets ready; what it has then stays.
        self.renewals.push(2);
    }

    /// How many lines are asked for before a packet comes to a node.
    #[cfg(test)]
    pub(crate) fn lines_of(&self, node: NodeId) -> usize {
        self.footprints[node.0 as usize].len()
    }

    /// The number of the node at the end of a direction.
    fn end(&self, direction: u32) -> usize {
        self.ends[direction as usize].0 as usize
    }

    /// A direction was added.
    pub(crate) fn add_direction(&mut self, end: NodeId) {
        self.ends.push(end);
    }
}

impl Network {
    /// Asks for what the next events need.
    #[inline]
    pub(crate) fn look_ahead(&self) {
        if self.nodes.len() > MOST_NEAR_NODES {
            self.look_ahead_far();
        }
    }

    fn look_ahead_far(&self) {
        let [next, after] = self.events.next_arrivals();
        if let Some(direction) = next {
            self.ahead.footprints[self.ahead.end(direction)].fetch();
            if let Some(packet) = self.events.next_packet(direction) {
                packet.fetch_headers();
            }
        }
        if let Some(direction) = after {
            fetch_slice(self.ahead.footprints[self.ahead.end(direction)].list());
            self.events.fetch_lane(direction);
        }
    }

    /// Asks for what the nodes at the ends of some directions need, but for one, if the network is large and they are few.
    #[inline]
    pub(crate) fn look_at_ends(&self, directions: impl ExactSizeIterator<Item = u32>, but: u32) {
        if self.nodes.len() > MOST_NEAR_NODES && directions.len() <= FEW_PORTS {
            let others = directions.filter(|&direction| direction != but);
            others.for_each(|it| self.ahead.footprints[self.ahead.end(it)].fetch());
        }
    }

    /// A node received a packet: its state is where it is, and may have moved since the last time.
    #[inline]
    pub(crate) fn note_footprint(&mut self, node: NodeId) {
        if self.nodes.len() <= MOST_NEAR_NODES {
            return;
        }
        let received = self.nodes[node.0 as usize].counters.received;
        let renewal = &mut self.ahead.renewals[node.0 as usize];
        if received >= *renewal {
            *renewal = received + RENEWED_AFTER;
            self.take_footprint(node);
        }
    }

    #[cold]
    fn take_footprint(&mut self, id: NodeId) {
        let mut footprint = std::mem::take(&mut self.ahead.footprints[id.0 as usize]);
        footprint.clear();
        let node = &self.nodes[id.0 as usize];
        add_node(&mut footprint, node);
        let away = node.ports.iter().copied().flatten();
        if away.clone().count() <= FEW_PORTS {
            for direction in away {
                self.directions[direction as usize].add_sending_footprint(&mut footprint);
                self.directions[direction as usize ^ 1].add_arrival_footprint(&mut footprint);
                self.events.add_footprint(direction, &mut footprint);
            }
        }
        self.ahead.footprints[id.0 as usize] = footprint;
    }
}

fn add_node(footprint: &mut Footprint, node: &Node) {
    footprint.add(&node.kind);
    footprint.add(&node.up);
    footprint.add(&node.generation);
    footprint.add(&node.ports);
    footprint.add_slice(&node.ports);
    footprint.add(&node.captures);
    footprint.add(&node.counters.received);
    footprint.add(&node.counters.sent);
    match &node.kind {
        NodeKind::Switch(switch) => {
            footprint.add(&switch.pipeline);
            footprint.add(&switch.latency_ps);
            footprint.add(&switch.has_deadlines);
            footprint.add(&switch.traffic);
            match &switch.pipeline {
                Pipeline::Engine(switch) => switch.add_footprint(footprint),
                #[cfg(test)]
                Pipeline::Test(_) => {}
            }
        }
        NodeKind::Host(host) => footprint.add(&**host),
        NodeKind::Interface(_) => {}
    }
}
