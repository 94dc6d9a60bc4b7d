//! The hand-written firewall: bindings, routes, rules by tuple space search, and flows in a table of four ways. IPv4 with TCP and UDP.

use super::{Host, KEYS, Rule, TCP, TIMEOUT_US, UDP, mask_of};
use crate::structures::count::Count;
use crate::structures::dir24::Dir24;
use crate::structures::hash::HashTable;
use crate::structures::ipv4::{addresses, decrement_ttl, double_word, is_intact, word};
use crate::structures::routes::Prefix;
use crate::structures::tuples::Tuples;
use crate::workload::Handwritten;
use engine::{Output, Packet, Time};

const WAY_BITS: u32 = 16;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
const CONTROL: u8 = FIN | SYN | RST | ACK;

/// Why a packet is dropped.
#[derive(Clone, Copy)]
enum Reason {
    Malformed,
    Address,
    Spoofed,
    Expired,
    NoRoute,
    Receiver,
    NoState,
    Zone,
    Denied,
    Full,
    State,
    Reset,
    Window,
}

/// The state of a flow. From `Established` on, packets of both hosts have been seen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Code {
    Free,
    SynSent,
    SynReceived,
    Closed,
    UdpNew,
    Established,
    Closing,
    UdpStream,
}

/// One end of a TCP connection: the number after the highest that it sent, the highest that the other end accepts,
/// and the highest that was acknowledged.
#[derive(Clone, Copy, Default)]
struct End {
    sent: u32,
    may_send: u32,
    acked: u32,
}

#[derive(Clone, Copy)]
struct Cell {
    addresses: [u32; 2],
    ports: u32,
    protocol: u8,
    code: Code,
    by_first: bool,
    finished: u8,
    zones: u16,
    expires_us: u64,
    ends: [End; 2],
}

const FREE: Cell = Cell {
    addresses: [0; 2],
    ports: 0,
    protocol: 0,
    code: Code::Free,
    by_first: false,
    finished: 0,
    zones: 0,
    expires_us: 0,
    ends: [End {
        sent: 0,
        may_send: 0,
        acked: 0,
    }; 2],
};

#[derive(Clone, Copy, Default)]
struct Role {
    zone: u8,
    checks: bool,
}

struct Station {
    port: u32,
    addresses: [u8; 12],
}

/// The hand-written firewall.
pub struct Firewall {
    now_us: u64,
    roles: [Role; 512],
    bindings: HashTable<2>,
    owners: HashTable<1>,
    routes: Dir24,
    stations: Vec<Station>,
    receivers: HashTable<1>,
    zones: Vec<u8>,
    rules: Tuples<2>,
    allows: Vec<bool>,
    hits: Vec<u64>,
    cells: Vec<Cell>,
    drops: [Count; 13],
    displaced: u64,
}

/// Returns true if the sequence number `a` is equal to `b` or before it (RFC 9293, section 3.4).
fn not_after(a: u32, b: u32) -> bool {
    b.wrapping_sub(a) >> 31 == 0
}

/// Hashes a flow. Returns its index in the first way of the flow table, and an odd number that is added to the index
/// for each further way. Of addresses mapped into IPv6, `first` and `second` are the halves that are not zero.
fn place(first: u32, second: u32, ports: u32, protocol: u8) -> (u32, u32) {
    let [k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, k10] = KEYS;
    let times = u64::wrapping_mul;
    let plus = |key: u64, value: u64| key.wrapping_add(value);
    let sum = times(k0, k1)
        .wrapping_add(times(plus(k2, 0xffff), plus(k3, first.into())))
        .wrapping_add(times(k4, k5))
        .wrapping_add(times(plus(k6, 0xffff), plus(k7, second.into())))
        .wrapping_add(times(plus(k8, ports.into()), plus(k9, protocol.into())))
        .wrapping_add(k10);
    ((sum >> 32) as u32, (sum >> 48) as u32 | 1)
}

fn rule_key(source: u32, destination: u32, protocol: u8, port: u16) -> [u64; 2] {
    [
        u64::from(source) << 32 | u64::from(destination),
        u64::from(protocol) << 16 | u64::from(port),
    ]
}

