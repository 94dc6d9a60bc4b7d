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

/// The part of a network that an observer watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All nodes and links.
    Network,
    /// A node, and the link directions that lead away from it.
    Node(NodeId),
    /// A port of a node.
    Port(NodeId, u32),
}

/// When something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The time since the network's beginning.
    pub time_ps: Time,
    /// The time of day at the network's beginning, in nanoseconds since 1970, under the wall clock; zero under the
    /// virtual clock.
    pub epoch_ns: u64,
}

impl Moment {
    /// Returns the moment in nanoseconds: since 1970 under the wall clock, since the network's beginning under the
    /// virtual clock.
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
    /// The node's port, if the event concerns one; for a link direction, the port that it leads away from.
    pub port: Option<u32>,
}

/// Why packets were dropped outside a switch's program.
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
    /// A host's packet has no route, or its next hop's MAC address was not found.
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

    /// Returns the name of the reason in results, such as `queue_full`.
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

/// An event that observers are informed of.
#[derive(Clone, Copy, Debug)]
pub enum Observation<'a> {
    /// A packet arrived at a port of a node that is up.
    Received(&'a Packet),
    /// A node sends a packet out of a port, whatever happens to it there.
    Sent(&'a Packet),
    /// A link accepted a packet that must wait for the transmitter.
    Queued(&'a Packet),
    /// Packets were dropped.
    Dropped {
        /// Why they ended.
        reason: DropReason,
        /// The number of packets: several if a failure dropped those in a queue and on the wire.
        packets: u64,
    },
    /// The link direction that leads away from the port failed, or works again.
    LinkChanged {
        /// True if it works.
        up: bool,
    },
    /// A switch with a log has traced a packet through its program ([`crate::Network::log_packets`]).
    Traced {
        /// The packet as it came.
        packet: &'a [u8],
        /// What happened.
        trace: &'a Trace,
        /// The packets that came out, each with its port.
        outputs: &'a [(u32, Vec<u8>)],
    },
    /// A switch with a log has run a packet without a trace, because it has shown enough in this second.
    NotTraced,
    /// The node failed, or works again.
    NodeChanged {
        /// True if it works.
        up: bool,
    },
    /// The node learned that a port is down or up.
    PortChanged {
        /// True if it is up.
        up: bool,
    },
}

/// A subscriber.
pub trait Observer: Any + Send {
    /// Handles an event of a packet, a port or a node at the given time and place.
    fn observe(&mut self, moment: Moment, place: Place<'_>, seen: &Observation<'_>);

    /// Writes out buffered data. Called at the end of a run.
    fn flush(&mut self) {}

    /// Returns a message if the observer has failed since the last call; otherwise `None`.
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
    /// The subscriptions by number; those that have ended are vacant.
    subscriptions: Vec<Option<Subscription>>,
    /// The numbers of the subscriptions to the whole network.
    everywhere: Vec<usize>,
    /// For each node, the numbers of the subscriptions to it or to one of its ports.
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

    /// Ends a subscription, and returns its observer; `None` if it had already ended.
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

    /// Returns true if any observer is subscribed.
    #[inline(always)]
    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    /// Returns true if an observer is subscribed to the whole network.
    pub(crate) fn watch_all(&self) -> bool {
        !self.everywhere.is_empty()
    }

    /// Returns true if an observer is subscribed to this node or one of its ports.
    pub(crate) fn watch(&self, node: NodeId) -> bool {
        let numbers = self.by_node.get(node.0 as usize);
        numbers.is_some_and(|numbers| !numbers.is_empty())
    }

    /// Returns the observer of a subscription, if that has not ended and the observer is of type `T`; else `None`.
    pub(crate) fn get<T: Observer>(&self, id: ObserverId) -> Option<&T> {
        let subscription = self.subscriptions.get(id.0 as usize)?.as_ref()?;
        (&*subscription.observer as &dyn Any).downcast_ref()
    }

    /// Passes an event at a place to the observers whose scope contains the place.
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

    /// Returns the first failure of an observer that has not been returned yet; `None` if there is none.
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
    /// Returns the number of packets that were dropped for a reason at a node, or on the link directions that lead away
    /// from it.
    pub fn at(&self, node: NodeId, reason: DropReason) -> u64 {
        let count = self.by_place.get(&(node, reason));
        count.copied().unwrap_or(0)
    }

    /// Returns the number of packets that were dropped in the network for any reason.
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
