//! Runs machine code on packets.

use crate::code::{AheadTable, Half, LARGE_TABLE, emit_capacity, makes_replicas, tables_ahead};
use crate::frame::{Context, Frame, SentReplicas, drop_reason, preserve_of, way};
use crate::module::{NativeCode, compile_halves};
use crate::usage::{drops_behind_egress, egress_changes};
use crate::views::{InPlaceTable, Views, in_place, take_views};
use cranelift_jit::JITModule;
use engine::{
    DropReason, Executor, Intents, Output, Packet, PacketContext, Stop, Straight, StraightContext,
    Way,
};
use ir::verify::{VerifyError, verify};
use ir::{Layout, Program};
use std::fmt;
use std::hint::black_box;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Why there is no machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JitError {
    /// The program violates invariants of the IR.
    Invalid(Vec<VerifyError>),
    /// The code generator does not support this machine.
    Host(String),
    /// The program is too large: its actions are expanded wherever a table with them is applied, and that has a limit.
    /// The interpreter runs it all the same.
    Codegen(String),
}

impl fmt::Display for JitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JitError::Invalid(errors) => {
                write!(f, "the program is invalid")?;
                errors.iter().try_for_each(|e| write!(f, "; {e}"))
            }
            JitError::Host(why) => write!(f, "no machine code for this host: {why}"),
            JitError::Codegen(why) => write!(f, "code generation failed: {why}"),
        }
    }
}

impl std::error::Error for JitError {}

/// What compilation made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompileStats {
    /// Bytes of machine code.
    pub code_bytes: usize,
    /// Instructions of the code generator's own intermediate form, before optimisation.
    pub instructions: usize,
    /// Machine code makes the replicas of multicast groups; else the switch does, if the program has any.
    pub makes_replicas: bool,
}

/// A function of a half.
type HalfFn = unsafe extern "C" fn(*mut Frame);

/// The function of the straight way, given the packet that the frame names and its length; gives a code of [`way`].
type StraightFn = unsafe extern "C" fn(*mut Frame, *mut u8, u64) -> u64;

/// The function that looks ahead, given the same.
type AheadFn = unsafe extern "C" fn(*mut Frame, *mut u8, u64);

/// A burst is looked ahead in parts of this many packets, so that what is brought into the caches stays there until it is needed.
const AHEAD: usize = 32;

/// Programs with so many tables at most take views of them for every packet; it costs less than a call.
const FEW_VIEWS: usize = 3;

/// Bursts of fewer packets are not looked ahead, nor more tables looked up in place for them.
const MIN_BURST: usize = 4;

/// Picoseconds in a microsecond, the unit of v1model's timestamps.
const PS_PER_US: u64 = 1_000_000;

/// A program as machine code.
pub struct JitExecutor {
    program: Arc<Program>,
    stats: CompileStats,
    /// Limbs that the state array must have.
    state_limbs: usize,
    /// Bytes that the deparser may write without asking for room.
    emit_capacity: usize,
    /// None if it would be too large.
    straight: Option<StraightFn>,
    /// For packets that `straight` is not for, if there are any.
    general: Option<StraightFn>,
    /// None if the program has no table that it would be good for.
    ahead: Option<AheadFn>,
    /// The tables that `ahead` looks into.
    tables_ahead: Vec<AheadTable>,
    /// The tables that are looked up in place.
    tables_in_place: Vec<InPlaceTable>,
    /// Entries from which on that is worth it.
    large_table: usize,
    ingress: HalfFn,
    parse: HalfFn,
    egress: HalfFn,
    egress_changes: Vec<Range<usize>>,
    /// Owns the memory that the functions are in; never locked but to be freed.
    module: ManuallyDrop<Mutex<JITModule>>,
}

impl fmt::Debug for JitExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JitExecutor")
            .field("program", &self.program.name)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

