//! Programs with syntax errors: their other mistakes are reported, and nothing that is none.

mod programs;

use std::path::Path;

use compile::{Options, compile_text};
use programs::programs;
use syntax::diagnostics::Diagnostic;

/// Numbers that only depend on where they start (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

/// Finds the start and end of each token of a program, roughly: words, numbers, strings and single symbols,
/// without comments and directives.
fn tokens(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut i = 0;
    let until = |from: usize, end: &str| {
        text[from..]
            .find(end)
            .map_or(text.len(), |n| from + n + end.len())
    };
    while i < bytes.len() {
        let rest = &text[i..];
        let start = i;
        if rest.starts_with("//") || rest.starts_with('#') {
            i = until(i, "\n");
        } else if rest.starts_with("/*") {
            i = until(i + 2, "*/");
        } else if bytes[i].is_ascii_whitespace() || !bytes[i].is_ascii() {
            i += 1;
        } else {
            let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
            i = match bytes[i] {
                b'"' => until(i + 1, "\""),
                b if word(&b) => start + bytes[i..].iter().take_while(|b| word(b)).count(),
                _ => i + 1,
            };
            tokens.push((start, i));
        }
    }
    tokens
}

/// What a slip of the hand puts into a program.
const SLIPS: &[&str] = &[
    ";", "}", "{", "(", ")", "=", ",", ".", ":", "<", "\"", "@", "$", "7", "bit", "if", "header",
    "state", "apply", "table", "/*",
];

/// Returns a program with one mistake: a random token is removed, inserted or replaced.
fn slip(text: &str, random: &mut Random) -> String {
    let tokens = tokens(text);
    let (start, end) = tokens[random.below(tokens.len())];
    match random.below(3) {
        0 => format!("{} {}", &text[..start], &text[end..]),
        1 => format!(
            "{} {} {}",
            &text[..start],
            random.pick(SLIPS),
            &text[start..]
        ),
        _ => format!("{} {} {}", &text[..start], random.pick(SLIPS), &text[end..]),
    }
}

fn is_syntax(diagnostic: &&Diagnostic) -> bool {
    diagnostic.code.as_bytes()[1] == b'0'
}

/// Compiles `text`. Returns the errors that are no syntax errors, and all diagnostics as text; `None` if
/// there is no syntax error.
fn errors_beside_syntax(text: &str, path: &Path) -> Option<(Vec<Diagnostic>, String)> {
    let options = Options {
        include_dirs: vec![path.parent().expect("a folder").to_path_buf()],
        ..Options::default()
    };
    let outcome = compile_text(text, "damaged.p4", &options);
    let errors = outcome.diagnostics.iter().filter(|d| d.is_error());
    let (syntax, others): (Vec<_>, Vec<_>) = errors.partition(is_syntax);
    let rendered = outcome.render();
    (!syntax.is_empty()).then(|| (others.into_iter().cloned().collect(), rendered))
}

