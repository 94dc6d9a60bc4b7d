//! The hand-written edge of a Shorternet: IPv4 and UDP with contexts. It neither learns flows nor carries packets without context.

use super::{Context, PROFILE_UDP, PROTOCOL_CONTEXT_IPV4, Place, UDP};
use crate::structures::count::Count;
use crate::structures::dir24::Dir24;
use crate::structures::hash::HashTable;
use crate::structures::ipv4::{addresses, double_word, is_intact, word, write_checksum};
use crate::structures::routes::Prefix;
use crate::workload::Handwritten;
use crc::{CRC_16_ARC, Crc, Table};
use engine::{Output, Packet};

static CRC16: Crc<u16, Table<16>> = Crc::<u16, Table<16>>::new(&CRC_16_ARC);

/// Calculates the checksum of those fields of an IPv4 header and of its ports that the edge at the other end
/// restores; it is sent with the shortened packet.
pub fn check(header: &[u8]) -> u16 {
    let mut bytes = [0; 20];
    bytes[0] = header[1];
    bytes[1..5].copy_from_slice(&header[2..6]);
    bytes[5] = header[6] & 0xe0;
    bytes[6..8].copy_from_slice(&header[8..10]);
    bytes[8..16].copy_from_slice(&header[12..20]);
    bytes[16..20].copy_from_slice(&header[20..24]);
    CRC16.checksum(&bytes)
}

enum Host {
    Here { port: u32, addresses: [u8; 12] },
    Behind(u8),
}

/// The hand-written edge.
pub struct Edge {
    own: u8,
    hosts: Dir24,
    places: Vec<Host>,
    /// The port that leads to each station, by station number.
    ports: [Option<u32>; 256],
    flows: HashTable<2>,
    flow_ids: Vec<(u16, Count)>,
    contexts: HashTable<1>,
    restored: Vec<([u8; 24], Count)>,
    received: Count,
    malformed: u64,
    no_context: u64,
    wrong_length: u64,
    wrong_context: u64,
    no_host: u64,
}

/// Makes the key of a flow as two words: the addresses; then ports, traffic class, flags, TTL and protocol.
fn flow_key(header: &[u8]) -> [u64; 2] {
    [
        u64::from(double_word(header, 12)) << 32 | u64::from(double_word(header, 16)),
        u64::from(double_word(header, 20)) << 32
            | u64::from(header[1]) << 24
            | u64::from(header[6] & 0xe0) << 16
            | u64::from(word(header, 8)),
    ]
}

fn context_key(station: u8, id: u16, profile: u8) -> [u64; 1] {
    [u64::from(station) << 24 | u64::from(id) << 8 | u64::from(profile)]
}

/// Returns IPv4 and UDP headers with the values of a context; other fields are zero.
fn template(context: Context) -> [u8; 24] {
    let mut header = [0; 24];
    header[0] = 0x45;
    header[6] = 0x40;
    header[8..10].copy_from_slice(&[64, UDP]);
    header[12..16].copy_from_slice(&context.source.to_be_bytes());
    header[16..20].copy_from_slice(&context.destination.to_be_bytes());
    header[20..22].copy_from_slice(&context.source_port.to_be_bytes());
    header[22..24].copy_from_slice(&context.destination_port.to_be_bytes());
    header
}

impl Edge {
    /// Makes an edge with the station number `own`, without contexts or hosts.
    pub fn new(own: u8) -> Edge {
        Edge {
            own,
            hosts: Dir24::new(),
            places: Vec::new(),
            ports: [None; 256],
            flows: HashTable::default(),
            flow_ids: Vec::new(),
            contexts: HashTable::default(),
            restored: Vec::new(),
            received: Count::default(),
            malformed: 0,
            no_context: 0,
            wrong_length: 0,
            wrong_context: 0,
            no_host: 0,
        }
    }

    /// Sets the port that leads to another edge, given by its station number.
    pub fn add_station(&mut self, station: u8, port: u32) {
        self.ports[usize::from(station)] = Some(port);
    }

    /// Adds the hosts of a prefix, which are at this edge or behind another one.
    pub fn add_hosts(&mut self, prefix: Prefix, place: Place) {
        self.hosts.insert(prefix, self.places.len() as u16);
        self.places.push(match place {
            Place::Here(hop) => Host::Here {
                port: hop.port.into(),
                addresses: addresses(hop.destination, hop.source),
            },
            Place::Behind(station) => Host::Behind(station),
        });
    }

    /// Adds a context for packets that this edge shortens.
    pub fn add_outgoing(&mut self, context: Context) {
        let number = self.flow_ids.len() as u32;
        self.flows.insert(flow_key(&template(context)), number);
        self.flow_ids.push((context.id, Count::default()));
    }

