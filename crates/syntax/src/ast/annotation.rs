//! The syntax tree of annotations.

use super::{Expr, ExprKind, IntLiteral, Name, NamedExpr};
use crate::source::Span;
use std::sync::Arc;

/// `@name`, `@name(tokens)`, `@name[expressions]`, `@name[k = v]` or `@pragma name tokens`.
#[derive(Clone, Debug)]
pub struct Annotation {
    /// The name after the `@`, or after `@pragma`.
    pub name: Name,
    /// What follows the name.
    pub body: AnnotationBody,
    /// True if it was written `@pragma name ...` to the end of the line.
    pub is_pragma: bool,
    /// The whole annotation.
    pub span: Span,
}

/// The body of an annotation.
#[derive(Clone, Debug)]
pub enum AnnotationBody {
    /// Nothing.
    None,
    /// `(tokens)`: any tokens with balanced parentheses; their meaning depends on the annotation's name.
    Tokens(Vec<AnnotationToken>),
    /// `[e1, e2]`
    List(Vec<Expr>),
    /// `[k1 = e1, k2 = e2]`
    KeyValue(Vec<NamedExpr>),
}

impl Annotation {
    /// Returns the string if the body consists only of string literals, as in `@name("a.b")` or
    /// `@name["a.b"]`. Several literals, in a row or with `++` between them, are joined. `None` for any
    /// other body.
    pub fn string(&self) -> Option<String> {
        match &self.body {
            AnnotationBody::Tokens(tokens) => string_of_tokens(tokens),
            AnnotationBody::List(exprs) => match exprs.as_slice() {
                [
                    Expr {
                        kind: ExprKind::Str(s),
                        ..
                    },
                ] => Some(s.to_string()),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the integer if the body consists of only one integer literal, as in `@id(0x2a)` or
    /// `@id[0x2a]`. `None` for any other body.
    pub fn int(&self) -> Option<&IntLiteral> {
        match &self.body {
            AnnotationBody::Tokens(tokens) => match tokens.as_slice() {
                [
                    AnnotationToken {
                        kind: AnnotationTokenKind::Int(i),
                        ..
                    },
                ] => Some(i),
                _ => None,
            },
            AnnotationBody::List(exprs) => match exprs.as_slice() {
                [
                    Expr {
                        kind: ExprKind::Int(i),
                        ..
                    },
                ] => Some(i),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Joins string literals that stand in a row or have `++` between them; `None` if `tokens` contain no
/// string literal, or anything else.
pub fn string_of_tokens(tokens: &[AnnotationToken]) -> Option<String> {
    let is_string = |t: &AnnotationToken| matches!(t.kind, AnnotationTokenKind::Str(_));
    let part = |t: &AnnotationToken| match &t.kind {
        AnnotationTokenKind::Str(s) => Some(s.to_string()),
        AnnotationTokenKind::Symbol(s) if &**s == "++" => Some(String::new()),
        _ => None,
    };
    let parts: Option<String> = tokens.iter().map(part).collect();
    parts.filter(|_| tokens.iter().any(is_string))
}

/// A token of an unstructured annotation body.
#[derive(Clone, Debug)]
pub struct AnnotationToken {
    /// The kind of token.
    pub kind: AnnotationTokenKind,
    /// The text: as written, or as made by a macro.
    pub text: Arc<str>,
    /// True if blanks or a comment stand before it.
    pub space_before: bool,
    /// Its place in the source.
    pub span: Span,
}

/// The kinds of [`AnnotationToken`].
#[derive(Clone, Debug)]
pub enum AnnotationTokenKind {
    /// An identifier or keyword.
    Word(Arc<str>),
    /// An integer literal.
    Int(IntLiteral),
    /// A string literal: the text between the quotes, unchanged, since the language gives escapes no meaning.
    Str(Arc<str>),
    /// Anything else: an operator or punctuation, as written.
    Symbol(Arc<str>),
}
