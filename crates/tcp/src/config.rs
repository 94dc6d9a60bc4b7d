//! The configuration of an endpoint. The defaults are those of the current RFCs; a paper's or a simulator's choices
//! are presets. Invalid values are refused, never changed.

use std::fmt;

const MILLISECOND_PS: u64 = 1_000_000_000;
const SECOND_PS: u64 = 1_000_000_000_000;

/// The configuration of one end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Payload bytes per segment: the size that this end offers, and the most that it sends. Options come on top.
    pub mss: u32,
    /// Initial window in segments (RFC 6928: 10; RFC 3390: 2 to 4).
    pub initial_window_segments: u32,
    /// Receive buffer, from which the advertised window follows, and most bytes in flight. Above 65,535 the window is scaled.
    pub window_limit_bytes: u64,
    /// The slow start threshold at the beginning; if `None`, slow start ends with the first loss.
    pub initial_ssthresh_bytes: Option<u64>,
    /// The congestion control algorithm.
    pub congestion: Congestion,
    /// The growth of the window under [`Congestion::NewReno`], and in every algorithm's slow start.
    pub increase: Increase,
    /// The condition that ends the first slow start when the round trip grows. It needs a measurement for every acknowledgment: selective
    /// acknowledgments or timestamps.
    pub hystart: Option<HyStart>,
    /// The window from which a reduction starts.
    pub reduction: Reduction,
    /// The algorithm that detects lost segments and retransmits them.
    pub recovery: Recovery,
    /// The number of duplicate acknowledgments that mean a loss (RFC 5681: 3).
    pub duplicate_threshold: u32,
    /// True if each of the first two duplicate acknowledgments allows one new segment to be sent (RFC 3042).
    pub limited_transmit: bool,
    /// True if the window grows only while it limits the sender (RFC 7661's concern, in its simplest form).
    pub window_validation: bool,
    /// True if the window begins as a new connection's after an idle time longer than the timeout (RFC 5681, 4.1).
    pub restarts_after_idle: bool,
    /// The most segments that are sent because of one acknowledgment.
    pub burst_segments: Option<u32>,
    /// True if small segments wait while others are unacknowledged (RFC 9293, 3.7.4).
    pub nagle: bool,
    /// The retransmission timer.
    pub rto: RtoConfig,
    /// Delayed acknowledgments, which wait for more data (RFC 5681, 4.2).
    pub delayed_ack: Option<DelayedAck>,
    /// True if explicit congestion notification (RFC 3168) is negotiated.
    pub ecn: bool,
    /// True if timestamps (RFC 7323) are negotiated.
    pub timestamps: bool,
    /// One step of the timestamps' clock (RFC 7323: 1 ms to 1 s).
    pub timestamp_tick_ps: u64,
    /// True if data received in order counts as read by the application at once. Otherwise the application calls
    /// [`crate::Connection::read`], and the offered window shrinks meanwhile.
    pub reads_at_once: bool,
    /// The number of timeouts in a row after which the connection fails.
    pub timeout_limit: u32,
    /// The duration of TIME-WAIT: twice the maximum segment lifetime.
    pub time_wait_ps: u64,
}

/// The end of the first slow start, before the queue overflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HyStart {
    /// HyStart++ (RFC 9406): a round trip that grew from one round to the next slows the growth down, and five such rounds end it.
    PlusPlus,
    /// HyStart (Ha and Rhee, 2008) with Linux's parameters: a round trip above the smallest so far, or a train of acknowledgments
    /// that is half as long, ends slow start at once.
    Classic,
}

/// Congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// Slow start and congestion avoidance of RFC 5681.
    NewReno,
    /// CUBIC (RFC 9438).
    Cubic(Cubic),
    /// BBR, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00), with pacing. It needs selective acknowledgments; where the
    /// other end does not permit them, NewReno takes over.
    Bbr,
    /// DCTCP (RFC 8257). It needs ECN, and an acknowledgment for each segment, which echoes that segment's mark (3.2).
    Dctcp,
    /// HPCC (Li and others, SIGCOMM 2019), with pacing. It needs selective acknowledgments, and the loads of links in INT headers
    /// ([`crate::Connection::telemetry`]); where the other end does not permit the former, NewReno takes over.
    Hpcc(Hpcc),
}

/// Parameters of HPCC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hpcc {
    /// B: the rate of the sender's network card in bits per second. B * T is the first window, and the largest.
    pub rate_bps: u64,
    /// T: the round trip of an empty network, the same for all senders.
    pub base_rtt_ps: u64,
    /// W_AI: the additive increase of the window in bytes, which makes the algorithm fair.
    pub ai_bytes: u64,
    /// Eta: the target utilisation of links, in thousandths.
    pub eta_permille: u32,
    /// Round trips of additive increase before a multiplicative one.
    pub max_stage: u32,
}

