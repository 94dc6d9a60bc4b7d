//! Payloads of modelled traffic: bytes that many packets share instead of each storing them.
//!
//! They are in one table, and a packet refers to a range of it by two small numbers. It does not know flows.

use std::ops::Range;

/// The longest range that can be shared: more than fits into an IP packet.
pub const MAX_BYTES: usize = 1 << 16;

/// The table of which every [`Shared`] is a range: the pattern, then zeros.
static BYTES: [u8; 2 * MAX_BYTES] = {
    let mut bytes = [0; 2 * MAX_BYTES];
    let mut i = 0;
    while i < MAX_BYTES {
        bytes[i] = (i as u8).wrapping_mul(0x9d) ^ (i >> 8) as u8;
        i += 1;
    }
    bytes
};

/// A range of the shared table of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    from: u32,
    len: u32,
}

impl Shared {
    /// The empty range.
    pub const NONE: Shared = Shared { from: 0, len: 0 };

    /// Returns a range of a fixed pattern, in which repeated, shifted and cut bytes can be recognised: byte `i` is
    /// `157 i` xor `i >> 8`, modulo 256.
    ///
    /// # Panics
    /// If the range is not one, or ends behind [`MAX_BYTES`].
    pub fn pattern(range: Range<usize>) -> Shared {
        assert!(
            range.start <= range.end && range.end <= MAX_BYTES,
            "a part of the pattern"
        );
        Shared {
            from: range.start as u32,
            len: (range.end - range.start) as u32,
        }
    }

    /// Returns `count` bytes, all of them zero.
    ///
    /// # Panics
    /// If they are more than [`MAX_BYTES`].
    #[inline]
    pub fn zeros(count: usize) -> Shared {
        assert!(count <= MAX_BYTES, "so many zeros");
        Shared {
            from: MAX_BYTES as u32,
            len: count as u32,
        }
    }

    /// Returns the bytes that this value describes.
    #[inline]
    pub fn bytes(self) -> &'static [u8] {
        &BYTES[self.from as usize..][..self.len as usize]
    }

    /// Returns the number of bytes that this value describes.
    #[inline]
    pub fn len(self) -> usize {
        self.len as usize
    }

    /// Returns true if this value describes no bytes.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Removes the first `count` bytes from this range, and returns them.
    pub(crate) fn take(&mut self, count: usize) -> &'static [u8] {
        let taken = &self.bytes()[..count];
        self.from += count as u32;
        self.len -= count as u32;
        taken
    }

    /// Cuts the range to its first `count` bytes, if it is longer.
    pub(crate) fn truncate(&mut self, count: usize) {
        if count < self.len() {
            self.len = count as u32;
        }
    }
}
