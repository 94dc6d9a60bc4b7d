//! The externs of the Portable Switch Architecture, mostly by what v1model's become.

use ir::architecture::psa::PORT_RECIRCULATE;
use ir::{BinaryOp, Block, Expr, HashAlgorithm, SlotId, StmtKind};
use syntax::source::Span;

use super::hash::{Data, Part};
use super::instances::Made;
use super::place::Value;
use super::{ExternKind, Lowerer, Object, ObjectId, build};
use crate::errors;
use crate::externs::{self, Algorithm, Method, Predicate};
use crate::hir::Arg;
use crate::types::Ty;
use ir::ENUM_WIDTH;

/// An instance that the control plane does not see as an extern of its own.
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

impl Lowerer<'_> {
    /// Creates an instance of an extern type that only PSA has.
    pub(super) fn psa_instance(
        &mut self,
        meaning: externs::Object,
        name: &str,
        type_args: &[Ty],
        args: &[Arg],
        span: Span,
    ) -> Made {
        use externs::Object as O;
        let own = |object| Made::Own(Object::Psa(object));
        match meaning {
            O::Hash => {
                let algorithm = self.fixed_algorithm(args, 0, span);
                algorithm.map_or(Made::Refused, |a| own(PsaObject::Hash(a)))
            }
            O::InternetChecksum => own(PsaObject::InternetChecksum(self.new_slot(name, 16))),
            O::Checksum => match self.fixed_algorithm(args, 0, span) {
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
            O::Random => {
                let (low, high) = (self.scalar_arg(args, 0), self.scalar_arg(args, 1));
                own(PsaObject::Random(low, high))
            }
            O::Digest => self.psa_digest(name, type_args, span),
            _ => own(PsaObject::Engine),
        }
    }

    fn psa_digest(&mut self, name: &str, type_args: &[Ty], span: Span) -> Made {
        let Some(ty) = type_args.first() else {
            return Made::Refused;
        };
        let value = self.default_value(ty);
        if super::externs::has_varbit(&value) {
            self.report(errors::varbit_digest(span));
            return Made::Refused;
        }
        let mut leaves = Vec::new();
        value.leaves(&mut leaves);
        if leaves.is_empty() {
            self.report(errors::unsupported(span, "a digest without members"));
            return Made::Refused;
        }
        let widths = leaves.iter().map(|e| e.width(&self.program.slots));
        let widths = widths.collect();
        let id = ir::DigestId(self.program.digests.len() as u32);
        self.program.digests.push(ir::Digest {
            name: name.to_string(),
            id: 0,
            widths,
        });
        self.info.digests.push((id, ty.clone(), span));
        Made::Own(Object::Psa(PsaObject::Digest(id)))
    }

    /// Resets the state that an instance keeps for one packet, such as the sum of an `InternetChecksum`;
    /// called wherever the block that contains the instance is applied.
    pub(super) fn reset_instance(&mut self, object: ObjectId) {
        if let Object::Psa(PsaObject::InternetChecksum(sum)) = self.object(object) {
            self.set_sum(sum, build::constant(16, 0));
        }
    }

    fn set_sum(&mut self, sum: SlotId, value: Expr) {
        self.emit(StmtKind::Assign { dst: sum, value });
    }

    /// Lowers a call of a method of a PSA instance that the control plane does not see, and returns its value.
    pub(super) fn psa_method(
        &mut self,
        object: &PsaObject,
        method: Method,
        args: &[Arg],
        ty: &Ty,
        span: Span,
    ) -> Value {
        let width = self.module.types.scalar_width(ty).unwrap_or(1);
        match (object, method) {
            (PsaObject::Hash(algorithm), Method::HashGet | Method::HashGetInRange) => {
                return self.psa_hash(*algorithm, args, width);
            }
            (PsaObject::InternetChecksum(sum), Method::SumGet) => {
                let slots = &self.program.slots;
                return Value::Bits(build::resize(build::not(Expr::Slot(*sum)), width, slots));
            }
            (PsaObject::InternetChecksum(sum), Method::SumGetState) => {
                return Value::Bits(Expr::Slot(*sum));
            }
            (PsaObject::InternetChecksum(sum), Method::SumSetState) => {
                let value = self.scalar_arg(args, 0);
                self.set_sum(*sum, value);
            }
            (PsaObject::InternetChecksum(sum), Method::SumClear) => {
                self.set_sum(*sum, build::constant(16, 0));
            }
            (PsaObject::InternetChecksum(sum), Method::SumAdd) => {
                self.add_to_sum(*sum, args, false, span);
            }
            (PsaObject::InternetChecksum(sum), Method::SumSubtract) => {
                self.add_to_sum(*sum, args, true, span);
            }
            (PsaObject::Random(low, high), Method::RandomRead) => {
                if width > 64 {
                    let what = "a random value of more than 64 bits";
                    self.report(errors::unsupported(span, what));
                    return Value::Nothing;
                }
                let dst = self.new_slot("$random", width);
                let (low, high) = (low.clone(), high.clone());
                self.emit(StmtKind::Random { dst, low, high });
                return Value::Bits(Expr::Slot(dst));
            }
            (PsaObject::Digest(digest), Method::DigestPack) => {
                let places = [
                    Block::Ingress,
                    Block::IngressDeparser,
                    Block::Egress,
                    Block::Deparser,
                ];
                if self.in_stage("Digest.pack", &places, "controls", span) {
                    let mut values = Vec::new();
                    self.arg(args, 0).leaves(&mut values);
                    let digest = *digest;
                    self.emit(StmtKind::Digest { digest, values });
                }
            }
            // The tables of externs pair no others.
            _ => {}
        }
        Value::Nothing
    }

    /// Builds the condition on the output metadata that a function such as `psa_resubmit` returns to a deparser.
    pub(super) fn predicate(&mut self, predicate: Predicate, args: &[Arg]) -> Value {
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

    /// Returns the field `name` of the argument at position `i`, which is a struct of the architecture's
    /// metadata with the value `value`; a zero of one bit if the struct has no such field.
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

    /// Evaluates the argument at position `i`, whose data are to be hashed. Zero bits are added in front up
    /// to whole bytes, as in the reference target.
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

    /// Emits the addition of data, or with `complement` of their bitwise complement, to the sum of an
    /// `InternetChecksum`. The new sum is the bitwise complement of the checksum of the old sum and the
    /// data.
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
    pub(super) fn psa_meter(&mut self, meter: &ExternKind, args: &[Arg], span: Span) -> Value {
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
