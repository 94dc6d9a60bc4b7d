//! Parts of serialized protobuf messages. The length of a nested message is filled in after its contents have been written.

use prost::encoding::{WireType, encode_key, encode_varint};

/// Appends a nested message as field number `tag`; `fill` appends the message's contents.
#[inline(always)]
pub(crate) fn nested(out: &mut Vec<u8>, tag: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    put_key(out, tag, WireType::LengthDelimited);
    let start = out.len();
    out.push(0);
    fill(out);
    let length = out.len() - start - 1;
    if length < 0x80 {
        out[start] = length as u8;
    } else {
        let mut prefix = Vec::with_capacity(5);
        encode_varint(length as u64, &mut prefix);
        out.splice(start..=start, prefix);
    }
}

#[inline]
fn put_key(out: &mut Vec<u8>, tag: u32, wire_type: WireType) {
    match tag {
        // One byte.
        ..16 => out.push((tag << 3) as u8 | wire_type as u8),
        _ => encode_key(tag, wire_type, out),
    }
}

#[inline]
pub(crate) fn put_number(out: &mut Vec<u8>, tag: u32, number: u32) {
    if number != 0 {
        put_key(out, tag, WireType::Varint);
        match number {
            ..0x80 => out.push(number as u8),
            _ => encode_varint(number.into(), out),
        }
    }
}
