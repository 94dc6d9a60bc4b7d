//! Statements.
//!
//! Each method that generates statements tells whether control can reach what follows; if not, the current block is
//! finished and nothing more is generated for it.

use super::bytes::Packer;
use super::wide::{Wide, limbs_for};
use super::{
    EntryPoint, Gen, Label, MAX_INSTRUCTIONS, Memory, Place, Slots, Words, constant_memory,
};
use crate::analysis::MAX_VALUE_LIMBS;
use crate::frame::{Frame, preserve_code};
use crate::shims::Shim;
use crate::views::{CellsView, counter_view, register_view};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Block, InstBuilder, InstructionData, MemFlagsData, Opcode, Value};
use cranelift_frontend::Switch;
use engine::DropReason;
use ir::{
    BinaryOp, Bits, CounterId, Expr, FieldListId, HeaderId, LabelId, RegisterId, SlotId, Stmt,
    StmtKind, UnaryOp,
};
use smallvec::smallvec;
use std::mem::offset_of;

impl Gen<'_, '_> {
    /// Generates several statements, and returns whether control can reach the code after them. Generates
    /// nothing more once the function is too large.
    pub(crate) fn stmts(&mut self, stmts: &[Stmt]) -> bool {
        let mut rest = stmts;
        while let [stmt, behind @ ..] = rest {
            rest = behind;
            self.too_large |= self.b.func.dfg.num_insts() > MAX_INSTRUCTIONS;
            self.scratch_used = 0;
            if self.too_large {
                continue;
            }
            let goes_on = match behind {
                [choice, behind @ ..]
                    if let Some(lookup) = self.chosen_by_hit(&stmt.kind, &choice.kind) =>
                {
                    rest = behind;
                    self.apply_and_choose(&lookup)
                }
                _ => self.stmt(&stmt.kind),
            };
            if !goes_on {
                return false;
            }
        }
        true
    }

    fn stmt(&mut self, stmt: &StmtKind) -> bool {
        if self.entry_point == EntryPoint::Prefetch
            && let Some(goes_on) = self.stmt_to_prefetch(stmt)
        {
            return goes_on;
        }
        match stmt {
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => self.if_else(cond, then, otherwise),
            StmtKind::Switch {
                value,
                cases,
                default,
            } => self.switch(value, cases, default),
            StmtKind::Block { label, body } => self.block(*label, body),
            StmtKind::Loop { label, body } => self.endless_loop(*label, body),
            StmtKind::Break(label) => {
                let label = (self.surroundings.labels.iter_mut().rev())
                    .find(|l| l.id == *label)
                    .expect("a break is inside what it names");
                label.used = true;
                let after = label.after;
                self.b.ins().jump(after, &[]);
                false
            }
            StmtKind::Exit if self.ends_here() || self.replica_ends_here() => false,
            StmtKind::Exit => {
                self.surroundings.end_used = true;
                let end = self.surroundings.end;
                self.b.ins().jump(end, &[]);
                false
            }
            StmtKind::Apply {
                table,
                keys,
                hit,
                action_run,
            } => self.apply(*table, keys, *hit, *action_run),
            StmtKind::Reject { error } => {
                self.reject(error);
                false
            }
            _ => {
                self.leaf(stmt);
                true
            }
        }
    }

    /// Generates a statement that contains no other statements and always continues with the next one.
    fn leaf(&mut self, stmt: &StmtKind) {
        match stmt {
            StmtKind::Assign { dst, value } => {
                let value = self.expr(value);
                self.write(*dst, &value);
            }
            StmtKind::SetValid(header) => {
                self.note_validity(*header, true);
                self.put_validity(*header, true);
            }
            StmtKind::SetInvalid(header) => self.set_invalid(*header),
            StmtKind::Hash {
                dst,
                algorithm,
                data,
                payload,
            } => self.hash(*dst, *algorithm, data, *payload),
            StmtKind::Extract {
                header,
                varbit_length,
            } => self.extract(*header, varbit_length.as_ref()),
            StmtKind::Lookahead { dst, offset } => self.lookahead(*dst, *offset),
            StmtKind::Advance { bits } => self.advance(bits),
            StmtKind::Emit(header) => self.emit(*header),
            StmtKind::Assert { cond } => self.assert(cond),
            StmtKind::Clone {
                session, preserve, ..
            } => self.clone_packet(session, *preserve),
            StmtKind::Resubmit { preserve } => {
                self.request(offset_of!(Frame, resubmit), *preserve);
            }
            StmtKind::Recirculate { preserve } => {
                self.request(offset_of!(Frame, recirculate), *preserve);
            }
            StmtKind::Truncate { length } => {
                let length = self.expr(length).low();
                // The shortest counts; no length so far, which is a zero, becomes the greatest number.
                let former = self.frame_word(offset_of!(Frame, truncate));
                let one = self.imm(1);
                let former = self.b.ins().isub(former, one);
                let shortest = self.b.ins().umin(length, former);
                let code = self.b.ins().iadd(shortest, one);
                self.store_frame(offset_of!(Frame, truncate), code);
            }
            _ => self.extern_call(stmt),
        }
    }

