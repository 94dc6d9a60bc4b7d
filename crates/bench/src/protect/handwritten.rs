//! The hand-written node of the protection network: tunnel ingress, tunnel egress and router. It does not handle IPv4 options.

use super::acceptance::{Copy, Judge};
use super::{Acceptance, Flow, PROTECTION, TunnelCopy, UDP};
use crate::structures::count::Count;
use crate::structures::hash::HashTable;
use crate::structures::ipv4::{
    addresses, decrement_ttl, double_word, is_intact, word, write_checksum,
};
use crate::structures::routes::Routes;
use crate::structures::routes::{NextHop, Prefix};
use crate::structures::tuples::Tuples;
use crate::workload::Handwritten;
use engine::{Output, Packet, Time};

const TCP: u8 = 6;

const PORTS: usize = 512;

/// The bytes that a tunnel adds: the outer IPv4 header and the protection header.
const OVERHEAD: u16 = 28;

/// The output port of a copy, and the headers in front of it.
struct Way {
    port: u32,
    addresses: [u8; 12],
    tunnel_end: [u8; 4],
}

/// The state of a connection at its beginning.
struct Begin {
    ways: [Way; 2],
    last_sent: u32,
    protected: Count,
    flow: Count,
    too_long: u64,
}

/// The hand-written node.
pub struct ProtectNode {
    tunnel_begin: [u8; 4],
    mtu: u16,
    flows: Tuples<2>,
    begins: Vec<Begin>,
    endpoints: HashTable<1>,
    cids: HashTable<1>,
    judge: Judge,
    now_us: u64,
    routes: Routes,
    /// True at the index of each port that leads to a node of the network.
    domain_ports: [bool; PORTS],
    refused: Count,
    malformed: u64,
    expired: u64,
    unknown_connection: u64,
    spare: Vec<Packet>,
}

/// Makes the key of a flow as two words: the addresses, then the protocol and the ports.
fn flow_key(source: u32, destination: u32, protocol: u8, ports: u32) -> [u64; 2] {
    [
        u64::from(source) << 32 | u64::from(destination),
        u64::from(protocol) << 32 | u64::from(ports),
    ]
}

impl ProtectNode {
    /// Makes a node without connections or routes. Packets in tunnels may arrive only at `domain_ports`.
    pub fn new(
        tunnel_begin: u32,
        mtu: u16,
        acceptance: Acceptance,
        domain_ports: &[u32],
    ) -> ProtectNode {
        let mut at = [false; PORTS];
        for &port in domain_ports {
            at[port as usize] = true;
        }
        ProtectNode {
            domain_ports: at,
            refused: Count::default(),
            tunnel_begin: tunnel_begin.to_be_bytes(),
            mtu,
            flows: Tuples::default(),
            begins: Vec::new(),
            endpoints: HashTable::default(),
            cids: HashTable::default(),
            judge: Judge::new(acceptance),
            now_us: 0,
            routes: Routes::default(),
            malformed: 0,
            expired: 0,
            unknown_connection: 0,
            spare: Vec::new(),
        }
    }

    /// Adds a protected connection that begins at this node, with the flow that it carries.
    pub fn protect(&mut self, flow: Flow, copies: [TunnelCopy; 2]) {
        let (protocol, port) = flow.port.map_or((0, 0), |port| (UDP, port));
        let value = flow_key(flow.source, flow.destination, protocol, port.into());
        let mask = match flow.port {
            Some(_) => flow_key(u32::MAX, u32::MAX, u8::MAX, 0xffff),
            None => flow_key(u32::MAX, u32::MAX, 0, 0),
        };
        self.flows.insert(value, mask, 1000);
        self.begins.push(Begin {
            ways: copies.map(|copy| Way {
                port: copy.hop.port.into(),
                addresses: addresses(copy.hop.destination, copy.hop.source),
                tunnel_end: copy.tunnel_end.to_be_bytes(),
            }),
            last_sent: 0,
            protected: Count::default(),
            flow: Count::default(),
            too_long: 0,
        });
    }

    /// Adds a protected connection that ends at this node, at these two tunnel addresses.
    pub fn end_connection(&mut self, endpoints: [u32; 2]) {
        for (path, address) in endpoints.into_iter().enumerate() {
            self.endpoints.insert([address.into()], path as u32);
        }
        let number = self.judge.add_connection();
        self.cids.insert([number.into()], number);
    }

    /// Adds a route from a prefix to a next hop.
    pub fn route(&mut self, prefix: Prefix, hop: NextHop) {
        self.routes.insert(prefix, hop);
    }

    fn receive(&mut self, port: u32, mut packet: Packet, out: &mut Vec<Output>) {
        let Some(tunnel) = tunnel_of(&packet) else {
            self.malformed += 1;
            return;
        };
        if !tunnel {
            return self.send(packet, out);
        }
        if !self.domain_ports[port as usize] {
            self.refused.add(packet.len());
            return;
        }
        let bytes = packet.stored();
        let Some(inner) = bytes.get(42..).filter(|_| bytes[41] == 4) else {
            self.malformed += 1;
            return;
        };
        if !is_well_formed(inner) {
            self.malformed += 1;
            return;
        }
        let destination = double_word(bytes, 30);
        let Some(path) = self.endpoints.get(&[destination.into()]) else {
            return self.forward(packet, out);
        };
        if self.accepts(&packet, path) {
            let mut ethernet = [0; 14];
            ethernet.copy_from_slice(&packet.stored()[..14]);
            packet.replace_front(42, &ethernet);
            self.send(packet, out);
        }
    }

