//! The subject of a measurement: a filled switch, the hand-written version, and the packets for both.

use crate::traffic::Traffic;
use engine::{Output, Packet, Switch, Time};

/// A program written by hand in Rust, with its own tables.
pub trait Handwritten {
    /// Sets the time for packets that follow, if the function depends on it. Called before every burst.
    fn set_now_ps(&mut self, now_ps: Time) {
        let _ = now_ps;
    }

    /// Handles packets, each given with the port at which it arrives, and appends the packets that leave to `out`, in
    /// order. `burst` is empty afterwards.
    fn receive_burst(&mut self, burst: &mut Vec<(u32, Packet)>, out: &mut Vec<Output>);

    /// Keeps a packet that is no longer needed, so that its memory can be reused.
    fn reuse(&mut self, packet: Packet) {
        drop(packet);
    }
}

/// A program as P4 and as hand-written Rust, and the traffic for both.
pub struct Workload {
    /// A switch that runs the P4 program.
    pub switch: Switch,
    /// The hand-written version.
    pub handwritten: Box<dyn Handwritten>,
    /// A function that returns traffic whose packets have the given number of bytes.
    pub traffic: Box<dyn Fn(usize) -> Box<dyn Traffic>>,
}
