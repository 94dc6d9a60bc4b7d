//! Ternary, range and optional match: tuple space search (Srinivasan, Suri and Varghese 1999) with priority pruning.
//!
//! Entries with equal masks form a *tuple*, in which a hash finds those that agree with the key. Tuples are visited in the
//! order of the best entry in each, so the search ends as soon as no later tuple can hold a better one. A range takes
//! part with the leading bits that its bounds share, and is checked in full on the entries found.

use super::keymap::KeyMap;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// Order of preference: the highest priority first, then the entry inserted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    inverse_priority: u32,
    sequence: u64,
}

impl Rank {
    /// Of an entry with this priority and place in the order of insertion.
    pub fn new(priority: i32, sequence: u64) -> Rank {
        Rank {
            // Flipping the sign bit orders like the signed number; complementing puts the highest first.
            inverse_priority: !((priority as u32) ^ (1 << 31)),
            sequence,
        }
    }
}

/// A bound that the hash cannot check: limbs `offset..` of the key lie between `low` and `high`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeCheck {
    /// First limb in the key.
    pub offset: usize,
    /// Lowest, least significant limb first.
    pub low: Box<[u64]>,
    /// Highest.
    pub high: Box<[u64]>,
}

impl RangeCheck {
    fn holds(&self, key: &[u64]) -> bool {
        let field = &key[self.offset..self.offset + self.low.len()];
        self.low.iter().rev().le(field.iter().rev())
            && field.iter().rev().le(self.high.iter().rev())
    }
}

#[derive(Clone, Debug)]
struct Tuple {
    mask: SmallVec<[u64; 4]>,
    /// From masked value to the best entry with it.
    heads: KeyMap,
    ranks: BTreeSet<Rank>,
}

/// What the search needs of an entry, in a list of entries with equal mask and value, best first.
#[derive(Clone, Debug)]
struct Link {
    rank: Rank,
    next: Option<u32>,
    ranges: Box<[RangeCheck]>,
}

/// Entries that match under masks, with priorities.
#[derive(Clone, Debug)]
pub struct TupleSpace {
    limbs: usize,
    /// From mask to tuple.
    by_mask: KeyMap,
    tuples: Vec<Tuple>,
    free_tuples: Vec<u32>,
    /// The tuples that have entries, each with the rank of its best, best first.
    order: Vec<(Rank, u32)>,
    /// By entry.
    links: Vec<Option<Link>>,
}

impl TupleSpace {
    /// For keys of `limbs` limbs.
    pub fn new(limbs: usize) -> TupleSpace {
        TupleSpace {
            limbs,
            by_mask: KeyMap::new(limbs),
            tuples: Vec::new(),
            free_tuples: Vec::new(),
            order: Vec::new(),
            links: Vec::new(),
        }
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        let ranges = |link: &Link| -> usize {
            let words: usize = link.ranges.iter().map(|r| 2 * r.low.len()).sum();
            8 * words + link.ranges.len() * size_of::<RangeCheck>()
        };
        self.links.capacity() * size_of::<Option<Link>>()
            + self.links.iter().flatten().map(ranges).sum::<usize>()
            + self.tuples.capacity() * size_of::<Tuple>()
            + (self.tuples.iter())
                .map(|t| t.heads.heap_bytes() + t.ranks.len() * size_of::<Rank>())
                .sum::<usize>()
    }

    /// The best entry that matches.
    pub fn lookup(&self, key: &[u64]) -> Option<u32> {
        let mut best: Option<(Rank, u32)> = None;
        for &(tuple_best, tuple) in &self.order {
            if best.is_some_and(|(rank, _)| rank < tuple_best) {
                break;
            }
            let tuple = &self.tuples[tuple as usize];
            let mut next = tuple.heads.get_masked(key, &tuple.mask);
            while let Some(entry) = next {
                let link = self.link(entry);
                if best.is_some_and(|(rank, _)| rank < link.rank) {
                    break;
                }
                if link.ranges.iter().all(|range| range.holds(key)) {
                    best = Some((link.rank, entry));
                    break;
                }
                next = link.next;
            }
        }
        best.map(|(_, entry)| entry)
    }

