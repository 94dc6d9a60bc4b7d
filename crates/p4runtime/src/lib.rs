//! `p4runtime`: the control plane's entities between serialized P4Runtime messages and the engine, in one form each.
//!
//! [`Pipeline`] is a program with its P4Info. It turns the updates of a [`WriteRequest`] into [`engine::control::Update`]s or
//! refusals ([`Batch`]), answers a `ReadRequest` slice by slice ([`Reading`]), and cuts and joins what the data plane sends and gets:
//! packets for the controller, digests, idle entries. [`EntryEncoder`] is the client's side: a table's entries to updates. `messages` has the fields of the messages, `info` what P4Info says of the
//! program.
//!
//! It does not know streams, elections, transports or clocks; `python/holdfast/p4runtime` does.
#![forbid(unsafe_code)]

mod answer;
mod contradiction;
mod details;
mod encode;
mod entities;
mod entries;
mod errors;
mod extent;
mod field_match;
mod info;
mod messages;
mod pipeline;
mod plan;
mod protobuf;
mod read;
mod request;
mod served;
mod state;
mod transfer;
mod translation;
mod values;
mod write;

pub use answer::Slice;
pub use details::{Details, FailedElement, error_details};
pub use extent::extent;
pub use pipeline::{Pipeline, p4info_text};
pub use plan::Failure;
pub use read::{ReadRequest, Reading};
pub use request::{ActionShape, EntryBytes, EntryEncoder, Given, Named, Number, Slot};
pub use state::Reconciliation;
pub use translation::Mappings;
pub use write::{Batch, Tally, UpdateKind, WriteRequest};

#[cfg(test)]
mod official;
#[cfg(test)]
mod tests;
