//! Writes the tokens that the preprocessor has left as text again: a program without directives and comments.
//!
//! The text means what the tokens mean, so a compiler makes the same program of it. It does not know the grammar.

use std::sync::Arc;

use crate::source::{Location, SourceMap};
use crate::token::{Token, TokenKind as T};

/// The most empty lines that stand for lines without tokens; for more a line marker is written.
const MAX_EMPTY_LINES: u32 = 8;

/// Returns the text of `tokens`. With `markers` every token is on the line of its place in the source, by empty lines
/// and by lines such as `# 12 "file.p4"`, so that messages about the text name places in the source. Without, only line
/// ends of the source are kept.
pub(crate) fn text(tokens: &[Token], sources: &SourceMap, markers: bool) -> String {
    let mut out = Writer {
        text: String::new(),
        file: None,
        line: 1,
        markers,
    };
    let mut before: Option<&Token> = None;
    for token in tokens.iter().filter(|t| t.kind != T::Eof) {
        let at = sources.location(token.span);
        let new_line = before.is_none() || out.moved(&at);
        if new_line {
            out.go_to(&at, before.is_none());
        }
        let written = sources.text(token.span) == &*token.text;
        if new_line && written && token.line_start {
            let blanks = at.column.saturating_sub(1) as usize;
            out.text.extend(std::iter::repeat_n(' ', blanks));
        } else if before.is_some_and(|last| apart(last, token)) {
            out.text.push(' ');
        }
        out.push(&token.text);
        before = Some(token);
    }
    out.text.push('\n');
    out.text
}

/// Returns whether a blank has to stand between two tokens of one line: where the source has one, and where the
/// second was not written right behind the first, as in the text of a macro.
fn apart(last: &Token, token: &Token) -> bool {
    let adjacent = last.span.file == token.span.file && last.span.end == token.span.start;
    let shift = last.joint && token.kind == T::Gt;
    !shift && (token.space_before || !adjacent)
}

struct Writer {
    text: String,
    /// The file of the source to which the present line belongs; `None` before the first token.
    file: Option<Arc<str>>,
    /// The line of the source to which the present line belongs.
    line: u32,
    markers: bool,
}

impl Writer {
    fn moved(&self, at: &Location) -> bool {
        self.file.as_ref() != Some(&at.file) || at.line != self.line
    }

    /// Begins the line of the text for the tokens at `at`.
    fn go_to(&mut self, at: &Location, first: bool) {
        let same_file = self.file.as_ref() == Some(&at.file);
        let below = at.line.checked_sub(self.line).filter(|_| same_file);
        match below {
            Some(lines) if lines <= MAX_EMPTY_LINES => {
                let lines = if self.markers { lines } else { 1 };
                self.text.extend(std::iter::repeat_n('\n', lines as usize));
            }
            _ => {
                if !first {
                    self.text.push('\n');
                }
                if self.markers {
                    self.text
                        .push_str(&format!("# {} \"{}\"\n", at.line, at.file));
                }
            }
        }
        self.file = Some(at.file.clone());
        self.line = at.line;
    }

    fn push(&mut self, token: &str) {
        self.text.push_str(token);
        self.line += token.bytes().filter(|b| *b == b'\n').count() as u32;
    }
}
