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
//! Its modules import each other in one direction (`tests/python/test_modules.py`): nodes, links, queues, hosts and flows; then the
//! `medium`, which is all that a node sees of the others; the `model` of what nodes do, and `switch`; then `network`, which has the nodes, the
//! medium, `traffic`, failures and [`detection`], and makes things happen; then the clocks, which drive it.
//!
//! Time is whole picoseconds since the network's beginning.
#![forbid(unsafe_code)]

mod addresses;
mod capture;
#[cfg(test)]
#[path = "../../../tests/net/captured.rs"]
mod captured;
pub mod clock;
pub mod description;
pub mod detection;
mod error;
pub mod failure;
pub mod flow;
mod generator;
mod host;
mod interface;
pub mod link;
mod medium;
mod membership;
mod model;
mod neighbours;
mod network;
mod node;
mod notification;
mod observer;
pub mod ordering;
mod packet_log;
mod pool;
pub mod queue;
pub mod random;
mod record;
mod scheduler;
pub mod serialisation;
mod snapshot;
pub mod statistics;
mod subnets;
mod switch;
mod tcp_flow;
mod totals;
mod trace_log;
mod traffic;
pub mod traffic_manager;
mod units;
mod whole;

pub use addresses::Family;
pub use capture::Crossings;
pub use detection::DetectionConfig;
pub use detection::bfd::{BfdConfig, BfdStatistics};
pub use error::NetError;
pub use failure::{FailureRecord, RandomFailures};
pub use flow::{Destination, Ping, Spacing, UdpStream};
pub use generator::{GeneratorTrigger, PacketGenerator, SWITCH_PORTS};
pub use host::{Card, Gateway, HostConfig, HostSettings, Ipv6Interface};
pub use link::change::{Change, FailureTarget};
pub use link::{
    DirectionCounters, GilbertElliott, Jitter, LinkConfig, LinkCounters, LinkDirection, Loss,
    LossTrace,
};
pub use membership::{GroupFilter, GroupStatistics, MAX_SOURCES, MembershipVersion};
pub use network::{Join, Network};
pub use node::NodeCounters;
pub use notification::{Notification, NotificationEvent};
pub use observer::{
    DropCounts, DropReason, Moment, Observation, Observer, ObserverId, Place, Scope,
};
pub use ordering::{BitField, OrderingConfig, OrderingCounters, SequenceHeader};
pub use packet_log::{ReceivedLog, SentLog};
pub use queue::{MarkAbove, QueueConfig, QueueUnit, Red};
pub use snapshot::{Reading, Subject};
pub use statistics::{FlowStatistics, Latency};
pub use switch::processor::ProcessorConfig;
pub use tcp_flow::{Application, TcpFlowStatistics, TcpTransfer, WindowLog};
pub use traffic_manager::recirculation::{
    MAX_RECIRCULATION_PORTS, RecirculationConfig, RecirculationStatistics, Spread,
};
pub use traffic_manager::{QueueStatistics, Queueing, TrafficManagerConfig};
pub use units::Milliseconds;
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
