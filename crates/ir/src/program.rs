//! The representation. The documentation of each item is its meaning; both executors implement exactly this.
//!
//! # The state of a packet
//!
//! All state is in [`Slot`]s: scalars of fixed width, zero when a packet enters the pipeline. A header instance is a
//! validity slot and one slot per field. Throughout, **a header that is invalid has all its fields zero**: the
//! compiler guards writes to fields of headers that may be invalid, and [`StmtKind::SetInvalid`] clears them.
//! So reading an invalid header gives zero without a check.
//!
//! # The pipelines
//!
//! The architecture says which blocks a program has, in one pipeline or two. The first runs when a packet arrives; the engine then decides,
//! from the metadata of the architecture, where copies go; the second runs for each copy. The outgoing packet is the bytes that the last
//! deparser emits, followed by those that the parser in front of it did not consume. Where the first pipeline has a deparser, too, the
//! bytes that it emits and those that its parser did not consume are the packet that the second pipeline is given; otherwise the second
//! pipeline continues with the state of the first.
//!
//! # Control flow
//!
//! Structured: there is no jump but [`StmtKind::Break`] out of an enclosing labelled block or loop and
//! [`StmtKind::Exit`] out of the whole control. To bound the work per packet, a *step* is spent by every transition to
//! a parser state whose index is not greater than the current state's, and by every loop iteration after the first. After
//! [`MAX_STEPS`] steps in one pipeline the packet is dropped and counted.

mod expr;
mod match_kind;
mod objects;
mod parser;
mod stmt;
mod tables;

pub use expr::*;
pub use match_kind::*;
pub use objects::*;
pub use parser::*;
pub use stmt::*;
pub use tables::*;

use crate::architecture::{Architecture, BlockKind, Description, Pipeline};
use crate::verify::CORE_ERRORS;
use std::convert::Infallible;

/// Steps (backward transitions) that one packet may spend in one pipeline.
pub const MAX_STEPS: u32 = 4096;

/// Width of the value of an enum without an underlying type: the position of its member.
pub const ENUM_WIDTH: u32 = 32;

/// Width of an error value, as in `standard_metadata.parser_error`. The value is the index in [`Program::errors`].
pub const ERROR_WIDTH: u32 = 16;

/// Numbers of declarations, each an index into the list of its kind.
#[macro_export]
macro_rules! id {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);
        impl $name {
            /// Returns the id as an index into the program's list of such objects.
            pub fn index(self) -> usize { self.0 as usize }
        }
    )*};
}

id! {
    /// Index in [`Program::slots`].
    SlotId,
    /// Index in [`Program::headers`].
    HeaderId,
    /// Index in [`Program::actions`].
    ActionId,
    /// Index in [`Program::tables`].
    TableId,
    /// Index in [`Program::registers`].
    RegisterId,
    /// Index in [`Program::counters`].
    CounterId,
    /// Index in [`Program::meters`].
    MeterId,
    /// Index in [`Program::digests`].
    DigestId,
    /// Index in [`Program::value_sets`].
    ValueSetId,
    /// Index in [`Program::action_profiles`].
    ActionProfileId,
    /// Index in [`Program::field_lists`].
    FieldListId,
    /// Index in [`Program::states`].
    StateId,
    /// Index in [`Program::blocks`] and in [`Description::stages`].
    BlockId,
    /// Names an enclosing [`StmtKind::Block`] or [`StmtKind::Loop`]; unique within a program.
    LabelId,
}

/// A source position, for traces and messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Loc {
    /// Index in [`Program::files`].
    pub file: u32,
    /// Line, from 1; 0 when the statement comes from no source line.
    pub line: u32,
}

/// A compiled program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Name, usually the stem of the source file.
    pub name: String,
    /// Source files that locations refer to.
    pub files: Vec<String>,
    /// All scalar storage of a packet.
    pub slots: Vec<Slot>,
    /// All header instances (elements of stacks and members of unions included).
    pub headers: Vec<Header>,
    /// Error names; the index is the value. The first seven are those of core.p4 in its order.
    pub errors: Vec<String>,
    /// The architecture, with the slots of its metadata.
    pub architecture: Architecture,
    /// Actions that tables can run.
    pub actions: Vec<Action>,
    /// Tables.
    pub tables: Vec<Table>,
    /// `register` instances.
    pub registers: Vec<Register>,
    /// `counter` and `direct_counter` instances.
    pub counters: Vec<Counter>,
    /// `meter` and `direct_meter` instances.
    pub meters: Vec<Meter>,
    /// Digest messages.
    pub digests: Vec<Digest>,
    /// Parser value sets.
    pub value_sets: Vec<ValueSet>,
    /// Headers of packets to and from the controller.
    pub controller_headers: Vec<ControllerHeader>,
    /// `action_profile` and `action_selector` instances.
    pub action_profiles: Vec<ActionProfile>,
    /// Slots preserved by clone, resubmit and recirculate.
    pub field_lists: Vec<FieldList>,
    /// The states of all parsers, which share none.
    pub states: Vec<State>,
    /// The blocks, one for each of [`Description::stages`], in that order.
    pub blocks: Vec<Block>,
}

/// The code of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// A parser with this start state.
    Parser(StateId),
    /// A control or deparser.
    Control(Vec<Stmt>),
}

