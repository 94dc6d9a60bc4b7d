//! `telemetry`: the collector's data of telemetry reports. [`Collector`] has flows with their paths and latencies, output ports with
//! their queues, drops, and counts; [`Rows`] are the hops of all reports as columns, until somebody takes them.
//!
//! It deliberately knows no sockets, clocks and files: payloads come in with the time of their arrival. The format is `wire::report`'s.
#![forbid(unsafe_code)]

mod collector;
mod flows;
mod rows;
mod sequence;

pub use collector::{Collector, HopKey, HopState, LATENCY_BUCKETS, Limits, ReporterState};
pub use flows::{FlowState, Flows};
pub use rows::{COLUMNS, NONE, Rows};
