//! Frames as hosts read them, in one piece. It does not know what is in them.

use engine::Packet;
use engine::payload::Shared;

/// The last frame that was put together. If the next one has the same payload behind other headers, only those are
/// copied.
#[derive(Debug, Default)]
pub(crate) struct WholeFrame {
    bytes: Vec<u8>,
    stored: usize,
    rest: Shared,
}

impl WholeFrame {
    /// Returns all bytes of a packet, stored and shared ones, in one piece, which is valid until the next call.
    #[inline]
    pub(crate) fn of(&mut self, packet: &Packet) -> &[u8] {
        let (stored, rest) = (packet.stored(), packet.rest());
        if (self.stored, self.rest) == (stored.len(), rest) {
            self.bytes[..stored.len()].copy_from_slice(stored);
        } else {
            self.bytes.clear();
            self.bytes.extend_from_slice(stored);
            self.bytes.extend_from_slice(rest.bytes());
            (self.stored, self.rest) = (stored.len(), rest);
        }
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::WholeFrame;
    use engine::Packet;
    use engine::payload::Shared;

    #[test]
    fn frames_one_after_the_other() {
        let zeros = Shared::zeros;
        let shared = [Shared::NONE, zeros(3), zeros(9), Shared::pattern(7..99)];
        let mut whole = WholeFrame::default();
        for stored in [&[1u8, 2, 3][..], &[4, 5, 6], &[4, 5], &[], &[7; 60]] {
            for rest in shared.into_iter().flat_map(|rest| [rest, rest]) {
                let mut packet = Packet::default();
                packet.copy_with_rest(stored, rest);
                assert_eq!(whole.of(&packet), &packet.bytes()[..]);
                assert_eq!(packet.len(), stored.len() + rest.len());
            }
        }
    }
}
