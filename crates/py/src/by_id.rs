//! The control plane's records by P4Runtime id and byte string, and the engine's by position and width: from one to the other.
//!
//! No Python here. Nor any state of a switch: what exists, fits or may be changed is for the engine to say.

pub(crate) mod objects;

use crate::objects::{ColourCounts, MeterRates};
use engine::control::{
    Atomicity, CloneSession, ControlError, ControlErrorCode, Entity, Entry, EntryAction,
    InstalledEntry, MulticastGroup, Operation, Replica, Update, ids,
};
use engine::runtime::CounterData;
use ir::{ActionCall, ActionId, Bits, KeyMatch, MatchKind, Program, TableId};
pub(crate) use objects::{ObjectRecord, TargetRecord};
use std::sync::Arc;

/// A match of one key field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MatchRecord {
    Exact(Vec<u8>),
    Lpm(Vec<u8>, i64),
    Ternary(Vec<u8>, Vec<u8>),
    Range(Vec<u8>, Vec<u8>),
    Optional(Vec<u8>),
}

/// A table entry. A don't-care field has no match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntryRecord {
    pub table_id: u32,
    pub matches: Vec<(u32, MatchRecord)>,
    /// 0: none.
    pub action_id: u32,
    pub args: Vec<(u32, Vec<u8>)>,
    pub priority: i32,
    pub is_default: bool,
    pub idle_timeout_ns: u64,
    /// Instead of an action, in a table with an implementation.
    pub target: Option<TargetRecord>,
    pub meter_config: Option<MeterRates>,
    /// When read from a table with a direct meter.
    pub meter_counters: Option<ColourCounts>,
    /// When read from a table with idle timeouts.
    pub idle_ns: Option<u64>,
    /// When read: packets and bytes.
    pub counter: Option<(u64, u64)>,
    /// When read.
    pub is_const: bool,
}

/// Anything that an update is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EntityRecord {
    TableEntry(EntryRecord),
    Object(ObjectRecord),
    MulticastGroup {
        group_id: u32,
        replicas: Vec<(u32, u32)>,
    },
    CloneSession {
        session_id: u32,
        replicas: Vec<(u32, u32)>,
        packet_length_bytes: u32,
        class_of_service: u32,
    },
    Register {
        register_id: u32,
        index: Option<u64>,
        value: Vec<u8>,
    },
    Counter {
        counter_id: u32,
        index: Option<u64>,
        packets: u64,
        bytes: u64,
    },
    DirectCounter {
        entry: EntryRecord,
        packets: u64,
        bytes: u64,
    },
}

pub(crate) type UpdateRecord = (Operation, EntityRecord);

fn invalid(message: impl Into<String>) -> ControlError {
    ControlError::new(ControlErrorCode::InvalidArgument, message)
}

/// There is nothing of this kind with this id in the program.
pub(crate) fn unknown(what: &str, id: u32) -> ControlError {
    ControlError::new(
        ControlErrorCode::NotFound,
        format!("the program has no {what} with id {id}"),
    )
}

/// The table with this id.
pub(crate) fn table(program: &Program, id: u32) -> Result<TableId, ControlError> {
    ids::table(program, id).ok_or_else(|| unknown("table", id))
}

/// A value of this width; leading zeros do not matter.
fn value(width: u32, bytes: &[u8]) -> Result<Bits, String> {
    if bytes.is_empty() {
        return Err("a value has at least one byte".into());
    }
    let zeros = bytes.iter().take_while(|&&b| b == 0).count();
    let significant = &bytes[zeros..];
    let bits = match significant {
        [] => 0,
        [first, rest @ ..] => rest.len() as u64 * 8 + u64::from(8 - first.leading_zeros()),
    };
    if bits > u64::from(width) {
        return Err(format!(
            "the value has {bits} bits and does not fit into {width}"
        ));
    }
    Ok(Bits::from_be_bytes(width, significant))
}

/// Applies updates in order, with no packet in between; one that does not fit the program is refused.
pub(crate) fn write(
    switch: &mut engine::Switch,
    updates: Vec<UpdateRecord>,
    atomicity: Atomicity,
) -> Vec<Result<(), ControlError>> {
    let program = switch.program().clone();
    let updates = updates.into_iter();
    let resolved = updates.map(|update| resolve(&program, update));
    switch.write_resolved(resolved, atomicity)
}

