//! The control plane's hands on a switch: entries, default actions, counters, registers, meters, groups, sessions, value sets.
//!
//! Ids are the program's ([`ir`]'s); [`ids`] finds them by P4Runtime id. Every write is an [`Update`] that gives what undoes
//! it, so a batch can be all or nothing. Nothing runs in between, because the caller owns the switch. It knows nothing of
//! gRPC, protobuf, roles or elections.
//!
//! Reads are in a stable order: entries as they were inserted, everything else by id or index.

mod entries;
mod objects;
mod profiles;
mod snapshot;

pub use objects::Part;

pub use crate::entry::{Entry, EntryAction, InstalledEntry, Note};
pub use crate::ids;
pub use crate::profile::{GroupContents, GroupMember, Target, WeightedAction};
pub use crate::replication::{CloneSession, MulticastGroup, Replica};
pub use crate::snapshots::TableSnapshot;

use crate::digest::DigestConfig;
use crate::meter::MeterConfig;
use crate::runtime::{Attached, CounterData};
use crate::switch::Switch;
use crate::table::EntrySnapshot;
use ir::{
    ActionCall, ActionProfileId, Bits, CounterId, DigestId, KeyMatch, MeterId, RegisterId, TableId,
    ValueSetId,
};
use std::borrow::Borrow;
use std::fmt;

/// Why an operation was refused: a canonical gRPC status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ControlErrorCode {
    /// The arguments are not valid for this program.
    InvalidArgument,
    /// The object does not exist.
    NotFound,
    /// The object exists already.
    AlreadyExists,
    /// The program declares the object as constant.
    PermissionDenied,
    /// The table, profile or other store is full.
    ResourceExhausted,
    /// The present state of the switch does not allow the operation.
    FailedPrecondition,
    /// The update was undone, or not tried, because another update of its batch failed.
    Aborted,
    /// An index is beyond the end.
    OutOfRange,
    /// The switch does not implement the operation.
    Unimplemented,
}

impl ControlErrorCode {
    /// Returns the name of the canonical gRPC status code, such as `"NOT_FOUND"`.
    pub fn name(self) -> &'static str {
        match self {
            ControlErrorCode::InvalidArgument => "INVALID_ARGUMENT",
            ControlErrorCode::NotFound => "NOT_FOUND",
            ControlErrorCode::AlreadyExists => "ALREADY_EXISTS",
            ControlErrorCode::PermissionDenied => "PERMISSION_DENIED",
            ControlErrorCode::ResourceExhausted => "RESOURCE_EXHAUSTED",
            ControlErrorCode::FailedPrecondition => "FAILED_PRECONDITION",
            ControlErrorCode::Aborted => "ABORTED",
            ControlErrorCode::OutOfRange => "OUT_OF_RANGE",
            ControlErrorCode::Unimplemented => "UNIMPLEMENTED",
        }
    }
}

impl ControlErrorCode {
    /// Returns the number of the canonical gRPC status code, such as 5 for NOT_FOUND.
    pub fn number(self) -> i32 {
        match self {
            ControlErrorCode::InvalidArgument => 3,
            ControlErrorCode::NotFound => 5,
            ControlErrorCode::AlreadyExists => 6,
            ControlErrorCode::PermissionDenied => 7,
            ControlErrorCode::ResourceExhausted => 8,
            ControlErrorCode::FailedPrecondition => 9,
            ControlErrorCode::Aborted => 10,
            ControlErrorCode::OutOfRange => 11,
            ControlErrorCode::Unimplemented => 12,
        }
    }
}

/// Why an operation was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlError {
    /// The gRPC status.
    pub code: ControlErrorCode,
    /// What is wrong, and what would be valid.
    pub message: String,
}

/// The most characters of an error's message. Names and values of a program or a request may have megabytes.
const MOST_CHARACTERS: usize = 2000;

/// Returns the message or, if it is too long, its beginning followed by the number of characters left out.
pub fn excerpt(message: String) -> String {
    match message.char_indices().nth(MOST_CHARACTERS) {
        None => message,
        Some((end, _)) => {
            let more = message[end..].chars().count();
            format!("{}... ({more} more characters)", &message[..end])
        }
    }
}

impl ControlError {
    /// Makes an error with a code and a message, which is cut if it is too long.
    pub fn new(code: ControlErrorCode, message: impl Into<String>) -> ControlError {
        ControlError {
            code,
            message: excerpt(message.into()),
        }
    }
}

/// `refuse!(condition => Code, "message")`: returns this error if the condition holds.
#[macro_export]
macro_rules! refuse {
    ($holds:expr => $code:ident, $($message:tt)+) => {
        if $holds {
            let code = $crate::control::ControlErrorCode::$code;
            return Err($crate::control::ControlError::new(code, format!($($message)+)));
        }
    };
}

fn invalid(message: impl Into<String>) -> ControlError {
    ControlError::new(ControlErrorCode::InvalidArgument, message)
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message)
    }
}

impl std::error::Error for ControlError {}

/// Whether an update inserts, modifies or deletes its entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Creates the entity.
    Insert,
    /// Changes an existing entity.
    Modify,
    /// Removes the entity.
    Delete,
}

