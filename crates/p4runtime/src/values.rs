//! Values: byte strings for `bit<w>` (specification, "Bytestrings"), and `P4Data` for the types of registers and digests.
//!
//! The switch keeps flat bit strings; a type says how to cut them, the first member in the highest bits. Headers, stacks, unions and
//! varbit are UNIMPLEMENTED.

use crate::errors::{invalid, unimplemented};
use crate::messages::{DataKind, Members, P4Data};
use bytes::Bytes;
use engine::control::ControlError;
use engine::refuse;
use ir::Bits;
use proto::p4info::p4_bitstring_like_type_spec::TypeSpec as BitsKind;
use proto::p4info::p4_data_type_spec::TypeSpec as Kind;
use proto::p4info::p4_new_type_spec::Representation;
use proto::p4info::p4_new_type_translation::SdnType;
use proto::p4info::{P4DataTypeSpec, P4TypeInfo};
use std::borrow::Cow;

/// The largest width of a value that P4Info may state, in bits.
pub(crate) const MAX_WIDTH: u32 = 1 << 16;
const MAX_DEPTH: u32 = 32;
const MAX_PARTS: u32 = 4096;

fn significant(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|&&b| b == 0).count();
    &bytes[zeros..]
}

/// Converts a byte string for `bit<width>` into the switch's value of `own` bits. Returns an error that describes the
/// fault in words.
pub(crate) fn number(bytes: &[u8], width: u32, own: u32) -> Result<Bits, String> {
    let significant = significant(bytes);
    let bits = match significant {
        [] if bytes.is_empty() => {
            return Err("the binary string is empty; zero is one byte of zero".into());
        }
        [] => 0,
        [first, rest @ ..] => rest.len() as u64 * 8 + u64::from(8 - first.leading_zeros()),
    };
    if bits > u64::from(width) {
        let plural = if width == 1 { "" } else { "s" };
        return Err(format!(
            "{} does not fit into {width} bit{plural}",
            shown(bytes)
        ));
    }
    if bits > u64::from(own) {
        return Err(format!(
            "the value has {bits} bits and does not fit into {own}"
        ));
    }
    Ok(Bits::from_be_bytes(own, significant))
}

/// Formats bytes in hexadecimal for an error message, cut to 20 bytes.
fn shown(bytes: &[u8]) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    match bytes.len() {
        0..=20 => format!("0x{}", hex(bytes)),
        length => format!("0x{}... ({length} bytes)", hex(&bytes[..20])),
    }
}

/// Appends the shortest byte string that represents a value to `out`.
pub(crate) fn put_bytestring(out: &mut Vec<u8>, value: &Bits) {
    let length = value.bit_length().div_ceil(8).max(1) as usize;
    let limbs = &value.limbs()[..length.div_ceil(8)];
    let mut rest = length - 8 * (limbs.len() - 1);
    for limb in limbs.iter().rev() {
        out.extend_from_slice(&limb.to_be_bytes()[8 - rest..]);
        rest = 8;
    }
}

/// Returns the shortest byte string that represents a value.
pub(crate) fn bytestring(value: &Bits) -> Bytes {
    let mut out = Vec::new();
    put_bytestring(&mut out, value);
    Bytes::from(out)
}

/// Returns the shortest byte string that represents a number.
pub(crate) fn bytestring_of(number: u64) -> Bytes {
    bytestring(&Bits::from_u64(64, number))
}

/// Returns the canonical form of a byte string: without leading zero bytes, but at least one byte.
pub(crate) fn canonical(bytes: &[u8]) -> &[u8] {
    match significant(bytes) {
        [] => &[0],
        significant => significant,
    }
}

/// A type of `P4Data`. Widths are in bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Bool,
    Bit(u32),
    Int(u32),
    Enum(u32),
    /// A type translated to a number of this width in bits; its width in the program is not known.
    Translated(u32),
    /// An enum (or `error`, if true) without an underlying type: its width in the program, and the names of its
    /// values in order.
    Named(u32, Vec<String>, bool),
    Struct(Vec<Type>),
    Tuple(Vec<Type>),
}

