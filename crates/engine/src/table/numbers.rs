//! A hash set of numbers whose keys lie elsewhere: an index of entries by the keys that identify them, in few bytes.
//!
//! It grows and shrinks without ever stopping: a table that is full is emptied into one twice its size, and one that is nearly empty into
//! one half its size, a few slots at a time, by the updates that follow, and until then both are searched.

/// A free slot.
const FREE: u32 = 0;

/// A slot of the former table whose number was removed or moved; the search for numbers behind it continues past it.
const DEAD: u32 = u32::MAX;

/// The most slots of the former table that an update examines, and the most numbers that it moves. Two slots would
/// suffice to finish in time when the set grows, 32 when it shrinks.
const SLOTS_PER_UPDATE: usize = 512;
const MOVES_PER_UPDATE: usize = 16;

/// The number of slots from which on a table shrinks when it has become nearly empty.
const LARGE: usize = 1 << 12;
const SHRUNK_PART: usize = 16;

/// A set of numbers from 1 to `u32::MAX - 1`.
#[derive(Clone, Debug)]
pub struct NumberSet {
    /// The slots, a power of two of them, with open addressing and linear probing.
    slots: Vec<u32>,
    len: usize,
    /// The former table while it is being emptied; empty at other times.
    former: Vec<u32>,
    /// The number of slots of the former table that are emptied.
    emptied: usize,
}

const INITIAL_SLOTS: usize = 8;

impl Default for NumberSet {
    /// Makes a set that contains no numbers.
    fn default() -> NumberSet {
        NumberSet {
            slots: vec![FREE; INITIAL_SLOTS],
            len: 0,
            former: Vec::new(),
            emptied: 0,
        }
    }
}

impl NumberSet {
    /// Returns how many bytes the set occupies on the heap.
    pub fn heap_bytes(&self) -> usize {
        4 * (self.slots.capacity() + self.former.capacity())
    }

    /// Returns the number with this hash for which `is_it` returns true, or `None` if there is none.
    #[inline]
    pub fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let found = probe(&self.slots, hash, &is_it)
            .ok()
            .map(|at| self.slots[at]);
        if found.is_some() || self.former.is_empty() {
            return found;
        }
        let at = probe(&self.former, hash, &is_it).ok()?;
        Some(self.former[at])
    }

    /// Adds a number that the set does not contain. `hash_of` returns the hash of any number.
    pub fn insert(&mut self, number: u32, hash_of: impl Fn(u32) -> u64) {
        if 4 * (self.len + 1) > 3 * self.slots.len() {
            // All of a former table has moved by now: it was half as large, and several slots moved per insertion.
            debug_assert!(self.former.is_empty());
            self.resize(2 * self.slots.len());
        }
        self.empty_some(&hash_of);
        self.place(number, hash_of(number));
        self.len += 1;
    }

    /// Removes a number that the set contains. `hash_of` returns the hash of any number.
    pub fn remove(&mut self, number: u32, hash_of: impl Fn(u32) -> u64) {
        let slots = self.slots.len();
        if slots > LARGE && self.len < slots / SHRUNK_PART && self.former.is_empty() {
            self.resize(slots / 2);
        }
        self.empty_some(&hash_of);
        let hash = hash_of(number);
        if let Ok(at) = probe(&self.slots, hash, |other| other == number) {
            self.close_gap(at, hash_of);
            self.len -= 1;
        } else if !self.former.is_empty()
            && let Ok(at) = probe(&self.former, hash, |other| other == number)
        {
            self.former[at] = DEAD;
            self.len -= 1;
        }
    }

    fn resize(&mut self, slots: usize) {
        self.former = std::mem::replace(&mut self.slots, vec![FREE; slots]);
        self.emptied = 0;
    }

    fn empty_some(&mut self, hash_of: &impl Fn(u32) -> u64) {
        if self.former.is_empty() {
            return;
        }
        let end = (self.emptied + SLOTS_PER_UPDATE).min(self.former.len());
        let mut moved = 0;
        while self.emptied < end && moved < MOVES_PER_UPDATE {
            let at = self.emptied;
            let number = self.former[at];
            // Free slots stay free, so that searches end there.
            if number != FREE && number != DEAD {
                self.former[at] = DEAD;
                self.place(number, hash_of(number));
                moved += 1;
            }
            self.emptied += 1;
        }
        if self.emptied == self.former.len() {
            self.former = Vec::new();
        }
    }

    fn place(&mut self, number: u32, hash: u64) {
        let at = probe(&self.slots, hash, |_| false).unwrap_or_else(|free| free);
        self.slots[at] = number;
    }

    /// Frees the slot `gap`, and moves later numbers back, so that a search for any of them, which begins at the slot
    /// of its hash, does not end at the free slot. `hash_of` returns the hash of a number's key.
    fn close_gap(&mut self, mut gap: usize, hash_of: impl Fn(u32) -> u64) {
        let mask = self.slots.len() - 1;
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            let number = self.slots[at];
            if number == FREE {
                break;
            }
            let home = hash_of(number) as usize & mask;
            let distance = |from: usize| at.wrapping_sub(from) & mask;
            if distance(home) >= distance(gap) {
                self.slots[gap] = number;
                gap = at;
            }
        }
        self.slots[gap] = FREE;
    }
}

