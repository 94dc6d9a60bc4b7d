//! One end of a session of Bidirectional Forwarding Detection (RFC 5880), in asynchronous mode without authentication: packets and times go
//! in; packets, a time and a state come out. It does not know links, ports or frames.
//!
//! # What is here
//!
//! The three-way handshake of section 6.2, reception as in section 6.8.6, the detection time of section 6.8.4, transmission with jitter as
//! in section 6.8.7 (every interval is shortened by 0 to 25 %, or by 10 to 25 % with a multiplier of 1), the slow rate of one packet per
//! second while the session is not up (section 6.8.3), a Poll Sequence when that ends, and a packet at once whenever the state changes. There is
//! no demand mode and no echo function; a packet that asks for demand mode is treated as one that does not. A session that knows the other
//! end's discriminator refuses packets with another one, until it has heard nothing for its detection time. So only an end that keeps its
//! discriminator when it restarts is heard at once; the ends of a network do.
//!
//! # What begins how
//!
//! A network begins with its ports up, so sessions begin up too ([`Session::established`]), with the parameters of both ends known: a run
//! does not have to wait for handshakes. A session that begins anew, because its switch came back, begins as the RFC says; until it has been
//! up once it says nothing about its port.

use crate::error::{NetError, out_of_range};
use crate::random::Stream;
use engine::Time;
use serde::{Deserialize, Serialize, Serializer};
use wire::bfd::{Diagnostic, Header, State};

const PS_PER_US: u64 = 1_000_000;
/// The least interval of a session's packets while it is not up (section 6.8.3).
const SLOW_US: u32 = 1_000_000;
/// Intervals, in microseconds, that a configuration may have.
const INTERVALS_US: std::ops::RangeInclusive<u32> = 100..=60_000_000;

/// Parameters of a session, the same at both ends unless a link's directions have their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BfdConfig {
    /// Desired Min TX Interval: the interval at which this end would like to send.
    #[serde(rename = "tx_ms", deserialize_with = "crate::units::microseconds")]
    pub desired_min_tx_us: u32,
    /// Required Min RX Interval: the shortest interval at which the other end may send.
    #[serde(rename = "rx_ms", deserialize_with = "crate::units::microseconds")]
    pub required_min_rx_us: u32,
    /// Detect Mult: the number of packets of this end that may be missing before the other end declares the session down.
    #[serde(rename = "multiplier")]
    pub detect_mult: u8,
}

impl BfdConfig {
    pub(crate) fn check(&self) -> Result<(), NetError> {
        for (name, interval_us) in [
            ("desired_min_tx_us", self.desired_min_tx_us),
            ("required_min_rx_us", self.required_min_rx_us),
        ] {
            if !INTERVALS_US.contains(&interval_us) {
                let (least, most) = (INTERVALS_US.start(), INTERVALS_US.end());
                return Err(out_of_range(name, format!("from {least} to {most}")));
            }
        }
        match self.detect_mult {
            0 => Err(out_of_range("detect_mult", "at least 1")),
            _ => Ok(()),
        }
    }
}

/// Statistics of one end of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BfdStatistics {
    /// The state of the session.
    #[serde(serialize_with = "state_name")]
    pub state: State,
    /// Why the state changed last.
    #[serde(serialize_with = "diagnostic_code")]
    pub diagnostic: Diagnostic,
    /// Control packets that this end sent.
    pub sent: u64,
    /// Valid control packets that this end received.
    pub received: u64,
    /// Control packets that this end refused: for the reasons of section 6.8.6, or with another discriminator than the other end's.
    pub refused: u64,
    /// The number of times that the session came up; being up from the beginning does not count.
    pub came_up: u64,
    /// The number of times that the session went down.
    pub went_down: u64,
    /// The number of times that the session went down because its detection time had passed without a packet.
    pub expired: u64,
    /// The time of the last change of the state.
    #[serde(serialize_with = "crate::units::serialize")]
    pub changed_ps: Time,
    /// The time, in picoseconds, for which this end waits for a packet at present.
    pub detection_time_ps: u64,
}

fn state_name<S: Serializer>(state: &State, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match state {
        State::AdminDown => "admin_down",
        State::Down => "down",
        State::Init => "init",
        State::Up => "up",
    })
}

fn diagnostic_code<S: Serializer>(code: &Diagnostic, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u8(code.0)
}

