//! The hand-written router: DIR-24-8 and an incremental checksum.

use super::{NextHop, Prefix};
use crate::structures::dir24::Dir24;
use crate::structures::ipv4::{decrement_ttl, is_intact};
use crate::workload::Handwritten;
use engine::{Output, Packet};

/// The Ethernet addresses of a next hop as on the wire, and its port.
struct Adjacency {
    addresses: [u8; 12],
    port: u32,
}

/// The hand-written router.
pub struct Router {
    routes: Dir24,
    adjacencies: Vec<Adjacency>,
}

impl Router {
    /// Makes a router with these next hops and no routes.
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

    /// Adds a route from a prefix to the next hop with the number `next_hop`.
    pub fn insert(&mut self, prefix: Prefix, next_hop: u16) {
        self.routes.insert(prefix, next_hop);
    }

    /// Routes an IPv4 packet and rewrites its headers, in place. Returns the port at which it leaves, `None` if it is
    /// dropped.
    #[inline]
    fn route(&self, packet: &mut [u8]) -> Option<u32> {
        let header = packet.first_chunk_mut::<34>()?;
        let hop = self.routes.lookup(destination(header)?)?;
        let adjacency = &self.adjacencies[usize::from(hop)];
        header[..12].copy_from_slice(&adjacency.addresses);
        decrement_ttl(&mut header[14..]);
        Some(adjacency.port)
    }
}

/// Returns the IPv4 destination address of an untagged Ethernet frame, of which `header` contains the Ethernet and the
/// IPv4 header; `None` if it is not IPv4, has IPv4 options or a wrong header checksum, or its TTL is below 2.
#[inline]
fn destination(header: &[u8; 34]) -> Option<u32> {
    let well_formed = header[12] == 8
        && header[13] == 0
        && header[14] == 0x45
        && header[22] > 1
        && is_intact(&header[14..]);
    well_formed.then(|| u32::from_be_bytes([header[30], header[31], header[32], header[33]]))
}

impl Handwritten for Router {
    fn receive_burst(&mut self, burst: &mut Vec<(u32, Packet)>, out: &mut Vec<Output>) {
        for (_, mut packet) in burst.drain(..) {
            if let Some(port) = self.route(packet.stored_mut()) {
                out.push(Output::new(port, packet));
            }
        }
    }
}
