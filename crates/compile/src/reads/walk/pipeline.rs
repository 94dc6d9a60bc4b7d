//! The walk from the arrival of packets to their departure: the blocks of the architecture in order, and
//! copies of packets.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use ir::{BinaryOp, Bits, BlockId, Expr, Forwarding, Input, Pipeline, SlotId, StmtKind};

use super::super::state::{State, Step};
use super::Walker;
use crate::lower::build;

/// How often clones are followed through egress that clones in egress have requested.
const GENERATIONS: usize = 3;

impl Walker<'_> {
    /// Follows packets through all pipelines, from their arrival to their departure, and records the reads
    /// that are faults.
    pub fn pipeline(&mut self) {
        let starts = self.starts();
        let states = self.follow(Pipeline::INGRESS, starts, &mut Vec::new());
        let mut waiting = match self.forwarding.clone() {
            Some(forwarding) => self.between(states, &forwarding),
            None => vec![self.second_parser()],
        };
        for _ in 0..GENERATIONS {
            let mut copies = Vec::new();
            self.follow(Pipeline::EGRESS, waiting, &mut copies);
            waiting = copies;
            if waiting.is_empty() {
                break;
            }
        }
    }

    /// Follows packets through the blocks of a pipeline, from the states `states`, and returns those at its
    /// end. Adds to `copies` the states in which clones, requested in the second pipeline, enter that
    /// pipeline again.
    fn follow(
        &mut self,
        pipeline: Pipeline,
        mut states: Vec<State>,
        copies: &mut Vec<State>,
    ) -> Vec<State> {
        for (block, stage) in self.program.architecture.description().blocks_of(pipeline) {
            if stage.is_parser() {
                states = self.parser(block, states);
                if self.clones_parsed {
                    for state in &mut states {
                        state.parsed = Some(Rc::new(state.clone()));
                    }
                }
                continue;
            }
            states = self.block(block, states);
            if pipeline == Pipeline::EGRESS && stage.applies_tables() {
                copies.extend(self.copies(&states, false));
            }
            if let Some((slot, value)) = self.program.architecture.drops_after(block) {
                states.retain(|state| !has(state, slot, value));
            }
        }
        states
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
        match &self.forwarding {
            Some(forwarding) => forwarding.arrival.iter().for_each(|(slot, _)| {
                values.remove(slot);
            }),
            None => self.metadata.iter().for_each(|slot| {
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
            if let Some(path) = self.path() {
                values.remove(&path);
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

    /// Returns the state of packets at the start of the second pipeline, in an architecture that parses
    /// packets again there: all headers are invalid, and nothing is known about any other slot.
    fn second_parser(&self) -> State {
        let valid = self.program.headers.iter().map(|header| header.valid);
        State::new(valid.map(|slot| (slot, Bits::from_bool(false))).collect())
    }

    /// Returns the slot that tells egress how the packet came there (as original, replica or clone); `None`
    /// if packets do not keep their state between the pipelines.
    fn path(&self) -> Option<SlotId> {
        self.forwarding.as_ref()?.egress_slot(Input::PacketPath)
    }

    /// Follows packets that keep their headers and metadata from the first pipeline to the second: removes
    /// those that are known to be dropped, sets the metadata that the architecture sets there, and adds the
    /// clones requested in ingress. Returns the states in which packets enter the second pipeline.
    fn between(&mut self, states: Vec<State>, forwarding: &Forwarding) -> Vec<State> {
        let mut out = self.copies(&states, true);
        let paths = self.path();
        for mut state in states {
            let group = state.values.get(&forwarding.group);
            let alone = group.is_some_and(Bits::is_zero);
            if alone && has(&state, forwarding.ingress_drop.0, forwarding.ingress_drop.1) {
                continue;
            }
            let known = |slot: SlotId| state.values.get(&slot).filter(|_| alone).cloned();
            let (port, path) = (known(forwarding.port), paths.and_then(known));
            for &(slot, input) in &forwarding.egress {
                state.forget(slot);
                match input {
                    Input::Zero => {
                        state.values.insert(slot, self.zero(slot));
                    }
                    Input::OutputPort => state.values.extend(port.clone().map(|p| (slot, p))),
                    _ => {}
                }
            }
            state.clone = None;
            state.parsed = None;
            match (path, paths) {
                (Some(path), Some(slot)) => {
                    state.values.insert(slot, path);
                    out.push(state);
                }
                (None, Some(slot)) => {
                    // A copy of the group, and no clone.
                    let slots = &self.program.slots;
                    let width = slots[slot.index()].width;
                    let is = |kind| {
                        let kind = build::constant(width, kind);
                        build::binary(BinaryOp::Eq, Expr::Slot(slot), kind, slots)
                    };
                    let [ingress, egress] = forwarding.clone_paths.map(is);
                    let clone = build::binary(BinaryOp::Or, ingress, egress, slots);
                    out.extend(state.assume(&clone, false, slots));
                }
                (_, None) => out.push(state),
            }
        }
        self.reduce(out)
    }

    /// Returns the states in which clones enter egress, for the clones that the packets in `states`
    /// requested: in ingress if `of_ingress` is true, else in egress. Returns no states if packets do not
    /// keep their state between the pipelines.
    fn copies(&mut self, states: &[State], of_ingress: bool) -> Vec<State> {
        let Some(forwarding) = self.forwarding.clone() else {
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
                let parsed = of_ingress && !kept && !self.metadata.contains(&slot);
                if of_header || parsed || !self.uses.is_relevant(slot) {
                    continue;
                }
                copy.forget(slot);
                let value = match kept {
                    true => state.values.get(&slot).cloned(),
                    false if self.metadata.contains(&slot) => None,
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
            let [of_first, of_second] = forwarding.clone_paths;
            let kind = if of_ingress { of_first } else { of_second };
            for &(slot, input) in &forwarding.egress {
                let width = self.program.slots[slot.index()].width;
                let value = match input {
                    Input::PacketPath => Bits::from_u64(width, kind),
                    Input::Zero => Bits::zero(width),
                    _ => continue,
                };
                copy.values.insert(slot, value);
            }
            copy.push(Step::Copied(
                "the copy that `clone` asked for enters egress",
            ));
            out.push(copy);
        }
        self.reduce(out)
    }

    /// Follows packets through a control, up to its end or an `exit`, and returns the states there.
    fn block(&mut self, block: BlockId, states: Vec<State>) -> Vec<State> {
        let body = self.program.control(block);
        self.position = self.uses.start(block);
        let states = self.reduce(states);
        let mut out = self.body(body, states);
        out.append(&mut self.exits);
        self.reduce(out)
    }
}

/// Returns whether `slot` is known to have the value `value`.
fn has(state: &State, slot: SlotId, value: u64) -> bool {
    state.values.get(&slot).and_then(Bits::to_u64) == Some(value)
}