    fn if_else(&mut self, cond: &Expr, then: &[Stmt], otherwise: &[Stmt]) -> bool {
        if let Some(holds) = self.known(cond) {
            return self.stmts(if holds { then } else { otherwise });
        }
        if otherwise.is_empty()
            && let Some(flag) = self.flag_set(cond, then)
        {
            let holds = self.expr(cond).low();
            self.write_word(flag, holds);
            return true;
        }
        let (first, after) = (self.b.create_block(), self.b.create_block());
        if otherwise.is_empty() {
            self.branch(cond, first, after);
            self.continue_in(first);
            self.body(then, after);
            self.continue_in(after);
            return true;
        }
        let second = self.b.create_block();
        self.branch(cond, first, second);
        self.continue_in(first);
        let from_first = self.body(then, after);
        self.continue_in(second);
        let from_second = self.body(otherwise, after);
        self.join_in(after, from_first || from_second)
    }

    /// Generates a body that may or may not run and continues at the block `after`. Returns whether control
    /// can reach its end.
    pub(super) fn body(&mut self, stmts: &[Stmt], after: Block) -> bool {
        self.surroundings.branches += 1;
        let falls_through = self.stmts(stmts);
        self.surroundings.branches -= 1;
        if falls_through {
            self.b.ins().jump(after, &[]);
        }
        falls_through
    }

    fn switch(&mut self, value: &Expr, cases: &[(Vec<Bits>, Vec<Stmt>)], default: &[Stmt]) -> bool {
        let store = self.store_of(cases, default);
        let value = self.expr(value);
        let after = self.b.create_block();
        if let Some(store) = store.filter(|_| value.width <= 64) {
            for (other, block) in self.store_at(&value, &store, cases, after) {
                self.continue_in(block);
                self.body(&cases[other].1, after);
            }
            return self.join_in(after, true);
        }
        let otherwise = self.b.create_block();
        let blocks: Vec<Block> = cases.iter().map(|_| self.b.create_block()).collect();
        if value.width <= 64 {
            let mut switch = Switch::new();
            for ((values, _), &block) in cases.iter().zip(&blocks) {
                for value in values {
                    switch.set_entry(value.low_u64().into(), block);
                }
            }
            switch.emit(&mut self.b, value.low(), otherwise);
        } else {
            for ((values, _), &block) in cases.iter().zip(&blocks) {
                for wanted in values {
                    let wanted = self.constant(wanted);
                    let equal = self.equal(&value, &wanted);
                    self.leave_if(equal, block);
                }
            }
            self.b.ins().jump(otherwise, &[]);
        }
        let mut reached = false;
        for ((_, body), &block) in cases.iter().zip(&blocks) {
            self.continue_in(block);
            reached |= self.body(body, after);
        }
        self.continue_in(otherwise);
        reached |= self.body(default, after);
        self.join_in(after, reached)
    }

    fn labelled(&mut self, label: LabelId, body: &[Stmt]) -> (bool, Block, bool) {
        let after = self.b.create_block();
        self.surroundings.labels.push(Label {
            id: label,
            after,
            used: false,
        });
        self.surroundings.branches += 1;
        let falls_through = self.stmts(body);
        self.surroundings.branches -= 1;
        let label = self.surroundings.labels.pop().expect("pushed above");
        (falls_through, after, label.used)
    }

