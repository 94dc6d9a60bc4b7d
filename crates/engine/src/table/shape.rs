//! The layout of a key's fields, and an entry's matches in the form that the lookup structures take. It knows no entries.

use super::ternary::RangeCheck;
use ir::{Bits, Form, MatchKind};
use smallvec::SmallVec;

/// The position of each key field in the packed key.
#[derive(Clone, Debug)]
pub struct KeyShape {
    pub(super) fields: Vec<KeyField>,
    pub(super) limbs: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct KeyField {
    pub kind: MatchKind,
    pub width: u32,
    /// The first limb of the field.
    pub offset: usize,
    pub limbs: usize,
}

/// How the entry that matches a key is found.
pub(super) enum Search<'a> {
    /// By the values of the exact fields.
    Exact,
    /// By the longest prefix of this field, and the values of the exact fields.
    Prefix(&'a KeyField),
    /// By values under masks, of those that match the one with the highest priority.
    Masked,
}

impl KeyShape {
    /// Makes the shape of a table's key, in which each field begins at a limb of its own.
    pub fn new(keys: &[ir::Key]) -> KeyShape {
        let mut limbs = 0;
        let fields = keys
            .iter()
            .map(|key| {
                let field = KeyField {
                    kind: key.kind,
                    width: key.width,
                    offset: limbs,
                    limbs: key.width.div_ceil(64) as usize,
                };
                limbs += field.limbs;
                field
            })
            .collect();
        KeyShape { fields, limbs }
    }

    /// Returns the length of a key, in limbs.
    pub fn limbs(&self) -> usize {
        self.limbs
    }

    /// Returns how entries are found among those of a table with such a key.
    pub(super) fn search(&self) -> Search<'_> {
        if self.has(MatchKind::has_priority) {
            return Search::Masked;
        }
        let by_prefix = self.fields.iter().find(|f| f.kind.is_prefix());
        by_prefix.map_or(Search::Exact, Search::Prefix)
    }

    /// Returns whether a field has a kind for which `is` returns true.
    pub(super) fn has(&self, is: impl Fn(MatchKind) -> bool) -> bool {
        self.fields.iter().any(|f| is(f.kind))
    }

    /// Returns a mask for a key in which all bits of the exact fields, and the padding of their limbs, are ones.
    pub(super) fn exact_mask(&self) -> Box<[u64]> {
        let mut mask = vec![0; self.limbs];
        for field in self.fields.iter().filter(|f| f.kind.is_exact()) {
            field.slice_mut(&mut mask).fill(u64::MAX);
        }
        mask.into()
    }

    /// Returns the values of a key's fields, from the key's limbs.
    pub fn unpack(&self, key: &[u64]) -> Vec<Bits> {
        self.fields
            .iter()
            .map(|f| Bits::from_limbs(f.width, f.slice(key)))
            .collect()
    }
}

impl KeyField {
    pub fn slice<'a>(&self, limbs: &'a [u64]) -> &'a [u64] {
        &limbs[self.offset..self.offset + self.limbs]
    }

    pub fn slice_mut<'a>(&self, limbs: &'a mut [u64]) -> &'a mut [u64] {
        &mut limbs[self.offset..self.offset + self.limbs]
    }
}

/// Limbs of a key or record; those of most keys need no allocation.
pub(super) type Limbs = SmallVec<[u64; 4]>;

/// The matches of an entry that has a priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pub value: Limbs,
    pub mask: Limbs,
    pub ranges: Vec<RangeCheck>,
}

impl Pattern {
    /// Makes a pattern from matches in the form in which [`super::entries::Entries`] stores them.
    pub fn new(shape: &KeyShape, packed: &[u64]) -> Pattern {
        let (value, mask) = packed.split_at(shape.limbs);
        let mut pattern = Pattern {
            value: value.into(),
            mask: mask.into(),
            ranges: Vec::new(),
        };
        for field in shape.fields.iter().filter(|f| f.kind.form() == Form::Range) {
            let bound = |limbs: &[u64]| Bits::from_limbs(field.width, field.slice(limbs));
            pattern.set_range(field, &bound(value), &bound(mask));
        }
        pattern
    }

    /// Sets the value and mask of a range field to the leading bits that all numbers from `low` to `high` share. Adds
    /// the bounds to the ranges to be checked on each match, unless the shared bits alone determine the range.
    fn set_range(&mut self, field: &KeyField, low: &Bits, high: &Bits) {
        let differing = Bits::binary(ir::BinaryOp::Xor, low, high).bit_length();
        let mask = Bits::prefix_mask(field.width, field.width - differing);
        let shared = low.and(&mask);
        let covers_shared_prefix =
            low == &shared && high == &Bits::binary(ir::BinaryOp::Or, &shared, &mask.not());
        if !covers_shared_prefix {
            self.ranges.push(RangeCheck {
                offset: field.offset,
                low: low.limbs().into(),
                high: high.limbs().into(),
            });
        }
        let (value, mask_limbs) = (&mut self.value, &mut self.mask);
        field.slice_mut(value).copy_from_slice(shared.limbs());
        field.slice_mut(mask_limbs).copy_from_slice(mask.limbs());
    }
}
