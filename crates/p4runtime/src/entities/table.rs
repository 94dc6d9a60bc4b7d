//! Table entries, with the default ones (specification, "TableEntry").

use super::EntityKind;
use super::counter::counts;
use super::direct::{DirectCounterEntry, DirectMeterEntry, direct_counter, direct_meter};
use super::meter::{check_reset, meter_config};
use super::selection::{Form, select};
use crate::answer::{Answer, Source};
use crate::encode::{config_message, count_message};
use crate::entries::{direct_action, note_of};
use crate::errors::invalid;
use crate::info::{Field, Names, Table};
use crate::messages as m;
use crate::pipeline::Pipeline;
use crate::plan::{Plan, modify};
use crate::served::Served;
use crate::transfer::Transfer;
use engine::control::{
    ControlError, Entity, Entry, EntryAction, InstalledEntry, Note, Operation, Update,
};
use engine::meter::MeterConfig;
use engine::refuse;
use ir::{ActionCall, TableId};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

impl Served for m::TableEntry {
    fn object_id(&self) -> u32 {
        self.table_id
    }

    fn plan(&self, pipeline: &Pipeline, operation: Operation) -> Result<Plan, ControlError> {
        let table = pipeline.info.tables.by_id(self.table_id)?;
        let label = &table.label;
        refuse!(self.is_const => InvalidArgument, "{label}: is_const is for the server to set");
        if self.is_default_action {
            return self.plan_default(pipeline, operation, table);
        }
        let changes = operation != Operation::Modify || self.action.is_some();
        refuse!(table.is_const && changes => PermissionDenied, "{label}: its entries are constant");
        refuse!(
            table.fields.list.is_empty() => InvalidArgument,
            "{label} has no key, so no entries but the default one"
        );
        let (id, matches, priority) = table.key(self)?;
        let mut entry = Entry {
            matches,
            priority,
            // The action of a deleted entry does not matter.
            action: EntryAction::Keep,
            idle_timeout_ns: 0,
            meter: None,
            note: None,
        };
        if operation == Operation::Delete {
            let table = id;
            return Ok(Plan::one(operation, Entity::TableEntry { table, entry }));
        }
        table.check_resources(self, true)?;
        match self.action.as_ref() {
            None if operation == Operation::Modify => {}
            action => entry.action = pipeline.entry_action(table, action)?,
        }
        entry.meter = self.meter(table)?;
        entry.note = note_of(self);
        entry.idle_timeout_ns = self.idle_timeout_ns as u64;
        let resets = operation == Operation::Modify && self.meter_counter_data.is_some();
        let counter = self.counter_data.as_ref().map(counts).transpose()?;
        // Most entries.
        if !table.is_const && !resets && counter.is_none() {
            let table = id;
            return Ok(Plan::one(operation, Entity::TableEntry { table, entry }));
        }
        let key = (id, entry.matches.clone(), priority);
        let mut updates = SmallVec::new();
        if resets {
            updates.push(modify(direct_meter(key.clone(), None)));
        }
        if table.is_const {
            if table.direct_meter.is_some() {
                updates.push(modify(direct_meter(key.clone(), entry.meter)));
            }
            updates.push(modify(Entity::Note {
                table: id,
                matches: entry.matches,
                priority,
                note: entry.note,
            }));
        } else {
            let entity = Entity::TableEntry { table: id, entry };
            updates.push(Update { operation, entity });
        }
        if let Some(data) = counter {
            updates.push(modify(direct_counter(key, Some(data))));
        }
        Ok(Plan::of(updates))
    }

    fn answer(&self, source: &mut Source<'_>) -> Result<Answer, ControlError> {
        if self.table_id != 0 {
            let table = source.pipeline.info.tables.by_id(self.table_id)?;
            table.check_resources(self, false)?;
            if let Some(action) = &self.action {
                let Some(m::ActionKind::Action(action)) = &action.kind else {
                    return Err(invalid("entries can be selected by action id only"));
                };
                if !table.actions.iter().any(|(id, _)| *id == action.action_id) {
                    // Words the error.
                    source.pipeline.call(table, action, false)?;
                }
            }
        }
        select(self, Form::Entry, source)
    }
}

