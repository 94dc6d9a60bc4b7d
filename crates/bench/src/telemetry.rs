//! In-band Network Telemetry v2.1: the application's own program (`python/holdfast/apps/telemetry/telemetry.p4`) and its hand-written twin.
//!
//! *Transit* is the program with `INT_TRANSIT_ONLY`: packets of UDP with INT-MD headers and the metadata of two nodes before; each gets
//! this node's. *Source* is the complete program: packets of uniformly chosen flows of the watchlist get INT-MD headers and this node's
//! metadata. The instructions are bits 0 to 7, 44 bytes per node. There are as many routes as flows, 1,000. No node reports.
//! `size_bytes` is that of the packet without INT. The program knows IPv6, options and INT-MX as well, the hand-written version IPv4 alone.

mod handwritten;

use crate::contents::{Match, Target, lead_to_domain};
use crate::random::Random;
use crate::router::{next_hops, prefixes};
use crate::source;
use crate::structures::routes::{NextHop, Prefix};
use crate::traffic::{drawn, internet_checksum, write_ethernet, write_ipv4};
use crate::workload::Workload;
use engine::control::{Entity, Operation, Update};
use engine::{Packet, Switch};
use handwritten::TelemetryNode;
use ir::{ActionCall, Bits};
use std::rc::Rc;

const PROGRAM: &str = "python/holdfast/apps/telemetry/telemetry.p4";

const UDP: u8 = 17;

/// The DSCP that by default marks packets with INT.
const INDICATOR: u8 = 0x17;

/// The instruction bitmap: bits 0 to 7 of the INT specification.
const INSTRUCTIONS: u16 = 0xff00;
/// The number of 32-bit words of a node's metadata.
const HOP_WORDS: usize = 11;
const HOPS: u8 = 8;
const DOMAIN_ID: u16 = 0x1234;
const NODE_ID: u32 = 77;
const MTU: u32 = 9216;
const PORTS: u32 = 64;

/// The number of nodes that packets have passed before they reach a transit node.
const HOPS_BEFORE: usize = 2;

/// The role of a node in the INT domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It puts INT headers into packets.
    Source,
    /// It adds its metadata to packets with INT headers.
    Transit,
}

/// A flow of the watchlist: the addresses, and the UDP destination port if only one port is watched.
#[derive(Clone, Copy)]
pub struct Watched {
    source: u32,
    destination: u32,
    port: Option<u16>,
}

/// The table contents of the P4 program and the hand-written version.
struct Configuration {
    role: Role,
    routes: Vec<(Prefix, NextHop)>,
    watched: Vec<Watched>,
}

/// Returns the number of the logical interface of a port.
fn interface(port: u32) -> u32 {
    0x1_0000 + port
}

impl Configuration {
    fn new(count: usize, role: Role) -> Configuration {
        let hops = next_hops();
        let prefixes = prefixes(count);
        let watch = |(i, prefix): (usize, &Prefix)| Watched {
            source: 0xc612_0000 | i as u32,
            destination: prefix.address,
            port: (i % 2 == 1).then_some(4000 + i as u16),
        };
        Configuration {
            role,
            watched: prefixes.iter().enumerate().map(watch).collect(),
            routes: (prefixes.into_iter().enumerate())
                .map(|(i, prefix)| (prefix, hops[i % hops.len()]))
                .collect(),
        }
    }

    fn fill(&self, switch: &mut Switch) -> Result<(), String> {
        let routes = Target::new(switch, "ipv4_lpm", "forward")?;
        for (prefix, hop) in &self.routes {
            let matches = [Match::Lpm(prefix.address.into(), prefix.len)];
            let args = [hop.port.into(), hop.source.into(), hop.destination.into()];
            routes.insert(switch, &matches, 0, &args)?;
        }
        let table = |name: &str, action: &str, switch: &Switch| Target::new(switch, name, action);
        let settings = table("port_settings", "configure", switch)?;
        let arriving = table("ingress_interfaces", "ingress_interface", switch)?;
        let leaving = table("egress_interfaces", "egress_interface", switch)?;
        for port in 0..PORTS {
            let at = [Match::Exact(port.into())];
            let all = [MTU.into(), 0, 0, 0];
            let args = match self.role {
                Role::Source => &all[..],
                Role::Transit => &all[..1],
            };
            settings.insert(switch, &at, 0, args)?;
            arriving.insert(switch, &at, 0, &[interface(port).into()])?;
            leaving.insert(switch, &at, 0, &[interface(port).into()])?;
        }
        set_default(switch, "TelemetryEgress.node", "identify", NODE_ID)?;
        if self.role == Role::Source {
            let watchlist = table("watchlist", "watch", switch)?;
            for (i, flow) in self.watched.iter().enumerate() {
                let masked = |value: Option<u128>, mask| match value {
                    Some(value) => Match::Ternary(value, mask),
                    None => Match::Ternary(0, 0),
                };
                let matches = [
                    Match::Ternary(0, 0),
                    Match::Ternary(flow.source.into(), u32::MAX.into()),
                    Match::Ternary(flow.destination.into(), u32::MAX.into()),
                    masked(flow.port.map(|_| UDP.into()), 0xff),
                    Match::Ternary(0, 0),
                    masked(flow.port.map(u128::from), 0xffff),
                ];
                let (instructions, words) = (INSTRUCTIONS.into(), HOP_WORDS as u128);
                let everything = 0x1_0000;
                let args = [
                    1,
                    0,
                    instructions,
                    words,
                    HOPS.into(),
                    DOMAIN_ID.into(),
                    0,
                    everything,
                    0,
                ];
                watchlist.insert(switch, &matches, 1 + i as i32, &args)?;
            }
        }
        Ok(())
    }

