//! Which slots a part of the pipeline reads and writes.
//!
//! The answer decides where each slot lives in the function of that part ([`crate::code`]): only the slots that the other part or
//! the engine may look at have to reach the state array. It is a conservative union over all paths; that a
//! particular path writes before it reads is left to the code generator's own analysis of values.

use super::headers::Headers;
use ir::{
    ActionId, Effect, Expr, Forwarding, HashAlgorithm, HeaderId, Input, Pipeline, Program, SlotId,
    StateId, Stmt, StmtKind, Transition,
};

/// Slots read and written, by [`SlotId`] index.
#[derive(Clone, Debug)]
pub(crate) struct Usage {
    /// May be read.
    pub reads: Vec<bool>,
    /// May be written.
    pub writes: Vec<bool>,
    /// May be written other than with a constant zero.
    pub sets: Vec<bool>,
    /// May be written other than by extracting a header or by making it valid or invalid.
    pub assigned: Vec<bool>,
    /// Headers, by index, that may be extracted.
    pub extracted: Vec<bool>,
    /// Headers, by index, that may be made valid.
    pub validated: Vec<bool>,
    /// True if a clone may be requested.
    pub clones: bool,
    /// True if a resubmission or recirculation may be requested.
    pub repeats: bool,
    /// True if the packet may be truncated.
    pub truncates: bool,
    /// True if the packet may be ended early, by an assertion or a loop that runs for too long.
    pub ends_early: bool,
}

impl Usage {
    /// Finds which slots and headers the parser of arriving packets uses. Nothing else of the program counts.
    pub fn of_parser(program: &Program) -> Usage {
        Usage::of(program, |walk| walk.parser(Pipeline::INGRESS))
    }

    /// Finds which slots and headers the blocks of a pipeline use.
    pub fn of_pipeline(program: &Program, pipeline: Pipeline) -> Usage {
        Usage::of(program, |walk| walk.pipeline(pipeline))
    }

    /// Finds which slots and headers the parsers and the verification of checksums use.
    pub fn of_arrival(program: &Program) -> Usage {
        Usage::of(program, |walk| {
            walk.parser(Pipeline::INGRESS);
            walk.parser(Pipeline::EGRESS);
            walk.stmts(program.checksums(Pipeline::INGRESS));
        })
    }

    /// Finds which slots and headers the bodies of all actions use.
    pub fn of_actions(program: &Program) -> Usage {
        Usage::of(program, |walk| {
            (0..program.actions.len() as u32).for_each(|i| walk.action(ActionId(i)));
        })
    }

    /// Finds which slots and headers the statements of `bodies` use.
    pub fn of_stmts<'a>(program: &'a Program, bodies: &[&'a [Stmt]]) -> Usage {
        Usage::of(program, |walk| {
            bodies.iter().for_each(|body| walk.stmts(body))
        })
    }

    /// Finds which slots and headers ingress, egress and the architecture between them use when one function
    /// runs them. A field that lies unchanged in the packet does not count as read when it is emitted or is
    /// part of a checksum.
    pub fn of_fast_path(
        program: &Program,
        forwarding: &Forwarding,
        headers: &Headers,
        may_replicate: bool,
    ) -> Usage {
        Usage::of(program, |walk| {
            walk.in_packet = Some(headers);
            walk.pipeline(Pipeline::INGRESS);
            walk.pipeline(Pipeline::EGRESS);
            walk.architecture(forwarding, may_replicate);
        })
    }

    fn of<'a>(program: &'a Program, take: impl FnOnce(&mut Walk<'a>)) -> Usage {
        let mut walk = Walk::new(program);
        take(&mut walk);
        walk.usage
    }

    /// Returns what is used in either `self` or `other`.
    pub fn and(mut self, other: &Usage) -> Usage {
        for (own, other) in [
            (&mut self.reads, &other.reads),
            (&mut self.writes, &other.writes),
            (&mut self.sets, &other.sets),
            (&mut self.assigned, &other.assigned),
            (&mut self.extracted, &other.extracted),
            (&mut self.validated, &other.validated),
        ] {
            own.iter_mut().zip(other).for_each(|(own, &o)| *own |= o);
        }
        self.clones |= other.clones;
        self.repeats |= other.repeats;
        self.truncates |= other.truncates;
        self.ends_early |= other.ends_early;
        self
    }
}

