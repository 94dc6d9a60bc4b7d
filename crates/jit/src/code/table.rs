//! Applying a table: the key is packed, the lookup is a call unless it can be done in place, and the actions are in place.

use super::in_place::Found;
use super::wide::{Limbs, Wide, limbs_for};
use super::{EntryPoint, Gen, Memory, Slots, Words};
use crate::frame::Frame;
use crate::shims::Shim;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};
use cranelift_frontend::Switch;
use engine::table::{KeyShape, Packing};
use ir::{ActionId, ActionScope, Expr, SlotId, Stmt, StmtKind, TableId, UnaryOp};
use smallvec::SmallVec;
use std::mem::offset_of;

/// The number of actions up to which the one to run is found by comparisons, which cost less than a jump
/// through a table.
const COMPARED_ACTIONS: usize = 4;

/// A lookup, and the statements that a hit and a miss choose.
pub(super) struct ChosenByHit<'s> {
    table: TableId,
    keys: &'s [Expr],
    hit: SlotId,
    /// The action that a hit runs.
    action: ActionId,
    /// The statements after a hit.
    found: &'s [Stmt],
    /// The statements after a miss.
    missed: &'s [Stmt],
}

impl Gen<'_, '_> {
    /// Generates [`ir::StmtKind::Apply`]: the lookup, the assignments of `hit` and `action_run`, and the
    /// actions. Returns whether control can reach the code after it.
    pub(crate) fn apply(
        &mut self,
        table: TableId,
        keys: &[Expr],
        hit: Option<SlotId>,
        action_run: Option<SlotId>,
    ) -> bool {
        let program = self.program;
        let (args, position, found_hit) = self.look_up_anyhow(table, keys, hit.is_some());
        if let (Some(hit), Some(found_hit)) = (hit, found_hit) {
            self.write_word(hit, found_hit);
        }
        if let Some(slot) = action_run {
            let position = self.b.ins().uextend(I64, position);
            self.write_word(slot, position);
        }
        let actions: Vec<ActionId> = (program.tables[table.index()].actions.iter())
            .map(|a| a.action)
            .collect();
        self.dispatch(position, args, &actions)
    }

    /// Generates a lookup followed by the statements that depend on the hit. Returns whether control can
    /// reach the code after them.
    pub(super) fn apply_and_choose(&mut self, lookup: &ChosenByHit<'_>) -> bool {
        let (args, _, hit) = self.look_up_anyhow(lookup.table, lookup.keys, true);
        let hit = hit.expect("asked for");
        let [found, missed, after] = [(); 3].map(|()| self.b.create_block());
        self.b.ins().brif(hit, found, &[], missed, &[]);
        self.continue_in(found);
        let action = &self.program.actions[lookup.action.index()];
        let one = self.imm(1);
        self.write_word(lookup.hit, one);
        self.load_params(args, action);
        self.surroundings.branches += 1;
        let goes_on = self.stmts(&action.body);
        self.surroundings.branches -= 1;
        let from_found = goes_on && self.body(lookup.found, after);
        self.continue_in(missed);
        let zero = self.imm(0);
        self.write_word(lookup.hit, zero);
        let from_missed = self.body(lookup.missed, after);
        self.join_in(after, from_found || from_missed)
    }

    /// Generates the actions of a table, of which the one at `position` runs with the arguments at the
    /// address `args`; a position after the last runs none. Returns whether control can reach the code after
    /// them.
    fn dispatch(&mut self, position: Value, args: Value, actions: &[ActionId]) -> bool {
        let program = self.program;
        let after = self.b.create_block();
        let mut bodies = Vec::new();
        for (i, action) in actions.iter().enumerate() {
            let action = &program.actions[action.index()];
            if action.body.is_empty() && action.params.is_empty() {
                continue;
            }
            let block = self.b.create_block();
            bodies.push((i, block, action));
        }
        if bodies.len() <= COMPARED_ACTIONS {
            for &(i, block, _) in &bodies {
                let wanted = self.b.ins().iconst(I32, i as i64);
                let found = self.b.ins().icmp(IntCC::Equal, position, wanted);
                self.leave_if(found, block);
            }
            self.b.ins().jump(after, &[]);
        } else {
            let mut switch = Switch::new();
            for &(i, block, _) in &bodies {
                switch.set_entry(i as u128, block);
            }
            switch.emit(&mut self.b, position, after);
        }
        for (_, block, action) in bodies {
            self.continue_in(block);
            self.load_params(args, action);
            self.surroundings.branches += 1;
            if self.stmts(&action.body) {
                self.b.ins().jump(after, &[]);
            }
            self.surroundings.branches -= 1;
        }
        // The table's default always leads here for the code generator, though perhaps never taken.
        self.continue_in(after);
        true
    }
}

impl Slots<'_, '_> {
    /// Generates a lookup, in place if the table has a view, else by a call. Returns the address of the
    /// action's arguments, the position of the action and, if `wants_hit`, the hit.
    fn look_up_anyhow(
        &mut self,
        table: TableId,
        keys: &[Expr],
        wants_hit: bool,
    ) -> (Value, Value, Option<Value>) {
        let keys = self.exprs(keys);
        let in_place = self.view_of(table);
        match in_place.filter(|_| self.entry_point.takes_packets()) {
            None => {
                let (args, found) = self.look_up(table, &keys);
                // The position without the bit that tells of a hit.
                let position = self.b.ins().ireduce(I32, found);
                (args, position, Some(self.shr_imm(found, 32)))
            }
            Some(number) => {
                let key = self.key_in_place(table, &keys);
                let table = &self.analysis.tables_in_place[number];
                let found = self.look_up_in_place(number, table, &key, wants_hit, |g| {
                    let (args, found) = g.find(table.table, &keys);
                    let record = g.b.ins().iadd_imm_s(args, -8);
                    let hit = Some(g.shr_imm(found, 32));
                    Found { record, hit }
                });
                let flags = MemFlagsData::trusted();
                let position = self.b.ins().load(I32, flags, found.record, 0);
                let args = self.b.ins().iadd_imm_u(found.record, 8);
                (args, position, found.hit)
            }
        }
    }

