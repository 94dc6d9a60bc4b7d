//! The wall clock: the same event loop, in real time, in a thread of its own. It does not know sockets; frames of external
//! interfaces go through [`FrameIo`].
//!
//! # Precision
//!
//! Events happen when the clock ([`Instant`]) has passed their time, and what they cause is computed from their time, not
//! from the moment they were processed, so lateness does not add up along a path. A sleeping thread wakes up late by tens
//! of microseconds, so the loop sleeps only until [`SPIN`] before the next event and then polls, without sleeping, until the
//! event is due: link delays are right to a few microseconds as long as the processor keeps up and the thread is not
//! descheduled. The price is processor time, up to all of one core if there is always an event within the next [`SPIN`].
//! [`WallStatistics`] tells how late events were.
//!
//! A frame from outside has the time at which it is read. If the thread is held up for milliseconds (a busy machine), what
//! came in meanwhile enters its link as one burst, and may overflow a queue that it would otherwise have passed: judge losses
//! of live runs together with the lateness.
//!
//! # Order
//!
//! The network's time never runs ahead of an event that is still to happen. Overdue events come before frames and commands;
//! but so that these are not starved, they get their turn after at most [`BURST`] events, and are then given the network's
//! time, which is behind the real one. An overloaded network is late, but consistent.
//!
//! # Ports without links
//!
//! Frames of interfaces that are ports of a switch ([`Network::attach_interface`]) are no events. The frames that [`FrameIo::wait`] hands
//! over at once is a burst: it goes through the switch at one time and out of other interfaces, and then comes everybody else.
//!
//! # Control
//!
//! Another thread controls the network with closures ([`WallClock::call`]), which run between events: the changes of one closure
//! are atomic for packets. Long work is done in steps ([`WallClock::call_in_steps`]), with packets between them.
#![expect(
    clippy::disallowed_methods,
    reason = "this is the wall clock, and its thread"
)]

pub use crate::interface::SendOutcome;
use engine::Time;

use crate::notification::NotificationEvent;
use crate::{NetError, Network, Notification};
use cpu_time::ThreadTime;
use serde::Serialize;
use std::any::Any;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// The time before an event at which the loop stops sleeping.
pub const SPIN: Duration = Duration::from_micros(100);
/// Most events that run before commands and external frames have their turn.
pub const BURST: usize = 64;
/// Most notifications that wait to be polled; later ones are lost, and counted.
pub const MAX_NOTIFICATIONS: usize = 1 << 16;
/// The longest sleep if nothing can wake the loop, and so the longest that a command waits then.
const UNWAKEABLE_SLEEP: Duration = Duration::from_millis(1);
/// The longest sleep if the loop can be woken.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// Most commands that run before events have their turn.
const COMMAND_BURST: usize = 64;

const PS_PER_NS: u64 = 1000;

/// Ends a [`FrameIo::wait`], from any thread; a wake-up while nobody waits ends the next wait at once.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// Sends frames to external interfaces and receives frames from them; they are known by the numbers of [`Network::interfaces`].
pub trait FrameIo: Any {
    /// Sends a frame out of an external interface, or queues it so that the next call of `wait` sends it. Returns
    /// whether the interface accepted it.
    fn send(&mut self, interface: usize, frame: &[u8]) -> SendOutcome;

    /// Waits until a frame arrives, the waker is called or `timeout` is over (zero: does not wait). Passes each frame
    /// that has arrived to `rx`, with the number of its interface. An implementation should return soon rather than
    /// read frames as long as there are any.
    fn wait(&mut self, timeout: Duration, rx: &mut dyn FnMut(usize, &[u8]));

    /// Calls `tell` for each interface that went down (false) or came up (true) since the last call. May repeat a state
    /// that is known already. New interfaces count as up.
    fn take_changes(&mut self, tell: &mut dyn FnMut(usize, bool)) {
        let _ = tell;
    }

    /// Returns the waker that ends a wait early. If there is none (`None`), the loop never waits longer than a
    /// millisecond.
    fn waker(&self) -> Option<Waker> {
        None
    }
}

/// Has no external interfaces: for a network of modelled hosts in real time.
#[derive(Clone, Debug, Default)]
pub struct NoInterfaces {
    woken: Arc<(Mutex<bool>, Condvar)>,
}

impl FrameIo for NoInterfaces {
    fn send(&mut self, _: usize, _: &[u8]) -> SendOutcome {
        SendOutcome::Dropped
    }

    fn wait(&mut self, timeout: Duration, _: &mut dyn FnMut(usize, &[u8])) {
        if timeout.is_zero() {
            std::hint::spin_loop();
            return;
        }
        let (woken, condition) = &*self.woken;
        let waited = condition.wait_timeout_while(locked(woken), timeout, |woken| !*woken);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }

    fn waker(&self) -> Option<Waker> {
        let shared = Arc::clone(&self.woken);
        Some(Arc::new(move || {
            let (woken, condition) = &*shared;
            *locked(woken) = true;
            condition.notify_one();
        }))
    }
}

/// The lateness and the load of the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WallStatistics {
    /// Events that happened.
    pub events: u64,
    /// The largest lateness of an event.
    pub max_lateness_ps: u64,
    /// Sum of the lateness of all events; divided by `events`, the mean.
    pub total_lateness_ps: u64,
    /// Frames that came from external interfaces.
    pub frames_in: u64,
    /// Frames that went to external interfaces.
    pub frames_out: u64,
    /// The longest time for which a closure, or one of its steps, held up events and frames.
    pub max_command_ps: u64,
    /// The most processor time that a closure, or a step of one, took: the most that control costs packets, whatever else the
    /// machine does meanwhile.
    pub max_command_cpu_ps: u64,
    /// Notifications lost because too many waited to be polled.
    pub notifications_lost: u64,
}

/// Converts between real time and the network's time.
#[derive(Clone, Copy, Debug)]
struct RealTime {
    start: Instant,
    /// The network's time at the start.
    start_ps: Time,
}

impl RealTime {
    fn now_ps(&self) -> Time {
        self.start_ps
            .after(self.start.elapsed().as_nanos() * u128::from(PS_PER_NS))
    }
}

/// A closure that another thread wants to run on the network.
type Run = Box<dyn FnOnce(&mut Network, &mut dyn FrameIo) + Send>;

/// A closure that another thread wants to run repeatedly; returns true when it is done.
type Step = Box<dyn FnMut(&mut Network) -> bool + Send>;

enum Command {
    Run(Run),
    Steps(Step),
    Stop,
}

/// The state that both threads see.
#[derive(Default)]
struct Shared {
    notifications: Mutex<VecDeque<Notification>>,
    notified: Condvar,
    statistics: Mutex<WallStatistics>,
}

/// Locks a mutex, even if a thread panicked while it held the lock: no code leaves the data inconsistent under these
/// locks.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A network that runs in real time, in a thread of its own. Dropping it stops the thread.
pub struct WallClock {
    commands: Sender<Command>,
    waker: Option<Waker>,
    shared: Arc<Shared>,
    time: RealTime,
    thread: Option<JoinHandle<Network>>,
}

impl WallClock {
    /// Starts a thread that runs the network in real time, from the network's present time on. `io` must know the
    /// network's external interfaces by the same numbers. Fails if the thread cannot be started.
    pub fn start(mut network: Network, io: Box<dyn FrameIo + Send>) -> Result<WallClock, NetError> {
        let time = RealTime {
            start: Instant::now(),
            start_ps: network.now_ps(),
        };
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        network.medium.epoch_ns = since_epoch
            .map_or(0, |time| time.as_nanos() as u64)
            .saturating_sub(time.start_ps.ns());
        network.set_real_time(true);
        // Random in each process: hosts of a live network are not ours.
        network.redraw_discriminators(RandomState::new().hash_one(0));
        let (commands, receiver) = mpsc::channel();
        let shared = Arc::new(Shared::default());
        let waker = io.waker();
        let mut event_loop = EventLoop {
            network,
            io,
            commands: receiver,
            steps: VecDeque::new(),
            shared: Arc::clone(&shared),
            time,
            longest_sleep: if waker.is_some() {
                LONGEST_SLEEP
            } else {
                UNWAKEABLE_SLEEP
            },
            statistics: WallStatistics::default(),
        };
        let thread = std::thread::Builder::new()
            .name("holdfast-net".to_owned())
            .spawn(move || {
                event_loop.run();
                event_loop.network.set_real_time(false);
                event_loop.network
            })
            .map_err(|error| NetError::Io(format!("cannot start a thread: {error}")))?;
        Ok(WallClock {
            commands,
            waker,
            shared,
            time,
            thread: Some(thread),
        })
    }

    /// Returns the present time in the network, which passes as fast as real time.
    pub fn now_ps(&self) -> Time {
        self.time.now_ps()
    }

