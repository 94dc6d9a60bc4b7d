//! The first difference between two P4Infos that are said to be of one program.
//!
//! It walks the fields of the definitions, so a field that a later version adds is compared too. What says nothing about the program is
//! listed in [`MEANINGLESS`].

use crate::schema::{self, Kind, Message};
use crate::text::{escaped, word};
use bytes::Buf;
use prost::encoding::{WireType, decode_key, decode_varint};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Fields that may differ: message (`*` is any), field, and the reason.
pub const MEANINGLESS: &[(&str, &str, &str)] = &[
    ("*", "doc", "for people"),
    ("*", "annotation_locations", "for people"),
    (
        "*",
        "annotations",
        "for control planes, which may add some (`@p4runtime_role`)",
    ),
    ("*", "structured_annotations", "as annotations"),
    ("ActionProfile", "sum_of_weights", "the default"),
    ("PkgInfo", "name", "for people"),
    ("PkgInfo", "version", "for people"),
    ("PkgInfo", "organization", "for people"),
    ("PkgInfo", "contact", "for people"),
    ("PkgInfo", "url", "for people"),
    (
        "PkgInfo",
        "platform_properties",
        "of the device, not of the program",
    ),
];

/// Bytes of a text that a message shows.
const MOST_SHOWN: usize = 60;

/// One value of a field.
#[derive(Debug, PartialEq)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The values of a message's fields by number, defaults left out.
type Fields<'a> = BTreeMap<u32, Vec<Value<'a>>>;

/// Returns the first difference between the serialized P4Info of a program and another one, as a sentence. Objects are compared with those
/// of the same id, in whatever order they are. What cannot be decoded is compared as far as it can.
pub fn of_p4info(program: &[u8], given: &[u8]) -> Option<String> {
    let root = schema::message("p4.config.v1.P4Info")?;
    if program == given {
        return None;
    }
    let used = used_actions(root, program);
    let (what, place) = messages(root, program, given, &used)?;
    let place: Vec<String> = place.into_iter().rev().collect();
    Some(match place.is_empty() {
        true => what,
        false => format!("{}: {what}", place.join(": ")),
    })
}

/// Keys of the actions that tables refer to. p4c leaves others out, which only the program calls.
type Used = BTreeSet<Vec<u8>>;

const ACTION: &str = "p4.config.v1.Action";

fn used_actions(root: &'static Message, program: &[u8]) -> Used {
    let parts = |of: &'static Message, data, wanted: &str| {
        let field = of.fields.iter().find(|(_, name, _)| *name == wanted);
        let found = field.and_then(|(number, _, kind)| match kind {
            Kind::Message(at) => Some((schema::at(*at), fields(of, data).remove(number)?)),
            _ => None,
        });
        let messages = found.into_iter().flat_map(|(of, values)| {
            let messages = values.into_iter().filter_map(move |value| match value {
                Value::Bytes(data) => Some((of, data)),
                Value::Number(_) => None,
            });
            messages.collect::<Vec<_>>()
        });
        messages.collect::<Vec<_>>()
    };
    let tables = parts(root, program, "tables").into_iter();
    let references = tables.flat_map(|(of, table)| parts(of, table, "action_refs"));
    references.filter_map(|(of, it)| key(of, it)).collect()
}

/// A difference, and where it is, innermost first.
type Difference = (String, Vec<String>);

fn messages(of: &Message, program: &[u8], given: &[u8], used: &Used) -> Option<Difference> {
    if program == given {
        return None;
    }
    let (own, other) = (fields(of, program), fields(of, given));
    let known = of
        .fields
        .iter()
        .filter(|(_, name, _)| !is_meaningless(of, name));
    let mut known = known.filter(|(_, name, _)| !(*name == "arch" && given.is_empty()));
    known.find_map(|(number, name, kind)| {
        let empty = Vec::new();
        let own = own.get(number).unwrap_or(&empty);
        let other = other.get(number).unwrap_or(&empty);
        match kind {
            Kind::Message(at) => nested(name, schema::at(*at), own, other, used),
            kind => {
                let (own, other) = (values(*kind, own), values(*kind, other));
                let what = || format!("{name} is {}, in the P4Info {}", shown(&own), shown(&other));
                (own != other).then(|| (what(), Vec::new()))
            }
        }
    })
}

fn is_meaningless(of: &Message, field: &str) -> bool {
    let short = of.name.rsplit('.').next().unwrap_or_default();
    let mut listed = MEANINGLESS.iter();
    listed.any(|(message, name, _)| *name == field && ["*", short].contains(message))
}

