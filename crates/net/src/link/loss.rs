//! Which packets a direction loses on the wire, and how its delay varies. It does not know the packets.

use super::MAX_DELAY_PS;
use crate::error::{NetError, out_of_range};
use crate::random::Stream;
use crate::units::milliseconds;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Which packets are lost on the wire. Each direction goes through the model on its own, one step per packet that its queue
/// takes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub enum Loss {
    /// No packet is lost.
    #[default]
    None,
    /// Each packet is lost with this probability.
    Bernoulli(f64),
    /// Packets are lost by a Markov chain with two states.
    GilbertElliott(GilbertElliott),
    /// The packets of a list are lost.
    Trace(Arc<LossTrace>),
}

/// A Markov chain with two states, good at first. A packet is lost with the probability of the state that it finds; then the
/// state changes, or does not. Gilbert's own model has `loss_good` 0; the "simple" one `loss_bad` 1 as well.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GilbertElliott {
    /// p: the probability of a change from good to bad.
    pub p: f64,
    /// r: the probability of a change from bad to good.
    pub r: f64,
    /// 1 - k: the probability that a packet in the good state is lost.
    pub loss_good: f64,
    /// 1 - h: the probability that a packet in the bad state is lost.
    pub loss_bad: f64,
}

/// Numbers, counted from 0, of a direction's packets that are lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LossTrace {
    /// The numbers in ascending order, each once.
    lost: Vec<u64>,
    /// The trace begins again after this many packets.
    period: Option<u64>,
}

impl LossTrace {
    /// Creates a trace in which the packets with the numbers `lost`, counted from 0, are lost. With a `period`, the
    /// trace begins again after that many packets. Refuses a period that is not greater than every number.
    pub fn new(mut lost: Vec<u64>, period: Option<u64>) -> Result<LossTrace, NetError> {
        lost.sort_unstable();
        lost.dedup();
        let inside = |period: u64| lost.last().is_none_or(|&last| last < period);
        if !period.is_none_or(|period| period > 0 && inside(period)) {
            let reason = "above every number of a lost packet";
            return Err(out_of_range("the period of a loss trace", reason));
        }
        Ok(LossTrace { lost, period })
    }

    /// Parses a trace of one character per packet, 1 for a lost packet and 0 for any other; ignores white space. If
    /// `repeat` is true, the trace begins again after its last packet. Refuses other characters and an empty trace.
    pub fn parse(text: &str, repeat: bool) -> Result<LossTrace, NetError> {
        let (mut lost, mut length) = (Vec::new(), 0);
        for character in text.chars().filter(|c| !c.is_whitespace()) {
            match character {
                '0' => {}
                '1' => lost.push(length),
                _ => return Err(out_of_range("a loss trace", "made of 0 and 1")),
            }
            length += 1;
        }
        if length == 0 {
            return Err(out_of_range("a loss trace", "at least one packet long"));
        }
        LossTrace::new(lost, repeat.then_some(length))
    }
}

/// A loss model as other languages write it: a probability, or a model with its parameters.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Probability(f64),
    Model(Model),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "model", rename_all = "snake_case", deny_unknown_fields)]
enum Model {
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

impl TryFrom<Written> for Loss {
    type Error = NetError;

    fn try_from(written: Written) -> Result<Loss, NetError> {
        Ok(match written {
            Written::Probability(0.0) => Loss::None,
            Written::Probability(probability)
            | Written::Model(Model::Bernoulli { probability }) => Loss::Bernoulli(probability),
            Written::Model(Model::GilbertElliott(chain)) => Loss::GilbertElliott(chain),
            Written::Model(Model::Trace {
                lost_packets,
                period_packets,
                file,
                repeat,
            }) => Loss::Trace(Arc::new(match (lost_packets, file) {
                (Some(lost), None) => LossTrace::new(lost, period_packets)?,
                (None, Some(text)) => LossTrace::parse(&text, repeat)?,
                _ => {
                    let text = "loss: give lost_packets or a file's text";
                    return Err(NetError::Refused(text.to_owned()));
                }
            })),
        })
    }
}

impl From<Loss> for Written {
    fn from(loss: Loss) -> Written {
        match loss {
            Loss::None => Written::Probability(0.0),
            Loss::Bernoulli(probability) => Written::Probability(probability),
            Loss::GilbertElliott(chain) => Written::Model(Model::GilbertElliott(chain)),
            Loss::Trace(trace) => Written::Model(Model::Trace {
                lost_packets: Some(trace.lost.clone()),
                period_packets: trace.period,
                file: None,
                repeat: false,
            }),
        }
    }
}

impl Loss {
    pub(crate) fn check(&self) -> Result<(), NetError> {
        // Written so that NaN fails too.
        let check = |parameter, probability: f64| match (0.0..=1.0).contains(&probability) {
            true => Ok(()),
            false => Err(out_of_range(parameter, "a probability, from 0 to 1")),
        };
        match self {
            Loss::None | Loss::Trace(_) => Ok(()),
            Loss::Bernoulli(probability) => check("loss", *probability),
            Loss::GilbertElliott(g) => {
                check("loss: p", g.p)?;
                check("loss: r", g.r)?;
                check("loss: loss_good", g.loss_good)?;
                check("loss: loss_bad", g.loss_bad)
            }
        }
    }
}

/// A loss model and the progress of a direction in it.
#[derive(Debug)]
pub(super) struct LossProcess {
    model: Loss,
    stream: Stream,
    /// True if the Markov chain is in its bad state.
    bad: bool,
    /// The number of the next packet in the trace, and the index of the next one that is lost.
    packet: u64,
    next: usize,
}

impl LossProcess {
    pub(super) fn new(model: Loss, stream: Stream) -> LossProcess {
        LossProcess {
            model,
            stream,
            bad: false,
            packet: 0,
            next: 0,
        }
    }

