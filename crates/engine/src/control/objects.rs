//! Counters, registers, meters, multicast groups, clone sessions and value sets.

use super::ControlErrorCode::*;
use super::entries::{attached_meter, reconfigured};
use super::{ControlError, Operation, Undo, invalid};
use crate::Time;
use crate::digest::{DigestConfig, DigestList};
use crate::meter::{Meter, MeterConfig};
use crate::refuse;
use crate::replication::{CloneSession, MulticastGroup, Replica};
use crate::runtime::CounterData;
use crate::switch::Switch;
use ir::{Bits, CounterId, DigestId, KeyMatch, MeterId, RegisterId, TableId, ValueSetId};
use std::collections::BTreeSet;

/// Cells with their indices, and the index at which to continue; `None` at the end of the array.
pub type Part<T> = (Vec<(u64, T)>, Option<u64>);

fn no_such(what: &str, id: u32) -> ControlError {
    ControlError::new(NotFound, format!("there is no {what} {id}"))
}

/// Returns the declaration at position `id` of a list. Fails with a message that names `what` if there is no such
/// declaration.
fn declared<'a, T>(list: &'a [T], what: &str, id: u32) -> Result<&'a T, ControlError> {
    list.get(id as usize).ok_or_else(|| no_such(what, id))
}

fn check_index(name: &str, index: u64, size: u64) -> Result<(), ControlError> {
    if index < size {
        return Ok(());
    }
    Err(ControlError::new(
        OutOfRange,
        format!("{name} has {size} cells; there is no cell {index}"),
    ))
}

impl Switch {
    /// Returns the packets and bytes that a counter's cell has counted. Fails if there is no such counter or cell.
    pub fn read_counter(
        &self,
        counter: CounterId,
        index: u64,
    ) -> Result<CounterData, ControlError> {
        self.check_counter(counter, index)?;
        Ok(self
            .runtime()
            .counter_cell(counter, index)
            .unwrap_or_default())
    }

    /// Sets the packets and bytes of a counter's cell. Fails if there is no such counter or cell.
    pub fn write_counter(
        &mut self,
        counter: CounterId,
        index: u64,
        data: CounterData,
    ) -> Result<(), ControlError> {
        self.apply_counter(counter, Some(index), data).map(|_| ())
    }

    /// Returns the packets and bytes that an entry's direct counter has counted. Fails if the table has no direct
    /// counter.
    pub fn read_direct_counter(
        &self,
        table: TableId,
        matches: &[KeyMatch],
        priority: i32,
    ) -> Result<CounterData, ControlError> {
        let entry = self.find_entry(table, matches, priority)?;
        let cell = self.runtime().table(table).counter(entry);
        cell.ok_or_else(|| invalid("the table has no direct counter"))
    }

    /// Returns the value of a register's cell. Fails if there is no such register or cell.
    pub fn read_register(&self, register: RegisterId, index: u64) -> Result<Bits, ControlError> {
        let object = declared(&self.program().registers, "register", register.0)?;
        check_index(&object.name, index, object.size)?;
        let cell = self.runtime().register_cell(register, index);
        Ok(cell.unwrap_or_else(|| Bits::zero(object.width)))
    }

    /// Sets the value of a register's cell. Fails if there is no such register or cell, or if the value's width
    /// differs.
    pub fn write_register(
        &mut self,
        register: RegisterId,
        index: u64,
        value: Bits,
    ) -> Result<(), ControlError> {
        self.apply_register(register, Some(index), value)
            .map(|_| ())
    }

    /// Returns the configuration of a meter's cell; `None` if it has none, so that every packet is green. Fails if
    /// there is no such meter or cell.
    pub fn read_meter(
        &self,
        meter: MeterId,
        index: u64,
    ) -> Result<Option<MeterConfig>, ControlError> {
        self.check_meter(meter, index)?;
        let cell = self.runtime().meter_cell(meter, index);
        Ok(cell.map(Meter::config))
    }

