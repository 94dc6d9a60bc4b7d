//! The parser: states, sub-parsers written out where they are applied, and transitions.

use ir::{StateId, Target, Transition};
use syntax::source::Span;

use super::{Body, ObjectId};
use crate::errors;
use crate::hir::{self, Args};

/// The parser state to which statements are emitted.
#[derive(Clone, Debug, Default)]
pub(super) struct Position {
    /// The state; `None` outside of parsers.
    open: Option<StateId>,
    /// The number of open lists of statements when the state's body is the innermost: more are branches
    /// inside of it.
    depth: usize,
    /// The prefix of the names of the states of a sub-parser.
    prefix: String,
}

impl Body<'_, '_> {
    /// Lowers a parser of the pipeline, whose parameters are bound, and returns its start state; `None` if it
    /// has no states.
    pub(super) fn main_parser(&mut self, block: &hir::Block) -> Option<StateId> {
        let init = self.capture(|l| l.parser_locals(block));
        // Locals get their initial values once: not again when a state goes back to `start`.
        let again = block.states.iter().any(|s| goes_to_start(&s.transition));
        if again && !init.is_empty() {
            let entry = self.new_state("$entry".into(), block.span);
            let start = self.parser_states(block, Target::Accept, Vec::new());
            self.finish(entry, init, Transition::Goto(start));
            return Some(entry);
        }
        match self.parser_states(block, Target::Accept, init) {
            Target::State(start) => Some(start),
            _ => None,
        }
    }

    fn parser_locals(&mut self, block: &hir::Block) {
        block.locals.iter().for_each(|local| self.local(local));
    }

    fn new_state(&mut self, name: String, span: Span) -> StateId {
        let loc = self.locate(span);
        let id = StateId(self.program.states.len() as u32);
        let transition = Transition::Goto(Target::Reject);
        self.program.states.push(ir::State {
            name,
            body: Vec::new(),
            transition,
            loc,
        });
        id
    }

    fn finish(&mut self, id: StateId, body: Vec<ir::Stmt>, transition: Transition) {
        let state = &mut self.program.states[id.index()];
        state.body = body;
        state.transition = transition;
    }

    /// Lowers the states of a parser, and returns the transition target that starts it. Accepted packets go
    /// to `accept`. The statements `init` run first in `start`.
    fn parser_states(&mut self, block: &hir::Block, accept: Target, init: Vec<ir::Stmt>) -> Target {
        let prefix = self.parser.prefix.clone();
        let ids: Vec<StateId> = block
            .states
            .iter()
            .map(|s| self.new_state(format!("{prefix}{}", s.name), s.span))
            .collect();
        let target = |t: hir::Target| match t {
            hir::Target::State(i) => ids.get(i).map_or(Target::Reject, |id| Target::State(*id)),
            hir::Target::Accept => accept,
            hir::Target::Reject => Target::Reject,
        };
        let mut init = Some(init);
        for (state, id) in block.states.iter().zip(&ids) {
            if self.exhausted() {
                break;
            }
            self.spend(1);
            self.out.push(init.take().unwrap_or_default());
            self.parser.open = Some(*id);
            self.parser.depth = self.out.len();
            self.statements(&state.body);
            self.at(state.span);
            let transition = match &state.transition {
                hir::Transition::Goto(t) => Transition::Goto(target(*t)),
                hir::Transition::Select { keys, cases } => self.select(keys, cases, &target),
            };
            let body = self.out.pop().unwrap_or_default();
            let open = self.parser.open.unwrap_or(*id);
            self.finish(open, body, transition);
        }
        ids.first().map_or(accept, |id| Target::State(*id))
    }

    fn select(
        &mut self,
        keys: &[hir::Expr],
        cases: &[(Vec<hir::Keyset>, hir::Target)],
        target: &dyn Fn(hir::Target) -> Target,
    ) -> Transition {
        let refs: Vec<&hir::Expr> = keys.iter().collect();
        let values = self.eval_all(&refs);
        let exprs: Vec<ir::Expr> = values
            .into_iter()
            .zip(keys)
            .map(|(v, k)| self.bits(v, &k.ty))
            .collect();
        let mut out = Vec::new();
        for (sets, to) in cases {
            for matches in self.key_sets(sets, keys) {
                out.push(ir::SelectCase {
                    matches,
                    target: target(*to),
                });
            }
        }
        match &out[..] {
            [only, ..] if only.matches.iter().all(|m| *m == ir::KeySet::Any) => {
                Transition::Goto(only.target)
            }
            _ => Transition::Select {
                keys: exprs,
                cases: out,
            },
        }
    }

