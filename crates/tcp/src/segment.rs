//! A segment between two ends: the values of a header and the *number* of payload bytes.
//!
//! It knows no addresses or ports; [`Segment::header`] and [`Segment::from_header`] convert to and from the wire form without loss.

use wire::tcp::{Flags, Header, Options};

/// The two bits that ECN has in the IP header (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum EcnCodepoint {
    /// Not an ECN-capable transport.
    #[default]
    NotEct = 0b00,
    /// ECN-capable transport, ECT(1).
    Ect1 = 0b01,
    /// ECN-capable transport, ECT(0).
    Ect0 = 0b10,
    /// Congestion experienced.
    Ce = 0b11,
}

impl EcnCodepoint {
    /// Returns the codepoint in the low two bits of an IPv4 or IPv6 traffic class.
    pub fn from_bits(bits: u8) -> EcnCodepoint {
        match bits & 3 {
            0b00 => EcnCodepoint::NotEct,
            0b01 => EcnCodepoint::Ect1,
            0b10 => EcnCodepoint::Ect0,
            _ => EcnCodepoint::Ce,
        }
    }

    /// Returns the codepoint as the low two bits of an IPv4 or IPv6 traffic class.
    pub fn bits(self) -> u8 {
        self as u8
    }
}

/// A segment with the number of its payload bytes, but without the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first byte, or of SYN.
    pub sequence: u32,
    /// Next sequence number expected from the other end, if `flags` have ACK.
    pub acknowledgment: u32,
    /// Control bits.
    pub flags: Flags,
    /// Window as it stands in the header, not scaled.
    pub window: u16,
    /// Bytes of payload.
    pub payload_bytes: u32,
    /// Options.
    pub options: Options,
    /// The IP header's ECN bits.
    pub ecn: EcnCodepoint,
}

impl Segment {
    /// Builds the TCP header with which this segment travels between the two ports.
    pub fn header(&self, source_port: u16, destination_port: u16) -> Header {
        Header {
            source_port,
            destination_port,
            sequence: self.sequence,
            acknowledgment: self.acknowledgment,
            flags: self.flags,
            window: self.window,
            urgent_pointer: 0,
            options: self.options,
        }
    }

    /// Builds the segment for a TCP header, `payload_bytes` bytes of payload, and the IP header's ECN codepoint.
    pub fn from_header(header: &Header, payload_bytes: u32, ecn: EcnCodepoint) -> Segment {
        Segment {
            sequence: header.sequence,
            acknowledgment: header.acknowledgment,
            flags: header.flags,
            window: header.window,
            payload_bytes,
            options: header.options,
            ecn,
        }
    }

    /// Returns the length of TCP header and payload in bytes.
    pub fn len(&self) -> u64 {
        (Header::MIN_LEN + self.options.len()) as u64 + u64::from(self.payload_bytes)
    }

    /// Returns false: every segment has a header, so its length is never zero.
    pub fn is_empty(&self) -> bool {
        false
    }

    pub(crate) fn has(&self, flags: Flags) -> bool {
        self.flags.contains(flags)
    }
}

/// Returns the 64-bit sequence number nearest to `reference` whose low 32 bits are `wire`. Internally, sequence
/// numbers have 64 bits and start at 2^32 or more, so that they never wrap and no number near them is negative.
pub(crate) fn unwrapped(reference: u64, wire: u32) -> u64 {
    let distance = wire.wrapping_sub(reference as u32) as i32;
    reference.wrapping_add_signed(i64::from(distance))
}

/// Returns the 64-bit form of the initial sequence number `wire` from a header.
pub(crate) fn initial(wire: u32) -> u64 {
    (1 << 32) + u64::from(wire)
}