    /// Returns the packets and bytes that a meter's cell has marked green, yellow and red; `None` if the cell has no
    /// configuration. Fails if there is no such meter or cell.
    pub fn read_meter_counts(
        &self,
        meter: MeterId,
        index: u64,
    ) -> Result<Option<[CounterData; 3]>, ControlError> {
        self.check_meter(meter, index)?;
        let cell = self.runtime().meter_cell(meter, index);
        Ok(cell.map(Meter::counts))
    }

    /// Sets the configuration of a meter's cell, or removes it if `config` is `None`. Fails if there is no such meter
    /// or cell, or if the configuration is invalid.
    pub fn write_meter(
        &mut self,
        meter: MeterId,
        index: u64,
        config: Option<MeterConfig>,
    ) -> Result<(), ControlError> {
        self.apply_meter(meter, Some(index), config).map(|_| ())
    }

    /// Returns the first cells of a register at or behind index `from` that are not zero, at most `most`, and the
    /// index at which to continue, `None` at the end. Takes bounded time, and fails with INVALID_ARGUMENT if too many
    /// cells would have to be looked at.
    pub fn registers_from(
        &self,
        register: RegisterId,
        from: u64,
        most: usize,
    ) -> Result<Part<Bits>, ControlError> {
        let object = declared(&self.program().registers, "register", register.0)?;
        let found = self.runtime().registers_from(register, from, most);
        let (cells, next) = found.ok_or_else(|| too_many(&object.name))?;
        let cells = cells.into_iter();
        let cells = cells.map(|(index, limbs)| (index, Bits::from_limbs(object.width, limbs)));
        Ok((cells.collect(), next))
    }

    /// Returns the first cells of a counter at or behind index `from` that are not zero, with the same limits and
    /// errors as [`Self::registers_from`].
    pub fn counters_from(
        &self,
        counter: CounterId,
        from: u64,
        most: usize,
    ) -> Result<Part<CounterData>, ControlError> {
        let object = declared(&self.program().counters, "counter", counter.0)?;
        let found = self.runtime().counters_from(counter, from, most);
        let (cells, next) = found.ok_or_else(|| too_many(&object.name))?;
        let data = |limbs: &[u64]| CounterData {
            packets: limbs[0],
            bytes: limbs[1],
        };
        let cells = cells.into_iter();
        Ok((
            cells.map(|(index, limbs)| (index, data(limbs))).collect(),
            next,
        ))
    }

    /// Returns the configurations of those of a meter's `most` cells from index `from` on that have one, and the
    /// index at which to continue, `None` at the end. Fails if there is no such indexed meter.
    pub fn meters_from(
        &self,
        meter: MeterId,
        from: u64,
        most: usize,
    ) -> Result<Part<MeterConfig>, ControlError> {
        self.indexed_meter(meter)?;
        Ok(self.runtime().meters_from(meter, from, most))
    }

    /// Returns the indices of a meter's cells that are configured, in ascending order. Fails if there is no such
    /// indexed meter.
    pub fn configured_meters(&self, meter: MeterId) -> Result<Vec<u64>, ControlError> {
        self.indexed_meter(meter)?;
        let cells = self.runtime().configured_meters(meter);
        Ok(cells.map(|(index, _)| index).collect())
    }

    /// Returns all multicast groups, ordered by id.
    pub fn multicast_groups(&self) -> impl Iterator<Item = &MulticastGroup> {
        self.replication().groups()
    }

    /// Returns all clone sessions, ordered by id.
    pub fn clone_sessions(&self) -> impl Iterator<Item = &CloneSession> {
        self.replication().sessions()
    }

    /// Returns the members of a value set: for each of them, one match per key field. Fails if there is no such value
    /// set.
    pub fn value_set_members(
        &self,
        value_set: ValueSetId,
    ) -> Result<&[Vec<KeyMatch>], ControlError> {
        declared(&self.program().value_sets, "value set", value_set.0)?;
        Ok(self.runtime().value_set(value_set).members())
    }

    /// Removes all digest messages that wait for the controller, and returns them as lists, even if it is not yet
    /// time to send them.
    pub fn take_digests(&mut self, now_ps: Time) -> Vec<DigestList> {
        self.runtime_mut().digests_mut().take(now_ps)
    }