impl m::TableEntry {
    fn meter(&self, table: &Table) -> Result<Option<MeterConfig>, ControlError> {
        let Some((_, ty)) = table.direct_meter else {
            return Ok(None);
        };
        let what = || format!("the direct meter of {}", table.label);
        check_reset(self.meter_counter_data.as_deref(), &what)?;
        let config = self.meter_config.as_deref();
        config
            .map(|config| meter_config(config, ty, &what))
            .transpose()
    }

    fn plan_default(
        &self,
        pipeline: &Pipeline,
        operation: Operation,
        table: &Table,
    ) -> Result<Plan, ControlError> {
        let label = &table.label;
        refuse!(
            operation != Operation::Modify => InvalidArgument,
            "{label} always has its default entry; it can only be modified"
        );
        check_default_key(label, self)?;
        refuse!(
            table.has_const_default => PermissionDenied,
            "{label}: its default action is constant"
        );
        table.check_resources(self, true)?;
        refuse!(
            self.counter_data.is_some() => InvalidArgument,
            "{label}: the default entry has no direct counter"
        );
        refuse!(
            self.meter_config.is_some() || self.meter_counter_data.is_some() => InvalidArgument,
            "{label}: the default entry has no direct meter"
        );
        let action = match self.action.as_ref() {
            None => None,
            action => Some(pipeline.call(table, direct_action(table, action)?, true)?),
        };
        let note = action.as_ref().and_then(|_| note_of(self));
        let entity = Entity::DefaultAction {
            table: table.table_id(),
            action,
            note,
        };
        Ok(Plan::one(operation, entity))
    }
}

pub(super) fn check_default_key(label: &str, message: &m::TableEntry) -> Result<(), ControlError> {
    refuse!(
        !message.matches.is_empty() => InvalidArgument,
        "{label}: the default entry has no match fields"
    );
    refuse!(
        message.priority != 0 => InvalidArgument,
        "{label}: the default entry has no priority"
    );
    Ok(())
}

/// Returns whether the entries of table `a` of the old pipeline mean the same in table `b` of the new one, as far as
/// both P4Infos tell.
pub(crate) fn alike(old: &Pipeline, a: TableId, new: &Pipeline, b: TableId) -> bool {
    let of = |pipeline: &Pipeline, table: TableId| {
        let id = pipeline.program.tables.get(table.index())?.id;
        pipeline.info.tables.position(id)
    };
    let (Some(a), Some(b)) = (of(old, a), of(new, b)) else {
        return false;
    };
    let (a, b) = (&old.info.tables.list[a], &new.info.tables.list[b]);
    let params = |pipeline: &Pipeline, id: u32| {
        let action = pipeline.info.actions.get(id)?;
        let params = action.params.list.iter();
        Some(params.map(translated).collect::<Vec<_>>())
    };
    // An action that is there no longer is found when entries are converted.
    let mut actions = a
        .actions
        .iter()
        .filter_map(|(id, _)| Some((params(old, *id)?, params(new, *id)?)));
    same(&a.fields, &b.fields)
        && a.fields
            .list
            .iter()
            .map(translated)
            .eq(b.fields.list.iter().map(translated))
        && actions.all(|(a, b)| a == b)
}

/// Returns everything that determines how a value of a field or parameter is written in a message: its id, its width
/// in bits and the URI of its translation.
fn translated(field: &Field) -> (u32, u32, Option<String>) {
    let uri = field.translation.as_ref().map(|it| it.uri.clone());
    (field.id, field.width, uri)
}

