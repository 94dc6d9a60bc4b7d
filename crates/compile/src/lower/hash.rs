//! Hashes and checksums.

use ir::{BinaryOp, Bits, Expr, HashAlgorithm, SlotId, StmtKind};
use syntax::source::Span;

use super::place::Value;
use super::{Body, Code, Context, Unit, build};
use crate::errors;
use crate::hir::Arg;
use crate::meaning::Algorithm;
use crate::types::Ty;

/// The data of a hash, in order.
pub(super) struct Data {
    pub parts: Vec<Part>,
}

/// A piece of the data of a hash.
#[derive(Clone)]
pub(super) enum Part {
    Bits(Expr),
    /// A varbit: its bits and its length in bits.
    Varbit(Expr, Expr),
}

impl Body<'_, '_> {
    /// Returns the hash algorithm that the argument at position `i` names. Reports an algorithm that the
    /// architecture does not have, and returns `None`.
    pub(super) fn algorithm(&mut self, args: &[Arg], i: usize) -> Option<Algorithm> {
        let position = self.constant_arg(args, i, "the hash algorithm")?;
        let argument = args.get(i).and_then(Arg::expr)?;
        let Ty::Enum(id) = argument.ty else {
            return None;
        };
        let members = &self.module.types.enumeration(id).members;
        let name = members.get(position as usize)?.0.clone();
        let known = self.externs().algorithm(&name);
        if known.is_none() {
            self.report(errors::hash_algorithm(argument.span, &name));
        }
        known
    }

    /// Returns the hash algorithm that the argument at position `i` names, for an object whose hash must
    /// depend on the data alone. Reports the random algorithm, and returns `None` for it.
    pub(super) fn fixed_algorithm(
        &mut self,
        args: &[Arg],
        i: usize,
        span: Span,
    ) -> Option<HashAlgorithm> {
        match self.algorithm(args, i)? {
            Algorithm::Of(algorithm) => Some(algorithm),
            Algorithm::Random => {
                let at = args.get(i).and_then(Arg::expr).map_or(span, |e| e.span);
                self.report(errors::selector_algorithm(at));
                None
            }
        }
    }

    /// Evaluates the argument at position `i`, whose values are to be hashed, and returns its scalars and
    /// varbits; `None` if there is no such argument.
    pub(super) fn data(&mut self, args: &[Arg], i: usize) -> Option<Data> {
        let e = args.get(i).and_then(Arg::expr)?;
        let value = self.eval(e);
        let mut parts = Vec::new();
        collect(&value, &mut parts);
        Some(Data { parts })
    }

    /// Emits the computation of a checksum for the arguments (condition, data, checksum, algorithm), and
    /// returns the slot of the result, which has the width of the argument `checksum`; `None` after an error.
    /// If `payload` is true, the packet's payload follows the data.
    pub(super) fn checksum(&mut self, args: &[Arg], payload: bool) -> Option<ir::SlotId> {
        let algorithm = self.algorithm(args, 3)?;
        let data = self.data(args, 1)?;
        let ty = args.get(2).and_then(Arg::expr)?.ty.clone();
        let width = self.module.types.scalar_width(&ty)?;
        let dst = self.new_slot("$checksum", width);
        self.emit_hash(dst, algorithm, data, payload);
        Some(dst)
    }

    /// Lowers `Checksum16.get(data)` and returns its value, a checksum of 16 bits.
    pub(super) fn checksum16(&mut self, args: &[Arg]) -> Value {
        let Some(data) = self.data(args, 0) else {
            return Value::Nothing;
        };
        let dst = self.new_slot("$checksum", 16);
        self.emit_hash(dst, Algorithm::Of(HashAlgorithm::Csum16), data, false);
        Value::Bits(Expr::Slot(dst))
    }
}

