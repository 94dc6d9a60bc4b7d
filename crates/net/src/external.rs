//! Interfaces of the machine in a network: as nodes at the end of a link, or as ports of a switch.
//!
//! A node is for experiments: the link between it and the switch has rate, delay, loss and a queue. A port has no link: what
//! the interface receives goes through the switch at once, in bursts, and out of another interface. How frames get into and
//! out of the kernel is for [`crate::clock::wall::FrameIo`].

use crate::NodeId;
use crate::clock::wall::SendOutcome;
use crate::error::{NetError, out_of_range};
use crate::link::Attachment;
use crate::network::Network;
use crate::node::NodeKind;
use engine::Packet;

/// Packets kept for their memory.
const MAX_SPARE: usize = 256;

/// An interface of the machine.
#[derive(Debug)]
pub(crate) struct ExternalInterface {
    name: String,
    /// The node that it is (port 0), or the switch's port that it is.
    at: Attachment,
    /// Whether it can carry frames, as far as we were told.
    up: bool,
}

/// Frames from outside on their way into a switch.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// The switch of all of them.
    at: NodeId,
    packets: Vec<(u32, Packet)>,
    /// Packets that have left, for their memory.
    spare: Vec<Packet>,
}

impl Arrivals {
    /// Takes back a packet that has left.
    pub(crate) fn recycle(&mut self, packet: Packet) {
        if self.spare.len() < MAX_SPARE {
            self.spare.push(packet);
        }
    }
}

/// Building.
impl Network {
    /// An interface of the machine as a node with port 0. The network then runs on the wall clock only.
    /// [`Network::interfaces`] numbers the interfaces.
    pub fn add_interface(&mut self, name: &str, interface: &str) -> Result<NodeId, NetError> {
        self.check_interface(interface)?;
        let number = self.vacant_interface();
        let node = self.add_node(name, NodeKind::Interface(number))?;
        self.occupy(number, interface, Attachment { node, port: 0 });
        Ok(node)
    }

    /// Makes an interface of the machine a port of a switch, without a link in between. The network then runs on the wall clock
    /// only. Gives the interface's number. The switch's agent and controllers see a port that came up.
    pub fn attach_interface(
        &mut self,
        switch: &str,
        port: u32,
        interface: &str,
    ) -> Result<usize, NetError> {
        self.check_interface(interface)?;
        let node = self.node_id(switch)?;
        if !matches!(self.node(node).kind, NodeKind::Switch(_)) {
            return Err(NetError::WrongKind {
                node: switch.to_owned(),
                expected: "a switch",
            });
        }
        self.node(node).check_free(port)?;
        let number = self.vacant_interface();
        self.nodes[node.0 as usize].attach_external(port, number);
        self.occupy(number, interface, Attachment { node, port });
        self.port_changed(node, port, true);
        Ok(number)
    }

    /// Takes back [`Network::attach_interface`]; the port is free again, and so is the interface's number, which is the result.
    /// The switch's agent and controllers see a port that went down.
    pub fn detach_interface(&mut self, switch: &str, port: u32) -> Result<usize, NetError> {
        let number = self.interface_at(switch, port)?;
        let node = self.node_id(switch)?;
        self.nodes[node.0 as usize].detach_external(port);
        self.interfaces[number] = None;
        self.outbound.retain(|&(interface, _)| interface != number);
        self.port_changed(node, port, false);
        Ok(number)
    }

    /// The number of the interface that is a switch's port.
    pub fn interface_at(&self, switch: &str, port: u32) -> Result<usize, NetError> {
        let node = self.node_id(switch)?;
        let number = self.node(node).external_at(port);
        number.ok_or_else(|| NetError::InvalidPort {
            node: switch.to_owned(),
            port,
            reason: "it is no interface of the machine",
        })
    }

    /// The numbers by which [`crate::clock::wall::FrameIo`] knows the machine's interfaces, and their names.
    pub fn interfaces(&self) -> impl Iterator<Item = (usize, &str)> {
        let numbered = self.interfaces.iter().enumerate();
        numbered.filter_map(|(number, interface)| Some((number, interface.as_ref()?.name.as_str())))
    }

    fn check_interface(&self, interface: &str) -> Result<(), NetError> {
        if interface.is_empty() {
            return Err(out_of_range("interface", "not empty"));
        }
        if self.interfaces().any(|(_, other)| other == interface) {
            return Err(out_of_range(
                "interface",
                format!("one that is not in use, which {interface} is"),
            ));
        }
        Ok(())
    }