    fn block(&mut self, label: LabelId, body: &[Stmt]) -> bool {
        let (falls_through, after, used) = self.labelled(label, body);
        if falls_through {
            self.b.ins().jump(after, &[]);
        }
        self.join_in(after, falls_through || used)
    }

    fn endless_loop(&mut self, label: LabelId, body: &[Stmt]) -> bool {
        let start = self.b.create_block();
        self.b.ins().jump(start, &[]);
        self.b.switch_to_block(start);
        self.surroundings.loops += 1;
        let (falls_through, after, used) = self.labelled(label, body);
        self.surroundings.loops -= 1;
        if falls_through {
            self.spend_step();
            self.b.ins().jump(start, &[]);
        }
        self.b.seal_block(start);
        self.join_in(after, used)
    }

    fn assert(&mut self, cond: &Expr) {
        let cond = self.expr(cond).low();
        let failed = self.early_end(DropReason::AssertFailed);
        let next = self.b.create_block();
        self.b.ins().brif(cond, next, &[], failed, &[]);
        self.continue_in(next);
    }

    /// Generates code that appends a header, if it is valid, to the bytes that the deparser has emitted.
    pub(super) fn emit(&mut self, header: HeaderId) {
        let program = self.program;
        let fields = &program.headers[header.index()].fields;
        let valid = self.read(program.headers[header.index()].valid).low();
        let (valid_block, after) = (self.b.create_block(), self.b.create_block());
        self.branch_on(valid, valid_block, after, &[]);
        self.continue_in(valid_block);
        if self.surroundings.loops > 0 {
            let end = self.emit_at();
            let room = super::emit_capacity(self.analysis);
            let room = self.imm(room as u64);
            let end = self.call(Shim::Reserve, &[end, room]);
            self.set_emit_at(end.expect("gives a result"));
        }
        let base = self.emit_at();
        let bytes = if fields.iter().any(|f| f.varbit_length.is_some()) {
            self.emit_varbit(base, fields)
        } else {
            let bytes = self.emit_fixed(base, header);
            self.imm(bytes.into())
        };
        let end = self.b.ins().iadd(base, bytes);
        self.set_emit_at(end);
        self.b.ins().jump(after, &[]);
        self.continue_in(after);
    }

    /// Generates code that writes a header without a varbit to the address `base`. Returns its length in
    /// bytes.
    fn emit_fixed(&mut self, base: Value, header: HeaderId) -> u32 {
        if self.emit_from_packet(base, header) {
            return self.program.header_max_bytes(header) as u32;
        }
        let mut packer = Packer::new(base);
        for field in &self.program.headers[header.index()].fields {
            let value = self.read(field.slot);
            self.pack(&mut packer, &value);
        }
        if self.emits_exactly {
            self.pack_end_exactly(packer);
            return self.program.header_max_bytes(header) as u32;
        }
        self.pack_end(packer)
    }
}

