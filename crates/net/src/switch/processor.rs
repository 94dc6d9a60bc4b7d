//! A switch that is a program on a processor: each packet takes time, and the others wait for it in one queue, whatever ports they
//! came in by. It does not know what is done with a packet that was served.
//!
//! A packet's time is spent before its program runs, so tables are those of the end of that time. One packet is served at a time, in the
//! order of arrival; [`ProcessorConfig::queue_packets`] may wait besides, and what comes then is dropped and counted. Without a processor
//! a switch takes no time for packets, however many come.

use super::{SwitchNode, Timer};
use crate::error::{NetError, out_of_range};
use crate::medium::Medium;
use crate::node::NodeState;
use crate::observer::DropReason;
use crate::random::Stream;
use crate::serialisation::MAX_DELAY_PS;
use engine::Packet;
use serde::{Deserialize, Deserializer};
use std::collections::VecDeque;

/// A processor's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessorConfig {
    /// The time in picoseconds in which a packet is served, or its mean; above 0.
    #[serde(rename = "packets_per_s", deserialize_with = "service_time")]
    pub service_ps: u64,
    /// True if service times are exponentially distributed and independent, false if they are all the same.
    #[serde(rename = "service", deserialize_with = "is_exponential")]
    pub exponential: bool,
    /// The most packets that may wait, in addition to the one being served.
    pub queue_packets: u64,
}

/// Deserializes a rate in packets per second as the service time of one packet in picoseconds.
fn service_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    const PS_PER_S: f64 = 1e12;
    Ok((PS_PER_S / f64::deserialize(deserializer)?).round_ties_even() as u64)
}

fn is_exponential<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(Deserialize, PartialEq)]
    #[serde(rename_all = "snake_case")]
    enum Service {
        Constant,
        Exponential,
    }
    Ok(Service::deserialize(deserializer)? == Service::Exponential)
}

impl ProcessorConfig {
    pub(crate) fn check(&self) -> Result<(), NetError> {
        match (1..=MAX_DELAY_PS).contains(&self.service_ps) {
            true => Ok(()),
            false => Err(out_of_range(
                "service_ps",
                format!("from 1 to {MAX_DELAY_PS}"),
            )),
        }
    }
}

/// A switch's processor, with the packets that wait for it.
#[derive(Debug)]
pub(crate) struct Processor {
    config: ProcessorConfig,
    draws: Stream,
    /// The packets in the processor with their arrival ports; the first one is being served.
    packets: VecDeque<(u32, Packet)>,
}

impl Processor {
    pub(crate) fn new(config: ProcessorConfig, draws: Stream) -> Processor {
        Processor {
            config,
            draws,
            packets: VecDeque::new(),
        }
    }

    fn service_ps(&mut self) -> u64 {
        match self.config.exponential {
            true => self.draws.exponential(self.config.service_ps),
            false => self.config.service_ps,
        }
    }
}

impl SwitchNode {
    /// Passes a packet that has arrived to the switch's processor: it is served at once, waits, or is dropped and
    /// counted if the queue is full. A switch without a processor runs the packet at once.
    pub(super) fn wait_for_processor(
        &mut self,
        own: &mut NodeState,
        medium: &mut Medium,
        port: u32,
        packet: Packet,
    ) {
        let Some(processor) = &mut self.processor else {
            return self.process(own, medium, port, packet);
        };
        if processor.packets.len() as u64 > processor.config.queue_packets {
            own.counters.queue_drops += 1;
            medium.tell_dropped(own, Some(port), DropReason::QueueFull, 1);
            return medium.pool.take_back(packet);
        }
        processor.packets.push_back((port, packet));
        if processor.packets.len() == 1 {
            self.serve_next(own, medium);
        }
    }

    /// Begins to serve the first packet in the processor, and schedules the end of its service.
    fn serve_next(&mut self, own: &NodeState, medium: &mut Medium) {
        let Some(processor) = &mut self.processor else {
            return;
        };
        let at_ps = medium.now_ps().saturating_add(processor.service_ps());
        let generation = own.generation;
        let event = Timer::Served { generation }.event(own.id);
        medium.scheduler.push(at_ps, event);
    }

    /// Runs the packet whose service by the processor has ended through the program, and begins to serve the next. Does
    /// nothing if the switch has failed meanwhile (`generation`).
    pub(super) fn served(&mut self, own: &mut NodeState, medium: &mut Medium, generation: u32) {
        if own.generation != generation {
            return;
        }
        let Some((port, packet)) = (self.processor.as_mut()).and_then(|it| it.packets.pop_front())
        else {
            return;
        };
        if (self.processor.as_ref()).is_some_and(|it| !it.packets.is_empty()) {
            self.serve_next(own, medium);
        }
        self.process(own, medium, port, packet);
    }

    /// Drops the packets in the switch's processor after a failure, and counts them as lost.
    pub(super) fn lose_waiting(&mut self, own: &mut NodeState, medium: &mut Medium) {
        let Some(processor) = &mut self.processor else {
            return;
        };
        let lost = processor.packets.len() as u64;
        for (_, packet) in processor.packets.drain(..) {
            medium.pool.take_back(packet);
        }
        medium.lose(own, lost);
    }
}
