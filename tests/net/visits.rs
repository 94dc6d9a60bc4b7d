//! Visits do not change results: nodes that handle their packets one by one, as with unknown reaction delays, give the same results as nodes that
//! handle many at a time. The tests use random networks with every feature.

mod captured;
mod mac_switch;

use captured::Captured;
use engine::Time;
use mac_switch::{Kind, switch_of};
use net::random::Stream;
use net::{
    Application, Change, Destination, FailureTarget, Family, FlowId, HostConfig, HostSettings,
    Ipv6Interface, Jitter, LinkConfig, LinkDirection, LinkId, Loss, MacAddress, Milliseconds,
    Network, Notification, NotificationEvent, Ping, QueueConfig, Spacing, TcpFlowId, TcpTransfer,
    UdpStream,
};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

const US: u64 = 1_000_000;
const MS: u64 = 1_000_000_000;
const END_PS: u64 = 4 * MS;

/// A random network, and what can be read from it afterwards.
struct Scenario {
    network: Network,
    nodes: Vec<String>,
    links: u32,
    flows: Vec<(FlowId, Family)>,
    tcp: Vec<(TcpFlowId, Family)>,
    captures: Vec<Captured>,
}

/// The families of addresses that flows use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Families {
    Ipv4,
    /// The family is drawn for each flow.
    Both,
}

struct Dice(Stream);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0.uniform(0, n as i64 - 1) as usize
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    fn config(&mut self) -> LinkConfig {
        // The same delay in many places, so that much happens at the same time.
        let delay_ps = self.one_of(&[0, US, 5 * US, 50 * US, 50 * US, 50 * US]);
        let mut config = LinkConfig::new(self.one_of(&[1_000_000_000, 100_000_000]), delay_ps);
        if self.below(8) == 0 {
            config.jitter = Jitter::Uniform {
                low_ps: 0,
                high_ps: 20 * US as i64,
            };
        }
        if self.below(6) == 0 {
            config.loss = Loss::Bernoulli(0.1);
        }
        if self.below(3) == 0 {
            config.queue = QueueConfig::packets(3);
        }
        if self.below(8) == 0 {
            config.mtu_bytes = Some(600);
        }
        config
    }
}

fn mac(host: usize) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, host as u8 + 1])
}

fn mac_value(host: usize) -> u64 {
    0x0200_0000_0001 + host as u64
}

fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host as u8 + 1)
}

fn ipv6_address(host: usize) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host as u16 + 1)
}

/// Returns, for each switch, the next switch on a shortest path to `to`.
fn next_hops(edges: &[(usize, usize)], switches: usize, to: usize) -> Vec<usize> {
    let mut next = vec![usize::MAX; switches];
    next[to] = to;
    let mut queue = VecDeque::from([to]);
    while let Some(at) = queue.pop_front() {
        for &(a, b) in edges {
            for (near, far) in [(a, b), (b, a)] {
                if near == at && next[far] == usize::MAX {
                    next[far] = at;
                    queue.push_back(far);
                }
            }
        }
    }
    next
}

