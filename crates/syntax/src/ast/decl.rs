//! The syntax tree of declarations.

use super::{Annotation, Argument, Block, Expr, Keysets, Name, Param, Stmt, TableDecl, Type};
use crate::source::Span;

/// A declaration: at the top level, local to a parser or control, in a block, or in an instantiation's body.
#[derive(Clone, Debug)]
pub struct Decl {
    /// The annotations before it.
    pub annotations: Vec<Annotation>,
    /// The declaration.
    pub kind: DeclKind,
    /// The whole declaration with its annotations and its semicolon.
    pub span: Span,
}

/// The kinds of [`Decl`].
#[derive(Clone, Debug)]
pub enum DeclKind {
    /// `const T NAME = value;`
    Const(ConstDecl),
    /// `T name;` or `T name = value;`
    Var(VarDecl),
    /// `T(args) name;`, perhaps with a body that implements abstract methods.
    Instantiation(Instantiation),
    /// `T name<X>(params) { ... }`
    Function(FunctionDecl),
    /// `extern T name<X>(params);`
    ExternFunction(Signature),
    /// `extern Name<X> { methods }`
    Extern(ExternDecl),
    /// `action name(params) { ... }`
    Action(ActionDecl),
    /// `parser Name(params)(constructor params) { ... }`
    Parser(ParserDecl),
    /// `parser Name<X>(params);`
    ParserType(BlockType),
    /// `control Name(params)(constructor params) { ... apply { ... } }`
    Control(ControlDecl),
    /// `control Name<X>(params);`
    ControlType(BlockType),
    /// `package Name<X>(params);`
    Package(BlockType),
    /// `typedef T Name;`
    Typedef(TypedefDecl),
    /// `type T Name;`: a new type that needs casts.
    NewType(NewTypeDecl),
    /// `header Name<X> { fields }`
    Header(StructLike),
    /// `header_union Name<X> { fields }`
    HeaderUnion(StructLike),
    /// `struct Name<X> { fields }`
    Struct(StructLike),
    /// `enum Name { A, B }` or `enum bit<8> Name { A = 1 }`
    Enum(EnumDecl),
    /// `error { A, B }`
    Error(Vec<Name>),
    /// `match_kind { exact, lpm }`
    MatchKind(Vec<Name>),
    /// `value_set<T>(size) name;`, local to a parser.
    ValueSet(ValueSetDecl),
    /// `table name { ... }`, local to a control.
    Table(TableDecl),
}

impl Decl {
    /// Returns the declared name; `None` for `error` and `match_kind` declarations.
    pub fn name(&self) -> Option<&Name> {
        Some(match &self.kind {
            DeclKind::Const(d) => &d.name,
            DeclKind::Var(d) => &d.name,
            DeclKind::Instantiation(d) => &d.name,
            DeclKind::Function(d) => &d.signature.name,
            DeclKind::ExternFunction(d) => &d.name,
            DeclKind::Extern(d) => &d.name,
            DeclKind::Action(d) => &d.name,
            DeclKind::Parser(d) => &d.ty.name,
            DeclKind::Control(d) => &d.ty.name,
            DeclKind::ParserType(d) | DeclKind::ControlType(d) | DeclKind::Package(d) => &d.name,
            DeclKind::Typedef(d) => &d.name,
            DeclKind::NewType(d) => &d.name,
            DeclKind::Header(d) | DeclKind::HeaderUnion(d) | DeclKind::Struct(d) => &d.name,
            DeclKind::Enum(d) => &d.name,
            DeclKind::ValueSet(d) => &d.name,
            DeclKind::Table(d) => &d.name,
            DeclKind::Error(_) | DeclKind::MatchKind(_) => return None,
        })
    }
}

/// `const T NAME = value;`
#[derive(Clone, Debug)]
pub struct ConstDecl {
    /// The declared type.
    pub ty: Type,
    /// The constant's name.
    pub name: Name,
    /// Its value.
    pub value: Expr,
}

/// `T name = value;`
#[derive(Clone, Debug)]
pub struct VarDecl {
    /// The declared type.
    pub ty: Type,
    /// The variable's name.
    pub name: Name,
    /// The initial value, if written.
    pub init: Option<Expr>,
}

/// `T(args) name = { methods };`
#[derive(Clone, Debug)]
pub struct Instantiation {
    /// The type that is instantiated.
    pub ty: Type,
    /// The constructor's arguments.
    pub args: Vec<Argument>,
    /// The instance's name.
    pub name: Name,
    /// The functions (and instances) that implement the type's abstract methods.
    pub body: Option<Vec<Decl>>,
}

/// A function's return type, name and parameters.
#[derive(Clone, Debug)]
pub struct Signature {
    /// The return type, perhaps [`TypeKind::Void`](super::TypeKind::Void).
    pub return_type: Type,
    /// The function's name.
    pub name: Name,
    /// The type parameters.
    pub type_params: Vec<Name>,
    /// The parameters.
    pub params: Vec<Param>,
    /// From the return type to the closing parenthesis.
    pub span: Span,
}

/// A function with a body.
#[derive(Clone, Debug)]
pub struct FunctionDecl {
    /// Return type, name, parameters.
    pub signature: Signature,
    /// The body.
    pub body: Block,
}

/// An extern object's type.
#[derive(Clone, Debug)]
pub struct ExternDecl {
    /// The type's name.
    pub name: Name,
    /// The type parameters.
    pub type_params: Vec<Name>,
    /// Constructors and methods in order.
    pub members: Vec<ExternMember>,
}

