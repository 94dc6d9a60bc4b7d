//! Turns text into tokens, one file at a time.
//!
//! The lexer reports nothing: text that is not a token becomes an error token, because it may be in a part
//! that `#if` leaves out. It does not know directives or macros; it only marks the first token of each line.

use crate::source::{FileId, Span};
use crate::token::{Interner, SYMBOLS, Token, TokenKind};

/// All tokens of a file, without an end marker.
pub(crate) fn lex(file: FileId, text: &str, interner: &mut Interner) -> Vec<Token> {
    let mut lexer = Lexer {
        text,
        pos: 0,
        line_start: true,
        space_before: false,
        in_directive: false,
        string_left_open: false,
    };
    let mut tokens = Vec::new();
    loop {
        let unclosed = lexer.skip_blanks();
        let start = lexer.pos;
        let kind = match unclosed {
            Some(_) => TokenKind::OpenComment,
            None if start >= text.len() => break,
            None => lexer.token(),
        };
        let start = unclosed.unwrap_or(start);
        let joint = kind == TokenKind::Gt && lexer.rest().starts_with('>');
        let raw = &text[start..lexer.pos];
        // A string is the one token a continued line may cut through.
        let shown = if kind == TokenKind::Str && raw.contains("\\\n") {
            interner.intern(&raw.replace("\\\n", ""))
        } else {
            interner.intern(if kind == TokenKind::OpenComment {
                "/*"
            } else {
                raw
            })
        };
        let span = Span::new(file, start as u32, lexer.pos as u32);
        let (line_start, space_before) = (lexer.line_start, lexer.space_before);
        lexer.in_directive |= line_start && kind == TokenKind::Hash;
        tokens.push(Token {
            kind,
            text: shown,
            span,
            line_start,
            space_before,
            joint,
        });
        lexer.line_start = false;
        lexer.space_before = false;
    }
    tokens
}

/// The kind of `text` if it is exactly one token.
pub(crate) fn single(text: &str) -> Option<TokenKind> {
    let mut lexer = Lexer {
        text,
        pos: 0,
        line_start: false,
        space_before: false,
        in_directive: false,
        string_left_open: false,
    };
    if text.is_empty() || lexer.skip_blanks().is_some() || lexer.pos != 0 {
        return None;
    }
    let kind = lexer.token();
    (lexer.pos == text.len() && kind != TokenKind::Unknown).then_some(kind)
}

struct Lexer<'a> {
    text: &'a str,
    pos: usize,
    line_start: bool,
    space_before: bool,
    /// Whether the line starts with `#`: such a line may be a comment, whose quotes and apostrophes need no partners.
    in_directive: bool,
    /// Whether a string did not end. Others are then not looked for beyond their lines, so that each byte is read a few times only.
    string_left_open: bool,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.pos..]
    }

    fn skip_while(&mut self, wanted: impl Fn(char) -> bool) {
        let rest = self.rest();
        let len = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.pos += len;
    }

    /// Skips blanks, comments and continued line ends. Returns where a comment without an end starts.
    fn skip_blanks(&mut self) -> Option<usize> {
        loop {
            let rest = self.rest();
            if rest.starts_with('\n') {
                self.line_start = true;
                self.in_directive = false;
                self.pos += 1;
            } else if let Some(len) = continuation(rest) {
                self.pos += len;
            } else if rest.starts_with([' ', '\t', '\r', '\u{b}', '\u{c}', '\u{feff}']) {
                self.pos += rest.chars().next().map_or(1, char::len_utf8);
            } else if rest.starts_with("//") {
                self.skip_line_comment();
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let Some(len) = comment.find("*/") else {
                    let start = self.pos;
                    self.pos = self.text.len();
                    return Some(start);
                };
                self.pos += len + 4;
            } else {
                return None;
            }
            self.space_before = true;
        }
    }

    /// Up to but not including the line end, unless that is continued.
    fn skip_line_comment(&mut self) {
        while self.pos < self.text.len() && !self.rest().starts_with('\n') {
            match continuation(self.rest()) {
                Some(len) => self.pos += len,
                None => self.pos += self.rest().chars().next().map_or(1, char::len_utf8),
            }
        }
    }

    /// Reads one token; there is at least one character.
    fn token(&mut self) -> TokenKind {
        let Some(first) = self.rest().chars().next() else {
            return TokenKind::Eof;
        };
        if first.is_ascii_alphabetic() || first == '_' {
            let start = self.pos;
            self.skip_while(|c| c.is_ascii_alphanumeric() || c == '_');
            return TokenKind::keyword(&self.text[start..self.pos]).unwrap_or(TokenKind::Ident);
        }
        if first.is_ascii_digit() {
            // Also takes what is not a number, such as `0x` or `8w`: the parser says what is wrong with it.
            self.skip_while(|c| c.is_ascii_alphanumeric() || c == '_');
            return TokenKind::Int;
        }
        if first == '"' {
            return self.string();
        }
        for (text, kind) in SYMBOLS {
            if self.rest().starts_with(text) {
                self.pos += text.len();
                return *kind;
            }
        }
        self.pos += first.len_utf8();
        TokenKind::Unknown
    }

    /// A string may hold line ends. One that never ends is taken to end with its line.
    fn string(&mut self) -> TokenKind {
        let bytes = self.rest().as_bytes();
        let mut i = 1;
        while i < bytes.len() {
            match bytes[i] {
                b'"' => {
                    self.pos += i + 1;
                    return TokenKind::Str;
                }
                b'\n' if self.in_directive || self.string_left_open => break,
                b'\\' => i += 2,
                _ => i += 1,
            }
        }
        self.string_left_open |= !self.in_directive;
        let rest = self.rest();
        let line = &rest[..rest.find('\n').unwrap_or(rest.len())];
        // Brackets and semicolons at the end of the line were hardly meant to be in it.
        self.pos += line
            .trim_end_matches(|c: char| c.is_whitespace() || ")]};".contains(c))
            .len();
        TokenKind::OpenStr
    }
}

/// The length of a backslash and line end at the start of `rest`.
fn continuation(rest: &str) -> Option<usize> {
    if rest.starts_with("\\\n") {
        Some(2)
    } else if rest.starts_with("\\\r\n") {
        Some(3)
    } else {
        None
    }
}
