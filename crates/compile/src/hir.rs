//! The checked program: the tree with every name resolved, every type known and every implicit cast written out.
//!
//! The checker produces it, lowering consumes it. It still has everything of the language (functions, sub-parsers,
//! structs, side effects in expressions); only generics, overloading and compile-time integers are gone.

use std::rc::Rc;
use std::sync::Arc;

use num_bigint::BigInt;
use syntax::ast::{Annotation, Direction};
use syntax::source::Span;

use crate::meaning::{Meaning, Method};
use crate::types::{BlockId, DeclaredFunction, DeclaredMethod, ExternId, FnSig, Ty, Types, index};

index! {
    /// A variable, parameter or instance.
    VarId,
    /// A function with a body.
    FuncId,
    /// An action.
    ActionId,
    /// A table.
    TableId,
}

/// A checked program.
#[derive(Debug, Default)]
pub struct Module {
    /// The types.
    pub types: Types,
    /// The default values of parameters, by [`DefaultId`].
    pub defaults: Vec<Expr>,
    /// All variables, parameters and instances.
    pub vars: Vec<Var>,
    /// Functions, specialised.
    pub functions: Vec<Function>,
    /// Actions.
    pub actions: Vec<Action>,
    /// Tables.
    pub tables: Vec<Table>,
    /// Parsers and controls, by [`BlockId`].
    pub blocks: Vec<Block>,
    /// Instances declared at the top level, in order.
    pub instances: Vec<VarId>,
    /// The headers with `@controller_header` in order.
    pub controller_headers: Vec<Ty>,
}

impl Module {
    /// Returns the variable with the id `id`.
    pub fn var(&self, id: VarId) -> &Var {
        &self.vars[id.index()]
    }

    /// Returns the parser or control with the id `id`.
    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.index()]
    }
}

/// A variable, parameter or instance.
#[derive(Clone, Debug)]
pub struct Var {
    /// Its name.
    pub name: Arc<str>,
    /// Its type.
    pub ty: Ty,
    /// Its kind.
    pub kind: VarKind,
    /// Its annotations.
    pub annotations: Rc<[Annotation]>,
    /// The place of its declaration.
    pub span: Span,
}

/// The kind of a [`Var`].
#[derive(Clone, Debug)]
pub enum VarKind {
    /// A local variable.
    Local,
    /// A parameter.
    Param(Direction),
    /// A parameter of an action, without direction.
    ActionData,
    /// A constructor's parameter.
    ConstructorParam,
    /// The variable of a `for ... in`.
    Loop {
        /// True if the body writes to it; that changes nothing for the next round.
        written: bool,
    },
    /// An instance of an extern, parser or control.
    Instance(Rc<[Arg]>),
    /// A parser value set and its size.
    ValueSet(Rc<Expr>),
}

/// A function with a body.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: Arc<str>,
    /// Its parameters.
    pub params: Vec<VarId>,
    /// The type of its result.
    pub ret: Ty,
    /// Its body.
    pub body: Rc<[Stmt]>,
}

/// An action.
#[derive(Clone, Debug)]
pub struct Action {
    /// Its name.
    pub name: Arc<str>,
    /// Its annotations.
    pub annotations: Rc<[Annotation]>,
    /// True if it is declared at the top level.
    pub global: bool,
    /// All parameters.
    pub params: Vec<VarId>,
    /// The number of them, from the front, that have a direction.
    pub directed: usize,
    /// The signature for calls.
    pub sig: Rc<FnSig>,
    /// Its body.
    pub body: Rc<[Stmt]>,
    /// The place of its declaration.
    pub span: Span,
}

/// A parser or control with a body.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its name.
    pub name: Arc<str>,
    /// True if it is a parser.
    pub is_parser: bool,
    /// Its annotations.
    pub annotations: Rc<[Annotation]>,
    /// Its parameters.
    pub params: Vec<VarId>,
    /// The signature for `apply`.
    pub sig: Rc<FnSig>,
    /// The constructor's parameters.
    pub constructor_params: Vec<VarId>,
    /// The signature for instantiations.
    pub constructor: Rc<FnSig>,
    /// Local declarations in order.
    pub locals: Vec<Local>,
    /// The body of a control.
    pub apply: Rc<[Stmt]>,
    /// The states of a parser; the first is `start`.
    pub states: Vec<State>,
    /// The place of its declaration.
    pub span: Span,
}

