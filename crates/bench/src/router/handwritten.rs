//! The router by hand: DIR-24-8 (Gupta, Lin and McKeown 1998), as software routers have it, and RFC 1624's incremental checksum.

use super::{NextHop, Prefix};
use crate::traffic::internet_checksum;
use crate::workload::Handwritten;
use engine::{Output, Packet};

/// A next hop's number plus one, 0 for none; or with this bit the number of a block for the last eight bits.
const LONGER: u16 = 1 << 15;

/// IPv4 addresses to numbers below 2^15.
pub struct Dir24 {
    /// By the first 24 bits.
    first: Box<[u16]>,
    /// Blocks of 256, by the last eight bits.
    blocks: Vec<[u16; 256]>,
    /// Length of the prefix that each place of `first` has its value from; while building.
    first_len: Box<[u8]>,
    block_len: Vec<[u8; 256]>,
}

impl Dir24 {
    /// Without any prefix.
    pub fn new() -> Dir24 {
        Dir24 {
            first: vec![0; 1 << 24].into(),
            blocks: Vec::new(),
            first_len: vec![0; 1 << 24].into(),
            block_len: Vec::new(),
        }
    }

    /// Adds a prefix. `value` is below 2^15 - 1.
    pub fn insert(&mut self, prefix: Prefix, value: u16) {
        let (value, len) = (value + 1, prefix.len as u8);
        let at = (prefix.address >> 8) as usize;
        if prefix.len > 24 {
            let block = self.block(at);
            let low = (prefix.address & 0xff) as usize;
            self.fill_block(block, low..low + (1 << (32 - prefix.len)), value, len);
            return;
        }
        for at in at..at + (1 << (24 - prefix.len)) {
            if self.first[at] & LONGER != 0 {
                let block = (self.first[at] & !LONGER) as usize;
                self.fill_block(block, 0..256, value, len);
            } else if self.first_len[at] <= len {
                (self.first[at], self.first_len[at]) = (value, len);
            }
        }
    }

    fn fill_block(&mut self, block: usize, places: std::ops::Range<usize>, value: u16, len: u8) {
        for i in places {
            if self.block_len[block][i] <= len {
                (self.blocks[block][i], self.block_len[block][i]) = (value, len);
            }
        }
    }

    fn block(&mut self, at: usize) -> usize {
        let first = self.first[at];
        if first & LONGER != 0 {
            return (first & !LONGER) as usize;
        }
        self.blocks.push([first; 256]);
        self.block_len.push([self.first_len[at]; 256]);
        let block = self.blocks.len() - 1;
        self.first[at] = LONGER | block as u16;
        block
    }

    /// The value of the longest prefix.
    #[inline]
    pub fn lookup(&self, address: u32) -> Option<u16> {
        let mut found = self.first[(address >> 8) as usize];
        if found & LONGER != 0 {
            found = self.blocks[(found & !LONGER) as usize][(address & 0xff) as usize];
        }
        found.checked_sub(1)
    }
}

/// The Ethernet addresses of a next hop as they are on the wire, and its port.
struct Adjacency {
    addresses: [u8; 12],
    port: u32,
}

/// The router.
pub struct Router {
    routes: Dir24,
    adjacencies: Vec<Adjacency>,
}

impl Router {
    /// Without routes.
    pub fn new(next_hops: Vec<NextHop>) -> Router {
        let adjacency = |hop: NextHop| {
            let mut addresses = [0; 12];
            addresses[..6].copy_from_slice(&hop.destination.to_be_bytes()[2..]);
            addresses[6..].copy_from_slice(&hop.source.to_be_bytes()[2..]);
            Adjacency {
                addresses,
                port: hop.port.into(),
            }
        };
        Router {
            routes: Dir24::new(),
            adjacencies: next_hops.into_iter().map(adjacency).collect(),
        }
    }

    /// Adds a route to a next hop.
    pub fn insert(&mut self, prefix: Prefix, next_hop: u16) {
        self.routes.insert(prefix, next_hop);
    }

    /// Rewrites the packet; the port it leaves at.
    #[inline]
    fn route(&self, packet: &mut [u8]) -> Option<u32> {
        let header = packet.first_chunk_mut::<34>()?;
        let hop = self.routes.lookup(destination(header)?)?;
        let adjacency = &self.adjacencies[usize::from(hop)];
        header[..12].copy_from_slice(&adjacency.addresses);
        decrement_ttl(header);
        Some(adjacency.port)
    }
}

/// The destination of a well-formed packet that has a hop left.
#[inline]
fn destination(header: &[u8; 34]) -> Option<u32> {
    let well_formed = header[12] == 8
        && header[13] == 0
        && header[14] == 0x45
        && header[22] > 1
        && internet_checksum(&header[14..]) == 0;
    well_formed.then(|| u32::from_be_bytes([header[30], header[31], header[32], header[33]]))
}

/// Decrements TTL and updates the checksum (RFC 1624, equation 3).
#[inline]
fn decrement_ttl(header: &mut [u8; 34]) {
    header[22] -= 1;
    let checksum = u16::from_be_bytes([header[24], header[25]]);
    // The word with the TTL in its high byte loses 0x0100, so ~m + m' is 0xfeff.
    let sum = u32::from(!checksum) + 0xfeff;
    let folded = (sum & 0xffff) + (sum >> 16);
    header[24..26].copy_from_slice(&(!(folded as u16)).to_be_bytes());
}

impl Handwritten for Router {
    fn receive_burst(&mut self, burst: &mut Vec<(u32, Packet)>, out: &mut Vec<Output>) {
        for (_, mut packet) in burst.drain(..) {
            if let Some(port) = self.route(packet.bytes_mut()) {
                out.push(Output { port, packet });
            }
        }
    }
}
