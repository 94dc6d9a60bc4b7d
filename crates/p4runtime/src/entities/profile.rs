//! Action profiles (specification, "ActionProfileMember & ActionProfileGroup"): members, groups and one-shot sets.
//!
//! Ports are the architecture's, not translated. The deprecated numeric ports are taken too, and given back to who used them.

use super::EntityKind;
use super::replication::most;
use crate::answer::{Answer, Source};
use crate::entries::is_numeric;
use crate::errors::invalid;
use crate::info::{Profile, Table};
use crate::messages::{self as m, Watch, messages};
use crate::pipeline::{Noted, ObjectNote, Pipeline, missing};
use crate::plan::Plan;
use crate::served::Served;
use crate::transfer::{OBJECTS, Place, Transfer};
use crate::values;
use bytes::Bytes;
use engine::Switch;
use engine::control::{
    ControlError, Entity, GroupContents, GroupMember as Member, Operation, Target, WeightedAction,
};
use engine::refuse;
use ir::{ActionCall, ActionProfileId};
use std::collections::BTreeSet;

messages! {
    ActionProfileMember {
        action_profile_id: u32 = (uint32) "1";
        member_id: u32 = (uint32) "2";
        action: Option<m::Action> = (message, optional) "3";
    }
    ActionProfileGroup {
        action_profile_id: u32 = (uint32) "1";
        group_id: u32 = (uint32) "2";
        members: Vec<GroupMember> = (message, repeated) "3";
        max_size: i32 = (int32) "4";
    }
    GroupMember { member_id: u32 = (uint32) "1"; weight: i32 = (int32) "2"; | watch: Watch = "Watch" "3, 4"; }
}

impl Served for ActionProfileMember {
    fn object_id(&self) -> u32 {
        self.action_profile_id
    }

    fn plan(&self, pipeline: &Pipeline, operation: Operation) -> Result<Plan, ControlError> {
        let profile = pipeline.info.profiles.by_id(self.action_profile_id)?;
        let name = &profile.name;
        refuse!(
            self.member_id == 0 => InvalidArgument,
            "action profile '{name}': a member's id is not zero"
        );
        let call = match (operation, &self.action) {
            (Operation::Delete, _) => None,
            (_, None) => {
                return Err(invalid(format!(
                    "action profile '{name}': the member has no action"
                )));
            }
            (_, Some(action)) => Some(pipeline.member_call(profile, action)?),
        };
        let entity = Entity::ActionProfileMember {
            profile: profile.profile_id(),
            member_id: self.member_id,
            call,
        };
        Ok(Plan::one(operation, entity))
    }

    fn answer(&self, source: &mut Source<'_>) -> Result<Answer, ControlError> {
        refuse!(
            self.member_id != 0 && self.action_profile_id == 0 => InvalidArgument,
            "a read of the members of all action profiles takes no member id"
        );
        let pipeline = source.pipeline;
        let mut entities = Vec::new();
        for profile in source.wanted(&pipeline.info.profiles, self.action_profile_id)? {
            let contents = source.switch.action_profile(profile.profile_id())?;
            let ids = contents.member_ids();
            for id in ids.filter(|id| [0, *id].contains(&self.member_id)) {
                let call = contents.member(id).into_iter();
                entities.extend(call.map(|call| pipeline.member_message(profile, id, call)));
            }
        }
        super::found(entities, self.member_id, |id| missing("member", id))
    }

    fn at_once(&self) -> Option<(u32, u32)> {
        Some((self.action_profile_id, self.member_id))
    }
}

impl Served for ActionProfileGroup {
    fn object_id(&self) -> u32 {
        self.action_profile_id
    }

    fn plan(&self, pipeline: &Pipeline, operation: Operation) -> Result<Plan, ControlError> {
        let profile = pipeline.info.profiles.by_id(self.action_profile_id)?;
        let (name, group_id) = (&profile.name, self.group_id);
        let what = format!("action profile '{name}', group {group_id}");
        refuse!(
            group_id == 0 => InvalidArgument,
            "action profile '{name}': a group's id is not zero"
        );
        let mut contents = GroupContents {
            members: Vec::new(),
            max_size: 0,
        };
        if operation != Operation::Delete {
            refuse!(
                !profile.with_selector => InvalidArgument,
                "action profile '{name}' has no selector, so no groups"
            );
            contents.max_size = checked_max_size(profile, self.max_size, &what)?;
            for member in &self.members {
                contents.members.push(Member {
                    member_id: member.member_id,
                    weight: profile.checked_weight(member.weight, &what)?,
                    watch_port: watch_port(pipeline, member.watch.as_ref(), &what)?,
                });
            }
            let ids: BTreeSet<u32> = contents.members.iter().map(|m| m.member_id).collect();
            refuse!(
                ids.len() != contents.members.len() => InvalidArgument,
                "{what}: a member is in it twice; give it more weight instead"
            );
        }
        let numeric = self.members.iter();
        let numeric = numeric.filter(|member| is_numeric(member.watch.as_ref()));
        let note = ObjectNote {
            metadata: Bytes::new(),
            numeric: numeric.map(|member| (member.member_id, 0)).collect(),
        };
        let entity = Entity::ActionProfileGroup {
            profile: profile.profile_id(),
            group_id,
            contents,
        };
        Ok(Plan::noted(
            operation,
            entity,
            Noted::Group(profile.id, group_id),
            note,
        ))
    }

