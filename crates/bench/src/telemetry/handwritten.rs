//! The hand-written INT node: a router that inserts INT-MD headers, or adds its metadata to those that are there. IPv4 without options.

use super::{DOMAIN_ID, HOP_WORDS, HOPS, INDICATOR, INSTRUCTIONS, Role, UDP, Watched};
use crate::structures::ipv4::{double_word, is_intact, word, write_checksum};
use crate::structures::routes::Routes;
use crate::structures::routes::{NextHop, Prefix};
use crate::structures::tuples::Tuples;
use crate::workload::Handwritten;
use engine::{Output, Packet, Time};

const TCP: u8 = 6;

/// The value of metadata that is not known.
const UNKNOWN: u32 = u32::MAX;

/// The number of bytes of the longest metadata of a node: 31 words.
const LONGEST_HOP: usize = 124;

/// The state of a port: its MTU, its logical interface, and the bytes sent in the present and the last interval of
/// 2^14 microseconds.
#[derive(Clone, Copy, Default)]
struct Port {
    mtu: u32,
    interface: u32,
    interval: u32,
    bytes: u32,
    bytes_before: u32,
}

/// The hand-written node.
pub struct TelemetryNode {
    role: Role,
    node_id: u32,
    now_us: u64,
    routes: Routes,
    ports: Vec<Port>,
    watchlist: Tuples<2>,
    watched: Vec<u64>,
    malformed: u64,
    expired: u64,
    sourced: u64,
    not_sourced: u64,
    not_pushed: u64,
    hops_exceeded: u64,
    mtu_exceeded: u64,
}

/// The headers of a packet that are written anew, and what follows them.
struct Headers {
    bytes: [u8; 74 + LONGEST_HOP],
    len: usize,
}

fn flow_key(source: u32, destination: u32, protocol: u8, ports: u32) -> [u64; 2] {
    [
        u64::from(source) << 32 | u64::from(destination),
        u64::from(protocol) << 32 | u64::from(ports),
    ]
}

/// Folds a sum of 16-bit words to 16 bits, as ones' complement sums are (RFC 1071).
#[inline]
fn fold(sum: u64) -> u16 {
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    sum as u16
}

impl TelemetryNode {
    /// Makes a node without routes and without watched flows.
    pub fn new(role: Role, node_id: u32) -> TelemetryNode {
        TelemetryNode {
            role,
            node_id,
            now_us: 0,
            routes: Routes::default(),
            ports: vec![Port::default(); 512],
            watchlist: Tuples::default(),
            watched: Vec::new(),
            malformed: 0,
            expired: 0,
            sourced: 0,
            not_sourced: 0,
            not_pushed: 0,
            hops_exceeded: 0,
            mtu_exceeded: 0,
        }
    }

    /// Adds a route from a prefix to a next hop.
    pub fn route(&mut self, prefix: Prefix, hop: NextHop) {
        self.routes.insert(prefix, hop);
    }

    /// Sets the MTU of a port, in bytes of the IP packet, and the number of its logical interface.
    pub fn configure(&mut self, port: u32, mtu: u32, interface: u32) {
        let at = &mut self.ports[port as usize];
        (at.mtu, at.interface) = (mtu, interface);
    }

    /// Adds a flow to the watchlist, with a higher priority than those added before.
    pub fn watch(&mut self, flow: Watched) {
        let (protocol, port) = flow.port.map_or((0, 0), |port| (UDP, port));
        let value = flow_key(flow.source, flow.destination, protocol, port.into());
        let mask = match flow.port {
            Some(_) => flow_key(u32::MAX, u32::MAX, u8::MAX, 0xffff),
            None => flow_key(u32::MAX, u32::MAX, 0, 0),
        };
        let priority = 1 + self.watched.len() as i32;
        self.watchlist.insert(value, mask, priority);
        self.watched.push(0);
    }

