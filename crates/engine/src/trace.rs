//! The trace of one packet, step by step, for people and for tools.
//!
//! The interpreter and the switch append [`Event`]s; [`Trace::to_json`] and [`Trace`]'s `Display` show them. A copy of the
//! packet (clone, replica, resubmitted or recirculated packet) has a trace of its own inside the event that made it. The trace
//! holds ids and values; names and source lines come from the program when it is shown.

mod json;
mod tree;

use crate::Time;
use crate::drops::DropReason;
use crate::profile::Selection;
use ir::{
    Bits, BlockId, CounterId, DigestId, HashAlgorithm, HeaderId, KeyMatch, Loc, MeterId, Program,
    RegisterId, SlotId, StateId, TableId, Target,
};
use std::sync::Arc;

/// The trace of one packet, or of one copy of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    program: Arc<Program>,
    /// The events, in order.
    pub events: Vec<Event>,
}

/// Why there is a copy of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// Clone from ingress to egress.
    IngressClone,
    /// Clone from egress to egress.
    EgressClone,
    /// A replica for a multicast group.
    Replica,
    /// The original packet, to the parser again.
    Resubmit,
    /// The packet as deparsed, to the parser again.
    Recirculate,
}

/// An event, with the source line that caused it, unless the switch itself did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The kind.
    pub kind: EventKind,
    /// Source position.
    pub loc: Loc,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A packet arrived.
    Received {
        /// Time.
        now_ps: Time,
        /// Port.
        port: u32,
        /// Length.
        bytes: usize,
    },
    /// A block of the pipeline began.
    Block(BlockId),
    /// The parser entered a state.
    State(StateId),
    /// The parser extracted a header.
    Extract {
        /// The header.
        header: HeaderId,
        /// Its length in the packet.
        bytes: usize,
        /// Its fields' values.
        fields: Vec<Bits>,
    },
    /// The parser looked ahead.
    Lookahead {
        /// The destination of the value.
        dst: SlotId,
        /// The value.
        value: Bits,
    },
    /// The parser skipped this many bits.
    Advance(u64),
    /// The parser left a state.
    Transition {
        /// The key of the select, empty for an unconditional transition.
        keys: Vec<Bits>,
        /// The state that follows.
        target: Target,
    },
    /// The parser stopped with an error (index in the program's errors).
    ParserError(u64),
    /// A variable was assigned a value.
    Assign {
        /// The variable.
        dst: SlotId,
        /// The value.
        value: Bits,
    },
    /// A header became valid or invalid.
    SetValid {
        /// The header.
        header: HeaderId,
        /// Which.
        valid: bool,
    },
    /// The condition of an `if` was evaluated.
    Branch(bool),
    /// A `switch`.
    Switch {
        /// The value.
        value: Bits,
        /// The case that ran; `None` is the default.
        case: Option<usize>,
    },
    /// A table was applied.
    Table(Box<TableApplied>),
    /// A register was read.
    RegisterRead {
        /// The register.
        register: RegisterId,
        /// Cell.
        index: u64,
        /// The value.
        value: Bits,
    },
    /// A register was written.
    RegisterWrite {
        /// The register.
        register: RegisterId,
        /// Cell.
        index: u64,
        /// The value.
        value: Bits,
    },
    /// A counter counted.
    Count {
        /// The counter.
        counter: CounterId,
        /// Cell.
        index: u64,
    },
    /// A meter coloured the packet.
    Meter {
        /// The meter.
        meter: MeterId,
        /// Cell.
        index: u64,
        /// 0 green, 1 yellow, 2 red.
        colour: u8,
    },
    /// The colour that a direct meter gave to the hit was read.
    DirectMeter {
        /// The meter.
        meter: MeterId,
        /// 0 green, 1 yellow, 2 red.
        colour: u8,
    },
    /// A hash was computed.
    Hash {
        /// Function.
        algorithm: HashAlgorithm,
        /// The destination of the value.
        dst: SlotId,
        /// The value.
        value: Bits,
    },
    /// A random value was drawn.
    Random {
        /// The destination of the value.
        dst: SlotId,
        /// The value.
        value: Bits,
    },
    /// A clone was requested.
    Clone {
        /// Session.
        session: u32,
    },
    /// A resubmission was requested.
    Resubmit,
    /// A recirculation was requested.
    Recirculate,
    /// The outgoing packet will be cut to this many bytes.
    Truncate(u32),
    /// A digest message was sent.
    Digest {
        /// Type.
        digest: DigestId,
        /// Members.
        values: Vec<Bits>,
    },
    /// `log_msg`.
    Log(String),
    /// `assert`.
    Assert(bool),
    /// `exit`.
    Exit,
    /// A header was emitted, or left out because it is invalid.
    Emit {
        /// The header.
        header: HeaderId,
        /// Bytes emitted; `None` when it is invalid.
        bytes: Option<usize>,
    },
    /// The packet was handed to the egress of a port.
    Enqueued {
        /// Port.
        port: u32,
        /// `egress_rid`.
        rid: u16,
    },
    /// A copy was made; its own trace shows what happened to it.
    Copy {
        /// Why.
        kind: CopyKind,
        /// Which: number of the copy's own trace while recording.
        branch: usize,
        /// Its events.
        trace: Vec<Event>,
    },
    /// Stands for the copies beyond [`MAX_COPIES`]: how many they were, and where they ended.
    LeftOut(LeftOut),
    /// The packet left.
    Sent {
        /// Port.
        port: u32,
        /// Length.
        bytes: usize,
    },
    /// The packet was dropped.
    Dropped(DropReason),
}

