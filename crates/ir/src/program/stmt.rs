//! Statements.

use super::{
    CounterId, DigestId, Expr, FieldListId, HeaderId, LabelId, Loc, MeterId, RegisterId, SlotId,
    TableId,
};
use crate::Bits;

/// A statement with its source position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stmt {
    /// The operation and its operands.
    pub kind: StmtKind,
    /// Its position in the source.
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
    /// The first eight bytes themselves, or all if there are fewer. 64 bits.
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
        /// Set to the position in [`Table::actions`](super::Table::actions) of the action that runs (width 32), before it runs.
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
    /// a table with this meter; its result when another table runs the action is the last hit's too.
    DirectMeterRead {
        /// The meter; a direct one.
        meter: MeterId,
        /// Colour (any width of at least 2).
        dst: SlotId,
    },
    /// Hashes the concatenation of `data`, most significant first, padded with zero bits at the end to whole bytes, then the
    /// unparsed payload if `payload`. For `Csum16` and `Xor16` one zero byte more follows behind all of it if the bytes are no
    /// whole number of 16-bit words. The result is truncated or zero-extended to the width of `dst`.
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
    /// Asks for a copy when the current pipeline ends. The last one in a pipeline counts.
    Clone {
        /// Kind; must be of the pipeline it is in.
        kind: CloneKind,
        /// Clone session (32 bits).
        session: Expr,
        /// The slots that the copy keeps.
        preserve: Option<FieldListId>,
    },
    /// Asks to parse the original packet again after ingress.
    Resubmit {
        /// The slots that survive.
        preserve: Option<FieldListId>,
    },
    /// Asks to send the packet back to the parser after the deparser.
    Recirculate {
        /// The slots that survive.
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
        /// The number of bits.
        bits: Expr,
    },
    /// Parser only. Sets `parser_error` and rejects.
    Reject {
        /// The error ([`ERROR_WIDTH`](super::ERROR_WIDTH) bits).
        error: Expr,
    },
    /// Deparser only. Appends the header if it is valid.
    Emit(HeaderId),
}
