//! The function of the fast path: both ingress and egress, for a packet that arrives at a port and leaves at
//! another. Between them the packet keeps its state or, if the architecture has two parsers, is deparsed and
//! parsed again ([`reparse`]).
//!
//! Nothing is read from the state array: it is zero at first, so values begin as zeros. If the program
//! requests more than to leave at a port, a value records it; if the value is not zero after ingress, or
//! after egress, the state is written to the array and the function ends for the switch to go on
//! ([`bailout`]). A second value says whether the headers moved ([`crate::analysis::headers`]): if not, only
//! the fields that were assigned are written, into the packet where it lies ([`edit`]).
//!
//! The code after the parser is generated for each of a few outcomes of the parser
//! ([`crate::analysis::paths`]), where the validity of headers is a constant. Other packets go to a second
//! function, [`EntryPoint::Unspecialised`], which does all from the start.

mod bailout;
mod edit;
mod reparse;

use super::bytes::Pieces;
use super::replicas::CurrentReplica;
use super::{EntryPoint, FastPathAnalysis, Gen, Memory, Place, Slots, Words, constant_memory};
use crate::analysis::bailouts::Bailouts;
use crate::frame::{Arrival, Frame, drop_code, exit};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{
    Block, BlockArg, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Value,
};
use cranelift_frontend::Variable;
use engine::DropReason;
use ir::{HeaderId, Input, Pipeline, SlotId, Stmt};
use std::collections::HashMap;
use std::mem::offset_of;

/// The number of instructions after the parser from which on the code is not generated for another outcome.
const SPECIALISATION_INSTRUCTIONS: usize = 24_000;

/// The number of instructions of ingress up to which the code after ingress is generated separately at an
/// exit of ingress.
const EXIT_INSTRUCTIONS: usize = 3_000;

/// The state of generation of the fast path.
pub(super) struct FastPath {
    /// For each header, the storage of the address where it was extracted last, if it may be extracted.
    sources: Vec<Option<Source>>,
    /// Not zero if headers no longer lie in the packet where they were extracted, in the order of the
    /// deparser.
    pub(super) moved: Variable,
    /// Not zero if the program has requested what only the slow path does.
    bailout: Variable,
    /// The output port of the packet.
    pub(super) port: Variable,
    /// True while code of checksum verification or of a parser is generated.
    on_arrival: bool,
    pub(super) course: Course,
    /// For each value that was loaded from the packet as a header was extracted, the limb of the field that
    /// it is.
    loaded: HashMap<Value, Loaded>,
    /// For each header, the bytes of the packet that are to be emitted, loaded before emission overwrites
    /// them.
    read_ahead: HashMap<HeaderId, Pieces>,
}

/// What is known of the packet at the current point of the generated code. It is put back after code for
/// packets that end.
#[derive(Clone, Copy)]
pub(super) struct Course {
    pub(super) may_move: bool,
    /// The pipeline whose code is generated.
    half: Pipeline,
    /// True if the packet that egress parses may begin elsewhere than the one that arrived.
    relocated: bool,
    /// The control that is generated, if packets may end where it exits.
    running: Option<Running>,
    /// The replica, while egress is generated for one.
    pub(super) replica: Option<CurrentReplica>,
}

/// A control at whose exits the packet's run may end.
#[derive(Clone, Copy)]
enum Running {
    /// Ingress, with the number of instructions of the function when it began.
    Ingress(usize),
    Egress,
}

/// A limb of a field as it was extracted.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Loaded {
    slot: SlotId,
    limb: usize,
    /// The address of the header's first byte.
    base: Value,
}

/// The storage of the address at which a header was extracted last.
#[derive(Clone, Copy)]
enum Source {
    Value(Variable),
    /// A place on the stack, for headers that live in the state array; it is written only if the header is
    /// extracted.
    Memory(StackSlot),
}

impl FastPath {
    /// Returns the pipeline whose code is being generated.
    pub(super) fn half(&self) -> Pipeline {
        self.course.half
    }

