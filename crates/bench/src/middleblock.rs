//! A data centre switch: `benches/middleblock.p4` and its hand-written twin.
//!
//! 7,000 IPv4 and 3,000 IPv6 routes in 16 VRFs, 1,024 next hops at 64 router interfaces, 500 ternary ACL entries under 12 masks (a
//! tenth drop, a fifth mirror). Three packets in four are IPv4; destinations are uniform over the routes of the packet's VRF, and
//! about one packet in three meets an ACL entry.

mod handwritten;

use crate::contents::{Match, Target};
use crate::random::Random;
use crate::router::prefixes;
use crate::source;
use crate::traffic::{drawn, write_ethernet, write_ipv4};
use crate::workload::Workload;
use engine::{Packet, Switch};
use handwritten::Middleblock;
use std::collections::BTreeSet;
use std::rc::Rc;

const VRFS: usize = 16;
const PORTS: usize = 64;
const ROUTER_ADDRESS: u64 = 0x0200_0000_00fe;

/// A route; IPv4 addresses are in the first 32 of the 128 bits.
#[derive(Clone, Copy)]
pub struct Route {
    is_ipv4: bool,
    vrf: u16,
    address: u128,
    len: u32,
    nexthop: u16,
}

/// A next hop. Its router interface and its neighbour have its own number, modulo how many of them there are.
#[derive(Clone, Copy)]
pub struct NextHop {
    rif: u16,
    neighbor: u16,
    dst_addr: u64,
}

/// The action of an ACL entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AclAction {
    /// The packet is counted and forwarded.
    Forward,
    /// The packet is dropped.
    Drop,
    /// The packet is marked to be mirrored to this session.
    Mirror(u8),
}

/// The value and the mask of a field.
type Masked<T> = (T, T);

/// The match of an ACL entry.
#[derive(Clone, Copy, Default)]
pub struct AclMatch {
    is_ipv4: Option<bool>,
    src_ipv4: Masked<u32>,
    dst_ipv4: Masked<u32>,
    dst_ipv6: Masked<u64>,
    protocol: Masked<u8>,
    dscp: Masked<u8>,
    src_port: Masked<u16>,
    dst_port: Masked<u16>,
}

/// The table contents of the P4 program and the hand-written version.
struct Configuration {
    routes: Vec<Route>,
    nexthops: Vec<NextHop>,
    acl: Vec<(AclMatch, AclAction)>,
}

/// Returns the Ethernet address of a router interface, whose port has the same number.
fn interface_address(rif: u16) -> u64 {
    0x0200_0001_0000 | u64::from(rif)
}

impl Configuration {
    fn new(scale: usize) -> Configuration {
        let mut random = Random::new(11);
        let nexthops = (0..1024u16).map(|i| NextHop {
            rif: i % PORTS as u16,
            neighbor: i,
            dst_addr: 0x0600_0001_0000 | u64::from(i),
        });
        let ipv4 = prefixes(7_000 / scale).into_iter().map(|prefix| Route {
            is_ipv4: true,
            vrf: 0,
            address: u128::from(prefix.address) << 96,
            len: prefix.len,
            nexthop: 0,
        });
        let ipv6 = ipv6_prefixes(3_000 / scale);
        let mut routes: Vec<Route> = ipv4.chain(ipv6).collect();
        for (i, route) in routes.iter_mut().enumerate() {
            route.vrf = 1 + (i % VRFS) as u16;
            route.nexthop = random.below(1024) as u16;
        }
        let acl = acl(500 / scale, &routes, &mut random);
        Configuration {
            routes,
            nexthops: nexthops.collect(),
            acl,
        }
    }

    fn fill(&self, switch: &mut Switch) -> Result<(), String> {
        let admit = Target::new(switch, "l3_admit", "admit")?;
        let address = Match::Ternary(ROUTER_ADDRESS.into(), 0xffff_ffff_ffff);
        admit.insert(switch, &[address, Match::Optional(None)], 1, &[])?;
        let pre_ingress = Target::new(switch, "acl_pre_ingress", "set_vrf")?;
        for port in 0..PORTS as u128 {
            let matches = [
                Match::Ternary(port, 0x1ff),
                Match::Ternary(0, 0),
                Match::Ternary(0, 0),
            ];
            let vrf = 1 + port % VRFS as u128;
            pre_ingress.insert(switch, &matches, 1, &[vrf])?;
        }
        let ipv4 = Target::new(switch, "ipv4_routes", "set_nexthop_id")?;
        let ipv6 = Target::new(switch, "ipv6_routes", "set_nexthop_id")?;
        for route in &self.routes {
            let (target, address) = match route.is_ipv4 {
                true => (&ipv4, route.address >> 96),
                false => (&ipv6, route.address),
            };
            let matches = [
                Match::Exact(route.vrf.into()),
                Match::Lpm(address, route.len),
            ];
            target.insert(switch, &matches, 0, &[route.nexthop.into()])?;
        }
        self.fill_next_hops(switch)?;
        self.fill_acl(switch)
    }

