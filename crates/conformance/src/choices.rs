//! Decisions taken from bytes: a change of a fuzzer to its input changes one decision.

use ir::{BinaryOp, Bits};

/// Returns `count` pseudo-random bytes, which depend only on the seed.
pub fn random_bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut byte = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (z ^ (z >> 29)).to_be_bytes()[0]
    };
    (0..count).map(|_| byte()).collect()
}

/// A source of decisions: bytes that are read one after the other, and zeros after the last.
#[derive(Clone, Copy, Debug)]
pub struct Choices<'a> {
    bytes: &'a [u8],
}

impl<'a> Choices<'a> {
    /// Creates a source of choices that are read from `bytes`.
    pub fn new(bytes: &'a [u8]) -> Choices<'a> {
        Choices { bytes }
    }

    /// Returns whether all bytes have been read.
    pub fn is_over(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Reads the next byte; returns zero if all have been read.
    pub fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((&first, rest)) => {
                self.bytes = rest;
                first
            }
            None => 0,
        }
    }

    /// Reads the next byte and returns it modulo `limit`, which is 1 to 256: a number below `limit`.
    pub fn below(&mut self, limit: u32) -> u32 {
        u32::from(self.byte()) % limit.max(1)
    }

    /// Reads the next byte and returns true with a probability of 1 in `n`. If all bytes have been read, returns
    /// false (true if `n` is 1).
    pub fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == n - 1
    }

    /// Returns an item of `list` that the next byte chooses. The list must not be empty.
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u32) as usize]
    }

    /// Reads the next `count` bytes, with zeros for those beyond the end.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }

    /// Reads the next two bytes as a big-endian number.
    pub fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// Returns a value of `width` bits that the next bytes choose: often a small one, sometimes one with
    /// all bits set or a small one shifted to the left, else any.
    pub fn bits(&mut self, width: u32) -> Bits {
        let small = |choices: &mut Self| {
            Bits::from_u64(width.max(8), u64::from(choices.byte() & 7)).resize(width)
        };
        match self.below(4) {
            0 | 1 => small(self),
            2 if self.one_in(4) => Bits::ones(width),
            // If it is wide, the lowest limb may be zero, and one above it not.
            2 if self.one_in(3) => {
                let places = Bits::from_u64(32, self.below(width).into());
                Bits::binary(BinaryOp::Shl, &small(self), &places)
            }
            _ => {
                let bytes = self.bytes(width.div_ceil(8) as usize);
                Bits::from_be_bytes(bytes.len() as u32 * 8, &bytes).resize(width)
            }
        }
    }
}