    /// Returns the variables that hold addresses of extracted headers.
    pub(super) fn source_variables(&self) -> Vec<Variable> {
        let variable = |source: &Source| match source {
            Source::Value(variable) => Some(*variable),
            Source::Memory(_) => None,
        };
        self.sources.iter().flatten().filter_map(variable).collect()
    }
}

impl Gen<'_, '_> {
    /// Generates the whole function of the fast path: specialised for some outcomes of the parser, or for all
    /// outcomes.
    pub(super) fn fast_path(&mut self) {
        let facts = self.facts();
        self.place_fast_path(&facts.bailouts);
        self.arrive(&facts.bailouts);
        let specialised = facts.specialised.as_ref();
        let Some((outcomes, parser)) =
            specialised.filter(|_| self.entry_point == EntryPoint::FastPath)
        else {
            self.first_parser();
            return self.behind_parser();
        };
        let places = self.places.clone();
        let edited = match facts.bailouts.needs_no_original() {
            true => self.edited(),
            false => Vec::new(),
        };
        let read_by_parser = &self.analysis.parser.reads;
        for &(_, slot) in (edited.iter()).filter(|(_, s)| !read_by_parser[s.index()]) {
            self.places[slot.index()] = Place::EditedInPacket;
        }
        let arrived = [self.packet, self.packet_len];
        let blocks = self.specialised_parser(parser, outcomes);
        self.exit_with(exit::UNSPECIALISED, None);
        let may_move = self.fast_path_mut().course.may_move;
        let parsed = self.b.func.dfg.num_insts();
        for (validity, block) in outcomes.iter().zip(blocks) {
            self.continue_in(block);
            if self.b.func.dfg.num_insts() - parsed > SPECIALISATION_INSTRUCTIONS {
                self.exit_with(exit::UNSPECIALISED, None);
                continue;
            }
            [self.packet, self.packet_len] = arrived;
            self.store_consumed();
            let fast_path = self.fast_path_mut();
            (fast_path.course.may_move, fast_path.course.half) = (may_move, Pipeline::INGRESS);
            // Known values become constants here.
            let no_error = self.small_constant(ir::ERROR_WIDTH, 0);
            let parser_error = self.program.architecture.parser_error(Pipeline::INGRESS);
            self.put(parser_error, &no_error);
            for (i, &valid) in validity.iter().enumerate() {
                self.put_validity(HeaderId(i as u32), valid);
            }
            self.places.clone_from(&places);
            for &(_, slot) in edited.iter().filter(|(h, _)| validity[h.index()]) {
                self.places[slot.index()] = Place::EditedInPacket;
            }
            self.behind_parser();
        }
    }

    /// Generates all code after the parser, from checksum verification to the packet's departure.
    fn behind_parser(&mut self) {
        let program = self.program;
        self.fast_path_mut().on_arrival = true;
        self.surroundings.summed = None;
        self.control(program.checksums(Pipeline::INGRESS));
        let from = self.b.func.dfg.num_insts();
        self.fast_path_mut().on_arrival = false;
        let facts = self.facts();
        let ingress = self.of_entry_point(&facts.ingress, program.main_control(Pipeline::INGRESS));
        self.run(Running::Ingress(from), ingress);
        self.behind_ingress();
    }

    /// Generates the statements `body` of the control `running`, at whose exits the packet's run may end.
    fn run(&mut self, running: Running, body: &[Stmt]) {
        self.fast_path_mut().course.running = Some(running);
        self.control(body);
        self.fast_path_mut().course.running = None;
    }

