//! Which slots a part of the pipeline reads and writes.
//!
//! The answer decides where each slot lives in the function of that part ([`crate::code`]): only what the other part or
//! the engine may look at has to reach the state array. It is a conservative union over all paths; that a
//! particular path writes before it reads is left to the code generator's own analysis of values.

use crate::headers::Headers;
use crate::memory::in_memory;
use ir::{
    ActionId, Expr, Field, Half, HashAlgorithm, HeaderId, KeySet, Layout, Program, SlotId,
    StandardMetadata, Stmt, StmtKind, Transition,
};
use std::ops::Range;

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
    /// Whether a clone may be asked for.
    pub clones: bool,
    /// Whether the packet may be asked to go round again: resubmitted or recirculated.
    pub repeats: bool,
    /// Whether the packet may be asked to be cut.
    pub truncates: bool,
    /// Whether it may end early: an assertion, or a loop.
    pub ends_early: bool,
}

impl Usage {
    /// Of the parser alone.
    pub fn of_parser(program: &Program) -> Usage {
        let mut walk = Walk::new(program);
        walk.parser();
        walk.usage
    }

    /// Of parser, checksum verification, ingress and ingress deparser.
    pub fn of_ingress(program: &Program) -> Usage {
        let mut walk = Walk::new(program);
        walk.parser();
        walk.stmts(&program.verify_checksum);
        walk.stmts(&program.ingress);
        walk.stmts(&program.ingress_deparser);
        walk.usage
    }

    /// Of egress parser, egress, checksum computation and deparser.
    pub fn of_egress(program: &Program) -> Usage {
        let mut walk = Walk::new(program);
        walk.egress();
        walk.usage
    }

    /// Of the parser and checksum verification.
    pub fn of_arrival(program: &Program) -> Usage {
        let mut walk = Walk::new(program);
        walk.parser();
        walk.stmts(&program.verify_checksum);
        walk.usage
    }

    /// Of all actions.
    pub fn of_actions(program: &Program) -> Usage {
        let mut walk = Walk::new(program);
        (0..program.actions.len() as u32).for_each(|i| walk.action(ActionId(i)));
        walk.usage
    }

    /// Of expressions.
    pub fn of_exprs(program: &Program, exprs: &[Expr]) -> Usage {
        let mut walk = Walk::new(program);
        walk.exprs(exprs);
        walk.usage
    }

    /// Of all that follows the parser, but for the deparser.
    pub fn behind_parser(program: &Program) -> Usage {
        let mut walk = Walk::new(program);
        walk.stmts(&program.verify_checksum);
        walk.stmts(&program.ingress);
        walk.stmts(&program.egress);
        walk.stmts(&program.compute_checksum);
        walk.usage
    }

    /// Of both halves.
    pub fn of_all(program: &Program) -> Usage {
        let mut walk = Walk::new(program);
        walk.parser();
        walk.stmts(&program.verify_checksum);
        walk.stmts(&program.ingress);
        walk.egress();
        walk.usage
    }

    /// Of both halves of v1model in one function, where fields that lie in the packet as they came are not read to be emitted or summed up.
    pub fn of_fast_path(
        program: &Program,
        standard: &StandardMetadata,
        headers: &Headers,
    ) -> Usage {
        let mut walk = Walk::new(program);
        walk.in_packet = Some(headers);
        walk.parser();
        walk.stmts(&program.verify_checksum);
        walk.stmts(&program.ingress);
        walk.egress();
        // The architecture gives these a value before or between the halves, all others zero, and reads where the packet goes.
        for slot in [
            standard.ingress_port,
            standard.packet_length,
            standard.ingress_global_timestamp,
            standard.egress_port,
            standard.enq_timestamp,
            standard.egress_global_timestamp,
        ] {
            walk.write(slot);
        }
        walk.read(standard.egress_spec);
        walk.read(standard.mcast_grp);
        if may_replicate(program) {
            walk.write(standard.egress_rid);
            walk.write(standard.instance_type);
        }
        // Whether a header moved, and how long the packet is, depends on these.
        for header in &program.headers {
            walk.read(header.valid);
            for length in header.fields.iter().filter_map(|f| f.varbit_length) {
                walk.read(length);
            }
        }
        walk.usage
    }
}

/// Whether what runs behind the egress control may change whether the packet is dropped. P4 gives those blocks no standard metadata, but
/// the intermediate representation does not forbid it; then the packet is judged at the end, by the engine.
pub(crate) fn drops_behind_egress(program: &Program) -> bool {
    let mut walk = Walk::new(program);
    walk.stmts(&program.compute_checksum);
    walk.stmts(&program.deparser);
    let drop = program.architecture.egress_drop();
    drop.is_some_and(|(slot, _)| walk.usage.writes[slot.index()])
}

