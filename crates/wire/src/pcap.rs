//! Classic pcap files with nanosecond time stamps, as tcpdump and Wireshark read them. The reader also accepts files with
//! microseconds and of the other byte order. [`crate::pcapng`] has the successor format, and [`crate::capture`] accepts both.

use std::fmt;
use std::io::{self, Write};

const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
/// The largest frame that a file of ours announces and that the reader believes.
pub const SNAP_LEN: u32 = 262_144;
/// Link type of Ethernet.
pub const LINK_TYPE_ETHERNET: u32 = 1;

/// Writes a file: the header when it is made, then frame by frame.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
}

impl<W: Write> Writer<W> {
    /// Makes a writer, and writes the file header, which says Ethernet, nanoseconds and little-endian byte order. Fails
    /// if the output fails.
    pub fn new(mut out: W) -> io::Result<Writer<W>> {
        let mut header = [0; 24];
        header[..4].copy_from_slice(&MAGIC_NANOSECONDS.to_le_bytes());
        header[4..6].copy_from_slice(&2u16.to_le_bytes());
        header[6..8].copy_from_slice(&4u16.to_le_bytes());
        header[16..20].copy_from_slice(&SNAP_LEN.to_le_bytes());
        header[20..].copy_from_slice(&LINK_TYPE_ETHERNET.to_le_bytes());
        out.write_all(&header)?;
        Ok(Writer { out })
    }

    /// Appends a frame with its time in nanoseconds since 1970. Cuts a frame longer than [`SNAP_LEN`], and stores its
    /// original length. Fails for a time beyond the year 2106, which the format cannot represent, and if the output
    /// fails.
    pub fn write(&mut self, time_ns: u64, frame: &[u8]) -> io::Result<()> {
        let seconds = u32::try_from(time_ns / 1_000_000_000).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidInput, "pcap holds 32 bits of seconds")
        })?;
        let length = u32::try_from(frame.len())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "frame of 4 GiB or more"))?;
        let stored = length.min(SNAP_LEN);
        let mut header = [0; 16];
        header[..4].copy_from_slice(&seconds.to_le_bytes());
        header[4..8].copy_from_slice(&((time_ns % 1_000_000_000) as u32).to_le_bytes());
        header[8..12].copy_from_slice(&stored.to_le_bytes());
        header[12..].copy_from_slice(&length.to_le_bytes());
        self.out.write_all(&header)?;
        self.out.write_all(&frame[..stored as usize])
    }

    /// Flushes the output's buffer. Fails if the output fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Returns the output to which the file was written, without flushing it.
    pub fn into_inner(self) -> W {
        self.out
    }
}

/// Why bytes are not a pcap or pcapng file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The first bytes are of neither format.
    NotPcap,
    /// The file ends inside a record, as when its writer was interrupted.
    Truncated,
    /// A record's fields contradict each other.
    Malformed,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReadError::NotPcap => "not a pcap or pcapng file",
            ReadError::Truncated => "the file ends inside a record",
            ReadError::Malformed => "a record contradicts itself, or its time is impossible",
        })
    }
}

impl std::error::Error for ReadError {}

/// Returns true if a file whose first bytes (at least four) are these is a pcap file.
pub fn is_pcap(bytes: &[u8]) -> bool {
    format_of(bytes).is_some()
}

/// Determines the format of a pcap file from its magic number. Returns whether it is big-endian, and in how many
/// nanoseconds (1 or 1000) it counts fractions of seconds; `None` if it is not a pcap file.
fn format_of(bytes: &[u8]) -> Option<(bool, u32)> {
    let magic = u32::from_le_bytes(*bytes.first_chunk()?);
    match (magic, magic.swap_bytes()) {
        (MAGIC_NANOSECONDS, _) => Some((false, 1)),
        (MAGIC_MICROSECONDS, _) => Some((false, 1000)),
        (_, MAGIC_NANOSECONDS) => Some((true, 1)),
        (_, MAGIC_MICROSECONDS) => Some((true, 1000)),
        _ => None,
    }
}

/// One frame of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Time stamp, in nanoseconds since 1970.
    pub time_ns: u64,
    /// Bytes of the frame on the wire.
    pub original_len: u32,
    /// The stored bytes of the packet.
    pub frame: &'a [u8],
}

/// Reads a file held in memory: an iterator of records that ends after the first error.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    big_endian: bool,
    ns_per_fraction: u32,
    link_type: u32,
}

