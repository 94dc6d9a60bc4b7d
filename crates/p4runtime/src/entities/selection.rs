//! Reads of table entries, or of the direct resources of entries: those of a table that match a filter.

use super::EntityKind;
use super::direct::{DirectCounterEntry, DirectMeterEntry};
use crate::answer::{Answer, Copied, PER_SLICE, Slice, Sliced, Source};
use crate::encode::{colours_message, config_message, count_message};
use crate::entries::{self, Key};
use crate::info::Table;
use crate::messages as m;
use crate::pipeline::Pipeline;
use crate::protobuf::nested;
use engine::Switch;
use engine::control::{
    ControlError, ControlErrorCode, EntryAction, InstalledEntry, Note, TableSnapshot,
};
use engine::meter::MeterConfig;
use engine::refuse;
use engine::runtime::CounterData;
use std::sync::Arc;

/// What is read of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Entry,
    DirectCounter,
    /// The direct meter, with its counters if true.
    DirectMeter(bool),
}

impl Form {
    /// Returns whether a table has what this form reads: always for entries, else whether it has a direct counter or
    /// a direct meter.
    pub fn is_of(self, table: &Table) -> bool {
        match self {
            Form::Entry => true,
            Form::DirectCounter => table.direct_counter != 0,
            Form::DirectMeter(_) => table.direct_meter.is_some(),
        }
    }

    /// Returns what this form reads in one word: "entry", "counter" or "meter".
    pub fn resource(self) -> &'static str {
        match self {
            Form::Entry => "entry",
            Form::DirectCounter => "counter",
            Form::DirectMeter(_) => "meter",
        }
    }
}

/// Which entries of a table are read, and what of them.
#[derive(Debug)]
struct Wanted {
    table_id: u32,
    form: Form,
    key: Option<Key>,
    message: m::TableEntry,
}

/// The entries of a snapshot that have not been copied yet, from a number on.
#[derive(Debug)]
struct Rest(Arc<TableSnapshot>, u32, Arc<Wanted>);

impl Sliced for Rest {
    fn fetch(&mut self, switch: &Switch) -> Result<(Slice, bool), ControlError> {
        let Rest(snapshot, place, wanted) = self;
        let (entries, next) = switch.read_snapshot(snapshot, *place, PER_SLICE)?;
        *place = next.unwrap_or_default();
        Ok((Slice::of(Entries(entries, wanted.clone())), next.is_some()))
    }
}

#[derive(Debug)]
struct Entries(Vec<InstalledEntry>, Arc<Wanted>);

impl Copied for Entries {
    fn encode(&self, pipeline: &Pipeline, out: &mut Vec<u8>) {
        let Entries(entries, wanted) = self;
        if let Some(table) = pipeline.info.tables.get(wanted.table_id) {
            out.reserve(64 * entries.len());
            for entry in entries {
                pipeline.put_selected(out, table, entry, wanted);
            }
        }
    }
}

/// Answers a read of the table entries that `message` selects, or of their direct counters or meters, as `form` says.
/// Fails for an unknown table, for an invalid match, and for a read of all tables that has any other filter.
pub(super) fn select(
    message: &m::TableEntry,
    form: Form,
    source: &mut Source<'_>,
) -> Result<Answer, ControlError> {
    let filtered = !message.matches.is_empty()
        || message.action.is_some()
        || message.priority != 0
        || message.controller_metadata != 0
        || !message.metadata.is_empty();
    refuse!(
        message.table_id == 0 && filtered => InvalidArgument,
        "a read of all tables takes no other filter; name a table"
    );
    let mut answer = Answer::default();
    for table in source.wanted(&source.pipeline.info.tables, message.table_id)? {
        if !form.is_of(table) {
            continue;
        }
        let label = &table.label;
        refuse!(
            message.is_default_action && !message.matches.is_empty() => InvalidArgument,
            "{label}: the default entry has no match fields"
        );
        refuse!(
            message.is_default_action && message.priority != 0 => InvalidArgument,
            "{label}: the default entry has no priority"
        );
        let matches = match message.matches.is_empty() {
            true => None,
            false => Some(table.matches(&message.matches)?),
        };
        let wanted = Arc::new(Wanted {
            table_id: table.id,
            form,
            key: matches.map(|matches| (table.table_id(), matches, message.priority)),
            message: message.clone(),
        });
        if message.is_default_action {
            let found = read_default(source, table, &wanted)?;
            answer.push_copied(Vec::from_iter(found));
            continue;
        }
        match &wanted.key {
            Some((id, matches, priority)) if (*priority != 0) == table.needs_priority => {
                let found = match source.switch.read_entry(*id, matches, *priority) {
                    Ok(entry) => vec![entry],
                    Err(error) if error.code == ControlErrorCode::NotFound => Vec::new(),
                    Err(error) => return Err(error),
                };
                answer.push_copied(Entries(found, wanted));
            }
            _ => answer.push(Rest(source.snapshot(table.table_id())?, 0, wanted)),
        }
    }
    Ok(answer)
}

