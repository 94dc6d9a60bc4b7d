//! Requests as encoders make them, and everything that must be left to others.

use crate::protobuf::{put_bytes, put_message, put_number};
use crate::{ActionInfo, FieldInfo, NotPlain, PlainTables, TableInfo, WriteRequest};
use engine::control::{Entity, EntryAction, Operation, Update};
use engine::{Interpreter, Switch, SwitchConfig};
use ir::{Bits, KeyMatch, Program};
use proptest::prelude::*;
use std::sync::{Arc, OnceLock};

const SOURCE: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<9> a; bit<32> b; bit<16> c; bit<7> d; bit<128> e; }
struct headers_t { h_t h; }
struct meta_t { }
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.h); transition accept; }
}
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    direct_counter(CounterType.packets_and_bytes) hits;
    action set(bit<9> port, bit<48> mac) { s.egress_spec = port; h.h.e = (bit<128>)mac; }
    action drop() { mark_to_drop(s); }
    @defaultonly action miss() { }
    table exact_t {
        key = { h.h.b: exact; h.h.a: exact; }
        actions = { set; drop; @defaultonly miss; }
        default_action = miss;
        counters = hits;
        size = 100;
    }
    table lpm_t { key = { h.h.b: lpm; } actions = { set; drop; } size = 1000; }
    table all_t {
        key = { h.h.e: ternary; h.h.c: range; h.h.d: optional; h.h.a: exact; }
        actions = { set; drop; }
    }
    apply { exact_t.apply(); lpm_t.apply(); all_t.apply(); }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control V(inout headers_t h, inout meta_t m) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out p, in headers_t h) { apply { p.emit(h.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

fn program() -> Arc<Program> {
    static PROGRAM: OnceLock<Arc<Program>> = OnceLock::new();
    let compiled = || {
        let outcome = compile::compile_text(SOURCE, "plain.p4", &compile::Options::default());
        let rendered = outcome.render();
        Arc::new(
            outcome
                .compiled
                .unwrap_or_else(|| panic!("{rendered}"))
                .program,
        )
    };
    PROGRAM.get_or_init(compiled).clone()
}

/// What P4Info says of the program's tables.
fn infos(program: &Program) -> Vec<TableInfo> {
    let field = |key: &ir::Key| FieldInfo {
        id: key.id,
        kind: crate::tables::kind_name(key.kind).unwrap().into(),
        width: key.width,
    };
    let action = |of_table: &ir::TableAction| {
        let action = &program.actions[of_table.action.index()];
        let params = action
            .params
            .iter()
            .map(|p| (p.id, program.slots[p.slot.index()].width));
        ActionInfo {
            id: action.id,
            params: params.collect(),
        }
    };
    let table = |table: &ir::Table| TableInfo {
        id: table.id,
        fields: table.keys.iter().map(field).collect(),
        actions: table
            .actions
            .iter()
            .filter(|a| a.scope != ir::ActionScope::DefaultOnly)
            .map(action)
            .collect(),
    };
    program.tables.iter().map(table).collect()
}

fn tables() -> PlainTables {
    PlainTables::new(program(), &infos(&program()))
}

fn switch() -> Switch {
    let interpreter = Arc::new(Interpreter::new(program()));
    Switch::new(program(), interpreter, SwitchConfig::default())
}

fn table_id(name: &str) -> u32 {
    let program = program();
    program
        .tables
        .iter()
        .find(|t| t.name.ends_with(name))
        .unwrap()
        .id
}

fn action_id(name: &str) -> u32 {
    let program = program();
    program
        .actions
        .iter()
        .find(|a| a.name.ends_with(name))
        .unwrap()
        .id
}

fn message(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    fill(&mut out);
    out
}

/// A `FieldMatch` of this kind (its field number) with two parts.
fn match_of(id: u32, kind: u32, first: &[u8], second: &[u8]) -> Vec<u8> {
    message(|out| {
        put_number(out, 1, id.into());
        put_message(out, kind, |out| {
            put_bytes(out, 1, first);
            put_bytes(out, 2, second);
        });
    })
}

fn exact(id: u32, value: &[u8]) -> Vec<u8> {
    message(|out| {
        put_number(out, 1, id.into());
        put_message(out, 2, |out| put_bytes(out, 1, value));
    })
}

fn optional(id: u32, value: &[u8]) -> Vec<u8> {
    message(|out| {
        put_number(out, 1, id.into());
        put_message(out, 7, |out| put_bytes(out, 1, value));
    })
}

fn lpm(id: u32, value: &[u8], prefix_len: u64) -> Vec<u8> {
    message(|out| {
        put_number(out, 1, id.into());
        put_message(out, 4, |out| {
            put_bytes(out, 1, value);
            put_number(out, 2, prefix_len);
        });
    })
}

fn action(name: &str, args: &[(u32, &[u8])]) -> Vec<u8> {
    message(|out| {
        put_message(out, 1, |out| {
            put_number(out, 1, action_id(name).into());
            for (id, value) in args {
                put_message(out, 4, |out| {
                    put_number(out, 2, (*id).into());
                    put_bytes(out, 3, value);
                });
            }
        });
    })
}

fn set() -> Vec<u8> {
    action("set", &[(1, &[5]), (2, &[2, 0, 0, 0, 0, 1])])
}

/// A `TableEntry`.
fn entry(table: &str, matches: &[Vec<u8>], action: Option<Vec<u8>>, priority: u64) -> Vec<u8> {
    message(|out| {
        put_number(out, 1, table_id(table).into());
        for item in matches {
            put_bytes(out, 2, item);
        }
        if let Some(action) = action {
            put_bytes(out, 3, &action);
        }
        put_number(out, 4, priority);
    })
}

fn request(updates: &[(u64, Vec<u8>)]) -> Vec<u8> {
    message(|out| {
        put_number(out, 1, 7);
        put_message(out, 3, |out| put_number(out, 2, 3));
        for (kind, entry) in updates {
            put_message(out, 4, |out| {
                put_number(out, 1, *kind);
                put_message(out, 2, |out| put_bytes(out, 2, entry));
            });
        }
    })
}

fn updates(data: &[u8]) -> Result<Vec<Update>, NotPlain> {
    WriteRequest::parse(data)?.updates(&tables())
}

fn one(kind: u64, entry: Vec<u8>) -> Result<Update, NotPlain> {
    Ok(updates(&request(&[(kind, entry)]))?.remove(0))
}

fn all_matches() -> Vec<Vec<u8>> {
    vec![
        match_of(1, 3, &[0x0a], &[0xff]),
        match_of(2, 6, &[10], &[1, 0]),
        optional(3, &[0x7f]),
        exact(4, &[1, 0xff]),
    ]
}

#[test]
fn the_head_of_a_request() {
    let data = message(|out| {
        put_number(out, 1, 7);
        put_number(out, 2, 1);
        put_message(out, 3, |out| {
            put_number(out, 1, 1);
            put_number(out, 2, 2);
        });
        put_number(out, 5, 2);
        put_bytes(out, 6, b"fabric");
    });
    let parsed = WriteRequest::parse(&data).unwrap();
    assert_eq!(
        (parsed.device_id, parsed.role_id, parsed.role),
        (7, 1, "fabric")
    );
    assert_eq!(parsed.election_id, Some((1 << 64) + 2));
    assert_eq!((parsed.atomicity, parsed.len()), (2, 0));
    assert_eq!(WriteRequest::parse(&[]).unwrap().election_id, None);
}

#[test]
fn an_insert_of_every_kind_of_match() {
    let update = one(1, entry("all_t", &all_matches(), Some(set()), 9)).unwrap();
    assert_eq!(update.operation, Operation::Insert);
    let Entity::TableEntry { entry, .. } = update.entity else {
        panic!("a table entry")
    };
    let bits = Bits::from_u64;
    let expected = [
        KeyMatch::Ternary {
            value: bits(128, 10),
            mask: bits(128, 255),
        },
        KeyMatch::Range {
            low: bits(16, 10),
            high: bits(16, 256),
        },
        KeyMatch::Optional(Some(bits(7, 127))),
        KeyMatch::Exact(bits(9, 511)),
    ];
    assert_eq!(entry.matches, expected);
    assert_eq!(entry.priority, 9);
    let EntryAction::Call(call) = entry.action else {
        panic!("an action")
    };
    assert_eq!(call.args, [bits(9, 5), bits(48, 0x0200_0000_0001)]);
}

#[test]
fn what_is_left_out_matches_everything() {
    let only_exact = [exact(4, &[0])];
    let update = one(3, entry("all_t", &only_exact, None, 1)).unwrap();
    let Entity::TableEntry { entry, .. } = update.entity else {
        panic!("a table entry")
    };
    assert_eq!(
        entry.matches[0],
        KeyMatch::Ternary {
            value: Bits::zero(128),
            mask: Bits::zero(128)
        }
    );
    assert_eq!(
        entry.matches[1],
        KeyMatch::Range {
            low: Bits::zero(16),
            high: Bits::ones(16)
        }
    );
    assert_eq!(entry.matches[2], KeyMatch::Optional(None));
}

/// An entry of `exact_t` with something more in it.
fn exact_entry(more: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut data = entry("exact_t", &[exact(1, &[1]), exact(2, &[2])], Some(set()), 0);
    more(&mut data);
    data
}

#[test]
fn defaults_that_are_spelled_out_are_plain() {
    let zero = |out: &mut Vec<u8>, field: u8| out.extend([field << 3, 0]);
    let spelled = exact_entry(|out| {
        for field in [5, 8, 9, 13] {
            zero(out, field);
        }
        put_bytes(out, 11, &[]);
    });
    assert!(one(1, spelled).is_ok());
}

#[test]
fn what_is_wrong_or_rare_is_not_plain() {
    let long = [0u8; 40];
    let cases: Vec<(&str, u64, Vec<u8>)> = vec![
        ("no update type", 0, exact_entry(|_| {})),
        ("an unknown update type", 4, exact_entry(|_| {})),
        ("another table", 1, message(|out| put_number(out, 1, 1))),
        ("no table", 1, Vec::new()),
        (
            "a missing exact field",
            1,
            entry("exact_t", &[exact(1, &[1])], Some(set()), 0),
        ),
        (
            "an unknown field",
            1,
            exact_entry(|out| put_bytes(out, 2, &exact(9, &[1]))),
        ),
        (
            "a field twice",
            1,
            exact_entry(|out| put_bytes(out, 2, &exact(1, &[1]))),
        ),
        (
            "a value too wide",
            1,
            entry(
                "exact_t",
                &[exact(1, &[1]), exact(2, &[2, 0])],
                Some(set()),
                0,
            ),
        ),
        (
            "an empty value",
            1,
            entry("exact_t", &[exact(1, &[]), exact(2, &[2])], Some(set()), 0),
        ),
        (
            "another kind of match",
            1,
            entry("lpm_t", &[exact(1, &[1])], Some(set()), 0),
        ),
        (
            "a prefix of no length",
            1,
            entry("lpm_t", &[lpm(1, &[0], 0)], Some(set()), 0),
        ),
        (
            "a prefix too long",
            1,
            entry("lpm_t", &[lpm(1, &[0], 33)], Some(set()), 0),
        ),
        (
            "a negative prefix",
            1,
            entry("lpm_t", &[lpm(1, &[0], u64::MAX)], Some(set()), 0),
        ),
        (
            "bits behind the prefix",
            1,
            entry("lpm_t", &[lpm(1, &[10, 0, 0, 1], 24)], Some(set()), 0),
        ),
        (
            "a priority where there is none",
            1,
            entry("lpm_t", &[lpm(1, &[10, 0, 0, 0], 8)], Some(set()), 1),
        ),
        (
            "no priority",
            1,
            entry("all_t", &all_matches(), Some(set()), 0),
        ),
        (
            "a negative priority",
            1,
            entry("all_t", &all_matches(), Some(set()), u64::MAX),
        ),
        (
            "a mask of zero",
            1,
            entry(
                "all_t",
                &[match_of(1, 3, &[0], &[0]), exact(4, &[1])],
                Some(set()),
                1,
            ),
        ),
        (
            "bits outside the mask",
            1,
            entry(
                "all_t",
                &[match_of(1, 3, &[3], &[1]), exact(4, &[1])],
                Some(set()),
                1,
            ),
        ),
        (
            "a range upside down",
            1,
            entry(
                "all_t",
                &[match_of(2, 6, &[3], &[1]), exact(4, &[1])],
                Some(set()),
                1,
            ),
        ),
        (
            "a range of everything",
            1,
            entry(
                "all_t",
                &[match_of(2, 6, &[0], &[255, 255]), exact(4, &[1])],
                Some(set()),
                1,
            ),
        ),
        (
            "no action",
            1,
            entry("exact_t", &[exact(1, &[1]), exact(2, &[2])], None, 0),
        ),
        (
            "a modify without action",
            2,
            entry("exact_t", &[exact(1, &[1]), exact(2, &[2])], None, 0),
        ),
        (
            "an action for defaults",
            1,
            entry(
                "exact_t",
                &[exact(1, &[1]), exact(2, &[2])],
                Some(action("miss", &[])),
                0,
            ),
        ),
        (
            "an argument too few",
            1,
            entry("lpm_t", &[], Some(action("set", &[(1, &[5])])), 0),
        ),
        (
            "an argument twice",
            1,
            entry(
                "lpm_t",
                &[],
                Some(action("set", &[(1, &[5]), (1, &[5])])),
                0,
            ),
        ),
        (
            "an argument too many",
            1,
            entry("lpm_t", &[], Some(action("drop", &[(1, &[5])])), 0),
        ),
        (
            "an argument too wide",
            1,
            entry(
                "lpm_t",
                &[],
                Some(action("set", &[(1, &[2, 0]), (2, &[0])])),
                0,
            ),
        ),
        (
            "a member",
            1,
            entry("lpm_t", &[], Some(message(|out| put_number(out, 2, 1))), 0),
        ),
        (
            "a default entry",
            2,
            exact_entry(|out| put_number(out, 8, 1)),
        ),
        (
            "controller metadata",
            1,
            exact_entry(|out| put_number(out, 5, 1)),
        ),
        ("metadata", 1, exact_entry(|out| put_bytes(out, 11, b"x"))),
        (
            "an idle timeout",
            1,
            exact_entry(|out| put_number(out, 9, 1)),
        ),
        ("counter data", 1, exact_entry(|out| put_bytes(out, 7, &[]))),
        (
            "meter configuration",
            1,
            exact_entry(|out| put_bytes(out, 6, &[])),
        ),
        (
            "a table id twice",
            1,
            exact_entry(|out| put_number(out, 1, 1)),
        ),
        (
            "an unknown field of the message",
            1,
            exact_entry(|out| put_number(out, 99, 1)),
        ),
        (
            "a fixed number",
            1,
            exact_entry(|out| out.extend([0x0d, 0, 0, 0, 0])),
        ),
        (
            "a field cut off",
            1,
            exact_entry(|out| out.extend([0x12, 0x7f])),
        ),
        (
            "field number zero",
            1,
            exact_entry(|out| out.extend([0, 0])),
        ),
        (
            "a varint without end",
            1,
            exact_entry(|out| out.extend([0xff; 12])),
        ),
    ];
    for (what, kind, entry) in cases {
        assert_eq!(one(kind, entry).err(), Some(NotPlain), "{what}");
    }
    // Leading zeros, however many, are fine.
    assert!(
        one(
            1,
            entry(
                "exact_t",
                &[exact(1, &long), exact(2, &long)],
                Some(set()),
                0
            )
        )
        .is_ok()
    );
}

#[test]
fn another_entity_makes_the_request_not_plain() {
    let data = message(|out| {
        put_message(out, 4, |out| {
            put_number(out, 1, 2);
            put_message(out, 2, |out| put_bytes(out, 7, &[]));
        });
    });
    assert_eq!(updates(&data).err(), Some(NotPlain));
    let mut mixed = request(&[(1, exact_entry(|_| {}))]);
    mixed.extend(data);
    assert_eq!(updates(&mixed).err(), Some(NotPlain));
}

#[test]
fn tables_that_p4info_describes_otherwise_are_left_out() {
    let program = program();
    let changed = |change: fn(&mut TableInfo)| {
        let mut infos = infos(&program);
        change(&mut infos[0]);
        PlainTables::new(program.clone(), &infos).len()
    };
    assert_eq!(changed(|_| {}), 3);
    assert_eq!(changed(|t| t.fields[0].width += 1), 2);
    assert_eq!(changed(|t| t.fields[0].kind = "lpm".into()), 2);
    assert_eq!(changed(|t| t.fields[0].id = 9), 2);
    assert_eq!(changed(|t| t.fields.truncate(1)), 2);
    assert_eq!(changed(|t| t.actions[0].params[0].1 += 1), 2);
    assert_eq!(changed(|t| t.actions[0].params.truncate(1)), 2);
    assert_eq!(changed(|t| t.actions[0].id += 1000), 2);
    assert_eq!(changed(|t| t.id += 1), 2);
    let miss = action_id("miss");
    let infos: Vec<_> = infos(&program)
        .into_iter()
        .map(|mut table| {
            table.actions.push(ActionInfo {
                id: miss,
                params: Vec::new(),
            });
            table
        })
        .collect();
    assert!(PlainTables::new(program, &infos).is_empty());
}

#[test]
fn entries_are_read_as_they_were_written() {
    let mut switch = switch();
    let entries = vec![
        (1, entry("all_t", &all_matches(), Some(set()), 9)),
        (
            1,
            entry(
                "all_t",
                &[exact(4, &[0])],
                Some(action("drop", &[])),
                2_000_000_000,
            ),
        ),
        (
            1,
            entry("lpm_t", &[lpm(1, &[10, 0, 0, 0], 8)], Some(set()), 0),
        ),
        (1, entry("lpm_t", &[], Some(set()), 0)),
        (
            1,
            entry("exact_t", &[exact(1, &[1]), exact(2, &[2])], Some(set()), 0),
        ),
    ];
    for result in switch.write_batch(updates(&request(&entries)).unwrap(), true) {
        result.unwrap();
    }
    for name in ["all_t", "lpm_t", "exact_t"] {
        let of_table: Vec<_> = entries
            .iter()
            .filter(|(_, e)| {
                e.starts_with(&message(|out| put_number(out, 1, table_id(name).into())))
            })
            .collect();
        let expected = message(|out| {
            for (_, entry) in &of_table {
                put_message(out, 1, |out| put_bytes(out, 2, entry));
            }
        });
        assert_eq!(response(&switch, name, false), Ok(expected), "{name}");
    }
    let counted = response(&switch, "exact_t", true).unwrap();
    let mut with_counter = entries[4].1.clone();
    put_bytes(&mut with_counter, 7, &[]);
    assert_eq!(
        counted,
        message(|out| put_message(out, 1, |out| put_bytes(out, 2, &with_counter)))
    );
    assert_eq!(tables().response(1, &[], false), Err(NotPlain));
}

/// All entries of a table.
fn response(switch: &Switch, table: &str, counters: bool) -> Result<Vec<u8>, NotPlain> {
    let tables = tables();
    let table = tables.get(table_id(table)).unwrap().table;
    let entries = switch.read_entries(table).unwrap();
    let id = tables.program.tables[table.index()].id;
    tables.response(id, &entries, counters)
}

#[test]
fn long_messages_have_long_lengths() {
    for length in [0, 1, 127, 128, 16_383, 16_384, 70_000] {
        let content = vec![7; length];
        let nested = message(|out| put_message(out, 3, |out| put_bytes(out, 2, &content)));
        let plain = message(|out| put_bytes(out, 3, &message(|out| put_bytes(out, 2, &content))));
        assert!(nested == plain, "{length}");
    }
}

/// A request of up to four updates that are plain.
fn plain_request() -> impl Strategy<Value = Vec<u8>> {
    let exact_entries = (any::<[u8; 4]>(), 0u16..512).prop_map(|(b, a)| {
        entry(
            "exact_t",
            &[exact(1, &b), exact(2, &a.to_be_bytes())],
            Some(set()),
            0,
        )
    });
    let routes = (any::<u32>(), 1u32..=32).prop_map(|(value, length)| {
        let value = value & (u32::MAX << (32 - length));
        entry(
            "lpm_t",
            &[lpm(1, &value.to_be_bytes(), length.into())],
            Some(set()),
            0,
        )
    });
    let wide =
        (1u64..1000).prop_map(|priority| entry("all_t", &all_matches(), Some(set()), priority));
    let entries = prop_oneof![exact_entries, routes, wide];
    prop::collection::vec((1u64..=3, entries), 0..4).prop_map(|updates| request(&updates))
}

proptest! {
    #[test]
    fn plain_requests_are_taken(data in plain_request()) {
        prop_assert!(updates(&data).is_ok());
    }

    /// Whatever the bytes, there is an answer, and what is taken for updates can be given to the switch.
    #[test]
    fn damaged_requests_do_no_harm(
        data in plain_request(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<Option<prop::sample::Index>>(),
    ) {
        let mut data = data;
        for (at, byte) in damage {
            let at = at.index(data.len());
            data[at] = byte;
        }
        if let Some(cut) = cut {
            data.truncate(cut.index(data.len()));
        }
        if let Ok(updates) = updates(&data) {
            let mut switch = switch();
            switch.write_batch(updates, false);
        }
    }

    #[test]
    fn noise_does_no_harm(data in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = updates(&data);
    }
}
