//! The parser and the deparser: between the packet's bytes and header instances.

use super::{Flow, Run};
use crate::exec::DropReason;
use crate::trace::EventKind;
use ir::core_error;
use ir::{
    Bits, BlockId, Expr, HeaderId, KeySet, Loc, SelectCase, SlotId, StateId, Stmt, StmtKind,
    Target, Transition,
};

impl Run<'_, '_> {
    /// Runs the parser `block` from its first state, `current`, and the start of the packet. Returns `false` if the packet
    /// is dropped.
    pub(super) fn parser(&mut self, block: BlockId, mut current: StateId) -> bool {
        let program = self.program;
        self.note(Loc::default(), || EventKind::Block(block));
        self.cx.consumed = 0;
        loop {
            let state = &program.states[current.index()];
            self.note(state.loc, || EventKind::State(current));
            match self.block(&state.body) {
                Flow::Next => {}
                flow => return flow != Flow::Drop,
            }
            let Target::State(next) = self.transition(&state.transition, state.loc) else {
                return true;
            };
            if next <= current && !self.step() {
                self.drop_packet(DropReason::StepLimit);
                return false;
            }
            current = next;
        }
    }

    fn transition(&mut self, transition: &Transition, loc: Loc) -> Target {
        let (keys, target) = match transition {
            Transition::Goto(target) => (Vec::new(), Some(*target)),
            Transition::Select { keys, cases } => {
                let keys: Vec<Bits> = keys.iter().map(|key| self.eval(key)).collect();
                let case = cases.iter().find(|case| self.selects(case, &keys));
                (keys, case.map(|case| case.target))
            }
        };
        let reached = target.unwrap_or(Target::Reject);
        self.note(loc, || EventKind::Transition {
            keys,
            target: reached,
        });
        if target.is_none() {
            self.fail(core_error::NO_MATCH, loc);
        }
        reached
    }

    fn selects(&self, case: &SelectCase, keys: &[Bits]) -> bool {
        if let [KeySet::ValueSet(value_set)] = case.matches[..] {
            let key: Vec<u64> = keys.iter().flat_map(|k| k.limbs()).copied().collect();
            return self.cx.runtime.value_set_contains(value_set, &key);
        }
        let mut pairs = case.matches.iter().zip(keys);
        pairs.all(|(key_set, key)| match key_set {
            KeySet::Any => true,
            KeySet::Mask { value, mask } => key.and(mask) == *value,
            KeySet::Range { low, high } => low.ucmp(key).is_le() && key.ucmp(high).is_le(),
            KeySet::ValueSet(value_set) => {
                self.cx.runtime.value_set_contains(*value_set, key.limbs())
            }
        })
    }

    /// Sets the parser error (P4_16, section 12.8), and returns what makes the parser stop in state reject.
    fn fail(&mut self, error: u64, loc: Loc) -> Flow {
        let slot = self.program.architecture.parser_error(self.pipeline);
        self.layout.set_u64(self.cx.state, slot, error);
        self.note(loc, || EventKind::ParserError(error));
        Flow::Reject
    }

    pub(super) fn parser_stmt(&mut self, stmt: &Stmt) -> Flow {
        match &stmt.kind {
            StmtKind::Extract {
                header,
                varbit_length,
            } => self.extract(*header, varbit_length.as_ref(), stmt.loc),
            StmtKind::Lookahead { dst, offset } => self.lookahead(*dst, *offset, stmt.loc),
            StmtKind::Advance { bits } => {
                let bits = self.eval(bits).low_u64();
                self.advance(bits, stmt.loc)
            }
            StmtKind::Reject { error } => {
                let error = self.eval(error).low_u64();
                self.fail(error, stmt.loc)
            }
            _ => Flow::Next,
        }
    }

    /// Returns the number of bits of the packet that the parser has not consumed.
    fn remaining_bits(&self) -> u64 {
        8 * (self.cx.packet_len - self.cx.consumed) as u64
    }

    fn extract(&mut self, header: HeaderId, varbit_length: Option<&Expr>, loc: Loc) -> Flow {
        let program = self.program;
        let fields = &program.headers[header.index()].fields;
        let varbit_bits = varbit_length.map_or(0, |length| self.eval(length).low_u64());
        let width = |slot: SlotId| u64::from(program.slots[slot.index()].width);
        let length_of = |field: &ir::Field| match field.varbit_length {
            Some(_) => varbit_bits,
            None => width(field.slot),
        };
        let bits: u64 = fields.iter().map(length_of).sum();
        if !bits.is_multiple_of(8) {
            return self.fail(core_error::PARSER_INVALID_ARGUMENT, loc);
        }
        if bits > self.remaining_bits() {
            return self.fail(core_error::PACKET_TOO_SHORT, loc);
        }
        let varbits = fields.iter().filter(|f| f.varbit_length.is_some());
        if varbits.clone().any(|f| varbit_bits > width(f.slot)) {
            return self.fail(core_error::HEADER_TOO_SHORT, loc);
        }
        let mut at = 8 * self.cx.consumed as u64;
        for field in fields {
            let length = length_of(field);
            let value = read_bits(self.cx.packet, at, length, width(field.slot) as u32);
            self.set(field.slot, &value);
            if let Some(slot) = field.varbit_length {
                self.set(slot, &Bits::from_u64(32, varbit_bits));
            }
            at += length;
        }
        self.set(
            program.headers[header.index()].valid,
            &Bits::from_bool(true),
        );
        self.cx.consumed += (bits / 8) as usize;
        self.note_extract(header, (bits / 8) as usize, loc);
        Flow::Next
    }

