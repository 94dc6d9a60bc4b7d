//! Code generation for one function: one part of the pipeline, or all of it for a packet on the fast path ([`fast_path`]).
//!
//! A slot is a value, not memory: [`Place`] says where each one lives in this function. A slot that the other part or the
//! engine may read is also written to the state array at every assignment, which costs a store but keeps nothing alive
//! until the end of the function.
//!
//! The state of generation is four types, each around the one before, so that a method's type says what it can touch:
//! [`Words`] is arithmetic and knows no program; [`Memory`] is the frame, the state array and the packet of the function;
//! [`Slots`] adds where each slot lives; [`Gen`] adds the statements around the current one. Their methods are in files by subject:
//! [`wide`] (operators), [`expr`], [`stmt`] (statements), [`table`] and [`in_place`] (lookups), [`indexed`] (elements of
//! stacks), [`parser`], [`bytes`] (packet bytes to values and back), [`hash`].

mod bytes;
mod expr;
mod fast_path;
mod hash;
mod in_place;
mod indexed;
mod memory;
mod parser;
mod prefetch;
mod replicas;
mod slots;
mod stmt;
mod table;
mod wide;

use crate::analysis::{Analysis, FastPathAnalysis};
use crate::frame::{Frame, drop_code, exit};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, FuncRef, Function, InstBuilder};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use engine::DropReason;
use ir::{BlockId, LabelId, MAX_STEPS};
use memory::{Memory, constant_memory};
use parser::ParserBlocks;
use slots::{Place, Slots, nth};
use std::collections::BTreeMap;
use std::mem::offset_of;
use std::ops::{Deref, DerefMut};
use wide::Words;

/// The number of instructions at which the generation of a function is given up. Real programs have some
/// thousands; the limit is for programs that were made to explode.
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
    /// All of them, for a packet on the fast path. If the code is specialised, only for the outcomes of the
    /// parser that it is specialised for.
    FastPath,
    /// The same for all outcomes of the parser, if `FastPath` is specialised.
    Unspecialised,
    /// Parser and ingress as they will probably run, to load the entries of large tables that a packet will
    /// need. Changes nothing but slots in the state array.
    Prefetch,
}

impl EntryPoint {
    /// All entry points, in order of their numbers.
    pub const ALL: [EntryPoint; 6] = [
        EntryPoint::Ingress,
        EntryPoint::Parse,
        EntryPoint::Egress,
        EntryPoint::FastPath,
        EntryPoint::Unspecialised,
        EntryPoint::Prefetch,
    ];

    /// Returns true if the analysed program needs the function.
    pub fn is_useful(self, analysis: &Analysis<'_>) -> bool {
        let fast_path = analysis.fast_path.as_ref();
        match self {
            EntryPoint::FastPath => fast_path.is_some(),
            EntryPoint::Unspecialised => fast_path.is_some_and(|f| f.specialised.is_some()),
            EntryPoint::Prefetch => !analysis.prefetched.tables.is_empty(),
            EntryPoint::Ingress | EntryPoint::Parse | EntryPoint::Egress => true,
        }
    }

    /// Returns true if the function runs a packet through both ingress and egress and says where the packet
    /// goes.
    pub fn is_fast_path(self) -> bool {
        matches!(self, EntryPoint::FastPath | EntryPoint::Unspecialised)
    }

    /// Returns true if the function processes several packets in a loop. Its parameters then are, besides the
    /// frame, the address of the first [`Arrival`] and the address after the last.
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

/// An enclosing block or loop.
struct Label {
    id: LabelId,
    /// The target of a break.
    after: Block,
    /// True if some break jumps there.
    used: bool,
}

/// The state of generation of one function: its statements.
pub(crate) struct Gen<'a, 'f> {
    slots: Slots<'a, 'f>,
    surroundings: Surroundings,
    /// True if no byte may be written after what is emitted.
    emits_exactly: bool,
    /// The blocks in which the function ends early, by the reason for which the packet is dropped.
    early_ends: BTreeMap<DropReason, Block>,
    /// The blocks of the parser, while one is generated.
    parser_blocks: Option<ParserBlocks>,
    /// True once [`MAX_INSTRUCTIONS`] was reached; nothing more is generated then.
    too_large: bool,
}

/// The statements around the current one, within its control.
struct Surroundings {
    /// End of the current control, where `exit` goes.
    end: Block,
    end_used: bool,
    labels: Vec<Label>,
    /// The number of loops around the current statement.
    loops: u32,
    /// The number of choices around the current statement that depend on the packet.
    branches: u32,
    /// The sum of a header's bytes that is known at this point.
    summed: Option<hash::Summed>,
}

impl Surroundings {
    /// Replaces the surroundings by those for code that a packet runs after it has left the control, without
    /// labels. Returns the former ones, which the caller puts back after that code.
    fn aside(&mut self) -> Surroundings {
        let inner = Surroundings {
            labels: Vec::new(),
            summed: None,
            ..*self
        };
        std::mem::replace(self, inner)
    }
}

/// Makes all fields and methods of the inner part of the state of generation usable on the outer part, by
/// `Deref`.
macro_rules! around {
    ($outer:ty, $field:ident: $inner:ty, $($lifetime:lifetime),*) => {
        impl<$($lifetime),*> Deref for $outer {
            type Target = $inner;

            fn deref(&self) -> &Self::Target {
                &self.$field
            }
        }

        impl<$($lifetime),*> DerefMut for $outer {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.$field
            }
        }
    };
}
around!(Memory<'a, 'f>, words: Words<'f>, 'a, 'f);
around!(Slots<'a, 'f>, memory: Memory<'a, 'f>, 'a, 'f);
around!(Gen<'a, 'f>, slots: Slots<'a, 'f>, 'a, 'f);

/// The inputs of [`generate`].
pub(crate) struct Input<'a> {
    /// The program.
    pub analysis: &'a Analysis<'a>,
    /// The function to generate.
    pub entry_point: EntryPoint,
    /// The functions of [`Shim`] as imported into the function, by number.
    pub shims: &'a [FuncRef],
}