fn resolve(program: &Program, (operation, entity): UpdateRecord) -> Result<Update, ControlError> {
    let entity = match entity {
        EntityRecord::TableEntry(record) if record.is_default => resolve_default(program, &record)?,
        EntityRecord::TableEntry(record) => resolve_entry(program, &record, operation)?,
        EntityRecord::Object(object) => objects::resolve(program, operation, object)?,
        EntityRecord::MulticastGroup { group_id, replicas } => {
            Entity::MulticastGroup(MulticastGroup {
                group_id,
                replicas: resolve_replicas(&replicas)?,
            })
        }
        EntityRecord::CloneSession {
            session_id,
            replicas,
            packet_length_bytes,
            class_of_service,
        } => Entity::CloneSession(CloneSession {
            session_id,
            replicas: resolve_replicas(&replicas)?,
            packet_length_bytes,
            class_of_service: u8::try_from(class_of_service).map_err(|_| {
                invalid(format!(
                    "class of service {class_of_service} has more than 3 bits"
                ))
            })?,
        }),
        EntityRecord::Register {
            register_id,
            index,
            value: bytes,
        } => {
            let register = ids::register(program, register_id)
                .ok_or_else(|| unknown("register", register_id))?;
            let declared = &program.registers[register.index()];
            let value = value(declared.width, &bytes)
                .map_err(|why| invalid(format!("register {}: {why}", declared.name)))?;
            Entity::Register {
                register,
                index,
                value,
            }
        }
        EntityRecord::Counter {
            counter_id,
            index,
            packets,
            bytes,
        } => Entity::Counter {
            counter: ids::counter(program, counter_id)
                .ok_or_else(|| unknown("counter", counter_id))?,
            index,
            data: CounterData { packets, bytes },
        },
        EntityRecord::DirectCounter {
            entry,
            packets,
            bytes,
        } => resolve_direct_counter(program, &entry, CounterData { packets, bytes })?,
    };
    Ok(Update { operation, entity })
}

fn resolve_replicas(replicas: &[(u32, u32)]) -> Result<Vec<Replica>, ControlError> {
    replicas
        .iter()
        .map(|&(port, instance)| {
            let rid = u16::try_from(instance)
                .map_err(|_| invalid(format!("instance {instance} does not fit into 16 bits")))?;
            Ok(Replica { port, rid })
        })
        .collect()
}

fn resolve_default(program: &Program, record: &EntryRecord) -> Result<Entity, ControlError> {
    let table = table(program, record.table_id)?;
    let name = &program.tables[table.index()].name;
    if record.target.is_some() || record.meter_config.is_some() || record.idle_timeout_ns != 0 {
        return Err(invalid(format!(
            "table {name}: the default entry is a plain action, without meter and idle timeout"
        )));
    }
    if !record.matches.is_empty() || record.priority != 0 {
        return Err(invalid(format!(
            "table {name}: the default entry has no matches and no priority"
        )));
    }
    let action = match record.action_id {
        0 if record.args.is_empty() => None,
        0 => {
            return Err(invalid(format!(
                "table {name}: arguments without an action"
            )));
        }
        _ => Some(resolve_action(program, record)?),
    };
    Ok(Entity::DefaultAction { table, action })
}

fn resolve_entry(
    program: &Program,
    record: &EntryRecord,
    operation: Operation,
) -> Result<Entity, ControlError> {
    let table = table(program, record.table_id)?;
    let matches = resolve_matches(program, table, record)?;
    let name = &program.tables[table.index()].name;
    // A delete names the entry; what it runs does not matter.
    let action = match &record.target {
        _ if operation == Operation::Delete => EntryAction::Call(ActionCall {
            action: ActionId(0),
            args: Vec::new(),
        }),
        Some(_) if record.action_id != 0 => {
            return Err(invalid(format!(
                "table {name}: the entry has an action and a member, group or set of actions"
            )));
        }
        Some(target) => objects::resolve_target(program, target)?,
        None if record.action_id == 0 => {
            return Err(invalid(format!("table {name}: the entry has no action")));
        }
        None => EntryAction::Call(resolve_action(program, record)?),
    };
    Ok(Entity::TableEntry {
        table,
        entry: Entry {
            matches,
            priority: record.priority,
            action,
            idle_timeout_ns: record.idle_timeout_ns,
            meter: record.meter_config.map(objects::meter_config),
        },
    })
}

fn resolve_direct_counter(
    program: &Program,
    record: &EntryRecord,
    data: CounterData,
) -> Result<Entity, ControlError> {
    let table = table(program, record.table_id)?;
    if record.is_default {
        let name = &program.tables[table.index()].name;
        return Err(invalid(format!(
            "table {name}: the default entry has no direct counter"
        )));
    }
    Ok(Entity::DirectCounter {
        table,
        matches: resolve_matches(program, table, record)?,
        priority: record.priority,
        data,
    })
}