    /// The entries with this mask and value, best first.
    pub fn candidates(&self, value: &[u64], mask: &[u64]) -> impl Iterator<Item = u32> {
        let head = self
            .by_mask
            .get(mask)
            .and_then(|tuple| self.tuples[tuple as usize].heads.get(value));
        std::iter::successors(head, |&entry| self.link(entry).next)
    }

    /// Adds an entry; `value` is zero outside `mask`.
    pub fn insert(
        &mut self,
        value: &[u64],
        mask: &[u64],
        ranges: Box<[RangeCheck]>,
        rank: Rank,
        entry: u32,
    ) {
        let tuple = self.tuple_or_new(mask);
        let head = self.tuples[tuple as usize].heads.get(value);
        let (mut before, mut next) = (None, head);
        while let Some(other) = next.filter(|&other| self.link(other).rank < rank) {
            before = Some(other);
            next = self.link(other).next;
        }
        if self.links.len() <= entry as usize {
            self.links.resize(entry as usize + 1, None);
        }
        self.links[entry as usize] = Some(Link { rank, next, ranges });
        match before {
            Some(other) => self.link_mut(other).next = Some(entry),
            None => {
                self.tuples[tuple as usize].heads.insert(value, entry);
            }
        }
        self.update_ranks(tuple, |ranks| {
            ranks.insert(rank);
        });
    }

    /// Removes an entry that is there.
    pub fn remove(&mut self, value: &[u64], mask: &[u64], entry: u32) {
        let Some(tuple) = self.by_mask.get(mask) else {
            return;
        };
        let before = self
            .candidates(value, mask)
            .find(|&other| self.link(other).next == Some(entry));
        let Some(link) = self.links[entry as usize].take() else {
            return;
        };
        let heads = &mut self.tuples[tuple as usize].heads;
        match (before, link.next) {
            (Some(other), next) => self.link_mut(other).next = next,
            (None, Some(next)) => {
                heads.insert(value, next);
            }
            (None, None) => {
                heads.remove(value);
            }
        }
        self.update_ranks(tuple, |ranks| {
            ranks.remove(&link.rank);
        });
        if self.tuples[tuple as usize].ranks.is_empty() {
            self.by_mask.remove(mask);
            self.free_tuples.push(tuple);
        }
    }

    fn tuple_or_new(&mut self, mask: &[u64]) -> u32 {
        if let Some(tuple) = self.by_mask.get(mask) {
            return tuple;
        }
        let new = Tuple {
            mask: mask.into(),
            heads: KeyMap::new(self.limbs),
            ranks: BTreeSet::new(),
        };
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
        self.by_mask.insert(mask, tuple);
        tuple
    }

    /// Changes the ranks of a tuple and moves it to where its best now belongs.
    fn update_ranks(&mut self, tuple: u32, change: impl FnOnce(&mut BTreeSet<Rank>)) {
        let ranks = &mut self.tuples[tuple as usize].ranks;
        let former = ranks.first().copied();
        change(ranks);
        let now = ranks.first().copied();
        if former == now {
            return;
        }
        if let Some(rank) = former
            && let Ok(at) = self.order.binary_search(&(rank, tuple))
        {
            self.order.remove(at);
        }
        if let Some(rank) = now {
            let at = self.order.partition_point(|other| *other < (rank, tuple));
            self.order.insert(at, (rank, tuple));
        }
    }

    fn link(&self, entry: u32) -> &Link {
        self.links[entry as usize]
            .as_ref()
            .expect("a listed entry has a link")
    }

    fn link_mut(&mut self, entry: u32) -> &mut Link {
        self.links[entry as usize]
            .as_mut()
            .expect("a listed entry has a link")
    }
}
