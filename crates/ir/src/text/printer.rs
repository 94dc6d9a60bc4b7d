//! Program to text. The grammar is in [`super`].

use super::{BINARY, COUNTER_UNITS, HASHES, UNARY, VERSION, word_of};
use crate::*;
use std::fmt::{self, Display, Write};

/// Returns the text form of a program.
///
/// The recursion is as deep as the nesting of statements and expressions; a verified program is shallow
/// enough for any thread.
pub fn print(program: &Program) -> String {
    let mut printer = Printer {
        out: String::new(),
        indent: 0,
    };
    printer
        .program(program)
        .expect("writing to a string does not fail");
    printer.out
}

struct Printer {
    out: String,
    indent: usize,
}

/// Prints items with commas between.
struct Commas<'a, T>(&'a [T]);

impl<T: Display> Display for Commas<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, item) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{item}")?;
        }
        Ok(())
    }
}

/// A string in quotes.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                c if c.is_control() => write!(f, "\\u{{{:x}}}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

/// A location with a space before it, or nothing.
struct At(Loc);

impl Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == Loc::default() {
            return Ok(());
        }
        write!(f, " @{}:{}", self.0.file, self.0.line)
    }
}

impl Display for SlotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Const(value) => write!(f, "{value}"),
            Expr::Slot(slot) => write!(f, "{slot}"),
            Expr::Unary { op, a } => write!(f, "{}({a})", word_of(UNARY, *op)),
            Expr::Binary { op, a, b } => write!(f, "{}({a}, {b})", word_of(BINARY, *op)),
            Expr::Slice { a, high, low } => write!(f, "slice({a}, {high}, {low})"),
            Expr::Concat { a, b } => write!(f, "concat({a}, {b})"),
            Expr::ZeroExtend { a, width } => write!(f, "zext({a}, {width})"),
            Expr::SignExtend { a, width } => write!(f, "sext({a}, {width})"),
            Expr::Mux {
                cond,
                then,
                otherwise,
            } => write!(f, "mux({cond}, {then}, {otherwise})"),
            Expr::PacketLength => f.write_str("packet_length"),
        }
    }
}

impl Display for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeySet::Any => f.write_str("_"),
            KeySet::Mask { value, mask } => write!(f, "{value} & {mask}"),
            KeySet::Range { low, high } => write!(f, "{low} .. {high}"),
            KeySet::ValueSet(id) => write!(f, "v{}", id.0),
        }
    }
}

impl Display for KeyMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyMatch::Any => f.write_str("_"),
            KeyMatch::Value(value) => write!(f, "{value}"),
            KeyMatch::Prefix { value, prefix_len } => write!(f, "{value}/{prefix_len}"),
            KeyMatch::Masked { value, mask } => write!(f, "{value} & {mask}"),
            KeyMatch::Range { low, high } => write!(f, "{low} .. {high}"),
        }
    }
}

impl Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::State(id) => write!(f, "s{}", id.0),
            Target::Accept => f.write_str("accept"),
            Target::Reject => f.write_str("reject"),
        }
    }
}

impl Display for ActionCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a{}({})", self.action.0, Commas(&self.args))
    }
}

impl Printer {
    fn line(&mut self, text: fmt::Arguments<'_>) -> fmt::Result {
        for _ in 0..self.indent {
            self.out.push_str("  ");
        }
        self.out.write_fmt(text)?;
        self.out.push('\n');
        Ok(())
    }

    fn program(&mut self, p: &Program) -> fmt::Result {
        self.line(format_args!("holdfast_ir {VERSION}"))?;
        self.line(format_args!("program {}", Quoted(&p.name)))?;
        for (i, file) in p.files.iter().enumerate() {
            self.line(format_args!("file {i} {}", Quoted(file)))?;
        }
        self.storage(p)?;
        self.objects(p)?;
        for (i, action) in p.actions.iter().enumerate() {
            self.action(i, action)?;
        }
        for (i, table) in p.tables.iter().enumerate() {
            self.table(i, table)?;
        }
        for (i, state) in p.states.iter().enumerate() {
            self.state(i, state)?;
        }
        self.blocks(p)
    }

