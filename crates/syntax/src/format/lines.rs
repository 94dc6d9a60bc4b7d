//! A file as lines of tokens and comments, with the blanks that the author put between them.

use super::Unformattable;
use crate::lexer::{self, Lexed};
use crate::source::FileId;
use crate::token::{Interner, Token, TokenKind as T};

/// The columns to which a tab goes are multiples of this.
const TAB: usize = 4;

/// A line of a file.
pub(super) enum Line {
    /// Tokens and comments.
    Code(Vec<Piece>),
    /// A directive of the preprocessor with the lines that continue it, which stays as it is.
    Directive(String),
    /// One or more empty lines.
    Blank,
}

/// A token or a comment.
pub(super) struct Piece {
    /// The text.
    pub text: String,
    /// The kind of token; `None` for a comment.
    pub kind: Option<T>,
    /// The column in the file.
    pub column: usize,
    /// The blanks before it in the file, if it is not the first of its line.
    pub written: usize,
    /// The blanks before it as they should be.
    pub gap: usize,
}

/// Splits a file into lines.
pub(super) fn split(text: &str) -> Result<Vec<Line>, Unformattable> {
    let Lexed { tokens, .. } = lexer::lex(FileId(0), text, &mut Interner::default());
    let mut splitter = Splitter {
        text,
        at: 0,
        lines: Vec::new(),
        current: Vec::new(),
    };
    let mut rest = &tokens[..];
    while let Some((token, after)) = rest.split_first() {
        splitter.blanks(token.span.start as usize)?;
        if token.kind == T::Hash && token.line_start {
            let count = after.iter().take_while(|t| !t.line_start).count();
            splitter.directive(token, &after[..count], after.get(count))?;
            rest = &after[count..];
        } else {
            splitter.token(token)?;
            rest = after;
        }
    }
    splitter.blanks(text.len())?;
    splitter.end_line();
    Ok(splitter.lines)
}

struct Splitter<'a> {
    text: &'a str,
    /// The byte up to which the text is read.
    at: usize,
    lines: Vec<Line>,
    current: Vec<Piece>,
}

impl Splitter<'_> {
    fn fail<T>(&self, at: usize, reason: &'static str) -> Result<T, Unformattable> {
        let before = self.text.get(..at).unwrap_or("");
        let line = before.matches('\n').count() as u32 + 1;
        Err(Unformattable { line, reason })
    }

    fn end_line(&mut self) {
        if !self.current.is_empty() {
            let pieces = std::mem::take(&mut self.current);
            self.lines.push(Line::Code(pieces));
        }
    }

    fn token(&mut self, token: &Token) -> Result<(), Unformattable> {
        let (start, end) = (token.span.start as usize, token.span.end as usize);
        match token.kind {
            T::OpenComment => return self.fail(start, "this comment has no end"),
            T::OpenStr | T::SplitStr => return self.fail(start, "this string has no end"),
            _ => {}
        }
        let text = self.text.get(start..end).unwrap_or("");
        if *text != *token.text {
            return self.fail(start, "a backslash continues a line that is no directive");
        }
        self.piece(start, end, Some(token.kind));
        Ok(())
    }

    fn piece(&mut self, start: usize, end: usize, kind: Option<T>) {
        let line = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let column = columns(&self.text[line..start]);
        let written = match self.current.last() {
            Some(_) if self.at >= line => column - columns(&self.text[line..self.at]),
            // The token or comment before ends on this line, and began on another.
            Some(_) => 1,
            None => 0,
        };
        self.current.push(Piece {
            text: self.text[start..end].to_string(),
            kind,
            column,
            written,
            gap: written.min(if kind.is_none() { 2 } else { 1 }),
        });
        self.at = end;
    }

    /// Reads blanks and comments up to the byte `end`.
    fn blanks(&mut self, end: usize) -> Result<(), Unformattable> {
        let mut at = self.at;
        let mut breaks = 0;
        while at < end {
            let rest = &self.text[at..end];
            let comment = match &rest.as_bytes()[..rest.len().min(2)] {
                b"//" => Some(rest.find('\n').unwrap_or(rest.len())),
                b"/*" => Some(rest.find("*/").map_or(rest.len(), |len| len + 2)),
                _ => None,
            };
            if let Some(length) = comment {
                let text = rest[..length].trim_end();
                if text.starts_with("//") && text.ends_with('\\') {
                    return self.fail(at, "a backslash continues a comment");
                }
                self.piece(at, at + text.len(), None);
                (breaks, at) = (0, at + length);
                continue;
            }
            match rest.chars().next() {
                Some('\n') => {
                    self.end_line();
                    breaks += 1;
                    if breaks == 2 {
                        self.lines.push(Line::Blank);
                    }
                }
                Some('\\') => {
                    return self.fail(at, "a backslash continues a line that is no directive");
                }
                _ => {}
            }
            at += rest.chars().next().map_or(1, char::len_utf8);
            if self.current.is_empty() {
                self.at = at;
            }
        }
        Ok(())
    }

    /// Reads a directive that begins with the token `hash` and has the tokens `words`; `next` is the token behind it.
    fn directive(
        &mut self,
        hash: &Token,
        words: &[Token],
        next: Option<&Token>,
    ) -> Result<(), Unformattable> {
        let start = hash.span.start as usize;
        if !self.current.is_empty() {
            return self.fail(start, "a comment stands before a directive");
        }
        let line = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let last = words.last().unwrap_or(hash).span.end as usize;
        let until = next.map_or(self.text.len(), |t| t.span.start as usize);
        let end = last + lexer::rest_of_line(&self.text[last..until]) as usize;
        self.lines
            .push(Line::Directive(self.text[line..end].trim_end().to_string()));
        self.at = end;
        // The end of the directive's line is no empty line.
        if self.text[end..].starts_with('\n') {
            self.at += 1;
            if self.text[self.at..until]
                .trim_start_matches([' ', '\t', '\r'])
                .starts_with('\n')
            {
                self.lines.push(Line::Blank);
            }
        }
        Ok(())
    }
}

/// Returns the number of columns of blanks and other text at the beginning of a line.
pub(super) fn columns(text: &str) -> usize {
    text.chars().fold(0, |column, letter| match letter {
        '\t' => (column / TAB + 1) * TAB,
        _ => column + 1,
    })
}
