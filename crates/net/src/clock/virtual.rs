//! The virtual clock: time jumps from event to event. It reads no clock and starts no thread.
//!
//! A run depends on the network, its seed and the calls made, and on nothing else. It stops at the first instant at which
//! there is something for controllers, after all events of that instant, so that they can act at that time, or later after
//! a reaction time of their own, by running up to it. The notifications for them at one instant come in an order of their own
//! ([`Notification`]).

use crate::{NetError, Network, Notification};
use engine::Time;

impl Network {
    /// Runs the simulation up to `until_ps` (events at that time included) or to the end of the first instant with
    /// notifications for controllers, whichever is earlier. Returns these notifications. Returns at once if earlier
    /// calls have left notifications.
    ///
    /// Fails if `until_ps` is in the past, or if the network has external interfaces, which need the wall clock.
    pub fn run(&mut self, until_ps: Time) -> Result<Vec<Notification>, NetError> {
        if self.interfaces().next().is_some() {
            return Err(NetError::NeedsWallClock);
        }
        self.check_not_past(until_ps)?;
        self.prepare_visits();
        // Once there are notifications, only what is before them happens, and the rest of their instant.
        while self.step_or_visit(until_ps.min(self.first_notification_ps())) {}
        let now_ps = until_ps.min(self.first_notification_ps());
        self.medium.scheduler.now_ps = now_ps;
        let mut taken = std::mem::take(&mut self.medium.notifications);
        self.medium.notifications = taken.extract_if(.., |it| it.time_ps > now_ps).collect();
        taken.sort_by(|a, b| a.order().cmp(&b.order()));
        if taken.is_empty() {
            self.flush_captures()?;
        }
        Ok(taken)
    }
}
