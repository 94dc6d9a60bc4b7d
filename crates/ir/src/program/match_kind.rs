//! Match kinds of key fields, each described in one place, and the matches of which entries consist.
//!
//! [`MatchKind::properties`] is the only list of what holds of each kind; other code asks it. Several kinds
//! share a *form* of matches, and code that handles matches distinguishes forms only. How entries are found
//! is decided in the engine, how they are encoded in the P4Runtime server.

use super::KeySet;
use crate::Bits;

/// The kind of match of a key field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatchKind {
    /// The value of the entry.
    Exact,
    /// A prefix; of the entries that match, the one with the longest wins. At most one field of a table has
    /// this kind.
    Lpm,
    /// A value under a mask.
    Ternary,
    /// The values between two bounds, both included.
    Range,
    /// The value of the entry, or any value.
    Optional,
    /// An input of an action selector's hash; not part of the lookup.
    Selector,
}

/// The form of the matches of a match kind, apart from a match of any value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// [`KeyMatch::Value`].
    Value,
    /// [`KeyMatch::Prefix`]; of entries that match, the one with the longest prefix wins.
    Prefix,
    /// [`KeyMatch::Masked`].
    Masked,
    /// [`KeyMatch::Range`].
    Range,
    /// None: the field is not part of the lookup, and each entry has [`KeyMatch::Any`] for it.
    Unstated,
}

/// What holds of all key fields of a match kind.
struct Properties {
    name: &'static str,
    form: Form,
    /// True if entries may match any value of the field.
    has_any: bool,
    /// True if several entries of a table with such a field may match, so that entries have priorities.
    has_priority: bool,
}

impl MatchKind {
    /// All kinds.
    pub const ALL: [MatchKind; 6] = [
        MatchKind::Exact,
        MatchKind::Lpm,
        MatchKind::Ternary,
        MatchKind::Range,
        MatchKind::Optional,
        MatchKind::Selector,
    ];

    const fn properties(self) -> Properties {
        let (name, form, has_any, has_priority) = match self {
            MatchKind::Exact => ("exact", Form::Value, false, false),
            MatchKind::Lpm => ("lpm", Form::Prefix, true, false),
            MatchKind::Ternary => ("ternary", Form::Masked, true, true),
            MatchKind::Range => ("range", Form::Range, true, true),
            MatchKind::Optional => ("optional", Form::Value, true, true),
            MatchKind::Selector => ("selector", Form::Unstated, true, false),
        };
        Properties {
            name,
            form,
            has_any,
            has_priority,
        }
    }

    /// Returns the name of the match kind in P4 source. P4Info has the same name in capitals.
    pub const fn name(self) -> &'static str {
        self.properties().name
    }

    /// Returns the match kind with the name `name` in P4 source; `None` if there is none.
    pub fn of_name(name: &str) -> Option<MatchKind> {
        MatchKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the form of the matches of this kind.
    pub const fn form(self) -> Form {
        self.properties().form
    }

    /// Returns whether entries may match any value of such a field.
    pub const fn has_any(self) -> bool {
        self.properties().has_any
    }

    /// Returns whether the entries of a table with such a field have priorities, of which the highest number wins.
    pub const fn has_priority(self) -> bool {
        self.properties().has_priority
    }

    /// Returns whether a field of this kind is part of the lookup. Otherwise neither entries nor the control
    /// plane give a match for it.
    pub const fn is_looked_up(self) -> bool {
        !matches!(self.form(), Form::Unstated)
    }

    /// Returns whether each entry matches a single value of such a field.
    pub const fn is_exact(self) -> bool {
        matches!(self.form(), Form::Value) && !self.has_any()
    }

    /// Returns whether a field of this kind is matched by its longest prefix.
    pub const fn is_prefix(self) -> bool {
        matches!(self.form(), Form::Prefix)
    }

    /// Returns the match of this kind, for a field of `width` bits, that accepts any value; `None` if entries
    /// must give a value.
    pub fn any(self, width: u32) -> Option<KeyMatch> {
        let zero = || Bits::zero(width);
        self.has_any().then(|| match self.form() {
            Form::Value | Form::Unstated => KeyMatch::Any,
            Form::Prefix | Form::Masked => self.of_two(zero(), zero()),
            Form::Range => self.of_two(zero(), Bits::ones(width)),
        })
    }

    /// Returns the match of this kind, for a field of `width` bits, that accepts the same values as `set`;
    /// `None` if there is none.
    pub fn of_set(self, set: &KeySet, width: u32) -> Option<KeyMatch> {
        let (first, second) = match set {
            KeySet::Any => return self.any(width),
            KeySet::ValueSet(_) => return None,
            KeySet::Mask { value, mask } => match self.form() {
                Form::Value if *mask != Bits::ones(width) => return None,
                Form::Prefix if *mask != Bits::prefix_mask(width, mask.count_ones()) => {
                    return None;
                }
                Form::Range if *mask != Bits::ones(width) => return None,
                Form::Range => (value, value),
                _ => (value, mask),
            },
            KeySet::Range { low, high } if self.form() == Form::Range => (low, high),
            KeySet::Range { .. } => return None,
        };
        self.is_looked_up()
            .then(|| self.of_two(first.clone(), second.clone()))
    }

    /// Returns the match of this kind that is made of two values: for a range, of its bounds; else of a value
    /// and a mask.
    pub fn of_two(self, first: Bits, second: Bits) -> KeyMatch {
        match self.form() {
            Form::Unstated => KeyMatch::Any,
            Form::Value if self.has_any() && second.is_zero() => KeyMatch::Any,
            Form::Value => KeyMatch::Value(first),
            Form::Prefix => KeyMatch::Prefix {
                value: first,
                prefix_len: second.count_ones(),
            },
            Form::Masked => KeyMatch::Masked {
                value: first,
                mask: second,
            },
            Form::Range => KeyMatch::Range {
                low: first,
                high: second,
            },
        }
    }
}

