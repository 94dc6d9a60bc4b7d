//! From P4Runtime ids to the program's own.

use ir::{
    ActionId, ActionProfileId, CounterId, DigestId, MeterId, Program, RegisterId, TableId,
    ValueSetId,
};

macro_rules! by_id {
    ($($(#[$doc:meta])* $name:ident: $list:ident -> $id:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(program: &Program, id: u32) -> Option<$id> {
            let at = program.$list.iter().position(|object| object.id == id)?;
            Some($id(at as u32))
        }
    )*};
}

by_id! {
    /// Returns the program's id of the table with this P4Runtime id; `None` if there is none.
    table: tables -> TableId;
    /// Returns the program's id of the action with this P4Runtime id; `None` if there is none.
    action: actions -> ActionId;
    /// Returns the program's id of the counter, indexed or direct, with this P4Runtime id; `None` if there is none.
    counter: counters -> CounterId;
    /// Returns the program's id of the meter, indexed or direct, with this P4Runtime id; `None` if there is none.
    meter: meters -> MeterId;
    /// Returns the program's id of the register with this P4Runtime id; `None` if there is none.
    register: registers -> RegisterId;
    /// Returns the program's id of the digest with this P4Runtime id; `None` if there is none.
    digest: digests -> DigestId;
    /// Returns the program's id of the action profile or selector with this P4Runtime id; `None` if there is none.
    action_profile: action_profiles -> ActionProfileId;
    /// Returns the program's id of the value set with this P4Runtime id; `None` if there is none.
    value_set: value_sets -> ValueSetId;
}
