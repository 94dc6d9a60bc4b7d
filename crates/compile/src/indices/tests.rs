//! Tests of extracts to the next element of a stack.

use ir::{Program, Stmt, StmtKind};

use crate::{Options, compile_text};

/// Compiles a program whose parser consists of a state `start`, which goes to the state `first`, and of the
/// states in `states`.
fn program(states: &str) -> Program {
    let source = format!(
        "#include <core.p4>
#include <v1model.p4>
header label_t {{ bit<7> label; bit<1> last; }}
struct headers_t {{ label_t[4] labels; }}
struct meta_t {{ }}
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
    state start {{ transition first; }}
    {states}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{ apply {{ }} }}
control D(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr); }} }}
V1Switch(P(), V(), I(), I(), V(), D()) main;
"
    );
    let outcome = compile_text(&source, "indices.p4", &Options::default());
    let rendered = outcome.render();
    outcome
        .compiled
        .unwrap_or_else(|| panic!("{rendered}"))
        .program
}

fn count(stmts: &[Stmt], wanted: &dyn Fn(&StmtKind) -> bool) -> usize {
    let inside = |s: &Stmt| match &s.kind {
        StmtKind::If {
            then, otherwise, ..
        } => count(then, wanted) + count(otherwise, wanted),
        StmtKind::Switch { cases, default, .. } => {
            cases.iter().map(|(_, b)| count(b, wanted)).sum::<usize>() + count(default, wanted)
        }
        _ => 0,
    };
    stmts
        .iter()
        .map(|s| usize::from(wanted(&s.kind)) + inside(s))
        .sum()
}

/// Counts the switches and the extracts, in this order, in all parser states.
fn shape(program: &Program) -> (usize, usize) {
    let all = |wanted: &dyn Fn(&StmtKind) -> bool| {
        let states = &program.states;
        states.iter().map(|s| count(&s.body, wanted)).sum()
    };
    (
        all(&|k| matches!(k, StmtKind::Switch { .. })),
        all(&|k| matches!(k, StmtKind::Extract { .. })),
    )
}

#[test]
fn a_chain_of_states_takes_one_element_each() {
    let program = program(
        "state first {
            packet.extract(hdr.labels.next);
            transition select(hdr.labels.last.last) { 1: accept; default: second; }
        }
        state second {
            packet.extract(hdr.labels.next);
            packet.extract(hdr.labels.next);
            transition select(hdr.labels.last.last, hdr.labels.lastIndex) { (1, 2): accept; default: reject; }
        }",
    );
    assert_eq!(shape(&program), (0, 3));
    let text = ir::text::print(&program);
    assert!(
        text.contains("extract h0") && text.contains("extract h1") && text.contains("extract h2")
    );
}

#[test]
fn a_loop_over_the_stack_stays_a_switch() {
    let program = program(
        "state first {
            packet.extract(hdr.labels.next);
            transition select(hdr.labels.last.last) { 1: accept; default: first; }
        }",
    );
    let (switches, extracts) = shape(&program);
    assert!(switches >= 1);
    assert_eq!(extracts, 4);
}

#[test]
fn ways_of_different_length_to_a_state_leave_its_index_open() {
    let program = program(
        "state first {
            packet.extract(hdr.labels.next);
            transition select(hdr.labels.last.last) { 1: end; default: second; }
        }
        state second {
            packet.extract(hdr.labels.next);
            transition end;
        }
        state end {
            packet.extract(hdr.labels.next);
            transition accept;
        }",
    );
    let (switches, extracts) = shape(&program);
    assert!(switches >= 1);
    assert_eq!(extracts, 2 + 4);
}

#[test]
fn what_a_branch_may_change_is_not_known_after_it() {
    let program = program(
        "state first {
            packet.extract(hdr.labels.next);
            if (hdr.labels.last.last == 0) {
                packet.extract(hdr.labels.next);
            }
            packet.extract(hdr.labels.next);
            transition accept;
        }",
    );
    let (switches, extracts) = shape(&program);
    assert!(switches >= 1);
    assert_eq!(extracts, 2 + 4);
}
