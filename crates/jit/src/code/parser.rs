//! The parser: states, transitions, and the statements that move through the packet.
//!
//! The cursor is a value. Bounds are checked once per extracted header, and everything inside is then read without
//! checks.

use super::bytes::Window;
use super::wide::{Wide, limbs_for};
use super::{Gen, Memory, Place};
use crate::analysis::ParserForm;
use crate::analysis::paths::{Validity, leads_to};
use crate::frame::Frame;
use crate::shims::Shim;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value};
use cranelift_frontend::Switch;
use ir::core_error;
use ir::{
    Bits, ERROR_WIDTH, Expr, HeaderId, KeySet, SelectCase, SlotId, State, StateId, Target,
    Transition,
};
use std::mem::offset_of;

/// The blocks of the parser while it is generated.
pub(crate) struct ParserBlocks {
    /// The block of each state.
    states: Vec<Block>,
    /// The state being generated.
    current: usize,
    /// The block after the parser.
    done: Block,
    /// For each state, the block to which it goes if it accepts.
    accept: Vec<Block>,
    /// For each state, true if it is generated.
    generated: Vec<bool>,
    /// The blocks that set a parser error and end the parser, with the errors.
    failures: Vec<(u64, Block)>,
}

/// What is known of the paths to a state before the parser is generated.
#[derive(Clone, Copy, Default)]
struct Entered {
    /// True if a path from the start leads to it.
    at_all: bool,
    /// True if a later state, or the state itself, leads to it.
    again: bool,
}

fn entered(states: &[State], start: usize, generated: &[bool]) -> Vec<Entered> {
    let mut result = vec![Entered::default(); states.len()];
    result[start].at_all = true;
    let mut open = vec![start];
    while let Some(from) = open.pop() {
        let targets = states[from].transition.states().map(StateId::index);
        for to in targets.filter(|&to| generated[to]) {
            result[to].again |= to <= from;
            if !std::mem::replace(&mut result[to].at_all, true) {
                open.push(to);
            }
        }
    }
    result
}

impl Gen<'_, '_> {
    /// Generates the parser of the first pipeline. Generation continues after the parser.
    pub(crate) fn first_parser(&mut self) {
        let first = self.program.parser_starts().next();
        first.into_iter().for_each(|start| self.parser(start));
    }

    /// Generates the parser that begins at `start`. Generation continues after the parser.
    pub(crate) fn parser(&mut self, start: StateId) {
        let states = &self.program.states;
        let none = vec![None; states.len()];
        self.states(states, start, vec![true; states.len()], &none, 0);
    }

    /// Generates a specialised parser. States that accept with one of `outcomes` jump to that outcome's
    /// block; these blocks are returned in the order of the outcomes. Other packets continue after the
    /// parser, and leave it as soon as they can reach no such outcome.
    pub(crate) fn specialised_parser(
        &mut self,
        parser: &ParserForm<'_>,
        outcomes: &[Validity],
    ) -> Vec<Block> {
        let outcome_of = |validity: &Option<Validity>| {
            let validity = validity.as_ref()?;
            outcomes.iter().position(|outcome| outcome == validity)
        };
        let accepted: Vec<_> = parser.accepted.iter().map(outcome_of).collect();
        let wanted = accepted.iter().map(Option::is_some).collect();
        let generated = leads_to(&parser.states, wanted);
        self.states(
            &parser.states,
            parser.start,
            generated,
            &accepted,
            outcomes.len(),
        )
    }

    /// Generates a whole parser. States that accept with the outcome `likely` jump to the block that is
    /// returned; all other packets continue after the parser.
    pub(super) fn parser_with_outcome(
        &mut self,
        parser: &ParserForm<'_>,
        likely: Option<&Validity>,
    ) -> Block {
        let is_likely = |validity: &Option<Validity>| {
            likely.is_some_and(|likely| validity.as_ref() == Some(likely))
        };
        let accepted: Vec<_> = (parser.accepted.iter())
            .map(|validity| is_likely(validity).then_some(0))
            .collect();
        let all = vec![true; parser.states.len()];
        self.states(&parser.states, parser.start, all, &accepted, 1)[0]
    }

