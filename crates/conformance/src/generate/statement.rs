//! Statements: the scope says which are allowed.

use super::call::CALLS;
use super::types::{STANDARD, Type};
use super::{DEPTH, Generator, MAX_BODY, NESTING, Section};

impl Generator<'_> {
    /// Writes a body with at most `statements` statements, nested ones included, and with at most [`CALLS`] calls.
    pub(super) fn body_of(&mut self, statements: u32) {
        self.statements_left = statements;
        self.allow_calls(CALLS);
        self.body();
    }

    /// Writes statements in a new scope; nothing if the nesting is too deep already.
    pub(super) fn body(&mut self) {
        if self.scope.nesting > NESTING {
            return;
        }
        self.scope.nesting += 1;
        let variables = self.scope.variables.len();
        for _ in 0..self.choices.below(MAX_BODY + 1) {
            if self.choices.is_over() || self.statements_left == 0 {
                break;
            }
            self.statements_left -= 1;
            self.statement();
        }
        self.scope.variables.truncate(variables);
        self.scope.nesting -= 1;
    }

    fn statement(&mut self) {
        self.touched.clear();
        if self.scope.section == Section::Parser {
            return self.parser_statement();
        }
        match self.choices.below(22) {
            0 => {}
            4 => self.compound_assignment(),
            5 => self.slice_assignment(),
            6 | 7 => self.branch(),
            8 => self.local_variable(),
            9 => self.switch_on_value(),
            10 => self.counted_loop(),
            11 => self.loop_over_values(),
            12 => self.leave(),
            13 => self.header_method(),
            14..=16 if !self.scope.tables.is_empty() => self.apply_table(),
            14..=18 => self.extern_call(),
            19 => self.call_statement(),
            20 => self.direct_action(),
            21 => self.stack_method(),
            _ => self.assignment(),
        }
    }

    /// Writes a statement that is allowed in parsers: no loop, no `switch`, and nothing that leaves a body.
    fn parser_statement(&mut self) {
        match self.choices.below(12) {
            0 => {}
            4 => self.compound_assignment(),
            5 => self.slice_assignment(),
            6 => self.branch(),
            7 => self.local_variable(),
            8 => self.header_method(),
            9 | 10 => self.extern_call(),
            11 => self.call_statement(),
            _ => self.assignment(),
        }
    }

    pub(super) fn assignment(&mut self) {
        let assignable = |ty: &Type| !matches!(ty, Type::Struct(0..=STANDARD) | Type::Stack(..));
        let Some((path, ty)) = self.any_variable(true, assignable) else {
            return;
        };
        let value = match ty {
            Type::Varbit(_) | Type::Union(_) => match self.readable(&ty) {
                Some(path) => path,
                None => return,
            },
            Type::Header(_) if !self.types.is_plain(&ty) => match self.readable(&ty) {
                Some(path) => path,
                None => return,
            },
            _ => self.expression(&ty, DEPTH),
        };
        self.line(format!("{path} = {value};"));
    }

    fn compound_assignment(&mut self) {
        const OPERATORS: [&str; 10] = [
            "+=", "-=", "^=", "|=", "&=", "*=", "|+|=", "|-|=", "<<=", ">>=",
        ];
        let number = |ty: &Type| matches!(ty, Type::Bit(_) | Type::Int(_));
        let Some((path, ty)) = self.any_variable(true, number) else {
            return;
        };
        let operator = self.choices.pick(&OPERATORS);
        let value = match operator {
            "<<=" | ">>=" => self.expression(&Type::Bit(5), 1),
            _ => self.expression(&ty, DEPTH - 1),
        };
        self.line(format!("{path} {operator} {value};"));
    }

    fn slice_assignment(&mut self) {
        let bits = |ty: &Type| matches!(ty, Type::Bit(_));
        let Some((path, Type::Bit(width))) = self.any_variable(true, bits) else {
            return;
        };
        let low = self.choices.below(width);
        let high = low + self.choices.below(width - low);
        let value = self.expression(&Type::Bit(high - low + 1), DEPTH - 1);
        self.line(format!("{path}[{high}:{low}] = {value};"));
    }

    fn branch(&mut self) {
        let condition = self.condition(DEPTH);
        self.open(format!("if ({condition})"));
        self.body();
        if self.choices.one_in(2) {
            self.close_with("} else {");
            self.indent += 1;
            self.body();
        }
        self.close();
    }

    fn local_variable(&mut self) {
        let ty = match self.choices.below(7) {
            6 => Type::Tuple(vec![self.scalar(), self.scalar()]),
            4 => {
                let structs = self.types.structs.len() - STANDARD - 1;
                Type::Struct(STANDARD + 1 + self.choices.below(structs as u32) as usize)
            }
            5 => Type::Header(self.choices.pick(&self.fixed_headers())),
            _ => self.scalar(),
        };
        let (name, declared) = (self.name("local"), self.types.name(&ty));
        if self.choices.one_in(3) {
            self.line(format!("{declared} {name};"));
        } else {
            let value = self.expression(&ty, DEPTH - 1);
            self.line(format!("{declared} {name} = {value};"));
        }
        let variables = &mut self.scope.variables;
        self.types.expand(&name, &ty, true, variables);
    }

    fn switch_on_value(&mut self) {
        let Some((path, ty)) = self.any_variable(false, |ty| {
            matches!(ty, Type::Bit(2..=32) | Type::Enum(_) | Type::Serial(_))
        }) else {
            return;
        };
        self.open(format!("switch ({path})"));
        let labels = match &ty {
            Type::Enum(i) => self.types.enums[*i].members,
            Type::Serial(i) => self.types.serials[*i].members,
            _ => 4,
        };
        for label in 0..labels.min(1 + self.choices.below(4)) {
            let label = match &ty {
                Type::Enum(i) => format!("{}.m{label}", self.types.enums[*i].name),
                Type::Serial(i) => format!("{}.m{label}", self.types.serials[*i].name),
                _ => label.to_string(),
            };
            if self.choices.one_in(4) {
                // Falls through to the next label.
                self.line(format!("{label}:"));
                continue;
            }
            self.open(format!("{label}:"));
            self.body();
            self.close();
        }
        self.open("default:");
        self.body();
        self.close();
        self.close();
    }

    fn counted_loop(&mut self) {
        let name = self.name("i");
        let limit = match self.readable(&Type::Bit(8)) {
            Some(path) if self.choices.one_in(4) => format!("({path} & 7)"),
            _ => self.choices.below(5).to_string(),
        };
        self.open(format!(
            "for (bit<8> {name} = 0; {name} < {limit}; {name} = {name} + 1)"
        ));
        // The body reads the counter and does not write it, so it ends.
        self.loop_body(&name, &Type::Bit(8));
    }

    fn loop_over_values(&mut self) {
        let name = self.name("v");
        let ty = match self.choices.below(3) {
            0 => Type::Bit(8),
            1 => Type::Bit(self.width()),
            _ => Type::Bit(16),
        };
        let declared = self.types.name(&ty);
        let values = if matches!(ty, Type::Bit(8)) {
            let first = self.choices.below(200);
            format!("{first}..{}", first + self.choices.below(5))
        } else {
            let count = 1 + self.choices.below(3);
            let values: Vec<_> = (0..count).map(|_| self.expression(&ty, 1)).collect();
            format!("(list<{declared}>) {{ {} }}", values.join(", "))
        };
        self.open(format!("for ({declared} {name} in {values})"));
        self.loop_body(&name, &ty);
    }

    fn loop_body(&mut self, name: &str, ty: &Type) {
        let variables = self.scope.variables.len();
        self.types
            .expand(name, ty, false, &mut self.scope.variables);
        self.scope.loops += 1;
        // Loops in loops in loops take long and show no more.
        if self.scope.loops <= 2 {
            self.body();
        } else {
            self.assignment();
        }
        self.scope.loops -= 1;
        self.scope.variables.truncate(variables);
        self.close();
    }

    /// Writes a conditional `break`, `continue`, `return` or `exit`, whichever is allowed in the current body.
    fn leave(&mut self) {
        let mut ways: Vec<String> = Vec::new();
        if self.scope.loops > 0 {
            ways.extend(["break;".into(), "continue;".into()]);
        }
        if let Some(result) = self.scope.result.clone() {
            ways.push(format!("return {};", self.expression(&result, 1)));
        }
        if self.scope.may_leave {
            ways.push("return;".into());
        }
        if self.scope.may_exit {
            ways.push("exit;".into());
        }
        if ways.is_empty() {
            return self.assignment();
        }
        let way = ways[self.choices.below(ways.len() as u32) as usize].clone();
        let condition = self.condition(DEPTH - 1);
        self.open(format!("if ({condition})"));
        self.line(way);
        self.close();
    }

    fn header_method(&mut self) {
        let is_header = |ty: &Type| matches!(ty, Type::Header(_));
        let Some((path, _)) = self.any_variable(true, is_header) else {
            return;
        };
        let method = self.choices.pick(&["setValid", "setInvalid"]);
        self.line(format!("{path}.{method}();"));
    }

    fn stack_method(&mut self) {
        let is_stack = |ty: &Type| matches!(ty, Type::Stack(..));
        let Some((path, Type::Stack(header, _))) = self.any_variable(true, is_stack) else {
            return self.assignment();
        };
        match self.choices.below(4) {
            0 => self.line(format!("{path}.pop_front(1);")),
            1 => self.line(format!("{path}.push_front(1);")),
            2 => self.line(format!("{path}.push_front(2);")),
            _ => {
                let fields = &self.types.headers[header].fields;
                let Some((field, ty)) = fields.first().cloned() else {
                    return;
                };
                let Some(index) = self.index(2) else {
                    return;
                };
                let value = self.expression(&ty, DEPTH - 1);
                self.line(format!("{path}[(bit<2>) {index}].{field} = {value};"));
            }
        }
    }
}
