//! Why a network refuses a request. Parameters out of range are refused, never bent to fit.

use engine::Time;
use std::fmt;

/// A refused request; the text says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetError {
    /// No node has this name.
    UnknownNode(String),
    /// A node has this name already.
    DuplicateNode(String),
    /// There is no such link.
    UnknownLink(u32),
    /// There is no such flow.
    UnknownFlow(u32),
    /// The flow has totals, but no log of its packets.
    NoLog(u32),
    /// The node is of another kind than the request needs.
    WrongKind {
        /// The node.
        node: String,
        /// The kind that the request needs.
        expected: &'static str,
    },
    /// The port already has a link or an interface.
    PortInUse {
        /// The node.
        node: String,
        /// The port.
        port: u32,
    },
    /// The node has no such port, or the port cannot have a link.
    InvalidPort {
        /// The node.
        node: String,
        /// The port.
        port: u32,
        /// Why not.
        reason: &'static str,
    },
    /// A parameter is outside what it may be.
    OutOfRange {
        /// The parameter.
        parameter: &'static str,
        /// Its range or values.
        expected: String,
    },
    /// The subject of the request refuses it; the text says why.
    Refused(String),
    /// The requested time is before the present time.
    TimeInPast {
        /// The requested time.
        at_ps: Time,
        /// The present time.
        now_ps: Time,
    },
    /// The network has nodes that exist in real time only.
    NeedsWallClock,
    /// The wall clock's thread has ended; the text is its panic message.
    Stopped(String),
    /// A capture file or external interface failed.
    Io(String),
}

impl fmt::Display for NetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetError::UnknownNode(name) => write!(f, "no node is named \"{name}\""),
            NetError::DuplicateNode(name) => write!(f, "a node is named \"{name}\" already"),
            NetError::UnknownLink(link) => write!(f, "there is no link {link}"),
            NetError::UnknownFlow(flow) => write!(f, "there is no flow {flow}"),
            NetError::NoLog(flow) => write!(
                f,
                "flow {flow} keeps totals alone: what became of each packet is known with log_packets only"
            ),
            NetError::WrongKind { node, expected } => write!(f, "\"{node}\" is not {expected}"),
            NetError::PortInUse { node, port } => {
                write!(f, "port {port} of \"{node}\" is in use already")
            }
            NetError::InvalidPort { node, port, reason } => {
                write!(f, "port {port} of \"{node}\" cannot be used: {reason}")
            }
            NetError::Refused(reason) => f.write_str(reason),
            NetError::OutOfRange { parameter, expected } => {
                write!(f, "{parameter} must be {expected}")
            }
            NetError::TimeInPast { at_ps, now_ps } => {
                write!(f, "{at_ps} ps has passed: it is {now_ps} ps")
            }
            NetError::NeedsWallClock => f.write_str(
                "a network with external interfaces runs on the wall clock only: use start() instead of run()",
            ),
            NetError::Stopped(reason) => write!(f, "the network is not running: {reason}"),
            NetError::Io(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for NetError {}

/// Builds the error for the parameter `parameter` that is out of range; `expected` describes the range.
pub(crate) fn out_of_range(parameter: &'static str, expected: impl Into<String>) -> NetError {
    NetError::OutOfRange {
        parameter,
        expected: expected.into(),
    }
}
