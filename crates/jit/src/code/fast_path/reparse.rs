//! What happens to a packet between ingress and egress if ingress deparses it and egress parses it again: the
//! packet that egress parses is the packet that arrived, with its headers edited where they lie or written in
//! front of the payload.
//!
//! Whatever else a packet needs (a clone, replicas, another round, more memory for its headers) is left to
//! the switch. For that its headers go to the buffer, and the packet stays as it arrived.

use crate::analysis::paths::Validity;
use crate::analysis::reparse::Reparse;
use crate::code::{EntryPoint, Gen, Slots};
use crate::frame::{Arrival, drop_code, exit};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value};
use engine::DropReason;
use ir::{HeaderId, Input, Pipeline, SlotId, SlotValue};
use std::mem::offset_of;

impl<'a> Gen<'a, '_> {
    /// Generates all code after the ingress control, for a packet that goes to one port: the deparser of
    /// ingress, the beginning and the parser of egress, and what follows. Packets that need anything else are
    /// handed over to the switch.
    pub(super) fn deparse_and_parse(&mut self, reparse: &'a Reparse<'a>) {
        let forwarding = &self.facts().forwarding;
        self.control(reparse.ingress.before);
        let [elsewhere, here] = [(); 2].map(|()| self.b.create_block());
        self.b.set_cold_block(elsewhere);
        let group = self.read(forwarding.group).low();
        let more = self.requests(group, &forwarding.ingress_requests);
        let next = self.b.create_block();
        self.branch_on(more, elsewhere, next, &[]);
        self.continue_in(next);
        let dropped = self.has(forwarding.ingress_drop);
        self.exit_if(dropped, exit::DROPPED + drop_code(DropReason::IngressDrop));
        let port = self.read(forwarding.port).low();
        let place = self.write_headers(&reparse.ingress.emits, elsewhere);
        self.b.ins().jump(here, &[]);

        self.continue_in(elsewhere);
        self.hand_over(&reparse.ingress.emits);
        self.continue_in(here);
        [self.packet, self.packet_len] = place;
        let likely = self.likely_outcome(reparse);
        self.begin_egress(port, &reparse.cleared);
        self.parse_again(likely);
    }

    /// Generates the end of the packet's run after ingress, for the switch to go on: `headers` are emitted to
    /// the buffer, and the packet is as it arrived.
    fn hand_over(&mut self, headers: &[HeaderId]) {
        self.begin_emitting();
        for &header in headers {
            self.emit(header);
        }
        self.store_emitted_len();
        if let Some(exported) = &self.facts().bailouts.after_ingress {
            self.export(exported);
        }
        self.exit_with(exit::AFTER_INGRESS, None);
    }

    /// Generates code that makes the packet begin with those of `headers` that are valid, by editing it in
    /// place or writing in front of the payload. It jumps to `elsewhere`, with the packet unchanged, if there
    /// is no room for them. Returns the packet's address and its length.
    fn write_headers(&mut self, headers: &[HeaderId], elsewhere: Block) -> [Value; 2] {
        let fast_path = self.fast_path_mut();
        let (may_move, moved) = (fast_path.course.may_move, fast_path.moved);
        let moved = self.b.use_var(moved);
        if !may_move || self.known_value(moved) == Some(0) {
            self.edit(headers);
            return [self.packet, self.packet_len];
        }
        self.fast_path_mut().course.relocated = true;
        let [edit, emit, done] = [(); 3].map(|()| self.b.create_block());
        let place = [(); 2].map(|()| self.b.append_block_param(done, I64));
        self.branch_on(moved, emit, edit, &[]);
        self.continue_in(edit);
        self.edit(headers);
        let unchanged = [self.packet.into(), self.packet_len.into()];
        self.b.ins().jump(done, &unchanged);
        self.continue_in(emit);
        if self.has_known_lengths(headers) {
            let changed = self.write_in_front(headers, elsewhere);
            self.b.ins().jump(done, &changed.map(Into::into));
        } else {
            self.b.ins().jump(elsewhere, &[]);
        }
        self.continue_in(done);
        place
    }

    /// Generates code that writes those of `headers` that are valid in front of the payload, and jumps to
    /// `elsewhere` if there is no room. Returns the packet's address and its length.
    fn write_in_front(&mut self, headers: &[HeaderId], elsewhere: Block) -> [Value; 2] {
        let arrival = self.burst.expect("only on the fast path").arrival;
        let (flags, at) = (MemFlagsData::trusted(), offset_of!(Arrival, headroom));
        let headroom = self.b.ins().load(I64, flags, arrival, at as i32);
        let cursor = self.cursor();
        let bytes = self.header_bytes_of(headers);
        let room = self.b.ins().iadd(headroom, cursor);
        let fits = (self.b.ins()).icmp(IntCC::UnsignedGreaterThanOrEqual, room, bytes);
        let there = self.b.create_block();
        self.b.ins().brif(fits, there, &[], elsewhere, &[]);
        self.continue_in(there);
        let left = self.b.ins().isub(room, bytes);
        self.b.ins().store(flags, left, arrival, at as i32);
        let payload = self.at_cursor();
        let front = self.b.ins().isub(payload, bytes);
        let rest = self.remaining();
        let length = self.b.ins().iadd(rest, bytes);
        self.read_ahead(headers);
        self.set_emit_at(front);
        self.emits_exactly = true;
        for &header in headers {
            self.emit(header);
        }
        self.emits_exactly = false;
        [front, length]
    }

    /// Generates the beginning of egress, before its parser, for a packet that goes to `port`: clears the
    /// slots `cleared` and writes the metadata of egress.
    fn begin_egress(&mut self, port: Value, cleared: &[SlotId]) {
        let forwarding = &self.facts().forwarding;
        let class = self.read(forwarding.priority).low();
        let class = self.and_imm(class, u8::MAX.into());
        for &slot in cleared {
            self.clear(slot);
        }
        let zero = self.imm(0);
        let may_move = self.facts().headers.emitted.is_none();
        let fast_path = self.fast_path_mut();
        fast_path.course.may_move = may_move;
        fast_path.course.half = Pipeline::EGRESS;
        // These bytes may have been written over.
        fast_path.loaded.clear();
        let (moved, bailout, of_port) = (fast_path.moved, fast_path.bailout, fast_path.port);
        self.surroundings.summed = None;
        for variable in [self.cursor, moved] {
            self.b.def_var(variable, zero);
        }
        self.b.def_var(of_port, port);
        let architecture = self.program.architecture.description();
        let again = match architecture.recirculation_port {
            Some(again) => {
                let again = self.imm(again.into());
                let again = self.b.ins().icmp(IntCC::Equal, port, again);
                self.b.ins().uextend(I64, again)
            }
            None => zero,
        };
        self.b.def_var(bailout, again);
        let path = self.imm(forwarding.unicast_path);
        self.start_egress(port, zero, path);
        for &(slot, _) in (forwarding.egress.iter()).filter(|(_, given)| *given == Input::Priority)
        {
            self.put_word(slot, class);
        }
    }

    /// Generates the parser of egress and all code after it. The code after it is generated twice if an
    /// outcome is `likely`: for that outcome, where the validity of headers is known, and for all others.
    fn parse_again(&mut self, likely: Option<&Validity>) {
        let facts = self.facts();
        let program = self.program;
        self.fast_path_mut().on_arrival = true;
        let form = facts.egress_parser.as_ref();
        let known = match form.filter(|_| self.entry_point == EntryPoint::FastPath) {
            Some(parser) => Some(self.parser_with_outcome(parser, likely)),
            None => {
                let start = program.parser_of(Pipeline::EGRESS);
                start.into_iter().for_each(|start| self.parser(start));
                None
            }
        };
        self.fast_path_mut().on_arrival = false;
        let (Some(likely), Some(known)) = (likely, known) else {
            return self.egress();
        };
        let others = self.b.create_block();
        self.b.set_cold_block(others);
        self.b.ins().jump(others, &[]);
        let may_move = self.fast_path_mut().course.may_move;

        self.continue_in(known);
        self.store_consumed();
        let no_error = self.small_constant(ir::ERROR_WIDTH, 0);
        self.put(
            program.architecture.parser_error(Pipeline::EGRESS),
            &no_error,
        );
        for (i, &valid) in likely.iter().enumerate() {
            let header = HeaderId(i as u32);
            // Others may be brought along.
            if facts.headers.is_extracted(header) || facts.headers.is_emitted(header) {
                self.put_validity(header, valid);
            }
        }
        self.egress();

        self.continue_in(others);
        self.fast_path_mut().course.may_move = may_move;
        self.egress();
    }

    /// Generates all code after the egress control of a program that parses twice: checksums, the deparser's
    /// statements, the decision whether the packet is dropped, and its departure.
    pub(super) fn deparse_and_decide(&mut self, reparse: &'a Reparse<'a>) {
        let (program, forwarding) = (self.program, &self.facts().forwarding);
        self.control(program.checksums(Pipeline::EGRESS));
        self.control(reparse.egress.before);
        let bailout = self.fast_path_mut().bailout;
        let more = self.b.use_var(bailout);
        let more = self.requests(more, &forwarding.egress_requests);
        self.b.def_var(bailout, more);
        let [alone, next] = [(); 2].map(|()| self.b.create_block());
        self.branch_on(more, next, alone, &[]);
        self.continue_in(alone);
        let dropped = self.has(forwarding.egress_drop);
        self.exit_if(dropped, exit::DROPPED + drop_code(DropReason::EgressDrop));
        self.b.ins().jump(next, &[]);
        self.continue_in(next);
        self.depart();
    }
}

