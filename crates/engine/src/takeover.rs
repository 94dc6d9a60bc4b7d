//! The state that a switch takes over, object by object, from the one whose place it takes between two packets.
//!
//! Objects that both programs have (with the same P4Runtime id) in the same shape are moved whole, so the exchange takes no time however
//! much they hold, and counts, buckets, times of hits and idle timers go on. A table whose actions changed needs other records: they are
//! made beforehand, slice by slice, while packets pass ([`Takeover::next_slice`]). What is left has to be written anew.
//!
//! No update may come between [`crate::Switch::facts`] and the exchange.

use crate::entry::Note;
use crate::table::{Conversion, RecordSlice, Table, capacity, record_limbs};
use ir::{ActionCall, ActionProfileId, Program, TableId};
use std::collections::BTreeMap;

/// What decides whether a table can be taken over as it is.
#[derive(Clone, Debug)]
pub struct TableFacts {
    /// Number of entries.
    pub entries: u64,
    /// The default action and its note, unless they are the program's own.
    pub default: Option<(ActionCall, Option<Note>)>,
}

/// A table that is taken over.
#[derive(Debug)]
pub(crate) struct MovedTable {
    pub old: TableId,
    pub new: TableId,
    /// True if the default action, which the control plane changed, is taken over too.
    pub with_default: bool,
    pub conversion: Option<Conversion>,
    /// The number of the first entry that is not converted yet; `None` if all are.
    next: Option<u32>,
}

/// The number of an object in the old program and in the new one.
pub(crate) type Pair = (usize, usize);

/// The objects that a switch takes over as they are when its program is replaced.
#[derive(Debug, Default)]
pub struct Takeover {
    pub(crate) tables: Vec<MovedTable>,
    pub(crate) profiles: Vec<Pair>,
    pub(crate) registers: Vec<Pair>,
    pub(crate) counters: Vec<Pair>,
    pub(crate) meters: Vec<Pair>,
    pub(crate) value_sets: Vec<Pair>,
    pub(crate) digests: Vec<Pair>,
}

/// Returns the pairs of objects of two programs that have the same P4Runtime id and for which `same` returns true, as
/// their positions in `old` and `new`.
fn pairs<T>(
    old: &[T],
    new: &[T],
    id: impl Fn(&T) -> u32,
    same: impl Fn(&T, &T) -> bool,
) -> Vec<Pair> {
    let by_id: BTreeMap<u32, usize> = new
        .iter()
        .enumerate()
        .map(|(at, it)| (id(it), at))
        .collect();
    let old_ones = old.iter().enumerate();
    let found = old_ones.filter_map(|(at, it)| Some((at, *by_id.get(&id(it))?)));
    found.filter(|&(a, b)| same(&old[a], &new[b])).collect()
}

