//! One switch: it handles a packet before, between and after the ingress and egress pipelines. The program's architecture decides
//! ([`crate::architecture`]); this file makes, queues and bounds copies for all architectures.
//!
//! # Two uses
//!
//! [`Switch::receive`] runs a packet and all its copies to the end, [`Switch::receive_burst`] many packets one after the other. A
//! traffic manager that queues between ingress and egress calls [`Switch::ingress`], keeps the [`Enqueued`] copies as long as it wants,
//! and calls [`Switch::egress`] for each.

mod copies;
mod fast_path;
mod takeover;

use crate::Time;
use crate::architecture::{AfterEgress, AfterIngress, EgressStart, PacketPath};
use crate::exec::{DropReason, Executor, Intents, PacketContext};
use crate::interpreter::Interpreter;
use crate::packet::{Output, Packet, Spare};
use crate::plan::Plan;
use crate::replication::Replication;
use crate::runtime::Runtime;
use crate::snapshots::Snapshots;
use crate::trace::{CopyKind, EventKind, Recorder, Trace};
use crate::work_rate::WorkRate;
use ir::{Bridged, Loc, Pipeline, Program};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The most resubmissions, recirculations and clones of clones in a chain that begins with one received packet.
pub const MAX_PASSES: u32 = 1024;

/// The most resubmissions, recirculations and clones that one received packet causes in all.
pub const MAX_WORK: u32 = 4096;

/// The parameters of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchConfig {
    /// The port that leads to the control plane. The switch treats it like any other port; it is stored for the
    /// switch's owner.
    pub cpu_port: u32,
    /// The seed of the generator behind `random`.
    pub seed: u64,
}

impl Default for SwitchConfig {
    fn default() -> SwitchConfig {
        SwitchConfig {
            cpu_port: 510,
            seed: 0,
        }
    }
}

/// A copy of a packet between ingress and egress.
#[derive(Debug)]
pub struct Enqueued {
    /// The port at which it is to leave.
    pub port: u32,
    /// Its `egress_rid`.
    pub rid: u16,
    /// Its `priority`, 0 to 7.
    pub priority: u8,
    /// The number of packets ahead of it in the queue when it was enqueued; a traffic manager sets it.
    pub enq_qdepth: u32,
    /// The packet as it entered ingress.
    packet: Packet,
    state: Vec<u64>,
    consumed: usize,
    truncate: Option<u32>,
    enqueued_ps: Time,
    lineage: Lineage,
}

impl Enqueued {
    /// Returns the packet's length in bytes when it entered ingress, which is also its size in a queue between ingress
    /// and egress.
    pub fn bytes(&self) -> usize {
        self.packet.len()
    }

    /// Returns the packet as it entered ingress; its headers may have been changed since.
    pub fn packet(&self) -> &Packet {
        &self.packet
    }

    /// Sets the time at which the copy was enqueued for egress, and the number of packets that were in the queue
    /// before it. By default, a copy is enqueued when it enters ingress, in an empty queue.
    pub fn set_enqueued(&mut self, now_ps: Time, enq_qdepth: u32) {
        self.enqueued_ps = now_ps;
        self.enq_qdepth = enq_qdepth;
    }
}

/// A recirculated packet on its way from the deparser to the parser.
#[derive(Debug)]
pub struct Recirculated {
    packet: Packet,
    /// The packet state: zero except for the standard metadata and the preserved fields.
    state: Vec<u64>,
    lineage: Lineage,
}

impl Recirculated {
    /// Returns the length in bytes of the packet that is recirculated.
    pub fn bytes(&self) -> usize {
        self.packet.len()
    }

    /// Returns the packet that is recirculated, as it left the deparser.
    pub fn packet(&self) -> &Packet {
        &self.packet
    }
}

/// What a copy inherits from its original.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lineage {
    /// The resubmissions, recirculations and clones on its way so far.
    passes: u32,
    /// The number of its own trace while a trace is recorded.
    branch: usize,
}

