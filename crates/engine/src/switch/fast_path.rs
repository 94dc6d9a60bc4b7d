//! The fast path: a packet that comes in at one port and leaves at another, both halves in one call of the executor.
//!
//! Nothing is allocated and nothing moved but the packet. Whatever asks for more (clones, replicas, another round) leaves the
//! fast path at a point where the slow path can go on; what is observed is the same. Replicas that ask for nothing
//! themselves do without the slow path's queue. It does not know how the executor does it, and it is not taken while
//! a trace is recorded.

use super::{
    AfterEgress, AfterIngress, Enqueued, Lineage, Output, Packet, PacketPath, Pass, Pending, Run,
    Switch, Work,
};
use crate::control::Replica;
use crate::exec::{DropReason, FastPath, FastPathContext, Stop, Way};
use crate::plan::EgressStart;
use std::sync::Arc;

/// So many packets that ran before one stopped make it likely that many will again.
const STEADY: usize = 4;

/// Says of which packet of a burst outputs came.
fn come_of(number: usize, outputs: &mut [Output]) {
    for output in outputs {
        output.arrival = number as u32;
    }
}

impl Switch {
    /// Runs packets, each with its port, and all their copies to the end, one packet after the other: as [`Switch::receive`] for
    /// each in turn. `packets` is empty afterwards.
    pub fn receive_burst(
        &mut self,
        now_ps: u64,
        packets: &mut Vec<(u32, Packet)>,
        out: &mut Vec<Output>,
    ) {
        self.receive_all(now_ps, packets, out);
        self.reuse(packets.drain(..).map(|(_, packet)| packet));
    }

    /// Takes packets that are done with, so that copies need no fresh memory; some hundreds at most are kept.
    pub fn reuse(&mut self, packets: impl IntoIterator<Item = Packet>) {
        for packet in packets {
            self.scratch.spare.push(packet);
        }
    }

    /// Runs packets; what is left of them has any contents afterwards.
    #[inline]
    pub(super) fn receive_all(
        &mut self,
        now_ps: u64,
        packets: &mut Vec<(u32, Packet)>,
        out: &mut Vec<Output>,
    ) {
        let mut first = 0;
        if self.has_fast_path && self.recorder.is_none() {
            match self.fast_path(now_ps, packets, (0, 0), true, out) {
                FastPath::Done => return,
                FastPath::Stopped(stop) => first = self.after_stop(now_ps, packets, stop, out),
                FastPath::Unsupported => self.has_fast_path = false,
            }
        }
        for (number, (port, packet)) in packets.iter_mut().enumerate().skip(first) {
            let sent = out.len();
            self.receive_any(now_ps, *port, std::mem::take(packet), out);
            come_of(number, &mut out[sent..]);
        }
    }

    #[inline]
    fn fast_path(
        &mut self,
        now_ps: u64,
        packets: &mut Vec<(u32, Packet)>,
        (first, ahead): (usize, usize),
        steady: bool,
        out: &mut Vec<Output>,
    ) -> FastPath {
        let program = Arc::as_ptr(&self.program).addr();
        if self.scratch.fast_path_state.is_empty() || self.scratch.state_of != program {
            self.scratch.fast_path_state = self.fresh_state();
            self.scratch.state_of = program;
        }
        self.runtime.set_now_ps(now_ps);
        let scratch = &mut *self.scratch;
        self.executor.fast_path(&mut FastPathContext {
            now_ps,
            packets,
            first,
            out,
            spare: &mut scratch.spare,
            replication: &self.replication,
            drops: &mut self.drops,
            ahead,
            steady,
            state: &mut scratch.fast_path_state,
            emitted: &mut scratch.emitted,
            runtime: &mut self.runtime,
        })
    }

    /// Goes on with a packet that stopped and the packets behind it, until none is left or none stays on the fast path. Gives
    /// the number of the first that is left.
    #[cold]
    fn after_stop(
        &mut self,
        now_ps: u64,
        packets: &mut Vec<(u32, Packet)>,
        stop: Stop,
        out: &mut Vec<Output>,
    ) -> usize {
        let (mut first, mut stop) = (0, stop);
        loop {
            let packet = std::mem::take(&mut packets[stop.packet].1);
            let (ahead, steady) = (stop.ahead, stop.packet - first >= STEADY);
            first = stop.packet + 1;
            let sent = out.len();
            self.leave_fast_path(now_ps, packet, stop, out);
            come_of(first - 1, &mut out[sent..]);
            match self.fast_path(now_ps, packets, (first, ahead), steady, out) {
                FastPath::Done => return packets.len(),
                FastPath::Stopped(next) => stop = next,
                FastPath::Unsupported => return first,
            }
        }
    }

