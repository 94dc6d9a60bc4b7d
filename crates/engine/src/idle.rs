//! When entries will have been idle for their timeout.
//!
//! A hit only notes its time in the table; it moves no timer. A timer that is over looks whether there was a hit since,
//! and if so starts again for the rest. So a timer runs at most once in a timeout, however many packets there are. An entry
//! that is idle waits to be taken, once, without a timer; when it is taken, its timer starts again. So what waits is bounded by
//! the entries, however short their timeouts are and however slowly it is taken.

use crate::Time;
use std::collections::{BTreeMap, BTreeSet};

/// The shortest idle timeout of an entry. Timers with shorter ones would take too much time from packets.
pub const MIN_IDLE_TIMEOUT_NS: u64 = 1_000_000;

/// Identifies an entry, even after another program has taken its table over: the P4Runtime id of its table, and its
/// unique place in the table's order of insertion.
pub(crate) type EntryKey = (u32, u64);

/// Whether an entry's timer runs or has ended.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// The timer runs: when it ends, and since when the timeout counts if there was no later hit.
    Timed { deadline_ps: Time, start_ps: Time },
    /// The timer has ended; the entry waits, at this place of the queue, to be reported.
    Idle(u64),
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    /// The number of the entry.
    entry: u32,
    place: Place,
}

/// The timers of the entries of one switch.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdleTimers {
    timers: BTreeMap<EntryKey, Timer>,
    deadlines: BTreeSet<(Time, EntryKey)>,
    /// The entries to be reported, by their place in the queue.
    idle: BTreeMap<u64, EntryKey>,
    /// The place in the queue of the next entry.
    next_place: u64,
    /// True if the controller was told that entries are idle, and has taken none since.
    announced: bool,
}

/// The last hit and the timeout of an entry, from which its timer is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Activity {
    pub last_hit_ps: Time,
    pub timeout_ns: u64,
}

/// Returns the time at which a timeout of `timeout_ns` nanoseconds that began at `start_ps` ends.
fn after(start_ps: Time, timeout_ns: u64) -> Time {
    start_ps.after(u128::from(timeout_ns) * 1000)
}

impl IdleTimers {
    /// Starts the timer of an entry, or stops it if the entry's timeout is 0.
    pub(crate) fn set(&mut self, key: EntryKey, entry: u32, activity: Activity) {
        self.remove(key);
        if activity.timeout_ns != 0 {
            self.start(key, entry, activity.last_hit_ps, activity.timeout_ns);
        }
    }

    /// Forgets an entry: stops its timer, and removes it from the idle entries.
    pub(crate) fn remove(&mut self, key: EntryKey) {
        match self.timers.remove(&key).map(|timer| timer.place) {
            Some(Place::Timed { deadline_ps, .. }) => {
                self.deadlines.remove(&(deadline_ps, key));
            }
            Some(Place::Idle(place)) => {
                self.idle.remove(&place);
                // With the last of them goes what was told.
                self.announced &= self.has_idle();
            }
            None => {}
        }
    }

    fn start(&mut self, key: EntryKey, entry: u32, start_ps: Time, timeout_ns: u64) {
        let deadline_ps = after(start_ps, timeout_ns);
        let place = Place::Timed {
            deadline_ps,
            start_ps,
        };
        self.timers.insert(key, Timer { entry, place });
        self.deadlines.insert((deadline_ps, key));
    }

    /// Adds the timers that `former` has for entries of `tables`, which are given by id, to the present ones.
    pub(crate) fn take_over(&mut self, former: &mut IdleTimers, tables: &BTreeSet<u32>) {
        let mut all = std::mem::take(former);
        let gone = |key: &&EntryKey| !tables.contains(&key.0);
        let gone: Vec<EntryKey> = match all.timers.first_key_value() {
            None => Vec::new(),
            Some(_) if all.tables_with_timers().all(|id| tables.contains(&id)) => Vec::new(),
            Some(_) => all.timers.keys().filter(gone).copied().collect(),
        };
        for key in gone {
            all.remove(key);
        }
        let own = std::mem::replace(self, all);
        for ((table, sequence), timer) in own.timers {
            if let Place::Timed { deadline_ps, .. } = timer.place {
                self.deadlines.insert((deadline_ps, (table, sequence)));
                self.timers.insert((table, sequence), timer);
            }
        }
    }

