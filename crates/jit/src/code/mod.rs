//! Code generation for one function: one part of the pipeline, or all of it for a packet on the fast path ([`fast_path`]).
//!
//! A slot is a value, not memory: [`Place`] says where each one lives in this function. A slot that the other part or the
//! engine may read is also written to the state array at every assignment, which costs a store but keeps nothing alive
//! until the end of the function.
//!
//! [`Gen`] is the state of generation; its methods are spread over the files of this module by subject: [`wide`]
//! (operators), [`expr`], [`stmt`] (statements), [`table`] and [`in_place`] (lookups), [`indexed`] (elements of stacks), [`parser`], [`bytes`] (packet bytes to values and
//! back), [`hash`].

mod bytes;
mod expr;
mod fast_path;
mod hash;
mod in_place;
mod indexed;
mod parser;
mod prefetch;
mod replicas;
mod stmt;
mod table;
mod wide;

use crate::analysis::{Analysis, FastPathAnalysis};
use crate::frame::{Arrival, Frame, drop_code, exit};
use crate::shims::Shim;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{
    Block, FuncRef, Function, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind,
    Value,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use engine::DropReason;
use ir::{Bits, BlockId, LabelId, Layout, MAX_STEPS, Pipeline, Program, SlotId};
use parser::ParserBlocks;
use std::mem::offset_of;
use wide::{Limbs, Wide, limbs_for};

/// A function does not become larger than about this many instructions. Real programs have some thousands; the limit is
/// for programs that were made to explode.
const MAX_INSTRUCTIONS: usize = 1 << 20;

/// Which part of the pipeline a function runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryPoint {
    /// The first pipeline.
    Ingress,
    /// The first parser only.
    Parse,
    /// The second pipeline.
    Egress,
    /// All of them, for a packet on the fast path. If the program is specialised, only for the outcomes of the parser that it is
    /// specialised for.
    FastPath,
    /// The same for all outcomes, if the program is specialised.
    Unspecialised,
    /// Parser and ingress as they probably go, to touch the large tables that a packet will need; changes nothing but values
    /// in the state array.
    Prefetch,
}

impl EntryPoint {
    /// All of them.
    pub const ALL: [EntryPoint; 6] = [
        EntryPoint::Ingress,
        EntryPoint::Parse,
        EntryPoint::Egress,
        EntryPoint::FastPath,
        EntryPoint::Unspecialised,
        EntryPoint::Prefetch,
    ];

    /// Returns true if the function is of use for the analysed program.
    pub fn is_useful(self, analysis: &Analysis<'_>) -> bool {
        let fast_path = analysis.fast_path.as_ref();
        match self {
            EntryPoint::FastPath => fast_path.is_some(),
            EntryPoint::Unspecialised => fast_path.is_some_and(|f| f.specialised.is_some()),
            EntryPoint::Prefetch => !analysis.prefetched.tables.is_empty(),
            EntryPoint::Ingress | EntryPoint::Parse | EntryPoint::Egress => true,
        }
    }

    /// Returns true if the function runs a packet through both halves and reports where the packet went.
    pub fn is_fast_path(self) -> bool {
        matches!(self, EntryPoint::FastPath | EntryPoint::Unspecialised)
    }

    /// Returns true if the function processes several packets in a loop. Its parameters then are, besides the frame,
    /// the address of the first [`Arrival`] and the address behind the last.
    pub fn takes_packets(self) -> bool {
        self.is_fast_path() || self == EntryPoint::Prefetch
    }

    /// Returns the function's name, as profilers show it.
    pub fn symbol(self) -> &'static str {
        match self {
            EntryPoint::Ingress => "ingress",
            EntryPoint::Parse => "parse",
            EntryPoint::Egress => "egress",
            EntryPoint::FastPath => "fast_path",
            EntryPoint::Unspecialised => "unspecialised",
            EntryPoint::Prefetch => "prefetch",
        }
    }
}

/// The place of a slot in one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The function does not touch it, or writes what nobody reads.
    Unused,
    /// Nowhere: it is always zero.
    Zero,
    /// In the packet, where its header was extracted.
    InPacket,
    /// The same, with assignments written there; its header is valid.
    EditedInPacket,
    /// In the state array, and nobody writes it while the function runs.
    ReadOnly,
    /// In the state array.
    Memory,
    /// In consecutive variables from this one, one per limb.
    Values {
        /// The variable of the least significant limb.
        first: Variable,
        /// Assignments also go to the state array.
        exported: bool,
    },
}

