//! Invariants 20 to 35: the parser, statements and expressions.

use super::objects::is_within;
use super::*;
use crate::Place as At;
use std::collections::HashSet;

/// Which body a statement is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    Parser,
    Control(BlockId),
    Action(ActionId),
}

/// Where a statement is.
struct Context<'a> {
    block: Body,
    place: Place<'a>,
    /// Labels of the enclosing blocks and loops.
    enclosing: Vec<LabelId>,
    depth: u32,
}

impl<'a> Verifier<'a> {
    pub(super) fn bodies(&mut self) {
        let p = self.program;
        self.parser();
        if !self.blocks() {
            return;
        }
        for (block, stage) in p.architecture.description().blocks() {
            if !stage.is_parser() {
                self.control(Body::Control(block), stage.name, "", p.control(block));
            }
        }
        // After the controls: the callers of an action decide what it may do.
        for (i, action) in p.actions.iter().enumerate() {
            let block = Body::Action(ActionId(i as u32));
            self.control(block, "action", &action.name, &action.body);
        }
    }

    fn control(&mut self, block: Body, kind: &'static str, name: &'a str, body: &'a [Stmt]) {
        let mut cx = Context {
            block,
            place: Place::new(kind, name),
            enclosing: Vec::new(),
            depth: 0,
        };
        self.body(body, &mut cx);
    }

    fn parser(&mut self) {
        let states = &self.program.states;
        self.check(!states.is_empty(), 20, Place::new("parser", ""), || {
            "no state".into()
        });
        for state in states {
            let place = Place {
                loc: state.loc,
                ..Place::new("parser state", &state.name)
            };
            self.location(state.loc, place);
            self.control(Body::Parser, "parser state", &state.name, &state.body);
            match &state.transition {
                Transition::Goto(target) => self.target(*target, place),
                Transition::Select { keys, cases } => self.select(keys, cases, place),
            }
        }
    }

    /// Checks that the program has the blocks of its architecture, and that their parsers start with states
    /// that exist, the first with the first state (invariant 20). Returns `false` if the blocks are others.
    fn blocks(&mut self) -> bool {
        let p = self.program;
        let stages = p.architecture.description().stages;
        let mut pairs = stages.iter().zip(&p.blocks);
        let same = stages.len() == p.blocks.len()
            && pairs.all(|(stage, block)| stage.is_parser() == matches!(block, Block::Parser(_)));
        self.check(same, 20, Place::new("blocks", ""), || {
            "the architecture has other blocks".into()
        });
        for (stage, start) in stages
            .iter()
            .filter(|s| s.is_parser())
            .zip(p.parser_starts())
        {
            self.target(Target::State(start), Place::new(stage.name, ""));
        }
        let first = p.parser_starts().next();
        self.check(
            first == Some(StateId(0)),
            20,
            Place::new("parser", ""),
            || "the first parser does not start with the first state".into(),
        );
        same
    }

    fn target(&mut self, target: Target, place: Place<'_>) {
        if let Target::State(id) = target {
            let known = id.index() < self.program.states.len();
            self.check(known, 20, place, || format!("there is no state {}", id.0));
        }
    }

    fn select(&mut self, keys: &[Expr], cases: &[SelectCase], place: Place<'_>) {
        self.check(!keys.is_empty(), 21, place, || {
            "a select without a key".into()
        });
        let widths: Vec<_> = keys.iter().map(|k| self.expr(k, place, 0)).collect();
        for case in cases {
            self.target(case.target, place);
            if let [KeySet::ValueSet(id)] = case.matches[..] {
                self.value_set(id, &widths, place);
                continue;
            }
            let fits = case.matches.len() == keys.len();
            self.check(fits, 21, place, || {
                format!("{} matches for {} keys", case.matches.len(), keys.len())
            });
            for (set, width) in case.matches.iter().zip(&widths) {
                self.key_set(set, *width, place);
            }
        }
    }

