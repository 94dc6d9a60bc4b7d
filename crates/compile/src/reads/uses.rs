//! Which slots conditions depend on, and where each slot is read for the last time. The states of the walk
//! remember no other slots, and no slot for longer.

use std::collections::{BTreeMap, BTreeSet};

use ir::{BinaryOp, BlockId, CloneKind, Expr, Input, Pipeline, Program, SlotId, Stmt, StmtKind};

/// Where slots are read and written. Positions number the statements of the controls, from 1 on, in the order
/// in which packets meet them.
pub(super) struct Uses {
    relevant: Vec<bool>,
    validity: Vec<bool>,
    next_index: Vec<bool>,
    may_be_unset: Vec<bool>,
    /// True for the fields of headers that the deparser emits.
    sent: Vec<bool>,
    /// For a field, the validity slot of its header.
    valid_of: Vec<Option<SlotId>>,
    /// The position of the last statement that reads a slot.
    last: Vec<u32>,
    /// For the validity slot of a header, the position of the last statement that makes the header valid or
    /// writes to it.
    last_write: Vec<u32>,
    /// For each statement, by its address, which does not change: its position, and the position after it and
    /// all statements inside of it.
    positions: BTreeMap<usize, (u32, u32)>,
    starts: BTreeMap<BlockId, u32>,
}

fn clones_egress(program: &Program) -> bool {
    (ir::statements(program.main_control(Pipeline::EGRESS)))
        .chain(
            program
                .actions
                .iter()
                .flat_map(|action| ir::statements(&action.body)),
        )
        .any(|stmt| {
            matches!(
                stmt.kind,
                StmtKind::Clone {
                    kind: CloneKind::EgressToEgress,
                    ..
                }
            )
        })
}

fn address(stmt: &Stmt) -> usize {
    std::ptr::from_ref(stmt) as usize
}

impl Uses {
    pub fn new(program: &Program) -> Uses {
        let count = program.slots.len();
        let mut uses = Uses {
            relevant: vec![false; count],
            validity: vec![false; count],
            next_index: (program.slots.iter())
                .map(|slot| slot.name.ends_with(".nextIndex"))
                .collect(),
            may_be_unset: vec![false; count],
            sent: vec![false; count],
            valid_of: vec![None; count],
            last: vec![0; count],
            last_write: vec![0; count],
            positions: BTreeMap::new(),
            starts: BTreeMap::new(),
        };
        for header in &program.headers {
            for slot in header.field_slots() {
                uses.valid_of[slot.index()] = Some(header.valid);
            }
        }
        uses.find_relevant(program);
        uses.find_unset(program);
        let mut next = 1;
        for (block, stage) in program.architecture.description().blocks() {
            uses.starts.insert(block, next);
            let first = next;
            uses.number(program, program.control(block), &mut next);
            let again = stage.pipeline == Pipeline::EGRESS && stage.applies_tables();
            if again && clones_egress(program) {
                // The clones come from the end of egress to its beginning.
                let inside = first..next;
                let both = uses.last.iter_mut().chain(&mut uses.last_write);
                let used = both.filter(|last| inside.contains(last));
                used.for_each(|last| *last = next);
            }
        }
        uses.find_lasting(program);
        uses
    }

    /// Marks as relevant the slots that conditions read, the validity of all headers, the slots that the
    /// architecture forwards packets by, and the slots from which any of these are computed, directly or
    /// through others.
    fn find_relevant(&mut self, program: &Program) {
        let mut read = BTreeSet::new();
        for header in &program.headers {
            self.validity[header.valid.index()] = true;
            read.insert(header.valid);
        }
        for stmt in program.bodies().flat_map(ir::statements) {
            match &stmt.kind {
                StmtKind::If { cond, .. } | StmtKind::Assert { cond } => all(cond, &mut read),
                StmtKind::Switch { value, .. } => all(value, &mut read),
                _ => {}
            }
            for expr in stmt.kind.exprs() {
                conditions(expr, program, &mut read);
            }
        }
        for key in program.select_keys() {
            all(key, &mut read);
        }
        if let Some(forwarding) = super::state_forwarding(program) {
            read.extend([forwarding.port, forwarding.group]);
            read.extend(forwarding.egress_slot(Input::OutputPort));
        }
        loop {
            let before = read.len();
            for stmt in program.bodies().flat_map(ir::statements) {
                if let StmtKind::Assign { dst, value } = &stmt.kind
                    && read.contains(dst)
                {
                    all(value, &mut read);
                }
            }
            if read.len() == before {
                break;
            }
        }
        for slot in read {
            self.relevant[slot.index()] = true;
        }
    }

    /// Marks as possibly unset the slots that are assigned a copy of another slot, since the copy is unset
    /// where the other is.
    fn find_unset(&mut self, program: &Program) {
        for stmt in program.bodies().flat_map(ir::statements) {
            if let StmtKind::Assign {
                dst,
                value: Expr::Slot(_),
            } = &stmt.kind
            {
                self.may_be_unset[dst.index()] = true;
            }
        }
    }

    fn number(&mut self, program: &Program, body: &[Stmt], next: &mut u32) {
        for stmt in body {
            let position = *next;
            *next += 1;
            for inner in stmt.kind.inner() {
                self.number(program, inner, next);
            }
            self.positions.insert(address(stmt), (position, *next));
            let (mut read, mut written) = (BTreeSet::new(), BTreeSet::new());
            let mut note = |stmt: &Stmt| {
                reads(program, stmt, &mut read);
                self.writes(program, stmt, &mut written);
            };
            note(stmt);
            let until = match stmt.kind {
                // A read in a later round comes later.
                StmtKind::Loop { .. } => {
                    ir::statements(body_of(stmt)).for_each(note);
                    *next
                }
                _ => position,
            };
            for (slots, last) in [(read, &mut self.last), (written, &mut self.last_write)] {
                for slot in slots {
                    last[slot.index()] = last[slot.index()].max(until);
                }
            }
        }
    }

