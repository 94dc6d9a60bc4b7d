//! Reads: what the entities of a request select, in slices, as of the time at which it began.
//!
//! Tables are read from snapshots, and arrays cell by cell: [`Reading::fetch`] copies a slice while the switch waits, and
//! [`Reading::encode`] makes a response of it while packets pass.

use crate::encode::nested;
use crate::entities::EntityKind;
use crate::errors::{invalid, not_found};
use crate::info::{Named, Names};
use crate::messages as m;
use crate::pipeline::{Pipeline, replaced};
use crate::write::Failure;
use engine::Switch;
use engine::control::{ControlError, TableSnapshot};
use ir::TableId;
use prost::{DecodeError, Message};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::sync::Arc;

/// The entries, or cells, of one slice.
pub(crate) const PER_SLICE: u32 = 512;

/// A decoded `p4.v1.ReadRequest`.
#[derive(Clone, Debug)]
pub struct ReadRequest(m::ReadRequest);

impl ReadRequest {
    /// Decodes a serialized `p4.v1.ReadRequest`. Fails if the bytes are not such a message.
    pub fn decode(data: &[u8]) -> Result<ReadRequest, DecodeError> {
        m::ReadRequest::decode(data).map(ReadRequest)
    }
}

/// The answer to a `p4.v1.ReadRequest`, as far as it has not been given.
#[derive(Debug)]
pub struct Reading {
    pipeline: Arc<Pipeline>,
    /// The answers that are still to be given, by entity of the request.
    asked: VecDeque<Result<Answer, ControlError>>,
    count: usize,
    failures: Vec<Failure>,
    /// The number of snapshots of tables that it opened.
    #[cfg(test)]
    pub(crate) snapshots: usize,
}

/// The source of one request's answers: a switch, and the snapshots that it opened, one of each table, because each has to be kept up to date.
pub(crate) struct Source<'a> {
    pub pipeline: &'a Pipeline,
    pub switch: &'a mut Switch,
    role: &'a str,
    snapshots: BTreeMap<TableId, Arc<TableSnapshot>>,
}

impl<'a> Source<'a> {
    pub fn snapshot(&mut self, table: TableId) -> Result<Arc<TableSnapshot>, ControlError> {
        if let Some(open) = self.snapshots.get(&table) {
            return Ok(open.clone());
        }
        let open = self.switch.snapshot_table(table)?;
        self.snapshots.insert(table, open.clone());
        Ok(open)
    }

    /// Returns the object with this id or, if `id` is 0, all objects that the role may access. Fails if there is no
    /// such object.
    pub fn wanted<T: Named>(
        &self,
        objects: &'a Names<T>,
        id: u32,
    ) -> Result<impl Iterator<Item = &'a T> + use<'a, T>, ControlError> {
        if id != 0 {
            objects.by_id(id)?;
        }
        let (info, role) = (&self.pipeline.info, self.role);
        Ok(objects.list.iter().filter(move |object| match id {
            0 => info.role_may(role, object.id()),
            id => object.id() == id,
        }))
    }

    fn answer(&mut self, entity: &EntityKind) -> Result<Answer, ControlError> {
        let entity = entity.served();
        self.pipeline
            .info
            .check_role(self.role, entity.object_id())?;
        if !Arc::ptr_eq(self.switch.program(), &self.pipeline.program) {
            return Err(replaced("Read"));
        }
        entity.answer(self)
    }
}

/// The answer to one entity of a request.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    parts: VecDeque<Part>,
    /// True if an error follows if nothing is found.
    pub must_find: bool,
}

#[derive(Debug)]
enum Part {
    Found(Arc<Vec<EntityKind>>),
    Copied(Slice),
    Rest(Box<dyn Sliced>),
}

/// State that is copied from the switch slice by slice.
pub(crate) trait Sliced: Debug + Send + Sync {
    /// Copies the next slice of the state, and returns it with true if more slices follow.
    fn fetch(&mut self, switch: &Switch) -> Result<(Slice, bool), ControlError>;
}

/// State that has been copied from the switch.
pub(crate) trait Copied: Debug + Send + Sync {
    /// Appends the requested parts of the state, as fields of a `ReadResponse`.
    fn encode(&self, pipeline: &Pipeline, out: &mut Vec<u8>);
}

impl Copied for Arc<Vec<EntityKind>> {
    fn encode(&self, _: &Pipeline, out: &mut Vec<u8>) {
        for kind in &**self {
            nested(out, 1, |out| kind.encode(out));
        }
    }
}

