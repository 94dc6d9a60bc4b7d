//! Both halves in one function, for a packet that arrives at a port and leaves at another.
//!
//! Nothing comes from the state array: it is zero by definition, so values begin as zeros. What is asked for beyond leaving at a
//! port is noted in a value; if it is not zero after ingress, or after egress, the state is written to the array and the
//! function ends for the engine to go on. A second value says whether the headers moved ([`crate::headers`]): if not, only
//! the fields that were assigned are written, into the packet where it lies.
//!
//! What follows the parser is generated for each of a few outcomes of the parser ([`crate::paths`]), where the validity of headers is
//! a constant. Other packets go to a second function, [`super::EntryPoint::General`], which does all from the start.

use super::bytes::{Packer, Window};
use super::replicas::can_replicate;
use super::wide::{Wide, limbs_for};
use super::{Gen, Place, constant_memory};
use crate::frame::{Arrival, Frame, drop_code, way};
use crate::headers::{Headers, Home};
use crate::paths::{
    Validity, accepted, accepted_shares, is_repeatable, split, statements_behind_parser,
};
use crate::usage::{Usage, may_replicate, measures, shared_with_engine};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I64, I64X2};
use cranelift_codegen::ir::{
    Block, BlockArg, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Value,
};
use cranelift_frontend::Variable;
use ir::architecture::v1model::DROP_PORT;
use ir::{Expr, HeaderId, SlotId};
use smallvec::smallvec;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::mem::offset_of;
use std::ops::Range;

/// Limbs of a slot that are cleared without a loop.
const INLINE_CLEAR_LIMBS: usize = 16;

/// Memory that is cleared may have so many limbs in between that need not be.
const SMALL_GAP: usize = 8;

/// The code is specialised for all outcomes of the parser that ordinary packets have, and for others if those are fewer than this.
const MIN_SPECIALISATIONS: usize = 3;

/// But no other is begun when what follows the parser has so many instructions.
const SPECIALISATION_INSTRUCTIONS: usize = 10_000;

/// A program of more statements than this, those of actions counted wherever they may run, is not specialised at all.
const MAX_SPECIALISED_STATEMENTS: usize = 2000;

/// What generation of the fast path knows.
pub(super) struct FastPath {
    headers: Headers,
    /// By slot: the header whose validity it is.
    validity_of: Vec<Option<HeaderId>>,
    /// By header: the address where it was extracted last, if some header may be.
    sources: Vec<Option<Source>>,
    /// Not zero if headers moved.
    pub(super) moved: Variable,
    pub(super) may_move: bool,
    /// Not zero if the program asked for what only the slow path does.
    bailout: Variable,
    /// Where the packet goes.
    pub(super) port: Variable,
    /// Checksums are being verified, or the parser runs.
    on_arrival: bool,
}

/// Where the address at which a header was extracted last is kept.
#[derive(Clone, Copy)]
enum Source {
    Value(Variable),
    /// For headers that live in memory; there is an address only if the header was extracted.
    Memory(StackSlot),
}

/// What the engine finds in the state array when the function ends early.
pub(super) struct Exports {
    /// Slots, if it may end after ingress.
    after_ingress: Option<Vec<bool>>,
    /// Slots, if it may end after egress.
    after_egress: Option<Vec<bool>>,
    /// Egress can tell how long the packet is.
    measures: bool,
    /// Replicas are made here.
    replicates: bool,
    /// What may be asked for.
    clones: bool,
    repeats: bool,
    truncates: bool,
}

impl Exports {
    /// Nothing is asked for.
    pub(super) fn none() -> Exports {
        Exports {
            after_ingress: None,
            after_egress: None,
            measures: false,
            replicates: false,
            clones: false,
            repeats: false,
            truncates: false,
        }
    }

    fn new(program: &ir::Program) -> Exports {
        let (ingress, egress) = (Usage::of_ingress(program), Usage::of_egress(program));
        let shared = shared_with_engine(program, &egress);
        let both = shared.iter().zip(&egress.reads);
        let after_ingress = both.map(|(&shared, &read)| shared || read).collect();
        let replicates = may_replicate(program);
        let in_place = replicates && can_replicate(program, &egress);
        Exports {
            after_ingress: (ingress.clones || ingress.repeats || replicates && !in_place)
                .then_some(after_ingress),
            after_egress: (egress.clones || egress.repeats).then_some(shared),
            measures: measures(program, &egress),
            replicates: in_place,
            clones: ingress.clones || egress.clones,
            repeats: ingress.repeats || egress.repeats,
            truncates: ingress.truncates || egress.truncates,
        }
    }