/// Whether some packet may have more than one copy.
pub(crate) fn may_replicate(program: &Program) -> bool {
    let standard = program.v1model();
    standard.is_some_and(|s| Usage::of_ingress(program).sets[s.mcast_grp.index()])
}

/// Whether the engine says in egress how long the packet is: whether anybody wants to know.
pub(crate) fn measures(program: &Program, egress: &Usage) -> bool {
    let Some(standard) = program.v1model() else {
        return false;
    };
    let length = standard.packet_length;
    let mut lists = program.field_lists.iter();
    egress.reads[length.index()] || lists.any(|l| l.slots.contains(&length))
}

/// Slots that the engine reads and writes between the halves: the architecture's metadata; what clone, resubmit and
/// recirculate preserve; and, where it measures or copies headers in the state, their slots.
pub(crate) fn shared_with_engine(program: &Program, egress: &Usage) -> Vec<bool> {
    let mut shared = vec![false; program.slots.len()];
    for (_, slot, _) in program.architecture.fields() {
        shared[slot.index()] = true;
    }
    for slot in program.field_lists.iter().flat_map(|list| &list.slots) {
        shared[slot.index()] = true;
    }
    let measures = measures(program, egress);
    for header in &program.headers {
        if measures || egress.clones {
            shared[header.valid.index()] = true;
        }
        for field in &header.fields {
            if egress.clones {
                shared[field.slot.index()] = true;
            }
            if let Some(length) = field.varbit_length.filter(|_| measures || egress.clones) {
                shared[length.index()] = true;
            }
        }
    }
    shared
}

/// The limbs of the state that the egress function may write.
pub(crate) fn egress_changes(program: &Program, layout: &Layout) -> Vec<Range<usize>> {
    let egress = Usage::of_egress(program);
    let shared = shared_with_engine(program, &egress);
    let in_memory = in_memory(program);
    let written = |i: &usize| egress.writes[*i] && (shared[*i] || in_memory[*i]);
    let range = |i: usize| {
        let at = layout.offset(SlotId(i as u32));
        at..at + layout.slot_limbs(SlotId(i as u32))
    };
    (0..program.slots.len())
        .filter(written)
        .map(range)
        .collect()
}

