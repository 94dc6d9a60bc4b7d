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

use crate::Bits;

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

/// A scalar variable of fixed width, zero when the packet enters the pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Source name, as in `hdr.ipv4.ttl`; for people, not necessarily unique.
    pub name: String,
    /// Width in bits, 1 to [`Bits::MAX_WIDTH`].
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

/// An action that tables can run. (Actions called directly are inlined by the compiler.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// Control-plane name, as in `ingress.forward`.
    pub name: String,
    /// P4Runtime id.
    pub id: u32,
    /// Parameters that the entry supplies; set before the body runs.
    pub params: Vec<ActionParam>,
    /// The body.
    pub body: Vec<Stmt>,
}

/// A control-plane parameter of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionParam {
    /// Name.
    pub name: String,
    /// P4Runtime id, from 1.
    pub id: u32,
    /// Where the value goes.
    pub slot: SlotId,
}

/// How a key field is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatchKind {
    /// Equal.
    Exact,
    /// Longest prefix; at most one such field in a table.
    Lpm,
    /// Value and mask.
    Ternary,
    /// Low and high bound, both included.
    Range,
    /// Equal or don't care.
    Optional,
    /// Input to an action selector's hash; not part of the lookup.
    Selector,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Control-plane name, as in `ingress.ipv4_lpm`.
    pub name: String,
    /// P4Runtime id.
    pub id: u32,
    /// Key fields. [`StmtKind::Apply`] supplies one expression of the given width for each.
    pub keys: Vec<Key>,
    /// Actions that entries may name.
    pub actions: Vec<TableAction>,
    /// What runs on a miss.
    pub default_action: ActionCall,
    /// The control plane may not change the default action.
    pub const_default_action: bool,
    /// Entries from the source.
    pub entries: Vec<ConstEntry>,
    /// The control plane may not change the entries.
    pub const_entries: bool,
    /// Requested capacity, in entries.
    pub size: u64,
    /// A direct counter, counted on every hit.
    pub direct_counter: Option<CounterId>,
    /// A direct meter, executed on every hit.
    pub direct_meter: Option<MeterId>,
    /// Where entries find what to run: each names a member or a group of this profile, or has a set of actions of its own
    /// that works like a group. The default action is a plain one. A hit on a group without a selectable member runs
    /// nothing, and is a hit; `action_run` is then the number of the table's actions.
    pub implementation: Option<ActionProfileId>,
    /// Entries may carry an idle timeout.
    pub support_timeout: bool,
}

impl Table {
    /// Whether entries carry a priority: some key field is ternary, range or optional. The highest number wins.
    pub fn needs_priority(&self) -> bool {
        self.keys.iter().any(|k| {
            matches!(
                k.kind,
                MatchKind::Ternary | MatchKind::Range | MatchKind::Optional
            )
        })
    }
}

/// A key field of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Control-plane name, as in `hdr.ipv4.dst_addr`.
    pub name: String,
    /// P4Runtime id, from 1.
    pub id: u32,
    /// Width in bits.
    pub width: u32,
    /// Match kind.
    pub kind: MatchKind,
}

/// Membership of an action in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableAction {
    /// The action.
    pub action: ActionId,
    /// Where the control plane may use it.
    pub scope: ActionScope,
}

/// `@tableonly` and `@defaultonly`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionScope {
    /// In entries and as the default.
    Both,
    /// In entries only.
    TableOnly,
    /// As the default only.
    DefaultOnly,
}

/// An action with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionCall {
    /// The action.
    pub action: ActionId,
    /// One value per parameter, of its width.
    pub args: Vec<Bits>,
}

/// An entry given in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstEntry {
    /// One match per key field.
    pub matches: Vec<KeyMatch>,
    /// The highest number wins. Zero when the table needs no priority.
    pub priority: i32,
    /// What a hit runs.
    pub action: ActionCall,
}

