//! Hashes and checksums.

use ir::{BinaryOp, Expr, HashAlgorithm, StmtKind};
use syntax::source::Span;

use super::place::Value;
use super::{Half, Lowerer, build};
use crate::errors;
use crate::hir::Arg;

impl Lowerer<'_> {
    /// `hash(result, algorithm, base, data, max)`: base + hash modulo max, or base if max is zero.
    pub(super) fn hash(&mut self, args: &[Arg], span: Span) {
        let target = self.out_arg(args, 0);
        let Some(algorithm) = self.algorithm(args, 1, span) else {
            return;
        };
        let base = self.scalar_arg(args, 2);
        let Some(data) = self.data(args, 3, algorithm) else {
            return;
        };
        let max = self.scalar_arg(args, 4);
        let Some(width) = self.module.types.scalar_width(&target.1) else {
            return;
        };
        let slots = &self.program.slots;
        let work = 64.max(max.width(slots)).max(base.width(slots)).max(width);
        let hashed = self.new_slot("$hash", work);
        self.emit(StmtKind::Hash {
            dst: hashed,
            algorithm,
            data,
            payload: false,
        });
        let slots = &self.program.slots;
        let (base, max) = (
            build::resize(base, work, slots),
            build::resize(max, work, slots),
        );
        let within = build::binary(BinaryOp::Mod, Expr::Slot(hashed), max, slots);
        let sum = build::binary(BinaryOp::Add, base, within, slots);
        let value = build::resize(sum, width, slots);
        self.store(&target, Value::Bits(value));
    }

    pub(super) fn algorithm(
        &mut self,
        args: &[Arg],
        i: usize,
        span: Span,
    ) -> Option<HashAlgorithm> {
        let position = self.constant_arg(args, i, "the hash algorithm")?;
        match position {
            0 => Some(HashAlgorithm::Crc32),
            2 => Some(HashAlgorithm::Crc16),
            5 => Some(HashAlgorithm::Identity),
            6 => Some(HashAlgorithm::Csum16),
            7 => Some(HashAlgorithm::Xor16),
            other => {
                let name = match other {
                    1 => "crc32_custom",
                    3 => "crc16_custom",
                    _ => "random",
                };
                let at = args.get(i).and_then(Arg::expr).map_or(span, |e| e.span);
                self.report(errors::unknown_algorithm(at, name));
                None
            }
        }
    }

    /// The values that are hashed.
    ///
    /// A varbit stands with its bits at the left of its full width, zeros after them. The 16-bit sums ignore zero
    /// words, so this is right for them if nothing but whole words comes after; for other functions it is not.
    fn data(&mut self, args: &[Arg], i: usize, algorithm: HashAlgorithm) -> Option<Vec<Expr>> {
        let e = args.get(i).and_then(Arg::expr)?;
        let value = self.eval(e);
        let mut parts = Vec::new();
        let words = matches!(algorithm, HashAlgorithm::Csum16 | HashAlgorithm::Xor16);
        if !self.collect_data(&value, &mut parts, words) {
            self.report(errors::varbit_place(e.span));
            return None;
        }
        Some(parts)
    }

    fn collect_data(&self, value: &Value, out: &mut Vec<Expr>, words: bool) -> bool {
        let slots = &self.program.slots;
        match value {
            Value::Bits(e) => out.push(e.clone()),
            Value::Varbit(bits, length) => {
                let width = bits.width(slots);
                let before: u32 = out.iter().map(|e| e.width(slots)).sum();
                if !words || !width.is_multiple_of(16) || !before.is_multiple_of(16) {
                    return false;
                }
                let full = build::constant(32, u64::from(width));
                let by = build::binary(BinaryOp::Sub, full, length.clone(), slots);
                out.push(build::binary(BinaryOp::Shl, bits.clone(), by, slots));
            }
            Value::Fields(items)
            | Value::Header(_, items)
            | Value::Union(items)
            | Value::Stack(items, _) => {
                return items.iter().all(|v| self.collect_data(v, out, words));
            }
            Value::Int(_) | Value::Str(_) | Value::Object(_) | Value::Nothing => {}
        }
        true
    }

    /// The checksum of the data, in the width of the checksum argument.
    fn checksum(&mut self, args: &[Arg], payload: bool, span: Span) -> Option<ir::SlotId> {
        let algorithm = self.algorithm(args, 3, span)?;
        let data = self.data(args, 1, algorithm)?;
        let ty = args.get(2).and_then(Arg::expr)?.ty.clone();
        let width = self.module.types.scalar_width(&ty)?;
        let dst = self.new_slot("$checksum", width);
        self.emit(StmtKind::Hash {
            dst,
            algorithm,
            data,
            payload,
        });
        Some(dst)
    }

    /// `verify_checksum(condition, data, checksum, algorithm)`
    pub(super) fn verify_checksum(&mut self, args: &[Arg], payload: bool, span: Span) {
        if self.half == Half::Parser {
            return self.report(errors::extern_place(span, "verify_checksum", "controls"));
        }
        let cond = self.scalar_arg(args, 0);
        let error = self.program.standard.checksum_error;
        let body = self.capture(|l| {
            let Some(computed) = l.checksum(args, payload, span) else {
                return;
            };
            let given = l.scalar_arg(args, 2);
            let differ = build::binary(BinaryOp::Ne, Expr::Slot(computed), given, &l.program.slots);
            let fail = l.capture(|l| {
                l.emit(StmtKind::Assign {
                    dst: error,
                    value: build::constant(1, 1),
                })
            });
            l.emit_if(differ, fail, Vec::new());
        });
        self.emit_if(cond, body, Vec::new());
    }

    /// `update_checksum(condition, data, checksum, algorithm)`
    pub(super) fn update_checksum(&mut self, args: &[Arg], payload: bool, span: Span) {
        if self.half == Half::Parser {
            return self.report(errors::extern_place(span, "update_checksum", "controls"));
        }
        let cond = self.scalar_arg(args, 0);
        let body = self.capture(|l| {
            let Some(computed) = l.checksum(args, payload, span) else {
                return;
            };
            let target = l.out_arg(args, 2);
            l.store(&target, Value::Bits(Expr::Slot(computed)));
        });
        self.emit_if(cond, body, Vec::new());
    }

    /// `Checksum16.get(data)`
    pub(super) fn checksum16(&mut self, args: &[Arg], _span: Span) -> Value {
        let Some(data) = self.data(args, 0, HashAlgorithm::Csum16) else {
            return Value::Nothing;
        };
        let dst = self.new_slot("$checksum", 16);
        self.emit(StmtKind::Hash {
            dst,
            algorithm: HashAlgorithm::Csum16,
            data,
            payload: false,
        });
        Value::Bits(Expr::Slot(dst))
    }
}
