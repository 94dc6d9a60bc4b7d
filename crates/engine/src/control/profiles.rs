//! Members and groups of action profiles, and what entries may name: the rules of P4Runtime, checked.
//!
//! The sizes of groups are sums of weights, or numbers of members if the selector says so. A profile is programmed either with
//! members and groups or with one-shot sets, not both.

use super::ControlErrorCode::*;
use super::{ControlError, Operation, Undo, invalid};
use crate::profile::{GroupContents, Profile, Target, WeightedAction, size};
use crate::refuse;
use crate::switch::Switch;
use ir::{ActionCall, ActionProfileId, ActionScope, Selector, TableId};
use std::collections::BTreeSet;

fn not_found(what: &str, id: u32, profile: &str) -> ControlError {
    ControlError::new(NotFound, format!("{profile} has no {what} {id}"))
}

/// Checks that a member or group of a profile may be inserted, modified or deleted. `what` is "member" or "group" in
/// messages, and `exists` is true if the profile has one with this id. Fails if the id is 0, if it exists before an
/// insertion, or if it does not exist before a modification or deletion.
fn check_existence(
    operation: Operation,
    exists: bool,
    what: &str,
    id: u32,
    profile: &str,
) -> Result<(), ControlError> {
    refuse!(id == 0 => InvalidArgument, "{profile}: no {what} has the id 0");
    match (operation, exists) {
        (Operation::Insert, true) => Err(ControlError::new(
            AlreadyExists,
            format!("{profile} has a {what} {id} already"),
        )),
        (Operation::Modify | Operation::Delete, false) => Err(not_found(what, id, profile)),
        _ => Ok(()),
    }
}

fn check_share(
    switch: &Switch,
    weight: u32,
    watch_port: Option<u32>,
    profile: &str,
) -> Result<(), ControlError> {
    refuse!(weight == 0 => InvalidArgument, "{profile}: a weight is above zero");
    let ports = switch.program().architecture.description().ports;
    match watch_port {
        Some(port) if port >= ports => Err(invalid(format!(
            "{profile}: ports are 0 to {}; {port} cannot be watched",
            ports - 1
        ))),
        Some(port) if !switch.runtime().ports().exists(port) => Err(invalid(format!(
            "{profile}: the switch has no port {port} to watch"
        ))),
        _ => Ok(()),
    }
}

impl Switch {
    /// Returns an action profile with its members and groups. Fails if there is no such profile.
    pub fn action_profile(&self, profile: ActionProfileId) -> Result<&Profile, ControlError> {
        self.declared_profile(profile)?;
        Ok(self.runtime().profile(profile))
    }

    fn declared_profile(
        &self,
        profile: ActionProfileId,
    ) -> Result<&ir::ActionProfile, ControlError> {
        let declared = self.program().action_profiles.get(profile.index());
        declared.ok_or_else(|| {
            ControlError::new(
                NotFound,
                format!("there is no action profile {}", profile.0),
            )
        })
    }

    fn selector(
        &self,
        profile: ActionProfileId,
    ) -> Result<(&ir::ActionProfile, Selector), ControlError> {
        let declared = self.declared_profile(profile)?;
        match declared.selector {
            Some(selector) => Ok((declared, selector)),
            None => Err(invalid(format!(
                "{} is no selector; it has members but no groups",
                declared.name
            ))),
        }
    }

    pub(super) fn apply_member(
        &mut self,
        operation: Operation,
        id: ActionProfileId,
        member_id: u32,
        call: Option<ActionCall>,
    ) -> Result<Undo, ControlError> {
        let declared = self.declared_profile(id)?;
        let name = &declared.name;
        let profile = self.runtime().profile(id);
        let exists = profile.member(member_id).is_some();
        check_existence(operation, exists, "member", member_id, name)?;
        let call = match (operation, call) {
            (Operation::Delete, _) => {
                refuse!(
                    profile.member_is_used(member_id) => FailedPrecondition,
                    "{name}: a group or an entry names member {member_id}"
                );
                None
            }
            (_, None) => return Err(invalid(format!("{name}: member {member_id} has no action"))),
            (_, Some(call)) => Some(call),
        };
        if let Some(call) = &call {
            self.check_member_action(id, call)?;
            if operation == Operation::Modify {
                let runs = |target: &Target| match target {
                    Target::Member(member) => *member == member_id,
                    Target::Group(group) => profile.group(*group).is_some_and(|g| {
                        let mut members = g.members.iter();
                        members.any(|m| m.member_id == member_id)
                    }),
                    Target::OneShot(_) => false,
                };
                self.check_users(id, runs, &[call])?;
            }
        }
        if operation == Operation::Insert {
            check_no_one_shots(profile, name)?;
            if declared.size != 0 && profile.member_count() >= declared.size {
                return Err(full(name, declared.size));
            }
        }
        let former = self.runtime_mut().put_member(id, member_id, call);
        Ok(Undo::by(move |switch| {
            switch.runtime_mut().put_member(id, member_id, former);
        }))
    }

