//! TCP (RFC 9293) over IPv4 and IPv6: the header, and the options that current endpoints negotiate (maximum segment size, window scale,
//! selective acknowledgments, timestamps). It knows no connections. Other options are skipped when read.
//!
//! A payload may be *virtual*: zeros that are not stored. [`Header::emit_virtual`] writes only the header, with the checksum of
//! the segment with its zeros, so that a capture cut off behind the header is right to the bit.

use crate::checksum::verifies;
use crate::ipv4::PROTOCOL_TCP;
use crate::{Address, Error, at_least, fields, u16_at, u32_at};
use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// Control bits of a header.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// No bit.
    pub const NONE: Flags = Flags(0);
    /// No more data from the sender.
    pub const FIN: Flags = Flags(1);
    /// Synchronize sequence numbers.
    pub const SYN: Flags = Flags(1 << 1);
    /// Reset the connection.
    pub const RST: Flags = Flags(1 << 2);
    /// Push function.
    pub const PSH: Flags = Flags(1 << 3);
    /// The acknowledgment number is valid.
    pub const ACK: Flags = Flags(1 << 4);
    /// The urgent pointer is valid.
    pub const URG: Flags = Flags(1 << 5);
    /// ECN echo (RFC 3168).
    pub const ECE: Flags = Flags(1 << 6);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Flags = Flags(1 << 7);

    /// Makes flags from byte 13 of a TCP header.
    #[inline]
    pub const fn from_bits(bits: u8) -> Flags {
        Flags(bits)
    }

    /// Returns the flags as byte 13 of a TCP header.
    #[inline]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns true if all flags of `other` are set.
    #[inline]
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns true if any flag of `other` is set.
    #[inline]
    pub const fn intersects(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Flags;

    #[inline]
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    #[inline]
    fn bitor_assign(&mut self, other: Flags) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
        let set = (0..8).filter(|bit| self.0 >> bit & 1 == 1);
        let names: Vec<&str> = set.map(|bit| NAMES[bit]).collect();
        write!(f, "Flags({})", names.join("|"))
    }
}

/// The blocks of a SACK option (RFC 2018): `(left edge, right edge)`, up to four.
#[derive(Clone, Copy, Default)]
pub struct SackBlocks {
    count: u8,
    blocks: [(u32, u32); SackBlocks::MAX],
}

impl SackBlocks {
    /// Most blocks that the option space holds.
    pub const MAX: usize = 4;

    /// Adds a SACK block behind the others. Returns false, and adds nothing, if there are four already.
    #[inline]
    pub fn push(&mut self, left: u32, right: u32) -> bool {
        match self.blocks.get_mut(usize::from(self.count)) {
            Some(block) => {
                *block = (left, right);
                self.count += 1;
                true
            }
            None => false,
        }
    }

    /// Returns the SACK blocks as (left edge, right edge) in sequence numbers, in their order in the option.
    #[inline]
    pub fn blocks(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Returns true if there is no SACK block.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl PartialEq for SackBlocks {
    fn eq(&self, other: &SackBlocks) -> bool {
        self.blocks() == other.blocks()
    }
}

impl Eq for SackBlocks {}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.blocks()).finish()
    }
}

/// Values of the timestamps option (RFC 7323).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the other end's clock, echoed.
    pub echo: u32,
}

/// Options of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size, in SYN segments.
    pub mss: Option<u16>,
    /// Window scale shift count, in SYN segments.
    pub window_scale: Option<u8>,
    /// Selective acknowledgments may be sent, in SYN segments.
    pub sack_permitted: bool,
    /// Selective acknowledgments.
    pub sack: SackBlocks,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
}

const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

impl Options {
    /// Most bytes of options.
    pub const MAX_LEN: usize = 40;

    /// Returns the length of the options in bytes when they are emitted, each of them padded to whole 32-bit words.
    pub fn len(&self) -> usize {
        let sack = match self.sack.blocks().len() {
            0 => 0,
            blocks => 4 + 8 * blocks,
        };
        4 * usize::from(self.mss.is_some())
            + 4 * usize::from(self.window_scale.is_some())
            + 4 * usize::from(self.sack_permitted)
            + 12 * usize::from(self.timestamps.is_some())
            + sack
    }

