//! The layout of a key's fields, and an entry's matches in the form that the lookup structures take. It knows no entries.

use super::ternary::RangeCheck;
use ir::{Bits, KeyMatch, MatchKind};
use smallvec::{SmallVec, smallvec};

/// Where each key field lies in the packed key.
#[derive(Clone, Debug)]
pub struct KeyShape {
    pub(super) fields: Vec<KeyField>,
    pub(super) limbs: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct KeyField {
    pub kind: MatchKind,
    pub width: u32,
    /// First limb.
    pub offset: usize,
    pub limbs: usize,
}

impl KeyShape {
    /// The shape of a table's key.
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

    /// Length of a key, in limbs.
    pub fn limbs(&self) -> usize {
        self.limbs
    }

    pub(super) fn has(&self, kinds: &[MatchKind]) -> bool {
        self.fields.iter().any(|f| kinds.contains(&f.kind))
    }

    /// Ones in the limbs of the fields of this kind.
    pub(super) fn mask_of(&self, kind: MatchKind) -> Box<[u64]> {
        let mut mask = vec![0; self.limbs];
        for field in self.fields.iter().filter(|f| f.kind == kind) {
            field.slice_mut(&mut mask).fill(u64::MAX);
        }
        mask.into()
    }

    /// The values of the fields of a packed key.
    pub fn unpack(&self, key: &[u64]) -> Vec<Bits> {
        self.fields
            .iter()
            .map(|f| Bits::from_limbs(f.width, &key[f.offset..f.offset + f.limbs]))
            .collect()
    }
}

impl KeyField {
    fn slice_mut<'a>(&self, limbs: &'a mut [u64]) -> &'a mut [u64] {
        &mut limbs[self.offset..self.offset + self.limbs]
    }
}

/// Of most keys without an allocation.
type Limbs = SmallVec<[u64; 4]>;

/// The matches of an entry in packed form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pub value: Limbs,
    pub mask: Limbs,
    pub ranges: Vec<RangeCheck>,
    /// Of the lpm field, if any.
    pub prefix_len: u32,
}

impl Pattern {
    /// `matches` has the kinds and widths of `shape`, in canonical form.
    pub fn new(shape: &KeyShape, matches: &[KeyMatch]) -> Pattern {
        let mut pattern = Pattern {
            value: smallvec![0; shape.limbs],
            mask: smallvec![0; shape.limbs],
            ranges: Vec::new(),
            prefix_len: 0,
        };
        for (field, key_match) in shape.fields.iter().zip(matches) {
            pattern.set(field, key_match);
        }
        pattern
    }

    fn set(&mut self, field: &KeyField, key_match: &KeyMatch) {
        match key_match {
            KeyMatch::Exact(value) | KeyMatch::Optional(Some(value)) => {
                self.put(field, value, &Bits::ones(field.width));
            }
            KeyMatch::Optional(None) => {}
            KeyMatch::Ternary { value, mask } => self.put(field, value, mask),
            KeyMatch::Lpm { value, prefix_len } => {
                self.prefix_len = *prefix_len;
                let mask = Bits::prefix_mask(field.width, *prefix_len);
                self.put(field, value, &mask);
            }
            KeyMatch::Range { low, high } => {
                let (value, mask) = self.set_range(field, low, high);
                self.put(field, &value, &mask);
            }
        }
    }

    fn put(&mut self, field: &KeyField, value: &Bits, mask: &Bits) {
        field
            .slice_mut(&mut self.value)
            .copy_from_slice(value.limbs());
        field
            .slice_mut(&mut self.mask)
            .copy_from_slice(mask.limbs());
    }

    /// Notes the bounds; gives the leading bits that they share.
    fn set_range(&mut self, field: &KeyField, low: &Bits, high: &Bits) -> (Bits, Bits) {
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
        (shared, mask)
    }
}