    fn vacant_interface(&self) -> usize {
        let vacant = self.interfaces.iter().position(Option::is_none);
        vacant.unwrap_or(self.interfaces.len())
    }

    fn occupy(&mut self, number: usize, name: &str, at: Attachment) {
        if self.interfaces.len() <= number {
            self.interfaces.resize_with(number + 1, || None);
        }
        self.interfaces[number] = Some(ExternalInterface {
            name: name.to_owned(),
            at,
            up: true,
        });
    }

    /// Whether an interface that is a port can carry frames, as far as we were told.
    pub(crate) fn interface_is_up(&self, number: usize) -> bool {
        let interface = self.interfaces.get(number).and_then(Option::as_ref);
        interface.is_some_and(|interface| interface.up)
    }
}

/// What happens.
impl Network {
    /// Whether an external interface is the port of a switch.
    pub(crate) fn is_switch_port(&self, number: usize) -> bool {
        let interface = self.interfaces.get(number).and_then(Option::as_ref);
        interface.is_some_and(|i| matches!(self.node(i.at.node).kind, NodeKind::Switch(_)))
    }

    /// Whether frames wait for [`Network::run_arrivals`].
    pub(crate) fn has_arrivals(&self) -> bool {
        !self.arrivals.packets.is_empty()
    }

    /// A frame came in from an external interface. One for a switch waits for [`Network::run_arrivals`].
    pub(crate) fn receive_external(&mut self, number: usize, frame: &[u8]) {
        let Some(Some(interface)) = self.interfaces.get(number) else {
            return;
        };
        let Attachment { node, port } = interface.at;
        let state = &mut self.nodes[node.0 as usize];
        if let NodeKind::Switch(_) = state.kind {
            if self.arrivals.at != node {
                self.run_arrivals();
                self.arrivals.at = node;
            }
            let mut packet = self.arrivals.spare.pop().unwrap_or_default();
            packet.copy_from(frame);
            self.arrivals.packets.push((port, packet));
        } else if state.up {
            state.counters.received += 1;
            self.transmit(node, 0, Packet::new(frame));
        } else {
            state.counters.down_drops += 1;
        }
    }

    /// The frames that came in for a switch go through it, one after the other, now.
    pub(crate) fn run_arrivals(&mut self) {
        if self.arrivals.packets.is_empty() {
            return;
        }
        let node = self.arrivals.at;
        let mut packets = std::mem::take(&mut self.arrivals.packets);
        let time_ns = self.capture_time_ns();
        let state = &mut self.nodes[node.0 as usize];
        if state.up {
            state.counters.received += packets.len() as u64;
            for (port, packet) in &packets {
                state.capture(time_ns, *port, packet);
            }
            self.receive_burst_at_switch(node, &mut packets);
        } else {
            state.counters.down_drops += packets.len() as u64;
        }
        for (_, packet) in packets.drain(..) {
            self.arrivals.recycle(packet);
        }
        self.arrivals.packets = packets;
    }

    /// A packet leaves a node at a port without a link.
    pub(crate) fn transmit_external(&mut self, node: NodeId, port: u32, packet: Packet) {
        let time_ns = self.capture_time_ns();
        let state = &mut self.nodes[node.0 as usize];
        let Some(number) = state.external_at(port) else {
            state.counters.unconnected_drops += 1;
            return;
        };
        state.counters.sent += 1;
        state.capture(time_ns, port, &packet);
        self.outbound.push((number, packet));
    }

    /// An external interface took, or did not take, a frame.
    pub(crate) fn interface_sent(&mut self, number: usize, outcome: SendOutcome) {
        let Some(Some(interface)) = self.interfaces.get(number) else {
            return;
        };
        let state = &mut self.nodes[interface.at.node.0 as usize];
        match outcome {
            // A switch has counted it as sent.
            SendOutcome::Accepted if matches!(state.kind, NodeKind::Switch(_)) => {}
            SendOutcome::Accepted => state.counters.accepted += 1,
            SendOutcome::Dropped => state.counters.interface_drops += 1,
        }
    }

    /// An external interface can no longer carry frames, or can again. A switch whose port it is notices at once: the kernel
    /// took its time to detect it.
    pub(crate) fn interface_changed(&mut self, number: usize, up: bool) {
        let Some(Some(interface)) = self.interfaces.get_mut(number) else {
            return;
        };
        let changed = interface.up != up;
        interface.up = up;
        let Attachment { node, port } = interface.at;
        if changed {
            self.port_changed(node, port, up);
        }
    }
}
