//! A sieve before a hash map: a few bits per key that tell of most keys that are not in the map, so that nothing else is touched for them.
//!
//! A key's place is a sum of products, one per limb, so that a lookup in many maps multiplies without waiting. Keys that are taken out
//! leave their bit behind until the sieve is built anew, which its owner does after some time. It knows no masks and no entries.

/// The number of limbs of a key that are hashed; keys that differ only in further limbs have the same bit.
pub(super) const LIMBS: usize = 4;

/// The factor of each limb: odd, without regular structure.
const FACTORS: [u64; LIMBS] = [
    0x9e37_79b9_7f4a_7c15,
    0xc2b2_ae3d_27d4_eb4f,
    0xd6e8_feb8_6659_fd93,
    0xa076_1d64_78bd_642f,
];

/// The least number of bits per key, up to [`MOST_BITS`] in all.
const BITS_PER_KEY: usize = 16;

/// The most bits of a sieve.
const MOST_BITS: usize = 1 << 21;

/// Returns what one limb (64-bit word) of a key adds to the key's hash, by which the sieve finds its bit: its value
/// times a constant for the limb's number; 0 for limbs beyond [`LIMBS`].
#[inline]
pub(super) fn share(limb: usize, value: u64) -> u64 {
    FACTORS.get(limb).map_or(0, |f| f.wrapping_mul(value))
}

/// A bit set in which at least one bit is set for each key of a map.
#[derive(Clone, Debug)]
pub(super) struct Sieve {
    /// The bits; the number of words is a power of two.
    words: Vec<u64>,
    /// The shift that yields the number of a key's bit from the key's sum.
    shift: u32,
    /// The number of removed keys, whose bits are still set.
    gone: usize,
}

impl Sieve {
    /// Makes an empty sieve with enough bits for twice `keys` keys, but at most [`MOST_BITS`].
    pub fn new(keys: usize) -> Sieve {
        let bits = (2 * BITS_PER_KEY * keys).next_power_of_two();
        let bits = bits.clamp(64, MOST_BITS);
        Sieve {
            words: vec![0; bits / 64],
            shift: 64 - bits.ilog2(),
            gone: 0,
        }
    }

    /// Returns true if the sieve may contain the key with the hash `place`; false if it certainly does not.
    #[inline]
    pub fn may_hold(&self, place: u64) -> bool {
        let bit = place >> self.shift;
        // In range by construction: as many bits as the shift leaves.
        let word = self.words.get((bit / 64) as usize);
        word.is_some_and(|word| word >> (bit % 64) & 1 != 0)
    }

    /// Adds the key with the hash `place` to the sieve.
    pub fn insert(&mut self, place: u64) {
        let bit = place >> self.shift;
        if let Some(word) = self.words.get_mut((bit / 64) as usize) {
            *word |= 1 << (bit % 64);
        }
    }

    /// Counts a key that was removed. Its bit stays set, since other keys may have the same.
    pub fn remove(&mut self) {
        self.gone += 1;
    }

    /// Returns true if the sieve should be built again for these `keys` keys, because it is too small for them, or
    /// because too many bits belong to removed keys.
    pub fn is_worn(&self, keys: usize) -> bool {
        let bits = 64 * self.words.len();
        let small = keys * BITS_PER_KEY > bits && bits < MOST_BITS;
        small || self.gone > keys + 64
    }

    /// Returns how many bytes the sieve occupies on the heap.
    pub fn heap_bytes(&self) -> usize {
        8 * self.words.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(n: u64) -> u64 {
        share(0, n).wrapping_add(share(2, n << 40))
    }

    #[test]
    fn holds_what_is_there_and_little_else() {
        let mut sieve = Sieve::new(1);
        let mut built = 1;
        for n in 0..5_000 {
            sieve.insert(place(n));
            if sieve.is_worn(n as usize + 1) {
                built += 1;
                sieve = Sieve::new(n as usize + 1);
                (0..=n).for_each(|n| sieve.insert(place(n)));
            }
        }
        assert!((0..5_000).all(|n| sieve.may_hold(place(n))));
        let others = (5_000..105_000)
            .filter(|&n| sieve.may_hold(place(n)))
            .count();
        assert!(others < 9_000, "{others} of 100,000");
        assert!((5..15).contains(&built), "{built}");
    }

    #[test]
    fn wears_out_when_many_are_gone() {
        let mut sieve = Sieve::new(1_000);
        (0..200).for_each(|_| sieve.remove());
        assert!(!sieve.is_worn(200) && sieve.is_worn(100));
    }

    #[test]
    fn limbs_beyond_those_that_count_add_nothing() {
        assert_eq!(share(LIMBS, 77), 0);
        assert!((0..LIMBS).all(|i| share(i, 77) != 0));
    }
}
