//! A trace as an indented text: one line per event, copies of the packet indented below the event that made them.

use super::json::target_name;
use super::{Event, EventKind, TableApplied, Trace, hex};
use ir::Bits;
use std::fmt;

/// Events inside a block of the pipeline are indented by this many columns.
const INDENT: usize = 2;

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_events(f, self, &self.events, 0)
    }
}

fn write_events(
    f: &mut fmt::Formatter<'_>,
    trace: &Trace,
    events: &[Event],
    depth: usize,
) -> fmt::Result {
    for event in events {
        let outside = matches!(
            event.kind,
            EventKind::Received { .. }
                | EventKind::Block(_)
                | EventKind::Copy { .. }
                | EventKind::LeftOut(_)
                | EventKind::Enqueued { .. }
                | EventKind::Sent { .. }
                | EventKind::Dropped(_)
        );
        let indent = depth + if outside { 0 } else { INDENT };
        write!(f, "{:indent$}{}", "", describe(trace, &event.kind))?;
        match trace.place(event.loc) {
            Some(place) => writeln!(f, "  [{place}]")?,
            None => writeln!(f)?,
        }
        if let EventKind::Copy { trace: inner, .. } = &event.kind {
            write_events(f, trace, inner, depth + INDENT)?;
        }
    }
    Ok(())
}

fn describe(trace: &Trace, kind: &EventKind) -> String {
    use EventKind::*;
    let program = trace.program();
    let header = |id: &ir::HeaderId| &program.headers[id.index()].name;
    match kind {
        Received {
            now_ps,
            port,
            bytes,
        } => {
            let unit = if *bytes == 1 { "byte" } else { "bytes" };
            format!("received {bytes} {unit} at port {port}, {now_ps} ps")
        }
        Block(block) => program.block_name(*block).to_string(),
        State(state) => format!("state {}", program.states[state.index()].name),
        Extract {
            header: id, bytes, ..
        } => format!(
            "extract {} ({bytes} bytes){}",
            header(id),
            fields(trace, kind)
        ),
        Advance(bits) => format!("advance {bits} bits"),
        Transition { keys, target } => {
            let target = target_name(trace, *target);
            match keys.is_empty() {
                true => format!("transition {target}"),
                false => format!("transition select({}) {target}", list(keys)),
            }
        }
        ParserError(error) => format!("parser error {}", trace.error_name(*error)),
        SetValid { header: id, valid } => {
            format!(
                "{} {}",
                header(id),
                if *valid { "valid" } else { "invalid" }
            )
        }
        Branch(taken) => format!("if {taken}"),
        Switch { value, case } => match case {
            Some(case) => format!("switch {}: case {case}", hex(value)),
            None => format!("switch {}: default", hex(value)),
        },
        Table(applied) => table(trace, applied),
        Exit => "exit".to_string(),
        Emit { header: id, bytes } => match bytes {
            Some(bytes) => format!("emit {} ({bytes} bytes)", header(id)),
            None => format!("emit {}: invalid, left out", header(id)),
        },
        Enqueued { port, rid } => format!("enqueued for port {port}, rid {rid}"),
        Copy { kind, .. } => format!("copy: {}", kind.name()),
        LeftOut(all) => {
            let dropped = all.dropped.iter();
            let dropped = dropped.map(|(reason, n)| format!(", {n} dropped: {}", reason.name()));
            let plural = if all.copies == 1 { "copy" } else { "copies" };
            let (copies, sent) = (all.copies, all.sent);
            let dropped: String = dropped.collect();
            format!("{copies} more {plural} left out, {sent} sent{dropped}")
        }
        Sent { port, bytes } => format!("sent {bytes} bytes at port {port}"),
        Dropped(reason) => format!("dropped: {}", reason.name()),
        _ => describe_extern(trace, kind),
    }
}

