//! Every pair of kinds of types, cast and assigned, against the lists of the specification (sections "Explicit casts" and
//! "Implicit casts").
//!
//! `HOLDFAST_P4C=COMMAND` also asks the reference compiler, whose differences must be those of `reference`.
#![expect(
    clippy::disallowed_macros,
    reason = "a test says what it skips and has found"
)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use compile::{Options, compile_text};

/// A type as the specification sees it, after typedefs.
#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Bool,
    Bit(u32),
    Signed(u32),
    /// `int`; of a value, whether it is 0 or 1.
    Int(bool),
    Varbit,
    Error,
    Enum,
    /// A serializable enum or a type made by `type`, with its name and what it is made of.
    Serializable(&'static str, Box<Kind>),
    New(&'static str, Box<Kind>),
    Header(&'static str),
    Struct,
    Union,
    Stack,
    Tuple,
    /// `{ 8w1 }`, `{ H, H }`, `{ x = 8w1 }` and `{#}`.
    List,
    ListOfHeaders,
    Record,
    Invalid,
}

/// A type with its name in P4 (empty for one that only expressions have) and a constant (empty for none).
struct Case {
    name: &'static str,
    constant: &'static str,
    kind: Kind,
}

const DECLARATIONS: &str = "
error { Oops }
enum Plain { a, b }
enum bit<1> E1 { a = 1 }
enum bit<8> E8 { a = 1, b = 2 }
enum bit<8> F8 { a = 2 }
enum bit<16> E16 { a = 1 }
enum int<8> ES8 { a = -1 }
header h_t { bit<8> x; }
header g_t { bit<8> x; }
header_union u_t { h_t h; g_t g; }
struct S { bit<8> x; }
type bool NB;
type bit<1> N1;
type bit<8> N8;
type bit<8> M8;
type int<8> NS8;
type NB NNB;
type N8 NN8;
typedef bool TB;
typedef bit<8> T8;
typedef E8 TE8;
typedef N8 TN8;
typedef h_t Th;
const h_t H = { 1 };
const S S1 = { 1 };
const tuple<bit<8>> T1 = { 1 };
";

fn cases() -> Vec<Case> {
    let serializable = |name, of| Kind::Serializable(name, Box::new(of));
    let new = |name, of| Kind::New(name, Box::new(of));
    let n8 = || new("N8", Kind::Bit(8));
    let nb = || new("NB", Kind::Bool);
    let e8 = || serializable("E8", Kind::Bit(8));
    let rows = vec![
        ("bool", "true", Kind::Bool),
        ("bit<1>", "1w1", Kind::Bit(1)),
        ("bit<8>", "8w1", Kind::Bit(8)),
        ("bit<16>", "16w300", Kind::Bit(16)),
        ("int<1>", "1s1", Kind::Signed(1)),
        ("int<8>", "-8s1", Kind::Signed(8)),
        ("int<16>", "-16s300", Kind::Signed(16)),
        ("int", "1", Kind::Int(true)),
        ("", "5", Kind::Int(false)),
        ("", "-1", Kind::Int(false)),
        ("varbit<8>", "", Kind::Varbit),
        ("error", "error.Oops", Kind::Error),
        ("Plain", "Plain.a", Kind::Enum),
        ("E1", "E1.a", serializable("E1", Kind::Bit(1))),
        ("E8", "E8.a", e8()),
        ("F8", "F8.a", serializable("F8", Kind::Bit(8))),
        ("E16", "E16.a", serializable("E16", Kind::Bit(16))),
        ("ES8", "ES8.a", serializable("ES8", Kind::Signed(8))),
        ("h_t", "H", Kind::Header("h_t")),
        ("g_t", "", Kind::Header("g_t")),
        ("u_t", "", Kind::Union),
        ("h_t[2]", "", Kind::Stack),
        ("S", "S1", Kind::Struct),
        ("tuple<bit<8>>", "T1", Kind::Tuple),
        ("NB", "(NB) true", nb()),
        ("N1", "(N1) 1w1", new("N1", Kind::Bit(1))),
        ("N8", "(N8) 8w1", n8()),
        ("M8", "(M8) 8w1", new("M8", Kind::Bit(8))),
        ("NS8", "(NS8) 8s1", new("NS8", Kind::Signed(8))),
        ("NNB", "(NNB) (NB) true", new("NNB", nb())),
        ("NN8", "(NN8) (N8) 8w1", new("NN8", n8())),
        ("TB", "true", Kind::Bool),
        ("T8", "8w1", Kind::Bit(8)),
        ("TE8", "E8.a", e8()),
        ("TN8", "(TN8) 8w1", n8()),
        ("Th", "", Kind::Header("h_t")),
        ("", "{ 8w1 }", Kind::List),
        ("", "{ H, H }", Kind::ListOfHeaders),
        ("", "{ x = 8w1 }", Kind::Record),
        ("", "{#}", Kind::Invalid),
    ];
    let case = |(name, constant, kind)| Case {
        name,
        constant,
        kind,
    };
    rows.into_iter().map(case).collect()
}

/// Returns whether a value of one type may stand where the other is wanted.
fn implicit(from: &Kind, to: &Kind) -> bool {
    match (from, to) {
        (Kind::Int(_), Kind::Int(_) | Kind::Bit(_) | Kind::Signed(_)) => true,
        (Kind::Serializable(_, of), to) if **of == *to => true,
        (Kind::List, Kind::Struct | Kind::Header(_) | Kind::Tuple) => true,
        (Kind::ListOfHeaders, Kind::Stack) => true,
        (Kind::Record, Kind::Struct | Kind::Header(_)) => true,
        (Kind::Invalid, Kind::Header(_) | Kind::Union) => true,
        _ => from == to,
    }
}

/// Returns whether the list of explicit casts has one between these types.
fn listed(from: &Kind, to: &Kind) -> bool {
    match (from, to) {
        (Kind::Bit(1), Kind::Bool) | (Kind::Bool, Kind::Bit(1)) => true,
        (Kind::Int(zero_or_one), Kind::Bool) => *zero_or_one,
        (Kind::Signed(x), Kind::Bit(y)) | (Kind::Bit(x), Kind::Signed(y)) => x == y,
        (Kind::Bit(_), Kind::Bit(_)) | (Kind::Signed(_), Kind::Signed(_)) => true,
        (Kind::Bit(_) | Kind::Signed(_), Kind::Int(_)) => true,
        (Kind::Int(_), Kind::Bit(_) | Kind::Signed(_) | Kind::Int(_)) => true,
        (Kind::New(_, of) | Kind::Serializable(_, of), to) if **of == *to => true,
        (from, Kind::New(_, of) | Kind::Serializable(_, of)) if **of == *from => true,
        // "Casts where the destination type is the same as the source type if [it] appears in this list".
        (Kind::Varbit | Kind::Error | Kind::Enum, _) => false,
        (_, Kind::Tuple) => false,
        // Not in the list, but what may be assigned to a type may be written with it.
        (Kind::List | Kind::ListOfHeaders | Kind::Record | Kind::Invalid, to) => implicit(from, to),
        _ => from == to,
    }
}

/// Returns whether a cast is in the list, or is after an implicit cast: `(U32) 0` stands in "Introducing new types", and
/// `(E1) b` for a `b` of another enum in "Enumeration types", where "b is automatically casted to bit<8>".
fn explicit(from: &Kind, to: &Kind) -> bool {
    listed(from, to)
        || match (from, to) {
            (Kind::Int(_), Kind::New(_, of) | Kind::Serializable(_, of)) => implicit(from, of),
            (Kind::Serializable(_, of), to) => listed(of, to),
            _ => false,
        }
}

/// One way to convert a value of one type to another: written as a cast or not, of a constant or of a variable.
struct Way<'a> {
    from: &'a Kind,
    to: &'a Kind,
    cast: bool,
    constant: bool,
}

impl Way<'_> {
    /// Returns whether the specification has it. A constant alone may become an `int`.
    fn is_legal(&self) -> bool {
        let known = self.constant || !matches!(self.to, Kind::Int(_));
        known
            && match self.cast {
                true => explicit(self.from, self.to),
                false => implicit(self.from, self.to),
            }
    }

    /// Returns whether this compiler must accept it: what is legal, and of constants what other people's programs
    /// write and the reference compiler takes.
    fn is_accepted(&self) -> bool {
        let beyond = match (self.from, self.to) {
            (Kind::Int(_), Kind::New(_, of)) => matches!(**of, Kind::Bit(_) | Kind::Signed(_)),
            (Kind::Bit(_) | Kind::Signed(_), Kind::Int(_)) => true,
            // "A tuple may be used to initialize a structure": of the reference compiler, where it is written there.
            (Kind::Tuple, Kind::Struct | Kind::Header(_)) => true,
            _ => false,
        };
        self.is_legal() || (beyond && self.constant)
    }

    /// Returns whether the reference compiler accepts it. Where it differs from the specification:
    fn reference(&self) -> bool {
        match (self.from, self.to) {
            // It computes constants before it checks types: `(int<8>) 16w1`, "cannot change both sign and width".
            (Kind::Bit(_) | Kind::Signed(_), Kind::Bit(_) | Kind::Signed(_))
                if self.cast && self.constant =>
            {
                true
            }
            (Kind::Bit(_) | Kind::Signed(_), Kind::Int(_)) => self.constant,
            (Kind::New(_, of), Kind::Int(_)) => {
                let bits = matches!(**of, Kind::Bit(_) | Kind::Signed(_));
                bits && self.constant && !self.cast
            }
            (Kind::Int(_), Kind::New(_, of)) => matches!(**of, Kind::Bit(_) | Kind::Signed(_)),
            // It casts implicitly before a cast to another enum, but not before others.
            (Kind::Serializable(..), Kind::Int(_)) => self.constant && !self.cast,
            (Kind::Serializable(_, of), to) if self.cast && self.from != to => match to {
                Kind::Serializable(_, other) => of == other,
                to => **of == *to,
            },
            // "Casts to array not supported", but a stack is in the list.
            (Kind::Stack, Kind::Stack) => !self.cast,
            _ => self.is_legal(),
        }
    }
}

