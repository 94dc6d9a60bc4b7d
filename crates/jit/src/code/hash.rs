//! Hashes and checksums.
//!
//! The Internet checksum is computed on values: a sum of 16-bit words is congruent, modulo 2^16 - 1, to the number that
//! the words spell, so whole limbs can be added after shifting them to where they end within a word. The other
//! functions see bytes that a [`Packer`] has put into scratch memory.

use super::Gen;
use super::bytes::Packer;
use super::wide::{Wide, limbs_for};
use crate::shims::{Shim, algorithm_code};
use cranelift_codegen::ir::{InstBuilder, Value};
use ir::{Expr, HashAlgorithm, SlotId};

impl Gen<'_, '_> {
    /// [`ir::StmtKind::Hash`].
    pub(crate) fn hash(
        &mut self,
        dst: SlotId,
        algorithm: HashAlgorithm,
        data: &[Expr],
        payload: bool,
    ) {
        let data = self.exprs(data);
        let result = match algorithm {
            HashAlgorithm::Csum16 if !payload => self.checksum(&data),
            _ => self.hash_bytes(algorithm, &data, payload, self.width(dst)),
        };
        let result = self.resize(&result, self.width(dst));
        self.write(dst, &result);
    }

    /// RFC 1071 over the concatenation of `data`.
    fn checksum(&mut self, data: &[Wide]) -> Wide {
        let total: u32 = data.iter().map(|v| v.width).sum();
        // Bits behind the value up to the end of the padded whole, of which only the place within a word counts.
        let mut behind = total.next_multiple_of(16);
        let mut sum = self.imm(0);
        for value in data {
            behind -= value.width;
            for &limb in &value.limbs {
                // Limbs are whole words, so all limbs of a value end at the same place within a word. At most 48 bits
                // are added for each limb, so that 65,536 of them (more than fit in a hash) do not overflow.
                let high = self.shr_imm(limb, 32);
                let low = self.and_imm(limb, u32::MAX.into());
                let folded = self.b.ins().iadd(high, low);
                let placed = self.shl_imm(folded, behind % 16);
                sum = self.b.ins().iadd(sum, placed);
            }
        }
        let sum = self.fold_words(sum);
        let complement = self.b.ins().bnot(sum);
        let result = self.and_imm(complement, 0xffff);
        Wide {
            width: 16,
            limbs: smallvec::smallvec![result],
        }
    }

    /// Adds the four words of a limb with their carries.
    fn fold_words(&mut self, sum: Value) -> Value {
        let mut sum = sum;
        // 64 bits become 33, 18, 17 and 16.
        for (bits, mask) in [
            (32, u32::MAX.into()),
            (16, 0xffff),
            (16, 0xffff),
            (16, 0xffff),
        ] {
            let high = self.shr_imm(sum, bits);
            let low = self.and_imm(sum, mask);
            sum = self.b.ins().iadd(high, low);
        }
        sum
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
