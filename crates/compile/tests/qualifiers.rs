//! Every qualifier and annotation is read by somebody: a program without it gives another result, or another message.
//!
//! An annotation or a `const` that the parser takes and nobody reads is silent about what the program wants. Each occurrence in the programs
//! of the corpus is taken away, and the program compiled again.

mod programs;

use std::collections::BTreeMap;

use compile::{Options, compile_text};
use programs::{programs, root};

/// Annotations that promise or permit something that holds here without them, or that speak to another tool. Others of the program's own are
/// in P4Info.
const WITHOUT_EFFECT: [(&str, &str); 6] = [
    ("atomic", "a switch runs one packet at a time"),
    ("pure", "a permission to optimise"),
    ("noSideEffects", "a permission to optimise"),
    ("noWarn", "of what is not warned of"),
    ("alias", "a name of the reference target's"),
    ("metadata", "a name of P4_14's"),
];

/// Single places where an annotation has no effect.
const PLACES_WITHOUT_EFFECT: [(&str, &str, &str); 1] = [(
    "macro_annotations.p4",
    "@brief",
    "P4Info has no description of a field of a controller's header",
)];

/// Returns the program text with blanks in place of its comments.
fn without_comments(text: &str) -> String {
    let mut out = text.as_bytes().to_vec();
    let mut i = 0;
    while i + 1 < out.len() {
        let end = match &out[i..i + 2] {
            b"//" => text[i..].find('\n').map_or(out.len(), |n| i + n),
            b"/*" => text[i..].find("*/").map_or(out.len(), |n| i + n + 2),
            b"\"\"" => i + 2,
            [b'"', _] => text[i + 1..].find('"').map_or(out.len(), |n| i + n + 2),
            _ => i + 1,
        };
        if out[i] == b'/' && end > i + 1 {
            out[i..end]
                .iter_mut()
                .filter(|b| **b != b'\n')
                .for_each(|b| *b = b' ');
        }
        i = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Returns the name and the range of each annotation with its arguments, and of each word `const`, in a program text.
fn qualifiers(text: &str) -> Vec<(String, std::ops::Range<usize>)> {
    let word = |s: &str| {
        let end = s.find(|c: char| !c.is_alphanumeric() && c != '_');
        end.unwrap_or(s.len())
    };
    let mut found = Vec::new();
    for (at, _) in text.match_indices('@') {
        let name = &text[at + 1..at + 1 + word(&text[at + 1..])];
        let mut end = at + 1 + name.len();
        if let Some(open @ ('(' | '[')) = text[end..].chars().next() {
            let close = if open == '(' { ')' } else { ']' };
            let mut depth = 0;
            for (i, c) in text[end..].char_indices() {
                depth += i32::from(c == open) - i32::from(c == close);
                if depth == 0 {
                    end += i + 1;
                    break;
                }
            }
        }
        found.push((format!("@{name}"), at..end));
    }
    for (at, _) in text.match_indices("const ") {
        if !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            found.push(("const".to_string(), at..at + 6));
        }
    }
    found
}

/// Returns the IR, the P4Info and the diagnostics of a compilation as one text, and whether there is a
/// compiled program.
fn result(text: &str, options: &Options) -> (String, bool) {
    let outcome = compile_text(text, "program.p4", options);
    let rendered = outcome.render();
    let shown = outcome
        .compiled
        .as_ref()
        .map(|c| format!("{}{}", ir::text::print(&c.program), c.p4info.to_text()));
    (
        shown.unwrap_or_default() + &rendered,
        outcome.compiled.is_some(),
    )
}

#[test]
fn no_qualifier_is_ignored() {
    let options = Options {
        include_dirs: vec![root().join("tests/p4/run")],
        ..Options::default()
    };
    let mut silent = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for path in programs("tests/p4/accept")
        .into_iter()
        .chain(programs("tests/p4/run"))
    {
        let text = std::fs::read_to_string(&path).expect("a program");
        let text = without_comments(&text);
        let (before, compiles) = result(&text, &options);
        if !compiles {
            // Its comments are joined lines, or parts of macros.
            continue;
        }
        for (name, range) in qualifiers(&text) {
            let known = |(silent, _): &(&str, &str)| name.strip_prefix('@') == Some(silent);
            // What is in a table of constant entries is constant anyway.
            let (head, tail) = (&text[..range.start], &text[range.end..]);
            let table = head.rfind("entries").map_or("", |at| &head[..at]);
            let redundant = name == "const"
                && table.trim_end().ends_with("const")
                && !tail
                    .trim_start()
                    .starts_with(|c: char| c.is_alphabetic() && c.is_lowercase());
            if WITHOUT_EFFECT.iter().any(known) || redundant {
                continue;
            }
            let blank: String = text[range.clone()]
                .chars()
                .map(|c| if c == '\n' { c } else { ' ' })
                .collect();
            let after = result(&format!("{head}{blank}{tail}"), &options).0;
            let file = path.file_name().expect("a name");
            let place =
                |(program, silent, _): &(&str, &str, &str)| file == *program && name == *silent;
            if before == after && !PLACES_WITHOUT_EFFECT.iter().any(place) {
                let line = head.lines().count();
                silent.push(format!("{}:{line}: {}", path.display(), &text[range]));
            }
            *seen.entry(name).or_default() += 1;
        }
    }
    assert!(silent.is_empty(), "{silent:#?}");
    assert!(seen.len() > 10 && seen["const"] > 20, "{seen:?}");
}
