//! What each kind of entity has in common: it can be written and read.

use crate::answer::{Answer, Source};
use crate::pipeline::Pipeline;
use crate::plan::Plan;
use engine::control::{ControlError, Operation};

/// A message that names an entity of the control plane, or selects several in a read.
pub(crate) trait Served {
    /// Returns the P4Info id of the object to which the entity belongs; 0 if there is none.
    fn object_id(&self) -> u32 {
        0
    }

    /// Returns the plan for an update of the entity, or the reason to refuse the update.
    fn plan(&self, pipeline: &Pipeline, operation: Operation) -> Result<Plan, ControlError>;

    /// Returns the entities that a read selects, restricted to those that the reader's role may access. Fails if the
    /// read is not valid.
    fn answer(&self, source: &mut Source<'_>) -> Result<Answer, ControlError>;

    /// Returns two ids that identify what a read of this entity selects, so that equal reads of a request share one
    /// copy; `None` if the answer is copied in slices.
    fn at_once(&self) -> Option<(u32, u32)> {
        None
    }
}
