//! v1model.
//!
//! # Behaviour
//!
//! The behaviour is that of the reference target (`docs/simple_switch.md` of p4lang/behavioral-model). After ingress, in this order:
//!
//! 1. a requested clone is made of the packet as it arrived (it is parsed again, then goes to egress);
//! 2. digest messages have been sent;
//! 3. if `resubmit` was called, the packet as it arrived goes to the parser again, and nothing below happens;
//! 4. else if `mcast_grp` is not zero, one copy per replica of the group goes to egress;
//! 5. else if `egress_spec` is the drop port, the packet is dropped;
//! 6. else it goes to the egress of port `egress_spec`.
//!
//! After egress: a requested clone is made of the packet as the egress control left it (to egress, without parsing); then if
//! `egress_spec` is the drop port, the packet is dropped; else if `recirculate` was called, the deparsed packet goes to the
//! parser again; else it leaves at `egress_port`. A packet that an executor says must be dropped (step limit, failed
//! assertion) makes no clones and goes nowhere.
//!
//! `truncate` cuts what leaves at a port, to the shortest length requested. A packet made of it before then (a clone, a
//! replica of a group, a resubmitted or recirculated one) is as long as without `truncate`.
//!
//! # Where v1model differs from the reference target
//!
//! - Clones, resubmitted and recirculated packets keep `ingress_port` (there it becomes 0), and a clone from ingress keeps
//!   what the parser wrote to metadata when it parsed the clone (there it is reset).
//! - A chain of resubmissions, recirculations and clones of clones ends after [`crate::switch::MAX_PASSES`], and one received packet causes
//!   at most [`crate::switch::MAX_WORK`] of them in all; in real time all packets together cause so many per second
//!   ([`crate::Switch::set_copies_per_s`]). Packets beyond are dropped as [`crate::DropReason::RecirculationLimit`].

use super::{
    AfterEgress, AfterIngress, EgressStart, EgressVerdict, IngressVerdict, PS_PER_US, PacketPath,
    Place, Rules,
};
use crate::Time;
use crate::exec::Intents;
use ir::architecture::v1model::{DROP_PORT, StandardMetadata, instance_type};
use ir::{Input, Pipeline, Program, SlotId};

/// The positions of the standard metadata that the switch reads or writes.
#[derive(Clone, Debug)]
struct V1Model {
    standard: StandardMetadata<Place>,
    /// The metadata that is set when a packet begins egress: its position, and what it is set to.
    egress: Vec<(Place, Input)>,
    /// True if code that runs in egress reads `packet_length`.
    egress_reads_length: bool,
}

/// Makes the rules of v1model for a program; `place` returns the position of a metadata slot in the packet state.
pub(super) fn rules(program: &Program, place: &dyn Fn(SlotId) -> Place) -> Box<dyn Rules> {
    Box::new(V1Model::new(program, place))
}

impl V1Model {
    fn new(program: &Program, place: &dyn Fn(SlotId) -> Place) -> V1Model {
        let standard = StandardMetadata::of(&program.architecture);
        let egress_reads_length = egress_reads(program, standard.packet_length);
        // The path has been set, and the length may be unknown.
        let is_given = |input: &Input| match input {
            Input::PacketPath => false,
            Input::PacketBytes => egress_reads_length,
            _ => true,
        };
        let egress = standard.forwarding().egress.into_iter();
        V1Model {
            standard: standard.map(place),
            egress: egress
                .filter(|(_, input)| is_given(input))
                .map(|(slot, input)| (place(slot), input))
                .collect(),
            egress_reads_length,
        }
    }
}

impl Rules for V1Model {
    fn arrive(&self, state: &mut [u64], port: u32, bytes: usize) {
        self.standard.ingress_port.set(state, u64::from(port));
        self.standard.packet_length.set(state, bytes as u64);
    }

    fn set_ingress_time(&self, state: &mut [u64], now_ps: Time) {
        (self.standard.ingress_global_timestamp).set(state, now_ps.us());
    }

