//! Measures the cost of a segment: a bulk transfer between two ends with only a queue between them, `cargo run --release -p
//! holdfast-tcp --example speed`. Prints nanoseconds per data segment, both ends and all acknowledgments included.
#![expect(clippy::disallowed_macros, reason = "a command prints")]
#![expect(clippy::disallowed_methods, reason = "a command measures")]

use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tcp::{Config, Congestion, Connection, Cubic, Recovery};

const SEGMENTS: u64 = 1_000_000;
/// A round trip, so that the window has something to hold.
const DELAY_PS: u64 = 10_000_000_000;
/// The time between two steps: a segment's at 10 Gb/s and a bit.
const STEP_PS: u64 = 1_200_000;

fn main() {
    let sack = |congestion, recovery| Config {
        congestion,
        recovery,
        ..Config::default()
    };
    let proportional = Recovery::Sack { proportional: true };
    let presets = [
        ("NewReno, 2001", Config::ns2_2001(960)),
        ("NewReno", Config::default()),
        (
            "NewReno, timestamps",
            Config {
                timestamps: true,
                ..Config::default()
            },
        ),
        ("SACK", sack(Congestion::NewReno, proportional)),
        ("RACK-TLP", sack(Congestion::NewReno, Recovery::RFC_8985)),
        (
            "CUBIC, RACK-TLP",
            sack(Congestion::Cubic(Cubic::RFC_9438), Recovery::RFC_8985),
        ),
        ("BBR, RACK-TLP", sack(Congestion::Bbr, Recovery::RFC_8985)),
    ];
    println!("a connection: {} bytes", std::mem::size_of::<Connection>());
    for (name, config) in presets {
        let best = (0..3).map(|_| run(&config)).fold(f64::MAX, f64::min);
        println!("{name:24} {best:6.1} ns per data segment, both ends");
    }
}

/// Returns the processor time that this thread has used, which a busy machine distorts less than elapsed time. Returns
/// elapsed time if the system does not report processor time.
fn cpu_time() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let told = std::fs::read_to_string("/proc/self/schedstat").ok();
    let first = told.as_deref().and_then(|text| text.split(' ').next());
    match first.and_then(|number| number.parse().ok()) {
        Some(nanoseconds) => Duration::from_nanos(nanoseconds),
        None => START.get_or_init(Instant::now).elapsed(),
    }
}

/// Runs a transfer of [`SEGMENTS`] segments, and returns the processor time per data segment in nanoseconds.
fn run(config: &Config) -> f64 {
    let mut ends = [
        Connection::connect(config, 1, 0).expect("a preset"),
        Connection::listen(config, 2).expect("a preset"),
    ];
    let mut flying: [VecDeque<(u64, tcp::Segment)>; 2] = Default::default();
    ends[0].write_endless();
    let bytes = SEGMENTS * u64::from(config.mss);
    let start = cpu_time();
    let mut now_ps = 0;
    while ends[1].received_bytes() < bytes {
        now_ps += STEP_PS;
        for end in 0..2 {
            if let Some(&(at_ps, segment)) = flying[1 - end].front()
                && at_ps <= now_ps
            {
                flying[1 - end].pop_front();
                ends[end].receive(now_ps, &segment);
            }
            if ends[end].due_ps().is_some_and(|due_ps| due_ps <= now_ps) {
                ends[end].on_timer(now_ps);
            }
            while let Some(segment) = ends[end].next_segment(now_ps) {
                flying[end].push_back((now_ps + DELAY_PS, segment));
            }
        }
        if flying
            .iter()
            .all(|way| way.front().is_none_or(|next| next.0 > now_ps + STEP_PS))
        {
            let next = flying
                .iter()
                .filter_map(|way| way.front())
                .map(|next| next.0)
                .min();
            now_ps = next.map_or(now_ps, |at_ps| at_ps - STEP_PS);
        }
    }
    (cpu_time() - start).as_nanos() as f64 / SEGMENTS as f64
}
