//! Selection against a naive model, and members and groups through the control plane.

use super::*;
use crate::Switch;
use crate::control::ControlErrorCode::*;
use crate::control::{Atomicity, ControlErrorCode, Entity, Entry, EntryAction, Operation, Update};
use crate::test_programs::{Bodies, send};
use ir::{ActionProfileId, HashAlgorithm, KeyMatch, TableId};
use proptest::prelude::*;

const PROFILED: TableId = TableId(6);
const SELECTED: TableId = TableId(7);
const PROFILE: ActionProfileId = ActionProfileId(0);
const SELECTOR: ActionProfileId = ActionProfileId(1);

/// Makes a switch that applies the table with an action profile to packets of kinds below 0x80, and the table with a
/// selector to all others.
fn switch() -> Switch {
    Bodies {
        ingress: "if ult(%17, 8w0x80) { apply t6 (%17) } else { apply t7 (%17, %18) hit %30 action_run %31 }",
        ..Bodies::default()
    }
    .switch()
}

fn forward(port: u64) -> ActionCall {
    ActionCall {
        action: ActionId(0),
        args: vec![Bits::from_u64(9, port)],
    }
}

fn matches(table: TableId, kind: u64) -> Vec<KeyMatch> {
    let kind = KeyMatch::Value(Bits::from_u64(8, kind));
    match table {
        SELECTED => vec![kind, KeyMatch::Any],
        _ => vec![kind],
    }
}

fn write(
    switch: &mut Switch,
    operation: Operation,
    entity: Entity,
) -> Result<(), ControlErrorCode> {
    let result = switch.write(Update { operation, entity });
    result.map_err(|e| e.code)
}

fn member(profile: ActionProfileId, member_id: u32, port: u64) -> Entity {
    Entity::ActionProfileMember {
        profile,
        member_id,
        call: Some(forward(port)),
    }
}

/// Makes a group whose members are given as id, weight and watched port.
fn group(group_id: u32, max_size: u64, members: &[(u32, u32, Option<u32>)]) -> Entity {
    let members = members
        .iter()
        .map(|&(member_id, weight, watch_port)| GroupMember {
            member_id,
            weight,
            watch_port,
        });
    Entity::ActionProfileGroup {
        profile: SELECTOR,
        group_id,
        contents: GroupContents {
            members: members.collect(),
            max_size,
        },
    }
}

fn entry(table: TableId, kind: u64, target: Target) -> Entity {
    Entity::TableEntry {
        table,
        entry: Entry {
            action: EntryAction::Target(target),
            ..Entry::new(matches(table, kind), 0, forward(0))
        },
    }
}

fn one_shot(ports: &[(u64, u32, Option<u32>)]) -> Target {
    let actions = ports
        .iter()
        .map(|&(port, weight, watch_port)| WeightedAction {
            call: forward(port),
            weight,
            watch_port,
        });
    Target::OneShot(actions.collect())
}

/// Sends a packet of a kind with a value. Returns the port at which it leaves, or `None` if it does not leave.
fn port(switch: &mut Switch, kind: u8, value: u16) -> Option<u32> {
    let [high, low] = value.to_be_bytes();
    send(switch, &[kind, high, low])
        .first()
        .map(|(port, _)| *port)
}

fn crc16_of(value: u16) -> u64 {
    let mut out = [0];
    hash::hash(HashAlgorithm::Crc16, &value.to_be_bytes(), &[], &mut out);
    out[0]
}