impl Hpcc {
    /// Creates HPCC's parameters for a network card of `rate_bps` bits per second and a base round-trip time of
    /// `base_rtt_ps` picoseconds, with eta, maxStage and W_AI of the paper's evaluation.
    pub fn published(rate_bps: u64, base_rtt_ps: u64) -> Hpcc {
        Hpcc {
            rate_bps,
            base_rtt_ps,
            ai_bytes: 80,
            eta_permille: 950,
            max_stage: 5,
        }
    }
}

/// Choices that RFC 9438 leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cubic {
    /// True if the window is never smaller than Reno's would be (4.3).
    pub tcp_friendly: bool,
    /// True if a flow whose window shrinks releases more bandwidth, for new flows (4.7).
    pub fast_convergence: bool,
    /// Before the first congestion, when slow start has ended but nothing is known of the path, the window grows by a twentieth of
    /// what is acknowledged at least (Linux; not in the RFC).
    pub searches: bool,
}

impl Cubic {
    /// RFC 9438 with its recommendations.
    pub const RFC_9438: Cubic = Cubic {
        tcp_friendly: true,
        fast_convergence: true,
        searches: false,
    };
}

/// How acknowledgments are counted in slow start and congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Increase {
    /// By acknowledgments: each adds one segment in slow start, and `mss * mss / cwnd` in congestion avoidance.
    PerAck,
    /// By acknowledged bytes (RFC 3465, recommended by RFC 5681).
    PerByte {
        /// Segments that one acknowledgment may add in slow start (L; RFC 5681 has 1, RFC 3465 allows 2).
        slow_start_limit_segments: u32,
    },
}

/// The window that a reduction halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Half of what is in flight, at least two segments (RFC 5681, equation 4).
    FlightSize,
    /// Half of the congestion window (Linux; RFC 9438, 4.6, allows it). They differ where acknowledgments were lost: one that
    /// acknowledges much and tells of a loss leaves little in flight. A timeout in fast recovery and the loss of a
    /// segment that was sent again reduce nothing more.
    Window,
    /// Half of the usable window in whole segments, rounded down, at least two (ns-2).
    WholeSegments,
}

/// Loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// By cumulative acknowledgments only (RFC 6582). The other two fall back to it, as [`NewReno::RFC_6582`], where the other
    /// end does not permit selective acknowledgments.
    NewReno(NewReno),
    /// By selective acknowledgments (RFC 6675).
    Sack {
        /// True if the window shrinks in proportion to what is delivered (PRR, RFC 6937) and not at once.
        proportional: bool,
    },
    /// By time (RACK) and tail loss probes (RFC 8985).
    RackTlp {
        /// True if the window shrinks in proportion to what is delivered (PRR, RFC 6937) and not at once.
        proportional: bool,
        /// The other end's longest delay of an acknowledgment, for probes of a single segment (WCDelAckT).
        ack_delay_ps: u64,
    },
}

impl Recovery {
    /// RFC 8985 with its recommendations.
    pub const RFC_8985: Recovery = Recovery::RackTlp {
        proportional: true,
        ack_delay_ps: 200 * MILLISECOND_PS,
    };
}

/// Choices that RFC 6582 and its predecessors leave open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewReno {
    /// When a partial acknowledgment restarts the timer.
    pub partial_ack: PartialAck,
    /// True if a partial acknowledgment deflates the window by what it acknowledged, less one segment (RFC 6582, 3.2, step 3).
    /// Otherwise it takes all inflation away (ns-2).
    pub partial_window_deflation: bool,
    /// The window after recovery.
    pub exit: ExitWindow,
    /// The most segments that one acknowledgment allows to be sent while duplicate acknowledgments arrive.
    pub burst_segments: Option<u32>,
    /// True if the timer starts anew with the fast retransmission.
    pub restarts_timer_at_entry: bool,
    /// True if duplicate acknowledgments inflate the window also where the check of `recover` forbids a fast retransmission (ns-2).
    pub inflates_without_recovery: bool,
}

impl NewReno {
    /// RFC 6582 with its recommendations.
    pub const RFC_6582: NewReno = NewReno {
        partial_ack: PartialAck::Impatient,
        partial_window_deflation: true,
        exit: ExitWindow::AtMostFlight,
        burst_segments: None,
        restarts_timer_at_entry: false,
        inflates_without_recovery: false,
    };