    /// Generates the rest of a packet's run right at an exit of ingress, so that what is known on that path
    /// remains usable, or at an exit of egress if the packet certainly leaves the fast path. Returns false,
    /// with nothing generated, in a loop, in the unspecialised function, and when ingress has become large
    /// (unless the packet certainly leaves the fast path); then all paths join after the control.
    pub(super) fn ends_here(&mut self) -> bool {
        if self.entry_point != EntryPoint::FastPath {
            return false;
        }
        let Some(running) = self
            .fast_path_mut()
            .course
            .running
            .filter(|_| self.surroundings.loops == 0)
        else {
            return false;
        };
        let instructions = self.b.func.dfg.num_insts();
        let is_short =
            matches!(running, Running::Ingress(from) if instructions - from <= EXIT_INSTRUCTIONS);
        if !is_short && !self.is_requested() {
            return false;
        }
        let fast_path = self.fast_path_mut();
        let (course, loaded) = (fast_path.course, fast_path.loaded.clone());
        fast_path.course.running = None;
        let surroundings = self.surroundings.aside();
        let (packet, packet_len) = (self.packet, self.packet_len);
        match running {
            Running::Ingress(_) => self.behind_ingress(),
            Running::Egress => self.behind_egress(),
        }
        (self.packet, self.packet_len) = (packet, packet_len);
        self.surroundings = surroundings;
        let fast_path = self.fast_path_mut();
        (fast_path.course, fast_path.loaded) = (course, loaded);
        true
    }

    /// Generates all code after ingress, up to the packet's departure.
    fn behind_ingress(&mut self) {
        match &self.facts().reparse {
            Some(reparse) => self.deparse_and_parse(reparse),
            None if self.between() => self.egress(),
            None => {}
        }
    }

    /// Generates egress and all code after it, up to the packet's departure.
    fn egress(&mut self) {
        let facts = self.facts();
        let egress =
            self.of_entry_point(&facts.egress, self.program.main_control(Pipeline::EGRESS));
        self.run(Running::Egress, egress);
        self.behind_egress();
    }

    /// Generates all code after egress, up to the packet's departure.
    fn behind_egress(&mut self) {
        if let Some(reparse) = &self.facts().reparse {
            return self.deparse_and_decide(reparse);
        }
        self.end_if_dropped();
        self.control(self.program.checksums(Pipeline::EGRESS));
        self.depart();
    }

    /// Generates what happens to a packet between ingress and egress: it leaves the fast path, is replicated,
    /// is dropped, or goes to one port, where egress begins. Returns false if control cannot reach egress.
    fn between(&mut self) -> bool {
        let FastPathAnalysis {
            forwarding,
            bailouts,
            ..
        } = self.facts();
        if let Some(exported) = &bailouts.after_ingress {
            let bailout = self.fast_path_mut().bailout;
            let mut more = self.b.use_var(bailout);
            if !bailouts.replicates && !self.is_requested() {
                let group = self.read(forwarding.group).low();
                more = self.b.ins().bor(more, group);
            }
            if !self.end_if(more, exit::AFTER_INGRESS, exported) {
                return false;
            }
        }
        if bailouts.replicates {
            let group = self.read(forwarding.group).low();
            let (several, one) = (self.b.create_block(), self.b.create_block());
            self.branch_on(group, several, one, &[]);
            self.continue_in(several);
            self.replicate(group);
            self.continue_in(one);
        }
        let dropped = exit::DROPPED + drop_code(DropReason::IngressDrop);
        let is_dropped = self.has(forwarding.ingress_drop);
        if self.known_value(is_dropped) == Some(1) {
            self.exit_with(dropped, None);
            return false;
        }
        self.exit_if(is_dropped, dropped);
        let spec = self.read(forwarding.port).low();
        let port = self.fast_path_mut().port;
        self.b.def_var(port, spec);
        let (zero, path) = (self.imm(0), self.imm(forwarding.unicast_path));
        self.start_egress(spec, zero, path);
        true
    }

