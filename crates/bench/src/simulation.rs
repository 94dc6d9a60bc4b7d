//! The simulation: packets per second of wall-clock time from sources through P4 switches to sinks, events included.
//!
//! A scenario is built anew for each repetition and the median counts. What is timed is [`Network::run`] alone, not
//! compilation or building. The switches are compiled routers (`benches/router.p4`), as in the other benchmarks.

use crate::contents::{Match, Target};
use crate::router;
use crate::source;
use engine::Switch;
use net::{Destination, FlowId, HostConfig, LinkConfig, MacAddress, NetError, Network, UdpStream};
use std::net::Ipv4Addr;
use std::time::Instant;

/// The scenarios: what they are called, how many lines of routers between two hosts there are, how many routers are in a line, and
/// how many packets of 1,000 bytes go along each line.
///
/// `router`: one router of 1,000 routes. `switches_N`: as many packet-hops in each, to see what a hop costs when there are more
/// switches.
pub const SIMULATIONS: [(&str, usize, usize, u64); 4] = [
    ("router", 1, 1, 1_000_000),
    ("switches_10", 1, 10, 100_000),
    ("switches_100", 10, 10, 10_000),
    ("switches_1000", 100, 10, 1_000),
];

const REPETITIONS: usize = 5;
const RATE_BPS: u64 = 100_000_000_000;
const FRAME_BYTES: usize = 1000;
/// Ethernet, IPv4 and UDP.
const HEADER_BYTES: usize = 42;

/// What was measured of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulationMeasurement {
    /// Its name in [`SIMULATIONS`].
    pub name: String,
    /// Switches.
    pub switches: usize,
    /// Packets that arrived, once for each switch that they passed.
    pub packet_hops: u64,
    /// Events of the simulation.
    pub events: u64,
    /// Seconds that a processor worked on it, the median: on an idle machine those on the wall.
    pub processor_s: f64,
}

impl SimulationMeasurement {
    /// Packet-hops per second.
    pub fn packet_hops_per_s(&self) -> f64 {
        self.packet_hops as f64 / self.processor_s
    }

    /// Nanoseconds per packet-hop.
    pub fn ns_per_packet_hop(&self) -> f64 {
        self.processor_s * 1e9 / self.packet_hops as f64
    }
}

/// Measures a scenario; `quick`: a hundredth of the packets.
pub fn measure_simulation(name: &str, quick: bool) -> Result<SimulationMeasurement, String> {
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
        let begin = Processor::now();
        network.run(u64::MAX / 2).map_err(|e| e.to_string())?;
        times.push(begin.elapsed_s());
        for flow in flows {
            let arrived = network.received(flow).map_err(|e| e.to_string())?.len() as u64;
            if arrived != packets {
                return Err(format!("{name}: {arrived} of {packets} packets arrived"));
            }
        }
        events = network.steps();
    }
    times.sort_by(f64::total_cmp);
    Ok(SimulationMeasurement {
        name: name.to_string(),
        switches: lines * routers,
        packet_hops: packets * (lines * routers) as u64,
        events,
        processor_s: times[times.len() / 2],
    })
}

/// The time that this thread has been on a processor, where Linux tells it, and else the time on the wall.
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

/// Lines of routers, each between two hosts of its own.
struct Lines {
    program: source::Code,
    lines: usize,
    routers: usize,
}

const RECEIVER: Ipv4Addr = Ipv4Addr::new(223, 255, 0, 2);

fn host(number: u8, ipv4: Ipv4Addr) -> HostConfig {
    HostConfig {
        mac: MacAddress([2, 0, 0, 0, 0, number]),
        ipv4,
        prefix_len: 24,
        gateway_mac: MacAddress([2, 0, 0, 0, 0, 99]),
    }
}

impl Lines {
    fn new(lines: usize, routers: usize) -> Result<Lines, String> {
        Ok(Lines {
            program: source::code("router.p4", &[("ROUTES", "1001".to_string())])?,
            lines,
            routers,
        })
    }

    /// A router with a route to the receivers and others to nowhere.
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
        // One router gets a thousand; a thousand routers share them, since filling tables is not what is measured.
        let count = (1000 / (self.lines * self.routers)).max(10);
        let others = router::prefixes(count);
        let others = others.iter().filter(|p| p.address & 0xffff_0000 != network);
        others.copied().try_for_each(|p| add(p.address, p.len))?;
        Ok(switch)
    }

    fn network(&self, packets: u64) -> Result<(Network, Vec<FlowId>), String> {
        let mut network = Network::new(1, 0);
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

/// A host, routers, a host, and packets from the first to the last.
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
        packets_per_s: 10e6,
        payload_bytes: FRAME_BYTES - HEADER_BYTES,
        start_ps: 0,
        stop_ps: packets * 100_000,
        source_port: 1,
        destination_port: 2,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
