//! IPv6 (RFC 8200): the fixed header. Extension headers are payload here, and jumbograms (RFC 2675) are not read.

use crate::checksum::Sum;
use crate::{Error, array, at_least, fields, u16_at, u32_at};
use std::net::Ipv6Addr;

/// Next header value of the Hop-by-Hop Options header.
pub const NEXT_HEADER_HOP_BY_HOP: u8 = 0;
/// Next header value of ICMPv6; those of TCP and UDP are IPv4's protocol numbers.
pub const NEXT_HEADER_ICMPV6: u8 = 58;

/// Checked bytes of a packet.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Makes a view of an IPv6 packet, without the bytes behind its payload length (Ethernet's padding). Fails with
    /// `Truncated` if bytes are missing, and with `Malformed` for another version. The header has no checksum.
    pub fn new(bytes: &'a [u8]) -> Result<View<'a>, Error> {
        at_least(bytes, Header::LEN)?;
        if bytes[0] >> 4 != 6 {
            return Err(Error::Malformed);
        }
        let total_len = Header::LEN + usize::from(u16_at(bytes, 4));
        Ok(View(&at_least(bytes, total_len)?[..total_len]))
    }

    fields! { bytes =>
        /// Traffic class: DSCP (6 bits) and ECN (2 bits).
        traffic_class: u8 = (u16_at(bytes, 0) >> 4) as u8;
        /// Flow label, 20 bits.
        flow_label: u32 = u32_at(bytes, 0) & 0xf_ffff;
        /// Number of the protocol, or extension header, that follows.
        next_header: u8 = bytes[6];
        /// Hop limit.
        hop_limit: u8 = bytes[7];
        /// Source address.
        source: Ipv6Addr = Ipv6Addr::from(array::<16>(bytes, 8));
        /// Destination address.
        destination: Ipv6Addr = Ipv6Addr::from(array::<16>(bytes, 24));
        /// The payload behind the header, up to the payload length.
        payload: &'a [u8] = &bytes[Header::LEN..];
    }
}

/// Values of an IPv6 header; the version is always 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Traffic class: DSCP (6 bits) and ECN (2 bits).
    pub traffic_class: u8,
    /// Flow label, below 2^20.
    pub flow_label: u32,
    /// Number of the protocol, or extension header, that follows.
    pub next_header: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
    /// Bytes of the payload, extension headers included.
    pub payload_len: usize,
}

impl Header {
    /// Bytes of the header.
    pub const LEN: usize = 40;

    /// Returns the fields of an IPv6 header.
    pub fn parse(view: &View<'_>) -> Header {
        Header {
            traffic_class: view.traffic_class(),
            flow_label: view.flow_label(),
            next_header: view.next_header(),
            hop_limit: view.hop_limit(),
            source: view.source(),
            destination: view.destination(),
            payload_len: view.payload().len(),
        }
    }

    /// Appends the IPv6 header, 40 bytes, to `out`. Fails with `OutOfRange` if the payload's length or the flow label
    /// does not fit its field.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let payload_len = u16::try_from(self.payload_len).map_err(|_| Error::OutOfRange)?;
        if self.flow_label >= 1 << 20 {
            return Err(Error::OutOfRange);
        }
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label;
        out.extend_from_slice(&first.to_be_bytes());
        out.extend_from_slice(&payload_len.to_be_bytes());
        out.extend_from_slice(&[self.next_header, self.hop_limit]);
        out.extend_from_slice(&self.source.octets());
        out.extend_from_slice(&self.destination.octets());
        Ok(())
    }
}

