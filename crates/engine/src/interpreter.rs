//! The reference executor: walks the program's tree over [`ir::Bits`], exactly as the documentation of [`ir::program`] says.
//!
//! It is meant to be read. It holds no state of its own, knows no tables but through [`crate::runtime::Runtime`], and
//! writes what it does to the trace when there is one. Statements that only a parser or a deparser has are in
//! `parser`; externs are in `externs`.

mod externs;
mod parser;

use crate::exec::{DropReason, Executor, PacketContext};
use crate::trace::{EventKind, TableApplied};
use ir::{
    Bits, Block, BlockId, Expr, LabelId, Layout, Loc, MAX_STEPS, Pipeline, Program, SlotId, Stmt,
    StmtKind, TableId,
};
use std::sync::Arc;

/// The executor that interprets one program.
#[derive(Clone, Debug)]
pub struct Interpreter {
    program: Arc<Program>,
    layout: Layout,
}

impl Interpreter {
    /// Makes an interpreter of a verified program.
    pub fn new(program: Arc<Program>) -> Interpreter {
        Interpreter {
            layout: Layout::new(&program),
            program,
        }
    }

    fn begin<'r, 'c>(&'r self, pipeline: Pipeline, cx: &'r mut PacketContext<'c>) -> Run<'r, 'c> {
        Run {
            program: &self.program,
            layout: &self.layout,
            cx,
            steps: 0,
            pipeline,
        }
    }
}

impl Executor for Interpreter {
    fn run(&self, pipeline: Pipeline, cx: &mut PacketContext<'_>) {
        let mut run = self.begin(pipeline, cx);
        let mut blocks = self.program.architecture.description().blocks_of(pipeline);
        let _ = blocks.all(|(block, _)| run.block_of_pipeline(block));
    }

    fn parse(&self, cx: &mut PacketContext<'_>) {
        let first = self.program.parser_starts().next();
        if let Some(start) = first {
            self.begin(Pipeline::INGRESS, cx).parser(BlockId(0), start);
        }
    }
}

/// The state while one part of the pipeline runs.
struct Run<'r, 'c> {
    program: &'r Program,
    layout: &'r Layout,
    cx: &'r mut PacketContext<'c>,
    steps: u32,
    /// Which pipeline runs.
    pipeline: Pipeline,
}

/// What happens after a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    /// The next statement runs.
    Next,
    /// The block or loop with this label ends.
    Break(LabelId),
    /// The control ends.
    Exit,
    /// The parser stops; its error is set.
    Reject,
    /// This part of the pipeline ends, and the packet is dropped.
    Drop,
}

impl Run<'_, '_> {
    /// Runs a block to its end; returns `false` if the packet is dropped.
    fn block_of_pipeline(&mut self, block: BlockId) -> bool {
        match &self.program.blocks[block.index()] {
            Block::Parser(start) => self.parser(block, *start),
            Block::Control(body) => self.control(block, body) && !self.drops(block),
        }
    }

    fn control(&mut self, block: BlockId, body: &[Stmt]) -> bool {
        if !body.is_empty() {
            self.note(Loc::default(), || EventKind::Block(block));
        }
        self.block(body) != Flow::Drop
    }

    /// Returns true if the state after a block means that the packet is dropped.
    fn drops(&self, block: BlockId) -> bool {
        let drop = self.program.architecture.drops_after(block);
        drop.is_some_and(|(slot, value)| self.layout.get_u64(self.cx.state, slot) == value)
    }

    fn drop_packet(&mut self, reason: DropReason) -> Flow {
        self.cx.intents.drop = Some(reason);
        Flow::Drop
    }

    /// Counts one step of the packet: an iteration of a loop, or a jump of the parser that does not lead forward.
    /// Returns `false` once there are more than [`MAX_STEPS`].
    fn step(&mut self) -> bool {
        self.steps += 1;
        self.steps <= MAX_STEPS
    }

    fn block(&mut self, body: &[Stmt]) -> Flow {
        for stmt in body {
            let flow = self.stmt(stmt);
            if flow != Flow::Next {
                return flow;
            }
        }
        Flow::Next
    }