/// The copies of a packet beyond those that its trace shows, as numbers: an endless recirculation also has a readable
/// trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Number of the copies.
    pub copies: usize,
    /// The number of packets sent by these copies.
    pub sent: usize,
    /// The number of these packets that were dropped, by reason.
    pub dropped: Vec<(DropReason, usize)>,
}

/// The most copies of one packet that a trace shows.
pub const MAX_COPIES: usize = 64;

/// A table lookup and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableApplied {
    /// The table.
    pub table: TableId,
    /// Values of the key fields.
    pub keys: Vec<Bits>,
    /// The matches and the priority of the entry that was found; `None` after a miss.
    pub entry: Option<(Vec<KeyMatch>, i32)>,
    /// How the action was selected, if the table has an action profile or selector.
    pub selection: Option<Selection>,
    /// The direct meter's colour for the hit, if the table has one.
    pub colour: Option<u8>,
    /// The position in the table's actions of the action that runs; their number if no member was selectable.
    pub action: u32,
    /// Its arguments.
    pub args: Vec<Bits>,
}

impl Trace {
    /// Makes an empty trace of a program.
    pub fn new(program: Arc<Program>) -> Trace {
        Trace {
            program,
            events: Vec::new(),
        }
    }

    /// Returns the program to which the ids in the trace refer.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Appends an event, with its location in the source.
    pub fn push(&mut self, kind: EventKind, loc: Loc) {
        self.events.push(Event { kind, loc });
    }

    /// Returns the trace without assignments to variables, the form that most readers want.
    pub fn without_assignments(mut self) -> Trace {
        self.events = without_assignments(self.events);
        self
    }

    /// Returns a location in the source as `file:line`; `None` if the location is unknown.
    fn place(&self, loc: Loc) -> Option<String> {
        let file = self.program.files.get(loc.file as usize)?;
        (loc.line != 0).then(|| format!("{file}:{}", loc.line))
    }
}

fn without_assignments(mut events: Vec<Event>) -> Vec<Event> {
    events.retain(|event| !matches!(event.kind, EventKind::Assign { .. }));
    for event in &mut events {
        if let EventKind::Copy { trace, .. } = &mut event.kind {
            *trace = without_assignments(std::mem::take(trace));
        }
    }
    events
}