struct Walk<'a> {
    program: &'a Program,
    usage: Usage,
    actions_seen: Vec<bool>,
    /// Where fields lie in the packet, on the fast path; else `None`.
    in_packet: Option<&'a Headers>,
}

impl<'a> Walk<'a> {
    fn new(program: &'a Program) -> Walk<'a> {
        let none = vec![false; program.slots.len()];
        Walk {
            program,
            usage: Usage {
                reads: none.clone(),
                assigned: none.clone(),
                sets: none.clone(),
                writes: none,
                extracted: vec![false; program.headers.len()],
                validated: vec![false; program.headers.len()],
                clones: false,
                repeats: false,
                truncates: false,
                ends_early: false,
            },
            actions_seen: vec![false; program.actions.len()],
            in_packet: None,
        }
    }

    fn read(&mut self, slot: SlotId) {
        self.usage.reads[slot.index()] = true;
    }

    fn write(&mut self, slot: SlotId) {
        self.usage.writes[slot.index()] = true;
        self.usage.sets[slot.index()] = true;
    }

    /// Records that a slot is assigned the constant zero, which counts as a write, but not as a write of
    /// another value.
    fn reset(&mut self, slot: SlotId) {
        self.usage.writes[slot.index()] = true;
        self.usage.assigned[slot.index()] = true;
    }

    fn assign(&mut self, slot: SlotId) {
        self.write(slot);
        self.usage.assigned[slot.index()] = true;
    }

    /// Returns true if, on the fast path, the slot is a field that lies unchanged in the packet whenever its header is valid; off
    /// the fast path, always false.
    fn is_in_packet(&self, slot: SlotId) -> bool {
        self.in_packet.is_some_and(|h| h.stays_in_packet(slot))
    }

    /// Records what the blocks of a pipeline read and write.
    fn pipeline(&mut self, pipeline: Pipeline) {
        let program = self.program;
        for (block, stage) in program.architecture.description().blocks_of(pipeline) {
            match stage.is_parser() {
                true => self.parser(pipeline),
                false => self.stmts(program.control(block)),
            }
            if let Some((slot, _)) = program.architecture.drops_after(block) {
                self.read(slot);
            }
        }
    }

    /// Records what the states of the parser of a pipeline read and write; nothing if the pipeline has no parser.
    fn parser(&mut self, pipeline: Pipeline) {
        let program = self.program;
        let Some(start) = program.parser_of(pipeline) else {
            return;
        };
        self.write(program.architecture.parser_error(pipeline));
        let mut seen = vec![false; program.states.len()];
        let mut open: Vec<StateId> = Vec::from_iter((start.index() < seen.len()).then_some(start));
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut seen[at.index()], true) {
                continue;
            }
            let state = &program.states[at.index()];
            self.stmts(&state.body);
            if let Transition::Select { keys, .. } = &state.transition {
                // Matching reads nothing else.
                keys.iter().for_each(|key| self.expr(key));
            }
            open.extend(state.transition.states());
        }
    }

    /// Records what the architecture accesses on the fast path: it writes the inputs that ingress and egress
    /// get, except those that are always zero, and reads the slots that decide where the packet goes.
    fn architecture(&mut self, forwarding: &Forwarding, may_replicate: bool) {
        for &(slot, input) in forwarding.arrival.iter().chain(&forwarding.egress) {
            let is_given = match input {
                Input::ArrivalPort | Input::PacketBytes | Input::NowUs => true,
                Input::OutputPort | Input::EnqueuedUs | Input::One => true,
                Input::PacketPath => may_replicate || forwarding.unicast_path != 0,
                Input::ReplicaId => may_replicate,
                Input::Priority => slot != forwarding.priority,
                Input::EnqueuedBehind | Input::DequeuedBefore => false,
                Input::WaitedUs | Input::Zero => false,
            };
            if is_given {
                self.write(slot);
            }
            if input == Input::Priority && slot != forwarding.priority {
                self.read(forwarding.priority);
            }
        }
        let decide = [forwarding.port, forwarding.group];
        let drops = [forwarding.ingress_drop.0, forwarding.egress_drop.0];
        let requests = (forwarding.ingress_requests.iter()).chain(&forwarding.egress_requests);
        (decide.iter().chain(&drops).chain(requests)).for_each(|&slot| self.read(slot));
        // Whether a header moved, and how long the packet is, depends on these.
        for header in &self.program.headers {
            self.read(header.valid);
            for length in header.fields.iter().filter_map(|f| f.varbit_length) {
                self.read(length);
            }
        }
    }

    fn expr(&mut self, expr: &Expr) {
        if let Expr::Slot(slot) = expr {
            self.read(*slot);
        }
        expr.operands().for_each(|operand| self.expr(operand));
    }

    fn header(&mut self, header: HeaderId, mut each: impl FnMut(&mut Self, SlotId)) {
        let header = &self.program.headers[header.index()];
        each(self, header.valid);
        header.field_slots().for_each(|slot| each(self, slot));
    }

    fn stmts(&mut self, stmts: &'a [Stmt]) {
        for stmt in stmts {
            self.stmt(&stmt.kind);
        }
    }

    fn action(&mut self, action: ActionId) {
        if std::mem::replace(&mut self.actions_seen[action.index()], true) {
            return;
        }
        let program = self.program;
        let action = &program.actions[action.index()];
        for param in &action.params {
            self.assign(param.slot);
        }
        self.stmts(&action.body);
    }

    fn stmt(&mut self, stmt: &'a StmtKind) {
        let sums_bytes = matches!(
            stmt,
            StmtKind::Hash {
                algorithm: HashAlgorithm::Csum16,
                payload: false,
                ..
            }
        );
        for expr in stmt.exprs() {
            match expr {
                Expr::Slot(slot) if sums_bytes && self.is_in_packet(*slot) => {}
                _ => self.expr(expr),
            }
        }
        self.effects(stmt);
        stmt.inner().into_iter().for_each(|body| self.stmts(body));
    }

    /// Records the slots and headers that a statement accesses, besides the slots that its expressions read,
    /// and the requests that it makes.
    fn effects(&mut self, stmt: &'a StmtKind) {
        let program = self.program;
        match stmt {
            StmtKind::Assign {
                dst,
                value: Expr::Const(bits),
            } if bits.is_zero() => self.reset(*dst),
            StmtKind::SetValid(header) => {
                self.usage.validated[header.index()] = true;
                self.write(program.headers[header.index()].valid);
            }
            StmtKind::SetInvalid(header) => self.header(*header, Walk::write),
            StmtKind::Apply { table, .. } => {
                (stmt.written(program)).for_each(|slot| self.assign(slot));
                let actions = &program.tables[table.index()].actions;
                actions.iter().for_each(|a| self.action(a.action));
            }
            StmtKind::Extract { header, .. } => {
                self.usage.extracted[header.index()] = true;
                self.header(*header, Walk::write);
            }
            StmtKind::Emit(header) => self.header(*header, |walk, slot| {
                if !walk.is_in_packet(slot) {
                    walk.read(slot);
                }
            }),
            StmtKind::Reject { .. } => {
                for slot in program.architecture.parser_errors() {
                    self.assign(slot);
                }
            }
            StmtKind::Clone { .. } => self.usage.clones = true,
            _ => {
                let effect = stmt.effect();
                self.usage.repeats |= effect == Effect::Request;
                self.usage.truncates |= effect == Effect::Cut;
                self.usage.ends_early |= matches!(effect, Effect::Check | Effect::Steps);
                if let Some(slot) = stmt.destination() {
                    self.assign(slot);
                }
            }
        }
    }
}