    /// Nobody asks for the packet as it came.
    fn needs_no_original(&self) -> bool {
        self.after_ingress.is_none() && self.after_egress.is_none() && !self.replicates
    }

    fn contains(&self, slot: usize) -> bool {
        let lists = [&self.after_ingress, &self.after_egress];
        lists.into_iter().flatten().any(|list| list[slot])
    }
}

/// Whether the functions of the fast path make replicas.
pub(crate) fn makes_replicas(program: &ir::Program) -> bool {
    Exports::new(program).replicates
}

/// The outcomes of the parser for which what follows is worth being specialised, the most likely first. None if that is not worth it.
pub(crate) fn specialisations(program: &ir::Program) -> Vec<Validity> {
    if statements_behind_parser(program) > MAX_SPECIALISED_STATEMENTS {
        return Vec::new();
    }
    let program = split(program);
    if !is_repeatable(&program) {
        return Vec::new();
    }
    let mut shares: BTreeMap<Validity, u64> = BTreeMap::new();
    for (validity, share) in accepted(&program)
        .into_iter()
        .zip(accepted_shares(&program))
    {
        if let Some(validity) = validity {
            *shares.entry(validity).or_insert(0) += share;
        }
    }
    let ordinary = shares.values().filter(|&&share| share > 0).count();
    let mut specialisations: Vec<_> = shares.into_iter().collect();
    // Of those as likely, one with more headers first.
    specialisations.sort_by_cached_key(|(validity, share)| {
        let headers = validity.iter().filter(|&&valid| valid).count();
        Reverse((*share, headers, validity.clone()))
    });
    specialisations.truncate(ordinary.max(MIN_SPECIALISATIONS));
    specialisations
        .into_iter()
        .map(|(validity, _)| validity)
        .collect()
}

impl FastPath {
    /// The variables with addresses of headers.
    pub(super) fn source_variables(&self) -> Vec<Variable> {
        let variable = |source: &Source| match source {
            Source::Value(variable) => Some(*variable),
            Source::Memory(_) => None,
        };
        self.sources.iter().flatten().filter_map(variable).collect()
    }
}

impl Gen<'_, '_> {
    /// Generates the whole function: for these outcomes of the parser, or for all if there are none.
    pub(super) fn fast_path(&mut self, headers: Headers, specialisations: &[Validity]) {
        let program = self.program;
        let exports = Exports::new(program);
        self.place_fast_path(headers, &exports);
        self.arrive(&exports);
        if specialisations.is_empty() {
            self.parser(ir::Block::Parser);
            return self.behind_parser(&exports);
        }
        let places = self.places.clone();
        let edited = if exports.needs_no_original() {
            self.edited()
        } else {
            Vec::new()
        };
        let parser = Usage::of_parser(program);
        for &(_, slot) in edited.iter().filter(|(_, s)| !parser.reads[s.index()]) {
            self.places[slot.index()] = Place::EditedInPacket;
        }
        let blocks = self.parser_with_specialisations(ir::StateId(0), specialisations);
        self.return_way(way::GENERAL, None);
        let may_move = self.fast_path_mut().may_move;
        let parsed = self.b.func.dfg.num_insts();
        for (validity, block) in specialisations.iter().zip(blocks) {
            self.continue_in(block);
            if self.b.func.dfg.num_insts() - parsed > SPECIALISATION_INSTRUCTIONS {
                self.return_way(way::GENERAL, None);
                continue;
            }
            self.store_consumed();
            self.fast_path_mut().may_move = may_move;
            // What is known anyway becomes constants of this way.
            let no_error = self.small_constant(ir::ERROR_WIDTH, 0);
            self.put(self.standard().parser_error, &no_error);
            for (i, &valid) in validity.iter().enumerate() {
                self.put_validity(HeaderId(i as u32), valid);
            }
            self.places.clone_from(&places);
            for &(_, slot) in edited.iter().filter(|(h, _)| validity[h.index()]) {
                self.places[slot.index()] = Place::EditedInPacket;
            }
            self.behind_parser(&exports);
        }
    }

