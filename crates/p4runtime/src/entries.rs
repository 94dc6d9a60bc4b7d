//! Table entries (specification, "TableEntry"), members of value sets, and actions: from messages to the engine's and back.
//!
//! A message becomes what the engine takes, or the error that the specification names. Nothing here knows which entries exist.

use crate::errors::{denied, invalid};
use crate::field_match::field_match;
use crate::info::{Action, Field, Names, Table, unknown};
use crate::messages as m;
use crate::pipeline::Pipeline;
use crate::values;
use bytes::Bytes;
use engine::control::{ControlError, EntryAction, Note, Target};
use engine::refuse;
use ir::{ActionCall, ActionId, ActionScope, Bits, KeyMatch, TableId};
use prost::Message;

/// What identifies an entry: its table, its matches and its priority.
pub(crate) type Key = (TableId, Vec<KeyMatch>, i32);

impl Table {
    pub fn table_id(&self) -> TableId {
        TableId(self.number as u32)
    }

    /// Returns the matches of an entry, one per key field of the program. Fails with INVALID_ARGUMENT if a given field
    /// is unknown, repeated or wrong.
    pub fn matches(&self, given: &[m::FieldMatch]) -> Result<Vec<KeyMatch>, ControlError> {
        let mut used = 0;
        let mut matches = Vec::with_capacity(self.keys.len());
        for key in &self.keys {
            let Some(at) = key else {
                matches.push(KeyMatch::Any);
                continue;
            };
            let field = &self.fields.list[*at];
            let found = given.iter().find(|found| found.field_id == field.id);
            used += usize::from(found.is_some());
            matches.push(field_match(&self.label, field, found)?);
        }
        check_given(&self.label, &self.fields, given, used)?;
        Ok(matches)
    }

    /// Returns the identity of an entry: table, matches and priority. Fails with INVALID_ARGUMENT in the cases that
    /// the specification lists.
    pub fn key(&self, message: &m::TableEntry) -> Result<Key, ControlError> {
        let matches = self.matches(&message.matches)?;
        let label = &self.label;
        refuse!(
            self.needs_priority && message.priority <= 0 => InvalidArgument,
            "{label}: an entry needs a priority above zero (several entries may match a packet)"
        );
        refuse!(
            !self.needs_priority && message.priority != 0 => InvalidArgument,
            "{label}: no priority, because one entry at most matches best"
        );
        Ok((self.table_id(), matches, message.priority))
    }

    /// Checks that the table has the direct counter, direct meter and idle timeouts that a `TableEntry` names;
    /// counters and meters only if `writing`, since a read may ask for what does not exist. Fails with
    /// INVALID_ARGUMENT.
    pub fn check_resources(
        &self,
        message: &m::TableEntry,
        writing: bool,
    ) -> Result<(), ControlError> {
        let label = &self.label;
        let metered = message.meter_config.is_some() || message.meter_counter_data.is_some();
        refuse!(
            writing && metered && self.direct_meter.is_none() => InvalidArgument,
            "{label} has no direct meter"
        );
        refuse!(
            writing && message.counter_data.is_some() && self.direct_counter == 0 => InvalidArgument,
            "{label} has no direct counter"
        );
        let hit = message.time_since_last_hit.is_some();
        if message.idle_timeout_ns == 0 && !hit {
            return Ok(());
        }
        let given = if hit {
            "time_since_last_hit"
        } else {
            "idle_timeout_ns"
        };
        refuse!(
            !self.has_timeout => InvalidArgument,
            "{label}: {given} is given, but the program gives the table no idle timeouts (support_timeout = true)"
        );
        refuse!(
            message.is_default_action => InvalidArgument,
            "{label}: {given} is given, but the default entry is never idle"
        );
        refuse!(
            message.idle_timeout_ns < 0 => InvalidArgument,
            "{label}: idle timeout {} ns is negative", message.idle_timeout_ns
        );
        refuse!(
            writing && hit => InvalidArgument,
            "{label}: time_since_last_hit is for the server to set"
        );
        Ok(())
    }
}

