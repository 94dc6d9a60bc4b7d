//! pcapng files (draft-ietf-opsawg-pcapng), Wireshark's default: sections of blocks, each with its own byte order. The reader
//! reads packets and the blocks that describe them; it skips names, statistics, comments and all other blocks.

use crate::pcap::{ReadError, Record, SNAP_LEN};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
/// Type of the obsolete packet block, which occurs in old files.
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

const OPTION_END: u16 = 0;
const OPTION_TSRESOL: u16 = 9;
const OPTION_TSOFFSET: u16 = 14;

/// Bytes of a block around its body: type, length, and the length again at the end.
const BLOCK_OVERHEAD: usize = 12;

/// The unit of time stamps.
#[derive(Clone, Copy, Debug)]
enum Unit {
    /// 10^-n seconds.
    Decimal(u8),
    /// 2^-n seconds.
    Binary(u8),
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link_type: u32,
    /// Bytes of a packet that are stored; 0: all.
    snap_len: u32,
    unit: Unit,
    offset_s: i64,
}

impl Interface {
    /// Converts a time stamp of this interface, counted in its unit and from its offset, into nanoseconds since 1970.
    /// Fails with `Malformed` if 64 bits cannot represent the result.
    fn time_ns(&self, ticks: u64) -> Result<u64, ReadError> {
        let ns = u128::from(ticks) * 1_000_000_000;
        let ns = match self.unit {
            // Such small units are beyond what 128 bits count, and 64 bits of them are no nanosecond.
            Unit::Decimal(digits) => 10u128
                .checked_pow(digits.into())
                .map_or(0, |unit| ns / unit),
            Unit::Binary(bits) => ns >> bits,
        };
        let ns = i128::try_from(ns).map_err(|_| ReadError::Malformed)?;
        u64::try_from(ns + i128::from(self.offset_s) * 1_000_000_000)
            .map_err(|_| ReadError::Malformed)
    }
}

/// Returns true if a file whose first bytes (at least four) are these is a pcapng file.
pub fn is_pcapng(bytes: &[u8]) -> bool {
    // The type reads the same in both orders.
    bytes.starts_with(&SECTION_HEADER.to_be_bytes())
}

/// A packet, and the link type of its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// As in pcap; [`LINK_TYPE_ETHERNET`](crate::pcap::LINK_TYPE_ETHERNET) in most files.
    pub link_type: u32,
    /// The packet. A simple packet block has no time: it is 0.
    pub record: Record<'a>,
}

/// Reads a file held in memory: an iterator of packets that ends after the first error. It stores nothing but interfaces, which take
/// more room in the file.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    order: Order,
    interfaces: Vec<Interface>,
}

