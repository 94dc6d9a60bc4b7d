//! A program with its P4Info for Python: serialized P4Runtime messages in and out. Crate `p4runtime` gives them their meaning.

use crate::errors::control_error;
use crate::handle::detached;
use crate::program::Program;
use crate::switch::Switch;
use bytes::Bytes;
use engine::control::ControlError;
use p4runtime::Mappings;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Of updates, after which packets pass.
const STEP: Duration = Duration::from_micros(300);
/// Updates between two looks at the clock. One that has a table grow takes a tenth of the step.
const UPDATES_PER_LOOK: usize = 4;

/// Does what updates have left to do, as long as the step lasts; whether all is done.
fn tidy(switch: &mut engine::Switch, begin: Instant) -> bool {
    while switch.runtime_mut().tidy() {
        if begin.elapsed() > STEP {
            return false;
        }
    }
    true
}

/// Position, status name and message of what was refused.
type Failure = (usize, &'static str, String);

/// P4Runtime id of what a message is about, and the message.
type Message = (u32, Vec<u8>);

fn refused(error: &ControlError) -> PyErr {
    control_error(error.code.name(), &error.message)
}

fn undecodable(what: &str) -> PyErr {
    control_error("INVALID_ARGUMENT", &format!("this is no {what}"))
}

fn failures(failures: &[p4runtime::Failure]) -> Vec<Failure> {
    let failures = failures.iter();
    failures
        .map(|(at, error)| (*at, error.code.name(), error.message.clone()))
        .collect()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Of a field with bytes of its own, how often it is in a serialized message, and how many bytes it has at most.
#[pyfunction]
pub(crate) fn extent(data: &Bound<'_, PyBytes>, field: u32) -> (usize, usize) {
    let data = PyBackedBytes::from(data.clone());
    detached(|| p4runtime::extent(&data, field))
}

/// A serialized ``p4.v1.WriteRequest`` whose updates have not been looked at yet. Raises INVALID_ARGUMENT if it is none.
#[pyclass(module = "holdfast._core", frozen)]
pub(crate) struct WriteRequest {
    inner: p4runtime::WriteRequest,
}

#[pymethods]
impl WriteRequest {
    #[new]
    fn new(data: PyBackedBytes) -> PyResult<WriteRequest> {
        let inner = p4runtime::WriteRequest::decode(Bytes::from_owner(data));
        let inner = inner.map_err(|_| undecodable("WriteRequest"))?;
        Ok(WriteRequest { inner })
    }

    #[getter]
    fn device_id(&self) -> u64 {
        self.inner.device_id
    }

    #[getter]
    fn role_id(&self) -> u64 {
        self.inner.role_id
    }

    #[getter]
    fn role(&self) -> &str {
        &self.inner.role
    }

    #[getter]
    fn election_id(&self) -> Option<u128> {
        self.inner.election_id
    }

    #[getter]
    fn atomicity(&self) -> i32 {
        self.inner.atomicity
    }

    fn __len__(&self) -> usize {
        self.inner.updates.len()
    }
}

/// A controller's value of a translated type.
#[derive(FromPyObject, PartialEq, Eq, Hash)]
pub(crate) enum Translated {
    Number(u128),
    Text(String),
}

impl Translated {
    fn bytes(self) -> Vec<u8> {
        match self {
            Translated::Text(text) => text.into_bytes(),
            Translated::Number(number) => {
                let bytes = number.to_be_bytes();
                let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
                bytes[zeros.min(bytes.len() - 1)..].to_vec()
            }
        }
    }
}

/// A program with its serialized ``p4.config.v1.P4Info``. Raises :class:`ControlError` INVALID_ARGUMENT or UNIMPLEMENTED if they do
/// not belong together or contradict themselves.
///
/// ``translations``: of translated types the switch's value by the controller's, by URI. The switches that methods take run the
/// program.
#[pyclass(module = "holdfast._core", frozen)]
pub(crate) struct Pipeline {
    inner: Arc<p4runtime::Pipeline>,
}

#[pymethods]
impl Pipeline {
    #[new]
    #[pyo3(
        signature = (program, p4info, translations=BTreeMap::new()),
        text_signature = "(program, p4info, translations=...)"
    )]
    fn new(
        program: &Program,
        p4info: PyBackedBytes,
        translations: BTreeMap<String, HashMap<Translated, u64>>,
    ) -> PyResult<Pipeline> {
        let mappings: Mappings = translations
            .into_iter()
            .map(|(uri, of)| {
                (
                    uri,
                    of.into_iter().map(|(own, n)| (own.bytes(), n)).collect(),
                )
            })
            .collect();
        let program = program.ir().clone();
        let pipeline = detached(|| p4runtime::Pipeline::new(program, &p4info, &mappings));
        let inner = Arc::new(pipeline.map_err(|error| refused(&error))?);
        Ok(Pipeline { inner })
    }

    /// Whether a role may deal with the object of this id.
    fn role_may(&self, role: &str, id: u32) -> bool {
        self.inner.role_may(role, id)
    }

    /// Resolves the updates of a request. Raises INVALID_ARGUMENT if one cannot be decoded.
    fn plan(&self, request: &WriteRequest) -> PyResult<Batch> {
        let pipeline = self.inner.clone();
        let batch = detached(|| p4runtime::Batch::new(pipeline, &request.inner));
        let batch = batch.map_err(|_| undecodable("WriteRequest"))?;
        Ok(Batch::of(batch))
    }

    /// The state that a switch lacks whose program has just been loaded, of that of another one with the pipeline ``old``. Raises
    /// INVALID_ARGUMENT if that cannot be taken over.
    fn plan_transfer(
        &self,
        switch: &Switch,
        old: &Pipeline,
        old_switch: &Switch,
    ) -> PyResult<Batch> {
        let initial = switch.with(|switch| p4runtime::initial_entries(switch))?;
        let initial = initial.map_err(|error| refused(&error))?;
        let (new, old) = (self.inner.clone(), old.inner.clone());
        let batch = old_switch
            .with(move |switch| p4runtime::Batch::to_reach(new, initial, &old, switch))?;
        batch.map(Batch::of).map_err(|error| refused(&error))
    }

    /// Begins to answer a serialized ``ReadRequest``: the state that is read is of this moment, but for counts.
    fn read(&self, switch: &Switch, request: PyBackedBytes) -> PyResult<Reading> {
        let pipeline = self.inner.clone();
        let request = detached(|| p4runtime::ReadRequest::decode(&request));
        let request = request.map_err(|_| undecodable("ReadRequest"))?;
        let reading =
            switch.with(move |switch| p4runtime::Reading::new(pipeline, &request, switch))?;
        Ok(Reading {
            inner: Arc::new(Mutex::new(reading)),
        })
    }

    /// The packet that goes into the CPU port for a serialized ``PacketOut``.
    fn packet_out(&self, message: &[u8]) -> PyResult<Vec<u8>> {
        let packet = self.inner.packet_out(message);
        packet.map_err(|error| refused(&error))
    }

    /// The serialized ``PacketIn`` for what came out of the CPU port; None if that is shorter than the controller header.
    fn packet_in(&self, packet: &[u8]) -> Option<Vec<u8>> {
        self.inner.packet_in(packet)
    }

    /// Takes digest lists that are due, until they have ``most`` messages together: digest id and serialized ``DigestList`` of
    /// each. Waiting digests that nobody enabled are forgotten.
    fn take_digests(&self, switch: &Switch, now_ns: i64, most: usize) -> PyResult<Vec<Message>> {
        let pipeline = self.inner.clone();
        let lists = switch.with(move |switch| pipeline.take_digests(switch, most))?;
        Ok(detached(|| self.inner.digest_messages(lists, now_ns)))
    }

    /// Acknowledges a digest list.
    fn acknowledge(&self, switch: &Switch, digest_id: u32, list_id: u64) -> PyResult<()> {
        let pipeline = self.inner.clone();
        let result = switch.with(move |switch| pipeline.acknowledge(switch, digest_id, list_id))?;
        result.map_err(|error| refused(&error))
    }

    /// Takes ``most`` entries that became idle: table id and serialized ``IdleTimeoutNotification`` of each table.
    fn take_idle(&self, switch: &Switch, now_ns: i64, most: usize) -> PyResult<Vec<Message>> {
        let pipeline = self.inner.clone();
        let alone = switch.stands_alone();
        switch.with(move |switch| {
            // In a network the agent follows the timers.
            if alone {
                switch.runtime_mut().run_idle_timers(usize::MAX);
            }
            pipeline.take_idle(switch, now_ns, most)
        })
    }
}

