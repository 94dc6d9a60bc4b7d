//! UDP (RFC 768) over IPv4 and IPv6. It knows no sockets; over IPv4 a checksum of zero means "none" (RFC 768), and over IPv6
//! it is wrong (RFC 8200, section 8.1).

use crate::checksum::verifies;
use crate::ipv4::PROTOCOL_UDP;
use crate::{Address, Error, at_least, fields, u16_at};

/// Checked bytes of a datagram.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Makes a view of a UDP datagram, without the bytes behind its length. Fails with `Truncated` if bytes are
    /// missing, and with `Malformed` if its length field is below 8.
    pub fn new(bytes: &'a [u8]) -> Result<View<'a>, Error> {
        at_least(bytes, Header::LEN)?;
        let len = usize::from(u16_at(bytes, 4));
        if len < Header::LEN {
            return Err(Error::Malformed);
        }
        Ok(View(&at_least(bytes, len)?[..len]))
    }

    fields! { bytes =>
        /// Source port.
        source_port: u16 = u16_at(bytes, 0);
        /// Destination port.
        destination_port: u16 = u16_at(bytes, 2);
        /// Checksum; zero if the sender computed none.
        checksum: u16 = u16_at(bytes, 6);
    }

    /// Returns true if the datagram's checksum is correct for an IP packet with these addresses, or if it is absent
    /// (zero) and they are IPv4 addresses.
    pub fn checksum_is_valid<A: Address>(&self, source: A, destination: A) -> bool {
        if self.checksum() == 0 {
            return A::UDP_CHECKSUM_IS_OPTIONAL;
        }
        let len = u16_at(self.0, 4);
        verifies(A::pseudo_header_sum(source, destination, PROTOCOL_UDP, len).bytes(self.0))
    }

    /// Returns the datagram's payload: the bytes behind the header, up to the length field's end.
    pub fn payload(&self) -> &'a [u8] {
        &self.0[Header::LEN..]
    }
}

/// Values of a UDP header. Length and checksum follow from the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
}

impl Header {
    /// Bytes of the header.
    pub const LEN: usize = 8;

    /// Returns the fields of a UDP header. Fails with `Checksum` if the datagram's checksum is wrong for an IP packet
    /// with these addresses.
    pub fn parse<A: Address>(view: &View<'_>, source: A, destination: A) -> Result<Header, Error> {
        if !view.checksum_is_valid(source, destination) {
            return Err(Error::Checksum);
        }
        Ok(Header {
            source_port: view.source_port(),
            destination_port: view.destination_port(),
        })
    }

    /// Appends UDP header and payload to `out`, with the checksum for an IP packet with these addresses. Fails with
    /// `OutOfRange`, and appends nothing, if the datagram exceeds 65,535 bytes.
    pub fn emit<A: Address>(
        &self,
        source: A,
        destination: A,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let len = u16::try_from(Header::LEN + payload.len()).map_err(|_| Error::OutOfRange)?;
        let start = out.len();
        out.extend_from_slice(&self.source_port.to_be_bytes());
        out.extend_from_slice(&self.destination_port.to_be_bytes());
        out.extend_from_slice(&len.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(payload);
        let sum = A::pseudo_header_sum(source, destination, PROTOCOL_UDP, len)
            .bytes(&out[start..])
            .finish();
        out[start + 6..start + 8].copy_from_slice(&transmitted(sum).to_be_bytes());
        Ok(())
    }
}

/// Returns a computed UDP checksum in the form in which it is sent: zero becomes all ones, since zero means that there
/// is no checksum.
pub fn transmitted(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const A6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
    const B6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1);

    #[test]
    fn a_checksum_that_computes_to_zero_travels_as_ones() {
        let header = Header {
            source_port: 1,
            destination_port: 2,
        };
        let mut bytes = Vec::new();
        header.emit(A, B, &[0, 0], &mut bytes).unwrap();
        // Put the complement of the missing part into the payload, so that everything sums to 0xffff.
        let first = View::new(&bytes).unwrap().checksum();
        let mut again = Vec::new();
        header.emit(A, B, &first.to_be_bytes(), &mut again).unwrap();
        let view = View::new(&again).unwrap();
        assert_eq!(view.checksum(), 0xffff);
        assert!(view.checksum_is_valid(A, B));
    }

