//! Parser, deparser, statements and externs on hand-made programs; random programs on random packets.

use crate::Time;
use crate::control::Entry;
use crate::exec::{Executor, PacketContext};
use crate::test_programs::{Bodies, ports_and_bytes, send, switch};
use crate::{DropReason, Interpreter, Packet, Switch, SwitchConfig};
use ir::{ActionCall, ActionId, Bits, KeyMatch, TableId};
use proptest::prelude::*;
use std::sync::Arc;

/// Makes an entry for a table with one exact key of 8 bits, which matches the key 3.
fn entry(action: ActionId, args: Vec<Bits>) -> Entry {
    let matches = vec![KeyMatch::Value(Bits::from_u64(8, 3))];
    Entry::new(matches, 0, ActionCall { action, args })
}

/// Returns a switch whose program has the parser `states`, and pushes a tag header that reports the parser error in
/// ingress.
fn error_reporter(states: &'static str) -> Switch {
    Bodies {
        states,
        ingress: "set_valid h0 assign %17 = 8w0 assign %18 = %14 assign %1 = 9w1",
        ..Bodies::default()
    }
    .switch()
}

/// Sends a packet, and asserts that one packet comes out. Returns the parser error in its tag and the bytes behind the
/// tag.
fn error_and_rest(switch: &mut Switch, bytes: &[u8]) -> (u8, Vec<u8>) {
    let out = send(switch, bytes);
    assert_eq!(out.len(), 1);
    (out[0].1[2], out[0].1[3..].to_vec())
}

const OPTIONS_PARSER: &str = r#"
state s0 "start" {
  lookahead %28 at 0
  extract h2 length shl(zext(slice(%28, 31, 24), 32), 8w3)
  goto accept
}
"#;

#[test]
fn varbit_of_every_length_goes_in_and_out() {
    let mut switch = Bodies {
        states: OPTIONS_PARSER,
        ..Bodies::default()
    }
    .switch();
    for length in 0..=8u8 {
        let mut packet = vec![length];
        packet.extend((0..length).map(|i| 0xa0 + i));
        packet.extend([0xee, 1, 2, 3]);
        assert_eq!(send(&mut switch, &packet), [(1, packet)]);
    }
}