    fn key_set(&mut self, set: &KeySet, width: Option<u32>, place: Place<'_>) {
        let (a, b) = match set {
            KeySet::Any => {
                self.spend(0, place);
                return;
            }
            KeySet::ValueSet(id) => return self.value_set(*id, &[width], place),
            KeySet::Mask { value, mask } => (value, mask),
            KeySet::Range { low, high } => (low, high),
        };
        self.constant(a, place);
        self.constant(b, place);
        let expected = width.unwrap_or(a.width());
        let fits = a.width() == expected && b.width() == expected;
        if !self.check(fits, 21, place, || {
            format!("{set:?} is not of the width of its key, {expected}")
        }) {
            return;
        }
        let good = match set {
            KeySet::Range { .. } => a.ucmp(b).is_le(),
            _ => is_within(a, b),
        };
        self.check(good, 21, place, || {
            format!("{set:?} is empty or not zero outside the mask")
        });
    }

    fn value_set(&mut self, id: ValueSetId, widths: &[Option<u32>], place: Place<'_>) {
        self.spend(0, place);
        let Some(value_set) = self.program.value_sets.get(id.index()) else {
            self.check(false, 21, place, || {
                format!("there is no value set {}", id.0)
            });
            return;
        };
        let fits = value_set.widths.len() == widths.len()
            && value_set
                .widths
                .iter()
                .zip(widths)
                .all(|(a, b)| b.is_none_or(|b| *a == b));
        self.check(fits, 21, place, || {
            format!(
                "value set {} has other members than the keys",
                value_set.name
            )
        });
    }

    fn body(&mut self, body: &'a [Stmt], cx: &mut Context<'a>) {
        if body.is_empty() {
            return;
        }
        cx.depth += 1;
        if self.check(cx.depth <= MAX_NESTING, 33, cx.place, || {
            format!("statements nest more than {MAX_NESTING} deep")
        }) {
            let outer = cx.place.loc;
            for stmt in body {
                self.statements += 1;
                // Reported once.
                self.check(self.statements != MAX_STATEMENTS + 1, 34, cx.place, || {
                    format!("more than {MAX_STATEMENTS} statements")
                });
                cx.place.loc = stmt.loc;
                self.location(stmt.loc, cx.place);
                self.allowed_here(&stmt.kind, cx);
                self.stmt(&stmt.kind, cx);
            }
            cx.place.loc = outer;
        }
        cx.depth -= 1;
    }

    /// Checks that the statement is allowed in the body in which it is: invariants 23 and 24.
    fn allowed_here(&mut self, stmt: &StmtKind, cx: &Context<'_>) {
        let description = self.program.architecture.description();
        let stage = match cx.block {
            Body::Control(block) => Some(description.stage(block)),
            _ => None,
        };
        let pipeline = stage.filter(|s| s.applies_tables()).map(|s| s.pipeline);
        let in_parser = cx.block == Body::Parser;
        let main = pipeline.is_some() || matches!(cx.block, Body::Action(_));
        let deparser = stage.is_some_and(Stage::is_deparser);
        let between = description.deparses_between();
        let statement = stmt.place();
        let here = match statement {
            At::Anywhere => true,
            At::Parser => in_parser,
            At::Control => !in_parser,
            At::Deparser => deparser,
            At::Tables => pipeline.is_some(),
            At::Whole(_) => main && !between,
            At::Message => main || between && deparser,
        };
        self.check(here, 23, cx.place, || {
            format!("{} is not allowed here", statement_name(stmt))
        });
        let reach = match (cx.block, pipeline) {
            (Body::Action(id), _) => self.reach[id.index()],
            (_, Some(pipeline)) => Reach::of(pipeline),
            _ => return,
        };
        let forbidden = match statement {
            At::Whole(Some(Pipeline::INGRESS)) => reach.egress,
            At::Whole(Some(_)) => reach.ingress,
            _ => false,
        };
        self.check(!forbidden, 24, cx.place, || {
            format!("{} in the wrong pipeline", statement_name(stmt))
        });
    }

