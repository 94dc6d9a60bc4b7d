//! Externs have their meaning by architecture and declaration: the architecture's own file gives it, wherever that file lies, and no name
//! gives it to a declaration of the program.

mod programs;

use std::path::Path;

use compile::{CORE_P4, Options, Outcome, compile_text, compile_with};
use programs::{programs, root};
use syntax::MemoryLoader;

/// A program of each architecture. `DECLARED` stands in front of its blocks, `LOCAL` in its ingress control, `USED` in the control's body.
const V1MODEL_P4: &str = include_str!("../../../p4include/v1model.p4");
const PSA_P4: &str = include_str!("../../../p4include/psa.p4");

const V1MODEL: &str = "#include <core.p4>
#include <v1model.p4>
header h_t { bit<16> a; bit<16> b; }
struct H { h_t h; }
struct M { }
DECLARED
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { p.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) { LOCAL apply { s.egress_spec = 1; USED } }
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
";

const PSA: &str = "#include <core.p4>
#include <psa.p4>
struct M { }
header h_t { bit<16> a; bit<16> b; }
struct H { h_t h; }
DECLARED
parser IP(packet_in p, out H h, inout M m, in psa_ingress_parser_input_metadata_t i, in M r, in M c) { state start { p.extract(h.h); transition accept; } }
control I(inout H h, inout M m, in psa_ingress_input_metadata_t i, inout psa_ingress_output_metadata_t o) { LOCAL apply { send_to_port(o, (PortId_t)1); USED } }
control ID(packet_out p, out M c, out M r, out M n, inout H h, in M m, in psa_ingress_output_metadata_t o) { apply { p.emit(h.h); } }
parser EP(packet_in p, out H h, inout M m, in psa_egress_parser_input_metadata_t i, in M n, in M c, in M d) { state start { p.extract(h.h); transition accept; } }
control E(inout H h, inout M m, in psa_egress_input_metadata_t i, inout psa_egress_output_metadata_t o) { apply { } }
control ED(packet_out p, out M c, out M r, inout H h, in M m, in psa_egress_output_metadata_t o, in psa_egress_deparser_input_metadata_t d) { apply { p.emit(h.h); } }
IngressPipeline(IP(), I(), ID()) ip;
EgressPipeline(EP(), E(), ED()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
";

fn program(frame: &str, declared: &str, local: &str, used: &str) -> String {
    let text = frame.replace("DECLARED", declared);
    text.replace("LOCAL", local).replace("USED", used)
}

fn compile(text: &str) -> Outcome {
    compile_text(text, "program.p4", &Options::default())
}

/// Returns the names of the extern functions and the names of the extern types that a P4 file declares.
fn names(file: &str) -> (Vec<String>, Vec<String>) {
    let (mut functions, mut objects) = (Vec::new(), Vec::new());
    let lines = file.lines();
    for rest in lines.filter_map(|l| l.strip_prefix("extern ")) {
        let name = |s: &str| {
            let end = s.find(|c: char| !c.is_alphanumeric() && c != '_');
            s[..end.unwrap_or(s.len())].to_string()
        };
        match rest.split_once(' ') {
            Some((_, rest)) if rest.contains('(') => functions.push(name(rest)),
            _ => objects.push(name(rest)),
        }
    }
    functions.dedup();
    objects.dedup();
    (functions, objects)
}

/// Checks that a program has exactly one error: the use, at the text `used`, of the extern `shown` that the
/// program declares itself.
fn assert_own(text: &str, shown: &str, used: &str) {
    let outcome = compile(text);
    let errors: Vec<_> = outcome
        .diagnostics
        .iter()
        .filter(|d| d.is_error())
        .collect();
    let rendered = outcome.render();
    assert_eq!(errors.len(), 1, "{text}\n{rendered}");
    assert_eq!(errors[0].code, "E1133", "{rendered}");
    let wanted =
        format!("Holdfast does not implement the extern `{shown}`, which this program declares");
    assert!(rendered.contains(&wanted), "{rendered}");
    assert!(rendered.contains("= hint: "), "{rendered}");
    let at = outcome.sources.text(errors[0].span);
    assert!(at.contains(used), "{rendered}");
}

#[test]
fn own_extern_functions_are_refused_where_they_are_used() {
    let files = [V1MODEL_P4, PSA_P4];
    for (frame, own) in [(V1MODEL, V1MODEL_P4), (PSA, PSA_P4)] {
        let known = names(own).0;
        for name in files
            .iter()
            .flat_map(|f| names(f).0)
            .chain(["mixed".to_string()])
        {
            // Shapes that no architecture has for the name, and that of mark_to_drop() in v1model where the name is free.
            let shapes = [
                (
                    "bit<16> NAME(in bit<16> x, in bit<16> y, inout bit<16> z, in bool w, in bit<8> v, in bit<8> u)",
                    "h.h.b = NAME(h.h.a, 16w1, h.h.b, true, 1, 2);",
                ),
                (
                    "void NAME(out bit<16> x, in bit<8> y, in bit<8> z, in bit<8> w, in bit<8> v, in bit<8> u, in bool t)",
                    "NAME(h.h.a, 1, 2, 3, 4, 5, false);",
                ),
                ("void NAME()", "NAME();"),
                ("void NAME(in bit<32> length)", "NAME(32w1);"),
                ("bool NAME(in bool x)", "if (NAME(true)) { h.h.a = 1; }"),
            ];
            let free = !known.contains(&name);
            for (declared, used) in &shapes[..if free { 5 } else { 2 }] {
                let declared = format!("extern {};", declared.replace("NAME", &name));
                let used = used.replace("NAME", &name);
                assert_own(&program(frame, &declared, "", &used), &name, &name);
                // Declared and not used is right.
                let unused = compile(&program(frame, &declared, "", ""));
                assert!(unused.compiled.is_some(), "{}", unused.render());
            }
        }
    }
}

#[test]
fn own_extern_objects_are_refused_where_they_are_made() {
    let files = [V1MODEL_P4, PSA_P4];
    for (frame, own) in [(V1MODEL, V1MODEL_P4), (PSA, PSA_P4)] {
        let known = names(own).1;
        for name in files
            .iter()
            .flat_map(|f| names(f).1)
            .chain(["Mixer".to_string()])
        {
            if known.contains(&name) {
                continue;
            }
            // The parameters of the other architecture's, more or less.
            let shapes = [
                (
                    "extern NAME<T> { NAME(bit<32> size); T read(in T i); void write(in T i, in T v); }",
                    "NAME<bit<16>>(16) x;",
                    "h.h.b = x.read(h.h.a); x.write(1, h.h.b);",
                ),
                (
                    "extern NAME<T> { NAME(T low, T high); T read(); }",
                    "NAME<bit<16>>(16w1, 16w6) x;",
                    "h.h.a = x.read();",
                ),
                (
                    "extern NAME { NAME(); void pack<T>(in T d); void count(); }",
                    "NAME() x;",
                    "x.pack(h.h.a); x.count();",
                ),
                (
                    "extern NAME<S, T> { NAME(bit<32> n); T read(in S i); }",
                    "NAME<bit<32>, bit<16>>(4) x;",
                    "h.h.a = x.read(0);",
                ),
            ];
            for (declared, local, used) in shapes {
                let [declared, local] = [declared, local].map(|s| s.replace("NAME", &name));
                assert_own(&program(frame, &declared, &local, used), &name, "x");
                // Made and never called is a use, too; declared alone is none.
                assert_own(&program(frame, &declared, &local, ""), &name, "x");
                let unused = compile(&program(frame, &declared, "", ""));
                assert!(unused.compiled.is_some(), "{}", unused.render());
            }
        }
    }
}

/// A table cannot have a counter that only has the name of the architecture's.
#[test]
fn own_extern_objects_are_no_resources_of_tables() {
    for (name, property, frame) in [
        ("DirectCounter", "counters", V1MODEL),
        ("ActionProfile", "implementation", V1MODEL),
        ("direct_counter", "psa_direct_counter", PSA),
        ("action_selector", "psa_implementation", PSA),
    ] {
        let declared = format!("extern {name} {{ {name}(); void count(); }}");
        let local = format!(
            "{name}() x; action a() {{ }} table t {{ key = {{ h.h.a : exact; }} actions = {{ a; }} default_action = a; {property} = x; }}"
        );
        let rendered = compile(&program(frame, &declared, &local, "t.apply();")).render();
        assert!(rendered.contains("error[E1020]"), "{rendered}");
    }
}

/// Functions, actions, controls and parsers of a program mean what they are, whatever another architecture calls so.
#[test]
fn names_of_another_architecture_are_free() {
    let neutral = "free_name";
    for (frame, own, other) in [(V1MODEL, V1MODEL_P4, PSA_P4), (PSA, PSA_P4, V1MODEL_P4)] {
        let (mut known, objects) = names(own);
        known.extend(objects);
        let (functions, objects) = names(other);
        for name in functions.into_iter().chain(objects) {
            if known.contains(&name) {
                continue;
            }
            let uses = [
                (
                    "bit<16> NAME(in bit<16> x) { return x + 1; }",
                    "",
                    "h.h.b = NAME(h.h.a);",
                ),
                (
                    "void NAME(inout bit<16> x) { x = x + 1; }",
                    "",
                    "NAME(h.h.b);",
                ),
                ("", "action NAME() { h.h.b = 7; }", "NAME();"),
                (
                    "control NAME(inout bit<16> x) { apply { x = 5; } }",
                    "NAME() x;",
                    "x.apply(h.h.b);",
                ),
                (
                    "struct NAME { bit<16> x; }",
                    "NAME x;",
                    "x.x = 3; h.h.b = x.x;",
                ),
                (
                    "",
                    "table NAME { key = { h.h.a : exact; } actions = { NoAction; } }",
                    "NAME.apply();",
                ),
            ];
            for (declared, local, used) in uses {
                let text = |n: &str| {
                    let [d, l, u] = [declared, local, used].map(|s| s.replace("NAME", n));
                    program(frame, &d, &l, &u)
                };
                let given = compile(&text(&name));
                let renamed = compile(&text(neutral));
                let print = |outcome: &Outcome| {
                    let compiled = outcome.compiled.as_ref();
                    bare(
                        &compiled
                            .unwrap_or_else(|| panic!("{}", outcome.render()))
                            .program,
                    )
                };
                let renamed = print(&renamed).replace(neutral, &name);
                assert_eq!(print(&given), renamed, "{}", text(&name));
            }
        }
    }
}

fn load(text: &str, files: &[(&str, &str)]) -> Outcome {
    let mut loader = MemoryLoader::new().file("program.p4", text);
    for (name, text) in files {
        loader = loader.file(name, text.to_string());
    }
    compile_with(Path::new("program.p4"), &loader, &Options::default())
}

/// A program may bring its architecture's file along, with externs that others do not have.
#[test]
fn own_copies_of_an_architecture_mean_the_same() {
    let more = "extern void launch(in bit<8> x);\nextern Rocket { Rocket(); void start(); }\n";
    let with_more = |file: &str| {
        let at = file.find("\nparser ").expect("the types of the blocks");
        format!("{}\n{more}{}", &file[..at], &file[at..])
    };
    let rest = root().join("tests/p4/run/include/rest.p4");
    let rest = std::fs::read_to_string(rest).expect("a part of the programs");
    let mut copied = 0;
    for path in programs("tests/p4/run") {
        let text = std::fs::read_to_string(&path).expect("a program");
        let files = [
            ("v1model.p4", V1MODEL_P4),
            ("psa.p4", PSA_P4),
            ("bmv2/psa.p4", PSA_P4),
        ];
        let mut files = files.into_iter();
        let architecture = files.find(|(file, _)| text.contains(&format!("<{file}>")));
        let (file, text_of) = architecture.expect("an architecture");
        let rest = ("include/rest.p4", &*rest);
        let standard = load(&text, &[("core.p4", CORE_P4), (file, text_of), rest]);
        let standard = standard.compiled.expect("a program");
        copied += 1;
        let copy = text.replace(&format!("<{file}>"), "\"vendor/arch.p4\"");
        let changed = with_more(text_of);
        let files = [("core.p4", CORE_P4), ("vendor/arch.p4", &*changed), rest];
        let outcome = load(&copy, &files);
        let rendered = outcome.render();
        let compiled = outcome
            .compiled
            .unwrap_or_else(|| panic!("{}: {rendered}", path.display()));
        let (own, other) = (bare(&compiled.program), bare(&standard.program));
        assert_eq!(own, other, "{}", path.display());
        assert_eq!(compiled.p4info, standard.p4info);
    }
    assert!(copied > 90, "only {copied} programs");
}

/// Renders a program of the IR without files, places and ids, which depend on the names in the source.
fn bare(program: &ir::Program) -> String {
    let text = ir::text::print(program);
    let mut bare = Vec::new();
    for line in text.lines().filter(|l| !l.starts_with("file ")) {
        let mut words = line.split(' ').filter(|w| !w.starts_with('@'));
        while let Some(word) = words.next() {
            bare.push(word);
            if word == "id" {
                words.next();
            }
        }
        bare.push("\n");
    }
    bare.join(" ")
}

/// The preprocessed text of a program, all in one file, is the same program, and its own externs are still its own.
#[test]
fn programs_in_one_file_keep_the_meanings() {
    for (frame, architecture, include) in [
        (V1MODEL, V1MODEL_P4, "#include <v1model.p4>"),
        (PSA, PSA_P4, "#include <psa.p4>"),
    ] {
        let flat = |text: String| {
            text.replace("#include <core.p4>", CORE_P4)
                .replace(include, &architecture.replace("#include <core.p4>", ""))
        };
        let text = flat(program(frame, "", "", ""));
        let outcome = load(&text, &[]);
        assert!(outcome.compiled.is_some(), "{}", outcome.render());
        for name in ["truncate_more", "hash"] {
            let declared = format!("extern bit<16> {name}(in bit<16> x);");
            let used = format!("h.h.b = {name}(h.h.a);");
            let text = flat(program(frame, &declared, "", &used));
            let rendered = load(&text, &[]).render();
            assert!(rendered.contains("error[E1133]"), "{rendered}");
        }
    }
}

/// A changed declaration in a copy of the architecture's file is not given the meaning of the old one.
#[test]
fn changed_declarations_lose_their_meaning() {
    let cases = [
        (
            "extern void truncate(in bit<32> length);",
            "extern void truncate(in bit<32> length, in bit<8> padding);",
            "truncate(1, 2);",
            "E1133",
        ),
        (
            "extern void random<T>(out T result, in T lo, in T hi);",
            "extern void random(in bit<32> logRange, out bit<16> value);",
            "random(4, h.h.a);",
            "E1133",
        ),
        (
            "    void count();",
            "    void count(in bit<32> by);",
            "c.count(3);",
            "E1133",
        ),
        (
            "    packets,\n    bytes,\n",
            "    bytes,\n    packets,\n",
            "",
            "E1129",
        ),
        (
            "    csum16,\n    xor16\n",
            "    csum16,\n    crc64\n",
            "hash(h.h.a, HashAlgorithm.crc64, 16w0, { h.h.b }, 32w65536);",
            "E1128",
        ),
    ];
    for (old, new, used, code) in cases {
        assert!(V1MODEL_P4.contains(old), "{old}");
        let changed = V1MODEL_P4.replace(old, new);
        let local = match used.starts_with("c.") {
            true => "direct_counter(CounterType.packets) c;",
            false => "",
        };
        let text = program(V1MODEL, "", local, used);
        let outcome = load(&text, &[("core.p4", CORE_P4), ("v1model.p4", &changed)]);
        let rendered = outcome.render();
        assert!(rendered.contains(&format!("error[{code}]")), "{rendered}");
        assert_eq!(
            outcome.diagnostics.iter().filter(|d| d.is_error()).count(),
            1,
            "{rendered}"
        );
    }
    // A member at another position keeps its meaning.
    let reordered = V1MODEL_P4.replace(
        "    crc32,\n    crc32_custom,\n",
        "    crc32_custom,\n    added,\n    crc32,\n",
    );
    let used = "hash(h.h.a, HashAlgorithm.crc32, 16w0, { h.h.b }, 32w65536);";
    let text = program(V1MODEL, "", "", used);
    let print = |file: &str| {
        let outcome = load(&text, &[("core.p4", CORE_P4), ("v1model.p4", file)]);
        ir::text::print(&outcome.compiled.expect("a program").program)
    };
    assert_eq!(print(&reordered), print(V1MODEL_P4));
}
