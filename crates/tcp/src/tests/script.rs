//! Scripted exchanges: a text lists the segments that arrive and those that must leave, with their times.
//!
//! A file has exchanges, each begun by `== name`. A line has the time since the line before, in seconds, and an event.
//!
//! ```text
//! config sack mss 1000 iw 4        before the first event: words of `choose`
//! +0 connect | listen | write N | write endless | close | read N
//! +0 established [RTT]             connect, and a handshake that takes RTT seconds (0.1)
//! +0.1 < seq 0:1000 ack 1 sack 2001:3001 win 5000     arrives
//! +0 > seq 1:1001 ack 1            must leave, at this time; `each 1000` after a longer range: as so many segments
//! +0 = cwnd 10000 ssthresh 5000    must hold (bytes, seconds)
//! +0 state Established
//! ```
//!
//! Numbers count from each end's initial sequence number (SYN is 0, the first byte 1). An unexpected segment that leaves is an error, reported as
//! soon as another arrives or the exchange ends. Numbers, flags (except PSH) and SACK blocks of leaving segments are always compared,
//! `win`, `ts`, `mss`, `wscale` and `ect` only if mentioned. Arriving segments have a window of 60,000 unless another is given.

use super::channel::SECOND;
use crate::{
    Config, Congestion, Connection, Cubic, DelayedAck, EcnCodepoint, Flags, Hpcc, NewReno, Options,
    PartialAck, Recovery, Reduction, SackBlocks, Segment, Timestamps,
};
use std::collections::VecDeque;

/// Initial sequence number of the connection: 64-bit numbers are just beyond a wrap when the first bytes are sent.
const OURS: u32 = 0xffff_fc00;
const THEIRS: u32 = 0x7fff_ff00;

/// Runs every exchange in the text of a file, whose name is used in messages.
pub(crate) fn run(file: &str, text: &str) {
    let mut exchange: Option<Exchange> = None;
    let mut count = 0;
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let place = format!("{file}:{}: {line}", number + 1);
        if let Some(name) = line.strip_prefix("== ") {
            if let Some(finished) = &mut exchange {
                finished.expect_nothing(&place);
            }
            exchange = Some(Exchange::new(name));
            count += 1;
        } else {
            let current = exchange.as_mut().expect("an exchange begins with ==");
            current.place = format!("{} ({})", place, current.name);
            current.line(line);
        }
    }
    if let Some(finished) = &mut exchange {
        finished.expect_nothing(file);
    }
    assert!(count > 0, "{file} has no exchange");
}

/// Words of a line, taken from the front.
struct Words<'a>(VecDeque<&'a str>);

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<&'a str> {
        self.0.pop_front()
    }

    fn word(&mut self) -> &'a str {
        self.next().expect("a word is missing")
    }

    fn number(&mut self) -> u64 {
        let word = self.word();
        word.parse()
            .unwrap_or_else(|_| panic!("{word} is no number"))
    }

    fn seconds(&mut self) -> u64 {
        seconds(self.word())
    }

    fn range(&mut self) -> (u64, u64) {
        range(self.word()).expect("a range is first:behind")
    }
}

fn range(word: &str) -> Option<(u64, u64)> {
    let (start, end) = word.split_once(':')?;
    Some((start.parse().ok()?, end.parse().ok()?))
}

/// Parses decimal seconds into picoseconds, exactly.
fn seconds(word: &str) -> u64 {
    let (whole, fraction) = word.split_once('.').unwrap_or((word, ""));
    let whole: u64 = whole
        .parse()
        .unwrap_or_else(|_| panic!("{word} is no time"));
    let digits: u64 = format!("{fraction:0<12}")
        .parse()
        .unwrap_or_else(|_| panic!("{word} is no time"));
    whole * SECOND + digits
}

/// A segment as a line has it.
#[derive(Default)]
struct Written {
    segment: Segment,
    each: Option<u64>,
    window: Option<u64>,
    has_timestamps: bool,
    ecn: Option<EcnCodepoint>,
}

