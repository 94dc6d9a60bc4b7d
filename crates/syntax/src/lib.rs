//! `syntax` turns P4_16 text into a tree: preprocessor, lexer, parser, diagnostics.
//!
//! This crate never fails: for any text it returns a tree (perhaps with holes) and a list of diagnostics. It
//! deliberately does not know the meaning of names, types, or a program's architecture; `compile` does.
//! It opens no file itself: a [`Loader`] does.
//!
//! ```
//! let parsed = syntax::parse_str("const bit<8> ONE = 8w1;");
//! assert!(parsed.diagnostics.is_empty());
//! assert_eq!(parsed.program.decls.len(), 1);
//! ```
#![forbid(unsafe_code)]

pub mod ast;
pub mod diagnostics;
mod errors;
pub mod format;
mod lexer;
pub mod loader;
mod parser;
mod preprocess;
mod preprocessed;
mod sink;
pub mod source;
mod splice;
mod token;

use std::path::Path;

pub use diagnostics::{Diagnostic, Severity, render_all};
pub use loader::{FileLoader, IncludeStyle, LoadError, Loaded, Loader, MemoryLoader};
pub use sink::Sink;
pub use source::{SourceMap, Span};

use preprocess::Preprocessor;

/// The result of parsing a program.
#[derive(Debug)]
pub struct Parsed {
    /// The syntax tree. With errors, it lacks the parts that could not be read.
    pub program: ast::Program,
    /// The files to which spans refer.
    pub sources: SourceMap,
    /// The diagnostics, in the order in which they were found.
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    /// Returns whether any diagnostic is an error.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// Renders all diagnostics as text, each with the source lines to which it refers.
    pub fn render(&self) -> String {
        render_all(&self.diagnostics, &self.sources)
    }
}

/// A program after the preprocessor.
#[derive(Debug)]
pub struct Preprocessed {
    /// The program without directives and comments. Lines such as `# 12 "file.p4"` name the places in the source.
    pub text: String,
    /// The same without such lines, and without the places.
    pub plain: String,
    /// The files that were read.
    pub sources: SourceMap,
    /// The diagnostics, in the order in which they were found.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads the program in the file `path` as [`parse`] does, up to its tokens, and returns these as text.
pub fn preprocess(path: &Path, loader: &dyn Loader, defines: &[(String, String)]) -> Preprocessed {
    let mut sources = SourceMap::new();
    let mut sink = Sink::default();
    let (tokens, _) = tokens_of(path, loader, defines, &mut sources, &mut sink);
    Preprocessed {
        text: preprocessed::text(&tokens, &sources, true),
        plain: preprocessed::text(&tokens, &sources, false),
        sources,
        diagnostics: sink.into_vec(),
    }
}

/// Returns the tokens of the program in the file `path`, and whether they are complete.
fn tokens_of(
    path: &Path,
    loader: &dyn Loader,
    defines: &[(String, String)],
    sources: &mut SourceMap,
    sink: &mut Sink,
) -> (Vec<token::Token>, bool) {
    let mut preprocessor = Preprocessor::new(loader, sources, sink);
    preprocessor.define(defines);
    let main = match loader.open(path) {
        Ok(loaded) => preprocessor.file(loaded, None),
        Err(error) => {
            let main = preprocessor.file(
                Loaded {
                    path: path.to_path_buf(),
                    text: String::new(),
                },
                None,
            );
            preprocessor
                .sink
                .push(errors::cannot_open(Span::new(main, 0, 0), path, &error));
            main
        }
    };
    preprocessor.finish(main)
}

/// Parses the program in the file `path` with the macros `defines` (name and value) predefined.
pub fn parse(path: &Path, loader: &dyn Loader, defines: &[(String, String)]) -> Parsed {
    let mut sources = SourceMap::new();
    let mut sink = Sink::default();
    let (tokens, complete) = tokens_of(path, loader, defines, &mut sources, &mut sink);
    // An error that the parser finds in a program that was cut off is nobody's mistake.
    let mut ignored = Sink::default();
    let (cut_strings, hopeless) = lexical_damage(&sink);
    let parser_sink = if complete { &mut sink } else { &mut ignored };
    let mut program = parser::parse(&tokens, &cut_strings, parser_sink);
    program.damage.hopeless |= hopeless || !complete;
    Parsed {
        program,
        sources,
        diagnostics: sink.into_vec(),
    }
}

/// Returns the places of errors in single tokens, such as strings without an end. Also returns whether the
/// preprocessor found any other error, after which it is not known what the program contains. A comment without an
/// end is no such error, since only the text after its start is lost.
fn lexical_damage(sink: &Sink) -> (Vec<Span>, bool) {
    let errors = sink.list().iter().filter(|d| d.is_error());
    // Codes of single tokens.
    let (open, others): (Vec<_>, Vec<_>) = errors.partition(|d| d.code.starts_with("E01"));
    (open.iter().map(|d| d.span).collect(), !others.is_empty())
}

/// Returns whether `text` can be a name that a program declares: one word that is no keyword.
pub fn is_identifier(text: &str) -> bool {
    lexer::single(text) == Some(token::TokenKind::Ident)
}

/// Parses `text` as a file named `input.p4`, which cannot include other files.
pub fn parse_str(text: &str) -> Parsed {
    let loader = MemoryLoader::new().file("input.p4", text);
    parse(Path::new("input.p4"), &loader, &[])
}
