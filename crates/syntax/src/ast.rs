//! The syntax tree of P4_16, as written.
//!
//! One type per production a reader of the language specification would look for. Every node has a [`Span`], and
//! every identifier is a [`Name`]. What the tree deliberately does not know:
//!
//! * **What a name means.** A plain identifier in an expression is always an [`ExprKind::Path`], also when it names a
//!   type: `S.f()`, `E.member`, `Ctor(x)` look the same whether the left side is a value or a type, so a constructor
//!   call is a [`ExprKind::Call`], and the direct application of a control or parser type is a [`StmtKind::Call`] whose
//!   callee is a [`ExprKind::Member`] named `apply` on that path. Only what cannot be a value is an
//!   [`ExprKind::Type`]: `error` (as in `error.NoError`) and a specialised type before a dot (`T<bit<8>>.apply()`).
//! * **Types and constants.** `bit<W + 1>` holds the expression `W + 1`; integer literals keep their digits.
//! * **Parentheses.** They only widen the span of what they enclose.
//!
//! Where the text was wrong and the parser went on, the tree holds [`ExprKind::Missing`] or [`TypeKind::Missing`].
//! Each such place has already been reported, so later passes stay silent about it.

use std::fmt;
use std::sync::Arc;

use crate::source::Span;

/// An identifier and where it stands. Cloning is cheap.
#[derive(Clone)]
pub struct Name {
    /// The identifier's text.
    pub text: Arc<str>,
    /// Where it stands.
    pub span: Span,
}

impl Name {
    /// A name from its text and place.
    pub fn new(text: impl Into<Arc<str>>, span: Span) -> Name {
        Name {
            text: text.into(),
            span,
        }
    }

    /// The identifier's text.
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
    /// Whether a dot stands before the name.
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
}

// ---------------------------------------------------------------------------------------------------------------------
// Declarations
// ---------------------------------------------------------------------------------------------------------------------

/// A declaration: at the top level, local to a parser or control, in a block, or in an instantiation's body.
#[derive(Clone, Debug)]
pub struct Decl {
    /// The annotations before it.
    pub annotations: Vec<Annotation>,
    /// What is declared.
    pub kind: DeclKind,
    /// The whole declaration with its annotations and its semicolon.
    pub span: Span,
}

/// What a [`Decl`] declares.
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
    /// The declared name; `error` and `match_kind` declarations have none.
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
    /// The return type, perhaps [`TypeKind::Void`].
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
    /// Which of the two.
    pub kind: ExternMemberKind,
    /// The whole member.
    pub span: Span,
}

/// What an [`ExternMember`] is.
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
        /// Whether it is `abstract`: the instantiation must provide it.
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

/// The type of a parser, control or package: what can be said about it without a body.
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
    /// Where to go next; a state without a transition goes to `reject`.
    pub transition: Option<Transition>,
    /// The whole state.
    pub span: Span,
}

/// `transition next;` or `transition select(...) { ... }`
#[derive(Clone, Debug)]
pub struct Transition {
    /// Which of the two.
    pub kind: TransitionKind,
    /// The whole transition.
    pub span: Span,
}

/// What a [`Transition`] is.
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
    /// What the selected values are compared with.
    pub keysets: Keysets,
    /// The state to go to.
    pub state: Name,
    /// The whole case.
    pub span: Span,
}

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
    /// Which set.
    pub kind: KeysetKind,
    /// Where it stands.
    pub span: Span,
}

/// What a [`Keyset`] is.
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

/// `value_set<T>(size) name;`
#[derive(Clone, Debug)]
pub struct ValueSetDecl {
    /// The type of the members.
    pub ty: Type,
    /// How many members it holds.
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
    /// Whether `const` stands before it.
    pub is_const: bool,
    /// The property's name as written (`key`, `size`, ...).
    pub name: Name,
    /// The property itself.
    pub kind: TablePropertyKind,
    /// The whole property.
    pub span: Span,
}

/// What a [`TableProperty`] sets.
#[derive(Clone, Debug)]
pub enum TablePropertyKind {
    /// `key = { ... }`
    Key(Vec<KeyElement>),
    /// `actions = { ... }`
    Actions(Vec<ActionRef>),
    /// `entries = { ... }`
    Entries(Vec<Entry>),
    /// `default_action = expression;`: a [`ExprKind::Path`] or a [`ExprKind::Call`] on one.
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
    /// How it is matched.
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
    /// Whether `const` stands before it.
    pub is_const: bool,
    /// The priority, if written.
    pub priority: Option<Expr>,
    /// What the key is compared with.
    pub keysets: Keysets,
    /// The action to run.
    pub action: ActionRef,
    /// The annotations after the action.
    pub annotations: Vec<Annotation>,
    /// The whole entry.
    pub span: Span,
}

