//! Calls of externs: those of the core library, and those that have the same meaning in all architectures. Others are lowered in the rooms
//! of the architectures.

use std::rc::Rc;

use ir::{BinaryOp, Bits, Expr, StmtKind};
use syntax::source::Span;

use super::place::{Lvalue, Place, Value};
use super::room::advice;
use super::{Body, Code, ExternKind, Object, ObjectId, Unit, build};
use crate::errors;
use crate::hir::{self, Arg, Args};
use crate::meaning::{Function, Meaning, Method};
use crate::types::{DeclaredFunction, DeclaredMethod, ExternId, Ty};

/// The error StackOutOfBounds, as a position in core.p4's list of errors.
pub(super) const STACK_OUT_OF_BOUNDS: u32 = 3;

/// A call of an extern function.
pub(crate) struct Call<'a> {
    /// Its name.
    pub name: &'a str,
    /// The arguments, evaluated already if the order matters.
    pub args: &'a [Arg],
    /// Its place in the source.
    pub span: Span,
}

/// A call of a method of an extern object.
pub(crate) struct MethodCall<'a> {
    /// The arguments, evaluated already if the order matters.
    pub args: &'a [Arg],
    /// The type of the value that the call returns.
    pub ty: &'a Ty,
    /// Its place in the source.
    pub span: Span,
}

impl Body<'_, '_> {
    /// Lowers a call of an extern function and returns its value. Reports a function that the program
    /// declares itself and that therefore has no meaning.
    pub(super) fn extern_function(
        &mut self,
        declared: &DeclaredFunction,
        args: &Args,
        span: Span,
    ) -> Value {
        let args = &self.in_turn(args)[..];
        let name = &*declared.sig.name;
        let Some(meaning) = declared.meaning else {
            self.report_own_extern(name, name, declared.sig.span, span);
            return Value::Nothing;
        };
        match meaning {
            Meaning::Common(Function::Verify) => self.verify(args, span),
            // The checker has its value.
            Meaning::Common(Function::StaticAssert) => {}
            Meaning::Common(Function::Assert) => {
                let cond = self.scalar_arg(args, 0);
                self.emit(StmtKind::Assert { cond });
            }
            Meaning::Own(row) => {
                let (_, meaning) = &self.externs().functions[row];
                let lower = meaning.own().expect("the row's own");
                return lower(self, &Call { name, args, span });
            }
        }
        Value::Nothing
    }

    fn verify(&mut self, args: &[Arg], span: Span) {
        if !self.stage().is_parser() {
            return self.report(errors::extern_place(span, "verify", "parsers"));
        }
        let cond = self.scalar_arg(args, 0);
        let error = self.scalar_arg(args, 1);
        let reject = self.capture(|l| l.emit(StmtKind::Reject { error }));
        self.emit_if(build::not(cond), reject, Vec::new());
    }

    /// Returns whether the current block is one of `blocks`, in which the extern `name` can be used. Reports
    /// a use in any other block; `place` describes the allowed blocks in the message.
    pub(super) fn in_stage(
        &mut self,
        name: &str,
        blocks: &[ir::BlockId],
        place: &str,
        span: Span,
    ) -> bool {
        let ok = blocks.contains(&self.block);
        if !ok {
            self.report(errors::extern_place(span, name, place));
        }
        ok
    }

    /// Lowers a call of a method of an extern object and returns its value. Reports a method that the program
    /// declares itself and that therefore has no meaning.
    pub(super) fn extern_method(
        &mut self,
        object: &hir::Expr,
        external: ExternId,
        method: &DeclaredMethod,
        args: &Args,
        ty: &Ty,
        span: Span,
    ) -> Value {
        let Value::Object(id) = self.eval(object) else {
            return Value::Nothing;
        };
        let object = self.object(id);
        if matches!(object, Object::Refused) {
            return Value::Nothing;
        }
        let Some(meaning) = method.meaning else {
            let def = self.module.types.external(external);
            let shown = format!("{}.{}", def.name, method.sig.name);
            self.report_own_extern(&def.name, &shown, method.sig.span, span);
            return Value::Nothing;
        };
        let evaluated;
        let args = match object {
            // `extract` evaluates its header as a place in the packet.
            Object::PacketIn | Object::PacketOut => &args[..],
            _ => {
                evaluated = self.in_turn(args);
                &evaluated[..]
            }
        };
        let meaning = match meaning {
            Meaning::Common(meaning) => meaning,
            Meaning::Own((row, method)) => {
                let (_, meaning) = &self.externs().objects[row].methods[method];
                let lower = meaning.own().expect("the row's own");
                return lower(self, &object, &MethodCall { args, ty, span });
            }
        };
        match meaning {
            Method::Extract => self.extract(args),
            Method::Lookahead => return self.lookahead(ty, span),
            Method::Advance => {
                let bits = self.scalar_arg(args, 0);
                self.emit(StmtKind::Advance { bits });
            }
            Method::PacketLength => return Value::Bits(Expr::PacketLength),
            Method::Emit => {
                if let Some(Arg::In(e)) = args.first() {
                    self.emit_header(e);
                }
            }
            Method::Checksum16Get => return self.checksum16(args),
            _ => {
                if let Object::Extern(i) = object {
                    return self.stateful(i, meaning, args, span);
                }
            }
        }
        Value::Nothing
    }