impl<'a> Reader<'a> {
    /// Makes a reader after checking the pcap file's header. Fails with `NotPcap` for an unknown magic number, and with
    /// `Truncated` if the header is incomplete.
    pub fn new(bytes: &'a [u8]) -> Result<Reader<'a>, ReadError> {
        let (big_endian, ns_per_fraction) = format_of(bytes).ok_or(ReadError::NotPcap)?;
        let (header, rest) = bytes.split_at_checked(24).ok_or(ReadError::Truncated)?;
        let mut reader = Reader {
            rest,
            big_endian,
            ns_per_fraction,
            link_type: 0,
        };
        // The upper bits of the field tell about frame check sequences.
        reader.link_type = reader.u32(header, 20) & 0x0fff_ffff;
        Ok(reader)
    }

    /// Returns the link type in the file header; [`LINK_TYPE_ETHERNET`] in files from [`Writer`].
    pub fn link_type(&self) -> u32 {
        self.link_type
    }

    fn u32(&self, bytes: &[u8], offset: usize) -> u32 {
        let value = u32_le(bytes, offset);
        if self.big_endian {
            value.swap_bytes()
        } else {
            value
        }
    }

    fn record(&mut self) -> Result<Record<'a>, ReadError> {
        let (header, rest) = self.rest.split_at_checked(16).ok_or(ReadError::Truncated)?;
        let fraction = u64::from(self.u32(header, 4)) * u64::from(self.ns_per_fraction);
        let (stored, original_len) = (self.u32(header, 8), self.u32(header, 12));
        if fraction >= 1_000_000_000 || stored > original_len || stored > SNAP_LEN {
            return Err(ReadError::Malformed);
        }
        let (frame, rest) = rest
            .split_at_checked(stored as usize)
            .ok_or(ReadError::Truncated)?;
        self.rest = rest;
        Ok(Record {
            time_ns: u64::from(self.u32(header, 0)) * 1_000_000_000 + fraction,
            original_len,
            frame,
        })
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Record<'a>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let record = self.record();
        if record.is_err() {
            self.rest = &[];
        }
        Some(record)
    }
}

fn u32_le(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(crate::array(bytes, offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new()).unwrap();
        for (time_ns, frame) in frames {
            writer.write(*time_ns, frame).unwrap();
        }
        writer.into_inner()
    }

    #[test]
    fn the_bytes_of_a_small_file() {
        let bytes = written(&[(3_000_000_007, vec![0xaa, 0xbb])]);
        let mut expected = vec![
            0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0,
        ];
        expected.extend_from_slice(&[3, 0, 0, 0, 7, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0xaa, 0xbb]);
        assert_eq!(bytes, expected);
    }

    #[test]
    fn microseconds_and_the_other_order_are_read() {
        let mut file = Vec::new();
        for word in [MAGIC_MICROSECONDS, 0x0002_0004, 0, 0, 65_535, 1] {
            file.extend_from_slice(&word.to_be_bytes());
        }
        for word in [5u32, 6, 1, 9] {
            file.extend_from_slice(&word.to_be_bytes());
        }
        file.push(0x42);
        let reader = Reader::new(&file).unwrap();
        assert_eq!(reader.link_type(), LINK_TYPE_ETHERNET);
        let records: Vec<_> = reader.collect();
        let record = Record {
            time_ns: 5_000_006_000,
            original_len: 9,
            frame: &[0x42],
        };
        assert_eq!(records, [Ok(record)]);
    }

    #[test]
    fn long_frames_are_cut_and_late_times_refused() {
        let bytes = written(&[(0, vec![1; SNAP_LEN as usize + 5])]);
        let record = Reader::new(&bytes).unwrap().next().unwrap().unwrap();
        assert_eq!(record.frame.len(), SNAP_LEN as usize);
        assert_eq!(record.original_len, SNAP_LEN + 5);
        let mut writer = Writer::new(Vec::new()).unwrap();
        assert!(writer.write(1_000_000_000 << 32, &[]).is_err());
    }

    proptest! {
        #[test]
        fn reading_gives_what_was_written(
            frames in proptest::collection::vec((0u64..1_000_000_000 << 32, proptest::collection::vec(any::<u8>(), 0..80)), 0..8)
        ) {
            let bytes = written(&frames);
            let read: Vec<(u64, Vec<u8>)> = Reader::new(&bytes).unwrap()
                .map(|r| r.map(|r| (r.time_ns, r.frame.to_vec())).unwrap()).collect();
            prop_assert_eq!(read, frames);
        }

        #[test]
        fn cut_and_broken_files_end_in_one_error_at_most(
            frames in proptest::collection::vec((0u64..1 << 60, proptest::collection::vec(any::<u8>(), 0..40)), 1..5),
            cut: prop::sample::Index, at: prop::sample::Index, value: u8
        ) {
            let mut bytes = written(&frames);
            let at = at.index(bytes.len());
            bytes[at] = value;
            bytes.truncate(cut.index(bytes.len() + 1));
            if let Ok(reader) = Reader::new(&bytes) {
                let read: Vec<_> = reader.collect();
                prop_assert!(read.iter().filter(|r| r.is_err()).count() <= 1);
                prop_assert!(read.iter().rev().skip(1).all(|r| r.is_ok()));
            }
        }
    }
}
