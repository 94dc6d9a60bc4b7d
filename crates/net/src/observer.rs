//! Observers: subscribers that are told of packets, drops, failures and ports of a network as they happen.
//! Captures are observers, and so are counts of drops. Nobody pays while nobody looks: without a subscription, a test of one flag is left.
//!
//! An observer changes nothing: it is given what happened, for reading, and has no way back into the network. So a run's results are the
//! same whether somebody looks or not. One that looks at the whole network is told in the order of time, so nodes are not visited
//! (`network::visit`) meanwhile, which is slower; one that looks at a node or a port does not change that for the others.
//!
//! The work of a P4 program on packets inside a switch is seen here only if the switch has a log (`trace_log`): it is traced, and slower.
//! The program's drops are counted by the engine, with their reasons.

use crate::NodeId;
use engine::trace::Trace;
use engine::{Packet, Time};
use std::any::Any;
use std::collections::BTreeMap;

/// An observer of a network, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObserverId(pub u32);

/// The scope of an observer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All nodes and links.
    Network,
    /// A node, and the links as far as they lead away from it.
    Node(NodeId),
    /// A port of a node.
    Port(NodeId, u32),
}

/// When something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The time since the network's beginning.
    pub time_ps: Time,
    /// The time of day at the network's beginning, under the wall clock; zero under the virtual clock.
    pub epoch_ns: u64,
}

impl Moment {
    /// Returns the moment in nanoseconds: the time of day under the wall clock, the network's time under the virtual
    /// clock.
    pub fn time_ns(self) -> u64 {
        self.epoch_ns + self.time_ps.ns()
    }
}

/// The place of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The node.
    pub node: NodeId,
    /// Its name.
    pub name: &'a str,
    /// Its port, if it happened at one; a change of one direction of a link happens at the port that it leads away from.
    pub port: Option<u32>,
}

/// Why packets ended outside a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// A queue was full, a link's or a traffic manager's.
    QueueFull,
    /// A queue dropped it early, by its discipline.
    Early,
    /// The packet was lost on the wire, at random or by a trace.
    Loss,
    /// The link was down, or failed while the packet waited or was under way.
    LinkDown,
    /// The packet was longer than the MTU.
    Mtu,
    /// The node was down, or failed while the packet was inside.
    NodeDown,
    /// The port has no link.
    Unconnected,
    /// An interface of the machine did not take the packet.
    Interface,
    /// A frame for another station reached a host.
    NotAddressed,
    /// The packet was to a multicast group, or from a source, that the host which it reached has not joined.
    NotJoined,
    /// The packet reached a host damaged.
    Corrupted,
    /// The next hop of a host's packet has no known MAC address, or there is none.
    Unresolved,
}

impl DropReason {
    /// All reasons.
    pub const ALL: [DropReason; 12] = [
        DropReason::QueueFull,
        DropReason::Early,
        DropReason::Loss,
        DropReason::LinkDown,
        DropReason::Mtu,
        DropReason::NodeDown,
        DropReason::Unconnected,
        DropReason::Interface,
        DropReason::NotAddressed,
        DropReason::NotJoined,
        DropReason::Corrupted,
        DropReason::Unresolved,
    ];

    /// Returns the name of the reason, such as `queue_full`.
    pub fn name(self) -> &'static str {
        match self {
            DropReason::QueueFull => "queue_full",
            DropReason::Early => "early",
            DropReason::Loss => "loss",
            DropReason::LinkDown => "link_down",
            DropReason::Mtu => "mtu",
            DropReason::NodeDown => "node_down",
            DropReason::Unconnected => "unconnected",
            DropReason::Interface => "interface",
            DropReason::NotAddressed => "not_addressed",
            DropReason::NotJoined => "not_joined",
            DropReason::Corrupted => "corrupted",
            DropReason::Unresolved => "unresolved",
        }
    }
}

