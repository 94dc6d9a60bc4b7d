//! Writes: from updates of a request to the engine's, and their application with or without rollback.

use crate::entries::{self, Key, direct_action, note_of};
use crate::errors::{invalid, out_of_range, unimplemented};
use crate::info::{MeterType, Table};
use crate::messages as m;
use crate::pipeline::{ObjectNote, Pipeline, replaced};
use bytes::Bytes;
use engine::Switch;
use engine::control::{
    Atomicity, ControlError, ControlErrorCode, Entity, Entry, EntryAction, Operation, Update,
};
use engine::digest::DigestConfig;
use engine::meter::MeterConfig;
use engine::refuse;
use engine::runtime::CounterData;
use ir::ValueSetId;
use ir::{ActionCall, ActionId, Bits, CounterId, DigestId, KeyMatch, MeterId, RegisterId};
use prost::{DecodeError, Message};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A `p4.v1.WriteRequest` whose updates have not been looked at yet.
#[derive(Clone, Debug)]
pub struct WriteRequest {
    /// `device_id`.
    pub device_id: u64,
    /// `role_id`, which is deprecated.
    pub role_id: u64,
    /// `role`.
    pub role: String,
    /// `election_id`, if it is set.
    pub election_id: Option<u128>,
    /// The number of the atomicity.
    pub atomicity: i32,
    /// Each serialized.
    pub updates: Vec<Bytes>,
}

impl WriteRequest {
    /// Decodes all but the updates.
    pub fn decode(data: Bytes) -> Result<WriteRequest, DecodeError> {
        let raw = m::RawWriteRequest::decode(data)?;
        let election_id = raw.election_id.as_ref();
        Ok(WriteRequest {
            device_id: raw.device_id,
            role_id: raw.role_id,
            election_id: election_id.map(|id| u128::from(id.high) << 64 | u128::from(id.low)),
            role: raw.role,
            atomicity: raw.atomicity,
            updates: raw.updates,
        })
    }
}

/// What one P4Runtime update comes to: the engine's, which succeed together, then a note.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub updates: SmallVec<[Update; 1]>,
    pub note: Option<Box<(Operation, ObjectNote)>>,
}

impl Plan {
    pub fn of(updates: SmallVec<[Update; 1]>) -> Plan {
        Plan {
            updates,
            note: None,
        }
    }
}

fn one(operation: Operation, entity: Entity) -> Plan {
    Plan::of(smallvec![Update { operation, entity }])
}

fn modify(entity: Entity) -> Update {
    Update {
        operation: Operation::Modify,
        entity,
    }
}

/// Position and reason of an update that was refused.
pub type Failure = (usize, ControlError);

/// The updates of a request, resolved, and how far they have been applied.
#[derive(Debug)]
pub struct Batch {
    pipeline: Arc<Pipeline>,
    plans: Vec<Option<Result<Plan, ControlError>>>,
    at: usize,
    failures: Vec<Failure>,
}

impl Batch {
    /// Resolves a request. An error if one of the updates cannot be decoded.
    pub fn new(pipeline: Arc<Pipeline>, request: &WriteRequest) -> Result<Batch, DecodeError> {
        let mut plans = Vec::with_capacity(request.updates.len());
        for data in &request.updates {
            let update = m::Update::decode(data.clone())?;
            plans.push(Some(pipeline.plan(&update, &request.role)));
        }
        Ok(Batch::of(pipeline, plans))
    }

    pub(crate) fn of(
        pipeline: Arc<Pipeline>,
        plans: Vec<Option<Result<Plan, ControlError>>>,
    ) -> Batch {
        Batch {
            pipeline,
            plans,
            at: 0,
            failures: Vec::new(),
        }
    }

    /// How many updates there are.
    pub fn len(&self) -> usize {
        self.plans.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.plans.is_empty()
    }