    /// The fields that, when their headers are valid, live in the packet. Nothing else is there: headers that were extracted one after
    /// the other do not overlap, and a payload begins behind them.
    fn edited(&mut self) -> Vec<(HeaderId, SlotId)> {
        let program = self.program;
        let mut edited = Vec::new();
        for (i, header) in program.headers.iter().enumerate() {
            for field in &header.fields {
                let (slot, width) = (field.slot, self.width(field.slot));
                let headers = &self.fast_path_mut().headers;
                let whole_bytes = |h: Home| h.offset.is_multiple_of(8) && width.is_multiple_of(8);
                if headers.can_be_edited(slot)
                    && headers.is_assigned(slot)
                    && headers.home(slot).is_some_and(whole_bytes)
                    && matches!(self.places[slot.index()], Place::Values { .. })
                {
                    edited.push((HeaderId(i as u32), slot));
                }
            }
        }
        edited
    }

    /// Writes a field of whole bytes into the packet.
    pub(super) fn store_at_source(&mut self, slot: SlotId, value: &Wide) {
        let Some(home) = self.fast_path_mut().headers.home(slot) else {
            return;
        };
        let base = self.source(home.header);
        let at = self.b.ins().iadd_imm_u(base, i64::from(home.offset / 8));
        let mut packer = Packer::new(at);
        self.pack(&mut packer, value);
        self.pack_end_exactly(packer);
    }

    fn behind_parser(&mut self, exports: &Exports) {
        let program = self.program;
        self.fast_path_mut().on_arrival = true;
        self.summed = None;
        self.control(&program.verify_checksum);
        self.fast_path_mut().on_arrival = false;
        self.control(&program.ingress);
        self.between(exports);
        self.control(&program.egress);
        self.end_if_dropped(exports);
        self.control(&program.compute_checksum);
        self.depart(exports);
    }

    /// Goes on at `yes` or `no`, with these arguments.
    pub(super) fn branch_on(&mut self, value: Value, yes: Block, no: Block, args: &[BlockArg]) {
        match self.known_value(value) {
            Some(0) => self.b.ins().jump(no, args),
            Some(_) => self.b.ins().jump(yes, &[]),
            None => self.b.ins().brif(value, yes, &[], no, args),
        };
    }

    pub(super) fn fast_path_mut(&mut self) -> &mut FastPath {
        let fast_path = self.fast_path.as_mut();
        fast_path.expect("only on the fast path")
    }

    pub(super) fn place_fast_path(&mut self, headers: Headers, exports: &Exports) {
        let program = self.program;
        let usage = Usage::of_fast_path(program, self.standard(), &headers);
        let zero = self.imm(0);
        for i in 0..program.slots.len() {
            let id = SlotId(i as u32);
            // What is only ever set to zero is zero.
            let place = match (usage.reads[i], usage.sets[i]) {
                (false, _) if headers.stays_in_packet(id) => Place::InPacket,
                (false, false) => Place::Unused,
                (false, true) if !exports.contains(i) => Place::Unused,
                (true, false) => Place::Zero,
                (_, true) if self.in_memory[i] => Place::Memory,
                (_, true) => self.declare_values(id, false, false, zero),
            };
            self.places.push(place);
        }
        self.clear_memory();
        let mut validity_of = vec![None; program.slots.len()];
        let mut sources = Vec::new();
        for (i, header) in program.headers.iter().enumerate() {
            let id = HeaderId(i as u32);
            validity_of[header.valid.index()] = Some(id);
            let source = headers
                .is_extracted(id)
                .then(|| self.new_source(header.valid));
            sources.push(source);
        }
        let [moved, bailout, port] = [(); 3].map(|()| self.b.declare_var(I64));
        for variable in [self.cursor, self.steps, self.emit_at, moved, bailout, port] {
            self.b.def_var(variable, zero);
        }
        let may_move = headers.emitted.is_none();
        self.fast_path = Some(FastPath {
            headers,
            validity_of,
            sources,
            moved,
            may_move,
            bailout,
            port,
            on_arrival: true,
        });
    }

    fn new_source(&mut self, valid: SlotId) -> Source {
        if self.in_memory[valid.index()] {
            let word = StackSlotData::new(StackSlotKind::ExplicitSlot, 8, 3);
            return Source::Memory(self.b.create_sized_stack_slot(word));
        }
        let variable = self.b.declare_var(I64);
        self.b.def_var(variable, self.packet);
        Source::Value(variable)
    }