    /// Routes an IPv4 packet, and appends it to `out`. A source inserts INT headers if it watches the packet's flow;
    /// a transit node adds its metadata to existing INT headers. Packets that are malformed, expired or without a
    /// route are counted and dropped.
    fn receive(&mut self, ingress: u32, mut packet: Packet, out: &mut Vec<Output>) {
        let header = packet.stored();
        if header.len() < 34
            || header[12..14] != [8, 0]
            || header[14] != 0x45
            || !is_intact(&header[14..])
        {
            self.malformed += 1;
            return;
        }
        if header[22] <= 1 {
            self.expired += 1;
            return;
        }
        let protocol = header[23];
        let whole = word(header, 20) & 0x3fff == 0;
        let transport = match protocol {
            TCP if whole => 20,
            UDP if whole => 8,
            _ => 0,
        };
        if header.len() < 34 + transport {
            self.malformed += 1;
            return;
        }
        let (source, destination) = (double_word(header, 26), double_word(header, 30));
        let ports = if transport > 0 {
            double_word(header, 34)
        } else {
            0
        };
        let marked = header[15] >> 2 == INDICATOR;
        let watched = match self.role {
            Role::Source => {
                let found = self
                    .watchlist
                    .lookup(&flow_key(source, destination, protocol, ports));
                found.is_some_and(|number| {
                    self.watched[number as usize] += 1;
                    true
                })
            }
            Role::Transit => false,
        };
        let Some(route) = self.routes.lookup(destination) else {
            return;
        };
        let length = packet.len();
        route.count.add(length);
        let port = route.port;
        let header = packet.stored_mut();
        header[..12].copy_from_slice(&route.addresses);
        header[22] -= 1;
        // A sender outside the domain cannot send INT.
        if self.role == Role::Source && marked {
            header[15] &= 3;
        }
        let sent_bytes = match self.role {
            Role::Source => {
                let sent = self.roll(port);
                let before = packet.len();
                match watched && transport > 0 {
                    true => self.insert(ingress, port, transport, sent, &mut packet),
                    false => write_zeroed_checksum(&mut packet.stored_mut()[14..34]),
                }
                length + packet.len() - before
            }
            Role::Transit => {
                let is_int = marked && transport > 0;
                if !is_int || !self.pass(ingress, port, transport, &mut packet) {
                    write_zeroed_checksum(&mut packet.stored_mut()[14..34]);
                }
                0
            }
        };
        if self.role == Role::Source {
            let at = &mut self.ports[port as usize];
            at.bytes = at.bytes.wrapping_add(sent_bytes as u32);
        }
        out.push(Output::new(port, packet));
    }

    /// Begins a new interval of a port, of 2^14 microseconds, if the last one has ended. Returns the number of bytes
    /// that the port sent in the interval just before the present one.
    fn roll(&mut self, port: u32) -> u32 {
        let interval = (self.now_us >> 14) as u32;
        let at = &mut self.ports[port as usize];
        if interval != at.interval {
            at.bytes_before = if interval == at.interval.wrapping_add(1) {
                at.bytes
            } else {
                0
            };
            (at.interval, at.bytes) = (interval, 0);
        }
        at.bytes_before
    }

    /// Inserts INT headers with this node's metadata into a packet.
    fn insert(
        &mut self,
        ingress: u32,
        port: u32,
        transport: usize,
        sent: u32,
        packet: &mut Packet,
    ) {
        let header = packet.stored();
        if u32::from(word(header, 16)) + 16 > self.ports[port as usize].mtu {
            self.not_sourced += 1;
            return write_zeroed_checksum(&mut packet.stored_mut()[14..34]);
        }
        self.sourced += 1;
        let end = 34 + transport;
        let mut headers = Headers {
            bytes: [0; 74 + LONGEST_HOP],
            len: end + 16,
        };
        headers.bytes[..end].copy_from_slice(&header[..end]);
        let dscp = header[15] >> 2;
        headers.bytes[15] = INDICATOR << 2 | header[15] & 3;
        let [high, low] = INSTRUCTIONS.to_be_bytes();
        let [domain_high, domain_low] = DOMAIN_ID.to_be_bytes();
        let int = [
            0x10,
            3,
            0,
            dscp << 2,
            0x20,
            0,
            HOP_WORDS as u8,
            HOPS,
            high,
            low,
            domain_high,
            domain_low,
            0,
            0,
            0,
            0,
        ];
        headers.bytes[end..end + 16].copy_from_slice(&int);
        headers.lengthen(16, transport);
        let longer = if transport == 8 { 32 } else { 16 };
        let inserted: u64 = int
            .chunks_exact(4)
            .map(|w| u64::from(double_word(w, 0)))
            .sum();
        self.push(
            ingress,
            port,
            transport,
            sent,
            inserted + longer,
            &mut headers,
        );
        packet.replace_front(end, headers.finished());
    }

    /// Adds this node's metadata to a packet with INT-MD headers; returns false if the packet has no such headers.
    fn pass(&mut self, ingress: u32, port: u32, transport: usize, packet: &mut Packet) -> bool {
        let header = packet.stored();
        let end = 34 + transport;
        if header.len() < end + 16
            || header[end] >> 4 != 1
            || header[end + 1] < 3
            || header[end + 4] >> 4 != 2
        {
            return false;
        }
        let mut headers = Headers {
            bytes: [0; 74 + LONGEST_HOP],
            len: end + 16,
        };
        headers.bytes[..end + 16].copy_from_slice(&header[..end + 16]);
        self.push(ingress, port, transport, UNKNOWN, 0, &mut headers);
        packet.replace_front(end + 16, headers.finished());
        true
    }