    /// Returns the ids of the tables whose entries have timers, without looking at every entry.
    fn tables_with_timers(&self) -> impl Iterator<Item = u32> {
        let mut next = Some(0);
        std::iter::from_fn(move || {
            let ((id, _), _) = self.timers.range((next?, 0)..).next()?;
            next = id.checked_add(1);
            Some(*id)
        })
    }

    /// Returns the time at which the next timer expires, or `None` if no timer runs.
    pub(crate) fn next_ps(&self) -> Option<Time> {
        Some(self.deadlines.first()?.0)
    }

    /// Processes at most `most` expired timers. Each one's entry becomes idle or, if it was hit meanwhile, its timer
    /// starts again for the rest of the timeout. `activity` returns `None` for an entry that no longer exists.
    pub(crate) fn run(
        &mut self,
        now_ps: Time,
        most: usize,
        activity: impl Fn(EntryKey, u32) -> Option<Activity>,
    ) {
        for _ in 0..most {
            let Some(&(deadline_ps, key)) = self.deadlines.first() else {
                return;
            };
            if deadline_ps > now_ps {
                return;
            }
            self.deadlines.pop_first();
            let Some(timer) = self.timers.remove(&key) else {
                continue;
            };
            let Place::Timed { start_ps, .. } = timer.place else {
                continue;
            };
            let Some(known) = activity(key, timer.entry).filter(|a| a.timeout_ns != 0) else {
                continue;
            };
            let start_ps = known.last_hit_ps.max(start_ps);
            if after(start_ps, known.timeout_ns) > now_ps {
                self.start(key, timer.entry, start_ps, known.timeout_ns);
            } else {
                let place = Place::Idle(self.next_place);
                self.idle.insert(self.next_place, key);
                self.next_place += 1;
                let entry = timer.entry;
                self.timers.insert(key, Timer { entry, place });
            }
        }
    }

    /// Restarts from `now_ps` all timers that started later than `now_ps`, after the clock was set back. `activity`
    /// returns the last hit and the timeout of the entry with this key and number, or `None` if there is no such entry.
    /// Timers of entries that are gone or have no timeout are removed. Entries that are already reported as idle stay so.
    pub(crate) fn clock_set_back(
        &mut self,
        now_ps: Time,
        activity: impl Fn(EntryKey, u32) -> Option<Activity>,
    ) {
        let is_ahead = |place| matches!(place, Place::Timed { start_ps, .. } if start_ps > now_ps);
        let ahead = self.timers.iter().filter(|(_, t)| is_ahead(t.place));
        let ahead: Vec<_> = ahead.map(|(&key, timer)| (key, timer.entry)).collect();
        for (key, entry) in ahead {
            self.remove(key);
            if let Some(known) = activity(key, entry).filter(|a| a.timeout_ns != 0) {
                self.start(key, entry, now_ps, known.timeout_ns);
            }
        }
    }

    /// Returns true if idle entries wait to be taken.
    pub(crate) fn has_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    /// Returns true if idle entries wait to be taken, and the controller was not told since entries were last taken.
    pub(crate) fn is_unannounced(&self) -> bool {
        self.has_idle() && !self.announced
    }

    /// Records that the controller is being told that idle entries wait.
    pub(crate) fn announce(&mut self) {
        self.announced = true;
    }

    /// Removes at most `most` entries from the idle ones, returns them with their numbers, to be reported to the
    /// controller, and restarts their timers. `activity` returns the last hit and the timeout of the entry with this
    /// key and number, or `None` if there is no such entry; entries that are gone or have no timeout are left out.
    pub(crate) fn take(
        &mut self,
        now_ps: Time,
        most: usize,
        activity: impl Fn(EntryKey, u32) -> Option<Activity>,
    ) -> Vec<(EntryKey, u32)> {
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some((_, key)) = self.idle.pop_first()
        {
            let Some(timer) = self.timers.remove(&key) else {
                continue;
            };
            if let Some(known) = activity(key, timer.entry).filter(|a| a.timeout_ns != 0) {
                taken.push((key, timer.entry));
                self.start(key, timer.entry, now_ps, known.timeout_ns);
            }
        }
        self.announced &= taken.is_empty() && self.has_idle();
        taken
    }
}
