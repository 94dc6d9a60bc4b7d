//! The possible states at one point of a program, on one group of paths that lead there.
//!
//! A [`State`] holds the values of slots that are known (validity bits among them), conditions that are known to hold or not, the slots
//! that may have no value, and the path. Conditions that hold or fail make new states ([`State::assume`]); a condition that cannot be
//! the case makes none. So relations between slots are kept by keeping states apart, as long as there are not too many.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use ir::{ActionId, BinaryOp, Bits, Expr, HeaderId, Loc, Slot, SlotId, StateId, TableId, UnaryOp};

use crate::lower::build;

/// The number of conditions that a state remembers at most; the oldest are dropped first.
const FACTS: usize = 24;

/// A step on the way to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The parser entered a state.
    Entered(StateId),
    /// The packet ended before this header, or the parser rejected it.
    Short(HeaderId),
    /// The parser rejected the packet at a place.
    Rejected(Loc),
    /// A condition had a value.
    Branch(Loc, bool),
    /// A table was hit or missed, and ran an action.
    Ran(TableId, ActionId, bool),
    /// The packet is a copy that a clone has made, sent again, or parsed again.
    Copied(&'static str),
}

/// The way to a place, from its end.
#[derive(Debug)]
pub(super) struct Path {
    pub step: Step,
    pub before: Option<Rc<Path>>,
    pub length: usize,
}

impl Drop for Path {
    /// Frees the path step by step, since recursion over a long path would exhaust the stack.
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(path) = next {
            match Rc::try_unwrap(path) {
                Ok(mut path) => next = path.before.take(),
                Err(_) => break,
            }
        }
    }
}

/// The properties of the clone of a packet that matter when the pipeline ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PendingClone {
    pub of_ingress: bool,
    pub preserve: Option<ir::FieldListId>,
}

/// The properties of a packet that all its copies share: validity and lack of values.
pub(super) type Shape = (Vec<Option<bool>>, BTreeSet<SlotId>);

/// A possible state of a packet.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// Slots whose value is known.
    pub values: BTreeMap<SlotId, Bits>,
    /// Conditions, and whether they hold.
    pub facts: Vec<(Rc<Expr>, bool)>,
    /// Slots that may have no value.
    pub unset: BTreeSet<SlotId>,
    /// Headers that have been reported on this path already.
    pub blamed: BTreeSet<HeaderId>,
    /// The clone of the packet that the program has requested, if it has.
    pub clone: Option<PendingClone>,
    /// The state at the end of the parser, if the program clones packets as they were then.
    pub parsed: Option<Rc<State>>,
    /// The steps that led here; `None` at the start.
    pub path: Option<Rc<Path>>,
}

impl State {
    /// Makes the state at the start of a packet's path, in which slots have the values `values` and no
    /// steps were made.
    pub fn new(values: BTreeMap<SlotId, Bits>) -> State {
        State {
            values,
            facts: Vec::new(),
            unset: BTreeSet::new(),
            blamed: BTreeSet::new(),
            clone: None,
            parsed: None,
            path: None,
        }
    }

    /// Appends a step to the path that led to this state.
    pub fn push(&mut self, step: Step) {
        let length = self.path_length() + 1;
        let before = self.path.take();
        self.path = Some(Rc::new(Path {
            step,
            before,
            length,
        }));
    }

    /// Returns the number of steps on the path that led to this state.
    pub fn path_length(&self) -> usize {
        self.path.as_ref().map_or(0, |path| path.length)
    }

    /// Returns whether both states hold the same information about the packet, without regard to the paths
    /// that led to them.
    pub fn agrees(&self, other: &State) -> bool {
        self.values == other.values
            && self.unset == other.unset
            && self.clone == other.clone
            && self.blamed == other.blamed
            && self.facts.len() == other.facts.len()
            && self.facts.iter().all(|fact| other.facts.contains(fact))
            && match (&self.parsed, &other.parsed) {
                (Some(a), Some(b)) => Rc::ptr_eq(a, b) || a.agrees(b),
                (a, b) => a.is_none() == b.is_none(),
            }
    }

    /// Makes this state stand for `other` too: keeps the values and facts that both have. A slot may be unset
    /// afterwards if it may be unset in either. Keeps the shorter path of the two.
    pub fn join(&mut self, other: &State) {
        self.values
            .retain(|slot, value| other.values.get(slot) == Some(value));
        self.facts.retain(|fact| other.facts.contains(fact));
        self.unset.extend(&other.unset);
        self.blamed.retain(|header| other.blamed.contains(header));
        if other.path_length() < self.path_length() {
            self.path.clone_from(&other.path);
        }
        if let (Some(a), Some(b)) = (&self.parsed, &other.parsed)
            && !Rc::ptr_eq(a, b)
            && !a.agrees(b)
        {
            let mut joined = (**a).clone();
            joined.join(b);
            self.parsed = Some(Rc::new(joined));
        }
    }

