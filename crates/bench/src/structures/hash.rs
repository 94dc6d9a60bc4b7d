//! A hash table of keys of a few words: open addressing, linear probing, at most half full.

/// Value of a free slot.
const FREE: u32 = u32::MAX;

/// From keys of `N` words to numbers below `u32::MAX`.
pub struct HashTable<const N: usize> {
    slots: Vec<([u64; N], u32)>,
    len: usize,
}

#[inline]
fn hash<const N: usize>(key: &[u64; N]) -> usize {
    let mixed = key.iter().fold(0x51_7cc1_b727_220a_u64, |hash, word| {
        let product = u128::from(hash ^ word) * 0xd6e8_feb8_6659_fd93;
        (product >> 64) as u64 ^ product as u64
    });
    mixed as usize
}

impl<const N: usize> Default for HashTable<N> {
    fn default() -> HashTable<N> {
        HashTable {
            slots: vec![([0; N], FREE); 16],
            len: 0,
        }
    }
}

impl<const N: usize> HashTable<N> {
    /// Adds a key that is not there.
    pub fn insert(&mut self, key: [u64; N], value: u32) {
        if 2 * (self.len + 1) > self.slots.len() {
            let grown = vec![([0; N], FREE); 2 * self.slots.len()];
            let old = std::mem::replace(&mut self.slots, grown);
            self.len = 0;
            for (key, value) in old.into_iter().filter(|(_, value)| *value != FREE) {
                self.insert(key, value);
            }
        }
        let mask = self.slots.len() - 1;
        let mut at = hash(&key) & mask;
        while self.slots[at].1 != FREE {
            at = (at + 1) & mask;
        }
        self.slots[at] = (key, value);
        self.len += 1;
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: &[u64; N]) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = hash(key) & mask;
        loop {
            let (stored, value) = &self.slots[at & mask];
            if *value == FREE {
                return None;
            }
            if stored == key {
                return Some(*value);
            }
            at += 1;
        }
    }
}
