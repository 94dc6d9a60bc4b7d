//! Table entries as the control plane sees them.

use crate::cells::CounterData;
use crate::meter::MeterConfig;
use crate::profile::Target;
use ir::{ActionCall, KeyMatch};

/// A table entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// One match per key field, of the field's kind and width, in canonical form: bits that the match ignores are
    /// zero. That of a field that is not looked up is [`KeyMatch::Any`].
    pub matches: Vec<KeyMatch>,
    /// The priority, above zero, in a table with priorities ([`ir::Table::needs_priority`]), where the highest one
    /// wins; zero in other tables.
    pub priority: i32,
    /// The action of a hit.
    pub action: EntryAction,
    /// The nanoseconds without a hit after which [`Switch::take_idle_entries`](crate::Switch::take_idle_entries)
    /// returns the entry; 0 is never, and the shortest is [`MIN_IDLE_TIMEOUT_NS`](crate::MIN_IDLE_TIMEOUT_NS).
    pub idle_timeout_ns: u64,
    /// The configuration of the direct meter, if the table has one; without it, all packets are green.
    pub meter: Option<MeterConfig>,
    /// Data that the control plane stores with the entry.
    pub note: Option<Note>,
}

/// Data that a switch stores for the control plane and does not interpret.
pub type Note = std::sync::Arc<[u8]>;

/// The action, member or group of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryAction {
    /// An action, in a table without an implementation.
    Call(ActionCall),
    /// A member, group or action set of the table's action profile.
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

/// An entry as a read returns it, with its counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledEntry {
    /// The entry.
    pub entry: Entry,
    /// True if it is from the program's source and cannot be changed.
    pub is_const: bool,
    /// The direct counter, if the table has one.
    pub counter: Option<CounterData>,
    /// The packets and bytes of each colour of the direct meter, if it is configured.
    pub meter_counts: Option<[CounterData; 3]>,
    /// The nanoseconds since the last hit, or the insertion, if the table has idle timeouts.
    pub idle_ns: Option<u64>,
}
