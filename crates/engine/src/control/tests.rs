//! What the control plane may and may not do.

use super::*;
use crate::port_state::PortStates;
use crate::test_programs::{Bodies, send};
use crate::{Packet, Switch};
use ControlErrorCode::*;
use ir::ActionId;

const EXACT: TableId = TableId(0);
const TERNARY: TableId = TableId(1);
const CONSTANT: TableId = TableId(2);
const KEYLESS: TableId = TableId(3);
const MIXED: TableId = TableId(4);
const FORWARD: ActionId = ActionId(0);
const DROP: ActionId = ActionId(1);

fn bits(width: u32, value: u64) -> Bits {
    Bits::from_u64(width, value)
}

fn exact(value: u64) -> Vec<KeyMatch> {
    vec![KeyMatch::Exact(bits(8, value))]
}

fn ternary(value: u64, mask: u64) -> Vec<KeyMatch> {
    vec![KeyMatch::Ternary {
        value: bits(16, value),
        mask: bits(16, mask),
    }]
}

fn call(action: ActionId, args: Vec<Bits>) -> ActionCall {
    ActionCall { action, args }
}

fn forward(matches: Vec<KeyMatch>, priority: i32, port: u64) -> Entry {
    Entry::new(matches, priority, call(FORWARD, vec![bits(9, port)]))
}

/// Applies the exact table to the kind, or the constant one for kind 0xc0.
fn switch() -> Switch {
    Bodies {
        ingress: "if eq(%17, 8w0xc0) { apply t2 (%18) } else { apply t0 (%17) }",
        ..Bodies::default()
    }
    .switch()
}

fn code(result: Result<(), ControlError>) -> ControlErrorCode {
    result.expect_err("is refused").code
}

#[test]
fn entries_come_and_go() {
    let mut switch = switch();
    assert_eq!(send(&mut switch, &[1, 0, 0]), [], "the default drops");
    switch
        .insert_entry(EXACT, forward(exact(1), 0, 6))
        .expect("fits");
    assert_eq!(send(&mut switch, &[1, 0, 0])[0].0, 6);
    let again = forward(exact(1), 0, 7);
    assert_eq!(
        code(switch.insert_entry(EXACT, again.clone())),
        AlreadyExists
    );
    switch.modify_entry(EXACT, again.clone()).expect("is there");
    assert_eq!(send(&mut switch, &[1, 0, 0])[0].0, 7);
    let read = switch.read_entry(EXACT, &exact(1), 0).expect("is there");
    assert_eq!(read.entry, again);
    assert_eq!(read.counter.map(|c| (c.packets, c.bytes)), Some((2, 6)));
    switch.delete_entry(EXACT, &exact(1), 0).expect("is there");
    assert_eq!(send(&mut switch, &[1, 0, 0]), []);
    assert_eq!(code(switch.delete_entry(EXACT, &exact(1), 0)), NotFound);
    assert_eq!(code(switch.modify_entry(EXACT, again)), NotFound);
}

