//! The analysis of a program for code generation, computed once.
//!
//! An [`Analysis`] answers from the intermediate representation alone: which slots are read and written where ([`usage`]), which live in
//! memory ([`memory`]), which tables are looked up in place or prefetched ([`tables`]), which headers can be edited in the packet
//! ([`headers`]), for which outcomes of the parser code is specialised ([`paths`]), and when the fast path hands a packet over to the
//! switch ([`bailouts`]). The functions of a program and their executor read it. It knows nothing of machine code.

pub(crate) mod bailouts;
pub(crate) mod headers;
mod memory;
pub(crate) mod paths;
pub(crate) mod reparse;
mod requests;
pub(crate) mod tables;
pub(crate) mod usage;

use bailouts::Bailouts;
use headers::{Headers, find_moves};
use ir::{
    Expr, Forwarding, Input, Layout, Pipeline, Program, SlotId, State, StateId, Stmt, StmtKind,
};
use paths::{Validity, accepted, outcomes};
use reparse::Reparse;
use std::borrow::Cow;
use tables::{InPlaceTable, Prefetched, in_place, prefetched};
use usage::Usage;

/// Slots of more limbs than this live in the state array and nowhere else, so that a huge varbit does not become
/// hundreds of values.
pub(crate) const MAX_VALUE_LIMBS: usize = 8;

/// The results about a verified program.
pub(crate) struct Analysis<'a> {
    /// The program.
    pub program: &'a Program,
    /// The places of its slots in the state array.
    pub layout: Layout,
    /// For each slot, true if it lives in the state array rather than in values.
    pub in_memory: Vec<bool>,
    /// The slots that the parser reads and writes.
    pub parser: Usage,
    /// The slots that the ingress half uses, its parser included.
    pub ingress: Usage,
    /// The slots that the egress half uses.
    pub egress: Usage,
    /// For each slot, true if the engine reads or writes it between ingress and egress.
    pub shared: Vec<bool>,
    /// Bytes that a deparser may write if each `emit` runs once; an `emit` in a loop makes room for itself.
    pub emit_bytes: usize,
    /// For each header, true if the deparser may emit it.
    pub emitted_headers: Vec<bool>,
    /// The tables that are looked up in place, in the order of their views.
    pub tables_in_place: Vec<InPlaceTable>,
    /// The tables and cells that are prefetched.
    pub prefetched: Prefetched,
    /// The analysis for the fast path; `None` if one function cannot run both ingress and egress.
    pub fast_path: Option<FastPathAnalysis<'a>>,
}

/// The results that only the fast path needs: one function that runs ingress and egress.
pub(crate) struct FastPathAnalysis<'a> {
    /// The architecture's forwarding of packets.
    pub forwarding: Forwarding,
    /// Slots read and written.
    pub usage: Usage,
    /// The places of fields in packets.
    pub headers: Headers,
    /// The points at which the function ends before the packet is done, so that the switch goes on.
    pub bailouts: Bailouts,
    /// What happens between ingress and egress, if egress parses the packet again.
    pub reparse: Option<Reparse<'a>>,
    /// The controls with the paths of packets that leave the fast path separated from those of ordinary
    /// packets.
    pub ingress: Cow<'a, [Stmt]>,
    pub egress: Cow<'a, [Stmt]>,
    /// True if the blocks after the egress control may change whether the packet is dropped. P4 gives those
    /// blocks no standard metadata, but the intermediate representation does not forbid it; then the engine
    /// decides at the end.
    pub drops_behind_egress: bool,
    /// The parser as it is written.
    pub parser: ParserForm<'a>,
    /// The outcomes of the parser for which the code after it is specialised, the most likely first, and the
    /// parser with a state for each combination of valid headers. `None` if specialisation is not worth it.
    pub specialised: Option<(Vec<Validity>, ParserForm<'a>)>,
    /// The parser of egress, if there is one, with a state for each combination of valid headers.
    pub egress_parser: Option<ParserForm<'a>>,
}

/// A parser of a program, in one form.
pub(crate) struct ParserForm<'a> {
    /// Its states.
    pub states: Cow<'a, [State]>,
    /// The state in which it begins.
    pub start: StateId,
    /// For each state, the validity of headers whenever it accepts, if that is certain. No error has been set then.
    pub accepted: Vec<Option<Validity>>,
    /// For each header, true if the packet cannot be edited in place any more once the header is extracted.
    pub moves: Vec<bool>,
}

