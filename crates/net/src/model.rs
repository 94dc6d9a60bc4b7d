//! The behaviour of nodes: the trait that every kind of node implements, with hosts and interfaces of the machine; switches are in `switch`. A node
//! sees itself and the medium, and no other node.

use crate::error::NetError;
use crate::host::{Host, Timer};
use crate::medium::Medium;
use crate::node::NodeState;
use crate::scheduler::{Event, Token};
use crate::traffic::Traffic;
use engine::{Packet, Scratch, Time, TimeObserved};
use std::any::Any;
use std::fmt::Debug;

/// How a node may handle packets ahead of the run (`network::visit`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visiting {
    /// The node handles no packets ahead.
    Never,
    /// Packets are handled one by one.
    Singly,
    /// Packets are handled several at a time, at the time of the first one: the program does not observe times, or only
    /// as finely as this.
    Bursts(TimeObserved),
}

/// The behaviour of a node.
pub(crate) trait NodeModel: Any + Debug + Send {
    /// Returns the reason why neither a link nor an interface can be connected to a port; `None` if one can. The
    /// default is for nodes with port 0 only.
    fn refuses_port(&self, port: u32) -> Option<&'static str> {
        (port != 0).then_some("hosts and interfaces have port 0 only")
    }

    /// Handles a packet that has arrived at a port of the node, which is up.
    fn receive(
        &mut self,
        own: &mut NodeState,
        medium: &mut Medium,
        traffic: &mut Traffic,
        port: u32,
        packet: Packet,
    );

    /// Handles a timer that the node has set for itself; `token` tells which one.
    fn wake(
        &mut self,
        own: &mut NodeState,
        medium: &mut Medium,
        traffic: &mut Traffic,
        token: Token,
    ) {
        let _ = (own, medium, traffic, token);
    }

    /// Handles a scheduled event for a packet of the node, such as its departure.
    fn event(&mut self, own: &mut NodeState, medium: &mut Medium, event: Event) {
        let _ = (own, medium, event);
    }

    /// Handles the failure of the node: drops the packets and timers that do not survive it.
    fn failed(&mut self, own: &mut NodeState, medium: &mut Medium) {
        let _ = (own, medium);
    }

    /// Handles the repair of the node after a failure.
    fn repaired(&mut self, own: &mut NodeState, medium: &mut Medium) {
        let _ = (own, medium);
    }

    /// Returns how the node may at present handle packets before the simulation's clock has reached their arrival
    /// (`network::visit`).
    fn visiting(&self) -> Visiting {
        Visiting::Never
    }

    /// Handles packets whose arrival the simulation's clock may not have reached yet (`network::visit`). They run as
    /// if all had arrived with the first one, but the outputs of each leave at the packet's own time.
    fn receive_visitors(
        &mut self,
        own: &mut NodeState,
        medium: &mut Medium,
        visitors: &mut Visitors,
    ) {
        let _ = (own, medium, visitors);
    }
}

/// Packets that a node handles together, ahead of the run.
#[derive(Debug, Default)]
pub(crate) struct Visitors {
    /// The packets, each with its port.
    pub(crate) packets: Vec<(u32, Packet)>,
    /// When each of them arrived.
    pub(crate) arrivals_ps: Vec<Time>,
    /// Memory for whichever switch handles the packets.
    pub(crate) scratch: Box<Scratch>,
}

/// A node.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Node {
    // First what every packet needs.
    pub(crate) model: Box<dyn NodeModel>,
    pub(crate) state: NodeState,
}

impl Node {
    /// Returns the node's model if it is of type `T`, such as a host; else `None`.
    #[inline]
    pub(crate) fn get<T: NodeModel>(&self) -> Option<&T> {
        (&*self.model as &dyn Any).downcast_ref()
    }

    /// Returns the node's model for modification, with the node's state, if the model is of type `T`; else `None`.
    #[inline]
    pub(crate) fn get_mut<T: NodeModel>(&mut self) -> Option<(&mut T, &mut NodeState)> {
        let model = (&mut *self.model as &mut dyn Any).downcast_mut()?;
        Some((model, &mut self.state))
    }

    pub(crate) fn is<T: NodeModel>(&self) -> bool {
        (&*self.model as &dyn Any).is::<T>()
    }

    /// Builds the error for the port `port` of this node, which cannot be used for this reason.
    pub(crate) fn invalid_port(&self, port: u32, reason: &'static str) -> NetError {
        NetError::InvalidPort {
            node: self.state.name.to_string(),
            port,
            reason,
        }
    }

    /// Checks that a link or interface may be connected to a port. Fails if the node does not allow it, or the port is
    /// in use.
    pub(crate) fn check_free(&self, port: u32) -> Result<(), NetError> {
        if let Some(reason) = self.model.refuses_port(port) {
            return Err(self.invalid_port(port, reason));
        }
        if self.state.direction_from(port).is_some() || self.state.external_at(port).is_some() {
            return Err(NetError::PortInUse {
                node: self.state.name.to_string(),
                port,
            });
        }
        Ok(())
    }
}

impl NodeModel for Host {
    fn refuses_port(&self, port: u32) -> Option<&'static str> {
        let cards = self.settings.cards.len();
        let why = match cards {
            1 => "hosts and interfaces have port 0 only",
            _ => "a host has a port for each of its network cards, from 0",
        };
        (port as usize >= cards).then_some(why)
    }

    fn receive(
        &mut self,
        own: &mut NodeState,
        medium: &mut Medium,
        traffic: &mut Traffic,
        port: u32,
        packet: Packet,
    ) {
        traffic.receive(self, own, medium, port, &packet);
        medium.pool.take_back(packet);
    }

    fn failed(&mut self, own: &mut NodeState, medium: &mut Medium) {
        let waiting = self.neighbours.forget();
        medium.lose(own, waiting);
    }

    fn wake(
        &mut self,
        own: &mut NodeState,
        medium: &mut Medium,
        traffic: &mut Traffic,
        token: Token,
    ) {
        match Timer::of(token) {
            Timer::Memberships => self.say_memberships(own, medium),
            Timer::Tcp(endpoint) => traffic.tcp_timer(self, own, medium, endpoint),
            Timer::Application(flow) => traffic.tcp_application(self, own, medium, flow),
            Timer::Neighbours => self.attend(own, medium),
        }
    }

    fn visiting(&self) -> Visiting {
        Visiting::Singly
    }
}

/// An interface of the machine as a node.
#[derive(Debug)]
pub(crate) struct InterfaceNode {
    /// Its number among the network's interfaces.
    pub(crate) number: usize,
}

impl NodeModel for InterfaceNode {
    fn receive(
        &mut self,
        _: &mut NodeState,
        medium: &mut Medium,
        _: &mut Traffic,
        _: u32,
        packet: Packet,
    ) {
        medium.outbound.push((self.number, packet));
    }
}
