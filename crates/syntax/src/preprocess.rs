//! The preprocessor turns files into one stream of tokens: `#include`, `#define`, `#if` and related directives.
//!
//! It implements the C preprocessor as far as P4 programs use it, on tokens rather than text, so that each token keeps its place in
//! its file. A file is cut into directives and the runs of lines between them; a macro's arguments
//! therefore cannot contain a directive. Expansion itself is in `macros.rs`, the expressions of `#if` in
//! `condition.rs`. The preprocessor does not know P4's grammar.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use crate::diagnostics::{Diagnostic, Sink};
use crate::errors;
use crate::lexer;
use crate::loader::{IncludeStyle, Loaded, Loader};
use crate::macros::Macro;
use crate::source::{FileId, SourceMap, Span};
use crate::token::{Interner, Token, TokenKind as T};

/// Files may include each other this deep.
const MAX_INCLUDE_DEPTH: usize = 64;
/// Files may be included this many times in all.
const MAX_INCLUDES: usize = 4096;
/// A program may have this many tokens.
const MAX_TOKENS: usize = 4_000_000;
/// Larger files are refused.
const MAX_FILE_BYTES: usize = 64 << 20;

/// The state shared by all files of one program.
pub(crate) struct Preprocessor<'a> {
    pub(crate) loader: &'a dyn Loader,
    pub(crate) sources: &'a mut SourceMap,
    pub(crate) sink: &'a mut Sink,
    pub(crate) interner: Interner,
    pub(crate) macros: HashMap<Arc<str>, Rc<Macro>>,
    /// The number of tokens that macros have made so far.
    pub(crate) produced: usize,
    /// The depth at which macro arguments are nested just now.
    pub(crate) argument_depth: usize,
    pub(crate) next_macro: u32,
    /// Macros whose `##` made no token, which is said once for each.
    pub(crate) bad_pastes: HashSet<u32>,
    out: Vec<Token>,
    open_files: usize,
    includes: usize,
    seen_once: HashSet<PathBuf>,
    /// Set once the program is too large: the rest is left out.
    stopped: bool,
}

/// A file being read.
struct Current<'p> {
    path: &'p Path,
    conditions: Vec<Condition>,
}

/// An open `#if`.
struct Condition {
    opened: Span,
    /// Whether the group being read is kept.
    active: bool,
    /// Whether a group of this `#if` was kept already, or none may be.
    taken: bool,
    else_seen: Option<Span>,
}

impl Current<'_> {
    fn active(&self) -> bool {
        self.conditions.last().is_none_or(|c| c.active)
    }
}

/// Whether a word of a directive is a line's number.
fn is_number(text: &str) -> bool {
    text.parse::<u32>().is_ok()
}