    fn fill_next_hops(&self, switch: &mut Switch) -> Result<(), String> {
        let nexthops = Target::new(switch, "nexthops", "set_nexthop")?;
        let neighbors = Target::new(switch, "neighbors", "set_dst_addr")?;
        let interfaces = Target::new(switch, "router_interfaces", "set_port_and_src_addr")?;
        for (i, hop) in self.nexthops.iter().enumerate() {
            let (rif, neighbor) = (u128::from(hop.rif), u128::from(hop.neighbor));
            nexthops.insert(switch, &[Match::Exact(i as u128)], 0, &[rif, neighbor])?;
            let key = [Match::Exact(rif), Match::Exact(neighbor)];
            neighbors.insert(switch, &key, 0, &[hop.dst_addr.into()])?;
        }
        for rif in 0..PORTS as u16 {
            let args = [rif.into(), interface_address(rif).into()];
            interfaces.insert(switch, &[Match::Exact(rif.into())], 0, &args)?;
        }
        Ok(())
    }

    fn fill_acl(&self, switch: &mut Switch) -> Result<(), String> {
        let forward = Target::new(switch, "acl_ingress", "IngressAcl.forward")
            .or_else(|_| Target::new(switch, "acl_ingress", "forward"))?;
        let drop = Target::new(switch, "acl_ingress", "drop")?;
        let mirror = Target::new(switch, "acl_ingress", "mirror")?;
        let count = self.acl.len() as i32;
        for ((m, action), rank) in self.acl.iter().zip(0..) {
            let ternary = |value: u128, mask: u128| Match::Ternary(value, mask);
            let matches = [
                Match::Optional(m.is_ipv4.map(u128::from)),
                ternary(m.src_ipv4.0.into(), m.src_ipv4.1.into()),
                ternary(m.dst_ipv4.0.into(), m.dst_ipv4.1.into()),
                ternary(m.dst_ipv6.0.into(), m.dst_ipv6.1.into()),
                ternary(m.protocol.0.into(), m.protocol.1.into()),
                ternary(m.dscp.0.into(), m.dscp.1.into()),
                ternary(m.src_port.0.into(), m.src_port.1.into()),
                ternary(m.dst_port.0.into(), m.dst_port.1.into()),
            ];
            let (target, args) = match action {
                AclAction::Forward => (&forward, vec![]),
                AclAction::Drop => (&drop, vec![]),
                AclAction::Mirror(session) => (&mirror, vec![u128::from(*session)]),
            };
            target.insert(switch, &matches, count - rank, &args)?;
        }
        Ok(())
    }

    fn by_hand(&self) -> Middleblock {
        let mut switch = Middleblock::new(ROUTER_ADDRESS);
        for port in 0..PORTS as u16 {
            switch.set_vrf(port, 1 + port % VRFS as u16);
            switch.add_interface(port, port.into(), interface_address(port));
        }
        for hop in &self.nexthops {
            switch.add_next_hop(*hop);
        }
        switch.set_routes(VRFS as u16, &self.routes);
        for (number, (acl_match, action)) in self.acl.iter().enumerate() {
            switch.add_acl(*acl_match, *action, (self.acl.len() - number) as i32);
        }
        switch
    }
}

/// Draws random IPv6 global unicast prefixes with the usual lengths.
fn ipv6_prefixes(count: usize) -> impl Iterator<Item = Route> {
    let mut random = Random::new(12);
    let mut seen = BTreeSet::new();
    while seen.len() < count {
        let len = [32, 36, 40, 44, 48, 48, 48, 48, 56, 64][random.below(10)];
        // 2000::/12 to 2c00::/12, of which a few /20s are in use.
        let high = 0x2000 | (random.below(4) as u64) << 10 | random.below(8) as u64;
        let low = random.next_u64() >> 16;
        let address = u128::from(high << 48 | low) << 64;
        seen.insert((address & (u128::MAX << (128 - len)), len));
    }
    seen.into_iter().map(|(address, len)| Route {
        is_ipv4: false,
        vrf: 0,
        address,
        len,
        nexthop: 0,
    })
}

