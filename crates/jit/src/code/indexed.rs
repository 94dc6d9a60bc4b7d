//! Access to the element of a header stack at an index that is known only at run time, where the stack lives
//! in memory: an address is computed.
//!
//! The intermediate representation has no such access: a read is a choice among all elements, and a write is
//! a switch over the index. This module recognises both. Anything else is generated as it is written.

use super::wide::Wide;
use super::{Memory, Place, Slots};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value};
use cranelift_frontend::Switch;
use ir::{BinaryOp, Bits, Expr, SlotId, Stmt, StmtKind};

/// A switch with fewer cases than this is generated as a switch.
const FEW_ELEMENTS: usize = 4;

/// An indexed assignment: one field of each element of a header stack, from element `first` on, is assigned
/// if the element is valid.
pub(super) struct Store<'e> {
    first: u64,
    valid: Vec<SlotId>,
    fields: Vec<SlotId>,
    value: &'e Expr,
    /// Positions of the cases of the switch that are anything else.
    others: Vec<usize>,
}

/// Returns the index and the slots of an expression that chooses a slot by index, with the first slot at
/// index 0, and is zero beyond the last; `None` for any other expression.
fn choice(expr: &Expr) -> Option<(&Expr, Vec<SlotId>)> {
    let Expr::Mux {
        cond,
        then,
        otherwise,
    } = expr
    else {
        return None;
    };
    let (index, count) = below(cond)?;
    let Expr::Const(zero) = &**otherwise else {
        return None;
    };
    let mut slots = Vec::new();
    let found = zero.is_zero() && leaves(then, index, &mut slots);
    (found && slots.len() as u64 == count).then_some((index, slots))
}

/// Returns the index and the number if the condition is `index < number`, unsigned; else `None`.
fn below(cond: &Expr) -> Option<(&Expr, u64)> {
    match cond {
        Expr::Binary {
            op: BinaryOp::Ult,
            a,
            b,
        } => match &**b {
            Expr::Const(number) => Some((a, number.to_u64()?)),
            _ => None,
        },
        _ => None,
    }
}

/// Appends the slots that a tree of comparisons of `index` chooses from to `out`. Returns false if the tree
/// does not choose, for each index, the slot with that position.
fn leaves(expr: &Expr, index: &Expr, out: &mut Vec<SlotId>) -> bool {
    match expr {
        Expr::Slot(slot) => {
            out.push(*slot);
            true
        }
        Expr::Mux {
            cond,
            then,
            otherwise,
        } => below(cond).is_some_and(|(compared, number)| {
            compared == index
                && leaves(then, index, out)
                && out.len() as u64 == number
                && leaves(otherwise, index, out)
        }),
        _ => false,
    }
}

/// Returns the validity slot, the field and the value if the body is `if valid { field = value }`; else
/// `None`.
fn guarded(body: &[Stmt]) -> Option<(SlotId, SlotId, &Expr)> {
    let [
        Stmt {
            kind:
                StmtKind::If {
                    cond: Expr::Slot(valid),
                    then,
                    otherwise,
                },
            ..
        },
    ] = body
    else {
        return None;
    };
    let [
        Stmt {
            kind: StmtKind::Assign { dst, value },
            ..
        },
    ] = &then[..]
    else {
        return None;
    };
    let simple = matches!(value, Expr::Slot(_) | Expr::Const(_)) && otherwise.is_empty();
    simple.then_some((*valid, *dst, value))
}

impl Slots<'_, '_> {
    /// Returns the distance in limbs between consecutive slots in the state array; `None` unless all live
    /// there at equal distances and have the same width.
    fn stride(&self, slots: &[SlotId]) -> Option<usize> {
        let [first, second, ..] = slots else {
            return None;
        };
        let start = self.layout.offset(*first);
        let stride = self.layout.offset(*second).checked_sub(start)?;
        let regular = slots.iter().enumerate().all(|(i, slot)| {
            self.places[slot.index()] == Place::Memory
                && self.width(*slot) == self.width(*first)
                && self.layout.offset(*slot) == start + i * stride
        });
        regular.then_some(stride)
    }