#[test]
fn members_are_shared_and_change_for_all_entries() {
    use Operation::*;
    let mut switch = switch();
    let s = &mut switch;
    assert_eq!(
        write(s, Insert, entry(PROFILED, 1, Target::Member(7))),
        Err(NotFound)
    );
    assert_eq!(write(s, Insert, member(PROFILE, 7, 3)), Ok(()));
    assert_eq!(write(s, Insert, member(PROFILE, 7, 3)), Err(AlreadyExists));
    for kind in [1, 2] {
        assert_eq!(
            write(s, Insert, entry(PROFILED, kind, Target::Member(7))),
            Ok(())
        );
        assert_eq!(port(s, kind as u8, 0), Some(3));
    }
    assert_eq!(write(s, Modify, member(PROFILE, 7, 4)), Ok(()));
    assert_eq!(
        (port(s, 1, 0), port(s, 2, 0), port(s, 3, 0)),
        (Some(4), Some(4), Some(9))
    );
    assert_eq!(
        write(s, Delete, member(PROFILE, 7, 0)),
        Err(FailedPrecondition)
    );
    let read = s
        .read_entry(PROFILED, &matches(PROFILED, 2), 0)
        .expect("is there");
    assert_eq!(read.entry.action, EntryAction::Target(Target::Member(7)));
    for kind in [1, 2] {
        assert_eq!(
            write(s, Delete, entry(PROFILED, kind, Target::Member(7))),
            Ok(())
        );
    }
    assert_eq!(write(s, Delete, member(PROFILE, 7, 0)), Ok(()));
    assert_eq!(write(s, Delete, member(PROFILE, 7, 0)), Err(NotFound));
}

#[test]
fn what_makes_no_sense_is_refused() {
    use Operation::*;
    let mut switch = switch();
    let s = &mut switch;
    let plain = |table, kind| Entity::TableEntry {
        table,
        entry: Entry::new(matches(table, kind), 0, forward(1)),
    };
    assert_eq!(
        write(s, Insert, plain(PROFILED, 1)),
        Err(InvalidArgument),
        "needs a member"
    );
    assert_eq!(
        write(s, Insert, entry(TableId(0), 1, Target::Member(1))),
        Err(InvalidArgument),
        "has no implementation"
    );
    assert_eq!(
        write(s, Insert, member(PROFILE, 0, 1)),
        Err(InvalidArgument),
        "id 0"
    );
    let unknown = Entity::ActionProfileMember {
        profile: PROFILE,
        member_id: 1,
        call: Some(ActionCall {
            action: ActionId(3),
            args: vec![Bits::zero(100), Bits::zero(16)],
        }),
    };
    assert_eq!(
        write(s, Insert, unknown),
        Err(InvalidArgument),
        "not the table's action"
    );
    assert_eq!(
        write(s, Insert, entry(PROFILED, 1, one_shot(&[(1, 1, None)]))),
        Err(InvalidArgument),
        "no selector"
    );
    for id in 1..=3 {
        assert_eq!(write(s, Insert, member(PROFILE, id, 1)), Ok(()));
    }
    assert_eq!(
        write(s, Insert, member(PROFILE, 4, 1)),
        Err(ResourceExhausted)
    );
    assert_eq!(
        write(s, Insert, group(1, 6, &[(1, 1, None)])),
        Err(NotFound)
    );
    for id in 1..=3 {
        assert_eq!(write(s, Insert, member(SELECTOR, id, 1)), Ok(()));
    }
    for (max_size, members, expected) in [
        (0, &[(1, 1, None)][..], Err(InvalidArgument)),
        (7, &[(1, 1, None)], Err(InvalidArgument)),
        (6, &[(1, 0, None)], Err(InvalidArgument)),
        (6, &[(1, 1, None), (1, 1, None)], Err(InvalidArgument)),
        (6, &[(1, 1, Some(511))], Err(InvalidArgument)),
        (6, &[(9, 1, None)], Err(NotFound)),
        (6, &[(1, 7, None)], Err(ResourceExhausted)),
        (6, &[(1, 3, None), (2, 3, Some(510))], Ok(())),
    ] {
        assert_eq!(
            write(s, Insert, group(1, max_size, members)),
            expected,
            "{members:?}"
        );
    }
    assert_eq!(
        write(s, Insert, group(2, 6, &[(1, 3, None)])),
        Err(ResourceExhausted),
        "6 of 8"
    );
    assert_eq!(write(s, Insert, group(2, 6, &[(1, 2, None)])), Ok(()));
    assert_eq!(
        write(s, Modify, group(2, 5, &[(1, 1, None)])),
        Err(InvalidArgument),
        "max_size"
    );
    assert_eq!(write(s, Modify, group(3, 6, &[])), Err(NotFound));
    assert_eq!(
        write(s, Delete, member(SELECTOR, 2, 0)),
        Err(FailedPrecondition)
    );
    assert_eq!(
        write(s, Insert, entry(SELECTED, 0x80, Target::Group(3))),
        Err(NotFound)
    );
    assert_eq!(
        write(s, Insert, entry(SELECTED, 0x80, Target::Group(2))),
        Ok(())
    );
    assert_eq!(write(s, Delete, group(2, 0, &[])), Err(FailedPrecondition));
    assert_eq!(
        write(s, Insert, entry(SELECTED, 0x81, one_shot(&[(1, 1, None)]))),
        Err(InvalidArgument),
        "the profile has members"
    );
}

