//! Interfaces of the machine in a network: adding and removing them, and what comes in from outside.

use super::Network;
use crate::NodeId;
use crate::error::NetError;
use crate::interface::SendOutcome;
use crate::link::Attachment;
use crate::model::InterfaceNode;
use crate::observer::{DropReason, Observation};
use crate::switch::SwitchNode;
use engine::Packet;

/// Adding and removing interfaces.
impl Network {
    /// Adds an interface of the machine as a node with port 0, and returns the node. [`Network::interfaces`] returns
    /// the interface's number. From then on, the network can run only on the wall clock. Fails if the node's or the
    /// interface's name is already in use, or the interface's name is empty.
    pub fn add_interface(&mut self, name: &str, interface: &str) -> Result<NodeId, NetError> {
        self.interfaces.check(interface)?;
        let number = self.interfaces.vacant();
        let node = self.add_node(name, Box::new(InterfaceNode { number }))?;
        let at = Attachment { node, port: 0 };
        self.interfaces.occupy(number, interface, at);
        Ok(node)
    }

    /// Attaches an interface of the machine as a port of a switch, without a link in between, and returns the
    /// interface's number. From then on, the network can run only on the wall clock. The switch's agent and controllers
    /// see that the port came up. Fails if there is no such switch, the port cannot be used, or the interface is
    /// already in use.
    pub fn attach_interface(
        &mut self,
        switch: &str,
        port: u32,
        interface: &str,
    ) -> Result<usize, NetError> {
        self.interfaces.check(interface)?;
        let (node, _) = self.switch_node(switch)?;
        self.node(node).check_free(port)?;
        let number = self.interfaces.vacant();
        self.node_mut(node).state.attach_external(port, number);
        let at = Attachment { node, port };
        self.interfaces.occupy(number, interface, at);
        self.port_changed(node, port, true);
        Ok(number)
    }

    /// Detaches an interface that [`Network::attach_interface`] attached, and returns the interface's number. The port
    /// and the number are free again. The switch's agent and controllers see that the port went down. Fails if the
    /// port is not an interface.
    pub fn detach_interface(&mut self, switch: &str, port: u32) -> Result<usize, NetError> {
        let number = self.interface_at(switch, port)?;
        let node = self.node_id(switch)?;
        self.node_mut(node).state.detach_external(port);
        self.interfaces.vacate(number);
        let outbound = &mut self.medium.outbound;
        outbound.retain(|&(interface, _)| interface != number);
        self.port_changed(node, port, false);
        Ok(number)
    }

    /// Returns the number of the interface of the machine that is attached as a switch's port. Fails if there is none.
    pub fn interface_at(&self, switch: &str, port: u32) -> Result<usize, NetError> {
        let node = self.node_id(switch)?;
        let number = self.node(node).state.external_at(port);
        number.ok_or_else(|| NetError::InvalidPort {
            node: switch.to_owned(),
            port,
            reason: "it is no interface of the machine",
        })
    }

    /// Returns the machine's interfaces in the network: the numbers by which [`crate::clock::wall::FrameIo`] knows
    /// them, and their names.
    pub fn interfaces(&self) -> impl Iterator<Item = (usize, &str)> {
        self.interfaces.names()
    }
}

/// Events.
impl Network {
    /// Returns true if the external interface with this number is attached as a port of a switch.
    pub(crate) fn is_switch_port(&self, number: usize) -> bool {
        let interface = self.interfaces.get(number);
        interface.is_some_and(|i| self.node(i.at.node).is::<SwitchNode>())
    }

    /// Returns true if frames from external interfaces wait to be run by [`Network::run_arrivals`].
    pub(crate) fn has_arrivals(&self) -> bool {
        !self.interfaces.arrivals.packets.is_empty()
    }

    /// Handles a frame from an external interface. If the interface is a port of a switch, the frame waits until
    /// [`Network::run_arrivals`]; if it is a node, the frame is sent on the node's link, or lost if the node is down.
    pub(crate) fn receive_external(&mut self, number: usize, frame: &[u8]) {
        let Some(interface) = self.interfaces.get(number) else {
            return;
        };
        let Attachment { node, port } = interface.at;
        if self.node(node).is::<SwitchNode>() {
            if self.interfaces.arrivals.at != node {
                self.run_arrivals();
                self.interfaces.arrivals.at = node;
            }
            return self.interfaces.arrivals.push(port, frame);
        }
        let own = &mut self.nodes[node.0 as usize].state;
        if own.up {
            own.counters.received += 1;
            self.medium.transmit(own, 0, Packet::new(frame));
        } else {
            self.medium.lose(own, 1);
        }
    }

    /// Runs the waiting frames through the switch at which they arrived, one after the other, at the present time; they
    /// are lost if the switch is down.
    pub(crate) fn run_arrivals(&mut self) {
        let arrivals = &mut self.interfaces.arrivals;
        if arrivals.packets.is_empty() {
            return;
        }
        let medium = &mut self.medium;
        let count = arrivals.packets.len() as u64;
        if let Some((switch, own)) = self.nodes[arrivals.at.0 as usize].get_mut::<SwitchNode>() {
            if own.up {
                own.counters.received += count;
                if medium.observers.is_active() {
                    for (port, packet) in &arrivals.packets {
                        medium.tell(own, Some(*port), Observation::Received(packet));
                    }
                }
                switch.receive_burst(own, medium, &mut arrivals.packets);
            } else {
                medium.lose(own, count);
            }
        }
        let mut packets = std::mem::take(&mut arrivals.packets);
        for (_, packet) in packets.drain(..) {
            arrivals.recycle(packet);
        }
        arrivals.packets = packets;
    }

    /// Counts a frame that an external interface has sent or dropped, according to `outcome`.
    pub(crate) fn interface_sent(&mut self, number: usize, outcome: SendOutcome) {
        let Some(interface) = self.interfaces.get(number) else {
            return;
        };
        let Attachment { node, port } = interface.at;
        let node = &mut self.nodes[node.0 as usize];
        match outcome {
            // A switch has counted it as sent.
            SendOutcome::Accepted if node.is::<SwitchNode>() => {}
            SendOutcome::Accepted => node.state.counters.accepted += 1,
            SendOutcome::Dropped => {
                node.state.counters.interface_drops += 1;
                let reason = DropReason::Interface;
                (self.medium).tell_dropped(&node.state, Some(port), reason, 1);
            }
        }
    }

    /// Records that an external interface can carry frames again (`up` is true) or no longer. If it is a port of a
    /// switch, the switch notices at once, since the kernel has already taken time to detect the change.
    pub(crate) fn interface_changed(&mut self, number: usize, up: bool) {
        if let Some(Attachment { node, port }) = self.interfaces.changed(number, up) {
            self.port_changed(node, port, up);
        }
    }
}
