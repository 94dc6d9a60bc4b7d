//! Externs without an entity of their own: no architecture has any.

use crate::answer::{Answer, Source};
use crate::errors::unimplemented;
use crate::messages::messages;
use crate::pipeline::Pipeline;
use crate::plan::Plan;
use crate::served::Served;
use engine::control::{ControlError, Operation};

messages! {
    ExternEntry { extern_type_id: u32 = (uint32) "1"; }
}

impl Served for ExternEntry {
    fn plan(&self, _: &Pipeline, _: Operation) -> Result<Plan, ControlError> {
        Err(no_externs())
    }

    fn answer(&self, _: &mut Source<'_>) -> Result<Answer, ControlError> {
        match self.extern_type_id {
            // A read of everything, and there is nothing.
            0 => Ok(Answer::default()),
            _ => Err(no_externs()),
        }
    }
}

fn no_externs() -> ControlError {
    unimplemented(
        "extern_entry: no architecture has externs beyond those with entities of their own",
    )
}
