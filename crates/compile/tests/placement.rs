//! Constructs at all places of a program, right or wrong: each program compiles, or its errors say so at the construct. The verifier of the
//! IR, which knows no source, never has to speak for a mistake of a program.

use compile::{Options, compile_text};

const V1MODEL: &str = "#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; }
header w_t { bit<2048> w; }
struct H { h_t h; w_t w; }
struct M { bit<8> x; }
TOP
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { LOCAL:parser state start { p.extract(h.h); USE:parser transition accept; } }
control V(inout H h, inout M m) { LOCAL:verify apply { USE:verify } }
control I(inout H h, inout M m, inout standard_metadata_t s) { LOCAL:ingress apply { USE:ingress } }
control E(inout H h, inout M m, inout standard_metadata_t s) { LOCAL:egress apply { USE:egress } }
control C(inout H h, inout M m) { LOCAL:compute apply { USE:compute } }
control D(packet_out p, in H h) { LOCAL:deparser apply { p.emit(h.h); USE:deparser } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
";

const PSA: &str = "#include <core.p4>
#include <psa.p4>
header h_t { bit<8> a; bit<8> b; }
header w_t { bit<2048> w; }
struct H { h_t h; w_t w; }
struct M { bit<8> x; }
TOP
parser IP(packet_in p, out H h, inout M m, in psa_ingress_parser_input_metadata_t i, in M r, in M c) { LOCAL:parser state start { p.extract(h.h); USE:parser transition accept; } }
control I(inout H h, inout M m, in psa_ingress_input_metadata_t i, inout psa_ingress_output_metadata_t o) { LOCAL:ingress apply { USE:ingress } }
control ID(packet_out p, out M c, out M r, out M n, inout H h, in M m, in psa_ingress_output_metadata_t o) { LOCAL:ideparser apply { p.emit(h.h); USE:ideparser } }
parser EP(packet_in p, out H h, inout M m, in psa_egress_parser_input_metadata_t i, in M n, in M c, in M d) { LOCAL:eparser state start { p.extract(h.h); USE:eparser transition accept; } }
control E(inout H h, inout M m, in psa_egress_input_metadata_t i, inout psa_egress_output_metadata_t o) { LOCAL:egress apply { USE:egress } }
control ED(packet_out p, out M c, out M r, inout H h, in M m, in psa_egress_output_metadata_t o, in psa_egress_deparser_input_metadata_t d) { LOCAL:deparser apply { p.emit(h.h); USE:deparser } }
IngressPipeline(IP(), I(), ID()) ip;
EgressPipeline(EP(), E(), ED()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
";

const V1MODEL_BLOCKS: [&str; 6] = [
    "parser", "verify", "ingress", "egress", "compute", "deparser",
];
const PSA_BLOCKS: [&str; 6] = [
    "parser",
    "ingress",
    "ideparser",
    "eparser",
    "egress",
    "deparser",
];

/// Statements that need no names but constants, with what must be declared beside them.
const STATEMENTS: [(&str, &str); 12] = [
    ("", "exit;"),
    ("", "return;"),
    ("", "verify(true, error.NoMatch);"),
    ("", "assert(8w1 == 2);"),
    ("bit<8> z;", "z = 3;"),
    ("", "for (bit<8> q = 0; q < 3; q = q + 1) { }"),
    ("", "if (h.h.isValid()) { }"),
    ("", "h.h.setInvalid();"),
    (
        "table t { key = { 8w1 : exact @name(\"k\"); } actions = { NoAction; } }",
        "t.apply();",
    ),
    (
        "table t { actions = { NoAction; } }",
        "if (t.apply().hit) { }",
    ),
    (
        "table t { actions = { NoAction; } }",
        "switch (t.apply().action_run) { NoAction: { } }",
    ),
    (
        "action a() { exit; } table t { actions = { a; } default_action = a; }",
        "t.apply();",
    ),
];

const V1MODEL_STATEMENTS: [(&str, &str); 27] = [
    ("", "clone(CloneType.I2E, 32w1);"),
    ("", "clone(CloneType.E2E, 32w1);"),
    ("", "clone_preserving_field_list(CloneType.I2E, 32w1, 1);"),
    ("", "clone_preserving_field_list(CloneType.E2E, 32w1, 1);"),
    ("", "resubmit_preserving_field_list(1);"),
    ("", "recirculate_preserving_field_list(1);"),
    ("", "truncate(60);"),
    ("", "digest(1, { 8w1 });"),
    ("", "mark_to_drop();"),
    ("", "log_msg(\"x\");"),
    ("bit<8> z;", "random(z, 8w1, 8w2);"),
    (
        "bit<16> z;",
        "hash(z, HashAlgorithm.crc16, 16w0, { 8w1 }, 32w10);",
    ),
    (
        "",
        "verify_checksum(true, { 8w1 }, 16w1, HashAlgorithm.csum16);",
    ),
    (
        "",
        "verify_checksum_with_payload(true, { 8w1 }, 16w1, HashAlgorithm.csum16);",
    ),
    (
        "bit<16> z;",
        "update_checksum(true, { 8w1 }, z, HashAlgorithm.csum16);",
    ),
    (
        "bit<16> z;",
        "update_checksum_with_payload(true, { 8w1 }, z, HashAlgorithm.csum16);",
    ),
    ("register<bit<8>>(4) r;", "r.write(0, 1);"),
    ("counter(4, CounterType.bytes) r;", "r.count(1);"),
    (
        "meter(4, MeterType.bytes) r; bit<8> z;",
        "r.execute_meter(1, z);",
    ),
    ("direct_counter(CounterType.bytes) r;", "r.count();"),
    (
        "direct_meter<bit<8>>(MeterType.bytes) r; bit<8> z;",
        "r.read(z);",
    ),
    ("Checksum16() r; bit<16> z;", "z = r.get({ 8w1 });"),
    ("action_profile(4) r;", ""),
    // Beyond a limit.
    ("register<bit<2048>>(0x10000000) r;", "r.write(0, 1);"),
    ("counter(0xffffffff, CounterType.bytes) r;", "r.count(1);"),
    (
        "table t { actions = { NoAction; } size = 0xffffffffffff; }",
        "t.apply();",
    ),
    (
        "bit<2048>[1024] z; bit<2048>[1024] y;",
        "z[m.x] = 1; y = z;",
    ),
];

const PSA_STATEMENTS: [(&str, &str); 14] = [
    ("Register<bit<8>, bit<32>>(4) r;", "r.write(0, 1);"),
    (
        "Counter<bit<32>, bit<8>>(4, PSA_CounterType_t.BYTES) r;",
        "r.count(1);",
    ),
    (
        "DirectCounter<bit<32>>(PSA_CounterType_t.BYTES) r;",
        "r.count();",
    ),
    (
        "Meter<bit<8>>(4, PSA_MeterType_t.BYTES) r; PSA_MeterColor_t z;",
        "z = r.execute(1);",
    ),
    (
        "DirectMeter(PSA_MeterType_t.BYTES) r; PSA_MeterColor_t z;",
        "z = r.execute();",
    ),
    ("Random<bit<8>>(1, 2) r; bit<8> z;", "z = r.read();"),
    (
        "Hash<bit<16>>(PSA_HashAlgorithm_t.CRC16) r; bit<16> z;",
        "z = r.get_hash({ 8w1 });",
    ),
    ("InternetChecksum() r;", "r.add({ 16w1 });"),
    (
        "Checksum<bit<16>>(PSA_HashAlgorithm_t.ONES_COMPLEMENT16) r;",
        "r.update({ 16w1 });",
    ),
    ("Digest<bit<8>>() r;", "r.pack(1);"),
    ("ActionProfile(4) r;", ""),
    ("ActionSelector(PSA_HashAlgorithm_t.CRC16, 4, 4) r;", ""),
    (
        "Register<bit<2048>, bit<32>>(0x10000000) r;",
        "r.write(0, 1);",
    ),
    (
        "Meter<bit<8>>(0xffffffff, PSA_MeterType_t.BYTES) r; PSA_MeterColor_t z;",
        "z = r.execute(1);",
    ),
];

/// Compiles a program with a construct on lines of its own, and checks that each error is at one of these
/// lines. Returns whether the program was accepted.
fn check(frame: &str, top: &str, locals: &[(&str, String)], uses: &[(&str, String)]) -> bool {
    let mut text = frame.replace("TOP", &format!("/**/{top}/**/"));
    for (mark, parts) in [("LOCAL:", locals), ("USE:", uses)] {
        for (block, part) in parts {
            text = text.replace(&format!("{mark}{block} "), &format!("\n/**/{part}/**/\n "));
        }
        while let Some(start) = text.find(mark) {
            let end = text[start..].find(' ').map_or(text.len(), |n| start + n);
            text.replace_range(start..end, "");
        }
    }
    let outcome = compile_text(&text, "program.p4", &Options::default());
    let rendered = outcome.render();
    let errors = outcome.diagnostics.iter().filter(|d| d.is_error());
    for error in errors {
        assert_ne!(error.code, "E1199", "{text}\n{rendered}");
        let (_, line) = outcome.sources.line(error.span);
        // The storage of all variables together has no line.
        let whole = error.message.contains("of the program together");
        assert!(line.contains("/**/") || whole, "{text}\n{rendered}");
    }
    outcome.compiled.is_some()
}

/// Counts programs that compile and programs that are refused.
#[derive(Default)]
struct Tally {
    right: usize,
    wrong: usize,
}

impl Tally {
    fn add(&mut self, compiles: bool) {
        match compiles {
            true => self.right += 1,
            false => self.wrong += 1,
        }
    }
}

fn each_place(frame: &str, blocks: &[&str], statements: &[(&str, &str)]) -> Tally {
    let mut tally = Tally::default();
    for (local, used) in statements {
        for block in blocks {
            let here = |text: String| [(*block, text)];
            // In the block, in an action, in a table's action, in a block inside, in a function.
            tally.add(check(
                frame,
                "",
                &here(local.to_string()),
                &here(used.to_string()),
            ));
            let action = format!("{local} action inner() {{ {used} }}");
            tally.add(check(
                frame,
                "",
                &here(action.clone()),
                &here("inner();".into()),
            ));
            let table = format!(
                "{action} table outer {{ actions = {{ inner; }} default_action = inner; }}"
            );
            tally.add(check(
                frame,
                "",
                &here(table),
                &here("outer.apply();".into()),
            ));
            let kinds = [
                format!("control G(inout H h, inout M m) {{ {local} apply {{ {used} }} }}"),
                format!(
                    "parser G(inout H h, inout M m) {{ {local} state start {{ {used} transition accept; }} }}"
                ),
            ];
            for kind in &kinds {
                let (made, applied) = ("G() g;".to_string(), "g.apply(h, m);".to_string());
                tally.add(check(frame, kind, &here(made), &here(applied)));
            }
            if local.is_empty() {
                let function = format!("void f(inout H h) {{ {used} }}");
                tally.add(check(frame, &function, &[], &here("f(h);".into())));
                let action = format!("action g() {{ {used} }}");
                let table = "table outer { actions = { g; } default_action = g; }".to_string();
                tally.add(check(
                    frame,
                    &action,
                    &here(table),
                    &here("outer.apply();".into()),
                ));
            }
        }
        // A global action of tables in both pipelines, and one that both call.
        if local.is_empty() {
            let action = format!("action g() {{ {used} }}");
            let both = |text: &str| [("ingress", text.to_string()), ("egress", text.to_string())];
            let table = both("table t { actions = { g; } default_action = g; }");
            tally.add(check(frame, &action, &table, &both("t.apply();")));
            tally.add(check(frame, &action, &[], &both("g();")));
        }
    }
    tally
}

#[test]
fn what_stands_at_a_wrong_place_is_said_there_in_v1model() {
    let statements = [&STATEMENTS[..], &V1MODEL_STATEMENTS[..]].concat();
    let tally = each_place(V1MODEL, &V1MODEL_BLOCKS, &statements);
    assert!(
        tally.right > 300 && tally.wrong > 300,
        "{} right, {} wrong",
        tally.right,
        tally.wrong
    );
}

#[test]
fn what_stands_at_a_wrong_place_is_said_there_in_psa() {
    let statements = [&STATEMENTS[..], &PSA_STATEMENTS[..]].concat();
    let tally = each_place(PSA, &PSA_BLOCKS, &statements);
    assert!(
        tally.right > 200 && tally.wrong > 200,
        "{} right, {} wrong",
        tally.right,
        tally.wrong
    );
}

/// Sizes beyond what the IR takes are limits that are said at the line, not rules of the IR.
#[test]
fn what_is_too_large_is_said_where_it_stands() {
    let many = |item: &str, n: usize| vec![item; n].join(", ");
    let cases = [
        format!(
            "bit<16> z; hash(z, HashAlgorithm.crc16, 16w0, {{ {} }}, 32w10);",
            many("h.w.w", 200)
        ),
        format!("digest(1, {{ {} }});", many("h.w.w", 200)),
        format!("h.h.a = {};", vec!["h.h.b"; 400].join(" + ")),
        format!(
            "{}h.h.a = 1;{}",
            "if (h.h.b == 1) { ".repeat(300),
            " }".repeat(300)
        ),
        format!("bool z = ({}) == 0;", vec!["h.w.w"; 200].join(" ++ ")),
        "bit<65> z; random(z, 65w0, 65w9);".to_string(),
    ];
    for case in cases {
        assert!(!check(V1MODEL, "", &[], &[("ingress", case)]));
    }
}
