//! Packets that ended, for their memory. It does not know what was in them.

use engine::Packet;

/// Most packets that are kept: what a busy link has under way, not a whole simulation's peak.
const MOST: usize = 4096;

/// Packets that ended.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    packets: Vec<Packet>,
}

impl Pool {
    /// A packet with these bytes.
    #[inline]
    pub(crate) fn packet(&mut self, bytes: &[u8]) -> Packet {
        match self.packets.pop() {
            Some(mut packet) => {
                packet.copy_from(bytes);
                packet
            }
            None => Packet::new(bytes),
        }
    }

    /// A packet of so many bytes that begins with `head` and goes on with zeros.
    #[inline]
    pub(crate) fn zeros_behind(&mut self, head: &[u8], size: usize) -> Packet {
        let mut packet = self.packets.pop().unwrap_or_default();
        packet.refill(head, size);
        packet
    }

    /// Takes a packet that ended.
    #[inline]
    pub(crate) fn take_back(&mut self, packet: Packet) {
        if self.packets.len() < MOST {
            self.packets.push(packet);
        }
    }
}
