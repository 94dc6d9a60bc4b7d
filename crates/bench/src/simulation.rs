//! Measures the simulation: packets per second of wall-clock time from sources through P4 switches to sinks, events included.
//!
//! `dumbbell` is TCP: 100 bulk flows over a bottleneck of 1 Gb/s with a round trip of 40 ms and a drop-tail queue of 1,000 packets, with
//! 1,448 bytes per segment, NewReno with selective acknowledgments, timestamps and delayed acknowledgments. `benches/ns3` has
//! the same for ns-3, whose windows grow by acknowledgments; these windows do so, too.
//!
//! Each repetition builds the scenario again, and the median counts. The time covers [`Network::run`] alone, not
//! compilation or building. The switches are compiled routers (`benches/router.p4`), as in the other benchmarks.
#![expect(clippy::disallowed_methods, reason = "this is what measures")]

use crate::contents::{Match, Target};
use crate::router;
use crate::source;
use crate::structures;
use engine::{Switch, Time};
use net::{
    Application, Destination, Family, FlowId, HostConfig, LinkConfig, LinkId, MacAddress, NetError,
    Network, QueueConfig, Spacing, TcpFlowId, TcpTransfer, UdpStream,
};
use serde::Serialize;
use std::net::Ipv4Addr;
use std::time::Instant;

/// The scenarios without TCP: their names, the number of lines of routers between two hosts, the number of routers in a line, and
/// the number of packets of 1,000 bytes along each line.
///
/// `router`: one router of 1,000 routes. `switches_N`: as many packet-hops in each, to see what a hop costs when there are more
/// switches. `joined_1000`: the first routers of neighbouring lines have links too, without traffic, so that no line can be simulated on its own.
const SIMULATIONS: [(&str, usize, usize, u64); 5] = [
    ("router", 1, 1, 1_000_000),
    ("switches_10", 1, 10, 400_000),
    ("switches_100", 10, 10, 40_000),
    ("switches_1000", 100, 10, 4_000),
    (JOINED, 100, 10, 4_000),
];

const JOINED: &str = "joined_1000";

/// The name of the scenario with TCP.
const DUMBBELL: &str = "dumbbell";

/// Returns the names of all scenarios.
pub fn simulations() -> Vec<&'static str> {
    let lines = SIMULATIONS.iter().map(|(name, ..)| *name);
    lines.chain([DUMBBELL]).collect()
}

const REPETITIONS: usize = 5;
const PACKETS_PER_S: f64 = 10e6;
const RATE_BPS: u64 = 100_000_000_000;
const FRAME_BYTES: usize = 1000;
/// The number of bytes of the Ethernet, IPv4 and UDP headers.
const HEADER_BYTES: usize = 42;

/// The number of flows of the dumbbell; `DUMBBELL_PS` is how long they run in virtual time.
const FLOWS: usize = 100;
const DUMBBELL_PS: u64 = 10 * PS_PER_S;
const PS_PER_S: u64 = 1_000_000_000_000;

