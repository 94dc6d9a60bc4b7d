//! Runs machine code on packets.

use crate::analysis::Analysis;
use crate::analysis::tables::{InPlaceTable, LARGE_TABLE, Prefetched, PrefetchedTable};
use crate::code::{EntryPoint, emit_capacity};
use crate::frame::{Arrival, Context, Frame, drop_reason, exit, preserve_of};
use crate::module::{CompileStats, JitError, NativeCode, compile_functions};
use crate::notes::Notes;
use crate::views::{AllCells, Views, take_cells, take_views};
use cranelift_jit::JITModule;
use engine::table::Found;
use engine::{
    DropReason, Executor, Exit, FastPath, FastPathContext, Intents, Output, Packet, PacketContext,
    Runtime, Spare, Stop,
};
use ir::verify::verify;
use ir::{Pipeline, Program};
use std::fmt;
use std::hint::black_box;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::Range;
use std::sync::{Arc, Mutex};

#[cfg(test)]
mod tests;

/// A function of a part of the pipeline.
type EntryPointFn = unsafe extern "C" fn(*mut Frame);

/// A function of the fast path, given the address of the first arrival and the address after the last. It
/// runs their packets up to the first that is neither dropped nor sent where it lies, and returns that one's
/// address, or the end. Each arrival up to there has the code of what became of it.
type FastPathFn = unsafe extern "C" fn(*mut Frame, *mut Arrival, *mut Arrival) -> *mut Arrival;

/// The function that prefetches, given the address of the first arrival and the address after the last.
type PrefetchFn = unsafe extern "C" fn(*mut Frame, *mut Arrival, *mut Arrival);

/// Memory for the arrivals of a part of a burst.
type Arrivals = [MaybeUninit<Arrival>; PART];

/// A burst is run in parts of this many packets: the lines that the prefetch brings into the caches stay there until they are needed.
const PART: usize = 32;

/// Programs with at most this many tables take views of them even for a single packet; it costs less than a
/// call.
const FEW_VIEWS: usize = 3;

/// The smallest burst of packets that is prefetched for, and for which views of more than [`FEW_VIEWS`]
/// tables are taken.
const MIN_BURST: usize = 4;