#[test]
fn a_full_table_refuses() {
    let mut switch = switch();
    for i in 0..4 {
        switch
            .insert_entry(EXACT, forward(exact(i), 0, 1))
            .expect("fits");
    }
    assert_eq!(
        code(switch.insert_entry(EXACT, forward(exact(9), 0, 1))),
        ResourceExhausted
    );
    switch.delete_entry(EXACT, &exact(2), 0).expect("is there");
    switch
        .insert_entry(EXACT, forward(exact(9), 0, 1))
        .expect("fits again");
    let kinds: Vec<_> = switch
        .read_entries(EXACT)
        .expect("exists")
        .into_iter()
        .map(|e| e.entry.matches)
        .collect();
    assert_eq!(
        kinds,
        [exact(0), exact(1), exact(3), exact(9)],
        "in order of insertion"
    );
    // A size of zero is the default size; one entry is from the source.
    for i in 1..entries::DEFAULT_TABLE_SIZE {
        switch
            .insert_entry(TERNARY, forward(ternary(i, 0xffff), 1, 1))
            .expect("fits");
    }
    assert_eq!(
        code(switch.insert_entry(TERNARY, forward(ternary(0, 0), 1, 1))),
        ResourceExhausted
    );
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut switch = switch();
    let mut refused = |table, entry| code(switch.insert_entry(table, entry));
    assert_eq!(
        refused(EXACT, forward(exact(1), 5, 1)),
        InvalidArgument,
        "priority"
    );
    assert_eq!(
        refused(TERNARY, forward(ternary(1, 1), 0, 1)),
        InvalidArgument,
        "no priority"
    );
    assert_eq!(
        refused(TERNARY, forward(ternary(1, 1), -1, 1)),
        InvalidArgument,
        "negative"
    );
    assert_eq!(
        refused(TERNARY, forward(ternary(3, 1), 1, 1)),
        InvalidArgument,
        "not canonical"
    );
    assert_eq!(
        refused(EXACT, forward(ternary(1, 1), 0, 1)),
        InvalidArgument,
        "kind"
    );
    assert_eq!(
        refused(EXACT, forward(vec![], 0, 1)),
        InvalidArgument,
        "too few"
    );
    let wide = vec![KeyMatch::Exact(bits(9, 1))];
    assert_eq!(
        refused(EXACT, forward(wide, 0, 1)),
        InvalidArgument,
        "width"
    );
    assert_eq!(
        refused(KEYLESS, forward(vec![], 0, 1)),
        InvalidArgument,
        "no key"
    );
    assert_eq!(refused(TableId(99), forward(vec![], 0, 1)), NotFound);
    let entry = forward(exact(1), 0, 1);
    assert_eq!(
        refused(
            EXACT,
            Entry {
                action: EntryAction::Call(call(FORWARD, vec![])),
                ..entry.clone()
            }
        ),
        InvalidArgument
    );
    assert_eq!(
        refused(
            EXACT,
            Entry {
                action: EntryAction::Call(call(FORWARD, vec![bits(8, 1)])),
                ..entry.clone()
            }
        ),
        InvalidArgument
    );
    assert_eq!(
        refused(
            EXACT,
            Entry {
                action: EntryAction::Call(call(ActionId(77), vec![])),
                ..entry.clone()
            }
        ),
        InvalidArgument
    );
    let timeout = forward(ternary(1, 1), 1, 1);
    let timeout = Entry {
        idle_timeout_ns: 5,
        ..timeout
    };
    assert_eq!(refused(TERNARY, timeout), InvalidArgument);
    let range = |low, high| {
        let range = KeyMatch::Range {
            low: bits(8, low),
            high: bits(8, high),
        };
        vec![range, KeyMatch::Optional(None)]
    };
    assert_eq!(
        refused(MIXED, forward(range(5, 4), 1, 1)),
        InvalidArgument,
        "empty range"
    );
    switch
        .insert_entry(MIXED, forward(range(4, 4), 1, 1))
        .expect("fits");
}

#[test]
fn constants_and_scopes_are_respected() {
    let mut switch = switch();
    let lpm = vec![KeyMatch::Lpm {
        value: bits(16, 0),
        prefix_len: 0,
    }];
    assert_eq!(
        code(switch.insert_entry(CONSTANT, forward(lpm.clone(), 0, 1))),
        PermissionDenied
    );
    assert_eq!(
        code(switch.delete_entry(CONSTANT, &lpm, 0)),
        PermissionDenied
    );
    assert_eq!(
        code(switch.reset_default_action(CONSTANT)),
        PermissionDenied
    );
    assert_eq!(send(&mut switch, &[0xc0, 0x12, 0x34])[0].0, 3);
    assert_eq!(send(&mut switch, &[0xc0, 0x12, 0x35])[0].0, 2);
    assert_eq!(send(&mut switch, &[0xc0, 0x13, 0x34])[0].0, 1);
    let read = switch.read_entries(CONSTANT).expect("exists");
    assert!(read.len() == 2 && read.iter().all(|e| e.is_const));
    // Table t1: forward in entries only, drop as the default only.
    let drop_entry = Entry::new(ternary(1, 1), 1, call(DROP, vec![]));
    assert_eq!(
        code(switch.insert_entry(TERNARY, drop_entry)),
        InvalidArgument
    );
    let call = ActionCall {
        action: FORWARD,
        args: vec![bits(9, 1)],
    };
    assert_eq!(
        code(switch.set_default_action(TERNARY, call)),
        InvalidArgument
    );
    // Entries from the source that are not constant may go.
    switch
        .delete_entry(TERNARY, &ternary(0x1200, 0xff00), 2)
        .expect("is there");
}

