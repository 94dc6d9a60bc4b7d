//! Values of P4 types: read from storage, chosen, compared, and as bits.

use std::rc::Rc;

use ir::{BinaryOp, Bits, Expr};
use num_bigint::BigInt;
use syntax::source::Span;

use super::place::{Lvalue, Place, Value, conjunction, is_header};
use super::{Code, Context, Unit, build};
use crate::fold;
use crate::types::Ty;

impl Code<'_> {
    /// Emits a copy of a value into new slots and returns the copy, which later statements do not change.
    /// Returns a constant without a copy.
    pub(super) fn snapshot(&mut self, value: Value, ty: &Ty, span: Span) -> Value {
        if value.is_constant() {
            return value;
        }
        if let (Value::Bits(e), true) = (&value, matches!(value, Value::Bits(_))) {
            let width = e.width(&self.program.slots);
            let slot = self.new_slot("$tmp", width);
            self.set(slot, e.clone());
            return Value::Bits(Expr::Slot(slot));
        }
        let place = self.alloc(ty, "$tmp", span);
        self.assign_place(&place, value);
        self.read(&place)
    }
}

impl Unit<'_> {
    /// Returns the value of the storage `place`, as expressions that read its slots.
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

    /// Returns the value of an lvalue, as expressions that read its slots. An array element beyond the end
    /// has zeros and invalid headers as its value.
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

    /// Builds the value of the item of `values` at `index`, which is known only at run time: each scalar
    /// becomes a choice among those of the items.
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

    /// Returns a value with the structure of `value`, in which all scalars are zero and all headers are invalid.
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

    /// Returns the initial value of a variable without an initialiser: the default value of its type. If the
    /// analysis asks for it, each scalar outside of headers is marked as unset instead.
    pub(super) fn unset_value(&mut self, ty: &Ty) -> Value {
        let value = self.default_value(ty);
        match self.marks_unset {
            true => self.marked_unset(value),
            false => value,
        }
    }

    /// Replaces each scalar of a value, except those in headers, by the slot that stands for an unset value
    /// of its width, and returns the result. Reads of fields of invalid headers are found by the validity of
    /// the header instead.
    fn marked_unset(&mut self, value: Value) -> Value {
        match value {
            Value::Bits(e) => {
                let width = e.width(&self.program.slots);
                let slot = self.unset.get(&width).copied().unwrap_or_else(|| {
                    let slot = self.new_slot("$unset", width);
                    self.unset.insert(width, slot);
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

    /// Builds the condition that two values of the same structure are equal. Two invalid headers are equal,
    /// since their fields are all zero; the next index of a stack is not compared.
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

    /// Builds the value of type `ty` from `bits`, which have the layout of [`Context::pack`].
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

impl Context<'_> {
    /// Returns the default value of the type `ty`: all scalars are zero and all headers are invalid.
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

    /// Builds the value `cond ? a : b` for two values of the same structure.
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

    /// Returns a scalar value as one expression. An integer without a width gets the width of `ty`; anything
    /// that is no scalar becomes zero.
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

    /// Builds the bits of a value, with its first member in the highest bits, as registers store structs;
    /// `None` if the value has no bits.
    pub(super) fn pack(&self, value: &Value) -> Option<Expr> {
        value.leaves().into_iter().reduce(build::concat)
    }
}
