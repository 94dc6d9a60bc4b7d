//! What one kind of entity contributes to a new pipeline's state: updates by P4Runtime ids, from a place in the old state on.

use crate::pipeline::Pipeline;
use crate::plan::Plan;
use crate::served::Served;
use engine::Switch;
use engine::control::{ControlError, Entity, Operation};
use engine::takeover::Takeover;

/// The plans of a batch; `None` stands for one that has been applied.
pub(crate) type Plans = Vec<Option<Result<Plan, ControlError>>>;

/// A position in the list of objects of a kind, and a position within the object.
pub(crate) type Place = (usize, u64);

/// One kind of object's part of it: updates for some of what is not taken over as it is, from a place on. It returns the place that
/// follows, `None` behind the last object.
pub(crate) type Keep = fn(&mut Transfer<'_>, &Switch, Place) -> Result<Option<Place>, ControlError>;

/// The most cells that one step copies.
pub(crate) const CELLS: usize = 512;
/// The most members or groups that one step copies.
pub(crate) const OBJECTS: usize = 128;

/// The updates that recreate an old switch's state, planned for the new pipeline. Objects are found by their
/// P4Runtime ids.
pub(crate) struct Transfer<'a> {
    pub old: &'a Pipeline,
    pub new: &'a Pipeline,
    pub moves: &'a Takeover,
    pub plans: Plans,
}

impl Transfer<'_> {
    fn push(&mut self, operation: Operation, entity: &dyn Served) {
        self.plans.push(Some(entity.plan(self.new, operation)));
    }

    pub fn insert(&mut self, entity: &dyn Served) {
        self.push(Operation::Insert, entity);
    }

    pub fn modify(&mut self, entity: &dyn Served) {
        self.push(Operation::Modify, entity);
    }

    pub fn update(&mut self, operation: Operation, entity: Entity) {
        self.plans.push(Some(Ok(Plan::one(operation, entity))));
    }
}
