//! Expressions to values. Statements for an expression's side effects are emitted first.

use ir::{BinaryOp, Expr, UnaryOp};
use num_bigint::BigInt;

use super::place::{Lvalue, Value, is_header};
use super::sequence::Evaluated;
use super::{Binding, Body, Code, Context, Unit, build};
use crate::errors;
use crate::fold;
use crate::hir::{self, BinaryOp as Op, ExprKind};
use crate::types::Ty;

/// The name of slots that hold copies of indexes.
const INDEX: &str = "$index";

/// What a path of fields and indexes names: storage or a value.
enum Reference {
    Lvalue(Lvalue),
    Value(Value),
}

impl Body<'_, '_> {
    /// Evaluates an expression: emits the statements for its side effects and returns its value.
    pub(super) fn eval(&mut self, expr: &hir::Expr) -> Value {
        match &expr.kind {
            ExprKind::Int(value) => self.int(value, &expr.ty),
            ExprKind::Bool(value) => Value::Bits(build::boolean(*value)),
            ExprKind::Str(text) => Value::Str((&**text).into()),
            ExprKind::Symbol(i) => {
                let width = self
                    .module
                    .types
                    .scalar_width(&expr.ty)
                    .unwrap_or(ir::ENUM_WIDTH);
                Value::Bits(build::constant(width, u64::from(*i)))
            }
            ExprKind::Var(_) | ExprKind::Field(..) | ExprKind::Index(..) => self.path(expr),
            ExprKind::Next(_) | ExprKind::Last(_) => self.path(expr),
            ExprKind::LastIndex(base) => match self.eval(base) {
                Value::Stack(_, next) => {
                    let one = build::constant(32, 1);
                    Value::Bits(build::binary(BinaryOp::Sub, next, one, &self.program.slots))
                }
                _ => Value::Nothing,
            },
            ExprKind::Slice(base, high, low) => {
                let bits = self.scalar(base);
                Value::Bits(build::slice(bits, *high, *low, &self.program.slots))
            }
            ExprKind::PlusSlice(base, low, width) => {
                let values = self.eval_all(&[base, low]);
                let [a, by] = self.scalars(values, &[base, low]);
                let shifted = build::binary(BinaryOp::Shr, a, by, &self.program.slots);
                Value::Bits(build::slice(shifted, width - 1, 0, &self.program.slots))
            }
            ExprKind::Unary(op, operand) => self.unary(*op, operand),
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b),
            ExprKind::Cast(operand) => self.cast(operand, &expr.ty),
            ExprKind::Ternary(cond, a, b) => self.ternary(cond, a, b, expr),
            ExprKind::Aggregate(items) => {
                let refs: Vec<&hir::Expr> = items.iter().collect();
                let values = self.eval_all(&refs);
                self.composed(values, &expr.ty)
            }
            ExprKind::Named(items, written) => {
                // What is not written stands for constants.
                let rest = (0..items.len()).filter(|i| !written.contains(i));
                let order: Vec<usize> = written.iter().copied().chain(rest).collect();
                let refs: Vec<&hir::Expr> = order.iter().map(|i| &items[*i]).collect();
                let mut values: Vec<(usize, Value)> =
                    order.iter().copied().zip(self.eval_all(&refs)).collect();
                values.sort_by_key(|(i, _)| *i);
                self.composed(values.into_iter().map(|(_, v)| v).collect(), &expr.ty)
            }
            ExprKind::InvalidHeader | ExprKind::Default => self.default_value(&expr.ty),
            ExprKind::Call(call) => self.call(call, expr),
            ExprKind::ApplyHit { table, miss } => {
                let hit = self.new_slot("$hit", 1);
                self.apply_table(*table, Some(hit), None, expr.span);
                let hit = Expr::Slot(hit);
                Value::Bits(if *miss { build::not(hit) } else { hit })
            }
            ExprKind::Missing => Value::Nothing,
        }
    }

    /// Evaluates expressions in order and returns their values. The side effects of a later expression do not
    /// change the returned value of an earlier one.
    pub(super) fn eval_all(&mut self, exprs: &[&hir::Expr]) -> Vec<Value> {
        let mut values: Vec<Evaluated> = Vec::new();
        for expr in exprs {
            let value = self.eval(expr);
            values.push(self.evaluated(value, expr));
        }
        self.keep(&mut values, true);
        values.into_iter().map(|v| v.value).collect()
    }

    /// Evaluates an expression of a scalar type, and returns its value as one expression of the IR.
    pub(super) fn scalar(&mut self, expr: &hir::Expr) -> Expr {
        let value = self.eval(expr);
        self.bits(value, &expr.ty)
    }

    fn path(&mut self, expr: &hir::Expr) -> Value {
        match self.reference(expr) {
            Reference::Lvalue(lvalue) => self.read_lvalue(&lvalue),
            Reference::Value(value) => value,
        }
    }

    /// Evaluates a path of field accesses and indexes, and returns the storage that it names, or its value if
    /// it names no storage.
    fn reference(&mut self, expr: &hir::Expr) -> Reference {
        match &expr.kind {
            ExprKind::Var(id) => match self.scope.binding(*id) {
                Some(Binding::Place(place)) => Reference::Lvalue(Lvalue::Place(place.clone())),
                Some(Binding::Value(value)) => Reference::Value(value.clone()),
                Some(Binding::Lvalue(lvalue)) => Reference::Lvalue(lvalue.clone()),
                None => Reference::Lvalue(Lvalue::Place(self.storage_of(*id))),
            },
            ExprKind::Field(base, i) => match self.reference(base) {
                Reference::Lvalue(lvalue) => Reference::Lvalue(lvalue.field(*i)),
                Reference::Value(value) => Reference::Value(value.field(*i)),
            },
            ExprKind::Index(base, index) => {
                let base_ref = self.reference(base);
                let (base_ref, index) = self.with_index(base_ref, base, index);
                self.element(base_ref, index)
            }
            ExprKind::Next(base) | ExprKind::Last(base) => {
                let is_next = matches!(expr.kind, ExprKind::Next(_));
                let base_ref = self.reference(base);
                self.stack_end(base_ref, is_next)
            }
            ExprKind::Slice(base, high, low) => match self.reference(base) {
                Reference::Lvalue(lvalue) => {
                    Reference::Lvalue(Lvalue::Slice(Box::new(lvalue), *high, *low))
                }
                Reference::Value(_) => Reference::Value(self.eval(expr)),
            },
            ExprKind::PlusSlice(base, low, width) => match self.reference(base) {
                base_ref @ Reference::Lvalue(_) => match self.with_index(base_ref, base, low) {
                    (Reference::Lvalue(lvalue), low) => {
                        Reference::Lvalue(Lvalue::PlusSlice(Box::new(lvalue), low, *width))
                    }
                    (value, _) => value,
                },
                Reference::Value(_) => Reference::Value(self.eval(expr)),
            },
            _ => Reference::Value(self.eval(expr)),
        }
    }

    /// Evaluates `index` after its base `base`, and returns both. The side effects of the index do not change
    /// the base: an lvalue still names the same storage, and a value keeps the value from before. The
    /// contents of the storage of an lvalue are read only after both are evaluated.
    fn with_index(
        &mut self,
        base_ref: Reference,
        base: &hir::Expr,
        index: &hir::Expr,
    ) -> (Reference, Expr) {
        match base_ref {
            Reference::Lvalue(lvalue) => {
                let lvalue = match index.has_effects() {
                    true => self.saved(lvalue),
                    false => lvalue,
                };
                let index = self.scalar(index);
                (Reference::Lvalue(lvalue), index)
            }
            Reference::Value(value) => {
                let mut value = [self.evaluated(value, base)];
                let index = self.scalar(index);
                self.keep(&mut value, true);
                let [value] = value;
                (Reference::Value(value.value), index)
            }
        }
    }

    /// Evaluates the destination of an assignment to an lvalue. Copies its indexes first if the evaluation of
    /// `value`, which follows, may change them.
    pub(super) fn target(&mut self, target: &hir::Expr, value: &hir::Expr) -> Lvalue {
        let lvalue = self.lvalue(target);
        match value.has_effects() {
            true => self.saved(lvalue),
            false => lvalue,
        }
    }

    /// Returns the storage that an expression names, to be written; [`Lvalue::Ignore`] if it names no
    /// storage.
    pub(super) fn lvalue(&mut self, expr: &hir::Expr) -> Lvalue {
        match self.reference(expr) {
            Reference::Lvalue(lvalue) => lvalue,
            Reference::Value(_) => Lvalue::Ignore,
        }
    }

    fn unary(&mut self, op: hir::UnaryOp, operand: &hir::Expr) -> Value {
        let a = self.scalar(operand);
        Value::Bits(match op {
            hir::UnaryOp::Not | hir::UnaryOp::BitNot => build::unary(UnaryOp::Not, a),
            hir::UnaryOp::Neg => build::unary(UnaryOp::Neg, a),
        })
    }

    fn binary(&mut self, op: Op, a: &hir::Expr, b: &hir::Expr) -> Value {
        match op {
            Op::And | Op::Or if b.has_effects() => return self.short_circuit(op, a, b),
            Op::Eq | Op::Ne => {
                let values = self.eval_all(&[a, b]);
                let [x, y] = &values[..] else {
                    return Value::Nothing;
                };
                let equal = self.equal(x, y);
                return Value::Bits(if op == Op::Eq {
                    equal
                } else {
                    build::not(equal)
                });
            }
            _ => {}
        }
        let values = self.eval_all(&[a, b]);
        if let [Value::Int(x), Value::Int(y)] = &values[..] {
            return self.int_binary(op, x, y, a);
        }
        let [x, y] = self.scalars(values, &[a, b]);
        let signed = self.module.types.is_signed(&a.ty);
        self.apply_operator(op, x, y, signed)
    }

    /// Lowers `a && b` or `a || b` where `b` has side effects, and returns the result: `b` is evaluated in a
    /// branch, which runs only if the value of `a` does not decide the result.
    fn short_circuit(&mut self, op: Op, a: &hir::Expr, b: &hir::Expr) -> Value {
        let result = self.new_slot("$cond", 1);
        let first = self.scalar(a);
        self.set(result, first);
        let second = self.capture(|l| {
            let value = l.scalar(b);
            l.set(result, value);
        });
        let cond = if op == Op::And {
            Expr::Slot(result)
        } else {
            build::not(Expr::Slot(result))
        };
        self.emit_if(cond, second, Vec::new());
        Value::Bits(Expr::Slot(result))
    }

    fn ternary(
        &mut self,
        cond: &hir::Expr,
        a: &hir::Expr,
        b: &hir::Expr,
        whole: &hir::Expr,
    ) -> Value {
        let condition = self.scalar(cond);
        if !a.has_effects() && !b.has_effects() {
            let (a, b) = (self.eval(a), self.eval(b));
            return self.mux(&condition, a, b);
        }
        let place = self.alloc(&whole.ty, "$tmp", whole.span);
        let branch = |l: &mut Self, e: &hir::Expr| {
            l.capture(|l| {
                let value = l.eval(e);
                l.assign_place(&place, value);
            })
        };
        let then = branch(self, a);
        let otherwise = branch(self, b);
        self.emit_if(condition, then, otherwise);
        self.read(&place)
    }

    fn cast(&mut self, operand: &hir::Expr, ty: &Ty) -> Value {
        let value = self.eval(operand);
        let types = &self.module.types;
        let (from, to) = (types.representation(&operand.ty), types.representation(ty));
        let slots = &self.program.slots;
        match (value, types.scalar_width(&to)) {
            (Value::Int(v), Some(width)) => Value::Bits(Expr::Const(fold::to_bits(&v, width))),
            (Value::Bits(e), Some(width)) => Value::Bits(match (&from, &to) {
                (Ty::Signed(_), Ty::Signed(_)) => build::resize_signed(e, width, slots),
                _ => build::resize(e, width, slots),
            }),
            (value, _) => value,
        }
    }
}