/// The updates of a request, and how far they have been applied.
#[pyclass(module = "holdfast._core", frozen)]
pub(crate) struct Batch {
    inner: Arc<Mutex<p4runtime::Batch>>,
}

impl Batch {
    fn of(batch: p4runtime::Batch) -> Batch {
        Batch {
            inner: Arc::new(Mutex::new(batch)),
        }
    }
}

#[pymethods]
impl Batch {
    fn __len__(&self) -> usize {
        locked(&self.inner).len()
    }

    /// The number of updates that have been applied or refused.
    #[getter]
    fn applied(&self) -> usize {
        locked(&self.inner).applied()
    }

    /// Applies the next ``most`` updates, each by itself; packets pass after every fraction of a millisecond.
    fn apply(&self, switch: &Switch, most: usize) -> PyResult<()> {
        let batch = self.inner.clone();
        let mut left = most;
        switch.in_steps(move |switch| {
            let (mut batch, begin) = (locked(&batch), Instant::now());
            loop {
                if left == 0 || !batch.apply_next(switch) {
                    left = 0;
                    return tidy(switch, begin).then_some(());
                }
                left -= 1;
                if left.is_multiple_of(UPDATES_PER_LOOK) && begin.elapsed() > STEP {
                    return None;
                }
            }
        })
    }

