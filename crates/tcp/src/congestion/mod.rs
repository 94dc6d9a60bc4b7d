//! Congestion control: how large the window is. One file per algorithm, all behind [`Control`].
//!
//! It does not know which segments were lost or what is sent next; the sender tells it what happened and reads the window.

mod newreno;

use crate::config::{Config, Congestion};
use newreno::NewReno;

/// The window that an algorithm steers. All in bytes.
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

    /// The least that a threshold can be.
    pub(crate) fn floor(&self) -> u64 {
        2 * self.mss
    }
}

/// An acknowledgment of new data, outside of recovery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack {
    /// Bytes that it acknowledged.
    pub(crate) acked_bytes: u64,
}

/// Congestion that halves the window, or what an algorithm does instead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    /// The window that the reduction starts from, as the configuration defines it.
    pub(crate) from_bytes: u64,
}

/// What an algorithm has to answer.
pub(crate) trait Control {
    /// New data was acknowledged and the window may grow.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack);
    /// A loss was found, or congestion was notified: sets the threshold. The caller sets the window.
    fn on_congestion(&mut self, window: &mut Window, loss: &Loss);
    /// The timer expired: sets the threshold. The caller sets the window.
    fn on_timeout(&mut self, window: &mut Window, loss: &Loss);
}

/// The configured algorithm.
#[derive(Clone, Debug)]
pub(crate) enum Algorithm {
    NewReno(NewReno),
}

impl Algorithm {
    pub(crate) fn new(config: &Config) -> Algorithm {
        match config.congestion {
            Congestion::NewReno => Algorithm::NewReno(NewReno::new(config.increase)),
        }
    }
}

impl Control for Algorithm {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        match self {
            Algorithm::NewReno(algorithm) => algorithm.on_ack(window, ack),
        }
    }

    fn on_congestion(&mut self, window: &mut Window, loss: &Loss) {
        match self {
            Algorithm::NewReno(algorithm) => algorithm.on_congestion(window, loss),
        }
    }

    fn on_timeout(&mut self, window: &mut Window, loss: &Loss) {
        match self {
            Algorithm::NewReno(algorithm) => algorithm.on_timeout(window, loss),
        }
    }
}