/// Checks that `used`, the number of match fields that were used, is the number that were given. If not, returns an
/// error that names an unknown or repeated field.
pub(crate) fn check_given(
    label: &str,
    fields: &Names<Field>,
    given: &[m::FieldMatch],
    used: usize,
) -> Result<(), ControlError> {
    if used == given.len() {
        return Ok(());
    }
    for (at, message) in given.iter().enumerate() {
        let field = fields.by_id(message.field_id)?;
        if given[..at].iter().any(|other| other.field_id == field.id) {
            let name = &field.name;
            return Err(invalid(format!(
                "{label}: match field '{name}' is given twice"
            )));
        }
    }
    Ok(())
}

impl Field {
    /// Translates a controller's value into the switch's. Fails with INVALID_ARGUMENT if there is no such value;
    /// `what` names the field or parameter in the message.
    pub fn value(&self, bytes: &[u8], what: &dyn Fn() -> String) -> Result<Bits, ControlError> {
        refuse!(
            self.width == 0 && self.translation.is_none() => InvalidArgument,
            "{}: its type has no values in P4Runtime", what()
        );
        let Some(translation) = &self.translation else {
            let value = values::number(bytes, self.width, self.own_width);
            return value.map_err(|why| invalid(format!("{}: {why}", what())));
        };
        let number = translation.to_switch(bytes, what)?;
        let own = self.own_width.max(1);
        let value = Bits::from_u64(own, number);
        refuse!(
            value.to_u64() != Some(number) => InvalidArgument,
            "{}: it is translated to {number}, which does not fit into {own} bits", what()
        );
        Ok(value)
    }

    /// Translates a value of the switch into the form that a client sees.
    pub fn shown(&self, value: &Bits) -> Bytes {
        match &self.translation {
            None => values::bytestring(value),
            Some(translation) => translation.to_controller(value),
        }
    }
}

impl Pipeline {
    /// Converts an action of a table entry or, if `is_default`, of a default entry, with its arguments. Fails if the
    /// table does not have the action, or has it only for the other purpose (`@defaultonly`, `@tableonly`).
    pub(crate) fn call(
        &self,
        table: &Table,
        message: &m::Action,
        is_default: bool,
    ) -> Result<ActionCall, ControlError> {
        let id = message.action_id;
        let found = table.actions.iter().find(|(known, _)| *known == id);
        let (Some((_, scope)), Some(action)) = (found, self.info.actions.get(id)) else {
            let actions = table.actions.iter();
            let names = actions.filter_map(|(id, _)| Some(&*self.info.actions.get(*id)?.name));
            let place = format!(" of {}", table.label);
            return Err(unknown("action", id, &place, names.collect()));
        };
        let (forbidden, place) = match is_default {
            true => (ActionScope::TableOnly, "as the default"),
            false => (ActionScope::DefaultOnly, "in an entry"),
        };
        if *scope == forbidden {
            let (label, name) = (&table.label, &action.name);
            return Err(denied(format!(
                "{label}: action '{name}' is not allowed {place}"
            )));
        }
        self.arguments(action, &message.params)
    }

    fn arguments(
        &self,
        action: &Action,
        given: &[m::Argument],
    ) -> Result<ActionCall, ControlError> {
        let declared = &self.program.actions[action.number];
        let refused = |what: String| invalid(format!("action '{}': {what}", action.name));
        let mut args = Vec::with_capacity(declared.params.len());
        let filled = declared.params.iter().try_for_each(|param| {
            let field = action.params.by_id(param.id)?;
            let found = given.iter().find(|found| found.param_id == param.id);
            let found =
                found.ok_or_else(|| refused(format!("parameter '{}' is missing", field.name)))?;
            args.push(field.value(&found.value, &|| {
                format!("action '{}', parameter '{}'", action.name, field.name)
            })?);
            Ok(())
        });
        if given.len() != declared.params.len() {
            for (at, argument) in given.iter().enumerate() {
                let field = action.params.by_id(argument.param_id)?;
                if given[..at].iter().any(|other| other.param_id == field.id) {
                    let name = &field.name;
                    return Err(refused(format!("parameter '{name}' is given twice")));
                }
            }
        }
        filled?;
        Ok(ActionCall {
            action: ActionId(action.number as u32),
            args,
        })
    }

