//! A stateful firewall: the application's own program (`python/holdfast/apps/firewall/firewall.p4`) and its hand-written twin.
//!
//! 10,000 rules and 100,000 established TCP flows between 1,000 bound hosts inside and 1,000 outside. Fifteen of sixteen packets are
//! segments of uniformly chosen flows, in either direction; one of sixteen would begin a flow that a rule denies. The hand-written
//! version has the same bounded table of flows in four ways with the same keyed hash, tracks TCP's state and windows alike, and finds
//! rules by tuple space search. It knows IPv4 with TCP and UDP; the program knows IPv6, ICMP and its errors, and neighbour discovery as well.

mod handwritten;

use crate::contents::{Match, Target};
use crate::random::Random;
use crate::source;
use crate::structures::routes::{NextHop, Prefix};
use crate::traffic::{drawn, write_ethernet, write_ipv4};
use crate::workload::{Handwritten, Workload};
use engine::control::{Entity, Operation, Update};
use engine::meter::MeterConfig;
use engine::{Output, Packet, Switch, Time};
use handwritten::Firewall;
use ir::{ActionCall, Bits};
use std::rc::Rc;

const PROGRAM: &str = "python/holdfast/apps/firewall/firewall.p4";

const TCP: u8 = 6;
const UDP: u8 = 17;

const INSIDE: u8 = 1;
const OUTSIDE: u8 = 2;
const PORTS: u16 = 64;
const HOSTS: usize = 1_000;

/// The factors of the hash of flows.
const KEYS: [u64; 11] = [
    0x9e37_79b9_7f4a_7c15,
    0xbf58_476d_1ce4_e5b9,
    0x94d0_49bb_1331_11eb,
    0xd6e8_feb8_6659_fd93,
    0xa076_1d64_78bd_642f,
    0xe703_7ed1_a0b4_28db,
    0x8ebc_6af0_9c88_c6e3,
    0x5899_65cc_7537_4cc3,
    0x1d8e_4e27_c47d_124f,
    0xeb44_acca_b455_d165,
    0x9c6e_6877_736c_46e3,
];
const EPOCH: u32 = 2;
/// The timeout of flows in microseconds, so long that no flow ends.
const TIMEOUT_US: u64 = 3_600_000_000_000;
/// The TCP or UDP port of the services that the rules allow; `DENIED` is that of one that they deny.
const SERVICE: u16 = 443;
const DENIED: u16 = 6881;

/// A host, and the zone and port where it is.
#[derive(Clone, Copy)]
pub struct Host {
    address: u32,
    zone: u8,
    /// The firewall's port for this host, with the Ethernet addresses of the host and of the firewall.
    hop: NextHop,
}

/// A rule: masked addresses, a protocol, and one destination port or any.
#[derive(Clone, Copy)]
pub struct Rule {
    source: Prefix,
    destination: Prefix,
    protocol: u8,
    port: Option<u16>,
    allows: bool,
}

/// A connection: its hosts, the client's port, and the first sequence numbers of both directions.
#[derive(Clone, Copy)]
struct Flow {
    client: usize,
    server: usize,
    port: u16,
    numbers: [u32; 2],
}

/// The table contents of the P4 program and the hand-written version.
struct Configuration {
    inside: Vec<Host>,
    outside: Vec<Host>,
    rules: Vec<Rule>,
    flows: Vec<Flow>,
}

