//! The walk through the states of a parser, with its loops.

use ir::{BinaryOp, Bits, BlockId, Expr, KeySet, StateId, Target, Transition};

use super::super::state::{State, Step};
use super::Walker;
use crate::lower::build;

/// Visits of one parser state, each with a different state of the packet, after which only the validity of
/// headers and the next indexes of stacks are kept of the known values. After eight times as many, the states
/// of all further visits are joined.
const VISITS: usize = 64;

impl Walker<'_> {
    /// Follows packets through the parser `block`, from the states `starts`, until no parser state is reached
    /// with a new state of a packet. Returns the states in which packets leave the parser, accepted or
    /// rejected.
    pub(super) fn parser(&mut self, block: BlockId, starts: Vec<State>) -> Vec<State> {
        let Some(start) = self.program.parser_start(block) else {
            return starts;
        };
        self.position = None;
        let pipeline = self
            .program
            .architecture
            .description()
            .stage(block)
            .pipeline;
        self.parser_error = self.program.architecture.parser_error(pipeline);
        let mut accepted = Vec::new();
        let mut visits: Vec<Vec<State>> = vec![Vec::new(); self.program.states.len()];
        let mut waiting: Vec<(StateId, State)> =
            starts.into_iter().map(|state| (start, state)).collect();
        while let Some((at, mut state)) = waiting.pop() {
            let seen = &mut visits[at.index()];
            if seen.len() >= VISITS {
                let uses = &self.uses;
                state.keep(
                    &|slot| uses.is_validity(slot) || uses.is_next_index(slot),
                    &|_| true,
                );
            }
            if seen.len() >= 8 * VISITS
                && let Some(all) = seen.last()
            {
                state.join(all);
            }
            if seen.iter().any(|other| other.agrees(&state)) {
                continue;
            }
            seen.push(state.clone());
            state.push(Step::Entered(at));
            let here = &self.program.states[at.index()];
            let states = self.body(&here.body, vec![state]);
            self.loc = here.loc;
            for state in states {
                self.transition(&here.transition, state, &mut waiting, &mut accepted);
            }
        }
        accepted.append(&mut self.rejected);
        self.position = self.uses.start(BlockId(block.0 + 1));
        self.reduce(accepted)
    }

    fn transition(
        &mut self,
        transition: &Transition,
        mut state: State,
        waiting: &mut Vec<(StateId, State)>,
        accepted: &mut Vec<State>,
    ) {
        let loc = self.loc;
        let error = self.parser_error;
        let mut go = |target: Target, mut state: State| match target {
            Target::State(id) => waiting.push((id, state)),
            Target::Accept => accepted.push(state),
            Target::Reject => {
                state.push(Step::Rejected(loc));
                accepted.push(state);
            }
        };
        match transition {
            Transition::Goto(target) => go(*target, state),
            Transition::Select { keys, cases } => {
                for key in keys {
                    self.check(key, &mut state, &|_| false);
                }
                let mut rest = vec![state];
                for case in cases {
                    let (condition, exact) = self.case(keys, &case.matches);
                    let mut others = Vec::new();
                    for state in rest {
                        let taken = state.clone().assume(&condition, true, &self.program.slots);
                        taken.into_iter().for_each(|state| go(case.target, state));
                        match exact {
                            true => {
                                others.extend(state.assume(&condition, false, &self.program.slots));
                            }
                            false => others.push(state),
                        }
                    }
                    rest = self.reduce(others);
                }
                for mut state in rest {
                    state.forget(error);
                    go(Target::Reject, state);
                }
            }
        }
    }

    /// Returns the condition under which a case of a select matches `keys`, and whether the condition is
    /// exact. It is not exact if the case contains value sets, whose members are unknown: the condition
    /// ignores these.
    fn case(&self, keys: &[Expr], matches: &[KeySet]) -> (Expr, bool) {
        let slots = &self.program.slots;
        let mut exact = true;
        let mut all = build::boolean(true);
        for (key, set) in keys.iter().zip(matches) {
            let one = match set {
                KeySet::Any => continue,
                KeySet::ValueSet(_) => {
                    exact = false;
                    continue;
                }
                KeySet::Mask { value, mask } => {
                    let full = *mask == Bits::ones(mask.width());
                    let masked = match full {
                        true => key.clone(),
                        false => {
                            let mask = Expr::Const(mask.clone());
                            build::binary(BinaryOp::And, key.clone(), mask, slots)
                        }
                    };
                    build::binary(BinaryOp::Eq, masked, Expr::Const(value.clone()), slots)
                }
                KeySet::Range { low, high } => {
                    let (low, high) = (Expr::Const(low.clone()), Expr::Const(high.clone()));
                    let above = build::binary(BinaryOp::Ule, low, key.clone(), slots);
                    let below = build::binary(BinaryOp::Ule, key.clone(), high, slots);
                    build::binary(BinaryOp::And, above, below, slots)
                }
            };
            all = build::binary(BinaryOp::And, all, one, slots);
        }
        (all, exact)
    }
}
