//! Programs for the preprocessor: macros that use each other, conditions, includes, and lines joined anywhere.
//!
//! Most of them are without a mistake: each name has one number of parameters, and brackets have partners. Two things are left out in
//! which `cpp` differs because its tokens are C's: numbers with a point or a sign in them, and characters.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// File names and texts, the main file first.
pub type Files = Vec<(String, String)>;

/// Names of macros with their parameters.
const OBJECTS: &[&str] = &["A", "B", "C", "D"];
const FUNCTIONS: &[(&str, usize, &str)] = &[
    ("F", 1, "(x)"),
    ("G", 2, "(x, y)"),
    ("H", 0, "()"),
    ("V", 2, "(x, ...)"),
    ("W", 2, "(x, y...)"),
];
const TOKENS: &[&str] = &[
    "name",
    "apply",
    "x",
    "y",
    "0",
    "42",
    "8w255",
    "0x1F",
    "\"s\"",
    "\"a b\"",
    "\"q\\\"t\"",
    "+",
    "-",
    "<",
    ">",
    ">>",
    "&",
    "&&&",
    "|+|",
    "==",
    ";",
    "[",
    "{",
    "@",
    "..",
    ":",
    "__LINE__",
    "__FILE__",
    "__COUNTER__",
    "__INCLUDE_LEVEL__",
];

fn lexeme() -> BoxedStrategy<String> {
    prop_oneof![
        6 => select(TOKENS).prop_map(str::to_string),
        3 => select(OBJECTS).prop_map(str::to_string),
        1 => select(FUNCTIONS).prop_map(|(name, ..)| name.to_string()),
    ]
    .boxed()
}

fn gap() -> BoxedStrategy<&'static str> {
    prop_oneof![8 => Just(" "), 1 => Just("  "), 1 => Just("\t"), 1 => Just(" /* c \" ' */ ")]
        .boxed()
}

/// Generates `count` words with blanks between them; some symbols stand without blanks.
fn joined(part: BoxedStrategy<String>, count: std::ops::Range<usize>) -> BoxedStrategy<String> {
    let words = vec((part, gap(), any::<bool>()), count);
    words
        .prop_map(|parts| {
            let mut text = String::new();
            for (word, gap, tight) in parts {
                let symbol = |c: Option<char>| c.is_some_and(|c| "+-&|=;[{@:,()".contains(c));
                let close = tight && (symbol(word.chars().next()) || symbol(text.chars().last()));
                if !close || text.ends_with(['|', '&', '+', '-']) {
                    text += gap;
                }
                text += &word;
            }
            text
        })
        .boxed()
}

/// Generates a sequence of tokens and of macro uses, whose arguments are such sequences too.
fn sequence(newlines: bool) -> BoxedStrategy<String> {
    let leaf = prop_oneof![9 => lexeme(), 1 => Just(",".to_string())].boxed();
    leaf.prop_recursive(3, 20, 4, move |inner| {
        let args = vec(joined(inner.boxed(), 0..4), 2);
        let breaks = vec(any::<Index>(), 4);
        (select(FUNCTIONS), args, breaks, any::<bool>())
            .prop_map(move |((name, count, params), args, breaks, extra)| {
                let mut call = format!("{name}(");
                for (i, arg) in args.iter().take(count).enumerate() {
                    // A comma of its own would be another argument.
                    let arg = arg.replace(',', ";");
                    call += &format!("{}{arg}", if i > 0 { "," } else { "" });
                }
                if extra && params.contains("...") {
                    call += ", 3";
                }
                call += ")";
                let at = call.match_indices('(').nth(breaks[1].index(3));
                match at.filter(|_| newlines && breaks[0].index(3) == 0) {
                    Some((at, _)) => format!("{}\n{}", &call[..=at], &call[at + 1..]),
                    None => call,
                }
            })
            .boxed()
    })
    .boxed()
}

