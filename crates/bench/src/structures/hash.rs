//! A hash table for keys of a few words: open addressing, linear probing, at most a quarter full. Tags of the hashes lie apart from the
//! keys, so that a miss reads one word.

/// A map from keys of `N` words to numbers.
pub struct HashTable<const N: usize> {
    /// For each slot, the high half of the hash; 0 if the slot is free.
    tags: Vec<u32>,
    slots: Vec<([u64; N], u32)>,
    len: usize,
}

#[inline]
fn hash<const N: usize>(key: &[u64; N]) -> u64 {
    key.iter().fold(0x51_7cc1_b727_220a_u64, |hash, word| {
        let product = u128::from(hash ^ word) * 0xd6e8_feb8_6659_fd93;
        (product >> 64) as u64 ^ product as u64
    })
}

#[inline]
fn tag_of(hash: u64) -> u32 {
    (hash >> 32) as u32 | 1
}

impl<const N: usize> Default for HashTable<N> {
    fn default() -> HashTable<N> {
        HashTable {
            tags: vec![0; 16],
            slots: vec![([0; N], 0); 16],
            len: 0,
        }
    }
}

impl<const N: usize> HashTable<N> {
    /// Adds a key that the table does not contain, with its value.
    pub fn insert(&mut self, key: [u64; N], value: u32) {
        if 4 * (self.len + 1) > self.slots.len() {
            let size = 2 * self.slots.len();
            let tags = std::mem::replace(&mut self.tags, vec![0; size]);
            let slots = std::mem::replace(&mut self.slots, vec![([0; N], 0); size]);
            self.len = 0;
            for ((key, value), _) in slots.into_iter().zip(tags).filter(|(_, tag)| *tag != 0) {
                self.insert(key, value);
            }
        }
        let mask = self.slots.len() - 1;
        let hash = hash(&key);
        let mut at = hash as usize & mask;
        while self.tags[at] != 0 {
            at = (at + 1) & mask;
        }
        self.tags[at] = tag_of(hash);
        self.slots[at] = (key, value);
        self.len += 1;
    }

    /// Returns the value of a key; `None` if the table does not contain it.
    #[inline]
    pub fn get(&self, key: &[u64; N]) -> Option<u32> {
        let mask = self.tags.len() - 1;
        let hash = hash(key);
        let tag = tag_of(hash);
        let mut at = hash as usize & mask;
        loop {
            let found = self.tags[at];
            if found == 0 {
                return None;
            }
            if found == tag && self.slots[at].0 == *key {
                return Some(self.slots[at].1);
            }
            at = (at + 1) & mask;
        }
    }
}
