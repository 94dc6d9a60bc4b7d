//! From one pipeline to another: the updates that bring a switch whose program has just been loaded to the state of another switch.

use crate::info::{Field, Names, Table};
use crate::messages as m;
use crate::pipeline::Pipeline;
use crate::values::Type;
use crate::write::{Batch, Plan};
use engine::Switch;
use engine::control::{ControlError, Entity, Entry, InstalledEntry, Operation, Update};
use engine::refuse;
use ir::{CounterId, DigestId, MeterId, RegisterId, TableId, ValueSetId};
use smallvec::smallvec;
use std::collections::BTreeSet;
use std::sync::Arc;

type Plans = Vec<Option<Result<Plan, ControlError>>>;

/// Updates by P4Runtime ids, planned for the new pipeline.
struct Transfer<'a> {
    old: &'a Pipeline,
    new: &'a Pipeline,
    plans: Plans,
}

impl Batch {
    /// What a switch whose program has just been loaded, with these entries ([`initial_entries`]), lacks of the state of the old one.
    /// INVALID_ARGUMENT if a table with entries changed its shape. What strings mean is taken over.
    pub fn to_reach(
        new: Arc<Pipeline>,
        initial: Vec<(TableId, Entry)>,
        old: &Pipeline,
        old_switch: &Switch,
    ) -> Result<Batch, ControlError> {
        for (uri, translation) in &new.info.translations {
            if let Some(other) = old.info.translations.get(uri) {
                translation.inherit(other);
            }
        }
        let mut transfer = Transfer {
            old,
            new: &new,
            plans: Vec::new(),
        };
        transfer.clear(initial, old_switch)?;
        transfer.replication(old_switch);
        transfer.profiles(old_switch)?;
        for table in &old.info.tables.list {
            transfer.table(table, old_switch)?;
        }
        transfer.cells(old_switch)?;
        transfer.others(old_switch)?;
        let plans = transfer.plans;
        Ok(Batch::of(new, plans))
    }
}

/// The entries of a switch that can be deleted.
pub fn initial_entries(switch: &Switch) -> Result<Vec<(TableId, Entry)>, ControlError> {
    let mut found = Vec::new();
    for table in (0..switch.program().tables.len() as u32).map(TableId) {
        let entries = switch.read_entries(table)?.into_iter();
        let entries = entries.filter(|read: &InstalledEntry| !read.is_const);
        found.extend(entries.map(|read| (table, read.entry)));
    }
    Ok(found)
}

fn same(a: &Names<Field>, b: &Names<Field>) -> bool {
    let shape = |field: &Field| (field.id, field.name.clone(), field.width, field.kind);
    let of = |fields: &Names<Field>| fields.list.iter().map(shape).collect::<Vec<_>>();
    of(a) == of(b)
}

