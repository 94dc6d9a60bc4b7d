//! Table entries from the source, and sets of values in selects.

use ir::{BinaryOp, Bits, Expr, KeyMatch, KeySet, MatchKind};

use super::Lowerer;
use crate::errors;
use crate::hir::{self, Keyset, VarId};
use crate::types::Ty;

impl Lowerer<'_> {
    /// The entries of a table. Priorities become "the highest number wins".
    pub(super) fn entries(
        &mut self,
        def: &hir::Table,
        actions: &[ir::TableAction],
    ) -> Vec<ir::ConstEntry> {
        let prioritised = def.keys.iter().any(|k| {
            matches!(
                k.match_kind,
                MatchKind::Ternary | MatchKind::Range | MatchKind::Optional
            )
        });
        let priorities = if prioritised {
            self.priorities(def)
        } else {
            vec![0; def.entries.len()]
        };
        let mut out: Vec<ir::ConstEntry> = Vec::new();
        for (entry, priority) in def.entries.iter().zip(priorities) {
            if def.keys.is_empty() || def.keys.iter().any(|k| k.match_kind == MatchKind::Selector) {
                self.report(errors::unsupported(
                    entry.span,
                    "an entry of a table without a key or with a selector",
                ));
                continue;
            }
            let matches: Option<Vec<KeyMatch>> = entry
                .keysets
                .iter()
                .zip(&def.keys)
                .map(|(s, k)| self.key_match(s, k))
                .collect();
            let Some(matches) = matches else { continue };
            if out
                .iter()
                .any(|e| e.matches == matches && e.priority == priority)
            {
                self.report(errors::duplicate_entry(entry.span));
                continue;
            }
            let args = self.action_args(&def.actions[entry.action], &entry.args);
            let action = ir::ActionCall {
                action: actions[entry.action].action,
                args,
            };
            out.push(ir::ConstEntry {
                matches,
                priority,
                action,
            });
        }
        out
    }

    /// Priorities, where the highest number wins whatever the source says.
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
                next = match i32::try_from(value) {
                    Ok(value) if value > 0 => i64::from(value),
                    _ => {
                        self.report(errors::entry_range(priority.span, &value.to_string()));
                        1
                    }
                };
            }
            given.push(next);
            next = if def.largest_priority_wins {
                (next - delta).max(1)
            } else {
                next + delta
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

    fn key_match(&mut self, set: &Keyset, key: &hir::TableKey) -> Option<KeyMatch> {
        let width = self.module.types.scalar_width(&key.expr.ty)?;
        let signed = self.module.types.is_signed(&key.expr.ty);
        Some(match (key.match_kind, set) {
            (MatchKind::Exact, Keyset::Value(v)) => KeyMatch::Exact(self.constant_bits(v)?),
            (MatchKind::Lpm, Keyset::Any) => KeyMatch::Lpm {
                value: Bits::zero(width),
                prefix_len: 0,
            },
            (MatchKind::Lpm, Keyset::Value(v)) => KeyMatch::Lpm {
                value: self.constant_bits(v)?,
                prefix_len: width,
            },
            (MatchKind::Lpm, Keyset::Mask(v, m)) => {
                let (value, mask) = (self.constant_bits(v)?, self.constant_bits(m)?);
                KeyMatch::Lpm {
                    value: value.and(&mask),
                    prefix_len: mask.count_ones(),
                }
            }
            (MatchKind::Ternary, Keyset::Any) => KeyMatch::Ternary {
                value: Bits::zero(width),
                mask: Bits::zero(width),
            },
            (MatchKind::Ternary, Keyset::Value(v)) => KeyMatch::Ternary {
                value: self.constant_bits(v)?,
                mask: Bits::ones(width),
            },
            (MatchKind::Ternary, Keyset::Mask(v, m)) => {
                let (value, mask) = (self.constant_bits(v)?, self.constant_bits(m)?);
                KeyMatch::Ternary {
                    value: value.and(&mask),
                    mask,
                }
            }
            (MatchKind::Range, _) if signed => {
                self.report(errors::unsupported(
                    key.expr.span,
                    "a range of signed numbers",
                ));
                return None;
            }
            (MatchKind::Range, Keyset::Any) => KeyMatch::Range {
                low: Bits::zero(width),
                high: Bits::ones(width),
            },
            (MatchKind::Range, Keyset::Value(v)) => {
                let value = self.constant_bits(v)?;
                KeyMatch::Range {
                    low: value.clone(),
                    high: value,
                }
            }
            (MatchKind::Range, Keyset::Range(a, b)) => KeyMatch::Range {
                low: self.constant_bits(a)?,
                high: self.constant_bits(b)?,
            },
            (MatchKind::Optional, Keyset::Any) => KeyMatch::Optional(None),
            (MatchKind::Optional, Keyset::Value(v)) => {
                KeyMatch::Optional(Some(self.constant_bits(v)?))
            }
            // The checker has refused everything else.
            _ => return None,
        })
    }

    fn constant_bits(&mut self, expr: &hir::Expr) -> Option<Bits> {
        match self.scalar(expr) {
            Expr::Const(bits) => Some(bits),
            _ => {
                self.report(errors::not_constant(expr.span, "a value to match"));
                None
            }
        }
    }

    /// A set of values in a select.
    pub(super) fn key_set(&mut self, set: &Keyset, key: &hir::Expr) -> Option<KeySet> {
        let signed = self.module.types.is_signed(&key.ty);
        Some(match set {
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
            Keyset::Range(..) if signed => {
                self.report(errors::unsupported(key.span, "a range of signed numbers"));
                return None;
            }
            Keyset::Range(a, b) => {
                let (low, high) = (self.constant_bits(a)?, self.constant_bits(b)?);
                if Bits::binary(BinaryOp::Ult, &high, &low) == Bits::from_bool(true) {
                    return None;
                }
                KeySet::Range { low, high }
            }
            Keyset::ValueSet(var) => KeySet::ValueSet(self.value_set(*var)?),
        })
    }

    /// The value set of the current instance.
    fn value_set(&mut self, var: VarId) -> Option<ir::ValueSetId> {
        if let Some(id) = self.value_sets.get(&(self.current, var)) {
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
        let size = match self.bits(value, &Ty::Bit(32)) {
            Expr::Const(bits) => bits.to_u64().unwrap_or(0),
            _ => {
                self.report(errors::not_constant(size.span, "the size of a value set"));
                0
            }
        };
        let name = super::control_plane_name(&self.current_path(), &def.name, &def.annotations);
        let id = ir::ValueSetId(self.program.value_sets.len() as u32);
        self.program.value_sets.push(ir::ValueSet {
            name,
            id: 0,
            widths,
            size,
        });
        self.info.value_sets.push((id, var, (**item).clone()));
        self.value_sets.insert((self.current, var), id);
        Some(id)
    }
}
