//! The entries of a table as the control plane gave them, packed: a few words each, and what few entries have (timeouts, being
//! constant) only for those that have it. It knows nothing of lookups.

use super::free_numbers::{FreeNumbers, shrink};
use super::shape::{KeyField, KeyShape, Limbs, Search};
use ir::{Bits, KeyMatch};
use smallvec::smallvec;
use std::collections::BTreeMap;

/// An installed entry without what a lookup needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed<M = Vec<KeyMatch>> {
    /// One match per key field.
    pub matches: M,
    /// The priority; the highest wins.
    pub priority: i32,
    /// True if it is from the program's source, so that the control plane may not change it.
    pub is_const: bool,
    /// The nanoseconds without a hit after which the control plane is told; 0 is never.
    pub idle_timeout_ns: u64,
    /// The place in the order of insertion.
    pub sequence: u64,
}

/// How the matches of a table's entries are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As values.
    Exact,
    /// As values and prefix lengths.
    Prefix,
    /// As values and masks (or lowest and highest values), with a priority.
    Masked,
}

/// Properties that few entries have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Extra {
    is_const: bool,
    idle_timeout_ns: u64,
}

/// The value of `sequences` at a number that no entry has.
const FREE: u64 = u64::MAX;

/// Entries by number, from 1 on.
#[derive(Clone, Debug)]
pub(super) struct Entries {
    form: Form,
    /// The number of limbs of a key.
    limbs: usize,
    /// The number of limbs of an entry's matches.
    stride: usize,
    matches: Vec<u64>,
    /// The priority of each entry; empty in a table without priorities.
    priorities: Vec<i32>,
    sequences: Vec<u64>,
    extras: BTreeMap<u32, Extra>,
    free: FreeNumbers,
    len: usize,
}

impl Entries {
    /// Makes an empty store for entries whose keys have this shape.
    pub fn new(shape: &KeyShape) -> Entries {
        let (form, stride) = match shape.search() {
            Search::Masked => (Form::Masked, 2 * shape.limbs()),
            Search::Prefix(_) => (Form::Prefix, shape.limbs() + 1),
            Search::Exact => (Form::Exact, shape.limbs()),
        };
        let mut entries = Entries {
            form,
            limbs: shape.limbs(),
            stride,
            matches: Vec::new(),
            priorities: Vec::new(),
            sequences: Vec::new(),
            extras: BTreeMap::new(),
            free: FreeNumbers::default(),
            len: 0,
        };
        // Number 0 is the default action's.
        entries.push();
        entries
    }