fn resolve_action(program: &Program, record: &EntryRecord) -> Result<ActionCall, ControlError> {
    resolve_action_call(program, record.action_id, &record.args)
}

fn resolve_action_call(
    program: &Program,
    action_id: u32,
    given: &[(u32, Vec<u8>)],
) -> Result<ActionCall, ControlError> {
    let action = ids::action(program, action_id).ok_or_else(|| unknown("action", action_id))?;
    let declared = &program.actions[action.index()];
    let mut args: Vec<Option<Bits>> = vec![None; declared.params.len()];
    for (id, bytes) in given {
        let at = ids::action_param(program, action, *id).ok_or_else(|| {
            invalid(format!(
                "action {} has no parameter with id {id}",
                declared.name
            ))
        })?;
        let param = &declared.params[at];
        let width = program.slots[param.slot.index()].width;
        let value = value(width, bytes).map_err(|why| {
            invalid(format!(
                "action {}, parameter {}: {why}",
                declared.name, param.name
            ))
        })?;
        args[at] = Some(value);
    }
    let args = args
        .into_iter()
        .zip(&declared.params)
        .map(|(arg, param)| {
            arg.ok_or_else(|| {
                invalid(format!(
                    "action {}: parameter {} is missing",
                    declared.name, param.name
                ))
            })
        })
        .collect::<Result<_, _>>()?;
    Ok(ActionCall { action, args })
}

fn resolve_matches(
    program: &Program,
    table: TableId,
    record: &EntryRecord,
) -> Result<Vec<KeyMatch>, ControlError> {
    let declared = &program.tables[table.index()];
    for (id, _) in &record.matches {
        let known = ids::match_field(program, table, *id)
            .is_some_and(|at| declared.keys[at].kind != MatchKind::Selector);
        if !known {
            return Err(invalid(format!(
                "table {} has no match field with id {id}",
                declared.name
            )));
        }
    }
    declared
        .keys
        .iter()
        .map(|key| {
            let given = record.matches.iter().find(|(id, _)| *id == key.id);
            resolve_match(key, given.map(|(_, given)| given)).map_err(|why| {
                invalid(format!(
                    "table {}, match field {}: {why}",
                    declared.name, key.name
                ))
            })
        })
        .collect()
}

fn resolve_match(key: &ir::Key, given: Option<&MatchRecord>) -> Result<KeyMatch, String> {
    let width = key.width;
    let zero = || Bits::zero(width);
    let dont_care = "; leave a don't-care field out";
    Ok(match (key.kind, given) {
        (MatchKind::Exact, None) => return Err("an exact match is missing".into()),
        (MatchKind::Lpm, None) => KeyMatch::Lpm {
            value: zero(),
            prefix_len: 0,
        },
        (MatchKind::Ternary, None) => KeyMatch::Ternary {
            value: zero(),
            mask: zero(),
        },
        (MatchKind::Range, None) => KeyMatch::Range {
            low: zero(),
            high: Bits::ones(width),
        },
        (MatchKind::Optional | MatchKind::Selector, None) => KeyMatch::Optional(None),
        (MatchKind::Exact, Some(MatchRecord::Exact(bytes))) => {
            KeyMatch::Exact(value(width, bytes)?)
        }
        (MatchKind::Optional, Some(MatchRecord::Optional(bytes))) => {
            KeyMatch::Optional(Some(value(width, bytes)?))
        }
        (MatchKind::Lpm, Some(MatchRecord::Lpm(bytes, prefix_len))) => {
            let value = value(width, bytes)?;
            match u32::try_from(*prefix_len) {
                Ok(0) => return Err(format!("the prefix length is zero{dont_care}")),
                Ok(prefix_len) if prefix_len <= width => KeyMatch::Lpm { value, prefix_len },
                _ => {
                    return Err(format!(
                        "prefix length {prefix_len} is not between 1 and {width}"
                    ));
                }
            }
        }
        (MatchKind::Ternary, Some(MatchRecord::Ternary(bytes, mask))) => {
            let (value, mask) = (value(width, bytes)?, self::value(width, mask)?);
            if mask.is_zero() {
                return Err(format!("the mask is zero{dont_care}"));
            }
            KeyMatch::Ternary { value, mask }
        }
        (MatchKind::Range, Some(MatchRecord::Range(low, high))) => {
            let (low, high) = (value(width, low)?, value(width, high)?);
            if low.is_zero() && high == Bits::ones(width) {
                return Err(format!("the range holds everything{dont_care}"));
            }
            KeyMatch::Range { low, high }
        }
        (kind, Some(given)) => {
            return Err(format!(
                "the match is {}, the field {}",
                given.kind(),
                kind_name(kind)
            ));
        }
    })
}

