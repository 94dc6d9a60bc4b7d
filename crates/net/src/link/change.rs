//! Other parameters of a direction, while packets wait and are under way. It does not know when they change (`network::failures` does).
//!
//! The packet that is being sent goes on at the rate with which it began, also one that begins at the very instant of the change; those
//! that wait are sent at the new rate, one after the other, and no queue loses any. Packets whose transmission has begun keep their delay.
//! Without jitter, packets arrive in the order in which they were sent, also across a change: one that would overtake those under way
//! arrives right with the last of them. With jitter, one may overtake, as always.
//!
//! Loss and jitter of a packet are drawn when the queue takes it, so other models of them count for packets that come afterwards. They
//! begin at their beginning, and the direction's random streams go on.

use super::{Direction, Disturbance, Jitter, Loss};
use crate::failure::Change;
use crate::serialisation::serialisation_ps;
use engine::Time;

impl Direction {
    /// Returns the number of packets that wait at `now_ps` and are not going to be lost on the way.
    pub(crate) fn waiting_to_arrive(&mut self, now_ps: Time) -> usize {
        self.settle(now_ps);
        self.waiting.iter().filter(|packet| !packet.lost).count()
    }

    /// Changes silent loss, rate, delay, loss and jitter at `now_ps`. `last_ps` is the time at which the last packet
    /// that stays where it is in time arrives, if there is one. Returns the times at which the packets of
    /// [`Direction::waiting_to_arrive`] arrive now, in the order in which they are sent, if the change moves them.
    pub(crate) fn change(
        &mut self,
        now_ps: Time,
        change: &Change,
        last_ps: Option<Time>,
        seed: u64,
    ) -> Vec<Time> {
        if let Some(rate_bps) = change.rate_bps {
            let idle_since_ps = (self.busy_until_ps <= now_ps).then_some(self.busy_until_ps);
            self.gate.change_rate(now_ps, idle_since_ps, rate_bps);
            self.rate_bps = rate_bps;
            self.size_changed(0);
        }
        let config = &mut *self.config;
        config.rate_bps = change.rate_bps.unwrap_or(config.rate_bps);
        config.delay_ps = change.delay_ms.map_or(config.delay_ps, |delay| delay.0);
        self.delay_ps = config.delay_ps;
        let disturbance = self.disturbance.get_or_insert_with(|| {
            // Its streams are where they would be if it had been there from the beginning: nothing was drawn.
            Disturbance::new(Loss::None, Jitter::None, seed, &self.name)
        });
        disturbance.silent = change.silent.unwrap_or(disturbance.silent);
        if let Some(loss) = &change.loss {
            config.loss = loss.clone();
            disturbance.loss.follow(loss);
        }
        if let Some(jitter) = &change.jitter {
            config.jitter = jitter.clone();
            disturbance.jitter.follow(jitter);
        }
        disturbance.not_before_ps = last_ps.unwrap_or_default();
        if !change.moves_arrivals() {
            return Vec::new();
        }
        // The first of those that wait begins when the one before it has been sent, at the old rate.
        let mut start_ps = (self.waiting.front()).map_or(self.busy_until_ps, |it| it.start_ps);
        let mut arrivals_ps = Vec::new();
        for packet in &mut self.waiting {
            packet.start_ps = start_ps;
            start_ps += serialisation_ps(packet.frame_bytes as usize, self.rate_bps);
            if !packet.lost {
                let at_ps = disturbance.arrival_ps(start_ps, self.delay_ps, packet.jitter_ps);
                disturbance.not_before_ps = disturbance.not_before_ps.max(at_ps);
                arrivals_ps.push(at_ps);
            }
        }
        self.busy_until_ps = start_ps;
        arrivals_ps
    }
}
