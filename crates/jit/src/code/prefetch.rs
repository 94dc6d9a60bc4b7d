//! Prefetching: finds the keys that packets will probably look up in tables that are not in the nearest
//! cache, so that the cache lines for all packets of a burst are loaded at once, before the first of them
//! runs.
//!
//! The function takes the packet through parser and ingress, but runs only actions of small tables and has no
//! effects. Where that makes it take another path than the packet will, it finds wrong keys, and only time is
//! lost. Where one load suffices (exact keys that are looked up in place, of entries with few arguments), it
//! is done right there; else the keys are recorded, and the table loads what belongs to them together, step
//! by step. Indices of large arrays of cells are recorded too; those that are arguments of entries follow
//! when the entries are found.

use super::{Gen, Memory, Slots};
use crate::analysis::bailouts::Bailouts;
use crate::analysis::tables::{cell_of, is_left_out, runs_to_prefetch};
use crate::frame::Frame;
use crate::notes::List;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};
use engine::runtime::CellArray;
use ir::{Effect, Expr, Pipeline, SlotId, Stmt, StmtKind, TableId};
use std::mem::offset_of;

impl Gen<'_, '_> {
    /// Generates the whole function that prefetches.
    pub(super) fn prefetch(&mut self) {
        let program = self.program;
        let bailouts = Bailouts::default();
        self.place_fast_path(&bailouts);
        self.arrive(&bailouts);
        self.first_parser();
        self.control(program.main_control(Pipeline::INGRESS));
        self.next_packet();
    }

    /// Generates what the prefetch function does for a statement that it treats differently from the program:
    /// it records the key of a lookup, leaves out statements with effects, and does not take branches that
    /// end the control. Returns whether control can reach the next statement; `None`, with nothing generated,
    /// for all other statements.
    pub(super) fn stmt_to_prefetch(&mut self, stmt: &StmtKind) -> Option<bool> {
        let analysis = self.analysis;
        let prefetched = &analysis.prefetched;
        match stmt {
            StmtKind::Apply {
                table, keys, hit, ..
            } => {
                let (in_place, tables) = (&analysis.tables_in_place, &prefetched.tables);
                if runs_to_prefetch(in_place, tables, *table) {
                    return None;
                }
                self.note_key(*table, keys, *hit);
                Some(true)
            }
            // The packet is not one for which everything ends here: whether it is costs time to find out, and is not even known if other
            // tables say it.
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                let unknown = cond.reads(&|slot| prefetched.unknown[slot.index()]);
                let passes = |stmts| ends(stmts) && (unknown || !self.leads_to_any(stmts));
                match (passes(then), passes(otherwise)) {
                    (true, _) => Some(self.stmts(otherwise)),
                    (_, true) => Some(self.stmts(then)),
                    _ => None,
                }
            }
            _ if is_left_out(stmt) => {
                if let Some((cells, index)) = cell_of(stmt) {
                    self.note_cell(cells, index);
                }
                Some(true)
            }
            _ => None,
        }
    }
}

impl Slots<'_, '_> {
    /// Generates code that records the index of a cell that the packet will access, if the cells are
    /// prefetched and the index is known at this point.
    fn note_cell(&mut self, cells: CellArray, index: &Expr) {
        let prefetched = &self.analysis.prefetched;
        let number = prefetched.cells.iter().position(|&c| c == cells);
        let is_unknown = index.reads(&|slot| prefetched.unknown[slot.index()]);
        if let Some(number) = number.filter(|_| !is_unknown) {
            let list = prefetched.tables.len() + number;
            let index = self.expr(index).low();
            self.note(list, &[index]);
        }
    }

    /// Generates what the prefetch function does instead of a lookup: if the table is prefetched, loads the
    /// entry or records the key. In any case sets the slot `hit` as if an entry was found.
    fn note_key(&mut self, table: TableId, keys: &[Expr], hit: Option<SlotId>) {
        let prefetched = &self.analysis.prefetched.tables;
        if let Some(wanted) = prefetched.iter().position(|t| t.table == table) {
            let keys = self.exprs(keys);
            let in_place = self.view_of(table);
            if let Some(number) = in_place.filter(|_| prefetched[wanted].touched) {
                let key = self.key_in_place(table, &keys);
                self.touch(number, &key);
            } else {
                let limbs: Vec<Value> = keys.iter().flat_map(|k| &k.limbs).copied().collect();
                self.note(wanted, &limbs);
            }
        }
        if let Some(hit) = hit {
            let one = self.imm(1);
            self.write_word(hit, one);
        }
    }
}

impl Memory<'_, '_> {
    /// Returns true if the statements contain a lookup in a table, or an access to a cell, that is
    /// prefetched.
    fn leads_to_any(&self, stmts: &[Stmt]) -> bool {
        let prefetched = &self.analysis.prefetched;
        ir::statements(stmts).any(|stmt| match &stmt.kind {
            StmtKind::Apply { table, .. } => prefetched.tables.iter().any(|t| t.table == *table),
            other => cell_of(other).is_some_and(|(cells, _)| prefetched.cells.contains(&cells)),
        })
    }

    /// Generates code that appends a key or an index to the list of the frame with the number `list`, if the
    /// list has room.
    fn note(&mut self, list: usize, limbs: &[Value]) {
        let flags = MemFlagsData::trusted();
        let offset = |field: usize| (list * size_of::<List>() + field) as i32;
        let (next, end) = (offset_of!(List, next), offset_of!(List, end));
        let lists = self.frame_word(offset_of!(Frame, notes));
        let at = self.b.ins().load(I64, flags, lists, offset(next));
        let end = self.b.ins().load(I64, flags, lists, offset(end));
        let behind = (self.b.ins()).iadd_imm_u(at, (limbs.len() * size_of::<u64>()) as i64);
        let fits = (self.b.ins()).icmp(IntCC::UnsignedLessThanOrEqual, behind, end);
        let (room, after) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(fits, room, &[], after, &[]);
        self.continue_in(room);
        for (i, &limb) in limbs.iter().enumerate() {
            let place = (i * size_of::<u64>()) as i32;
            self.b.ins().store(flags, limb, at, place);
        }
        self.b.ins().store(flags, behind, lists, offset(next));
        self.b.ins().jump(after, &[]);
        self.continue_in(after);
    }
}

/// Returns true if the last of the statements ends the control or the parser.
fn ends(stmts: &[Stmt]) -> bool {
    let ends = |last: &Stmt| last.kind.effect() == Effect::End;
    stmts.last().is_some_and(ends)
}
