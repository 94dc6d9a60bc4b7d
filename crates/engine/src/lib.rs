//! `engine`: runs one packet through one switch.
//!
//! A [`Switch`] is a program plus everything that the control plane and earlier packets left in it: table entries, registers,
//! counters, meters, multicast groups, clone sessions. Packets and the time come in, packets come out. It deliberately has no
//! clock, no socket, no thread and no knowledge of links or queues between switches; it never reads the wall clock and
//! iterates no hash map in an order that could differ between runs.
//!
//! Two executors give a program its meaning: [`interpreter`] here (readable, traces) and the machine code of `jit`. Both
//! implement [`exec::Executor`], and both call the same [`runtime::Runtime`] for tables and other objects.
#![forbid(unsafe_code)]

pub mod exec;
pub mod packet;

pub use exec::{DropReason, Executor, Intents, PacketContext};
pub use packet::Packet;