struct Exchange {
    name: String,
    place: String,
    config: Config,
    end: Option<Connection>,
    now_ps: u64,
    left: VecDeque<(u64, Segment)>,
    our_shift: u8,
    their_shift: u8,
}

impl Exchange {
    fn new(name: &str) -> Exchange {
        Exchange {
            name: name.to_owned(),
            place: String::new(),
            config: Config {
                mss: 1000,
                window_limit_bytes: 60_000,
                delayed_ack: None,
                ..Config::default()
            },
            end: None,
            now_ps: 0,
            left: VecDeque::new(),
            our_shift: 0,
            their_shift: 0,
        }
    }

    fn line(&mut self, line: &str) {
        let mut words = Words(line.split_whitespace().collect());
        let first = words.word();
        if first == "config" {
            while let Some(word) = words.next() {
                choose(&mut self.config, word, &mut words);
            }
            return;
        }
        let after = first.strip_prefix('+').expect("a line begins with +time");
        self.advance(seconds(after));
        let what = words.word();
        match what {
            "<" => self.arrives(words),
            ">" => self.leaves(words),
            "=" => self.compares(words),
            "nothing" => self.expect_nothing("nothing"),
            "state" => {
                let state = format!("{:?}", self.end().state());
                assert_eq!(state, words.word(), "{}", self.place);
            }
            _ => self.application(what, words),
        }
    }

    fn end(&mut self) -> &mut Connection {
        self.end
            .as_mut()
            .expect("connect, listen or established comes first")
    }

    /// Advances the time by `by_ps` picoseconds. Each timer expires when it is due, and the segments that it releases
    /// are recorded.
    fn advance(&mut self, by_ps: u64) {
        let until_ps = self.now_ps + by_ps;
        while let Some(due_ps) = self.end.as_ref().and_then(Connection::due_ps)
            && due_ps <= until_ps
        {
            // Late timers expire now.
            self.now_ps = self.now_ps.max(due_ps);
            let now_ps = self.now_ps;
            self.end().on_timer(now_ps);
            self.flush();
        }
        self.now_ps = until_ps;
    }

    fn flush(&mut self) {
        let now_ps = self.now_ps;
        let end = self.end();
        end.check();
        let mut sent = Vec::new();
        while let Some(segment) = end.next_segment(now_ps) {
            sent.push((now_ps, segment));
        }
        end.check();
        self.left.extend(sent);
    }

    fn application(&mut self, what: &str, mut words: Words<'_>) {
        let now_ps = self.now_ps;
        match what {
            "connect" => self.end = Connection::connect(&self.config, OURS, now_ps).ok(),
            "listen" => self.end = Connection::listen(&self.config, OURS).ok(),
            "established" => {
                let rtt_ps = if words.0.is_empty() {
                    SECOND / 10
                } else {
                    words.seconds()
                };
                return self.establish(rtt_ps);
            }
            "write" => match words.word() {
                "endless" => self.end().write_endless(),
                word => self.end().write(word.parse().expect("bytes")),
            },
            "close" => self.end().close(),
            "stop" => self.end().stop(),
            "read" => {
                let bytes = words.number();
                self.end().read(bytes);
            }
            _ => panic!("{}: {what} is no event", self.place),
        }
        self.flush();
    }