/// How one key field of an entry matches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeyMatch {
    /// Equal.
    Exact(Bits),
    /// The first `prefix_len` bits equal; the others of `value` are zero.
    Lpm {
        /// Value.
        value: Bits,
        /// Bits that count.
        prefix_len: u32,
    },
    /// Equal where the mask has ones; `value` is zero elsewhere.
    Ternary {
        /// Value.
        value: Bits,
        /// Mask.
        mask: Bits,
    },
    /// Between, both included.
    Range {
        /// Lowest.
        low: Bits,
        /// Highest.
        high: Bits,
    },
    /// Equal, or anything.
    Optional(Option<Bits>),
}

/// An `action_profile` or `action_selector`: actions with arguments that entries of tables share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionProfile {
    /// Control-plane name.
    pub name: String,
    /// P4Runtime id.
    pub id: u32,
    /// Capacity: members of a profile; in a selector, of all groups together (see [`Selector::sum_of_members`]). 0 is no limit.
    pub size: u64,
    /// What makes it an `action_selector`.
    pub selector: Option<Selector>,
}

/// How a selector chooses a member of a group.
///
/// The key fields of kind [`MatchKind::Selector`] are hashed as [`StmtKind::Hash`] does with them as its data and a
/// destination of `width` bits. The result modulo the sum of the weights of the selectable members, which are taken in the order
/// in which the group lists them, is the choice. A member is not selectable while the port that it watches is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selector {
    /// Function.
    pub algorithm: HashAlgorithm,
    /// Bits of its result that count, 1 to 64.
    pub width: u32,
    /// Largest size of a group; 0 is no limit but the profile's.
    pub max_group_size: u64,
    /// Sizes are numbers of members; otherwise they are sums of weights.
    pub sum_of_members: bool,
}

/// A `register` array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// Control-plane name.
    pub name: String,
    /// P4Runtime id.
    pub id: u32,
    /// Width of a cell in bits.
    pub width: u32,
    /// Number of cells. Reads beyond give zero, writes beyond do nothing; both are counted.
    pub size: u64,
    /// `@port_state`: the switch's agent keeps the cell of each port at 1 while the port is up and at 0 while it is down, from
    /// the start of the program on. The program may write it too; the next change of the port overwrites that.
    pub port_state: bool,
}

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterUnit {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
    /// Both.
    Both,
}

/// A `counter` or `direct_counter`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Control-plane name.
    pub name: String,
    /// P4Runtime id.
    pub id: u32,
    /// Unit.
    pub unit: CounterUnit,
    /// Number of cells; `None` for a direct counter, which has one per entry. Counts beyond the end do nothing.
    pub size: Option<u64>,
}

/// A `meter` or `direct_meter` (RFC 2698, colour-blind).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meter {
    /// Control-plane name.
    pub name: String,
    /// P4Runtime id.
    pub id: u32,
    /// Rates count bytes; otherwise packets.
    pub bytes: bool,
    /// Number of cells; `None` for a direct meter.
    pub size: Option<u64>,
}

/// A digest message type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// Control-plane name.
    pub name: String,
    /// P4Runtime id.
    pub id: u32,
    /// Widths of the members.
    pub widths: Vec<u32>,
}

/// A parser value set, filled by the control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueSet {
    /// Control-plane name.
    pub name: String,
    /// P4Runtime id.
    pub id: u32,
    /// Width of each member of the key.
    pub widths: Vec<u32>,
    /// Capacity.
    pub size: u64,
}

/// Slots annotated with `@field_list(index)`, or named by a deprecated clone3, resubmit or recirculate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldList {
    /// The slots whose values survive.
    pub slots: Vec<SlotId>,
}

/// The parser: a state machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parser {
    /// States; the first is the start state.
    pub states: Vec<State>,
}

/// A parser state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Source name.
    pub name: String,
    /// What it does before the transition.
    pub body: Vec<Stmt>,
    /// Where it goes.
    pub transition: Transition,
    /// Source position.
    pub loc: Loc,
}

/// Where a parser goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Another state.
    State(StateId),
    /// Parsing succeeded.
    Accept,
    /// Parsing failed; `parser_error` keeps its value. v1model goes on to the ingress control.
    Reject,
}

/// The end of a parser state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transition {
    /// Unconditional.
    Goto(Target),
    /// The first case all of whose matches hold. If none does: error NoMatch (value 2), reject.
    Select {
        /// Key expressions.
        keys: Vec<Expr>,
        /// Cases in order.
        cases: Vec<SelectCase>,
    },
}

