//! The syntax tree of tables, and of the key sets that they share with `select`.

use super::{Annotation, Argument, Expr, Name, Path};
use crate::source::Span;

/// The left side of a select case or a table entry: `k` or `(k1, k2)`.
#[derive(Clone, Debug)]
pub struct Keysets {
    /// One per selected value or key field. A single `default` or `_` stands for any number of them.
    pub items: Vec<Keyset>,
    /// The whole list with its parentheses.
    pub span: Span,
}

/// A set of values.
#[derive(Clone, Debug)]
pub struct Keyset {
    /// The kind of set.
    pub kind: KeysetKind,
    /// Its place in the source.
    pub span: Span,
}

/// The kinds of [`Keyset`].
#[derive(Clone, Debug)]
pub enum KeysetKind {
    /// One value, or a value set's name.
    Expr(Expr),
    /// `value &&& mask`
    Mask(Expr, Expr),
    /// `low .. high`, both included.
    Range(Expr, Expr),
    /// `default`
    Default,
    /// `_`
    DontCare,
}

/// A table.
#[derive(Clone, Debug)]
pub struct TableDecl {
    /// The table's name.
    pub name: Name,
    /// The properties in order, duplicates included.
    pub properties: Vec<TableProperty>,
}

/// `name = value` in a table.
#[derive(Clone, Debug)]
pub struct TableProperty {
    /// The annotations before it.
    pub annotations: Vec<Annotation>,
    /// True if `const` stands before it.
    pub is_const: bool,
    /// The property's name as written (`key`, `size`, ...).
    pub name: Name,
    /// The property itself.
    pub kind: TablePropertyKind,
    /// The whole property.
    pub span: Span,
}

/// The values of a [`TableProperty`].
#[derive(Clone, Debug)]
pub enum TablePropertyKind {
    /// `key = { ... }`
    Key(Vec<KeyElement>),
    /// `actions = { ... }`
    Actions(Vec<ActionRef>),
    /// `entries = { ... }`
    Entries(Vec<Entry>),
    /// `default_action = expression;`: a [`ExprKind::Path`](super::ExprKind::Path) or a
    /// [`ExprKind::Call`](super::ExprKind::Call) on one.
    DefaultAction(Expr),
    /// `size = expression;`
    Size(Expr),
    /// Any other `name = expression;`
    Custom(Expr),
}

/// `expression : match_kind @annotations;`
#[derive(Clone, Debug)]
pub struct KeyElement {
    /// The key's value.
    pub expr: Expr,
    /// Its match kind.
    pub match_kind: Name,
    /// The annotations after the match kind.
    pub annotations: Vec<Annotation>,
    /// The whole element.
    pub span: Span,
}

/// An action in a table's list or entry.
#[derive(Clone, Debug)]
pub struct ActionRef {
    /// The annotations before it (an entry's annotations are the [`Entry`]'s).
    pub annotations: Vec<Annotation>,
    /// The action.
    pub path: Path,
    /// The arguments; `None` when no parentheses are written.
    pub args: Option<Vec<Argument>>,
    /// The whole reference without a semicolon.
    pub span: Span,
}

/// `const priority = 10: (keysets): action(args) @annotations;`
#[derive(Clone, Debug)]
pub struct Entry {
    /// True if `const` stands before it.
    pub is_const: bool,
    /// The priority, if written.
    pub priority: Option<Expr>,
    /// The key sets for the key.
    pub keysets: Keysets,
    /// The action to run.
    pub action: ActionRef,
    /// The annotations after the action.
    pub annotations: Vec<Annotation>,
    /// The whole entry.
    pub span: Span,
}