/// A way with the statement that tries it.
struct Trial {
    statement: String,
    accepted: bool,
    reference: bool,
}

/// Returns the trials of all pairs, of constants and (where there are such) of variables.
fn trials() -> Vec<Trial> {
    let cases = cases();
    let mut trials = Vec::new();
    for (i, from) in cases.iter().enumerate() {
        let is_int = matches!(from.kind, Kind::Int(_));
        let constant = (!from.constant.is_empty()).then(|| (from.constant.to_owned(), true));
        let variable = (!from.name.is_empty() && !is_int).then(|| (format!("v{i}"), false));
        for to in cases.iter().filter(|c| !c.name.is_empty()) {
            let to_int = matches!(to.kind, Kind::Int(_));
            let word = if to_int { "const " } else { "" };
            for ((value, constant), cast) in [&constant, &variable]
                .into_iter()
                .flatten()
                .flat_map(|value| [(value, true), (value, false)])
            {
                let way = Way {
                    from: &from.kind,
                    to: &to.kind,
                    cast,
                    constant: *constant,
                };
                let name = to.name;
                let statement = match cast {
                    true => format!("{{ {word}{name} t = ({name}) ({value}); }}"),
                    false => format!("{{ {word}{name} t = {value}; }}"),
                };
                trials.push(Trial {
                    statement,
                    accepted: way.is_accepted(),
                    reference: way.reference(),
                });
            }
        }
    }
    trials
}