/// A local declaration of a parser or control that has an effect.
#[derive(Clone, Debug)]
pub enum Local {
    /// A variable, with its initial value.
    Var(VarId, Option<Expr>),
    /// An instance of an extern, parser or control.
    Instance(VarId),
    /// A table.
    Table(TableId),
}

/// A parser state.
#[derive(Clone, Debug)]
pub struct State {
    /// Its name.
    pub name: Arc<str>,
    /// Its statements.
    pub body: Vec<Stmt>,
    /// Its transition.
    pub transition: Transition,
    /// Its place in the source.
    pub span: Span,
}

/// The target of a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The state with this position in [`Block::states`].
    State(usize),
    /// `accept`
    Accept,
    /// `reject`
    Reject,
}

/// The end of a state.
#[derive(Clone, Debug)]
pub enum Transition {
    /// Unconditional.
    Goto(Target),
    /// `select`
    Select {
        /// The values; scalars.
        keys: Vec<Expr>,
        /// The cases.
        cases: Vec<(Vec<Keyset>, Target)>,
    },
}

/// A set of values for one key. Its expressions have the key's type and are constant, though perhaps only after
/// instantiation.
#[derive(Clone, Debug)]
pub enum Keyset {
    /// Anything.
    Any,
    /// One value.
    Value(Expr),
    /// Value and mask.
    Mask(Expr, Expr),
    /// Both ends included.
    Range(Expr, Expr),
    /// A value set; covers all keys.
    ValueSet(VarId),
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name.
    pub name: Arc<str>,
    /// Its annotations.
    pub annotations: Rc<[Annotation]>,
    /// Its key.
    pub keys: Vec<TableKey>,
    /// Its actions.
    pub actions: Vec<TableAction>,
    /// Index in `actions` of the default action, and its arguments.
    pub default_action: (usize, Vec<Expr>),
    /// True if `const` stands before it.
    pub const_default: bool,
    /// Its entries in order.
    pub entries: Vec<TableEntry>,
    /// True if the entries are `const`.
    pub const_entries: bool,
    /// True if it has an `entries` property, perhaps empty.
    pub has_entries: bool,
    /// `size`, if written.
    pub size: Option<Expr>,
    /// `largest_priority_wins`
    pub largest_priority_wins: bool,
    /// `priority_delta`
    pub priority_delta: u32,
    /// `counters`
    pub counters: Option<Resource>,
    /// `meters`
    pub meters: Option<Resource>,
    /// `implementation`
    pub implementation: Option<Resource>,
    /// `support_timeout`
    pub support_timeout: bool,
    /// The place of its declaration.
    pub span: Span,
}

/// An extern instance that a table property names, or makes on the spot.
#[derive(Clone, Debug)]
pub struct Resource {
    /// The instance.
    pub expr: Expr,
    /// The annotations of the property, which are those of an instance made there.
    pub annotations: Rc<[Annotation]>,
}

/// A key field.
#[derive(Clone, Debug)]
pub struct TableKey {
    /// The value.
    pub expr: Expr,
    /// Its match kind.
    pub match_kind: ir::MatchKind,
    /// The control-plane name.
    pub name: String,
    /// Its annotations.
    pub annotations: Rc<[Annotation]>,
}

/// An action of a table.
#[derive(Clone, Debug)]
pub struct TableAction {
    /// The action.
    pub action: ActionId,
    /// The arguments of the parameters with direction. They are evaluated when the action is invoked.
    pub bound: Args,
    /// The annotations of the reference.
    pub annotations: Rc<[Annotation]>,
}

/// An entry.
#[derive(Clone, Debug)]
pub struct TableEntry {
    /// True if `const` stands before it.
    pub is_const: bool,
    /// One per key field.
    pub keysets: Vec<Keyset>,
    /// The priority, if written.
    pub priority: Option<Expr>,
    /// The number in `@priority(n)`, the lowest of which wins.
    pub rank: Option<u32>,
    /// Index in [`Table::actions`].
    pub action: usize,
    /// One argument per parameter without direction.
    pub args: Vec<Expr>,
    /// Its place in the source.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// Which statement.
    pub kind: StmtKind,
    /// Its place in the source.
    pub span: Span,
}

