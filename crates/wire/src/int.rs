//! INT-MD headers (In-band Network Telemetry v2.1, sections 5.6.2 and 5.7) between TCP's 20 bytes and its options, as hosts write and read
//! them that are source and sink themselves. It knows one instruction: that of domain [`DOMAIN_ID`], the load of an output port.
//!
//! ```text
//! shim (4 bytes)    type 4 | NPT 2 = 0 | 0 2 | words behind the shim 8 | 0 8 | DSCP 6 | 0 2
//! header (12 bytes) version 4 = 2 | D E M 3 | 0 12 | Hop ML 5 = 2 | remaining hops 8
//!                   instructions 16 = 0 | domain 16 | DS instructions 16 = 0x8000 | DS flags 16 = path
//! each hop (8 bytes), the last in front
//!                   rate 4 | time 24 | transmitted 20 | queue 16
//! ```
//!
//! The indicator is the DSCP. Type 1 (MD) asks each node for its load. Type 2 (destination), which the specification leaves to the
//! sink and nodes forward as it is, brings the receiver's numbers back to the sender: the rest is what type 1 brought.
//! The fields of a hop are those of HPCC (Li and others, SIGCOMM 2019); the path number is the exclusive or of node numbers.

use crate::checksum::verifies;
use crate::ipv4::PROTOCOL_TCP;
use crate::tcp::{Header, View};
use crate::{Address, Error, at_least, u16_at, u32_at};

/// The DSCP of packets with INT headers.
pub const DSCP: u8 = 0x17;
/// The domain whose first domain-specific instruction asks for the load.
pub const DOMAIN_ID: u16 = 0x4850;
/// The instruction for the load.
pub const LOAD: u16 = 0x8000;
/// Bytes of shim and header.
pub const MIN_LEN: usize = 16;
/// Most hops that are read: a longer stack is malformed.
pub const MAX_HOPS: usize = 8;

/// Words of a hop.
const HOP_WORDS: u8 = 2;
/// Words of the header.
const HEADER_WORDS: u8 = 3;
const VERSION: u8 = 2;
/// Bits per second, by code. 0 and 15 are unknown.
const RATES_BPS: [u64; 16] = [
    0,
    10_000_000,
    100_000_000,
    1_000_000_000,
    2_500_000_000,
    4_000_000_000,
    5_000_000_000,
    10_000_000_000,
    25_000_000_000,
    40_000_000_000,
    50_000_000_000,
    100_000_000_000,
    200_000_000_000,
    400_000_000_000,
    800_000_000_000,
    0,
];

/// The purpose of the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Each node on the path pushes its load onto the stack.
    Metadata,
    /// The stack that the receiver got, on its way back to the sender.
    Echo,
}

impl Kind {
    fn bits(self) -> u8 {
        match self {
            Kind::Metadata => 1,
            Kind::Echo => 2,
        }
    }
}

/// The load of an output port when a packet left it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hop(u64);

impl Hop {
    /// The unit of [`Hop::bytes_since`], in bytes.
    pub const TRANSMITTED_UNIT: u32 = 128;
    /// The unit of [`Hop::queue_bytes`], in bytes.
    pub const QUEUE_UNIT: u32 = 64;

    /// Makes a node's load from its 8 bytes in the INT stack, read as a big-endian number.
    pub const fn from_bits(bits: u64) -> Hop {
        Hop(bits)
    }

    /// Returns the 8 bytes of the load in the INT stack as a big-endian number.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Makes a node's load. `rate_code` is the link rate's code, `time_us` the time in microseconds, `transmitted` the
    /// bytes sent in units of 128, and `queue` the queued bytes in units of 64. Each value is cut to the width of its
    /// field.
    pub const fn new(rate_code: u8, time_us: u32, transmitted: u32, queue: u16) -> Hop {
        let rate = (rate_code as u64 & 0xF) << 60;
        let time = (time_us as u64 & 0xFF_FFFF) << 36;
        let transmitted = (transmitted as u64 & 0xF_FFFF) << 16;
        Hop(rate | time | transmitted | queue as u64)
    }

    /// Returns the output link's rate in bits per second; `None` if the node does not know it.
    pub fn rate_bps(self) -> Option<u64> {
        let rate = RATES_BPS[(self.0 >> 60) as usize];
        (rate != 0).then_some(rate)
    }