    /// Clears the slots that live in memory, and what few limbs lie between them: nobody else keeps anything there.
    fn clear_memory(&mut self) {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for i in (0..self.places.len()).filter(|&i| self.places[i] == Place::Memory) {
            let slot = SlotId(i as u32);
            let at = self.layout.offset(slot);
            let end = at + self.layout.slot_limbs(slot);
            match runs.last_mut() {
                Some(run) if at <= run.end + SMALL_GAP => run.end = end,
                _ => runs.push(at..end),
            }
        }
        for run in runs {
            let first = self.b.ins().iadd_imm_u(self.state, 8 * run.start as i64);
            self.clear_limbs(first, run.len());
        }
    }

    /// Clears memory.
    fn clear_limbs(&mut self, first: Value, limbs: usize) {
        let zero = self.imm(0);
        let flags = MemFlagsData::trusted();
        if limbs <= INLINE_CLEAR_LIMBS {
            for i in 0..limbs {
                self.b.ins().store(flags, zero, first, 8 * i as i32);
            }
            return;
        }
        // A turn of the loop clears eight limbs; what is left is cleared behind it.
        let turn = 8;
        let (turns, rest) = (limbs / turn, limbs % turn);
        let end = self.b.ins().iadd_imm_u(first, (8 * turn * turns) as i64);
        let (again, after) = (self.b.create_block(), self.b.create_block());
        self.b.append_block_param(again, I64);
        self.b.ins().jump(again, &[first.into()]);
        self.b.switch_to_block(again);
        let at = self.b.block_params(again)[0];
        let zeros = self.b.ins().splat(I64X2, zero);
        for i in 0..turn / 2 {
            self.b.ins().store(flags, zeros, at, 16 * i as i32);
        }
        let next = self.b.ins().iadd_imm_u(at, 8 * turn as i64);
        let more = self.b.ins().icmp(IntCC::NotEqual, next, end);
        self.b.ins().brif(more, again, &[next.into()], after, &[]);
        self.b.seal_block(again);
        self.continue_in(after);
        for i in 0..rest {
            self.b.ins().store(flags, zero, end, 8 * i as i32);
        }
    }

    pub(super) fn frame_word(&mut self, offset: usize) -> Value {
        (self.b.ins()).load(I64, MemFlagsData::trusted(), self.frame, offset as i32)
    }

    /// What the frame says of the packet's arrival, which stays as it is; a load that disappears if nobody uses the value.
    fn arrival_word(&mut self, offset: usize) -> Value {
        (self.b.ins()).load(I64, constant_memory(), self.frame, offset as i32)
    }

    /// Gives a slot of the standard metadata a value.
    fn put_word(&mut self, slot: SlotId, word: Value) {
        if !self.keeps(slot) {
            return;
        }
        let word = Wide {
            width: 64,
            limbs: smallvec![word],
        };
        let value = self.resize(&word, self.width(slot));
        self.put(slot, &value);
    }

    /// The standard metadata of a packet that arrives; nothing is asked for yet.
    pub(super) fn arrive(&mut self, exports: &Exports) {
        let standard = *self.standard();
        let zero = self.imm(0);
        for (may_be_set, offset) in [
            (exports.clones, offset_of!(Frame, clone)),
            (exports.repeats, offset_of!(Frame, resubmit)),
            (exports.repeats, offset_of!(Frame, recirculate)),
            (exports.truncates, offset_of!(Frame, truncate)),
        ] {
            if may_be_set {
                self.store_frame(offset, zero);
            }
        }
        if let Some(burst) = self.burst {
            let at = offset_of!(Arrival, port) as i32;
            let port = (self.b.ins()).load(I64, constant_memory(), burst.arrival, at);
            self.put_word(standard.ingress_port, port);
        }
        let now_us = self.arrival_word(offset_of!(Frame, now_us));
        self.put_word(standard.packet_length, self.packet_len);
        self.put_word(standard.ingress_global_timestamp, now_us);
    }

    /// From ingress to egress: what the traffic manager does with a packet that goes to one port.
    fn between(&mut self, exports: &Exports) {
        let standard = *self.standard();
        if let Some(exported) = &exports.after_ingress {
            let fast_path = self.fast_path_mut();
            let bailout = fast_path.bailout;
            let mut more = self.b.use_var(bailout);
            if !exports.replicates {
                let group = self.read(standard.mcast_grp).low();
                more = self.b.ins().bor(more, group);
            }
            self.end_if(more, way::AFTER_INGRESS, exported);
        }
        if exports.replicates {
            let group = self.read(standard.mcast_grp).low();
            let (several, one) = (self.b.create_block(), self.b.create_block());
            self.b.ins().brif(group, several, &[], one, &[]);
            self.continue_in(several);
            self.replicate(group, exports);
            self.continue_in(one);
        }
        let spec = self.read(standard.egress_spec).low();
        let drop_port = self.imm(DROP_PORT.into());
        let dropped = self.b.ins().icmp(IntCC::Equal, spec, drop_port);
        self.return_if(dropped, way::DROPPED + drop_code::INGRESS_DROP);
        let port = self.fast_path_mut().port;
        self.b.def_var(port, spec);
        let zero = self.imm(0);
        self.start_egress(exports, spec, zero, zero);
    }