fn measure_dumbbell(quick: bool) -> Result<SimulationMeasurement, String> {
    let until_ps = if quick { DUMBBELL_PS / 10 } else { DUMBBELL_PS };
    let code = source::code("benches/router.p4", &[("ROUTES", "201".to_string())])?;
    let mut times = Vec::new();
    let mut measured = None;
    for _ in 0..REPETITIONS {
        let (mut network, bottleneck, flows) = dumbbell(&code)?;
        let begin = Processor::now();
        network.run(until_ps.into()).map_err(|e| e.to_string())?;
        times.push(begin.elapsed_s());
        let read = read_dumbbell(&network, bottleneck, &flows, until_ps);
        measured = Some(read.map_err(|e| e.to_string())?);
    }
    let measured = measured.ok_or("nothing was repeated")?;
    Ok(SimulationMeasurement {
        processor_s: median(times),
        ..measured
    })
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn read_dumbbell(
    network: &Network,
    bottleneck: LinkId,
    flows: &[TcpFlowId],
    until_ps: u64,
) -> Result<SimulationMeasurement, NetError> {
    let (mut packets, mut bytes) = (0, 0);
    for flow in flows {
        let now = network.tcp_statistics(*flow)?;
        packets += now.client.segments_sent;
        bytes += now.server.bytes_received;
    }
    let mut packet_hops = 0;
    for router in ["r0", "r1"] {
        packet_hops += network.node_counters(router)?.received;
    }
    let simulated_s = until_ps as f64 / PS_PER_S as f64;
    Ok(SimulationMeasurement {
        name: DUMBBELL.to_string(),
        switches: 2,
        packets,
        packet_hops,
        drops: network.link_counters(bottleneck)?.a_to_b.queue_drops,
        events: network.steps(),
        simulated_s,
        goodput_bps: Some(bytes as f64 * 8.0 / simulated_s),
        processor_s: 0.0,
    })
}

/// Builds the dumbbell: 100 hosts, a router, the bottleneck link, a router, 100 hosts; the routers run `code`. Returns the network, the
/// bottleneck and the TCP flows. Fails if the program has no table `routes`, or a route or a part of the network is refused.
fn dumbbell(code: &source::Code) -> Result<(Network, LinkId, Vec<TcpFlowId>), String> {
    let mut network = Network::new(1, 0);
    network.set_reaction_ps(u64::MAX);
    let mut sides = Vec::new();
    for side in 0..2 {
        let mut router = code.switch();
        let routes = Target::new(&router, "routes", "forward")?;
        for i in 0..FLOWS as u32 {
            let params = [(2 + i).into(), 0x0200_0000_0063, station(side, i).into()];
            let local = [Match::Lpm(address(side, i).into(), 32)];
            routes.insert(&mut router, &local, 0, &params)?;
        }
        let remote = [Match::Lpm(address(1 - side, 0).into(), 16)];
        routes.insert(
            &mut router,
            &remote,
            0,
            &[1, 0x0200_0000_0063, 0x0200_0000_0063],
        )?;
        sides.push(router);
    }
    let flows = connect_dumbbell(&mut network, sides).map_err(|e| e.to_string())?;
    Ok((network, flows.0, flows.1))
}

fn address(side: u32, i: u32) -> u32 {
    0x0a00_0001 | side << 16 | i << 8
}

fn station(side: u32, i: u32) -> u64 {
    0x0200_0001_0000 | u64::from(side) << 8 | u64::from(i)
}

fn connect_dumbbell(
    network: &mut Network,
    sides: Vec<Switch>,
) -> Result<(LinkId, Vec<TcpFlowId>), NetError> {
    let mut access = LinkConfig::new(10_000_000_000, PS_PER_S / 1000);
    access.queue = QueueConfig::packets(10_000);
    for (side, router) in sides.into_iter().enumerate() {
        let name = format!("r{side}");
        network.add_switch(&name, Box::new(router), 0)?;
        for i in 0..FLOWS as u32 {
            let mac = station(side as u32, i).to_be_bytes();
            let mut config = host(0, Ipv4Addr::from(address(side as u32, i)));
            config.mac = MacAddress([mac[2], mac[3], mac[4], mac[5], mac[6], mac[7]]);
            let host = format!("h{side}.{i}");
            network.add_host(&host, config)?;
            network.add_link(&host, 0, &name, 2 + i, access.clone())?;
        }
    }
    // 18 ms and twice 1 ms each way make 40 ms.
    let mut bottleneck = LinkConfig::new(1_000_000_000, 18 * PS_PER_S / 1000);
    bottleneck.queue = QueueConfig::packets(1000);
    let bottleneck = network.add_link("r0", 1, "r1", 1, bottleneck)?;
    let config = tcp::Config {
        recovery: tcp::Recovery::Sack {
            proportional: false,
        },
        increase: tcp::Increase::PerAck,
        timestamps: true,
        ..tcp::Config::default()
    };
    let flows = (0..FLOWS).map(|i| {
        network.add_tcp(&TcpTransfer {
            client: format!("h0.{i}"),
            server: format!("h1.{i}"),
            client_port: 40_000,
            server_port: 5001,
            family: Family::Ipv4,
            // Not all at once: over 100 ms.
            start_ps: Time::from(i as u64 * PS_PER_S / 1000),
            application: Application::Bulk,
            stop_ps: Time::NEVER,
            config: config.clone(),
            dscp: 0,
            goodput_bin_ps: 0,
            log_window: false,
        })
    });
    let flows = flows.collect::<Result<Vec<_>, _>>()?;
    Ok((bottleneck, flows))
}

/// The measured figures of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimulationMeasurement {
    /// The scenario's name.
    #[serde(rename = "scenario")]
    pub name: String,
    /// The number of switches.
    pub switches: usize,
    /// The number of packets sent by the sources: UDP packets, or TCP segments with data.
    pub packets: u64,
    /// The number of arrivals of packets at switches, acknowledgments included.
    pub packet_hops: u64,
    /// The number of packets that full queues dropped.
    pub drops: u64,
    /// The number of events of the simulation.
    pub events: u64,
    /// The simulated time in seconds.
    pub simulated_s: f64,
    /// The payload in bits per second of simulated time that TCP's receivers got in order.
    pub goodput_bps: Option<f64>,
    /// The processor time in seconds, the median of the runs: on an idle machine, the time that a simulation takes.
    pub processor_s: f64,
}

