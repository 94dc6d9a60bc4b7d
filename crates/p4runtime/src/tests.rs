//! Bytes written from the message definitions of the standard, values, translations, and damaged requests.

use crate::messages as m;
use crate::translation::Translation;
use crate::values::{Type, bytestring, number};
use crate::{Batch, Mappings, Pipeline, ReadRequest, Reading, WriteRequest};
use bytes::Bytes;
use engine::control::ControlErrorCode;
use engine::{Interpreter, Switch, SwitchConfig};
use ir::{Bits, Program};
use proptest::prelude::*;
use std::sync::{Arc, OnceLock};

const SOURCE: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<32> a; bit<16> b; }
struct headers_t { h_t h; }
struct meta_t { }
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.h); transition accept; }
}
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action set(bit<9> port) { s.egress_spec = port; }
    @id(0x02000001) table routes { key = { h.h.a: lpm; } actions = { set; } size = 4; }
    @id(0x02000002) table rules { key = { h.h.a: ternary; h.h.b: range; } actions = { set; } }
    apply { routes.apply(); rules.apply(); }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control V(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out p, in headers_t h) { apply { p.emit(h.h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"#;

/// Returns the program, which is compiled only once, with its serialized P4Info.
fn compiled() -> &'static (Arc<Program>, Vec<u8>) {
    static COMPILED: OnceLock<(Arc<Program>, Vec<u8>)> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let outcome = compile::compile_text(SOURCE, "tests.p4", &compile::Options::default());
        let rendered = outcome.render();
        let compiled = outcome.compiled.unwrap_or_else(|| panic!("{rendered}"));
        (Arc::new(compiled.program), compiled.p4info.to_bytes())
    })
}

fn program() -> Arc<Program> {
    compiled().0.clone()
}

fn pipeline() -> Arc<Pipeline> {
    let info = &compiled().1;
    Arc::new(Pipeline::new(program(), &[], info, &Mappings::new()).unwrap())
}

fn switch() -> Switch {
    let interpreter = Arc::new(Interpreter::new(program()));
    Switch::new(program(), interpreter, SwitchConfig::default())
}

/// Encodes a length-delimited field of a message from its number and contents.
fn field(number: u8, contents: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, contents.len() as u8], contents].concat()
}

/// Encodes a `TableEntry` of table 0x02000001 for 10.0.0.0/8 to port 5, followed by the fields `more`.
fn route(more: &[u8]) -> Vec<u8> {
    let set = program()
        .actions
        .iter()
        .find(|a| a.name.ends_with("set"))
        .unwrap()
        .id;
    let mut action = vec![0x08];
    prost::encoding::encode_varint(set.into(), &mut action);
    action.extend(field(4, &[0x10, 1, 0x1a, 1, 5]));
    [
        &[0x08, 0x81, 0x80, 0x80, 0x10][..],
        &field(
            2,
            &[&[0x08, 1], &*field(4, &[0x0a, 4, 10, 0, 0, 0, 0x10, 8])].concat(),
        ),
        &field(3, &field(1, &action)),
        more,
    ]
    .concat()
}

/// Encodes a `WriteRequest` with these updates, each given as type and encoded table entry.
fn request(updates: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let updates = updates.iter().map(|(kind, entry)| {
        let entity = field(2, &field(2, entry));
        field(4, &[&[0x08, *kind], &*entity].concat())
    });
    [vec![0x08, 1], updates.collect::<Vec<_>>().concat()].concat()
}

fn codes(switch: &mut Switch, data: Vec<u8>, atomic: bool) -> Vec<(usize, ControlErrorCode)> {
    let request = WriteRequest::decode(Bytes::from(data)).unwrap();
    let mut batch = Batch::new(pipeline_of(switch), &request).unwrap();
    match atomic {
        true => batch.apply_atomic(switch),
        false => while batch.apply_next(switch) {},
    }
    let failures = batch.take_failures().into_iter();
    failures.map(|(at, error)| (at, error.code)).collect()
}

