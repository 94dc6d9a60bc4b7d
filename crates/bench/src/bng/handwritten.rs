//! The hand-written gateway: sessions by number, a hash table of their addresses, DIR-24-8 for routes, a token bucket per session and
//! direction, and an incremental checksum.

use super::{ACCESS_MAC, ACCESS_PORT, CORE_MAC, CORE_PORT, MRU, MTU, RATE, Session};
use crate::structures::dir24::Dir24;
use crate::structures::hash::HashTable;
use crate::structures::ipv4::{addresses, decrement_ttl, double_word, is_intact, word};
use crate::structures::routes::{NextHop, Prefix};
use crate::workload::Handwritten;
use engine::meter::MeterConfig;
use engine::{Output, Packet, Time};

/// The number of bytes of Ethernet, two VLAN tags and PPPoE.
const FRONT: usize = 30;

const SYN: u8 = 2;

const MILLION: u64 = 1_000_000;

/// The counters of a session in one direction, and its token bucket, in millionths of a byte so that no rate is
/// rounded.
#[derive(Clone, Copy)]
struct Account {
    packets: u64,
    bytes: u64,
    tokens: u64,
    filled_us: u64,
    bytes_per_s: u64,
    burst: u64,
}

impl Account {
    fn new(rate: MeterConfig) -> Account {
        let burst = rate.pburst * MILLION;
        Account {
            packets: 0,
            bytes: 0,
            tokens: burst,
            filled_us: 0,
            bytes_per_s: rate.pir,
            burst,
        }
    }

    /// Counts a packet and uses up tokens for its `frame_bytes` bytes, and returns true; returns false, without
    /// counting, if it exceeds the session's rate limit.
    #[inline]
    fn admit(&mut self, now_us: u64, frame_bytes: usize, ip_bytes: u16) -> bool {
        let earned = (now_us - self.filled_us).saturating_mul(self.bytes_per_s);
        self.tokens = self.burst.min(self.tokens.saturating_add(earned));
        self.filled_us = now_us;
        let Some(left) = self.tokens.checked_sub(frame_bytes as u64 * MILLION) else {
            return false;
        };
        self.tokens = left;
        self.packets += 1;
        self.bytes += u64::from(ip_bytes);
        true
    }
}

/// What upstream packets of a session must have: source MAC address, VLAN tags and source IP address, as on the wire.
#[derive(Clone, Copy)]
struct Upstream {
    mac: [u8; 6],
    tags: [u16; 2],
    address: [u8; 4],
    mss: u16,
    account: Account,
}

/// What downstream packets of a session get in front: all but the length field of PPPoE.
#[derive(Clone, Copy)]
struct Downstream {
    front: [u8; FRONT],
    mru: u16,
    mss: u16,
    port: u16,
    account: Account,
}

/// The Ethernet addresses of a next hop as on the wire, its port and its MTU.
struct Adjacency {
    addresses: [u8; 12],
    port: u16,
    mtu: u16,
}

/// What is behind a port, and our MAC address there.
#[derive(Clone, Copy)]
enum Port {
    Access([u8; 6]),
    Core([u8; 6]),
}

/// The hand-written gateway.
pub struct Gateway {
    now_us: u64,
    ports: Vec<Option<Port>>,
    upstream: Vec<Option<Upstream>>,
    downstream: Vec<Downstream>,
    by_address: HashTable<1>,
    routes: Dir24,
    adjacencies: Vec<Adjacency>,
}

impl Default for Gateway {
    fn default() -> Gateway {
        let mut ports = vec![None; 512];
        ports[ACCESS_PORT as usize] = Some(Port::Access(mac_bytes(ACCESS_MAC)));
        ports[CORE_PORT as usize] = Some(Port::Core(mac_bytes(CORE_MAC)));
        Gateway {
            now_us: 0,
            ports,
            upstream: vec![None; 1 << 16],
            downstream: Vec::new(),
            by_address: HashTable::default(),
            routes: Dir24::new(),
            adjacencies: Vec::new(),
        }
    }
}

impl Gateway {
    /// Adds a subscriber's session, in both directions.
    pub fn insert(&mut self, session: Session) {
        let pair = addresses(session.mac, ACCESS_MAC);
        self.upstream[usize::from(session.number)] = Some(Upstream {
            mac: mac_bytes(session.mac),
            tags: [session.s_tag, session.c_tag],
            address: session.address.to_be_bytes(),
            mss: MRU - 40,
            account: Account::new(RATE),
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
            mru: MRU,
            mss: MRU - 40,
            port: ACCESS_PORT as u16,
            account: Account::new(RATE),
        });
    }