#[test]
fn default_actions_are_set_and_reset() {
    let mut switch = switch();
    let call = ActionCall {
        action: FORWARD,
        args: vec![bits(9, 8)],
    };
    switch
        .set_default_action(EXACT, call.clone())
        .expect("fits");
    assert_eq!(switch.default_action(EXACT), Ok(call));
    assert_eq!(send(&mut switch, &[1, 0, 0])[0].0, 8);
    switch.reset_default_action(EXACT).expect("fits");
    assert_eq!(send(&mut switch, &[1, 0, 0]), []);
}

#[test]
fn idle_entries_are_named_once_per_idle_period() {
    const MS: u64 = 1_000_000_000;
    let mut switch = switch();
    let entry = Entry {
        idle_timeout_ns: 5_000_000,
        ..forward(exact(1), 0, 1)
    };
    switch.insert_entry(EXACT, entry).expect("fits");
    assert_eq!(switch.take_idle_entries(4 * MS), []);
    let idle = switch.take_idle_entries(5 * MS);
    assert_eq!(idle.len(), 1);
    assert_eq!((idle[0].0, idle[0].1.idle_ns), (EXACT, Some(5_000_000)));
    assert_eq!(switch.take_idle_entries(6 * MS), []);
    let mut out = Vec::new();
    switch.receive(7 * MS, 0, Packet::new(&[1, 0, 0]), &mut out);
    assert_eq!(switch.take_idle_entries(11 * MS), []);
    assert_eq!(switch.take_idle_entries(12 * MS).len(), 1);
    // Still idle: named again after another timeout.
    assert_eq!(switch.take_idle_entries(16 * MS), []);
    assert_eq!(switch.runtime().next_deadline_ps(), Some(17 * MS));
    assert_eq!(switch.take_idle_entries(17 * MS).len(), 1);
    // What is undone has its timer; what is gone has none.
    let without = |operation| Update {
        operation,
        entity: Entity::TableEntry {
            table: EXACT,
            entry: forward(exact(1), 0, 1),
        },
    };
    let missing = Update {
        operation: Operation::Delete,
        entity: Entity::TableEntry {
            table: EXACT,
            entry: forward(exact(2), 0, 1),
        },
    };
    let updates = vec![
        without(Operation::Modify),
        without(Operation::Delete),
        missing,
    ];
    let results = switch.write_batch(updates, true);
    assert!(results.iter().all(Result::is_err));
    assert_eq!(switch.take_idle_entries(22 * MS).len(), 1);
    switch.write(without(Operation::Modify)).expect("is there");
    assert_eq!(switch.take_idle_entries(99 * MS), []);
    assert_eq!(switch.runtime().next_deadline_ps(), None);
}

