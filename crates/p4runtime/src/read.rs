//! Reads: what the entities of a request select, in slices, as of the time at which it began.
//!
//! Tables are read from snapshots, and arrays cell by cell: [`Reading::fetch`] copies a slice while the switch waits, and
//! [`Reading::encode`] makes a response of it while packets pass.

use crate::encode::{nested, put_match};
use crate::entries::{self, Key};
use crate::errors::{invalid, not_found};
use crate::info::{Named, Names, Table};
use crate::messages as m;
use crate::pipeline::{Pipeline, missing, replaced};
use crate::profiles::no_type;
use crate::values::Type;
use crate::write::{Failure, cell_of, no_externs, object_id};
use engine::Switch;
use engine::control::{
    ControlError, ControlErrorCode, EntryAction, InstalledEntry, Note, TableSnapshot,
};
use engine::meter::MeterConfig;
use engine::refuse;
use engine::runtime::CounterData;
use ir::{Bits, CounterId, DigestId, MeterId, RegisterId, TableId, ValueSetId};
use prost::{DecodeError, Message};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Entries, or cells, of one slice.
const PER_SLICE: u32 = 512;

/// A `p4.v1.ReadRequest`.
#[derive(Clone, Debug)]
pub struct ReadRequest(m::ReadRequest);

impl ReadRequest {
    /// Decodes all of it.
    pub fn decode(data: &[u8]) -> Result<ReadRequest, DecodeError> {
        m::ReadRequest::decode(data).map(ReadRequest)
    }
}

/// The answer to a `p4.v1.ReadRequest`, as far as it has not been given.
#[derive(Debug)]
pub struct Reading {
    pipeline: Arc<Pipeline>,
    /// By entity of the request.
    asked: VecDeque<Result<Answer, ControlError>>,
    count: usize,
    failures: Vec<Failure>,
}

/// A switch, and the snapshots that one request opened: one of each table, because each has to be kept up to date.
struct Source<'a> {
    switch: &'a mut Switch,
    snapshots: BTreeMap<TableId, Arc<TableSnapshot>>,
}

impl Source<'_> {
    fn snapshot(&mut self, table: TableId) -> Result<Arc<TableSnapshot>, ControlError> {
        if let Some(open) = self.snapshots.get(&table) {
            return Ok(open.clone());
        }
        let open = self.switch.snapshot_table(table)?;
        self.snapshots.insert(table, open.clone());
        Ok(open)
    }
}

/// To one entity.
#[derive(Debug, Default)]
struct Answer {
    parts: VecDeque<Part>,
    /// Something must be found.
    must_find: bool,
}

#[derive(Debug)]
enum Part {
    Ready(Arc<Vec<m::EntityKind>>),
    Found(Vec<InstalledEntry>, Arc<Wanted>),
    Table(Arc<TableSnapshot>, u32, Arc<Wanted>),
    Array(Array, u64, u64),
}

/// An array, and whether the counters of its meters are wanted.
#[derive(Clone, Copy, Debug)]
enum Array {
    Counters(u32),
    Meters(u32, bool),
    Registers(u32),
}

/// What is wanted of the entries of a table.
#[derive(Debug)]
struct Wanted {
    table_id: u32,
    form: Form,
    key: Option<Key>,
    message: m::TableEntry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Entry,
    DirectCounter,
    /// With counters.
    DirectMeter(bool),
}

/// What has been copied from the switch and not encoded.
#[derive(Debug)]
pub struct Slice(Contents);

#[derive(Debug)]
enum Contents {
    Ready(Arc<Vec<m::EntityKind>>),
    Entries(Vec<InstalledEntry>, Arc<Wanted>),
    Counters(u32, u64, Vec<CounterData>),
    Meters(u32, u64, Vec<MeterCell>, bool),
    Registers(u32, u64, Vec<Bits>),
}

type MeterCell = (Option<MeterConfig>, Option<[CounterData; 3]>);