    fn answer(&self, source: &mut Source<'_>) -> Result<Answer, ControlError> {
        refuse!(
            self.group_id != 0 && self.action_profile_id == 0 => InvalidArgument,
            "a read of the groups of all action profiles takes no group id"
        );
        let pipeline = source.pipeline;
        let mut entities = Vec::new();
        for profile in source.wanted(&pipeline.info.profiles, self.action_profile_id)? {
            let contents = source.switch.action_profile(profile.profile_id())?;
            let ids = contents.group_ids();
            for id in ids.filter(|id| [0, *id].contains(&self.group_id)) {
                let group = contents.group(id).into_iter();
                entities.extend(group.map(|group| pipeline.group_message(profile, id, &group)));
            }
        }
        super::found(entities, self.group_id, |id| missing("group", id))
    }

    fn at_once(&self) -> Option<(u32, u32)> {
        Some((self.action_profile_id, self.group_id))
    }
}

/// Plans the updates that copy members, then groups, of one of the old pipeline's action profiles, the one at
/// position `at` in the P4Info, to the switch with the new pipeline; none if the profile is moved as a whole. It
/// starts at `from`: the id of a member, or that of a group plus `GROUPS`. Returns the place at which to continue,
/// `None` after the last profile.
pub(super) fn transfer(
    transfer: &mut Transfer<'_>,
    switch: &Switch,
    (at, from): Place,
) -> Result<Option<Place>, ControlError> {
    let (old, moves) = (transfer.old, transfer.moves);
    let Some(profile) = old.info.profiles.list.get(at) else {
        return Ok(None);
    };
    if moves.has_profile(profile.profile_id()) {
        return Ok(Some((at + 1, 0)));
    }
    let contents = switch.action_profile(profile.profile_id())?;
    let Some(first) = from.checked_sub(GROUPS) else {
        let mut ids = contents.member_ids_from(from as u32);
        for id in ids.by_ref().take(OBJECTS) {
            let call = contents.member(id);
            if let Some(call) = call {
                transfer.insert(old.member_message(profile, id, call).served());
            }
        }
        return Ok(Some((at, ids.next().map_or(GROUPS, u64::from))));
    };
    let mut ids = contents.group_ids_from(first as u32);
    for id in ids.by_ref().take(OBJECTS) {
        let group = contents.group(id);
        if let Some(group) = group {
            transfer.insert(old.group_message(profile, id, &group).served());
        }
    }
    Ok(Some(
        ids.next()
            .map_or((at + 1, 0), |id| (at, GROUPS + u64::from(id))),
    ))
}

/// The place at which the groups of a profile begin; the members' places, their ids, are below it.
const GROUPS: u64 = 1 << 32;

impl Profile {
    pub fn profile_id(&self) -> ActionProfileId {
        ActionProfileId(self.number as u32)
    }

    fn checked_weight(&self, weight: i32, what: &str) -> Result<u32, ControlError> {
        if self.weights_disallowed {
            return match weight {
                0 => Ok(1),
                _ => Err(invalid(format!("{what}: weights are not allowed"))),
            };
        }
        refuse!(weight <= 0 => InvalidArgument, "{what}: weight {weight} is not above zero");
        let most = self.max_member_weight;
        refuse!(
            most != 0 && weight > most => InvalidArgument,
            "{what}: weight {weight} is above {most}"
        );
        Ok(weight as u32)
    }

    fn shown_weight(&self, weight: u32) -> i32 {
        if self.weights_disallowed {
            0
        } else {
            weight as i32
        }
    }
}

impl Pipeline {
    pub(crate) fn one_shot(
        &self,
        table: &Table,
        profile: &Profile,
        set: &m::ActionSet,
    ) -> Result<Target, ControlError> {
        let name = &profile.name;
        refuse!(
            !profile.with_selector => InvalidArgument,
            "action profile '{name}' has no selector, so no one-shot sets"
        );
        let what = format!("action profile '{name}', one-shot set");
        // Version 1.5 added this: it may only say what is the case anyhow.
        let semantics = if profile.by_members { 2 } else { 1 };
        refuse!(
            ![0, 1].contains(&set.mode) => Unimplemented,
            "{what}: the selection mode is the selector's; leave it out"
        );
        refuse!(
            ![0, semantics].contains(&set.semantics) => Unimplemented,
            "{what}: the size semantics is the selector's; leave it out"
        );
        refuse!(
            set.group_action.is_some() => Unimplemented,
            "{what}: group actions are not supported"
        );
        let actions = set.actions.iter().map(|item| {
            let action = item.action.as_ref();
            let action = action.ok_or_else(|| invalid(format!("{what}: an action is missing")))?;
            let weight = profile.checked_weight(item.weight, &what)?;
            Ok(WeightedAction {
                call: self.call(table, action, false)?,
                weight,
                watch_port: watch_port(self, item.watch.as_ref(), &what)?,
            })
        });
        let actions: Vec<_> = actions.collect::<Result<_, ControlError>>()?;
        let size = match profile.by_members {
            true => actions.len() as u64,
            false => actions.iter().map(|action| u64::from(action.weight)).sum(),
        };
        let most = profile.max_group_size;
        refuse!(
            most != 0 && size > most => InvalidArgument,
            "{what}: its size {size} is above {most}"
        );
        Ok(Target::OneShot(actions))
    }

