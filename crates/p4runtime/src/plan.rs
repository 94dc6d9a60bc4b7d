//! What one P4Runtime update comes to in the engine, or the reason to refuse it.

use crate::pipeline::{Noted, ObjectNote};
use engine::control::{ControlError, Entity, Operation, Update};
use smallvec::SmallVec;

/// What a P4Runtime update does: updates of the engine, of which all or none are applied, and then a change of a
/// note.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    pub updates: SmallVec<[Update; 1]>,
    pub note: Option<Box<(Operation, (Noted, ObjectNote))>>,
}

impl Plan {
    pub fn of(updates: SmallVec<[Update; 1]>) -> Plan {
        let note = None;
        Plan { updates, note }
    }

    pub fn one(operation: Operation, entity: Entity) -> Plan {
        Plan::of(SmallVec::from_buf([Update { operation, entity }]))
    }

    pub fn noted(operation: Operation, entity: Entity, of: Noted, note: ObjectNote) -> Plan {
        Plan {
            note: Some(Box::new((operation, (of, note)))),
            ..Plan::one(operation, entity)
        }
    }
}

pub(crate) fn modify(entity: Entity) -> Update {
    Update {
        operation: Operation::Modify,
        entity,
    }
}

/// The position of a refused update in its batch, and the reason.
pub type Failure = (usize, ControlError);
