//! Parses expressions.

use std::sync::Arc;

use super::types::starts_base_type;
use super::{Outcome, Parser};
use crate::ast::{
    Argument, ArgumentValue, BinaryOp, Expr, ExprKind, IntLiteral, IntWidth, Path, Type, TypeKind,
    UnaryOp,
};
use crate::errors;
use crate::source::Span;
use crate::token::TokenKind as T;

/// Returns the text of a string literal without its quotes.
pub(super) fn string_value(text: &str) -> Arc<str> {
    text.strip_prefix('"')
        .and_then(|t| t.strip_suffix('"'))
        .unwrap_or(text)
        .into()
}

/// Parses an integer literal of P4. `Err` holds a message about a malformed literal, such as "the width is
/// too large".
pub(super) fn int_literal(text: &str) -> Result<IntLiteral, &'static str> {
    let after_digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (width, value) = match text[after_digits..].chars().next() {
        Some(sign @ ('w' | 's')) => {
            let bits = text[..after_digits]
                .parse()
                .map_err(|_| "the width is too large")?;
            (
                Some(IntWidth {
                    bits,
                    signed: sign == 's',
                }),
                &text[after_digits + 1..],
            )
        }
        _ => (None, text),
    };
    let (radix, digits) = match value.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &value[2..]),
        [b'0', b'd' | b'D', ..] => (10, &value[2..]),
        [b'0', b'o' | b'O', ..] => (8, &value[2..]),
        [b'0', b'b' | b'B', ..] => (2, &value[2..]),
        _ => (10, value),
    };
    let digits = digits.replace('_', "");
    if digits.is_empty() {
        return Err("it has no digits");
    }
    if !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(match radix {
            2 => "it has characters that are not binary digits",
            8 => "it has characters that are not octal digits",
            10 => "it has characters that are not decimal digits",
            _ => "it has characters that are not hexadecimal digits",
        });
    }
    Ok(IntLiteral {
        width,
        radix,
        digits: digits.into(),
    })
}

/// Returns the binary operator of a token and its precedence (a higher number binds more tightly); `None`
/// if the token is no binary operator.
fn binary_op(kind: T) -> Option<(BinaryOp, u8)> {
    use BinaryOp::*;
    Some(match kind {
        T::Or => (Or, 1),
        T::And => (And, 2),
        T::EqEq => (Eq, 3),
        T::Ne => (Ne, 3),
        T::Lt => (Lt, 4),
        T::Gt => (Gt, 4),
        T::Le => (Le, 4),
        T::Ge => (Ge, 4),
        T::Pipe => (BitOr, 5),
        T::Caret => (BitXor, 6),
        T::Amp => (BitAnd, 7),
        T::Shl => (Shl, 8),
        T::Concat => (Concat, 9),
        T::Plus => (Add, 9),
        T::Minus => (Sub, 9),
        T::SatAdd => (SatAdd, 9),
        T::SatSub => (SatSub, 9),
        T::Star => (Mul, 10),
        T::Slash => (Div, 10),
        T::Percent => (Mod, 10),
        _ => return None,
    })
}

const SHIFT_POWER: u8 = 8;

