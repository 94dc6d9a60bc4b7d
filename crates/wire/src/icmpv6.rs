//! ICMPv6 (RFC 4443): echo by name, every other message by type and code. Its checksum covers a pseudo header of the addresses.

use crate::checksum::{Sum, verifies};
use crate::ipv6::{NEXT_HEADER_ICMPV6, pseudo_header_sum};
use crate::{Error, array, u16_at};
use std::net::Ipv6Addr;

const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;

/// Checked bytes of a message.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Checks the length.
    pub fn new(bytes: &'a [u8]) -> Result<View<'a>, Error> {
        if bytes.len() < Message::LEN {
            return Err(Error::Truncated);
        }
        Ok(View(bytes))
    }

    /// Message type.
    pub fn kind(&self) -> u8 {
        self.0[0]
    }

    /// Message code.
    pub fn code(&self) -> u8 {
        self.0[1]
    }

    /// Checksum.
    pub fn checksum(&self) -> u16 {
        u16_at(self.0, 2)
    }

    /// The second word of the header; its meaning depends on the type.
    pub fn rest(&self) -> [u8; 4] {
        array(self.0, 4)
    }

    /// Whether the checksum over pseudo header, message and payload is right.
    pub fn checksum_is_valid(&self, source: Ipv6Addr, destination: Ipv6Addr) -> bool {
        u16::try_from(self.0.len())
            .is_ok_and(|len| verifies(message_sum(source, destination, len).bytes(self.0)))
    }

    /// What follows the header.
    pub fn payload(&self) -> &'a [u8] {
        &self.0[Message::LEN..]
    }
}

fn message_sum(source: Ipv6Addr, destination: Ipv6Addr, len: u16) -> Sum {
    pseudo_header_sum(source, destination, NEXT_HEADER_ICMPV6, len)
}

/// Values of an ICMPv6 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Echo request ("ping"; section 4.1).
    EchoRequest {
        /// Identifier: whose request.
        identifier: u16,
        /// Sequence number: which of them.
        sequence: u16,
    },
    /// Echo reply, with the request's values (section 4.2).
    EchoReply {
        /// Identifier of the request.
        identifier: u16,
        /// Sequence number of the request.
        sequence: u16,
    },
    /// Any other message.
    Other {
        /// Message type.
        kind: u8,
        /// Message code.
        code: u8,
        /// Second word of the header.
        rest: [u8; 4],
    },
}

impl Message {
    /// Bytes of the header.
    pub const LEN: usize = 8;

    /// Reads the values; `Checksum` if it is wrong between these addresses, `Malformed` for an echo with a code other than zero.
    pub fn parse(
        view: &View<'_>,
        source: Ipv6Addr,
        destination: Ipv6Addr,
    ) -> Result<Message, Error> {
        if !view.checksum_is_valid(source, destination) {
            return Err(Error::Checksum);
        }
        let identifier = u16_at(view.0, 4);
        let sequence = u16_at(view.0, 6);
        match (view.kind(), view.code()) {
            (ECHO_REQUEST, 0) => Ok(Message::EchoRequest {
                identifier,
                sequence,
            }),
            (ECHO_REPLY, 0) => Ok(Message::EchoReply {
                identifier,
                sequence,
            }),
            (ECHO_REQUEST | ECHO_REPLY, _) => Err(Error::Malformed),
            (kind, code) => Ok(Message::Other {
                kind,
                code,
                rest: view.rest(),
            }),
        }
    }

    /// Appends header and payload, with the checksum between these addresses. `Other` must not name the type of an echo.
    pub fn emit(
        &self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let (kind, code, rest) = match *self {
            Message::EchoRequest {
                identifier,
                sequence,
            } => (ECHO_REQUEST, 0, echo_rest(identifier, sequence)),
            Message::EchoReply {
                identifier,
                sequence,
            } => (ECHO_REPLY, 0, echo_rest(identifier, sequence)),
            Message::Other {
                kind: ECHO_REQUEST | ECHO_REPLY,
                ..
            } => return Err(Error::OutOfRange),
            Message::Other { kind, code, rest } => (kind, code, rest),
        };
        let len = u16::try_from(Message::LEN + payload.len()).map_err(|_| Error::OutOfRange)?;
        let start = out.len();
        out.extend_from_slice(&[kind, code, 0, 0]);
        out.extend_from_slice(&rest);
        out.extend_from_slice(payload);
        let sum = message_sum(source, destination, len)
            .bytes(&out[start..])
            .finish();
        out[start + 2..start + 4].copy_from_slice(&sum.to_be_bytes());
        Ok(())
    }
}

fn echo_rest(identifier: u16, sequence: u16) -> [u8; 4] {
    let [a, b] = identifier.to_be_bytes();
    let [c, d] = sequence.to_be_bytes();
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
    const B: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1);

    fn any_message() -> impl Strategy<Value = Message> {
        let numbers = (any::<u16>(), any::<u16>());
        let other = (any::<u8>(), any::<u8>(), any::<[u8; 4]>());
        prop_oneof![
            numbers.prop_map(|(identifier, sequence)| Message::EchoRequest {
                identifier,
                sequence
            }),
            numbers.prop_map(|(identifier, sequence)| Message::EchoReply {
                identifier,
                sequence
            }),
            other.prop_filter_map("an echo", |(kind, code, rest)| {
                let echo = [ECHO_REQUEST, ECHO_REPLY].contains(&kind);
                (!echo).then_some(Message::Other { kind, code, rest })
            }),
        ]
    }

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
        fn parse_gives_what_was_emitted(message in any_message(), payload: Vec<u8>, a: [u8; 16], b: [u8; 16]) {
            let (a, b) = (a.into(), b.into());
            let mut bytes = Vec::new();
            message.emit(a, b, &payload, &mut bytes).unwrap();
            let view = View::new(&bytes).unwrap();
            prop_assert_eq!(Message::parse(&view, a, b), Ok(message));
            prop_assert_eq!(view.payload(), &payload[..]);
        }

        #[test]
        fn every_flipped_bit_is_noticed(message in any_message(), payload: Vec<u8>, bit: prop::sample::Index) {
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