impl Firewall {
    /// Makes a firewall without hosts or rules.
    pub fn new() -> Firewall {
        Firewall {
            now_us: 0,
            roles: [Role::default(); 512],
            bindings: HashTable::default(),
            owners: HashTable::default(),
            routes: Dir24::new(),
            stations: Vec::new(),
            receivers: HashTable::default(),
            zones: Vec::new(),
            rules: Tuples::default(),
            allows: Vec::new(),
            hits: Vec::new(),
            cells: vec![FREE; 4 << WAY_BITS],
            drops: [Count::default(); 13],
            displaced: 0,
        }
    }

    /// Sets the zone of a port, and whether only hosts that are bound to the port may send from it (`checks`).
    pub fn set_role(&mut self, port: u16, zone: u8, checks: bool) {
        self.roles[usize::from(port)] = Role { zone, checks };
    }

    /// Adds a host: the binding of its address to its port, and a route to it.
    pub fn add_host(&mut self, host: Host) {
        let Host { address, zone, hop } = host;
        let port_and_mac = u64::from(hop.port) << 48 | hop.destination;
        self.bindings.insert([port_and_mac, address.into()], 0);
        if self.roles[usize::from(hop.port)].checks {
            self.owners.insert([address.into()], hop.port.into());
        }
        self.receivers
            .insert([port_and_mac], self.zones.len() as u32);
        self.zones.push(zone);
        let number = self.stations.len() as u16;
        self.routes.insert(Prefix { address, len: 32 }, number);
        self.stations.push(Station {
            port: hop.port.into(),
            addresses: addresses(hop.destination, hop.source),
        });
    }

    /// Adds a filter rule with a priority.
    pub fn add_rule(&mut self, rule: Rule, priority: i32) {
        let (source, destination) = (mask_of(rule.source.len), mask_of(rule.destination.len));
        let port_mask = if rule.port.is_some() { 0xffff } else { 0 };
        let mask = rule_key(source, destination, 0xff, port_mask);
        let port = rule.port.unwrap_or(0);
        let value = rule_key(
            rule.source.address,
            rule.destination.address,
            rule.protocol,
            port,
        );
        self.rules.insert(value, mask, priority);
        self.allows.push(rule.allows);
        self.hits.push(0);
    }

    fn receive(&mut self, ingress: u32, mut packet: Packet, out: &mut Vec<Output>) {
        match self.judge(ingress, &packet) {
            Ok(number) => {
                let station = &self.stations[number];
                let bytes = packet.stored_mut();
                bytes[..12].copy_from_slice(&station.addresses);
                decrement_ttl(&mut bytes[14..]);
                out.push(Output::new(station.port, packet));
            }
            Err(reason) => self.drops[reason as usize].add(packet.len()),
        }
    }

    /// Returns the number of the station to which a packet is sent, or the reason for which it is dropped.
    fn judge(&mut self, ingress: u32, packet: &Packet) -> Result<usize, Reason> {
        let bytes = packet.stored();
        if bytes.len() < 34
            || bytes[12..14] != [8, 0]
            || bytes[14] != 0x45
            || !is_intact(&bytes[14..])
            || word(bytes, 20) & 0x3fff != 0
        {
            return Err(Reason::Malformed);
        }
        let total_len = usize::from(word(bytes, 16));
        let protocol = bytes[23];
        let carried = total_len.wrapping_sub(20);
        if total_len < 20 || packet.len() < total_len + 14 {
            return Err(Reason::Malformed);
        }
        let mut payload = 0;
        match protocol {
            TCP if bytes.len() >= 54 => {
                let header = usize::from(bytes[46] >> 4) * 4;
                let flags = bytes[47] & CONTROL;
                let known = matches!(flags, ACK | SYN | RST)
                    || flags == SYN | ACK
                    || flags == FIN | ACK
                    || flags == RST | ACK;
                if header < 20 || header > carried || !known {
                    return Err(Reason::Malformed);
                }
                payload = (carried - header) as u32;
            }
            UDP if bytes.len() >= 42 => {
                let length = usize::from(word(bytes, 38));
                if length < 8 || length > carried {
                    return Err(Reason::Malformed);
                }
            }
            _ => return Err(Reason::Malformed),
        }
        let (source, destination) = (double_word(bytes, 26), double_word(bytes, 30));
        let (from, to) = (source >> 24, destination >> 24);
        if from == 127
            || from >= 224
            || from == 0
            || to == 0
            || to == 127
            || to >= 224
            || source >> 16 == 0xa9fe
            || destination >> 16 == 0xa9fe
            || source == destination
        {
            return Err(Reason::Address);
        }
        let role = self.roles[ingress as usize & 0x1ff];
        if role.checks {
            let mac = u64::from(word(bytes, 6)) << 32 | u64::from(double_word(bytes, 8));
            let key = [u64::from(ingress) << 48 | mac, source.into()];
            self.bindings.get(&key).ok_or(Reason::Spoofed)?;
        } else if let Some(owner) = self.owners.get(&[source.into()])
            && owner != ingress
        {
            return Err(Reason::Spoofed);
        }
        if bytes[22] <= 1 {
            return Err(Reason::Expired);
        }
        let number = usize::from(self.routes.lookup(destination).ok_or(Reason::NoRoute)?);
        let station = &self.stations[number];
        let mac = u64::from(word(&station.addresses, 0)) << 32
            | u64::from(double_word(&station.addresses, 2));
        let receiver = self.receivers.get(&[u64::from(station.port) << 48 | mac]);
        let zone = self.zones[receiver.ok_or(Reason::Receiver)? as usize];
        self.follow(
            bytes,
            [role.zone, zone],
            [source, destination],
            protocol,
            payload,
        )?;
        Ok(number)
    }

