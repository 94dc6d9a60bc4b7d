//! Parameters of links and queues from Python's keywords. It does not know the network.

use crate::errors::{chosen, failed};
use net::failure::Duration;
use net::{
    BfdConfig, BitField, Discipline, GilbertElliott, Jitter, LinkConfig, LinkDirection, Loss,
    LossTrace, OrderingConfig, QueueConfig, QueueUnit, Queueing, RecirculationConfig, Red,
    SequenceHeader, Spread, Step, TrafficManagerConfig,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Parses the name of a link's direction, `a_to_b` or `b_to_a`. Fails for any other name.
pub(crate) fn direction(name: &str) -> PyResult<LinkDirection> {
    let choices = [
        ("a_to_b", LinkDirection::AToB),
        ("b_to_a", LinkDirection::BToA),
    ];
    chosen("a direction is", name, choices)
}

/// Parses a distribution of durations: `("exponential", mean_ps)` or `("fixed", time_ps)`. Fails for any other name.
pub(crate) fn duration((distribution, ps): &(String, u64)) -> PyResult<Duration> {
    let choices = [
        ("exponential", Duration::Exponential { mean_ps: *ps }),
        ("fixed", Duration::Fixed { time_ps: *ps }),
    ];
    chosen("a time is", distribution, choices)
}

/// `("none", 0, 0)`, `("uniform", low_ps, high_ps)`, `("normal", mean_ps, sigma_ps)` or `("trace", [delay_ps, ...])`.
#[derive(FromPyObject)]
enum JitterValue {
    Distribution(String, i64, i64),
    Trace(String, Vec<i64>),
}

fn jitter(value: JitterValue) -> PyResult<Jitter> {
    let (distribution, first, second) = match value {
        JitterValue::Trace(name, delays) if name == "trace" => {
            return Ok(Jitter::Trace(delays.into()));
        }
        JitterValue::Trace(name, _) => (name, 0, 0),
        JitterValue::Distribution(name, first, second) => (name, first, second),
    };
    match distribution.as_str() {
        "none" => Ok(Jitter::None),
        "uniform" => Ok(Jitter::Uniform {
            low_ps: first,
            high_ps: second,
        }),
        "normal" => Ok(Jitter::Normal {
            mean_ps: first,
            sigma_ps: u64::try_from(second).map_err(|_| {
                failed("jitter must have a standard deviation that is not negative")
            })?,
        }),
        other => Err(failed(format!(
            "jitter must be \"none\", \"uniform\", \"normal\" or \"trace\" with its values, not {other:?}"
        ))),
    }
}

/// A probability, `("gilbert_elliott", p, r, loss_good, loss_bad)`, `("trace", [lost, ...], period or None)` or
/// `("trace", "0010...", repeat)`.
#[derive(FromPyObject)]
enum LossValue {
    Bernoulli(f64),
    GilbertElliott(String, f64, f64, f64, f64),
    Numbers(String, Vec<u64>, Option<u64>),
    Text(String, String, bool),
}

fn loss(value: LossValue) -> PyResult<Loss> {
    let (name, trace) = match value {
        LossValue::Bernoulli(probability) => return Ok(Loss::Bernoulli(probability)),
        LossValue::GilbertElliott(name, p, r, loss_good, loss_bad) if name == "gilbert_elliott" => {
            return Ok(Loss::GilbertElliott(GilbertElliott {
                p,
                r,
                loss_good,
                loss_bad,
            }));
        }
        LossValue::GilbertElliott(name, ..) => (name, None),
        LossValue::Numbers(name, lost, period) => (name, Some(LossTrace::new(lost, period))),
        LossValue::Text(name, text, repeat) => (name, Some(LossTrace::parse(&text, repeat))),
    };
    match trace {
        Some(trace) if name == "trace" => Ok(Loss::Trace(trace.map_err(failed)?.into())),
        _ => Err(failed(format!(
            "loss must be a probability, \"gilbert_elliott\" or \"trace\" with its values, not {name:?}"
        ))),
    }
}

/// A dictionary that is used up by being read.
struct Keywords<'py>(Bound<'py, PyDict>);

