//! A map from a narrow key to entries that is an array: for tables with one exact field that are declared for a large
//! part of all values of the field. A lookup is one load, from memory that is small.

use ir::{Key, Table};

/// The largest width of the field.
const MOST_BITS: u32 = 16;

/// The most values that the field may have for each entry that the table is declared for.
const VALUES_PER_ENTRY: u64 = 4;

/// Returns true if a table has a single, narrow exact field and is declared for so many entries that an array indexed
/// by the key is worth its memory.
pub fn is_direct(table: &Table) -> bool {
    match &table.keys[..] {
        [Key { kind, width, .. }] if kind.is_exact() => {
            *width <= MOST_BITS && table.size.saturating_mul(VALUES_PER_ENTRY) >= 1 << *width
        }
        _ => false,
    }
}

/// For each key, the number of its entry, 0 if it has none. Keys beyond the end have none.
#[derive(Clone, Debug)]
pub struct DirectMap {
    /// Never empty.
    entries: Vec<u32>,
}

impl DirectMap {
    pub fn new() -> DirectMap {
        DirectMap { entries: vec![0] }
    }

    /// Returns the numbers of the entries, indexed by key, for code that looks keys up without a call. The slice has
    /// at least one element; 0 stands for no entry.
    #[inline]
    pub fn in_place(&self) -> &[u32] {
        &self.entries
    }

    /// Returns the number of the entry with this key; 0 if there is none.
    #[inline]
    pub fn get(&self, key: u64) -> u32 {
        self.entries.get(key as usize).copied().unwrap_or(0)
    }

    /// Sets the number of the entry with this key; 0 removes it.
    pub fn set(&mut self, key: u64, entry: u32) {
        let at = key as usize;
        if at >= self.entries.len() {
            self.entries.resize((at + 1).next_power_of_two(), 0);
        }
        self.entries[at] = entry;
    }

    /// Returns how many bytes the array occupies on the heap.
    pub fn heap_bytes(&self) -> usize {
        size_of::<u32>() * self.entries.capacity()
    }
}