    /// Removes the digest lists that are to be sent by `now_ps` (full, or older than their timeout), until they
    /// contain at least `most` messages together, and returns them.
    pub fn take_due_digests(&mut self, now_ps: Time, most: usize) -> Vec<DigestList> {
        self.runtime_mut().digests_mut().take_due(now_ps, most)
    }

    /// Removes at most `most` waiting messages of the digests that the controller has not configured, and returns
    /// them as lists.
    pub fn take_unconfigured_digests(&mut self, now_ps: Time, most: usize) -> Vec<DigestList> {
        let digests = self.runtime_mut().digests_mut();
        digests.take_unconfigured(now_ps, most)
    }

    /// Returns the configuration of a digest; `None` if it has none. Fails if there is no such digest.
    pub fn digest_config(&self, digest: DigestId) -> Result<Option<DigestConfig>, ControlError> {
        declared(&self.program().digests, "digest", digest.0)?;
        Ok(self.runtime().digests().config(digest))
    }

    pub(super) fn apply_digest(
        &mut self,
        operation: Operation,
        digest: DigestId,
        config: DigestConfig,
    ) -> Result<Undo, ControlError> {
        let exists = self.digest_config(digest)?.is_some();
        let name = &self.program().digests[digest.index()].name;
        match (operation, exists) {
            (Operation::Insert, true) => Err(ControlError::new(
                AlreadyExists,
                format!("digest {name} is configured already"),
            )),
            (Operation::Modify | Operation::Delete, false) => Err(ControlError::new(
                NotFound,
                format!("digest {name} is not configured"),
            )),
            _ => {
                let config = (operation != Operation::Delete).then_some(config);
                let queue = self.runtime_mut().digests_mut();
                let former = queue.set_config(digest, config);
                Ok(Undo::by(move |switch| {
                    switch.runtime_mut().digests_mut().restore(digest, former);
                }))
            }
        }
    }

    /// Records that the controller has received a digest list. From now on, messages equal to those in the list are
    /// queued again. Fails if no list with this id waits for an acknowledgement.
    pub fn acknowledge_digest(
        &mut self,
        digest: DigestId,
        list_id: u64,
    ) -> Result<(), ControlError> {
        declared(&self.program().digests, "digest", digest.0)?;
        if self
            .runtime_mut()
            .digests_mut()
            .acknowledge(digest, list_id)
        {
            return Ok(());
        }
        Err(ControlError::new(
            NotFound,
            format!("list {list_id} waits for no acknowledgement"),
        ))
    }

    fn check_counter(&self, counter: CounterId, index: u64) -> Result<(), ControlError> {
        let (name, size) = self.indexed_counter(counter)?;
        check_index(name, index, size)
    }

    fn indexed_counter(&self, counter: CounterId) -> Result<(&str, u64), ControlError> {
        let object = declared(&self.program().counters, "counter", counter.0)?;
        match object.size {
            Some(size) => Ok((&object.name, size)),
            None => Err(direct(&object.name)),
        }
    }

    fn check_meter(&self, meter: MeterId, index: u64) -> Result<(), ControlError> {
        let (name, size) = self.indexed_meter(meter)?;
        check_index(name, index, size)
    }

    fn indexed_meter(&self, meter: MeterId) -> Result<(&str, u64), ControlError> {
        let object = declared(&self.program().meters, "meter", meter.0)?;
        match object.size {
            Some(size) => Ok((&object.name, size)),
            None => Err(direct(&object.name)),
        }
    }

    pub(super) fn apply_counter(
        &mut self,
        counter: CounterId,
        index: Option<u64>,
        data: CounterData,
    ) -> Result<Undo, ControlError> {
        let Some(index) = index else {
            self.indexed_counter(counter)?;
            let former = self.runtime_mut().fill_counter(counter, data);
            return Ok(Undo::by(move |switch| {
                switch.runtime_mut().replace_counter_cells(counter, former);
            }));
        };
        let former = self.read_counter(counter, index)?;
        self.runtime_mut().set_counter_cell(counter, index, data);
        Ok(Undo::by(move |switch| {
            switch
                .runtime_mut()
                .set_counter_cell(counter, index, former);
        }))
    }

