//! The integer expressions of `#if` and `#elif`.
//!
//! Values are signed or unsigned integers of 64 bits that wrap; names that are not macros count as 0. Integer suffixes, a leading 0
//! for octal and characters have their meaning in C (ISO C 6.10.1), because this is the preprocessor's language and not P4.

use super::{Preprocessor, header_name};
use crate::errors;
use crate::source::Span;
use crate::token::{Token, TokenKind as T};

/// The deepest nesting of operators and parentheses.
const MAX_DEPTH: usize = 100;

impl Preprocessor<'_> {
    /// Evaluates the condition of an `#if` or `#elif`. Reports a malformed condition, and returns false.
    pub(crate) fn condition(&mut self, word: &Token, args: &[Token]) -> bool {
        let tokens = self.expand_condition(args);
        let tokens = self.replace_questions(&tokens);
        let mut evaluator = Evaluator {
            tokens: &tokens,
            pos: 0,
            depth: 0,
            after: word.span,
        };
        let value = evaluator.whole();
        match value {
            Ok(value) => value.holds(),
            Err((span, problem)) => {
                self.sink.push(errors::bad_condition(span, &problem));
                false
            }
        }
    }

    /// Replaces `defined X`, `defined(X)` and `__has_include(...)` by 1 or 0. The macros of the condition
    /// are already expanded, except in the operands of these words.
    fn replace_questions(&mut self, tokens: &[Token]) -> Vec<Token> {
        let mut out = Vec::with_capacity(tokens.len());
        let mut i = 0;
        while i < tokens.len() {
            let answer = match &*tokens[i].text {
                "defined" => self.defined(&tokens[i + 1..]),
                "__has_include" => self.has_include(&tokens[i + 1..]),
                _ => None,
            };
            let Some((yes, used)) = answer else {
                out.push(tokens[i].clone());
                i += 1;
                continue;
            };
            out.push(Token {
                kind: T::Int,
                text: self.interner.intern(if yes { "1" } else { "0" }),
                span: tokens[i].span.to(tokens[i + used].span),
                ..tokens[i].clone()
            });
            i += used + 1;
        }
        out
    }

    /// Returns whether the macro that `defined` asks for is defined, and the number of tokens of its
    /// operand, with parentheses; `None` if no name follows.
    fn defined(&self, operand: &[Token]) -> Option<(bool, usize)> {
        let name = |t: &Token| t.kind.is_word().then(|| self.is_defined(&t.text));
        match operand {
            [open, word, close, ..] if open.kind == T::LParen && close.kind == T::RParen => {
                Some((name(word)?, 3))
            }
            [word, ..] => Some((name(word)?, 1)),
            [] => None,
        }
    }

    /// Returns whether the file that `__has_include` asks for exists, and the number of tokens of its
    /// operand, with parentheses; `None` if no file name in parentheses follows.
    fn has_include(&self, operand: &[Token]) -> Option<(bool, usize)> {
        let close = operand.iter().position(|t| t.kind == T::RParen)?;
        let [open, name @ ..] = &operand[..close] else {
            return None;
        };
        if open.kind != T::LParen {
            return None;
        }
        let (file, style) = header_name(name)?;
        let found = self.loader.include(&file, style, &self.including).is_ok();
        Some((found, close + 1))
    }
}

/// An integer as the C preprocessor computes with it: 64 bits, signed or unsigned.
#[derive(Clone, Copy)]
struct Number {
    bits: u64,
    unsigned: bool,
}

impl Number {
    fn signed(value: i64) -> Number {
        Number {
            bits: value as u64,
            unsigned: false,
        }
    }

    fn truth(value: bool) -> Number {
        Number::signed(i64::from(value))
    }

    fn holds(self) -> bool {
        self.bits != 0
    }

    fn as_signed(self) -> i64 {
        self.bits as i64
    }

    /// Returns the number, as a shift amount, without its sign, and whether it is negative; a negative
    /// amount shifts in the opposite direction.
    fn amount(self) -> (u64, bool) {
        match self.unsigned {
            false => (self.as_signed().unsigned_abs(), self.as_signed() < 0),
            true => (self.bits, false),
        }
    }

    fn shifted(self, amount: Number, right: bool) -> Number {
        let (by, reversed) = amount.amount();
        let by = u32::try_from(by).unwrap_or(u32::MAX);
        let bits = match (right != reversed, self.unsigned) {
            (false, _) => self.bits.checked_shl(by).unwrap_or(0),
            (true, true) => self.bits.checked_shr(by).unwrap_or(0),
            (true, false) => (self.as_signed() >> by.min(63)) as u64,
        };
        Number { bits, ..self }
    }
}

type Value = Result<Number, (Span, String)>;

struct Evaluator<'t> {
    tokens: &'t [Token],
    pos: usize,
    depth: usize,
    /// The directive's name, at which an empty condition is reported.
    after: Span,
}