/// The kind of a [`Stmt`].
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// A local variable and its initial value.
    Declare(VarId, Option<Expr>),
    /// An instance among statements.
    Instance(VarId),
    /// An assignment.
    Assign(Expr, Expr),
    /// `target op= value`; the value is the right operand, already of the operator's type.
    AssignOp(BinaryOp, Expr, Expr),
    /// A call.
    Call(Expr),
    /// `if`
    If(Expr, Rc<[Stmt]>, Rc<[Stmt]>),
    /// `switch` on a table's `action_run`: positions in [`Table::actions`].
    SwitchAction {
        /// The table.
        table: TableId,
        /// The cases.
        cases: Vec<(Vec<usize>, Rc<[Stmt]>)>,
        /// The default case.
        default: Rc<[Stmt]>,
    },
    /// `switch` on a value.
    Switch {
        /// The value.
        value: Expr,
        /// The cases; labels are constant and of the value's type.
        cases: Vec<(Vec<Expr>, Rc<[Stmt]>)>,
        /// The default case.
        default: Rc<[Stmt]>,
    },
    /// `return`
    Return(Option<Expr>),
    /// `exit`
    Exit,
    /// `break`
    Break,
    /// `continue`
    Continue,
    /// `{ ... }`
    Block(Rc<[Stmt]>),
    /// `for (;;)`
    For {
        /// Before the first round.
        init: Rc<[Stmt]>,
        /// Before each round.
        condition: Expr,
        /// After each round.
        update: Rc<[Stmt]>,
        /// The body.
        body: Rc<[Stmt]>,
    },
    /// `for (v in low .. high)`
    ForRange {
        /// The variable.
        variable: VarId,
        /// The first value.
        low: Expr,
        /// The last value.
        high: Expr,
        /// The body.
        body: Rc<[Stmt]>,
    },
    /// `for (v in list)`
    ForEach {
        /// The variable.
        variable: VarId,
        /// A list, tuple or header stack.
        collection: Expr,
        /// The body.
        body: Rc<[Stmt]>,
    },
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Which expression.
    pub kind: ExprKind,
    /// Its type.
    pub ty: Ty,
    /// Its place in the source.
    pub span: Span,
}

impl Expr {
    /// Makes an expression of type `ty` at the place `span` of the source.
    pub fn new(kind: ExprKind, ty: Ty, span: Span) -> Expr {
        Expr { kind, ty, span }
    }

    /// Makes an expression that replaces one in which an error was reported.
    pub fn missing(span: Span) -> Expr {
        Expr::new(ExprKind::Missing, Ty::Missing, span)
    }

    /// Returns the value of a constant integer; `None` for any other expression.
    pub fn as_int(&self) -> Option<&BigInt> {
        match &self.kind {
            ExprKind::Int(value) => Some(value),
            _ => None,
        }
    }

    /// Returns whether two constants are equal; `None` if the answer depends on the values that `...` or an
    /// invalid header in them stands for.
    pub fn same_literal(&self, other: &Expr) -> Option<bool> {
        match (&self.kind, &other.kind) {
            (ExprKind::Aggregate(a), ExprKind::Aggregate(b)) => {
                let pairs = a.iter().zip(b).map(|(a, b)| a.same_literal(b));
                let equal: Option<Vec<bool>> = pairs.collect();
                equal.map(|e| a.len() == b.len() && e.iter().all(|e| *e))
            }
            (ExprKind::Default | ExprKind::InvalidHeader, _)
            | (_, ExprKind::Default | ExprKind::InvalidHeader) => None,
            _ => Some(self.is_same(other)),
        }
    }