/// Returns the number of mistakes to try in each program: the environment variable `HOLDFAST_SLIPS`, or 6.
fn rounds() -> usize {
    std::env::var("HOLDFAST_SLIPS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(6)
}

/// A correct program with one slip has no mistake but that.
#[test]
fn a_slip_gives_no_error_but_its_own() {
    let mut random = Random(29);
    let (mut broken, mut wrong) = (0, Vec::new());
    for path in programs("tests/p4/run") {
        let text = std::fs::read_to_string(&path).expect("a program");
        for _ in 0..rounds() {
            let damaged = slip(&text, &mut random);
            let Some((others, rendered)) = errors_beside_syntax(&damaged, &path) else {
                continue;
            };
            broken += 1;
            if !others.is_empty() {
                wrong.push(format!("{}\n{rendered}", path.display()));
            }
        }
    }
    assert!(broken > 500, "only {broken} programs have a syntax error");
    let shown: Vec<_> = wrong.iter().take(40).map(String::as_str).collect();
    assert!(
        wrong.is_empty(),
        "{} of {broken}:\n{}",
        wrong.len(),
        shown.join("\n======\n")
    );
}

/// A program with numbered places for mistakes: those of types are `T`, those of the syntax `S`.
const PROGRAM: &str = include_str!("damaged.p4");

/// The mistakes of types, each with its code and a word of its message.
const TYPE_ERRORS: &[(&str, &str, &str, &str)] = &[
    ("/*T1*/", "const bit<8> t1 = 8w1 + true;", "E1023", "bool"),
    (
        "/*T2*/",
        "m.kind = p.lookahead<bit<16>>();",
        "E1020",
        "bit<16>",
    ),
    ("/*T3*/", "hdr.h.a = hdr.h.nope;", "E1007", "nope"),
    ("/*T4*/", "undefined_name = 1;", "E1001", "undefined_name"),
    ("/*T5*/", "t4.absent();", "E1005", "t4"),
    ("/*T6*/", "m.kind = helper(8w1, 8w2);", "E1070", "helper"),
    ("/*T7*/", "p.emit(hdr.none);", "E1007", "none"),
];

/// The mistakes of the syntax: where, the text to replace, and what with.
const SYNTAX_ERRORS: &[(&str, &str)] = &[
    // A header's declaration.
    ("header other_t { bit<8> x;", "header other_t { bit<8> ;"),
    ("header other_t {", "header other_t "),
    ("header other_t {", "headr other_t {"),
    // A parser's state.
    (
        "state next_one { transition accept; }",
        "state next_one { transition ; }",
    ),
    ("state next_one {", "state next_one "),
    ("p.extract(hdr.h);", "p.extract(hdr.h;"),
    // A table.
    ("key = { hdr.h.a : exact; }", "key = { hdr.h.a exact; }"),
    (
        "actions = { set; NoAction; }",
        "actions = { set NoAction; }",
    ),
    ("size = 16;", "size = ;"),
    ("size = 16;", "size 16;"),
    // Statements and expressions.
    ("hdr.h.b = 8w3;", "hdr.h.b = ;"),
    ("hdr.h.b = 8w3;", "hdr.h.b = 8w3 +;"),
    ("hdr.h.b = 8w3;", "hdr.h.b = 8w3"),
    ("hdr.h.b = 8w3;", "hdr.h.b = (8w3;"),
    ("hdr.h.b = 8w3;", "hdr.h.b 8w3;"),
    ("if (hdr.h.isValid()) {", "if (hdr.h.isValid() {"),
    // Braces, a string and a comment.
    ("/*brace*/ }", ""),
    ("/*brace*/ }", "} }"),
    ("@name(\"other\")", "@name(\"other)"),
    ("/*end*/", "/* end"),
];

fn both(program: &str, types: &[(&str, &str, &str, &str)], syntax: (&str, &str)) {
    let mut text = program.to_string();
    for (place, mistake, ..) in types {
        text = text.replacen(place, mistake, 1);
    }
    assert!(text.contains(syntax.0), "{}", syntax.0);
    let text = text.replacen(syntax.0, syntax.1, 1);
    let outcome = compile_text(&text, "damaged.p4", &Options::default());
    let rendered = outcome.render();
    let errors: Vec<_> = outcome
        .diagnostics
        .iter()
        .filter(|d| d.is_error())
        .collect();
    let shown = || format!("{syntax:?} {types:?}\n{rendered}");
    assert!(errors.iter().any(is_syntax), "no syntax error: {}", shown());
    for (_, _, code, word) in types {
        let found = errors
            .iter()
            .any(|d| d.code.starts_with(code) && !is_syntax(d) && d.message.contains(word));
        assert!(found, "no {code} {word}: {}", shown());
    }
    let others = errors.iter().filter(|d| !is_syntax(d)).count();
    assert_eq!(others, types.len(), "{}", shown());
}

#[test]
fn the_program_is_correct_without_mistakes() {
    let outcome = compile_text(PROGRAM, "damaged.p4", &Options::default());
    assert_eq!(outcome.render(), "");
    for error in TYPE_ERRORS {
        let text = PROGRAM.replacen(error.0, error.1, 1);
        let outcome = compile_text(&text, "damaged.p4", &Options::default());
        assert_eq!(outcome.diagnostics.len(), 1, "{}", outcome.render());
    }
}

/// A mistake of types is reported beside one of the syntax in another declaration, and so are two in two others.
#[test]
fn type_errors_show_beside_a_syntax_error() {
    let owner = |text: &str| {
        let at = PROGRAM.find(text).expect("a place");
        PROGRAM[..at].matches("\n// --").count()
    };
    for syntax in SYNTAX_ERRORS {
        // A comment without an end swallows what follows, and the last declaration before it may go on there.
        let visible = |e: &&(&str, &str, &str, &str)| {
            owner(e.0) != owner(syntax.0)
                && (syntax.0 != "/*end*/" || owner(e.0) + 1 < owner(syntax.0))
        };
        let elsewhere: Vec<_> = TYPE_ERRORS.iter().filter(visible).copied().collect();
        for (i, first) in elsewhere.iter().enumerate() {
            both(PROGRAM, &[*first], *syntax);
            for second in &elsewhere[i + 1..] {
                both(PROGRAM, &[*first, *second], *syntax);
            }
        }
    }
}

/// Likewise in the same block, before and behind it.
#[test]
fn type_errors_show_in_the_block_of_a_syntax_error() {
    let ingress: Vec<_> = TYPE_ERRORS
        .iter()
        .filter(|e| matches!(e.0, "/*T3*/" | "/*T4*/" | "/*T6*/"))
        .copied()
        .collect();
    for syntax in SYNTAX_ERRORS
        .iter()
        .filter(|s| s.0.starts_with("hdr.h.b = "))
    {
        both(PROGRAM, &ingress, *syntax);
    }
}

/// Errors that may only come from what could not be read take no room from the others: as many of those are shown as of
/// a whole program, in order, and the message that there are more is the last one.
#[test]
fn errors_that_are_not_shown_leave_room_for_others() {
    let doubtful = "    x = thing_t;\n".repeat(150);
    for certain in [0, 1, 60, 99, 100, 101, 150] {
        let lines = (0..certain).map(|i| format!("const bit<8> c{i} = 8w1 + true;\n"));
        let text = format!(
            "struct thing_t {{ bit<8> a; }}\nvoid broken() {{\n    bit<8> x = ;\n{doubtful}}}\n{}",
            lines.collect::<String>()
        );
        let outcome = compile_text(&text, "room.p4", &Options::default());
        let others = outcome
            .diagnostics
            .iter()
            .filter(|d| d.is_error() && !d.code.starts_with("E02"));
        let shown = others.filter(|d| d.code == "E1023").count();
        let marks = outcome
            .diagnostics
            .iter()
            .enumerate()
            .filter(|(_, d)| d.code == "E0299");
        let marks: Vec<usize> = marks.map(|(i, _)| i).collect();
        assert_eq!(shown, certain.min(100), "{certain}: {}", outcome.render());
        let last = outcome.diagnostics.len() - 1;
        let wanted = if certain > 100 { vec![last] } else { vec![] };
        assert_eq!(marks, wanted, "{certain}");
    }
}
