//! Programs of the reference evaluator as P4.

use super::tree::{
    Argument, Call, Callable, Direction, Expr, GLOBALS, Kind, Lvalue, Operator, Program, Statement,
    Step, Table, Type, Variable,
};
use std::fmt::Write;

const BEGINNING: &str = "#include <core.p4>
#include <v1model.p4>
header data_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; bit<8> e; bit<8> f; }
header item_t { bit<8> v; bit<8> w; }
header tail_t { bit<8> x; bit<8> y; }
struct pair_t { bit<8> x; bit<8> y; }
struct headers_t { data_t d; item_t one; item_t[4] s; tail_t tail; }
struct meta_t { pair_t m; }
";

const END: &str = "control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
";

/// Returns the P4 source of a program.
pub(super) fn program(program: &Program) -> String {
    let mut out = Text {
        program,
        text: BEGINNING.to_string(),
    };
    let of_kind = |wanted: &dyn Fn(Kind) -> bool| {
        let callables = program.callables.iter().enumerate();
        callables
            .filter(|(_, c)| wanted(c.kind))
            .collect::<Vec<_>>()
    };
    for (i, callable) in of_kind(&|kind| kind != Kind::LocalAction) {
        out.callable(i, callable);
    }
    out.parser(&of_kind(&|kind| kind == Kind::Parser));
    out.line("control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {");
    for (i, _) in of_kind(&|kind| kind == Kind::Control) {
        out.line(&format!("Control{i}() control{i};"));
    }
    for (i, callable) in of_kind(&|kind| kind == Kind::LocalAction) {
        out.callable(i, callable);
    }
    for (i, table) in program.tables.iter().enumerate() {
        out.table(i, table);
    }
    out.line("apply {");
    out.line("sm.egress_spec = 1;");
    out.statements(&program.ingress);
    out.line("hdr.tail.x = meta.m.x;");
    out.line("hdr.tail.y = meta.m.y;");
    out.line("} }");
    out.text + END
}

struct Text<'a> {
    program: &'a Program,
    text: String,
}

fn operator(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "+",
        Operator::Sub => "-",
        Operator::Xor => "^",
        Operator::And => "&",
        Operator::Or => "|",
    }
}

