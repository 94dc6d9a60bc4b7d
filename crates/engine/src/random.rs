//! The switch's own generator of random numbers: xoshiro256** seeded with splitmix64 (Blackman and Vigna, public domain).
//!
//! Equal seeds give equal sequences on every machine. It is not, and need not be, unpredictable.

/// A generator; its state is part of the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// Makes a generator whose sequence depends only on `seed`.
    pub fn new(seed: u64) -> Random {
        let mut x = seed;
        let state = std::array::from_fn(|_| {
            x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = x;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        });
        Random { state }
    }

    /// Returns the next 64 bits of the sequence.
    pub fn next_u64(&mut self) -> u64 {
        let [s0, s1, s2, s3] = &mut self.state;
        let result = s1.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = *s1 << 17;
        *s2 ^= *s0;
        *s3 ^= *s1;
        *s1 ^= *s2;
        *s0 ^= *s3;
        *s2 ^= t;
        *s3 = s3.rotate_left(45);
        result
    }

    /// Returns a uniformly distributed number between `low` and `high`, both included; `low` if the interval is empty.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        if high <= low {
            return low;
        }
        let span = high - low;
        if span == u64::MAX {
            return self.next_u64();
        }
        // Multiply-shift with rejection of the few products that would favour some values (Lemire 2019).
        let n = span + 1;
        let reject_below = n.wrapping_neg() % n;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(n);
            if product as u64 >= reject_below {
                return low + (product >> 64) as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_sequences() {
        let (mut a, mut b, mut c) = (Random::new(7), Random::new(7), Random::new(8));
        let of = |r: &mut Random| (0..8).map(|_| r.next_u64()).collect::<Vec<_>>();
        let first = of(&mut a);
        assert_eq!(first, of(&mut b));
        assert_ne!(first, of(&mut c));
    }

    #[test]
    fn values_stay_in_bounds_and_reach_both_ends() {
        let mut random = Random::new(1);
        let mut seen = [0; 7];
        for _ in 0..7000 {
            seen[(random.between(10, 16) - 10) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
        assert_eq!(random.between(5, 5), 5);
        assert_eq!(random.between(6, 5), 6);
        random.between(0, u64::MAX);
    }
}