/// Draws random ACL entries with twelve different masks. Their addresses are in routes, so that packets match them.
fn acl(count: usize, routes: &[Route], random: &mut Random) -> Vec<(AclMatch, AclAction)> {
    let of_version = |ipv4: bool| -> Vec<Route> {
        (routes.iter().copied())
            .filter(|r| r.is_ipv4 == ipv4)
            .collect()
    };
    let (ipv4, ipv6) = (of_version(true), of_version(false));
    let mut seen = BTreeSet::new();
    let mut entries = Vec::new();
    while entries.len() < count {
        let kind = random.below(12);
        let prefix = |len: u32| u32::MAX << (32 - len);
        let destination = (ipv4[random.below(ipv4.len())].address >> 96) as u32;
        let destination6 = (ipv6[random.below(ipv6.len())].address >> 64) as u64;
        let port = 1 + random.below(2000) as u16;
        let mut m = AclMatch::default();
        match kind {
            0..=4 => {
                let mask = prefix([32, 24, 24, 20, 16][kind]);
                m.is_ipv4 = Some(true);
                m.dst_ipv4 = (destination & mask, mask);
                m.protocol = [(0, 0), (17, 0xff), (6, 0xff)][kind % 3];
            }
            5 | 6 => {
                let mask = prefix([24, 16][kind - 5]);
                m.is_ipv4 = Some(true);
                m.src_ipv4 = (random.next_u32() & mask, mask);
                m.dst_port = (port, 0xffff);
            }
            7 | 8 => {
                let mask = u64::MAX << [16, 32][kind - 7];
                m.is_ipv4 = Some(false);
                m.dst_ipv6 = (destination6 & mask, mask);
            }
            9 => {
                m.protocol = (17, 0xff);
                m.dst_port = (port, 0xffff);
            }
            10 => {
                m.protocol = (6, 0xff);
                m.src_port = (port, 0xffff);
            }
            _ => {
                m.dscp = (port as u8 & 0x3f, 0x3f);
                m.dst_port = (port, 0xffff);
                m.protocol = (17, 0xff);
            }
        }
        let action = match random.below(10) {
            0 => AclAction::Drop,
            1 | 2 => AclAction::Mirror(1 + (port % 8) as u8),
            _ => AclAction::Forward,
        };
        if seen.insert((
            m.src_ipv4, m.dst_ipv4, m.dst_ipv6, m.protocol, m.dscp, m.src_port, m.dst_port,
        )) {
            entries.push((m, action));
        }
    }
    entries
}

/// Makes the workload of the data centre switch, with the table sizes of the module's description divided by `scale`.
/// Fails if the program does not compile or an entry is refused.
pub fn workload(scale: usize) -> Result<Workload, String> {
    let configuration = Configuration::new(scale);
    let mut switch = source::switch("benches/middleblock.p4", &[])?;
    configuration.fill(&mut switch)?;
    let handwritten = Box::new(configuration.by_hand());
    let by_version = [false, true].map(|ipv4| {
        let routes = configuration.routes.iter().copied();
        Vec::from_iter(routes.filter(|route| route.is_ipv4 == ipv4))
    });
    let by_version = Rc::new(by_version);
    Ok(Workload {
        switch,
        handwritten,
        traffic: drawn(13, move |size, random, buffer| {
            packet(&by_version, size, random, buffer)
        }),
    })
}

/// Writes an IPv4 or IPv6 packet of `size` bytes into the buffer; returns the port at which it arrives.
fn packet(
    by_version: &[Vec<Route>; 2],
    size: usize,
    random: &mut Random,
    buffer: &mut Packet,
) -> u32 {
    let is_ipv4 = random.below(4) != 0;
    let routes = &by_version[usize::from(is_ipv4)];
    let route = routes[random.below(routes.len())];
    let mut header = [0; 62];
    let draw = random.next_u64();
    let ports = [1 + (draw % 2000) as u16, 1 + (draw >> 16) as u16 % 2000];
    let protocol = if draw >> 32 & 3 == 0 { 6 } else { 17 };
    let hosts = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
    let address = route.address | hosts & !(u128::MAX << (128 - route.len));
    let at = if is_ipv4 {
        write_ethernet(&mut header, ROUTER_ADDRESS, 0x0600_0000_0001, 0x0800);
        let source = (draw >> 24) as u32;
        write_ipv4(
            &mut header[14..],
            size - 14,
            protocol,
            source,
            (address >> 96) as u32,
        );
        34
    } else {
        write_ethernet(&mut header, ROUTER_ADDRESS, 0x0600_0000_0001, 0x86dd);
        header[14] = 0x60;
        header[18..20].copy_from_slice(&((size - 54) as u16).to_be_bytes());
        header[20] = protocol;
        header[21] = 64;
        header[22..38].copy_from_slice(&(hosts >> 3).to_be_bytes());
        header[38..54].copy_from_slice(&address.to_be_bytes());
        54
    };
    header[at..at + 2].copy_from_slice(&ports[0].to_be_bytes());
    header[at + 2..at + 4].copy_from_slice(&ports[1].to_be_bytes());
    buffer.refill(&header[..at + 8], size);
    // A port of the route's VRF.
    u32::from(route.vrf - 1) + VRFS as u32 * (draw >> 34 & 3) as u32
}
