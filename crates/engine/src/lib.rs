//! `engine`: runs one packet through one switch.
//!
//! A [`Switch`] is a program plus everything that the control plane and earlier packets left in it: table entries, registers,
//! counters, meters, multicast groups, clone sessions. Packets and the time come in, packets come out. It deliberately has no
//! clock, no socket, no thread and no knowledge of links or queues between switches; it never reads the wall clock and
//! iterates no hash map in an order that could differ between runs.
//!
//! Two executors give a program its meaning: [`interpreter`] here (readable, traces) and the machine code of `jit`. Both
//! implement [`exec::Executor`], and both call the same [`runtime::Runtime`] for tables and other objects.
//!
//! - [`packet`], [`payload`], [`exec`]: a packet in memory, bytes that many share, and what an executor is.
//! - [`switch`]: handles packets around the ingress and egress pipelines, and `architecture` decides for v1model and PSA; [`observed`]:
//!   whether a program cares what time it is and what is between them.
//! - [`runtime`]: the objects that programs use, with [`table`], [`profile`], [`meter`], [`digest`], [`value_set`], [`port_state`],
//!   [`random`] behind it; [`hash`].
//! - [`control`]: the operations of the control plane.
//! - [`interpreter`], [`trace`]: the reference executor, and what it writes down.
#![forbid(unsafe_code)]

mod architecture;
mod cells;
pub mod control;
pub mod digest;
mod drops;
mod entry;
pub mod exec;
pub mod hash;
mod idle;
pub mod ids;
pub mod interpreter;
pub mod meter;
pub mod observed;
pub mod packet;
pub mod payload;
mod plan;
pub mod port_state;
pub mod profile;
pub mod random;
pub mod replication;
pub mod runtime;
mod snapshots;
pub mod switch;
pub mod table;
pub mod takeover;
#[cfg(test)]
mod test_programs;
mod time;
pub mod trace;
pub mod value_set;
mod work_rate;

pub use control::{ControlError, ControlErrorCode};
pub use drops::DropReason;
pub use exec::{Executor, Exit, FastPath, FastPathContext, Intents, PacketContext, Stop};
pub use idle::MIN_IDLE_TIMEOUT_NS;
pub use interpreter::Interpreter;
pub use observed::{TimeObserved, cares_about_queues, time_observed};
pub use packet::{Output, Packet, Spare};
pub use replication::Replication;
pub use runtime::Runtime;
pub use switch::{Emission, Enqueued, Recirculated, Scratch, Switch, SwitchConfig};
pub use time::Time;
pub use trace::Trace;
pub use work_rate::COPIES_PER_S;
