//! Table entries from the source, and sets of values in selects.

use std::collections::HashSet;

use ir::{BinaryOp, Bits, KeyMatch, KeySet};

use syntax::source::Span;

use super::{Body, Unit};
use crate::errors;
use crate::hir::{self, Keyset, VarId};
use crate::types::Ty;

/// The number of combinations of unsigned ranges to which one entry or case may lead.
const MAX_COMBINATIONS: usize = 256;

impl Body<'_, '_> {
    /// Returns the entries of a table. Priorities are converted so that the highest number wins. An entry
    /// with signed ranges that cross zero becomes several. Reports duplicates, and entries of a table without
    /// a key or with a selector.
    pub(super) fn entries(
        &mut self,
        def: &hir::Table,
        actions: &[ir::TableAction],
    ) -> Vec<ir::ConstEntry> {
        let prioritised = def.keys.iter().any(|k| k.match_kind.has_priority());
        let priorities = if prioritised {
            self.priorities(def)
        } else {
            vec![0; def.entries.len()]
        };
        let mut out: Vec<ir::ConstEntry> = Vec::new();
        let mut seen: HashSet<(Vec<KeyMatch>, i32)> = HashSet::new();
        for (entry, priority) in def.entries.iter().zip(priorities) {
            if def.keys.is_empty() || !def.keys.iter().all(|k| k.match_kind.is_looked_up()) {
                self.report(errors::unsupported(
                    entry.span,
                    "an entry of a table without a key or with a selector",
                ));
                continue;
            }
            let matches: Option<Vec<Vec<KeyMatch>>> = entry
                .keysets
                .iter()
                .zip(&def.keys)
                .map(|(s, k)| self.key_match(s, k))
                .collect();
            let args = self.action_args(&def.actions[entry.action], &entry.args);
            let action = ir::ActionCall {
                action: actions[entry.action].action,
                args,
            };
            for matches in self.combinations(matches, entry.span) {
                if !seen.insert((matches.clone(), priority)) {
                    self.report(errors::duplicate_entry(entry.span));
                    continue;
                }
                out.push(ir::ConstEntry {
                    matches,
                    priority,
                    action: action.clone(),
                    is_const: entry.is_const,
                });
            }
        }
        out
    }

    /// Returns the match of one key field in an entry: two matches if a range of signed numbers crosses zero,
    /// none if a range is empty. Returns `None` after an error.
    fn key_match(&mut self, set: &Keyset, key: &hir::TableKey) -> Option<Vec<KeyMatch>> {
        let width = self.module.types.scalar_width(&key.expr.ty)?;
        let sets = self.key_set(set, &key.expr)?.into_iter();
        let matches: Option<Vec<_>> = sets.map(|set| key.match_kind.of_set(&set, width)).collect();
        if let (None, Keyset::Mask(_, mask)) = (&matches, set) {
            // A constructor's argument; the checker has refused all other sets that the kind cannot express.
            self.report(errors::lpm_mask(mask.span));
        }
        matches
    }

    /// Returns the range from `low` to `high` as ranges of unsigned numbers: none if it is empty, two if it
    /// is signed and crosses zero. Returns `None` after an error.
    fn ranges(&mut self, low: &hir::Expr, high: &hir::Expr, ty: &Ty) -> Option<Vec<(Bits, Bits)>> {
        let (low, high) = (self.constant_bits(low)?, self.constant_bits(high)?);
        let width = low.width();
        let negative = |b: &Bits| b.bit(width - 1);
        if self.module.types.is_signed(ty) && negative(&low) && !negative(&high) {
            let ends = (Bits::ones(width), Bits::zero(width));
            return Some(vec![(low, ends.0), (ends.1, high)]);
        }
        let turned = self.module.types.is_signed(ty) && negative(&high) && !negative(&low);
        let empty = turned || Bits::binary(BinaryOp::Ult, &high, &low) == Bits::from_bool(true);
        Some(match empty {
            true => Vec::new(),
            false => vec![(low, high)],
        })
    }

    fn constant_bits(&mut self, expr: &hir::Expr) -> Option<Bits> {
        let value = self.scalar(expr);
        self.constant(value, expr.span, "a value to match")
    }

    /// Returns the sets for the keys of a select as lists, each with one set for every key: the case matches
    /// if, for at least one list, every key is in its set. There are several lists if signed ranges cross
    /// zero.
    pub(super) fn key_sets(&mut self, sets: &[Keyset], keys: &[hir::Expr]) -> Vec<Vec<KeySet>> {
        let sets: Option<Vec<Vec<KeySet>>> = sets
            .iter()
            .zip(keys)
            .map(|(set, key)| self.key_set(set, key))
            .collect();
        let span = keys.first().map_or(self.main_span, |k| k.span);
        self.combinations(sets, span)
    }