/// A case of a select.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectCase {
    /// One per key, or a single [`KeySet::ValueSet`] that covers all keys.
    pub matches: Vec<KeySet>,
    /// Where to go.
    pub target: Target,
}

/// What a key of a select must be in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySet {
    /// Anything.
    Any,
    /// `key & mask == value`.
    Mask {
        /// Value, zero outside the mask.
        value: Bits,
        /// Mask.
        mask: Bits,
    },
    /// `low <= key <= high`, unsigned.
    Range {
        /// Lowest.
        low: Bits,
        /// Highest.
        high: Bits,
    },
    /// A member of the value set.
    ValueSet(ValueSetId),
}

/// A statement with its source position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stmt {
    /// What it does.
    pub kind: StmtKind,
    /// Where it comes from.
    pub loc: Loc,
}

/// Which copy a clone makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloneKind {
    /// The packet as it arrived, to the egress.
    IngressToEgress,
    /// The packet as it leaves the egress control, to the egress.
    EgressToEgress,
}

/// A function over bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HashAlgorithm {
    /// CRC-32 (ISO-HDLC): polynomial 0x04C11DB7 reflected, init and final xor all ones. 32 bits.
    Crc32,
    /// CRC-16/ARC: polynomial 0x8005 reflected, init 0. 16 bits.
    Crc16,
    /// The bytes themselves, their low bits.
    Identity,
    /// RFC 1071 ones' complement of the ones' complement sum of 16-bit words. 16 bits.
    Csum16,
    /// Exclusive or of 16-bit words. 16 bits.
    Xor16,
}

/// Statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StmtKind {
    /// `dst = value`, of equal width.
    Assign {
        /// Destination.
        dst: SlotId,
        /// Value.
        value: Expr,
    },
    /// The header becomes valid; its fields keep their values (zero if it was invalid).
    SetValid(HeaderId),
    /// The header becomes invalid and its fields zero.
    SetInvalid(HeaderId),
    /// Two-way branch on a 1-bit condition.
    If {
        /// Condition.
        cond: Expr,
        /// When 1.
        then: Vec<Stmt>,
        /// When 0.
        otherwise: Vec<Stmt>,
    },
    /// Runs the first case that lists the value, else the default. No case falls through.
    Switch {
        /// The value.
        value: Expr,
        /// Values and bodies; no value occurs twice.
        cases: Vec<(Vec<Bits>, Vec<Stmt>)>,
        /// Otherwise.
        default: Vec<Stmt>,
    },
    /// Runs the body; [`StmtKind::Break`] with its label leaves it.
    Block {
        /// Label.
        label: LabelId,
        /// Body.
        body: Vec<Stmt>,
    },
    /// Runs the body again and again until a [`StmtKind::Break`] with its label (or an outer one) leaves it.
    Loop {
        /// Label.
        label: LabelId,
        /// Body.
        body: Vec<Stmt>,
    },
    /// Leaves the enclosing block or loop with this label. Not across the border of an action body.
    Break(LabelId),
    /// Leaves the top-level control, from actions too. Not in parsers.
    Exit,
    /// Looks the key up and runs the action of the entry, or the default action.
    Apply {
        /// The table.
        table: TableId,
        /// One expression per key field; all are evaluated before the lookup.
        keys: Vec<Expr>,
        /// Set to whether an entry was found (width 1), before the action runs.
        hit: Option<SlotId>,
        /// Set to the position in [`Table::actions`] of the action that runs (width 32), before it runs.
        action_run: Option<SlotId>,
    },
    /// `dst = register[index]`; `index` has 32 bits.
    RegisterRead {
        /// Destination, of the register's width.
        dst: SlotId,
        /// The register.
        register: RegisterId,
        /// Cell.
        index: Expr,
    },
    /// `register[index] = value`.
    RegisterWrite {
        /// The register.
        register: RegisterId,
        /// Cell (32 bits).
        index: Expr,
        /// Value, of the register's width.
        value: Expr,
    },
    /// Counts the packet (its length as it arrived, in ingress; as it entered egress, there) in a cell.
    Count {
        /// The counter; not a direct one.
        counter: CounterId,
        /// Cell (32 bits).
        index: Expr,
    },
    /// Meters the packet: 0 green, 1 yellow, 2 red.
    MeterExecute {
        /// The meter; not a direct one.
        meter: MeterId,
        /// Cell (32 bits).
        index: Expr,
        /// Colour (any width of at least 2).
        dst: SlotId,
    },
    /// The colour that the direct meter gave to the last hit of its table, green if the table was missed since. Only in actions of
    /// a table with this meter; what it gives when another table runs the action is the last hit's too.
    DirectMeterRead {
        /// The meter; a direct one.
        meter: MeterId,
        /// Colour (any width of at least 2).
        dst: SlotId,
    },
    /// Hashes the concatenation of `data`, most significant first, padded with zero bits at the end to whole bytes (whole
    /// 16-bit words for `Csum16` and `Xor16`), then the unparsed payload if `payload`. The result is
    /// truncated or zero-extended to the width of `dst`.
    Hash {
        /// Destination.
        dst: SlotId,
        /// Function.
        algorithm: HashAlgorithm,
        /// Input.
        data: Vec<Expr>,
        /// Append the payload.
        payload: bool,
    },
    /// A uniformly distributed value between `low` and `high` (both included, at most 64 bits) from the switch's generator.
    Random {
        /// Destination.
        dst: SlotId,
        /// Lowest.
        low: Expr,
        /// Highest.
        high: Expr,
    },
    /// Asks for a copy when the current half of the pipeline ends. The last one in a half counts.
    Clone {
        /// Kind; must be of the half it is in.
        kind: CloneKind,
        /// Clone session (32 bits).
        session: Expr,
        /// What the copy keeps.
        preserve: Option<FieldListId>,
    },
    /// Asks to parse the original packet again after ingress.
    Resubmit {
        /// What survives.
        preserve: Option<FieldListId>,
    },
    /// Asks to send the packet back to the parser after the deparser.
    Recirculate {
        /// What survives.
        preserve: Option<FieldListId>,
    },
    /// Asks to cut the outgoing packet to this many bytes (32 bits).
    Truncate {
        /// Length.
        length: Expr,
    },
    /// Sends a message to the control plane.
    Digest {
        /// Type.
        digest: DigestId,
        /// One per member.
        values: Vec<Expr>,
    },
    /// `log_msg`: text with `{}` for each value; goes to the trace.
    Log {
        /// Format.
        format: String,
        /// Values.
        values: Vec<Expr>,
    },
    /// `assert`: a false (0) condition drops the packet and is counted.
    Assert {
        /// Condition.
        cond: Expr,
    },
    /// Parser only. Takes the header from the packet and makes it valid. If it is valid already its fields are overwritten.
    /// Too few bytes: error PacketTooShort (value 1), reject; the header is left as it was.
    Extract {
        /// Header.
        header: HeaderId,
        /// For a header with a varbit, its length in bits (32 bits). More than its slot's width: error HeaderTooShort
        /// (value 4); not a whole number of bytes in all: error ParserInvalidArgument (value 6).
        /// Checked in this order, as the specification of `packet_in.extract` does: whole bytes, too few bytes, too long.
        varbit_length: Option<Expr>,
    },
    /// Parser only. `dst` = the bits that start `offset` bits after the cursor; the cursor stays.
    /// Too few: error PacketTooShort, reject.
    Lookahead {
        /// Destination; its width says how many.
        dst: SlotId,
        /// In bits.
        offset: u32,
    },
    /// Parser only. Skips bits (32 bits wide). Beyond the end: error PacketTooShort, reject; not whole bytes: ParserInvalidArgument.
    Advance {
        /// How many bits.
        bits: Expr,
    },
    /// Parser only. Sets `parser_error` and rejects.
    Reject {
        /// The error ([`ERROR_WIDTH`] bits).
        error: Expr,
    },
    /// Deparser only. Appends the header if it is valid.
    Emit(HeaderId),
}

