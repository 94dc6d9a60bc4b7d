//! Parses types and parameters.

use super::{Outcome, Parser};
use crate::ast::{Direction, Expr, Param, Path, Type, TypeKind};
use crate::token::TokenKind as T;

/// Returns whether a token of `kind` starts a built-in type, such as `bit`, as opposed to a declared name.
pub(super) fn starts_base_type(kind: T) -> bool {
    use T::*;
    matches!(
        kind,
        Bit | Bool | IntWord | Varbit | StringWord | Tuple | MatchKind | Void
    )
}

impl Parser<'_> {
    /// Reads a type. Accepts `void` everywhere; later passes report it where it is not allowed.
    pub(super) fn ty(&mut self) -> Outcome<Type> {
        self.deeper(|p| {
            let start = p.span();
            let mut kind = p.base_type()?;
            let outer = std::mem::take(&mut p.chain);
            while p.at(T::LBracket) {
                p.link()?;
                let element = Box::new(Type {
                    kind,
                    span: p.since(start),
                });
                p.bump();
                let size = Box::new(p.bracketed(Self::expr)?);
                p.expect(T::RBracket)?;
                kind = TypeKind::Stack { element, size };
            }
            p.chain = p.chain.max(outer);
            Ok(Type {
                kind,
                span: p.since(start),
            })
        })
    }

    fn base_type(&mut self) -> Outcome<TypeKind> {
        let simple = match self.kind() {
            T::Bool => TypeKind::Bool,
            T::Error => TypeKind::Error,
            T::MatchKind => TypeKind::MatchKind,
            T::StringWord => TypeKind::String,
            T::Void => TypeKind::Void,
            T::Bit => {
                self.bump();
                return Ok(TypeKind::Bit(self.optional_width()?));
            }
            T::IntWord => {
                self.bump();
                return Ok(self
                    .optional_width()?
                    .map_or(TypeKind::Int, TypeKind::SignedInt));
            }
            T::Varbit => {
                self.bump();
                return Ok(TypeKind::Varbit(Box::new(self.width()?)));
            }
            T::Tuple => {
                self.bump();
                return Ok(TypeKind::Tuple(self.type_args()?));
            }
            T::List => return self.list_type(),
            T::Ident | T::Dot => {
                let path = self.path("a type")?;
                return self.named_type(path);
            }
            _ => return Err(self.expected("a type")),
        };
        self.bump();
        Ok(simple)
    }

    fn list_type(&mut self) -> Outcome<TypeKind> {
        self.bump();
        self.expect(T::Lt)?;
        let element = self.bracketed(Self::type_arg)?;
        self.expect(T::Gt)?;
        Ok(TypeKind::List(Box::new(element)))
    }

    /// Reads the type arguments after the type name `path`, if any follow, and returns the type.
    fn named_type(&mut self, path: Path) -> Outcome<TypeKind> {
        if self.at(T::Lt) {
            let args = self.type_args()?;
            Ok(TypeKind::Specialised { path, args })
        } else {
            Ok(TypeKind::Named(path))
        }
    }

    fn optional_width(&mut self) -> Outcome<Option<Box<Expr>>> {
        Ok(if self.at(T::Lt) {
            Some(Box::new(self.width()?))
        } else {
            None
        })
    }

    /// Reads a width, `<expression>`. In the expression, `>` ends the width; it is an operator only within brackets.
    fn width(&mut self) -> Outcome<Expr> {
        self.expect(T::Lt)?;
        let outer = std::mem::replace(&mut self.gt_closes, true);
        let width = self.expr();
        self.gt_closes = outer;
        let width = width?;
        self.expect(T::Gt)?;
        Ok(width)
    }

    /// Reads type arguments `<T1, T2>`, including the angle brackets.
    pub(super) fn type_args(&mut self) -> Outcome<Vec<Type>> {
        self.expect(T::Lt)?;
        let args = self.bracketed(|p| p.comma_list(T::Gt, false, Self::type_arg))?;
        self.expect(T::Gt)?;
        Ok(args)
    }

    fn type_arg(&mut self) -> Outcome<Type> {
        if self.at(T::Underscore) {
            return Ok(Type {
                kind: TypeKind::DontCare,
                span: self.bump().span,
            });
        }
        self.ty()
    }

    /// Reads the parameters of a declaration, including the parentheses.
    pub(super) fn params(&mut self) -> Outcome<Vec<Param>> {
        self.expect(T::LParen)?;
        let params = self.bracketed(|p| p.comma_list(T::RParen, false, Self::param))?;
        self.expect(T::RParen)?;
        Ok(params)
    }

    fn param(&mut self) -> Outcome<Param> {
        let start = self.span();
        let annotations = self.annotations()?;
        let direction = match self.kind() {
            T::In => Direction::In,
            T::Out => Direction::Out,
            T::Inout => Direction::InOut,
            _ => Direction::None,
        };
        if direction != Direction::None {
            self.bump();
        }
        let ty = self.ty()?;
        let name = self.name("a parameter's name")?;
        self.scopes.declare(&name, false);
        let default = if self.eat(T::Assign) {
            Some(self.expr()?)
        } else {
            None
        };
        Ok(Param {
            annotations,
            direction,
            ty,
            name,
            default,
            span: self.since(start),
        })
    }

    /// Returns the index of the token after the type arguments that start at `index`, found by matching
    /// brackets alone; `None` if the type arguments do not end.
    pub(super) fn after_type_args(&self, index: usize) -> Option<usize> {
        let mut depth = 0usize;
        let mut index = index;
        loop {
            match self.token_index(index).kind {
                T::Lt => depth += 1,
                T::Gt => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(index + 1);
                    }
                }
                T::LParen | T::LBracket | T::LBrace => {
                    index = self.after_partner(index)?;
                    continue;
                }
                T::Eof | T::Semi | T::RBrace | T::RParen | T::RBracket | T::Assign => return None,
                _ => {}
            }
            index += 1;
        }
    }
}