    fn note_extract(&mut self, header: HeaderId, bytes: usize, loc: Loc) {
        if self.cx.trace.is_none() {
            return;
        }
        let declared = &self.program.headers[header.index()];
        let fields = declared.fields.iter().map(|f| self.get(f.slot)).collect();
        self.note(loc, || EventKind::Extract {
            header,
            bytes,
            fields,
        });
    }

    fn lookahead(&mut self, dst: SlotId, offset: u32, loc: Loc) -> Flow {
        let width = self.program.slots[dst.index()].width;
        if u64::from(offset) + u64::from(width) > self.remaining_bits() {
            return self.fail(core_error::PACKET_TOO_SHORT, loc);
        }
        let at = 8 * self.cx.consumed as u64 + u64::from(offset);
        let value = read_bits(self.cx.packet, at, u64::from(width), width);
        self.set(dst, &value);
        self.note(loc, || EventKind::Lookahead { dst, value });
        Flow::Next
    }

    fn advance(&mut self, bits: u64, loc: Loc) -> Flow {
        if !bits.is_multiple_of(8) {
            return self.fail(core_error::PARSER_INVALID_ARGUMENT, loc);
        }
        if bits > self.remaining_bits() {
            return self.fail(core_error::PACKET_TOO_SHORT, loc);
        }
        self.cx.consumed += (bits / 8) as usize;
        self.note(loc, || EventKind::Advance(bits));
        Flow::Next
    }

    pub(super) fn set_valid(&mut self, header: HeaderId, valid: bool, loc: Loc) {
        let declared = &self.program.headers[header.index()];
        self.set(declared.valid, &Bits::from_bool(valid));
        if !valid {
            for slot in declared.field_slots() {
                self.set(slot, &Bits::zero(self.program.slots[slot.index()].width));
            }
        }
        self.note(loc, || EventKind::SetValid { header, valid });
    }

    /// Returns the value of a field, and how many of its bits go into the packet: its width, or the length of a
    /// varbit.
    fn emitted_bits(&self, field: &ir::Field) -> (Bits, u32) {
        let value = self.get(field.slot);
        let width = match field.varbit_length {
            Some(length) => self.get(length).low_u64().min(u64::from(value.width())) as u32,
            None => value.width(),
        };
        (value, width)
    }

    /// Appends a header to the emitted bytes if it is valid. If a varbit makes the header end within a byte, zero bits
    /// fill that byte.
    pub(super) fn emit(&mut self, header: HeaderId, loc: Loc) {
        let declared = &self.program.headers[header.index()];
        if self.get(declared.valid).is_zero() {
            return self.note(loc, || EventKind::Emit {
                header,
                bytes: None,
            });
        }
        let values: Vec<(Bits, u32)> = declared
            .fields
            .iter()
            .map(|f| self.emitted_bits(f))
            .collect();
        let before = self.cx.emitted.len();
        let mut writer = BitWriter::new(self.cx.emitted);
        for (value, width) in &values {
            writer.append(value, *width);
        }
        let bytes = Some(self.cx.emitted.len() - before);
        self.note(loc, || EventKind::Emit { header, bytes });
    }
}

/// Appends bits to bytes, the most significant first, beginning with a new byte.
pub(super) struct BitWriter<'a> {
    bytes: &'a mut Vec<u8>,
    used_bits: u32,
}

impl BitWriter<'_> {
    pub(super) fn new(bytes: &mut Vec<u8>) -> BitWriter<'_> {
        BitWriter {
            bytes,
            used_bits: 0,
        }
    }

    /// Appends the low `width` bits of a value, most significant bit first.
    pub(super) fn append(&mut self, value: &Bits, width: u32) {
        for bit in (0..width).rev() {
            if self.used_bits.is_multiple_of(8) {
                self.bytes.push(0);
            }
            if let Some(last) = self.bytes.last_mut() {
                *last |= u8::from(value.bit(bit)) << (7 - self.used_bits % 8);
            }
            self.used_bits += 1;
        }
    }
}

/// Reads `count` bits of the packet from bit `at` on, as a value of `width` bits. The packet must have these bits.
fn read_bits(packet: &[u8], at: u64, count: u64, width: u32) -> Bits {
    if count == 0 {
        return Bits::zero(width);
    }
    let bytes = &packet[(at / 8) as usize..(at + count).div_ceil(8) as usize];
    let beyond = (8 - (at + count) % 8) % 8;
    let shifted = Bits::from_be_bytes(8 * bytes.len() as u32, bytes);
    let shift = Bits::from_u64(8, beyond);
    let aligned = Bits::binary(ir::BinaryOp::Shr, &shifted, &shift);
    // Bits of the first byte that belong to what is before.
    aligned.resize(count as u32).resize(width)
}
