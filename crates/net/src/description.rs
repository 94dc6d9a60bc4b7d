//! Links, switches and hosts as topologies describe them: the JSON of the models in `holdfast.link`, `holdfast.topology` and `holdfast.host`, in
//! their units, with their names. Most of what they hold are configurations, which are read where they are declared. This module checks no ranges; those of whom
//! they are do.

use crate::detection::DetectionConfig;
use crate::detection::bfd::BfdConfig;
use crate::host::{Card, Gateway, HostSettings, Ipv6Interface};
use crate::link::LinkConfig;
use crate::queue::QueueConfig;
use crate::switch::processor::ProcessorConfig;
use crate::traffic_manager::recirculation::RecirculationConfig;
use crate::traffic_manager::{Queueing, TrafficManagerConfig};
use crate::units::Milliseconds;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use wire::MacAddress;

/// A link between two ports.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    pub(crate) a: String,
    pub(crate) a_port: u32,
    pub(crate) b: String,
    pub(crate) b_port: u32,
    a_to_b: LinkConfig,
    /// The direction from b to a; `None` if it is like that from a to b.
    b_to_a: Option<LinkConfig>,
    /// The time until a change of the link's signal is noticed, for failures and repairs that have no delay of their
    /// own.
    detection_delay_ms: Option<Milliseconds>,
    detection_down_ms: Option<Milliseconds>,
    detection_up_ms: Option<Milliseconds>,
    bfd: Option<BfdConfig>,
}

/// A switch, without its program and its ports.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Switch {
    latency_ms: Milliseconds,
    queueing: Option<SwitchQueueing>,
    pub(crate) processor: Option<ProcessorConfig>,
}

/// The queues in which a switch's packets wait.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SwitchQueueing {
    mode: Queueing,
    queues: u8,
    queue: Option<QueueConfig>,
    by_priority: BTreeMap<u8, QueueConfig>,
    recirculation: Option<RecirculationConfig>,
}

/// A modelled host, without its links.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    cards: Vec<HostCard>,
    /// The next hops of default routes; of several of one IP version, the last counts.
    #[serde(default)]
    gateways: Vec<IpAddr>,
    #[serde(default)]
    neighbours: BTreeMap<IpAddr, Text<MacAddress>>,
    vlan: Option<u16>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HostCard {
    mac: Text<MacAddress>,
    address: Interface<Ipv4Addr>,
    ipv6: Option<Interface<Ipv6Addr>>,
}

/// A value that is written as text.
#[derive(Debug)]
struct Text<T>(T);

/// An address with the length of its subnet's prefix, such as `10.0.1.1/24`.
#[derive(Debug)]
struct Interface<A> {
    address: A,
    prefix_len: u8,
}

impl<'de, T: FromStr> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<T>, D::Error> {
        parsed(deserializer, |text| text.parse().ok()).map(Text)
    }
}

impl<'de, A: FromStr> Deserialize<'de> for Interface<A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Interface<A>, D::Error> {
        parsed(deserializer, |text| {
            let (address, prefix_len) = text.split_once('/')?;
            Some(Interface {
                address: address.parse().ok()?,
                prefix_len: prefix_len.parse().ok()?,
            })
        })
    }
}

/// Deserializes a string, and returns the value that `parse` makes of it. Fails with the string in the message if
/// `parse` returns `None`.
fn parsed<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is no address")))
}

impl From<Host> for HostSettings {
    fn from(host: Host) -> HostSettings {
        let card = |it: HostCard| Card {
            mac: it.mac.0,
            ipv4: it.address.address,
            prefix_len: it.address.prefix_len,
            ipv6: it.ipv6.map(|own| Ipv6Interface {
                address: own.address,
                prefix_len: own.prefix_len,
            }),
        };
        let mut gateways = [None; 2];
        for address in host.gateways {
            gateways[usize::from(address.is_ipv6())] = Some(Gateway::Address(address));
        }
        let neighbours = host.neighbours.into_iter();
        HostSettings {
            cards: host.cards.into_iter().map(card).collect(),
            gateways,
            neighbours: neighbours.map(|(address, mac)| (address, mac.0)).collect(),
            vlan: host.vlan,
        }
    }
}

impl Link {
    /// Returns the configuration of the link's direction from a to b, and that of the direction from b to a, or
    /// `None` if the description gives both directions the same.
    pub(crate) fn configs(&self) -> (LinkConfig, Option<LinkConfig>) {
        let config = |direction: &LinkConfig| LinkConfig {
            detection: self.detection(),
            ..direction.clone()
        };
        (config(&self.a_to_b), self.b_to_a.as_ref().map(config))
    }

    fn detection(&self) -> DetectionConfig {
        let delay_ps = |own: Option<Milliseconds>| own.or(self.detection_delay_ms).map(|it| it.0);
        DetectionConfig {
            signal_down_ps: delay_ps(self.detection_down_ms),
            signal_up_ps: delay_ps(self.detection_up_ms),
            bfd: self.bfd,
        }
    }
}

impl Switch {
    /// Returns the time in picoseconds that a packet spends in the switch.
    pub(crate) fn latency_ps(&self) -> u64 {
        self.latency_ms.0
    }

    /// Returns where the switch's packets wait, and the configuration of its traffic manager; `None` if the description
    /// leaves the choice to the program.
    pub(crate) fn queueing(&self) -> Option<(Queueing, TrafficManagerConfig)> {
        let it = self.queueing.clone()?;
        let config = TrafficManagerConfig {
            queues: it.queues,
            queue: it.queue,
            by_priority: it.by_priority,
            recirculation: it.recirculation,
        };
        Some((it.mode, config))
    }
}