    /// ns-2.1b8a (May 2001) with its defaults.
    pub const NS2_2001: NewReno = NewReno {
        partial_ack: PartialAck::SlowButSteady,
        partial_window_deflation: false,
        exit: ExitWindow::Unchanged,
        burst_segments: Some(2),
        restarts_timer_at_entry: true,
        inflates_without_recovery: true,
    };
}

/// The two published forms of NewReno (RFC 2582, section 4; RFC 6582, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartialAck {
    /// Only the first partial acknowledgment restarts the timer: many losses end in a timeout and slow start.
    Impatient,
    /// Each partial acknowledgment restarts the timer: many losses are repaired one per round trip.
    SlowButSteady,
}

/// The congestion window when recovery ends (RFC 6582, 3.2, step 3, full acknowledgments).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitWindow {
    /// `min(ssthresh, max(flight, mss) + mss)`, which avoids a burst.
    AtMostFlight,
    /// `ssthresh`.
    Ssthresh,
    /// The window without its inflation.
    Unchanged,
}

/// The retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoConfig {
    /// The rule by which the timeout follows the round-trip time.
    pub estimator: Estimator,
    /// Clock granularity (G), or the length of a tick.
    pub granularity_ps: u64,
    /// The least timeout.
    pub minimum_ps: u64,
    /// The largest timeout.
    pub maximum_ps: u64,
    /// The timeout before the first measurement.
    pub initial_ps: u64,
}

/// The rule by which the timeout follows the round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// RFC 6298 with the driver's clock.
    Rfc6298,
    /// Whole ticks of a coarse clock and Jacobson's scaled integers, as in 4.3BSD and ns-2.
    Ticks {
        /// The clock's phase: below a tick.
        phase_ps: u64,
    },
}

/// Delayed acknowledgments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    /// The number of segments that are acknowledged together (RFC 5681: at most 2).
    pub every: u32,
    /// The longest wait (RFC 5681: at most 500 ms).
    pub timeout_ps: u64,
    /// The number of segments at the beginning that are acknowledged one by one: the other end is in slow start (Linux: 16).
    pub quick_segments: u32,
}

impl Default for Config {
    /// Creates a configuration that follows the current RFCs.
    fn default() -> Config {
        Config {
            mss: 1448,
            initial_window_segments: 10,
            window_limit_bytes: 4 << 20,
            initial_ssthresh_bytes: None,
            congestion: Congestion::NewReno,
            increase: Increase::PerByte {
                slow_start_limit_segments: 2,
            },
            hystart: None,
            reduction: Reduction::FlightSize,
            recovery: Recovery::NewReno(NewReno::RFC_6582),
            duplicate_threshold: 3,
            limited_transmit: true,
            window_validation: true,
            restarts_after_idle: true,
            burst_segments: None,
            nagle: true,
            rto: RtoConfig {
                estimator: Estimator::Rfc6298,
                granularity_ps: MILLISECOND_PS,
                minimum_ps: SECOND_PS,
                maximum_ps: 60 * SECOND_PS,
                initial_ps: SECOND_PS,
            },
            delayed_ack: Some(DelayedAck {
                every: 2,
                timeout_ps: 200 * MILLISECOND_PS,
                quick_segments: 0,
            }),
            ecn: false,
            timestamps: false,
            timestamp_tick_ps: MILLISECOND_PS,
            reads_at_once: true,
            timeout_limit: 15,
            time_wait_ps: 60 * SECOND_PS,
        }
    }
}

impl Config {
    /// Creates the configuration of `Agent/TCP/Newreno` and `Agent/TCPSink` of the simulator ns-2.1b8a (May 2001) with
    /// their defaults, as far as an endpoint has them.
    ///
    /// Packets of 1000 bytes there are 1000 bytes on the wire: a driver that adds 40 bytes of headers gives `mss` 960.
    /// A window of 20 packets, which is also the first threshold; an initial window of 2; a clock tick of 0.1 s, SRTT
    /// and RTTVAR in whole ticks, first timeout 6 s, least 1 s, back-off up to 64; slow-but-steady NewReno with the
    /// details of [`NewReno::NS2_2001`]; no delayed acknowledgments, limited transmit, window validation, restart after
    /// idle times, or Nagle.
    ///
    /// Differences remain: there the clock's phase is random, window arithmetic is on floating packets, and a
    /// connection never fails. `benches/ns2_agreement.py` compares them.
    pub fn ns2_2001(mss: u32) -> Config {
        Config {
            mss,
            initial_window_segments: 2,
            window_limit_bytes: 20 * u64::from(mss),
            initial_ssthresh_bytes: Some(20 * u64::from(mss)),
            congestion: Congestion::NewReno,
            increase: Increase::PerAck,
            reduction: Reduction::WholeSegments,
            recovery: Recovery::NewReno(NewReno::NS2_2001),
            limited_transmit: false,
            window_validation: false,
            restarts_after_idle: false,
            nagle: false,
            rto: RtoConfig {
                estimator: Estimator::Ticks { phase_ps: 0 },
                granularity_ps: 100 * MILLISECOND_PS,
                minimum_ps: SECOND_PS,
                maximum_ps: 100_000 * SECOND_PS,
                initial_ps: 6 * SECOND_PS,
            },
            delayed_ack: None,
            timeout_limit: u32::MAX,
            ..Config::default()
        }
    }

