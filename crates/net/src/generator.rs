//! Packet generators: packets that enter a switch by themselves, again and again or when a port goes down or comes up. They do not know
//! switches; `network` lets the packets enter.

use crate::NodeId;
use crate::error::{NetError, out_of_range};
use crate::units::Milliseconds;
use engine::{Packet, Time};
use serde::Deserialize;

/// The lowest port number that no switch in a network has, whatever its architecture allows.
pub const SWITCH_PORTS: u32 = 511;

/// Packets that enter a switch by themselves, at one of its ports, like packets from outside. Deserializing reads the JSON of
/// `holdfast.topology.PacketGenerator`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Described")]
pub struct PacketGenerator {
    /// The switch.
    pub switch: String,
    /// The port at which they enter.
    pub port: u32,
    /// The packet.
    pub packet: Vec<u8>,
    /// When packets are made.
    pub trigger: GeneratorTrigger,
}

/// When a generator makes a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeneratorTrigger {
    /// Periodically.
    Periodic {
        /// The first time.
        start_ps: Time,
        /// Time between packets.
        period_ps: u64,
        /// The number of packets; 0 is without end.
        count: u64,
    },
    /// When the switch notices that a port went down or came up.
    PortChange {
        /// True if ports that come up trigger it, false if ports that go down do.
        up: bool,
        /// The offset in the packet at which the port's number is written, two bytes.
        port_offset: Option<usize>,
    },
}

/// A generator as a topology describes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    switch: String,
    port: u32,
    packet: Vec<u8>,
    period_ms: Option<Milliseconds>,
    #[serde(default)]
    count: u64,
    #[serde(default)]
    start_ms: Milliseconds,
    #[serde(default)]
    on_port_down: bool,
    #[serde(default)]
    on_port_up: bool,
    port_offset: Option<usize>,
}

impl TryFrom<Described> for PacketGenerator {
    type Error = &'static str;

    fn try_from(it: Described) -> Result<PacketGenerator, &'static str> {
        let at_once = it.count == 0 && it.start_ms == Milliseconds::default();
        let trigger = match (it.period_ms, it.on_port_down, it.on_port_up, it.port_offset) {
            (None, down, up, port_offset) if down != up && at_once => {
                GeneratorTrigger::PortChange { up, port_offset }
            }
            (Some(period), false, false, None) => GeneratorTrigger::Periodic {
                start_ps: Time::from(it.start_ms.0),
                period_ps: period.0,
                count: it.count,
            },
            _ => {
                return Err(
                    "a packet generator has period_ms (with count and start_ms), on_port_down or on_port_up (with port_offset)",
                );
            }
        };
        Ok(PacketGenerator {
            switch: it.switch,
            port: it.port,
            packet: it.packet,
            trigger,
        })
    }
}

/// A generator and its progress.
#[derive(Debug)]
pub(crate) struct Generator {
    pub(crate) node: NodeId,
    pub(crate) port: u32,
    packet: Vec<u8>,
    trigger: GeneratorTrigger,
    /// Periods that have begun.
    periods: u64,
    pub(crate) generated: u64,
}

impl PacketGenerator {
    pub(crate) fn check(&self) -> Result<(), NetError> {
        if self.port >= SWITCH_PORTS {
            return Err(out_of_range("port", format!("below {SWITCH_PORTS}")));
        }
        match self.trigger {
            GeneratorTrigger::Periodic { period_ps: 0, .. } => {
                Err(out_of_range("period_ps", "above zero"))
            }
            GeneratorTrigger::PortChange {
                port_offset: Some(at),
                ..
            } if at.checked_add(2).is_none_or(|end| end > self.packet.len()) => {
                let reason = "two bytes inside the packet";
                Err(out_of_range("port_offset", reason))
            }
            _ => Ok(()),
        }
    }
}

impl Generator {
    pub(crate) fn new(node: NodeId, generator: &PacketGenerator) -> Generator {
        Generator {
            node,
            port: generator.port,
            packet: generator.packet.clone(),
            trigger: generator.trigger,
            periods: 0,
            generated: 0,
        }
    }

    /// Returns the time at which a periodic generator makes its first packet; `None` if changes of ports trigger it.
    pub(crate) fn start_ps(&self) -> Option<Time> {
        match self.trigger {
            GeneratorTrigger::Periodic { start_ps, .. } => Some(start_ps),
            GeneratorTrigger::PortChange { .. } => None,
        }
    }

    /// Begins the generator's next period. Returns the packet of this period, and the time at which the following one
    /// begins; `None` after the last.
    pub(crate) fn begin_period(&mut self) -> (Packet, Option<Time>) {
        let packet = Packet::new(&self.packet);
        let GeneratorTrigger::Periodic {
            start_ps,
            period_ps,
            count,
        } = self.trigger
        else {
            return (packet, None);
        };
        self.periods += 1;
        let next_ps = start_ps.after(u128::from(period_ps) * u128::from(self.periods));
        let has_next = count == 0 || self.periods < count;
        (packet, has_next.then_some(next_ps))
    }

    /// Returns the packet that the generator makes because port `port` of the switch `node` went up or down (`up`),
    /// with the port's number written at the trigger's offset; `None` if this event does not trigger the generator.
    pub(crate) fn packet_for_port(&self, node: NodeId, port: u32, up: bool) -> Option<Packet> {
        let GeneratorTrigger::PortChange {
            up: wanted,
            port_offset,
        } = self.trigger
        else {
            return None;
        };
        if self.node != node || wanted != up {
            return None;
        }
        let mut bytes = self.packet.clone();
        if let Some(at) = port_offset {
            bytes[at..at + 2].copy_from_slice(&(port as u16).to_be_bytes());
        }
        Some(Packet::new(&bytes))
    }
}
