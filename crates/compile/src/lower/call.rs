//! Calls: arguments in and out, and the inlining of functions, actions and controls.

use std::collections::BTreeSet;

use ir::{Expr, StmtKind};
use syntax::ast::Direction;
use syntax::source::Span;

use super::body::Names;
use super::place::{Lvalue, Place, Value, header_of};
use super::sequence::Evaluated;
use super::{Binding, Body, Code, ObjectId, Unit, build};
use crate::hir::{self, ActionId, Arg, Args, Call, CallTarget, FuncId, VarId, VarKind};
use crate::types::Ty;

/// A copy after a call, from a parameter to its argument: the destination, the source, and the type.
pub(super) type CopyOut = (Lvalue, Place, Ty);

/// An evaluated argument.
enum Ready {
    Value(Value),
    /// An lvalue, and its value before the call for `inout`.
    Lvalue(Lvalue, Option<Evaluated>),
}

impl Body<'_, '_> {
    /// Lowers a call and returns its value; [`Value::Nothing`] for a call without a result.
    pub(super) fn call(&mut self, call: &Call, expr: &hir::Expr) -> Value {
        let span = expr.span;
        match &call.target {
            CallTarget::Function(id) => self.call_function(*id, &call.args, span),
            CallTarget::Action(id) => {
                self.call_action(*id, &call.args, span);
                Value::Nothing
            }
            CallTarget::Extern(declared) => self.extern_function(declared, &call.args, span),
            CallTarget::Method {
                object,
                external,
                method,
            } => self.extern_method(object, *external, method, &call.args, &expr.ty, span),
            CallTarget::Table(table) => {
                self.apply_table(*table, None, None, span);
                Value::Nothing
            }
            CallTarget::Block(var) => {
                if let Some(Binding::Value(Value::Object(object))) =
                    self.scope.binding(*var).cloned()
                {
                    self.apply_block(object, &call.args, span);
                }
                Value::Nothing
            }
            CallTarget::BlockType(block) => {
                let object = self.anonymous_block(*block, span);
                self.apply_block(object, &call.args, span);
                Value::Nothing
            }
            CallTarget::IsValid(header) => {
                let value = self.eval(header);
                Value::Bits(self.validity(&value))
            }
            CallTarget::SetValid(header) => {
                let lvalue = self.lvalue(header);
                self.for_headers(&lvalue, &mut |l, id| l.set_valid(id));
                Value::Nothing
            }
            CallTarget::SetInvalid(header) => {
                let lvalue = self.lvalue(header);
                self.for_headers(&lvalue, &mut |l, id| l.emit(StmtKind::SetInvalid(id)));
                Value::Nothing
            }
            CallTarget::PushFront(stack, count) => {
                self.shift_stack(stack, *count, true);
                Value::Nothing
            }
            CallTarget::PopFront(stack, count) => {
                self.shift_stack(stack, *count, false);
                Value::Nothing
            }
            CallTarget::Construct => Value::Nothing,
        }
    }

    /// Emits statements for `push_front` if `push` is true, else for `pop_front`: they move the elements of a
    /// header stack by `count`, and make the elements at the freed end invalid.
    fn shift_stack(&mut self, stack: &hir::Expr, count: u32, push: bool) {
        let Lvalue::Place(Place::Stack(items, next)) = self.lvalue(stack) else {
            return;
        };
        let size = items.len();
        let count = (count as usize).min(size);
        let steps: Vec<usize> = if push {
            (0..size).rev().collect()
        } else {
            (0..size).collect()
        };
        for i in steps {
            let source = if push {
                i.checked_sub(count)
            } else {
                Some(i + count).filter(|s| *s < size)
            };
            match source {
                Some(s) if s == i => {}
                Some(s) => {
                    let value = self.read(&items[s]);
                    self.assign_place(&items[i], value);
                }
                None => {
                    let value = self.read(&items[i]);
                    let value = self.zero_like(&value);
                    self.assign_place(&items[i], value);
                }
            }
        }
        let slots = &self.program.slots;
        let (old, n) = (Expr::Slot(next), build::constant(32, count as u64));
        let value = if push {
            let end = build::constant(32, size as u64);
            let sum = build::binary(ir::BinaryOp::Add, old, n, slots);
            let over = build::binary(ir::BinaryOp::Ult, end.clone(), sum.clone(), slots);
            build::mux(over, end, sum)
        } else {
            let below = build::binary(ir::BinaryOp::Ult, old.clone(), n.clone(), slots);
            build::mux(
                below,
                build::constant(32, 0),
                build::binary(ir::BinaryOp::Sub, old, n, slots),
            )
        };
        self.set(next, value);
    }

