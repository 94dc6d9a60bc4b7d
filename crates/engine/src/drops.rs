//! Why packets are dropped.

/// Why a packet went nowhere. Every drop is counted under one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// The program wants it after ingress: in v1model, `egress_spec` is the drop port.
    IngressDrop,
    /// The program wants it after egress.
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
    /// All of them, in order.
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
