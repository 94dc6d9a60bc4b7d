//! Random programs for the reference evaluator. There are few variables and most calls write some of them, so that arguments,
//! operands and indexes often meet each other's effects.

use super::tree::{
    Argument, Call, Callable, Direction, Expr, GLOBALS, Kind, Lvalue, Operator, Parameter, Program,
    Statement, Step, Table, Type, Variable,
};
use crate::choices::Choices;

/// The deepest nesting of expressions.
const DEPTH: u32 = 3;

/// The most calls in one body. Calls in expressions count too, since the compiler inlines each call.
const CALLS: u32 = 8;

const OPERATORS: [Operator; 5] = [
    Operator::Add,
    Operator::Sub,
    Operator::Xor,
    Operator::And,
    Operator::Or,
];

/// What a body may use.
#[derive(Default)]
struct Scope {
    /// The variables in scope, each with its type and whether it can be written.
    variables: Vec<(Variable, Type, bool)>,
    /// The number of the next parameter or local variable.
    next: usize,
    /// Returns whether statements may call callables of a kind; `None` if they may call nothing.
    calls: Option<fn(Kind) -> bool>,
    tables: bool,
    returns: Option<Option<Type>>,
    calls_left: u32,
}

/// Generates the program that `bytes` determine.
pub(super) fn program(bytes: &[u8]) -> Program {
    let mut chooser = Chooser {
        choices: Choices::new(bytes),
        program: Program::default(),
        scope: Scope::default(),
    };
    chooser.program();
    chooser.program
}

struct Chooser<'a> {
    choices: Choices<'a>,
    program: Program,
    scope: Scope,
}

