//! A tree-walking evaluator of the specification's rules: "Calling convention: call by copy in/copy out", "Expression evaluation
//! order", "Assignment statement", and when the arguments of a table's actions are evaluated. Every value is a copy, and every
//! argument a temporary, by the letter of the text; nothing here is faster than that, and nothing is shared with the compiler.

use super::tree::{
    Argument, Call, Direction, Expr, ITEMS, Lvalue, Operator, Program, Statement, Step, Type,
    Variable,
};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Bool(bool),
    Bits(u8),
    /// A header: whether it is valid, and its fields, which are zero if it is invalid.
    Header(bool, Vec<Value>),
    Members(Vec<Value>),
}

/// An lvalue whose indices have been evaluated.
#[derive(Clone, Debug)]
struct Place {
    variable: Variable,
    steps: Vec<usize>,
    low: Option<u32>,
}

struct Machine<'a> {
    program: &'a Program,
    globals: Vec<Value>,
    /// The parameters and local variables of the bodies that are running, the innermost body last.
    frames: Vec<Vec<Value>>,
}

/// How a body ended: `None` if its end was reached; `Some` after a `return`, with the value that a function returns.
type Returned = Option<Option<Value>>;

/// Runs a program on a packet of [`super::PACKET_BYTES`] bytes, and returns the bytes of the packet that leaves.
pub(super) fn run(program: &Program, packet: &[u8]) -> Vec<u8> {
    let mut bytes = packet.iter().map(|byte| Value::Bits(*byte));
    let mut take = |count| bytes.by_ref().take(count).collect::<Vec<Value>>();
    let mut machine = Machine {
        program,
        globals: vec![
            Value::Header(true, take(6)),
            Value::Header(true, take(2)),
            Value::Members((0..ITEMS).map(|_| Value::Header(true, take(2))).collect()),
            Value::Members(take(2)),
        ],
        frames: Vec::new(),
    };
    machine.parse();
    machine.body(&program.ingress, Vec::new());
    let mut out = Vec::new();
    machine
        .globals
        .iter()
        .for_each(|value| value.emit(&mut out));
    out
}

impl Value {
    /// Returns the initial value of a variable of type `ty`: false, zero, or an invalid header.
    fn initial(ty: Type) -> Value {
        let bytes = vec![Value::Bits(0); ty.fields().len()];
        match ty {
            Type::Bool => Value::Bool(false),
            Type::Byte | Type::Nibble => Value::Bits(0),
            Type::Data | Type::Item => Value::Header(false, bytes),
            Type::Pair => Value::Members(bytes),
            Type::Items => Value::Members(vec![Value::initial(Type::Item); ITEMS]),
        }
    }

    fn byte(&self) -> u8 {
        match self {
            Value::Bits(byte) => *byte,
            other => panic!("{other:?} is no number"),
        }
    }

    fn truth(&self) -> bool {
        match self {
            Value::Bool(truth) => *truth,
            other => panic!("{other:?} is no condition"),
        }
    }

    fn member(&self, i: usize) -> &Value {
        match self {
            Value::Header(_, members) | Value::Members(members) => &members[i],
            other => panic!("{other:?} has no members"),
        }
    }

    /// Replaces a part of the value by `new`: the part to which the path `steps` leads, or only four bits of it from
    /// bit `low` on. A write to an invalid header has no effect.
    fn set(&mut self, steps: &[usize], low: Option<u32>, new: Value) {
        match (steps, self) {
            ([], old) => {
                *old = match low {
                    Some(low) => {
                        Value::Bits(old.byte() & !(0xf << low) | (new.byte() & 0xf) << low)
                    }
                    None => new,
                }
            }
            (_, Value::Header(false, _)) => {}
            ([first, rest @ ..], Value::Header(true, members) | Value::Members(members)) => {
                members[*first].set(rest, low, new);
            }
            (_, other) => panic!("{other:?} has no members"),
        }
    }

    fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Value::Bits(byte) => out.push(*byte),
            Value::Header(true, members) | Value::Members(members) => {
                members.iter().for_each(|member| member.emit(out));
            }
            Value::Header(false, _) | Value::Bool(_) => {}
        }
    }
}

fn operate(operator: Operator, a: u8, b: u8) -> u8 {
    match operator {
        Operator::Add => a.wrapping_add(b),
        Operator::Sub => a.wrapping_sub(b),
        Operator::Xor => a ^ b,
        Operator::And => a & b,
        Operator::Or => a | b,
    }
}

