//! The programs of the reference evaluator: every kind of callee, place and expression with effects, and few types.

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Bool,
    /// `bit<8>`
    Byte,
    /// `bit<4>`
    Nibble,
    /// The header of six bytes that packets begin with.
    Data,
    /// A header of two bytes.
    Item,
    /// A struct of two fields of one byte.
    Pair,
    /// A stack of [`ITEMS`] headers of type `Item`.
    Items,
}

/// The number of elements of a stack. An index has just as many values, so that it is never out of range.
pub(super) const ITEMS: usize = 4;

/// The variables that the blocks of the switch share, by path and type.
pub(super) const GLOBALS: [(&str, Type); 4] = [
    ("hdr.d", Type::Data),
    ("hdr.one", Type::Item),
    ("hdr.s", Type::Items),
    ("meta.m", Type::Pair),
];

impl Type {
    /// Returns the type as P4 writes it, such as `bit<8>`.
    pub fn name(self) -> &'static str {
        match self {
            Type::Bool => "bool",
            Type::Byte => "bit<8>",
            Type::Nibble => "bit<4>",
            Type::Data => "data_t",
            Type::Item => "item_t",
            Type::Pair => "pair_t",
            Type::Items => "item_t[4]",
        }
    }

    /// Returns the names of the fields, each of one byte, of a struct or header type; none for any other type.
    pub fn fields(self) -> &'static [&'static str] {
        match self {
            Type::Data => &["a", "b", "c", "d", "e", "f"],
            Type::Item => &["v", "w"],
            Type::Pair => &["x", "y"],
            _ => &[],
        }
    }
}

/// A variable: one of [`GLOBALS`], or a parameter or local variable by its position in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variable {
    Global(usize),
    Local(usize),
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Field(usize),
    /// An element of a stack; of the index, only the low two bits count.
    Index(Box<Expr>),
}

/// An expression that can be assigned to: a variable or a part of one.
#[derive(Clone, Debug)]
pub(super) struct Lvalue {
    pub variable: Variable,
    /// The type of the variable.
    pub ty: Type,
    pub steps: Vec<Step>,
    /// The lowest of the four bits that are assigned; `None` for the whole byte.
    pub low: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Operator {
    Add,
    Sub,
    Xor,
    And,
    Or,
}

#[derive(Clone, Debug)]
pub(super) enum Expr {
    Byte(u8),
    Bool(bool),
    Read(Lvalue),
    /// The four bits of a byte from this bit on.
    Nibble(Box<Expr>, u32),
    /// The byte with these high and low four bits.
    Join(Box<Expr>, Box<Expr>),
    Binary(Operator, Box<Expr>, Box<Expr>),
    Less(Box<Expr>, Box<Expr>),
    Equal(Box<Expr>, Box<Expr>),
    Both(Box<Expr>, Box<Expr>),
    Either(Box<Expr>, Box<Expr>),
    Choice(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A struct or header with named fields, in the order in which they are written.
    Literal(Type, Vec<(usize, Expr)>),
    /// A field of a struct or header that is the value of an expression.
    Member(Box<Expr>, Type, usize),
    IsValid(Lvalue),
    Call(Call),
    /// `table.apply().hit`
    Hit(usize),
}

#[derive(Clone, Debug)]
pub(super) enum Argument {
    Value(Expr),
    Place(Lvalue),
    /// `_`
    Nothing,
}

/// A call. The arguments are in the order in which they are written, each with the position of its parameter.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The position in [`Program::callables`].
    pub callee: usize,
    pub named: bool,
    pub arguments: Vec<(usize, Argument)>,
}

#[derive(Clone, Debug)]
pub(super) enum Statement {
    /// The declaration of a local variable, with its position in the body.
    Declare(usize, Type, Expr),
    Assign(Lvalue, Expr),
    Compound(Operator, Lvalue, Expr),
    Call(Call),
    Apply(usize),
    If(Expr, Vec<Statement>, Vec<Statement>),
    /// `if (condition) { return value; }`
    Return(Expr, Option<Expr>),
    SetValid(Lvalue, bool),
    /// `push_front` or `pop_front`
    Shift(Lvalue, bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    In,
    Out,
    InOut,
    /// No direction: the argument of an action comes from the table entry.
    Entry,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Parameter {
    pub ty: Type,
    pub direction: Direction,
    /// The default value of a parameter; only bytes have one.
    pub default: Option<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Function(Type),
    GlobalAction,
    /// An action of the ingress control, which can use its variables.
    LocalAction,
    Control,
    Parser,
}

#[derive(Clone, Debug)]
pub(super) struct Callable {
    pub kind: Kind,
    pub parameters: Vec<Parameter>,
    pub body: Vec<Statement>,
    /// The value that a function returns at its end.
    pub result: Option<Expr>,
}

/// An action in a table's list, with the arguments for its parameters that have a direction.
pub(super) type Listed = Call;

#[derive(Clone, Debug)]
pub(super) struct Table {
    /// The key fields: the lowest bit of each expression is matched.
    pub keys: Vec<Expr>,
    pub actions: Vec<Listed>,
    /// The entries: the values of the key fields, the position of the action in `actions`, and the action's data.
    pub entries: Vec<(Vec<bool>, usize, u8)>,
    pub default: (usize, u8),
}

/// A generated program.
#[derive(Clone, Debug, Default)]
pub(super) struct Program {
    pub callables: Vec<Callable>,
    pub tables: Vec<Table>,
    pub parser: Vec<Statement>,
    /// Expressions whose lowest bits form the number of the state that follows `start`; there may be none with that
    /// number.
    pub keys: Vec<Expr>,
    pub states: Vec<Vec<Statement>>,
    pub ingress: Vec<Statement>,
}
