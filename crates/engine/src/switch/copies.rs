//! The slow path of copies: replicas of a multicast group, clones from ingress and from egress, and packets that go round again.
//!
//! Each gets its state from its original's here, and its place in the trace. The caller decides what a program requested, and when
//! it counts.

use super::{Emission, Enqueued, Lineage, MAX_PASSES, PacketPath, Pass, Recirculated, Run, Switch};
use crate::Time;
use crate::exec::DropReason;
use crate::replication::{CloneSession, Replica};
use crate::trace::CopyKind;
use ir::FieldListId;

impl Switch {
    pub(super) fn multicast(&mut self, group: u32, copy: Enqueued, out: &mut Vec<Enqueued>) {
        let replicas = self.replication.take_replicas(group);
        if replicas.is_empty() {
            self.drop_packet(DropReason::EmptyMulticastGroup, copy.state, copy.lineage);
        } else {
            self.replicate(copy, &replicas, |copy| out.push(copy));
        }
        self.replication.give_back(group, replicas);
    }

    /// Passes the copies of a clone, one for each replica, to `enqueue`. If there is only one replica, the clone
    /// itself is passed.
    fn replicate_clone(
        &mut self,
        mut clone: Enqueued,
        replicas: &[Replica],
        mut enqueue: impl FnMut(Enqueued),
    ) {
        let [only] = replicas else {
            return self.replicate(clone, replicas, enqueue);
        };
        (clone.port, clone.rid) = (only.port, only.rid);
        self.note_enqueued(&clone);
        enqueue(clone);
    }

    /// Passes copies of a packet, one for each replica, to `enqueue` in order. The last copy uses the packet's
    /// memory. If the packet is a copy itself, each replica but the first counts towards the limits on copies, so
    /// that a packet cannot multiply without end.
    fn replicate(
        &mut self,
        original: Enqueued,
        replicas: &[Replica],
        mut enqueue: impl FnMut(Enqueued),
    ) {
        let parent = original.lineage.branch;
        let mut original = Some(original);
        let passes = original.as_ref().map_or(0, |o| o.lineage.passes);
        for (i, replica) in replicas.iter().enumerate() {
            if i > 0 && passes > 0 && !self.take_work(passes) {
                self.drops[DropReason::RecirculationLimit as usize] += (replicas.len() - i) as u64;
                break;
            }
            let copy = if i + 1 == replicas.len() {
                original.take()
            } else {
                original.as_ref().map(|o| self.duplicate(o))
            };
            let Some(mut copy) = copy else { break };
            (copy.port, copy.rid) = (replica.port, replica.rid);
            copy.lineage.branch = self.fork(parent, CopyKind::Replica);
            self.note_enqueued(&copy);
            enqueue(copy);
        }
        if let Some(unused) = original {
            self.free_states.push(unused.state);
        }
    }

    fn duplicate(&mut self, original: &Enqueued) -> Enqueued {
        let mut state = self.free_states.pop().unwrap_or_default();
        state.clear();
        state.extend_from_slice(&original.state);
        Enqueued {
            state,
            packet: original.packet.clone(),
            ..*original
        }
    }

    /// Makes a clone of a received packet as it arrived, and appends the clone's copies for egress to `out`. The
    /// clone keeps the metadata fields of the list `preserve`. It is parsed again: by this function, or by egress if
    /// the architecture's egress has a parser. Makes no clone without a session `session`, or if the limits on copies
    /// forbid it.
    pub(super) fn clone_ingress(
        &mut self,
        original: &Pass,
        session: u32,
        preserve: Option<FieldListId>,
        out: &mut Vec<Enqueued>,
    ) {
        let found = self.clone_session(session, original.lineage, CopyKind::IngressClone);
        let Some((session, lineage)) = found else {
            return;
        };
        let mut state = self.fresh_state();
        let (path, bytes) = (PacketPath::IngressClone, original.packet.len());
        self.plan
            .derive(&mut state, &original.state, preserve, path, bytes);
        let mut consumed = 0;
        // Unless egress does.
        if !self.plan.deparses_between() {
            let run = Run {
                now_ps: original.now_ps,
                packet: &original.packet,
                consumed: 0,
                branch: lineage.branch,
            };
            let (intents, taken) = self.run(run, &mut state, |e, cx| e.parse(cx));
            if let Some(reason) = intents.drop {
                return self.drop_packet(reason, state, lineage);
            }
            // Preserved fields have their final values from ingress, independent of the parser's last run.
            self.plan.preserve(&mut state, &original.state, preserve);
            self.plan.rules().set_path(&mut state, path);
            consumed = taken;
        }
        let mut packet = original.packet.clone();
        if session.packet_length_bytes != 0 {
            packet.truncate((session.packet_length_bytes as usize).max(consumed));
        }
        let pass = Pass {
            now_ps: original.now_ps,
            packet,
            state,
            lineage,
        };
        let clone = pass.enqueue(0, session.class_of_service, consumed, None);
        self.replicate_clone(clone, &session.replicas, |copy| out.push(copy));
    }

