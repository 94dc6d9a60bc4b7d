//! The hand-written gateway: sessions by number, a hash table of their addresses, DIR-24-8 for routes, a token bucket per session and
//! direction, and an incremental checksum.

use super::{ACCESS_MAC, ACCESS_PORT, CORE_MAC, CORE_PORT, MRU, MTU, RATE, Session};
use crate::router::{NextHop, Prefix};
use crate::structures::dir24::Dir24;
use crate::structures::hash::HashTable;
use crate::structures::ipv4::{addresses, decrement_ttl, double_word, is_intact, word};
use crate::workload::Handwritten;
use engine::{Output, Packet};

/// Bytes of Ethernet, two tags and PPPoE.
const FRONT: usize = 30;

const SYN: u8 = 2;

/// What a session has used in one direction, and what it may.
#[derive(Clone, Copy)]
struct Account {
    packets: u64,
    bytes: u64,
    tokens: u64,
    filled_ps: u64,
}

impl Account {
    const NEW: Account = Account {
        packets: 0,
        bytes: 0,
        tokens: RATE.pburst,
        filled_ps: 0,
    };

    /// Counts a packet; whether it is within the limit.
    #[inline]
    fn admit(&mut self, now_ps: u64, frame_bytes: usize, ip_bytes: u16) -> bool {
        let elapsed_us = (now_ps - self.filled_ps) / 1_000_000;
        if elapsed_us > 0 {
            let earned = elapsed_us.saturating_mul(RATE.pir / 1_000_000);
            self.tokens = RATE.pburst.min(self.tokens.saturating_add(earned));
            self.filled_ps = now_ps;
        }
        let Some(left) = self.tokens.checked_sub(frame_bytes as u64) else {
            return false;
        };
        self.tokens = left;
        self.packets += 1;
        self.bytes += u64::from(ip_bytes);
        true
    }
}

/// What upstream packets of a session must have, on the wire: source MAC address and tags, and the source.
#[derive(Clone, Copy)]
struct Upstream {
    mac: [u8; 6],
    tags: [u16; 2],
    address: [u8; 4],
    account: Account,
}

/// What downstream packets get in front: everything but PPPoE's length.
#[derive(Clone, Copy)]
struct Downstream {
    front: [u8; FRONT],
    account: Account,
}

/// A next hop's addresses as they are on the wire, and its port.
struct Adjacency {
    addresses: [u8; 12],
    port: u32,
}

/// The gateway.
pub struct Gateway {
    now_ps: u64,
    upstream: Vec<Option<Upstream>>,
    downstream: Vec<Downstream>,
    by_address: HashTable<1>,
    routes: Dir24,
    adjacencies: Vec<Adjacency>,
}

impl Default for Gateway {
    fn default() -> Gateway {
        Gateway {
            now_ps: 0,
            upstream: vec![None; 1 << 16],
            downstream: Vec::new(),
            by_address: HashTable::default(),
            routes: Dir24::new(),
            adjacencies: Vec::new(),
        }
    }
}

impl Gateway {
    /// Adds a session.
    pub fn insert(&mut self, session: Session) {
        let pair = addresses(session.mac, ACCESS_MAC);
        let mut mac = [0; 6];
        mac.copy_from_slice(&pair[..6]);
        self.upstream[usize::from(session.number)] = Some(Upstream {
            mac,
            tags: [session.s_tag, session.c_tag],
            address: session.address.to_be_bytes(),
            account: Account::NEW,
        });
        let mut front = [0; FRONT];
        front[..12].copy_from_slice(&pair);
        let words = [
            0x8100,
            session.s_tag,
            0x8100,
            session.c_tag,
            0x8864,
            0x1100,
            session.number,
            0,
            0x0021,
        ];
        for (place, word) in front[12..].chunks_exact_mut(2).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        let number = self.downstream.len() as u32;
        self.by_address.insert([session.address.into()], number);
        self.downstream.push(Downstream {
            front,
            account: Account::NEW,
        });
    }

    /// Adds a route.
    pub fn route(&mut self, prefix: Prefix, hop: NextHop) {
        self.routes.insert(prefix, self.adjacencies.len() as u16);
        self.adjacencies.push(Adjacency {
            addresses: addresses(hop.destination, hop.source),
            port: hop.port.into(),
        });
    }

