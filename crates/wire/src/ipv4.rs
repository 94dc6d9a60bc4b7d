//! IPv4 (RFC 791). It does not fragment or reassemble, and does not interpret options.

use crate::checksum::{Sum, checksum, verifies};
use crate::{Error, array, at_least, fields, u16_at};
use std::net::Ipv4Addr;

/// Protocol number of ICMP.
pub const PROTOCOL_ICMP: u8 = 1;
/// Protocol number of TCP.
pub const PROTOCOL_TCP: u8 = 6;
/// Protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;

/// Checked bytes of a packet.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Makes a view of an IPv4 packet, without the bytes behind its total length (Ethernet's padding). Fails with
    /// `Truncated` if bytes are missing, and with `Malformed` for another version or contradictory lengths. The
    /// checksum is not checked here, but by [`Header::parse`].
    pub fn new(bytes: &'a [u8]) -> Result<View<'a>, Error> {
        at_least(bytes, Header::MIN_LEN)?;
        if bytes[0] >> 4 != 4 {
            return Err(Error::Malformed);
        }
        let header_len = usize::from(bytes[0] & 15) * 4;
        let total_len = usize::from(u16_at(bytes, 2));
        if header_len < Header::MIN_LEN || total_len < header_len {
            return Err(Error::Malformed);
        }
        Ok(View(&at_least(bytes, total_len)?[..total_len]))
    }

    fields! { bytes =>
        /// Bytes of the header, options included.
        header_len: usize = usize::from(bytes[0] & 15) * 4;
        /// Bytes of header and payload.
        total_len: usize = bytes.len();
        /// Differentiated services field: DSCP (6 bits) and ECN (2 bits).
        traffic_class: u8 = bytes[1];
        /// Identification.
        identification: u16 = u16_at(bytes, 4);
        /// Don't-fragment flag.
        dont_fragment: bool = bytes[6] & 0x40 != 0;
        /// More-fragments flag.
        more_fragments: bool = bytes[6] & 0x20 != 0;
        /// Fragment offset in units of eight bytes, 13 bits.
        fragment_offset: u16 = u16_at(bytes, 6) & 0x1fff;
        /// Time to live.
        ttl: u8 = bytes[8];
        /// Protocol number of the payload.
        protocol: u8 = bytes[9];
        /// Header checksum.
        checksum: u16 = u16_at(bytes, 10);
        /// Source address.
        source: Ipv4Addr = Ipv4Addr::from(array::<4>(bytes, 12));
        /// Destination address.
        destination: Ipv4Addr = Ipv4Addr::from(array::<4>(bytes, 16));
    }

    /// Returns the bytes of the header's options, padding included; empty if there are none.
    pub fn options(&self) -> &'a [u8] {
        &self.0[Header::MIN_LEN..self.header_len()]
    }

    /// Returns true if the IPv4 header's checksum is correct.
    pub fn checksum_is_valid(&self) -> bool {
        verifies(Sum::new().bytes(&self.0[..self.header_len()]))
    }

    /// Returns true if the packet is a fragment of a larger packet.
    pub fn is_fragment(&self) -> bool {
        self.more_fragments() || self.fragment_offset() != 0
    }

    /// Returns the packet's payload: the bytes behind the header, up to the total length.
    pub fn payload(&self) -> &'a [u8] {
        &self.0[self.header_len()..]
    }
}

/// Options of a header: up to 40 bytes, in whole 32-bit words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    len: u8,
    bytes: [u8; 40],
}

impl Default for Options {
    fn default() -> Options {
        Options {
            len: 0,
            bytes: [0; 40],
        }
    }
}

impl Options {
    /// Makes options from their bytes. Fails with `OutOfRange` for more than 40 bytes, or a number of
    /// bytes that is not a multiple of four.
    pub fn new(bytes: &[u8]) -> Result<Options, Error> {
        if bytes.len() > 40 || !bytes.len().is_multiple_of(4) {
            return Err(Error::OutOfRange);
        }
        let mut options = Options {
            len: bytes.len() as u8,
            ..Options::default()
        };
        options.bytes[..bytes.len()].copy_from_slice(bytes);
        Ok(options)
    }

    /// Returns the bytes of the options, padding included; empty if there are none.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Values of an IPv4 header. Version, lengths and checksum follow from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Differentiated services field: DSCP (6 bits) and ECN (2 bits).
    pub traffic_class: u8,
    /// Identification.
    pub identification: u16,
    /// Don't-fragment flag.
    pub dont_fragment: bool,
    /// More-fragments flag.
    pub more_fragments: bool,
    /// Fragment offset in units of eight bytes, below 2^13.
    pub fragment_offset: u16,
    /// Time to live.
    pub ttl: u8,
    /// Protocol number of the payload.
    pub protocol: u8,
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Options.
    pub options: Options,
    /// Bytes of the payload.
    pub payload_len: usize,
}

impl Header {
    /// Bytes of a header without options.
    pub const MIN_LEN: usize = 20;
    /// Most bytes of a packet.
    pub const MAX_TOTAL_LEN: usize = 65_535;

    /// Returns the fields of an IPv4 header. Fails with `Checksum` if the header's checksum is wrong.
    pub fn parse(view: &View<'_>) -> Result<Header, Error> {
        if !view.checksum_is_valid() {
            return Err(Error::Checksum);
        }
        Ok(Header {
            traffic_class: view.traffic_class(),
            identification: view.identification(),
            dont_fragment: view.dont_fragment(),
            more_fragments: view.more_fragments(),
            fragment_offset: view.fragment_offset(),
            ttl: view.ttl(),
            protocol: view.protocol(),
            source: view.source(),
            destination: view.destination(),
            options: Options::new(view.options())?,
            payload_len: view.payload().len(),
        })
    }

