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
    /// Builds a packet that stores these bytes, followed by the shared bytes `rest`, in the memory of a former packet
    /// if possible.
    #[inline]
    pub(crate) fn packet(&mut self, stored: &[u8], rest: Shared) -> Packet {
        let mut packet = self.packets.pop().unwrap_or_default();
        packet.copy_with_rest(stored, rest);
        packet
    }

    /// Keeps a packet that is no longer needed, so that its memory can be reused.
    #[inline]
    pub(crate) fn take_back(&mut self, packet: Packet) {
        if self.packets.len() < MOST {
            self.packets.push(packet);
        }
    }
}