/// A packet on its way through ingress.
struct Pass {
    now_ps: Time,
    packet: Packet,
    state: Vec<u64>,
    lineage: Lineage,
}

impl Pass {
    /// Turns the packet into a copy that waits between ingress and egress, and is cut to `truncate` bytes when it
    /// leaves if that is given. The port of a replica is set later.
    fn enqueue(self, port: u32, priority: u8, consumed: usize, truncate: Option<u32>) -> Enqueued {
        Enqueued {
            port,
            rid: 0,
            priority,
            enq_qdepth: 0,
            packet: self.packet,
            state: self.state,
            consumed,
            truncate,
            enqueued_ps: self.now_ps,
            lineage: self.lineage,
        }
    }
}

/// What remains to be done with a packet after ingress.
enum Pending {
    /// Its other copies are enqueued; this one, if any, is to be enqueued.
    Done(Option<Enqueued>),
    /// It is resubmitted.
    Again(Pass),
}

impl EgressStart {
    fn new(copy: &Enqueued, now_ps: Time, deq_qdepth: u32) -> EgressStart {
        EgressStart {
            now_ps,
            enqueued_ps: copy.enqueued_ps,
            port: copy.port,
            rid: copy.rid,
            priority: copy.priority,
            enq_qdepth: copy.enq_qdepth,
            deq_qdepth,
            payload_bytes: copy.packet.len() - copy.consumed,
        }
    }
}

/// The input of an executor, besides the packet state.
struct Run<'a> {
    now_ps: Time,
    packet: &'a Packet,
    consumed: usize,
    branch: usize,
}

/// What comes out of egress for a copy.
#[derive(Debug)]
pub enum Emission {
    /// A packet that leaves the switch.
    Output(Output),
    /// A clone from egress, which goes to egress itself.
    Enqueued(Enqueued),
    /// A packet for [`Switch::recirculate`].
    Recirculated(Recirculated),
}

/// Buffers for running packets that hold nothing between packets, so that switches can use them in turn
/// ([`Switch::swap_scratch`]).
#[derive(Debug, Default)]
pub struct Scratch {
    spare: Spare,
    /// The headers that the deparser emitted.
    emitted: Vec<u8>,
    /// The packet state on the fast path; empty after another buffer has taken it over.
    fast_path_state: Vec<u64>,
    /// The address of the program for whose slots the state is laid out.
    state_of: usize,
}

/// One switch. Its fields are in the order in which most packets need them: in a network of many switches, few of its
/// cache lines are loaded.
#[repr(C)]
pub struct Switch {
    executor: Arc<dyn Executor>,
    scratch: Box<Scratch>,
    recorder: Option<Box<Recorder>>,
    /// The number of bytes of a packet that the program can read.
    reach_bytes: usize,
    /// True if the executor has a fast path.
    has_fast_path: bool,
    config: SwitchConfig,
    runtime: Runtime,
    replication: Replication,
    snapshots: Snapshots,
    plan: Plan,
    program: Arc<Program>,
    /// The number of drops, by reason.
    drops: [u64; DropReason::ALL.len()],
    /// The most resubmissions, recirculations and clones that one received packet may cause.
    max_work: u32,
    /// How many of them the packet being received may still cause.
    work_left: u32,
    /// The limit of their rate; simulated switches have none.
    work_rate: Option<WorkRate>,
    interpreter: Option<Arc<Interpreter>>,
    // Buffers that are used again from packet to packet.
    free_states: Vec<Vec<u64>>,
    /// A buffer for one packet, empty between calls.
    single: Vec<(u32, Packet)>,
    work: Option<Box<Work>>,
}

/// The packets that wait while [`Switch::receive`] runs.
#[derive(Default)]
struct Work {
    /// Copies that just left ingress, to be appended to `queue`.
    enqueued: Vec<Enqueued>,
    /// What just left egress.
    emissions: Vec<Emission>,
    /// Copies that wait for egress.
    queue: VecDeque<Enqueued>,
    /// Recirculated packets that wait for ingress until `queue` is empty.
    again: VecDeque<Recirculated>,
}

