//! 1+1 protection: the application's own program (`python/holdfast/apps/protect/protect.p4`) and its hand-written twin.
//!
//! A node is the ingress of 1,000 connections with a flow each (half of the flows host pairs, half with protocol and destination
//! port), the egress of 1,000 others, and has 1,000 routes. *Ingress*: packets of uniformly chosen flows; each leaves as two copies.
//! *Egress*: both copies of the packets of uniformly chosen connections, the second sixteen packets after the first; half of them
//! leave, unpacked; once with the paper's window, once with the vector algorithm, a history of 64 and a reset after a second of silence.
//! At the ingress the algorithm makes no difference. The program knows IPv6 and connections within connections as well, the hand-written
//! version IPv4 alone. `size_bytes` is that of the packet without the tunnel's 28 bytes.

mod acceptance;
mod handwritten;

use crate::contents::{Match, Target, lead_to_domain};
use crate::random::Random;
use crate::router::{next_hops, prefixes};
use crate::source;
use crate::structures::routes::{NextHop, Prefix};
use crate::traffic::{Traffic, drawn, write_ethernet, write_ipv4};
use crate::workload::Workload;
use engine::control::{Entity, MulticastGroup, Operation, Replica, Update};
use engine::{Packet, Switch};
use handwritten::ProtectNode;
use std::collections::VecDeque;
use std::rc::Rc;

const UDP: u8 = 17;

/// The IP protocol number of the protection header, one for experiments (RFC 3692); it is the program's default.
const PROTECTION: u8 = 253;

/// The number of packets by which the second path is behind the first.
const PATH_DIFFERENCE: usize = 16;

/// The algorithm by which the end of a connection recognises the first copy of each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// The paper's window, which is never reset.
    Window,
    /// The VectorRecoveryAlgorithm of IEEE 802.1CB.
    Vector {
        /// The number of sequence numbers that are remembered, 2 to 64.
        history_length: u32,
        /// The time in microseconds without a packet after which any number is accepted.
        reset_timeout_us: u32,
    },
}

impl Acceptance {
    /// The default of applications.
    pub const VECTOR: Acceptance = Acceptance::Vector {
        history_length: 64,
        reset_timeout_us: 1_000_000,
    };
}

/// A flow that is protected by the connection with the same index.
#[derive(Clone, Copy)]
pub struct Flow {
    source: u32,
    destination: u32,
    /// The UDP destination port; `None` if all packets between the two hosts belong to the flow.
    port: Option<u16>,
}

/// Where a copy is sent: the next hop, and the address of the end of its tunnel.
#[derive(Clone, Copy)]
pub struct TunnelCopy {
    hop: NextHop,
    tunnel_end: u32,
}

/// The table contents of the P4 program and the hand-written version.
struct Configuration {
    flows: Vec<Flow>,
    copies: Vec<[TunnelCopy; 2]>,
    /// The addresses of this node at the ends of the tunnels, two per connection.
    endpoints: Vec<[u32; 2]>,
    routes: Vec<(Prefix, NextHop)>,
    acceptance: Acceptance,
}

/// The address of this node at the beginning of tunnels.
const TUNNEL_BEGIN: u32 = 0x0aff_0001;

/// The ports at which copies arrive, by path.
const PATH_PORTS: [u32; 2] = [1, 2];

/// The size in bytes of the largest IP packet that the tunnels carry.
const MTU: u16 = 9000;

impl Configuration {
    fn new(count: usize, acceptance: Acceptance) -> Configuration {
        let mut random = Random::new(8);
        let hops = next_hops();
        let flow = |i: usize| Flow {
            source: 0xc612_0000 | i as u32,
            destination: 0xc613_0000 | i as u32,
            port: (i % 2 == 1).then_some(4000 + i as u16),
        };
        let copy = |i: usize, path: u32, hop: NextHop| TunnelCopy {
            hop,
            tunnel_end: 0x0afe_0000 | (2 * i as u32 + path),
        };
        Configuration {
            flows: (0..count).map(flow).collect(),
            copies: (0..count)
                .map(|i| [0, 1].map(|path| copy(i, path, hops[random.below(hops.len())])))
                .collect(),
            endpoints: (0..count as u32)
                .map(|i| [0, 1].map(|path| 0x0afd_0000 | (2 * i + path)))
                .collect(),
            routes: (prefixes(count).into_iter().enumerate())
                .map(|(i, prefix)| (prefix, hops[i % hops.len()]))
                .collect(),
            acceptance,
        }
    }

