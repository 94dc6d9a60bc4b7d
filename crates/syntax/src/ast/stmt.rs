//! The syntax tree of statements.

use super::{Annotation, BinaryOp, Decl, Expr};
use crate::source::Span;

/// `{ statements }`
#[derive(Clone, Debug)]
pub struct Block {
    /// The annotations before the brace.
    pub annotations: Vec<Annotation>,
    /// The statements and local declarations in order.
    pub stmts: Vec<Stmt>,
    /// From brace to brace.
    pub span: Span,
}

/// A statement, or a declaration among statements.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// The kind of statement.
    pub kind: StmtKind,
    /// The whole statement with its semicolon.
    pub span: Span,
}

/// The kinds of [`Stmt`].
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// `;`
    Empty,
    /// `target = value;`, or `target op= value;` with an operator.
    Assign {
        /// The operator of a compound assignment.
        op: Option<BinaryOp>,
        /// The target.
        target: Expr,
        /// The right side.
        value: Expr,
    },
    /// A call for its effect; the expression is always an [`ExprKind::Call`](super::ExprKind::Call).
    Call(Expr),
    /// `if (condition) ... else ...`
    If {
        /// The condition.
        condition: Expr,
        /// The statement for `true`.
        then_branch: Box<Stmt>,
        /// The statement for `false`.
        else_branch: Option<Box<Stmt>>,
    },
    /// `switch (subject) { cases }`, on an expression or on `t.apply().action_run`.
    Switch {
        /// The selecting expression.
        subject: Expr,
        /// The cases in order.
        cases: Vec<SwitchCase>,
    },
    /// `return;` or `return value;`
    Return(Option<Expr>),
    /// `exit;`
    Exit,
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// `{ ... }`
    Block(Block),
    /// `for (init; condition; update) body`
    For {
        /// The annotations before it.
        annotations: Vec<Annotation>,
        /// Declarations, assignments and calls before the first round.
        init: Vec<Stmt>,
        /// Tested before each round.
        condition: Expr,
        /// Assignments and calls after each round.
        update: Vec<Stmt>,
        /// The body.
        body: Box<Stmt>,
    },
    /// `for (T name in collection) body`
    ForIn {
        /// The annotations before it.
        annotations: Vec<Annotation>,
        /// The loop variable; it has no initial value.
        variable: Box<Decl>,
        /// The iterated values.
        collection: ForCollection,
        /// The body.
        body: Box<Stmt>,
    },
    /// A constant, variable or instance.
    Decl(Box<Decl>),
}

/// The values of a `for ... in` loop.
#[derive(Clone, Debug)]
pub enum ForCollection {
    /// A list or header stack.
    Expr(Expr),
    /// `low .. high`, both included.
    Range(Expr, Expr),
}

/// `label: { ... }`
#[derive(Clone, Debug)]
pub struct SwitchCase {
    /// The label.
    pub label: SwitchLabel,
    /// The block; `None` falls through to the next case that has one.
    pub body: Option<Block>,
    /// The whole case.
    pub span: Span,
}

/// The label of a [`SwitchCase`].
#[derive(Clone, Debug)]
pub enum SwitchLabel {
    /// `default`
    Default(Span),
    /// A value, or an action's name.
    Expr(Expr),
}