impl<'py> Keywords<'py> {
    /// Removes a required value from the dictionary and returns it. Fails if the value is missing.
    fn needed<T: FromPyObjectOwned<'py>>(&self, key: &str) -> PyResult<T> {
        let value = self.take(key)?;
        value.ok_or_else(|| failed(format!("{key} is missing")))
    }

    /// Removes a value from the dictionary and returns it; `None` if it is missing or None.
    fn take<T: FromPyObjectOwned<'py>>(&self, key: &str) -> PyResult<Option<T>> {
        let Some(value) = self.0.get_item(key)? else {
            return Ok(None);
        };
        self.0.del_item(key)?;
        if value.is_none() {
            return Ok(None);
        }
        value.extract().map(Some).map_err(|_| {
            let given = value.repr().map(|r| r.to_string()).unwrap_or_default();
            failed(format!("{key} cannot be {given}"))
        })
    }

    /// Removes a nested dictionary and reads it by `f`; returns `None` if it is missing.
    fn nested<T>(
        &self,
        key: &str,
        f: impl FnOnce(&Keywords<'py>) -> PyResult<T>,
    ) -> PyResult<Option<T>> {
        let dict: Option<Bound<'py, PyDict>> = self.take(key)?;
        dict.map(|dict| read(&dict, f)).transpose()
    }
}

/// Reads a dictionary by `f`, which must remove all its values. Fails if any value is left.
fn read<'py, T>(
    dict: &Bound<'py, PyDict>,
    f: impl FnOnce(&Keywords<'py>) -> PyResult<T>,
) -> PyResult<T> {
    let keywords = Keywords(dict.copy()?);
    let value = f(&keywords)?;
    match keywords.0.keys().iter().next() {
        None => Ok(value),
        Some(key) => Err(failed(format!("there is no parameter {}", key.str()?))),
    }
}

fn unit(name: &str) -> PyResult<QueueUnit> {
    let choices = [("bytes", QueueUnit::Bytes), ("packets", QueueUnit::Packets)];
    chosen("a queue counts", name, choices)
}

fn red(keywords: &Keywords<'_>) -> PyResult<Red> {
    let unit = unit(&keywords.needed::<String>("unit")?)?;
    let mut red = Red::new(unit, keywords.needed("min")?, keywords.needed("max")?);
    red.max_p = keywords.take("max_p")?.unwrap_or(red.max_p);
    red.weight = keywords.take("weight")?.unwrap_or(red.weight);
    red.gentle = keywords.take("gentle")?.unwrap_or(red.gentle);
    red.ecn = keywords.take("ecn")?.unwrap_or(red.ecn);
    let mean = keywords.take("mean_packet_bytes")?;
    red.mean_packet_bytes = mean.unwrap_or(red.mean_packet_bytes);
    Ok(red)
}

fn step(keywords: &Keywords<'_>) -> PyResult<Step> {
    Ok(Step {
        unit: unit(&keywords.needed::<String>("unit")?)?,
        threshold: keywords.needed("threshold")?,
    })
}

/// Reads a queue's configuration from `queue_bytes` or `queue_packets`, `red` or `mark_above`; `default` if neither
/// limit is given. Fails if both limits, or both `red` and `mark_above`, are given.
fn queue(keywords: &Keywords<'_>, default: QueueConfig) -> PyResult<QueueConfig> {
    let mut queue = match (
        keywords.take("queue_bytes")?,
        keywords.take("queue_packets")?,
    ) {
        (None, None) => default,
        (Some(limit), None) => QueueConfig::bytes(limit),
        (None, Some(limit)) => QueueConfig::packets(limit),
        (Some(_), Some(_)) => return Err(failed("give queue_bytes or queue_packets, not both")),
    };
    let (red, step) = (
        keywords.nested("red", red)?,
        keywords.nested("mark_above", step)?,
    );
    queue.discipline = match (red, step) {
        (None, None) => Discipline::DropTail,
        (Some(red), None) => Discipline::Red(red),
        (None, Some(step)) => Discipline::Step(step),
        (Some(_), Some(_)) => return Err(failed("give red or mark_above, not both")),
    };
    Ok(queue)
}

/// Reads a link's configuration, in which only `rate_bps` is required. Fails if it is missing, or a parameter is
/// unknown.
pub(crate) fn link_config(parameters: Option<&Bound<'_, PyDict>>) -> PyResult<LinkConfig> {
    let parameters = parameters.ok_or_else(|| failed("rate_bps is missing"))?;
    read(parameters, |keywords| {
        let mut config = LinkConfig::new(
            keywords.needed("rate_bps")?,
            keywords.take("delay_ps")?.unwrap_or(0),
        );
        config.jitter = keywords
            .take("jitter")?
            .map_or(Ok(Jitter::None), self::jitter)?;
        config.loss = keywords.take("loss")?.map_or(Ok(Loss::None), self::loss)?;
        config.queue = queue(keywords, config.queue)?;
        config.detection.signal_down_ps = keywords.take("detection_down_ps")?;
        config.detection.signal_up_ps = keywords.take("detection_up_ps")?;
        config.detection.bfd = keywords.nested("bfd", bfd)?;
        config.mtu_bytes = keywords.take("mtu_bytes")?;
        config.ordering = keywords.nested("ordering", ordering)?;
        Ok(config)
    })
}