impl Type {
    /// Builds the type that `spec` describes, with the named types of `types`. Fails with INVALID_ARGUMENT or
    /// UNIMPLEMENTED if the type is not supported or `spec` is absent.
    pub fn new(spec: Option<&P4DataTypeSpec>, types: &P4TypeInfo) -> Result<Type, ControlError> {
        Type::resolve(spec, types, 0, &mut 0)
    }

    fn resolve(
        spec: Option<&P4DataTypeSpec>,
        types: &P4TypeInfo,
        depth: u32,
        parts: &mut u32,
    ) -> Result<Type, ControlError> {
        *parts += 1;
        refuse!(
            *parts > MAX_PARTS => InvalidArgument,
            "P4Info: a type has more than {MAX_PARTS} parts"
        );
        refuse!(
            depth > MAX_DEPTH => InvalidArgument,
            "P4Info: types are nested too deeply, or in themselves"
        );
        let missing =
            |what: &str, name: &str| invalid(format!("P4Info: no type_info for {what} '{name}'"));
        let mut inner =
            |spec: Option<&P4DataTypeSpec>| Type::resolve(spec, types, depth + 1, parts);
        match spec.and_then(|spec| spec.type_spec.as_ref()) {
            Some(Kind::Bool(_)) => Ok(Type::Bool),
            Some(Kind::Bitstring(bits)) => match &bits.type_spec {
                Some(BitsKind::Bit(width)) => Ok(Type::Bit(checked_width(width.bitwidth)?)),
                Some(BitsKind::Int(width)) => Ok(Type::Int(checked_width(width.bitwidth)?)),
                Some(BitsKind::Varbit(_)) => Err(unsupported("varbit")),
                None => Err(unsupported("unknown")),
            },
            Some(Kind::Tuple(tuple)) => {
                let members = tuple.members.iter().map(|member| inner(Some(member)));
                Ok(Type::Tuple(members.collect::<Result<_, _>>()?))
            }
            Some(Kind::Struct(name)) => {
                let found = types.structs.get(&name.name);
                let found = found.ok_or_else(|| missing("struct", &name.name))?;
                let members = found.members.iter().map(|m| inner(m.type_spec.as_ref()));
                Ok(Type::Struct(members.collect::<Result<_, _>>()?))
            }
            Some(Kind::SerializableEnum(name)) => {
                let found = types.serializable_enums.get(&name.name);
                let found = found.ok_or_else(|| missing("enum", &name.name))?;
                let width = found
                    .underlying_type
                    .as_ref()
                    .map_or(0, |width| width.bitwidth);
                Ok(Type::Enum(checked_width(width)?))
            }
            Some(Kind::NewType(name)) => {
                let found = types.new_types.get(&name.name);
                let found = found.ok_or_else(|| missing("type", &name.name))?;
                match &found.representation {
                    Some(Representation::OriginalType(spec)) => inner(Some(spec)),
                    Some(Representation::TranslatedType(translated)) => match translated.sdn_type {
                        Some(SdnType::SdnBitwidth(width)) => {
                            Ok(Type::Translated(checked_width(width)?))
                        }
                        _ => Err(unimplemented(format!(
                            "type '{}' is translated to a string, which is not supported",
                            name.name
                        ))),
                    },
                    None => inner(None),
                }
            }
            Some(Kind::Header(_)) => Err(unsupported("header")),
            Some(Kind::HeaderUnion(_)) => Err(unsupported("header_union")),
            Some(Kind::HeaderStack(_)) => Err(unsupported("header_stack")),
            Some(Kind::HeaderUnionStack(_)) => Err(unsupported("header_union_stack")),
            Some(Kind::Enum(name)) => {
                let found = types.enums.get(&name.name);
                let found = found.ok_or_else(|| missing("enum", &name.name))?;
                let names = found.members.iter().map(|member| member.name.clone());
                Ok(Type::Named(ir::ENUM_WIDTH, names.collect(), false))
            }
            Some(Kind::Error(_)) => {
                let found = types
                    .error
                    .as_ref()
                    .ok_or_else(|| missing("error", "error"))?;
                Ok(Type::Named(ir::ERROR_WIDTH, found.members.clone(), true))
            }
            None => Err(unsupported("unknown")),
        }
    }

