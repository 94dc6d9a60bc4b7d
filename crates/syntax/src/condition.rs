//! The integer expressions of `#if` and `#elif`.
//!
//! Values are 64-bit integers that wrap; names that are not macros count as 0. Integer suffixes and a leading 0 for
//! octal have their meaning in C, because this is the preprocessor's language and not P4.

use crate::errors;
use crate::preprocess::Preprocessor;
use crate::source::Span;
use crate::token::{Token, TokenKind as T};

/// Operators and parentheses may be nested this deep.
const MAX_DEPTH: usize = 100;

impl Preprocessor<'_> {
    /// The value of a condition; a malformed one is reported and counts as false.
    pub(crate) fn condition(&mut self, word: &Token, args: &[Token]) -> bool {
        let tokens = self.replace_defined(args);
        let tokens = self.expand(&tokens);
        let mut evaluator = Evaluator {
            tokens: &tokens,
            pos: 0,
            depth: 0,
            after: word.span,
        };
        let value = evaluator.whole();
        match value {
            Ok(value) => value != 0,
            Err((span, problem)) => {
                self.sink.push(errors::bad_condition(span, &problem));
                false
            }
        }
    }

    /// Replaces `defined X` and `defined(X)` by 1 or 0, which has to happen before expansion.
    fn replace_defined(&mut self, args: &[Token]) -> Vec<Token> {
        let mut out = Vec::with_capacity(args.len());
        let mut i = 0;
        while i < args.len() {
            let word = |n: usize| args.get(i + n).filter(|t| t.kind.is_word());
            let is = |n: usize, kind: T| args.get(i + n).is_some_and(|t| t.kind == kind);
            let name = match &*args[i].text {
                "defined" if is(1, T::LParen) && is(3, T::RParen) => word(2).map(|name| (name, 4)),
                "defined" => word(1).map(|name| (name, 2)),
                _ => None,
            };
            let Some((name, used)) = name else {
                out.push(args[i].clone());
                i += 1;
                continue;
            };
            let text = if self.is_defined(&name.text) {
                "1"
            } else {
                "0"
            };
            let span = args[i].span.to(args[i + used - 1].span);
            out.push(Token {
                kind: T::Int,
                text: self.interner.intern(text),
                span,
                ..args[i].clone()
            });
            i += used;
        }
        out
    }
}

type Value = Result<i64, (Span, String)>;

struct Evaluator<'t> {
    tokens: &'t [Token],
    pos: usize,
    depth: usize,
    /// The directive's word, which an empty condition is reported at.
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
        let value = self.ternary(true)?;
        match self.peek() {
            None => Ok(value),
            Some(extra) => self.fail(format!("unexpected `{}`", extra.text)),
        }
    }

    /// `live` is false where C does not evaluate: there, dividing by zero is no error.
    fn ternary(&mut self, live: bool) -> Value {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail("it is nested too deeply");
        }
        let condition = self.binary(0, live)?;
        let value = if self.eat(T::Question) {
            let if_true = self.ternary(live && condition != 0)?;
            if !self.eat(T::Colon) {
                return self.fail("expected `:`");
            }
            let if_false = self.ternary(live && condition == 0)?;
            if condition != 0 { if_true } else { if_false }
        } else {
            condition
        };
        self.depth -= 1;
        Ok(value)
    }

    /// The operator here and how tightly it binds. A right shift is two tokens.
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
                T::And => live && left != 0,
                T::Or => live && left == 0,
                _ => live,
            };
            let right = self.binary(power, right_live)?;
            left = match apply(op, tokens == 2, left, right) {
                Some(value) => value,
                None if !live => 0,
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
            i64::from(self.unary(live)? == 0)
        } else if self.eat(T::Tilde) {
            !self.unary(live)?
        } else if self.eat(T::Minus) {
            self.unary(live)?.wrapping_neg()
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
            let value = self.ternary(live)?;
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
                Some(value) => value,
                None => return self.fail(format!("`{}` is not an integer", token.text)),
            },
            kind if kind.is_word() && &*token.text == "defined" => {
                return self.fail("`defined` needs a name");
            }
            kind if kind.is_word() => 0,
            _ => return self.fail(format!("unexpected `{}`", token.text)),
        };
        self.pos += 1;
        Ok(value)
    }
}

fn integer(text: &str) -> Option<i64> {
    let digits = text.to_ascii_lowercase();
    let digits = digits.trim_end_matches(['u', 'l']);
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x', ..] => (&digits[2..], 16),
        [b'0', b'b', ..] => (&digits[2..], 2),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    u64::from_str_radix(digits, radix)
        .ok()
        .map(|value| value as i64)
}

/// `None` for a division by zero.
fn apply(op: T, shift_right: bool, a: i64, b: i64) -> Option<i64> {
    let shift = u32::try_from(b).unwrap_or(u32::MAX);
    Some(match op {
        T::Or => i64::from(a != 0 || b != 0),
        T::And => i64::from(a != 0 && b != 0),
        T::Pipe => a | b,
        T::Caret => a ^ b,
        T::Amp => a & b,
        T::EqEq => i64::from(a == b),
        T::Ne => i64::from(a != b),
        T::Gt if shift_right => a.checked_shr(shift).unwrap_or(if a < 0 { -1 } else { 0 }),
        T::Gt => i64::from(a > b),
        T::Lt => i64::from(a < b),
        T::Le => i64::from(a <= b),
        T::Ge => i64::from(a >= b),
        T::Shl => a.checked_shl(shift).unwrap_or(0),
        T::Plus => a.wrapping_add(b),
        T::Minus => a.wrapping_sub(b),
        T::Star => a.wrapping_mul(b),
        T::Slash if b != 0 => a.wrapping_div(b),
        T::Percent if b != 0 => a.wrapping_rem(b),
        _ => return None,
    })
}