#[test]
fn one_shot_sets_come_and_go_with_their_entries() {
    use Operation::*;
    let mut switch = switch();
    let s = &mut switch;
    let set = one_shot(&[(1, 1, None), (2, 2, None), (3, 1, Some(7))]);
    assert_eq!(write(s, Insert, entry(SELECTED, 0x80, set.clone())), Ok(()));
    assert_eq!(
        write(s, Insert, member(SELECTOR, 1, 1)),
        Err(InvalidArgument)
    );
    for value in 0..100 {
        let expected = [1, 2, 2, 3][(crc16_of(value) % 4) as usize];
        assert_eq!(port(s, 0x80, value), Some(expected));
    }
    s.set_port_up(7, false);
    for value in 0..100 {
        let expected = [1, 2, 2][(crc16_of(value) % 3) as usize];
        assert_eq!(port(s, 0x80, value), Some(expected));
    }
    let read = s.read_entries(SELECTED).expect("exists");
    assert_eq!(read[0].entry.action, EntryAction::Target(set));
    let too_large = one_shot(&[(1, 5, None), (2, 2, None)]);
    assert_eq!(
        write(s, Modify, entry(SELECTED, 0x80, too_large)),
        Err(InvalidArgument)
    );
    let larger = one_shot(&[(5, 5, None)]);
    assert_eq!(
        write(s, Insert, entry(SELECTED, 0x81, larger.clone())),
        Err(ResourceExhausted)
    );
    assert_eq!(
        write(s, Modify, entry(SELECTED, 0x80, larger.clone())),
        Ok(()),
        "4 are freed"
    );
    assert_eq!(port(s, 0x80, 1), Some(5));
    assert_eq!(write(s, Delete, entry(SELECTED, 0x80, larger)), Ok(()));
    let profile = s.action_profile(SELECTOR).expect("exists");
    assert_eq!((profile.one_shots(), profile.size_of_groups(None)), (0, 0));
    assert!(profile.members.places.iter().all(Option::is_none));
    assert_eq!(write(s, Insert, member(SELECTOR, 1, 1)), Ok(()));
}

#[test]
fn a_group_without_selectable_members_is_a_hit_that_does_nothing() {
    use Operation::*;
    let mut switch = Bodies {
        ingress: "assign %1 = 9w6 apply t7 (%17, %18) hit %30 action_run %31
                  assign %18 = concat(zext(%30, 8), slice(%31, 7, 0))",
        ..Bodies::default()
    }
    .switch();
    let s = &mut switch;
    write(s, Insert, member(SELECTOR, 1, 1)).expect("fits");
    write(s, Insert, group(1, 6, &[])).expect("fits");
    write(s, Insert, entry(SELECTED, 0x80, Target::Group(1))).expect("fits");
    let nothing = [(6, vec![0x80, 1, 3])];
    assert_eq!(send(s, &[0x80, 0, 0]), nothing);
    write(s, Modify, group(1, 6, &[(1, 1, Some(2))])).expect("fits");
    assert_eq!(send(s, &[0x80, 0, 0]), [(1, vec![0x80, 1, 0])]);
    s.set_port_up(2, false);
    assert_eq!(send(s, &[0x80, 0, 0]), nothing);
    let read = s.read_entries(SELECTED).expect("exists");
    assert_eq!(read[0].counter.map(|c| c.packets), Some(3), "all were hits");
    s.set_port_up(2, true);
    assert_eq!(send(s, &[0x80, 0, 0]), [(1, vec![0x80, 1, 0])]);
}

