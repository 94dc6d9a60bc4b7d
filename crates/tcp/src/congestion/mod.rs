//! Congestion control sets the window. Each algorithm has its own file and implements [`Control`].
//!
//! It does not know which segments were lost or what is sent next: the sender reports events and reads the window.

mod bbr;
mod cubic;
mod dctcp;
mod hpcc;
mod newreno;
mod slow_start;

use crate::config::{Config, Congestion};
use bbr::Bbr;
use cubic::Cubic;
use dctcp::Dctcp;
use hpcc::Hpcc;
use newreno::NewReno;
use wire::int::PathLoad;

/// The window and slow-start threshold that an algorithm controls, in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(crate) cwnd: u64,
    pub(crate) ssthresh: u64,
    pub(crate) mss: u64,
}

impl Window {
    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Returns the smallest allowed slow-start threshold, two segments, in bytes.
    pub(crate) fn floor(&self) -> u64 {
        2 * self.mss
    }
}

/// An acknowledgment of new data, outside of recovery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack {
    pub(crate) now_ps: u64,
    /// The bytes that it newly acknowledged.
    pub(crate) acked_bytes: u64,
    /// The round-trip time that it measured.
    pub(crate) rtt_ps: Option<u64>,
    pub(crate) srtt_ps: u64,
    /// SND.UNA: the first unacknowledged number after it.
    pub(crate) una: u64,
    /// The number behind the highest one sent.
    pub(crate) max: u64,
}

/// Congestion: a loss, a timeout or an ECN echo.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    /// The window from which the reduction starts, as the configuration defines it.
    pub(crate) from_bytes: u64,
    /// True if ECN signalled the congestion and nothing was lost.
    pub(crate) is_echo: bool,
}

impl Loss {
    /// Creates the event of a lost segment; `from_bytes` is the window from which the reduction starts.
    pub(crate) fn lost(from_bytes: u64) -> Loss {
        Loss {
            from_bytes,
            is_echo: false,
        }
    }
}

/// The congestion marks of an acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    /// Bytes newly acknowledged.
    pub(crate) acked_bytes: u64,
    /// True if the acknowledgment echoes congestion.
    pub(crate) echoes: bool,
    /// First unacknowledged number.
    pub(crate) ack: u64,
    /// SND.NXT.
    pub(crate) next: u64,
}

/// The loads of the path's links, as an acknowledgment echoes them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Echo<'a> {
    /// First unacknowledged number.
    pub(crate) ack: u64,
    /// SND.NXT.
    pub(crate) next: u64,
    pub(crate) load: &'a PathLoad,
}

/// The sender's measurements at an acknowledgment, for algorithms with a model of the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) now_ps: u64,
    /// Bytes newly known to have arrived.
    pub(crate) delivered_bytes: u64,
    /// Bytes newly known to be lost.
    pub(crate) lost_bytes: u64,
    /// Bytes in flight after the acknowledgment.
    pub(crate) flight_bytes: u64,
    /// Bytes delivered in all.
    pub(crate) total_delivered: u64,
    /// Bytes that had been delivered when the newest delivered segment left.
    pub(crate) prior_delivered: Option<u64>,
    /// Delivery rate in bytes per second, if it could be measured.
    pub(crate) rate: Option<u64>,
    /// True if the application, not the path, limited that rate.
    pub(crate) app_limited: bool,
    pub(crate) rtt_ps: Option<u64>,
    /// True during recovery.
    pub(crate) recovering: bool,
}

/// Computes `a * b / c`, at most `u64::MAX`; divides by 1 if `c` is zero. Uses 128 bits only if the product needs them.
pub(crate) fn scaled(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product / c.max(1),
        None => {
            let exact = u128::from(a) * u128::from(b) / u128::from(c.max(1));
            u64::try_from(exact).unwrap_or(u64::MAX)
        }
    }
}

/// The end of an idle time: new data is sent while nothing is in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    pub(crate) now_ps: u64,
    /// Time since the last segment was sent.
    pub(crate) idle_ps: u64,
    /// True if the sender has lowered the window because of the idle time.
    pub(crate) lowered: bool,
}

/// A congestion control algorithm.
pub(crate) trait Control {
    /// Makes the window grow after an acknowledgment of new data outside of recovery.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack);
    /// Sets the slow-start threshold after a loss was detected or congestion was signalled. The caller sets the
    /// window.
    fn on_congestion(&mut self, window: &mut Window, loss: &Loss);
    /// Sets the slow-start threshold after the retransmission timer expired. The caller sets the window.
    fn on_timeout(&mut self, window: &mut Window, loss: &Loss);
    /// Handles an acknowledgment of new data during which the application or the peer's window, not the congestion
    /// window, limits the sender.
    fn on_unused(&mut self, _now_ps: u64) {}
    /// Handles the end of an idle time, in which nothing was in flight.
    fn on_silence(&mut self, _silence: &Silence) {}
    /// Handles the end of the handshake, which measured a round-trip time of `rtt_ps` picoseconds (0 if unknown).
    fn on_established(&mut self, _window: &Window, _now_ps: u64, _rtt_ps: u64) {}

