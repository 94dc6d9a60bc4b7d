//! Entries and default actions of tables: those that fit, those that are refused, those that become idle.

use super::*;
use crate::MIN_IDLE_TIMEOUT_NS;
use crate::Time;

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
    for i in 1..crate::table::DEFAULT_TABLE_SIZE {
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
    let wide = vec![KeyMatch::Value(bits(9, 1))];
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
    for wrong in [
        call(FORWARD, vec![]),
        call(FORWARD, vec![bits(8, 1)]),
        call(ActionId(77), vec![]),
    ] {
        let entry = Entry::new(exact(1), 0, wrong);
        assert_eq!(refused(EXACT, entry), InvalidArgument);
    }
    let timeout = forward(ternary(1, 1), 1, 1);
    let timeout = Entry {
        idle_timeout_ns: 5_000_000,
        ..timeout
    };
    assert_eq!(refused(TERNARY, timeout), InvalidArgument);
    let range = |low, high| {
        let range = KeyMatch::Range {
            low: bits(8, low),
            high: bits(8, high),
        };
        vec![range, KeyMatch::Any]
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
    let lpm = vec![KeyMatch::Prefix {
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

/// Sets the clock to `now_ps` picoseconds, and returns the entries that are idle then.
fn idle_at(switch: &mut Switch, now_ps: u64) -> Vec<(ir::TableId, InstalledEntry)> {
    switch.set_now_ps(Time::from(now_ps));
    switch.runtime_mut().run_idle_timers(usize::MAX);
    switch.take_idle_entries(Time::from(now_ps), usize::MAX)
}

#[test]
fn an_idle_entry_waits_once_however_late_it_is_taken() {
    const MS: u64 = 1_000_000_000;
    let mut switch = switch();
    for number in 1..=3 {
        let entry = Entry {
            idle_timeout_ns: MIN_IDLE_TIMEOUT_NS,
            ..forward(exact(number), 0, 1)
        };
        switch.insert_entry(EXACT, entry).expect("fits");
    }
    for ms in 1..1000 {
        switch.set_now_ps(Time::from(ms * MS));
        switch.runtime_mut().run_idle_timers(2);
        assert_eq!(switch.runtime().has_unannounced_idle(), ms == 1);
        switch.runtime_mut().announce_idle();
    }
    assert_eq!(switch.runtime().next_deadline_ps(), None);
    // One is gone, one is given another time: neither waits.
    switch.delete_entry(EXACT, &exact(1), 0).expect("is there");
    let entry = Entry {
        idle_timeout_ns: 5_000_000_000,
        ..forward(exact(2), 0, 1)
    };
    switch.modify_entry(EXACT, entry).expect("is there");
    assert_eq!(switch.take_idle_entries(Time::from(1000 * MS), 1).len(), 1);
    assert_eq!(switch.take_idle_entries(Time::from(1000 * MS), 1), []);
    // Its timeout starts when it is taken.
    assert_eq!(
        switch.runtime().next_deadline_ps(),
        Some(Time::from(1001 * MS))
    );
}

#[test]
fn a_timeout_below_the_least_is_refused() {
    let mut switch = switch();
    let entry = Entry {
        idle_timeout_ns: 30,
        ..forward(exact(1), 0, 1)
    };
    let refused = switch.insert_entry(EXACT, entry).expect_err("too short");
    assert_eq!(refused.code, ControlErrorCode::InvalidArgument);
    assert!(
        refused
            .message
            .contains("the least idle timeout is 1000000 ns, not 30")
    );
}

#[test]
fn entries_that_go_leave_no_timer() {
    let mut switch = switch();
    for number in 0..100 {
        let entry = Entry {
            idle_timeout_ns: 3_600_000_000_000,
            ..forward(exact(number), 0, 1)
        };
        switch.insert_entry(EXACT, entry).expect("fits");
        switch
            .delete_entry(EXACT, &exact(number), 0)
            .expect("is there");
    }
    assert_eq!(switch.runtime().next_deadline_ps(), None);
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
    assert_eq!(idle_at(&mut switch, 4 * MS), []);
    let idle = idle_at(&mut switch, 5 * MS);
    assert_eq!(idle.len(), 1);
    assert_eq!((idle[0].0, idle[0].1.idle_ns), (EXACT, Some(5_000_000)));
    assert_eq!(idle_at(&mut switch, 6 * MS), []);
    let mut out = Vec::new();
    switch.receive(Time::from(7 * MS), 0, Packet::new(&[1, 0, 0]), &mut out);
    assert_eq!(idle_at(&mut switch, 11 * MS), []);
    assert_eq!(idle_at(&mut switch, 12 * MS).len(), 1);
    // Still idle: named again after another timeout.
    assert_eq!(idle_at(&mut switch, 16 * MS), []);
    assert_eq!(
        switch.runtime().next_deadline_ps(),
        Some(Time::from(17 * MS))
    );
    assert_eq!(idle_at(&mut switch, 17 * MS).len(), 1);
    // An entry that is back has its timer; an entry that is gone has none.
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
    let results = switch.write_batch(updates, Atomicity::RollbackOnError);
    assert!(results.iter().all(Result::is_err));
    assert_eq!(idle_at(&mut switch, 22 * MS).len(), 1);
    switch.write(without(Operation::Modify)).expect("is there");
    assert_eq!(idle_at(&mut switch, 99 * MS), []);
    assert_eq!(switch.runtime().next_deadline_ps(), None);
}

/// Entries that are constant one by one, in a table to which others can be added and from which others can be removed.
#[test]
fn single_constant_entries_stay_what_they_are() {
    let mut program = (*Bodies::default().program()).clone();
    program.tables[TERNARY.index()].entries[0].is_const = true;
    let text = ir::text::print(&program);
    assert_eq!(ir::text::parse(&text).expect("IR"), program);
    let program = std::sync::Arc::new(program);
    let executor = std::sync::Arc::new(crate::Interpreter::new(program.clone()));
    let mut switch = Switch::new(program, executor, crate::SwitchConfig::default());
    let fixed = || ternary(0x1200, 0xff00);
    let modified = switch.modify_entry(TERNARY, forward(fixed(), 2, 1));
    assert_eq!(code(modified), PermissionDenied);
    let deleted = switch.delete_entry(TERNARY, &fixed(), 2);
    assert_eq!(code(deleted), PermissionDenied);
    // The same matches with another priority are another entry.
    let other = forward(fixed(), 3, 1);
    switch.insert_entry(TERNARY, other).expect("fits");
    let changed = switch.modify_entry(TERNARY, forward(fixed(), 3, 2));
    changed.expect("not constant");
    let read = switch.read_entries(TERNARY).expect("exists");
    let constant: Vec<_> = read
        .iter()
        .map(|e| (e.entry.priority, e.is_const))
        .collect();
    assert_eq!(constant, [(2, true), (3, false)]);
    switch
        .delete_entry(TERNARY, &fixed(), 3)
        .expect("not constant");
    assert_eq!(switch.read_entries(TERNARY).expect("exists").len(), 1);
}