/// A program as machine code.
pub struct JitExecutor {
    program: Arc<Program>,
    stats: CompileStats,
    /// Limbs that the state array must have.
    state_limbs: usize,
    /// Bytes that the deparser may write without reserving room.
    emit_capacity: usize,
    /// The bytes at the front of a packet that the code may look into.
    reach_bytes: usize,
    /// True if egress parses what ingress deparsed.
    parses_twice: bool,
    /// `None` if the function would be too large, or is not possible.
    fast_path: Option<FastPathFn>,
    /// The function for packets with headers that `fast_path` is not specialised for, if there are any.
    unspecialised: Option<FastPathFn>,
    /// `None` if the program has no table that is worth prefetching.
    prefetch: Option<PrefetchFn>,
    /// The tables and cells that `prefetch` looks into.
    prefetched: Prefetched,
    /// The tables that are looked up in place.
    tables_in_place: Vec<InPlaceTable>,
    /// True if the tables with a key are so few that views of them are taken for any number of packets.
    few_views: bool,
    /// True if the program has registers or counters.
    has_cells: bool,
    /// Entries of a table from which on prefetching is worth it.
    large_table: usize,
    /// For each pipeline, true if it has a deparser.
    deparses: [bool; 2],
    ingress: EntryPointFn,
    parse: EntryPointFn,
    egress: EntryPointFn,
    /// Owns the memory that the functions are in; locked only to be freed.
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

/// Compiles a program, each of its functions in a thread of its own. Returns an error if the program is invalid or
/// code generation fails.
pub fn compile(program: Arc<Program>) -> Result<JitExecutor, JitError> {
    verify(&program).map_err(JitError::Invalid)?;
    let analysis = Analysis::new(&program);
    let code = compile_functions(&analysis)?;
    JitExecutor::new(program.clone(), analysis, code)
}

impl JitExecutor {
    /// Makes an executor of a verified program and its compiled functions. Returns an error if a function
    /// that every program needs was left out as too large.
    fn new(
        program: Arc<Program>,
        analysis: Analysis<'_>,
        code: NativeCode,
    ) -> Result<JitExecutor, JitError> {
        let NativeCode {
            module,
            mut stats,
            functions,
        } = code;
        let address = |entry_point: EntryPoint| functions[entry_point as usize];
        let needed = |entry_point: EntryPoint| {
            let at = address(entry_point);
            let at =
                at.ok_or_else(|| JitError::Codegen("a part of the pipeline is too large".into()))?;
            // SAFETY: the function was defined with this signature in the platform's calling convention, and its memory is
            // freed only when the executor that gets the pointer is dropped.
            Ok(unsafe { std::mem::transmute::<*const u8, EntryPointFn>(at) })
        };
        let halves = (|| {
            let ingress = needed(EntryPoint::Ingress)?;
            let parse = needed(EntryPoint::Parse)?;
            Ok((ingress, parse, needed(EntryPoint::Egress)?))
        })();
        let (ingress, parse, egress) = match halves {
            Ok(halves) => halves,
            Err(error) => {
                // SAFETY: none of the functions has been called, and their addresses are dropped here.
                unsafe { module.free_memory() };
                return Err(error);
            }
        };
        let on_fast_path = |entry_point: EntryPoint| {
            // SAFETY: as above, with the signature of the fast path.
            address(entry_point)
                .map(|at| unsafe { std::mem::transmute::<*const u8, FastPathFn>(at) })
        };
        let unspecialised = on_fast_path(EntryPoint::Unspecialised);
        let facts = analysis.fast_path.as_ref();
        let can_run = facts.is_some_and(|facts| {
            let has_all = unspecialised.is_some() || facts.specialised.is_none();
            has_all && !facts.drops_behind_egress
        });
        let fast_path = on_fast_path(EntryPoint::FastPath).filter(|_| can_run);
        stats.makes_replicas = fast_path.is_some() && facts.is_some_and(|f| f.bailouts.replicates);
        Ok(JitExecutor {
            state_limbs: analysis.layout.limbs(),
            emit_capacity: emit_capacity(&analysis),
            reach_bytes: program.reach_bytes().unwrap_or(usize::MAX),
            parses_twice: program.parser_of(Pipeline::EGRESS).is_some(),
            fast_path,
            unspecialised,
            prefetch: address(EntryPoint::Prefetch).map(|at| {
                // SAFETY: as above, with the signature of the function that prefetches.
                unsafe { std::mem::transmute::<*const u8, PrefetchFn>(at) }
            }),
            prefetched: analysis.prefetched,
            few_views: (analysis.tables_in_place.iter())
                .filter(|t| t.limbs > 0)
                .count()
                <= FEW_VIEWS,
            tables_in_place: analysis.tables_in_place,
            has_cells: !(program.registers.is_empty() && program.counters.is_empty()),
            large_table: LARGE_TABLE,
            deparses: [Pipeline::INGRESS, Pipeline::EGRESS].map(|pipeline| {
                let mut blocks = program.architecture.description().blocks_of(pipeline);
                blocks.any(|(_, stage)| stage.is_deparser())
            }),
            ingress,
            parse,
            egress,
            stats,
            module: ManuallyDrop::new(Mutex::new(module)),
            program,
        })
    }
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
    /// Returns the program that was compiled.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Sets the number of entries from which on a table counts as large (default 16,384). The data of a large
    /// table is assumed not to be in the caches, so that it is prefetched for bursts of packets.
    pub fn set_large_table(&mut self, entries: usize) {
        self.large_table = entries;
    }

    /// Returns the statistics of the compilation.
    pub fn stats(&self) -> CompileStats {
        self.stats
    }