impl Slots<'_, '_> {
    /// Generates a statement that uses an object of the switch: a register, counter, meter, digest or random
    /// number.
    fn extern_call(&mut self, stmt: &StmtKind) {
        match stmt {
            StmtKind::RegisterRead {
                dst,
                register,
                index,
            } => self.register_read(*dst, *register, index),
            StmtKind::RegisterWrite {
                register,
                index,
                value,
            } => self.register_write(*register, index, value),
            StmtKind::Count { counter, index } => {
                self.count(*counter, index);
            }
            StmtKind::MeterExecute { meter, index, dst } => {
                let index = self.expr(index).low();
                let id = self.imm(meter.0.into());
                let colour = self.call(Shim::MeterExecute, &[id, index]);
                self.write_word(*dst, colour.expect("gives a result"));
            }
            StmtKind::DirectMeterRead { meter, dst } => {
                let id = self.imm(meter.0.into());
                let colour = self.call(Shim::DirectMeterRead, &[id]);
                self.write_word(*dst, colour.expect("gives a result"));
            }
            StmtKind::Random { dst, low, high } => {
                let low = self.expr(low).low();
                let high = self.expr(high).low();
                let value = self.call(Shim::Random, &[low, high]);
                self.write_word(*dst, value.expect("gives a result"));
            }
            StmtKind::Digest { digest, values } => {
                let values = self.exprs(values);
                let (at, limbs) = self.spill_all(&values);
                let id = self.imm(digest.0.into());
                self.call(Shim::Digest, &[id, at, limbs]);
            }
            // A log goes to the trace, which machine code does not write; its values have no side effects.
            StmtKind::Log { .. } => {}
            // The callers generate these. They are named, so that a new statement is not forgotten here.
            StmtKind::Assign { .. }
            | StmtKind::SetValid(_)
            | StmtKind::SetInvalid(_)
            | StmtKind::If { .. }
            | StmtKind::Switch { .. }
            | StmtKind::Block { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break(_)
            | StmtKind::Exit
            | StmtKind::Apply { .. }
            | StmtKind::Hash { .. }
            | StmtKind::Clone { .. }
            | StmtKind::Resubmit { .. }
            | StmtKind::Recirculate { .. }
            | StmtKind::Truncate { .. }
            | StmtKind::Assert { .. }
            | StmtKind::Extract { .. }
            | StmtKind::Lookahead { .. }
            | StmtKind::Advance { .. }
            | StmtKind::Reject { .. }
            | StmtKind::Emit(_) => {}
        }
    }

    /// Generates the assignment of a word to a slot, cut or extended with zeros to its width.
    pub(crate) fn write_word(&mut self, dst: SlotId, word: Value) {
        let value = self.word_of(dst, word);
        self.write(dst, &value);
    }

    /// Returns the slot that `then` sets to 1 if that is all it does, the slot is a flag of one bit that is
    /// zero before, and `cond` is a test for (in)equality. Such a flag equals the result of the comparison, so
    /// that later conditions on the flag need no stored value. Returns `None` in all other cases.
    fn flag_set(&mut self, cond: &Expr, then: &[Stmt]) -> Option<SlotId> {
        let [
            Stmt {
                kind:
                    StmtKind::Assign {
                        dst,
                        value: Expr::Const(bits),
                    },
                ..
            },
        ] = then
        else {
            return None;
        };
        let compares =
            matches!(cond, Expr::Binary { op, .. } if matches!(op, BinaryOp::Eq | BinaryOp::Ne));
        let is_flag = self.width(*dst) == 1 && !bits.is_zero() && !self.is_validity(*dst);
        (compares && is_flag && self.known_slot(*dst) == Some(0)).then_some(*dst)
    }

    /// Generates a jump to `yes` if a condition holds, else to `no`. An operand of "and" or "or" that no
    /// longer matters is not evaluated, since expressions have no side effects.
    fn branch(&mut self, cond: &Expr, yes: Block, no: Block) {
        let whole = cond;
        let (a, b, is_or) = match cond {
            Expr::Unary { op, a } if *op == UnaryOp::Not => return self.branch(a, no, yes),
            Expr::Binary { op, a, b } if is_logical(*op, a, self) => (a, b, *op == BinaryOp::Or),
            Expr::Binary { op, a, b } if is_bit(*op, a, b, self).is_some() => {
                return match is_bit(*op, a, b, self) {
                    Some(false) => self.branch(a, no, yes),
                    _ => self.branch(a, yes, no),
                };
            }
            Expr::Mux {
                cond,
                then,
                otherwise,
            } => {
                match self.known(cond) {
                    Some(true) => return self.branch(then, yes, no),
                    Some(false) => return self.branch(otherwise, yes, no),
                    None => {}
                }
                if let Some(element) = self.chosen(whole) {
                    return self.branch_on(element.low(), yes, no, &[]);
                }
                let (first, second) = (self.b.create_block(), self.b.create_block());
                self.branch(cond, first, second);
                self.continue_in(first);
                self.branch(then, yes, no);
                self.continue_in(second);
                return self.branch(otherwise, yes, no);
            }
            _ => {
                let value = self.expr(cond).low();
                return self.branch_on(value, yes, no, &[]);
            }
        };
        match (self.known(a), self.known(b)) {
            (Some(known), _) if known != is_or => return self.branch(b, yes, no),
            (_, Some(known)) if known != is_or => return self.branch(a, yes, no),
            _ => {}
        }
        if !is_or && let Some(both) = self.both_equal(a, b) {
            return self.branch_on(both, yes, no, &[]);
        }
        let more = self.b.create_block();
        if is_or {
            self.branch(a, yes, more);
        } else {
            self.branch(a, more, no);
        }
        self.continue_in(more);
        self.branch(b, yes, no);
    }

    /// Generates one comparison for the condition that two adjacent fields in the packet have constant values. Returns
    /// `None` unless the fields are adjacent in a valid header and have at most 64 bits together.
    fn both_equal(&mut self, a: &Expr, b: &Expr) -> Option<Value> {
        let (mut first, mut second) = (constant_field(a)?, constant_field(b)?);
        let (mut at, mut behind) = (
            self.home_in_packet(first.0)?,
            self.home_in_packet(second.0)?,
        );
        if at.offset > behind.offset {
            (at, behind) = (behind, at);
            (first, second) = (second, first);
        }
        let (high, low) = (first.1, second.1);
        let width = high.width() + low.width();
        let adjacent = at.header == behind.header && at.offset + high.width() == behind.offset;
        if !adjacent || width > 64 {
            return None;
        }
        let valid = self.program.headers[at.header.index()].valid;
        self.known_slot(valid).filter(|&valid| valid != 0)?;
        let both = self.bits_at_source(at, width);
        let wanted = self.constant(&high.concat(low));
        Some(self.equal(&both, &wanted))
    }

    /// Returns the truth value of a condition at this point of the generated code; `None` if that is not
    /// certain.
    pub(super) fn known(&mut self, cond: &Expr) -> Option<bool> {
        match cond {
            Expr::Const(bits) => Some(!bits.is_zero()),
            Expr::Slot(slot) if self.width(*slot) == 1 => self.known_slot(*slot).map(|v| v != 0),
            Expr::Unary { op, a } if *op == UnaryOp::Not && a.width(&self.program.slots) == 1 => {
                self.known(a).map(|holds| !holds)
            }
            Expr::Binary { op, a, b } if is_logical(*op, a, self) => {
                let is_or = *op == BinaryOp::Or;
                match (self.known(a), self.known(b)) {
                    (Some(known), _) | (_, Some(known)) if known == is_or => Some(is_or),
                    (Some(_), Some(_)) => Some(!is_or),
                    _ => None,
                }
            }
            Expr::Mux {
                cond,
                then,
                otherwise,
            } => match self.known(cond) {
                Some(true) => self.known(then),
                Some(false) => self.known(otherwise),
                None => {
                    let (then, otherwise) = (self.known(then), self.known(otherwise));
                    then.filter(|_| then == otherwise)
                }
            },
            Expr::Binary { op, a, b } if matches!(op, BinaryOp::Eq | BinaryOp::Ne) => {
                let (Expr::Slot(slot), Expr::Const(wanted)) = (&**a, &**b) else {
                    return None;
                };
                let word = self.known_slot(*slot)?;
                Some((wanted.to_u64() == Some(word)) == (*op == BinaryOp::Eq))
            }
            _ => None,
        }
    }

    /// Returns the value of a slot; `None` if it is not certain at this point of the generated code, or if the slot
    /// has more than 64 bits.
    pub(super) fn known_slot(&mut self, slot: SlotId) -> Option<u64> {
        match self.places[slot.index()] {
            Place::Zero => Some(0),
            Place::Values { first, .. } if self.layout.slot_limbs(slot) == 1 => {
                let value = self.b.use_var(first);
                self.known_value(value)
            }
            _ => None,
        }
    }

    fn set_invalid(&mut self, header: HeaderId) {
        self.note_validity(header, false);
        self.put_validity(header, false);
        let program = self.program;
        for slot in program.headers[header.index()].field_slots() {
            self.clear(slot);
        }
    }

    fn clone_packet(&mut self, session: &Expr, preserve: Option<FieldListId>) {
        let session = self.expr(session).low();
        let (one, preserve) = (self.imm(1), self.imm(preserve_code(preserve)));
        self.note_request();
        self.store_frame(offset_of!(Frame, clone), one);
        self.store_frame(offset_of!(Frame, clone_session), session);
        self.store_frame(offset_of!(Frame, clone_preserve), preserve);
    }

    fn request(&mut self, offset: usize, preserve: Option<FieldListId>) {
        let code = self.imm(preserve_code(preserve) + 1);
        self.note_request();
        self.store_frame(offset, code);
    }

    fn register_read(&mut self, dst: SlotId, register: RegisterId, index: &Expr) {
        let index = self.expr(index).low();
        let width = self.width(dst);
        let limbs = limbs_for(width);
        let view = self.cells_in_place(register_view(register), limbs);
        let Some(view) = view else {
            let value = self.register_by_call(register, index, width);
            return self.write(dst, &value);
        };
        let (cell, elsewhere) = self.cell_in_place(view, index, limbs);
        let value = self.reload(cell, width);
        let done = self.b.create_block();
        for _ in 0..limbs {
            self.b.append_block_param(done, I64);
        }
        let args = |value: &Wide| value.limbs.iter().map(|&l| l.into()).collect::<Vec<_>>();
        self.b.ins().jump(done, &args(&value));
        self.continue_in(elsewhere);
        let value = self.register_by_call(register, index, width);
        self.b.ins().jump(done, &args(&value));
        self.continue_in(done);
        let limbs = self.b.block_params(done).iter().copied().collect();
        self.write(dst, &Wide { width, limbs });
    }

    /// Generates [`ir::StmtKind::Count`]: counts the packet in a cell, in place if the counter has a view,
    /// else by a call.
    fn count(&mut self, counter: CounterId, index: &Expr) {
        let index = self.expr(index).low();
        let view = self.cells_in_place(counter_view(self.program, counter), 2);
        let after = match view {
            None => None,
            Some(view) => {
                let (cell, elsewhere) = self.cell_in_place(view, index, 2);
                let one = self.imm(1);
                for (at, more) in [(0, one), (8, self.packet_len)] {
                    let flags = MemFlagsData::trusted();
                    let count = self.b.ins().load(I64, flags, cell, at);
                    let count = self.b.ins().iadd(count, more);
                    self.b.ins().store(flags, count, cell, at);
                }
                let after = self.b.create_block();
                self.b.ins().jump(after, &[]);
                self.continue_in(elsewhere);
                Some(after)
            }
        };
        let id = self.imm(counter.0.into());
        self.call(Shim::Count, &[id, index]);
        if let Some(after) = after {
            self.b.ins().jump(after, &[]);
            self.continue_in(after);
        }
    }

    fn register_write(&mut self, register: RegisterId, index: &Expr, value: &Expr) {
        let index = self.expr(index).low();
        let value = self.expr(value);
        let view = self.cells_in_place(register_view(register), value.limbs.len());
        let Some(view) = view else {
            return self.write_register_by_call(register, index, &value);
        };
        let (cell, elsewhere) = self.cell_in_place(view, index, value.limbs.len());
        for (i, &limb) in value.limbs.iter().enumerate() {
            (self.b.ins()).store(MemFlagsData::trusted(), limb, cell, 8 * i as i32);
        }
        let after = self.b.create_block();
        self.b.ins().jump(after, &[]);
        self.continue_in(elsewhere);
        self.write_register_by_call(register, index, &value);
        self.b.ins().jump(after, &[]);
        self.continue_in(after);
    }

    /// Generates code that writes the fields of a header with a varbit to the address `base`. Returns its
    /// length in bytes.
    fn emit_varbit(&mut self, base: Value, fields: &[ir::Field]) -> Value {
        let mut offset = self.imm(0);
        for field in fields {
            let value = self.read(field.slot);
            let bits = match field.varbit_length {
                // Never longer in a verified program; the written bytes must not depend on that.
                Some(length) => {
                    let (length, max) = (self.read(length).low(), self.imm(value.width.into()));
                    self.b.ins().umin(length, max)
                }
                None => self.imm(value.width.into()),
            };
            let at = self.spill(&[&value]);
            self.call_without_frame(Shim::AppendBits, &[base, offset, at, bits]);
            offset = self.b.ins().iadd(offset, bits);
        }
        let seven = self.imm(7);
        let up = self.b.ins().iadd(offset, seven);
        self.shr_imm(up, 3)
    }
}

impl Memory<'_, '_> {
    fn register_by_call(&mut self, register: RegisterId, index: Value, width: u32) -> Wide {
        let id = self.imm(register.0.into());
        if limbs_for(width) == 1 {
            let word = self.call(Shim::RegisterReadWord, &[id, index]);
            let limbs = smallvec![word.expect("gives a result")];
            return Wide { width, limbs };
        }
        let cell = self.call(Shim::RegisterCell, &[id, index]);
        self.reload(cell.expect("gives a result"), width)
    }