/// Plans to delete the entries with which the new program initialises tables, from those tables that both programs
/// have and whose entries are not moved as a whole. Fails with INVALID_ARGUMENT if a table of the old program that
/// has entries is missing in the new one or has another key there.
pub(crate) fn clear(
    transfer: &mut Transfer<'_>,
    entries: &BTreeMap<TableId, Vec<InstalledEntry>>,
    initial: Vec<(TableId, Entry)>,
) -> Result<(), ControlError> {
    let mut both = BTreeSet::new();
    let (old, moves) = (transfer.old, transfer.moves);
    let tables = old.info.tables.list.iter();
    for table in tables.filter(|it| !moves.has_table(it.table_id())) {
        let named = transfer.new.info.tables.get(table.id);
        let Some(counterpart) = named.filter(|new| same(&new.fields, &table.fields)) else {
            let mut entries = entries.get(&table.table_id()).into_iter().flatten();
            let why = match named {
                None => "the new program has no such table",
                Some(_) => "its key is another one in the new program",
            };
            refuse!(
                entries.any(|entry| !entry.is_const) => InvalidArgument,
                "the entries of {} cannot be preserved: {why}", table.label
            );
            continue;
        };
        both.insert(counterpart.table_id());
    }
    for (table, entry) in initial {
        if both.contains(&table) {
            transfer.update(Operation::Delete, Entity::TableEntry { table, entry });
        }
    }
    Ok(())
}

fn same(a: &Names<Field>, b: &Names<Field>) -> bool {
    let shape = |field: &Field| (field.id, field.name.clone(), field.width, field.kind);
    let of = |fields: &Names<Field>| fields.list.iter().map(shape).collect::<Vec<_>>();
    of(a) == of(b)
}

/// Plans the updates that write `entries` of one of the old switch's tables to the new switch and, if `default` is
/// given, the default action that a client has set. Does nothing if the old P4Info has no such table.
pub(crate) fn transfer(
    transfer: &mut Transfer<'_>,
    id: TableId,
    default: Option<&(ActionCall, Option<Note>)>,
    entries: &[InstalledEntry],
) -> Result<(), ControlError> {
    let old = transfer.old;
    let mut tables = old.info.tables.list.iter();
    let Some(table) = tables.find(|it| it.table_id() == id) else {
        return Ok(());
    };
    if let Some((call, note)) = default.filter(|_| !table.has_const_default) {
        let message = old.default_message(table, call, note.as_ref());
        transfer.modify(&message);
    }
    for read in entries {
        transfer_entry(transfer, table, read)?;
    }
    Ok(())
}

fn transfer_entry(
    transfer: &mut Transfer<'_>,
    table: &Table,
    read: &InstalledEntry,
) -> Result<(), ControlError> {
    let counter = read
        .counter
        .filter(|count| count.packets | count.bytes != 0);
    let mut message = transfer.old.entry_message(table, read);
    message.is_const = false;
    let config = read.entry.meter.map(config_message);
    let counter_data = counter.map(count_message);
    if !read.is_const {
        (message.meter_config, message.counter_data) = (config.map(Box::new), counter_data);
        transfer.insert(&message);
        return Ok(());
    }
    message.action = None;
    (message.metadata, message.controller_metadata) = Default::default();
    if config.is_some() {
        transfer.modify(
            EntityKind::DirectMeter(Box::new(DirectMeterEntry {
                table_entry: Some(message.clone()),
                config,
                counter_data: None,
            }))
            .served(),
        );
    }
    if counter_data.is_some() {
        let direct = DirectCounterEntry {
            table_entry: Some(message.clone()),
            data: counter_data,
        };
        transfer.modify(&Box::new(direct));
    }
    let counterpart = transfer.new.info.tables.get(table.id);
    if let (Some(note), Some(table)) = (read.entry.note.clone(), counterpart) {
        let (table, matches, priority) = table.key(&message)?;
        let entity = Entity::Note {
            table,
            matches,
            priority,
            note: Some(note),
        };
        transfer.update(Operation::Modify, entity);
    }
    Ok(())
}
