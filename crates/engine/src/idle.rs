//! When entries will have been idle for their timeout.
//!
//! A hit only notes its time in the table; it moves no timer. A timer that is over looks whether there was a hit since,
//! and if so starts again for the rest. So a timer runs at most once in a timeout, however many packets there are. An entry
//! that stays idle is named again after each further timeout.

use std::collections::BTreeMap;

/// An entry: its table, and its place in the table's order of insertion, which no other entry will have.
pub(crate) type EntryKey = (u32, u64);

#[derive(Clone, Copy, Debug)]
struct Timer {
    /// The number of the entry.
    entry: u32,
    /// When it is over.
    deadline_ps: u64,
    /// What its timeout counts from, if there was no hit since.
    start_ps: u64,
}

/// The timers of one switch.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdleTimers {
    timers: BTreeMap<EntryKey, Timer>,
    deadlines: BTreeMap<(u64, EntryKey), ()>,
    /// Entries to be named, with their numbers.
    idle: Vec<(EntryKey, u32)>,
}

/// What is known of an entry when its timer is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Activity {
    pub last_hit_ps: u64,
    pub timeout_ns: u64,
}

fn after(start_ps: u64, timeout_ns: u64) -> u64 {
    start_ps.saturating_add(timeout_ns.saturating_mul(1000))
}

impl IdleTimers {
    /// Starts the timer of an entry, or stops it if the timeout is 0.
    pub(crate) fn set(&mut self, key: EntryKey, entry: u32, activity: Activity) {
        if let Some(former) = self.timers.remove(&key) {
            self.deadlines.remove(&(former.deadline_ps, key));
        }
        if activity.timeout_ns != 0 {
            self.start(key, entry, activity.last_hit_ps, activity.timeout_ns);
        }
    }

    fn start(&mut self, key: EntryKey, entry: u32, start_ps: u64, timeout_ns: u64) {
        let deadline_ps = after(start_ps, timeout_ns);
        let timer = Timer {
            entry,
            deadline_ps,
            start_ps,
        };
        self.timers.insert(key, timer);
        self.deadlines.insert((deadline_ps, key), ());
    }

    /// When the next timer is over.
    pub(crate) fn next_ps(&self) -> Option<u64> {
        Some(self.deadlines.first_key_value()?.0.0)
    }

    /// Follows the timers that are over; `activity` is `None` for an entry that is there no longer.
    pub(crate) fn run(
        &mut self,
        now_ps: u64,
        activity: impl Fn(EntryKey, u32) -> Option<Activity>,
    ) {
        while let Some((&(deadline_ps, key), ())) = self.deadlines.first_key_value() {
            if deadline_ps > now_ps {
                return;
            }
            self.deadlines.pop_first();
            let Some(timer) = self.timers.remove(&key) else {
                continue;
            };
            let Some(known) = activity(key, timer.entry).filter(|a| a.timeout_ns != 0) else {
                continue;
            };
            let start_ps = known.last_hit_ps.max(timer.start_ps);
            let idle_ps = after(start_ps, known.timeout_ns);
            if idle_ps > now_ps {
                self.start(key, timer.entry, start_ps, known.timeout_ns);
            } else {
                self.idle.push((key, timer.entry));
                self.start(key, timer.entry, now_ps, known.timeout_ns);
            }
        }
    }

    /// Whether there are entries to be named.
    pub(crate) fn has_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    /// Takes the entries to be named.
    pub(crate) fn take(&mut self) -> Vec<(EntryKey, u32)> {
        std::mem::take(&mut self.idle)
    }
}