/// Reads a BFD session's parameters: `desired_min_tx_us`, `required_min_rx_us` and `detect_mult`.
fn bfd(keywords: &Keywords<'_>) -> PyResult<BfdConfig> {
    Ok(BfdConfig {
        desired_min_tx_us: keywords.needed("desired_min_tx_us")?,
        required_min_rx_us: keywords.needed("required_min_rx_us")?,
        detect_mult: keywords.needed("detect_mult")?,
    })
}

/// Reads an ordering function's configuration: `max_delay_ps`, `take_any_ps`, `buffer_packets`, `sequence_bits` and
/// `headers`.
fn ordering(keywords: &Keywords<'_>) -> PyResult<OrderingConfig> {
    let mut config = OrderingConfig::new(
        keywords.needed("max_delay_ps")?,
        keywords.needed("take_any_ps")?,
    );
    let buffer_packets = keywords.take("buffer_packets")?;
    config.buffer_packets = buffer_packets.unwrap_or(config.buffer_packets);
    config.sequence_bits = keywords.take("sequence_bits")?;
    let headers: Vec<Bound<'_, PyDict>> = keywords.take("headers")?.unwrap_or_default();
    let headers = headers.iter().map(|dict| read(dict, sequence_header));
    config.headers = headers.collect::<PyResult<_>>()?;
    Ok(config)
}

/// Reads a header with a sequence number: `ethertype`, `bytes`, `sequence`, `following`, and the optional `stream` and
/// `ethertypes`. Fields are `(offset, width)` in bits.
fn sequence_header(keywords: &Keywords<'_>) -> PyResult<SequenceHeader> {
    let field = |(offset, width): (u32, u32)| BitField { offset, width };
    Ok(SequenceHeader {
        ethertype: keywords.needed("ethertype")?,
        bytes: keywords.needed("bytes")?,
        sequence: field(keywords.needed("sequence")?),
        stream: keywords.take("stream")?.map(field),
        following: field(keywords.needed("following")?),
        ethertypes: keywords.take("ethertypes")?.unwrap_or_default(),
    })
}

/// Reads a queue's configuration from `queue_bytes`, `queue_packets`, `red` and `mark_above`. The default limit is
/// 150,000 bytes.
fn queue_of(keywords: &Keywords<'_>) -> PyResult<QueueConfig> {
    queue(keywords, QueueConfig::bytes(150_000))
}

/// Parses the name of the place where packets of a switch wait: `auto`, `link` or `traffic_manager`. Fails for any
/// other name.
pub(crate) fn queueing(name: &str) -> PyResult<Queueing> {
    let choices = [
        ("auto", Queueing::Auto),
        ("link", Queueing::Link),
        ("traffic_manager", Queueing::TrafficManager),
    ];
    chosen("queueing is", name, choices)
}

/// Reads a traffic manager's configuration: `queues`, `queue`, `queue_of_priority` and `recirculation`.
pub(crate) fn traffic_manager(
    parameters: Option<&Bound<'_, PyDict>>,
) -> PyResult<TrafficManagerConfig> {
    let mut config = TrafficManagerConfig::default();
    let Some(parameters) = parameters else {
        return Ok(config);
    };
    read(parameters, |keywords| {
        config.queues = keywords.take("queues")?.unwrap_or(config.queues);
        config.queue = keywords.nested("queue", queue_of)?;
        let own: Option<Bound<'_, PyDict>> = keywords.take("queue_of_priority")?;
        for (number, queue) in own.iter().flat_map(|own| own.iter()) {
            let queue = read(queue.cast()?, queue_of)?;
            config.queue_of_priority.push((number.extract()?, queue));
        }
        config.recirculation = keywords.nested("recirculation", recirculation)?;
        Ok(config)
    })
}

/// Reads the configuration of recirculation ports: `ports`, `rate_bps`, `spread` and `queue`.
fn recirculation(keywords: &Keywords<'_>) -> PyResult<RecirculationConfig> {
    let rate_bps: Option<u64> = keywords.take("rate_bps")?;
    let mut config = RecirculationConfig::new(rate_bps.unwrap_or(0));
    config.ports = keywords.take("ports")?.unwrap_or(config.ports);
    config.queue = keywords.nested("queue", queue_of)?.unwrap_or(config.queue);
    let spread: Option<String> = keywords.take("spread")?;
    let choices = [("round-robin", Spread::RoundRobin), ("hash", Spread::Hash)];
    config.spread = chosen(
        "spread is",
        spread.as_deref().unwrap_or("round-robin"),
        choices,
    )?;
    Ok(config)
}