impl Work {
    fn is_done(&self) -> bool {
        self.enqueued.is_empty()
            && self.emissions.is_empty()
            && self.queue.is_empty()
            && self.again.is_empty()
    }
}

impl Switch {
    /// Makes a switch that runs a verified `program` with `executor`, which must belong to the same program.
    pub fn new(program: Arc<Program>, executor: Arc<dyn Executor>, config: SwitchConfig) -> Switch {
        let plan = Plan::new(&program);
        Switch {
            plan,
            runtime: Runtime::new(program.clone(), config.seed),
            executor,
            config,
            replication: Replication::default(),
            snapshots: Snapshots::default(),
            drops: [0; DropReason::ALL.len()],
            has_fast_path: true,
            reach_bytes: program.reach_bytes().unwrap_or(usize::MAX),
            program,
            max_work: MAX_WORK,
            work_left: MAX_WORK,
            work_rate: None,
            recorder: None,
            interpreter: None,
            free_states: Vec::new(),
            scratch: Box::default(),
            single: Vec::new(),
            work: None,
        }
    }

    /// Returns the program that the switch runs.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Returns the configuration with which the switch was made.
    pub fn config(&self) -> SwitchConfig {
        self.config
    }

    /// Returns the tables and other stateful objects of the switch.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Returns the tables and other stateful objects of the switch, for changes.
    pub fn runtime_mut(&mut self) -> &mut Runtime {
        &mut self.runtime
    }

    pub(crate) fn replication(&self) -> &Replication {
        &self.replication
    }

    pub(crate) fn snapshots(&self) -> &Snapshots {
        &self.snapshots
    }

    pub(crate) fn snapshots_mut(&mut self) -> &mut Snapshots {
        &mut self.snapshots
    }

    pub(crate) fn replication_mut(&mut self) -> &mut Replication {
        &mut self.replication
    }

    /// Exchanges the memory in which packets are processed with `other`. A caller with many switches can thus pass
    /// the same memory, which is still in the processor's caches, from one switch to the next.
    #[inline]
    pub fn swap_scratch(&mut self, other: &mut Box<Scratch>) {
        std::mem::swap(&mut self.scratch, other);
    }

    /// Returns the number of dropped packets for each reason; reasons without a drop are left out.
    pub fn drops(&self) -> BTreeMap<DropReason, u64> {
        let counts = DropReason::ALL.into_iter().zip(self.drops);
        counts.filter(|&(_, count)| count != 0).collect()
    }

    /// Sets how many resubmissions, recirculations and clones one received packet may cause (default [`MAX_WORK`]).
    pub fn set_max_work(&mut self, max_work: u32) {
        self.max_work = max_work;
    }

    /// Sets how many copies of copies (resubmissions, recirculations and clones behind the first two passes of a
    /// packet) all packets together may cause per second. By default, or with `None`, only [`MAX_WORK`] limits them.
    pub fn set_copies_per_s(&mut self, copies_per_s: Option<u64>) {
        self.work_rate = copies_per_s.map(WorkRate::new);
    }

    /// Sets the time for the control plane's next operations, since an entry's idle time begins with its insertion.
    /// Packets bring their own time.
    pub fn set_now_ps(&mut self, now_ps: Time) {
        self.runtime.set_now_ps(now_ps);
    }

    /// Sets the state of a port in registers with [`ir::Register::port_state`] and in groups whose members watch the
    /// port. All ports of a new switch are up.
    pub fn set_port_up(&mut self, port: u32, up: bool) {
        self.runtime.set_port_up(port, up);
    }

