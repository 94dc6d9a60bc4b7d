//! Keys with several narrow fields in one limb, so that there is less to mask, hash and compare. It knows no entries.

use super::shape::KeyShape;
use ir::{Form, MatchKind};

/// The most limbs of a packed key; longer keys are not packed.
const MOST_LIMBS: usize = 8;

/// Where each limb of a key goes in the packed key.
#[derive(Clone, Debug)]
pub struct Packing {
    /// For each limb of the key, the limb of the packed key and the number of bits by which it is shifted up. Empty
    /// if keys are not packed.
    moves: Vec<(u8, u8)>,
    limbs: usize,
}

impl Packing {
    /// Returns the packing of a table's keys for [`crate::Runtime::lookup_packed`], or `None` if the table does not
    /// support packed keys. It does if its entries have priorities, and if it has no range fields (which need the unpacked
    /// key), neither a direct meter nor an action profile, and a key that can be packed.
    pub fn of_table(table: &ir::Table) -> Option<Packing> {
        let shape = KeyShape::new(&table.keys);
        let is_plain = table.direct_meter.is_none() && table.implementation.is_none();
        let packing = Packing::new(&shape);
        (is_plain && shape.has(MatchKind::has_priority) && !shape.has(|k| k.form() == Form::Range))
            .then_some(packing)
            .filter(|p| !p.moves.is_empty())
    }

    /// Returns the packing in which a table stores keys that have only exact fields, or `None` if packing saves no
    /// limbs. [`crate::Runtime::lookup`] expects such keys unpacked.
    pub fn of_exact(shape: &KeyShape) -> Option<Packing> {
        let is_exact = shape.fields.iter().all(|f| f.kind.is_exact());
        let packing = Packing::new(shape);
        (is_exact && packing.limbs < shape.limbs()).then_some(packing)
    }

    /// Returns, for each limb of the key, the number of the limb of the packed key into which it goes, and by how
    /// many bits it is shifted up there.
    pub fn moves(&self) -> impl Iterator<Item = (usize, u32)> {
        (self.moves.iter()).map(|&(to, up)| (usize::from(to), u32::from(up)))
    }

    /// Makes the packing for keys of this shape: each limb goes into the first packed limb that has room.
    pub(super) fn new(shape: &KeyShape) -> Packing {
        let mut used: Vec<u32> = Vec::new();
        let mut moves = Vec::new();
        for field in &shape.fields {
            for limb in 0..field.limbs {
                let bits = (field.width - 64 * limb as u32).min(64);
                let room = used.iter().position(|&used| used + bits <= 64);
                let to = room.unwrap_or_else(|| {
                    used.push(0);
                    used.len() - 1
                });
                moves.push((to as u8, used[to] as u8));
                used[to] += bits;
            }
            if used.len() > MOST_LIMBS {
                return Packing {
                    moves: Vec::new(),
                    limbs: shape.limbs(),
                };
            }
        }
        Packing {
            moves,
            limbs: used.len(),
        }
    }

    /// Returns the number of limbs of a packed key.
    pub fn limbs(&self) -> usize {
        self.limbs
    }

    /// Packs a key, a value or a mask, calls `use_packed` with the result, and returns what `use_packed` returns. No
    /// memory is allocated.
    #[inline]
    pub fn pack<R>(&self, key: &[u64], use_packed: impl FnOnce(&[u64]) -> R) -> R {
        if self.moves.is_empty() {
            return use_packed(key);
        }
        let mut packed = [0; MOST_LIMBS];
        for (&limb, &(to, up)) in key.iter().zip(&self.moves) {
            packed[usize::from(to) & (MOST_LIMBS - 1)] |= limb << (up & 63);
        }
        use_packed(&packed[..self.limbs])
    }
}
