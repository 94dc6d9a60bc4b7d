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
//! `parser`, `verify_checksum`, `ingress` run when a packet arrives; the engine then decides, from the standard
//! metadata, where copies go; `egress`, `compute_checksum`, `deparser` run for each copy. What is emitted by the deparser,
//! followed by the bytes that the parser did not consume, is the outgoing packet.
//!
//! # Control flow
//!
//! Structured: there is no jump but [`StmtKind::Break`] out of an enclosing labelled block or loop and
//! [`StmtKind::Exit`] out of the whole control. To bound the work per packet, a *step* is spent by every transition to
//! a parser state whose index is not greater than the current state's, and by every loop iteration after the first. After
//! [`MAX_STEPS`] steps in one half of the pipeline (parser to ingress, egress to deparser) the packet is dropped and counted.

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

use crate::verify::CORE_ERRORS;

/// Steps (backward transitions) that one packet may spend in one half of the pipeline.
pub const MAX_STEPS: u32 = 4096;

/// Width of an error value, as in `standard_metadata.parser_error`. The value is the index in [`Program::errors`].
pub const ERROR_WIDTH: u32 = 16;

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);
        impl $name {
            /// The id as an index into the program's list.
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

/// A compiled v1model program.
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
    /// The slots of `standard_metadata_t`.
    pub standard: StandardMetadata,
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
    /// `action_profile` and `action_selector` instances.
    pub action_profiles: Vec<ActionProfile>,
    /// Slots preserved by clone, resubmit and recirculate.
    pub field_lists: Vec<FieldList>,
    /// The parser.
    pub parser: Parser,
    /// The control that checks checksums.
    pub verify_checksum: Vec<Stmt>,
    /// The ingress control.
    pub ingress: Vec<Stmt>,
    /// The egress control.
    pub egress: Vec<Stmt>,
    /// The control that updates checksums.
    pub compute_checksum: Vec<Stmt>,
    /// The deparser.
    pub deparser: Vec<Stmt>,
}

impl Program {
    /// A program that does nothing: its slots are those of the standard metadata, in declaration order, and its errors those of
    /// core.p4. A parser state is all that it lacks to be valid.
    pub fn empty(name: impl Into<String>) -> Program {
        let standard = StandardMetadata {
            ingress_port: SlotId(0),
            egress_spec: SlotId(1),
            egress_port: SlotId(2),
            instance_type: SlotId(3),
            packet_length: SlotId(4),
            enq_timestamp: SlotId(5),
            enq_qdepth: SlotId(6),
            deq_timedelta: SlotId(7),
            deq_qdepth: SlotId(8),
            ingress_global_timestamp: SlotId(9),
            egress_global_timestamp: SlotId(10),
            mcast_grp: SlotId(11),
            egress_rid: SlotId(12),
            checksum_error: SlotId(13),
            parser_error: SlotId(14),
            priority: SlotId(15),
        };
        let slot = |(name, _, width)| Slot {
            name: format!("standard_metadata.{name}"),
            width,
        };
        Program {
            name: name.into(),
            files: Vec::new(),
            slots: standard.fields().map(slot).into(),
            headers: Vec::new(),
            errors: CORE_ERRORS.map(String::from).into(),
            standard,
            actions: Vec::new(),
            tables: Vec::new(),
            registers: Vec::new(),
            counters: Vec::new(),
            meters: Vec::new(),
            digests: Vec::new(),
            value_sets: Vec::new(),
            action_profiles: Vec::new(),
            field_lists: Vec::new(),
            parser: Parser { states: Vec::new() },
            verify_checksum: Vec::new(),
            ingress: Vec::new(),
            egress: Vec::new(),
            compute_checksum: Vec::new(),
            deparser: Vec::new(),
        }
    }

    /// Length in bytes of a header with its varbit, if any, at full length.
    pub fn header_max_bytes(&self, header: HeaderId) -> usize {
        let bits: u32 = self.headers[header.index()]
            .fields
            .iter()
            .map(|f| self.slots[f.slot.index()].width)
            .sum();
        bits.div_ceil(8) as usize
    }

    /// Finds a table by its control-plane name.
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

/// The slots of `standard_metadata_t`, with the widths of v1model.p4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandardMetadata {
    /// bit<9>
    pub ingress_port: SlotId,
    /// bit<9>; 511 drops.
    pub egress_spec: SlotId,
    /// bit<9>
    pub egress_port: SlotId,
    /// bit<32>
    pub instance_type: SlotId,
    /// bit<32>, bytes
    pub packet_length: SlotId,
    /// bit<32>, microseconds
    pub enq_timestamp: SlotId,
    /// bit<19>, packets
    pub enq_qdepth: SlotId,
    /// bit<32>, microseconds
    pub deq_timedelta: SlotId,
    /// bit<19>, packets
    pub deq_qdepth: SlotId,
    /// bit<48>, microseconds
    pub ingress_global_timestamp: SlotId,
    /// bit<48>, microseconds
    pub egress_global_timestamp: SlotId,
    /// bit<16>; 0 is none
    pub mcast_grp: SlotId,
    /// bit<16>
    pub egress_rid: SlotId,
    /// bit<1>
    pub checksum_error: SlotId,
    /// [`ERROR_WIDTH`] bits, index in [`Program::errors`]
    pub parser_error: SlotId,
    /// bit<3>
    pub priority: SlotId,
}

impl StandardMetadata {
    /// Field names as in v1model.p4 with their slots and widths, in declaration order.
    pub fn fields(&self) -> [(&'static str, SlotId, u32); 16] {
        [
            ("ingress_port", self.ingress_port, 9),
            ("egress_spec", self.egress_spec, 9),
            ("egress_port", self.egress_port, 9),
            ("instance_type", self.instance_type, 32),
            ("packet_length", self.packet_length, 32),
            ("enq_timestamp", self.enq_timestamp, 32),
            ("enq_qdepth", self.enq_qdepth, 19),
            ("deq_timedelta", self.deq_timedelta, 32),
            ("deq_qdepth", self.deq_qdepth, 19),
            (
                "ingress_global_timestamp",
                self.ingress_global_timestamp,
                48,
            ),
            ("egress_global_timestamp", self.egress_global_timestamp, 48),
            ("mcast_grp", self.mcast_grp, 16),
            ("egress_rid", self.egress_rid, 16),
            ("checksum_error", self.checksum_error, 1),
            ("parser_error", self.parser_error, ERROR_WIDTH),
            ("priority", self.priority, 3),
        ]
    }
}

/// Slots annotated with `@field_list(index)`, or named by a deprecated clone3, resubmit or recirculate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldList {
    /// The slots whose values survive.
    pub slots: Vec<SlotId>,
}