impl<'a> Slots<'a, '_> {
    /// Returns the outcome of the egress parser that packets with the present headers probably have: the one
    /// that extracts the most of them, as headers with fields of the same widths in the same order. Returns
    /// `None` unless it is known of all headers whether they are present.
    fn likely_outcome(&mut self, reparse: &Reparse<'a>) -> Option<&'a Validity> {
        if self.entry_point != EntryPoint::FastPath {
            return None;
        }
        let program = self.program;
        let shape = |header: HeaderId| -> Vec<u32> {
            let fields = program.headers[header.index()].fields.iter();
            fields
                .map(|field| program.slots[field.slot.index()].width)
                .collect()
        };
        let mut present = Vec::new();
        for &header in &reparse.ingress.emits {
            match self.known_slot(program.headers[header.index()].valid)? {
                0 => {}
                _ => present.push(shape(header)),
            }
        }
        let taken = |validity: &Validity| -> Vec<Vec<u32>> {
            let emits = reparse.egress.emits.iter();
            let valid = emits.filter(|header| validity[header.index()]);
            valid.map(|&header| shape(header)).collect()
        };
        let outcomes = self
            .facts()
            .egress_parser
            .as_ref()?
            .accepted
            .iter()
            .flatten();
        outcomes
            .map(|outcome| (outcome, taken(outcome)))
            .filter(|(_, taken)| present.starts_with(taken))
            .max_by_key(|(_, taken)| taken.len())
            .map(|(outcome, _)| outcome)
    }

    /// Generates the bitwise "or" of `first` and all `slots`: not zero if one of them is not.
    fn requests(&mut self, first: Value, slots: &[SlotId]) -> Value {
        slots.iter().fold(first, |all, &slot| {
            let request = self.read(slot).low();
            match (self.known_value(request), self.known_value(all)) {
                (Some(0), _) => all,
                (_, Some(0)) => request,
                _ => self.b.ins().bor(all, request),
            }
        })
    }

    /// Generates the condition that the slot has the value.
    pub(super) fn has(&mut self, (slot, value): SlotValue) -> Value {
        let present = self.read(slot).low();
        if let Some(known) = self.known_value(present) {
            return self.imm((known == value).into());
        }
        let value = self.imm(value);
        self.b.ins().icmp(IntCC::Equal, present, value)
    }
}