    /// Finds the flow of a packet and updates its state, or adds a flow if a rule allows that; otherwise returns why
    /// the packet is dropped.
    fn follow(
        &mut self,
        bytes: &[u8],
        zones: [u8; 2],
        ends: [u32; 2],
        protocol: u8,
        payload: u32,
    ) -> Result<(), Reason> {
        let reversed = ends[0] > ends[1];
        let (sport, dport) = (word(bytes, 34), word(bytes, 36));
        let [first, second] = if reversed { [ends[1], ends[0]] } else { ends };
        let (first_port, second_port) = if reversed {
            (dport, sport)
        } else {
            (sport, dport)
        };
        let ports = u32::from(first_port) << 16 | u32::from(second_port);
        let [first_zone, second_zone] = if reversed {
            [zones[1], zones[0]]
        } else {
            zones
        };
        let zones = u16::from_be_bytes([first_zone, second_zone]);
        let (place, step) = place(first, second, ports, protocol);
        let cell = |way: u32| {
            let at = place.wrapping_add(way.wrapping_mul(step)) & 0xffff;
            (at + (way << WAY_BITS)) as usize
        };
        let now = self.now_us;
        let live = |cell: &Cell| cell.code != Code::Free && now <= cell.expires_us;
        let mut found = None;
        for way in 0..4 {
            let at = cell(way);
            let there = &self.cells[at];
            if there.addresses == [first, second]
                && there.ports == ports
                && there.protocol == protocol
                && live(there)
            {
                found = Some(at);
                break;
            }
        }
        let is_tcp = protocol == TCP;
        let flags = if is_tcp { bytes[47] } else { 0 };
        let opens = is_tcp && flags & CONTROL == SYN;
        let closed = found.is_some_and(|at| self.cells[at].code == Code::Closed);
        let begins = found.is_none() || opens && closed;
        if begins {
            if is_tcp && !opens {
                return Err(Reason::NoState);
            }
            let rule = self
                .rules
                .lookup(&rule_key(ends[0], ends[1], protocol, dport));
            let rule = rule.ok_or(Reason::Denied)? as usize;
            self.hits[rule] += 1;
            if !self.allows[rule] {
                return Err(Reason::Denied);
            }
        } else if found.is_some_and(|at| self.cells[at].zones != zones) {
            return Err(Reason::Zone);
        }
        let at = match found {
            Some(at) => at,
            None => {
                let free = (0..4).map(cell).find(|at| !live(&self.cells[*at]));
                match free {
                    Some(at) => at,
                    None => {
                        let weak = (0..4)
                            .map(cell)
                            .filter(|at| self.cells[*at].code < Code::Established);
                        let at = weak
                            .min_by_key(|at| self.cells[*at].expires_us)
                            .ok_or(Reason::Full)?;
                        self.displaced += 1;
                        at
                    }
                }
            }
        };
        let mut state = match begins {
            true => Cell {
                addresses: [first, second],
                ports,
                protocol,
                by_first: !reversed,
                zones,
                ..FREE
            },
            false => self.cells[at],
        };
        let by_sender = state.by_first != reversed;
        if !is_tcp {
            state.code = match state.code {
                _ if begins => Code::UdpNew,
                Code::UdpNew if !by_sender => Code::UdpStream,
                code => code,
            };
        } else {
            let (own, other) = if reversed { (1, 0) } else { (0, 1) };
            track(&mut state, [own, other], by_sender, begins, bytes, payload)?;
        }
        state.expires_us = now + TIMEOUT_US;
        self.cells[at] = state;
        Ok(())
    }
}

