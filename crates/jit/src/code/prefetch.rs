//! Prefetching: what packets will probably look up in tables that are not in the nearest cache, so that what the tables need for all
//! packets of a burst is asked of memory at once, before the first of them runs.
//!
//! The function takes the packet through parser and ingress, but runs no action and does nothing that could be seen: where that makes
//! it go another way than the packet will, the wrong keys are taken, and only time is lost. Where one load tells most (exact keys that are
//! looked up in place), it is done right there; else the keys are noted, for the table to take them together step by step.

use super::Gen;
use super::fast_path::Exports;
use crate::headers::Headers;
use crate::shims::Shim;
use crate::usage::Usage;
use crate::views::{InPlaceTable, in_place};
use cranelift_codegen::ir::Value;
use ir::{Expr, Key, MatchKind, Program, SlotId, StmtKind, TableId};

/// A table that is worth a prefetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrefetchedTable {
    /// The table.
    pub table: TableId,
    /// Its keys are not noted: the buckets are loaded at once.
    pub touched: bool,
}

/// Tables of fewer entries are taken to be in the caches.
pub(crate) const LARGE_TABLE: usize = 1 << 14;

/// The tables that are worth it: those that may have many entries, and whose keys do not depend on what other tables say.
pub(crate) fn prefetched_tables(program: &Program) -> Vec<PrefetchedTable> {
    let by_tables = Usage::of_actions(program).writes;
    let in_place = in_place(program);
    let mut result = Vec::new();
    for stmt in ir::statements(&program.ingress) {
        let (id, keys) = match &stmt.kind {
            StmtKind::Apply { table, keys, .. } => (*table, keys),
            _ => continue,
        };
        let known = |t: &PrefetchedTable| t.table == id;
        let reads = Usage::of_exprs(program, keys).reads;
        if result.iter().any(known) || reads.iter().zip(&by_tables).any(|(&r, &w)| r && w) {
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

impl Gen<'_, '_> {
    /// Generates the whole function.
    pub(super) fn prefetch(&mut self, headers: Headers) {
        let program = self.program;
        let exports = Exports::none();
        self.place_fast_path(headers, &exports);
        self.arrive(&exports);
        self.parser(ir::Block::Parser);
        self.control(&program.ingress);
        self.next_packet();
    }

    /// Whether a statement is left out of the prefetch.
    pub(super) fn is_left_out(&self, stmt: &StmtKind) -> bool {
        // What is seen outside, and what takes time.
        matches!(
            stmt,
            StmtKind::RegisterRead { .. }
                | StmtKind::RegisterWrite { .. }
                | StmtKind::Count { .. }
                | StmtKind::MeterExecute { .. }
                | StmtKind::Hash { .. }
                | StmtKind::Random { .. }
                | StmtKind::Clone { .. }
                | StmtKind::Resubmit { .. }
                | StmtKind::Recirculate { .. }
                | StmtKind::Truncate { .. }
                | StmtKind::Digest { .. }
                | StmtKind::Log { .. }
                | StmtKind::Assert { .. }
                | StmtKind::Loop { .. }
        )
    }

    /// A table is to be applied: looks into it, or notes the key, and takes it to be hit.
    pub(super) fn note_key(&mut self, table: TableId, keys: &[Expr], hit: Option<SlotId>) {
        let prefetched = prefetched_tables(self.program);
        if let Some(wanted) = prefetched.iter().position(|t| t.table == table) {
            let keys = self.exprs(keys);
            let in_place = self.tables_in_place.iter().position(|t| t.table == table);
            if let Some(number) = in_place.filter(|_| prefetched[wanted].touched) {
                let limbs: Vec<Value> = keys.iter().flat_map(|k| k.limbs.clone()).collect();
                self.touch(number, &limbs);
            } else {
                let key = self.spill(&keys.iter().collect::<Vec<_>>());
                let limbs = keys.iter().map(|k| k.limbs.len() as u64).sum();
                let (wanted, limbs) = (self.imm(wanted as u64), self.imm(limbs));
                self.call(Shim::Want, &[self.frame, wanted, key, limbs]);
            }
        }
        if let Some(hit) = hit {
            let one = self.imm(1);
            self.write_word(hit, one);
        }
    }
}