    /// Checks the configuration. Fails with an error that names the first value that is out of range or contradicts
    /// another.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refuse = |what| Err(ConfigError(what));
        if !(1..=65_495).contains(&self.mss) {
            return refuse("mss must be in 1..=65495");
        }
        if self.initial_window_segments == 0 {
            return refuse("initial_window_segments must be at least 1");
        }
        if !(u64::from(self.mss)..=65_535 << 14).contains(&self.window_limit_bytes) {
            return refuse("window_limit_bytes must be at least mss and at most 65535 * 2^14");
        }
        if self.duplicate_threshold == 0 {
            return refuse("duplicate_threshold must be at least 1");
        }
        if self.burst_segments == Some(0) {
            return refuse("burst_segments must be at least 1");
        }
        if self.timestamp_tick_ps == 0 {
            return refuse("timestamp_tick_ps must be at least 1");
        }
        if self.delayed_ack.is_some_and(|delayed| delayed.every == 0) {
            return refuse("delayed_ack.every must be at least 1");
        }
        if matches!(
            self.increase,
            Increase::PerByte {
                slow_start_limit_segments: 0
            }
        ) {
            return refuse("slow_start_limit_segments must be at least 1");
        }
        if self.congestion == Congestion::Bbr && matches!(self.recovery, Recovery::NewReno(_)) {
            return refuse(
                "BBR needs selective acknowledgments: the recovery must be SACK or RACK-TLP",
            );
        }
        if self.congestion == Congestion::Dctcp {
            if !self.ecn {
                return refuse("DCTCP needs ECN");
            }
            if self.delayed_ack.is_some() {
                return refuse("DCTCP needs an acknowledgment for each segment: no delayed_ack");
            }
        }
        if let Congestion::Hpcc(hpcc) = self.congestion {
            hpcc.check(self)?;
        }
        self.rto.check()
    }
}

impl Hpcc {
    fn check(&self, config: &Config) -> Result<(), ConfigError> {
        let refuse = |what| Err(ConfigError(what));
        if matches!(config.recovery, Recovery::NewReno(_)) {
            return refuse(
                "HPCC needs selective acknowledgments: the recovery must be SACK or RACK-TLP",
            );
        }
        if !(1_000..=1_000_000_000_000).contains(&self.rate_bps) {
            return refuse("the rate of HPCC must be from 1 kb/s to 1 Tb/s");
        }
        if !(MILLISECOND_PS / 1000..=10 * SECOND_PS).contains(&self.base_rtt_ps) {
            return refuse("the round trip of HPCC must be from 1 microsecond to 10 s");
        }
        if self.ai_bytes == 0 || self.ai_bytes > 1 << 30 {
            return refuse("the increment of HPCC must be from 1 byte to 2^30");
        }
        if !(1..=1000).contains(&self.eta_permille) {
            return refuse("the wanted utilisation of HPCC must be from 0.001 to 1");
        }
        Ok(())
    }
}

impl RtoConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let refuse = |what| Err(ConfigError(what));
        // 2^55 ps are ten hours; sums of a few such never overflow.
        const LARGEST_PS: u64 = 100_000 * SECOND_PS;
        if self.minimum_ps > self.maximum_ps || self.maximum_ps > LARGEST_PS {
            return refuse(
                "the least timeout must be at most the largest, and that at most 100000 s",
            );
        }
        if self.initial_ps == 0 || self.initial_ps > self.maximum_ps {
            return refuse(
                "the first timeout must be at least a picosecond and at most the largest timeout",
            );
        }
        if self.granularity_ps == 0 || self.granularity_ps > self.maximum_ps {
            return refuse(
                "the timer's granularity must be at least a picosecond and at most the largest timeout",
            );
        }
        match self.estimator {
            Estimator::Ticks { phase_ps } if phase_ps >= self.granularity_ps => {
                refuse("phase_ps must be below rto.granularity_ps")
            }
            _ => Ok(()),
        }
    }
}

/// Why a configuration is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError(&'static str);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for ConfigError {}
