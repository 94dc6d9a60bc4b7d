//! A trace as JSON, written by hand: an object with the program's name and a list of events.
//!
//! Every event has `"event"`, its kind, and `"at"`, `file:line`, when it has a place in the source. Values of variables are strings in
//! hexadecimal, so that no width is lost.

use super::{Event, EventKind, TableApplied, Trace, hex};
use ir::{Bits, Target};
use std::fmt::Write;

impl Trace {
    /// Writes the trace as a JSON text.
    pub fn to_json(&self) -> String {
        let mut out = Json::default();
        out.object(|out| {
            out.text("program", &self.program.name);
            out.events("events", self, &self.events);
        });
        out.text
    }
}

/// A JSON text in the making.
#[derive(Default)]
struct Json {
    text: String,
}

impl Json {
    fn object(&mut self, members: impl FnOnce(&mut Json)) {
        self.separate();
        self.text.push('{');
        members(self);
        self.text.push('}');
    }

    fn list(&mut self, name: &str, items: impl FnOnce(&mut Json)) {
        self.name(name);
        self.text.push('[');
        items(self);
        self.text.push(']');
    }

    fn name(&mut self, name: &str) {
        self.string(name);
        self.text.push(':');
    }

    fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        self.string(value);
    }

    fn number(&mut self, name: &str, value: impl std::fmt::Display) {
        self.name(name);
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{value}");
    }

    fn bits(&mut self, name: &str, value: &Bits) {
        self.text(name, &hex(value));
    }

    /// Appends a comma, unless a list, object or member has just begun.
    fn separate(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with(['{', '[', ':']) {
            self.text.push(',');
        }
    }

    fn string(&mut self, value: &str) {
        self.separate();
        self.text.push('"');
        for c in value.chars() {
            match c {
                '"' => self.text.push_str("\\\""),
                '\\' => self.text.push_str("\\\\"),
                '\n' => self.text.push_str("\\n"),
                c if (c as u32) < 0x20 => {
                    let _ = write!(self.text, "\\u{:04x}", c as u32);
                }
                c => self.text.push(c),
            }
        }
        self.text.push('"');
    }

    fn events(&mut self, name: &str, trace: &Trace, events: &[Event]) {
        self.list(name, |out| {
            for event in events {
                out.event(trace, event);
            }
        });
    }

    fn event(&mut self, trace: &Trace, event: &Event) {
        self.object(|out| {
            out.text("event", event.kind.name());
            if let Some(place) = trace.place(event.loc) {
                out.text("at", &place);
            }
            out.details(trace, &event.kind);
        });
    }

    fn details(&mut self, trace: &Trace, kind: &EventKind) {
        use EventKind::*;
        let program = trace.program();
        match kind {
            Received {
                now_ps,
                port,
                bytes,
            } => {
                self.number("now_ps", now_ps);
                self.number("port", port);
                self.number("bytes", bytes);
            }
            Block(block) => self.text("block", block.name()),
            State(state) => self.text("state", &program.parser.states[state.index()].name),
            Extract {
                header,
                bytes,
                fields,
            } => {
                self.text("header", &program.headers[header.index()].name);
                self.number("bytes", bytes);
                self.name("fields");
                self.object(|out| {
                    for (field, value) in program.headers[header.index()].fields.iter().zip(fields)
                    {
                        out.bits(&program.slots[field.slot.index()].name, value);
                    }
                });
            }
            Advance(bits) => self.number("bits", bits),
            Transition { keys, target } => {
                self.values("keys", keys);
                self.text("to", target_name(trace, *target));
            }
            ParserError(error) => self.text("error", &trace.error_name(*error)),
            SetValid { header, valid } => {
                self.text("header", &program.headers[header.index()].name);
                self.number("valid", valid);
            }
            Branch(taken) => self.number("taken", taken),
            Switch { value, case } => {
                self.bits("value", value);
                match case {
                    Some(case) => self.number("case", case),
                    None => self.text("case", "default"),
                }
            }
            Table(applied) => self.table(trace, applied),
            Emit { header, bytes } => {
                self.text("header", &program.headers[header.index()].name);
                self.number("bytes", bytes.unwrap_or(0));
                self.number("valid", bytes.is_some());
            }
            Copy {
                kind, trace: inner, ..
            } => {
                self.text("copy", kind.name());
                self.events("events", trace, inner);
            }
            LeftOut(all) => {
                self.number("copies", all.copies);
                self.number("sent", all.sent);
                self.list("dropped", |out| {
                    for (reason, count) in &all.dropped {
                        out.object(|out| {
                            out.text("reason", reason.name());
                            out.number("count", count);
                        });
                    }
                });
            }
            Enqueued { port, rid } => {
                self.number("port", port);
                self.number("rid", rid);
            }
            Sent { port, bytes } => {
                self.number("port", port);
                self.number("bytes", bytes);
            }
            Dropped(reason) => self.text("reason", reason.name()),
            _ => self.extern_details(trace, kind),
        }
    }

    fn extern_details(&mut self, trace: &Trace, kind: &EventKind) {
        use EventKind::*;
        let program = trace.program();
        let slot = |dst: &ir::SlotId| program.slots[dst.index()].name.clone();
        match kind {
            Assign { dst, value } | Lookahead { dst, value } | Random { dst, value } => {
                self.text("variable", &slot(dst));
                self.bits("value", value);
            }
            Hash {
                algorithm,
                dst,
                value,
            } => {
                self.text("algorithm", &format!("{algorithm:?}").to_lowercase());
                self.text("variable", &slot(dst));
                self.bits("value", value);
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
                self.text("register", &program.registers[register.index()].name);
                self.number("index", index);
                self.bits("value", value);
            }
            Count { counter, index } => {
                self.text("counter", &program.counters[counter.index()].name);
                self.number("index", index);
            }
            Meter {
                meter,
                index,
                colour,
            } => {
                self.text("meter", &program.meters[meter.index()].name);
                self.number("index", index);
                self.text("colour", super::colour_name(*colour));
            }
            DirectMeter { meter, colour } => {
                self.text("meter", &program.meters[meter.index()].name);
                self.text("colour", super::colour_name(*colour));
            }
            Clone { session } => self.number("session", session),
            Truncate(length) => self.number("length", length),
            Digest { digest, values } => {
                self.text("digest", &program.digests[digest.index()].name);
                self.values("values", values);
            }
            Log(message) => self.text("message", message),
            Assert(holds) => self.number("holds", holds),
            _ => {}
        }
    }

    fn table(&mut self, trace: &Trace, applied: &TableApplied) {
        let program = trace.program();
        let table = &program.tables[applied.table.index()];
        self.text("table", &table.name);
        self.name("keys");
        self.object(|out| {
            for (key, value) in table.keys.iter().zip(&applied.keys) {
                out.bits(&key.name, value);
            }
        });
        self.number("hit", applied.entry.is_some());
        if let Some((matches, priority)) = &applied.entry {
            self.name("entry");
            self.object(|out| {
                for (key, key_match) in table.keys.iter().zip(matches) {
                    out.text(&key.name, &super::match_text(key_match));
                }
                if *priority != 0 {
                    out.number("priority", priority);
                }
            });
        }
        if let Some(colour) = applied.colour {
            self.text("colour", super::colour_name(colour));
        }
        if let Some(selection) = &applied.selection {
            self.name("selection");
            self.object(|out| {
                let ids = [
                    ("group", selection.group_id),
                    ("member", selection.member_id),
                ];
                for (name, id) in ids {
                    if let Some(id) = id {
                        out.number(name, id);
                    }
                }
                if let Some((position, hash)) = selection.choice {
                    out.number("position", position);
                    out.text("hash", &format!("{hash:#x}"));
                }
            });
        }
        let Some(action) = table.actions.get(applied.action as usize) else {
            return;
        };
        let action = &program.actions[action.action.index()];
        self.text("action", &action.name);
        self.name("args");
        self.object(|out| {
            for (param, value) in action.params.iter().zip(&applied.args) {
                out.bits(&param.name, value);
            }
        });
    }

    fn values(&mut self, name: &str, values: &[Bits]) {
        self.list(name, |out| {
            for value in values {
                out.string(&hex(value));
            }
        });
    }
}

pub(super) fn target_name(trace: &Trace, target: Target) -> &str {
    match target {
        Target::State(state) => &trace.program().parser.states[state.index()].name,
        Target::Accept => "accept",
        Target::Reject => "reject",
    }
}
