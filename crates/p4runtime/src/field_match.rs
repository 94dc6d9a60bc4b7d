//! Matches of key fields (specification, "FieldMatch"): from messages to the engine's and back. It knows forms of matches; the message of
//! each match kind is declared with the others.

use crate::errors::invalid;
use crate::info::Field;
use crate::messages::{FieldMatch, Match, Sent, tag};
use crate::protobuf::{nested, put_number};
use crate::values;
use bytes::Bytes;
use engine::control::ControlError;
use engine::refuse;
use ir::{Bits, Form, KeyMatch};

/// Converts the match of one field; if `given` is `None`, the match accepts any value. Fails with INVALID_ARGUMENT if
/// `given` does not fit the field.
pub(crate) fn field_match(
    label: &str,
    field: &Field,
    given: Option<&FieldMatch>,
) -> Result<KeyMatch, ControlError> {
    let (kind, own) = (field.kind, field.own_width.max(1));
    let Some(given) = given else {
        let (name, field) = (kind.name(), &field.name);
        let missing = || invalid(format!("{label}: {name} match field '{field}' is missing"));
        return kind.any(own).ok_or_else(missing);
    };
    let what = || format!("{label}, match field '{}'", field.name);
    let refused = |why: &str| invalid(format!("{}: {why}", what()));
    let given = given.kind.as_ref();
    let Some(sent) = given.and_then(|given| given.sent(kind)) else {
        let (found, wanted) = (given.map_or("unset", Match::word), kind.name());
        return Err(refused(&format!(
            "the match is {found}, the field is {wanted}"
        )));
    };
    if field.width == 0 && field.translation.is_none() {
        return Err(refused(
            "its type has no values in P4Runtime, so entries cannot name it",
        ));
    }
    if field.is_whole {
        return whole_match(field, &sent, &what);
    }
    let bits = |bytes: &Bytes, part: &str| {
        let number = values::number(bytes, field.width, own);
        number.map_err(|why| refused(&format!("{part}{why}")))
    };
    let found = match sent {
        Sent::One(value) => KeyMatch::Value(field.value(value, &what)?),
        Sent::Prefix(value, length) => KeyMatch::Prefix {
            value: bits(value, "")?,
            prefix_len: u32::try_from(length)
                .map_err(|_| refused(&format!("prefix length {length} is below zero")))?,
        },
        Sent::Two(low, high) if kind.form() == Form::Range => KeyMatch::Range {
            low: bits(low, "low: ")?,
            high: bits(high, "high: ")?,
        },
        Sent::Two(value, mask) => KeyMatch::Masked {
            value: bits(value, "")?,
            mask: bits(mask, "mask: ")?,
        },
    };
    found.check(own).map_err(|why| refused(&why))?;
    match found.is_any() {
        true => Err(refused(
            "the match holds everything; leave a don't-care field out",
        )),
        false => Ok(found),
    }
}

/// Converts the match of a translated field. Fails unless the match accepts exactly one value (specification,
/// "Translation of Match Fields"); `what` names the field in the message.
fn whole_match(
    field: &Field,
    sent: &Sent<'_>,
    what: &dyn Fn() -> String,
) -> Result<KeyMatch, ControlError> {
    let is_range = field.kind.form() == Form::Range;
    let (bytes, is_whole, wanted) = match *sent {
        Sent::One(value) => (value, true, String::new()),
        Sent::Prefix(value, length) => {
            let width = field.mask_width(value);
            let whole = u32::try_from(length) == Ok(width);
            (value, whole, format!("its prefix has {width} bits"))
        }
        Sent::Two(low, high) if is_range => {
            let whole = match field.width {
                0 => low == high,
                _ => values::canonical(low) == values::canonical(high),
            };
            (low, whole, "both its ends are one value".to_owned())
        }
        Sent::Two(value, mask) => {
            let width = field.mask_width(value);
            let mask = values::number(mask, width, width);
            let whole = mask.is_ok_and(|mask| mask == Bits::ones(width));
            (value, whole, format!("its mask is {width} ones"))
        }
    };
    refuse!(
        !is_whole => InvalidArgument,
        "{}: the field is translated, so {wanted}, or it is left out", what()
    );
    let value = field.value(bytes, what)?;
    let second = match is_range {
        true => value.clone(),
        false => Bits::ones(field.own_width.max(1)),
    };
    Ok(field.kind.of_two(value, second))
}

fn put_bits(out: &mut Vec<u8>, tag: u32, value: &Bits) {
    nested(out, tag, |out| values::put_bytestring(out, value));
}

pub(crate) fn put_value(out: &mut Vec<u8>, tag: u32, field: Option<&Field>, value: &Bits) {
    match field.and_then(|field| field.translation.as_ref()) {
        None => put_bits(out, tag, value),
        Some(translation) => {
            prost::encoding::bytes::encode(tag, &translation.to_controller(value), out)
        }
    }
}

/// Appends a `FieldMatch` as field number `number`, or nothing if the match accepts any value.
pub(crate) fn put_match(out: &mut Vec<u8>, number: u32, field: &Field, key_match: &KeyMatch) {
    if key_match.is_any() {
        return;
    }
    // Of a translated field, what is in fact exact is the controller's; a program's own entries may have other masks.
    let part = Some(field).filter(|field| field.is_whole);
    let own = field.own_width.max(1);
    let whole_width = |value: &Bits| field.mask_width(&field.shown(value));
    let contents = |out: &mut Vec<u8>| match key_match {
        KeyMatch::Any => {}
        KeyMatch::Value(value) => put_value(out, 1, Some(field), value),
        KeyMatch::Masked { value, mask } => {
            put_value(out, 1, part, value);
            match part {
                Some(_) if *mask == Bits::ones(own) => {
                    put_bits(out, 2, &Bits::ones(whole_width(value)));
                }
                _ => put_bits(out, 2, mask),
            }
        }
        KeyMatch::Range { low, high } => {
            put_value(out, 1, part, low);
            put_value(out, 2, part, high);
        }
        KeyMatch::Prefix { value, prefix_len } => {
            put_value(out, 1, part, value);
            let length = match part {
                Some(_) if *prefix_len == own => whole_width(value),
                _ => *prefix_len,
            };
            put_number(out, 2, length);
        }
    };
    nested(out, number, |out| {
        put_number(out, 1, field.id);
        nested(out, tag(field.kind), contents);
    });
}
