//! Ternary, range and optional match: tuple space search (Srinivasan, Suri and Varghese 1999) with priority pruning.
//!
//! Entries with equal masks form a *tuple*, in which a hash finds those that agree with the key. Tuples are visited in the
//! order of the best entry in each, so the search ends as soon as no later tuple can hold a better one. The part of a tuple that is visited
//! first lies together with that of the others: the mask and a [`Sieve`], which tells of most keys that they are not there. A tuple's
//! hash is of the limbs of the packed key only that its mask has bits in.
//!
//! A range is the union of a few prefixes, and the entry is there once for each (an *item*); so ten thousand ranges are found by
//! as many hashes as the field has bits. Only where that would be more than [`MOST_ITEMS`] items, a range takes part with the leading
//! bits that its bounds share, and is checked in full on the items found.

use super::keymap::KeyMap;
use super::packing::Packing;
use super::shape::{KeyShape, Pattern};
use super::sieve::{self, Sieve};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// The most items of an entry.
pub const MOST_ITEMS: usize = 64;

/// The rank of an entry: first the one with the highest priority, then the one inserted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    inverse_priority: u32,
    sequence: u64,
}

impl Rank {
    /// Makes the rank of an entry with this priority and this place in the order of insertion. Of the entries that
    /// match a key, the one with the lowest rank wins: that of the highest priority, and of these the one inserted
    /// first.
    pub fn new(priority: i32, sequence: u64) -> Rank {
        Rank {
            // Flipping the sign bit orders like the signed number; complementing puts the highest first.
            inverse_priority: !((priority as u32) ^ (1 << 31)),
            sequence,
        }
    }
}

/// A range that the hash map cannot check: the limbs of the key from `offset` on must lie between `low` and `high`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeCheck {
    /// The first limb in the key.
    pub offset: usize,
    /// The lowest value, least significant limb first.
    pub low: Box<[u64]>,
    /// The highest value, likewise.
    pub high: Box<[u64]>,
}

impl RangeCheck {
    fn holds(&self, key: &[u64]) -> bool {
        let field = &key[self.offset..self.offset + self.low.len()];
        self.low.iter().rev().le(field.iter().rev())
            && field.iter().rev().le(self.high.iter().rev())
    }
}

/// A tuple: the items with one mask, in a hash map.
#[derive(Clone, Debug)]
struct Tuple {
    /// The limbs of the packed mask that are not zero, each with its position.
    parts: SmallVec<[(u32, u64); 4]>,
    /// A map from those limbs of a masked key to the best item that has them.
    heads: KeyMap,
    /// The ranks of the entries that have items here, each with the number of its items.
    ranks: BTreeMap<Rank, u32>,
}

impl Tuple {
    fn new(mask: &[u64]) -> Tuple {
        let parts: SmallVec<[(u32, u64); 4]> = (mask.iter().zip(0u32..))
            .filter(|(bits, _)| **bits != 0)
            .map(|(&bits, at)| (at, bits))
            .collect();
        Tuple {
            heads: KeyMap::new(parts.len()),
            parts,
            ranks: BTreeMap::new(),
        }
    }

    /// Returns the best item that matches a packed key under the tuple's mask, or `None` if there is none.
    #[inline]
    fn head(&self, key: &[u64]) -> Option<u32> {
        match *self.parts.as_slice() {
            [(i, m)] => self.heads.get_1(key[i as usize] & m),
            [(i, m), (j, n)] => (self.heads).get_2(key[i as usize] & m, key[j as usize] & n),
            ref parts => (self.heads).get_with(|| parts.iter().map(|&(i, m)| key[i as usize] & m)),
        }
    }

    /// Returns the hash in the sieve of a key of the tuple's map, given by its limbs.
    fn place(&self, limbs: &[u64]) -> u64 {
        let parts = self.parts.iter().zip(limbs);
        parts.fold(0, |sum, (&(i, _), &limb)| {
            sum.wrapping_add(sieve::share(i as usize, limb))
        })
    }

    /// Makes a sieve that contains all keys of the tuple's map.
    fn sieve(&self) -> Sieve {
        let mut sieve = Sieve::new(self.heads.len());
        for key in self.heads.keys() {
            sieve.insert(self.place(key));
        }
        sieve
    }

