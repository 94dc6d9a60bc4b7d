//! Multicast by BIER: the application's own program (`python/holdfast/apps/bier/bier.p4`) and its hand-written twin.
//!
//! *Transit*: packets with BitStrings of 256 bits for `next_hops` neighbours, each by its F-BM a random share of the bits; every packet has
//! a bit for each of them, so it leaves in as many copies. A switch that replicates by clusters has 16 neighbours, in clusters of as many
//! as packets are for; the others have no neighbours besides those. *BFIR*: IPv4 packets of 1,000 channels (S,G), which get their headers and
//! leave to four neighbours. The function of all three ways to replicate is one, and so is the hand-written version; only the order in which
//! copies leave is the program's. `size_bytes` is that of the packet without its BIER header.

mod handwritten;

use crate::contents::{Target, lead_to_domain};
use crate::random::Random;
use crate::source;
use crate::traffic::{drawn, write_ethernet, write_ipv4};
use crate::workload::Workload;
use engine::control::{CloneSession, Entity, MulticastGroup, Operation, Replica, Update};
use engine::{Packet, Switch};
use handwritten::BierNode;
use ir::{Bits, KeyMatch};
use std::rc::Rc;

/// The number of bits of a BitString.
const BSL: u32 = 256;

/// A BitString as limbs, the least significant first.
type BitString = [u64; 4];

/// The number of bytes of a BIER header.
const BIER_BYTES: usize = 44;

const ETHERTYPE_BIER: u16 = 0xab37;
const ETHERTYPE_IPV4: u16 = 0x0800;
const UDP: u8 = 17;

/// The port at which packets from a switch of the domain arrive.
const CORE_PORT: u32 = 1;
const HOST_PORT: u32 = 0;

/// The BIFT-id for BSL code 3 (256 bits), sub-domain 0, set identifier 0.
const BIFT_ID: u32 = 0x30000;

/// The BFIR-id of this node.
const BFIR_ID: u16 = 7;

/// The largest number of bytes that a BIER packet may have after the Ethernet header.
const MTU: u16 = 9000;

/// The number of the multicast group with all neighbours; the groups of clusters follow.
const FIRST_GROUP: u32 = 1024;
const FIRST_CLUSTER: u32 = 0x3000;

/// The first of the clone sessions that recirculate packets; those for output ports are numbered from 1 on.
const FIRST_RECIRCULATION_SESSION: u32 = 514;

/// The number of neighbours of a switch that replicates by clusters.
const CLUSTER_NEIGHBOURS: usize = 16;

/// How the program replicates packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// By recirculation: each pass serves one next hop.
    Recirculate,
    /// In one pass: one multicast group has all neighbours.
    OnePass,
    /// By multicast groups of clusters, that is, of neighbours that occur together.
    Clusters,
}

impl Replication {
    fn define(self) -> &'static str {
        match self {
            Replication::Recirculate => "RECIRCULATE",
            Replication::OnePass => "ONE_PASS",
            Replication::Clusters => "CLUSTERS",
        }
    }
}

/// A neighbour, with the BFERs that are reached through it.
#[derive(Clone, Copy)]
pub struct Neighbour {
    f_bm: BitString,
    port: u16,
    source: u64,
    destination: u64,
}

/// A multicast channel whose packets enter the domain here.
#[derive(Clone, Copy)]
pub struct Channel {
    source: u32,
    group: u32,
    bits: BitString,
}

/// The table contents of the P4 program and the hand-written version.
struct Configuration {
    replication: Replication,
    neighbours: Vec<Neighbour>,
    /// The number of neighbours to which each packet has bits.
    next_hops: usize,
    channels: Vec<Channel>,
}

fn with_bit(bits: &mut BitString, bit: usize) {
    bits[bit / 64] |= 1 << (bit % 64);
}

fn has_bit(bits: &BitString, bit: usize) -> bool {
    bits[bit / 64] >> (bit % 64) & 1 == 1
}

