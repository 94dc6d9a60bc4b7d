//! The preprocessor turns files into one stream of tokens: `#include`, `#define`, `#if` and related directives.
//!
//! It implements the C preprocessor as far as P4 programs use it, on tokens rather than text, so that each token keeps its place in
//! its file. A file is cut into directives and the runs of lines between them. Expansion itself is in `macros.rs`, the expressions of `#if` in
//! `condition.rs`. The preprocessor does not know P4's grammar.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use crate::diagnostics::Diagnostic;
use crate::errors;
use crate::lexer::{self, Lexed};
use crate::loader::{IncludeStyle, Loaded, Loader};
use crate::sink::Sink;
use crate::source::{FileId, SourceMap, Span};
use crate::splice;
use crate::token::{Interner, Token, TokenKind as T};
use macros::{Macro, OpenUse};
use strings::SplitString;

mod condition;
mod macros;
mod strings;
#[cfg(test)]
mod tests;

/// The deepest nesting of included files.
const MAX_INCLUDE_DEPTH: usize = 64;
/// The most inclusions of files in all.
const MAX_INCLUDES: usize = 4096;
/// The most tokens of a program.
const MAX_TOKENS: usize = 4_000_000;
/// The largest file that is read.
const MAX_FILE_BYTES: usize = 64 << 20;

/// The state of the preprocessor, which all files of a program share.
pub(crate) struct Preprocessor<'a> {
    pub(crate) loader: &'a dyn Loader,
    pub(crate) sources: &'a mut SourceMap,
    pub(crate) sink: &'a mut Sink,
    pub(crate) interner: Interner,
    pub(crate) macros: HashMap<Arc<str>, Rc<Macro>>,
    /// The number of tokens that macros have produced so far.
    pub(crate) produced: usize,
    /// The number of bytes of text that `#` and `##` have produced so far.
    pub(crate) produced_bytes: usize,
    /// The present nesting of macro uses in arguments of macros.
    pub(crate) argument_depth: usize,
    pub(crate) next_macro: u32,
    /// A macro use in the last lines whose arguments are not complete yet.
    pub(crate) open_use: Option<OpenUse>,
    /// True if lines of text are being expanded; the arguments of the last macro use in them may continue after a
    /// directive.
    pub(crate) in_lines: bool,
    /// True if a condition is being expanded.
    pub(crate) in_condition: bool,
    /// A string literal that began before the present directive and is not complete yet.
    split_string: Option<SplitString>,
    /// The position of the first token after the present directive, if there is one.
    next_start: Option<u32>,
    /// The next value of `__COUNTER__`.
    pub(crate) counter: usize,
    /// The path of the file being read.
    pub(crate) including: PathBuf,
    /// The name of the program's own file, which includes all others.
    pub(crate) main_file: Arc<str>,
    /// The macros whose `##` has produced something that is not one token, reported once for each.
    pub(crate) bad_pastes: HashSet<u32>,
    out: Vec<Token>,
    open_files: usize,
    includes: usize,
    seen_once: HashSet<PathBuf>,
    /// True if the program is too large, so that its rest is not read.
    stopped: bool,
}

/// The open conditions of the file being read.
#[derive(Default)]
struct Current {
    conditions: Vec<Condition>,
}

/// An open `#if`.
struct Condition {
    opened: Span,
    /// True if the present group of lines is kept.
    active: bool,
    /// True if a group was kept already, or none may be, so that the next ones are skipped.
    taken: bool,
    else_seen: Option<Span>,
}

impl Current {
    fn active(&self) -> bool {
        self.conditions.last().is_none_or(|c| c.active)
    }
}