    /// Generates a load of the slot that an expression chooses by index, if the slots live in the state array
    /// at equal distances; `None` for any other expression.
    pub(super) fn chosen(&mut self, expr: &Expr) -> Option<Wide> {
        let (index, slots) = choice(expr)?;
        let stride = self.stride(&slots)?;
        if index.width(&self.program.slots) > 64 {
            return None;
        }
        let index = self.expr(index).low();
        let (count, zero) = (self.imm(slots.len() as u64), self.imm(0));
        let inside = (self.b.ins()).icmp(IntCC::UnsignedLessThan, index, count);
        let number = self.b.ins().select(inside, index, zero);
        let at = self.address(slots[0], stride, number);
        let limbs = (0..self.layout.slot_limbs(slots[0])).map(|i| {
            let flags = MemFlagsData::trusted();
            let limb = self.b.ins().load(I64, flags, at, 8 * i as i32);
            self.b.ins().select(inside, limb, zero)
        });
        let limbs = limbs.collect();
        Some(Wide::new(self.width(slots[0]), limbs))
    }

    /// Returns the indexed assignment that the cases of a switch without a default have in common, with the
    /// cases that are anything else; `None` if they have none in common.
    pub(super) fn store_of<'e>(
        &self,
        cases: &'e [(Vec<Bits>, Vec<Stmt>)],
        default: &[Stmt],
    ) -> Option<Store<'e>> {
        if !default.is_empty() || cases.len() < FEW_ELEMENTS {
            return None;
        }
        let mut store: Option<Store<'e>> = None;
        let mut others = Vec::new();
        for (i, (values, body)) in cases.iter().enumerate() {
            let ([number], Some((valid, field, value))) = (&values[..], guarded(body)) else {
                others.push(i);
                continue;
            };
            let number = number.to_u64()?;
            let store = store.get_or_insert_with(|| Store {
                first: number,
                valid: Vec::new(),
                fields: Vec::new(),
                value,
                others: Vec::new(),
            });
            if number != store.first + store.fields.len() as u64 || value != store.value {
                others.push(i);
                continue;
            }
            store.valid.push(valid);
            store.fields.push(field);
        }
        let store = store.filter(|s| s.fields.len() >= FEW_ELEMENTS)?;
        self.stride(&store.valid)?;
        self.stride(&store.fields)?;
        let plain = |slot: &SlotId| !self.is_validity(*slot);
        store
            .fields
            .iter()
            .all(plain)
            .then_some(Store { others, ..store })
    }

    /// Generates a switch over `index` in which some cases perform the indexed assignment `store`, which
    /// continues at `after`. Returns the position and the block of each other case, whose body the caller
    /// generates.
    pub(super) fn store_at(
        &mut self,
        index: &Wide,
        store: &Store<'_>,
        cases: &[(Vec<Bits>, Vec<Stmt>)],
        after: Block,
    ) -> Vec<(usize, Block)> {
        let element = self.b.create_block();
        let mut blocks = Vec::new();
        let mut switch = Switch::new();
        for &other in &store.others {
            let block = self.b.create_block();
            for value in &cases[other].0 {
                switch.set_entry(value.low_u64().into(), block);
            }
            blocks.push((other, block));
        }
        switch.emit(&mut self.b, index.low(), element);
        self.continue_in(element);
        let first = self.imm(store.first);
        let number = self.b.ins().isub(index.low(), first);
        let count = self.imm(store.fields.len() as u64);
        let inside = (self.b.ins()).icmp(IntCC::UnsignedLessThan, number, count);
        let [look, assign] = [(); 2].map(|()| self.b.create_block());
        self.b.ins().brif(inside, look, &[], after, &[]);
        self.continue_in(look);
        let flags = MemFlagsData::trusted();
        let stride = self.stride(&store.valid).unwrap_or_default();
        let at = self.address(store.valid[0], stride, number);
        let valid = self.b.ins().load(I64, flags, at, 0);
        self.b.ins().brif(valid, assign, &[], after, &[]);
        self.continue_in(assign);
        let value = self.expr(store.value);
        let stride = self.stride(&store.fields).unwrap_or_default();
        let at = self.address(store.fields[0], stride, number);
        self.note_memory(&value.limbs);
        for (i, &limb) in value.limbs.iter().enumerate() {
            self.b.ins().store(flags, limb, at, 8 * i as i32);
        }
        self.b.ins().jump(after, &[]);
        blocks
    }
}

impl Memory<'_, '_> {
    /// Generates the address of the slot that lies `number` times `stride` limbs after the slot `first` in
    /// the state array.
    fn address(&mut self, first: SlotId, stride: usize, number: Value) -> Value {
        let bytes = self.imm(8 * stride as u64);
        let behind = self.b.ins().imul(number, bytes);
        let at = self.words.b.ins().iadd(self.state, behind);
        let offset = 8 * self.layout.offset(first) as i64;
        self.b.ins().iadd_imm_u(at, offset)
    }
}
