//! A PPPoE gateway: the application's own program (`python/holdfast/apps/bng/bng.p4`) and its hand-written twin.
//!
//! 64,000 sessions of IPv4 on lines with two tags, each with a limit of its rate that it does not reach, and 1,000 routes. *Upstream*: packets
//! of uniformly chosen sessions to uniformly chosen routes. *Downstream*: packets to uniformly chosen sessions. Three in four are TCP
//! segments without SYN, the others UDP. Both versions check line, MAC address and source, verify checksums, count packets and bytes of
//! each session and meter them; the program knows IPv6, discovery and PPP control as well. `size_bytes` is that of the packet in the
//! core, without the 16 bytes of tags and PPPoE.

mod handwritten;

use crate::contents::{Match, Target};
use crate::random::Random;
use crate::router::{next_hops, prefixes};
use crate::source;
use crate::structures::routes::{NextHop, Prefix};
use crate::traffic::{drawn, write_ethernet, write_ipv4};
use crate::workload::Workload;
use engine::meter::MeterConfig;
use engine::{Packet, Switch};
use handwritten::Gateway;
use ir::MeterId;
use std::rc::Rc;

const ACCESS_PORT: u32 = 100;
const CORE_PORT: u32 = 101;
const ACCESS_MAC: u64 = 0x0200_0000_00aa;
const CORE_MAC: u64 = 0x0200_0000_00bb;
const MRU: u16 = 1492;
const MTU: u16 = 1500;

/// The rate limit of each session in bytes per second, which the traffic does not reach.
const RATE: MeterConfig = MeterConfig {
    cir: 1_000_000_000,
    cburst: 1_000_000_000,
    pir: 1_000_000_000,
    pburst: 1_000_000_000,
};

/// A subscriber's session.
#[derive(Clone, Copy)]
pub struct Session {
    number: u16,
    s_tag: u16,
    c_tag: u16,
    mac: u64,
    address: u32,
}

/// The table contents of the P4 program and the hand-written version.
struct Configuration {
    sessions: Vec<Session>,
    routes: Vec<(Prefix, NextHop)>,
}

impl Configuration {
    fn new(count: usize) -> Configuration {
        let mut random = Random::new(20);
        let hops = next_hops();
        let session = |i: usize| Session {
            number: i as u16 + 1,
            s_tag: (i / 4_000) as u16 + 1,
            c_tag: (i % 4_000) as u16 + 1,
            mac: 0x0600_0000_0000 | random.next_u64() >> 24,
            address: 0x0a00_0001 + i as u32,
        };
        Configuration {
            sessions: (0..count).map(session).collect(),
            routes: (prefixes(1_000).into_iter().enumerate())
                .map(|(i, prefix)| (prefix, hops[i % hops.len()]))
                .collect(),
        }
    }

    fn fill(&self, switch: &mut Switch) -> Result<(), String> {
        let access = Target::new(switch, "ports", "access")?;
        let core = Target::new(switch, "ports", "core")?;
        let sessions = Target::new(switch, "sessions", "subscriber")?;
        let subscribers = Target::new(switch, "subscribers_v4", "deliver")?;
        let routes = Target::new(switch, "ipv4_lpm", "to_core")?;
        let (from_line, from_core) = (
            Match::Exact(ACCESS_PORT.into()),
            Match::Exact(CORE_PORT.into()),
        );
        access.insert(switch, &[from_line], 0, &[ACCESS_MAC.into()])?;
        core.insert(switch, &[from_core], 0, &[CORE_MAC.into()])?;
        for (prefix, hop) in &self.routes {
            let matches = [Match::Lpm(prefix.address.into(), prefix.len)];
            let (port, source, destination) = (hop.port, hop.source, hop.destination);
            let args = [port.into(), source.into(), destination.into(), MTU.into()];
            routes.insert(switch, &matches, 0, &args)?;
        }
        let meters = [meter(switch, "rate_up")?, meter(switch, "rate_down")?];
        for session in &self.sessions {
            let (s_tag, c_tag) = (session.s_tag.into(), session.c_tag.into());
            let (number, mac, mss) = (
                session.number.into(),
                session.mac.into(),
                u128::from(MRU) - 40,
            );
            let port = u128::from(ACCESS_PORT);
            let all_ones = u128::from(u64::MAX);
            let address = u128::from(session.address);
            let args = [port, s_tag, c_tag, mac, 0, mss, address, 0, 0, 0, all_ones];
            sessions.insert(switch, &[Match::Exact(number)], 0, &args)?;
            let (tpid, mru) = (0x8100, MRU.into());
            let args = [
                number,
                port,
                port,
                tpid,
                s_tag,
                c_tag,
                ACCESS_MAC.into(),
                mac,
                mru,
                mss,
            ];
            subscribers.insert(switch, &[Match::Exact(address)], 0, &args)?;
            for meter in meters {
                let index = u64::from(session.number);
                switch
                    .write_meter(meter, index, Some(RATE))
                    .map_err(|e| e.to_string())?;
            }
        }
        Ok(())
    }
}