    /// Returns the time at which the packet left the output port, in microseconds of the node's clock, modulo 2^24.
    pub fn time_us(self) -> u32 {
        (self.0 >> 36) as u32 & 0xFF_FFFF
    }

    /// Returns the number of microseconds from an earlier load of the same port to this one, modulo 2^24.
    pub fn microseconds_since(self, earlier: Hop) -> u32 {
        self.time_us().wrapping_sub(earlier.time_us()) & 0xFF_FFFF
    }

    /// Returns the number of bytes that the port sent between an earlier load and this one, in steps of 128, modulo
    /// 2^27.
    pub fn bytes_since(self, earlier: Hop) -> u32 {
        let units = |hop: Hop| (hop.0 >> 16) as u32;
        (units(self).wrapping_sub(units(earlier)) & 0xF_FFFF) * Hop::TRANSMITTED_UNIT
    }

    /// Returns the number of bytes that waited in the queue behind the packet, in steps of 64.
    pub fn queue_bytes(self) -> u32 {
        (self.0 as u32 & 0xFFFF) * Hop::QUEUE_UNIT
    }
}

/// The loads along a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathLoad {
    /// The exclusive or of the nodes' numbers.
    pub path: u16,
    count: u8,
    hops: [Hop; MAX_HOPS],
}

impl PathLoad {
    /// Makes a path's loads from those of its nodes, the last node first. `path` is the exclusive or of the nodes'
    /// numbers. Fails with `OutOfRange` for more than [`MAX_HOPS`] nodes.
    pub fn new(path: u16, hops: &[Hop]) -> Result<PathLoad, Error> {
        let mut load = PathLoad {
            path,
            count: hops.len() as u8,
            ..PathLoad::default()
        };
        let places = load.hops.get_mut(..hops.len()).ok_or(Error::OutOfRange)?;
        places.copy_from_slice(hops);
        Ok(load)
    }

    /// Returns a [`Hop`] for each node that the packet passed, the last node's first: the link rate, the time, the bytes
    /// sent so far and the queue length of the output port when the packet left it.
    pub fn hops(&self) -> &[Hop] {
        &self.hops[..usize::from(self.count)]
    }

    /// Returns the length in bytes of INT headers that carry these loads: shim, header and stack.
    pub fn len(&self) -> usize {
        MIN_LEN + self.hops().len() * 8
    }

    /// Returns false: INT headers have at least a shim and a header, so their length is never zero.
    pub fn is_empty(&self) -> bool {
        false
    }
}

/// INT headers as values. Their E and M flags and remaining hops are no longer of interest at their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Telemetry {
    /// Their purpose.
    pub kind: Kind,
    /// The packet's DSCP without INT.
    pub dscp: u8,
    /// The load that they carry.
    pub load: PathLoad,
}

impl Telemetry {
    /// Returns the length in bytes of the INT headers: shim, header and stack.
    pub fn len(&self) -> usize {
        self.load.len()
    }

    /// Returns false: INT headers have at least a shim and a header, so their length is never zero.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Reads the INT headers at the beginning of `bytes`. Returns them and their length in bytes. Fails with
    /// `Truncated` if bytes are missing, and with `Malformed` if they request anything but the load of output ports, or
    /// hold more than [`MAX_HOPS`] hops.
    pub fn parse(bytes: &[u8]) -> Result<(Telemetry, usize), Error> {
        at_least(bytes, MIN_LEN)?;
        let kind = match bytes[0] {
            0x10 => Kind::Metadata,
            0x20 => Kind::Echo,
            _ => return Err(Error::Malformed),
        };
        let (words, dscp) = (bytes[1], bytes[3] >> 2);
        let first = u32_at(bytes, 4);
        let is_ours = (first >> 28) as u8 == VERSION
            && (first >> 8 & 0x1F) as u8 == HOP_WORDS
            && u16_at(bytes, 8) == 0
            && u16_at(bytes, 10) == DOMAIN_ID
            && u16_at(bytes, 12) == LOAD;
        let stack_words = words.checked_sub(HEADER_WORDS).ok_or(Error::Malformed)?;
        let count = usize::from(stack_words / HOP_WORDS);
        if !is_ours || stack_words % HOP_WORDS != 0 || count > MAX_HOPS {
            return Err(Error::Malformed);
        }
        let len = MIN_LEN + 8 * count;
        let stack = &at_least(bytes, len)?[MIN_LEN..len];
        let mut load = PathLoad {
            path: u16_at(bytes, 14),
            count: count as u8,
            ..PathLoad::default()
        };
        for (hop, bytes) in load.hops.iter_mut().zip(stack.chunks_exact(8)) {
            *hop = Hop(u64::from(u32_at(bytes, 0)) << 32 | u64::from(u32_at(bytes, 4)));
        }
        Ok((Telemetry { kind, dscp, load }, len))
    }

