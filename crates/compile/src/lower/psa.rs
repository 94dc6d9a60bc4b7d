//! The compiler's part of the Portable Switch Architecture: its externs, and the lowering of those that only
//! it has.

use std::any::Any;
use std::rc::Rc;

use ir::architecture::psa::{self, PORT_RECIRCULATE};
use ir::{BinaryOp, Expr, HashAlgorithm, SlotId, StmtKind};
use syntax::source::Span;

use super::externs::MethodCall;
use super::hash::{Data, Part};
use super::instances::{Made, NewInstance};
use super::place::Value;
use super::room::{Externs, ObjectRow};
use super::{Body, Code, Context, ExternKind, Object, OwnObject, Room, Unit, build};
use crate::errors;
use crate::hir::Arg;
use crate::meaning::Meaning::{Common, Own};
use crate::meaning::{self, Algorithm, Function, Method, Property};
use crate::types::Ty;
use ir::ENUM_WIDTH;

/// Makes the meaning of an extern type that only PSA has.
macro_rules! own {
    ($kind:ident) => {
        Own(|body, new| body.psa_instance(Kind::$kind, new))
    };
}
/// The externs of PSA, with their meanings. The custom CRCs have the parameters of the standard ones, and
/// nothing changes them; the target's choice is CRC-32.
static EXTERNS: Externs = Externs {
    functions: &[
        ("void assert(in bool)", Common(Function::Assert)),
        ("void assume(in bool)", Common(Function::Assert)),
        (
            "bool psa_clone_i2e(in psa_ingress_output_metadata_t)",
            Own(|l, call| l.predicate(Predicate::Clone, call.args)),
        ),
        (
            "bool psa_resubmit(in psa_ingress_output_metadata_t)",
            Own(|l, call| l.predicate(Predicate::Resubmit, call.args)),
        ),
        (
            "bool psa_normal(in psa_ingress_output_metadata_t)",
            Own(|l, call| l.predicate(Predicate::Normal, call.args)),
        ),
        (
            "bool psa_clone_e2e(in psa_egress_output_metadata_t)",
            Own(|l, call| l.predicate(Predicate::Clone, call.args)),
        ),
        (
            "bool psa_recirculate(in psa_egress_output_metadata_t, in psa_egress_deparser_input_metadata_t)",
            Own(|l, call| l.predicate(Predicate::Recirculate, call.args)),
        ),
    ],
    objects: &[
        ObjectRow {
            name: "PacketReplicationEngine",
            type_params: &[0],
            object: own!(Engine),
            constructors: &["()"],
            methods: &[],
        },
        ObjectRow {
            name: "BufferingQueueingEngine",
            type_params: &[0],
            object: own!(Engine),
            constructors: &["()"],
            methods: &[],
        },
        ObjectRow {
            name: "Hash",
            type_params: &[1],
            object: own!(Hash),
            constructors: &["(PSA_HashAlgorithm_t)"],
            methods: &[
                ("_ get_hash(in _)", Own(hash_get)),
                ("_ get_hash(in _, in _, in _)", Own(hash_get)),
            ],
        },
        ObjectRow {
            name: "Checksum",
            type_params: &[1],
            object: own!(Checksum),
            constructors: &["(PSA_HashAlgorithm_t)"],
            methods: &[
                ("void clear()", Own(sum_clear)),
                ("void update(in _)", Own(sum_add)),
                ("_ get()", Own(sum_get)),
            ],
        },
        ObjectRow {
            name: "InternetChecksum",
            type_params: &[0],
            object: own!(InternetChecksum),
            constructors: &["()"],
            methods: &[
                ("void clear()", Own(sum_clear)),
                ("void add(in _)", Own(sum_add)),
                ("void subtract(in _)", Own(sum_subtract)),
                ("bit<16> get()", Own(sum_get)),
                ("bit<16> get_state()", Own(sum_get_state)),
                ("void set_state(in bit<16>)", Own(sum_set_state)),
            ],
        },
        ObjectRow {
            name: "Counter",
            type_params: &[2],
            object: Common(meaning::Object::Counter),
            constructors: &["(bit<32>, PSA_CounterType_t)"],
            methods: &[("void count(in _)", Common(Method::Count))],
        },
        ObjectRow {
            name: "DirectCounter",
            type_params: &[1],
            object: Common(meaning::Object::DirectCounter),
            constructors: &["(PSA_CounterType_t)"],
            methods: &[("void count()", Common(Method::CountDirect))],
        },
        ObjectRow {
            name: "Meter",
            type_params: &[1],
            object: Common(meaning::Object::Meter),
            constructors: &["(bit<32>, PSA_MeterType_t)"],
            methods: &[
                (
                    "PSA_MeterColor_t execute(in _, in PSA_MeterColor_t)",
                    Own(psa_meter),
                ),
                ("PSA_MeterColor_t execute(in _)", Own(psa_meter)),
            ],
        },
        ObjectRow {
            name: "DirectMeter",
            type_params: &[0],
            object: Common(meaning::Object::DirectMeter),
            constructors: &["(PSA_MeterType_t)"],
            methods: &[
                (
                    "PSA_MeterColor_t execute(in PSA_MeterColor_t)",
                    Own(psa_meter),
                ),
                ("PSA_MeterColor_t execute()", Own(psa_meter)),
            ],
        },
        ObjectRow {
            name: "Register",
            type_params: &[2],
            object: Common(meaning::Object::Register),
            constructors: &["(bit<32>)", "(bit<32>, _)"],
            methods: &[
                ("_ read(in _)", Common(Method::RegisterRead)),
                ("void write(in _, in _)", Common(Method::RegisterWrite)),
            ],
        },
        ObjectRow {
            name: "Random",
            type_params: &[1],
            object: own!(Random),
            constructors: &["(_, _)"],
            methods: &[("_ read()", Own(random_read))],
        },
        ObjectRow {
            name: "ActionProfile",
            type_params: &[0],
            object: Common(meaning::Object::ActionProfile),
            constructors: &["(bit<32>)"],
            methods: &[],
        },
        ObjectRow {
            name: "ActionSelector",
            type_params: &[0],
            object: Common(meaning::Object::ActionSelector),
            constructors: &["(PSA_HashAlgorithm_t, bit<32>, bit<32>)"],
            methods: &[],
        },
        ObjectRow {
            name: "Digest",
            type_params: &[1],
            object: own!(Digest),
            constructors: &["()"],
            methods: &[("void pack(in _)", Own(digest_pack))],
        },
    ],
    properties: &[
        ("psa_direct_counter", Property::Counter),
        ("psa_direct_meter", Property::Meter),
        ("psa_implementation", Property::Implementation),
        ("psa_idle_timeout", Property::TimeoutEnum),
        ("psa_empty_group_action", Property::EmptyGroupAction),
    ],
    algorithms: &[
        ("IDENTITY", Algorithm::Of(HashAlgorithm::Identity)),
        ("CRC32", Algorithm::Of(HashAlgorithm::Crc32)),
        ("CRC32_CUSTOM", Algorithm::Of(HashAlgorithm::Crc32)),
        ("CRC16", Algorithm::Of(HashAlgorithm::Crc16)),
        ("CRC16_CUSTOM", Algorithm::Of(HashAlgorithm::Crc16)),
        ("ONES_COMPLEMENT16", Algorithm::Of(HashAlgorithm::Csum16)),
        ("TARGET_DEFAULT", Algorithm::Of(HashAlgorithm::Crc32)),
    ],
    enums: &[
        (
            "PSA_PacketPath_t",
            &[
                "NORMAL",
                "NORMAL_UNICAST",
                "NORMAL_MULTICAST",
                "CLONE_I2E",
                "CLONE_E2E",
                "RESUBMIT",
                "RECIRCULATE",
            ],
        ),
        (
            "PSA_CounterType_t",
            &["PACKETS", "BYTES", "PACKETS_AND_BYTES"],
        ),
        ("PSA_MeterType_t", &["PACKETS", "BYTES"]),
        ("PSA_IdleTimeout_t", &["NO_TIMEOUT", "NOTIFY_CONTROL"]),
        ("PSA_MeterColor_t", &["RED", "GREEN", "YELLOW"]),
    ],
};

