//! An open-addressing hash map from keys of a fixed number of limbs to 32-bit numbers.
//!
//! The hash is fixed, so that behaviour never depends on anything but the operations done. Keys may be looked up through
//! a mask without building the masked key. Deletion shifts entries back, so there are no tombstones and a long-lived table
//! stays as fast as a new one.

/// A map from `limbs` limbs to a number below `u32::MAX`.
#[derive(Clone, Debug)]
pub struct KeyMap {
    limbs: usize,
    /// Buckets of `1 + limbs`: first zero when free, else the value plus one; then the key.
    buckets: Vec<u64>,
    /// Number of buckets minus one; that number is a power of two.
    bucket_mask: usize,
    len: usize,
}

const INITIAL_BUCKETS: usize = 8;

/// One step of the hash: both halves of a 128-bit product.
#[inline]
fn mix(hash: u64, limb: u64) -> u64 {
    let product = u128::from(hash ^ limb) * 0x9e37_79b9_7f4a_7c15;
    (product >> 64) as u64 ^ product as u64
}

const SEED: u64 = 0x2545_f491_4f6c_dd1d;

/// The hash of a key.
#[inline]
pub fn hash(key: &[u64]) -> u64 {
    key.iter().fold(SEED, |hash, &limb| mix(hash, limb))
}

impl KeyMap {
    /// An empty map for keys of `limbs` limbs.
    pub fn new(limbs: usize) -> KeyMap {
        KeyMap {
            limbs,
            buckets: vec![0; INITIAL_BUCKETS * (limbs + 1)],
            bucket_mask: INITIAL_BUCKETS - 1,
            len: 0,
        }
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        8 * self.buckets.capacity()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of `key`.
    #[inline]
    pub fn get(&self, key: &[u64]) -> Option<u32> {
        // Comparing slices of unknown length is a call; the common lengths need none.
        let found = match *key {
            [a] => self.probe(mix(SEED, a), |stored| stored[0] == a),
            [a, b] => self.probe(mix(mix(SEED, a), b), |stored| {
                stored[0] == a && stored[1] == b
            }),
            _ => self.probe(hash(key), |stored| stored == key),
        };
        found.ok().map(|at| self.value(at))
    }

    /// The value of `key & mask`.
    #[inline]
    pub fn get_masked(&self, key: &[u64], mask: &[u64]) -> Option<u32> {
        match (key, mask) {
            ([a], [m]) => return self.get(&[a & m]),
            ([a, b], [m, n]) => return self.get(&[a & m, b & n]),
            _ => {}
        }
        let masked = || key.iter().zip(mask).map(|(&k, &m)| k & m);
        let hash = masked().fold(SEED, mix);
        let is_key = |stored: &[u64]| stored.iter().zip(masked()).all(|(&s, k)| s == k);
        self.probe(hash, is_key).ok().map(|at| self.value(at))
    }

    /// Sets the value of `key`; gives the former one.
    pub fn insert(&mut self, key: &[u64], value: u32) -> Option<u32> {
        debug_assert_eq!(key.len(), self.limbs);
        if 4 * (self.len + 1) > 3 * (self.bucket_mask + 1) {
            self.grow();
        }
        let hash = hash(key);
        match self.probe(hash, |stored| stored == key) {
            Ok(at) => {
                let former = self.value(at);
                self.buckets[at] = u64::from(value) + 1;
                Some(former)
            }
            Err(at) => {
                self.buckets[at] = u64::from(value) + 1;
                self.buckets[at + 1..=at + self.limbs].copy_from_slice(key);
                self.len += 1;
                None
            }
        }
    }

    /// Removes `key`; gives its value.
    pub fn remove(&mut self, key: &[u64]) -> Option<u32> {
        let hash = hash(key);
        let at = self.probe(hash, |stored| stored == key).ok()?;
        let former = self.value(at);
        self.len -= 1;
        self.close_gap(at / (self.limbs + 1));
        Some(former)
    }

    fn value(&self, at: usize) -> u32 {
        (self.buckets[at] - 1) as u32
    }

    fn home(&self, hash: u64) -> usize {
        hash as usize & self.bucket_mask
    }

    /// Offset of the bucket that holds the key, or of the free one where it would go.
    #[inline]
    fn probe(&self, hash: u64, is_key: impl Fn(&[u64]) -> bool) -> Result<usize, usize> {
        let mut bucket = self.home(hash);
        loop {
            let at = bucket * (self.limbs + 1);
            let found = &self.buckets[at..=at + self.limbs];
            if found[0] == 0 {
                return Err(at);
            }
            if is_key(&found[1..]) {
                return Ok(at);
            }
            bucket = (bucket + 1) & self.bucket_mask;
        }
    }

    /// Frees bucket `gap` and moves later ones back so that every key stays reachable from its home.
    fn close_gap(&mut self, mut gap: usize) {
        let stride = self.limbs + 1;
        let mut bucket = gap;
        loop {
            bucket = (bucket + 1) & self.bucket_mask;
            let at = bucket * stride;
            if self.buckets[at] == 0 {
                break;
            }
            let key = &self.buckets[at + 1..at + stride];
            let home = self.home(hash(key));
            let distance = |from: usize, to: usize| to.wrapping_sub(from) & self.bucket_mask;
            if distance(home, bucket) >= distance(gap, bucket) {
                self.buckets.copy_within(at..at + stride, gap * stride);
                gap = bucket;
            }
        }
        self.buckets[gap * stride] = 0;
    }

    fn grow(&mut self) {
        let stride = self.limbs + 1;
        let doubled = 2 * (self.bucket_mask + 1);
        let old = std::mem::replace(&mut self.buckets, vec![0; doubled * stride]);
        self.bucket_mask = doubled - 1;
        for bucket in old.chunks_exact(stride).filter(|b| b[0] != 0) {
            let hash = hash(&bucket[1..]);
            let at = self.probe(hash, |_| false).unwrap_or_else(|free| free);
            self.buckets[at..at + stride].copy_from_slice(bucket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn behaves_like_a_map(
            ops in prop::collection::vec((0u8..4, 0u64..64, 0u64..2, 0u32..1000), 0..400),
        ) {
            let mut map = KeyMap::new(2);
            let mut model = BTreeMap::new();
            for (op, low, high, value) in ops {
                let key = [low << 32, high];
                match op {
                    0 | 1 => prop_assert_eq!(map.insert(&key, value), model.insert(key, value)),
                    2 => prop_assert_eq!(map.remove(&key), model.remove(&key)),
                    _ => prop_assert_eq!(map.get(&key), model.get(&key).copied()),
                }
                prop_assert_eq!(map.len(), model.len());
            }
            for (key, value) in &model {
                prop_assert_eq!(map.get(key), Some(*value));
                prop_assert_eq!(map.get_masked(&[key[0] | 5, key[1]], &[!0xff, !0]), Some(*value));
            }
        }
    }
}
