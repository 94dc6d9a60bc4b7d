//! Each invariant is violated in the ways it can be; random programs hold all of them.

use super::*;
use crate::arbitrary;
use crate::architecture::v1model::{EGRESS, INGRESS};
use crate::text::{parse, preamble};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A small program with an object of every kind; the tests spoil copies of it.
const GOOD: &str = r#"
header h0 "hdr.a" valid %16 { %17 %18 }
header h1 "hdr.opt" valid %19 { %20 %21 length %22 }
header h2 "hdr.opt2" valid %23 { %24 length %25 }
register r0 "r" id 1 : 32 size 16
register r1 "ports" id 2 : 1 size 4 port_state
counter c0 "c" id 1 packets size 8
counter c1 "dc" id 2 both direct
meter m0 "m" id 1 bytes size 8
meter m1 "dm" id 2 bytes direct
digest d0 "d" id 1 (8, 16)
value_set v0 "v" id 1 (8, 16) size 4
value_set v1 "w" id 2 (8) size 4
action_profile p0 "p" id 1 size 16
action_profile p1 "s" id 2 size 16 selector crc32 : 14 max_group_size 8 sum_of_members
field_list l0 (%26, %27)
action a0 "NoAction" id 1 () { }
action a1 "set" id 2 (%28 "p" id 1, %29 "q" id 2) { assign %26 = %28 }
action a2 "i2e" id 3 () { clone i2e 32w1 }
action a3 "colour" id 4 () { direct_meter_read %26 = m1 }
table t0 "t" id 1 {
  key "e" id 1 : 8 exact
  key "l" id 2 : 32 lpm
  key "t" id 3 : 8 ternary
  key "r" id 4 : 8 range
  key "o" id 5 : 8 optional
  action a0
  action a1 table_only
  action a2
  action a3
  default a0()
  entry (8w1, 32w0x0a000000/8, 8w0x10 & 8w0xf0, 8w1 .. 8w2, _) priority 7 a1(8w1, 16w2)
  size 16
  direct_counter c1
  direct_meter m1
}
table t1 "u" id 2 {
  key "e" id 1 : 8 exact
  action a0
  action a1 default_only
  default a1(8w1, 16w2)
  entry (8w1) a0()
  entry (8w2) a0()
  size 16
}
table t2 "w" id 3 {
  key "e" id 1 : 8 exact
  key "h" id 0 : 16 selector
  action a0
  action a1
  default a0()
  size 4 implementation p1
}
table t3 "x" id 4 {
  key "e" id 1 : 8 exact
  action a1 action a0
  default a0()
  size 5 implementation p1
}
state s0 "start" @0:1 {
  extract h0
  extract h1 length 32w8
  lookahead %26 at 4
  select (%26, %27) {
    case (8w1 & 8w3, 16w1 .. 16w2) s0
    case (v1, _) accept
    case (v0) reject
  }
}
control verify_checksum { assert 1w1 }
control ingress {
  apply t0(%26, %5, %26, %26, %26) hit %16 action_run %5 @0:5
  switch %26 { case 8w1, 8w2 { exit } case 8w3 { } default { } }
  loop b0 { block b1 { break b0 } }
  register_read %5 = r0[%5]
  register_write r0[%5] = 32w1
  count c0[%5]
  meter_execute %26 = m0[%5]
  hash %27 = crc16(%26, %5) payload
  random %26 = (8w1, 8w2)
  digest d0(%26, %27)
  log "{} and {}" (%26, %27)
  resubmit preserve l0
  assign %25 = mux(1w1, %25, 32w16)
}
control egress {
  apply t1(%26)
  apply t2(%26, %27)
  clone e2e 32w1 preserve l0
  recirculate
  truncate 32w10
}
control compute_checksum { hash %27 = csum16(%26) payload }
control deparser { emit h0 emit h1 emit h2 }
"#;

/// Widths of slots 16 and up.
const WIDTHS: [u32; 14] = [1, 8, 16, 1, 8, 64, 32, 1, 32, 32, 8, 16, 8, 16];

fn good_text() -> String {
    preamble("good", WIDTHS.map(|width| ("s", width))) + GOOD
}

