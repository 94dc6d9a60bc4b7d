//! Links and switches as topologies describe them: the JSON of the models in `holdfast.link` and `holdfast.topology`, in their units, with their
//! names. Defaults are those of the models, which write all values, but for the directions of links: what a direction does not say is as in
//! the direction that it differs from. This module makes configurations of descriptions, and checks no ranges; those of whom they are do.

use crate::detection::DetectionConfig;
use crate::detection::bfd::BfdConfig;
use crate::error::NetError;
use crate::link::{GilbertElliott, Jitter, LinkConfig, Loss, LossTrace};
use crate::ordering::OrderingConfig;
use crate::queue::{Discipline, QueueConfig, QueueUnit, Red, Step};
use crate::switch::processor::ProcessorConfig;
use crate::traffic_manager::recirculation::{RecirculationConfig, Spread};
use crate::traffic_manager::{Queueing, TrafficManagerConfig};
use crate::units::Milliseconds;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A link between two ports.
#[derive(Debug, Deserialize)]
pub struct Link {
    pub(crate) a: String,
    pub(crate) a_port: u32,
    pub(crate) b: String,
    pub(crate) b_port: u32,
    #[serde(flatten)]
    direction: Direction,
    /// The parameters that differ from b to a.
    reverse: Option<Direction>,
    /// Until a change of the signal is noticed, for failures and repairs that have no delay of their own.
    detection_delay_ms: Option<Milliseconds>,
    detection_down_ms: Option<Milliseconds>,
    detection_up_ms: Option<Milliseconds>,
    bfd: Option<BfdConfig>,
    #[serde(flatten)]
    unknown: BTreeMap<String, IgnoredAny>,
}

/// A direction of a link, or how it differs from another one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Direction {
    rate_bps: Option<u64>,
    delay_ms: Option<Milliseconds>,
    jitter: Option<Jitter>,
    loss: Option<Loss>,
    queue_bytes: Option<u64>,
    queue_packets: Option<u64>,
    red: Option<RedModel>,
    mark_above: Option<MarkAbove>,
    mtu_bytes: Option<u32>,
    ordering: Option<OrderingConfig>,
}

/// A switch, but for its program and its ports.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Switch {
    latency_ms: Milliseconds,
    queueing: Option<SwitchQueueing>,
    pub(crate) processor: Option<ProcessorConfig>,
}

/// Where a switch's packets wait.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SwitchQueueing {
    mode: Queueing,
    queues: u8,
    queue: Option<Queue>,
    by_priority: BTreeMap<u8, Queue>,
    recirculation: Option<Recirculation>,
}

