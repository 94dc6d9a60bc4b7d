//! Programs written for what random ones rarely meet, in the text form of the IR.

use crate::pair::Pair;
use engine::control::{CloneSession, Entity, MulticastGroup, Operation, Replica};
use ir::text::preamble;
use ir::{ActionCall, ActionId, Bits, TableId};

/// The first slots of every program here: standard metadata is `%0` to `%15`, and a header `h0` of two bytes and a 16-bit number
/// (`%16` valid, `%17`, `%18`), `h1` of one 24-bit field (`%19` valid, `%20`), and `h2` of one of 16 bits (`%24` valid, `%25`).
/// Scratch: `%21` to `%23`, 16 bits each, `%26`, which is too wide for values, and `%27` of 100 bits.
const SLOTS: [(&str, u32); 12] = [
    ("h0.$valid", 1),
    ("h0.a", 16),
    ("h0.n", 16),
    ("h1.$valid", 1),
    ("h1.b", 24),
    ("x", 16),
    ("y", 16),
    ("z", 16),
    ("h2.$valid", 1),
    ("h2.c", 16),
    ("wide", 1600),
    ("two_limbs", 100),
];

const HEADERS: &str = r#"
header h0 "h0" valid %16 { %17 %18 }
header h1 "h1" valid %19 { %20 }
header h2 "h2" valid %24 { %25 }
"#;

fn pair(rest: &str) -> Pair {
    let text = format!("{}{HEADERS}{rest}", preamble("directed", SLOTS));
    let program = ir::text::parse(&text).unwrap_or_else(|e| panic!("{e}"));
    let mut pair = Pair::new(program, 1);
    for session_id in 0..4 {
        let replicas = vec![Replica { port: 7, rid: 1 }];
        assert!(pair.write(
            Operation::Insert,
            Entity::CloneSession(CloneSession {
                session_id,
                replicas: replicas.clone(),
                packet_length_bytes: 10 * session_id,
                class_of_service: 0,
            }),
        ));
        assert!(pair.write(
            Operation::Insert,
            Entity::MulticastGroup(MulticastGroup {
                group_id: session_id + 1,
                replicas,
            }),
        ));
    }
    pair
}

/// Makes a packet of `a`, `n` and `rest` bytes more.
fn packet(a: u16, n: u16, rest: usize) -> Vec<u8> {
    let mut bytes = [a.to_be_bytes(), n.to_be_bytes()].concat();
    bytes.extend((0..rest).map(|i| i as u8));
    bytes
}

#[test]
fn loops_end_exactly_at_the_step_limit() {
    // As many rounds as the packet says in each half, after as many rounds through the parser.
    let loop_of = |label: u32, count: u32| {
        format!(
            "assign %21 = 16w0 loop b{label} {{ if ule(%{count}, %21) {{ break b{label} }}
             assign %21 = add(%21, 16w1) }}"
        )
    };
    let (ingress, egress) = (loop_of(0, 18), loop_of(1, 18));
    let mut pair = pair(&format!(
        r#"
        state s0 "start" {{ extract h0 goto s1 }}
        state s1 "again" {{ assign %22 = add(%22, 16w1) select (ult(%22, %17)) {{ case (1w1 & 1w1) s1 case (_) accept }} }}
        control verify_checksum {{ }}
        control ingress {{ {ingress} }}
        control egress {{ {egress} }}
        control compute_checksum {{ }}
        control deparser {{ emit h0 }}
        "#
    ));
    let mut left = Vec::new();
    for (a, n) in [
        (0, 4095),
        (0, 4096),
        (0, 4097),
        (4096, 0),
        (4097, 0),
        (4098, 0),
        (2049, 2048),
        (2049, 2049),
        (2000, 60000),
    ] {
        left.push(pair.receive(1, &packet(a, n, 3)));
    }
    // A parser that goes to a state `a` times goes back to it `a - 1` times; a loop of `n` rounds begins `n` more.
    assert_eq!(left, [1, 1, 0, 1, 1, 0, 1, 0, 0]);
    assert_eq!(pair.drops(), 4);
}

