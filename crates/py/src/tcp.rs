//! TCP flows for Python: options by name.

use crate::errors::{chosen, failed};
use net::Family;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tcp::{
    Config, Congestion, Cubic, DelayedAck, ExitWindow, Hpcc, HyStart, Increase, NewReno,
    PartialAck, Recovery, Reduction,
};

/// Builds a TCP configuration from a preset and options; each option sets the configuration's field of the same name.
/// A preset's packets have the same length in both families, so that segments over IPv6 contain 20 bytes less. Fails
/// for an unknown preset, option or name.
pub(crate) fn config(
    preset: &str,
    options: &Bound<'_, PyDict>,
    family: Family,
) -> PyResult<Config> {
    let longer_header_bytes = match family {
        Family::Ipv4 => 0,
        Family::Ipv6 => 20,
    };
    let standard = Config::default();
    let standard = Config {
        mss: standard.mss - longer_header_bytes,
        ..standard
    };
    let choices = [
        ("standard", standard),
        ("ns2-2001", Config::ns2_2001(960 - longer_header_bytes)),
    ];
    let mut config = chosen("preset must be", preset, choices)?;
    if preset == "ns2-2001"
        && let Some(mss) = options.get_item("mss")?
    {
        config = Config::ns2_2001(mss.extract()?);
    }
    // Algorithms first: the other options change their details.
    for name in ["congestion", "recovery", "increase"] {
        if let Some(value) = options.get_item(name)? {
            set(&mut config, name, &value)?;
        }
    }
    for (name, value) in options {
        let name = name.extract::<String>()?;
        if !["congestion", "recovery", "increase"].contains(&name.as_str()) {
            set(&mut config, &name, &value)?;
        }
    }
    Ok(config)
}

fn set(config: &mut Config, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    match name {
        "mss" => config.mss = value.extract()?,
        "initial_window_segments" => config.initial_window_segments = value.extract()?,
        "window_limit_bytes" => config.window_limit_bytes = value.extract()?,
        "initial_ssthresh_bytes" => config.initial_ssthresh_bytes = value.extract()?,
        "congestion" => config.congestion = congestion(&value.extract::<String>()?)?,
        "recovery" => config.recovery = recovery(&value.extract::<String>()?, config.recovery)?,
        "increase" => config.increase = increase(&value.extract::<String>()?)?,
        "slow_start_limit_segments" => match &mut config.increase {
            Increase::PerByte {
                slow_start_limit_segments,
            } => *slow_start_limit_segments = value.extract()?,
            Increase::PerAck => {
                return Err(failed(
                    "slow_start_limit_segments belongs to the increase \"per-byte\"",
                ));
            }
        },
        "cubic_tcp_friendly" => details_of_cubic(config)?.tcp_friendly = value.extract()?,
        "cubic_fast_convergence" => details_of_cubic(config)?.fast_convergence = value.extract()?,
        "hpcc_rate_bps" => details_of_hpcc(config)?.rate_bps = value.extract()?,
        "hpcc_base_rtt_ps" => details_of_hpcc(config)?.base_rtt_ps = value.extract()?,
        "hpcc_increment_bytes" => details_of_hpcc(config)?.ai_bytes = value.extract()?,
        "hpcc_utilisation" => {
            let utilisation: f64 = value.extract()?;
            details_of_hpcc(config)?.eta_permille = (utilisation * 1000.0).round() as u32;
        }
        "hpcc_stages" => details_of_hpcc(config)?.max_stage = value.extract()?,
        "newreno_exit" => match &mut config.recovery {
            Recovery::NewReno(details) => details.exit = exit(&value.extract::<String>()?)?,
            _ => {
                return Err(failed(
                    "newreno_exit belongs to the recoveries \"newreno-impatient\" and \"newreno-slow-but-steady\"",
                ));
            }
        },
        "reduction" => config.reduction = reduction(&value.extract::<String>()?)?,
        "cubic_searches" => details_of_cubic(config)?.searches = value.extract()?,
        "hystart" => config.hystart = hystart(value)?,
        "duplicate_threshold" => config.duplicate_threshold = value.extract()?,
        "limited_transmit" => config.limited_transmit = value.extract()?,
        "window_validation" => config.window_validation = value.extract()?,
        "nagle" => config.nagle = value.extract()?,
        "ecn" => config.ecn = value.extract()?,
        "timestamps" => config.timestamps = value.extract()?,
        "delayed_ack_ps" => {
            let timeout_ps: u64 = value.extract()?;
            config.delayed_ack = (timeout_ps > 0).then_some(DelayedAck {
                every: 2,
                timeout_ps,
                quick_segments: config.delayed_ack.map_or(0, |d| d.quick_segments),
            });
        }
        "quick_ack_segments" => match &mut config.delayed_ack {
            Some(delayed) => delayed.quick_segments = value.extract()?,
            None => {
                return Err(failed(
                    "quick_ack_segments belongs to delayed acknowledgments",
                ));
            }
        },
        "rto_granularity_ps" => config.rto.granularity_ps = value.extract()?,
        "rto_minimum_ps" => config.rto.minimum_ps = value.extract()?,
        "rto_maximum_ps" => config.rto.maximum_ps = value.extract()?,
        "rto_initial_ps" => config.rto.initial_ps = value.extract()?,
        "timeout_limit" => config.timeout_limit = value.extract()?,
        _ => return Err(failed(format!("TCP has no option {name:?}"))),
    }
    Ok(())
}