    /// Takes the failures of what has been applied so far.
    pub fn take_failures(&mut self) -> Vec<Failure> {
        std::mem::take(&mut self.failures)
    }

    /// How many have been applied or have failed.
    pub fn applied(&self) -> usize {
        self.at
    }

    /// Applies the next update by itself; whether there are more.
    pub fn apply_next(&mut self, switch: &mut Switch) -> bool {
        let at = self.at;
        let Some(plan) = self.plans.get_mut(at).and_then(Option::take) else {
            return false;
        };
        self.at += 1;
        let result = plan.and_then(|plan| self.pipeline.apply(switch, plan));
        self.failures.extend(result.err().map(|error| (at, error)));
        self.at < self.plans.len()
    }

    /// Applies all or nothing. If one fails, the others are ABORTED.
    pub fn apply_atomic(&mut self, switch: &mut Switch) {
        self.at = self.plans.len();
        self.failures = self.outcome(switch, Atomicity::RollbackOnError);
        if self.failures.is_empty() {
            let plans = self.plans.iter_mut().filter_map(Option::take);
            for (operation, note) in plans.filter_map(|plan| plan.ok()?.note).map(|note| *note) {
                self.pipeline.keep(operation, note);
            }
        }
    }

    /// The failures that there would be, without those that another one causes.
    pub fn would_fail(&self, switch: &mut Switch) -> Vec<Failure> {
        self.outcome(switch, Atomicity::Undo)
    }

    fn outcome(&self, switch: &mut Switch, atomicity: Atomicity) -> Vec<Failure> {
        if !Arc::ptr_eq(switch.program(), &self.pipeline.program) {
            return (0..self.len()).map(|at| (at, replaced("Write"))).collect();
        }
        let plans = || self.plans.iter().flatten().enumerate();
        let mut failures: Vec<Option<ControlError>> = vec![None; self.len()];
        for (at, plan) in plans() {
            failures[at] = plan.as_ref().err().cloned();
        }
        let refused = failures.iter().any(Option::is_some);
        let updates = plans().filter_map(|(at, plan)| Some((at, plan.as_ref().ok()?)));
        let updates = updates.flat_map(|(at, plan)| plan.updates.iter().map(move |u| (at, u)));
        let updates: Vec<(usize, &Update)> = updates.collect();
        // Each update that fails has its own error, also if another one has failed before it comes to the switch.
        let mode = if refused { Atomicity::Undo } else { atomicity };
        let results = switch.write_resolved(updates.iter().map(|(_, u)| Ok((*u).clone())), mode);
        for ((at, _), result) in updates.iter().zip(results) {
            if let Err(error) = result
                && error.code != ControlErrorCode::Aborted
            {
                failures[*at].get_or_insert(error);
            }
        }
        if let Some(first) = failures.iter().position(Option::is_some)
            && atomicity == Atomicity::RollbackOnError
        {
            let message = format!("update {first} of the batch failed; nothing was changed");
            let aborted = ControlError::new(ControlErrorCode::Aborted, message);
            for failure in &mut failures {
                failure.get_or_insert_with(|| aborted.clone());
            }
        }
        let failures = failures.into_iter().enumerate();
        failures
            .filter_map(|(at, failure)| Some((at, failure?)))
            .collect()
    }
}

impl Pipeline {
    fn apply(&self, switch: &mut Switch, plan: Plan) -> Result<(), ControlError> {
        if !Arc::ptr_eq(switch.program(), &self.program) {
            return Err(replaced("Write"));
        }
        let Plan { mut updates, note } = plan;
        if updates.len() == 1 {
            updates
                .pop()
                .map_or(Ok(()), |update| switch.write(update))?;
        } else {
            let results = switch.write_batch(updates.into_vec(), true).into_iter();
            let mut errors: Vec<ControlError> = results.filter_map(Result::err).collect();
            let own = errors
                .iter()
                .position(|e| e.code != ControlErrorCode::Aborted);
            if !errors.is_empty() {
                return Err(errors.swap_remove(own.unwrap_or(0)));
            }
        }
        if let Some(note) = note {
            let (operation, note) = *note;
            self.keep(operation, note);
        }
        Ok(())
    }