impl Configuration {
    fn new(replication: Replication, next_hops: usize, channels: usize) -> Configuration {
        let mut random = Random::new(12);
        let count = match replication {
            Replication::Clusters => CLUSTER_NEIGHBOURS,
            _ => next_hops,
        };
        let mut neighbours: Vec<Neighbour> = (0..count as u16)
            .map(|i| Neighbour {
                f_bm: [0; 4],
                port: i + 2,
                source: 0x0200_0000_0100 | u64::from(i),
                destination: 0x0600_0000_0200 | u64::from(i),
            })
            .collect();
        for bit in 0..BSL as usize {
            // Each has some, whatever is drawn.
            let at = if bit < count {
                bit
            } else {
                random.below(count)
            };
            with_bit(&mut neighbours[at].f_bm, bit);
        }
        let mut configuration = Configuration {
            replication,
            neighbours,
            next_hops,
            channels: Vec::new(),
        };
        configuration.channels = (0..channels as u32)
            .map(|i| Channel {
                source: 0xc612_0001,
                group: 0xe801_0000 | i,
                bits: configuration.draw(&mut random),
            })
            .collect();
        configuration
    }

    /// Draws a random BitString with up to two bits for each neighbour of one random cluster.
    fn draw(&self, random: &mut Random) -> BitString {
        let first = random.below(self.neighbours.len() / self.next_hops) * self.next_hops;
        let mut bits = [0; 4];
        for neighbour in &self.neighbours[first..][..self.next_hops] {
            for _ in 0..2 {
                let from = random.below(BSL as usize);
                let found = (0..BSL as usize)
                    .map(|i| (from + i) % BSL as usize)
                    .find(|&bit| has_bit(&neighbour.f_bm, bit));
                if let Some(bit) = found {
                    with_bit(&mut bits, bit);
                }
            }
        }
        bits
    }

    fn fill(&self, switch: &mut Switch) -> Result<(), String> {
        let all: Vec<usize> = (0..self.neighbours.len()).collect();
        self.fill_bift(switch)?;
        self.fill_copies(switch)?;
        self.fill_group(switch, FIRST_GROUP, &all)?;
        match self.replication {
            Replication::OnePass => {}
            Replication::Recirculate => self.fill_next_hops(switch)?,
            Replication::Clusters => {
                for (cluster, members) in (FIRST_CLUSTER..).zip(all.chunks(self.next_hops)) {
                    self.fill_group(switch, cluster, members)?;
                    self.fill_cluster(switch, cluster, members)?;
                }
            }
        }
        self.fill_sessions(switch)?;
        self.fill_channels(switch)
    }

    fn fill_bift(&self, switch: &mut Switch) -> Result<(), String> {
        let bifts = Target::new(switch, "select_copies.bifts", "select_copies.bift")?;
        let ports = (self.neighbours.iter()).fold([0; 8], |mut ports: [u64; 8], neighbour| {
            ports[usize::from(neighbour.port / 64)] |= 1 << (neighbour.port % 64);
            ports
        });
        let args = [
            Bits::zero(BSL),
            Bits::from_limbs(BSL, &self.behind(&self.neighbours)),
            Bits::from_u64(16, FIRST_GROUP.into()),
            Bits::from_u64(16, 0),
            Bits::from_limbs(512, &ports),
        ];
        let key = KeyMatch::Value(Bits::from_u64(20, BIFT_ID.into()));
        insert(switch, &bifts, vec![key], 0, args.into())
    }

    /// Returns the BitString of all egress routers that are reached through these neighbours.
    fn behind(&self, neighbours: &[Neighbour]) -> BitString {
        (neighbours.iter()).fold([0; 4], |bits, neighbour| {
            std::array::from_fn(|i| bits[i] | neighbour.f_bm[i])
        })
    }

    /// Adds a multicast group of the neighbours with the numbers `members`. Fails if the switch refuses it.
    fn fill_group(&self, switch: &mut Switch, group: u32, members: &[usize]) -> Result<(), String> {
        let replicas = (members.iter())
            .map(|&at| Replica {
                port: self.neighbours[at].port.into(),
                rid: at as u16,
            })
            .collect();
        write(
            switch,
            Entity::MulticastGroup(MulticastGroup {
                group_id: group,
                replicas,
            }),
        )
    }

