//! Parameters of links and queues from Python's keywords. It does not know the network.

use crate::errors::failed;
use crate::readings::record;
use net::failure::Duration;
use net::{
    BfdConfig, BfdStatistics, BitField, Discipline, GilbertElliott, Jitter, LinkConfig,
    LinkDirection, Loss, LossTrace, OrderingConfig, QueueConfig, QueueUnit, Queueing,
    RecirculationConfig, Red, SequenceHeader, Spread, Step, TrafficManagerConfig,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use wire::bfd::State;

/// A direction by its name.
pub(crate) fn direction(name: &str) -> PyResult<LinkDirection> {
    match name {
        "a_to_b" => Ok(LinkDirection::AToB),
        "b_to_a" => Ok(LinkDirection::BToA),
        _ => Err(failed("a direction is \"a_to_b\" or \"b_to_a\"")),
    }
}

/// How long something lasts: `("exponential", mean_ps)` or `("fixed", time_ps)`.
pub(crate) fn duration((distribution, ps): &(String, u64)) -> PyResult<Duration> {
    match distribution.as_str() {
        "exponential" => Ok(Duration::Exponential { mean_ps: *ps }),
        "fixed" => Ok(Duration::Fixed { time_ps: *ps }),
        other => Err(failed(format!(
            "a time is \"exponential\" or \"fixed\", not {other:?}"
        ))),
    }
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
    /// A value that must be there.
    fn needed<T: FromPyObjectOwned<'py>>(&self, key: &str) -> PyResult<T> {
        let value = self.take(key)?;
        value.ok_or_else(|| failed(format!("{key} is missing")))
    }

    /// A value, if it is there and not None.
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

    fn finish(self) -> PyResult<()> {
        match self.0.keys().iter().next() {
            None => Ok(()),
            Some(key) => Err(failed(format!("there is no parameter {}", key.str()?))),
        }
    }
}

fn unit(name: &str) -> PyResult<QueueUnit> {
    match name {
        "bytes" => Ok(QueueUnit::Bytes),
        "packets" => Ok(QueueUnit::Packets),
        other => Err(failed(format!(
            "a queue counts \"bytes\" or \"packets\", not {other:?}"
        ))),
    }
}

fn red(dict: &Bound<'_, PyDict>) -> PyResult<Red> {
    let keywords = Keywords(dict.copy()?);
    let unit = unit(&keywords.needed::<String>("unit")?)?;
    let mut red = Red::new(unit, keywords.needed("min")?, keywords.needed("max")?);
    red.max_p = keywords.take("max_p")?.unwrap_or(red.max_p);
    red.weight = keywords.take("weight")?.unwrap_or(red.weight);
    red.gentle = keywords.take("gentle")?.unwrap_or(red.gentle);
    red.ecn = keywords.take("ecn")?.unwrap_or(red.ecn);
    let mean = keywords.take("mean_packet_bytes")?;
    red.mean_packet_bytes = mean.unwrap_or(red.mean_packet_bytes);
    keywords.finish()?;
    Ok(red)
}

fn step(dict: &Bound<'_, PyDict>) -> PyResult<Step> {
    let keywords = Keywords(dict.copy()?);
    let step = Step {
        unit: unit(&keywords.needed::<String>("unit")?)?,
        threshold: keywords.needed("threshold")?,
    };
    keywords.finish()?;
    Ok(step)
}

/// A queue: `queue_bytes` or `queue_packets`, `red` or `mark_above`.
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
    queue.discipline = match (keywords.take("red")?, keywords.take("mark_above")?) {
        (None, None) => Discipline::DropTail,
        (Some(dict), None) => Discipline::Red(red(&dict)?),
        (None, Some(dict)) => Discipline::Step(step(&dict)?),
        (Some(_), Some(_)) => return Err(failed("give red or mark_above, not both")),
    };
    Ok(queue)
}

/// A link's configuration.
pub(crate) fn link_config(parameters: Option<&Bound<'_, PyDict>>) -> PyResult<LinkConfig> {
    let Some(parameters) = parameters else {
        return Err(failed("rate_bps is missing"));
    };
    let keywords = Keywords(parameters.copy()?);
    let mut config = LinkConfig::new(
        keywords.needed("rate_bps")?,
        keywords.take("delay_ps")?.unwrap_or(0),
    );
    config.jitter = keywords
        .take("jitter")?
        .map_or(Ok(Jitter::None), self::jitter)?;
    config.loss = keywords.take("loss")?.map_or(Ok(Loss::None), self::loss)?;
    config.queue = queue(&keywords, config.queue)?;
    config.detection.signal_down_ps = keywords.take("detection_down_ps")?;
    config.detection.signal_up_ps = keywords.take("detection_up_ps")?;
    let bfd: Option<Bound<'_, PyDict>> = keywords.take("bfd")?;
    config.detection.bfd = bfd.as_ref().map(self::bfd).transpose()?;
    config.mtu_bytes = keywords.take("mtu_bytes")?;
    let ordering: Option<Bound<'_, PyDict>> = keywords.take("ordering")?;
    config.ordering = ordering.as_ref().map(self::ordering).transpose()?;
    keywords.finish()?;
    Ok(config)
}

/// A BFD session's timers: `desired_min_tx_us`, `required_min_rx_us` and `detect_mult`.
fn bfd(dict: &Bound<'_, PyDict>) -> PyResult<BfdConfig> {
    let keywords = Keywords(dict.copy()?);
    let config = BfdConfig {
        desired_min_tx_us: keywords.needed("desired_min_tx_us")?,
        required_min_rx_us: keywords.needed("required_min_rx_us")?,
        detect_mult: keywords.needed("detect_mult")?,
    };
    keywords.finish()?;
    Ok(config)
}

