//! Reports a program that exceeds a limit of the IR, at the place in the source that exceeds it.
//!
//! The verifier describes violations in terms of the IR. A violated limit of size means that the program is
//! too large: the error is at the declaration or the line from which the violation comes. Any other violation
//! is a fault of the compiler. This module alone knows which invariants are limits of size.

use ir::Loc;
use ir::verify::VerifyError;
use syntax::diagnostics::Diagnostic;
use syntax::source::{SourceMap, Span};

use crate::errors;
use crate::hir::Module;
use crate::lower::{ExternKind, Lowered};

/// Converts violations of the invariants of the IR to errors at places in the source, and leaves out repeated errors.
pub(crate) fn diagnostics(
    violations: &[VerifyError],
    module: &Module,
    lowered: &Lowered,
    sources: &SourceMap,
) -> Vec<Diagnostic> {
    let one = |violation: &VerifyError| {
        let span = place(violation, module, lowered, sources);
        let span = span.unwrap_or(module.var(lowered.main).span);
        match is_size(violation.invariant) {
            true => errors::too_large(span, &said(violation)),
            false => errors::violation(span, violation),
        }
    };
    let mut found: Vec<Diagnostic> = Vec::new();
    for diagnostic in violations.iter().map(one) {
        let same = |d: &Diagnostic| d.span == diagnostic.span && d.message == diagnostic.message;
        if !found.iter().any(same) {
            found.push(diagnostic);
        }
    }
    found
}

/// Returns whether an invariant of the IR limits the size of a program (see the list in [`ir::verify`]).
fn is_size(invariant: u32) -> bool {
    matches!(invariant, 1 | 8 | 10 | 11 | 14 | 25 | 26 | 31..=34)
}

/// Describes the object that exceeds a limit in the terms of a P4 program, for the error message.
fn said(violation: &VerifyError) -> String {
    match violation.invariant {
        1 => {
            "the variables and headers of the program together, which all packets carry".to_string()
        }
        10 if !violation.place.contains('"') => {
            format!("{}: {}", violation.place, violation.message)
        }
        _ => violation.message.clone(),
    }
}

/// Returns the place in the source of a violation: the line of the statement, or the declaration of the
/// object, that the violation names; `None` if it names neither.
fn place(
    violation: &VerifyError,
    module: &Module,
    lowered: &Lowered,
    sources: &SourceMap,
) -> Option<Span> {
    if let Some((_, at)) = violation.place.rsplit_once(" @") {
        let (file, line) = at.split_once(':')?;
        let (file, line) = (file.parse().ok()?, line.parse().ok()?);
        return line_at(Loc { file, line }, lowered, sources);
    }
    let info = &lowered.info;
    let Some(name) = violation.place.split('"').nth(1) else {
        return largest(lowered).filter(|_| violation.invariant == 10);
    };
    let tables = info.tables.iter().find(|t| {
        let table = &lowered.program.tables[t.table.index()];
        table.name == name
    });
    let table = tables.map(|t| module.tables[t.declaration.index()].span);
    let object = info.externs.iter().find(|e| e.name == name).map(|e| e.span);
    let sets = info.value_sets.iter().find(|(id, ..)| {
        let set = &lowered.program.value_sets[id.index()];
        set.name == name
    });
    let set = sets.map(|(_, var, _)| module.var(*var).span);
    let digest = || line_at(sends(&lowered.program, name)?, lowered, sources);
    table.or(object).or(set).or_else(digest)
}

fn line_at(loc: Loc, lowered: &Lowered, sources: &SourceMap) -> Option<Span> {
    let file = lowered.program.files.get(loc.file as usize)?;
    sources.span_of_line(file, loc.line)
}

/// Returns the place of the first statement that sends a digest named `name`; `None` if no statement does.
fn sends(program: &ir::Program, name: &str) -> Option<Loc> {
    let actions = program.actions.iter().map(|action| &action.body[..]);
    let bodies = program.controls().chain(actions);
    let mut statements = bodies.flat_map(ir::statements);
    let sending = statements.find(|stmt| match stmt.kind {
        ir::StmtKind::Digest { digest, .. } => program.digests[digest.index()].name == name,
        _ => false,
    })?;
    Some(sending.loc)
}

/// Returns the place of the declaration of the register, counter or meter that needs the most memory; `None`
/// if the program has no extern objects.
fn largest(lowered: &Lowered) -> Option<Span> {
    let program = &lowered.program;
    let bits = |kind: &ExternKind| match kind {
        ExternKind::Register(id, ..) => {
            let register = &program.registers[id.index()];
            register.size.saturating_mul(register.width.into())
        }
        ExternKind::Counter(id, _) => program.counters[id.index()].size.unwrap_or(0) * 128,
        ExternKind::Meter(id, _) => program.meters[id.index()].size.unwrap_or(0) * 512,
        _ => 0,
    };
    let objects = lowered.info.externs.iter();
    let largest = objects.max_by_key(|e| bits(&e.kind));
    largest.map(|e| e.span)
}
