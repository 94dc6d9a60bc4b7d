//! Tests of the check of reads, with findings and without: small programs of each kind, our applications in their variants, and
//! applications with a guard removed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use compile::{Options, examine_file, examine_text};

/// Returns a program whose ingress control has the given declarations and statements.
fn program(declarations: &str, statements: &str) -> String {
    format!(
        "#include <core.p4>
#include <v1model.p4>
header ethernet_t {{ bit<48> dst; bit<48> src; bit<16> type; }}
header ip_t {{ bit<8> ttl; bit<8> protocol; bit<16> sum; }}
header port_t {{ bit<16> src; bit<16> dst; }}
header tag_t {{ bit<15> id; bit<1> last; }}
header_union any_t {{ ip_t a; port_t b; }}
struct headers_t {{ ethernet_t ethernet; ip_t ip; port_t tcp; port_t udp; tag_t[3] tags; any_t any; ip_t new; }}
struct meta_t {{ bit<8> kind; bool is_ip; bit<16> port; bit<8> ttl; @field_list(1) bit<1> copy; }}
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
    state start {{
        p.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {{ 0x800: ip; 0x8100: tags; default: accept; }}
    }}
    state tags {{
        p.extract(hdr.tags.next);
        meta.port = (bit<16>)hdr.tags.last.id;
        transition select(hdr.tags.last.last) {{ 1: accept; default: tags; }}
    }}
    state ip {{
        p.extract(hdr.ip);
        transition select(hdr.ip.protocol) {{ 6: tcp; 17: udp; default: accept; }}
    }}
    state tcp {{ meta.kind = 1; p.extract(hdr.tcp); transition accept; }}
    state udp {{ meta.kind = 2; p.extract(hdr.udp); transition accept; }}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control Sub(in headers_t hdr, in bool there, out bit<8> ttl) {{
    apply {{ ttl = 0; if (!there) {{ return; }} ttl = hdr.ip.ttl; }}
}}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
    register<bit<16>>(4) cells;
    Sub() sub;
    {declarations}
    apply {{
        {statements}
    }}
}}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{ apply {{ }} }}
control C(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control D(packet_out p, in headers_t hdr) {{ apply {{ p.emit(hdr.ethernet); p.emit(hdr.ip); p.emit(hdr.new); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"
    )
}

/// A program that does not compile is not followed: its IR may break the assumptions of the walk.
#[test]
fn errors_are_those_of_the_compiler() {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4include/v1model.p4");
    let v1model = std::fs::read_to_string(include).unwrap();
    let narrow = "bit<9>   ingress_port;";
    assert!(v1model.contains(narrow));
    let other = v1model.replace(narrow, "bit<10> ingress_port;");
    let source = program("", "").replace("#include <v1model.p4>", &other);
    let options = Options::default();
    let examined = examine_text(&source, "other.p4", &options);
    assert!(!examined.accepted());
    let compiled = compile::compile_text(&source, "other.p4", &options);
    assert_eq!(examined.render(), compiled.render());
}

/// Returns the codes of the warnings that the examination of a program gives, and its diagnostics as text.
/// Panics if the program has errors.
fn examined(declarations: &str, statements: &str) -> (Vec<&'static str>, String) {
    let source = program(declarations, statements);
    let outcome = examine_text(&source, "program.p4", &Options::default());
    let text = outcome.render();
    assert!(outcome.accepted() && outcome.checked, "{text}");
    (outcome.diagnostics.iter().map(|d| d.code).collect(), text)
}

#[track_caller]
fn clean(declarations: &str, statements: &str) {
    let (codes, text) = examined(declarations, statements);
    assert!(codes.is_empty(), "{statements}\n{text}");
}

#[track_caller]
fn found(code: &str, declarations: &str, statements: &str) -> String {
    let (codes, text) = examined(declarations, statements);
    assert_eq!(codes, [code], "{statements}\n{text}");
    text
}

const INVALID: &str = "W1180";
const UNSET: &str = "W1181";
const SENT: &str = "W1182";

const TABLE: &str = "action set(bit<16> port) { meta.port = port; }
    action count() { cells.write(0, hdr.tcp.dst); }
    table t { key = { sm.ingress_port: exact; } actions = { set; count; NoAction; } const default_action = NoAction(); }";

#[test]
fn tests_of_validity_in_any_form_are_understood() {
    for statements in [
        "if (hdr.ip.isValid()) { meta.ttl = hdr.ip.ttl; }",
        "if (!hdr.ip.isValid()) { } else { meta.ttl = hdr.ip.ttl; }",
        "if (!hdr.ip.isValid()) { exit; } meta.ttl = hdr.ip.ttl;",
        "if (!hdr.ip.isValid()) { return; } meta.ttl = hdr.ip.ttl;",
        "if (hdr.ip.isValid() && hdr.ip.ttl > 1) { meta.ttl = hdr.ip.ttl; }",
        "if (!hdr.ip.isValid() || hdr.ip.ttl > 1) { meta.kind = 1; }",
        "if (hdr.tcp.isValid() || hdr.udp.isValid()) { meta.ttl = hdr.ip.ttl; }",
        "meta.ttl = hdr.ip.isValid() ? hdr.ip.ttl : 0;",
        "bool there = hdr.ip.isValid(); if (there) { meta.ttl = hdr.ip.ttl; }",
        "meta.is_ip = hdr.ip.isValid(); if (sm.ingress_port == 3 && meta.is_ip) { meta.ttl = hdr.ip.ttl; }",
        "sub.apply(hdr, hdr.ip.isValid(), meta.ttl);",
        "switch (hdr.ip.isValid()) { true: { meta.ttl = hdr.ip.ttl; } default: { } }",
        "bit<8> n = 0; for (bit<8> i = 0; i < 2; i = i + 1) { if (hdr.ip.isValid()) { n = n + hdr.ip.ttl; } } meta.ttl = n;",
    ] {
        clean("", statements);
    }
}

#[test]
fn the_value_of_a_switch_is_read_where_the_switch_begins() {
    let statements = "switch (hdr.ip.ttl) {\n1: { meta.kind = 1; }\ndefault: { meta.kind = 2; } }";
    let text = found(INVALID, "", statements);
    assert!(text.contains("switch (hdr.ip.ttl) {\n"), "{text}");
}

#[test]
fn reads_without_a_test_are_found_with_their_path() {
    let text = found(INVALID, "", "meta.ttl = hdr.ip.ttl;");
    assert!(
        text.contains("`hdr.ip.ttl` is read where `hdr.ip` may be invalid"),
        "{text}"
    );
    assert!(text.contains("the parser goes through start"), "{text}");
    assert!(text.contains("^^^^^^^^^^"), "{text}");
    for statements in [
        "if (hdr.ethernet.isValid()) { meta.ttl = hdr.ip.ttl; }",
        "if (hdr.ip.isValid()) { meta.port = hdr.tcp.dst; }",
        "if (hdr.ip.isValid() || hdr.ip.ttl > 1) { meta.kind = 1; }",
        "meta.ttl = hdr.ip.isValid() ? 0 : hdr.ip.ttl;",
        "bool there = hdr.ip.isValid() || sm.ingress_port == 3; if (there) { meta.ttl = hdr.ip.ttl; }",
        "sub.apply(hdr, hdr.ethernet.isValid(), meta.ttl);",
        "if (hdr.ip.isValid()) { hdr.ip.setInvalid(); meta.ttl = hdr.ip.ttl; }",
        "cells.write(0, hdr.tcp.dst);",
        "hash(meta.port, HashAlgorithm.crc16, 16w0, { hdr.tcp.dst }, 32w100);",
    ] {
        found(INVALID, "", statements);
    }
}

#[test]
fn what_the_parser_says_by_values_is_understood() {
    // A packet that ends behind Ethernet has the type, and no IP header.
    let text = found(
        INVALID,
        "",
        "if (hdr.ethernet.isValid() && hdr.ethernet.type == 0x800) { meta.ttl = hdr.ip.ttl; }",
    );
    assert!(text.contains("the packet ends before `hdr.ip`"), "{text}");
    let sound = "if (sm.parser_error != error.NoError) { exit; }";
    clean(
        "",
        &format!("{sound} if (hdr.ethernet.type == 0x800) {{ meta.ttl = hdr.ip.ttl; }}"),
    );
    clean(
        "",
        &format!("{sound} if (meta.kind == 1) {{ meta.port = hdr.tcp.dst; }}"),
    );
    clean(
        "",
        &format!("{sound} if (meta.kind != 0) {{ meta.ttl = hdr.ip.ttl; }}"),
    );
    clean(
        "",
        &format!(
            "{sound} if (hdr.ip.isValid() && hdr.ip.protocol == 17) {{ meta.port = hdr.udp.dst; }}"
        ),
    );
    found(
        INVALID,
        "",
        &format!("{sound} if (meta.kind != 0) {{ meta.port = hdr.tcp.dst; }}"),
    );
    // A header behind another one: a packet with TCP has IP.
    clean("", "if (hdr.tcp.isValid()) { meta.ttl = hdr.ip.ttl; }");
    found(
        INVALID,
        "",
        "if (hdr.ip.isValid() && hdr.ip.protocol != 6) { meta.port = hdr.udp.dst; }",
    );
}

#[test]
fn stacks_and_unions_are_understood() {
    clean(
        "",
        "if (hdr.tags[1].isValid()) { meta.port = (bit<16>)hdr.tags[0].id; }",
    );
    found(
        INVALID,
        "",
        "if (hdr.tags[0].isValid()) { meta.port = (bit<16>)hdr.tags[1].id; }",
    );
    clean(
        "",
        "if (hdr.tags[1].isValid()) { hdr.tags.pop_front(1); meta.port = (bit<16>)hdr.tags[0].id; }",
    );
    found(
        INVALID,
        "",
        "if (hdr.tags[0].isValid()) { hdr.tags.pop_front(1); meta.port = (bit<16>)hdr.tags[0].id; }",
    );
    let dynamic = "bit<2> i = sm.priority[1:0];";
    clean(
        "",
        &format!("{dynamic} if (hdr.tags[i].isValid()) {{ meta.port = (bit<16>)hdr.tags[i].id; }}"),
    );
    clean(
        "",
        "hdr.any.a.setValid(); hdr.any.a.ttl = 1; meta.ttl = hdr.any.a.ttl;",
    );
    found(
        INVALID,
        "",
        "hdr.any.a.setValid(); hdr.any.b.setValid(); meta.ttl = hdr.any.a.ttl;",
    );
}

#[test]
fn tables_are_understood() {
    let text = found(INVALID, TABLE, "t.apply();");
    assert!(
        text.contains("table `I.t` is hit and runs `I.count`"),
        "{text}"
    );
    clean(TABLE, "if (hdr.tcp.isValid()) { t.apply(); }");
    let keyed = "action a() { } table u { key = { hdr.ip.ttl: exact; } actions = { a; } }";
    found(INVALID, keyed, "u.apply();");
    // Entries say by the first key whether the second counts.
    let keyed = "action a() { } table u { key = { hdr.ip.isValid(): exact; hdr.ip.ttl: ternary; } actions = { a; } }";
    clean(keyed, "u.apply();");
    let sets = "bit<16> port; action give(bit<16> value) { port = value; }
        table g { key = { sm.ingress_port: exact; } actions = { give; @defaultonly NoAction; } const default_action = NoAction(); }";
    clean(sets, "if (g.apply().hit) { meta.port = port + 1; }");
    clean(
        sets,
        "switch (g.apply().action_run) { give: { meta.port = port + 1; } default: { } }",
    );
    let text = found(UNSET, sets, "g.apply(); meta.port = port + 1;");
    assert!(
        text.contains("table `I.g` is missed and runs `NoAction`"),
        "{text}"
    );
}

#[test]
fn variables_without_a_value_are_found() {
    found(UNSET, "", "bit<8> x; meta.ttl = x + 1;");
    clean("", "bit<8> x; x = 3; meta.ttl = x + 1;");
    found(
        UNSET,
        "",
        "bit<8> x; if (hdr.ip.isValid()) { x = hdr.ip.ttl; } meta.ttl = x + 1;",
    );
    clean(
        "",
        "bit<8> x; if (hdr.ip.isValid()) { x = hdr.ip.ttl; } else { x = 0; } meta.ttl = x + 1;",
    );
    clean(
        "",
        "bit<8> x; if (hdr.ip.isValid()) { x = hdr.ip.ttl; } if (hdr.tcp.isValid()) { meta.ttl = x + 1; }",
    );
    clean("", "bit<16> x; cells.read(x, 0); meta.port = x + 1;");
    found(
        UNSET,
        "",
        "ip_t x; x.setValid(); x.ttl = 1; meta.ttl = x.protocol + 1;",
    );
    // The standard metadata has readers of its own.
    found(UNSET, "", "bit<9> port; sm.egress_spec = port;");
    // By way of an out parameter that is not assigned on each path.
    let may = "void may(in bool sure, out bit<8> x) { if (sure) { x = 1; } }";
    let source = program("", "bit<8> x; may(hdr.ip.isValid(), x); meta.ttl = x + 1;")
        .replace("control Sub", &format!("{may}\ncontrol Sub"));
    let outcome = examine_text(&source, "program.p4", &Options::default());
    assert_eq!(
        outcome
            .diagnostics
            .iter()
            .map(|d| d.code)
            .collect::<Vec<_>>(),
        [UNSET],
        "{}",
        outcome.render()
    );
}

#[test]
fn what_is_sent_without_a_value_is_found() {
    let text = found(
        SENT,
        "",
        "hdr.new.setValid(); hdr.new.ttl = 1; hdr.new.protocol = 2;",
    );
    assert!(
        text.contains("`hdr.new.sum` may be sent without a value"),
        "{text}"
    );
    clean(
        "",
        "hdr.new.setValid(); hdr.new.ttl = 1; hdr.new.protocol = 2; hdr.new.sum = 3;",
    );
    clean("", "hdr.new.setValid(); hdr.new = { 1, 2, 3 };");
    clean("", "hdr.new.setValid(); hdr.new.setInvalid();");
    clean("", "hdr.new = hdr.ip;");
    // A valid header keeps what it has.
    clean("", "if (hdr.ip.isValid()) { hdr.ip.setValid(); }");
    found(
        SENT,
        "",
        "if (hdr.tcp.isValid()) { } else { hdr.ip.setValid(); hdr.ip.ttl = 1; hdr.ip.protocol = 2; }",
    );
    // A dropped packet sends nothing.
    clean("", "hdr.new.setValid(); mark_to_drop(sm);");
}

#[test]
fn copies_enter_egress_as_they_are() {
    let with_egress = |ingress: &str, egress: &str| {
        let source = program("", ingress).replace(
            "control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }",
            &format!("control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{ apply {{ {egress} }} }}"),
        );
        let outcome = examine_text(&source, "program.p4", &Options::default());
        let codes: Vec<&str> = outcome.diagnostics.iter().map(|d| d.code).collect();
        (codes, outcome.render())
    };
    let clone = "if (hdr.ip.isValid()) { meta.copy = 1; clone_preserving_field_list(CloneType.I2E, 1, 1); hdr.ip.setInvalid(); }";
    // The copy is the packet as it arrived, with the marked field; the original has no header any more.
    let (codes, text) = with_egress(
        clone,
        "if (sm.instance_type == 1 && meta.copy == 1) { meta.ttl = hdr.ip.ttl; }",
    );
    assert!(codes.is_empty(), "{text}");
    let (codes, text) = with_egress(
        clone,
        "if (sm.instance_type == 0 && meta.copy == 1) { meta.ttl = hdr.ip.ttl; }",
    );
    assert_eq!(codes, [INVALID], "{text}");
    // Dropped packets do not get there.
    let (codes, text) = with_egress(
        "if (!hdr.ip.isValid()) { mark_to_drop(sm); }",
        "meta.ttl = hdr.ip.ttl;",
    );
    assert!(codes.is_empty(), "{text}");
}

#[test]
fn what_is_meant_to_be_there_is_explained() {
    clean(
        "",
        "// allow(invalid): zero is a good answer\n meta.ttl = hdr.ip.ttl;",
    );
    clean(
        "",
        "meta.ttl = hdr.ip.ttl;  // allow(invalid): zero is a good answer",
    );
    clean(
        "",
        "bit<8> x;\n // allow(unset): this is a test\n meta.ttl = x + 1;",
    );
    let (codes, text) = examined(
        "",
        "// allow(unset): of the wrong kind\n meta.ttl = hdr.ip.ttl;",
    );
    assert_eq!(codes, [INVALID, "W1183"], "{text}");
    let (codes, text) = examined("", "// allow(invalid)\n meta.ttl = hdr.ip.ttl;");
    assert_eq!(codes, [INVALID, "W1184"], "{text}");
    let (codes, text) = examined("", "// allow(everything): please\n meta.ttl = 1;");
    assert_eq!(codes, ["W1185"], "{text}");
    let (codes, text) = examined("", "// allow(invalid): nothing is wrong\n meta.ttl = 1;");
    assert_eq!(codes, ["W1183"], "{text}");
}

#[test]
fn endless_parsers_and_loops_are_followed_to_an_end() {
    clean(
        "",
        "for (bit<32> i = 0; i < 100000; i = i + 1) { if (hdr.ip.isValid()) { meta.ttl = meta.ttl + hdr.ip.ttl; } }",
    );
    found(
        INVALID,
        "",
        "for (bit<32> i = 0; i < 100000; i = i + 1) { meta.ttl = meta.ttl + 1; if (meta.ttl == 99) { meta.ttl = hdr.ip.ttl; } }",
    );
}

/// Checks that validity is known where a header is made valid or written to, though nothing reads it any more.
#[test]
fn validity_matters_up_to_the_last_write() {
    let open = "if (sm.ingress_port == 1) { meta.kind = 7; }";
    for statements in [
        format!("if (hdr.ip.isValid()) {{ {open} hdr.ip.setValid(); }}"),
        format!("if (hdr.ip.isValid()) {{ {open} hdr.ip.setValid(); {open} hdr.ip.ttl = 1; }}"),
        format!("bit<8> x; if (!hdr.ip.isValid()) {{ {open} hdr.ip.ttl = x; }}"),
        format!("bit<8> x; hdr.ip.setInvalid(); {open} hdr.ip.ttl = x;"),
    ] {
        clean("", &statements);
    }
    let made = "action make() { hdr.ip.setValid(); } table t { key = { sm.ingress_port: exact; } actions = { make; } }";
    clean(
        made,
        &format!("if (hdr.ip.isValid()) {{ {open} t.apply(); }}"),
    );
    let statements = format!("{open} hdr.ip.setValid();");
    let (codes, text) = examined("", &statements);
    assert!(
        !codes.is_empty() && codes.iter().all(|code| *code == SENT),
        "{text}"
    );
    let statements = format!("bit<8> x; if (hdr.ip.isValid()) {{ {open} hdr.ip.ttl = x; }}");
    found(SENT, "", &statements);
}

/// Checks that a change made only by a late round of a loop is known behind the loop, whatever statement makes it.
#[test]
fn what_late_rounds_of_a_loop_do_counts_behind_it() {
    let late = |what: &str| {
        format!("for (bit<32> i = 0; i < 100; i = i + 1) {{ if (i == 50) {{ {what} }} }}")
    };
    let faulty = "if (hdr.ip.isValid()) { meta.port = hdr.new.sum; }";
    // A header that becomes valid.
    let statements = format!(
        "hdr.ip.setInvalid(); {} {faulty}",
        late("hdr.ip.setValid(); hdr.ip = { 1, 2, 3 };")
    );
    found(INVALID, "", &statements);
    // A variable that loses its value.
    let statements = format!(
        "bit<8> x = 0; bit<8> y; {} meta.ttl = x + 1;",
        late("x = y;")
    );
    found(UNSET, "", &statements);
    // In two steps, of which the second is before the first in the round.
    let two = "if (i > 60) { x = y; } if (i == 50) { y = z; }";
    let statements = format!(
        "bit<8> x = 0; bit<8> y = 0; bit<8> z; for (bit<32> i = 0; i < 100; i = i + 1) {{ {two} }} meta.ttl = x + 1;"
    );
    found(UNSET, "", &statements);
}

fn apps() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/holdfast/apps")
}

fn options(defines: &[(&str, &str)]) -> Options {
    Options {
        include_dirs: Vec::new(),
        defines: (defines.iter())
            .map(|(name, value)| ((*name).to_string(), (*value).to_string()))
            .collect(),
        ..Default::default()
    }
}

/// The programs of the applications, with the macros of their variants.
const APPLICATIONS: [(&str, &[(&str, &str)]); 24] = [
    ("bier/bier.p4", &[]),
    ("bier/bier.p4", &[("REPLICATION", "1")]),
    ("bier/bier.p4", &[("REPLICATION", "2")]),
    ("bier/bier.p4", &[("ONE_PLUS_ONE", "1")]),
    ("bng/access.p4", &[]),
    ("bng/balancer.p4", &[]),
    ("bng/bng.p4", &[]),
    ("bng/bng.p4", &[("AUTH_ONLY", "1")]),
    ("bng/bng.p4", &[("FORWARD_ONLY", "1")]),
    ("firewall/firewall.p4", &[]),
    ("firewall/firewall.p4", &[("BRIDGED", "1")]),
    ("firewall/firewall.p4", &[("BINDINGS_ONLY", "1")]),
    ("ipmc/ipmc.p4", &[]),
    ("mpls/mpls.p4", &[]),
    ("protect/protect.p4", &[]),
    ("protect/protect.p4", &[("UDP_PORT", "5555")]),
    ("protect/rtag.p4", &[]),
    ("router/ipfrr.p4", &[]),
    ("router/router.p4", &[]),
    ("router/router.p4", &[("ROUTER_MTU", "1")]),
    ("shorternet/shorternet.p4", &[]),
    ("telemetry/telemetry.p4", &[]),
    ("telemetry/telemetry.p4", &[("INT_TRANSIT_ONLY", "1")]),
    ("telemetry/thesis.p4", &[]),
];

#[test]
fn applications_read_nothing_that_is_not_there_or_say_why() {
    // A variant may not need what another has to explain.
    let mut idle: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (name, defines) in APPLICATIONS {
        let outcome = examine_file(&apps().join(name), &options(defines));
        let (without_use, found): (Vec<_>, Vec<_>) =
            (outcome.diagnostics.iter()).partition(|d| d.code == "W1183");
        assert!(
            outcome.checked && found.is_empty(),
            "{name} {defines:?}\n{}",
            outcome.render()
        );
        let without_use: BTreeSet<String> = (without_use.iter())
            .map(|d| d.render(&outcome.sources))
            .collect();
        idle.entry(name)
            .and_modify(|known| known.retain(|text| without_use.contains(text)))
            .or_insert(without_use.clone());
    }
    let idle: Vec<String> = idle.into_values().flatten().collect();
    assert!(idle.is_empty(), "{}", idle.join("\n"));
}

#[test]
fn every_application_is_examined() {
    let examined: BTreeSet<&str> = APPLICATIONS.iter().map(|(name, _)| *name).collect();
    for folder in std::fs::read_dir(apps()).expect("applications") {
        let folder = folder.expect("an entry").path();
        for file in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = file.expect("an entry").path();
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let is_program =
                path.extension().is_some_and(|e| e == "p4") && text.contains(") main;");
            let name = path
                .strip_prefix(apps())
                .expect("inside")
                .to_string_lossy()
                .into_owned();
            assert!(
                !is_program || examined.contains(&*name),
                "{name} is not in the list"
            );
        }
    }
}

/// Each test of a header's validity in turn is taken for true.
#[test]
fn removed_guards_are_found() {
    for (name, least) in [("router/router.p4", 3), ("shorternet/shorternet.p4", 18)] {
        let path = apps().join(name);
        let source = std::fs::read_to_string(&path).expect("a program");
        let ingress = source.find("apply {").expect("a control");
        let mut caught = Vec::new();
        let mut total = 0;
        for (at, _) in source
            .match_indices(".isValid()")
            .filter(|(at, _)| *at > ingress)
        {
            let begin =
                source[..at].rfind(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'));
            let begin = begin.map_or(0, |i| i + 1);
            let mutant = format!(
                "{}true{}",
                &source[..begin],
                &source[at + ".isValid()".len()..]
            );
            let outcome = examine_text(&mutant, &path.to_string_lossy(), &Options::default());
            assert!(outcome.checked, "{}", outcome.render());
            total += 1;
            if outcome
                .diagnostics
                .iter()
                .any(|d| matches!(d.code, INVALID | UNSET | SENT))
            {
                caught.push(source[..at].matches('\n').count() + 1);
            }
        }
        assert!(
            caught.len() >= least,
            "{name}: {} of {total} are found, on lines {caught:?}",
            caught.len()
        );
    }
}