    fn stmt(&mut self, stmt: &Stmt) -> Flow {
        let loc = stmt.loc;
        match &stmt.kind {
            StmtKind::Assign { dst, value } => {
                let value = self.eval(value);
                self.set(*dst, &value);
                let dst = *dst;
                self.note(loc, || EventKind::Assign { dst, value });
            }
            StmtKind::SetValid(header) => self.set_valid(*header, true, loc),
            StmtKind::SetInvalid(header) => self.set_valid(*header, false, loc),
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                let taken = self.truth(cond);
                self.note(loc, || EventKind::Branch(taken));
                return self.block(if taken { then } else { otherwise });
            }
            StmtKind::Switch {
                value,
                cases,
                default,
            } => return self.switch(value, cases, default, loc),
            StmtKind::Block { label, body } => {
                let flow = self.block(body);
                return leave(*label, flow);
            }
            StmtKind::Loop { label, body } => return self.repeat(*label, body),
            StmtKind::Break(label) => return Flow::Break(*label),
            StmtKind::Exit => {
                self.note(loc, || EventKind::Exit);
                return Flow::Exit;
            }
            StmtKind::Apply {
                table,
                keys,
                hit,
                action_run,
            } => return self.apply(*table, keys, *hit, *action_run, loc),
            StmtKind::Extract { .. }
            | StmtKind::Lookahead { .. }
            | StmtKind::Advance { .. }
            | StmtKind::Reject { .. } => return self.parser_stmt(stmt),
            StmtKind::Emit(header) => self.emit(*header, loc),
            _ => return self.extern_call(stmt),
        }
        Flow::Next
    }

    fn switch(
        &mut self,
        value: &Expr,
        cases: &[(Vec<Bits>, Vec<Stmt>)],
        default: &[Stmt],
        loc: Loc,
    ) -> Flow {
        let value = self.eval(value);
        let case = cases.iter().position(|(values, _)| values.contains(&value));
        self.note(loc, || EventKind::Switch { value, case });
        self.block(case.map_or(default, |i| &cases[i].1))
    }

    fn repeat(&mut self, label: LabelId, body: &[Stmt]) -> Flow {
        loop {
            match self.block(body) {
                Flow::Next => {}
                flow => return leave(label, flow),
            }
            if !self.step() {
                return self.drop_packet(DropReason::StepLimit);
            }
        }
    }

    fn apply(
        &mut self,
        table: TableId,
        keys: &[Expr],
        hit: Option<SlotId>,
        action_run: Option<SlotId>,
        loc: Loc,
    ) -> Flow {
        let keys: Vec<Bits> = keys.iter().map(|key| self.eval(key)).collect();
        let packed: Vec<u64> = keys.iter().flat_map(|key| key.limbs()).copied().collect();
        let packet_bytes = self.cx.packet_len;
        let found = self.cx.runtime.lookup(table, &packed, packet_bytes);
        let (is_hit, position, entry) = (found.hit, found.action, found.entry);
        let program = self.program;
        let declared = &program.tables[table.index()];
        let action = declared.actions.get(position as usize);
        let action = action.map(|a| &program.actions[a.action.index()]);
        let args = action.map_or(Vec::new(), |a| unpack_args(program, a, found.args));
        if let Some(slot) = hit {
            self.set(slot, &Bits::from_bool(is_hit));
        }
        if let Some(slot) = action_run {
            self.set(slot, &Bits::from_u64(32, u64::from(position)));
        }
        for (param, value) in action.into_iter().flat_map(|a| &a.params).zip(&args) {
            self.set(param.slot, value);
        }
        self.note_applied(table, keys, entry, position, args, loc);
        action.map_or(Flow::Next, |action| self.block(&action.body))
    }

    fn note_applied(
        &mut self,
        table: TableId,
        keys: Vec<Bits>,
        entry: u32,
        action: u32,
        args: Vec<Bits>,
        loc: Loc,
    ) {
        let Some(trace) = &mut self.cx.trace else {
            return;
        };
        let declared = &self.program.tables[table.index()];
        let runtime = &self.cx.runtime;
        let installed = runtime.table(table).entry(entry);
        let selection = (declared.implementation.is_some() && installed.is_some())
            .then(|| runtime.selection())
            .flatten();
        let colour = match (declared.direct_meter, &installed) {
            (Some(meter), Some(_)) => Some(runtime.direct_meter_colour(meter)),
            _ => None,
        };
        let applied = TableApplied {
            table,
            keys,
            entry: installed.map(|e| (e.matches, e.priority)),
            selection,
            colour,
            action,
            args,
        };
        trace.push(EventKind::Table(Box::new(applied)), loc);
    }

    /// Evaluates an expression; the result has the expression's width.
    fn eval(&self, expr: &Expr) -> Bits {
        match expr {
            Expr::Const(value) => value.clone(),
            Expr::Slot(slot) => self.get(*slot),
            Expr::Unary { op, a } => Bits::unary(*op, &self.eval(a)),
            Expr::Binary { op, a, b } => Bits::binary(*op, &self.eval(a), &self.eval(b)),
            Expr::Slice { a, high, low } => self.eval(a).slice(*high, *low),
            Expr::Concat { a, b } => self.eval(a).concat(&self.eval(b)),
            Expr::ZeroExtend { a, width } => self.eval(a).resize(*width),
            Expr::SignExtend { a, width } => self.eval(a).sign_extend(*width),
            Expr::Mux {
                cond,
                then,
                otherwise,
            } => self.eval(if self.truth(cond) { then } else { otherwise }),
            Expr::PacketLength => Bits::from_u64(32, self.cx.packet_len as u64),
        }
    }

    fn truth(&self, cond: &Expr) -> bool {
        !self.eval(cond).is_zero()
    }

    fn get(&self, slot: SlotId) -> Bits {
        self.layout.get(self.cx.state, slot)
    }

    fn set(&mut self, slot: SlotId, value: &Bits) {
        self.layout.set(self.cx.state, slot, value);
    }

    /// Appends an event to the trace. Without a trace, the event is not even made.
    fn note(&mut self, loc: Loc, event: impl FnOnce() -> EventKind) {
        if let Some(trace) = &mut self.cx.trace {
            trace.push(event(), loc);
        }
    }
}

/// Returns the arguments of an action as values; `limbs` contains the limbs (64-bit words) of each parameter in turn.
fn unpack_args(program: &Program, action: &ir::Action, limbs: &[u64]) -> Vec<Bits> {
    let mut at = 0;
    let unpack = |param: &ir::ActionParam| {
        let width = program.slots[param.slot.index()].width;
        let from = at;
        at += width.div_ceil(64) as usize;
        Bits::from_limbs(width, &limbs[from..at])
    };
    action.params.iter().map(unpack).collect()
}

/// Returns how control continues behind a block or loop whose body ended with `flow`: a break to its own `label` ends
/// there.
fn leave(label: LabelId, flow: Flow) -> Flow {
    if flow == Flow::Break(label) {
        Flow::Next
    } else {
        flow
    }
}

#[cfg(test)]
mod tests;