    /// What an update comes to, or what it is refused with.
    pub(crate) fn plan(&self, update: &m::Update, role: &str) -> Result<Plan, ControlError> {
        let operation = match update.kind {
            1 => Operation::Insert,
            2 => Operation::Modify,
            3 => Operation::Delete,
            0 => return Err(invalid("the update has no type")),
            other => return Err(invalid(format!("there is no update type {other}"))),
        };
        let entity = update.entity.as_ref().and_then(|e| e.entity.as_ref());
        let Some(entity) = entity else {
            return Err(invalid(
                "the update has no entity, or one of a later version of P4Runtime",
            ));
        };
        self.info.check_role(role, object_id(entity))?;
        match entity {
            m::EntityKind::Table(message) => self.plan_entry(operation, message),
            m::EntityKind::Member(message) => Ok(one(operation, self.member(operation, message)?)),
            m::EntityKind::Group(message) => Ok(noted(operation, self.group(operation, message)?)),
            m::EntityKind::Replication(message) => {
                Ok(noted(operation, self.replication(operation, message)?))
            }
            m::EntityKind::Counter(message) => self.plan_counter(operation, message),
            m::EntityKind::DirectCounter(message) => self.plan_direct_counter(operation, message),
            m::EntityKind::Meter(message) => self.plan_meter(operation, message),
            m::EntityKind::DirectMeter(message) => self.plan_direct_meter(operation, message),
            m::EntityKind::ValueSet(message) => self.plan_value_set(operation, message),
            m::EntityKind::Register(message) => self.plan_register(operation, message),
            m::EntityKind::Digest(message) => self.plan_digest(operation, message),
            m::EntityKind::Extern(_) => Err(no_externs()),
        }
    }

    fn plan_entry(
        &self,
        operation: Operation,
        message: &m::TableEntry,
    ) -> Result<Plan, ControlError> {
        let table = self.info.tables.by_id(message.table_id)?;
        let label = &table.label;
        refuse!(message.is_const => InvalidArgument, "{label}: is_const is for the server to set");
        if message.is_default_action {
            return self.plan_default(operation, table, message);
        }
        let changes = operation != Operation::Modify || message.action.is_some();
        refuse!(table.is_const && changes => PermissionDenied, "{label}: its entries are constant");
        refuse!(
            table.fields.list.is_empty() => InvalidArgument,
            "{label} has no key, so no entries but the default one"
        );
        let (id, matches, priority) = table.key(message)?;
        let entry = |matches, action| Entity::TableEntry {
            table: id,
            entry: Entry {
                matches,
                priority,
                action,
                idle_timeout_ns: 0,
                meter: None,
                note: None,
            },
        };
        if operation == Operation::Delete {
            // What it runs does not matter.
            let call = ActionCall {
                action: ActionId(0),
                args: Vec::new(),
            };
            return Ok(one(operation, entry(matches, EntryAction::Call(call))));
        }
        table.check_resources(message, true)?;
        let action = match message.action.as_ref() {
            None if operation == Operation::Modify => EntryAction::Keep,
            action => self.entry_action(table, action)?,
        };
        let meter = self.entry_meter(table, message)?;
        let note = note_of(message);
        let resets = operation == Operation::Modify && message.meter_counter_data.is_some();
        let counter = message.counter_data.as_ref().map(counts).transpose()?;
        // Most entries.
        if !table.is_const && !resets && counter.is_none() {
            let mut entity = entry(matches, action);
            if let Entity::TableEntry { entry, .. } = &mut entity {
                entry.idle_timeout_ns = message.idle_timeout_ns as u64;
                entry.meter = meter;
                entry.note = note;
            }
            return Ok(one(operation, entity));
        }
        let mut updates = SmallVec::new();
        let key = (id, matches, priority);
        if resets {
            updates.push(modify(direct_meter(key.clone(), None)));
        }
        if table.is_const {
            if table.direct_meter.is_some() {
                updates.push(modify(direct_meter(key.clone(), meter)));
            }
            let (table, matches, priority) = key.clone();
            updates.push(modify(Entity::Note {
                table,
                matches,
                priority,
                note,
            }));
        } else {
            let entry = Entry {
                matches: key.1.clone(),
                priority,
                action,
                idle_timeout_ns: message.idle_timeout_ns as u64,
                meter,
                note,
            };
            let entity = Entity::TableEntry { table: id, entry };
            updates.push(Update { operation, entity });
        }
        if let Some(data) = counter {
            updates.push(modify(direct_counter(key, Some(data))));
        }
        Ok(Plan::of(updates))
    }