    /// Runs `function`, one part of the pipeline, on the packet of `cx`, and stores the emitted bytes and the
    /// program's requests in `cx`.
    ///
    /// # Panics
    ///
    /// If the state array is too short, too little of the packet is stored, or more has been consumed than
    /// there is: the caller violates the contract of [`PacketContext`].
    fn call(&self, function: EntryPointFn, cx: &mut PacketContext<'_>) {
        assert!(cx.state.len() >= self.state_limbs, "state array too short");
        assert!(
            cx.consumed <= cx.packet.len(),
            "consumed more than the packet"
        );
        assert!(
            cx.packet.len() >= self.reach_bytes.min(cx.packet_len),
            "too little of the packet is stored"
        );
        cx.emitted.clear();
        let mut context = Context {
            now_ps: cx.now_ps,
            runtime: &mut *cx.runtime,
            emitted: &mut *cx.emitted,
            replication: None,
            packets: std::ptr::null(),
            arrivals: std::ptr::null(),
            spare: std::ptr::null_mut(),
            copies: Vec::new(),
            last: None,
        };
        let (packet, len) = (cx.packet.as_ptr().cast_mut(), cx.packet_len);
        let mut frame = Frame::new(cx.state.as_mut_ptr(), packet, len, &mut context);
        frame.consumed = cx.consumed as u64;
        // SAFETY: the function was generated for this program, which is verified. It reads and writes `state` within its
        // layout (checked above), only reads `packet`, within `packet_len` and the program's reach (which is stored, as checked), and writes at most `emit_capacity` bytes behind
        // `emitted` (made room for by the caller, if the function has a deparser; the others write none) unless it calls `reserve` for more. Only shims use
        // `context`, one at a time, and nothing else uses what it refers to meanwhile; the pointer's lifetime ends with this call.
        unsafe { function(&raw mut frame) };
        // SAFETY: the function has written the first `emitted_len` bytes behind `emitted`, the vector's own memory.
        unsafe { cx.emitted.set_len(frame.emitted_len as usize) };
        cx.consumed = frame.consumed as usize;
        take_intents(&frame, &mut cx.intents);
    }

    /// Returns the function that prefetches, or `None` if the packets are too few or no table is large.
    fn prefetch_for(&self, cx: &FastPathContext<'_>) -> Option<PrefetchFn> {
        let large = |t: &PrefetchedTable| cx.runtime.table(t.table).len() >= self.large_table;
        let worth =
            cx.packets.len() - cx.first >= MIN_BURST && self.prefetched.tables.iter().any(large);
        self.prefetch.filter(|_| worth)
    }

    /// Makes empty lists for the keys and indices that the prefetch function records, with room for one of
    /// each packet of a part of a burst.
    fn notes(&self) -> Notes {
        let Prefetched { tables, cells, .. } = &self.prefetched;
        let tables = tables.iter().map(|t| if t.touched { 0 } else { t.limbs });
        let cells = cells.iter().map(|_| 1);
        Notes::new(tables.chain(cells).map(|limbs| limbs * PART))
    }

    /// Loads the table entries and cells that belong to the recorded keys and indices into the caches.
    /// Indices that the entries hold are added to the lists of the cells.
    fn warm(&self, runtime: &Runtime, notes: &mut Notes) {
        if notes.is_empty() {
            return;
        }
        let Prefetched { tables, cells, .. } = &self.prefetched;
        let mut entries = Found::new();
        for (number, prefetched) in tables.iter().enumerate() {
            let table = runtime.table(prefetched.table);
            let is_large = table.len() >= self.large_table || table.has_direct_prefixes();
            if !is_large || notes.list(number).is_empty() {
                continue;
            }
            black_box(table.warm(notes.list(number), &mut entries));
            for link in &prefetched.links {
                let found = entries.iter().map(|&entry| table.found(entry));
                let found = found.filter(|f| f.hit && f.action == link.action);
                for &index in found.filter_map(|f| f.args.get(link.limb)) {
                    notes.push(tables.len() + link.cells, index);
                }
            }
        }
        for (number, &cells) in cells.iter().enumerate() {
            black_box(runtime.warm_cells(cells, notes.list(tables.len() + number)));
        }
    }

