//! The externs of the Portable Switch Architecture, mostly by what v1model's become.

use ir::{BinaryOp, Block, Expr, HashAlgorithm, SlotId, StmtKind};
use syntax::source::Span;

use super::hash::{Algorithm, Data, Part};
use super::instances::Made;
use super::place::Value;
use super::{ExternKind, Lowerer, Object, ObjectId, build};
use crate::errors;
use crate::hir::{Arg, ENUM_WIDTH};
use crate::types::Ty;

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

/// `PSA_HashAlgorithm_t`, in its order. The custom CRCs have the parameters of the standard ones, and nothing changes them.
const ALGORITHMS: [HashAlgorithm; 7] = [
    HashAlgorithm::Identity,
    HashAlgorithm::Crc32,
    HashAlgorithm::Crc32,
    HashAlgorithm::Crc16,
    HashAlgorithm::Crc16,
    HashAlgorithm::Csum16,
    // The target's choice.
    HashAlgorithm::Crc32,
];

/// `PSA_MeterColor_t.GREEN`
const GREEN: u64 = 1;

impl Lowerer<'_> {
    /// Makes an instance of an extern that only PSA has.
    pub(super) fn psa_instance(
        &mut self,
        external: &str,
        name: &str,
        type_args: &[Ty],
        args: &[Arg],
        span: Span,
    ) -> Made {
        let own = |object| Made::Own(Object::Psa(object));
        match external {
            "PacketReplicationEngine" | "BufferingQueueingEngine" => own(PsaObject::Engine),
            "Hash" => (self.psa_algorithm(args)).map_or(Made::Refused, |a| own(PsaObject::Hash(a))),
            "InternetChecksum" => own(PsaObject::InternetChecksum(self.new_slot(name, 16))),
            "Checksum" => match self.psa_algorithm(args) {
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
            "Random" => {
                let (low, high) = (self.scalar_arg(args, 0), self.scalar_arg(args, 1));
                own(PsaObject::Random(low, high))
            }
            "Digest" => self.psa_digest(name, type_args, span),
            _ => {
                self.report_unknown(external, span);
                Made::Refused
            }
        }
    }

    pub(super) fn psa_algorithm(&mut self, args: &[Arg]) -> Option<HashAlgorithm> {
        let position = self.constant_arg(args, 0, "the hash algorithm")?;
        ALGORITHMS.get(position as usize).copied()
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
        self.info.digests.push((id, ty.clone()));
        Made::Own(Object::Psa(PsaObject::Digest(id)))
    }

    /// The data that an instance has of a packet begin anew wherever its block is applied.
    pub(super) fn reset_instance(&mut self, object: ObjectId) {
        if let Object::Psa(PsaObject::InternetChecksum(sum)) = self.object(object) {
            self.set_sum(sum, build::constant(16, 0));
        }
    }

    fn set_sum(&mut self, sum: SlotId, value: Expr) {
        self.emit(StmtKind::Assign { dst: sum, value });
    }

    /// A call of a method of an instance that the control plane does not see.
    pub(super) fn psa_method(
        &mut self,
        object: &PsaObject,
        method: &str,
        args: &[Arg],
        ty: &Ty,
        span: Span,
    ) -> Value {
        let width = self.module.types.scalar_width(ty).unwrap_or(1);
        match (object, method) {
            (PsaObject::Hash(algorithm), "get_hash") => {
                return self.psa_hash(*algorithm, args, width);
            }
            (PsaObject::InternetChecksum(sum), "get") => {
                let slots = &self.program.slots;
                return Value::Bits(build::resize(build::not(Expr::Slot(*sum)), width, slots));
            }
            (PsaObject::InternetChecksum(sum), "get_state") => {
                return Value::Bits(Expr::Slot(*sum));
            }
            (PsaObject::InternetChecksum(sum), "set_state") => {
                let value = self.scalar_arg(args, 0);
                self.set_sum(*sum, value);
            }
            (PsaObject::InternetChecksum(sum), "clear") => {
                self.set_sum(*sum, build::constant(16, 0));
            }
            (PsaObject::InternetChecksum(sum), "add" | "update") => {
                self.add_to_sum(*sum, args, false, span);
            }
            (PsaObject::InternetChecksum(sum), "subtract") => {
                self.add_to_sum(*sum, args, true, span);
            }
            (PsaObject::Random(low, high), "read") => {
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
            (PsaObject::Digest(digest), "pack") => {
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
            _ => self.report(errors::unknown_extern(span, "psa", method)),
        }
        Value::Nothing
    }

    /// `get_hash(data)` or `get_hash(base, data, max)`.
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

    /// The data of a hash. As in the reference target, zero bits in front make whole bytes.
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

    /// The sum with data, or their complement, added: the checksum of both is its complement.
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

    /// `Meter.execute` and `DirectMeter.execute`: the colour, for packets that come without one.
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
