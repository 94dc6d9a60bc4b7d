//! Shorternet: the application's own program (`python/holdfast/apps/shorternet/shorternet.p4`) and its hand-written twin.
//!
//! An edge with 10,000 contexts in each direction. Half of the packets are UDP over IPv4 of uniformly chosen flows, which leave as
//! Shorternet frames with a context; the other half are such frames, which leave as IPv4 again. `size_bytes` is that of the packet of
//! IPv4. The program knows IPv6, TCP and packets without context as well; the hand-written version knows IPv4 and UDP with contexts alone.

mod handwritten;

use crate::contents::{Match, Target};
use crate::random::Random;
use crate::router::next_hops;
use crate::source;
use crate::structures::routes::{NextHop, Prefix};
use crate::traffic::{drawn, internet_checksum, write_ethernet, write_ipv4};
use crate::workload::Workload;
use engine::{Packet, Switch};
use handwritten::Edge;
use std::rc::Rc;

const PROGRAM: &str = "python/holdfast/apps/shorternet/shorternet.p4";

const UDP: u8 = 17;

/// The first port with a host; ports with lower numbers have Shorternet links.
const FIRST_HOST_PORT: u16 = 32;

/// The station number of this edge; `STATIONS` is the number of others.
const OWN_STATION: u8 = 200;
const STATIONS: u8 = 16;

/// The protocol number of a Shorternet frame that carries an IPv4 packet shortened by a context.
const PROTOCOL_CONTEXT_IPV4: u8 = 253;
const PROFILE_UDP: u8 = 1;

/// A context: the header fields that it stands for, and the edge with which it is shared.
#[derive(Clone, Copy)]
pub struct Context {
    source: u32,
    destination: u32,
    source_port: u16,
    destination_port: u16,
    /// The station number of the edge at the other end.
    station: u8,
    id: u16,
}

/// Where the hosts of a prefix are.
#[derive(Clone, Copy)]
pub enum Place {
    /// At a port of this edge.
    Here(NextHop),
    /// Behind the edge with this station number.
    Behind(u8),
}

/// The table contents of the P4 program and the hand-written version.
struct Configuration {
    /// The contexts by which packets are shortened; `incoming` has those by which they are restored.
    outgoing: Vec<Context>,
    incoming: Vec<Context>,
    hosts: Vec<(Prefix, Place)>,
}

/// Returns the port of this edge that leads to the edge with this station number.
fn port_of(station: u8) -> u16 {
    u16::from(station) % FIRST_HOST_PORT
}

/// Returns the address of the /24 network with this number, whose hosts are behind the other edge (`behind`) or at
/// this one.
fn network(behind: bool, number: u32) -> u32 {
    (if behind { 0x0a80_0000 } else { 0x0a00_0000 }) | number << 8
}

const NETWORKS: u32 = 256;

impl Configuration {
    fn new(count: usize) -> Configuration {
        let hops: Vec<NextHop> = (next_hops().into_iter())
            .map(|hop| NextHop {
                port: FIRST_HOST_PORT + hop.port % FIRST_HOST_PORT,
                ..hop
            })
            .collect();
        let station = |number: u32| 1 + (number % u32::from(STATIONS)) as u8;
        let prefix = |address| Prefix { address, len: 24 };
        let hosts = (0..NETWORKS).flat_map(|number| {
            let here = Place::Here(hops[number as usize % hops.len()]);
            [
                (prefix(network(false, number)), here),
                (
                    prefix(network(true, number)),
                    Place::Behind(station(number)),
                ),
            ]
        });
        let context = |i: usize, outgoing: bool| {
            let (here, there) = (i as u32 % NETWORKS, (i as u32 * 7) % NETWORKS);
            let host = 1 + i as u32 / NETWORKS % 250;
            let inside = network(false, here) | host;
            let outside = network(true, there) | host;
            Context {
                source: if outgoing { inside } else { outside },
                destination: if outgoing { outside } else { inside },
                source_port: 10_000 + i as u16,
                destination_port: 20_000 + i as u16,
                station: station(there),
                id: i as u16,
            }
        };
        Configuration {
            outgoing: (0..count).map(|i| context(i, true)).collect(),
            incoming: (0..count).map(|i| context(i, false)).collect(),
            hosts: hosts.collect(),
        }
    }

