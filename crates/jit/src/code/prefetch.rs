//! Prefetching: what packets will probably look up in tables that are not in the nearest cache, so that what the tables need for all
//! packets of a burst is loaded at once, before the first of them runs.
//!
//! The function takes the packet through parser and ingress, but runs no action and does nothing that could be seen: where that makes
//! it take another path than the packet will, the wrong keys are taken, and only time is lost. Where one load tells most (exact keys that are
//! looked up in place), it is done right there; else the keys are noted, for the table to take them together step by step.

use super::Gen;
use crate::analysis::bailouts::Bailouts;
use crate::shims::Shim;
use ir::{Expr, SlotId, StmtKind, TableId};

impl Gen<'_, '_> {
    /// Generates the whole function.
    pub(super) fn prefetch(&mut self) {
        let program = self.program;
        let bailouts = Bailouts::default();
        self.place_fast_path(&bailouts);
        self.arrive(&bailouts);
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
        let prefetched = &self.analysis.prefetched_tables;
        if let Some(wanted) = prefetched.iter().position(|t| t.table == table) {
            let keys = self.exprs(keys);
            let in_place = self.view_of(table);
            if let Some(number) = in_place.filter(|_| prefetched[wanted].touched) {
                let key = self.key_in_place(table, &keys);
                self.touch(number, &key);
            } else {
                let (key, limbs) = self.spill_all(&keys);
                let wanted = self.imm(wanted as u64);
                self.call(Shim::NoteKey, &[self.frame, wanted, key, limbs]);
            }
        }
        if let Some(hit) = hit {
            let one = self.imm(1);
            self.write_word(hit, one);
        }
    }
}
