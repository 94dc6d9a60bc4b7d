//! From the arrival of packets to their departure: the blocks of each architecture in order, and copies.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use ir::{BinaryOp, Bits, Block, Expr, SlotId, StmtKind};

use super::super::state::{State, Step};
use super::Walker;
use crate::lower::build;

/// Generations of clones of clones.
const GENERATIONS: usize = 3;

impl Walker<'_> {
    /// Follows packets through the whole pipeline, from their arrival to their departure.
    pub fn pipeline(&mut self) {
        let starts = self.starts();
        let mut states = self.parser(Block::Parser, starts);
        if self.clones_parsed {
            for state in &mut states {
                state.parsed = Some(Rc::new(state.clone()));
            }
        }
        for block in [Block::VerifyChecksum, Block::Ingress] {
            states = self.block(block, states);
        }
        let mut waiting = match self.program.v1model() {
            Some(_) => self.between(states),
            None => {
                self.block(Block::IngressDeparser, states);
                let again = self.second_parser();
                self.parser(Block::EgressParser, vec![again])
            }
        };
        for _ in 0..GENERATIONS {
            let mut states = self.block(Block::Egress, std::mem::take(&mut waiting));
            waiting = self.copies(&states, false);
            if let Some(standard) = self.program.v1model() {
                states.retain(|state| !self.drops(state, standard.egress_spec));
            }
            let states = self.block(Block::ComputeChecksum, states);
            self.block(Block::Deparser, states);
            if waiting.is_empty() {
                break;
            }
        }
    }

    fn zero(&self, slot: SlotId) -> Bits {
        Bits::zero(self.program.slots[slot.index()].width)
    }

    /// Returns the states of packets that arrive at the switch, and of packets that return to the parser by
    /// a resubmission or recirculation.
    fn starts(&self) -> Vec<State> {
        let mut values: BTreeMap<SlotId, Bits> = (self.uses.relevant())
            .map(|slot| (slot, self.zero(slot)))
            .collect();
        match self.program.v1model() {
            Some(standard) => standard.forwarding().arrival.iter().for_each(|(slot, _)| {
                values.remove(slot);
            }),
            None => self.standard.iter().for_each(|slot| {
                values.remove(slot);
            }),
        }
        let mut preserved = BTreeSet::new();
        let mut again = false;
        for stmt in self.program.bodies().flat_map(ir::statements) {
            if let StmtKind::Resubmit { preserve } | StmtKind::Recirculate { preserve } = stmt.kind
            {
                again = true;
                let list = preserve.map(|list| &self.program.field_lists[list.index()].slots[..]);
                preserved.extend(list.unwrap_or_default());
            }
        }
        let mut states = vec![State::new(values.clone())];
        if again {
            if let Some(standard) = self.program.v1model() {
                values.remove(&standard.instance_type);
            }
            preserved.iter().for_each(|slot| {
                values.remove(slot);
            });
            let mut state = State::new(values);
            state.push(Step::Copied(
                "the packet comes again (resubmit or recirculate)",
            ));
            states.push(state);
        }
        states
    }

    /// Returns the state in which the second parser of an architecture starts: all headers are invalid, and
    /// nothing is known about any other slot.
    fn second_parser(&self) -> State {
        let valid = self.program.headers.iter().map(|header| header.valid);
        State::new(valid.map(|slot| (slot, Bits::from_bool(false))).collect())
    }

    fn drops(&self, state: &State, egress_spec: SlotId) -> bool {
        let drop = u64::from(ir::architecture::v1model::DROP_PORT);
        state.values.get(&egress_spec).and_then(Bits::to_u64) == Some(drop)
    }

    /// Follows packets from ingress to egress of v1model: removes dropped packets and adds clones. Returns
    /// the states in which packets enter egress.
    fn between(&mut self, states: Vec<State>) -> Vec<State> {
        let mut out = self.copies(&states, true);
        let Some(standard) = self.program.v1model().copied() else {
            return out;
        };
        for mut state in states {
            let group = state.values.get(&standard.mcast_grp);
            let alone = group.is_some_and(Bits::is_zero);
            if alone && self.drops(&state, standard.egress_spec) {
                continue;
            }
            let port = state
                .values
                .get(&standard.egress_spec)
                .filter(|_| alone)
                .cloned();
            let path = state
                .values
                .get(&standard.instance_type)
                .filter(|_| alone)
                .cloned();
            for (slot, _) in standard.forwarding().egress {
                state.forget(slot);
            }
            state
                .values
                .insert(standard.egress_spec, self.zero(standard.egress_spec));
            state
                .values
                .extend(port.map(|port| (standard.egress_port, port)));
            state.clone = None;
            state.parsed = None;
            match path {
                Some(path) => {
                    state.values.insert(standard.instance_type, path);
                    out.push(state);
                }
                None => {
                    // A copy of the group, and no clone.
                    let is = |kind| {
                        let slot = Expr::Slot(standard.instance_type);
                        build::binary(
                            BinaryOp::Eq,
                            slot,
                            build::constant(32, kind),
                            &self.program.slots,
                        )
                    };
                    let clone = build::binary(BinaryOp::Or, is(1), is(2), &self.program.slots);
                    out.extend(state.assume(&clone, false, &self.program.slots));
                }
            }
        }
        self.reduce(out)
    }

    /// Returns the states in which clones enter egress, for the clones that the packets in `states`
    /// requested: in ingress if `of_ingress` is set, else in egress. Returns no states for an architecture
    /// other than v1model.
    fn copies(&mut self, states: &[State], of_ingress: bool) -> Vec<State> {
        let Some(standard) = self.program.v1model().copied() else {
            return Vec::new();
        };
        let mut out = Vec::new();
        for state in states {
            let Some(clone) = state.clone.filter(|clone| clone.of_ingress == of_ingress) else {
                continue;
            };
            let mut copy = match (&state.parsed, of_ingress) {
                (Some(parsed), true) => (**parsed).clone(),
                _ => state.clone(),
            };
            copy.path.clone_from(&state.path);
            (copy.clone, copy.parsed) = (None, None);
            let list = clone
                .preserve
                .map(|list| &self.program.field_lists[list.index()].slots[..]);
            let list = list.unwrap_or_default();
            for i in 0..self.program.slots.len() {
                let slot = SlotId(i as u32);
                let of_header = self.field_of[i].is_some() || self.uses.is_validity(slot);
                let kept = list.contains(&slot);
                // An ingress clone has what its parser wrote.
                let parsed = of_ingress && !kept && !self.standard.contains(&slot);
                if of_header || parsed || !self.uses.is_relevant(slot) {
                    continue;
                }
                copy.forget(slot);
                let value = match kept {
                    true => state.values.get(&slot).cloned(),
                    false if self.standard.contains(&slot) => None,
                    false => Some(self.zero(slot)),
                };
                copy.values.extend(value.map(|value| (slot, value)));
                copy.unset.remove(&slot);
            }
            // The facts about preserved slots, beyond values.
            for (fact, holds) in &state.facts {
                if !fact.reads(&|slot| !list.contains(&slot)) {
                    copy.facts.push((fact.clone(), *holds));
                }
            }
            let kind = if of_ingress { 1 } else { 2 };
            copy.values
                .insert(standard.instance_type, Bits::from_u64(32, kind));
            copy.values
                .insert(standard.egress_spec, self.zero(standard.egress_spec));
            copy.push(Step::Copied(
                "the copy that `clone` asked for enters egress",
            ));
            out.push(copy);
        }
        self.reduce(out)
    }

    /// Follows packets through a control, up to its end or an `exit`.
    fn block(&mut self, block: Block, states: Vec<State>) -> Vec<State> {
        let body = self.program.control(block);
        self.position = self.uses.start(block);
        let states = self.reduce(states);
        let mut out = self.body(body, states);
        out.append(&mut self.exits);
        self.reduce(out)
    }
}