fn describe_extern(trace: &Trace, kind: &EventKind) -> String {
    use EventKind::*;
    let program = trace.program();
    let slot = |id: &ir::SlotId| &program.slots[id.index()].name;
    match kind {
        Assign { dst, value } => format!("{} = {}", slot(dst), hex(value)),
        Lookahead { dst, value } => format!("lookahead {} = {}", slot(dst), hex(value)),
        Random { dst, value } => format!("random {} = {}", slot(dst), hex(value)),
        Hash {
            algorithm,
            dst,
            value,
        } => format!("hash {algorithm:?} {} = {}", slot(dst), hex(value)),
        RegisterRead {
            register,
            index,
            value,
        } => format!(
            "read {}[{index}] = {}",
            program.registers[register.index()].name,
            hex(value)
        ),
        RegisterWrite {
            register,
            index,
            value,
        } => format!(
            "write {}[{index}] = {}",
            program.registers[register.index()].name,
            hex(value)
        ),
        Count { counter, index } => {
            format!("count {}[{index}]", program.counters[counter.index()].name)
        }
        Meter {
            meter,
            index,
            colour,
        } => format!(
            "meter {}[{index}]: {}",
            program.meters[meter.index()].name,
            super::colour_name(*colour)
        ),
        DirectMeter { meter, colour } => format!(
            "direct meter {}: {}",
            program.meters[meter.index()].name,
            super::colour_name(*colour)
        ),
        Clone { session } => format!("clone to session {session}"),
        Resubmit => "resubmit".to_string(),
        Recirculate => "recirculate".to_string(),
        Truncate(length) => format!("truncate to {length} bytes"),
        Digest { digest, values } => {
            let name = &program.digests[digest.index()].name;
            format!("digest {name} ({})", list(values))
        }
        Log(message) => format!("log: {message}"),
        Assert(holds) => format!("assert {holds}"),
        _ => String::new(),
    }
}

fn fields(trace: &Trace, kind: &EventKind) -> String {
    let EventKind::Extract { header, fields, .. } = kind else {
        return String::new();
    };
    let declared = &trace.program().headers[header.index()].fields;
    let named = declared.iter().zip(fields).map(|(field, value)| {
        let name = &trace.program().slots[field.slot.index()].name;
        format!(" {name}={}", hex(value))
    });
    named.collect()
}

fn table(trace: &Trace, applied: &TableApplied) -> String {
    let program = trace.program();
    let table = &program.tables[applied.table.index()];
    let keys = table.keys.iter().zip(&applied.keys);
    let keys: Vec<String> = keys
        .map(|(k, v)| format!("{}={}", k.name, hex(v)))
        .collect();
    let outcome = match &applied.entry {
        None => "miss".to_string(),
        Some((matches, priority)) => {
            let matches: Vec<String> = matches.iter().map(super::match_text).collect();
            match priority {
                0 => format!("hit [{}]", matches.join(", ")),
                _ => format!("hit [{}] priority {priority}", matches.join(", ")),
            }
        }
    };
    let colour = applied.colour.map(super::colour_name);
    let steps = [
        Some(outcome),
        colour.map(str::to_string),
        applied.selection.as_ref().map(super::selection_text),
        action_text(trace, applied),
    ];
    let steps: Vec<String> = steps.into_iter().flatten().collect();
    format!(
        "table {} ({}): {}",
        table.name,
        keys.join(", "),
        steps.join(", ")
    )
}

fn action_text(trace: &Trace, applied: &TableApplied) -> Option<String> {
    let program = trace.program();
    let table = &program.tables[applied.table.index()];
    let action = table.actions.get(applied.action as usize)?.action;
    let action = &program.actions[action.index()];
    let params = action.params.iter().zip(&applied.args);
    let args: Vec<String> = params
        .map(|(p, v)| format!("{}={}", p.name, hex(v)))
        .collect();
    Some(format!("{}({})", action.name, args.join(", ")))
}

fn list(values: &[Bits]) -> String {
    let values: Vec<String> = values.iter().map(hex).collect();
    values.join(", ")
}
