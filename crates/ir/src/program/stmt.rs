//! Statements, and what holds of each, described in one place ([`StmtKind::properties`]): what it reads and
//! writes, what it does besides, and where it is allowed. Passes ask there, so that a new statement needs a
//! variant and a row of the properties.

use super::{
    CounterId, DigestId, Expr, FieldListId, HeaderId, LabelId, Loc, MeterId, Program, RegisterId,
    SlotId, TableId,
};
use crate::Bits;
use crate::architecture::Pipeline;

/// A statement with its source position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stmt {
    /// The operation and its operands.
    pub kind: StmtKind,
    /// Its position in the source.
    pub loc: Loc,
}

/// The packet that a clone copies, and where the copy goes.
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
    /// Counts the packet in a cell. Its bytes are those of the packet as it arrived, in ingress, or as it
    /// entered egress, in egress.
    Count {
        /// The counter; not a direct one.
        counter: CounterId,
        /// Cell (32 bits).
        index: Expr,
    },
    /// Runs the packet through a cell of a meter, and sets `dst` to its colour: 0 green, 1 yellow, 2 red.
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
        /// The hash function.
        algorithm: HashAlgorithm,
        /// Input.
        data: Vec<Expr>,
        /// True if the unparsed payload follows the data.
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
    /// Requests a clone of the packet at the end of the current pipeline. The last request in a pipeline
    /// counts.
    Clone {
        /// Kind; must be of the pipeline it is in.
        kind: CloneKind,
        /// Clone session (32 bits).
        session: Expr,
        /// The slots that the copy keeps.
        preserve: Option<FieldListId>,
    },
    /// Requests that the packet be parsed again after ingress, as it arrived.
    Resubmit {
        /// The slots that survive.
        preserve: Option<FieldListId>,
    },
    /// Requests that the packet go back to the parser after the deparser.
    Recirculate {
        /// The slots that survive.
        preserve: Option<FieldListId>,
    },
    /// Requests that the outgoing packet be cut to this many bytes (32 bits).
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

/// What a statement does besides evaluating expressions and writing slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing else, or it runs the statements inside of it.
    None,
    /// It takes time in proportion to its data.
    Slow,
    /// It reads, consumes or emits bytes of the packet.
    Packet,
    /// It uses what outlives the packet: a cell of an array, or the generator of random numbers.
    State,
    /// It requests a clone, resubmission or recirculation.
    Request,
    /// It requests the truncation of the packet that leaves.
    Cut,
    /// It sends a message to the control plane or to the trace.
    Message,
    /// It may drop the packet, which is counted.
    Check,
    /// It spends steps, too many of which drop the packet.
    Steps,
    /// It ends the control or the parser.
    End,
    /// It looks up a table and runs an action.
    Table,
}

/// The bodies in which a statement is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Everywhere.
    Anywhere,
    /// In parsers.
    Parser,
    /// Everywhere but in parsers.
    Control,
    /// In deparsers.
    Deparser,
    /// In controls that apply tables.
    Tables,
    /// In controls that apply tables and in their actions, where packets keep their state between the
    /// pipelines; only in those of the given pipeline, if there is one.
    Whole(Option<Pipeline>),
    /// In controls that apply tables and in their actions; also in deparsers, where packets are deparsed
    /// between the pipelines.
    Message,
}

/// What holds of a statement, apart from its expressions.
struct Properties {
    effect: Effect,
    place: Place,
    /// The slots that it writes, without those of `header`.
    written: [Option<SlotId>; 2],
    /// The header whose validity, and perhaps fields, it sets.
    header: Option<HeaderId>,
}

impl Properties {
    fn of(effect: Effect, place: Place) -> Properties {
        Properties {
            effect,
            place,
            written: [None, None],
            header: None,
        }
    }

    fn writes(self, slot: SlotId) -> Properties {
        let written = [Some(slot), None];
        Properties { written, ..self }
    }

    fn sets(self, header: HeaderId) -> Properties {
        let header = Some(header);
        Properties { header, ..self }
    }
}