    pub(super) fn apply_direct_counter(
        &mut self,
        table: TableId,
        matches: &[KeyMatch],
        priority: i32,
        data: Option<CounterData>,
    ) -> Result<Undo, ControlError> {
        let entry = self.find_entry(table, matches, priority)?;
        self.keep_for_snapshots(table, entry);
        let cell = self.runtime_mut().table_mut(table).counter_mut(entry);
        let cell = cell.ok_or_else(|| invalid("the table has no direct counter"))?;
        let former = std::mem::replace(cell, data.unwrap_or(*cell));
        Ok(Undo::by(move |switch| {
            if let Some(cell) = switch.runtime_mut().table_mut(table).counter_mut(entry) {
                *cell = former;
            }
        }))
    }

    pub(super) fn apply_direct_meter(
        &mut self,
        table: TableId,
        matches: &[KeyMatch],
        priority: i32,
        config: Option<MeterConfig>,
    ) -> Result<Undo, ControlError> {
        let entry = self.find_entry(table, matches, priority)?;
        refuse!(
            self.declared_table(table)?.direct_meter.is_none() => InvalidArgument,
            "the table has no direct meter"
        );
        config.map_or(Ok(()), check_meter_config)?;
        self.keep_for_snapshots(table, entry);
        let now_ps = self.runtime().now_ps();
        let mut attached = self.runtime().attached(table, entry);
        attached.meter = attached_meter(attached.meter, config, now_ps);
        let former = self.runtime_mut().attach(table, entry, attached);
        Ok(Undo::attached(table, entry, former))
    }

    pub(super) fn apply_register(
        &mut self,
        register: RegisterId,
        index: Option<u64>,
        value: Bits,
    ) -> Result<Undo, ControlError> {
        let object = declared(&self.program().registers, "register", register.0)?;
        refuse!(
            value.width() != object.width => InvalidArgument,
            "the cells of {} have {} bits, the value {}", object.name, object.width, value.width()
        );
        let Some(index) = index else {
            let former = self.runtime_mut().fill_register(register, &value);
            return Ok(Undo::by(move |switch| {
                switch
                    .runtime_mut()
                    .replace_register_cells(register, former);
            }));
        };
        let former = self.read_register(register, index)?;
        let runtime = self.runtime_mut();
        runtime.register_write(register, index, value.limbs());
        Ok(Undo::by(move |switch| {
            let runtime = switch.runtime_mut();
            runtime.register_write(register, index, former.limbs());
        }))
    }

    pub(super) fn apply_meter(
        &mut self,
        meter: MeterId,
        index: Option<u64>,
        config: Option<MeterConfig>,
    ) -> Result<Undo, ControlError> {
        let (_, size) = self.indexed_meter(meter)?;
        config.map_or(Ok(()), check_meter_config)?;
        let now_ps = self.runtime().now_ps();
        let Some(index) = index else {
            let former = self.runtime_mut().clear_meters(meter);
            if config.is_some() {
                let mut counted = former.iter().cloned().peekable();
                for index in 0..size {
                    let cell = counted
                        .next_if(|(at, _)| *at == index)
                        .map(|(_, cell)| cell);
                    let cell = reconfigured(cell, config, now_ps);
                    self.runtime_mut().replace_meter(meter, index, cell);
                }
            }
            return Ok(Undo::by(move |switch| {
                let runtime = switch.runtime_mut();
                runtime.clear_meters(meter);
                for (index, cell) in former {
                    runtime.replace_meter(meter, index, Some(cell));
                }
            }));
        };
        self.check_meter(meter, index)?;
        let former = self.runtime_mut().replace_meter(meter, index, None);
        let cell = reconfigured(former.clone(), config, now_ps);
        self.runtime_mut().replace_meter(meter, index, cell);
        Ok(Undo::by(move |switch| {
            switch.runtime_mut().replace_meter(meter, index, former);
        }))
    }