    fn stateful(&mut self, i: usize, method: Method, args: &[Arg], span: Span) -> Value {
        let kind = self.info.externs[i].kind.clone();
        match (&kind, method) {
            (ExternKind::Register(register, ty, _), Method::RegisterRead) => {
                let index = self.index_arg(args, 0);
                return self.register_read(*register, ty, index);
            }
            (ExternKind::Register(register, ty, _), Method::RegisterReadTo) => {
                let target = self.out_arg(args, 0);
                let index = self.index_arg(args, 1);
                let value = self.register_read(*register, ty, index);
                self.store(&target, value);
            }
            (ExternKind::Register(register, ..), Method::RegisterWrite) => {
                let index = self.index_arg(args, 0);
                let value = self.arg(args, 1);
                if let Some(value) = self.pack(&value) {
                    let register = *register;
                    self.emit(StmtKind::RegisterWrite {
                        register,
                        index,
                        value,
                    });
                }
            }
            (ExternKind::Counter(counter, _), Method::Count) => {
                let (counter, index) = (*counter, self.index_arg(args, 0));
                self.emit(StmtKind::Count { counter, index });
            }
            (ExternKind::Meter(meter, _), Method::MeterExecuteTo) => {
                let index = self.index_arg(args, 0);
                let target = self.out_arg(args, 1);
                let width = self.module.types.scalar_width(&target.1).unwrap_or(2);
                let dst = self.new_slot("$colour", width.max(2));
                let meter = *meter;
                self.emit(StmtKind::MeterExecute { meter, index, dst });
                let value = build::resize(Expr::Slot(dst), width, &self.program.slots);
                self.store(&target, Value::Bits(value));
            }
            // The table counts by itself on every hit.
            (ExternKind::DirectCounter(_), Method::CountDirect) => {}
            (ExternKind::DirectMeter(meter), Method::DirectMeterReadTo) => {
                self.direct_meter_read(*meter, args, span);
            }
            // The tables of externs pair no others.
            _ => {}
        }
        Value::Nothing
    }

    /// Evaluates the argument at position `i`, the index of a cell, and returns it in 32 bits. A wider index
    /// whose value exceeds 32 bits becomes 2^32 - 1, which is out of range as well.
    pub(super) fn index_arg(&mut self, args: &[Arg], i: usize) -> Expr {
        let index = self.scalar_arg(args, i);
        let slots = &self.program.slots;
        let width = index.width(slots);
        if width <= 32 {
            return build::resize(index, 32, slots);
        }
        let high = build::slice(index.clone(), width - 1, 32, slots);
        let zero = Expr::Const(Bits::zero(width - 32));
        let fits = build::binary(BinaryOp::Eq, high, zero, slots);
        build::mux(
            fits,
            build::resize(index, 32, slots),
            Expr::Const(Bits::ones(32)),
        )
    }

    fn extract(&mut self, args: &[Arg]) {
        let header = match args.first() {
            Some(Arg::Out(e)) => e,
            Some(Arg::Ignore(ty)) => return self.skip(ty),
            _ => return,
        };
        if !matches!(header.ty, Ty::Header(_)) {
            return;
        }
        let mut lvalue = self.lvalue(header);
        if args
            .get(1)
            .and_then(Arg::expr)
            .is_some_and(hir::Expr::has_effects)
        {
            lvalue = self.saved(lvalue);
        }
        let length = (args.len() == 2).then(|| self.scalar_arg(args, 1));
        self.for_headers(&lvalue, &mut |l, header| {
            // A header that is not whole bytes has an empty varbit that the program does not know of.
            let fields = &l.program.headers[header.index()].fields;
            let has_varbit = fields.iter().any(|f| f.varbit_length.is_some());
            let hidden = (has_varbit && length.is_none()).then(|| build::constant(32, 0));
            l.emit(StmtKind::Extract {
                header,
                varbit_length: length.clone().or(hidden),
            });
            for other in l.headers.siblings.get(&header).cloned().unwrap_or_default() {
                l.emit(StmtKind::SetInvalid(other));
            }
        });
        if let Some(stack) = next_of(header)
            && let Lvalue::Place(Place::Stack(_, next)) = self.lvalue(stack)
        {
            let one = build::constant(32, 1);
            let next_value = Expr::Slot(next);
            let value = build::binary(BinaryOp::Add, next_value, one, &self.program.slots);
            self.set(next, value);
        }
    }