    fn blocks(&mut self, p: &Program) -> fmt::Result {
        let description = p.architecture.description();
        let blocks = || description.blocks().zip(&p.blocks);
        for ((_, stage), block) in blocks().skip(1) {
            if let Block::Parser(start) = block {
                self.line(format_args!("{} s{}", stage.name, start.0))?;
            }
        }
        for ((id, stage), block) in blocks() {
            let Block::Control(body) = block else {
                continue;
            };
            let empty = description.empty_controls.iter();
            for (name, _) in empty.filter(|(_, before)| *before == id) {
                self.control(name, &[])?;
            }
            if !description.may_be_left_out(id) || !body.is_empty() {
                self.control(stage.name, body)?;
            }
        }
        Ok(())
    }

    fn storage(&mut self, p: &Program) -> fmt::Result {
        for (i, slot) in p.slots.iter().enumerate() {
            self.line(format_args!(
                "slot %{i} {} : {}",
                Quoted(&slot.name),
                slot.width
            ))?;
        }
        let keyword = p.architecture.description().keyword;
        self.line(format_args!("{keyword} {{"))?;
        self.indent += 1;
        for (name, slot, _) in p.architecture.fields() {
            self.line(format_args!("{name} = {slot}"))?;
        }
        self.close()?;
        for (i, name) in p.errors.iter().enumerate() {
            self.line(format_args!("error {i} {}", Quoted(name)))?;
        }
        for (i, header) in p.headers.iter().enumerate() {
            let name = Quoted(&header.name);
            self.line(format_args!("header h{i} {name} valid {} {{", header.valid))?;
            self.indent += 1;
            for field in &header.fields {
                match field.varbit_length {
                    None => self.line(format_args!("{}", field.slot))?,
                    Some(length) => self.line(format_args!("{} length {length}", field.slot))?,
                }
            }
            self.close()?;
        }
        Ok(())
    }

    fn objects(&mut self, p: &Program) -> fmt::Result {
        for (i, o) in p.registers.iter().enumerate() {
            let name = Quoted(&o.name);
            let port_state = if o.port_state { " port_state" } else { "" };
            self.line(format_args!(
                "register r{i} {name} id {} : {} size {}{port_state}",
                o.id, o.width, o.size
            ))?;
        }
        for (i, o) in p.counters.iter().enumerate() {
            let unit = word_of(COUNTER_UNITS, o.unit);
            self.line(format_args!(
                "counter c{i} {} id {} {unit} {}",
                Quoted(&o.name),
                o.id,
                Size(o.size)
            ))?;
        }
        for (i, o) in p.meters.iter().enumerate() {
            let unit = if o.bytes { "bytes" } else { "packets" };
            self.line(format_args!(
                "meter m{i} {} id {} {unit} {}",
                Quoted(&o.name),
                o.id,
                Size(o.size)
            ))?;
        }
        for (i, o) in p.digests.iter().enumerate() {
            let widths = Commas(&o.widths);
            self.line(format_args!(
                "digest d{i} {} id {} ({widths})",
                Quoted(&o.name),
                o.id
            ))?;
        }
        for (i, o) in p.value_sets.iter().enumerate() {
            let (name, widths) = (Quoted(&o.name), Commas(&o.widths));
            self.line(format_args!(
                "value_set v{i} {name} id {} ({widths}) size {}",
                o.id, o.size
            ))?;
        }
        for (i, o) in p.controller_headers.iter().enumerate() {
            let fields = o.fields.iter().map(|f| format!("{}: {}", f.id, f.width));
            let fields: Vec<String> = fields.collect();
            self.line(format_args!(
                "controller_header k{i} {} id {} ({})",
                Quoted(&o.name),
                o.id,
                fields.join(", ")
            ))?;
        }
        for (i, o) in p.action_profiles.iter().enumerate() {
            let name = Quoted(&o.name);
            let selector = o.selector.map(selector_text).unwrap_or_default();
            self.line(format_args!(
                "action_profile p{i} {name} id {} size {}{selector}",
                o.id, o.size
            ))?;
        }
        for (i, o) in p.field_lists.iter().enumerate() {
            self.line(format_args!("field_list l{i} ({})", Commas(&o.slots)))?;
        }
        Ok(())
    }

    fn close(&mut self) -> fmt::Result {
        self.indent -= 1;
        self.line(format_args!("}}"))
    }

    fn action(&mut self, i: usize, action: &Action) -> fmt::Result {
        let params: Vec<String> = action
            .params
            .iter()
            .map(|p| format!("{} {} id {}", p.slot, Quoted(&p.name), p.id))
            .collect();
        let (name, params) = (Quoted(&action.name), Commas(&params));
        self.line(format_args!(
            "action a{i} {name} id {} ({params}) {{",
            action.id
        ))?;
        self.body(&action.body)
    }

