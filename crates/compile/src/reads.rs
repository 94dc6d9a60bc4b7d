//! Looks for reads of values that may be missing, and describes the path of a packet that leads to each:
//! fields of headers that may be invalid, variables and parameters to which nothing was assigned, and fields
//! of headers that are sent although nothing was written to them.
//!
//! Holdfast reads zero in all these cases. Other targets read, and send, what earlier packets have left in
//! memory: Dumitru, Dumitrescu and Raiciu ("Can we exploit buggy P4 programs?", SOSR 2020) found that in
//! BMv2.
//!
//! The walk ([`walk`]) follows sets of states ([`state`]) of packets through parser, controls, tables and
//! copies of packets. It keeps states apart that differ in the validity of headers or in values on which
//! conditions depend; so it understands tests of validity in any form, values that stand for validity,
//! selects, the result of tables, early returns and exits. If there are too many states, it joins some, and
//! then it may warn of what cannot happen. A comment `// allow(invalid): REASON` (or `unset`) allows reads:
//! at the end of a line, those of the statement that begins on it; alone on a line, those of the statements
//! below it, as far as a blank line or a closing brace. The check warns of a comment that allows nothing.
//!
//! User metadata and the metadata of the architecture are zero from the beginning, where the architecture
//! says so.

mod messages;
mod state;
mod uses;
mod walk;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use ir::{Forwarding, Loc, Program};
use syntax::diagnostics::Diagnostic;
use syntax::source::{FileId, SourceMap, Span};

use crate::lower::Lowered;
use state::{Path, Step};
use walk::{Fault, Finding, Walker};

/// The number of steps of a path that are shown, the last ones; all parser states count as one.
const STEPS: usize = 8;

/// The number of lines, from the first of a statement on, in which the name of the variable is looked for.
const STATEMENT_LINES: usize = 12;

/// A comment by which the author allows reads.
struct Allowance {
    kind: String,
    reason: bool,
    span: Span,
    /// The lines to which it applies, from 1.
    lines: RangeInclusive<u32>,
    used: bool,
}

/// Returns how the architecture forwards packets between its pipelines, if packets keep their headers and
/// metadata there; `None` if they are deparsed between the pipelines.
fn state_forwarding(program: &Program) -> Option<Forwarding> {
    let forwarding = program.architecture.forwarding();
    forwarding.filter(|_| !program.architecture.description().deparses_between())
}

/// Returns a warning for each read of a header that may be invalid or of a variable that may be unset, unless
/// a comment allows it, and one for each comment that is malformed or allows nothing. The program must have
/// been lowered with `marks_unset`.
pub(crate) fn check(lowered: &Lowered, sources: &SourceMap) -> Vec<Diagnostic> {
    let program = &lowered.program;
    let files: Vec<Option<FileId>> = (program.files.iter())
        .map(|name| {
            let position = sources.files().iter().position(|f| *f.name == **name);
            position.map(|i| FileId(i as u32))
        })
        .collect();
    let file_of = |loc: Loc| files.get(loc.file as usize).copied().flatten();
    let allowances = RefCell::new(allowances(sources));
    let explained = |loc: Loc, fault: Fault| {
        let Some(file) = file_of(loc) else {
            return false;
        };
        let mut allowances = allowances.borrow_mut();
        let wanted = match fault {
            Fault::Invalid(_) => "invalid",
            Fault::Unset(_) | Fault::Sent(_) => "unset",
        };
        let found = (allowances.iter_mut()).find(|a| {
            a.span.file == file && a.lines.contains(&loc.line) && a.kind == wanted && a.reason
        });
        let Some(allowance) = found else {
            return false;
        };
        allowance.used = true;
        true
    };
    let mut walker = Walker::new(program, &lowered.unset, &explained);
    walker.pipeline();
    let findings = std::mem::take(&mut walker.findings);
    let mut out = Vec::new();
    for (((file, line), fault), finding) in &findings {
        let loc = Loc {
            file: *file,
            line: *line,
        };
        let name = &program.slots[finding.slot.index()].name;
        let span = file_of(loc).map_or(Span::default(), |file| place(sources, file, *line, name));
        let diagnostic = match fault {
            Fault::Invalid(header) => {
                messages::read_of_invalid(span, name, &program.headers[header.index()].name)
            }
            Fault::Unset(_) => messages::read_of_unset(span, name),
            Fault::Sent(_) => messages::sent_unset(span, name),
        };
        out.push(with_path(diagnostic, finding, program));
    }
    // A read that a variant of the program leaves out needs no explanation there, but may in another.
    let there: BTreeSet<(FileId, u32)> = (program.bodies().flat_map(ir::statements))
        .filter_map(|stmt| Some((file_of(stmt.loc)?, stmt.loc.line)))
        .collect();
    for allowance in allowances.into_inner() {
        let there =
            || (allowance.lines.clone()).any(|line| there.contains(&(allowance.span.file, line)));
        if !matches!(&*allowance.kind, "invalid" | "unset") {
            out.push(messages::unknown_allowance(allowance.span, &allowance.kind));
        } else if !allowance.reason {
            out.push(messages::allowance_without_reason(allowance.span));
        } else if !allowance.used && there() {
            out.push(messages::allowance_without_use(allowance.span));
        }
    }
    out
}

