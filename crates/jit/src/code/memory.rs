//! The memory that a function works on: the frame, the state array, the packet and its cursors, scratch memory, and calls of shims.
//!
//! It does not know where slots live.

use super::slots::Place;
use super::wide::{Wide, Words};
use super::{EntryPoint, Input};
use crate::analysis::Analysis;
use crate::frame::{Arrival, Frame};
use crate::shims::Shim;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{
    Block, FuncRef, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Value,
};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::{FunctionBuilder, Variable};
use ir::{Layout, Program, SlotId};
use std::mem::offset_of;

/// The loop over packets, in a function that runs on several.
#[derive(Clone, Copy)]
pub(super) struct Burst {
    /// The [`Arrival`] of the packet.
    pub(super) arrival: Value,
    /// The address after the last arrival.
    pub(super) end: Value,
    /// The block that begins with the packet whose arrival is its parameter.
    pub(super) first: Block,
    /// The block that goes on with the next packet.
    pub(super) next: Block,
}

/// What the function works on: the program, which nothing changes, and the memory of the packet that it processes. It
/// does not know where slots live.
pub(crate) struct Memory<'a, 'f> {
    pub(super) words: Words<'f>,
    pub(super) analysis: &'a Analysis<'a>,
    pub(super) program: &'a Program,
    pub(super) layout: &'a Layout,
    pub(super) entry_point: EntryPoint,
    /// The functions of [`Shim`] as imported, by number.
    shims: &'a [FuncRef],
    frame: Value,
    pub(super) state: Value,
    pub(super) packet: Value,
    pub(super) packet_len: Value,
    /// The loop over packets, in a function that runs on several.
    pub(super) burst: Option<Burst>,
    /// Number of bytes of the packet that the parser has passed.
    pub(super) cursor: Variable,
    pub(super) steps: Variable,
    /// The address of the next emitted byte.
    pub(super) emit_at: Variable,
    /// Memory on the stack for values that are passed to called functions; used within one statement only.
    scratch: StackSlot,
    /// Number of bytes of it that the current statement uses.
    pub(super) scratch_used: u32,
    scratch_size: u32,
}

impl<'a, 'f> Memory<'a, 'f> {
    /// Makes the state of generation for a function, with the code that loads the addresses of the state
    /// array and the packet; in a function that runs on several packets, begins the loop over them.
    pub(super) fn new(input: &Input<'a>, mut b: FunctionBuilder<'f>) -> Memory<'a, 'f> {
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        b.seal_block(entry);
        let frame = b.block_params(entry)[0];
        let word = |b: &mut FunctionBuilder<'_>, base: Value, offset: usize| {
            b.ins().load(I64, constant_memory(), base, offset as i32)
        };
        let state = word(&mut b, frame, offset_of!(Frame, state));
        let burst = input
            .entry_point
            .takes_packets()
            .then(|| begin_burst(&mut b, entry));
        let (packet, packet_len) = match &burst {
            Some(burst) => (
                word(&mut b, burst.arrival, offset_of!(Arrival, packet)),
                word(&mut b, burst.arrival, offset_of!(Arrival, len)),
            ),
            None => (
                word(&mut b, frame, offset_of!(Frame, packet)),
                word(&mut b, frame, offset_of!(Frame, packet_len)),
            ),
        };
        let scratch =
            b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 8, 3));
        let (cursor, steps, emit_at) = (b.declare_var(I64), b.declare_var(I64), b.declare_var(I64));
        Memory {
            words: Words { b },
            analysis: input.analysis,
            program: input.analysis.program,
            layout: &input.analysis.layout,
            entry_point: input.entry_point,
            shims: input.shims,
            frame,
            state,
            packet,
            packet_len,
            burst,
            cursor,
            steps,
            emit_at,
            scratch,
            scratch_used: 0,
            scratch_size: 0,
        }
    }

    /// Finishes the function. Returns its scratch memory on the stack, and the size in bytes that it has to
    /// have.
    pub(super) fn finish(self, frontend: TargetFrontendConfig) -> (StackSlot, u32) {
        let mut b = self.words.b;
        b.seal_all_blocks();
        b.finalize(frontend);
        (self.scratch, self.scratch_size)
    }
}