/// Finds the slot of the number for which `is_it` returns true, beginning at the slot of `hash`. If there is none,
/// returns as an error the free slot in which it would be inserted.
#[inline]
fn probe(slots: &[u32], hash: u64, is_it: impl Fn(u32) -> bool) -> Result<usize, usize> {
    let mask = slots.len() - 1;
    let mut at = hash as usize & mask;
    loop {
        match slots[at] {
            FREE => return Err(at),
            DEAD => {}
            number if is_it(number) => return Ok(at),
            _ => {}
        }
        at = (at + 1) & mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn shrinks_when_it_is_nearly_empty() {
        let hash_of = |n: u32| super::super::keymap::hash(&[n.into()]);
        let mut set = NumberSet::default();
        let has = |set: &NumberSet, n: u32| set.find(hash_of(n), |other| other == n).is_some();
        for _ in 0..2 {
            for n in 1..=100_000 {
                set.insert(n, hash_of);
            }
            let full = set.heap_bytes();
            for n in 1..=100_000 {
                set.remove(n, hash_of);
                assert!(!has(&set, n));
                assert!(n == 100_000 || has(&set, n + (100_000 - n).div_ceil(2)));
                if n % 1009 == 0 {
                    let present = (1..=100_000).filter(|&n| has(&set, n)).count();
                    assert_eq!((present, set.len), (100_000 - n as usize, present));
                }
            }
            assert!(
                set.heap_bytes() <= full / 16,
                "{} of {full}",
                set.heap_bytes()
            );
        }
    }

    proptest! {
        #[test]
        fn behaves_like_a_set(ops in prop::collection::vec((any::<bool>(), 1u32..200), 0..600), few in any::<bool>()) {
            // With few hashes everything collides.
            let hash_of = |n: u32| if few { u64::from(n % 7) } else { super::super::keymap::hash(&[n.into()]) };
            let mut set = NumberSet::default();
            let mut model = BTreeSet::new();
            for (insert, number) in ops {
                let known = set.find(hash_of(number), |n| n == number);
                prop_assert_eq!(known.is_some(), model.contains(&number));
                match (insert, known) {
                    (true, None) => {
                        set.insert(number, hash_of);
                        model.insert(number);
                    }
                    (false, Some(_)) => {
                        set.remove(number, hash_of);
                        model.remove(&number);
                    }
                    _ => {}
                }
                for n in 1..200 {
                    prop_assert_eq!(set.find(hash_of(n), |other| other == n).is_some(), model.contains(&n));
                }
            }
        }
    }
}