    /// Lowers `packet.emit(data)`, which appends every valid header in `data` to the packet, in order.
    /// Reports data that is not made of headers.
    fn emit_header(&mut self, data: &hir::Expr) {
        match self.lvalue(data) {
            Lvalue::Place(place) => {
                self.warn_of_padding(&place, data.span);
                if !self.emit_place(&place) {
                    let shown = self.module.types.show(&data.ty);
                    self.report(errors::emit_value(data.span, &shown));
                }
            }
            Lvalue::Element(items, index) => {
                self.at_index(items.len(), index, |l, i| {
                    if let Lvalue::Place(place) = &items[i] {
                        l.emit_place(place);
                    }
                });
            }
            _ => {
                // A header value: stored first.
                let value = self.eval(data);
                if !matches!(
                    data.ty,
                    Ty::Header(_) | Ty::Struct(_) | Ty::Stack(..) | Ty::Union(_)
                ) {
                    let shown = self.module.types.show(&data.ty);
                    return self.report(errors::emit_value(data.span, &shown));
                }
                let place = self.alloc(&data.ty, "$emit", data.span);
                self.assign_place(&place, value);
                self.emit_place(&place);
            }
        }
    }
}

impl Code<'_> {
    /// Emits the reset of the state that an extern instance keeps for one packet. Called wherever the block
    /// that contains the instance is applied.
    pub(super) fn reset_instance(&mut self, object: ObjectId) {
        if let Object::Own(own) = self.object(object)
            && let Some(slot) = own.reset()
        {
            let width = self.program.slots[slot.index()].width;
            let value = build::constant(width, 0);
            self.set(slot, value);
        }
    }

    /// Emits the read of the cell at `index` of a register, and returns its value as a value of type `ty`.
    fn register_read(&mut self, register: ir::RegisterId, ty: &Ty, index: Expr) -> Value {
        let width = self.program.registers[register.index()].width;
        let dst = self.new_slot("$read", width);
        self.emit(StmtKind::RegisterRead {
            dst,
            register,
            index,
        });
        self.unpack(&Expr::Slot(dst), ty)
    }

    /// Emits the advance of the parser by the width of a type, for `extract<T>(_)`.
    fn skip(&mut self, ty: &Ty) {
        if let Some(width) = self.module.types.packed_width(ty) {
            self.emit(StmtKind::Advance {
                bits: build::constant(32, u64::from(width)),
            });
        }
    }

    fn lookahead(&mut self, ty: &Ty, span: Span) -> Value {
        let Some(width) = self.module.types.packed_width(ty).filter(|w| *w > 0) else {
            return Value::Nothing;
        };
        if width > ir::Bits::MAX_WIDTH {
            self.report(errors::bad_width(span, &width.to_string()));
            return Value::Nothing;
        }
        let dst = self.new_slot("$lookahead", width);
        self.emit(StmtKind::Lookahead { dst, offset: 0 });
        self.unpack(&Expr::Slot(dst), ty)
    }

    fn emit_place(&mut self, place: &Place) -> bool {
        match place {
            Place::Header(id, _) => {
                self.emit(StmtKind::Emit(*id));
                true
            }
            Place::Fields(items) | Place::Union(items) | Place::Stack(items, _) => {
                let items: Rc<[Place]> = items.clone();
                items.iter().all(|p| self.emit_place(p))
            }
            Place::Scalar(_) | Place::Varbit(..) => false,
        }
    }
}

impl Unit<'_> {
    /// Reports the use of an extern, or of an extern's method, that the program declares itself and that the
    /// architecture does not have. `shown` is how the message names it.
    pub(super) fn report_own_extern(&mut self, name: &str, shown: &str, declared: Span, at: Span) {
        let description = self.program.architecture.description();
        let advice = advice(name, description);
        self.report(errors::own_extern(at, shown, declared, &advice));
    }

    /// Warns of each header in `place`, which the program emits, whose width is no multiple of 8 bits.
    fn warn_of_padding(&mut self, place: &Place, span: Span) {
        match place {
            Place::Header(id, _) if self.headers.padded.contains(id) => {
                let name = self.program.headers[id.index()].name.clone();
                self.report(errors::emit_not_bytes(span, &name));
            }
            Place::Fields(items) | Place::Union(items) | Place::Stack(items, _) => {
                let items: Rc<[Place]> = items.clone();
                items.iter().for_each(|p| self.warn_of_padding(p, span));
            }
            _ => {}
        }
    }
}

/// Returns the stack `s` if the expression is `s.next` or a member of `s.next`, else `None`.
fn next_of(header: &hir::Expr) -> Option<&hir::Expr> {
    match &header.kind {
        hir::ExprKind::Next(stack) => Some(stack),
        hir::ExprKind::Field(base, _) => next_of(base),
        _ => None,
    }
}

/// Returns whether a value contains a varbit, at any depth.
pub(super) fn has_varbit(value: &Value) -> bool {
    match value {
        Value::Varbit(..) => true,
        Value::Fields(items)
        | Value::Header(_, items)
        | Value::Union(items)
        | Value::Stack(items, _) => items.iter().any(has_varbit),
        _ => false,
    }
}
