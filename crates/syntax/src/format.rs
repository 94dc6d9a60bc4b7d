//! Formatting: indentation, blanks within lines, columns, blank lines.
//!
//! The line breaks are the author's. So are preprocessor lines, which stay as they are, and the choice to align a column,
//! such as the names of a header's fields; the formatter then keeps the column straight. It works on tokens, so that it
//! formats files that are no programs of their own, and it changes nothing but blanks: [`format`] compares the tokens and
//! comments before and after.

mod columns;
mod layout;
mod lines;
mod spacing;

use std::fmt;

use crate::lexer;
use crate::source::FileId;
use crate::token::{Interner, TokenKind as T};

/// The reason why a file cannot be formatted, and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unformattable {
    /// The line, from 1.
    pub line: u32,
    /// The reason, as a sentence without a full stop.
    pub reason: &'static str,
}

impl fmt::Display for Unformattable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

/// Returns the text of a file with its blanks as they should be. Fails if a comment or string has no end, or if a line
/// that is no directive is continued with a backslash.
pub fn format(text: &str) -> Result<String, Unformattable> {
    // The first line tells how lines end.
    let carriage_returns = text
        .split('\n')
        .next()
        .is_some_and(|line| line.ends_with('\r'));
    let plain = text.replace("\r\n", "\n");
    let mut all = lines::split(&plain)?;
    spacing::apply(&mut all);
    let placed = layout::place(&all);
    columns::align(&mut all, &placed);
    let placed = layout::place(&all);
    let formatted = layout::write(&all, &placed);
    if content(&plain) != content(&formatted) {
        return Err(Unformattable {
            line: 1,
            reason: "formatting would change more than blanks, which is an error of the formatter",
        });
    }
    Ok(match carriage_returns {
        true => formatted.replace('\n', "\r\n"),
        false => formatted,
    })
}

/// Returns all of a text but its blanks: the tokens, with the beginnings of directives, and the comments.
fn content(text: &str) -> (Vec<(T, bool, String)>, String) {
    let lexed = lexer::lex(FileId(0), text, &mut Interner::default());
    let mut comments = String::new();
    let mut end = 0;
    for token in &lexed.tokens {
        comments.extend(text.get(end..token.span.start as usize));
        end = token.span.end as usize;
    }
    comments.extend(text.get(end..));
    comments.retain(|c| !c.is_whitespace());
    let tokens = lexed.tokens.into_iter().map(|token| {
        let directive = token.kind == T::Hash && token.line_start;
        (token.kind, directive, token.text.to_string())
    });
    (tokens.collect(), comments)
}

/// Returns the number of columns that a text takes.
fn width(text: &str) -> usize {
    text.chars().count()
}