impl Parser<'_> {
    /// Reads an expression of any form, including `? :`.
    pub(super) fn expr(&mut self) -> Outcome<Expr> {
        self.deeper(|p| {
            let condition = p.binary(0)?;
            if !p.eat(T::Question) {
                return Ok(condition);
            }
            let if_true = p.bracketed(Self::expr)?;
            p.expect(T::Colon)?;
            let if_false = p.expr()?;
            let span = condition.span.to(if_false.span);
            let [condition, if_true, if_false] = [condition, if_true, if_false].map(Box::new);
            Ok(Expr {
                kind: ExprKind::Ternary {
                    condition,
                    if_true,
                    if_false,
                },
                span,
            })
        })
    }

    /// Reads the expression at the start of a statement. In it `f<x>(...)` is always a call with the type
    /// argument `x`, never two comparisons.
    pub(super) fn statement_expr(&mut self) -> Outcome<Expr> {
        if matches!(self.kind(), T::LParen)
            || !(self.kind().is_value_name() || matches!(self.kind(), T::Dot | T::This))
        {
            return self.expr();
        }
        self.deeper(|p| {
            let outer = std::mem::take(&mut p.chain);
            let head = p.primary()?;
            let head = p.postfix(head, true)?;
            let whole = p.binary_after(head, 0);
            p.chain = p.chain.max(outer);
            whole
        })
    }

    /// Reads an expression whose operators, outside of brackets, all have a precedence higher than `min`.
    fn binary(&mut self, min: u8) -> Outcome<Expr> {
        let outer = std::mem::take(&mut self.chain);
        let left = self.prefix()?;
        let whole = self.binary_after(left, min);
        self.chain = self.chain.max(outer);
        whole
    }

    fn binary_after(&mut self, mut left: Expr, min: u8) -> Outcome<Expr> {
        while let Some((op, power, tokens)) = self.operator().filter(|(_, power, _)| *power > min) {
            let mut op_span = self.bump().span;
            for _ in 1..tokens {
                op_span = op_span.to(self.bump().span);
            }
            if op == BinaryOp::Concat && matches!(self.kind(), T::Semi | T::RParen) {
                return Err(self.fail(errors::increment(op_span)));
            }
            let right = self.binary(power)?;
            self.link()?;
            let span = left.span.to(right.span);
            let (left_box, right) = (Box::new(left), Box::new(right));
            left = Expr {
                kind: ExprKind::Binary {
                    op,
                    op_span,
                    left: left_box,
                    right,
                },
                span,
            };
        }
        Ok(left)
    }

    /// Returns the binary operator at the current token, its precedence, and its number of tokens, which is
    /// two for `>>`; `None` if there is no binary operator.
    fn operator(&self) -> Option<(BinaryOp, u8, usize)> {
        let token = self.token();
        if token.kind == T::Gt && self.gt_closes {
            return None;
        }
        if token.kind == T::Gt && token.joint {
            // Followed by `>=` it is the assignment `>>=`.
            return (self.kind_at(1) == T::Gt).then_some((BinaryOp::Shr, SHIFT_POWER, 2));
        }
        binary_op(token.kind).map(|(op, power)| (op, power, 1))
    }

    fn prefix(&mut self) -> Outcome<Expr> {
        let op = match self.kind() {
            T::Not => UnaryOp::Not,
            T::Tilde => UnaryOp::BitNot,
            T::Minus => UnaryOp::Neg,
            T::Plus => UnaryOp::Plus,
            T::LParen if self.at_cast() => return self.deeper(Self::cast),
            _ => {
                let primary = self.primary()?;
                return self.postfix(primary, false);
            }
        };
        self.deeper(|p| {
            let start = p.bump().span;
            let operand = Box::new(p.prefix()?);
            let span = start.to(operand.span);
            Ok(Expr {
                kind: ExprKind::Unary { op, operand },
                span,
            })
        })
    }

    // -- Casts --------------------------------------------------------------------------------------------------------

    /// Returns whether the current `(` starts a cast.
    fn at_cast(&self) -> bool {
        let first = self.token_at(1);
        match first.kind {
            T::Error => self.kind_at(2) != T::Dot,
            T::List => self.kind_at(2) == T::Lt,
            T::Ident => self.names_cast_type(&first.text, 2),
            T::Dot => {
                self.kind_at(2) == T::Ident && self.names_cast_type(&self.token_at(2).text, 3)
            }
            kind => starts_base_type(kind),
        }
    }

    /// Returns whether `name` is the type of a cast; the token after the name is `ahead` tokens from the current one.
    fn names_cast_type(&self, name: &str, ahead: usize) -> bool {
        match (self.scopes.lookup(name), self.kind_at(ahead)) {
            (Some(is_type), T::RParen | T::Lt | T::LBracket) => is_type,
            // Unknown, but `(name) operand` can be nothing else.
            (None, T::RParen) => {
                let next = self.token_at(ahead + 1);
                let operand = matches!(next.kind, T::Int | T::LBrace | T::Not | T::Tilde)
                    || next.kind.is_value_name();
                operand && !next.line_start
            }
            _ => false,
        }
    }

    fn cast(&mut self) -> Outcome<Expr> {
        let start = self.expect(T::LParen)?;
        let ty = Box::new(self.bracketed(Self::ty)?);
        self.expect(T::RParen)?;
        let operand = Box::new(self.prefix()?);
        let span = start.to(operand.span);
        Ok(Expr {
            kind: ExprKind::Cast { ty, operand },
            span,
        })
    }

    // -- Primaries ----------------------------------------------------------------------------------------------------

    fn primary(&mut self) -> Outcome<Expr> {
        let span = self.span();
        let kind = match self.kind() {
            T::Int => return Ok(self.int()),
            T::Str => ExprKind::Str(string_value(&self.token().text)),
            T::True => ExprKind::Bool(true),
            T::False => ExprKind::Bool(false),
            T::This => ExprKind::This,
            T::Dots => ExprKind::Dots,
            T::InvalidHeader => ExprKind::InvalidHeader,
            T::LBrace => return self.bracketed(Self::braced),
            T::LParen => return self.bracketed(Self::parenthesised),
            T::Error if self.kind_at(1) == T::Dot => ExprKind::Type(Box::new(Type {
                kind: TypeKind::Error,
                span,
            })),
            T::Dot => {
                let path = self.path("a name")?;
                return Ok(Expr {
                    span: path.span,
                    kind: ExprKind::Path(path),
                });
            }
            kind if kind.is_value_name() => {
                let path = self.path("a name")?;
                return Ok(Expr {
                    span: path.span,
                    kind: ExprKind::Path(path),
                });
            }
            T::Underscore => return Err(self.fail(errors::dont_care_value(span))),
            kind if kind == T::Error || starts_base_type(kind) => {
                let text = self.token().text.clone();
                return Err(self.fail(errors::type_as_value(span, &text)));
            }
            _ => return Err(self.expected("an expression")),
        };
        self.bump();
        Ok(Expr { kind, span })
    }

    fn int(&mut self) -> Expr {
        let token = self.token();
        let kind = match int_literal(&token.text) {
            Ok(literal) => ExprKind::Int(literal),
            Err(problem) => {
                self.report(errors::malformed_integer(token.span, &token.text, problem));
                ExprKind::Missing
            }
        };
        self.bump();
        Expr {
            kind,
            span: token.span,
        }
    }

    fn parenthesised(&mut self) -> Outcome<Expr> {
        let start = self.expect(T::LParen)?;
        let inner = self.expr()?;
        self.expect(T::RParen)?;
        Ok(Expr {
            span: self.since(start),
            ..inner
        })
    }

    /// Reads `{ values }` or `{ name = value, ... }`, including the braces.
    fn braced(&mut self) -> Outcome<Expr> {
        let start = self.expect(T::LBrace)?;
        let kind = if self.kind().is_name() && self.kind_at(1) == T::Assign {
            self.record()?
        } else {
            ExprKind::List(self.comma_list(T::RBrace, true, Self::expr)?)
        };
        self.expect(T::RBrace)?;
        Ok(Expr {
            kind,
            span: self.since(start),
        })
    }

    fn record(&mut self) -> Outcome<ExprKind> {
        let mut fields = Vec::new();
        let mut dots = None;
        while !self.at(T::RBrace) && dots.is_none() {
            if self.at(T::Dots) {
                dots = Some(self.bump().span);
            } else {
                fields.push(self.named_expr()?);
            }
            if !self.eat(T::Comma) && !self.at(T::RBrace) {
                return Err(self.expected("`,` or `}`"));
            }
        }
        if let Some(dots) = dots.filter(|_| !self.at(T::RBrace)) {
            return Err(self.fail(errors::dots_not_last(dots)));
        }
        Ok(ExprKind::Record { fields, dots })
    }

    // -- Postfixes ----------------------------------------------------------------------------------------------------

    /// Reads the members, indices, slices and calls that follow `base`. If `call_likely`, a `<` that could start type
    /// arguments is taken as such, not as a comparison.
    fn postfix(&mut self, mut base: Expr, call_likely: bool) -> Outcome<Expr> {
        loop {
            let start = base.span;
            let kind = match self.kind() {
                T::Dot => {
                    self.bump();
                    let member = self.name("a member's name")?;
                    ExprKind::Member {
                        base: Box::new(base),
                        member,
                    }
                }
                T::LBracket => self.subscript(base)?,
                T::LParen => {
                    let args = self.arguments()?;
                    ExprKind::Call {
                        callee: Box::new(base),
                        type_args: Vec::new(),
                        args,
                    }
                }
                T::Lt if self.at_type_args(&base, call_likely) => self.specialised(base)?,
                _ => return Ok(base),
            };
            self.link()?;
            base = Expr {
                kind,
                span: self.since(start),
            };
        }
    }

    fn subscript(&mut self, base: Expr) -> Outcome<ExprKind> {
        let base = Box::new(base);
        self.expect(T::LBracket)?;
        let kind = self.bracketed(|p| {
            let first = Box::new(p.expr()?);
            Ok(if p.eat(T::Colon) {
                ExprKind::Slice {
                    base,
                    high: first,
                    low: Box::new(p.expr()?),
                }
            } else if p.eat(T::PlusColon) {
                ExprKind::PlusSlice {
                    base,
                    low: first,
                    width: Box::new(p.expr()?),
                }
            } else {
                ExprKind::Index { base, index: first }
            })
        })?;
        self.expect(T::RBracket)?;
        Ok(kind)
    }

    /// Returns whether the current `<` starts type arguments of `base`. It does if `base` is a type, or if the token
    /// after it can only be a type. If `call_likely` is true, it also does if `(` follows the matching `>`.
    fn at_type_args(&self, base: &Expr, call_likely: bool) -> bool {
        let names_type = match &base.kind {
            ExprKind::Path(path) => self.scopes.is_type(path.name.as_str()),
            ExprKind::Member { .. } => false,
            _ => return false,
        };
        let first_is_type = match self.kind_at(1) {
            T::Underscore => true,
            T::List => self.kind_at(2) == T::Lt,
            T::Error => self.kind_at(2) != T::Dot,
            T::Ident => self.is_type_arg(&self.token_at(1).text, 2),
            T::Dot => self.kind_at(2) == T::Ident && self.is_type_arg(&self.token_at(2).text, 3),
            kind => starts_base_type(kind),
        };
        let call = || {
            self.after_type_args(self.pos)
                .is_some_and(|i| self.token_index(i).kind == T::LParen)
        };
        names_type || first_is_type || (call_likely && call())
    }

    fn is_type_arg(&self, name: &str, ahead: usize) -> bool {
        self.scopes.is_type(name) && !matches!(self.kind_at(ahead), T::Dot | T::LParen)
    }

    /// Reads the rest of the call `base<types>(arguments)`, or of the type `base<types>` before a dot.
    fn specialised(&mut self, base: Expr) -> Outcome<ExprKind> {
        let start = base.span;
        let type_args = self.type_args()?;
        match base.kind {
            ExprKind::Path(path) if self.at(T::Dot) => {
                Ok(self.specialised_type(path, type_args, start))
            }
            _ => {
                let args = self.arguments()?;
                Ok(ExprKind::Call {
                    callee: Box::new(base),
                    type_args,
                    args,
                })
            }
        }
    }

    fn specialised_type(&self, path: Path, args: Vec<Type>, start: Span) -> ExprKind {
        let kind = TypeKind::Specialised { path, args };
        ExprKind::Type(Box::new(Type {
            kind,
            span: self.since(start),
        }))
    }

    /// Reads the arguments of a call, including the parentheses.
    pub(super) fn arguments(&mut self) -> Outcome<Vec<Argument>> {
        self.expect(T::LParen)?;
        let args = self.bracketed(|p| p.comma_list(T::RParen, false, Self::argument))?;
        self.expect(T::RParen)?;
        Ok(args)
    }

    fn argument(&mut self) -> Outcome<Argument> {
        let start = self.span();
        let name = if self.kind().is_name() && self.kind_at(1) == T::Assign {
            let name = self.name("a parameter's name")?;
            self.bump();
            Some(name)
        } else {
            None
        };
        let value = if self.eat(T::Underscore) {
            ArgumentValue::DontCare
        } else {
            ArgumentValue::Expr(self.expr()?)
        };
        Ok(Argument {
            name,
            value,
            span: self.since(start),
        })
    }
}