/// One end of a session.
#[derive(Debug)]
pub(crate) struct Session {
    config: BfdConfig,
    pub(super) discriminator: u32,
    /// The other end's discriminator; zero if unknown.
    pub(super) remote_discriminator: u32,
    remote_min_rx_us: u32,
    remote_desired_min_tx_us: u32,
    remote_mult: u8,
    /// True if a Poll Sequence is going on.
    poll: bool,
    has_been_up: bool,
    draws: Stream,
    /// When this end sent its last packet; `None` if it has sent none.
    sent_ps: Option<Time>,
    next_send_ps: Time,
    /// The time at which the detection time is over; `u64::MAX` while no packet is expected.
    expires_ps: Time,
    /// The time of the next event that is scheduled for the session.
    pub(crate) wake_ps: Option<Time>,
    statistics: BfdStatistics,
}

impl Session {
    /// Creates a BFD session that is down and has received nothing. `discriminator`, its own, must not be zero; `draws`
    /// gives the jitter of its packets.
    pub(crate) fn new(config: BfdConfig, discriminator: u32, draws: Stream) -> Session {
        Session {
            config,
            discriminator,
            remote_discriminator: 0,
            remote_min_rx_us: 1,
            remote_desired_min_tx_us: SLOW_US,
            remote_mult: 1,
            poll: false,
            has_been_up: false,
            draws,
            sent_ps: None,
            next_send_ps: Time::ZERO,
            expires_ps: Time::NEVER,
            wake_ps: None,
            statistics: BfdStatistics::default(),
        }
    }

    /// Returns this BFD session in the state Up from `now_ps` on, as if it had been agreed with a remote end that has
    /// these parameters and this discriminator.
    pub(crate) fn established(
        self,
        now_ps: Time,
        remote: BfdConfig,
        discriminator: u32,
    ) -> Session {
        let mut session = Session {
            remote_discriminator: discriminator,
            remote_min_rx_us: remote.required_min_rx_us,
            remote_desired_min_tx_us: remote.desired_min_tx_us,
            remote_mult: remote.detect_mult,
            has_been_up: true,
            ..self
        };
        session.statistics.state = State::Up;
        session.statistics.changed_ps = now_ps;
        // Ends that begin together do not send together; they have sent their last packets just now.
        session.sent_ps = Some(now_ps);
        session.next_send_ps = now_ps.saturating_add(session.draw_interval_ps());
        session.heard(now_ps);
        session
    }

    /// Restarts the session after its switch was repaired: it is down, knows nothing of the remote end, and sends a
    /// packet at once.
    pub(crate) fn restart(&mut self, now_ps: Time) {
        self.remote_discriminator = 0;
        self.remote_min_rx_us = 1;
        (self.poll, self.has_been_up) = (false, false);
        (self.next_send_ps, self.expires_ps) = (now_ps, Time::NEVER);
        self.sent_ps = None;
        self.wake_ps = None;
        if self.statistics.state != State::Down {
            self.change(now_ps, State::Down, Diagnostic::NONE);
        }
    }

    /// Returns true if the port may be used according to this session: it is up, or has not been up since its last
    /// restart.
    pub(crate) fn says_up(&self) -> bool {
        self.statistics.state == State::Up || !self.has_been_up
    }

    #[cfg(test)]
    pub(crate) fn discriminator(&self) -> u32 {
        self.discriminator
    }

    /// Returns the time at which the session must next send a packet, or at which its detection time is over.
    pub(crate) fn due_ps(&self) -> Time {
        self.next_send_ps.min(self.expires_ps)
    }

    pub(crate) fn statistics(&self) -> BfdStatistics {
        BfdStatistics {
            detection_time_ps: self.detection_time_ps(),
            ..self.statistics
        }
    }

    /// Handles what is due at `now_ps`: sets the session down if its detection time is over (RFC 5880, 6.8.4). Returns
    /// the control packet to send; `None` if none is due.
    pub(crate) fn on_time(&mut self, now_ps: Time) -> Option<Header> {
        let mut changed = false;
        if self.expires_ps <= now_ps {
            self.expires_ps = Time::NEVER;
            self.remote_discriminator = 0;
            if matches!(self.statistics.state, State::Init | State::Up) {
                self.statistics.expired += 1;
                self.change(now_ps, State::Down, Diagnostic::DETECTION_TIME_EXPIRED);
                changed = true;
            }
        }
        (changed || self.next_send_ps <= now_ps).then(|| self.send(now_ps, false))
    }

