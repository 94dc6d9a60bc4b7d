//! Programs of great length: the time for four times as much is about four times as long, and not sixteen times.
//!
//! Times are the thread's own processor time, so that a busy machine hardly matters.

use std::fmt::Write as _;

use compile::{Options, Outcome, compile_text};

/// The longest time for four times as much, in multiples. Linear is 4 and quadratic 16.
const MAX_RATIO: f64 = 10.0;

fn compile(source: &str) -> Outcome {
    compile_text(source, "scale.p4", &Options::default())
}

/// Returns the processor time that this thread has used so far, in nanoseconds.
fn now() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let first = text.split(' ').next().expect("a number");
    first.parse().expect("nanoseconds")
}

/// Measures the time of a compilation, in nanoseconds: the mean over enough runs to spend 60 ms, since the
/// kernel updates the clock only every few milliseconds.
fn time(source: &str) -> f64 {
    const ENOUGH_NS: u64 = 60_000_000;
    let start = now();
    for runs in 1.. {
        let outcome = compile(source);
        assert!(!outcome.diagnostics.is_empty() || outcome.compiled.is_some());
        let spent = now() - start;
        if spent >= ENOUGH_NS {
            return spent as f64 / f64::from(runs);
        }
    }
    unreachable!("each run takes time")
}

/// Returns a program that contains `top` at the top level and `ingress` in its ingress control.
fn program(top: &str, ingress: &str) -> String {
    format!(
        "#include <core.p4>\n#include <v1model.p4>\n{top}
header h_t {{ bit<8> a; bit<8> b; bit<8> c; }}
struct headers_t {{ h_t h; }}
struct metadata_t {{ }}
parser P(packet_in p, out headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {{
    state start {{ p.extract(hdr.h); transition accept; }}
}}
control C(inout headers_t hdr, inout metadata_t m) {{ apply {{ }} }}
control I(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {{ {ingress} }}
control E(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {{ apply {{ }} }}
control D(packet_out p, in headers_t hdr) {{ apply {{ p.emit(hdr); }} }}
V1Switch(P(), C(), I(), E(), C(), D()) main;
"
    )
}

fn repeat(n: usize, mut item: impl FnMut(&mut String, usize)) -> String {
    let mut text = String::new();
    (0..n).for_each(|i| item(&mut text, i));
    text
}

fn check(what: &str, n: usize, source: impl Fn(usize) -> String) {
    let (short, long) = (time(&source(n)), time(&source(4 * n)));
    let ratio = long / short;
    assert!(
        ratio < MAX_RATIO,
        "{what}: {n} in {short:.0} ns, {} in {long:.0} ns, which is {ratio:.1} times as much",
        4 * n
    );
}

#[test]
fn annotations() {
    check("annotations", 6000, |n| {
        let list = repeat(n, |text, i| write!(text, "@a{i}(1) ").expect("text"));
        program(&format!("{list}const bit<8> X = 1;"), "apply { }")
    });
}

#[test]
fn fields() {
    check("fields", 3000, |n| {
        let fields = repeat(n, |text, i| writeln!(text, "bit<8> f{i};").expect("text"));
        program(&format!("header w_t {{ {fields} }}"), "apply { }")
    });
}

#[test]
fn constant_entries() {
    check("entries", 3000, |n| {
        let entries = repeat(n, |text, i| {
            writeln!(text, "({}, {}, {}): a();", i >> 16, i >> 8 & 255, i & 255).expect("text");
        });
        let table = "key = { hdr.h.a: exact; hdr.h.b: exact; hdr.h.c: exact; } actions = { a; }";
        let ingress = format!(
            "action a() {{ }} table t {{ {table} const default_action = a; const entries = {{ {entries} }} }} apply {{ t.apply(); }}"
        );
        program("", &ingress)
    });
}

#[test]
fn tables() {
    check("tables", 1500, |n| {
        let tables = repeat(n, |text, i| {
            writeln!(
                text,
                "table t{i} {{ actions = {{ a; }} default_action = a; }}"
            )
            .expect("text");
        });
        let applied = repeat(n, |text, i| write!(text, "t{i}.apply();").expect("text"));
        program(
            "",
            &format!("action a() {{ }} {tables} apply {{ {applied} }}"),
        )
    });
}

#[test]
fn loops() {
    check("loops", 400, |n| {
        let loops = repeat(n, |text, _| {
            text.push_str("for (bit<8> i in 8w1 .. 8w3) { hdr.h.a = i; }\n");
        });
        program("", &format!("apply {{ {loops} }}"))
    });
}

#[test]
fn macros_of_macros() {
    check("macros", 3000, |n| {
        let defines = repeat(n, |text, i| {
            let body = match i {
                0 => "1".to_string(),
                i => format!("M{}", i - 1),
            };
            writeln!(text, "#define M{i} {body}").expect("text");
        });
        program(&defines, &format!("apply {{ hdr.h.a = M{}; }}", n - 1))
    });
}

#[test]
fn strings_that_do_not_end() {
    check("quotes", 3000, |n| {
        program("", "apply { }") + &"\\\"\n".repeat(n)
    });
}

/// The messages of any wrong program can be read.
#[test]
fn errors_are_counted_out() {
    let source = |n: usize| {
        let wrong = repeat(n, |text, i| {
            writeln!(text, "hdr.h.a = x{i};").expect("text")
        });
        program("", &format!("apply {{ {wrong} }}"))
    };
    check("errors", 2000, source);
    let outcome = compile(&source(1000));
    assert_eq!(outcome.diagnostics.len(), 101);
    assert!(outcome.render().contains("error[E0299]: too many errors"));
}

/// Warnings, however many, are no errors.
#[test]
fn warnings_are_counted_out() {
    let source = program(&"# a comment\n".repeat(1000), "apply { }");
    let outcome = compile(&source);
    assert!(outcome.compiled.is_some(), "{}", outcome.render());
    assert_eq!(outcome.diagnostics.len(), 101);
    assert!(
        outcome
            .render()
            .contains("warning[W0298]: too many warnings")
    );
}