impl<'a> Reader<'a> {
    /// Makes a reader for a pcapng file. Fails with `NotPcap` if it does not begin with a section header.
    pub fn new(bytes: &'a [u8]) -> Result<Reader<'a>, ReadError> {
        if !is_pcapng(bytes) {
            return Err(ReadError::NotPcap);
        }
        Ok(Reader {
            rest: bytes,
            order: LITTLE_ENDIAN,
            interfaces: Vec::new(),
        })
    }

    /// Reads the next block, and returns its type and its body. A section header sets the byte order, and discards the
    /// former section's interfaces. Fails with `Truncated` or `Malformed` if the block is damaged.
    fn block(&mut self) -> Result<(u32, &'a [u8]), ReadError> {
        if self.rest.len() < BLOCK_OVERHEAD {
            return Err(ReadError::Truncated);
        }
        if is_pcapng(self.rest) {
            // A section says itself in which order its length is.
            self.order.big_endian = match LITTLE_ENDIAN.u32(self.rest, 8) {
                BYTE_ORDER_MAGIC => false,
                magic if magic.swap_bytes() == BYTE_ORDER_MAGIC => true,
                _ => return Err(ReadError::Malformed),
            };
            self.interfaces.clear();
        }
        let kind = self.order.u32(self.rest, 0);
        let length = self.order.u32(self.rest, 4) as usize;
        if length < BLOCK_OVERHEAD || !length.is_multiple_of(4) {
            return Err(ReadError::Malformed);
        }
        let (block, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(ReadError::Truncated)?;
        if self.order.u32(block, length - 4) as usize != length {
            return Err(ReadError::Malformed);
        }
        self.rest = rest;
        Ok((kind, &block[8..length - 4]))
    }

    /// Reads blocks up to the next one with a packet, and returns the packet; `None` at the end of the file. Fails with
    /// `Truncated` or `Malformed` if a block is damaged, a packet's interface is not described, or the version is
    /// unknown.
    fn packet(&mut self) -> Result<Option<Packet<'a>>, ReadError> {
        while !self.rest.is_empty() {
            let (kind, body) = self.block()?;
            match kind {
                SECTION_HEADER => {
                    let (fixed, _) = fixed::<16>(body)?;
                    // Another major version may have other blocks under the same numbers.
                    if self.order.u16(fixed, 4) != 1 {
                        return Err(ReadError::Malformed);
                    }
                }
                INTERFACE_DESCRIPTION => {
                    let interface = self.order.interface(body)?;
                    self.interfaces.push(interface);
                }
                ENHANCED_PACKET => {
                    let (fixed, data) = fixed::<20>(body)?;
                    let interface = self.order.u32(fixed, 0);
                    return self.stamped(interface, fixed, data).map(Some);
                }
                PACKET => {
                    let (fixed, data) = fixed::<20>(body)?;
                    let interface = self.order.u16(fixed, 0).into();
                    return self.stamped(interface, fixed, data).map(Some);
                }
                SIMPLE_PACKET => return self.simple(body).map(Some),
                _ => {}
            }
        }
        Ok(None)
    }

    fn interface(&self, number: u32) -> Result<Interface, ReadError> {
        let found = self.interfaces.get(number as usize);
        found.copied().ok_or(ReadError::Malformed)
    }

    /// Makes a packet with its time from the fixed fields (`fixed`) and the data of an enhanced packet block, or of the
    /// obsolete packet block. Fails with `Malformed` if they contradict each other.
    fn stamped(
        &self,
        interface: u32,
        fixed: &[u8],
        data: &'a [u8],
    ) -> Result<Packet<'a>, ReadError> {
        let interface = self.interface(interface)?;
        let ticks = u64::from(self.order.u32(fixed, 4)) << 32 | u64::from(self.order.u32(fixed, 8));
        let (stored, original_len) = (self.order.u32(fixed, 12), self.order.u32(fixed, 16));
        let time_ns = interface.time_ns(ticks)?;
        packet(interface, time_ns, stored, original_len, data)
    }

    /// Makes a packet from a simple packet block: it belongs to the section's first interface and has no time (0).
    /// Fails with `Malformed` if its fields contradict each other.
    fn simple(&self, body: &'a [u8]) -> Result<Packet<'a>, ReadError> {
        let (fixed, data) = fixed::<4>(body)?;
        let interface = self.interface(0)?;
        let original_len = self.order.u32(fixed, 0);
        let stored = match interface.snap_len {
            0 => original_len,
            most => original_len.min(most),
        };
        packet(interface, 0, stored, original_len, data)
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Packet<'a>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let packet = self.packet();
        if packet.is_err() {
            self.rest = &[];
        }
        packet.transpose()
    }
}

/// Splits a block's body into its first `N` bytes and the rest. Fails with `Malformed` if the body is shorter.
fn fixed<const N: usize>(body: &[u8]) -> Result<(&[u8], &[u8]), ReadError> {
    body.split_at_checked(N).ok_or(ReadError::Malformed)
}

fn packet(
    interface: Interface,
    time_ns: u64,
    stored: u32,
    original_len: u32,
    data: &[u8],
) -> Result<Packet<'_>, ReadError> {
    if stored > original_len || stored > SNAP_LEN {
        return Err(ReadError::Malformed);
    }
    let frame = data.get(..stored as usize).ok_or(ReadError::Malformed)?;
    Ok(Packet {
        link_type: interface.link_type,
        record: Record {
            time_ns,
            original_len,
            frame,
        },
    })
}

/// The byte order of a section.
#[derive(Clone, Copy, Debug)]
struct Order {
    big_endian: bool,
}

const LITTLE_ENDIAN: Order = Order { big_endian: false };

