//! The way from one pipeline to another: a switch whose program has just been loaded takes over the state of the one that it replaces.
//!
//! Most of it moves ([`engine::takeover`]). The entities of what does not, because its shape changed, are written to the new switch, by P4Runtime
//! ids, before it takes its place. So all that is done to the old switch is to copy slices of it.

use crate::entities::{TRANSFERS, table};
use crate::errors::invalid;
use crate::pipeline::Pipeline;
use crate::transfer::{Place, Plans, Transfer};
use crate::write::Batch;
use engine::Switch;
use engine::control::{ControlError, ControlErrorCode, Entry, InstalledEntry};
use engine::table::RecordSlice;
use engine::takeover::{TableFacts, Takeover};
use ir::TableId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Prepares the replacement of a switch's pipeline by another one that keeps the state. Until it is done, the old
/// switch must not be updated.
#[derive(Debug)]
pub struct Reconciliation {
    old: Arc<Pipeline>,
    new: Arc<Pipeline>,
    moves: Takeover,
    facts: Vec<TableFacts>,
    /// The entries of the old tables that cannot be taken over as they are.
    entries: BTreeMap<TableId, Vec<InstalledEntry>>,
    /// How far the other objects have been read: the kind, and the place within it.
    at: (usize, Place),
    plans: Plans,
}

impl Reconciliation {
    /// Begins to prepare a switch to take the place of another. `facts` describe the tables of the old switch, and
    /// `prepared` has just been loaded with the new pipeline's program. Strings that the old pipeline has assigned to
    /// numbers keep their meaning.
    pub fn new(
        new: Arc<Pipeline>,
        old: Arc<Pipeline>,
        facts: Vec<TableFacts>,
        prepared: &Switch,
    ) -> Reconciliation {
        for (uri, translation) in &new.info.translations {
            if let Some(other) = old.info.translations.get(uri) {
                translation.inherit(other);
            }
        }
        let alike = |a, b| table::alike(&old, a, &new, b);
        let target = |table| prepared.runtime().table(table);
        let moves = Takeover::between(&old.program, &facts, prepared.program(), target, alike);
        Reconciliation {
            moves,
            facts,
            old,
            new,
            entries: BTreeMap::new(),
            at: (0, (0, 0)),
            plans: Vec::new(),
        }
    }

    /// Returns the old switch's table and the number of the entry from which on entries are to be converted next
    /// ([`Self::convert`]); `None` when all tables are done.
    pub fn next_slice(&self) -> Option<(TableId, u32)> {
        self.moves.next_slice()
    }

    /// Converts the entries of a slice, which was copied from the old switch's table, to the new program's numbering
    /// of actions. Fails with INVALID_ARGUMENT if an entry has an action that the new program's table does not have.
    pub fn convert(&mut self, slice: (RecordSlice, Option<u32>)) -> Result<(), ControlError> {
        let Some((table, _)) = self.moves.next_slice() else {
            return Ok(());
        };
        self.moves.convert(slice).map_err(|position| {
            let table = &self.old.program.tables[table.index()];
            let action = table.actions.get(position as usize);
            let name = action.map_or("", |it| &self.old.program.actions[it.action.index()].name);
            invalid(format!(
                "the existing state cannot be preserved: table '{}': entries run '{name}', which is not one of its actions any more, or has \
                 other parameters or uses",
                table.name
            ))
        })
    }

    /// Returns the tables of the old pipeline that cannot be moved as a whole, so that their entries must be copied
    /// with [`Reconciliation::take_entries`].
    pub fn tables_to_copy(&self) -> Vec<TableId> {
        let tables = self.old.info.tables.list.iter().map(|it| it.table_id());
        tables.filter(|it| !self.moves.has_table(*it)).collect()
    }

    /// Adds entries of a table to those to be copied, in the order in which they were inserted.
    pub fn take_entries(&mut self, table: TableId, entries: Vec<InstalledEntry>) {
        self.entries.entry(table).or_default().extend(entries);
    }

    /// Plans to copy some of the objects other than tables that cannot be moved as a whole. Returns whether more
    /// remain. [`Reconciliation::write`] must be called after each step. Fails if the new program has no place for
    /// the state.
    pub fn read_some(&mut self, old_switch: &Switch) -> Result<bool, ControlError> {
        let (kind, place) = self.at;
        let Some(keep) = TRANSFERS.get(kind) else {
            return Ok(false);
        };
        let mut transfer = self.transfer();
        let next = keep(&mut transfer, old_switch, place)?;
        self.plans = transfer.plans;
        self.at = next.map_or((kind + 1, (0, 0)), |place| (kind, place));
        Ok(true)
    }

    fn transfer(&self) -> Transfer<'_> {
        Transfer {
            old: &self.old,
            new: &self.new,
            moves: &self.moves,
            plans: Vec::new(),
        }
    }

    /// Deletes the entries with which the new program initialised the tables whose entries are to be copied. Fails
    /// with INVALID_ARGUMENT if such a table of the old program has entries and is missing in the new one or has
    /// another key there. Must be called after all entries were added.
    pub fn clear(&mut self, prepared: &mut Switch) -> Result<(), ControlError> {
        let initial = initial_entries(prepared)?;
        let mut transfer = self.transfer();
        table::clear(&mut transfer, &self.entries, initial)?;
        self.plans = transfer.plans;
        self.write(prepared)
    }

    /// Writes the entries that were added with [`Reconciliation::take_entries`] to the prepared switch. Comes last,
    /// since entries refer to members. Fails with INVALID_ARGUMENT if an entry is refused.
    pub fn write_entries(&mut self, prepared: &mut Switch) -> Result<(), ControlError> {
        for (id, entries) in std::mem::take(&mut self.entries) {
            let mut transfer = self.transfer();
            let default = self.facts[id.index()].default.as_ref();
            table::transfer(&mut transfer, id, default, &entries)?;
            self.plans = transfer.plans;
            self.write(prepared)?;
        }
        Ok(())
    }

    /// Applies the planned updates to the prepared switch. Fails with INVALID_ARGUMENT if one is refused.
    pub fn write(&mut self, prepared: &mut Switch) -> Result<(), ControlError> {
        let mut batch = Batch::of(self.new.clone(), std::mem::take(&mut self.plans));
        batch.apply_atomic(prepared);
        let mut failures = batch.take_failures().into_iter();
        match failures.find(|(_, error)| error.code != ControlErrorCode::Aborted) {
            None => Ok(()),
            Some((_, error)) => Err(invalid(format!(
                "the existing state cannot be preserved: {error}"
            ))),
        }
    }

    /// Ends the preparation: copies the clients' data about objects to the new pipeline, and returns the list of
    /// objects that the prepared switch takes over whole. Must be called when the prepared switch takes the place of
    /// the old one.
    pub fn finish(self) -> Takeover {
        self.new.inherit_notes(&self.old, &self.moves);
        self.moves
    }
}

/// Returns the entries of all tables of a switch except for constant ones, each with its table.
fn initial_entries(switch: &Switch) -> Result<Vec<(TableId, Entry)>, ControlError> {
    let mut found = Vec::new();
    for table in (0..switch.program().tables.len() as u32).map(TableId) {
        let entries = switch.read_entries(table)?.into_iter();
        let entries = entries.filter(|read: &InstalledEntry| !read.is_const);
        found.extend(entries.map(|read| (table, read.entry)));
    }
    Ok(found)
}