    /// Appends the INT headers to `out`: shim, header and stack. The header's remaining hop count lets nodes add their
    /// loads until the stack holds [`MAX_HOPS`], the most that [`Telemetry::parse`] reads.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let hops = self.load.hops();
        let words = HEADER_WORDS + HOP_WORDS * hops.len() as u8;
        let remaining = (MAX_HOPS - hops.len()) as u8;
        out.extend_from_slice(&[self.kind.bits() << 4, words, 0, self.dscp << 2]);
        out.extend_from_slice(&[VERSION << 4, 0, HOP_WORDS, remaining, 0, 0]);
        out.extend_from_slice(&DOMAIN_ID.to_be_bytes());
        out.extend_from_slice(&LOAD.to_be_bytes());
        out.extend_from_slice(&self.load.path.to_be_bytes());
        for hop in hops {
            out.extend_from_slice(&hop.0.to_be_bytes());
        }
    }
}

/// Appends a TCP header, with INT headers in front of its options, to `out`. The checksum is that of a segment that
/// continues with `zeros` bytes of value zero, which are not appended. Fails with `OutOfRange`, and appends nothing, if
/// options or segment are too long.
pub fn emit_virtual_segment<A: Address>(
    (header, telemetry): (&Header, &Telemetry),
    source: A,
    destination: A,
    zeros: usize,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let inserted = (telemetry.len(), |out: &mut Vec<u8>| telemetry.emit(out));
    header.emit_virtual_with(inserted, source, destination, zeros, out)
}

