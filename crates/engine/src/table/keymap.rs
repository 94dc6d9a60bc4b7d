//! An open-addressing hash map from keys of a fixed number of limbs to 32-bit numbers.
//!
//! The hash is fixed, so that behaviour never depends on anything but the operations done. A bucket is the value and a part of the
//! hash, then the key: one cache line per probe for keys of up to 448 bits, and other keys are recognised by one word. Keys may
//! be looked up through a mask without building the masked key. Deletion shifts entries back, so a long-lived table stays as fast as a
//! new one.
//!
//! It grows and shrinks without ever stopping: a map that is full is emptied into one twice its size, and one that is nearly empty into
//! one half its size, a few buckets at a time, by the updates that follow; until then both are searched. A map that is being emptied gives
//! its memory back a part at a time, from the end. So the longest single update moves the keys of [`AT_ONCE`] buckets, which maps of up to
//! that size do at once.

/// A map from `limbs` limbs to a number below [`KeyMap::LIMIT`].
#[derive(Clone, Debug)]
pub struct KeyMap {
    limbs: usize,
    /// The buckets, of `1 + limbs` limbs each: a first limb that is zero if the bucket is free, else the value plus
    /// one in the low half and the high half of the hash in the high half; then the key.
    buckets: Vec<u64>,
    /// The number of buckets, a power of two, minus one.
    bucket_mask: usize,
    len: usize,
    /// The former buckets while they are being emptied, which begins with the last ones: those that still have keys,
    /// and some of the emptied. Empty at other times.
    former: Vec<u64>,
    /// The number of former buckets at first, minus one.
    former_mask: usize,
    /// The number of former buckets that are not emptied yet.
    unemptied: usize,
}

/// The buckets of a map that is neither growing nor shrinking, for code that looks up keys itself. A lookup begins at
/// the bucket that [`hash`] modulo the number of buckets gives, and goes on to the next bucket (after the last, the
/// first) until it finds the key or a free bucket; at least one is free.
#[derive(Clone, Copy, Debug)]
pub struct Buckets<'a> {
    /// The number of limbs of a key.
    pub limbs: usize,
    /// Each a limb that is zero if the bucket is free and else has the value plus one in its low half, then the key.
    pub buckets: &'a [u64],
    /// The number of buckets, a power of two, minus one.
    pub mask: usize,
}

const INITIAL_BUCKETS: usize = 8;

/// Maps of up to this many buckets are at most a quarter full, so that a search for a missing key ends at once;
/// larger ones are at most three quarters full.
const SPARSE_BUCKETS: usize = 1 << 14;

/// The most former buckets that an update examines, and the most keys that it moves, while the map grows or shrinks.
/// Two buckets would suffice to finish in time when it grows, 32 when it shrinks; but lookups are slower until it is
/// finished.
const BUCKETS_PER_UPDATE: usize = 1024;
const KEYS_PER_UPDATE: usize = 64;

/// A map with more than [`SPARSE_BUCKETS`] shrinks when fewer than one in this many of them have keys.
const SHRUNK_PART: usize = 16;

/// The number of emptied buckets whose memory is released at once.
const BUCKETS_GIVEN_BACK: usize = 1 << 13;

/// Maps of up to this many buckets are resized at once instead of step by step.
pub const AT_ONCE: usize = 1 << 12;

/// The low half of the first limb of a former bucket whose key was removed or moved; the search for the keys behind
/// it continues past it.
const DEAD: u64 = 0xffff_ffff;

const LOW_HALF: u64 = 0xffff_ffff;

/// The factor of [`mix`].
pub const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Calculates one step of the hash: xors the halves of the 128-bit product of `hash ^ limb` and [`MULTIPLIER`].
#[inline]
fn mix(hash: u64, limb: u64) -> u64 {
    let product = u128::from(hash ^ limb) * u128::from(MULTIPLIER);
    (product >> 64) as u64 ^ product as u64
}

/// The hash before the first limb.
pub const SEED: u64 = 0x2545_f491_4f6c_dd1d;