    fn table(&mut self, i: usize, table: &Table) -> fmt::Result {
        self.line(format_args!(
            "table t{i} {} id {} {{",
            Quoted(&table.name),
            table.id
        ))?;
        self.indent += 1;
        for key in &table.keys {
            let kind = key.kind.name();
            self.line(format_args!(
                "key {} id {} : {} {kind}",
                Quoted(&key.name),
                key.id,
                key.width
            ))?;
        }
        for TableAction { action, scope } in &table.actions {
            let scope = match scope {
                ActionScope::Both => "",
                ActionScope::TableOnly => " table_only",
                ActionScope::DefaultOnly => " default_only",
            };
            self.line(format_args!("action a{}{scope}", action.0))?;
        }
        self.line(format_args!("default {}", table.default_action))?;
        self.flag(table.const_default_action, "const_default_action")?;
        for entry in &table.entries {
            let priority = match entry.priority {
                0 => String::new(),
                priority => format!(" priority {priority}"),
            };
            let matches = Commas(&entry.matches);
            let fixed = if entry.is_const { " const" } else { "" };
            self.line(format_args!(
                "entry ({matches}){priority} {}{fixed}",
                entry.action
            ))?;
        }
        self.flag(table.const_entries, "const_entries")?;
        self.line(format_args!("size {}", table.size))?;
        if let Some(counter) = table.direct_counter {
            self.line(format_args!("direct_counter c{}", counter.0))?;
        }
        if let Some(meter) = table.direct_meter {
            self.line(format_args!("direct_meter m{}", meter.0))?;
        }
        if let Some(profile) = table.implementation {
            self.line(format_args!("implementation p{}", profile.0))?;
        }
        self.flag(table.support_timeout, "support_timeout")?;
        self.flag(table.hidden, "hidden")?;
        self.close()
    }

    fn flag(&mut self, set: bool, word: &str) -> fmt::Result {
        if set {
            self.line(format_args!("{word}"))?;
        }
        Ok(())
    }

    fn state(&mut self, i: usize, state: &State) -> fmt::Result {
        self.line(format_args!(
            "state s{i} {}{} {{",
            Quoted(&state.name),
            At(state.loc)
        ))?;
        self.indent += 1;
        for stmt in &state.body {
            self.stmt(stmt)?;
        }
        match &state.transition {
            Transition::Goto(target) => self.line(format_args!("goto {target}"))?,
            Transition::Select { keys, cases } => {
                self.line(format_args!("select ({}) {{", Commas(keys)))?;
                self.indent += 1;
                for case in cases {
                    self.line(format_args!(
                        "case ({}) {}",
                        Commas(&case.matches),
                        case.target
                    ))?;
                }
                self.close()?;
            }
        }
        self.close()
    }

    fn control(&mut self, name: &str, body: &[Stmt]) -> fmt::Result {
        self.line(format_args!("control {name} {{"))?;
        self.body(body)
    }

    /// Writes the statements of a body, indented one level more, and the closing brace after them.
    fn body(&mut self, body: &[Stmt]) -> fmt::Result {
        self.indent += 1;
        for stmt in body {
            self.stmt(stmt)?;
        }
        self.close()
    }

    fn stmt(&mut self, stmt: &Stmt) -> fmt::Result {
        let at = At(stmt.loc);
        match &stmt.kind {
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                self.line(format_args!("if {cond}{at} {{"))?;
                self.body(then)?;
                if !otherwise.is_empty() {
                    self.line(format_args!("else {{"))?;
                    self.body(otherwise)?;
                }
                Ok(())
            }
            StmtKind::Switch {
                value,
                cases,
                default,
            } => {
                self.line(format_args!("switch {value}{at} {{"))?;
                self.indent += 1;
                for (values, body) in cases {
                    self.line(format_args!("case {} {{", Commas(values)))?;
                    self.body(body)?;
                }
                if !default.is_empty() {
                    self.line(format_args!("default {{"))?;
                    self.body(default)?;
                }
                self.close()
            }
            StmtKind::Block { label, body } => {
                self.line(format_args!("block b{}{at} {{", label.0))?;
                self.body(body)
            }
            StmtKind::Loop { label, body } => {
                self.line(format_args!("loop b{}{at} {{", label.0))?;
                self.body(body)
            }
            simple => self.line(format_args!("{}{at}", Simple(simple))),
        }
    }
}

struct Size(Option<u64>);