/// Reads a TCP segment with INT headers behind the TCP header's first 20 bytes. Returns the TCP header, the contents of
/// the INT headers, and the number of payload bytes. `bytes` must end with the IP packet. Fails with `Checksum`,
/// `Truncated` or `Malformed`.
///
/// The checksum covers the segment with its INT headers; each node corrects it for the load that it adds.
pub fn parse_segment<A: Address>(
    bytes: &[u8],
    source: A,
    destination: A,
) -> Result<(Header, Telemetry, usize), Error> {
    at_least(bytes, Header::MIN_LEN)?;
    let len = u16::try_from(bytes.len()).map_err(|_| Error::OutOfRange)?;
    let pseudo = A::pseudo_header_sum(source, destination, PROTOCOL_TCP, len);
    if !verifies(pseudo.bytes(bytes)) {
        return Err(Error::Checksum);
    }
    let (fixed, behind) = bytes.split_at(Header::MIN_LEN);
    let (telemetry, int_len) = Telemetry::parse(behind)?;
    let header_len = usize::from(fixed[12] >> 4) * 4;
    let options_len = header_len
        .checked_sub(Header::MIN_LEN)
        .ok_or(Error::Malformed)?;
    let rest = at_least(&behind[int_len..], options_len)?;
    let mut header = [0; 60];
    header[..Header::MIN_LEN].copy_from_slice(fixed);
    header[Header::MIN_LEN..header_len].copy_from_slice(&rest[..options_len]);
    let header = Header::read(&View::new(&header[..header_len])?)?;
    Ok((header, telemetry, rest.len() - options_len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{Flags, Options, Timestamps};
    use proptest::prelude::*;
    use std::net::Ipv4Addr;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn any_telemetry() -> impl Strategy<Value = Telemetry> {
        let hops = proptest::collection::vec(any::<u64>().prop_map(Hop), 0..=MAX_HOPS);
        (any::<bool>(), 0..64u8, any::<u16>(), hops).prop_map(|(echo, dscp, path, hops)| {
            Telemetry {
                kind: if echo { Kind::Echo } else { Kind::Metadata },
                dscp,
                load: PathLoad::new(path, &hops).expect("few enough"),
            }
        })
    }

    #[test]
    fn headers_are_as_the_specification_draws_them() {
        let hops = [
            Hop::new(3, 0xABCDEF, 0x12345, 0x6789),
            Hop::new(11, 1, 2, 3),
        ];
        let telemetry = Telemetry {
            kind: Kind::Metadata,
            dscp: 0b10_1010,
            load: PathLoad::new(0x0012, &hops).unwrap(),
        };
        let mut bytes = Vec::new();
        telemetry.emit(&mut bytes);
        #[rustfmt::skip]
        assert_eq!(bytes, [
            0x10, 7, 0, 0b1010_1000,
            0x20, 0x00, 0x02, 0x06,
            0x00, 0x00, 0x48, 0x50,
            0x80, 0x00, 0x00, 0x12,
            0x3A, 0xBC, 0xDE, 0xF1, 0x23, 0x45, 0x67, 0x89,
            0xB0, 0x00, 0x00, 0x10, 0x00, 0x02, 0x00, 0x03,
        ]);
        assert_eq!(hops[0].rate_bps(), Some(1_000_000_000));
        assert_eq!(hops[1].rate_bps(), Some(100_000_000_000));
        assert_eq!(hops[0].time_us(), 0xABCDEF);
        assert_eq!(hops[0].queue_bytes(), 0x6789 * 64);
        assert_eq!(Hop::from_bits(u64::MAX).rate_bps(), None);
    }

    #[test]
    fn clocks_and_counters_wrap() {
        let earlier = Hop::new(3, 0xFF_FFF0, 0xF_FFFF, 0);
        let later = Hop::new(3, 0x10, 1, 0);
        assert_eq!(later.microseconds_since(earlier), 0x20);
        assert_eq!(later.bytes_since(earlier), 2 * 128);
    }

    #[test]
    fn what_asks_for_something_else_is_malformed() {
        let telemetry = Telemetry {
            kind: Kind::Metadata,
            dscp: 0,
            load: PathLoad::default(),
        };
        let mut right = Vec::new();
        telemetry.emit(&mut right);
        assert!(Telemetry::parse(&right).is_ok());
        for (at, value) in [
            (0, 0x30),
            (0, 0x11),
            (1, 2),
            (1, 4),
            (1, 3 + 2 * 9),
            (4, 0x10),
            (6, 3),
            (8, 0x80),
            (11, 0),
            (12, 0xC0),
        ] {
            let mut wrong = right.clone();
            wrong.resize(100, 0);
            wrong[at] = value;
            assert_eq!(
                Telemetry::parse(&wrong).err(),
                Some(Error::Malformed),
                "{at}"
            );
        }
        assert_eq!(
            PathLoad::new(0, &[Hop::default(); 9]),
            Err(Error::OutOfRange)
        );
    }

    proptest! {
        #[test]
        fn segments_come_out_as_they_went_in(telemetry in any_telemetry(), zeros in 0..2000usize, ports: (u16, u16), ts: (u32, u32)) {
            let header = Header {
                source_port: ports.0,
                destination_port: ports.1,
                flags: Flags::ACK,
                options: Options {
                    timestamps: Some(Timestamps { value: ts.0, echo: ts.1 }),
                    ..Options::default()
                },
                ..Header::default()
            };
            let mut bytes = Vec::new();
            emit_virtual_segment((&header, &telemetry), A, B, zeros, &mut bytes).unwrap();
            prop_assert_eq!(bytes.len(), header.header_len() + telemetry.len());
            bytes.resize(bytes.len() + zeros, 0);
            prop_assert_eq!(parse_segment(&bytes, A, B), Ok((header, telemetry, zeros)));
            bytes[30] ^= 1;
            prop_assert_eq!(parse_segment(&bytes, A, B), Err(Error::Checksum));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            if let Ok((telemetry, len)) = Telemetry::parse(&bytes) {
                prop_assert_eq!(telemetry.len(), len);
            }
            let _ = parse_segment(&bytes, A, B);
        }
    }
}
