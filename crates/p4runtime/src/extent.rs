//! The extent of a message before it is decoded: a field of two bytes becomes an element of a hundred.

use bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// Counts the occurrences of a length-delimited field (a message, a string) in a serialized message. Returns the count
/// and the largest length in bytes. A part that cannot be decoded ends the count.
pub fn extent(message: &[u8], field: u32) -> (usize, usize) {
    let (mut rest, mut count, mut longest) = (message, 0, 0);
    while rest.has_remaining() {
        let Ok((tag, wire_type)) = decode_key(&mut rest) else {
            break;
        };
        if (tag, wire_type) != (field, WireType::LengthDelimited) {
            if skip_field(wire_type, tag, &mut rest, DecodeContext::default()).is_err() {
                break;
            }
            continue;
        }
        let length = decode_varint(&mut rest).map_or(usize::MAX, |length| length as usize);
        if length > rest.remaining() {
            break;
        }
        rest.advance(length);
        count += 1;
        longest = longest.max(length);
    }
    (count, longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_one_field() {
        let message = [
            0x22, 1, 0, 8, 5, 0x22, 3, 0x22, 0, 7, 0x1a, 4, 1, 2, 3, 4, 0x22, 0,
        ];
        assert_eq!(extent(&message, 4), (3, 3));
        assert_eq!(extent(&message, 3), (1, 4));
        assert_eq!(extent(&message, 1), (0, 0));
        assert_eq!(extent(&message[..8], 4), (1, 1), "a field that is cut off");
        assert_eq!(
            extent(&[0x22, 1, 0, 0xff, 0xff], 4),
            (1, 1),
            "a key that is none"
        );
        assert_eq!(
            extent(
                &[
                    0x22, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1
                ],
                4
            ),
            (0, 0)
        );
    }
}