impl Configuration {
    fn new(rules: usize, flows: usize) -> Configuration {
        let mut random = Random::new(21);
        let host = |i: usize, zone: u8| {
            let inside = zone == INSIDE;
            let first = if inside { 0x0a00_0000 } else { 0xc633_0000 };
            Host {
                address: first + 256 + i as u32,
                zone,
                hop: NextHop {
                    port: i as u16 % (PORTS / 2) * 2 + u16::from(!inside),
                    source: 0x0200_0000_0000 | (i as u64 % u64::from(PORTS / 2)),
                    destination: 0x0600_0000_0000 | u64::from(zone) << 32 | i as u64,
                },
            }
        };
        let inside: Vec<Host> = (0..HOSTS).map(|i| host(i, INSIDE)).collect();
        let outside: Vec<Host> = (0..HOSTS).map(|i| host(i, OUTSIDE)).collect();
        let whole = |host: &Host| Prefix {
            address: host.address,
            len: 32,
        };
        let network = |host: &Host| Prefix {
            address: host.address & 0xffff_ff00,
            len: 24,
        };
        let any = Prefix { address: 0, len: 0 };
        // The first deny a service, or host pairs; the last allow.
        let rule = |i: usize| match i {
            0 => Rule {
                source: any,
                destination: any,
                protocol: UDP,
                port: Some(DENIED),
                allows: false,
            },
            i if i + 4 >= rules => Rule {
                source: any,
                destination: any,
                protocol: TCP,
                port: Some(SERVICE + (i + 4 - rules) as u16),
                allows: true,
            },
            i => {
                let (a, b) = (&inside[i * 7 % HOSTS], &outside[i * 13 % HOSTS]);
                let source = if i % 3 == 0 { network(a) } else { whole(a) };
                let destination = if i % 5 == 0 { network(b) } else { whole(b) };
                Rule {
                    source,
                    destination,
                    protocol: if i % 2 == 0 { TCP } else { UDP },
                    port: Some(7_000 + (i / 2) as u16),
                    allows: i % 4 != 0,
                }
            }
        };
        let rules = (0..rules).map(rule).collect();
        let flow = |i: usize| Flow {
            client: i % HOSTS,
            server: (i / HOSTS * 17 + i) % HOSTS,
            port: 20_000 + (i / HOSTS) as u16,
            numbers: [random.next_u32(), random.next_u32()],
        };
        let flows = (0..flows).map(flow).collect();
        Configuration {
            inside,
            outside,
            rules,
            flows,
        }
    }

