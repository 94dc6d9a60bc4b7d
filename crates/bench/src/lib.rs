//! `bench` measures the speed of P4 programs beside hand-written Rust of the same function.
//!
//! A [`Workload`] is a program with its tables filled, a [`Handwritten`] version of the same function with its own data
//! structures, and a [`traffic::Traffic`] for both. [`measure()`] runs them in turns, on one core, in memory, and returns
//! packets per second of each; the ratio is the figure. Before the measurement both must send the same bytes at the same ports.
//!
//! [`measure_table()`] measures tables on their own.
//!
//! [`measure_simulation()`] measures whole networks in virtual time.
//!
//! It knows nothing of Python, terminals or files. The P4 sources (`benches/*.p4`) are built in.
#![forbid(unsafe_code)]

pub mod bier;
pub mod bng;
pub mod contents;
pub mod firewall;
pub mod l2_switch;
pub mod measure;
pub mod middleblock;
pub mod programs;
pub mod protect;
pub mod random;
pub mod router;
pub mod shorternet;
pub mod simulation;
pub mod source;
pub mod structures;
pub mod tables;
pub mod telemetry;
pub mod traffic;
pub mod wide_field;
pub mod workload;

pub use measure::{Measurement, Options, measure};
pub use programs::{PROGRAMS, workload};
pub use simulation::{SimulationMeasurement, measure_simulation, simulations};
pub use tables::{TABLES, TableMeasurement, measure_table};
pub use workload::{Handwritten, Workload};
