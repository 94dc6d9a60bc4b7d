//! ICMPv6 (RFC 4443): echo messages by name, all other messages by type and code. Its checksum covers a pseudo header of the addresses.

use crate::Error;
use crate::checksum::verifies;
pub use crate::icmp::View;
use crate::ipv6::{NEXT_HEADER_ICMPV6, pseudo_header_sum};
use std::net::Ipv6Addr;

const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;

/// Values of an ICMPv6 header.
pub type Message = crate::icmp::Message<ECHO_REQUEST, ECHO_REPLY>;

impl Message {
    /// Returns the fields of an ICMPv6 header. Fails with `Checksum` if the message's checksum is wrong for an IPv6
    /// packet with these addresses, and with `Malformed` for an echo request or reply with a code other than zero.
    pub fn parse(
        view: &View<'_>,
        source: Ipv6Addr,
        destination: Ipv6Addr,
    ) -> Result<Message, Error> {
        let len = u16::try_from(view.0.len()).map_err(|_| Error::Checksum)?;
        let sum = pseudo_header_sum(source, destination, NEXT_HEADER_ICMPV6, len);
        if !verifies(sum.bytes(view.0)) {
            return Err(Error::Checksum);
        }
        Message::read(view)
    }

    /// Appends ICMPv6 header and payload to `out`, with the checksum for an IPv6 packet with these addresses. Fails
    /// with `OutOfRange` if an `Other` message has the type of an echo request or reply, or the length exceeds 65,535
    /// bytes.
    pub fn emit(
        &self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let len = u16::try_from(Message::LEN + payload.len()).map_err(|_| Error::OutOfRange)?;
        let sum = pseudo_header_sum(source, destination, NEXT_HEADER_ICMPV6, len);
        self.write(payload, out, |message| sum.bytes(message).finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::icmp::any_message;
    use crate::{array, u16_at};
    use proptest::prelude::*;

    const A: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
    const B: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1);

    #[test]
    fn a_request_byte_by_byte() {
        let mut bytes = Vec::new();
        let request = Message::EchoRequest {
            identifier: 0x1234,
            sequence: 5,
        };
        request.emit(A, B, b"abc", &mut bytes).unwrap();
        // By hand: the addresses 2 * (0x2001 + 0x0db8) + 1 + 1 + 2 + 1, length 11, next header 58, then the message
        // 0x8000 + 0x1234 + 5 + 0x6162 + 0x6300; 0x1b257, folded 0xb258, complemented 0x4da7.
        let expected = [128, 0, 0x4d, 0xa7, 0x12, 0x34, 0, 5, b'a', b'b', b'c'];
        assert_eq!(bytes, expected);
    }

    #[test]
    fn echoes_have_their_own_variants() {
        let mut bytes = Vec::new();
        for kind in [ECHO_REQUEST, ECHO_REPLY] {
            let wrong = Message::Other {
                kind,
                code: 0,
                rest: [0; 4],
            };
            assert_eq!(wrong.emit(A, B, &[], &mut bytes), Err(Error::OutOfRange));
        }
        // An echo with a code is none; the checksum is made right for it.
        let other = Message::Other {
            kind: ECHO_REPLY + 1,
            code: 0,
            rest: [0; 4],
        };
        other.emit(A, B, &[], &mut bytes).unwrap();
        let sum = u16_at(&bytes, 2) + 0x100 - 1;
        bytes[..2].copy_from_slice(&[ECHO_REPLY, 1]);
        bytes[2..4].copy_from_slice(&sum.to_be_bytes());
        let view = View::new(&bytes).unwrap();
        assert_eq!(Message::parse(&view, A, B), Err(Error::Malformed));
    }

    proptest! {
        #[test]
        fn parse_gives_what_was_emitted(message in any_message::<ECHO_REQUEST, ECHO_REPLY>(), payload: Vec<u8>, a: [u8; 16], b: [u8; 16]) {
            let (a, b) = (a.into(), b.into());
            let mut bytes = Vec::new();
            message.emit(a, b, &payload, &mut bytes).unwrap();
            let view = View::new(&bytes).unwrap();
            prop_assert_eq!(Message::parse(&view, a, b), Ok(message));
            prop_assert_eq!(view.payload(), &payload[..]);
        }

        #[test]
        fn every_flipped_bit_is_noticed(message in any_message::<ECHO_REQUEST, ECHO_REPLY>(), payload: Vec<u8>, bit: prop::sample::Index) {
            let mut bytes = [A.octets(), B.octets()].concat();
            message.emit(A, B, &payload, &mut bytes).unwrap();
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 0x80 >> (bit % 8);
            let address = |at: usize| Ipv6Addr::from(array::<16>(&bytes, at));
            let view = View::new(&bytes[32..]).unwrap();
            prop_assert_eq!(Message::parse(&view, address(0), address(16)), Err(Error::Checksum));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            match View::new(&bytes) {
                Ok(view) => { let _ = (Message::parse(&view, A, B), view.payload()); }
                Err(error) => prop_assert!(error == Error::Truncated && bytes.len() < Message::LEN),
            }
        }
    }
}