impl Reading {
    /// Begins to read.
    pub fn new(
        pipeline: Arc<Pipeline>,
        ReadRequest(request): &ReadRequest,
        switch: &mut Switch,
    ) -> Reading {
        let mut source = Source {
            switch,
            snapshots: BTreeMap::new(),
        };
        // What is read at once is read once, however often it is asked for.
        let mut known = BTreeMap::new();
        let asked = request.entities.iter().map(|entity| {
            let entity = entity.entity.as_ref().ok_or_else(|| {
                invalid("the request has no entity, or one of a later version of P4Runtime")
            })?;
            let objects = at_once(entity);
            if let Some(known) = objects.and_then(|objects| known.get(&objects)) {
                return Ok(Answer {
                    parts: VecDeque::from([Part::Ready(Arc::clone(known))]),
                    must_find: false,
                });
            }
            let answer = pipeline.answer(entity, &request.role, &mut source)?;
            if let (Some(objects), Some(Part::Ready(found))) = (objects, answer.parts.front()) {
                known.insert(objects, Arc::clone(found));
            }
            Ok(answer)
        });
        let asked: VecDeque<_> = asked.collect();
        Reading {
            count: asked.len(),
            pipeline,
            asked,
            failures: Vec::new(),
        }
    }

    /// How many entities the request has, and which of them were refused so far.
    pub fn failures(&self) -> (usize, &[Failure]) {
        (self.count, &self.failures)
    }

    /// How many snapshots of tables it reads.
    #[cfg(test)]
    pub(crate) fn snapshots(&self) -> usize {
        let parts = self.asked.iter().flatten().flat_map(|answer| &answer.parts);
        let places = parts.filter_map(|part| match part {
            Part::Table(snapshot, ..) => Some(Arc::as_ptr(snapshot)),
            _ => None,
        });
        places.collect::<std::collections::BTreeSet<_>>().len()
    }

    /// Copies the next slice; None at the end.
    pub fn fetch(&mut self, switch: &Switch) -> Option<Slice> {
        loop {
            let at = self.count - self.asked.len();
            let error = match self.asked.front_mut()? {
                Ok(answer) => match answer.fetch(&self.pipeline, switch) {
                    Ok(Some(contents)) => return Some(Slice(contents)),
                    Ok(None) if answer.must_find => Some(not_found("there is no such table entry")),
                    Ok(None) => None,
                    Err(error) => Some(error),
                },
                Err(error) => Some(error.clone()),
            };
            self.failures.extend(error.map(|error| (at, error)));
            self.asked.pop_front();
        }
    }

    /// The serialized `ReadResponse` of a slice, None if nothing of it was wanted. It is the slice that was fetched last.
    pub fn encode(&mut self, slice: Slice) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let pipeline = &self.pipeline;
        if let Contents::Entries(entries, wanted) = &slice.0
            && let Some(table) = pipeline.info.tables.get(wanted.table_id)
        {
            out.reserve(64 * entries.len());
            for entry in entries {
                pipeline.put_selected(&mut out, table, entry, wanted);
            }
        }
        let mut put = |kind: m::EntityKind| nested(&mut out, 1, |out| kind.encode(out));
        match slice.0 {
            Contents::Entries(..) => {}
            Contents::Ready(entities) => {
                for kind in &*entities {
                    nested(&mut out, 1, |out| kind.encode(out));
                }
            }
            Contents::Counters(id, first, cells) => {
                for (index, data) in (first..).zip(cells) {
                    put(m::EntityKind::Counter(m::CounterEntry {
                        id,
                        index: index_message(index),
                        data: Some(entries::count_message(data)),
                    }));
                }
            }
            Contents::Meters(id, first, cells, counted) => {
                for (index, (config, counts)) in (first..).zip(cells) {
                    put(m::EntityKind::Meter(m::MeterEntry {
                        id,
                        index: index_message(index),
                        config: config.map(entries::config_message),
                        counter_data: counted.then(|| entries::colours_message(counts)),
                    }));
                }
            }
            Contents::Registers(id, first, cells) => {
                let register = pipeline.info.registers.get(id);
                let ty = register.and_then(|register| register.ty.as_ref().ok());
                for (index, value) in (first..).zip(cells) {
                    let of_type = |ty: &Type| ty.to_data(&value.resize(ty.width().max(1)));
                    put(m::EntityKind::Register(m::RegisterEntry {
                        id,
                        index: index_message(index),
                        data: ty.map(of_type),
                    }));
                }
            }
        }
        if let Some(Ok(answer)) = self.asked.front_mut()
            && !out.is_empty()
        {
            answer.must_find = false;
        }
        (!out.is_empty()).then_some(out)
    }
}