    /// Generates the parser states that `generated` marks, beginning at `start`. `accepted` has, for each
    /// state, the number of the outcome with which it accepts, if it is one of the `outcomes` wanted ones.
    /// Such a state jumps to that outcome's block, all others continue after the parser. Returns the blocks
    /// of the outcomes.
    fn states(
        &mut self,
        states: &[State],
        start: StateId,
        generated: Vec<bool>,
        accepted: &[Option<usize>],
        outcomes: usize,
    ) -> Vec<Block> {
        let program = self.program;
        let entered = entered(states, start.index(), &generated);
        let blocks: Vec<Block> = states.iter().map(|_| self.b.create_block()).collect();
        let done = self.b.create_block();
        let outcome_blocks: Vec<Block> = (0..outcomes).map(|_| self.b.create_block()).collect();
        let accept = accepted.iter();
        let accept = accept.map(|outcome| outcome.map_or(done, |i| outcome_blocks[i]));
        self.b.ins().jump(blocks[start.index()], &[]);
        self.parser_blocks = Some(ParserBlocks {
            states: blocks.clone(),
            current: 0,
            done,
            accept: accept.collect(),
            generated,
            failures: Vec::new(),
        });
        for (i, state) in states.iter().enumerate() {
            if !entered[i].at_all {
                continue;
            }
            self.b.switch_to_block(blocks[i]);
            if !entered[i].again {
                self.b.seal_block(blocks[i]);
            }
            self.parser_mut().current = i;
            if self.stmts(&state.body) {
                self.transition(&state.transition);
            }
        }
        for (i, &block) in blocks.iter().enumerate() {
            if entered[i].at_all && entered[i].again {
                self.b.seal_block(block);
            }
        }
        for (code, block) in std::mem::take(&mut self.parser_mut().failures) {
            self.b.switch_to_block(block);
            self.b.seal_block(block);
            let error = self.small_constant(ERROR_WIDTH, code);
            let slot = program.architecture.parser_error(self.pipeline());
            self.write(slot, &error);
            self.b.ins().jump(done, &[]);
        }
        self.continue_in(done);
        self.parser_blocks = None;
        self.store_consumed();
        outcome_blocks
    }

    fn parser_mut(&mut self) -> &mut ParserBlocks {
        let blocks = self.parser_blocks.as_mut();
        blocks.expect("parser statements are in the parser only")
    }

    /// Returns the block that sets the parser error `error` and ends the parser.
    fn failure(&mut self, error: u64) -> Block {
        let known = (self.parser_mut().failures.iter()).find(|f| f.0 == error);
        if let Some(&(_, block)) = known {
            return block;
        }
        let block = self.b.create_block();
        self.b.set_cold_block(block);
        self.parser_mut().failures.push((error, block));
        block
    }

    /// Generates code that rejects the packet with the parser error `error` if the condition holds.
    fn fail_if(&mut self, condition: Value, error: u64) {
        let failure = self.failure(error);
        self.leave_if(condition, failure);
    }

    /// Generates code that rejects the packet unless `bytes` bytes follow the cursor.
    fn demand(&mut self, bytes: Value) {
        let remaining = self.remaining();
        let short = (self.b.ins()).icmp(IntCC::UnsignedLessThan, remaining, bytes);
        self.fail_if(short, core_error::PACKET_TOO_SHORT);
    }

    /// Generates [`ir::StmtKind::Extract`]: loads a header's fields, makes it valid, and moves the cursor to
    /// its end.
    pub(crate) fn extract(&mut self, header: HeaderId, varbit_length: Option<&Expr>) {
        if let Some(length) = varbit_length {
            return self.extract_varbit(header, length);
        }
        let program = self.program;
        let bytes = program.header_max_bytes(header) as u32;
        let count = self.imm(bytes.into());
        self.demand(count);
        let mut window = Window::new(self.at_cursor(), bytes);
        self.note_extraction(header, window.base());
        let mut offset = 0;
        for field in &program.headers[header.index()].fields {
            let width = self.width(field.slot);
            if self.keeps(field.slot) && self.places[field.slot.index()] != Place::EditedInPacket {
                let value = self.window_field(&mut window, offset, width);
                self.put(field.slot, &value);
                self.note_loaded(field.slot, &value, window.base());
            }
            offset += width;
        }
        self.put_validity(header, true);
        self.move_cursor(count);
    }

    /// Generates the extraction of a header with a varbit. Fields before the varbit have fixed places; a
    /// called function reads the others.
    fn extract_varbit(&mut self, id: HeaderId, length: &Expr) {
        let program = self.program;
        let header = &program.headers[id.index()];
        let length = self.expr(length).low();
        let is_varbit = |f: &ir::Field| f.varbit_length.is_some();
        let fixed: u32 = (header.fields.iter())
            .filter(|f| !is_varbit(f))
            .map(|f| self.width(f.slot))
            .sum();
        let max = (header.fields.iter().find(|f| is_varbit(f))).map_or(0, |f| self.width(f.slot));
        let bytes = self.check_varbit(length, max, fixed);

        let base = self.at_cursor();
        self.note_extraction(id, base);
        // Everything before the varbit is within the bytes that have been checked.
        let mut window = Window::new(base, fixed.div_ceil(8));
        let mut offset = 0;
        let mut shift = None;
        for field in &header.fields {
            let width = self.width(field.slot);
            let value = if let Some(length_slot) = field.varbit_length {
                shift = Some(length);
                let length = Wide::word(32, length);
                self.put(length_slot, &length);
                let at = self.imm(offset.into());
                self.read_bits(base, at, length.low(), width)
            } else if let Some(shift) = shift {
                let at = self.imm(offset.into());
                let at = self.b.ins().iadd(at, shift);
                let count = self.imm(width.into());
                offset += width;
                self.read_bits(base, at, count, width)
            } else {
                offset += width;
                self.window_field(&mut window, offset - width, width)
            };
            self.put(field.slot, &value);
        }
        self.put_validity(id, true);
        self.move_cursor(bytes);
    }