impl Order {
    fn u16(self, bytes: &[u8], offset: usize) -> u16 {
        let bytes = crate::array(bytes, offset);
        if self.big_endian {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        }
    }

    fn u32(self, bytes: &[u8], offset: usize) -> u32 {
        let bytes = crate::array(bytes, offset);
        if self.big_endian {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        }
    }

    fn i64(self, bytes: &[u8], offset: usize) -> i64 {
        let bytes = crate::array(bytes, offset);
        if self.big_endian {
            i64::from_be_bytes(bytes)
        } else {
            i64::from_le_bytes(bytes)
        }
    }

    fn interface(self, body: &[u8]) -> Result<Interface, ReadError> {
        let (fixed, mut options) = fixed::<8>(body)?;
        let mut interface = Interface {
            link_type: self.u16(fixed, 0).into(),
            snap_len: self.u32(fixed, 4),
            unit: Unit::Decimal(6),
            offset_s: 0,
        };
        while let Some((header, rest)) = options.split_at_checked(4) {
            let (code, length) = (self.u16(header, 0), usize::from(self.u16(header, 2)));
            let value = rest.get(..length).ok_or(ReadError::Malformed)?;
            match (code, value.len()) {
                (OPTION_END, _) => break,
                (OPTION_TSRESOL, 1) => {
                    let exponent = value[0] & 0x7f;
                    interface.unit = if value[0] & 0x80 == 0 {
                        Unit::Decimal(exponent)
                    } else {
                        Unit::Binary(exponent)
                    };
                }
                (OPTION_TSOFFSET, 8) => interface.offset_s = self.i64(value, 0),
                // Their lengths are given.
                (OPTION_TSRESOL | OPTION_TSOFFSET, _) => return Err(ReadError::Malformed),
                _ => {}
            }
            options = rest
                .get(length.next_multiple_of(4)..)
                .ok_or(ReadError::Malformed)?;
        }
        Ok(interface)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcap::LINK_TYPE_ETHERNET;
    use proptest::prelude::*;

    /// Writes blocks in one of the two orders.
    struct File {
        big_endian: bool,
        bytes: Vec<u8>,
    }

    impl File {
        fn section(big_endian: bool) -> File {
            let mut file = File {
                big_endian,
                bytes: Vec::new(),
            };
            file.begin_section();
            file
        }

        fn begin_section(&mut self) {
            let body = [
                self.word(BYTE_ORDER_MAGIC).to_vec(),
                self.half(1).to_vec(),
                self.half(0).to_vec(),
                vec![0xff; 8],
            ];
            self.block(SECTION_HEADER, &body.concat());
        }

        fn word(&self, value: u32) -> [u8; 4] {
            if self.big_endian {
                value.to_be_bytes()
            } else {
                value.to_le_bytes()
            }
        }

        fn half(&self, value: u16) -> [u8; 2] {
            if self.big_endian {
                value.to_be_bytes()
            } else {
                value.to_le_bytes()
            }
        }

        fn block(&mut self, kind: u32, body: &[u8]) {
            let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
            let length = self.word((body.len() + padding.len() + BLOCK_OVERHEAD) as u32);
            for part in [&self.word(kind)[..], &length, body, &padding, &length] {
                self.bytes.extend_from_slice(part);
            }
        }

        fn interface(&mut self, link_type: u16, snap_len: u32, options: &[(u16, &[u8])]) {
            let mut body = self.half(link_type).to_vec();
            body.extend([0; 2]);
            body.extend(self.word(snap_len));
            for (code, value) in options {
                body.extend(self.half(*code));
                body.extend(self.half(value.len() as u16));
                body.extend(*value);
                body.resize(body.len().next_multiple_of(4), 0);
            }
            self.block(INTERFACE_DESCRIPTION, &body);
        }

        fn enhanced(&mut self, interface: u32, ticks: u64, original_len: u32, frame: &[u8]) {
            let words = [
                interface,
                (ticks >> 32) as u32,
                ticks as u32,
                frame.len() as u32,
                original_len,
            ];
            let mut body: Vec<u8> = words.iter().flat_map(|&w| self.word(w)).collect();
            body.extend(frame);
            self.block(ENHANCED_PACKET, &body);
        }

        fn simple(&mut self, original_len: u32, data: &[u8]) {
            let mut body = self.word(original_len).to_vec();
            body.extend(data);
            self.block(SIMPLE_PACKET, &body);
        }

        fn read(&self) -> Vec<Result<Packet<'_>, ReadError>> {
            Reader::new(&self.bytes).unwrap().collect()
        }
    }

