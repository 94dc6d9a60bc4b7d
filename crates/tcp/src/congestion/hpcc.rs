//! HPCC (Li and others, "HPCC: High Precision Congestion Control", SIGCOMM 2019, Algorithm 1): the window follows the load of each link of
//! the path, which switches write into packets (INT) and receivers echo.
//!
//! It does not know how the numbers travel, or what was lost. The names are the algorithm's. As in the authors' simulator, the
//! estimate begins with 1, the first echo of a path is what the next one is compared with, and no window is larger than the first.
//!
//! The sender has whole segments: the congestion window is W rounded up to them, and pacing gives the rate W/T all the same. An echo in
//! which a link's clock did not move tells nothing of that link, whose earlier load stays.

use super::{Ack, Control, Echo, Loss, Silence, Window};
use crate::config::Hpcc as Choices;
use wire::int::PathLoad;

const PS_PER_MICROSECOND: f64 = 1e6;
const PS_PER_SECOND: f64 = 1e12;
/// Half of the range of a hop's clock: a time older than this is an echo that another one overtook.
const HALF_CLOCK_US: u32 = 1 << 23;

/// The state of Algorithm 1.
#[derive(Clone, Debug)]
pub(crate) struct Hpcc {
    choices: Choices,
    /// T, the round trip of an empty network, in picoseconds.
    base_rtt: f64,
    /// B * T, the first window, in bytes.
    w_init: f64,
    /// W, the window.
    w: f64,
    /// W^c, from which the window is computed for a round trip.
    w_c: f64,
    /// U, the averaged utilisation of the path's most loaded link.
    u: f64,
    inc_stage: u32,
    /// W^c is updated by the next acknowledgment above this number.
    last_update_seq: u64,
    /// L, the loads of the path's links in the last echo.
    links: Option<PathLoad>,
}

impl Hpcc {
    pub(crate) fn new(choices: Choices) -> Hpcc {
        let base_rtt = choices.base_rtt_ps as f64;
        let w_init = choices.rate_bps as f64 / 8.0 * base_rtt / PS_PER_SECOND;
        Hpcc {
            choices,
            base_rtt,
            w_init,
            w: w_init,
            w_c: w_init,
            u: 1.0,
            inc_stage: 0,
            last_update_seq: 0,
            links: None,
        }
    }

    /// Computes U, the average utilisation of the most loaded link, from the loads that an acknowledgment echoed
    /// (MeasureInflight of the paper), and stores the loads for the next call. Returns `None` if there are no earlier
    /// loads of the same path for comparison, no link's utilisation can be computed, or a later echo has arrived before
    /// this one.
    fn measure_inflight(&mut self, load: &PathLoad) -> Option<f64> {
        let before = self
            .links
            .filter(|known| known.path == load.path && known.hops().len() == load.hops().len());
        let Some(before) = before else {
            self.links = Some(*load);
            return None;
        };
        let mut remembered = before.hops().to_vec();
        let mut largest: Option<(f64, f64)> = None;
        for (place, &link) in remembered.iter_mut().zip(load.hops()) {
            let earlier = std::mem::replace(place, link);
            let microseconds = link.microseconds_since(earlier);
            if microseconds == 0 {
                *place = earlier;
                continue;
            }
            if microseconds >= HALF_CLOCK_US {
                return None;
            }
            let Some(rate_bps) = link.rate_bps() else {
                continue;
            };
            let rate = rate_bps as f64 / 8.0 / PS_PER_SECOND;
            let tau = f64::from(microseconds) * PS_PER_MICROSECOND;
            let queue = link.queue_bytes().min(earlier.queue_bytes());
            let tx_rate = f64::from(link.bytes_since(earlier)) / tau;
            let u = f64::from(queue) / (rate * self.base_rtt) + tx_rate / rate;
            if largest.is_none_or(|(largest, _)| u > largest) {
                largest = Some((u, tau));
            }
        }
        self.links = PathLoad::new(load.path, &remembered).ok();
        let (u, tau) = largest?;
        let share = tau.min(self.base_rtt) / self.base_rtt;
        self.u = (1.0 - share) * self.u + share * u;
        Some(self.u)
    }

