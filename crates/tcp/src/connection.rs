//! One end of a connection: the state machine of RFC 9293, handshake and options. It joins sender and receiver.
//!
//! `sender` decides what to send and when, `receiver` what to acknowledge and when; the connection puts both into segments.

use crate::NEVER_PS;
use crate::config::{Config, ConfigError, Congestion, Recovery};
use crate::receiver::{Owed, Receiver};
use crate::segment::{EcnCodepoint, Segment, initial, unwrapped};
use crate::sender::recovery::Report;
use crate::sender::{Sender, Transmission};
use crate::statistics::Statistics;
use wire::int::{Kind, PathLoad};
use wire::tcp::{Flags, Options, Timestamps};

/// States of RFC 9293, 3.3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The connection is over, for whatever reason ([`Connection::failure`]).
    Closed,
    /// The end waits for a SYN.
    Listen,
    /// The SYN was sent.
    SynSent,
    /// A SYN was received and answered.
    SynReceived,
    /// Data flows.
    Established,
    /// We closed first; our FIN is not acknowledged.
    FinWait1,
    /// Our FIN is acknowledged; the other end still sends.
    FinWait2,
    /// The other end has closed its stream.
    CloseWait,
    /// Both ends have closed their streams at the same time.
    Closing,
    /// The other end closed its stream first, then we did.
    LastAck,
    /// The connection is over, but old segments may come.
    TimeWait,
}

/// Why a connection ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The other end sent RST.
    Reset,
    /// The other end refused the SYN.
    Refused,
    /// Too many timeouts in a row.
    TimedOut,
}

/// The options that both ends agreed on in the handshake (RFC 7323, RFC 2018, RFC 3168).
#[derive(Clone, Copy, Debug, Default)]
struct Agreed {
    timestamps: bool,
    sack: bool,
    scaling: bool,
    ecn: bool,
    /// The shift of the other end's window field (RFC 7323).
    peer_shift: u8,
}

/// MSS of a peer whose SYN does not contain one (RFC 9293, 3.7.1).
const DEFAULT_MSS: u16 = 536;
/// The timeout for data after a SYN was lost (RFC 6298, 5.7).
const RTO_AFTER_LOST_SYN_PS: u64 = 3_000_000_000_000;

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Connection {
    state: State,
    failure: Option<Failure>,
    sender: Sender,
    receiver: Receiver,
    agreed: Agreed,
    /// True if a SYN, or the SYN-ACK that answers one, must be sent.
    syn_due: bool,
    syn_sent_ps: u64,
    syn_lost: bool,
    probe_due: bool,
    /// The sequence and the acknowledgment number of the segment that last set the peer's window.
    window_set_by: (u64, u64),
    reset: Option<Segment>,
    time_wait_at_ps: u64,
    /// The link loads that arrived with the newest data, to be echoed to the other end.
    load: Option<Box<PathLoad>>,
}

impl Connection {
    /// Creates an end that actively opens a connection, with the initial sequence number `iss`. Fails if the
    /// configuration is invalid.
    pub fn connect(config: &Config, iss: u32, now_ps: u64) -> Result<Connection, ConfigError> {
        let mut connection = Connection::new(config, iss, State::SynSent)?;
        connection.syn_due = true;
        connection.syn_sent_ps = now_ps;
        Ok(connection)
    }

    /// Creates an end that waits for its peer to open a connection, and then uses the initial sequence number `iss`.
    /// Fails if the configuration is invalid.
    pub fn listen(config: &Config, iss: u32) -> Result<Connection, ConfigError> {
        Connection::new(config, iss, State::Listen)
    }

    fn new(config: &Config, iss: u32, state: State) -> Result<Connection, ConfigError> {
        config.check()?;
        let mut receiver = Receiver::new(config);
        receiver.shift = Receiver::shift_for(config.window_limit_bytes);
        Ok(Connection {
            state,
            failure: None,
            sender: Sender::new(config, initial(iss)),
            receiver,
            agreed: Agreed::default(),
            syn_due: false,
            syn_sent_ps: 0,
            syn_lost: false,
            probe_due: false,
            window_set_by: (0, 0),
            reset: None,
            time_wait_at_ps: NEVER_PS,
            load: None,
        })
    }