/// One end of a BFD session, as a `BfdStatistics`.
pub(crate) fn bfd_statistics<'py>(
    py: Python<'py>,
    s: &BfdStatistics,
) -> PyResult<Bound<'py, PyAny>> {
    let state = match s.state {
        State::AdminDown => "admin_down",
        State::Down => "down",
        State::Init => "init",
        State::Up => "up",
    };
    record!(
        py,
        BfdStatistics,
        s,
        [
            sent, received, refused, came_up, went_down, expired, changed_ps, detection_time_ps,
        ],
        { state: state, diagnostic: s.diagnostic.0 }
    )
}

/// An ordering function: `max_delay_ps`, `take_any_ps`, `buffer_packets`, `sequence_bits` and `headers`.
fn ordering(dict: &Bound<'_, PyDict>) -> PyResult<OrderingConfig> {
    let keywords = Keywords(dict.copy()?);
    let mut config = OrderingConfig::new(
        keywords.needed("max_delay_ps")?,
        keywords.needed("take_any_ps")?,
    );
    let buffer_packets = keywords.take("buffer_packets")?;
    config.buffer_packets = buffer_packets.unwrap_or(config.buffer_packets);
    config.sequence_bits = keywords.take("sequence_bits")?;
    let headers: Option<Vec<Bound<'_, PyDict>>> = keywords.take("headers")?;
    config.headers = headers
        .unwrap_or_default()
        .iter()
        .map(sequence_header)
        .collect::<PyResult<_>>()?;
    keywords.finish()?;
    Ok(config)
}

/// A header with a sequence number: `ethertype`, `bytes`, `sequence`, `following`, and perhaps `stream` and `ethertypes`. Fields are
/// `(offset, width)` in bits.
fn sequence_header(dict: &Bound<'_, PyDict>) -> PyResult<SequenceHeader> {
    let keywords = Keywords(dict.copy()?);
    let field = |(offset, width): (u32, u32)| BitField { offset, width };
    let header = SequenceHeader {
        ethertype: keywords.needed("ethertype")?,
        bytes: keywords.needed("bytes")?,
        sequence: field(keywords.needed("sequence")?),
        stream: keywords.take("stream")?.map(field),
        following: field(keywords.needed("following")?),
        ethertypes: keywords.take("ethertypes")?.unwrap_or_default(),
    };
    keywords.finish()?;
    Ok(header)
}

/// `queue_bytes`, `queue_packets`, `red` and `mark_above` of one queue.
fn queue_of(dict: &Bound<'_, PyDict>) -> PyResult<QueueConfig> {
    let keywords = Keywords(dict.copy()?);
    let queue = queue(&keywords, QueueConfig::bytes(150_000))?;
    keywords.finish()?;
    Ok(queue)
}

/// Where packets of a switch wait, by name.
pub(crate) fn queueing(name: &str) -> PyResult<Queueing> {
    match name {
        "auto" => Ok(Queueing::Auto),
        "link" => Ok(Queueing::Link),
        "traffic_manager" => Ok(Queueing::TrafficManager),
        other => Err(failed(format!(
            "queueing is \"auto\", \"link\" or \"traffic_manager\", not {other:?}"
        ))),
    }
}

/// A traffic manager: `queues`, `queue`, `queue_of_priority` and `recirculation`.
pub(crate) fn traffic_manager(
    parameters: Option<&Bound<'_, PyDict>>,
) -> PyResult<TrafficManagerConfig> {
    let mut config = TrafficManagerConfig::default();
    let Some(parameters) = parameters else {
        return Ok(config);
    };
    let keywords = Keywords(parameters.copy()?);
    config.queues = keywords.take("queues")?.unwrap_or(config.queues);
    let queue: Option<Bound<'_, PyDict>> = keywords.take("queue")?;
    config.queue = queue.as_ref().map(queue_of).transpose()?;
    let own: Option<Bound<'_, PyDict>> = keywords.take("queue_of_priority")?;
    for (number, queue) in own.iter().flat_map(|own| own.iter()) {
        let (number, queue) = (number.extract()?, queue_of(queue.cast()?)?);
        config.queue_of_priority.push((number, queue));
    }
    let ports: Option<Bound<'_, PyDict>> = keywords.take("recirculation")?;
    config.recirculation = ports.as_ref().map(recirculation).transpose()?;
    keywords.finish()?;
    Ok(config)
}

/// Recirculation ports: `ports`, `rate_bps`, `spread` and `queue`.
fn recirculation(parameters: &Bound<'_, PyDict>) -> PyResult<RecirculationConfig> {
    let keywords = Keywords(parameters.copy()?);
    let rate_bps: Option<u64> = keywords.take("rate_bps")?;
    let mut config = RecirculationConfig::new(rate_bps.unwrap_or(0));
    config.ports = keywords.take("ports")?.unwrap_or(config.ports);
    let queue: Option<Bound<'_, PyDict>> = keywords.take("queue")?;
    if let Some(queue) = queue {
        config.queue = queue_of(&queue)?;
    }
    let spread: Option<String> = keywords.take("spread")?;
    config.spread = match spread.as_deref() {
        None | Some("round-robin") => Spread::RoundRobin,
        Some("hash") => Spread::Hash,
        Some(other) => {
            return Err(failed(format!(
                "spread is \"round-robin\" or \"hash\", not {other:?}"
            )));
        }
    };
    keywords.finish()?;
    Ok(config)
}