impl Evaluator<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.pos)
    }

    fn eat(&mut self, kind: T) -> bool {
        let found = self.peek().is_some_and(|t| t.kind == kind);
        self.pos += usize::from(found);
        found
    }

    fn here(&self) -> Span {
        let last = self.tokens.last().map_or(self.after, |t| t.span);
        self.peek().map_or(last, |t| t.span)
    }

    fn fail<R>(&self, problem: impl Into<String>) -> Result<R, (Span, String)> {
        Err((self.here(), problem.into()))
    }

    fn whole(&mut self) -> Value {
        let value = self.sequence(true)?;
        match self.peek() {
            None => Ok(value),
            Some(extra) => self.fail(format!("unexpected `{}`", extra.text)),
        }
    }

    /// Evaluates expressions separated by commas, and returns the value of the last one. `live` is as in
    /// [`Self::ternary`].
    fn sequence(&mut self, live: bool) -> Value {
        let mut value = self.ternary(live)?;
        while self.eat(T::Comma) {
            value = self.ternary(live)?;
        }
        Ok(value)
    }

    /// Evaluates an expression and the `? :` that may follow it. If not `live`, C would not evaluate the expression
    /// (such as the right side of `0 && ...`), and a division by zero in it is no error.
    fn ternary(&mut self, live: bool) -> Value {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail("it is nested too deeply");
        }
        let condition = self.binary(0, live)?;
        let value = if self.eat(T::Question) {
            let if_true = self.sequence(live && condition.holds())?;
            if !self.eat(T::Colon) {
                return self.fail("expected `:`");
            }
            let if_false = self.ternary(live && !condition.holds())?;
            Number {
                unsigned: if_true.unsigned || if_false.unsigned,
                ..if condition.holds() { if_true } else { if_false }
            }
        } else {
            condition
        };
        self.depth -= 1;
        Ok(value)
    }

    /// Returns the binary operator at the current token, its precedence (a higher number binds more
    /// tightly), and its number of tokens, which is two for `>>`; `None` if there is no binary operator.
    fn operator(&self) -> Option<(T, u8, usize)> {
        let token = self.peek()?;
        let next = self.tokens.get(self.pos + 1).map(|t| t.kind);
        Some(match token.kind {
            T::Or => (T::Or, 1, 1),
            T::And => (T::And, 2, 1),
            T::Pipe => (T::Pipe, 3, 1),
            T::Caret => (T::Caret, 4, 1),
            T::Amp => (T::Amp, 5, 1),
            T::EqEq | T::Ne => (token.kind, 6, 1),
            T::Gt if token.joint && next == Some(T::Gt) => (T::Gt, 8, 2),
            T::Lt | T::Gt | T::Le | T::Ge => (token.kind, 7, 1),
            T::Shl => (T::Shl, 8, 1),
            T::Plus | T::Minus => (token.kind, 9, 1),
            T::Star | T::Slash | T::Percent => (token.kind, 10, 1),
            _ => return None,
        })
    }

    fn binary(&mut self, min: u8, live: bool) -> Value {
        let mut left = self.unary(live)?;
        while let Some((op, power, tokens)) = self.operator().filter(|(_, power, _)| *power > min) {
            let at = self.here();
            self.pos += tokens;
            let right_live = match op {
                T::And => live && left.holds(),
                T::Or => live && !left.holds(),
                _ => live,
            };
            let right = self.binary(power, right_live)?;
            left = match apply(op, tokens == 2, left, right) {
                Some(value) => value,
                None if !live => Number::signed(0),
                None => return Err((at, "division by zero".into())),
            };
        }
        Ok(left)
    }

    fn unary(&mut self, live: bool) -> Value {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail("it is nested too deeply");
        }
        let value = if self.eat(T::Not) {
            Number::truth(!self.unary(live)?.holds())
        } else if self.eat(T::Tilde) {
            let operand = self.unary(live)?;
            Number {
                bits: !operand.bits,
                ..operand
            }
        } else if self.eat(T::Minus) {
            let operand = self.unary(live)?;
            Number {
                bits: operand.bits.wrapping_neg(),
                ..operand
            }
        } else if self.eat(T::Plus) {
            self.unary(live)?
        } else {
            self.primary(live)?
        };
        self.depth -= 1;
        Ok(value)
    }

    fn primary(&mut self, live: bool) -> Value {
        if self.eat(T::LParen) {
            let value = self.sequence(live)?;
            return if self.eat(T::RParen) {
                Ok(value)
            } else {
                self.fail("expected `)`")
            };
        }
        let Some(token) = self.peek() else {
            return self.fail("the expression ends too early");
        };
        let value = match token.kind {
            T::Int => match integer(&token.text) {
                Ok(value) => value,
                Err(problem) => return self.fail(format!("`{}` {problem}", token.text)),
            },
            T::Unknown if token.text.len() > 1 && token.text.starts_with('\'') => {
                match character(&token.text) {
                    Some(value) => value,
                    None => return self.fail(format!("`{}` is not a character", token.text)),
                }
            }
            kind if kind.is_word() => match &*token.text {
                "defined" => return self.fail("`defined` needs a name"),
                "__has_include" => return self.fail("`__has_include` needs a file name"),
                _ => Number::signed(0),
            },
            _ => return self.fail(format!("unexpected `{}`", token.text)),
        };
        self.pos += 1;
        Ok(value)
    }
}