/// Compares the messages of one field: with the same key, or else at the same place.
fn nested(
    name: &str,
    of: &Message,
    own: &[Value<'_>],
    other: &[Value<'_>],
    used: &Used,
) -> Option<Difference> {
    let (own, other) = (keyed(of, own), keyed(of, other));
    let alone = own.len() <= 1 && other.len() <= 1 && key(of, &[]).is_none();
    let at = |it: &[u8]| match (alone, label(of, it)) {
        (true, _) => name.to_owned(),
        (false, label) => format!("{name} {label}"),
    };
    for (key, message) in &own {
        let counterpart = other.get(key);
        match counterpart {
            Some(counterpart) => {
                if let Some((what, mut place)) = messages(of, message, counterpart, used) {
                    place.push(at(message));
                    return Some((what, place));
                }
            }
            None if alone => {
                if of.fields.is_empty() {
                    return Some((format!("the P4Info leaves out {name}"), Vec::new()));
                }
                if let Some((what, mut place)) = messages(of, message, &[], used) {
                    place.push(at(message));
                    return Some((what, place));
                }
            }
            None if of.name == ACTION && !used.contains(key) => {}
            None => return Some((format!("the P4Info leaves out {}", at(message)), Vec::new())),
        }
    }
    let (_, more) = other.iter().find(|(key, _)| !own.contains_key(*key))?;
    if alone && !of.fields.is_empty() {
        let (what, mut place) = messages(of, &[], more, used)?;
        place.push(at(more));
        return Some((what, place));
    }
    Some((format!("the program has no {}", at(more)), Vec::new()))
}

fn keyed<'a>(of: &Message, values: &[Value<'a>]) -> BTreeMap<Vec<u8>, &'a [u8]> {
    let messages = values
        .iter()
        .enumerate()
        .filter_map(|(place, value)| match value {
            Value::Bytes(data) => Some((place, *data)),
            Value::Number(_) => None,
        });
    let keyed = messages.map(|(place, data)| {
        let key = key(of, data).unwrap_or_else(|| place.to_be_bytes().to_vec());
        (key, data)
    });
    keyed.collect()
}

/// Returns what tells a message apart from others of a repeated field: its id, or the key of a map; `None` if it has nothing of the kind.
fn key(of: &Message, data: &[u8]) -> Option<Vec<u8>> {
    let field = |wanted: &str| of.fields.iter().find(|(_, name, _)| *name == wanted);
    if let Some((number, _, Kind::Message(at))) = field("preamble") {
        let found = fields(of, data);
        let preamble = found.get(number).and_then(|it| it.last());
        return match preamble {
            Some(Value::Bytes(preamble)) => key(schema::at(*at), preamble),
            _ => Some(Vec::new()),
        };
    }
    let (number, _, _) = ["id", "key", "param_id", "extern_type_id"]
        .into_iter()
        .find_map(field)?;
    let found = fields(of, data);
    Some(match found.get(number).and_then(|it| it.last()) {
        Some(Value::Bytes(key)) => key.to_vec(),
        Some(Value::Number(id)) => id.to_be_bytes().to_vec(),
        None => Vec::new(),
    })
}

/// Returns the name of an object, or its key.
fn label(of: &Message, data: &[u8]) -> String {
    let found = fields(of, data);
    let value = |wanted: &str| {
        let (number, _, kind) = of.fields.iter().find(|(_, name, _)| *name == wanted)?;
        Some((*kind, found.get(number)?.last()?))
    };
    if let Some((Kind::Message(at), Value::Bytes(preamble))) = value("preamble") {
        return label(schema::at(at), preamble);
    }
    let wanted = ["name", "key", "id", "param_id", "extern_type_id"];
    match wanted.into_iter().find_map(value) {
        Some((_, Value::Bytes(name))) => quoted(name),
        Some((_, Value::Number(id))) => format!("with id {id}"),
        None => String::new(),
    }
}

/// Returns the fields of a message as far as it can be decoded.
fn fields<'a>(of: &Message, mut data: &'a [u8]) -> Fields<'a> {
    let mut found = Fields::new();
    while let Some((number, values)) = next_field(of, &mut data) {
        found.entry(number).or_default().extend(values);
    }
    // An absent field has its default value, and an empty message says nothing, unless all that it can say is that it is there.
    found.retain(|number, values| {
        let mut known = of.fields.iter();
        let is_word = known.any(|(it, _, kind)| {
            it == number && matches!(kind, Kind::Message(at) if schema::at(*at).fields.is_empty())
        });
        let says_nothing = |value: &Value<'_>| matches!(value, Value::Number(0) | Value::Bytes([]));
        is_word || values.len() > 1 || !values.iter().all(says_nothing)
    });
    found
}

fn next_field<'a>(of: &Message, data: &mut &'a [u8]) -> Option<(u32, Vec<Value<'a>>)> {
    if !data.has_remaining() {
        return None;
    }
    let (number, wire_type) = decode_key(data).ok()?;
    let kind = of.fields.iter().find(|(known, _, _)| *known == number);
    let kind = kind.map(|(_, _, kind)| *kind);
    match wire_type {
        WireType::Varint => Some((number, vec![Value::Number(decode_varint(data).ok()?)])),
        WireType::LengthDelimited => {
            let length = usize::try_from(decode_varint(data).ok()?).ok()?;
            let (mut contents, rest) = data.split_at_checked(length)?;
            *data = rest;
            if matches!(kind, None | Some(Kind::Bytes | Kind::Message(_))) {
                return Some((number, vec![Value::Bytes(contents)]));
            }
            let mut packed = Vec::new();
            while contents.has_remaining() {
                packed.push(Value::Number(decode_varint(&mut contents).ok()?));
            }
            Some((number, packed))
        }
        _ => None,
    }
}

/// Writes plain values as texts, which it sorts: their order means nothing.
fn values(kind: Kind, values: &[Value<'_>]) -> Vec<String> {
    let texts = values.iter().map(|value| match value {
        Value::Number(number) => word(kind, *number),
        Value::Bytes(bytes) => quoted(bytes),
    });
    let mut texts: Vec<String> = texts.collect();
    texts.sort_unstable();
    texts
}

fn shown(values: &[String]) -> String {
    match values {
        [] => "not given".to_owned(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("'");
    text.push_str(&escaped(&bytes[..bytes.len().min(MOST_SHOWN)]));
    match bytes.len().checked_sub(MOST_SHOWN) {
        None | Some(0) => text.push('\''),
        Some(more) => {
            let _ = write!(text, "...' ({more} more bytes)");
        }
    }
    text
}
