//! Turns text into tokens, one file at a time.
//!
//! The lexer reports nothing: text that is not a token becomes an error token, because it may be in a part
//! that `#if` leaves out. It does not know directives or macros; it only marks the first token of each line.

use std::ops::Range;

use crate::source::{FileId, Span};
use crate::splice::{self, Cut, Spliced};
use crate::token::{Interner, SYMBOLS, Token, TokenKind};

/// The directives at which a string without a closing quote ends.
const DIRECTIVES: [&[u8]; 14] = [
    b"define",
    b"elif",
    b"elifdef",
    b"elifndef",
    b"else",
    b"endif",
    b"error",
    b"if",
    b"ifdef",
    b"ifndef",
    b"include",
    b"line",
    b"undef",
    b"warning",
];

/// The tokens of a file.
pub(crate) struct Lexed {
    /// All tokens, without an end marker.
    pub tokens: Vec<Token>,
    /// The places of backslashes, outside of comments, that continue a line though blanks follow them.
    pub loose_splices: Vec<Span>,
}

/// Splits a file into tokens. Continued lines are joined first, but the tokens' spans are places in the
/// original file.
pub(crate) fn lex(file: FileId, source: &str, interner: &mut Interner) -> Lexed {
    let spliced = splice::splice(source);
    let text = &*spliced.text;
    let mut lexer = Lexer::new(text);
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
        let shown = interner.intern(match kind {
            TokenKind::OpenComment => "/*",
            _ => &text[start..lexer.pos],
        });
        let span = Span::new(file, spliced.start(start), spliced.end(lexer.pos));
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
    Lexed {
        tokens,
        loose_splices: loose_splices(file, &spliced, &lexer.comments),
    }
}

/// Returns the places of the backslashes that are followed by blanks and the end of their line, except for those in
/// `comments`.
fn loose_splices(file: FileId, spliced: &Spliced<'_>, comments: &[Range<usize>]) -> Vec<Span> {
    let in_comment = |at: usize| {
        let next = comments.partition_point(|comment| comment.end < at);
        comments.get(next).is_some_and(|comment| comment.start < at)
    };
    let loose = |cut: &&Cut| cut.blanks && !in_comment(cut.at);
    let backslash = |cut: &Cut| {
        let start = cut.backslash as u32;
        Span::new(file, start, start + 1)
    };
    spliced.cuts().iter().filter(loose).map(backslash).collect()
}

/// Returns the kind of `text` if it is exactly one token, else `None`.
pub(crate) fn single(text: &str) -> Option<TokenKind> {
    let mut lexer = Lexer::new(text);
    if text.is_empty() || lexer.skip_blanks().is_some() || lexer.pos != 0 {
        return None;
    }
    let kind = lexer.token();
    (lexer.pos == text.len() && kind != TokenKind::Unknown).then_some(kind)
}

/// Returns how many bytes of a text of blanks and comments, which begins within a line, belong to that line.
/// Continued lines and comments of several lines count as one line.
pub(crate) fn rest_of_line(blanks: &str) -> u32 {
    let spliced = splice::splice(blanks);
    let mut lexer = Lexer::new(&spliced.text);
    lexer.one_line = true;
    lexer.skip_blanks();
    spliced.start(lexer.pos)
}