    /// Evaluates the arguments of a call in the order in which they are written, and returns them in the
    /// order of the parameters. `all` is passed to [`Code::keep`].
    fn ready(&mut self, args: &Args, all: bool) -> Vec<Ready> {
        let mut out: Vec<Ready> = args
            .iter()
            .map(|_| Ready::Lvalue(Lvalue::Ignore, None))
            .collect();
        let mut values: Vec<(usize, Evaluated)> = Vec::new();
        for i in args.in_order() {
            match &args[i] {
                Arg::In(e) => {
                    let value = self.eval(e);
                    values.push((i, self.evaluated(value, e)));
                }
                Arg::Out(e) => {
                    let lvalue = self.lvalue(e);
                    out[i] = Ready::Lvalue(self.saved(lvalue), None);
                }
                Arg::InOut(e) => {
                    let lvalue = self.lvalue(e);
                    let lvalue = self.saved(lvalue);
                    let value = self.read_lvalue(&lvalue);
                    values.push((i, self.evaluated(value, e)));
                    out[i] = Ready::Lvalue(lvalue, None);
                }
                Arg::Ignore(_) | Arg::Absent => {}
            }
        }
        let (positions, mut values): (Vec<usize>, Vec<Evaluated>) = values.into_iter().unzip();
        self.keep(&mut values, all);
        for (i, value) in positions.into_iter().zip(values) {
            match &mut out[i] {
                Ready::Lvalue(_, before) if matches!(args[i], Arg::InOut(_)) => {
                    *before = Some(value)
                }
                ready => *ready = Ready::Value(value.value),
            }
        }
        out
    }

    /// Binds parameters to arguments: emits copies of the arguments, except where the argument can stand for
    /// the parameter. Returns what the parameters stand for in the body that is called, and the copies back
    /// that must be made after the call, in this order. If `by_copy` is true, arguments that are no constants
    /// are copied, since the body can reach their storage by other names. If `fixed` is true, all are copied,
    /// to storage that belongs to the parameters.
    pub(super) fn bind(
        &mut self,
        params: &[VarId],
        args: &Args,
        by_copy: bool,
        fixed: bool,
    ) -> (Names, Vec<CopyOut>) {
        // Arguments of parsers are not bound by copy: see `bind_block`.
        let ready = self.ready(args, by_copy);
        let direct = self.direct(&ready);
        let mut names = Names::new();
        let mut copies = Vec::new();
        let mut ready: Vec<Option<Ready>> = ready.into_iter().map(Some).collect();
        for i in args.in_order() {
            let (Some(param), Some(ready)) = (params.get(i), ready[i].take()) else {
                continue;
            };
            let direct = direct[i];
            let def = self.module.var(*param);
            let (ty, span) = (def.ty.clone(), def.span);
            let binding = match ready {
                Ready::Value(value @ Value::Object(_)) => Binding::Value(value),
                Ready::Value(value) if !fixed && (value.is_constant() || (direct && !by_copy)) => {
                    Binding::Value(value)
                }
                Ready::Value(value) => {
                    let place = self.storage_of(*param);
                    self.assign(&Lvalue::Place(place.clone()), value, &ty, span);
                    Binding::Place(place)
                }
                Ready::Lvalue(Lvalue::Place(place), before) if direct && !by_copy && !fixed => {
                    if before.is_none() {
                        let value = self.unset_value(&ty);
                        self.assign_place(&place, value);
                    }
                    Binding::Place(place)
                }
                Ready::Lvalue(lvalue, before) => {
                    let place = self.storage_of(*param);
                    let value = match before {
                        Some(before) => before.value,
                        None => self.unset_value(&ty),
                    };
                    self.assign(&Lvalue::Place(place.clone()), value, &ty, span);
                    if !matches!(def.kind, VarKind::Param(Direction::In)) {
                        copies.push((lvalue, place.clone(), ty));
                    }
                    Binding::Place(place)
                }
            };
            names.insert(*param, binding);
        }
        (names, copies)
    }

    fn call_function(&mut self, id: FuncId, args: &Args, span: Span) -> Value {
        let module = self.module;
        let function = &module.functions[id.index()];
        let by_copy = self.copies_arguments;
        let (names, copies) = self.bind(&function.params, args, by_copy, false);
        let result = match function.ret {
            Ty::Void => None,
            _ => Some(self.alloc(&function.ret, &format!("{}.$result", function.name), span)),
        };
        self.inner(self.scope.instance, names, copies.clone())
            .returning(result.clone(), |l| l.statements(&function.body));
        self.at(span);
        self.copy_back(&copies);
        result.map_or(Value::Nothing, |place| self.read(&place))
    }