    /// Returns those limbs of a packed value that the tuple's mask covers.
    fn limbs_of(&self, value: &[u64]) -> SmallVec<[u64; 4]> {
        self.parts.iter().map(|&(i, _)| value[i as usize]).collect()
    }
}

/// What a lookup needs first of a tuple that has items.
#[derive(Clone, Debug)]
struct Visit {
    /// The rank of the tuple's best item.
    best: Rank,
    tuple: u32,
    /// The first limbs of the packed mask.
    mask: [u64; sieve::LIMBS],
    sieve: Sieve,
}

impl Visit {
    /// Returns true if the tuple may have an item that matches a packed key that begins with the limbs `key`; false
    /// if it certainly has none.
    #[inline]
    fn may_hold<const N: usize>(&self, key: &[u64; N]) -> bool {
        let mut place = 0u64;
        for (i, (limb, mask)) in key.iter().zip(&self.mask).enumerate() {
            place = place.wrapping_add(sieve::share(i, limb & mask));
        }
        self.sieve.may_hold(place)
    }
}

/// An item of an entry: one of its values, in a list of items with equal mask and value, the best first.
#[derive(Clone, Copy, Debug)]
struct Item {
    rank: Rank,
    entry: u32,
    next: Option<NextItem>,
    /// The number of its range checks plus one; 0 if there are none.
    checks: u32,
}

/// The number of the next item plus one, so that `None` takes no memory.
type NextItem = std::num::NonZeroU32;

fn next_item(item: u32) -> Option<NextItem> {
    NextItem::new(item.wrapping_add(1))
}

/// A value and a mask with the limbs of a key.
#[derive(Clone, Debug)]
struct Cover {
    value: Vec<u64>,
    mask: Vec<u64>,
}

/// The entries of a table that match under masks and have priorities: tuple space search.
#[derive(Clone, Debug)]
pub struct TupleSpace {
    shape: KeyShape,
    packing: Packing,
    /// A map from the packed mask to the tuple.
    by_mask: KeyMap,
    tuples: Vec<Tuple>,
    free_tuples: Vec<u32>,
    /// The tuples that have items, first the one with the best item.
    order: Vec<Visit>,
    items: Vec<Item>,
    free_items: Vec<u32>,
    checks: Vec<Box<[RangeCheck]>>,
    free_checks: Vec<u32>,
}

impl TupleSpace {
    /// Makes an empty tuple space for keys of this shape.
    pub fn new(shape: &KeyShape) -> TupleSpace {
        let packing = Packing::new(shape);
        TupleSpace {
            shape: shape.clone(),
            by_mask: KeyMap::new(packing.limbs()),
            packing,
            tuples: Vec::new(),
            free_tuples: Vec::new(),
            order: Vec::new(),
            items: Vec::new(),
            free_items: Vec::new(),
            checks: Vec::new(),
            free_checks: Vec::new(),
        }
    }

    /// Returns how many bytes the tuple space occupies on the heap.
    pub fn heap_bytes(&self) -> usize {
        let checks = self.checks.iter().flat_map(|checks| checks.iter());
        let tuple = |t: &Tuple| t.heads.heap_bytes() + t.ranks.len() * (size_of::<Rank>() + 4);
        self.items.capacity() * size_of::<Item>()
            + self.tuples.capacity() * size_of::<Tuple>()
            + self.tuples.iter().map(tuple).sum::<usize>()
            + self.order.capacity() * size_of::<Visit>()
            + self
                .order
                .iter()
                .map(|v| v.sieve.heap_bytes())
                .sum::<usize>()
            + checks
                .map(|c| size_of::<RangeCheck>() + 16 * c.low.len())
                .sum::<usize>()
    }

    /// Returns the best entry that matches a key, or `None` if none does.
    #[inline]
    pub fn lookup(&self, key: &[u64]) -> Option<u32> {
        self.packing
            .pack(key, |packed| self.lookup_packed(key, packed))
    }