impl Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(size) => write!(f, "size {size}"),
            None => f.write_str("direct"),
        }
    }
}

/// Prints a space, the word, a space and the id; nothing without an id.
struct Optional<'a, T>(&'a str, Option<T>);

impl<T: Display> Display for Optional<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.1 {
            Some(value) => write!(f, " {} {value}", self.0),
            None => Ok(()),
        }
    }
}

fn preserve(id: &Option<FieldListId>) -> Optional<'static, String> {
    Optional("preserve", id.map(|id| format!("l{}", id.0)))
}

/// A statement that contains no other.
struct Simple<'a>(&'a StmtKind);

impl Display for Simple<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            StmtKind::Assign { dst, value } => write!(f, "assign {dst} = {value}"),
            StmtKind::SetValid(h) => write!(f, "set_valid h{}", h.0),
            StmtKind::SetInvalid(h) => write!(f, "set_invalid h{}", h.0),
            StmtKind::Emit(h) => write!(f, "emit h{}", h.0),
            StmtKind::Break(label) => write!(f, "break b{}", label.0),
            StmtKind::Exit => f.write_str("exit"),
            StmtKind::Apply {
                table,
                keys,
                hit,
                action_run,
            } => {
                let (hit, run) = (Optional("hit", *hit), Optional("action_run", *action_run));
                write!(f, "apply t{}({}){hit}{run}", table.0, Commas(keys))
            }
            StmtKind::RegisterRead {
                dst,
                register,
                index,
            } => {
                write!(f, "register_read {dst} = r{}[{index}]", register.0)
            }
            StmtKind::RegisterWrite {
                register,
                index,
                value,
            } => {
                write!(f, "register_write r{}[{index}] = {value}", register.0)
            }
            StmtKind::Count { counter, index } => write!(f, "count c{}[{index}]", counter.0),
            StmtKind::MeterExecute { meter, index, dst } => {
                write!(f, "meter_execute {dst} = m{}[{index}]", meter.0)
            }
            StmtKind::DirectMeterRead { meter, dst } => {
                write!(f, "direct_meter_read {dst} = m{}", meter.0)
            }
            StmtKind::Hash {
                dst,
                algorithm,
                data,
                payload,
            } => {
                let payload = if *payload { " payload" } else { "" };
                let algorithm = word_of(HASHES, *algorithm);
                write!(f, "hash {dst} = {algorithm}({}){payload}", Commas(data))
            }
            StmtKind::Random { dst, low, high } => write!(f, "random {dst} = ({low}, {high})"),
            StmtKind::Clone {
                kind,
                session,
                preserve: list,
            } => {
                let kind = match kind {
                    CloneKind::IngressToEgress => "i2e",
                    CloneKind::EgressToEgress => "e2e",
                };
                write!(f, "clone {kind} {session}{}", preserve(list))
            }
            StmtKind::Resubmit { preserve: list } => write!(f, "resubmit{}", preserve(list)),
            StmtKind::Recirculate { preserve: list } => write!(f, "recirculate{}", preserve(list)),
            StmtKind::Truncate { length } => write!(f, "truncate {length}"),
            StmtKind::Digest { digest, values } => {
                write!(f, "digest d{}({})", digest.0, Commas(values))
            }
            StmtKind::Log { format, values } => {
                write!(f, "log {}({})", Quoted(format), Commas(values))
            }
            StmtKind::Assert { cond } => write!(f, "assert {cond}"),
            StmtKind::Extract {
                header,
                varbit_length,
            } => {
                let length = Optional("length", varbit_length.as_ref());
                write!(f, "extract h{}{length}", header.0)
            }
            StmtKind::Lookahead { dst, offset } => write!(f, "lookahead {dst} at {offset}"),
            StmtKind::Advance { bits } => write!(f, "advance {bits}"),
            StmtKind::Reject { error } => write!(f, "reject {error}"),
            StmtKind::If { .. }
            | StmtKind::Switch { .. }
            | StmtKind::Block { .. }
            | StmtKind::Loop { .. } => {
                unreachable!("printed with their bodies")
            }
        }
    }
}

fn selector_text(selector: Selector) -> String {
    let Selector {
        algorithm,
        width,
        max_group_size,
        sum_of_members,
    } = selector;
    let algorithm = word_of(HASHES, algorithm);
    let semantics = if sum_of_members {
        " sum_of_members"
    } else {
        ""
    };
    format!(" selector {algorithm} : {width} max_group_size {max_group_size}{semantics}")
}