    /// Applies all or nothing, with no packet in between. If one fails, the others are ABORTED.
    fn apply_atomic(&self, switch: &Switch) -> PyResult<()> {
        let batch = self.inner.clone();
        switch.with(move |switch| locked(&batch).apply_atomic(switch))?;
        switch.in_steps(|switch| tidy(switch, Instant::now()).then_some(()))
    }

    /// The failures that :meth:`apply_atomic` would give, without the ABORTED ones. Nothing remains.
    fn would_fail(&self, switch: &Switch) -> PyResult<Vec<Failure>> {
        let batch = self.inner.clone();
        let found = switch.with(move |switch| locked(&batch).would_fail(switch))?;
        Ok(failures(&found))
    }

    /// Takes what was refused so far: position, status name, message.
    fn take_failures(&self) -> Vec<Failure> {
        failures(&locked(&self.inner).take_failures())
    }
}

/// The answer to a ``ReadRequest``, as far as it has not been given.
#[pyclass(module = "holdfast._core", frozen)]
pub(crate) struct Reading {
    inner: Arc<Mutex<p4runtime::Reading>>,
}

#[pymethods]
impl Reading {
    /// The next serialized ``ReadResponse``, None at the end. It copies a slice between packets.
    fn next(&self, switch: &Switch) -> PyResult<Option<Vec<u8>>> {
        loop {
            let reading = self.inner.clone();
            let slice = switch.with(move |switch| locked(&reading).fetch(switch))?;
            let Some(slice) = slice else {
                return Ok(None);
            };
            if let Some(data) = detached(|| locked(&self.inner).encode(slice)) {
                return Ok(Some(data));
            }
        }
    }

    /// The number of entities that were asked for, and those refused so far: position, status name, message.
    fn failures(&self) -> (usize, Vec<Failure>) {
        let reading = locked(&self.inner);
        let (count, refused) = reading.failures();
        (count, failures(refused))
    }
}