/// The compiler's part of PSA.
pub(super) static ROOM: Room = Room {
    externs: &EXTERNS,
    include_files: &["psa.p4", "bmv2/psa.p4"],
    text: include_str!("../../../../p4include/psa.p4"),
};

/// A condition on its pipeline's output metadata that a deparser can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Predicate {
    /// `psa_clone_i2e` or `psa_clone_e2e`: true if the packet is cloned.
    Clone,
    /// `psa_resubmit`: true if it is resubmitted.
    Resubmit,
    /// `psa_normal`: true if it goes on to the packet replication engine.
    Normal,
    /// `psa_recirculate`: true if it is recirculated.
    Recirculate,
}

/// An instance of an extern that only PSA has and that the control plane does not see.
#[derive(Clone, Debug)]
pub(super) enum PsaObject {
    /// `PacketReplicationEngine` or `BufferingQueueingEngine`: nothing that a program can use.
    Engine,
    /// `Hash`
    Hash(HashAlgorithm),
    /// `InternetChecksum`, or a `Checksum` of 16-bit words: the slot of the ones' complement sum.
    InternetChecksum(SlotId),
    /// `Random`, with the lowest and the highest value.
    Random(Expr, Expr),
    /// `Digest`
    Digest(ir::DigestId),
}

/// `PSA_MeterColor_t.GREEN`
const GREEN: u64 = 1;