    /// Returns the length in bytes of the header with its options when it is emitted.
    pub fn header_len(&self) -> usize {
        Header::MIN_LEN + self.options.bytes().len()
    }

    /// Appends the IPv4 header to `out`, with its checksum. Fails with `OutOfRange` if the total length exceeds 65,535
    /// bytes or the fragment offset does not fit 13 bits.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let total_len = u16::try_from(self.header_len().saturating_add(self.payload_len))
            .map_err(|_| Error::OutOfRange)?;
        if self.fragment_offset >= 1 << 13 {
            return Err(Error::OutOfRange);
        }
        let flags = u16::from(self.dont_fragment) << 14 | u16::from(self.more_fragments) << 13;
        let start = out.len();
        out.extend_from_slice(&[0x40 | (self.header_len() / 4) as u8, self.traffic_class]);
        out.extend_from_slice(&total_len.to_be_bytes());
        out.extend_from_slice(&self.identification.to_be_bytes());
        out.extend_from_slice(&(flags | self.fragment_offset).to_be_bytes());
        out.extend_from_slice(&[self.ttl, self.protocol, 0, 0]);
        out.extend_from_slice(&self.source.octets());
        out.extend_from_slice(&self.destination.octets());
        out.extend_from_slice(self.options.bytes());
        let sum = checksum(&out[start..]);
        out[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
        Ok(())
    }
}

/// Returns the sum over the IPv4 pseudo header with which the checksum of UDP or TCP begins (RFC 768, RFC 9293). `len`
/// is the length of transport header and payload in bytes.
pub fn pseudo_header_sum(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, len: u16) -> Sum {
    Sum::new()
        .bytes(&source.octets())
        .bytes(&destination.octets())
        .word(u16::from(protocol))
        .word(len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_header() -> impl Strategy<Value = Header> {
        let flags = (any::<bool>(), any::<bool>(), 0u16..1 << 13);
        let fields = (any::<u8>(), any::<u16>(), any::<u8>(), any::<u8>());
        let addresses = (any::<[u8; 4]>(), any::<[u8; 4]>());
        let options = (0usize..=10)
            .prop_flat_map(|words| proptest::collection::vec(any::<u8>(), words * 4..=words * 4));
        (flags, fields, addresses, options, 0usize..200).prop_map(
            |(flags, fields, addresses, options, payload_len)| Header {
                traffic_class: fields.0,
                identification: fields.1,
                dont_fragment: flags.0,
                more_fragments: flags.1,
                fragment_offset: flags.2,
                ttl: fields.2,
                protocol: fields.3,
                source: addresses.0.into(),
                destination: addresses.1.into(),
                options: Options::new(&options).unwrap(),
                payload_len,
            },
        )
    }

    proptest! {
        #[test]
        fn parse_gives_what_was_emitted(header in any_header(), padding in 0usize..20) {
            let mut bytes = Vec::new();
            header.emit(&mut bytes).unwrap();
            prop_assert_eq!(bytes.len(), header.header_len());
            bytes.resize(bytes.len() + header.payload_len + padding, 7);
            let view = View::new(&bytes).unwrap();
            prop_assert_eq!(Header::parse(&view), Ok(header));
            prop_assert_eq!(view.payload().len(), header.payload_len);
            prop_assert_eq!(view.total_len(), header.header_len() + header.payload_len);
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
        fn every_flipped_header_bit_is_noticed(header in any_header(), bit: prop::sample::Index) {
            let mut bytes = Vec::new();
            header.emit(&mut bytes).unwrap();
            let bit = bit.index(bytes.len() * 8);
            bytes.resize(bytes.len() + header.payload_len, 7);
            bytes[bit / 8] ^= 0x80 >> (bit % 8);
            // A changed length may also make the packet truncated or the sum cover other bytes; it is never read as valid
            // with the same header length.
            if let Ok(view) = View::new(&bytes) && view.header_len() == header.header_len() {
                prop_assert_eq!(Header::parse(&view), Err(Error::Checksum));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(first in 0x40u8..0x50, mut bytes in proptest::collection::vec(any::<u8>(), 0..90)) {
            if let Ok(view) = View::new(&bytes) {
                let _ = (Header::parse(&view), view.payload(), view.options());
            }
            // Likelier to pass: right version, small total length.
            if bytes.len() > 4 {
                bytes[0] = first;
                bytes[2] = 0;
            }
            if let Ok(view) = View::new(&bytes) {
                let _ = (Header::parse(&view), view.payload(), view.options());
                prop_assert_eq!(view.total_len(), view.header_len() + view.payload().len());
            }
        }
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        let good = Header {
            traffic_class: 0,
            identification: 0,
            dont_fragment: false,
            more_fragments: false,
            fragment_offset: 0,
            ttl: 64,
            protocol: PROTOCOL_UDP,
            source: Ipv4Addr::LOCALHOST,
            destination: Ipv4Addr::LOCALHOST,
            options: Options::default(),
            payload_len: Header::MAX_TOTAL_LEN - Header::MIN_LEN,
        };
        let mut bytes = Vec::new();
        assert_eq!(good.emit(&mut bytes), Ok(()));
        bytes.clear();
        for wrong in [
            Header {
                payload_len: good.payload_len + 1,
                ..good
            },
            Header {
                payload_len: usize::MAX,
                ..good
            },
            Header {
                fragment_offset: 1 << 13,
                ..good
            },
        ] {
            assert_eq!(wrong.emit(&mut bytes), Err(Error::OutOfRange));
            assert!(bytes.is_empty());
        }
        assert_eq!(Options::new(&[0; 3]), Err(Error::OutOfRange));
        assert_eq!(Options::new(&[0; 44]), Err(Error::OutOfRange));
    }
}
