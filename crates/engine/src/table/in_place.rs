//! Places of a table's parts, for code that looks up in place, without a call.
//!
//! Slices only, borrowed from the table, so that they live no longer than the table stays as it is. Their contents, and the way of a
//! lookup through them, are described where they are kept: [`super::keymap`] and [`super::lpm32`]. It does not know who
//! looks up, nor tables where a hit has other effects than a count or that need more than a few loads.

use super::Table;
use super::keymap::Buckets;
use super::lpm32::Prefixes;
use crate::cells::CounterData;

/// The parts of a table.
#[derive(Clone, Copy, Debug)]
pub struct InPlace<'a> {
    /// The lookup from the key to the number of an entry; 0 is none.
    pub matcher: InPlaceMatcher<'a>,
    /// By entry (0 among them): the number of its record.
    pub record_of_entry: &'a [u32],
    /// The records one after the other: the position of the action in the low half of a limb, then its arguments.
    pub records: &'a [u64],
    /// Limbs of a record.
    pub stride: usize,
    /// The caller has to count the entries that it finds ([`Table::counters_mut`]).
    pub counts: bool,
}

/// The lookup from a key to the number of an entry.
#[derive(Clone, Copy, Debug)]
pub enum InPlaceMatcher<'a> {
    /// There is no key, and no entry: all packets get the default action.
    Keyless,
    /// The whole key to the entry, packed if it can be ([`super::Packing::of_exact`]).
    Exact(Buckets<'a>),
    /// The key is the place of the entry, 0 for none; so are keys beyond the end. There is a place.
    Direct(&'a [u32]),
    /// The field matched by prefix to the entry, under the root that the exact fields lead to if there are any.
    Prefixes {
        /// The key, zero in the field matched by prefix, to the root; without exact fields it is root 0.
        exact: Option<Buckets<'a>>,
        /// The prefixes under the roots.
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