/// Hashes a key: beginning with [`SEED`], xors each limb into the hash, multiplies by [`MULTIPLIER`], and xors the
/// halves of the product.
#[inline]
pub fn hash(key: &[u64]) -> u64 {
    key.iter().fold(SEED, |hash, &limb| mix(hash, limb))
}

impl KeyMap {
    /// All values are below this number.
    pub const LIMIT: u32 = u32::MAX - 1;

    /// Makes an empty map for keys of `limbs` limbs.
    pub fn new(limbs: usize) -> KeyMap {
        KeyMap {
            limbs,
            buckets: vec![0; INITIAL_BUCKETS * (limbs + 1)],
            bucket_mask: INITIAL_BUCKETS - 1,
            len: 0,
            former: Vec::new(),
            former_mask: 0,
            unemptied: 0,
        }
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns how many bytes the map occupies on the heap.
    pub fn heap_bytes(&self) -> usize {
        8 * (self.buckets.capacity() + self.former.capacity())
    }

    /// Returns the buckets, for code that looks up keys without a call; `None` while the map is growing or shrinking.
    #[inline]
    pub fn in_place(&self) -> Option<Buckets<'_>> {
        self.former.is_empty().then_some(Buckets {
            limbs: self.limbs,
            buckets: &self.buckets,
            mask: self.bucket_mask,
        })
    }

    /// Returns the offset of a key's first bucket, for [`KeyMap::load`].
    #[inline]
    pub fn first_bucket(&self, key: &[u64]) -> usize {
        (hash(key) as usize & self.bucket_mask) * (self.limbs + 1)
    }

    /// Loads the first words of these buckets into the processor's caches, all at once. The result means nothing; it
    /// only keeps the compiler from removing the loads.
    #[inline]
    pub fn load(&self, buckets: &[usize]) -> u64 {
        buckets.iter().fold(0, |sum, &at| sum ^ self.buckets[at])
    }

    /// Returns true if the map has no key.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the value of `key`, or `None` if the map does not contain the key.
    #[inline]
    pub fn get(&self, key: &[u64]) -> Option<u32> {
        // Comparing slices of unknown length is a call; the common lengths need none.
        match *key {
            [a] => self.get_1(a),
            [a, b] => self.get_2(a, b),
            _ => self.search(hash(key), |stored| stored == key),
        }
    }

    /// Returns the value of a key of one limb, or `None` if the map does not contain it. All keys of the map must have
    /// one limb.
    #[inline(always)]
    pub fn get_1(&self, a: u64) -> Option<u32> {
        debug_assert_eq!(self.limbs, 1);
        let hash = mix(SEED, a);
        let (buckets, _) = self.buckets.as_chunks::<2>();
        let mut bucket = hash as usize;
        loop {
            let [word, stored] = buckets[bucket & self.bucket_mask];
            if word == 0 {
                return self.get_former(hash, &[a]);
            }
            if stored == a {
                return Some(value(word));
            }
            bucket = bucket.wrapping_add(1);
        }
    }

    /// Returns the value of a key of two limbs, or `None` if the map does not contain it. All keys of the map must
    /// have two limbs.
    #[inline(always)]
    pub fn get_2(&self, a: u64, b: u64) -> Option<u32> {
        debug_assert_eq!(self.limbs, 2);
        let hash = mix(mix(SEED, a), b);
        let (buckets, _) = self.buckets.as_chunks::<3>();
        let mut bucket = hash as usize;
        loop {
            let [word, first, second] = buckets[bucket & self.bucket_mask];
            if word == 0 {
                return self.get_former(hash, &[a, b]);
            }
            if first == a && second == b {
                return Some(value(word));
            }
            bucket = bucket.wrapping_add(1);
        }
    }

    /// Returns the value of a key from the buckets that a growing or shrinking map still has to empty; `None` if the
    /// key is not there.
    #[inline]
    fn get_former(&self, hash: u64, key: &[u64]) -> Option<u32> {
        let at = self.probe_former(hash, |stored| stored == key)?;
        Some(value(self.former[at]))
    }

