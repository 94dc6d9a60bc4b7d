//! P4Info in protobuf text format, from its serialized form and the names of the fields.

use crate::schema::{self, Kind, Message};
use bytes::Buf;
use prost::encoding::{WireType, decode_key, decode_varint};
use std::fmt::Write as _;

/// Prints a serialized `p4.config.v1.P4Info`, a field on each line. What is not a P4Info ends where it can no longer be read.
pub fn p4info(data: &[u8]) -> String {
    let mut out = String::new();
    if let Some(root) = schema::message("p4.config.v1.P4Info") {
        let _ = fields(root, data, 0, &mut out);
    }
    out
}

/// Prints the fields of a message; `None` where the bytes are not one. `depth` is the number of levels by which lines
/// are indented.
fn fields(message: &Message, mut data: &[u8], depth: usize, out: &mut String) -> Option<()> {
    while data.has_remaining() {
        let (number, wire_type) = decode_key(&mut data).ok()?;
        let field = message.fields.iter().find(|(n, _, _)| *n == number);
        let (_, name, kind) = field?;
        if wire_type == WireType::Varint {
            let value = decode_varint(&mut data).ok()?;
            line(out, depth, format_args!("{name}: {}", word(*kind, value)));
            continue;
        }
        if wire_type != WireType::LengthDelimited {
            return None;
        }
        let length = usize::try_from(decode_varint(&mut data).ok()?).ok()?;
        let (mut contents, rest) = data.split_at_checked(length)?;
        data = rest;
        match kind {
            Kind::Message(at) => {
                line(out, depth, format_args!("{name} {{"));
                fields(schema::at(*at), contents, depth + 1, out)?;
                line(out, depth, format_args!("}}"));
            }
            Kind::Bytes => line(
                out,
                depth,
                format_args!("{name}: \"{}\"", escaped(contents)),
            ),
            // Packed numbers.
            _ => {
                while contents.has_remaining() {
                    let value = decode_varint(&mut contents).ok()?;
                    line(out, depth, format_args!("{name}: {}", word(*kind, value)));
                }
            }
        }
    }
    Some(())
}

fn line(out: &mut String, depth: usize, text: std::fmt::Arguments<'_>) {
    let _ = writeln!(out, "{:1$}{text}", "", depth * 2);
}

/// Returns the text of a number, truth value or enum.
pub(crate) fn word(kind: Kind, value: u64) -> String {
    match kind {
        Kind::Bool => (value != 0).to_string(),
        Kind::Signed => (value as i64).to_string(),
        Kind::Enum(words) => {
            let known = words.iter().find(|(number, _)| *number as u64 == value);
            known.map_or_else(
                || (value as i64).to_string(),
                |(_, word)| (*word).to_owned(),
            )
        }
        Kind::Unsigned | Kind::Bytes | Kind::Message(_) => value.to_string(),
    }
}

/// Returns the contents of a string literal, in ASCII.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            b' '..=b'~' => text.push(*byte as char),
            _ => {
                let _ = write!(text, "\\{byte:03o}");
            }
        }
    }
    text
}
