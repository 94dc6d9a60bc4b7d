//! What every node has, and what kinds there are.

use crate::capture::Capture;
use crate::error::NetError;
use crate::host::Host;
use crate::switch::SwitchNode;
use engine::Packet;
use std::sync::Arc;

/// The largest port number.
pub const MAX_PORT: u32 = 65_535;

/// Counters of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct NodeCounters {
    /// Packets that arrived, by link, from outside, or as packet-outs.
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
    /// Packets that a host took for itself: answered, logged, or passed on as host frames.
    pub accepted: u64,
    /// Frames for other stations that reached a host.
    pub not_addressed: u64,
    /// Frames that reached a host damaged: a checksum, a length or a stream's payload is wrong.
    pub corrupted: u64,
    /// Frames that an external interface did not take.
    pub interface_drops: u64,
}

/// What a node is.
#[derive(Debug)]
pub(crate) enum NodeKind {
    Switch(Box<SwitchNode>),
    Host(Box<Host>),
    /// The position among the network's interfaces.
    Interface(usize),
}

/// A node.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Node {
    // First what every packet needs.
    pub(crate) kind: NodeKind,
    pub(crate) up: bool,
    /// Grows with every failure; what was inside then is gone.
    pub(crate) generation: u32,
    /// By port, the direction that leads away.
    pub(crate) ports: Vec<Option<u32>>,
    pub(crate) counters: NodeCounters,
    pub(crate) captures: Vec<Capture>,
    pub(crate) name: Arc<str>,
    /// By port, the number of the external interface that it is.
    external: Vec<Option<usize>>,
}

impl Node {
    pub(crate) fn new(name: &str, kind: NodeKind) -> Node {
        Node {
            name: name.into(),
            kind,
            up: true,
            generation: 0,
            ports: Vec::new(),
            external: Vec::new(),
            captures: Vec::new(),
            counters: NodeCounters::default(),
        }
    }

    /// A packet comes; whether it is taken. A node that is down takes none.
    #[inline]
    pub(crate) fn takes_packet(&mut self) -> bool {
        self.counters.received += u64::from(self.up);
        self.counters.down_drops += u64::from(!self.up);
        self.up
    }

    /// Whether it is a switch with a traffic manager.
    pub(crate) fn has_queues(&self) -> bool {
        matches!(&self.kind, NodeKind::Switch(switch) if switch.traffic.is_some())
    }

    /// The direction that leads away from a port.
    pub(crate) fn direction_from(&self, port: u32) -> Option<u32> {
        self.ports.get(port as usize).copied().flatten()
    }

    /// Whether a link may end at a port.
    pub(crate) fn check_free(&self, port: u32) -> Result<(), NetError> {
        let invalid = |reason| NetError::InvalidPort {
            node: self.name.to_string(),
            port,
            reason,
        };
        match &self.kind {
            NodeKind::Switch(switch) if port == switch.cpu_port() => {
                return Err(invalid("it is the CPU port"));
            }
            NodeKind::Switch(_) if port > MAX_PORT => return Err(invalid("ports end at 65535")),
            NodeKind::Host(_) | NodeKind::Interface(_) if port != 0 => {
                return Err(invalid("hosts and interfaces have port 0 only"));
            }
            _ => {}
        }
        if self.direction_from(port).is_some() || self.external_at(port).is_some() {
            return Err(NetError::PortInUse {
                node: self.name.to_string(),
                port,
            });
        }
        Ok(())
    }

    /// Records the direction that leads away from a port.
    pub(crate) fn attach(&mut self, port: u32, direction: u32) {
        let port = port as usize;
        if self.ports.len() <= port {
            self.ports.resize(port + 1, None);
        }
        self.ports[port] = Some(direction);
    }

    /// The number of the external interface that a port is.
    pub(crate) fn external_at(&self, port: u32) -> Option<usize> {
        self.external.get(port as usize).copied().flatten()
    }

    /// Makes a port an external interface.
    pub(crate) fn attach_external(&mut self, port: u32, number: usize) {
        let port = port as usize;
        if self.external.len() <= port {
            self.external.resize(port + 1, None);
        }
        self.external[port] = Some(number);
    }

    /// Takes that back.
    pub(crate) fn detach_external(&mut self, port: u32) {
        if let Some(number) = self.external.get_mut(port as usize) {
            *number = None;
        }
    }

    /// Captures a frame that crosses a port.
    pub(crate) fn capture(&mut self, time_ns: u64, port: u32, packet: &Packet) {
        for capture in &mut self.captures {
            if capture.port == port {
                capture.write(time_ns, &packet.bytes());
            }
        }
    }
}