    fn fill(&self, switch: &mut Switch) -> Result<(), String> {
        let own = Target::new(switch, "stations", "receive")?;
        own.insert(switch, &[Match::Exact(OWN_STATION.into())], 0, &[])?;
        let edges = Target::new(switch, "edges", "towards")?;
        for station in 1..=STATIONS {
            let at = [Match::Exact(station.into())];
            let args = [port_of(station).into(), OWN_STATION.into()];
            edges.insert(switch, &at, 0, &args)?;
        }
        let here = Target::new(switch, "ipv4_hosts", "deliver")?;
        let behind = Target::new(switch, "ipv4_hosts", "send")?;
        for (prefix, place) in &self.hosts {
            let at = [Match::Lpm(prefix.address.into(), prefix.len)];
            match place {
                Place::Here(hop) => {
                    let args = [hop.port.into(), hop.source.into(), hop.destination.into()];
                    here.insert(switch, &at, 0, &args)?;
                }
                Place::Behind(station) => behind.insert(switch, &at, 0, &[(*station).into()])?,
            }
        }
        let flows = Target::new(switch, "ipv4_flows", "shorten")?;
        for context in &self.outgoing {
            let matches = context.fields().map(Match::Exact);
            flows.insert(switch, &matches, 0, &[context.id.into()])?;
        }
        let contexts = Target::new(switch, "ipv4_contexts", "restore_ipv4")?;
        for context in &self.incoming {
            let matches = [
                context.station.into(),
                context.id.into(),
                PROFILE_UDP.into(),
            ]
            .map(Match::Exact);
            contexts.insert(switch, &matches, 0, &context.fields())?;
        }
        Ok(())
    }

    fn by_hand(&self) -> Edge {
        let mut edge = Edge::new(OWN_STATION);
        for station in 1..=STATIONS {
            edge.add_station(station, port_of(station).into());
        }
        for (prefix, place) in &self.hosts {
            edge.add_hosts(*prefix, *place);
        }
        for context in &self.outgoing {
            edge.add_outgoing(*context);
        }
        for context in &self.incoming {
            edge.add_incoming(*context);
        }
        edge
    }
}

impl Context {
    /// Returns the fields of the context in the order of the program's tables: traffic class, flags, TTL, protocol,
    /// addresses, ports. The first four are the same for all packets.
    fn fields(&self) -> [u128; 8] {
        [
            0,
            2,
            64,
            UDP.into(),
            self.source.into(),
            self.destination.into(),
            self.source_port.into(),
            self.destination_port.into(),
        ]
    }
}

/// Makes the workload of an edge with `count` contexts in each direction. Fails if the program does not compile or an
/// entry is refused.
pub fn edge(count: usize) -> Result<Workload, String> {
    let configuration = Rc::new(Configuration::new(count));
    let ports = format!("0 .. {}", FIRST_HOST_PORT - 1);
    let mut switch = source::switch(PROGRAM, &[("SHORT_PORTS", ports)])?;
    configuration.fill(&mut switch)?;
    let handwritten = Box::new(configuration.by_hand());
    let mut from_hosts = false;
    Ok(Workload {
        switch,
        handwritten,
        traffic: drawn(19, move |size, random, buffer| {
            from_hosts = !from_hosts;
            packet(&configuration, from_hosts, size, random, buffer)
        }),
    })
}

/// The number of bytes of the Ethernet, IPv4 and UDP headers.
const PLAIN_BYTES: usize = 42;
const SHORT_BYTES: usize = 13;

/// Writes a packet of a flow with a context, from a host or in a frame from another edge, into the buffer; returns the
/// port at which it arrives.
fn packet(
    configuration: &Configuration,
    from_hosts: bool,
    size: usize,
    random: &mut Random,
    buffer: &mut Packet,
) -> u32 {
    let contexts = match from_hosts {
        true => &configuration.outgoing,
        false => &configuration.incoming,
    };
    let context = contexts[random.below(contexts.len())];
    let draws = random.next_u32();
    let (identification, checksum) = ((draws >> 16) as u16, draws as u16);
    let mut header = [0; PLAIN_BYTES];
    write_ethernet(&mut header, 0x0200_0000_00ff, 0x0600_0000_0001, 0x0800);
    write_ipv4(
        &mut header[14..],
        size - 14,
        UDP,
        context.source,
        context.destination,
    );
    // With another identification the checksum is another one.
    header[18..20].copy_from_slice(&identification.to_be_bytes());
    header[24..26].fill(0);
    let sum = internet_checksum(&header[14..34]);
    header[24..26].copy_from_slice(&sum.to_be_bytes());
    header[34..36].copy_from_slice(&context.source_port.to_be_bytes());
    header[36..38].copy_from_slice(&context.destination_port.to_be_bytes());
    header[38..40].copy_from_slice(&((size - 34) as u16).to_be_bytes());
    header[40..42].copy_from_slice(&checksum.to_be_bytes());
    if from_hosts {
        buffer.refill(&header, size);
        return FIRST_HOST_PORT.into();
    }
    let rest = size - PLAIN_BYTES;
    let length = if SHORT_BYTES + rest < 60 { rest + 1 } else { 0 };
    let mut short = [0; SHORT_BYTES];
    short[..4].copy_from_slice(&[OWN_STATION, context.station, PROTOCOL_CONTEXT_IPV4, 60]);
    short[4..6].copy_from_slice(&context.id.to_be_bytes());
    short[6] = PROFILE_UDP << 6 | length as u8;
    short[7..9].copy_from_slice(&handwritten::check(&header[14..38]).to_be_bytes());
    short[9..11].copy_from_slice(&identification.to_be_bytes());
    short[11..13].copy_from_slice(&checksum.to_be_bytes());
    buffer.refill(&short, SHORT_BYTES + rest);
    port_of(context.station).into()
}