    /// Returns the best entry that matches a key, given both unpacked and packed, or `None` if none does. The unpacked
    /// key is used only in a table with ranges.
    #[inline]
    pub(super) fn lookup_packed(&self, key: &[u64], packed: &[u64]) -> Option<u32> {
        match *packed {
            [a] => self.visit(key, packed, &[a]),
            [a, b] => self.visit(key, packed, &[a, b]),
            [a, b, c] => self.visit(key, packed, &[a, b, c]),
            [a, b, c, d, ..] => self.visit(key, packed, &[a, b, c, d]),
            [] => None,
        }
    }

    /// Returns the best entry that matches a key whose packed form begins with the limbs `first`, or `None` if none
    /// does.
    fn visit<const N: usize>(&self, key: &[u64], packed: &[u64], first: &[u64; N]) -> Option<u32> {
        let mut best: Option<(Rank, u32)> = None;
        for visit in &self.order {
            if best.is_some_and(|(rank, _)| rank < visit.best) {
                break;
            }
            if !visit.may_hold(first) {
                continue;
            }
            let mut next = self.tuples[visit.tuple as usize].head(packed);
            while let Some(item) = next {
                let item = &self.items[item as usize];
                if best.is_some_and(|(rank, _)| rank < item.rank) {
                    break;
                }
                if item.checks == 0 || self.holds(item.checks, key) {
                    best = Some((item.rank, item.entry));
                    break;
                }
                next = item.next.map(|next| next.get() - 1);
            }
        }
        best.map(|(_, entry)| entry)
    }

    fn holds(&self, checks: u32, key: &[u64]) -> bool {
        let checks = &self.checks[checks as usize - 1];
        checks.iter().all(|check| check.holds(key))
    }

    /// Returns the entry with this pattern of values, masks and ranges for which `is_it` returns true; `None` if
    /// there is none.
    pub(super) fn find(&self, pattern: &Pattern, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let (covers, _) = self.covers(pattern);
        // The entry is there for every cover; one will do.
        let (tuple, value) = self.place(covers.first()?)?;
        let mut next = self.tuples[tuple as usize].heads.get(&value);
        while let Some(item) = next {
            let item = &self.items[item as usize];
            if is_it(item.entry) {
                return Some(item.entry);
            }
            next = item.next.map(|next| next.get() - 1);
        }
        None
    }

    /// Adds an entry. A range in its pattern is stored as several prefixes, so the entry gets one item for each pair
    /// of value and mask that is needed to cover the pattern.
    pub(super) fn insert(&mut self, pattern: &Pattern, rank: Rank, entry: u32) {
        let (covers, checks) = self.covers(pattern);
        let checks = match checks.is_empty() {
            true => 0,
            false => self.add_checks(checks.into()),
        };
        for cover in &covers {
            let item = Item {
                rank,
                entry,
                next: None,
                checks,
            };
            self.insert_item(cover, item);
        }
    }

    /// Removes an entry that the tuple space contains, with all its items.
    pub(super) fn remove(&mut self, pattern: &Pattern, entry: u32) {
        let (covers, _) = self.covers(pattern);
        let mut checks = 0;
        for cover in &covers {
            checks = self.remove_item(cover, entry).map_or(checks, |i| i.checks);
        }
        if checks != 0 {
            self.checks[checks as usize - 1] = Box::default();
            self.free_checks.push(checks);
        }
    }

    /// Returns the pairs of value and mask under which an entry with this pattern is stored. Also returns the ranges
    /// that these do not describe exactly, so that a lookup must check them.
    fn covers(&self, pattern: &Pattern) -> (Vec<Cover>, Vec<RangeCheck>) {
        let mut covers = vec![Cover {
            value: pattern.value.to_vec(),
            mask: pattern.mask.to_vec(),
        }];
        let mut checks = Vec::new();
        for range in &pattern.ranges {
            let prefixes = match (&*range.low, &*range.high) {
                (&[low], &[high]) => prefixes(low, high),
                _ => Vec::new(),
            };
            if prefixes.is_empty() || covers.len() * prefixes.len() > MOST_ITEMS {
                checks.push(range.clone());
                continue;
            }
            let field = self.shape.fields.iter().find(|f| f.offset == range.offset);
            let ones = field.map_or(u64::MAX, |f| u64::MAX >> (64 - f.width));
            let narrowed = |cover: &Cover| -> Vec<Cover> {
                let one = |&(value, free): &(u64, u32)| {
                    let mut cover = cover.clone();
                    cover.value[range.offset] = value;
                    cover.mask[range.offset] = ones & u64::MAX.checked_shl(free).unwrap_or(0);
                    cover
                };
                prefixes.iter().map(one).collect()
            };
            covers = covers.iter().flat_map(narrowed).collect();
        }
        (covers, checks)
    }

