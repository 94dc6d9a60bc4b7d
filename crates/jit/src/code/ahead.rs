//! Looking ahead: which keys a packet will probably look up in large tables, so that what the tables need for all packets of a burst
//! is asked of memory at once, before the first of them runs.
//!
//! The function takes the packet through parser and ingress, but runs no action and does nothing that could be seen: where that makes
//! it go another way than the packet will, the wrong keys are noted, and only time is lost. It knows nothing of how
//! tables look up.

use super::Gen;
use super::straight::Exports;
use crate::headers::Headers;
use crate::shims::Shim;
use cranelift_codegen::ir::InstBuilder;
use ir::{Expr, MatchKind, Program, SlotId, StmtKind, TableId};

/// Tables that ask for fewer entries are not worth it.
const MIN_SIZE: u64 = 1 << 14;

/// The tables that are worth it.
pub(crate) fn tables_ahead(program: &Program) -> Vec<TableId> {
    let ids = (0..program.tables.len() as u32).map(TableId);
    ids.filter(|&id| is_worth(program, id)).collect()
}

fn is_worth(program: &Program, table: TableId) -> bool {
    let table = &program.tables[table.index()];
    let by_hash = |kind: MatchKind| matches!(kind, MatchKind::Exact | MatchKind::Lpm);
    table.size >= MIN_SIZE && !table.keys.is_empty() && table.keys.iter().all(|k| by_hash(k.kind))
}

impl Gen<'_, '_> {
    /// Generates the whole function.
    pub(super) fn look_ahead(&mut self, headers: Headers) {
        let program = self.program;
        let exports = Exports::none();
        self.place_straight(headers, &exports);
        self.arrive(&exports);
        self.parser();
        self.control(&program.ingress);
        self.b.ins().return_(&[]);
    }

    /// Whether a statement is left out when looking ahead.
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

    /// A table is to be applied: notes the key and takes it to be hit.
    pub(super) fn note_key(&mut self, table: TableId, keys: &[Expr], hit: Option<SlotId>) {
        let wanted = tables_ahead(self.program).iter().position(|&t| t == table);
        if let Some(wanted) = wanted {
            let keys = self.exprs(keys);
            let key = self.spill(&keys.iter().collect::<Vec<_>>());
            let limbs = keys.iter().map(|k| k.limbs.len() as u64).sum();
            let (wanted, limbs) = (self.imm(wanted as u64), self.imm(limbs));
            self.call(Shim::Want, &[self.frame, wanted, key, limbs]);
        }
        if let Some(hit) = hit {
            let one = self.imm(1);
            self.write_word(hit, one);
        }
    }
}