impl Program {
    /// Makes a program that does nothing. Its slots are those of the architecture's metadata in the order
    /// of declaration, its errors those of core.p4. To be valid it still needs parser states.
    pub fn empty(name: impl Into<String>, description: &'static Description) -> Program {
        let mut numbers = 0..;
        let mut number = |_| Ok::<_, Infallible>(SlotId(numbers.next().unwrap_or_default()));
        let Ok(architecture) = Architecture::from_names(description, &mut number);
        let keyword = description.keyword;
        let slot = |(name, _, width)| Slot {
            name: format!("{keyword}_metadata.{name}"),
            width,
        };
        let blocks = description
            .stages
            .iter()
            .map(|stage| match stage.is_parser() {
                true => Block::Parser(StateId(0)),
                false => Block::Control(Vec::new()),
            });
        Program {
            name: name.into(),
            files: Vec::new(),
            slots: architecture.fields().map(slot).collect(),
            headers: Vec::new(),
            errors: CORE_ERRORS.map(String::from).into(),
            architecture,
            actions: Vec::new(),
            tables: Vec::new(),
            registers: Vec::new(),
            counters: Vec::new(),
            meters: Vec::new(),
            digests: Vec::new(),
            value_sets: Vec::new(),
            controller_headers: Vec::new(),
            action_profiles: Vec::new(),
            field_lists: Vec::new(),
            states: Vec::new(),
            blocks: blocks.collect(),
        }
    }

    /// Returns the length of a header in bytes, with a varbit at its full length.
    pub fn header_max_bytes(&self, header: HeaderId) -> usize {
        let bits: u32 = self.headers[header.index()]
            .fields
            .iter()
            .map(|f| self.slots[f.slot.index()].width)
            .sum();
        bits.div_ceil(8) as usize
    }

    /// Returns the name of a block.
    pub fn block_name(&self, block: BlockId) -> &'static str {
        self.architecture.description().stage(block).name
    }

    /// Returns the statements of a control; none if `block` is a parser.
    pub fn control(&self, block: BlockId) -> &[Stmt] {
        match &self.blocks[block.index()] {
            Block::Parser(_) => &[],
            Block::Control(body) => body,
        }
    }

    /// Returns the statements of the control of a pipeline that applies tables; none if there is none.
    pub fn main_control(&self, pipeline: Pipeline) -> &[Stmt] {
        self.control_of(pipeline, BlockKind::Control)
    }

    /// Returns the statements of the control for checksums of a pipeline; none if there is none.
    pub fn checksums(&self, pipeline: Pipeline) -> &[Stmt] {
        self.control_of(pipeline, BlockKind::Checksums)
    }

    /// Returns the statements of the deparser of a pipeline; none if there is none.
    pub fn deparser(&self, pipeline: Pipeline) -> &[Stmt] {
        self.control_of(pipeline, BlockKind::Deparser)
    }

    fn control_of(&self, pipeline: Pipeline, kind: BlockKind) -> &[Stmt] {
        let mut blocks = self.architecture.description().blocks_of(pipeline);
        let found = blocks.find(|(_, stage)| stage.kind == kind);
        found.map_or(&[], |(block, _)| self.control(block))
    }

    /// Returns the statements of a control for modification.
    ///
    /// # Panics
    /// If the block is a parser.
    pub fn control_mut(&mut self, block: BlockId) -> &mut Vec<Stmt> {
        match &mut self.blocks[block.index()] {
            Block::Parser(_) => unreachable!("a parser is no control"),
            Block::Control(body) => body,
        }
    }

    /// Returns the statements of all controls for modification, in the order in which a packet passes through them.
    pub fn controls_mut(&mut self) -> impl Iterator<Item = &mut Vec<Stmt>> {
        self.blocks.iter_mut().filter_map(|block| match block {
            Block::Parser(_) => None,
            Block::Control(body) => Some(body),
        })
    }

    /// Returns the start state of the parser `block`; `None` if the block is no parser.
    pub fn parser_start(&self, block: BlockId) -> Option<StateId> {
        match self.blocks[block.index()] {
            Block::Parser(start) => Some(start),
            Block::Control(_) => None,
        }
    }

    /// Returns the start state of the parser of a pipeline; `None` if there is none.
    pub fn parser_of(&self, pipeline: Pipeline) -> Option<StateId> {
        let mut blocks = self.architecture.description().blocks_of(pipeline);
        blocks.find_map(|(block, _)| self.parser_start(block))
    }

    /// Returns the start states of all parsers of the program.
    pub fn parser_starts(&self) -> impl Iterator<Item = StateId> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Parser(start) => Some(*start),
            Block::Control(_) => None,
        })
    }

    /// Finds a table by its control-plane name; `None` if there is none.
    pub fn table(&self, name: &str) -> Option<TableId> {
        self.tables
            .iter()
            .position(|t| t.name == name)
            .map(|i| TableId(i as u32))
    }
}

/// A scalar variable of fixed width, zero when the packet enters the pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Source name, as in `hdr.ipv4.ttl`; for people, not necessarily unique.
    pub name: String,
    /// Width in bits, 1 to [`Bits::MAX_WIDTH`](crate::Bits::MAX_WIDTH).
    pub width: u32,
}

/// A header instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Source name, as in `hdr.ipv4` or `hdr.mpls[0]`.
    pub name: String,
    /// The validity bit (width 1).
    pub valid: SlotId,
    /// The fields in wire order. Without a varbit the widths add up to whole bytes.
    pub fields: Vec<Field>,
}

/// A field of a header instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Storage. A varbit's slot has the maximum width, its value right-aligned.
    pub slot: SlotId,
    /// For a varbit, the slot (32 bits) with its current length in bits.
    pub varbit_length: Option<SlotId>,
}

/// Slots annotated with `@field_list(index)`, or named by a deprecated clone3, resubmit or recirculate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldList {
    /// The slots whose values survive.
    pub slots: Vec<SlotId>,
}
