//! The exit of a packet from the fast path, and the state array with which the switch continues.

use crate::code::wide::Wide;
use crate::code::{Memory, Place, Slots, Words};
use crate::frame::{Arrival, Frame, exit};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I64, I64X2};
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, MemFlagsData, Type, Value};
use ir::SlotId;
use std::mem::offset_of;
use std::ops::Range;

/// The number of limbs up to which memory is cleared or copied without a loop.
const INLINE_LIMBS: usize = 16;

/// The number of limbs between two slots up to which they are cleared together with the slots.
const SMALL_GAP: usize = 8;

impl Slots<'_, '_> {
    /// Generates code that records that the program has requested what only the slow path can do. Does
    /// nothing outside the fast path.
    pub(in crate::code) fn note_request(&mut self) {
        if let Some(fast_path) = &self.fast_path {
            let bailout = fast_path.bailout;
            let one = self.imm(1);
            self.b.def_var(bailout, one);
        }
    }

    /// Generates code that, if `condition` is not zero, writes the `exported` slots to the state array and
    /// ends the function with `code`. Returns true if control can reach the code after it.
    pub(super) fn end_if(&mut self, condition: Value, code: u64, exported: &[bool]) -> bool {
        let known = self.known_value(condition);
        if known == Some(0) {
            return true;
        }
        let (stop, next) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(stop);
        self.branch_on(condition, stop, next, &[]);
        self.continue_in(stop);
        self.export(exported);
        let port = self.fast_path_mut().port;
        let port = self.b.use_var(port);
        self.exit_with(code, Some(port));
        if known.is_none() {
            self.continue_in(next);
        }
        known.is_none()
    }

    /// Generates code that writes the slots that `exported` marks to the state array, for the switch.
    pub(super) fn export(&mut self, exported: &[bool]) {
        let program = self.program;
        for i in (0..program.slots.len()).filter(|&i| exported[i]) {
            let slot = SlotId(i as u32);
            if matches!(self.places[i], Place::Values { .. }) {
                let value = self.read(slot);
                self.store_state(slot, &value);
            } else if self.places[i] != Place::Memory {
                let first = self.layout.offset(slot);
                let limbs = self.layout.slot_limbs(slot);
                self.clear_state(first..first + limbs);
            }
        }
        for header in &program.headers {
            self.export_from_packet(header, exported);
        }
    }

    fn export_from_packet(&mut self, header: &ir::Header, exported: &[bool]) {
        let lies_there = |g: &Self, slot: SlotId| {
            exported[slot.index()] && g.places[slot.index()] == Place::InPacket
        };
        if !header.fields.iter().any(|f| lies_there(self, f.slot)) {
            return;
        }
        let valid = self.read(header.valid).low();
        let (there, after): (Block, Block) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(valid, there, &[], after, &[]);
        self.continue_in(there);
        for field in &header.fields {
            let home = self.facts().headers.home(field.slot);
            if let Some(home) = home.filter(|_| lies_there(self, field.slot)) {
                let value = self.field_at_source(home, field.slot);
                self.store_state(field.slot, &value);
            }
        }
        self.b.ins().jump(after, &[]);
        self.continue_in(after);
    }

    /// Generates code that clears the slots that live in memory if an earlier packet has used them. The few limbs
    /// between these slots, in which nothing is kept, are cleared as well.
    pub(super) fn clear_memory(&mut self) {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for i in (0..self.places.len()).filter(|&i| self.places[i] == Place::Memory) {
            let slot = SlotId(i as u32);
            let at = self.layout.offset(slot);
            let end = at + self.layout.slot_limbs(slot);
            match runs.last_mut() {
                Some(run) if at <= run.end + SMALL_GAP => run.end = end,
                _ => runs.push(at..end),
            }
        }
        if runs.is_empty() {
            return;
        }
        let used = self.frame_word(offset_of!(Frame, memory_used));
        let (clear, after) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(used, clear, &[], after, &[]);
        self.continue_in(clear);
        for run in runs {
            self.clear_state(run);
        }
        let zero = self.imm(0);
        self.store_frame(offset_of!(Frame, memory_used), zero);
        self.b.ins().jump(after, &[]);
        self.continue_in(after);
    }
}

impl Memory<'_, '_> {
    /// Generates code that clears the given limbs of the state array.
    fn clear_state(&mut self, limbs: Range<usize>) {
        let offset = 8 * limbs.start as i64;
        let first = self.words.b.ins().iadd_imm_u(self.state, offset);
        self.clear_limbs(first, limbs.len());
    }