    /// Removes the known value of a slot and all facts about it.
    pub fn forget(&mut self, slot: SlotId) {
        self.values.remove(&slot);
        self.facts
            .retain(|(fact, _)| !fact.reads(&|read| read == slot));
    }

    /// Forgets the values of slots for which `values` returns false and the facts that read such slots, and
    /// that a slot may be unset if `unset` returns false for it.
    pub fn keep(&mut self, values: &dyn Fn(SlotId) -> bool, unset: &dyn Fn(SlotId) -> bool) {
        self.values.retain(|slot, _| values(*slot));
        self.facts
            .retain(|(fact, _)| !fact.reads(&|read| !values(read)));
        self.unset.retain(|slot| unset(*slot));
    }

    /// Records that a slot has the value `value`, and simplifies the facts about it. Returns false if the
    /// known facts exclude that value.
    #[must_use]
    pub fn set(&mut self, slot: SlotId, value: Bits, slots: &[Slot]) -> bool {
        self.values.insert(slot, value);
        let about: Vec<(Rc<Expr>, bool)> = (self.facts.iter())
            .filter(|(fact, _)| fact.reads(&|read| read == slot))
            .cloned()
            .collect();
        self.facts
            .retain(|(fact, _)| !fact.reads(&|read| read == slot));
        (about.into_iter()).all(|(fact, holds)| {
            let simpler = self.simplify(&fact, slots);
            match build::known(&simpler) {
                Some(value) => value == holds,
                None => {
                    self.note(simpler, holds);
                    true
                }
            }
        })
    }

    /// Records that a condition holds, or that it does not. Drops the oldest fact if the state has `FACTS`
    /// facts already.
    fn note(&mut self, condition: Expr, holds: bool) {
        if self.facts.len() == FACTS {
            self.facts.remove(0);
        }
        self.facts.push((Rc::new(condition), holds));
    }

    /// Returns the expression with constants in place of the slots and conditions whose values are known in
    /// this state, simplified.
    pub fn simplify(&self, expr: &Expr, slots: &[Slot]) -> Expr {
        let again = |e: &Expr| self.simplify(e, slots);
        let simpler = match expr {
            Expr::Slot(slot) => match self.values.get(slot) {
                Some(value) => return Expr::Const(value.clone()),
                None => return expr.clone(),
            },
            Expr::Const(_) | Expr::PacketLength => return expr.clone(),
            Expr::Unary { op, a } => build::unary(*op, again(a)),
            Expr::Binary { op, a, b } => build::binary(*op, again(a), again(b), slots),
            Expr::Slice { a, high, low } => build::slice(again(a), *high, *low, slots),
            Expr::Concat { a, b } => build::concat(again(a), again(b)),
            Expr::ZeroExtend { a, width } => build::resize(again(a), *width, slots),
            Expr::SignExtend { a, width } => build::resize_signed(again(a), *width, slots),
            Expr::Mux {
                cond,
                then,
                otherwise,
            } => {
                let cond = again(cond);
                match build::known(&cond) {
                    Some(true) => again(then),
                    Some(false) => again(otherwise),
                    None => build::mux(cond, again(then), again(otherwise)),
                }
            }
        };
        if let Expr::Const(_) = simpler {
            return simpler;
        }
        let (condition, sense) = normal(&simpler);
        self.fact(&condition)
            .map_or(simpler, |holds| build::boolean(holds == sense))
    }

    /// Returns the truth value of a condition in normal form (see [`normal`]), as far as it follows from the
    /// facts of this state; `None` if it does not.
    fn fact(&self, condition: &Expr) -> Option<bool> {
        let equals = |e: &Expr| match e {
            Expr::Binary {
                op: BinaryOp::Eq,
                a,
                b,
            } => match &**b {
                Expr::Const(value) => Some((a.clone(), value.clone())),
                _ => None,
            },
            _ => None,
        };
        if self.facts.is_empty() {
            return None;
        }
        if let Some((_, holds)) = self.facts.iter().find(|(fact, _)| **fact == *condition) {
            return Some(*holds);
        }
        // A value that equals one equals no other.
        let (a, value) = equals(condition)?;
        let other = (self.facts.iter())
            .filter(|(_, holds)| *holds)
            .filter_map(|(fact, _)| equals(fact))
            .any(|(b, known)| a == b && value != known);
        other.then_some(false)
    }

    /// Returns the states in which the condition `cond ? then : otherwise`, whose sides are conditions too,
    /// has the truth value `value`.
    fn assume_arms(
        self,
        cond: &Expr,
        [then, otherwise]: [&Expr; 2],
        value: bool,
        slots: &[Slot],
    ) -> Vec<State> {
        let mut states = Vec::new();
        for (side, arm) in [(true, then), (false, otherwise)] {
            for state in self.clone().assume(cond, side, slots) {
                states.extend(state.assume(arm, value, slots));
            }
        }
        states
    }

