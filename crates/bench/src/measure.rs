//! Measures both versions in turns, in packets per second.
//!
//! A *window* is 256 packets in 8 bursts. Their buffers are filled before the clock is read, as a network card would do, and the sent
//! packets are taken back after it. So the time covers the handling of packets in memory, for both versions alike. A *run* is many windows,
//! the first of them to warm up; its figure is the median window, so that other load on the machine has little effect. The two
//! versions run in turns, and the reported figures are the medians of the runs.
#![expect(clippy::disallowed_methods, reason = "this is what measures")]

use crate::traffic::Traffic;
use crate::workload::{Handwritten, Workload};
use engine::{Output, Packet, Switch, Time};
use ports::InstructionCounter;
use serde::Serialize;
use std::time::{Duration, Instant};

/// The number of packets that a version receives at once.
pub const BURST: usize = 32;

/// The number of bursts between two readings of the clock.
const BURSTS: usize = 8;

/// The number of packets between two readings of the clock.
const WINDOW: usize = BURST * BURSTS;

/// The virtual time of the switch in ps per window: 256 packets at 10 million packets per second.
const WINDOW_PS: u64 = 25_600_000;

/// The virtual time of the switch in ps between two sequences of traffic, in which all timeouts expire.
const SILENCE_PS: u64 = 10_000_000_000_000;

/// How long a measurement takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The number of runs of each version.
    pub runs: usize,
    /// The number of windows in a run.
    pub windows: usize,
    /// The number of windows at the beginning of a run that do not count.
    pub warm_up: usize,
}

impl Options {
    /// The options for figures that are published.
    pub const FULL: Options = Options {
        runs: 9,
        windows: 300,
        warm_up: 60,
    };

    /// The options for tests, which show only that everything works.
    pub const QUICK: Options = Options {
        runs: 3,
        windows: 6,
        warm_up: 1,
    };
}

/// The measured figures of a program at one packet size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// The size of a packet in bytes, without preamble and frame check sequence.
    pub size_bytes: usize,
    /// The time per packet of the P4 program.
    #[serde(skip)]
    pub ns_per_packet: f64,
    /// The time per packet of the hand-written version.
    #[serde(skip)]
    pub handwritten_ns_per_packet: f64,
    /// The instructions per packet of the P4 program, if the processor's counters can be read.
    pub instructions_per_packet: Option<f64>,
    /// The instructions per packet of the hand-written version.
    pub handwritten_instructions_per_packet: Option<f64>,
    /// The number of packets sent for each packet received.
    pub outputs_per_packet: f64,
    /// The relative difference between the slowest and the fastest run of the P4 program, which shows how much load
    /// the machine has.
    pub spread: f64,
}

impl Measurement {
    /// Returns the number of packets per second that the P4 program handles on our switch.
    pub fn packets_per_s(&self) -> f64 {
        1e9 / self.ns_per_packet
    }

    /// Returns the number of packets per second that the hand-written version handles.
    pub fn handwritten_packets_per_s(&self) -> f64 {
        1e9 / self.handwritten_ns_per_packet
    }

    /// Returns the speed of our version divided by that of the hand-written version.
    pub fn ratio(&self) -> f64 {
        self.handwritten_ns_per_packet / self.ns_per_packet
    }
}

/// The version that is measured: the P4 program or the hand-written one.
enum Version<'a> {
    Ours(&'a mut Switch),
    Handwritten(&'a mut dyn Handwritten),
}

impl Version<'_> {
    fn reuse(&mut self, packet: Packet) {
        match self {
            Version::Ours(switch) => switch.reuse([packet]),
            Version::Handwritten(code) => code.reuse(packet),
        }
    }

    #[inline]
    fn receive_burst(
        &mut self,
        now_ps: Time,
        burst: &mut Vec<(u32, Packet)>,
        out: &mut Vec<Output>,
    ) {
        match self {
            Version::Ours(switch) => switch.receive_burst(now_ps, burst, out),
            Version::Handwritten(code) => {
                code.set_now_ps(now_ps);
                code.receive_burst(burst, out);
            }
        }
    }
}

/// A version that is measured, with its packets, buffers and time.
struct Lane<'a> {
    version: Version<'a>,
    traffic: Box<dyn Traffic>,
    now_ps: Time,
    bursts: Vec<Vec<(u32, Packet)>>,
    free: Vec<Packet>,
    out: Vec<Output>,
}

/// Prepares both versions for measurement, ours first, with the same traffic and the same starting time.
fn lanes(workload: &mut Workload, size_bytes: usize) -> (Lane<'_>, Lane<'_>) {
    let traffic = (workload.traffic)(size_bytes);
    let now_ps = workload.switch.runtime().now_ps() + SILENCE_PS;
    let ours = Version::Ours(&mut workload.switch);
    let other = Version::Handwritten(&mut *workload.handwritten);
    (
        Lane::new(ours, traffic.again(), now_ps),
        Lane::new(other, traffic, now_ps),
    )
}

/// The figures of one run.
struct Run {
    ns_per_packet: f64,
    instructions_per_packet: Option<f64>,
    outputs: usize,
}