impl Memory<'_, '_> {
    pub(super) fn declare_values(
        &mut self,
        slot: SlotId,
        import: bool,
        exported: bool,
        zero: Value,
    ) -> Place {
        let variables: Vec<Variable> = (0..self.layout.slot_limbs(slot))
            .map(|_| self.b.declare_var(I64))
            .collect();
        for (i, &variable) in variables.iter().enumerate() {
            // A load whose value nobody uses disappears.
            let value = if import {
                self.load_state(slot, i, MemFlagsData::trusted())
            } else {
                zero
            };
            self.b.def_var(variable, value);
        }
        Place::Values {
            first: variables[0],
            exported,
        }
    }

    pub(super) fn load_state(&mut self, slot: SlotId, limb: usize, flags: MemFlagsData) -> Value {
        let offset = 8 * (self.layout.offset(slot) + limb);
        self.words
            .b
            .ins()
            .load(I64, flags, self.state, offset as i32)
    }

    pub(super) fn store_limb(&mut self, slot: SlotId, limb: usize, value: Value) {
        let offset = 8 * (self.layout.offset(slot) + limb);
        let flags = MemFlagsData::trusted();
        (self.words.b.ins()).store(flags, value, self.state, offset as i32);
    }

    /// Generates a word cut or extended with zeros to the width of the slot.
    pub(super) fn word_of(&mut self, slot: SlotId, word: Value) -> Wide {
        let word = Wide::word(64, word);
        let width = self.width(slot);
        self.resize(&word, width)
    }

    pub(super) fn width(&self, slot: SlotId) -> u32 {
        self.program.slots[slot.index()].width
    }

    /// Generates a store of a word into the frame, `offset` bytes from its beginning.
    pub(super) fn store_frame(&mut self, offset: usize, value: Value) {
        (self.words.b.ins()).store(MemFlagsData::trusted(), value, self.frame, offset as i32);
    }

    /// Generates the call of a shim, a Rust function for generated code, with the frame as first argument. Returns its
    /// first result, or `None` if it has no result.
    pub(super) fn call(&mut self, shim: Shim, args: &[Value]) -> Option<Value> {
        self.call_for_all(shim, args).first().copied()
    }

    /// Generates the call of a shim with the frame as first argument. Returns all its results.
    pub(super) fn call_for_all(&mut self, shim: Shim, args: &[Value]) -> &[Value] {
        if self.burst.is_some() && shim.reads_packet() {
            self.store_frame(offset_of!(Frame, packet), self.packet);
            self.store_frame(offset_of!(Frame, packet_len), self.packet_len);
        }
        self.call_without_frame(shim, &[&[self.frame], args].concat())
    }

    /// Generates the call of a shim. Returns all its results.
    pub(super) fn call_without_frame(&mut self, shim: Shim, args: &[Value]) -> &[Value] {
        let inst = self.words.b.ins().call(self.shims[shim as usize], args);
        self.b.inst_results(inst)
    }

    /// Generates code that counts one more step of the packet, and returns the number of steps so far.
    pub(super) fn next_step(&mut self) -> Value {
        let steps = self.words.b.use_var(self.steps);
        let one = self.imm(1);
        let steps = self.b.ins().iadd(steps, one);
        self.set_steps(steps);
        steps
    }

    pub(super) fn set_steps(&mut self, value: Value) {
        self.words.b.def_var(self.steps, value);
    }

    pub(super) fn cursor(&mut self) -> Value {
        self.words.b.use_var(self.cursor)
    }

    pub(super) fn set_cursor(&mut self, value: Value) {
        self.words.b.def_var(self.cursor, value);
    }

    pub(super) fn emit_at(&mut self) -> Value {
        self.words.b.use_var(self.emit_at)
    }

    pub(super) fn set_emit_at(&mut self, value: Value) {
        self.words.b.def_var(self.emit_at, value);
    }

