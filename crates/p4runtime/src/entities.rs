//! The kinds of entities: each file has the messages of one, what an update of it comes to, what a read of it selects, and what a new
//! program keeps of it. [`EntityKind`] and [`TRANSFERS`] list them.

pub(crate) mod array;
pub(crate) mod counter;
pub(crate) mod digest;
pub(crate) mod direct;
mod externs;
pub(crate) mod meter;
pub(crate) mod profile;
mod register;
mod replication;
mod selection;
pub(crate) mod table;
mod value_set;

use crate::answer::{Answer, Copied};
use crate::messages::{self as m, messages, oneofs};
use crate::pipeline::Pipeline;
use crate::protobuf::nested;
use crate::served::Served;
use crate::transfer::Keep;
use engine::control::ControlError;

macro_rules! entities {
    ($($variant:ident: $ty:ty = ($($kind:tt)*) $tag:tt $word:tt;)*) => {
        oneofs! { EntityKind { $($variant: $ty = ($($kind)*) $tag $word;)* } }

        impl EntityKind {
            pub fn served(&self) -> &dyn Served {
                match self { $(EntityKind::$variant(message) => message,)* }
            }

            /// Returns the name of the entity's kind, which is that of its field in `p4.v1.Entity`, such as
            /// `"table_entry"`.
            pub fn name(&self) -> &'static str {
                match self { $(EntityKind::$variant(_) => $word,)* }
            }
        }
    };
}

messages! {
    Update { kind: i32 = (int32) "1"; entity: Option<Entity> = (message, optional) "2"; }
    ReadRequest {
        device_id: u64 = (uint64) "1";
        entities: Vec<Entity> = (message, repeated) "2";
        role: String = (string) "3";
    }
    Entity { | entity: EntityKind = "EntityKind" "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12"; }
}

entities! {
    Extern: externs::ExternEntry = (message) "1" "extern_entry";
    Table: m::TableEntry = (message) "2" "table_entry";
    Member: profile::ActionProfileMember = (message) "3" "action_profile_member";
    Group: profile::ActionProfileGroup = (message) "4" "action_profile_group";
    Meter: meter::MeterEntry = (message) "5" "meter_entry";
    DirectMeter: Box<direct::DirectMeterEntry> = (message, boxed) "6" "direct_meter_entry";
    Counter: counter::CounterEntry = (message) "7" "counter_entry";
    DirectCounter: Box<direct::DirectCounterEntry> = (message, boxed) "8" "direct_counter_entry";
    Replication: replication::ReplicationEntry = (message) "9" "packet_replication_engine_entry";
    ValueSet: value_set::ValueSetEntry = (message) "10" "value_set_entry";
    Register: register::RegisterEntry = (message) "11" "register_entry";
    Digest: digest::DigestEntry = (message) "12" "digest_entry";
}

/// The functions that bring a switch to the state of another one, in this order, because entries refer to groups and
/// members.
pub(crate) const TRANSFERS: [Keep; 6] = [
    profile::transfer,
    register::transfer,
    counter::transfer,
    meter::transfer,
    value_set::transfer,
    digest::transfer,
];

impl Copied for Vec<EntityKind> {
    fn encode(&self, _: &Pipeline, out: &mut Vec<u8>) {
        for kind in self {
            nested(out, 1, |out| kind.encode(out));
        }
    }
}

/// Builds an answer from the messages of `entities`. If there are none and a single object was requested (`id` is not
/// 0), fails with the error that `missing` returns for the id.
fn found(
    entities: Vec<EntityKind>,
    id: u32,
    missing: impl Fn(u32) -> ControlError,
) -> Result<Answer, ControlError> {
    match entities.is_empty() && id != 0 {
        true => Err(missing(id)),
        false => Ok(Answer::of(entities)),
    }
}