    /// Returns the direct operands of the expression, including the arguments of a call.
    pub fn operands(&self) -> Vec<&Expr> {
        use ExprKind as E;
        match &self.kind {
            E::Field(a, _) | E::Next(a) | E::Last(a) | E::LastIndex(a) => vec![a],
            E::Slice(a, ..) | E::Unary(_, a) | E::Cast(a) => vec![a],
            E::Index(a, b) | E::PlusSlice(a, b, _) | E::Binary(_, a, b) => vec![a, b],
            E::Ternary(a, b, c) => vec![a, b, c],
            E::Aggregate(items) | E::Named(items, _) => items.iter().collect(),
            E::Call(call) => call.args.iter().filter_map(Arg::expr).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns whether the two expressions are written in the same way: with the same names, operators and literals.
    pub fn is_same(&self, other: &Expr) -> bool {
        let all = |a: &[Expr], b: &[Expr]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_same(b))
        };
        use ExprKind as E;
        match (&self.kind, &other.kind) {
            (E::Int(a), E::Int(b)) => a == b,
            (E::Bool(a), E::Bool(b)) => a == b,
            (E::Str(a), E::Str(b)) => a == b,
            (E::Symbol(a), E::Symbol(b)) => a == b,
            (E::Var(a), E::Var(b)) => a == b,
            (E::Field(a, i), E::Field(b, j)) => i == j && a.is_same(b),
            (E::Index(a, i), E::Index(b, j)) => a.is_same(b) && i.is_same(j),
            (E::Slice(a, i, j), E::Slice(b, k, l)) => i == k && j == l && a.is_same(b),
            (E::PlusSlice(a, i, w), E::PlusSlice(b, j, v)) => {
                w == v && a.is_same(b) && i.is_same(j)
            }
            (E::Unary(f, a), E::Unary(g, b)) => f == g && a.is_same(b),
            (E::Binary(f, a, c), E::Binary(g, b, d)) => f == g && a.is_same(b) && c.is_same(d),
            (E::Cast(a), E::Cast(b)) => self.ty == other.ty && a.is_same(b),
            (E::Ternary(a, b, c), E::Ternary(d, e, f)) => {
                a.is_same(d) && b.is_same(e) && c.is_same(f)
            }
            (E::Aggregate(a), E::Aggregate(b)) => all(a, b),
            (E::Named(a, i), E::Named(b, j)) => i == j && all(a, b),
            (E::InvalidHeader, E::InvalidHeader) | (E::Default, E::Default) => true,
            (E::Call(a), E::Call(b)) => match (&a.target, &b.target) {
                (CallTarget::Function(f), CallTarget::Function(g)) => {
                    f == g && same_args(&a.args, &b.args)
                }
                (CallTarget::Extern(f), CallTarget::Extern(g)) => {
                    f.sig.span == g.sig.span && same_args(&a.args, &b.args)
                }
                (CallTarget::IsValid(a), CallTarget::IsValid(b)) => a.is_same(b),
                _ => false,
            },
            _ => false,
        }
    }

    /// Returns whether the evaluation of the expression has effects other than its value. Calls,
    /// applications of tables, and `stack.next` and `stack.last` have effects, except calls of `isValid()`
    /// and of the method for a packet's length.
    pub fn has_effects(&self) -> bool {
        match &self.kind {
            ExprKind::Call(call) => match &call.target {
                CallTarget::IsValid(header) => header.has_effects(),
                CallTarget::Method { method, .. } => {
                    method.meaning != Some(Meaning::Common(Method::PacketLength))
                }
                _ => true,
            },
            ExprKind::ApplyHit { .. } | ExprKind::Next(_) | ExprKind::Last(_) => true,
            _ => self.operands().into_iter().any(Expr::has_effects),
        }
    }

    /// Returns whether the expression consists only of literals.
    pub fn is_literal(&self) -> bool {
        match &self.kind {
            ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Str(_) | ExprKind::Symbol(_) => true,
            ExprKind::Default | ExprKind::InvalidHeader | ExprKind::Missing => true,
            ExprKind::Aggregate(items) => items.iter().all(Expr::is_literal),
            _ => false,
        }
    }
}

fn same_args(a: &[Arg], b: &[Arg]) -> bool {
    let same = |(a, b): (&Arg, &Arg)| match (a.expr(), b.expr()) {
        (Some(a), Some(b)) => a.is_same(b),
        (a, b) => a.is_none() && b.is_none(),
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// The kind of an [`Expr`].
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// An integer, in the range of its type (`bit`, `int`, serializable enum or new type).
    Int(BigInt),
    /// A truth value.
    Bool(bool),
    /// A string.
    Str(Arc<str>),
    /// The position of an error, or of a member of an enum without an underlying type.
    Symbol(u32),
    /// A variable, parameter or instance.
    Var(VarId),
    /// A field of a struct, header or union, or a member of a tuple.
    Field(Box<Expr>, usize),
    /// `stack[index]`
    Index(Box<Expr>, Box<Expr>),
    /// `stack.next`
    Next(Box<Expr>),
    /// `stack.last`
    Last(Box<Expr>),
    /// `stack.lastIndex`
    LastIndex(Box<Expr>),
    /// `base[high:low]`
    Slice(Box<Expr>, u32, u32),
    /// `base[low +: width]` with a low end known at run time.
    PlusSlice(Box<Expr>, Box<Expr>, u32),
    /// An operator with one operand.
    Unary(UnaryOp, Box<Expr>),
    /// An operator with two operands, of equal types but for shifts and concatenation.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// To the expression's type.
    Cast(Box<Expr>),
    /// `condition ? a : b`
    Ternary(Box<Expr>, Box<Expr>, Box<Expr>),
    /// The fields of a struct, header (which is valid), tuple or list, evaluated in this order.
    Aggregate(Vec<Expr>),
    /// The fields of a struct or header, in the order in which they are written and evaluated, and the
    /// position of each in the type.
    Named(Vec<Expr>, Vec<usize>),
    /// An invalid header or header union.
    InvalidHeader,
    /// The default value of the type: zeros, and invalid headers.
    Default,
    /// A call.
    Call(Box<Call>),
    /// `t.apply().hit`, or `.miss`.
    ApplyHit {
        /// The table.
        table: TableId,
        /// True if it is `.miss`.
        miss: bool,
    },
    /// An expression in which an error was reported.
    Missing,
}

/// An operator with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `!`
    Not,
    /// `~`
    BitNot,
    /// `-`
    Neg,
}

