//! Joins states that are alike, to limit their number.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use ir::{HeaderId, SlotId};

use super::super::state::{Shape, State};
use super::Walker;

/// The number of states that are kept apart at one place. If there are more, those that are most alike are
/// joined first.
const MOST_STATES: usize = 160;

impl Walker<'_> {
    /// Joins the states that agree in everything that later statements use, and returns those that are left.
    /// If they are more than `MOST_STATES`, also joins states that differ, at first in facts, then in values,
    /// at last in validity.
    pub(super) fn reduce(&self, mut states: Vec<State>) -> Vec<State> {
        if states.len() < 2 {
            return states;
        }
        let uses = &self.uses;
        let read_later = |slot| {
            self.position
                .is_none_or(|position| uses.is_read_after(slot, position))
        };
        let written_later = |slot| {
            self.position
                .is_none_or(|position| uses.is_written_after(slot, position))
        };
        states = self.kept(states, &|slot| read_later(slot) || written_later(slot));
        if states.len() <= MOST_STATES {
            return states;
        }
        // That a header is valid matters least where it is only made valid or written to.
        states = self.kept(states, &read_later);
        if states.len() <= MOST_STATES {
            return states;
        }
        // Facts go first, then values, then the lack of values, then validity.
        let states = joined(
            states,
            |_| 0,
            |a, b| a.values == b.values && a.unset == b.unset,
        );
        if states.len() <= MOST_STATES {
            return states;
        }
        let shapes: Vec<Shape> = states.iter().map(|state| self.shape(state)).collect();
        let mut sizes: BTreeMap<&Shape, usize> = BTreeMap::new();
        shapes
            .iter()
            .for_each(|shape| *sizes.entry(shape).or_default() += 1);
        let mut groups: Vec<(usize, &Shape)> = sizes.into_iter().map(|(s, n)| (n, s)).collect();
        groups.sort_by(|a, b| b.cmp(a));
        let mut left = states.len();
        let mut large: BTreeSet<&Shape> = BTreeSet::new();
        for (size, shape) in groups {
            if left <= MOST_STATES / 2 || size == 1 {
                break;
            }
            left -= size - 1;
            large.insert(shape);
        }
        let mut out: Vec<State> = Vec::new();
        let mut first: BTreeMap<&Shape, usize> = BTreeMap::new();
        for (state, shape) in states.iter().zip(&shapes) {
            match first.get(shape).filter(|_| large.contains(shape)) {
                Some(at) => out[*at].join(state),
                None => {
                    first.insert(shape, out.len());
                    out.push(state.clone());
                }
            }
        }
        if out.len() <= MOST_STATES {
            return out;
        }
        let same = |a: &State, b: &State| self.shape(a).0 == self.shape(b).0;
        let out = joined(out, |_| 0, same);
        if out.len() <= 2 * MOST_STATES {
            return out;
        }
        joined(out, |_| 0, |_, _| true)
    }

    /// Removes from the states all information about slots for which `used_later` returns false, and returns
    /// the states that are left after joining equal ones. Information that decides whether an unset field is
    /// sent stays: that the field of an emitted header may be unset, and that header's validity.
    fn kept(&self, mut states: Vec<State>, used_later: &dyn Fn(SlotId) -> bool) -> Vec<State> {
        let uses = &self.uses;
        for state in &mut states {
            // Whether a header is sent matters if something would be sent with it that has no value.
            let open: BTreeSet<SlotId> = (state.unset.iter())
                .filter(|slot| uses.is_sent(**slot))
                .filter_map(|slot| self.field_of[slot.index()])
                .map(|id| self.program.headers[id.index()].valid)
                .collect();
            state.keep(&|slot| used_later(slot) || open.contains(&slot), &|slot| {
                used_later(slot) || uses.is_sent(slot)
            });
        }
        joined(
            states,
            |state| {
                let mut hasher = DefaultHasher::new();
                state.values.hash(&mut hasher);
                state.unset.hash(&mut hasher);
                hasher.finish()
            },
            State::agrees,
        )
    }

    fn shape(&self, state: &State) -> Shape {
        let valid = self.program.headers.iter().enumerate();
        let valid = valid.map(|(i, _)| self.validity(state, HeaderId(i as u32)));
        (valid.collect(), state.unset.clone())
    }
}

/// Joins any states for which `alike` returns true, and returns the states that are left. `key` returns a
/// hash, which must be the same for two states that are alike.
fn joined(
    states: Vec<State>,
    key: impl Fn(&State) -> u64,
    alike: impl Fn(&State, &State) -> bool,
) -> Vec<State> {
    let mut out: Vec<State> = Vec::with_capacity(states.len());
    let mut by_key: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for state in states {
        let group = by_key.entry(key(&state)).or_default();
        match group.iter().find(|at| alike(&out[**at], &state)) {
            Some(at) => out[*at].join(&state),
            None => {
                group.push(out.len());
                out.push(state);
            }
        }
    }
    out
}