/// State that has been copied from the switch and not encoded.
#[derive(Debug)]
pub struct Slice(Box<dyn Copied>);

impl Slice {
    pub(crate) fn of(copied: impl Copied + 'static) -> Slice {
        Slice(Box::new(copied))
    }
}

impl Reading {
    /// Begins to answer a read request. Entities that are answered at once are fetched now, the others in slices.
    pub fn new(
        pipeline: Arc<Pipeline>,
        ReadRequest(request): &ReadRequest,
        switch: &mut Switch,
    ) -> Reading {
        let mut source = Source {
            pipeline: &pipeline,
            switch,
            role: &request.role,
            snapshots: BTreeMap::new(),
        };
        // Each read that is answered at once is made once, even if the request asks for it several times.
        let mut known = BTreeMap::new();
        let asked = request.entities.iter().map(|entity| {
            let entity = entity.entity.as_ref().ok_or_else(|| {
                invalid("the request has no entity, or one of a later version of P4Runtime")
            })?;
            let objects = entity.served().at_once().map(|ids| (entity.word(), ids));
            if let Some(found) = objects.and_then(|objects| known.get(&objects)) {
                return Ok(Answer::shared(Arc::clone(found)));
            }
            let answer = source.answer(entity)?;
            if let (Some(objects), Some(Part::Found(found))) = (objects, answer.parts.front()) {
                known.insert(objects, Arc::clone(found));
            }
            Ok(answer)
        });
        let asked: VecDeque<_> = asked.collect();
        Reading {
            count: asked.len(),
            #[cfg(test)]
            snapshots: source.snapshots.len(),
            pipeline,
            asked,
            failures: Vec::new(),
        }
    }

    /// Returns the number of entities in the request, and the failures of those refused so far.
    pub fn failures(&self) -> (usize, &[Failure]) {
        (self.count, &self.failures)
    }

    /// Copies the next slice from the switch and returns it; `None` at the end.
    pub fn fetch(&mut self, switch: &Switch) -> Option<Slice> {
        loop {
            let at = self.count - self.asked.len();
            let error = match self.asked.front_mut()? {
                Ok(answer) => match answer.fetch(&self.pipeline, switch) {
                    Ok(Some(slice)) => return Some(slice),
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

    /// Encodes the slice that was fetched last as a serialized `ReadResponse`; `None` if the slice contains nothing
    /// that was requested.
    pub fn encode(&mut self, slice: Slice) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        slice.0.encode(&self.pipeline, &mut out);
        if let Some(Ok(answer)) = self.asked.front_mut()
            && !out.is_empty()
        {
            answer.must_find = false;
        }
        (!out.is_empty()).then_some(out)
    }
}

impl Answer {
    pub fn of(entities: Vec<EntityKind>) -> Answer {
        Answer::shared(Arc::new(entities))
    }

    fn shared(entities: Arc<Vec<EntityKind>>) -> Answer {
        let mut answer = Answer::default();
        answer.parts.push_back(Part::Found(entities));
        answer
    }

    /// Builds an answer from entities. Fails with the error that `missing` returns if a single object was requested
    /// (`id` is not 0) but not found.
    pub fn found(
        entities: Vec<EntityKind>,
        id: u32,
        missing: impl Fn(u32) -> ControlError,
    ) -> Result<Answer, ControlError> {
        match entities.is_empty() && id != 0 {
            true => Err(missing(id)),
            false => Ok(Answer::of(entities)),
        }
    }

    /// Appends state that has already been read to the answer.
    pub fn push_copied(&mut self, copied: impl Copied + 'static) {
        self.parts.push_back(Part::Copied(Slice::of(copied)));
    }

    pub fn push(&mut self, rest: impl Sliced + 'static) {
        self.parts.push_back(Part::Rest(Box::new(rest)));
    }

    fn fetch(
        &mut self,
        pipeline: &Pipeline,
        switch: &Switch,
    ) -> Result<Option<Slice>, ControlError> {
        let Some(part) = self.parts.pop_front() else {
            return Ok(None);
        };
        Ok(Some(match part {
            Part::Found(entities) => Slice::of(entities),
            Part::Copied(slice) => slice,
            Part::Rest(mut rest) => {
                if !Arc::ptr_eq(switch.program(), &pipeline.program) {
                    return Err(replaced("Read"));
                }
                let (slice, more) = rest.fetch(switch)?;
                if more {
                    self.parts.push_front(Part::Rest(rest));
                }
                slice
            }
        }))
    }
}
