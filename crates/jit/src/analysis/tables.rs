//! Which tables machine code looks up in place, and which are prefetched.

use super::reads_one_of;
use super::usage::Usage;
use engine::table::{KeyShape, Packing};
use ir::{Key, MatchKind, Program, StmtKind, TableId};

/// So many tables of a program are looked up in place at most: those declared first.
pub(crate) const MAX_VIEWS: usize = 16;

/// Keys of more limbs are not looked up in place.
const MAX_LIMBS: usize = 4;

/// Tables of fewer entries are taken to be in the caches.
pub(crate) const LARGE_TABLE: usize = 1 << 14;

/// A table that is looked up in place where its structure allows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InPlaceTable {
    /// The table.
    pub table: TableId,
    /// Limbs of its key, packed if it is.
    pub limbs: usize,
    /// The field that is matched by prefix, if there is one.
    pub prefix: Option<PrefixField>,
    /// Limbs of a record.
    pub stride: usize,
    /// A hit is counted.
    pub counts: bool,
}

/// A field matched by prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrefixField {
    /// Its limb in the key.
    pub limb: usize,
    /// At most 32.
    pub width: u32,
}

impl InPlaceTable {
    /// Whether a part of the key leads through a hash map.
    pub fn has_exact(&self) -> bool {
        self.prefix.is_none() || self.limbs > 1
    }
}

/// The tables of a program that are looked up in place, in the order of their views.
pub(super) fn in_place(program: &Program) -> Vec<InPlaceTable> {
    let ids = (0..program.tables.len() as u32).map(TableId);
    let tables = ids.filter_map(|id| in_place_table(program, id));
    tables.take(MAX_VIEWS).collect()
}

fn in_place_table(program: &Program, id: TableId) -> Option<InPlaceTable> {
    let table = &program.tables[id.index()];
    let has_effects =
        table.direct_meter.is_some() || table.support_timeout || table.implementation.is_some();
    if has_effects {
        return None;
    }
    let (mut limbs, mut prefix) = (0, None);
    for key in &table.keys {
        match key.kind {
            MatchKind::Exact => {}
            MatchKind::Lpm if key.width <= 32 && prefix.is_none() => {
                prefix = Some(PrefixField {
                    limb: limbs,
                    width: key.width,
                });
            }
            _ => return None,
        }
        limbs += key.width.div_ceil(64) as usize;
    }
    if let Some(packing) = Packing::of_exact(&KeyShape::new(&table.keys)) {
        limbs = packing.limbs();
    }
    let arg_limbs = table.actions.iter().map(|a| {
        let params = program.actions[a.action.index()].params.iter();
        params
            .map(|p| program.slots[p.slot.index()].width.div_ceil(64) as usize)
            .sum::<usize>()
    });
    (1..=MAX_LIMBS).contains(&limbs).then_some(InPlaceTable {
        table: id,
        limbs,
        prefix,
        stride: 1 + arg_limbs.max().unwrap_or(0),
        counts: table.direct_counter.is_some(),
    })
}

/// A table that is worth a prefetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrefetchedTable {
    /// The table.
    pub table: TableId,
    /// Its keys are not noted: the buckets are loaded at once.
    pub touched: bool,
}

/// The tables that are worth it: those that may have many entries, and whose keys do not depend on what other tables say.
pub(super) fn prefetched_tables(
    program: &Program,
    in_place: &[InPlaceTable],
) -> Vec<PrefetchedTable> {
    let by_tables = Usage::of_actions(program).writes;
    let mut result = Vec::new();
    for stmt in ir::statements(&program.ingress) {
        let (id, keys) = match &stmt.kind {
            StmtKind::Apply { table, keys, .. } => (*table, keys),
            _ => continue,
        };
        let known = |t: &PrefetchedTable| t.table == id;
        if result.iter().any(known) || reads_one_of(keys, &by_tables) {
            continue;
        }
        let table = &program.tables[id.index()];
        let by_hash = |k: &Key| matches!(k.kind, MatchKind::Exact | MatchKind::Lpm);
        let is_touched = |t: &InPlaceTable| t.table == id && t.prefix.is_none();
        let has_keys = !table.keys.is_empty() && table.keys.iter().all(by_hash);
        if has_keys && table.size >= LARGE_TABLE as u64 {
            result.push(PrefetchedTable {
                table: id,
                touched: in_place.iter().any(is_touched),
            });
        }
    }
    result
}