/// The object of an update, with its new contents.
#[derive(Clone, Debug, PartialEq)]
pub enum Entity {
    /// A table entry. Of its contents, a delete uses the matches and the priority only.
    TableEntry {
        /// Table.
        table: TableId,
        /// Entry.
        entry: Entry,
    },
    /// The default action (modify only); `None` resets it to the program's.
    DefaultAction {
        /// Table.
        table: TableId,
        /// The new default action.
        action: Option<ActionCall>,
        /// As in [`Entry::note`].
        note: Option<Note>,
    },
    /// A counter cell, or all of them (modify only).
    Counter {
        /// Counter.
        counter: CounterId,
        /// The cell; `None` stands for all cells.
        index: Option<u64>,
        /// New contents.
        data: CounterData,
    },
    /// The direct counter of an entry (modify only).
    DirectCounter {
        /// Table.
        table: TableId,
        /// The entry's matches.
        matches: Vec<KeyMatch>,
        /// The entry's priority.
        priority: i32,
        /// The new contents; `None` changes nothing, and fails if the entry does not exist.
        data: Option<CounterData>,
    },
    /// The note of an entry, which may be a constant one (modify only).
    Note {
        /// Table.
        table: TableId,
        /// The entry's matches.
        matches: Vec<KeyMatch>,
        /// The entry's priority.
        priority: i32,
        /// As in [`Entry::note`].
        note: Option<Note>,
    },
    /// A register cell, or all of them (modify only).
    Register {
        /// Register.
        register: RegisterId,
        /// The cell; `None` stands for all cells.
        index: Option<u64>,
        /// New value, of the register's width.
        value: Bits,
    },
    /// A meter cell, or all of them (modify only).
    Meter {
        /// Meter.
        meter: MeterId,
        /// The cell; `None` stands for all cells.
        index: Option<u64>,
        /// The new configuration; with `None`, packets of all rates become green.
        config: Option<MeterConfig>,
    },
    /// The direct meter of an entry (modify only).
    DirectMeter {
        /// Table.
        table: TableId,
        /// The entry's matches.
        matches: Vec<KeyMatch>,
        /// The entry's priority.
        priority: i32,
        /// The new configuration; with `None`, packets of all rates become green.
        config: Option<MeterConfig>,
    },
    /// A member of an action profile. A delete ignores the action.
    ActionProfileMember {
        /// Profile.
        profile: ActionProfileId,
        /// Member, not 0.
        member_id: u32,
        /// Its action.
        call: Option<ActionCall>,
    },
    /// A group of an action selector. A delete ignores the contents.
    ActionProfileGroup {
        /// Profile.
        profile: ActionProfileId,
        /// Group, not 0.
        group_id: u32,
        /// Its members.
        contents: GroupContents,
    },
    /// A multicast group.
    MulticastGroup(MulticastGroup),
    /// A clone session.
    CloneSession(CloneSession),
    /// How the messages of a digest are delivered. A delete ignores the configuration.
    Digest {
        /// Digest.
        digest: DigestId,
        /// Configuration.
        config: DigestConfig,
    },
    /// The members of a value set (modify only).
    ValueSet {
        /// Value set.
        value_set: ValueSetId,
        /// The members; each has one match per key field.
        members: Vec<Vec<KeyMatch>>,
    },
}

/// One change of a switch's state.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// What is done with the entity.
    pub operation: Operation,
    /// The entity, with its new contents.
    pub entity: Entity,
}

/// How a change is undone. Changes are undone in reverse order.
enum Undo {
    /// The change will not be undone, so its former state was not kept.
    Unwanted,
    Inserted(TableId, u32),
    Modified(TableId, u32, EntrySnapshot, Attached),
    Deleted(TableId, EntrySnapshot, Attached),
    /// Any change but one of an entry; entries have variants of their own, since they are most of what is written.
    Other(Box<dyn FnOnce(&mut Switch)>),
}

impl Undo {
    fn by(undo: impl FnOnce(&mut Switch) + 'static) -> Undo {
        Undo::Other(Box::new(undo))
    }

    fn attached(table: TableId, entry: u32, former: Attached) -> Undo {
        Undo::by(move |switch| {
            switch.runtime_mut().attach(table, entry, former);
        })
    }
}

/// What becomes of a batch when some of its updates fail. Each failed update reports its own error in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomicity {
    /// Failed updates change nothing, and the others are applied.
    ContinueOnError,
    /// No update is applied, and those that did not fail report [`ControlErrorCode::Aborted`].
    RollbackOnError,
    /// No update is applied even if none fails: the results tell which ones would fail.
    Undo,
}

impl Switch {
    /// Applies a single update. Fails, without any change, if the update is not valid.
    pub fn write(&mut self, update: impl Borrow<Update>) -> Result<(), ControlError> {
        self.apply(update.borrow(), false).map(|_| ())
    }