    // The application's side.

    /// Adds `bytes` bytes to the data that the application has to send. Does nothing after [`Connection::close`].
    pub fn write(&mut self, bytes: u64) {
        if !self.sender.fin {
            // Far below where 64 bits end, whatever is written.
            self.sender.end = self.sender.end.saturating_add(bytes).min(1 << 62);
            self.sender.begin_burst();
        }
    }

    /// Gives the application 2^62 bytes to send, more than any run can.
    pub fn write_endless(&mut self) {
        self.write(1 << 62);
    }

    /// Closes our stream: the application has no more data, and a FIN follows the last byte. Changes the state
    /// accordingly; an end that only listens is closed at once.
    pub fn close(&mut self) {
        match self.state {
            State::Listen => self.state = State::Closed,
            State::Closed => return,
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            _ => {}
        }
        self.sender.fin = true;
        self.sender.begin_burst();
    }

    /// Stops the application: discards data that was written but has not been sent yet, and closes the stream, so that
    /// a FIN follows the data that was sent.
    pub fn stop(&mut self) {
        let has_syn = matches!(
            self.state,
            State::Listen | State::SynSent | State::SynReceived
        );
        // SYN has the first number, sent or not.
        let sent = self.sender.max.max(self.sender.una + u64::from(has_syn));
        self.sender.end = self.sender.end.min(sent);
        self.close();
    }

    /// Removes `bytes` received bytes from the receive buffer, on behalf of the application. Needed only if the
    /// configuration's `reads_at_once` is false.
    pub fn read(&mut self, bytes: u64) {
        self.receiver.read(bytes);
    }

    /// Returns the state of the connection (RFC 9293, 3.3.2).
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns why the connection failed; `None` if it has not failed.
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// Returns the number of payload bytes received in order, each counted once, from which goodput is measured.
    pub fn received_bytes(&self) -> u64 {
        self.receiver.received_bytes()
    }

    /// Returns true if the peer's FIN and all data before it have arrived.
    pub fn is_finished(&self) -> bool {
        self.receiver.is_finished()
    }

    /// Returns true if the peer has acknowledged all written data.
    pub fn is_drained(&self) -> bool {
        self.sender.una >= self.sender.end
    }

