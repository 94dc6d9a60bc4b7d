//! Notes of the prefetch function: for each table, and for each array of cells, the keys that packets will probably look up.
//!
//! A list has room for one key of each packet of a part of a burst. A key that does not fit is not written down, and is not prefetched for.

use smallvec::SmallVec;

/// A list as machine code sees it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    /// The address of the next limb.
    pub next: *mut u64,
    /// The end of the list's memory.
    pub end: *mut u64,
}

/// The number of lists up to which a burst needs no allocation for them.
const FEW_LISTS: usize = 16;

/// All lists, one behind the other.
pub(crate) struct Notes {
    limbs: Vec<u64>,
    lists: SmallVec<[List; FEW_LISTS]>,
    /// For each list, where it begins and ends among the limbs.
    places: SmallVec<[(usize, usize); FEW_LISTS]>,
}

impl Notes {
    /// Makes one list for each of `capacities`, with room for that number of limbs.
    pub fn new(capacities: impl Iterator<Item = usize>) -> Notes {
        let mut end = 0;
        let mut place = |capacity| {
            let start = end;
            end += capacity;
            (start, end)
        };
        let places = capacities.map(&mut place).collect();
        Notes {
            limbs: vec![0; end],
            lists: SmallVec::new(),
            places,
        }
    }

    /// Returns true if none of the lists has any capacity.
    pub fn is_empty(&self) -> bool {
        self.limbs.is_empty()
    }

    /// Empties all lists and returns the address of the first for machine code, which may write to the lists
    /// until another method of `self` is called.
    pub fn begin(&mut self) -> *mut List {
        let first = self.limbs.as_mut_ptr();
        self.lists.clear();
        let at = |place: usize| first.wrapping_add(place);
        let lists = self.places.iter().map(|&(start, end)| List {
            next: at(start),
            end: at(end),
        });
        self.lists.extend(lists);
        self.lists.as_mut_ptr()
    }

    /// Returns the limbs that have been written to the list with the number `number`.
    pub fn list(&self, number: usize) -> &[u64] {
        let (start, end) = self.places[number];
        &self.limbs[start..self.used(number).min(end)]
    }

    /// Appends a limb to the list with the number `number`; does nothing if the list is full.
    pub fn push(&mut self, number: usize, limb: u64) {
        let at = self.used(number);
        if at < self.places[number].1 {
            self.limbs[at] = limb;
            self.lists[number].next = self.lists[number].next.wrapping_add(1);
        }
    }

    /// Returns the position, in the memory of all lists, at which the next limb of a list goes.
    fn used(&self, number: usize) -> usize {
        (self.lists[number].next as usize - self.limbs.as_ptr() as usize) / size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_bounded() {
        let mut notes = Notes::new([2, 0, 3].into_iter());
        for _ in 0..2 {
            notes.begin();
            for limb in 1..=4 {
                (0..3).for_each(|list| notes.push(list, 10 * list as u64 + limb));
            }
            assert_eq!(notes.list(0), [1, 2]);
            assert_eq!(notes.list(1), [0_u64; 0]);
            assert_eq!(notes.list(2), [21, 22, 23]);
        }
    }
}
