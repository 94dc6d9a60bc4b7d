//! `tcp`: one end of a TCP connection, without clock, socket or packet. It takes and returns [`Segment`]s, and [`Connection::due_ps`]
//! returns the time of its next timer. It counts data and does not carry it: a [`Connection`] knows how many bytes were written,
//! acknowledged and received in order, but not their values.
//!
//! Its modules:
//!
//! * `config`: the configuration, with the RFCs' values as defaults and [`Config::ns2_2001`], the simulator of 2001.
//! * `connection`: the state machine of RFC 9293, which joins sender and receiver.
//! * `sender`: decides what to send and when; its loss recovery is in `sender/recovery/`, its window in `congestion/`, its timer in `rtt`.
//! * `receiver`: decides what to acknowledge and when; `intervals` holds the data received out of order.
//! * `segment`: the segments between two ends; `wire::tcp` has header fields and options.
//!
//! It deliberately does not know addresses, ports, checksums or links; its driver does. All times are picoseconds of the
//! driver's clock, all arithmetic is on integers (where a formula wants real numbers, on IEEE operations that every machine rounds
//! alike), so the same calls give the same segments everywhere.
//!
//! # Driving it
//!
//! After every [`Connection::receive`], [`Connection::on_timer`], [`Connection::write`] and so on, call
//! [`Connection::next_segment`] until it returns `None`, then ask [`Connection::due_ps`] when to call
//! [`Connection::on_timer`]. Calling it early does nothing.
//!
//! # Not supported
//!
//! Urgent data (the pointer is ignored), simultaneous open, keep-alives, path MTU discovery, TCP Fast Open, MD5 and AO
//! authentication, F-RTO and Eifel (undoing of spurious retransmissions), accurate ECN, multipath.
#![forbid(unsafe_code)]

mod config;
mod congestion;
mod connection;
mod intervals;
mod receiver;
mod rtt;
mod segment;
mod sender;
mod statistics;
#[cfg(test)]
mod tests;

pub use config::{
    Config, ConfigError, Congestion, Cubic, DelayedAck, Estimator, ExitWindow, Hpcc, HyStart,
    Increase, NewReno, PartialAck, Recovery, Reduction, RtoConfig,
};
pub use connection::{Connection, Failure, State};
pub use segment::{EcnCodepoint, Segment};
pub use statistics::Statistics;
pub use wire::int::{Kind, PathLoad};
pub use wire::tcp::{Flags, Options, SackBlocks, Timestamps};

/// The time of a timer that does not run.
const NEVER_PS: u64 = u64::MAX;
