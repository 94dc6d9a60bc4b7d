//! Tables, actions, and the action profiles that tables share.

use super::{
    ActionId, ActionProfileId, CounterId, HashAlgorithm, KeyMatch, MatchKind, MeterId, SlotId, Stmt,
};
use crate::Bits;

/// An action that tables can run. (Actions called directly are inlined by the compiler.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// Control-plane name, as in `ingress.forward`.
    pub name: String,
    /// P4Runtime id.
    pub id: u32,
    /// Parameters that the entry supplies; set before the body runs.
    pub params: Vec<ActionParam>,
    /// The body.
    pub body: Vec<Stmt>,
}

/// A control-plane parameter of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionParam {
    /// Name.
    pub name: String,
    /// P4Runtime id, from 1.
    pub id: u32,
    /// The slot of the value.
    pub slot: SlotId,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Control-plane name, as in `ingress.ipv4_lpm`.
    pub name: String,
    /// P4Runtime id.
    pub id: u32,
    /// Key fields. [`StmtKind::Apply`](super::StmtKind::Apply) supplies one expression of the given width for each.
    pub keys: Vec<Key>,
    /// Actions that entries may name.
    pub actions: Vec<TableAction>,
    /// The action on a miss.
    pub default_action: ActionCall,
    /// The control plane may not change the default action.
    pub const_default_action: bool,
    /// Entries from the source.
    pub entries: Vec<ConstEntry>,
    /// The control plane may not change the entries.
    pub const_entries: bool,
    /// Requested capacity, in entries.
    pub size: u64,
    /// A direct counter, counted on every hit.
    pub direct_counter: Option<CounterId>,
    /// A direct meter, executed on every hit.
    pub direct_meter: Option<MeterId>,
    /// The profile in which entries find their actions: each names a member or a group of it, or has a set of actions of its own
    /// that works like a group. The default action is a plain one. A hit on a group without a selectable member runs
    /// nothing, and is a hit; `action_run` is then the number of the table's actions.
    pub implementation: Option<ActionProfileId>,
    /// Entries may carry an idle timeout.
    pub support_timeout: bool,
    /// `@hidden`: the program's P4Info leaves it out.
    pub hidden: bool,
}

impl Table {
    /// Returns whether the table's entries have priorities, of which the highest number wins: some key field
    /// has a match kind that needs them, such as ternary.
    pub fn needs_priority(&self) -> bool {
        self.keys.iter().any(|k| k.kind.has_priority())
    }
}

/// A key field of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Control-plane name, as in `hdr.ipv4.dst_addr`.
    pub name: String,
    /// P4Runtime id, from 1.
    pub id: u32,
    /// Width in bits.
    pub width: u32,
    /// Match kind.
    pub kind: MatchKind,
}

/// Membership of an action in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableAction {
    /// The action.
    pub action: ActionId,
    /// The uses that the control plane may make of it.
    pub scope: ActionScope,
}

/// `@tableonly` and `@defaultonly`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionScope {
    /// In entries and as the default.
    Both,
    /// In entries only.
    TableOnly,
    /// As the default only.
    DefaultOnly,
}

/// An action with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionCall {
    /// The action.
    pub action: ActionId,
    /// One value per parameter, of its width.
    pub args: Vec<Bits>,
}

/// An entry given in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstEntry {
    /// One match per key field.
    pub matches: Vec<KeyMatch>,
    /// The highest number wins. Zero when the table needs no priority.
    pub priority: i32,
    /// The action on a hit.
    pub action: ActionCall,
    /// The control plane may not change it, as in [`Table::const_entries`] all.
    pub is_const: bool,
}

/// An `action_profile` or `action_selector`: actions with arguments that entries of tables share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionProfile {
    /// Control-plane name.
    pub name: String,
    /// P4Runtime id.
    pub id: u32,
    /// Capacity: members of a profile; in a selector, of all groups together (see [`Selector::sum_of_members`]). 0 is no limit.
    pub size: u64,
    /// The selector, for an `action_selector`.
    pub selector: Option<Selector>,
}

/// The choice of a member of a group by a hash.
///
/// The key fields that are not looked up ([`MatchKind::is_looked_up`]) are hashed as
/// [`StmtKind::Hash`](super::StmtKind::Hash) does with them as its data and a destination of `width` bits.
/// The selectable members are taken in the order in which the group lists them, each as often as its weight
/// says; the member at the position that is the hash modulo the sum of the weights is chosen. A member is not
/// selectable while the port that it watches is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selector {
    /// Function.
    pub algorithm: HashAlgorithm,
    /// Bits of its result that count, 1 to 64.
    pub width: u32,
    /// Largest size of a group; 0 is no limit but the profile's.
    pub max_group_size: u64,
    /// Sizes are numbers of members; otherwise they are sums of weights.
    pub sum_of_members: bool,
}