    /// Generates the deparser and the end of the packet's run: the packet is edited where it lies, or its
    /// headers are written in front of its payload or to the buffer.
    fn depart(&mut self) {
        let FastPathAnalysis {
            headers, bailouts, ..
        } = self.facts();
        let fast_path = self.fast_path_mut();
        let (moved, bailout) = (fast_path.moved, fast_path.bailout);
        let may_move = fast_path.course.may_move;
        let moved = may_move.then(|| self.b.use_var(moved));
        let bailout = bailouts
            .after_egress
            .is_some()
            .then(|| self.b.use_var(bailout));
        let elsewhere = [moved, bailout].into_iter().flatten();
        let elsewhere = elsewhere.reduce(|a, b| self.b.ins().bor(a, b));
        let is_requested = self.is_requested();
        if let Some(emitted) = headers.emitted.as_ref().filter(|_| !is_requested) {
            let Some(elsewhere) = elsewhere else {
                self.edit(emitted);
                return self.send_edited();
            };
            let (emit, edit) = (self.b.create_block(), self.b.create_block());
            self.branch_on(elsewhere, emit, edit, &[]);
            self.continue_in(edit);
            self.edit(emitted);
            self.send_edited();
            self.continue_in(emit);
        }
        let buffer = self.frame_word(offset_of!(Frame, emitted));
        let in_front = headers.emitted.as_ref();
        let in_front = in_front.filter(|e| !is_requested && self.has_known_lengths(e));
        let fits = in_front.map(|emitted| self.begin_in_front(emitted, buffer, bailout));
        if fits.is_none() {
            self.set_emit_at(buffer);
        }
        let program = self.program;
        self.emits_exactly = fits.is_some();
        match &self.facts().reparse {
            Some(reparse) => (reparse.egress.emits.iter()).for_each(|&header| self.emit(header)),
            None => self.control(program.deparser(Pipeline::EGRESS)),
        }
        self.emits_exactly = false;
        if let Some(fits) = fits {
            let (there, in_buffer) = (self.b.create_block(), self.b.create_block());
            self.b.set_cold_block(in_buffer);
            self.b.ins().brif(fits, there, &[], in_buffer, &[]);
            self.continue_in(there);
            self.send([exit::SENT_MOVED, exit::CUT_MOVED]);
            self.continue_in(in_buffer);
        }
        self.store_emitted_len();
        if let (Some(exported), Some(bailout)) = (&bailouts.after_egress, bailout)
            && !self.end_if(bailout, exit::AFTER_EGRESS, exported)
        {
            return;
        }
        let port = self.fast_path_mut().port;
        let port = self.b.use_var(port);
        self.exit_with(exit::SENT, Some(port));
    }
}

impl Slots<'_, '_> {
    /// Returns true if, at the current point of the generated code, the packet certainly leaves the fast
    /// path.
    fn is_requested(&mut self) -> bool {
        let bailout = self.fast_path_mut().bailout;
        let bailout = self.b.use_var(bailout);
        self.known_value(bailout)
            .is_some_and(|bailout| bailout != 0)
    }

    pub(super) fn fast_path_mut(&mut self) -> &mut FastPath {
        let fast_path = self.fast_path.as_mut();
        fast_path.expect("only on the fast path")
    }

    pub(super) fn place_fast_path(&mut self, bailouts: &Bailouts) {
        let program = self.program;
        let FastPathAnalysis { usage, headers, .. } = self.facts();
        let zero = self.imm(0);
        for i in 0..program.slots.len() {
            let id = SlotId(i as u32);
            // A slot that is only ever set to zero is zero.
            let place = match (usage.reads[i], usage.sets[i]) {
                (false, _) if headers.stays_in_packet(id) => Place::InPacket,
                (false, false) => Place::Unused,
                (false, true) if !bailouts.contains(i) => Place::Unused,
                (true, false) => Place::Zero,
                (_, true) if self.analysis.in_memory[i] => Place::Memory,
                (_, true) => self.declare_values(id, false, false, zero),
            };
            self.places.push(place);
        }
        self.clear_memory();
        let sources = (program.headers.iter().enumerate())
            .map(|(i, header)| {
                let extracted = headers.is_extracted(HeaderId(i as u32));
                extracted.then(|| self.new_source(header.valid))
            })
            .collect();
        let [moved, bailout, port] = [(); 3].map(|()| self.b.declare_var(I64));
        for variable in [self.cursor, self.steps, self.emit_at, moved, bailout, port] {
            self.b.def_var(variable, zero);
        }
        self.fast_path = Some(FastPath {
            sources,
            moved,
            bailout,
            port,
            on_arrival: true,
            course: Course {
                may_move: headers.emitted.is_none(),
                half: Pipeline::INGRESS,
                relocated: false,
                running: None,
                replica: None,
            },
            loaded: HashMap::new(),
            read_ahead: HashMap::new(),
        });
    }