/// The extern types that only PSA has.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Engine,
    Hash,
    InternetChecksum,
    Checksum,
    Random,
    Digest,
}

impl OwnObject for PsaObject {
    fn reset(&self) -> Option<SlotId> {
        match self {
            PsaObject::InternetChecksum(sum) => Some(*sum),
            _ => None,
        }
    }
}

fn psa_object(object: &Object) -> Option<&PsaObject> {
    match object {
        Object::Own(own) => (&**own as &dyn Any).downcast_ref(),
        _ => None,
    }
}

fn sum_of(object: &Object) -> Option<SlotId> {
    psa_object(object).and_then(OwnObject::reset)
}

fn hash_get(l: &mut Body<'_, '_>, object: &Object, call: &MethodCall<'_>) -> Value {
    let width = l.module.types.scalar_width(call.ty).unwrap_or(1);
    match psa_object(object) {
        Some(PsaObject::Hash(algorithm)) => l.psa_hash(*algorithm, call.args, width),
        _ => Value::Nothing,
    }
}

fn sum_get(l: &mut Body<'_, '_>, object: &Object, call: &MethodCall<'_>) -> Value {
    let width = l.module.types.scalar_width(call.ty).unwrap_or(1);
    let Some(sum) = sum_of(object) else {
        return Value::Nothing;
    };
    let sum = build::not(Expr::Slot(sum));
    Value::Bits(build::resize(sum, width, &l.program.slots))
}

fn sum_get_state(_: &mut Body<'_, '_>, object: &Object, _: &MethodCall<'_>) -> Value {
    sum_of(object).map_or(Value::Nothing, |sum| Value::Bits(Expr::Slot(sum)))
}

fn sum_set_state(l: &mut Body<'_, '_>, object: &Object, call: &MethodCall<'_>) -> Value {
    if let Some(sum) = sum_of(object) {
        let value = l.scalar_arg(call.args, 0);
        l.set_sum(sum, value);
    }
    Value::Nothing
}

fn sum_clear(l: &mut Body<'_, '_>, object: &Object, _: &MethodCall<'_>) -> Value {
    if let Some(sum) = sum_of(object) {
        l.set_sum(sum, build::constant(16, 0));
    }
    Value::Nothing
}

fn sum_add(l: &mut Body<'_, '_>, object: &Object, call: &MethodCall<'_>) -> Value {
    if let Some(sum) = sum_of(object) {
        l.add_to_sum(sum, call.args, false, call.span);
    }
    Value::Nothing
}

fn sum_subtract(l: &mut Body<'_, '_>, object: &Object, call: &MethodCall<'_>) -> Value {
    if let Some(sum) = sum_of(object) {
        l.add_to_sum(sum, call.args, true, call.span);
    }
    Value::Nothing
}

fn random_read(l: &mut Body<'_, '_>, object: &Object, call: &MethodCall<'_>) -> Value {
    let Some(PsaObject::Random(low, high)) = psa_object(object) else {
        return Value::Nothing;
    };
    let width = l.module.types.scalar_width(call.ty).unwrap_or(1);
    if width > 64 {
        let what = "a random value of more than 64 bits";
        l.report(errors::unsupported(call.span, what));
        return Value::Nothing;
    }
    let dst = l.new_slot("$random", width);
    let (low, high) = (low.clone(), high.clone());
    l.emit(StmtKind::Random { dst, low, high });
    Value::Bits(Expr::Slot(dst))
}

fn digest_pack(l: &mut Body<'_, '_>, object: &Object, call: &MethodCall<'_>) -> Value {
    let places = [
        psa::INGRESS,
        psa::INGRESS_DEPARSER,
        psa::EGRESS,
        psa::DEPARSER,
    ];
    if let Some(PsaObject::Digest(digest)) = psa_object(object)
        && l.in_stage("Digest.pack", &places, "controls", call.span)
    {
        let values = l.arg(call.args, 0).leaves();
        let digest = *digest;
        l.emit(StmtKind::Digest { digest, values });
    }
    Value::Nothing
}