    /// Returns the value of `key & mask`, or `None` if the map does not contain it.
    #[inline]
    pub fn get_masked(&self, key: &[u64], mask: &[u64]) -> Option<u32> {
        match (key, mask) {
            ([a], [m]) => return self.get_1(a & m),
            ([a, b], [m, n]) => return self.get_2(a & m, b & n),
            _ => {}
        }
        self.get_with(|| key.iter().zip(mask).map(|(&k, &m)| k & m))
    }

    /// Returns the value of the key whose limbs `limbs` returns (each time it is called), or `None` if the map does
    /// not contain it.
    #[inline]
    pub fn get_with<I: Iterator<Item = u64>>(&self, limbs: impl Fn() -> I) -> Option<u32> {
        let hash = limbs().fold(SEED, mix);
        self.search(hash, |stored| {
            stored.iter().zip(limbs()).all(|(&s, limb)| s == limb)
        })
    }

    #[inline]
    fn search(&self, hash: u64, is_key: impl Fn(&[u64]) -> bool) -> Option<u32> {
        if let Ok(at) = self.probe(&self.buckets, self.bucket_mask, hash, &is_key) {
            return Some(value(self.buckets[at]));
        }
        if self.former.is_empty() {
            return None;
        }
        let at = self.probe_former(hash, &is_key)?;
        Some(value(self.former[at]))
    }

    /// Sets the value of `key`, and returns its former value, `None` if the key is new.
    pub fn insert(&mut self, key: &[u64], value: u32) -> Option<u32> {
        debug_assert_eq!(key.len(), self.limbs);
        debug_assert!(value < KeyMap::LIMIT);
        if self.len + 1 > self.most() {
            self.resize(2 * (self.bucket_mask + 1));
        }
        self.empty_some();
        let hash = hash(key);
        let is_key = |stored: &[u64]| stored == key;
        let word = (hash & !LOW_HALF) | (u64::from(value) + 1);
        match self.probe(&self.buckets, self.bucket_mask, hash, is_key) {
            Ok(at) => Some(self::value(std::mem::replace(&mut self.buckets[at], word))),
            Err(at) => {
                if let Some(before) = self.probe_former(hash, is_key) {
                    return Some(self::value(std::mem::replace(
                        &mut self.former[before],
                        word,
                    )));
                }
                self.buckets[at] = word;
                self.buckets[at + 1..=at + self.limbs].copy_from_slice(key);
                self.len += 1;
                None
            }
        }
    }

    /// Removes `key`, and returns its value, or `None` if the map did not contain it.
    pub fn remove(&mut self, key: &[u64]) -> Option<u32> {
        self.tidy();
        let hash = hash(key);
        let is_key = |stored: &[u64]| stored == key;
        match self.probe(&self.buckets, self.bucket_mask, hash, is_key) {
            Ok(at) => {
                let removed = value(self.buckets[at]);
                self.len -= 1;
                self.close_gap(at / (self.limbs + 1));
                Some(removed)
            }
            Err(_) => {
                let at = self.probe_former(hash, is_key)?;
                self.len -= 1;
                Some(value(std::mem::replace(&mut self.former[at], DEAD)))
            }
        }
    }

    /// Continues growing or shrinking, and begins to shrink if the map has become nearly empty; returns true if more
    /// remains to be done.
    pub fn tidy(&mut self) -> bool {
        let buckets = self.bucket_mask + 1;
        let sparse = buckets > SPARSE_BUCKETS && self.len < buckets / SHRUNK_PART;
        if sparse && self.former.is_empty() {
            self.resize(buckets / 2);
        }
        self.empty_some();
        sparse || !self.former.is_empty()
    }

    /// Returns all keys, in any order.
    pub fn keys(&self) -> impl Iterator<Item = &[u64]> {
        let stride = self.limbs + 1;
        let buckets = self
            .buckets
            .chunks(stride)
            .chain(self.former.chunks(stride).take(self.unemptied));
        let taken = buckets.filter(|b| b[0] != 0 && b[0] & LOW_HALF != DEAD);
        taken.map(|b| &b[1..])
    }

