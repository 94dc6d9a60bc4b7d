//! The compiler's part of v1model: its externs, in all versions of its include file, and the lowering of
//! those that only it has.

use ir::architecture::v1model::{AT, DROP_PORT, EGRESS, INGRESS, StandardMetadata};
use ir::{BinaryOp, Expr, HashAlgorithm, StmtKind};
use syntax::source::Span;

use super::externs::Call;
use super::place::{Lvalue, Place, Value};
use super::room::{Externs, LowerFunction, ObjectRow};
use super::{Body, FieldListKey, Room, Unit, build, control_plane_name};
use crate::errors;
use crate::hir::{self, Arg};
use crate::meaning::Meaning::{Common, Own};
use crate::meaning::{Algorithm, Function, Meaning, Method, Object, Property};
use crate::types::Ty;

/// The externs of v1model, with their meanings. The custom CRCs have the parameters that the reference target
/// starts with, which are those of the standard ones, and nothing changes them.
static EXTERNS: Externs = Externs {
    functions: &[
        ("void mark_to_drop(inout standard_metadata_t)", MARK_TO_DROP),
        ("void mark_to_drop()", MARK_TO_DROP),
        ("void hash(out _, in HashAlgorithm, in _, in _, in _)", HASH),
        ("void random(out _, in _, in _)", RANDOM),
        ("void digest(in bit<32>, in _)", DIGEST),
        (
            "void verify_checksum(in bool, in _, in _, HashAlgorithm)",
            VERIFY,
        ),
        // The declaration until 2018.
        (
            "void verify_checksum(in bool, in _, inout _, HashAlgorithm)",
            VERIFY,
        ),
        (
            "void verify_checksum_with_payload(in bool, in _, in _, HashAlgorithm)",
            VERIFY_PAYLOAD,
        ),
        (
            "void verify_checksum_with_payload(in bool, in _, inout _, HashAlgorithm)",
            VERIFY_PAYLOAD,
        ),
        (
            "void update_checksum(in bool, in _, inout _, HashAlgorithm)",
            UPDATE,
        ),
        (
            "void update_checksum_with_payload(in bool, in _, inout _, HashAlgorithm)",
            UPDATE_PAYLOAD,
        ),
        ("void clone(in CloneType, in bit<32>)", CLONE_NOTHING),
        ("void clone3(in CloneType, in bit<32>, in _)", CLONE_VALUES),
        (
            "void clone_preserving_field_list(in CloneType, in bit<32>, bit<8>)",
            CLONE_FIELD_LIST,
        ),
        ("void resubmit(in _)", RESUBMIT_VALUES),
        (
            "void resubmit_preserving_field_list(bit<8>)",
            RESUBMIT_FIELD_LIST,
        ),
        ("void recirculate(in _)", RECIRCULATE_VALUES),
        (
            "void recirculate_preserving_field_list(bit<8>)",
            RECIRCULATE_FIELD_LIST,
        ),
        ("void truncate(in bit<32>)", TRUNCATE),
        ("void assert(in bool)", Common(Function::Assert)),
        ("void assume(in bool)", Common(Function::Assert)),
        ("void log_msg(string)", LOG),
        ("void log_msg(string, in _)", LOG),
    ],
    objects: &[
        ObjectRow {
            name: "register",
            type_params: &[1, 2],
            object: Common(Object::Register),
            constructors: &["(bit<32>)"],
            methods: &[
                ("void read(out _, in _)", Common(Method::RegisterReadTo)),
                ("void write(in _, in _)", Common(Method::RegisterWrite)),
            ],
        },
        ObjectRow {
            name: "counter",
            type_params: &[0, 1],
            object: Common(Object::Counter),
            constructors: &["(bit<32>, CounterType)"],
            methods: &[("void count(in _)", Common(Method::Count))],
        },
        ObjectRow {
            name: "direct_counter",
            type_params: &[0],
            object: Common(Object::DirectCounter),
            constructors: &["(CounterType)"],
            methods: &[("void count()", Common(Method::CountDirect))],
        },
        ObjectRow {
            name: "meter",
            type_params: &[0, 1],
            object: Common(Object::Meter),
            constructors: &["(bit<32>, MeterType)"],
            methods: &[(
                "void execute_meter(in _, out _)",
                Common(Method::MeterExecuteTo),
            )],
        },
        ObjectRow {
            name: "direct_meter",
            type_params: &[1],
            object: Common(Object::DirectMeter),
            constructors: &["(MeterType)"],
            methods: &[("void read(out _)", Common(Method::DirectMeterReadTo))],
        },
        ObjectRow {
            name: "action_profile",
            type_params: &[0],
            object: Common(Object::ActionProfile),
            constructors: &["(bit<32>)"],
            methods: &[],
        },
        ObjectRow {
            name: "action_selector",
            type_params: &[0],
            object: Common(Object::ActionSelector),
            constructors: &["(HashAlgorithm, bit<32>, bit<32>)"],
            methods: &[],
        },
        ObjectRow {
            name: "Checksum16",
            type_params: &[0],
            object: Common(Object::Checksum16),
            constructors: &["()"],
            methods: &[("bit<16> get(in _)", Common(Method::Checksum16Get))],
        },
    ],
    properties: &[
        ("counters", Property::Counter),
        ("meters", Property::Meter),
        ("implementation", Property::Implementation),
        ("support_timeout", Property::Timeout),
        ("supportTimeout", Property::Timeout),
    ],
    algorithms: &[
        ("crc32", Algorithm::Of(HashAlgorithm::Crc32)),
        ("crc32_custom", Algorithm::Of(HashAlgorithm::Crc32)),
        ("crc16", Algorithm::Of(HashAlgorithm::Crc16)),
        ("crc16_custom", Algorithm::Of(HashAlgorithm::Crc16)),
        ("random", Algorithm::Random),
        ("identity", Algorithm::Of(HashAlgorithm::Identity)),
        ("csum16", Algorithm::Of(HashAlgorithm::Csum16)),
        ("xor16", Algorithm::Of(HashAlgorithm::Xor16)),
    ],
    enums: &[
        ("CounterType", &["packets", "bytes", "packets_and_bytes"]),
        ("MeterType", &["packets", "bytes"]),
        ("CloneType", &["I2E", "E2E"]),
    ],
};