impl<'a> Lane<'a> {
    fn new(version: Version<'a>, traffic: Box<dyn Traffic>, now_ps: Time) -> Lane<'a> {
        Lane {
            version,
            traffic,
            now_ps,
            bursts: (0..BURSTS).map(|_| Vec::with_capacity(BURST)).collect(),
            free: Vec::new(),
            out: Vec::with_capacity(4 * WINDOW),
        }
    }

    /// Prepares the next window, as wire and network card would: takes back the packets that left, and writes the
    /// next packets into the bursts.
    fn refill(&mut self) {
        let left = self.out.drain(..).map(|output| output.packet);
        self.free.extend(left);
        // Those for which there are no packets go where copies are made.
        while self.free.len() > WINDOW
            && let Some(packet) = self.free.pop()
        {
            self.version.reuse(packet);
        }
        for burst in &mut self.bursts {
            burst.clear();
            for _ in 0..BURST {
                let mut packet = self.free.pop().unwrap_or_default();
                let port = self.traffic.next(&mut packet);
                burst.push((port, packet));
            }
        }
        self.now_ps += WINDOW_PS;
    }

    /// Runs the version on all bursts of the prepared window; returns how long that took.
    fn window(&mut self) -> Duration {
        let start = Instant::now();
        for burst in &mut self.bursts {
            self.version
                .receive_burst(self.now_ps, burst, &mut self.out);
        }
        start.elapsed()
    }

    fn run(&mut self, options: Options, counter: Option<&InstructionCounter>) -> Run {
        let mut times = Vec::with_capacity(options.windows);
        let (mut instructions, mut counted, mut outputs) = (0, 0, 0);
        for window in 0..options.warm_up + options.windows {
            self.refill();
            let before = counter.and_then(InstructionCounter::read);
            let time = self.window();
            let after = counter.and_then(InstructionCounter::read);
            if window < options.warm_up {
                continue;
            }
            times.push(time.as_secs_f64());
            outputs += self.out.len();
            if let (Some(before), Some(after)) = (before, after) {
                instructions += after.wrapping_sub(before);
                counted += WINDOW;
            }
        }
        Run {
            ns_per_packet: median(times) * 1e9 / WINDOW as f64,
            instructions_per_packet: (counted > 0).then(|| instructions as f64 / counted as f64),
            outputs,
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Checks that both versions send the same packets, then measures them with packets of `size_bytes` bytes. Fails if
/// they differ, or if the size is not between 64 and 9000.
pub fn measure(
    workload: &mut Workload,
    size_bytes: usize,
    options: Options,
) -> Result<Measurement, String> {
    if !(64..=9000).contains(&size_bytes) {
        return Err(format!("packets have 64 to 9000 bytes, not {size_bytes}"));
    }
    let (mut ours, mut other) = lanes(workload, size_bytes);
    compare(&mut ours, &mut other, 8)?;
    let counter = InstructionCounter::new().ok();
    let (mut our_runs, mut other_runs) = (Vec::new(), Vec::new());
    for _ in 0..options.runs {
        our_runs.push(ours.run(options, counter.as_ref()));
        other_runs.push(other.run(options, counter.as_ref()));
    }
    compare(&mut ours, &mut other, 2)?;
    let figure = |runs: &[Run]| median(runs.iter().map(|r| r.ns_per_packet).collect());
    let counted = |runs: &[Run]| {
        let counts: Vec<f64> = (runs.iter())
            .filter_map(|r| r.instructions_per_packet)
            .collect();
        (!counts.is_empty()).then(|| median(counts))
    };
    let fastest = (our_runs.iter()).fold(f64::INFINITY, |a, r| a.min(r.ns_per_packet));
    let slowest = our_runs.iter().fold(0.0f64, |a, r| a.max(r.ns_per_packet));
    let outputs: usize = our_runs.iter().map(|r| r.outputs).sum();
    Ok(Measurement {
        size_bytes,
        ns_per_packet: figure(&our_runs),
        handwritten_ns_per_packet: figure(&other_runs),
        instructions_per_packet: counted(&our_runs),
        handwritten_instructions_per_packet: counted(&other_runs),
        outputs_per_packet: outputs as f64 / (options.runs * options.windows * WINDOW) as f64,
        spread: slowest / fastest - 1.0,
    })
}

/// Runs windows on both versions, and compares what leaves: ports, bytes and order. Fails at the first difference.
fn compare(ours: &mut Lane<'_>, other: &mut Lane<'_>, windows: usize) -> Result<(), String> {
    let mut outputs = 0;
    for _ in 0..windows {
        ours.refill();
        other.refill();
        ours.window();
        other.window();
        same(&ours.out, &other.out)?;
        outputs += ours.out.len();
    }
    match outputs {
        0 => Err("no packet left; nothing is compared".to_string()),
        _ => Ok(()),
    }
}

fn same(ours: &[Output], other: &[Output]) -> Result<(), String> {
    for (a, b) in ours.iter().zip(other) {
        if a.port != b.port || a.packet.bytes() != b.packet.bytes() {
            return Err(format!(
                "the versions differ: the program sends at port {} {:02x?}\nand the hand-written version at port {} {:02x?}",
                a.port,
                a.packet.bytes(),
                b.port,
                b.packet.bytes(),
            ));
        }
    }
    match ours.len() == other.len() {
        true => Ok(()),
        false => Err(format!(
            "the versions differ: the program sends {} packets of {WINDOW}, the hand-written version {}",
            ours.len(),
            other.len(),
        )),
    }
}

/// Checks with `packets` packets of `size_bytes` bytes that both versions send the same. Fails if they differ.
pub fn check(workload: &mut Workload, size_bytes: usize, packets: usize) -> Result<(), String> {
    let (mut ours, mut other) = lanes(workload, size_bytes);
    compare(&mut ours, &mut other, packets.div_ceil(WINDOW))
}