#[test]
fn egress_clones_take_headers_that_egress_never_reads() {
    // `h1` is valid and not emitted, so it counts when a clone's payload is cut; ingress must hand its validity on.
    let mut pair = pair(
        r#"
        state s0 "start" { extract h0 extract h1 goto accept }
        control verify_checksum { }
        control ingress { assign %1 = 9w3 }
        control egress {
          if eq(%3, 32w0) {
            assign %18 = add(%18, 16w7)
            clone e2e zext(slice(%17, 1, 0), 32)
          }
        }
        control compute_checksum { assign %17 = add(%17, 16w1) }
        control deparser { emit h0 }
        "#,
    );
    for session in 0..4 {
        assert_eq!(pair.receive(1, &packet(session, 5, 60)), 2);
    }
}

#[test]
fn a_packet_dropped_in_egress_is_cloned_as_egress_left_it() {
    // The checksum control must not run: the clone would show it.
    let mut pair = pair(
        r#"
        register r0 "r" id 1 : 16 size 4
        state s0 "start" { extract h0 goto accept }
        control verify_checksum { }
        control ingress { assign %1 = 9w3 }
        control egress {
          if eq(%3, 32w0) { clone e2e 32w0 assign %1 = slice(%18, 8, 0) }
        }
        control compute_checksum {
          assign %17 = add(%17, 16w1)
          register_write r0[32w1] = %17
        }
        control deparser { emit h0 }
        "#,
    );
    assert_eq!(pair.receive(1, &packet(7, 511, 9)), 1);
    assert_eq!(pair.receive(1, &packet(7, 5, 9)), 2);
    pair.compare_objects();
}

/// P4 has no way to write this, artifacts have.
#[test]
fn the_drop_port_counts_behind_the_egress_control_too() {
    let drop = "if ne(%17, 16w0) { assign %1 = 9w0x1ff }";
    for (compute, deparse) in [(drop, ""), ("", drop)] {
        let mut pair = pair(&format!(
            r#"
state s0 "start" {{ extract h0 goto accept }}
control verify_checksum {{ }}
control ingress {{ assign %1 = 9w1 if eq(%17, 16w2) {{ assign %11 = 16w1 }} }}
control egress {{ }}
control compute_checksum {{ {compute} }}
control deparser {{ {deparse} }}
"#
        ));
        for a in 0..3 {
            pair.receive(1, &packet(a, 0, 4));
        }
        assert_eq!(pair.drops(), 2);
    }
}

#[test]
fn the_egress_length_counts_headers_that_egress_never_reads() {
    let mut pair = pair(
        r#"
        state s0 "start" { extract h0 extract h1 goto accept }
        control verify_checksum { }
        control ingress { if eq(%18, 16w1) { set_invalid h1 } }
        control egress { assign %17 = slice(%4, 15, 0) }
        control compute_checksum { }
        control deparser { emit h0 }
        "#,
    );
    for n in 0..3 {
        assert_eq!(pair.receive(1, &packet(0, n, 30)), 1);
    }
}

#[test]
fn headers_emitted_in_a_loop_find_room() {
    let mut pair = pair(
        r#"
        state s0 "start" { extract h0 extract h1 goto accept }
        control verify_checksum { }
        control ingress { }
        control egress { }
        control compute_checksum { }
        control deparser {
          emit h0
          loop b0 {
            if ule(%18, %21) { break b0 }
            emit h1
            assign %21 = add(%21, 16w1)
            assign %20 = add(%20, 24w3)
          }
          emit h0
        }
        "#,
    );
    for n in [0, 1, 2, 100, 4000, 5000] {
        let left = pair.receive(1, &packet(1, n, 20));
        assert_eq!(left, u64::from(n < 4097));
    }
}

#[test]
fn last_request_of_a_kind_counts() {
    let mut pair = pair(
        r#"
        field_list l0 (%21)
        field_list l1 (%21, %22)
        state s0 "start" { extract h0 goto accept }
        control verify_checksum { }
        control ingress {
          if eq(%3, 32w0) {
            assign %21 = 16w3 assign %22 = 16w4
            clone i2e 32w1 preserve l0
            clone i2e 32w2 preserve l1
            truncate 32w40
            truncate 32w0
            truncate zext(%18, 32)
            if eq(%17, 16w1) { resubmit preserve l0 resubmit }
            if eq(%17, 16w2) { resubmit preserve l1 resubmit preserve l0 }
          }
        }
        control egress {
          assign %17 = concat(slice(%21, 7, 0), slice(%22, 7, 0))
          if and(eq(%3, 32w0), eq(%18, 16w9)) { recirculate preserve l0 recirculate preserve l1 }
        }
        control compute_checksum { }
        control deparser { emit h0 }
        "#,
    );
    for a in 0..4 {
        for n in [0, 9, 20, 0xffff] {
            assert!(pair.receive(1, &packet(a, n, 50)) > 0);
        }
    }
}