/// Lowers `Meter.execute` or `DirectMeter.execute` and returns the colour of the packet.
fn psa_meter(l: &mut Body<'_, '_>, object: &Object, call: &MethodCall<'_>) -> Value {
    let Object::Extern(i) = object else {
        return Value::Nothing;
    };
    let kind = l.info.externs[*i].kind.clone();
    l.psa_meter(&kind, call.args, call.span)
}

impl Body<'_, '_> {
    /// Creates an instance of an extern type that only PSA has. Reports arguments that are not supported.
    fn psa_instance(&mut self, kind: Kind, new: &NewInstance<'_>) -> Made {
        let &NewInstance {
            name,
            type_args,
            args,
            span,
        } = new;
        let own = |object: PsaObject| Made::Own(Object::Own(Rc::new(object)));
        match kind {
            Kind::Engine => own(PsaObject::Engine),
            Kind::Hash => {
                let algorithm = self.fixed_algorithm(args, 0, span);
                algorithm.map_or(Made::Refused, |a| own(PsaObject::Hash(a)))
            }
            Kind::InternetChecksum => own(PsaObject::InternetChecksum(self.new_slot(name, 16))),
            Kind::Checksum => match self.fixed_algorithm(args, 0, span) {
                Some(HashAlgorithm::Csum16) => {
                    own(PsaObject::InternetChecksum(self.new_slot(name, 16)))
                }
                Some(_) => {
                    let what = "a `Checksum` by another algorithm than ONES_COMPLEMENT16";
                    self.report(errors::unsupported(span, what));
                    Made::Refused
                }
                None => Made::Refused,
            },
            Kind::Random => {
                let (low, high) = (self.scalar_arg(args, 0), self.scalar_arg(args, 1));
                own(PsaObject::Random(low, high))
            }
            Kind::Digest => self.psa_digest(name, type_args, span),
        }
    }

    /// Builds the condition that a function such as `psa_resubmit` returns to a deparser. Its first argument
    /// is the output metadata of the deparser's pipeline.
    fn predicate(&mut self, predicate: Predicate, args: &[Arg]) -> Value {
        let output = self.arg(args, 0);
        let of = |l: &Self, name: &str| l.metadata_field(args, 0, &output, name);
        let stays = build::not(of(self, "drop"));
        let other = match predicate {
            Predicate::Clone => return Value::Bits(of(self, "clone")),
            Predicate::Resubmit => of(self, "resubmit"),
            Predicate::Normal => build::not(of(self, "resubmit")),
            Predicate::Recirculate => {
                let input = self.arg(args, 1);
                let port = self.metadata_field(args, 1, &input, "egress_port");
                let there = build::constant(32, PORT_RECIRCULATE.into());
                build::binary(BinaryOp::Eq, port, there, &self.program.slots)
            }
        };
        Value::Bits(build::binary(
            BinaryOp::And,
            stays,
            other,
            &self.program.slots,
        ))
    }

    /// Lowers `get_hash(data)` or `get_hash(base, data, max)` and returns the hash in `width` bits.
    fn psa_hash(&mut self, algorithm: HashAlgorithm, args: &[Arg], width: u32) -> Value {
        let algorithm = Algorithm::Of(algorithm);
        if args.len() == 3 {
            let base = self.scalar_arg(args, 0);
            let Some(data) = self.hashed(args, 1) else {
                return Value::Nothing;
            };
            let max = self.scalar_arg(args, 2);
            return Value::Bits(self.hash_within(algorithm, base, data, max, width));
        }
        let Some(data) = self.hashed(args, 0) else {
            return Value::Nothing;
        };
        let dst = self.new_slot("$hash", width);
        self.emit_hash(dst, algorithm, data, false);
        Value::Bits(Expr::Slot(dst))
    }

    /// Returns the data of the argument at position `i`, which are to be hashed. Zero bits are added in front
    /// up to whole bytes, as in the reference target. `None` if there is no such argument.
    fn hashed(&mut self, args: &[Arg], i: usize) -> Option<Data> {
        let mut data = self.data(args, i)?;
        let widths = data.parts.iter().map(|part| match part {
            Part::Bits(e) => Some(e.width(&self.program.slots)),
            Part::Varbit(..) => None,
        });
        let beyond = widths.sum::<Option<u32>>().map_or(0, |bits| bits % 8);
        if beyond > 0 {
            let zeros = Part::Bits(build::constant(8 - beyond, 0));
            data.parts.insert(0, zeros);
        }
        Some(data)
    }