    /// Takes over from the switch that this one replaces what does not belong to the program: the time, the states of
    /// ports, and the limit on copies per second.
    pub fn take_over_agent(&mut self, former: &Switch) {
        self.work_rate = former.work_rate;
        self.runtime.set_now_ps(former.runtime.now_ps());
        self.runtime.set_ports(former.runtime.ports().clone());
    }

    /// Runs a packet that arrives at `port`, and all its copies, until they leave or are dropped. Appends the packets
    /// that leave to `out`, in order. Everything happens at `now_ps`.
    pub fn receive(&mut self, now_ps: Time, port: u32, packet: Packet, out: &mut Vec<Output>) {
        let mut packets = std::mem::take(&mut self.single);
        packets.push((port, packet));
        self.receive_burst(now_ps, &mut packets, out);
        self.single = packets;
    }

    /// Runs a packet like [`Switch::receive`], but without the fast path.
    fn receive_any(&mut self, now_ps: Time, port: u32, packet: Packet, out: &mut Vec<Output>) {
        let mut work = self.work.take().unwrap_or_default();
        let unicast = self.arrive(now_ps, port, packet, &mut work.enqueued);
        self.work_from(now_ps, unicast, work, out);
    }

    /// Runs all waiting packets to their end, with the copy `unicast` behind those that are already enqueued. Appends
    /// the packets that leave to `out`.
    fn work_from(
        &mut self,
        now_ps: Time,
        unicast: Option<Enqueued>,
        mut work: Box<Work>,
        out: &mut Vec<Output>,
    ) {
        match unicast {
            // Most packets are done with this.
            Some(copy) if work.is_done() => {
                out.extend(self.egress_pass(now_ps, copy, 0, &mut work.emissions));
            }
            _ => work.enqueued.extend(unicast),
        }
        while !work.is_done() {
            self.work_on(now_ps, &mut work, out);
        }
        self.work = Some(work);
    }

    /// Sorts what the last pass of a packet emitted into `out` and the queues of `work`, then runs one of the waiting
    /// packets: through egress or, if none waits for that, from the parser on.
    fn work_on(&mut self, now_ps: Time, work: &mut Work, out: &mut Vec<Output>) {
        for emission in work.emissions.drain(..) {
            match emission {
                Emission::Output(output) => out.push(output),
                Emission::Enqueued(copy) => work.enqueued.push(copy),
                Emission::Recirculated(packet) => work.again.push_back(packet),
            }
        }
        work.queue.extend(work.enqueued.drain(..));
        if let Some(copy) = work.queue.pop_front() {
            out.extend(self.egress_pass(now_ps, copy, 0, &mut work.emissions));
        } else if let Some(packet) = work.again.pop_front() {
            let unicast = self.recirculate_pass(now_ps, packet, &mut work.enqueued);
            work.enqueued.extend(unicast);
        }
    }

    /// Runs a packet like [`Switch::receive`], but with the interpreter, and also returns a trace of what happened.
    /// Tables, registers and counters are used and changed as usual.
    pub fn trace(&mut self, now_ps: Time, port: u32, packet: Packet) -> (Vec<Output>, Trace) {
        let interpreter = self
            .interpreter
            .get_or_insert_with(|| Arc::new(Interpreter::new(self.program.clone())))
            .clone();
        let usual = std::mem::replace(&mut self.executor, interpreter);
        self.recorder = Some(Box::new(Recorder::new(self.program.clone())));
        let mut out = Vec::new();
        self.receive(now_ps, port, packet, &mut out);
        self.executor = usual;
        let trace = match self.recorder.take() {
            Some(recorder) => recorder.finish(),
            None => Trace::new(self.program.clone()),
        };
        (out, trace)
    }

    /// Runs a packet from the parser to the end of ingress, including resubmissions. Appends the copies that go to
    /// egress to `out`, clones first.
    pub fn ingress(&mut self, now_ps: Time, port: u32, packet: Packet, out: &mut Vec<Enqueued>) {
        let unicast = self.arrive(now_ps, port, packet, out);
        out.extend(unicast);
    }