struct Lexer<'a> {
    text: &'a str,
    pos: usize,
    /// The places of the comments that were read so far.
    comments: Vec<Range<usize>>,
    /// True if only the tokens of one line are read: then a line end is not skipped.
    one_line: bool,
    line_start: bool,
    space_before: bool,
    /// True if the line starts with `#`: it may be a comment, in which quotes and apostrophes need not be in pairs.
    in_directive: bool,
    /// How far the search for the closing quote of a string went in vain. Strings that begin before this position are
    /// searched in their own line only, so that no byte is read many times.
    string_open_until: usize,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str) -> Lexer<'a> {
        Lexer {
            text,
            pos: 0,
            comments: Vec::new(),
            one_line: false,
            line_start: true,
            space_before: false,
            in_directive: false,
            string_open_until: 0,
        }
    }

    fn rest(&self) -> &str {
        &self.text[self.pos..]
    }

    fn skip_while(&mut self, wanted: impl Fn(char) -> bool) {
        let rest = self.rest();
        let len = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.pos += len;
    }

    /// Skips blanks, comments and line ends (in the mode `one_line`, stops before a line end). Returns the position
    /// of a comment without an end; `None` if there is none.
    fn skip_blanks(&mut self) -> Option<usize> {
        loop {
            let rest = self.rest();
            if rest.starts_with('\n') {
                if self.one_line {
                    return None;
                }
                self.line_start = true;
                self.in_directive = false;
                self.pos += 1;
            } else if rest.starts_with([' ', '\t', '\r', '\u{b}', '\u{c}', '\u{feff}']) {
                self.pos += rest.chars().next().map_or(1, char::len_utf8);
            } else if rest.starts_with("//") {
                let start = self.pos;
                self.skip_while(|c| c != '\n');
                self.comments.push(start..self.pos);
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let start = self.pos;
                let closed = comment.find("*/").map(|len| start + len + 4);
                self.pos = closed.unwrap_or(self.text.len());
                self.comments.push(start..self.pos);
                if closed.is_none() {
                    return Some(start);
                }
            } else {
                return None;
            }
            self.space_before = true;
        }
    }

    /// Reads one token and returns its kind. At least one character must be left.
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
        if first == '\'' {
            self.pos += self.character();
            return TokenKind::Unknown;
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

    /// Returns the length in bytes of the token that begins with an apostrophe. In a directive it is a
    /// character constant of C, up to its closing apostrophe. Elsewhere the token is the apostrophe alone,
    /// unless the text up to the closing apostrophe (or the line's end) contains the start of a comment, as
    /// in `it's /* so`; then it is that text.
    fn character(&self) -> usize {
        let rest = self.rest();
        let line = &rest[..rest.find('\n').unwrap_or(rest.len())];
        let close = unescaped(&line[1..], b'\'');
        let whole = close.map_or(line.len(), |close| close + 2);
        match (self.in_directive && close.is_some()) || line[..whole].contains("/*") {
            true => whole,
            false => 1,
        }
    }

    /// Reads a string, which may contain line ends but no directives. A string without an end ends with its line.
    fn string(&mut self) -> TokenKind {
        let bytes = self.rest().as_bytes();
        let mut i = 1;
        while i < bytes.len() {
            match bytes[i] {
                b'"' => {
                    self.pos += i + 1;
                    return TokenKind::Str;
                }
                b'\n' if self.in_directive || self.pos < self.string_open_until => break,
                b'\n' if is_directive(&bytes[i + 1..]) => {
                    if closes_string(&self.rest()[i..]) {
                        let rest = self.rest();
                        self.pos += rest.find('\n').unwrap_or(rest.len());
                        return TokenKind::SplitStr;
                    }
                    break;
                }
                b'\\' => i += 2,
                _ => i += 1,
            }
        }
        if !self.in_directive {
            self.string_open_until = self.string_open_until.max(self.pos + i);
        }
        let rest = self.rest();
        let line = &rest[..rest.find('\n').unwrap_or(rest.len())];
        // Brackets and semicolons at the end of the line were hardly meant to be in it.
        self.pos += line
            .trim_end_matches(|c: char| c.is_whitespace() || ")]};".contains(c))
            .len();
        TokenKind::OpenStr
    }
}

/// Returns the byte position of the first `quote` in `text` that no backslash escapes; `None` if there is none.
/// A backslash may itself be escaped.
pub(crate) fn unescaped(text: &str, quote: u8) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|b| {
        let found = b == quote && !escaped;
        escaped = b == b'\\' && !escaped;
        found
    })
}

/// Returns whether the next quote in `text` closes a string rather than opening one, judged by the
/// character after it, such as `)` or `;`.
fn closes_string(text: &str) -> bool {
    unescaped(text, b'"').is_some_and(|i| {
        let behind = text[i + 1..].trim_start();
        behind.starts_with([')', ',', ';', ']', '}', '+', '@'])
    })
}

/// Returns whether a line begins with `#` and the name of a preprocessor directive.
fn is_directive(line: &[u8]) -> bool {
    let mut rest = line.trim_ascii_start();
    let blanks = &line[..line.len() - rest.len()];
    if blanks.contains(&b'\n') || rest.first() != Some(&b'#') {
        return false;
    }
    rest = rest[1..].trim_ascii_start();
    let len = rest.iter().position(|b| !b.is_ascii_alphabetic());
    DIRECTIVES.contains(&&rest[..len.unwrap_or(rest.len())])
}