/// Generates the body of a macro; with `function`, of one that has the parameters `x` and `y`.
fn body(function: bool) -> BoxedStrategy<String> {
    let paste = (lexeme(), gap(), lexeme()).prop_map(|(a, gap, b)| format!("{a}{gap}##{gap}{b}"));
    let param = select(&["x", "y"][..]).prop_map(str::to_string);
    let quoted = select(&["#x", "# x", "x##x", "x ## 1", "n##x", "x##y", "n ## x ## y"][..]);
    let part = match function {
        true => prop_oneof![
            4 => sequence(false),
            3 => param,
            2 => quoted.prop_map(str::to_string),
            1 => paste,
        ]
        .boxed(),
        false => prop_oneof![6 => sequence(false), 1 => paste].boxed(),
    };
    joined(part, 0..5)
}

fn define() -> BoxedStrategy<String> {
    let object =
        (select(OBJECTS), body(false)).prop_map(|(name, body)| format!("#define {name} {body}\n"));
    let function = (select(FUNCTIONS), body(true)).prop_map(|((name, count, params), body)| {
        let text = |from: &str, to: &str| body.replace(from, to);
        let body = match (name, count) {
            ("H", _) => text("#", " "),
            ("F", _) => text("#y", "#x"),
            ("V", _) => text("y", "__VA_ARGS__").replace("appl__VA_ARGS__", "apply"),
            _ => body,
        };
        format!("# define {name}{params} {body}\n")
    });
    prop_oneof![object, function].boxed()
}

fn item() -> BoxedStrategy<String> {
    let text = joined(sequence(true), 1..8).prop_map(|line| format!("t {line}\n"));
    let leaf = prop_oneof![
        8 => define(),
        8 => text,
        1 => select(OBJECTS).prop_map(|name| format!("#undef {name}\n")),
        1 => select(FUNCTIONS).prop_map(|(name, ..)| format!("#undef {name}\n")),
        1 => (1u32..1000).prop_map(|line| format!("#line {line}\n")),
        1 => (1u32..1000).prop_map(|line| format!("#line {line} \"l.p4\"\n")),
        1 => select(&["#\n", "#bogus A\n", "// c \" ' /*\n", "/* c\n A */ t\n", "\n", "t F\n(1)\n", "t F(1\n#undef A\n,,)\n"][..])
            .prop_map(|line| line.replace(",,", "")),
        1 => select(&["5\" long", "it's /* open", "don't", "#if 2"][..]).prop_map(|text| {
            let close = if text.starts_with("#if") { "#endif\n" } else { "" };
            format!("#if 0\n{text}\n{close}#endif\nt \"s\"\n")
        }),
    ]
    .boxed();
    leaf.prop_recursive(3, 24, 4, |inner| {
        let group = || vec(inner.clone(), 0..3).prop_map(|items| items.concat());
        let test = prop_oneof![
            select(OBJECTS).prop_map(|name| format!("ifdef {name}")),
            select(OBJECTS).prop_map(|name| format!("ifndef {name}")),
            select(OBJECTS).prop_map(|name| format!("if defined({name}) || defined F")),
            any::<bool>().prop_map(|holds| format!("if {}", u8::from(holds))),
        ];
        (
            test,
            group(),
            group(),
            any::<bool>(),
            group(),
            any::<bool>(),
        )
            .prop_map(|(test, first, second, elif, third, other)| {
                let elif = if elif {
                    format!("#elif defined B\n{second}")
                } else {
                    String::new()
                };
                let other = if other {
                    format!("# else\n{third}")
                } else {
                    String::new()
                };
                format!("#{test}\n{first}{elif}{other}#endif\n")
            })
            .boxed()
    })
    .boxed()
}

/// Generates places at which lines are to be joined, each with the text that joins them, a backslash and a line end.
pub fn splices() -> BoxedStrategy<Vec<(Index, &'static str)>> {
    vec(
        (
            any::<Index>(),
            select(&["\\\n", "\\ \n", "\\\t \n", "\\\r\n"][..]),
        ),
        0..12,
    )
    .boxed()
}