impl SimulationMeasurement {
    /// Returns the number of packets that the sources sent per second of processor time.
    pub fn packets_per_s(&self) -> f64 {
        self.packets as f64 / self.processor_s
    }

    /// Returns the number of packet-hops (arrivals of packets at switches) per second of processor time.
    pub fn packet_hops_per_s(&self) -> f64 {
        self.packet_hops as f64 / self.processor_s
    }
}

/// Runs the scenario `name` several times and returns its counts and the median time. `quick` sends a hundredth of the packets, or
/// runs the TCP scenario for a tenth of its time. Fails if there is no such scenario.
pub fn measure_simulation(name: &str, quick: bool) -> Result<SimulationMeasurement, String> {
    if name == DUMBBELL {
        return measure_dumbbell(quick);
    }
    let known = SIMULATIONS.iter().find(|(known, ..)| *known == name);
    let &(_, lines, routers, packets) = known.ok_or_else(|| {
        let names: Vec<&str> = SIMULATIONS.iter().map(|(name, ..)| *name).collect();
        format!(
            "there is no simulation {name:?}; there are {}",
            names.join(", ")
        )
    })?;
    let packets = if quick { packets / 100 } else { packets };
    let mut times = Vec::new();
    let mut events = 0;
    let scenario = Lines::new(lines, routers)?;
    for _ in 0..REPETITIONS {
        let (mut network, flows) = scenario.network(packets)?;
        if name == JOINED {
            join(&mut network, lines).map_err(|e| e.to_string())?;
        }
        let begin = Processor::now();
        // Nothing happens any more long before this.
        network
            .run((10 * PS_PER_S).into())
            .map_err(|e| e.to_string())?;
        times.push(begin.elapsed_s());
        for flow in flows {
            let arrived = network.received(flow).map_err(|e| e.to_string())?.len() as u64;
            if arrived != packets {
                return Err(format!("{name}: {arrived} of {packets} packets arrived"));
            }
        }
        events = network.steps();
    }
    Ok(SimulationMeasurement {
        name: name.to_string(),
        switches: lines * routers,
        packets: packets * lines as u64,
        packet_hops: packets * (lines * routers) as u64,
        drops: 0,
        events,
        simulated_s: packets as f64 / PACKETS_PER_S,
        goodput_bps: None,
        processor_s: median(times),
    })
}

/// A clock of the processor time of this thread where Linux states it, otherwise of real time.
struct Processor {
    begin: Instant,
    on_processor_ns: Option<u64>,
}

impl Processor {
    fn now() -> Processor {
        Processor {
            begin: Instant::now(),
            on_processor_ns: on_processor_ns(),
        }
    }

    fn elapsed_s(&self) -> f64 {
        match (self.on_processor_ns, on_processor_ns()) {
            (Some(begin), Some(end)) => (end - begin) as f64 * 1e-9,
            _ => self.begin.elapsed().as_secs_f64(),
        }
    }
}

fn on_processor_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Lines of routers, each with a host at both ends.
struct Lines {
    program: source::Code,
    lines: usize,
    routers: usize,
    /// Further routes of every router, which no packet uses.
    others: Vec<structures::routes::Prefix>,
}

const RECEIVER: Ipv4Addr = Ipv4Addr::new(223, 255, 0, 2);

fn host(number: u8, ipv4: Ipv4Addr) -> HostConfig {
    HostConfig {
        mac: MacAddress([2, 0, 0, 0, 0, number]),
        ipv4,
        prefix_len: 24,
        gateway_mac: MacAddress([2, 0, 0, 0, 0, 99]),
        ipv6: None,
    }
}

impl Lines {
    fn new(lines: usize, routers: usize) -> Result<Lines, String> {
        Ok(Lines {
            program: source::code("benches/router.p4", &[("ROUTES", "1001".to_string())])?,
            lines,
            routers,
            // One router gets a thousand; a thousand routers share them, since filling tables is not what is measured.
            others: router::prefixes((1000 / (lines * routers)).max(10)),
        })
    }