    fn key_set(&mut self, set: &Keyset, key: &hir::Expr) -> Option<Vec<KeySet>> {
        let set = match set {
            Keyset::Any => KeySet::Any,
            Keyset::Value(v) => {
                let value = self.constant_bits(v)?;
                KeySet::Mask {
                    mask: Bits::ones(value.width()),
                    value,
                }
            }
            Keyset::Mask(v, m) => {
                let (value, mask) = (self.constant_bits(v)?, self.constant_bits(m)?);
                KeySet::Mask {
                    value: value.and(&mask),
                    mask,
                }
            }
            Keyset::Range(a, b) => {
                let ranges = self.ranges(a, b, &key.ty)?.into_iter();
                return Some(
                    ranges
                        .map(|(low, high)| KeySet::Range { low, high })
                        .collect(),
                );
            }
            Keyset::ValueSet(var) => KeySet::ValueSet(self.value_set(*var)?),
        };
        Some(vec![set])
    }

    /// Returns the IR's value set for the variable `var` of the current instance, and creates it at the first
    /// request; `None` if `var` is no value set.
    fn value_set(&mut self, var: VarId) -> Option<ir::ValueSetId> {
        let key = (self.scope.instance, var);
        if let Some(id) = self.made.value_sets.get(&key) {
            return Some(*id);
        }
        let module = self.module;
        let def = module.var(var);
        let (Ty::ValueSet(item), hir::VarKind::ValueSet(size)) = (&def.ty, &def.kind) else {
            return None;
        };
        let members = module.types.flat_members(item);
        let widths = members
            .iter()
            .map(|t| module.types.scalar_width(t).unwrap_or(1))
            .collect();
        let value = self.eval(size);
        let value = self.bits(value, &Ty::Bit(32));
        let bits = self.constant(value, size.span, "the size of a value set");
        let size = bits.and_then(|b| b.to_u64()).unwrap_or(0);
        let name = super::control_plane_name(&self.current_path(), &def.name, &def.annotations);
        let id = ir::ValueSetId(self.program.value_sets.len() as u32);
        self.program.value_sets.push(ir::ValueSet {
            name,
            id: 0,
            widths,
            size,
        });
        self.info.value_sets.push((id, var, (**item).clone()));
        self.made.value_sets.insert(key, id);
        Some(id)
    }
}

impl Unit<'_> {
    /// Returns the priorities of a table's entries, in the order of the entries, converted so that the
    /// highest number wins, whichever order the source uses. Reports a priority out of the range from 1 to
    /// 2^31 - 1.
    fn priorities(&mut self, def: &hir::Table) -> Vec<i32> {
        let count = def.entries.len() as i64;
        if def.entries.iter().any(|e| e.rank.is_some()) {
            // The older way to say it: the lowest rank wins, and without one the position counts.
            let ranks = def
                .entries
                .iter()
                .zip(1i64..)
                .map(|(e, i)| e.rank.map_or(i, i64::from));
            let ranks: Vec<i64> = ranks.collect();
            let highest = ranks.iter().copied().max().unwrap_or(0);
            let turned = ranks.into_iter().map(|r| i32::try_from(highest + 1 - r));
            return turned.map(|p| p.unwrap_or(i32::MAX)).collect();
        }
        let delta = i64::from(def.priority_delta);
        let mut given: Vec<i64> = Vec::new();
        let mut next = if def.largest_priority_wins {
            1 + (count - 1) * delta
        } else {
            1
        };
        for entry in &def.entries {
            if let Some(priority) = &entry.priority
                && let Some(value) = priority.as_int()
            {
                next = i64::try_from(value).unwrap_or(i64::MAX / 2);
            }
            if !(1..=i64::from(i32::MAX)).contains(&next) {
                self.report(errors::entry_range(entry.span, &next.to_string()));
                return vec![1; def.entries.len()];
            }
            given.push(next);
            next = match def.largest_priority_wins {
                true => next - delta,
                false => next + delta,
            };
        }
        let highest = given.iter().copied().max().unwrap_or(0);
        let turned = given.into_iter().map(|p| {
            if def.largest_priority_wins {
                p
            } else {
                highest + 1 - p
            }
        });
        turned
            .map(|p| i32::try_from(p).unwrap_or(i32::MAX))
            .collect()
    }

    /// Returns all combinations of one item from each list of `choices`; none if `choices` is `None` because
    /// of an error. Reports more than `MAX_COMBINATIONS`, at `span`, and returns none.
    fn combinations<T: Clone>(&mut self, choices: Option<Vec<Vec<T>>>, span: Span) -> Vec<Vec<T>> {
        let Some(choices) = choices else {
            return Vec::new();
        };
        let count = choices
            .iter()
            .fold(1usize, |n, c| n.saturating_mul(c.len()));
        if count > MAX_COMBINATIONS {
            self.report(errors::too_large(
                span,
                "too many ranges of signed numbers that go through zero",
            ));
            return Vec::new();
        }
        let start = vec![Vec::with_capacity(choices.len())];
        choices.into_iter().fold(start, |lists, choice| {
            let longer = |list: &Vec<T>, item: &T| {
                let mut list = list.clone();
                list.push(item.clone());
                list
            };
            lists
                .iter()
                .flat_map(|list| choice.iter().map(move |item| longer(list, item)))
                .collect()
        })
    }
}