impl<'a> Analysis<'a> {
    /// Computes the analysis of a verified program for the code generator.
    pub fn new(program: &'a Program) -> Analysis<'a> {
        let [ingress, egress] =
            [Pipeline::INGRESS, Pipeline::EGRESS].map(|p| Usage::of_pipeline(program, p));
        let forwarding = program.architecture.forwarding();
        let length = forwarding
            .as_ref()
            .and_then(|f| f.arrival_slot(Input::PacketBytes));
        let measures = length.is_some_and(|length| {
            let mut lists = program.field_lists.iter();
            egress.reads[length.index()] || lists.any(|list| list.slots.contains(&length))
        });
        let shared = shared_with_engine(program, &egress, measures);
        let in_memory = memory::in_memory(program);
        let tables_in_place = in_place(program);
        let layout = Layout::new(program);
        let fast_path = forwarding.and_then(|forwarding| {
            let bailouts = Bailouts::new(
                program,
                &forwarding,
                &layout,
                [&ingress, &egress],
                &shared,
                &in_memory,
                measures,
            );
            let reparse = match program.parser_of(Pipeline::EGRESS) {
                None => None,
                Some(_) => Some(Reparse::new(
                    program,
                    &forwarding,
                    [&ingress, &egress],
                    &shared,
                )?),
            };
            Some(FastPathAnalysis::new(
                program, forwarding, bailouts, reparse,
            ))
        });
        Analysis {
            program,
            layout,
            parser: Usage::of_parser(program),
            emit_bytes: emit_bytes(program),
            emitted_headers: program.emitted_headers(),
            prefetched: match fast_path {
                Some(_) => prefetched(program, &tables_in_place),
                None => Prefetched::default(),
            },
            tables_in_place,
            in_memory,
            ingress,
            egress,
            shared,
            fast_path,
        }
    }
}

impl<'a> FastPathAnalysis<'a> {
    fn new(
        program: &'a Program,
        forwarding: Forwarding,
        bailouts: Bailouts,
        reparse: Option<Reparse<'a>>,
    ) -> FastPathAnalysis<'a> {
        let headers = Headers::new(program, reparse.as_ref());
        let form = |states: Cow<'a, [State]>, start: StateId| ParserForm {
            accepted: accepted(program, &states, start),
            moves: find_moves(program, &states, &headers),
            states,
            start,
        };
        let (split, start) = paths::split(program, StateId(0));
        let egress_parser = program.parser_of(Pipeline::EGRESS).map(|start| {
            let (states, start) = paths::split(program, start);
            form(Cow::Owned(states), start)
        });
        let outcomes = outcomes(program, &forwarding, &split);
        let behind_egress = Usage::of_stmts(
            program,
            &[
                program.checksums(Pipeline::EGRESS),
                program.deparser(Pipeline::EGRESS),
            ],
        );
        // For a clone of egress all fields of all headers are kept; if its path parts, they are known on all others. No other is worth it.
        let is_clone = |stmt: &Stmt| matches!(stmt.kind, StmtKind::Clone { .. });
        let clones = ir::statements(program.main_control(Pipeline::EGRESS)).any(is_clone);
        let parted = |body: &'a [Stmt]| match requests::part(body).filter(|_| clones) {
            Some(parted) => Cow::Owned(parted),
            None => Cow::Borrowed(body),
        };
        FastPathAnalysis {
            ingress: parted(program.main_control(Pipeline::INGRESS)),
            egress: parted(program.main_control(Pipeline::EGRESS)),
            usage: Usage::of_fast_path(program, &forwarding, &headers, bailouts.of_group),
            drops_behind_egress: reparse.is_none()
                && behind_egress.writes[forwarding.egress_drop.0.index()],
            parser: form(Cow::Borrowed(&program.states), StateId(0)),
            specialised: (!outcomes.is_empty()).then(|| (outcomes, form(Cow::Owned(split), start))),
            egress_parser,
            headers,
            forwarding,
            bailouts,
            reparse,
        }
    }
}

/// Returns for each slot whether the engine reads or writes it between ingress and egress. It does so with
/// the architecture's metadata, with the slots that clone, resubmit and recirculate preserve, and, if it
/// needs the length of the headers or copies them (`measures`, clones in egress), with validity bits, varbit
/// lengths or all slots of headers.
fn shared_with_engine(program: &Program, egress: &Usage, measures: bool) -> Vec<bool> {
    let mut shared = vec![false; program.slots.len()];
    let mut share = |slot: SlotId| shared[slot.index()] = true;
    for (_, slot, _) in program.architecture.fields() {
        share(slot);
    }
    (program.field_lists.iter().flat_map(|list| &list.slots)).for_each(|&slot| share(slot));
    for header in &program.headers {
        if egress.clones {
            header.field_slots().for_each(&mut share);
        }
        if measures || egress.clones {
            share(header.valid);
            let lengths = header.fields.iter().filter_map(|f| f.varbit_length);
            lengths.for_each(&mut share);
        }
    }
    shared
}

fn emit_bytes(program: &Program) -> usize {
    let emits = |stmt: &Stmt| match stmt.kind {
        StmtKind::Emit(header) => program.header_max_bytes(header),
        _ => 0,
    };
    let deparsers = [
        program.deparser(Pipeline::INGRESS),
        program.deparser(Pipeline::EGRESS),
    ];
    let emitted = deparsers.map(|body| ir::statements(body).map(emits).sum::<usize>());
    emitted[0].max(emitted[1])
}

/// Counts the statements in `stmts`, nested ones included. The statements of an action count at each
/// application of a table that has the action.
fn count_statements(program: &Program, stmts: &[Stmt]) -> usize {
    let applied = |stmt: &Stmt| match stmt.kind {
        StmtKind::Apply { table, .. } => (program.tables[table.index()].actions.iter())
            .map(|a| count_statements(program, &program.actions[a.action.index()].body))
            .sum(),
        _ => 0,
    };
    ir::statements(stmts).map(|stmt| 1 + applied(stmt)).sum()
}

/// Returns true if one of the expressions reads a slot that `slots` marks.
fn reads_one_of(exprs: &[Expr], slots: &[bool]) -> bool {
    exprs
        .iter()
        .any(|expr| expr.reads(&|slot| slots[slot.index()]))
}
