//! The externs of v1model and core.p4, and methods that PSA's share with them, except those that compute checksums and hashes.

use std::rc::Rc;

use ir::architecture::v1model::DROP_PORT;
use ir::{BinaryOp, Bits, Block, Expr, StmtKind};
use syntax::source::Span;

use super::place::{Lvalue, Place, Value};
use super::{ExternKind, FieldListKey, Lowerer, Object, build};
use crate::errors;
use crate::externs::{self, Declared, Function, Method, Preserved};
use crate::hir::{self, Arg, Args};
use crate::types::{ExternId, Ty};

/// Positions in the standard list of errors.
pub(super) const STACK_OUT_OF_BOUNDS: u32 = 3;

impl Lowerer<'_> {
    /// Lowers a call of an extern function and returns its value. Reports a function that the architecture
    /// does not have.
    pub(super) fn extern_function(
        &mut self,
        declared: &Declared<Function>,
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
            Function::Verify => self.verify(args, span),
            // The checker has its value.
            Function::StaticAssert => {}
            Function::MarkToDrop => self.mark_to_drop(args),
            Function::Hash => self.hash(args),
            Function::VerifyChecksum { payload } => {
                self.verify_checksum(name, args, payload, span);
            }
            Function::UpdateChecksum { payload } => {
                self.update_checksum(name, args, payload, span);
            }
            Function::Random => self.random(args),
            Function::Digest => self.digest(args, span),
            Function::Clone(preserved) => self.clone_packet(name, preserved, args, span),
            Function::Resubmit(preserved) => {
                if self.in_stage(name, &[Block::Ingress], "the ingress control", span) {
                    let preserve = self.preserved(preserved, args, 0);
                    self.emit(StmtKind::Resubmit { preserve });
                }
            }
            Function::Recirculate(preserved) => {
                if self.in_stage(name, &[Block::Egress], "the egress control", span) {
                    let preserve = self.preserved(preserved, args, 0);
                    self.emit(StmtKind::Recirculate { preserve });
                }
            }
            Function::Truncate => {
                if self.in_stage(
                    name,
                    &[Block::Ingress, Block::Egress],
                    "the ingress and egress controls",
                    span,
                ) {
                    let length = self.scalar_arg(args, 0);
                    self.emit(StmtKind::Truncate { length });
                }
            }
            Function::Assert => {
                let cond = self.scalar_arg(args, 0);
                self.emit(StmtKind::Assert { cond });
            }
            Function::LogMsg => self.log(args, span),
            Function::Predicate(predicate) => return self.predicate(predicate, args),
        }
        Value::Nothing
    }

    fn verify(&mut self, args: &[Arg], span: Span) {
        if !self.block.is_parser() {
            return self.report(errors::extern_place(span, "verify", "parsers"));
        }
        let cond = self.scalar_arg(args, 0);
        let error = self.scalar_arg(args, 1);
        let reject = self.capture(|l| l.emit(StmtKind::Reject { error }));
        self.emit_if(build::not(cond), reject, Vec::new());
    }

    /// Returns whether the current block is one of `blocks`, in which the extern `name` can be used.
    /// Reports a use in any other block; `place` describes the allowed blocks in the message.
    pub(super) fn in_stage(
        &mut self,
        name: &str,
        blocks: &[Block],
        place: &str,
        span: Span,
    ) -> bool {
        let ok = blocks.contains(&self.block);
        if !ok {
            self.report(errors::extern_place(span, name, place));
        }
        ok
    }

    fn mark_to_drop(&mut self, args: &[Arg]) {
        let Some(standard) = self.program.v1model().copied() else {
            return;
        };
        let (mut egress_spec, mut mcast_grp) = (standard.egress_spec, standard.mcast_grp);
        if let Some(Arg::InOut(e)) = args.first()
            && let (Lvalue::Place(place), Ty::Struct(id)) = (self.lvalue(e), &e.ty)
        {
            let def = self.module.types.structure(*id);
            let slot = |name: &str| match place.field(def.field(name)?)? {
                Place::Scalar(slot) => Some(*slot),
                _ => None,
            };
            egress_spec = slot("egress_spec").unwrap_or(egress_spec);
            mcast_grp = slot("mcast_grp").unwrap_or(mcast_grp);
        }
        self.emit(StmtKind::Assign {
            dst: egress_spec,
            value: build::constant(9, DROP_PORT.into()),
        });
        self.emit(StmtKind::Assign {
            dst: mcast_grp,
            value: build::constant(16, 0),
        });
    }

    fn random(&mut self, args: &[Arg]) {
        let target = self.out_arg(args, 0);
        let low = self.scalar_arg(args, 1);
        let high = self.scalar_arg(args, 2);
        let Some(width) = self.module.types.scalar_width(&target.1) else {
            return;
        };
        if width > 64 {
            return self.report(errors::unsupported(
                target.2,
                "a random value of more than 64 bits",
            ));
        }
        let dst = self.new_slot("$random", width);
        self.emit(StmtKind::Random { dst, low, high });
        self.store(&target, Value::Bits(Expr::Slot(dst)));
    }

    fn digest(&mut self, args: &[Arg], span: Span) {
        if !self.in_stage(
            "digest",
            &[Block::Ingress, Block::Egress],
            "the ingress and egress controls",
            span,
        ) {
            return;
        }
        let Some(Arg::In(data)) = args.get(1) else {
            return;
        };
        let value = self.eval(data);
        if has_varbit(&value) {
            return self.report(errors::varbit_digest(data.span));
        }
        let mut values = Vec::new();
        value.leaves(&mut values);
        if values.is_empty() {
            return self.report(errors::unsupported(data.span, "a digest without members"));
        }
        let widths: Vec<u32> = values
            .iter()
            .map(|e| e.width(&self.program.slots))
            .collect();
        let named = match &data.ty {
            Ty::Struct(id) | Ty::Header(id) => {
                let def = self.module.types.structure(*id);
                Some(super::control_plane_name("", &def.name, &def.annotations))
            }
            _ => None,
        };
        let known = self
            .info
            .digests
            .iter()
            .find(|(_, ty, _)| *ty == data.ty && named.is_some());
        let digest = match known {
            Some((id, ..)) => *id,
            None => {
                let id = ir::DigestId(self.program.digests.len() as u32);
                let name = named.unwrap_or_else(|| format!("digest_{}", id.0));
                self.program.digests.push(ir::Digest {
                    name,
                    id: 0,
                    widths,
                });
                self.info.digests.push((id, data.ty.clone(), span));
                id
            }
        };
        self.emit(StmtKind::Digest { digest, values });
    }

    fn clone_packet(&mut self, name: &str, preserved: Preserved, args: &[Arg], span: Span) {
        if !self.in_stage(
            name,
            &[Block::Ingress, Block::Egress],
            "the ingress and egress controls",
            span,
        ) {
            return;
        }
        let Some(kind) = self.constant_arg(args, 0, "the kind of a clone") else {
            return;
        };
        let session = self.scalar_arg(args, 1);
        let preserve = self.preserved(preserved, args, 2);
        let (kind, shown, block) = match kind {
            0 => (ir::CloneKind::IngressToEgress, "I2E", Block::Ingress),
            _ => (ir::CloneKind::EgressToEgress, "E2E", Block::Egress),
        };
        if block != self.block {
            return self.report(errors::clone_kind(span, shown, self.block.name()));
        }
        self.emit(StmtKind::Clone {
            kind,
            session,
            preserve,
        });
    }

    /// Returns the list of the fields that a clone, resubmit or recirculation preserves. The argument at
    /// position `i` gives either the index of the list or the fields themselves. `None` if no fields are
    /// preserved.
    fn preserved(
        &mut self,
        preserved: Preserved,
        args: &[Arg],
        i: usize,
    ) -> Option<ir::FieldListId> {
        match preserved {
            Preserved::Nothing => return None,
            Preserved::FieldList => {
                let index = self.constant_arg(args, i, "the index of a field list")?;
                return Some(self.annotated_list(index as u32));
            }
            Preserved::Values => {}
        }
        let data = args.get(i).and_then(Arg::expr)?;
        let mut slots = Vec::new();
        self.listed_slots(data, &mut slots);
        slots.dedup();
        if slots.is_empty() {
            return None;
        }
        let mut unique = Vec::new();
        for slot in slots {
            if !unique.contains(&slot) {
                unique.push(slot);
            }
        }
        Some(self.field_list(FieldListKey::Slots(unique.clone()), unique))
    }

    fn field_list(&mut self, key: FieldListKey, slots: Vec<ir::SlotId>) -> ir::FieldListId {
        if let Some(id) = self.field_lists.get(&key) {
            return *id;
        }
        let id = ir::FieldListId(self.program.field_lists.len() as u32);
        self.program.field_lists.push(ir::FieldList { slots });
        self.field_lists.insert(key, id);
        id
    }

    /// Returns the list of those fields of the user's metadata that have the annotation `@field_list(index)`.
    fn annotated_list(&mut self, index: u32) -> ir::FieldListId {
        let mut slots = Vec::new();
        if let Some((place, ty)) = self.user_metadata.clone() {
            self.annotated_slots(&place, &ty, index, &mut slots);
        }
        self.field_list(FieldListKey::Annotated(index), slots)
    }

    fn annotated_slots(&self, place: &Place, ty: &Ty, index: u32, out: &mut Vec<ir::SlotId>) {
        let Ty::Struct(id) = ty else { return };
        for (i, field) in self.module.types.structure(*id).fields.iter().enumerate() {
            let Some(member) = place.field(i) else {
                continue;
            };
            match field.field_lists.contains(&index) {
                true => member.for_each_slot(&self.program.headers, &mut |s| out.push(s)),
                false => self.annotated_slots(member, &field.ty, index, out),
            }
        }
    }

    /// Appends to `out` the slots of `data`, the fields that the older form of a clone, resubmit or
    /// recirculation preserves. Reports an expression that is no variable.
    fn listed_slots(&mut self, data: &hir::Expr, out: &mut Vec<ir::SlotId>) {
        match &data.kind {
            hir::ExprKind::Aggregate(items) => items.iter().for_each(|e| self.listed_slots(e, out)),
            kind if data.is_literal() => {
                let _ = kind;
            }
            _ => match self.lvalue(data) {
                Lvalue::Place(place) => {
                    place.for_each_slot(&self.program.headers, &mut |s| out.push(s))
                }
                _ => self.report(errors::field_list_entry(data.span)),
            },
        }
    }

    fn log(&mut self, args: &[Arg], span: Span) {
        let text = match self.arg(args, 0) {
            Value::Str(text) => text.to_string(),
            _ => String::new(),
        };
        let data = match args.len() {
            1 => Vec::new(),
            _ => match self.arg(args, 1) {
                Value::Fields(items) => items,
                other => vec![other],
            },
        };
        let mut pieces = text.split("{}");
        let holes = text.matches("{}").count();
        if holes != data.len() {
            return self.report(errors::log_values(span, holes, data.len()));
        }
        let mut format = pieces.next().unwrap_or_default().to_string();
        let mut values = Vec::new();
        for (value, piece) in data.into_iter().zip(pieces) {
            // A struct or header stands as a list of what is in it.
            let before = values.len();
            match &value {
                Value::Int(v) => values.push(Expr::Const(crate::fold::to_bits(v, 64))),
                value => value.leaves(&mut values),
            }
            let shown = vec!["{}"; values.len() - before].join(", ");
            match value {
                Value::Bits(_) | Value::Int(_) => format.push_str(&shown),
                _ => format.push_str(&format!("({shown})")),
            }
            format.push_str(piece);
        }
        self.emit(StmtKind::Log { format, values });
    }

    /// Lowers a call of a method of an extern object and returns its value. Reports a method that the
    /// architecture does not have.
    pub(super) fn extern_method(
        &mut self,
        object: &hir::Expr,
        external: ExternId,
        method: &Declared<Method>,
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
            _ => match object {
                Object::Psa(object) => return self.psa_method(&object, meaning, args, ty, span),
                Object::Extern(i) => return self.stateful(i, meaning, args, span),
                _ => {}
            },
        }
        Value::Nothing
    }

    /// Reports the use of an extern, or of an extern's method, that the architecture does not have.
    pub(super) fn report_own_extern(&mut self, name: &str, shown: &str, declared: Span, at: Span) {
        let description = self.program.architecture.description();
        let advice = externs::advice(name, description);
        self.report(errors::own_extern(at, shown, declared, &advice));
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
            (ExternKind::Meter(..), Method::MeterExecute)
            | (ExternKind::DirectMeter(_), Method::DirectMeterExecute) => {
                return self.psa_meter(&kind, args, span);
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

    /// Emits the read of the cell at `index` of a register, and returns its value.
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

    /// Evaluates the index at position `i` in 32 bits. A wider index with a value beyond 32 bits becomes
    /// 2^32 - 1, which is out of range as well.
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
            for other in l.siblings.get(&header).cloned().unwrap_or_default() {
                l.emit(StmtKind::SetInvalid(other));
            }
        });
        if let Some(stack) = next_of(header)
            && let Lvalue::Place(Place::Stack(_, next)) = self.lvalue(stack)
        {
            let one = build::constant(32, 1);
            let next_value = Expr::Slot(next);
            let value = build::binary(BinaryOp::Add, next_value, one, &self.program.slots);
            self.emit(StmtKind::Assign { dst: next, value });
        }
    }

    /// Emits `extract<T>(_)`, which advances the parser by the width of the type in bits.
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

    /// Lowers `packet.emit(data)`, which appends every valid header in `data` to the packet, in order.
    /// Reports a value that contains no headers.
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

    /// Warns of each header in `place`, which the program emits, whose width is no multiple of 8 bits.
    fn warn_of_padding(&mut self, place: &Place, span: Span) {
        match place {
            Place::Header(id, _) if self.padded.contains(id) => {
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
