//! Well-typed P4_16 programs for v1model, as text, out of bytes.
//!
//! [`program`] is a function of its bytes alone: a change of a fuzzer to them changes one decision, and where they end every decision
//! is the simplest one, so shorter bytes are smaller programs. The programs use most of the language and of v1model, and make no
//! sense. They are written to the specification, not to this compiler: one that is refused is a finding.
//!
//! It knows the grammar and the typing rules. It does not know what a program means; that is for two executors to agree on.
//!
//! - [`types`]: the types of a program, how they are declared and what is in them.
//! - [`expression`]: an expression of any given type from the variables in scope.
//! - [`statement`]: statements, with what is allowed where.
//! - [`call`]: calls of functions and blocks, and arguments, which have effects that meet.
//! - [`externs`]: calls of v1model's externs.
//! - [`table`]: actions, tables and their entries.
//! - [`parser`], [`blocks`]: the blocks of the switch, and what they are made of.

mod blocks;
mod call;
mod expression;
mod externs;
mod parser;
mod statement;
mod table;
mod types;

use crate::choices::Choices;
use externs::Objects;
use std::fmt::Write;
use table::{Action, Table};
use types::{Type, Types, Variable};

/// The most statements of a block of the switch, so that choices are left for the blocks that follow.
const BLOCK_STATEMENTS: u32 = 32;

/// The most statements of a parser state, an action or a function.
const SMALL_STATEMENTS: u32 = 8;

/// The most statements of one body, without nested ones.
const MAX_BODY: u32 = 7;

/// The deepest nesting of statements.
const NESTING: u32 = 3;

/// The deepest nesting of expressions.
const DEPTH: u32 = 3;

/// Whether the compiler can see the values of constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constants {
    /// Constants are written as they are.
    Plain,
    /// Constants are combined with a field that is always zero, where that is allowed: the program means the same,
    /// but the compiler cannot fold them.
    Hidden,
}

/// Generates the P4 program that `bytes` determine.
pub fn program(bytes: &[u8], constants: Constants) -> String {
    let mut generator = Generator {
        constants,
        choices: Choices::new(bytes),
        types: Types::default(),
        constants_by_name: Vec::new(),
        functions: Vec::new(),
        controls: Vec::new(),
        parsers: Vec::new(),
        scope: Scope::default(),
        text: String::new(),
        indent: 0,
        names: 0,
        statements_left: 0,
        calls_left: 0,
        in_arguments: false,
        touched: Vec::new(),
    };
    generator.program();
    generator.text
}

/// The direction of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    In,
    Out,
    InOut,
    /// No direction: the argument of an action comes from the table entry.
    Entry,
}

impl Direction {
    fn text(self) -> &'static str {
        match self {
            Direction::In => "in ",
            Direction::Out => "out ",
            Direction::InOut => "inout ",
            Direction::Entry => "",
        }
    }

    /// Returns whether an argument for this direction must be a variable that can be written to.
    fn writes(self) -> bool {
        matches!(self, Direction::Out | Direction::InOut)
    }
}

#[derive(Clone, Debug)]
struct Parameter {
    name: String,
    direction: Direction,
    ty: Type,
}

/// A function, a control or a parser that others call.
#[derive(Clone, Debug)]
struct Callable {
    name: String,
    parameters: Vec<Parameter>,
    /// The type that a function returns.
    result: Type,
}

/// The part of the program that is being written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Section {
    /// The parser.
    Parser,
    /// The ingress control, or a control that only it applies.
    Ingress,
    /// The egress control.
    Egress,
    /// A control that ingress and egress both apply, which must not contain statements for only one of them, such as
    /// choosing a port.
    Both,
    /// Any other part; externs must not be used there.
    #[default]
    Elsewhere,
}

/// What the body that is being written may contain.
#[derive(Clone, Debug, Default)]
struct Scope {
    section: Section,
    variables: Vec<Variable>,
    /// True in the body of an action.
    in_action: bool,
    /// The type of the value that `return` must have; `None` outside of functions.
    result: Option<Type>,
    /// True if `return` without a value and `exit` are allowed.
    may_leave: bool,
    may_exit: bool,
    loops: u32,
    nesting: u32,
    actions: Vec<Action>,
    tables: Vec<Table>,
    objects: Objects,
    /// True if the metadata is in scope, which has the field that is always zero.
    has_zero: bool,
    /// The instances of controls (in a parser, of parsers): each one's name, and its position among the callables.
    instances: Vec<(String, usize)>,
}

struct Generator<'a> {
    constants: Constants,
    choices: Choices<'a>,
    types: Types,
    /// The name and the width of each named constant.
    constants_by_name: Vec<(String, u32)>,
    functions: Vec<Callable>,
    controls: Vec<Callable>,
    parsers: Vec<Callable>,
    scope: Scope,
    text: String,
    indent: usize,
    names: u32,
    statements_left: u32,
    /// The number of calls that the expressions of this body may still contain.
    calls_left: u32,
    in_arguments: bool,
    /// The variables that the statement has named so far; arguments often name them again, to test aliasing.
    touched: Vec<String>,
}

impl Generator<'_> {
    /// Returns a name that begins with `start` and that nothing else in the program has.
    fn name(&mut self, start: &str) -> String {
        self.names += 1;
        format!("{start}{}", self.names)
    }

    fn line(&mut self, line: impl AsRef<str>) {
        for _ in 0..self.indent {
            self.text.push_str("    ");
        }
        self.text.push_str(line.as_ref());
        self.text.push('\n');
    }

    /// Writes a line with an opening brace at its end, and indents the lines after it.
    fn open(&mut self, line: impl AsRef<str>) {
        self.line(format!("{} {{", line.as_ref()));
        self.indent += 1;
    }

    fn close(&mut self) {
        self.close_with("}");
    }

    fn close_with(&mut self, line: &str) {
        self.indent -= 1;
        self.line(line);
    }

    /// Returns the text of a parameter list's declaration.
    fn parameter_list(&self, parameters: &[Parameter]) -> String {
        let mut list = String::new();
        for (i, parameter) in parameters.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            let (direction, ty) = (parameter.direction.text(), self.types.name(&parameter.ty));
            // Writing to a String does not fail.
            let _ = write!(list, "{comma}{direction}{ty} {}", parameter.name);
        }
        list
    }

    /// Adds a parameter and all its parts (fields, stack elements) to the variables in scope.
    fn declare(&mut self, parameter: &Parameter) {
        let writable = parameter.direction.writes();
        let variables = &mut self.scope.variables;
        self.types
            .expand(&parameter.name, &parameter.ty, writable, variables);
    }
}