    fn add_checks(&mut self, checks: Box<[RangeCheck]>) -> u32 {
        if let Some(free) = self.free_checks.pop() {
            self.checks[free as usize - 1] = checks;
            return free;
        }
        self.checks.push(checks);
        self.checks.len() as u32
    }

    /// Returns the tuple for a pair of value and mask, and the limbs of the value that the mask covers; `None` if
    /// there is no such tuple.
    fn place(&self, cover: &Cover) -> Option<(u32, SmallVec<[u64; 4]>)> {
        let tuple = (self.packing).pack(&cover.mask, |mask| self.by_mask.get(mask))?;
        let limbs = |value: &[u64]| self.tuples[tuple as usize].limbs_of(value);
        Some((tuple, self.packing.pack(&cover.value, limbs)))
    }

    fn insert_item(&mut self, cover: &Cover, item: Item) {
        let (tuple, value) = match self.place(cover) {
            Some(place) => place,
            None => {
                let tuple = self.new_tuple(&cover.mask);
                let limbs = |value: &[u64]| self.tuples[tuple as usize].limbs_of(value);
                (tuple, self.packing.pack(&cover.value, limbs))
            }
        };
        let rank = item.rank;
        let head = self.tuples[tuple as usize].heads.get(&value);
        let (mut before, mut next) = (None, head);
        while let Some(other) = next.filter(|&other| self.items[other as usize].rank < rank) {
            before = Some(other);
            next = self.next(other);
        }
        let item = Item {
            next: next.and_then(next_item),
            ..item
        };
        let number = match self.free_items.pop() {
            Some(free) => {
                self.items[free as usize] = item;
                free
            }
            None => {
                self.items.push(item);
                self.items.len() as u32 - 1
            }
        };
        match before {
            Some(other) => self.items[other as usize].next = next_item(number),
            None => {
                self.tuples[tuple as usize].heads.insert(&value, number);
            }
        }
        self.update_ranks(tuple, |ranks| *ranks.entry(rank).or_insert(0) += 1);
        if head.is_none() {
            self.note_head(tuple, &value);
        }
    }

    fn remove_item(&mut self, cover: &Cover, entry: u32) -> Option<Item> {
        let (tuple, value) = self.place(cover)?;
        let (mut before, mut at) = (None, self.tuples[tuple as usize].heads.get(&value)?);
        while self.items[at as usize].entry != entry {
            before = Some(at);
            at = self.next(at)?;
        }
        let item = self.items[at as usize];
        self.free_items.push(at);
        let heads = &mut self.tuples[tuple as usize].heads;
        match (before, item.next) {
            (Some(other), next) => self.items[other as usize].next = next,
            (None, Some(next)) => {
                heads.insert(&value, next.get() - 1);
            }
            (None, None) => {
                heads.remove(&value);
                if let Some(visit) = self.visit_of(tuple) {
                    visit.sieve.remove();
                }
            }
        }
        self.update_ranks(tuple, |ranks| {
            if let Some(items) = ranks.get_mut(&item.rank) {
                *items -= 1;
                if *items == 0 {
                    ranks.remove(&item.rank);
                }
            }
        });
        if self.tuples[tuple as usize].ranks.is_empty() {
            (self.packing).pack(&cover.mask, |mask| self.by_mask.remove(mask));
            self.free_tuples.push(tuple);
        }
        Some(item)
    }

    fn new_tuple(&mut self, mask: &[u64]) -> u32 {
        let new = self.packing.pack(mask, Tuple::new);
        let tuple = match self.free_tuples.pop() {
            Some(free) => {
                self.tuples[free as usize] = new;
                free
            }
            None => {
                self.tuples.push(new);
                self.tuples.len() as u32 - 1
            }
        };
        let by_mask = &mut self.by_mask;
        (self.packing).pack(mask, |mask| by_mask.insert(mask, tuple));
        tuple
    }

