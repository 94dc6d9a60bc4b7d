//! `conformance`: two switches of one program, one on each executor, that are told the same and must do the same.
//!
//! [`twin`] is the pair. [`history`] makes a history of packets and control operations out of any bytes, so that tests (random bytes) and
//! fuzzers (bytes bred for coverage) share it. [`apps`] compiles the applications that are tested this way. [`generate`] writes
//! programs out of bytes, and [`generated`] takes them through the whole chain; [`psa`] writes them for PSA. [`effects`] has the only programs whose results it
//! computes itself: those of expressions and calls with effects. Other expected results are in `tests/p4/run`, which this crate's
//! tests run.
#![forbid(unsafe_code)]

pub mod apps;
pub mod choices;
pub mod effects;
pub mod frames;
pub mod generate;
pub mod generated;
pub mod history;
pub mod psa;
pub mod script;
pub mod telemetry;
pub mod twin;

pub use choices::Choices;
pub use history::{Statistics, run};
pub use twin::{Subject, Twin};
