//! Match-action tables: one structure per key shape behind one face.
//!
//! | key fields                               | structure                                    |
//! |------------------------------------------|----------------------------------------------|
//! | none                                     | nothing matches                              |
//! | exact (and selector)                     | [`keymap`]: open addressing on the packed key |
//! | one lpm of up to 32 bits, the others exact | [`lpm32`]: multibit trie, direct index   |
//! | one longer lpm, the others exact         | [`lpm`]: tree bitmap                          |
//! | any with priorities (as ternary)         | [`ternary`]: tuple space with priority pruning |
//!
//! A key is the concatenation of the limbs of its fields, each padded to whole limbs (least significant first) as in
//! [`ir::Layout`]. Among several entries that match, the longest prefix wins in an lpm table; the highest priority wins in a
//! ternary one, and of equal priorities the entry inserted first. (Modifying an entry does not change its place.)
//!
//! This room knows matches and entries; the operations of the control plane on them are [`crate::control`]'s.

mod conversion;
mod direct;
mod entries;
mod free_numbers;
mod in_place;
pub mod keymap;
pub mod lpm;
pub mod lpm32;
pub mod numbers;
mod packing;
mod records;
mod shape;
mod sieve;
pub mod ternary;

pub use conversion::{Conversion, RecordSlice};
pub use direct::is_direct;
pub use entries::Installed;
pub use in_place::{InPlace, InPlaceMatcher};
pub use packing::Packing;
pub use shape::KeyShape;

use crate::Time;
use crate::cells::CounterData;
use direct::DirectMap;
use entries::Entries;
pub(crate) use free_numbers::{forget_last, shrink};
use ir::{ActionCall, Bits, KeyMatch};
use keymap::KeyMap;
use lpm::LpmTable;
use lpm32::Lpm32Table;
use records::Records;
use shape::{Limbs, Pattern, Search};
use smallvec::{SmallVec, smallvec};
use ternary::{Rank, TupleSpace};

/// The bytes of heap memory that the matcher of a table may keep when the table becomes empty.
const KEPT_MATCHER_BYTES: usize = 1 << 20;

#[derive(Clone, Debug)]
enum Matcher {
    /// Without key fields: no entry can be inserted, and every lookup misses.
    Keyless,
    /// Exact fields, with a mask that hides selector fields if there are any.
    Exact(KeyMap, Option<Box<[u64]>>),
    /// One narrow exact field, which is an index.
    Direct(DirectMap),
    /// Exact fields, several of which fit into a limb.
    Packed(KeyMap, Packing),
    Lpm32(Lpm32Table),
    Lpm(LpmTable),
    Ternary(TupleSpace),
}

impl Matcher {
    fn new(shape: &KeyShape, is_direct: bool) -> Matcher {
        if shape.limbs == 0 {
            return Matcher::Keyless;
        }
        if is_direct {
            return Matcher::Direct(DirectMap::new());
        }
        match shape.search() {
            Search::Masked => Matcher::Ternary(TupleSpace::new(shape)),
            Search::Prefix(field) => {
                let (offset, width, exact) = (field.offset, field.width, shape.exact_mask());
                match width <= 32 {
                    true => Matcher::Lpm32(Lpm32Table::new(offset, width, exact)),
                    false => Matcher::Lpm(LpmTable::new(offset, width, exact)),
                }
            }
            Search::Exact => {
                if let Some(packing) = Packing::of_exact(shape) {
                    return Matcher::Packed(KeyMap::new(packing.limbs()), packing);
                }
                let has_more = shape.has(|kind| !kind.is_looked_up());
                let looked_up = has_more.then(|| shape.exact_mask());
                Matcher::Exact(KeyMap::new(shape.limbs), looked_up)
            }
        }
    }

    fn heap_bytes(&self) -> usize {
        match self {
            Matcher::Keyless => 0,
            Matcher::Exact(map, _) | Matcher::Packed(map, _) => map.heap_bytes(),
            Matcher::Direct(map) => map.heap_bytes(),
            Matcher::Lpm32(table) => table.heap_bytes(),
            Matcher::Lpm(table) => table.heap_bytes(),
            Matcher::Ternary(space) => space.heap_bytes(),
        }
    }