#[test]
fn an_assertion_that_fails_drops_in_either_half() {
    let mut pair = pair(
        r#"
        counter c0 "c" id 1 both size 4
        state s0 "start" { extract h0 goto accept }
        control verify_checksum { }
        control ingress { assert ne(%17, 16w1) count c0[32w0] }
        control egress { count c0[32w1] assert ne(%17, 16w2) count c0[32w2] }
        control compute_checksum { }
        control deparser { emit h0 }
        "#,
    );
    let left: Vec<u64> = (0..4).map(|a| pair.receive(1, &packet(a, 0, 5))).collect();
    assert_eq!(left, [1, 0, 0, 1]);
    pair.compare_objects();
}

#[test]
fn the_router_of_the_benchmark() {
    let program = ir::text::parse(include_str!("../../benches/router.ir")).expect("parses");
    let mut pair = Pair::new(program.clone(), 1);
    let mut rng = ir::arbitrary::Rng::new(5);
    pair.configure(&mut rng);
    let left: u64 = (0..300)
        .map(|_| pair.receive(1, &crate::packets::packet_for(&program, &mut rng)))
        .sum();
    // Few have a right checksum; those that have none are dropped.
    assert!(left + pair.drops() == 300);
}

/// The work of every outcome of a parser, one that is not specialised among them, when fields are assigned whose headers are there or not.
#[test]
fn fields_are_assigned_after_every_outcome_of_the_parser() {
    let tail = [
        // Nobody reads them again but the deparser.
        "assign %18 = %21 assign %20 = 24w7",
        // Read after the assignment, of a header that may not be there.
        "assign %20 = 24w7 assign %18 = 16w9 assign %17 = 16w3 if eq(%20, 24w7) { assign %17 = %18 }",
        // Gone, and perhaps there again, after the assignment.
        "assign %20 = 24w7 if eq(%18, 16w1) { set_invalid h1 } if eq(%18, 16w2) { set_valid h1 }",
        "assign %20 = 24w7 set_invalid h1 if ne(%18, 16w1) { set_valid h1 }",
        // The packet is wanted as it came.
        "assign %18 = 16w5 assign %20 = 24w7 if eq(%17, 16w2) { clone i2e 32w1 }",
        // A condition of several parts.
        "if or(and(%19, ne(%14, 16w1)), eq(%17, 16w1)) { assign %18 = 16w4 } else { assign %20 = 24w1 }",
        // Only ever zero.
        "assign %11 = 16w0 assign %22 = 16w0 assign %18 = %22",
    ];
    for ingress in tail {
        let text = format!(
            r#"
            state s0 "start" {{
              extract h0
              select (%17) {{
                case (16w1 & 16w0xffff) s1
                case (16w2 & 16w0xffff) s1
                case (16w3 & 16w0xffff) reject
                case (_) accept
              }}
            }}
            state s1 "more" {{ extract h1 if eq(%18, 16w6) {{ reject 16w6 }} goto accept }}
            control verify_checksum {{ }}
            control ingress {{ assign %1 = 9w4 assign %21 = add(%18, 16w1) {ingress} }}
            control egress {{ }}
            control compute_checksum {{ if %16 {{ hash %21 = csum16(%17) }} }}
            control deparser {{ emit h0 emit h1 }}
            "#
        );
        let mut pair = pair(&text);
        for a in 0..5 {
            for n in 0..8 {
                for rest in [0, 2, 3, 30] {
                    let left = pair.receive(1, &packet(a, n, rest));
                    assert!(left >= 1, "{ingress}");
                }
            }
        }
        pair.receive(1, &[0]);
        pair.compare_objects();
    }
}