    fn call_action(&mut self, id: ActionId, args: &Args, span: Span) {
        let module = self.module;
        let action = &module.actions[id.index()];
        let path = self.path_of(self.scope.instance.filter(|_| !action.global));
        let name = super::control_plane_name(&path, &action.name, &action.annotations);
        if !self.info.called.iter().any(|(n, _)| *n == name) {
            self.info.called.push((name, id));
        }
        // An action of a control sees the control's variables, so its parameters are copies, except of constants.
        let by_copy = !action.global || self.copies_arguments;
        let (names, copies) = self.bind(&action.params, args, by_copy, false);
        self.inner(self.scope.instance, names, copies.clone())
            .returning(None, |l| l.statements(&action.body));
        self.at(span);
        self.copy_back(&copies);
    }

    fn apply_block(&mut self, object: ObjectId, args: &Args, span: Span) {
        let Some(instance) = self.block_instance(Some(object)) else {
            return;
        };
        let shared = instance.shared;
        let block = self.module.block(instance.block);
        if block.is_parser {
            return self.apply_parser(object, args, span);
        }
        // Arguments belong to the caller, parameters to the instance.
        let (names, copies) = self.bind_block(object, &block.params, args, shared);
        self.inside(object, names, copies.clone())
            .block_statements(block);
        self.at(span);
        self.copy_back(&copies);
    }

    /// Binds the parameters of an instance of a parser or control, whose storage belongs to the instance, as
    /// [`Body::bind`] does. `shared` is true if the instance is applied in more than one place, and then
    /// needs the same storage in all.
    pub(super) fn bind_block(
        &mut self,
        object: ObjectId,
        params: &[VarId],
        args: &Args,
        shared: bool,
    ) -> (Names, Vec<CopyOut>) {
        let owner = Some(object);
        for param in params {
            if shared && !matches!(self.module.var(*param).ty, Ty::Extern(..)) {
                self.storage_in(owner, *param);
            }
        }
        // `bind` makes storage for the caller; hand it the instance's.
        let caller = self.scope.instance;
        for param in params {
            if let Some(place) = self.made.storage.get(&(owner, *param)).cloned() {
                self.made.storage.insert((caller, *param), place);
            }
        }
        // A parser that rejects leaves what it has written so far, which copies would lose.
        let by_copy = self.copies_arguments && !self.stage().is_parser();
        self.bind(params, args, by_copy, shared)
    }

    /// Returns the instance of the parser or control type `block` that the call `C.apply()` at `span`
    /// applies, and creates it at the first request.
    fn anonymous_block(&mut self, block: crate::types::BlockId, span: Span) -> ObjectId {
        let key = (self.scope.instance, span);
        if let Some(object) = self.made.anonymous.get(&key) {
            return *object;
        }
        let def = self.module.block(block);
        let path = super::control_plane_name(&self.current_path(), &def.name, &def.annotations);
        let shared = self.current_is_shared();
        let object = self.instantiate(block, path, &[], shared);
        self.made.anonymous.insert(key, object);
        object
    }

    /// Evaluates the argument at position `i` and returns its value; [`Value::Nothing`] if there is no such
    /// argument.
    pub(super) fn arg(&mut self, args: &[Arg], i: usize) -> Value {
        match args.get(i).and_then(Arg::expr) {
            Some(e) => self.eval(e),
            None => Value::Nothing,
        }
    }

    /// Evaluates the scalar argument at position `i` and returns its value; a zero of one bit if there is no
    /// such argument.
    pub(super) fn scalar_arg(&mut self, args: &[Arg], i: usize) -> Expr {
        match args.get(i).and_then(Arg::expr) {
            Some(e) => self.scalar(e),
            None => build::constant(1, 0),
        }
    }

    /// Returns the value of the argument at position `i`, which must be a constant number. Reports a value
    /// that is not constant (`what` names it in the message) and returns `None`; also returns `None` if the
    /// argument is missing or exceeds 64 bits.
    pub(super) fn constant_arg(&mut self, args: &[Arg], i: usize, what: &str) -> Option<u64> {
        let e = args.get(i).and_then(Arg::expr)?;
        let value = self.scalar(e);
        self.constant(value, e.span, what)?.to_u64()
    }

    /// Returns the `out` or `inout` argument at position `i`: the lvalue to write to, its type, and its place
    /// in the source. The lvalue of an argument that is ignored (`_`) or left out is [`Lvalue::Ignore`].
    pub(super) fn out_arg(&mut self, args: &[Arg], i: usize) -> (Lvalue, Ty, Span) {
        match args.get(i) {
            Some(Arg::Out(e) | Arg::InOut(e)) => {
                let lvalue = self.lvalue(e);
                (self.saved(lvalue), e.ty.clone(), e.span)
            }
            Some(Arg::Ignore(ty)) => (Lvalue::Ignore, ty.clone(), Span::default()),
            _ => (Lvalue::Ignore, Ty::Missing, Span::default()),
        }
    }
}