    /// Establishes the connection from our side, with a peer that agrees to all options and a round-trip time of
    /// `rtt_ps` picoseconds.
    fn establish(&mut self, rtt_ps: u64) {
        let now_ps = self.now_ps;
        self.end = Connection::connect(&self.config, OURS, now_ps).ok();
        self.flush();
        let (_, syn) = self.left.pop_front().expect("a SYN");
        self.our_shift = syn.options.window_scale.unwrap_or(0);
        self.advance(rtt_ps);
        let ecn = if syn.flags.contains(Flags::ECE) {
            Flags::ECE
        } else {
            Flags::NONE
        };
        let answer = Segment {
            sequence: THEIRS,
            acknowledgment: OURS.wrapping_add(1),
            flags: Flags::SYN | Flags::ACK | ecn,
            window: 60_000,
            options: Options {
                mss: Some(1460),
                timestamps: syn.options.timestamps.map(|ours| Timestamps {
                    value: 1000,
                    echo: ours.value,
                }),
                ..syn.options
            },
            ..Segment::default()
        };
        let answer = Segment {
            options: Options {
                window_scale: Some(0),
                ..answer.options
            },
            ..answer
        };
        let now_ps = self.now_ps;
        self.end().receive(now_ps, &answer);
        self.flush();
        let (_, ack) = self
            .left
            .pop_front()
            .expect("the handshake's last acknowledgment");
        assert_eq!(ack.flags, Flags::ACK, "{}", self.place);
    }

    fn arrives(&mut self, words: Words<'_>) {
        self.expect_nothing("before the arrival");
        let written = self.written(words, THEIRS, OURS);
        let mut segment = written.segment;
        segment.window = (written.window.unwrap_or(60_000) >> self.their_shift) as u16;
        segment.ecn = written.ecn.unwrap_or_default();
        let now_ps = self.now_ps;
        self.end().receive(now_ps, &segment);
        self.flush();
    }

    fn leaves(&mut self, words: Words<'_>) {
        let written = self.written(words, OURS, THEIRS);
        let total = u64::from(written.segment.payload_bytes);
        let each = written.each.unwrap_or(total).max(1);
        let mut at = 0;
        loop {
            let payload = each.min(total - at);
            let last = at + payload == total;
            let mut expected = written.segment;
            expected.sequence = expected.sequence.wrapping_add(at as u32);
            expected.payload_bytes = payload as u32;
            if !last {
                expected.flags = Flags::from_bits(expected.flags.bits() & !Flags::FIN.bits());
            }
            self.one_leaves(&expected, &written);
            at += payload;
            if last {
                break;
            }
        }
    }

    fn one_leaves(&mut self, expected: &Segment, written: &Written) {
        let place = &self.place;
        let Some((at_ps, segment)) = self.left.pop_front() else {
            panic!("{place}: nothing left; {:?}", self.end);
        };
        let told = |segment: &Segment| {
            let flags = Flags::from_bits(segment.flags.bits() & !Flags::PSH.bits());
            let sequence = segment.sequence.wrapping_sub(OURS);
            let ack = segment
                .flags
                .contains(Flags::ACK)
                .then(|| segment.acknowledgment.wrapping_sub(THEIRS));
            let relative = |edge: u32| edge.wrapping_sub(THEIRS);
            let blocks: Vec<_> = segment
                .options
                .sack
                .blocks()
                .iter()
                .map(|b| (relative(b.0), relative(b.1)))
                .collect();
            (sequence, segment.payload_bytes, flags, ack, blocks)
        };
        assert_eq!(
            told(&segment),
            told(expected),
            "{place}: left at {at_ps} (left: is, right: should be)"
        );
        assert_eq!(
            at_ps, self.now_ps,
            "{place}: the time (left: is, right: should be)"
        );
        if let Some(window) = written.window {
            let shift = if segment.flags.contains(Flags::SYN) {
                0
            } else {
                self.our_shift
            };
            assert_eq!(
                u64::from(segment.window) << shift,
                window,
                "{place}: the window"
            );
        }
        if written.has_timestamps {
            assert_eq!(
                segment.options.timestamps, expected.options.timestamps,
                "{place}"
            );
        }
        if let Some(ecn) = written.ecn {
            assert_eq!(segment.ecn, ecn, "{place}: ECN");
        }
        let options = &expected.options;
        if options.mss.is_some() {
            assert_eq!(segment.options.mss, options.mss, "{place}");
        }
        if options.window_scale.is_some() {
            assert_eq!(
                segment.options.window_scale, options.window_scale,
                "{place}"
            );
        }
        if options.sack_permitted {
            assert!(segment.options.sack_permitted, "{place}");
        }
    }