    /// Runs a packet that egress recirculated, from the parser to the end of ingress. Appends copies to `out` like
    /// [`Switch::ingress`].
    pub fn recirculate(&mut self, now_ps: Time, packet: Recirculated, out: &mut Vec<Enqueued>) {
        self.work_left = self.max_work;
        let unicast = self.recirculate_pass(now_ps, packet, out);
        out.extend(unicast);
    }

    fn arrive(
        &mut self,
        now_ps: Time,
        port: u32,
        packet: Packet,
        out: &mut Vec<Enqueued>,
    ) -> Option<Enqueued> {
        self.work_left = self.max_work;
        let bytes = packet.len();
        self.note(0, || EventKind::Received {
            now_ps,
            port,
            bytes,
        });
        let mut state = self.fresh_state();
        self.plan.rules().arrive(&mut state, port, bytes);
        self.plan.rules().set_ingress_time(&mut state, now_ps);
        let lineage = Lineage::default();
        let pass = Pass {
            now_ps,
            packet,
            state,
            lineage,
        };
        self.ingress_pass(pass, out)
    }

    fn recirculate_pass(
        &mut self,
        now_ps: Time,
        packet: Recirculated,
        out: &mut Vec<Enqueued>,
    ) -> Option<Enqueued> {
        let mut pass = Pass {
            now_ps,
            packet: packet.packet,
            state: packet.state,
            lineage: packet.lineage,
        };
        self.plan.rules().set_ingress_time(&mut pass.state, now_ps);
        self.ingress_pass(pass, out)
    }

    /// Runs ingress for a packet, and again as long as the program resubmits it. Appends clones and multicast
    /// replicas to `out`. Returns the copy for egress if the packet goes to a single port, else `None`.
    fn ingress_pass(&mut self, pass: Pass, out: &mut Vec<Enqueued>) -> Option<Enqueued> {
        let mut next = Some(pass);
        while let Some(mut pass) = next {
            pass.packet.store(self.reach_bytes);
            let run = Run {
                now_ps: pass.now_ps,
                packet: &pass.packet,
                consumed: 0,
                branch: pass.lineage.branch,
            };
            let (intents, consumed) =
                self.run(run, &mut pass.state, |e, cx| e.run(Pipeline::INGRESS, cx));
            next = match self.after_ingress(pass, &intents, consumed, out) {
                Pending::Done(unicast) => return unicast,
                Pending::Again(pass) => Some(pass),
            };
        }
        None
    }

    /// Carries out what the program requested in ingress: makes clones, then drops, multicasts, resubmits or forwards
    /// the packet. Appends clones and replicas to `out`; returns the copy for a unicast port, if any, or the packet
    /// to be resubmitted. The scratch memory contains the headers from the ingress deparser, if the architecture has
    /// one.
    fn after_ingress(
        &mut self,
        mut pass: Pass,
        intents: &Intents,
        consumed: usize,
        out: &mut Vec<Enqueued>,
    ) -> Pending {
        if let Some(reason) = intents.drop {
            self.drop_packet(reason, pass.state, pass.lineage);
            return Pending::Done(None);
        }
        let verdict = self.plan.rules().after_ingress(&pass.state, intents);
        if let Some((session, preserve)) = verdict.clone {
            self.clone_ingress(&pass, session, preserve, out);
        }
        let preserve = match verdict.next {
            AfterIngress::Resubmit(preserve) => preserve,
            AfterIngress::Drop => {
                self.drop_packet(DropReason::IngressDrop, pass.state, pass.lineage);
                return Pending::Done(None);
            }
            AfterIngress::Multicast(group) => {
                let copy = self.enqueue(pass, 0, PacketPath::Replica, consumed, None);
                self.multicast(group, copy, out);
                return Pending::Done(None);
            }
            AfterIngress::Unicast(port) => {
                let truncate = intents.truncate;
                let copy = self.enqueue(pass, port, PacketPath::Unicast, consumed, truncate);
                self.note_enqueued(&copy);
                return Pending::Done(Some(copy));
            }
        };
        let Some(lineage) = self.descend(pass.lineage, CopyKind::Resubmit) else {
            let limit = DropReason::RecirculationLimit;
            self.drop_packet(limit, pass.state, pass.lineage);
            return Pending::Done(None);
        };
        let mut state = self.fresh_state();
        let (path, bytes) = (PacketPath::Resubmitted, pass.packet.len());
        self.plan
            .derive(&mut state, &pass.state, preserve, path, bytes);
        self.plan.rules().set_ingress_time(&mut state, pass.now_ps);
        self.free_states
            .push(std::mem::replace(&mut pass.state, state));
        pass.lineage = lineage;
        Pending::Again(pass)
    }