#[test]
fn a_failed_batch_leaves_members_groups_and_entries_as_they_were() {
    use Operation::*;
    let mut switch = switch();
    let s = &mut switch;
    write(s, Insert, member(SELECTOR, 1, 1)).expect("fits");
    write(s, Insert, member(SELECTOR, 2, 2)).expect("fits");
    write(s, Insert, group(1, 6, &[(1, 1, None)])).expect("fits");
    write(s, Insert, entry(SELECTED, 0x80, Target::Group(1))).expect("fits");
    let updates = [
        (Modify, member(SELECTOR, 1, 5)),
        (Modify, group(1, 6, &[(2, 1, None)])),
        (Insert, entry(SELECTED, 0x81, Target::Member(1))),
        (Modify, entry(SELECTED, 0x80, Target::Member(2))),
        (Delete, group(1, 0, &[])),
        (Delete, entry(SELECTED, 0x81, Target::Member(1))),
        (Delete, member(SELECTOR, 1, 0)),
        (Insert, member(SELECTOR, 1, 8)),
        (Insert, member(SELECTOR, 1, 8)),
    ];
    let updates = updates.map(|(operation, entity)| Update { operation, entity });
    let results = s.write_batch(updates, Atomicity::RollbackOnError);
    assert_eq!(
        results.last().map(|r| r.clone().map_err(|e| e.code)),
        Some(Err(AlreadyExists))
    );
    assert_eq!((port(s, 0x80, 1), port(s, 0x81, 1)), (Some(1), Some(9)));
    let profile = s.action_profile(SELECTOR).expect("exists");
    assert_eq!(
        (profile.member(1), profile.member(2)),
        (Some(&forward(1)), Some(&forward(2)))
    );
    assert_eq!(profile.group(1).map(|g| g.members.len()), Some(1));
    assert_eq!(
        write(s, Delete, member(SELECTOR, 1, 0)),
        Err(FailedPrecondition)
    );
    assert_eq!(write(s, Delete, member(SELECTOR, 2, 0)), Ok(()));
}

proptest! {
    /// A group chooses as if each member occurred as often as its weight says.
    #[test]
    fn choices_follow_the_weights(
        members in proptest::collection::vec((1u32..5, proptest::option::of(0u32..4)), 0..8),
        down in proptest::collection::btree_set(0u32..4, 0..4),
        hash in any::<u64>(),
    ) {
        let mut ports = PortStates::all(true);
        for &port in &down {
            ports.set(port, false);
        }
        let shares = members.iter().map(|&(weight, watch_port)| Share { member: 0, weight, watch_port });
        let mut group = Group { id: None, max_size: 0, shares: shares.collect(), uses: 0, sums: Vec::new() };
        group.refresh(&ports);
        let naive: Vec<u32> = members
            .iter()
            .enumerate()
            .filter(|(_, (_, watch))| watch.is_none_or(|port| !down.contains(&port)))
            .flat_map(|(i, (weight, _))| vec![i as u32; *weight as usize])
            .collect();
        let expected = match naive.len() {
            0 => None,
            n => Some(naive[(hash % n as u64) as usize]),
        };
        prop_assert_eq!(group.choose(hash), expected);
    }

    /// Bits are laid side by side as in a header.
    #[test]
    fn appended_bits_are_the_concatenation(values in proptest::collection::vec((1u32..200, any::<[u64; 4]>()), 0..6)) {
        let values: Vec<Bits> = values.iter().map(|(w, l)| Bits::from_limbs(*w, &l[..w.div_ceil(64) as usize])).collect();
        let (mut bytes, mut used) = (Vec::new(), 0);
        for value in &values {
            used = append_bits(&mut bytes, used, value.limbs(), value.width());
        }
        let expected: Vec<bool> = values.iter().flat_map(|v| (0..v.width()).rev().map(|i| v.bit(i))).collect();
        let found: Vec<bool> = (0..used).map(|i| bytes[i as usize / 8] >> (7 - i % 8) & 1 == 1).collect();
        prop_assert_eq!(found, expected);
        prop_assert_eq!(bytes.len(), used.div_ceil(8) as usize);
    }
}