/// The match of one key field of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeyMatch {
    /// Any value, where the form of the kind has no such match.
    Any,
    /// One value.
    Value(Bits),
    /// The values whose first `prefix_len` bits are those of `value`; the other bits of `value` are zero.
    Prefix {
        /// Value.
        value: Bits,
        /// The number of bits that are compared.
        prefix_len: u32,
    },
    /// The values that equal `value` where the mask has ones; `value` is zero elsewhere.
    Masked {
        /// Value.
        value: Bits,
        /// Mask.
        mask: Bits,
    },
    /// The values between two bounds, both included.
    Range {
        /// Lowest.
        low: Bits,
        /// Highest.
        high: Bits,
    },
}

impl KeyMatch {
    /// Returns whether the match has the form of the match kind `kind`.
    pub fn is_of(&self, kind: MatchKind) -> bool {
        match self {
            KeyMatch::Any => kind.has_any() && matches!(kind.form(), Form::Value | Form::Unstated),
            KeyMatch::Value(_) => kind.form() == Form::Value,
            KeyMatch::Prefix { .. } => kind.form() == Form::Prefix,
            KeyMatch::Masked { .. } => kind.form() == Form::Masked,
            KeyMatch::Range { .. } => kind.form() == Form::Range,
        }
    }

    /// Returns the values of which the match consists: none, one (without the length of a prefix) or two.
    pub fn values(&self) -> impl Iterator<Item = &Bits> {
        let (first, second) = match self {
            KeyMatch::Any => (None, None),
            KeyMatch::Value(value) | KeyMatch::Prefix { value, .. } => (Some(value), None),
            KeyMatch::Masked { value, mask } => (Some(value), Some(mask)),
            KeyMatch::Range { low, high } => (Some(low), Some(high)),
        };
        first.into_iter().chain(second)
    }

    /// Checks that all values are `width` bits wide and that the match is in normal form: no ones outside of
    /// a prefix or mask, no prefix longer than the field, no empty range.
    ///
    /// # Errors
    ///
    /// A description of the first violation.
    pub fn check(&self, width: u32) -> Result<(), String> {
        if let Some(value) = self.values().find(|value| value.width() != width) {
            return Err(format!("{width} bits wide, the value {}", value.width()));
        }
        let is_within = |value: &Bits, mask: &Bits| value.and(mask) == *value;
        match self {
            KeyMatch::Prefix { prefix_len, .. } if *prefix_len > width => Err(format!(
                "a prefix of {prefix_len} bits in a field of {width}"
            )),
            KeyMatch::Prefix { value, prefix_len }
                if !is_within(value, &Bits::prefix_mask(width, *prefix_len)) =>
            {
                Err(format!(
                    "the value has bits set behind its prefix of {prefix_len} bits"
                ))
            }
            KeyMatch::Masked { value, mask } if !is_within(value, mask) => {
                Err("the value has bits set where the mask has none".to_owned())
            }
            KeyMatch::Range { low, high } if low.ucmp(high).is_gt() => {
                Err("the low end is above the high end".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Returns the match in normal form: without ones outside of a prefix or mask, and with the lower bound
    /// of a range first.
    pub fn normal(self) -> KeyMatch {
        match self {
            KeyMatch::Prefix { value, prefix_len } => KeyMatch::Prefix {
                value: value.and(&Bits::prefix_mask(value.width(), prefix_len)),
                prefix_len,
            },
            KeyMatch::Masked { value, mask } => KeyMatch::Masked {
                value: value.and(&mask),
                mask,
            },
            KeyMatch::Range { low, high } if low.ucmp(&high).is_gt() => KeyMatch::Range {
                low: high,
                high: low,
            },
            other => other,
        }
    }

    /// Returns whether the match accepts all values.
    pub fn is_any(&self) -> bool {
        match self {
            KeyMatch::Any => true,
            KeyMatch::Value(_) => false,
            KeyMatch::Prefix { prefix_len, .. } => *prefix_len == 0,
            KeyMatch::Masked { mask, .. } => mask.is_zero(),
            KeyMatch::Range { low, high } => low.is_zero() && *high == Bits::ones(high.width()),
        }
    }

    /// Returns whether the match accepts the value that `value` holds as limbs, the least significant first.
    pub fn accepts(&self, value: &[u64]) -> bool {
        let equal = |wanted: &Bits, mask: &Bits| {
            let masked = value.iter().zip(mask.limbs()).map(|(v, m)| v & m);
            masked.eq(wanted.limbs().iter().copied())
        };
        match self {
            KeyMatch::Any => true,
            KeyMatch::Value(wanted) => value == wanted.limbs(),
            KeyMatch::Masked { value, mask } => equal(value, mask),
            KeyMatch::Prefix { value, prefix_len } => {
                equal(value, &Bits::prefix_mask(value.width(), *prefix_len))
            }
            KeyMatch::Range { low, high } => {
                low.limbs().iter().rev().le(value.iter().rev())
                    && value.iter().rev().le(high.limbs().iter().rev())
            }
        }
    }
}
