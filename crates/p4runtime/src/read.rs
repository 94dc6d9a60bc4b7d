//! Reads: what the entities of a request select, in slices, as of the time at which it began.
//!
//! Tables are read from snapshots, and arrays cell by cell: [`Reading::fetch`] copies a slice while the switch waits, and
//! [`Reading::encode`] makes a response of it while packets pass.

use crate::answer::{Answer, Slice, Source};
use crate::entities::{self, EntityKind};
use crate::errors::{invalid, not_found};
use crate::pipeline::{Pipeline, replaced};
use crate::plan::Failure;
use engine::Switch;
use engine::control::ControlError;
use prost::{DecodeError, Message};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::sync::Arc;

/// A decoded `p4.v1.ReadRequest`.
#[derive(Clone, Debug)]
pub struct ReadRequest(entities::ReadRequest);

impl ReadRequest {
    /// Decodes a serialized `p4.v1.ReadRequest`. Fails if the bytes are not such a message.
    pub fn decode(data: &[u8]) -> Result<ReadRequest, DecodeError> {
        entities::ReadRequest::decode(data).map(ReadRequest)
    }
}

/// The part of the answer to a `p4.v1.ReadRequest` that has not been returned yet.
#[derive(Debug)]
pub struct Reading {
    pipeline: Arc<Pipeline>,
    /// The remaining answers, one for each entity of the request.
    asked: VecDeque<Result<Answer, ControlError>>,
    count: usize,
    failures: Vec<Failure>,
    /// The number of table snapshots that the request opened.
    #[cfg(test)]
    pub(crate) snapshots: usize,
}

impl Reading {
    /// Begins to answer a read request. Small entities (such as groups, digests and value sets) are copied from the
    /// switch now, entries and cells later in slices ([`Self::fetch`]).
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
            let answer = answer(&mut source, entity)?;
            if let (Some(objects), Some(found)) = (objects, answer.at_once()) {
                known.insert(objects, found);
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

    /// Copies the next slice from the switch and returns it; `None` when all entities are answered. Entities that
    /// cannot be read are passed over, and recorded in [`Self::failures`].
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

    /// Encodes the slice that was fetched last as a serialized `ReadResponse`, and returns that; `None` if the slice
    /// contains nothing that was requested.
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

/// Begins the answer to one entity of a request. Fails if the role may not read the entity, or if the switch has got
/// another program since the pipeline was made.
fn answer(source: &mut Source<'_>, entity: &EntityKind) -> Result<Answer, ControlError> {
    let entity = entity.served();
    source
        .pipeline
        .info
        .check_role(source.role, entity.object_id())?;
    if !Arc::ptr_eq(source.switch.program(), &source.pipeline.program) {
        return Err(replaced("Read"));
    }
    entity.answer(source)
}