    fn by_hand(&self) -> TelemetryNode {
        let mut node = TelemetryNode::new(self.role, NODE_ID);
        for (prefix, hop) in &self.routes {
            node.route(*prefix, *hop);
        }
        for port in 0..PORTS {
            node.configure(port, MTU, interface(port));
        }
        for flow in &self.watched {
            node.watch(*flow);
        }
        node
    }
}

/// Sets the default action of a table, an action with one parameter of 32 bits, to the argument `arg`. Fails if there
/// is no such table or action, or the switch refuses the change.
fn set_default(switch: &mut Switch, table: &str, action: &str, arg: u32) -> Result<(), String> {
    let target = Target::new(switch, table, action)?;
    let args = vec![Bits::from_u64(32, arg.into())];
    let entity = Entity::DefaultAction {
        table: target.table(),
        action: Some(ActionCall {
            action: target.action(),
            args,
        }),
        note: None,
    };
    let operation = Operation::Modify;
    switch
        .write(Update { operation, entity })
        .map_err(|e| e.to_string())
}

/// Makes the workload of an INT node in the given role, with `count` routes and `count` watched flows. Fails if the program does not
/// compile or its tables refuse the entries.
pub fn node(count: usize, role: Role) -> Result<Workload, String> {
    let configuration = Rc::new(Configuration::new(count, role));
    let defines = match role {
        Role::Source => &[][..],
        Role::Transit => &[("INT_TRANSIT_ONLY", "1".to_string())][..],
    };
    let mut switch = source::switch(PROGRAM, defines)?;
    if let Role::Transit = role {
        lead_to_domain(&mut switch, &Vec::from_iter(0..=PORTS))?;
    }
    configuration.fill(&mut switch)?;
    let handwritten = Box::new(configuration.by_hand());
    Ok(Workload {
        switch,
        handwritten,
        traffic: drawn(17, move |size, random, buffer| {
            packet(&configuration, size, random, buffer)
        }),
    })
}

/// The number of bytes of the Ethernet, IPv4 and UDP headers.
const PLAIN_BYTES: usize = 42;
/// The number of bytes of the INT shim and the INT-MD header.
const INT_BYTES: usize = 16;
const STACK_BYTES: usize = HOPS_BEFORE * HOP_WORDS * 4;

/// Writes a packet of a watched flow, with INT headers at a transit node, into the buffer; returns the port at which
/// it arrives.
fn packet(
    configuration: &Configuration,
    size: usize,
    random: &mut Random,
    buffer: &mut Packet,
) -> u32 {
    let watched = &configuration.watched;
    let flow = watched[random.below(watched.len())];
    let port = random.below(PORTS as usize) as u32;
    let mut header = [0; PLAIN_BYTES + INT_BYTES + STACK_BYTES];
    let with_int = configuration.role == Role::Transit;
    let more = if with_int { INT_BYTES + STACK_BYTES } else { 0 };
    let size = size + more;
    write_ethernet(&mut header, 0x0200_0000_00ff, 0x0600_0000_0001, 0x0800);
    write_ipv4(
        &mut header[14..],
        size - 14,
        UDP,
        flow.source,
        flow.destination,
    );
    header[34..36].copy_from_slice(&5000u16.to_be_bytes());
    header[36..38].copy_from_slice(&flow.port.unwrap_or(9).to_be_bytes());
    header[38..40].copy_from_slice(&((size - 34) as u16).to_be_bytes());
    // Any value, as the payload decides; some have none.
    let checksum = (random.next_u32() & 0xffff) as u16;
    let checksum = if checksum & 7 == 0 { 0 } else { checksum };
    header[40..42].copy_from_slice(&checksum.to_be_bytes());
    if with_int {
        header[15] = INDICATOR << 2;
        header[24..26].fill(0);
        let checksum = internet_checksum(&header[14..34]);
        header[24..26].copy_from_slice(&checksum.to_be_bytes());
        let words = 3 + HOPS_BEFORE * HOP_WORDS;
        header[42..46].copy_from_slice(&[0x10, words as u8, 0, 0]);
        let left = HOPS - HOPS_BEFORE as u8;
        header[46..50].copy_from_slice(&[0x20, 0, HOP_WORDS as u8, left]);
        header[50..52].copy_from_slice(&INSTRUCTIONS.to_be_bytes());
        header[52..54].copy_from_slice(&DOMAIN_ID.to_be_bytes());
        for (i, byte) in header[58..].iter_mut().enumerate() {
            *byte = i as u8;
        }
    }
    buffer.refill(&header[..PLAIN_BYTES + more], size);
    port
}
