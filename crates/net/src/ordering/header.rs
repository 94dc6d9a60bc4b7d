//! An application's declaration of a header with a sequence number: its EtherType, and where its fields are. It does not know any
//! application's header, nor frames.

use super::{MAX_SEQUENCE_BITS, MIN_SEQUENCE_BITS};
use crate::error::{NetError, out_of_range};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wire::ethernet::{ETHERTYPE_SERVICE_VLAN, ETHERTYPE_VLAN};

/// The most headers that one ordering function looks for.
pub const MAX_HEADERS: usize = 8;
/// The length of the longest header in bytes.
pub const MAX_HEADER_BYTES: u32 = 64;

const ETHERTYPE_BITS: u32 = 16;

/// Bits of a header, counted from its first one, the most significant of its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u32)", into = "(u32, u32)")]
pub struct BitField {
    /// The number of its first bit.
    pub offset: u32,
    /// The number of its bits, 1 to 64.
    pub width: u32,
}

/// A header with a sequence number. It follows its EtherType behind Ethernet and up to two VLAN tags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SequenceHeader {
    /// The EtherType in front of it.
    pub ethertype: u16,
    /// Bytes of the header, 1 to 64.
    pub bytes: u32,
    /// The sequence number, 2 to 32 bits.
    pub sequence: BitField,
    /// The field that distinguishes streams; if `None`, the addresses and VLAN tags in front of the header do (IEEE
    /// 802.1CB, 6.4).
    pub stream: Option<BitField>,
    /// The field that contains the type of the data behind the header.
    pub following: BitField,
    /// EtherTypes by the value of `following`; if there are none, the value is the EtherType.
    pub ethertypes: BTreeMap<u64, u16>,
}

impl From<(u32, u32)> for BitField {
    fn from((offset, width): (u32, u32)) -> BitField {
        BitField { offset, width }
    }
}

impl From<BitField> for (u32, u32) {
    fn from(field: BitField) -> (u32, u32) {
        (field.offset, field.width)
    }
}

impl BitField {
    /// Reads the field's value from `bytes`, which begin with the header. The header must contain the field, and
    /// `bytes` all of the header; otherwise panics.
    pub(super) fn read(self, bytes: &[u8]) -> u64 {
        let (first, bit) = ((self.offset / 8) as usize, self.offset % 8);
        let bytes = &bytes[first..];
        // Nearly always: one load in place of a loop.
        if bit + self.width <= 64
            && let Some(word) = bytes.first_chunk()
        {
            return u64::from_be_bytes(*word) << bit >> (64 - self.width);
        }
        let end = bit + self.width;
        let len = end.div_ceil(8);
        let value = bytes[..len as usize]
            .iter()
            .fold(0, |value, byte| value << 8 | u128::from(*byte));
        (value >> (8 * len - end)) as u64 & (u64::MAX >> (64 - self.width))
    }

    fn check(self, parameter: &'static str, header: &SequenceHeader) -> Result<(), NetError> {
        if !(1..=64).contains(&self.width) {
            return Err(out_of_range(parameter, "1 to 64 bits wide"));
        }
        let bits = 8 * header.bytes;
        if self.offset >= bits || self.width > bits - self.offset {
            let expected = format!("within the header's {} bytes", header.bytes);
            return Err(out_of_range(parameter, expected));
        }
        Ok(())
    }
}

impl SequenceHeader {
    /// Returns the EtherType of what follows a header; `None` if the header's value has none. `bytes` begin with the
    /// header.
    pub(super) fn ethertype_behind(&self, bytes: &[u8]) -> Option<u16> {
        let next = self.following.read(bytes);
        if self.ethertypes.is_empty() {
            return Some(next as u16);
        }
        let known = self.ethertypes.get(&next);
        known.copied()
    }

    fn check(&self) -> Result<(), NetError> {
        if matches!(self.ethertype, ETHERTYPE_VLAN | ETHERTYPE_SERVICE_VLAN) {
            let expected = "another EtherType than that of a VLAN tag";
            return Err(out_of_range("ordering.headers.ethertype", expected));
        }
        if !(1..=MAX_HEADER_BYTES).contains(&self.bytes) {
            let expected = format!("1 to {MAX_HEADER_BYTES}");
            return Err(out_of_range("ordering.headers.bytes", expected));
        }
        self.sequence.check("ordering.headers.sequence", self)?;
        if !(MIN_SEQUENCE_BITS.into()..=MAX_SEQUENCE_BITS.into()).contains(&self.sequence.width) {
            let expected = format!("{MIN_SEQUENCE_BITS} to {MAX_SEQUENCE_BITS} bits wide");
            return Err(out_of_range("ordering.headers.sequence", expected));
        }
        if let Some(stream) = self.stream {
            stream.check("ordering.headers.stream", self)?;
        }
        self.following.check("ordering.headers.following", self)?;
        if self.ethertypes.is_empty() && self.following.width != ETHERTYPE_BITS {
            let expected = "16 bits wide where no EtherTypes are given for its values";
            return Err(out_of_range("ordering.headers.following", expected));
        }
        Ok(())
    }
}

