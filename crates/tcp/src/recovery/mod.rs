//! How the sender finds out that segments were lost, and what it sends again. One file per way, all of them parts of
//! `Sender`: recovery is about its sequence numbers and nothing else.

mod newreno;
mod rack;
mod sack;
pub(crate) mod scoreboard;

pub(crate) use sack::{Report, Tracking};
