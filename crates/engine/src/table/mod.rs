//! Match-action tables: one structure per key shape behind one face.
//!
//! | key fields                               | structure                                    |
//! |------------------------------------------|----------------------------------------------|
//! | none                                     | nothing matches                              |
//! | exact (and selector)                     | [`keymap`]: open addressing on the packed key |
//! | one lpm of up to 32 bits, the others exact | [`short_lpm`]: multibit trie, direct index   |
//! | one longer lpm, the others exact         | [`lpm`]: tree bitmap                          |
//! | any ternary, range or optional           | [`ternary`]: tuple space with priority pruning |
//!
//! A key is the concatenation of the limbs of its fields, each padded to whole limbs (least significant first) as in
//! [`ir::Layout`]. Among several entries that match, the longest prefix wins in an lpm table; the highest priority wins in a
//! ternary one, and of equal priorities the entry inserted first. (Modifying an entry does not change its place.)
//!
//! This room knows matches and entries; what the control plane may do with them is [`crate::control`]'s.

pub mod keymap;
pub mod lpm;
pub mod numbers;
pub mod short_lpm;
pub mod ternary;

use crate::runtime::CounterData;
use ir::{ActionCall, Bits, KeyMatch, MatchKind};
use keymap::KeyMap;
use lpm::LpmTable;
use short_lpm::ShortLpmTable;
use ternary::{RangeCheck, Rank, TupleSpace};

/// Where each key field lies in the packed key.
#[derive(Clone, Debug)]
pub struct KeyShape {
    fields: Vec<KeyField>,
    limbs: usize,
}

#[derive(Clone, Copy, Debug)]
struct KeyField {
    kind: MatchKind,
    width: u32,
    offset: usize,
    limbs: usize,
}

impl KeyShape {
    /// The shape of a table's key.
    pub fn new(keys: &[ir::Key]) -> KeyShape {
        let mut limbs = 0;
        let fields = keys
            .iter()
            .map(|key| {
                let field = KeyField {
                    kind: key.kind,
                    width: key.width,
                    offset: limbs,
                    limbs: key.width.div_ceil(64) as usize,
                };
                limbs += field.limbs;
                field
            })
            .collect();
        KeyShape { fields, limbs }
    }

    /// Length of a key, in limbs.
    pub fn limbs(&self) -> usize {
        self.limbs
    }

    fn has(&self, kinds: &[MatchKind]) -> bool {
        self.fields.iter().any(|f| kinds.contains(&f.kind))
    }

    /// Ones in the limbs of the fields of this kind.
    fn mask_of(&self, kind: MatchKind) -> Box<[u64]> {
        let mut mask = vec![0; self.limbs];
        for field in self.fields.iter().filter(|f| f.kind == kind) {
            field.slice_mut(&mut mask).fill(u64::MAX);
        }
        mask.into()
    }

    /// The values of the fields of a packed key.
    pub fn unpack(&self, key: &[u64]) -> Vec<Bits> {
        self.fields
            .iter()
            .map(|f| Bits::from_limbs(f.width, &key[f.offset..f.offset + f.limbs]))
            .collect()
    }
}

impl KeyField {
    fn slice_mut<'a>(&self, limbs: &'a mut [u64]) -> &'a mut [u64] {
        &mut limbs[self.offset..self.offset + self.limbs]
    }
}

/// The matches of an entry in packed form.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    value: Vec<u64>,
    mask: Vec<u64>,
    ranges: Vec<RangeCheck>,
    /// Of the lpm field, if any.
    prefix_len: u32,
}

impl Pattern {
    /// `matches` has the kinds and widths of `shape`, in canonical form.
    fn new(shape: &KeyShape, matches: &[KeyMatch]) -> Pattern {
        let mut pattern = Pattern {
            value: vec![0; shape.limbs],
            mask: vec![0; shape.limbs],
            ranges: Vec::new(),
            prefix_len: 0,
        };
        for (field, key_match) in shape.fields.iter().zip(matches) {
            pattern.set(field, key_match);
        }
        pattern
    }