    /// Returns `view`, the number of a view of cells of `limbs` limbs, if the function may access these cells
    /// without a call; else `None`.
    fn cells_in_place(&self, view: Option<usize>, limbs: usize) -> Option<usize> {
        view.filter(|_| self.entry_point.is_fast_path() && limbs <= MAX_VALUE_LIMBS)
    }

    /// Generates the address of the cell at `index` of the view with the number `view`. Generation continues
    /// where the view has such a cell. Returns the address, and the block that is reached if it has not.
    fn cell_in_place(&mut self, view: usize, index: Value, limbs: usize) -> (Value, Block) {
        let views = self.arrival_word(offset_of!(Frame, cells));
        let mut word = |offset: usize| {
            let at = (view * size_of::<CellsView>() + offset) as i32;
            self.b.ins().load(I64, constant_memory(), views, at)
        };
        let first = word(offset_of!(CellsView, first));
        let count = word(offset_of!(CellsView, count));
        let (there, elsewhere) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(elsewhere);
        let is_there = self.b.ins().icmp(IntCC::UnsignedLessThan, index, count);
        (self.b.ins()).brif(is_there, there, &[], elsewhere, &[]);
        self.continue_in(there);
        (self.element(first, index, 8 * limbs), elsewhere)
    }

    fn write_register_by_call(&mut self, register: RegisterId, index: Value, value: &Wide) {
        if value.limbs.len() == 1 {
            let id = self.imm(register.0.into());
            let args = [id, index, value.low()];
            self.call(Shim::RegisterWriteWord, &args);
            return;
        }
        let at = self.spill(&[value]);
        let (id, limbs) = (
            self.imm(register.0.into()),
            self.imm(value.limbs.len() as u64),
        );
        self.call(Shim::RegisterWrite, &[id, index, at, limbs]);
    }
}

impl Words<'_> {
    /// Returns the number that `value` is, if it is a constant of the generated code; else `None`.
    pub(crate) fn known_value(&self, value: Value) -> Option<u64> {
        let dfg = &self.b.func.dfg;
        let inst = dfg.value_def(dfg.resolve_aliases(value)).inst()?;
        match dfg.insts[inst] {
            InstructionData::UnaryImm {
                opcode: Opcode::Iconst,
                imm,
            } => Some(imm.bits() as u64),
            _ => None,
        }
    }

