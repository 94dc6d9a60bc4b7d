//! `corpus DIR [INCLUDE...]`: asks the language server about every program below a directory, and formats it. Counts what
//! holds, and names the files of which something does not:
//!
//! * Definitions: names are drawn from each program; the definition and all uses get another name, and the compiler must
//!   find in the result the program that it was, but for the name.
//! * Formatting: the program is formatted with all files that it includes; the second time changes nothing, and the
//!   compiler makes the same IR of it.
//! * Completion at a place that is drawn does not fail.
#![expect(clippy::disallowed_macros, reason = "a command prints")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use compile::Options;
use lsp::{Encoding, Session, Settings, Text};
use lsp_types::{Position, TextEdit};
use syntax::source::Span;
use syntax::{FileLoader, IncludeStyle, LoadError, Loaded, Loader};

/// The names that are drawn from each program.
const NAMES: usize = 2;
/// The declaration and the uses of a name that is renamed.
const MARK: &str = "_renamed";

#[derive(Debug, Default)]
struct Counts {
    files: usize,
    names: usize,
    renamed: usize,
    refused: BTreeMap<String, usize>,
    formatted: usize,
    unformattable: usize,
    compared: usize,
    wrong: Vec<String>,
}

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let Some(directory) = args.next().and_then(|d| d.canonicalize().ok()) else {
        eprintln!("usage: corpus DIR [INCLUDE...]");
        return ExitCode::from(2);
    };
    let options = Options {
        include_dirs: args.collect(),
        ..Options::default()
    };
    let mut paths = Vec::new();
    programs(&directory, &mut paths);
    paths.sort();
    let mut counts = Counts::default();
    let mut numbers = 0x5eed_u64;
    for path in &paths {
        counts.files += 1;
        format(path, &options, &mut counts);
        names(path, &options, &mut counts, &mut numbers);
    }
    println!("{counts:#?}");
    ExitCode::from(u8::from(!counts.wrong.is_empty()))
}

fn programs(directory: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            programs(&path, out);
        } else if path.extension().is_some_and(|e| e == "p4") {
            out.push(path);
        }
    }
}

/// Returns the next of numbers that are as good as random (xorshift), below a limit.
fn draw(state: &mut u64, limit: usize) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state % limit.max(1) as u64) as usize
}

fn read(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn session(path: &Path, options: &Options) -> Session {
    let mut session = Session::new(Settings {
        options: options.clone(),
        main: None,
        folders: path.parent().map(Path::to_path_buf).into_iter().collect(),
        library: PathBuf::from("/library"),
        encoding: Encoding::Utf8,
    });
    session.set(path, Text::new(read(path)));
    session
}

/// Texts in place of those of files.
struct Texts<'a>(&'a BTreeMap<PathBuf, String>, FileLoader);

impl Texts<'_> {
    fn replaced(&self, loaded: Loaded) -> Loaded {
        // An include may lead through `..`, and edits name files without.
        let path = loaded.path.canonicalize();
        match path.ok().and_then(|path| self.0.get(&path)) {
            Some(text) => Loaded {
                text: text.clone(),
                ..loaded
            },
            None => loaded,
        }
    }
}

impl Loader for Texts<'_> {
    fn open(&self, path: &Path) -> Result<Loaded, LoadError> {
        self.1.open(path).map(|loaded| self.replaced(loaded))
    }

    fn include(&self, name: &str, style: IncludeStyle, from: &Path) -> Result<Loaded, LoadError> {
        let found = self.1.include(name, style, from);
        found.map(|loaded| self.replaced(loaded))
    }
}

/// Returns the IR and P4Info of a program with some texts in place of files, without places in the source; `None` if it
/// has errors.
fn ir(
    path: &Path,
    texts: &BTreeMap<PathBuf, String>,
    options: &Options,
) -> Option<(String, String)> {
    let loader = Texts(texts, compile::loader(options));
    let compiled = compile::compile_with(path, &loader, options).compiled?;
    let text = ir::text::print(&compiled.program);
    Some((without_places(&text), compiled.p4info.to_text()))
}

