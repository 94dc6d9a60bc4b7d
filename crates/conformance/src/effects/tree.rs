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
    /// A struct of two bytes.
    Pair,
    /// A stack of [`ITEMS`] items.
    Items,
}

/// The number of elements of a stack; an index has so many bits that there is always an element.
pub(super) const ITEMS: usize = 4;

/// The variables that the blocks of the switch share: path and type.
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

/// A variable: one of [`GLOBALS`], or a parameter or local by its position in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variable {
    Global(usize),
    Local(usize),
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Field(usize),
    /// An element of a stack; only the low two bits of the index count.
    Index(Box<Expr>),
}

/// An expression that can be written to: a variable, or a part of one.
#[derive(Clone, Debug)]
pub(super) struct Lvalue {
    pub variable: Variable,
    /// The type of the variable.
    pub ty: Type,
    pub steps: Vec<Step>,
    /// The part is four bits of the byte, from this bit on.
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
    /// Four bits of a byte.
    Nibble(Box<Expr>, u32),
    /// A byte made of two nibbles.
    Join(Box<Expr>, Box<Expr>),
    Binary(Operator, Box<Expr>, Box<Expr>),
    Less(Box<Expr>, Box<Expr>),
    Equal(Box<Expr>, Box<Expr>),
    Both(Box<Expr>, Box<Expr>),
    Either(Box<Expr>, Box<Expr>),
    Choice(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A struct or header with named fields, in the order in which they are written.
    Literal(Type, Vec<(usize, Expr)>),
    /// A field of a struct or header that an expression gives.
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
    /// A local variable, the next of the body.
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
    /// Without a direction: the argument of an action comes from the table entry.
    Entry,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Parameter {
    pub ty: Type,
    pub direction: Direction,
    /// The default value of a parameter of type byte.
    pub default: Option<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Function(Type),
    GlobalAction,
    /// An action of the ingress control, which sees its variables.
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

/// An action in a table's list, with the arguments for its parameters with a direction.
pub(super) type Listed = Call;

#[derive(Clone, Debug)]
pub(super) struct Table {
    /// The low bit of each is matched.
    pub keys: Vec<Expr>,
    pub actions: Vec<Listed>,
    /// Values of the keys, position in `actions`, and the data of the action.
    pub entries: Vec<(Vec<bool>, usize, u8)>,
    pub default: (usize, u8),
}

/// A program.
#[derive(Clone, Debug, Default)]
pub(super) struct Program {
    pub callables: Vec<Callable>,
    pub tables: Vec<Table>,
    pub parser: Vec<Statement>,
    /// The low bit of each decides which state comes next: the one with that number, or none.
    pub keys: Vec<Expr>,
    pub states: Vec<Vec<Statement>>,
    pub ingress: Vec<Statement>,
}