    /// Generates the address of `limbs` limbs of scratch memory, usable within the current statement.
    pub(super) fn scratch(&mut self, limbs: usize) -> Value {
        let offset = self.scratch_used;
        self.scratch_used += 8 * limbs as u32;
        self.scratch_size = self.scratch_size.max(self.scratch_used);
        self.words
            .b
            .ins()
            .stack_addr(I64, self.scratch, offset as i32)
    }

    /// Generates code that writes values into scratch memory, and returns its address and the total number of
    /// limbs.
    pub(super) fn spill_all(&mut self, values: &[Wide]) -> (Value, Value) {
        let limbs = values.iter().map(|value| value.limbs.len() as u64).sum();
        let at = self.spill(&values.iter().collect::<Vec<_>>());
        (at, self.imm(limbs))
    }

    /// Generates code that writes values one after the other into scratch memory, each in whole limbs, and
    /// returns its address.
    pub(super) fn spill(&mut self, values: &[&Wide]) -> Value {
        let count = values.iter().map(|v| v.limbs.len()).sum();
        let at = self.scratch(count);
        let limbs = values.iter().flat_map(|v| &v.limbs);
        for (i, &limb) in limbs.enumerate() {
            (self.b.ins()).store(MemFlagsData::trusted(), limb, at, 8 * i as i32);
        }
        at
    }

    /// Generates code that sets the place for emitted bytes to the beginning of the frame's buffer.
    pub(super) fn begin_emitting(&mut self) {
        let at = self.frame_word(offset_of!(Frame, emitted));
        self.set_emit_at(at);
    }

    pub(super) fn store_emitted_len(&mut self) {
        let start = self.frame_word(offset_of!(Frame, emitted));
        let end = self.emit_at();
        let len = self.b.ins().isub(end, start);
        self.store_frame(offset_of!(Frame, emitted_len), len);
    }

    /// Generates a jump to the end of the loop over packets, which continues with the next packet.
    pub(super) fn next_packet(&mut self) {
        if let Some(burst) = self.burst {
            self.b.ins().jump(burst.next, &[]);
        }
    }

    /// Generates the end of the loop over the packets: the function goes on with the next packet, or returns
    /// after the last. Generates nothing in a function that runs on one packet.
    pub(super) fn end_burst(&mut self) {
        let Some(burst) = self.burst else { return };
        self.b.switch_to_block(burst.next);
        let behind = (self.b.ins()).iadd_imm_u(burst.arrival, size_of::<Arrival>() as i64);
        let more = self.b.ins().icmp(IntCC::NotEqual, behind, burst.end);
        let done = self.b.create_block();
        self.b
            .ins()
            .brif(more, burst.first, &[behind.into()], done, &[]);
        self.b.switch_to_block(done);
        match self.entry_point.is_fast_path() {
            true => self.b.ins().return_(&[burst.end]),
            false => self.b.ins().return_(&[]),
        };
    }

    /// Generates a load of the word of the frame that is `offset` bytes from its beginning.
    pub(super) fn frame_word(&mut self, offset: usize) -> Value {
        (self.words.b.ins()).load(I64, MemFlagsData::trusted(), self.frame, offset as i32)
    }

    /// Generates a load of a word of the frame that never changes while the function runs, `offset` bytes
    /// from the frame's beginning. The load disappears if nothing uses its value.
    pub(super) fn arrival_word(&mut self, offset: usize) -> Value {
        (self.words.b.ins()).load(I64, constant_memory(), self.frame, offset as i32)
    }
}

/// Generates the beginning of the loop over the packets that the caller passed to the function.
fn begin_burst(b: &mut FunctionBuilder<'_>, entry: Block) -> Burst {
    let (arrival, end) = (b.block_params(entry)[1], b.block_params(entry)[2]);
    let (first, next) = (b.create_block(), b.create_block());
    b.append_block_param(first, I64);
    b.ins().jump(first, &[arrival.into()]);
    b.switch_to_block(first);
    Burst {
        arrival: b.block_params(first)[0],
        end,
        first,
        next,
    }
}

/// Returns the flags for loads from memory that does not change while the function runs and may be read at
/// any point of it.
pub(super) fn constant_memory() -> MemFlagsData {
    MemFlagsData::trusted().with_readonly().with_can_move()
}
