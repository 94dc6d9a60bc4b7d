//! A packet in memory, with headroom so that headers can grow in front of a payload that stays where it is.

use crate::footprint::fetch_slice;

/// Bytes kept free in front of a new packet; more than the headers of ordinary programs ever add.
const HEADROOM: usize = 128;

/// Bytes of a packet that a switch reads, most likely.
const HEADERS_BYTES: usize = 128;

/// An owned packet. Packets are equal if their bytes on the wire are.
#[derive(Clone, Debug, Default)]
pub struct Packet {
    data: Vec<u8>,
    start: usize,
}

impl PartialEq for Packet {
    fn eq(&self, other: &Packet) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Packet {}

impl Packet {
    /// Without bytes, and without memory.
    pub const EMPTY: Packet = Packet {
        data: Vec::new(),
        start: 0,
    };

    /// Copies `bytes` behind fresh headroom.
    pub fn new(bytes: &[u8]) -> Packet {
        let mut data = Vec::with_capacity(HEADROOM + bytes.len());
        data.resize(HEADROOM, 0);
        data.extend_from_slice(bytes);
        Packet {
            data,
            start: HEADROOM,
        }
    }

    /// The bytes on the wire (from the first header; no preamble, no frame check sequence).
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.data[self.start..]
    }

    /// The bytes on the wire.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.data[self.start..]
    }

    /// Asks for the bytes that a parser reads, most likely, to be brought into the near caches.
    #[inline]
    pub fn fetch_headers(&self) {
        let bytes = self.bytes();
        fetch_slice(&bytes[..bytes.len().min(HEADERS_BYTES)]);
    }

    /// Makes it a packet of `size` bytes that begins with `head` and goes on with zeros, behind fresh headroom, in the memory that
    /// it has. Bytes of `head` beyond `size` are left out.
    pub fn refill(&mut self, head: &[u8], size: usize) {
        self.start = HEADROOM;
        self.data.truncate(HEADROOM);
        self.data.resize(HEADROOM, 0);
        self.data.extend_from_slice(&head[..head.len().min(size)]);
        self.data.resize(HEADROOM + size, 0);
    }

    /// Makes it a copy of `bytes` behind fresh headroom, in the memory that it has.
    pub fn copy_from(&mut self, bytes: &[u8]) {
        self.start = HEADROOM;
        self.data.truncate(HEADROOM);
        self.data.resize(HEADROOM, 0);
        self.data.extend_from_slice(bytes);
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.data.len() - self.start
    }

    /// Whether there is no byte at all.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A packet like this one with the first `consumed` bytes replaced by `headers`, in the memory of `spare` if that is enough.
    ///
    /// # Panics
    /// If `consumed` exceeds the length.
    #[inline]
    pub fn with_front(&self, consumed: usize, headers: &[u8], spare: Packet) -> Packet {
        let payload = &self.bytes()[consumed..];
        let mut data = spare.data;
        data.truncate(HEADROOM);
        if data.capacity() < HEADROOM + headers.len() + payload.len() {
            // A little more, so that it is enough the next time.
            data.reserve((HEADROOM + headers.len() + payload.len()).next_multiple_of(256));
        }
        data.resize(HEADROOM, 0);
        data.extend_from_slice(headers);
        data.extend_from_slice(payload);
        Packet {
            data,
            start: HEADROOM,
        }
    }

    /// Replaces the first `consumed` bytes by `headers`.
    ///
    /// # Panics
    /// If `consumed` exceeds the length.
    #[inline]
    pub fn replace_front(&mut self, consumed: usize, headers: &[u8]) {
        let payload = self.start + consumed;
        assert!(payload <= self.data.len(), "consumed more than the packet");
        if headers.len() > payload {
            let mut grown = Packet::new(headers);
            grown.data.extend_from_slice(&self.data[payload..]);
            *self = grown;
            return;
        }
        self.start = payload - headers.len();
        self.data[self.start..payload].copy_from_slice(headers);
    }

    /// Cuts the packet to at most `length` bytes.
    #[inline]
    pub fn truncate(&mut self, length: usize) {
        if length < self.len() {
            self.data.truncate(self.start + length);
        }
    }
}

/// Packets that are done with, so that copies need no fresh memory.
#[derive(Debug, Default)]
pub struct Spare(Vec<Packet>);

impl Spare {
    /// So many are kept at most.
    const MOST: usize = 512;

    /// Takes a packet, which may have any contents.
    #[inline]
    pub fn push(&mut self, packet: Packet) {
        // Those whose bytes were taken have left no memory behind.
        if self.0.len() < Spare::MOST && packet.data.capacity() != 0 {
            self.0.push(packet);
        }
    }

    /// Gives one, with any contents; one without memory if there is none.
    #[inline]
    pub fn take(&mut self) -> Packet {
        self.0.pop().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::Packet;

    #[test]
    fn a_copy_with_another_front_has_nothing_of_the_memory_it_takes() {
        let packet = Packet::new(&[1, 2, 3, 4, 5]);
        for spare in [
            Packet::default(),
            Packet::new(&[9; 3]),
            Packet::new(&[9; 900]),
        ] {
            let mut spare = spare;
            spare.replace_front(spare.len().min(1), &[8; 7]);
            for (consumed, front) in [(0, &[][..]), (2, &[7; 40]), (5, &[7; 2]), (3, &[6; 3])] {
                let copy = packet.with_front(consumed, front, spare.clone());
                let mut edited = packet.clone();
                edited.replace_front(consumed, front);
                assert_eq!(copy.bytes(), edited.bytes());
                assert_eq!(copy, edited);
                assert_ne!(copy, Packet::new(&[]));
            }
        }
        assert_eq!(packet.bytes(), [1, 2, 3, 4, 5]);
    }
}