    fn set(&mut self, field: &KeyField, key_match: &KeyMatch) {
        let ones = || Bits::ones(field.width);
        let (value, mask) = match key_match {
            KeyMatch::Exact(value) | KeyMatch::Optional(Some(value)) => (value.clone(), ones()),
            KeyMatch::Optional(None) => (Bits::zero(field.width), Bits::zero(field.width)),
            KeyMatch::Ternary { value, mask } => (value.clone(), mask.clone()),
            KeyMatch::Lpm { value, prefix_len } => {
                self.prefix_len = *prefix_len;
                (value.clone(), Bits::prefix_mask(field.width, *prefix_len))
            }
            KeyMatch::Range { low, high } => self.set_range(field, low, high),
        };
        field
            .slice_mut(&mut self.value)
            .copy_from_slice(value.limbs());
        field
            .slice_mut(&mut self.mask)
            .copy_from_slice(mask.limbs());
    }

    /// Notes the bounds; gives the leading bits that they share.
    fn set_range(&mut self, field: &KeyField, low: &Bits, high: &Bits) -> (Bits, Bits) {
        let differing = Bits::binary(ir::BinaryOp::Xor, low, high).bit_length();
        let mask = Bits::prefix_mask(field.width, field.width - differing);
        let shared = low.and(&mask);
        let covers_shared_prefix =
            low == &shared && high == &Bits::binary(ir::BinaryOp::Or, &shared, &mask.not());
        if !covers_shared_prefix {
            self.ranges.push(RangeCheck {
                offset: field.offset,
                low: low.limbs().into(),
                high: high.limbs().into(),
            });
        }
        (shared, mask)
    }
}

#[derive(Clone, Debug)]
enum Matcher {
    /// No key field: nothing can be inserted and nothing matches.
    Keyless,
    /// With the mask that hides selector fields, if there are any.
    Exact(KeyMap, Option<Box<[u64]>>),
    ShortLpm(ShortLpmTable),
    Lpm(LpmTable),
    Ternary(TupleSpace),
}

impl Matcher {
    fn new(shape: &KeyShape) -> Matcher {
        use MatchKind::*;
        if shape.limbs == 0 {
            Matcher::Keyless
        } else if shape.has(&[Ternary, Range, Optional]) {
            Matcher::Ternary(TupleSpace::new(shape.limbs))
        } else if let Some(field) = shape.fields.iter().find(|f| f.kind == Lpm) {
            let (offset, width) = (field.offset, field.width);
            let exact = shape.mask_of(Exact);
            match width <= 32 {
                true => Matcher::ShortLpm(ShortLpmTable::new(offset, width, exact)),
                false => Matcher::Lpm(LpmTable::new(offset, width, exact)),
            }
        } else {
            let selectors = shape.has(&[Selector]).then(|| shape.mask_of(Exact));
            Matcher::Exact(KeyMap::new(shape.limbs), selectors)
        }
    }

    #[inline]
    fn lookup(&self, key: &[u64]) -> Option<u32> {
        match self {
            Matcher::Keyless => None,
            Matcher::Exact(map, None) => map.get(key),
            Matcher::Exact(map, Some(mask)) => map.get_masked(key, mask),
            Matcher::ShortLpm(table) => Some(table.lookup(key)).filter(|&entry| entry != 0),
            Matcher::Lpm(table) => table.lookup(key),
            Matcher::Ternary(space) => space.lookup(key),
        }
    }
}

/// An installed entry, but for what a lookup needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// One match per key field.
    pub matches: Vec<KeyMatch>,
    /// The highest number wins.
    pub priority: i32,
    /// From the source; the control plane may not change it.
    pub is_const: bool,
    /// Nanoseconds without a hit after which the control plane is told; 0 is never.
    pub idle_timeout_ns: u64,
    /// Place in the order of insertion.
    pub sequence: u64,
    /// The hit time after which idleness was reported already.
    idle_reported_ps: Option<u64>,
}

/// All there is to know of an entry; what an undo needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntrySnapshot {
    installed: Installed,
    record: Vec<u64>,
    counter: CounterData,
    last_hit_ps: u64,
}

/// The result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup<'a> {
    /// Whether an entry was found.
    pub hit: bool,
    /// Position in [`ir::Table::actions`] of the action to run.
    pub action: u32,
    /// Its arguments: the limbs of each parameter in turn, least significant first.
    pub args: &'a [u64],
    /// The entry, for [`Table::entry`]; 0 is the default action.
    pub entry: u32,
}