pub use syntax::ast::BinaryOp;

/// A call.
#[derive(Clone, Debug)]
pub struct Call {
    /// The target.
    pub target: CallTarget,
    /// One per parameter.
    pub args: Args,
}

/// The arguments of a call, in the order of the parameters.
#[derive(Clone, Debug, Default)]
pub struct Args {
    list: Vec<Arg>,
    /// The positions of those that the call has, in the order in which they are written.
    written: Vec<usize>,
}

impl Args {
    /// Makes the arguments of a call. `written` has the positions in `list` of the arguments that the call
    /// writes down, in the order in which the call writes them.
    pub fn new(list: Vec<Arg>, written: Vec<usize>) -> Args {
        Args { list, written }
    }

    /// Returns the positions of all arguments in the order of their evaluation (specification, "Calling
    /// convention"): first those written in the call, as written, then the default values, which are
    /// constants.
    pub fn in_order(&self) -> Vec<usize> {
        let defaults = (0..self.list.len()).filter(|i| !self.written.contains(i));
        self.written.iter().copied().chain(defaults).collect()
    }

    /// Returns the arguments in the order of the parameters, without the order in which the call writes them.
    pub fn into_list(self) -> Vec<Arg> {
        self.list
    }
}

impl std::ops::Deref for Args {
    type Target = [Arg];

    fn deref(&self) -> &[Arg] {
        &self.list
    }
}

/// An argument.
#[derive(Clone, Debug)]
pub enum Arg {
    /// A value for a parameter without direction or with `in`.
    In(Expr),
    /// An lvalue for `out`.
    Out(Expr),
    /// An lvalue for `inout`.
    InOut(Expr),
    /// `_` for an `out` parameter.
    Ignore(Ty),
    /// No argument for an `@optional` parameter.
    Absent,
}

impl Arg {
    /// Returns the expression of the argument; `None` for an argument that is ignored (`_`) or absent.
    pub fn expr(&self) -> Option<&Expr> {
        match self {
            Arg::In(e) | Arg::Out(e) | Arg::InOut(e) => Some(e),
            Arg::Ignore(_) | Arg::Absent => None,
        }
    }
}

/// The target of a [`Call`].
#[derive(Clone, Debug)]
pub enum CallTarget {
    /// A function with a body.
    Function(FuncId),
    /// An action.
    Action(ActionId),
    /// An extern function.
    Extern(Rc<DeclaredFunction>),
    /// A method of an extern object.
    Method {
        /// The object.
        object: Expr,
        /// The extern.
        external: ExternId,
        /// The method.
        method: Rc<DeclaredMethod>,
    },
    /// `table.apply()`
    Table(TableId),
    /// `apply` of an instance of a parser or control.
    Block(VarId),
    /// `apply` of a parser or control type.
    BlockType(BlockId),
    /// `h.isValid()` of a header or union.
    IsValid(Expr),
    /// `h.setValid()`
    SetValid(Expr),
    /// `h.setInvalid()`
    SetInvalid(Expr),
    /// `stack.push_front(n)`
    PushFront(Expr, u32),
    /// `stack.pop_front(n)`
    PopFront(Expr, u32),
    /// An instance without a name, as in `Control()` given as an argument.
    Construct,
}
