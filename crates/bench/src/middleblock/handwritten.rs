//! The hand-written data centre switch: tries per VRF, arrays where numbers are dense, tuple space for the ACL.

use super::{AclAction, AclMatch, NextHop, Route};
use crate::structures::count::Count;
use crate::structures::ipv4::{addresses, decrement_ttl, double_word, is_intact, word};
use crate::structures::trie::Trie;
use crate::structures::tuples::Tuples;
use crate::workload::Handwritten;
use engine::{Output, Packet};

const TCP: u8 = 6;
const UDP: u8 = 17;

#[derive(Clone, Copy, Default)]
struct Interface {
    port: u32,
    address: u64,
}

/// The hand-written switch.
pub struct Middleblock {
    router_address: [u8; 6],
    /// The VRF of each port.
    vrfs: Vec<u16>,
    vrf_counts: Vec<Count>,
    /// The IPv4 routes of each VRF.
    ipv4: Vec<Trie>,
    ipv6: Vec<Trie>,
    /// For each next hop, its output port and Ethernet addresses, which the P4 program finds through neighbour and
    /// interface.
    nexthops: Vec<(u32, [u8; 12])>,
    interfaces: Vec<Interface>,
    acl: Tuples<4>,
    acl_actions: Vec<AclAction>,
    acl_counts: Vec<Count>,
    mirrored: Vec<Count>,
}

/// The header fields that IPv4 and IPv6 have in common.
struct Fields {
    is_ipv4: bool,
    src_ipv4: u32,
    /// The destination address; an IPv4 address is in the first 32 of the 128 bits.
    destination: u128,
    protocol: u8,
    dscp: u8,
    ttl: u8,
    src_port: u16,
    dst_port: u16,
}

fn acl_key(
    is_ipv4: u8,
    [src_ipv4, dst_ipv4]: [u32; 2],
    dst_ipv6: u64,
    [protocol, dscp]: [u8; 2],
    [src_port, dst_port]: [u16; 2],
) -> [u64; 4] {
    [
        u64::from(src_ipv4) << 32 | u64::from(dst_ipv4),
        dst_ipv6,
        u64::from(src_port) << 16 | u64::from(dst_port),
        u64::from(is_ipv4) << 16 | u64::from(protocol) << 8 | u64::from(dscp),
    ]
}

impl Fields {
    #[inline]
    fn parse(bytes: &[u8]) -> Option<Fields> {
        let header = bytes.first_chunk::<34>()?;
        let mut fields = match header[12..15] {
            [8, 0, 0x45] => Fields {
                is_ipv4: true,
                src_ipv4: double_word(header, 26),
                destination: u128::from(double_word(header, 30)) << 96,
                protocol: header[23],
                dscp: header[15] >> 2,
                ttl: header[22],
                src_port: 0,
                dst_port: 0,
            },
            [0x86, 0xdd, 0x60..0x70] => {
                let header = bytes.first_chunk::<54>()?;
                let address: [u8; 16] = *header[38..].first_chunk()?;
                Fields {
                    is_ipv4: false,
                    src_ipv4: 0,
                    destination: u128::from_be_bytes(address),
                    protocol: header[20],
                    dscp: (word(header, 14) >> 6) as u8 & 0x3f,
                    ttl: header[21],
                    src_port: 0,
                    dst_port: 0,
                }
            }
            _ => return None,
        };
        if fields.is_ipv4 && !is_intact(&header[14..]) {
            return None;
        }
        let has_ports = matches!(fields.protocol, TCP | UDP)
            && (!fields.is_ipv4 || word(header, 20) & 0x1fff == 0);
        if has_ports {
            let at = if fields.is_ipv4 { 34 } else { 54 };
            let ports = bytes.get(at..at + 4)?;
            (fields.src_port, fields.dst_port) = (word(ports, 0), word(ports, 2));
        }
        Some(fields)
    }

    #[inline]
    fn acl_key(&self) -> [u64; 4] {
        let (dst_ipv4, dst_ipv6) = match self.is_ipv4 {
            true => ((self.destination >> 96) as u32, 0),
            false => (0, (self.destination >> 64) as u64),
        };
        acl_key(
            self.is_ipv4.into(),
            [self.src_ipv4, dst_ipv4],
            dst_ipv6,
            [self.protocol, self.dscp],
            [self.src_port, self.dst_port],
        )
    }
}