    /// Returns the number of keys with which the map is full, so that the next one makes it grow.
    fn most(&self) -> usize {
        let buckets = self.bucket_mask + 1;
        match buckets <= SPARSE_BUCKETS {
            true => buckets / 4,
            false => buckets / 4 * 3,
        }
    }

    /// Finds the key with the hash `hash` in `buckets`; `is_key` returns true for the limbs of that key. Returns the
    /// offset of its bucket or, as an error, the offset of the free bucket in which it would be inserted.
    #[inline]
    fn probe(
        &self,
        buckets: &[u64],
        mask: usize,
        hash: u64,
        is_key: impl Fn(&[u64]) -> bool,
    ) -> Result<usize, usize> {
        let mut bucket = hash as usize & mask;
        loop {
            let at = bucket * (self.limbs + 1);
            let found = &buckets[at..=at + self.limbs];
            if found[0] == 0 {
                return Err(at);
            }
            if (found[0] ^ hash) >> 32 == 0 && is_key(&found[1..]) {
                return Ok(at);
            }
            bucket = (bucket + 1) & mask;
        }
    }

    #[inline]
    fn probe_former(&self, hash: u64, is_key: impl Fn(&[u64]) -> bool) -> Option<usize> {
        if self.former.is_empty() {
            return None;
        }
        self.probe_being_emptied(hash, is_key)
    }

    #[cold]
    fn probe_being_emptied(&self, hash: u64, is_key: impl Fn(&[u64]) -> bool) -> Option<usize> {
        let stride = self.limbs + 1;
        let mut bucket = hash as usize & self.former_mask;
        // There may be no free bucket left.
        for _ in 0..=self.former_mask {
            // Those from there on are dead.
            if bucket >= self.unemptied {
                bucket = 0;
            }
            let at = bucket * stride;
            let found = self.former.get(at..at + stride)?;
            if found[0] == 0 {
                return None;
            }
            if (found[0] ^ hash) >> 32 == 0 && found[0] & LOW_HALF != DEAD && is_key(&found[1..]) {
                return Some(at);
            }
            bucket += 1;
        }
        None
    }

    /// Frees the bucket number `gap`, and moves later keys back so that each remains reachable from its first bucket.
    fn close_gap(&mut self, mut gap: usize) {
        let stride = self.limbs + 1;
        let mut bucket = gap;
        loop {
            bucket = (bucket + 1) & self.bucket_mask;
            let at = bucket * stride;
            if self.buckets[at] == 0 {
                break;
            }
            let home = hash(&self.buckets[at + 1..at + stride]) as usize & self.bucket_mask;
            let distance = |from: usize, to: usize| to.wrapping_sub(from) & self.bucket_mask;
            if distance(home, bucket) >= distance(gap, bucket) {
                self.buckets.copy_within(at..at + stride, gap * stride);
                gap = bucket;
            }
        }
        self.buckets[gap * stride] = 0;
    }

    /// Begins to move the keys to `buckets` new buckets, which later updates continue; a small map moves all of them
    /// at once.
    #[cold]
    fn resize(&mut self, buckets: usize) {
        // A map that was being emptied is empty by now, for an update looks at more buckets than it fills or frees.
        while !self.former.is_empty() {
            self.empty_some();
        }
        self.former = std::mem::replace(&mut self.buckets, vec![0; buckets * (self.limbs + 1)]);
        self.former_mask = self.bucket_mask;
        self.bucket_mask = buckets - 1;
        self.unemptied = self.former_mask + 1;
        while self.former_mask < AT_ONCE && !self.former.is_empty() {
            self.empty_some();
        }
    }

    /// Moves the keys of some of the old buckets to the new ones, if the map is growing or shrinking.
    #[inline]
    fn empty_some(&mut self) {
        if !self.former.is_empty() {
            self.empty_buckets();
        }
    }