    /// Takes a packet from where it left the fast path to the end.
    fn leave_fast_path(&mut self, now_ps: u64, packet: Packet, stop: Stop, out: &mut Vec<Output>) {
        self.work_left = self.max_work;
        let mut work = self.work.take().unwrap_or_default();
        if let Some(group) = self.is_multicast(&stop) {
            self.multicast_on_fast_path(now_ps, packet, group, &stop, &mut work, out);
            return self.work_from(now_ps, None, work, out);
        }
        let pass = Pass {
            now_ps,
            packet,
            state: std::mem::take(&mut self.scratch.fast_path_state),
            lineage: Lineage::default(),
        };
        let mut unicast = None;
        if let Way::AfterEgress(port) = stop.way {
            // Egress has its priority already.
            let copy = pass.enqueue(port, 0, stop.consumed, None);
            let output = self.after_egress(now_ps, copy, &stop.intents, &mut work.emissions);
            out.extend(output);
        } else {
            let enqueued = &mut work.enqueued;
            match self.after_ingress(pass, &stop.intents, stop.consumed, enqueued) {
                Pending::Done(copy) => unicast = copy,
                Pending::Again(pass) => unicast = self.ingress_pass(pass, enqueued),
            }
        }
        self.work_from(now_ps, unicast, work, out);
    }

    /// The group, if a packet stopped for its replicas and nothing else.
    fn is_multicast(&self, stop: &Stop) -> Option<u32> {
        if stop.way != Way::AfterIngress || stop.intents.drop.is_some() {
            return None;
        }
        let state = &self.scratch.fast_path_state;
        let verdict = self.plan.rules().after_ingress(state, &stop.intents);
        match (verdict.clone, verdict.next) {
            (None, AfterIngress::Multicast(group)) => Some(group),
            _ => None,
        }
    }

    /// Runs egress for the replicas of a packet whose state after ingress is that of the fast path; what they ask for is put to the work.
    fn multicast_on_fast_path(
        &mut self,
        now_ps: u64,
        packet: Packet,
        group: u32,
        stop: &Stop,
        work: &mut Work,
        out: &mut Vec<Output>,
    ) {
        let replicas = self.replication.take_replicas(group);
        let state = &mut self.scratch.fast_path_state;
        self.plan.rules().set_path(state, PacketPath::Replica);
        match replicas.split_last() {
            None => self.drops[DropReason::EmptyMulticastGroup as usize] += 1,
            Some((&last, others)) => {
                self.save_state();
                for &replica in others {
                    self.send_replica(now_ps, packet.clone(), replica, stop, work, out);
                    self.restore_state();
                }
                self.send_replica(now_ps, packet, last, stop, work, out);
            }
        }
        self.replication.give_back(group, replicas);
    }

    /// Keeps what egress may change of the state of the fast path.
    fn save_state(&mut self) {
        self.unchanged.clear();
        for range in &self.egress_changes {
            let limbs = &self.scratch.fast_path_state[range.clone()];
            self.unchanged.extend_from_slice(limbs);
        }
    }

    fn restore_state(&mut self) {
        let mut from = 0;
        for range in &self.egress_changes {
            let limbs = &self.unchanged[from..from + range.len()];
            self.scratch.fast_path_state[range.clone()].copy_from_slice(limbs);
            from += range.len();
        }
    }

    /// Runs egress for a replica, in the state of the fast path.
    fn send_replica(
        &mut self,
        now_ps: u64,
        mut packet: Packet,
        replica: Replica,
        stop: &Stop,
        work: &mut Work,
        out: &mut Vec<Output>,
    ) {
        let mut state = std::mem::take(&mut self.scratch.fast_path_state);
        let priority = self.plan.rules().priority(&state);
        let start = EgressStart {
            now_ps,
            enqueued_ps: now_ps,
            port: replica.port,
            rid: replica.rid,
            priority,
            enq_qdepth: 0,
            deq_qdepth: 0,
            payload_bytes: packet.len() - stop.consumed,
        };
        self.plan.start_egress(&mut state, start);
        let run = Run {
            now_ps,
            packet: &packet,
            consumed: stop.consumed,
            branch: 0,
        };
        let (intents, _) = self.run(run, &mut state, |e, cx| e.egress(cx));
        let verdict = (self.plan.rules()).after_egress(&state, &intents, replica.port);
        let leaves = verdict.clone.is_none() && verdict.next == AfterEgress::Send;
        if intents.drop.is_some() || !leaves {
            let copy = Enqueued {
                port: replica.port,
                rid: replica.rid,
                priority,
                enq_qdepth: 0,
                packet,
                state: state.clone(),
                consumed: stop.consumed,
                truncate: None,
                enqueued_ps: now_ps,
                lineage: Lineage::default(),
            };
            out.extend(self.after_egress(now_ps, copy, &intents, &mut work.emissions));
        } else {
            packet.replace_front(stop.consumed, &self.scratch.emitted);
            if let Some(length) = intents.truncate {
                packet.truncate(length as usize);
            }
            let port = replica.port;
            out.push(Output::new(port, packet));
        }
        self.scratch.fast_path_state = state;
    }
}