    /// Processes a control packet from the link (RFC 5880, 6.8.6). Returns the control packet to send at once, because
    /// the state has changed or the packet is a poll; else `None`. Only counts a packet that is not for this session,
    /// or has another discriminator than the remote end.
    pub(crate) fn receive(&mut self, now_ps: Time, packet: &Header) -> Option<Header> {
        let is_for_this = match packet.your_discriminator {
            0 => matches!(packet.state, State::Down | State::AdminDown),
            number => number == self.discriminator,
        };
        let is_of_the_other = [0, packet.my_discriminator].contains(&self.remote_discriminator);
        if !(is_for_this && is_of_the_other) {
            self.statistics.refused += 1;
            return None;
        }
        self.statistics.received += 1;
        self.remote_discriminator = packet.my_discriminator;
        self.remote_desired_min_tx_us = packet.desired_min_tx_us;
        self.remote_mult = packet.detect_mult;
        if self.remote_min_rx_us != packet.required_min_rx_us {
            self.remote_min_rx_us = packet.required_min_rx_us;
            self.reschedule(now_ps);
        }
        if packet.is_final {
            self.poll = false;
        }
        let former = self.statistics.state;
        match (former, packet.state) {
            (State::Init | State::Up, State::AdminDown) | (State::Up, State::Down) => {
                self.change(now_ps, State::Down, Diagnostic::NEIGHBOR_SIGNALED_DOWN);
            }
            (State::Down, State::Down) => self.change(now_ps, State::Init, Diagnostic::NONE),
            (State::Down, State::Init) | (State::Init, State::Init | State::Up) => {
                self.change(now_ps, State::Up, Diagnostic::NONE);
            }
            _ => {}
        }
        self.heard(now_ps);
        let changed = former != self.statistics.state;
        (changed || packet.poll).then(|| self.send(now_ps, packet.poll))
    }

    fn change(&mut self, now_ps: Time, state: State, diagnostic: Diagnostic) {
        let former = std::mem::replace(&mut self.statistics.state, state);
        self.statistics.diagnostic = diagnostic;
        self.statistics.changed_ps = now_ps;
        if state == State::Up {
            self.statistics.came_up += 1;
            self.has_been_up = true;
        }
        self.statistics.went_down += u64::from(former == State::Up);
        // The other end is told when this one sends faster than slowly, and it says that it knows.
        self.poll = state == State::Up && self.desired_min_tx_us() != SLOW_US;
    }

    /// Restarts the detection time after a valid packet has arrived.
    fn heard(&mut self, now_ps: Time) {
        self.expires_ps = now_ps.saturating_add(self.detection_time_ps());
    }

    fn detection_time_ps(&self) -> u64 {
        let interval_us = self
            .config
            .required_min_rx_us
            .max(self.remote_desired_min_tx_us);
        u64::from(interval_us) * PS_PER_US * u64::from(self.remote_mult)
    }

    /// Returns the interval at which this end wants to send, in microseconds: at least a second while the session is not up.
    fn desired_min_tx_us(&self) -> u32 {
        match self.statistics.state {
            State::Up => self.config.desired_min_tx_us,
            _ => self.config.desired_min_tx_us.max(SLOW_US),
        }
    }

    /// Draws the time until the next packet, jitter included, in picoseconds; `u64::MAX` (never) if the remote end
    /// wants no packets, that is, announced an interval of zero.
    fn draw_interval_ps(&mut self) -> u64 {
        if self.remote_min_rx_us == 0 {
            return u64::MAX;
        }
        let interval_us = self.desired_min_tx_us().max(self.remote_min_rx_us);
        let interval_ps = u64::from(interval_us) * PS_PER_US;
        // With a multiplier of 1 the packet has to be there in time.
        let least_ps = match self.config.detect_mult {
            1 => interval_ps / 10,
            _ => 0,
        };
        let reduction_ps = (self.draws).uniform(least_ps as i64, (interval_ps / 4) as i64);
        interval_ps - reduction_ps as u64
    }

    /// Schedules the next packet after an interval has changed. The new interval counts from the last packet sent (RFC
    /// 5880, section 6.8.3): the packet is sent at once if that has passed already, and never while the remote end
    /// wants no packets (section 6.8.7).
    fn reschedule(&mut self, now_ps: Time) {
        let interval_ps = self.draw_interval_ps();
        self.next_send_ps = match self.sent_ps {
            _ if interval_ps == u64::MAX => Time::NEVER,
            Some(sent_ps) => sent_ps.saturating_add(interval_ps).max(now_ps),
            None => now_ps,
        };
    }

    fn send(&mut self, now_ps: Time, is_final: bool) -> Header {
        self.statistics.sent += 1;
        self.sent_ps = Some(now_ps);
        self.next_send_ps = now_ps.saturating_add(self.draw_interval_ps());
        Header {
            diagnostic: self.statistics.diagnostic,
            state: self.statistics.state,
            // No packet is both (section 6.5).
            poll: self.poll && !is_final,
            is_final,
            demand: false,
            detect_mult: self.config.detect_mult,
            my_discriminator: self.discriminator,
            your_discriminator: self.remote_discriminator,
            desired_min_tx_us: self.desired_min_tx_us(),
            required_min_rx_us: self.config.required_min_rx_us,
            required_min_echo_rx_us: 0,
        }
    }
}

#[cfg(test)]
mod tests;
