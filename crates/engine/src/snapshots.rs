//! The snapshots of a switch's tables that are open ([`crate::control`] makes and reads them).

use crate::entry::InstalledEntry;
use ir::TableId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

/// The entries of a table at the time when [`Switch::snapshot_table`](crate::Switch::snapshot_table) was called. The
/// counts and times of hits are those at the time when an entry is read. Dropping the snapshot frees its memory.
#[derive(Debug)]
pub struct TableSnapshot {
    pub(crate) table: TableId,
    /// The place in the order of insertion from which on entries were inserted after the snapshot.
    pub(crate) end: u64,
    /// The entries that were changed or removed since, as they were at the time of the snapshot, by number.
    pub(crate) kept: Mutex<BTreeMap<u32, InstalledEntry>>,
}

impl TableSnapshot {
    /// Returns the id of the table from which the snapshot was made.
    pub fn table(&self) -> TableId {
        self.table
    }
}

/// The open snapshots of a switch's tables.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    pub(crate) open: BTreeMap<TableId, Vec<Weak<TableSnapshot>>>,
}

impl Snapshots {
    pub(crate) fn add(&mut self, snapshot: &Arc<TableSnapshot>) {
        let of_table = self.open.entry(snapshot.table).or_default();
        of_table.retain(|open| open.strong_count() > 0);
        of_table.push(Arc::downgrade(snapshot));
    }

    pub(crate) fn contains(&self, snapshot: &TableSnapshot) -> bool {
        let of_table = self.open.get(&snapshot.table);
        of_table.is_some_and(|open| {
            open.iter()
                .any(|open| std::ptr::eq(open.as_ptr(), snapshot))
        })
    }
}