    fn load_params(&mut self, args: Value, action: &ir::Action) {
        let mut at = 0;
        for param in &action.params {
            let width = self.width(param.slot);
            let limbs = (0..limbs_for(width))
                .map(|i| (self.b.ins()).load(I64, MemFlagsData::trusted(), args, at + 8 * i as i32))
                .collect();
            self.write(param.slot, &Wide { width, limbs });
            at += 8 * limbs_for(width) as i32;
        }
    }
}

impl Memory<'_, '_> {
    /// Recognises a table lookup and a following `if` that can be generated as one: the `if` depends on the
    /// hit alone, a hit runs the only action that entries have, and a miss runs none. Returns `None`
    /// otherwise.
    pub(super) fn chosen_by_hit<'s>(
        &self,
        apply: &'s StmtKind,
        choice: &'s StmtKind,
    ) -> Option<ChosenByHit<'s>> {
        let StmtKind::Apply {
            table,
            keys,
            hit: Some(hit),
            action_run: None,
        } = apply
        else {
            return None;
        };
        let StmtKind::If {
            cond,
            then,
            otherwise,
        } = choice
        else {
            return None;
        };
        let (found, missed) = match cond {
            Expr::Slot(slot) if slot == hit => (then, otherwise),
            Expr::Unary {
                op: UnaryOp::Not,
                a,
            } if **a == Expr::Slot(*hit) => (otherwise, then),
            _ => return None,
        };
        let of_table = &self.program.tables[table.index()];
        let mut actions = (of_table.actions.iter()).filter(|a| a.scope != ActionScope::DefaultOnly);
        let (action, others) = (actions.next()?.action, actions.next());
        let default = &self.program.actions[of_table.default_action.action.index()];
        let is_certain = others.is_none()
            && of_table.implementation.is_none()
            && of_table.const_default_action
            && default.body.is_empty();
        (is_certain && self.entry_point != EntryPoint::Prefetch).then_some(ChosenByHit {
            table: *table,
            keys,
            hit: *hit,
            action,
            found,
            missed,
        })
    }

    /// Generates the limbs of a key in the form in which a table that is looked up in place stores it.
    pub(super) fn key_in_place(&mut self, table: TableId, keys: &[Wide]) -> Limbs {
        let shape = KeyShape::new(&self.program.tables[table.index()].keys);
        match Packing::of_exact(&shape) {
            Some(packing) => self.packed(&packing, keys).limbs,
            None => keys.iter().flat_map(|key| key.limbs.clone()).collect(),
        }
    }

    /// Returns the number of a table's view; `None` if the table is not looked up in place.
    pub(super) fn view_of(&self, table: TableId) -> Option<usize> {
        let mut tables = self.analysis.tables_in_place.iter();
        tables.position(|t| t.table == table)
    }

    /// Generates a lookup by a function call. Returns the address of the action's arguments, and a word with the
    /// action's position in its low half and the hit in its high half.
    fn look_up(&mut self, table: TableId, keys: &[Wide]) -> (Value, Value) {
        let id = self.imm(table.0.into());
        let results = if let Some(packing) = Packing::of_table(&self.program.tables[table.index()])
        {
            let packed = self.packed(&packing, keys);
            let limbs = self.imm(packed.limbs.len() as u64);
            let key = self.spill(&[&packed]);
            self.call_for_all(Shim::LookupPacked, &[id, key, limbs])
        } else if let [key] = keys
            && let [limb] = key.limbs[..]
        {
            self.call_for_all(Shim::LookupWord, &[id, limb])
        } else {
            let (key, limbs) = self.spill_all(keys);
            self.call_for_all(Shim::Lookup, &[id, key, limbs])
        };
        (results[0], results[1])
    }

    /// Generates the same lookup as [`Gen::look_up`], for code that rarely runs: by a function that preserves
    /// all registers.
    fn find(&mut self, table: TableId, keys: &[Wide]) -> (Value, Value) {
        let id = self.imm(table.0.into());
        if let [key] = keys
            && let [limb] = key.limbs[..]
        {
            self.call(Shim::FindWord, &[self.packet, limb, id]);
        } else {
            let (key, limbs) = self.spill_all(keys);
            self.call(Shim::Find, &[self.packet, key, limbs, id]);
        }
        let args = self.frame_word(offset_of!(Frame, found_args));
        (args, self.frame_word(offset_of!(Frame, found)))
    }
}

impl Words<'_> {
    /// Generates the packing of a key's fields into fewer limbs. The fields have no bits above their widths.
    fn packed(&mut self, packing: &Packing, keys: &[Wide]) -> Wide {
        let mut limbs: Limbs = SmallVec::new();
        for (&limb, (to, up)) in keys.iter().flat_map(|k| &k.limbs).zip(packing.moves()) {
            let moved = self.shl_imm(limb, up);
            match limbs.get_mut(to) {
                Some(others) => *others = self.b.ins().bor(*others, moved),
                // Limbs are taken in order.
                None => limbs.push(moved),
            }
        }
        let width = 64 * limbs.len() as u32;
        Wide { width, limbs }
    }
}
