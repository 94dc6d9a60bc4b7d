//! Table entries and default actions: the requests of the control plane, checked against the program.

use super::ControlErrorCode::*;
use super::{ControlError, Undo, invalid};
use crate::Time;
use crate::entry::{Entry, EntryAction, InstalledEntry, Note};
use crate::idle::MIN_IDLE_TIMEOUT_NS;
use crate::meter::{Meter, MeterConfig};
use crate::profile::Target;
use crate::refuse;
use crate::runtime::Attached;
use crate::switch::Switch;
use crate::table::{NewEntry, capacity};
use ir::{ActionCall, ActionId, ActionScope, Bits, KeyMatch, Program, TableId};
use std::borrow::Cow;

impl Switch {
    /// Inserts an entry into a table. Fails if the entry does not fit the table, or if it already exists.
    pub fn insert_entry(&mut self, table: TableId, entry: Entry) -> Result<(), ControlError> {
        self.apply_insert(table, &entry).map(|_| ())
    }

    /// Deletes the entry with these matches and this priority from a table. Fails if there is no such entry.
    pub fn delete_entry(
        &mut self,
        table: TableId,
        matches: &[KeyMatch],
        priority: i32,
    ) -> Result<(), ControlError> {
        self.apply_delete(table, matches, priority, false)
            .map(|_| ())
    }

    /// Returns the entry of a table with these matches and this priority. Fails if there is no such entry.
    pub fn read_entry(
        &self,
        table: TableId,
        matches: &[KeyMatch],
        priority: i32,
    ) -> Result<InstalledEntry, ControlError> {
        let number = self.find_entry(table, matches, priority)?;
        Ok(self.installed_entry(table, number))
    }

    /// Returns all entries of a table, in the order in which they were inserted. Fails if there is no such table.
    pub fn read_entries(&self, table: TableId) -> Result<Vec<InstalledEntry>, ControlError> {
        self.declared_table(table)?;
        let entries = self.runtime().table(table).entries();
        Ok(entries
            .into_iter()
            .map(|n| self.installed_entry(table, n))
            .collect())
    }

    /// Returns the entries of a table whose numbers are from `from` to below `from + most`, each as its place in the
    /// order of insertion and its number. Also returns the number at which to continue, `None` at the end.
    pub fn order_from(
        &self,
        table: TableId,
        from: u32,
        most: u32,
    ) -> (Vec<(u64, u32)>, Option<u32>) {
        let contents = self.runtime().table(table);
        let numbers = contents.numbers();
        let end = numbers.min(from.saturating_add(most.max(1)));
        let found = (from..end).filter_map(|number| Some((contents.sequence(number)?, number)));
        (found.collect(), (end < numbers).then_some(end))
    }

    /// Returns the entries of a table with these numbers. The numbers come from [`Self::order_from`], each with its
    /// place in the order of insertion.
    pub fn entries_of(&self, table: TableId, numbers: &[(u64, u32)]) -> Vec<InstalledEntry> {
        let numbers = numbers.iter();
        numbers
            .map(|(_, number)| self.installed_entry(table, *number))
            .collect()
    }

    /// Returns the action, with its arguments, that a table runs when no entry matches. Fails if there is no such
    /// table.
    pub fn default_action(&self, table: TableId) -> Result<ActionCall, ControlError> {
        self.declared_table(table)?;
        Ok(self.action_call(table, 0))
    }

    /// Returns the note that the controller attached to a table's default action, or `None` if it attached none. Fails
    /// if there is no such table.
    pub fn default_note(&self, table: TableId) -> Result<Option<Note>, ControlError> {
        self.declared_table(table)?;
        Ok(self.runtime().attached(table, 0).note)
    }

    /// Returns at most `most` entries that have been idle for as long as their timeout, in the order in which they
    /// became idle. The entries stay in their tables. The timeout of each starts again now; after another one without
    /// a hit, the entry is returned again.
    pub fn take_idle_entries(
        &mut self,
        now_ps: Time,
        most: usize,
    ) -> Vec<(TableId, InstalledEntry)> {
        self.runtime_mut().set_now_ps(now_ps);
        let idle = self.runtime_mut().take_idle(most).into_iter();
        idle.map(|(table, number)| (table, self.installed_entry(table, number)))
            .collect()
    }