/// The compiler's part of v1model.
pub(super) static ROOM: Room = Room {
    externs: &EXTERNS,
    include_files: &["v1model.p4"],
    text: include_str!("../../../../p4include/v1model.p4"),
};

/// Makes the meaning of a function that returns no value.
macro_rules! statement {
    ($lowerer:ident, $call:ident => $lower:expr) => {
        Own(|$lowerer, $call| {
            $lower;
            Value::Nothing
        })
    };
}

type Lowered = Meaning<Function, LowerFunction>;

const MARK_TO_DROP: Lowered = statement!(l, call => l.mark_to_drop(call.args));
const HASH: Lowered = statement!(l, call => l.hash(call.args));
const RANDOM: Lowered = statement!(l, call => l.random(call.args));
const DIGEST: Lowered = statement!(l, call => l.digest(call.args, call.span));
const VERIFY: Lowered = statement!(l, call => l.verify_checksum(call, false));
const VERIFY_PAYLOAD: Lowered = statement!(l, call => l.verify_checksum(call, true));
const UPDATE: Lowered = statement!(l, call => l.update_checksum(call, false));
const UPDATE_PAYLOAD: Lowered = statement!(l, call => l.update_checksum(call, true));
const CLONE_NOTHING: Lowered = statement!(l, call => l.clone_packet(call, Preserved::Nothing));
const CLONE_VALUES: Lowered = statement!(l, call => l.clone_packet(call, Preserved::Values));
const CLONE_FIELD_LIST: Lowered = statement!(l, call => l.clone_packet(call, Preserved::FieldList));
const RESUBMIT_VALUES: Lowered = statement!(l, call => l.resubmit(call, Preserved::Values));
const RESUBMIT_FIELD_LIST: Lowered = statement!(l, call => l.resubmit(call, Preserved::FieldList));
const RECIRCULATE_VALUES: Lowered = statement!(l, call => l.recirculate(call, Preserved::Values));
const RECIRCULATE_FIELD_LIST: Lowered =
    statement!(l, call => l.recirculate(call, Preserved::FieldList));
