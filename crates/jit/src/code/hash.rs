//! Hashes and checksums.
//!
//! The Internet checksum is computed on values: a sum of 16-bit words is congruent, modulo 2^16 - 1, to the number that
//! the words spell, so whole limbs can be added after shifting them to where they end within a word. The other
//! functions see bytes that a [`Packer`] has put into scratch memory.

use super::bytes::Packer;
use super::wide::{Wide, limbs_for};
use super::{Gen, Memory, Place, Slots, Words};
use crate::calls::algorithm_code;
use crate::shims::Shim;
use cranelift_codegen::ir::types::{I16, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use ir::{Expr, HashAlgorithm, HeaderId, SlotId};
use std::collections::BTreeMap;

/// Runs of bytes (first, number) of headers, by header.
type PacketBytes = BTreeMap<HeaderId, Vec<(u32, u32)>>;

/// The sum of a header's bytes in the packet, which all code generated later in the function can use.
#[derive(Clone)]
pub(super) struct Summed {
    header: HeaderId,
    /// The runs of bytes that were summed: the first byte of each, and how many.
    runs: Vec<(u32, u32)>,
    sum: Value,
}

/// A field of a header in the packet that now has another value than the packet.
struct Change {
    slot: SlotId,
    /// The offset of its first byte in the header.
    at: u32,
    /// Its shift in the sum in bits, before the exchange of bytes.
    up: u32,
}

/// A part of the data of a checksum.
enum Piece<'e> {
    Value(&'e Expr),
    /// Bytes of a header where it lies in the packet.
    Bytes {
        header: HeaderId,
        first: u32,
        bytes: u32,
    },
}

impl Gen<'_, '_> {
    /// Generates [`ir::StmtKind::Hash`]: a hash of `data`, followed by the payload if `payload`.
    pub(crate) fn hash(
        &mut self,
        dst: SlotId,
        algorithm: HashAlgorithm,
        data: &[Expr],
        payload: bool,
    ) {
        let width = self.width(dst);
        let result = match algorithm {
            HashAlgorithm::Csum16 if !payload => self.checksum(data),
            _ => {
                let data = self.exprs(data);
                self.hash_bytes(algorithm, &data, payload, width)
            }
        };
        let result = self.resize(&result, width);
        self.write(dst, &result);
    }

    /// Generates the checksum of RFC 1071 over the concatenation of `data`.
    fn checksum(&mut self, data: &[Expr]) -> Wide {
        let widths = data.iter().map(|e| e.width(&self.program.slots));
        // Bits behind the value up to the end of the padded whole, of which only the place within a word counts.
        let mut behind = widths.sum::<u32>().next_multiple_of(16);
        let mut sum = self.imm(0);
        let mut in_packet = PacketBytes::new();
        if let Some(again) = self.sum_again(data) {
            return self.checksum_of(again);
        }
        for piece in self.pieces(data) {
            let expr = match piece {
                Piece::Bytes {
                    header,
                    first,
                    bytes,
                } => {
                    behind -= 8 * bytes;
                    in_packet.entry(header).or_default().push((first, bytes));
                    continue;
                }
                Piece::Value(expr) => expr,
            };
            let value = self.expr(expr);
            behind -= value.width;
            for &limb in &value.limbs {
                // Limbs are whole words, so all limbs of a value end at the same place within a word. At most 48 bits
                // are added for each limb, so that many more of them than fit in a hash do not overflow.
                let folded = if value.width <= 32 {
                    limb
                } else {
                    let high = self.shr_imm(limb, 32);
                    let low = self.and_imm(limb, u32::MAX.into());
                    self.b.ins().iadd(high, low)
                };
                let placed = self.shl_imm(folded, behind % 16);
                sum = self.b.ins().iadd(sum, placed);
            }
        }
        let only = in_packet.len() == 1;
        for (header, runs) in in_packet {
            let more = self.sum_in_packet(header, &runs);
            if only {
                self.note_sum(header, runs, more);
            }
            sum = self.b.ins().iadd(sum, more);
        }
        self.checksum_of(sum)
    }

    /// Records a header's sum for [`Gen::sum_again`] if the header is certainly valid and all code generated
    /// later runs after this point, as in checksum verification.
    fn note_sum(&mut self, header: HeaderId, runs: Vec<(u32, u32)>, sum: Value) {
        let valid = self.program.headers[header.index()].valid;
        let certain = self.surroundings.branches == 0
            && !self.surroundings.end_used
            && self.parser_blocks.is_none()
            && self.is_on_arrival();
        if certain && self.known_slot(valid) == Some(1) {
            self.surroundings.summed = Some(Summed { header, runs, sum });
        }
    }

    /// Generates the sum of `data` from an earlier sum of the same bytes of a header: for each of the few
    /// fields that have changed since, subtracts the value still in the packet and adds the present one. The
    /// result is exactly the sum of the bytes, neither negative nor too large. `None` if there is no such
    /// sum, the header may be invalid, or the machine is big-endian.
    fn sum_again(&mut self, data: &[Expr]) -> Option<Value> {
        let Summed { header, runs, sum } = self.surroundings.summed.clone()?;
        let valid = self.program.headers[header.index()].valid;
        if cfg!(target_endian = "big") || self.known_slot(valid) != Some(1) {
            return None;
        }
        let changes = self.changes_since(data, header, &runs)?;
        let base = self.source(header);
        let mut sum = sum;
        for change in changes {
            let width = self.width(change.slot);
            let flags = self.packet_memory();
            let at = change.at as i32;
            let former = match width {
                8 => self.b.ins().uload8(I64, flags, base, at),
                16 => self.b.ins().uload16(I64, flags, base, at),
                _ => self.b.ins().uload32(flags, base, at),
            };
            let now = self.read(change.slot).low();
            let now = self.swap_bytes(now, width);
            let more = self.b.ins().isub(now, former);
            // The bytes of a word are exchanged in sums of a machine that reads them so.
            let more = self.shl_imm(more, change.up + 8);
            sum = self.b.ins().iadd(sum, more);
        }
        Some(sum)
    }
}

impl Slots<'_, '_> {
    /// Returns the fields of `data` whose values may differ from those in the packet. Returns `None` if
    /// `data` does not consist of the bytes in `runs` of the header, or if a change cannot be added to the
    /// sum directly.
    fn changes_since(
        &mut self,
        data: &[Expr],
        header: HeaderId,
        runs: &[(u32, u32)],
    ) -> Option<Vec<Change>> {
        let mut left: Vec<u32> = runs.iter().flat_map(|&(at, n)| at..at + n).collect();
        let (mut changes, mut bits) = (Vec::new(), 0);
        // The place at which the next field has to be if the last one did not end with a byte.
        let mut open = None;
        for expr in data {
            let Expr::Slot(slot) = expr else { return None };
            let home = self.home_in_header(*slot).filter(|h| h.header == header)?;
            let width = self.width(*slot);
            if self.places[slot.index()] == Place::EditedInPacket {
                return None;
            }
            if open.map_or(home.offset % 8 != 0, |at| at != home.offset) {
                return None;
            }
            let behind = home.offset + width;
            open = (!behind.is_multiple_of(8)).then_some(behind);
            // The first field in a byte stands for all of it, since the others follow.
            let (first, end) = (home.offset.div_ceil(8), behind.div_ceil(8));
            for byte in first..end {
                let at = left.iter().position(|&b| b == byte)?;
                left.swap_remove(at);
            }
            let &(run, bytes) =
                (runs.iter()).find(|r| (r.0..r.0 + r.1).contains(&(home.offset / 8)))?;
            if (home.offset - 8 * run) % 16 != bits % 16 {
                return None;
            }
            bits += width;
            if self.home_in_packet(expr).is_none() {
                let whole = home.offset % 8 == 0 && matches!(width, 8 | 16 | 32);
                let up = place_in_sum(home.offset / 8 - run, width / 8, bytes).filter(|_| whole)?;
                changes.push(Change {
                    slot: *slot,
                    at: home.offset / 8,
                    up,
                });
            }
        }
        (left.is_empty() && open.is_none()).then_some(changes)
    }

    /// Generates the sum of bytes of a header in the packet, given as runs (first byte, number of bytes);
    /// zero if the header is not valid.
    fn sum_in_packet(&mut self, header: HeaderId, runs: &[(u32, u32)]) -> Value {
        let valid = self.read(self.program.headers[header.index()].valid).low();
        let zero = self.imm(0);
        match self.known_value(valid) {
            Some(0) => return zero,
            Some(_) => return self.sum_runs(header, runs),
            None => {}
        }
        let (there, after) = (self.b.create_block(), self.b.create_block());
        self.b.append_block_param(after, I64);
        self.b.ins().brif(valid, there, &[], after, &[zero.into()]);
        self.continue_in(there);
        let sum = self.sum_runs(header, runs);
        self.b.ins().jump(after, &[sum.into()]);
        self.continue_in(after);
        self.b.block_params(after)[0]
    }

    fn sum_runs(&mut self, header: HeaderId, runs: &[(u32, u32)]) -> Value {
        let base = self.source(header);
        let mut sum = self.imm(0);
        for &(first, bytes) in runs {
            let from = self.b.ins().iadd_imm_u(base, i64::from(first));
            let more = self.sum_bytes(from, bytes);
            sum = self.b.ins().iadd(sum, more);
        }
        sum
    }

    /// Returns the data of a checksum as pieces, with adjacent whole bytes of headers in the packet joined into one
    /// piece.
    fn pieces<'e>(&self, data: &'e [Expr]) -> Vec<Piece<'e>> {
        let slots = &self.program.slots;
        let mut pieces = Vec::new();
        let (mut i, mut at) = (0, 0);
        while i < data.len() {
            let home = self.home_in_packet(&data[i]);
            let home = home.filter(|h| at % 16 == 0 && h.offset % 8 == 0);
            let (mut bits, mut count) = (0, 0);
            if let Some(home) = home {
                let mut end = home.offset;
                for (n, expr) in data[i..].iter().enumerate() {
                    let next = self.home_in_packet(expr);
                    if next.is_none_or(|h| (h.header, h.offset) != (home.header, end)) {
                        break;
                    }
                    end += expr.width(slots);
                    if end % 8 == 0 {
                        (bits, count) = (end - home.offset, n + 1);
                    }
                }
                if count > 0 {
                    pieces.push(Piece::Bytes {
                        header: home.header,
                        first: home.offset / 8,
                        bytes: bits / 8,
                    });
                }
            }
            if count == 0 {
                pieces.push(Piece::Value(&data[i]));
                (bits, count) = (data[i].width(slots), 1);
            }
            i += count;
            at += bits;
        }
        pieces
    }
}