    /// Replaces the loss model by another one, which starts at its beginning. The stream of random numbers goes on.
    pub(super) fn follow(&mut self, model: &Loss) {
        (self.model, self.bad) = (model.clone(), false);
        (self.packet, self.next) = (0, 0);
    }

    /// Advances the loss model by one packet. Returns true if this packet is lost.
    #[inline]
    pub(super) fn step(&mut self) -> bool {
        match &self.model {
            Loss::None => false,
            Loss::Bernoulli(probability) => *probability > 0.0 && self.stream.chance(*probability),
            Loss::GilbertElliott(g) => {
                let (loss, change) = match self.bad {
                    false => (g.loss_good, g.p),
                    true => (g.loss_bad, g.r),
                };
                // Both are drawn whatever they decide, so that equal seeds with other probabilities stay comparable.
                let lost = self.stream.chance(loss);
                self.bad ^= self.stream.chance(change);
                lost
            }
            Loss::Trace(trace) => {
                let lost = trace.lost.get(self.next) == Some(&self.packet);
                self.next += usize::from(lost);
                self.packet += 1;
                if trace.period == Some(self.packet) {
                    (self.packet, self.next) = (0, 0);
                }
                lost
            }
        }
    }
}

/// The time added to the propagation delay of each packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "distribution", rename_all = "snake_case")]
pub enum Jitter {
    /// No packet has any time added.
    #[default]
    None,
    /// Uniform between two bounds, both included.
    Uniform {
        /// The lower bound.
        #[serde(rename = "low_ms", with = "milliseconds::signed")]
        low_ps: i64,
        /// The upper bound.
        #[serde(rename = "high_ms", with = "milliseconds::signed")]
        high_ps: i64,
    },
    /// Normally distributed.
    Normal {
        /// Mean.
        #[serde(rename = "mean_ms", with = "milliseconds::signed")]
        mean_ps: i64,
        /// Standard deviation.
        #[serde(rename = "sigma_ms", with = "milliseconds")]
        sigma_ps: u64,
    },
    /// The values of a list, one after the other, over and over.
    Trace {
        /// The list.
        #[serde(rename = "delays_ms", with = "milliseconds::list")]
        delays_ps: Arc<[i64]>,
    },
}

impl Jitter {
    pub(crate) fn check(&self, delay_ps: u64) -> Result<(), NetError> {
        let near = |value: i64| match value.unsigned_abs() <= MAX_DELAY_PS {
            true => Ok(()),
            false => Err(out_of_range(
                "jitter",
                format!("within {MAX_DELAY_PS} ps of zero"),
            )),
        };
        let causal = |low_ps: i64| match low_ps < 0 && low_ps.unsigned_abs() > delay_ps {
            false => Ok(()),
            true => Err(out_of_range(
                "jitter",
                "such that no packet arrives before it was sent",
            )),
        };
        match self {
            Jitter::None => Ok(()),
            Jitter::Uniform { low_ps, high_ps } => {
                if low_ps > high_ps {
                    return Err(out_of_range("jitter", "a low bound and then a high one"));
                }
                near(*low_ps)?;
                near(*high_ps)?;
                causal(*low_ps)
            }
            Jitter::Normal { mean_ps, sigma_ps } => {
                near(*mean_ps)?;
                near(i64::try_from(*sigma_ps).unwrap_or(i64::MAX))
            }
            Jitter::Trace { delays_ps } => {
                if delays_ps.is_empty() {
                    return Err(out_of_range("jitter", "a trace with at least one delay"));
                }
                delays_ps.iter().try_for_each(|&delay_ps| {
                    near(delay_ps)?;
                    causal(delay_ps)
                })
            }
        }
    }
}

/// A jitter model and the progress of a direction in it.
#[derive(Debug)]
pub(super) struct JitterProcess {
    model: Jitter,
    stream: Stream,
    next: usize,
}

impl JitterProcess {
    pub(super) fn new(model: Jitter, stream: Stream) -> JitterProcess {
        JitterProcess {
            model,
            stream,
            next: 0,
        }
    }

    /// Returns true if there is no jitter, so that all packets have the same propagation time.
    #[inline]
    pub(super) fn is_none(&self) -> bool {
        matches!(self.model, Jitter::None)
    }

    /// Replaces the jitter model by another one, which starts at its beginning. The stream of random numbers goes on.
    pub(super) fn follow(&mut self, model: &Jitter) {
        (self.model, self.next) = (model.clone(), 0);
    }

    /// Draws the time in picoseconds to be added to the propagation delay of the next packet.
    #[inline]
    pub(super) fn draw_ps(&mut self) -> i64 {
        match &self.model {
            Jitter::None => 0,
            Jitter::Uniform { low_ps, high_ps } => self.stream.uniform(*low_ps, *high_ps),
            // The cast saturates, and the sum below does too.
            Jitter::Normal { mean_ps, sigma_ps } => {
                let deviation_ps = (self.stream.normal() * *sigma_ps as f64).round() as i64;
                mean_ps.saturating_add(deviation_ps)
            }
            Jitter::Trace { delays_ps } => {
                let delay_ps = delays_ps.get(self.next).copied().unwrap_or(0);
                self.next = (self.next + 1) % delays_ps.len().max(1);
                delay_ps
            }
        }
    }
}