impl Takeover {
    /// Returns which objects a switch that has just been loaded with `program` can take over whole from a switch with
    /// the program `old`. `facts` describe the tables of the old switch, `target` returns the empty tables of the new
    /// one, and `alike` returns whether a table's entries mean the same in both P4Infos.
    pub fn between<'t>(
        old: &Program,
        facts: &[TableFacts],
        program: &Program,
        target: impl Fn(TableId) -> &'t Table,
        alike: impl Fn(TableId, TableId) -> bool,
    ) -> Takeover {
        let mut tables = pairs(&old.tables, &program.tables, |t| t.id, |_, _| true);
        tables.retain(|&(a, b)| {
            same_table(old, &old.tables[a], program, &program.tables[b])
                && facts[a].entries <= capacity(&program.tables[b])
                && !(facts[a].default.is_some() && program.tables[b].const_default_action)
                && alike(TableId(a as u32), TableId(b as u32))
        });
        let same_profile = |a: &ir::ActionProfile, b: &ir::ActionProfile| {
            (a.size, a.selector) == (b.size, b.selector)
        };
        let mut profiles = pairs(
            &old.action_profiles,
            &program.action_profiles,
            |p| p.id,
            same_profile,
        );
        profiles.retain(|&(a, b)| profile_stays(old, a, program, b, &tables));
        tables.retain(|&(a, b)| {
            let own = |table: &ir::Table| table.implementation.map(|it| it.index());
            match (own(&old.tables[a]), own(&program.tables[b])) {
                (None, None) => true,
                (Some(a), Some(b)) => profiles.contains(&(a, b)),
                _ => false,
            }
        });
        let moved = tables.into_iter().map(|(a, b)| {
            let with_default = facts[a].default.is_some();
            moved_table(
                (old, a),
                (program, b),
                target(TableId(b as u32)),
                with_default,
            )
        });
        Takeover {
            tables: moved.collect(),
            profiles,
            registers: pairs(
                &old.registers,
                &program.registers,
                |r| r.id,
                |a, b| (a.width, a.size, a.port_state) == (b.width, b.size, b.port_state),
            ),
            counters: pairs(
                &old.counters,
                &program.counters,
                |c| c.id,
                |a, b| a.size.is_some() && a.size == b.size,
            ),
            meters: pairs(
                &old.meters,
                &program.meters,
                |m| m.id,
                |a, b| a.size.is_some() && (a.size, a.bytes) == (b.size, b.bytes),
            ),
            value_sets: pairs(
                &old.value_sets,
                &program.value_sets,
                |v| v.id,
                |a, b| (&a.widths, a.size) == (&b.widths, b.size),
            ),
            digests: pairs(
                &old.digests,
                &program.digests,
                |d| d.id,
                |a, b| a.widths == b.widths,
            ),
        }
    }

    /// Returns true if a table of the old program is moved as a whole to the new program, with its state.
    pub fn has_table(&self, table: TableId) -> bool {
        self.tables.iter().any(|moved| moved.old == table)
    }

    /// Returns true if an action profile of the old program is moved as a whole to the new program, with its state.
    pub fn has_profile(&self, profile: ActionProfileId) -> bool {
        has(&self.profiles, profile.index())
    }

    /// Returns true if a register of the old program is moved as a whole to the new program, with its state.
    pub fn has_register(&self, number: usize) -> bool {
        has(&self.registers, number)
    }

    /// Returns true if an indexed counter of the old program is moved as a whole to the new program, with its state.
    pub fn has_counter(&self, number: usize) -> bool {
        has(&self.counters, number)
    }

    /// Returns true if an indexed meter of the old program is moved as a whole to the new program, with its state.
    pub fn has_meter(&self, number: usize) -> bool {
        has(&self.meters, number)
    }

    /// Returns true if a value set of the old program is moved as a whole to the new program, with its state.
    pub fn has_value_set(&self, number: usize) -> bool {
        has(&self.value_sets, number)
    }

    /// Returns true if a digest of the old program is moved as a whole to the new program, with its state.
    pub fn has_digest(&self, number: usize) -> bool {
        has(&self.digests, number)
    }

    /// Returns the entries to be converted next with [`Takeover::convert`], as the old switch's table and the number
    /// of the first entry; `None` if all are converted.
    pub fn next_slice(&self) -> Option<(TableId, u32)> {
        let moved = self.tables.iter().find(|moved| moved.next.is_some())?;
        Some((moved.old, moved.next?))
    }

    /// Converts the records of the entries that [`Takeover::next_slice`] named, as
    /// [`Table::records_from`](crate::table::Table::records_from) returned them, to the new table's actions. Fails
    /// with the position of an action that an entry runs and the new table does not have.
    pub fn convert(&mut self, (slice, next): (RecordSlice, Option<u32>)) -> Result<(), u32> {
        let Some(moved) = self.tables.iter_mut().find(|moved| moved.next.is_some()) else {
            return Ok(());
        };
        moved.next = next;
        match &mut moved.conversion {
            Some(conversion) => conversion.add(&slice),
            None => Ok(()),
        }
    }
}

fn has(pairs: &[Pair], old: usize) -> bool {
    pairs.iter().any(|(at, _)| *at == old)
}

