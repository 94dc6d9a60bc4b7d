//! The syntax tree of types and parameters.

use super::{Annotation, Expr, Name, Path};
use crate::source::Span;

/// A type as written.
#[derive(Clone, Debug)]
pub struct Type {
    /// The kind of type.
    pub kind: TypeKind,
    /// Its place in the source.
    pub span: Span,
}

/// The kinds of [`Type`].
#[derive(Clone, Debug)]
pub enum TypeKind {
    /// `bool`
    Bool,
    /// `error`
    Error,
    /// `match_kind`
    MatchKind,
    /// `string`
    String,
    /// `int`: integers of any size, at compile time.
    Int,
    /// `bit<expression>`; `bit` alone is `bit<1>` and has `None`.
    Bit(Option<Box<Expr>>),
    /// `int<expression>`
    SignedInt(Box<Expr>),
    /// `varbit<expression>`
    Varbit(Box<Expr>),
    /// `void`: a return type or type argument.
    Void,
    /// `_`: a type argument left to inference.
    DontCare,
    /// A type's name or a type variable.
    Named(Path),
    /// `Name<args>`
    Specialised {
        /// The generic type.
        path: Path,
        /// Its type arguments.
        args: Vec<Type>,
    },
    /// `T[size]`: a header stack.
    Stack {
        /// The type of an element.
        element: Box<Type>,
        /// The number of elements.
        size: Box<Expr>,
    },
    /// `tuple<T1, T2>`
    Tuple(Vec<Type>),
    /// `list<T>`
    List(Box<Type>),
    /// The text was not a type; already reported.
    Missing,
}

/// A parameter of a function, action, method, parser, control, package or constructor.
#[derive(Clone, Debug)]
pub struct Param {
    /// The annotations before it, for instance `@optional`.
    pub annotations: Vec<Annotation>,
    /// The direction.
    pub direction: Direction,
    /// The type.
    pub ty: Type,
    /// The name.
    pub name: Name,
    /// The default value, if written.
    pub default: Option<Expr>,
    /// The whole parameter.
    pub span: Span,
}

impl Param {
    /// Returns whether the parameter has the annotation `@optional`.
    pub fn is_optional(&self) -> bool {
        self.annotations
            .iter()
            .any(|a| a.name.as_str() == "optional")
    }
}

/// A parameter's direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// No direction is written.
    None,
    /// `in`
    In,
    /// `out`
    Out,
    /// `inout`
    InOut,
}