/// Compiles a program, each of its functions in a thread.
pub fn compile(program: Arc<Program>) -> Result<JitExecutor, JitError> {
    verify(&program).map_err(JitError::Invalid)?;
    let NativeCode {
        module,
        mut stats,
        functions,
    } = compile_halves(&program)?;
    let layout = Layout::new(&program);
    let address = |half: Half| functions[half as usize];
    let half = |half: Half| {
        // SAFETY: the function was defined with this signature in the platform's calling convention, and its memory is
        // freed only when the executor that gets the pointer is dropped.
        address(half).map(|at| unsafe { std::mem::transmute::<*const u8, HalfFn>(at) })
    };
    let needed = |function: Option<HalfFn>| {
        function.ok_or_else(|| JitError::Codegen("a half of the pipeline is too large".into()))
    };
    let halves = (|| {
        let ingress = needed(half(Half::Ingress))?;
        let parse = needed(half(Half::Parse))?;
        Ok((ingress, parse, needed(half(Half::Egress))?))
    })();
    let (ingress, parse, egress) = match halves {
        Ok(halves) => halves,
        Err(error) => {
            // SAFETY: none of the functions has been called, and their addresses are dropped here.
            unsafe { module.free_memory() };
            return Err(error);
        }
    };
    let way = |half: Half| {
        // SAFETY: as above, with the signature of the straight way.
        address(half).map(|at| unsafe { std::mem::transmute::<*const u8, StraightFn>(at) })
    };
    let general = way(Half::General);
    let is_specialised = Half::General.is_useful(&program);
    let straight = way(Half::Straight)
        .filter(|_| general.is_some() || !is_specialised)
        .filter(|_| !drops_behind_egress(&program));
    stats.makes_replicas = straight.is_some() && makes_replicas(&program);
    Ok(JitExecutor {
        state_limbs: layout.limbs(),
        emit_capacity: emit_capacity(&program),
        straight,
        general,
        ahead: address(Half::Ahead).map(|at| {
            // SAFETY: as above, with the signature of the function that looks ahead.
            unsafe { std::mem::transmute::<*const u8, AheadFn>(at) }
        }),
        tables_ahead: tables_ahead(&program),
        tables_in_place: in_place(&program),
        large_table: LARGE_TABLE,
        ingress,
        parse,
        egress,
        egress_changes: egress_changes(&program, &layout),
        stats,
        module: ManuallyDrop::new(Mutex::new(module)),
        program,
    })
}

impl Drop for JitExecutor {
    fn drop(&mut self) {
        // SAFETY: the field is not used again.
        let module = unsafe { ManuallyDrop::take(&mut self.module) };
        let module = match module.into_inner() {
            Ok(module) => module,
            Err(poisoned) => poisoned.into_inner(),
        };
        // SAFETY: the functions run only while the executor is borrowed, and their addresses do not leave it.
        unsafe { module.free_memory() }
    }
}

impl JitExecutor {
    /// The program that was compiled.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Sets from how many entries on a table is taken not to be in the caches, so that bursts are looked ahead for what they need of
    /// it: 16,384 at first.
    pub fn set_large_table(&mut self, entries: usize) {
        self.large_table = entries;
    }

    /// What compilation made.
    pub fn stats(&self) -> CompileStats {
        self.stats
    }

    /// Runs one half.
    ///
    /// # Panics
    /// If the state array is too short, or more has been consumed than there is: the caller violates the contract of
    /// [`PacketContext`].
    fn run(&self, function: HalfFn, cx: &mut PacketContext<'_>) {
        assert!(cx.state.len() >= self.state_limbs, "state array too short");
        assert!(
            cx.consumed <= cx.packet.len(),
            "consumed more than the packet"
        );
        cx.emitted.clear();
        let mut context = Context {
            now_ps: cx.now_ps,
            runtime: &mut *cx.runtime,
            emitted: &mut *cx.emitted,
            wanted: &mut [],
            replication: None,
            sent: &mut SentReplicas::new(),
            emit_capacity: self.emit_capacity,
        };
        let (packet, len) = (cx.packet.as_ptr().cast_mut(), cx.packet.len());
        let mut frame = Frame::new(cx.state.as_mut_ptr(), packet, len, &mut context);
        frame.consumed = cx.consumed as u64;
        // SAFETY: the function was generated for this program, which is verified. It reads and writes `state` within its
        // layout (checked above), only reads `packet`, within `packet_len`, and writes at most `emit_capacity` bytes behind
        // `emitted` (made room for by `egress`; the others write none) unless it asks `reserve` for more. Only shims use
        // `context`, one at a time, and nothing else uses what it refers to meanwhile; the pointer's lifetime ends with this call.
        unsafe { function(&raw mut frame) };
        // SAFETY: the function has written the first `emitted_len` bytes behind `emitted`, the vector's own memory.
        unsafe { cx.emitted.set_len(frame.emitted_len as usize) };
        cx.consumed = frame.consumed as usize;
        take_intents(&frame, &mut cx.intents);
    }

