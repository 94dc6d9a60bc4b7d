//! Storage and values of P4 types in terms of slots.
//!
//! A [`Place`] is a tree of slots in the shape of a type; a [`Value`] is the same tree with expressions. An [`Lvalue`]
//! also covers what only an assignment can name: slices, elements at an index, and nothing at all.

use std::collections::BTreeSet;
use std::rc::Rc;

use ir::{BinaryOp, Bits, Expr, HeaderId, SlotId, StmtKind};
use num_bigint::BigInt;
use syntax::source::Span;

use super::{Lowerer, ObjectId, build};
use crate::errors;
use crate::fold;
use crate::types::Ty;

/// Where a value is stored.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// One slot.
    Scalar(SlotId),
    /// A varbit: value and length.
    Varbit(SlotId, SlotId),
    /// Members of a struct or tuple.
    Fields(Rc<[Place]>),
    /// A header: its fields are the leaves below.
    Header(HeaderId, Rc<[Place]>),
    /// A header union: at most one member is valid.
    Union(Rc<[Place]>),
    /// A header stack and the slot of its next index.
    Stack(Rc<[Place]>, SlotId),
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// bit, int, bool, enum or error.
    Bits(Expr),
    /// A compile-time integer.
    Int(BigInt),
    /// A string.
    Str(Rc<str>),
    /// Value and length.
    Varbit(Expr, Expr),
    /// Members of a struct, tuple or list.
    Fields(Vec<Value>),
    /// Validity and fields. The fields of an invalid header are zero.
    Header(Expr, Vec<Value>),
    /// Members.
    Union(Vec<Value>),
    /// Elements and next index.
    Stack(Vec<Value>, Expr),
    /// An instance.
    Object(ObjectId),
    /// Nothing: the value of a call of a void function, or of what was wrong.
    Nothing,
}

/// What can be assigned to.
#[derive(Clone, Debug)]
pub(crate) enum Lvalue {
    /// Storage.
    Place(Place),
    /// Bits `high` down to `low`.
    Slice(Box<Lvalue>, u32, u32),
    /// Some bits from an index on.
    PlusSlice(Box<Lvalue>, Expr, u32),
    /// The element at an index; there is none beyond the end.
    Element(Vec<Lvalue>, Expr),
    /// Nothing: what is assigned is lost.
    Ignore,
}

impl Place {
    /// Calls `f` for every slot, validity, length and next index included.
    pub fn for_each_slot(&self, headers: &[ir::Header], f: &mut dyn FnMut(SlotId)) {
        match self {
            Place::Scalar(slot) => f(*slot),
            Place::Varbit(value, length) => {
                f(*value);
                f(*length);
            }
            Place::Fields(items) | Place::Union(items) => {
                items.iter().for_each(|p| p.for_each_slot(headers, f))
            }
            Place::Header(id, items) => {
                f(headers[id.index()].valid);
                items.iter().for_each(|p| p.for_each_slot(headers, f));
            }
            Place::Stack(items, next) => {
                f(*next);
                items.iter().for_each(|p| p.for_each_slot(headers, f));
            }
        }
    }

    /// A member of a struct, header or union.
    pub fn field(&self, i: usize) -> Option<&Place> {
        match self {
            Place::Fields(items) | Place::Header(_, items) | Place::Union(items) => items.get(i),
            _ => None,
        }
    }
}

impl Value {
    /// Calls `f` for every expression.
    pub fn for_each_expr(&self, f: &mut dyn FnMut(&Expr)) {
        match self {
            Value::Bits(e) => f(e),
            Value::Varbit(a, b) => {
                f(a);
                f(b);
            }
            Value::Fields(items) | Value::Union(items) => {
                items.iter().for_each(|v| v.for_each_expr(f))
            }
            Value::Header(valid, items) => {
                f(valid);
                items.iter().for_each(|v| v.for_each_expr(f));
            }
            Value::Stack(items, next) => {
                f(next);
                items.iter().for_each(|v| v.for_each_expr(f));
            }
            Value::Int(_) | Value::Str(_) | Value::Object(_) | Value::Nothing => {}
        }
    }