    pub fn width(&self) -> u32 {
        match self {
            Type::Bool => 1,
            Type::Bit(width)
            | Type::Int(width)
            | Type::Enum(width)
            | Type::Translated(width)
            | Type::Named(width, ..) => *width,
            Type::Struct(members) | Type::Tuple(members) => {
                let widths = members.iter().map(Type::width);
                widths.fold(0, u32::saturating_add)
            }
        }
    }

    /// Returns the width of the type in the program, in bits; 0 if the P4Info does not give it.
    pub fn width_in_program(&self) -> u32 {
        if self.has_translated() {
            0
        } else {
            self.width()
        }
    }

    fn has_translated(&self) -> bool {
        match self {
            Type::Translated(_) => true,
            Type::Struct(members) | Type::Tuple(members) => {
                members.iter().any(Type::has_translated)
            }
            _ => false,
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Type::Bool => "bool",
            Type::Bit(_) | Type::Int(_) | Type::Translated(_) => "bitstring",
            Type::Enum(_) => "enum_value",
            Type::Named(_, _, false) => "enum",
            Type::Named(_, _, true) => "error",
            Type::Struct(_) => "struct",
            Type::Tuple(_) => "tuple",
        }
    }

    /// Encodes a value as `P4Data` in canonical form.
    pub fn to_data(&self, value: &Bits) -> P4Data {
        let data = match self {
            Type::Bool => DataKind::Bool(!value.is_zero()),
            Type::Enum(_) => DataKind::EnumValue(bytestring(value)),
            Type::Bit(_) | Type::Translated(_) => DataKind::Bitstring(bytestring(value)),
            Type::Int(_) => DataKind::Bitstring(signed(value)),
            Type::Named(_, names, is_error) => {
                let at = value.to_u64().and_then(|at| usize::try_from(at).ok());
                // A number without a name can only be what a program never wrote.
                let name = at.and_then(|at| names.get(at)).cloned().unwrap_or_default();
                match is_error {
                    true => DataKind::Error(name),
                    false => DataKind::Enum(name),
                }
            }
            Type::Struct(members) => DataKind::Struct(cut(members, value)),
            Type::Tuple(members) => DataKind::Tuple(cut(members, value)),
        };
        P4Data { data: Some(data) }
    }

    /// Decodes `P4Data` of this type, the reverse of [`Self::to_data`]. Returns `None` for a struct or tuple without
    /// any bits. Fails with INVALID_ARGUMENT if `data` is absent, is of another kind, or has a value or name that the
    /// type does not have.
    pub fn value_of(&self, data: Option<&P4Data>) -> Result<Option<Bits>, ControlError> {
        let data = data.and_then(|data| data.data.as_ref());
        let string = |bytes: &[u8], width| number(bytes, width, width).map_err(value_error);
        Ok(Some(match (self, data) {
            (Type::Bool, Some(DataKind::Bool(value))) => Bits::from_bool(*value),
            (Type::Enum(width), Some(DataKind::EnumValue(bytes)))
            | (Type::Bit(width) | Type::Translated(width), Some(DataKind::Bitstring(bytes))) => {
                string(bytes, *width)?
            }
            (Type::Named(width, names, false), Some(DataKind::Enum(name)))
            | (Type::Named(width, names, true), Some(DataKind::Error(name))) => {
                let at = names.iter().position(|known| known == name);
                let at = at.ok_or_else(|| invalid(format!("value: there is no '{name}'")))?;
                Bits::from_u64(*width, at as u64)
            }
            (Type::Int(width), Some(DataKind::Bitstring(bytes))) => {
                from_signed(bytes, *width).map_err(value_error)?
            }
            (Type::Struct(types), Some(DataKind::Struct(given)))
            | (Type::Tuple(types), Some(DataKind::Tuple(given))) => {
                return joined(types, &given.members);
            }
            (_, found) => {
                let found = found.map_or("nothing", DataKind::word);
                let wanted = self.word();
                return Err(invalid(format!(
                    "the data is of kind {found}, the type asks for {wanted}"
                )));
            }
        }))
    }
}

