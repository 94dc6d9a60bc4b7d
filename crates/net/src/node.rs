//! The common state of nodes: a name, ports, counters, and whether it works. It does not know what nodes do: `model` does.

use crate::NodeId;
use serde::Serialize;
use std::sync::Arc;

/// The largest port number.
pub const MAX_PORT: u32 = 65_535;

/// Counters of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[repr(C)]
pub struct NodeCounters {
    /// Packets that arrived by a link, from outside, or as packet-outs.
    pub received: u64,
    /// Packets handed to links.
    pub sent: u64,
    /// Packets that a switch sent to its controller.
    pub packet_ins: u64,
    /// Packets that a switch sent to a port without a link.
    pub unconnected_drops: u64,
    /// Packets that a queue of a switch's traffic manager did not take.
    pub queue_drops: u64,
    /// Packets that were inside the node or came to it from elsewhere than a link while it was down.
    pub down_drops: u64,
    /// Packets that a host accepted for itself: answered, logged, or passed to the controller; and BFD packets that a
    /// switch's agent accepted.
    pub accepted: u64,
    /// Frames for other stations that reached a host.
    pub not_addressed: u64,
    /// Packets to multicast groups, or from sources, that a host has not joined.
    pub unwanted: u64,
    /// Frames that reached a host damaged: a checksum, a length or a stream's payload is wrong.
    pub corrupted: u64,
    /// Frames that an external interface did not take.
    pub interface_drops: u64,
    /// Packets of a host to a neighbour that did not answer, or that was asked for so long that others took their place, and answers
    /// that no route leads to.
    pub unresolved_drops: u64,
}

/// The common state of nodes.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct NodeState {
    // First what every packet needs.
    pub(crate) up: bool,
    /// The number of failures so far; packets that were inside at a failure are lost.
    pub(crate) generation: u32,
    /// For each port, the direction that leads away from it.
    pub(crate) ports: Vec<Option<u32>>,
    pub(crate) counters: NodeCounters,
    pub(crate) id: NodeId,
    pub(crate) name: Arc<str>,
    /// For each port, the number of the external interface that the port is.
    external: Vec<Option<usize>>,
}

impl NodeState {
    pub(crate) fn new(id: NodeId, name: &str) -> NodeState {
        NodeState {
            id,
            name: name.into(),
            up: true,
            generation: 0,
            ports: Vec::new(),
            external: Vec::new(),
            counters: NodeCounters::default(),
        }
    }

    /// Counts a packet that arrives at the node, as received or lost. Returns true if the node is up, and so takes the
    /// packet.
    #[inline]
    pub(crate) fn takes_packet(&mut self) -> bool {
        self.counters.received += u64::from(self.up);
        self.counters.down_drops += u64::from(!self.up);
        self.up
    }

    /// Returns the number of the link direction that leads away from a port; `None` if the port has no link.
    pub(crate) fn direction_from(&self, port: u32) -> Option<u32> {
        self.ports.get(port as usize).copied().flatten()
    }

    /// Records that the link direction `direction` leads away from a port.
    pub(crate) fn attach(&mut self, port: u32, direction: u32) {
        let port = port as usize;
        if self.ports.len() <= port {
            self.ports.resize(port + 1, None);
        }
        self.ports[port] = Some(direction);
    }

    /// Returns the number of the external interface at a port; `None` if the port is none.
    pub(crate) fn external_at(&self, port: u32) -> Option<usize> {
        self.external.get(port as usize).copied().flatten()
    }

    /// Attaches the external interface with this number as a port.
    pub(crate) fn attach_external(&mut self, port: u32, number: usize) {
        let port = port as usize;
        if self.external.len() <= port {
            self.external.resize(port + 1, None);
        }
        self.external[port] = Some(number);
    }

    /// Detaches the external interface from a port, if there is one.
    pub(crate) fn detach_external(&mut self, port: u32) {
        if let Some(number) = self.external.get_mut(port as usize) {
            *number = None;
        }
    }
}