/// An enclosing block or loop.
struct Label {
    id: LabelId,
    /// The target of a break.
    after: Block,
    /// True if some break goes there.
    used: bool,
}

/// The loop over packets of a function that runs on several.
#[derive(Clone, Copy)]
struct Burst {
    /// The [`Arrival`] of the packet.
    arrival: Value,
    /// The end of the arrivals.
    end: Value,
    /// Begins with the arrival that it is given.
    first: Block,
    /// Goes on with the next.
    next: Block,
}

/// The state of generation of one function.
pub(crate) struct Gen<'a, 'f> {
    pub(crate) b: FunctionBuilder<'f>,
    analysis: &'a Analysis<'a>,
    program: &'a Program,
    layout: &'a Layout,
    entry_point: EntryPoint,
    places: Vec<Place>,
    /// Functions of [`Shim`], by its number.
    shims: &'a [FuncRef],
    frame: Value,
    state: Value,
    packet: Value,
    packet_len: Value,
    /// In a function that runs on several packets.
    burst: Option<Burst>,
    /// Bytes of the packet that the parser has passed.
    cursor: Variable,
    steps: Variable,
    /// The address of the next emitted byte.
    emit_at: Variable,
    /// Nothing may be written behind what is emitted.
    emits_exactly: bool,
    labels: Vec<Label>,
    /// End of the current control, where `exit` goes.
    control_end: Block,
    control_end_used: bool,
    /// Stops it: the packet has spent its steps.
    step_limit: Option<Block>,
    /// Stops it: an assertion failed.
    assert_failed: Option<Block>,
    /// Memory for values that pass through functions; live within one statement only.
    scratch: StackSlot,
    scratch_used: u32,
    scratch_size: u32,
    /// Loops around the current statement.
    loop_depth: u32,
    /// Choices around the current statement that depend on the packet.
    branches: u32,
    /// A sum of bytes that is known here.
    summed: Option<hash::Summed>,
    /// While the parser is generated.
    parser_blocks: Option<ParserBlocks>,
    /// In the function of both halves.
    fast_path: Option<fast_path::FastPath>,
    /// [`MAX_INSTRUCTIONS`] was reached, and nothing has been generated since.
    too_large: bool,
}

/// The inputs of [`generate`].
pub(crate) struct Input<'a> {
    /// The program.
    pub analysis: &'a Analysis<'a>,
    /// Which function.
    pub entry_point: EntryPoint,
    /// Functions of [`Shim`] as imported into the function, by number.
    pub shims: &'a [FuncRef],
}

/// Generates the code of `function`, whose signature takes the frame and returns nothing. Returns false if the code
/// would become too large.
pub(crate) fn generate(
    input: &Input<'_>,
    function: &mut Function,
    context: &mut FunctionBuilderContext,
    frontend: cranelift_codegen::isa::TargetFrontendConfig,
) -> bool {
    let mut b = FunctionBuilder::new(function, context);
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
    let scratch = b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 8, 3));
    let (cursor, steps, emit_at) = (b.declare_var(I64), b.declare_var(I64), b.declare_var(I64));
    let control_end = b.create_block();
    let mut g = Gen {
        b,
        analysis: input.analysis,
        program: input.analysis.program,
        layout: &input.analysis.layout,
        entry_point: input.entry_point,
        places: Vec::new(),
        shims: input.shims,
        frame,
        state,
        packet,
        packet_len,
        burst,
        cursor,
        steps,
        emit_at,
        emits_exactly: false,
        labels: Vec::new(),
        control_end,
        control_end_used: false,
        step_limit: None,
        assert_failed: None,
        scratch,
        scratch_used: 0,
        scratch_size: 0,
        loop_depth: 0,
        branches: 0,
        summed: None,
        parser_blocks: None,
        fast_path: None,
        too_large: false,
    };
    match input.entry_point {
        EntryPoint::FastPath | EntryPoint::Unspecialised => g.fast_path(),
        EntryPoint::Prefetch => g.prefetch(),
        _ => {
            g.place_slots();
            g.part();
        }
    }
    g.finish();
    let (scratch, size, too_large) = (g.scratch, g.scratch_size, g.too_large);
    g.b.seal_all_blocks();
    g.b.finalize(frontend);
    function.sized_stack_slots[scratch].size = size;
    !too_large
}

/// Begins the loop over the packets that the caller passed to the function.
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