    /// Runs the packets of `cx`, from its first on, on the fast path, until one must leave it or all are
    /// done. Sends or drops them as the program says.
    ///
    /// # Panics
    ///
    /// If the state array is too short.
    fn run_fast_path(&self, fast_path: FastPathFn, cx: &mut FastPathContext<'_>) -> FastPath {
        assert!(cx.state.len() >= self.state_limbs, "state array too short");
        cx.emitted.clear();
        cx.emitted.reserve(self.emit_capacity);
        let prefetch = self.prefetch_for(cx);
        let mut notes = prefetch.map(|_| self.notes());
        let spare: *mut Spare = cx.spare;
        // The memory that they point to stays as it is until this function returns: it alone has the switch, and running packets does not
        // change tables. (Hits that leave something behind are not looked up in place.)
        let mut views = Views::new();
        let mut cells = AllCells::new();
        let many = cx.packets.len() - cx.first >= MIN_BURST;
        if cx.steady && (self.few_views || many) {
            take_views(&self.tables_in_place, cx.runtime, &mut views);
        }
        if self.has_cells && cx.steady && many {
            take_cells(&self.program, cx.runtime, &mut cells);
        }
        let mut context = Context {
            now_ps: cx.now_ps,
            runtime: &mut *cx.runtime,
            emitted: &mut *cx.emitted,
            replication: Some(cx.replication),
            packets: std::ptr::null(),
            arrivals: std::ptr::null(),
            spare,
            copies: Vec::new(),
            last: None,
        };
        let state = cx.state.as_mut_ptr();
        let mut frame = Frame::new(state, std::ptr::null_mut(), 0, &mut context);
        // From here on, the context is reached as the functions reach it.
        let context = frame.context;
        if !views.is_empty() {
            frame.views = views.as_ptr();
        }
        if !cells.is_empty() {
            frame.cells = cells.as_ptr();
        }
        frame.now_us = cx.now_ps.us();
        let mut arrivals: Arrivals = [const { MaybeUninit::uninit() }; PART];
        let (mut first, count) = (cx.first, cx.packets.len());
        let mut prefetched = first + cx.prefetched;
        // The vector gives its packets away: from here on, whoever takes a packet owns it.
        let packets = cx.packets.as_mut_ptr();
        // SAFETY: fewer than there are.
        unsafe { cx.packets.set_len(0) };
        while first < count {
            let mut end = count.min(first + PART);
            if prefetch.is_some() && first < prefetched {
                end = end.min(prefetched);
            }
            // SAFETY: within the vector's memory.
            let part = unsafe { packets.add(first) };
            // SAFETY: these are packets of the vector that nobody has taken yet, and nobody else refers to them.
            let whole = unsafe { std::slice::from_raw_parts_mut(part, end - first) };
            let arrivals = arrive(&mut arrivals, whole, self.reach_bytes);
            if let (Some(prefetch), Some(notes)) = (prefetch, &mut notes)
                && first >= prefetched
            {
                prefetched = end;
                frame.notes = notes.begin();
                let Range { start, end } = arrivals.as_mut_ptr_range();
                // SAFETY: as in `run_packets`, but that the function writes to the state and to the notes only, within their memory.
                unsafe { prefetch(&raw mut frame, start, end) };
                // SAFETY: the context outlives the run, and no function runs.
                self.warm(unsafe { (*context).runtime }, notes);
            }
            // SAFETY: as above.
            unsafe { ((*context).packets, (*context).arrivals) = (part, arrivals.as_ptr()) };
            let mut sending = Sending {
                number: first as u32,
                packets: part,
                arrivals,
                out: cx.out,
                spare,
                drops: cx.drops,
            };
            if let Some(at) = self.run_packets(fast_path, &mut frame, &mut sending) {
                let (code, packet) = (sending.arrivals[at].code, first + at);
                if code & 0xff == exit::AFTER_EGRESS || self.parses_twice {
                    // SAFETY: the function has written these bytes, to where the vector's memory is now.
                    unsafe { (*context).emitted.set_len(frame.emitted_len as usize) };
                }
                for taken in cx.first..packet {
                    // SAFETY: within the vector's memory; the packet that was there is somebody else's.
                    unsafe { packets.add(taken).write((0, Packet::EMPTY)) };
                }
                // SAFETY: the packets up to here were just written, and the others nobody has taken.
                unsafe { cx.packets.set_len(count) };
                let prefetched = prefetched.saturating_sub(packet + 1);
                return FastPath::Stopped(stop(packet, prefetched, &frame, code));
            }
            first = end;
        }
        FastPath::Done
    }

    /// Runs the packets of `sending` until one leaves the fast path, and returns the position of that packet,
    /// or `None` if none does. The packets before it have been sent or dropped.
    #[inline]
    fn run_packets(
        &self,
        fast_path: FastPathFn,
        frame: &mut Frame,
        sending: &mut Sending<'_>,
    ) -> Option<usize> {
        let Range { start, end } = sending.arrivals.as_mut_ptr_range();
        let mut first = 0;
        loop {
            // SAFETY: as in `run`, but that the function may write to the packets, each within its length, which are this call's alone,
            // and reads through `views`, which the caller has set to the tables as they are. Of the arrivals it writes the codes.
            // It sets again whatever of the frame it reads or an earlier run for another packet may have set.
            let stopped = unsafe { fast_path(frame, start.add(first), end) };
            // SAFETY: it is one of the arrivals, or their end.
            let at = unsafe { stopped.offset_from_unsigned(start) };
            sending.hand_over(first..at);
            if at == sending.arrivals.len() {
                return None;
            }
            let sent = sending.out.len();
            if !self.finish(frame, sending, at) {
                return Some(at);
            }
            sending.come_of(at, sent);
            first = at + 1;
            if first == sending.arrivals.len() {
                return None;
            }
        }
    }

