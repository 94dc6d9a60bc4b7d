//! The events of a network: one at a time, and its consequences. It does not know which clock drives it.

use super::Network;
use crate::host::Host;
use crate::scheduler::Event;
use crate::{FlowId, NodeId};
use engine::{Packet, Time};

impl Network {
    /// Runs the next event if it is scheduled at `limit_ps` or before. Returns true if there was such an event, even if
    /// it was outdated.
    pub(crate) fn step(&mut self, limit_ps: Time) -> bool {
        let Some((time_ps, event)) = self.medium.scheduler.pop_until(limit_ps) else {
            return false;
        };
        let Some(event) = self.still_due(time_ps, event) else {
            return true;
        };
        self.medium.scheduler.begin_event(time_ps);
        self.dispatch(event);
        true
    }

    /// Carries out an event at the present time, by the part of the network that it concerns.
    pub(super) fn dispatch(&mut self, event: Event) {
        match event {
            Event::DirectionChange { directions, change } => {
                self.change_directions(directions, &change);
            }
            Event::NodeState { node, up } => self.set_node_up(node, up),
            Event::RandomFailure { process } => self.random_failure(process),
            Event::Detect { direction, epoch } => self.detect_signal(direction, epoch),
            Event::Session { direction } => self.session_due(direction),
            Event::Arrive {
                direction,
                generation,
                packet,
            } => {
                let Some(to) = self.medium.arrive(direction, generation) else {
                    return;
                };
                if self.detection.has_session(direction) && self.receive_hello(direction, &packet) {
                    return self.medium.pool.take_back(packet);
                }
                self.receive(to.node, to.port, packet);
            }
            Event::Wake { node, token, .. } => {
                let node = &mut self.nodes[node.0 as usize];
                let (own, medium, traffic) = (&mut node.state, &mut self.medium, &mut self.traffic);
                node.model.wake(own, medium, traffic, token);
            }
            Event::Depart { node, .. } | Event::Enqueue { node, .. } => {
                let node = &mut self.nodes[node.0 as usize];
                node.model.event(&mut node.state, &mut self.medium, event);
            }
            Event::OrderingDue { direction } => {
                let node = self.medium.links[direction].from.node;
                let own = &mut self.nodes[node.0 as usize].state;
                self.medium.ordering_due(own, direction);
            }
            Event::Send { flow } => self.send_next(flow),
            Event::Generate { generator } => self.generate(generator),
        }
    }

    /// Passes a packet that has arrived at a node's port to the node; the packet is lost if the node is down.
    pub(super) fn receive(&mut self, node: NodeId, port: u32, packet: Packet) {
        let Network {
            nodes,
            medium,
            traffic,
            ..
        } = self;
        let node = &mut nodes[node.0 as usize];
        let own = &mut node.state;
        if medium.takes_packet(own, port, &packet) {
            node.model.receive(own, medium, traffic, port, packet);
        }
    }

    /// Sends the packet of a flow that is due, and schedules the next one.
    fn send_next(&mut self, id: FlowId) {
        if let Some(due_ps) = self.send_and_advance(id) {
            let event = Event::Send { flow: id };
            self.medium.scheduler.push(due_ps, event);
        }
    }

    /// Sends the packet of a flow that is due at the present time. Returns the time at which the flow's next packet is
    /// due; `None` after the last.
    pub(super) fn send_and_advance(&mut self, id: FlowId) -> Option<Time> {
        let source = self.traffic.flows[id.0 as usize].source;
        let node = &mut self.nodes[source.0 as usize];
        let (medium, traffic) = (&mut self.medium, &mut self.traffic);
        match traffic.is_plain(id) {
            true => traffic.send_and_advance(None, &mut node.state, medium, id),
            false => {
                let (host, own) = node.get_mut::<Host>()?;
                traffic.send_and_advance(Some(host), own, medium, id)
            }
        }
    }
}
