//! P4Info: the description of a program for the control plane, as in p4.config.v1 of P4Runtime.
//!
//! Names and ids are those the reference compiler gives: an id is a first byte for the kind of object and a hash of
//! the name, unless `@id` gives one ([`ids`]). [`P4Info::to_bytes`] gives the protobuf message, [`P4Info::to_text`] its
//! text format.

mod annotate;
mod build;
mod ids;
mod message;

pub(crate) use annotate::size_semantics;
pub(crate) use build::{INT32_MAX, build};

use std::collections::BTreeMap;

/// Everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct P4Info {
    /// The program.
    pub pkg_info: PkgInfo,
    /// Tables.
    pub tables: Vec<Table>,
    /// Actions.
    pub actions: Vec<Action>,
    /// Action profiles and selectors.
    pub action_profiles: Vec<ActionProfile>,
    /// Indexed counters.
    pub counters: Vec<Indexed>,
    /// Direct counters.
    pub direct_counters: Vec<Direct>,
    /// Indexed meters.
    pub meters: Vec<Indexed>,
    /// Direct meters.
    pub direct_meters: Vec<Direct>,
    /// Packet-in and packet-out headers.
    pub controller_packet_metadata: Vec<ControllerPacketMetadata>,
    /// Parser value sets.
    pub value_sets: Vec<ValueSet>,
    /// Registers.
    pub registers: Vec<Register>,
    /// Digests.
    pub digests: Vec<Digest>,
    /// User-defined types that others refer to.
    pub type_info: TypeInfo,
}

/// About the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PkgInfo {
    /// `v1model`
    pub arch: String,
    /// From `@pkginfo`: name, version, organization, contact, url.
    pub fields: BTreeMap<String, String>,
    /// From `@platform_property`.
    pub platform_properties: BTreeMap<String, u32>,
    /// Other annotations of the package.
    pub annotations: Annotations,
}

/// The common fields of all objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preamble {
    /// P4Runtime id.
    pub id: u32,
    /// Full name.
    pub name: String,
    /// Shortest suffix of the name that no other object ends in.
    pub alias: String,
    /// Annotations, as written.
    pub annotations: Annotations,
}

/// The annotations of an object that do not change its meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// Unstructured annotations, as written.
    pub unstructured: Vec<String>,
    /// Structured annotations.
    pub structured: Vec<StructuredAnnotation>,
    /// `@brief`
    pub brief: Option<String>,
    /// `@description`
    pub description: Option<String>,
}

/// `@name[...]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructuredAnnotation {
    /// Its name.
    pub name: String,
    /// The contents of the brackets.
    pub body: AnnotationBody,
}

/// The contents of the brackets of a structured annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnnotationBody {
    /// Values.
    List(Vec<AnnotationValue>),
    /// Keys and values.
    Pairs(Vec<(String, AnnotationValue)>),
}

/// A value in a structured annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnnotationValue {
    /// A string.
    Text(String),
    /// A number.
    Number(i64),
    /// A truth value.
    Truth(bool),
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Id and name.
    pub preamble: Preamble,
    /// Key fields.
    pub match_fields: Vec<MatchField>,
    /// Actions.
    pub action_refs: Vec<ActionRef>,
    /// The default action if it cannot be changed, else 0.
    pub const_default_action_id: u32,
    /// The default action.
    pub initial_default_action: Option<TableActionCall>,
    /// The action profile, or 0.
    pub implementation_id: u32,
    /// Direct counter and meter.
    pub direct_resource_ids: Vec<u32>,
    /// Number of entries asked for.
    pub size: u64,
    /// Entries can time out.
    pub idle_timeout: bool,
    /// Entries are constant.
    pub is_const_table: bool,
    /// The program gives entries.
    pub has_initial_entries: bool,
}

/// An action with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableActionCall {
    /// The action's id.
    pub action_id: u32,
    /// Parameter ids and values.
    pub arguments: Vec<(u32, Vec<u8>)>,
}

/// A key field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchField {
    /// Id, from 1.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Annotations, as written.
    pub annotations: Annotations,
    /// Width; 0 if the control plane sees a string.
    pub bitwidth: u32,
    /// Its match kind.
    pub kind: ir::MatchKind,
    /// The new type it has, if any.
    pub type_name: Option<String>,
}

/// An action of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionRef {
    /// The action's id.
    pub id: u32,
    /// The uses that entries may make of it.
    pub scope: ir::ActionScope,
    /// Annotations, as written.
    pub annotations: Annotations,
}

/// An action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Action {
    /// Id and name.
    pub preamble: Preamble,
    /// Parameters.
    pub params: Vec<Param>,
}