#[test]
fn updates_are_counted_by_kind_and_status() {
    let count = |updates: &[(u8, Vec<u8>)], atomic: bool| {
        let mut switch = switch();
        let request = WriteRequest::decode(Bytes::from(request(updates))).unwrap();
        let mut batch = Batch::new(pipeline_of(&switch), &request).unwrap();
        match atomic {
            true => batch.apply_atomic(&mut switch),
            false => while batch.apply_next(&mut switch) {},
        }
        let failures: Vec<_> = batch.take_failures().into_iter().map(Into::into).collect();
        let tally = batch.tally(&failures).into_iter();
        tally
            .map(|(((entity, kind), status), count)| format!("{entity} {kind} {status} {count}"))
            .collect::<Vec<_>>()
    };
    let updates = [
        (1, route(&[])),
        (1, route(&[])),
        (2, route(&[])),
        (3, route(&[])),
        (3, route(&[])),
        (9, route(&[])),
        (1, route(&[])),
    ];
    assert_eq!(
        count(&updates, false),
        [
            "table_entry delete NOT_FOUND 1",
            "table_entry delete OK 1",
            "table_entry insert ALREADY_EXISTS 1",
            "table_entry insert OK 2",
            "table_entry modify OK 1",
            "table_entry unspecified INVALID_ARGUMENT 1",
        ]
    );
    assert_eq!(
        count(&updates[..2], true),
        [
            "table_entry insert ABORTED 1",
            "table_entry insert ALREADY_EXISTS 1"
        ]
    );
    assert!(count(&[], false).is_empty());
    let mut switch = switch();
    let bare = WriteRequest::decode(Bytes::from_static(&[0x22, 2, 0x08, 1])).unwrap();
    let mut batch = Batch::new(pipeline_of(&switch), &bare).unwrap();
    while batch.apply_next(&mut switch) {}
    let failures: Vec<_> = batch.take_failures().into_iter().map(Into::into).collect();
    let kinds: Vec<_> = batch.tally(&failures).into_keys().collect();
    assert_eq!(
        kinds,
        [(("unspecified", "insert"), "INVALID_ARGUMENT".into())]
    );
}

fn pipeline_of(switch: &Switch) -> Arc<Pipeline> {
    let info = &compiled().1;
    Arc::new(Pipeline::new(switch.program().clone(), &[], info, &Mappings::new()).unwrap())
}

fn responses(switch: &mut Switch, request: &[u8]) -> Vec<Vec<u8>> {
    let request = ReadRequest::decode(request).unwrap();
    let mut reading = Reading::new(pipeline_of(switch), &request, switch);
    let mut found = Vec::new();
    while let Some(slice) = reading.fetch(switch) {
        found.extend(reading.encode(slice));
    }
    assert_eq!(reading.failures().1, []);
    found
}

#[test]
fn entries_are_read_as_the_bytes_that_were_written() {
    let metadata = field(11, b"m");
    for more in [&[][..], &metadata] {
        let mut switch = switch();
        let insert = request(&[(1, route(more))]);
        assert_eq!(codes(&mut switch, insert.clone(), false), []);
        // An Entity with a TableEntry that names the table.
        let wanted = field(2, &field(2, &[0x08, 0x81, 0x80, 0x80, 0x10]));
        let entity = field(1, &field(2, &route(more)));
        assert_eq!(responses(&mut switch, &wanted), [entity]);
        assert_eq!(
            codes(&mut switch, insert, true),
            [(0, ControlErrorCode::AlreadyExists)]
        );
        assert_eq!(codes(&mut switch, request(&[(3, route(&[]))]), true), []);
        assert_eq!(responses(&mut switch, &wanted), [] as [Vec<u8>; 0]);
    }
}

#[test]
fn a_batch_that_fails_changes_nothing_or_only_what_did_not_fail() {
    use ControlErrorCode::{Aborted, AlreadyExists};
    let twice = || request(&[(1, route(&[])), (1, route(&[]))]);
    let mut switch = switch();
    assert_eq!(
        codes(&mut switch, twice(), true),
        [(0, Aborted), (1, AlreadyExists)]
    );
    assert_eq!(codes(&mut switch, twice(), false), [(1, AlreadyExists)]);
}