    /// Generates the checks of a varbit's length in bits, in the order of the P4_16 specification
    /// (`packet_in.extract`): whole bytes, enough packet, at most `max`. `fixed` is the length of the other
    /// fields in bits. Returns the length of the whole header in bytes.
    fn check_varbit(&mut self, length: Value, max: u32, fixed: u32) -> Value {
        let fixed = self.imm(fixed.into());
        let bits = self.b.ins().iadd(length, fixed);
        let odd = self.and_imm(bits, 7);
        self.fail_if(odd, core_error::PARSER_INVALID_ARGUMENT);
        let bytes = self.shr_imm(bits, 3);
        self.demand(bytes);
        let max = self.imm(max.into());
        let too_long = (self.b.ins()).icmp(IntCC::UnsignedGreaterThan, length, max);
        self.fail_if(too_long, core_error::HEADER_TOO_SHORT);
        bytes
    }

    /// Generates [`ir::StmtKind::Lookahead`]: reads bits after the cursor without moving it.
    pub(crate) fn lookahead(&mut self, dst: SlotId, offset: u32) {
        let width = self.width(dst);
        let bytes = (offset + width).div_ceil(8);
        let count = self.imm(bytes.into());
        self.demand(count);
        let mut window = Window::new(self.at_cursor(), bytes);
        let value = self.window_field(&mut window, offset, width);
        self.write(dst, &value);
    }

    /// Generates [`ir::StmtKind::Advance`]: moves the cursor by `bits` bits, and rejects the packet if these are not
    /// whole bytes.
    pub(crate) fn advance(&mut self, bits: &Expr) {
        let bits = self.expr(bits).low();
        let odd = self.and_imm(bits, 7);
        self.fail_if(odd, core_error::PARSER_INVALID_ARGUMENT);
        let bytes = self.shr_imm(bits, 3);
        self.demand(bytes);
        self.move_cursor(bytes);
        self.note_move();
    }

    /// Generates [`ir::StmtKind::Reject`]: sets the parser error and ends the parser.
    pub(crate) fn reject(&mut self, error: &Expr) {
        let error = self.expr(error);
        let slot = self.program.architecture.parser_error(self.pipeline());
        self.write(slot, &error);
        let done = self.parser_mut().done;
        self.b.ins().jump(done, &[]);
    }

    fn transition(&mut self, transition: &Transition) {
        self.scratch_used = 0;
        match transition {
            Transition::Goto(target) => {
                let mut again = Vec::new();
                let block = self.target(*target, &mut again);
                self.b.ins().jump(block, &[]);
                self.transitions_back(again);
            }
            Transition::Select { keys, cases } => {
                let keys = self.exprs(keys);
                self.select(&keys, cases);
            }
        }
    }

    /// Returns the block to jump to for a transition's target. A transition to the same or an earlier state
    /// spends a step: for it, returns a new block, and appends this and the state's block to `again`.
    fn target(&mut self, target: Target, again: &mut Vec<(Block, Block)>) -> Block {
        let parser = self.parser_mut();
        let state = match target {
            Target::State(state) => state,
            Target::Accept => return parser.accept[parser.current],
            Target::Reject => return parser.done,
        };
        if !parser.generated[state.index()] {
            return parser.done;
        }
        let block = parser.states[state.index()];
        if state.index() > parser.current {
            return block;
        }
        let between = self.b.create_block();
        again.push((between, block));
        between
    }

    /// Generates the blocks that [`Gen::target`] made: each spends a step and jumps to its state.
    fn transitions_back(&mut self, again: Vec<(Block, Block)>) {
        for (between, state) in again {
            self.continue_in(between);
            self.spend_step();
            self.b.ins().jump(state, &[]);
        }
    }