/// A table's contents.
#[derive(Clone, Debug)]
pub struct Table {
    shape: KeyShape,
    matcher: Matcher,
    /// By entry, `stride` limbs: position of the action, arguments. Entry 0 is the default action.
    records: Vec<u64>,
    stride: usize,
    /// Widths of the parameters of each of the table's actions.
    parameter_widths: Vec<Vec<u32>>,
    /// Limbs of the arguments of each of the table's actions.
    arg_limbs: Vec<u32>,
    /// By entry; `None` for the default action and for free numbers.
    installed: Vec<Option<Installed>>,
    free: Vec<u32>,
    len: usize,
    next_sequence: u64,
    /// By entry; empty without a direct counter.
    counters: Vec<CounterData>,
    has_counter: bool,
    /// By entry; empty when the table has no idle timeouts.
    last_hit_ps: Vec<u64>,
    has_timeout: bool,
}

impl Table {
    /// The table as the program starts it: with its constant and initial entries.
    pub fn new(program: &ir::Program, table: &ir::Table) -> Table {
        let shape = KeyShape::new(&table.keys);
        let parameter_widths: Vec<Vec<u32>> = table
            .actions
            .iter()
            .map(|a| {
                let params = &program.actions[a.action.index()].params;
                params
                    .iter()
                    .map(|p| program.slots[p.slot.index()].width)
                    .collect()
            })
            .collect();
        let arg_limbs: Vec<u32> = parameter_widths
            .iter()
            .map(|widths| widths.iter().map(|w| w.div_ceil(64)).sum())
            .collect();
        let stride = 1 + arg_limbs.iter().copied().max().unwrap_or(0) as usize;
        let mut result = Table {
            matcher: Matcher::new(&shape),
            shape,
            records: vec![0; stride],
            stride,
            parameter_widths,
            arg_limbs,
            installed: vec![None],
            free: Vec::new(),
            len: 0,
            next_sequence: 0,
            counters: vec![CounterData::default()],
            has_counter: table.direct_counter.is_some(),
            last_hit_ps: vec![0],
            has_timeout: table.support_timeout,
        };
        let position = |call: &ActionCall| {
            let at = table.actions.iter().position(|a| a.action == call.action);
            at.unwrap_or(0) as u32
        };
        result.set_default(position(&table.default_action), &table.default_action.args);
        for entry in &table.entries {
            result.insert(
                NewEntry {
                    matches: entry.matches.clone(),
                    priority: entry.priority,
                    is_const: table.const_entries,
                    idle_timeout_ns: 0,
                    action: position(&entry.action),
                    args: &entry.action.args,
                },
                0,
            );
        }
        result
    }