    fn fill(&self, switch: &mut Switch) -> Result<(), String> {
        let ports = Target::new(switch, "ports", "set_role")?;
        for port in 0..PORTS {
            let (zone, checks) = if port % 2 == 0 {
                (INSIDE, 1)
            } else {
                (OUTSIDE, 0)
            };
            let args = [zone.into(), 0, 0, checks, 0, 0, 0, 0, 0];
            ports.insert(switch, &[Match::Exact(port.into())], 0, &args)?;
        }
        let bindings = Target::new(switch, "address_bindings", "NoAction")?;
        let sources = Target::new(switch, "sources", "belongs_to")?;
        let routes = Target::new(switch, "ipv4_lpm", "forward")?;
        let receivers = Target::new(switch, "receivers", "deliver")?;
        for host in self.inside.iter().chain(&self.outside) {
            let NextHop {
                port,
                source,
                destination,
            } = host.hop;
            if host.zone == INSIDE {
                let mapped = 0xffff_0000_0000 | u128::from(host.address);
                let at = [port.into(), destination.into(), mapped].map(Match::Exact);
                bindings.insert(switch, &at, 0, &[])?;
                sources.insert(switch, &[Match::Lpm(mapped, 128)], 0, &[port.into()])?;
            }
            let at = [Match::Lpm(host.address.into(), 32)];
            let args = [port.into(), source.into(), destination.into()];
            routes.insert(switch, &at, 0, &args)?;
            let at = [port.into(), destination.into()].map(Match::Exact);
            receivers.insert(switch, &at, 0, &[host.zone.into(), 0])?;
        }
        let allow = Target::new(switch, "rules", "allow")?;
        let deny = Target::new(switch, "rules", "deny")?;
        for (i, rule) in self.rules.iter().enumerate() {
            let address = |prefix: Prefix| {
                let mask = u128::from(mask_of(prefix.len));
                let above = if prefix.len == 0 {
                    0
                } else {
                    !u128::from(u32::MAX)
                };
                let mapped = 0xffff_0000_0000 | u128::from(prefix.address);
                Match::Ternary(mapped & (above | mask), above | mask)
            };
            let (low, high) = rule.port.map_or((0, 0xffff), |port| (port, port));
            let matches = [
                Match::Exact(u128::from(EPOCH & 1)),
                Match::Ternary(0, 0),
                Match::Ternary(0, 0),
                Match::Ternary(0, 1),
                address(rule.source),
                address(rule.destination),
                Match::Ternary(rule.protocol.into(), 0xff),
                Match::Range(0, 0xffff),
                Match::Range(low.into(), high.into()),
            ];
            let priority = (self.rules.len() - i) as i32;
            match rule.allows {
                true => allow.insert(switch, &matches, priority, &[0])?,
                false => deny.insert(switch, &matches, priority, &[])?,
            }
        }
        let rule_set = Target::new(switch, "rule_set", "activate")?;
        let keys = KEYS.iter().map(|key| Bits::from_u64(64, *key));
        let first = [Bits::from_u64(32, EPOCH.into()), Bits::from_u64(1, 0)];
        let action = ActionCall {
            action: rule_set.action(),
            args: first.into_iter().chain(keys).collect(),
        };
        let entity = Entity::DefaultAction {
            table: rule_set.table(),
            action: Some(action),
            note: None,
        };
        write(switch, entity)?;
        let registers = &switch.program().registers;
        let timeouts = registers.iter().position(|r| r.name.ends_with(".timeouts"));
        let timeouts = timeouts.ok_or("there is no register timeouts")?;
        for index in 0..16 {
            let entity = Entity::Register {
                register: ir::RegisterId(timeouts as u32),
                index: Some(index),
                value: Bits::from_u64(48, TIMEOUT_US),
            };
            write(switch, entity)?;
        }
        // The log takes few of the denied packets.
        let meters = &switch.program().meters;
        let log_rate = meters.iter().position(|m| m.name.ends_with(".log_rate"));
        let entity = Entity::Meter {
            meter: ir::MeterId(log_rate.ok_or("there is no meter log_rate")? as u32),
            index: None,
            config: Some(MeterConfig {
                cir: 1,
                cburst: 1,
                pir: 1,
                pburst: 1,
            }),
        };
        write(switch, entity)
    }

    fn by_hand(&self) -> Firewall {
        let mut firewall = Firewall::new();
        for port in 0..PORTS {
            let zone = if port % 2 == 0 { INSIDE } else { OUTSIDE };
            firewall.set_role(port, zone, zone == INSIDE);
        }
        for host in self.inside.iter().chain(&self.outside) {
            firewall.add_host(*host);
        }
        for (i, rule) in self.rules.iter().enumerate() {
            firewall.add_rule(*rule, (self.rules.len() - i) as i32);
        }
        firewall
    }

    /// Writes a segment of `size` bytes of a flow into the buffer; returns the port at which it arrives. It is sent
    /// by the client if `to_server` is true, else by the server.
    fn segment(
        &self,
        flow: Flow,
        to_server: bool,
        flags: u8,
        size: usize,
        buffer: &mut Packet,
    ) -> u32 {
        let (client, server) = (&self.inside[flow.client], &self.outside[flow.server]);
        let (from, to) = if to_server {
            (client, server)
        } else {
            (server, client)
        };
        let (sport, dport) = if to_server {
            (flow.port, SERVICE)
        } else {
            (SERVICE, flow.port)
        };
        let [of_client, of_server] = flow.numbers;
        let (own, other) = if to_server {
            (of_client, of_server)
        } else {
            (of_server, of_client)
        };
        let (seq, ack) = match flags {
            SYN => (own, 0),
            SYN_ACK => (own, other.wrapping_add(1)),
            _ => (own.wrapping_add(1), other.wrapping_add(1)),
        };
        let mut header = [0; 54];
        write_ethernet(&mut header, from.hop.source, from.hop.destination, 0x0800);
        write_ipv4(&mut header[14..], size - 14, TCP, from.address, to.address);
        header[34..36].copy_from_slice(&sport.to_be_bytes());
        header[36..38].copy_from_slice(&dport.to_be_bytes());
        header[38..42].copy_from_slice(&seq.to_be_bytes());
        header[42..46].copy_from_slice(&ack.to_be_bytes());
        header[46..50].copy_from_slice(&[0x50, flags, 0xff, 0xff]);
        buffer.refill(&header, size);
        from.hop.port.into()
    }
}

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const SYN_ACK: u8 = SYN | ACK;