    /// What a copy finds when it begins egress.
    pub(super) fn start_egress(
        &mut self,
        exports: &Exports,
        port: Value,
        rid: Value,
        instance_type: Value,
    ) {
        let standard = *self.standard();
        let zero = self.imm(0);
        let now_us = self.arrival_word(offset_of!(Frame, now_us));
        for (slot, value) in [
            (standard.egress_port, port),
            (standard.egress_spec, zero),
            (standard.egress_rid, rid),
            (standard.instance_type, instance_type),
            (standard.enq_qdepth, zero),
            (standard.deq_qdepth, zero),
            (standard.deq_timedelta, zero),
            (standard.enq_timestamp, now_us),
            (standard.egress_global_timestamp, now_us),
        ] {
            self.put_word(slot, value);
        }
        if exports.measures && self.keeps(standard.packet_length) {
            let bytes = self.measure();
            self.put_word(standard.packet_length, bytes);
        }
        // Egress has steps of its own.
        self.b.def_var(self.steps, zero);
    }

    /// Length of the packet with its headers as they are now.
    fn measure(&mut self) -> Value {
        let program = self.program;
        let cursor = self.b.use_var(self.cursor);
        let mut sum = self.b.ins().isub(self.packet_len, cursor);
        for (header, emitted) in program.headers.iter().zip(program.emitted_headers()) {
            if !emitted
                || !self.keeps(header.valid)
                || self.places[header.valid.index()] == Place::Zero
            {
                // Never valid.
                continue;
            }
            let fixed: u64 = (header.fields.iter())
                .filter(|f| f.varbit_length.is_none())
                .map(|f| u64::from(self.width(f.slot)))
                .sum();
            let mut bits = self.imm(fixed);
            for length in header.fields.iter().filter_map(|f| f.varbit_length) {
                let length = self.read(length).low();
                bits = self.b.ins().iadd(bits, length);
            }
            let up = self.b.ins().iadd_imm_u(bits, 7);
            let bytes = self.shr_imm(up, 3);
            let valid = self.read(header.valid).low();
            let zero = self.imm(0);
            let bytes = self.b.ins().select(valid, bytes, zero);
            sum = self.b.ins().iadd(sum, bytes);
        }
        sum
    }

    /// After the egress control: the drop port.
    fn end_if_dropped(&mut self, exports: &Exports) {
        let spec = self.read(self.standard().egress_spec).low();
        let drop_port = self.imm(DROP_PORT.into());
        let dropped = self.b.ins().icmp(IntCC::Equal, spec, drop_port);
        let (stop, next) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(dropped, stop, &[], next, &[]);
        self.continue_in(stop);
        if let Some(exported) = &exports.after_egress {
            let bailout = self.fast_path_mut().bailout;
            let bailout = self.b.use_var(bailout);
            self.end_if(bailout, way::AFTER_EGRESS, exported);
        }
        self.return_way(way::DROPPED + drop_code::EGRESS_DROP, None);
        self.continue_in(next);
    }

