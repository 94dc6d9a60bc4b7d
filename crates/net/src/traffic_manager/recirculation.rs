//! The recirculation ports of a switch: transmitters of their own that lead back to ingress, each behind a queue. It does not know what
//! a pass through the program does.
//!
//! As on a Tofino, where the internal recirculation port and physical ports in loopback mode have the rate of a port: a packet occupies
//! its port for as long as it would occupy a wire of that rate, preamble and gap included, and runs ingress when its last bit has passed.
//! Queues are drop-tail. Nothing else uses these ports.
//!
//! Round-robin is what the BIER prototype of the University of Tübingen does (IEEE Access 9, 2021, section IV-C): a register names the port of
//! the next packet and moves on with every packet, also with one that is lost. By hash, the first bytes of a packet decide, so
//! packets with equal headers keep their order, and a single stream uses a single port in each pass.

use super::Gauge;
use crate::error::{NetError, out_of_range};
use crate::queue::{Gate, Occupancy, QueueConfig, Verdict};
use crate::serialisation::serialisation_ps;
use engine::{Recirculated, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Most recirculation ports of a switch.
pub const MAX_RECIRCULATION_PORTS: u16 = 256;

/// The number of bytes at a packet's beginning that select its port by hash.
const HASHED_BYTES: usize = 64;

/// How a packet's recirculation port is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// Each packet takes the port after that of the packet before.
    #[default]
    RoundRobin,
    /// Each packet takes a port by a hash (CRC-32) of its first 64 bytes, as they leave the deparser.
    Hash,
}

/// Parameters of a switch's recirculation ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecirculationConfig {
    /// The number of recirculation ports, 1 to 256.
    pub ports: u16,
    /// The rate of each port in bits per second.
    pub rate_bps: u64,
    /// The most bytes that may wait in front of each; 150,000 if no limit is given.
    pub queue_bytes: Option<u64>,
    /// The most packets that may wait in front of each, in place of a limit in bytes.
    pub queue_packets: Option<u64>,
    /// How a packet's port is chosen.
    pub spread: Spread,
}

impl RecirculationConfig {
    /// Creates the configuration of one recirculation port with a rate of `rate_bps` bits per second and a queue of
    /// 150 kB.
    pub fn new(rate_bps: u64) -> RecirculationConfig {
        RecirculationConfig {
            ports: 1,
            rate_bps,
            queue_bytes: None,
            queue_packets: None,
            spread: Spread::default(),
        }
    }

    pub(super) fn check(&self) -> Result<(), NetError> {
        if self.ports == 0 || self.ports > MAX_RECIRCULATION_PORTS {
            return Err(out_of_range("recirculation ports", "from 1 to 256"));
        }
        if self.rate_bps == 0 {
            return Err(out_of_range("the rate of recirculation", "at least 1"));
        }
        self.queue().check()
    }

    /// Returns the configuration of the queue in front of each recirculation port.
    fn queue(&self) -> QueueConfig {
        QueueConfig {
            queue_bytes: self.queue_bytes,
            queue_packets: self.queue_packets,
            ..QueueConfig::default()
        }
    }
}

/// The outcomes for packets of a recirculation port. At any time,
/// `offered = passes + queue_drops + down_drops + packets`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RecirculationStatistics {
    /// Packets for this port.
    pub offered: u64,
    /// Packets that were sent through it.
    pub passes: u64,
    /// Packets that found the port's queue full.
    pub queue_drops: u64,
    /// Packets that were lost because the switch failed or was given another program.
    pub down_drops: u64,
    /// Packets that wait now.
    pub packets: u64,
    /// The most packets that ever waited.
    pub max_packets: u64,
    /// The mean number of waiting packets since the traffic manager was created.
    pub mean_packets: f64,
    /// The share of that time during which the port sent.
    pub utilisation: f64,
}

/// What happens to a recirculated packet.
#[derive(Debug)]
pub(crate) enum Recirculating {
    /// It passes at once, since there are no recirculation ports.
    Through(Recirculated),
    /// It will have passed this port at this time.
    ThereAt { port: u16, there_ps: Time },
    /// It waits behind others.
    Waits,
    /// It is dropped.
    Dropped,
}

/// One recirculation port.
#[derive(Debug)]
struct Port {
    waiting: VecDeque<Recirculated>,
    gate: Gate,
    gauge: Gauge,
    /// The packet being sent, and the time at which it has passed.
    sending: Option<(Time, Recirculated)>,
    /// The total time of sending, in picoseconds, up to the end of the packet being sent.
    busy_ps: u64,
}

impl Port {
    /// Begins to send a packet through the port at a rate of `rate_bps` bits per second. Returns the time at which it
    /// will have passed.
    fn send(&mut self, now_ps: Time, rate_bps: u64, packet: Recirculated) -> Time {
        let takes_ps = serialisation_ps(packet.bytes(), rate_bps);
        let there_ps = now_ps.saturating_add(takes_ps);
        self.busy_ps = self.busy_ps.saturating_add(takes_ps);
        self.sending = Some((there_ps, packet));
        there_ps
    }