/// Returns a program with these statements, each on a line, and the number of lines before them.
fn program<'a>(statements: impl IntoIterator<Item = &'a str>) -> (String, usize) {
    let mut text = format!("#include <core.p4>\n#include <v1model.p4>\n{DECLARATIONS}");
    text += "struct headers_t { h_t h; }\nstruct meta_t { }\n";
    text +=
        "parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {\n";
    text += "state start { transition accept; } }\n";
    text += "control C(inout headers_t h, inout meta_t m) { apply { } }\n";
    text +=
        "control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }\n";
    text += "control D(packet_out p, in headers_t h) { apply { } }\n";
    text += "control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {\n";
    for (i, case) in cases().iter().enumerate() {
        if !case.name.is_empty() && !matches!(case.kind, Kind::Int(_)) {
            writeln!(text, "{} v{i};", case.name).expect("a string");
        }
    }
    text += "apply {\n";
    let before = text.lines().count();
    for statement in statements {
        text += statement;
        text += "\n";
    }
    text += "} }\nV1Switch(P(), C(), I(), E(), C(), D()) main;\n";
    (text, before)
}

/// Returns the statements that are taken where they must not be, and the other way round.
fn differences<'a>(trials: impl IntoIterator<Item = (&'a Trial, bool, bool)>) -> String {
    let mut text = String::new();
    for (trial, wanted, found) in trials {
        if wanted != found {
            let word = if found { "accepted" } else { "refused" };
            writeln!(text, "{word}: {}", trial.statement).expect("a string");
        }
    }
    text
}

