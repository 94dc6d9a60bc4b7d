//! Table entries as the control plane sees them.

use crate::cells::CounterData;
use crate::meter::MeterConfig;
use crate::profile::Target;
use ir::{ActionCall, KeyMatch};

/// A table entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// One match per key field, of its kind and width and in canonical form (no bits set that do not count). A selector field's is
    /// `Optional(None)`.
    pub matches: Vec<KeyMatch>,
    /// Above zero in a table with ternary, range or optional fields, the highest first; else zero.
    pub priority: i32,
    /// The action of a hit.
    pub action: EntryAction,
    /// Nanoseconds without a hit after which [`Switch::take_idle_entries`](crate::Switch::take_idle_entries) names the entry; 0 is never,
    /// and the least is [`MIN_IDLE_TIMEOUT_NS`](crate::MIN_IDLE_TIMEOUT_NS).
    pub idle_timeout_ns: u64,
    /// Configuration of the direct meter, if the table has one; without it everything is green.
    pub meter: Option<MeterConfig>,
    /// Data that the control plane wants to find again with the entry.
    pub note: Option<Note>,
}

/// Data of the control plane that a switch keeps for it without looking at them.
pub type Note = std::sync::Arc<[u8]>;

/// The action, member or group of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryAction {
    /// An action, in a table without an implementation.
    Call(ActionCall),
    /// Something of the table's implementation.
    Target(Target),
    /// In a modify: the action, member or group that the entry has so far.
    Keep,
}

impl Entry {
    /// Makes an entry that runs an action, without idle timeout, meter or note.
    pub fn new(matches: Vec<KeyMatch>, priority: i32, call: ActionCall) -> Entry {
        Entry {
            matches,
            priority,
            action: EntryAction::Call(call),
            idle_timeout_ns: 0,
            meter: None,
            note: None,
        }
    }
}

/// An entry as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledEntry {
    /// The entry.
    pub entry: Entry,
    /// From the source, and not to be changed.
    pub is_const: bool,
    /// The direct counter, if the table has one.
    pub counter: Option<CounterData>,
    /// The packets and bytes of each colour of the direct meter, if it is configured.
    pub meter_counts: Option<[CounterData; 3]>,
    /// Since the last hit (or the insertion), if the table has idle timeouts.
    pub idle_ns: Option<u64>,
}