    /// Returns the hash map from keys to entries, for changes; `None` if this matcher uses another structure.
    fn map_mut(&mut self) -> Option<&mut KeyMap> {
        match self {
            Matcher::Exact(map, _) | Matcher::Packed(map, _) => Some(map),
            _ => None,
        }
    }

    /// Returns the number of the entry that matches a key; 0 if none does.
    #[inline]
    fn lookup(&self, key: &[u64]) -> u32 {
        match self {
            Matcher::Keyless => 0,
            Matcher::Exact(map, None) => map.get(key).unwrap_or(0),
            Matcher::Exact(map, Some(mask)) => map.get_masked(key, mask).unwrap_or(0),
            Matcher::Direct(map) => map.get(key[0]),
            Matcher::Packed(map, packing) => packing.pack(key, |key| map.get(key)).unwrap_or(0),
            Matcher::Lpm32(table) => table.lookup(key),
            Matcher::Lpm(table) => table.lookup(key).unwrap_or(0),
            Matcher::Ternary(space) => space.lookup(key).unwrap_or(0),
        }
    }
}

/// All data of an entry, kept so that its removal or change can be undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntrySnapshot {
    /// The entry's number; `None` for an entry that is new.
    number: Option<u32>,
    installed: Installed<Limbs>,
    record: Limbs,
    counter: CounterData,
    last_hit_ps: Time,
}

/// The entries found for the keys of a part of a burst.
pub type Found = SmallVec<[u32; lpm32::MANY]>;

/// The result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup<'a> {
    /// True if an entry was found.
    pub hit: bool,
    /// The position in [`ir::Table::actions`] of the action to run.
    pub action: u32,
    /// The action's arguments: the limbs of each parameter in turn, least significant first.
    pub args: &'a [u64],
    /// The entry that was found, for [`Table::entry`]; 0 stands for the default action.
    pub entry: u32,
}

/// A table's contents.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Table {
    // First what lookups need.
    /// The actions of the entries with their arguments. Entry 0 stands for the default action.
    records: Records,
    /// The number of limbs of a record.
    stride: usize,
    /// True if a hit changes something: a count or a time.
    notes_hits: bool,
    matcher: Matcher,
    shape: KeyShape,
    /// Widths of the parameters of each of the table's actions.
    parameter_widths: Vec<Vec<u32>>,
    entries: Entries,
    next_sequence: u64,
    /// The direct counter of each entry; empty without a direct counter.
    counters: Vec<CounterData>,
    has_counter: bool,
    /// The time of each entry's last hit; empty without idle timeouts.
    last_hit_ps: Vec<Time>,
    has_timeout: bool,
}

impl Table {
    /// Makes a table in its initial state, with its constant and initial entries.
    pub fn new(program: &ir::Program, table: &ir::Table) -> Table {
        let shape = KeyShape::new(&table.keys);
        let parameter_widths = parameter_widths(program, table);
        let stride = record_limbs(program, table);
        let mut result = Table {
            matcher: Matcher::new(&shape, direct::is_direct(table)),
            entries: Entries::new(&shape),
            shape,
            records: Records::new(stride),
            stride,
            parameter_widths,
            next_sequence: 0,
            counters: vec![CounterData::default()],
            has_counter: table.direct_counter.is_some(),
            last_hit_ps: vec![Time::ZERO],
            has_timeout: table.support_timeout,
            notes_hits: table.direct_counter.is_some() || table.support_timeout,
        };
        let position = |call: &ActionCall| {
            let at = table.actions.iter().position(|a| a.action == call.action);
            at.unwrap_or(0) as u32
        };
        result.set_default(position(&table.default_action), &table.default_action.args);
        for entry in &table.entries {
            result.insert(
                NewEntry {
                    matches: &entry.matches,
                    priority: entry.priority,
                    is_const: table.const_entries || entry.is_const,
                    idle_timeout_ns: 0,
                    action: position(&entry.action),
                    args: &entry.action.args,
                },
                Time::ZERO,
            );
        }
        result
    }

