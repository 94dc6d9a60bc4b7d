//! The parser and the parsers that it calls: states, extraction in all its forms, selection.

use super::call::CALLS;
use super::types::{HEADERS, METADATA, STANDARD, Type};
use super::{Callable, DEPTH, Direction, Generator, Parameter, SMALL_STATEMENTS, Scope, Section};

impl Generator<'_> {
    /// Declares a sub-parser that extracts one header (an `out` parameter), changes a number (an `inout` parameter),
    /// and has one more parameter.
    pub(super) fn declare_sub_parser(&mut self) {
        let header = self.choices.pick(&self.fixed_headers());
        let parameter = |name: String, direction, ty| Parameter {
            name,
            direction,
            ty,
        };
        let mut parameters = vec![
            parameter("taken".into(), Direction::Out, Type::Header(header)),
            parameter("number".into(), Direction::InOut, Type::Bit(8)),
        ];
        let more = self.argument_type();
        parameters.extend(self.parameters(&[more]));
        let name = self.name("Parser");
        let list = self.parameter_list(&parameters);
        self.scope = Scope {
            section: Section::Parser,
            ..Scope::default()
        };
        self.open(format!("parser {name}(packet_in packet, {list})"));
        for parameter in &parameters {
            self.declare(parameter);
        }
        // Of an out parameter the header itself can be read too.
        self.open("state start");
        self.line("packet.extract(taken);");
        self.body_of(SMALL_STATEMENTS);
        self.line("number = number + 1;");
        let key = self.expression(&Type::Bit(2), 1);
        self.open(format!("transition select({key})"));
        self.line("0: more;");
        self.line("1..2: accept;");
        self.line("default: more;");
        self.close();
        self.close();
        self.open("state more");
        self.body_of(SMALL_STATEMENTS);
        self.line("transition accept;");
        self.close();
        self.close();
        self.parsers.push(Callable {
            name,
            parameters,
            result: Type::Bool,
        });
    }

    pub(super) fn declare_parser(&mut self) {
        self.scope = Scope {
            section: Section::Parser,
            ..Scope::default()
        };
        self.open(
            "parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm)",
        );
        let variables = &mut self.scope.variables;
        let types = &self.types;
        types.expand("hdr", &Type::Struct(HEADERS), true, variables);
        types.expand("meta", &Type::Struct(METADATA), true, variables);
        self.scope.has_zero = true;
        types.expand("sm", &Type::Struct(STANDARD), false, variables);
        for i in 0..self.parsers.len() {
            let (class, name) = (self.parsers[i].name.clone(), self.name("parse"));
            self.line(format!("{class}() {name};"));
            self.scope.instances.push((name, i));
        }
        let set = self.choices.one_in(3);
        if set {
            self.line("value_set<bit<8>>(4) chosen;");
        }
        let states = 1 + self.choices.below(6);
        for state in 0..states {
            self.state(state, states, set);
        }
        self.close();
    }

    fn state(&mut self, state: u32, states: u32, set: bool) {
        match state {
            0 => self.open("state start"),
            _ => self.open(format!("state s{state}")),
        }
        let variables = self.scope.variables.len();
        self.allow_calls(CALLS);
        self.touched.clear();
        if state == 0 {
            self.line("packet.extract(hdr.h0);");
        }
        for _ in 0..self.choices.below(3) {
            self.take();
        }
        self.body_of(SMALL_STATEMENTS);
        self.transition(state, states, set);
        self.scope.variables.truncate(variables);
        self.close();
    }

    /// Writes a statement that reads from the packet: an extract, a lookahead or the application of a sub-parser.
    fn take(&mut self) {
        self.touched.clear();
        let stacks = self.scope.variables.iter();
        let stack = stacks.clone().any(|v| v.path == "hdr.stack");
        let union = stacks.clone().any(|v| v.path == "hdr.either");
        match self.choices.below(6) {
            2 if stack => self.line("packet.extract(hdr.stack.next);"),
            3 if union => {
                let member = self.choices.below(2);
                let members = self.types.unions[0].fields.len() as u32;
                let member = member.min(members - 1);
                self.line(format!("packet.extract(hdr.either.u{member});"));
            }
            4 => self.apply_parser(),
            5 => {
                let number = |ty: &Type| matches!(ty, Type::Bit(_));
                if let Some((path, Type::Bit(width))) = self.any_variable(true, number) {
                    self.line(format!("{path} = packet.lookahead<bit<{width}>>();"));
                }
            }
            _ => self.extract(),
        }
    }

    fn extract(&mut self) {
        // The last one is not taken from packets.
        let headers = self.types.headers.len() as u32 - 1;
        let header = self.choices.below(headers) as usize;
        match self.types.headers[header].varbit() {
            None => self.line(format!("packet.extract(hdr.h{header});")),
            Some(_) => {
                let length = self.expression(&Type::Bit(4), 1);
                self.line(format!(
                    "packet.extract(hdr.h{header}, (bit<32>) {length} << 3);"
                ));
            }
        }
    }

    fn apply_parser(&mut self) {
        if self.scope.instances.is_empty() {
            return self.extract();
        }
        let (name, parser) = self.scope.instances[0].clone();
        let parameters = self.parsers[parser].parameters.clone();
        if let Some(arguments) = self.arguments(Some(("packet", "packet")), &parameters, 2) {
            self.line(format!("{name}.apply({arguments});"));
        }
    }

    /// Chooses the target of a transition, which may be any state: mostly the next one, sometimes an
    /// earlier one. The loop that this makes ends at the end of the packet or at the limit of parser steps.
    fn target(&mut self, state: u32, states: u32) -> String {
        match self.choices.below(8) {
            0 | 1 => "accept".into(),
            2 if self.choices.one_in(4) => "reject".into(),
            3 => match self.choices.below(states) {
                0 => "start".into(),
                other => format!("s{other}"),
            },
            _ if state + 1 < states => format!("s{}", state + 1),
            _ => "accept".into(),
        }
    }

    fn transition(&mut self, state: u32, states: u32, set: bool) {
        if self.choices.one_in(3) {
            let target = self.target(state, states);
            return self.line(format!("transition {target};"));
        }
        let keys = 1 + self.choices.below(2);
        let keys: Vec<(String, u32)> = (0..keys).map(|_| self.select_key(set)).collect();
        let texts: Vec<&str> = keys.iter().map(|(text, _)| text.as_str()).collect();
        self.open(format!("transition select({})", texts.join(", ")));
        if set && keys.len() == 1 {
            let target = self.target(state, states);
            self.line(format!("chosen: {target};"));
        }
        let cases = self.choices.below(4);
        for _ in 0..cases {
            let sets: Vec<String> = keys.iter().map(|(_, w)| self.select_set(*w)).collect();
            let sets = match sets.as_slice() {
                [one] => one.clone(),
                several => format!("({})", several.join(", ")),
            };
            let target = self.target(state, states);
            self.line(format!("{sets}: {target};"));
        }
        // Without a default what fits nowhere is an error.
        if cases == 0 || !self.choices.one_in(6) {
            let target = self.target(state, states);
            self.line(format!("default: {target};"));
        }
        self.close();
    }

    fn select_key(&mut self, set: bool) -> (String, u32) {
        let width = match set {
            true => 8,
            false => self.choices.pick(&[2, 1, 3, 8, 16, 48, 130]),
        };
        match self.choices.below(4) {
            0 => (format!("packet.lookahead<bit<{width}>>()"), width),
            _ => (self.expression(&Type::Bit(width), DEPTH - 1), width),
        }
    }

    fn select_set(&mut self, width: u32) -> String {
        let value = self.literal(width);
        match self.choices.below(5) {
            0 => format!("{value} &&& {}", self.literal(width)),
            1 => "_".into(),
            2 if width <= 64 => {
                let low = self.choices.below(2);
                format!("{low}..{}", (u64::MAX >> (64 - width)) / 2 + 1)
            }
            _ => value,
        }
    }
}