    /// Runs a closure on the network between two events, waits for it, and returns its result. Fails if the network's
    /// thread has ended.
    pub fn call<R: Send + 'static>(
        &self,
        run: impl FnOnce(&mut Network) -> R + Send + 'static,
    ) -> Result<R, NetError> {
        self.call_with_io(|network, _| run(network))
    }

    /// Runs a closure on the network and its frame input and output between two events, like [`Self::call`], to add or
    /// remove interfaces. Fails if the network's thread has ended.
    pub fn call_with_io<R: Send + 'static>(
        &self,
        run: impl FnOnce(&mut Network, &mut dyn FrameIo) -> R + Send + 'static,
    ) -> Result<R, NetError> {
        let (answer, result) = mpsc::sync_channel(1);
        self.post_command(Command::Run(Box::new(move |network, io| {
            // The caller waits, so this fails only if the caller's thread died.
            let _ = answer.send(run(network, io));
        })))?;
        result.recv().map_err(|_| gone())
    }

    /// Runs a closure on the network repeatedly until it returns `Some`, and returns that value. Between its runs, due
    /// events, frames and other closures are handled. Fails if the network's thread has ended.
    pub fn call_in_steps<R: Send + 'static>(
        &self,
        mut step: impl FnMut(&mut Network) -> Option<R> + Send + 'static,
    ) -> Result<R, NetError> {
        let (answer, result) = mpsc::sync_channel(1);
        self.post_command(Command::Steps(Box::new(move |network| {
            let done = step(network);
            let is_done = done.is_some();
            // The caller waits, so this fails only if the caller's thread died.
            let _ = done.map(|done| answer.send(done));
            is_done
        })))?;
        result.recv().map_err(|_| gone())
    }

    /// Queues a closure to be run on the network between two events, and does not wait for it. Closures run in the
    /// order in which they were queued. Fails if the network's thread has ended.
    pub fn post(&self, run: impl FnOnce(&mut Network) + Send + 'static) -> Result<(), NetError> {
        self.post_command(Command::Run(Box::new(|network, _| run(network))))
    }

    fn post_command(&self, command: Command) -> Result<(), NetError> {
        self.commands.send(command).map_err(|_| gone())?;
        self.wake();
        Ok(())
    }

    fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker();
        }
    }

    /// Returns and removes the notifications that have gathered since the last call. If there are none, waits up to
    /// `timeout` for the first.
    pub fn poll(&self, timeout: Duration) -> Vec<Notification> {
        let waiting = locked(&self.shared.notifications);
        let waited = self
            .shared
            .notified
            .wait_timeout_while(waiting, timeout, |notifications| notifications.is_empty());
        let mut notifications = waited.unwrap_or_else(PoisonError::into_inner).0;
        notifications.drain(..).collect()
    }

    /// Returns how late events were and how busy the loop was since the start.
    pub fn statistics(&self) -> WallStatistics {
        *locked(&self.shared.statistics)
    }

    /// Stops the thread, and returns the network in its present state with the loop's statistics. Notifications that
    /// were not polled are lost. Captures are complete; [`Network::flush_captures`] reports whether one failed.
    pub fn stop(mut self) -> Result<(Network, WallStatistics), NetError> {
        let network = self.join()?;
        Ok((network, self.statistics()))
    }

    fn join(&mut self) -> Result<Network, NetError> {
        let Some(thread) = self.thread.take() else {
            return Err(gone());
        };
        // It fails if the thread is gone already; joining tells why.
        let _ = self.commands.send(Command::Stop);
        self.wake();
        thread.join().map_err(|panic| {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied());
            NetError::Stopped(text.unwrap_or("its thread panicked").to_owned())
        })
    }
}

impl Drop for WallClock {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = self.join();
    }
}

fn gone() -> NetError {
    NetError::Stopped("its thread has ended".to_owned())
}

/// The real and processor times at which a command began.
struct Begin {
    wall: Instant,
    cpu: ThreadTime,
}

impl Begin {
    fn now() -> Begin {
        Begin {
            wall: Instant::now(),
            cpu: ThreadTime::now(),
        }
    }
}

fn picoseconds(duration: Duration) -> u64 {
    duration.as_nanos() as u64 * PS_PER_NS
}

/// What the loop does after running commands.
enum AfterCommands {
    /// Stop the loop.
    Stop,
    /// There may be more commands, whose wake-up was consumed: do not sleep.
    GoOn,
    /// There are no more.
    Sleep,
}

/// The state of the network's thread.
struct EventLoop {
    network: Network,
    io: Box<dyn FrameIo + Send>,
    commands: Receiver<Command>,
    /// Closures that are run in steps, the next one first.
    steps: VecDeque<Step>,
    shared: Arc<Shared>,
    time: RealTime,
    longest_sleep: Duration,
    statistics: WallStatistics,
}

impl EventLoop {
    fn run(&mut self) {
        loop {
            self.run_due_events();
            let after = self.run_commands();
            self.send_outbound();
            self.publish();
            // Whoever looks at a capture or a log of a running network sees what has happened.
            if self.network.medium.observers.is_active() {
                self.network.medium.observers.flush();
            }
            match after {
                AfterCommands::Stop => break,
                AfterCommands::GoOn => self.wait(Duration::ZERO),
                AfterCommands::Sleep => self.wait(self.longest_sleep),
            }
        }
        // Frames that `io` has queued leave, those that came in last do not: the network has stopped.
        self.io.wait(Duration::ZERO, &mut |_, _| {});
        self.network.medium.observers.flush();
    }