    /// The deparser.
    fn depart(&mut self, exports: &Exports) {
        let fast_path = self.fast_path_mut();
        let (moved, bailout, port) = (fast_path.moved, fast_path.bailout, fast_path.port);
        let (may_move, emitted) = (fast_path.may_move, fast_path.headers.emitted.clone());
        let in_place = match exports.truncates {
            true => way::CUT_IN_PLACE,
            false => way::SENT_IN_PLACE,
        };
        let mut elsewhere = None;
        if may_move {
            elsewhere = Some(self.b.use_var(moved));
        }
        if exports.after_egress.is_some() {
            let bailout = self.b.use_var(bailout);
            elsewhere = Some(match elsewhere {
                Some(moved) => self.b.ins().bor(moved, bailout),
                None => bailout,
            });
        }
        if let Some(emitted) = emitted {
            let Some(elsewhere) = elsewhere else {
                self.edit(&emitted);
                let port = self.b.use_var(port);
                return self.return_way(in_place, Some(port));
            };
            let (emit, edit) = (self.b.create_block(), self.b.create_block());
            self.b.ins().brif(elsewhere, emit, &[], edit, &[]);
            self.continue_in(edit);
            self.edit(&emitted);
            let port = self.b.use_var(port);
            self.return_way(in_place, Some(port));
            self.continue_in(emit);
        }
        let buffer = self.frame_word(offset_of!(Frame, emitted));
        self.b.def_var(self.emit_at, buffer);
        let program = self.program;
        self.control(&program.deparser);
        self.store_emitted_len();
        if let Some(exported) = &exports.after_egress {
            let bailout = self.b.use_var(bailout);
            self.end_if(bailout, way::AFTER_EGRESS, exported);
        }
        let port = self.b.use_var(port);
        self.return_way(way::SENT, Some(port));
    }

    /// Writes the assigned fields of the headers into the packet.
    fn edit(&mut self, emitted: &[HeaderId]) {
        for &header in emitted {
            if self.fast_path_mut().headers.is_extracted(header) && !self.changes(header).is_empty()
            {
                let valid = self.read(self.program.headers[header.index()].valid).low();
                let (there, after) = (self.b.create_block(), self.b.create_block());
                self.branch_on(valid, there, after, &[]);
                self.continue_in(there);
                let base = self.source(header);
                self.overlay(base, header);
                self.b.ins().jump(after, &[]);
                self.continue_in(after);
            }
        }
    }

    /// The runs of bytes (first, end) of a header without a varbit in which fields that may be assigned lie.
    fn changes(&mut self, header: HeaderId) -> Vec<(u32, u32)> {
        let program = self.program;
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for field in &program.headers[header.index()].fields {
            let is_written = self.places[field.slot.index()] == Place::EditedInPacket;
            let headers = &self.fast_path_mut().headers;
            let Some(home) = headers
                .home(field.slot)
                .filter(|_| headers.is_assigned(field.slot) && !is_written)
            else {
                continue;
            };
            let end = (home.offset + self.width(field.slot)).div_ceil(8);
            let first = home.offset / 8;
            match runs.last_mut() {
                Some(last) if last.1 >= first => last.1 = end,
                _ => runs.push((first, end)),
            }
        }
        runs
    }

    /// Writes the fields that may be assigned over the bytes of a header at `base`, where the others are already.
    pub(super) fn overlay(&mut self, base: Value, header: HeaderId) {
        let program = self.program;
        for (first, end) in self.changes(header) {
            let at = self.b.ins().iadd_imm_u(base, i64::from(first));
            let mut packer = Packer::new(at);
            for field in &program.headers[header.index()].fields {
                let Some(home) = self.fast_path_mut().headers.home(field.slot) else {
                    continue;
                };
                let field_end = home.offset + self.width(field.slot);
                // The bits of the field within these bytes.
                let (from, to) = (home.offset.max(8 * first), field_end.min(8 * end));
                if from >= to {
                    continue;
                }
                let value = match self.places[field.slot.index()] {
                    Place::InPacket | Place::EditedInPacket => {
                        self.field_at_source(home, field.slot)
                    }
                    _ => self.read(field.slot),
                };
                let value = self.slice(&value, field_end - from - 1, field_end - to);
                self.pack(&mut packer, &value);
            }
            self.pack_end_exactly(packer);
        }
    }

    /// Where a header was extracted last.
    pub(super) fn source(&mut self, header: HeaderId) -> Value {
        match self.fast_path_mut().sources[header.index()] {
            Some(Source::Value(variable)) => self.b.use_var(variable),
            Some(Source::Memory(word)) => {
                let at = self.b.ins().stack_addr(I64, word, 0);
                self.b.ins().load(I64, MemFlagsData::trusted(), at, 0)
            }
            None => self.packet,
        }
    }

    /// A field of a valid header that lies in the packet.
    fn field_at_source(&mut self, home: Home, slot: SlotId) -> Wide {
        self.bits_at_source(home, self.width(slot))
    }

    /// So many bits, from a field on, of a valid header that lies in the packet.
    pub(super) fn bits_at_source(&mut self, home: Home, width: u32) -> Wide {
        let base = self.source(home.header);
        let bytes = self.program.header_max_bytes(home.header) as u32;
        let mut window = Window::new(base, bytes);
        self.window_field(&mut window, home.offset, width)
    }

