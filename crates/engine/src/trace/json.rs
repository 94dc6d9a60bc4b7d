//! A trace as JSON: an object with the program's name and a list of events.
//!
//! Every event has `"event"`, its kind, and `"at"`, `file:line`, when it has a place in the source. Values of variables are strings in
//! hexadecimal, so that no width is lost.

use super::{Event, EventKind, TableApplied, Trace, hex};
use ir::{Bits, Target};
use serde_json::{Map, Value, json};

impl Trace {
    /// Writes the trace as a JSON text.
    pub fn to_json(&self) -> String {
        json!({"program": self.program.name, "events": events(self, &self.events)}).to_string()
    }
}

fn events(trace: &Trace, events: &[Event]) -> Value {
    events.iter().map(|event| event_of(trace, event)).collect()
}

fn event_of(trace: &Trace, event: &Event) -> Value {
    let mut members = Map::new();
    members.insert("event".to_owned(), event.kind.name().into());
    if let Some(place) = trace.place(event.loc) {
        members.insert("at".to_owned(), place.into());
    }
    if let Value::Object(details) = details(trace, &event.kind) {
        members.extend(details);
    }
    members.into()
}

/// Returns the members of an event's JSON object that only events of its kind have, as an object; null if there are
/// none.
fn details(trace: &Trace, kind: &EventKind) -> Value {
    use EventKind::*;
    let program = trace.program();
    match kind {
        Received {
            now_ps,
            port,
            bytes,
        } => json!({"now_ps": now_ps.ps(), "port": port, "bytes": bytes}),
        Block(block) => json!({"block": program.block_name(*block)}),
        State(state) => json!({"state": program.states[state.index()].name}),
        Extract {
            header,
            bytes,
            fields,
        } => {
            let header = &program.headers[header.index()];
            let names = header
                .fields
                .iter()
                .map(|field| &program.slots[field.slot.index()].name);
            json!({"header": header.name, "bytes": bytes, "fields": named(names, fields)})
        }
        Advance(bits) => json!({"bits": bits}),
        Transition { keys, target } => {
            json!({"keys": list(keys), "to": target_name(trace, *target)})
        }
        ParserError(error) => json!({"error": trace.error_name(*error)}),
        SetValid { header, valid } => {
            json!({"header": program.headers[header.index()].name, "valid": valid})
        }
        Branch(taken) => json!({"taken": taken}),
        Switch { value, case } => {
            let case = case.map_or(json!("default"), |case| json!(case));
            json!({"value": hex(value), "case": case})
        }
        Table(applied) => table(trace, applied),
        Emit { header, bytes } => {
            let name = &program.headers[header.index()].name;
            json!({"header": name, "bytes": bytes.unwrap_or(0), "valid": bytes.is_some()})
        }
        Copy {
            kind, trace: inner, ..
        } => json!({"copy": kind.name(), "events": events(trace, inner)}),
        LeftOut(all) => {
            let dropped = all
                .dropped
                .iter()
                .map(|(reason, count)| json!({"reason": reason.name(), "count": count}));
            json!({"copies": all.copies, "sent": all.sent, "dropped": dropped.collect::<Value>()})
        }
        Enqueued { port, rid } => json!({"port": port, "rid": rid}),
        Sent { port, bytes } => json!({"port": port, "bytes": bytes}),
        Dropped(reason) => json!({"reason": reason.name()}),
        _ => extern_details(trace, kind),
    }
}

fn extern_details(trace: &Trace, kind: &EventKind) -> Value {
    use EventKind::*;
    let program = trace.program();
    let slot = |dst: &ir::SlotId| &program.slots[dst.index()].name;
    match kind {
        Assign { dst, value } | Lookahead { dst, value } | Random { dst, value } => {
            json!({"variable": slot(dst), "value": hex(value)})
        }
        Hash {
            algorithm,
            dst,
            value,
        } => {
            let algorithm = format!("{algorithm:?}").to_lowercase();
            json!({"algorithm": algorithm, "variable": slot(dst), "value": hex(value)})
        }
        RegisterRead {
            register,
            index,
            value,
        }
        | RegisterWrite {
            register,
            index,
            value,
        } => {
            let name = &program.registers[register.index()].name;
            json!({"register": name, "index": index, "value": hex(value)})
        }
        Count { counter, index } => {
            json!({"counter": program.counters[counter.index()].name, "index": index})
        }
        Meter {
            meter,
            index,
            colour,
        } => {
            let name = &program.meters[meter.index()].name;
            json!({"meter": name, "index": index, "colour": super::colour_name(*colour)})
        }
        DirectMeter { meter, colour } => {
            let name = &program.meters[meter.index()].name;
            json!({"meter": name, "colour": super::colour_name(*colour)})
        }
        Clone { session } => json!({"session": session}),
        Truncate(length) => json!({"length": length}),
        Digest { digest, values } => {
            json!({"digest": program.digests[digest.index()].name, "values": list(values)})
        }
        Log(message) => json!({"message": message}),
        Assert(holds) => json!({"holds": holds}),
        _ => Value::Null,
    }
}

fn table(trace: &Trace, applied: &TableApplied) -> Value {
    let program = trace.program();
    let table = &program.tables[applied.table.index()];
    let keys = || table.keys.iter().map(|key| &key.name);
    let mut all = json!({
        "table": table.name,
        "keys": named(keys(), &applied.keys),
        "hit": applied.entry.is_some(),
    });
    if let Some((matches, priority)) = &applied.entry {
        all["entry"] = keys()
            .zip(matches.iter().map(super::match_text))
            .map(|(name, text)| (name.clone(), text))
            .collect();
        if *priority != 0 {
            all["entry"]["priority"] = json!(priority);
        }
    }
    if let Some(colour) = applied.colour {
        all["colour"] = json!(super::colour_name(colour));
    }
    if let Some(selection) = &applied.selection {
        let selected = &mut all["selection"];
        *selected = json!({});
        if let Some(group) = selection.group_id {
            selected["group"] = json!(group);
        }
        if let Some(member) = selection.member_id {
            selected["member"] = json!(member);
        }
        if let Some((position, hash)) = selection.choice {
            selected["position"] = json!(position);
            selected["hash"] = json!(format!("{hash:#x}"));
        }
    }
    if let Some(action) = table.actions.get(applied.action as usize) {
        let action = &program.actions[action.action.index()];
        let params = action.params.iter().map(|param| &param.name);
        all["action"] = json!(action.name);
        all["args"] = named(params, &applied.args);
    }
    all
}

/// Returns an object that maps each name to its value in hexadecimal.
fn named<'a>(names: impl Iterator<Item = &'a String>, values: &[Bits]) -> Value {
    let members = names.zip(values);
    members
        .map(|(name, value)| (name.clone(), hex(value)))
        .collect()
}

fn list(values: &[Bits]) -> Value {
    values.iter().map(hex).collect()
}

pub(super) fn target_name(trace: &Trace, target: Target) -> &str {
    match target {
        Target::State(state) => &trace.program().states[state.index()].name,
        Target::Accept => "accept",
        Target::Reject => "reject",
    }
}