/// Of an entity that is read at once, all that the answer depends on: its kind and its ids.
fn at_once(entity: &m::EntityKind) -> Option<(u8, u32, u32)> {
    use m::{EntityKind::*, ReplicationKind};
    match entity {
        Member(message) => Some((0, message.action_profile_id, message.member_id)),
        Group(message) => Some((1, message.action_profile_id, message.group_id)),
        ValueSet(message) => Some((2, message.id, 0)),
        Digest(message) => Some((3, message.id, 0)),
        Replication(message) => match message.kind.as_ref()? {
            ReplicationKind::Group(group) => Some((4, group.group_id, 0)),
            ReplicationKind::Session(session) => Some((5, session.session_id, 0)),
        },
        _ => None,
    }
}

fn index_message(index: u64) -> Option<m::Index> {
    Some(m::Index {
        index: index as i64,
    })
}

impl Answer {
    fn of(entities: Vec<m::EntityKind>) -> Answer {
        Answer {
            parts: VecDeque::from([Part::Ready(Arc::new(entities))]),
            must_find: false,
        }
    }

    fn fetch(
        &mut self,
        pipeline: &Pipeline,
        switch: &Switch,
    ) -> Result<Option<Contents>, ControlError> {
        let Some(part) = self.parts.pop_front() else {
            return Ok(None);
        };
        let part = match part {
            Part::Ready(entities) => return Ok(Some(Contents::Ready(entities))),
            Part::Found(entries, wanted) => return Ok(Some(Contents::Entries(entries, wanted))),
            part => part,
        };
        if !Arc::ptr_eq(switch.program(), &pipeline.program) {
            return Err(replaced("Read"));
        }
        let (contents, rest) = match part {
            Part::Ready(_) | Part::Found(..) => return Ok(None),
            Part::Table(snapshot, place, wanted) => {
                let (entries, next) = switch.read_snapshot(&snapshot, place, PER_SLICE)?;
                let rest = next.map(|place| Part::Table(snapshot, place, wanted.clone()));
                (Contents::Entries(entries, wanted), rest)
            }
            Part::Array(array, first, end) => {
                let next = end.min(first + u64::from(PER_SLICE));
                let rest = (next < end).then_some(Part::Array(array, next, end));
                (pipeline.cells(array, first, next, switch)?, rest)
            }
        };
        if let Some(rest) = rest {
            self.parts.push_front(rest);
        }
        Ok(Some(contents))
    }
}

impl Pipeline {
    fn cells(
        &self,
        array: Array,
        first: u64,
        end: u64,
        switch: &Switch,
    ) -> Result<Contents, ControlError> {
        let indices = first..end;
        Ok(match array {
            Array::Counters(id) => {
                let counter = CounterId(self.info.counters.by_id(id)?.number as u32);
                let cells = indices.map(|index| switch.read_counter(counter, index));
                Contents::Counters(id, first, cells.collect::<Result<_, _>>()?)
            }
            Array::Meters(id, counted) => {
                let meter = MeterId(self.info.meters.by_id(id)?.number as u32);
                let cells = indices.map(|index| {
                    let counts = switch.read_meter_counts(meter, index)?;
                    Ok((switch.read_meter(meter, index)?, counts))
                });
                let cells = cells.collect::<Result<_, ControlError>>()?;
                Contents::Meters(id, first, cells, counted)
            }
            Array::Registers(id) => {
                let register = RegisterId(self.info.registers.by_id(id)?.number as u32);
                let cells = indices.map(|index| switch.read_register(register, index));
                Contents::Registers(id, first, cells.collect::<Result<_, _>>()?)
            }
        })
    }

