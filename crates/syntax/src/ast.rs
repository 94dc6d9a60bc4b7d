//! The syntax tree of P4_16, as written.
//!
//! It has one type per production of the language specification. Every node has a [`Span`], and
//! every identifier is a [`Name`]. The tree deliberately does not know:
//!
//! * **The meaning of names.** A plain identifier in an expression is always an [`ExprKind::Path`], also when it names a
//!   type: `S.f()`, `E.member`, `Ctor(x)` look the same whether the left side is a value or a type, so a constructor
//!   call is a [`ExprKind::Call`], and the direct application of a control or parser type is a [`StmtKind::Call`] whose
//!   callee is a [`ExprKind::Member`] named `apply` on that path. Only names that cannot be a value are an
//!   [`ExprKind::Type`]: `error` (as in `error.NoError`) and a specialised type before a dot (`T<bit<8>>.apply()`).
//! * **Types and constants.** `bit<W + 1>` holds the expression `W + 1`; integer literals keep their digits.
//! * **Parentheses.** They only widen the span of their contents.
//!
//! At a place where the parser continued after an error, the tree holds [`ExprKind::Missing`] or [`TypeKind::Missing`].
//! Each such place has already been reported, so later passes stay silent about it.

mod annotation;
mod damage;
mod decl;
mod expr;
mod stmt;
mod table;
mod types;

pub use annotation::*;
pub use damage::*;
pub use decl::*;
pub use expr::*;
pub use stmt::*;
pub use table::*;
pub use types::*;

use std::fmt;
use std::sync::Arc;

use crate::source::Span;

/// An identifier and where it stands. Cloning is cheap.
#[derive(Clone)]
pub struct Name {
    /// The identifier's text.
    pub text: Arc<str>,
    /// Its place in the source.
    pub span: Span,
}

impl Name {
    /// Makes a name from its text and its place in the source.
    pub fn new(text: impl Into<Arc<str>>, span: Span) -> Name {
        Name {
            text: text.into(),
            span,
        }
    }

    /// Returns the text of the identifier.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}@{:?}", self.text, self.span)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A name with an optional leading dot, which looks it up at the top level whatever scope it stands in.
#[derive(Clone, Debug)]
pub struct Path {
    /// True if a dot stands before the name.
    pub absolute: bool,
    /// The name.
    pub name: Name,
    /// The dot, if any, and the name.
    pub span: Span,
}

/// A whole program after preprocessing, included files first where they were included.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The top-level declarations in order.
    pub decls: Vec<Decl>,
    /// The parts that could not be read.
    pub damage: Damage,
}