    /// Generates code that writes `word`, cut or extended to the slot's width, to a slot of the
    /// architecture's metadata, if the slot is used.
    fn put_word(&mut self, slot: SlotId, word: Value) {
        if !self.keeps(slot) {
            return;
        }
        let value = self.word_of(slot, word);
        self.put(slot, &value);
    }

    /// Generates code that writes the metadata of an arriving packet, and clears the requests in the frame
    /// that the program may make.
    pub(super) fn arrive(&mut self, bailouts: &Bailouts) {
        let zero = self.imm(0);
        for (may_be_set, offset) in [
            (bailouts.clones, offset_of!(Frame, clone)),
            (bailouts.repeats, offset_of!(Frame, resubmit)),
            (bailouts.repeats, offset_of!(Frame, recirculate)),
            (bailouts.truncates, offset_of!(Frame, truncate)),
        ] {
            if may_be_set {
                self.store_frame(offset, zero);
            }
        }
        for &(slot, input) in &self.facts().forwarding.arrival {
            let value = match (input, self.burst) {
                (Input::ArrivalPort, Some(burst)) => {
                    let at = offset_of!(Arrival, port) as i32;
                    (self.b.ins()).load(I64, constant_memory(), burst.arrival, at)
                }
                (Input::PacketBytes, _) => self.packet_len,
                (Input::NowUs, _) => self.arrival_word(offset_of!(Frame, now_us)),
                (Input::One, _) => self.imm(1),
                _ => continue,
            };
            self.put_word(slot, value);
        }
    }

    /// Generates code that writes the metadata with which a copy begins egress. The copy was never queued, so
    /// lengths of queues and times in them are zero.
    pub(super) fn start_egress(&mut self, port: Value, replica_id: Value, packet_path: Value) {
        let facts = self.facts();
        let zero = self.imm(0);
        let now_us = self.arrival_word(offset_of!(Frame, now_us));
        for &(slot, input) in &facts.forwarding.egress {
            let value = match input {
                Input::OutputPort => port,
                Input::ReplicaId => replica_id,
                Input::PacketPath => packet_path,
                Input::NowUs | Input::EnqueuedUs => now_us,
                Input::PacketBytes if facts.bailouts.measures && self.keeps(slot) => self.measure(),
                Input::EnqueuedBehind | Input::DequeuedBefore | Input::WaitedUs => zero,
                Input::Zero => zero,
                Input::One => self.imm(1),
                // They stay as they are, or the caller gives them.
                Input::PacketBytes | Input::Priority | Input::ArrivalPort => continue,
            };
            self.put_word(slot, value);
        }
        // Egress has steps of its own.
        self.set_steps(zero);
    }

    /// Generates the length of the packet in bytes, with the headers that the deparser would emit now.
    fn measure(&mut self) -> Value {
        let payload = self.remaining();
        let headers = self.header_bytes();
        self.b.ins().iadd(payload, headers)
    }

    /// Generates the total length in bytes of the headers that the deparser would emit now.
    pub(super) fn header_bytes(&mut self) -> Value {
        let emitted = self.analysis.emitted_headers.iter().enumerate();
        let emitted = emitted.filter(|&(_, &emitted)| emitted);
        let emitted: Vec<HeaderId> = emitted.map(|(i, _)| HeaderId(i as u32)).collect();
        self.header_bytes_of(&emitted)
    }