    /// The function that looks ahead, if that is worth its time for these packets.
    fn looks_ahead(&self, cx: &StraightContext<'_>) -> Option<AheadFn> {
        let large = |t: &AheadTable| cx.runtime.table(t.table).len() >= self.large_table;
        let worth = cx.packets.len() >= MIN_BURST && self.tables_ahead.iter().any(large);
        self.ahead.filter(|_| worth)
    }

    /// Brings what the wanted keys need into the caches.
    fn warm(&self, context: &mut Context<'_>) {
        for (ahead, keys) in self.tables_ahead.iter().zip(&mut *context.wanted) {
            black_box(context.runtime.table(ahead.table).warm(keys));
            keys.clear();
        }
    }

    /// Runs packets on the straight way.
    ///
    /// # Panics
    /// If the state array is too short.
    fn run_straight(&self, straight: StraightFn, cx: &mut StraightContext<'_>) -> Straight {
        assert!(cx.state.len() >= self.state_limbs, "state array too short");
        cx.emitted.clear();
        cx.emitted.reserve(self.emit_capacity);
        let look_ahead = self.looks_ahead(cx);
        let mut ahead = cx.ahead;
        let mut wanted = Vec::new();
        let mut sent = SentReplicas::new();
        if look_ahead.is_some() && self.tables_ahead.iter().any(|t| !t.touched) {
            wanted.resize(self.tables_ahead.len(), Vec::new());
        }
        // What they point to stays as it is until this function returns: it alone has the switch, and running packets does not
        // change tables. (Hits that leave something behind are not looked up in place.)
        let mut views = Views::new();
        let few = self.tables_in_place.len() <= FEW_VIEWS;
        if cx.steady && (few || cx.packets.len() >= MIN_BURST) {
            take_views(&self.tables_in_place, cx.runtime, &mut views);
        }
        let mut context = Context {
            now_ps: cx.now_ps,
            runtime: &mut *cx.runtime,
            emitted: &mut *cx.emitted,
            wanted: &mut wanted,
            replication: Some(cx.replication),
            sent: &mut sent,
            emit_capacity: self.emit_capacity,
        };
        let state = cx.state.as_mut_ptr();
        let mut frame = Frame::new(state, std::ptr::null_mut(), 0, &mut context);
        if !views.is_empty() {
            frame.views = views.as_ptr();
        }
        frame.now_us = cx.now_ps / PS_PER_US;
        let (mut first, count) = (0, cx.packets.len());
        while first < count {
            let mut end = count;
            if let Some(look) = look_ahead {
                if first >= ahead {
                    ahead = count.min(first + AHEAD);
                    for packet in &mut cx.packets[first..ahead] {
                        frame.set_packet(packet);
                        // SAFETY: as in `run_packets`, but that the function writes to the state only.
                        unsafe { look(&raw mut frame, frame.packet, frame.packet_len) };
                    }
                    self.warm(&mut context);
                }
                end = ahead.min(count);
            }
            let packets = &mut cx.packets[first..end];
            let (out, spare) = (&mut *cx.out, &mut *cx.spare);
            let stopped = self.run_packets(straight, &mut frame, packets, out, spare, cx.drops);
            if let Some((at, code)) = stopped {
                if code & 0xff == way::AFTER_EGRESS {
                    // SAFETY: the function has written these bytes, to where the vector's memory is now.
                    unsafe { context.emitted.set_len(frame.emitted_len as usize) };
                }
                let packet = first + at;
                let ahead = ahead.saturating_sub(packet + 1);
                return Straight::Stopped(stop(packet, ahead, &frame, code));
            }
            first = end;
        }
        Straight::Done
    }

