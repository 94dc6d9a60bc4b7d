//! Snapshots of tables: the entries of a table at one moment, read in slices while packets pass and updates go on.
//!
//! Opening one takes no time. An update that changes or removes an entry keeps the entry as it was, once, for every snapshot that
//! is open; an entry that was inserted later is left out. So a snapshot holds at most as much as its table, and mostly nothing.

use super::{ControlError, InstalledEntry};
use crate::Switch;
use crate::refuse;
use crate::snapshots::TableSnapshot;
use ir::TableId;
use std::sync::{Arc, Mutex, PoisonError, Weak};

impl Switch {
    /// Begins to read a table: returns a [`TableSnapshot`], which keeps all present entries unchanged for the reader.
    /// Fails if there is no such table.
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

    /// Returns entries of a snapshot, from place `from` on (0 is the first), and the place at which to continue,
    /// `None` at the end. Looks at up to `most` places, some of which may be empty. Fails with ABORTED if the snapshot
    /// belongs to another switch, or the switch's program was replaced.
    pub fn read_snapshot(
        &self,
        snapshot: &TableSnapshot,
        from: u32,
        most: u32,
    ) -> Result<(Vec<InstalledEntry>, Option<u32>), ControlError> {
        refuse!(
            !self.snapshots().contains(snapshot) => Aborted,
            "the program was replaced while its tables were read"
        );
        let table = snapshot.table;
        let contents = self.runtime().table(table);
        let kept = snapshot.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Number 0 is the default entry's.
        let first = from.saturating_add(1);
        // The highest numbers may be those of entries that are gone.
        let kept_end = kept.last_key_value().map_or(0, |(&number, _)| number + 1);
        let numbers = contents.numbers().max(kept_end);
        let end = numbers.min(first.saturating_add(most.max(1)));
        let entries = (first..end).filter_map(|number| match kept.get(&number) {
            Some(entry) => Some(entry.clone()),
            None => {
                let part = contents.sequence(number)? < snapshot.end;
                part.then(|| self.installed_entry(table, number))
            }
        });
        let next = (end < numbers).then(|| end - 1);
        Ok((entries.collect(), next))
    }

    /// Saves the present state of an entry for every open snapshot that contains it. Must be called before the entry
    /// changes or is removed.
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
