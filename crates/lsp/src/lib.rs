//! `lsp`: a language server for P4_16 on the compiler's own front end.
//!
//! A [`Snapshot`] is a program as the front end knows it, and all answers are functions of one ([`query`], [`outline`],
//! [`complete`], [`rename`]). A [`Session`] has the open documents, finds the program to which each belongs, and keeps
//! its snapshot. [`server`] speaks the protocol. Nothing here reads P4 or resolves a name itself: `compile` does.
#![forbid(unsafe_code)]

mod complete;
mod diagnostics;
mod outline;
mod paths;
mod query;
mod rename;
mod server;
mod session;
mod snapshot;
mod text;

pub use complete::complete;
pub use outline::outline;
pub use query::{definition, hover, references};
pub use rename::rename;
pub use server::{serve, serve_stdio};
pub use session::{Session, Settings};
pub use snapshot::Snapshot;
pub use text::{Encoding, Text};