impl<'a> Preprocessor<'a> {
    pub(crate) fn new(
        loader: &'a dyn Loader,
        sources: &'a mut SourceMap,
        sink: &'a mut Sink,
    ) -> Preprocessor<'a> {
        Preprocessor {
            loader,
            sources,
            sink,
            interner: Interner::default(),
            macros: HashMap::new(),
            produced: 0,
            argument_depth: 0,
            next_macro: 0,
            bad_pastes: HashSet::new(),
            out: Vec::new(),
            open_files: 0,
            includes: 0,
            seen_once: HashSet::new(),
            stopped: false,
        }
    }

    /// Defines macros as if by `#define NAME VALUE` lines before the first file.
    pub(crate) fn define(&mut self, defines: &[(String, String)]) {
        if defines.is_empty() {
            return;
        }
        let clean = |text: &str| text.replace(['\n', '\r'], " ");
        let lines = defines
            .iter()
            .map(|(name, value)| format!("#define {} {}\n", clean(name), clean(value)));
        let text: String = lines.collect();
        self.file(
            Loaded {
                path: "<command line>".into(),
                text,
            },
            None,
        );
    }

    /// The whole program's tokens with an end marker, which stands at the end of the file `main`, and whether they are
    /// really all.
    pub(crate) fn finish(mut self, main: FileId) -> (Vec<Token>, bool) {
        let end = self
            .sources
            .file(main)
            .map_or(0, |f| f.text.trim_end().len()) as u32;
        let span = Span::new(main, end, end);
        let text = self.interner.intern("");
        self.out.push(Token {
            kind: T::Eof,
            text,
            span,
            line_start: true,
            space_before: true,
            joint: false,
        });
        (self.out, !self.stopped)
    }

    /// Reads a file to its end.
    pub(crate) fn file(&mut self, loaded: Loaded, included_at: Option<Span>) -> FileId {
        let Loaded { path, text } = loaded;
        let too_large = text.len() > MAX_FILE_BYTES;
        let text: Arc<str> = if too_large { "".into() } else { text.into() };
        let id = self
            .sources
            .add(path.to_string_lossy(), text.clone(), included_at);
        if too_large {
            self.sink.push(errors::file_too_large(
                included_at.unwrap_or(Span::new(id, 0, 0)),
                MAX_FILE_BYTES >> 20,
            ));
            return id;
        }
        let mut tokens = lexer::lex(id, &text, &mut self.interner);
        if let Some(open) = tokens.pop_if(|t| t.kind == T::OpenComment) {
            self.sink.push(errors::unterminated_comment(Span::new(
                id,
                open.span.start,
                open.span.start + 2,
            )));
        }
        self.open_files += 1;
        let mut current = Current {
            path: &path,
            conditions: Vec::new(),
        };
        self.lines(&tokens, &mut current);
        self.open_files -= 1;
        if let Some(open) = current.conditions.last() {
            self.sink.push(errors::unterminated_if(open.opened));
        }
        id
    }

    fn lines(&mut self, tokens: &[Token], current: &mut Current<'_>) {
        let starts_directive = |t: &Token| t.kind == T::Hash && t.line_start;
        let mut rest = tokens;
        while !rest.is_empty() && !self.stopped {
            let len = if starts_directive(&rest[0]) {
                let len = 1 + rest[1..]
                    .iter()
                    .position(|t| t.line_start)
                    .unwrap_or(rest.len() - 1);
                self.directive(&rest[0], &rest[1..len], current);
                len
            } else {
                let len = rest.iter().position(starts_directive).unwrap_or(rest.len());
                if current.active() {
                    self.text_lines(&rest[..len]);
                }
                len
            };
            rest = &rest[len..];
        }
    }

    /// Expands and emits lines that are not directives.
    fn text_lines(&mut self, tokens: &[Token]) {
        for mut token in self.expand(tokens) {
            if token.kind == T::OpenStr {
                self.sink.push(errors::unterminated_string(token.span));
                token.kind = T::Str;
                token.text = self.interner.intern(&format!("{}\"", token.text));
            }
            self.out.push(token);
        }
        if self.out.len() > MAX_TOKENS {
            self.stop(tokens.first().map_or(Span::default(), |t| t.span));
        }
    }

    /// Stops because the program is too large.
    pub(crate) fn stop(&mut self, at: Span) {
        self.give_up(errors::program_too_large(at));
    }

    /// Reports why the rest of the program is not read.
    fn give_up(&mut self, diagnostic: Diagnostic) {
        if !self.stopped {
            self.stopped = true;
            self.sink.push(diagnostic);
        }
    }

    /// `line` is what follows the `#`.
    fn directive(&mut self, hash: &Token, line: &[Token], current: &mut Current<'_>) {
        // A `#` alone on its line means nothing.
        let Some((word, args)) = line.split_first() else {
            return;
        };
        let active = current.active();
        match &*word.text {
            "if" | "ifdef" | "ifndef" => self.open_condition(word, args, current),
            "elif" | "elifdef" | "elifndef" => self.else_if(word, args, current),
            "else" => self.else_group(word, args, current),
            "endif" => {
                self.no_more(word, args);
                if current.conditions.pop().is_none() {
                    self.sink.push(errors::without_if(word.span, "endif"));
                }
            }
            _ if !active => {}
            "define" => self.define_macro(word, args),
            "undef" => self.undefine(word, args),
            "include" => self.include(word, args, current),
            "error" => {
                let message = self.text_of(args);
                self.sink.push(errors::error_directive(word.span, &message));
            }
            "warning" => {
                let message = self.text_of(args);
                self.sink
                    .push(errors::warning_directive(word.span, &message));
            }
            "pragma" => {
                if args.first().is_some_and(|t| &*t.text == "once") {
                    self.seen_once.insert(current.path.to_path_buf());
                }
            }
            "line" => self.line_directive(word, args),
            "import" | "include_next" | "embed" => self
                .sink
                .push(errors::unsupported_directive(word.span, &word.text)),
            // `# 12 "file"`; with anything else after the number it is a comment like others.
            number if is_number(number) && line.get(1).is_none_or(|t| t.kind == T::Str) => {
                self.line_directive(hash, line);
            }
            _ => self
                .sink
                .push(errors::unknown_directive(word.span, &word.text)),
        }
    }

    /// The text from the first to the last of `tokens`, as in the file.
    fn text_of(&self, tokens: &[Token]) -> String {
        match (tokens.first(), tokens.last()) {
            (Some(first), Some(last)) => self.sources.text(first.span.to(last.span)).to_string(),
            _ => String::new(),
        }
    }

    fn no_more(&mut self, word: &Token, args: &[Token]) {
        if let (Some(first), Some(last)) = (args.first(), args.last()) {
            self.sink.push(errors::extra_in_directive(
                first.span.to(last.span),
                &word.text,
            ));
        }
    }

    // -- Conditions ---------------------------------------------------------------------------------------------------

    fn open_condition(&mut self, word: &Token, args: &[Token], current: &mut Current<'_>) {
        let enclosing = current.active();
        let holds = enclosing && self.holds(word, args);
        let taken = holds || !enclosing;
        current.conditions.push(Condition {
            opened: word.span,
            active: holds,
            taken,
            else_seen: None,
        });
    }

    /// Whether the condition of an `#if`, `#ifdef`, `#elif` and so on holds.
    fn holds(&mut self, word: &Token, args: &[Token]) -> bool {
        let directive = &*word.text;
        if matches!(directive, "if" | "elif") {
            return self.condition(word, args);
        }
        match args.split_first() {
            Some((name, rest)) if name.kind.is_word() => {
                self.no_more(word, rest);
                self.is_defined(&name.text) == directive.ends_with("ifdef")
            }
            _ => {
                self.sink
                    .push(errors::macro_name_expected(word.span, directive));
                false
            }
        }
    }

    fn else_if(&mut self, word: &Token, args: &[Token], current: &mut Current<'_>) {
        let Some(open) = current.conditions.last_mut() else {
            self.sink.push(errors::without_if(word.span, &word.text));
            return;
        };
        if let Some(earlier) = open.else_seen {
            self.sink
                .push(errors::after_else(word.span, &word.text, earlier));
        }
        open.active = false;
        if !open.taken && open.else_seen.is_none() && self.holds(word, args) {
            open.active = true;
            open.taken = true;
        }
    }

    fn else_group(&mut self, word: &Token, args: &[Token], current: &mut Current<'_>) {
        self.no_more(word, args);
        let Some(open) = current.conditions.last_mut() else {
            self.sink.push(errors::without_if(word.span, "else"));
            return;
        };
        if let Some(earlier) = open.else_seen {
            self.sink
                .push(errors::after_else(word.span, "else", earlier));
        }
        open.active = !open.taken;
        open.taken = true;
        open.else_seen = Some(word.span);
    }

    // -- Includes and lines -------------------------------------------------------------------------------------------

    fn include(&mut self, word: &Token, args: &[Token], current: &Current<'_>) {
        let Some((name, style, span)) = self.include_name(args) else {
            let span = args.first().map_or(word.span, |t| t.span);
            self.sink.push(errors::malformed_include(span));
            return;
        };
        self.includes += 1;
        if self.open_files >= MAX_INCLUDE_DEPTH {
            self.give_up(errors::includes_too_deep(span, MAX_INCLUDE_DEPTH));
            return;
        }
        if self.includes > MAX_INCLUDES {
            self.stop(span);
            return;
        }
        match self.loader.include(&name, style, current.path) {
            Ok(loaded) if self.seen_once.contains(&loaded.path) => {}
            Ok(loaded) => {
                self.file(loaded, Some(span));
            }
            Err(error) => self.sink.push(errors::cannot_include(span, &name, &error)),
        }
    }

    /// The file an `#include` names, written as it is or made by macros.
    fn include_name(&mut self, args: &[Token]) -> Option<(String, IncludeStyle, Span)> {
        let first = args.first()?;
        let span = first.span.to(args.last()?.span);
        if first.kind == T::Lt {
            // The text between the brackets is not tokens: `<dir//x.p4>` and `<a-b.p4>` are names too.
            let end = args.iter().find(|t| t.kind == T::Gt)?;
            let inside = Span::new(first.span.file, first.span.end, end.span.start);
            return Some((
                self.sources.text(inside).trim().to_string(),
                IncludeStyle::Angled,
                span,
            ));
        }
        let expanded;
        let tokens = if first.kind.is_word() {
            expanded = self.expand(args);
            &expanded
        } else {
            args
        };
        match tokens {
            [name] if name.kind == T::Str => Some((
                name.text.trim_matches('"').to_string(),
                IncludeStyle::Quoted,
                span,
            )),
            [open, inside @ .., close] if open.kind == T::Lt && close.kind == T::Gt => Some((
                inside.iter().map(|t| &*t.text).collect(),
                IncludeStyle::Angled,
                span,
            )),
            _ => None,
        }
    }

    /// `#line 12 "file"` or the `# 12 "file"` that other preprocessors leave.
    fn line_directive(&mut self, word: &Token, args: &[Token]) {
        let number = args
            .first()
            .filter(|t| t.kind == T::Int)
            .and_then(|t| t.text.parse().ok());
        let name = match args.get(1) {
            None => Some(None),
            Some(name) if name.kind == T::Str => Some(Some(Arc::from(name.text.trim_matches('"')))),
            Some(_) => None,
        };
        match (number, name) {
            (Some(number), Some(name)) => self.sources.override_line(word.span, number, name),
            _ => self.sink.push(errors::malformed_line(word.span)),
        }
    }
}