    /// Runs packets until one leaves the straight way; gives its position and the code.
    #[inline]
    fn run_packets(
        &self,
        straight: StraightFn,
        frame: &mut Frame,
        packets: &mut [(u32, Packet)],
        out: &mut Vec<Output>,
        spare: &mut Vec<Packet>,
        drops: &mut [u64; DropReason::ALL.len()],
    ) -> Option<(usize, u64)> {
        out.reserve(packets.len());
        let count = packets.len();
        let mut first = out.as_mut_ptr();
        // SAFETY: within the vector's memory.
        let mut free = unsafe { first.add(out.len()) };
        let Range {
            start,
            end: behind_last,
        } = packets.as_mut_ptr_range();
        let (mut next, mut stopped) = (start, None);
        while next != behind_last {
            // SAFETY: one of the packets, which nothing else refers to.
            let arrived = unsafe { &mut *next };
            frame.set_packet(arrived);
            // SAFETY: as in `run`, but that the function may write to the packet, within `packet_len`, which is this call's alone,
            // and reads through `views`, which the caller has set to the tables as they are.
            // It sets again whatever of the frame it reads or an earlier run for another packet may have set.
            let mut code = unsafe { straight(frame, frame.packet, frame.packet_len) };
            if code & 0xff != way::SENT_IN_PLACE {
                code = self.end_otherwise(frame, code, &mut arrived.1, drops);
                match code & 0xff {
                    way::SENT_IN_PLACE => {}
                    way::AFTER_INGRESS | way::AFTER_EGRESS => {
                        stopped = Some(code);
                        break;
                    }
                    way::REPLICATED => {
                        // SAFETY: as below, for those that were sent so far.
                        unsafe { out.set_len(free.offset_from_unsigned(first)) };
                        // SAFETY: the function has ended like this.
                        unsafe { send_replicas(frame, &mut arrived.1, spare, out) };
                        out.reserve(count);
                        first = out.as_mut_ptr();
                        // SAFETY: within the vector's memory.
                        free = unsafe { first.add(out.len()) };
                        // SAFETY: up to the end of the packets.
                        next = unsafe { next.add(1) };
                        continue;
                    }
                    _ => {
                        // SAFETY: up to the end of the packets.
                        next = unsafe { next.add(1) };
                        continue;
                    }
                }
            }
            // SAFETY: there is room for as many as there are packets, and each comes here once. The packet is moved, field by field of the
            // output, so that it is not copied to the stack in between; an empty one is put where it was.
            unsafe {
                (&raw mut (*free).port).write((code >> 8) as u32);
                (&raw mut (*free).packet).copy_from_nonoverlapping(&raw const arrived.1, 1);
                (&raw mut arrived.1).write(Packet::EMPTY);
                free = free.add(1);
                next = next.add(1);
            }
        }
        // SAFETY: both are within the vector's memory, and what lies between them and the former end has been written.
        unsafe { out.set_len(free.offset_from_unsigned(first)) };
        // SAFETY: both are within the packets.
        stopped.map(|code| (unsafe { next.offset_from_unsigned(start) }, code))
    }

