//! DCTCP (RFC 8257): the window shrinks in proportion to the share of bytes that arrived with congestion experienced.
//!
//! Everything else is NewReno's. The share is estimated once per window of data (section 3.3), with the recommended gain of 1/16 and
//! an estimate that begins with 1, as Linux has it. Fixed-point numbers with 20 bits of fraction.

use super::newreno::NewReno;
use super::{Ack, Control, Loss, Mark, Window, scaled};
use crate::config::{HyStart, Increase};

const ONE: u64 = 1 << 20;
/// 1/g, as a shift.
const GAIN_SHIFT: u32 = 4;

/// The state of section 3.3.
#[derive(Clone, Debug)]
pub(crate) struct Dctcp {
    reno: NewReno,
    /// DCTCP.Alpha.
    alpha: u64,
    /// DCTCP.WindowEnd.
    window_end: u64,
    /// DCTCP.BytesAcked.
    acked: u64,
    /// DCTCP.BytesMarked.
    marked: u64,
}

impl Dctcp {
    pub(crate) fn new(increase: Increase, hystart: Option<HyStart>) -> Dctcp {
        Dctcp {
            reno: NewReno::new(increase, hystart),
            alpha: ONE,
            window_end: 0,
            acked: 0,
            marked: 0,
        }
    }
}

impl Control for Dctcp {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.reno.on_ack(window, ack);
    }

    fn on_mark(&mut self, mark: &Mark) {
        self.acked += mark.acked_bytes;
        if mark.echoes {
            self.marked += mark.acked_bytes;
        }
        if mark.ack <= self.window_end {
            return;
        }
        let share = scaled(self.marked, ONE, self.acked).min(ONE);
        self.alpha = self.alpha - (self.alpha >> GAIN_SHIFT) + (share >> GAIN_SHIFT);
        self.window_end = mark.next;
        self.acked = 0;
        self.marked = 0;
    }

    fn on_congestion(&mut self, window: &mut Window, loss: &Loss) {
        self.reno.on_congestion(window, loss);
        if loss.is_echo {
            let less = scaled(window.cwnd, self.alpha, 2 * ONE);
            window.ssthresh = (window.cwnd - less).max(window.floor());
        }
    }

    fn on_timeout(&mut self, window: &mut Window, loss: &Loss) {
        self.reno.on_timeout(window, loss);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dctcp() -> (Dctcp, Window) {
        let increase = Increase::PerByte {
            slow_start_limit_segments: 1,
        };
        let window = Window {
            cwnd: 100_000,
            ssthresh: 50_000,
            mss: 1000,
        };
        (Dctcp::new(increase, None), window)
    }

    fn round(dctcp: &mut Dctcp, at: u64, marked: u64) {
        for segment in 1..=10 {
            dctcp.on_mark(&Mark {
                acked_bytes: 1000,
                echoes: segment <= marked,
                ack: at + segment * 1000,
                next: at + 10_000 + segment * 1000,
            });
        }
    }

    #[test]
    fn alpha_is_the_average_share_of_marked_bytes() {
        let (mut dctcp, _) = dctcp();
        // The first acknowledgment ends a window of one segment; the next window is up to 11,000.
        round(&mut dctcp, 0, 0);
        assert_eq!(dctcp.alpha, ONE - ONE / 16);
        dctcp.window_end = 10_000;
        dctcp.alpha = ONE / 2;
        dctcp.acked = 0;
        // Nine segments up to 19,000 with five marks, and the one that ends the window.
        dctcp.window_end = 19_000;
        round(&mut dctcp, 10_000, 5);
        assert_eq!(dctcp.alpha, ONE / 2 - ONE / 32 + ONE / 32);
    }

    #[test]
    fn an_echo_takes_half_of_alpha_and_a_loss_half() {
        let (mut dctcp, mut window) = dctcp();
        dctcp.alpha = ONE / 4;
        let echo = Loss {
            from_bytes: 90_000,
            is_echo: true,
        };
        dctcp.on_congestion(&mut window, &echo);
        assert_eq!(window.ssthresh, 87_500);
        let loss = Loss {
            is_echo: false,
            ..echo
        };
        dctcp.on_congestion(&mut window, &loss);
        assert_eq!(window.ssthresh, 45_000);
    }

    #[test]
    fn without_marks_alpha_goes_to_zero_and_an_echo_costs_little() {
        let (mut dctcp, mut window) = dctcp();
        for n in 0..400 {
            round(&mut dctcp, n * 20_000, 0);
        }
        assert!(dctcp.alpha < ONE / 10_000, "{}", dctcp.alpha);
        let echo = Loss {
            from_bytes: 0,
            is_echo: true,
        };
        dctcp.on_congestion(&mut window, &echo);
        assert!(window.ssthresh > 99_990, "{}", window.ssthresh);
    }
}