const TRUNCATE: Lowered = statement!(l, call => l.truncate(call));
const LOG: Lowered = statement!(l, call => l.log(call.args, call.span));

/// How a clone, resubmission or recirculation says which metadata the copy of the packet keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Preserved {
    /// It keeps none.
    Nothing,
    /// It keeps the values in an argument.
    Values,
    /// It keeps the fields whose `@field_list` has the number in an argument.
    FieldList,
}

impl Body<'_, '_> {
    fn mark_to_drop(&mut self, args: &[Arg]) {
        let standard = StandardMetadata::of(&self.program.architecture);
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
        self.set(egress_spec, build::constant(9, DROP_PORT.into()));
        self.set(mcast_grp, build::constant(16, 0));
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
        if !self.in_controls("digest", span) {
            return;
        }
        let Some(Arg::In(data)) = args.get(1) else {
            return;
        };
        let value = self.eval(data);
        let Some(values) = self.digest_values(&value, data.span) else {
            return;
        };
        let named = match &data.ty {
            Ty::Struct(id) | Ty::Header(id) => {
                let def = self.module.types.structure(*id);
                Some(control_plane_name("", &def.name, &def.annotations))
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
                let number = self.program.digests.len();
                let name = named.unwrap_or_else(|| format!("digest_{number}"));
                self.new_digest(name, &values, &data.ty, span)
            }
        };
        self.emit(StmtKind::Digest { digest, values });
    }

    fn clone_packet(&mut self, call: &Call<'_>, preserved: Preserved) {
        let &Call { name, args, span } = call;
        if !self.in_controls(name, span) {
            return;
        }
        let Some(kind) = self.constant_arg(args, 0, "the kind of a clone") else {
            return;
        };
        let session = self.scalar_arg(args, 1);
        let preserve = self.preserved(preserved, args, 2);
        let (kind, shown, block) = match kind {
            0 => (ir::CloneKind::IngressToEgress, "I2E", INGRESS),
            _ => (ir::CloneKind::EgressToEgress, "E2E", EGRESS),
        };
        if block != self.block {
            let name = self.stage().name;
            return self.report(errors::clone_kind(span, shown, name));
        }
        self.emit(StmtKind::Clone {
            kind,
            session,
            preserve,
        });
    }

    /// Returns whether the current block is the ingress or egress control, in which the extern `name` can be used.
    /// Reports a use in any other block.
    fn in_controls(&mut self, name: &str, span: Span) -> bool {
        let place = "the ingress and egress controls";
        self.in_stage(name, &[INGRESS, EGRESS], place, span)
    }

    fn resubmit(&mut self, call: &Call<'_>, preserved: Preserved) {
        if self.in_stage(call.name, &[INGRESS], "the ingress control", call.span) {
            let preserve = self.preserved(preserved, call.args, 0);
            self.emit(StmtKind::Resubmit { preserve });
        }
    }

    fn recirculate(&mut self, call: &Call<'_>, preserved: Preserved) {
        if self.in_stage(call.name, &[EGRESS], "the egress control", call.span) {
            let preserve = self.preserved(preserved, call.args, 0);
            self.emit(StmtKind::Recirculate { preserve });
        }
    }

    fn truncate(&mut self, call: &Call<'_>) {
        if self.in_controls(call.name, call.span) {
            let length = self.scalar_arg(call.args, 0);
            self.emit(StmtKind::Truncate { length });
        }
    }