    /// Turns a packet after ingress into a copy that waits for the egress of `port`, and is cut to `truncate` bytes
    /// when it leaves if that is given. The copy has the packet's state or, if egress has a parser, the deparsed
    /// bytes and the fields that the architecture preserves.
    fn enqueue(
        &mut self,
        mut pass: Pass,
        port: u32,
        path: PacketPath,
        mut consumed: usize,
        truncate: Option<u32>,
    ) -> Enqueued {
        let priority = self.plan.rules().priority(&pass.state);
        if self.plan.deparses_between() {
            let mut state = self.fresh_state();
            let bridged = Some(Bridged::Normal.field_list());
            self.plan.preserve(&mut state, &pass.state, bridged);
            self.free_states
                .push(std::mem::replace(&mut pass.state, state));
            pass.packet.replace_front(consumed, &self.scratch.emitted);
            consumed = 0;
        }
        self.plan.rules().set_path(&mut pass.state, path);
        pass.enqueue(port, priority, consumed, truncate)
    }

    /// Counts a packet that a queue between ingress and egress dropped, under `reason`.
    pub fn count_dropped(&mut self, reason: DropReason) {
        self.drops[reason as usize] += 1;
    }

    /// Ends a copy that its queue dropped, and returns its packet, whose memory can be reused. Does not count it as
    /// dropped (see [`Switch::count_dropped`]).
    pub fn discard(&mut self, copy: Enqueued) -> Packet {
        self.free_states.push(copy.state);
        copy.packet
    }

    /// Runs one copy from egress to the deparser. Appends clones to `out`, then the packet itself if it leaves or is
    /// recirculated. `deq_qdepth` is the number of packets that remain in its queue.
    pub fn egress(
        &mut self,
        now_ps: Time,
        copy: Enqueued,
        deq_qdepth: u32,
        out: &mut Vec<Emission>,
    ) {
        self.work_left = self.max_work;
        let output = self.egress_pass(now_ps, copy, deq_qdepth, out);
        out.extend(output.map(Emission::Output));
    }

    /// Runs egress for a copy. Appends clones, and the packet if it is recirculated, to `out`. Returns the packet if
    /// it leaves, else `None`.
    fn egress_pass(
        &mut self,
        now_ps: Time,
        mut copy: Enqueued,
        deq_qdepth: u32,
        out: &mut Vec<Emission>,
    ) -> Option<Output> {
        let start = EgressStart::new(&copy, now_ps, deq_qdepth);
        self.plan.start_egress(&mut copy.state, start);
        let run = Run {
            now_ps,
            packet: &copy.packet,
            consumed: copy.consumed,
            branch: copy.lineage.branch,
        };
        let (intents, consumed) =
            self.run(run, &mut copy.state, |e, cx| e.run(Pipeline::EGRESS, cx));
        copy.consumed = consumed;
        self.after_egress(now_ps, copy, &intents, out)
    }

