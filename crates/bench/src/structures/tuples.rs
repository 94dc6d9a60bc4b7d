//! Ternary match by tuple space search: a hash table per mask, those with the highest priorities first.

use super::hash::HashTable;

struct Tuple<const N: usize> {
    mask: [u64; N],
    highest_priority: i32,
    table: HashTable<N>,
}

/// Entries of `N` words under masks. Entries that overlap must have different priorities.
pub struct Tuples<const N: usize> {
    tuples: Vec<Tuple<N>>,
    priorities: Vec<i32>,
}

impl<const N: usize> Default for Tuples<N> {
    fn default() -> Tuples<N> {
        Tuples {
            tuples: Vec::new(),
            priorities: Vec::new(),
        }
    }
}

impl<const N: usize> Tuples<N> {
    /// Adds an entry. Entries are numbered from 0 in the order in which they are added.
    pub fn insert(&mut self, value: [u64; N], mask: [u64; N], priority: i32) {
        let number = self.priorities.len() as u32;
        self.priorities.push(priority);
        let at = self.tuples.iter().position(|t| t.mask == mask);
        let at = at.unwrap_or_else(|| {
            self.tuples.push(Tuple {
                mask,
                highest_priority: priority,
                table: HashTable::default(),
            });
            self.tuples.len() - 1
        });
        let tuple = &mut self.tuples[at];
        tuple.table.insert(value, number);
        tuple.highest_priority = tuple.highest_priority.max(priority);
        self.tuples.sort_by_key(|t| -t.highest_priority);
    }

    /// Returns the number of the matching entry with the highest priority; `None` if none matches.
    #[inline]
    pub fn lookup(&self, key: &[u64; N]) -> Option<u32> {
        let mut best = None;
        let mut best_priority = i32::MIN;
        for tuple in &self.tuples {
            if tuple.highest_priority <= best_priority {
                break;
            }
            let masked = std::array::from_fn(|i| key[i] & tuple.mask[i]);
            if let Some(number) = tuple.table.get(&masked) {
                let priority = self.priorities[number as usize];
                if priority > best_priority {
                    (best, best_priority) = (Some(number), priority);
                }
            }
        }
        best
    }
}