    /// Changes the ranks of a tuple's entries with `change`, and moves the tuple in the order of visits to the
    /// position of its best rank.
    fn update_ranks(&mut self, tuple: u32, change: impl FnOnce(&mut BTreeMap<Rank, u32>)) {
        let ranks = &mut self.tuples[tuple as usize].ranks;
        let best = |ranks: &BTreeMap<Rank, u32>| ranks.first_key_value().map(|(&rank, _)| rank);
        let former = best(ranks);
        change(ranks);
        let now = best(ranks);
        if former == now {
            return;
        }
        let removed = former.and_then(|rank| {
            let at = self.position(rank, tuple);
            let is_it = |v: &Visit| v.tuple == tuple && v.best == rank;
            (self.order.get(at).is_some_and(is_it)).then(|| self.order.remove(at))
        });
        if let Some(rank) = now {
            let visit = match removed {
                Some(visit) => Visit {
                    best: rank,
                    ..visit
                },
                None => self.new_visit(rank, tuple),
            };
            let at = self.position(rank, tuple);
            self.order.insert(at, visit);
        }
    }

    /// Returns the position of a tuple with the best rank `rank` in the order in which lookups visit tuples.
    fn position(&self, rank: Rank, tuple: u32) -> usize {
        (self.order).partition_point(|other| (other.best, other.tuple) < (rank, tuple))
    }

    fn new_visit(&self, best: Rank, tuple: u32) -> Visit {
        let mut mask = [0; sieve::LIMBS];
        let its = &self.tuples[tuple as usize];
        for &(i, bits) in &its.parts {
            if let Some(limb) = mask.get_mut(i as usize) {
                *limb = bits;
            }
        }
        Visit {
            best,
            tuple,
            mask,
            sieve: its.sieve(),
        }
    }

    fn visit_of(&mut self, tuple: u32) -> Option<&mut Visit> {
        let ranks = &self.tuples[tuple as usize].ranks;
        let (&best, _) = ranks.first_key_value()?;
        let at = self.position(best, tuple);
        self.order.get_mut(at).filter(|v| v.tuple == tuple)
    }

    /// Adds a new key of a tuple to the tuple's sieve, and builds the sieve anew if it has become too full.
    fn note_head(&mut self, tuple: u32, key: &[u64]) {
        let its = &self.tuples[tuple as usize];
        let (place, keys) = (its.place(key), its.heads.len());
        let Some(visit) = self.visit_of(tuple) else {
            return;
        };
        visit.sieve.insert(place);
        if visit.sieve.is_worn(keys) {
            let sieve = self.tuples[tuple as usize].sieve();
            if let Some(visit) = self.visit_of(tuple) {
                visit.sieve = sieve;
            }
        }
    }

    fn next(&self, item: u32) -> Option<u32> {
        self.items[item as usize].next.map(|next| next.get() - 1)
    }
}

/// Returns the smallest set of prefixes that together contain the numbers from `low` to `high`, each as its lowest
/// number and its number of free bits.
fn prefixes(low: u64, high: u64) -> Vec<(u64, u32)> {
    let mut result = Vec::new();
    let (mut next, end) = (u128::from(low), u128::from(high) + 1);
    while next < end {
        let aligned = next.trailing_zeros().min(64);
        let fitting = 127 - (end - next).leading_zeros();
        let free = aligned.min(fitting);
        result.push((next as u64, free));
        next += 1 << free;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::prefixes;

    #[test]
    fn prefixes_are_the_range_and_nothing_else() {
        for low in 0..64u64 {
            for high in low..64 {
                let covered: Vec<u64> = prefixes(low, high)
                    .into_iter()
                    .flat_map(|(value, free)| value..value + (1 << free))
                    .collect();
                assert_eq!(covered, (low..=high).collect::<Vec<u64>>());
            }
        }
        assert_eq!(prefixes(0, u64::MAX), [(0, 64)]);
        assert_eq!(prefixes(1, u64::MAX).len(), 64);
        assert_eq!(prefixes(1, 65534).len(), 30);
    }
}
