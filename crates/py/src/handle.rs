//! The owner of the network: nobody, the virtual clock for the duration of a call, or the wall clock's thread.

use crate::errors::failed;
use crate::interfaces::{Interfaces, packet_io};
use engine::Time;
use net::NetError;
use net::clock::wall::WallClock;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};

/// The clock on which a network runs.
pub(crate) enum State {
    /// No clock: the network stands still, or runs on the virtual clock for the duration of a call.
    Idle(Box<Mutex<net::Network>>),
    /// The wall clock.
    Running(WallClock),
    /// No clock any more, because the thread of the wall clock has ended by this error.
    Lost(String),
}

/// A network that a `Network` and its `Switch`es share.
///
/// A thread that waits for the lock has released Python's global interpreter lock, so that the two locks cannot block
/// each other.
pub(crate) struct NetworkHandle {
    state: RwLock<State>,
    pub(crate) interfaces: Interfaces,
}

/// Releases the interpreter's lock while it runs a closure, so that other Python threads may run, and returns the
/// closure's result.
pub(crate) fn detached<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    Python::attach(|py| py.detach(f))
}

fn idle(network: net::Network) -> State {
    State::Idle(Box::new(Mutex::new(network)))
}

impl NetworkHandle {
    /// Creates a handle of a network whose clock does not run.
    pub(crate) fn new(network: net::Network) -> NetworkHandle {
        NetworkHandle {
            state: RwLock::new(idle(network)),
            interfaces: Interfaces::default(),
        }
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a closure on the network between events, while other Python threads may run, and returns its result.
    /// Fails if the closure does, or if the thread of the wall clock has ended by an error.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut net::Network) -> Result<T, NetError> + Send + 'static,
    ) -> PyResult<T> {
        let result = detached(|| match &*self.read() {
            State::Idle(network) => f(&mut network.lock().unwrap_or_else(PoisonError::into_inner)),
            State::Running(clock) => clock.call(f).and_then(|result| result),
            State::Lost(reason) => Err(NetError::Stopped(reason.clone())),
        });
        result.map_err(failed)
    }

    /// Runs a closure on the network repeatedly until it returns `Some`, while other Python threads may run. Packets
    /// are processed between its runs. Fails like [`Self::call`].
    pub(crate) fn call_in_steps<T: Send + 'static>(
        &self,
        mut step: impl FnMut(&mut net::Network) -> Option<Result<T, NetError>> + Send + 'static,
    ) -> PyResult<T> {
        let result = detached(|| match &*self.read() {
            State::Idle(network) => {
                let mut network = network.lock().unwrap_or_else(PoisonError::into_inner);
                loop {
                    if let Some(result) = step(&mut network) {
                        break result;
                    }
                }
            }
            State::Running(clock) => clock.call_in_steps(step).and_then(|result| result),
            State::Lost(reason) => Err(NetError::Stopped(reason.clone())),
        });
        result.map_err(failed)
    }

    /// Replaces the state of the network (such as idle, or run by the wall clock) by the one that `f` makes from it.
    /// Returns the error of `f`.
    fn exchange(&self, f: impl FnOnce(State) -> (State, Result<(), String>)) -> Result<(), String> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let lost = State::Lost("a call was interrupted".into());
        let (next, result) = f(std::mem::replace(&mut *state, lost));
        *state = next;
        result
    }
}

/// Methods of the clocks. Python's global interpreter lock is not held while they run.
impl NetworkHandle {
    /// Runs the virtual clock towards `until_ps`, for at most `part_ps` picoseconds. Returns the time then, and the
    /// notifications for controllers. Fails if the wall clock runs.
    pub(crate) fn run_part(
        &self,
        until_ps: Time,
        part_ps: u64,
    ) -> Result<(Time, Vec<net::Notification>), String> {
        match &*self.read() {
            State::Idle(network) => {
                let mut network = network.lock().unwrap_or_else(PoisonError::into_inner);
                let end_ps = network.now_ps().saturating_add(part_ps);
                let notifications = network
                    .run(until_ps.min(end_ps))
                    .map_err(|e| e.to_string())?;
                Ok((network.now_ps(), notifications))
            }
            State::Running(_) => Err("the wall clock is running: call stop() first".into()),
            State::Lost(reason) => Err(reason.clone()),
        }
    }

    /// Opens the network's interfaces, and starts the wall clock. Each switch may then make `copies_per_s` copies of
    /// copies per second. Fails if an interface cannot be opened, or if the clock runs already.
    pub(crate) fn start(&self, copies_per_s: u64) -> Result<(), String> {
        self.exchange(|state| match state {
            State::Idle(network) => {
                let mut network = network.into_inner().unwrap_or_else(PoisonError::into_inner);
                match self.interfaces.open(&network) {
                    Err(reason) => (idle(network), Err(reason)),
                    Ok(io) => {
                        network.set_copies_per_s(copies_per_s);
                        match WallClock::start(network, io) {
                            Ok(clock) => (State::Running(clock), Ok(())),
                            Err(e) => (State::Lost(e.to_string()), Err(e.to_string())),
                        }
                    }
                }
            }
            State::Running(clock) => (
                State::Running(clock),
                Err("the wall clock is running already".into()),
            ),
            State::Lost(reason) => (State::Lost(reason.clone()), Err(reason)),
        })
    }

    pub(crate) fn stop(&self) -> Result<(), String> {
        self.exchange(|state| match state {
            State::Running(clock) => {
                self.keep_counters(&clock);
                match clock.stop() {
                    Ok((network, _)) => (idle(network), Ok(())),
                    Err(e) => (State::Lost(e.to_string()), Err(e.to_string())),
                }
            }
            other => (other, Ok(())),
        })
    }

    fn keep_counters(&self, clock: &WallClock) {
        let counters = clock.call_with_io(|network, io| {
            let io = packet_io(io).ok()?;
            // Frames that are about to leave count.
            io.flush();
            let numbers: Vec<usize> = network.interfaces().map(|(number, _)| number).collect();
            Some(numbers.into_iter().map(|n| (n, io.counters(n))).collect())
        });
        // Else the clock's thread is gone, and its counters with it.
        if let Ok(Some(counters)) = counters {
            self.interfaces.keep_counters(counters);
        }
    }
}
