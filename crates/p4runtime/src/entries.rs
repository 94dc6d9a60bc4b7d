//! Table entries (specification, "TableEntry"), members of value sets, and actions: from messages to the engine's and back.
//!
//! A message becomes what the engine takes, or the error that the specification names. Nothing here knows which entries exist.

use crate::contradiction::kind_name;
use crate::errors::{denied, invalid};
use crate::info::{Action, Field, Names, Table, unknown};
use crate::messages as m;
use crate::pipeline::Pipeline;
use crate::values;
use bytes::Bytes;
use engine::control::{ControlError, EntryAction, Note, Target};
use engine::refuse;
use ir::{ActionCall, ActionId, ActionScope, Bits, KeyMatch, MatchKind, TableId};
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
                matches.push(KeyMatch::Optional(None));
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
            "{label}: an entry needs a priority above zero (a key field is ternary, range or optional)"
        );
        refuse!(
            !self.needs_priority && message.priority != 0 => InvalidArgument,
            "{label}: no priority, because all key fields are exact or lpm"
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

/// Converts the match of one field; if `given` is `None`, the match accepts any value. Fails with INVALID_ARGUMENT if
/// `given` does not fit the field.
pub(crate) fn field_match(
    label: &str,
    field: &Field,
    given: Option<&m::FieldMatch>,
) -> Result<KeyMatch, ControlError> {
    let own = field.own_width;
    let Some(given) = given else {
        let zero = || Bits::zero(own.max(1));
        return match field.kind {
            MatchKind::Lpm => Ok(KeyMatch::Lpm {
                value: zero(),
                prefix_len: 0,
            }),
            MatchKind::Ternary => Ok(KeyMatch::Ternary {
                value: zero(),
                mask: zero(),
            }),
            MatchKind::Range => Ok(KeyMatch::Range {
                low: zero(),
                high: Bits::ones(own.max(1)),
            }),
            MatchKind::Optional | MatchKind::Selector => Ok(KeyMatch::Optional(None)),
            MatchKind::Exact => Err(invalid(format!(
                "{label}: exact match field '{}' is missing",
                field.name
            ))),
        };
    };
    let what = || format!("{label}, match field '{}'", field.name);
    let refused = |why: &str| invalid(format!("{}: {why}", what()));
    let value = |bytes: &Bytes| field.value(bytes, &what);
    let bits = |bytes: &Bytes, part: &str| {
        let number = values::number(bytes, field.width, own);
        number.map_err(|why| refused(&format!("{part}{why}")))
    };
    let kind = given.kind.as_ref();
    if field.width == 0 && field.translation.is_none() && kind.is_some_and(|k| k.is(field.kind)) {
        return Err(refused(
            "its type has no values in P4Runtime, so entries cannot name it",
        ));
    }
    match (field.kind, kind) {
        (of, Some(given)) if field.is_whole && given.is(of) => whole_match(field, given, &what),
        (MatchKind::Exact, Some(m::MatchKind::Exact(one))) => {
            Ok(KeyMatch::Exact(value(&one.value)?))
        }
        (MatchKind::Optional, Some(m::MatchKind::Optional(one))) => {
            Ok(KeyMatch::Optional(Some(value(&one.value)?)))
        }
        (MatchKind::Lpm, Some(m::MatchKind::Lpm(lpm))) => {
            let (value, length) = (bits(&lpm.value, "")?, lpm.prefix_len);
            let width = field.width;
            let prefix_len = match u32::try_from(length) {
                Ok(length) if (1..=width).contains(&length) => length,
                _ => {
                    let hint = match length {
                        0 => "; leave a don't-care field out",
                        _ => "",
                    };
                    return Err(refused(&format!(
                        "prefix length {length} is not between 1 and {width}{hint}"
                    )));
                }
            };
            if value.and(&Bits::prefix_mask(own, prefix_len)) != value {
                return Err(refused(&format!(
                    "the value has bits set behind its prefix of {length} bits"
                )));
            }
            Ok(KeyMatch::Lpm { value, prefix_len })
        }
        (MatchKind::Ternary, Some(m::MatchKind::Ternary(two))) => {
            let (value, mask) = (bits(&two.first, "")?, bits(&two.second, "mask: ")?);
            if mask.is_zero() {
                return Err(refused("the mask is zero; leave a don't-care field out"));
            }
            if value.and(&mask) != value {
                return Err(refused("the value has bits set where the mask has none"));
            }
            Ok(KeyMatch::Ternary { value, mask })
        }
        (MatchKind::Range, Some(m::MatchKind::Range(two))) => {
            let (low, high) = (bits(&two.first, "low: ")?, bits(&two.second, "high: ")?);
            if low.ucmp(&high).is_gt() {
                return Err(refused("the low end is above the high end"));
            }
            if low.is_zero() && high == Bits::ones(own) {
                return Err(refused(
                    "the range holds everything; leave a don't-care field out",
                ));
            }
            Ok(KeyMatch::Range { low, high })
        }
        (wanted, found) => {
            let found = found.map_or("unset", m::MatchKind::word);
            let wanted = kind_name(wanted);
            Err(refused(&format!(
                "the match is {found}, the field is {wanted}"
            )))
        }
    }
}

/// Converts the match of a translated field. Fails unless the match accepts exactly one value (specification,
/// "Translation of Match Fields"); `what` names the field in the message.
fn whole_match(
    field: &Field,
    given: &m::MatchKind,
    what: &dyn Fn() -> String,
) -> Result<KeyMatch, ControlError> {
    let own = field.own_width.max(1);
    let (bytes, is_whole, wanted) = match given {
        m::MatchKind::Exact(one) => return Ok(KeyMatch::Exact(field.value(&one.value, what)?)),
        m::MatchKind::Optional(one) => {
            let value = field.value(&one.value, what)?;
            return Ok(KeyMatch::Optional(Some(value)));
        }
        m::MatchKind::Ternary(two) => {
            let width = field.mask_width(&two.first);
            let mask = values::number(&two.second, width, width);
            let whole = mask.is_ok_and(|mask| mask == Bits::ones(width));
            (&two.first, whole, format!("its mask is {width} ones"))
        }
        m::MatchKind::Lpm(lpm) => {
            let width = field.mask_width(&lpm.value);
            let whole = u32::try_from(lpm.prefix_len) == Ok(width);
            (&lpm.value, whole, format!("its prefix has {width} bits"))
        }
        m::MatchKind::Range(two) => {
            let (low, high) = (&*two.first, &*two.second);
            let whole = match field.width {
                0 => low == high,
                _ => values::canonical(low) == values::canonical(high),
            };
            (&two.first, whole, "both its ends are one value".to_owned())
        }
        m::MatchKind::Other(_) => return Err(invalid(format!("{}: the match is other", what()))),
    };
    refuse!(
        !is_whole => InvalidArgument,
        "{}: the field is translated, so {wanted}, or it is left out", what()
    );
    let value = field.value(bytes, what)?;
    Ok(match given {
        m::MatchKind::Ternary(_) => KeyMatch::Ternary {
            value,
            mask: Bits::ones(own),
        },
        m::MatchKind::Lpm(_) => KeyMatch::Lpm {
            value,
            prefix_len: own,
        },
        _ => KeyMatch::Range {
            low: value.clone(),
            high: value,
        },
    })
}

impl m::MatchKind {
    fn is(&self, kind: MatchKind) -> bool {
        self.word() == kind_name(kind)
    }
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