impl Transfer<'_> {
    fn push(&mut self, kind: i32, entity: m::EntityKind) {
        let entity = Some(m::Entity {
            entity: Some(entity),
        });
        let plan = self.new.plan(&m::Update { kind, entity }, "");
        self.plans.push(Some(plan));
    }

    fn insert(&mut self, entity: m::EntityKind) {
        self.push(1, entity);
    }

    fn modify(&mut self, entity: m::EntityKind) {
        self.push(2, entity);
    }

    fn update(&mut self, operation: Operation, entity: Entity) {
        let plan = Plan::of(smallvec![Update { operation, entity }]);
        self.plans.push(Some(Ok(plan)));
    }

    /// Deletes of initial entries in tables that both programs have.
    fn clear(
        &mut self,
        initial: Vec<(TableId, Entry)>,
        old_switch: &Switch,
    ) -> Result<(), ControlError> {
        let mut both = BTreeSet::new();
        for table in &self.old.info.tables.list {
            let counterpart = self.new.info.tables.get(table.id);
            let Some(counterpart) = counterpart.filter(|new| same(&new.fields, &table.fields))
            else {
                let entries = old_switch.read_entries(table.table_id())?;
                refuse!(
                    entries.iter().any(|entry| !entry.is_const) => InvalidArgument,
                    "the entries of {} cannot be preserved: it is gone or its key changed", table.label
                );
                continue;
            };
            both.insert(counterpart.table_id());
        }
        for (table, entry) in initial
            .into_iter()
            .filter(|(table, _)| both.contains(table))
        {
            self.update(Operation::Delete, Entity::TableEntry { table, entry });
        }
        Ok(())
    }

    fn replication(&mut self, switch: &Switch) {
        for group in switch.multicast_groups() {
            self.insert(self.old.multicast_message(group));
        }
        for session in switch.clone_sessions() {
            self.insert(self.old.session_message(session));
        }
    }

    fn profiles(&mut self, switch: &Switch) -> Result<(), ControlError> {
        for profile in &self.old.info.profiles.list {
            let contents = switch.action_profile(profile.profile_id())?;
            for id in contents.member_ids() {
                if let Some(call) = contents.member(id) {
                    self.insert(self.old.member_message(profile, id, call));
                }
            }
            for id in contents.group_ids() {
                if let Some(group) = contents.group(id) {
                    self.insert(self.old.group_message(profile, id, &group));
                }
            }
        }
        Ok(())
    }

    fn table(&mut self, table: &Table, switch: &Switch) -> Result<(), ControlError> {
        let id = table.table_id();
        let (call, note) = (switch.default_action(id)?, switch.default_note(id)?);
        let initial = &self.old.program.tables[table.number].default_action;
        if !table.has_const_default && (call != *initial || note.is_some()) {
            let message = self.old.default_message(table, &call, note.as_ref());
            self.modify(m::EntityKind::Table(message));
        }
        for read in switch.read_entries(id)? {
            let counter = read
                .counter
                .filter(|count| count.packets | count.bytes != 0);
            let mut message = self.old.entry_message(table, &read);
            message.is_const = false;
            let config = read.entry.meter.map(crate::entries::config_message);
            let counter_data = counter.map(crate::entries::count_message);
            if !read.is_const {
                (message.meter_config, message.counter_data) = (config.map(Box::new), counter_data);
                self.insert(m::EntityKind::Table(message));
                continue;
            }
            message.action = None;
            (message.metadata, message.controller_metadata) = Default::default();
            if config.is_some() {
                self.modify(m::EntityKind::DirectMeter(Box::new(m::DirectMeterEntry {
                    table_entry: Some(message.clone()),
                    config,
                    counter_data: None,
                })));
            }
            if counter_data.is_some() {
                self.modify(m::EntityKind::DirectCounter(Box::new(
                    m::DirectCounterEntry {
                        table_entry: Some(message.clone()),
                        data: counter_data,
                    },
                )));
            }
            if let (Some(note), Some(table)) = (read.entry.note, self.new.info.tables.get(table.id))
            {
                let (table, matches, priority) = table.key(&message)?;
                let entity = Entity::Note {
                    table,
                    matches,
                    priority,
                    note: Some(note),
                };
                self.update(Operation::Modify, entity);
            }
        }
        Ok(())
    }

    fn cells(&mut self, switch: &Switch) -> Result<(), ControlError> {
        let (old, new) = (self.old, self.new);
        let index = |index: u64| {
            Some(m::Index {
                index: index as i64,
            })
        };
        for register in &old.info.registers.list {
            let id = RegisterId(register.number as u32);
            let all = 0..register.size;
            let listed = switch.nonzero_registers(id)?;
            for at in listed.unwrap_or_else(|| all.collect()) {
                let value = switch.read_register(id, at)?;
                if value.is_zero() {
                    continue;
                }
                let target = new.info.registers.by_id(register.id)?;
                let width = new
                    .program
                    .registers
                    .get(target.number)
                    .map_or(0, |r| r.width);
                if width != value.width() {
                    let of_type = |ty: &Type| ty.to_data(&value.resize(ty.width().max(1)));
                    let data = register.ty.as_ref().ok().map(of_type);
                    let (id, index) = (register.id, index(at));
                    self.modify(m::EntityKind::Register(m::RegisterEntry {
                        id,
                        index,
                        data,
                    }));
                    continue;
                }
                let entity = Entity::Register {
                    register: RegisterId(target.number as u32),
                    index: Some(at),
                    value,
                };
                self.update(Operation::Modify, entity);
            }
        }
        for counter in &old.info.counters.list {
            let id = CounterId(counter.number as u32);
            let listed = switch.nonzero_counters(id)?;
            for at in listed.unwrap_or_else(|| (0..counter.size).collect()) {
                let data = switch.read_counter(id, at)?;
                if data.packets | data.bytes != 0 {
                    self.modify(m::EntityKind::Counter(m::CounterEntry {
                        id: counter.id,
                        index: index(at),
                        data: Some(crate::entries::count_message(data)),
                    }));
                }
            }
        }
        for meter in &old.info.meters.list {
            let id = MeterId(meter.number as u32);
            for at in switch.configured_meters(id)? {
                let config = switch.read_meter(id, at)?;
                self.modify(m::EntityKind::Meter(m::MeterEntry {
                    id: meter.id,
                    index: index(at),
                    config: config.map(crate::entries::config_message),
                    counter_data: None,
                }));
            }
        }
        Ok(())
    }

    fn others(&mut self, switch: &Switch) -> Result<(), ControlError> {
        for set in &self.old.info.value_sets.list {
            let members = switch.value_set_members(ValueSetId(set.number as u32))?;
            if !members.is_empty() {
                let target = self.new.info.value_sets.by_id(set.id)?;
                let entity = Entity::ValueSet {
                    value_set: ValueSetId(target.number as u32),
                    members: members.to_vec(),
                };
                self.update(Operation::Modify, entity);
            }
        }
        for digest in &self.old.info.digests.list {
            let config = switch.digest_config(DigestId(digest.number as u32))?;
            if let (Some(config), Some(target)) = (config, self.new.info.digests.get(digest.id)) {
                let digest = DigestId(target.number as u32);
                self.update(Operation::Insert, Entity::Digest { digest, config });
            }
        }
        Ok(())
    }
}