    /// Returns the counters so far, and the present windows and round-trip times.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            bytes_received: self.received_bytes(),
            ..self.sender.statistics()
        }
    }

    /// Asserts the invariants of the sender, for tests.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        self.sender.check();
    }

    // Timers.

    /// Returns the time in picoseconds at which [`Connection::on_timer`] must next be called; `None` if no timer runs.
    pub fn due_ps(&self) -> Option<u64> {
        let due = self
            .sender
            .due_ps()
            .min(self.receiver.ack_at_ps)
            .min(self.time_wait_at_ps);
        (due != NEVER_PS).then_some(due)
    }

    /// Handles all timers that have expired at `now_ps`.
    pub fn on_timer(&mut self, now_ps: u64) {
        if self.sender.rto_at_ps <= now_ps && !self.sender.probes_instead(now_ps) {
            self.on_retransmission_timer(now_ps);
        }
        self.sender.on_recovery_timers(now_ps);
        if self.sender.persist_at_ps <= now_ps {
            self.sender.on_persist(now_ps);
            self.probe_due = true;
        }
        if self.receiver.ack_at_ps <= now_ps {
            self.receiver.on_timer();
        }
        if self.time_wait_at_ps <= now_ps {
            self.time_wait_at_ps = NEVER_PS;
            self.state = State::Closed;
        }
    }

    fn on_retransmission_timer(&mut self, now_ps: u64) {
        if self.sender.timeouts_in_row >= self.sender.config.timeout_limit {
            return self.end(Failure::TimedOut);
        }
        if matches!(self.state, State::SynSent | State::SynReceived) {
            self.sender.timeouts_in_row += 1;
            self.sender.statistics.timeouts += 1;
            self.sender.rtt.back_off();
            self.sender.rto_at_ps = NEVER_PS;
            self.syn_due = true;
            self.syn_lost = true;
        } else {
            self.sender.on_timeout(now_ps);
            self.sender.begin_burst();
        }
    }

    fn end(&mut self, failure: Failure) {
        if self.state != State::Closed {
            self.failure = Some(failure);
        }
        self.close_down();
    }

    fn close_down(&mut self) {
        self.state = State::Closed;
        self.sender.stop_timers();
        self.receiver.ack_at_ps = NEVER_PS;
        self.time_wait_at_ps = NEVER_PS;
    }

    // Segments that leave.

    /// Returns the next segment to send; `None` if none may be sent now. Call it until it returns `None`.
    pub fn next_segment(&mut self, now_ps: u64) -> Option<Segment> {
        let mut segment = match self.reset.take() {
            Some(reset) => Some(reset),
            None => match self.state {
                State::Closed | State::Listen => None,
                State::SynSent | State::SynReceived => self.next_syn(now_ps),
                _ => self.next_synchronized(now_ps),
            },
        };
        if self.sender.config.congestion == Congestion::Dctcp
            && let Some(segment) = &mut segment
        {
            // Where everything else is dropped beyond the threshold, handshakes and repairs would starve: RFC 8257, 3.5, for SYN and
            // RST; as Linux does, for all others too.
            segment.ecn = EcnCodepoint::Ect0;
        }
        segment
    }

    fn next_synchronized(&mut self, now_ps: u64) -> Option<Segment> {
        if self.receiver.owed == Owed::Alone {
            return Some(self.pure_ack(now_ps));
        }
        if let Some(transmission) = self.sender.next(now_ps) {
            return Some(self.data_segment(now_ps, transmission));
        }
        if self.probe_due {
            // An old number without data: such a probe must be answered with any window.
            self.probe_due = false;
            let before = self.sender.una - 1;
            return Some(self.segment(now_ps, before));
        }
        (self.receiver.owed == Owed::Now).then(|| self.pure_ack(now_ps))
    }

    fn pure_ack(&mut self, now_ps: u64) -> Segment {
        self.sender.statistics.acks_sent += 1;
        // Behind all that was ever sent, also while sending again: an older number would be out of the other end's window, and
        // two ends that both send again would answer each other's acknowledgments for ever, and hear neither.
        self.segment(now_ps, self.sender.max)
    }

    fn data_segment(&mut self, now_ps: u64, transmission: Transmission) -> Segment {
        let mut segment = self.segment(now_ps, transmission.sequence);
        segment.payload_bytes = transmission.payload_bytes;
        let end = transmission.sequence + u64::from(transmission.payload_bytes);
        if transmission.payload_bytes > 0 && end == self.sender.end {
            segment.flags |= Flags::PSH;
        }
        if transmission.fin {
            segment.flags |= Flags::FIN;
        }
        if self.agreed.ecn && !transmission.again && transmission.payload_bytes > 0 {
            segment.ecn = EcnCodepoint::Ect0;
            if self.sender.takes_cwr() {
                segment.flags |= Flags::CWR;
            }
        }
        segment
    }

    /// Builds a segment without data at `sequence`, with the acknowledgment, window and options of every segment, and
    /// records that no acknowledgment is owed any more.
    fn segment(&mut self, now_ps: u64, sequence: u64) -> Segment {
        let mut options = Options::default();
        if self.agreed.timestamps {
            options.timestamps = Some(self.timestamps(now_ps));
        }
        if self.agreed.sack && self.receiver.has_blocks() {
            let room = if self.agreed.timestamps { 3 } else { 4 };
            options.sack = self.receiver.sack_blocks(room);
        }
        let mut flags = Flags::ACK;
        if self.receiver.echoes_congestion && self.agreed.ecn {
            flags |= Flags::ECE;
        }
        let window = self.receiver.offer(self.agreed.scaling);
        self.receiver.acknowledged();
        Segment {
            sequence: sequence as u32,
            acknowledgment: self.receiver.nxt as u32,
            flags,
            window,
            payload_bytes: 0,
            options,
            ecn: EcnCodepoint::NotEct,
        }
    }

    fn timestamps(&self, now_ps: u64) -> Timestamps {
        Timestamps {
            value: self.timestamp_clock(now_ps),
            echo: self.receiver.ts_recent,
        }
    }

    fn timestamp_clock(&self, now_ps: u64) -> u32 {
        (now_ps / self.sender.config.timestamp_tick_ps) as u32
    }

    fn next_syn(&mut self, now_ps: u64) -> Option<Segment> {
        if !self.syn_due {
            return None;
        }
        self.syn_due = false;
        self.syn_sent_ps = now_ps;
        let sender = &mut self.sender;
        sender.statistics.segments_sent += 1;
        sender.statistics.segments_retransmitted += u64::from(sender.max > sender.una);
        let iss = sender.una;
        sender.nxt = iss + 1;
        sender.max = iss + 1;
        sender.restart_timer(now_ps);
        let answers = self.state == State::SynReceived;
        let config = &self.sender.config;
        let mut flags = Flags::SYN;
        if answers {
            flags |= Flags::ACK;
            if self.agreed.ecn {
                flags |= Flags::ECE;
            }
        } else if config.ecn {
            flags |= Flags::ECE | Flags::CWR;
        }
        let offers = |agreed: bool| !answers || agreed;
        let options = Options {
            mss: Some(config.mss.min(65_535) as u16),
            window_scale: offers(self.agreed.scaling).then_some(self.receiver.shift),
            sack_permitted: offers(self.agreed.sack) && wants_sack(config),
            timestamps: (config.timestamps && offers(self.agreed.timestamps))
                .then(|| self.timestamps(now_ps)),
            ..Options::default()
        };
        // The window of a SYN is never scaled.
        let window = self.receiver.offer(false);
        if answers {
            self.receiver.acknowledged();
        }
        Some(Segment {
            sequence: iss as u32,
            acknowledgment: if answers { self.receiver.nxt as u32 } else { 0 },
            flags,
            window,
            payload_bytes: 0,
            options,
            ecn: EcnCodepoint::NotEct,
        })
    }

    // Segments that arrive.

    /// Processes a segment from the peer. Ignores it if the connection is closed: the driver answers segments that
    /// belong to no connection.
    pub fn receive(&mut self, now_ps: u64, segment: &Segment) {
        match self.state {
            State::Closed => {}
            State::Listen => self.receive_in_listen(segment),
            State::SynSent => self.receive_in_syn_sent(now_ps, segment),
            _ => self.receive_synchronized(now_ps, segment),
        }
    }

    fn receive_in_listen(&mut self, segment: &Segment) {
        if segment.has(Flags::SYN) && !segment.flags.intersects(Flags::RST | Flags::ACK) {
            self.agree(segment);
            self.agreed.ecn = self.sender.config.ecn && segment.has(Flags::ECE | Flags::CWR);
            self.state = State::SynReceived;
            self.syn_due = true;
        }
    }

    /// Adopts the initial sequence number, options and window of the peer's SYN.
    fn agree(&mut self, syn: &Segment) {
        let config = &self.sender.config;
        let irs = initial(syn.sequence);
        self.receiver.synchronize(irs);
        let options = &syn.options;
        self.agreed.timestamps = config.timestamps && options.timestamps.is_some();
        self.agreed.sack = wants_sack(config) && options.sack_permitted;
        self.agreed.scaling = options.window_scale.is_some();
        self.agreed.peer_shift = options.window_scale.unwrap_or(0).min(14);
        if let Some(timestamps) = options.timestamps {
            self.receiver.ts_recent = timestamps.value;
        }
        let peer_mss = u32::from(options.mss.unwrap_or(DEFAULT_MSS));
        self.sender.mss = self.sender.mss.min(u64::from(peer_mss)).max(1);
        let iss = self.sender.una;
        self.sender
            .update_peer_window(iss + 1, u64::from(syn.window));
        self.window_set_by = (irs, 0);
    }

    fn receive_in_syn_sent(&mut self, now_ps: u64, segment: &Segment) {
        let acknowledges = segment.has(Flags::ACK);
        let right =
            segment.acknowledgment == self.sender.max as u32 && self.sender.max > self.sender.una;
        if acknowledges && !right {
            if !segment.has(Flags::RST) {
                self.refuse(segment);
            }
            return;
        }
        if segment.has(Flags::RST) {
            if acknowledges {
                self.end(Failure::Refused);
            }
            return;
        }
        if !segment.has(Flags::SYN | Flags::ACK) {
            return;
        }
        self.agree(segment);
        self.agreed.ecn =
            self.sender.config.ecn && segment.has(Flags::ECE) && !segment.has(Flags::CWR);
        self.establish(now_ps);
        self.receiver.owed = Owed::Now;
    }

    /// Completes the handshake after our SYN was acknowledged: measures its round-trip time unless it was
    /// retransmitted, and lets data be sent.
    fn establish(&mut self, now_ps: u64) {
        if self.syn_lost {
            self.sender.rtt.forget_handshake(RTO_AFTER_LOST_SYN_PS);
        } else {
            let rtt_ps = now_ps.saturating_sub(self.syn_sent_ps);
            self.sender.rtt.sample(now_ps, rtt_ps);
        }
        self.sender
            .establish(now_ps, self.syn_lost, self.agreed.sack);
        self.state = if self.sender.fin {
            State::FinWait1
        } else {
            State::Established
        };
        self.sender.begin_burst();
    }

    /// Queues a reset in answer to a segment whose acknowledgment does not belong to this connection.
    fn refuse(&mut self, segment: &Segment) {
        self.reset = Some(Segment {
            sequence: segment.acknowledgment,
            flags: Flags::RST,
            ..Segment::default()
        });
    }

    fn receive_synchronized(&mut self, now_ps: u64, segment: &Segment) {
        let sequence = unwrapped(self.receiver.nxt, segment.sequence);
        let syn = segment.has(Flags::SYN);
        let fin = segment.has(Flags::FIN);
        let payload = u64::from(segment.payload_bytes);
        if !self.passes_timestamps(segment) {
            return;
        }
        if syn && self.state == State::SynReceived && sequence + 1 == self.receiver.nxt {
            self.syn_due = true;
            return;
        }
        let len = payload + u64::from(fin) + u64::from(syn);
        if !self.receiver.accepts(sequence, len) {
            self.not_acceptable(now_ps, segment, sequence);
            return;
        }
        if segment.has(Flags::RST) {
            // RFC 5961, 3.2: only the exact number resets.
            if sequence == self.receiver.nxt {
                self.end(Failure::Reset);
            } else {
                self.receiver.owed = Owed::Alone;
            }
            return;
        }
        if syn {
            self.receiver.owed = Owed::Alone;
            return;
        }
        if !segment.has(Flags::ACK) || !self.acknowledgment(now_ps, segment, sequence) {
            return;
        }
        if let Some(timestamps) = segment.options.timestamps
            && self.agreed.timestamps
        {
            self.receiver.notice_timestamp(sequence, timestamps.value);
        }
        if payload > 0 || fin {
            self.take_data(now_ps, segment, sequence);
        }
    }

    /// Returns the INT headers that must be sent with `segment`, a result of [`Connection::next_segment`]. A segment
    /// with data has empty headers, in which it collects the loads of the links on its way; one without data returns
    /// the loads that the newest received data collected. Returns `None` if neither applies.
    pub fn telemetry(&self, segment: &Segment) -> Option<(Kind, PathLoad)> {
        if !self.uses_telemetry() {
            return None;
        }
        if segment.payload_bytes > 0 {
            return Some((Kind::Metadata, PathLoad::default()));
        }
        let echoes = !segment.flags.intersects(Flags::SYN | Flags::RST);
        let load = self.load.as_deref().filter(|_| echoes)?;
        Some((Kind::Echo, *load))
    }

    /// Returns true if the congestion control needs INT headers (HPCC).
    pub fn uses_telemetry(&self) -> bool {
        matches!(self.sender.config.congestion, Congestion::Hpcc(_))
    }

    /// Processes a segment that arrived with INT headers, whose contents are `kind` and `load`. Otherwise like
    /// [`Connection::receive`].
    pub fn receive_with(&mut self, now_ps: u64, segment: &Segment, kind: Kind, load: &PathLoad) {
        let una = self.sender.una;
        let ack = unwrapped(una, segment.acknowledgment);
        self.receive(now_ps, segment);
        match kind {
            Kind::Metadata => self.load = Some(Box::new(*load)),
            Kind::Echo if ack >= una && ack <= self.sender.max && segment.has(Flags::ACK) => {
                self.sender.on_load(load);
                self.sender.begin_burst();
            }
            Kind::Echo => {}
        }
    }

    /// Returns true if a segment's timestamp is not older than those already seen (PAWS; RFC 7323, section 5). For an
    /// older one, counts it, and makes an acknowledgment due. A segment without the agreed timestamp also fails, except
    /// for a reset.
    fn passes_timestamps(&mut self, segment: &Segment) -> bool {
        if !self.agreed.timestamps || segment.has(Flags::RST) {
            return true;
        }
        let Some(timestamps) = segment.options.timestamps else {
            return false;
        };
        let passes = timestamps.value.wrapping_sub(self.receiver.ts_recent) as i32 >= 0;
        if !passes {
            self.sender.statistics.paws_rejected += 1;
            self.receiver.owed = Owed::Alone;
        }
        passes
    }

    /// Handles a segment outside of the receive window: ignores a reset, else makes an acknowledgment due, and reports
    /// data that had arrived before as received twice. Still processes the acknowledgment of a segment at the next
    /// expected number, since only our closed window made that unacceptable.
    fn not_acceptable(&mut self, now_ps: u64, segment: &Segment, sequence: u64) {
        if segment.has(Flags::RST) {
            return;
        }
        // A segment that is sent again because our acknowledgment was lost has a newer timestamp; echoing that of the first copy would
        // measure the sender's patience.
        if let Some(timestamps) = segment.options.timestamps
            && self.agreed.timestamps
        {
            self.receiver.notice_timestamp(sequence, timestamps.value);
        }
        let payload = u64::from(segment.payload_bytes);
        self.receiver
            .old(sequence, sequence + payload, &mut self.sender.statistics);
        self.receiver.owed = Owed::Alone;
        if self.state == State::TimeWait && segment.has(Flags::FIN) {
            self.wait(now_ps);
        }
        if sequence == self.receiver.nxt && segment.has(Flags::ACK) && !segment.has(Flags::SYN) {
            self.acknowledgment(now_ps, segment, sequence);
        }
    }

    fn take_data(&mut self, now_ps: u64, segment: &Segment, sequence: u64) {
        if self.agreed.ecn {
            let cwr = segment.has(Flags::CWR);
            self.receiver
                .notice_ecn(segment.ecn, cwr, &mut self.sender.statistics);
        }
        let finished = self.receiver.is_finished();
        self.receiver.data(
            now_ps,
            sequence,
            u64::from(segment.payload_bytes),
            segment.has(Flags::FIN),
            &mut self.sender.statistics,
        );
        if !finished && self.receiver.is_finished() {
            self.peer_finished(now_ps);
        }
    }

    /// Changes the state after the peer's FIN has arrived in order.
    fn peer_finished(&mut self, now_ps: u64) {
        match self.state {
            State::Established | State::SynReceived => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.wait(now_ps),
            _ => {}
        }
    }

    fn wait(&mut self, now_ps: u64) {
        self.state = State::TimeWait;
        self.time_wait_at_ps = now_ps.saturating_add(self.sender.config.time_wait_ps);
    }

    /// Processes the acknowledgment number, SACK blocks, window and ECN echo of an acceptable segment. Returns true if
    /// the segment's data may be accepted.
    fn acknowledgment(&mut self, now_ps: u64, segment: &Segment, sequence: u64) -> bool {
        let ack = unwrapped(self.sender.una, segment.acknowledgment);
        if self.state == State::SynReceived {
            if ack != self.sender.max || self.sender.max == self.sender.una {
                self.refuse(segment);
                return false;
            }
            self.establish(now_ps);
            self.set_peer_window(segment, sequence, ack);
            return true;
        }
        if ack > self.sender.max {
            self.receiver.owed = Owed::Alone;
            return false;
        }
        let window_before = self.sender.peer_edge();
        if ack >= self.sender.una {
            self.set_peer_window(segment, sequence, ack);
        }
        let echoes = self.agreed.ecn && segment.has(Flags::ECE);
        if self.agreed.ecn && ack >= self.sender.una {
            self.sender.on_mark(ack, echoes);
        }
        if echoes {
            self.sender.on_congestion_echo(ack);
        }
        let report = Report {
            ack,
            blocks: &segment.options.sack,
            echo_rtt_ps: self.echoed_rtt_ps(now_ps, segment),
            echoes,
            is_bare: segment.payload_bytes == 0
                && !segment.has(Flags::FIN)
                && (self.sender.peer_edge() == window_before || ack > self.sender.una),
        };
        if ack < self.sender.una {
            // Overtaken by a later one.
        } else if self.sender.tracks() {
            self.sender.acknowledge_selectively(now_ps, &report);
        } else if ack > self.sender.una {
            self.sender.acknowledge(now_ps, &report);
        } else if report.is_bare && self.sender.max > self.sender.una {
            self.sender.duplicate(now_ps);
        }
        self.sender.begin_burst();
        self.our_fin_acknowledged(now_ps);
        true
    }

    fn echoed_rtt_ps(&self, now_ps: u64, segment: &Segment) -> Option<u64> {
        if !self.agreed.timestamps {
            return None;
        }
        let ticks = self
            .timestamp_clock(now_ps)
            .wrapping_sub(segment.options.timestamps?.echo);
        // An echo of the future is nonsense; none is older than half the numbers.
        ((ticks as i32) >= 0)
            .then(|| u64::from(ticks.max(1)) * self.sender.config.timestamp_tick_ps)
    }

    fn set_peer_window(&mut self, segment: &Segment, sequence: u64, ack: u64) {
        let (by_sequence, by_ack) = self.window_set_by;
        if by_sequence < sequence || (by_sequence == sequence && by_ack <= ack) {
            let shift = if self.agreed.scaling {
                self.agreed.peer_shift
            } else {
                0
            };
            let window = u64::from(segment.window) << shift;
            self.sender.update_peer_window(ack, window);
            self.window_set_by = (sequence, ack);
        }
    }

    fn our_fin_acknowledged(&mut self, now_ps: u64) {
        if !self.sender.fin || self.sender.una <= self.sender.end {
            return;
        }
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.wait(now_ps),
            State::LastAck => self.close_down(),
            _ => {}
        }
    }
}

fn wants_sack(config: &Config) -> bool {
    !matches!(config.recovery, Recovery::NewReno(_))
}
