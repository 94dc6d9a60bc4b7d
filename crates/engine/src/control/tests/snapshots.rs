//! A snapshot is what the table held when it was opened, whatever happens while it is read.

use super::*;
use crate::control::{InstalledEntry, TableSnapshot};
use proptest::prelude::*;

const TABLE: TableId = TableId(0);

/// A change between two slices.
#[derive(Clone, Debug)]
enum Step {
    Insert(u64, u64),
    Modify(u64, u64),
    Delete(u64),
    /// Inserts and deletes that are undone.
    RolledBack(Vec<u64>),
    Read(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0u64..24;
    let step = prop_oneof![
        (key.clone(), 0u64..512).prop_map(|(key, port)| Step::Insert(key, port)),
        (key.clone(), 0u64..512).prop_map(|(key, port)| Step::Modify(key, port)),
        key.clone().prop_map(Step::Delete),
        prop::collection::vec(key, 0..6).prop_map(Step::RolledBack),
        (1u32..5).prop_map(Step::Read),
    ];
    prop::collection::vec(step, 0..80)
}

fn apply(switch: &mut Switch, step: &Step) {
    // Whether it is refused does not matter.
    let _ = match step {
        Step::Insert(key, port) => switch.insert_entry(TABLE, forward(exact(*key), 0, *port)),
        Step::Modify(key, port) => switch.modify_entry(TABLE, forward(exact(*key), 0, *port)),
        Step::Delete(key) => switch.delete_entry(TABLE, &exact(*key), 0),
        Step::RolledBack(keys) => {
            let mut updates: Vec<Update> = keys
                .iter()
                .map(|&key| delete_or_insert(switch, key))
                .collect();
            updates.push(Update {
                operation: Operation::Delete,
                entity: Entity::TableEntry {
                    table: TABLE,
                    entry: forward(exact(99), 0, 0),
                },
            });
            let results = switch.write_batch(updates, Atomicity::RollbackOnError);
            assert!(results.iter().any(Result::is_err));
            Ok(())
        }
        Step::Read(_) => Ok(()),
    };
}

fn delete_or_insert(switch: &Switch, key: u64) -> Update {
    let there = switch.read_entry(TABLE, &exact(key), 0).is_ok();
    Update {
        operation: if there {
            Operation::Delete
        } else {
            Operation::Insert
        },
        entity: Entity::TableEntry {
            table: TABLE,
            entry: forward(exact(key), 0, 7),
        },
    }
}

fn key_of(entry: &InstalledEntry) -> String {
    format!("{:?}", entry.entry.matches)
}

fn sorted(mut entries: Vec<InstalledEntry>) -> Vec<InstalledEntry> {
    entries.sort_by_key(key_of);
    entries
}

fn rest(switch: &Switch, snapshot: &TableSnapshot, place: Option<u32>) -> Vec<InstalledEntry> {
    let mut read = Vec::new();
    let mut place = place;
    while let Some(from) = place {
        let (entries, next) = switch.read_snapshot(snapshot, from, 3).unwrap();
        read.extend(entries);
        place = next;
    }
    read
}

proptest! {
    #[test]
    fn a_snapshot_holds_what_the_table_held(before in steps(), during in steps()) {
        let mut switch = switch();
        for step in &before {
            apply(&mut switch, step);
        }
        let expected = sorted(switch.read_entries(TABLE).unwrap());
        let snapshot = switch.snapshot_table(TABLE).unwrap();
        let other = switch.snapshot_table(TABLE).unwrap();
        let mut read = Vec::new();
        let mut place = Some(0);
        for step in &during {
            apply(&mut switch, step);
            if let (Step::Read(most), Some(from)) = (step, place) {
                let (entries, next) = switch.read_snapshot(&snapshot, from, *most).unwrap();
                read.extend(entries);
                place = next;
            }
        }
        read.extend(rest(&switch, &snapshot, place));
        prop_assert_eq!(&sorted(read), &expected);
        prop_assert_eq!(&sorted(rest(&switch, &other, Some(0))), &expected);
        drop((snapshot, other));
        let now = switch.snapshot_table(TABLE).unwrap();
        let all = sorted(switch.read_entries(TABLE).unwrap());
        prop_assert_eq!(sorted(rest(&switch, &now, Some(0))), all);
    }
}

#[test]
fn a_snapshot_is_of_one_switch() {
    let (mut one, other) = (switch(), switch());
    let snapshot = one.snapshot_table(TABLE).unwrap();
    let refused = other.read_snapshot(&snapshot, 0, 8).unwrap_err();
    assert_eq!(refused.code, Aborted);
    assert_eq!(one.read_snapshot(&snapshot, 0, 8).unwrap(), (vec![], None));
    assert_eq!(
        one.read_snapshot(&snapshot, u32::MAX, u32::MAX).unwrap(),
        (vec![], None)
    );
}

#[test]
fn what_a_snapshot_keeps_goes_with_it() {
    let mut switch = switch();
    switch.insert_entry(TABLE, forward(exact(1), 0, 1)).unwrap();
    let snapshot = switch.snapshot_table(TABLE).unwrap();
    let kept = std::sync::Arc::downgrade(&snapshot);
    switch.modify_entry(TABLE, forward(exact(1), 0, 2)).unwrap();
    assert_eq!(rest(&switch, &snapshot, Some(0)), [switch_entry(1)]);
    drop(snapshot);
    assert!(kept.upgrade().is_none());
    switch.modify_entry(TABLE, forward(exact(1), 0, 3)).unwrap();
}

fn switch_entry(port: u64) -> InstalledEntry {
    let mut switch = switch();
    switch
        .insert_entry(TABLE, forward(exact(1), 0, port))
        .unwrap();
    switch.read_entries(TABLE).unwrap().remove(0)
}