/// Expressions: no side effects, every width known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// A constant.
    Const(Bits),
    /// The value of a slot.
    Slot(SlotId),
    /// `op a`.
    Unary {
        /// Operator.
        op: UnaryOp,
        /// Operand.
        a: Box<Expr>,
    },
    /// `a op b`.
    Binary {
        /// Operator.
        op: BinaryOp,
        /// Left.
        a: Box<Expr>,
        /// Right.
        b: Box<Expr>,
    },
    /// Bits `high` down to `low` of `a`, both included, 0 the least significant.
    Slice {
        /// Operand.
        a: Box<Expr>,
        /// Highest.
        high: u32,
        /// Lowest.
        low: u32,
    },
    /// `a` above `b`.
    Concat {
        /// High part.
        a: Box<Expr>,
        /// Low part.
        b: Box<Expr>,
    },
    /// To a larger width with zeros.
    ZeroExtend {
        /// Operand.
        a: Box<Expr>,
        /// New width, larger than the operand's.
        width: u32,
    },
    /// To a larger width with the sign bit.
    SignExtend {
        /// Operand.
        a: Box<Expr>,
        /// New width, larger than the operand's.
        width: u32,
    },
    /// `then` if the 1-bit `cond` is 1, else `otherwise`.
    Mux {
        /// Condition.
        cond: Box<Expr>,
        /// When 1.
        then: Box<Expr>,
        /// When 0.
        otherwise: Box<Expr>,
    },
    /// Length in bytes of the whole packet as it arrived (32 bits).
    PacketLength,
}

/// Unary operators; the result has the operand's width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// Bitwise complement.
    Not,
    /// Two's complement negation.
    Neg,
}

/// Binary operators. Operands have equal width, and the result too, unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// Modulo 2^w.
    Add,
    /// Modulo 2^w.
    Sub,
    /// Modulo 2^w.
    Mul,
    /// Unsigned quotient; zero for a zero divisor.
    Div,
    /// Unsigned remainder; zero for a zero divisor.
    Mod,
    /// Bitwise.
    And,
    /// Bitwise.
    Or,
    /// Bitwise.
    Xor,
    /// Logical shift left; `b` may have any width, and shifts by the width of `a` or more give zero.
    Shl,
    /// Logical shift right; likewise.
    Shr,
    /// Arithmetic shift right; large shifts give copies of the sign.
    Sar,
    /// Unsigned saturating.
    AddSat,
    /// Unsigned saturating.
    SubSat,
    /// Signed saturating.
    SAddSat,
    /// Signed saturating.
    SSubSat,
    /// Equality; 1 bit.
    Eq,
    /// Inequality; 1 bit.
    Ne,
    /// Unsigned less; 1 bit.
    Ult,
    /// Unsigned less or equal; 1 bit.
    Ule,
    /// Signed less; 1 bit.
    Slt,
    /// Signed less or equal; 1 bit.
    Sle,
}

impl BinaryOp {
    /// Whether the result is one bit.
    pub fn is_comparison(self) -> bool {
        use BinaryOp::*;
        matches!(self, Eq | Ne | Ult | Ule | Slt | Sle)
    }

    /// Whether `b` may have another width than `a`.
    pub fn is_shift(self) -> bool {
        matches!(self, BinaryOp::Shl | BinaryOp::Shr | BinaryOp::Sar)
    }
}

impl Expr {
    /// Width in bits of the value, given the program's slots.
    pub fn width(&self, slots: &[Slot]) -> u32 {
        match self {
            Expr::Const(value) => value.width(),
            Expr::Slot(slot) => slots[slot.index()].width,
            Expr::Unary { a, .. } => a.width(slots),
            Expr::Binary { op, a, .. } => {
                if op.is_comparison() {
                    1
                } else {
                    a.width(slots)
                }
            }
            Expr::Slice { high, low, .. } => high - low + 1,
            Expr::Concat { a, b } => a.width(slots) + b.width(slots),
            Expr::ZeroExtend { width, .. } | Expr::SignExtend { width, .. } => *width,
            Expr::Mux { then, .. } => then.width(slots),
            Expr::PacketLength => 32,
        }
    }
}

impl Program {
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