    /// Makes a clone of the packet as the egress control left it, and appends its copies, which go through egress
    /// again, to `out`. The clone keeps the metadata fields of the list `preserve`. Makes no clone without a session
    /// `session`, or if the limits on copies forbid it.
    pub(super) fn clone_egress(
        &mut self,
        now_ps: Time,
        original: &Enqueued,
        session: u32,
        preserve: Option<FieldListId>,
        out: &mut Vec<Emission>,
    ) {
        let found = self.clone_session(session, original.lineage, CopyKind::EgressClone);
        let Some((session, lineage)) = found else {
            return;
        };
        let twice = self.plan.deparses_between();
        // Headers of a packet that is not deparsed yet are in its state.
        let headers = match twice {
            true => 0,
            false => self.plan.headers_bytes(&original.state),
        };
        let mut packet = original.packet.clone();
        if session.packet_length_bytes != 0 {
            let payload = (session.packet_length_bytes as usize).saturating_sub(headers);
            packet.truncate(original.consumed + payload);
        }
        let bytes = headers + packet.len() - original.consumed;
        let path = PacketPath::EgressClone;
        let mut state = self.fresh_state();
        self.plan
            .derive(&mut state, &original.state, preserve, path, bytes);
        if !twice {
            self.plan.copy_headers(&mut state, &original.state);
        }
        let pass = Pass {
            now_ps,
            packet,
            state,
            lineage,
        };
        let clone = pass.enqueue(0, session.class_of_service, original.consumed, None);
        self.replicate_clone(clone, &session.replicas, |copy| {
            out.push(Emission::Enqueued(copy))
        });
    }

    /// Returns the clone session `id` and the lineage (number of passes, and trace) of a clone of the packet with
    /// `lineage`. If there is no such session, or a limit forbids the clone, counts a dropped clone and returns
    /// `None`.
    fn clone_session(
        &mut self,
        id: u32,
        lineage: Lineage,
        kind: CopyKind,
    ) -> Option<(CloneSession, Lineage)> {
        if self.replication.session(id).is_none() {
            self.count_drop(DropReason::UnknownCloneSession, lineage);
            return None;
        }
        let Some(descendant) = self.descend(lineage, kind) else {
            self.count_drop(DropReason::RecirculationLimit, lineage);
            return None;
        };
        // Not before the limits allow it: a session may have many replicas.
        Some((self.replication.session(id)?.clone(), descendant))
    }

    pub(super) fn recirculate_copy(
        &mut self,
        copy: Enqueued,
        preserve: Option<FieldListId>,
        out: &mut Vec<Emission>,
    ) {
        let Some(lineage) = self.descend(copy.lineage, CopyKind::Recirculate) else {
            return self.drop_packet(DropReason::RecirculationLimit, copy.state, copy.lineage);
        };
        let mut state = self.fresh_state();
        self.plan.derive(
            &mut state,
            &copy.state,
            preserve,
            PacketPath::Recirculated,
            copy.packet.len(),
        );
        self.free_states.push(copy.state);
        out.push(Emission::Recirculated(Recirculated {
            packet: copy.packet,
            state,
            lineage,
        }));
    }

    /// Counts one more pass of a packet that is resubmitted, recirculated or cloned, and returns its new lineage
    /// (number of passes, and trace); `None` if the limits on copies forbid the pass.
    pub(super) fn descend(&mut self, lineage: Lineage, kind: CopyKind) -> Option<Lineage> {
        if lineage.passes >= MAX_PASSES || !self.take_work(lineage.passes) {
            return None;
        }
        Some(Lineage {
            passes: lineage.passes + 1,
            branch: self.fork(lineage.branch, kind),
        })
    }

    /// Uses up one of the copies that the limits allow (per received packet, and per second), for a packet that has
    /// made `passes` passes; returns `false` if none is left.
    fn take_work(&mut self, passes: u32) -> bool {
        let now_ps = self.runtime.now_ps();
        let rate = &mut self.work_rate;
        let allowed =
            self.work_left > 0 && rate.as_mut().is_none_or(|rate| rate.take(now_ps, passes));
        self.work_left -= u32::from(allowed);
        allowed
    }
}