    /// Generates the total length in bytes of those of the `headers` that are valid.
    fn header_bytes_of(&mut self, headers: &[HeaderId]) -> Value {
        let program = self.program;
        let mut known = 0;
        let mut sum: Option<Value> = None;
        for header in headers
            .iter()
            .map(|header| &program.headers[header.index()])
        {
            if !self.keeps(header.valid) || self.places[header.valid.index()] == Place::Zero {
                // Never valid.
                continue;
            }
            let fixed: u64 = (header.fields.iter())
                .filter(|f| f.varbit_length.is_none())
                .map(|f| u64::from(self.width(f.slot)))
                .sum();
            let varbits: Vec<_> = (header.fields.iter())
                .filter_map(|f| f.varbit_length)
                .collect();
            let valid = self.read(header.valid).low();
            let is_valid = self.known_value(valid);
            match is_valid {
                Some(0) => continue,
                Some(_) if varbits.is_empty() => {
                    known += fixed.div_ceil(8);
                    continue;
                }
                _ => {}
            }
            if varbits.is_empty() {
                let bytes = self.b.ins().imul_imm_u(valid, fixed.div_ceil(8) as i64);
                sum = Some(match sum {
                    Some(others) => self.b.ins().iadd(others, bytes),
                    None => bytes,
                });
                continue;
            }
            let mut bits = self.imm(fixed);
            for length in varbits {
                let length = self.read(length).low();
                bits = self.b.ins().iadd(bits, length);
            }
            let up = self.b.ins().iadd_imm_u(bits, 7);
            let bytes = self.shr_imm(up, 3);
            let zero = self.imm(0);
            let bytes = self.b.ins().select(valid, bytes, zero);
            sum = Some(match sum {
                Some(others) => self.b.ins().iadd(others, bytes),
                None => bytes,
            });
        }
        let known = self.imm(known);
        match sum {
            Some(others) => self.b.ins().iadd(others, known),
            None => known,
        }
    }

    /// Generates the condition that egress drops the packet.
    pub(super) fn is_dropped(&mut self) -> Value {
        self.has(self.facts().forwarding.egress_drop)
    }

    /// Generates code that ends the run of a packet that egress drops. If it has requested what only the slow
    /// path does, it leaves the fast path instead.
    fn end_if_dropped(&mut self) {
        let bailouts = &self.facts().bailouts;
        let dropped = self.is_dropped();
        let (stop, next) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(dropped, stop, &[], next, &[]);
        self.continue_in(stop);
        if let Some(exported) = &bailouts.after_egress {
            let bailout = self.fast_path_mut().bailout;
            let bailout = self.b.use_var(bailout);
            if !self.end_if(bailout, exit::AFTER_EGRESS, exported) {
                return self.continue_in(next);
            }
        }
        self.exit_with(exit::DROPPED + drop_code(DropReason::EgressDrop), None);
        self.continue_in(next);
    }

    /// Returns true if none of the `emitted` headers that may be valid has a varbit.
    fn has_known_lengths(&mut self, emitted: &[HeaderId]) -> bool {
        emitted.iter().all(|header| {
            let header = &self.program.headers[header.index()];
            let has_varbit = header.fields.iter().any(|f| f.varbit_length.is_some());
            !has_varbit || self.known_slot(header.valid) == Some(0)
        })
    }

