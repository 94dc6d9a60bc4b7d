//! The messages of P4Runtime (p4.v1) that entities are made of, as far as the switch looks at them: fields by number, without meaning.
//! Messages of only one kind of entity are in its file in `entities`.
//!
//! These are on the path of every update, so their shape is ours: byte strings are parts of the request that they came in, large parts
//! are boxed. `official` compares them with the generated messages. Fields that are not declared here are passed over.

use bytes::Bytes;
use ir::MatchKind;

/// Declares messages: `Name { field: type = (kind) "tag"; }`, and for a oneof `| field: type = "type" "tags";`.
macro_rules! messages {
    ($($name:ident {
        $($field:ident: $ty:ty = ($($kind:tt)*) $tag:tt;)*
        $(| $one:ident: $of:ident = $path:tt $tags:tt;)*
    })*) => {$(
        #[derive(Clone, PartialEq, prost::Message)]
        pub(crate) struct $name {
            $(#[prost($($kind)*, tag = $tag)] pub $field: $ty,)*
            $(#[prost(oneof = $path, tags = $tags)] pub $one: Option<$of>,)*
        }
    )*};
}

/// Declares oneofs: `Name { Variant: type = (kind) "tag" word; }`, where `word` is the field's name.
macro_rules! oneofs {
    ($($name:ident { $($variant:ident: $ty:ty = ($($kind:tt)*) $tag:tt $word:tt;)* })*) => {$(
        #[derive(Clone, PartialEq, prost::Oneof)]
        pub(crate) enum $name { $(#[prost($($kind)*, tag = $tag)] $variant($ty),)* }

        #[allow(dead_code, reason = "not every word is asked for")]
        impl $name {
            /// Returns the name of the alternative that is set.
            pub fn word(&self) -> &'static str {
                match self { $($name::$variant(_) => $word,)* }
            }
        }
    )*};
}

pub(crate) use messages;
pub(crate) use oneofs;

messages! {
    Uint128 { high: u64 = (uint64) "1"; low: u64 = (uint64) "2"; }
    Any { type_url: String = (string) "1"; value: Bytes = (bytes = "bytes") "2"; }
    RawWriteRequest {
        device_id: u64 = (uint64) "1";
        role_id: u64 = (uint64) "2";
        election_id: Option<Uint128> = (message, optional) "3";
        // Decoded one after the other.
        updates: Vec<Bytes> = (bytes = "bytes", repeated) "4";
        atomicity: i32 = (int32) "5";
        role: String = (string) "6";
    }
    TableEntry {
        table_id: u32 = (uint32) "1";
        matches: Vec<FieldMatch> = (message, repeated) "2";
        action: Option<TableAction> = (message, optional) "3";
        priority: i32 = (int32) "4";
        controller_metadata: u64 = (uint64) "5";
        meter_config: Option<Box<MeterConfig>> = (message, optional, boxed) "6";
        counter_data: Option<CounterData> = (message, optional) "7";
        is_default_action: bool = (bool) "8";
        idle_timeout_ns: i64 = (int64) "9";
        time_since_last_hit: Option<IdleTimeout> = (message, optional) "10";
        metadata: Bytes = (bytes = "bytes") "11";
        meter_counter_data: Option<Box<MeterCounterData>> = (message, optional, boxed) "12";
        is_const: bool = (bool) "13";
    }
    IdleTimeout { elapsed_ns: i64 = (int64) "1"; }
    FieldMatch { field_id: u32 = (uint32) "1"; | kind: Match = "Match" "2, 3, 4, 6, 7, 100"; }
    One { value: Bytes = (bytes = "bytes") "1"; }
    Two { first: Bytes = (bytes = "bytes") "1"; second: Bytes = (bytes = "bytes") "2"; }
    Lpm { value: Bytes = (bytes = "bytes") "1"; prefix_len: i32 = (int32) "2"; }
    TableAction { | kind: ActionKind = "ActionKind" "1, 2, 3, 4"; }
    Action { action_id: u32 = (uint32) "1"; params: Vec<Argument> = (message, repeated) "4"; }
    Argument { param_id: u32 = (uint32) "2"; value: Bytes = (bytes = "bytes") "3"; }
    ActionSet {
        actions: Vec<WeightedAction> = (message, repeated) "1";
        mode: i32 = (int32) "2";
        semantics: i32 = (int32) "3";
        group_action: Option<Action> = (message, optional) "5";
    }
    WeightedAction {
        action: Option<Action> = (message, optional) "1";
        weight: i32 = (int32) "2";
        | watch: Watch = "Watch" "3, 4";
    }
    Index { index: i64 = (int64) "1"; }
    MeterConfig {
        cir: i64 = (int64) "1";
        cburst: i64 = (int64) "2";
        pir: i64 = (int64) "3";
        pburst: i64 = (int64) "4";
        eburst: i64 = (int64) "5";
    }
    CounterData { byte_count: i64 = (int64) "1"; packet_count: i64 = (int64) "2"; }
    MeterCounterData {
        green: Option<CounterData> = (message, optional) "1";
        yellow: Option<CounterData> = (message, optional) "2";
        red: Option<CounterData> = (message, optional) "3";
    }
    P4Data { | data: DataKind = "DataKind" "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12"; }
    Members { members: Vec<P4Data> = (message, repeated) "1"; }
    PacketOut { payload: Bytes = (bytes = "bytes") "1"; metadata: Vec<PacketMetadata> = (message, repeated) "2"; }
    PacketMetadata { id: u32 = (uint32) "1"; value: Bytes = (bytes = "bytes") "2"; }
    DigestList {
        digest_id: u32 = (uint32) "1";
        list_id: u64 = (uint64) "2";
        data: Vec<P4Data> = (message, repeated) "3";
        timestamp: i64 = (int64) "4";
    }
    IdleTimeoutNotification {
        entries: Vec<TableEntry> = (message, repeated) "1";
        timestamp: i64 = (int64) "2";
    }

    // Ours: what a client said of an entry and the switch has no use for.
    EntryNote {
        metadata: Bytes = (bytes = "bytes") "1";
        controller_metadata: u64 = (uint64) "2";
        numeric_watches: Vec<u32> = (uint32, repeated) "3";
        mode: i32 = (int32) "4";
        semantics: i32 = (int32) "5";
    }
}

oneofs! {
    Match {
        Exact: One = (message) "2" "exact";
        Ternary: Two = (message) "3" "ternary";
        Lpm: Lpm = (message) "4" "lpm";
        Range: Two = (message) "6" "range";
        Optional: One = (message) "7" "optional";
        Other: Any = (message) "100" "other";
    }
    ActionKind {
        Action: Action = (message) "1" "action";
        Member: u32 = (uint32) "2" "action_profile_member_id";
        Group: u32 = (uint32) "3" "action_profile_group_id";
        Set: Box<ActionSet> = (message, boxed) "4" "action_profile_action_set";
    }
    Watch {
        Number: i32 = (int32) "3" "watch";
        Port: Bytes = (bytes = "bytes") "4" "watch_port";
    }
    DataKind {
        Bitstring: Bytes = (bytes = "bytes") "1" "bitstring";
        Varbit: Empty = (message) "2" "varbit";
        Bool: bool = (bool) "3" "bool";
        Tuple: Members = (message) "4" "tuple";
        Struct: Members = (message) "5" "struct";
        Header: Empty = (message) "6" "header";
        HeaderUnion: Empty = (message) "7" "header_union";
        HeaderStack: Empty = (message) "8" "header_stack";
        HeaderUnionStack: Empty = (message) "9" "header_union_stack";
        Enum: String = (string) "10" "enum";
        Error: String = (string) "11" "error";
        EnumValue: Bytes = (bytes = "bytes") "12" "enum_value";
    }
}

/// Returns the field number of a match kind's message in a `FieldMatch`; 100, the number of `other`, if the kind has no message.
pub(crate) fn tag(kind: MatchKind) -> u32 {
    match kind {
        MatchKind::Exact => 2,
        MatchKind::Ternary => 3,
        MatchKind::Lpm => 4,
        MatchKind::Range => 6,
        MatchKind::Optional => 7,
        MatchKind::Selector => 100,
    }
}

/// The contents of a match, whatever its kind.
pub(crate) enum Sent<'a> {
    One(&'a Bytes),
    Two(&'a Bytes, &'a Bytes),
    Prefix(&'a Bytes, i32),
}

impl Match {
    /// Returns the contents of a match of this kind; `None` if the message is of another kind.
    pub fn sent(&self, kind: MatchKind) -> Option<Sent<'_>> {
        let sent = match self {
            Match::Exact(one) | Match::Optional(one) => Sent::One(&one.value),
            Match::Ternary(two) | Match::Range(two) => Sent::Two(&two.first, &two.second),
            Match::Lpm(lpm) => Sent::Prefix(&lpm.value, lpm.prefix_len),
            Match::Other(_) => return None,
        };
        (self.word() == kind.name()).then_some(sent)
    }
}

messages! {
    Empty {}
}