/// Returns IR without the places in the source, such as ` @0:12`, and without P4Runtime ids, such as ` id 18759588`, which
/// are made of names.
fn without_places(text: &str) -> String {
    let without = |text: &str, before: &str, letters: &[char]| {
        let mut parts = text.split(before);
        let mut out = parts.next().unwrap_or("").to_string();
        for part in parts {
            let end = part.find(|c: char| !c.is_ascii_digit() && !letters.contains(&c));
            out.push_str(&part[end.unwrap_or(part.len())..]);
        }
        out
    };
    without(&without(text, " @", &[':']), " id ", &[])
}

fn format(path: &Path, options: &Options, counts: &mut Counts) {
    let mut opened = session(path, options);
    let Some(snapshot) = opened.snapshot(path) else {
        return;
    };
    let mut texts = BTreeMap::new();
    for file in snapshot.paths().filter(|file| file.is_file()) {
        let own = usize::from(file == path);
        match syntax::format::format(&read(file)) {
            Ok(once) => {
                if syntax::format::format(&once).as_ref() != Ok(&once) {
                    counts
                        .wrong
                        .push(format!("{}: not idempotent", file.display()));
                }
                counts.formatted += own;
                texts.insert(file.to_path_buf(), once);
            }
            Err(refused) => {
                if refused.reason.contains("would change") {
                    counts.wrong.push(format!("{}: {refused}", file.display()));
                }
                counts.unformattable += own;
            }
        }
    }
    let before = ir(path, &BTreeMap::new(), options);
    if before != ir(path, &texts, options) {
        counts
            .wrong
            .push(format!("{}: another IR when formatted", path.display()));
    }
    counts.compared += usize::from(before.is_some());
}

fn names(path: &Path, options: &Options, counts: &mut Counts, numbers: &mut u64) {
    let mut opened = session(path, options);
    let Some(snapshot) = opened.snapshot(path) else {
        return;
    };
    let written = snapshot.uses().filter(|(at, _)| {
        let found = snapshot.written(*at);
        found.is_some_and(|(file, ..)| file == path)
    });
    let uses: Vec<(Span, Span)> = written.collect();
    let before = ir(path, &BTreeMap::new(), options);
    for _ in 0..NAMES.min(uses.len()) {
        let (at, _) = uses[draw(numbers, uses.len())];
        let Some(snapshot) = opened.snapshot(path) else {
            return;
        };
        let Some((_, position, name)) = snapshot.written(at) else {
            continue;
        };
        let new = format!("{name}{MARK}");
        counts.names += 1;
        let _ = lsp::hover(snapshot, path, position);
        if lsp::definition(snapshot, path, position).is_none() {
            counts
                .wrong
                .push(format!("{}: no definition for {new}", path.display()));
        }
        match lsp::rename(&mut opened, path, position, &new) {
            Err(why) => {
                let why = why.rsplit(['`', ',']).next().unwrap_or("").to_string();
                *counts.refused.entry(why).or_default() += 1;
            }
            Ok(edit) => {
                let mut texts = BTreeMap::new();
                for (uri, edits) in edit.changes.into_iter().flatten() {
                    let file = PathBuf::from(uri.as_str().trim_start_matches("file://"));
                    texts.insert(file.clone(), edited(&file, edits));
                }
                let after = ir(path, &texts, options);
                let same = after.map(|(ir, _)| ir.replace(MARK, ""));
                if same == before.as_ref().map(|(ir, _)| ir.clone()) {
                    counts.renamed += 1;
                } else {
                    counts
                        .wrong
                        .push(format!("{}: another program with {new}", path.display()));
                }
            }
        }
        let character = position.character + draw(numbers, 9) as u32;
        let place = Position::new(position.line, character);
        let _ = lsp::complete(&mut opened, path, place);
    }
}

fn edited(file: &Path, mut edits: Vec<TextEdit>) -> String {
    let mut text = Text::new(read(file));
    edits.sort_by_key(|edit| std::cmp::Reverse(edit.range.start));
    for edit in edits {
        text = text.edited(edit.range, &edit.new_text, Encoding::Utf8);
    }
    text.as_str().to_string()
}