    /// Computes the window W from the utilisation U (ComputeWind of the paper). If `updates` is true, W also becomes
    /// the reference window W_c.
    fn compute_wind(&mut self, u: f64, updates: bool) {
        let eta = f64::from(self.choices.eta_permille) / 1000.0;
        let ai = self.choices.ai_bytes as f64;
        let (w, stage) = if u >= eta || self.inc_stage >= self.choices.max_stage {
            (self.w_c / (u / eta) + ai, 0)
        } else {
            (self.w_c + ai, self.inc_stage + 1)
        };
        self.w = w.min(self.w_init);
        if updates {
            self.inc_stage = stage;
            self.w_c = self.w;
        }
    }

    /// Returns the congestion window in bytes: W, rounded up to whole segments.
    fn cwnd(&self, mss: u64) -> u64 {
        (self.w.ceil() as u64).div_ceil(mss).max(1) * mss
    }
}

impl Control for Hpcc {
    fn on_ack(&mut self, _window: &mut Window, _ack: &Ack) {}

    /// Ignores losses, since the echoed loads already describe congestion better.
    fn on_congestion(&mut self, _window: &mut Window, _loss: &Loss) {}

    fn on_timeout(&mut self, _window: &mut Window, _loss: &Loss) {}

    fn has_model(&self) -> bool {
        true
    }

    fn initial_window(&self, mss: u64) -> Option<u64> {
        Some(self.cwnd(mss))
    }

    /// Forgets the earlier loads after an idle time of at least the base round-trip time. The next echo then counts as
    /// the first of its path; compared with the earlier loads, it would yield an average over the idle time, or
    /// nonsense if the nodes' clocks have wrapped.
    fn on_silence(&mut self, silence: &Silence) {
        if silence.idle_ps >= self.choices.base_rtt_ps {
            self.links = None;
        }
    }

    /// Sets the window from the link loads that an acknowledgment echoed (NewAck of the paper); leaves it if they give
    /// no utilisation.
    fn on_echo(&mut self, window: &mut Window, echo: &Echo<'_>) {
        let Some(u) = self.measure_inflight(echo.load) else {
            return;
        };
        let updates = echo.ack > self.last_update_seq;
        self.compute_wind(u, updates);
        if updates {
            self.last_update_seq = echo.next;
        }
        window.cwnd = self.cwnd(window.mss);
    }