impl Chooser<'_> {
    fn program(&mut self) {
        for i in 0..3 + self.choices.below(3) {
            let ty = match i {
                0 => Type::Byte,
                _ => self.choices.pick(&[
                    Type::Byte,
                    Type::Byte,
                    Type::Byte,
                    Type::Pair,
                    Type::Item,
                    Type::Bool,
                ]),
            };
            self.callable(Kind::Function(ty));
        }
        self.callable(Kind::Parser);
        self.callable(Kind::Control);
        self.callable(Kind::GlobalAction);
        for _ in 0..2 {
            self.callable(Kind::LocalAction);
        }
        for _ in 0..2 {
            self.table();
        }
        self.scope = Scope::of_globals(|kind| kind == Kind::Parser);
        self.program.parser = self.statements(3);
        let count = self.choices.below(3);
        self.program.keys = (0..count).map(|_| self.expr(Type::Byte, DEPTH)).collect();
        for _ in 0..if count > 0 { 2 } else { 0 } {
            self.scope = Scope::of_globals(|_| false);
            let state = self.statements(2);
            self.program.states.push(state);
        }
        let calls = |kind| !matches!(kind, Kind::Parser | Kind::Function(_));
        self.scope = Scope::of_globals(calls);
        self.scope.tables = true;
        self.scope.calls_left = 2 * CALLS;
        self.program.ingress = self.statements(8);
    }

    fn callable(&mut self, kind: Kind) {
        let count = 1 + self.choices.below(3);
        let mut parameters: Vec<Parameter> = (0..count).map(|_| self.parameter()).collect();
        let is_action = matches!(kind, Kind::GlobalAction | Kind::LocalAction);
        if is_action && self.choices.one_in(3) {
            parameters.push(Parameter {
                ty: Type::Byte,
                direction: Direction::Entry,
                default: None,
            });
        }
        self.scope = match kind {
            Kind::LocalAction => Scope::of_globals(|_| false),
            _ => Scope::default(),
        };
        for parameter in &parameters {
            let writable = matches!(parameter.direction, Direction::Out | Direction::InOut);
            self.scope.declare(parameter.ty, writable);
        }
        self.scope.calls_left = CALLS / 4;
        self.scope.returns = match kind {
            Kind::Function(ty) => Some(Some(ty)),
            Kind::Parser => None,
            _ => Some(None),
        };
        let body = self.statements(3);
        let result = match kind {
            Kind::Function(ty) => Some(self.expr(ty, DEPTH - 1)),
            _ => None,
        };
        self.program.callables.push(Callable {
            kind,
            parameters,
            body,
            result,
        });
    }

    fn parameter(&mut self) -> Parameter {
        let direction = self.choices.pick(&[
            Direction::InOut,
            Direction::In,
            Direction::InOut,
            Direction::Out,
        ]);
        let types = [
            Type::Byte,
            Type::Byte,
            Type::Byte,
            Type::Nibble,
            Type::Item,
            Type::Pair,
            Type::Items,
        ];
        let ty = self.choices.pick(&types);
        let optional = ty == Type::Byte && direction == Direction::In && self.choices.one_in(4);
        let default = optional.then(|| self.choices.byte());
        Parameter {
            ty,
            direction,
            default,
        }
    }

    fn table(&mut self) {
        self.scope = Scope::of_globals(|_| false);
        self.scope.calls_left = CALLS;
        let count = self.choices.below(3) as usize;
        let keys: Vec<Expr> = (0..count)
            .map(|_| self.expr(Type::Byte, DEPTH - 1))
            .collect();
        let callables = self.program.callables.iter().enumerate();
        let actions = callables.filter(|(_, c)| is_action(c.kind)).map(|(i, _)| i);
        let actions: Vec<usize> = actions.collect();
        let actions: Vec<Call> = actions.into_iter().map(|i| self.call(i, true)).collect();
        let last = actions.len() as u32;
        let number = 1 << count;
        let mut entries = Vec::new();
        for value in 0..if count > 0 { number } else { 0 } {
            if self.choices.one_in(4) {
                continue;
            }
            let bits = (0..count).rev().map(|bit| value >> bit & 1 == 1).collect();
            let action = self.choices.below(last) as usize;
            entries.push((bits, action, self.choices.byte()));
        }
        let default = (self.choices.below(last) as usize, self.choices.byte());
        self.program.tables.push(Table {
            keys,
            actions,
            entries,
            default,
        });
    }

    fn statements(&mut self, most: u32) -> Vec<Statement> {
        let count = 1 + self.choices.below(most);
        (0..count).map(|_| self.statement(true)).collect()
    }

    fn statement(&mut self, outermost: bool) -> Statement {
        match self.choices.below(16) {
            1..=4 => {
                if let Some(call) = self.any_call() {
                    return Statement::Call(call);
                }
            }
            5 if outermost => {
                let ty = self.choices.pick(&[Type::Byte, Type::Pair, Type::Item]);
                let value = self.expr(ty, DEPTH);
                let i = self.scope.declare(ty, true);
                return Statement::Declare(i, ty, value);
            }
            6 | 7 => {
                if let Some(target) = self.lvalue(Type::Byte, true, DEPTH - 1) {
                    let operator = self.choices.pick(&OPERATORS);
                    return Statement::Compound(operator, target, self.expr(Type::Byte, DEPTH));
                }
            }
            8 if self.scope.tables => {
                return Statement::Apply(
                    self.choices.below(self.program.tables.len() as u32) as usize
                );
            }
            9 if outermost => {
                let condition = self.expr(Type::Bool, DEPTH);
                let then = vec![self.statement(false)];
                return Statement::If(condition, then, vec![self.statement(false)]);
            }
            10 => {
                if let Some(result) = self.scope.returns {
                    let condition = self.expr(Type::Bool, DEPTH - 1);
                    let value = result.map(|ty| self.expr(ty, DEPTH - 1));
                    return Statement::Return(condition, value);
                }
            }
            11 => {
                if let Some(header) = self.lvalue(Type::Item, true, DEPTH - 1) {
                    return Statement::SetValid(header, self.choices.one_in(2));
                }
            }
            12 => {
                if let Some(stack) = self.lvalue(Type::Items, true, 0) {
                    return Statement::Shift(stack, self.choices.one_in(2));
                }
            }
            13 => {
                let ty = self.choices.pick(&[Type::Item, Type::Pair, Type::Nibble]);
                if let Some(target) = self.lvalue(ty, true, DEPTH - 1) {
                    return Statement::Assign(target, self.expr(ty, DEPTH));
                }
            }
            _ => {}
        }
        match self.lvalue(Type::Byte, true, DEPTH - 1) {
            Some(target) => Statement::Assign(target, self.expr(Type::Byte, DEPTH)),
            None => Statement::If(self.expr(Type::Bool, DEPTH), Vec::new(), Vec::new()),
        }
    }

    /// Chooses a call of a function or action, or of a table or control, that the current body may call; `None` if
    /// there is nothing to call.
    fn any_call(&mut self) -> Option<Call> {
        let calls = |kind| self.scope.calls.is_some_and(|calls| calls(kind));
        let callables = self.program.callables.iter().enumerate();
        let fits = callables.filter(|(_, c)| calls(c.kind) || matches!(c.kind, Kind::Function(_)));
        let fits: Vec<usize> = fits.map(|(i, _)| i).collect();
        if self.scope.calls_left == 0 || fits.is_empty() {
            return None;
        }
        let callee = self.choices.pick(&fits);
        self.possible(callee).then(|| self.call(callee, false))
    }

    /// Returns whether the scope has variables for all parameters of `callee` whose arguments must be variables.
    fn possible(&self, callee: usize) -> bool {
        let place = |p: &Parameter| match p.direction {
            Direction::Out | Direction::InOut => self.has_place(p.ty, true),
            Direction::In => p.ty != Type::Items || self.has_place(p.ty, false),
            Direction::Entry => true,
        };
        self.program.callables[callee].parameters.iter().all(place)
    }

    /// Chooses the arguments of a call. If `bound`, the call is in a table's list of actions, so parameters without
    /// direction, whose arguments come from the entry, get none.
    fn call(&mut self, callee: usize, bound: bool) -> Call {
        self.scope.calls_left = self.scope.calls_left.saturating_sub(1);
        let parameters = self.program.callables[callee].parameters.clone();
        let named = self.choices.one_in(2);
        let mut order: Vec<usize> = (0..parameters.len()).collect();
        if named {
            for i in (1..order.len()).rev() {
                order.swap(i, self.choices.below(i as u32 + 1) as usize);
            }
        }
        let mut arguments = Vec::new();
        for i in order {
            let parameter = parameters[i];
            if bound && parameter.direction == Direction::Entry
                || named && parameter.default.is_some() && self.choices.one_in(2)
            {
                continue;
            }
            let value = match parameter.direction {
                Direction::In | Direction::Entry => {
                    Argument::Value(self.expr(parameter.ty, DEPTH - 1))
                }
                direction => match self.lvalue(parameter.ty, true, DEPTH - 1) {
                    Some(_) if direction == Direction::Out && !named && self.choices.one_in(8) => {
                        Argument::Nothing
                    }
                    Some(lvalue) => Argument::Place(lvalue),
                    None => Argument::Nothing,
                },
            };
            // `_` cannot be named.
            if !(named && matches!(value, Argument::Nothing)) {
                arguments.push((i, value));
            }
        }
        Call {
            callee,
            named,
            arguments,
        }
    }

    /// Chooses a call of a function that returns a value of type `ty`; `None` if no such function can be called.
    fn function(&mut self, ty: Type) -> Option<Call> {
        let callables = self.program.callables.iter().enumerate();
        let fits = callables
            .filter(|(_, c)| c.kind == Kind::Function(ty))
            .map(|(i, _)| i);
        let fits: Vec<usize> = fits.filter(|i| self.possible(*i)).collect();
        if self.scope.calls_left == 0 || fits.is_empty() {
            return None;
        }
        let callee = self.choices.pick(&fits);
        Some(self.call(callee, false))
    }

    fn has_place(&self, ty: Type, writable: bool) -> bool {
        let mut variables = self
            .scope
            .variables
            .iter()
            .filter(|(.., w)| *w || !writable);
        variables.any(|(_, of, _)| !paths(*of, ty).is_empty())
    }

    /// Chooses an lvalue of type `ty`: a variable in scope, or a part of one (field, stack element, slice), that can
    /// be written if `writable`. `depth` limits the expressions in its indexes. `None` if nothing in scope fits.
    fn lvalue(&mut self, ty: Type, writable: bool, depth: u32) -> Option<Lvalue> {
        let variables = self.scope.variables.iter();
        let fits = variables.filter(|(.., w)| *w || !writable);
        let fits: Vec<(Variable, Type, Vec<Option<usize>>, bool)> = fits
            .flat_map(|(variable, of, _)| {
                let found = paths(*of, ty).into_iter();
                found.map(|(path, slice)| (*variable, *of, path, slice))
            })
            .collect();
        if fits.is_empty() {
            return None;
        }
        let (variable, ty, path, slice) =
            fits[self.choices.below(fits.len() as u32) as usize].clone();
        let step = |step: Option<usize>| match step {
            Some(field) => Step::Field(field),
            None => Step::Index(Box::new(self.expr(Type::Byte, depth.saturating_sub(1)))),
        };
        Some(Lvalue {
            variable,
            ty,
            steps: path.into_iter().map(step).collect(),
            low: slice.then(|| 4 * self.choices.below(2)),
        })
    }

    fn read(&mut self, ty: Type, depth: u32) -> Expr {
        match self.lvalue(ty, false, depth) {
            Some(lvalue) => Expr::Read(lvalue),
            None => self.constant(ty),
        }
    }

    fn constant(&mut self, ty: Type) -> Expr {
        match ty {
            Type::Bool => Expr::Bool(self.choices.one_in(2)),
            Type::Nibble => Expr::Nibble(Box::new(Expr::Byte(self.choices.byte())), 0),
            Type::Item | Type::Pair => {
                let fields = (0..2).map(|i| (i, Expr::Byte(self.choices.byte() & 7)));
                Expr::Literal(ty, fields.collect())
            }
            _ => Expr::Byte(self.choices.byte() & 7),
        }
    }

    /// Chooses an expression of type `ty` whose operators are nested at most `depth` levels deep.
    fn expr(&mut self, ty: Type, depth: u32) -> Expr {
        if ty == Type::Items {
            // There is one in scope wherever one is asked for: see `possible`.
            return self.read(ty, 0);
        }
        let Some(less) = depth.checked_sub(1) else {
            return match self.choices.below(4) {
                0 => self.constant(ty),
                _ => self.read(ty, 0),
            };
        };
        match self.choices.below(8) {
            0 => return self.constant(ty),
            1..=3 => {
                if let Some(call) = self.function(ty) {
                    return Expr::Call(call);
                }
            }
            4 => {
                let condition = self.boxed(Type::Bool, less);
                return Expr::Choice(condition, self.boxed(ty, less), self.boxed(ty, less));
            }
            5 | 6 => return self.composed(ty, less),
            _ => {}
        }
        self.read(ty, depth)
    }

    fn boxed(&mut self, ty: Type, depth: u32) -> Box<Expr> {
        Box::new(self.expr(ty, depth))
    }

    /// Chooses an expression of type `ty` with an operator or a call, whose operands are nested at most `less` levels
    /// deep.
    fn composed(&mut self, ty: Type, less: u32) -> Expr {
        match ty {
            Type::Byte => match self.choices.below(6) {
                0 => Expr::Join(
                    self.boxed(Type::Nibble, less),
                    self.boxed(Type::Nibble, less),
                ),
                1 => {
                    let of = self.choices.pick(&[Type::Pair, Type::Item]);
                    let field = self.choices.below(2) as usize;
                    match self.function(of) {
                        Some(call) => Expr::Member(Box::new(Expr::Call(call)), of, field),
                        None => Expr::Member(Box::new(self.literal(of, less)), of, field),
                    }
                }
                _ => {
                    let operator = self.choices.pick(&OPERATORS);
                    let a = self.boxed(Type::Byte, less);
                    Expr::Binary(operator, a, self.boxed(Type::Byte, less))
                }
            },
            Type::Bool => match self.choices.below(6) {
                0 => Expr::Both(self.boxed(Type::Bool, less), self.boxed(Type::Bool, less)),
                1 => Expr::Either(self.boxed(Type::Bool, less), self.boxed(Type::Bool, less)),
                2 if self.scope.tables => {
                    Expr::Hit(self.choices.below(self.program.tables.len() as u32) as usize)
                }
                3 => match self.lvalue(Type::Item, false, less) {
                    Some(header) => Expr::IsValid(header),
                    None => Expr::Bool(true),
                },
                4 => Expr::Equal(self.boxed(Type::Pair, less), self.boxed(Type::Pair, less)),
                _ => Expr::Less(self.boxed(Type::Byte, less), self.boxed(Type::Byte, less)),
            },
            Type::Nibble => Expr::Nibble(self.boxed(Type::Byte, less), 4 * self.choices.below(2)),
            Type::Item | Type::Pair => self.literal(ty, less),
            Type::Data | Type::Items => self.read(ty, 0),
        }
    }

    /// Chooses an expression for a struct or header that lists its fields, in either order. The fields' operators are
    /// nested at most `depth` levels deep.
    fn literal(&mut self, ty: Type, depth: u32) -> Expr {
        let mut order = [0, 1];
        if self.choices.one_in(2) {
            order.reverse();
        }
        let fields = order.map(|i| (i, self.expr(Type::Byte, depth)));
        Expr::Literal(ty, fields.to_vec())
    }
}

