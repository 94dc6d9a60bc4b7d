//! Snapshots of tables: what a table held at one moment, read in slices while packets pass and updates go on.
//!
//! Opening one takes no time. An update that changes or removes an entry keeps the entry as it was, once, for every snapshot that
//! is open; an entry that was inserted later is left out. So a snapshot holds at most as much as its table, and mostly nothing.

use super::{ControlError, ControlErrorCode, InstalledEntry};
use crate::Switch;
use ir::TableId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What a table held when [`Switch::snapshot_table`] was called, but for counts and times of hits, which are those of the moment at
/// which an entry is read. Dropping it frees what it keeps.
#[derive(Debug)]
pub struct TableSnapshot {
    table: TableId,
    /// Entries from this place in the order of insertion on are not part of it.
    end: u64,
    /// By number, entries that have changed since.
    kept: Mutex<BTreeMap<u32, InstalledEntry>>,
}

impl TableSnapshot {
    /// Of which table.
    pub fn table(&self) -> TableId {
        self.table
    }
}

/// The snapshots of a switch that are open.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    open: BTreeMap<TableId, Vec<Weak<TableSnapshot>>>,
}

impl Snapshots {
    fn add(&mut self, snapshot: &Arc<TableSnapshot>) {
        let of_table = self.open.entry(snapshot.table).or_default();
        of_table.retain(|open| open.strong_count() > 0);
        of_table.push(Arc::downgrade(snapshot));
    }

    fn contains(&self, snapshot: &TableSnapshot) -> bool {
        let of_table = self.open.get(&snapshot.table);
        of_table.is_some_and(|open| {
            open.iter()
                .any(|open| std::ptr::eq(open.as_ptr(), snapshot))
        })
    }
}

impl Switch {
    /// Begins to read a table: see [`TableSnapshot`].
    pub fn snapshot_table(&mut self, table: TableId) -> Result<Arc<TableSnapshot>, ControlError> {
        self.declared_table(table)?;
        let snapshot = Arc::new(TableSnapshot {
            table,
            end: self.runtime().table(table).next_sequence(),
            kept: Mutex::default(),
        });
        self.snapshots_mut().add(&snapshot);
        Ok(snapshot)
    }

    /// The entries of a snapshot from a place in it (0 is the first) on, and the place that follows, `None` at the end. It looks at
    /// up to `most` places, of which some may be empty. ABORTED if the snapshot is of another switch, or of one whose program was
    /// replaced.
    pub fn read_snapshot(
        &self,
        snapshot: &TableSnapshot,
        from: u32,
        most: u32,
    ) -> Result<(Vec<InstalledEntry>, Option<u32>), ControlError> {
        if !self.snapshots().contains(snapshot) {
            return Err(ControlError::new(
                ControlErrorCode::Aborted,
                "the program was replaced while its tables were read",
            ));
        }
        let table = snapshot.table;
        let contents = self.runtime().table(table);
        let kept = snapshot.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Number 0 is the default entry's.
        let first = from.saturating_add(1);
        let end = contents.numbers().min(first.saturating_add(most.max(1)));
        let entries = (first..end).filter_map(|number| match kept.get(&number) {
            Some(entry) => Some(entry.clone()),
            None => {
                let part = contents.sequence(number)? < snapshot.end;
                part.then(|| self.installed_entry(table, number))
            }
        });
        let next = (end < contents.numbers()).then(|| end - 1);
        Ok((entries.collect(), next))
    }

    /// To be called before an entry changes or goes.
    pub(super) fn keep_for_snapshots(&mut self, table: TableId, number: u32) {
        let Some(open) = self.snapshots_mut().open.get_mut(&table) else {
            return;
        };
        open.retain(|open| open.strong_count() > 0);
        if open.is_empty() {
            self.snapshots_mut().open.remove(&table);
            return;
        }
        let open: Vec<Arc<TableSnapshot>> = open.iter().filter_map(Weak::upgrade).collect();
        let Some(sequence) = self.runtime().table(table).sequence(number) else {
            return;
        };
        for snapshot in open {
            let mut kept = snapshot.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if sequence < snapshot.end && !kept.contains_key(&number) {
                kept.insert(number, self.installed_entry(table, number));
            }
        }
    }
}
