//! Packets that a given parser likes: random fields, but where a `select` looks, often what one of its cases asks for.

use ir::arbitrary::Rng;
use ir::{Bits, Expr, HeaderId, KeySet, Program, SlotId, StmtKind, Target, Transition};
use std::collections::BTreeMap;

/// A packet under construction.
struct Draft<'a> {
    program: &'a Program,
    /// One bit per element.
    bits: Vec<bool>,
    /// The places of the fields extracted last.
    fields: BTreeMap<SlotId, (usize, u32)>,
}

/// Makes a packet that takes a random path through the parser of `program`, with some payload.
pub fn packet_for(program: &Program, rng: &mut Rng) -> Vec<u8> {
    let mut draft = Draft {
        program,
        bits: Vec::new(),
        fields: BTreeMap::new(),
    };
    let mut state = 0;
    for _ in 0..20 {
        let current = &program.states[state];
        for stmt in &current.body {
            if let StmtKind::Extract { header, .. } = stmt.kind {
                draft.header(header, rng);
            }
        }
        match draft.transition(&current.transition, rng) {
            Target::State(next) => state = next.index(),
            Target::Accept | Target::Reject => break,
        }
    }
    let mut bytes: Vec<u8> = (draft.bits.chunks(8))
        .map(|byte| byte.iter().fold(0, |all, &bit| all << 1 | u8::from(bit)))
        .collect();
    if rng.one_in(8) {
        bytes.truncate(rng.below(bytes.len() as u32 + 1) as usize);
    }
    bytes.extend((0..rng.below(60)).map(|_| rng.next() as u8));
    bytes
}

impl Draft<'_> {
    fn header(&mut self, header: HeaderId, rng: &mut Rng) {
        for field in &self.program.headers[header.index()].fields {
            if field.varbit_length.is_some() {
                let bytes = rng.below(12);
                (0..8 * bytes).for_each(|_| self.bits.push(rng.one_in(2)));
                continue;
            }
            let width = self.program.slots[field.slot.index()].width;
            let value = if rng.one_in(2) {
                rng.small_bits(width)
            } else {
                rng.bits(width)
            };
            self.fields.insert(field.slot, (self.bits.len(), width));
            self.bits.extend((0..width).rev().map(|i| value.bit(i)));
        }
    }

    fn transition(&mut self, transition: &Transition, rng: &mut Rng) -> Target {
        let (keys, cases) = match transition {
            Transition::Goto(target) => return *target,
            Transition::Select { keys, cases } => (keys, cases),
        };
        let case = &cases[rng.below(cases.len() as u32) as usize];
        for (key, wanted) in keys.iter().zip(&case.matches) {
            match wanted {
                KeySet::Mask { value, mask } => self.patch(key, value, mask),
                KeySet::Range { low, .. } => self.patch(key, low, &Bits::ones(low.width())),
                KeySet::Any | KeySet::ValueSet(_) => {}
            }
        }
        case.target
    }

    /// Changes the packet so that a key expression that is a field, or a slice of one, gets a value.
    fn patch(&mut self, key: &Expr, value: &Bits, mask: &Bits) {
        let (slot, low) = match key {
            Expr::Slot(slot) => (*slot, 0),
            Expr::Slice { a, low, .. } => match **a {
                Expr::Slot(slot) => (slot, *low),
                _ => return,
            },
            _ => return,
        };
        let Some(&(start, width)) = self.fields.get(&slot) else {
            return;
        };
        for i in (0..value.width()).filter(|&i| mask.bit(i) && low + i < width) {
            self.bits[start + (width - 1 - low - i) as usize] = value.bit(i);
        }
    }
}