    /// Fills the tables that edit the replicas of a packet, one entry for each neighbour. Fails if the switch refuses
    /// an entry.
    fn fill_copies(&self, switch: &mut Switch) -> Result<(), String> {
        let copies = Target::new(switch, "BierEgress.copies", "BierEgress.copy")?;
        for (rid, neighbour) in (0u64..).zip(&self.neighbours) {
            let key = vec![
                KeyMatch::Value(Bits::from_u64(16, FIRST_GROUP.into())),
                KeyMatch::Value(Bits::from_u64(16, rid)),
            ];
            let args = vec![
                Bits::from_limbs(BSL, &neighbour.f_bm),
                Bits::from_u64(48, neighbour.source),
                Bits::from_u64(48, neighbour.destination),
            ];
            insert(switch, &copies, key, 0, args)?;
        }
        Ok(())
    }

    fn fill_next_hops(&self, switch: &mut Switch) -> Result<(), String> {
        let table = Target::new(switch, "next_hops", "next_hop")?;
        for (instance, neighbour) in (0u64..).zip(&self.neighbours) {
            let key = vec![
                KeyMatch::Value(Bits::from_u64(16, FIRST_GROUP.into())),
                only_of(&neighbour.f_bm),
            ];
            let args = vec![
                Bits::from_u64(16, instance),
                Bits::from_limbs(BSL, &neighbour.f_bm),
                Bits::from_u64(9, neighbour.port.into()),
                Bits::from_u64(48, neighbour.source),
                Bits::from_u64(48, neighbour.destination),
            ];
            insert(switch, &table, key, 1, args)?;
        }
        Ok(())
    }

    fn fill_cluster(
        &self,
        switch: &mut Switch,
        cluster: u32,
        members: &[usize],
    ) -> Result<(), String> {
        let table = Target::new(switch, "clusters", "cluster")?;
        let inside: Vec<Neighbour> = members.iter().map(|&at| self.neighbours[at]).collect();
        let pattern = only_of(&self.behind(&inside));
        let group = KeyMatch::Value(Bits::from_u64(16, FIRST_GROUP.into()));
        let args = vec![Bits::from_u64(16, cluster.into())];
        insert(switch, &table, vec![group, pattern], 100, args)
    }

    /// Adds a clone session for each port, and the session for recirculation. Fails if the switch refuses one.
    fn fill_sessions(&self, switch: &mut Switch) -> Result<(), String> {
        let ports = self.neighbours.iter().map(|neighbour| neighbour.port);
        let sessions = ports.map(|port| (u32::from(port) + 1, u32::from(port)));
        for (session_id, port) in sessions.chain([(FIRST_RECIRCULATION_SESSION, 0)]) {
            write(
                switch,
                Entity::CloneSession(CloneSession {
                    session_id,
                    replicas: vec![Replica { port, rid: 0 }],
                    packet_length_bytes: 0,
                    class_of_service: 0,
                }),
            )?;
        }
        Ok(())
    }

    fn fill_channels(&self, switch: &mut Switch) -> Result<(), String> {
        let table = Target::new(switch, "impose.channels", "impose.impose")?;
        for channel in &self.channels {
            let key = vec![
                KeyMatch::Value(Bits::from_u64(32, channel.source.into())),
                KeyMatch::Value(Bits::from_u64(32, channel.group.into())),
            ];
            let args = vec![
                Bits::from_u64(16, BFIR_ID.into()),
                Bits::from_u64(20, BIFT_ID.into()),
                Bits::from_limbs(BSL, &channel.bits),
                Bits::from_u64(16, 0),
                Bits::from_u64(16, MTU.into()),
            ];
            insert(switch, &table, key, 0, args)?;
        }
        Ok(())
    }

    fn by_hand(&self) -> BierNode {
        let lowest_first = self.replication == Replication::Recirculate;
        let mut node = BierNode::new(BIFT_ID, &self.neighbours, lowest_first, CORE_PORT);
        for channel in &self.channels {
            node.add_channel(*channel);
        }
        node
    }
}

/// Makes a match for bit strings in which only bits of `bits` are set.
fn only_of(bits: &BitString) -> KeyMatch {
    let others: BitString = std::array::from_fn(|i| !bits[i]);
    KeyMatch::Masked {
        value: Bits::zero(BSL),
        mask: Bits::from_limbs(BSL, &others),
    }
}