    /// Lowers an `if` in a parser state that applies a sub-parser: the current state ends with a select, each
    /// side becomes a state, and statements after the `if` go to a new state that follows both.
    pub(super) fn parser_branches(
        &mut self,
        cond: &hir::Expr,
        then: &[hir::Stmt],
        otherwise: &[hir::Stmt],
        span: Span,
    ) {
        let Some(open) = self.open_state(span) else {
            return;
        };
        let cond = self.scalar(cond);
        let body = self.out.last_mut().map(std::mem::take).unwrap_or_default();
        let name = self.program.states[open.index()].name.clone();
        self.made.sub_parsers += 1;
        let number = self.made.sub_parsers;
        let later = Target::State(StateId(u32::MAX - number));
        let first_new = self.program.states.len();
        let mut sides = Vec::new();
        for (stmts, side) in [(then, "then"), (otherwise, "else")] {
            let start = self.new_state(format!("{name}.{number}.{side}"), span);
            sides.push(start);
            self.parser.open = Some(start);
            self.statements(stmts);
            let end = self.parser.open.unwrap_or(start);
            let body = self.out.last_mut().map(std::mem::take).unwrap_or_default();
            self.finish(end, body, Transition::Goto(later));
        }
        self.go_on(format!("{name}.{number}"), first_new, later, span);
        let case = |set, to| ir::SelectCase {
            matches: vec![set],
            target: Target::State(to),
        };
        let one = ir::KeySet::Mask {
            value: ir::Bits::from_bool(true),
            mask: ir::Bits::ones(1),
        };
        let choice = Transition::Select {
            keys: vec![cond],
            cases: vec![case(one, sides[0]), case(ir::KeySet::Any, sides[1])],
        };
        self.finish(open, body, choice);
    }

    /// Returns the state to which statements are emitted. Reports an error, and returns `None`, in a branch
    /// or loop inside of the state, where the state cannot be ended.
    fn open_state(&mut self, span: Span) -> Option<StateId> {
        let open = self.parser.open;
        let open = open.filter(|_| self.out.len() == self.parser.depth);
        if open.is_none() {
            let what = "applying a parser inside of a loop or switch";
            self.report(errors::unsupported(span, what));
        }
        open
    }

    /// Makes a new state for the statements that follow, and redirects to it all transitions to the
    /// placeholder `later` in the states from position `first` on. Returns the new state as a target.
    fn go_on(&mut self, name: String, first: usize, later: Target, span: Span) -> Target {
        let next = self.new_state(name, span);
        self.parser.open = Some(next);
        let next = Target::State(next);
        let new = self.program.states[first..].iter_mut();
        new.for_each(|s| redirect(&mut s.transition, later, next));
        next
    }

    /// Lowers the application of a sub-parser: the current state ends with a transition to the sub-parser's
    /// states, and statements after it go to a new state that follows them.
    pub(super) fn apply_parser(&mut self, object: ObjectId, args: &Args, span: Span) {
        let Some(instance) = self.block_instance(Some(object)) else {
            return;
        };
        let block = self.module.block(instance.block);
        let Some(open) = self.open_state(span) else {
            return;
        };
        let (names, copies) = self.bind_block(object, &block.params, args, false);
        let path = self.path_of(Some(object));
        self.made.sub_parsers += 1;
        let number = self.made.sub_parsers;
        let name = self.program.states[open.index()].name.clone();
        let mut inner = self.inside(object, names, Vec::new());
        inner.parser_locals(block);
        let body = inner.out.last_mut().map(std::mem::take).unwrap_or_default();
        inner.parser.prefix = format!("{name}.{path}.");
        // The state to go on with comes after the sub-parser's, so that going there is no backward step.
        let first_new = inner.program.states.len();
        let later = Target::State(StateId(u32::MAX - number));
        let start = inner.parser_states(block, later, Vec::new());
        let applied = self.made.sub_parsers;
        let next = self.go_on(format!("{name}.{applied}"), first_new, later, span);
        let start = if start == later { next } else { start };
        self.finish(open, body, Transition::Goto(start));
        self.at(span);
        self.copy_back(&copies);
    }
}

fn redirect(transition: &mut Transition, from: Target, to: Target) {
    let change = |t: &mut Target| {
        if *t == from {
            *t = to;
        }
    };
    match transition {
        Transition::Goto(t) => change(t),
        Transition::Select { cases, .. } => cases.iter_mut().for_each(|c| change(&mut c.target)),
    }
}

fn goes_to_start(transition: &hir::Transition) -> bool {
    let start = hir::Target::State(0);
    match transition {
        hir::Transition::Goto(t) => *t == start,
        hir::Transition::Select { cases, .. } => cases.iter().any(|(_, t)| *t == start),
    }
}