/// Packets of the controller's port are parsed by states that no ordinary packet gets to, and what follows is not specialised for.
#[test]
fn packets_that_are_not_ordinary_are_done_from_the_start() {
    let mut pair = pair(
        r#"
        state s0 "start" { select (%0) { case (9w3 & 9w0x1ff) s1 case (_) s2 } }
        state s1 "controller" { extract h2 assign %23 = 16w5 goto s2 }
        state s2 "link" {
          lookahead %22 at 0
          select (%22) {
            case (16w0 & 16w0xffff) accept
            case (16w1 & 16w0xffff) s3
            case (16w2 & 16w0xffff) s4
            case (16w3 & 16w0xffff) reject
            case (_) s5
          }
        }
        state s3 "one" { extract h0 goto accept }
        state s4 "two" { extract h0 goto s5 }
        state s5 "three" { extract h1 goto accept }
        control verify_checksum { }
        control ingress { assign %1 = 9w4 assign %18 = add(%23, 16w1) if eq(%25, 16w1) { set_invalid h2 } }
        control egress { }
        control compute_checksum { }
        control deparser { emit h2 emit h0 emit h1 }
        "#,
    );
    for port in [1, 3] {
        for a in 0..6 {
            for n in 0..6 {
                for rest in [0, 2, 3, 30] {
                    pair.receive(port, &packet(a, n, rest));
                }
            }
        }
        pair.receive(port, &[0]);
    }
    pair.compare_objects();
}

/// The code behind the parser is specialised until there is enough of it, and works for the other outcomes as well.
#[test]
fn a_large_program_is_not_specialised_for_all_outcomes() {
    let ingress: String = (0..3000)
        .map(|i| format!("assign %21 = add(mul(%21, %17), xor(sub(%21, %18), 16w{i})) "))
        .collect();
    let instructions = |outcome: &str| {
        let mut pair = pair(&format!(
            r#"
            state s0 "start" {{ extract h0 select (%17) {{ case (16w1 & 16w0xffff) {outcome} case (_) accept }} }}
            state s1 "more" {{ extract h1 goto accept }}
            control verify_checksum {{ }}
            control ingress {{ assign %1 = 9w4 {ingress} assign %18 = %21 }}
            control egress {{ }}
            control compute_checksum {{ }}
            control deparser {{ emit h0 emit h1 }}
            "#
        ));
        for a in 0..3 {
            for n in 0..6 {
                assert_eq!(pair.receive(1, &packet(a, n, 6)), 1);
            }
        }
        pair.compare_objects();
        pair.instructions
    };
    let (one, two) = (instructions("reject"), instructions("s1"));
    assert!(
        two < one + one / 10,
        "{two} with two outcomes, {one} with one"
    );
}

/// Fields that lie side by side are compared at once, unless one was assigned or is not there; flags are what set them.
#[test]
fn neighbours_are_compared_and_flags_are_set() {
    let conditions = [
        "and(eq(%17, 16w1), eq(%18, 16w2))",
        "and(eq(%18, 16w2), eq(%17, 16w1))",
        "not(and(eq(%17, 16w1), eq(%18, 16w2)))",
        "and(eq(%18, 16w2), eq(%20, 24w3))",
        "and(eq(%17, 16w1), eq(%17, 16w1))",
        "or(eq(%13, 1w1), and(eq(%17, 16w0), eq(%18, 16w0)))",
        "and(eq(%17, 16w0), eq(%18, 16w0))",
        "ne(%13, 1w1)",
        "eq(%13, 1w0)",
    ];
    let before = [
        "",
        "assign %18 = 16w2",
        "if ne(%17, 16w1) { assign %13 = 1w1 }",
        "if eq(%18, 16w2) { assign %13 = 1w1 } if ne(%17, 16w1) { assign %13 = 1w1 }",
        "if eq(%18, 16w2) { assign %19 = 1w1 }",
        "set_invalid h0",
    ];
    let parsers = [
        r#"state s0 "start" {
             extract h0
             if and(eq(%17, 16w3), eq(%18, 16w2)) { reject 16w6 }
             select (%17) { case (16w1 & 16w0xffff) s1 case (_) accept }
           }
           state s1 "more" { extract h1 goto accept }"#,
        // The neighbours are not always there, and then they are zero whatever the packet says.
        r#"state s0 "start" { extract h1 select (%20) { case (24w0 & 24w0xff00) s1 case (_) accept } }
           state s1 "more" { extract h0 goto accept }"#,
    ];
    for (cond, first) in conditions.iter().flat_map(|c| before.map(|b| (c, b))) {
        for parser in parsers {
            let text = format!(
                r#"
                {parser}
                control verify_checksum {{ {first} }}
                control ingress {{ assign %1 = 9w4 if {cond} {{ assign %1 = 9w6 }} }}
                control egress {{ }}
                control compute_checksum {{ }}
                control deparser {{ emit h0 emit h1 }}
                "#
            );
            let mut pair = pair(&text);
            for a in 0..4 {
                for n in 0..4 {
                    for rest in [0, 3, 9] {
                        assert_eq!(pair.receive(1, &packet(a, n, rest)), 1);
                    }
                }
            }
        }
    }
}

