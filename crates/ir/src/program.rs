//! The representation. The documentation of each item is its meaning; both executors implement exactly this.
//!
//! # The state of a packet
//!
//! All state is in [`Slot`]s: scalars of fixed width, zero when a packet enters the pipeline. A header instance is a
//! validity slot and one slot per field. Throughout, **a header that is invalid has all its fields zero**: the
//! compiler guards writes to fields of headers that may be invalid, and [`StmtKind::SetInvalid`] clears them.
//! So reading an invalid header gives zero without a check.
//!
//! # The pipeline
//!
//! `parser`, `verify_checksum`, `ingress`, `ingress_deparser` run when a packet arrives; the engine then decides, from the metadata of
//! the architecture, where copies go; `egress` (behind the egress parser, if there is one), `compute_checksum`, `deparser` run for each
//! copy. The outgoing packet is the bytes that the deparser emits, followed by those that the parser did not consume; likewise the bytes
//! that the ingress deparser emits are the packet that the egress parser is given.
//!
//! # Control flow
//!
//! Structured: there is no jump but [`StmtKind::Break`] out of an enclosing labelled block or loop and
//! [`StmtKind::Exit`] out of the whole control. To bound the work per packet, a *step* is spent by every transition to
//! a parser state whose index is not greater than the current state's, and by every loop iteration after the first. After
//! [`MAX_STEPS`] steps in one pipeline (parser to ingress, egress to deparser) the packet is dropped and counted.

mod expr;
mod objects;
mod parser;
mod stmt;
mod tables;

pub use expr::*;
pub use objects::*;
pub use parser::*;
pub use stmt::*;
pub use tables::*;

use crate::architecture::{Architecture, Block, StandardMetadata};
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
    /// Index in [`Parser::states`].
    StateId,
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
    /// The parser, or both.
    pub parser: Parser,
    /// The control that checks checksums.
    pub verify_checksum: Vec<Stmt>,
    /// The ingress control.
    pub ingress: Vec<Stmt>,
    /// The deparser in front of the traffic manager, in architectures whose egress parses.
    pub ingress_deparser: Vec<Stmt>,
    /// The egress control.
    pub egress: Vec<Stmt>,
    /// The control that updates checksums.
    pub compute_checksum: Vec<Stmt>,
    /// The deparser.
    pub deparser: Vec<Stmt>,
}

impl Program {
    /// Makes a v1model program that does nothing. Its slots are those of the standard metadata in the order
    /// of declaration, its errors those of core.p4. To be valid it still needs a parser state.
    pub fn empty(name: impl Into<String>) -> Program {
        let mut numbers = 0..;
        let mut number = |_| Ok::<_, Infallible>(SlotId(numbers.next().unwrap_or_default()));
        let Ok(standard) = StandardMetadata::from_names(&mut number);
        let slot = |(name, _, width)| Slot {
            name: format!("standard_metadata.{name}"),
            width,
        };
        Program {
            name: name.into(),
            files: Vec::new(),
            slots: standard.fields().into_iter().map(slot).collect(),
            headers: Vec::new(),
            errors: CORE_ERRORS.map(String::from).into(),
            architecture: Architecture::V1Model(standard),
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
            parser: Parser {
                states: Vec::new(),
                egress: None,
            },
            verify_checksum: Vec::new(),
            ingress: Vec::new(),
            ingress_deparser: Vec::new(),
            egress: Vec::new(),
            compute_checksum: Vec::new(),
            deparser: Vec::new(),
        }
    }

    /// Returns the standard metadata of a v1model program; `None` for a program of another architecture.
    pub fn v1model(&self) -> Option<&StandardMetadata> {
        match &self.architecture {
            Architecture::V1Model(standard) => Some(standard),
            Architecture::Psa(_) => None,
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

    /// Returns the statements of a control; none if `block` is a parser.
    pub fn control(&self, block: Block) -> &[Stmt] {
        match block {
            Block::Parser | Block::EgressParser => &[],
            Block::VerifyChecksum => &self.verify_checksum,
            Block::Ingress => &self.ingress,
            Block::IngressDeparser => &self.ingress_deparser,
            Block::Egress => &self.egress,
            Block::ComputeChecksum => &self.compute_checksum,
            Block::Deparser => &self.deparser,
        }
    }

    /// Returns the statements of a control for modification.
    ///
    /// # Panics
    /// If the block is a parser.
    pub fn control_mut(&mut self, block: Block) -> &mut Vec<Stmt> {
        match block {
            Block::Parser | Block::EgressParser => unreachable!("a parser is no control"),
            Block::VerifyChecksum => &mut self.verify_checksum,
            Block::Ingress => &mut self.ingress,
            Block::IngressDeparser => &mut self.ingress_deparser,
            Block::Egress => &mut self.egress,
            Block::ComputeChecksum => &mut self.compute_checksum,
            Block::Deparser => &mut self.deparser,
        }
    }

    /// Returns the start state of the parser `block`; `None` if the block is no parser or the program does
    /// not have it.
    pub fn parser_start(&self, block: Block) -> Option<StateId> {
        match block {
            Block::Parser => Some(StateId(0)),
            Block::EgressParser => self.parser.egress,
            _ => None,
        }
    }

    /// Returns the start states of all parsers of the program.
    pub fn parser_starts(&self) -> impl Iterator<Item = StateId> {
        [Some(StateId(0)), self.parser.egress].into_iter().flatten()
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