impl Middleblock {
    /// Makes a switch without routes whose own Ethernet address is `router_address`.
    pub fn new(router_address: u64) -> Middleblock {
        let [_, _, address @ ..] = router_address.to_be_bytes();
        Middleblock {
            router_address: address,
            vrfs: Vec::new(),
            vrf_counts: Vec::new(),
            ipv4: Vec::new(),
            ipv6: Vec::new(),
            nexthops: Vec::new(),
            interfaces: Vec::new(),
            acl: Tuples::default(),
            acl_actions: Vec::new(),
            acl_counts: Vec::new(),
            mirrored: vec![Count::default(); 256],
        }
    }

    /// Assigns a port to a VRF. Ports must be assigned in ascending order.
    pub fn set_vrf(&mut self, port: u16, vrf: u16) {
        self.vrfs.resize(usize::from(port) + 1, vrf);
        self.vrf_counts
            .resize(usize::from(port) + 1, Count::default());
    }

    /// Adds a router interface at a port, with its Ethernet address.
    pub fn add_interface(&mut self, rif: u16, port: u32, address: u64) {
        self.interfaces
            .resize(usize::from(rif) + 1, Interface::default());
        self.interfaces[usize::from(rif)] = Interface { port, address };
    }

    /// Adds a next hop at an existing router interface.
    pub fn add_next_hop(&mut self, hop: NextHop) {
        let interface = self.interfaces[usize::from(hop.rif)];
        let rewritten = addresses(hop.dst_addr, interface.address);
        self.nexthops.push((interface.port, rewritten));
    }

    /// Builds the IPv4 and IPv6 tries of the VRFs from 0 to `vrfs`, both included, from the routes.
    pub fn set_routes(&mut self, vrfs: u16, routes: &[Route]) {
        let trie = |is_ipv4: bool, vrf: u16| {
            let of_vrf = routes
                .iter()
                .filter(|r| r.is_ipv4 == is_ipv4 && r.vrf == vrf);
            let prefixes: Vec<_> = of_vrf
                .map(|r| (r.address, r.len, r.nexthop.into()))
                .collect();
            Trie::new(&prefixes)
        };
        self.ipv4 = (0..=vrfs).map(|vrf| trie(true, vrf)).collect();
        self.ipv6 = (0..=vrfs).map(|vrf| trie(false, vrf)).collect();
    }

    /// Adds an ACL entry with its action and priority.
    pub fn add_acl(&mut self, m: AclMatch, action: AclAction, priority: i32) {
        let value = acl_key(
            m.is_ipv4.unwrap_or(false).into(),
            [m.src_ipv4.0, m.dst_ipv4.0],
            m.dst_ipv6.0,
            [m.protocol.0, m.dscp.0],
            [m.src_port.0, m.dst_port.0],
        );
        let mask = acl_key(
            m.is_ipv4.is_some().into(),
            [m.src_ipv4.1, m.dst_ipv4.1],
            m.dst_ipv6.1,
            [m.protocol.1, m.dscp.1],
            [m.src_port.1, m.dst_port.1],
        );
        self.acl.insert(value, mask, priority);
        self.acl_actions.push(action);
        self.acl_counts.push(Count::default());
    }

    /// Routes a packet and rewrites its headers, in place. Returns the port at which it leaves, `None` if it is
    /// dropped.
    #[inline]
    fn switch(&mut self, port: u32, packet: &mut [u8]) -> Option<u32> {
        let fields = Fields::parse(packet)?;
        let port = port as usize;
        let vrf = usize::from(self.vrfs.get(port).copied().unwrap_or(0));
        if let Some(count) = self.vrf_counts.get_mut(port) {
            count.add(packet.len());
        }
        let nexthop = match packet[..6] == self.router_address && fields.ttl > 1 {
            true if fields.is_ipv4 => self.ipv4[vrf].lookup(fields.destination),
            true => self.ipv6[vrf].lookup(fields.destination),
            false => None,
        };
        if let Some(number) = self.acl.lookup(&fields.acl_key()) {
            let number = number as usize;
            self.acl_counts[number].add(packet.len());
            match self.acl_actions[number] {
                AclAction::Forward => {}
                AclAction::Drop => return None,
                AclAction::Mirror(session) => self.mirrored[usize::from(session)].add(packet.len()),
            }
        }
        let (port, rewritten) = &self.nexthops[nexthop? as usize];
        packet[..12].copy_from_slice(rewritten);
        match fields.is_ipv4 {
            true => decrement_ttl(&mut packet[14..]),
            false => packet[21] -= 1,
        }
        Some(*port)
    }
}

impl Handwritten for Middleblock {
    fn receive_burst(&mut self, burst: &mut Vec<(u32, Packet)>, out: &mut Vec<Output>) {
        for (port, mut packet) in burst.drain(..) {
            if let Some(port) = self.switch(port, packet.stored_mut()) {
                out.push(Output::new(port, packet));
            }
        }
    }
}
