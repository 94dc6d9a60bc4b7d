//! A script that says something wrong fails, and its message says what: each command against one program.

use compile::Options;
use ir::Program;
use std::sync::Arc;
use stf::{Status, parse, run_file, run_on_both};

const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> b; }
struct headers_t { data_t data; }
struct meta_t { }
struct note_t { bit<8> a; bit<8> b; }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.data); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    register<bit<8>>(4) last;
    counter(4, CounterType.packets_and_bytes) seen;
    action set(bit<8> v, bit<9> port) { hdr.data.b = v; sm.egress_spec = port; }
    action drop() { mark_to_drop(sm); }
    table t {
        key = { hdr.data.a: exact; }
        actions = { set; drop; }
        default_action = drop();
    }
    table u {
        key = { hdr.data.a: ternary; hdr.data.b: ternary; }
        actions = { NoAction; }
        default_action = NoAction();
    }
    apply {
        last.write(0, hdr.data.a);
        seen.count(1);
        digest<note_t>(1, { hdr.data.a, hdr.data.b });
        t.apply();
        u.apply();
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

fn program() -> Arc<Program> {
    let outcome = compile::compile_text(PROGRAM, "verdicts.p4", &Options::default());
    let text = outcome.render();
    Arc::new(outcome.compiled.unwrap_or_else(|| panic!("{text}")).program)
}

fn verdict(program: &Arc<Program>, script: &str) -> Result<(), String> {
    let (script, problems) = parse(script);
    assert_eq!(problems, []);
    run_on_both(&script, program.clone())
}

const SETUP: &str = "add t data.a:1 set(v:0x55, port:2)\npacket 0 0100aa\n";

#[test]
fn what_is_right_passes() {
    let script = format!(
        "{SETUP}expect 2 0155aa $\nno_packet\nwait\ncheck_register last 0 == 1\ncheck_counter seen(1) bytes == 3\n\
         check_digest note_t 1 0\nremove t a:1\npacket 0 0100\ncheck_counter seen(1) packets > 1"
    );
    assert_eq!(verdict(&program(), &script), Ok(()));
}

#[test]
fn what_is_wrong_fails_and_says_why() {
    let cases = [
        (
            "",
            "port 2, packet 0:\n  expected nothing\n  got      0155aa",
        ),
        ("expect 2 0156aa $", "expected 0156aa$\n  got      0155aa"),
        ("expect 2 0155 $", "expected 0155$\n  got      0155aa"),
        (
            "expect 2 0155aabb",
            "expected 0155aabb...\n  got      0155aa",
        ),
        (
            "expect 3 0155aa $",
            "port 3, packet 0:\n  expected 0155aa$\n  got      nothing",
        ),
        (
            "expect 2\nexpect 2",
            "port 2, packet 1:\n  expected ...\n  got      nothing",
        ),
        (
            "check_register last 0 == 2",
            "line 3: last[0] is 0x01, expected == 0x02",
        ),
        ("check_register last 9 == 0", "line 3: OUT_OF_RANGE"),
        (
            "check_counter seen(1) packets == 2",
            "line 3: seen counted 1 packets, expected == 2",
        ),
        (
            "check_counter seen($x)",
            "line 3: no entry was added as `x`",
        ),
        ("check_counter sin(1)", "line 3: there is no counter `sin`"),
        (
            "check_digest note_t 1 1",
            "line 3: member 1 of note_t is 0x00, expected 0x01",
        ),
        (
            "check_digest note_t 1",
            "line 3: note_t has 2 members, not 1",
        ),
        (
            "check_digest note_t 1 0\ncheck_digest note_t 1 0",
            "line 4: no note_t message waits",
        ),
        ("add t data.a:1 drop()", "line 3: ALREADY_EXISTS"),
        (
            "add t data.a:256 drop()",
            "line 3: the value of `hdr.data.a` has more than 8 bits",
        ),
        ("add t data.a:0x1* drop()", "needs a number without `*`"),
        (
            "add t data.a:1/8 drop()",
            "line 3: this is no match for `hdr.data.a`, which is exact",
        ),
        (
            "add t data.c:1 drop()",
            "line 3: there is no key field `data.c`",
        ),
        (
            "add t a:2 NoAction()",
            "line 3: there is no action `NoAction`",
        ),
        ("add t a:2 set(v:1)", "line 3: I.set needs `port`"),
        (
            "add t a:2 set(v:1, port:512)",
            "line 3: the value of `port` has more than 9 bits",
        ),
        ("add t a:2 drop(v:1)", "line 3: I.drop has no parameter `v`"),
        ("add tt a:2 drop()", "line 3: there is no table `tt`"),
        ("remove t a:2", "line 3: NOT_FOUND"),
        ("mirroring_get 4", "line 3: there is no clone session 4"),
        (
            "mc_node_associate 1 0",
            "line 3: there is no multicast node 0",
        ),
    ];
    let program = program();
    for (script, message) in cases {
        let verdict = verdict(&program, &format!("{SETUP}{script}"));
        let reason = verdict.expect_err(script);
        assert!(reason.contains(message), "{script}: {reason}");
    }
}

#[test]
fn without_a_program_there_is_nothing_to_run() {
    let missing = std::path::Path::new("no-such-directory/x.stf");
    let result = run_file(missing, &Options::default());
    assert_eq!(
        (result.name.as_str(), result.status),
        ("x", Status::Skipped)
    );
}