    /// Adds a route from a prefix to a next hop.
    pub fn route(&mut self, prefix: Prefix, hop: NextHop) {
        self.routes.insert(prefix, self.adjacencies.len() as u16);
        self.adjacencies.push(Adjacency {
            addresses: addresses(hop.destination, hop.source),
            port: hop.port,
            mtu: MTU,
        });
    }

    #[inline]
    fn receive_upstream(
        &mut self,
        our_mac: [u8; 6],
        mut packet: Packet,
        out: &mut Vec<Output>,
    ) -> Option<()> {
        let received = packet.len();
        let bytes = packet.stored_mut();
        let header = bytes.first_chunk_mut::<50>()?;
        let is_session = header[..6] == our_mac
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
            && ip_bytes >= 20
            && usize::from(length) + 28 <= received
            && u32::from(ip_bytes) + 2 <= u32::from(length)
            && !matches!(ip[16], 0 | 127 | 224..);
        if !(is_session && is_own && is_intact) {
            return None;
        }
        let hop = self.routes.lookup(double_word(ip, 16))?;
        let adjacency = &self.adjacencies[usize::from(hop)];
        if ip_bytes > adjacency.mtu || !session.account.admit(self.now_us, received, ip_bytes) {
            return None;
        }
        decrement_ttl(&mut header[FRONT..]);
        clamp(&mut bytes[FRONT..], session.mss);
        let mut ethernet = [0; 14];
        ethernet[..12].copy_from_slice(&adjacency.addresses);
        ethernet[12] = 8;
        let port = adjacency.port.into();
        packet.replace_front(FRONT, &ethernet);
        out.push(Output::new(port, packet));
        Some(())
    }

    #[inline]
    fn receive_downstream(
        &mut self,
        our_mac: [u8; 6],
        mut packet: Packet,
        out: &mut Vec<Output>,
    ) -> Option<()> {
        let received = packet.len();
        let bytes = packet.stored_mut();
        let header = bytes.first_chunk_mut::<34>()?;
        let ip = &header[14..];
        let ip_bytes = word(ip, 2);
        let is_intact = header[..6] == our_mac
            && word(header, 12) == 0x0800
            && ip[0] == 0x45
            && ip[8] > 1
            && is_intact(ip)
            && ip_bytes >= 20
            && usize::from(ip_bytes) + 14 <= received
            && !matches!(ip[12], 0 | 127 | 224..);
        if !is_intact {
            return None;
        }
        let number = self.by_address.get(&[double_word(ip, 16).into()])?;
        let session = &mut self.downstream[number as usize];
        if ip_bytes > session.mru || !session.account.admit(self.now_us, received, ip_bytes) {
            return None;
        }
        decrement_ttl(&mut header[14..]);
        clamp(&mut bytes[14..], session.mss);
        let mut front = session.front;
        front[26..28].copy_from_slice(&(ip_bytes + 2).to_be_bytes());
        let port = session.port.into();
        packet.replace_front(14, &front);
        out.push(Output::new(port, packet));
        Some(())
    }
}

fn mac_bytes(mac: u64) -> [u8; 6] {
    let [_, _, bytes @ ..] = mac.to_be_bytes();
    bytes
}

/// Lowers the MSS option to at most `most` in a TCP segment with the SYN flag, and updates the checksum. Examines
/// only the first TCP option, which is the MSS in nearly all such segments.
#[inline]
fn clamp(ip: &mut [u8], most: u16) {
    let opens = ip[9] == 6 && word(ip, 6) & 0x1fff == 0 && ip.len() >= 44 && ip[33] & SYN != 0;
    if opens && ip[32] >> 4 > 5 && word(ip, 40) == 0x0204 {
        let before = word(ip, 42);
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
    fn set_now_ps(&mut self, now_ps: Time) {
        self.now_us = now_ps.us();
    }

    fn receive_burst(&mut self, burst: &mut Vec<(u32, Packet)>, out: &mut Vec<Output>) {
        for (port, packet) in burst.drain(..) {
            match self.ports.get(port as usize) {
                Some(&Some(Port::Access(mac))) => self.receive_upstream(mac, packet, out),
                Some(&Some(Port::Core(mac))) => self.receive_downstream(mac, packet, out),
                _ => None,
            };
        }
    }
}