    /// Whether a slot is the validity of a header, whose assignment means more than its value.
    pub(super) fn is_validity(&self, slot: SlotId) -> bool {
        let fast_path = self.fast_path.as_ref();
        fast_path.is_some_and(|s| s.validity_of[slot.index()].is_some())
    }

    /// A field that lies in the packet if its header is valid, else zero.
    pub(super) fn reload_from_packet(&mut self, slot: SlotId) -> Wide {
        let width = self.width(slot);
        let Some(home) = self.fast_path_mut().headers.home(slot) else {
            return self.constant(&ir::Bits::zero(width));
        };
        let valid = self.program.headers[home.header.index()].valid;
        let valid = self.read(valid).low();
        let (there, after) = (self.b.create_block(), self.b.create_block());
        let zero = self.imm(0);
        let zeros = vec![zero.into(); limbs_for(width)];
        for _ in 0..limbs_for(width) {
            self.b.append_block_param(after, I64);
        }
        match self.known_value(valid) {
            Some(0) => return self.constant(&ir::Bits::zero(width)),
            Some(_) => return self.field_at_source(home, slot),
            None => self.b.ins().brif(valid, there, &[], after, &zeros),
        };
        self.continue_in(there);
        let value = self.field_at_source(home, slot);
        let limbs: Vec<_> = value.limbs.iter().map(|&l| l.into()).collect();
        self.b.ins().jump(after, &limbs);
        self.continue_in(after);
        Wide {
            width,
            limbs: self.b.block_params(after).iter().copied().collect(),
        }
    }

    /// Copies a header that is valid from where it was extracted, if it always lies there.
    pub(super) fn copy_from_packet(&mut self, to: Value, header: HeaderId) -> bool {
        let lies_there =
            (self.fast_path.as_ref()).is_some_and(|s| s.headers.is_from_packet(header));
        if lies_there {
            let from = self.source(header);
            let bytes = self.program.header_max_bytes(header) as u32;
            self.copy_bytes(from, to, bytes);
        }
        lies_there
    }

    /// Whether checksums are being verified, or the parser runs, on the fast path.
    pub(super) fn is_on_arrival(&self) -> bool {
        self.fast_path.as_ref().is_some_and(|s| s.on_arrival)
    }

    /// The place of a field in its header, which lies in the packet if it is valid, but for fields that were assigned.
    pub(super) fn home_in_header(&self, slot: SlotId) -> Option<Home> {
        let headers = &self.fast_path.as_ref()?.headers;
        let home = headers.home(slot)?;
        headers.is_from_packet(home.header).then_some(home)
    }

    /// The place of a field that lies in the packet now, if its header is valid, and is zero if not.
    pub(super) fn home_in_packet(&self, expr: &Expr) -> Option<Home> {
        let (fast_path, Expr::Slot(slot)) = (self.fast_path.as_ref()?, expr) else {
            return None;
        };
        let unchanged = fast_path.headers.is_unchanged(*slot, fast_path.on_arrival)
            || self.places[slot.index()] == Place::EditedInPacket;
        fast_path.headers.home(*slot).filter(|_| unchanged)
    }

    /// A header is being extracted at this address.
    pub(super) fn note_extraction(&mut self, header: HeaderId, base: Value) {
        let Some(fast_path) = &self.fast_path else {
            return;
        };
        let moves = fast_path.headers.moves(header);
        match fast_path.sources[header.index()] {
            Some(Source::Value(variable)) => self.b.def_var(variable, base),
            Some(Source::Memory(word)) => {
                let at = self.b.ins().stack_addr(I64, word, 0);
                (self.b.ins()).store(MemFlagsData::trusted(), base, at, 0);
            }
            None => {}
        }
        if moves {
            self.note_move();
        }
    }

    /// A header is about to become valid, or invalid.
    pub(super) fn note_validity(&mut self, header: HeaderId, valid: bool) {
        let emitted = |s: &FastPath| s.headers.emitted.is_some() && s.headers.is_emitted(header);
        if !self.fast_path.as_ref().is_some_and(emitted) {
            return;
        }
        let mut change = self.read(self.program.headers[header.index()].valid).low();
        match self.known_value(change) {
            Some(now) if now == u64::from(valid) => return,
            Some(_) => return self.note_move(),
            None => {}
        }
        if valid {
            change = self.b.ins().bxor_imm_u(change, 1);
        }
        self.note_move_if(change);
    }