fn meter(switch: &Switch, name: &str) -> Result<MeterId, String> {
    let meters = &switch.program().meters;
    let found = meters.iter().position(|meter| meter.name.ends_with(name));
    found
        .map(|at| MeterId(at as u32))
        .ok_or_else(|| format!("there is no meter {name}"))
}

fn workload(count: usize, is_upstream: bool) -> Result<Workload, String> {
    let configuration = Rc::new(Configuration::new(count));
    let mut switch = source::switch("python/holdfast/apps/bng/bng.p4", &[])?;
    configuration.fill(&mut switch)?;
    let mut gateway = Gateway::default();
    for session in &configuration.sessions {
        gateway.insert(*session);
    }
    for (prefix, hop) in &configuration.routes {
        gateway.route(*prefix, *hop);
    }
    Ok(Workload {
        switch,
        handwritten: Box::new(gateway),
        traffic: drawn(21, move |size, random, buffer| {
            packet(&configuration, is_upstream, size, random, buffer)
        }),
    })
}

/// Makes the workload of packets that `count` subscriber sessions send towards the core network. Fails if the program
/// does not compile or an entry is refused.
pub fn upstream(count: usize) -> Result<Workload, String> {
    workload(count, true)
}

/// Makes the workload of packets from the core network to `count` subscriber sessions. Fails if the program does not
/// compile or an entry is refused.
pub fn downstream(count: usize) -> Result<Workload, String> {
    workload(count, false)
}

fn packet(
    configuration: &Configuration,
    is_upstream: bool,
    size: usize,
    random: &mut Random,
    buffer: &mut Packet,
) -> u32 {
    let Configuration { sessions, routes } = configuration;
    let session = sessions[random.below(sessions.len())];
    // No packet travels to or from the addresses of one link.
    let remote = loop {
        let (prefix, _) = routes[random.below(routes.len())];
        let host = u64::from(random.next_u32()) & ((1 << (32 - prefix.len)) - 1);
        let address = prefix.address | host as u32;
        if !matches!(address >> 24, 0 | 127 | 224..) {
            break address;
        }
    };
    let is_tcp = random.below(4) != 0;
    let mut header = [0; 70];
    let front = if is_upstream { 30 } else { 14 };
    let (source, destination) = match is_upstream {
        true => (session.address, remote),
        false => (remote, session.address),
    };
    let ip_bytes = size - 14;
    let protocol = if is_tcp { 6 } else { 17 };
    write_ipv4(
        &mut header[front..],
        ip_bytes,
        protocol,
        source,
        destination,
    );
    if is_tcp {
        header[front + 32..front + 34].copy_from_slice(&[0x50, 0x10]);
    }
    if !is_upstream {
        write_ethernet(&mut header, CORE_MAC, 0x0600_0000_0001, 0x0800);
        buffer.refill(&header[..54], size);
        return CORE_PORT;
    }
    write_ethernet(&mut header, ACCESS_MAC, session.mac, 0x8100);
    let length = (ip_bytes + 2) as u16;
    let words = [
        session.s_tag,
        0x8100,
        session.c_tag,
        0x8864,
        0x1100,
        session.number,
        length,
        0x0021,
    ];
    for (place, word) in header[14..30].chunks_exact_mut(2).zip(words) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    buffer.refill(&header, size + 16);
    ACCESS_PORT
}