    /// Reads a segment from its words. Its sequence numbers count from `from`, and its acknowledgment number from
    /// `to`.
    fn written(&mut self, mut words: Words<'_>, from: u32, to: u32) -> Written {
        let mut written = Written::default();
        let segment = &mut written.segment;
        while let Some(word) = words.next() {
            match word {
                "seq" => {
                    let (start, end) = words.range();
                    segment.sequence = from.wrapping_add(start as u32);
                    segment.payload_bytes = (end - start) as u32;
                }
                "each" => written.each = Some(words.number()),
                "ack" => {
                    segment.flags |= Flags::ACK;
                    segment.acknowledgment = to.wrapping_add(words.number() as u32);
                }
                "SYN" => segment.flags |= Flags::SYN,
                "FIN" => segment.flags |= Flags::FIN,
                "RST" => segment.flags |= Flags::RST,
                "ECE" => segment.flags |= Flags::ECE,
                "CWR" => segment.flags |= Flags::CWR,
                "ect" => written.ecn = Some(EcnCodepoint::Ect0),
                "notect" => written.ecn = Some(EcnCodepoint::NotEct),
                "ce" => written.ecn = Some(EcnCodepoint::Ce),
                "win" => written.window = Some(words.number()),
                "mss" => segment.options.mss = Some(words.number() as u16),
                "wscale" => segment.options.window_scale = Some(words.number() as u8),
                "sackok" => segment.options.sack_permitted = true,
                "ts" => {
                    let (value, echo) = words.range();
                    written.has_timestamps = true;
                    segment.options.timestamps = Some(Timestamps {
                        value: value as u32,
                        echo: echo as u32,
                    });
                }
                "sack" => {
                    let mut blocks = SackBlocks::default();
                    while let Some((start, end)) = words.0.front().and_then(|word| range(word)) {
                        words.next();
                        assert!(
                            blocks.push(to.wrapping_add(start as u32), to.wrapping_add(end as u32))
                        );
                    }
                    segment.options.sack = blocks;
                }
                _ => panic!("{}: {word} is no part of a segment", self.place),
            }
        }
        if segment.flags.contains(Flags::SYN) && from == THEIRS {
            self.their_shift = 0;
        }
        written
    }

    fn compares(&mut self, mut words: Words<'_>) {
        let statistics = self.end().statistics();
        let place = self.place.clone();
        while let Some(word) = words.next() {
            let is = match word {
                "cwnd" => statistics.cwnd_bytes,
                "ssthresh" => statistics.ssthresh_bytes,
                "flight" => statistics.flight_bytes,
                "timeouts" => statistics.timeouts,
                "recoveries" => statistics.fast_recoveries,
                "again" => statistics.segments_retransmitted,
                "received" => statistics.bytes_received,
                "acknowledged" => statistics.bytes_acknowledged,
                "probes" => statistics.tail_loss_probes,
                "ecn" => statistics.ecn_reductions,
                "duplicates" => statistics.duplicate_acks,
                "rejected" => statistics.paws_rejected,
                "srtt" | "rto" => {
                    let is = if word == "rto" {
                        statistics.rto_ps
                    } else {
                        statistics.srtt_ps
                    };
                    assert_eq!(
                        is,
                        words.seconds(),
                        "{place}: {word} (left: is, right: should be)"
                    );
                    continue;
                }
                _ => panic!("{place}: {word} is not counted"),
            };
            assert_eq!(
                is,
                words.number(),
                "{place}: {word} (left: is, right: should be)"
            );
        }
    }

    fn expect_nothing(&mut self, why: &str) {
        assert!(
            self.left.is_empty(),
            "{} ({why}): not expected: {:?}",
            self.place,
            self.left
        );
    }
}