/// Collects the comments `// allow(KIND): REASON`, by which the author allows reads of invalid headers or
/// unset variables, with the lines to which each applies.
fn allowances(sources: &SourceMap) -> Vec<Allowance> {
    let mut out = Vec::new();
    for (i, file) in sources.files().iter().enumerate() {
        let mut start = 0;
        // The one that stands alone above the line, as long as it goes on.
        let mut open: Option<usize> = None;
        for (line, text) in (1u32..).zip(file.text.split('\n')) {
            let begin = start;
            start += text.len() + 1;
            let (code, comment) = text.split_once("//").unwrap_or((text, ""));
            let is_empty = code.trim().is_empty();
            let allowed =
                (comment.trim().strip_prefix("allow(")).and_then(|rest| rest.split_once(')'));
            if let Some((kind, reason)) = allowed {
                let span = (begin + code.len(), begin + text.trim_end().len());
                let span = Span::new(FileId(i as u32), span.0 as u32, span.1 as u32);
                open = is_empty.then_some(out.len());
                out.push(Allowance {
                    kind: kind.trim().to_string(),
                    reason: (reason.strip_prefix(':')).is_some_and(|r| !r.trim().is_empty()),
                    span,
                    lines: line..=line,
                    used: false,
                });
                continue;
            }
            if text.trim().is_empty() || code.trim_start().starts_with('}') {
                open = None;
            } else if let Some(allowance) = open.and_then(|at| out.get_mut(at)) {
                allowance.lines = *allowance.lines.start()..=line;
            }
        }
    }
    out
}

/// Returns the place at which the statement that begins on `line` names the variable `name`, or the longest
/// suffix of the dotted name that it contains; the whole line if it contains none.
fn place(sources: &SourceMap, file: FileId, line: u32, name: &str) -> Span {
    let Some(text) = sources.file(file).map(|f| &*f.text) else {
        return Span::default();
    };
    let before = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1) as usize);
    let begin: usize = before.map(str::len).sum();
    let rest = &text[begin..];
    let length: usize = rest
        .split_inclusive('\n')
        .take(STATEMENT_LINES)
        .map(str::len)
        .sum();
    let statement = &rest[..length];
    let statement = &statement[..statement.find(';').map_or(length, |at| at + 1)];
    // Names begin with those of the instances around, which the text does not have.
    let mut suffix = name;
    loop {
        if let Some(at) = find_name(statement, suffix) {
            let start = begin + at;
            return Span::new(file, start as u32, (start + suffix.len()) as u32);
        }
        match suffix.split_once('.') {
            Some((_, shorter)) if !shorter.is_empty() => suffix = shorter,
            _ => break,
        }
    }
    let first = rest.lines().next().unwrap_or("");
    let indent = first.len() - first.trim_start().len();
    let start = begin + indent;
    Span::new(file, start as u32, (start + first.trim().len()) as u32)
}

/// Returns the byte offset of the first place in `text` where `name` stands alone, with no letter, digit or `_` beside it and no `.`
/// before it; `None` if there is none.
fn find_name(text: &str, name: &str) -> Option<usize> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).map(|(at, _)| at).find(|at| {
        let before = text[..*at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !before.is_some_and(|c| part(c) || c == '.') && !after.is_some_and(part)
    })
}

/// Adds notes to a warning that list the steps of the shortest path of a packet to the read, and returns it.
fn with_path(mut diagnostic: Diagnostic, finding: &Finding, program: &Program) -> Diagnostic {
    let mut steps: Vec<Step> = Vec::new();
    let mut next: Option<&Path> = finding.path.as_deref();
    while let Some(path) = next {
        steps.push(path.step);
        next = path.before.as_deref();
    }
    steps.reverse();
    let mut lines: Vec<String> = Vec::new();
    let mut entered: Vec<&str> = Vec::new();
    let place = |loc: &Loc| {
        let file = program
            .files
            .get(loc.file as usize)
            .map_or("", String::as_str);
        let file = file.rsplit('/').next().unwrap_or(file);
        format!("{file}:{}", loc.line)
    };
    for step in &steps {
        if let Step::Entered(id) = step {
            entered.push(&program.states[id.index()].name);
            continue;
        }
        if !entered.is_empty() {
            lines.push(format!("the parser goes through {}", entered.join(", ")));
            entered.clear();
        }
        lines.push(match step {
            Step::Entered(_) => continue,
            Step::Short(id) => format!(
                "the packet ends before `{}`",
                program.headers[id.index()].name
            ),
            Step::Rejected(loc) => format!("{}: the parser rejects the packet", place(loc)),
            Step::Branch(loc, true) => format!("{}: the condition holds", place(loc)),
            Step::Branch(loc, false) => format!("{}: the condition does not hold", place(loc)),
            Step::Ran(table, action, hit) => {
                let table = &program.tables[table.index()].name;
                let action = &program.actions[action.index()].name;
                let outcome = if *hit { "is hit" } else { "is missed" };
                format!("table `{table}` {outcome} and runs `{action}`")
            }
            Step::Copied(how) => (*how).to_string(),
        });
    }
    if !entered.is_empty() {
        lines.push(format!("the parser goes through {}", entered.join(", ")));
    }
    let first = lines
        .iter()
        .position(|line| line.starts_with("the parser goes"));
    let left_out = lines.len().saturating_sub(STEPS);
    for (i, line) in lines.into_iter().enumerate() {
        match i {
            i if i == left_out && left_out > 0 => {
                diagnostic = diagnostic.note("...").note(line);
            }
            i if i >= left_out || Some(i) == first => diagnostic = diagnostic.note(line),
            _ => {}
        }
    }
    diagnostic
}
