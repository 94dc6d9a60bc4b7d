//! The virtual clock: time jumps from event to event. It reads no clock and starts no thread.
//!
//! A run depends on the network, its seed and the calls made, and on nothing else. It stops at the first instant at which
//! there is something for controllers, after all events of that instant, so that they can act at that time, or later after
//! a reaction time of their own, by running up to it.

use crate::{NetError, Network, Notification};

impl Network {
    /// Runs to `until_ps` (events at that time included) or to the end of the first instant with notifications, whichever
    /// is first. Notifications that are there already, from calls between runs, are returned at once.
    ///
    /// Refused if the time has passed, or if the network has external interfaces.
    pub fn run(&mut self, until_ps: u64) -> Result<Vec<Notification>, NetError> {
        if self.interfaces().next().is_some() {
            return Err(NetError::NeedsWallClock);
        }
        self.check_not_past(until_ps)?;
        while self.notifications.is_empty() || self.has_event_now() {
            // Once there are notifications, only the rest of their instant happens.
            let limit_ps = if self.notifications.is_empty() {
                until_ps
            } else {
                self.now_ps
            };
            if !self.step(limit_ps) {
                break;
            }
        }
        if self.notifications.is_empty() {
            self.now_ps = until_ps;
            self.flush_captures()?;
        }
        Ok(std::mem::take(&mut self.notifications))
    }

    fn has_event_now(&self) -> bool {
        self.events.next_time_ps() == Some(self.now_ps)
    }
}