fn reduction(name: &str) -> PyResult<Reduction> {
    let choices = [
        ("flight", Reduction::FlightSize),
        ("window", Reduction::Window),
    ];
    chosen("reduction must be", name, choices)
}

/// Reads the option ``hystart``: whether HyStart++ is used, or ``"classic"`` for the original HyStart. Fails for
/// anything else.
fn hystart(value: &Bound<'_, PyAny>) -> PyResult<Option<HyStart>> {
    if let Ok(wanted) = value.extract::<bool>() {
        return Ok(wanted.then_some(HyStart::PlusPlus));
    }
    match value.extract::<String>()?.as_str() {
        "classic" => Ok(Some(HyStart::Classic)),
        other => Err(failed(format!(
            "hystart must be True, False or \"classic\", not {other:?}"
        ))),
    }
}

fn congestion(name: &str) -> PyResult<Congestion> {
    let choices = [
        ("newreno", Congestion::NewReno),
        ("cubic", Congestion::Cubic(Cubic::RFC_9438)),
        ("bbr", Congestion::Bbr),
        ("dctcp", Congestion::Dctcp),
        ("hpcc", Congestion::Hpcc(Hpcc::published(0, 0))),
    ];
    chosen("congestion must be", name, choices)
}

fn details_of_cubic(config: &mut Config) -> PyResult<&mut Cubic> {
    match &mut config.congestion {
        Congestion::Cubic(details) => Ok(details),
        _ => Err(failed("cubic_* options belong to the congestion \"cubic\"")),
    }
}

/// Returns HPCC's parameters for changes. Rate and base round-trip time have no default: the configuration's check
/// refuses zeros. Fails if the congestion control is not HPCC.
fn details_of_hpcc(config: &mut Config) -> PyResult<&mut Hpcc> {
    match &mut config.congestion {
        Congestion::Hpcc(details) => Ok(details),
        _ => Err(failed("hpcc_* options belong to the congestion \"hpcc\"")),
    }
}

fn increase(name: &str) -> PyResult<Increase> {
    let choices = [
        ("per-ack", Increase::PerAck),
        ("per-byte", Config::default().increase),
    ];
    chosen("increase must be", name, choices)
}

fn exit(name: &str) -> PyResult<ExitWindow> {
    let choices = [
        ("at-most-flight", ExitWindow::AtMostFlight),
        ("ssthresh", ExitWindow::Ssthresh),
    ];
    chosen("newreno_exit must be", name, choices)
}

/// Parses the name of a kind of loss recovery. Both forms of NewReno keep the preset's other details. Fails for an
/// unknown name.
fn recovery(name: &str, preset: Recovery) -> PyResult<Recovery> {
    let details = match preset {
        Recovery::NewReno(details) => details,
        _ => NewReno::RFC_6582,
    };
    let newreno = |partial_ack| {
        Recovery::NewReno(NewReno {
            partial_ack,
            ..details
        })
    };
    let choices = [
        ("newreno-impatient", newreno(PartialAck::Impatient)),
        (
            "newreno-slow-but-steady",
            newreno(PartialAck::SlowButSteady),
        ),
        (
            "sack",
            Recovery::Sack {
                proportional: false,
            },
        ),
        ("sack-prr", Recovery::Sack { proportional: true }),
        ("rack-tlp", Recovery::RFC_8985),
    ];
    chosen("recovery must be", name, choices)
}