    fn fill(&self, switch: &mut Switch) -> Result<(), String> {
        lead_to_domain(switch, &PATH_PORTS)?;
        let flows = Target::new(switch, "protected_flows", "protect")?;
        let copies = Target::new(switch, "tunnel_copies", "send_copy")?;
        let endpoints = Target::new(switch, "tunnel_endpoints", "end_path")?;
        let select = match self.acceptance {
            Acceptance::Window => "select_connection",
            Acceptance::Vector { .. } => "select_vector",
        };
        let connections = Target::new(switch, "egress_connections", select)?;
        let routes = Target::new(switch, "ipv4_lpm", "forward")?;
        for (i, flow) in self.flows.iter().enumerate() {
            let exactly = |value: u128, mask| Match::Ternary(value, mask);
            let with_port = |value: u16, mask| match flow.port {
                Some(_) => Match::Ternary(value.into(), mask),
                None => Match::Ternary(0, 0),
            };
            let matches = [
                exactly(flow.source.into(), 0xffff_ffff),
                exactly(flow.destination.into(), 0xffff_ffff),
                with_port(UDP.into(), 0xff),
                Match::Ternary(0, 0),
                with_port(flow.port.unwrap_or(0), 0xffff),
            ];
            let (index, group) = (i as u128, i as u128 + 1);
            let [first, _] = self.copies[i];
            let args = [
                index,
                index,
                TUNNEL_BEGIN.into(),
                first.tunnel_end.into(),
                group,
                MTU.into(),
            ];
            flows.insert(switch, &matches, 1000, &args)?;
            self.fill_copies(switch, &copies, i)?;
            let args = match self.acceptance {
                Acceptance::Window => vec![index],
                Acceptance::Vector {
                    history_length,
                    reset_timeout_us,
                } => vec![index, history_length.into(), reset_timeout_us.into()],
            };
            connections.insert(switch, &[Match::Exact(index)], 0, &args)?;
            for (path, address) in self.endpoints[i].into_iter().enumerate() {
                let matches = [Match::Exact(address.into())];
                endpoints.insert(switch, &matches, 0, &[path as u128])?;
            }
        }
        for (prefix, hop) in &self.routes {
            let matches = [Match::Lpm(prefix.address.into(), prefix.len)];
            let args = [hop.port.into(), hop.source.into(), hop.destination.into()];
            routes.insert(switch, &matches, 0, &args)?;
        }
        Ok(())
    }

    /// Adds the multicast group of connection `i`, and the entries that put its copies into tunnels. Fails if the
    /// switch refuses one.
    fn fill_copies(&self, switch: &mut Switch, table: &Target, i: usize) -> Result<(), String> {
        let mut replicas = Vec::new();
        for (copy, rid) in self.copies[i].iter().zip(1u16..) {
            let matches = [Match::Exact(i as u128 + 1), Match::Exact(rid.into())];
            let (source, destination) = (copy.hop.source.into(), copy.hop.destination.into());
            table.insert(
                switch,
                &matches,
                0,
                &[source, destination, copy.tunnel_end.into()],
            )?;
            let port = copy.hop.port.into();
            replicas.push(Replica { port, rid });
        }
        let group_id = i as u32 + 1;
        let entity = Entity::MulticastGroup(MulticastGroup { group_id, replicas });
        let operation = Operation::Insert;
        switch
            .write(Update { operation, entity })
            .map_err(|e| e.to_string())
    }

    fn by_hand(&self) -> ProtectNode {
        let mut node = ProtectNode::new(TUNNEL_BEGIN, MTU, self.acceptance, &PATH_PORTS);
        for (flow, copies) in self.flows.iter().zip(&self.copies) {
            node.protect(*flow, *copies);
        }
        for endpoints in &self.endpoints {
            node.end_connection(*endpoints);
        }
        for (prefix, hop) in &self.routes {
            node.route(*prefix, *hop);
        }
        node
    }
}

fn prepared(
    count: usize,
    acceptance: Acceptance,
) -> Result<(Rc<Configuration>, Switch, Box<ProtectNode>), String> {
    let configuration = Rc::new(Configuration::new(count, acceptance));
    let mut switch = source::switch("python/holdfast/apps/protect/protect.p4", &[])?;
    configuration.fill(&mut switch)?;
    let node = Box::new(configuration.by_hand());
    Ok((configuration, switch, node))
}

/// Makes the workload of packets that enter the tunnels of `count` connections. Fails if the program does not compile
/// or an entry is refused.
pub fn ingress(count: usize) -> Result<Workload, String> {
    let (configuration, switch, handwritten) = prepared(count, Acceptance::Window)?;
    Ok(Workload {
        switch,
        handwritten,
        traffic: drawn(9, move |size, random, buffer| {
            packet(&configuration, size, random, buffer)
        }),
    })
}

/// Makes the workload of copies that leave the tunnels of `count` connections. Fails if the program does not compile
/// or an entry is refused.
pub fn egress(count: usize, acceptance: Acceptance) -> Result<Workload, String> {
    lossy_egress(count, acceptance, 0)
}

/// Makes the workload of [`egress`], but with `lost` of every ten copies lost on the first path.
fn lossy_egress(count: usize, acceptance: Acceptance, lost: usize) -> Result<Workload, String> {
    let (configuration, switch, handwritten) = prepared(count, acceptance)?;
    // Sequence numbers jump ahead when the traffic begins anew, as the switches' registers stay.
    let epoch = Rc::new(std::cell::Cell::new(0));
    Ok(Workload {
        switch,
        handwritten,
        traffic: Box::new(move |size| {
            epoch.set(epoch.get() + 1);
            let traffic = TunnelTraffic::new(configuration.clone(), size, epoch.get());
            Box::new(TunnelTraffic { lost, ..traffic })
        }),
    })
}

