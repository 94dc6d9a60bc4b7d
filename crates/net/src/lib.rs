//! `net`: nodes, ports, links, queues, hosts, events and failures, on two clocks.
//!
//! A [`Network`] is one model. Under the virtual clock ([`Network::run`]) it is a deterministic discrete-event simulation: the
//! same calls with the same seed give identical results, to the byte. Under the wall clock ([`clock::wall`]) the same event
//! loop runs in real time, and nodes may be interfaces of the machine.
//!
//! It deliberately does not know P4 (switches are the engine's), sockets (external frames come and go through
//! [`clock::wall::FrameIo`]) or controllers (they read [`Notification`]s and write to switches between events). Only
//! `clock::wall` reads a clock or starts a thread; nothing iterates a map in an order that could differ between runs.
//!
//! Time is whole picoseconds since the network's beginning.
#![forbid(unsafe_code)]

mod addresses;
mod agent;
mod capture;
pub mod clock;
mod error;
mod event;
mod external;
pub mod failure;
pub mod flow;
mod host;
pub mod link;
mod network;
mod node;
mod notification;
pub mod ordering;
mod pool;
pub mod queue;
pub mod random;
pub mod record;
pub mod statistics;
mod step;
mod switch;
mod tcp_flow;
mod totals;
pub mod traffic_manager;
mod visit;
mod whole;

pub use addresses::Family;
pub use agent::{GeneratorTrigger, PacketGenerator};
pub use error::NetError;
pub use failure::{FailureRecord, FailureTarget, RandomFailures};
pub use flow::{Destination, Ping, Spacing, UdpStream};
pub use host::{HostConfig, Ipv6Interface};
pub use link::{
    DirectionCounters, GilbertElliott, Jitter, LinkConfig, LinkCounters, LinkDirection, Loss,
    LossTrace,
};
pub use network::Network;
pub use node::NodeCounters;
pub use notification::{Notification, NotificationEvent};
pub use ordering::{BitField, OrderingConfig, OrderingCounters, SequenceHeader};
pub use queue::{Discipline, QueueConfig, QueueUnit, Red, Step};
pub use record::{ReceivedLog, SentLog};
pub use statistics::{FlowStatistics, Latency};
pub use tcp_flow::{Application, TcpFlowStatistics, TcpTransfer, WindowLog};
pub use traffic_manager::{QueueStatistics, Queueing, TrafficManagerConfig};
pub use wire::MacAddress;

/// A node of a network, by position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// A link of a network, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// A flow of a network, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// A TCP connection of a network, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TcpFlowId(pub u32);

/// A packet generator of a network, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GeneratorId(pub u32);