    /// Emits the addition of data, or with `complement` of their bitwise complement, to the slot `sum` of an
    /// `InternetChecksum`. The new sum is the bitwise complement of the checksum of the old sum and the data.
    /// Reports data that are no whole number of 16-bit words.
    fn add_to_sum(&mut self, sum: SlotId, args: &[Arg], complement: bool, span: Span) {
        let Some(mut data) = self.data(args, 0) else {
            return;
        };
        let slots = &self.program.slots;
        let mut bits = 0;
        for part in &mut data.parts {
            match part {
                Part::Bits(e) => {
                    bits += e.width(slots);
                    if complement {
                        *e = build::not(e.clone());
                    }
                }
                Part::Varbit(..) if complement => {
                    let what = "subtracting a varbit from a checksum";
                    return self.report(errors::unsupported(span, what));
                }
                Part::Varbit(..) => {}
            }
        }
        if !bits.is_multiple_of(16) {
            let what = "a checksum over data that is no whole number of 16-bit words";
            return self.report(errors::unsupported(span, what));
        }
        data.parts.insert(0, Part::Bits(Expr::Slot(sum)));
        let checksum = self.new_slot("$checksum", 16);
        let algorithm = Algorithm::Of(HashAlgorithm::Csum16);
        self.emit_hash(checksum, algorithm, data, false);
        self.set_sum(sum, build::not(Expr::Slot(checksum)));
    }

    /// Lowers `Meter.execute` or `DirectMeter.execute` and returns the colour. Reports a call that gives
    /// the packet a colour other than green, since colour-aware meters are not supported.
    fn psa_meter(&mut self, meter: &ExternKind, args: &[Arg], span: Span) -> Value {
        let colour = usize::from(matches!(meter, ExternKind::Meter(..)));
        let aware = args.get(colour).and_then(Arg::expr).is_some_and(|e| {
            let given = self.scalar(e);
            !matches!(given, Expr::Const(bits) if bits.to_u64() == Some(GREEN))
        });
        if aware {
            self.report(errors::unsupported(span, "a colour-aware meter"));
            return Value::Nothing;
        }
        let dst = self.new_slot("$colour", ENUM_WIDTH);
        match meter {
            ExternKind::Meter(meter, _) => {
                let (index, meter) = (self.index_arg(args, 0), *meter);
                self.emit(StmtKind::MeterExecute { meter, index, dst });
            }
            ExternKind::DirectMeter(meter) => self.read_direct_meter(*meter, dst, span),
            _ => {}
        }
        // Green, yellow, red are 1, 2, 0 here.
        let slots = &self.program.slots;
        let number = |n| build::constant(ENUM_WIDTH, n);
        let is_red = build::binary(BinaryOp::Eq, Expr::Slot(dst), number(2), slots);
        let next = build::binary(BinaryOp::Add, Expr::Slot(dst), number(1), slots);
        Value::Bits(build::mux(is_red, number(0), next))
    }
}

impl Code<'_> {
    fn set_sum(&mut self, sum: SlotId, value: Expr) {
        self.set(sum, value);
    }
}

impl Unit<'_> {
    fn psa_digest(&mut self, name: &str, type_args: &[Ty], span: Span) -> Made {
        let Some(ty) = type_args.first() else {
            return Made::Refused;
        };
        let value = self.default_value(ty);
        let Some(values) = self.digest_values(&value, span) else {
            return Made::Refused;
        };
        let id = self.new_digest(name.to_string(), &values, ty, span);
        Made::Own(Object::Own(Rc::new(PsaObject::Digest(id))))
    }
}

impl Context<'_> {
    /// Returns the field `name` of the argument at position `i`, which is a struct of the architecture's
    /// metadata and has the value `value`; a zero of one bit if the struct has no such field.
    fn metadata_field(&self, args: &[Arg], i: usize, value: &Value, name: &str) -> Expr {
        let structure = args.get(i).and_then(Arg::expr).map(|e| &e.ty);
        let position = match structure {
            Some(Ty::Struct(id)) => self.module.types.structure(*id).field(name),
            _ => None,
        };
        match (value, position) {
            (Value::Fields(items), Some(position)) => match items.get(position) {
                Some(Value::Bits(e)) => e.clone(),
                _ => build::boolean(false),
            },
            _ => build::boolean(false),
        }
    }
}
