//! IPv4 routing with 1 thousand or 1 million routes: `benches/router.p4`, the same for PSA in `benches/router_psa.p4`, and their
//! hand-written twin.
//!
//! Prefix lengths are mixed as in the Internet's default-free zone of recent years (six in ten are /24, a few are longer), in
//! address space of which about half is in use. Routes share 256 next hops. Destinations are uniform over the routes, and within
//! each over its addresses, so that caches cannot profit from locality.

mod handwritten;

use crate::contents::{Match, Target};
use crate::random::Random;
use crate::source;
use crate::structures::routes::{NextHop, Prefix};
use crate::traffic::{drawn, write_ethernet, write_ipv4};
use crate::workload::Workload;
use engine::Packet;
use handwritten::Router;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Prefix lengths, each with the number of routes in a thousand that have it.
const LENGTHS: [(u32, usize); 20] = [
    (8, 1),
    (9, 1),
    (10, 1),
    (11, 1),
    (12, 1),
    (13, 1),
    (14, 2),
    (15, 2),
    (16, 14),
    (17, 9),
    (18, 15),
    (19, 26),
    (20, 45),
    (21, 53),
    (22, 112),
    (23, 98),
    (24, 606),
    (28, 4),
    (30, 4),
    (32, 4),
];

/// The program for v1model.
pub const V1MODEL: &str = "benches/router.p4";

/// The program for PSA.
pub const PSA: &str = "benches/router_psa.p4";

/// Draws `count` different random prefixes.
pub fn prefixes(count: usize) -> Vec<Prefix> {
    let mut random = Random::new(1);
    // Half of the /16s of 1.0.0.0 to 223.255.255.255 are in use.
    let in_use: Vec<u32> = (0x0100..0xe000u32)
        .filter(|_| random.below(2) == 0)
        .collect();
    let mut seen = BTreeSet::new();
    let mut result = Vec::with_capacity(count);
    while result.len() < count {
        let mut ticket = random.below(1000);
        let (len, _) = *(LENGTHS.iter())
            .find(|(_, share)| {
                let found = ticket < *share;
                ticket = ticket.saturating_sub(*share);
                found
            })
            .unwrap_or(&LENGTHS[16]);
        let address = in_use[random.below(in_use.len())] << 16 | random.next_u32() & 0xffff;
        let prefix = Prefix {
            address: address & (u32::MAX << (32 - len)),
            len,
        };
        if seen.insert(prefix) {
            result.push(prefix);
        }
    }
    result
}

/// Makes 256 next hops, at ports 0 to 63.
pub fn next_hops() -> Vec<NextHop> {
    let mut random = Random::new(2);
    (0..256)
        .map(|i| NextHop {
            port: i % 64,
            source: 0x0200_0000_0000 | u64::from(i % 64),
            destination: 0x0600_0000_0000 | random.next_u64() >> 24,
        })
        .collect()
}

/// Makes the workload of a router, the program in the file `program`, with `count` routes. Fails if the program does
/// not compile or an entry is refused.
pub fn workload(program: &str, count: usize) -> Result<Workload, String> {
    let prefixes: Rc<[Prefix]> = prefixes(count).into();
    let next_hops = next_hops();
    let mut switch = source::switch(program, &[("ROUTES", count.to_string())])?;
    let routes = Target::new(&switch, "routes", "forward")?;
    let mut handwritten = Router::new(next_hops.clone());
    for (i, prefix) in prefixes.iter().enumerate() {
        let hop = i % next_hops.len();
        let NextHop {
            port,
            source,
            destination,
        } = next_hops[hop];
        routes.insert(
            &mut switch,
            &[Match::Lpm(prefix.address.into(), prefix.len)],
            0,
            &[port.into(), source.into(), destination.into()],
        )?;
        handwritten.insert(*prefix, hop as u16);
    }
    Ok(Workload {
        switch,
        handwritten: Box::new(handwritten),
        traffic: drawn(3, move |size, random, buffer| {
            packet(&prefixes, size, random, buffer)
        }),
    })
}

/// Writes a UDP packet of `size` bytes to an address that a route contains into the buffer; returns the port at which
/// it arrives.
fn packet(prefixes: &[Prefix], size: usize, random: &mut Random, buffer: &mut Packet) -> u32 {
    let prefix = prefixes[random.below(prefixes.len())];
    let host = u64::from(random.next_u32()) & ((1 << (32 - prefix.len)) - 1);
    let source = random.next_u32();
    let mut header = [0; 34];
    write_ethernet(&mut header, 0x0200_0000_00ff, 0x0600_0000_0001, 0x0800);
    let destination = prefix.address | host as u32;
    write_ipv4(&mut header[14..], size - 14, 17, source, destination);
    buffer.refill(&header, size);
    source % 64
}
