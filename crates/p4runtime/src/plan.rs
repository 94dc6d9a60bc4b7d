//! What one P4Runtime update comes to in the engine, or the reason to refuse it.

use crate::pipeline::{Noted, ObjectNote};
use engine::control::{ControlError, Entity, Operation, Update};
use smallvec::SmallVec;

/// The plan of one P4Runtime update: the engine's updates, which succeed together, then a note.
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

/// Position and reason of an update that was refused.
pub type Failure = (usize, ControlError);