    fn select(&mut self, keys: &[Wide], cases: &[SelectCase]) {
        let mut again = Vec::new();
        if let Some((values, rest)) = exact_cases(keys, cases) {
            let mut switch = Switch::new();
            for (value, target) in values {
                // The first case counts.
                if !switch.entries().contains_key(&value.into()) {
                    let block = self.target(target, &mut again);
                    switch.set_entry(value.into(), block);
                }
            }
            let otherwise = match rest {
                Some(target) => self.target(target, &mut again),
                None => self.failure(core_error::NO_MATCH),
            };
            switch.emit(&mut self.b, keys[0].low(), otherwise);
            return self.transitions_back(again);
        }
        for case in cases {
            let condition = self.case_matches(keys, &case.matches);
            let block = self.target(case.target, &mut again);
            let Some(condition) = condition else {
                self.b.ins().jump(block, &[]);
                return self.transitions_back(again);
            };
            self.leave_if(condition, block);
        }
        let failure = self.failure(core_error::NO_MATCH);
        self.b.ins().jump(failure, &[]);
        self.transitions_back(again);
    }
}

impl Memory<'_, '_> {
    /// Generates code that stores the number of bytes that the parser consumed into the frame.
    pub(super) fn store_consumed(&mut self) {
        let cursor = self.cursor();
        self.store_frame(offset_of!(Frame, consumed), cursor);
    }

    /// Generates the number of bytes from the cursor to the packet's end.
    pub(super) fn remaining(&mut self) -> Value {
        let cursor = self.cursor();
        self.words.b.ins().isub(self.packet_len, cursor)
    }

    /// Generates the address of the byte at the cursor.
    pub(super) fn at_cursor(&mut self) -> Value {
        let cursor = self.cursor();
        self.words.b.ins().iadd(self.packet, cursor)
    }

    fn move_cursor(&mut self, bytes: Value) {
        let cursor = self.cursor();
        let cursor = self.b.ins().iadd(cursor, bytes);
        self.set_cursor(cursor);
    }

    /// Generates a call that reads `count` bits that start `offset` bits after `base`, as a value of `width`
    /// bits.
    fn read_bits(&mut self, base: Value, offset: Value, count: Value, width: u32) -> Wide {
        let out = self.scratch(limbs_for(width));
        let limbs = self.imm(limbs_for(width) as u64);
        self.call_without_frame(Shim::ReadBits, &[base, offset, count, out, limbs]);
        self.reload(out, width)
    }

    /// Generates the condition that the keys match all of `matches`; `None` if they always do.
    fn case_matches(&mut self, keys: &[Wide], matches: &[KeySet]) -> Option<Value> {
        if let [KeySet::ValueSet(value_set)] = matches {
            let (key, limbs) = self.spill_all(keys);
            let id = self.imm(value_set.0.into());
            return self.call(Shim::ValueSetContains, &[id, key, limbs]);
        }
        let mut all = None;
        for (key, key_set) in keys.iter().zip(matches) {
            if let Some(one) = self.key_matches(key, key_set) {
                all = Some(match all {
                    None => one,
                    Some(others) => self.b.ins().band(others, one),
                });
            }
        }
        all
    }

    fn key_matches(&mut self, key: &Wide, key_set: &KeySet) -> Option<Value> {
        match key_set {
            // A value set covers all keys and stands alone.
            KeySet::Any | KeySet::ValueSet(_) => None,
            KeySet::Mask { mask, .. } if mask.is_zero() => None,
            KeySet::Mask { value, mask } => {
                let mask = self.constant(mask);
                let masked = self.binary(ir::BinaryOp::And, key, &mask);
                let value = self.constant(value);
                Some(self.equal(&masked, &value))
            }
            KeySet::Range { low, high } => {
                let (low, high) = (self.constant(low), self.constant(high));
                let below = self.less(key, &low, false);
                let above = self.less(&high, key, false);
                let outside = self.b.ins().bor(below, above);
                Some(self.b.ins().bxor_imm_u(outside, 1))
            }
        }
    }
}

/// Returns the cases of a select as a table of exact values with their targets, and the target of all other
/// values, which is `None` for the error NoMatch. Returns `None` unless there is one key of at most 64 bits
/// and each case is one value, except that the last may match anything.
#[expect(clippy::type_complexity, reason = "used once")]
fn exact_cases(
    keys: &[Wide],
    cases: &[SelectCase],
) -> Option<(Vec<(u64, Target)>, Option<Target>)> {
    let [key] = keys else { return None };
    if key.width > 64 {
        return None;
    }
    let mut values = Vec::new();
    for case in cases {
        match &case.matches[..] {
            [KeySet::Any] => return Some((values, Some(case.target))),
            [KeySet::Mask { value, mask }] if *mask == Bits::ones(key.width) => {
                values.push((value.low_u64(), case.target));
            }
            _ => return None,
        }
    }
    Some((values, None))
}