    fn entry_meter(
        &self,
        table: &Table,
        message: &m::TableEntry,
    ) -> Result<Option<MeterConfig>, ControlError> {
        let Some((_, ty)) = table.direct_meter else {
            return Ok(None);
        };
        let what = || format!("the direct meter of {}", table.label);
        check_reset(message.meter_counter_data.as_deref(), &what)?;
        let config = message.meter_config.as_deref();
        config
            .map(|config| meter_config(config, ty, &what))
            .transpose()
    }

    fn plan_default(
        &self,
        operation: Operation,
        table: &Table,
        message: &m::TableEntry,
    ) -> Result<Plan, ControlError> {
        let label = &table.label;
        refuse!(
            operation != Operation::Modify => InvalidArgument,
            "{label} always has its default entry; it can only be modified"
        );
        check_default_key(label, message)?;
        refuse!(
            table.has_const_default => PermissionDenied,
            "{label}: its default action is constant"
        );
        table.check_resources(message, true)?;
        refuse!(
            message.counter_data.is_some() => InvalidArgument,
            "{label}: the default entry has no direct counter"
        );
        refuse!(
            message.meter_config.is_some() || message.meter_counter_data.is_some() => InvalidArgument,
            "{label}: the default entry has no direct meter"
        );
        let action = match message.action.as_ref() {
            None => None,
            action => Some(self.call(table, direct_action(table, action)?, true)?),
        };
        let note = action.as_ref().and_then(|_| note_of(message));
        let entity = Entity::DefaultAction {
            table: table.table_id(),
            action,
            note,
        };
        Ok(one(operation, entity))
    }

    /// The table of a direct resource, and the key of the entry, None for the default one.
    fn direct_key(
        &self,
        operation: Operation,
        message: Option<&m::TableEntry>,
        what: &str,
    ) -> Result<(&Table, Option<Key>), ControlError> {
        let Some(message) = message else {
            return Err(invalid(format!(
                "the direct {what} entry has no table entry"
            )));
        };
        let table = self.info.tables.by_id(message.table_id)?;
        let label = &table.label;
        modify_only(operation, || format!("the direct {what} of {label}"))?;
        let has = match what {
            "counter" => table.direct_counter != 0,
            _ => table.direct_meter.is_some(),
        };
        refuse!(!has => InvalidArgument, "{label} has no direct {what}");
        if message.is_default_action {
            check_default_key(label, message)?;
            return Ok((table, None));
        }
        Ok((table, Some(table.key(message)?)))
    }

    fn plan_direct_counter(
        &self,
        operation: Operation,
        message: &m::DirectCounterEntry,
    ) -> Result<Plan, ControlError> {
        let (table, key) = self.direct_key(operation, message.table_entry.as_ref(), "counter")?;
        let data = message.data.as_ref().map(counts).transpose()?;
        let Some(key) = key else {
            let label = &table.label;
            return Err(invalid(format!(
                "{label}: the default entry has no direct counter"
            )));
        };
        Ok(one(operation, direct_counter(key, data)))
    }