    /// Does what a code asks for that is not the usual one. Gives that one if the packet is ready to be sent then, else the code of the
    /// end of its way; a drop is counted.
    #[inline(never)]
    fn end_otherwise(
        &self,
        frame: &mut Frame,
        mut code: u64,
        packet: &mut Packet,
        drops: &mut [u64; DropReason::ALL.len()],
    ) -> u64 {
        if code == way::GENERAL
            && let Some(general) = self.general
        {
            // SAFETY: as in `run_packets`; the other function has done nothing.
            code = unsafe { general(frame, frame.packet, frame.packet_len) };
        }
        match code & 0xff {
            way::SENT_IN_PLACE | way::CUT_IN_PLACE => {}
            way::SENT => {
                // SAFETY: the function has written these bytes, to where the vector's memory is now.
                let emitted = unsafe { frame.emitted_bytes() };
                packet.replace_front(frame.consumed as usize, emitted);
            }
            way::AFTER_INGRESS | way::AFTER_EGRESS => return code,
            way::REPLICATED => {
                drops[DropReason::EgressDrop as usize] += frame.replicas_dropped;
                return code;
            }
            dropped => {
                let reason = drop_reason(dropped - way::DROPPED);
                drops[reason.unwrap_or(DropReason::IngressDrop) as usize] += 1;
                return code;
            }
        }
        if let Some(length) = frame.truncate.checked_sub(1) {
            packet.truncate(length as usize);
        }
        code & !0xff | way::SENT_IN_PLACE
    }
}

/// Sends the replicas of a packet that were noted; the last takes the packet itself.
///
/// # Safety
/// The function that the frame was for has ended with [`way::REPLICATED`] for this packet; nothing has changed since.
unsafe fn send_replicas(
    frame: &Frame,
    packet: &mut Packet,
    spare: &mut Vec<Packet>,
    out: &mut Vec<Output>,
) {
    // SAFETY: the caller keeps the contract above, which is that of both.
    let (emitted, sent) = unsafe { (frame.emitted_bytes(), frame.sent()) };
    let Some((last, others)) = sent.split_last() else {
        return;
    };
    let consumed = frame.consumed as usize;
    let mut send = |port: u32, mut packet: Packet| {
        if let Some(length) = frame.truncate.checked_sub(1) {
            packet.truncate(length as usize);
        }
        out.push(Output { port, packet });
    };
    let mut first = 0;
    for replica in others {
        let headers = &emitted[first..replica.end];
        let memory = spare.pop().unwrap_or_default();
        send(replica.port, packet.with_front(consumed, headers, memory));
        first = replica.end;
    }
    packet.replace_front(consumed, &emitted[first..last.end]);
    send(last.port, std::mem::take(packet));
}

/// What is told of a packet that left the straight way.
#[cold]
fn stop(packet: usize, ahead: usize, frame: &Frame, code: u64) -> Stop {
    let mut intents = Intents::default();
    take_intents(frame, &mut intents);
    Stop {
        packet,
        ahead,
        way: match code & 0xff {
            way::AFTER_INGRESS => Way::AfterIngress,
            _ => Way::AfterEgress((code >> 8) as u32),
        },
        consumed: frame.consumed as usize,
        intents,
    }
}

/// Takes over what the frame says that the program asked for.
fn take_intents(frame: &Frame, intents: &mut Intents) {
    if frame.clone != 0 {
        let preserve = preserve_of(frame.clone_preserve);
        intents.clone = Some((frame.clone_session as u32, preserve));
    }
    if let Some(code) = frame.resubmit.checked_sub(1) {
        intents.resubmit = Some(preserve_of(code));
    }
    if let Some(code) = frame.recirculate.checked_sub(1) {
        intents.recirculate = Some(preserve_of(code));
    }
    if let Some(length) = frame.truncate.checked_sub(1) {
        intents.truncate = Some(length as u32);
    }
    if let Some(reason) = drop_reason(frame.drop) {
        intents.drop = Some(reason);
    }
}

impl Executor for JitExecutor {
    fn ingress(&self, cx: &mut PacketContext<'_>) {
        self.run(self.ingress, cx);
    }

    fn parse(&self, cx: &mut PacketContext<'_>) {
        self.run(self.parse, cx);
    }

    fn egress(&self, cx: &mut PacketContext<'_>) {
        cx.emitted.clear();
        cx.emitted.reserve(self.emit_capacity);
        self.run(self.egress, cx);
    }

    fn straight(&self, cx: &mut StraightContext<'_>) -> Straight {
        match self.straight {
            Some(straight) => self.run_straight(straight, cx),
            None => Straight::Unsupported,
        }
    }

    fn egress_changes(&self) -> Vec<Range<usize>> {
        self.egress_changes.clone()
    }
}
