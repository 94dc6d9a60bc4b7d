//! Counters of packets and bytes.

/// A counter of packets and bytes.
#[derive(Clone, Copy, Default)]
pub struct Count {
    packets: u64,
    bytes: u64,
}

impl Count {
    /// Counts one packet of `bytes` bytes.
    #[inline]
    pub fn add(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }
}
