//! Assignments of values to what can be assigned.

use std::collections::BTreeSet;
use std::rc::Rc;

use ir::{BinaryOp, Bits, Expr, HeaderId, SlotId, StmtKind};
use syntax::source::Span;

use super::place::{Lvalue, Place, Value, header_of};
use super::{Code, Unit, build};
use crate::types::Ty;

impl Code<'_> {
    /// Emits statements that assign `value`, of type `ty`, to `lvalue`. An assignment to a slice keeps the
    /// bits outside of the slice.
    pub(super) fn assign(&mut self, lvalue: &Lvalue, value: Value, ty: &Ty, span: Span) {
        match lvalue {
            Lvalue::Ignore => {}
            Lvalue::Place(place) => self.assign_safely(place, value, ty, span),
            Lvalue::Slice(base, high, low) => {
                let (Value::Bits(old), Value::Bits(new)) = (self.read_lvalue(base), value) else {
                    return;
                };
                let merged = self.merge_slice(old, new, *high, *low);
                self.assign(base, Value::Bits(merged), ty, span);
            }
            Lvalue::PlusSlice(base, low, width) => {
                let (Value::Bits(old), Value::Bits(new)) = (self.read_lvalue(base), value) else {
                    return;
                };
                let slots = &self.program.slots;
                let total = old.width(slots);
                let mask = Expr::Const(Bits::ones(*width).resize(total));
                let mask = build::binary(BinaryOp::Shl, mask, low.clone(), slots);
                let new = build::resize(new, total, slots);
                let new = build::binary(BinaryOp::Shl, new, low.clone(), slots);
                let kept = build::binary(
                    BinaryOp::And,
                    old,
                    build::unary(ir::UnaryOp::Not, mask),
                    slots,
                );
                let merged = build::binary(BinaryOp::Or, kept, new, slots);
                self.assign(base, Value::Bits(merged), ty, span);
            }
            Lvalue::Element(items, index) => {
                let value = self.snapshot(value, ty, span);
                self.at_index(items.len(), index.clone(), |l, i| {
                    l.assign(&items[i], value.clone(), ty, span)
                });
            }
        }
    }

    /// Calls `f` for each index below `count`, and emits a switch that runs, at run time, only the statements
    /// that `f` has emitted for the value of `index`. For a constant `index`, calls `f` for it alone, without
    /// a switch.
    pub(super) fn at_index(
        &mut self,
        count: usize,
        index: Expr,
        mut f: impl FnMut(&mut Self, usize),
    ) {
        if let Expr::Const(bits) = &index {
            if let Some(i) = bits.to_u64().filter(|i| *i < count as u64) {
                f(self, i as usize);
            }
            return;
        }
        let width = index.width(&self.program.slots);
        let mut cases = Vec::new();
        for i in 0..count {
            if width < 64 && (i as u64) >> width != 0 {
                break;
            }
            let body = self.capture(|l| f(l, i));
            cases.push((vec![Bits::from_u64(width, i as u64)], body));
        }
        self.emit(StmtKind::Switch {
            value: index,
            cases,
            default: Vec::new(),
        });
    }

    /// Emits the assignment of `value` to `place`. Copies the value first if the assignment of some parts
    /// would overwrite storage that the value of others reads.
    fn assign_safely(&mut self, place: &Place, value: Value, ty: &Ty, span: Span) {
        let value = match self.overlaps(place, &value) {
            true => self.snapshot(value, ty, span),
            false => value,
        };
        self.assign_place(place, value);
    }

    /// Emits the assignment of a value to storage, one member after another. The value must not read members
    /// that were assigned before.
    pub(super) fn assign_place(&mut self, place: &Place, value: Value) {
        match (place, value) {
            (Place::Scalar(slot), value @ (Value::Bits(_) | Value::Int(_))) => {
                let width = self.program.slots[slot.index()].width;
                let value = self.bits(value, &Ty::Bit(width));
                self.set(*slot, value);
            }
            (Place::Varbit(slot, length), Value::Varbit(value, bits)) => {
                if let Some(header) = self.headers.loose.get(slot) {
                    self.emit(StmtKind::SetValid(*header));
                }
                let width = self.program.slots[slot.index()].width;
                let value = build::resize(value, width, &self.program.slots);
                self.set(*slot, value);
                self.set(*length, bits);
            }
            (Place::Fields(items), Value::Fields(values)) => self.assign_all(items, values),
            (Place::Union(items), Value::Union(values)) => self.assign_union(items, values),
            (Place::Header(id, items), Value::Header(valid, values)) => {
                self.assign_header(*id, items, valid, values)
            }
            (Place::Stack(items, next), Value::Stack(values, index)) => {
                self.assign_all(items, values);
                self.set(*next, index);
            }
            // `stack = { h1, h2 }`
            (Place::Stack(items, _), Value::Fields(values)) => self.assign_all(items, values),
            _ => {}
        }
    }

    fn assign_all(&mut self, places: &Rc<[Place]>, values: Vec<Value>) {
        for (place, value) in places.iter().zip(values) {
            self.assign_place(place, value);
        }
    }

    fn assign_header(
        &mut self,
        id: HeaderId,
        items: &Rc<[Place]>,
        valid: Expr,
        values: Vec<Value>,
    ) {
        match build::known(&valid) {
            Some(true) => {
                self.set_valid(id);
                self.assign_all(items, values);
            }
            Some(false) => self.emit(StmtKind::SetInvalid(id)),
            None => {
                let then = self.capture(|l| {
                    l.set_valid(id);
                    l.assign_all(items, values);
                });
                let otherwise = self.capture(|l| l.emit(StmtKind::SetInvalid(id)));
                self.emit(StmtKind::If {
                    cond: valid,
                    then,
                    otherwise,
                });
            }
        }
    }

    /// Emits the assignment of a header union: makes all members of the destination invalid, then copies the
    /// member of the source that is valid at run time.
    fn assign_union(&mut self, items: &Rc<[Place]>, values: Vec<Value>) {
        for item in items.iter() {
            if let Some(id) = header_of(item) {
                self.emit(StmtKind::SetInvalid(id));
            }
        }
        for (item, value) in items.iter().zip(values) {
            let (Place::Header(id, fields), Value::Header(valid, values)) = (item, value) else {
                continue;
            };
            let then = self.capture(|l| {
                l.set_valid(*id);
                l.assign_all(fields, values);
            });
            self.emit_if(valid, then, Vec::new());
        }
    }

    /// Emits statements that make the header `id` valid and the other members of its header union, if it is
    /// in one, invalid.
    pub(super) fn set_valid(&mut self, id: HeaderId) {
        for other in self.headers.siblings.get(&id).cloned().unwrap_or_default() {
            self.emit(StmtKind::SetInvalid(other));
        }
        self.emit(StmtKind::SetValid(id));
    }
}