    /// Returns the list of the fields that a clone, resubmission or recirculation preserves; `None` if there
    /// are none. `preserved` says whether the argument at position `i` gives the index of the list, or the
    /// fields themselves, or whether nothing is preserved.
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

    /// Appends to `out` the slots of the variables in `data`, the argument in which the older form of a
    /// clone, resubmission or recirculation lists what it preserves. Reports an expression that is no
    /// variable.
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
                value => values.extend(value.leaves()),
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

    /// Lowers `hash(result, algorithm, base, data, max)`. The result is `base + hash % max`, or `base` if
    /// `max` is zero.
    fn hash(&mut self, args: &[Arg]) {
        let target = self.out_arg(args, 0);
        let Some(algorithm) = self.algorithm(args, 1) else {
            return;
        };
        let base = self.scalar_arg(args, 2);
        let Some(data) = self.data(args, 3) else {
            return;
        };
        let max = self.scalar_arg(args, 4);
        let Some(width) = self.module.types.scalar_width(&target.1) else {
            return;
        };
        let value = self.hash_within(algorithm, base, data, max, width);
        self.store(&target, Value::Bits(value));
    }

    /// Lowers `verify_checksum(condition, data, checksum, algorithm)`, which sets `checksum_error` if the
    /// condition holds and the given checksum, unless it is a field of an invalid header, differs from the
    /// computed one. If `payload` is true, the packet's payload is part of the data.
    fn verify_checksum(&mut self, call: &Call<'_>, payload: bool) {
        let &Call { name, args, span } = call;
        if self.stage().is_parser() {
            return self.report(errors::extern_place(span, name, "controls"));
        }
        let cond = self.scalar_arg(args, 0);
        let error = (self.program.architecture).slot(AT.checksum_error);
        let body = self.capture(|l| {
            let Some(computed) = l.checksum(args, payload) else {
                return;
            };
            let given = l.scalar_arg(args, 2);
            // As in the reference target, a checksum in a header that is not there is not wrong.
            let there = l.validity_of_field(&given);
            let slots = &l.program.slots;
            let mut differ = build::binary(BinaryOp::Ne, Expr::Slot(computed), given, slots);
            if let Some(there) = there {
                differ = build::binary(BinaryOp::And, Expr::Slot(there), differ, slots);
            }
            let fail = l.capture(|l| l.set(error, build::constant(1, 1)));
            l.emit_if(differ, fail, Vec::new());
        });
        self.emit_if(cond, body, Vec::new());
    }

    /// Lowers `update_checksum(condition, data, checksum, algorithm)`, which writes the checksum of the data
    /// to the argument `checksum` if the condition holds. If `payload` is true, the packet's payload is part
    /// of the data.
    fn update_checksum(&mut self, call: &Call<'_>, payload: bool) {
        let &Call { name, args, span } = call;
        if self.stage().is_parser() {
            return self.report(errors::extern_place(span, name, "controls"));
        }
        let cond = self.scalar_arg(args, 0);
        let body = self.capture(|l| {
            let Some(computed) = l.checksum(args, payload) else {
                return;
            };
            let target = l.out_arg(args, 2);
            l.store(&target, Value::Bits(Expr::Slot(computed)));
        });
        self.emit_if(cond, body, Vec::new());
    }
}

impl Unit<'_> {
    fn field_list(&mut self, key: FieldListKey, slots: Vec<ir::SlotId>) -> ir::FieldListId {
        if let Some(id) = self.made.field_lists.get(&key) {
            return *id;
        }
        let id = ir::FieldListId(self.program.field_lists.len() as u32);
        self.program.field_lists.push(ir::FieldList { slots });
        self.made.field_lists.insert(key, id);
        id
    }

    /// Returns the field list of those fields of the user's metadata that have the annotation `@field_list`
    /// with the number `index`.
    fn annotated_list(&mut self, index: u32) -> ir::FieldListId {
        let mut slots = Vec::new();
        if let Some((place, ty)) = self.made.user_metadata.clone() {
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
}