    /// Carries out what the program requested in egress: makes clones, then drops, recirculates or sends the packet.
    /// Returns the packet if it leaves, else `None`; appends clones and a recirculated packet to `out`. The scratch
    /// memory contains the headers that the deparser emitted.
    fn after_egress(
        &mut self,
        now_ps: Time,
        mut copy: Enqueued,
        intents: &Intents,
        out: &mut Vec<Emission>,
    ) -> Option<Output> {
        if let Some(reason) = intents.drop {
            self.drop_packet(reason, copy.state, copy.lineage);
            return None;
        }
        let verdict = (self.plan.rules()).after_egress(&copy.state, intents, copy.port);
        if self.plan.deparses_between() {
            // Clones are deparsed, too.
            copy.packet
                .replace_front(copy.consumed, &self.scratch.emitted);
            self.scratch.emitted.clear();
            copy.consumed = 0;
        }
        if let Some((session, preserve)) = verdict.clone {
            self.clone_egress(now_ps, &copy, session, preserve, out);
        }
        if verdict.next == AfterEgress::Drop {
            self.drop_packet(DropReason::EgressDrop, copy.state, copy.lineage);
            return None;
        }
        copy.packet
            .replace_front(copy.consumed, &self.scratch.emitted);
        if let AfterEgress::Recirculate(preserve) = verdict.next {
            self.recirculate_copy(copy, preserve, out);
            return None;
        }
        let cuts = [intents.truncate, copy.truncate];
        if let Some(length) = cuts.into_iter().flatten().min() {
            copy.packet.truncate(length as usize);
        }
        let (port, bytes) = (copy.port, copy.packet.len());
        self.note(copy.lineage.branch, || EventKind::Sent { port, bytes });
        self.free_states.push(copy.state);
        Some(Output::new(port, copy.packet))
    }

    /// Runs a part of the pipeline with `executor`. Returns what the program requested (clone, drop, ...) and the
    /// number of bytes that the parser consumed.
    fn run(
        &mut self,
        run: Run<'_>,
        state: &mut [u64],
        executor: impl FnOnce(&dyn Executor, &mut PacketContext<'_>),
    ) -> (Intents, usize) {
        self.runtime.set_now_ps(run.now_ps);
        self.scratch.emitted.clear();
        let trace = self.recorder.as_mut().map(|r| r.branch_mut(run.branch));
        let mut cx = PacketContext {
            now_ps: run.now_ps,
            state,
            packet: run.packet.stored(),
            packet_len: run.packet.len(),
            consumed: run.consumed,
            emitted: &mut self.scratch.emitted,
            runtime: &mut self.runtime,
            intents: Intents::default(),
            trace,
        };
        executor(&*self.executor, &mut cx);
        debug_assert!(cx.consumed <= run.packet.len());
        (cx.intents, cx.consumed)
    }

    fn fork(&mut self, parent: usize, kind: CopyKind) -> usize {
        match &mut self.recorder {
            Some(recorder) => recorder.fork(parent, kind),
            None => 0,
        }
    }

    fn fresh_state(&mut self) -> Vec<u64> {
        let mut state = self.free_states.pop().unwrap_or_default();
        state.clear();
        state.resize(self.plan.limbs(), 0);
        state
    }

    fn drop_packet(&mut self, reason: DropReason, state: Vec<u64>, lineage: Lineage) {
        self.free_states.push(state);
        self.count_drop(reason, lineage);
    }

    fn count_drop(&mut self, reason: DropReason, lineage: Lineage) {
        self.drops[reason as usize] += 1;
        self.note(lineage.branch, || EventKind::Dropped(reason));
    }

    fn note_enqueued(&mut self, copy: &Enqueued) {
        let (port, rid) = (copy.port, copy.rid);
        self.note(copy.lineage.branch, || EventKind::Enqueued { port, rid });
    }

    fn note(&mut self, branch: usize, kind: impl FnOnce() -> EventKind) {
        if let Some(recorder) = &mut self.recorder {
            recorder.branch_mut(branch).push(kind(), Loc::default());
        }
    }
}

#[cfg(test)]
mod tests;