/// Applies a word of a `config` line to the configuration.
fn choose(config: &mut Config, word: &str, words: &mut Words<'_>) {
    match word {
        "ns2" => *config = Config::ns2_2001(1000),
        "newreno" => config.recovery = Recovery::NewReno(NewReno::RFC_6582),
        "steady" => {
            config.recovery = Recovery::NewReno(NewReno {
                partial_ack: PartialAck::SlowButSteady,
                ..NewReno::RFC_6582
            });
        }
        "sack" => {
            config.recovery = Recovery::Sack {
                proportional: false,
            }
        }
        "prr" => config.recovery = Recovery::Sack { proportional: true },
        "rack" => config.recovery = Recovery::RFC_8985,
        "cubic" => config.congestion = Congestion::Cubic(Cubic::RFC_9438),
        "bbr" => config.congestion = Congestion::Bbr,
        "dctcp" => config.congestion = Congestion::Dctcp,
        "hpcc" => {
            config.congestion = Congestion::Hpcc(Hpcc::published(100_000_000, words.seconds()))
        }
        "iw" => config.initial_window_segments = words.number() as u32,
        "mss" => config.mss = words.number() as u32,
        "window" => config.window_limit_bytes = words.number(),
        "ssthresh" => config.initial_ssthresh_bytes = Some(words.number()),
        "delack" => {
            config.delayed_ack = Some(DelayedAck {
                every: 2,
                timeout_ps: words.seconds(),
                quick_segments: 0,
            });
        }
        "quick" => {
            let segments = words.number() as u32;
            let delayed = config.delayed_ack.as_mut();
            delayed.expect("delack comes first").quick_segments = segments;
        }
        "halfwindow" => config.reduction = Reduction::Window,
        "nolimited" => config.limited_transmit = false,
        "nonagle" => config.nagle = false,
        "novalidation" => config.window_validation = false,
        "minrto" => config.rto.minimum_ps = words.seconds(),
        "maxrto" => config.rto.maximum_ps = words.seconds(),
        "ts" => config.timestamps = true,
        "ecn" => config.ecn = true,
        "waits" => config.reads_at_once = false,
        "limit" => config.timeout_limit = words.number() as u32,
        _ => panic!("{word} is no choice"),
    }
}

#[test]
fn a_script_notices_what_is_wrong() {
    let right = [
        "config iw 2",
        "+0 established",
        "+0 write 5000",
        "+0 > seq 1:2001 ack 1 each 1000",
        "+0.1 < seq 1:1 ack 1001",
        "+0 > seq 2001:4001 ack 1 each 1000",
        "+0 = cwnd 3000 srtt 0.1",
        "+0 state Established",
    ];
    let text = |lines: &[&str]| format!("== one\n{}\n", lines.join("\n"));
    run("right", &text(&right));
    let wrong = [
        (3, "+0.1 > seq 1:2001 ack 1 each 1000"),
        (3, "+0 > seq 1:1001 ack 1 each 1000"),
        (3, "+0 > seq 2:2002 ack 1 each 1000"),
        (3, "+0 > seq 1:2001 ack 2 each 1000"),
        (3, "+0 > seq 1:2001 ack 1 each 1000 ECE"),
        (3, "+0 > seq 1:2001 ack 1 each 1000 win 1"),
        (3, "+0 > seq 1:2001 ack 1 each 1000 ect"),
        (3, "+0 > seq 1:2001 ack 1 each 1000 sack 1:2"),
        (3, "+0 nothing"),
        (5, "+0 nothing"),
        (6, "+0 = cwnd 3001"),
        (6, "+0 = srtt 0.2"),
        (7, "+0 state Closed"),
    ];
    for (at, line) in wrong {
        let mut lines = right;
        lines[at] = line;
        let text = text(&lines);
        let noticed = std::panic::catch_unwind(|| run("wrong", &text)).is_err();
        assert!(noticed, "{line}");
    }
}
