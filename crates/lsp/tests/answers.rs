//! Answers to an editor about programs of several files, and that no edit makes the server fail.

use std::path::{Path, PathBuf};

use lsp::{Encoding, Session, Settings, Text};
use lsp_types::{HoverContents, Position, Range};

const HEADERS: &str = "\
// Addresses of Ethernet.
typedef bit<48> mac_t;
#define WIDTH 16
/* The first header. */
header ethernet_t { mac_t dst; mac_t src; bit<WIDTH> type; }
struct headers_t { ethernet_t ethernet; }
struct meta_t { bit<9> port; }
#define ETHERNET hdr.ethernet
";

const PROGRAM: &str = "\
#include <v1model.p4>
#include \"headers.p4\"
const bit<16> IPV4 = 0x800;
enum bit<8> Kind { ONE = 1, TWO = 2 }
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { packet.extract(hdr.ethernet); transition select(hdr.ethernet.type) { IPV4: more; default: accept; } }
    state more { transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action forward(bit<9> port) { std.egress_spec = port; ETHERNET.src = hdr.ethernet.dst; }
    table t { key = { hdr.ethernet.dst: exact; } actions = { forward; NoAction; } default_action = NoAction(); }
    apply { if (hdr.ethernet.isValid()) { t.apply(); } mark_to_drop(standard_metadata = std); }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
";

const MAIN: &str = "/w/main.p4";
const INCLUDED: &str = "/w/headers.p4";

fn session() -> Session {
    let mut session = Session::new(Settings {
        options: compile::Options::default(),
        main: None,
        folders: vec![PathBuf::from("/w")],
        library: PathBuf::from("/lib"),
        encoding: Encoding::Utf16,
    });
    session.set(Path::new(MAIN), Text::new(PROGRAM));
    session.set(Path::new(INCLUDED), Text::new(HEADERS));
    session
}

/// Returns the position of the start of `name` within the first text `around` of a document.
fn at(session: &Session, path: &str, around: &str, name: &str) -> Position {
    let text = session.document(Path::new(path)).expect("a document");
    let start =
        text.as_str().find(around).expect("the text") + around.find(name).expect("the name");
    text.position(start, Encoding::Utf16)
}

/// Returns the path and the text of the line to which the definition of a name leads.
fn defined(session: &mut Session, path: &str, around: &str, name: &str) -> (String, String) {
    let position = at(session, path, around, name);
    let snapshot = session.snapshot(Path::new(path)).expect("a program");
    let found = lsp::definition(snapshot, Path::new(path), position).expect("a definition");
    let file = found.uri.as_str().trim_start_matches("file://").to_string();
    let text = session.document(Path::new(&file));
    let line = text.map_or("", |text| text.line(found.range.start.line as usize));
    let column = found.range.start.character as usize;
    (file, line.get(column..).unwrap_or("").trim().to_string())
}

fn hovered(session: &mut Session, path: &str, around: &str, name: &str) -> String {
    let position = at(session, path, around, name);
    let snapshot = session.snapshot(Path::new(path)).expect("a program");
    match lsp::hover(snapshot, Path::new(path), position).map(|h| h.contents) {
        Some(HoverContents::Markup(text)) => text.value,
        other => panic!("{other:?}"),
    }
}

fn completed(session: &mut Session, line: &str) -> Vec<String> {
    let text = PROGRAM.replace("apply { if", &format!("apply {{ {line}\n if"));
    session.set(Path::new(MAIN), Text::new(text));
    let around = format!("apply {{ {line}\n");
    let mut position = at(session, MAIN, &around, &format!("{line}\n"));
    position.character += line.len() as u32;
    let found = lsp::complete(session, Path::new(MAIN), position);
    found.into_iter().map(|item| item.label).collect()
}

#[test]
fn definitions_lead_through_includes_macros_and_calls() {
    let mut session = session();
    let mut check = |path: &str, around: &str, name: &str, file: &str, line: &str| {
        let (found_file, found_line) = defined(&mut session, path, around, name);
        assert_eq!(found_file, file, "{around}");
        assert!(found_line.starts_with(line), "{around}: {found_line}");
    };
    check(MAIN, "out headers_t", "headers_t", INCLUDED, "headers_t {");
    check(MAIN, "hdr.ethernet.type)", "type", INCLUDED, "type; }");
    check(MAIN, "IPV4: more", "IPV4", MAIN, "IPV4 = 0x800");
    check(MAIN, "IPV4: more", "more", MAIN, "more { transition");
    check(MAIN, "{ forward;", "forward", MAIN, "forward(bit<9>");
    check(MAIN, "t.apply", "t", MAIN, "t { key");
    check(MAIN, "= port;", "port", MAIN, "port) {");
    check(
        MAIN,
        "hdr.ethernet.isValid",
        "hdr",
        MAIN,
        "hdr, inout meta_t meta, inout standard",
    );
    check(MAIN, "ETHERNET.src", "src", INCLUDED, "src;");
    check(
        MAIN,
        "ETHERNET.src",
        "ETHERNET",
        INCLUDED,
        "ETHERNET hdr.ethernet",
    );
    check(INCLUDED, "bit<WIDTH>", "WIDTH", INCLUDED, "WIDTH 16");
    check(INCLUDED, "mac_t dst", "mac_t", INCLUDED, "mac_t;");
    check(MAIN, "\"headers.p4\"", "headers", INCLUDED, "// Addresses");
    check(MAIN, "packet.extract", "extract", "/lib/core.p4", "");
    check(
        MAIN,
        "standard_metadata = std",
        "standard_metadata",
        "/lib/v1model.p4",
        "",
    );
    check(MAIN, "P(), V()", "V", MAIN, "V(inout");
}

#[test]
fn hovers_tell_type_width_value_and_comment() {
    let mut session = session();
    let mut check = |around: &str, name: &str, wanted: &str| {
        assert_eq!(hovered(&mut session, MAIN, around, name), wanted);
    };
    check(
        "hdr.ethernet.type)",
        "type",
        "```p4\nbit<16> type\n```\n\nfield of ethernet_t",
    );
    check(
        "hdr.ethernet.type)",
        "ethernet",
        "```p4\nethernet_t ethernet\n```\n\nfield of headers_t, 112 bits",
    );
    check(
        "IPV4: more",
        "IPV4",
        "```p4\nconst bit<16> IPV4 = 2048 (0x800)\n```",
    );
    check(
        "{ forward;",
        "forward",
        "```p4\naction forward(bit<9> port)\n```",
    );
    check(
        "t.apply",
        "t",
        "```p4\ntable t\n```\n\nkey hdr.ethernet.dst: exact",
    );
    check(
        "ETHERNET.src",
        "ETHERNET",
        "```p4\n#define ETHERNET hdr.ethernet\n```",
    );
    let mac = hovered(&mut session, INCLUDED, "mac_t dst", "mac_t");
    assert_eq!(
        mac,
        "```p4\ntypedef bit<48> mac_t\n```\n\nAddresses of Ethernet."
    );
}

#[test]
fn references_are_in_all_files() {
    let mut session = session();
    let position = at(&session, INCLUDED, "mac_t dst", "dst");
    let snapshot = session.snapshot(Path::new(INCLUDED)).expect("a program");
    let found = lsp::references(snapshot, Path::new(INCLUDED), position, true);
    let files: Vec<&str> = found.iter().map(|l| l.uri.as_str()).collect();
    assert_eq!(
        files,
        [
            "file:///w/headers.p4",
            "file:///w/main.p4",
            "file:///w/main.p4"
        ]
    );
}

#[test]
fn renames_only_if_the_program_means_the_same() {
    let mut session = session();
    let mut rename = |around: &str, name: &str, new: &str| {
        let position = at(&session, MAIN, around, name);
        lsp::rename(&mut session, Path::new(MAIN), position, new).map(|edit| {
            let changes = edit.changes.into_iter().flatten();
            changes.map(|(_, edits)| edits.len()).sum::<usize>()
        })
    };
    assert_eq!(rename("IPV4: more", "more", "next"), Ok(2));
    assert_eq!(rename("out headers_t", "headers_t", "all_headers_t"), Ok(7));
    assert_eq!(rename("hdr.ethernet.type)", "hdr", "h"), Ok(3));
    let refused = |result: Result<usize, String>, why: &str| {
        assert!(
            result.as_ref().is_err_and(|e| e.contains(why)),
            "{result:?}"
        );
    };
    refused(rename("IPV4: more", "more", "start"), "declared twice");
    refused(
        rename("= port;", "port", "std"),
        "change what the program means",
    );
    refused(rename("IPV4: more", "more", "state"), "no identifier");
    refused(rename("hdr.ethernet.dst;", "hdr", "h"), "a macro uses it");
    refused(rename("packet.extract", "extract", "take"), "built into");
}

#[test]
fn completes_members_names_and_properties() {
    let mut session = session();
    let mut check = |line: &str, some: &[&str], none: &[&str]| {
        let found = completed(&mut session, line);
        let has = |name: &&&str| found.iter().any(|f| f == **name);
        let lacking: Vec<_> = some.iter().filter(|n| !has(n)).collect();
        assert!(
            lacking.is_empty(),
            "{line}: {lacking:?} are not in {found:?}"
        );
        let wrong: Vec<_> = none.iter().filter(|n| has(n)).collect();
        assert!(wrong.is_empty(), "{line}: {wrong:?}");
    };
    check(
        "hdr.ethernet.",
        &["dst", "src", "type", "isValid"],
        &["hdr"],
    );
    check("hdr.ethernet.d", &["dst"], &["hdr"]);
    check("std.egress_spec = me", &["meta", "IPV4", "hdr"], &["dst"]);
    check("t.", &["apply"], &["hdr"]);
    check("if (t.apply().", &["hit", "miss"], &["hdr"]);
    check("bit<8> x = (bit<8>) Kind.", &["ONE", "TWO"], &["hdr"]);
    check("for", &["forward", "t", "hdr"], &["dst"]);
    let text = PROGRAM.replace("{ forward;", "{ fo");
    session.set(Path::new(MAIN), Text::new(text));
    let mut position = at(&session, MAIN, "{ fo NoAction", "fo");
    position.character += 2;
    let found = lsp::complete(&mut session, Path::new(MAIN), position);
    let names: Vec<&str> = found.iter().map(|item| &*item.label).collect();
    assert!(
        names.contains(&"forward") && !names.contains(&"hdr"),
        "{names:?}"
    );
}

#[test]
fn outline_has_what_the_file_declares() {
    let mut session = session();
    let snapshot = session.snapshot(Path::new(MAIN)).expect("a program");
    let names = |path: &str| -> Vec<String> {
        let found = lsp::outline(snapshot, Path::new(path));
        found.into_iter().map(|s| s.name).collect()
    };
    assert_eq!(
        names(MAIN),
        ["IPV4", "Kind", "P", "V", "I", "E", "C", "D", "main"]
    );
    assert_eq!(
        names(INCLUDED),
        ["mac_t", "ethernet_t", "headers_t", "meta_t"]
    );
    let found = lsp::outline(snapshot, Path::new(MAIN));
    let control = found
        .iter()
        .find(|s| s.name == "I")
        .and_then(|s| s.children.clone());
    let inside: Vec<String> = control
        .unwrap_or_default()
        .into_iter()
        .map(|s| s.name)
        .collect();
    assert_eq!(inside, ["forward", "t"]);
}

/// A generator of numbers that are as good as random for a test (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

#[test]
fn random_edits_never_fail() {
    let words = [
        "{",
        "}",
        "(",
        ")",
        ";",
        ".",
        "hdr",
        "\"",
        "/*",
        "#if X\n",
        "#endif\n",
        "<",
        "é",
        "\u{1d11e}",
        "",
    ];
    let mut numbers = Numbers(0x5eed);
    let mut session = session();
    for _ in 0..150 {
        let path = Path::new(if numbers.below(4) == 0 {
            INCLUDED
        } else {
            MAIN
        });
        let text = session.document(path).expect("a document").clone();
        let mut point = || Position::new(numbers.below(20) as u32, numbers.below(90) as u32);
        let (start, asked) = (point(), point());
        let end = Position::new(start.line, start.character + numbers.below(6) as u32);
        let word = words[numbers.below(words.len())];
        session.set(
            path,
            text.edited(Range::new(start, end), word, Encoding::Utf16),
        );
        let snapshot = session.snapshot(path).expect("a program");
        let _ = lsp::outline(snapshot, path);
        let _ = lsp::hover(snapshot, path, asked);
        let _ = lsp::definition(snapshot, path, asked);
        let _ = lsp::references(snapshot, path, asked, true);
        let _ = lsp::rename(&mut session, path, asked, "other");
        let _ = lsp::complete(&mut session, path, asked);
        if numbers.below(30) == 0 {
            session.set(Path::new(MAIN), Text::new(PROGRAM));
            session.set(Path::new(INCLUDED), Text::new(HEADERS));
        }
    }
}