    /// Returns true if there is no option.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads TCP options up to their end marker, and skips those of unknown kinds. Fails with `Malformed` if an
    /// option's length goes beyond the bytes, or is wrong for its kind.
    pub fn parse(mut bytes: &[u8]) -> Result<Options, Error> {
        let mut options = Options::default();
        loop {
            match *bytes {
                [] | [END_OF_OPTIONS, ..] => return Ok(options),
                [NO_OPERATION, ref rest @ ..] => bytes = rest,
                [kind, len, ..] if len >= 2 && usize::from(len) <= bytes.len() => {
                    let (option, rest) = bytes.split_at(usize::from(len));
                    options.read(kind, &option[2..])?;
                    bytes = rest;
                }
                _ => return Err(Error::Malformed),
            }
        }
    }

    fn read(&mut self, kind: u8, value: &[u8]) -> Result<(), Error> {
        match (kind, value.len()) {
            (MSS, 2) => self.mss = Some(u16_at(value, 0)),
            (WINDOW_SCALE, 1) => self.window_scale = Some(value[0]),
            (SACK_PERMITTED, 0) => self.sack_permitted = true,
            (SACK, 8 | 16 | 24 | 32) => {
                self.sack = SackBlocks::default();
                for block in value.chunks_exact(8) {
                    self.sack.push(u32_at(block, 0), u32_at(block, 4));
                }
            }
            (TIMESTAMPS, 8) => {
                self.timestamps = Some(Timestamps {
                    value: u32_at(value, 0),
                    echo: u32_at(value, 4),
                });
            }
            (MSS | WINDOW_SCALE | SACK_PERMITTED | SACK | TIMESTAMPS, _) => {
                return Err(Error::Malformed);
            }
            _ => {}
        }
        Ok(())
    }

    fn emit(&self, out: &mut Vec<u8>) {
        if let Some(mss) = self.mss {
            out.extend_from_slice(&[MSS, 4]);
            out.extend_from_slice(&mss.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            out.extend_from_slice(&[NO_OPERATION, WINDOW_SCALE, 3, shift]);
        }
        if self.sack_permitted {
            out.extend_from_slice(&[NO_OPERATION, NO_OPERATION, SACK_PERMITTED, 2]);
        }
        if let Some(timestamps) = self.timestamps {
            out.extend_from_slice(&[NO_OPERATION, NO_OPERATION, TIMESTAMPS, 10]);
            out.extend_from_slice(&timestamps.value.to_be_bytes());
            out.extend_from_slice(&timestamps.echo.to_be_bytes());
        }
        if !self.sack.is_empty() {
            let len = 2 + 8 * self.sack.count;
            out.extend_from_slice(&[NO_OPERATION, NO_OPERATION, SACK, len]);
            for (left, right) in self.sack.blocks() {
                out.extend_from_slice(&left.to_be_bytes());
                out.extend_from_slice(&right.to_be_bytes());
            }
        }
    }
}

/// Checked bytes of a segment.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Makes a view of a TCP segment. Since TCP has no length field, `bytes` must end with the IP packet. Fails with
    /// `Truncated` if the header is incomplete, and with `Malformed` if the data offset is below 20 bytes.
    pub fn new(bytes: &'a [u8]) -> Result<View<'a>, Error> {
        at_least(bytes, Header::MIN_LEN)?;
        let header_len = usize::from(bytes[12] >> 4) * 4;
        if header_len < Header::MIN_LEN {
            return Err(Error::Malformed);
        }
        at_least(bytes, header_len).map(View)
    }

    fields! { bytes =>
        /// Source port.
        source_port: u16 = u16_at(bytes, 0);
        /// Destination port.
        destination_port: u16 = u16_at(bytes, 2);
        /// Sequence number.
        sequence: u32 = u32_at(bytes, 4);
        /// Acknowledgment number.
        acknowledgment: u32 = u32_at(bytes, 8);
        /// Bytes of the header, options included.
        header_len: usize = usize::from(bytes[12] >> 4) * 4;
        /// Control bits.
        flags: Flags = Flags(bytes[13]);
        /// Window, not scaled.
        window: u16 = u16_at(bytes, 14);
        /// Checksum.
        checksum: u16 = u16_at(bytes, 16);
        /// Urgent pointer.
        urgent_pointer: u16 = u16_at(bytes, 18);
    }

    /// Returns the bytes of the header's options, padding included; empty if there are none.
    pub fn options(&self) -> &'a [u8] {
        &self.0[Header::MIN_LEN..self.header_len()]
    }