#[test]
fn each_pair_of_types_converts_as_the_specification_lists() {
    let trials = trials();
    assert!(trials.len() > 3000, "only {} trials", trials.len());
    let accepted = trials.iter().filter(|t| t.accepted).count();
    assert!(accepted > 300, "only {accepted} accepted");
    let outcomes = trials.iter().map(|trial| {
        let (text, _) = program([trial.statement.as_str()]);
        let outcome = compile_text(&text, "casts.p4", &Options::default());
        let internal = outcome.diagnostics.iter().any(|d| d.code == "E1199");
        assert!(!internal, "{}", trial.statement);
        (trial, trial.accepted, outcome.compiled.is_some())
    });
    let differences = differences(outcomes);
    println!("{} trials, {accepted} accepted", trials.len());
    assert!(differences.is_empty(), "{differences}");
}

/// Returns the statements that the reference compiler accepts. It stops after the pass that finds an error, so that it is
/// asked again without the statements that it has named.
fn accepted_by(command: &Path, statements: &[String]) -> BTreeSet<String> {
    let folder = std::env::temp_dir().join(format!("holdfast-casts-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (file, made) = (folder.join("casts.p4"), folder.join("casts.json"));
    let mut left: Vec<&str> = statements.iter().map(String::as_str).collect();
    loop {
        let (text, before) = program(left.iter().copied());
        std::fs::write(&file, text).expect("a written file");
        let outcome = Command::new(command)
            .args(["--maxErrorCount", "100000", "--Wdisable", "-I"])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4include"))
            .arg(&file)
            .arg("-o")
            .arg(&made)
            .output()
            .expect("the reference compiler");
        let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
        let named: BTreeSet<usize> = said
            .lines()
            .filter(|l| l.contains("error:") && l.contains("--Werror"))
            .filter_map(|l| l.split_once("casts.p4(")?.1.split(')').next()?.parse().ok())
            .filter_map(|line: usize| line.checked_sub(before + 1))
            .collect();
        if outcome.status.success() {
            break;
        }
        let count = left.len();
        let mut numbered = 0..;
        left.retain(|_| !named.contains(&numbered.next().expect("a number")));
        assert!(left.len() < count, "{said}");
    }
    std::fs::remove_dir_all(&folder).expect("a removed folder");
    left.into_iter().map(str::to_owned).collect()
}

#[test]
fn the_reference_compiler_differs_where_it_is_known_to() {
    let Some(command) = std::env::var_os("HOLDFAST_P4C") else {
        println!("skipped: HOLDFAST_P4C does not name the reference compiler");
        return;
    };
    let trials = trials();
    let statements: Vec<String> = trials.iter().map(|t| t.statement.clone()).collect();
    let accepted = accepted_by(Path::new(&command), &statements);
    let outcomes = trials
        .iter()
        .map(|t| (t, t.reference, accepted.contains(&t.statement)));
    let differences = differences(outcomes);
    assert!(differences.is_empty(), "{differences}");
}

/// "The compiler should emit a warning on overflow": of an `int`, cast or not, but not of a value whose width a cast cuts.
#[test]
fn an_integer_without_a_width_that_does_not_fit_gives_a_warning() {
    for (statement, warned) in [
        ("bit<8> t = (bit<8>) 255;", false),
        ("bit<8> t = (bit<8>) 256;", true),
        ("bit<8> t = 256;", true),
        ("bit<8> t = (bit<8>) -1;", true),
        ("int<8> t = (int<8>) 127;", false),
        ("int<8> t = (int<8>) 128;", true),
        ("int<8> t = (int<8>) -128;", false),
        ("int<8> t = (int<8>) -129;", true),
        ("N8 t = (N8) 256;", true),
        ("NS8 t = (NS8) 127;", false),
        ("NS8 t = (NS8) 128;", true),
        ("E8 t = (E8) 256;", true),
        ("bit<8> t = (bit<8>) 16w256;", false),
        ("bit<8> t = (bit<8>) -8s1;", false),
        ("int<8> t = (int<8>) 8w255;", false),
        ("bit<16> t = (bit<16>) ((int) 8w255 + 1);", false),
        ("bit<8> t = (bit<8>) ((int) 8w255 + 1);", true),
    ] {
        let (text, _) = program([statement]);
        let outcome = compile_text(&text, "casts.p4", &Options::default());
        assert!(outcome.compiled.is_some(), "{}", outcome.render());
        let found = outcome.diagnostics.iter().any(|d| d.code == "W1041");
        assert_eq!(found, warned, "{statement}");
    }
}