/// Writes the Ethernet, IPv4 and UDP headers of a packet of `size` bytes to UDP port `port`.
fn write_udp(header: &mut [u8; 42], size: usize, source: u32, destination: u32, port: u16) {
    write_ethernet(header, 0x0200_0000_00ff, 0x0600_0000_0001, 0x0800);
    write_ipv4(&mut header[14..], size - 14, UDP, source, destination);
    header[34..36].copy_from_slice(&5000u16.to_be_bytes());
    header[36..38].copy_from_slice(&port.to_be_bytes());
    header[38..40].copy_from_slice(&((size - 34) as u16).to_be_bytes());
}

/// Writes a packet of `size` bytes of a protected flow into the buffer; returns the port at which it arrives.
fn packet(
    configuration: &Configuration,
    size: usize,
    random: &mut Random,
    buffer: &mut Packet,
) -> u32 {
    let flows = &configuration.flows;
    let flow = flows[random.below(flows.len())];
    let mut header = [0; 42];
    let port = flow.port.unwrap_or(9);
    write_udp(&mut header, size, flow.source, flow.destination, port);
    buffer.refill(&header, size);
    1
}

/// A packet that was sent on both paths.
#[derive(Clone, Copy)]
struct Protected {
    connection: usize,
    sequence_number: u32,
    source: u32,
    destination: u32,
}

/// Traffic of copies that arrive from both paths.
struct TunnelTraffic {
    configuration: Rc<Configuration>,
    size: usize,
    epoch: u32,
    random: Random,
    last_sent: Vec<u32>,
    /// The packets whose copies on the second path have not arrived yet.
    behind: VecDeque<Protected>,
    second_path: bool,
    /// The number of every ten copies on the first path that are lost.
    lost: usize,
}

impl TunnelTraffic {
    fn new(configuration: Rc<Configuration>, size: usize, epoch: u32) -> TunnelTraffic {
        TunnelTraffic {
            size,
            epoch,
            random: Random::new(10),
            last_sent: vec![epoch << 24; configuration.endpoints.len()],
            behind: VecDeque::new(),
            second_path: false,
            lost: 0,
            configuration,
        }
    }

    fn send(&mut self) -> Protected {
        let connection = self.random.below(self.last_sent.len());
        self.last_sent[connection] += 1;
        let routes = &self.configuration.routes;
        let (prefix, _) = routes[self.random.below(routes.len())];
        let packet = Protected {
            connection,
            sequence_number: self.last_sent[connection],
            source: self.random.next_u32(),
            destination: prefix.address,
        };
        self.behind.push_back(packet);
        packet
    }

    fn write(&self, packet: Protected, path: usize, buffer: &mut Packet) {
        let mut inner = [0; 42];
        write_udp(&mut inner, self.size, packet.source, packet.destination, 9);
        let mut header = [0; 70];
        header[..14].copy_from_slice(&inner[..14]);
        let tunnel_end = self.configuration.endpoints[packet.connection][path];
        let total_len = self.size + 14;
        write_ipv4(
            &mut header[14..],
            total_len,
            PROTECTION,
            0x0afc_0001,
            tunnel_end,
        );
        header[34..37].copy_from_slice(&(packet.connection as u32).to_be_bytes()[1..]);
        header[37..41].copy_from_slice(&packet.sequence_number.to_be_bytes());
        header[41] = 4;
        header[42..].copy_from_slice(&inner[14..]);
        buffer.refill(&header, self.size + 28);
    }
}

impl Traffic for TunnelTraffic {
    fn next(&mut self, buffer: &mut Packet) -> u32 {
        let turn = self.second_path;
        self.second_path = !turn;
        match turn && self.behind.len() > PATH_DIFFERENCE {
            true => {
                if let Some(packet) = self.behind.pop_front() {
                    self.write(packet, 1, buffer);
                }
                PATH_PORTS[1]
            }
            false => {
                let mut packet = self.send();
                while self.lost > 0 && self.random.below(10) < self.lost {
                    packet = self.send();
                }
                self.write(packet, 0, buffer);
                PATH_PORTS[0]
            }
        }
    }

    fn again(&self) -> Box<dyn Traffic> {
        let configuration = self.configuration.clone();
        let traffic = TunnelTraffic::new(configuration, self.size, self.epoch);
        Box::new(TunnelTraffic {
            lost: self.lost,
            ..traffic
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::check;

    /// Losses bring numbers out of order, some of them beyond short histories.
    #[test]
    fn both_versions_accept_the_same_when_packets_are_lost() {
        let vector = |history_length| Acceptance::Vector {
            history_length,
            reset_timeout_us: 1_000_000,
        };
        for acceptance in [
            Acceptance::Window,
            vector(2),
            vector(5),
            vector(63),
            vector(64),
        ] {
            for count in [1, 4, 40] {
                let mut workload = lossy_egress(count, acceptance, 2).expect("a workload");
                for packets in [4096, 1024] {
                    if let Err(why) = check(&mut workload, 64, packets) {
                        panic!("{acceptance:?}, {count} connections: {why}");
                    }
                }
            }
        }
    }
}