    /// Sends or drops the packet at position `at`, as its exit code says. Returns false, and does neither, if
    /// the packet has to leave the fast path.
    #[inline(never)]
    fn finish(&self, frame: &mut Frame, sending: &mut Sending<'_>, at: usize) -> bool {
        let arrival = &mut sending.arrivals[at];
        frame.set_packet(arrival);
        if arrival.code & 0xff == exit::UNSPECIALISED
            && let Some(unspecialised) = self.unspecialised
        {
            let Range { start, end } = std::slice::from_mut(arrival).as_mut_ptr_range();
            // SAFETY: as in `run_packets`; the other function has done nothing.
            unsafe { unspecialised(frame, start, end) };
        }
        let code = arrival.code;
        let headroom = arrival.headroom as usize;
        // SAFETY: one of the packets; nobody has taken it, and no function runs.
        let packet = unsafe { &mut (*sending.packets.add(at)).1 };
        if self.parses_twice && matches!(code & 0xff, exit::SENT | exit::AFTER_EGRESS) {
            // Egress parsed what begins there.
            packet.set_headroom(headroom);
        }
        if matches!(code & 0xff, exit::AFTER_INGRESS | exit::AFTER_EGRESS) {
            return false;
        }
        let mut packet = std::mem::take(packet);
        match code & 0xff {
            exit::SENT_IN_PLACE | exit::CUT_IN_PLACE => {}
            exit::SENT_MOVED | exit::CUT_MOVED => {
                packet.set_headroom(headroom);
            }
            exit::SENT => {
                // SAFETY: the function has written these bytes, to where the vector's memory is now.
                let emitted = unsafe { frame.emitted_bytes() };
                packet.replace_front(frame.consumed as usize, emitted);
            }
            exit::REPLICATED => {
                sending.drops[DropReason::EgressDrop as usize] += frame.replicas_dropped;
                // SAFETY: the context outlives the run, and no function runs.
                let context = unsafe { &mut *frame.context };
                sending.out.append(&mut context.copies);
                let Some(port) = context.last.take() else {
                    sending.take_back(packet);
                    return true;
                };
                // SAFETY: the function has written these bytes, to where the vector's memory is now.
                let emitted = unsafe { frame.emitted_bytes() };
                packet.replace_front(frame.consumed as usize, emitted);
                cut(frame, &mut packet);
                sending.out.push(Output::new(port, packet));
                return true;
            }
            _ => {
                sending.drop(packet, code);
                return true;
            }
        }
        cut(frame, &mut packet);
        let port = (code >> 8) as u32;
        sending.out.push(Output::new(port, packet));
        true
    }
}

/// Truncates a packet that leaves to the requested length, if truncation was requested.
fn cut(frame: &Frame, packet: &mut Packet) {
    if let Some(length) = frame.truncate.checked_sub(1) {
        packet.truncate(length as usize);
    }
}

/// Fills `arrivals` with a description of each of `packets` for the compiled functions, and returns those
/// filled. The first `reach_bytes` bytes of each packet, which the functions may read, are stored in
/// contiguous memory.
#[inline]
fn arrive<'a>(
    arrivals: &'a mut Arrivals,
    packets: &mut [(u32, Packet)],
    reach_bytes: usize,
) -> &'a mut [Arrival] {
    for (arrival, packet) in arrivals.iter_mut().zip(&mut *packets) {
        arrival.write(Arrival::new(packet, reach_bytes));
    }
    let count = packets.len().min(PART);
    // SAFETY: the first `count` have been written.
    unsafe { std::slice::from_raw_parts_mut(arrivals.as_mut_ptr().cast(), count) }
}

/// A part of a burst, with the places to which its packets go.
struct Sending<'a> {
    /// The number in the burst of its first packet.
    number: u32,
    /// As many packets as arrivals. Those that are taken have been read and must not be read again.
    packets: *mut (u32, Packet),
    /// The arrivals of the packets.
    arrivals: &'a mut [Arrival],
    out: &'a mut Vec<Output>,
    /// Packets whose memory is reused; functions that run take packets from there.
    spare: *mut Spare,
    drops: &'a mut [u64; DropReason::ALL.len()],
}