impl MatchRecord {
    /// The kind's name, as in the tuples that Python uses.
    fn kind(&self) -> &'static str {
        match self {
            MatchRecord::Exact(_) => "exact",
            MatchRecord::Lpm(..) => "lpm",
            MatchRecord::Ternary(..) => "ternary",
            MatchRecord::Range(..) => "range",
            MatchRecord::Optional(_) => "optional",
        }
    }
}

fn kind_name(kind: MatchKind) -> &'static str {
    match kind {
        MatchKind::Exact => "exact",
        MatchKind::Lpm => "lpm",
        MatchKind::Ternary => "ternary",
        MatchKind::Range => "range",
        MatchKind::Optional => "optional",
        MatchKind::Selector => "a selector's",
    }
}

/// A match as it is read; `None` for a don't-care.
fn match_record(key_match: &KeyMatch) -> Option<MatchRecord> {
    match key_match {
        KeyMatch::Exact(value) => Some(MatchRecord::Exact(value.to_be_bytes())),
        KeyMatch::Lpm { prefix_len: 0, .. } | KeyMatch::Optional(None) => None,
        KeyMatch::Lpm { value, prefix_len } => Some(MatchRecord::Lpm(
            value.to_be_bytes(),
            i64::from(*prefix_len),
        )),
        KeyMatch::Ternary { mask, .. } if mask.is_zero() => None,
        KeyMatch::Ternary { value, mask } => Some(MatchRecord::Ternary(
            value.to_be_bytes(),
            mask.to_be_bytes(),
        )),
        KeyMatch::Range { low, high } if low.is_zero() && *high == Bits::ones(high.width()) => None,
        KeyMatch::Range { low, high } => {
            Some(MatchRecord::Range(low.to_be_bytes(), high.to_be_bytes()))
        }
        KeyMatch::Optional(Some(value)) => Some(MatchRecord::Optional(value.to_be_bytes())),
    }
}

fn arg_records(program: &Program, action: ActionId, args: &[Bits]) -> Vec<(u32, Vec<u8>)> {
    let params = &program.actions[action.index()].params;
    let ids = params.iter().map(|param| param.id);
    ids.zip(args.iter().map(Bits::to_be_bytes)).collect()
}

/// An entry with ids for numbers.
pub(crate) fn entry_record(
    program: &Program,
    table: TableId,
    installed: &InstalledEntry,
) -> EntryRecord {
    let declared = &program.tables[table.index()];
    let entry = &installed.entry;
    let matches = declared
        .keys
        .iter()
        .zip(&entry.matches)
        .filter_map(|(key, key_match)| Some((key.id, match_record(key_match)?)))
        .collect();
    let (action_id, args, target) = match &entry.action {
        EntryAction::Call(call) => (
            program.actions[call.action.index()].id,
            arg_records(program, call.action, &call.args),
            None,
        ),
        EntryAction::Target(target) => {
            (0, Vec::new(), Some(objects::target_record(program, target)))
        }
    };
    EntryRecord {
        table_id: declared.id,
        matches,
        action_id,
        args,
        priority: entry.priority,
        is_default: false,
        idle_timeout_ns: entry.idle_timeout_ns,
        target,
        meter_config: entry.meter.map(objects::rates),
        meter_counters: installed.meter_counts.map(objects::colour_counts),
        idle_ns: installed.idle_ns,
        counter: installed.counter.map(|c| (c.packets, c.bytes)),
        is_const: installed.is_const,
    }
}

/// Begins to read a table.
pub(crate) fn snapshot_table(
    switch: &mut engine::Switch,
    table_id: u32,
) -> Result<Arc<engine::control::TableSnapshot>, ControlError> {
    let table = table(switch.program(), table_id)?;
    switch.snapshot_table(table)
}

/// The entries of a table (0: of all tables, in the program's order), each table's default entry last.
pub(crate) fn table_entries(
    switch: &engine::Switch,
    table_id: u32,
    include_default: bool,
) -> Result<Vec<EntryRecord>, ControlError> {
    let program = switch.program();
    let tables = match table_id {
        0 => (0..program.tables.len() as u32).map(TableId).collect(),
        id => vec![table(program, id)?],
    };
    let mut records = Vec::new();
    for table in tables {
        let entries = switch.read_entries(table)?;
        records.extend(entries.iter().map(|e| entry_record(program, table, e)));
        if include_default {
            records.push(default_record(switch, table)?);
        }
    }
    Ok(records)
}