    /// Checks that at least one table that the profile implements may run the action. Otherwise returns the error of
    /// the first of these tables.
    fn check_member_action(
        &self,
        profile: ActionProfileId,
        call: &ActionCall,
    ) -> Result<(), ControlError> {
        let mut why = None;
        for table in self.tables_of(profile) {
            match self.check_action(table, call.action, &call.args, ActionScope::DefaultOnly) {
                Ok(_) => return Ok(()),
                Err(error) => why = why.or(Some(error)),
            }
        }
        let name = &self.declared_profile(profile)?.name;
        Err(why.unwrap_or_else(|| invalid(format!("no table is implemented by {name}"))))
    }

    /// Returns the ids of the tables that an action profile implements.
    fn tables_of(&self, profile: ActionProfileId) -> impl Iterator<Item = TableId> {
        let tables = self.program().tables.iter().enumerate();
        tables
            .filter(move |(_, table)| table.implementation == Some(profile))
            .map(|(i, _)| TableId(i as u32))
    }

    /// Fails if a table of the profile may not run one of `calls` although an entry of it refers to a target that
    /// runs them; `runs` returns true for such a target. Tables of one profile mostly have the same actions; then no
    /// entry has to be examined.
    fn check_users(
        &self,
        profile: ActionProfileId,
        runs: impl Fn(&Target) -> bool,
        calls: &[&ActionCall],
    ) -> Result<(), ControlError> {
        for table in self.tables_of(profile) {
            let allowed = self.check_calls(table, calls);
            if allowed.is_err() && self.runtime().targets(table).any(|t| runs(&t)) {
                return allowed;
            }
        }
        Ok(())
    }

    fn check_calls(&self, table: TableId, calls: &[&ActionCall]) -> Result<(), ControlError> {
        for call in calls {
            self.check_action(table, call.action, &call.args, ActionScope::DefaultOnly)?;
        }
        Ok(())
    }

    pub(super) fn apply_group(
        &mut self,
        operation: Operation,
        id: ActionProfileId,
        group_id: u32,
        contents: GroupContents,
    ) -> Result<Undo, ControlError> {
        let (declared, _) = self.selector(id)?;
        let name = &declared.name;
        let profile = self.runtime().profile(id);
        let former = profile.group(group_id);
        check_existence(operation, former.is_some(), "group", group_id, name)?;
        let contents = if operation == Operation::Delete {
            refuse!(
                profile.group_is_used(group_id) => FailedPrecondition,
                "{name}: an entry names group {group_id}"
            );
            None
        } else {
            check_no_one_shots(profile, name)?;
            refuse!(
                former.is_some_and(|f| f.max_size != contents.max_size) => InvalidArgument,
                "{name}: the maximum size of group {group_id} cannot be changed"
            );
            self.check_group(id, group_id, &contents)?;
            Some(contents)
        };
        let former = self.runtime_mut().put_group(id, group_id, contents);
        Ok(Undo::by(move |switch| {
            switch.runtime_mut().put_group(id, group_id, former);
        }))
    }

