//! Places of a table's parts, for code that looks up in place, without a call.
//!
//! Slices only, borrowed from the table, so that they live no longer than the table stays as it is. Their contents, and the way of a
//! lookup through them, are described where they are kept: [`super::keymap`] and [`super::lpm32`]. It does not know who
//! looks up, nor tables where a hit has other effects than a count or that need more than a few loads.

use super::Table;
use super::keymap::Buckets;
use super::lpm32::Prefixes;
use crate::cells::CounterData;

/// The parts of a table that code needs which looks up keys itself.
#[derive(Clone, Copy, Debug)]
pub struct InPlace<'a> {
    /// How a key leads to the number of an entry; 0 is no entry.
    pub matcher: InPlaceMatcher<'a>,
    /// The number of each entry's record, by entry; element 0 belongs to the default action.
    pub record_of_entry: &'a [u32],
    /// The records, one after the other: the position of the action in the low half of a limb, then the action's
    /// arguments.
    pub records: &'a [u64],
    /// The number of limbs of a record.
    pub stride: usize,
    /// True if the caller has to count the entries that it finds ([`Table::counters_mut`]).
    pub counts: bool,
}

/// How a key leads to the number of an entry.
#[derive(Clone, Copy, Debug)]
pub enum InPlaceMatcher<'a> {
    /// The table has no key and so no entry: all packets get the default action.
    Keyless,
    /// A hash map from the whole key, packed if possible ([`super::Packing::of_exact`]).
    Exact(Buckets<'a>),
    /// An array of entries indexed by the key; 0 is no entry. Keys beyond the end have none. It is not empty.
    Direct(&'a [u32]),
    /// A trie for the field that is matched by prefix; the exact fields, if any, select its root.
    Prefixes {
        /// A map from the key, with zeros in the prefix field, to the root; without exact fields it is root 0.
        exact: Option<Buckets<'a>>,
        /// The tries.
        prefixes: Prefixes<'a>,
    },
}

impl Table {
    /// Returns the parts of the table from which generated code can look up a key without a call. Returns `None`
    /// while a hash map in it grows, if the lookup needs another structure (for ternary, range, optional and selector
    /// fields, and long prefixes), and if the table has idle timeouts.
    pub fn in_place(&self) -> Option<InPlace<'_>> {
        use super::Matcher;
        let matcher = match &self.matcher {
            Matcher::Keyless => InPlaceMatcher::Keyless,
            Matcher::Exact(map, None) | Matcher::Packed(map, _) => {
                InPlaceMatcher::Exact(map.in_place()?)
            }
            Matcher::Direct(map) => InPlaceMatcher::Direct(map.in_place()),
            Matcher::Lpm32(table) => {
                let (exact, prefixes) = table.in_place()?;
                InPlaceMatcher::Prefixes { exact, prefixes }
            }
            _ => return None,
        };
        let (record_of_entry, records) = self.records.in_place();
        (!self.has_timeout).then_some(InPlace {
            matcher,
            record_of_entry,
            records,
            stride: self.stride,
            counts: self.has_counter,
        })
    }

    /// Returns the cells of the direct counter, indexed by entry number. The cell of number 0 is never read. The list
    /// is empty if the table has no direct counter.
    pub fn counters_mut(&mut self) -> &mut [CounterData] {
        &mut self.counters
    }
}
