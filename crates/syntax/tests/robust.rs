//! No input makes the parser panic, run out of stack or stop making progress.
#![expect(
    clippy::disallowed_methods,
    reason = "a test waits for what runs in real time, or measures"
)]

#[allow(dead_code, reason = "every test has its own part of it")]
mod dump;

use proptest::prelude::*;

/// A program with a bit of everything, to be damaged.
const PROGRAM: &str = r#"
#include <core.p4>
#define WIDTH 8
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#if WIDTH > 4 && defined(MAX)
typedef bit<WIDTH> T;
#else
typedef bit<4> T;
#endif
@name("x") header H<U> { T a; varbit<32> b; U c; }
struct S { H<bit<8>>[4] stack; tuple<bool, T> t; }
enum bit<8> E { A = 1, B = 2 }
error { Bad }
extern X<V> { X(int n); abstract V f(in V a); void g<W>(W a = 1); }
parser p(packet_in b, out S s) {
    value_set<T>(4) vs;
    state start { b.extract<H<bit<8>>>(s.stack.next); transition select(s.stack[0].a, 1) {
        (vs, _): start; (1 &&& 2, 3 .. 4): accept; default: reject; } }
}
control c(inout S s)(bit<8> n) {
    X<bit<8>>(MAX(1, 2)) x = { bit<8> f(in bit<8> a) { return a; } };
    action a(bit<8> v) { s.stack[0].a = v; s.stack[1].a[3:0] |+|= 2; }
    table t { key = { s.stack[0].a : exact @k; } actions = { a; NoAction; } default_action = NoAction();
        const entries = { priority = 3: 1 : a(2); } }
    apply {
        if (t.apply().hit) { for (bit<8> i in 1 .. 3) { x.g<bit<8>>(i >> 1); } }
        else switch (s.stack[0].a) { E.A: { return; } default: { exit; } }
        s = (S) { stack = {...}, t = { true, (T) n }, ... };
    }
}
P(p(), c(1)) main;
"#;

const WORDS: &[&str] = &[
    "abstract",
    "action",
    "actions",
    "apply",
    "bit",
    "bool",
    "break",
    "const",
    "continue",
    "control",
    "default",
    "else",
    "entries",
    "enum",
    "error",
    "exit",
    "extern",
    "false",
    "for",
    "header",
    "header_union",
    "if",
    "in",
    "inout",
    "int",
    "key",
    "list",
    "match_kind",
    "out",
    "package",
    "parser",
    "priority",
    "return",
    "select",
    "state",
    "string",
    "struct",
    "switch",
    "table",
    "this",
    "transition",
    "true",
    "tuple",
    "type",
    "typedef",
    "value_set",
    "varbit",
    "void",
    "_",
    "x",
    "T",
    "8",
    "8w3",
    "\"s\"",
    "|+|",
    "&&&",
    "...",
    "<<",
    "{#}",
    "##",
    "..",
    "&&",
    "||",
    "==",
    "!=",
    ">=",
    "<=",
    "++",
    "+=",
    "+:",
    "+",
    "-",
    "*",
    "/",
    "%",
    "|",
    "&",
    "^",
    "~",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    "!",
    ":",
    ",",
    "?",
    ".",
    "=",
    ";",
    "@",
    "\n",
    "\n#",
    "\n#define",
    "\n#if",
    "\n#else",
    "\n#endif",
    "\n#include",
    "@pragma",
    "/*",
    "*/",
    "//",
    "\\\n",
    "\"",
    "$",
    "é",
];

/// Parses `text`, and checks the properties that every result must have, such as spans inside of their files.
fn survive(text: &str) {
    let parsed = syntax::parse_str(text);
    let _ = dump::program(&parsed.program);
    let rendered = parsed.render();
    assert!(parsed.diagnostics.len() <= 101, "too many diagnostics");
    assert_eq!(rendered.is_empty(), parsed.diagnostics.is_empty());
    for file in parsed.sources.files() {
        assert!(
            parsed
                .diagnostics
                .iter()
                .all(|d| d.span.end as usize <= file.text.len()),
            "a span beyond its file"
        );
    }
}

