//! The fast path: a packet that comes in at one port and leaves at another, both pipelines in one call of the executor.
//!
//! Nothing is allocated and nothing moved but the packet. A packet with other requests (clones, another round, replicas that the executor
//! does not make) leaves the fast path at a point where the slow path can go on; the observed behaviour is the same. It does not know how
//! the executor does it, and it is not taken while a trace is recorded.

use super::{Lineage, Output, Packet, Pass, Pending, Switch};
use crate::Time;
use crate::exec::{Exit, FastPath, FastPathContext, Stop};
use std::sync::Arc;

/// If at least this many packets of a burst ran before one left the fast path, as many will probably run again.
const STEADY: usize = 4;

/// Records in `outputs` the number, in its burst, of the received packet that caused them.
fn come_of(number: usize, outputs: &mut [Output]) {
    for output in outputs {
        output.arrival = number as u32;
    }
}

impl Switch {
    /// Runs packets, each given with the port at which it arrives, and all their copies until they leave or are
    /// dropped, one packet after the other. Appends what leaves to `out`, like [`Switch::receive`]. `packets` is
    /// empty afterwards.
    pub fn receive_burst(
        &mut self,
        now_ps: Time,
        packets: &mut Vec<(u32, Packet)>,
        out: &mut Vec<Output>,
    ) {
        self.receive_all(now_ps, packets, out);
        self.reuse(packets.drain(..).map(|(_, packet)| packet));
    }

    /// Keeps packets that are no longer needed, so that copies can use their memory; at most some thousands are kept.
    pub fn reuse(&mut self, packets: impl IntoIterator<Item = Packet>) {
        for packet in packets {
            self.scratch.spare.push(packet);
        }
    }

    /// Runs packets like [`Switch::receive_burst`], but leaves them in `packets`, with unspecified contents.
    #[inline]
    pub(super) fn receive_all(
        &mut self,
        now_ps: Time,
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
        now_ps: Time,
        packets: &mut Vec<(u32, Packet)>,
        (first, prefetched): (usize, usize),
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
            prefetched,
            steady,
            state: &mut scratch.fast_path_state,
            emitted: &mut scratch.emitted,
            runtime: &mut self.runtime,
        })
    }

    /// Runs the packet that left the fast path to its end, then those behind it on the fast path, until none is left
    /// or the fast path is no longer supported. Returns the number of the first packet that has not run.
    #[cold]
    fn after_stop(
        &mut self,
        now_ps: Time,
        packets: &mut Vec<(u32, Packet)>,
        stop: Stop,
        out: &mut Vec<Output>,
    ) -> usize {
        let (mut first, mut stop) = (0, stop);
        loop {
            let packet = std::mem::take(&mut packets[stop.packet].1);
            let (prefetched, steady) = (stop.prefetched, stop.packet - first >= STEADY);
            first = stop.packet + 1;
            let sent = out.len();
            self.leave_fast_path(now_ps, packet, stop, out);
            come_of(first - 1, &mut out[sent..]);
            match self.fast_path(now_ps, packets, (first, prefetched), steady, out) {
                FastPath::Done => return packets.len(),
                FastPath::Stopped(next) => stop = next,
                FastPath::Unsupported => return first,
            }
        }
    }

    /// Runs a packet to its end on the slow path, from the point at which it left the fast path (`stop`).
    fn leave_fast_path(&mut self, now_ps: Time, packet: Packet, stop: Stop, out: &mut Vec<Output>) {
        self.work_left = self.max_work;
        let mut work = self.work.take().unwrap_or_default();
        let pass = Pass {
            now_ps,
            packet,
            state: std::mem::take(&mut self.scratch.fast_path_state),
            lineage: Lineage::default(),
        };
        let mut unicast = None;
        if let Exit::AfterEgress(port) = stop.exit {
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
}
