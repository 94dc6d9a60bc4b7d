//! The hand-written node of the BIER domain: BFIR of IPv4 channels and BFR. It ends no tunnels and delivers nothing.

use super::{BFIR_ID, BIER_BYTES, BitString, Channel, ETHERTYPE_BIER, ETHERTYPE_IPV4, Neighbour};
use crate::structures::count::Count;
use crate::structures::hash::HashTable;
use crate::structures::ipv4::{addresses, decrement_ttl, double_word, is_intact, word};
use crate::workload::Handwritten;
use engine::{Output, Packet};

/// The number of bytes that the node parses: Ethernet, the BIER header, and the first header of its payload.
const PARSED: usize = 14 + BIER_BYTES + 20;

const PORTS: usize = 512;

struct Adjacency {
    f_bm: BitString,
    port: u32,
    addresses: [u8; 12],
}

/// The hand-written BIER node.
pub struct BierNode {
    /// True at the index of each port that leads to a node of the network.
    domain_ports: [bool; PORTS],
    refused: Count,
    /// Multicast packets that came from a node of the domain without a BIER header, and were dropped.
    foreign: u64,
    bift_id: u32,
    reachable: BitString,
    adjacencies: Vec<Adjacency>,
    /// True if copies are sent in the order of the lowest bits of their BitStrings.
    lowest_first: bool,
    channels: HashTable<1>,
    bit_strings: Vec<BitString>,
    passed: Count,
    malformed: u64,
    wrong_version: u64,
    wrong_bsl: u64,
    unknown_bift: u64,
    unowned_bits: u64,
    expired: u64,
    unknown_channel: u64,
    spare: Vec<Packet>,
}

fn bits_of(bytes: &[u8]) -> BitString {
    let mut bits = [0; 4];
    for (limb, chunk) in bits.iter_mut().zip(bytes.rchunks_exact(8)) {
        *limb = u64::from_be_bytes(std::array::from_fn(|i| chunk[i]));
    }
    bits
}

fn and(a: &BitString, b: &BitString) -> BitString {
    std::array::from_fn(|i| a[i] & b[i])
}

fn without(a: &BitString, b: &BitString) -> BitString {
    std::array::from_fn(|i| a[i] & !b[i])
}

fn lowest(bits: &BitString) -> u32 {
    let zeros = bits.iter().position(|&limb| limb != 0).unwrap_or(4);
    64 * zeros as u32 + bits.get(zeros).map_or(0, |limb| limb.trailing_zeros())
}

impl BierNode {
    /// Makes a BIER node with one forwarding table (BIFT) and no channels. BIER packets may arrive only at
    /// `domain_port`. If `lowest_first` is true, each copy goes to the neighbour of the lowest bit left in the
    /// BitString, else the neighbours are served in their order.
    pub fn new(
        bift_id: u32,
        neighbours: &[Neighbour],
        lowest_first: bool,
        domain_port: u32,
    ) -> BierNode {
        let mut domain_ports = [false; PORTS];
        domain_ports[domain_port as usize] = true;
        let adjacencies: Vec<Adjacency> = (neighbours.iter())
            .map(|neighbour| Adjacency {
                f_bm: neighbour.f_bm,
                port: neighbour.port.into(),
                addresses: addresses(neighbour.destination, neighbour.source),
            })
            .collect();
        let reachable = (adjacencies.iter()).fold([0; 4], |all: BitString, adjacency| {
            std::array::from_fn(|i| all[i] | adjacency.f_bm[i])
        });
        BierNode {
            domain_ports,
            refused: Count::default(),
            foreign: 0,
            bift_id,
            reachable,
            adjacencies,
            lowest_first,
            channels: HashTable::default(),
            bit_strings: Vec::new(),
            passed: Count::default(),
            malformed: 0,
            wrong_version: 0,
            wrong_bsl: 0,
            unknown_bift: 0,
            unowned_bits: 0,
            expired: 0,
            unknown_channel: 0,
            spare: Vec::new(),
        }
    }

    /// Adds a channel whose packets enter the BIER domain at this node.
    pub fn add_channel(&mut self, channel: Channel) {
        let key = u64::from(channel.source) << 32 | u64::from(channel.group);
        self.channels.insert([key], self.bit_strings.len() as u32);
        self.bit_strings.push(channel.bits);
    }

    fn receive(&mut self, port: u32, packet: Packet, out: &mut Vec<Output>) {
        let from_domain = self.domain_ports[port as usize];
        let bytes = packet.stored();
        match bytes.first_chunk::<34>().map(|front| word(front, 12)) {
            Some(ETHERTYPE_BIER) if !from_domain => self.refused.add(packet.len()),
            Some(ETHERTYPE_BIER) if bytes.len() >= PARSED => self.pass(packet, out),
            Some(ETHERTYPE_IPV4) if from_domain => self.foreign += 1,
            Some(ETHERTYPE_IPV4) => self.begin(packet, out),
            _ => self.malformed += 1,
        }
    }