    /// Handles the ECN echo of an acknowledgment, before the acknowledgment changes the window. Called only if both
    /// ends use ECN.
    fn on_mark(&mut self, _mark: &Mark) {}
    /// Handles the loads of the path's links that an acknowledgment echoed in INT headers.
    fn on_echo(&mut self, _window: &mut Window, _echo: &Echo<'_>) {}
    /// Returns the algorithm's own initial window in bytes, or `None` to use the configured one.
    fn initial_window(&self, _mss: u64) -> Option<u64> {
        None
    }

    /// Returns true if the algorithm has a model of the path. Such an algorithm receives samples, and sets the window
    /// itself, even during recovery.
    fn has_model(&self) -> bool {
        false
    }
    /// Handles the measurements of an acknowledgment. Called only for algorithms that have a model.
    fn on_sample(&mut self, _window: &mut Window, _sample: &Sample) {}
    /// Returns the rate in bytes per second at which segments are paced; `None` if they are not paced.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }
}

/// The configured algorithm.
#[derive(Clone, Debug)]
pub(crate) enum Algorithm {
    NewReno(NewReno),
    Cubic(Cubic),
    Bbr(Box<Bbr>),
    Dctcp(Dctcp),
    Hpcc(Box<Hpcc>),
}

/// Calls a method of whichever algorithm is configured.
macro_rules! each {
    ($self:expr, $algorithm:ident => $call:expr) => {
        match $self {
            Algorithm::NewReno($algorithm) => $call,
            Algorithm::Cubic($algorithm) => $call,
            Algorithm::Bbr($algorithm) => $call,
            Algorithm::Dctcp($algorithm) => $call,
            Algorithm::Hpcc($algorithm) => $call,
        }
    };
}

impl Algorithm {
    /// Creates the configured algorithm. `seed` determines the phase in which BBR's first cycle begins.
    pub(crate) fn new(config: &Config, seed: u32) -> Algorithm {
        match config.congestion {
            Congestion::NewReno => Algorithm::without_model(config),
            Congestion::Cubic(choices) => {
                Algorithm::Cubic(Cubic::new(choices, config.increase, config.hystart))
            }
            Congestion::Bbr => Algorithm::Bbr(Box::new(Bbr::new(seed))),
            Congestion::Dctcp => Algorithm::Dctcp(Dctcp::new(config.increase, config.hystart)),
            Congestion::Hpcc(choices) => Algorithm::Hpcc(Box::new(Hpcc::new(choices))),
        }
    }

    /// Creates NewReno, which is also the replacement when the configured algorithm needs selective acknowledgments and
    /// the connection has none.
    pub(crate) fn without_model(config: &Config) -> Algorithm {
        Algorithm::NewReno(NewReno::new(config.increase, config.hystart))
    }
}

impl Control for Algorithm {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        each!(self, algorithm => algorithm.on_ack(window, ack));
    }

    fn on_congestion(&mut self, window: &mut Window, loss: &Loss) {
        each!(self, algorithm => algorithm.on_congestion(window, loss));
    }

    fn on_timeout(&mut self, window: &mut Window, loss: &Loss) {
        each!(self, algorithm => algorithm.on_timeout(window, loss));
    }

    fn on_unused(&mut self, now_ps: u64) {
        each!(self, algorithm => algorithm.on_unused(now_ps));
    }

    fn on_silence(&mut self, silence: &Silence) {
        each!(self, algorithm => algorithm.on_silence(silence));
    }

    fn on_established(&mut self, window: &Window, now_ps: u64, rtt_ps: u64) {
        each!(self, algorithm => algorithm.on_established(window, now_ps, rtt_ps));
    }

    fn on_mark(&mut self, mark: &Mark) {
        each!(self, algorithm => algorithm.on_mark(mark));
    }

    fn on_echo(&mut self, window: &mut Window, echo: &Echo<'_>) {
        each!(self, algorithm => algorithm.on_echo(window, echo));
    }

    fn initial_window(&self, mss: u64) -> Option<u64> {
        each!(self, algorithm => algorithm.initial_window(mss))
    }

    fn has_model(&self) -> bool {
        each!(self, algorithm => algorithm.has_model())
    }

    fn on_sample(&mut self, window: &mut Window, sample: &Sample) {
        each!(self, algorithm => algorithm.on_sample(window, sample));
    }

    fn pacing_rate(&self) -> Option<u64> {
        each!(self, algorithm => algorithm.pacing_rate())
    }
}
