//! `stf`: packet tests in the simple test framework format of p4c.
//!
//! A script adds entries, sends packets and lists the expected output. [`run_file`] runs a script against the program beside it, on the
//! interpreter and as machine code. It deliberately knows no sockets and no other switch, and its time is virtual.
//!
//! - [`script`], [`parse`]: the contents of a script.
//! - [`run`]: a run on one switch.
//! - [`suite`]: runs from files or a directory, on both executors or one.
//!
//! # Format choices that the reference leaves open
//!
//! - A script must expect every packet that leaves, at its port and in its position among the packets of that port.
//! - `expect PORT` without data takes a packet of any content; without `$` more bytes may follow.
//! - A script without a packet and without a check of state is run, but has a status of its own: its program compiles and loads.
//! - Of several entries the one with the highest priority wins; one without a priority has 0.
//! - Extensions: `remove TABLE ...`, `check_register`, `check_digest`, `LOW->HIGH` and `VALUE&&&MASK` in matches.
#![forbid(unsafe_code)]

pub mod parse;
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