fn default_record(switch: &engine::Switch, table: TableId) -> Result<EntryRecord, ControlError> {
    let program = switch.program();
    let call = switch.default_action(table)?;
    let declared = &program.tables[table.index()];
    Ok(EntryRecord {
        table_id: declared.id,
        action_id: program.actions[call.action.index()].id,
        args: arg_records(program, call.action, &call.args),
        is_default: true,
        is_const: declared.const_default_action,
        ..EntryRecord::default()
    })
}

/// The entry with the record's key, or the default entry; `None` if there is none.
pub(crate) fn table_entry(
    switch: &engine::Switch,
    key: &EntryRecord,
) -> Result<Option<EntryRecord>, ControlError> {
    let program = switch.program();
    let table = table(program, key.table_id)?;
    if key.is_default {
        return default_record(switch, table).map(Some);
    }
    let matches = resolve_matches(program, table, key)?;
    match switch.read_entry(table, &matches, key.priority) {
        Ok(installed) => Ok(Some(entry_record(program, table, &installed))),
        Err(error) if error.code == ControlErrorCode::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The cells of a register, or a part of them: index and value.
pub(crate) fn registers(
    switch: &engine::Switch,
    register_id: u32,
    part: Option<Part>,
    nonzero: bool,
) -> Result<Vec<(u64, Vec<u8>)>, ControlError> {
    let program = switch.program();
    let register =
        ids::register(program, register_id).ok_or_else(|| unknown("register", register_id))?;
    let size = program.registers[register.index()].size;
    let listed = match nonzero {
        true => switch.nonzero_registers(register)?,
        false => None,
    };
    cells(part, size, listed, |index| {
        Ok((index, switch.read_register(register, index)?.to_be_bytes()))
    })
}

/// The cells of an indexed counter, or a part of them: index and contents.
pub(crate) fn counters(
    switch: &engine::Switch,
    counter_id: u32,
    part: Option<Part>,
    nonzero: bool,
) -> Result<Vec<(u64, CounterData)>, ControlError> {
    let program = switch.program();
    let counter =
        ids::counter(program, counter_id).ok_or_else(|| unknown("counter", counter_id))?;
    let declared = &program.counters[counter.index()];
    let size = declared.size.ok_or_else(|| {
        invalid(format!(
            "{} is a direct counter: its cells are read with the entries of its table",
            declared.name
        ))
    })?;
    let listed = match nonzero {
        true => switch.nonzero_counters(counter)?,
        false => None,
    };
    cells(part, size, listed, |index| {
        Ok((index, switch.read_counter(counter, index)?))
    })
}

/// More cells than this are not listed at once.
const MAX_LISTED: u64 = 1 << 22;

fn check_listable(size: u64) -> Result<(), ControlError> {
    if size <= MAX_LISTED {
        return Ok(());
    }
    Err(ControlError::new(
        ControlErrorCode::ResourceExhausted,
        format!("{size} cells are too many to be read at once; read single ones"),
    ))
}

/// Some cells of an array: the first one's index, and how many.
pub(crate) type Part = (u64, u64);

/// A part as far as there are cells, those listed, or all. An error if the part begins behind the last one.
fn cells<T>(
    part: Option<Part>,
    size: u64,
    listed: Option<Vec<u64>>,
    read: impl Fn(u64) -> Result<T, ControlError>,
) -> Result<Vec<T>, ControlError> {
    match (part, listed) {
        (Some((first, count)), _) => {
            if first >= size {
                // The error says what there is.
                return Ok(vec![read(first)?]);
            }
            let end = first.saturating_add(count).min(size);
            check_listable(end - first)?;
            (first..end).map(read).collect()
        }
        (None, Some(listed)) => listed.into_iter().map(read).collect(),
        (None, None) => check_listable(size).and_then(|()| (0..size).map(read).collect()),
    }
}

/// Messages of digests without a configuration that wait, so many at most: P4Runtime id, and the members side by side, the first in the highest bits.
pub(crate) fn take_digests(
    switch: &mut engine::Switch,
    now_ps: u64,
    most: usize,
) -> Vec<(u32, Vec<u8>)> {
    let program = switch.program().clone();
    let lists = switch.take_unconfigured_digests(now_ps, most);
    let lists = objects::digest_lists(&program, lists).into_iter();
    let messages = lists.flat_map(|(id, _, messages)| messages.into_iter().map(move |m| (id, m)));
    messages.collect()
}
