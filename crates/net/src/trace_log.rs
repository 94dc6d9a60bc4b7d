//! The log of a switch: what happened to its packets, as text. It is an observer of the switch, which decides how many are traced.
//!
//! Each packet begins with the time of day (UTC) under the wall clock, and with the network's time under the virtual clock.

use crate::observer::{Moment, Observation, Observer, Place};
use std::fmt::Write as _;
use std::io::Write;

const NS_PER_S: u64 = 1_000_000_000;

/// A switch's log as it is written.
pub(crate) struct TraceLog {
    /// The log's name in error messages.
    what: String,
    dump_bytes: usize,
    out: Box<dyn Write + Send>,
    /// The second of the last packet, and the number of packets since then that were not traced.
    second: u64,
    left_out: u64,
    /// True if an error has ended the log; later packets are not written.
    failed: bool,
    failure: Option<String>,
}

impl TraceLog {
    pub(crate) fn new(what: String, dump_bytes: usize, out: Box<dyn Write + Send>) -> TraceLog {
        TraceLog {
            what,
            dump_bytes,
            out,
            second: 0,
            left_out: 0,
            failed: false,
            failure: None,
        }
    }

    fn write(&mut self, text: &str) {
        if self.failed {
            return;
        }
        if let Err(error) = self.out.write_all(text.as_bytes()) {
            self.failed = true;
            self.failure = Some(format!("{}: {error}", self.what));
        }
    }

    /// Writes how many packets were not traced, if there were any since this was last written.
    fn tell_left_out(&mut self) {
        let count = std::mem::take(&mut self.left_out);
        if count > 0 {
            self.write(&format!("{count} more packets in this second\n\n"));
        }
    }

    fn dump(&self, text: &mut String, what: &str, bytes: &[u8]) {
        if self.dump_bytes == 0 {
            return;
        }
        let shown = &bytes[..bytes.len().min(self.dump_bytes)];
        let _ = write!(text, "{what}: ");
        for byte in shown {
            let _ = write!(text, "{byte:02x}");
        }
        text.push_str(if shown.len() < bytes.len() {
            "...\n"
        } else {
            "\n"
        });
    }
}

impl Observer for TraceLog {
    fn observe(&mut self, moment: Moment, place: Place<'_>, seen: &Observation<'_>) {
        let traced = matches!(seen, Observation::Traced { .. } | Observation::NotTraced);
        if traced && moment.time_ns() / NS_PER_S != self.second {
            self.second = moment.time_ns() / NS_PER_S;
            self.tell_left_out();
        }
        match seen {
            Observation::Traced {
                packet,
                trace,
                outputs,
            } => {
                let mut text = format!("{} {}\n", time_of_day(moment.time_ns()), place.name);
                self.dump(&mut text, "bytes", packet);
                let _ = write!(text, "{trace}");
                for (port, bytes) in *outputs {
                    self.dump(&mut text, &format!("bytes at port {port}"), bytes);
                }
                text.push('\n');
                self.write(&text);
            }
            Observation::NotTraced => self.left_out += 1,
            _ => {}
        }
    }

    fn flush(&mut self) {
        if let (false, Err(error)) = (self.failed, self.out.flush()) {
            self.failed = true;
            self.failure = Some(format!("{}: {error}", self.what));
        }
    }

    fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }
}

impl Drop for TraceLog {
    fn drop(&mut self) {
        self.tell_left_out();
        self.flush();
    }
}

/// Formats a time in nanoseconds (since 1970 or since the network's beginning) as hours, minutes, seconds and
/// microseconds of a day.
fn time_of_day(time_ns: u64) -> String {
    let (second, micros) = (time_ns / NS_PER_S, time_ns % NS_PER_S / 1000);
    let (hour, minute) = (second / 3600 % 24, second / 60 % 60);
    format!("{hour:02}:{minute:02}:{:02}.{micros:06}", second % 60)
}