#[test]
fn varbit_errors_come_in_order() {
    let mut switch = error_reporter(OPTIONS_PARSER);
    // Too few bytes is noticed before too long.
    let (error, rest) = error_and_rest(&mut switch, &[9, 1, 2, 3, 4, 5]);
    assert_eq!((error, rest.len()), (1, 6));
    let (error, rest) = error_and_rest(&mut switch, &[9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!((error, rest.len()), (4, 11));
    let odd = r#"state s0 "start" { extract h2 length 32w7 goto accept }"#;
    assert_eq!(error_and_rest(&mut error_reporter(odd), &[1]).0, 6);
}

#[test]
fn a_failed_extract_leaves_header_and_cursor() {
    let states = r#"
        state s0 "start" { extract h1 goto s1 }
        state s1 "again" { extract h1 goto accept }
    "#;
    let mut switch = error_reporter(states);
    // h1 keeps the first four bytes, is emitted behind the tag, and the rest follows.
    let out = send(&mut switch, &[1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(out, [(1, vec![0, 0, 1, 1, 2, 3, 4, 5, 6, 7])]);
}

#[test]
fn lookahead_and_advance() {
    let states = r#"
        state s0 "start" {
          lookahead %28 at 4
          advance concat(23w0, concat(slice(%28, 31, 26), 3w0))
          extract h1
          goto accept
        }
    "#;
    let mut switch = Bodies {
        states,
        ..Bodies::default()
    }
    .switch();
    // The six bits after the first four say how many bytes to skip: 0b000010.
    assert_eq!(
        send(&mut switch, &[0xf0, 0x8f, 1, 2, 3, 4, 5]),
        [(1, vec![1, 2, 3, 4, 5])]
    );
    let mut switch = error_reporter(states);
    assert_eq!(error_and_rest(&mut switch, &[0, 0, 0, 0]).0, 1, "lookahead");
    assert_eq!(
        error_and_rest(&mut switch, &[0xff, 0xff, 0, 0, 0]).0,
        1,
        "advance"
    );
    let odd = r#"state s0 "start" { advance 32w12 goto accept }"#;
    assert_eq!(error_and_rest(&mut error_reporter(odd), &[0, 0]).0, 6);
}

#[test]
fn select_takes_the_first_case_that_matches() {
    let states = r#"
        state s0 "start" {
          lookahead %28 at 0
          select (slice(%28, 31, 24), slice(%28, 23, 16)) {
            case (8w1 .. 8w3, _) s1
            case (8w2 & 8w0xff, _) accept
            case (8w0x10 & 8w0xf0, 8w5 & 8w0xff) s2
          }
        }
        state s1 "own" { reject 16w7 goto reject }
        state s2 "own" { goto reject }
    "#;
    let mut switch = error_reporter(states);
    assert_eq!(error_and_rest(&mut switch, &[1, 0, 0, 0]).0, 7);
    assert_eq!(error_and_rest(&mut switch, &[2, 0, 0, 0]).0, 7);
    assert_eq!(error_and_rest(&mut switch, &[0x1f, 5, 0, 0]).0, 0);
    assert_eq!(error_and_rest(&mut switch, &[0x1f, 6, 0, 0]).0, 2);
}

#[test]
fn value_sets_select() {
    let states = r#"
        state s0 "start" { extract h0 select (%17) { case (v0) s1 case (_) accept } }
        state s1 "own" { reject 16w7 goto reject }
    "#;
    let mut switch = Bodies {
        states,
        ingress: "assign %18 = %14 assign %1 = 9w1",
        ..Bodies::default()
    }
    .switch();
    assert_eq!(send(&mut switch, &[4, 9, 9]), [(1, vec![4, 0, 0])]);
    let member = |value| vec![KeyMatch::Value(Bits::from_u64(8, value))];
    let members = vec![member(3), member(4)];
    let value_set = ir::ValueSetId(0);
    switch
        .set_value_set_members(value_set, members)
        .expect("fits");
    assert_eq!(send(&mut switch, &[4, 9, 9]), [(1, vec![4, 0, 7])]);
    assert_eq!(send(&mut switch, &[5, 9, 9]), [(1, vec![5, 0, 0])]);
}

#[test]
fn invalid_headers_are_zero_and_not_emitted() {
    let mut switch = switch(
        "set_invalid h0 assign %26 = %18 set_valid h1 assign %20 = zext(%26, 32) assign %1 = 9w1",
        "",
    );
    assert_eq!(send(&mut switch, &[1, 2, 3, 9]), [(1, vec![0, 0, 0, 0, 9])]);
}

#[test]
fn loops_blocks_and_breaks() {
    // Sums 1..=10 with a loop, leaving through the outer block.
    let mut switch = switch(
        "block b0 { loop b1 {
             if eq(%28, 32w10) { break b0 }
             assign %28 = add(%28, 32w1)
             assign %31 = add(%31, %28)
         } }
         assign %18 = slice(%31, 15, 0)
         switch %17 { case 8w1, 8w2 { assign %1 = 9w2 } case 8w3 { assign %1 = 9w3 } default { assign %1 = 9w4 } }",
        "",
    );
    assert_eq!(send(&mut switch, &[2, 0, 0]), [(2, vec![2, 0, 55])]);
    assert_eq!(send(&mut switch, &[3, 0, 0]), [(3, vec![3, 0, 55])]);
    assert_eq!(send(&mut switch, &[9, 0, 0]), [(4, vec![9, 0, 55])]);
}

#[test]
fn the_step_limit_counts_iterations_and_transitions_together() {
    let spin = |n: u32| -> Switch {
        let ingress: &'static str = Box::leak(
            format!(
                "loop b0 {{ if eq(%28, 32w{n}) {{ break b0 }} assign %28 = add(%28, 32w1) }}
                 assign %1 = 9w1"
            )
            .into_boxed_str(),
        );
        // Three transitions backwards.
        let states = r#"
            state s0 "start" {
              extract h0
              select (%17) { case (8w0 & 8w0) s0 }
            }
        "#;
        Bodies {
            states,
            ingress,
            ..Bodies::default()
        }
        .switch()
    };
    let packet = [0u8; 9];
    // Three of the steps are the parser's; the fourth extract fails.
    assert_eq!(send(&mut spin(ir::MAX_STEPS - 3), &packet).len(), 1);
    let mut over = spin(ir::MAX_STEPS - 2);
    assert_eq!(send(&mut over, &packet), []);
    assert_eq!(over.drops()[&DropReason::StepLimit], 1);
    let mut endless = switch("", "loop b0 { }");
    assert_eq!(send(&mut endless, &packet), []);
    assert_eq!(endless.drops()[&DropReason::StepLimit], 1);
}

#[test]
fn exit_leaves_the_control_from_an_action_but_not_the_pipeline() {
    let mut switch = switch(
        "assign %1 = 9w1 apply t0 (%17) assign %1 = 9w2",
        "assign %18 = 16w0xabcd exit assign %18 = 16w0",
    );
    let stop = entry(ActionId(2), vec![]);
    switch.insert_entry(TableId(0), stop).expect("fits");
    assert_eq!(send(&mut switch, &[3, 0, 0]), [(1, vec![3, 0xab, 0xcd])]);
    assert_eq!(send(&mut switch, &[4, 0, 0]), [(2, vec![4, 0xab, 0xcd])]);
}

#[test]
fn apply_reports_hit_and_action_and_passes_wide_arguments() {
    let mut switch = switch(
        "apply t0 (%17) hit %30 action_run %31
         assign %18 = concat(concat(%30, slice(%31, 6, 0)), slice(%32, 99, 92)) assign %1 = 9w1",
        "",
    );
    let entry = entry(ActionId(3), vec![Bits::ones(100), Bits::from_u64(16, 1)]);
    switch.insert_entry(TableId(0), entry).expect("fits");
    assert_eq!(send(&mut switch, &[3, 0, 0]), [(1, vec![3, 0x83, 0xff])]);
    assert_eq!(send(&mut switch, &[4, 0, 0]), [(1, vec![4, 0x01, 0])]);
}

#[test]
fn registers_counters_and_meters_by_index() {
    let mut switch = switch(
        "register_read %28 = r0[zext(%17, 32)]
         register_write r0[zext(%17, 32)] = add(%28, 32w1)
         register_write r1[32w1] = zext(%28, 100)
         register_read %32 = r1[32w1]
         count c0[zext(%17, 32)]
         meter_execute %28 = m0[zext(%17, 32)]
         assign %18 = concat(slice(%28, 7, 0), slice(%32, 7, 0))
         assign %1 = 9w1",
        "",
    );
    let config = crate::meter::MeterConfig {
        cir: 1,
        cburst: 1,
        pir: 1,
        pburst: 2,
    };
    switch
        .write_meter(ir::MeterId(0), 1, Some(config))
        .expect("there is such a cell");
    assert_eq!(send(&mut switch, &[1, 0, 0, 9]), [(1, vec![1, 0, 0, 9])]);
    assert_eq!(send(&mut switch, &[1, 0, 0, 9]), [(1, vec![1, 1, 1, 9])]);
    assert_eq!(send(&mut switch, &[1, 0, 0, 9]), [(1, vec![1, 2, 2, 9])]);
    // Beyond the end: zero, nothing, green, and counted.
    assert_eq!(send(&mut switch, &[200, 9, 9]), [(1, vec![200, 0, 0])]);
    let out_of_range = switch.runtime().out_of_range();
    assert_eq!(
        (
            out_of_range.registers,
            out_of_range.counters,
            out_of_range.meters
        ),
        (2, 1, 1)
    );
    let counted = switch.read_counter(ir::CounterId(0), 1).expect("in range");
    assert_eq!((counted.packets, counted.bytes), (3, 12));
    let value = switch
        .read_register(ir::RegisterId(0), 1)
        .expect("in range");
    assert_eq!(value, Bits::from_u64(32, 3));
}

#[test]
fn checksums_with_and_without_payload() {
    let mut switch = Bodies {
        verify_checksum: "hash %28 = csum16 (%17, %18) if eq(%28, 32w0) { assign %13 = 1w1 }",
        ingress: "assign %27 = concat(15w0, %13) assign %1 = 9w1",
        egress: "",
        compute_checksum: "hash %18 = csum16 (%17, %27) payload",
        ..Bodies::default()
    }
    .switch();
    let sum = |bytes: &[u8]| crate::hash::csum16(bytes).to_be_bytes();
    // The payload follows the data in the middle of a word.
    let [a, b] = sum(&[7, 0, 0, 0x55, 0x66, 0x77]);
    assert_eq!(
        send(&mut switch, &[7, 1, 2, 0x55, 0x66, 0x77]),
        [(1, vec![7, a, b, 0x55, 0x66, 0x77])]
    );
    // A sum of all ones is a checksum of zero: the flag is set, and counts in the second sum.
    let [a, b] = sum(&[0xff, 0, 1, 0]);
    assert_eq!(send(&mut switch, &[0xff, 0xff, 0]), [(1, vec![0xff, a, b])]);
}

#[test]
fn assertions_and_random_and_logs() {
    let mut switch = switch(
        "random %28 = (zext(%17, 32), 32w9) log \"drew {} of {}\" (%28, %17)
         assert ult(%28, 32w10) assign %18 = slice(%28, 15, 0) assign %1 = 9w1",
        "",
    );
    for _ in 0..50 {
        let out = send(&mut switch, &[5, 0, 0]);
        assert!((5..=9).contains(&out[0].1[2]));
    }
    assert_eq!(send(&mut switch, &[10, 0, 0]), []);
    assert_eq!(switch.drops()[&DropReason::AssertFailed], 1);
    let (_, trace) = switch.trace(Time::ZERO, 5, Packet::new(&[9, 0, 0]));
    assert!(trace.to_string().contains("log: drew 9 of 9"), "{trace}");
}

/// An interpreter that checks before and after each part that no limb of a slot has bits above the slot's width, which
/// machine code takes for granted.
struct WithinWidths {
    program: Arc<ir::Program>,
    inner: Interpreter,
}

impl WithinWidths {
    fn checked(
        &self,
        cx: &mut PacketContext<'_>,
        run: impl FnOnce(&Interpreter, &mut PacketContext<'_>),
    ) {
        self.check(cx.state, "before");
        run(&self.inner, cx);
        self.check(cx.state, "after");
    }

    fn check(&self, state: &[u64], when: &str) {
        let layout = ir::Layout::new(&self.program);
        for (i, slot) in self.program.slots.iter().enumerate() {
            let id = ir::SlotId(i as u32);
            let at = layout.offset(id);
            let limbs = &state[at..at + layout.slot_limbs(id)];
            let cut = Bits::from_limbs(slot.width, limbs);
            assert_eq!(
                cut.limbs(),
                limbs,
                "{when}: {} has {} bits",
                slot.name,
                slot.width
            );
        }
    }
}

impl Executor for WithinWidths {
    fn run(&self, pipeline: ir::Pipeline, cx: &mut PacketContext<'_>) {
        self.checked(cx, |inner, cx| inner.run(pipeline, cx));
    }

    fn parse(&self, cx: &mut PacketContext<'_>) {
        self.checked(cx, |inner, cx| inner.parse(cx));
    }
}

/// Runs packets through a random program with multicast groups and clone sessions, every other packet with a trace.
/// Returns the ports and bytes of what each packet causes to be sent.
fn run_arbitrary(seed: u64, packets: &[Vec<u8>]) -> Vec<Vec<(u32, Vec<u8>)>> {
    let program = Arc::new(ir::arbitrary::program(seed));
    let executor = Arc::new(WithinWidths {
        inner: Interpreter::new(program.clone()),
        program: program.clone(),
    });
    let mut switch = Switch::new(
        program,
        executor,
        SwitchConfig {
            seed,
            ..SwitchConfig::default()
        },
    );
    let groups = (0..4).map(|id| crate::control::MulticastGroup {
        group_id: id + 1,
        replicas: vec![
            crate::control::Replica { port: id, rid: 1 },
            crate::control::Replica {
                port: 9,
                rid: id as u16,
            },
        ],
    });
    for group in groups {
        let session = crate::control::CloneSession {
            session_id: group.group_id - 1,
            replicas: group.replicas.clone(),
            packet_length_bytes: 20 * (group.group_id - 1),
            class_of_service: 0,
        };
        let entities = [
            crate::control::Entity::MulticastGroup(group),
            crate::control::Entity::CloneSession(session),
        ];
        for entity in entities {
            let operation = crate::control::Operation::Insert;
            switch
                .write(crate::control::Update { operation, entity })
                .expect("is new");
        }
    }
    let mut results = Vec::new();
    for (i, packet) in packets.iter().enumerate() {
        let now_ps = i as u64 * 1_000_000;
        let out = if i % 2 == 0 {
            let mut out = Vec::new();
            switch.receive(Time::from(now_ps), i as u32, Packet::new(packet), &mut out);
            out
        } else {
            let (out, trace) = switch.trace(Time::from(now_ps), i as u32, Packet::new(packet));
            assert!(trace.to_json().ends_with("]}"));
            assert!(!trace.to_string().is_empty());
            out
        };
        results.push(ports_and_bytes(out));
    }
    results
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn random_programs_and_packets_do_no_harm_and_repeat(seed in any::<u64>()) {
        let mut packets: Vec<Vec<u8>> = (0..4).map(|i| ir::arbitrary::packet(seed ^ i)).collect();
        let mut cut = packets[0].clone();
        cut.truncate(cut.len() / 2);
        packets.push(cut);
        prop_assert_eq!(run_arbitrary(seed, &packets), run_arbitrary(seed, &packets));
    }
}
