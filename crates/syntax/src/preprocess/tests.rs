//! Compares the preprocessor with the reference compiler's, which is `cpp` in assembler mode, and joined lines with whole ones.
#![expect(
    clippy::disallowed_macros,
    reason = "a test says what it skips and has found"
)]

mod generate;

use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;

use super::Preprocessor;
use crate::diagnostics::render_all;
use crate::loader::{Loaded, Loader, MemoryLoader};
use crate::sink::Sink;
use crate::source::{SourceMap, Span};
use crate::token::Token;
use crate::{lexer, splice};
use generate::Files;

/// What the preprocessor made of a program.
struct Outcome {
    tokens: Vec<Token>,
    sources: SourceMap,
    messages: String,
}

impl Outcome {
    fn failed(&self) -> bool {
        self.messages.contains("error[")
    }
}

fn preprocess(files: &Files) -> Outcome {
    let mut loader = MemoryLoader::new();
    for (name, text) in files {
        loader = loader.file(name, text);
    }
    let mut sources = SourceMap::new();
    let mut sink = Sink::default();
    let mut preprocessor = Preprocessor::new(&loader, &mut sources, &mut sink);
    let main: Loaded = loader.open(Path::new(&files[0].0)).expect("the main file");
    let main = preprocessor.file(main, None);
    let (mut tokens, _) = preprocessor.finish(main);
    tokens.pop();
    let messages = render_all(&sink.into_vec(), &sources);
    Outcome {
        tokens,
        sources,
        messages,
    }
}

/// The symbols of P4 that are several of C, which `cpp` may set apart.
const SEVERAL: &[(&str, &str)] = &[
    ("..", ". ."),
    ("&&&", "&& &"),
    ("|+|", "| + |"),
    ("|+|=", "| + |="),
];

/// Returns the texts of `tokens`. A `>` that a second `>` follows without a blank gets a mark, since the
/// two can be a shift.
fn texts(tokens: &[Token]) -> Vec<String> {
    let text = |t: &Token| {
        let several = SEVERAL.iter().find(|(symbol, _)| *symbol == &*t.text);
        let text = several.map_or(&*t.text, |(_, parts)| parts);
        format!("{text}{}", if t.joint { "~" } else { "" })
    };
    let all: Vec<String> = tokens.iter().map(text).collect();
    all.join(" ").split(' ').map(str::to_string).collect()
}

// -- The reference compiler's preprocessor --------------------------------------------------------------------------------

