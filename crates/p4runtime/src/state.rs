//! From one pipeline to another: the updates that bring a switch whose program has just been loaded to the state of another switch.

use crate::entities::{self, EntityKind, TRANSFERS};
use crate::messages as m;
use crate::pipeline::Pipeline;
use crate::write::{Batch, Plan};
use engine::Switch;
use engine::control::{ControlError, Entity, Entry, InstalledEntry, Operation};
use ir::TableId;
use std::sync::Arc;

/// One kind of entity's part of it.
pub(crate) type Keep = fn(&mut Transfer<'_>) -> Result<(), ControlError>;

/// Updates by P4Runtime ids, planned for the new pipeline.
pub(crate) struct Transfer<'a> {
    pub old: &'a Pipeline,
    pub new: &'a Pipeline,
    /// With the old pipeline.
    pub switch: &'a Switch,
    /// The entries of the new switch.
    pub initial: Vec<(TableId, Entry)>,
    plans: Vec<Option<Result<Plan, ControlError>>>,
}

impl Batch {
    /// The updates that bring a switch whose program has just been loaded, with these entries ([`initial_entries`]), to the state of the old one.
    /// INVALID_ARGUMENT if a table with entries changed its shape. The meaning of strings is taken over.
    pub fn to_reach(
        new: Arc<Pipeline>,
        initial: Vec<(TableId, Entry)>,
        old: &Pipeline,
        old_switch: &Switch,
    ) -> Result<Batch, ControlError> {
        for (uri, translation) in &new.info.translations {
            if let Some(other) = old.info.translations.get(uri) {
                translation.inherit(other);
            }
        }
        let mut transfer = Transfer {
            old,
            new: &new,
            switch: old_switch,
            initial,
            plans: Vec::new(),
        };
        for keep in TRANSFERS {
            keep(&mut transfer)?;
        }
        let plans = transfer.plans;
        Ok(Batch::of(new, plans))
    }
}

/// The entries of a switch that can be deleted.
pub fn initial_entries(switch: &Switch) -> Result<Vec<(TableId, Entry)>, ControlError> {
    let mut found = Vec::new();
    for table in (0..switch.program().tables.len() as u32).map(TableId) {
        let entries = switch.read_entries(table)?.into_iter();
        let entries = entries.filter(|read: &InstalledEntry| !read.is_const);
        found.extend(entries.map(|read| (table, read.entry)));
    }
    Ok(found)
}

impl Transfer<'_> {
    fn push(&mut self, kind: i32, entity: EntityKind) {
        let entity = Some(entities::Entity {
            entity: Some(entity),
        });
        let plan = self.new.plan(&m::Update { kind, entity }, "");
        self.plans.push(Some(plan));
    }

    pub fn insert(&mut self, entity: EntityKind) {
        self.push(1, entity);
    }

    pub fn modify(&mut self, entity: EntityKind) {
        self.push(2, entity);
    }

    pub fn update(&mut self, operation: Operation, entity: Entity) {
        self.plans.push(Some(Ok(Plan::one(operation, entity))));
    }
}