    /// Converts the action, member, group or one-shot set of a table entry. Fails with INVALID_ARGUMENT if the table
    /// does not allow it.
    pub(crate) fn entry_action(
        &self,
        table: &Table,
        action: Option<&m::TableAction>,
    ) -> Result<EntryAction, ControlError> {
        let kind = action.and_then(|action| action.kind.as_ref());
        let label = &table.label;
        if table.implementation == 0 {
            let call = self.call(table, direct_action(table, action)?, false)?;
            return Ok(EntryAction::Call(call));
        }
        let profile = self.info.profiles.by_id(table.implementation)?;
        Ok(EntryAction::Target(match kind {
            Some(m::ActionKind::Member(id)) => {
                Target::Member(not_zero(*id, || format!("{label}: member"))?)
            }
            Some(m::ActionKind::Group(id)) if profile.with_selector => {
                Target::Group(not_zero(*id, || format!("{label}: group"))?)
            }
            Some(m::ActionKind::Set(set)) => self.one_shot(table, profile, set)?,
            other => {
                let kind = other.map_or("unset", m::ActionKind::word);
                let wanted = match profile.with_selector {
                    true => "a member, a group or a one-shot set",
                    false => "a member",
                };
                return Err(invalid(format!(
                    "{label}: the action is {kind}, this table takes {wanted}"
                )));
            }
        }))
    }

    /// Builds the message for a table's default entry, whose action `call` runs when no entry matches. `kept` has the
    /// metadata that the client attached. The message's `is_const` says whether the program forbids to change that
    /// action.
    pub(crate) fn default_message(
        &self,
        table: &Table,
        call: &ActionCall,
        kept: Option<&Note>,
    ) -> m::TableEntry {
        let note = note(kept);
        m::TableEntry {
            table_id: table.id,
            is_default_action: true,
            is_const: table.has_const_default,
            action: Some(m::TableAction {
                kind: Some(m::ActionKind::Action(self.action_message(call))),
            }),
            metadata: note.metadata,
            controller_metadata: note.controller_metadata,
            ..m::TableEntry::default()
        }
    }
}

/// Returns the action in a message for a table without implementation. Fails if the message contains no action.
pub(crate) fn direct_action<'a>(
    table: &Table,
    action: Option<&'a m::TableAction>,
) -> Result<&'a m::Action, ControlError> {
    match action.and_then(|action| action.kind.as_ref()) {
        Some(m::ActionKind::Action(action)) => Ok(action),
        other => {
            let (label, kind) = (&table.label, other.map_or("unset", m::ActionKind::word));
            Err(invalid(format!(
                "{label}: the action is {kind}, a direct table takes an action"
            )))
        }
    }
}

pub(crate) fn not_zero(id: u32, what: impl FnOnce() -> String) -> Result<u32, ControlError> {
    match id {
        0 => Err(invalid(format!("{} 0: ids are not zero", what()))),
        id => Ok(id),
    }
}

/// Returns the part of a message that the switch stores without interpreting it; `None` if that is empty.
pub(crate) fn note_of(message: &m::TableEntry) -> Option<Note> {
    let mut note = match &message.action {
        Some(m::TableAction {
            kind: Some(m::ActionKind::Set(set)),
        }) => set_note(set),
        _ if message.metadata.is_empty() && message.controller_metadata == 0 => return None,
        _ => m::EntryNote::default(),
    };
    note.metadata = message.metadata.clone();
    note.controller_metadata = message.controller_metadata;
    let bytes = note.encode_to_vec();
    (!bytes.is_empty()).then(|| bytes.into())
}

/// Decodes a note that [`note_of`] made; an empty one if `note` is `None`.
pub(crate) fn note(note: Option<&Note>) -> m::EntryNote {
    let note = note.and_then(|note| m::EntryNote::decode(&note[..]).ok());
    note.unwrap_or_default()
}

/// Returns whether the port that a member watches is given as a number, the deprecated form, rather than as bytes.
pub(crate) fn is_numeric(watch: Option<&m::Watch>) -> bool {
    matches!(watch, Some(m::Watch::Number(_)))
}

/// Returns the parts of a one-shot action set that are stored only so that reads return them as they were written:
/// the selection mode, the size semantics, and the positions of the actions whose watched port is given in the
/// deprecated numeric form. None is checked here.
fn set_note(set: &m::ActionSet) -> m::EntryNote {
    let numeric = set.actions.iter().zip(0..);
    let numeric = numeric.filter(|(action, _)| is_numeric(action.watch.as_ref()));
    m::EntryNote {
        numeric_watches: numeric.map(|(_, position)| position).collect(),
        mode: set.mode,
        semantics: set.semantics,
        ..m::EntryNote::default()
    }
}
