//! Text to tokens, one at a time. Knows no grammar.

/// A token; texts are borrowed from the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A letter or `_`, then letters, digits and `_`.
    Word(&'a str),
    /// A digit, then letters and digits.
    Number(&'a str),
    /// The text between the quotes, with its escape sequences.
    String(&'a str),
    /// A single character.
    Mark(char),
    /// `..`
    DotDot,
    /// The end of the text.
    End,
}

/// Splits a text into tokens.
#[derive(Clone)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0 }
    }

    /// Reads the next token, and returns its position in bytes and the token. `Err` holds the position and a message.
    pub(super) fn next(&mut self) -> Result<(usize, Token<'a>), (usize, String)> {
        self.skip_blank();
        let start = self.at;
        let rest = &self.text[start..];
        let Some(first) = rest.chars().next() else {
            return Ok((start, Token::End));
        };
        let token = match first {
            'a'..='z' | 'A'..='Z' | '_' => Token::Word(self.take_word()),
            '0'..='9' => Token::Number(self.take_word()),
            '"' => Token::String(self.take_string()?),
            '.' if rest.starts_with("..") => {
                self.at += 2;
                Token::DotDot
            }
            '%' | '=' | ',' | '.' | ':' | '(' | ')' | '{' | '}' | '[' | ']' | '@' | '&' | '/'
            | '-' => {
                self.at += 1;
                Token::Mark(first)
            }
            other => return Err((start, format!("{other:?} begins no token"))),
        };
        Ok((start, token))
    }

    fn skip_blank(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                b';' => {
                    let rest = &bytes[self.at..];
                    let line = rest.iter().position(|&b| b == b'\n');
                    self.at += line.unwrap_or(rest.len());
                }
                _ => break,
            }
        }
    }

    fn take_word(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let word = &rest[..end.unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    fn take_string(&mut self) -> Result<&'a str, (usize, String)> {
        let start = self.at + 1;
        let bytes = self.text.as_bytes();
        let mut at = start;
        loop {
            match bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => at += 2,
                Some(b'\n') | None => return Err((self.at, "this string does not end".into())),
                Some(_) => at += 1,
            }
        }
        self.at = at + 1;
        // A quote is one byte and never inside a character, so both ends are character borders.
        Ok(&self.text[start..at])
    }
}

/// Replaces the escape sequences in the text of a string token by the characters that they stand for. `Err`
/// holds a message, which applies to the whole string.
pub(super) fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let simple = match rest.chars().next() {
            Some('"') => '"',
            Some('\\') => '\\',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                let (c, after) = unicode(rest).ok_or("\\u needs {HEX} of a character")?;
                out.push(c);
                rest = after;
                continue;
            }
            _ => return Err("an unknown escape".into()),
        };
        out.push(simple);
        rest = &rest[1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// Reads `u{HEX}`, the rest of an escape sequence, at the start of `text`, and returns the character that it
/// stands for and the text after it; `None` if there is no valid one.
fn unicode(text: &str) -> Option<(char, &str)> {
    let (digits, after) = text.strip_prefix("u{")?.split_once('}')?;
    let good = (1..=6).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let code = good.then(|| u32::from_str_radix(digits, 16).ok())??;
    Some((char::from_u32(code)?, after))
}