impl Memory<'_, '_> {
    fn hash_bytes(
        &mut self,
        algorithm: HashAlgorithm,
        data: &[Wide],
        payload: bool,
        width: u32,
    ) -> Wide {
        let bits: u32 = data.iter().map(|v| v.width).sum();
        let buffer = self.scratch((bits.div_ceil(8) + Packer::SLACK).div_ceil(8) as usize);
        let mut packer = Packer::new(buffer);
        for value in data {
            self.pack(&mut packer, value);
        }
        let bytes = self.pack_end(packer);
        // Nothing that a hash gives is wider than 64 bits; the limbs above are zero.
        let limbs = limbs_for(width);
        let out = self.scratch(limbs);
        let algorithm = self.imm(algorithm_code(algorithm));
        let (bytes, payload) = (self.imm(bytes.into()), self.imm(payload.into()));
        let out_limbs = self.imm(limbs as u64);
        let args = [algorithm, buffer, bytes, payload, out, out_limbs];
        self.call(Shim::Hash, &args);
        self.reload(out, limbs as u32 * 64)
    }
}

impl Words<'_> {
    fn checksum_of(&mut self, sum: Value) -> Wide {
        let sum = self.fold_words(sum);
        let result = self.b.ins().bxor_imm_u(sum, 0xffff);
        Wide::word(16, result)
    }

    fn swap_bytes(&mut self, value: Value, width: u32) -> Value {
        let narrow = match width {
            8 => return value,
            16 => I16,
            _ => I32,
        };
        let value = self.b.ins().ireduce(narrow, value);
        let value = self.b.ins().bswap(value);
        self.b.ins().uextend(I64, value)
    }

    /// Generates the sum, in one's complement, of the four 16-bit words of a limb: each carry is added back
    /// to the sum.
    fn fold_words(&mut self, sum: Value) -> Value {
        // A number added to itself with its halves exchanged has in its upper half the sum of the halves with the carry around.
        let crossed = self.b.ins().rotl_imm_u(sum, 32);
        let sum = self.b.ins().iadd(sum, crossed);
        let sum = self.shr_imm(sum, 32);
        let sum = self.b.ins().ireduce(I32, sum);
        let crossed = self.b.ins().rotl_imm_u(sum, 16);
        let sum = self.b.ins().iadd(sum, crossed);
        let sum = self.b.ins().ushr_imm_u(sum, 16);
        self.b.ins().uextend(I64, sum)
    }
}

/// Returns the shift in bits with which [`Gen::sum_bytes`] adds a part, the `width` bytes from byte `at` on,
/// of `bytes` bytes to its sum; `None` if it does not load them all together.
fn place_in_sum(at: u32, width: u32, bytes: u32) -> Option<u32> {
    let whole = bytes / 4 * 4;
    // Behind the last four bytes are two and one.
    let (first, end) = match at {
        _ if at < whole => (at / 4 * 4, at / 4 * 4 + 4),
        _ if bytes % 4 >= 2 && at < whole + 2 => (whole, whole + 2),
        _ => (bytes - 1, bytes),
    };
    (at + width <= end).then_some(8 * (at - first))
}
