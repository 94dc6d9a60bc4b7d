//! `p4runtime`: table entries between serialized P4Runtime messages and the engine, for controllers in a hurry.
//!
//! A batch of table updates is nearly always of one sort: valid inserts, modifies and deletes of entries with a match and an
//! action. Such a *plain* request is taken here from its bytes to [`engine::control::Update`]s, without a protobuf library
//! and without Python; the entries of a table travel the same way back. Everything else is [`NotPlain`]: default entries,
//! counters, meters and timeouts in entries, members and groups, other entities, and whatever is wrong in any way. It is
//! left to `python/holdfast/p4runtime`, which knows all of P4Runtime. So nothing is refused here, and there is one place
//! where errors are worded. Beside that, [`contradiction`] says whether a P4Info is of a program.
//!
//! It does not know roles, elections, the contents of tables, nor what P4Info says beyond what [`TableInfo`] tells of it.
#![forbid(unsafe_code)]

mod contradiction;
mod protobuf;
mod read;
mod tables;
mod write;

pub use contradiction::{Claims, contradiction};
pub use protobuf::NotPlain;
pub use tables::{ActionInfo, FieldInfo, PlainTables, TableInfo};
pub use write::WriteRequest;

#[cfg(test)]
mod tests;
