//! ICMP for IPv4 (RFC 792): echo by name, every other message by type and code.

use crate::checksum::{Sum, checksum, verifies};
use crate::{Error, array, u16_at};

const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;

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

    /// Whether the checksum over message and payload is right.
    pub fn checksum_is_valid(&self) -> bool {
        verifies(Sum::new().bytes(self.0))
    }

    /// What follows the header.
    pub fn payload(&self) -> &'a [u8] {
        &self.0[Message::LEN..]
    }
}

/// Values of an ICMP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Echo request ("ping").
    EchoRequest {
        /// Identifier: whose request.
        identifier: u16,
        /// Sequence number: which of them.
        sequence: u16,
    },
    /// Echo reply, with the request's values.
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

    /// Reads the values; `Checksum` if it is wrong, `Malformed` for an echo with a code other than zero.
    pub fn parse(view: &View<'_>) -> Result<Message, Error> {
        if !view.checksum_is_valid() {
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

    /// Appends header and payload, with the checksum. `Other` must not name the type of an echo.
    pub fn emit(&self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
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
        let start = out.len();
        out.extend_from_slice(&[kind, code, 0, 0]);
        out.extend_from_slice(&rest);
        out.extend_from_slice(payload);
        let sum = checksum(&out[start..]);
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

    fn any_message() -> impl Strategy<Value = Message> {
        prop_oneof![
            (any::<u16>(), any::<u16>()).prop_map(|(identifier, sequence)| Message::EchoRequest {
                identifier,
                sequence
            }),
            (any::<u16>(), any::<u16>()).prop_map(|(identifier, sequence)| Message::EchoReply {
                identifier,
                sequence
            }),
            (1u8..8, any::<u8>(), any::<[u8; 4]>()).prop_map(|(kind, code, rest)| Message::Other {
                kind,
                code,
                rest
            }),
            (9u8.., any::<u8>(), any::<[u8; 4]>()).prop_map(|(kind, code, rest)| Message::Other {
                kind,
                code,
                rest
            }),
        ]
    }

    proptest! {
        #[test]
        fn parse_gives_what_was_emitted(message in any_message(), payload: Vec<u8>) {
            let mut bytes = Vec::new();
            message.emit(&payload, &mut bytes).unwrap();
            let view = View::new(&bytes).unwrap();
            prop_assert_eq!(Message::parse(&view), Ok(message));
            prop_assert_eq!(view.payload(), &payload[..]);
        }

        #[test]
        fn every_flipped_bit_is_noticed(message in any_message(), payload: Vec<u8>, bit: prop::sample::Index) {
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