    /// Whether it is the same whenever it is evaluated.
    pub fn is_constant(&self) -> bool {
        let mut constant = true;
        self.for_each_expr(&mut |e| constant &= matches!(e, Expr::Const(_)));
        constant
    }

    /// A member of a struct, header, union, stack or list.
    pub fn field(self, i: usize) -> Value {
        match self {
            Value::Fields(items)
            | Value::Header(_, items)
            | Value::Union(items)
            | Value::Stack(items, _) => items.into_iter().nth(i).unwrap_or(Value::Nothing),
            _ => Value::Nothing,
        }
    }

    /// The leaves in order: what a packed layout holds. Validity and next indexes are not part of it.
    pub fn leaves(&self, out: &mut Vec<Expr>) {
        match self {
            Value::Bits(e) => out.push(e.clone()),
            Value::Varbit(value, _) => out.push(value.clone()),
            Value::Fields(items)
            | Value::Header(_, items)
            | Value::Union(items)
            | Value::Stack(items, _) => {
                items.iter().for_each(|v| v.leaves(out));
            }
            Value::Int(_) | Value::Str(_) | Value::Object(_) | Value::Nothing => {}
        }
    }
}

impl Lvalue {
    /// A member of a struct, header or union.
    pub fn field(&self, i: usize) -> Lvalue {
        match self {
            Lvalue::Place(place) => place
                .field(i)
                .map_or(Lvalue::Ignore, |p| Lvalue::Place(p.clone())),
            Lvalue::Element(items, index) => {
                Lvalue::Element(items.iter().map(|l| l.field(i)).collect(), index.clone())
            }
            _ => Lvalue::Ignore,
        }
    }

    /// The element of an array or header stack at an index.
    pub fn element(&self, index: &Expr) -> Lvalue {
        match self {
            Lvalue::Place(Place::Stack(items, _) | Place::Fields(items)) => {
                let mut items = items.iter().cloned().map(Lvalue::Place);
                match index {
                    Expr::Const(bits) => {
                        let item = bits.to_u64().and_then(|i| items.nth(i as usize));
                        item.unwrap_or(Lvalue::Ignore)
                    }
                    index => Lvalue::Element(items.collect(), index.clone()),
                }
            }
            Lvalue::Element(items, outer) => {
                let items = items.iter().map(|l| l.element(index)).collect();
                Lvalue::Element(items, outer.clone())
            }
            _ => Lvalue::Ignore,
        }
    }
}

/// Whether an array with these elements is a header stack, which knows its next index.
pub(super) fn is_header(element: &Ty) -> bool {
    matches!(element, Ty::Header(_) | Ty::Union(_))
}

