//! Notifications of a network to its controllers. It does not know them: their reaction times are for the caller.

use engine::Time;
use std::sync::Arc;

/// An event that controllers are informed of. At one instant, changes of ports come first, in the order in which they
/// happened; then all others, in the order of the nodes' names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The time at which it happened.
    pub time_ps: Time,
    /// The node at which it happened.
    pub node: Arc<str>,
    /// The event that happened.
    pub event: NotificationEvent,
}

impl Notification {
    /// Returns the key by which notifications are sorted: the time, then the node's name, where changes of ports come
    /// before all nodes. Notifications with equal keys stay in the order in which they happened.
    pub(crate) fn order(&self) -> (Time, Option<&str>) {
        let node = match self.event {
            NotificationEvent::PortChange { .. } => None,
            _ => Some(&*self.node),
        };
        (self.time_ps, node)
    }
}

/// An event at a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotificationEvent {
    /// A switch noticed that a port lost or regained its signal.
    PortChange {
        /// The port.
        port: u32,
        /// True if it has a signal now.
        up: bool,
    },
    /// A switch sent a packet to its controller.
    PacketIn {
        /// The switch's CPU port.
        port: u32,
        /// The packet, with the program's packet-in header.
        data: Vec<u8>,
    },
    /// A digest list is due, or messages of a digest without a configuration wait, where none did before; they are read from the
    /// switch.
    Digest,
    /// Entries have been idle for their timeout, where none were before; they are read from the switch.
    IdleTimeout,
    /// A frame addressed to a host that is neither ARP nor ICMP echo nor of a flow.
    HostFrame {
        /// The frame.
        data: Vec<u8>,
    },
}