    /// Looks `key` up; counts and notes the time when there is a hit.
    #[inline]
    pub fn lookup(&mut self, key: &[u64], packet_bytes: usize, now_ps: u64) -> Lookup<'_> {
        let entry = self.matcher.lookup(key).unwrap_or(0);
        if entry != 0 {
            if self.has_counter {
                self.counters[entry as usize].count(packet_bytes);
            }
            if self.has_timeout {
                self.last_hit_ps[entry as usize] = now_ps;
            }
        }
        let at = entry as usize * self.stride;
        let record = &self.records[at..at + self.stride];
        let action = record[0] as u32;
        let n = self.arg_limbs.get(action as usize).copied().unwrap_or(0) as usize;
        Lookup {
            hit: entry != 0,
            action,
            args: &record[1..1 + n],
            entry,
        }
    }

    /// Where the key's fields lie.
    pub fn shape(&self) -> &KeyShape {
        &self.shape
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The entry with these matches and priority.
    pub fn find(&self, matches: &[KeyMatch], priority: i32) -> Option<u32> {
        let pattern = Pattern::new(&self.shape, matches);
        match &self.matcher {
            Matcher::Keyless => None,
            Matcher::Exact(map, _) => map.get(&pattern.value),
            Matcher::ShortLpm(table) => table.find(&pattern.value, pattern.prefix_len),
            Matcher::Lpm(table) => table.find(&pattern.value, pattern.prefix_len),
            Matcher::Ternary(space) => {
                let mut candidates = space.candidates(&pattern.value, &pattern.mask);
                candidates.find(|&entry| {
                    self.entry(entry)
                        .is_some_and(|e| e.priority == priority && e.matches == matches)
                })
            }
        }
    }

    /// An installed entry.
    pub fn entry(&self, entry: u32) -> Option<&Installed> {
        self.installed.get(entry as usize)?.as_ref()
    }

    /// The entries in the order in which they were inserted.
    pub fn entries(&self) -> Vec<u32> {
        let mut entries: Vec<(u64, u32)> = self
            .installed
            .iter()
            .enumerate()
            .filter_map(|(i, e)| e.as_ref().map(|e| (e.sequence, i as u32)))
            .collect();
        entries.sort_unstable();
        entries.into_iter().map(|(_, entry)| entry).collect()
    }

    /// Position in the table's actions and arguments of an entry, or of the default action (0).
    pub fn action(&self, entry: u32) -> (u32, Vec<Bits>) {
        let record = &self.records[entry as usize * self.stride..][..self.stride];
        let mut at = 1;
        let widths = self.parameter_widths.get(record[0] as usize);
        let args = widths
            .into_iter()
            .flatten()
            .map(|&width| {
                let limbs = width.div_ceil(64) as usize;
                at += limbs;
                Bits::from_limbs(width, &record[at - limbs..at])
            })
            .collect();
        (record[0] as u32, args)
    }

    /// The direct counter's cell of an entry.
    pub fn counter_mut(&mut self, entry: u32) -> Option<&mut CounterData> {
        if !self.has_counter {
            return None;
        }
        self.counters.get_mut(entry as usize)
    }

    /// The direct counter's cell of an entry.
    pub fn counter(&self, entry: u32) -> Option<CounterData> {
        if !self.has_counter {
            return None;
        }
        self.counters.get(entry as usize).copied()
    }

    /// When the entry was last hit (or installed), if the table has idle timeouts.
    pub fn last_hit_ps(&self, entry: u32) -> Option<u64> {
        if !self.has_timeout {
            return None;
        }
        self.last_hit_ps.get(entry as usize).copied()
    }

    /// Adds an entry that [`Table::find`] does not find; gives its number. The table must have key fields.
    pub fn insert(&mut self, new: NewEntry<'_>, now_ps: u64) -> u32 {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let mut record = vec![0; self.stride];
        fill_record(&mut record, new.action, new.args);
        self.restore(EntrySnapshot {
            installed: Installed {
                matches: new.matches,
                priority: new.priority,
                is_const: new.is_const,
                idle_timeout_ns: new.idle_timeout_ns,
                sequence,
                idle_reported_ps: None,
            },
            record,
            counter: CounterData::default(),
            last_hit_ps: now_ps,
        })
    }

    /// Puts an entry (back) with all it had, its place in the order included; gives its number.
    pub fn restore(&mut self, snapshot: EntrySnapshot) -> u32 {
        let entry = self.free.pop().unwrap_or_else(|| {
            self.installed.push(None);
            self.counters.push(CounterData::default());
            self.last_hit_ps.push(0);
            self.records.resize(self.records.len() + self.stride, 0);
            self.installed.len() as u32 - 1
        });
        let at = entry as usize;
        let pattern = Pattern::new(&self.shape, &snapshot.installed.matches);
        let rank = Rank::new(snapshot.installed.priority, snapshot.installed.sequence);
        match &mut self.matcher {
            Matcher::Keyless => {}
            Matcher::Exact(map, _) => {
                map.insert(&pattern.value, entry);
            }
            Matcher::ShortLpm(table) => table.insert(&pattern.value, pattern.prefix_len, entry),
            Matcher::Lpm(table) => table.insert(&pattern.value, pattern.prefix_len, entry),
            Matcher::Ternary(space) => {
                space.insert(
                    &pattern.value,
                    &pattern.mask,
                    pattern.ranges.into(),
                    rank,
                    entry,
                );
            }
        }
        self.records[at * self.stride..][..self.stride].copy_from_slice(&snapshot.record);
        self.installed[at] = Some(snapshot.installed);
        self.counters[at] = snapshot.counter;
        self.last_hit_ps[at] = snapshot.last_hit_ps;
        self.len += 1;
        entry
    }

    /// Removes an entry; gives all it had.
    pub fn remove(&mut self, entry: u32) -> Option<EntrySnapshot> {
        let snapshot = self.snapshot(entry)?;
        let pattern = Pattern::new(&self.shape, &snapshot.installed.matches);
        match &mut self.matcher {
            Matcher::Keyless => {}
            Matcher::Exact(map, _) => {
                map.remove(&pattern.value);
            }
            Matcher::ShortLpm(table) => {
                table.remove(&pattern.value, pattern.prefix_len);
            }
            Matcher::Lpm(table) => {
                table.remove(&pattern.value, pattern.prefix_len);
            }
            Matcher::Ternary(space) => space.remove(&pattern.value, &pattern.mask, entry),
        }
        self.installed[entry as usize] = None;
        self.free.push(entry);
        self.len -= 1;
        Some(snapshot)
    }

    /// All that an entry has.
    pub fn snapshot(&self, entry: u32) -> Option<EntrySnapshot> {
        let at = entry as usize;
        Some(EntrySnapshot {
            installed: self.entry(entry)?.clone(),
            record: self.records[at * self.stride..][..self.stride].to_vec(),
            counter: self.counters[at],
            last_hit_ps: self.last_hit_ps[at],
        })
    }

    /// Changes what an entry does and its idle timeout.
    pub fn modify(&mut self, entry: u32, action: u32, args: &[Bits], idle_timeout_ns: u64) {
        let at = entry as usize * self.stride;
        fill_record(&mut self.records[at..at + self.stride], action, args);
        if let Some(Some(installed)) = self.installed.get_mut(entry as usize) {
            installed.idle_timeout_ns = idle_timeout_ns;
        }
    }

    /// Makes an entry again what it was in an earlier snapshot of it; its counter goes on.
    pub fn reset(&mut self, entry: u32, snapshot: EntrySnapshot) {
        let at = entry as usize * self.stride;
        self.records[at..at + self.stride].copy_from_slice(&snapshot.record);
        self.installed[entry as usize] = Some(snapshot.installed);
    }

    /// Changes the default action.
    pub fn set_default(&mut self, action: u32, args: &[Bits]) {
        fill_record(&mut self.records[..self.stride], action, args);
    }

    /// Entries that have not been hit for as long as their idle timeout and were not reported since.
    pub fn take_idle(&mut self, now_ps: u64) -> Vec<u32> {
        if !self.has_timeout {
            return Vec::new();
        }
        let mut idle: Vec<u32> = Vec::new();
        for (i, installed) in self.installed.iter_mut().enumerate() {
            let Some(entry) = installed.as_mut().filter(|e| e.idle_timeout_ns != 0) else {
                continue;
            };
            let hit_ps = self.last_hit_ps[i];
            let timeout_ps = u128::from(entry.idle_timeout_ns) * 1000;
            let expired = u128::from(now_ps.saturating_sub(hit_ps)) >= timeout_ps;
            if expired && entry.idle_reported_ps != Some(hit_ps) {
                entry.idle_reported_ps = Some(hit_ps);
                idle.push(i as u32);
            }
        }
        idle.sort_unstable_by_key(|&i| self.entry(i).map(|e| e.sequence));
        idle
    }
}

/// An entry to be inserted.
#[derive(Clone, Debug)]
pub struct NewEntry<'a> {
    /// One canonical match per key field, of its kind and width.
    pub matches: Vec<KeyMatch>,
    /// The highest number wins.
    pub priority: i32,
    /// From the source.
    pub is_const: bool,
    /// 0 is never.
    pub idle_timeout_ns: u64,
    /// Position in the table's actions.
    pub action: u32,
    /// One value per parameter, of its width.
    pub args: &'a [Bits],
}

fn fill_record(record: &mut [u64], action: u32, args: &[Bits]) {
    record.fill(0);
    record[0] = u64::from(action);
    let mut at = 1;
    for arg in args {
        let limbs = arg.limbs();
        record[at..at + limbs.len()].copy_from_slice(limbs);
        at += limbs.len();
    }
}

#[cfg(test)]
mod tests;