impl Lowerer<'_> {
    /// A new slot.
    pub(super) fn new_slot(&mut self, name: &str, width: u32) -> SlotId {
        self.spend(1);
        let id = SlotId(self.program.slots.len() as u32);
        self.program.slots.push(ir::Slot {
            name: name.to_string(),
            width,
        });
        id
    }

    /// New storage for a type.
    pub(super) fn alloc(&mut self, ty: &Ty, name: &str, span: Span) -> Place {
        let types = &self.module.types;
        match types.representation(ty) {
            Ty::Struct(id) => {
                let fields = types.structure(id).fields.clone();
                let places = fields
                    .iter()
                    .map(|f| self.alloc(&f.ty, &format!("{name}.{}", f.name), span));
                Place::Fields(places.collect())
            }
            Ty::Tuple(items) => {
                let items: Vec<Ty> = items.to_vec();
                let places = items
                    .iter()
                    .enumerate()
                    .map(|(i, t)| self.alloc(t, &format!("{name}[{i}]"), span));
                Place::Fields(places.collect())
            }
            Ty::Header(id) => self.alloc_header(id, name),
            Ty::Union(id) => {
                let fields = types.structure(id).fields.clone();
                let places: Rc<[Place]> = fields
                    .iter()
                    .map(|f| self.alloc(&f.ty, &format!("{name}.{}", f.name), span))
                    .collect();
                self.note_union(&places);
                Place::Union(places)
            }
            Ty::Stack(element, size) => {
                let places = (0..size)
                    .map(|i| self.alloc(&element, &format!("{name}[{i}]"), span))
                    .collect();
                if !is_header(&element) {
                    return Place::Fields(places);
                }
                let next = self.new_slot(&format!("{name}.nextIndex"), 32);
                self.next_indexes.push(next);
                Place::Stack(places, next)
            }
            Ty::Varbit(width) => self.alloc_varbit(width, name),
            ty => match types.scalar_width(&ty) {
                Some(width) => Place::Scalar(self.new_slot(name, width)),
                None => {
                    if ty != Ty::Missing {
                        let shown = types.show(&ty);
                        self.report(errors::variable_type(span, &shown));
                    }
                    Place::Fields(Rc::from([]))
                }
            },
        }
    }

    fn alloc_header(&mut self, id: crate::types::StructId, name: &str) -> Place {
        let valid = self.new_slot(&format!("{name}.$valid"), 1);
        let mut fields = Vec::new();
        let places = self.alloc_header_fields(id, name, &mut fields);
        let varbit = fields.iter().any(|f| f.varbit_length.is_some());
        let bits: u32 = fields.iter().map(|f| self.width_of(f.slot)).sum();
        if !varbit && !bits.is_multiple_of(8) {
            // A header of the IR is whole bytes or has a varbit: this one is always empty.
            self.padded
                .insert(HeaderId(self.program.headers.len() as u32));
            let slot = self.new_slot(&format!("{name}.$rest"), 8);
            let length = self.new_slot(&format!("{name}.$rest.$length"), 32);
            fields.push(ir::Field {
                slot,
                varbit_length: Some(length),
            });
        }
        let header = HeaderId(self.program.headers.len() as u32);
        self.program.headers.push(ir::Header {
            name: name.to_string(),
            valid,
            fields,
        });
        Place::Header(header, places)
    }

    fn width_of(&self, slot: SlotId) -> u32 {
        self.program.slots[slot.index()].width
    }

    /// A varbit outside of a header lives in a header of its own that is nowhere emitted.
    fn alloc_varbit(&mut self, width: u32, name: &str) -> Place {
        let valid = self.new_slot(&format!("{name}.$valid"), 1);
        let slot = self.new_slot(name, width);
        let length = self.new_slot(&format!("{name}.$length"), 32);
        let header = HeaderId(self.program.headers.len() as u32);
        self.program.headers.push(ir::Header {
            name: name.to_string(),
            valid,
            fields: vec![ir::Field {
                slot,
                varbit_length: Some(length),
            }],
        });
        self.loose.insert(slot, header);
        Place::Varbit(slot, length)
    }

    fn alloc_header_fields(
        &mut self,
        id: crate::types::StructId,
        name: &str,
        out: &mut Vec<ir::Field>,
    ) -> Rc<[Place]> {
        let fields = self.module.types.structure(id).fields.clone();
        let places = fields
            .iter()
            .map(|f| self.alloc_header_field(&f.ty, &format!("{name}.{}", f.name), out));
        places.collect()
    }

    fn alloc_header_field(&mut self, ty: &Ty, name: &str, out: &mut Vec<ir::Field>) -> Place {
        match self.module.types.representation(ty) {
            Ty::Varbit(width) => {
                let slot = self.new_slot(name, width);
                let length = self.new_slot(&format!("{name}.$length"), 32);
                out.push(ir::Field {
                    slot,
                    varbit_length: Some(length),
                });
                Place::Varbit(slot, length)
            }
            Ty::Struct(inner) => Place::Fields(self.alloc_header_fields(inner, name, out)),
            Ty::Stack(element, size) => {
                let items = (0..size)
                    .map(|i| self.alloc_header_field(&element, &format!("{name}[{i}]"), out));
                Place::Fields(items.collect())
            }
            ty => {
                let slot = self.new_slot(name, self.module.types.scalar_width(&ty).unwrap_or(1));
                out.push(ir::Field {
                    slot,
                    varbit_length: None,
                });
                Place::Scalar(slot)
            }
        }
    }

    /// Members of a union that is not valid together.
    fn note_union(&mut self, members: &[Place]) {
        let ids: Vec<HeaderId> = members.iter().filter_map(header_of).collect();
        for id in &ids {
            let others = ids.iter().copied().filter(|o| o != id).collect();
            self.siblings.insert(*id, others);
        }
    }

    /// The value that storage holds.
    pub(super) fn read(&self, place: &Place) -> Value {
        let all = |items: &Rc<[Place]>| items.iter().map(|p| self.read(p)).collect();
        match place {
            Place::Scalar(slot) => Value::Bits(Expr::Slot(*slot)),
            Place::Varbit(value, length) => Value::Varbit(Expr::Slot(*value), Expr::Slot(*length)),
            Place::Fields(items) => Value::Fields(all(items)),
            Place::Header(id, items) => Value::Header(
                Expr::Slot(self.program.headers[id.index()].valid),
                all(items),
            ),
            Place::Union(items) => Value::Union(all(items)),
            Place::Stack(items, next) => Value::Stack(all(items), Expr::Slot(*next)),
        }
    }

    /// The value of an lvalue.
    pub(super) fn read_lvalue(&self, lvalue: &Lvalue) -> Value {
        match lvalue {
            Lvalue::Place(place) => self.read(place),
            Lvalue::Slice(base, high, low) => match self.read_lvalue(base) {
                Value::Bits(e) => Value::Bits(build::slice(e, *high, *low, &self.program.slots)),
                _ => Value::Nothing,
            },
            Lvalue::PlusSlice(base, low, width) => match self.read_lvalue(base) {
                Value::Bits(e) => {
                    let shifted = build::binary(BinaryOp::Shr, e, low.clone(), &self.program.slots);
                    Value::Bits(build::slice(shifted, width - 1, 0, &self.program.slots))
                }
                _ => Value::Nothing,
            },
            Lvalue::Element(items, index) => {
                let values: Vec<Value> = items.iter().map(|l| self.read_lvalue(l)).collect();
                let width = index.width(&self.program.slots);
                let count = values.len() as u64;
                let chosen = self.choose(&values, index);
                // Beyond the end there is nothing but zeros and invalid headers.
                if width < 64 && count >> width != 0 {
                    return chosen;
                }
                let inside = build::binary(
                    BinaryOp::Ult,
                    index.clone(),
                    build::constant(width, count),
                    &self.program.slots,
                );
                let outside = self.zero_like(&chosen);
                self.mux(&inside, chosen, outside)
            }
            Lvalue::Ignore => Value::Nothing,
        }
    }

    /// The value at an index.
    fn choose(&self, values: &[Value], index: &Expr) -> Value {
        let Some(first) = values.first() else {
            return Value::Nothing;
        };
        let slots = &self.program.slots;
        let pick = |f: &dyn Fn(&Value) -> Option<Expr>| {
            let exprs: Vec<Expr> = values.iter().filter_map(f).collect();
            build::choose(&exprs, index, slots)
        };
        let members = |n: usize| -> Vec<Value> {
            (0..n)
                .map(|i| {
                    let column: Vec<Value> = values.iter().map(|v| v.clone().field(i)).collect();
                    self.choose(&column, index)
                })
                .collect()
        };
        match first {
            Value::Bits(_) => Value::Bits(pick(&|v| match v {
                Value::Bits(e) => Some(e.clone()),
                _ => None,
            })),
            Value::Varbit(..) => {
                let value = pick(&|v| match v {
                    Value::Varbit(e, _) => Some(e.clone()),
                    _ => None,
                });
                let length = pick(&|v| match v {
                    Value::Varbit(_, e) => Some(e.clone()),
                    _ => None,
                });
                Value::Varbit(value, length)
            }
            Value::Fields(items) => Value::Fields(members(items.len())),
            Value::Union(items) => Value::Union(members(items.len())),
            Value::Header(_, items) => {
                let valid = pick(&|v| match v {
                    Value::Header(e, _) => Some(e.clone()),
                    _ => None,
                });
                Value::Header(valid, members(items.len()))
            }
            other => other.clone(),
        }
    }

    /// Zeros in the shape of a value.
    pub(super) fn zero_like(&self, value: &Value) -> Value {
        let zero = |e: &Expr| Expr::Const(Bits::zero(e.width(&self.program.slots)));
        let all = |items: &[Value]| items.iter().map(|v| self.zero_like(v)).collect();
        match value {
            Value::Bits(e) => Value::Bits(zero(e)),
            Value::Varbit(a, b) => Value::Varbit(zero(a), zero(b)),
            Value::Fields(items) => Value::Fields(all(items)),
            Value::Union(items) => Value::Union(all(items)),
            Value::Header(valid, items) => Value::Header(zero(valid), all(items)),
            Value::Stack(items, next) => Value::Stack(all(items), zero(next)),
            other => other.clone(),
        }
    }

    /// The default value of a type: zeros and invalid headers.
    pub(super) fn default_value(&self, ty: &Ty) -> Value {
        let types = &self.module.types;
        let fields = |id: &crate::types::StructId| {
            types
                .structure(*id)
                .fields
                .iter()
                .map(|f| self.default_value(&f.ty))
                .collect::<Vec<_>>()
        };
        match types.representation(ty) {
            Ty::Struct(id) => Value::Fields(fields(&id)),
            Ty::Header(id) => Value::Header(build::boolean(false), fields(&id)),
            Ty::Union(id) => Value::Union(fields(&id)),
            Ty::Tuple(items) => {
                Value::Fields(items.iter().map(|t| self.default_value(t)).collect())
            }
            Ty::Stack(element, size) => {
                let items = vec![self.default_value(&element); size as usize];
                match is_header(&element) {
                    true => Value::Stack(items, build::constant(32, 0)),
                    false => Value::Fields(items),
                }
            }
            Ty::Varbit(w) => Value::Varbit(Expr::Const(Bits::zero(w)), build::constant(32, 0)),
            Ty::Int => Value::Int(BigInt::ZERO),
            ty => types
                .scalar_width(&ty)
                .map_or(Value::Nothing, |w| Value::Bits(Expr::Const(Bits::zero(w)))),
        }
    }

    /// What a variable holds that was given no value: the default value, in which nothing is marked as having none unless that is
    /// asked for.
    pub(super) fn unset_value(&mut self, ty: &Ty) -> Value {
        let value = self.default_value(ty);
        match self.unset {
            Some(_) => self.marked_unset(value),
            None => value,
        }
    }

    /// Headers keep their fields: those of an invalid header have a value of their own kind.
    fn marked_unset(&mut self, value: Value) -> Value {
        match value {
            Value::Bits(e) => {
                let width = e.width(&self.program.slots);
                let known = self.unset.as_ref().and_then(|slots| slots.get(&width));
                let slot = known.copied().unwrap_or_else(|| {
                    let slot = self.new_slot("$unset", width);
                    self.unset.get_or_insert_default().insert(width, slot);
                    slot
                });
                Value::Bits(Expr::Slot(slot))
            }
            Value::Fields(items) => {
                Value::Fields(items.into_iter().map(|v| self.marked_unset(v)).collect())
            }
            value => value,
        }
    }

    /// `cond ? a : b` of values of one shape.
    pub(super) fn mux(&self, cond: &Expr, a: Value, b: Value) -> Value {
        let all = |a: Vec<Value>, b: Vec<Value>| {
            a.into_iter()
                .zip(b)
                .map(|(a, b)| self.mux(cond, a, b))
                .collect()
        };
        let one = |a: Expr, b: Expr| build::mux(cond.clone(), a, b);
        match (a, b) {
            (Value::Bits(a), Value::Bits(b)) => Value::Bits(one(a, b)),
            (Value::Varbit(a, x), Value::Varbit(b, y)) => Value::Varbit(one(a, b), one(x, y)),
            (Value::Fields(a), Value::Fields(b)) => Value::Fields(all(a, b)),
            (Value::Union(a), Value::Union(b)) => Value::Union(all(a, b)),
            (Value::Header(x, a), Value::Header(y, b)) => Value::Header(one(x, y), all(a, b)),
            (Value::Stack(a, x), Value::Stack(b, y)) => Value::Stack(all(a, b), one(x, y)),
            (a, _) => a,
        }
    }

    /// A value as one expression; compile-time integers take the width of the type.
    pub(super) fn bits(&self, value: Value, ty: &Ty) -> Expr {
        match value {
            Value::Bits(e) => e,
            Value::Int(v) => Expr::Const(fold::to_bits(
                &v,
                self.module.types.scalar_width(ty).unwrap_or(32),
            )),
            _ => Expr::Const(Bits::zero(self.module.types.scalar_width(ty).unwrap_or(1))),
        }
    }

    /// A copy that later statements do not change.
    pub(super) fn snapshot(&mut self, value: Value, ty: &Ty, span: Span) -> Value {
        if value.is_constant() {
            return value;
        }
        if let (Value::Bits(e), true) = (&value, matches!(value, Value::Bits(_))) {
            let width = e.width(&self.program.slots);
            let slot = self.new_slot("$tmp", width);
            self.emit(StmtKind::Assign {
                dst: slot,
                value: e.clone(),
            });
            return Value::Bits(Expr::Slot(slot));
        }
        let place = self.alloc(ty, "$tmp", span);
        self.assign_place(&place, value);
        self.read(&place)
    }

    /// `lvalue = value`
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

    /// Runs `f` for the index that an expression has at run time, among `count`.
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

    /// Assigns; if the value reads what the assignment writes before, it is copied first.
    fn assign_safely(&mut self, place: &Place, value: Value, ty: &Ty, span: Span) {
        let value = match self.overlaps(place, &value) {
            true => self.snapshot(value, ty, span),
            false => value,
        };
        self.assign_place(place, value);
    }

    /// Whether a value of several parts reads parts of the storage other than by copying it onto itself.
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

    /// What else is lost when a header becomes valid: the other members of its union.
    pub(super) fn add_rivals(&self, place: &Place, slots: &mut BTreeSet<SlotId>) {
        let others = header_of(place).and_then(|id| self.siblings.get(&id));
        for other in others.into_iter().flatten() {
            let header = &self.program.headers[other.index()];
            slots.insert(header.valid);
            slots.extend(header.field_slots());
        }
    }

    /// Assigns part by part.
    pub(super) fn assign_place(&mut self, place: &Place, value: Value) {
        match (place, value) {
            (Place::Scalar(slot), value @ (Value::Bits(_) | Value::Int(_))) => {
                let width = self.program.slots[slot.index()].width;
                let value = self.bits(value, &Ty::Bit(width));
                self.emit(StmtKind::Assign { dst: *slot, value });
            }
            (Place::Varbit(slot, length), Value::Varbit(value, bits)) => {
                if let Some(header) = self.loose.get(slot) {
                    self.emit(StmtKind::SetValid(*header));
                }
                let width = self.program.slots[slot.index()].width;
                let value = build::resize(value, width, &self.program.slots);
                self.emit(StmtKind::Assign { dst: *slot, value });
                self.emit(StmtKind::Assign {
                    dst: *length,
                    value: bits,
                });
            }
            (Place::Fields(items), Value::Fields(values)) => self.assign_all(items, values),
            (Place::Union(items), Value::Union(values)) => self.assign_union(items, values),
            (Place::Header(id, items), Value::Header(valid, values)) => {
                self.assign_header(*id, items, valid, values)
            }
            (Place::Stack(items, next), Value::Stack(values, index)) => {
                self.assign_all(items, values);
                self.emit(StmtKind::Assign {
                    dst: *next,
                    value: index,
                });
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

    /// All members become invalid, then the valid one of the source is copied.
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

    /// A header becomes valid, and the other members of its union invalid.
    pub(super) fn set_valid(&mut self, id: HeaderId) {
        for other in self.siblings.get(&id).cloned().unwrap_or_default() {
            self.emit(StmtKind::SetInvalid(other));
        }
        self.emit(StmtKind::SetValid(id));
    }

    /// Whether two values of one shape are equal.
    pub(super) fn equal(&self, a: &Value, b: &Value) -> Expr {
        let slots = &self.program.slots;
        let eq = |a: &Expr, b: &Expr| {
            let width = a.width(slots).max(b.width(slots));
            let (a, b) = (
                build::resize(a.clone(), width, slots),
                build::resize(b.clone(), width, slots),
            );
            build::binary(BinaryOp::Eq, a, b, slots)
        };
        let all = |a: &[Value], b: &[Value]| {
            let parts: Vec<Expr> = a.iter().zip(b).map(|(a, b)| self.equal(a, b)).collect();
            conjunction(&parts, slots)
        };
        let and = |a: Expr, b: Expr| build::binary(BinaryOp::And, a, b, slots);
        match (a, b) {
            (Value::Bits(a), Value::Bits(b)) => eq(a, b),
            (Value::Varbit(a, x), Value::Varbit(b, y)) => and(eq(a, b), eq(x, y)),
            (Value::Header(x, a), Value::Header(y, b)) => and(eq(x, y), all(a, b)),
            (
                Value::Fields(a) | Value::Union(a) | Value::Stack(a, _),
                Value::Fields(b) | Value::Union(b) | Value::Stack(b, _),
            ) => all(a, b),
            (Value::Int(a), Value::Int(b)) => build::boolean(a == b),
            _ => build::boolean(true),
        }
    }

    /// A value laid out in bits, first member highest; for registers and digests of structs.
    pub(super) fn pack(&self, value: &Value) -> Option<Expr> {
        let mut leaves = Vec::new();
        value.leaves(&mut leaves);
        leaves.into_iter().reduce(build::concat)
    }

    /// A value from bits laid out by [`Lowerer::pack`].
    pub(super) fn unpack(&self, bits: &Expr, ty: &Ty) -> Value {
        let mut high = bits.width(&self.program.slots);
        self.unpack_from(bits, ty, &mut high)
    }

    fn unpack_from(&self, bits: &Expr, ty: &Ty, high: &mut u32) -> Value {
        let types = &self.module.types;
        let mut fields = |tys: &[Ty]| {
            tys.iter()
                .map(|t| self.unpack_from(bits, t, high))
                .collect::<Vec<_>>()
        };
        let members = |id: &crate::types::StructId| {
            types
                .structure(*id)
                .fields
                .iter()
                .map(|f| f.ty.clone())
                .collect::<Vec<_>>()
        };
        match types.representation(ty) {
            Ty::Struct(id) => Value::Fields(fields(&members(&id))),
            Ty::Header(id) => Value::Header(build::boolean(true), fields(&members(&id))),
            Ty::Tuple(items) => Value::Fields(fields(&items)),
            Ty::Stack(element, size) => {
                let items = vec![(*element).clone(); size as usize];
                match is_header(&element) {
                    true => Value::Stack(fields(&items), build::constant(32, 0)),
                    false => Value::Fields(fields(&items)),
                }
            }
            ty => match types.scalar_width(&ty) {
                Some(width) if width <= *high => {
                    *high -= width;
                    Value::Bits(build::slice(
                        bits.clone(),
                        *high + width - 1,
                        *high,
                        &self.program.slots,
                    ))
                }
                _ => Value::Nothing,
            },
        }
    }
}

/// The header that a place is.
pub(crate) fn header_of(place: &Place) -> Option<HeaderId> {
    match place {
        Place::Header(id, _) => Some(*id),
        _ => None,
    }
}

/// All conditions at once, as a balanced tree.
pub(crate) fn conjunction(parts: &[Expr], slots: &[ir::Slot]) -> Expr {
    match parts {
        [] => build::boolean(true),
        [only] => only.clone(),
        _ => {
            let (a, b) = parts.split_at(parts.len() / 2);
            build::binary(
                BinaryOp::And,
                conjunction(a, slots),
                conjunction(b, slots),
                slots,
            )
        }
    }
}