    /// Returns the time in picoseconds until the packet being sent has passed the port; 0 if none is being sent.
    fn rest_ps(&self, now_ps: Time) -> u64 {
        let there_ps = self
            .sending
            .as_ref()
            .map_or(Time::ZERO, |(there_ps, _)| *there_ps);
        there_ps.saturating_sub(now_ps)
    }
}

/// All recirculation ports of a switch.
#[derive(Debug)]
pub(super) struct RecirculationPorts {
    config: RecirculationConfig,
    ports: Vec<Port>,
    /// The port of the next packet by round-robin.
    next: u16,
}

impl RecirculationPorts {
    pub(super) fn new(config: RecirculationConfig) -> RecirculationPorts {
        let port = |_| Port {
            waiting: VecDeque::new(),
            gate: Gate::new(config.queue(), config.rate_bps, 0, ""),
            gauge: Gauge::default(),
            sending: None,
            busy_ps: 0,
        };
        RecirculationPorts {
            ports: (0..config.ports).map(port).collect(),
            config,
            next: 0,
        }
    }

    fn port_of(&mut self, packet: &Recirculated) -> u16 {
        match self.config.spread {
            Spread::RoundRobin => {
                let port = self.next;
                self.next = (port + 1) % self.config.ports;
                port
            }
            Spread::Hash => {
                let stored = packet.packet().stored();
                let hash = engine::hash::crc32(&stored[..stored.len().min(HASHED_BYTES)]);
                (hash % u32::from(self.config.ports)) as u16
            }
        }
    }

    /// Offers a packet that is to be recirculated to the port that is chosen for it, where it is sent, waits, or is
    /// dropped and counted. Returns which of these happens.
    pub(super) fn offer(&mut self, now_ps: Time, packet: Recirculated) -> Recirculating {
        let number = self.port_of(&packet);
        let port = &mut self.ports[usize::from(number)];
        let statistics = &mut port.gauge.statistics;
        statistics.offered += 1;
        let free = port.sending.is_none();
        let found = Occupancy {
            packets: statistics.packets,
            bytes: statistics.bytes,
            transmitter_free: free,
            idle_since_ps: None,
        };
        if port.gate.admit(now_ps, found, packet.bytes()) != Verdict::Take {
            statistics.queue_drops += 1;
            return Recirculating::Dropped;
        }
        if !free {
            port.gauge.push(now_ps, packet.bytes() as u64);
            port.waiting.push_back(packet);
            return Recirculating::Waits;
        }
        statistics.taken += 1;
        Recirculating::ThereAt {
            port: number,
            there_ps: port.send(now_ps, self.config.rate_bps, packet),
        }
    }

    /// Returns the packet that has passed a recirculation port by `now_ps`; `None` if none has. Begins to send the next
    /// one, and also returns the time at which that will have passed, if there is one.
    pub(super) fn passed(
        &mut self,
        now_ps: Time,
        port: u16,
    ) -> Option<(Recirculated, Option<Time>)> {
        let port = self.ports.get_mut(usize::from(port))?;
        let (_, packet) = port.sending.take_if(|(there_ps, _)| *there_ps <= now_ps)?;
        let next_ps = port.waiting.pop_front().map(|next| {
            port.gauge.pop(now_ps, next.bytes() as u64);
            port.send(now_ps, self.config.rate_bps, next)
        });
        Some((packet, next_ps))
    }

    /// Drops all packets that wait or are being sent, and counts them as lost. Returns their number.
    pub(super) fn lose_all(&mut self, now_ps: Time) -> u64 {
        let mut lost = 0;
        for port in &mut self.ports {
            port.busy_ps -= port.rest_ps(now_ps);
            port.waiting.clear();
            lost += port.gauge.lose_all(now_ps) + u64::from(port.sending.take().is_some());
        }
        lost
    }

    /// Computes the statistics of each recirculation port, ordered by number. Means are over the time from `since_ps`
    /// to `now_ps`.
    pub(super) fn statistics(&self, since_ps: Time, now_ps: Time) -> Vec<RecirculationStatistics> {
        let elapsed_ps = now_ps.saturating_sub(since_ps).max(1);
        let of = |port: &Port| {
            let queue = port.gauge.statistics(since_ps, now_ps);
            let sent_ps = port.busy_ps - port.rest_ps(now_ps);
            RecirculationStatistics {
                offered: queue.offered,
                passes: queue.taken,
                queue_drops: queue.queue_drops,
                down_drops: queue.down_drops,
                packets: queue.packets,
                max_packets: queue.max_packets,
                mean_packets: queue.mean_packets,
                utilisation: sent_ps as f64 / elapsed_ps as f64,
            }
        };
        self.ports.iter().map(of).collect()
    }
}
