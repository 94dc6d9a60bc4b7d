//! The parser: states, sub-parsers written out where they are applied, and transitions.

use ir::{StateId, Target, Transition};
use syntax::source::Span;

use super::{Binding, Lowerer, Object, ObjectId};
use crate::errors;
use crate::hir::{self, Args, Local};

/// The states made so far, and where statements go.
#[derive(Debug, Default)]
pub(super) struct Graph {
    states: Vec<ir::State>,
    /// The state that the statements being emitted belong to.
    open: Option<StateId>,
    /// Number of statement lists open around that state's body: more are branches inside of it.
    depth: usize,
    /// Sub-parsers applied so far.
    applied: u32,
    /// Goes before the names of a sub-parser's states.
    prefix: String,
}

impl Lowerer<'_> {
    /// Lowers a parser of the pipeline and returns its start state; `None` if it has no states.
    pub(super) fn main_parser(
        &mut self,
        object: ObjectId,
        bindings: Vec<Binding>,
    ) -> Option<StateId> {
        let Object::Block(instance) = self.object(object) else {
            return None;
        };
        let block = self.module.block(instance.block);
        self.env.extend(block.params.iter().copied().zip(bindings));
        self.inside(object);
        let init = self.capture(|l| l.parser_locals(block));
        // Locals get their initial values once: not again when a state goes back to `start`.
        let again = block.states.iter().any(|s| goes_to_start(&s.transition));
        let (entry, init) = match again && !init.is_empty() {
            true => (Some(self.new_state("$entry".into(), block.span)), init),
            false => (None, init),
        };
        let start = match entry {
            Some(entry) => {
                let start = self.parser_states(block, Target::Accept, Vec::new());
                self.finish(entry, init, Transition::Goto(start));
                Some(entry)
            }
            None => match self.parser_states(block, Target::Accept, init) {
                Target::State(start) => Some(start),
                _ => None,
            },
        };
        self.current = None;
        start
    }

    /// Removes the states of all parsers of the pipeline from the lowerer, and returns them.
    pub(super) fn take_states(&mut self) -> Vec<ir::State> {
        std::mem::take(&mut self.parser.states)
    }

    fn parser_locals(&mut self, block: &hir::Block) {
        for local in &block.locals {
            match local {
                Local::Var(var, init) => {
                    self.at(self.module.var(*var).span);
                    self.declare(*var, init.as_ref());
                }
                Local::Instance(var) => self.reset_local(*var),
                Local::Table(_) => {}
            }
        }
    }

    fn new_state(&mut self, name: String, span: Span) -> StateId {
        let loc = self.locate(span);
        let id = StateId(self.parser.states.len() as u32);
        let transition = Transition::Goto(Target::Reject);
        self.parser.states.push(ir::State {
            name,
            body: Vec::new(),
            transition,
            loc,
        });
        id
    }

    fn finish(&mut self, id: StateId, body: Vec<ir::Stmt>, transition: Transition) {
        let state = &mut self.parser.states[id.index()];
        state.body = body;
        state.transition = transition;
    }

    /// Lowers the states of a parser and returns its start state as a target. `accept` is the target of its
    /// accepted packets; the statements `init` run first in `start`.
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

    /// Lowers an `if` that applies a sub-parser: the open state ends with a choice, each side becomes a
    /// state, and a new open state follows both.
    pub(super) fn parser_branches(
        &mut self,
        cond: &hir::Expr,
        then: &[hir::Stmt],
        otherwise: &[hir::Stmt],
        span: Span,
    ) {
        let Some(open) = self.open_state() else {
            return self.not_in_state(span);
        };
        let cond = self.scalar(cond);
        let body = self.out.last_mut().map(std::mem::take).unwrap_or_default();
        let name = self.parser.states[open.index()].name.clone();
        self.parser.applied += 1;
        let number = self.parser.applied;
        let later = Target::State(StateId(u32::MAX - number));
        let first_new = self.parser.states.len();
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
        let next = self.new_state(format!("{name}.{number}"), span);
        let new = &mut self.parser.states[first_new..];
        new.iter_mut()
            .for_each(|s| redirect(&mut s.transition, later, Target::State(next)));
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
        self.parser.open = Some(next);
    }

    /// Returns the open state, to which statements are emitted; `None` inside of a branch or loop of the state.
    fn open_state(&self) -> Option<StateId> {
        self.parser
            .open
            .filter(|_| self.out.len() == self.parser.depth)
    }

    fn not_in_state(&mut self, span: Span) {
        self.report(errors::unsupported(
            span,
            "applying a parser inside of a loop or switch",
        ));
    }

    /// Inlines a call of a sub-parser: the open state ends before the sub-parser's states, and a new open
    /// state follows them.
    pub(super) fn apply_parser(&mut self, object: ObjectId, args: &Args, span: Span) {
        let Object::Block(instance) = self.object(object) else {
            return;
        };
        let block = self.module.block(instance.block);
        let Some(open) = self.open_state() else {
            return self.not_in_state(span);
        };
        let outer_env = self.env.clone();
        let caller = self.current;
        let copies = self.bind_block(object, &block.params, args, false);
        self.inside(object);
        self.parser_locals(block);
        let body = self.out.last_mut().map(std::mem::take).unwrap_or_default();
        self.parser.applied += 1;
        let name = self.parser.states[open.index()].name.clone();
        let outer_prefix = std::mem::replace(
            &mut self.parser.prefix,
            format!("{name}.{}.", instance.path),
        );
        let depth = self.parser.depth;
        // The state to go on with comes after the sub-parser's, so that going there is no backward step.
        let first_new = self.parser.states.len();
        let later = Target::State(StateId(u32::MAX - self.parser.applied));
        let start = self.parser_states(block, later, Vec::new());
        let next = self.new_state(format!("{name}.{}", self.parser.applied), span);
        let new = &mut self.parser.states[first_new..];
        new.iter_mut()
            .for_each(|s| redirect(&mut s.transition, later, Target::State(next)));
        let start = if start == later {
            Target::State(next)
        } else {
            start
        };
        self.finish(open, body, Transition::Goto(start));
        self.parser.prefix = outer_prefix;
        self.parser.open = Some(next);
        self.parser.depth = depth;
        self.current = caller;
        self.env = outer_env;
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