/// The traces of a packet and of all its copies while they are recorded.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    program: Arc<Program>,
    branches: Vec<Trace>,
}

impl Recorder {
    pub(crate) fn new(program: Arc<Program>) -> Recorder {
        Recorder {
            branches: vec![Trace::new(program.clone())],
            program,
        }
    }

    pub(crate) fn branch_mut(&mut self, branch: usize) -> &mut Trace {
        &mut self.branches[branch]
    }

    /// Records in the trace number `parent` that a copy was made, and returns the number of the copy's own trace.
    pub(crate) fn fork(&mut self, parent: usize, kind: CopyKind) -> usize {
        let branch = self.branches.len();
        self.branches.push(Trace::new(self.program.clone()));
        let copy = EventKind::Copy {
            kind,
            branch,
            trace: Vec::new(),
        };
        self.branches[parent].push(copy, Loc::default());
        branch
    }

    /// Moves every copy's trace into the event that made the copy, and returns the whole.
    pub(crate) fn finish(mut self) -> Trace {
        // A copy's number is greater than that of what it was copied from.
        let mut finished: Vec<Vec<Event>> = vec![Vec::new(); self.branches.len()];
        let mut left_out: Vec<LeftOut> = vec![LeftOut::default(); self.branches.len()];
        while self.branches.len() > 1 {
            let Some(last) = self.branches.pop() else {
                break;
            };
            let branch = self.branches.len();
            match branch > MAX_COPIES {
                true => left_out[branch] = summary(&last.events, &left_out),
                false => finished[branch] = adopt(last.events, &mut finished, &left_out),
            }
        }
        let mut root = self.branches.remove(0);
        root.events = adopt(root.events, &mut finished, &left_out);
        root
    }
}

/// Moves the trace of each copy into the event that made the copy. Removes the events of copies beyond
/// [`MAX_COPIES`], and puts one event with their summary in place of the first.
fn adopt(events: Vec<Event>, finished: &mut [Vec<Event>], left_out: &[LeftOut]) -> Vec<Event> {
    let mut out: Vec<Event> = Vec::with_capacity(events.len());
    let mut rest: Option<usize> = None;
    for mut event in events {
        if let EventKind::Copy { branch, trace, .. } = &mut event.kind {
            if *branch > MAX_COPIES {
                let at = *rest.get_or_insert_with(|| {
                    let kind = EventKind::LeftOut(LeftOut::default());
                    out.push(Event {
                        kind,
                        loc: Loc::default(),
                    });
                    out.len() - 1
                });
                if let EventKind::LeftOut(all) = &mut out[at].kind {
                    all.add(&left_out[*branch]);
                }
                continue;
            }
            *trace = std::mem::take(&mut finished[*branch]);
        }
        out.push(event);
    }
    out
}

/// Summarises what happened to a copy and to all copies made from it.
fn summary(events: &[Event], left_out: &[LeftOut]) -> LeftOut {
    let mut all = LeftOut {
        copies: 1,
        ..LeftOut::default()
    };
    for event in events {
        match &event.kind {
            EventKind::Copy { branch, .. } => all.add(&left_out[*branch]),
            EventKind::Sent { .. } => all.sent += 1,
            EventKind::Dropped(reason) => all.drop(*reason, 1),
            _ => {}
        }
    }
    all
}

impl LeftOut {
    fn add(&mut self, other: &LeftOut) {
        self.copies += other.copies;
        self.sent += other.sent;
        for (reason, count) in &other.dropped {
            self.drop(*reason, *count);
        }
    }

    fn drop(&mut self, reason: DropReason, count: usize) {
        match self.dropped.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, known)) => *known += count,
            None => self.dropped.push((reason, count)),
        }
    }
}