impl Sending<'_> {
    /// Sends the packets in the range `done` that were edited in place, and counts and drops the others.
    #[inline]
    fn hand_over(&mut self, done: Range<usize>) {
        self.out.reserve(done.len());
        // SAFETY: within the vector's memory, or at its end.
        let mut packet = unsafe { self.packets.add(done.start) };
        let mut number = self.number + done.start as u32;
        let Range { start, end } = self.arrivals[done].as_ptr_range();
        let (mut arrival, first) = (start, self.out.as_mut_ptr());
        // SAFETY: the free places of the vector begin here.
        let mut free = unsafe { first.add(self.out.len()) };
        while arrival != end {
            // SAFETY: there are as many packets as arrivals, and each is read once; the vector has room for all. They are moved field
            // by field of the output, so that they are not copied to the stack in between.
            unsafe {
                let code = (*arrival).code;
                // Most are sent where they lie, so that is asked first.
                let is_sent = match code & 0xff {
                    exit::SENT_IN_PLACE => true,
                    exit::SENT_MOVED => {
                        (*packet).1.set_headroom((*arrival).headroom as usize);
                        true
                    }
                    _ => {
                        self.drop((&raw const (*packet).1).read(), code);
                        false
                    }
                };
                if is_sent {
                    (&raw mut (*free).port).write((code >> 8) as u32);
                    (&raw mut (*free).arrival).write(number);
                    (&raw mut (*free).packet).copy_from_nonoverlapping(&raw const (*packet).1, 1);
                    free = free.add(1);
                }
                (arrival, packet, number) = (arrival.add(1), packet.add(1), number + 1);
            }
        }
        // SAFETY: both are within the vector's memory, and what lies between them and the former end has been written.
        unsafe { self.out.set_len(free.offset_from_unsigned(first)) };
    }

    /// Records in the outputs from number `sent` on that the packet at position `at` of this part has
    /// produced them.
    fn come_of(&mut self, at: usize, sent: usize) {
        for output in &mut self.out[sent..] {
            output.arrival = self.number + at as u32;
        }
    }

    /// Counts a dropped packet under the drop reason in its exit code `code`, and keeps its memory for reuse.
    #[inline(never)]
    fn drop(&mut self, packet: Packet, code: u64) {
        let reason = drop_reason((code & 0xff).wrapping_sub(exit::DROPPED));
        self.drops[reason.unwrap_or(DropReason::IngressDrop) as usize] += 1;
        self.take_back(packet);
    }

    /// Keeps a packet that is no longer needed, so that its memory can be reused.
    fn take_back(&mut self, packet: Packet) {
        // SAFETY: the caller of the functions has lent it to them alone, and no function runs.
        unsafe { (*self.spare).push(packet) };
    }
}

/// Describes to the engine how the packet at position `packet` left the fast path: where, how many bytes were
/// parsed, and with what requests. `prefetched` is the number of later packets that were prefetched for.
#[cold]
fn stop(packet: usize, prefetched: usize, frame: &Frame, code: u64) -> Stop {
    let mut intents = Intents::default();
    take_intents(frame, &mut intents);
    Stop {
        packet,
        prefetched,
        exit: match code & 0xff {
            exit::AFTER_INGRESS => Exit::AfterIngress,
            _ => Exit::AfterEgress((code >> 8) as u32),
        },
        consumed: frame.consumed as usize,
        intents,
    }
}

/// Copies the program's requests (clone, resubmit, ...) from the frame to `intents`.
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
    fn run(&self, pipeline: Pipeline, cx: &mut PacketContext<'_>) {
        let function = match pipeline {
            Pipeline::INGRESS => self.ingress,
            _ => self.egress,
        };
        if self.deparses[usize::from(pipeline != Pipeline::INGRESS)] {
            cx.emitted.clear();
            cx.emitted.reserve(self.emit_capacity);
        }
        self.call(function, cx);
    }

    fn parse(&self, cx: &mut PacketContext<'_>) {
        self.call(self.parse, cx);
    }

    fn fast_path(&self, cx: &mut FastPathContext<'_>) -> FastPath {
        match self.fast_path {
            Some(fast_path) => self.run_fast_path(fast_path, cx),
            None => FastPath::Unsupported,
        }
    }
}