/// `typedef T Name;`
#[derive(Clone, Debug)]
pub struct TypedefDecl {
    /// The new name.
    pub name: Name,
    /// What it stands for.
    pub target: TypedefTarget,
}

/// What a `typedef` names.
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
    /// Whether `@optional` stands before it.
    pub fn is_optional(&self) -> bool {
        self.annotations
            .iter()
            .any(|a| a.name.as_str() == "optional")
    }
}

/// A parameter's direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Not written.
    None,
    /// `in`
    In,
    /// `out`
    Out,
    /// `inout`
    InOut,
}

// ---------------------------------------------------------------------------------------------------------------------
// Annotations
// ---------------------------------------------------------------------------------------------------------------------

/// `@name`, `@name(tokens)`, `@name[expressions]`, `@name[k = v]` or `@pragma name tokens`.
#[derive(Clone, Debug)]
pub struct Annotation {
    /// The name after the `@`, or after `@pragma`.
    pub name: Name,
    /// What follows the name.
    pub body: AnnotationBody,
    /// Whether it was written `@pragma name ...` to the end of the line.
    pub is_pragma: bool,
    /// The whole annotation.
    pub span: Span,
}

/// What follows an annotation's name.
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
    /// The string if the body is just one string literal (or several in a row, or with `++` between them, which are
    /// joined): `@name("a.b")` or `@name["a.b"]`.
    pub fn string(&self) -> Option<String> {
        match &self.body {
            AnnotationBody::Tokens(tokens) if !tokens.is_empty() => tokens
                .iter()
                .map(|t| match &t.kind {
                    AnnotationTokenKind::Str(s) => Some(&**s),
                    AnnotationTokenKind::Symbol(s) if &**s == "++" => Some(""),
                    _ => None,
                })
                .collect(),
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

    /// The integer if the body is just one integer literal: `@id(0x2a)` or `@id[0x2a]`.
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

/// A token of an unstructured annotation body.
#[derive(Clone, Debug)]
pub struct AnnotationToken {
    /// What it is.
    pub kind: AnnotationTokenKind,
    /// Where it stands.
    pub span: Span,
}

/// What an [`AnnotationToken`] is.
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

/// `name = value`
#[derive(Clone, Debug)]
pub struct NamedExpr {
    /// The name.
    pub name: Name,
    /// The value.
    pub value: Expr,
}

// ---------------------------------------------------------------------------------------------------------------------
// Types
// ---------------------------------------------------------------------------------------------------------------------

/// A type as written.
#[derive(Clone, Debug)]
pub struct Type {
    /// Which type.
    pub kind: TypeKind,
    /// Where it stands.
    pub span: Span,
}

/// What a [`Type`] is.
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

// ---------------------------------------------------------------------------------------------------------------------
// Statements
// ---------------------------------------------------------------------------------------------------------------------

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
    /// Which statement.
    pub kind: StmtKind,
    /// The whole statement with its semicolon.
    pub span: Span,
}

/// What a [`Stmt`] is.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// `;`
    Empty,
    /// `target = value;`, or `target op= value;` with an operator.
    Assign {
        /// The operator of a compound assignment.
        op: Option<BinaryOp>,
        /// What is assigned to.
        target: Expr,
        /// The right side.
        value: Expr,
    },
    /// A call for its effect; the expression is always an [`ExprKind::Call`].
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
        /// What is switched on.
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
        /// What it runs over.
        collection: ForCollection,
        /// The body.
        body: Box<Stmt>,
    },
    /// A constant, variable or instance.
    Decl(Box<Decl>),
}

/// What a `for ... in` loop runs over.
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
    /// What it applies to.
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

// ---------------------------------------------------------------------------------------------------------------------
// Expressions
// ---------------------------------------------------------------------------------------------------------------------

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Which expression.
    pub kind: ExprKind,
    /// Where it stands, with the parentheses around it.
    pub span: Span,
}

/// What an [`Expr`] is.
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
    /// A name of any kind, see the top of this file.
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
        /// Where the operator stands.
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
        /// What is called.
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
    /// `_`: an `out` value nobody wants.
    DontCare,
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

impl IntLiteral {
    /// The value if it fits into 128 bits; wider ones are parsed from `digits`.
    pub fn to_u128(&self) -> Option<u128> {
        u128::from_str_radix(&self.digits, self.radix).ok()
    }
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
    /// The operator as written.
    pub fn symbol(self) -> &'static str {
        match self {
            UnaryOp::Not => "!",
            UnaryOp::BitNot => "~",
            UnaryOp::Neg => "-",
            UnaryOp::Plus => "+",
        }
    }
}

/// An infix operator. `&&&` and `..` are not among them: they make [`Keyset`]s.
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
    /// The operator as written.
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