    /// Applies updates in order, with nothing in between, and returns one result for each. See [`Atomicity`] for what
    /// happens after an error.
    pub fn write_batch(
        &mut self,
        updates: impl IntoIterator<Item: Borrow<Update>>,
        atomicity: Atomicity,
    ) -> Vec<Result<(), ControlError>> {
        let updates = updates.into_iter();
        if atomicity == Atomicity::ContinueOnError {
            return updates.map(|update| self.write(update)).collect();
        }
        let mut undos = Vec::with_capacity(updates.size_hint().0);
        let results: Vec<_> = updates
            .map(|update| {
                undos.push(self.apply(update.borrow(), true)?);
                Ok(())
            })
            .collect();
        let failed = results.iter().position(Result::is_err);
        if failed.is_some() || atomicity == Atomicity::Undo {
            self.undo_all(undos);
        }
        let Some(failed) = failed.filter(|_| atomicity == Atomicity::RollbackOnError) else {
            return results;
        };
        let message = format!("update {failed} of the batch failed; nothing was changed");
        let aborted = ControlError::new(ControlErrorCode::Aborted, message);
        let results = results.into_iter();
        results
            .map(|result| result.and(Err(aborted.clone())))
            .collect()
    }

    fn undo_all(&mut self, undos: Vec<Undo>) {
        for undo in undos.into_iter().rev() {
            self.undo(undo);
        }
    }

    /// Applies one update, and returns what is needed to undo it; if not `undoable`, possibly [`Undo::Unwanted`],
    /// which saves a copy of the former state. Fails, without any change, if the update is not valid.
    fn apply(&mut self, update: &Update, undoable: bool) -> Result<Undo, ControlError> {
        let operation = update.operation;
        match update.entity {
            Entity::TableEntry { table, ref entry } => match operation {
                Operation::Insert => self.apply_insert(table, entry),
                Operation::Modify => self.apply_modify(table, entry, undoable),
                Operation::Delete => {
                    self.apply_delete(table, &entry.matches, entry.priority, undoable)
                }
            },
            Entity::MulticastGroup(ref group) => {
                self.apply_multicast_group(operation, group.clone())
            }
            Entity::CloneSession(ref session) => {
                self.apply_clone_session(operation, session.clone())
            }
            Entity::Digest { digest, config } => self.apply_digest(operation, digest, config),
            Entity::ActionProfileMember {
                profile,
                member_id,
                ref call,
            } => self.apply_member(operation, profile, member_id, call.clone()),
            Entity::ActionProfileGroup {
                profile,
                group_id,
                ref contents,
            } => self.apply_group(operation, profile, group_id, contents.clone()),
            Entity::DefaultAction {
                table,
                ref action,
                ref note,
            } => {
                modify_only(operation, "a default action")?;
                self.apply_default_action(table, action.clone(), note.clone())
            }
            Entity::Counter {
                counter,
                index,
                data,
            } => {
                modify_only(operation, "a counter cell")?;
                self.apply_counter(counter, index, data)
            }
            Entity::DirectCounter {
                table,
                ref matches,
                priority,
                data,
            } => {
                modify_only(operation, "a direct counter cell")?;
                self.apply_direct_counter(table, matches, priority, data)
            }
            Entity::Note {
                table,
                ref matches,
                priority,
                ref note,
            } => {
                modify_only(operation, "an entry's note")?;
                self.apply_note(table, matches, priority, note.clone())
            }
            Entity::Register {
                register,
                index,
                ref value,
            } => {
                modify_only(operation, "a register cell")?;
                self.apply_register(register, index, value.clone())
            }
            Entity::Meter {
                meter,
                index,
                config,
            } => {
                modify_only(operation, "a meter cell")?;
                self.apply_meter(meter, index, config)
            }
            Entity::DirectMeter {
                table,
                ref matches,
                priority,
                config,
            } => {
                modify_only(operation, "a direct meter cell")?;
                self.apply_direct_meter(table, matches, priority, config)
            }
            Entity::ValueSet {
                value_set,
                ref members,
            } => {
                modify_only(operation, "a value set")?;
                self.apply_value_set(value_set, members.clone())
            }
        }
    }

    fn undo(&mut self, undo: Undo) {
        let runtime = self.runtime_mut();
        match undo {
            Undo::Unwanted => {}
            Undo::Inserted(table, entry) => {
                runtime.stop_idle_timer(table, entry);
                runtime.attach(table, entry, Attached::default());
                runtime.table_mut(table).remove(entry);
            }
            Undo::Modified(table, entry, snapshot, attached) => {
                runtime.table_mut(table).reset(entry, snapshot);
                runtime.attach(table, entry, attached);
                runtime.start_idle_timer(table, entry);
            }
            Undo::Deleted(table, snapshot, attached) => {
                let entry = runtime.table_mut(table).restore(snapshot);
                runtime.attach(table, entry, attached);
                runtime.start_idle_timer(table, entry);
            }
            Undo::Other(undo) => undo(self),
        }
    }
}

fn modify_only(operation: Operation, what: &str) -> Result<(), ControlError> {
    refuse!(operation != Operation::Modify => InvalidArgument, "{what} can only be modified");
    Ok(())
}

#[cfg(test)]
mod tests;