fn parsed(text: &str) -> Program {
    parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the numbers of the invariants that a program violates.
fn violated(program: &Program) -> BTreeSet<u32> {
    let errors = verify(program).err().unwrap_or_default();
    errors.iter().map(|e| e.invariant).collect()
}

#[test]
fn the_good_program_is_good() {
    assert_eq!(verify(&parsed(&good_text())), Ok(()));
}

/// Invariant, what to replace in the text of the good program (its first occurrence), by what.
const SPOILED: &[(u32, &str, &str)] = &[
    (1, "\"s\" : 64", "\"s\" : 0"),
    (1, "\"s\" : 64", "\"s\" : 65537"),
    (2, "valid %16 {", "valid %99 {"),
    (2, "%17 %18", "%17 %18 %99"),
    (2, "length %25", "length %4000000000"),
    (2, "(%26, %27)\naction", "(%26, %99)\naction"),
    (2, "(%28 \"p\"", "(%99 \"p\""),
    (2, "assign %26 = %28", "assign %99 = %28"),
    (2, "assign %26 = %28", "assign %26 = %99"),
    (2, "= mux(1w1, %25", "= mux(1w1, %99"),
    (2, "hit %16", "hit %99"),
    (2, "ingress_port = %0", "ingress_port = %99"),
    (3, "valid %16 {", "valid %29 {"),
    (3, "length %25", "length %27"),
    (3, "{ %20 %21", "{ %26 length %5 %21"),
    (4, "%17 %18", "%17 %18 %1"),
    (5, "%17 %18", "%17 %18 %17"),
    (5, "valid %19", "valid %16"),
    (5, "length %25", "length %22"),
    (5, "%17 %18", "%17 %3"),
    (6, "32w16)", "32w33)"),
    (6, "mux(1w1, %25", "mux(1w1, %22"),
    (6, "mux(1w1, %25", "add(%25"),
    (6, "register_read %5", "register_read %25"),
    (6, "meter_execute %26", "meter_execute %25"),
    (6, "hash %27", "hash %25"),
    (6, "random %26 = (8w1, 8w2)", "random %25 = (32w1, 32w2)"),
    (6, "action_run %5", "action_run %25"),
    (6, "lookahead %26", "lookahead %25"),
    (6, "%28 \"p\"", "%25 \"p\""),
    (7, "ingress_port = %0", "ingress_port = %5"),
    (7, "egress_spec = %1", "egress_spec = %0"),
    (8, "\"NoMatch\"", "\"NoPatch\""),
    (
        8,
        "\"ParserInvalidArgument\"",
        "\"ParserInvalidArgument\" error 7 \"NoMatch\"",
    ),
    (9, "\"dc\" id 2", "\"c\" id 2"),
    (9, "\"dc\" id 2", "\"dc\" id 1"),
    (9, "\"set\" id 2", "\"set\" id 0"),
    (9, "\"u\" id 2", "\"t\" id 2"),
    (9, "\"dm\" id 2", "\"dm\" id 1"),
    (9, "\"w\" id 2", "\"v\" id 2"),
    (9, "\"q\" id 2", "\"q\" id 1"),
    (9, "\"l\" id 2", "\"l\" id 1"),
    (9, "register r0 \"r\" id 1", "register r0 \"r\" id 0"),
    (9, "digest d0 \"d\" id 1", "digest d0 \"d\" id 0"),
    (10, ": 32 size 16", ": 0 size 16"),
    (10, ": 32 size 16", ": 32 size 134217729"),
    (10, ": 32 size 16", ": 32 size 18446744073709551615"),
    (10, "packets size 8", "packets size 67108865"),
    (10, "id 1 bytes size 8", "id 1 bytes size 16777217"),
    (10, "size 16\n  direct", "size 4294967297\n  direct"),
    (10, "(8, 16) size 4", "(8, 16) size 4294967297"),
    (11, "\"d\" id 1 (8, 16)", "\"d\" id 1 ()"),
    (11, "\"d\" id 1 (8, 16)", "\"d\" id 1 (8, 0)"),
    (11, "\"v\" id 1 (8, 16)", "\"v\" id 1 (8, 65537)"),
    (
        11,
        "\"d\" id 1 (8, 16)",
        "\"d\" id 1 (65536, 65536, 65536, 65536, 1)",
    ),
    (12, "(%26, %27)\naction", "(%26, %26)\naction"),
    (13, "%29 \"q\"", "%28 \"q\""),
    (14, "\"e\" id 1 : 8", "\"e\" id 1 : 0"),
    (14, "\"e\" id 1 : 8", "\"e\" id 1 : 65537"),
    (14, "8 exact", "8 lpm"),
    (15, "action a0\n  action a1 d", "action a4\n  action a1 d"),
    (
        15,
        "action a0\n  action a1 d",
        "action a0 action a0 action a1 d",
    ),
    (16, "default a0()", "default a1(8w1, 16w2)"),
    (16, "entry (8w1) a0()", "entry (8w1) a1(8w1, 16w2)"),
    (16, "entry (8w1) a0()", "entry (8w1) a2()"),
    (16, "entry (8w1) a0()", "entry (8w1) a7()"),
    (16, "entry (8w1) a0()", "entry (8w1) a0(8w1)"),
    (16, "7 a1(8w1, 16w2)", "7 a1(8w1)"),
    (16, "7 a1(8w1, 16w2)", "7 a1(8w1, 8w2)"),
    (17, "(8w1)", "(9w1)"),
    (17, "(8w1)", "(8w1 & 8w1)"),
    (17, "(8w1)", "()"),
    (17, "(8w1)", "(8w1, 8w1)"),
    (17, "/8,", "/33,"),
    (17, "/8,", "/6,"),
    (17, "8w0x10 & 8w0xf0", "8w0x11 & 8w0xf0"),
    (17, "8w0x10 & 8w0xf0", "8w0x10 & 9w0xf0"),
    (17, "8w1 .. 8w2", "8w3 .. 8w2"),
    (17, ", _)", ", 9w1)"),
    (17, "\"o\" id 5 : 8 optional", "\"o\" id 5 : 8 selector"),
    (18, "priority 7", "priority 0"),
    (18, "priority 7", "priority -7"),
    (18, "(8w1) a0", "(8w1) priority 1 a0"),
    (18, "(8w2)", "(8w1)"),
    (19, "direct_counter c1", "direct_counter c0"),
    (19, "direct_counter c1", "direct_counter c2"),
    (19, "direct_meter m1", "direct_meter m0"),
    (19, "direct_meter m1", "direct_meter m9"),
    (
        19,
        "entry (8w2) a0()\n  size 16",
        "size 16 direct_counter c1",
    ),
    (19, "size 5 implementation p1", "size 5 implementation p2"),
    (
        19,
        "size 5 implementation p1",
        "entry (8w1) a0() size 5 implementation p0",
    ),
    (9, "\"s\" id 2 size", "\"p\" id 2 size"),
    (9, "\"s\" id 2 size", "\"s\" id 1 size"),
    (10, "crc32 : 14", "crc32 : 0"),
    (10, "crc32 : 14", "crc32 : 65"),
    (10, "max_group_size 8", "max_group_size 4294967297"),
    (20, "16w2) s0", "16w2) s1"),
    (21, "select (%26, %27)", "select ()"),
    (21, "select (%26, %27)", "select (%26)"),
    (21, "select (%26, %27)", "select (%27, %27)"),
    (21, "select (%26, %27)", "select (%26, %27, %27)"),
    (21, "8w1 & 8w3", "8w4 & 8w3"),
    (21, "8w1 & 8w3", "8w1 & 9w3"),
    (21, "16w1 .. 16w2", "16w3 .. 16w2"),
    (21, "(v1, _)", "(v0, _)"),
    (21, "(v1, _)", "(v9, _)"),
    (21, "(v0)", "(v1)"),
    (21, "(v0)", "(_)"),
    (22, "emit h0", "emit h3"),
    (22, "extract h0", "extract h3"),
    (22, "extract h0", "set_valid h3"),
    (22, "extract h0", "set_invalid h3"),
    (22, "apply t1(%26)", "apply t4(%26)"),
    (22, "register_read %5 = r0", "register_read %5 = r2"),
    (22, "register_write r0", "register_write r2"),
    (22, "count c0", "count c2"),
    (22, "= m0[", "= m2["),
    (22, "digest d0(", "digest d1("),
    (22, "resubmit preserve l0", "resubmit preserve l1"),
    (22, "32w1 preserve l0", "32w1 preserve l1"),
    (22, "recirculate", "recirculate preserve l1"),
    (23, "assert 1w1", "extract h0"),
    (23, "assert 1w1", "lookahead %26 at 0"),
    (23, "assert 1w1", "advance 32w8"),
    (23, "assert 1w1", "reject 16w1"),
    (23, "assert 1w1", "emit h0"),
    (23, "assert 1w1", "apply t1(%26)"),
    (23, "assert 1w1", "clone i2e 32w1"),
    (23, "assert 1w1", "resubmit"),
    (23, "assert 1w1", "recirculate"),
    (23, "assert 1w1", "truncate 32w1"),
    (23, "assert 1w1", "digest d0(%26, %27)"),
    (23, "emit h0", "apply t1(%26)"),
    (23, "extract h0", "exit"),
    (23, "extract h0", "emit h0"),
    (23, "extract h0", "apply t1(%26)"),
    (23, "extract h0", "hash %27 = crc16() payload"),
    (23, "extract h0", "if 1w1 { loop b9 { exit } }"),
    (23, "assign %26 = %28", "apply t1(%26)"),
    (23, "assign %26 = %28", "extract h0"),
    (23, "assign %26 = %28", "emit h0"),
    (24, "resubmit", "recirculate"),
    (24, "recirculate", "resubmit"),
    (24, "clone e2e", "clone i2e"),
    (24, "apply t1(%26)", "apply t0(%26, %5, %26, %26, %26)"),
    (24, "clone i2e", "clone e2e"),
    (24, "clone i2e 32w1", "if 1w1 { recirculate }"),
    (25, "loop b0 {", "loop b1048576 {"),
    (25, "block b1", "block b0"),
    (25, "break b0", "break b2"),
    (25, "{ block b1 { break b0 } }", "{ block b1 { } break b1 }"),
    (25, "assign %26 = %28", "break b0"),
    (25, "assign %26 = %28", "loop b0 { }"),
    (25, "extract h0", "break b0"),
    (26, "assign %26 = %28", "assign %26 = %27"),
    (26, "assert 1w1", "assert 2w1"),
    (26, "assert 1w1", "if 2w1 { }"),
    (26, "hit %16", "hit %26"),
    (26, "action_run %5", "action_run %26"),
    (26, "apply t1(%26)", "apply t1(%27)"),
    (26, "apply t1(%26)", "apply t1()"),
    (26, "apply t1(%26)", "apply t1(%26, %26)"),
    (26, "register_read %5 =", "register_read %26 ="),
    (
        26,
        "register_read %5 = r0[%5]",
        "register_read %5 = r0[%26]",
    ),
    (26, "register_write r0[%5]", "register_write r0[%26]"),
    (
        26,
        "register_write r0[%5] = 32w1",
        "register_write r0[%5] = 31w1",
    ),
    (26, "count c0[%5]", "count c0[%26]"),
    (26, "= m0[%5]", "= m0[%26]"),
    (26, "meter_execute %26", "meter_execute %16"),
    (26, "random %26 = (8w1", "random %26 = (9w1"),
    (26, "8w1, 8w2)\n  digest", "8w1, 9w2)\n  digest"),
    (26, "digest d0(%26, %27)", "digest d0(%26)"),
    (26, "digest d0(%26, %27)", "digest d0(%27, %26)"),
    (26, "clone e2e 32w1", "clone e2e 31w1"),
    (26, "truncate 32w10", "truncate 16w10"),
    (26, "extract h0", "extract h0 length 32w8"),
    (26, "extract h0", "advance 31w8"),
    (26, "extract h0", "reject 8w1"),
    (26, "extract h1 length 32w8", "extract h1"),
    (26, "extract h1 length 32w8", "extract h1 length 8w8"),
    (26, "at 4", "at 1048569"),
    (26, "at 4", "at 4294967295"),
    (26, "crc16(%26, %5)", "crc16(zext(%26, 262144), %26)"),
    (27, "case 8w1, 8w2", "case 8w1, 8w3"),
    (27, "case 8w1, 8w2", "case 8w1, 8w1"),
    (27, "case 8w1, 8w2", "case 9w1, 8w2"),
    (28, "count c0", "count c1"),
    (28, "= m0[", "= m1["),
    (22, "%26 = m1 }", "%26 = m2 }"),
    (26, "direct_meter_read %26", "direct_meter_read %16"),
    (28, "%26 = m1 }", "%26 = m0 }"),
    (28, "truncate 32w10", "direct_meter_read %26 = m1"),
    (29, "\"{} and {}\"", "\"{}\""),
    (29, "\"{} and {}\"", "\"{} {} {}\""),
    (30, "assign %26 = %28", "assign %26 = add(%26, %27)"),
    (30, "assign %26 = %28", "assign %26 = slice(%26, 8, 1)"),
    (30, "assign %26 = %28", "assign %26 = slice(%26, 0, 7)"),
    (
        30,
        "assign %26 = %28",
        "assign %26 = slice(%26, 4294967295, 0)",
    ),
    (30, "assign %26 = %28", "assign %26 = zext(%26, 8)"),
    (30, "assign %26 = %28", "assign %26 = sext(%27, 8)"),
    (30, "assign %26 = %28", "assign %26 = mux(%26, %26, %26)"),
    (30, "assign %26 = %28", "assign %26 = mux(1w1, %26, %27)"),
    (30, "assign %26 = %28", "if eq(%26, %27) { }"),
    (
        31,
        "log \"{} and {}\" (%26,",
        "log \"{} and {}\" (concat(262144w0, 1w0),",
    ),
    (
        31,
        "log \"{} and {}\" (%26,",
        "log \"{} and {}\" (zext(%26, 262145),",
    ),
    (
        31,
        "log \"{} and {}\" (%26,",
        "log \"{} and {}\" (zext(%26, 4294967295),",
    ),
    (35, "@0:5", "@1:5"),
    (35, "@0:1", "@9:1"),
];

#[test]
fn every_spoiled_program_is_found() {
    let good = good_text();
    for (invariant, from, to) in SPOILED {
        assert!(good.contains(from), "nothing to replace: {from}");
        let program = parsed(&good.replacen(from, to, 1));
        assert!(
            violated(&program).contains(invariant),
            "{invariant}: {from} -> {to}: {:?}",
            verify(&program)
        );
    }
}

/// Returns programs that violate an invariant in a way that the text form cannot express, or only with a
/// very long text; each with the invariant's number.
fn built() -> Vec<(u32, Program)> {
    let good = || parsed(&good_text());
    let mut all = Vec::new();
    let mut add = |invariant, spoil: &dyn Fn(&mut Program)| {
        let mut program = good();
        spoil(&mut program);
        all.push((invariant, program));
    };
    let stmt = |kind| Stmt {
        kind,
        loc: Loc::default(),
    };
    add(1, &|p| {
        let slot = Slot {
            name: String::new(),
            width: Bits::MAX_WIDTH,
        };
        p.slots.extend(std::iter::repeat_n(slot, 64));
    });
    add(8, &|p| p.errors.extend((0..1 << 16).map(|i| i.to_string())));
    add(8, &|p| p.errors.truncate(6));
    add(15, &|p| p.tables[1].actions.clear());
    add(17, &|p| {
        p.tables[1].keys.clear();
        p.tables[1].entries[0].matches.clear();
    });
    add(20, &|p| p.states.clear());
    add(27, &|p| {
        let (value, cases) = (Expr::Slot(SlotId(26)), vec![(Vec::new(), Vec::new())]);
        p.control_mut(INGRESS).push(stmt(StmtKind::Switch {
            value,
            cases,
            default: Vec::new(),
        }));
    });
    add(31, &|p| {
        let values = vec![Expr::Const(Bits::zero(MAX_EXPR_WIDTH + 1))];
        p.control_mut(INGRESS).push(stmt(StmtKind::Log {
            format: "{}".into(),
            values,
        }));
    });
    add(32, &|p| {
        let mut cond = Expr::Slot(SlotId(16));
        for _ in 0..MAX_EXPR_DEPTH {
            cond = Expr::Unary {
                op: UnaryOp::Not,
                a: Box::new(cond),
            };
        }
        p.control_mut(EGRESS).push(stmt(StmtKind::Assert { cond }));
    });
    add(33, &|p| {
        let mut body = vec![stmt(StmtKind::Exit)];
        for _ in 0..MAX_NESTING {
            let cond = Expr::Slot(SlotId(16));
            body = vec![stmt(StmtKind::If {
                cond,
                then: body,
                otherwise: Vec::new(),
            })];
        }
        *p.control_mut(EGRESS) = body;
    });
    add(34, &|p| {
        p.control_mut(EGRESS)
            .extend(std::iter::repeat_n(stmt(StmtKind::Exit), 1 << 20))
    });
    add(34, &|p| {
        let values = vec![Expr::ZeroExtend {
            a: Box::new(Expr::Slot(SlotId(16))),
            width: MAX_EXPR_WIDTH,
        }];
        let log = stmt(StmtKind::Log {
            format: "{}".into(),
            values,
        });
        p.control_mut(EGRESS).extend(std::iter::repeat_n(log, 1024));
    });
    add(34, &|p| {
        let entry = &mut p.tables[1].entries[0];
        entry.action.args = vec![Bits::zero(8); MAX_TOTAL_LIMBS as usize + 1];
    });
    all
}

#[test]
fn every_built_violation_is_found() {
    for (invariant, program) in built() {
        let found = violated(&program);
        assert!(found.contains(&invariant), "{invariant}: {found:?}");
    }
}

#[test]
fn every_invariant_of_the_list_is_tested() {
    let documented: BTreeSet<u32> = include_str!("../verify.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("//! ")?.split_once(". ")?.0.parse().ok())
        .collect();
    let mut tested: BTreeSet<u32> = SPOILED.iter().map(|(invariant, ..)| *invariant).collect();
    tested.extend(built().iter().map(|(invariant, _)| *invariant));
    assert_eq!(documented, (1..=35).collect());
    assert_eq!(tested, documented);
}

#[test]
fn messages_say_where() {
    let program = parsed(&good_text().replacen("@0:5", "@1:5", 1).replacen(
        "emit h0",
        "exit emit h7",
        1,
    ));
    let errors = verify(&program).expect_err("is spoiled");
    let messages: Vec<String> = errors.iter().map(|e| e.to_string()).collect();
    let expected = [
        "ingress @1:5: there is no file 1 (invariant 35)",
        "deparser: there is no header 7 (invariant 22)",
    ];
    assert_eq!(messages, expected);
}

#[test]
fn the_number_of_errors_is_bounded() {
    let mut program = parsed(&good_text());
    *program.control_mut(EGRESS) = vec![
        Stmt {
            kind: StmtKind::SetValid(HeaderId(99)),
            loc: Loc::default()
        };
        1000
    ];
    assert_eq!(verify(&program).expect_err("is spoiled").len(), MAX_ERRORS);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn random_programs_are_valid(seed in any::<u64>(), of in 0..architecture::ALL.len()) {
        let of = architecture::ALL[of];
        let program = arbitrary::program_of(of, seed);
        prop_assert_eq!(verify(&program), Ok(()), "{}", crate::text::print(&program));
        prop_assert_eq!(program, arbitrary::program_of(of, seed));
    }
}

/// Every word of the text form is met among random programs, so that a consumer's tests with them miss nothing.
#[test]
fn random_programs_use_everything() {
    let words = [
        "assign",
        "set_valid",
        "set_invalid",
        "emit",
        "if",
        "else",
        "switch",
        "case",
        "default",
        "block",
        "loop",
        "break",
        "exit",
        "apply",
        "hit",
        "action_run",
        "register_read",
        "register_write",
        "count",
        "meter_execute",
        "hash",
        "payload",
        "random",
        "clone i2e",
        "clone e2e",
        "preserve",
        "resubmit",
        "recirculate",
        "truncate",
        "assert",
        "advance",
        "reject 16w0x1",
        "digest",
        "log",
        "extract",
        "length",
        "lookahead",
        "goto",
        "select",
        "accept",
        "reject",
        "packet_length",
        "not",
        "neg",
        "add",
        "sub",
        "mul",
        "div",
        "mod",
        "and",
        "or",
        "xor",
        "shl",
        "shr",
        "sar",
        "add_sat",
        "sub_sat",
        "sadd_sat",
        "ssub_sat",
        "eq",
        "ne",
        "ult",
        "ule",
        "slt",
        "sle",
        "slice",
        "concat",
        "zext",
        "sext",
        "mux",
        "crc32",
        "crc16",
        "identity",
        "csum16",
        "xor16",
        "exact",
        "lpm",
        "ternary",
        "range",
        "optional",
        "direct",
        "v0",
        "..",
    ];
    let text: String = (0..100)
        .map(|seed| crate::text::print(&arbitrary::program(seed)))
        .collect();
    let text = text.replace(['(', ')', ',', '\n'], " ");
    for word in words {
        assert!(text.contains(&format!(" {word} ")), "{word}");
    }
    assert!((0..100).any(|seed| arbitrary::packet(seed).len() > 256));
    assert_eq!(arbitrary::packet(7), arbitrary::packet(7));
}