    fn check_group(
        &self,
        id: ActionProfileId,
        group_id: u32,
        contents: &GroupContents,
    ) -> Result<(), ControlError> {
        let (declared, selector) = self.selector(id)?;
        let name = &declared.name;
        let profile = self.runtime().profile(id);
        let mut seen = BTreeSet::new();
        for member in &contents.members {
            check_share(self, member.weight, member.watch_port, name)?;
            if profile.member(member.member_id).is_none() {
                return Err(not_found("member", member.member_id, name));
            }
            refuse!(
                !seen.insert(member.member_id) => InvalidArgument,
                "{name}: member {} occurs twice in group {group_id}; give it a weight", member.member_id
            );
        }
        let members = contents.members.iter();
        let calls: Vec<&ActionCall> = members
            .filter_map(|m| profile.member(m.member_id))
            .collect();
        let runs = |target: &Target| *target == Target::Group(group_id);
        self.check_users(id, runs, &calls)?;
        let limit = selector.max_group_size;
        let max_size = contents.max_size;
        refuse!(
            limit > 0 && !(1..=limit).contains(&max_size) => InvalidArgument,
            "{name}: the maximum size of a group is 1 to {limit}, not {max_size}"
        );
        if declared.size != 0 && max_size > declared.size {
            return Err(full(name, declared.size));
        }
        let weights = contents.members.iter().map(|m| m.weight);
        let size = size(weights, selector.sum_of_members);
        refuse!(
            max_size != 0 && size > max_size => ResourceExhausted,
            "{name}: group {group_id} would have size {size}, more than {max_size}"
        );
        let others = profile.size_of_groups(Some(group_id));
        check_total(declared, others, size)
    }

    /// Checks that an entry of a table may refer to `target`, a member or group of action profile `id`, in place of
    /// its `former` target. Fails if there is no such member or group, or if the table may not run its actions.
    pub(super) fn check_target(
        &self,
        table: TableId,
        id: ActionProfileId,
        target: &Target,
        former: Option<&Target>,
    ) -> Result<(), ControlError> {
        let declared = self.declared_profile(id)?;
        let name = &declared.name;
        let profile = self.runtime().profile(id);
        match target {
            Target::Member(member) => match profile.member(*member) {
                None => Err(not_found("member", *member, name)),
                Some(call) => self.check_calls(table, &[call]),
            },
            Target::Group(group) => {
                self.selector(id)?;
                let Some(group) = profile.group(*group) else {
                    return Err(not_found("group", *group, name));
                };
                let members = group.members.iter();
                let calls: Vec<&ActionCall> = members
                    .filter_map(|m| profile.member(m.member_id))
                    .collect();
                self.check_calls(table, &calls)
            }
            Target::OneShot(actions) => {
                refuse!(
                    profile.member_count() > 0 || profile.group_ids().next().is_some() => InvalidArgument,
                    "{name} has members or groups, so entries cannot have sets of actions of their own"
                );
                self.check_one_shot(table, id, actions, former)
            }
        }
    }

    fn check_one_shot(
        &self,
        table: TableId,
        id: ActionProfileId,
        actions: &[WeightedAction],
        former: Option<&Target>,
    ) -> Result<(), ControlError> {
        let (declared, selector) = self.selector(id)?;
        let name = &declared.name;
        for action in actions {
            check_share(self, action.weight, action.watch_port, name)?;
            let call = &action.call;
            self.check_action(table, call.action, &call.args, ActionScope::DefaultOnly)?;
        }
        let by_members = selector.sum_of_members;
        let size_of =
            |actions: &[WeightedAction]| size(actions.iter().map(|a| a.weight), by_members);
        let size = size_of(actions);
        refuse!(
            selector.max_group_size > 0 && size > selector.max_group_size => InvalidArgument,
            "{name}: a set of actions of size {size} is larger than {}", selector.max_group_size
        );
        let freed = match former {
            Some(Target::OneShot(former)) => size_of(former),
            _ => 0,
        };
        let all = self.runtime().profile(id).size_of_groups(None);
        check_total(declared, all.saturating_sub(freed), size)
    }
}

fn check_no_one_shots(profile: &Profile, name: &str) -> Result<(), ControlError> {
    refuse!(
        profile.one_shots() > 0 => InvalidArgument,
        "{name}: entries have sets of actions of their own, so there are no members and groups"
    );
    Ok(())
}

fn check_total(declared: &ir::ActionProfile, others: u64, size: u64) -> Result<(), ControlError> {
    if declared.size != 0 && others.saturating_add(size) > declared.size {
        return Err(full(&declared.name, declared.size));
    }
    Ok(())
}

fn full(name: &str, size: u64) -> ControlError {
    ControlError::new(ResourceExhausted, format!("{name} has room for {size}"))
}