    /// What an entity of a request selects, of what the role may have.
    fn answer(
        &self,
        entity: &m::EntityKind,
        role: &str,
        source: &mut Source<'_>,
    ) -> Result<Answer, ControlError> {
        self.info.check_role(role, object_id(entity))?;
        let switch = &*source.switch;
        if !Arc::ptr_eq(switch.program(), &self.program) {
            return Err(replaced("Read"));
        }
        let info = &self.info;
        match entity {
            m::EntityKind::Table(message) => self.read_entries(message, role, source),
            m::EntityKind::DirectCounter(message) => {
                self.direct(&message.table_entry, Form::DirectCounter, role, source)
            }
            m::EntityKind::DirectMeter(message) => {
                let form = Form::DirectMeter(message.counter_data.is_some());
                self.direct(&message.table_entry, form, role, source)
            }
            m::EntityKind::Member(message) => self.read_members(message, role, switch),
            m::EntityKind::Group(message) => self.read_groups(message, role, switch),
            m::EntityKind::Counter(message) => {
                let objects = self.wanted(&info.counters, message.id, role)?;
                let objects = objects.map(|c| (Array::Counters(c.id), &*c.name, c.size));
                arrays("counter", message.id, message.index.as_ref(), objects)
            }
            m::EntityKind::Meter(message) => {
                let counted = message.counter_data.is_some();
                let objects = self.wanted(&info.meters, message.id, role)?;
                let objects = objects.map(|c| (Array::Meters(c.id, counted), &*c.name, c.size));
                arrays("meter", message.id, message.index.as_ref(), objects)
            }
            m::EntityKind::Register(message) => {
                let objects: Vec<_> = self.wanted(&info.registers, message.id, role)?.collect();
                if let Some(error) = objects.iter().find_map(|it| it.ty.as_ref().err()) {
                    return Err(error.clone());
                }
                let objects = objects.into_iter();
                let objects = objects.map(|c| (Array::Registers(c.id), &*c.name, c.size));
                arrays("register", message.id, message.index.as_ref(), objects)
            }
            m::EntityKind::ValueSet(message) => {
                let sets = self.wanted(&info.value_sets, message.id, role)?;
                let sets = sets.map(|set| {
                    let members = switch.value_set_members(ValueSetId(set.number as u32))?;
                    let members = members.iter().map(|member| {
                        let mut out = Vec::new();
                        for (id, key_match) in (1..).zip(member) {
                            if let Some(field) = set.fields.get(id) {
                                put_match(&mut out, 1, field, key_match);
                            }
                        }
                        m::ValueSetMember::decode(&out[..]).unwrap_or_default()
                    });
                    let (id, members) = (set.id, members.collect());
                    Ok(m::EntityKind::ValueSet(m::ValueSetEntry { id, members }))
                });
                Ok(Answer::of(sets.collect::<Result<_, ControlError>>()?))
            }
            m::EntityKind::Digest(message) => {
                let digests = self.wanted(&info.digests, message.id, role)?;
                let digests = digests.filter_map(|digest| {
                    let config = switch.digest_config(DigestId(digest.number as u32));
                    let config = config.ok()??;
                    let config = m::DigestConfig {
                        max_timeout_ns: config.max_timeout_ns as i64,
                        max_list_size: config.max_list_size as i32,
                        ack_timeout_ns: config.ack_timeout_ns as i64,
                    };
                    let (id, config) = (digest.id, Some(config));
                    Some(m::EntityKind::Digest(m::DigestEntry { id, config }))
                });
                found(digests.collect(), message.id, |id| {
                    not_found(format!("digest {id} is not enabled"))
                })
            }
            m::EntityKind::Replication(message) => self.read_replication(message, switch),
            // A read of everything, and there is nothing.
            m::EntityKind::Extern(message) if message.extern_type_id == 0 => Ok(Answer::default()),
            m::EntityKind::Extern(_) => Err(no_externs()),
        }
    }