#[test]
fn one_request_opens_one_snapshot_of_a_table() {
    let mut switch = switch();
    let all = field(2, &field(2, &[]));
    let request = ReadRequest::decode(&all.repeat(50)).unwrap();
    let reading = Reading::new(pipeline_of(&switch), &request, &mut switch);
    assert_eq!(reading.snapshots, program().tables.len());
}

#[test]
fn strings_of_a_translation_are_numbers_of_the_switch() {
    let what = || "x".to_owned();
    let translation = Translation::new("example.org/x", 0, None).unwrap();
    let to_switch = |text: &[u8]| translation.to_switch(text, &what);
    let to_controller = |n| translation.to_controller(&Bits::from_u64(16, n));
    assert_eq!(to_controller(5), "5");
    assert_eq!(to_switch(b"5"), Ok(5));
    assert_eq!(to_switch(b"007"), Ok(1));
    assert_eq!(to_controller(1), "007");
    assert_eq!(to_switch(b"1"), Ok(2));
    assert!(to_switch(b"\xff").is_err() && to_switch(b"").is_err());
    let same = [(vec![1], 1), (vec![2], 1)].into();
    assert!(Translation::new("example.org/x", 32, Some(&same)).is_err());
}

#[test]
fn byte_strings_are_the_shortest_and_taken_with_leading_zeros() {
    assert_eq!(bytestring(&Bits::from_u64(32, 0)), &[0][..]);
    assert_eq!(bytestring(&Bits::from_u64(32, 0x0a00)), &[0x0a, 0][..]);
    assert_eq!(number(&[0, 0, 1], 8, 8), Ok(Bits::from_u64(8, 1)));
    assert!(number(&[], 8, 8).is_err() && number(&[1, 0], 8, 8).is_err());
    // int<w> is two's complement, the shortest (specification, "Bytestrings").
    let int = Type::Int(16);
    for (value, bytes) in [
        (0_u64, &[0][..]),
        (99, &[99]),
        (128, &[0, 128]),
        (0xff9d, &[0x9d]),
        (0xff80, &[0x80]),
        (0xff7f, &[0xff, 0x7f]),
    ] {
        let data = int.to_data(&Bits::from_u64(16, value));
        let string = m::DataKind::Bitstring(Bytes::copy_from_slice(bytes));
        assert_eq!(data.data, Some(string));
    }
}

fn types() -> impl Strategy<Value = Type> {
    let leaf = prop_oneof![
        Just(Type::Bool),
        (1..130_u32).prop_map(Type::Bit),
        (1..130_u32).prop_map(Type::Int),
        (1..20_u32).prop_map(Type::Enum),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let members = prop::collection::vec(inner, 1..4);
        prop_oneof![
            members.clone().prop_map(Type::Struct),
            members.prop_map(Type::Tuple)
        ]
    })
}

proptest! {
    #[test]
    fn data_is_the_value_that_it_came_from(ty in types(), bytes in prop::collection::vec(any::<u8>(), 80)) {
        let value = Bits::from_be_bytes(ty.width(), &bytes);
        prop_assert_eq!(ty.value_of(Some(&ty.to_data(&value))).unwrap(), Some(value));
    }

    /// Every request has an answer, and the switch can be read afterwards.
    #[test]
    fn damaged_requests_are_refused(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<prop::sample::Index>(),
        kind in 0..5_u8,
    ) {
        let mut data = request(&[(kind, route(&field(11, b"m"))), (1, route(&[]))]);
        let at = at.index(data.len());
        data[at] = byte;
        data.truncate(cut.index(data.len()) + 1);
        let mut switch = switch();
        if let Ok(request) = WriteRequest::decode(Bytes::from(data.clone()))
            && let Ok(mut batch) = Batch::new(pipeline(), &request)
        {
            while batch.apply_next(&mut switch) {}
            prop_assert!(batch.take_failures().len() <= request.updates.len());
        }
        if let Ok(request) = ReadRequest::decode(&data) {
            let mut reading = Reading::new(pipeline(), &request, &mut switch);
            while let Some(slice) = reading.fetch(&switch) {
                reading.encode(slice);
            }
        }
    }
}
