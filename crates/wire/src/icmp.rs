//! The common parts of ICMP for IPv4 and ICMPv6: the header's layout, and echo messages by name. It does not know the
//! checksums, which differ.

use crate::{Error, array, at_least, fields, u16_at};

/// Checked bytes of a message.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(pub(crate) &'a [u8]);

impl<'a> View<'a> {
    /// Makes a view of an ICMP or ICMPv6 message. Fails with `Truncated` if there are fewer than the header's 8 bytes.
    pub fn new(bytes: &'a [u8]) -> Result<View<'a>, Error> {
        at_least(bytes, LEN).map(View)
    }

    fields! { bytes =>
        /// Message type.
        kind: u8 = bytes[0];
        /// Message code.
        code: u8 = bytes[1];
        /// Checksum.
        checksum: u16 = u16_at(bytes, 2);
        /// The second word of the header; its meaning depends on the type.
        rest: [u8; 4] = array(bytes, 4);
        /// The bytes behind the header.
        payload: &'a [u8] = &bytes[LEN..];
    }
}

const LEN: usize = 8;

/// Values of a header of the version whose echo messages have the types `REQUEST` and `REPLY`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<const REQUEST: u8, const REPLY: u8> {
    /// Echo request ("ping").
    EchoRequest {
        /// Identifier, which distinguishes the processes that send requests.
        identifier: u16,
        /// Sequence number of the request among those with its identifier.
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

impl<const REQUEST: u8, const REPLY: u8> Message<REQUEST, REPLY> {
    /// Bytes of the header.
    pub const LEN: usize = LEN;

    /// Returns the fields of a message's header without checking its checksum. Fails with `Malformed` for an echo
    /// request or reply with a code other than zero.
    pub(crate) fn read(view: &View<'_>) -> Result<Self, Error> {
        let identifier = u16_at(view.0, 4);
        let sequence = u16_at(view.0, 6);
        let (kind, code, rest) = (view.kind(), view.code(), view.rest());
        match (kind == REQUEST, kind == REPLY, code) {
            (true, _, 0) => Ok(Message::EchoRequest {
                identifier,
                sequence,
            }),
            (_, true, 0) => Ok(Message::EchoReply {
                identifier,
                sequence,
            }),
            (false, false, _) => Ok(Message::Other { kind, code, rest }),
            _ => Err(Error::Malformed),
        }
    }

    /// Appends header and payload to `out`, with the checksum that `checksum` computes over both. Fails with
    /// `OutOfRange`, and appends nothing, if an `Other` message has the type of an echo request or reply.
    pub(crate) fn write(
        &self,
        payload: &[u8],
        out: &mut Vec<u8>,
        checksum: impl FnOnce(&[u8]) -> u16,
    ) -> Result<(), Error> {
        let (kind, code, rest) = match *self {
            Message::EchoRequest {
                identifier,
                sequence,
            } => (REQUEST, 0, echo_rest(identifier, sequence)),
            Message::EchoReply {
                identifier,
                sequence,
            } => (REPLY, 0, echo_rest(identifier, sequence)),
            Message::Other { kind, .. } if kind == REQUEST || kind == REPLY => {
                return Err(Error::OutOfRange);
            }
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

/// Generates random messages of either ICMP version, for property tests.
#[cfg(test)]
pub(crate) fn any_message<const REQUEST: u8, const REPLY: u8>()
-> impl proptest::strategy::Strategy<Value = Message<REQUEST, REPLY>> {
    use proptest::prelude::*;
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
            let echo = [REQUEST, REPLY].contains(&kind);
            (!echo).then_some(Message::Other { kind, code, rest })
        }),
    ]
}
