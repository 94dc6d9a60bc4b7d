//! Packets that ended, for their memory. It does not know what was in them.

use engine::Packet;
use engine::payload::Shared;

/// The most packets that are kept: as many as a busy link has on its wire, not a whole simulation's peak.
const MOST: usize = 4096;

/// Packets whose memory can be reused.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    packets: Vec<Packet>,
}

impl Pool {
    /// Builds a packet with the bytes `stored`, followed by the shared bytes `rest`. Reuses the memory of a former
    /// packet if there is one.
    #[inline]
    pub(crate) fn packet(&mut self, stored: &[u8], rest: Shared) -> Packet {
        let mut packet = self.packets.pop().unwrap_or_default();
        packet.copy_with_rest(stored, rest);
        packet
    }

    /// Keeps a packet that is no longer needed, so that its memory can be reused, unless enough are kept already.
    #[inline]
    pub(crate) fn take_back(&mut self, packet: Packet) {
        if self.packets.len() < MOST {
            self.packets.push(packet);
        }
    }
}