fn is_action(kind: Kind) -> bool {
    matches!(kind, Kind::GlobalAction | Kind::LocalAction)
}

/// Returns all ways to get a part of type `wanted` from a variable of type `of`. Each is a path of field numbers and
/// indexes (`None` for an index), with true if the part is a slice of four bits of the byte at that path.
fn paths(of: Type, wanted: Type) -> Vec<(Vec<Option<usize>>, bool)> {
    if wanted == Type::Nibble && of != Type::Nibble {
        let bytes = paths(of, Type::Byte).into_iter();
        return bytes.map(|(path, _)| (path, true)).collect();
    }
    if of == wanted {
        return vec![(Vec::new(), false)];
    }
    match (of, wanted) {
        (Type::Items, Type::Item) => vec![(vec![None], false)],
        (Type::Items, Type::Byte) => {
            vec![(vec![None, Some(0)], false), (vec![None, Some(1)], false)]
        }
        (_, Type::Byte) => (0..of.fields().len())
            .map(|i| (vec![Some(i)], false))
            .collect(),
        _ => Vec::new(),
    }
}

impl Scope {
    fn of_globals(calls: fn(Kind) -> bool) -> Scope {
        let globals = GLOBALS.iter().enumerate();
        Scope {
            variables: globals
                .map(|(i, (_, ty))| (Variable::Global(i), *ty, true))
                .collect(),
            calls: Some(calls),
            calls_left: CALLS,
            ..Scope::default()
        }
    }

    /// Adds a parameter or local variable to the scope, and returns its position. `writable` says whether statements
    /// may assign to it.
    fn declare(&mut self, ty: Type, writable: bool) -> usize {
        self.variables
            .push((Variable::Local(self.next), ty, writable));
        self.next += 1;
        self.next - 1
    }
}