    /// Appends the metadata for which the INT instructions ask, and updates lengths and checksums. `sum` is the sum
    /// of the words that the caller has inserted or changed and that the checksum does not cover yet.
    fn push(
        &mut self,
        ingress: u32,
        port: u32,
        transport: usize,
        sent: u32,
        mut sum: u64,
        headers: &mut Headers,
    ) {
        let end = 34 + transport;
        let int = end + 4;
        let words = usize::from(headers.bytes[int + 2] & 0x1f);
        let instructions = word(&headers.bytes, int + 4);
        let known = ((instructions & 0xf181).count_ones()
            + 2 * (instructions & 0x0e00).count_ones()) as usize;
        let asked = known + (instructions & 0x7e).count_ones() as usize;
        let ip_bytes = u32::from(word(&headers.bytes, 16));
        let at = self.ports[port as usize];
        if headers.bytes[int + 3] == 0 {
            self.hops_exceeded += 1;
            if headers.bytes[int] & 4 == 0 {
                headers.bytes[int] |= 4;
                sum += 1 << 26;
            }
        } else if asked > words || usize::from(headers.bytes[end + 1]) + words > 255 {
            self.not_pushed += 1;
        } else if ip_bytes + 4 * words as u32 > at.mtu {
            self.mtu_exceeded += 1;
            if headers.bytes[int] & 2 == 0 {
                headers.bytes[int] |= 2;
                sum += 1 << 25;
            }
        } else {
            let begin = headers.len;
            let now = [(self.now_us >> 32) as u32 & 0xffff, self.now_us as u32];
            let values: [&[u32]; 9] = [
                &[self.node_id],
                &[ingress << 16 | port],
                &[0],
                &[0],
                &now,
                &now,
                &[self.ports[ingress as usize & 0x1ff].interface, at.interface],
                &[sent],
                &[UNKNOWN],
            ];
            for (bit, value) in values.into_iter().enumerate() {
                if instructions >> (15 - bit) & 1 == 1 {
                    value.iter().for_each(|word| headers.append(*word));
                }
            }
            (known..words).for_each(|_| headers.append(UNKNOWN));
            sum += (headers.bytes[begin..headers.len].chunks_exact(4))
                .map(|w| u64::from(double_word(w, 0)))
                .sum::<u64>();
            headers.bytes[int + 3] -= 1;
            headers.bytes[end + 1] += words as u8;
            let bytes = 4 * words as u16;
            headers.lengthen(bytes, transport);
            let longer = if transport == 8 { 2 * bytes } else { bytes };
            sum += 0xffff_fffe + ((words as u64) << 16) + u64::from(longer);
            if instructions & 1 == 1 {
                let has_checksum = transport != 8 || word(&headers.bytes, 40) != 0;
                let complement = if has_checksum {
                    u32::from(!fold(sum))
                } else {
                    UNKNOWN
                };
                headers.append(complement);
                if has_checksum {
                    sum = 0;
                }
            }
        }
        if sum != 0 {
            headers.correct(transport, sum);
        }
    }
}

impl Headers {
    fn append(&mut self, word: u32) {
        self.bytes[self.len..self.len + 4].copy_from_slice(&word.to_be_bytes());
        self.len += 4;
    }

    /// Adds `bytes` to the length field of IPv4 and, if the transport header has 8 bytes, to that of UDP.
    fn lengthen(&mut self, bytes: u16, transport: usize) {
        let length = word(&self.bytes, 16).wrapping_add(bytes);
        self.bytes[16..18].copy_from_slice(&length.to_be_bytes());
        if transport == 8 {
            let length = word(&self.bytes, 38).wrapping_add(bytes);
            self.bytes[38..40].copy_from_slice(&length.to_be_bytes());
        }
    }

    /// Updates the checksum of TCP or UDP for added words whose sum is `sum` (RFC 1624, equation 3). A UDP checksum
    /// of 0 (none) stays.
    fn correct(&mut self, transport: usize, sum: u64) {
        let at = if transport == 8 { 40 } else { 50 };
        let old = word(&self.bytes, at);
        if transport == 8 && old == 0 {
            return;
        }
        let folded = fold(sum + u64::from(!old));
        let checksum = if transport == 8 && folded == 0xffff {
            0xffff
        } else {
            !folded
        };
        self.bytes[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    }

    fn finished(&mut self) -> &[u8] {
        write_zeroed_checksum(&mut self.bytes[14..34]);
        &self.bytes[..self.len]
    }
}

fn write_zeroed_checksum(header: &mut [u8]) {
    header[10..12].fill(0);
    write_checksum(header);
}

impl Handwritten for TelemetryNode {
    fn set_now_ps(&mut self, now_ps: Time) {
        self.now_us = now_ps.us();
    }

    fn receive_burst(&mut self, burst: &mut Vec<(u32, Packet)>, out: &mut Vec<Output>) {
        for (ingress, packet) in burst.drain(..) {
            self.receive(ingress, packet, out);
        }
    }
}