    /// Returns the segment's payload: the bytes behind the header.
    pub fn payload(&self) -> &'a [u8] {
        &self.0[self.header_len()..]
    }

    /// Returns true if the segment's checksum is correct for an IP packet with these addresses.
    pub fn checksum_is_valid<A: Address>(&self, source: A, destination: A) -> bool {
        self.verifies_with_zeros(source, destination, 0)
    }

    /// Returns true if the segment's checksum is correct for an IP packet with these addresses, assuming that `zeros`
    /// bytes of value zero follow the view's bytes.
    pub fn verifies_with_zeros<A: Address>(&self, source: A, destination: A, zeros: usize) -> bool {
        match u16::try_from(self.0.len().saturating_add(zeros)) {
            Ok(len) => {
                let pseudo = A::pseudo_header_sum(source, destination, PROTOCOL_TCP, len);
                verifies(pseudo.bytes(self.0))
            }
            Err(_) => false,
        }
    }
}

/// Values of a TCP header. Data offset and checksum follow from them and the payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgment number.
    pub acknowledgment: u32,
    /// Control bits.
    pub flags: Flags,
    /// Window, not scaled.
    pub window: u16,
    /// Urgent pointer.
    pub urgent_pointer: u16,
    /// Options.
    pub options: Options,
}

impl Header {
    /// Bytes of a header without options.
    pub const MIN_LEN: usize = 20;

    /// Returns the length in bytes of the header with its options when it is emitted.
    pub fn header_len(&self) -> usize {
        Header::MIN_LEN + self.options.len()
    }

    /// Returns the fields of a TCP header. Fails with `Checksum` if the segment's checksum is wrong for an IP packet
    /// with these addresses, and with `Malformed` if an option is damaged.
    pub fn parse<A: Address>(view: &View<'_>, source: A, destination: A) -> Result<Header, Error> {
        Header::parse_virtual(view, source, destination, 0)
    }

    /// Returns the fields of the TCP header of a segment whose payload continues with `zeros` bytes of value zero
    /// behind those of the view. Fails with `Checksum` if the checksum is wrong for an IP packet with these addresses,
    /// and with `Malformed` if an option is damaged.
    pub fn parse_virtual<A: Address>(
        view: &View<'_>,
        source: A,
        destination: A,
        zeros: usize,
    ) -> Result<Header, Error> {
        if !view.verifies_with_zeros(source, destination, zeros) {
            return Err(Error::Checksum);
        }
        Header::read(view)
    }

    /// Returns the fields of a TCP header without checking the checksum. Fails with `Malformed` if an option is
    /// damaged.
    pub(crate) fn read(view: &View<'_>) -> Result<Header, Error> {
        Ok(Header {
            source_port: view.source_port(),
            destination_port: view.destination_port(),
            sequence: view.sequence(),
            acknowledgment: view.acknowledgment(),
            flags: view.flags(),
            window: view.window(),
            urgent_pointer: view.urgent_pointer(),
            options: Options::parse(view.options())?,
        })
    }

    /// Appends TCP header and payload to `out`, with the checksum for an IP packet with these addresses. Fails with
    /// `OutOfRange`, and appends nothing, if the options exceed 40 bytes or the segment 65,535 bytes.
    pub fn emit<A: Address>(
        &self,
        source: A,
        destination: A,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let len = self.segment_len(payload.len())?;
        let start = out.len();
        self.emit_without_checksum(out);
        out.extend_from_slice(payload);
        put_checksum(&mut out[start..], source, destination, len);
        Ok(())
    }

    /// Appends only the TCP header to `out`, with the checksum of a segment whose payload consists of `zeros` bytes of
    /// value zero. Fails like [`Header::emit`].
    pub fn emit_virtual<A: Address>(
        &self,
        source: A,
        destination: A,
        zeros: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let len = self.segment_len(zeros)?;
        let start = out.len();
        self.emit_without_checksum(out);
        put_checksum(&mut out[start..], source, destination, len);
        Ok(())
    }

    /// Appends only the TCP header to `out`, like [`Header::emit_virtual`], with `inserted_len` other bytes between
    /// its first 20 bytes and its options; `insert` must append them. Fails like [`Header::emit_virtual`].
    pub(crate) fn emit_virtual_with<A: Address>(
        &self,
        (inserted_len, insert): (usize, impl FnOnce(&mut Vec<u8>)),
        source: A,
        destination: A,
        zeros: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let len = self.segment_len(zeros.saturating_add(inserted_len))?;
        let start = out.len();
        self.emit_fixed(out);
        insert(out);
        self.options.emit(out);
        put_checksum(&mut out[start..], source, destination, len);
        Ok(())
    }