    fn derive(&self, state: &mut [u64], original: &[u64], path: PacketPath, bytes: usize) {
        self.standard.ingress_port.copy(state, original);
        self.standard.packet_length.set(state, bytes as u64);
        if matches!(path, PacketPath::IngressClone | PacketPath::EgressClone) {
            // A clone's ingress time is the original's.
            self.standard.ingress_global_timestamp.copy(state, original);
        }
        self.set_path(state, path);
    }

    fn set_path(&self, state: &mut [u64], path: PacketPath) {
        let value = match path {
            PacketPath::Unicast => instance_type::NORMAL,
            PacketPath::Replica => instance_type::REPLICATION,
            PacketPath::IngressClone => instance_type::INGRESS_CLONE,
            PacketPath::EgressClone => instance_type::EGRESS_CLONE,
            PacketPath::Resubmitted => instance_type::RESUBMITTED,
            PacketPath::Recirculated => instance_type::RECIRCULATED,
        };
        self.standard.instance_type.set(state, value);
    }

    fn after_ingress(&self, state: &[u64], intents: &Intents) -> IngressVerdict {
        let next = match (intents.resubmit, self.standard.mcast_grp.get(state) as u32) {
            (Some(preserve), _) => AfterIngress::Resubmit(preserve),
            (None, 0) => match self.standard.egress_spec.get(state) as u32 {
                DROP_PORT => AfterIngress::Drop,
                port => AfterIngress::Unicast(port),
            },
            (None, group) => AfterIngress::Multicast(group),
        };
        let clone = intents.clone;
        IngressVerdict { clone, next }
    }

    fn priority(&self, state: &[u64]) -> u8 {
        self.standard.priority.get(state) as u8
    }

    fn measures_in_egress(&self) -> bool {
        self.egress_reads_length
    }

    fn start_egress(&self, state: &mut [u64], start: &EgressStart, bytes: usize) {
        for &(place, input) in &self.egress {
            let value = match input {
                Input::OutputPort => start.port.into(),
                Input::ReplicaId => start.rid.into(),
                Input::Priority => start.priority.into(),
                Input::EnqueuedBehind => start.enq_qdepth.into(),
                Input::DequeuedBefore => start.deq_qdepth.into(),
                Input::NowUs => start.now_ps.us(),
                Input::EnqueuedUs => start.enqueued_ps.us(),
                Input::WaitedUs => (start.now_ps - start.enqueued_ps) / PS_PER_US,
                Input::PacketBytes => bytes as u64,
                Input::Zero | Input::ArrivalPort | Input::PacketPath => 0,
                Input::One => 1,
            };
            place.set(state, value);
        }
    }

    fn after_egress(&self, state: &[u64], intents: &Intents, _port: u32) -> EgressVerdict {
        let dropped = self.standard.egress_spec.get(state) as u32 == DROP_PORT;
        let next = match (dropped, intents.recirculate) {
            (true, _) => AfterEgress::Drop,
            (false, Some(preserve)) => AfterEgress::Recirculate(preserve),
            (false, None) => AfterEgress::Send,
        };
        let clone = intents.clone;
        EgressVerdict { clone, next }
    }
}

/// Returns true if code that may run in egress (an egress control, or any action) reads `slot`, or a field list
/// preserves it.
fn egress_reads(program: &Program, slot: SlotId) -> bool {
    let egress = program
        .architecture
        .description()
        .blocks_of(Pipeline::EGRESS);
    let actions = program.actions.iter().map(|a| &a.body[..]);
    let mut bodies = egress
        .map(|(block, _)| program.control(block))
        .chain(actions);
    let reads = |body| ir::statements(body).any(|stmt| stmt.kind.reads(&|read| read == slot));
    let mut lists = program.field_lists.iter();
    bodies.any(reads) || lists.any(|list| list.slots.contains(&slot))
}