    fn plan_direct_meter(
        &self,
        operation: Operation,
        message: &m::DirectMeterEntry,
    ) -> Result<Plan, ControlError> {
        let (table, key) = self.direct_key(operation, message.table_entry.as_ref(), "meter")?;
        let what = || format!("the direct meter of {}", table.label);
        check_reset(message.counter_data.as_ref(), &what)?;
        let ty = table.direct_meter.map_or(MeterType::TwoRates, |(_, ty)| ty);
        let config = message.config.as_ref();
        let config = config.map(|config| meter_config(config, ty, &what));
        let config = config.transpose()?;
        let Some(key) = key else {
            let label = &table.label;
            return Err(invalid(format!(
                "{label}: the default entry has no direct meter"
            )));
        };
        let mut updates = SmallVec::new();
        // The counters of a meter without configuration are gone.
        if message.counter_data.is_some() {
            updates.push(modify(direct_meter(key.clone(), None)));
        }
        updates.push(modify(direct_meter(key, config)));
        Ok(Plan::of(updates))
    }

    fn plan_counter(
        &self,
        operation: Operation,
        message: &m::CounterEntry,
    ) -> Result<Plan, ControlError> {
        let counter = self.info.counters.by_id(message.id)?;
        let what = || format!("counter '{}'", counter.name);
        modify_only(operation, what)?;
        let index = cell_of(message.index.as_ref(), counter.size, what)?;
        let Some(data) = &message.data else {
            return Ok(Plan::of(SmallVec::new()));
        };
        let entity = Entity::Counter {
            counter: CounterId(counter.number as u32),
            index,
            data: counts(data)?,
        };
        Ok(one(operation, entity))
    }

    fn plan_meter(
        &self,
        operation: Operation,
        message: &m::MeterEntry,
    ) -> Result<Plan, ControlError> {
        let array = self.info.meters.by_id(message.id)?;
        let what = || format!("meter '{}'", array.name);
        modify_only(operation, what)?;
        let index = cell_of(message.index.as_ref(), array.size, what)?;
        check_reset(message.counter_data.as_ref(), &what)?;
        let config = message.config.as_ref();
        let config = config.map(|config| meter_config(config, array.meter, &what));
        let config = config.transpose()?;
        let meter = MeterId(array.number as u32);
        let cell = |config| {
            modify(Entity::Meter {
                meter,
                index,
                config,
            })
        };
        let mut updates = SmallVec::new();
        if message.counter_data.is_some() {
            updates.push(cell(None));
        }
        updates.push(cell(config));
        Ok(Plan::of(updates))
    }

    fn plan_register(
        &self,
        operation: Operation,
        message: &m::RegisterEntry,
    ) -> Result<Plan, ControlError> {
        let register = self.info.registers.by_id(message.id)?;
        let what = || format!("register '{}'", register.name);
        modify_only(operation, what)?;
        let index = cell_of(message.index.as_ref(), register.size, what)?;
        let ty = register.ty.as_ref().map_err(Clone::clone)?;
        let value = ty.value_of(message.data.as_ref())?;
        let value = value.unwrap_or_else(|| Bits::zero(1));
        let width = self.program.registers[register.number].width;
        let bits = value.bit_length();
        refuse!(
            bits > width => InvalidArgument,
            "{}: the value has {bits} bits and does not fit into {width}", what()
        );
        let entity = Entity::Register {
            register: RegisterId(register.number as u32),
            index,
            value: value.resize(width),
        };
        Ok(one(operation, entity))
    }