    /// Makes a router with one route to the receivers, and further routes that no packet takes. Fails if the switch
    /// refuses an entry.
    fn router(&self) -> Result<Switch, String> {
        let mut switch = self.program.switch();
        let routes = Target::new(&switch, "routes", "forward")?;
        let mut add = |address: u32, len: u32| {
            let matches = [Match::Lpm(address.into(), len)];
            let params = [2, 0x0200_0000_0063, 0x0200_0000_0002];
            routes.insert(&mut switch, &matches, 0, &params)
        };
        let network = u32::from(RECEIVER) & 0xffff_0000;
        add(network, 16)?;
        let others = self.others.iter();
        let others = others.filter(|p| p.address & 0xffff_0000 != network);
        others.copied().try_for_each(|p| add(p.address, p.len))?;
        Ok(switch)
    }

    fn network(&self, packets: u64) -> Result<(Network, Vec<FlowId>), String> {
        let mut network = Network::new(1, 0);
        // There are no controllers.
        network.set_reaction_ps(u64::MAX);
        let mut flows = Vec::new();
        for line in 0..self.lines {
            let routers: Result<Vec<Switch>, String> =
                (0..self.routers).map(|_| self.router()).collect();
            let flow = add_line(&mut network, line, routers?, packets);
            flows.push(flow.map_err(|e| e.to_string())?);
        }
        Ok((network, flows))
    }
}

/// Connects the first routers of neighbouring lines by links. Fails if a link cannot be added.
fn join(network: &mut Network, lines: usize) -> Result<(), NetError> {
    for line in 1..lines {
        let (above, below) = (format!("s{}.0", line - 1), format!("s{line}.0"));
        network.add_link(&above, 3, &below, 4, LinkConfig::new(RATE_BPS, 1_000_000))?;
    }
    Ok(())
}

/// Adds a line of a host, routers and another host, and a stream of packets from the first to the last. Returns the
/// stream's id. Fails if one of them cannot be added.
fn add_line(
    network: &mut Network,
    line: usize,
    routers: Vec<Switch>,
    packets: u64,
) -> Result<FlowId, NetError> {
    let (from, to) = (format!("a{line}"), format!("b{line}"));
    network.add_host(&from, host(1, Ipv4Addr::new(223, 254, line as u8, 1)))?;
    let receiver = Ipv4Addr::from(u32::from(RECEIVER) + ((line as u32) << 8));
    network.add_host(&to, host(2, receiver))?;
    let config = LinkConfig::new(RATE_BPS, 1_000_000);
    let (mut left, mut left_port) = (from.clone(), 0);
    for (i, router) in routers.into_iter().enumerate() {
        let name = format!("s{line}.{i}");
        network.add_switch(&name, Box::new(router), 0)?;
        network.add_link(&left, left_port, &name, 1, config.clone())?;
        (left, left_port) = (name, 2);
    }
    network.add_link(&left, left_port, &to, 0, config)?;
    network.add_udp_stream(&UdpStream {
        source: from,
        destination: Destination::Host(to),
        packets_per_s: PACKETS_PER_S,
        spacing: Spacing::Constant,
        payload_bytes: FRAME_BYTES - HEADER_BYTES,
        start_ps: Time::ZERO,
        stop_ps: Time::from(packets * (PS_PER_S / PACKETS_PER_S as u64)),
        source_port: 1,
        destination_port: 2,
        log_packets: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dumbbell_is_full_and_drops() {
        let measured = measure_simulation(DUMBBELL, true).unwrap();
        // A tenth of the time is mostly slow start.
        let share = measured.goodput_bps.unwrap() / (1e9 * 1448.0 / 1538.0);
        assert!((0.3..1.0).contains(&share), "{measured:?}");
        assert!(measured.drops > 0, "{measured:?}");
    }

    #[test]
    fn every_scenario_delivers_its_packets() {
        for (name, lines, routers, packets) in SIMULATIONS {
            let measured = measure_simulation(name, true).unwrap();
            let hops = packets / 100 * (lines * routers) as u64;
            assert_eq!(measured.packet_hops, hops);
            // One to send, one to arrive at each router and one at the receiver.
            let expected = packets / 100 * (lines * (routers + 2)) as u64;
            assert_eq!(measured.events, expected);
        }
    }
}