impl Code<'_> {
    /// Emits the hash of `data`, and builds the value `base + hash % max`, or `base` if `max` is zero, in
    /// `width` bits.
    pub(super) fn hash_within(
        &mut self,
        algorithm: Algorithm,
        base: Expr,
        data: Data,
        max: Expr,
        width: u32,
    ) -> Expr {
        let slots = &self.program.slots;
        let work = 64.max(max.width(slots)).max(base.width(slots)).max(width);
        let hashed = self.new_slot("$hash", work);
        self.emit_hash(hashed, algorithm, data, false);
        let slots = &self.program.slots;
        let (base, max) = (
            build::resize(base, work, slots),
            build::resize(max, work, slots),
        );
        let within = build::binary(BinaryOp::Mod, Expr::Slot(hashed), max, slots);
        let sum = build::binary(BinaryOp::Add, base, within, slots);
        build::resize(sum, width, slots)
    }

    /// Emits the computation of a hash of `data` into the slot `dst`. If `payload` is true, the packet's
    /// payload follows the data.
    pub(super) fn emit_hash(
        &mut self,
        dst: SlotId,
        algorithm: Algorithm,
        data: Data,
        payload: bool,
    ) {
        let algorithm = match algorithm {
            Algorithm::Of(algorithm) => algorithm,
            Algorithm::Random => return self.emit_random(dst),
        };
        let words = matches!(algorithm, HashAlgorithm::Csum16 | HashAlgorithm::Xor16);
        let open = (0..data.parts.len()).find(|i| self.is_open(&data, *i, words, payload));
        let Some(at) = open else {
            let data = data.parts.into_iter().map(|p| self.filled(p)).collect();
            return self.emit(StmtKind::Hash {
                dst,
                algorithm,
                data,
                payload,
            });
        };
        self.spend(1);
        if self.exhausted() {
            return;
        }
        // One hash for each length that the varbit can have.
        let Part::Varbit(bits, length) = data.parts[at].clone() else {
            return;
        };
        let with_length = |l: &mut Self, n: u32| {
            let mut parts = data.parts.clone();
            parts.remove(at);
            if n > 0 {
                let known = build::slice(bits.clone(), n - 1, 0, &l.program.slots);
                parts.insert(at, Part::Bits(known));
            }
            let data = Data { parts };
            l.capture(|l| l.emit_hash(dst, Algorithm::Of(algorithm), data, payload))
        };
        let lengths = self.varbit_lengths(bits.width(&self.program.slots));
        let cases: Vec<_> = lengths
            .into_iter()
            .map(|n| {
                let value = Bits::from_u64(32, u64::from(n));
                (vec![value], with_length(self, n))
            })
            .collect();
        let default = with_length(self, 0);
        self.emit_switch(length, cases, default);
    }

    /// Emits the draw of a random number, from the switch's generator, into the low 64 bits of a slot; higher
    /// bits become zero. The users of a hash need no more bits.
    fn emit_random(&mut self, dst: SlotId) {
        let width = self.program.slots[dst.index()].width;
        let drawn = self.new_slot("$random", width.min(64));
        self.emit(StmtKind::Random {
            dst: drawn,
            low: Expr::Const(Bits::zero(width.min(64))),
            high: Expr::Const(Bits::ones(width.min(64))),
        });
        let value = build::resize(Expr::Slot(drawn), width, &self.program.slots);
        self.set(dst, value);
    }
}

impl Unit<'_> {
    /// Returns whether a hash needs the run-time length of the part `at`, a varbit, so that it must be
    /// computed separately for each length. The length does not matter to the 16-bit sums (`words` is true),
    /// which ignore zero words, if the varbit begins at a multiple of 16 bits and either is the last part or
    /// can only have lengths that are multiples of 16 bits: it is then hashed in its full width, with zeros
    /// at its end.
    fn is_open(&self, data: &Data, at: usize, words: bool, payload: bool) -> bool {
        let slots = &self.program.slots;
        let Part::Varbit(bits, _) = &data.parts[at] else {
            return false;
        };
        let width = |part: &Part| match part {
            Part::Bits(e) | Part::Varbit(e, _) => e.width(slots),
        };
        let is_word = |n: u32| n.is_multiple_of(16);
        let before: u32 = data.parts[..at].iter().map(width).sum();
        let last = at + 1 == data.parts.len() && !payload;
        let full = bits.width(slots);
        let whole = last || is_word(full) && self.varbit_lengths(full).into_iter().all(is_word);
        !(words && is_word(before) && whole)
    }

    /// Returns a part of the data in its full width: the bits of a varbit are shifted to the left end, with
    /// zeros after them.
    fn filled(&self, part: Part) -> Expr {
        let slots = &self.program.slots;
        match part {
            Part::Bits(e) => e,
            Part::Varbit(bits, length) => {
                let full = build::constant(32, u64::from(bits.width(slots)));
                let by = build::binary(BinaryOp::Sub, full, length, slots);
                build::binary(BinaryOp::Shl, bits, by, slots)
            }
        }
    }

    /// Returns the validity slot of the header of which `expr` is a field; `None` if `expr` is no header field.
    pub(super) fn validity_of_field(&self, expr: &Expr) -> Option<SlotId> {
        let Expr::Slot(slot) = expr else { return None };
        let headers = self.program.headers.iter();
        let mut of_field = headers.filter(|h| h.fields.iter().any(|f| f.slot == *slot));
        of_field.next().map(|h| h.valid)
    }
}

impl Context<'_> {
    /// Returns the lengths in bits, except zero, that a varbit of at most `width` bits can have: those with
    /// which some header of the program has whole bytes. No other length is ever extracted, and varbits are
    /// otherwise only copied.
    fn varbit_lengths(&self, width: u32) -> Vec<u32> {
        let structs = &self.module.types.structs;
        let fixed = structs.iter().filter_map(|def| {
            let has = |t: &Ty| matches!(t, Ty::Varbit(_));
            def.fields.iter().any(|f| has(&f.ty)).then(|| {
                let widths = def.fields.iter().filter(|f| !has(&f.ty));
                let widths = widths.map(|f| self.module.types.packed_width(&f.ty).unwrap_or(0));
                widths.sum::<u32>() % 8
            })
        });
        let beyond: Vec<u32> = fixed.collect();
        (1..=width)
            .filter(|n| beyond.iter().any(|b| (b + n).is_multiple_of(8)))
            .collect()
    }
}

/// Appends to `out` the scalars and varbits that a value consists of, in order.
fn collect(value: &Value, out: &mut Vec<Part>) {
    match value {
        Value::Bits(e) => out.push(Part::Bits(e.clone())),
        Value::Varbit(bits, length) => out.push(Part::Varbit(bits.clone(), length.clone())),
        Value::Fields(items)
        | Value::Header(_, items)
        | Value::Union(items)
        | Value::Stack(items, _) => items.iter().for_each(|v| collect(v, out)),
        Value::Int(_) | Value::Str(_) | Value::Object(_) | Value::Nothing => {}
    }
}
