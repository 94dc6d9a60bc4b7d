//! Failure detection: the switch at the receiving end of a link learns that its port is down or up. It does not know what follows from
//! that (`network::detect` tells the switch, its packet generators and its controller).
//!
//! Several detectors look at a port, and it is up while all of them say so:
//!
//! * *Loss of signal*: the direction that leads to the port failed or works again, a delay ago. Every link has it.
//! * *BFD*: hellos between the two switches at the ends of a link ([`bfd`]). They are frames on that link (`encapsulation`), made and taken
//!   by the switches' agents. So what a signal does not show is found too: a direction that loses everything silently takes down the
//!   ports at both ends.
//! * *A word*: a controller, which may have it from the program's digests, declares the port down or takes that back
//!   ([`crate::Network::declare_port`]).
//!
//! A port is up from the beginning, and a change of the direction that is undone before the delay is over is not noticed.

pub mod bfd;
pub(crate) mod encapsulation;

use crate::random::Stream;
use bfd::{BfdConfig, Session};
use engine::Time;
use std::collections::BTreeSet;

/// The detectors of all ports with links.
#[derive(Debug)]
pub(crate) struct Detection {
    /// The time until a change of a signal is noticed, in picoseconds, for links that have none of their own.
    delay_ps: u64,
    /// The detectors of the ports, by the number of the link direction that leads to the port.
    ports: Vec<PortDetectors>,
    /// The number of ports with a BFD session.
    sessions: usize,
    /// The random numbers for discriminators.
    draws: Stream,
    /// The discriminators that were drawn.
    discriminators: BTreeSet<u32>,
}

/// The configuration of the detectors of a port with a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DetectionConfig {
    /// The time until loss of signal is noticed, in picoseconds; the network's delay if `None`.
    pub signal_down_ps: Option<u64>,
    /// The time until the return of the signal is noticed, in picoseconds; the network's delay if `None`.
    pub signal_up_ps: Option<u64>,
    /// BFD with the switch at the other end, besides signals.
    pub bfd: Option<BfdConfig>,
}

/// The detectors of a port.
#[derive(Debug)]
pub(crate) struct PortDetectors {
    config: DetectionConfig,
    /// True if there is a signal, according to what was noticed last.
    pub(crate) signal: bool,
    pub(crate) declared_down: bool,
    /// The BFD session, if both ends of the link have one.
    pub(crate) session: Option<Box<Session>>,
    /// The state that was last reported to the switch, true for up.
    told: bool,
}

impl PortDetectors {
    fn new(config: &DetectionConfig) -> PortDetectors {
        PortDetectors {
            config: *config,
            signal: true,
            declared_down: false,
            session: None,
            told: true,
        }
    }

    /// Returns the port's state, true for up, if it must be reported to the switch, and records it as reported; `None`
    /// if the switch already knows it. The port is up if it has a signal, its BFD session allows it, and no controller
    /// has declared it down.
    pub(crate) fn news(&mut self) -> Option<bool> {
        let session_up = self.session.as_ref().is_none_or(|it| it.says_up());
        let up = self.signal && session_up && !self.declared_down;
        let former = std::mem::replace(&mut self.told, up);
        (former != up).then_some(up)
    }
}

impl Detection {
    pub(crate) fn new(seed: u64, delay_ps: u64) -> Detection {
        Detection {
            delay_ps,
            ports: Vec::new(),
            sessions: 0,
            draws: Stream::named(seed, "bfd discriminators"),
            discriminators: BTreeSet::new(),
        }
    }

    /// Draws a random BFD discriminator that is unique and not zero (RFC 5880, section 6.8.1), so that only a station
    /// that sees the packets can know it.
    fn draw_discriminator(&mut self) -> u32 {
        loop {
            let number = (self.draws.next_u64() >> 32) as u32;
            if number != 0 && self.discriminators.insert(number) {
                return number;
            }
        }
    }

    /// Draws new discriminators for all BFD sessions from the random stream of `seed`, which later sessions use as
    /// well. Both ends of each session know the new ones.
    pub(crate) fn redraw(&mut self, seed: u64) {
        self.draws = Stream::named(seed, "bfd discriminators");
        for direction in 0..self.ports.len() {
            let number = self.draw_discriminator();
            if let Some(session) = &mut self.ports[direction].session {
                session.discriminator = number;
            }
            if let Some(other) = &mut self.ports[direction ^ 1].session {
                other.remote_discriminator = number;
            }
        }
    }

    /// Adds the detectors of the port at the receiving end of the next link direction.
    pub(crate) fn add(&mut self, config: &DetectionConfig) {
        self.ports.push(PortDetectors::new(config));
    }

    /// Replaces the configuration of the detectors at the receiving end of a link direction that has carried nothing.
    /// Returns false, and changes nothing, if that would add or remove BFD, which runs between two ends.
    pub(crate) fn configure(&mut self, direction: u32, config: &DetectionConfig) -> bool {
        let port = self.port(direction);
        let accepted = port.config.bfd.is_some() == config.bfd.is_some();
        if accepted {
            port.config = *config;
        }
        accepted
    }

    /// Creates the BFD sessions that are configured for a link's two directions, up from `now_ps` on, and removes
    /// former ones. A direction's session belongs to the port at its receiving end, and sends by the other direction.
    pub(crate) fn establish(&mut self, now_ps: Time, seed: u64, directions: [(u32, &str); 2]) {
        let discriminators = [self.draw_discriminator(), self.draw_discriminator()];
        for (end, (direction, name)) in directions.into_iter().enumerate() {
            let remote = self.ports[direction as usize ^ 1].config.bfd;
            let port = &mut self.ports[direction as usize];
            let former = port.session.take();
            self.sessions -= usize::from(former.is_some());
            if let (Some(config), Some(remote)) = (port.config.bfd, remote) {
                let draws = Stream::named(seed, &format!("{name}/bfd"));
                let session = Session::new(config, discriminators[end], draws);
                let mut session = session.established(now_ps, remote, discriminators[1 - end]);
                // Its event is still to come.
                session.wake_ps = former.and_then(|former| former.wake_ps);
                port.session = Some(Box::new(session));
                self.sessions += 1;
            }
        }
    }

    /// Returns true if the port at the receiving end of a link direction has a BFD session.
    #[inline]
    pub(crate) fn has_session(&self, direction: u32) -> bool {
        self.sessions > 0 && self.ports[direction as usize].session.is_some()
    }

    /// Returns the BFD session of the port at the receiving end of a link direction; `None` if it has none.
    pub(crate) fn session(&self, direction: u32) -> Option<&Session> {
        self.ports[direction as usize].session.as_deref()
    }

    /// Returns the detectors of the port at the receiving end of a link direction.
    pub(crate) fn port(&mut self, direction: u32) -> &mut PortDetectors {
        &mut self.ports[direction as usize]
    }

    /// Returns true if `signal` differs from the state of the signal that was last noticed at the receiving end of a
    /// link direction.
    pub(crate) fn is_unnoticed(&self, direction: u32, signal: bool) -> bool {
        self.ports[direction as usize].signal != signal
    }

    /// Returns the time, in picoseconds, after which the receiving end of a link direction notices that the signal has
    /// returned (`signal` is true) or is lost.
    pub(crate) fn signal_delay_ps(&self, direction: u32, signal: bool) -> u64 {
        let port = &self.ports[direction as usize];
        let own_ps = match signal {
            true => port.config.signal_up_ps,
            false => port.config.signal_down_ps,
        };
        own_ps.unwrap_or(self.delay_ps)
    }
}