    #[test]
    fn no_checksum_is_accepted_over_ipv4_alone() {
        let header = Header {
            source_port: 1,
            destination_port: 2,
        };
        let mut bytes = Vec::new();
        header.emit(A, B, b"payload", &mut bytes).unwrap();
        bytes[6..8].fill(0);
        let view = View::new(&bytes).unwrap();
        assert_eq!(Header::parse(&view, A, B), Ok(header));
        assert_eq!(Header::parse(&view, A6, B6), Err(Error::Checksum));
    }

    #[test]
    fn a_datagram_over_ipv6_byte_by_byte() {
        let header = Header {
            source_port: 0x1389,
            destination_port: 0x138a,
        };
        let mut bytes = Vec::new();
        header.emit(A6, B6, b"abc", &mut bytes).unwrap();
        // By hand: the addresses 2 * (0x2001 + 0x0db8) + 1 + 1 + 2 + 1, length 11 twice, next header 17, ports and payload
        // 0x1389 + 0x138a + 0x6162 + 0x6300; 0x14713, folded 0x4714, complemented 0xb8eb.
        let expected = [0x13, 0x89, 0x13, 0x8a, 0, 11, 0xb8, 0xeb, b'a', b'b', b'c'];
        assert_eq!(bytes, expected);
        let view = View::new(&bytes).unwrap();
        assert_eq!(Header::parse(&view, A6, B6), Ok(header));
        assert_eq!(Header::parse(&view, A6, A6), Err(Error::Checksum));
    }

    #[test]
    fn too_long_is_refused() {
        let header = Header {
            source_port: 1,
            destination_port: 2,
        };
        let mut bytes = Vec::new();
        let payload = vec![0; 65_528];
        assert_eq!(
            header.emit(A, B, &payload, &mut bytes),
            Err(Error::OutOfRange)
        );
        assert!(bytes.is_empty());
        assert_eq!(header.emit(A, B, &payload[1..], &mut bytes), Ok(()));
    }

    proptest! {
        #[test]
        fn parse_gives_what_was_emitted(source_port: u16, destination_port: u16, payload: Vec<u8>, a: [u8; 4], b: [u8; 4], padding in 0usize..20) {
            let (a, b) = (Ipv4Addr::from(a), Ipv4Addr::from(b));
            let header = Header { source_port, destination_port };
            let mut bytes = Vec::new();
            header.emit(a, b, &payload, &mut bytes).unwrap();
            bytes.resize(bytes.len() + padding, 9);
            let view = View::new(&bytes).unwrap();
            prop_assert_eq!(Header::parse(&view, a, b), Ok(header));
            prop_assert_eq!(view.payload(), &payload[..]);
        }

        #[test]
        fn every_flipped_bit_is_noticed(payload in proptest::collection::vec(any::<u8>(), 0..40), bit: prop::sample::Index) {
            let mut bytes = Vec::new();
            Header { source_port: 5, destination_port: 6 }.emit(A, B, &payload, &mut bytes).unwrap();
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 0x80 >> (bit % 8);
            // A cleared checksum means none; with one bit flipped that happens only if it had a single bit.
            if let Ok(view) = View::new(&bytes) && view.checksum() != 0 && view.0.len() == bytes.len() {
                prop_assert_eq!(Header::parse(&view, A, B), Err(Error::Checksum));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(view) = View::new(&bytes) {
                let _ = (Header::parse(&view, A, B), view.payload());
            }
            if bytes.len() > 4 {
                bytes[4] = 0;
            }
            if let Ok(view) = View::new(&bytes) {
                let _ = Header::parse(&view, A, B);
                prop_assert!(view.payload().len() + Header::LEN <= bytes.len());
            }
        }
    }
}