/// Builds a random network, and traffic and failures from a time on.
fn scenario(seed: u64, families: Families, begin_ps: Time) -> Scenario {
    let mut dice = Dice(Stream::named(seed, "visits"));
    let (switches, hosts) = (1 + dice.below(6), 2 + dice.below(4));
    let mut edges: Vec<(usize, usize)> = (1..switches).map(|s| (dice.below(s), s)).collect();
    if switches > 2 {
        edges.push((0, switches - 1));
    }
    edges.dedup();
    let homes: Vec<usize> = (0..hosts).map(|_| dice.below(switches)).collect();

    // Ports of switches count up: to the hosts, then over the edges.
    let mut ports = vec![0; switches];
    let mut port_of = |switch: usize| {
        ports[switch] += 1;
        ports[switch]
    };
    let host_ports: Vec<u32> = homes.iter().map(|&home| port_of(home)).collect();
    let edge_ports: Vec<(u32, u32)> = (edges.iter())
        .map(|&(a, b)| (port_of(a), port_of(b)))
        .collect();
    let mut network = Network::begin_at(begin_ps, seed, dice.one_of(&[0, 10 * US]));
    for switch in 0..switches {
        let entries: Vec<(u64, u32)> = (0..hosts)
            .map(|host| {
                if homes[host] == switch {
                    return (mac_value(host), host_ports[host]);
                }
                let next = next_hops(&edges, switches, homes[host])[switch];
                let edge = (edges.iter())
                    .position(|&(a, b)| (a, b) == (switch, next) || (b, a) == (switch, next));
                let edge = edge.expect("a neighbour");
                let (a, b) = edge_ports[edge];
                (mac_value(host), if edges[edge].0 == switch { a } else { b })
            })
            .collect();
        let kind = dice.one_of(&[Kind::Plain, Kind::Plain, Kind::Timed, Kind::Learning]);
        let switch_seed = network.seed_of(&format!("s{switch}"));
        let pipeline = switch_of(&entries, kind, dice.below(2) == 0, switch_seed);
        let latency_ps = dice.one_of(&[0, 0, US]);
        network
            .add_switch(&format!("s{switch}"), pipeline, latency_ps)
            .unwrap();
    }
    for host in 0..hosts {
        let config = HostConfig {
            mac: mac(host),
            ipv4: address(host),
            prefix_len: 24,
            gateway_mac: mac(98),
            ipv6: Some(Ipv6Interface {
                address: ipv6_address(host),
                prefix_len: 64,
            }),
        };
        // The switches flood nothing, so nobody is asked.
        let others = (0..hosts).filter(|&other| other != host);
        let settings = HostSettings {
            neighbours: others
                .flat_map(|it| {
                    [address(it).into(), ipv6_address(it).into()].map(|address| (address, mac(it)))
                })
                .collect(),
            ..HostSettings::from(config)
        };
        network.add_host(&format!("h{host}"), settings).unwrap();
    }
    for host in 0..hosts {
        let (name, home) = (format!("h{host}"), format!("s{}", homes[host]));
        network
            .add_link(&name, 0, &home, host_ports[host], dice.config())
            .unwrap();
    }
    for (&(a, b), &(a_port, b_port)) in edges.iter().zip(&edge_ports) {
        let (a, b) = (format!("s{a}"), format!("s{b}"));
        network
            .add_link(&a, a_port, &b, b_port, dice.config())
            .unwrap();
    }
    let names = (0..switches).map(|s| format!("s{s}"));
    let mut result = Scenario {
        network,
        nodes: names.chain((0..hosts).map(|h| format!("h{h}"))).collect(),
        links: (hosts + edges.len()) as u32,
        flows: Vec::new(),
        tcp: Vec::new(),
        captures: Vec::new(),
    };
    // Drawn apart, so that all else of a scenario is the same with and without.
    let mut coins = Dice(Stream::named(seed, "families"));
    let family = || match families == Families::Both && coins.below(2) == 0 {
        true => Family::Ipv6,
        false => Family::Ipv4,
    };
    add_traffic(&mut result, &mut dice, hosts, family);
    add_failures(&mut result, &mut dice);
    add_changes(&mut result, &mut Dice(Stream::named(seed, "changes")));
    // A pcap ends in 2106.
    if dice.below(2) == 0 && begin_ps == Time::ZERO {
        let capture = Captured::default();
        let switch = format!("s{}", dice.below(switches));
        result
            .network
            .capture(&switch, 1, Box::new(capture.clone()))
            .unwrap();
        result.captures.push(capture);
    }
    result
}

fn add_traffic(
    scenario: &mut Scenario,
    dice: &mut Dice,
    hosts: usize,
    mut family: impl FnMut() -> Family,
) {
    let begin_ps = scenario.network.now_ps();
    for _ in 0..1 + dice.below(6) {
        let (source, to) = (dice.below(hosts), dice.below(hosts));
        // Now and then to nobody: by way of a gateway that no switch knows.
        let family = family();
        let destination = match (dice.below(6), family) {
            (0, Family::Ipv4) => Destination::Ipv4(Ipv4Addr::new(192, 0, 2, 1)),
            (0, Family::Ipv6) => Destination::Ipv6(Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 1)),
            (_, Family::Ipv4) => Destination::Ipv4(address(to)),
            (_, Family::Ipv6) => Destination::Ipv6(ipv6_address(to)),
        };
        let source = format!("h{source}");
        let start_ps = dice.one_of(&[0, 0, 300 * US]);
        let flow = match dice.below(4) {
            0 => scenario.network.add_ping(&Ping {
                source,
                destination,
                interval_ps: 100 * US,
                start_ps: begin_ps + start_ps,
                stop_ps: begin_ps + 3 * MS,
                payload_bytes: 60,
            }),
            other => scenario.network.add_udp_stream(&UdpStream {
                source,
                destination,
                packets_per_s: dice.one_of(&[100_000.0, 50_000.0, 10_000.0]),
                spacing: if other == 1 {
                    Spacing::Poisson
                } else {
                    Spacing::Constant
                },
                payload_bytes: dice.one_of(&[100, 100, 1000]),
                start_ps: begin_ps + start_ps,
                stop_ps: begin_ps + 3 * MS,
                source_port: 5001,
                destination_port: 5002,
                log_packets: other != 2,
            }),
        };
        scenario.flows.push((flow.unwrap(), family));
    }
    if dice.below(2) == 0 {
        let family = family();
        let flow = scenario.network.add_tcp(&TcpTransfer {
            client: "h0".to_owned(),
            server: "h1".to_owned(),
            client_port: 40_000,
            server_port: 5001,
            family,
            start_ps: begin_ps,
            application: Application::Bulk,
            stop_ps: Time::NEVER,
            config: tcp::Config::default(),
            dscp: 0,
            goodput_bin_ps: 100 * US,
            log_window: true,
        });
        scenario.tcp.push((flow.unwrap(), family));
    }
}