/// Returns true if two tables have the same key and the same constant entries, and agree in whether they have a
/// direct counter, a direct meter and idle timeouts.
fn same_table(old: &Program, a: &ir::Table, new: &Program, b: &ir::Table) -> bool {
    let key = |key: &ir::Key| (key.id, key.width, key.kind);
    let by_bytes = |program: &Program, table: &ir::Table| {
        Some(program.meters[table.direct_meter?.index()].bytes)
    };
    a.keys.iter().map(key).eq(b.keys.iter().map(key))
        && a.support_timeout == b.support_timeout
        && a.direct_counter.is_some() == b.direct_counter.is_some()
        && a.direct_meter.is_some() == b.direct_meter.is_some()
        && by_bytes(old, a) == by_bytes(new, b)
        && a.const_entries == b.const_entries
        && constant(old, a).eq(constant(new, b))
}

/// Returns the constant entries of a table: for each its matches, its priority, the P4Runtime id of its action, and
/// the arguments.
fn constant<'a>(
    program: &'a Program,
    table: &'a ir::Table,
) -> impl Iterator<Item = (&'a [ir::KeyMatch], i32, u32, &'a [ir::Bits])> {
    let entries = table.entries.iter();
    let entries = entries.filter(|entry| entry.is_const || table.const_entries);
    entries.map(|entry| {
        let action = &program.actions[entry.action.action.index()];
        (
            &*entry.matches,
            entry.priority,
            action.id,
            &*entry.action.args,
        )
    })
}

/// Returns true if an action profile can be moved as a whole: it means the same in both programs, and all its tables
/// are taken over.
fn profile_stays(old: &Program, a: usize, new: &Program, b: usize, tables: &[Pair]) -> bool {
    let of = |table: &ir::Table, profile: usize| {
        table.implementation.is_some_and(|it| it.index() == profile)
    };
    let mut users = (0..old.tables.len()).filter(|&at| of(&old.tables[at], a));
    users.all(|at| {
        let Some(&(_, to)) = tables.iter().find(|(from, _)| *from == at) else {
            return false;
        };
        let (from, to) = (&old.tables[at], &new.tables[to]);
        let number = |action: &ir::TableAction| action.action;
        of(to, b)
            && from
                .actions
                .iter()
                .map(number)
                .eq(to.actions.iter().map(number))
            && (0..)
                .zip(positions(old, from, new, to))
                .all(|(at, to)| to == Some(at))
    })
}

/// Returns, for each action of table `a`, the position in table `b` of the same action (same id, parameters and
/// scope), or `None` if `b` does not have it.
fn positions(old: &Program, a: &ir::Table, new: &Program, b: &ir::Table) -> Vec<Option<u32>> {
    fn shape(program: &Program, action: &ir::TableAction) -> (u32, Vec<(u32, u32)>) {
        let declared = &program.actions[action.action.index()];
        let params = declared.params.iter();
        let params = params.map(|it| (it.id, program.slots[it.slot.index()].width));
        (declared.id, params.collect())
    }
    let targets: Vec<_> = b
        .actions
        .iter()
        .map(|it| (shape(new, it), it.scope))
        .collect();
    let counterpart = |action: &ir::TableAction| {
        let wanted = (shape(old, action), action.scope);
        targets
            .iter()
            .position(|it| *it == wanted)
            .map(|at| at as u32)
    };
    a.actions.iter().map(counterpart).collect()
}

fn moved_table(
    (old, a): (&Program, usize),
    (new, b): (&Program, usize),
    target: &Table,
    with_default: bool,
) -> MovedTable {
    let (from, to) = (&old.tables[a], &new.tables[b]);
    let positions = positions(old, from, new, to);
    let conversion = Conversion::new(positions, with_default, target);
    let stride = record_limbs(old, from);
    let conversion = Some(conversion).filter(|it| !it.changes_nothing(stride));
    MovedTable {
        old: TableId(a as u32),
        new: TableId(b as u32),
        with_default,
        next: conversion.is_some().then_some(0),
        conversion,
    }
}
