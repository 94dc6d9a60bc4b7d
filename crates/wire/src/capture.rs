//! Capture files of either format, [`pcap`] or [`pcapng`], which the first bytes determine.

use crate::pcap::{self, ReadError};
use crate::pcapng::{self, Packet};

/// Returns true if a file whose first bytes (at least four) are these is a pcap or pcapng file.
pub fn is_capture(bytes: &[u8]) -> bool {
    pcap::is_pcap(bytes) || pcapng::is_pcapng(bytes)
}

/// Reads a file held in memory: an iterator of packets that ends after the first error.
#[derive(Clone, Debug)]
pub enum Reader<'a> {
    /// The older format.
    Pcap(pcap::Reader<'a>),
    /// The newer one.
    Pcapng(pcapng::Reader<'a>),
}

impl<'a> Reader<'a> {
    /// Makes a reader for the packets of a capture file, whose first bytes tell whether it is pcap or pcapng. Fails
    /// with `NotPcap` if it is neither, and with `Truncated` if a pcap file's header is incomplete.
    pub fn new(bytes: &'a [u8]) -> Result<Reader<'a>, ReadError> {
        if pcapng::is_pcapng(bytes) {
            pcapng::Reader::new(bytes).map(Reader::Pcapng)
        } else {
            pcap::Reader::new(bytes).map(Reader::Pcap)
        }
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Packet<'a>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Reader::Pcapng(reader) => reader.next(),
            Reader::Pcap(reader) => {
                let link_type = reader.link_type();
                let record = reader.next()?;
                Some(record.map(|record| Packet { link_type, record }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_are_told_apart() {
        let mut writer = pcap::Writer::new(Vec::new()).unwrap();
        writer.write(5, &[1, 2]).unwrap();
        let old = writer.into_inner();
        let section = [
            0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 28, 0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 0, 0, 28,
        ];
        assert!(is_capture(&old[..4]) && is_capture(&section[..4]));
        let packets: Vec<_> = Reader::new(&old).unwrap().map(Result::unwrap).collect();
        assert_eq!((packets[0].link_type, packets[0].record.time_ns), (1, 5));
        assert_eq!(Reader::new(&section).unwrap().count(), 0);
        for neither in [&[][..], &[0; 24], b"#include <core.p4>\nmore text"] {
            assert!(!is_capture(neither));
            assert_eq!(Reader::new(neither).unwrap_err(), ReadError::NotPcap);
        }
        // As old as it looks, and cut.
        assert_eq!(Reader::new(&old[..20]).unwrap_err(), ReadError::Truncated);
    }
}