    fn segment_len(&self, payload_len: usize) -> Result<u16, Error> {
        if self.options.len() > Options::MAX_LEN {
            return Err(Error::OutOfRange);
        }
        self.header_len()
            .checked_add(payload_len)
            .and_then(|len| u16::try_from(len).ok())
            .ok_or(Error::OutOfRange)
    }

    fn emit_without_checksum(&self, out: &mut Vec<u8>) {
        self.emit_fixed(out);
        self.options.emit(out);
    }

    fn emit_fixed(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.source_port.to_be_bytes());
        out.extend_from_slice(&self.destination_port.to_be_bytes());
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&self.acknowledgment.to_be_bytes());
        let words = (self.header_len() / 4) as u8;
        out.extend_from_slice(&[words << 4, self.flags.0]);
        out.extend_from_slice(&self.window.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&self.urgent_pointer.to_be_bytes());
    }
}

/// Computes the checksum of `segment`, whose checksum field is zero, and writes it there. `len` is the segment's length
/// in bytes, including zeros behind it that are not stored.
fn put_checksum<A: Address>(segment: &mut [u8], source: A, destination: A, len: u16) {
    let pseudo = A::pseudo_header_sum(source, destination, PROTOCOL_TCP, len);
    let checksum = pseudo.bytes(segment).finish();
    segment[16..18].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn any_options() -> impl Strategy<Value = Options> {
        let syn = (any::<Option<u16>>(), any::<Option<u8>>(), any::<bool>());
        let sack = proptest::collection::vec(any::<(u32, u32)>(), 0..=4);
        (syn, sack, any::<Option<(u32, u32)>>()).prop_filter_map(
            "too long",
            |((mss, window_scale, sack_permitted), blocks, timestamps)| {
                let mut sack = SackBlocks::default();
                for (left, right) in blocks {
                    assert!(sack.push(left, right));
                }
                let timestamps = timestamps.map(|(value, echo)| Timestamps { value, echo });
                let options = Options {
                    mss,
                    window_scale,
                    sack_permitted,
                    sack,
                    timestamps,
                };
                (options.len() <= Options::MAX_LEN).then_some(options)
            },
        )
    }

    fn any_header() -> impl Strategy<Value = Header> {
        let numbers = (any::<u32>(), any::<u32>());
        let fields = (any::<u16>(), any::<u16>(), any::<u16>(), any::<u16>());
        (numbers, fields, any::<u8>(), any_options()).prop_map(
            |(numbers, fields, flags, options)| Header {
                source_port: fields.0,
                destination_port: fields.1,
                sequence: numbers.0,
                acknowledgment: numbers.1,
                flags: Flags::from_bits(flags),
                window: fields.2,
                urgent_pointer: fields.3,
                options,
            },
        )
    }

    proptest! {
        #[test]
        fn parse_gives_what_was_emitted(header in any_header(), payload: Vec<u8>, a: [u8; 4], b: [u8; 4]) {
            let (a, b) = (Ipv4Addr::from(a), Ipv4Addr::from(b));
            let mut bytes = Vec::new();
            header.emit(a, b, &payload, &mut bytes).unwrap();
            prop_assert_eq!(bytes.len(), header.header_len() + payload.len());
            let view = View::new(&bytes).unwrap();
            prop_assert_eq!(Header::parse(&view, a, b), Ok(header));
            prop_assert_eq!(view.payload(), &payload[..]);
        }

        #[test]
        fn a_virtual_payload_is_zeros(header in any_header(), zeros in 0usize..3000) {
            let (mut stored, mut bytes) = (Vec::new(), Vec::new());
            header.emit(A, B, &vec![0; zeros], &mut stored).unwrap();
            header.emit_virtual(A, B, zeros, &mut bytes).unwrap();
            prop_assert_eq!(&bytes[..], &stored[..header.header_len()]);
            let view = View::new(&bytes).unwrap();
            prop_assert_eq!(Header::parse_virtual(&view, A, B, zeros), Ok(header));
            prop_assert_eq!(Header::parse_virtual(&view, A, B, zeros + 1), Err(Error::Checksum));
        }

        #[test]
        fn every_flipped_bit_is_noticed(header in any_header(), payload in proptest::collection::vec(any::<u8>(), 0..40), bit: prop::sample::Index) {
            let mut bytes = Vec::new();
            header.emit(A, B, &payload, &mut bytes).unwrap();
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 0x80 >> (bit % 8);
            if let Ok(view) = View::new(&bytes) {
                prop_assert_eq!(Header::parse(&view, A, B), Err(Error::Checksum));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..90)) {
            if bytes.len() > 12 {
                bytes[12] |= 0x50;
            }
            if let Ok(view) = View::new(&bytes) {
                let _ = (Header::parse(&view, A, B), Options::parse(view.options()));
                prop_assert_eq!(view.header_len() + view.payload().len(), bytes.len());
            }
        }

        #[test]
        fn any_options_are_read_or_refused(bytes in proptest::collection::vec(prop_oneof![0u8..12, any::<u8>()], 0..=40)) {
            let _ = Options::parse(&bytes);
        }
    }

    #[test]
    fn a_segment_over_ipv6_byte_by_byte() {
        let a = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
        let b = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1);
        let header = Header {
            source_port: 0x9c40,
            destination_port: 0x1389,
            sequence: 0x0102_0304,
            acknowledgment: 0x0506_0708,
            flags: Flags::ACK | Flags::PSH,
            window: 0x1000,
            ..Header::default()
        };
        let mut bytes = Vec::new();
        header.emit(a, b, &[0, 0, 0], &mut bytes).unwrap();
        // By hand: the addresses 2 * (0x2001 + 0x0db8) + 1 + 1 + 2 + 1, length 23, next header 6, ports, numbers, 0x5018 and the
        // window; 0x17b89, folded 0x7b8a, complemented 0x8475.
        let expected = [
            0x9c, 0x40, 0x13, 0x89, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x18, 0x10, 0, 0x84, 0x75, 0, 0,
            0, 0, 0,
        ];
        assert_eq!(bytes, expected);
        let (mut stored, view) = (Vec::new(), View::new(&bytes).unwrap());
        header.emit_virtual(a, b, 3, &mut stored).unwrap();
        assert_eq!(stored, bytes[..20]);
        assert_eq!(Header::parse(&view, a, b), Ok(header));
        assert_eq!(Header::parse(&view, b, b), Err(Error::Checksum));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut header = Header::default();
        let mut bytes = Vec::new();
        let room = 65_535 - Header::MIN_LEN;
        assert_eq!(header.emit_virtual(A, B, room, &mut bytes), Ok(()));
        bytes.clear();
        for zeros in [room + 1, usize::MAX] {
            let refused = header.emit_virtual(A, B, zeros, &mut bytes);
            assert_eq!(refused, Err(Error::OutOfRange));
        }
        header.options.timestamps = Some(Timestamps::default());
        for _ in 0..3 {
            header.options.sack.push(1, 2);
        }
        assert_eq!(header.options.len(), 40);
        header.options.sack.push(1, 2);
        assert!(!header.options.sack.push(1, 2));
        assert_eq!(header.emit(A, B, &[], &mut bytes), Err(Error::OutOfRange));
        assert!(bytes.is_empty());
    }

    #[test]
    fn options_of_other_hands() {
        // A SYN of Linux: MSS 1460, SACK permitted, timestamps, NOP, window scale 7.
        let linux = [
            2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7,
        ];
        let options = Options::parse(&linux).unwrap();
        assert_eq!((options.mss, options.window_scale), (Some(1460), Some(7)));
        assert!(options.sack_permitted && options.sack.is_empty());
        assert_eq!(options.timestamps, Some(Timestamps { value: 9, echo: 0 }));
        // Unknown kinds are skipped, everything behind the end marker is padding.
        let unknown = [253, 4, 1, 2, 3, 3, 14, 0, 255, 255, 255, 255];
        assert_eq!(Options::parse(&unknown).unwrap().window_scale, Some(14));
        for malformed in [
            &[2u8][..],
            &[2, 1],
            &[2, 0, 0, 0],
            &[2, 4, 1],
            &[2, 3, 1],
            &[5, 9, 0, 0, 0, 0, 0, 0, 0],
            &[5, 2],
            &[3, 2],
        ] {
            assert_eq!(
                Options::parse(malformed),
                Err(Error::Malformed),
                "{malformed:?}"
            );
        }
    }
}