/// Groups of no, one and several replicas, one of which egress drops, and whatever egress did to the one before.
#[test]
fn replicas_begin_with_what_ingress_left() {
    let several = |egress: &str| {
        format!(
            r#"
            register r0 "r" id 1 : 16 size 4
            state s0 "start" {{
              extract h0
              select (%17) {{ case (16w1 & 16w1) s1 case (_) accept }}
            }}
            state s1 "more" {{ extract h1 goto accept }}
            control verify_checksum {{ }}
            control ingress {{
              assign %1 = 9w4 assign %21 = 16w0 assign %11 = %18 assign %26 = zext(%17, 1600)
              if ult(16w7, %18) {{ truncate 32w9 }}
              if eq(%18, 16w8) {{ assign %11 = 16w3 }}
            }}
            control egress {{
              if eq(%12, 16w2) {{ if eq(%3, 32w5) {{ assign %1 = 9w511 }} }}
              assign %21 = add(%21, 16w1)
              assign %17 = add(%17, %21)
              if %19 {{ set_invalid h1 }} else {{ set_valid h1 assign %20 = zext(%12, 24) }}
              register_read %22 = r0[32w0]
              assign %22 = add(%22, 16w1)
              register_write r0[32w0] = %22
              assign %18 = xor(slice(%4, 15, 0), zext(%2, 16))
              {egress}
            }}
            control compute_checksum {{ hash %23 = csum16(%17, %18) assign %17 = %23 }}
            control deparser {{ emit h0 emit h1 }}
            "#
        )
    };
    // The switch does it where egress requests more, or may end early.
    for (egress, here) in [
        ("", true),
        ("if eq(%12, 16w1) { truncate 32w5 }", true),
        (
            "assign %26 = add(%26, zext(%12, 1600)) assign %18 = slice(%26, 15, 0)",
            true,
        ),
        ("if eq(%12, 16w1) { clone e2e 32w2 }", false),
        (
            "if eq(%3, 32w5) { if eq(%12, 16w4) { recirculate } }",
            false,
        ),
        ("assert ne(%12, 16w1)", false),
    ] {
        let mut pair = pair(&several(egress));
        assert_eq!(pair.makes_replicas, here, "{egress}");
        for group_id in [5, 6, 7] {
            let replica = |i: u32| Replica {
                port: 1 + i % 3,
                rid: i as u16,
            };
            let replicas = (0..[0, 5, 40][group_id as usize - 5])
                .map(replica)
                .collect();
            let entity = Entity::MulticastGroup(MulticastGroup { group_id, replicas });
            assert!(pair.write(Operation::Insert, entity));
        }
        let packets: Vec<_> = (0..60u16)
            .map(|i| (1, packet(i % 3, i % 10, usize::from(i % 7) * 5)))
            .collect();
        for (port, packet) in &packets {
            pair.receive(*port, packet);
        }
        assert!(pair.receive_burst(&packets) > 60);
        pair.compare_objects();
    }
}