/// Checks the declarations of headers in which an ordering function looks for sequence numbers. Fails if one is out of
/// range, there are too many, or two have the same EtherType.
pub(super) fn check(headers: &[SequenceHeader]) -> Result<(), NetError> {
    if headers.len() > MAX_HEADERS {
        return Err(out_of_range(
            "ordering.headers",
            format!("at most {MAX_HEADERS}"),
        ));
    }
    for (i, header) in headers.iter().enumerate() {
        header.check()?;
        if headers[..i]
            .iter()
            .any(|it| it.ethertype == header.ethertype)
        {
            let expected = format!("given once for EtherType {:#06x}", header.ethertype);
            return Err(out_of_range("ordering.headers", expected));
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Declares the redundancy tag of IEEE 802.1CB as a header with a sequence number, for tests.
    pub(crate) fn r_tag() -> SequenceHeader {
        SequenceHeader {
            ethertype: 0xf1c1,
            bytes: 6,
            sequence: BitField {
                offset: 16,
                width: 16,
            },
            stream: None,
            following: BitField {
                offset: 32,
                width: 16,
            },
            ethertypes: BTreeMap::new(),
        }
    }

    /// Declares a header with a stream number of 24 bits, a sequence number of 32 and a protocol number of 8, for
    /// tests.
    pub(crate) fn connection() -> SequenceHeader {
        SequenceHeader {
            ethertype: 0x88b5,
            bytes: 8,
            sequence: BitField {
                offset: 24,
                width: 32,
            },
            stream: Some(BitField {
                offset: 0,
                width: 24,
            }),
            following: BitField {
                offset: 56,
                width: 8,
            },
            ethertypes: BTreeMap::from([(4, 0x0800), (41, 0x86dd)]),
        }
    }

    #[test]
    fn declarations_that_cannot_be_are_refused() {
        let field = |offset, width| BitField { offset, width };
        let refused: [(SequenceHeader, &str); 10] = [
            (
                SequenceHeader {
                    sequence: field(24, 0),
                    ..connection()
                },
                "1 to 64 bits wide",
            ),
            (
                SequenceHeader {
                    stream: Some(field(0, 65)),
                    bytes: 16,
                    ..connection()
                },
                "stream must be 1 to 64",
            ),
            (
                SequenceHeader {
                    sequence: field(33, 32),
                    ..connection()
                },
                "within the header's 8 bytes",
            ),
            (
                SequenceHeader {
                    stream: Some(field(64, 1)),
                    ..connection()
                },
                "within the header's 8 bytes",
            ),
            (
                SequenceHeader {
                    following: field(u32::MAX, 2),
                    ..connection()
                },
                "within the header's 8 bytes",
            ),
            (
                SequenceHeader {
                    sequence: field(0, 1),
                    ..connection()
                },
                "2 to 32 bits wide",
            ),
            (
                SequenceHeader {
                    sequence: field(0, 33),
                    ..connection()
                },
                "2 to 32 bits wide",
            ),
            (
                SequenceHeader {
                    bytes: 0,
                    ..connection()
                },
                "bytes must be 1 to 64",
            ),
            (
                SequenceHeader {
                    ethertype: 0x8100,
                    ..connection()
                },
                "VLAN",
            ),
            (
                SequenceHeader {
                    ethertypes: BTreeMap::new(),
                    ..connection()
                },
                "following must be 16 bits",
            ),
        ];
        for (header, expected) in refused {
            let text = check(&[header]).unwrap_err().to_string();
            assert!(
                text.contains(expected),
                "{text:?} does not say {expected:?}"
            );
        }
        assert_eq!(check(&[r_tag(), connection()]), Ok(()));
        let text = check(&[r_tag(), r_tag()]).unwrap_err().to_string();
        assert!(text.contains("once for EtherType 0xf1c1"), "{text}");
        let many: Vec<SequenceHeader> = (0..=MAX_HEADERS as u16)
            .map(|n| SequenceHeader {
                ethertype: 0x9000 + n,
                ..r_tag()
            })
            .collect();
        assert_eq!(check(&many[1..]), Ok(()));
        assert!(check(&many).is_err());
    }

    proptest! {
        #[test]
        fn a_field_is_read_as_bit_by_bit(header in proptest::collection::vec(any::<u8>(), 1..16), offset: u32, width in 1u32..=64) {
            let bits = 8 * header.len() as u32;
            let width = width.min(bits);
            let offset = offset % (bits - width + 1);
            let bit = |i: u32| u64::from(header[i as usize / 8] >> (7 - i % 8) & 1);
            let expected = (offset..offset + width).fold(0, |value, i| value << 1 | bit(i));
            prop_assert_eq!(BitField { offset, width }.read(&header), expected);
        }
    }
}