    fn plan_value_set(
        &self,
        operation: Operation,
        message: &m::ValueSetEntry,
    ) -> Result<Plan, ControlError> {
        let set = self.info.value_sets.by_id(message.id)?;
        let label = &set.label;
        modify_only(operation, || label.clone())?;
        let member = |member: &m::ValueSetMember| {
            let given = &member.matches;
            let mut used = 0;
            let widths = self.program.value_sets[set.number].widths.iter().zip(1..);
            let matches = widths.map(|(&width, id)| {
                let field = set.fields.by_id(id)?;
                let found = given.iter().find(|found| found.field_id == id);
                used += usize::from(found.is_some());
                match entries::field_match(label, field, found)? {
                    // One form of don't-care, whatever the field's kind.
                    _ if found.is_none() => Ok(KeyMatch::Ternary {
                        value: Bits::zero(width),
                        mask: Bits::zero(width),
                    }),
                    found => Ok(found),
                }
            });
            let matches = matches.collect::<Result<Vec<KeyMatch>, ControlError>>()?;
            entries::check_given(label, &set.fields, given, used)?;
            Ok(matches)
        };
        let members = message.members.iter().map(member);
        let members: Vec<Vec<KeyMatch>> = members.collect::<Result<_, ControlError>>()?;
        let (count, size) = (members.len(), set.size);
        refuse!(
            size != 0 && count as u64 > size => ResourceExhausted,
            "{label}: {count} members, it holds {size}"
        );
        let distinct: BTreeSet<Vec<u8>> = members.iter().map(|m| identity(m)).collect();
        refuse!(distinct.len() != count => AlreadyExists, "{label}: a member is given twice");
        let value_set = ValueSetId(set.number as u32);
        Ok(one(operation, Entity::ValueSet { value_set, members }))
    }

    fn plan_digest(
        &self,
        operation: Operation,
        message: &m::DigestEntry,
    ) -> Result<Plan, ControlError> {
        let digest = self.info.digests.by_id(message.id)?;
        digest.ty.as_ref().map_err(Clone::clone)?;
        let mut config = DigestConfig::default();
        if operation != Operation::Delete
            && let Some(given) = &message.config
        {
            let negative = |_| {
                let name = &digest.name;
                invalid(format!("digest '{name}': times and sizes are not negative"))
            };
            config.max_timeout_ns = u64::try_from(given.max_timeout_ns).map_err(negative)?;
            config.max_list_size = u32::try_from(given.max_list_size).map_err(negative)?;
            config.ack_timeout_ns = u64::try_from(given.ack_timeout_ns).map_err(negative)?;
        }
        let digest = DigestId(digest.number as u32);
        Ok(one(operation, Entity::Digest { digest, config }))
    }
}

fn noted(operation: Operation, (entity, note): (Entity, ObjectNote)) -> Plan {
    Plan {
        note: Some(Box::new((operation, note))),
        ..one(operation, entity)
    }
}

fn direct_meter((table, matches, priority): Key, config: Option<MeterConfig>) -> Entity {
    Entity::DirectMeter {
        table,
        matches,
        priority,
        config,
    }
}

fn direct_counter((table, matches, priority): Key, data: Option<CounterData>) -> Entity {
    Entity::DirectCounter {
        table,
        matches,
        priority,
        data,
    }
}

/// Equal for equal matches only.
fn identity(matches: &[KeyMatch]) -> Vec<u8> {
    format!("{matches:?}").into_bytes()
}

pub(crate) fn no_externs() -> ControlError {
    unimplemented("extern_entry: v1model has no externs beyond those with entities of their own")
}

/// The P4Info id of what an entity belongs to; 0 where there is none.
pub(crate) fn object_id(entity: &m::EntityKind) -> u32 {
    let of_entry = |entry: &Option<m::TableEntry>| entry.as_ref().map_or(0, |e| e.table_id);
    match entity {
        m::EntityKind::Table(message) => message.table_id,
        m::EntityKind::Member(message) => message.action_profile_id,
        m::EntityKind::Group(message) => message.action_profile_id,
        m::EntityKind::Meter(message) => message.id,
        m::EntityKind::DirectMeter(message) => of_entry(&message.table_entry),
        m::EntityKind::Counter(message) => message.id,
        m::EntityKind::DirectCounter(message) => of_entry(&message.table_entry),
        m::EntityKind::ValueSet(message) => message.id,
        m::EntityKind::Register(message) => message.id,
        m::EntityKind::Digest(message) => message.id,
        m::EntityKind::Replication(_) | m::EntityKind::Extern(_) => 0,
    }
}

