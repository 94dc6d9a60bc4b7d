//! The straight way: a packet that comes in at one port and leaves at another, both halves in one call of the executor.
//!
//! Nothing is allocated and nothing moved but the packet. Whatever asks for more (clones, replicas, another round) leaves the
//! straight way at a point where the general one can go on; what is observed is the same. It does not know how the
//! executor does it, and it is not taken while a trace is recorded.

use super::{AfterIngress, Lineage, Output, Packet, Pass, Switch};
use crate::exec::{Intents, StraightContext, Way};

/// Where a packet left the straight way, and with what.
struct Stop {
    way: Way,
    intents: Intents,
    consumed: usize,
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
        out.reserve(packets.len());
        for (port, packet) in packets.drain(..) {
            self.receive(now_ps, port, packet, out);
        }
    }

    /// Runs a packet on the straight way and, if need be, to the end; gives it back, with nothing done, if there is no such way now.
    #[inline]
    pub(super) fn receive_straight(
        &mut self,
        now_ps: u64,
        port: u32,
        mut packet: Packet,
        out: &mut Vec<Output>,
    ) -> Option<Packet> {
        if !self.has_straight || self.recorder.is_some() {
            return Some(packet);
        }
        if self.straight_state.is_empty() {
            self.straight_state = self.fresh_state();
        }
        self.runtime.set_now_ps(now_ps);
        let mut cx = StraightContext {
            now_ps,
            port,
            packet: &mut packet,
            state: &mut self.straight_state,
            emitted: &mut self.emitted,
            runtime: &mut self.runtime,
            consumed: 0,
            intents: Intents::default(),
        };
        match self.executor.straight(&mut cx) {
            Some(Way::Sent(port)) => out.push(Output { port, packet }),
            Some(Way::Dropped(reason)) => self.drops[reason as usize] += 1,
            Some(way) => {
                let stop = Stop {
                    way,
                    intents: cx.intents,
                    consumed: cx.consumed,
                };
                self.leave_straight(now_ps, packet, stop, out);
            }
            None => {
                self.has_straight = false;
                return Some(packet);
            }
        }
        None
    }

    /// Goes on in the general way.
    #[cold]
    fn leave_straight(&mut self, now_ps: u64, packet: Packet, stop: Stop, out: &mut Vec<Output>) {
        self.work_left = self.max_work;
        let mut work = self.work.take().unwrap_or_default();
        let pass = Pass {
            now_ps,
            packet,
            state: std::mem::take(&mut self.straight_state),
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
                AfterIngress::Done(copy) => unicast = copy,
                AfterIngress::Again(pass) => unicast = self.ingress_pass(pass, enqueued),
            }
        }
        self.work_from(now_ps, unicast, work, out);
    }
}