    /// Extends the positions up to which slots count as read: a header's validity to the last read of any of
    /// its fields; slots that a clone preserves to the end; so too, in architectures that do not deparse
    /// between the pipelines, the slots that packets are forwarded by. Also marks the fields of headers that
    /// the deparser emits.
    fn find_lasting(&mut self, program: &Program) {
        for (header, emitted) in program.headers.iter().zip(program.emitted_headers()) {
            let fields = header.field_slots().map(|slot| self.last[slot.index()]);
            let last = fields
                .max()
                .unwrap_or(0)
                .max(self.last[header.valid.index()]);
            self.last[header.valid.index()] = last;
            for slot in header.field_slots() {
                self.sent[slot.index()] = emitted;
            }
        }
        let copies = program
            .bodies()
            .flat_map(ir::statements)
            .filter_map(|stmt| match stmt.kind {
                StmtKind::Clone { preserve, .. } => preserve,
                _ => None,
            });
        for list in copies {
            for slot in &program.field_lists[list.index()].slots {
                self.last[slot.index()] = u32::MAX;
            }
        }
        if let Some(forwarding) = super::state_forwarding(program) {
            let path = forwarding.egress_slot(Input::PacketPath);
            for slot in [forwarding.port, forwarding.group].into_iter().chain(path) {
                self.last[slot.index()] = u32::MAX;
            }
        }
    }

    /// Adds to `out` the validity slot of each header that a statement makes valid or to a field of which it
    /// writes. For a table, the statements of its actions count.
    fn writes(&self, program: &Program, stmt: &Stmt, out: &mut BTreeSet<SlotId>) {
        let written = stmt.kind.destination();
        out.extend(written.and_then(|slot| self.valid_of[slot.index()]));
        match &stmt.kind {
            StmtKind::SetValid(id) => {
                out.insert(program.headers[id.index()].valid);
            }
            StmtKind::Apply { table, .. } => {
                for action in &program.tables[table.index()].actions {
                    for stmt in ir::statements(&program.actions[action.action.index()].body) {
                        self.writes(program, stmt, out);
                    }
                }
            }
            _ => {}
        }
    }

    pub fn relevant(&self) -> impl Iterator<Item = SlotId> {
        (0..self.relevant.len() as u32)
            .map(SlotId)
            .filter(|slot| self.is_relevant(*slot))
    }

    pub fn is_relevant(&self, slot: SlotId) -> bool {
        self.relevant[slot.index()]
    }

    pub fn is_validity(&self, slot: SlotId) -> bool {
        self.validity[slot.index()]
    }

    pub fn is_next_index(&self, slot: SlotId) -> bool {
        self.next_index[slot.index()]
    }

    pub fn may_be_unset(&self, slot: SlotId) -> bool {
        self.may_be_unset[slot.index()]
    }

    /// Returns whether the deparser emits the header of which `slot` is a field.
    pub fn is_sent(&self, slot: SlotId) -> bool {
        self.sent[slot.index()]
    }

    pub fn is_read_after(&self, slot: SlotId, position: u32) -> bool {
        self.last[slot.index()] >= position
    }

    /// Returns whether `slot` is the validity slot of a header that is made valid, or whose fields are
    /// written, at `position` or later.
    pub fn is_written_after(&self, slot: SlotId, position: u32) -> bool {
        self.last_write[slot.index()] >= position
    }

    pub fn position(&self, stmt: &Stmt) -> Option<(u32, u32)> {
        self.positions.get(&address(stmt)).copied()
    }

    pub fn start(&self, block: BlockId) -> Option<u32> {
        self.starts.get(&block).copied()
    }
}

fn body_of(stmt: &Stmt) -> &[Stmt] {
    match &stmt.kind {
        StmtKind::Loop { body, .. } => body,
        _ => &[],
    }
}

fn all(expr: &Expr, out: &mut BTreeSet<SlotId>) {
    match expr {
        Expr::Slot(slot) => {
            out.insert(*slot);
        }
        _ => expr.operands().for_each(|operand| all(operand, out)),
    }
}

/// Adds to `out` the slots that the conditions inside an expression read: those of `cond ? a : b` and the
/// operands of `and` and `or`.
fn conditions(expr: &Expr, program: &Program, out: &mut BTreeSet<SlotId>) {
    match expr {
        Expr::Mux { cond, .. } => all(cond, out),
        Expr::Binary {
            op: BinaryOp::And | BinaryOp::Or,
            a,
            ..
        } if a.width(&program.slots) == 1 => all(expr, out),
        _ => {}
    }
    expr.operands()
        .for_each(|operand| conditions(operand, program, out));
}

/// Adds to `out` the slots that the expressions of a statement read. For a table, the statements of its
/// actions count too. The fields of headers that the statement emits are left out.
fn reads(program: &Program, stmt: &Stmt, out: &mut BTreeSet<SlotId>) {
    for expr in stmt.kind.exprs() {
        all(expr, out);
    }
    if let StmtKind::Apply { table, .. } = &stmt.kind {
        for action in &program.tables[table.index()].actions {
            for stmt in ir::statements(&program.actions[action.action.index()].body) {
                reads(program, stmt, out);
            }
        }
    }
}
