//! Packets that ended, for their memory. It does not know what was in them.

use engine::Packet;
use engine::payload::Shared;

/// Most packets that are kept: those that a busy link has under way, not a whole simulation's peak.
const MOST: usize = 4096;

/// Packets that ended, kept to reuse their memory.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    packets: Vec<Packet>,
}

impl Pool {
    /// Builds a packet with these bytes, and shared ones behind them, in memory of a former packet if there is one.
    #[inline]
    pub(crate) fn packet(&mut self, stored: &[u8], rest: Shared) -> Packet {
        let mut packet = self.packets.pop().unwrap_or_default();
        packet.copy_with_rest(stored, rest);
        packet
    }

    /// Takes back a packet that ended, to reuse its memory.
    #[inline]
    pub(crate) fn take_back(&mut self, packet: Packet) {
        if self.packets.len() < MOST {
            self.packets.push(packet);
        }
    }
}
