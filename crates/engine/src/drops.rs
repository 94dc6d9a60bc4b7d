//! Why packets are dropped.

/// Why a packet was dropped. Every drop is counted under one of these reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// The program dropped it in ingress: in v1model, `egress_spec` is the drop port.
    IngressDrop,
    /// The program dropped it in egress.
    EgressDrop,
    /// Its multicast group does not exist or has no replica.
    EmptyMulticastGroup,
    /// The clone session of a clone does not exist (the original goes on).
    UnknownCloneSession,
    /// It took too many backward transitions in parser loops or `for` loops.
    StepLimit,
    /// An `assert` was false.
    AssertFailed,
    /// It was resubmitted or recirculated too often.
    RecirculationLimit,
}

impl DropReason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [DropReason; 7] = [
        DropReason::IngressDrop,
        DropReason::EgressDrop,
        DropReason::EmptyMulticastGroup,
        DropReason::UnknownCloneSession,
        DropReason::StepLimit,
        DropReason::AssertFailed,
        DropReason::RecirculationLimit,
    ];

    /// Returns the name of the reason, such as `ingress_drop`.
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