impl Code<'_> {
    /// Calls `f` for each header that an lvalue can name. If the element of a header stack is known only at
    /// run time, the statements that `f` emits for a header run only if that header is the one.
    pub(super) fn for_headers(
        &mut self,
        lvalue: &Lvalue,
        f: &mut dyn FnMut(&mut Self, ir::HeaderId),
    ) {
        match lvalue {
            Lvalue::Place(place) => {
                if let Some(id) = header_of(place) {
                    f(self, id);
                }
            }
            Lvalue::Element(items, index) => {
                self.at_index(items.len(), index.clone(), |l, i| {
                    l.for_headers(&items[i], f)
                });
            }
            _ => {}
        }
    }

    /// Emits the copies of `out` and `inout` parameters back to their arguments, in the order of `copies`.
    pub(super) fn copy_back(&mut self, copies: &[CopyOut]) {
        for (lvalue, place, ty) in copies {
            let value = self.read(place);
            self.assign(lvalue, value, ty, self.main_span);
        }
    }

    /// Emits a statement that sets `parser_error` to `error` and rejects the packet in the parser.
    pub(super) fn reject(&mut self, error: u32) {
        let error = build::constant(ir::ERROR_WIDTH, u64::from(error));
        self.emit(StmtKind::Reject { error });
    }
}

impl Unit<'_> {
    /// Returns, for each evaluated argument of a call, whether it can stand for its parameter without a copy.
    /// Constants can, and so can storage that no other argument uses and that no later argument has changed.
    /// A header field that the callee writes cannot: while the header is invalid, the callee would not read
    /// what it wrote.
    fn direct(&self, ready: &[Ready]) -> Vec<bool> {
        let slots: Vec<BTreeSet<ir::SlotId>> = ready.iter().map(|r| self.slots_of(r)).collect();
        let apart = |i: usize| (0..ready.len()).all(|j| i == j || slots[i].is_disjoint(&slots[j]));
        let written = ready.iter().any(|r| matches!(r, Ready::Lvalue(..)));
        let direct = |(i, r): (usize, &Ready)| match r {
            Ready::Value(value) => value.is_constant() || !written || apart(i),
            Ready::Lvalue(Lvalue::Place(_), Some(before)) if before.kept => false,
            Ready::Lvalue(Lvalue::Place(place), _) => apart(i) && !self.is_field(place),
            Ready::Lvalue(..) => false,
        };
        ready.iter().enumerate().map(direct).collect()
    }

    /// Returns whether a place is a field of a header or a struct that contains one. Returns false for whole
    /// headers, header unions and stacks.
    fn is_field(&self, place: &Place) -> bool {
        match place {
            Place::Scalar(slot) | Place::Varbit(slot, _) => self.headers.fields.contains(slot),
            Place::Fields(items) => items.iter().any(|item| self.is_field(item)),
            Place::Header(..) | Place::Union(_) | Place::Stack(..) => false,
        }
    }

    fn slots_of(&self, ready: &Ready) -> BTreeSet<ir::SlotId> {
        let mut slots = BTreeSet::new();
        let mut from_value = |value: &Value| {
            value.for_each_expr(&mut |e| collect(e, &mut slots));
        };
        match ready {
            Ready::Value(value) => from_value(value),
            Ready::Lvalue(lvalue, _) => {
                let value = self.read_lvalue(lvalue);
                from_value(&value);
                if let Lvalue::Place(place) = lvalue {
                    place.for_each_slot(&self.program.headers, &mut |s| {
                        slots.insert(s);
                    });
                }
                self.rivals(lvalue, &mut slots);
            }
        }
        slots
    }

    /// Adds to `slots` the slots of headers that become invalid when a header that `lvalue` names becomes
    /// valid: those of the other members of its header union.
    fn rivals(&self, lvalue: &Lvalue, slots: &mut BTreeSet<ir::SlotId>) {
        match lvalue {
            Lvalue::Place(place) => self.add_rivals(place, slots),
            Lvalue::Element(items, _) => items.iter().for_each(|item| self.rivals(item, slots)),
            Lvalue::Slice(..) | Lvalue::PlusSlice(..) | Lvalue::Ignore => {}
        }
    }
}

fn collect(expr: &Expr, slots: &mut BTreeSet<ir::SlotId>) {
    if let Expr::Slot(slot) = expr {
        slots.insert(*slot);
    }
    expr.operands().for_each(|operand| collect(operand, slots));
}