/// Returns the flags of loads from memory that does not change while the function runs and may be read at any point of
/// it.
fn constant_memory() -> MemFlagsData {
    MemFlagsData::trusted().with_readonly().with_can_move()
}

impl Gen<'_, '_> {
    fn place_slots(&mut self) {
        let (program, analysis) = (self.program, self.analysis);
        let usage = match self.entry_point {
            EntryPoint::Ingress => &analysis.ingress,
            EntryPoint::Parse => &analysis.parser,
            _ => &analysis.egress,
        };
        let is_egress = self.entry_point == EntryPoint::Egress;
        let zero = self.imm(0);
        for i in 0..program.slots.len() {
            let exported = analysis.shared[i] || !is_egress && analysis.egress.reads[i];
            let imported = analysis.shared[i] || is_egress;
            let place = match (usage.reads[i], usage.writes[i]) {
                (false, false) => Place::Unused,
                (false, true) if !exported => Place::Unused,
                (true, false) => Place::ReadOnly,
                _ if analysis.in_memory[i] => Place::Memory,
                _ => self.declare_values(SlotId(i as u32), imported, exported, zero),
            };
            self.places.push(place);
        }
        for variable in [self.cursor, self.steps, self.emit_at] {
            self.b.def_var(variable, zero);
        }
    }

