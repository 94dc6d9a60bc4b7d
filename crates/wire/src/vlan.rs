//! The VLAN tag (IEEE 802.1Q), behind EtherType 0x8100 or 0x88a8: tag control information and the EtherType
//! of the payload.

use crate::{Error, fields, u16_at};

fixed_length_view!();

impl View<'_> {
    fields! { bytes =>
        /// Priority code point, 3 bits.
        priority: u8 = bytes[0] >> 5;
        /// Drop eligible indicator.
        drop_eligible: bool = bytes[0] & 0x10 != 0;
        /// VLAN identifier, 12 bits.
        vlan_id: u16 = u16_at(bytes, 0) & 0x0fff;
        /// EtherType of the payload.
        ethertype: u16 = u16_at(bytes, 2);
    }
}

/// Values of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Priority code point, 0 to 7.
    pub priority: u8,
    /// Drop eligible indicator.
    pub drop_eligible: bool,
    /// VLAN identifier, 0 to 4095.
    pub vlan_id: u16,
    /// EtherType of the payload.
    pub ethertype: u16,
}

impl Header {
    /// Bytes of the tag.
    pub const LEN: usize = 4;

    /// Returns the fields of a VLAN tag. Never fails.
    pub fn parse(view: &View<'_>) -> Result<Header, Error> {
        Ok(Header {
            priority: view.priority(),
            drop_eligible: view.drop_eligible(),
            vlan_id: view.vlan_id(),
            ethertype: view.ethertype(),
        })
    }

    /// Appends the VLAN tag, 4 bytes, to `out`. Fails with `OutOfRange` if priority or VLAN identifier does not fit its
    /// field.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        if self.priority > 7 || self.vlan_id > 0x0fff {
            return Err(Error::OutOfRange);
        }
        let control =
            u16::from(self.priority) << 13 | u16::from(self.drop_eligible) << 12 | self.vlan_id;
        out.extend_from_slice(&control.to_be_bytes());
        out.extend_from_slice(&self.ethertype.to_be_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_that_do_not_fit_are_refused() {
        let good = Header {
            priority: 7,
            drop_eligible: true,
            vlan_id: 4095,
            ethertype: 0x0800,
        };
        let mut bytes = Vec::new();
        good.emit(&mut bytes).unwrap();
        assert_eq!(bytes, [0xff, 0xff, 0x08, 0x00]);
        for wrong in [
            Header {
                priority: 8,
                ..good
            },
            Header {
                vlan_id: 4096,
                ..good
            },
        ] {
            let mut bytes = Vec::new();
            assert_eq!(wrong.emit(&mut bytes), Err(Error::OutOfRange));
            assert!(bytes.is_empty());
        }
    }

    proptest! {
        #[test]
        fn parse_gives_what_was_emitted(
            priority in 0u8..8, drop_eligible: bool, vlan_id in 0u16..4096, ethertype: u16, payload: Vec<u8>
        ) {
            let header = Header { priority, drop_eligible, vlan_id, ethertype };
            let mut bytes = Vec::new();
            header.emit(&mut bytes).unwrap();
            bytes.extend_from_slice(&payload);
            let view = View::new(&bytes).unwrap();
            prop_assert_eq!(Header::parse(&view), Ok(header));
            prop_assert_eq!(view.payload(), &payload[..]);
        }

        #[test]
        fn emit_gives_the_bytes_that_were_parsed(bytes: [u8; 4]) {
            let mut again = Vec::new();
            Header::parse(&View::new(&bytes).unwrap()).unwrap().emit(&mut again).unwrap();
            prop_assert_eq!(&again[..], &bytes[..]);
        }
    }
}
