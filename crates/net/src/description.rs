//! Links and switches as topologies describe them: the JSON of the models in `holdfast.link` and `holdfast.topology`, in their units, with their
//! names. Most of what they hold are configurations, which are read where they are declared. This module checks no ranges; those of whom
//! they are do.

use crate::detection::DetectionConfig;
use crate::detection::bfd::BfdConfig;
use crate::link::LinkConfig;
use crate::queue::QueueConfig;
use crate::switch::processor::ProcessorConfig;
use crate::traffic_manager::recirculation::RecirculationConfig;
use crate::traffic_manager::{Queueing, TrafficManagerConfig};
use crate::units::Milliseconds;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A link between two ports.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    pub(crate) a: String,
    pub(crate) a_port: u32,
    pub(crate) b: String,
    pub(crate) b_port: u32,
    a_to_b: LinkConfig,
    /// The direction from b to a; `None` is as from a to b.
    b_to_a: Option<LinkConfig>,
    /// Until a change of the signal is noticed, for failures and repairs that have no delay of their own.
    detection_delay_ms: Option<Milliseconds>,
    detection_down_ms: Option<Milliseconds>,
    detection_up_ms: Option<Milliseconds>,
    bfd: Option<BfdConfig>,
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
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SwitchQueueing {
    mode: Queueing,
    queues: u8,
    queue: Option<QueueConfig>,
    by_priority: BTreeMap<u8, QueueConfig>,
    recirculation: Option<RecirculationConfig>,
}

impl Link {
    /// Returns the configuration of the direction from a to b, and that from b to a if it differs.
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
    /// Returns the time of a packet through the switch in picoseconds.
    pub(crate) fn latency_ps(&self) -> u64 {
        self.latency_ms.0
    }

    /// Returns where packets wait, and the configuration of the traffic manager; `None` if the description leaves that
    /// to the program.
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