    /// Returns true if a packet from a tunnel is the first copy with its sequence number; counts the result.
    fn accepts(&mut self, packet: &Packet, path: u32) -> bool {
        let cid = double_word(packet.stored(), 33) & 0xff_ffff;
        let Some(connection) = self.cids.get(&[cid.into()]) else {
            self.unknown_connection += 1;
            return false;
        };
        let copy = Copy {
            sequence_number: double_word(packet.stored(), 37),
            path: path as usize,
            bytes: packet.len(),
            now_us: self.now_us,
        };
        self.judge.passes(connection as usize, copy)
    }

    /// Handles a packet that is not in a tunnel to this node: sends copies through two tunnels if its flow is
    /// protected, otherwise forwards it.
    fn send(&mut self, packet: Packet, out: &mut Vec<Output>) {
        let header = packet.stored();
        if header[22] <= 1 {
            self.expired += 1;
            return;
        }
        let has_ports = word(header, 20) & 0x1fff == 0 && matches!(header[23], TCP | UDP);
        let ports = if has_ports {
            double_word(header, 34)
        } else {
            0
        };
        let (source, destination) = (double_word(header, 26), double_word(header, 30));
        let key = flow_key(source, destination, header[23], ports);
        match self.flows.lookup(&key) {
            Some(number) => self.duplicate(number as usize, packet, out),
            None => self.forward(packet, out),
        }
    }

    /// Forwards a packet by its outermost destination address. Counts and drops it if its TTL is used up or there is
    /// no route.
    fn forward(&mut self, mut packet: Packet, out: &mut Vec<Output>) {
        let destination = double_word(packet.stored(), 30);
        if packet.stored()[22] <= 1 {
            self.expired += 1;
            return;
        }
        if let Some(route) = self.routes.lookup(destination) {
            route.count.add(packet.len());
            let port = route.port;
            let bytes = packet.stored_mut();
            bytes[..12].copy_from_slice(&route.addresses);
            decrement_ttl(&mut bytes[14..]);
            out.push(Output::new(port, packet));
        }
    }

    fn duplicate(&mut self, number: usize, mut packet: Packet, out: &mut Vec<Output>) {
        let begin = &mut self.begins[number];
        begin.flow.add(packet.len());
        let total_len = word(packet.stored(), 16);
        if total_len > self.mtu.saturating_sub(OVERHEAD) {
            begin.too_long += 1;
            return;
        }
        begin.last_sent = begin.last_sent.wrapping_add(1);
        begin.protected.add(packet.len());
        let inner = packet.stored_mut();
        decrement_ttl(&mut inner[14..]);
        let mut front = [0; 42];
        front[12..14].copy_from_slice(&[8, 0]);
        front[14..16].copy_from_slice(&[0x45, inner[15]]);
        front[16..18].copy_from_slice(&total_len.wrapping_add(OVERHEAD).to_be_bytes());
        front[18..20].copy_from_slice(&(begin.last_sent as u16).to_be_bytes());
        front[20..24].copy_from_slice(&[0x40, 0, 64, PROTECTION]);
        front[26..30].copy_from_slice(&self.tunnel_begin);
        front[33..37].copy_from_slice(&(number as u32).to_be_bytes());
        front[37..41].copy_from_slice(&begin.last_sent.to_be_bytes());
        front[41] = 4;
        let mut front_of = |way: &Way| {
            front[..12].copy_from_slice(&way.addresses);
            front[24..26].fill(0);
            front[30..34].copy_from_slice(&way.tunnel_end);
            write_checksum(&mut front[14..34]);
            front
        };
        let [first, second] = &begin.ways;
        let memory = self.spare.pop().unwrap_or_default();
        let copy = packet.with_front(14, &front_of(first), memory);
        packet.replace_front(14, &front_of(second));
        for (way, packet) in [(first, copy), (second, packet)] {
            let port = way.port;
            out.push(Output::new(port, packet));
        }
    }
}

/// Returns true for an intact IPv4 header without options that is followed by ports if the protocol has them.
#[inline]
fn is_well_formed(header: &[u8]) -> bool {
    if header.len() < 20 || header[0] != 0x45 || !is_intact(header) {
        return false;
    }
    let has_ports = word(header, 6) & 0x1fff == 0 && matches!(header[9], TCP | UDP);
    !has_ports || header.len() >= 24
}

/// Returns true if a packet is in a tunnel, false if it is another IPv4 packet; `None` if the node does not handle it
/// and drops it.
#[inline]
fn tunnel_of(packet: &Packet) -> Option<bool> {
    let bytes = packet.stored();
    if bytes.len() < 34 || bytes[12..14] != [8, 0] || bytes[14] != 0x45 {
        return None;
    }
    let is_fragment = word(bytes, 20) & 0x3fff != 0;
    match !is_fragment && bytes[23] == PROTECTION {
        true => (bytes.len() >= 42 && is_intact(&bytes[14..])).then_some(true),
        false => is_well_formed(&bytes[14..]).then_some(false),
    }
}

impl Handwritten for ProtectNode {
    fn set_now_ps(&mut self, now_ps: Time) {
        self.now_us = now_ps.us();
    }

    fn receive_burst(&mut self, burst: &mut Vec<(u32, Packet)>, out: &mut Vec<Output>) {
        for (port, packet) in burst.drain(..) {
            self.receive(port, packet, out);
        }
    }

    fn reuse(&mut self, packet: Packet) {
        if self.spare.len() < 512 {
            self.spare.push(packet);
        }
    }
}