    fn push(&mut self) {
        self.matches.resize(self.matches.len() + self.stride, 0);
        self.sequences.push(FREE);
        if self.form == Form::Masked {
            self.priorities.push(0);
        }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if an entry has this number.
    pub fn contains(&self, entry: u32) -> bool {
        self.sequences
            .get(entry as usize)
            .is_some_and(|&sequence| sequence != FREE)
    }

    /// Returns an exclusive upper bound of the entry numbers: every entry's number is below it, but not every number
    /// below it belongs to an entry.
    pub fn numbers(&self) -> u32 {
        self.sequences.len() as u32
    }

    /// Returns the place of an existing entry in the order of insertion.
    pub fn sequence(&self, entry: u32) -> u64 {
        self.sequences[entry as usize]
    }

    /// Returns the priority of an entry; 0 in a table without priorities.
    pub fn priority(&self, entry: u32) -> i32 {
        self.priorities.get(entry as usize).copied().unwrap_or(0)
    }

    /// Returns the numbers of the entries in the order in which they were inserted.
    pub fn in_order(&self) -> Vec<u32> {
        let used = (0..self.sequences.len() as u32).filter(|&entry| self.contains(entry));
        let mut entries: Vec<u32> = used.collect();
        entries.sort_unstable_by_key(|&entry| self.sequence(entry));
        entries
    }

    /// Adds an entry, and returns its number: `wanted`, which must be free, or a free number if `wanted` is `None`.
    pub fn insert(&mut self, installed: &Installed<Limbs>, wanted: Option<u32>) -> u32 {
        let entry = match wanted {
            Some(number) if self.free.take_this(number) => number,
            Some(number) => {
                while self.numbers() < number {
                    self.free.put(self.numbers());
                    self.push();
                }
                self.push();
                number
            }
            None => self.free.take().unwrap_or_else(|| {
                self.push();
                self.numbers() - 1
            }),
        };
        let at = entry as usize;
        self.matches[at * self.stride..][..self.stride].copy_from_slice(&installed.matches);
        self.len += 1;
        self.set(entry, installed);
        entry
    }

    /// Changes everything of an entry except for its matches.
    pub fn set(&mut self, entry: u32, installed: &Installed<Limbs>) {
        let at = entry as usize;
        self.sequences[at] = installed.sequence;
        if let Some(priority) = self.priorities.get_mut(at) {
            *priority = installed.priority;
        }
        let extra = Extra {
            is_const: installed.is_const,
            idle_timeout_ns: installed.idle_timeout_ns,
        };
        self.set_extra(entry, extra);
    }

    fn set_extra(&mut self, entry: u32, extra: Extra) {
        if extra == Extra::default() {
            self.extras.remove(&entry);
        } else {
            self.extras.insert(entry, extra);
        }
    }

    fn extra(&self, entry: u32) -> Extra {
        self.extras.get(&entry).copied().unwrap_or_default()
    }

    /// Changes the idle timeout of an entry, in nanoseconds.
    pub fn set_idle_timeout(&mut self, entry: u32, idle_timeout_ns: u64) {
        let extra = Extra {
            idle_timeout_ns,
            ..self.extra(entry)
        };
        self.set_extra(entry, extra);
    }

    /// Removes an entry, and frees its number.
    pub fn remove(&mut self, entry: u32) {
        self.sequences[entry as usize] = FREE;
        self.extras.remove(&entry);
        self.free.put(entry);
        self.len -= 1;
        let end = self.free.lower(self.sequences.len());
        self.matches.truncate(end * self.stride);
        self.sequences.truncate(end);
        self.priorities.truncate(end);
    }

    /// Returns a part of the unused memory to the allocator; returns true if there is more.
    pub fn tidy(&mut self) -> bool {
        shrink(&mut self.matches) | shrink(&mut self.sequences) | shrink(&mut self.priorities)
    }

    /// Returns an installed entry, or `None` if no entry has this number. `matches` converts the packed matches.
    pub fn get<M>(&self, entry: u32, matches: impl FnOnce(&[u64]) -> M) -> Option<Installed<M>> {
        let extra = self.extra(entry);
        self.contains(entry).then(|| Installed {
            matches: matches(self.packed(entry)),
            priority: self.priority(entry),
            is_const: extra.is_const,
            idle_timeout_ns: extra.idle_timeout_ns,
            sequence: self.sequence(entry),
        })
    }

    /// Returns the matches of an entry in packed form.
    pub fn packed(&self, entry: u32) -> &[u64] {
        &self.matches[entry as usize * self.stride..][..self.stride]
    }

    /// Packs matches, one per key field, into limbs, the form in which entries are stored.
    pub fn pack(&self, shape: &KeyShape, matches: &[KeyMatch]) -> Limbs {
        let mut packed: Limbs = smallvec![0; self.stride];
        for (field, key_match) in shape.fields.iter().zip(matches) {
            let mut put = |at: usize, value: &Bits| {
                field
                    .slice_mut(&mut packed[at..])
                    .copy_from_slice(value.limbs());
            };
            let is_masked = self.form == Form::Masked;
            match key_match {
                KeyMatch::Any => {}
                KeyMatch::Value(value) => {
                    put(0, value);
                    if is_masked {
                        put(self.limbs, &Bits::ones(field.width));
                    }
                }
                KeyMatch::Prefix { value, prefix_len } => {
                    put(0, value);
                    if is_masked {
                        put(self.limbs, &Bits::prefix_mask(field.width, *prefix_len));
                    } else {
                        packed[self.limbs] = u64::from(*prefix_len);
                    }
                }
                KeyMatch::Masked {
                    value: first,
                    mask: second,
                }
                | KeyMatch::Range {
                    low: first,
                    high: second,
                } => {
                    put(0, first);
                    put(self.limbs, second);
                }
            }
        }
        packed
    }

    /// Unpacks stored matches, one per key field: the inverse of [`Self::pack`].
    pub fn unpack(&self, shape: &KeyShape, packed: &[u64]) -> Vec<KeyMatch> {
        let one = |field: &KeyField| {
            let bits = |at: usize| Bits::from_limbs(field.width, field.slice(&packed[at..]));
            let second = match self.form {
                Form::Masked => bits(self.limbs),
                Form::Prefix if field.kind.is_prefix() => {
                    Bits::prefix_mask(field.width, packed[self.limbs] as u32)
                }
                Form::Prefix | Form::Exact => Bits::ones(field.width),
            };
            field.kind.of_two(bits(0), second)
        };
        shape.fields.iter().map(one).collect()
    }

    /// Returns how many bytes the entries occupy on the heap.
    pub fn heap_bytes(&self) -> usize {
        8 * (self.matches.capacity() + self.sequences.capacity())
            + 4 * self.priorities.capacity()
            + self.free.heap_bytes()
            + self.extras.len() * (size_of::<Extra>() + size_of::<u32>())
    }
}
