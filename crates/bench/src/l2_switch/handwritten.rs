//! The hand-written Ethernet switch: one forwarding database for sources and destinations, with address and port in one word.

use crate::workload::Handwritten;
use engine::{Output, Packet};

const FREE: u64 = u64::MAX;

/// The hand-written learning switch.
pub struct LearningSwitch {
    /// A hash table with open addressing and linear probing, at most half full: each slot has the address in the high
    /// 48 bits and the port in the low 16.
    slots: Box<[u64]>,
    ports: u32,
    /// The unknown source addresses, each with the port at which it was seen, for the control plane.
    unknown: Vec<(u64, u32)>,
}

#[inline]
fn hash(address: u64) -> usize {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

impl LearningSwitch {
    /// Makes a switch with room for `addresses` addresses and with `ports` ports.
    pub fn new(addresses: usize, ports: u32) -> LearningSwitch {
        LearningSwitch {
            slots: vec![FREE; (2 * addresses).next_power_of_two()].into(),
            ports,
            unknown: Vec::new(),
        }
    }

    /// Records that an address is reached at `port`. The address must be new.
    pub fn insert(&mut self, address: u64, port: u16) {
        let mut at = hash(address) & (self.slots.len() - 1);
        while self.slots[at] != FREE {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = address << 16 | u64::from(port);
    }

    #[inline]
    fn port(&self, address: u64) -> Option<u32> {
        let mut at = hash(address) & (self.slots.len() - 1);
        loop {
            let slot = self.slots[at];
            if slot >> 16 == address {
                return Some((slot & 0xffff) as u32);
            }
            if slot == FREE {
                return None;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    fn flood(&self, from: u32, packet: &Packet, out: &mut Vec<Output>) {
        let others = (0..self.ports).filter(|&port| port != from);
        out.extend(others.map(|port| Output::new(port, packet.clone())));
    }
}

#[inline]
fn address(bytes: [u8; 6]) -> u64 {
    let [a, b, c, d, e, f] = bytes;
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

impl Handwritten for LearningSwitch {
    fn receive_burst(&mut self, burst: &mut Vec<(u32, Packet)>, out: &mut Vec<Output>) {
        for (port, packet) in burst.drain(..) {
            let Some(&[a, b, c, d, e, f, g, h, i, j, k, l, ..]) =
                packet.stored().first_chunk::<14>()
            else {
                continue;
            };
            let source = address([g, h, i, j, k, l]);
            if self.port(source) != Some(port) {
                self.unknown.push((source, port));
            }
            match self.port(address([a, b, c, d, e, f])) {
                Some(to) if to == port => {}
                Some(to) => out.push(Output::new(to, packet)),
                None => self.flood(port, &packet, out),
            }
        }
    }
}