    /// Looks up `key`, and returns the action to run with its arguments: that of the entry found, or the default
    /// action. On a hit, counts the packet, and records the time for the entry's idle timeout.
    #[inline]
    pub fn lookup(&mut self, key: &[u64], packet_bytes: usize, now_ps: Time) -> Lookup<'_> {
        let entry = self.matcher.lookup(key);
        if self.notes_hits {
            self.note_hit(entry, packet_bytes, now_ps);
        }
        self.found(entry)
    }

    /// Looks up a key like [`Table::lookup`], given in the packed form of [`Packing::of_table`]. The table must have
    /// such a packing.
    #[inline]
    pub fn lookup_packed(
        &mut self,
        packed: &[u64],
        packet_bytes: usize,
        now_ps: Time,
    ) -> Lookup<'_> {
        let entry = match &self.matcher {
            Matcher::Ternary(space) => space.lookup_packed(&[], packed).unwrap_or(0),
            _ => 0,
        };
        if self.notes_hits {
            self.note_hit(entry, packet_bytes, now_ps);
        }
        self.found(entry)
    }

    /// Records a hit of an entry: counts the packet, and stores the time for the entry's idle timeout. Does nothing
    /// for entry 0 (a miss).
    #[inline]
    fn note_hit(&mut self, entry: u32, packet_bytes: usize, now_ps: Time) {
        if entry == 0 {
            return;
        }
        if self.has_counter {
            self.counters[entry as usize].count(packet_bytes);
        }
        if self.has_timeout {
            self.last_hit_ps[entry as usize] = now_ps;
        }
    }

    /// Returns true if the table finds prefixes through an array that is indexed by 16 bits, which is large even for
    /// few entries.
    pub fn has_direct_prefixes(&self) -> bool {
        matches!(&self.matcher, Matcher::Lpm32(table) if table.is_direct())
    }

    /// Loads the memory that lookups of these keys, given one after the other, will need into the processor's caches,
    /// for all keys at once. Changes no entry. Sets `entries` to the entries found; the result means nothing.
    pub fn warm(&self, keys: &[u64], entries: &mut Found) -> u64 {
        let limbs = self.shape.limbs().max(1);
        let mut sum = 0;
        entries.clear();
        for keys in keys.chunks(limbs * lpm32::MANY) {
            let count = keys.len() / limbs;
            let (mut places, mut found) = ([0; lpm32::MANY], [0; lpm32::MANY]);
            match &self.matcher {
                Matcher::Lpm32(table) if limbs == 1 => table.lookup_many(keys, &mut found),
                matcher => {
                    for (place, key) in places.iter_mut().zip(keys.chunks(limbs)) {
                        *place = match matcher {
                            Matcher::Exact(map, None) => map.first_bucket(key),
                            Matcher::Packed(map, packing) => {
                                packing.pack(key, |key| map.first_bucket(key))
                            }
                            _ => 0,
                        };
                    }
                    if let Matcher::Exact(map, None) | Matcher::Packed(map, _) = matcher {
                        sum ^= map.load(&places[..count]);
                    }
                    for (found, key) in found.iter_mut().zip(keys.chunks(limbs)) {
                        *found = matcher.lookup(key);
                    }
                }
            }
            let found = &found[..count];
            sum ^= self.records.load(found);
            if self.has_counter {
                let counters = found.iter().map(|&entry| &self.counters[entry as usize]);
                sum ^= counters.fold(0, |sum, counter| sum ^ counter.packets);
            }
            entries.extend_from_slice(found);
        }
        sum
    }

    /// Returns the result of a lookup that finds this entry; entry 0 stands for the default action.
    #[inline]
    pub fn found(&self, entry: u32) -> Lookup<'_> {
        let record = self.records.get(entry);
        let (head, args) = record.split_first().unwrap_or((&0, &[]));
        Lookup {
            hit: entry != 0,
            action: *head as u32,
            args: args.get(..(head >> 32) as usize).unwrap_or(&[]),
            entry,
        }
    }

    /// Returns the shape of the key: the kinds, widths and positions of its fields.
    pub fn shape(&self) -> &KeyShape {
        &self.shape
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if the table has no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.len() == 0
    }

    /// Returns the number of the entry with these matches and this priority, or `None` if there is none.
    pub fn find(&self, matches: &[KeyMatch], priority: i32) -> Option<u32> {
        let packed = self.entries.pack(&self.shape, matches);
        let (value, rest) = packed.split_at(self.shape.limbs);
        match &self.matcher {
            Matcher::Keyless => None,
            Matcher::Exact(map, _) => map.get(value),
            Matcher::Direct(map) => Some(map.get(value[0])).filter(|&entry| entry != 0),
            Matcher::Packed(map, packing) => packing.pack(value, |key| map.get(key)),
            Matcher::Lpm32(table) => table.find(value, rest[0] as u32),
            Matcher::Lpm(table) => table.find(value, rest[0] as u32),
            Matcher::Ternary(space) => space.find(&Pattern::new(&self.shape, &packed), |entry| {
                self.entries.priority(entry) == priority && self.entries.packed(entry) == &*packed
            }),
        }
    }

    /// Returns an installed entry, or `None` if no entry has this number.
    pub fn entry(&self, entry: u32) -> Option<Installed> {
        let unpack = |packed: &[u64]| self.entries.unpack(&self.shape, packed);
        self.entries.get(entry, unpack)
    }

    /// Returns an exclusive upper bound of the entry numbers: every entry's number is below it, but not every number
    /// below it belongs to an entry.
    pub fn numbers(&self) -> u32 {
        self.entries.numbers()
    }

    /// Returns an entry's place in the order of insertion; `None` if no entry has this number.
    pub fn sequence(&self, entry: u32) -> Option<u64> {
        self.entries
            .contains(entry)
            .then(|| self.entries.sequence(entry))
    }

    /// Returns the place in the order of insertion that the next new entry will have.
    pub fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// Returns the numbers of the entries in the order in which they were inserted.
    pub fn entries(&self) -> Vec<u32> {
        self.entries.in_order()
    }

    /// Returns the action of the entry numbered `entry` as its position among the table's actions and its arguments.
    /// Entry 0 is the default action; any other number must be that of an existing entry: numbers out of range panic.
    pub fn action(&self, entry: u32) -> (u32, Vec<Bits>) {
        let record = self.records.get(entry);
        let mut at = 1;
        let action = record[0] as u32;
        let widths = self.parameter_widths.get(action as usize);
        let args = widths
            .into_iter()
            .flatten()
            .map(|&width| {
                let limbs = width.div_ceil(64) as usize;
                at += limbs;
                Bits::from_limbs(width, &record[at - limbs..at])
            })
            .collect();
        (action, args)
    }

    /// Returns the direct counter's cell of an entry, for changes; `None` if the table has no direct counter.
    pub fn counter_mut(&mut self, entry: u32) -> Option<&mut CounterData> {
        if !self.has_counter {
            return None;
        }
        self.counters.get_mut(entry as usize)
    }

    /// Returns the direct counter's cell of an entry; `None` if the table has no direct counter.
    pub fn counter(&self, entry: u32) -> Option<CounterData> {
        if !self.has_counter {
            return None;
        }
        self.counters.get(entry as usize).copied()
    }

    /// Returns the time at which the entry was last hit or installed; `None` if the table has no idle timeouts.
    pub fn last_hit_ps(&self, entry: u32) -> Option<Time> {
        if !self.has_timeout {
            return None;
        }
        self.last_hit_ps.get(entry as usize).copied()
    }

    /// Replaces times of hits later than `now_ps` by `now_ps`, after the clock was set back.
    pub(crate) fn clock_set_back(&mut self, now_ps: Time) {
        (self.last_hit_ps.iter_mut()).for_each(|hit_ps| *hit_ps = now_ps.min(*hit_ps));
    }

    /// Adds an entry that [`Table::find`] does not find, and returns its number. The table must have key fields.
    pub fn insert(&mut self, new: NewEntry<'_>, now_ps: Time) -> u32 {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let record = self.record(new.action, new.args);
        self.restore(EntrySnapshot {
            number: None,
            installed: Installed {
                matches: self.entries.pack(&self.shape, new.matches),
                priority: new.priority,
                is_const: new.is_const,
                idle_timeout_ns: new.idle_timeout_ns,
                sequence,
            },
            record,
            counter: CounterData::default(),
            last_hit_ps: now_ps,
        })
    }

    /// Inserts an entry from a snapshot with everything that it had, including its number and its place in the order
    /// of insertion. Returns the number, which must be free.
    pub fn restore(&mut self, snapshot: EntrySnapshot) -> u32 {
        let installed = &snapshot.installed;
        let entry = self.entries.insert(installed, snapshot.number);
        let at = entry as usize;
        if self.has_counter && self.counters.len() <= at {
            self.counters.resize(at + 1, CounterData::default());
        }
        if self.has_timeout && self.last_hit_ps.len() <= at {
            self.last_hit_ps.resize(at + 1, Time::ZERO);
        }
        let (value, rest) = installed.matches.split_at(self.shape.limbs);
        match &mut self.matcher {
            Matcher::Keyless => {}
            Matcher::Exact(map, _) => {
                map.insert(value, entry);
            }
            Matcher::Direct(map) => map.set(value[0], entry),
            Matcher::Packed(map, packing) => {
                packing.pack(value, |key| map.insert(key, entry));
            }
            Matcher::Lpm32(table) => table.insert(value, rest[0] as u32, entry),
            Matcher::Lpm(table) => table.insert(value, rest[0] as u32, entry),
            Matcher::Ternary(space) => {
                let rank = Rank::new(installed.priority, installed.sequence);
                space.insert(&Pattern::new(&self.shape, &installed.matches), rank, entry);
            }
        }
        self.records.assign(entry, &snapshot.record);
        if let Some(counter) = self.counters.get_mut(at) {
            *counter = snapshot.counter;
        }
        if let Some(last_hit_ps) = self.last_hit_ps.get_mut(at) {
            *last_hit_ps = snapshot.last_hit_ps;
        }
        entry
    }

    /// Removes an entry; returns false if no entry has this number.
    pub fn remove(&mut self, entry: u32) -> bool {
        if !self.entries.contains(entry) {
            return false;
        }
        let matches = self.entries.packed(entry);
        let (value, rest) = matches.split_at(self.shape.limbs);
        match &mut self.matcher {
            Matcher::Keyless => {}
            Matcher::Exact(map, _) => {
                map.remove(value);
            }
            Matcher::Direct(map) => map.set(value[0], 0),
            Matcher::Packed(map, packing) => {
                packing.pack(value, |key| map.remove(key));
            }
            Matcher::Lpm32(table) => {
                table.remove(value, rest[0] as u32);
            }
            Matcher::Lpm(table) => {
                table.remove(value, rest[0] as u32);
            }
            Matcher::Ternary(space) => space.remove(&Pattern::new(&self.shape, matches), entry),
        }
        self.entries.remove(entry);
        self.records.release(entry);
        self.lower();
        true
    }

    /// Releases the data that is stored for numbers above those of all entries.
    fn lower(&mut self) {
        let end = self.entries.numbers() as usize;
        self.records.truncate(end);
        self.counters.truncate(end);
        self.last_hit_ps.truncate(end);
        // Of the others only the hash map shrinks by itself; an array is never so large.
        if self.is_empty()
            && self.matcher.map_mut().is_none()
            && self.matcher.heap_bytes() > KEPT_MATCHER_BYTES
        {
            self.matcher = Matcher::new(&self.shape, false);
        }
    }

    /// Does a part of the work that updates have postponed: returns memory to the allocator, lets a hash map grow or
    /// shrink. Returns true if work remains.
    pub fn tidy(&mut self) -> bool {
        let map = self.matcher.map_mut().is_some_and(KeyMap::tidy);
        map | self.entries.tidy()
            | self.records.tidy()
            | shrink(&mut self.counters)
            | shrink(&mut self.last_hit_ps)
    }

    /// Returns everything that an entry has, for [`Table::restore`]; `None` if no entry has this number.
    pub fn snapshot(&self, entry: u32) -> Option<EntrySnapshot> {
        let at = entry as usize;
        Some(EntrySnapshot {
            number: Some(entry),
            installed: self.entries.get(entry, Limbs::from_slice)?,
            record: Limbs::from_slice(self.records.get(entry)),
            counter: self.counters.get(at).copied().unwrap_or_default(),
            last_hit_ps: self.last_hit_ps.get(at).copied().unwrap_or_default(),
        })
    }

    /// Changes the action, the arguments and the idle timeout of an entry.
    pub fn modify(&mut self, entry: u32, action: u32, args: &[Bits], idle_timeout_ns: u64) {
        let record = self.record(action, args);
        self.records.release(entry);
        self.records.assign(entry, &record);
        self.entries.set_idle_timeout(entry, idle_timeout_ns);
    }

    /// Restores an entry to the state in an earlier snapshot of it, except for its direct counter and the time of its
    /// last hit.
    pub fn reset(&mut self, entry: u32, snapshot: EntrySnapshot) {
        self.records.release(entry);
        self.records.assign(entry, &snapshot.record);
        self.entries.set(entry, &snapshot.installed);
    }

    /// Changes the default action.
    pub fn set_default(&mut self, action: u32, args: &[Bits]) {
        let record = self.record(action, args);
        self.records.set_default(&record);
    }

    /// Makes the record of an action: one limb with the action's position in the low half and the number of argument
    /// limbs in the high half, then the argument limbs.
    fn record(&self, action: u32, args: &[Bits]) -> Limbs {
        let mut record = smallvec![0; self.stride];
        let mut at = 1;
        for arg in args {
            let limbs = arg.limbs();
            record[at..at + limbs.len()].copy_from_slice(limbs);
            at += limbs.len();
        }
        record[0] = u64::from(action) | (at as u64 - 1) << 32;
        record
    }

    /// Returns how many bytes the table's contents occupy on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.matcher.heap_bytes()
            + self.entries.heap_bytes()
            + self.records.heap_bytes()
            + self.counters.capacity() * size_of::<CounterData>()
            + self.last_hit_ps.capacity() * size_of::<Time>()
    }
}