    pub(super) fn apply_insert(
        &mut self,
        table: TableId,
        entry: &Entry,
    ) -> Result<Undo, ControlError> {
        self.check_writable(table)?;
        self.check_matches(table, &entry.matches, entry.priority)?;
        let action = self.check_entry_action(table, entry, None)?;
        let declared = self.declared_table(table)?;
        let contents = self.runtime().table(table);
        refuse!(
            contents.find(&entry.matches, entry.priority).is_some() => AlreadyExists,
            "table {} has an entry with these matches already", declared.name
        );
        let size = capacity(declared);
        refuse!(
            contents.len() as u64 >= size => ResourceExhausted,
            "table {} is full ({size} entries)", declared.name
        );
        let now_ps = self.runtime().now_ps();
        let number = self.runtime_mut().table_mut(table).insert(
            NewEntry {
                matches: &entry.matches,
                priority: entry.priority,
                is_const: false,
                idle_timeout_ns: entry.idle_timeout_ns,
                action,
                args: call_args(&entry.action),
            },
            now_ps,
        );
        let attached = Attached {
            target: target(&entry.action),
            meter: attached_meter(None, entry.meter, now_ps),
            note: entry.note.clone(),
        };
        self.runtime_mut().attach(table, number, attached);
        self.runtime_mut().start_idle_timer(table, number);
        Ok(Undo::Inserted(table, number))
    }

    pub(super) fn apply_modify(
        &mut self,
        table: TableId,
        entry: &Entry,
        undoable: bool,
    ) -> Result<Undo, ControlError> {
        let number = self.find_changeable(table, &entry.matches, entry.priority)?;
        let former = self.runtime().attached(table, number);
        let mut entry = Cow::Borrowed(entry);
        if entry.action == EntryAction::Keep {
            let target = former.target.clone().map(EntryAction::Target);
            entry.to_mut().action =
                target.unwrap_or_else(|| EntryAction::Call(self.action_call(table, number)));
        }
        let action = self.check_entry_action(table, &entry, former.target.as_ref())?;
        self.keep_for_snapshots(table, number);
        let now_ps = self.runtime().now_ps();
        let runtime = self.runtime_mut();
        let contents = runtime.table_mut(table);
        let snapshot = undoable.then(|| contents.snapshot(number)).flatten();
        let args = call_args(&entry.action);
        contents.modify(number, action, args, entry.idle_timeout_ns);
        let attached = Attached {
            meter: attached_meter(former.meter, entry.meter, now_ps),
            target: target(&entry.action),
            note: entry.note.clone(),
        };
        let former = runtime.attach(table, number, attached);
        runtime.start_idle_timer(table, number);
        Ok(snapshot.map_or(Undo::Unwanted, |snapshot| {
            Undo::Modified(table, number, snapshot, former)
        }))
    }

    pub(super) fn apply_delete(
        &mut self,
        table: TableId,
        matches: &[KeyMatch],
        priority: i32,
        undoable: bool,
    ) -> Result<Undo, ControlError> {
        let number = self.find_changeable(table, matches, priority)?;
        self.keep_for_snapshots(table, number);
        let runtime = self.runtime_mut();
        runtime.stop_idle_timer(table, number);
        let attached = runtime.attach(table, number, Attached::default());
        let contents = runtime.table_mut(table);
        let snapshot = undoable.then(|| contents.snapshot(number)).flatten();
        contents.remove(number);
        Ok(snapshot.map_or(Undo::Unwanted, |snapshot| {
            Undo::Deleted(table, snapshot, attached)
        }))
    }

    pub(super) fn apply_default_action(
        &mut self,
        table: TableId,
        action: Option<ActionCall>,
        note: Option<Note>,
    ) -> Result<Undo, ControlError> {
        let declared = self.declared_table(table)?;
        refuse!(
            declared.const_default_action => PermissionDenied,
            "the default action of table {} is constant", declared.name
        );
        let call = action.unwrap_or_else(|| declared.default_action.clone());
        let scope = ActionScope::TableOnly;
        let position = self.check_action(table, call.action, &call.args, scope)?;
        let contents = self.runtime_mut().table_mut(table);
        let (former, args) = contents.action(0);
        contents.set_default(position, &call.args);
        let attached = Attached {
            note,
            ..Attached::default()
        };
        let attached = self.runtime_mut().attach(table, 0, attached);
        Ok(Undo::by(move |switch| {
            let runtime = switch.runtime_mut();
            runtime.table_mut(table).set_default(former, &args);
            runtime.attach(table, 0, attached);
        }))
    }

    pub(super) fn apply_note(
        &mut self,
        table: TableId,
        matches: &[KeyMatch],
        priority: i32,
        note: Option<Note>,
    ) -> Result<Undo, ControlError> {
        let number = self.find_entry(table, matches, priority)?;
        self.keep_for_snapshots(table, number);
        let attached = Attached {
            note,
            ..self.runtime().attached(table, number)
        };
        let former = self.runtime_mut().attach(table, number, attached);
        Ok(Undo::attached(table, number, former))
    }

