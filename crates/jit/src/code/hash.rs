//! Hashes and checksums.
//!
//! The Internet checksum is computed on values: a sum of 16-bit words is congruent, modulo 2^16 - 1, to the number that
//! the words spell, so whole limbs can be added after shifting them to where they end within a word. The other
//! functions see bytes that a [`Packer`] has put into scratch memory.

use super::Gen;
use super::bytes::Packer;
use super::wide::{Wide, limbs_for};
use crate::shims::{Shim, algorithm_code};
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use ir::{Expr, HashAlgorithm, HeaderId, SlotId};
use std::collections::BTreeMap;

/// Runs of bytes (first, how many) by header.
type PacketBytes = BTreeMap<HeaderId, Vec<(u32, u32)>>;

/// A part of what is summed up.
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
    /// [`ir::StmtKind::Hash`].
    pub(crate) fn hash(
        &mut self,
        dst: SlotId,
        algorithm: HashAlgorithm,
        data: &[Expr],
        payload: bool,
    ) {
        let result = match algorithm {
            HashAlgorithm::Csum16 if !payload => self.checksum(data),
            _ => {
                let data = self.exprs(data);
                self.hash_bytes(algorithm, &data, payload, self.width(dst))
            }
        };
        let result = self.resize(&result, self.width(dst));
        self.write(dst, &result);
    }

    /// RFC 1071 over the concatenation of `data`.
    fn checksum(&mut self, data: &[Expr]) -> Wide {
        let widths = data.iter().map(|e| e.width(&self.program.slots));
        // Bits behind the value up to the end of the padded whole, of which only the place within a word counts.
        let mut behind = widths.sum::<u32>().next_multiple_of(16);
        let mut sum = self.imm(0);
        let mut in_packet = PacketBytes::new();
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
        for (header, runs) in in_packet {
            let more = self.sum_in_packet(header, &runs);
            sum = self.b.ins().iadd(sum, more);
        }
        let sum = self.fold_words(sum);
        let result = self.b.ins().bxor_imm_u(sum, 0xffff);
        Wide {
            width: 16,
            limbs: smallvec::smallvec![result],
        }
    }

    /// The sum of bytes of a header in the packet, each run of them from a byte on; zero if the header is not valid.
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

    /// The data of a checksum with whole bytes of headers that lie in the packet taken together.
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

    /// Adds the four words of a limb with their carries.
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
        // Nothing the hash gives is wider than 32 bits but for the identity, which gives whole limbs.
        let limbs = limbs_for(width);
        let out = self.scratch(limbs);
        let algorithm = self.imm(algorithm_code(algorithm));
        let (bytes, payload) = (self.imm(bytes.into()), self.imm(payload.into()));
        let out_limbs = self.imm(limbs as u64);
        let args = [
            self.frame, algorithm, buffer, bytes, payload, out, out_limbs,
        ];
        self.call(Shim::Hash, &args);
        self.reload(out, limbs as u32 * 64)
    }
}