/// The cell that an optional index means; None for all.
pub(crate) fn cell_of(
    index: Option<&m::Index>,
    size: u64,
    what: impl Fn() -> String,
) -> Result<Option<u64>, ControlError> {
    let Some(m::Index { index }) = index else {
        return Ok(None);
    };
    match u64::try_from(*index) {
        Err(_) => Err(invalid(format!("{}: index {index} is negative", what()))),
        Ok(index) if index >= size => Err(out_of_range(format!(
            "{}: index {index}, but there are {size} cells",
            what()
        ))),
        Ok(index) => Ok(Some(index)),
    }
}

fn modify_only(operation: Operation, what: impl Fn() -> String) -> Result<(), ControlError> {
    match operation {
        Operation::Modify => Ok(()),
        _ => Err(invalid(format!(
            "{} can be modified, not inserted or deleted",
            what()
        ))),
    }
}

fn check_default_key(label: &str, message: &m::TableEntry) -> Result<(), ControlError> {
    refuse!(
        !message.matches.is_empty() => InvalidArgument,
        "{label}: the default entry has no match fields"
    );
    match message.priority {
        0 => Ok(()),
        _ => Err(invalid(format!(
            "{label}: the default entry has no priority"
        ))),
    }
}

fn counts(data: &m::CounterData) -> Result<CounterData, ControlError> {
    let count = |count: i64| u64::try_from(count).map_err(|_| invalid("a counter is not negative"));
    Ok(CounterData {
        packets: count(data.packet_count)?,
        bytes: count(data.byte_count)?,
    })
}

/// `MeterCounterData` in a write sets the counters to zero, so that is all it may say.
fn check_reset(
    data: Option<&m::MeterCounterData>,
    what: &dyn Fn() -> String,
) -> Result<(), ControlError> {
    let Some(data) = data else {
        return Ok(());
    };
    let mut colours = [&data.green, &data.yellow, &data.red].into_iter().flatten();
    refuse!(
        colours.any(|count| count.packet_count != 0 || count.byte_count != 0) => InvalidArgument,
        "{}: the counters of a meter can only be set to zero", what()
    );
    Ok(())
}

/// The engine marks with two rates and three colours (RFC 2698). A single rate with two colours is the special case of equal rates and
/// bursts; the single rate with three colours (RFC 2697) is that, too, as long as there is no excess burst.
fn meter_config(
    message: &m::MeterConfig,
    ty: MeterType,
    what: &dyn Fn() -> String,
) -> Result<MeterConfig, ControlError> {
    let rate = |rate: i64| {
        u64::try_from(rate)
            .map_err(|_| invalid(format!("{}: rates and bursts are not negative", what())))
    };
    let config = MeterConfig {
        cir: rate(message.cir)?,
        cburst: rate(message.cburst)?,
        pir: rate(message.pir)?,
        pburst: rate(message.pburst)?,
    };
    let excess = rate(message.eburst)?;
    if ty != MeterType::TwoRates {
        refuse!(
            (config.cir, config.cburst) != (config.pir, config.pburst) => InvalidArgument,
            "{}: it has a single rate, so pir and pburst are cir and cburst", what()
        );
        refuse!(
            excess != 0 && ty == MeterType::SingleRateThreeColours => Unimplemented,
            "{}: excess bursts (RFC 2697) are not supported", what()
        );
    }
    refuse!(excess != 0 => InvalidArgument, "{}: it has no excess burst (eburst)", what());
    Ok(config)
}