    /// Returns the cases of this state in which `condition` has the truth value `value`, with that recorded;
    /// none if the condition cannot have it. There can be several, for example one for each side of an `or`.
    pub fn assume(self, condition: &Expr, value: bool, slots: &[Slot]) -> Vec<State> {
        let condition = self.simplify(condition, slots);
        match condition {
            Expr::Const(bits) => match bits.is_zero() != value {
                true => vec![self],
                false => Vec::new(),
            },
            Expr::Unary {
                op: UnaryOp::Not,
                a,
            } => self.assume(&a, !value, slots),
            Expr::Binary { op, a, b }
                if matches!(op, BinaryOp::And | BinaryOp::Or) && a.width(slots) == 1 =>
            {
                // Both operands have the value, or the first that has the other one decides.
                let both = value == (op == BinaryOp::And);
                if both {
                    let first = self.assume(&a, value, slots);
                    return (first.into_iter())
                        .flat_map(|state| state.assume(&b, value, slots))
                        .collect();
                }
                let mut states = self.clone().assume(&a, value, slots);
                for state in self.assume(&a, !value, slots) {
                    states.extend(state.assume(&b, value, slots));
                }
                states
            }
            Expr::Mux {
                cond,
                then,
                otherwise,
            } => self.assume_arms(&cond, [&then, &otherwise], value, slots),
            condition => {
                let (condition, sense) = normal(&condition);
                self.assume_normal(condition, value == sense, slots)
            }
        }
    }

    /// Returns this state with the record that `condition`, which is not constant and not made of other
    /// conditions, has the truth value `value`; no state if that contradicts what is known.
    fn assume_normal(mut self, condition: Expr, value: bool, slots: &[Slot]) -> Vec<State> {
        match &condition {
            Expr::Slot(slot) => {
                let slot = *slot;
                match self.set(slot, Bits::from_bool(value), slots) {
                    true => vec![self],
                    false => Vec::new(),
                }
            }
            Expr::Binary {
                op: BinaryOp::Eq,
                a,
                b,
            } => match &**b {
                Expr::Const(constant) => self.assume_equal(a, constant, value, slots),
                _ => {
                    self.note(condition, value);
                    vec![self]
                }
            },
            _ => {
                self.note(condition, value);
                vec![self]
            }
        }
    }

    /// Returns the cases of this state in which the expression `a` equals `constant` or, if `value` is false,
    /// differs from it; none if that is impossible.
    fn assume_equal(
        mut self,
        a: &Expr,
        constant: &Bits,
        value: bool,
        slots: &[Slot],
    ) -> Vec<State> {
        let equals =
            |a: &Expr, bits: Bits| build::binary(BinaryOp::Eq, a.clone(), Expr::Const(bits), slots);
        match a {
            Expr::Slot(slot) if value => {
                let possible = self.set(*slot, constant.clone(), slots);
                if possible { vec![self] } else { Vec::new() }
            }
            Expr::Concat { a: high, b: low } => {
                let width = low.width(slots);
                let high = equals(high, constant.slice(constant.width() - 1, width));
                let low = equals(low, constant.slice(width - 1, 0));
                let both = build::binary(BinaryOp::And, high, low, slots);
                self.assume(&both, value, slots)
            }
            Expr::ZeroExtend { a, .. } => {
                let width = a.width(slots);
                match constant.bit_length() <= width {
                    true => {
                        let inner = equals(a, constant.resize(width));
                        self.assume(&inner, value, slots)
                    }
                    false if value => Vec::new(),
                    false => vec![self],
                }
            }
            Expr::Mux {
                cond,
                then,
                otherwise,
            } => {
                let arms = [then, otherwise].map(|arm| equals(arm, constant.clone()));
                self.assume_arms(cond, arms.each_ref(), value, slots)
            }
            _ => {
                self.note(equals(a, constant.clone()), value);
                vec![self]
            }
        }
    }
}

/// Rewrites a condition to the normal form in which states record facts: without `Ne`, `Ule` and `Not`, and
/// with the constant on the right of an equality. Returns the normal form, and true if it means the same as
/// the condition, false if it means the opposite.
fn normal(condition: &Expr) -> (Expr, bool) {
    match condition {
        Expr::Unary {
            op: UnaryOp::Not,
            a,
        } => {
            let (inner, sense) = normal(a);
            (inner, !sense)
        }
        Expr::Binary { op, a, b } => {
            let make = |op, a: &Expr, b: &Expr| Expr::Binary {
                op,
                a: Box::new(a.clone()),
                b: Box::new(b.clone()),
            };
            match op {
                BinaryOp::Eq | BinaryOp::Ne => {
                    let swap = matches!(**a, Expr::Const(_));
                    let (a, b) = if swap { (b, a) } else { (a, b) };
                    (make(BinaryOp::Eq, a, b), *op == BinaryOp::Eq)
                }
                BinaryOp::Ule => (make(BinaryOp::Ult, b, a), false),
                BinaryOp::Sle => (make(BinaryOp::Slt, b, a), false),
                _ => (condition.clone(), true),
            }
        }
        _ => (condition.clone(), true),
    }
}
