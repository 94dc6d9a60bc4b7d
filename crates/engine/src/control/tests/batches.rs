//! Batches of updates: all of one, or as many of it as can be.

use super::*;

/// Returns everything that a batch can change, as one text for comparison.
fn observe(switch: &Switch) -> String {
    let entries: Vec<_> = (0..5).map(|t| switch.read_entries(TableId(t))).collect();
    let defaults: Vec<_> = (0..5).map(|t| switch.default_action(TableId(t))).collect();
    let groups: Vec<_> = switch.multicast_groups().collect();
    let sessions: Vec<_> = switch.clone_sessions().collect();
    let members = switch.value_set_members(ValueSetId(0));
    let register = switch.read_register(RegisterId(0), 0);
    let counter = switch.read_counter(CounterId(0), 0);
    let meter = switch.read_meter(MeterId(0), 0);
    format!(
        "{entries:?}{defaults:?}{groups:?}{sessions:?}{members:?}{register:?}{counter:?}{meter:?}"
    )
}

fn batch() -> Vec<Update> {
    let session = CloneSession {
        session_id: 1,
        replicas: vec![],
        packet_length_bytes: 0,
        class_of_service: 0,
    };
    let config = MeterConfig {
        cir: 1,
        cburst: 1,
        pir: 1,
        pburst: 1,
    };
    let entry = |value, port| Entity::TableEntry {
        table: EXACT,
        entry: forward(exact(value), 0, port),
    };
    let call = ActionCall {
        action: FORWARD,
        args: vec![bits(9, 3)],
    };
    let data = CounterData {
        packets: 1,
        bytes: 1,
    };
    use Operation::*;
    [
        (Modify, entry(1, 9)),
        (Delete, entry(1, 9)),
        (Insert, entry(2, 9)),
        (Insert, entry(3, 9)),
        (Delete, entry(2, 9)),
        (Insert, entry(1, 4)),
        (
            Modify,
            Entity::DefaultAction {
                table: EXACT,
                action: Some(call),
                note: None,
            },
        ),
        (
            Modify,
            Entity::Counter {
                counter: CounterId(0),
                index: Some(0),
                data,
            },
        ),
        (
            Modify,
            Entity::DirectCounter {
                table: EXACT,
                matches: exact(3),
                priority: 0,
                data: Some(data),
            },
        ),
        (
            Modify,
            Entity::DirectCounter {
                table: EXACT,
                matches: exact(0),
                priority: 0,
                data: Some(data),
            },
        ),
        (
            Modify,
            Entity::Register {
                register: RegisterId(0),
                index: Some(0),
                value: bits(32, 5),
            },
        ),
        (
            Modify,
            Entity::Meter {
                meter: MeterId(0),
                index: Some(0),
                config: Some(config),
            },
        ),
        (
            Modify,
            Entity::Meter {
                meter: MeterId(0),
                index: Some(0),
                config: None,
            },
        ),
        (Insert, group(1, &[2])),
        (Delete, group(1, &[])),
        (Insert, group(1, &[3])),
        (Insert, Entity::CloneSession(session)),
        (
            Modify,
            Entity::ValueSet {
                value_set: ValueSetId(0),
                members: vec![exact(1)],
            },
        ),
    ]
    .map(|(operation, entity)| Update { operation, entity })
    .into()
}

fn prepared() -> Switch {
    let mut switch = switch();
    switch
        .insert_entry(EXACT, forward(exact(0), 0, 1))
        .expect("fits");
    switch
        .insert_entry(EXACT, forward(exact(1), 0, 2))
        .expect("fits");
    send(&mut switch, &[1, 0, 0]);
    switch
}

#[test]
fn a_batch_that_fails_anywhere_leaves_nothing_behind() {
    let length = batch().len();
    for fail_at in 0..=length {
        let mut switch = prepared();
        let before = observe(&switch);
        let mut updates = batch();
        updates.insert(
            fail_at,
            Update {
                operation: Operation::Modify,
                entity: group(77, &[]),
            },
        );
        let results = switch.write_batch(updates, Atomicity::RollbackOnError);
        assert_eq!(results.len(), length + 1);
        for (i, result) in results.into_iter().enumerate() {
            assert_eq!(code(result), if i == fail_at { NotFound } else { Aborted });
        }
        assert_eq!(observe(&switch), before, "failed at {fail_at}");
        assert_eq!(send(&mut switch, &[1, 0, 0])[0].0, 2);
    }
}

#[test]
fn batches_that_succeed_or_go_on() {
    let mut whole = prepared();
    assert!(
        whole
            .write_batch(batch(), Atomicity::RollbackOnError)
            .iter()
            .all(Result::is_ok)
    );
    assert_eq!(send(&mut whole, &[1, 0, 0])[0].0, 4);
    let mut partial = prepared();
    let mut updates = batch();
    updates.insert(
        0,
        Update {
            operation: Operation::Modify,
            entity: group(77, &[]),
        },
    );
    let results = partial.write_batch(updates, Atomicity::ContinueOnError);
    assert_eq!(results.iter().filter(|r| r.is_err()).count(), 1);
    send(&mut partial, &[1, 0, 0]);
    assert_eq!(observe(&partial), observe(&whole));
}
