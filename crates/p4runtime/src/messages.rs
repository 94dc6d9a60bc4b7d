//! The messages of P4Runtime (p4.v1) and P4Info (p4.config.v1), as far as the switch looks at them: fields by number, without meaning.
//! Messages of only one kind of entity are in its file in `entities`.
//!
//! Byte strings are parts of the request that they came in. Fields that are not declared here are passed over.

use crate::entities::Entity;
use bytes::Bytes;
use std::collections::BTreeMap;

/// `Name { field: type = (kind) "tag"; }`, and of a oneof `| field: type = "type" "tags";`.
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

/// `Name { Variant: type = (kind) "tag" word; }`; the word is the field's name.
macro_rules! oneofs {
    ($($name:ident { $($variant:ident: $ty:ty = ($($kind:tt)*) $tag:tt $word:tt;)* })*) => {$(
        #[derive(Clone, PartialEq, prost::Oneof)]
        pub(crate) enum $name { $(#[prost($($kind)*, tag = $tag)] $variant($ty),)* }

        #[allow(dead_code, reason = "not every word is asked for")]
        impl $name {
            /// The name of the field that is set.
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
    Update { kind: i32 = (int32) "1"; entity: Option<Entity> = (message, optional) "2"; }
    ReadRequest {
        device_id: u64 = (uint64) "1";
        entities: Vec<Entity> = (message, repeated) "2";
        role: String = (string) "3";
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
    FieldMatch { field_id: u32 = (uint32) "1"; | kind: MatchKind = "MatchKind" "2, 3, 4, 6, 7, 100"; }
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
    MatchKind {
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
    MatchType { Kind: i32 = (int32) "5" "match_type"; Other: String = (string) "7" "other_match_type"; }
    SizeSemantics {
        Weights: Empty = (message) "6" "sum_of_weights";
        Members: SumOfMembers = (message) "7" "sum_of_members";
    }
    TypeKind {
        Bitstring: BitstringType = (message) "1" "bitstring";
        Bool: Empty = (message) "2" "bool";
        Tuple: TupleType = (message) "3" "tuple";
        Struct: Name = (message) "4" "struct";
        Header: Name = (message) "5" "header";
        HeaderUnion: Name = (message) "6" "header_union";
        HeaderStack: Empty = (message) "7" "header_stack";
        HeaderUnionStack: Empty = (message) "8" "header_union_stack";
        Enum: Name = (message) "9" "enum";
        Error: Empty = (message) "10" "error";
        SerializableEnum: Name = (message) "11" "serializable_enum";
        NewType: Name = (message) "12" "new_type";
    }
    BitstringKind {
        Bit: Width = (message) "1" "bit";
        Int: Width = (message) "2" "int";
        Varbit: Width = (message) "3" "varbit";
    }
    Representation {
        Original: TypeSpec = (message) "1" "original_type";
        Translated: TranslatedType = (message) "2" "translated_type";
    }
    SdnType { Bitwidth: i32 = (int32) "2" "sdn_bitwidth"; String: Empty = (message) "3" "sdn_string"; }
    ExpressionValue { String: String = (string) "1" "string_value"; }
}

// P4Info.
messages! {
    Empty {}
    P4Info {
        tables: Vec<TableInfo> = (message, repeated) "2";
        actions: Vec<ActionInfo> = (message, repeated) "3";
        action_profiles: Vec<ActionProfileInfo> = (message, repeated) "4";
        counters: Vec<ArrayInfo> = (message, repeated) "5";
        direct_counters: Vec<DirectInfo> = (message, repeated) "6";
        meters: Vec<ArrayInfo> = (message, repeated) "7";
        direct_meters: Vec<DirectInfo> = (message, repeated) "8";
        controller_headers: Vec<HeaderInfo> = (message, repeated) "9";
        value_sets: Vec<ValueSetInfo> = (message, repeated) "10";
        registers: Vec<DataInfo> = (message, repeated) "11";
        digests: Vec<DataInfo> = (message, repeated) "12";
        type_info: Option<TypeInfo> = (message, optional) "200";
    }
    Preamble {
        id: u32 = (uint32) "1";
        name: String = (string) "2";
        annotations: Vec<String> = (string, repeated) "4";
        structured: Vec<StructuredAnnotation> = (message, repeated) "6";
    }
    StructuredAnnotation { name: String = (string) "1"; list: Option<ExpressionList> = (message, optional) "2"; }
    ExpressionList { expressions: Vec<Expression> = (message, repeated) "1"; }
    Expression { | value: ExpressionValue = "ExpressionValue" "1"; }
    Name { name: String = (string) "1"; }
    FieldInfo {
        id: u32 = (uint32) "1";
        name: String = (string) "2";
        bitwidth: i32 = (int32) "4";
        type_name: Option<Name> = (message, optional) "8";
        | match_type: MatchType = "MatchType" "5, 7";
    }
    TableInfo {
        preamble: Option<Preamble> = (message, optional) "1";
        fields: Vec<FieldInfo> = (message, repeated) "2";
        action_refs: Vec<ActionRef> = (message, repeated) "3";
        const_default_action_id: u32 = (uint32) "4";
        implementation_id: u32 = (uint32) "6";
        direct_resource_ids: Vec<u32> = (uint32, repeated) "7";
        idle_timeout_behavior: i32 = (int32) "9";
        is_const: bool = (bool) "10";
    }
    ActionRef { id: u32 = (uint32) "1"; scope: i32 = (int32) "3"; }
    ActionInfo { preamble: Option<Preamble> = (message, optional) "1"; params: Vec<ParamInfo> = (message, repeated) "2"; }
    ParamInfo {
        id: u32 = (uint32) "1";
        name: String = (string) "2";
        bitwidth: i32 = (int32) "4";
        type_name: Option<Name> = (message, optional) "6";
    }
    HeaderInfo { preamble: Option<Preamble> = (message, optional) "1"; fields: Vec<HeaderFieldInfo> = (message, repeated) "2"; }
    HeaderFieldInfo {
        id: u32 = (uint32) "1";
        name: String = (string) "2";
        bitwidth: i32 = (int32) "4";
        type_name: Option<Name> = (message, optional) "5";
    }
    ActionProfileInfo {
        preamble: Option<Preamble> = (message, optional) "1";
        table_ids: Vec<u32> = (uint32, repeated) "2";
        with_selector: bool = (bool) "3";
        size: i64 = (int64) "4";
        max_group_size: i32 = (int32) "5";
        weights_disallowed: bool = (bool) "8";
        | semantics: SizeSemantics = "SizeSemantics" "6, 7";
    }
    SumOfMembers { max_member_weight: i32 = (int32) "1"; }
    // Of a counter or meter.
    ArrayInfo {
        preamble: Option<Preamble> = (message, optional) "1";
        spec: Option<Spec> = (message, optional) "2";
        size: i64 = (int64) "3";
    }
    DirectInfo { preamble: Option<Preamble> = (message, optional) "1"; spec: Option<Spec> = (message, optional) "2"; }
    Spec { kind: i32 = (int32) "2"; }
    ValueSetInfo {
        preamble: Option<Preamble> = (message, optional) "1";
        fields: Vec<FieldInfo> = (message, repeated) "2";
        size: i32 = (int32) "3";
    }
    // Of a register or digest.
    DataInfo {
        preamble: Option<Preamble> = (message, optional) "1";
        type_spec: Option<TypeSpec> = (message, optional) "2";
        size: i32 = (int32) "3";
    }
    TypeInfo {
        structs: BTreeMap<String, StructType> = (btree_map = "string, message") "1";
        serializable_enums: BTreeMap<String, EnumType> = (btree_map = "string, message") "6";
        new_types: BTreeMap<String, NewType> = (btree_map = "string, message") "7";
    }
    TypeSpec { | kind: TypeKind = "TypeKind" "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12"; }
    BitstringType { | kind: BitstringKind = "BitstringKind" "1, 2, 3"; }
    Width { bitwidth: i32 = (int32) "1"; }
    TupleType { members: Vec<TypeSpec> = (message, repeated) "1"; }
    StructType { members: Vec<StructMember> = (message, repeated) "1"; }
    StructMember { name: String = (string) "1"; type_spec: Option<TypeSpec> = (message, optional) "2"; }
    EnumType { underlying: Option<Width> = (message, optional) "1"; }
    NewType { | representation: Representation = "Representation" "1, 2"; }
    TranslatedType { uri: String = (string) "1"; | sdn: SdnType = "SdnType" "2, 3"; }
}
