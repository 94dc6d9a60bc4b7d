//! The redundancy tag (R-TAG) of IEEE 802.1CB, behind EtherType 0xf1c1: 16 reserved bits (ignored), the sequence number, and
//! the EtherType of the payload. It does not know which numbers are accepted, nor in which order.

use crate::{Error, u16_at};

fixed_length_view!();

impl View<'_> {
    /// Sequence number.
    pub fn sequence_number(&self) -> u16 {
        u16_at(self.0, 2)
    }

    /// EtherType of the payload.
    pub fn ethertype(&self) -> u16 {
        u16_at(self.0, 4)
    }
}

/// Values of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Sequence number.
    pub sequence_number: u16,
    /// EtherType of the payload.
    pub ethertype: u16,
}

impl Header {
    /// Bytes of the tag.
    pub const LEN: usize = 6;

    /// Reads the values.
    pub fn parse(view: &View<'_>) -> Result<Header, Error> {
        Ok(Header {
            sequence_number: view.sequence_number(),
            ethertype: view.ethertype(),
        })
    }

    /// Appends the tag; the reserved bits are zero.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&self.sequence_number.to_be_bytes());
        out.extend_from_slice(&self.ethertype.to_be_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn layout() {
        let header = Header {
            sequence_number: 0x1234,
            ethertype: 0x0800,
        };
        let mut bytes = Vec::new();
        header.emit(&mut bytes).unwrap();
        assert_eq!(bytes, [0, 0, 0x12, 0x34, 0x08, 0x00]);
        // What others put into the reserved bits does not matter.
        bytes[..2].fill(0xff);
        assert_eq!(Header::parse(&View::new(&bytes).unwrap()), Ok(header));
    }

    proptest! {
        #[test]
        fn parse_gives_what_was_emitted(sequence_number: u16, ethertype: u16, payload: Vec<u8>) {
            let header = Header { sequence_number, ethertype };
            let mut bytes = Vec::new();
            header.emit(&mut bytes).unwrap();
            prop_assert_eq!(bytes.len(), Header::LEN);
            bytes.extend_from_slice(&payload);
            let view = View::new(&bytes).unwrap();
            prop_assert_eq!(Header::parse(&view), Ok(header));
            prop_assert_eq!(view.payload(), &payload[..]);
        }
    }
}