/// Writes a value in hexadecimal, with all digits of its width.
pub(crate) fn hex(value: &Bits) -> String {
    let digits = value.width().div_ceil(4) as usize;
    let mut text = String::with_capacity(digits + 2);
    text.push_str("0x");
    for i in (0..digits as u32).rev() {
        let nibble = (0..4).fold(0, |n, bit| n | u32::from(value.bit(4 * i + bit)) << bit);
        text.extend(char::from_digit(nibble, 16));
    }
    text
}

/// Writes a match in the usual notation: `value/length`, `value &&& mask`, `low..high`, or `*`.
fn match_text(key_match: &KeyMatch) -> String {
    match key_match {
        KeyMatch::Value(value) => hex(value),
        KeyMatch::Any => "*".to_string(),
        KeyMatch::Prefix { value, prefix_len } => format!("{}/{prefix_len}", hex(value)),
        KeyMatch::Masked { value, mask } => format!("{} &&& {}", hex(value), hex(mask)),
        KeyMatch::Range { low, high } => format!("{}..{}", hex(low), hex(high)),
    }
}

/// Describes in words which member, of which group or set, was selected for a table hit.
fn selection_text(selection: &Selection) -> String {
    let member = |member: Option<u32>| match member {
        Some(id) => format!("member {id}"),
        None => "an action".to_string(),
    };
    let from = match (selection.group_id, selection.choice) {
        (Some(group), _) => format!("group {group}"),
        (None, Some(_)) => "its set".to_string(),
        (None, None) if selection.member_id.is_some() => return member(selection.member_id),
        (None, None) => "its set".to_string(),
    };
    match selection.choice {
        Some((position, hash)) => format!(
            "{from} selects {} at position {position} by hash {hash:#x}",
            member(selection.member_id)
        ),
        None => format!("{from} has nothing to select"),
    }
}

fn colour_name(colour: u8) -> &'static str {
    match colour {
        0 => "green",
        1 => "yellow",
        _ => "red",
    }
}

impl Trace {
    fn error_name(&self, error: u64) -> String {
        match self.program.errors.get(error as usize) {
            Some(name) => name.clone(),
            None => format!("number {error}"),
        }
    }
}

impl CopyKind {
    /// Returns the name of the kind of copy, such as `ingress_clone`.
    pub fn name(self) -> &'static str {
        match self {
            CopyKind::IngressClone => "ingress_clone",
            CopyKind::EgressClone => "egress_clone",
            CopyKind::Replica => "replica",
            CopyKind::Resubmit => "resubmit",
            CopyKind::Recirculate => "recirculate",
        }
    }
}

impl EventKind {
    /// Returns the name of the kind of event, such as `extract`.
    pub fn name(&self) -> &'static str {
        use EventKind::*;
        match self {
            Received { .. } => "received",
            Block(_) => "block",
            State(_) => "state",
            Extract { .. } => "extract",
            Lookahead { .. } => "lookahead",
            Advance(_) => "advance",
            Transition { .. } => "transition",
            ParserError(_) => "parser_error",
            Assign { .. } => "assign",
            SetValid { .. } => "set_valid",
            Branch(_) => "branch",
            Switch { .. } => "switch",
            Table(_) => "table",
            RegisterRead { .. } => "register_read",
            RegisterWrite { .. } => "register_write",
            Count { .. } => "count",
            Meter { .. } => "meter",
            DirectMeter { .. } => "direct_meter",
            Hash { .. } => "hash",
            Random { .. } => "random",
            Clone { .. } => "clone",
            Resubmit => "resubmit",
            Recirculate => "recirculate",
            Truncate(_) => "truncate",
            Digest { .. } => "digest",
            Log(_) => "log",
            Assert(_) => "assert",
            Exit => "exit",
            Emit { .. } => "emit",
            Enqueued { .. } => "enqueued",
            Copy { .. } => "copy",
            LeftOut(_) => "left_out",
            Sent { .. } => "sent",
            Dropped(_) => "dropped",
        }
    }
}
