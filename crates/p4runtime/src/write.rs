//! Writes: from updates of a request to the engine's, and their application with or without rollback.

use crate::details::FailedElement;
use crate::entities;
use crate::errors::invalid;
use crate::messages as m;
use crate::pipeline::{Pipeline, replaced};
use crate::plan::{Failure, Plan};
use bytes::Bytes;
use engine::Switch;
use engine::control::{Atomicity, ControlError, ControlErrorCode, Operation, Update};
use prost::{DecodeError, Message};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A `p4.v1.WriteRequest` whose updates are not decoded yet.
#[derive(Clone, Debug)]
pub struct WriteRequest {
    /// The field `device_id`.
    pub device_id: u64,
    /// The field `role_id`, which is deprecated.
    pub role_id: u64,
    /// The field `role`.
    pub role: String,
    /// The field `election_id`, if it is set.
    pub election_id: Option<u128>,
    /// The number of the atomicity.
    pub atomicity: i32,
    /// The updates, each serialized.
    pub updates: Vec<Bytes>,
}

impl WriteRequest {
    /// Decodes a serialized `p4.v1.WriteRequest`, but leaves its updates encoded. Fails if the bytes are not such a
    /// message.
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

/// The decoded updates of a request, and how far they have been applied.
#[derive(Debug)]
pub struct Batch {
    pipeline: Arc<Pipeline>,
    plans: Vec<Option<Result<Plan, ControlError>>>,
    at: usize,
    failures: Vec<Failure>,
    kinds: Vec<(UpdateKind, usize)>,
}

/// The entity and the type of an update, as in `("table_entry", "insert")`; `"unspecified"` for a missing one.
pub type UpdateKind = (&'static str, &'static str);

/// The numbers of updates by their kind and by the name of their status, which is `"OK"` for those that were applied.
pub type Tally = BTreeMap<(UpdateKind, Cow<'static, str>), usize>;

fn kind_of(update: &entities::Update) -> UpdateKind {
    const NONE: &str = "unspecified";
    let entity = update.entity.as_ref().and_then(|e| e.entity.as_ref());
    let word = match update.kind {
        1 => "insert",
        2 => "modify",
        3 => "delete",
        _ => NONE,
    };
    (entity.map_or(NONE, |entity| entity.name()), word)
}

impl Batch {
    /// Plans all updates of a request. Fails if one of the updates cannot be decoded; other errors appear when the
    /// update is applied.
    pub fn new(pipeline: Arc<Pipeline>, request: &WriteRequest) -> Result<Batch, DecodeError> {
        let mut plans = Vec::with_capacity(request.updates.len());
        let mut kinds: Vec<(UpdateKind, usize)> = Vec::new();
        for data in &request.updates {
            let mut update = entities::Update::default();
            update.merge(data.clone())?;
            plans.push(Some(pipeline.plan(&update, &request.role)));
            let kind = kind_of(&update);
            match kinds.last_mut() {
                // Nearly all batches are of one kind.
                Some((last, count)) if *last == kind => *count += 1,
                _ => kinds.push((kind, 1)),
            }
        }
        Ok(Batch {
            kinds,
            ..Batch::of(pipeline, plans)
        })
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
            kinds: Vec::new(),
        }
    }

    /// Counts the updates of a request by kind and status. `failures` are those of the batch, in ascending order.
    pub fn tally(&self, failures: &[FailedElement]) -> Tally {
        let mut tally = Tally::new();
        let (mut end, mut failures) = (0, failures.iter().peekable());
        for &(kind, count) in &self.kinds {
            end += count;
            let mut applied = count;
            while let Some(failure) = failures.next_if(|failure| failure.at < end) {
                *tally.entry((kind, failure.code.clone())).or_default() += 1;
                applied -= 1;
            }
            if applied > 0 {
                *tally.entry((kind, "OK".into())).or_default() += applied;
            }
        }
        tally
    }

    /// Returns the number of updates in the batch.
    pub fn len(&self) -> usize {
        self.plans.len()
    }

    /// Returns whether the batch has no updates.
    pub fn is_empty(&self) -> bool {
        self.plans.is_empty()
    }

    /// Returns the failures of the updates that have been applied so far, and forgets them.
    pub fn take_failures(&mut self) -> Vec<Failure> {
        std::mem::take(&mut self.failures)
    }

    /// Returns the number of updates that have been applied or have failed.
    pub fn applied(&self) -> usize {
        self.at
    }

    /// Applies the next update on its own, and records its failure. Returns true if more updates remain.
    pub fn apply_next(&mut self, switch: &mut Switch) -> bool {
        let at = self.at;
        let Some(Some(plan)) = self.plans.get_mut(at) else {
            return false;
        };
        self.at += 1;
        let result = match plan {
            Ok(plan) => self.pipeline.apply(switch, plan),
            Err(error) => Err(error.clone()),
        };
        self.failures.extend(result.err().map(|error| (at, error)));
        self.plans[at] = None;
        self.at < self.plans.len()
    }

    /// Applies all updates, or none if one fails; all other updates then fail with ABORTED.
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
        let results = switch.write_batch(updates.iter().map(|(_, u)| *u), mode);
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
    fn apply(&self, switch: &mut Switch, plan: &mut Plan) -> Result<(), ControlError> {
        if !Arc::ptr_eq(switch.program(), &self.program) {
            return Err(replaced("Write"));
        }
        if let [update] = &plan.updates[..] {
            switch.write(update)?;
        } else {
            let results = switch.write_batch(&plan.updates, Atomicity::RollbackOnError);
            let errors = results.into_iter().filter_map(Result::err);
            let mut errors: Vec<ControlError> = errors.collect();
            let own = errors
                .iter()
                .position(|e| e.code != ControlErrorCode::Aborted);
            if !errors.is_empty() {
                return Err(errors.swap_remove(own.unwrap_or(0)));
            }
        }
        if let Some(note) = plan.note.take() {
            let (operation, note) = *note;
            self.keep(operation, note);
        }
        Ok(())
    }

    /// Returns the plan for an update, or the reason to refuse it.
    pub(crate) fn plan(&self, update: &entities::Update, role: &str) -> Result<Plan, ControlError> {
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
        let entity = entity.served();
        self.info.check_role(role, entity.object_id())?;
        entity.plan(self, operation)
    }
}