impl Text<'_> {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn callable(&mut self, i: usize, callable: &Callable) {
        let mut list = String::new();
        for (j, parameter) in callable.parameters.iter().enumerate() {
            let direction = match parameter.direction {
                Direction::In => "in ",
                Direction::Out => "out ",
                Direction::InOut => "inout ",
                Direction::Entry => "",
            };
            let comma = if j == 0 { "" } else { ", " };
            let default = parameter.default.map(|byte| format!(" = {byte}"));
            // Writing to a String does not fail.
            let _ = write!(
                list,
                "{comma}{direction}{} v{j}{}",
                parameter.ty.name(),
                default.unwrap_or_default()
            );
        }
        let (open, close) = match callable.kind {
            Kind::Function(ty) => (format!("{} function{i}({list}) {{", ty.name()), "}"),
            Kind::GlobalAction | Kind::LocalAction => (format!("action action{i}({list}) {{"), "}"),
            Kind::Control => (format!("control Control{i}({list}) {{ apply {{"), "} }"),
            Kind::Parser => (
                format!("parser Parser{i}({list}) {{ state start {{"),
                "transition accept; } }",
            ),
        };
        self.line(&open);
        self.statements(&callable.body);
        if let Some(result) = &callable.result {
            let result = self.expr(result);
            self.line(&format!("return {result};"));
        }
        self.line(close);
    }

    fn parser(&mut self, parsers: &[(usize, &Callable)]) {
        self.line("parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {");
        for (i, _) in parsers {
            self.line(&format!("Parser{i}() parser{i};"));
        }
        self.line("state start {");
        for header in ["d", "one", "s.next", "s.next", "s.next", "s.next", "tail"] {
            self.line(&format!("packet.extract(hdr.{header});"));
        }
        self.line("meta.m = { hdr.tail.x, hdr.tail.y };");
        let program = self.program;
        self.statements(&program.parser);
        if program.keys.is_empty() {
            return self.line("transition accept; } }");
        }
        let keys: Vec<String> = program.keys.iter().map(|key| self.bit(key)).collect();
        self.line(&format!("transition select({}) {{", keys.join(", ")));
        for i in 0..program.states.len() {
            let bits = (0..program.keys.len())
                .rev()
                .map(|bit| (i >> bit & 1).to_string());
            self.line(&format!(
                "({}): state{i};",
                bits.collect::<Vec<_>>().join(", ")
            ));
        }
        self.line("default: accept; } }");
        for (i, state) in program.states.iter().enumerate() {
            self.line(&format!("state state{i} {{"));
            self.statements(state);
            self.line("transition accept; }");
        }
        self.line("}");
    }

    fn bit(&self, key: &Expr) -> String {
        format!("(bit<1>) {}", self.expr(key))
    }

    fn table(&mut self, i: usize, table: &Table) {
        self.line(&format!("table table{i} {{"));
        let mut keys = String::new();
        for (j, key) in table.keys.iter().enumerate() {
            let _ = write!(keys, "{}: exact @name(\"k{j}\"); ", self.bit(key));
        }
        self.line(&format!("key = {{ {keys}}}"));
        self.line("actions = {");
        for action in &table.actions {
            let call = self.call(action);
            self.line(&format!("{call};"));
        }
        self.line("}");
        if !table.keys.is_empty() {
            self.line("const entries = {");
            for (bits, action, data) in &table.entries {
                let bits: Vec<&str> = (bits.iter())
                    .map(|bit| if *bit { "1" } else { "0" })
                    .collect();
                let action = self.with_data(&table.actions[*action], *data);
                self.line(&format!("({}): {action};", bits.join(", ")));
            }
            self.line("}");
        }
        let action = self.with_data(&table.actions[table.default.0], table.default.1);
        self.line(&format!("const default_action = {action}; }}"));
    }

    /// Returns the text of an action call in a table entry. `data` is the argument for the parameter without
    /// direction, if the action has one.
    fn with_data(&self, action: &Call, data: u8) -> String {
        let parameters = &self.program.callables[action.callee].parameters;
        let takes = parameters.iter().any(|p| p.direction == Direction::Entry);
        let data = if takes {
            data.to_string()
        } else {
            String::new()
        };
        format!("action{}({data})", action.callee)
    }

    fn statements(&mut self, statements: &[Statement]) {
        statements.iter().for_each(|s| self.statement(s));
    }

    fn statement(&mut self, statement: &Statement) {
        let line = match statement {
            Statement::Declare(i, ty, value) => {
                format!("{} v{i} = {};", ty.name(), self.expr(value))
            }
            Statement::Assign(target, value) => {
                format!("{} = {};", self.lvalue(target), self.expr(value))
            }
            Statement::Compound(op, target, value) => {
                let (target, value) = (self.lvalue(target), self.expr(value));
                format!("{target} {}= {value};", operator(*op))
            }
            Statement::Call(call) => format!("{};", self.call(call)),
            Statement::Apply(table) => format!("table{table}.apply();"),
            Statement::If(condition, then, otherwise) => {
                let condition = self.expr(condition);
                self.line(&format!("if ({condition}) {{"));
                self.statements(then);
                self.line("} else {");
                self.statements(otherwise);
                "}".into()
            }
            Statement::Return(condition, value) => {
                let value = value.as_ref().map(|v| self.expr(v)).unwrap_or_default();
                format!("if ({}) {{ return {value}; }}", self.expr(condition))
            }
            Statement::SetValid(header, valid) => {
                let method = if *valid { "setValid" } else { "setInvalid" };
                format!("{}.{method}();", self.lvalue(header))
            }
            Statement::Shift(stack, push) => {
                let method = if *push { "push_front" } else { "pop_front" };
                format!("{}.{method}(1);", self.lvalue(stack))
            }
        };
        self.line(&line);
    }

    fn lvalue(&self, lvalue: &Lvalue) -> String {
        let mut path = match lvalue.variable {
            Variable::Global(i) => GLOBALS[i].0.to_string(),
            Variable::Local(i) => format!("v{i}"),
        };
        let mut ty = lvalue.ty;
        for step in &lvalue.steps {
            let _ = match step {
                Step::Field(i) => write!(path, ".{}", ty.fields()[*i]),
                Step::Index(index) => write!(path, "[(bit<2>) {}]", self.expr(index)),
            };
            ty = if ty == Type::Items {
                Type::Item
            } else {
                Type::Byte
            };
        }
        if let Some(low) = lvalue.low {
            let _ = write!(path, "[{}:{low}]", low + 3);
        }
        path
    }

    fn expr(&self, expr: &Expr) -> String {
        let two =
            |a: &Expr, op: &str, b: &Expr| format!("({} {op} {})", self.expr(a), self.expr(b));
        match expr {
            Expr::Byte(byte) => format!("8w{byte}"),
            Expr::Bool(truth) => truth.to_string(),
            Expr::Read(lvalue) => self.lvalue(lvalue),
            Expr::Nibble(byte, low) => format!("({})[{}:{low}]", self.expr(byte), low + 3),
            Expr::Join(a, b) => two(a, "++", b),
            Expr::Binary(op, a, b) => two(a, operator(*op), b),
            Expr::Less(a, b) => two(a, "<", b),
            Expr::Equal(a, b) => two(a, "==", b),
            Expr::Both(a, b) => two(a, "&&", b),
            Expr::Either(a, b) => two(a, "||", b),
            Expr::Choice(c, a, b) => {
                format!("({} ? {} : {})", self.expr(c), self.expr(a), self.expr(b))
            }
            Expr::Literal(ty, fields) => {
                let name = |i: &usize| ty.fields()[*i];
                let fields = fields
                    .iter()
                    .map(|(i, e)| format!("{} = {}", name(i), self.expr(e)));
                let fields: Vec<String> = fields.collect();
                format!("(({}) {{ {} }})", ty.name(), fields.join(", "))
            }
            Expr::Member(base, ty, i) => format!("{}.{}", self.expr(base), ty.fields()[*i]),
            Expr::IsValid(header) => format!("{}.isValid()", self.lvalue(header)),
            Expr::Call(call) => self.call(call),
            Expr::Hit(table) => format!("table{table}.apply().hit"),
        }
    }

    fn call(&self, call: &Call) -> String {
        let mut list = Vec::new();
        for (i, argument) in &call.arguments {
            let name = if call.named {
                format!("v{i} = ")
            } else {
                String::new()
            };
            let argument = match argument {
                Argument::Value(value) => self.expr(value),
                Argument::Place(lvalue) => self.lvalue(lvalue),
                Argument::Nothing => "_".into(),
            };
            list.push(format!("{name}{argument}"));
        }
        let (i, list) = (call.callee, list.join(", "));
        match self.program.callables[i].kind {
            Kind::Function(_) => format!("function{i}({list})"),
            Kind::GlobalAction | Kind::LocalAction => format!("action{i}({list})"),
            Kind::Control => format!("control{i}.apply({list})"),
            Kind::Parser => format!("parser{i}.apply({list})"),
        }
    }
}