fn mask_of(len: u32) -> u32 {
    if len == 0 { 0 } else { u32::MAX << (32 - len) }
}

fn write(switch: &mut Switch, entity: Entity) -> Result<(), String> {
    let operation = Operation::Modify;
    switch
        .write(Update { operation, entity })
        .map_err(|e| e.to_string())
}

/// Makes the workload of a firewall with `rules` rules and `flows` flows. Flows for which the flow table has no room
/// are left out. Fails if the program does not compile or an entry is refused.
pub fn workload(rules: usize, flows: usize) -> Result<Workload, String> {
    let mut configuration = Configuration::new(rules, flows + flows / 50);
    let mut switch = source::switch(PROGRAM, &[])?;
    configuration.fill(&mut switch)?;
    let mut handwritten = Box::new(configuration.by_hand());
    let (mut out, mut other) = (Vec::new(), Vec::new());
    let opened = |flow: &Flow,
                  switch: &mut Switch,
                  handwritten: &mut Firewall,
                  out: &mut Vec<Output>,
                  other: &mut Vec<Output>| {
        for (to_server, flags) in [(true, SYN), (false, SYN_ACK), (true, ACK)] {
            for output in [&mut *out, &mut *other] {
                output.clear();
            }
            let mut packet = Packet::default();
            let port = configuration.segment(*flow, to_server, flags, 54, &mut packet);
            let mut burst = vec![(port, Packet::new(&packet.bytes()))];
            switch.receive_burst(Time::ZERO, &mut burst, out);
            handwritten.receive_burst(&mut vec![(port, packet)], other);
            if out.is_empty() != other.is_empty() {
                return Err("the versions differ about a new flow".to_string());
            }
            if out.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let mut there = Vec::new();
    for flow in &configuration.flows {
        if there.len() < flows && opened(flow, &mut switch, &mut handwritten, &mut out, &mut other)?
        {
            there.push(*flow);
        }
    }
    if there.len() < flows {
        return Err(format!("only {} of {flows} flows found room", there.len()));
    }
    configuration.flows = there;
    let configuration = Rc::new(configuration);
    Ok(Workload {
        switch,
        handwritten,
        traffic: drawn(22, move |size, random, buffer| {
            packet(&configuration, size, random, buffer)
        }),
    })
}

/// Writes a segment of an established flow, or a packet of a denied flow, into the buffer; returns the port at which
/// it arrives.
fn packet(
    configuration: &Configuration,
    size: usize,
    random: &mut Random,
    buffer: &mut Packet,
) -> u32 {
    let draw = random.next_u32();
    if draw & 15 != 0 {
        let flow = configuration.flows[random.below(configuration.flows.len())];
        return configuration.segment(flow, draw & 16 != 0, ACK, size, buffer);
    }
    let host = configuration.inside[random.below(HOSTS)];
    let to = configuration.outside[random.below(HOSTS)];
    let mut header = [0; 42];
    write_ethernet(&mut header, host.hop.source, host.hop.destination, 0x0800);
    write_ipv4(&mut header[14..], size - 14, UDP, host.address, to.address);
    header[34..36].copy_from_slice(&((draw >> 16) as u16 | 1).to_be_bytes());
    header[36..38].copy_from_slice(&DENIED.to_be_bytes());
    header[38..40].copy_from_slice(&((size - 34) as u16).to_be_bytes());
    buffer.refill(&header, size);
    host.hop.port.into()
}
