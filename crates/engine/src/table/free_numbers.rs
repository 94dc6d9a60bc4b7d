//! The numbers below an end that are free. The lowest is given first, so that those in use stay low and the end can come down when many
//! are freed; and the memory of what is indexed by number shrinks with it, a part at a time.

/// The bytes of unused capacity that a vector keeps.
const KEPT_BYTES: usize = 1 << 16;

/// The most bytes of a vector that are released at once.
const GIVEN_BACK_BYTES: usize = 1 << 20;

/// The set of free numbers: a bit for each number below the end.
#[derive(Clone, Debug, Default)]
pub(super) struct FreeNumbers {
    words: Vec<u64>,
    count: usize,
    /// The first word that may have a bit set.
    first: usize,
}

impl FreeNumbers {
    /// Removes and returns the lowest free number; `None` if no number is free.
    pub fn take(&mut self) -> Option<u32> {
        if self.count == 0 {
            return None;
        }
        let from = self.words.get(self.first..)?;
        self.first += from.iter().position(|&word| word != 0)?;
        let word = &mut self.words[self.first];
        let bit = word.trailing_zeros();
        *word &= *word - 1;
        self.count -= 1;
        Some(64 * self.first as u32 + bit)
    }

    /// Removes `number` from the free numbers; returns false if it is not free.
    pub fn take_this(&mut self, number: u32) -> bool {
        let free = self.has(number as usize);
        if free {
            self.words[number as usize / 64] &= !(1 << (number % 64));
            self.count -= 1;
        }
        free
    }

    /// Adds a number that is no longer in use to the free numbers.
    pub fn put(&mut self, number: u32) {
        let at = number as usize / 64;
        if self.words.len() <= at {
            self.words.resize(at + 1, 0);
        }
        self.words[at] |= 1 << (number % 64);
        self.count += 1;
        self.first = self.first.min(at);
    }

    /// Lowers `end`, from which on all numbers are unused, as long as the number directly below it is free too.
    /// Forgets these free numbers, and returns the new end.
    pub fn lower(&mut self, end: usize) -> usize {
        let mut lowered = end;
        while lowered > 0 {
            if lowered.is_multiple_of(64) && self.words.get(lowered / 64 - 1) == Some(&u64::MAX) {
                lowered -= 64;
            } else if self.has(lowered - 1) {
                lowered -= 1;
                self.words[lowered / 64] &= !(1 << (lowered % 64));
            } else {
                break;
            }
        }
        if lowered < end {
            self.count -= end - lowered;
            self.words.truncate(lowered.div_ceil(64));
            self.first = self.first.min(self.words.len());
        }
        lowered
    }

    fn has(&self, number: usize) -> bool {
        let word = self.words.get(number / 64).copied().unwrap_or(0);
        word >> (number % 64) & 1 != 0
    }

    /// Returns how many bytes the free numbers occupy on the heap.
    pub fn heap_bytes(&self) -> usize {
        8 * self.words.capacity()
    }
}

/// Returns a part of a vector's unused memory to the allocator, after the vector has become shorter; returns true if
/// there is more. Takes little time, since no item is moved.
pub(crate) fn shrink<T>(items: &mut Vec<T>) -> bool {
    let (kept, most) = (
        KEPT_BYTES / size_of::<T>().max(1),
        GIVEN_BACK_BYTES / size_of::<T>().max(1),
    );
    let spare = items.capacity() - items.len();
    if spare <= items.len() + 2 * kept {
        return false;
    }
    items.shrink_to((items.len() + kept).max(items.capacity().saturating_sub(most)));
    items.capacity() - items.len() > items.len() + 2 * kept
}

/// The most items that [`forget_last`] removes.
const FORGOTTEN_AT_ONCE: usize = 64;

/// Removes items for which `is_nothing` holds from the end of the vector, at most [`FORGOTTEN_AT_ONCE`], and returns
/// unused memory to the allocator.
pub(crate) fn forget_last<T>(items: &mut Vec<T>, is_nothing: impl Fn(&T) -> bool) {
    let last = items.iter().rev().take(FORGOTTEN_AT_ONCE);
    let nothing = last.take_while(|item| is_nothing(item)).count();
    items.truncate(items.len() - nothing);
    shrink(items);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn behaves_like_a_set(ops in prop::collection::vec(any::<Option<u16>>(), 0..2000)) {
            let (mut free, mut used, mut end) = (FreeNumbers::default(), BTreeSet::new(), 0);
            for op in ops {
                match op {
                    Some(which) if !used.is_empty() => {
                        let number = *used.iter().nth(usize::from(which) % used.len()).unwrap();
                        used.remove(&number);
                        free.put(number);
                        end = free.lower(end);
                    }
                    _ => {
                        let lowest = (0..end as u32).find(|n| !used.contains(n));
                        prop_assert_eq!(free.take(), lowest);
                        let number = lowest.unwrap_or(end as u32);
                        end = end.max(number as usize + 1);
                        used.insert(number);
                    }
                }
                prop_assert!(used.last().is_none_or(|&last| (last as usize) < end));
                prop_assert_eq!(free.count, end - used.len());
            }
        }
    }

    #[test]
    fn a_vector_gives_back_its_spare_memory_in_parts() {
        for capacity in [
            0,
            1 << 10,
            1 << 14,
            40_000,
            1 << 16,
            1 << 17,
            200_000,
            1 << 20,
        ] {
            let mut items = vec![0u64; capacity];
            items.clear();
            let mut steps = 0;
            loop {
                let before = items.capacity();
                let more = shrink(&mut items);
                assert!(8 * (before - items.capacity()) <= GIVEN_BACK_BYTES);
                assert!(!more || items.capacity() < before, "{capacity}");
                steps += 1;
                if !more {
                    break;
                }
            }
            assert!(8 * items.capacity() <= 2 * KEPT_BYTES, "{capacity}");
            assert!(steps <= 1 + 8 * capacity / GIVEN_BACK_BYTES);
            assert!(!shrink(&mut items));
        }
    }
}