/// Updates the state of a TCP connection for a segment, or returns why the segment is dropped (no valid transition,
/// or outside of the window). `by_sender` is true if the sender of this segment opened the connection, `begins` if
/// this is the first segment of a connection; `own` and `other` are the positions in `state.ends` of the sender and
/// of the receiver.
fn track(
    state: &mut Cell,
    [own, other]: [usize; 2],
    by_sender: bool,
    begins: bool,
    bytes: &[u8],
    payload: u32,
) -> Result<(), Reason> {
    let (seq, ack) = (double_word(bytes, 38), double_word(bytes, 42));
    let (flags, window) = (bytes[47], u32::from(word(bytes, 48)));
    let (syn, acks, rst, fin) = (
        flags & SYN != 0,
        flags & ACK != 0,
        flags & RST != 0,
        flags & FIN != 0,
    );
    let after = seq.wrapping_add(payload + u32::from(syn) + u32::from(fin));
    let opens = flags & CONTROL == SYN;
    let wrong = if rst { Reason::Reset } else { Reason::State };
    let offered = if window == 0 { 1 } else { window };
    let takes = ack.wrapping_add(offered);
    let [mut sender, mut receiver] = [state.ends[own], state.ends[other]];
    if begins || state.code == Code::SynSent && by_sender && opens {
        state.code = Code::SynSent;
        state.finished = 0;
        sender = End {
            sent: after,
            may_send: after,
            acked: seq,
        };
    } else if state.code == Code::SynSent && by_sender {
        if !(rst && seq == sender.sent) {
            return Err(wrong);
        }
        state.code = Code::Free;
    } else if state.code == Code::SynSent {
        let offset = ack.wrapping_sub(receiver.acked);
        if !acks || offset == 0 || offset > receiver.sent.wrapping_sub(receiver.acked) {
            return Err(wrong);
        }
        if rst {
            state.code = Code::Free;
        } else if syn {
            state.code = Code::SynReceived;
            sender = End {
                sent: after,
                may_send: after,
                acked: after,
            };
            (receiver.may_send, receiver.acked) = (takes, ack);
        } else {
            return Err(Reason::State);
        }
    } else if rst {
        if seq.wrapping_sub(sender.acked) > sender.sent.wrapping_sub(sender.acked) {
            return Err(Reason::Reset);
        }
        state.code = if state.code == Code::SynReceived {
            Code::Free
        } else {
            Code::Closed
        };
    } else if syn && state.code == Code::SynReceived && by_sender && !acks {
        if after != sender.sent {
            return Err(Reason::State);
        }
    } else if syn && (by_sender || !acks || after != sender.sent)
        || state.code == Code::SynReceived && !syn && (!by_sender || ack != receiver.sent)
    {
        return Err(Reason::State);
    } else {
        // Windows are not scaled: no segment here has options.
        const LARGEST: u32 = 0x1_0000;
        if !not_after(after, sender.may_send)
            || !not_after(sender.sent, seq.wrapping_add(LARGEST))
            || !not_after(ack, receiver.sent)
            || !not_after(receiver.sent, ack.wrapping_add(LARGEST))
        {
            return Err(Reason::Window);
        }
        let later = |a: u32, b: u32| if not_after(a, b) { b } else { a };
        sender.sent = later(sender.sent, after);
        receiver.may_send = later(receiver.may_send, takes);
        receiver.acked = later(receiver.acked, ack);
        if fin {
            state.finished |= if own == 0 { 2 } else { 1 };
        }
        if !syn {
            state.code = match state.finished {
                0 => Code::Established,
                3 => Code::Closed,
                _ => Code::Closing,
            };
        }
    }
    (state.ends[own], state.ends[other]) = (sender, receiver);
    Ok(())
}

impl Handwritten for Firewall {
    fn set_now_ps(&mut self, now_ps: Time) {
        self.now_us = now_ps.us();
    }

    fn receive_burst(&mut self, burst: &mut Vec<(u32, Packet)>, out: &mut Vec<Output>) {
        for (ingress, packet) in burst.drain(..) {
            self.receive(ingress, packet, out);
        }
    }
}