impl Code<'_> {
    fn element(&mut self, base: Reference, index: Expr) -> Reference {
        match base {
            Reference::Lvalue(lvalue) => {
                // The index may be changed by what is written through it.
                let index = match index {
                    Expr::Slot(_) | Expr::Const(_) => index,
                    _ => self.index_slot(index),
                };
                Reference::Lvalue(lvalue.element(&index))
            }
            Reference::Value(Value::Stack(items, _) | Value::Fields(items)) => match index {
                Expr::Const(bits) => {
                    let item = bits
                        .to_u64()
                        .and_then(|i| items.into_iter().nth(i as usize));
                    Reference::Value(item.unwrap_or(Value::Nothing))
                }
                index => {
                    // Storage for the choice: values have no lvalues to choose from.
                    let mut chosen = items.last().cloned().unwrap_or(Value::Nothing);
                    let width = index.width(&self.program.slots);
                    for (i, item) in items.into_iter().enumerate().rev().skip(1) {
                        let here = build::constant(width, i as u64);
                        let cond =
                            build::binary(BinaryOp::Eq, index.clone(), here, &self.program.slots);
                        chosen = self.mux(&cond, item, chosen);
                    }
                    Reference::Value(chosen)
                }
            },
            Reference::Value(_) => Reference::Value(Value::Nothing),
        }
    }

    /// Emits the assignment of an index to a new slot, and returns an expression that reads the slot.
    fn index_slot(&mut self, index: Expr) -> Expr {
        let width = index.width(&self.program.slots);
        let slot = self.new_slot(INDEX, width);
        self.set(slot, index);
        Expr::Slot(slot)
    }

    /// Returns an lvalue that continues to name the same storage even if variables in its indexes change
    /// before the write (specification, "Calling convention": "the corresponding l-value is saved").
    pub(super) fn saved(&mut self, lvalue: Lvalue) -> Lvalue {
        self.saved_with(lvalue, &mut Vec::new())
    }

    /// Returns an lvalue as [`Code::saved`] does. `copies` pairs each index that was already copied with its
    /// copy, so that all elements of a stack use one copy.
    fn saved_with(&mut self, lvalue: Lvalue, copies: &mut Vec<(Expr, Expr)>) -> Lvalue {
        match lvalue {
            Lvalue::Element(items, index) => {
                let index = self.saved_index(index, copies);
                let items = items.into_iter().map(|i| self.saved_with(i, copies));
                Lvalue::Element(items.collect(), index)
            }
            Lvalue::Slice(inner, high, low) => {
                Lvalue::Slice(Box::new(self.saved_with(*inner, copies)), high, low)
            }
            Lvalue::PlusSlice(inner, low, width) => {
                let low = self.saved_index(low, copies);
                Lvalue::PlusSlice(Box::new(self.saved_with(*inner, copies)), low, width)
            }
            Lvalue::Place(_) | Lvalue::Ignore => lvalue,
        }
    }

    fn saved_index(&mut self, index: Expr, copies: &mut Vec<(Expr, Expr)>) -> Expr {
        match &index {
            Expr::Const(_) => return index,
            // Such a slot is written once, before it is read.
            Expr::Slot(slot) if self.program.slots[slot.index()].name == INDEX => return index,
            _ => {}
        }
        if let Some((_, copy)) = copies.iter().find(|(of, _)| *of == index) {
            return copy.clone();
        }
        let copy = self.index_slot(index.clone());
        copies.push((index, copy.clone()));
        copy
    }

    /// Returns the element that `stack.next`, or else `stack.last`, names. First emits a check that rejects
    /// the packet, with the error StackOutOfBounds, if there is no such element.
    fn stack_end(&mut self, base: Reference, is_next: bool) -> Reference {
        let Reference::Lvalue(Lvalue::Place(super::Place::Stack(items, next))) = base else {
            return Reference::Value(Value::Nothing);
        };
        let slots = &self.program.slots;
        let next = Expr::Slot(next);
        let (outside, index) = if is_next {
            let count = build::constant(32, items.len() as u64);
            (
                build::binary(BinaryOp::Ule, count, next.clone(), slots),
                next,
            )
        } else {
            let one = build::constant(32, 1);
            let none = build::binary(BinaryOp::Eq, next.clone(), build::constant(32, 0), slots);
            (none, build::binary(BinaryOp::Sub, next, one, slots))
        };
        let reject = self.capture(|l| l.reject(super::externs::STACK_OUT_OF_BOUNDS));
        self.emit_if(outside, reject, Vec::new());
        Reference::Lvalue(Lvalue::Element(
            items.iter().cloned().map(Lvalue::Place).collect(),
            index,
        ))
    }
}

