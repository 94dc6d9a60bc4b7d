//! Strings of several lines with directives among them, as in `@note("a`, `#ifdef X`, `b`, `#endif`, `c")`.
//!
//! A string begins in lines that are kept, and goes on with each line that is kept, up to its quote. The reference compiler comes to
//! the same, since its preprocessor sees lines and no strings of several lines.

use super::Preprocessor;
use crate::lexer::{self, Lexed};
use crate::source::{FileId, Span};
use crate::splice;
use crate::token::{Token, TokenKind as T};

/// A string literal in whose text a directive stands.
pub(super) struct SplitString {
    /// The token of the string's first line.
    first: Token,
    text: String,
}

impl Preprocessor<'_> {
    /// Processes the lines of text before `end`, the byte position of the next directive or of the end of the file.
    pub(super) fn text_run(&mut self, tokens: &[Token], end: u32) {
        let split = tokens.iter().position(|t| t.kind == T::SplitStr);
        self.text_lines(&tokens[..split.unwrap_or(tokens.len())]);
        if let Some(first) = split.map(|i| &tokens[i]) {
            self.split_string = Some(SplitString {
                first: first.clone(),
                text: self.lines_between(first.span.file, first.span.start, end),
            });
        }
    }

    /// Returns the text from `start` to the end of the last complete line before `end`, with continued lines joined.
    fn lines_between(&self, file: FileId, start: u32, end: u32) -> String {
        let text = self.sources.text(Span::new(file, start, end));
        let trimmed = text.trim_end_matches([' ', '\t']);
        let whole = if trimmed.ends_with('\n') {
            trimmed
        } else {
            text
        };
        splice::joined(whole).into_owned()
    }

    /// Continues a string that a directive has interrupted with the text from `start` to `end`. If the string ends
    /// there, also processes the tokens after it.
    pub(super) fn continue_string(&mut self, start: u32, end: u32) {
        let Some(mut string) = self.split_string.take() else {
            return;
        };
        let file = string.first.span.file;
        let raw = self.sources.text(Span::new(file, start, end)).to_string();
        let Some(quote) = lexer::unescaped(&raw, b'"') else {
            string.text += &self.lines_between(file, start, end);
            self.split_string = Some(string);
            return;
        };
        string.text += &splice::joined(&raw[..=quote]);
        let behind = start + quote as u32 + 1;
        let mut tokens = vec![Token {
            kind: T::Str,
            text: self.interner.intern(&string.text),
            span: string.first.span.to(Span::new(file, behind, behind)),
            ..string.first
        }];
        let Lexed { tokens: rest, .. } = lexer::lex(file, &raw[quote + 1..], &mut self.interner);
        tokens.extend(rest.into_iter().enumerate().map(|(i, token)| {
            let span = Span::new(file, token.span.start + behind, token.span.end + behind);
            let blanks = &raw[quote + 1..(span.start - start) as usize];
            Token {
                span,
                line_start: token.line_start && (i > 0 || blanks.contains('\n')),
                ..token
            }
        }));
        self.text_run(&tokens, end);
    }

    /// Reports a string that has no closing quote at the end of its file, and processes the first line of
    /// the string as the whole string.
    pub(super) fn end_string(&mut self) {
        if let Some(string) = self.split_string.take() {
            self.text_lines(&[Token {
                kind: T::OpenStr,
                ..string.first
            }]);
        }
    }
}