/// Parses an integer constant of C. `Err` holds a message about a malformed constant, such as "is not an integer".
fn integer(text: &str) -> Result<Number, &'static str> {
    let text = text.to_ascii_lowercase();
    let digits = text.trim_end_matches(['u', 'l']);
    let suffix = &text[digits.len()..];
    if !matches!(suffix, "" | "u" | "l" | "ll" | "ul" | "ull" | "lu" | "llu") {
        return Err("is not an integer");
    }
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x', ..] => (&digits[2..], 16),
        [b'0', b'b', ..] => (&digits[2..], 2),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err("is not an integer");
    }
    let bits = u64::from_str_radix(digits, radix).map_err(|_| "has more than 64 bits")?;
    Ok(Number {
        bits,
        unsigned: suffix.contains('u') || i64::try_from(bits).is_err(),
    })
}

/// Returns the value of a character constant such as `'c'`; `None` if it is not one ASCII character or
/// escape sequence between apostrophes.
fn character(text: &str) -> Option<Number> {
    let inside = text.strip_prefix('\'')?.strip_suffix('\'')?;
    let value = match inside.strip_prefix('\\') {
        None => match inside.as_bytes() {
            [byte] => *byte,
            _ => return None,
        },
        Some("n") => b'\n',
        Some("t") => b'\t',
        Some("r") => b'\r',
        Some("a") => 7,
        Some("b") => 8,
        Some("v") => 11,
        Some("f") => 12,
        Some(quoted @ ("\\" | "'" | "\"" | "?")) => quoted.as_bytes()[0],
        Some(code) => match code.strip_prefix('x') {
            Some(hex) => byte(hex, 16)?,
            None if code.len() <= 3 => byte(code, 8)?,
            None => return None,
        },
    };
    // A character is signed, as in the reference compiler's preprocessor.
    Some(Number::signed(i64::from(value as i8)))
}

/// Returns the byte that `digits` stand for in `radix`; `None` if it exceeds 8 bits, or if a character is no
/// digit, such as the sign that `from_str_radix` accepts.
fn byte(digits: &str, radix: u32) -> Option<u8> {
    let good = digits.chars().all(|c| c.is_digit(radix));
    good.then(|| u8::from_str_radix(digits, radix).ok())?
}

/// Computes a binary operator on 64-bit integers, as C does; `None` for a division by zero. `shift_right` says that
/// `op`, a `>`, is the first of the two of `>>`.
fn apply(op: T, shift_right: bool, a: Number, b: Number) -> Option<Number> {
    let unsigned = a.unsigned || b.unsigned;
    let less = |a: Number, b: Number| match unsigned {
        true => a.bits < b.bits,
        false => a.as_signed() < b.as_signed(),
    };
    let bits = match op {
        T::Or => return Some(Number::truth(a.holds() || b.holds())),
        T::And => return Some(Number::truth(a.holds() && b.holds())),
        T::EqEq => return Some(Number::truth(a.bits == b.bits)),
        T::Ne => return Some(Number::truth(a.bits != b.bits)),
        T::Gt if shift_right => return Some(a.shifted(b, true)),
        T::Shl => return Some(a.shifted(b, false)),
        T::Gt => return Some(Number::truth(less(b, a))),
        T::Lt => return Some(Number::truth(less(a, b))),
        T::Le => return Some(Number::truth(!less(b, a))),
        T::Ge => return Some(Number::truth(!less(a, b))),
        T::Pipe => a.bits | b.bits,
        T::Caret => a.bits ^ b.bits,
        T::Amp => a.bits & b.bits,
        T::Plus => a.bits.wrapping_add(b.bits),
        T::Minus => a.bits.wrapping_sub(b.bits),
        T::Star => a.bits.wrapping_mul(b.bits),
        T::Slash | T::Percent if !b.holds() => return None,
        T::Slash if unsigned => a.bits / b.bits,
        T::Percent if unsigned => a.bits % b.bits,
        T::Slash => a.as_signed().wrapping_div(b.as_signed()) as u64,
        T::Percent => a.as_signed().wrapping_rem(b.as_signed()) as u64,
        _ => return None,
    };
    Some(Number { bits, unsigned })
}
