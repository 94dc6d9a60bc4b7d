//! A packet in memory, with headroom so that headers can grow in front of a payload that stays where it is.

/// Bytes kept free in front of a new packet; more than the headers of ordinary programs ever add.
const HEADROOM: usize = 128;

/// An owned packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    data: Vec<u8>,
    start: usize,
}

impl Packet {
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
    pub fn bytes(&self) -> &[u8] {
        &self.data[self.start..]
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.data.len() - self.start
    }

    /// Whether there is no byte at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Replaces the first `consumed` bytes by `headers`.
    ///
    /// # Panics
    /// If `consumed` exceeds the length.
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
    pub fn truncate(&mut self, length: usize) {
        if length < self.len() {
            self.data.truncate(self.start + length);
        }
    }
}
