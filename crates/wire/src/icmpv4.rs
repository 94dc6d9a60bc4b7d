//! ICMP for IPv4 (RFC 792): echo messages by name, all other messages by type and code.

use crate::Error;
use crate::checksum::{Sum, checksum, verifies};
pub use crate::icmp::View;

/// Values of an ICMP header.
pub type Message = crate::icmp::Message<8, 0>;

impl Message {
    /// Returns the fields of an ICMP header. Fails with `Checksum` if the message's checksum is wrong, and with
    /// `Malformed` for an echo request or reply with a code other than zero.
    pub fn parse(view: &View<'_>) -> Result<Message, Error> {
        if !verifies(Sum::new().bytes(view.0)) {
            return Err(Error::Checksum);
        }
        Message::read(view)
    }

    /// Appends ICMP header and payload to `out`, with their checksum. Fails with `OutOfRange` if an `Other` message has
    /// the type of an echo request or reply.
    pub fn emit(&self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        self.write(payload, out, checksum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::icmp::any_message;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parse_gives_what_was_emitted(message in any_message::<8, 0>(), payload: Vec<u8>) {
            let mut bytes = Vec::new();
            message.emit(&payload, &mut bytes).unwrap();
            let view = View::new(&bytes).unwrap();
            prop_assert_eq!(Message::parse(&view), Ok(message));
            prop_assert_eq!(view.payload(), &payload[..]);
        }

        #[test]
        fn every_flipped_bit_is_noticed(message in any_message::<8, 0>(), payload: Vec<u8>, bit: prop::sample::Index) {
            let mut bytes = Vec::new();
            message.emit(&payload, &mut bytes).unwrap();
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 0x80 >> (bit % 8);
            prop_assert_eq!(Message::parse(&View::new(&bytes).unwrap()), Err(Error::Checksum));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            match View::new(&bytes) {
                Ok(view) => { let _ = (Message::parse(&view), view.payload()); }
                Err(error) => prop_assert!(error == Error::Truncated && bytes.len() < Message::LEN),
            }
        }
    }

    #[test]
    fn echoes_have_their_own_variants() {
        let mut bytes = Vec::new();
        let wrong = Message::Other {
            kind: 8,
            code: 0,
            rest: [0; 4],
        };
        assert_eq!(wrong.emit(&[], &mut bytes), Err(Error::OutOfRange));
        Message::EchoRequest {
            identifier: 1,
            sequence: 2,
        }
        .emit(b"x", &mut bytes)
        .unwrap();
        bytes[1] = 1;
        bytes[2..4].fill(0);
        let sum = checksum(&bytes);
        bytes[2..4].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(
            Message::parse(&View::new(&bytes).unwrap()),
            Err(Error::Malformed)
        );
    }
}