fn add_failures(scenario: &mut Scenario, dice: &mut Dice) {
    for _ in 0..dice.below(3) {
        let at_ps = dice.below(3000) as u64 * US;
        let network = &mut scenario.network;
        let down_ps = network.now_ps() + at_ps;
        let (down, up) = (Some(down_ps), Some(down_ps + 200 * US));
        if dice.below(3) == 0 {
            let node = &scenario.nodes[dice.below(scenario.nodes.len())];
            network.set_node_state(node, false, down).unwrap();
            network.set_node_state(node, true, up).unwrap();
        } else {
            let link = LinkId(dice.below(scenario.links as usize) as u32);
            network.set_link_state(link, false, down).unwrap();
            network.set_link_state(link, true, up).unwrap();
        }
    }
}

/// Draws a change of a random link or direction at `at_ps`, or now: to delays that are shorter and longer than those that
/// there are, to rates at which queues build up and drain, and to other losses and jitters.
fn change(links: u32, dice: &mut Dice, at_ps: Option<Time>) -> Change {
    let link = LinkId(dice.below(links as usize) as u32);
    let target = match dice.below(3) {
        0 => FailureTarget::Link(link),
        1 => FailureTarget::Direction(link, LinkDirection::AToB),
        _ => FailureTarget::Direction(link, LinkDirection::BToA),
    };
    let mut change = Change::of(target, at_ps);
    if dice.below(2) == 0 {
        let delay_ms = dice.one_of(&[0.0, 0.001, 0.005, 0.05, 0.2]);
        change.delay_ms = Some(Milliseconds::try_from(delay_ms).unwrap());
    }
    if dice.below(2) == 0 {
        change.rate_bps = Some(dice.one_of(&[1_000_000_000, 100_000_000, 20_000_000]));
    }
    if dice.below(4) == 0 {
        change.loss = Some(Loss::Bernoulli(dice.one_of(&[0.0, 0.2, 1.0])));
    }
    if dice.below(6) == 0 {
        change.silent = Some(dice.below(2) == 0);
    }
    if dice.below(6) == 0 {
        let high_ps = dice.one_of(&[0, 20 * US as i64]);
        change.jitter = Some(match high_ps {
            0 => Jitter::None,
            _ => Jitter::Uniform { low_ps: 0, high_ps },
        });
    }
    change
}

fn add_changes(scenario: &mut Scenario, dice: &mut Dice) {
    let begin_ps = scenario.network.now_ps();
    for _ in 0..dice.below(12) {
        // At whole times, at which much else happens, and at others.
        let at_ps = dice.below(3000) as u64 * US + dice.one_of(&[0, 0, 777_777]);
        let change = change(scenario.links, dice, Some(begin_ps + at_ps));
        scenario.network.apply(&change).unwrap();
    }
}

/// Runs a random network, and returns everything that the run shows, as text.
fn run(seed: u64, families: Families, reaction_ps: u64) -> String {
    let mut scenario = scenario(seed, families, Time::ZERO);
    let network = &mut scenario.network;
    network.set_reaction_ps(reaction_ps);
    let mut text = String::new();
    let mut dice = Dice(Stream::named(seed, "changes between runs"));
    // Stopped in the middle, to be read and changed there too.
    for until_ps in [END_PS / 3, END_PS] {
        while network.now_ps() < Time::from(until_ps) {
            for notification in network.run(Time::from(until_ps)).unwrap() {
                writeln!(text, "{notification:?}").unwrap();
            }
        }
        for node in &scenario.nodes {
            writeln!(text, "{node} {:?}", network.node_counters(node)).unwrap();
        }
        for link in 0..scenario.links {
            writeln!(text, "{link} {:?}", network.link_counters(LinkId(link))).unwrap();
        }
        for _ in 0..dice.below(4) {
            let now = change(scenario.links, &mut dice, None);
            network.apply(&now).unwrap();
        }
    }
    for &(flow, _) in &scenario.flows {
        // Some flows have totals alone.
        let logs = (network.sent(flow), network.received(flow));
        let counts = (network.flow_statistics(flow), network.corrupted(flow));
        writeln!(text, "{logs:?} {counts:?}").unwrap();
    }
    for &(flow, _) in &scenario.tcp {
        let known = (network.tcp_statistics(flow), network.tcp_window(flow));
        writeln!(text, "{known:?} {:?}", network.tcp_goodput(flow)).unwrap();
    }
    for capture in &scenario.captures {
        writeln!(text, "{:x?}", capture.bytes()).unwrap();
    }
    writeln!(text, "{} events", network.steps()).unwrap();
    text
}