    fn store_state(&mut self, slot: SlotId, value: &Wide) {
        for (i, &limb) in value.limbs.iter().enumerate() {
            self.store_limb(slot, i, limb);
        }
    }

    /// Generates code that records, on the fast path, that slots in the state array are in use. Generates
    /// nothing if `limbs`, which are being written there, are all the constant zero.
    pub(in crate::code) fn note_memory(&mut self, limbs: &[Value]) {
        let is_zero = |limb: &Value| self.known_value(*limb) == Some(0);
        if self.burst.is_some() && !limbs.iter().all(is_zero) {
            let one = self.imm(1);
            self.store_frame(offset_of!(Frame, memory_used), one);
        }
    }

    /// Generates the end of a packet's run with the exit code `code` and the output port `port`. The function
    /// then continues with the next packet or, if this one needs something that the function cannot do,
    /// returns.
    pub(in crate::code) fn exit_with(&mut self, code: u64, port: Option<Value>) {
        let mut result = self.imm(code);
        if let Some(port) = port {
            let port = self.shl_imm(port, 8);
            result = self.b.ins().bor(result, port);
        }
        let burst = self.burst.expect("only on the fast path");
        let at = offset_of!(Arrival, code) as i32;
        (self.b.ins()).store(MemFlagsData::trusted(), result, burst.arrival, at);
        if code <= exit::SENT_MOVED || code > exit::DROPPED {
            self.next_packet();
        } else {
            self.b.ins().return_(&[burst.arrival]);
        }
    }

    /// Generates code that ends a packet's run with the exit code `code` if `condition` holds.
    pub(in crate::code) fn exit_if(&mut self, condition: Value, code: u64) {
        let (stop, next) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(condition, stop, &[], next, &[]);
        self.continue_in(stop);
        self.exit_with(code, None);
        self.continue_in(next);
    }
}

impl Words<'_> {
    /// Generates code that clears `limbs` limbs of memory from the address `first` on.
    fn clear_limbs(&mut self, first: Value, limbs: usize) {
        let zero = self.imm(0);
        self.in_pieces([first], limbs, |g, [at], offset, piece| {
            let zero = match piece {
                I64 => zero,
                _ => g.b.ins().splat(piece, zero),
            };
            g.b.ins().store(MemFlagsData::trusted(), zero, at, offset);
        });
    }

    /// Generates code that copies `limbs` limbs of memory from the address `from` to the address `to`.
    pub(in crate::code) fn copy_limbs(&mut self, from: Value, to: Value, limbs: usize) {
        self.in_pieces([from, to], limbs, |g, [from, to], offset, piece| {
            let flags = MemFlagsData::trusted();
            let value = g.b.ins().load(piece, flags, from, offset);
            g.b.ins().store(flags, value, to, offset);
        });
    }

    /// Calls `each` to generate code for every piece, of one or two limbs, of memory of `limbs` limbs at each
    /// of the addresses `first`. It gets the addresses, the piece's offset from them in bytes, and the
    /// piece's type. For many limbs the code is a loop.
    fn in_pieces<const N: usize>(
        &mut self,
        first: [Value; N],
        limbs: usize,
        each: impl Fn(&mut Self, [Value; N], i32, Type),
    ) {
        if limbs <= INLINE_LIMBS {
            return (0..limbs).for_each(|i| each(self, first, 8 * i as i32, I64));
        }
        // A turn of the loop takes eight limbs; the rest is done behind it.
        let turn = 8;
        let (turns, rest) = (limbs / turn, limbs % turn);
        let last = (self.b.ins()).iadd_imm_u(first[0], (8 * turn * turns) as i64);
        let (again, after) = (self.b.create_block(), self.b.create_block());
        let at = first.map(|_| self.b.append_block_param(again, I64));
        self.b.ins().jump(again, &first.map(BlockArg::Value));
        self.b.switch_to_block(again);
        for i in 0..turn / 2 {
            each(self, at, 16 * i as i32, I64X2);
        }
        let next = at.map(|at| self.b.ins().iadd_imm_u(at, 8 * turn as i64));
        let more = self.b.ins().icmp(IntCC::NotEqual, next[0], last);
        let args = next.map(BlockArg::Value);
        self.b.ins().brif(more, again, &args, after, &[]);
        self.b.seal_block(again);
        self.continue_in(after);
        for i in 0..rest {
            each(self, next, 8 * i as i32, I64);
        }
    }
}