    /// A slot is being assigned.
    pub(super) fn note_assignment(&mut self, slot: SlotId) {
        let Some(fast_path) = &self.fast_path else {
            return;
        };
        let header = fast_path.validity_of[slot.index()];
        if header.is_some_and(|h| fast_path.headers.is_emitted(h)) {
            self.note_move();
        }
    }

    /// Headers do not lie any more where they were.
    pub(super) fn note_move(&mut self) {
        if self.fast_path.is_some() {
            let one = self.imm(1);
            self.note_move_if(one);
        }
    }

    fn note_move_if(&mut self, condition: Value) {
        let fast_path = self.fast_path_mut();
        fast_path.may_move = true;
        let variable = fast_path.moved;
        let moved = self.b.use_var(variable);
        let moved = self.b.ins().bor(moved, condition);
        self.b.def_var(variable, moved);
    }

    /// Something is asked for.
    pub(super) fn note_request(&mut self) {
        if let Some(fast_path) = &self.fast_path {
            let bailout = fast_path.bailout;
            let one = self.imm(1);
            self.b.def_var(bailout, one);
        }
    }

    /// Ends the way of a packet. The function goes on with the next if nothing has to be done for this one that it cannot do.
    pub(super) fn return_way(&mut self, code: u64, port: Option<Value>) {
        let mut result = self.imm(code);
        if let Some(port) = port {
            let port = self.shl_imm(port, 8);
            result = self.b.ins().bor(result, port);
        }
        let burst = self.burst.expect("only on the fast path");
        let at = offset_of!(Arrival, code) as i32;
        (self.b.ins()).store(MemFlagsData::trusted(), result, burst.arrival, at);
        if code == way::SENT_IN_PLACE || code > way::DROPPED {
            self.next_packet();
        } else {
            self.b.ins().return_(&[burst.arrival]);
        }
    }

    pub(super) fn return_if(&mut self, condition: Value, code: u64) {
        let (stop, next) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(condition, stop, &[], next, &[]);
        self.continue_in(stop);
        self.return_way(code, None);
        self.continue_in(next);
    }

    /// Ends the function if `condition` is not zero, with these slots in the state array.
    fn end_if(&mut self, condition: Value, code: u64, exported: &[bool]) {
        let (stop, next) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(stop);
        self.b.ins().brif(condition, stop, &[], next, &[]);
        self.continue_in(stop);
        self.export(exported);
        let port = self.fast_path_mut().port;
        let port = self.b.use_var(port);
        self.return_way(code, Some(port));
        self.continue_in(next);
    }

    /// Writes slots to the state array.
    fn export(&mut self, exported: &[bool]) {
        let program = self.program;
        for i in (0..program.slots.len()).filter(|&i| exported[i]) {
            let slot = SlotId(i as u32);
            if matches!(self.places[i], Place::Values { .. }) {
                let value = self.read(slot);
                self.store_state(slot, &value);
            } else if self.places[i] != Place::Memory {
                self.clear_state(slot);
            }
        }
        for header in &program.headers {
            self.export_from_packet(header, exported);
        }
    }

    fn export_from_packet(&mut self, header: &ir::Header, exported: &[bool]) {
        let lies_there = |g: &Self, slot: SlotId| {
            exported[slot.index()] && g.places[slot.index()] == Place::InPacket
        };
        if !header.fields.iter().any(|f| lies_there(self, f.slot)) {
            return;
        }
        let valid = self.read(header.valid).low();
        let (there, after): (Block, Block) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(valid, there, &[], after, &[]);
        self.continue_in(there);
        for field in &header.fields {
            let home = self.fast_path_mut().headers.home(field.slot);
            if let Some(home) = home.filter(|_| lies_there(self, field.slot)) {
                let value = self.field_at_source(home, field.slot);
                self.store_state(field.slot, &value);
            }
        }
        self.b.ins().jump(after, &[]);
        self.continue_in(after);
    }

    fn clear_state(&mut self, slot: SlotId) {
        let offset = 8 * self.layout.offset(slot) as i64;
        let first = self.b.ins().iadd_imm_u(self.state, offset);
        self.clear_limbs(first, self.layout.slot_limbs(slot));
    }

    fn store_state(&mut self, slot: SlotId, value: &Wide) {
        for (i, &limb) in value.limbs.iter().enumerate() {
            let offset = 8 * (self.layout.offset(slot) + i);
            (self.b.ins()).store(MemFlagsData::trusted(), limb, self.state, offset as i32);
        }
    }
}