#[test]
fn visits_change_nothing() {
    let mut packets = 0;
    let mixed = (0..60).map(|seed| (seed, Families::Both));
    // In the last one, what a visit ran last left before the visit's end.
    for (seed, families) in mixed.chain([(765, Families::Ipv4)]) {
        let one_by_one = run(seed, families, 0);
        for reaction_ps in [u64::MAX, 30 * US] {
            let many = run(seed, families, reaction_ps);
            if many != one_by_one {
                let different = one_by_one.lines().zip(many.lines()).find(|(a, b)| a != b);
                panic!("seed {seed}, reaction {reaction_ps}: {different:?}");
            }
        }
        packets += one_by_one
            .lines()
            .filter(|line| line.contains("PacketIn"))
            .count();
    }
    assert!(packets > 100, "{packets} packets to nobody");
}

/// Runs the random network of `seed` from `begin_ps` on, and returns all that can be observed of it as text: notifications,
/// counters, statistics. Times are counted from `begin_ps`, so that runs with other beginnings can be compared.
fn shown(seed: u64, begin_ps: Time) -> String {
    let mut scenario = scenario(seed, Families::Both, begin_ps);
    let network = &mut scenario.network;
    network.set_reaction_ps(30 * US);
    let mut text = String::new();
    let end_ps = begin_ps + END_PS;
    while network.now_ps() < end_ps {
        for Notification {
            time_ps,
            node,
            event,
        } in network.run(end_ps).unwrap()
        {
            let at_ps = time_ps - begin_ps;
            match event {
                // It has the time at which it was sent, and a checksum over that.
                NotificationEvent::PacketIn { port, data } => {
                    writeln!(text, "{at_ps} {node}: port {port}, {} bytes", data.len())
                }
                event => writeln!(text, "{at_ps} {node}: {event:?}"),
            }
            .unwrap();
        }
    }
    for node in &scenario.nodes {
        writeln!(text, "{node} {:?}", network.node_counters(node)).unwrap();
    }
    for link in 0..scenario.links {
        writeln!(text, "{link} {:?}", network.link_counters(LinkId(link))).unwrap();
    }
    for &(flow, _) in &scenario.flows {
        let counts = (network.flow_statistics(flow), network.corrupted(flow));
        writeln!(text, "{counts:?}").unwrap();
    }
    for &(flow, _) in &scenario.tcp {
        let mut known = network.tcp_statistics(flow).unwrap();
        let finished_ps = known.finished_ps.take().map(|at_ps| at_ps - begin_ps);
        writeln!(text, "{known:?} {finished_ps:?}").unwrap();
    }
    writeln!(text, "{} events", network.steps()).unwrap();
    text
}

/// Checks that a run is the same whenever it begins: in its middle, the time passes each number at which a representation of times ends.
#[test]
fn runs_do_not_depend_on_the_epoch() {
    let us = |us: u128| us * u128::from(US);
    let borders = [
        1 << 62,
        1 << 63,
        1 << 64,
        us(1 << 32),
        us(1 << 46),
        us(1 << 48),
        us(1 << 64),
        (1 << 64) * 1000,
    ];
    for seed in 0..30 {
        let plain = shown(seed, Time::from_ps(us(1 << 20)));
        for border in borders {
            // Whole units of the timestamps that programs see.
            let begin_ps = border / us(64) * us(64) - us(1536);
            let there = shown(seed, Time::from_ps(begin_ps));
            let different = plain.lines().zip(there.lines()).find(|(a, b)| a != b);
            assert_eq!(different, None, "seed {seed}, from {begin_ps} ps on");
            assert_eq!(plain.len(), there.len());
        }
    }
}

/// The random networks carry what they are said to carry: over each family streams, pings and TCP arrive somewhere.
#[test]
fn both_families_arrive() {
    let mut arrived = [[0; 2]; 2];
    for seed in 0..60 {
        let mut scenario = scenario(seed, Families::Both, Time::ZERO);
        let network = &mut scenario.network;
        while network.now_ps() < Time::from(END_PS) {
            network.run(Time::from(END_PS)).unwrap();
        }
        for (flow, family) in &scenario.flows {
            let delivered = network.flow_statistics(*flow).unwrap().delivered;
            arrived[*family as usize][0] += delivered;
        }
        for (flow, family) in &scenario.tcp {
            let received = network.tcp_statistics(*flow).unwrap().server.bytes_received;
            arrived[*family as usize][1] += received;
        }
    }
    let [v4, v6] = arrived;
    assert!(
        v4.into_iter().chain(v6).all(|count| count > 1000),
        "{v4:?} {v6:?}"
    );
}