impl Machine<'_> {
    fn parse(&mut self) {
        let program = self.program;
        self.frames.push(Vec::new());
        self.statements(&program.parser);
        let number = self.bits_of(&program.keys);
        self.frames.pop();
        if let Some(state) = program.states.get(number) {
            self.body(state, Vec::new());
        }
    }

    /// Evaluates keys from left to right, and returns the number whose binary digits are the lowest bits of the keys,
    /// the first key's the most significant.
    fn bits_of(&mut self, keys: &[Expr]) -> usize {
        let bit = |key: &Expr| usize::from(self.value(key).byte() & 1);
        keys.iter()
            .map(bit)
            .fold(0, |number, bit| number << 1 | bit)
    }

    /// Runs a body with these values of its parameters. Returns their values at the end, with those of the local
    /// variables, and how the body ended.
    fn body(&mut self, body: &[Statement], parameters: Vec<Value>) -> (Vec<Value>, Returned) {
        self.frames.push(parameters);
        let returned = self.statements(body);
        (self.frames.pop().unwrap_or_default(), returned)
    }

    fn statements(&mut self, statements: &[Statement]) -> Returned {
        statements.iter().find_map(|s| self.statement(s))
    }

    fn statement(&mut self, statement: &Statement) -> Returned {
        match statement {
            Statement::Declare(_, _, value) => {
                let value = self.value(value);
                self.frames.last_mut().expect("a body is run").push(value);
            }
            Statement::Assign(target, value) => {
                let place = self.place(target);
                let value = self.value(value);
                self.write(&place, value);
            }
            Statement::Compound(operator, target, value) => {
                // "the old value of the left sub-expression"
                let place = self.place(target);
                let old = self.read(&place).byte();
                let new = operate(*operator, old, self.value(value).byte());
                self.write(&place, Value::Bits(new));
            }
            Statement::Call(call) => {
                self.call(call, None);
            }
            Statement::Apply(table) => {
                self.apply(*table);
            }
            Statement::If(condition, then, otherwise) => {
                let side = match self.value(condition).truth() {
                    true => then,
                    false => otherwise,
                };
                return self.statements(side);
            }
            Statement::Return(condition, value) => {
                if self.value(condition).truth() {
                    return Some(value.as_ref().map(|value| self.value(value)));
                }
            }
            Statement::SetValid(target, valid) => {
                let place = self.place(target);
                let header = match (self.read(&place), *valid) {
                    (Value::Header(_, members), true) => Value::Header(true, members),
                    _ => Value::initial(Type::Item),
                };
                self.write(&place, header);
            }
            Statement::Shift(stack, push) => {
                let place = self.place(stack);
                let Value::Members(mut items) = self.read(&place) else {
                    panic!("no stack");
                };
                match push {
                    true => {
                        items.pop();
                        items.insert(0, Value::initial(Type::Item));
                    }
                    false => {
                        items.remove(0);
                        items.push(Value::initial(Type::Item));
                    }
                }
                self.write(&place, Value::Members(items));
            }
        }
        None
    }

    fn value(&mut self, expr: &Expr) -> Value {
        match expr {
            Expr::Byte(byte) => Value::Bits(*byte),
            Expr::Bool(truth) => Value::Bool(*truth),
            Expr::Read(lvalue) => {
                let place = self.place(lvalue);
                self.read(&place)
            }
            Expr::Nibble(byte, low) => Value::Bits(self.value(byte).byte() >> low & 0xf),
            Expr::Join(a, b) => {
                let high = self.value(a).byte();
                Value::Bits(high << 4 | self.value(b).byte())
            }
            Expr::Binary(operator, a, b) => {
                let a = self.value(a).byte();
                Value::Bits(operate(*operator, a, self.value(b).byte()))
            }
            Expr::Less(a, b) => {
                let a = self.value(a).byte();
                Value::Bool(a < self.value(b).byte())
            }
            Expr::Equal(a, b) => {
                let a = self.value(a);
                Value::Bool(a == self.value(b))
            }
            Expr::Both(a, b) => Value::Bool(self.value(a).truth() && self.value(b).truth()),
            Expr::Either(a, b) => Value::Bool(self.value(a).truth() || self.value(b).truth()),
            Expr::Choice(condition, a, b) => match self.value(condition).truth() {
                true => self.value(a),
                false => self.value(b),
            },
            Expr::Literal(ty, fields) => {
                let mut members = vec![Value::Bits(0); ty.fields().len()];
                for (i, field) in fields {
                    members[*i] = self.value(field);
                }
                match ty {
                    Type::Pair => Value::Members(members),
                    _ => Value::Header(true, members),
                }
            }
            Expr::Member(base, _, i) => self.value(base).member(*i).clone(),
            Expr::IsValid(lvalue) => {
                let place = self.place(lvalue);
                Value::Bool(matches!(self.read(&place), Value::Header(true, _)))
            }
            Expr::Call(call) => self.call(call, None).expect("the function returns a value"),
            Expr::Hit(table) => Value::Bool(self.apply(*table)),
        }
    }

    /// Evaluates the indexes of an lvalue, and returns the place that it names.
    fn place(&mut self, lvalue: &Lvalue) -> Place {
        let step = |step: &Step| match step {
            Step::Field(i) => *i,
            Step::Index(index) => usize::from(self.value(index).byte()) % ITEMS,
        };
        Place {
            steps: lvalue.steps.iter().map(step).collect(),
            variable: lvalue.variable,
            low: lvalue.low,
        }
    }

    fn variable(&mut self, variable: Variable) -> &mut Value {
        match variable {
            Variable::Global(i) => &mut self.globals[i],
            Variable::Local(i) => &mut self.frames.last_mut().expect("a body is run")[i],
        }
    }

    fn read(&mut self, place: &Place) -> Value {
        let variable = &*self.variable(place.variable);
        let value = (place.steps.iter()).fold(variable, |value, step| value.member(*step));
        match place.low {
            Some(low) => Value::Bits(value.byte() >> low & 0xf),
            None => value.clone(),
        }
    }

    fn write(&mut self, place: &Place, value: Value) {
        let variable = self.variable(place.variable);
        variable.set(&place.steps, place.low, value);
    }

    /// Makes a call, with the steps in the order that the specification gives in "Calling convention", and returns
    /// the result; `None` for a call without one. `data` is the argument that a table's entry gives for a parameter
    /// without direction.
    fn call(&mut self, call: &Call, data: Option<u8>) -> Option<Value> {
        let callee = &self.program.callables[call.callee];
        let mut values: Vec<Option<Value>> = callee.parameters.iter().map(|_| None).collect();
        let mut places = Vec::new();
        for (i, argument) in &call.arguments {
            match argument {
                Argument::Value(expr) => values[*i] = Some(self.value(expr)),
                Argument::Place(lvalue) => {
                    let place = self.place(lvalue);
                    if callee.parameters[*i].direction == Direction::InOut {
                        values[*i] = Some(self.read(&place));
                    }
                    places.push((*i, place));
                }
                Argument::Nothing => {}
            }
        }
        let filled = callee
            .parameters
            .iter()
            .zip(values)
            .map(|(parameter, value)| {
                let given = match parameter.direction {
                    Direction::Entry => data,
                    _ => parameter.default,
                };
                let otherwise = || given.map_or(Value::initial(parameter.ty), Value::Bits);
                value.unwrap_or_else(otherwise)
            });
        self.frames.push(filled.collect());
        let returned = self.statements(&callee.body);
        let result = match (returned, &callee.result) {
            (Some(value), _) => value,
            (None, Some(result)) => Some(self.value(result)),
            (None, None) => None,
        };
        let last = self.frames.pop().unwrap_or_default();
        for (i, place) in places {
            self.write(&place, last[i].clone());
        }
        result
    }

    /// Applies a table: evaluates the keys, looks up the entry, then evaluates the arguments of the action that runs,
    /// and runs it. Returns whether an entry matched.
    fn apply(&mut self, table: usize) -> bool {
        let table = &self.program.tables[table];
        let number = self.bits_of(&table.keys);
        let value = |bits: &[bool]| bits.iter().fold(0, |n, bit| n << 1 | usize::from(*bit));
        let entry = table
            .entries
            .iter()
            .find(|(bits, ..)| value(bits) == number);
        let (action, data) = entry.map_or(table.default, |(_, action, data)| (*action, *data));
        self.call(&table.actions[action], Some(data));
        entry.is_some()
    }
}