    fn packet(time_ns: u64, original_len: u32, frame: &[u8]) -> Packet<'_> {
        Packet {
            link_type: LINK_TYPE_ETHERNET,
            record: Record {
                time_ns,
                original_len,
                frame,
            },
        }
    }

    /// A section header, an interface and a packet as Wireshark 4 writes them, by hand from the draft's figures.
    #[test]
    fn the_bytes_of_a_small_file() {
        let mut file = vec![0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0];
        file.extend([0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0]);
        file.extend([0xff; 8]);
        file.extend([28, 0, 0, 0]);
        file.extend([1, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 4, 0, 20, 0, 0, 0]);
        file.extend([6, 0, 0, 0, 36, 0, 0, 0]);
        file.extend([0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0]);
        file.extend([0xaa, 0xbb, 0xcc, 0, 36, 0, 0, 0]);
        let packets: Vec<_> = Reader::new(&file).unwrap().collect();
        let time_ns = ((1 << 32) + 2) * 1000;
        assert_eq!(packets, [Ok(packet(time_ns, 9, &[0xaa, 0xbb, 0xcc]))]);
    }

    #[test]
    fn sections_in_either_order_have_their_own_interfaces() {
        let mut file = File::section(true);
        file.interface(1, 0, &[(OPTION_TSRESOL, &[9])]);
        file.enhanced(0, 7, 2, &[1, 2]);
        // Name resolution and statistics are skipped, and so is what nobody knows yet.
        for kind in [4, 5, 0x0bad, 0x8000_0001] {
            file.block(kind, &[1, 2, 3, 4, 5]);
        }
        file.big_endian = false;
        file.begin_section();
        file.interface(1, 3, &[]);
        file.interface(113, 0, &[(1, b"a comment"), (OPTION_END, &[])]);
        file.simple(5, &[1, 2, 3, 0]);
        file.enhanced(1, 1, 1, &[3]);
        file.block(
            PACKET,
            &[&[0; 12][..], &[1, 0, 0, 0, 1, 0, 0, 0, 4]].concat(),
        );
        let cooked = Packet {
            link_type: 113,
            ..packet(1000, 1, &[3])
        };
        let expected = [
            Ok(packet(7, 2, &[1, 2])),
            Ok(packet(0, 5, &[1, 2, 3])),
            Ok(cooked),
            Ok(packet(0, 1, &[4])),
        ];
        assert_eq!(file.read(), expected);
        // The next section has no interfaces yet.
        file.begin_section();
        file.enhanced(0, 1, 1, &[3]);
        assert_eq!(file.read()[4], Err(ReadError::Malformed));
    }

    #[test]
    fn time_stamps_are_in_the_unit_of_the_interface() {
        type Options<'a> = &'a [(u16, &'a [u8])];
        let cases: [(Options<'_>, u64, Result<u64, ReadError>); 10] = [
            (&[], 5, Ok(5000)),
            (&[(OPTION_TSRESOL, &[0])], 5, Ok(5_000_000_000)),
            (&[(OPTION_TSRESOL, &[3])], 5, Ok(5_000_000)),
            (&[(OPTION_TSRESOL, &[12])], 5999, Ok(5)),
            (&[(OPTION_TSRESOL, &[0x7f])], u64::MAX, Ok(0)),
            (&[(OPTION_TSRESOL, &[0x8a])], 512, Ok(500_000_000)),
            (&[(OPTION_TSRESOL, &[0xff])], u64::MAX, Ok(0)),
            (
                &[(OPTION_TSOFFSET, &[0, 0, 0, 0, 0, 0, 0, 2])],
                1,
                Ok(2_000_001_000),
            ),
            (
                &[(OPTION_TSOFFSET, &[0xff; 8])],
                1,
                Err(ReadError::Malformed),
            ),
            (
                &[(OPTION_TSRESOL, &[0])],
                u64::MAX,
                Err(ReadError::Malformed),
            ),
        ];
        for (options, ticks, expected) in cases {
            let mut file = File::section(true);
            file.interface(1, 0, options);
            file.enhanced(0, ticks, 0, &[]);
            let read: Vec<_> = file
                .read()
                .into_iter()
                .map(|r| r.map(|p| p.record.time_ns))
                .collect();
            assert_eq!(read, [expected], "{options:?} {ticks}");
        }
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        assert_eq!(Reader::new(&[]).unwrap_err(), ReadError::NotPcap);
        assert_eq!(Reader::new(&[0; 64]).unwrap_err(), ReadError::NotPcap);
        let whole = File::section(false);
        fn one_error(bytes: &[u8]) -> Vec<Result<Packet<'_>, ReadError>> {
            Reader::new(bytes).unwrap().collect()
        }
        // Every cut but that between blocks.
        for end in 4..whole.bytes.len() {
            assert_eq!(one_error(&whole.bytes[..end]), [Err(ReadError::Truncated)]);
        }
        for (at, value) in [(4, 27), (4, 8), (8, 0), (12, 2), (24, 32)] {
            let mut bytes = whole.bytes.clone();
            bytes[at] = value;
            let read = one_error(&bytes);
            assert!(
                matches!(read[..], [Err(ReadError::Malformed)]),
                "{at} {value}: {read:?}"
            );
        }
        let broken: [&dyn Fn(&mut File); 6] = [
            &|file| file.block(INTERFACE_DESCRIPTION, &[0; 4]),
            &|file| file.interface(1, 0, &[(OPTION_TSRESOL, &[6, 0])]),
            &|file| file.block(INTERFACE_DESCRIPTION, &[1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 9, 0]),
            &|file| file.simple(1, &[1]),
            &|file| {
                file.interface(1, 0, &[]);
                file.simple(5, &[1, 2, 3, 4]);
            },
            &|file| {
                file.interface(1, 0, &[]);
                file.enhanced(0, 0, 1, &[1, 2]);
            },
        ];
        for (i, broken) in broken.iter().enumerate() {
            let mut file = File::section(false);
            broken(&mut file);
            assert_eq!(file.read(), [Err(ReadError::Malformed)], "{i}");
        }
    }

    proptest! {
        #[test]
        fn reading_gives_what_was_written(
            big_endian: bool,
            frames in proptest::collection::vec((0u64..1 << 63, proptest::collection::vec(any::<u8>(), 0..80), 0u32..9), 0..8)
        ) {
            let mut file = File::section(big_endian);
            file.interface(1, 0, &[(OPTION_TSRESOL, &[9])]);
            for (time_ns, frame, cut) in &frames {
                file.enhanced(0, *time_ns, frame.len() as u32 + cut, frame);
                file.block(5, frame);
            }
            let expected: Vec<_> = frames.iter()
                .map(|(time_ns, frame, cut)| Ok(packet(*time_ns, frame.len() as u32 + cut, frame)))
                .collect();
            prop_assert_eq!(file.read(), expected);
        }

        #[test]
        fn cut_and_broken_files_end_in_one_error_at_most(
            big_endian: bool,
            frames in proptest::collection::vec((any::<u64>(), proptest::collection::vec(any::<u8>(), 0..40)), 1..5),
            cut: prop::sample::Index,
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)
        ) {
            let mut file = File::section(big_endian);
            file.interface(1, 60, &[(OPTION_TSOFFSET, &[0; 8]), (OPTION_TSRESOL, &[0x89])]);
            for (time, frame) in &frames {
                file.enhanced(0, *time, frame.len() as u32, frame);
                file.simple(frame.len() as u32, frame);
            }
            let mut bytes = file.bytes;
            for (at, value) in changes {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            bytes.truncate(cut.index(bytes.len() + 1));
            if let Ok(reader) = Reader::new(&bytes) {
                let read: Vec<_> = reader.collect();
                prop_assert!(read.iter().rev().skip(1).all(|r| r.is_ok()));
            }
        }

        #[test]
        fn garbage_behind_a_section_is_read_to_its_end(big_endian: bool, garbage in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut file = File::section(big_endian);
            file.bytes.extend(garbage);
            prop_assert!(file.read().len() <= file.bytes.len());
        }
    }
}
