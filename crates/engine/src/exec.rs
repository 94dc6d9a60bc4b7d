//! What an executor is: the two halves of the v1model pipeline, run on one packet.

use crate::runtime::Runtime;
use crate::trace::Trace;
use ir::FieldListId;

/// Runs a program's blocks. An executor holds the program (and, for machine code, its code) and nothing that changes.
///
/// Both halves read and write `cx.state`, laid out by [`ir::Layout`].
pub trait Executor: Send + Sync {
    /// Parser, checksum verification, ingress.
    ///
    /// On entry the state is zero but for the standard metadata and for slots preserved by a resubmit, recirculation or
    /// clone. On exit `cx.consumed` is the number of bytes that the parser took.
    fn ingress(&self, cx: &mut PacketContext<'_>);

    /// Parser only, for a clone from ingress to egress (which starts from the packet as it arrived).
    fn parse(&self, cx: &mut PacketContext<'_>);

    /// Egress, checksum computation, deparser.
    ///
    /// On exit `cx.emitted` holds the emitted headers. If the egress control left `egress_spec` at the drop port the deparser
    /// need not run; the engine drops the packet.
    fn egress(&self, cx: &mut PacketContext<'_>);
}

/// Everything that one half of the pipeline works on.
pub struct PacketContext<'a> {
    /// Time, in picoseconds.
    pub now_ps: u64,
    /// The slots.
    pub state: &'a mut [u64],
    /// The whole packet as it arrived (ingress), or as it was enqueued for egress; payload checksums read it from `consumed`.
    pub packet: &'a [u8],
    /// Bytes that the parser took.
    pub consumed: usize,
    /// Headers that the deparser emitted.
    pub emitted: &'a mut Vec<u8>,
    /// Tables and the other stateful objects of the switch.
    pub runtime: &'a mut Runtime,
    /// What the program asked the engine to do after this half.
    pub intents: Intents,
    /// Where the interpreter writes what happens; machine code ignores it.
    pub trace: Option<&'a mut Trace>,
}

/// Requests that a program makes with the externs of v1model; the last one of a kind counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intents {
    /// Clone session and what the copy preserves.
    pub clone: Option<(u32, Option<FieldListId>)>,
    /// Parse the original packet again.
    pub resubmit: Option<Option<FieldListId>>,
    /// Send the deparsed packet to the parser again.
    pub recirculate: Option<Option<FieldListId>>,
    /// Cut the outgoing packet to this many bytes.
    pub truncate: Option<u32>,
    /// The packet must be dropped, and why.
    pub drop: Option<DropReason>,
}

/// Why a packet went nowhere. Every drop is counted under one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// `egress_spec` was the drop port after ingress.
    IngressDrop,
    /// `egress_spec` was the drop port after egress.
    EgressDrop,
    /// The multicast group has no entry or no replica.
    EmptyMulticastGroup,
    /// The clone session does not exist (the original goes on).
    UnknownCloneSession,
    /// Too many backward transitions in parser loops or `for` loops.
    StepLimit,
    /// An `assert` was false.
    AssertFailed,
    /// Resubmitted or recirculated too often.
    RecirculationLimit,
}

impl DropReason {
    /// Name, as in `ingress_drop`.
    pub fn name(self) -> &'static str {
        match self {
            DropReason::IngressDrop => "ingress_drop",
            DropReason::EgressDrop => "egress_drop",
            DropReason::EmptyMulticastGroup => "empty_multicast_group",
            DropReason::UnknownCloneSession => "unknown_clone_session",
            DropReason::StepLimit => "step_limit",
            DropReason::AssertFailed => "assert_failed",
            DropReason::RecirculationLimit => "recirculation_limit",
        }
    }
}