/// A directory that goes away with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let name = format!("holdfast-{name}-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir).expect("a directory for the test");
        Scratch(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A directory that stays does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Prepares a call of `cpp` with the options of the reference compiler, except `-C`: comments are removed.
fn cpp(dir: &Path) -> Command {
    let mut command = Command::new("cpp");
    command.current_dir(dir).args([
        "-undef",
        "-nostdinc",
        "-x",
        "assembler-with-cpp",
        "-I.",
        "-w",
    ]);
    command
}

/// Returns whether `cpp` exists and is GCC's; prints the reason for the skipped test otherwise.
fn has_cpp() -> bool {
    let version = Command::new("cpp").arg("--version").output();
    let text = version.map(|v| String::from_utf8_lossy(&v.stdout).into_owned());
    let found = text.is_ok_and(|text| text.contains("Free Software Foundation"));
    if !found {
        eprintln!("skipped: there is no GCC `cpp` to compare with");
    }
    found
}

/// Returns the tokens of a program after `cpp` has processed it; `Err` holds the messages of `cpp`.
fn reference(dir: &Path, files: &Files) -> Result<Vec<String>, String> {
    for (name, text) in files {
        std::fs::write(dir.join(name), text).expect("a file for cpp");
    }
    let output = cpp(dir).arg(&files[0].0).output().expect("cpp");
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    // The reference compiler's lexer skips lines that start with `#`.
    let text = String::from_utf8_lossy(&output.stdout).replace("\"./", "\"");
    let kept = text.lines().filter(|l| !l.trim_start().starts_with('#'));
    let text: String = kept.flat_map(|line| [line, "\n"]).collect();
    let mut interner = Default::default();
    let lexed = lexer::lex(Default::default(), &text, &mut interner);
    Ok(texts(&lexed.tokens))
}

fn compare(dir: &Path, files: &Files) {
    let ours = preprocess(files);
    let shown = || {
        let file = |(name, text): &(String, String)| format!("--- {name}\n{text}\n");
        files.iter().map(file).collect::<String>()
    };
    match reference(dir, files) {
        Ok(theirs) => {
            assert!(
                !ours.failed(),
                "cpp accepts\n{}\n{}",
                shown(),
                ours.messages
            );
            let ours = texts(&ours.tokens);
            let place = ours.iter().zip(&theirs).position(|(a, b)| a != b);
            let from = place
                .unwrap_or(ours.len().min(theirs.len()))
                .saturating_sub(8);
            let part = |all: &[String]| {
                all.iter()
                    .skip(from)
                    .take(16)
                    .cloned()
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            let (here, there) = (part(&ours), part(&theirs));
            assert!(ours == theirs, "here {here}\ncpp  {there}\n{}", shown());
        }
        Err(message) => assert!(ours.failed(), "cpp refuses\n{}\n{message}", shown()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, max_shrink_iters: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tokens_agree_with_cpp(files in generate::program()) {
        static CPP: std::sync::LazyLock<Option<Scratch>> = std::sync::LazyLock::new(|| has_cpp().then(|| Scratch::new("tokens")));
        if let Some(dir) = &*CPP {
            compare(&dir.0, &files);
        }
    }

    #[test]
    fn conditions_agree_with_cpp(conditions in proptest::collection::vec(generate::condition(), 20)) {
        static CPP: std::sync::LazyLock<Option<Scratch>> = std::sync::LazyLock::new(|| has_cpp().then(|| Scratch::new("conditions")));
        if let Some(dir) = &*CPP {
            let group = |(i, condition)| format!("#if {condition}\ntrue{i}\n#else\nfalse{i}\n#endif\n");
            let text: String = conditions.iter().enumerate().map(group).collect();
            compare(&dir.0, &vec![("main.p4".into(), format!("{}{text}", generate::CONDITION_MACROS))]);
        }
    }

    /// Joined lines mean what one line means, and each token still has its place in its file.
    #[test]
    fn splices_change_nothing(
        files in generate::whole_program(),
        splices in generate::splices(),
    ) {
        // A splice moves the lines behind it.
        let files: Files = files.into_iter().map(|(name, text)| (name, text.replace("__LINE__", "__STDC__"))).collect();
        let spliced: Files = files.iter().map(|(name, text)| (name.clone(), generate::spliced(text, &splices))).collect();
        let (whole, cut) = (preprocess(&files), preprocess(&spliced));
        prop_assert_eq!(texts(&whole.tokens), texts(&cut.tokens));
        prop_assert_eq!(whole.failed(), cut.failed());
        let own = |sources: &SourceMap, t: &Token| splice::joined(sources.text(t.span)).into_owned();
        for (before, after) in whole.tokens.iter().zip(&cut.tokens) {
            if own(&whole.sources, before) == *before.text {
                prop_assert_eq!(own(&cut.sources, after), &*after.text);
                prop_assert_eq!(place(&cut, after.span), counted(&cut, after.span));
            }
        }
    }
}

fn place(outcome: &Outcome, span: Span) -> (u32, u32) {
    let at = outcome.sources.location(span);
    (at.line, at.column)
}

/// Returns the line and column of a place, counted from the start of its file; after a `#line` directive,
/// those that the directive gives.
fn counted(outcome: &Outcome, span: Span) -> (u32, u32) {
    let file = outcome.sources.file(span.file).expect("a file");
    let before = &file.text[..span.start as usize];
    if splice::joined(before).contains("#line") {
        return place(outcome, span);
    }
    let lines = before.matches('\n').count() as u32;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() as u32;
    (lines + 1, column + 1)
}