    /// Forwards a BIER packet that came from another node, as a transit router (BFR) does: sends copies to `out`, or
    /// counts and drops an invalid packet.
    fn pass(&mut self, packet: Packet, out: &mut Vec<Output>) {
        let header = &packet.stored()[14..PARSED];
        let (first, second) = (double_word(header, 0), double_word(header, 4));
        if second >> 24 & 0xf != 0 {
            self.wrong_version += 1;
        } else if second >> 20 & 0xf != 3 {
            self.wrong_bsl += 1;
        } else if first >> 12 != self.bift_id {
            self.unknown_bift += 1;
        } else {
            self.passed.add(packet.len());
            let mut bits = bits_of(&header[12..BIER_BYTES]);
            if without(&bits, &self.reachable) != [0; 4] {
                self.unowned_bits += 1;
                bits = and(&bits, &self.reachable);
            }
            if first & 0xff <= 1 {
                self.expired += 1;
                return;
            }
            self.replicate(packet, bits, out);
        }
    }

    /// Adds a BIER header to an IPv4 packet of a channel that enters the domain at this node, as an ingress router
    /// (BFIR) does, and sends copies to `out`. Counts and drops an invalid packet.
    fn begin(&mut self, packet: Packet, out: &mut Vec<Output>) {
        let header = &packet.stored()[14..34];
        if header[0] != 0x45 || !is_intact(header) {
            self.malformed += 1;
            return;
        }
        if header[8] <= 1 {
            self.expired += 1;
            return;
        }
        let (source, group) = (double_word(header, 12), double_word(header, 16));
        let key = u64::from(source) << 32 | u64::from(group);
        let Some(channel) = self.channels.get(&[key]) else {
            self.unknown_channel += 1;
            return;
        };
        // Addresses and protocol, then the fields of IPv6, which are zero, in whole bytes.
        let mut hashed = [0; 9 + HASHED_ZEROS];
        hashed[..8].copy_from_slice(&header[12..20]);
        hashed[8] = header[9];
        let entropy = crc32fast::hash(&hashed) & 0xf_ffff;
        let mut front = [0; 14 + BIER_BYTES];
        front[12..14].copy_from_slice(&ETHERTYPE_BIER.to_be_bytes());
        front[14..18].copy_from_slice(&(self.bift_id << 12 | 1 << 8 | 64).to_be_bytes());
        front[18..22].copy_from_slice(&(3 << 20 | entropy).to_be_bytes());
        let dscp = u16::from(header[1] >> 2);
        front[22..24].copy_from_slice(&(dscp << 6 | 4).to_be_bytes());
        front[24..26].copy_from_slice(&BFIR_ID.to_be_bytes());
        let mut packet = packet;
        decrement_ttl(&mut packet.stored_mut()[14..34]);
        packet.replace_front(14, &front);
        let bits = self.bit_strings[channel as usize];
        self.replicate(packet, bits, out);
    }

    /// Decrements the TTL of the BIER header, and sends a copy, with its own BitString and addresses, to each neighbour towards which any
    /// of `bits` leads; the last copy reuses the packet's memory.
    fn replicate(&mut self, mut packet: Packet, bits: BitString, out: &mut Vec<Output>) {
        packet.stored_mut()[17] -= 1;
        let mut rest = bits;
        let mut next = 0;
        loop {
            let found = if self.lowest_first {
                let bit = lowest(&rest) as usize;
                (self.adjacencies.iter()).position(|a| bit < 256 && super::has_bit(&a.f_bm, bit))
            } else {
                let later = self.adjacencies[next..].iter();
                later
                    .map(|a| and(&rest, &a.f_bm))
                    .position(|bits| bits != [0; 4])
                    .map(|at| next + at)
            };
            let Some(at) = found else {
                return;
            };
            next = at + 1;
            let adjacency = &self.adjacencies[at];
            let masked = and(&rest, &adjacency.f_bm);
            rest = without(&rest, &adjacency.f_bm);
            let is_last = rest == [0; 4];
            let mut copy = if is_last {
                std::mem::take(&mut packet)
            } else {
                let mut copy = self.spare.pop().unwrap_or_default();
                copy.copy_with_rest(packet.stored(), packet.rest());
                copy
            };
            let bytes = copy.stored_mut();
            bytes[..12].copy_from_slice(&adjacency.addresses);
            for (chunk, limb) in bytes[26..58].rchunks_exact_mut(8).zip(masked) {
                chunk.copy_from_slice(&limb.to_be_bytes());
            }
            out.push(Output::new(adjacency.port, copy));
            if is_last {
                return;
            }
        }
    }
}

/// The number of zero bytes in the entropy hash behind the IPv4 fields: they stand for the fields of IPv6, 284 bits.
const HASHED_ZEROS: usize = 36;

impl Handwritten for BierNode {
    fn receive_burst(&mut self, burst: &mut Vec<(u32, Packet)>, out: &mut Vec<Output>) {
        for (port, packet) in burst.drain(..) {
            self.receive(port, packet, out);
        }
    }

    fn reuse(&mut self, packet: Packet) {
        self.spare.push(packet);
    }
}