    pub(crate) fn set_message(
        &self,
        profile: &Profile,
        actions: &[WeightedAction],
        note: &m::EntryNote,
    ) -> m::ActionSet {
        let actions = actions.iter().zip(0..).map(|(action, position)| {
            let numeric = note.numeric_watches.contains(&position);
            m::WeightedAction {
                action: Some(self.action_message(&action.call)),
                weight: profile.shown_weight(action.weight),
                watch: watch_message(action.watch_port, numeric),
            }
        });
        m::ActionSet {
            actions: actions.collect(),
            mode: note.mode,
            semantics: note.semantics,
            group_action: None,
        }
    }

    /// Converts the action of a member, and fails unless it is an action, with matching arguments, of a table that
    /// the profile implements. Since tables may differ in their actions, the engine checks that an entry refers only
    /// to members that its table can run.
    fn member_call(
        &self,
        profile: &Profile,
        message: &m::Action,
    ) -> Result<ActionCall, ControlError> {
        let tables = profile.table_ids.iter();
        let tables: Vec<&Table> = tables.filter_map(|id| self.info.tables.get(*id)).collect();
        let able = |table: &&&Table| {
            let mut actions = table.actions.iter();
            actions.any(|(id, scope)| {
                *id == message.action_id && *scope != ir::ActionScope::DefaultOnly
            })
        };
        match tables.iter().find(able).or(tables.first()) {
            Some(table) => self.call(table, message, false),
            None => Err(invalid(format!(
                "action profile '{}' implements no table, so no action is its",
                profile.name
            ))),
        }
    }

    fn member_message(&self, profile: &Profile, member_id: u32, call: &ActionCall) -> EntityKind {
        EntityKind::Member(ActionProfileMember {
            action_profile_id: profile.id,
            member_id,
            action: Some(self.action_message(call)),
        })
    }

    fn group_message(
        &self,
        profile: &Profile,
        group_id: u32,
        contents: &GroupContents,
    ) -> EntityKind {
        let note = self.object_note(Noted::Group(profile.id, group_id));
        let members = contents.members.iter().map(|member| GroupMember {
            member_id: member.member_id,
            weight: profile.shown_weight(member.weight),
            watch: watch_message(
                member.watch_port,
                note.numeric.contains(&(member.member_id, 0)),
            ),
        });
        EntityKind::Group(ActionProfileGroup {
            action_profile_id: profile.id,
            group_id,
            members: members.collect(),
            max_size: contents.max_size as i32,
        })
    }
}

/// Returns the number of the port that a `watch_kind` names, as bytes or in the deprecated numeric form; `None` if it
/// names none. Fails if the port does not fit into the bits that port numbers have in the architecture; `what` names
/// the member in the message.
fn watch_port(
    pipeline: &Pipeline,
    watch: Option<&Watch>,
    what: &str,
) -> Result<Option<u32>, ControlError> {
    let port_bits = pipeline.port_bits();
    match watch {
        Some(Watch::Port(bytes)) if !bytes.is_empty() => {
            let port = values::number(bytes, port_bits, port_bits);
            let port = port.map_err(|why| invalid(format!("{what}: watch port: {why}")))?;
            Ok(Some(port.low_u64() as u32))
        }
        Some(Watch::Number(port)) => match u32::try_from(*port) {
            Ok(port) if port <= most(port_bits) => Ok(Some(port)),
            _ => Err(invalid(format!(
                "{what}: watch port {port} does not fit into {port_bits} bits"
            ))),
        },
        _ => Ok(None),
    }
}

fn watch_message(port: Option<u32>, numeric: bool) -> Option<Watch> {
    port.map(|port| match numeric {
        true => Watch::Number(port as i32),
        false => Watch::Port(values::bytestring_of(port.into())),
    })
}

/// Checks the `max_size` of a group: it must not be negative, nor exceed the profile's `max_group_size`. Returns it,
/// or fails with INVALID_ARGUMENT.
fn checked_max_size(profile: &Profile, max_size: i32, what: &str) -> Result<u64, ControlError> {
    let most = profile.max_group_size;
    match u64::try_from(max_size) {
        Err(_) => Err(invalid(format!("{what}: max_size {max_size} is negative"))),
        Ok(size) if most != 0 && !(1..=most).contains(&size) => Err(invalid(format!(
            "{what}: max_size {size} is not between 1 and {most}"
        ))),
        Ok(size) => Ok(size),
    }
}
