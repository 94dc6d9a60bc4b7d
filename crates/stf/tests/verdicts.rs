//! A script with a wrong expectation fails with a message that names it. Each command runs against one program.

use compile::Options;
use ir::Program;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stf::{Executors, Status, TestResult, parse, run_directory, run_file, run_on, run_on_both};

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
    let missing = Path::new("no-such-directory/x.stf");
    let result = run_file(missing, &Options::default(), Executors::Both);
    assert_eq!(
        (result.name.as_str(), result.status),
        ("x", Status::Skipped)
    );
}

#[test]
fn each_executor_alone_passes_and_fails_like_both() {
    let program = program();
    for executors in [
        Executors::Interpreter,
        Executors::MachineCode,
        Executors::Both,
    ] {
        for (expected, passes) in [("0155aa", true), ("0156aa", false)] {
            let (script, problems) = parse(&format!("{SETUP}expect 2 {expected} $"));
            assert_eq!(problems, []);
            let verdict = run_on(&script, program.clone(), executors);
            assert_eq!(verdict.is_ok(), passes, "{executors:?}: {verdict:?}");
        }
    }
}

/// A directory of its own, gone when the test is over.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // Remains of an earlier run that was killed.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a directory");
        Directory(path)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_directory_says_for_each_script_how_it_ended_and_why() {
    let directory = Directory::new("verdicts");
    let pass = format!("{SETUP}expect 2 0155aa $");
    directory.write("a.p4", PROGRAM);
    directory.write("a.stf", &pass);
    directory.write("below/b.p4", PROGRAM);
    directory.write("below/b.stf", "packet 0 0100\nexpect 1 00");
    directory.write("c.p4", PROGRAM);
    directory.write("c.stf", "add t data.a:1 drop()\n# nothing is sent");
    directory.write("c1.p4", PROGRAM);
    directory.write("c1.stf", "add missing data.a:1 drop()");
    directory.write("d.p4", "#include <core.p4>\n#include <ebpf_model.p4>\n");
    directory.write("d.stf", &pass);
    directory.write("e.p4", "#include \"below/b.p4\"\n");
    directory.write("e.stf", &pass);
    directory.write("f.p4", "#include <v1model.p4>\nconst bit<8> x = y;\n");
    directory.write("f.stf", &pass);
    directory.write("g.stf", &pass);
    directory.write("h.p4", PROGRAM);
    directory.write("h.stf", "pocket 0 0100");
    let results = run_directory(&directory.0, &Options::default()).expect("the directory");
    let expected = [
        ("a", Status::Passed, ""),
        (
            "below/b",
            Status::Failed,
            "expected 00...\n  got      nothing",
        ),
        ("c", Status::Loaded, ""),
        ("c1", Status::Failed, "there is no table `missing`"),
        ("d", Status::Skipped, "for ebpf_model.p4, not v1model"),
        ("e", Status::Passed, ""),
        ("f", Status::Failed, "does not compile"),
        ("g", Status::Skipped, "no program of this name"),
        ("h", Status::Failed, "line 1: unknown command `pocket`"),
    ];
    assert_eq!(results.len(), expected.len(), "{results:#?}");
    for (result, (name, status, reason)) in results.iter().zip(expected) {
        let TestResult {
            name: n,
            status: s,
            reason: r,
        } = result;
        assert_eq!((n.as_str(), *s), (name, status), "{r}");
        assert!(r.contains(reason), "{name}: {r}");
        let passed = matches!(status, Status::Passed | Status::Loaded);
        assert_eq!(r.is_empty(), passed, "{name}: {r}");
    }
    assert!(run_directory(&directory.0.join("none"), &Options::default()).is_err());
}

/// Compiles a program whose table has a key field of each match kind. An entry can match a packet with 0x12
/// in every field.
fn key_program() -> Arc<Program> {
    let keys = "key = { hdr.data.o: optional; hdr.data.t: ternary; hdr.data.r: range; hdr.data.l: lpm; hdr.data.e: exact; }";
    let text = PROGRAM
        .replace("bit<8> a; bit<8> b; }\nstruct headers_t", "bit<8> a; bit<8> b; bit<8> o; bit<8> t; bit<8> r; bit<8> l; bit<8> e; }\nstruct headers_t")
        .replace("key = { hdr.data.a: exact; }", keys);
    let outcome = compile::compile_text(&text, "keys.p4", &Options::default());
    let text = outcome.render();
    Arc::new(outcome.compiled.unwrap_or_else(|| panic!("{text}")).program)
}

#[test]
fn every_form_of_a_match() {
    let program = key_program();
    let run = |matches: &str, hits: bool| {
        let expect = if hits {
            "expect 2 0055121212121200"
        } else {
            "no_packet"
        };
        let exact = if matches.contains("e:") { "" } else { "e:0x12" };
        let script = format!(
            "add t 5 {matches} {exact} set(v:0x55, port:2)\npacket 0 0000121212121200\n{expect}"
        );
        verdict(&program, &script)
    };
    for matches in [
        "",
        "o:0b********",
        "o:0b*",
        "o:0x**",
        "o:*",
        "\"hdr.data.o\":0x12",
        "o:18",
        "o:0x12&&&0xff",
        "o:0x34&&&0",
        "t:0b*",
        "t:*",
        "t:0b0001**10",
        "t:0x1*",
        "t:0x12",
        "t:0x10&&&0xf0",
        "t:0x10/4",
        "r:*",
        "r:0b*",
        "r:0x10->0x20",
        "r:0x12",
        "l:0b0001****",
        "l:0x1*",
        "l:*",
        "l:0b********",
        "l:0x10/4",
        "l:0x10&&&0xf0",
        "e:0x12",
        "e:0b00010010",
        "e:0x12&&&0xff",
        "o:0b* t:0b* r:* l:0x**",
    ] {
        assert_eq!(run(matches, true), Ok(()), "{matches}");
    }
    for matches in [
        "o:0x13",
        "o:0x13&&&0xff",
        "t:0b0000**10",
        "t:0x2*",
        "t:0x13",
        "r:0x13->0x20",
        "l:0b0010****",
        "l:0x20&&&0xf0",
        "e:0x13",
    ] {
        assert_eq!(run(matches, false), Ok(()), "{matches}");
    }
    for (matches, message) in [
        ("o:0b0001****", "optional: all of its bits count, or none"),
        ("o:0x10&&&0xf0", "optional: all of its bits count, or none"),
        ("l:0b0*01****", "lpm: no digit may stand behind a `*`"),
        ("l:0x10&&&0x0f", "is no prefix"),
        ("e:0x1*", "needs a number without `*`"),
        ("e:*", "needs a number without `*`"),
        ("e:0x12&&&0xf0", "no match for"),
        ("r:0x1*", "needs a number without `*`"),
    ] {
        let verdict = run(matches, true).expect_err(matches);
        assert!(verdict.contains(message), "{matches}: {verdict}");
    }
}
