//! The agent of a switch, on either clock: it announces digest lists and idle entries when they are due. `detection` tells it which ports
//! are up.
//!
//! Nobody polls. The switch says when the next list or entry will be due, and an event at that time looks. A controller
//! that is told of one here then reads it from the switch.

use super::{SwitchNode, Timer};
use crate::medium::Medium;
use crate::node::NodeState;
use crate::notification::NotificationEvent;
use crate::switch::has_deadlines;
use engine::Time;

/// The most idle timers that are handled at once in real time, since packets wait meanwhile.
const TIMERS_AT_ONCE: usize = 128;
/// The time, in real time, after which the remaining expired timers are handled, in picoseconds.
const TIMERS_PAUSE_PS: u64 = 1_000_000_000;
/// The shortest time, in real time, between two notifications that entries are idle, in picoseconds: the controller
/// takes many entries at once.
const IDLE_PAUSE_PS: u64 = 25_000_000_000;

impl SwitchNode {
    /// Schedules an event for a switch's agent at the present time, unless one is scheduled already.
    pub(crate) fn wake_agent(&mut self, own: &NodeState, medium: &mut Medium) {
        let now_ps = medium.now_ps();
        if self.wake(now_ps) {
            medium.scheduler.push(now_ps, Timer::Agent.event(own.id));
        }
    }

    /// Handles an event for a switch's agent: adapts the queues to the program, and announces what is due. The event
    /// may be outdated, because another was scheduled for an earlier time.
    pub(super) fn agent_event(&mut self, own: &mut NodeState, medium: &mut Medium) {
        self.refresh_queueing(own, medium);
        let now_ps = medium.now_ps();
        if self.wake_ps.is_some_and(|at_ps| at_ps <= now_ps) {
            self.wake_ps = None;
        }
        // The program may have been replaced.
        self.has_deadlines = has_deadlines(&*self.pipeline);
        if own.up {
            self.run_agent(own, medium);
        }
    }

    /// Records that the agent needs an event at `at_ps`. Returns true if the event must be scheduled: if no earlier one
    /// is.
    fn wake(&mut self, at_ps: Time) -> bool {
        let needed = self.wake_ps.is_none_or(|planned_ps| at_ps < planned_ps);
        if needed {
            self.wake_ps = Some(at_ps);
        }
        needed
    }

    /// Announces digest lists and idle entries that are due to the controller, and schedules an event for the next time
    /// at which one is due. Does nothing while the program has neither.
    pub(super) fn run_agent(&mut self, own: &mut NodeState, medium: &mut Medium) {
        let (now_ps, real_time) = (medium.now_ps(), medium.real_time);
        if !self.has_deadlines {
            return;
        }
        let idle_from_ps = self.idle_from_ps;
        let Some(engine) = self.pipeline.engine_mut() else {
            return;
        };
        engine.set_now_ps(now_ps);
        let runtime = engine.runtime_mut();
        let (most, pause_ps) = match real_time {
            true => (TIMERS_AT_ONCE, TIMERS_PAUSE_PS),
            false => (usize::MAX, 0),
        };
        runtime.run_idle_timers(most);
        let timers_ps = runtime.next_idle_ps();
        let timers_ps = timers_ps.map(|at_ps| at_ps.max(now_ps.saturating_add(pause_ps)));
        let some_idle = runtime.has_unannounced_idle();
        let idle = some_idle && now_ps >= idle_from_ps;
        if idle {
            runtime.announce_idle();
        }
        let due_ps = runtime.digests().unannounced_due_ps();
        let digests = due_ps.is_some_and(|due_ps| due_ps <= now_ps);
        if digests {
            runtime.digests_mut().announce();
        }
        if idle && real_time {
            self.idle_from_ps = now_ps.saturating_add(IDLE_PAUSE_PS);
        }
        // A list that is due and was announced stays so until it is taken; then the agent is woken.
        let later = [
            timers_ps,
            due_ps.filter(|_| !digests),
            (some_idle && !idle).then_some(idle_from_ps),
        ];
        let next_ps = later.into_iter().flatten().min();
        if let Some(next_ps) = next_ps
            && self.wake(next_ps)
        {
            medium.scheduler.push(next_ps, Timer::Agent.event(own.id));
        }
        if digests {
            medium.notify(own, NotificationEvent::Digest);
        }
        if idle {
            medium.notify(own, NotificationEvent::IdleTimeout);
        }
    }
}
