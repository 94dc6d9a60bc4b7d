//! Loss recovery of the sender: it detects lost segments and chooses the ones to send again. Each method has a file; all are parts of
//! `Sender`, because recovery works on its sequence numbers alone.

mod newreno;
mod rack;
mod sack;
pub(crate) mod scoreboard;

pub(crate) use sack::{Report, Tracking};