    fn declare_values(&mut self, slot: SlotId, import: bool, exported: bool, zero: Value) -> Place {
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

    fn load_state(&mut self, slot: SlotId, limb: usize, flags: MemFlagsData) -> Value {
        let offset = 8 * (self.layout.offset(slot) + limb);
        self.b.ins().load(I64, flags, self.state, offset as i32)
    }

    fn width(&self, slot: SlotId) -> u32 {
        self.program.slots[slot.index()].width
    }

    /// Returns the present value of a slot.
    fn read(&mut self, slot: SlotId) -> Wide {
        if matches!(
            self.places[slot.index()],
            Place::InPacket | Place::EditedInPacket
        ) {
            return self.reload_from_packet(slot);
        }
        let limbs: Limbs = (0..self.layout.slot_limbs(slot))
            .map(|i| match self.places[slot.index()] {
                Place::Zero | Place::InPacket | Place::EditedInPacket => self.imm(0),
                Place::Unused | Place::ReadOnly => self.load_state(slot, i, constant_memory()),
                Place::Memory => self.load_state(slot, i, MemFlagsData::trusted()),
                Place::Values { first, .. } => self.b.use_var(nth(first, i)),
            })
            .collect();
        Wide {
            width: self.width(slot),
            limbs,
        }
    }

    /// Assigns a value to a slot, and records the assignment for the fast path.
    fn write(&mut self, slot: SlotId, value: &Wide) {
        self.note_assignment(slot);
        self.put(slot, value);
    }

    /// Returns true if a value written to the slot is stored anywhere.
    fn keeps(&self, slot: SlotId) -> bool {
        !matches!(self.places[slot.index()], Place::Unused | Place::InPacket)
    }

    /// Stores a value at the place where the slot lives.
    fn put(&mut self, slot: SlotId, value: &Wide) {
        debug_assert_eq!(value.width, self.width(slot));
        let place = self.places[slot.index()];
        if place == Place::EditedInPacket {
            return self.store_at_source(slot, value);
        }
        if place == Place::Memory {
            self.note_memory(&value.limbs);
        }
        for (i, &limb) in value.limbs.iter().enumerate() {
            let to_state = match place {
                Place::Values { first, exported } => {
                    self.b.def_var(nth(first, i), limb);
                    exported
                }
                Place::Memory => true,
                Place::Unused
                | Place::ReadOnly
                | Place::Zero
                | Place::InPacket
                | Place::EditedInPacket => false,
            };
            if to_state {
                let offset = 8 * (self.layout.offset(slot) + i);
                (self.b.ins()).store(MemFlagsData::trusted(), limb, self.state, offset as i32);
            }
        }
    }

    /// Assigns zero to a slot.
    fn clear(&mut self, slot: SlotId) {
        if self.places[slot.index()] == Place::EditedInPacket {
            // Its header becomes invalid.
            return;
        }
        if let Place::Values {
            first,
            exported: false,
        } = self.places[slot.index()]
        {
            // The same zero: then it is one value where paths meet.
            let mut limbs = 0..self.layout.slot_limbs(slot);
            if limbs.all(|i| {
                let limb = self.b.use_var(nth(first, i));
                self.known_value(limb) == Some(0)
            }) {
                return;
            }
        }
        let zero = self.constant(&ir::Bits::zero(self.width(slot)));
        self.put(slot, &zero);
    }

    /// Makes a header valid or invalid, without changing its fields.
    fn put_validity(&mut self, header: ir::HeaderId, valid: bool) {
        let value = self.small_constant(1, valid.into());
        self.put(self.program.headers[header.index()].valid, &value);
    }

    /// Stores a word into the frame, `offset` bytes from its beginning.
    fn store_frame(&mut self, offset: usize, value: Value) {
        (self.b.ins()).store(MemFlagsData::trusted(), value, self.frame, offset as i32);
    }

    /// Generates the call of a shim, a Rust function for generated code. Returns its first result, or `None` if it has
    /// no result.
    fn call(&mut self, shim: Shim, args: &[Value]) -> Option<Value> {
        self.call_for_all(shim, args).first().copied()
    }

    /// Generates the call of a shim, a Rust function for generated code. Returns all its results.
    fn call_for_all(&mut self, shim: Shim, args: &[Value]) -> &[Value] {
        if self.burst.is_some() && shim.reads_packet() {
            self.store_frame(offset_of!(Frame, packet), self.packet);
            self.store_frame(offset_of!(Frame, packet_len), self.packet_len);
        }
        let inst = self.b.ins().call(self.shims[shim as usize], args);
        self.b.inst_results(inst)
    }

    /// Returns the address of scratch memory for `limbs` limbs, usable within the current statement.
    fn scratch(&mut self, limbs: usize) -> Value {
        let offset = self.scratch_used;
        self.scratch_used += 8 * limbs as u32;
        self.scratch_size = self.scratch_size.max(self.scratch_used);
        self.b.ins().stack_addr(I64, self.scratch, offset as i32)
    }

    /// Writes values into scratch memory, and returns its address and the total number of limbs.
    fn spill_all(&mut self, values: &[Wide]) -> (Value, Value) {
        let limbs = values.iter().map(|value| value.limbs.len() as u64).sum();
        let at = self.spill(&values.iter().collect::<Vec<_>>());
        (at, self.imm(limbs))
    }

    /// Writes values one after the other into scratch memory, each in whole limbs, and returns its address.
    fn spill(&mut self, values: &[&Wide]) -> Value {
        let count = values.iter().map(|v| v.limbs.len()).sum();
        let at = self.scratch(count);
        let limbs = values.iter().flat_map(|v| &v.limbs);
        for (i, &limb) in limbs.enumerate() {
            (self.b.ins()).store(MemFlagsData::trusted(), limb, at, 8 * i as i32);
        }
        at
    }

    /// Loads a value of `width` bits from the address `at`, where the bits above the width are zero.
    fn reload(&mut self, at: Value, width: u32) -> Wide {
        let limbs = (0..limbs_for(width))
            .map(|i| {
                self.b
                    .ins()
                    .load(I64, MemFlagsData::trusted(), at, 8 * i as i32)
            })
            .collect();
        Wide { width, limbs }
    }

    /// Continues generating code in the block `next`, which only the current block jumps to.
    fn continue_in(&mut self, next: Block) {
        self.b.switch_to_block(next);
        self.b.seal_block(next);
    }

    /// Generates code that uses up one of the packet's steps, and leaves the function if none is left.
    fn spend_step(&mut self) {
        let stop = match self.step_limit {
            Some(block) => block,
            None => {
                let block = self.b.create_block();
                self.b.set_cold_block(block);
                *self.step_limit.insert(block)
            }
        };
        let steps = self.b.use_var(self.steps);
        let one = self.imm(1);
        let steps = self.b.ins().iadd(steps, one);
        self.b.def_var(self.steps, steps);
        let limit = self.imm(MAX_STEPS.into());
        let over = (self.b.ins()).icmp(IntCC::UnsignedGreaterThan, steps, limit);
        let next = self.b.create_block();
        self.b.ins().brif(over, stop, &[], next, &[]);
        self.continue_in(next);
    }

    fn part(&mut self) {
        let program = self.program;
        match self.entry_point {
            EntryPoint::Parse => self.first_parser(),
            EntryPoint::Ingress | EntryPoint::Egress => {
                for (id, stage) in program
                    .architecture
                    .description()
                    .blocks_of(self.pipeline())
                {
                    self.block_of_pipeline(id, stage.is_deparser());
                }
            }
            EntryPoint::FastPath | EntryPoint::Unspecialised | EntryPoint::Prefetch => {}
        }
        self.b.ins().return_(&[]);
    }

    /// Generates a block of the pipeline, and continues behind it.
    fn block_of_pipeline(&mut self, id: BlockId, emits: bool) {
        let program = self.program;
        match &program.blocks[id.index()] {
            ir::Block::Parser(start) => self.parser(*start),
            ir::Block::Control(body) if emits => {
                self.begin_emitting();
                self.control(body);
                self.store_emitted_len();
            }
            ir::Block::Control(body) => {
                self.control(body);
                self.stop_if_dropped(id);
            }
        }
    }

    /// Returns the pipeline whose code is being generated.
    fn pipeline(&self) -> Pipeline {
        match (self.entry_point, &self.fast_path) {
            (EntryPoint::Egress, _) => Pipeline::EGRESS,
            (_, Some(fast_path)) => fast_path.half(),
            _ => Pipeline::INGRESS,
        }
    }

    /// Makes emitted bytes go to the beginning of the frame's buffer.
    fn begin_emitting(&mut self) {
        let buffer = offset_of!(Frame, emitted) as i32;
        let at = (self.b.ins()).load(I64, MemFlagsData::trusted(), self.frame, buffer);
        self.b.def_var(self.emit_at, at);
    }

    /// Generates code that ends the function if `block` left the value that means "drop" in the slot that decides.
    fn stop_if_dropped(&mut self, block: BlockId) {
        let Some((slot, value)) = self.program.architecture.drops_after(block) else {
            return;
        };
        let left = self.read(slot);
        let drops = self.constant(&Bits::from_u64(left.width, value));
        let dropped = self.equal(&left, &drops);
        let (stop, next) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(dropped, stop, &[], next, &[]);
        self.continue_in(stop);
        self.b.ins().return_(&[]);
        self.continue_in(next);
    }

    fn store_emitted_len(&mut self) {
        let buffer = offset_of!(Frame, emitted) as i32;
        let start = (self.b.ins()).load(I64, MemFlagsData::trusted(), self.frame, buffer);
        let end = self.b.use_var(self.emit_at);
        let len = self.b.ins().isub(end, start);
        self.store_frame(offset_of!(Frame, emitted_len), len);
    }

    /// Generates a control; an `exit` statement in `body` jumps to the end of this code.
    fn control(&mut self, body: &[ir::Stmt]) {
        self.control_end = self.b.create_block();
        self.control_end_used = false;
        let falls_through = self.stmts(body);
        let end = self.control_end;
        if !falls_through && !self.control_end_used {
            // An endless loop: nothing gets here, but code may follow.
            self.continue_in(end);
            return;
        }
        if falls_through {
            self.b.ins().jump(end, &[]);
        }
        self.continue_in(end);
    }

    /// Generates the blocks in which the function stops early: at the step limit, and after a failed assertion.
    fn finish(&mut self) {
        for (block, code) in [
            (self.step_limit, drop_code(DropReason::StepLimit)),
            (self.assert_failed, drop_code(DropReason::AssertFailed)),
        ] {
            if let Some(block) = block {
                self.b.switch_to_block(block);
                if self.entry_point == EntryPoint::Prefetch {
                    self.next_packet();
                    continue;
                }
                if self.entry_point.is_fast_path() {
                    self.exit_with(exit::DROPPED + code, None);
                    continue;
                }
                let code = self.imm(code);
                self.store_frame(offset_of!(Frame, drop), code);
                self.b.ins().return_(&[]);
            }
        }
        self.end_burst();
    }

    /// Generates a jump to the end of the loop over packets, which continues with the next packet.
    fn next_packet(&mut self) {
        if let Some(burst) = self.burst {
            self.b.ins().jump(burst.next, &[]);
        }
    }

    /// Ends the loop over the packets: continues with the next packet, or returns from the function behind the last.
    fn end_burst(&mut self) {
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
}

/// Returns the variable `i` places after `first`, which holds limb `i` of a slot: a slot's variables are declared
/// together.
fn nth(first: Variable, i: usize) -> Variable {
    Variable::from_u32(first.as_u32() + i as u32)
}

/// Returns how many bytes a deparser may write without reserving room.
pub(crate) fn emit_capacity(analysis: &Analysis<'_>) -> usize {
    analysis.emit_bytes + bytes::Packer::SLACK as usize
}
