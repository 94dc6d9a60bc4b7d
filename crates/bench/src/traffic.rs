//! Packets to send: headers from a workload, with a payload of zeros up to the given size.

use crate::random::Random;
use engine::Packet;

/// An endless sequence of packets of one size.
pub trait Traffic {
    /// Writes the next packet into the buffer; returns the port at which it arrives.
    fn next(&mut self, buffer: &mut Packet) -> u32;

    /// Returns a copy of this traffic that begins with its first packet again.
    fn again(&self) -> Box<dyn Traffic>;
}

/// Returns a function that makes random traffic with packets of a given size in bytes. `draw` writes the next packet
/// into a buffer, and returns the port at which it arrives.
pub fn drawn<D>(seed: u64, draw: D) -> Box<dyn Fn(usize) -> Box<dyn Traffic>>
where
    D: FnMut(usize, &mut Random, &mut Packet) -> u32 + Clone + 'static,
{
    Box::new(move |size| {
        Box::new(Drawn {
            seed,
            size,
            random: Random::new(seed),
            first: draw.clone(),
            draw: draw.clone(),
        })
    })
}

struct Drawn<D> {
    seed: u64,
    size: usize,
    random: Random,
    first: D,
    draw: D,
}

impl<D> Traffic for Drawn<D>
where
    D: FnMut(usize, &mut Random, &mut Packet) -> u32 + Clone + 'static,
{
    fn next(&mut self, buffer: &mut Packet) -> u32 {
        (self.draw)(self.size, &mut self.random, buffer)
    }

    fn again(&self) -> Box<dyn Traffic> {
        drawn(self.seed, self.first.clone())(self.size)
    }
}

/// Calculates the Internet checksum (RFC 1071) of bytes that form whole 16-bit words.
pub fn internet_checksum(words: &[u8]) -> u16 {
    let mut sum: u32 = (words.chunks_exact(2))
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Writes an IPv4 header of 20 bytes with the don't-fragment flag, a TTL of 64 and a correct checksum.
pub fn write_ipv4(
    header: &mut [u8],
    total_len: usize,
    protocol: u8,
    source: u32,
    destination: u32,
) {
    let header = &mut header[..20];
    header.fill(0);
    header[0] = 0x45;
    header[2..4].copy_from_slice(&(total_len as u16).to_be_bytes());
    header[6] = 0x40;
    header[8] = 64;
    header[9] = protocol;
    header[12..16].copy_from_slice(&source.to_be_bytes());
    header[16..20].copy_from_slice(&destination.to_be_bytes());
    let checksum = internet_checksum(header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Writes an Ethernet header of 14 bytes.
pub fn write_ethernet(header: &mut [u8], destination: u64, source: u64, ether_type: u16) {
    header[..6].copy_from_slice(&destination.to_be_bytes()[2..]);
    header[6..12].copy_from_slice(&source.to_be_bytes()[2..]);
    header[12..14].copy_from_slice(&ether_type.to_be_bytes());
}