    /// Generates code that decides where the deparser writes: right in front of the payload in the packet's
    /// own memory if there is room and `bailout` is zero, else to `buffer`. Loads the bytes of the packet
    /// that are emitted again. Returns the condition that it writes in front of the payload.
    fn begin_in_front(
        &mut self,
        emitted: &[HeaderId],
        buffer: Value,
        bailout: Option<Value>,
    ) -> Value {
        let arrival = self.burst.expect("only on the fast path").arrival;
        let flags = MemFlagsData::trusted();
        let at = offset_of!(Arrival, headroom) as i32;
        let headroom = self.b.ins().load(I64, flags, arrival, at);
        let cursor = self.cursor();
        let bytes = self.header_bytes_of(emitted);
        let room = self.b.ins().iadd(headroom, cursor);
        let mut fits = (self.b.ins()).icmp(IntCC::UnsignedGreaterThanOrEqual, room, bytes);
        if let Some(bailout) = bailout {
            let none = self.b.ins().icmp_imm_u(IntCC::Equal, bailout, 0);
            fits = self.b.ins().band(fits, none);
        }
        let mut left = self.b.ins().isub(room, bytes);
        if self.fast_path_mut().course.half == Pipeline::EGRESS {
            // Where the packet begins is asked of one that is handed over, too.
            left = self.b.ins().select(fits, left, headroom);
        }
        self.b.ins().store(flags, left, arrival, at);
        let payload = self.at_cursor();
        let front = self.b.ins().isub(payload, bytes);
        let first = self.b.ins().select(fits, front, buffer);
        self.set_emit_at(first);
        self.read_ahead(emitted);
        fits
    }

    /// Generates the end of the run of a packet whose headers have been edited where they lie.
    fn send_edited(&mut self) {
        let codes = match self.fast_path_mut().course.relocated {
            true => [exit::SENT_MOVED, exit::CUT_MOVED],
            false => [exit::SENT_IN_PLACE, exit::CUT_IN_PLACE],
        };
        self.send(codes);
    }

    /// Generates the end of the run of a packet that is ready to leave, with the exit code `whole` or, if it
    /// has to be truncated, `cut`.
    fn send(&mut self, [whole, cut]: [u64; 2]) {
        let port = self.fast_path_mut().port;
        let port = self.b.use_var(port);
        if self.facts().bailouts.truncates {
            let length = self.frame_word(offset_of!(Frame, truncate));
            let (shorter, as_it_is) = (self.b.create_block(), self.b.create_block());
            (self.b.ins()).brif(length, shorter, &[], as_it_is, &[]);
            self.continue_in(shorter);
            self.exit_with(cut, Some(port));
            self.continue_in(as_it_is);
        }
        self.exit_with(whole, Some(port));
    }
}

impl<'a> Memory<'a, '_> {
    /// Returns the statements to generate for a control: `ordinary` in the specialised function, else
    /// `program`, the program's own.
    fn of_entry_point(&self, ordinary: &'a [Stmt], program: &'a [Stmt]) -> &'a [Stmt] {
        match self.entry_point {
            EntryPoint::FastPath => ordinary,
            _ => program,
        }
    }

    /// Returns the analysis of the program for its fast path.
    ///
    /// # Panics
    ///
    /// If one function cannot run both ingress and egress: then the program has no fast path.
    pub(super) fn facts(&self) -> &'a FastPathAnalysis<'a> {
        let facts = self.analysis.fast_path.as_ref();
        facts.expect("both halves are in one function")
    }

    fn new_source(&mut self, valid: SlotId) -> Source {
        if self.analysis.in_memory[valid.index()] {
            let word = StackSlotData::new(StackSlotKind::ExplicitSlot, 8, 3);
            return Source::Memory(self.b.create_sized_stack_slot(word));
        }
        let variable = self.b.declare_var(I64);
        self.words.b.def_var(variable, self.packet);
        Source::Value(variable)
    }
}

impl Words<'_> {
    /// Generates a jump to `yes` if `value` is not zero, else to `no` with the block arguments `args`.
    pub(super) fn branch_on(&mut self, value: Value, yes: Block, no: Block, args: &[BlockArg]) {
        match self.known_value(value) {
            Some(0) => self.b.ins().jump(no, args),
            Some(_) => self.b.ins().jump(yes, &[]),
            None => self.b.ins().brif(value, yes, &[], no, args),
        };
    }
}