    fn run_due_events(&mut self) {
        run_due_events(&mut self.network, &self.time, &mut self.statistics);
        self.send_outbound();
    }

    /// Runs the waiting commands, and one step of a closure that is run in steps. Returns whether the loop must stop,
    /// go on at once, or may wait.
    fn run_commands(&mut self) -> AfterCommands {
        let after = self.take_commands();
        let Some(mut step) = self.steps.pop_front() else {
            return after;
        };
        let begin = Begin::now();
        if !step(&mut self.network) {
            self.steps.push_back(step);
        }
        self.count_command(begin);
        match after {
            AfterCommands::Sleep if !self.steps.is_empty() => AfterCommands::GoOn,
            after => after,
        }
    }

    fn count_command(&mut self, begin: Begin) {
        let found = &mut self.statistics;
        found.max_command_ps = found.max_command_ps.max(picoseconds(begin.wall.elapsed()));
        let cpu_ps = picoseconds(begin.cpu.elapsed());
        found.max_command_cpu_ps = found.max_command_cpu_ps.max(cpu_ps);
    }

    fn take_commands(&mut self) -> AfterCommands {
        for _ in 0..COMMAND_BURST {
            match self.commands.try_recv() {
                Ok(Command::Run(run)) => {
                    let begin = Begin::now();
                    run(&mut self.network, &mut *self.io);
                    self.count_command(begin);
                }
                Ok(Command::Steps(step)) => self.steps.push_back(step),
                Ok(Command::Stop) | Err(TryRecvError::Disconnected) => {
                    return AfterCommands::Stop;
                }
                Err(TryRecvError::Empty) => return AfterCommands::Sleep,
            }
        }
        AfterCommands::GoOn
    }

    fn send_outbound(&mut self) {
        let mut outbound = std::mem::take(&mut self.network.medium.outbound);
        for (interface, packet) in outbound.drain(..) {
            self.statistics.frames_out += 1;
            let outcome = self.io.send(interface, &packet.bytes());
            self.network.interface_sent(interface, outcome);
            self.network.interfaces.arrivals.recycle(packet);
        }
        self.network.medium.outbound = outbound;
    }

    fn publish(&mut self) {
        if !self.network.medium.notifications.is_empty() {
            let mut waiting = locked(&self.shared.notifications);
            for notification in self.network.medium.notifications.drain(..) {
                // A notification that is made once, until it is heeded, is never lost.
                let once = matches!(
                    notification.event,
                    NotificationEvent::Digest | NotificationEvent::IdleTimeout
                );
                if once || waiting.len() < MAX_NOTIFICATIONS {
                    waiting.push_back(notification);
                } else {
                    self.statistics.notifications_lost += 1;
                }
            }
            self.shared.notified.notify_all();
        }
        *locked(&self.shared.statistics) = self.statistics;
    }

    /// Waits for frames and interface changes until [`SPIN`] before the next event, at most for `longest`, and handles
    /// those that arrive.
    fn wait(&mut self, longest: Duration) {
        let timeout = match self.network.medium.scheduler.next_time_ps() {
            None => longest,
            Some(next_ps) => {
                let ahead_ps = next_ps.saturating_sub(self.time.now_ps());
                let ahead = Duration::from_nanos(ahead_ps / PS_PER_NS);
                ahead.saturating_sub(SPIN).min(longest)
            }
        };
        let (network, time, statistics) = (&mut self.network, &self.time, &mut self.statistics);
        self.io.wait(timeout, &mut |interface, frame| {
            // Events that became due while we waited come before the frame; for a switch's ports, before the burst.
            if !network.is_switch_port(interface) {
                run_due_events(network, time, statistics);
            }
            statistics.frames_in += 1;
            network.receive_external(interface, frame);
        });
        self.io
            .take_changes(&mut |interface, up| network.interface_changed(interface, up));
        if network.has_arrivals() {
            run_due_events(network, time, statistics);
            network.run_arrivals();
            self.send_outbound();
        }
    }
}

/// Runs overdue events, at most [`BURST`], and records their lateness. If none is left, sets the network's time to real
/// time; otherwise its time is that of the last event run.
fn run_due_events(network: &mut Network, time: &RealTime, statistics: &mut WallStatistics) {
    for _ in 0..BURST {
        let now_ps = time.now_ps();
        if !network.step(now_ps) {
            let scheduler = &mut network.medium.scheduler;
            scheduler.now_ps = now_ps.max(scheduler.now_ps);
            return;
        }
        let lateness_ps = now_ps.saturating_sub(network.now_ps());
        statistics.events += 1;
        statistics.total_lateness_ps += lateness_ps;
        statistics.max_lateness_ps = statistics.max_lateness_ps.max(lateness_ps);
    }
}

#[cfg(test)]
mod tests;