    /// Returns the pacing rate R = W / T, in bytes per second.
    fn pacing_rate(&self) -> Option<u64> {
        Some(((self.w / self.base_rtt * PS_PER_SECOND) as u64).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::int::Hop;

    /// Creates the control for 1 Gb/s (code 3) and a base round-trip time of 100 microseconds, so that W_init is
    /// 12,500 bytes. Links report bytes sent in units of 128, and queues in units of 64.
    fn hpcc() -> (Hpcc, Window) {
        let choices = Choices {
            rate_bps: 1_000_000_000,
            base_rtt_ps: 100_000_000,
            ai_bytes: 80,
            eta_permille: 950,
            max_stage: 5,
        };
        let hpcc = Hpcc::new(choices);
        let window = Window {
            cwnd: hpcc.initial_window(1000).unwrap(),
            ssthresh: u64::MAX,
            mss: 1000,
        };
        (hpcc, window)
    }

    fn path(hops: &[(u32, u32, u16)]) -> PathLoad {
        let hops: Vec<Hop> = hops
            .iter()
            .map(|&(time, sent, queue)| Hop::new(3, time, sent, queue))
            .collect();
        PathLoad::new(7, &hops).unwrap()
    }

    fn echo(hpcc: &mut Hpcc, window: &mut Window, ack: u64, next: u64, hops: &[(u32, u32, u16)]) {
        let load = &path(hops);
        hpcc.on_echo(window, &Echo { ack, next, load });
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-6 * b.abs().max(1.0), "{a} is not {b}");
    }

    #[test]
    fn the_first_window_is_the_product_of_rate_and_delay_in_whole_segments() {
        let (mut hpcc, mut window) = hpcc();
        close(hpcc.w, 12_500.0);
        assert_eq!(window.cwnd, 13_000);
        assert_eq!(hpcc.pacing_rate(), Some(125_000_000));
        // The first echo is only remembered.
        echo(&mut hpcc, &mut window, 1000, 14_000, &[(0, 0, 100)]);
        close(hpcc.w, 12_500.0);
        assert_eq!(hpcc.inc_stage, 0);
    }

    #[test]
    fn a_full_link_with_a_queue_divides_the_window() {
        let (mut hpcc, mut window) = hpcc();
        echo(&mut hpcc, &mut window, 1000, 14_000, &[(0, 0, 100)]);
        // 50 microseconds later, 49 * 128 = 6272 bytes of 6250 at line rate: 1.00352; of the queues 6400 and 12,800 bytes the
        // smaller one, 6400 / 12,500 = 0.512. u = 1.51552 for half of T: U = 0.5 * 1 + 0.5 * 1.51552 = 1.25776.
        echo(&mut hpcc, &mut window, 2000, 15_000, &[(50, 49, 200)]);
        close(hpcc.u, 1.257_76);
        // W = 12,500 / (1.25776 / 0.95) + 80 = 9521.386...
        let w = 12_500.0 / (1.257_76 / 0.95) + 80.0;
        close(hpcc.w, w);
        close(hpcc.w_c, w);
        assert_eq!((hpcc.last_update_seq, window.cwnd), (15_000, 10_000));
        assert_eq!(hpcc.pacing_rate(), Some((w / 100e-6) as u64));
    }

    #[test]
    fn within_a_round_trip_windows_are_computed_from_the_same_reference() {
        let (mut hpcc, mut window) = hpcc();
        echo(&mut hpcc, &mut window, 1000, 14_000, &[(0, 0, 0)]);
        // 98 units in 100 microseconds: 12,544 bytes of 12,500, and no queue at the earlier time: U is 1.00352 alone.
        echo(&mut hpcc, &mut window, 2000, 15_000, &[(100, 98, 50)]);
        let reference = 12_500.0 / (1.003_52 / 0.95) + 80.0;
        close(hpcc.w_c, reference);
        // 3200 bytes waited both times: 0.256 more. From the same W^c, for this acknowledgment is not beyond 15,000.
        echo(&mut hpcc, &mut window, 3000, 16_000, &[(200, 196, 50)]);
        close(hpcc.u, 1.259_52);
        close(hpcc.w, reference / (1.259_52 / 0.95) + 80.0);
        close(hpcc.w_c, reference);
        assert_eq!(hpcc.last_update_seq, 15_000);
        // Nor is one that acknowledges 15,000 itself.
        echo(&mut hpcc, &mut window, 15_000, 17_000, &[(300, 294, 0)]);
        close(hpcc.w, reference / (1.003_52 / 0.95) + 80.0);
        close(hpcc.w_c, reference);
        echo(&mut hpcc, &mut window, 15_001, 18_000, &[(400, 392, 0)]);
        close(hpcc.w_c, reference / (1.003_52 / 0.95) + 80.0);
        assert_eq!(hpcc.last_update_seq, 18_000);
    }

    #[test]
    fn below_eta_it_adds_for_five_round_trips_and_then_multiplies() {
        let (mut hpcc, mut window) = hpcc();
        hpcc.w_c = 2000.0;
        echo(&mut hpcc, &mut window, 1000, 2000, &[(0, 0, 0)]);
        // 49 units in 100 microseconds: 6272 / 12,500 = 0.50176 of the link, for all of T each time.
        let mut expected = 2000.0;
        for round in 1..=5u32 {
            let at = u64::from(round) * 2000;
            echo(
                &mut hpcc,
                &mut window,
                at + 1,
                at + 2000,
                &[(100 * round, 49 * round, 0)],
            );
            expected += 80.0;
            close(hpcc.w_c, expected);
            assert_eq!(hpcc.inc_stage, round);
        }
        echo(&mut hpcc, &mut window, 12_001, 14_000, &[(600, 49 * 6, 0)]);
        expected = expected / (0.501_76 / 0.95) + 80.0;
        close(hpcc.w_c, expected);
        assert_eq!(hpcc.inc_stage, 0);
    }

    #[test]
    fn the_most_loaded_link_decides_with_its_own_interval() {
        let (mut hpcc, mut window) = hpcc();
        echo(
            &mut hpcc,
            &mut window,
            1000,
            14_000,
            &[(0, 0, 0), (1000, 500, 20)],
        );
        // 0.50176 of the one; of the other 1.00352 and 1280 / 12,500 = 0.1024, over 25 microseconds.
        echo(
            &mut hpcc,
            &mut window,
            2000,
            15_000,
            &[(100, 49, 0), (1025, 524, 20)],
        );
        let u = 24.0 * 128.0 / 3125.0 + 0.1024;
        close(hpcc.u, 0.75 + 0.25 * u);
    }

    #[test]
    fn an_interval_longer_than_t_counts_as_t() {
        let (mut hpcc, mut window) = hpcc();
        echo(&mut hpcc, &mut window, 1000, 14_000, &[(0, 0, 0)]);
        echo(&mut hpcc, &mut window, 2000, 15_000, &[(1000, 490, 0)]);
        close(hpcc.u, 0.501_76);
    }

    #[test]
    fn other_paths_old_echoes_and_still_clocks_are_no_measurements() {
        let (mut hpcc, mut window) = hpcc();
        echo(&mut hpcc, &mut window, 1000, 14_000, &[(100, 0, 100)]);
        let old = &path(&[(50, 0, 100)]);
        let other = &PathLoad::new(8, &[Hop::new(3, 500, 0, 100)]).unwrap();
        let longer = &path(&[(500, 0, 100), (500, 0, 100)]);
        for load in [old, other, longer] {
            let mut hpcc = hpcc.clone();
            hpcc.on_echo(
                &mut window,
                &Echo {
                    ack: 2000,
                    next: 15_000,
                    load,
                },
            );
            close(hpcc.w, 12_500.0);
            close(hpcc.u, 1.0);
            assert_eq!(hpcc.last_update_seq, 0);
        }
        // The same microsecond: the load before it stays, so that nothing sent is missed.
        echo(&mut hpcc, &mut window, 2000, 15_000, &[(100, 9, 100)]);
        close(hpcc.u, 1.0);
        echo(&mut hpcc, &mut window, 3000, 16_000, &[(200, 98, 0)]);
        close(hpcc.u, 1.003_52);
        // A node that does not know its link's rate.
        let unknown = &PathLoad::new(7, &[Hop::from_bits(u64::MAX)]).unwrap();
        hpcc.on_echo(
            &mut window,
            &Echo {
                ack: 4000,
                next: 17_000,
                load: unknown,
            },
        );
        close(hpcc.u, 1.003_52);
    }

    #[test]
    fn windows_stay_between_the_increment_and_the_first() {
        let (mut hpcc, mut window) = hpcc();
        echo(&mut hpcc, &mut window, 1000, 14_000, &[(0, 0, 0)]);
        for round in 1..100u32 {
            let at = u64::from(round) * 20_000;
            echo(
                &mut hpcc,
                &mut window,
                at,
                at,
                &[(100 * round, 98 * round, 60_000)],
            );
        }
        assert!(hpcc.w >= 80.0 && hpcc.w < 100.0, "{}", hpcc.w);
        assert_eq!(window.cwnd, 1000);
        for round in 100..300u32 {
            let at = u64::from(round) * 20_000;
            echo(
                &mut hpcc,
                &mut window,
                at,
                at,
                &[(100 * round, 98 * 100, 0)],
            );
        }
        close(hpcc.w, 12_500.0);
    }
}