struct Walk<'a> {
    program: &'a Program,
    usage: Usage,
    actions_seen: Vec<bool>,
    /// On the fast path.
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

    /// An assignment of a constant zero.
    fn reset(&mut self, slot: SlotId) {
        self.usage.writes[slot.index()] = true;
        self.usage.assigned[slot.index()] = true;
    }

    fn assign(&mut self, slot: SlotId) {
        self.write(slot);
        self.usage.assigned[slot.index()] = true;
    }

    /// Whether the slot is a field that lies in the packet as it came, whenever its header is valid.
    fn is_in_packet(&self, slot: SlotId) -> bool {
        self.in_packet.is_some_and(|h| h.stays_in_packet(slot))
    }

    fn egress(&mut self) {
        let program = self.program;
        if program.parser.egress.is_some() {
            self.parser();
        }
        if let Some((slot, _)) = program.architecture.egress_drop() {
            self.read(slot);
        }
        self.stmts(&program.egress);
        self.stmts(&program.compute_checksum);
        self.stmts(&program.deparser);
    }

    /// All states: those of the other half's parser, if there is one, are no loss.
    fn parser(&mut self) {
        let program = self.program;
        for half in [Half::Ingress, Half::Egress] {
            self.write(program.architecture.parser_error(half));
        }
        for state in &program.parser.states {
            self.stmts(&state.body);
            if let Transition::Select { keys, cases } = &state.transition {
                self.exprs(keys);
                // Matching reads nothing but the keys.
                debug_assert!(cases.iter().all(|case| {
                    case.matches.len() == keys.len()
                        || matches!(case.matches[..], [KeySet::ValueSet(_)])
                }));
            }
        }
    }

    fn exprs(&mut self, exprs: &[Expr]) {
        for expr in exprs {
            self.expr(expr);
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Const(_) | Expr::PacketLength => {}
            Expr::Slot(slot) => self.read(*slot),
            Expr::Unary { a, .. }
            | Expr::Slice { a, .. }
            | Expr::ZeroExtend { a, .. }
            | Expr::SignExtend { a, .. } => self.expr(a),
            Expr::Binary { a, b, .. } | Expr::Concat { a, b } => {
                self.expr(a);
                self.expr(b);
            }
            Expr::Mux {
                cond,
                then,
                otherwise,
            } => {
                self.expr(cond);
                self.expr(then);
                self.expr(otherwise);
            }
        }
    }

    fn header(&mut self, header: HeaderId, mut each: impl FnMut(&mut Self, SlotId)) {
        let program = self.program;
        let header = &program.headers[header.index()];
        each(self, header.valid);
        for &Field {
            slot,
            varbit_length,
        } in &header.fields
        {
            each(self, slot);
            if let Some(length) = varbit_length {
                each(self, length);
            }
        }
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
        match stmt {
            StmtKind::Assign { dst, value } => {
                self.expr(value);
                match value {
                    Expr::Const(bits) if bits.is_zero() => self.reset(*dst),
                    _ => self.assign(*dst),
                }
            }
            StmtKind::SetValid(header) => {
                self.usage.validated[header.index()] = true;
                self.write(self.program.headers[header.index()].valid);
            }
            StmtKind::SetInvalid(header) => self.header(*header, Walk::write),
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                self.expr(cond);
                self.stmts(then);
                self.stmts(otherwise);
            }
            StmtKind::Switch {
                value,
                cases,
                default,
            } => {
                self.expr(value);
                for (_, body) in cases {
                    self.stmts(body);
                }
                self.stmts(default);
            }
            StmtKind::Block { body, .. } => self.stmts(body),
            StmtKind::Loop { body, .. } => {
                self.usage.ends_early = true;
                self.stmts(body);
            }
            StmtKind::Apply {
                table,
                keys,
                hit,
                action_run,
            } => {
                self.exprs(keys);
                for slot in hit.iter().chain(action_run) {
                    self.assign(*slot);
                }
                let program = self.program;
                for action in &program.tables[table.index()].actions {
                    self.action(action.action);
                }
            }
            _ => self.leaf(stmt),
        }
    }

    /// Statements without a body.
    fn leaf(&mut self, stmt: &'a StmtKind) {
        match stmt {
            StmtKind::RegisterRead { dst, index, .. } => {
                self.expr(index);
                self.assign(*dst);
            }
            StmtKind::RegisterWrite { index, value, .. } => {
                self.expr(index);
                self.expr(value);
            }
            StmtKind::Count { index, .. } => self.expr(index),
            StmtKind::MeterExecute { index, dst, .. } => {
                self.expr(index);
                self.assign(*dst);
            }
            StmtKind::Hash {
                dst,
                data,
                algorithm,
                payload,
            } => {
                let sums_bytes = *algorithm == HashAlgorithm::Csum16 && !payload;
                for expr in data {
                    match expr {
                        Expr::Slot(slot) if sums_bytes && self.is_in_packet(*slot) => {}
                        _ => self.expr(expr),
                    }
                }
                self.assign(*dst);
            }
            StmtKind::Random { dst, low, high } => {
                self.expr(low);
                self.expr(high);
                self.assign(*dst);
            }
            StmtKind::Clone { session, .. } => {
                self.usage.clones = true;
                self.expr(session);
            }
            StmtKind::Truncate { length } => {
                self.usage.truncates = true;
                self.expr(length);
            }
            StmtKind::Digest { values, .. } | StmtKind::Log { values, .. } => self.exprs(values),
            StmtKind::Assert { cond } => {
                self.usage.ends_early = true;
                self.expr(cond);
            }
            StmtKind::Extract {
                header,
                varbit_length,
            } => {
                if let Some(length) = varbit_length {
                    self.expr(length);
                }
                self.usage.extracted[header.index()] = true;
                self.header(*header, Walk::write);
            }
            StmtKind::Lookahead { dst, .. } | StmtKind::DirectMeterRead { dst, .. } => {
                self.assign(*dst);
            }
            StmtKind::Advance { bits } => self.expr(bits),
            StmtKind::Reject { error } => {
                self.expr(error);
                for half in [Half::Ingress, Half::Egress] {
                    self.assign(self.program.architecture.parser_error(half));
                }
            }
            StmtKind::Emit(header) => self.header(*header, |walk, slot| {
                if !walk.is_in_packet(slot) {
                    walk.read(slot);
                }
            }),
            StmtKind::Resubmit { .. } | StmtKind::Recirculate { .. } => self.usage.repeats = true,
            // Nothing read or written.
            StmtKind::Break(_) | StmtKind::Exit => {}
            // In `stmt`; named, so that a new statement is not forgotten here.
            StmtKind::Assign { .. }
            | StmtKind::SetValid(_)
            | StmtKind::SetInvalid(_)
            | StmtKind::If { .. }
            | StmtKind::Switch { .. }
            | StmtKind::Block { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Apply { .. } => {}
        }
    }
}