    /// The object of this id, or with 0 all that the role may have.
    fn wanted<'a, T: Named>(
        &'a self,
        objects: &'a Names<T>,
        id: u32,
        role: &'a str,
    ) -> Result<impl Iterator<Item = &'a T>, ControlError> {
        if id != 0 {
            objects.by_id(id)?;
        }
        let list = objects.list.iter();
        Ok(list.filter(move |object| match id {
            0 => self.info.role_may(role, object.id()),
            id => object.id() == id,
        }))
    }

    fn read_entries(
        &self,
        message: &m::TableEntry,
        role: &str,
        source: &mut Source<'_>,
    ) -> Result<Answer, ControlError> {
        if message.table_id != 0 {
            let table = self.info.tables.by_id(message.table_id)?;
            table.check_resources(message, false)?;
        }
        if let Some(action) = &message.action
            && message.table_id != 0
        {
            let Some(m::ActionKind::Action(action)) = &action.kind else {
                return Err(invalid("entries can be selected by action id only"));
            };
            let table = self.info.tables.by_id(message.table_id)?;
            if !table.actions.iter().any(|(id, _)| *id == action.action_id) {
                // Words the error.
                self.call(table, action, false)?;
            }
        }
        self.select(message, Form::Entry, role, source)
    }

    fn direct(
        &self,
        message: &Option<m::TableEntry>,
        form: Form,
        role: &str,
        source: &mut Source<'_>,
    ) -> Result<Answer, ControlError> {
        let mut message = message.clone().unwrap_or_default();
        // Ignored, says the message's own comment.
        message.action = None;
        if message.table_id != 0 {
            let table = self.info.tables.by_id(message.table_id)?;
            if !form.is_of(table) {
                let what = match form {
                    Form::DirectCounter => "counter",
                    _ => "meter",
                };
                let id = table.id;
                return Err(invalid(format!("table {id} has no direct {what}")));
            }
        }
        let mut answer = self.select(&message, form, role, source)?;
        answer.must_find = !message.matches.is_empty();
        Ok(answer)
    }

    fn select(
        &self,
        message: &m::TableEntry,
        form: Form,
        role: &str,
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
        for table in self.wanted(&self.info.tables, message.table_id, role)? {
            if !form.is_of(table) {
                continue;
            }
            let label = &table.label;
            refuse!(
                message.is_default_action && (message.priority != 0 || !message.matches.is_empty()) => InvalidArgument,
                "{label}: the default entry has no match fields and no priority"
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
            let part = if message.is_default_action {
                let found = self.read_default(table, &wanted, source.switch)?;
                Part::Ready(Arc::new(found.into_iter().collect()))
            } else {
                match &wanted.key {
                    Some((id, matches, priority)) if (*priority != 0) == table.needs_priority => {
                        let found = match source.switch.read_entry(*id, matches, *priority) {
                            Ok(entry) => vec![entry],
                            Err(error) if error.code == ControlErrorCode::NotFound => Vec::new(),
                            Err(error) => return Err(error),
                        };
                        Part::Found(found, wanted.clone())
                    }
                    _ => Part::Table(source.snapshot(table.table_id())?, 0, wanted),
                }
            };
            answer.parts.push_back(part);
        }
        Ok(answer)
    }

    fn read_default(
        &self,
        table: &Table,
        wanted: &Wanted,
        switch: &Switch,
    ) -> Result<Option<m::EntityKind>, ControlError> {
        let call = switch.default_action(table.table_id())?;
        let note = switch.default_note(table.table_id())?;
        let mut message = self.default_message(table, &call, note.as_ref());
        let asked = &wanted.message;
        if table.direct_meter.is_some() && asked.meter_counter_data.is_some() {
            message.meter_counter_data = Some(Box::new(entries::colours_message(None)));
        }
        let action_id = self.program.actions[call.action.index()].id;
        if !asked.selects(action_id, note.as_ref()) {
            return Ok(None);
        }
        Ok(match wanted.form {
            Form::Entry => Some(m::EntityKind::Table(message)),
            Form::DirectCounter => None,
            Form::DirectMeter(counted) => {
                Some(direct_meter_message(message, None, counted.then_some(None)))
            }
        })
    }

    /// Appends the `Entity` of an entry, or of its direct resource, if it is wanted, with those of its resources that are.
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
                m::EntityKind::DirectCounter(Box::new(m::DirectCounterEntry {
                    data: Some(entries::count_message(count)),
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

    fn read_members(
        &self,
        message: &m::ActionProfileMember,
        role: &str,
        switch: &Switch,
    ) -> Result<Answer, ControlError> {
        refuse!(
            message.member_id != 0 && message.action_profile_id == 0 => InvalidArgument,
            "a read of the members of all action profiles takes no member id"
        );
        let mut entities = Vec::new();
        for profile in self.wanted(&self.info.profiles, message.action_profile_id, role)? {
            let contents = switch.action_profile(profile.profile_id())?;
            let ids = contents.member_ids();
            for id in ids.filter(|id| [0, *id].contains(&message.member_id)) {
                let call = contents.member(id).into_iter();
                entities.extend(call.map(|call| self.member_message(profile, id, call)));
            }
        }
        found(entities, message.member_id, |id| missing("member", id))
    }

    fn read_groups(
        &self,
        message: &m::ActionProfileGroup,
        role: &str,
        switch: &Switch,
    ) -> Result<Answer, ControlError> {
        refuse!(
            message.group_id != 0 && message.action_profile_id == 0 => InvalidArgument,
            "a read of the groups of all action profiles takes no group id"
        );
        let mut entities = Vec::new();
        for profile in self.wanted(&self.info.profiles, message.action_profile_id, role)? {
            let contents = switch.action_profile(profile.profile_id())?;
            let ids = contents.group_ids();
            for id in ids.filter(|id| [0, *id].contains(&message.group_id)) {
                let group = contents.group(id).into_iter();
                entities.extend(group.map(|group| self.group_message(profile, id, &group)));
            }
        }
        found(entities, message.group_id, |id| missing("group", id))
    }

    fn read_replication(
        &self,
        message: &m::ReplicationEntry,
        switch: &Switch,
    ) -> Result<Answer, ControlError> {
        match &message.kind {
            Some(m::ReplicationKind::Group(wanted)) => {
                let groups = switch.multicast_groups();
                let groups = groups.filter(|group| [0, group.group_id].contains(&wanted.group_id));
                let groups = groups.map(|group| self.multicast_message(group)).collect();
                found(groups, wanted.group_id, |id| missing("multicast group", id))
            }
            Some(m::ReplicationKind::Session(wanted)) => {
                let sessions = switch.clone_sessions();
                let sessions =
                    sessions.filter(|it| [0, it.session_id].contains(&wanted.session_id));
                let sessions = sessions.map(|session| self.session_message(session));
                found(sessions.collect(), wanted.session_id, |id| {
                    missing("clone session", id)
                })
            }
            None => Err(no_type()),
        }
    }
}

impl Form {
    /// Whether a table has what is to be read.
    fn is_of(self, table: &Table) -> bool {
        match self {
            Form::Entry => true,
            Form::DirectCounter => table.direct_counter != 0,
            Form::DirectMeter(_) => table.direct_meter.is_some(),
        }
    }
}

impl m::TableEntry {
    /// Whether an entry that runs an action is one of those that this filter asks for, keys apart.
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
) -> m::EntityKind {
    m::EntityKind::DirectMeter(Box::new(m::DirectMeterEntry {
        table_entry: Some(key_of(entry)),
        config: config.map(entries::config_message),
        counter_data: counts.map(entries::colours_message),
    }))
}

/// The key fields of a `TableEntry`.
fn key_of(entry: m::TableEntry) -> m::TableEntry {
    m::TableEntry {
        table_id: entry.table_id,
        matches: entry.matches,
        priority: entry.priority,
        is_default_action: entry.is_default_action,
        ..m::TableEntry::default()
    }
}

/// An error if one object was asked for and is not there.
fn found(
    entities: Vec<m::EntityKind>,
    id: u32,
    missing: impl Fn(u32) -> ControlError,
) -> Result<Answer, ControlError> {
    match entities.is_empty() && id != 0 {
        true => Err(missing(id)),
        false => Ok(Answer::of(entities)),
    }
}

/// The cells of arrays with these names and sizes.
fn arrays<'a>(
    kind: &str,
    id: u32,
    index: Option<&m::Index>,
    objects: impl Iterator<Item = (Array, &'a str, u64)>,
) -> Result<Answer, ControlError> {
    refuse!(id == 0 && index.is_some() => InvalidArgument, "a read of all {kind}s takes no index");
    let mut answer = Answer::default();
    for (array, name, size) in objects {
        let (first, end) = match cell_of(index, size, || format!("{kind} '{name}'"))? {
            None => (0, size),
            Some(index) => (index, index + 1),
        };
        if first < end {
            answer.parts.push_back(Part::Array(array, first, end));
        }
    }
    Ok(answer)
}