    fn stmt(&mut self, stmt: &'a StmtKind, cx: &mut Context<'a>) {
        let place = cx.place;
        match stmt {
            StmtKind::Assign { dst, value } => self.assign(*dst, value, place),
            StmtKind::SetValid(id) | StmtKind::SetInvalid(id) | StmtKind::Emit(id) => {
                self.header(*id, place);
            }
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                self.expect(cond, 1, place);
                self.body(then, cx);
                self.body(otherwise, cx);
            }
            StmtKind::Switch {
                value,
                cases,
                default,
            } => self.switch(value, cases, default, cx),
            StmtKind::Block { label, body } | StmtKind::Loop { label, body } => {
                self.labelled(*label, body, cx);
            }
            StmtKind::Break(label) => {
                self.check(cx.enclosing.contains(label), 25, place, || {
                    format!("no enclosing block or loop has the label {}", label.0)
                });
            }
            StmtKind::Exit => {}
            StmtKind::Apply {
                table,
                keys,
                hit,
                action_run,
            } => {
                self.apply(*table, keys, cx);
                self.optional_destination(*hit, 1, place);
                self.optional_destination(*action_run, 32, place);
            }
            StmtKind::RegisterRead { .. }
            | StmtKind::RegisterWrite { .. }
            | StmtKind::Count { .. }
            | StmtKind::MeterExecute { .. } => self.access(stmt, place),
            StmtKind::DirectMeterRead { meter, dst } => {
                self.direct_meter_read(*meter, *dst, cx);
            }
            StmtKind::Hash { .. } | StmtKind::Random { .. } => self.computation(stmt, place),
            StmtKind::Clone {
                session, preserve, ..
            } => {
                self.expect(session, 32, place);
                self.field_list(*preserve, place);
            }
            StmtKind::Resubmit { preserve } | StmtKind::Recirculate { preserve } => {
                self.field_list(*preserve, place);
            }
            StmtKind::Truncate { length } => self.expect(length, 32, place),
            StmtKind::Digest { digest, values } => self.digest(*digest, values, place),
            StmtKind::Log { format, values } => {
                for value in values {
                    self.expr(value, place, 0);
                }
                let holes = format.matches("{}").count();
                self.check(holes == values.len(), 29, place, || {
                    format!("{holes} places for {} values", values.len())
                });
            }
            StmtKind::Assert { cond } => self.expect(cond, 1, place),
            StmtKind::Extract {
                header,
                varbit_length,
            } => {
                self.extract(*header, varbit_length.as_ref(), place);
            }
            StmtKind::Lookahead { dst, offset } => self.lookahead(*dst, *offset, place),
            StmtKind::Advance { bits } => self.expect(bits, 32, place),
            StmtKind::Reject { error } => self.expect(error, ERROR_WIDTH, place),
        }
    }

    fn assign(&mut self, dst: SlotId, value: &Expr, place: Place<'_>) {
        let width = self.expr(value, place, 0);
        let Some(expected) = self.slot(dst, place) else {
            return;
        };
        self.check(width.is_none_or(|w| w == expected), 26, place, || {
            format!(
                "%{} has {expected} bits, the value {}",
                dst.0,
                width.unwrap_or(0)
            )
        });
        // With a width the expression is known not to be too deep.
        if let (Some(max), Some(_)) = (self.roles.max_length[dst.index()], width) {
            self.check(self.is_length(value, max), 6, place, || {
                format!(
                    "the value may exceed {max}, the longest that %{} may say",
                    dst.0
                )
            });
        }
    }

    /// Returns true if `expr` has one of the forms that invariant 6 allows for the length of a varbit, so
    /// that its value is certainly at most `max` bits.
    fn is_length(&self, expr: &Expr, max: u32) -> bool {
        match expr {
            Expr::Const(value) => value.to_u64().is_some_and(|v| v <= u64::from(max)),
            Expr::Slot(slot) => self.roles.max_length[slot.index()].is_some_and(|m| m <= max),
            Expr::Mux {
                then, otherwise, ..
            } => self.is_length(then, max) && self.is_length(otherwise, max),
            _ => false,
        }
    }

    /// Checks a slot to which a statement other than an assignment writes (invariants 2 and 6), and returns
    /// its width in bits; `None` if the id is out of range.
    fn destination(&mut self, dst: SlotId, place: Place<'_>) -> Option<u32> {
        let width = self.slot(dst, place)?;
        self.not_a_length(dst, place);
        Some(width)
    }

    fn optional_destination(&mut self, dst: Option<SlotId>, expected: u32, place: Place<'_>) {
        if let Some(dst) = dst {
            let width = self.destination(dst, place);
            self.check(width.is_none_or(|w| w == expected), 26, place, || {
                format!("%{} does not have {expected} bits", dst.0)
            });
        }
    }

    /// Returns the declaration with the id `id` in `list`. Reports an id out of range (invariant 22), and
    /// returns `None`. `kind` names the declaration in the message.
    fn declared<T>(
        &mut self,
        list: &'a [T],
        kind: &str,
        id: u32,
        place: Place<'_>,
    ) -> Option<&'a T> {
        let found = list.get(id as usize);
        self.check(found.is_some(), 22, place, || {
            format!("there is no {kind} {id}")
        });
        found
    }

    fn header(&mut self, id: HeaderId, place: Place<'_>) -> Option<&'a Header> {
        self.declared(&self.program.headers, "header", id.0, place)
    }

    fn switch(
        &mut self,
        value: &Expr,
        cases: &'a [(Vec<Bits>, Vec<Stmt>)],
        default: &'a [Stmt],
        cx: &mut Context<'a>,
    ) {
        let width = self.expr(value, cx.place, 0);
        let mut seen = HashSet::new();
        for (values, body) in cases {
            self.check(!values.is_empty(), 27, cx.place, || {
                "a case without a value".into()
            });
            for value in values {
                self.constant(value, cx.place);
                let fits = width.is_none_or(|w| w == value.width());
                self.check(fits && seen.insert(value), 27, cx.place, || {
                    format!("{value} occurs twice or has the wrong width")
                });
            }
            self.body(body, cx);
        }
        self.body(default, cx);
    }

    fn labelled(&mut self, label: LabelId, body: &'a [Stmt], cx: &mut Context<'a>) {
        self.check(label.0 < MAX_LABEL, 25, cx.place, || {
            format!("the label {} is too large", label.0)
        });
        let fresh = self.labels.insert(label.0);
        self.check(fresh, 25, cx.place, || {
            format!("the label {} is taken", label.0)
        });
        cx.enclosing.push(label);
        self.body(body, cx);
        cx.enclosing.pop();
    }

    fn apply(&mut self, table: TableId, keys: &[Expr], cx: &Context<'_>) {
        let Some(found) = self.declared(&self.program.tables, "table", table.0, cx.place) else {
            return;
        };
        self.check(keys.len() == found.keys.len(), 26, cx.place, || {
            format!(
                "{} expressions for the {} key fields of {}",
                keys.len(),
                found.keys.len(),
                found.name
            )
        });
        for (expr, key) in keys.iter().zip(&found.keys) {
            self.expect(expr, key.width, cx.place);
        }
        let Body::Control(block) = cx.block else {
            return;
        };
        let from = Reach::of(
            self.program
                .architecture
                .description()
                .stage(block)
                .pipeline,
        );
        for entry in &found.actions {
            if let Some(reach) = self.reach.get_mut(entry.action.index()) {
                reach.ingress |= from.ingress;
                reach.egress |= from.egress;
            }
        }
    }

    fn access(&mut self, stmt: &StmtKind, place: Place<'_>) {
        let program = self.program;
        match stmt {
            StmtKind::RegisterRead {
                dst,
                register,
                index,
            } => {
                self.expect(index, 32, place);
                if let Some(width) = self.register(*register, place) {
                    self.optional_destination(Some(*dst), width, place);
                }
            }
            StmtKind::RegisterWrite {
                register,
                index,
                value,
            } => {
                self.expect(index, 32, place);
                if let Some(width) = self.register(*register, place) {
                    self.expect(value, width, place);
                }
            }
            StmtKind::Count { counter, index } => {
                self.expect(index, 32, place);
                let found = self.declared(&program.counters, "counter", counter.0, place);
                self.indexed("counter", counter.0, found.map(|c| c.size), place);
            }
            StmtKind::MeterExecute { meter, index, dst } => {
                self.expect(index, 32, place);
                let found = self.declared(&program.meters, "meter", meter.0, place);
                self.indexed("meter", meter.0, found.map(|m| m.size), place);
                self.colour(*dst, place);
            }
            _ => {}
        }
    }

    fn colour(&mut self, dst: SlotId, place: Place<'_>) {
        let width = self.destination(dst, place);
        self.check(width.is_none_or(|w| w >= 2), 26, place, || {
            "a colour needs two bits".into()
        });
    }

    fn direct_meter_read(&mut self, meter: MeterId, dst: SlotId, cx: &Context<'_>) {
        let (program, place) = (self.program, cx.place);
        self.colour(dst, place);
        self.declared(&program.meters, "meter", meter.0, place);
        let Body::Action(action) = cx.block else {
            self.check(false, 28, place, || {
                "a direct meter read outside an action".into()
            });
            return;
        };
        let mut tables = program.tables.iter();
        let own = tables
            .any(|t| t.direct_meter == Some(meter) && t.actions.iter().any(|a| a.action == action));
        self.check(own, 28, place, || {
            format!("no table with the direct meter {} has the action", meter.0)
        });
    }

    fn register(&mut self, id: RegisterId, place: Place<'_>) -> Option<u32> {
        let register = self.declared(&self.program.registers, "register", id.0, place);
        register.map(|r| r.width)
    }

    fn indexed(&mut self, kind: &str, id: u32, size: Option<Option<u64>>, place: Place<'_>) {
        self.check(size != Some(None), 28, place, || {
            format!("{kind} {id} is a direct one")
        });
    }

    fn computation(&mut self, stmt: &StmtKind, place: Place<'_>) {
        match stmt {
            StmtKind::Hash { dst, data, .. } => {
                self.destination(*dst, place);
                let bits: u64 = data
                    .iter()
                    .map(|e| u64::from(self.expr(e, place, 0).unwrap_or(0)))
                    .sum();
                self.check(bits <= u64::from(MAX_EXPR_WIDTH), 26, place, || {
                    format!("the data of the hash has {bits} bits")
                });
            }
            StmtKind::Random { dst, low, high } => {
                let Some(width) = self.destination(*dst, place) else {
                    return;
                };
                self.check(width <= 64, 26, place, || {
                    format!("a random value of {width} bits")
                });
                self.expect(low, width, place);
                self.expect(high, width, place);
            }
            _ => {}
        }
    }

    fn field_list(&mut self, id: Option<FieldListId>, place: Place<'_>) {
        let known = id.is_none_or(|id| id.index() < self.program.field_lists.len());
        self.check(known, 22, place, || "there is no such field list".into());
    }

    fn digest(&mut self, id: DigestId, values: &[Expr], place: Place<'_>) {
        let Some(digest) = self.declared(&self.program.digests, "digest", id.0, place) else {
            return;
        };
        self.check(values.len() == digest.widths.len(), 26, place, || {
            format!(
                "{} values for {} members",
                values.len(),
                digest.widths.len()
            )
        });
        for (value, &width) in values.iter().zip(&digest.widths) {
            self.expect(value, width, place);
        }
    }

    fn extract(&mut self, id: HeaderId, length: Option<&Expr>, place: Place<'_>) {
        let Some(header) = self.header(id, place) else {
            return;
        };
        let varbit = header.fields.iter().any(|f| f.varbit_length.is_some());
        self.check(varbit == length.is_some(), 26, place, || {
            "a length is for headers with a varbit, and needed there".into()
        });
        if let Some(length) = length {
            self.expect(length, 32, place);
        }
    }

    fn lookahead(&mut self, dst: SlotId, offset: u32, place: Place<'_>) {
        let Some(width) = self.destination(dst, place) else {
            return;
        };
        let end = u64::from(offset) + u64::from(width);
        self.check(end <= u64::from(MAX_LOOKAHEAD_BITS), 26, place, || {
            format!("a lookahead of {end} bits")
        });
    }

    /// Checks an expression and that its width is `expected` bits.
    fn expect(&mut self, expr: &Expr, expected: u32, place: Place<'_>) {
        if let Some(width) = self.expr(expr, place, 0) {
            self.check(width == expected, 26, place, || {
                format!("an expression has {width} bits, not {expected}")
            });
        }
    }

    /// Checks an expression and returns its width in bits; `None` after a violation in it. `depth` is the
    /// number of expressions around it.
    fn expr(&mut self, expr: &Expr, place: Place<'_>, depth: u32) -> Option<u32> {
        if !self.check(depth < MAX_EXPR_DEPTH, 32, place, || {
            format!("an expression nests more than {MAX_EXPR_DEPTH} deep")
        }) {
            return None;
        }
        let width = self.operator(expr, place, depth + 1)?;
        if !self.check(width <= u64::from(MAX_EXPR_WIDTH), 31, place, || {
            format!("a value has {width} bits")
        }) {
            return None;
        }
        let width = width as u32;
        self.spend(width, place).then_some(width)
    }

    fn operator(&mut self, expr: &Expr, place: Place<'_>, depth: u32) -> Option<u64> {
        let width = match expr {
            Expr::Const(value) => value.width(),
            Expr::Slot(slot) => self.slot(*slot, place)?,
            Expr::PacketLength => 32,
            Expr::Unary { a, .. } => self.expr(a, place, depth)?,
            Expr::Binary { op, a, b } => {
                let (a, b) = self.pair(a, b, place, depth)?;
                self.operands(op.is_shift() || a == b, place, || {
                    format!("{op:?} of {a} and {b} bits")
                })?;
                if op.is_comparison() { 1 } else { a }
            }
            Expr::Slice { a, high, low } => {
                let width = self.expr(a, place, depth)?;
                self.operands(low <= high && *high < width, place, || {
                    format!("bits {high} down to {low} of {width}")
                })?;
                high - low + 1
            }
            Expr::Concat { a, b } => {
                let (a, b) = self.pair(a, b, place, depth)?;
                return Some(u64::from(a) + u64::from(b));
            }
            Expr::ZeroExtend { a, width } | Expr::SignExtend { a, width } => {
                let from = self.expr(a, place, depth)?;
                self.operands(*width > from, place, || {
                    format!("an extension from {from} to {width} bits")
                })?;
                *width
            }
            Expr::Mux {
                cond,
                then,
                otherwise,
            } => {
                let cond = self.expr(cond, place, depth);
                let (a, b) = self.pair(then, otherwise, place, depth)?;
                let cond = cond?;
                self.operands(cond == 1 && a == b, place, || {
                    format!("a choice by {cond} bits between {a} and {b}")
                })?;
                a
            }
        };
        Some(u64::from(width))
    }

    fn pair(&mut self, a: &Expr, b: &Expr, place: Place<'_>, depth: u32) -> Option<(u32, u32)> {
        let a = self.expr(a, place, depth);
        let b = self.expr(b, place, depth);
        a.zip(b)
    }

    fn operands(
        &mut self,
        good: bool,
        place: Place<'_>,
        message: impl FnOnce() -> String,
    ) -> Option<()> {
        self.check(good, 30, place, message).then_some(())
    }
}

/// Returns the name of a statement's kind.
fn statement_name(stmt: &StmtKind) -> String {
    let text = format!("{stmt:?}");
    let end = text.find(|c: char| !c.is_alphanumeric());
    text[..end.unwrap_or(text.len())].to_owned()
}