/// An event at a place.
#[derive(Clone, Copy, Debug)]
pub enum Observation<'a> {
    /// A packet came to a port of a node that works.
    Received(&'a Packet),
    /// A node sends a packet by a port, whatever becomes of it there.
    Sent(&'a Packet),
    /// A link took a packet that has to wait for the transmitter.
    Queued(&'a Packet),
    /// Packets ended.
    Dropped {
        /// Why they ended.
        reason: DropReason,
        /// The number of packets: several where a failure ended packets that waited and were under way.
        packets: u64,
    },
    /// The direction of a link that leads away from the port failed, or works again.
    LinkChanged {
        /// True if it works.
        up: bool,
    },
    /// A switch with a log ran a packet, and this is what happened to it ([`crate::Network::log_packets`]).
    Traced {
        /// The packet as it came.
        packet: &'a [u8],
        /// What happened.
        trace: &'a Trace,
        /// The packets that came out, each with its port.
        outputs: &'a [(u32, Vec<u8>)],
    },
    /// A switch with a log ran a packet beyond the number that the log shows per second.
    NotTraced,
    /// The node failed, or works again.
    NodeChanged {
        /// True if it works.
        up: bool,
    },
    /// The node was told that a port is down or up.
    PortChanged {
        /// True if it is up.
        up: bool,
    },
}

/// A subscriber.
pub trait Observer: Any + Send {
    /// Handles an observation: something that happened to a packet, a port or a node.
    fn observe(&mut self, moment: Moment, place: Place<'_>, seen: &Observation<'_>);

    /// Writes out buffered data at the end of a run.
    fn flush(&mut self) {}

    /// Returns why the observer cannot go on, at the first call after a failure; otherwise `None`.
    fn take_failure(&mut self) -> Option<String> {
        None
    }
}

struct Subscription {
    scope: Scope,
    observer: Box<dyn Observer>,
}

/// The observers of a network.
#[derive(Default)]
pub(crate) struct Observers {
    active: bool,
    /// By number; those that ended are vacant.
    subscriptions: Vec<Option<Subscription>>,
    /// The numbers of those that look at the whole network.
    everywhere: Vec<usize>,
    /// For each node, the numbers of those that look at it or at its ports.
    by_node: Vec<Vec<usize>>,
}

impl Observers {
    pub(crate) fn subscribe(&mut self, scope: Scope, observer: Box<dyn Observer>) -> ObserverId {
        let number = self.subscriptions.len();
        self.subscriptions
            .push(Some(Subscription { scope, observer }));
        self.numbers_of(scope).push(number);
        self.active = true;
        ObserverId(number as u32)
    }

    /// Ends a subscription and returns its observer, or `None` if the subscription had already ended.
    pub(crate) fn unsubscribe(&mut self, id: ObserverId) -> Option<Box<dyn Observer>> {
        let number = id.0 as usize;
        let ended = self.subscriptions.get_mut(number)?.take()?;
        self.numbers_of(ended.scope).retain(|&it| it != number);
        self.active = self.subscriptions.iter().any(Option::is_some);
        Some(ended.observer)
    }

    fn numbers_of(&mut self, scope: Scope) -> &mut Vec<usize> {
        match scope {
            Scope::Network => &mut self.everywhere,
            Scope::Node(node) | Scope::Port(node, _) => {
                let node = node.0 as usize;
                if self.by_node.len() <= node {
                    self.by_node.resize_with(node + 1, Vec::new);
                }
                &mut self.by_node[node]
            }
        }
    }

    /// Returns whether any observer is subscribed.
    #[inline(always)]
    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    /// Returns whether an observer is subscribed to the whole network.
    pub(crate) fn watch_all(&self) -> bool {
        !self.everywhere.is_empty()
    }

    /// Returns whether an observer is subscribed to this node in particular.
    pub(crate) fn watch(&self, node: NodeId) -> bool {
        let numbers = self.by_node.get(node.0 as usize);
        numbers.is_some_and(|numbers| !numbers.is_empty())
    }

    /// Returns an observer if it is subscribed and of type `T`; else `None`.
    pub(crate) fn get<T: Observer>(&self, id: ObserverId) -> Option<&T> {
        let subscription = self.subscriptions.get(id.0 as usize)?.as_ref()?;
        (&*subscription.observer as &dyn Any).downcast_ref()
    }

    /// Reports what happened at a place to the observers whose scope contains the place.
    #[cold]
    pub(crate) fn tell(&mut self, moment: Moment, place: Place<'_>, seen: &Observation<'_>) {
        let here = self.by_node.get(place.node.0 as usize);
        for &number in self.everywhere.iter().chain(here.into_iter().flatten()) {
            let Some(it) = &mut self.subscriptions[number] else {
                continue;
            };
            let concerned = match it.scope {
                Scope::Port(_, port) => place.port == Some(port),
                Scope::Network | Scope::Node(_) => true,
            };
            if concerned {
                it.observer.observe(moment, place, seen);
            }
        }
    }

    /// Makes all observers write out their buffered data.
    pub(crate) fn flush(&mut self) {
        let observers = self.subscriptions.iter_mut().flatten();
        observers.for_each(|it| it.observer.flush());
    }

    /// Returns the first failure of an observer that has not been reported yet; `None` if there is none.
    pub(crate) fn take_failure(&mut self) -> Option<String> {
        let mut observers = self.subscriptions.iter_mut().flatten();
        observers.find_map(|it| it.observer.take_failure())
    }
}

impl std::fmt::Debug for Observers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scopes = self.subscriptions.iter().flatten().map(|it| it.scope);
        f.debug_list().entries(scopes).finish()
    }
}

/// Counts drops, by node and reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DropCounts {
    by_place: BTreeMap<(NodeId, DropReason), u64>,
}

impl DropCounts {
    /// Returns the number of packets that were dropped for a reason at a node, or on a link that leads away from it.
    pub fn at(&self, node: NodeId, reason: DropReason) -> u64 {
        let count = self.by_place.get(&(node, reason));
        count.copied().unwrap_or(0)
    }

    /// Returns the number of packets that were dropped for any reason anywhere.
    pub fn total(&self) -> u64 {
        self.by_place.values().sum()
    }

    /// Returns the numbers of dropped packets by node and reason, without those that are zero.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, DropReason, u64)> {
        let places = self.by_place.iter();
        places.map(|(&(node, reason), &count)| (node, reason, count))
    }
}

impl Observer for DropCounts {
    fn observe(&mut self, _: Moment, place: Place<'_>, seen: &Observation<'_>) {
        if let Observation::Dropped { reason, packets } = *seen {
            *self.by_place.entry((place.node, reason)).or_default() += packets;
        }
    }
}