fn read_default(
    source: &Source<'_>,
    table: &Table,
    wanted: &Wanted,
) -> Result<Option<EntityKind>, ControlError> {
    let (pipeline, switch) = (source.pipeline, &source.switch);
    let call = switch.default_action(table.table_id())?;
    let note = switch.default_note(table.table_id())?;
    let mut message = pipeline.default_message(table, &call, note.as_ref());
    let asked = &wanted.message;
    if table.direct_meter.is_some() && asked.meter_counter_data.is_some() {
        message.meter_counter_data = Some(Box::new(colours_message(None)));
    }
    let action_id = pipeline.program.actions[call.action.index()].id;
    if !asked.selects(action_id, note.as_ref()) {
        return Ok(None);
    }
    Ok(match wanted.form {
        Form::Entry => Some(EntityKind::Table(message)),
        Form::DirectCounter => None,
        Form::DirectMeter(counted) => {
            Some(direct_meter_message(message, None, counted.then_some(None)))
        }
    })
}

impl Pipeline {
    /// Appends an entry, or its direct counter or meter, to `out` as an `Entity`, if `wanted` selects it. Fields of
    /// the entry that a client must ask for (counts, meter configuration) are included if `wanted` asks for them.
    fn put_selected(
        &self,
        out: &mut Vec<u8>,
        table: &Table,
        read: &InstalledEntry,
        wanted: &Wanted,
    ) {
        let (asked, entry) = (&wanted.message, &read.entry);
        let other_key = |(_, matches, _): &Key| *matches != entry.matches;
        if wanted.key.as_ref().is_some_and(other_key)
            || (asked.priority != 0 && asked.priority != entry.priority)
        {
            return;
        }
        let action_id = match &entry.action {
            EntryAction::Call(call) => self.program.actions[call.action.index()].id,
            _ => 0,
        };
        if !asked.selects(action_id, entry.note.as_ref()) {
            return;
        }
        let direct = match wanted.form {
            Form::Entry => {
                return nested(out, 1, |out| {
                    nested(out, 2, |out| self.put_entry(out, table, read, asked));
                });
            }
            Form::DirectCounter => {
                let Some(count) = read.counter else {
                    return;
                };
                EntityKind::DirectCounter(Box::new(DirectCounterEntry {
                    data: Some(count_message(count)),
                    table_entry: Some(key_of(self.entry_message(table, read))),
                }))
            }
            Form::DirectMeter(counted) => {
                let counts = counted.then_some(read.meter_counts);
                direct_meter_message(self.entry_message(table, read), entry.meter, counts)
            }
        };
        nested(out, 1, |out| direct.encode(out));
    }
}

impl m::TableEntry {
    /// Returns whether the filter selects entries with this action and these metadata (in `note`). The entry's key is
    /// not compared.
    fn selects(&self, action_id: u32, note: Option<&Note>) -> bool {
        let wanted = self.action.as_ref().and_then(|action| action.kind.as_ref());
        if let Some(m::ActionKind::Action(action)) = wanted
            && action.action_id != action_id
        {
            return false;
        }
        if self.metadata.is_empty() && self.controller_metadata == 0 {
            return true;
        }
        let note = entries::note(note);
        let metadata = self.metadata.is_empty() || self.metadata == note.metadata;
        metadata && [0, note.controller_metadata].contains(&self.controller_metadata)
    }
}

fn direct_meter_message(
    entry: m::TableEntry,
    config: Option<MeterConfig>,
    counts: Option<Option<[CounterData; 3]>>,
) -> EntityKind {
    EntityKind::DirectMeter(Box::new(DirectMeterEntry {
        table_entry: Some(key_of(entry)),
        config: config.map(config_message),
        counter_data: counts.map(colours_message),
    }))
}

/// Returns a copy of a `TableEntry` that has only its key fields.
fn key_of(entry: m::TableEntry) -> m::TableEntry {
    m::TableEntry {
        table_id: entry.table_id,
        matches: entry.matches,
        priority: entry.priority,
        is_default_action: entry.is_default_action,
        ..m::TableEntry::default()
    }
}