fn words(range: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(WORDS), range)
        .prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_text(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        survive(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn random_tokens(text in words(0..150)) {
        survive(&text);
    }

    #[test]
    fn random_tokens_in_context(text in words(0..40)) {
        survive(&format!("control c() {{ apply {{ {text} }} }}"));
        survive(&format!("parser p() {{ state start {{ {text} }} }}"));
        survive(&format!("control c() {{ table t {{ {text} }} apply {{ }} }}"));
        survive(&format!("const int x = {text};"));
    }

    #[test]
    fn damaged_program(at in 0..PROGRAM.len(), len in 0usize..30, insert in words(0..4)) {
        let end = (at + len).min(PROGRAM.len());
        survive(&format!("{}{insert}{}", &PROGRAM[..at], &PROGRAM[end..]));
    }

    #[test]
    fn truncated_program(at in 0..PROGRAM.len()) {
        survive(&PROGRAM[..at]);
    }
}

/// Runs a function on a stack of 1 MiB, which is smaller than the default of any thread.
fn on_small_stack(run: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new()
        .stack_size(1 << 20)
        .spawn(run)
        .expect("a thread");
    thread.join().expect("no panic");
}

#[test]
fn deep_nesting_is_an_error() {
    const N: usize = 50_000;
    let cases = [
        format!("const int x = {}1{};", "(".repeat(N), ")".repeat(N)),
        format!("const int x = {}1;", "-".repeat(N)),
        format!("const int x = {}1;", "(bit<8>)".repeat(N)),
        format!("const int x = {}", "{".repeat(N)),
        format!("const int x = {}1{};", "f(".repeat(N), ")".repeat(N)),
        format!("const int x = {}1{};", "a[".repeat(N), "]".repeat(N)),
        format!("const int x = {}1;", "a ? b : ".repeat(N)),
        format!("const int x = {}1;", "a ? ".repeat(N)),
        format!("const int x = 1{};", " + 1".repeat(N)),
        format!("const int x = {}1{};", "(1 + ".repeat(N), ")".repeat(N)),
        format!("const int x = a{};", ".a".repeat(N)),
        format!("const int x = a{};", "()".repeat(N)),
        format!("const {}bool{} x = 1;", "tuple<".repeat(N), ">".repeat(N)),
        format!("const bool{} x = 1;", "[1]".repeat(N)),
        format!("const {} x = 1;", "bit<(".repeat(N)),
        format!("control c() {{ apply {}{} }}", "{".repeat(N), "}".repeat(N)),
        format!("control c() {{ apply {{ {} ; }} }}", "if (a) ".repeat(N)),
        format!(
            "control c() {{ apply {{ {} ; }} }}",
            "if (a) ; else ".repeat(N)
        ),
        format!("control c() {{ apply {{ {} ; }} }}", "for (;a;) ".repeat(N)),
        format!("X() x = {}", "{ X() x = ".repeat(N)),
        format!("@a[{}", "{".repeat(N)),
    ];
    for text in cases {
        on_small_stack(move || {
            let parsed = syntax::parse_str(&text);
            let rendered = parsed.render();
            let start = &text[..40];
            assert!(
                rendered.starts_with("error[E0204]: this is nested too deeply"),
                "{start}: {rendered}"
            );
            assert_eq!(parsed.diagnostics.len(), 1, "{start}: {rendered}");
            let _ = dump::program(&parsed.program);
        });
    }
}

/// Chains within chains multiply only up to the limits.
#[test]
fn nested_chains_are_bounded() {
    let chain = " + 1".repeat(400);
    let mut text = String::from("1");
    for _ in 0..150 {
        text = format!("({text}{chain})");
    }
    on_small_stack(move || survive(&format!("const int x = {text};")));
}

#[test]
fn limits_leave_room_for_programs() {
    let sum = " + 1".repeat(450);
    let parens = ("(".repeat(150), ")".repeat(150));
    let branches = "if (a) { } else ".repeat(150);
    let text = format!(
        "const int x = 1{sum};\nconst int y = {}1{};\ncontrol c() {{ apply {{ {branches} {{ }} }} }}",
        parens.0, parens.1
    );
    on_small_stack(move || assert_eq!(syntax::parse_str(&text).render(), ""));
}

#[test]
fn large_garbage_takes_little_time() {
    for unit in [
        "a { ",
        "a < b ",
        "x = { ",
        "} ",
        "( ",
        "@a ",
        "if ",
        "#\n",
        "/* */ ",
        "\"",
        "a<",
        "control c() {\n",
        "f(;",
        "f(",
        "@a(",
        "x = {1, ",
    ] {
        survive(&format!("#define f(x) x\n{}", unit.repeat(20_000)));
    }
}