/// A constructor or method of an extern object.
#[derive(Clone, Debug)]
pub struct ExternMember {
    /// The annotations before it.
    pub annotations: Vec<Annotation>,
    /// The kind of member.
    pub kind: ExternMemberKind,
    /// The whole member.
    pub span: Span,
}

/// The kinds of [`ExternMember`].
#[derive(Clone, Debug)]
pub enum ExternMemberKind {
    /// `Name(params);` with the extern's own name.
    Constructor {
        /// The name as written here.
        name: Name,
        /// The constructor's parameters.
        params: Vec<Param>,
    },
    /// `T name(params);`
    Method {
        /// True if it is `abstract`: the instantiation must provide it.
        is_abstract: bool,
        /// Return type, name, parameters.
        signature: Signature,
    },
}

/// An action.
#[derive(Clone, Debug)]
pub struct ActionDecl {
    /// The action's name.
    pub name: Name,
    /// Its parameters; the ones without direction are set by the control plane.
    pub params: Vec<Param>,
    /// The body.
    pub body: Block,
}

/// The type of a parser, control or package: its signature.
#[derive(Clone, Debug)]
pub struct BlockType {
    /// The name.
    pub name: Name,
    /// The type parameters.
    pub type_params: Vec<Name>,
    /// The parameters (a package's are its constructor's).
    pub params: Vec<Param>,
}

/// A parser with a body.
#[derive(Clone, Debug)]
pub struct ParserDecl {
    /// Name, type parameters (which the grammar allows here; whether they are is for later passes) and parameters.
    pub ty: BlockType,
    /// The constructor's parameters; empty when not written.
    pub constructor_params: Vec<Param>,
    /// Constants, variables, instances and value sets before the states.
    pub locals: Vec<Decl>,
    /// The states in order.
    pub states: Vec<ParserState>,
}

/// `state name { statements transition ... }`
#[derive(Clone, Debug)]
pub struct ParserState {
    /// The annotations before it.
    pub annotations: Vec<Annotation>,
    /// The state's name.
    pub name: Name,
    /// The statements before the transition.
    pub body: Vec<Stmt>,
    /// The next state; a state without a transition goes to `reject`.
    pub transition: Option<Transition>,
    /// The whole state.
    pub span: Span,
}

/// `transition next;` or `transition select(...) { ... }`
#[derive(Clone, Debug)]
pub struct Transition {
    /// The kind of transition.
    pub kind: TransitionKind,
    /// The whole transition.
    pub span: Span,
}

/// The kinds of [`Transition`].
#[derive(Clone, Debug)]
pub enum TransitionKind {
    /// To this state whatever comes.
    State(Name),
    /// To the state of the first case that matches.
    Select {
        /// The values compared.
        args: Vec<Expr>,
        /// The cases in order.
        cases: Vec<SelectCase>,
    },
}

/// `keysets: state;`
#[derive(Clone, Debug)]
pub struct SelectCase {
    /// The key sets for the selected values.
    pub keysets: Keysets,
    /// The state to go to.
    pub state: Name,
    /// The whole case.
    pub span: Span,
}

/// `value_set<T>(size) name;`
#[derive(Clone, Debug)]
pub struct ValueSetDecl {
    /// The type of the members.
    pub ty: Type,
    /// The number of its members.
    pub size: Expr,
    /// The value set's name.
    pub name: Name,
}

/// A control with a body.
#[derive(Clone, Debug)]
pub struct ControlDecl {
    /// Name, type parameters (which the grammar allows here; whether they are is for later passes) and parameters.
    pub ty: BlockType,
    /// The constructor's parameters; empty when not written.
    pub constructor_params: Vec<Param>,
    /// Constants, variables, instances, actions and tables.
    pub locals: Vec<Decl>,
    /// The body after `apply`.
    pub apply: Block,
}

/// `typedef T Name;`
#[derive(Clone, Debug)]
pub struct TypedefDecl {
    /// The new name.
    pub name: Name,
    /// The aliased type.
    pub target: TypedefTarget,
}

/// The target of a `typedef`.
#[derive(Clone, Debug)]
pub enum TypedefTarget {
    /// A type.
    Type(Type),
    /// A header, header union, struct or enum declared on the spot.
    Decl(Box<Decl>),
}

/// `type T Name;`
#[derive(Clone, Debug)]
pub struct NewTypeDecl {
    /// The new type's name.
    pub name: Name,
    /// The type it is represented by.
    pub ty: Type,
}

/// A header, header union or struct.
#[derive(Clone, Debug)]
pub struct StructLike {
    /// The type's name.
    pub name: Name,
    /// The type parameters.
    pub type_params: Vec<Name>,
    /// The fields in order.
    pub fields: Vec<Field>,
}

/// `T name;` in a struct, header or header union.
#[derive(Clone, Debug)]
pub struct Field {
    /// The annotations before it.
    pub annotations: Vec<Annotation>,
    /// The field's type.
    pub ty: Type,
    /// The field's name.
    pub name: Name,
    /// The whole field with its semicolon.
    pub span: Span,
}

/// An enum; one with an underlying type is serializable.
#[derive(Clone, Debug)]
pub struct EnumDecl {
    /// The type's name.
    pub name: Name,
    /// The underlying type of a serializable enum.
    pub underlying: Option<Type>,
    /// The members in order.
    pub members: Vec<EnumMember>,
}

/// A member of an enum.
#[derive(Clone, Debug)]
pub struct EnumMember {
    /// The member's name.
    pub name: Name,
    /// Its value: always there in a serializable enum, never in another.
    pub value: Option<Expr>,
}
