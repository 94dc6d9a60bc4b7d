//! What is measured: a filled switch, the hand-written version, and the packets for both.

use crate::router;
use crate::traffic::Traffic;
use engine::{Output, Packet, Switch};

/// A function written by hand in Rust, with its own tables.
pub trait Handwritten {
    /// Handles packets, each with the port it arrived at; appends what leaves, in order. Takes all out of `burst`.
    fn receive_burst(&mut self, burst: &mut Vec<(u32, Packet)>, out: &mut Vec<Output>);
}

/// A program in both versions, and its packets.
pub struct Workload {
    /// Ours.
    pub switch: Switch,
    /// The other.
    pub handwritten: Box<dyn Handwritten>,
    /// From the number of bytes in a packet to the packets.
    pub traffic: Box<dyn Fn(usize) -> Box<dyn Traffic>>,
}

/// The programs that can be measured.
pub const PROGRAMS: [&str; 2] = ["router_1k", "router_1m"];

/// Compiles a program and fills the tables of both versions. `quick`: tables a hundredth of the size, for tests.
pub fn workload(program: &str, quick: bool) -> Result<Workload, String> {
    let scale = if quick { 100 } else { 1 };
    match program {
        "router_1k" => router::workload(1_000 / scale),
        "router_1m" => router::workload(1_000_000 / scale),
        _ => Err(format!(
            "there is no benchmark {program:?}; there are {}",
            PROGRAMS.join(", ")
        )),
    }
}
