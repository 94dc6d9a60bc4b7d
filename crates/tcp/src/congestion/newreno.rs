//! Congestion avoidance of RFC 5681, counted by acknowledgments or by bytes (RFC 3465).

use super::slow_start::SlowStart;
use super::{Ack, Control, Loss, Window};
use crate::config::{HyStart, Increase};

/// Congestion control by additive increase and multiplicative decrease.
#[derive(Clone, Debug)]
pub(crate) struct NewReno {
    slow_start: SlowStart,
    increase: Increase,
    /// The remainder of the last increase: in bytes times bytes if acknowledgments are counted, in bytes if bytes are.
    rest: u64,
}

impl NewReno {
    pub(crate) fn new(increase: Increase, hystart: Option<HyStart>) -> NewReno {
        NewReno {
            slow_start: SlowStart::new(increase, hystart),
            increase,
            rest: 0,
        }
    }

    fn avoid_congestion(&mut self, window: &mut Window, acked_bytes: u64) {
        match self.increase {
            Increase::PerAck => {
                self.rest += window.mss * window.mss;
                let cwnd = window.cwnd.max(1);
                window.cwnd += self.rest / cwnd;
                self.rest %= cwnd;
            }
            Increase::PerByte { .. } => {
                self.rest += acked_bytes;
                if self.rest >= window.cwnd {
                    self.rest -= window.cwnd;
                    window.cwnd += window.mss;
                }
            }
        }
    }
}

impl Control for NewReno {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if window.in_slow_start() {
            self.slow_start.on_ack(window, ack);
            self.rest = 0;
        } else {
            self.avoid_congestion(window, ack.acked_bytes);
        }
    }

    fn on_congestion(&mut self, window: &mut Window, loss: &Loss) {
        window.ssthresh = (loss.from_bytes / 2).max(window.floor());
        self.slow_start.on_congestion();
        self.rest = 0;
    }

    fn on_timeout(&mut self, window: &mut Window, loss: &Loss) {
        self.on_congestion(window, loss);
    }
}