#[test]
fn digests_are_due_when_full_or_old() {
    const MS: u64 = 1_000_000_000;
    let mut switch = Bodies {
        ingress: "digest d0(%18, 100w7) assign %1 = 9w1",
        ..Bodies::default()
    }
    .switch();
    let digest = ir::DigestId(0);
    let update = |operation, max_list_size| Update {
        operation,
        entity: Entity::Digest {
            digest,
            config: crate::digest::DigestConfig {
                max_list_size,
                max_timeout_ns: 5_000_000,
                ack_timeout_ns: 20_000_000,
            },
        },
    };
    let learn = |switch: &mut Switch, ms: u64, value: u8| {
        switch.receive(ms * MS, 0, Packet::new(&[0, 0, value]), &mut Vec::new());
    };
    let taken = |lists: Vec<crate::digest::DigestList>| -> Vec<(u64, usize)> {
        lists
            .iter()
            .map(|l| (l.list_id, l.messages.len()))
            .collect()
    };
    learn(&mut switch, 0, 1);
    assert_eq!(
        switch.runtime().next_deadline_ps(),
        Some(0),
        "without configuration: at once"
    );
    assert_eq!(taken(switch.take_due_digests(0)), []);
    assert_eq!(code(switch.write(update(Operation::Modify, 2))), NotFound);
    switch.write(update(Operation::Insert, 2)).expect("is new");
    assert_eq!(
        code(switch.write(update(Operation::Insert, 2))),
        AlreadyExists
    );
    assert_eq!(
        switch.runtime().next_deadline_ps(),
        None,
        "what was before is forgotten"
    );
    for _ in 0..3 {
        learn(&mut switch, 1, 2);
    }
    assert_eq!(taken(switch.take_unconfigured_digests(MS)), []);
    assert_eq!(
        switch.runtime().next_deadline_ps(),
        Some(6 * MS),
        "one message waits"
    );
    assert_eq!(taken(switch.take_due_digests(5 * MS)), []);
    learn(&mut switch, 2, 3);
    assert_eq!(
        switch.runtime().next_deadline_ps(),
        Some(2 * MS),
        "the list is full"
    );
    learn(&mut switch, 3, 4);
    assert_eq!(taken(switch.take_due_digests(3 * MS)), [(1, 2)]);
    learn(&mut switch, 4, 2);
    assert_eq!(
        taken(switch.take_due_digests(8 * MS)),
        [(2, 1)],
        "4 alone: 2 is outstanding"
    );
    switch
        .acknowledge_digest(digest, 1)
        .expect("is outstanding");
    learn(&mut switch, 9, 2);
    learn(&mut switch, 9, 4);
    assert_eq!(taken(switch.take_due_digests(14 * MS)), [(3, 1)], "2 again");
    learn(&mut switch, 28, 4);
    assert_eq!(
        taken(switch.take_due_digests(33 * MS)),
        [(4, 1)],
        "4 was not acknowledged in time"
    );
    learn(&mut switch, 40, 9);
    let results = switch.write_batch(
        vec![update(Operation::Delete, 0), update(Operation::Modify, 0)],
        true,
    );
    assert!(results.iter().all(Result::is_err));
    assert_eq!(
        taken(switch.take_due_digests(45 * MS)),
        [(5, 1)],
        "nothing was lost"
    );
}

#[test]
fn cells_and_indices_are_checked() {
    let mut switch = switch();
    let register = RegisterId(1);
    switch
        .write_register(register, 1, Bits::ones(100))
        .expect("in range");
    assert_eq!(switch.read_register(register, 1), Ok(Bits::ones(100)));
    assert_eq!(
        code(switch.write_register(register, 2, Bits::ones(100))),
        OutOfRange
    );
    assert_eq!(
        code(switch.write_register(register, 1, Bits::ones(99))),
        InvalidArgument
    );
    assert_eq!(
        code(switch.write_register(RegisterId(9), 1, Bits::ones(99))),
        NotFound
    );
    let data = CounterData {
        packets: 3,
        bytes: 4,
    };
    switch
        .write_counter(CounterId(0), 3, data)
        .expect("in range");
    assert_eq!(switch.read_counter(CounterId(0), 3), Ok(data));
    assert_eq!(
        code(switch.write_counter(CounterId(0), 4, data)),
        OutOfRange
    );
    assert_eq!(
        code(switch.write_counter(CounterId(1), 0, data)),
        InvalidArgument,
        "direct"
    );
    let config = MeterConfig {
        cir: 2,
        cburst: 1,
        pir: 1,
        pburst: 1,
    };
    assert_eq!(
        code(switch.write_meter(MeterId(0), 0, Some(config))),
        InvalidArgument
    );
    assert_eq!(
        code(switch.write_meter(MeterId(1), 0, None)),
        InvalidArgument
    );
    let config = MeterConfig { pir: 2, ..config };
    switch
        .write_meter(MeterId(0), 0, Some(config))
        .expect("in range");
    assert_eq!(switch.read_meter(MeterId(0), 0), Ok(Some(config)));
    assert_eq!(switch.read_meter(MeterId(0), 1), Ok(None));
}