/// Returns whether `text` is a line number: a decimal number of at most 32 bits.
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
            produced_bytes: 0,
            argument_depth: 0,
            next_macro: 0,
            open_use: None,
            in_lines: false,
            in_condition: false,
            split_string: None,
            next_start: None,
            counter: 0,
            including: PathBuf::new(),
            main_file: "".into(),
            bad_pastes: HashSet::new(),
            out: Vec::new(),
            open_files: 0,
            includes: 0,
            seen_once: HashSet::new(),
            stopped: false,
        }
    }

    /// Defines the macros `defines`, each a name and a value, as a line `#define NAME VALUE` before the
    /// first file would do.
    pub(crate) fn define(&mut self, defines: &[(String, String)]) {
        let clean = |text: &str| text.replace(['\n', '\r'], " ");
        for (name, value) in defines {
            // A file each, so that a backslash at the end of one joins nothing.
            let path = "<command line>".into();
            let text = format!("#define {} {}\n", clean(name), clean(value));
            self.file(Loaded { path, text }, None);
        }
    }

    /// Returns the tokens of the whole program, with an end marker at the end of the file `main`, and
    /// whether they are complete. They are not if the preprocessor stopped early.
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

    /// Reads a file to its end and processes it. Returns the file's id. `included_at` is the place of the `#include`.
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
        let Lexed {
            mut tokens,
            loose_splices,
        } = lexer::lex(id, &text, &mut self.interner);
        for backslash in loose_splices {
            self.sink.push(errors::loose_splice(backslash));
        }
        if let Some(open) = tokens.pop_if(|t| t.kind == T::OpenComment) {
            self.sink.push(errors::unterminated_comment(Span::new(
                id,
                open.span.start,
                open.span.start + 2,
            )));
        }
        if self.open_files == 0 {
            self.main_file = path.to_string_lossy().into();
        }
        self.open_files += 1;
        let outer_path = std::mem::replace(&mut self.including, path);
        let mut current = Current::default();
        self.lines(&tokens, &mut current);
        let rest = self.close_lines();
        self.emit(rest);
        self.including = outer_path;
        self.open_files -= 1;
        if let Some(open) = current.conditions.last() {
            self.sink.push(errors::unterminated_if(open.opened));
        }
        id
    }

    fn lines(&mut self, tokens: &[Token], current: &mut Current) {
        let starts_directive = |t: &Token| t.kind == T::Hash && t.line_start;
        let mut rest = tokens;
        let file_end = |t: &Token| self.sources.file(t.span.file).map_or(0, |f| f.text.len());
        let file_end = tokens.last().map_or(0, file_end) as u32;
        while !rest.is_empty() && !self.stopped {
            let mut directive = None;
            if starts_directive(&rest[0]) {
                let len = 1 + rest[1..]
                    .iter()
                    .position(|t| t.line_start)
                    .unwrap_or(rest.len() - 1);
                self.next_start = rest.get(len).map(|t| t.span.start);
                self.directive(&rest[0], &rest[1..len], current);
                directive = Some(rest[len - 1].span);
                rest = &rest[len..];
            }
            let len = rest.iter().position(starts_directive).unwrap_or(rest.len());
            let end = rest.get(len).map_or(file_end, |hash| hash.span.start);
            if current.active() {
                match directive.filter(|_| self.split_string.is_some()) {
                    Some(last) => {
                        let start = (self.end_of_line(last).end + 1).min(end);
                        self.continue_string(start, end);
                    }
                    None => self.text_run(&rest[..len], end),
                }
            }
            rest = &rest[len..];
        }
        self.end_string();
    }

    /// Expands the macros in lines that are no directives, and adds the result to the program's tokens.
    fn text_lines(&mut self, tokens: &[Token]) {
        let expanded = self.expand_lines(tokens);
        self.emit(expanded);
    }

    fn emit(&mut self, tokens: Vec<Token>) {
        let start = tokens.first().map(|t| t.span);
        for mut token in tokens {
            if token.kind == T::OpenStr {
                self.sink.push(errors::unterminated_string(token.span));
                token.kind = T::Str;
                token.text = self.interner.intern(&format!("{}\"", token.text));
            }
            self.out.push(token);
        }
        if self.out.len() > MAX_TOKENS {
            self.stop(start.unwrap_or_default());
        }
    }

    /// Returns the number of files that include the current file, directly or through others.
    pub(crate) fn include_level(&self) -> usize {
        self.open_files.saturating_sub(1)
    }

    /// Stops the preprocessor because the program has become too large; reports this at `at`.
    pub(crate) fn stop(&mut self, at: Span) {
        self.give_up(errors::program_too_large(at));
    }

    /// Stops the preprocessor and reports the reason `diagnostic`, if it has not stopped already.
    fn give_up(&mut self, diagnostic: Diagnostic) {
        if !self.stopped {
            self.stopped = true;
            self.sink.push(diagnostic);
        }
    }

    /// Executes a directive, or skips it if it is in a part that `#if` leaves out. `hash` is its `#`, and `line`
    /// contains the tokens after the `#`.
    fn directive(&mut self, hash: &Token, line: &[Token], current: &mut Current) {
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
            "include" => self.include(word, args),
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
                    self.seen_once.insert(self.including.clone());
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

    /// Returns the source text from the first to the last of `tokens`, with continued lines joined.
    fn text_of(&self, tokens: &[Token]) -> String {
        match (tokens.first(), tokens.last()) {
            (Some(first), Some(last)) => {
                splice::joined(self.sources.text(first.span.to(last.span))).into_owned()
            }
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

    fn open_condition(&mut self, word: &Token, args: &[Token], current: &mut Current) {
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

    /// Returns whether the condition of an `#if`, `#ifdef`, `#ifndef`, `#elif`, `#elifdef` or `#elifndef`
    /// holds. Reports a malformed condition, and returns false.
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

    fn else_if(&mut self, word: &Token, args: &[Token], current: &mut Current) {
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

    fn else_group(&mut self, word: &Token, args: &[Token], current: &mut Current) {
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

    fn include(&mut self, word: &Token, args: &[Token]) {
        let span = match (args.first(), args.last()) {
            (Some(first), Some(last)) => first.span.to(last.span),
            _ => word.span,
        };
        let Some((name, style)) = self.include_name(word, args) else {
            let span = args.first().map_or(word.span, |t| t.span);
            self.sink.push(errors::malformed_include(span));
            return;
        };
        // The arguments of a macro end in their own file.
        let open = self.close_lines();
        self.emit(open);
        self.includes += 1;
        if self.open_files >= MAX_INCLUDE_DEPTH {
            self.give_up(errors::includes_too_deep(span, MAX_INCLUDE_DEPTH));
            return;
        }
        if self.includes > MAX_INCLUDES {
            self.stop(span);
            return;
        }
        match self.loader.include(&name, style, &self.including) {
            Ok(loaded) if self.seen_once.contains(&loaded.path) => {}
            Ok(loaded) => {
                self.file(loaded, Some(span));
            }
            Err(error) => {
                let like = self.loader.similar(&name, style, &self.including);
                let message = errors::cannot_include(span, &name, &error, like.as_deref());
                self.sink.push(message);
            }
        }
    }

    /// Returns the name of the file that an `#include` names, written directly or produced by macros, and
    /// whether it is in quotes or angle brackets; `None` if it names no file.
    fn include_name(&mut self, word: &Token, args: &[Token]) -> Option<(String, IncludeStyle)> {
        let first = args.first()?;
        if first.kind == T::Lt {
            // The text between the brackets is not tokens: `<dir//x.p4>` and `<a-b.p4>` are names too.
            let text = &self.sources.file(first.span.file)?.text;
            let line = splice::logical_line(text.get(first.span.end as usize..)?);
            let (name, _) = line.split_once('>')?;
            return Some((name.trim().to_string(), IncludeStyle::Angled));
        }
        if first.kind.is_word() {
            let expanded = self.expand(args);
            return header_name(&expanded);
        }
        self.no_more(word, &args[1..]);
        header_name(&args[..1])
    }

    /// Executes `#line 12 "file"`, whose number and name macros may produce, or the form `# 12 "file" 1 3` that
    /// preprocessors write, whose flags (1 to 4) say nothing that matters here. Reports a malformed one.
    fn line_directive(&mut self, word: &Token, args: &[Token]) {
        let last = args.last().unwrap_or(word).span;
        let args = self.expand(args);
        let (number, rest) = match args.split_first() {
            Some((number, rest)) if number.kind == T::Int => (number.text.parse().ok(), rest),
            _ => (None, &args[..]),
        };
        let (name, rest) = match rest.split_first() {
            Some((name, rest)) if name.kind == T::Str => {
                (Some(Arc::from(name.text.trim_matches('"'))), rest)
            }
            _ => (None, rest),
        };
        let is_flag = |t: &Token| matches!(&*t.text, "1" | "2" | "3" | "4");
        let flags = word.kind == T::Hash && name.is_some() && rest.iter().all(is_flag);
        match number.filter(|_| rest.is_empty() || flags) {
            Some(number) => {
                let end = self.end_of_line(last);
                self.sources.override_line(end, number, name);
            }
            None => self.sink.push(errors::malformed_line(word.span)),
        }
    }

    /// Returns the place of the end of the line on which a directive stands whose last token is at `last`. Continued
    /// lines and comments of several lines belong to the line.
    fn end_of_line(&self, last: Span) -> Span {
        let text = self.sources.file(last.file).map_or("", |f| &f.text);
        let next = self.next_start.map_or(text.len(), |next| next as usize);
        let blanks = text.get(last.end as usize..next).unwrap_or("");
        let end = last.end + lexer::rest_of_line(blanks);
        Span::new(last.file, end, end)
    }
}

/// Returns the file name that `tokens` contain, and whether it is in quotes or angle brackets; `None` if
/// they are no file name.
pub(crate) fn header_name(tokens: &[Token]) -> Option<(String, IncludeStyle)> {
    match tokens {
        [name] if name.kind == T::Str => Some((
            name.text.trim_matches('"').to_string(),
            IncludeStyle::Quoted,
        )),
        [open, inside @ .., close] if open.kind == T::Lt && close.kind == T::Gt => {
            let name = inside.iter().map(|t| &*t.text).collect();
            Some((name, IncludeStyle::Angled))
        }
        _ => None,
    }
}
