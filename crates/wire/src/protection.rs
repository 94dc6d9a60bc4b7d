//! The 64-bit header of 1+1 path protection: the connection that a packet belongs to, its sequence number there, and the
//! protocol number of the header that follows. It does not know which sequence numbers are accepted.

use crate::{Error, array, u32_at};

fixed_length_view!();

impl View<'_> {
    /// Connection identifier, 24 bits.
    pub fn connection_id(&self) -> u32 {
        let [a, b, c] = array(self.0, 0);
        u32::from_be_bytes([0, a, b, c])
    }

    /// Sequence number, 32 bits.
    pub fn sequence_number(&self) -> u32 {
        u32_at(self.0, 3)
    }

    /// Protocol number of the payload.
    pub fn next_protocol(&self) -> u8 {
        self.0[7]
    }
}

/// Values of a protection header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Connection identifier, below 2^24.
    pub connection_id: u32,
    /// Sequence number.
    pub sequence_number: u32,
    /// Protocol number of the payload.
    pub next_protocol: u8,
}

impl Header {
    /// Bytes of the header.
    pub const LEN: usize = 8;

    /// Reads the values.
    pub fn parse(view: &View<'_>) -> Result<Header, Error> {
        Ok(Header {
            connection_id: view.connection_id(),
            sequence_number: view.sequence_number(),
            next_protocol: view.next_protocol(),
        })
    }

    /// Appends the header.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        if self.connection_id >= 1 << 24 {
            return Err(Error::OutOfRange);
        }
        out.extend_from_slice(&self.connection_id.to_be_bytes()[1..]);
        out.extend_from_slice(&self.sequence_number.to_be_bytes());
        out.push(self.next_protocol);
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
            connection_id: 0x010203,
            sequence_number: 0x04050607,
            next_protocol: 8,
        };
        let mut bytes = Vec::new();
        header.emit(&mut bytes).unwrap();
        assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8]);
        let wrong = Header {
            connection_id: 1 << 24,
            ..header
        };
        assert_eq!(wrong.emit(&mut bytes), Err(Error::OutOfRange));
        assert_eq!(bytes.len(), 8);
    }

    proptest! {
        #[test]
        fn any_eight_bytes_survive_both_ways(bytes: [u8; 8], payload: Vec<u8>) {
            let mut packet = bytes.to_vec();
            packet.extend_from_slice(&payload);
            let view = View::new(&packet).unwrap();
            let header = Header::parse(&view).unwrap();
            prop_assert_eq!(view.payload(), &payload[..]);
            let mut again = Vec::new();
            header.emit(&mut again).unwrap();
            prop_assert_eq!(&again[..], &bytes[..]);
        }
    }
}