/// A parameter of an action, or a field of a packet-in or packet-out header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Id, from 1.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Annotations, as written.
    pub annotations: Annotations,
    /// Width; 0 for an enum without a width.
    pub bitwidth: u32,
    /// The named type it has, if any.
    pub type_name: Option<String>,
}

/// An action profile or selector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActionProfile {
    /// Id and name.
    pub preamble: Preamble,
    /// Tables that use it.
    pub table_ids: Vec<u32>,
    /// Whether it has groups.
    pub with_selector: bool,
    /// Number of members.
    pub size: u64,
    /// `@max_group_size`, of a selector.
    pub max_group_size: u32,
    /// `@selector_size_semantics`, of a selector.
    pub size_semantics: Option<SizeSemantics>,
}

/// The meaning of the size of a selector's groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeSemantics {
    /// The sum of the members' weights.
    SumOfWeights,
    /// The number of members, each with at most this weight (0: no limit).
    SumOfMembers(u32),
}

/// An indexed counter or meter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indexed {
    /// Id and name.
    pub preamble: Preamble,
    /// Its unit.
    pub unit: ir::CounterUnit,
    /// Number of cells.
    pub size: u64,
    /// The new type of its index, if any.
    pub index_type_name: Option<String>,
}

/// A direct counter or meter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Direct {
    /// Id and name.
    pub preamble: Preamble,
    /// Its unit.
    pub unit: ir::CounterUnit,
    /// Its table.
    pub direct_table_id: u32,
}

/// A packet-in or packet-out header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerPacketMetadata {
    /// Id; the name is the one in `@controller_header`.
    pub preamble: Preamble,
    /// Its fields.
    pub metadata: Vec<Param>,
}

/// A value set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueSet {
    /// Id and name.
    pub preamble: Preamble,
    /// Members of the key.
    pub fields: Vec<MatchField>,
    /// Capacity.
    pub size: u64,
}

/// A register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// Id and name.
    pub preamble: Preamble,
    /// Type of a cell.
    pub type_spec: TypeSpec,
    /// Number of cells.
    pub size: u64,
    /// The new type of its index, if any.
    pub index_type_name: Option<String>,
}

/// A digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// Id and name.
    pub preamble: Preamble,
    /// Type of the message.
    pub type_spec: TypeSpec,
}

/// A type (P4DataTypeSpec).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeSpec {
    /// `bit<w>`
    Bit(u32),
    /// `int<w>`
    Int(u32),
    /// `varbit<w>`
    Varbit(u32),
    /// `bool`
    Bool,
    /// `tuple`
    Tuple(Vec<TypeSpec>),
    /// A struct in [`TypeInfo::structs`].
    Struct(String),
    /// A header in [`TypeInfo::headers`].
    Header(String),
    /// A header union in [`TypeInfo::header_unions`].
    HeaderUnion(String),
    /// A stack of headers.
    HeaderStack(String, u32),
    /// A stack of header unions.
    HeaderUnionStack(String, u32),
    /// An enum in [`TypeInfo::enums`].
    Enum(String),
    /// A serializable enum in [`TypeInfo::serializable_enums`].
    SerializableEnum(String),
    /// `error`
    Error,
    /// A new type in [`TypeInfo::new_types`].
    NewType(String),
}

/// Named types (P4TypeInfo).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeInfo {
    /// Structs: members.
    pub structs: BTreeMap<String, Vec<(String, TypeSpec)>>,
    /// Headers: members.
    pub headers: BTreeMap<String, Vec<(String, TypeSpec)>>,
    /// Header unions: members and their headers.
    pub header_unions: BTreeMap<String, Vec<(String, String)>>,
    /// Enums: members.
    pub enums: BTreeMap<String, Vec<String>>,
    /// Serializable enums.
    pub serializable_enums: BTreeMap<String, SerializableEnum>,
    /// Names of errors, if some type is `error`.
    pub errors: Vec<String>,
    /// New types.
    pub new_types: BTreeMap<String, NewType>,
}

/// An enum with an underlying type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SerializableEnum {
    /// Width of the underlying type.
    pub bitwidth: u32,
    /// Members and their values.
    pub members: Vec<(String, Vec<u8>)>,
}

/// A type made by `type`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewType {
    /// The representation for the control plane.
    pub representation: NewTypeSpec,
    /// Annotations, as written.
    pub annotations: Annotations,
}

/// The representation for the control plane of a type made by `type`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewTypeSpec {
    /// The control plane sees what represents it.
    Original(TypeSpec),
    /// `@p4runtime_translation` to a number of this width.
    TranslatedBits(String, u32),
    /// `@p4runtime_translation` to a string.
    TranslatedString(String),
}