impl Unit<'_> {
    /// Builds the result of a binary operator on the evaluated operands `x` and `y`. `signed` is true if they
    /// are signed numbers.
    pub(super) fn apply_operator(&mut self, op: Op, x: Expr, y: Expr, signed: bool) -> Value {
        let slots = &self.program.slots;
        let go = |op: BinaryOp, x: Expr, y: Expr| Value::Bits(build::binary(op, x, y, slots));
        match (op, signed) {
            (Op::Mul, _) => go(BinaryOp::Mul, x, y),
            (Op::Div, _) => go(BinaryOp::Div, x, y),
            (Op::Mod, _) => go(BinaryOp::Mod, x, y),
            (Op::Add, _) => go(BinaryOp::Add, x, y),
            (Op::Sub, _) => go(BinaryOp::Sub, x, y),
            (Op::SatAdd, false) => go(BinaryOp::AddSat, x, y),
            (Op::SatAdd, true) => go(BinaryOp::SAddSat, x, y),
            (Op::SatSub, false) => go(BinaryOp::SubSat, x, y),
            (Op::SatSub, true) => go(BinaryOp::SSubSat, x, y),
            (Op::Concat, _) => Value::Bits(build::concat(x, y)),
            (Op::Shl, _) => go(BinaryOp::Shl, x, y),
            (Op::Shr, false) => go(BinaryOp::Shr, x, y),
            (Op::Shr, true) => go(BinaryOp::Sar, x, y),
            (Op::Lt, false) => go(BinaryOp::Ult, x, y),
            (Op::Le, false) => go(BinaryOp::Ule, x, y),
            (Op::Gt, false) => go(BinaryOp::Ult, y, x),
            (Op::Ge, false) => go(BinaryOp::Ule, y, x),
            (Op::Lt, true) => go(BinaryOp::Slt, x, y),
            (Op::Le, true) => go(BinaryOp::Sle, x, y),
            (Op::Gt, true) => go(BinaryOp::Slt, y, x),
            (Op::Ge, true) => go(BinaryOp::Sle, y, x),
            (Op::Eq, _) => go(BinaryOp::Eq, x, y),
            (Op::Ne, _) => go(BinaryOp::Ne, x, y),
            (Op::BitAnd | Op::And, _) => go(BinaryOp::And, x, y),
            (Op::BitOr | Op::Or, _) => go(BinaryOp::Or, x, y),
            (Op::BitXor, _) => go(BinaryOp::Xor, x, y),
        }
    }

    /// Computes a binary operator on integers without a width (`int`), whose values become known only at
    /// instantiation. Reports an operation without a result, such as a division by zero, and returns zero.
    fn int_binary(&mut self, op: Op, x: &BigInt, y: &BigInt, at: &hir::Expr) -> Value {
        if let Some(result) = fold::compare(op, x, y) {
            return Value::Bits(build::boolean(result));
        }
        match fold::arithmetic(op, x, y, &Ty::Int) {
            Ok(value) => Value::Int(value),
            Err(_) => {
                self.report(errors::not_constant(at.span, "this"));
                Value::Int(BigInt::ZERO)
            }
        }
    }

    /// Builds the condition that a header is valid, or that any member of a header union is; false for any
    /// other value.
    pub(super) fn validity(&self, value: &Value) -> Expr {
        match value {
            Value::Header(valid, _) => valid.clone(),
            Value::Union(items) => {
                let parts: Vec<Expr> = items.iter().map(|v| self.validity(v)).collect();
                let any = parts
                    .into_iter()
                    .reduce(|a, b| build::binary(BinaryOp::Or, a, b, &self.program.slots));
                any.unwrap_or(build::boolean(false))
            }
            _ => build::boolean(false),
        }
    }
}

impl Context<'_> {
    /// Returns the value of type `ty` that has the given members: a valid header, a header stack, or a
    /// struct, tuple or array.
    fn composed(&self, members: Vec<Value>, ty: &Ty) -> Value {
        match self.module.types.representation(ty) {
            Ty::Header(_) => Value::Header(build::boolean(true), members),
            Ty::Stack(element, _) if is_header(&element) => {
                Value::Stack(members, build::constant(32, 0))
            }
            _ => Value::Fields(members),
        }
    }

    fn scalars<const N: usize>(&self, values: Vec<Value>, exprs: &[&hir::Expr; N]) -> [Expr; N] {
        let mut values = values.into_iter();
        exprs.map(|e| self.bits(values.next().unwrap_or(Value::Nothing), &e.ty))
    }

    fn int(&self, value: &BigInt, ty: &Ty) -> Value {
        match self.module.types.scalar_width(ty) {
            Some(width) => Value::Bits(Expr::Const(fold::to_bits(value, width))),
            None => Value::Int(value.clone()),
        }
    }
}