    pub(super) fn apply_multicast_group(
        &mut self,
        operation: Operation,
        group: MulticastGroup,
    ) -> Result<Undo, ControlError> {
        let id = group.group_id;
        refuse!(
            !(1..=0xffff).contains(&id) => InvalidArgument,
            "multicast group ids are 1 to 65535, not {id}"
        );
        check_replicas(self, &group.replicas)?;
        let former = self.replication().group(id).cloned();
        check_existence(operation, former.is_some(), "multicast group", id)?;
        let group = (operation != Operation::Delete).then_some(group);
        self.replication_mut().put_group(id, group);
        Ok(Undo::by(move |switch| {
            switch.replication_mut().put_group(id, former);
        }))
    }

    pub(super) fn apply_clone_session(
        &mut self,
        operation: Operation,
        session: CloneSession,
    ) -> Result<Undo, ControlError> {
        let id = session.session_id;
        let bits = (self.program().architecture.description()).class_of_service_bits;
        refuse!(
            u32::from(session.class_of_service) >> bits != 0 => InvalidArgument,
            "a class of service has {bits} bits"
        );
        check_replicas(self, &session.replicas)?;
        let former = self.replication().session(id).cloned();
        check_existence(operation, former.is_some(), "clone session", id)?;
        let session = (operation != Operation::Delete).then_some(session);
        self.replication_mut().put_session(id, session);
        Ok(Undo::by(move |switch| {
            switch.replication_mut().put_session(id, former);
        }))
    }

    pub(super) fn apply_value_set(
        &mut self,
        value_set: ValueSetId,
        members: Vec<Vec<KeyMatch>>,
    ) -> Result<Undo, ControlError> {
        let object = declared(&self.program().value_sets, "value set", value_set.0)?;
        refuse!(
            members.len() as u64 > object.size => ResourceExhausted,
            "{} holds {} members", object.name, object.size
        );
        for member in &members {
            refuse!(
                member.len() != object.widths.len() => InvalidArgument,
                "members of {} have {} fields", object.name, object.widths.len()
            );
            for (&width, key_match) in object.widths.iter().zip(member) {
                key_match
                    .check(width)
                    .map_err(|why| invalid(format!("{}: {why}", object.name)))?;
            }
        }
        let former = self
            .runtime_mut()
            .value_set_mut(value_set)
            .set_members(members);
        Ok(Undo::by(move |switch| {
            let value_set = switch.runtime_mut().value_set_mut(value_set);
            value_set.set_members(former);
        }))
    }
}

fn direct(name: &str) -> ControlError {
    invalid(format!(
        "{name} is direct: its cells belong to the entries of its table"
    ))
}

pub(super) fn check_meter_config(config: MeterConfig) -> Result<(), ControlError> {
    refuse!(
        config.pir < config.cir => InvalidArgument,
        "the peak rate is below the committed rate"
    );
    Ok(())
}

fn check_replicas(switch: &Switch, replicas: &[Replica]) -> Result<(), ControlError> {
    let architecture = switch.program().architecture.description();
    let mut seen = BTreeSet::new();
    for replica in replicas {
        refuse!(
            !architecture.takes_replicas(replica.port) => InvalidArgument,
            "ports are 0 to {}, not {}", architecture.ports - 1, replica.port
        );
        refuse!(
            !seen.insert((replica.port, replica.rid)) => InvalidArgument,
            "port {} with instance {} occurs twice", replica.port, replica.rid
        );
    }
    Ok(())
}

fn check_existence(
    operation: Operation,
    exists: bool,
    what: &str,
    id: u32,
) -> Result<(), ControlError> {
    match (operation, exists) {
        (Operation::Insert, true) => Err(ControlError::new(
            AlreadyExists,
            format!("there is a {what} {id} already"),
        )),
        (Operation::Modify | Operation::Delete, false) => Err(no_such(what, id)),
        _ => Ok(()),
    }
}

fn too_many(name: &str) -> ControlError {
    super::invalid(format!(
        "all cells of {name} were set, and they are too many to be copied"
    ))
}