#[test]
fn direct_counters_belong_to_entries() {
    let mut switch = switch();
    switch
        .insert_entry(EXACT, forward(exact(1), 0, 1))
        .expect("fits");
    let data = CounterData {
        packets: 10,
        bytes: 1000,
    };
    let entity = Entity::DirectCounter {
        table: EXACT,
        matches: exact(1),
        priority: 0,
        data,
    };
    switch
        .write(Update {
            operation: Operation::Modify,
            entity,
        })
        .expect("is there");
    send(&mut switch, &[1, 0, 0]);
    let read = switch
        .read_direct_counter(EXACT, &exact(1), 0)
        .expect("is there");
    assert_eq!((read.packets, read.bytes), (11, 1003));
    let none = switch.read_direct_counter(TERNARY, &ternary(0x1200, 0xff00), 2);
    assert_eq!(none.expect_err("has none").code, InvalidArgument);
}

fn group(group_id: u32, ports: &[u32]) -> Entity {
    let replicas = ports.iter().map(|&port| Replica { port, rid: 0 }).collect();
    Entity::MulticastGroup(MulticastGroup { group_id, replicas })
}

#[test]
fn groups_and_sessions() {
    let mut switch = switch();
    let mut write = |operation, entity| switch.write(Update { operation, entity });
    write(Operation::Insert, group(2, &[1])).expect("is new");
    write(Operation::Insert, group(1, &[3])).expect("is new");
    assert_eq!(code(write(Operation::Insert, group(1, &[]))), AlreadyExists);
    assert_eq!(code(write(Operation::Modify, group(3, &[]))), NotFound);
    assert_eq!(
        code(write(Operation::Insert, group(0, &[]))),
        InvalidArgument
    );
    assert_eq!(
        code(write(Operation::Insert, group(9, &[511]))),
        InvalidArgument
    );
    assert_eq!(
        code(write(Operation::Insert, group(9, &[1, 1]))),
        InvalidArgument
    );
    write(Operation::Modify, group(2, &[4, 5])).expect("exists");
    let session = CloneSession {
        session_id: 7,
        replicas: vec![],
        packet_length_bytes: 0,
        class_of_service: 8,
    };
    let refused = write(Operation::Insert, Entity::CloneSession(session.clone()));
    assert_eq!(code(refused), InvalidArgument);
    let session = CloneSession {
        class_of_service: 7,
        ..session
    };
    write(Operation::Insert, Entity::CloneSession(session)).expect("is new");
    let read: Vec<_> = switch
        .multicast_groups()
        .map(|g| (g.group_id, g.replicas.len()))
        .collect();
    assert_eq!(read, [(1, 1), (2, 2)]);
    assert_eq!(switch.clone_sessions().count(), 1);
}

#[test]
fn value_sets_are_checked() {
    let mut switch = switch();
    let set = ValueSetId(0);
    assert_eq!(
        code(switch.set_value_set_members(set, vec![exact(1), exact(2), exact(3)])),
        ResourceExhausted
    );
    assert_eq!(
        code(switch.set_value_set_members(set, vec![ternary(1, 1)])),
        InvalidArgument
    );
    switch
        .set_value_set_members(set, vec![exact(1)])
        .expect("fits");
    assert_eq!(switch.value_set_members(set).map(<[_]>::len), Ok(1));
}

