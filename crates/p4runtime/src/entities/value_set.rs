//! Members of value sets (specification, "ValueSetEntry").

use super::EntityKind;
use super::array::modify_only;
use crate::answer::{Answer, Source};
use crate::entries::check_given;
use crate::field_match::{field_match, put_match};
use crate::info::ValueSet;
use crate::messages::{FieldMatch, messages};
use crate::pipeline::Pipeline;
use crate::plan::Plan;
use crate::served::Served;
use crate::transfer::{Place, Transfer};
use engine::Switch;
use engine::control::{ControlError, Entity, Operation};
use engine::refuse;
use ir::{KeyMatch, ValueSetId};
use prost::Message;
use std::collections::BTreeSet;

messages! {
    ValueSetMember { matches: Vec<FieldMatch> = (message, repeated) "1"; }
    ValueSetEntry { id: u32 = (uint32) "1"; members: Vec<ValueSetMember> = (message, repeated) "2"; }
}

impl Served for ValueSetEntry {
    fn object_id(&self) -> u32 {
        self.id
    }

    fn plan(&self, pipeline: &Pipeline, operation: Operation) -> Result<Plan, ControlError> {
        let set = pipeline.info.value_sets.by_id(self.id)?;
        let label = &set.label;
        modify_only(operation, || label.clone())?;
        let fields = pipeline.program.value_sets[set.number].widths.len() as u32;
        let members = self.members.iter();
        let members = members.map(|member| matches(set, fields, &member.matches));
        let members: Vec<Vec<KeyMatch>> = members.collect::<Result<_, ControlError>>()?;
        let (count, size) = (members.len(), set.size);
        refuse!(
            size != 0 && count as u64 > size => ResourceExhausted,
            "{label}: {count} members, it holds {size}"
        );
        // Equal for equal matches only.
        let distinct: BTreeSet<String> = members.iter().map(|m| format!("{m:?}")).collect();
        refuse!(distinct.len() != count => AlreadyExists, "{label}: a member is given twice");
        let value_set = ValueSetId(set.number as u32);
        Ok(Plan::one(
            operation,
            Entity::ValueSet { value_set, members },
        ))
    }

    fn answer(&self, source: &mut Source<'_>) -> Result<Answer, ControlError> {
        let sets = source.wanted(&source.pipeline.info.value_sets, self.id)?;
        let sets = sets.map(|set| {
            let members = source
                .switch
                .value_set_members(ValueSetId(set.number as u32))?;
            let members = members.iter().map(|member| {
                let mut out = Vec::new();
                for (id, key_match) in (1..).zip(member) {
                    if let Some(field) = set.fields.get(id) {
                        put_match(&mut out, 1, field, key_match);
                    }
                }
                ValueSetMember::decode(&out[..]).unwrap_or_default()
            });
            let (id, members) = (set.id, members.collect());
            Ok(EntityKind::ValueSet(ValueSetEntry { id, members }))
        });
        Ok(Answer::of(sets.collect::<Result<Vec<_>, ControlError>>()?))
    }

    fn at_once(&self) -> Option<(u32, u32)> {
        Some((self.id, 0))
    }
}

fn matches(
    set: &ValueSet,
    fields: u32,
    given: &[FieldMatch],
) -> Result<Vec<KeyMatch>, ControlError> {
    let mut used = 0;
    let matches = (1..=fields).map(|id| {
        let field = set.fields.by_id(id)?;
        let found = given.iter().find(|found| found.field_id == id);
        used += usize::from(found.is_some());
        let key_match = field_match(&set.label, field, found)?;
        // One form of don't-care, whatever the field's kind.
        Ok(found.map_or(KeyMatch::Any, |_| key_match))
    });
    let matches = matches.collect::<Result<Vec<KeyMatch>, ControlError>>()?;
    check_given(&set.label, &set.fields, given, used)?;
    Ok(matches)
}

/// Plans the update that copies the members of one of the old pipeline's value sets, the one at position `at` in the
/// P4Info, to the switch with the new pipeline; none if the value set is moved as a whole. Returns the position at
/// which to continue, `None` after the last value set.
pub(super) fn transfer(
    transfer: &mut Transfer<'_>,
    switch: &Switch,
    (at, _): Place,
) -> Result<Option<Place>, ControlError> {
    let (old, moves) = (transfer.old, transfer.moves);
    let Some(set) = old.info.value_sets.list.get(at) else {
        return Ok(None);
    };
    let members = switch.value_set_members(ValueSetId(set.number as u32))?;
    if !moves.has_value_set(set.number) && !members.is_empty() {
        let target = transfer.new.info.value_sets.by_id(set.id)?;
        let entity = Entity::ValueSet {
            value_set: ValueSetId(target.number as u32),
            members: members.to_vec(),
        };
        transfer.update(Operation::Modify, entity);
    }
    Ok(Some((at + 1, 0)))
}
