//! Ethernet switching between 64 thousand known addresses at 64 ports: `benches/l2_switch.p4` and its hand-written twin.
//!
//! Sources and destinations are uniform over the addresses, each pair at two different ports. The switch does not learn or flood.

mod handwritten;

use crate::contents::{Match, Target};
use crate::random::Random;
use crate::source;
use crate::traffic::{drawn, write_ethernet};
use crate::workload::Workload;
use engine::Packet;
use engine::control::{Entity, MulticastGroup, Operation, Replica, Update};
use handwritten::LearningSwitch;
use std::collections::BTreeSet;
use std::rc::Rc;

const PORTS: usize = 64;

/// The MAC address of a station, and its port.
type Station = (u64, u16);

fn stations(count: usize) -> Vec<Station> {
    let mut random = Random::new(4);
    let mut addresses = BTreeSet::new();
    while addresses.len() < count {
        // Unicast, from a few vendors' blocks.
        let vendor = [0x00_1b21, 0x3c_fdfe, 0x52_5400, 0xb8_59f6][random.below(4)];
        addresses.insert(vendor << 24 | random.next_u64() >> 40);
    }
    (addresses.into_iter().enumerate())
        .map(|(i, address)| (address, (i % PORTS) as u16))
        .collect()
}

/// Makes the workload of a learning switch that knows `count` addresses. Fails if the program does not compile or an
/// entry is refused.
pub fn workload(count: usize) -> Result<Workload, String> {
    let stations: Rc<[Station]> = stations(count).into();
    let mut switch = source::switch("benches/l2_switch.p4", &[("ADDRESSES", count.to_string())])?;
    let sources = Target::new(&switch, "sources", "known")?;
    let destinations = Target::new(&switch, "destinations", "forward")?;
    let mut handwritten = LearningSwitch::new(count, PORTS as u32);
    for &(address, port) in stations.iter() {
        for target in [&sources, &destinations] {
            let matches = [Match::Exact(address.into())];
            target.insert(&mut switch, &matches, 0, &[port.into()])?;
        }
        handwritten.insert(address, port);
    }
    let group = MulticastGroup {
        group_id: 1,
        replicas: (0..PORTS as u32)
            .map(|port| Replica { port, rid: 0 })
            .collect(),
    };
    let everywhere = Update {
        operation: Operation::Insert,
        entity: Entity::MulticastGroup(group),
    };
    switch.write(everywhere).map_err(|e| e.to_string())?;
    Ok(Workload {
        switch,
        handwritten: Box::new(handwritten),
        traffic: drawn(5, move |size, random, buffer| {
            packet(&stations, size, random, buffer)
        }),
    })
}

/// Writes a frame of `size` bytes between two random stations into the buffer; returns the port at which it arrives.
fn packet(stations: &[Station], size: usize, random: &mut Random, buffer: &mut Packet) -> u32 {
    let count = stations.len();
    let from = random.below(count);
    let mut to = random.below(count);
    if (to + count - from).is_multiple_of(PORTS) {
        // The next station is at the next port.
        to = (to + 1) % count;
    }
    let (source, port) = stations[from];
    let (destination, _) = stations[to];
    let mut header = [0; 14];
    write_ethernet(&mut header, destination, source, 0x0800);
    buffer.refill(&header, size);
    port.into()
}