/// Everything that a batch can change, as it is read.
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
                data,
            },
        ),
        (
            Modify,
            Entity::DirectCounter {
                table: EXACT,
                matches: exact(0),
                priority: 0,
                data,
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
        let results = switch.write_batch(updates, true);
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
    assert!(whole.write_batch(batch(), true).iter().all(Result::is_ok));
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
    let results = partial.write_batch(updates, false);
    assert_eq!(results.iter().filter(|r| r.is_err()).count(), 1);
    send(&mut partial, &[1, 0, 0]);
    assert_eq!(observe(&partial), observe(&whole));
}

#[test]
fn ids_are_found_by_p4runtime_id() {
    let program = Bodies::default().program();
    assert_eq!(ids::table(&program, 5), Some(MIXED));
    assert_eq!(ids::table(&program, 99), None);
    assert_eq!(ids::action_profile(&program, 2), Some(ActionProfileId(1)));
    assert_eq!(ids::action(&program, 2), Some(DROP));
    assert_eq!(ids::match_field(&program, MIXED, 2), Some(1));
    assert_eq!(ids::action_param(&program, FORWARD, 1), Some(0));
    assert_eq!(ids::action_param(&program, DROP, 1), None);
    assert_eq!(
        ids::table_of_direct_counter(&program, CounterId(1)),
        Some(EXACT)
    );
}

#[test]
fn direct_meters_colour_hits_in_the_time_of_the_switch() {
    let mut switch = Bodies {
        ingress: "apply t5 (%17)",
        ..Bodies::default()
    }
    .switch();
    let metered = TableId(5);
    let config = MeterConfig {
        cir: 1000,
        cburst: 6,
        pir: 2000,
        pburst: 12,
    };
    let entry = |kind, meter| Entry {
        meter,
        ..Entry::new(exact(kind), 0, call(ActionId(4), vec![bits(9, 3)]))
    };
    switch
        .insert_entry(metered, entry(1, Some(config)))
        .expect("fits");
    switch.insert_entry(metered, entry(2, None)).expect("fits");
    let mut colour = |ms: u64, kind: u8| {
        let mut out = Vec::new();
        switch.receive(ms * 1_000_000_000, 0, Packet::new(&[kind, 0, 9]), &mut out);
        out[0].packet.bytes()[2]
    };
    // Packets of three bytes: two fit the committed burst, two more the peak burst.
    let burst: Vec<u8> = (0..5).map(|_| colour(0, 1)).collect();
    assert_eq!(burst, [0, 0, 1, 1, 2]);
    assert_eq!(
        [colour(0, 2), colour(0, 3)],
        [0, 0],
        "no configuration; a miss"
    );
    // Three milliseconds fill three committed bytes and six of peak.
    assert_eq!([colour(3, 1), colour(3, 1), colour(3, 1)], [0, 1, 2]);
    let read = switch.read_entry(metered, &exact(1), 0).expect("is there");
    assert_eq!(read.entry.meter, Some(config));
    let packets = read.meter_counts.map(|counts| counts.map(|c| c.packets));
    assert_eq!(packets, Some([3, 3, 2]));
    // A modify without a configuration takes the meter away.
    switch
        .modify_entry(metered, entry(1, None))
        .expect("is there");
    let read = switch.read_entry(metered, &exact(1), 0).expect("is there");
    assert_eq!((read.entry.meter, read.meter_counts), (None, None));
    let direct = |config| Update {
        operation: Operation::Modify,
        entity: Entity::DirectMeter {
            table: metered,
            matches: exact(1),
            priority: 0,
            config,
        },
    };
    // What is undone has its buckets back.
    switch.write(direct(Some(config))).expect("is there");
    let unknown = Update {
        operation: Operation::Delete,
        entity: Entity::TableEntry {
            table: metered,
            entry: entry(9, None),
        },
    };
    let delete = Update {
        operation: Operation::Delete,
        entity: Entity::TableEntry {
            table: metered,
            entry: entry(1, None),
        },
    };
    let before = switch.read_entry(metered, &exact(1), 0);
    let results = switch.write_batch(vec![direct(None), delete, unknown], true);
    assert!(results.iter().all(Result::is_err));
    assert_eq!(switch.read_entry(metered, &exact(1), 0), before);
    let bad = MeterConfig { pir: 1, ..config };
    assert_eq!(code(switch.write(direct(Some(bad)))), InvalidArgument);
    let elsewhere = Entry {
        meter: Some(config),
        ..forward(exact(1), 0, 1)
    };
    assert_eq!(code(switch.insert_entry(EXACT, elsewhere)), InvalidArgument);
}

#[test]
fn the_state_of_ports_is_in_a_register() {
    let mut switch = Bodies {
        ingress: "assign %33 = zext(%17, 32) register_read %30 = r2[%33] assign %1 = mux(%30, 9w1, 9w2)",
        ..Bodies::default()
    }
    .switch();
    let port = |switch: &mut Switch, kind: u8| send(switch, &[kind, 0, 0])[0].0;
    assert_eq!(port(&mut switch, 7), 1, "all ports are up at first");
    switch.set_port_up(7, false);
    switch.set_port_up(300, false);
    assert_eq!((port(&mut switch, 7), port(&mut switch, 6)), (2, 1));
    switch.set_port_up(7, true);
    assert_eq!(port(&mut switch, 7), 1);
    switch.runtime_mut().set_ports(PortStates::all(false));
    switch.set_port_up(6, true);
    assert_eq!((port(&mut switch, 7), port(&mut switch, 6)), (2, 1));
}

#[test]
fn arrays_are_written_and_listed_as_a_whole() {
    let mut switch = switch();
    let fill = |register: u32, width, value| Update {
        operation: Operation::Modify,
        entity: Entity::Register {
            register: RegisterId(register),
            index: None,
            value: bits(width, value),
        },
    };
    switch
        .write_register(RegisterId(0), 2, bits(32, 5))
        .expect("fits");
    assert_eq!(switch.nonzero_registers(RegisterId(0)), Ok(Some(vec![2])));
    let results = switch.write_batch(vec![fill(0, 32, 9), fill(1, 99, 9)], true);
    assert!(results.iter().all(Result::is_err), "the width is wrong");
    assert_eq!(switch.nonzero_registers(RegisterId(0)), Ok(Some(vec![2])));
    switch.write(fill(0, 32, 9)).expect("fits");
    assert_eq!(
        switch.nonzero_registers(RegisterId(0)),
        Ok(Some(vec![0, 1, 2, 3]))
    );
    assert_eq!(switch.read_register(RegisterId(0), 1), Ok(bits(32, 9)));
    let config = MeterConfig {
        cir: 1,
        cburst: 1,
        pir: 1,
        pburst: 1,
    };
    let meters = |config| Update {
        operation: Operation::Modify,
        entity: Entity::Meter {
            meter: MeterId(0),
            index: None,
            config,
        },
    };
    switch.write(meters(Some(config))).expect("fits");
    assert_eq!(switch.configured_meters(MeterId(0)), Ok(vec![0, 1]));
    let results = switch.write_batch(vec![meters(None), fill(7, 1, 1)], true);
    assert!(results.iter().all(Result::is_err));
    assert_eq!(switch.configured_meters(MeterId(0)), Ok(vec![0, 1]));
    switch.write(meters(None)).expect("fits");
    assert_eq!(switch.configured_meters(MeterId(0)), Ok(vec![]));
    let counts = Update {
        operation: Operation::Modify,
        entity: Entity::Counter {
            counter: CounterId(0),
            index: None,
            data: CounterData {
                packets: 0,
                bytes: 7,
            },
        },
    };
    switch.write(counts).expect("fits");
    assert_eq!(
        switch.nonzero_counters(CounterId(0)),
        Ok(Some(vec![0, 1, 2, 3]))
    );
}