impl Unit<'_> {
    fn merge_slice(&self, old: Expr, new: Expr, high: u32, low: u32) -> Expr {
        let slots = &self.program.slots;
        let width = old.width(slots);
        let mut merged = new;
        if low > 0 {
            merged = build::concat(merged, build::slice(old.clone(), low - 1, 0, slots));
        }
        if high + 1 < width {
            merged = build::concat(build::slice(old, width - 1, high + 1, slots), merged);
        }
        merged
    }

    /// Returns whether a value of several parts reads storage that its assignment to `place` would overwrite.
    /// Returns false for a place of one scalar.
    fn overlaps(&self, place: &Place, value: &Value) -> bool {
        if matches!(place, Place::Scalar(_)) {
            return false;
        }
        let mut slots = BTreeSet::new();
        place.for_each_slot(&self.program.headers, &mut |s| {
            slots.insert(s);
        });
        self.add_rivals(place, &mut slots);
        let mut overlap = false;
        value.for_each_expr(&mut |e| overlap |= e.reads(&|s| slots.contains(&s)));
        overlap
    }

    /// Adds to `slots` the slots of the headers that become invalid when the header at `place` becomes valid:
    /// those of the other members of its header union.
    pub(super) fn add_rivals(&self, place: &Place, slots: &mut BTreeSet<SlotId>) {
        let others = header_of(place).and_then(|id| self.headers.siblings.get(&id));
        for other in others.into_iter().flatten() {
            let header = &self.program.headers[other.index()];
            slots.insert(header.valid);
            slots.extend(header.field_slots());
        }
    }
}
