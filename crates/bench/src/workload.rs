//! The subject of a measurement: a filled switch, the hand-written version, and the packets for both.

use crate::traffic::Traffic;
use engine::{Output, Packet, Switch, Time};

/// A function written by hand in Rust, with its own tables.
pub trait Handwritten {
    /// Sets the time for packets that follow, if the function depends on it. Called before every burst.
    fn set_now_ps(&mut self, now_ps: Time) {
        let _ = now_ps;
    }

    /// Handles packets, each given with its arrival port, and appends what leaves to `out`, in order. `burst` is empty
    /// afterwards.
    fn receive_burst(&mut self, burst: &mut Vec<(u32, Packet)>, out: &mut Vec<Output>);

    /// Keeps a packet that is no longer needed, so that its memory can be reused.
    fn reuse(&mut self, packet: Packet) {
        drop(packet);
    }
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
