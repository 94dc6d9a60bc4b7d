//! The way of packets through what stands in front of a link where it is asked for: an ordering function, then the check of the MTU.
//! How packets are ordered is in `ordering`.
//!
//! An ordering function belongs to the node at the sending end: what it holds is lost when the node fails, not when the link does.
//! Packets lose their sequence numbers before they are sent, so the number counts neither for the MTU, nor in captures and counters.

use crate::event::Event;
use crate::link::{Attachment, LinkDirection};
use crate::network::Network;
use crate::ordering::OrderingCounters;
use crate::{LinkId, NetError, NodeId};
use engine::Packet;

impl Network {
    /// Counters of the ordering function of a direction; `None` if it has none.
    pub fn ordering_counters(
        &self,
        link: LinkId,
        direction: LinkDirection,
    ) -> Result<Option<OrderingCounters>, NetError> {
        let direction = self.direction(link, direction)? as usize;
        let ordering = self.directions[direction].ordering();
        Ok(ordering.map(|ordering| ordering.counters()))
    }

    /// Hands a packet to a direction whose link asks for more than to be sent.
    #[cold]
    pub(crate) fn transmit_specially(&mut self, direction: u32, mut packet: Packet) {
        let now_ps = self.now_ps;
        let mut sent = std::mem::take(&mut self.ordered);
        match self.directions[direction as usize].ordering_mut() {
            None => sent.push(packet),
            Some(ordering) => match ordering.find(packet.stored()) {
                None => {
                    ordering.count_untagged();
                    sent.push(packet);
                }
                Some(tag) => {
                    tag.take_off(&mut packet);
                    ordering.receive(now_ps, tag.numbered, packet, &mut sent);
                }
            },
        }
        self.send_ordered(direction, sent);
    }

    /// Time is up for something that an ordering function holds.
    pub(crate) fn ordering_due(&mut self, direction: u32) {
        let now_ps = self.now_ps;
        let mut sent = std::mem::take(&mut self.ordered);
        if let Some(ordering) = self.directions[direction as usize].ordering_mut() {
            // An event that another one, earlier, took the place of says nothing.
            if ordering.wake_ps.is_some_and(|wake_ps| wake_ps <= now_ps) {
                ordering.wake_ps = None;
            }
            ordering.release_due(now_ps, &mut sent);
        }
        self.send_ordered(direction, sent);
    }

    /// Sends what an ordering function let go, and sees to it that it is looked at again.
    fn send_ordered(&mut self, direction: u32, mut sent: Vec<Packet>) {
        let Attachment { node, port } = self.directions[direction as usize].from;
        for packet in sent.drain(..) {
            if self.directions[direction as usize].refuses(&packet) {
                self.count_sent(node, port, &packet);
                self.pool.take_back(packet);
            } else {
                self.transmit_by(node, port, direction, packet);
            }
        }
        self.ordered = sent;
        if let Some(ordering) = self.directions[direction as usize].ordering_mut()
            && let Some(due_ps) = ordering.due_ps()
            && ordering.wake_ps.is_none_or(|wake_ps| wake_ps > due_ps)
        {
            ordering.wake_ps = Some(due_ps);
            self.events.push(due_ps, Event::OrderingDue { direction });
        }
    }

    /// A node failed, and what it held to be sent in order is lost.
    pub(crate) fn lose_held(&mut self, node: NodeId) {
        for port in 0..self.node(node).ports.len() as u32 {
            if let Some(away) = self.node(node).direction_from(port)
                && let Some(ordering) = self.directions[away as usize].ordering_mut()
            {
                let lost = ordering.lose_all();
                self.nodes[node.0 as usize].counters.down_drops += lost;
            }
        }
    }
}
