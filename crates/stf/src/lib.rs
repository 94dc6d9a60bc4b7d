//! `stf`: packet tests in the simple test framework format of p4c.
//!
//! A script adds entries, sends packets and says what must come out. [`run_file`] runs one against the program beside it, on the
//! interpreter and as machine code. It deliberately knows no sockets and no other switch, and its time is virtual.
//!
//! - [`script`], [`parse`]: what a script says.
//! - [`run`]: on one switch.
//! - [`reference`]: what another switch did, from its captures.
//! - [`suite`]: from files, a directory of them, on both executors or one.
//!
//! # The format, where the reference leaves it open
//!
//! - Ports, in order: every packet that leaves must be expected, at its port and in its position among the packets of that port.
//! - `expect PORT` without data takes a packet of any content; without `$` more bytes may follow.
//! - A script without a packet and without a check of state is skipped: nothing in it could fail.
//! - Of several entries the one with the highest priority wins; one without a priority has 0.
//! - Ours: `remove TABLE ...`, `check_register`, `check_digest`, `LOW->HIGH` and `VALUE&&&MASK` in matches.
#![forbid(unsafe_code)]

pub mod parse;
pub mod reference;
mod resolve;
pub mod run;
pub mod script;
pub mod suite;

pub use parse::parse;
pub use run::run;
pub use script::{Problem, Script};
pub use suite::{
    Executors, Status, TestResult, run_directory, run_file, run_on, run_on_both, scripts,
};
