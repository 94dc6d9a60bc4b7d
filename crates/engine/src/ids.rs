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
    /// The table with this P4Runtime id.
    table: tables -> TableId;
    /// The action with this P4Runtime id.
    action: actions -> ActionId;
    /// The counter, indexed or direct, with this P4Runtime id.
    counter: counters -> CounterId;
    /// The meter, indexed or direct, with this P4Runtime id.
    meter: meters -> MeterId;
    /// The register with this P4Runtime id.
    register: registers -> RegisterId;
    /// The digest with this P4Runtime id.
    digest: digests -> DigestId;
    /// The action profile or selector with this P4Runtime id.
    action_profile: action_profiles -> ActionProfileId;
    /// The value set with this P4Runtime id.
    value_set: value_sets -> ValueSetId;
}