    #[inline]
    fn receive_upstream(&mut self, mut packet: Packet, out: &mut Vec<Output>) -> Option<()> {
        let received = packet.len();
        let bytes = packet.stored_mut();
        let header = bytes.first_chunk_mut::<50>()?;
        let is_session = header[..6] == ACCESS_MAC.to_be_bytes()[2..]
            && word(header, 12) == 0x8100
            && word(header, 16) == 0x8100
            && word(header, 20) == 0x8864
            && word(header, 22) == 0x1100
            && word(header, 28) == 0x0021;
        let (number, length) = (word(header, 24), word(header, 26));
        let session = self.upstream[usize::from(number)].as_mut()?;
        let is_own = header[6..12] == session.mac
            && [word(header, 14) & 0xfff, word(header, 18) & 0xfff] == session.tags
            && header[42..46] == session.address;
        let ip = &header[FRONT..];
        let ip_bytes = word(ip, 2);
        let is_intact = ip[0] == 0x45
            && ip[8] > 1
            && is_intact(ip)
            && (20..=MTU).contains(&ip_bytes)
            && usize::from(length) + 28 <= received
            && u32::from(ip_bytes) + 2 <= u32::from(length)
            && !matches!(ip[16], 0 | 127 | 224..);
        if !(is_session && is_own && is_intact) {
            return None;
        }
        let hop = self.routes.lookup(double_word(ip, 16))?;
        if !session.account.admit(self.now_ps, received, ip_bytes) {
            return None;
        }
        let adjacency = &self.adjacencies[usize::from(hop)];
        decrement_ttl(&mut header[FRONT..]);
        clamp(&mut bytes[FRONT..]);
        let mut ethernet = [0; 14];
        ethernet[..12].copy_from_slice(&adjacency.addresses);
        ethernet[12] = 8;
        let port = adjacency.port;
        packet.replace_front(FRONT, &ethernet);
        out.push(Output::new(port, packet));
        Some(())
    }

    #[inline]
    fn receive_downstream(&mut self, mut packet: Packet, out: &mut Vec<Output>) -> Option<()> {
        let received = packet.len();
        let bytes = packet.stored_mut();
        let header = bytes.first_chunk_mut::<34>()?;
        let ip = &header[14..];
        let ip_bytes = word(ip, 2);
        let is_intact = header[..6] == CORE_MAC.to_be_bytes()[2..]
            && word(header, 12) == 0x0800
            && ip[0] == 0x45
            && ip[8] > 1
            && is_intact(ip)
            && (20..=MRU).contains(&ip_bytes)
            && usize::from(ip_bytes) + 14 <= received;
        if !is_intact {
            return None;
        }
        let number = self.by_address.get(&[double_word(ip, 16).into()])?;
        let session = &mut self.downstream[number as usize];
        if !session.account.admit(self.now_ps, received, ip_bytes) {
            return None;
        }
        decrement_ttl(&mut header[14..]);
        clamp(&mut bytes[14..]);
        let mut front = session.front;
        front[26..28].copy_from_slice(&(ip_bytes + 2).to_be_bytes());
        packet.replace_front(14, &front);
        out.push(Output::new(ACCESS_PORT, packet));
        Some(())
    }
}

/// Lowers the MSS of a segment that opens a connection; the first option has it in nearly all of them, and no others are looked at here.
#[inline]
fn clamp(ip: &mut [u8]) {
    let opens = ip[9] == 6 && word(ip, 6) & 0x1fff == 0 && ip.len() >= 44 && ip[33] & SYN != 0;
    if opens && ip[32] >> 4 > 5 && word(ip, 40) == 0x0204 {
        let (before, most) = (word(ip, 42), MRU - 40);
        if before > most {
            let sum = u32::from(!word(ip, 36)) + u32::from(!before) + u32::from(most);
            let sum = (sum & 0xffff) + (sum >> 16);
            let sum = (sum & 0xffff) + (sum >> 16);
            ip[36..38].copy_from_slice(&(!(sum as u16)).to_be_bytes());
            ip[42..44].copy_from_slice(&most.to_be_bytes());
        }
    }
}

impl Handwritten for Gateway {
    fn set_now_ps(&mut self, now_ps: u64) {
        self.now_ps = now_ps;
    }

    fn receive_burst(&mut self, burst: &mut Vec<(u32, Packet)>, out: &mut Vec<Output>) {
        for (port, packet) in burst.drain(..) {
            match port {
                ACCESS_PORT => self.receive_upstream(packet, out),
                CORE_PORT => self.receive_downstream(packet, out),
                _ => None,
            };
        }
    }
}