/// Generates the code of `function` for the entry point in `input`. Returns false if the code would become
/// too large.
pub(crate) fn generate(
    input: &Input<'_>,
    function: &mut Function,
    context: &mut FunctionBuilderContext,
    frontend: cranelift_codegen::isa::TargetFrontendConfig,
) -> bool {
    let mut memory = Memory::new(input, FunctionBuilder::new(function, context));
    let surroundings = Surroundings {
        end: memory.b.create_block(),
        end_used: false,
        labels: Vec::new(),
        loops: 0,
        branches: 0,
        summed: None,
    };
    let mut g = Gen {
        slots: Slots::new(memory),
        surroundings,
        emits_exactly: false,
        early_ends: BTreeMap::new(),
        parser_blocks: None,
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
    let too_large = g.too_large;
    let (scratch, size) = g.slots.memory.finish(frontend);
    function.sized_stack_slots[scratch].size = size;
    !too_large
}

impl Gen<'_, '_> {
    /// Returns the block in which the function ends early and drops the packet for `reason`.
    fn early_end(&mut self, reason: DropReason) -> Block {
        let b = &mut self.slots.memory.words.b;
        *self.early_ends.entry(reason).or_insert_with(|| {
            let block = b.create_block();
            b.set_cold_block(block);
            block
        })
    }

    /// Generates code that counts one step of the packet, and drops the packet if it exceeds `MAX_STEPS`.
    fn spend_step(&mut self) {
        let stop = self.early_end(DropReason::StepLimit);
        let steps = self.next_step();
        let limit = self.imm(MAX_STEPS.into());
        let over = (self.b.ins()).icmp(IntCC::UnsignedGreaterThan, steps, limit);
        self.leave_if(over, stop);
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

    /// Generates the code of a block of the pipeline: a parser, or a control, after which it also stores the
    /// emitted bytes' number if `emits` is true, else stops if the packet is dropped.
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

    /// Generates the statements `body` of a control. An `exit` statement in them jumps to the end of this
    /// code.
    fn control(&mut self, body: &[ir::Stmt]) {
        self.surroundings.end = self.b.create_block();
        self.surroundings.end_used = false;
        let falls_through = self.stmts(body);
        let end = self.surroundings.end;
        if !falls_through && !self.surroundings.end_used {
            // An endless loop: nothing gets here, but code may follow.
            self.continue_in(end);
            return;
        }
        if falls_through {
            self.b.ins().jump(end, &[]);
        }
        self.continue_in(end);
    }

    /// Generates the blocks in which the function ends early (at the step limit, or after a failed
    /// assertion), and the end of the loop over packets.
    fn finish(&mut self) {
        for (reason, block) in std::mem::take(&mut self.early_ends) {
            self.b.switch_to_block(block);
            let code = drop_code(reason);
            if self.entry_point == EntryPoint::Prefetch {
                self.next_packet();
            } else if self.entry_point.is_fast_path() {
                self.exit_with(exit::DROPPED + code, None);
            } else {
                let code = self.imm(code);
                self.store_frame(offset_of!(Frame, drop), code);
                self.b.ins().return_(&[]);
            }
        }
        self.end_burst();
    }
}

/// Returns the number of bytes that a deparser may write without reserving room.
pub(crate) fn emit_capacity(analysis: &Analysis<'_>) -> usize {
    analysis.emit_bytes + bytes::Packer::SLACK as usize
}