impl StmtKind {
    fn properties(&self) -> Properties {
        use StmtKind::*;
        let of = Properties::of;
        match self {
            Assign { dst, .. } | DirectMeterRead { dst, .. } => {
                of(Effect::None, Place::Anywhere).writes(*dst)
            }
            SetValid(header) | SetInvalid(header) => {
                of(Effect::None, Place::Anywhere).sets(*header)
            }
            If { .. } | Switch { .. } | Block { .. } | Break(_) => {
                of(Effect::None, Place::Anywhere)
            }
            Loop { .. } => of(Effect::Steps, Place::Anywhere),
            Exit => of(Effect::End, Place::Control),
            Apply {
                hit, action_run, ..
            } => Properties {
                written: [*hit, *action_run],
                ..of(Effect::Table, Place::Tables)
            },
            RegisterRead { dst, .. } | MeterExecute { dst, .. } | Random { dst, .. } => {
                of(Effect::State, Place::Anywhere).writes(*dst)
            }
            RegisterWrite { .. } | Count { .. } => of(Effect::State, Place::Anywhere),
            Hash { dst, payload, .. } => {
                let place = match payload {
                    true => Place::Control,
                    false => Place::Anywhere,
                };
                of(Effect::Slow, place).writes(*dst)
            }
            Clone { kind, .. } => {
                let pipeline = match kind {
                    CloneKind::IngressToEgress => Pipeline::INGRESS,
                    CloneKind::EgressToEgress => Pipeline::EGRESS,
                };
                of(Effect::Request, Place::Whole(Some(pipeline)))
            }
            Resubmit { .. } => of(Effect::Request, Place::Whole(Some(Pipeline::INGRESS))),
            Recirculate { .. } => of(Effect::Request, Place::Whole(Some(Pipeline::EGRESS))),
            Truncate { .. } => of(Effect::Cut, Place::Whole(None)),
            Digest { .. } => of(Effect::Message, Place::Message),
            Log { .. } => of(Effect::Message, Place::Anywhere),
            Assert { .. } => of(Effect::Check, Place::Anywhere),
            Extract { header, .. } => of(Effect::Packet, Place::Parser).sets(*header),
            Lookahead { dst, .. } => of(Effect::Packet, Place::Parser).writes(*dst),
            Advance { .. } => of(Effect::Packet, Place::Parser),
            Reject { .. } => of(Effect::End, Place::Parser),
            Emit(_) => of(Effect::Packet, Place::Deparser),
        }
    }

    /// Returns the bodies inside the statement; none for a statement without bodies.
    pub fn inner(&self) -> Vec<&[Stmt]> {
        match self {
            StmtKind::If {
                then, otherwise, ..
            } => vec![then, otherwise],
            StmtKind::Switch { cases, default, .. } => {
                let cases = cases.iter().map(|(_, body)| &body[..]);
                cases.chain([&default[..]]).collect()
            }
            StmtKind::Block { body, .. } | StmtKind::Loop { body, .. } => vec![body],
            _ => Vec::new(),
        }
    }

    /// Returns the expressions that the statement itself evaluates, without those of the statements inside of it.
    pub fn exprs(&self) -> Vec<&Expr> {
        use StmtKind::*;
        match self {
            Assign { value, .. } | Switch { value, .. } => vec![value],
            If { cond, .. } | Assert { cond } => vec![cond],
            Apply { keys, .. } => keys.iter().collect(),
            RegisterRead { index, .. } | Count { index, .. } | MeterExecute { index, .. } => {
                vec![index]
            }
            RegisterWrite { index, value, .. } => vec![index, value],
            Hash { data: values, .. } | Digest { values, .. } | Log { values, .. } => {
                values.iter().collect()
            }
            Random { low, high, .. } => vec![low, high],
            Clone { session: value, .. }
            | Truncate { length: value }
            | Advance { bits: value }
            | Reject { error: value } => vec![value],
            Extract { varbit_length, .. } => varbit_length.iter().collect(),
            DirectMeterRead { .. }
            | SetValid(_)
            | SetInvalid(_)
            | Block { .. }
            | Loop { .. }
            | Break(_)
            | Exit
            | Resubmit { .. }
            | Recirculate { .. }
            | Lookahead { .. }
            | Emit(_) => Vec::new(),
        }
    }

    /// Returns the slot to which the statement itself writes a value; `None` for statements that write none,
    /// for `Apply`, and for those that set headers.
    pub fn destination(&self) -> Option<SlotId> {
        let properties = self.properties();
        let [written, _] = properties.written;
        written.filter(|_| properties.effect != Effect::Table)
    }

    /// Returns the slots to which the statement itself writes, including the validity and the fields of the
    /// header that it sets. What the actions of a table write is not included.
    pub fn written(&self, program: &Program) -> impl Iterator<Item = SlotId> {
        let properties = self.properties();
        let header = properties.header.map(|id| &program.headers[id.index()]);
        let slots = header.map(|header| header.field_slots().chain([header.valid]));
        let destinations = properties.written.into_iter().flatten();
        destinations.chain(slots.into_iter().flatten())
    }

    /// Returns the header whose validity, and perhaps its fields, the statement itself sets; `None` if it sets none.
    pub fn header(&self) -> Option<HeaderId> {
        self.properties().header
    }

    /// Returns what the statement does besides evaluating expressions and writing slots.
    pub fn effect(&self) -> Effect {
        self.properties().effect
    }

    /// Returns the bodies in which the statement is allowed.
    pub fn place(&self) -> Place {
        self.properties().place
    }

    /// Returns whether the statement's own expressions read a slot for which `wanted` returns true.
    pub fn reads(&self, wanted: &dyn Fn(SlotId) -> bool) -> bool {
        self.exprs().into_iter().any(|expr| expr.reads(wanted))
    }
}