fn insert(
    switch: &mut Switch,
    table: &Target,
    matches: Vec<KeyMatch>,
    priority: i32,
    args: Vec<Bits>,
) -> Result<(), String> {
    switch
        .insert_entry(table.table(), table.wide_entry(matches, priority, args))
        .map_err(|e| e.to_string())
}

fn write(switch: &mut Switch, entity: Entity) -> Result<(), String> {
    let operation = Operation::Insert;
    switch
        .write(Update { operation, entity })
        .map_err(|e| e.to_string())
}

fn prepared(configuration: &Configuration) -> Result<(Switch, Box<BierNode>), String> {
    let replication = configuration.replication.define().to_string();
    let mut switch = source::switch(
        "python/holdfast/apps/bier/bier.p4",
        &[("REPLICATION", replication)],
    )?;
    lead_to_domain(&mut switch, &[CORE_PORT])?;
    configuration.fill(&mut switch)?;
    Ok((switch, Box::new(configuration.by_hand())))
}

/// Makes the workload of BIER packets that pass the node, each with copies for `next_hops` neighbours. Fails if the
/// program does not compile or an entry is refused.
pub fn transit(replication: Replication, next_hops: usize) -> Result<Workload, String> {
    let configuration = Rc::new(Configuration::new(replication, next_hops, 0));
    let (switch, handwritten) = prepared(&configuration)?;
    Ok(Workload {
        switch,
        handwritten,
        traffic: drawn(13, move |size, random, buffer| {
            transit_packet(&configuration, size, random, buffer)
        }),
    })
}

/// Makes the workload of IPv4 packets of `channels` channels that enter the BIER domain at the node. Fails if the
/// program does not compile or an entry is refused.
pub fn bfir(channels: usize) -> Result<Workload, String> {
    let configuration = Rc::new(Configuration::new(Replication::OnePass, 4, channels));
    let (switch, handwritten) = prepared(&configuration)?;
    Ok(Workload {
        switch,
        handwritten,
        traffic: drawn(14, move |size, random, buffer| {
            channel_packet(&configuration, size, random, buffer)
        }),
    })
}

/// Writes the IPv4 header of a UDP packet into `header`; the whole frame has `size` bytes.
fn write_multicast(header: &mut [u8], size: usize, source: u32, group: u32) {
    write_ipv4(header, size - 14, UDP, source, group);
}

/// Writes a random BIER packet into the buffer, which has `size` bytes without the BIER header; returns the port at
/// which it arrives.
fn transit_packet(
    configuration: &Configuration,
    size: usize,
    random: &mut Random,
    buffer: &mut Packet,
) -> u32 {
    let mut header = [0; 14 + BIER_BYTES + 20];
    write_ethernet(
        &mut header,
        0x0200_0000_00ff,
        0x0600_0000_0001,
        ETHERTYPE_BIER,
    );
    header[14..18].copy_from_slice(&(BIFT_ID << 12 | 1 << 8 | 64).to_be_bytes());
    let entropy = random.next_u32() & 0xf_ffff;
    header[18..22].copy_from_slice(&(3 << 20 | entropy).to_be_bytes());
    header[23] = 4;
    header[24..26].copy_from_slice(&BFIR_ID.to_be_bytes());
    let bits = configuration.draw(random);
    for (chunk, limb) in header[26..58].rchunks_exact_mut(8).zip(bits) {
        chunk.copy_from_slice(&limb.to_be_bytes());
    }
    write_multicast(&mut header[58..], size, 0xc612_0001, 0xe801_0000);
    buffer.refill(&header, size + BIER_BYTES);
    CORE_PORT
}

/// Writes a packet of `size` bytes of a random channel into the buffer; returns the port at which it arrives.
fn channel_packet(
    configuration: &Configuration,
    size: usize,
    random: &mut Random,
    buffer: &mut Packet,
) -> u32 {
    let channels = &configuration.channels;
    let channel = channels[random.below(channels.len())];
    let mut header = [0; 34];
    write_ethernet(
        &mut header,
        0x0100_5e01_0000,
        0x0600_0000_0001,
        ETHERTYPE_IPV4,
    );
    write_multicast(&mut header[14..], size, channel.source, channel.group);
    buffer.refill(&header, size);
    HOST_PORT
}
