//! Load for measurements: frames sent from an interface as fast as the kernel takes them, or at a rate.
//!
//! It knows neither the frames' contents nor their receivers. Callers read the counters of the interface where the frames should
//! arrive ([`interface_counters`]).
#![expect(clippy::disallowed_methods, reason = "a load is sent in real time")]

use crate::interface::checked_name;
use crate::{PacketSocket, PortError, TransmitKind};
use serde::{Serialize, Serializer};
use std::time::{Duration, Instant};

/// Most frames sent between two readings of the clock.
const BURST: u64 = 32;

/// A sender that is ahead of its rate spins instead of sleeping for less than this.
const SHORTEST_PAUSE_S: f64 = 100e-6;

/// A sender that is ahead of its rate never sleeps longer than this.
const LONGEST_PAUSE_S: f64 = 200e-6;

/// The sent frames and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LoadReport {
    /// Frames that the kernel took.
    pub sent: u64,
    /// Frames that it refused.
    pub refused: u64,
    /// The duration of the whole run.
    #[serde(rename = "elapsed_ns", serialize_with = "nanoseconds")]
    pub elapsed: Duration,
}

fn nanoseconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    time.as_nanos().serialize(serializer)
}

/// Sends the frames in turn, over and over, from an interface of the thread's network namespace for `duration`. Sends
/// as fast as possible, or at `packets_per_s`, in bursts of at most 32 frames. Returns how many frames the
/// kernel took and refused. Fails if there is no frame, the rate is not positive, or the interface cannot be opened.
pub fn send_load(
    interface: &str,
    frames: &[Vec<u8>],
    packets_per_s: Option<f64>,
    duration: Duration,
) -> Result<LoadReport, PortError> {
    if frames.is_empty() {
        return Err(PortError::Invalid("there is no frame to send".into()));
    }
    if packets_per_s.is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
        return Err(PortError::Invalid(
            "the rate must be a positive number of packets per second".into(),
        ));
    }
    let mut socket = PacketSocket::open_with(interface, TransmitKind::Auto)?;
    let mut frames = frames.iter().cycle();
    let start = Instant::now();
    let mut sent = 0u64;
    loop {
        let elapsed = start.elapsed();
        if elapsed >= duration {
            break;
        }
        let due = match packets_per_s {
            None => BURST,
            Some(rate) => ((elapsed.as_secs_f64() * rate) as u64).saturating_sub(sent),
        };
        if due == 0 {
            // At a low rate, half a burst later; the processor is for others until then.
            let pause = packets_per_s.map_or(0.0, |rate| BURST as f64 / 2.0 / rate);
            match pause < SHORTEST_PAUSE_S {
                true => std::hint::spin_loop(),
                false => std::thread::sleep(Duration::from_secs_f64(pause.min(LONGEST_PAUSE_S))),
            }
            continue;
        }
        for frame in frames.by_ref().take(due.min(BURST) as usize) {
            socket.send(frame);
        }
        socket.flush();
        sent += due.min(BURST);
        // Frames that come back are nobody's, but must not fill the ring.
        socket.receive(BURST as usize, &mut |_| {});
    }
    let counters = socket.counters();
    Ok(LoadReport {
        sent: counters.tx_frames,
        refused: counters.tx_drops,
        elapsed: start.elapsed(),
    })
}

/// The kernel's counters of an interface of the thread's network namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InterfaceCounters {
    /// Frames received.
    pub rx_packets: u64,
    /// Bytes of the received frames.
    pub rx_bytes: u64,
    /// Frames that arrived and were dropped.
    pub rx_drops: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Bytes of the sent frames.
    pub tx_bytes: u64,
    /// Frames that were to be sent and were dropped.
    pub tx_drops: u64,
}

/// Returns the kernel's counters of an interface of this thread's network namespace. Fails with `Missing` if there is
/// no such interface.
pub fn interface_counters(name: &str) -> Result<InterfaceCounters, PortError> {
    checked_name(name)?;
    let path = "/proc/thread-self/net/dev";
    let text = std::fs::read_to_string(path).map_err(|e| PortError::io(path, &e))?;
    let line = text.lines().find_map(|line| {
        let (found, numbers) = line.trim().split_once(':')?;
        (found == name).then_some(numbers)
    });
    let Some(numbers) = line else {
        return Err(PortError::Missing(format!("there is no interface {name}")));
    };
    // Received: bytes, packets, errors, drops and four more; then the same for what was sent.
    let numbers: Vec<u64> = numbers
        .split_whitespace()
        .filter_map(|number| number.parse().ok())
        .collect();
    let &[
        rx_bytes,
        rx_packets,
        _,
        rx_drops,
        _,
        _,
        _,
        _,
        tx_bytes,
        tx_packets,
        _,
        tx_drops,
        ..,
    ] = numbers.as_slice()
    else {
        return Err(PortError::Failed(format!("{path} is not as expected")));
    };
    Ok(InterfaceCounters {
        rx_packets,
        rx_bytes,
        rx_drops,
        tx_packets,
        tx_bytes,
        tx_drops,
    })
}