    /// Returns the number of the entry with these matches and this priority. Fails with NOT_FOUND if there is no such
    /// entry.
    pub(super) fn find_entry(
        &self,
        table: TableId,
        matches: &[KeyMatch],
        priority: i32,
    ) -> Result<u32, ControlError> {
        self.check_matches(table, matches, priority)?;
        let found = self.runtime().table(table).find(matches, priority);
        found.ok_or_else(not_found)
    }

    /// Returns the number of the entry with these matches and this priority. Fails if there is no such entry, or if
    /// the program forbids to modify or delete it (constant entries, P4_16 1.2.5, 14.2.1.4).
    fn find_changeable(
        &self,
        table: TableId,
        matches: &[KeyMatch],
        priority: i32,
    ) -> Result<u32, ControlError> {
        self.check_writable(table)?;
        let number = self.find_entry(table, matches, priority)?;
        let installed = self.runtime().table(table).entry(number);
        refuse!(
            installed.is_some_and(|entry| entry.is_const) => PermissionDenied,
            "this entry of table {} is constant", self.declared_table(table)?.name
        );
        Ok(number)
    }

    pub(super) fn declared_table(&self, table: TableId) -> Result<&ir::Table, ControlError> {
        self.program()
            .tables
            .get(table.index())
            .ok_or_else(|| ControlError::new(NotFound, format!("there is no table {}", table.0)))
    }

    pub(super) fn installed_entry(&self, table: TableId, number: u32) -> InstalledEntry {
        let contents = self.runtime().table(table);
        let call = self.action_call(table, number);
        let installed = contents.entry(number);
        let is_const = installed.as_ref().is_some_and(|e| e.is_const);
        let idle = contents
            .last_hit_ps(number)
            .map(|hit_ps| self.runtime().now_ps().saturating_sub(hit_ps) / 1000);
        let Attached {
            target,
            meter,
            note,
        } = self.runtime().attached(table, number);
        InstalledEntry {
            entry: Entry {
                priority: installed.as_ref().map_or(0, |e| e.priority),
                action: target.map_or(EntryAction::Call(call), EntryAction::Target),
                idle_timeout_ns: installed.as_ref().map_or(0, |e| e.idle_timeout_ns),
                meter: meter.as_ref().map(|meter| meter.config()),
                note,
                matches: installed.map(|e| e.matches).unwrap_or_default(),
            },
            meter_counts: meter.as_ref().map(|meter| meter.counts()),
            is_const,
            counter: contents.counter(number),
            idle_ns: idle,
        }
    }

    pub(crate) fn action_call(&self, table: TableId, number: u32) -> ActionCall {
        let (position, args) = self.runtime().table(table).action(number);
        let actions = &self.program().tables[table.index()].actions;
        ActionCall {
            action: actions[position as usize].action,
            args,
        }
    }

    fn check_writable(&self, table: TableId) -> Result<(), ControlError> {
        let declared = self.declared_table(table)?;
        refuse!(
            declared.const_entries => PermissionDenied,
            "the entries of table {} are constant", declared.name
        );
        Ok(())
    }

    fn check_matches(
        &self,
        table: TableId,
        matches: &[KeyMatch],
        priority: i32,
    ) -> Result<(), ControlError> {
        let declared = self.declared_table(table)?;
        refuse!(
            declared.keys.is_empty() => InvalidArgument,
            "table {} has no key, so it has no entries but the default", declared.name
        );
        refuse!(
            matches.len() != declared.keys.len() => InvalidArgument,
            "table {} has {} key fields, the entry matches {}", declared.name, declared.keys.len(), matches.len()
        );
        for (key, key_match) in declared.keys.iter().zip(matches) {
            let fault = match key_match.is_of(key.kind) {
                true => key_match.check(key.width),
                false => Err(format!("a match of another kind than {}", key.kind.name())),
            };
            fault.map_err(|why| {
                invalid(format!("field {} of {}: {why}", key.name, declared.name))
            })?;
        }
        match (declared.needs_priority(), priority) {
            (true, ..=0) => Err(invalid(format!(
                "entries of table {} need a priority above zero",
                declared.name
            ))),
            (false, p) if p != 0 => Err(invalid(format!(
                "entries of table {} have no priority; {p} is not zero",
                declared.name
            ))),
            _ => Ok(()),
        }
    }