/// A queue: its size, and what happens before it is full.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Queue {
    queue_bytes: Option<u64>,
    queue_packets: Option<u64>,
    red: Option<RedModel>,
    mark_above: Option<MarkAbove>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RedModel {
    min_packets: Option<u64>,
    max_packets: Option<u64>,
    min_bytes: Option<u64>,
    max_bytes: Option<u64>,
    max_p: f64,
    weight: f64,
    gentle: bool,
    ecn: bool,
    mean_packet_bytes: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MarkAbove {
    packets: Option<u64>,
    bytes: Option<u64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JitterModel {
    distribution: Distribution,
    low_ms: Milliseconds,
    high_ms: Milliseconds,
    mean_ms: Milliseconds,
    sigma_ms: Milliseconds,
    delays_ms: Vec<Milliseconds>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Distribution {
    None,
    Uniform,
    Normal,
    Trace,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum LossModel {
    Probability(f64),
    Model(NamedLoss),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "model", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum NamedLoss {
    Bernoulli {
        probability: f64,
    },
    GilbertElliott(GilbertElliott),
    /// Either the numbers of lost packets, or a file's text with a 0 or 1 for each.
    Trace {
        lost_packets: Option<Vec<u64>>,
        period_packets: Option<u64>,
        file: Option<String>,
        repeat: bool,
    },
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recirculation {
    ports: u16,
    rate_bps: u64,
    queue_bytes: Option<u64>,
    queue_packets: Option<u64>,
    spread: Spread,
}

impl Link {
    /// Returns the configuration of the direction from a to b, and that from b to a if it differs. Fails if values
    /// contradict each other.
    pub(crate) fn configs(&self) -> Result<(LinkConfig, Option<LinkConfig>), NetError> {
        if let Some(name) = self.unknown.keys().next() {
            return Err(NetError::Refused(format!("a link has no parameter {name}")));
        }
        let config = |direction: &Direction| {
            let mut config = direction.config()?;
            config.detection = self.detection();
            Ok(config)
        };
        let reverse = self.reverse.as_ref();
        let reverse = reverse.map(|reverse| config(&reverse.or(&self.direction)));
        Ok((config(&self.direction)?, reverse.transpose()?))
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

impl Direction {
    /// Returns this direction, with the parameters of another one in place of those that it does not give. A size of the
    /// queue takes the place of any other size, and an early discipline that of any other.
    fn or(&self, other: &Direction) -> Direction {
        let own = self.clone();
        let sizes = match self.queue_bytes.is_some() || self.queue_packets.is_some() {
            true => self,
            false => other,
        };
        let disciplines = match self.red.is_some() || self.mark_above.is_some() {
            true => self,
            false => other,
        };
        Direction {
            rate_bps: own.rate_bps.or(other.rate_bps),
            delay_ms: own.delay_ms.or(other.delay_ms),
            jitter: own.jitter.or_else(|| other.jitter.clone()),
            loss: own.loss.or_else(|| other.loss.clone()),
            queue_bytes: sizes.queue_bytes,
            queue_packets: sizes.queue_packets,
            red: disciplines.red.clone(),
            mark_above: disciplines.mark_above.clone(),
            mtu_bytes: own.mtu_bytes.or(other.mtu_bytes),
            ordering: own.ordering.or_else(|| other.ordering.clone()),
        }
    }

    fn config(&self) -> Result<LinkConfig, NetError> {
        let rate_bps = self
            .rate_bps
            .ok_or_else(|| refused("rate_bps is missing"))?;
        let mut config = LinkConfig::new(rate_bps, self.delay_ms.unwrap_or_default().0);
        let queue = Queue {
            queue_bytes: self.queue_bytes,
            queue_packets: self.queue_packets,
            red: self.red.clone(),
            mark_above: self.mark_above.clone(),
        };
        config.queue = queue.config()?;
        config.jitter = self.jitter.clone().unwrap_or_default();
        config.loss = self.loss.clone().unwrap_or_default();
        config.mtu_bytes = self.mtu_bytes;
        config.ordering = self.ordering.clone();
        Ok(config)
    }
}

impl Switch {
    /// Returns the time of a packet through the switch in picoseconds.
    pub(crate) fn latency_ps(&self) -> u64 {
        self.latency_ms.0
    }

    /// Returns where packets wait, and the configuration of the traffic manager; `None` if the description leaves that
    /// to the program. Fails if values contradict each other.
    pub(crate) fn queueing(&self) -> Result<Option<(Queueing, TrafficManagerConfig)>, NetError> {
        let queueing = self.queueing.as_ref();
        queueing.map(|it| Ok((it.mode, it.config()?))).transpose()
    }
}

impl SwitchQueueing {
    fn config(&self) -> Result<TrafficManagerConfig, NetError> {
        let own = self.by_priority.iter();
        let own = own.map(|(&priority, queue)| Ok((priority, queue.config()?)));
        Ok(TrafficManagerConfig {
            queues: self.queues,
            queue: self.queue.as_ref().map(Queue::config).transpose()?,
            queue_of_priority: own.collect::<Result<_, NetError>>()?,
            recirculation: (self.recirculation.as_ref())
                .map(Recirculation::config)
                .transpose()?,
        })
    }
}

impl Recirculation {
    fn config(&self) -> Result<RecirculationConfig, NetError> {
        Ok(RecirculationConfig {
            ports: self.ports,
            rate_bps: self.rate_bps,
            queue: limit(self.queue_bytes, self.queue_packets)?,
            spread: self.spread,
        })
    }
}

/// Returns a drop-tail queue of this size; 150,000 bytes if none is given. Fails if both are.
fn limit(bytes: Option<u64>, packets: Option<u64>) -> Result<QueueConfig, NetError> {
    match (bytes, packets) {
        (None, None) => Ok(QueueConfig::bytes(150_000)),
        (Some(limit), None) => Ok(QueueConfig::bytes(limit)),
        (None, Some(limit)) => Ok(QueueConfig::packets(limit)),
        (Some(_), Some(_)) => Err(refused("give queue_bytes or queue_packets, not both")),
    }
}

impl Queue {
    fn config(&self) -> Result<QueueConfig, NetError> {
        let discipline = match (&self.red, &self.mark_above) {
            (None, None) => Discipline::DropTail,
            (Some(red), None) => Discipline::Red(red.model()?),
            (None, Some(step)) => Discipline::Step(step.model()?),
            (Some(_), Some(_)) => return Err(refused("give red or mark_above, not both")),
        };
        Ok(QueueConfig {
            discipline,
            ..limit(self.queue_bytes, self.queue_packets)?
        })
    }
}

impl RedModel {
    fn model(&self) -> Result<Red, NetError> {
        let packets = self.min_packets.zip(self.max_packets);
        let bytes = self.min_bytes.zip(self.max_bytes);
        let (unit, (min, max)) = match (packets, bytes) {
            (Some(thresholds), None) => (QueueUnit::Packets, thresholds),
            (None, Some(thresholds)) => (QueueUnit::Bytes, thresholds),
            _ => return Err(refused("red: give thresholds in packets or in bytes")),
        };
        Ok(Red {
            unit,
            min,
            max,
            max_p: self.max_p,
            weight: self.weight,
            gentle: self.gentle,
            ecn: self.ecn,
            mean_packet_bytes: self.mean_packet_bytes,
        })
    }
}

impl MarkAbove {
    fn model(&self) -> Result<Step, NetError> {
        let (unit, threshold) = match (self.packets, self.bytes) {
            (Some(threshold), None) => (QueueUnit::Packets, threshold),
            (None, Some(threshold)) => (QueueUnit::Bytes, threshold),
            _ => return Err(refused("mark_above: give packets or bytes")),
        };
        Ok(Step { unit, threshold })
    }
}

impl From<JitterModel> for Jitter {
    fn from(model: JitterModel) -> Jitter {
        match model.distribution {
            Distribution::None => Jitter::None,
            Distribution::Uniform => Jitter::Uniform {
                low_ps: model.low_ms.signed_ps(),
                high_ps: model.high_ms.signed_ps(),
            },
            Distribution::Normal => Jitter::Normal {
                mean_ps: model.mean_ms.signed_ps(),
                sigma_ps: model.sigma_ms.0,
            },
            Distribution::Trace => {
                Jitter::Trace(model.delays_ms.iter().map(|it| it.signed_ps()).collect())
            }
        }
    }
}

impl TryFrom<LossModel> for Loss {
    type Error = NetError;

    fn try_from(model: LossModel) -> Result<Loss, NetError> {
        Ok(match model {
            // The default in other languages.
            LossModel::Probability(0.0) => Loss::None,
            LossModel::Probability(probability)
            | LossModel::Model(NamedLoss::Bernoulli { probability }) => {
                Loss::Bernoulli(probability)
            }
            LossModel::Model(NamedLoss::GilbertElliott(chain)) => Loss::GilbertElliott(chain),
            LossModel::Model(NamedLoss::Trace {
                lost_packets,
                period_packets,
                file,
                repeat,
            }) => Loss::Trace(Arc::new(match (lost_packets, file) {
                (Some(lost), None) => LossTrace::new(lost, period_packets)?,
                (None, Some(text)) => LossTrace::parse(&text, repeat)?,
                _ => return Err(refused("loss: give lost_packets or a file's text")),
            })),
        })
    }
}

fn refused(text: &str) -> NetError {
    NetError::Refused(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units;
    use serde::de::IntoDeserializer;
    use serde::de::value::Error;

    fn mark_above(bytes: u64) -> Option<MarkAbove> {
        Some(MarkAbove {
            packets: None,
            bytes: Some(bytes),
        })
    }

    #[test]
    fn a_size_takes_the_place_of_any_size_and_a_discipline_that_of_any_discipline() {
        let red = RedModel {
            min_packets: Some(5),
            max_packets: Some(15),
            min_bytes: None,
            max_bytes: None,
            max_p: 0.02,
            weight: 0.002,
            gentle: false,
            ecn: false,
            mean_packet_bytes: 500,
        };
        let there = Direction {
            rate_bps: Some(1_000_000),
            delay_ms: Some(Milliseconds(7)),
            loss: Some(Loss::Bernoulli(0.5)),
            queue_packets: Some(50),
            red: Some(red),
            ..Direction::default()
        };
        let back = Direction {
            rate_bps: Some(2_000_000),
            queue_bytes: Some(9000),
            mark_above: mark_above(3000),
            ..Direction::default()
        };
        let config = back.or(&there).config().unwrap();
        assert_eq!(
            (config.rate_bps, config.delay_ps, config.loss),
            (2_000_000, 7, Loss::Bernoulli(0.5))
        );
        let step = Step {
            unit: QueueUnit::Bytes,
            threshold: 3000,
        };
        let queue = QueueConfig {
            discipline: Discipline::Step(step),
            ..QueueConfig::bytes(9000)
        };
        assert_eq!(config.queue, queue);
        let same = Direction::default().or(&there).config().unwrap();
        assert_eq!(same, there.config().unwrap());
        assert_eq!(same.queue.limit, 50);
    }

    #[test]
    fn milliseconds_become_the_nearest_picosecond_and_of_two_the_even_one() {
        let read = |time_ms: f64| {
            units::milliseconds(IntoDeserializer::<Error>::into_deserializer(time_ms))
        };
        let known = [
            (0.0, 0),
            (1.5e-9, 2),
            (2.5e-9, 2),
            (0.1, 100_000_000),
            (3.3, 3_300_000_000),
            (1e300, u64::MAX),
        ];
        for (time_ms, ps) in known {
            assert_eq!(read(time_ms), Ok(ps), "{time_ms} ms");
        }
        assert!(read(-1.0).is_err() && read(f64::NAN).is_err());
    }
}