/// Returns the widths in bits of the parameters of each of a table's actions.
fn parameter_widths(program: &ir::Program, table: &ir::Table) -> Vec<Vec<u32>> {
    let widths = table.actions.iter().map(|action| {
        let params = program.actions[action.action.index()].params.iter();
        let widths = params.map(|param| program.slots[param.slot.index()].width);
        widths.collect()
    });
    widths.collect()
}

/// The number of entries that a table holds whose size is not stated.
pub(crate) const DEFAULT_TABLE_SIZE: u64 = 1024;

/// Returns the largest number of entries that a table can hold.
pub(crate) fn capacity(declared: &ir::Table) -> u64 {
    match declared.size {
        0 => DEFAULT_TABLE_SIZE,
        size => size,
    }
}

/// Returns the number of limbs of a table's records: one for the action, and as many as the longest list of arguments
/// needs.
pub(crate) fn record_limbs(program: &ir::Program, table: &ir::Table) -> usize {
    let limbs = parameter_widths(program, table);
    let limbs = limbs
        .iter()
        .map(|widths| widths.iter().map(|w| w.div_ceil(64)).sum::<u32>());
    1 + limbs.max().unwrap_or(0) as usize
}

/// An entry to be inserted.
#[derive(Clone, Debug)]
pub struct NewEntry<'a> {
    /// One canonical match per key field, of its kind and width.
    pub matches: &'a [KeyMatch],
    /// The priority; the highest wins.
    pub priority: i32,
    /// True if it is from the program's source and cannot be changed.
    pub is_const: bool,
    /// The idle timeout in nanoseconds; 0 is never.
    pub idle_timeout_ns: u64,
    /// The position of the action among the table's actions.
    pub action: u32,
    /// The arguments: one value per parameter, of the parameter's width.
    pub args: &'a [Bits],
}

#[cfg(test)]
mod tests;