    /// Checks the action, the idle timeout and the meter of a new or modified entry, and returns the position of its
    /// action among the table's actions; 0 if the table has an implementation (an action profile). `former` is the
    /// target of the entry before a modification. Fails if the table does not allow one of these.
    fn check_entry_action(
        &self,
        table: TableId,
        entry: &Entry,
        former: Option<&Target>,
    ) -> Result<u32, ControlError> {
        let declared = self.declared_table(table)?;
        refuse!(
            entry.idle_timeout_ns != 0 && !declared.support_timeout => InvalidArgument,
            "table {} does not support idle timeouts", declared.name
        );
        refuse!(
            (1..MIN_IDLE_TIMEOUT_NS).contains(&entry.idle_timeout_ns) => InvalidArgument,
            "table {}: the least idle timeout is {MIN_IDLE_TIMEOUT_NS} ns, not {}", declared.name, entry.idle_timeout_ns
        );
        if let Some(config) = entry.meter {
            if declared.direct_meter.is_none() {
                let name = &declared.name;
                return Err(invalid(format!("table {name} has no direct meter")));
            }
            super::objects::check_meter_config(config)?;
        }
        match (&entry.action, declared.implementation) {
            (EntryAction::Call(call), None) => {
                self.check_action(table, call.action, &call.args, ActionScope::DefaultOnly)
            }
            (EntryAction::Target(target), Some(profile)) => {
                self.check_target(table, profile, target, former)?;
                Ok(0)
            }
            (EntryAction::Call(_), Some(_)) => Err(invalid(format!(
                "entries of table {} name a member, a group or a set of actions of its implementation, not an action",
                declared.name
            ))),
            (EntryAction::Target(_), None) => Err(invalid(format!(
                "table {} has no implementation; its entries name an action",
                declared.name
            ))),
            (EntryAction::Keep, _) => Err(invalid(format!(
                "table {}: the entry has no action",
                declared.name
            ))),
        }
    }

    /// Returns the position of `action` among the table's actions. Fails if the table has no such action, if the table
    /// declares the action with the scope `forbidden`, or if the arguments do not fit.
    pub(super) fn check_action(
        &self,
        table: TableId,
        action: ActionId,
        args: &[Bits],
        forbidden: ActionScope,
    ) -> Result<u32, ControlError> {
        let program = self.program();
        let declared = self.declared_table(table)?;
        let name = || action_name(program, action);
        let position = declared.actions.iter().position(|a| a.action == action);
        let Some(position) = position else {
            return Err(invalid(format!(
                "table {} has no action {}",
                declared.name,
                name()
            )));
        };
        if declared.actions[position].scope == forbidden {
            let place = match forbidden {
                ActionScope::TableOnly => "@tableonly; it cannot be the default",
                _ => "@defaultonly; entries cannot name it",
            };
            return Err(invalid(format!("action {} is {place}", name())));
        }
        check_args(program, action, args)?;
        Ok(position as u32)
    }
}

/// Returns the arguments that a table stores for an entry: those of the entry's own action, or an empty list if the
/// entry refers to a member or group.
fn call_args(action: &EntryAction) -> &[Bits] {
    match action {
        EntryAction::Call(call) => &call.args,
        EntryAction::Target(_) | EntryAction::Keep => &[],
    }
}

fn target(action: &EntryAction) -> Option<Target> {
    match action {
        EntryAction::Call(_) | EntryAction::Keep => None,
        EntryAction::Target(target) => Some(target.clone()),
    }
}

/// Returns a meter with a new configuration and full buckets, which keeps the counts of the former meter. Returns
/// `None` if `config` is `None`.
pub(super) fn reconfigured(
    former: Option<Meter>,
    config: Option<MeterConfig>,
    now_ps: Time,
) -> Option<Meter> {
    match (former, config) {
        (_, None) => None,
        (None, Some(config)) => Some(Meter::new(config, now_ps)),
        (Some(mut meter), Some(config)) => {
            meter.configure(config, now_ps);
            Some(meter)
        }
    }
}

/// Returns a boxed meter with the configuration `config` and full buckets, which keeps the counts of the `former`
/// meter; `None` if `config` is `None`. This is [`reconfigured`] for direct meters, which entries store in a box.
pub(super) fn attached_meter(
    former: Option<Box<Meter>>,
    config: Option<MeterConfig>,
    now_ps: Time,
) -> Option<Box<Meter>> {
    reconfigured(former.map(|meter| *meter), config, now_ps).map(Box::new)
}

fn not_found() -> ControlError {
    ControlError::new(NotFound, "there is no such entry")
}

pub(super) fn action_name(program: &Program, action: ActionId) -> String {
    match program.actions.get(action.index()) {
        Some(declared) => declared.name.clone(),
        None => format!("number {}", action.0),
    }
}

fn check_args(program: &Program, action: ActionId, args: &[Bits]) -> Result<(), ControlError> {
    let declared = &program.actions[action.index()];
    refuse!(
        args.len() != declared.params.len() => InvalidArgument,
        "action {} takes {} arguments, not {}", declared.name, declared.params.len(), args.len()
    );
    for (param, arg) in declared.params.iter().zip(args) {
        let width = program.slots[param.slot.index()].width;
        refuse!(
            arg.width() != width => InvalidArgument,
            "parameter {} of action {} has {width} bits, the argument {}", param.name, declared.name, arg.width()
        );
    }
    Ok(())
}