    #[cold]
    fn empty_buckets(&mut self) {
        let stride = self.limbs + 1;
        let mut moved = 0;
        let end = self.unemptied.saturating_sub(BUCKETS_PER_UPDATE);
        while self.unemptied > end && moved < KEYS_PER_UPDATE {
            self.unemptied -= 1;
            let at = self.unemptied * stride;
            let word = self.former[at];
            if word == 0 || word & LOW_HALF == DEAD {
                continue;
            }
            let key = &self.former[at + 1..at + stride];
            let free = self.probe(&self.buckets, self.bucket_mask, hash(key), |_| false);
            let to = free.unwrap_or_else(|free| free);
            self.buckets[to] = word;
            self.buckets[to + 1..to + stride].copy_from_slice(&self.former[at + 1..at + stride]);
            moved += 1;
        }
        if self.unemptied == 0 {
            self.former = Vec::new();
        } else if self.former.len() / stride >= self.unemptied + BUCKETS_GIVEN_BACK {
            self.former.truncate(self.unemptied * stride);
            self.former.shrink_to_fit();
        }
    }
}

/// Returns the value stored in the first word of a bucket.
#[inline]
fn value(word: u64) -> u32 {
    (word as u32).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn shrinks_in_short_steps() {
        let mut map = KeyMap::new(1);
        let keys = 300_000u64;
        for key in 0..keys {
            map.insert(&[key], key as u32);
        }
        let (full, mut least, mut both) = (map.heap_bytes(), usize::MAX, 0);
        for key in 0..keys {
            assert_eq!(map.remove(&[key]), Some(key as u32));
            assert_eq!(map.get(&[key]), None);
            let other = key + (keys - key) / 2;
            assert_eq!(map.get(&[other]), (other > key).then_some(other as u32));
            // A key that comes and goes while it shrinks.
            if key % 5 == 0 {
                assert_eq!(map.insert(&[keys + key], 1), None);
                assert_eq!(map.remove(&[keys + key]), Some(1));
            }
            both += usize::from(!map.former.is_empty());
            least = least.min(map.heap_bytes());
            assert_eq!(map.len() as u64, keys - key - 1);
            if key % 1009 == 0 {
                let present = (0..keys).filter(|&k| map.get(&[k]).is_some()).count();
                assert_eq!((present, map.keys().count()), (map.len(), map.len()));
            }
        }
        assert!(both > 100, "{both}");
        assert!(map.former.is_empty());
        assert!(
            map.heap_bytes() <= full / 16,
            "{} of {full}",
            map.heap_bytes()
        );
        for key in 0..keys {
            assert_eq!(map.insert(&[key], key as u32), None);
        }
        assert!((0..keys).all(|key| map.get(&[key]) == Some(key as u32)));
    }

    #[test]
    fn grows_past_what_it_does_at_once() {
        let mut map = KeyMap::new(1);
        let (mut model, mut both) = (BTreeMap::new(), 0);
        for n in 0..60_000u64 {
            let key = n * n % 40_009;
            assert_eq!(map.insert(&[key], n as u32), model.insert(key, n as u32));
            let gone = (n * 7) % 40_009;
            if n % 3 == 0 {
                assert_eq!(map.remove(&[gone]), model.remove(&gone));
            }
            both += usize::from(!map.former.is_empty());
            let other = n * 31 % 40_009;
            assert_eq!(map.get(&[other]), model.get(&other).copied());
            assert_eq!(map.len(), model.len());
        }
        assert!(both > 50, "{both}");
        assert!((0..40_009).all(|key| map.get(&[key]) == model.get(&key).copied()));
    }

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
                let sum: u64 = (0..64).filter_map(|n| map.get(&[n << 32, 0])).map(u64::from).sum();
                let expected = model.iter().filter(|(k, _)| k[1] == 0).map(|(_, &v)| u64::from(v));
                prop_assert_eq!(sum, expected.sum::<u64>());
            }
            for (key, value) in &model {
                prop_assert_eq!(map.get(key), Some(*value));
                prop_assert_eq!(map.get_masked(&[key[0] | 5, key[1]], &[!0xff, !0]), Some(*value));
            }
        }
    }
}