fn value_error(why: String) -> ControlError {
    invalid(format!("value: {why}"))
}

fn joined(types: &[Type], given: &[P4Data]) -> Result<Option<Bits>, ControlError> {
    if types.len() != given.len() {
        let (given, types) = (given.len(), types.len());
        return Err(invalid(format!(
            "the data has {given} members, the type has {types}"
        )));
    }
    let mut whole: Option<Bits> = None;
    for (member, data) in types.iter().zip(given) {
        let Some(part) = member.value_of(Some(data))? else {
            continue;
        };
        whole = Some(match whole {
            Some(high) => high.concat(&part),
            None => part,
        });
    }
    Ok(whole)
}

fn cut(members: &[Type], value: &Bits) -> Members {
    let mut rest = value.width();
    let members = members.iter().map(|member| {
        let width = member.width().min(rest);
        if width == 0 {
            return member.to_data(&Bits::zero(1));
        }
        rest -= width;
        member.to_data(&value.slice(rest + width - 1, rest))
    });
    Members {
        members: members.collect(),
    }
}

/// Returns the shortest byte string that represents a signed value in two's complement.
fn signed(value: &Bits) -> Bytes {
    let width = value.width();
    let negative = value.bit(width - 1);
    let magnitude = if negative { value.not() } else { value.clone() };
    let bytes = (magnitude.bit_length() + 1).div_ceil(8);
    let extended = value.sign_extend(width.max(8 * bytes));
    Bytes::from(extended.slice(8 * bytes - 1, 0).to_be_bytes())
}

fn from_signed(bytes: &[u8], width: u32) -> Result<Bits, String> {
    let Some(first) = bytes.first() else {
        return Err("the binary string is empty; zero is one byte of zero".into());
    };
    let error = || format!("{} does not fit into {width} bits with sign", shown(bytes));
    let fill = if first & 0x80 == 0 { 0 } else { 0xff };
    // All bytes in front of those that the width needs are filling.
    let needed = (width.div_ceil(8) as usize).min(bytes.len());
    let (filling, value) = bytes.split_at(bytes.len() - needed);
    if filling.iter().any(|byte| *byte != fill) {
        return Err(error());
    }
    let own = 8 * needed as u32 + 1;
    let mut sign_bytes: Cow<'_, [u8]> = Cow::Borrowed(value);
    sign_bytes.to_mut().insert(0, fill);
    let wide = Bits::from_be_bytes(own, &sign_bytes);
    let result = wide.sign_extend(own.max(width)).slice(width - 1, 0);
    match result.sign_extend(own.max(width)) == wide.sign_extend(own.max(width)) {
        true => Ok(result),
        false => Err(error()),
    }
}

fn checked_width(width: i32) -> Result<u32, ControlError> {
    match u32::try_from(width) {
        Ok(width @ 1..=MAX_WIDTH) => Ok(width),
        _ => Err(invalid(format!(
            "P4Info: a type has {width} bits; 1 to {MAX_WIDTH} are supported"
        ))),
    }
}

fn unsupported(kind: &str) -> ControlError {
    unimplemented(format!("values of type {kind} are not supported"))
}