/// Registers, counters and a table without a key are reached in place in bursts, but for cells that are not there or kept otherwise; and what an
/// earlier packet left in memory is not there for the next.
#[test]
fn cells_in_place() {
    let mut pair = pair(
        r#"
        register r0 "word" id 1 : 16 size 4
        register r1 "two_limbs" id 2 : 100 size 3
        register r2 "sparse" id 3 : 16 size 16777216
        register r3 "wide" id 4 : 1600 size 2
        counter c0 "c" id 1 both size 4
        action a0 "more" id 1 (%23 "more" id 1) { assign %18 = add(%18, %23) }
        action a1 "nothing" id 2 () { }
        table t0 "t" id 1 { action a0 action a1 default a1() size 1 }
        state s0 "start" { extract h0 goto accept }
        control verify_checksum { }
        control ingress {
          assign %1 = 9w4
          register_read %21 = r0[zext(%17, 32)]
          register_write r0[zext(%17, 32)] = add(%21, %18)
          register_read %27 = r1[zext(%17, 32)]
          assign %27 = add(%27, shl(zext(%18, 100), 32w60))
          register_write r1[zext(%17, 32)] = %27
          register_read %22 = r2[zext(%18, 32)]
          register_write r2[zext(%18, 32)] = add(%22, 16w1)
          if slice(%17, 0, 0) {
            register_read %26 = r3[32w1]
            register_write r3[32w1] = add(%26, zext(%18, 1600))
          }
          count c0[zext(%17, 32)]
          apply t0()
          assign %18 = add(add(%18, %21), xor(add(%22, slice(%26, 15, 0)), slice(%27, 75, 60)))
        }
        control egress { }
        control compute_checksum { }
        control deparser { emit h0 }
        "#,
    );
    for more in [None, Some(7), Some(9)] {
        let call = more.map(|more| ActionCall {
            action: ActionId(0),
            args: vec![Bits::from_u64(16, more)],
        });
        let entity = Entity::DefaultAction {
            table: TableId(0),
            action: call,
            note: None,
        };
        assert!(pair.write(Operation::Modify, entity));
        let packets: Vec<_> = (0..60u16)
            .map(|i| (1, packet(i % 7, i % 5, usize::from(i))))
            .collect();
        assert_eq!(pair.receive_burst(&packets), 60);
        for (port, packet) in &packets {
            assert_eq!(pair.receive(*port, packet), 1);
        }
        pair.compare_objects();
    }
}

/// Headers come and go in front of others that stay, which lie where the new ones are written; one is longer than the room in front of a packet.
#[test]
fn headers_move_within_the_packet_and_out_of_it() {
    let slots = [
        ("h0.$valid", 1),
        ("h0.a", 16),
        ("h0.n", 16),
        ("long.$valid", 1),
        ("long.f", 1600),
        ("short.$valid", 1),
        ("short.f", 24),
        ("h3.$valid", 1),
        ("h3.b", 40),
        ("h3.c", 12),
        ("h3.d", 4),
    ];
    for emitted in ["h0 h3 h2 h1", "h1 h2 h3 h0", "h2 h0 h1 h3"] {
        let emits: String = (emitted.split(' ')).map(|h| format!("emit {h} ")).collect();
        let bit = |bit: u32| format!("ne(and(%17, 16w{}), 16w0)", 1 << bit);
        let text = format!(
            r#"{}
            header h0 "h0" valid %16 {{ %17 %18 }}
            header h1 "long" valid %19 {{ %20 }}
            header h2 "short" valid %21 {{ %22 }}
            header h3 "h3" valid %23 {{ %24 %25 %26 }}
            state s0 "start" {{ extract h0 select (%18) {{ case (16w0 & 16w1) s1 case (_) accept }} }}
            state s1 "more" {{ extract h3 goto accept }}
            control verify_checksum {{ }}
            control ingress {{
              assign %1 = 9w4
              if {} {{ set_valid h1 assign %20 = zext(%24, 1600) }}
              if {} {{ set_valid h2 assign %22 = 24w0x123456 }}
              if {} {{ set_invalid h3 }}
              if {} {{ assign %25 = add(%25, 12w1) }}
              if {} {{ truncate 32w9 }}
              if {} {{ clone i2e 32w1 assign %18 = 16w1 }}
            }}
            control egress {{ if {} {{ clone e2e 32w2 }} if {} {{ set_invalid h0 }} }}
            control compute_checksum {{ }}
            control deparser {{ {emits} }}
            "#,
            preamble("moves", slots),
            bit(0),
            bit(1),
            bit(2),
            bit(3),
            bit(4),
            bit(5),
            bit(6),
            bit(7),
        );
        let program = ir::text::parse(&text).unwrap_or_else(|e| panic!("{e}"));
        let mut pair = Pair::new(program, 1);
        for n in 0..2 {
            for a in 0..256 {
                let packets = [0, 3, 7, 8, 40, 400].map(|rest| (1, packet(a, n, rest)));
                pair.receive_burst(&packets);
            }
        }
        pair.compare_objects();
    }
}