    /// Adds a context for packets that this edge restores.
    pub fn add_incoming(&mut self, context: Context) {
        let key = context_key(context.station, context.id, PROFILE_UDP);
        self.contexts.insert(key, self.restored.len() as u32);
        self.restored.push((template(context), Count::default()));
    }

    /// Sends an IPv4 packet from a host to another edge in shortened form. Counts and drops a packet that cannot be
    /// shortened.
    fn shorten(&mut self, mut packet: Packet, out: &mut Vec<Output>) {
        let bytes = packet.stored();
        let length = packet.len();
        if bytes.len() < 42
            || bytes[12..14] != [8, 0]
            || bytes[14] != 0x45
            || bytes[23] != UDP
            || word(bytes, 20) & 0x3fff != 0
            || !is_intact(&bytes[14..])
        {
            self.malformed += 1;
            return;
        }
        let total_len = usize::from(word(bytes, 16));
        if total_len < 28 || length < total_len + 14 {
            self.malformed += 1;
            return;
        }
        let Some(number) = self.hosts.lookup(double_word(bytes, 30)) else {
            self.no_host += 1;
            return;
        };
        let Host::Behind(station) = self.places[usize::from(number)] else {
            self.no_host += 1;
            return;
        };
        let padded = length != total_len + 14;
        let fits = usize::from(word(bytes, 38)) == total_len - 20 && (!padded || length <= 60);
        let found = if fits {
            self.flows.get(&flow_key(&bytes[14..]))
        } else {
            None
        };
        let (Some(found), Some(port)) = (found, self.ports[usize::from(station)]) else {
            self.no_context += 1;
            return;
        };
        let (id, count) = &mut self.flow_ids[found as usize];
        count.add(length);
        let rest = total_len - 28;
        let shown = if 13 + rest < 60 { rest as u8 + 1 } else { 0 };
        let mut front = [0; 13];
        front[..4].copy_from_slice(&[station, self.own, PROTOCOL_CONTEXT_IPV4, 64]);
        front[4..6].copy_from_slice(&id.to_be_bytes());
        front[6] = PROFILE_UDP << 6 | shown;
        front[7..9].copy_from_slice(&check(&bytes[14..38]).to_be_bytes());
        front[9..11].copy_from_slice(&bytes[18..20]);
        front[11..13].copy_from_slice(&bytes[40..42]);
        packet.replace_front(42, &front);
        if padded {
            packet.truncate(13 + rest);
        }
        out.push(Output::new(port, packet));
    }

    /// Restores the packet in a frame from another edge, and sends it to its host. Counts and drops a frame that
    /// cannot be restored.
    fn restore(&mut self, mut packet: Packet, out: &mut Vec<Output>) {
        let bytes = packet.stored();
        if bytes.len() < 13
            || bytes[0] != self.own
            || bytes[2] != PROTOCOL_CONTEXT_IPV4
            || bytes[6] >> 6 != PROFILE_UDP
        {
            self.malformed += 1;
            return;
        }
        self.received.add(packet.len());
        let there = packet.len() - 13;
        let shown = usize::from(bytes[6] & 0x3f);
        let rest = if shown == 0 { there } else { shown - 1 };
        if rest > there || rest + 28 > 65_535 {
            self.wrong_length += 1;
            return;
        }
        let key = context_key(bytes[1], word(bytes, 4), PROFILE_UDP);
        let Some(found) = self.contexts.get(&key) else {
            self.no_context += 1;
            return;
        };
        let (template, count) = &mut self.restored[found as usize];
        count.add(there + 13);
        let mut front = [0; 42];
        front[14..38].copy_from_slice(template);
        front[16..18].copy_from_slice(&(rest as u16 + 28).to_be_bytes());
        front[18..20].copy_from_slice(&bytes[9..11]);
        if check(&front[14..38]) != word(bytes, 7) {
            self.wrong_context += 1;
            return;
        }
        let number = self.hosts.lookup(double_word(&front, 30));
        let Some(Host::Here { port, addresses }) = number.map(|n| &self.places[usize::from(n)])
        else {
            self.no_host += 1;
            return;
        };
        front[..12].copy_from_slice(addresses);
        front[12] = 8;
        front[38..40].copy_from_slice(&(rest as u16 + 8).to_be_bytes());
        front[40..42].copy_from_slice(&bytes[11..13]);
        write_checksum(&mut front[14..34]);
        packet.replace_front(13, &front);
        if rest != there {
            packet.truncate(42 + rest);
        }
        out.push(Output::new(*port, packet));
    }
}

impl Handwritten for Edge {
    fn receive_burst(&mut self, burst: &mut Vec<(u32, Packet)>, out: &mut Vec<Output>) {
        for (port, packet) in burst.drain(..) {
            match port < u32::from(super::FIRST_HOST_PORT) {
                true => self.restore(packet, out),
                false => self.shorten(packet, out),
            }
        }
    }
}
