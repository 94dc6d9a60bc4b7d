//! The syntax tree of expressions.

use super::{Name, Path, Type};
use crate::source::Span;
use std::sync::Arc;

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// The kind of expression.
    pub kind: ExprKind,
    /// Its place in the source, with the parentheses around it.
    pub span: Span,
}

/// The kinds of [`Expr`].
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// An integer literal.
    Int(IntLiteral),
    /// `true` or `false`
    Bool(bool),
    /// A string literal: the text between the quotes, unchanged, since the language gives escapes no meaning.
    Str(Arc<str>),
    /// `this`
    This,
    /// `...`: default values for the rest.
    Dots,
    /// `{#}`: an invalid header or header union.
    InvalidHeader,
    /// A name of any kind, see [`crate::ast`].
    Path(Path),
    /// A type where an expression is expected: `error` or a specialised type, always the base of a
    /// [`ExprKind::Member`].
    Type(Box<Type>),
    /// `base.member`
    Member {
        /// The left side.
        base: Box<Expr>,
        /// The member's name.
        member: Name,
    },
    /// `base[index]`
    Index {
        /// The header stack or list.
        base: Box<Expr>,
        /// The index.
        index: Box<Expr>,
    },
    /// `base[high:low]`
    Slice {
        /// The sliced value.
        base: Box<Expr>,
        /// The highest bit.
        high: Box<Expr>,
        /// The lowest bit.
        low: Box<Expr>,
    },
    /// `base[low +: width]`
    PlusSlice {
        /// The sliced value.
        base: Box<Expr>,
        /// The lowest bit, perhaps known only at run time.
        low: Box<Expr>,
        /// The number of bits.
        width: Box<Expr>,
    },
    /// `op operand`
    Unary {
        /// The operator.
        op: UnaryOp,
        /// The operand.
        operand: Box<Expr>,
    },
    /// `left op right`
    Binary {
        /// The operator.
        op: BinaryOp,
        /// The place of the operator.
        op_span: Span,
        /// The left operand.
        left: Box<Expr>,
        /// The right operand.
        right: Box<Expr>,
    },
    /// `condition ? if_true : if_false`
    Ternary {
        /// The condition.
        condition: Box<Expr>,
        /// The value for `true`.
        if_true: Box<Expr>,
        /// The value for `false`.
        if_false: Box<Expr>,
    },
    /// `(T) operand`; with a list or record as operand it is a typed initialiser.
    Cast {
        /// The type.
        ty: Box<Type>,
        /// The operand.
        operand: Box<Expr>,
    },
    /// `callee<type args>(args)`: a function, method, action, table or constructor.
    Call {
        /// The callee.
        callee: Box<Expr>,
        /// The type arguments; empty when not written.
        type_args: Vec<Type>,
        /// The arguments.
        args: Vec<Argument>,
    },
    /// `{ e1, e2 }`, perhaps with [`ExprKind::Dots`] last.
    List(Vec<Expr>),
    /// `{ f1 = e1, f2 = e2 }` or `{ f1 = e1, ... }`
    Record {
        /// The named values in order.
        fields: Vec<NamedExpr>,
        /// The `...` at the end, if any: the other fields get default values.
        dots: Option<Span>,
    },
    /// The text was not an expression; already reported.
    Missing,
}

/// An argument of a call or instantiation.
#[derive(Clone, Debug)]
pub struct Argument {
    /// The parameter's name, if written.
    pub name: Option<Name>,
    /// The value.
    pub value: ArgumentValue,
    /// The whole argument.
    pub span: Span,
}

/// The value of an [`Argument`].
#[derive(Clone, Debug)]
pub enum ArgumentValue {
    /// An expression.
    Expr(Expr),
    /// `_`: an argument for an `out` parameter whose value is not used.
    DontCare,
}

/// `name = value`
#[derive(Clone, Debug)]
pub struct NamedExpr {
    /// The name.
    pub name: Name,
    /// The value.
    pub value: Expr,
}

/// An integer literal such as `10`, `0xFF`, `8w255` or `4s0b1111`.
///
/// The digits are kept as text because they may be of any length.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IntLiteral {
    /// `bit` or `int` with a width if the literal has one, else an `int` of any size.
    pub width: Option<IntWidth>,
    /// 2, 8, 10 or 16.
    pub radix: u32,
    /// At least one digit, all valid in the radix; no prefix, no underscores.
    pub digits: Arc<str>,
}

/// The `8w` or `8s` of an integer literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IntWidth {
    /// The number of bits.
    pub bits: u32,
    /// `s` rather than `w`.
    pub signed: bool,
}

/// A prefix operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `!`
    Not,
    /// `~`
    BitNot,
    /// `-`
    Neg,
    /// `+`
    Plus,
}

impl UnaryOp {
    /// Returns the operator's symbol in P4, such as `!`.
    pub fn symbol(self) -> &'static str {
        match self {
            UnaryOp::Not => "!",
            UnaryOp::BitNot => "~",
            UnaryOp::Neg => "-",
            UnaryOp::Plus => "+",
        }
    }
}

/// An infix operator. `&&&` and `..` are not among them: they make [`Keyset`](super::Keyset)s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Mod,
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `|+|`
    SatAdd,
    /// `|-|`
    SatSub,
    /// `++`
    Concat,
    /// `<<`
    Shl,
    /// `>>`
    Shr,
    /// `<=`
    Le,
    /// `>=`
    Ge,
    /// `<`
    Lt,
    /// `>`
    Gt,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `&`
    BitAnd,
    /// `^`
    BitXor,
    /// `|`
    BitOr,
    /// `&&`
    And,
    /// `||`
    Or,
}

impl BinaryOp {
    /// Returns the operator's symbol in P4, such as `++`.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Mod => "%",
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::SatAdd => "|+|",
            BinaryOp::SatSub => "|-|",
            BinaryOp::Concat => "++",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
            BinaryOp::Le => "<=",
            BinaryOp::Ge => ">=",
            BinaryOp::Lt => "<",
            BinaryOp::Gt => ">",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::BitAnd => "&",
            BinaryOp::BitXor => "^",
            BinaryOp::BitOr => "|",
            BinaryOp::And => "&&",
            BinaryOp::Or => "||",
        }
    }
}
