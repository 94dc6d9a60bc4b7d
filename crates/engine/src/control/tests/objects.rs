//! Digests, registers, counters, meters, groups, sessions and value sets.

use super::*;
use crate::Time;
use crate::digest::DigestQueue;
use crate::port_state::PortStates;

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
        switch.receive(
            Time::from(ms * MS),
            0,
            Packet::new(&[0, 0, value]),
            &mut Vec::new(),
        );
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
        Some(Time::ZERO),
        "without configuration: at once"
    );
    assert_eq!(taken(switch.take_due_digests(Time::ZERO, usize::MAX)), []);
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
    assert_eq!(
        taken(switch.take_unconfigured_digests(Time::from(MS), usize::MAX)),
        []
    );
    assert_eq!(
        switch.runtime().next_deadline_ps(),
        Some(Time::from(6 * MS)),
        "one message waits"
    );
    assert_eq!(
        taken(switch.take_due_digests(Time::from(5 * MS), usize::MAX)),
        []
    );
    learn(&mut switch, 2, 3);
    assert_eq!(
        switch.runtime().next_deadline_ps(),
        Some(Time::from(2 * MS)),
        "the list is full"
    );
    learn(&mut switch, 3, 4);
    assert_eq!(
        taken(switch.take_due_digests(Time::from(3 * MS), usize::MAX)),
        [(1, 2)]
    );
    learn(&mut switch, 4, 2);
    assert_eq!(
        taken(switch.take_due_digests(Time::from(8 * MS), usize::MAX)),
        [(2, 1)],
        "4 alone: 2 is outstanding"
    );
    switch
        .acknowledge_digest(digest, 1)
        .expect("is outstanding");
    learn(&mut switch, 9, 2);
    learn(&mut switch, 9, 4);
    assert_eq!(
        taken(switch.take_due_digests(Time::from(14 * MS), usize::MAX)),
        [(3, 1)],
        "2 again"
    );
    learn(&mut switch, 28, 4);
    assert_eq!(
        taken(switch.take_due_digests(Time::from(33 * MS), usize::MAX)),
        [(4, 1)],
        "4 was not acknowledged in time"
    );
    learn(&mut switch, 40, 9);
    let results = switch.write_batch(
        vec![update(Operation::Delete, 0), update(Operation::Modify, 0)],
        Atomicity::RollbackOnError,
    );
    assert!(results.iter().all(Result::is_err));
    assert_eq!(
        taken(switch.take_due_digests(Time::from(45 * MS), usize::MAX)),
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
        data: Some(data),
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
        switch.receive(
            Time::from(ms * 1_000_000_000),
            0,
            Packet::new(&[kind, 0, 9]),
            &mut out,
        );
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
    // A meter whose change is undone has its buckets back.
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
    let results = switch.write_batch(
        vec![direct(None), delete, unknown],
        Atomicity::RollbackOnError,
    );
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
    assert_eq!(
        switch.registers_from(RegisterId(0), 0, 9),
        Ok((vec![(2, bits(32, 5))], None))
    );
    let results = switch.write_batch(
        vec![fill(0, 32, 9), fill(1, 99, 9)],
        Atomicity::RollbackOnError,
    );
    assert!(results.iter().all(Result::is_err), "the width is wrong");
    assert_eq!(
        switch.registers_from(RegisterId(0), 0, 9),
        Ok((vec![(2, bits(32, 5))], None))
    );
    switch.write(fill(0, 32, 9)).expect("fits");
    let all = (0..4).map(|index| (index, bits(32, 9)));
    assert_eq!(
        switch.registers_from(RegisterId(0), 0, 9),
        Ok((all.collect(), None))
    );
    let (first, next) = switch
        .registers_from(RegisterId(0), 1, 2)
        .expect("there is");
    assert_eq!((first.len(), next), (2, Some(3)));
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
    let results = switch.write_batch(
        vec![meters(None), fill(7, 1, 1)],
        Atomicity::RollbackOnError,
    );
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
    let (counted, next) = switch.counters_from(CounterId(0), 0, 9).expect("there is");
    assert_eq!((counted.len(), counted[3].1.bytes, next), (4, 7, None));
}

#[test]
fn digests_are_bounded_in_bytes_and_taken_in_slices() {
    let mut program = ir::Program::clone(switch().program());
    program.digests[0].widths = vec![64; 1000];
    let digest = ir::DigestId(0);
    let message = |i: u64| {
        let mut message = vec![7; 1000];
        message[0] = i;
        message
    };
    let mut queue = DigestQueue::new(&program);
    for i in 0..10_000 {
        queue.push(digest, &message(i), Time::from(i));
    }
    let kept = crate::digest::MAX_WAITING_BYTES as u64 / (64 + 8000);
    assert_eq!(queue.lost(), 10_000 - kept);

    let mut queue = DigestQueue::new(&program);
    for i in 0..10 {
        queue.push(digest, &message(i), Time::from(i));
    }
    let taken = |queue: &mut DigestQueue| {
        let lists = queue.take_unconfigured(Time::from(20_u64), 4);
        lists.iter().map(|l| l.messages.len()).sum::<usize>()
    };
    assert_eq!(queue.unannounced_due_ps(), Some(Time::ZERO));
    queue.announce();
    assert_eq!(queue.unannounced_due_ps(), None);
    assert_eq!(
        queue.take_due(Time::from(20_u64), usize::MAX),
        [],
        "there is none of this kind"
    );
    assert_eq!(queue.unannounced_due_ps(), None);
    assert_eq!(taken(&mut queue), 4);
    assert_eq!(
        queue.unannounced_due_ps(),
        Some(Time::from(4)),
        "there is more"
    );
    let rest = [taken(&mut queue), taken(&mut queue), taken(&mut queue)];
    assert_eq!(rest, [4, 2, 0]);

    // Lists that nobody acknowledges are remembered within the same bounds.
    let config = DigestConfig {
        max_list_size: 1,
        max_timeout_ns: 0,
        ack_timeout_ns: u64::MAX,
    };
    queue.set_config(digest, Some(config));
    let sent = kept + 10;
    for i in 0..sent {
        queue.push(digest, &message(i), Time::from(i));
        assert_eq!(queue.take_due(Time::from(i), usize::MAX).len(), 1);
    }
    queue.push(digest, &message(sent - 1), Time::from(sent));
    assert!(queue.is_empty(), "the latest is remembered");
    queue.push(digest, &message(0), Time::from(sent));
    assert!(!queue.is_empty(), "the oldest is forgotten");
}