    /// Continues generation in the block `after` if `reached` is true. Returns `reached`.
    pub(super) fn join_in(&mut self, after: Block, reached: bool) -> bool {
        if reached {
            self.continue_in(after);
        }
        reached
    }
}

/// Returns the slot and the constant if `expr` compares them for equality; `None` for any other expression.
fn constant_field(expr: &Expr) -> Option<(&Expr, &Bits)> {
    match expr {
        Expr::Binary {
            op: BinaryOp::Eq,
            a,
            b,
        } => match (&**a, &**b) {
            (Expr::Slot(_), Expr::Const(bits)) => Some((a, bits)),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the truth value that the one-bit operand `a` must have for its comparison with the constant `b` to
/// hold; `None` if this is no such comparison.
fn is_bit(op: BinaryOp, a: &Expr, b: &Expr, g: &Slots<'_, '_>) -> Option<bool> {
    let Expr::Const(bits) = b else { return None };
    let one = a.width(&g.program.slots) == 1;
    match op {
        BinaryOp::Eq if one => Some(!bits.is_zero()),
        BinaryOp::Ne if one => Some(bits.is_zero()),
        _ => None,
    }
}

/// Returns true if `op` with the first operand `a` is a logical "and" or "or": the operands have one bit.
fn is_logical(op: BinaryOp, a: &Expr, g: &Slots<'_, '_>) -> bool {
    matches!(op, BinaryOp::And | BinaryOp::Or) && a.width(&g.program.slots) == 1
}