/// Returns `text` with the line joins `splices` inserted.
pub fn spliced(text: &str, splices: &[(Index, &str)]) -> String {
    let mut places: Vec<(usize, &str)> = splices
        .iter()
        .map(|(place, splice)| (place.index(text.len() + 1), *splice))
        .filter(|(at, _)| text.is_char_boundary(*at) && !text[..*at].ends_with('\r'))
        .collect();
    places.sort_unstable();
    places.dedup_by_key(|(at, _)| *at);
    let mut text = text.to_string();
    for (at, splice) in places.into_iter().rev() {
        text.insert_str(at, splice);
    }
    text
}

/// Generates a program: a main file and files that it may include.
pub fn whole_program() -> BoxedStrategy<Files> {
    let file = |count| vec(item(), count).prop_map(|items| items.concat());
    let includes = select(
        &[
            "",
            "#include \"a.p4\"\n",
            "#include <b.p4>\n",
            "#define I \"a.p4\"\n#include I\n",
        ][..],
    );
    let files = (
        file(1..9),
        includes,
        file(0..4),
        file(0..4),
        file(0..4),
        any::<bool>(),
    );
    files
        .prop_map(|(first, include, second, a, b, dos)| {
            let main = format!("{first}{include}{second}");
            let main = if dos {
                main.replace('\n', "\r\n")
            } else {
                main
            };
            vec![
                ("main.p4".to_string(), main),
                ("a.p4".to_string(), a),
                ("b.p4".to_string(), b),
            ]
        })
        .boxed()
}

/// Generates a program as [`whole_program`] does, with continued lines in its main file.
pub fn program() -> BoxedStrategy<Files> {
    let splice = |(mut files, splices): (Files, Vec<(Index, &str)>)| {
        files[0].1 = spliced(&files[0].1, &splices);
        files
    };
    (whole_program(), splices()).prop_map(splice).boxed()
}

// -- Conditions -----------------------------------------------------------------------------------------------------------

/// The macros that conditions use.
pub const CONDITION_MACROS: &str = "#define ONE 1\n#define BIG 0xFFFFFFFFFFFFFFFF\n#define MINUS -3\n#define ADD(a, b) ((a) + (b))\n\
    #define HAS_ONE defined(ONE)\n#define HAS(x) defined x\n#define EMPTY\n";

/// Generates a correct expression for `#if`.
pub fn condition() -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        select(
            &[
                "0",
                "1",
                "2",
                "3u",
                "63",
                "64",
                "65",
                "010",
                "0x10",
                "0b101",
                "7UL",
                "5ll",
                "0xFFFFFFFF",
                "0x7FFFFFFFFFFFFFFF",
                "0x8000000000000000",
                "18446744073709551615",
                "'a'",
                "'\\n'",
                "'\\377'",
                "'\\x80'",
                "ONE",
                "BIG",
                "MINUS",
                "UNKNOWN",
                "apply",
                "true",
                "defined ONE",
                "defined(TWO)",
                "defined EMPTY",
                "HAS_ONE",
                "HAS(TWO)",
                "__LINE__",
                "__INCLUDE_LEVEL__",
                "__STDC__",
                "__ASSEMBLER__",
                "defined __FILE__",
                "__has_include(\"main.p4\")",
                "__has_include(<none.p4>)",
            ][..]
        )
        .prop_map(str::to_string),
        any::<u32>().prop_map(|n| n.to_string()),
    ]
    .boxed();
    leaf.prop_recursive(5, 40, 3, |inner| {
        let binary = select(
            &["+", "-", "*", "<<", ">>", "<", ">", "<=", ">=", "==", "!=", "&", "|", "^", "&&", "||"][..],
        );
        prop_oneof![
            6 => (inner.clone(), binary, inner.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
            2 => (select(&["-", "+", "~", "!"][..]), inner.clone()).prop_map(|(op, a)| format!("{op} {a}")),
            // A divisor that is not zero.
            2 => (inner.clone(), select(&["/", "%"][..]), inner.clone()).prop_map(|(a, op, b)| format!("({a}) {op} (({b}) | 1)")),
            2 => (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}, {b})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("ADD({a}, ({b}))").replace(", {", "{")),
            2 => inner.clone().prop_map(|a| format!("({a})")),
            1 => inner.prop_map(|a| format!("(0 && 1 / 0 || {a})")),
        ]
        .boxed()
    })
    .boxed()
}