/// Returns the sum over the IPv6 pseudo header with which the checksum of UDP, TCP or ICMPv6 begins (RFC 8200, section
/// 8.1). `len` is the length of upper-layer header and payload in bytes.
pub fn pseudo_header_sum(
    source: Ipv6Addr,
    destination: Ipv6Addr,
    next_header: u8,
    len: u16,
) -> Sum {
    Sum::new()
        .bytes(&source.octets())
        .bytes(&destination.octets())
        .word(len)
        .word(u16::from(next_header))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
    const B: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1);

    fn any_header() -> impl Strategy<Value = Header> {
        let fields = (any::<u8>(), 0u32..1 << 20, any::<u8>(), any::<u8>());
        let addresses = (any::<[u8; 16]>(), any::<[u8; 16]>());
        (fields, addresses, 0usize..200).prop_map(|(fields, addresses, payload_len)| Header {
            traffic_class: fields.0,
            flow_label: fields.1,
            next_header: fields.2,
            hop_limit: fields.3,
            source: addresses.0.into(),
            destination: addresses.1.into(),
            payload_len,
        })
    }

    #[test]
    fn a_header_byte_by_byte() {
        let header = Header {
            traffic_class: 0xb9,
            flow_label: 0xa_bcde,
            next_header: 17,
            hop_limit: 63,
            source: A,
            destination: B,
            payload_len: 0x0102,
        };
        let mut bytes = Vec::new();
        header.emit(&mut bytes).unwrap();
        let expected = [
            0x6b, 0x9a, 0xbc, 0xde, 0x01, 0x02, 17, 63, // version to hop limit
            0x20, 0x01, 0x0d, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, // source
            0x20, 0x01, 0x0d, 0xb8, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, // destination
        ];
        assert_eq!(bytes, expected);
    }

    #[test]
    fn the_pseudo_header_is_that_of_the_rfc() {
        let mut pseudo = [A.octets(), B.octets()].concat();
        // Upper-layer packet length (32 bits), three zero bytes, next header.
        pseudo.extend_from_slice(&[0, 0, 0xab, 0xcd, 0, 0, 0, 58]);
        let sum = pseudo_header_sum(A, B, NEXT_HEADER_ICMPV6, 0xabcd);
        assert_eq!(sum.folded(), Sum::new().bytes(&pseudo).folded());
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        let good = Header {
            traffic_class: 0,
            flow_label: (1 << 20) - 1,
            next_header: 59,
            hop_limit: 64,
            source: A,
            destination: B,
            payload_len: 65_535,
        };
        let mut bytes = Vec::new();
        assert_eq!(good.emit(&mut bytes), Ok(()));
        bytes.clear();
        for wrong in [
            Header {
                payload_len: 65_536,
                ..good
            },
            Header {
                flow_label: 1 << 20,
                ..good
            },
        ] {
            assert_eq!(wrong.emit(&mut bytes), Err(Error::OutOfRange));
            assert!(bytes.is_empty());
        }
    }

    proptest! {
        #[test]
        fn parse_gives_what_was_emitted(header in any_header(), padding in 0usize..20) {
            let mut bytes = Vec::new();
            header.emit(&mut bytes).unwrap();
            prop_assert_eq!(bytes.len(), Header::LEN);
            bytes.resize(bytes.len() + header.payload_len + padding, 7);
            let view = View::new(&bytes).unwrap();
            prop_assert_eq!(Header::parse(&view), header);
            prop_assert_eq!(view.payload().len(), header.payload_len);
        }

        #[test]
        fn every_cut_is_refused(header in any_header(), cut: prop::sample::Index) {
            let mut bytes = Vec::new();
            header.emit(&mut bytes).unwrap();
            bytes.resize(bytes.len() + header.payload_len, 7);
            let cut = cut.index(bytes.len());
            prop_assert_eq!(View::new(&bytes[..cut]).err(), Some(Error::Truncated));
        }

        #[test]
        fn any_bytes_are_read_or_refused(first in 0x60u8..0x70, mut bytes in proptest::collection::vec(any::<u8>(), 0..90)) {
            if bytes.len() > 4 {
                bytes[0] = first;
                bytes[4] = 0;
            }
            if let Ok(view) = View::new(&bytes) {
                let header = Header::parse(&view);
                prop_assert_eq!(view.payload().len(), header.payload_len);
            }
        }
    }
}
