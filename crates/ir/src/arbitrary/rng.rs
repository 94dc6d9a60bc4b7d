//! A small deterministic generator of numbers (SplitMix64), so that programs depend on the seed and on nothing else.

use crate::{Bits, KeyMatch, MatchKind};

/// A source of pseudo-random numbers.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Creates a generator whose sequence depends only on `seed`.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// Returns the next 64 bits of the sequence.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`, which must not be zero.
    pub fn below(&mut self, n: u32) -> u32 {
        (self.next() % u64::from(n)) as u32
    }

    /// Returns a number from `low` to `high`, both included.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high - low + 1)
    }

    /// Returns true with a probability of 1 in `n`.
    pub fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }

    /// Returns a random item of `from`, which must not be empty.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize]
    }

    /// Returns a value of `width` bits; often an extreme one, such as all zeros or all ones.
    pub fn bits(&mut self, width: u32) -> Bits {
        let one = Bits::from_u64(width, 1);
        let top = one.shl(&Bits::from_u64(32, u64::from(width - 1)));
        match self.below(10) {
            0 => Bits::zero(width),
            1 => Bits::ones(width),
            2 => top,
            3 => top.sub(&one),
            4 => Bits::ones(width).sub(&one),
            5 | 6 => self.small_bits(width),
            _ => {
                let limbs: Vec<u64> = (0..width.div_ceil(64)).map(|_| self.next()).collect();
                Bits::from_limbs(width, &limbs)
            }
        }
    }

    /// Returns a random match of the match kind `kind`, for a field of `width` bits.
    pub fn key_match(&mut self, kind: MatchKind, width: u32) -> KeyMatch {
        let first = self.small_bits(width);
        let second = match self.below(3) {
            0 => self.small_bits(width),
            1 => Bits::prefix_mask(width, self.below(width + 1)),
            _ => self.bits(width),
        };
        kind.of_two(first, second).normal()
    }

    /// Returns a value of `width` bits that is below 8 (cut to the width).
    pub fn small_bits(&mut self, width: u32) -> Bits {
        Bits::from_u64(width, u64::from(self.below(8)))
    }
}
